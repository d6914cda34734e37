"""Ids in memory of ours as NumPy arrays."""

from libc.stdint cimport uint16_t, uint32_t


cdef inline size_t size_of_id(bint narrow) noexcept nogil:
    return sizeof(uint16_t) if narrow else sizeof(uint32_t)


cdef object as_array(void **ids, size_t size, bint narrow)
cdef int check_narrow(const uint32_t *ids, size_t size) except -1 nogil
cdef void narrow_ids(
    uint16_t *out,  # OUT
    const uint32_t *ids,  # IN
    size_t size,
) noexcept nogil
