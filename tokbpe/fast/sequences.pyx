"""What training is given: sequences and weights of any kind, checked, as flat memory.

`Rows` and arrays of weights are read as they stand, with nothing done for a row in Python. All
else is brought into that form. The checks, and their order, are those of
`arguments.training_rows`: where a loop without Python finds something wrong, the functions of
`arguments` are called for this row, so that each message exists once.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

import numpy as np

from tokbpe import arguments
from tokbpe.rows import Rows

from .cells cimport SEPARATOR, Cell, Corpus, Run, open_cells
from .memory cimport allocated, free, reserve

ctypedef fused Symbol:
    uint8_t
    uint16_t
    uint32_t

# So many rows are gone through between two looks for signals.
cdef enum:
    ROWS_AT_ONCE = 65536

# Rows that weigh less are put beside others of their weight.
cdef enum:
    WEIGHT_CLASSES = 4096


@cython.final
cdef class Sequences:
    def __cinit__(self, sequences, weights, list strings, size_t most_cells):
        self.most_cells = most_cells
        self.cells = 1  # the separator before all
        if type(sequences) is Rows and (weights is None or is_number_array(weights)):
            self.read_rows(sequences, weights, strings)
        else:
            rows, counts = arguments.training_lists(sequences, weights)
            self.read_lists(rows, None if weights is None else counts, strings)

    def __dealloc__(self):
        free(self.own_symbols)
        free(self.own_ends)
        free(self.own_weights)

    # Arrays.

    cdef int read_rows(self, rows, weights, list strings) except -1:
        cdef const uint64_t[::1] ends = np.ascontiguousarray(rows.ends, np.uint64)
        cdef const int64_t[::1] numbers
        cdef const uint8_t[::1] symbols = np.ascontiguousarray(
            rows.symbols, rows.symbols.dtype.newbyteorder("=")).view(np.uint8)
        self.owners = [ends, symbols]
        self.count = ends.shape[0]
        self.width = rows.symbols.itemsize
        self.symbol_count = rows.symbols.size
        if symbols.shape[0]:
            self.symbols = &symbols[0]
        if self.count:
            self.ends = &ends[0]
        if weights is not None:
            arguments.check_weight_count(self.count, len(weights))
            # Numbers above 2**63 - 1 look negative, and are refused as those are.
            wide = np.int64 if weights.dtype.kind == "i" else np.uint64
            numbers = np.ascontiguousarray(weights, wide).view(np.int64)
            self.owners.append(numbers)
            if self.count:
                self.weights = &numbers[0]
        return self.check_rows(rows, weights, strings)

    cdef int check_rows(self, rows, weights, list strings) except -1:
        cdef size_t base = len(strings)
        cdef size_t row = 0
        cdef size_t last
        cdef Py_ssize_t wrong
        cdef const uint8_t[::1] allowed = np.array([len(string) > 0 for string in strings] or [0],
                                                   np.uint8)
        cdef const uint8_t *is_symbol = &allowed[0]
        if self.width == 1 and base >= 256 and all(strings[:256]):
            is_symbol = NULL
        while row < self.count:
            last = min(row + ROWS_AT_ONCE, self.count)
            with nogil:
                wrong = self.first_wrong(row, last, is_symbol, base)
            if wrong >= 0:
                self.refuse(rows, weights, strings, wrong)
            PyErr_CheckSignals()
            row = last
        return 0

    cdef Py_ssize_t first_wrong(
        self, size_t row, size_t last, const uint8_t *allowed, size_t base
    ) noexcept nogil:
        """The first row that has a fault, or for which there is no room; -1: there is none."""
        cdef size_t start = self.ends[row - 1] if row else 0
        cdef size_t end
        cdef int64_t weight = 1
        while row < last:
            end = self.ends[row]
            if end < start or end > self.symbol_count:
                return row
            if self.weights != NULL:
                weight = self.weights[row]
                if weight < 1:
                    return row
            if allowed != NULL and not (
                are_symbols[uint8_t](self.symbols, start, end, allowed, base) if self.width == 1
                else are_symbols[uint16_t](
                    <const uint16_t *> self.symbols, start, end, allowed, base)
                if self.width == 2
                else are_symbols[uint32_t](
                    <const uint32_t *> self.symbols, start, end, allowed, base)
            ):
                return row
            if not self.has_room(end - start, weight):
                return row
            start = end
            row += 1
        return -1

    def refuse(self, rows, weights, strings, size_t row):
        """Raise what is wrong with a row."""
        Rows(rows.symbols, rows.ends)  # which looks at its own arrays
        if weights is not None:
            arguments.sequence_weight(weights[row], row)
        arguments.sequence_symbols(rows[row], row, strings)
        self.add_row(row, len(rows[row]), self.weights[row] if self.weights != NULL else 1)

    # Python objects.

    cdef int read_lists(self, list rows, list counts, list strings) except -1:
        cdef bint any_byte = len(strings) >= 256 and all(strings[:256])
        cdef bint all_bytes = any_byte and all(type(row) is bytes for row in rows)
        cdef size_t index
        cdef int64_t weight = 1
        cdef uint32_t *symbols
        self.width = 1 if all_bytes else 4
        self.count = len(rows)
        reserve(<void **> &self.own_ends, &self.end_capacity, self.count, sizeof(uint64_t))
        if counts is not None:
            reserve(<void **> &self.own_weights, &self.weight_capacity, self.count,
                    sizeof(int64_t))
        for index in range(self.count):
            if counts is not None:
                weight = arguments.sequence_weight(counts[index], index)
                self.own_weights[index] = weight
            row = rows[index]
            if not (any_byte and type(row) is bytes):
                row = arguments.sequence_symbols(row, index, strings)
            self.add_row(index, len(row), weight)
            if not all_bytes:
                reserve(&self.own_symbols, &self.symbol_capacity,
                        self.symbol_count + <size_t> len(row), sizeof(uint32_t))
                symbols = <uint32_t *> self.own_symbols + self.symbol_count
                for symbol in row:
                    symbols[0] = symbol
                    symbols += 1
            self.symbol_count += len(row)
            self.own_ends[index] = self.symbol_count
            if index % ROWS_AT_ONCE == 0:
                PyErr_CheckSignals()
        if all_bytes:
            self.owners = b"".join(rows)  # which of a single one makes no copy
            self.symbols = <const uint8_t *> PyBytes_AS_STRING(self.owners)
        else:
            self.symbols = <const uint8_t *> self.own_symbols
        self.ends = self.own_ends
        self.weights = self.own_weights
        return 0

    cdef int add_row(self, size_t index, size_t size, int64_t weight) except -1:
        """Take a row up, or say why it cannot be."""
        if self.has_room(size, weight):
            return 0
        if weight > (INT64_MAX - self.places) // <int64_t> (size - 1):
            raise arguments.counts_overflow(index)
        raise ValueError(
            f"with sequence {index} the corpus has more than {self.most_cells} symbols, "
            "the most that the fast engine trains on"
        )

    cdef bint has_room(self, size_t size, int64_t weight) noexcept nogil:
        """Take a row up, if the counts and the positions can be told with it."""
        if size < 2:
            return True
        if size >= self.most_cells - self.cells:
            return False
        if weight > (INT64_MAX - self.places) // <int64_t> (size - 1):
            return False
        self.places += weight * <int64_t> (size - 1)
        self.cells += size + 1
        return True

    # Cells.

    cdef int fill(self, Corpus *corpus, bint narrow, bint keep_order) except -1:
        """Make a corpus of the sequences, without those in which there are no pairs."""
        open_cells(corpus, self.cells, narrow)
        if narrow:
            corpus.narrow[0] = <uint16_t> SEPARATOR
        else:
            corpus.wide[0] = SEPARATOR
        if keep_order or self.weights == NULL:
            return self.fill_in_order(corpus)
        return self.fill_by_weight(corpus)

    cdef int fill_in_order(self, Corpus *corpus) except -1:
        cdef size_t start = 0
        cdef size_t place = 1
        cdef size_t row
        cdef int64_t weight = 1
        for row in range(self.count):
            if self.ends[row] - start >= 2:
                place = self.copy_row(corpus, start, self.ends[row], place)
                if self.weights != NULL:
                    weight = self.weights[row]
                extend_runs(corpus, place, weight)
            start = self.ends[row]
            if row % ROWS_AT_ONCE == 0:
                PyErr_CheckSignals()
        return 0

    cdef int fill_by_weight(self, Corpus *corpus) except -1:
        """Bring rows of equal weight together, the heavy ones, which have few equals, apart."""
        cdef size_t *places = <size_t *> allocated(WEIGHT_CLASSES, sizeof(size_t))
        cdef size_t start = 0
        cdef size_t place = 1
        cdef size_t row, kind, size
        try:
            for kind in range(<size_t> WEIGHT_CLASSES):
                places[kind] = 0
            for row in range(self.count):
                size = self.ends[row] - start
                start = self.ends[row]
                if size >= 2:
                    places[weight_class(self.weights[row])] += size + 1
            for kind in range(<size_t> WEIGHT_CLASSES):
                size = places[kind]
                places[kind] = place
                place += size
            start = 0
            for row in range(self.count):
                if self.ends[row] - start >= 2:
                    kind = weight_class(self.weights[row])
                    places[kind] = self.copy_row(corpus, start, self.ends[row], places[kind])
                    if kind == 0:
                        extend_runs(corpus, places[0], self.weights[row])
                start = self.ends[row]
                if row % ROWS_AT_ONCE == 0:
                    PyErr_CheckSignals()
            for kind in range(1, <size_t> WEIGHT_CLASSES):
                if places[kind] > places[kind - 1]:
                    extend_runs(corpus, places[kind], kind)
        finally:
            free(places)
        return 0

    cdef size_t copy_row(
        self, Corpus *corpus, size_t start, size_t end, size_t place
    ) noexcept nogil:
        """Write a row and the separator behind it; the place behind both."""
        if corpus.narrow != NULL:
            return copy_symbols(self.symbols, self.width, start, end, corpus.narrow, place)
        return copy_symbols(self.symbols, self.width, start, end, corpus.wide, place)


cdef inline size_t weight_class(int64_t weight) noexcept nogil:
    return <size_t> weight if weight < WEIGHT_CLASSES else 0


cdef int extend_runs(Corpus *corpus, size_t end, int64_t weight) except -1 nogil:
    """Rows of this weight reach from the end of the last run to `end`."""
    if corpus.run_count and corpus.runs[corpus.run_count - 1].weight == weight:
        corpus.runs[corpus.run_count - 1].end = <uint32_t> end
        return 0
    reserve(<void **> &corpus.runs, &corpus.run_capacity, corpus.run_count + 1, sizeof(Run))
    corpus.runs[corpus.run_count] = Run(<uint32_t> end, weight)
    corpus.run_count += 1
    return 0


cdef size_t copy_symbols(
    const uint8_t *symbols, int width, size_t start, size_t end, Cell *cells, size_t place
) noexcept nogil:
    if width == 1:
        copy_as_cells(symbols + start, end - start, cells + place)
    elif width == 2:
        copy_as_cells(<const uint16_t *> symbols + start, end - start, cells + place)
    else:
        copy_as_cells(<const uint32_t *> symbols + start, end - start, cells + place)
    place += end - start
    cells[place] = <Cell> SEPARATOR
    return place + 1


cdef void copy_as_cells(const Symbol *symbols, size_t size, Cell *cells) noexcept nogil:
    cdef size_t i
    for i in range(size):
        cells[i] = <Cell> symbols[i]


cdef bint is_number_array(weights):
    return type(weights) is np.ndarray and weights.ndim == 1 and weights.dtype.kind in "iu"


cdef bint are_symbols(
    const Symbol *symbols, size_t start, size_t end, const uint8_t *allowed, size_t base
) noexcept nogil:
    cdef size_t i
    for i in range(start, end):
        if symbols[i] >= base or not allowed[symbols[i]]:
            return False
    return True
