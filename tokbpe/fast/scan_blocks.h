/* Scanning by blocks: 64 bytes become a bit mask for each class, and sums and shifts of the masks
 * tell where pieces end.
 *
 * A block begins where a piece begins. What is before it does not matter then: patterns do not
 * look back. Its last end that is sure is where the next block begins. A place at which more would
 * have to be known, such as what is behind the block, is not sure: the ends that it could change
 * are left out. A block without a sure end is left to `split.pyx`, which finds one piece exactly.
 *
 * Each byte of a character has the bit of the character's class. Functions are put into the loops
 * of each variant, to be compiled for its processors there. */
#ifndef TOKBPE_SCAN_BLOCKS_H
#define TOKBPE_SCAN_BLOCKS_H

#include "scan_classes.h"

#define TOKBPE_BLOCK 64

typedef struct {
    const uint8_t *bytes;
    int size;                                   /* the masks have no bits from here on */
    uint64_t tails;                             /* bytes that continue a character */
    uint64_t spaces, letters, numbers, others;  /* each byte is one of these */
    uint64_t upper, lower;                      /* letters and marks; many are both */
    uint64_t newlines;                          /* \r and \n */
    uint64_t blanks, apostrophes, slashes;      /* ' ', '\'' and '/' */
} tokbpe_block;

TOKBPE_INLINE uint64_t tokbpe_bits_below(int number)
{
    return (UINT64_C(1) << number) - 1;
}

TOKBPE_INLINE uint64_t tokbpe_bits_up_to(int number)
{
    return (UINT64_C(2) << number) - 1;
}

/* The first byte of each run. */
TOKBPE_INLINE uint64_t tokbpe_firsts(uint64_t runs)
{
    return runs & ~(runs << 1);
}

/* Where the last character of each run of white space begins; not of one that may go on behind
 * the block. A white space has three bytes at most. */
TOKBPE_INLINE uint64_t tokbpe_last_spaces(const tokbpe_block *block, uint64_t spaces)
{
    uint64_t lasts = spaces & ~(spaces >> 1) & tokbpe_bits_below(block->size - 1);
    for (int i = 0; i < 2 && block->tails; i++)
        lasts = (lasts & ~block->tails) | (lasts & block->tails) >> 1;
    return lasts;
}

/* All bytes of the characters that begin at the places given. */
TOKBPE_INLINE uint64_t tokbpe_whole_characters(const tokbpe_block *block, uint64_t places)
{
    for (int i = 0; i < 3 && block->tails; i++)
        places |= places << 1 & block->tails;
    return places;
}

/* Three numbers are a piece. */
TOKBPE_INLINE uint64_t tokbpe_threes(const tokbpe_block *block)
{
    uint64_t numbers = block->numbers, threes = 0;
    uint64_t firsts = tokbpe_firsts(numbers);
    uint64_t rest = numbers & ~block->tails;
    int place, length = 0;
    if (!(numbers & numbers << 1 & numbers << 2 & numbers << 3))
        return 0;
    for (; rest; rest &= rest - 1) {
        place = tokbpe_lowest_bit(rest);
        length = firsts >> place & 1 || length == 3 ? 1 : length + 1;
        if (length == 1)
            threes |= UINT64_C(1) << place;
    }
    return threes;
}

/* Where white space goes on behind its last line end: that is a piece of its own. */
TOKBPE_INLINE uint64_t tokbpe_indents(const tokbpe_block *block, uint64_t spaces)
{
    uint64_t runs = spaces & ~block->newlines;
    uint64_t indents = runs & block->newlines << 1;
    /* The sum carries through each run to where it ends: at another line end, for some. */
    uint64_t blank_lines = (runs + indents) & ~runs & block->newlines;
    for (; blank_lines; blank_lines &= blank_lines - 1) {
        uint64_t before = indents & tokbpe_bits_below(tokbpe_lowest_bit(blank_lines));
        indents ^= UINT64_C(1) << tokbpe_highest_bit(before);
    }
    return indents;
}

/* Ends of pieces with those of contractions such as 's, each of which begins at one of `places`.
 * An apostrophe at the end of the block is not sure. */
TOKBPE_INLINE uint64_t tokbpe_with_contractions(
    const tokbpe_block *block, uint64_t ends, uint64_t places, int any_case)
{
    for (; places; places &= places - 1) {
        int place = tokbpe_lowest_bit(places);
        const uint8_t *p = block->bytes + place;
        int size;
        if (place + 4 > block->size)
            return ends & tokbpe_bits_up_to(place);
        size = (int)(tokbpe_contraction_end(p, p + 3, any_case) - p);
        if (size) {
            ends &= ~(tokbpe_bits_below(size - 1) << 1 << place);
            ends |= UINT64_C(1) << (place + size);
        }
    }
    return ends;
}

/* The same where contractions belong to the word before them. */
TOKBPE_INLINE uint64_t tokbpe_with_endings(
    const tokbpe_block *block, uint64_t ends, uint64_t places)
{
    int done = 0; /* an apostrophe here stands behind a contraction, not behind a word */
    for (; places; places &= places - 1) {
        int place = tokbpe_lowest_bit(places);
        const uint8_t *p = block->bytes + place;
        int size;
        if (place == done)
            continue;
        if (place + 4 > block->size)
            return ends & tokbpe_bits_below(place);
        size = (int)(tokbpe_contraction_end(p, p + 3, 1) - p);
        if (size) {
            done = place + size;
            ends &= ~(tokbpe_bits_below(size) << place);
            ends |= UINT64_C(1) << done;
        }
    }
    return ends;
}

TOKBPE_INLINE uint64_t tokbpe_gpt2_ends(const tokbpe_block *block)
{
    uint64_t behind_blanks = block->blanks << 1;
    uint64_t others = tokbpe_firsts(block->others) & ~behind_blanks;
    uint64_t ends = (tokbpe_firsts(block->letters) | tokbpe_firsts(block->numbers)) &
                    ~behind_blanks;
    ends |= others | tokbpe_firsts(block->spaces) | tokbpe_last_spaces(block, block->spaces);
    return tokbpe_with_contractions(block, ends, others & block->apostrophes, 0);
}

/* What o200k has beside: words end where a capital follows a small letter, and with contractions.
 */
TOKBPE_INLINE uint64_t tokbpe_cased_ends(
    const tokbpe_block *block, uint64_t ends, uint64_t words, uint64_t others, uint64_t taken)
{
    uint64_t capitals = block->upper & ~block->lower;
    uint64_t smalls = block->lower & ~block->upper;
    uint64_t both = block->upper & block->lower;
    /* A capital behind a letter without case: what is behind it tells. A mark behind others may
     * be one of them, a slash behind line ends goes with these. */
    uint64_t unsure = (capitals & both << 1) | (words & block->others & others << 1) |
                      (block->slashes & taken << 1);
    ends |= capitals & smalls << 1;
    ends = tokbpe_with_endings(block, ends, block->apostrophes & words << 1);
    return unsure ? ends & tokbpe_bits_below(tokbpe_lowest_bit(unsure)) : ends;
}

/* For cl100k, llama3, qwen2 and o200k; for the last, marks are parts of words. */
TOKBPE_INLINE uint64_t tokbpe_cl100k_ends(const tokbpe_block *block, int pattern)
{
    uint64_t marks = pattern == TOKBPE_O200K ? block->others & (block->upper | block->lower) : 0;
    uint64_t words = block->letters | marks;
    uint64_t others = block->others & ~marks;
    /* Line ends behind a run of others belong to it. */
    uint64_t carried = block->newlines + (block->newlines & others << 1);
    uint64_t taken = (carried ^ block->newlines) & block->newlines;
    uint64_t spaces = block->spaces & ~taken;
    uint64_t before, sure;
    uint64_t first_others = tokbpe_firsts(others) & ~(block->blanks << 1);
    /* What is before a word belongs to it: one white space that is no line end, or one other. */
    uint64_t before_words = tokbpe_whole_characters(block, first_others) |
                            (spaces & ~block->newlines);
    uint64_t ends = tokbpe_firsts(words) & ~(before_words << 1);
    ends |= first_others | tokbpe_firsts(spaces) | tokbpe_indents(block, spaces);
    ends |= tokbpe_last_spaces(block, spaces) & ~block->newlines;
    if (pattern == TOKBPE_QWEN2)
        ends |= block->numbers & ~block->tails;
    else
        ends |= tokbpe_firsts(block->numbers) | tokbpe_threes(block);
    /* White space at the end of the block may go on to a line end. */
    before = ~spaces & ~UINT64_C(0) >> (TOKBPE_BLOCK - block->size);
    if (!before)
        return 0;
    sure = (UINT64_C(4) << tokbpe_highest_bit(before)) - 1;
    if (pattern != TOKBPE_O200K)
        return sure & tokbpe_with_contractions(block, ends, first_others & block->apostrophes, 1);
    return sure & tokbpe_cased_ends(block, ends, words, others, taken);
}

/* Where pieces end for sure, as bits above the lowest. */
TOKBPE_INLINE uint64_t tokbpe_block_ends(const tokbpe_block *block, int pattern)
{
    uint64_t ends = pattern == TOKBPE_GPT2 ? tokbpe_gpt2_ends(block)
                                           : tokbpe_cl100k_ends(block, pattern);
    return ends & ~UINT64_C(1);
}

/* Reads a block of 1 to 64 bytes. */
typedef tokbpe_block (*tokbpe_reader)(const uint8_t *bytes, int size);

/* Writes bits as places from `base` on; there is room for 64. Tells how many there are. */
typedef int (*tokbpe_writer)(uint64_t bits, size_t base, size_t *places);

/* Where there is less room. */
TOKBPE_INLINE size_t tokbpe_write_some(
    tokbpe_writer write, uint64_t bits, size_t base, size_t *places, size_t most)
{
    size_t written[TOKBPE_BLOCK];
    size_t count = (size_t)write(bits, base, written);
    if (count > most)
        count = most;
    memcpy(places, written, count * sizeof(size_t));
    return count;
}

/* The ends of pieces from data[place] on, `most` of them or fewer, as far as they are sure. */
TOKBPE_INLINE size_t tokbpe_scan_blocks(
    tokbpe_reader read, tokbpe_writer write, int pattern, const uint8_t *data, size_t place,
    size_t end, size_t *ends, size_t most)
{
    size_t count = 0;
    while (place < end && count < most) {
        size_t size = end - place < TOKBPE_BLOCK ? end - place : TOKBPE_BLOCK;
        tokbpe_block block = read(data + place, (int)size);
        uint64_t bits = tokbpe_block_ends(&block, pattern);
        if (!bits)
            break;
        if (most - count < TOKBPE_BLOCK)
            return count + tokbpe_write_some(write, bits, place, ends + count, most - count);
        count += (size_t)write(bits, place, ends + count);
        place += (size_t)tokbpe_highest_bit(bits);
    }
    return count;
}

/* The same with a loop for each pattern. */
TOKBPE_INLINE size_t tokbpe_scan_pattern(
    tokbpe_reader read, tokbpe_writer write, int pattern, const uint8_t *data, size_t place,
    size_t end, size_t *ends, size_t most)
{
    switch (pattern) {
    case TOKBPE_GPT2:
        return tokbpe_scan_blocks(read, write, TOKBPE_GPT2, data, place, end, ends, most);
    case TOKBPE_CL100K:
        return tokbpe_scan_blocks(read, write, TOKBPE_CL100K, data, place, end, ends, most);
    case TOKBPE_QWEN2:
        return tokbpe_scan_blocks(read, write, TOKBPE_QWEN2, data, place, end, ends, most);
    case TOKBPE_O200K:
        return tokbpe_scan_blocks(read, write, TOKBPE_O200K, data, place, end, ends, most);
    }
    return 0;
}

/* The classes of characters beyond ASCII, for each of their bytes; other bytes have any. */
TOKBPE_INLINE void tokbpe_classify(const uint8_t *bytes, uint64_t leads, uint8_t *found)
{
    for (; leads; leads &= leads - 1) {
        int place = tokbpe_lowest_bit(leads);
        uint8_t flags;
        uint32_t four;
        tokbpe_read_class(bytes + place, &flags);
        four = flags * UINT32_C(0x01010101);
        memcpy(found + place, &four, 4);
    }
}

/* Room for `tokbpe_classify`, which writes four bytes for each character. */
#define TOKBPE_CLASSIFIED (TOKBPE_BLOCK + 3)

#endif
