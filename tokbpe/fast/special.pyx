"""Finding special tokens in text, compiled: the twin of `cut_special` in `tokbpe.special`.

The spellings are a tree. It is walked anew from each byte that begins a spelling, so the time is
that of the text times the longest spelling where many long beginnings of one do not end well.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free

from tokbpe import arguments

from .memory cimport reserve
from .pairs cimport (
    NOT_FOUND,
    close_pair_table,
    find_pair,
    make_pair,
    open_pair_table,
    put_pair,
)

# How many steps are made between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000


@cython.final
cdef class SpecialTable:
    """What `cut_special` looks for."""

    def __cinit__(self, special):
        self.spellings = arguments.special_spellings(special)
        open_pair_table(&self.children, 6)
        self.add_node()
        for spelling, id in self.spellings.items():
            self.add(spelling, id)

    def __dealloc__(self):
        close_pair_table(&self.children)
        free(self.ids)

    cdef uint32_t add_node(self) except? 0:
        reserve(<void **> &self.ids, &self.capacity, self.node_count + 1, sizeof(uint32_t))
        self.ids[self.node_count] = NOT_FOUND
        self.node_count += 1
        return <uint32_t> (self.node_count - 1)

    cdef int add(self, bytes spelling, uint32_t id) except -1:
        cdef const uint8_t *data = <const uint8_t *> PyBytes_AS_STRING(spelling)
        cdef uint32_t node = 0
        cdef Py_ssize_t i
        cdef uint32_t child
        self.begins[data[0]] = True
        self.longest = max(self.longest, <size_t> len(spelling))
        for i in range(len(spelling)):
            child = put_pair(
                &self.children, make_pair(node, data[i]), <uint32_t> self.node_count)[0]
            if child == self.node_count:
                self.add_node()
            node = child
        self.ids[node] = id
        return 0

    cdef size_t match(self, const uint8_t *data, size_t size, uint32_t *id) noexcept nogil:
        """The length of the longest spelling that the data begin with; 0 if there is none."""
        cdef size_t i
        cdef size_t length = 0
        cdef uint32_t node = 0
        for i in range(size):
            node = find_pair(&self.children, make_pair(node, data[i]))
            if node == NOT_FOUND:
                break
            if self.ids[node] != NOT_FOUND:
                length = i + 1
                id[0] = self.ids[node]
        return length

    cdef size_t find(
        self, const uint8_t *data, size_t start, size_t size, size_t *length, uint32_t *id
    ) except? 0 nogil:
        """Where the next spelling begins, from `start` on, and its length; `size` if none does."""
        cdef size_t steps = 0
        length[0] = 0
        while start < size:
            steps += 1
            if self.begins[data[start]]:
                length[0] = self.match(data + start, size - start, id)
                if length[0]:
                    return start
                steps += self.longest
            if steps >= SLICE:
                steps = 0
                with gil:
                    PyErr_CheckSignals()
            start += 1
        return size


cdef SpecialTable as_special_table(special):
    """The table of a mapping from spellings to ids; None if it is empty or None."""
    cdef SpecialTable table
    if special is None:
        return None
    table = special if isinstance(special, SpecialTable) else SpecialTable(special)
    return table if table.spellings else None


def special_table(special):
    """Prepare `encode` and `count_pieces` to cut out these spellings: a mapping to their ids."""
    return SpecialTable(special)


def cut_special(document, special):
    """Cut out special tokens: the longest at the leftmost place. Other parts have no id.

    (b"a<e>", {b"<e>": 7}) -> [(b"a", None), (b"<e>", 7)]
    """
    cdef bytes data = arguments.document_bytes(document)
    cdef SpecialTable table = as_special_table(special)
    cdef const uint8_t *start = <const uint8_t *> PyBytes_AS_STRING(data)
    cdef size_t size = len(data)
    cdef size_t place, length
    cdef size_t done = 0
    cdef uint32_t id = 0
    if table is None:
        return [(data, None)]
    parts = []
    while done < size:
        with nogil:
            place = table.find(start, done, size, &length, &id)
        if place > done:
            parts.append((data[done:place], None))
        if length:
            parts.append((data[place : place + length], id))
        done = place + length
        if len(parts) % 4096 == 0:
            PyErr_CheckSignals()
    return parts
