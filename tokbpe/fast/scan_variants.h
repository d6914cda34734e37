/* The forms of scanning by blocks; this machine has the last one and perhaps others. */
#ifndef TOKBPE_SCAN_VARIANTS_H
#define TOKBPE_SCAN_VARIANTS_H

#include <stddef.h>
#include <stdint.h>

#include "scan_words.h"

/* As they are named in `split.pyx`, in this order. */
enum { TOKBPE_BY_AVX512, TOKBPE_BY_AVX2, TOKBPE_BY_WORDS };

/* The ends of pieces from data[place] on, `most` of them or fewer, as far as they are sure. */
typedef size_t (*tokbpe_scan)(
    int pattern, const uint8_t *data, size_t place, size_t end, size_t *ends, size_t most);

/* Up to where bytes are UTF-8, as far as blocks tell. */
typedef const uint8_t *(*tokbpe_utf8_end)(const uint8_t *p, const uint8_t *end);

#if defined(__GNUC__) && defined(__x86_64__) && defined(__LP64__)

#include "scan_avx2.h"
#include "scan_avx512.h"
#include "scan_utf8.h"

/* NULL if the machine lacks what the variant needs. */
static inline tokbpe_scan tokbpe_scan_by(int variant)
{
    if (variant == TOKBPE_BY_AVX512 && tokbpe_has_avx512())
        return tokbpe_scan_avx512;
    if (variant == TOKBPE_BY_AVX2 && tokbpe_has_avx2())
        return tokbpe_scan_avx2;
    return variant == TOKBPE_BY_WORDS ? tokbpe_scan_words : NULL;
}

static inline tokbpe_utf8_end tokbpe_utf8_end_by(int variant)
{
    return variant < TOKBPE_BY_WORDS && tokbpe_scan_by(variant) ? tokbpe_utf8_end_avx2 : NULL;
}

#else

static inline tokbpe_scan tokbpe_scan_by(int variant)
{
    return variant == TOKBPE_BY_WORDS ? tokbpe_scan_words : NULL;
}

static inline tokbpe_utf8_end tokbpe_utf8_end_by(int variant)
{
    (void)variant;
    return NULL;
}

#endif

#endif
