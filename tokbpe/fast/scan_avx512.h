/* Blocks by AVX-512: F, BW, VBMI and VBMI2. The first 128 classes are looked up by one instruction,
 * which takes two registers for a table. */
#ifndef TOKBPE_SCAN_AVX512_H
#define TOKBPE_SCAN_AVX512_H

#include <immintrin.h>

#include "scan_avx2.h"

#define TOKBPE_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,popcnt")))

static inline int tokbpe_has_avx512(void)
{
    return tokbpe_has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2");
}

TOKBPE_AVX512 TOKBPE_INLINE uint64_t tokbpe_avx512_having(__m512i found, int wanted)
{
    return _mm512_test_epi8_mask(found, _mm512_set1_epi8((char)wanted));
}

TOKBPE_AVX512 TOKBPE_INLINE uint64_t tokbpe_avx512_equal(__m512i bytes, char wanted)
{
    return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(wanted));
}

TOKBPE_AVX512 TOKBPE_INLINE tokbpe_block tokbpe_avx512_read(const uint8_t *bytes, int size)
{
    uint64_t inside = ~UINT64_C(0) >> (TOKBPE_BLOCK - size);
    __m512i text = _mm512_maskz_loadu_epi8(inside, bytes);
    uint64_t beyond_ascii = _mm512_movepi8_mask(text);
    __m512i found = _mm512_maskz_permutex2var_epi8(
        inside, _mm512_loadu_si512(tokbpe_classes), text, _mm512_loadu_si512(tokbpe_classes + 64));
    tokbpe_block block = {bytes, size, 0};
    if (beyond_ascii) {
        uint8_t classified[TOKBPE_CLASSIFIED];
        /* Bytes that continue a character are the least as signed numbers. */
        block.tails = _mm512_cmplt_epi8_mask(text, _mm512_set1_epi8(-64));
        tokbpe_classify(bytes, beyond_ascii & ~block.tails, classified);
        found = _mm512_mask_loadu_epi8(found, beyond_ascii, classified);
    }
    block.spaces = tokbpe_avx512_having(found, TOKBPE_SPACE);
    block.letters = tokbpe_avx512_having(found, TOKBPE_LETTER);
    block.numbers = tokbpe_avx512_having(found, TOKBPE_NUMBER);
    block.others = tokbpe_avx512_having(found, TOKBPE_OTHER);
    block.upper = tokbpe_avx512_having(found, TOKBPE_UPPER);
    block.lower = tokbpe_avx512_having(found, TOKBPE_LOWER);
    block.newlines = tokbpe_avx512_having(found, TOKBPE_NEWLINE);
    block.blanks = tokbpe_avx512_equal(text, ' ');
    block.apostrophes = tokbpe_avx512_equal(text, '\'');
    block.slashes = tokbpe_avx512_equal(text, '/');
    return block;
}

TOKBPE_AVX512 TOKBPE_INLINE int tokbpe_avx512_write(uint64_t bits, size_t base, size_t *places)
{
    const __m512i numbers = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42,
        41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20,
        19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    int count = (int)_mm_popcnt_u64(bits);
    __m512i first = _mm512_set1_epi64((long long)base);
    __m512i set = _mm512_maskz_compress_epi8(bits, numbers);
    int done = 0;
    do { /* sixteen at a time, so that few counts are guessed wrong */
        __m512i eight = _mm512_cvtepu8_epi64(_mm512_castsi512_si128(set));
        __m512i more = _mm512_cvtepu8_epi64(_mm_bsrli_si128(_mm512_castsi512_si128(set), 8));
        _mm512_storeu_si512(places + done, _mm512_add_epi64(first, eight));
        _mm512_storeu_si512(places + done + 8, _mm512_add_epi64(first, more));
        set = _mm512_alignr_epi64(set, set, 2);
        done += 16;
    } while (done < count);
    return count;
}

TOKBPE_AVX512 static size_t tokbpe_scan_avx512(
    int pattern, const uint8_t *data, size_t place, size_t end, size_t *ends, size_t most)
{
    return tokbpe_scan_pattern(
        tokbpe_avx512_read, tokbpe_avx512_write, pattern, data, place, end, ends, most);
}

#endif
