"""Decoding, compiled: the twin of `decode` in `tokbpe.reference`.

The bytes of all ids lie in one blob. Ids are read and checked first, in their order, so that the
size of the result is known before its bytes are copied, which is done without the GIL.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from tokbpe import arguments, tables

from .memory cimport free, reserve, resized

cdef extern from "Python.h":
    bint PyLong_CheckExact(object)
    long long PyLong_AsLongLongAndOverflow(object, int *overflow) except? -1

# How many ids are worked on between two looks for signals.
cdef enum:
    SLICE = 1000000


@cython.final
cdef class DecodingTable:

    def __cinit__(self, vocabulary, unknown=None):
        cdef size_t total = 0
        cdef size_t end = 0
        cdef size_t entry, id
        found = tables.decoding_table(vocabulary, unknown).pieces
        self.size = len(found)
        self.unknown = unknown
        if isinstance(found, tables.SparsePieces):
            self.ids = <uint32_t *> resized(NULL, len(found.pieces), sizeof(uint32_t))
            if self.ids == NULL:
                raise MemoryError(f"no memory for a vocabulary of {len(found.pieces)} pieces")
            for entry, id in enumerate(found.pieces):
                self.ids[entry] = <uint32_t> id
            found = found.pieces.values()
        # One more entry: what stands for an id that is none.
        pieces = (*found, unknown)
        self.count = len(pieces) - 1
        for piece in pieces:
            if piece is not None:
                total += PyBytes_GET_SIZE(piece)
        self.blob = <uint8_t *> resized(NULL, total, 1)
        self.ends = <uint64_t *> resized(NULL, len(pieces), sizeof(uint64_t))
        self.known = <uint8_t *> resized(NULL, len(pieces), 1)
        if self.blob == NULL or self.ends == NULL or self.known == NULL:
            raise MemoryError(f"no memory for a vocabulary of {self.size} ids")
        for entry, piece in enumerate(pieces):
            self.known[entry] = piece is not None
            if piece is not None:
                memcpy(self.blob + end, PyBytes_AS_STRING(piece), PyBytes_GET_SIZE(piece))
                end += PyBytes_GET_SIZE(piece)
            self.ends[entry] = end

    def __dealloc__(self):
        free(self.blob)
        free(self.ids)
        free(self.ends)
        free(self.known)

    def __len__(self):
        return self.size

    def __getitem__(self, id):
        cdef size_t entry
        number = arguments.as_index(id)
        if number is None or not 0 <= number < self.size:
            raise IndexError(f"{id!r} is no id of a table of {self.size}")
        entry = self.entry(number)
        if entry == self.count:
            return None
        return (<const char *> self.blob)[self.start(entry) : self.ends[entry]]

    cdef inline uint64_t start(self, size_t entry) noexcept nogil:
        return self.ends[entry - 1] if entry else 0

    cdef inline size_t entry(self, long long id) noexcept nogil:
        """Where an id stands; behind all others if it has no piece."""
        if id < 0 or <size_t> id >= self.size:
            return self.count
        if self.ids != NULL:
            return self.found(<uint32_t> id)
        return <size_t> id if self.known[<size_t> id] else self.count

    cdef size_t found(self, uint32_t id) noexcept nogil:
        """Where an id stands among some that rise."""
        cdef size_t first = 0
        cdef size_t last = self.count
        cdef size_t middle
        while first < last:
            middle = first + (last - first) // 2
            if self.ids[middle] < id:
                first = middle + 1
            else:
                last = middle
        return first if first < self.count and self.ids[first] == id else self.count


@cython.final
cdef class IdBuffer:
    """Where ids that were read stand in a table."""

    cdef uint32_t *ids
    cdef size_t size
    cdef size_t capacity

    def __dealloc__(self):
        free(self.ids)

    cdef int append(self, uint32_t id) except -1 nogil:
        reserve(<void **> &self.ids, &self.capacity, self.size + 1, sizeof(uint32_t))
        self.ids[self.size] = id
        self.size += 1
        return 0

    cdef int read_values(self, values, DecodingTable table) except -1:
        """Read any iterable of whole numbers."""
        cdef int overflow = 0
        cdef long long id
        cdef size_t entry
        for value in arguments.ids(values):
            if self.size % SLICE == SLICE - 1:
                PyErr_CheckSignals()
            id = -1
            if PyLong_CheckExact(value):
                id = PyLong_AsLongLongAndOverflow(value, &overflow)
            entry = table.entry(id)
            if entry == table.count:
                entry = self.other_entry(value, table)
            self.append(<uint32_t> entry)
        return 0

    cdef int read_array(self, values, DecodingTable table) except -1:
        """Read an array of whole numbers; not as a whole, for it may be copied."""
        cdef size_t count = len(values)
        reserve(<void **> &self.ids, &self.capacity, count, sizeof(uint32_t))
        while self.size < count:
            part = values[self.size : self.size + <size_t> SLICE]
            self.read_part(np.ascontiguousarray(part, np.int64), table)
            PyErr_CheckSignals()
        return 0

    cdef int read_part(self, const long long[::1] values, DecodingTable table) except -1:
        """Read an array of signed 64-bit numbers, for which there is room."""
        cdef size_t count = values.shape[0]
        cdef size_t entry
        cdef size_t i = 0
        while i < count:
            with nogil:
                while i < count:
                    entry = table.entry(values[i])
                    if entry == table.count:
                        break
                    self.ids[self.size] = <uint32_t> entry
                    self.size += 1
                    i += 1
            if i < count:
                self.append(self.other_entry(values[i], table))
                i += 1
        return 0

    cdef uint32_t other_entry(self, value, DecodingTable table) except? 0:
        """Where the id stands that a whole number of another type means, or what is unknown."""
        id = arguments.as_index(value)
        arguments.known_piece(value if id is None else id, self.size, table, table.unknown)
        return <uint32_t> (table.entry(id) if 0 <= id < table.size else table.count)


def decoding_table(vocabulary, unknown=None):
    """Prepare `decode`: the twin of `tokbpe.tables.decoding_table`."""
    return DecodingTable(vocabulary, unknown)


def decode(ids, DecodingTable table not None):
    """The bytes of ids, joined (point 11).

    The twin of `tokbpe.reference.decode`. Arrays are read without the GIL.
    """
    cdef IdBuffer buffer = IdBuffer()
    cdef size_t total, end
    cdef size_t done = 0
    cdef uint8_t *out
    # A masked array, say, is more than its numbers: it is read value by value.
    if type(ids) in (np.ndarray, np.memmap) and ids.ndim == 1 and fits_int64(ids.dtype):
        buffer.read_array(ids, table)
    else:
        buffer.read_values(ids, table)
    with nogil:
        total = total_size(buffer, table)
    data = PyBytes_FromStringAndSize(NULL, total)
    out = <uint8_t *> PyBytes_AS_STRING(data)
    while done < buffer.size:
        end = min(buffer.size, done + SLICE)
        with nogil:
            out = copy_pieces(out, buffer.ids + done, end - done, table)
        done = end
        PyErr_CheckSignals()
    return data


cdef bint fits_int64(dtype):
    return dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8)


cdef size_t total_size(IdBuffer buffer, DecodingTable table) noexcept nogil:
    cdef size_t total = 0
    cdef size_t i
    for i in range(buffer.size):
        total += table.ends[buffer.ids[i]] - table.start(buffer.ids[i])
    return total


cdef uint8_t *copy_pieces(
    uint8_t *out,  # OUT
    const uint32_t *ids,  # IN
    size_t count,
    DecodingTable table,
) noexcept nogil:
    """Write the pieces; returns where they end."""
    cdef size_t i, size
    cdef uint64_t start
    for i in range(count):
        start = table.start(ids[i])
        size = table.ends[ids[i]] - start
        memcpy(out, table.blob + start, size)
        out += size
    return out
