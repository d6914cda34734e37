/* Bits of a word, and keys of which the least is looked for, in C for what processors do in one step
 * and for shifts that lose bits. */
#ifndef TOKBPE_BITS_H
#define TOKBPE_BITS_H

#include <stddef.h>
#include <stdint.h>

/* The lowest and the highest bit of a word that is not 0. */
#if defined(__GNUC__)
static inline uint32_t tokbpe_lowest_bit(uint32_t word)
{
    return (uint32_t)__builtin_ctz(word);
}

static inline uint32_t tokbpe_highest_bit(uint32_t word)
{
    return 31u ^ (uint32_t)__builtin_clz(word);
}
#else
static inline uint32_t tokbpe_lowest_bit(uint32_t word)
{
    uint32_t bit = 0;
    while (!(word >> bit & 1))
        bit++;
    return bit;
}

static inline uint32_t tokbpe_highest_bit(uint32_t word)
{
    uint32_t bit = 31;
    while (!(word >> bit & 1))
        bit--;
    return bit;
}
#endif

/* The bits above one, and those below it; 0 <= bit < 31. */
static inline uint32_t tokbpe_bits_above(uint32_t word, uint32_t bit)
{
    return word & ~UINT32_C(1) << bit;
}

static inline uint32_t tokbpe_bits_below(uint32_t word, uint32_t bit)
{
    return word & ((UINT32_C(1) << bit) - 1);
}

/* What no merge is, 2**32 - 1, gives a key that is higher than any of a merge. */
static inline uint32_t tokbpe_merge_key(uint32_t number, uint32_t place_bits, uint32_t place)
{
    return number << place_bits | place;
}

static inline uint32_t tokbpe_less(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

/* Without a branch, and without vectors, which would wait for what was stored just before. */
static inline uint32_t tokbpe_least_of_8(const uint32_t *keys)
{
    uint32_t a = tokbpe_less(tokbpe_less(keys[0], keys[1]), tokbpe_less(keys[2], keys[3]));
    uint32_t b = tokbpe_less(tokbpe_less(keys[4], keys[5]), tokbpe_less(keys[6], keys[7]));
    return tokbpe_less(a, b);
}

static inline uint32_t tokbpe_least_of_16(const uint32_t *keys)
{
    return tokbpe_less(tokbpe_least_of_8(keys), tokbpe_least_of_8(keys + 8));
}

#endif
