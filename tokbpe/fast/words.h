/* The keys of the word cache. In C for unaligned loads and hashes that wrap around. */
#ifndef TOKBPE_WORDS_H
#define TOKBPE_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bytes.h"
#include "hash.h"

typedef struct {
    uint64_t low, high;
} tokbpe_key;

/* The bytes of a key that a word of so many bytes fills. */
static const uint64_t tokbpe_filled[16][2] = {
#define LOW(n) (UINT64_C(0xFFFFFFFFFFFFFFFF) >> (64 - 8 * (n)))
    {0, 0},           {LOW(1), 0},      {LOW(2), 0},      {LOW(3), 0},
    {LOW(4), 0},      {LOW(5), 0},      {LOW(6), 0},      {LOW(7), 0},
    {LOW(8), 0},      {LOW(8), LOW(1)}, {LOW(8), LOW(2)}, {LOW(8), LOW(3)},
    {LOW(8), LOW(4)}, {LOW(8), LOW(5)}, {LOW(8), LOW(6)}, {LOW(8), LOW(7)},
#undef LOW
};

/* The bytes from data[start] on, fewer than 16. */
static inline tokbpe_key tokbpe_last_bytes(const uint8_t *data, size_t start, size_t data_size)
{
    tokbpe_key key;
    uint8_t padded[16] = {0};
    size_t before; /* bits that belong to what stands before them */
    if (data_size < 16) {
        memcpy(padded, data + start, data_size - start);
        key.low = tokbpe_eight(padded);
        key.high = tokbpe_eight(padded + 8);
        return key;
    }
    before = 8 * (start - (data_size - 16));
    key.low = tokbpe_eight(data + data_size - 16);
    key.high = tokbpe_eight(data + data_size - 8);
    if (before < 64) {
        key.low = key.low >> before | key.high << (64 - before);
        key.high >>= before;
    } else {
        key.low = key.high >> (before - 64);
        key.high = 0;
    }
    return key;
}

/* The key of a word of 1 to 15 bytes that stands at data[start]: its bytes, then zeros, and `tag`
 * in the last byte. */
static inline tokbpe_key tokbpe_word_key(const uint8_t *data, size_t start, size_t size,
                                         size_t data_size, uint64_t tag)
{
    tokbpe_key key;
    if (start + 16 <= data_size) {
        key.low = tokbpe_eight(data + start);
        key.high = tokbpe_eight(data + start + 8);
    } else {
        key = tokbpe_last_bytes(data, start, data_size);
    }
    key.low &= tokbpe_filled[size][0];
    key.high = (key.high & tokbpe_filled[size][1]) | tag << 56;
    return key;
}

/* Both halves of a product, folded to one: so the highest bits of a factor reach all others. */
static inline uint64_t tokbpe_folded(uint64_t one, uint64_t other)
{
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 tokbpe_wide;
    tokbpe_wide product = (tokbpe_wide)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t low = (one & 0xFFFFFFFF) * (other & 0xFFFFFFFF);
    uint64_t first = (one >> 32) * (other & 0xFFFFFFFF) + (low >> 32);
    uint64_t second = (one & 0xFFFFFFFF) * (other >> 32) + (first & 0xFFFFFFFF);
    uint64_t high = (one >> 32) * (other >> 32) + (first >> 32) + (second >> 32);
    return (second << 32 | (low & 0xFFFFFFFF)) ^ high;
#endif
}

/* The key of a longer word: a hash, which its bytes have to confirm, its size and `tag`. */
static inline tokbpe_key tokbpe_long_key(const uint8_t *word, size_t size, uint64_t tag)
{
    tokbpe_key key = {tokbpe_high_seed, size | tag << 56};
    size_t place;
    for (place = 0; place + 8 < size; place += 8)
        key.low = tokbpe_folded(key.low ^ tokbpe_eight(word + place), tokbpe_low_seed);
    key.low = tokbpe_folded(key.low ^ tokbpe_eight(word + size - 8), tokbpe_low_seed);
    return key;
}

/* The high bits are the well mixed ones: shift right by 64 - log2(slots). */
static inline uint64_t tokbpe_key_hash(tokbpe_key key)
{
    return key.low * tokbpe_low_seed + key.high * tokbpe_high_seed;
}

#endif
