"""Counting pairs and merging one, compiled: the twins of `count_pairs` and `merge_pair` in
`tokbpe.reference`.

Pairs are kept in the order in which they are first met, each with its count, beside a hash table
of their numbers. What is not a plain id is left to the reference, which takes any object: a plain
id is an `int` below 2**32 - 1 in a list or a tuple, or a byte.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint32_t, uint64_t

from tokbpe import reference

from .memory cimport free, reserve
from .pairs cimport PairTable, close_pair_table, make_pair, open_pair_table, put_pair
from .seeds cimport set_seeds

cdef extern from "Python.h":
    bint PyLong_CheckExact(object value)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow)

set_seeds()

# How many pairs are counted between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000


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
            if size % SLICE == 0:
                PyErr_CheckSignals()
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
