"""Counting pieces, compiled: the twin of `count_pieces` in `tokbpe.reference`.

Each thread has a table of its own (`count_table.pxd`). It works in chunks of some hundred pieces,
one stage after the other, so that the slots which the last stage jumps about in have been asked for
before: where the pieces end; the key of each, and its place in the table; the counts. What the
threads have counted is put together in the order of the groups that they counted, and so of first
appearance: a piece that is new to all in a group is new to the thread that counted this group.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import threading

import numpy as np

from tokbpe import arguments, reference

from .count_table cimport (
    CountSlot,
    CountTable,
    close_counts,
    counts_size,
    make_room,
    open_counts,
    piece_key,
    piece_place,
    piece_slot,
    piece_start,
    put_piece,
)
from .encode cimport Document
from .groups cimport Group, Groups, Part, safe_cut
from .memory cimport reserve, tokbpe_prefetch
from .special cimport SpecialSearch, SpecialTable, as_special_table
from .special import cut_special
from .split cimport (
    NOT_COMPILED,
    WHOLE,
    WORDS,
    Scanner,
    extend_text,
    next_ends,
    next_piece,
    open_scanner,
    scanner_kind,
)
from .words cimport tokbpe_key

cdef extern from *:
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

# How many bytes are counted between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000

# How many pieces are worked on together.
cdef enum:
    CHUNK = 512

# Before so many pieces more it is looked how much memory they may take.
cdef enum:
    PIECES_AHEAD = 262144

# A table begins with 2**LEAST_BITS slots.
cdef enum:
    LEAST_BITS = 11

# So many bytes or documents are gathered before they are counted.
cdef size_t batch_bytes = 67108864
cdef size_t batch_documents = 1048576

SLICE_SIZE = SLICE
CHUNK_SIZE = CHUNK


def use_batches(most_bytes, most_documents):
    """Gather so many from now on. For tests."""
    global batch_bytes, batch_documents
    batch_bytes = most_bytes
    batch_documents = most_documents


# Documents


@cython.final
cdef class TextView:
    """The UTF-8 of a text, as a buffer."""

    cdef object owner
    cdef const uint8_t *data
    cdef Py_ssize_t size

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void *> self.data, self.size, True, flags)


def document_view(document, index=None):
    """The bytes of a document, which cannot change: of a `str` as a `TextView`, without a copy if
    it is ASCII. Errors as of `arguments.document_bytes`."""
    cdef TextView view
    cdef bytes data
    if type(document) is TextView:
        return document
    if type(document) is not str:
        return arguments.document_bytes(document, index)
    view = TextView()
    if document.isascii():
        view.owner = document
        view.data = <const uint8_t *> PyUnicode_AsUTF8AndSize(document, &view.size)
    else:  # it would keep its UTF-8
        data = arguments.document_bytes(document, index)
        view.owner = data
        view.data = <const uint8_t *> PyBytes_AS_STRING(data)
        view.size = PyBytes_GET_SIZE(data)
    return view


cdef Document opened(document):
    """A document that `document_view` gave."""
    cdef TextView view
    cdef bytes data
    if type(document) is TextView:
        view = document
        return Document(view.data, view.size, True)
    data = document
    return Document(<const uint8_t *> PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), False)


# Tables


# Pieces that are worked on together: data[starts[i]:ends[i]].
cdef struct Chunk:
    size_t[CHUNK] starts
    size_t[CHUNK] ends
    tokbpe_key[CHUNK] keys
    size_t[CHUNK] places  # in the table


@cython.final
cdef class PieceTable:
    """Pieces with their counts, in the order of their first appearance (point 4)."""

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
    cdef int64_t highest  # no count is higher

    def __cinit__(self):
        open_counts(&self.table, LEAST_BITS)

    def __dealloc__(self):
        close_counts(&self.table)

    def __len__(self):
        return self.table.count

    # Documents

    cdef int add_document(self, const Document *document) except -1 nogil:
        """Count the pieces of a document, special tokens cut out first (point 12)."""
        cdef size_t done = 0
        cdef size_t length = 0
        cdef size_t place = document.size
        cdef uint32_t id = 0
        if self.search is None:
            return self.add_part(document, 0, document.size)
        self.search.open(document.data, document.size)
        while done < document.size:
            place = self.search.find(&length, &id)
            self.add_part(document, done, place)
            self.go_on(length)
            done = place + length
        return 0

    cdef int add_part(self, const Document *document, size_t first, size_t last) except -1 nogil:
        """Count the pieces of a part in which there are no special tokens."""
        cdef Scanner scanner
        cdef size_t before
        cdef bint more = first < last
        open_scanner(
            &scanner, self.kind, document.data + first, last - first, document.is_text)
        while more:
            while not scanner.text_ended and not extend_text(&scanner, SLICE):
                with gil:
                    self.pause()
            before = scanner.position
            more = self.add_chunk(&scanner)
            self.go_on(scanner.position - before)
        return 0

    cdef int go_on(self, size_t bytes) except -1 nogil:
        """After every so many bytes look for signals."""
        self.unpaused += bytes
        if self.unpaused >= SLICE:
            with gil:
                self.pause()
        return 0

    cdef int pause(self) except -1:
        """Look for signals, and whether other threads have failed; tell how far we are."""
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            if self.counting is not None:
                self.counting.stop(error)
            raise
        self.needed = counts_size(&self.table, PIECES_AHEAD)
        if self.counting is not None:
            self.counting.advance(self.group, self.unpaused)
        self.unpaused = 0
        return 0

    cdef bint add_chunk(self, Scanner *scanner) except -1 nogil:
        """Count the next pieces; False when there are no more."""
        cdef size_t count = self.find_pieces(scanner)
        if count:
            self.add_pieces(scanner.data, scanner.size, count, NULL)
        return count > 0

    cdef size_t find_pieces(self, Scanner *scanner) noexcept nogil:
        """Where the next pieces begin and end; how many they are."""
        cdef Chunk *chunk = &self.chunk
        cdef size_t count = 0
        cdef size_t i
        if self.kind == WORDS:
            while count < CHUNK and next_piece(scanner, &chunk.starts[count], &chunk.ends[count]):
                count += 1
            return count
        chunk.starts[0] = scanner.position
        count = next_ends(scanner, chunk.ends, CHUNK)
        for i in range(1, count):
            chunk.starts[i] = chunk.ends[i - 1]
        return count

    cdef int add_pieces(
        self,
        const uint8_t *data,
        size_t size,
        size_t count,
        const int64_t *counts,  # NULL: each counts once
    ) except -1 nogil:
        """Count the pieces of the chunk, which stand in data[:size]."""
        cdef Chunk *chunk = &self.chunk
        cdef CountSlot *slot
        cdef size_t i, piece_size
        make_room(&self.table, count)
        for i in range(count):
            piece_size = chunk.ends[i] - chunk.starts[i]
            if piece_size > self.longest:
                self.longest = piece_size
                self.longest_document = self.document
            chunk.keys[i] = piece_key(data, chunk.starts[i], piece_size, size)
            chunk.places[i] = piece_place(&self.table, chunk.keys[i])
            tokbpe_prefetch(&self.table.slots[chunk.places[i]])
        for i in range(count):
            slot = piece_slot(
                &self.table, chunk.keys[i], chunk.places[i], data + chunk.starts[i])
            if slot.key.high == 0:
                put_piece(&self.table, slot, chunk.keys[i], data + chunk.starts[i],
                          chunk.ends[i] - chunk.starts[i])
            if counts == NULL:
                slot.count += 1
            else:
                self.add_count(slot, counts[i])
        return 0

    cdef int add_count(self, CountSlot *slot, int64_t count) except -1 nogil:
        if count > INT64_MAX - slot.count:
            with gil:
                raise arguments.piece_overflow(self.piece(slot.number))
        slot.count += count
        return 0

    cdef bytes piece(self, size_t number):
        cdef size_t start = piece_start(&self.table, number)
        return PyBytes_FromStringAndSize(
            <const char *> self.table.bytes + start, self.table.ends[number] - start)

    cdef int add_piece(self, bytes piece) except -1:
        """Count a piece of one byte or more."""
        self.chunk.starts[0] = 0
        self.chunk.ends[0] = PyBytes_GET_SIZE(piece)
        return self.add_pieces(
            <const uint8_t *> PyBytes_AS_STRING(piece), PyBytes_GET_SIZE(piece), 1, NULL)

    # Other tables

    def add(self, PieceTable other not None):
        """Count what another table has counted; pieces that are new follow in its order.

        ValueError, and nothing done, if a count would pass 2**63 - 1.
        """
        counts = other.counts()
        if self.highest > INT64_MAX - other.highest:
            for piece, count in other.as_dict().items():
                if count > INT64_MAX - self.get(piece, 0):
                    raise arguments.piece_overflow(piece)
        self.add_run(other, counts, 0, other.table.count)
        self.highest += min(other.highest, INT64_MAX - self.highest)

    cdef int add_run(
        self,
        PieceTable other,
        const int64_t[::1] counts,  # IN: of all its pieces
        size_t first,
        size_t last,
    ) except -1:
        """Count pieces of another table, by their numbers there."""
        if first < last:
            self.add_flat(other.table.bytes, other.table.size, other.table.ends, &counts[0],
                          first, last)
        return 0

    def add_counts(
        self,
        const uint8_t[::1] data not None,  # IN
        const uint64_t[::1] ends not None,  # IN
        const int64_t[::1] counts not None,  # IN
    ):
        """Count pieces that stand in arrays: piece i is data[ends[i - 1]:ends[i]], not empty, and
        occurs counts[i] times, at least once. A table that has raised is not to be used.

        ValueError if a count would pass 2**63 - 1.
        """
        cdef size_t i
        cdef size_t count = ends.shape[0]
        if count:
            self.add_flat(&data[0], data.shape[0], &ends[0], &counts[0], 0, count)
        for i in range(count):
            self.highest = max(self.highest, counts[i])

    cdef int add_flat(
        self,
        const uint8_t *data,
        size_t size,
        const uint64_t *ends,
        const int64_t *counts,
        size_t first,
        size_t last,
    ) except -1:
        cdef size_t i, count
        cdef size_t start = <size_t> ends[first - 1] if first else 0
        while first < last:
            count = min(last - first, <size_t> CHUNK)
            with nogil:
                for i in range(count):
                    self.chunk.starts[i] = start
                    start = <size_t> ends[first + i]
                    self.chunk.ends[i] = start
                self.add_pieces(data, size, count, counts + first)
                self.go_on(start - self.chunk.starts[0])
            first += count
        return 0

    # What was counted

    def counts(self):
        """How often each piece occurs, `int64` [n]."""
        counts = np.empty(self.table.count, np.int64)
        cdef int64_t[::1] view = counts
        cdef CountSlot *slot
        cdef size_t i
        with nogil:
            for i in range(<size_t> 1 << self.table.bits):
                slot = &self.table.slots[i]
                if slot.key.high:
                    view[slot.number] = slot.count
        return counts

    def arrays(self):
        """The bytes of all pieces, `uint8` [bytes]; where each ends in these, `uint64` [n]; and
        how often it occurs, `int64` [n]."""
        data = np.empty(self.table.size, np.uint8)
        ends = np.empty(self.table.count, np.uint64)
        cdef uint8_t[::1] data_view = data
        cdef uint64_t[::1] ends_view = ends
        if self.table.count:
            memcpy(&data_view[0], self.table.bytes, self.table.size)
            memcpy(&ends_view[0], self.table.ends, self.table.count * sizeof(uint64_t))
        return data, ends, self.counts()

    def get(self, bytes piece not None, default=None):
        """How often a piece occurs."""
        cdef const uint8_t *bytes = <const uint8_t *> PyBytes_AS_STRING(piece)
        cdef size_t size = PyBytes_GET_SIZE(piece)
        cdef tokbpe_key key
        cdef CountSlot *slot
        if size == 0:
            return default
        key = piece_key(bytes, 0, size, size)
        slot = piece_slot(&self.table, key, piece_place(&self.table, key), bytes)
        return slot.count if slot.key.high else default

    def as_dict(self):
        """The counts by piece."""
        cdef const int64_t[::1] counts = self.counts()
        cdef size_t number
        found = {}
        for number in range(self.table.count):
            found[self.piece(number)] = counts[number]
            if number % (1 << 16) == 0:
                PyErr_CheckSignals()
        return found


# Counting


@cython.final
cdef class PieceCounting(Groups):
    """Counts the pieces of documents as they come."""

    cdef object pattern, spellings
    cdef int kind
    cdef bint kind_known
    cdef object threads, progress, memory_bytes
    cdef object caller  # the thread that calls
    cdef size_t done  # bytes
    cdef list tables  # one of each thread
    cdef list idle  # the numbers of those that no thread works with
    cdef list runs  # of each group that is done: its number, its table, and which pieces are new
    cdef size_t groups_before, documents_before  # the present batch

    def __cinit__(self, pattern, spellings, threads, progress, memory_bytes):
        self.pattern = pattern
        self.spellings = spellings
        self.kind = WHOLE
        self.threads = arguments.thread_count(threads)
        self.progress = progress
        self.memory_bytes = memory_bytes
        self.caller = threading.get_ident()
        self.owners = []
        self.tables = []
        self.idle = []
        self.runs = []

    cdef int look_at_options(self, document) except -1:
        """Look at them where the reference does, behind the first document and the first part."""
        cdef Document opened_document = opened(document)
        self.spellings = self.special = as_special_table(self.spellings)
        if self.special is None or has_text(self.special, &opened_document):
            self.kind = scanner_kind(self.pattern)
            self.kind_known = True
        return 0

    cdef int take(self, document) except -1:
        """The next document, as `document_view` gives it."""
        if not self.kind_known:
            self.look_at_options(document)
        if self.kind == NOT_COMPILED:
            return self.count_slowly(document)
        reserve(<void **> &self.documents, &self.capacity, self.count + 1, sizeof(Document))
        self.documents[self.count] = opened(document)
        self.total += self.documents[self.count].size
        self.count += 1
        self.owners.append(document)
        if self.total >= batch_bytes or self.count >= batch_documents:
            self.count_batch()
        return 0

    cdef int count_slowly(self, document) except -1:
        """Count the pieces of a document that the reference cuts."""
        cdef PieceTable table = self.begin_work()
        cdef bytes data = bytes(document)
        table.document = self.documents_before
        for part, special_id in cut_special(data, self.special):
            if special_id is None:
                for piece in reference.split(part, self.pattern):
                    table.add_piece(piece)
                PyErr_CheckSignals()
        self.documents_before += 1
        self.end_work(table)
        return self.advance(0, len(data))

    cdef int count_batch(self) except -1:
        """Count the documents that have been gathered."""
        cdef size_t done = self.done + self.total
        self.make_groups(self.threads, False)
        self.run_groups()
        self.advance(0, done - self.done)  # special tokens, and what no thread has told
        self.groups_before += self.group_count
        self.documents_before += self.count
        self.count = self.total = 0
        self.owners.clear()
        return 0

    cdef int advance(self, size_t group, size_t bytes) except -1:
        """So many more bytes are done. Raises if a group before this one has failed."""
        if self.failed < group:
            raise RuntimeError("another thread has failed")
        self.done += bytes
        self.check_memory()
        if self.progress is not None and threading.get_ident() == self.caller:
            try:
                self.progress(self.done)
            except BaseException as error:
                self.stop(error)
                raise
        return 0

    cdef PieceTable finish(self):
        """What was counted."""
        cdef PieceTable table, part
        cdef list counts
        self.count_batch()
        if not self.tables:
            return PieceTable()
        if len(self.tables) == 1:
            table = self.tables[0]
        else:
            table = PieceTable()
            counts = [part.counts() for part in self.tables]
            make_room(&table.table, max(map(len, self.tables)))
            for _, number, first, last in sorted(self.runs):
                table.add_run(self.tables[number], counts[number], first, last)
            table.longest, table.longest_document = self.longest_piece()
        table.highest = <int64_t> self.done
        return table

    cdef int check_memory(self) except -1:
        """MemoryError before the tables take more than they may."""
        cdef PieceTable table
        if self.memory_bytes is None:
            return 0
        needed = sum([table.needed for table in self.tables])
        if needed > self.memory_bytes:
            error = arguments.too_many_pieces(
                sum(map(len, self.tables)), needed, self.memory_bytes)
            self.stop(error)
            raise error
        return 0

    cdef tuple longest_piece(self):
        cdef PieceTable table
        return max(
            ((table.longest, table.longest_document) for table in self.tables),
            key=lambda found: (found[0], -found[1]),
        )

    # Threads

    cdef size_t cut_behind(
        self, const uint8_t *data, size_t first, size_t size, size_t last
    ) noexcept nogil:
        return last if self.kind == WHOLE else safe_cut(data, first + size, last)

    cdef object begin_work(self):
        """A table for this thread."""
        cdef PieceTable table
        if self.idle:
            table = self.idle.pop()
        else:
            table = PieceTable()
            table.number = len(self.tables)
            self.tables.append(table)
        table.counting = self
        table.kind = self.kind
        if self.special is not None:
            table.search = SpecialSearch(self.special)
        return table

    cdef int end_work(self, worker) except -1:
        cdef PieceTable table = worker
        table.counting = None
        self.idle.append(table)
        return 0

    cdef int do_group(self, worker, size_t number) except -1:
        cdef PieceTable table = worker
        cdef size_t before = table.table.count
        table.group = number + 1
        with nogil:
            self.count_group(table, self.groups[number])
        self.runs.append((self.groups_before + number, table.number, before, table.table.count))
        return 0

    cdef int count_group(self, PieceTable table, Group group) except -1 nogil:
        """Count the parts of a group."""
        cdef size_t i
        cdef Part *part
        cdef Document *document
        for i in range(group.first, group.last):
            part = &self.parts[i]
            document = &self.documents[part.document]
            table.document = self.documents_before + part.document
            if part.last - part.first == document.size:
                table.add_document(document)
            else:
                table.add_part(document, part.first, part.last)
        return 0


cdef bint has_text(SpecialTable special, const Document *document) except -1:
    """Whether a document is more than special tokens."""
    cdef SpecialSearch search = SpecialSearch(special)
    cdef size_t place, length
    cdef size_t done = 0
    cdef uint32_t id = 0
    search.open(document.data, document.size)
    while done < document.size:
        place = search.find(&length, &id)
        if place > done:
            return True
        done = place + length
    return False


def count_table(
    corpus, pattern=None, special=None, *, threads=None, progress=None, memory_bytes=None
):
    """Count equal pieces of all documents, as `count_pieces` does, into a table.

    The documents come in batches: those of one stand in memory, 64 MB or a single one that is
    larger. Beside that a piece takes some hundred bytes, for each thread.

    threads: how many are used for a batch that is large enough; None for as many as there are
        processors. The table does not depend on it.
    progress: called, in this thread, with the bytes done from time to time.
    memory_bytes: MemoryError before the tables take more, one of each thread.
    """
    cdef PieceCounting counting = PieceCounting(
        pattern, special, threads, progress, memory_bytes)
    for document in arguments.documents(corpus, document_view):
        counting.take(document)
    return counting.finish()


def count_pieces(corpus, pattern=None, special=None):
    """Count equal pieces of all documents, in order of first appearance (point 4).

    (["low lower", "low"], "gpt2") -> {b"low": 2, b" lower": 1}
    """
    return count_table(corpus, pattern, special).as_dict()
