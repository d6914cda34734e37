"""Where no token can stand across: between two characters that no merge joins.

A merge joins the end of its left half to the beginning of its right half, and what it joins is what
stands in the text. So a place can be crossed only if some merge has, at this border, the bytes that
stand in the text on both sides. Looked at are, in this order,

- the byte in front and the byte behind, in a table of all pairs of bytes;
- the character in front and the character behind, in a Bloom filter of such pairs: one that is
  found by chance only leaves a part longer than it could be. A half may be shorter than the
  character that stands there, so that only a part of the character is known: where some merge
  joins such halves at these two bytes, the parts of the characters are looked up as well.

Nothing here needs the text to be UTF-8: where no two characters meet, nothing is cut but for the
two bytes' sake.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from .memory cimport calloc, free
from .merges cimport MergeTable, is_merged
from .pairs cimport NOT_FOUND, make_pair

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_pair(uint64_t pair) noexcept

cdef extern from "merges.h" nogil:
    uint64_t tokbpe_filter_bits(uint64_t hash) noexcept


cdef enum:
    LONGEST_CHARACTER = 4
    JOINED = 1  # some merge joins these two bytes
    IN_PARTS = 2  # and has a half that is shorter than a character
    FILTER_WORDS = 16384


cdef struct Junctions:
    uint8_t[65536] bytes  # by the byte in front << 8 | the byte behind: JOINED, IN_PARTS
    uint64_t[FILTER_WORDS] characters  # a Bloom filter of what merges join


# A character in UTF-8.
cdef struct Character:
    uint32_t bytes  # the first one is the highest
    size_t size


# Up to four bytes at an end of a token.
cdef struct End:
    uint8_t[LONGEST_CHARACTER] bytes
    uint8_t size


cdef inline size_t character_size(uint8_t first) noexcept nogil:
    """How many bytes a character has that begins with this one; 0 if none does."""
    if first < 0x80:
        return 1
    if first < 0xC0:
        return 0
    return 2 + (first >= 0xE0) + (first >= 0xF0)


cdef inline bint is_inner(uint8_t byte) noexcept nogil:
    return byte & 0xC0 == 0x80


cdef inline uint32_t packed_bytes(const uint8_t *bytes, size_t size) noexcept nogil:
    cdef uint32_t packed = 0
    cdef size_t i
    for i in range(size):
        packed = packed << 8 | bytes[i]
    return packed


cdef inline Character first_character(const uint8_t *bytes, size_t size) noexcept nogil:
    """The character at a place, of size 0 if there is none, or not all of it."""
    cdef Character found = Character(bytes[0], character_size(bytes[0]))
    cdef size_t i
    if found.size > size:
        return Character(0, 0)
    for i in range(1, found.size):
        if not is_inner(bytes[i]):
            return Character(0, 0)
        found.bytes = found.bytes << 8 | bytes[i]
    return found


cdef inline size_t last_size(const uint8_t *end, size_t size) noexcept nogil:
    """Of the character in front of a place, the size; 0 if there is none, or not all of it."""
    cdef size_t width
    for width in range(1, min(size, <size_t> LONGEST_CHARACTER) + 1):
        if not is_inner((end - width)[0]):
            return width if character_size((end - width)[0]) == width else 0
    return 0


cdef inline Junctions *make_junctions(
    const MergeTable *merges,
    bint *is_refused,  # OUT
) noexcept nogil:
    """What the merges join; NULL without memory, and where a symbol stands for several bytes, which
    is refused."""
    cdef Junctions *junctions = <Junctions *> calloc(1, sizeof(Junctions))
    cdef End *heads = <End *> calloc(merges.count, sizeof(End))
    cdef End *tails = <End *> calloc(merges.count, sizeof(End))
    cdef bint has_memory = junctions != NULL and heads != NULL and tails != NULL
    cdef size_t number
    cdef uint32_t left, right
    is_refused[0] = has_memory and not read_symbols(merges, heads, tails)
    if is_refused[0] or not has_memory:
        free(junctions)
        junctions = NULL
    else:
        for number in range(merges.count):
            left = merges.halves[number].left
            right = merges.halves[number].right
            if is_merged(merges, <uint32_t> number):
                add_junction(junctions, &tails[left], &heads[right])
                heads[number] = joined_heads(heads[left], &heads[right])
                tails[number] = joined_tails(&tails[left], tails[right])
    free(heads)
    free(tails)
    return junctions


cdef inline bint read_symbols(const MergeTable *merges, End *heads, End *tails) noexcept nogil:
    cdef size_t byte
    cdef uint32_t number
    for byte in range(256):
        number = merges.symbols[byte]
        if number == NOT_FOUND:
            continue
        if heads[number].size:
            return False
        heads[number].bytes[0] = <uint8_t> byte
        heads[number].size = 1
        tails[number] = heads[number]
    return True


cdef inline End joined_heads(End left, const End *right) noexcept nogil:
    """The beginning of two tokens."""
    cdef size_t i
    for i in range(right.size):
        if left.size < LONGEST_CHARACTER:
            left.bytes[left.size] = right.bytes[i]
            left.size += 1
    return left


cdef inline End joined_tails(const End *left, End right) noexcept nogil:
    """The end of two tokens."""
    cdef End joined
    cdef size_t i
    cdef size_t kept = min(<size_t> LONGEST_CHARACTER - right.size, <size_t> left.size)
    joined.size = <uint8_t> (kept + right.size)
    for i in range(kept):
        joined.bytes[i] = left.bytes[left.size - kept + i]
    for i in range(right.size):
        joined.bytes[kept + i] = right.bytes[i]
    return joined


cdef inline void add_junction(
    Junctions *junctions, const End *tail, const End *head
) noexcept nogil:
    cdef size_t before = last_size(tail.bytes + tail.size, tail.size)
    cdef Character behind = first_character(head.bytes, head.size)
    cdef size_t border = <size_t> tail.bytes[tail.size - 1] << 8 | head.bytes[0]
    junctions.bytes[border] |= JOINED
    if is_inner(head.bytes[0]):
        return  # no character begins there
    if not (before and behind.size):
        # Of a half that is shorter than a character all is known.
        junctions.bytes[border] |= IN_PARTS
    add_characters(
        junctions,
        packed_bytes(tail.bytes + tail.size - (before or tail.size), before or tail.size),
        behind.bytes if behind.size else packed_bytes(head.bytes, head.size),
    )


cdef inline void add_characters(
    Junctions *junctions, uint32_t before, uint32_t behind
) noexcept nogil:
    cdef uint64_t hash = tokbpe_hash_pair(make_pair(before, behind))
    junctions.characters[hash >> 50] |= tokbpe_filter_bits(hash)


cdef inline bint has_characters(
    const Junctions *junctions, uint32_t before, uint32_t behind
) noexcept nogil:
    cdef uint64_t hash = tokbpe_hash_pair(make_pair(before, behind))
    cdef uint64_t wanted = tokbpe_filter_bits(hash)
    return junctions.characters[hash >> 50] & wanted == wanted


cdef inline bint is_crossed(
    const Junctions *junctions, Character before, Character behind
) noexcept nogil:
    """Whether a merge may join two neighbors, or parts of them, or more than them."""
    cdef uint32_t first = behind.bytes >> 8 * (behind.size - 1)
    cdef uint8_t kind = junctions.bytes[(before.bytes & 0xFF) << 8 | first]
    if kind == 0:
        return False
    if before.size == 1 and behind.size == 1:
        return True
    if has_characters(junctions, before.bytes, behind.bytes):
        return True
    return kind & IN_PARTS and is_crossed_in_parts(junctions, before, behind)


cdef inline bint is_crossed_in_parts(
    const Junctions *junctions, Character before, Character behind
) noexcept nogil:
    cdef size_t i, k
    for i in range(1, before.size + 1):
        for k in range(behind.size):
            if has_characters(
                junctions,
                before.bytes & <uint32_t> 0xFFFFFFFF >> 8 * (LONGEST_CHARACTER - i),
                behind.bytes >> 8 * k,
            ):
                return True
    return False


cdef inline size_t end_of_part(
    const Junctions *junctions, const uint8_t *piece, size_t start, size_t size
) noexcept nogil:
    """The next place behind `start` that no token stands across, or `size`."""
    cdef size_t place = start
    cdef size_t next
    cdef Character behind
    cdef Character before = first_character(piece + place, size - place)
    while place < size:
        next = place + max(before.size, <size_t> 1)
        if next >= size:
            break
        behind = first_character(piece + next, size - next)
        if before.size and behind.size:
            if not is_crossed(junctions, before, behind):
                return next
        elif junctions.bytes[<size_t> piece[next - 1] << 8 | piece[next]] == 0:
            return next
        place = next
        before = behind
    return size
