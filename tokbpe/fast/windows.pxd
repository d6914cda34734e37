"""Merging few bytes by a merge table: up to sixteen, or up to a window's.

The key of a token holds the number that it and its right neighbor merge to and, below that, its
place. So the least of the keys tells the next merge, the leftmost of equal ones, and where it is.
Keys do not move, those of tokens that are gone are the highest, and the least of sixteen is found
without a branch; in a window there are sixteen times sixteen of them, with the least of each
sixteen beside.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from .merges cimport MergeTable, find_merge
from .pairs cimport NOT_FOUND

cdef extern from "bits.h" nogil:
    uint32_t tokbpe_lowest_bit(uint32_t word) noexcept
    uint32_t tokbpe_highest_bit(uint32_t word) noexcept
    uint32_t tokbpe_bits_above(uint32_t word, uint32_t bit) noexcept
    uint32_t tokbpe_bits_below(uint32_t word, uint32_t bit) noexcept
    uint32_t tokbpe_merge_key(uint32_t number, uint32_t place_bits, uint32_t place) noexcept
    uint32_t tokbpe_least_of_8(const uint32_t *keys) noexcept
    uint32_t tokbpe_least_of_16(const uint32_t *keys) noexcept


cdef enum:
    FEW_BYTES = 16
    WINDOW = 256  # bytes, in blocks of 16
    BLOCKS = 16
    PLACE_BITS = 4  # of the key in FEW_BYTES
    WINDOW_BITS = 8
    FEW_DONE = 0xFFFFFFF0  # keys from here on stand for no merge
    WINDOW_DONE = 0xFFFFFF00


cdef inline size_t merge_few(
    const MergeTable *merges,
    const uint8_t *bytes,  # IN
    size_t size,  # 2 .. FEW_BYTES; all bytes have symbols
    uint32_t *merged,  # OUT
) noexcept nogil:
    """The tokens that some bytes are merged to; how many."""
    cdef uint32_t[FEW_BYTES] keys
    cdef uint32_t[FEW_BYTES] tokens
    cdef uint32_t i, place, right, token, above, below
    cdef uint32_t starts = <uint32_t> 0x1FFFF >> (FEW_BYTES - size)  # of tokens, and the end
    cdef uint32_t end = <uint32_t> size
    cdef size_t count = 0
    memset(keys, 0xFF, sizeof(keys))
    for i in range(end - 1):
        keys[i] = tokbpe_merge_key(
            merges.byte_merges[<size_t> bytes[i] << 8 | bytes[i + 1]], PLACE_BITS, i)
        tokens[i] = merges.symbols[bytes[i]]
    tokens[end - 1] = merges.symbols[bytes[end - 1]]
    while True:
        token = tokbpe_least_of_8(keys) if end <= 9 else tokbpe_least_of_16(keys)
        if token >= <uint32_t> FEW_DONE:
            break
        place = token & (FEW_BYTES - 1)
        token >>= PLACE_BITS
        right = tokbpe_lowest_bit(tokbpe_bits_above(starts, place))
        starts ^= <uint32_t> 1 << right
        tokens[place] = token
        keys[right] = NOT_FOUND
        above = tokbpe_lowest_bit(tokbpe_bits_above(starts, place))
        keys[place] = NOT_FOUND
        if above < end:
            keys[place] = tokbpe_merge_key(
                find_merge(merges, token, tokens[above]), PLACE_BITS, place)
        below = tokbpe_bits_below(starts, place)
        if below:
            below = tokbpe_highest_bit(below)
            keys[below] = tokbpe_merge_key(
                find_merge(merges, tokens[below], token), PLACE_BITS, below)
    starts ^= <uint32_t> 1 << end
    while starts:
        merged[count] = tokens[tokbpe_lowest_bit(starts)]
        starts &= starts - 1
        count += 1
    return count


cdef inline size_t merge_window(
    const MergeTable *merges,
    const uint8_t *bytes,  # IN
    size_t size,  # 2 .. WINDOW; all bytes have symbols
    uint32_t *tokens,  # OUT
) noexcept nogil:
    """The tokens that the bytes of a window are merged to; how many."""
    cdef uint32_t[WINDOW] keys
    cdef uint32_t[BLOCKS] least
    cdef uint16_t[WINDOW + 1] after  # where the token behind begins
    cdef uint16_t[WINDOW + 1] before  # where the token in front begins
    cdef uint32_t i, place, right, token, above, below
    cdef uint32_t end = <uint32_t> size
    cdef size_t count = 0
    memset(keys, 0xFF, (size + 15) // 16 * 16 * sizeof(uint32_t))
    memset(least, 0xFF, sizeof(least))
    for i in range(end):
        tokens[i] = merges.symbols[bytes[i]]
        after[i] = <uint16_t> (i + 1)
        before[i + 1] = <uint16_t> i
    for i in range(end - 1):
        keys[i] = tokbpe_merge_key(
            merges.byte_merges[<size_t> bytes[i] << 8 | bytes[i + 1]], WINDOW_BITS, i)
    for i in range(0, end, 16):
        least[i // 16] = tokbpe_least_of_16(keys + i)
    while True:
        token = tokbpe_least_of_16(least)
        if token >= <uint32_t> WINDOW_DONE:
            break
        place = token & (WINDOW - 1)
        token >>= WINDOW_BITS
        right = after[place]
        above = after[right]
        tokens[place] = token
        keys[right] = NOT_FOUND
        after[place] = <uint16_t> above
        before[above] = <uint16_t> place
        keys[place] = NOT_FOUND
        if above < end:
            keys[place] = tokbpe_merge_key(
                find_merge(merges, token, tokens[above]), WINDOW_BITS, place)
        if place:
            below = before[place]
            keys[below] = tokbpe_merge_key(
                find_merge(merges, tokens[below], token), WINDOW_BITS, below)
            if below // 16 != place // 16:
                least[below // 16] = tokbpe_least_of_16(keys + below // 16 * 16)
        if right // 16 != place // 16:
            least[right // 16] = tokbpe_least_of_16(keys + right // 16 * 16)
        least[place // 16] = tokbpe_least_of_16(keys + place // 16 * 16)
    i = 0
    while i < end:
        tokens[count] = tokens[i]
        count += 1
        i = after[i]
    return count
