/* Patterns, and the classes of characters that they tell apart. `split.pyx` fills in the tables at
 * its import. They are its own: another module that includes this has tables of its own. */
#ifndef TOKBPE_SCAN_CLASSES_H
#define TOKBPE_SCAN_CLASSES_H

#include "scan.h"

/* The patterns that are scanned by blocks. */
enum { TOKBPE_NONE, TOKBPE_GPT2, TOKBPE_CL100K, TOKBPE_QWEN2, TOKBPE_O200K };

/* Each character is one of the first four; marks are OTHER. */
enum {
    TOKBPE_SPACE = 1,
    TOKBPE_LETTER = 2,
    TOKBPE_NUMBER = 4,
    TOKBPE_OTHER = 8,
    TOKBPE_UPPER = 16,   /* Lu, Lt, Lm, Lo, M */
    TOKBPE_LOWER = 32,   /* Ll, Lm, Lo, M */
    TOKBPE_NEWLINE = 64, /* \r and \n */
    TOKBPE_BREAK = 128   /* between words */
};

/* By code point. Only read once they are filled in. */
static uint8_t tokbpe_classes[0x110000];
static uint8_t tokbpe_deepseek_classes[0x110000];

/* What a table has for the UTF-8 character at p; where the next one begins. */
TOKBPE_INLINE const uint8_t *tokbpe_read_from(
    const uint8_t *table, const uint8_t *p, uint8_t *found)
{
    uint32_t lead = p[0];
    if (lead < 0x80) {
        *found = table[lead];
        return p + 1;
    }
    if (lead < 0xE0) {
        *found = table[(lead & 0x1F) << 6 | (p[1] & 0x3F)];
        return p + 2;
    }
    if (lead < 0xF0) {
        *found = table[(lead & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F)];
        return p + 3;
    }
    *found = table[(lead & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 |
                     (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F)];
    return p + 4;
}

TOKBPE_INLINE const uint8_t *tokbpe_read_class(const uint8_t *p, uint8_t *found)
{
    return tokbpe_read_from(tokbpe_classes, p, found);
}

TOKBPE_INLINE const uint8_t *tokbpe_read_deepseek(const uint8_t *p, uint8_t *found)
{
    return tokbpe_read_from(tokbpe_deepseek_classes, p, found);
}

/* Where the characters of some classes end. */
static inline const uint8_t *tokbpe_run_end(
    const uint8_t *p, const uint8_t *end, uint8_t classes)
{
    while (p < end) {
        uint8_t found;
        const uint8_t *after = tokbpe_read_class(p, &found);
        if (!(found & classes))
            break;
        p = after;
    }
    return p;
}

TOKBPE_INLINE const uint8_t *tokbpe_letters_end(const uint8_t *p, const uint8_t *end)
{
    p = tokbpe_ascii_run_end(p, end, 0x20, 'a', 'z');
    return p == end || *p < 0x80 ? p : tokbpe_run_end(p, end, TOKBPE_LETTER);
}

#endif
