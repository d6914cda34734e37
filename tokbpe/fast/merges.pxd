"""The merges of a vocabulary, numbered for the many look-ups of encoding, as a plain struct.

A merge table can be made where every token that merging can yield has one way to come about, out
of tokens with lower numbers; nearly all vocabularies are so. Numbers rise with the ranks of the
merges, so that a number is rank and token at once. A slot holds two numbers and the third that they
merge to in eight bytes. In front of the slots stands a Bloom filter that fits the cache of a core
and turns most pairs away that do not merge.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from .memory cimport calloc, free, resized, tokbpe_zeroed
from .pairs cimport NOT_FOUND, make_pair

cdef extern from "merges.h" nogil:
    uint64_t tokbpe_merge_slot(uint32_t left, uint32_t right, uint32_t number) noexcept
    bint tokbpe_is_merge(uint64_t slot, uint32_t left, uint32_t right) noexcept
    uint32_t tokbpe_merged_number(uint64_t slot) noexcept
    uint64_t tokbpe_filter_bits(uint64_t hash) noexcept
    uint32_t tokbpe_joined_size(uint32_t left, uint32_t right) noexcept


cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_pair(uint64_t pair) noexcept


cdef enum:
    MOST_NUMBERS = 0x1FFFFF  # of 21 bits
    BYTE_PAIRS = 65536


# What a token is merged from; both NOT_FOUND: it is a symbol, or merging does not yield it.
cdef struct Halves:
    uint32_t left
    uint32_t right
    uint32_t size  # of the token, in symbols


cdef struct MergeTable:
    uint64_t *slots  # left, right and what they merge to; 0: the slot is free
    void *memory  # that the slots stand in
    int bits  # there are 2**bits slots, filled to half at most
    uint64_t *filter
    int filter_bits  # it has 2**filter_bits words
    size_t count  # of the numbers
    Halves *halves  # by number
    uint32_t *ids  # by number; NULL: the number is the id
    uint32_t[256] symbols  # the numbers of single bytes; NOT_FOUND: there is none
    bint all_bytes  # whether there is a number for each
    uint32_t *byte_merges  # what two single bytes merge to


cdef inline void close_merges(MergeTable *table) noexcept nogil:
    free(table.memory)
    free(table.filter)
    free(table.halves)
    free(table.ids)
    free(table.byte_merges)
    memset(table, 0, sizeof(MergeTable))


cdef inline int open_merges(MergeTable *table, size_t count, size_t most) except -1 nogil:
    """An empty table of `count` numbers and at most so many merges; `symbols` is to be filled."""
    cdef size_t number
    memset(table, 0, sizeof(MergeTable))
    table.count = count
    table.bits = 10
    while <size_t> 1 << table.bits < 2 * most:
        table.bits += 1
    # Ten bits for each merge and more: of the pairs that do not merge some 5 % pass.
    table.filter_bits = table.bits - 4
    table.slots = <uint64_t *> tokbpe_zeroed(
        <size_t> 1 << table.bits, sizeof(uint64_t), &table.memory)
    table.filter = <uint64_t *> calloc(<size_t> 1 << table.filter_bits, sizeof(uint64_t))
    table.halves = <Halves *> resized(NULL, count, sizeof(Halves))
    table.byte_merges = <uint32_t *> resized(NULL, BYTE_PAIRS, sizeof(uint32_t))
    if (
        table.slots == NULL
        or table.filter == NULL
        or table.halves == NULL
        or table.byte_merges == NULL
    ):
        close_merges(table)
        with gil:
            raise MemoryError(f"no memory for a table of {most} merges")
    for number in range(count):
        table.halves[number] = Halves(NOT_FOUND, NOT_FOUND, 1)
    memset(table.symbols, 0xFF, sizeof(table.symbols))
    memset(table.byte_merges, 0xFF, BYTE_PAIRS * sizeof(uint32_t))
    return 0


cdef inline bint is_merged(const MergeTable *table, uint32_t number) noexcept nogil:
    return table.halves[number].left != NOT_FOUND


cdef inline const uint64_t *first_slot(
    const MergeTable *table, uint32_t left, uint32_t right
) noexcept nogil:
    """Where the search for a merge begins."""
    return &table.slots[tokbpe_hash_pair(make_pair(left, right)) >> (64 - table.bits)]


cdef inline void put_merge(
    MergeTable *table, uint32_t left, uint32_t right, uint32_t number
) noexcept nogil:
    """Add a merge, which is not there yet."""
    cdef uint64_t hash = tokbpe_hash_pair(make_pair(left, right))
    cdef size_t mask = (<size_t> 1 << table.bits) - 1
    cdef size_t place = <size_t> (hash >> (64 - table.bits))
    while table.slots[place]:
        place = (place + 1) & mask
    table.slots[place] = tokbpe_merge_slot(left, right, number)
    table.filter[hash >> (64 - table.filter_bits)] |= tokbpe_filter_bits(hash)
    table.halves[number] = Halves(
        left, right, tokbpe_joined_size(table.halves[left].size, table.halves[right].size)
    )


cdef inline uint32_t find_merge(
    const MergeTable *table, uint32_t left, uint32_t right
) noexcept nogil:
    """What two numbers merge to, or NOT_FOUND."""
    cdef uint64_t hash = tokbpe_hash_pair(make_pair(left, right))
    cdef uint64_t wanted = tokbpe_filter_bits(hash)
    cdef size_t place, mask
    if table.filter[hash >> (64 - table.filter_bits)] & wanted != wanted:
        return NOT_FOUND
    mask = (<size_t> 1 << table.bits) - 1
    place = <size_t> (hash >> (64 - table.bits))
    while table.slots[place] and not tokbpe_is_merge(table.slots[place], left, right):
        place = (place + 1) & mask
    return tokbpe_merged_number(table.slots[place])


cdef inline void fill_byte_merges(MergeTable *table) noexcept nogil:
    """When all merges are there."""
    cdef size_t left, right
    table.all_bytes = True
    for left in range(256):
        table.all_bytes = table.all_bytes and table.symbols[left] != NOT_FOUND
        for right in range(256):
            if table.symbols[left] != NOT_FOUND and table.symbols[right] != NOT_FOUND:
                table.byte_merges[left << 8 | right] = find_merge(
                    table, table.symbols[left], table.symbols[right])


cdef inline bint stay_apart(
    const MergeTable *table, uint32_t left, uint32_t right
) noexcept nogil:
    """Whether the bytes of two tokens, each of which merging yields, are merged to just these two.

    Merging goes by rising numbers. Back from its end, the last merge is undone again and again:
    at no time must the two tokens that then stand at the border merge earlier than that.

    With (a, b) -> 3 and (b, c) -> 4: 3 and c stay apart, a and 4 do not.
    """
    cdef uint64_t limit = NOT_FOUND
    while True:
        if find_merge(table, left, right) < limit:
            return False
        if is_merged(table, left) and (left > right or not is_merged(table, right)):
            # Of equal merges the left one comes first: one at the border does not come before it.
            limit = left
            left = table.halves[left].right
        elif is_merged(table, right):
            limit = <uint64_t> right + 1
            right = table.halves[right].left
        else:
            return True
