"""What encoding looks up, for the other extensions."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from .pairs cimport NOT_FOUND as NONE
from .pairs cimport PairTable
from .junctions cimport Junctions
from .merges cimport MergeTable
from .numbering cimport MergeList
from .pieces cimport PieceIndex, hash_of_piece, number_of_piece

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_of_end(uint64_t whole, uint64_t before, uint64_t power) noexcept
    uint64_t tokbpe_hash_pair(uint64_t pair) noexcept

cdef extern from "bytes.h" nogil:
    uint64_t tokbpe_eight(const uint8_t *bytes) noexcept

# How many bytes come to a table before it is warmed up.
cdef enum:
    WARM_TEXT = 65536

# From this size on a piece is in a filter that is asked before the piece is looked up.
cdef enum:
    LONG_PIECE = 16  # bytes
    LONG_PIECE_BITS = 16
    LONG_PIECE_WORDS = 1024


cdef enum Unit:
    BYTE
    CHARACTER
    WORD


cdef class EncodingTable:
    """What `encode` looks up. Threads may share it: what it says never changes.

    Arrays and bytes, which vocabularies have, are read without Python objects for each entry and
    merge. All else, and what is not as it should be, goes through the twin in `tokbpe.tables`.

    Where any two pieces merge that join to a piece, the pairs are listed only when some text has
    come: that takes longer than all else. Before, the joined bytes are looked up (point 10). Then
    words are remembered as well.
    """

    cdef PairTable ranks  # pair -> rank of its merge; the lower, the earlier learned
    cdef MergeTable merges  # when some text has come, if they can be numbered
    cdef Junctions *junctions  # when they were asked for
    cdef bint warm  # whether all is prepared for much text
    cdef bint listed  # whether all pairs are in `ranks`
    cdef size_t text_size  # how many bytes have come
    cdef uint32_t *merge_ids  # by rank; NULL: the rank is the id
    cdef uint32_t byte_ids[256]
    cdef PairTable character_ids  # code point and whether it ends a word -> id
    cdef uint32_t unknown  # NONE: a symbol that the alphabet lacks is an error
    cdef PieceIndex pieces
    cdef uint32_t *piece_ids  # by number in `pieces`; NULL: the number is the id
    cdef bint takes_whole  # pieces that it finds there
    cdef size_t longest  # piece
    cdef uint64_t long_pieces[LONG_PIECE_WORDS]  # a filter of them, made when some text has come
    cdef uint64_t *powers  # of the factor of the hash, up to the longest piece
    cdef object spare  # an encoding, with its cache of words, that is not in use; or None
    cdef list idle  # more of them
    cdef public size_t cache_limit  # bytes of all caches, also those that are in use,
    cdef readonly size_t cache_size  # and how many they have
    cdef dict symbols
    cdef object pattern
    cdef int kind
    cdef int unit

    cdef list idle_encodings(self)
    cdef void close(self) noexcept
    cdef bint read_pieces(self, alphabet) except -1
    cdef bint rank_later(self) except -1
    cdef bint read_merge_arrays(self, merges, ids) except -1
    cdef bint exists(self, uint32_t id, uint32_t next_id) noexcept nogil
    cdef bint joins(self, uint32_t left, uint32_t right, uint32_t id) noexcept nogil
    cdef int read_checked(self, checked, merge_rule) except -1
    cdef int read_symbols(self) except -1
    cdef int read_merges(self, dict merges, bint rank_is_id) except -1
    cdef int read_whole_pieces(self, dict pieces) except -1
    cdef const Junctions *made_junctions(self, bint *is_refused) noexcept
    cdef void filter_long_pieces(self) noexcept nogil
    cdef bint number_pieces(self, MergeTable *merges) except -1 nogil
    cdef bint number_merges(self, MergeTable *merges) except -1 nogil
    cdef int add_symbols(self, MergeList *all) except -1 nogil
    cdef int add_pairs(self, PairTable *ranks) except -1 nogil


cdef inline uint32_t whole_piece(
    EncodingTable table, const uint8_t *piece, size_t size
) noexcept nogil:
    """The id of what is taken at once, NONE if it is not."""
    cdef uint32_t number
    if not table.takes_whole:
        return NONE
    number = number_of_piece(&table.pieces, hash_of_piece(piece, size), piece, size)
    return number if number == NONE or table.piece_ids == NULL else table.piece_ids[number]


cdef inline uint32_t long_piece_bit(const uint8_t *piece, size_t size) noexcept nogil:
    """The bit of a long piece in the filter: its beginning and its size tell enough."""
    return <uint32_t> (tokbpe_hash_pair(tokbpe_eight(piece) ^ size) >> (64 - LONG_PIECE_BITS))


cdef inline uint32_t long_whole_piece(
    EncodingTable table, const uint8_t *piece, size_t size
) noexcept nogil:
    """`whole_piece` for a long piece, which is hardly ever one."""
    cdef uint32_t bit = long_piece_bit(piece, size)
    if table.long_pieces[bit >> 6] >> (bit & 63) & 1:
        return whole_piece(table, piece, size)
    return NONE


cdef inline uint32_t joined_piece(
    EncodingTable table,
    const uint8_t *bytes, const uint64_t *hashes, size_t start, size_t end
) noexcept nogil:
    """The piece that some bytes of a longer one are, whose beginnings have these hashes."""
    if end - start > table.longest:
        return NONE
    return number_of_piece(
        &table.pieces,
        tokbpe_hash_of_end(hashes[end], hashes[start], table.powers[end - start]),
        bytes + start,
        end - start,
    )
