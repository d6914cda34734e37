"""Finding special tokens, for the other extensions."""

from libc.stdint cimport uint8_t, uint32_t

from .pairs cimport PairTable


cdef class SpecialTable:
    """The spellings of special tokens as a tree, in which each byte leads to a node. It never
    changes, so threads may share it."""

    cdef PairTable children  # node and byte -> node
    cdef uint32_t *ids  # by node; NOT_FOUND: no spelling ends here
    cdef size_t node_count, capacity
    cdef size_t longest  # spelling, in bytes
    cdef bint begins[256]  # whether a spelling begins with the byte
    cdef readonly dict spellings

    cdef uint32_t add_node(self) except? 0
    cdef int add(self, bytes spelling, uint32_t id) except -1
    cdef size_t match(self, const uint8_t *data, size_t size, uint32_t *id) noexcept nogil
    cdef size_t find(
        self, const uint8_t *data, size_t start, size_t size, size_t *length, uint32_t *id
    ) except? 0 nogil


cdef SpecialTable as_special_table(special)
