"""Many documents, or large ones, as work for several threads, for the other extensions.

The documents are cut into parts, where that changes nothing, and the parts are put together to
groups of about equal size. Each thread takes one group after another.

Whoever does the work derives from `Groups` and says where a document may be cut, what a thread
works with, and what is done with a group.
"""

from libc.stdint cimport uint8_t, uint32_t

from .encode cimport Document
from .special cimport SpecialTable


# A thread is started for so many bytes at least: else it costs more than it brings.
cdef size_t thread_text


# A document, or a part of one: data[first:last], and the special token behind it.
cdef struct Part:
    size_t document
    size_t first, last
    uint32_t id  # NOT_FOUND: there is none
    bint is_cut  # whether there is more of the document


# Parts that one thread works on, one behind the other.
cdef struct Group:
    size_t first, last


cdef class Groups:
    cdef SpecialTable special  # None: there are no special tokens
    cdef list owners  # of the bytes of the documents
    cdef Document *documents
    cdef size_t count, capacity
    cdef size_t total  # bytes
    cdef Part *parts
    cdef size_t part_count, part_capacity
    cdef Group *groups
    cdef size_t group_count, group_capacity, next_group
    cdef size_t failed  # the number of the first group that has failed, from 1 on
    cdef object error
    cdef int thread_count

    cdef int make_groups(self, threads, bint one_thread, size_t size=*) except -1
    cdef int run_groups(self) except -1
    cdef void stop(self, error)
    cdef int add_part(
        self, size_t document, size_t first, size_t last, uint32_t id, bint is_cut
    ) except -1 nogil
    cdef int cut_document(self, size_t number, size_t size) except -1
    cdef int cut_text(
        self, size_t number, size_t first, size_t last, uint32_t id, size_t behind, size_t size
    ) except -1 nogil

    # What is done with them

    cdef size_t cut_behind(
        self, const uint8_t *data, size_t first, size_t size, size_t last
    ) noexcept nogil
    cdef object begin_work(self)
    cdef int do_group(self, worker, size_t number) except -1
    cdef object told(self, worker, error)
    cdef int end_work(self, worker) except -1
    cdef int advance(self, size_t group, size_t bytes) except -1


cdef size_t safe_cut(const uint8_t *data, size_t first, size_t last) noexcept nogil
