/* The UTF-8 check by blocks of 64 bytes: AVX2 gives a bit mask for each kind of byte. */
#ifndef TOKBPE_SCAN_UTF8_H
#define TOKBPE_SCAN_UTF8_H

#include "scan_avx2.h"

/* The bytes that are `least` or more, unsigned. */
TOKBPE_AVX2 TOKBPE_INLINE uint64_t tokbpe_avx2_from(tokbpe_avx2_bytes bytes, int least)
{
    const __m256i bound = _mm256_set1_epi8((char)least);
    return tokbpe_avx2_high_bits(
        _mm256_cmpeq_epi8(_mm256_max_epu8(bytes.half[0], bound), bytes.half[0]),
        _mm256_cmpeq_epi8(_mm256_max_epu8(bytes.half[1], bound), bytes.half[1]));
}

TOKBPE_AVX2 TOKBPE_INLINE uint64_t tokbpe_avx2_equal(tokbpe_avx2_bytes bytes, int wanted)
{
    const __m256i same = _mm256_set1_epi8((char)wanted);
    return tokbpe_avx2_high_bits(
        _mm256_cmpeq_epi8(bytes.half[0], same), _mm256_cmpeq_epi8(bytes.half[1], same));
}

/* How many bytes of a block are whole characters, the first of which begins it; 0 if a byte is no
 * UTF-8. */
TOKBPE_AVX2 TOKBPE_INLINE int tokbpe_utf8_size(tokbpe_avx2_bytes text)
{
    uint64_t from_80 = tokbpe_avx2_high_bits(text.half[0], text.half[1]);
    uint64_t from_90, from_a0, from_c0, from_e0, from_f0, wrong, tails, cut;
    if (!from_80)
        return TOKBPE_BLOCK;
    from_90 = tokbpe_avx2_from(text, 0x90);
    from_a0 = tokbpe_avx2_from(text, 0xA0);
    from_c0 = tokbpe_avx2_from(text, 0xC0);
    from_e0 = tokbpe_avx2_from(text, 0xE0);
    from_f0 = tokbpe_avx2_from(text, 0xF0);
    /* Leads that there are not; then second bytes that make a character overlong, a surrogate or
     * one above U+10FFFF. */
    wrong = (from_c0 & ~tokbpe_avx2_from(text, 0xC2)) | tokbpe_avx2_from(text, 0xF5);
    wrong |= tokbpe_avx2_equal(text, 0xE0) << 1 & ~from_a0;
    wrong |= tokbpe_avx2_equal(text, 0xED) << 1 & from_a0;
    wrong |= tokbpe_avx2_equal(text, 0xF0) << 1 & ~from_90;
    wrong |= tokbpe_avx2_equal(text, 0xF4) << 1 & from_90;
    tails = from_c0 << 1 | from_e0 << 2 | from_f0 << 3;
    if (wrong || tails != (from_80 & ~from_c0))
        return 0;
    cut = (from_c0 >> 63 << 63) | (from_e0 >> 62 << 62) | (from_f0 >> 61 << 61);
    return cut ? tokbpe_lowest_bit(cut) : TOKBPE_BLOCK;
}

/* Up to where bytes are UTF-8, as far as whole blocks tell. */
TOKBPE_AVX2 static const uint8_t *tokbpe_utf8_end_avx2(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= TOKBPE_BLOCK) {
        int size = tokbpe_utf8_size(tokbpe_avx2_load(p));
        if (!size)
            break;
        p += size;
    }
    return p;
}

#endif
