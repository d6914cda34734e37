"""The pairs that merge, packed for the many look-ups of encoding, as a plain struct.

A slot holds both ids and the rank in eight bytes. In front of the slots stands a Bloom filter that
fits the cache of a core and turns most pairs away that do not merge.
"""

from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from .memory cimport resized
from .pairs cimport NOT_FOUND, PairTable

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_pair(uint64_t pair) noexcept


cdef enum:
    ID_BITS = 21
    RANK_BITS = 22
    FILTER_BITS = 20


cdef struct MergeTable:
    uint64_t *slots  # left, right and rank; UINT64_MAX: the slot is free
    int bits  # there are 2**bits slots, filled to half at most
    uint64_t *filter


cdef inline void close_merges(MergeTable *table) noexcept nogil:
    free(table.slots)
    free(table.filter)
    memset(table, 0, sizeof(MergeTable))


cdef inline bint open_merges(MergeTable *table, const PairTable *pairs) except -1 nogil:
    """Pack a table of pairs; False if its ids or ranks have too many bits."""
    cdef size_t i, place, count, mask
    cdef uint64_t pair, key, hash
    cdef uint32_t rank
    for i in range(<size_t> 1 << pairs.bits):
        pair = pairs.slots[i].pair
        if pair != UINT64_MAX and (
            pair >> 32 >= (<uint64_t> 1 << ID_BITS) - 1
            or <uint32_t> pair >= (<uint64_t> 1 << ID_BITS) - 1
            or pairs.slots[i].value >= <uint32_t> 1 << RANK_BITS
        ):
            return False
    table.bits = pairs.bits
    count = <size_t> 1 << table.bits
    table.slots = <uint64_t *> resized(NULL, count, sizeof(uint64_t))
    table.filter = <uint64_t *> calloc(<size_t> 1 << (FILTER_BITS - 6), sizeof(uint64_t))
    if table.slots == NULL or table.filter == NULL:
        close_merges(table)
        with gil:
            raise MemoryError(f"no memory for a table of {count} pairs")
    memset(table.slots, 0xFF, count * sizeof(uint64_t))
    mask = count - 1
    for i in range(count):
        pair = pairs.slots[i].pair
        if pair == UINT64_MAX:
            continue
        rank = pairs.slots[i].value
        hash = tokbpe_hash_pair(pair)
        key = (pair >> 32) << ID_BITS | <uint32_t> pair
        place = <size_t> (hash >> (64 - table.bits))
        while table.slots[place] != UINT64_MAX:
            place = (place + 1) & mask
        table.slots[place] = key << RANK_BITS | rank
        set_bit(table.filter, hash & 0xFFFFF)
        set_bit(table.filter, hash >> 20 & 0xFFFFF)
    return True


cdef inline void set_bit(uint64_t *filter, uint64_t bit) noexcept nogil:
    filter[bit >> 6] |= <uint64_t> 1 << (bit & 63)


cdef inline uint64_t bit_of(const uint64_t *filter, uint64_t bit) noexcept nogil:
    return filter[bit >> 6] >> (bit & 63)


cdef inline uint32_t find_merge(
    const MergeTable *table, uint32_t left, uint32_t right
) noexcept nogil:
    """The rank of a pair of ids, or NOT_FOUND."""
    cdef uint64_t hash = tokbpe_hash_pair((<uint64_t> left) << 32 | right)
    cdef uint64_t key, slot
    cdef size_t place, mask
    if not bit_of(table.filter, hash & 0xFFFFF) & bit_of(table.filter, hash >> 20 & 0xFFFFF) & 1:
        return NOT_FOUND
    key = (<uint64_t> left) << ID_BITS | right
    mask = (<size_t> 1 << table.bits) - 1
    place = <size_t> (hash >> (64 - table.bits))
    while True:
        slot = table.slots[place]
        if slot >> RANK_BITS == key:
            return <uint32_t> (slot & 0x3FFFFF)
        if slot == UINT64_MAX:
            return NOT_FOUND
        place = (place + 1) & mask
