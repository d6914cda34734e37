"""What decoding looks up, for the other extensions."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef class DecodingTable:
    """The bytes of each id; a sequence of bytes, None for a gap. It never changes."""

    cdef uint8_t *blob
    cdef uint64_t *ends  # by entry, in the blob
    cdef uint8_t *known  # by entry; 0 is a gap
    cdef uint32_t *ids  # by entry, rising; NULL: entries are ids
    cdef size_t size  # the number of ids
    cdef size_t count  # of entries; beyond them stands what is unknown
    cdef object unknown

    cdef uint64_t start(self, size_t entry) noexcept nogil
    cdef size_t entry(self, long long id) noexcept nogil
    cdef size_t found(self, uint32_t id) noexcept nogil
