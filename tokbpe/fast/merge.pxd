"""Merging the symbols of a piece, for the other extensions."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from .junctions cimport Junctions
from .table cimport EncodingTable


# A token of a long piece; dead tokens were merged into their left neighbor.
cdef struct Token:
    uint32_t id
    uint32_t previous
    uint32_t next


cdef class Merging:
    """The scratch memory that pieces are merged in. It belongs to one thread."""

    cdef EncodingTable table
    cdef readonly bint packed  # whether the table is warm and its merges have numbers
    cdef const Junctions *junctions  # of the table; NULL: not asked for, or there are none
    cdef bint uncut  # whether there can be none
    cdef bint by_bytes  # whether the pairs of the table are not listed yet
    cdef const uint8_t *piece  # that is merged, and the hashes of its beginnings
    cdef uint64_t *hashes
    cdef size_t hash_capacity
    cdef Token *tokens
    cdef size_t token_capacity
    cdef uint64_t *heap  # rank << 32 | place: the earliest learned first, then the leftmost
    cdef size_t heap_size
    cdef size_t heap_capacity

    cdef void begin(self) noexcept
    cdef size_t merged(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil
    cdef size_t merged_part(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil
    cdef size_t part_end(self, const uint8_t *piece, size_t start, size_t size) noexcept nogil
    cdef size_t read_bytes(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil
    cdef size_t merge_bytes(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil
    cdef size_t merge_windows(
        self, const uint8_t *piece, size_t size, uint32_t *numbers
    ) except 0 nogil
    cdef size_t merge_one_window(
        self, const uint8_t *bytes, size_t size, uint32_t *numbers
    ) except 0 nogil
    cdef int read_hashes(self, const uint8_t *piece, size_t size) except -1 nogil
    cdef uint32_t rank_of(
        self, uint32_t left, uint32_t right, size_t start, size_t end
    ) noexcept nogil
    cdef uint32_t merged_id(self, uint32_t rank) noexcept nogil
    cdef uint32_t merge_short(self, uint32_t *ids, uint32_t size) noexcept nogil
    cdef uint32_t rank_at(self, uint32_t place, uint32_t right, size_t size) noexcept nogil
    cdef size_t merge_long(self, uint32_t *ids, size_t size) except 0 nogil
    cdef int offer(self, uint32_t place, size_t size) except -1 nogil
    cdef void drop_first(self) noexcept nogil
