"""Handles of the native table, for the module that has it.

    cdef PyObject *opened = entered(handle, &worker)  # NULL: the handle is not open
    (<Opened> opened).size  # anything of it, until:
    left(opened, &worker)
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t

from .capi cimport tokbpe_handle
from .decode cimport DecodingTable
from .pieces cimport PieceIndex
from .special cimport SpecialTable
from .table cimport EncodingTable


# Encodings are prepared for texts of so many bytes when they are made; and for longer ones when
# these come, up to where the word cache does not get larger any more.
cdef enum:
    FIRST_TEXT = 65536
    LARGEST_TEXT = 16777216


cdef struct Worker:
    PyObject *encoding  # an Encoding; NULL: there is none yet
    size_t prepared  # for texts of so many bytes


cdef class Opened:
    """What a handle stands for. It never changes, but for the users and the idle workers."""

    cdef EncodingTable table
    cdef SpecialTable special
    cdef DecodingTable decoding
    cdef PieceIndex pieces
    cdef uint32_t *piece_ids  # by number in `pieces`
    cdef uint8_t *is_spelled  # by id: whether its bytes stay as they are where a text ends;
    cdef int marker  # the byte that is taken off there else; -1: none
    cdef int method
    cdef size_t size  # the highest id + 1
    cdef size_t users
    cdef Worker *idle
    cdef size_t idle_count
    cdef size_t worker_count  # for which there is room in `idle`

    cdef int read_pieces(self, dict ids) except -1
    cdef void enter(self, Worker *worker) noexcept nogil
    cdef bint leave(self, const Worker *worker) noexcept nogil
    cdef int prepare(self, Worker *worker, size_t size) except -1
    cdef int expect_worker(self) except -1
    cdef int dismiss(self) except -1


cdef tokbpe_handle taken_slot(PyObject *opened) noexcept nogil
cdef PyObject *entered(tokbpe_handle handle, Worker *worker) noexcept nogil
cdef void left(PyObject *opened, const Worker *worker) noexcept nogil
cdef bint closed(tokbpe_handle handle) noexcept nogil
cdef void know_thread() noexcept nogil
cdef bint leave_thread() noexcept nogil
