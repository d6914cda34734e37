/* Bytes as numbers. */
#ifndef TOKBPE_BYTES_H
#define TOKBPE_BYTES_H

#include <stdint.h>
#include <string.h>

/* Eight bytes, the first one lowest. */
static inline uint64_t tokbpe_eight(const uint8_t *p)
{
    uint64_t eight;
    memcpy(&eight, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    return eight;
}

#endif
