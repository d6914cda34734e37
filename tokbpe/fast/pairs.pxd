"""A hash table from a pair of ids to a 32-bit value, as a plain struct with free functions.

A pair is one 64-bit key, `left << 32 | right`. Open addressing with linear probing, filled to
half at most. Looking up from several threads is safe while nobody inserts.
"""

from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t

from .memory cimport free, resized

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_pair(uint64_t pair) noexcept


cdef struct PairSlot:
    uint64_t pair  # NO_PAIR: the slot is free
    uint32_t value


cdef struct PairTable:
    PairSlot *slots
    size_t used
    int bits  # there are 2**bits slots


cdef extern from *:
    """
    #define TOKBPE_NOT_FOUND UINT32_C(0xFFFFFFFF)
    """
    const uint32_t NOT_FOUND "TOKBPE_NOT_FOUND"  # no table holds this value


cdef inline uint64_t make_pair(uint32_t left, uint32_t right) noexcept nogil:
    return (<uint64_t> left) << 32 | right


cdef inline PairSlot *pair_slot(const PairTable *table, uint64_t pair) noexcept nogil:
    """Where the pair stands, or the free slot where it belongs."""
    cdef size_t mask = (<size_t> 1 << table.bits) - 1
    cdef size_t place = <size_t> (tokbpe_hash_pair(pair) >> (64 - table.bits))
    while table.slots[place].pair != pair and table.slots[place].pair != UINT64_MAX:
        place = (place + 1) & mask
    return &table.slots[place]


cdef inline uint32_t find_pair(const PairTable *table, uint64_t pair) noexcept nogil:
    """The value of a pair, or NOT_FOUND."""
    cdef const PairSlot *slot = pair_slot(table, pair)
    return slot.value if slot.pair == pair else NOT_FOUND


cdef inline int open_pair_table(PairTable *table, int bits) except -1 nogil:
    """An empty table of 2**bits slots."""
    cdef size_t slots = <size_t> 1 << bits
    cdef size_t i
    table.slots = <PairSlot *> resized(NULL, slots, sizeof(PairSlot))
    if table.slots == NULL:
        with gil:
            raise MemoryError(f"no memory for a table of {slots} pairs")
    table.used = 0
    table.bits = bits
    for i in range(slots):
        table.slots[i].pair = UINT64_MAX
    return 0


cdef inline void close_pair_table(PairTable *table) noexcept nogil:
    free(table.slots)
    table.slots = NULL


cdef inline int double_pair_table(PairTable *table) except -1 nogil:
    cdef PairTable larger
    cdef size_t i
    open_pair_table(&larger, table.bits + 1)
    for i in range(<size_t> 1 << table.bits):
        if table.slots[i].pair != UINT64_MAX:
            pair_slot(&larger, table.slots[i].pair)[0] = table.slots[i]
    larger.used = table.used
    close_pair_table(table)
    table[0] = larger
    return 0


cdef inline uint32_t *put_pair(PairTable *table, uint64_t pair, uint32_t value) except NULL nogil:
    """Where the value of a pair stands; a new pair gets `value`."""
    cdef PairSlot *slot = pair_slot(table, pair)
    if slot.pair == pair:
        return &slot.value
    if 2 * (table.used + 1) > <size_t> 1 << table.bits:
        double_pair_table(table)
        slot = pair_slot(table, pair)
    slot.pair = pair
    slot.value = value
    table.used += 1
    return &slot.value
