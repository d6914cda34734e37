"""Encoding, compiled: the twin of `encode` in `tokbpe.reference`.

Each piece is merged where it lies in a scratch array. A short one by the reference's own loop,
with the ids that neighbors would merge to kept beside it; a long one with links between the
tokens and a heap of the merges that are possible, which is O(n log n) in its length.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove

from tokbpe import arguments, patterns, reference

from .memory cimport reserve
from .pairs cimport (
    NOT_FOUND as NONE,  # no id, no merge, no neighbor
    PairTable,
    close_pair_table,
    find_pair,
    make_pair,
    open_pair_table,
    put_pair,
)
from .split cimport NOT_COMPILED, Scanner, next_piece, open_scanner, scanner_kind

# Pieces of more symbols than this are merged with a heap.
cdef enum:
    SHORT_PIECE = 24

# How many bytes are encoded between two looks for signals, at least.
cdef enum:
    SLICE = 1_000_000

SHORT_PIECE_SYMBOLS = SHORT_PIECE


@cython.final
cdef class EncodingTable:
    """What `encode` looks up. It never changes, so threads may share it."""

    cdef PairTable merges  # pair -> id; the lower, the earlier learned
    cdef uint32_t byte_ids[256]
    cdef dict symbols
    cdef object pattern
    cdef int kind

    def __cinit__(self, alphabet, merges, pattern=None):
        cdef uint32_t next_id
        cdef uint32_t i
        self.symbols, pairs = arguments.encoding_parts(alphabet, merges)
        next_id = <uint32_t> len(alphabet)
        open_pair_table(&self.merges, 10)
        for left, right in pairs:
            put_pair(&self.merges, make_pair(left, right), next_id)
            next_id += 1
        for i in range(256):
            self.byte_ids[i] = NONE
        for byte, id in self.symbols.items():
            self.byte_ids[<uint8_t> byte] = id
        self.pattern = patterns.lossless(pattern)
        self.kind = scanner_kind(self.pattern)

    def __dealloc__(self):
        close_pair_table(&self.merges)


# A token of a long piece; dead tokens were merged into their left neighbor.
cdef struct Token:
    uint32_t id
    uint32_t previous
    uint32_t next


@cython.final
cdef class Encoding:
    """The ids of one call, and the scratch memory that they are made in."""

    cdef EncodingTable table
    cdef uint32_t *ids
    cdef size_t size
    cdef size_t capacity
    cdef Token *tokens
    cdef size_t token_capacity
    cdef uint64_t *heap  # id << 32 | place: the earliest learned first, then the leftmost
    cdef size_t heap_size
    cdef size_t heap_capacity

    def __cinit__(self, EncodingTable table not None):
        self.table = table

    def __dealloc__(self):
        free(self.ids)
        free(self.tokens)
        free(self.heap)

    cdef int add_document(self, bytes data) except -1:
        """Encode by a compiled scanner."""
        cdef Scanner scanner
        cdef const uint8_t *start = <const uint8_t *> PyBytes_AS_STRING(data)
        cdef bint more = len(data) > 0
        open_scanner(&scanner, self.table.kind, start, len(data))
        while more:
            with nogil:
                more = self.add_slice(&scanner, start)
            PyErr_CheckSignals()
        return 0

    cdef int add_pieces(self, list pieces) except -1:
        """Encode pieces that the reference's splitter cut."""
        cdef size_t position = 0
        cdef const uint8_t *start
        cdef size_t size
        for piece in pieces:
            start = <const uint8_t *> PyBytes_AS_STRING(piece)
            size = len(piece)
            with nogil:
                self.add_piece(start, size, position)
            position += size
            PyErr_CheckSignals()
        return 0

    cdef bint add_slice(self, Scanner *scanner, const uint8_t *data) except -1 nogil:
        """Encode some pieces; False at the end of the document."""
        cdef size_t start, end
        cdef size_t done = 0
        while done < SLICE:
            if not next_piece(scanner, &start, &end):
                return False
            self.add_piece(data + start, end - start, start)
            done += end - start
        return True

    cdef int add_piece(self, const uint8_t *piece, size_t size, size_t position) except -1 nogil:
        """Encode a piece that stands at `position` of the document."""
        cdef size_t i
        cdef uint32_t *ids
        reserve(<void **> &self.ids, &self.capacity, self.size + size, sizeof(uint32_t))
        ids = self.ids + self.size
        for i in range(size):
            ids[i] = self.table.byte_ids[piece[i]]
            if ids[i] == NONE:
                with gil:
                    raise arguments.absent_byte(piece[i], position + i, self.table.symbols)
        if size <= SHORT_PIECE:
            self.size += merge_short(&self.table.merges, ids, <uint32_t> size)
        else:
            self.size += self.merge_long(ids, size)
        return 0

    cdef size_t merge_long(self, uint32_t *ids, size_t size) except 0 nogil:
        """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
        cdef const PairTable *merges = &self.table.merges
        cdef Token *tokens
        cdef uint32_t place, right, id
        cdef size_t count = 0
        if size >= UINT32_MAX:
            with gil:
                raise ValueError(
                    f"a piece of {size} bytes; the longest that can be encoded is {UINT32_MAX - 1}"
                )
        reserve(<void **> &self.tokens, &self.token_capacity, size, sizeof(Token))
        reserve(<void **> &self.heap, &self.heap_capacity, size, sizeof(uint64_t))
        tokens = self.tokens
        for place in range(<uint32_t> size):
            tokens[place] = Token(ids[place], place - 1 if place else NONE,
                                  place + 1 if place + 1 < size else NONE)
        self.heap_size = 0
        for place in range(<uint32_t> size):
            self.offer(place)
        while self.heap_size:
            id = <uint32_t> (self.heap[0] >> 32)
            place = <uint32_t> self.heap[0]
            self.drop_first()
            right = tokens[place].next
            # The neighbors may have merged otherwise since this merge was offered.
            if (tokens[place].id == NONE or right == NONE
                    or find_pair(merges, make_pair(tokens[place].id, tokens[right].id)) != id):
                continue
            tokens[place].id = id
            tokens[place].next = tokens[right].next
            tokens[right].id = NONE
            if tokens[right].next != NONE:
                tokens[tokens[right].next].previous = place
            self.offer(place)
            if tokens[place].previous != NONE:
                self.offer(tokens[place].previous)
        place = 0
        while place != NONE:
            ids[count] = tokens[place].id
            count += 1
            place = tokens[place].next
        return count

    cdef int offer(self, uint32_t place) except -1 nogil:
        """Queue the merge of a token with its right neighbor, if there is one."""
        cdef uint32_t right = self.tokens[place].next
        cdef uint32_t id
        cdef uint64_t item
        cdef size_t child, parent
        if right == NONE:
            return 0
        id = find_pair(&self.table.merges, make_pair(self.tokens[place].id, self.tokens[right].id))
        if id == NONE:
            return 0
        item = make_pair(id, place)
        reserve(<void **> &self.heap, &self.heap_capacity, self.heap_size + 1, sizeof(uint64_t))
        child = self.heap_size
        self.heap_size += 1
        while child > 0:
            parent = (child - 1) // 2
            if self.heap[parent] <= item:
                break
            self.heap[child] = self.heap[parent]
            child = parent
        self.heap[child] = item
        return 0

    cdef void drop_first(self) noexcept nogil:
        cdef uint64_t item
        cdef size_t parent = 0
        cdef size_t child = 1
        self.heap_size -= 1
        item = self.heap[self.heap_size]
        while child < self.heap_size:
            if child + 1 < self.heap_size and self.heap[child + 1] < self.heap[child]:
                child += 1
            if item <= self.heap[child]:
                break
            self.heap[parent] = self.heap[child]
            parent = child
            child = 2 * parent + 1
        self.heap[parent] = item

    cdef list result(self):
        cdef size_t i
        return [self.ids[i] for i in range(self.size)]


cdef uint32_t merge_short(
    const PairTable *merges,
    uint32_t *ids,  # IN, OUT
    uint32_t size,
) noexcept nogil:
    """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
    cdef uint32_t merged[SHORT_PIECE]  # the id that a token and its right neighbor merge to
    cdef uint32_t i, best
    for i in range(1, size):
        merged[i - 1] = find_pair(merges, make_pair(ids[i - 1], ids[i]))
    while size > 1:
        best = 0
        for i in range(1, size - 1):
            if merged[i] < merged[best]:
                best = i
        if merged[best] == NONE:
            break
        ids[best] = merged[best]
        size -= 1
        memmove(ids + best + 1, ids + best + 2, (size - best - 1) * sizeof(uint32_t))
        if best + 1 < size:
            memmove(merged + best, merged + best + 1, (size - best - 1) * sizeof(uint32_t))
            merged[best] = find_pair(merges, make_pair(ids[best], ids[best + 1]))
        if best > 0:
            merged[best - 1] = find_pair(merges, make_pair(ids[best - 1], ids[best]))
    return size


def encoding_table(alphabet, merges, pattern=None):
    """Prepare `encode`. The alphabet is single bytes; merge number n has the id len(alphabet) + n."""
    return EncodingTable(alphabet, merges, pattern)


def encode(text, EncodingTable table not None):
    """The ids of a document (point 9).

    The twin of `tokbpe.reference.encode`. It runs without the GIL and answers Ctrl-C.
    """
    cdef Encoding encoding = Encoding(table)
    if table.kind == NOT_COMPILED:
        encoding.add_pieces(reference.split(text, table.pattern))
    else:
        encoding.add_document(arguments.document_bytes(text))
    return encoding.result()
