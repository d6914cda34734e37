"""Pieces and their counts, in the order of first appearance: scanned, or taken from other tables.

Pieces are worked on in chunks, one stage after the other, so that the slots which the last stage
jumps about in have been asked for before: where the pieces end; the key of each, and its place in
the table; the counts.

Who counts into a table has it alone. A table that threads share is changed by `add` and `replace`
alone, and these, like all that reads it, keep the GIL and let no signal be handled meanwhile. So
nobody meets a table that is half changed, no interrupt leaves one, and no lock is waited for.
Measured, a million pieces that are new take 0.15 s, and such as are known 0.07 s.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, SIZE_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from tokbpe import arguments

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
from .memory cimport reserve, tokbpe_prefetch
from .seeds cimport set_seeds
from .split cimport WORDS, Scanner, extend_text, next_ends, next_piece, open_scanner
from .words cimport tokbpe_key

set_seeds()

# How many bytes are counted between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000

# Before so many pieces more it is looked how much memory they may take.
cdef enum:
    PIECES_AHEAD = 262144

# A table begins with 2**LEAST_BITS slots.
cdef enum:
    LEAST_BITS = 11

SLICE_SIZE = SLICE
CHUNK_SIZE = CHUNK


@cython.final
cdef class PieceTable:
    """Pieces with their counts, in the order of their first appearance (point 4).

    memory_bytes: MemoryError before the table takes more, where other tables are added.
    about: what the caller knows about the counts; it changes with them.
    """

    def __cinit__(self, memory_bytes=None, about=None):
        open_counts(&self.table, LEAST_BITS)
        self.memory_bytes = SIZE_MAX if memory_bytes is None else min(memory_bytes, SIZE_MAX)
        self.about = about

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

    def add(self, PieceTable other not None, before=None, about=None):
        """Count what another table has counted, and be `about` that; pieces that are new follow
        in its order. False, and nothing done, if this table is not about `before` any more.

        ValueError, and nothing done, if a count would pass 2**63 - 1; MemoryError likewise.
        """
        cdef const int64_t[::1] counts = other.counts()
        if self.about is not before:
            return False
        self.prepare(other)
        if other.table.count:
            self.add_all(other, &counts[0])
        self.about = about
        return True

    def replace(self, PieceTable other not None, before, about):
        """Change places with what another table has counted, and be `about` that. False, and
        nothing done, if this table is not about `before` any more."""
        cdef CountTable counted = self.table
        if self.about is not before:
            return False
        self.table = other.table
        other.table = counted
        self.about = about
        return True

    cdef int prepare(self, PieceTable other) except -1:
        """Have room for the pieces of another table; an error if they cannot be counted."""
        cdef const CountSlot *theirs
        cdef const CountSlot *mine
        cdef size_t start, size, i
        cdef size_t pieces = 0
        cdef size_t bytes = 0
        cdef size_t refused = other.table.count
        for i in range(<size_t> 1 << other.table.bits):  # in the order of keys, as these slots are
            theirs = &other.table.slots[i]
            if theirs.key.high == 0:
                continue
            start = piece_start(&other.table, theirs.number)
            mine = piece_slot(
                &self.table, theirs.key, piece_place(&self.table, theirs.key),
                other.table.bytes + start)
            if mine.key.high == 0:
                pieces += 1
                bytes += <size_t> other.table.ends[theirs.number] - start
            elif theirs.count > INT64_MAX - mine.count:
                refused = min(refused, theirs.number)
        if refused < other.table.count:
            raise arguments.piece_overflow(other.piece(refused))
        pieces += CHUNK  # for so many more, room is looked for
        self.check_memory(pieces, bytes)
        size = self.table.size + bytes
        reserve(<void **> &self.table.bytes, &self.table.capacity, size, 1)
        size = self.table.count + pieces
        reserve(<void **> &self.table.ends, &self.table.end_capacity, size, sizeof(uint64_t))
        return make_room(&self.table, pieces)

    cdef int add_all(self, PieceTable other, const int64_t *counts) except -1:
        """Count the pieces of another table, for which there is room."""
        cdef size_t first = 0
        cdef size_t start = 0
        cdef size_t count, i
        while first < other.table.count:
            count = min(other.table.count - first, <size_t> CHUNK)
            for i in range(count):
                self.chunk.starts[i] = start
                start = <size_t> other.table.ends[first + i]
                self.chunk.ends[i] = start
            self.add_pieces(other.table.bytes, other.table.size, count, counts + first)
            first += count
        return 0

    cdef int check_memory(self, size_t pieces, size_t bytes) except -1:
        """MemoryError if so many pieces more, of so many bytes, may take too much."""
        cdef size_t needed = counts_size(&self.table, pieces)
        if self.table.size + bytes > self.table.capacity:
            needed += self.table.size + bytes - self.table.capacity
        if needed > max(self.memory_bytes, <size_t> arguments.SMALL_TABLE):
            raise arguments.too_many_pieces(needed, self.memory_bytes)
        return 0

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

        ValueError if a count would pass 2**63 - 1; MemoryError.
        """
        cdef size_t count = ends.shape[0]
        if count:
            self.add_flat(&data[0], data.shape[0], &ends[0], &counts[0], 0, count)

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
            self.check_memory(count, <size_t> ends[first + count - 1] - start)
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
        while <size_t> len(counts) != self.table.count:  # making it has let other threads run
            counts = np.empty(self.table.count, np.int64)
        self.write_counts(counts)
        return counts

    cdef int write_counts(self, int64_t[::1] counts) except -1:
        cdef const CountSlot *slot
        cdef size_t i
        for i in range(<size_t> 1 << self.table.bits):
            slot = &self.table.slots[i]
            if slot.key.high:
                counts[slot.number] = slot.count
        return 0

    def arrays(self):
        """The bytes of all pieces, `uint8` [bytes]; where each ends in these, `uint64` [n]; and
        how often it occurs, `int64` [n]."""
        cdef uint8_t[::1] data
        cdef uint64_t[::1] ends
        while True:
            found = (
                np.empty(self.table.size, np.uint8),
                np.empty(self.table.count, np.uint64),
                np.empty(self.table.count, np.int64),
            )
            data, ends, _ = found
            if <size_t> data.shape[0] == self.table.size and (
                <size_t> ends.shape[0] == self.table.count
            ):
                break
        if self.table.count:
            memcpy(&data[0], self.table.bytes, self.table.size)
            memcpy(&ends[0], self.table.ends, self.table.count * sizeof(uint64_t))
        self.write_counts(found[2])
        return found

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
        """The counts by piece; of a table that is not shared."""
        cdef const int64_t[::1] counts = self.counts()
        cdef size_t number
        found = {}
        for number in range(self.table.count):
            found[self.piece(number)] = counts[number]
            if number % (1 << 16) == 0:
                PyErr_CheckSignals()
        return found
