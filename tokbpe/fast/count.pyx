"""Counting, compiled: the twins of `count_pieces`, `count_pairs` and `merge_pair` in
`tokbpe.reference`.

Pieces and pairs are kept in the order in which they are first met, each with its count, beside
a hash table of their numbers.

Tried and dropped for pieces, English and mixed text, 20 and 10 MB: slots of 32 bytes with the
short pieces in them, 5 to 10 % faster, with a second way for the long ones; a part of the hash
in each slot, up to 5 % faster; pieces scanned, hashed with a prefetch and added 64 at a time,
no faster.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from tokbpe import arguments, reference

from .memory cimport reserve, resized
from .pairs cimport PairTable, close_pair_table, make_pair, open_pair_table, put_pair
from .special cimport as_special_table
from .special import cut_special
from .split cimport (
    NOT_COMPILED,
    WHOLE,
    Scanner,
    extend_text,
    next_piece,
    open_scanner,
    scanner_kind,
)

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_bytes(const uint8_t *bytes, size_t size) noexcept

cdef extern from "Python.h":
    bint PyLong_CheckExact(object value)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow)

# How many bytes or pairs are counted between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000

SLICE_SIZE = SLICE


# Pieces


cdef struct Piece:
    uint64_t hash
    size_t start  # in the table's bytes
    size_t size
    int64_t count


@cython.final
cdef class PieceTable:
    """Pieces with their counts, in the order of their first appearance (point 4)."""

    cdef Piece *pieces
    cdef size_t piece_count, piece_capacity
    cdef uint8_t *bytes  # of all pieces, one after another
    cdef size_t byte_count, byte_capacity
    cdef size_t *slots  # the number of a piece, from 1; 0: the slot is free
    cdef int bits  # there are 2**bits slots, filled to half at most

    def __cinit__(self):
        self.renew_slots(10)

    def __dealloc__(self):
        free(self.pieces)
        free(self.bytes)
        free(self.slots)

    cdef int add_document(self, bytes document, int kind) except -1:
        """Count the pieces that a scanner finds."""
        cdef Scanner scanner
        cdef bint more = True
        open_scanner(
            &scanner,
            kind,
            <const uint8_t *> PyBytes_AS_STRING(document),
            PyBytes_GET_SIZE(document),
            False,
        )
        while more:
            with nogil:
                more = self.add_slice(&scanner)
            PyErr_CheckSignals()
        return 0

    cdef bint add_slice(self, Scanner *scanner) except -1 nogil:
        """Count some pieces; False at the end of the document."""
        cdef size_t start, end
        cdef size_t first = scanner.position
        while scanner.position - first < SLICE:
            if not scanner.text_ended and not extend_text(scanner, SLICE):
                return True
            if not next_piece(scanner, &start, &end):
                return False
            self.add(scanner.data + start, end - start)
        return True

    cdef int add(self, const uint8_t *piece, size_t size) except -1 nogil:
        """Count one piece."""
        cdef uint64_t hash = tokbpe_hash_bytes(piece, size)
        cdef size_t mask = (<size_t> 1 << self.bits) - 1
        cdef size_t place = <size_t> (hash >> (64 - self.bits))
        cdef Piece *known
        while self.slots[place]:
            known = &self.pieces[self.slots[place] - 1]
            if (
                known.hash == hash
                and known.size == size
                and memcmp(self.bytes + known.start, piece, size) == 0
            ):
                known.count += 1
                return 0
            place = (place + 1) & mask
        reserve(<void **> &self.bytes, &self.byte_capacity, self.byte_count + size, 1)
        reserve(<void **> &self.pieces, &self.piece_capacity, self.piece_count + 1, sizeof(Piece))
        memcpy(self.bytes + self.byte_count, piece, size)
        self.pieces[self.piece_count] = Piece(hash, self.byte_count, size, 1)
        self.byte_count += size
        self.piece_count += 1
        self.slots[place] = self.piece_count
        if self.piece_count > mask // 2:
            self.renew_slots(self.bits + 1)
        return 0

    cdef int renew_slots(self, int bits) except -1 nogil:
        """Give the pieces 2**bits slots."""
        cdef size_t count = <size_t> 1 << bits
        cdef size_t number, place
        cdef size_t *slots = <size_t *> resized(NULL, count, sizeof(size_t))
        if slots == NULL:
            with gil:
                raise MemoryError(f"no memory for a table of {count} slots")
        memset(slots, 0, count * sizeof(size_t))
        for number in range(self.piece_count):
            place = <size_t> (self.pieces[number].hash >> (64 - bits))
            while slots[place]:
                place = (place + 1) & (count - 1)
            slots[place] = number + 1
        free(self.slots)
        self.slots = slots
        self.bits = bits
        return 0

    cdef dict as_dict(self):
        cdef size_t number
        cdef Piece piece
        counts = {}
        for number in range(self.piece_count):
            piece = self.pieces[number]
            key = PyBytes_FromStringAndSize(<const char *> self.bytes + piece.start, piece.size)
            counts[key] = piece.count
            if number % (1 << 16) == 0:
                PyErr_CheckSignals()
        return counts


def count_pieces(corpus, pattern=None, special=None):
    """Count equal pieces of all documents, in order of first appearance (point 4).

    (["low lower", "low"], "gpt2") -> {b"low": 2, b" lower": 1}
    """
    cdef PieceTable table = PieceTable()
    cdef int kind = WHOLE
    cdef bint kind_known = False
    # Both are looked at where the reference does, behind the first document and the first part.
    spellings = special
    for document in arguments.documents(corpus):
        spellings = as_special_table(spellings)
        for part, special_id in cut_special(document, spellings):
            if special_id is not None:
                continue
            if not kind_known:
                kind = scanner_kind(pattern)
                kind_known = True
            if kind == NOT_COMPILED:
                for piece in reference.split(part, pattern):
                    table.add(<const uint8_t *> PyBytes_AS_STRING(piece), PyBytes_GET_SIZE(piece))
            else:
                table.add_document(part, kind)
    return table.as_dict()


# Pairs. What is not a plain id is left to the reference, which takes any object: a plain id is
# an `int` below 2**32 - 1 in a list or a tuple, or a byte.


cdef struct PairCount:
    uint64_t pair
    int64_t count


@cython.final
cdef class PairCounts:
    """Pairs with their counts, in the order in which they are first met (point 5)."""

    cdef PairTable numbers  # pair -> its number in `counts`
    cdef PairCount *counts
    cdef size_t size, capacity
    cdef int64_t total  # of all counts
    cdef uint32_t *row  # the sequence that is being counted
    cdef size_t row_capacity

    def __cinit__(self):
        open_pair_table(&self.numbers, 10)

    def __dealloc__(self):
        close_pair_table(&self.numbers)
        free(self.counts)
        free(self.row)

    cdef bint add(self, sequence, weight) except -1:
        """Count the pairs of a sequence; False, and nothing done, where ids are not plain, or
        the weight or a sum is beyond 64 bits."""
        cdef Py_ssize_t ids
        cdef int64_t times
        cdef size_t place = 0, stop, places
        if not plain_number(weight, &times) or times < 0 or not plain_sequence(sequence):
            return False
        ids = self.read(sequence)
        if ids < 0:
            return False
        places = ids - 1 if ids else 0
        if times and places > <size_t> ((INT64_MAX - self.total) // times):
            return False
        # Numbers in the table have 32 bits.
        if self.size + places >= UINT32_MAX:
            return False
        self.total += times * <int64_t> places
        while place < places:
            stop = min(places, place + SLICE)
            with nogil:
                self.add_places(place, stop, times)
            PyErr_CheckSignals()
            place = stop
        return True

    cdef Py_ssize_t read(self, sequence) except -2:
        """Copy the ids of a sequence to `row`; how many, or -1 where they are not plain."""
        cdef Py_ssize_t size = 0
        cdef int64_t id
        reserve(<void **> &self.row, &self.row_capacity, len(sequence), sizeof(uint32_t))
        for symbol in sequence:
            if not plain_number(symbol, &id) or not 0 <= id < UINT32_MAX:
                return -1
            self.row[size] = <uint32_t> id
            size += 1
        return size

    cdef int add_places(self, size_t first, size_t stop, int64_t times) except -1 nogil:
        cdef size_t place
        cdef uint64_t pair
        cdef uint32_t number
        for place in range(first, stop):
            pair = make_pair(self.row[place], self.row[place + 1])
            number = put_pair(&self.numbers, pair, <uint32_t> self.size)[0]
            if number == self.size:
                reserve(
                    <void **> &self.counts, &self.capacity, self.size + 1, sizeof(PairCount)
                )
                self.counts[number] = PairCount(pair, 0)
                self.size += 1
            self.counts[number].count += times
        return 0

    cdef dict as_dict(self):
        cdef size_t number
        cdef PairCount counted
        counts = {}
        for number in range(self.size):
            counted = self.counts[number]
            counts[counted.pair >> 32, counted.pair & UINT32_MAX] = counted.count
            if number % (1 << 16) == 0:
                PyErr_CheckSignals()
        return counts


def count_pairs(sequences, weights):
    """Count neighbors, in the order in which they are first met (point 5).

    ([[1, 1, 1, 2], [1, 2]], [1, 5]) -> {(1, 1): 2, (1, 2): 6}
    """
    cdef PairCounts table = PairCounts()
    counts = None
    for sequence, weight in zip(sequences, weights):
        if counts is None and table.add(sequence, weight):
            continue
        if counts is None:
            counts = table.as_dict()
        for pair, count in reference.count_pairs([sequence], [weight]).items():
            counts[pair] = counts.get(pair, 0) + count
    return table.as_dict() if counts is None else counts


def merge_pair(sequence, pair, new_id):
    """Replace a pair from left to right, without overlap (point 8).

    ([1, 1, 1, 2], (1, 1), 3) -> [3, 1, 2]
    """
    merged = plain_merge(sequence, pair, new_id)
    return reference.merge_pair(sequence, pair, new_id) if merged is None else merged


cdef list plain_merge(sequence, pair, new_id):
    """The merged sequence; None where ids are not plain."""
    cdef int64_t left, right, id, new_number
    cdef int64_t previous = -1  # no id
    cdef list merged = []
    if not (
        plain_sequence(sequence)
        and type(pair) is tuple
        and len(pair) == 2
        and plain_number(pair[0], &left)
        and plain_number(pair[1], &right)
        and plain_number(new_id, &new_number)
        and left >= 0
    ):
        return None
    for symbol in sequence:
        if not plain_number(symbol, &id):
            return None
        if id == right and previous == left:
            merged[len(merged) - 1] = new_id
            previous = new_number
        else:
            merged.append(symbol)
            previous = id
    return merged


cdef bint plain_sequence(sequence) noexcept:
    return type(sequence) is list or type(sequence) is tuple or type(sequence) is bytes


cdef bint plain_number(value, int64_t *number) noexcept:
    """Whether this is an `int` of 64 bits; then its value is in `number`."""
    cdef int overflow
    if not PyLong_CheckExact(value):
        return False
    number[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0
