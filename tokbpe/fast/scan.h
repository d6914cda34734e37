/* What scanners share: characters, runs of ASCII and contractions.
 *
 * In C because sums are meant to wrap around, which Cython's overflow checks (debug build) would
 * report, and to say what must be put into the loops that use it. */
#ifndef TOKBPE_SCAN_H
#define TOKBPE_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bytes.h"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

#if defined(__GNUC__)
#define TOKBPE_INLINE static inline __attribute__((always_inline))
#else
#define TOKBPE_INLINE static inline
#endif

#define TOKBPE_ONES UINT64_C(0x0101010101010101)
#define TOKBPE_HIGH_BITS UINT64_C(0x8080808080808080)

/* The number of the lowest bit that is set; one is. */
static inline int tokbpe_lowest_bit(uint64_t bits)
{
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    unsigned long number;
    _BitScanForward64(&number, bits);
    return (int)number;
#else
    int number = 0;
    while (!(bits >> number & 1))
        number++;
    return number;
#endif
}

/* That of the highest. */
static inline int tokbpe_highest_bit(uint64_t bits)
{
#if defined(__GNUC__)
    return 63 - __builtin_clzll(bits);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    unsigned long number;
    _BitScanReverse64(&number, bits);
    return (int)number;
#else
    int number = 63;
    while (!(bits >> number & 1))
        number--;
    return number;
#endif
}

/* Where a run of ASCII ends. */
static inline const uint8_t *tokbpe_ascii_end(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 64) {
        uint64_t eights[8], all = 0;
        memcpy(eights, p, 64);
        for (int i = 0; i < 8; i++)
            all |= eights[i];
        if (all & TOKBPE_HIGH_BITS)
            break;
        p += 64;
    }
    while (end - p >= 8) {
        uint64_t others = tokbpe_eight(p) & TOKBPE_HIGH_BITS;
        if (others)
            return p + tokbpe_lowest_bit(others) / 8;
        p += 8;
    }
    while (p < end && *p < 0x80)
        p++;
    return p;
}

/* The high bits of those bytes that are `first` to `last`, two ASCII characters. */
TOKBPE_INLINE uint64_t tokbpe_between(uint64_t eight, uint8_t first, uint8_t last)
{
    uint64_t low = eight & ~TOKBPE_HIGH_BITS;
    uint64_t from_first = low + (0x80 - first) * TOKBPE_ONES;
    uint64_t behind_last = low + (0x7F - last) * TOKBPE_ONES;
    return from_first & ~behind_last & ~eight & TOKBPE_HIGH_BITS;
}

/* Where a run of characters ends that are, after setting the bits of `fold`, `first` to `last`. */
TOKBPE_INLINE const uint8_t *tokbpe_ascii_run_end(
    const uint8_t *p, const uint8_t *end, uint8_t fold, uint8_t first, uint8_t last)
{
    while (end - p >= 8) {
        uint64_t eight = tokbpe_eight(p) | fold * TOKBPE_ONES;
        uint64_t others = ~tokbpe_between(eight, first, last) & TOKBPE_HIGH_BITS;
        if (others)
            return p + tokbpe_lowest_bit(others) / 8;
        p += 8;
    }
    while (p < end && (*p | fold) >= first && (*p | fold) <= last)
        p++;
    return p;
}

/* Where capitals and then small letters end, all ASCII; p if no small letter is there. */
static inline const uint8_t *tokbpe_capitalized_end(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *capitals_end = p;
    const uint8_t *small_end;
    while (capitals_end < end && (uint8_t)(*capitals_end - 'A') < 26)
        capitals_end++;
    small_end = tokbpe_ascii_run_end(capitals_end, end, 0, 'a', 'z');
    return small_end == capitals_end ? p : small_end;
}

/* Where 's 't 'm 'd 'll 've 're end; p if there is none. Any case of s includes U+017F. */
static inline const uint8_t *tokbpe_contraction_end(
    const uint8_t *p, const uint8_t *end, int any_case)
{
    uint8_t fold = any_case ? 0x20 : 0; /* the bit between A and a */
    uint8_t first, second;
    if (p == end || p[0] != '\'' || p + 1 == end)
        return p;
    first = p[1] | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return p + 2;
    if (p + 2 == end)
        return p;
    second = p[2] | fold;
    if ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e'))
        return p + 3;
    if (any_case && p[1] == 0xC5 && p[2] == 0xBF)
        return p + 3;
    return p;
}

#endif
