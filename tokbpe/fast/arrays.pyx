"""Ids in memory of ours as NumPy arrays, which own it from then on."""

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from .memory cimport free, resized

# Larger arrays keep the memory that the ids were made in; smaller ones are copied.
cdef enum:
    COPIED_IDS = 4096


@cython.final
cdef class Ids:
    """Memory with ids, which an array stands on."""

    cdef void *ids
    cdef bint narrow
    cdef Py_ssize_t[1] shape, strides

    def __dealloc__(self):
        free(self.ids)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        self.strides[0] = size_of_id(self.narrow)
        buffer.buf = self.ids
        buffer.format = b"H" if self.narrow else b"I"
        buffer.internal = NULL
        buffer.itemsize = self.strides[0]
        buffer.len = self.shape[0] * self.strides[0]
        buffer.ndim = 1
        buffer.obj = self
        buffer.readonly = False
        buffer.shape = self.shape
        buffer.strides = self.strides
        buffer.suboffsets = NULL


cdef object as_array(void **ids, size_t size, bint narrow):
    """An array of ids; it takes their memory over, or copies them."""
    cdef Ids owner
    cdef uint8_t[::1] view
    cdef void *shrunk
    if size <= COPIED_IDS:
        array = np.empty(size, np.uint16 if narrow else np.uint32)
        if size:
            view = array.view(np.uint8)
            memcpy(&view[0], ids[0], size * size_of_id(narrow))
        return array
    owner = Ids()  # first of all: without memory for it, nothing is to be changed
    shrunk = resized(ids[0], size, size_of_id(narrow))
    owner.narrow = narrow
    owner.ids = ids[0] if shrunk == NULL else shrunk
    owner.shape[0] = size
    ids[0] = NULL
    # Where memory lacks for a view, `np.asarray` would make an array of one object out of it.
    return np.frombuffer(owner, np.uint16 if narrow else np.uint32)


cdef int check_narrow(const uint32_t *ids, size_t size) except -1 nogil:
    """ValueError for an id that 16 bits do not hold."""
    cdef size_t i
    cdef uint32_t any_of = 0
    for i in range(size):
        any_of |= ids[i]
    if any_of >> 16:
        for i in range(size):
            if ids[i] >> 16:
                with gil:
                    raise ValueError(
                        f"id {ids[i]} is too large for uint16, which holds 0 to 65535")
    return 0


cdef void narrow_ids(
    uint16_t *out,  # OUT
    const uint32_t *ids,  # IN
    size_t size,
) noexcept nogil:
    cdef size_t i
    for i in range(size):
        out[i] = <uint16_t> ids[i]
