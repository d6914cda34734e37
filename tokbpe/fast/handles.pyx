"""Handles: what they stand for, who uses it, and the threads that do.

A handle is the number of a slot and a generation, which is another one each time that the slot is
used: a handle that is closed, or made up, is not found. A slot leads to an `Opened`, which counts
its users: the calls that run in it, and the slot as long as the handle is open. The last one frees
it. Slots and users are touched under LOCK alone, for some instructions. Who holds LOCK never waits
for the GIL, so that a thread that has the GIL may wait for LOCK.

Each call works in an `Encoding` of its own. Those that are idle wait in the `Opened`; they are made
and prepared for longer texts with the GIL.

An error inside the engine is an exception, and Python forgets it unless it knows the thread. So the
first call of a thread makes it known.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import os

from .encode cimport Encoding, begin
from .memory cimport free, resized
from .pieces cimport add_piece, close_piece_index, open_piece_index
from .seeds cimport set_seeds
from .split cimport NOT_COMPILED

cdef extern from "lock.h" nogil:
    ctypedef int tokbpe_lock
    void tokbpe_take(tokbpe_lock *lock) noexcept
    void tokbpe_give(tokbpe_lock *lock) noexcept

cdef extern from "Python.h" nogil:
    ctypedef struct PyThreadState
    ctypedef enum PyGILState_STATE:
        PyGILState_UNLOCKED
    PyThreadState *PyGILState_GetThisThreadState()
    int PyGILState_Check()
    PyGILState_STATE PyGILState_Ensure()
    void PyGILState_Release(PyGILState_STATE state)
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)
    int PyThread_tss_create(Py_tss_t *key)
    int PyThread_tss_set(Py_tss_t *key, void *value)
    void *PyThread_tss_get(Py_tss_t *key)

set_seeds()


@cython.final
cdef class Opened:

    def __cinit__(self, parts):
        cdef size_t entries
        self.table = parts.encoding
        if self.table.kind == NOT_COMPILED:
            raise ValueError(
                "the native table runs without the GIL, but the pattern of this vocabulary is "
                f"none that is compiled: {self.table.pattern!r}"
            )
        self.special = parts.special
        self.decoding = parts.decoding
        self.method = parts.method
        self.size = parts.size
        self.marker = parts.marker[0] if parts.marker else -1
        self.users = 1
        self.read_pieces(parts.ids)
        entries = self.decoding.count + 1
        self.is_spelled = <uint8_t *> resized(NULL, entries, 1)
        if self.is_spelled == NULL:
            raise MemoryError(f"no memory for {entries} pieces")
        memset(self.is_spelled, 0, entries)
        for id in parts.spelled:
            self.is_spelled[self.decoding.entry(id)] = True
        self.table.warm_up()

    def __dealloc__(self):
        close_piece_index(&self.pieces)
        free(self.piece_ids)
        free(self.is_spelled)
        free(self.idle)

    cdef int read_pieces(self, dict ids) except -1:
        cdef size_t number
        cdef size_t total = 0
        cdef bytes piece
        open_piece_index(&self.pieces, len(ids), sum(map(len, ids)))
        self.piece_ids = <uint32_t *> resized(NULL, len(ids), sizeof(uint32_t))
        if self.piece_ids == NULL:
            raise MemoryError(f"no memory for {len(ids)} pieces")
        for number, (piece, id) in enumerate(ids.items()):
            self.pieces.starts[number] = total
            memcpy(self.pieces.bytes + total, <const char *> piece, len(piece))
            total += len(piece)
            self.pieces.starts[number + 1] = total
            self.piece_ids[number] = id
            add_piece(&self.pieces, number)
        return 0

    # Users; the caller has LOCK

    cdef void enter(self, Worker *worker) noexcept nogil:
        self.users += 1
        if worker != NULL and self.idle_count:
            self.idle_count -= 1
            worker[0] = self.idle[self.idle_count]

    cdef bint leave(self, const Worker *worker) noexcept nogil:
        """Whether that was the last one."""
        if worker != NULL and worker.encoding != NULL:
            self.idle[self.idle_count] = worker[0]
            self.idle_count += 1
        self.users -= 1
        return self.users == 0

    # Workers, with the GIL

    cdef int prepare(self, Worker *worker, size_t size) except -1:
        """Have an encoding that is prepared for a text of so many bytes."""
        cdef Encoding encoding
        cdef size_t wanted = max(worker.prepared, <size_t> FIRST_TEXT)
        while wanted < size and wanted < <size_t> LARGEST_TEXT:
            wanted *= 2
        if worker.encoding == NULL:
            encoding = begin(self.table, self.special, wanted)
            try:
                self.expect_worker()
            except MemoryError:
                encoding.close()
                raise
            worker.encoding = <PyObject *> encoding
            Py_INCREF(encoding)
        else:
            encoding = <Encoding> worker.encoding
            worker.prepared = 0  # if this fails, the next text prepares it again
            encoding.open(self.table, self.special, wanted)
        worker.prepared = wanted
        return 0

    cdef int expect_worker(self) except -1:
        """Have room for one worker more among the idle ones."""
        cdef Worker *larger
        tokbpe_take(&LOCK)
        larger = <Worker *> resized(self.idle, self.worker_count + 1, sizeof(Worker))
        if larger != NULL:
            self.idle = larger
            self.worker_count += 1
        tokbpe_give(&LOCK)
        if larger == NULL:
            raise MemoryError(f"no memory for {self.worker_count + 1} encodings")
        return 0

    cdef int dismiss(self) except -1:
        """Give the idle encodings back to the table."""
        cdef Encoding encoding
        cdef Worker worker
        while True:
            tokbpe_take(&LOCK)
            worker.encoding = NULL
            if self.idle_count:
                self.idle_count -= 1
                self.worker_count -= 1
                worker = self.idle[self.idle_count]
            tokbpe_give(&LOCK)
            if worker.encoding == NULL:
                return 0
            encoding = <Encoding> worker.encoding
            Py_DECREF(encoding)
            encoding.close()


# Handles

cdef struct Slot:
    uint32_t generation  # of the handle, from 1 on
    PyObject *opened  # an Opened; NULL: the slot is free

cdef tokbpe_lock LOCK = 0
cdef Slot *SLOTS = NULL
cdef size_t SLOT_COUNT = 0


cdef inline tokbpe_handle handle_of(size_t number) noexcept nogil:
    return <uint64_t> SLOTS[number].generation << 32 | number


cdef inline Slot *slot_of(tokbpe_handle handle) noexcept nogil:
    """The slot of a handle, NULL if it is not open. The caller has LOCK."""
    cdef size_t number = <size_t> (handle & UINT32_MAX)
    if number >= SLOT_COUNT or SLOTS[number].opened == NULL or handle_of(number) != handle:
        return NULL
    return &SLOTS[number]


cdef tokbpe_handle taken_slot(PyObject *opened) noexcept nogil:
    """Put what was opened into a free slot; 0 if there is no memory for one."""
    cdef size_t number
    cdef Slot *larger
    cdef tokbpe_handle handle = 0
    global SLOTS, SLOT_COUNT
    tokbpe_take(&LOCK)
    for number in range(SLOT_COUNT):
        # A slot whose generations are used up stays free.
        if SLOTS[number].opened == NULL and SLOTS[number].generation < UINT32_MAX:
            break
    else:
        number = SLOT_COUNT
        larger = <Slot *> resized(SLOTS, number + 1, sizeof(Slot))
        if larger != NULL:
            SLOTS = larger
            SLOTS[number] = Slot(0, NULL)
            SLOT_COUNT += 1
    if number < SLOT_COUNT:
        SLOTS[number].generation += 1
        SLOTS[number].opened = opened
        handle = handle_of(number)
    tokbpe_give(&LOCK)
    return handle


cdef PyObject *entered(tokbpe_handle handle, Worker *worker) noexcept nogil:
    """What a handle stands for, with one user more, and an idle worker for him, if there is one;
    NULL if the handle is not open."""
    cdef PyObject *opened = NULL
    cdef Slot *slot
    tokbpe_take(&LOCK)
    slot = slot_of(handle)
    if slot != NULL:
        opened = slot.opened
        (<Opened> opened).enter(worker)
    tokbpe_give(&LOCK)
    return opened


cdef void left(PyObject *opened, const Worker *worker) noexcept nogil:
    """One user less, whose worker is idle now."""
    cdef bint is_last
    tokbpe_take(&LOCK)
    is_last = (<Opened> opened).leave(worker)
    tokbpe_give(&LOCK)
    if is_last:
        free_opened(opened)


cdef bint closed(tokbpe_handle handle) noexcept nogil:
    """Close a handle; False if it is not open."""
    cdef PyObject *opened = NULL
    cdef Slot *slot
    tokbpe_take(&LOCK)
    slot = slot_of(handle)
    if slot != NULL:
        opened = slot.opened
        slot.opened = NULL
    tokbpe_give(&LOCK)
    if opened == NULL:
        return False
    left(opened, NULL)
    return True


cdef int free_opened(PyObject *opened) noexcept with gil:
    (<Opened> opened).dismiss()
    Py_DECREF(<Opened> opened)
    return 0


# Before a fork no other thread may be at the slots; LOCK is free afterwards in both processes.
def take_lock():
    tokbpe_take(&LOCK)


def give_lock():
    tokbpe_give(&LOCK)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=take_lock, after_in_parent=give_lock, after_in_child=give_lock)


# Threads

cdef Py_tss_t MADE_KNOWN  # by us: what Python keeps for the thread
PyThread_tss_create(&MADE_KNOWN)


cdef void know_thread() noexcept nogil:
    """Let Python know this thread from now on, so that it remembers an exception."""
    if PyGILState_GetThisThreadState() == NULL:
        PyGILState_Ensure()
        PyThread_tss_set(&MADE_KNOWN, PyEval_SaveThread())


cdef bint leave_thread() noexcept nogil:
    """Take that back; False if the thread has the GIL."""
    cdef PyThreadState *state = <PyThreadState *> PyThread_tss_get(&MADE_KNOWN)
    if state == NULL:
        return True
    if PyGILState_Check():
        return False
    PyThread_tss_set(&MADE_KNOWN, NULL)
    PyEval_RestoreThread(state)
    PyGILState_Release(PyGILState_UNLOCKED)
    return True
