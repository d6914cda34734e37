"""A table of pieces with their counts, as a plain struct with free functions.

Open addressing with linear probing, filled to three quarters at most, in 32-byte slots, two in a
cache line.
The key of a piece of up to 15 bytes is the piece itself; that of a longer one is a hash, which its
bytes have to confirm. The bytes of all pieces stand one after another in the order of their first
appearance.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from .memory cimport free, reserve, tokbpe_zeroed
from .words cimport (
    LONG,
    SHORT_WORD,
    tokbpe_key,
    tokbpe_key_hash,
    tokbpe_long_key,
    tokbpe_word_key,
)


cdef struct CountSlot:
    tokbpe_key key  # high == 0: the slot is free
    int64_t count
    size_t number  # in the order of first appearance


cdef struct CountTable:
    CountSlot *slots
    void *memory  # that the slots stand in
    int bits  # there are 2**bits slots
    size_t count  # of pieces
    uint8_t *bytes
    size_t size, capacity  # of the bytes
    uint64_t *ends  # of the pieces in the bytes
    size_t end_capacity


cdef inline int open_counts(CountTable *table, int bits) except -1 nogil:
    """An empty table of 2**bits slots."""
    memset(table, 0, sizeof(CountTable))
    return renew_slots(table, bits)


cdef inline void close_counts(CountTable *table) noexcept nogil:
    free(table.memory)
    free(table.bytes)
    free(table.ends)
    memset(table, 0, sizeof(CountTable))


cdef inline size_t counts_size(const CountTable *table, size_t more) noexcept nogil:
    """How many bytes a table takes, at most, while so many pieces more are put into it."""
    cdef size_t size = table.capacity + table.end_capacity * sizeof(uint64_t)
    cdef int bits = bits_for(table, more)
    if bits > table.bits:
        size += sizeof(CountSlot) << bits
    return size + (sizeof(CountSlot) << table.bits)


cdef inline int bits_for(const CountTable *table, size_t more) noexcept nogil:
    """So many slots hold so many pieces more, as a power of two."""
    cdef int bits = table.bits
    while table.count + more > (<size_t> 3 << bits) // 4:
        bits += 1
    return bits


cdef inline tokbpe_key piece_key(
    const uint8_t *data, size_t start, size_t size, size_t data_size
) noexcept nogil:
    """The key of a piece of one byte or more."""
    if size <= SHORT_WORD:
        return tokbpe_word_key(data, start, size, data_size, size)
    return tokbpe_long_key(data + start, size, LONG)


cdef inline size_t piece_place(const CountTable *table, tokbpe_key key) noexcept nogil:
    """Where the search for a piece begins. Larger tables have them in the same order."""
    return <size_t> (tokbpe_key_hash(key) >> (64 - table.bits))


cdef inline CountSlot *piece_slot(
    const CountTable *table, tokbpe_key key, size_t place, const uint8_t *piece
) noexcept nogil:
    """Where a piece stands, or the free slot where it belongs."""
    cdef size_t mask = (<size_t> 1 << table.bits) - 1
    cdef CountSlot *slot = &table.slots[place]
    while slot.key.high and not (
        slot.key.low == key.low
        and slot.key.high == key.high
        and (key.high >> 56 < <uint64_t> LONG or has_bytes(table, slot, piece))
    ):
        place = (place + 1) & mask
        slot = &table.slots[place]
    return slot


cdef inline bint has_bytes(
    const CountTable *table, const CountSlot *slot, const uint8_t *piece
) noexcept nogil:
    """Whether the long piece of a slot is this one, which has the same size."""
    cdef size_t start = piece_start(table, slot.number)
    return memcmp(table.bytes + start, piece, <size_t> table.ends[slot.number] - start) == 0


cdef inline size_t piece_start(const CountTable *table, size_t number) noexcept nogil:
    return <size_t> table.ends[number - 1] if number else 0


cdef inline int put_piece(
    CountTable *table, CountSlot *slot, tokbpe_key key, const uint8_t *piece, size_t size
) except -1 nogil:
    """Fill a free slot with a piece that is new; its count is 0. There must be room."""
    reserve(<void **> &table.bytes, &table.capacity, table.size + size, 1)
    reserve(
        <void **> &table.ends, &table.end_capacity, table.count + 1, sizeof(uint64_t))
    memcpy(table.bytes + table.size, piece, size)
    table.size += size
    table.ends[table.count] = table.size
    slot.key = key
    slot.count = 0
    slot.number = table.count
    table.count += 1
    return 0


cdef inline int make_room(CountTable *table, size_t more) except -1 nogil:
    """Have room for so many pieces more. Places that are known are no longer right then."""
    cdef int bits = bits_for(table, more)
    if bits > table.bits:
        renew_slots(table, bits)
    return 0


cdef inline int renew_slots(CountTable *table, int bits) except -1 nogil:
    """Give the pieces 2**bits slots."""
    cdef CountTable larger
    cdef CountSlot *slot
    cdef size_t i, place
    cdef size_t size = <size_t> 1 << table.bits if table.slots else 0
    cdef size_t mask = (<size_t> 1 << bits) - 1
    larger = table[0]
    larger.bits = bits
    larger.slots = <CountSlot *> tokbpe_zeroed(
        <size_t> 1 << bits, sizeof(CountSlot), &larger.memory)
    if larger.slots == NULL:
        with gil:
            raise MemoryError(f"no memory for a table of 2**{bits} pieces")
    for i in range(size):
        slot = &table.slots[i]
        if slot.key.high:
            # All pieces differ, so that they need not be compared.
            place = piece_place(&larger, slot.key)
            while larger.slots[place].key.high:
                place = (place + 1) & mask
            larger.slots[place] = slot[0]
    free(table.memory)
    table[0] = larger
    return 0
