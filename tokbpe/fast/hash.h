/* Hashes, in C because their products are meant to wrap around, which Cython's overflow checks
 * (debug build) would report. */
#ifndef TOKBPE_HASH_H
#define TOKBPE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The high bits are the well mixed ones: shift right by 64 - log2(slots). */
static inline uint64_t tokbpe_hash_pair(uint64_t pair)
{
    pair ^= pair >> 29;
    return pair * UINT64_C(0x9E3779B97F4A7C15);
}

/* Eight bytes at a time; the last eight may overlap those before. Reads only what it is given. */
static inline uint64_t tokbpe_hash_bytes(const uint8_t *bytes, size_t size)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash = size * odd;
    uint64_t word = 0;
    uint32_t half;
    size_t place;
    if (size >= 8) {
        for (place = 0; place + 8 < size; place += 8) {
            memcpy(&word, bytes + place, 8);
            hash = (hash ^ word) * odd;
            hash ^= hash >> 32;
        }
        memcpy(&word, bytes + size - 8, 8);
    } else if (size >= 4) {
        memcpy(&half, bytes + size - 4, 4);
        word = half;
        memcpy(&half, bytes, 4);
        word = word << 32 | half;
    } else if (size) {
        word = (uint64_t)bytes[0] << 16 | (uint64_t)bytes[size / 2] << 8 | bytes[size - 1];
    }
    hash = (hash ^ word) * odd;
    return (hash ^ (hash >> 32)) * odd;
}

/* A hash that is known for each beginning of a string, one byte after another, from 0 on; and so
 * for each part of it: that of an end from those of the whole and of what stands before, with
 * power = tokbpe_power(size of the end). Mixed by tokbpe_mixed before it is used. */
#define TOKBPE_FACTOR UINT64_C(0xD6E8FEB86659FD93)

static inline uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte)
{
    return hash * TOKBPE_FACTOR + byte + 1;
}

static inline uint64_t tokbpe_next_power(uint64_t power)
{
    return power * TOKBPE_FACTOR;
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
