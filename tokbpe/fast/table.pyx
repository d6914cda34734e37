"""What encoding looks up, compiled: the twin of `encoding_table` in `tokbpe.tables`."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from tokbpe import patterns, tables
from tokbpe.ranks import Pieces
from tokbpe.symbols import MARKER

from .memory cimport free, look_for_signals, resized
from .pairs cimport NOT_FOUND as NONE
from .pairs cimport PairTable, close_pair_table, make_pair, open_pair_table, put_pair
from .junctions cimport Junctions, make_junctions
from .listing cimport Listing, close_listing, list_merges, open_listing
from .merges cimport MOST_NUMBERS, MergeTable, close_merges, fill_byte_merges, open_merges
from .numbering cimport (
    MergeList,
    close_merge_list,
    mark_symbols,
    number_by_ids,
    number_by_ranks,
    open_merge_list,
)
from .pieces cimport (
    PieceIndex,
    add_piece,
    close_piece_index,
    hash_of_piece,
    number_of_piece,
    open_piece_index,
    piece_size,
)
from .seeds cimport set_seeds
from .split cimport scanner_kind

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte) noexcept
    uint64_t tokbpe_next_power(uint64_t power) noexcept
    uint64_t tokbpe_hash_of_end(uint64_t whole, uint64_t before, uint64_t power) noexcept

set_seeds()

CACHE_LIMIT = 64 << 20

UNIT_NUMBERS = {"byte": BYTE, "character": CHARACTER, "word": WORD}


@cython.final
cdef class EncodingTable:
    def __cinit__(
        self,
        alphabet,
        merges,
        pattern=None,
        merge_ids=None,
        unit="byte",
        unknown=None,
        merge_rule="merge_list",
        whole_piece_lookup=False,
    ):
        self.idle = []
        self.cache_limit = CACHE_LIMIT
        plain = (
            type(alphabet) in (tuple, Pieces)
            and type(unit) is str and unit == "byte"
            and unknown is None
            and type(merge_rule) is str and merge_rule in tables.MERGE_RULES
            and is_array_of_pairs(merges)
            and (merge_ids is None or is_array(merge_ids))
            and self.read_pieces(alphabet)
            and (
                len(merges) == 0 and self.rank_later()
                if merge_rule == "rank_by_piece"
                # Pieces that only merges make are not in the index.
                else not (whole_piece_lookup and merge_ids is None and len(merges))
                and self.read_merge_arrays(merges, merge_ids)
            )
        )
        if plain:
            self.pattern = patterns.for_unit(pattern, unit)
            self.takes_whole = bool(whole_piece_lookup)
            if self.listed and not self.takes_whole:
                close_piece_index(&self.pieces)
        else:
            self.close()
            self.read_checked(
                tables.encoding_table(
                    alphabet,
                    merges,
                    pattern,
                    merge_ids,
                    unit,
                    unknown,
                    merge_rule,
                    whole_piece_lookup,
                ),
                merge_rule,
            )
        self.kind = scanner_kind(self.pattern)

    def __dealloc__(self):
        self.close()

    cdef void close(self) noexcept:
        close_pair_table(&self.ranks)
        close_pair_table(&self.character_ids)
        close_merges(&self.merges)
        free(self.junctions)
        close_piece_index(&self.pieces)
        free(self.merge_ids)
        free(self.piece_ids)
        free(self.powers)
        self.merge_ids = self.piece_ids = NULL
        self.powers = NULL
        self.junctions = NULL
        self.listed = False

    # The memory of encodings

    def memory(self):
        """How many bytes the caches of words have, and what else is kept for the next encoding."""
        return self.cache_size + sum(encoding.kept() for encoding in self.idle_encodings())

    def clear_cache(self):
        """Free the memory of encodings, but of those that are going on."""
        idle = self.idle_encodings()
        self.spare, self.idle = None, []
        for encoding in idle:
            self.cache_size -= encoding.cleared()

    cdef list idle_encodings(self):
        return self.idle if self.spare is None else [*self.idle, self.spare]

    # From arrays. False where anything is not as it should be.

    cdef bint read_pieces(self, alphabet) except -1:
        """The alphabet as pieces whose numbers are their ids, and the ids of single bytes."""
        cdef size_t total = 0
        cdef size_t id, size
        cdef uint32_t byte
        if <size_t> len(alphabet) >= NONE:
            return False
        for entry in alphabet:
            if entry is not None:
                if type(entry) is not bytes or PyBytes_GET_SIZE(entry) == 0:
                    return False
                total += PyBytes_GET_SIZE(entry)
        open_piece_index(&self.pieces, len(alphabet), total)
        total = 0
        for id, entry in enumerate(alphabet):
            self.pieces.starts[id] = total
            if entry is not None:
                size = PyBytes_GET_SIZE(entry)
                memcpy(self.pieces.bytes + total, PyBytes_AS_STRING(entry), size)
                total += size
        self.pieces.starts[self.pieces.count] = total
        self.unknown = NONE
        memset(self.byte_ids, 0xFF, sizeof(self.byte_ids))
        for id in range(self.pieces.count):
            size = piece_size(&self.pieces, id)
            if size and not add_piece(&self.pieces, id):
                return False
            if size == 1:
                self.byte_ids[self.pieces.bytes[self.pieces.starts[id]]] = <uint32_t> id
        self.symbols = {
            bytes([byte]): self.byte_ids[byte] for byte in range(256)
            if self.byte_ids[byte] != NONE
        }
        return True

    cdef bint rank_later(self) except -1:
        """Prepare to look up the joined bytes of two pieces."""
        cdef size_t id, size
        for id in range(self.pieces.count):
            self.longest = max(self.longest, piece_size(&self.pieces, id))
        self.powers = <uint64_t *> resized(NULL, self.longest + 1, sizeof(uint64_t))
        if self.powers == NULL:
            raise MemoryError(f"no memory for the powers of a piece of {self.longest} bytes")
        self.powers[0] = 1
        for size in range(1, self.longest + 1):
            self.powers[size] = tokbpe_next_power(self.powers[size - 1])
        return True

    cdef bint read_merge_arrays(self, merges, ids) except -1:
        """The merges in their order. What they make stands in the alphabet, or follows it."""
        cdef size_t first = self.pieces.count
        cdef size_t count = len(merges)
        cdef size_t rank
        cdef uint32_t left, right, id
        cdef const uint32_t[:, ::1] pairs = np.ascontiguousarray(merges)
        cdef const uint32_t[::1] made
        if count >= NONE - first:
            return False
        if ids is None:
            made = np.arange(first, first + count, dtype=np.uint32)
        else:
            made = np.ascontiguousarray(ids)
        if <size_t> made.shape[0] != count:
            return False
        self.merge_ids = <uint32_t *> resized(NULL, count, sizeof(uint32_t))
        if self.merge_ids == NULL:
            raise MemoryError(f"no memory for {count} merges")
        open_pair_table(&self.ranks, bits_for(2 * count))
        self.listed = True
        for rank in range(count):
            left, right, id = pairs[rank, 0], pairs[rank, 1], made[rank]
            self.merge_ids[rank] = id
            if ids is None:
                if not (self.exists(left, id) and self.exists(right, id)):
                    return False
            elif not self.joins(left, right, id):
                return False
            if put_pair(&self.ranks, make_pair(left, right), <uint32_t> rank)[0] != rank:
                return False
        return True

    cdef bint exists(self, uint32_t id, uint32_t next_id) noexcept nogil:
        """Whether an id below that of the next merge has a piece."""
        return id < next_id and (id >= self.pieces.count or piece_size(&self.pieces, id) > 0)

    cdef bint joins(self, uint32_t left, uint32_t right, uint32_t id) noexcept nogil:
        """Whether all three are in the alphabet, and the bytes of the first two are the third's."""
        cdef const PieceIndex *index = &self.pieces
        cdef const uint8_t *piece
        cdef size_t size
        if max(left, right, id) >= index.count:
            return False
        piece = index.bytes + index.starts[id]
        size = piece_size(index, left)
        return (
            size > 0
            and piece_size(index, right) > 0
            and piece_size(index, id) == size + piece_size(index, right)
            and memcmp(piece, index.bytes + index.starts[left], size) == 0
            and memcmp(
                piece + size, index.bytes + index.starts[right], piece_size(index, right)
            ) == 0
        )

    # From the twin's table

    cdef int read_checked(self, checked, merge_rule) except -1:
        self.symbols = checked.symbols
        self.pattern = checked.pattern
        self.unit = UNIT_NUMBERS[checked.unit]
        self.unknown = NONE if checked.unknown is None else <uint32_t> checked.unknown
        self.read_symbols()
        self.read_merges(checked.merges, merge_rule == "rank_by_piece")
        self.takes_whole = len(checked.whole_pieces) > 0
        if self.takes_whole:
            self.read_whole_pieces(checked.whole_pieces)
        return 0

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

    cdef int read_merges(self, dict merges, bint rank_is_id) except -1:
        cdef uint32_t rank
        open_pair_table(&self.ranks, bits_for(2 * len(merges)))
        self.listed = True
        if not rank_is_id:
            self.merge_ids = <uint32_t *> resized(NULL, len(merges), sizeof(uint32_t))
            if self.merge_ids == NULL:
                raise MemoryError(f"no memory for {len(merges)} merges")
        for (left, right), (rank, id) in merges.items():
            put_pair(&self.ranks, make_pair(left, right), rank)
            if not rank_is_id:
                self.merge_ids[rank] = id
        return 0

    cdef int read_whole_pieces(self, dict pieces) except -1:
        cdef size_t number
        cdef size_t total = 0
        open_piece_index(&self.pieces, len(pieces), sum(map(len, pieces)))
        self.piece_ids = <uint32_t *> resized(NULL, len(pieces), sizeof(uint32_t))
        if self.piece_ids == NULL:
            raise MemoryError(f"no memory for {len(pieces)} pieces")
        for number, (piece, id) in enumerate(pieces.items()):
            self.pieces.starts[number] = total
            memcpy(self.pieces.bytes + total, PyBytes_AS_STRING(piece), PyBytes_GET_SIZE(piece))
            total += PyBytes_GET_SIZE(piece)
            self.pieces.starts[number + 1] = total
            self.piece_ids[number] = id
            add_piece(&self.pieces, number)
        return 0

    # Pairs of pieces that join to a piece

    def warm_up(self):
        """Prepare for much text, which is done by itself when some has come."""
        cdef MergeTable merges
        cdef PairTable ranks
        cdef bint numbered
        self.text_size = max(self.text_size, <size_t> WARM_TEXT)
        if self.warm:
            return
        memset(&merges, 0, sizeof(MergeTable))
        memset(&ranks, 0, sizeof(PairTable))
        try:
            with nogil:
                numbered = (
                    self.number_merges(&merges) if self.listed else self.number_pieces(&merges)
                )
                if not numbered:
                    close_merges(&merges)
                if not (numbered or self.listed):
                    open_pair_table(&ranks, self.pieces.bits + 1)
                    self.add_pairs(&ranks)
            # Meanwhile another thread may have done the same.
            if not self.warm:
                self.filter_long_pieces()
                self.merges, merges = merges, self.merges
                if ranks.slots != NULL:
                    self.ranks, ranks = ranks, self.ranks
                    self.listed = True
                self.warm = True
        finally:
            close_merges(&merges)
            close_pair_table(&ranks)

    cdef void filter_long_pieces(self) noexcept nogil:
        cdef size_t number
        cdef uint32_t bit
        for number in range(self.pieces.count):
            if piece_size(&self.pieces, number) >= LONG_PIECE:
                bit = long_piece_bit(
                    self.pieces.bytes + self.pieces.starts[number],
                    piece_size(&self.pieces, number),
                )
                self.long_pieces[bit >> 6] |= <uint64_t> 1 << (bit & 63)

    cdef const Junctions *made_junctions(self, bint *is_refused) noexcept:
        """What the merges join, for a table that is warm; NULL without memory, and if it cannot be
        told, which is refused.

        Only texts with long pieces need it. With the GIL, so that it is made once.
        """
        if self.junctions == NULL and self.merges.slots != NULL:
            self.junctions = make_junctions(&self.merges, is_refused)
        return self.junctions

    cdef bint number_pieces(self, MergeTable *merges) except -1 nogil:
        """The merges of pieces, whose numbers are their ids; False if they cannot be numbered."""
        cdef Listing listing
        cdef bint numbered
        if self.pieces.count > MOST_NUMBERS:
            return False
        open_merges(merges, self.pieces.count, self.pieces.count)
        memcpy(merges.symbols, self.byte_ids, sizeof(self.byte_ids))
        open_listing(&listing, &self.pieces, self.powers, self.longest)
        try:
            numbered = list_merges(merges, &listing)
        finally:
            close_listing(&listing)
        fill_byte_merges(merges)
        return numbered

    cdef bint number_merges(self, MergeTable *merges) except -1 nogil:
        """The merges of a list; False if they cannot be numbered."""
        cdef MergeList all
        cdef bint numbered = False
        try:
            if open_merge_list(&all, &self.ranks, self.merge_ids):
                self.add_symbols(&all)
                numbered = number_by_ids(merges, &all)
                if numbered and self.unit == BYTE:
                    memcpy(merges.symbols, self.byte_ids, sizeof(self.byte_ids))
                if not numbered and self.unit == BYTE:
                    close_merges(merges)
                    numbered = number_by_ranks(merges, &all, self.byte_ids)
                if numbered:
                    fill_byte_merges(merges)
        finally:
            close_merge_list(&all)
        return numbered

    cdef int add_symbols(self, MergeList *all) except -1 nogil:
        """Tell a list of merges which ids are symbols."""
        cdef const PairTable *characters = &self.character_ids
        cdef uint32_t *symbols
        cdef size_t i
        cdef size_t count = 1
        if self.unit == BYTE:
            return mark_symbols(all, self.byte_ids, 256)
        symbols = <uint32_t *> resized(NULL, characters.used + 1, sizeof(uint32_t))
        if symbols == NULL:
            with gil:
                raise MemoryError(f"no memory for {characters.used} symbols")
        symbols[0] = self.unknown
        for i in range(<size_t> 1 << characters.bits):
            if characters.slots[i].pair != UINT64_MAX:
                symbols[count] = characters.slots[i].value
                count += 1
        try:
            mark_symbols(all, symbols, count)
        finally:
            free(symbols)
        return 0

    cdef int add_pairs(self, PairTable *ranks) except -1 nogil:
        cdef const PieceIndex *index = &self.pieces
        cdef const uint8_t *piece
        cdef size_t id, size, cut
        cdef size_t steps = 0
        cdef uint64_t hash, before
        cdef uint32_t left, right
        for id in range(index.count):
            piece = index.bytes + index.starts[id]
            size = piece_size(index, id)
            hash = hash_of_piece(piece, size)
            before = 0
            for cut in range(1, size):
                steps = look_for_signals(steps)
                before = tokbpe_hash_next(before, piece[cut - 1])
                left = number_of_piece(index, before, piece, cut)
                if left == NONE:
                    continue
                right = number_of_piece(
                    index,
                    tokbpe_hash_of_end(hash, before, self.powers[size - cut]),
                    piece + cut,
                    size - cut,
                )
                if right != NONE:
                    put_pair(ranks, make_pair(left, right), <uint32_t> id)
        return 0


cdef bint is_array(value):
    return type(value) is np.ndarray and value.dtype == np.uint32 and value.ndim == 1


cdef bint is_array_of_pairs(value):
    return (
        type(value) is np.ndarray
        and value.dtype == np.uint32
        and value.ndim == 2
        and value.shape[1] == 2
    )


cdef int bits_for(size_t count) noexcept:
    """Of a table with room for so many slots."""
    cdef int bits = 4
    while <size_t> 1 << bits < count:
        bits += 1
    return bits


def encoding_table(
    alphabet,
    merges,
    pattern=None,
    merge_ids=None,
    unit="byte",
    unknown=None,
    merge_rule="merge_list",
    whole_piece_lookup=False,
):
    """Prepare `encode`: the twin of `tokbpe.tables.encoding_table`."""
    return EncodingTable(
        alphabet, merges, pattern, merge_ids, unit, unknown, merge_rule, whole_piece_lookup
    )
