"""Encoding documents, for the other extensions."""

from libc.stdint cimport uint8_t, uint32_t

from .merge cimport Merging
from .special cimport SpecialSearch, SpecialTable
from .split cimport Scanner
from .table cimport EncodingTable
from .words cimport MOST_AT_ONCE, WordCache, tokbpe_key

# How many pieces are worked on together.
cdef enum:
    CHUNK = MOST_AT_ONCE


cdef struct Document:
    const uint8_t *data
    size_t size
    bint is_text  # whether it is known to be UTF-8


cdef enum:
    BYTES_FOR_EACH_ID = 3  # as it mostly is


# Pieces, or parts of long ones, one behind the other.
cdef struct Items:
    size_t first  # where the first begins
    size_t[CHUNK] ends
    tokbpe_key[CHUNK] keys  # high == 0: it is too long for the cache; low: whether it is a part
    uint32_t[CHUNK] places  # in the cache
    size_t[CHUNK] piece_ends  # of pieces that become items


cdef class Encoding:
    cdef EncodingTable table
    cdef Merging merging
    cdef SpecialSearch search  # None: there are no special tokens
    cdef uint32_t *ids
    cdef size_t size, capacity
    cdef bint only_counting
    cdef size_t counted, most  # ids, when only counting
    cdef size_t unpaused  # bytes since the last look for signals
    cdef size_t group  # of the documents that are encoded, when threads work side by side,
    cdef const size_t *failed  # and the first group that has failed; NULL: there are no others
    cdef size_t document  # its number, when there are several
    cdef bint by_chunks
    cdef WordCache cache
    cdef bint seeded  # whether it knows all pieces of the vocabulary that a key can hold
    cdef Items items
    cdef size_t at  # where the next item begins
    cdef size_t piece_count, next  # pieces that are found, and those that have become items
    cdef size_t piece_start, piece_end  # the long piece that we are in
    cdef uint32_t part_tag
    cdef size_t uncut  # bytes of long pieces that were not cut

    cdef int open(self, EncodingTable table, SpecialTable special, size_t size) except -1
    cdef int close(self) except -1
    cdef void shrink(self) noexcept nogil
    cdef bint has_cache(self, size_t size) except -1
    cdef int seed(self) noexcept nogil
    cdef int keep_seeds(self, size_t count) noexcept nogil
    cdef size_t drop_cache(self) noexcept
    cdef bint may_take(self, size_t size) except -1
    cdef bint grow(self) except -1
    cdef int make_room(self) except -1 nogil
    cdef int add_document(self, const Document *document) except -1 nogil
    cdef int expect(self, size_t size) except -1 nogil
    cdef int put_id(self, uint32_t id) except -1 nogil
    cdef int add_part(self, const Document *document, size_t first, size_t last) except -1 nogil
    cdef int pause(self) except -1 nogil
    cdef int add_pieces(self, const uint8_t *data, size_t first, size_t last) except -1
    cdef bint add_slice(self, Scanner *scanner, size_t position) except -1 nogil
    cdef int add_piece(self, const uint8_t *piece, size_t size, size_t position) except -1 nogil
    cdef bint enough(self) noexcept nogil
    cdef bint add_chunks(self, Scanner *scanner, size_t position) except -1 nogil
    cdef size_t find_items(self, Scanner *scanner) noexcept nogil
    cdef size_t add_words(self, const Scanner *scanner, size_t count) noexcept nogil
    cdef void add_item(self, size_t i, size_t end, tokbpe_key key) noexcept nogil
    cdef size_t add_long_piece(self, const Scanner *scanner, size_t count) noexcept nogil
    cdef size_t add_parts(self, const Scanner *scanner, size_t count) noexcept nogil
    cdef int put_out(
        self, const uint8_t *data, size_t position, size_t count
    ) except -1 nogil
    cdef size_t start_of(self, size_t i) noexcept nogil
    cdef size_t put_known(self, const uint8_t *data, size_t i, size_t count) noexcept nogil
    cdef int put_merged(self, const uint8_t *data, size_t position, size_t i) except -1 nogil
    cdef int put_ids(self, const uint32_t[::1] ids) except -1 nogil


cdef object open_document(text, Document *document)
cdef Encoding begin(EncodingTable table, SpecialTable special, size_t size)
cdef list as_list(const uint32_t *ids, size_t count)
cdef list encode_text(text, EncodingTable table, SpecialTable special)
cdef int encode_document(Encoding encoding, const Document *document) except -1
