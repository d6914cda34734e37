/* The keys of words: what stands in the word cache for up to 15 bytes. In C for unaligned loads,
 * hashes that wrap around, and prefetching. */
#ifndef TOKBPE_WORDS_H
#define TOKBPE_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define TOKBPE_PREFETCH(address) __builtin_prefetch(address)
#else
#define TOKBPE_PREFETCH(address) ((void)(address))
#endif

typedef struct {
    uint64_t low, high; /* the bytes, then zeros, and the size in the last byte */
} tokbpe_key;

/* The key of a word of 1 to 15 bytes, of which `readable` bytes can be read. */
static inline tokbpe_key tokbpe_word_key(const uint8_t *word, size_t size, size_t readable)
{
    tokbpe_key key = {0, 0};
    if (readable >= 16) {
        memcpy(&key, word, 16);
        if (size < 8) {
            key.low &= ~UINT64_C(0) >> (64 - 8 * size);
            key.high = 0;
        } else {
            key.high &= (UINT64_C(1) << (8 * size - 64)) - 1;
        }
    } else {
        memcpy(&key, word, size);
    }
    key.high |= (uint64_t)size << 56;
    return key;
}

static inline uint64_t tokbpe_key_hash(tokbpe_key key)
{
    uint64_t hash = (key.low ^ (key.high * UINT64_C(0x9E3779B97F4A7C15))) *
                    UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ hash >> 32;
}

static inline void tokbpe_prefetch(const void *address)
{
    TOKBPE_PREFETCH(address);
}

#endif
