"""What hashes are made with: each module that has some calls `set_seeds` when it is loaded."""

from libc.stdint cimport uint64_t

cdef extern from "hash.h" nogil:
    void tokbpe_set_seeds(uint64_t low, uint64_t high) noexcept


cdef inline int set_seeds() except -1:
    """Have hashes depend on what Python's own do: a secret of the process."""
    tokbpe_set_seeds(<uint64_t> <Py_hash_t> hash("low"), <uint64_t> <Py_hash_t> hash("high"))
    return 0
