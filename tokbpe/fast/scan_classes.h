/* Patterns, and the classes of characters that they tell apart. `split.pyx` fills the tables in when
 * it is imported. They are its alone: each module that includes this has tables of its own. */
#ifndef TOKBPE_SCAN_CLASSES_H
#define TOKBPE_SCAN_CLASSES_H

#include <stdint.h>

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

#endif
