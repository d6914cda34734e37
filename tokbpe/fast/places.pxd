"""The pairs that can still be merged in this generation, and the places where they stand.

A list of places is made in one go, in rising order, and never changed: whether a pair still
stands in one of its places, the cells tell. The lists lie one behind another in blocks of
memory, which are freed all at once. The pairs are a hash table: open addressing, linear probing,
filled to half at most.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from .memory cimport allocated, free, tokbpe_large_pages, tokbpe_zeroed
from .pairs cimport tokbpe_hash_pair


cdef struct Pair:
    uint64_t pair
    int64_t count
    uint32_t *places  # of the left token's first cell
    uint32_t size  # 0: the slot is free
    uint32_t first  # places before this one are known to be gone


cdef struct Pairs:
    Pair *slots
    void *memory
    size_t used
    int bits  # there are 2**bits slots


# A block of lists; its places stand behind it.
cdef struct Block:
    Block *previous
    size_t size, used


# How many places a block has at least.
cdef enum:
    BLOCK_PLACES = 131072


cdef inline int open_pairs(Pairs *table, size_t pairs) except -1 nogil:
    """An empty table with room for so many pairs."""
    cdef int bits = 4
    while (<size_t> 1 << bits) < 2 * pairs:
        bits += 1
    table.slots = <Pair *> tokbpe_zeroed(<size_t> 1 << bits, sizeof(Pair), &table.memory)
    if table.slots == NULL:
        with gil:
            raise MemoryError(f"no memory for a table of {pairs} pairs")
    table.used = 0
    table.bits = bits
    return 0


cdef inline void close_pairs(Pairs *table) noexcept nogil:
    free(table.memory)
    table.memory = NULL
    table.slots = NULL


cdef inline Pair *home_of(const Pairs *table, uint64_t pair) noexcept nogil:
    """The slot where the search for a pair begins."""
    return &table.slots[<size_t> (tokbpe_hash_pair(pair) >> (64 - table.bits))]


cdef inline Pair *slot_of(const Pairs *table, uint64_t pair) noexcept nogil:
    """The slot of a pair, or the free one where it belongs."""
    cdef Pair *slot = home_of(table, pair)
    cdef Pair *end = table.slots + (<size_t> 1 << table.bits)
    while slot.size and slot.pair != pair:
        slot += 1
        if slot == end:
            slot = table.slots
    return slot


cdef inline int put(Pairs *table, const Pair *pair) except -1 nogil:
    """Add a pair that is not there yet."""
    cdef Pairs larger
    cdef size_t i
    if 2 * (table.used + 1) > <size_t> 1 << table.bits:
        open_pairs(&larger, <size_t> 1 << table.bits)
        for i in range(<size_t> 1 << table.bits):
            if table.slots[i].size:
                slot_of(&larger, table.slots[i].pair)[0] = table.slots[i]
        larger.used = table.used
        close_pairs(table)
        table[0] = larger
    slot_of(table, pair.pair)[0] = pair[0]
    table.used += 1
    return 0


cdef inline uint32_t *new_places(Block **blocks, size_t size) except NULL nogil:
    """Room for a list of places."""
    cdef Block *block = blocks[0]
    cdef Block *own
    cdef uint32_t *places
    if block == NULL or block.size - block.used < size:
        own = new_block(max(size, <size_t> BLOCK_PLACES))
        if block == NULL or own.size - size > block.size - block.used:
            own.previous = block
            blocks[0] = own
        else:  # what is left of the block is more than a long list leaves of its own
            own.previous = block.previous
            block.previous = own
        block = own
    places = <uint32_t *> (block + 1) + block.used
    block.used += size
    return places


cdef inline Block *new_block(size_t size) except NULL nogil:
    cdef size_t head = sizeof(Block) // sizeof(uint32_t)
    cdef Block *block = <Block *> allocated(size + head, sizeof(uint32_t))
    tokbpe_large_pages(block, (size + head) * sizeof(uint32_t))
    block.previous = NULL
    block.size = size
    block.used = 0
    return block


cdef inline void free_places(Block **blocks) noexcept nogil:
    cdef Block *block
    while blocks[0] != NULL:
        block = blocks[0]
        blocks[0] = block.previous
        free(block)
