"""Finding special tokens in text, compiled: the twin of `cut_special` in `tokbpe.special`."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
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
    ) noexcept nogil:
        """Where the next spelling begins, from `start` on, and its length; `size` if none does."""
        while start < size:
            if self.begins[data[start]]:
                length[0] = self.match(data + start, size - start, id)
                if length[0]:
                    return start
            start += 1
        length[0] = 0
        return size


cdef SpecialTable as_special_table(special):
    """The table of a mapping from spellings to ids; None if it is empty or None."""
    if isinstance(special, SpecialTable):
        return special
    return SpecialTable(special) if special else None


def special_table(special):
    """Prepare `encode` and `count_pieces` to cut out these spellings: a mapping to their ids."""
    return SpecialTable(special)


def cut_special(bytes data not None, special):
    """Cut out special tokens: the longest at the leftmost place. Other parts have no id.

    (b"a<e>", {b"<e>": 7}) -> [(b"a", None), (b"<e>", 7)]
    """
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
    return parts
