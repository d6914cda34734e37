from libc.stdint cimport int64_t, uint8_t, uint64_t

from .cells cimport Corpus


cdef class Sequences:
    """Sequences of base ids one after another, and their weights, all of them checked."""

    cdef const uint8_t *symbols  # each of `width` bytes: 1, 2 or 4
    cdef int width
    cdef const uint64_t *ends
    cdef const int64_t *weights  # NULL: each sequence counts once
    cdef size_t count, symbol_count
    cdef size_t cells  # that they need: their symbols, where there are pairs, and separators
    cdef int64_t places  # of all pairs, by weight
    cdef size_t most_cells
    cdef object owners  # of the memory
    # Memory of our own, for what came as Python objects.
    cdef void *own_symbols
    cdef uint64_t *own_ends
    cdef int64_t *own_weights
    cdef size_t symbol_capacity, end_capacity, weight_capacity

    cdef int read_rows(self, rows, weights, list strings) except -1
    cdef int check_rows(self, rows, weights, list strings) except -1
    cdef Py_ssize_t first_wrong(
        self, size_t row, size_t last, const uint8_t *allowed, size_t base) noexcept nogil
    cdef int read_lists(self, list rows, list counts, list strings) except -1
    cdef int add_row(self, size_t index, size_t size, int64_t weight) except -1
    cdef bint has_room(self, size_t size, int64_t weight) noexcept nogil

    cdef int fill(self, Corpus *corpus, bint narrow, bint keep_order) except -1
    cdef int fill_in_order(self, Corpus *corpus) except -1
    cdef int fill_by_weight(self, Corpus *corpus) except -1
    cdef size_t copy_row(
        self, Corpus *corpus, size_t start, size_t end, size_t place) noexcept nogil
