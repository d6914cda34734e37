/* Blocks by AVX2, half a block at a time. */
#ifndef TOKBPE_SCAN_AVX2_H
#define TOKBPE_SCAN_AVX2_H

#include <immintrin.h>

#include "scan_blocks.h"

#define TOKBPE_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))

/* What an ASCII character is, found by its two halves of four bits. */
enum {
    TOKBPE_FIRST_LETTERS = 1, /* @ and A to O, without the first */
    TOKBPE_LAST_LETTERS = 2,  /* P to Z */
    TOKBPE_DIGIT = 4,
    TOKBPE_CONTROL_SPACE = 8, /* \t to \r */
    TOKBPE_BLANK = 16,
    TOKBPE_LINE_END = 32,
    TOKBPE_APOSTROPHE = 64,
    TOKBPE_SLASH = 128
};

/* What has BMI2 has BMI and LZCNT. */
static inline int tokbpe_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

typedef struct {
    __m256i half[2];
} tokbpe_avx2_bytes;

TOKBPE_AVX2 TOKBPE_INLINE tokbpe_avx2_bytes tokbpe_avx2_load(const uint8_t *bytes)
{
    tokbpe_avx2_bytes loaded = {{
        _mm256_loadu_si256((const __m256i *)bytes),
        _mm256_loadu_si256((const __m256i *)(bytes + 32)),
    }};
    return loaded;
}

TOKBPE_AVX2 TOKBPE_INLINE uint64_t tokbpe_avx2_high_bits(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)_mm256_movemask_epi8(high) << 32;
}

TOKBPE_AVX2 TOKBPE_INLINE uint64_t tokbpe_avx2_having(tokbpe_avx2_bytes bytes, int wanted)
{
    const __m256i bits = _mm256_set1_epi8((char)wanted);
    const __m256i none = _mm256_setzero_si256();
    return ~tokbpe_avx2_high_bits(
        _mm256_cmpeq_epi8(_mm256_and_si256(bytes.half[0], bits), none),
        _mm256_cmpeq_epi8(_mm256_and_si256(bytes.half[1], bits), none));
}

TOKBPE_AVX2 TOKBPE_INLINE __m256i tokbpe_avx2_ascii(__m256i text)
{
    const int F = TOKBPE_FIRST_LETTERS, L = TOKBPE_LAST_LETTERS, D = TOKBPE_DIGIT;
    const int C = TOKBPE_CONTROL_SPACE, E = TOKBPE_LINE_END, B = TOKBPE_BLANK;
    const int A = TOKBPE_APOSTROPHE;
    const char S = (char)TOKBPE_SLASH;
    const int X = F | L | D;
    const __m256i by_low = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        L | D | B, X, X, X, X, X, X, X | A, X, X | C, F | L | C | E, F | C, F | C, F | C | E, F,
        (char)(F | S)));
    const __m256i by_high = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        C | E, 0, (char)(B | A | S), D, F, L, F, L, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i four = _mm256_set1_epi8(0x0F);
    __m256i low = _mm256_and_si256(text, four);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(text, 4), four);
    return _mm256_and_si256(
        _mm256_shuffle_epi8(by_low, low), _mm256_shuffle_epi8(by_high, high));
}

/* Add the classes of characters beyond ASCII. */
TOKBPE_AVX2 TOKBPE_INLINE void tokbpe_avx2_add_classified(
    tokbpe_block *block, uint64_t beyond_ascii)
{
    uint8_t classified[TOKBPE_CLASSIFIED];
    tokbpe_avx2_bytes found;
    tokbpe_classify(block->bytes, beyond_ascii & ~block->tails, classified);
    found = tokbpe_avx2_load(classified);
    block->spaces |= tokbpe_avx2_having(found, TOKBPE_SPACE) & beyond_ascii;
    block->letters |= tokbpe_avx2_having(found, TOKBPE_LETTER) & beyond_ascii;
    block->numbers |= tokbpe_avx2_having(found, TOKBPE_NUMBER) & beyond_ascii;
    block->upper |= tokbpe_avx2_having(found, TOKBPE_UPPER) & beyond_ascii;
    block->lower |= tokbpe_avx2_having(found, TOKBPE_LOWER) & beyond_ascii;
}

TOKBPE_AVX2 TOKBPE_INLINE tokbpe_block tokbpe_avx2_read(const uint8_t *bytes, int size)
{
    uint64_t inside = ~UINT64_C(0) >> (TOKBPE_BLOCK - size);
    tokbpe_block block = {bytes, size, 0};
    tokbpe_avx2_bytes text, ascii;
    uint64_t beyond_ascii, small;
    if (size < TOKBPE_BLOCK) {
        uint8_t padded[TOKBPE_BLOCK] = {0};
        memcpy(padded, bytes, (size_t)size);
        text = tokbpe_avx2_load(padded);
    } else {
        text = tokbpe_avx2_load(bytes);
    }
    ascii.half[0] = tokbpe_avx2_ascii(text.half[0]);
    ascii.half[1] = tokbpe_avx2_ascii(text.half[1]);
    block.letters = tokbpe_avx2_having(ascii, TOKBPE_FIRST_LETTERS | TOKBPE_LAST_LETTERS);
    block.numbers = tokbpe_avx2_having(ascii, TOKBPE_DIGIT);
    block.spaces = tokbpe_avx2_having(ascii, TOKBPE_CONTROL_SPACE | TOKBPE_BLANK);
    block.newlines = tokbpe_avx2_having(ascii, TOKBPE_LINE_END);
    block.blanks = tokbpe_avx2_having(ascii, TOKBPE_BLANK);
    block.apostrophes = tokbpe_avx2_having(ascii, TOKBPE_APOSTROPHE);
    block.slashes = tokbpe_avx2_having(ascii, TOKBPE_SLASH);
    small = tokbpe_avx2_having(text, 0x20); /* the bit between A and a */
    block.lower = block.letters & small;
    block.upper = block.letters & ~small;
    beyond_ascii = tokbpe_avx2_high_bits(text.half[0], text.half[1]);
    if (beyond_ascii) {
        /* Bytes that continue a character are the least as signed numbers. */
        const __m256i lead = _mm256_set1_epi8(-64);
        block.tails = tokbpe_avx2_high_bits(
            _mm256_cmpgt_epi8(lead, text.half[0]), _mm256_cmpgt_epi8(lead, text.half[1]));
        tokbpe_avx2_add_classified(&block, beyond_ascii);
    }
    block.others = inside & ~(block.letters | block.numbers | block.spaces);
    return block;
}

TOKBPE_AVX2 TOKBPE_INLINE int tokbpe_avx2_write(uint64_t bits, size_t base, size_t *places)
{
    int count = (int)_mm_popcnt_u64(bits);
    int done = 0;
    do { /* eight at a time, so that few counts are guessed wrong */
        for (int i = 0; i < 8; i++) {
            places[done + i] = base + _tzcnt_u64(bits);
            bits = _blsr_u64(bits);
        }
        done += 8;
    } while (done < count);
    return count;
}

TOKBPE_AVX2 static size_t tokbpe_scan_avx2(
    int pattern, const uint8_t *data, size_t place, size_t end, size_t *ends, size_t most)
{
    return tokbpe_scan_pattern(
        tokbpe_avx2_read, tokbpe_avx2_write, pattern, data, place, end, ends, most);
}

#endif
