"""A table of pieces that is counted into, for the other extensions."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from .count_table cimport CountSlot, CountTable
from .encode cimport Document
from .groups cimport Groups
from .special cimport SpecialSearch
from .split cimport Scanner
from .words cimport tokbpe_key

# How many pieces are worked on together.
cdef enum:
    CHUNK = 512


# Pieces that are worked on together: data[starts[i]:ends[i]].
cdef struct Chunk:
    size_t[CHUNK] starts
    size_t[CHUNK] ends
    tokbpe_key[CHUNK] keys
    size_t[CHUNK] places  # in the table


cdef class PieceTable:
    cdef CountTable table
    cdef Chunk chunk
    cdef int kind
    cdef SpecialSearch search  # None: there are no special tokens
    cdef Groups counting  # what it is working for, and on which group
    cdef size_t group
    cdef size_t number  # among the tables of the threads
    cdef size_t document  # its index in the corpus
    cdef size_t unpaused  # bytes since the last look for signals
    cdef size_t needed  # bytes, at most, until the next one
    cdef readonly size_t longest  # the size of the longest piece
    cdef readonly size_t longest_document  # the first that has it
    cdef size_t memory_bytes
    cdef readonly object about

    cdef int add_document(self, const Document *document) except -1 nogil
    cdef int add_part(self, const Document *document, size_t first, size_t last) except -1 nogil
    cdef int go_on(self, size_t bytes) except -1 nogil
    cdef int pause(self) except -1
    cdef bint add_chunk(self, Scanner *scanner) except -1 nogil
    cdef size_t find_pieces(self, Scanner *scanner) noexcept nogil
    cdef int add_pieces(
        self,
        const uint8_t *data,
        size_t size,
        size_t count,
        const int64_t *counts,  # NULL: each counts once
    ) except -1 nogil
    cdef int add_count(self, CountSlot *slot, int64_t count) except -1 nogil
    cdef bytes piece(self, size_t number)
    cdef int add_piece(self, bytes piece) except -1
    cdef int write_counts(self, int64_t[::1] counts) except -1
    cdef int prepare(self, PieceTable other) except -1
    cdef int add_all(self, PieceTable other, const int64_t *counts) except -1
    cdef int check_memory(self, size_t pieces, size_t bytes) except -1
    cdef int add_run(
        self,
        PieceTable other,
        const int64_t[::1] counts,  # IN: of all its pieces
        size_t first,
        size_t last,
    ) except -1
    cdef int add_flat(
        self,
        const uint8_t *data,
        size_t size,
        const uint64_t *ends,
        const int64_t *counts,
        size_t first,
        size_t last,
    ) except -1
