/* Hashes, in C because their products are meant to wrap around, which Cython's overflow checks
 * (debug build) would report. */
#ifndef TOKBPE_HASH_H
#define TOKBPE_HASH_H

#include <stdint.h>

/* What hashes are made with: odd, and unknown to who writes a text or a file, who could else make
 * words, pairs or pieces of which all begin their search at one place. Each module that includes
 * this sets them to the same numbers when it is loaded. */
static uint64_t tokbpe_low_seed = UINT64_C(0xD6E8FEB86659FD93);
static uint64_t tokbpe_high_seed = UINT64_C(0x9E3779B97F4A7C15);

static inline void tokbpe_set_seeds(uint64_t low, uint64_t high)
{
    tokbpe_low_seed = low | 1;
    tokbpe_high_seed = high | 1;
}

/* The high bits are the well mixed ones: shift right by 64 - log2(slots). Two factors: with a single
 * one, of a few hundred secrets there is one with which pairs in a pattern lie close together. */
static inline uint64_t tokbpe_hash_pair(uint64_t pair)
{
    pair *= tokbpe_low_seed;
    pair ^= pair >> 32;
    return pair * tokbpe_high_seed;
}

/* A hash that is known for each beginning of a string, one byte after another, from 0 on; and so
 * for each part of it: that of an end from those of the whole and of what stands before, with
 * power = that of the low seed to the size of the end. Mixed by tokbpe_mixed before it is used. */
static inline uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte)
{
    return hash * tokbpe_low_seed + byte + 1;
}

static inline uint64_t tokbpe_next_power(uint64_t power)
{
    return power * tokbpe_low_seed;
}

static inline uint64_t tokbpe_hash_of_end(uint64_t whole, uint64_t before, uint64_t power)
{
    return whole - before * power;
}

static inline uint64_t tokbpe_mixed(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

#endif
