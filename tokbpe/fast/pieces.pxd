"""A hash table of byte strings, as a plain struct with free functions.

The strings have numbers from 0 on. All are put in first, and only looked up from then on. The hash
is one that is known for the parts of a string too (hash.h), so that all ways to cut it in two are
looked up quickly.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from .memory cimport free, resized
from .pairs cimport NOT_FOUND

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte) noexcept
    uint64_t tokbpe_mixed(uint64_t hash) noexcept


cdef struct PieceSlot:
    uint32_t tag  # of the hash
    uint32_t number  # of the piece, plus 1; 0: the slot is free


cdef struct PieceIndex:
    uint8_t *bytes  # of all pieces, one after another
    size_t *starts  # of the pieces, by number, and of what is behind the last one
    size_t count
    PieceSlot *slots
    int bits  # there are 2**bits slots
    bint twins  # whether a piece was put in behind another of the same tag


cdef inline int open_piece_index(PieceIndex *index, size_t count, size_t byte_count) except -1:
    """Room for so many pieces and bytes, to be filled; 2**32 - 2 pieces at most."""
    cdef size_t slots
    index.count = count
    index.twins = False
    index.bits = 4
    while <size_t> 1 << index.bits < 2 * count:
        index.bits += 1
    slots = <size_t> 1 << index.bits
    index.bytes = <uint8_t *> resized(NULL, byte_count, 1)
    index.starts = <size_t *> resized(NULL, count + 1, sizeof(size_t))
    index.slots = <PieceSlot *> resized(NULL, slots, sizeof(PieceSlot))
    if index.bytes == NULL or index.starts == NULL or index.slots == NULL:
        raise MemoryError(f"no memory for a table of {count} pieces")
    memset(index.slots, 0, slots * sizeof(PieceSlot))
    return 0


cdef inline void close_piece_index(PieceIndex *index) noexcept nogil:
    free(index.bytes)
    free(index.starts)
    free(index.slots)
    memset(index, 0, sizeof(PieceIndex))


cdef inline size_t piece_size(const PieceIndex *index, size_t number) noexcept nogil:
    return index.starts[number + 1] - index.starts[number]


cdef inline uint64_t hash_of_piece(const uint8_t *piece, size_t size) noexcept nogil:
    cdef uint64_t hash = 0
    cdef size_t place
    for place in range(size):
        hash = tokbpe_hash_next(hash, piece[place])
    return hash


cdef inline PieceSlot *piece_slot(
    const PieceIndex *index, uint64_t hash, const uint8_t *piece, size_t size
) noexcept nogil:
    """Where the piece of this hash stands, or the free slot where it belongs."""
    cdef uint64_t mixed = tokbpe_mixed(hash)
    cdef uint32_t tag = <uint32_t> mixed
    cdef size_t mask = (<size_t> 1 << index.bits) - 1
    cdef size_t place = <size_t> (mixed >> (64 - index.bits))
    cdef size_t number
    while index.slots[place].number:
        if index.slots[place].tag == tag:
            number = index.slots[place].number - 1
            if (
                piece_size(index, number) == size
                and memcmp(index.bytes + index.starts[number], piece, size) == 0
            ):
                break
        place = (place + 1) & mask
    return &index.slots[place]


cdef inline uint32_t number_of_tag(const PieceIndex *index, uint64_t mixed) noexcept nogil:
    """The number of the first piece that has the tag of a mixed hash and may be the piece of this
    hash, NOT_FOUND if there is none. A piece finds itself, unless there are twins; what is no
    piece hardly ever finds one."""
    cdef uint32_t tag = <uint32_t> mixed
    cdef size_t mask = (<size_t> 1 << index.bits) - 1
    cdef size_t place = <size_t> (mixed >> (64 - index.bits))
    while index.slots[place].number and index.slots[place].tag != tag:
        place = (place + 1) & mask
    return index.slots[place].number - 1 if index.slots[place].number else NOT_FOUND


cdef inline bint add_piece(PieceIndex *index, size_t number) noexcept nogil:
    """Let a piece be found; False if an equal one is there already."""
    cdef const uint8_t *piece = index.bytes + index.starts[number]
    cdef size_t size = piece_size(index, number)
    cdef uint64_t hash = hash_of_piece(piece, size)
    cdef PieceSlot *slot = piece_slot(index, hash, piece, size)
    if slot.number:
        return False
    index.twins |= number_of_tag(index, tokbpe_mixed(hash)) != NOT_FOUND
    slot.number = <uint32_t> (number + 1)
    slot.tag = <uint32_t> tokbpe_mixed(hash)
    return True


cdef inline uint32_t number_of_piece(
    const PieceIndex *index, uint64_t hash, const uint8_t *piece, size_t size
) noexcept nogil:
    """The number of the piece of this hash, NOT_FOUND if there is none."""
    cdef const PieceSlot *slot = piece_slot(index, hash, piece, size)
    return slot.number - 1 if slot.number else NOT_FOUND
