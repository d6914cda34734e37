/* Slots and filter words of the merge table, in C for arithmetic that is meant to wrap around. */
#ifndef TOKBPE_MERGES_H
#define TOKBPE_MERGES_H

#include <stddef.h>
#include <stdint.h>

/* Two numbers of 21 bits, and 1 + the number that they merge to, so that no slot in use is 0. */
static inline uint64_t tokbpe_merge_slot(uint32_t left, uint32_t right, uint32_t number)
{
    return (uint64_t)left << 43 | (uint64_t)right << 22 | (number + 1);
}

static inline int tokbpe_is_merge(uint64_t slot, uint32_t left, uint32_t right)
{
    return slot >> 22 == ((uint64_t)left << 21 | right);
}

/* Of a free slot: 2**32 - 1. */
static inline uint32_t tokbpe_merged_number(uint64_t slot)
{
    return (uint32_t)(slot & 0x3FFFFF) - 1;
}

/* Two bits of a word. */
static inline uint64_t tokbpe_filter_bits(uint64_t hash)
{
    return UINT64_C(1) << (hash >> 34 & 63) | UINT64_C(1) << (hash >> 28 & 63);
}

/* Of what is longer than any text, only that is known. */
static inline uint32_t tokbpe_joined_size(uint32_t left, uint32_t right)
{
    return left > UINT32_MAX - right ? UINT32_MAX : left + right;
}

#endif
