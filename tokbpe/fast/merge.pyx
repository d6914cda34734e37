"""Merging the symbols of a piece, compiled (points 8 to 10 of `tokbpe.reference`).

A short piece is merged by the reference's own loop, with the ranks of neighbors kept beside it; a
long one with links between the tokens and a heap of the merges that are possible, which is
O(n log n) in its length.
"""

cimport cython
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove

from tokbpe import arguments

from .characters cimport code_point
from .memory cimport look_for_signals, reserve
from .pairs cimport NOT_FOUND as NONE  # no id, no merge, no neighbor
from .pairs cimport find_pair, make_pair
from .split cimport utf8_width
from .table cimport BYTE, WORD, EncodingTable, joined_piece, merged_id, rank_of, whole_piece

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte) noexcept

# Pieces of more symbols than this are merged with a heap.
cdef enum:
    SHORT_PIECE = 24

SHORT_PIECE_SYMBOLS = SHORT_PIECE


@cython.final
cdef class Merging:

    def __cinit__(self, EncodingTable table not None):
        self.table = table

    def __dealloc__(self):
        free(self.tokens)
        free(self.heap)
        free(self.hashes)

    cdef size_t merged(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil:
        """The ids of a piece that stands at `position`, for which there is room; how many."""
        ids[0] = whole_piece(self.table, piece, size)
        if ids[0] != NONE:
            return 1
        return self.merged_part(piece, size, position, ids)

    cdef size_t part_end(self, const uint8_t *piece, size_t start, size_t size) noexcept nogil:
        """The end of the part of a piece that begins at `start`: no token stands across it."""
        return size

    cdef size_t merged_part(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil:
        """The ids of a part of a piece, which is merged in any case (point 9)."""
        cdef size_t count
        if self.table.unit == BYTE:
            count = read_bytes(self.table, piece, size, ids)
            if count < size:
                with gil:
                    raise arguments.absent_byte(piece[count], position + count, self.table.symbols)
        else:
            count = read_characters(self.table, piece, size, ids)
        if self.by_bytes:
            self.read_hashes(piece, size)
            return self.merge_long(ids, count)
        if self.table.ranks.used == 0:
            return count
        if count <= SHORT_PIECE:
            return merge_short(self.table, self.packed, ids, <uint32_t> count)
        return self.merge_long(ids, count)

    cdef int read_hashes(self, const uint8_t *piece, size_t size) except -1 nogil:
        """The hashes of all beginnings of a piece."""
        cdef size_t place
        reserve(<void **> &self.hashes, &self.hash_capacity, size + 1, sizeof(uint64_t))
        self.piece = piece
        self.hashes[0] = 0
        for place in range(size):
            self.hashes[place + 1] = tokbpe_hash_next(self.hashes[place], piece[place])
        return 0

    cdef inline uint32_t rank_at(self, uint32_t place, uint32_t right, size_t size) noexcept nogil:
        """The rank of the merge of two tokens of a piece of `size` symbols, NONE if there is
        none."""
        cdef size_t end
        if not self.by_bytes:
            return rank_of(
                self.table, self.packed, self.tokens[place].id, self.tokens[right].id
            )
        end = size if self.tokens[right].next == NONE else self.tokens[right].next
        return joined_piece(self.table, self.piece, self.hashes, place, end)

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
            self.offer(place, size)
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
                or self.rank_at(place, right, size) != rank
            ):
                continue
            tokens[place].id = merged_id(self.table, rank)
            tokens[place].next = tokens[right].next
            tokens[right].id = NONE
            if tokens[right].next != NONE:
                tokens[tokens[right].next].previous = place
            self.offer(place, size)
            if tokens[place].previous != NONE:
                self.offer(tokens[place].previous, size)
        place = 0
        while place != NONE:
            ids[count] = tokens[place].id
            count += 1
            place = tokens[place].next
        return count

    cdef int offer(self, uint32_t place, size_t size) except -1 nogil:
        """Queue the merge of a token with its right neighbor, if there is one."""
        cdef uint32_t right = self.tokens[place].next
        cdef uint32_t rank
        cdef uint64_t item
        cdef size_t child, parent
        if right == NONE:
            return 0
        rank = self.rank_at(place, right, size)
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


cdef size_t read_bytes(
    EncodingTable table,
    const uint8_t *piece,  # IN
    size_t size,
    uint32_t *ids,  # OUT
) noexcept nogil:
    """The ids of the bytes of a piece, up to the first that has none; how many there are."""
    cdef size_t i
    for i in range(size):
        ids[i] = table.byte_ids[piece[i]]
        if ids[i] == NONE:
            return i
    return size


cdef size_t read_characters(
    EncodingTable table,
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
                &table.character_ids,
                make_pair(
                    code_point(piece + place, width),
                    table.unit == WORD and place + width == size,
                ),
            )
        ids[count] = table.unknown if id == NONE else id
        count += 1
        place += width if width else 1
    return count


cdef uint32_t merge_short(
    EncodingTable table,
    bint packed,
    uint32_t *ids,  # IN, OUT
    uint32_t size,
) noexcept nogil:
    """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
    cdef uint32_t ranks[SHORT_PIECE]  # of the merge of a token and its right neighbor
    cdef uint32_t i, best
    for i in range(1, size):
        ranks[i - 1] = rank_of(table, packed, ids[i - 1], ids[i])
    while size > 1:
        best = 0
        for i in range(1, size - 1):
            if ranks[i] < ranks[best]:
                best = i
        if ranks[best] == NONE:
            break
        ids[best] = merged_id(table, ranks[best])
        size -= 1
        memmove(ids + best + 1, ids + best + 2, (size - best - 1) * sizeof(uint32_t))
        if best + 1 < size:
            memmove(ranks + best, ranks + best + 1, (size - best - 1) * sizeof(uint32_t))
            ranks[best] = rank_of(table, packed, ids[best], ids[best + 1])
        if best > 0:
            ranks[best - 1] = rank_of(table, packed, ids[best - 1], ids[best])
    return size
