/* Blocks in plain C, for all machines: each byte is looked up, and what it is comes as bits that
 * are far enough apart for eight bytes to be put together in one word. */
#ifndef TOKBPE_SCAN_WORDS_H
#define TOKBPE_SCAN_WORDS_H

#include "scan_blocks.h"

/* What a byte is: for each number a mask of the block. An apostrophe is upper and lower; a byte
 * that continues a character is beyond ASCII and a slash. */
enum {
    TOKBPE_IS_UPPER,
    TOKBPE_IS_LOWER,
    TOKBPE_IS_DIGIT,
    TOKBPE_IS_SPACE,
    TOKBPE_IS_BLANK,
    TOKBPE_IS_NEWLINE,
    TOKBPE_IS_SLASH,
    TOKBPE_IS_BEYOND,
    TOKBPE_MASKS
};

/* Bit k of a number is bit 8 k here; and the same for what a byte is. Only read once filled in. */
static uint64_t tokbpe_spread[256];
static uint64_t tokbpe_spread_text[256];

static inline int tokbpe_is_within(int byte, int first, int last)
{
    return byte >= first && byte <= last;
}

static inline void tokbpe_fill_spread(void)
{
    for (int byte = 0; byte < 256; byte++)
        for (int bit = 0; bit < 8; bit++)
            tokbpe_spread[byte] |= (uint64_t)(byte >> bit & 1) << 8 * bit;
    for (int byte = 0; byte < 256; byte++) {
        int apostrophe = byte == '\'';
        int tail = tokbpe_is_within(byte, 0x80, 0xBF);
        tokbpe_spread_text[byte] = tokbpe_spread[
            (tokbpe_is_within(byte, 'A', 'Z') | apostrophe) << TOKBPE_IS_UPPER |
            (tokbpe_is_within(byte, 'a', 'z') | apostrophe) << TOKBPE_IS_LOWER |
            tokbpe_is_within(byte, '0', '9') << TOKBPE_IS_DIGIT |
            (tokbpe_is_within(byte, '\t', '\r') | (byte == ' ')) << TOKBPE_IS_SPACE |
            (byte == ' ') << TOKBPE_IS_BLANK |
            (byte == '\n' || byte == '\r') << TOKBPE_IS_NEWLINE |
            (byte == '/' || tail) << TOKBPE_IS_SLASH |
            (byte >= 0x80) << TOKBPE_IS_BEYOND];
    }
}

/* Of each two neighbors of so many bits, exchange the upper one of the first word with the lower
 * one of the other; `low` has the bits of all lower ones. */
TOKBPE_INLINE void tokbpe_exchange(uint64_t *one, uint64_t *other, int width, uint64_t low)
{
    uint64_t differ = (*one >> width ^ *other) & low;
    *one ^= differ << width;
    *other ^= differ;
}

/* Byte k of word i becomes byte i of word k. */
TOKBPE_INLINE void tokbpe_turn(uint64_t *words)
{
    for (int i = 0; i < 4; i++)
        tokbpe_exchange(&words[i], &words[i + 4], 32, UINT64_C(0x00000000FFFFFFFF));
    for (int i = 0; i < 8; i += i & 1 ? 3 : 1)
        tokbpe_exchange(&words[i], &words[i + 2], 16, UINT64_C(0x0000FFFF0000FFFF));
    for (int i = 0; i < 8; i += 2)
        tokbpe_exchange(&words[i], &words[i + 1], 8, UINT64_C(0x00FF00FF00FF00FF));
}

/* The masks of a block of text. */
TOKBPE_INLINE void tokbpe_words_look_up(const uint8_t *bytes, uint64_t *masks)
{
    for (int i = 0; i < 8; i++) {
        const uint8_t *eight = bytes + 8 * i;
        masks[i] = 0;
        for (int j = 0; j < 8; j++)
            masks[i] |= tokbpe_spread_text[eight[j]] << j;
    }
    tokbpe_turn(masks);
}

/* Add the classes of characters beyond ASCII. */
TOKBPE_INLINE void tokbpe_words_add_classes(tokbpe_block *block, uint64_t leads)
{
    uint64_t masks[8] = {0}; /* by the bits of TOKBPE_SPACE and so on */
    for (; leads; leads &= leads - 1) {
        int place = tokbpe_lowest_bit(leads);
        uint8_t flags;
        tokbpe_read_class(block->bytes + place, &flags);
        masks[place / 8] |= tokbpe_spread[flags] << place % 8;
    }
    tokbpe_turn(masks);
    block->spaces |= tokbpe_whole_characters(block, masks[0]);
    block->letters |= tokbpe_whole_characters(block, masks[1]);
    block->numbers |= tokbpe_whole_characters(block, masks[2]);
    block->upper |= tokbpe_whole_characters(block, masks[4]);
    block->lower |= tokbpe_whole_characters(block, masks[5]);
}

TOKBPE_INLINE tokbpe_block tokbpe_words_read(const uint8_t *bytes, int size)
{
    uint64_t inside = ~UINT64_C(0) >> (TOKBPE_BLOCK - size);
    uint64_t is[TOKBPE_MASKS], beyond_ascii;
    tokbpe_block block = {bytes, size, 0};
    if (size < TOKBPE_BLOCK) {
        uint8_t padded[TOKBPE_BLOCK] = {0};
        memcpy(padded, bytes, (size_t)size);
        tokbpe_words_look_up(padded, is);
    } else {
        tokbpe_words_look_up(bytes, is);
    }
    beyond_ascii = is[TOKBPE_IS_BEYOND];
    block.apostrophes = is[TOKBPE_IS_UPPER] & is[TOKBPE_IS_LOWER];
    block.upper = is[TOKBPE_IS_UPPER] & ~block.apostrophes;
    block.lower = is[TOKBPE_IS_LOWER] & ~block.apostrophes;
    block.letters = block.upper | block.lower;
    block.numbers = is[TOKBPE_IS_DIGIT];
    block.spaces = is[TOKBPE_IS_SPACE];
    block.blanks = is[TOKBPE_IS_BLANK];
    block.newlines = is[TOKBPE_IS_NEWLINE];
    block.slashes = is[TOKBPE_IS_SLASH] & ~beyond_ascii;
    if (beyond_ascii) {
        block.tails = is[TOKBPE_IS_SLASH] & beyond_ascii;
        tokbpe_words_add_classes(&block, beyond_ascii & ~block.tails);
    }
    block.others = inside & ~(block.letters | block.numbers | block.spaces);
    return block;
}

TOKBPE_INLINE int tokbpe_words_write(uint64_t bits, size_t base, size_t *places)
{
    int count = 0;
    for (; bits; bits &= bits - 1)
        places[count++] = base + (size_t)tokbpe_lowest_bit(bits);
    return count;
}

static size_t tokbpe_scan_words(
    int pattern, const uint8_t *data, size_t place, size_t end, size_t *ends, size_t most)
{
    return tokbpe_scan_pattern(
        tokbpe_words_read, tokbpe_words_write, pattern, data, place, end, ends, most);
}

#endif
