"""Encoding, compiled: the twin of `encode` in `tokbpe.reference`.

Each piece is merged where it lies in a scratch array. A short one by the reference's own loop,
with the ids that neighbors would merge to kept beside it; a long one with links between the
tokens and a heap of the merges that are possible, which is O(n log n) in its length.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove

from tokbpe import arguments, reference, tables
from tokbpe.symbols import MARKER

from .memory cimport reserve, resized
from .pairs cimport (
    NOT_FOUND as NONE,  # no id, no merge, no neighbor
    PairTable,
    close_pair_table,
    find_pair,
    make_pair,
    open_pair_table,
    put_pair,
)
from .special cimport SpecialTable, as_special_table
from .split cimport (
    NOT_COMPILED,
    Scanner,
    next_piece,
    open_scanner,
    scanner_kind,
    utf8_width,
)

# Pieces of more symbols than this are merged with a heap.
cdef enum:
    SHORT_PIECE = 24

# How many bytes, or steps, are worked on between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000

SHORT_PIECE_SYMBOLS = SHORT_PIECE


cdef enum Unit:
    BYTE
    CHARACTER
    WORD

UNIT_NUMBERS = {"byte": BYTE, "character": CHARACTER, "word": WORD}


@cython.final
cdef class EncodingTable:
    """What `encode` looks up. It never changes, so threads may share it."""

    cdef PairTable ranks  # pair -> rank of its merge; the lower, the earlier learned
    cdef uint32_t *merge_ids  # by rank
    cdef uint32_t byte_ids[256]
    cdef PairTable character_ids  # code point and whether it ends a word -> id
    cdef uint32_t unknown  # NONE: a symbol that the alphabet lacks is an error
    cdef dict symbols
    cdef object pattern
    cdef int kind
    cdef int unit

    def __cinit__(
        self, alphabet, merges, pattern=None, merge_ids=None, unit="byte", unknown=None
    ):
        checked = tables.encoding_table(alphabet, merges, pattern, merge_ids, unit, unknown)
        self.symbols = checked.symbols
        self.pattern = checked.pattern
        self.kind = scanner_kind(checked.pattern)
        self.unit = UNIT_NUMBERS[unit]
        self.unknown = NONE if checked.unknown is None else <uint32_t> checked.unknown
        self.read_symbols()
        self.read_merges(checked.merges)

    def __dealloc__(self):
        close_pair_table(&self.ranks)
        close_pair_table(&self.character_ids)
        free(self.merge_ids)

    cdef int read_symbols(self) except -1:
        cdef uint32_t i
        cdef bint last
        for i in range(256):
            self.byte_ids[i] = self.unknown
        open_pair_table(&self.character_ids, 6)
        for symbol, id in self.symbols.items():
            if self.unit == BYTE:
                self.byte_ids[<uint8_t> symbol[0]] = id
            else:
                last = self.unit == WORD and symbol.endswith(MARKER)
                character = symbol[: len(symbol) - 1] if last else symbol
                put_pair(&self.character_ids, make_pair(ord(character.decode("utf-8")), last), id)
        return 0

    cdef int read_merges(self, dict merges) except -1:
        cdef uint32_t rank
        open_pair_table(&self.ranks, 10)
        self.merge_ids = <uint32_t *> resized(NULL, len(merges), sizeof(uint32_t))
        if self.merge_ids == NULL:
            raise MemoryError(f"no memory for {len(merges)} merges")
        for (left, right), (rank, id) in merges.items():
            put_pair(&self.ranks, make_pair(left, right), rank)
            self.merge_ids[rank] = id
        return 0

    cdef inline uint32_t rank(self, uint32_t left, uint32_t right) noexcept nogil:
        """The rank of the merge of two neighbors, NONE if there is none."""
        return find_pair(&self.ranks, make_pair(left, right))

    cdef size_t read_bytes(
        self,
        const uint8_t *piece,  # IN
        size_t size,
        uint32_t *ids,  # OUT
    ) noexcept nogil:
        """The ids of the bytes of a piece, up to the first that has none; how many there are."""
        cdef size_t i
        for i in range(size):
            ids[i] = self.byte_ids[piece[i]]
            if ids[i] == NONE:
                return i
        return size

    cdef size_t read_characters(
        self,
        const uint8_t *piece,  # IN
        size_t size,
        uint32_t *ids,  # OUT
    ) noexcept nogil:
        """The ids of the characters of a piece; how many there are."""
        cdef size_t count = 0
        cdef size_t place = 0
        cdef size_t width
        cdef uint32_t id
        while place < size:
            width = utf8_width(piece + place, size - place)
            id = NONE
            if width:
                id = find_pair(
                    &self.character_ids,
                    make_pair(
                        code_point(piece + place, width),
                        self.unit == WORD and place + width == size,
                    ),
                )
            ids[count] = self.unknown if id == NONE else id
            count += 1
            place += width if width else 1
        return count


cdef inline uint32_t code_point(const uint8_t *p, size_t width) noexcept nogil:
    """The UTF-8 character of so many bytes."""
    cdef size_t i
    cdef uint32_t code = p[0] if width == 1 else p[0] & (0x7F >> width)
    for i in range(1, width):
        code = code << 6 | p[i] & 0x3F
    return code


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
    cdef uint64_t *heap  # rank << 32 | place: the earliest learned first, then the leftmost
    cdef size_t heap_size
    cdef size_t heap_capacity

    def __cinit__(self, EncodingTable table not None):
        self.table = table

    def __dealloc__(self):
        free(self.ids)
        free(self.tokens)
        free(self.heap)

    cdef int add_text(self, bytes data, SpecialTable special) except -1:
        """Encode a document, special tokens cut out first (point 11)."""
        cdef const uint8_t *start = <const uint8_t *> PyBytes_AS_STRING(data)
        cdef size_t size = len(data)
        cdef size_t done = 0
        cdef size_t length = 0
        cdef size_t place = size
        cdef size_t steps = 0
        cdef uint32_t id = 0
        while done < size:
            if special is not None:
                with nogil:
                    place = special.find(start, done, size, &length, &id)
            if self.table.kind == NOT_COMPILED:
                self.add_pieces(reference.split(data[done:place], self.table.pattern), done)
            else:
                self.add_part(start, done, place)
            if length:
                reserve(<void **> &self.ids, &self.capacity, self.size + 1, sizeof(uint32_t))
                self.ids[self.size] = id
                self.size += 1
            done = place + length
            steps += 1
            if steps % SLICE == 0:
                PyErr_CheckSignals()
        return 0

    cdef int add_part(self, const uint8_t *data, size_t first, size_t last) except -1:
        """Encode data[first:last] by a compiled scanner."""
        cdef Scanner scanner
        cdef bint more = first < last
        open_scanner(&scanner, self.table.kind, data + first, last - first)
        while more:
            with nogil:
                more = self.add_slice(&scanner, first)
            PyErr_CheckSignals()
        return 0

    cdef int add_pieces(self, list pieces, size_t position) except -1:
        """Encode pieces that the reference's splitter cut, the first of which is at `position`."""
        cdef const uint8_t *start
        cdef size_t size
        for piece in pieces:
            start = <const uint8_t *> PyBytes_AS_STRING(piece)
            size = PyBytes_GET_SIZE(piece)
            with nogil:
                self.add_piece(start, size, position)
            position += size
            PyErr_CheckSignals()
        return 0

    cdef bint add_slice(self, Scanner *scanner, size_t position) except -1 nogil:
        """Encode some pieces of what begins at `position`; False when there are no more."""
        cdef size_t start, end
        cdef size_t done = 0
        while done < SLICE:
            if not next_piece(scanner, &start, &end):
                return False
            self.add_piece(scanner.data + start, end - start, position + start)
            done += end - start
        return True

    cdef int add_piece(self, const uint8_t *piece, size_t size, size_t position) except -1 nogil:
        """Encode a piece that stands at `position` of the document."""
        cdef size_t count
        cdef uint32_t *ids
        reserve(<void **> &self.ids, &self.capacity, self.size + size, sizeof(uint32_t))
        ids = self.ids + self.size
        if self.table.unit == BYTE:
            count = self.table.read_bytes(piece, size, ids)
            if count < size:
                with gil:
                    raise arguments.absent_byte(piece[count], position + count, self.table.symbols)
        else:
            count = self.table.read_characters(piece, size, ids)
        if self.table.ranks.used == 0:
            self.size += count
        elif count <= SHORT_PIECE:
            self.size += merge_short(self.table, ids, <uint32_t> count)
        else:
            self.size += self.merge_long(ids, count)
        return 0

    cdef size_t merge_long(self, uint32_t *ids, size_t size) except 0 nogil:
        """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
        cdef Token *tokens
        cdef uint32_t place, right, rank
        cdef size_t count = 0
        cdef size_t steps = 0
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
            steps = look_for_signals(steps)
        while self.heap_size:
            steps = look_for_signals(steps)
            rank = <uint32_t> (self.heap[0] >> 32)
            place = <uint32_t> self.heap[0]
            self.drop_first()
            right = tokens[place].next
            # The neighbors may have merged otherwise since this merge was offered.
            if (
                tokens[place].id == NONE
                or right == NONE
                or self.table.rank(tokens[place].id, tokens[right].id) != rank
            ):
                continue
            tokens[place].id = self.table.merge_ids[rank]
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
        cdef uint32_t rank
        cdef uint64_t item
        cdef size_t child, parent
        if right == NONE:
            return 0
        rank = self.table.rank(self.tokens[place].id, self.tokens[right].id)
        if rank == NONE:
            return 0
        item = make_pair(rank, place)
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
        cdef list ids = []
        cdef size_t i
        for i in range(self.size):
            if i % SLICE == SLICE - 1:
                PyErr_CheckSignals()
            ids.append(self.ids[i])
        return ids


cdef inline size_t look_for_signals(size_t steps) except 0 nogil:
    """One step more; every so many steps a look for signals."""
    if steps % SLICE == SLICE - 1:
        with gil:
            PyErr_CheckSignals()
    return steps + 1


cdef uint32_t merge_short(
    EncodingTable table,
    uint32_t *ids,  # IN, OUT
    uint32_t size,
) noexcept nogil:
    """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
    cdef uint32_t ranks[SHORT_PIECE]  # of the merge of a token and its right neighbor
    cdef uint32_t i, best
    for i in range(1, size):
        ranks[i - 1] = table.rank(ids[i - 1], ids[i])
    while size > 1:
        best = 0
        for i in range(1, size - 1):
            if ranks[i] < ranks[best]:
                best = i
        if ranks[best] == NONE:
            break
        ids[best] = table.merge_ids[ranks[best]]
        size -= 1
        memmove(ids + best + 1, ids + best + 2, (size - best - 1) * sizeof(uint32_t))
        if best + 1 < size:
            memmove(ranks + best, ranks + best + 1, (size - best - 1) * sizeof(uint32_t))
            ranks[best] = table.rank(ids[best], ids[best + 1])
        if best > 0:
            ranks[best - 1] = table.rank(ids[best - 1], ids[best])
    return size


def encoding_table(alphabet, merges, pattern=None, merge_ids=None, unit="byte", unknown=None):
    """Prepare `encode`: the twin of `tokbpe.tables.encoding_table`."""
    return EncodingTable(alphabet, merges, pattern, merge_ids, unit, unknown)


def encode(text, EncodingTable table not None, special=None):
    """The ids of a document, special tokens cut out first (points 9 and 11).

    The twin of `tokbpe.reference.encode`. It runs without the GIL and answers Ctrl-C.
    """
    cdef Encoding encoding = Encoding(table)
    encoding.add_text(arguments.document_bytes(text), as_special_table(special))
    return encoding.result()
