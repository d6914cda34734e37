"""Finding special tokens, for the other extensions.

    cdef SpecialSearch search = SpecialSearch(table)
    search.open(data, size)
    place = search.find(&length, &id)  # again and again, until length is 0
"""

from libc.stdint cimport uint8_t, uint32_t

from .characters cimport CharacterSet
from .pairs cimport PairTable


cdef struct Spelling:
    size_t size  # in bytes
    uint32_t id
    uint32_t flags


cdef struct Node:
    uint32_t spelling  # the longest that the node begins with, by number; NOT_FOUND: none
    uint32_t shorter  # the failure link


cdef class SpecialTable:
    """What is looked for, and the automaton that finds it. It never changes, so threads may
    share it."""

    cdef Spelling *numbered
    cdef size_t longest  # in bytes
    cdef Node *nodes
    cdef size_t node_count, capacity
    cdef uint32_t last_bytes[256]  # the nodes of one byte each; 0: no spelling ends with it
    cdef PairTable longer  # any other node and the byte before it -> node
    cdef CharacterSet spaces, words  # empty if there are no flags
    cdef readonly dict spellings

    cdef int add_nodes(self, list spellings) except -1
    cdef uint32_t add_byte(self, uint32_t node, uint8_t byte) except 0
    cdef uint32_t step(self, uint32_t node, uint8_t byte) noexcept nogil


cdef struct Match:
    size_t start
    size_t stop
    uint32_t spelling  # its number


cdef class SpecialSearch:
    """A walk over one document after another. It belongs to one thread."""

    cdef SpecialTable table
    cdef const uint8_t *data
    cdef size_t size
    cdef size_t done  # where the last token ended
    cdef Match next  # the next one, without white space; it begins at `size` if there is none
    cdef size_t searched  # the one after it begins here or behind
    cdef size_t window_end  # what begins before is found,
    cdef Match *found  # that which is not yet picked among it, the leftmost last
    cdef size_t found_count, capacity
    cdef size_t steps  # since the last look for signals

    cdef int open(self, const uint8_t *data, size_t size) except -1 nogil
    cdef size_t find(self, size_t *length, uint32_t *id) except? 0 nogil
    cdef int pick_next(self) except -1 nogil
    cdef int read_window(self) except -1 nogil
    cdef int add_steps(self, size_t count) except -1 nogil
    cdef bint has_flag(self, Match match, uint32_t flag) noexcept nogil
    cdef bint stands_alone(self, Match match) noexcept nogil
    cdef size_t end_with_spaces(self, size_t stop) except 0 nogil
    cdef size_t spaces_start(self, size_t place) except? 0 nogil
    cdef size_t spaces_end(self, size_t place, size_t last) except? 0 nogil


cdef SpecialTable as_special_table(special)
