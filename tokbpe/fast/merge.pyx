"""Merging the symbols of a piece, compiled (points 8 to 10 of `tokbpe.reference`).

When some text has come, and the merges have numbers (merges.pxd), pieces of bytes are merged by the
merge table: up to sixteen bytes with all keys at hand, more of them in a window, and longer ones
window by window, whose borders are then looked at (windows.pxd); in linear time. A piece can be
cut before where no token can stand across (junctions.pxd). All else, which are short texts, words
of characters and the few vocabularies without numbers, is merged by the reference's own loop, with
the ranks of neighbors kept beside it, and long pieces with a heap, in O(n log n).

Measured on two busy processors, nanoseconds for a word of up to 15 bytes that is no piece, English
and Russian:

    cl100k            220 -> 190, 360 -> 255
    o200k             360 -> 200, 460 -> 260

by one pair for each piece instead of all (listing.pxd), a table of pairs of bytes, both bits of the
filter in one word, keys that do not move (10 %) and eight keys where they are enough (8 %). A
megabyte of one piece, against a heap: letters 450 -> 26 ms, base64 240 -> 20, one letter 215 -> 30,
spaces 300 -> 55; 10 MB of English as one piece, 4,096 and 32,768 tokens learned without a pattern,
2 -> 28 and 21 MB/s.

Considered and not done: longest matches with a bit set of dead ends, which is linear too, but makes
more look-ups for each byte than merging does.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memmove

import numpy as np

from tokbpe import arguments

from .characters cimport code_point
from .junctions cimport end_of_part
from .memory cimport free, look_for_signals, reserve
from .merges cimport MergeTable, find_merge, stay_apart
from .pairs cimport NOT_FOUND as NONE  # no id, no merge, no neighbor
from .pairs cimport find_pair, make_pair
from .seeds cimport set_seeds
from .split cimport utf8_width
from .table cimport BYTE, WORD, EncodingTable, joined_piece, whole_piece
from .windows cimport FEW_BYTES, WINDOW, merge_few, merge_window

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte) noexcept

set_seeds()

# Pieces of more symbols than this are merged with a heap.
cdef enum:
    SHORT_PIECE = 24

# Of a window, the part at its end that the next one begins in; bytes between two looks for signals.
cdef enum:
    MARGIN = 8
    SLICE = 1000000

SHORT_PIECE_SYMBOLS = SHORT_PIECE
FEW = FEW_BYTES
WINDOW_SIZE = WINDOW


@cython.final
cdef class Merging:

    def __cinit__(self, EncodingTable table not None):
        self.table = table
        self.begin()

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

    cdef void begin(self) noexcept:
        """See what the table has prepared. With the GIL: another thread may be preparing it."""
        self.packed = self.table.warm and self.table.merges.slots != NULL
        self.by_bytes = not (self.packed or self.table.listed)

    def merge(self, bytes piece not None):
        """The ids of some bytes, of one at least, that are merged in any case."""
        cdef const uint8_t *start = <const uint8_t *> PyBytes_AS_STRING(piece)
        cdef size_t size = len(piece)
        cdef size_t count
        cdef uint32_t[::1] ids = np.empty(size, np.uint32)
        with nogil:
            count = self.merged_part(start, size, 0, &ids[0])
        return np.asarray(ids)[:count].tolist()

    def parts(self, bytes piece not None):
        """The parts of some bytes that can be merged each on its own."""
        cdef const uint8_t *start = <const uint8_t *> PyBytes_AS_STRING(piece)
        cdef size_t end
        cdef size_t place = 0
        parts = []
        while place < <size_t> len(piece):
            end = self.part_end(start, place, len(piece))
            parts.append(piece[place:end])
            place = end
        return parts

    cdef size_t part_end(self, const uint8_t *piece, size_t start, size_t size) noexcept nogil:
        """The end of the part of a piece that begins at `start`: no token stands across it."""
        if self.junctions == NULL:
            if not self.packed or self.uncut:
                return size
            with gil:
                self.junctions = self.table.made_junctions(&self.uncut)
            if self.junctions == NULL:
                return size
        return end_of_part(self.junctions, piece, start, size)

    cdef size_t merged_part(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil:
        """The ids of a part of a piece, which is merged in any case (point 9)."""
        cdef size_t count
        if self.table.unit == BYTE:
            if self.packed:
                return self.merge_bytes(piece, size, position, ids)
            count = self.read_bytes(piece, size, position, ids)
        else:
            count = read_characters(self.table, piece, size, ids)
        if self.by_bytes:
            self.read_hashes(piece, size)
        if count <= SHORT_PIECE:
            return self.merge_short(ids, <uint32_t> count)
        return self.merge_long(ids, count)

    cdef size_t read_bytes(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil:
        """The ids of the bytes of a piece that stands at `position`; how many."""
        cdef size_t count
        for count in range(size):
            ids[count] = self.table.byte_ids[piece[count]]
            if ids[count] == NONE:
                with gil:
                    raise arguments.absent_byte(piece[count], position + count, self.table.symbols)
        return size

    # By the merge table

    cdef size_t merge_bytes(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil:
        """As `merged_part`, when the merges have numbers."""
        cdef const MergeTable *merges = &self.table.merges
        cdef size_t i
        cdef size_t count = 1
        if not merges.all_bytes:
            for i in range(size):
                if merges.symbols[piece[i]] == NONE:
                    return self.read_bytes(piece, size, position, ids)  # which tells the error
        if size == 1:
            ids[0] = merges.symbols[piece[0]]
        elif size <= FEW_BYTES:
            count = merge_few(merges, piece, size, ids)
        elif size <= WINDOW:
            count = merge_window(merges, piece, size, ids)
        else:
            count = self.merge_windows(piece, size, ids)
        if merges.ids != NULL:
            for i in range(count):
                ids[i] = merges.ids[ids[i]]
        return count

    cdef size_t merge_windows(
        self, const uint8_t *piece, size_t size, uint32_t *numbers
    ) except 0 nogil:
        """Merge a long piece window by window.

        The next window begins where a token ends, some way in front of the end of the last one.
        Where the tokens on both sides stay apart, merging both at once would have given the same.
        Else windows grow until they are past that place.
        """
        cdef const MergeTable *merges = &self.table.merges
        cdef size_t window = WINDOW
        cdef size_t start = 0
        cdef size_t past = 0
        cdef size_t count = 0
        cdef size_t steps = 0
        cdef size_t length, made, back
        while True:
            length = min(window, size - start)
            made = self.merge_one_window(piece + start, length, numbers + count)
            steps += length
            if steps > SLICE:
                steps = 0
                with gil:
                    PyErr_CheckSignals()
            if count and not stay_apart(merges, numbers[count - 1], numbers[count]):
                past = max(past, start)
                start -= drop_tokens(merges, numbers, &count, window // MARGIN)
                window *= 2
                continue
            if length == size - start:
                return count + made
            made += count
            back = drop_tokens(merges, numbers, &made, window // MARGIN)
            if made == count:
                window *= 2
                continue
            count = made
            start += length - back
            if start > past:
                window = WINDOW

    cdef size_t merge_one_window(
        self, const uint8_t *bytes, size_t size, uint32_t *numbers
    ) except 0 nogil:
        cdef size_t i
        if size == 1:
            numbers[0] = self.table.merges.symbols[bytes[0]]
            return 1
        if size <= WINDOW:
            return merge_window(&self.table.merges, bytes, size, numbers)
        for i in range(size):
            numbers[i] = self.table.merges.symbols[bytes[i]]
        return self.merge_long(numbers, size)

    # Without it: by listed pairs, or by the joined bytes

    cdef int read_hashes(self, const uint8_t *piece, size_t size) except -1 nogil:
        """The hashes of all beginnings of a piece."""
        cdef size_t place
        reserve(<void **> &self.hashes, &self.hash_capacity, size + 1, sizeof(uint64_t))
        self.piece = piece
        self.hashes[0] = 0
        for place in range(size):
            self.hashes[place + 1] = tokbpe_hash_next(self.hashes[place], piece[place])
        return 0

    cdef inline uint32_t rank_of(
        self, uint32_t left, uint32_t right, size_t start, size_t end
    ) noexcept nogil:
        """The rank of the merge of two neighbors, which take the symbols from `start` to `end` of
        the piece; NONE if there is none."""
        if self.packed:
            return find_merge(&self.table.merges, left, right)
        if self.by_bytes:
            return joined_piece(self.table, self.piece, self.hashes, start, end)
        return find_pair(&self.table.ranks, make_pair(left, right))

    cdef inline uint32_t merged_id(self, uint32_t rank) noexcept nogil:
        """What a merge makes. In the merge table ranks and ids are numbers."""
        return rank if self.packed or self.table.merge_ids == NULL else self.table.merge_ids[rank]

    cdef uint32_t merge_short(self, uint32_t *ids, uint32_t size) noexcept nogil:
        """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
        cdef uint32_t[SHORT_PIECE] ranks  # of the merge of a token and its right neighbor
        cdef uint32_t[SHORT_PIECE + 1] starts  # of the tokens, and the end
        cdef uint32_t i, best
        for i in range(size + 1):
            starts[i] = i
        for i in range(1, size):
            ranks[i - 1] = self.rank_of(ids[i - 1], ids[i], i - 1, i + 1)
        while size > 1:
            best = 0
            for i in range(1, size - 1):
                if ranks[i] < ranks[best]:
                    best = i
            if ranks[best] == NONE:
                break
            ids[best] = self.merged_id(ranks[best])
            memmove(starts + best + 1, starts + best + 2, (size - best - 1) * sizeof(uint32_t))
            size -= 1
            memmove(ids + best + 1, ids + best + 2, (size - best - 1) * sizeof(uint32_t))
            if best + 1 < size:
                memmove(ranks + best, ranks + best + 1, (size - best - 1) * sizeof(uint32_t))
                ranks[best] = self.rank_of(
                    ids[best], ids[best + 1], starts[best], starts[best + 2])
            if best > 0:
                ranks[best - 1] = self.rank_of(
                    ids[best - 1], ids[best], starts[best - 1], starts[best + 1])
        return size

    # By a heap

    cdef inline uint32_t rank_at(self, uint32_t place, uint32_t right, size_t size) noexcept nogil:
        """The rank of the merge of two tokens of a piece of `size` symbols, NONE if there is
        none."""
        return self.rank_of(
            self.tokens[place].id,
            self.tokens[right].id,
            place,
            size if self.tokens[right].next == NONE else self.tokens[right].next,
        )

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
            tokens[place].id = self.merged_id(rank)
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


cdef size_t drop_tokens(
    const MergeTable *merges, const uint32_t *numbers, size_t *count, size_t least
) noexcept nogil:
    """Take tokens from the end until they have so many bytes; how many they have."""
    cdef size_t size = 0
    while count[0] and size < least:
        count[0] -= 1
        size += merges.halves[numbers[count[0]]].size
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
