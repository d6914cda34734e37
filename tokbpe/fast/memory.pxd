"""Growing C arrays, whose sizes are checked (a failure is a MemoryError); looking for Ctrl-C."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport SIZE_MAX

cdef extern from "allocations.h" nogil:
    void *malloc "tokbpe_malloc" (size_t size) noexcept
    void *calloc "tokbpe_calloc" (size_t count, size_t size) noexcept
    void *realloc "tokbpe_realloc" (void *memory, size_t size) noexcept
    void free "tokbpe_free" (void *memory) noexcept


cdef extern from "traceback.h":
    pass


cdef extern from "memory.h" nogil:
    void tokbpe_prefetch(const void *address) noexcept
    void tokbpe_large_pages(void *memory, size_t size) noexcept
    void *tokbpe_zeroed(size_t count, size_t size, void **memory) noexcept


cdef inline void *resized(void *memory, size_t count, size_t size) noexcept nogil:
    """`memory` resized to `count` items of `size` bytes; NULL, and nothing changed, on failure."""
    if count > SIZE_MAX // size:
        return NULL
    return realloc(memory, count * size if count else size)


cdef inline void *allocated(size_t count, size_t size) except NULL nogil:
    """Memory for `count` items of `size` bytes."""
    cdef void *memory = resized(NULL, count, size)
    if memory == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} items of {size} bytes")
    return memory


cdef inline int reserve(
    void **memory, size_t *capacity, size_t needed, size_t size
) except -1 nogil:
    """Make room for `needed` items of `size` bytes, growing by half at least."""
    cdef size_t wanted
    cdef void *grown
    if needed <= capacity[0]:
        return 0
    wanted = capacity[0] + capacity[0] // 2 + 64
    if wanted < needed:
        wanted = needed
    grown = resized(memory[0], wanted, size)
    if grown == NULL:
        with gil:
            raise MemoryError(f"no memory for {wanted} items of {size} bytes")
    memory[0] = grown
    capacity[0] = wanted
    return 0


# How many steps are made between two looks for signals: some milliseconds.
cdef enum:
    STEPS_WITHOUT_SIGNALS = 1000000


cdef inline size_t look_for_signals(size_t steps) except 0 nogil:
    """One step more; every so many steps a look for signals."""
    if steps % STEPS_WITHOUT_SIGNALS == STEPS_WITHOUT_SIGNALS - 1:
        with gil:
            PyErr_CheckSignals()
    return steps + 1
