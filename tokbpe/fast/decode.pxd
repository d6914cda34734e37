"""What decoding looks up, for the other extensions."""

from libc.stdint cimport uint8_t, uint64_t


cdef class DecodingTable:
    """The bytes of each id; a sequence of bytes, None for a gap. It never changes."""

    cdef uint8_t *blob
    cdef uint64_t *ends  # by id, in the blob
    cdef uint8_t *known  # by id; 0 is a gap
    cdef size_t size  # the number of ids; beyond them stands what is unknown
    cdef object unknown

    cdef uint64_t start(self, size_t id) noexcept nogil
    cdef bint has(self, long long id) noexcept nogil
