"""Listing the merges of a vocabulary in which any two pieces merge that join to a piece.

Of the two pieces that a piece may be cut into, merging the piece's own bytes meets exactly one pair
last, or never yields the piece. No other pair of the piece is ever met, in any text: what merging
does between two places that no merge crosses does not depend on what stands around them. So only
that pair is listed, one for each piece: against all pairs of cl100k (233,000) the table is half as
large, and the look-ups of pairs that do not merge pass its filter more seldom.

Tried for the cut that is the right one: merging each piece by what is listed so far, which takes
three times as long; the longest left part first, which is right for half of the pieces. The halves
with the lowest numbers are right for nine of ten.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from .memory cimport look_for_signals, resized
from .merges cimport MergeTable, is_merged, put_merge, stay_apart
from .pairs cimport NOT_FOUND
from .pieces cimport PieceIndex, number_of_tag, piece_size

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte) noexcept
    uint64_t tokbpe_hash_of_end(uint64_t whole, uint64_t before, uint64_t power) noexcept
    uint64_t tokbpe_mixed(uint64_t hash) noexcept


# The most cuts that are tried for a piece.
cdef enum:
    MOST_TRIES = 32


# A place where a piece can be cut in two pieces.
cdef struct Cut:
    size_t place
    uint32_t left
    uint32_t right


cdef struct Listing:
    const PieceIndex *index
    const uint64_t *powers  # of the factor of the hash
    uint64_t *sieve  # a Bloom filter of the tags of all pieces
    uint32_t sieve_mask
    uint64_t *hashes  # of the beginnings of a piece
    Cut *cuts  # of a piece into pieces with lower numbers
    size_t count
    bint others  # whether it can be cut into pieces of which one has a higher number


cdef inline void close_listing(Listing *listing) noexcept nogil:
    free(listing.sieve)
    free(listing.hashes)
    free(listing.cuts)


cdef inline int open_listing(
    Listing *listing, const PieceIndex *index, const uint64_t *powers, size_t longest
) except -1 nogil:
    cdef size_t i
    cdef uint32_t bit
    listing.index = index
    listing.powers = powers
    listing.sieve_mask = (<uint32_t> 8 << min(index.bits, 28)) - 1
    listing.sieve = <uint64_t *> calloc(listing.sieve_mask // 64 + 1, sizeof(uint64_t))
    listing.hashes = <uint64_t *> resized(NULL, longest + 1, sizeof(uint64_t))
    listing.cuts = <Cut *> resized(NULL, longest + 1, sizeof(Cut))
    if listing.sieve == NULL or listing.hashes == NULL or listing.cuts == NULL:
        close_listing(listing)
        with gil:
            raise MemoryError(f"no memory to list the pairs of {index.count} pieces")
    for i in range(<size_t> 1 << index.bits):
        if index.slots[i].number:
            bit = index.slots[i].tag & listing.sieve_mask
            listing.sieve[bit >> 6] |= <uint64_t> 1 << (bit & 63)
    return 0


cdef inline bint may_be_piece(const Listing *listing, uint64_t mixed) noexcept nogil:
    cdef uint32_t bit = <uint32_t> mixed & listing.sieve_mask
    return listing.sieve[bit >> 6] >> (bit & 63) & 1


cdef inline void find_cuts(Listing *listing, size_t id) noexcept nogil:
    """Where a piece can be cut in two. What only looks like a piece may be among them."""
    cdef const PieceIndex *index = listing.index
    cdef const uint8_t *piece = index.bytes + index.starts[id]
    cdef size_t size = piece_size(index, id)
    cdef uint64_t *hashes = listing.hashes
    cdef uint64_t before, behind
    cdef size_t place
    cdef uint32_t left, right
    listing.count = 0
    listing.others = False
    hashes[0] = 0
    for place in range(size):
        hashes[place + 1] = tokbpe_hash_next(hashes[place], piece[place])
    for place in range(1, size):
        before = tokbpe_mixed(hashes[place])
        behind = tokbpe_mixed(
            tokbpe_hash_of_end(hashes[size], hashes[place], listing.powers[size - place]))
        if not (may_be_piece(listing, before) and may_be_piece(listing, behind)):
            continue
        left = number_of_tag(index, before)
        right = number_of_tag(index, behind)
        if left == NOT_FOUND or right == NOT_FOUND:
            continue
        if left >= id or right >= id:
            listing.others = True
            continue
        listing.cuts[listing.count] = Cut(place, left, right)
        listing.count += 1


cdef inline Cut take_lowest(Listing *listing) noexcept nogil:
    """Take out the cut whose higher half has the lowest number."""
    cdef size_t i
    cdef size_t best = 0
    cdef Cut cut
    for i in range(1, listing.count):
        if (
            max(listing.cuts[i].left, listing.cuts[i].right)
            < max(listing.cuts[best].left, listing.cuts[best].right)
        ):
            best = i
    cut = listing.cuts[best]
    listing.count -= 1
    listing.cuts[best] = listing.cuts[listing.count]
    return cut


cdef inline bint is_met(
    const Listing *listing, const MergeTable *merges, size_t id, const Cut *cut
) noexcept nogil:
    """Whether merging the bytes of a piece comes to these two halves."""
    cdef const PieceIndex *index = listing.index
    cdef const uint8_t *piece = index.bytes + index.starts[id]
    cdef size_t left_size = piece_size(index, cut.left)
    cdef size_t right_size = piece_size(index, cut.right)
    return (
        left_size == cut.place
        and left_size + right_size == piece_size(index, id)
        and memcmp(index.bytes + index.starts[cut.left], piece, left_size) == 0
        and memcmp(index.bytes + index.starts[cut.right], piece + left_size, right_size) == 0
        and (left_size == 1 or is_merged(merges, cut.left))
        and (right_size == 1 or is_merged(merges, cut.right))
        and stay_apart(merges, cut.left, cut.right)
    )


cdef inline bint list_merges(MergeTable *merges, Listing *listing) except -1 nogil:
    """List the merges of all pieces; False where a piece may be merged out of later ones, or too
    many cuts would have to be tried."""
    cdef size_t id, tries
    cdef size_t steps = 0
    cdef Cut cut
    if listing.index.twins:
        return False
    for id in range(listing.index.count):
        if piece_size(listing.index, id) < 2:
            continue
        steps = look_for_signals(steps)
        find_cuts(listing, id)
        tries = 0
        while listing.count:
            if tries == MOST_TRIES:
                return False
            tries += 1
            cut = take_lowest(listing)
            if is_met(listing, merges, id, &cut):
                put_merge(merges, cut.left, cut.right, <uint32_t> id)
                break
        else:
            if listing.others:
                return False
    return True
