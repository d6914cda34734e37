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
from libc.string cimport memcmp, memset

from .memory cimport calloc, free, look_for_signals, reserve, resized, tokbpe_prefetch
from .merges cimport Halves, MergeTable, first_slot, put_merge, stay_apart
from .pairs cimport NOT_FOUND
from .pieces cimport PieceIndex, number_of_tag, piece_size

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte) noexcept
    uint64_t tokbpe_hash_of_end(uint64_t whole, uint64_t before, uint64_t power) noexcept
    uint64_t tokbpe_mixed(uint64_t hash) noexcept


cdef enum:
    MOST_TRIES = 32  # cuts of a piece
    BATCH = 64  # pieces


# A place where a piece may be cut in two pieces.
cdef struct Cut:
    size_t place
    uint64_t before  # the mixed hashes of both ends
    uint64_t behind
    uint32_t left  # the pieces that both ends are
    uint32_t right


cdef struct Listing:
    const PieceIndex *index
    const uint64_t *powers  # of the factor of the hash
    uint64_t *sieve  # a Bloom filter of the tags of all pieces
    uint32_t sieve_mask
    uint64_t *hashes  # of the beginnings of a piece
    Cut *cuts  # of the pieces of a batch
    size_t capacity
    size_t[BATCH + 1] ends  # of the cuts of each


cdef inline void close_listing(Listing *listing) noexcept nogil:
    free(listing.sieve)
    free(listing.hashes)
    free(listing.cuts)


cdef inline int open_listing(
    Listing *listing, const PieceIndex *index, const uint64_t *powers, size_t longest
) except -1 nogil:
    cdef size_t i
    cdef uint32_t bit
    memset(listing, 0, sizeof(Listing))
    listing.index = index
    listing.powers = powers
    listing.sieve_mask = (<uint32_t> 8 << min(index.bits, 28)) - 1
    listing.sieve = <uint64_t *> calloc(listing.sieve_mask // 64 + 1, sizeof(uint64_t))
    listing.hashes = <uint64_t *> resized(NULL, longest + 1, sizeof(uint64_t))
    if listing.sieve == NULL or listing.hashes == NULL:
        close_listing(listing)
        with gil:
            raise MemoryError(f"no memory to list the pairs of {index.count} pieces")
    for i in range(<size_t> 1 << index.bits):
        if index.slots[i].number:
            bit = index.slots[i].tag & listing.sieve_mask
            listing.sieve[bit >> 6] |= <uint64_t> 1 << (bit & 63)
    return 0


cdef inline bint list_merges(MergeTable *merges, Listing *listing) except -1 nogil:
    """List the merges of all pieces; False where a piece may be merged out of later ones, or too
    many cuts would have to be tried.

    By batches and in three steps, so that what a step needs from memory is on its way before.
    """
    cdef size_t first = 0
    cdef size_t count = listing.index.count
    cdef size_t last, id, cuts, steps = 0
    if listing.index.twins:
        return False
    while first < count:
        last = min(first + BATCH, count)
        cuts = 0
        for id in range(first, last):
            steps = look_for_signals(steps)
            cuts = find_cuts(listing, id, cuts)
            listing.ends[id - first] = cuts
        look_up_halves(merges, listing, cuts)
        cuts = 0
        for id in range(first, last):
            if not list_merge(merges, listing, id, cuts, listing.ends[id - first]):
                return False
            cuts = listing.ends[id - first]
        first = last
    return True


cdef inline size_t find_cuts(Listing *listing, size_t id, size_t count) except? 0 nogil:
    """Add, behind `count` cuts, those of a piece that may be in two pieces; how many there are."""
    cdef const PieceIndex *index = listing.index
    cdef const uint8_t *piece = index.bytes + index.starts[id]
    cdef size_t size = piece_size(index, id)
    cdef uint64_t *hashes = listing.hashes
    cdef Cut *cut
    cdef size_t place
    cdef size_t first = count
    reserve(<void **> &listing.cuts, &listing.capacity, count + size, sizeof(Cut))
    hashes[0] = 0
    for place in range(size):
        hashes[place + 1] = tokbpe_hash_next(hashes[place], piece[place])
    for place in range(1, size):
        cut = &listing.cuts[count]
        cut.place = place
        cut.before = tokbpe_mixed(hashes[place])
        cut.behind = tokbpe_mixed(
            tokbpe_hash_of_end(hashes[size], hashes[place], listing.powers[size - place]))
        # No branch: one would be foreseen badly.
        count += may_be_piece(listing, cut.before) & may_be_piece(listing, cut.behind)
    for place in range(first, count):
        tokbpe_prefetch(&index.slots[listing.cuts[place].before >> (64 - index.bits)])
        tokbpe_prefetch(&index.slots[listing.cuts[place].behind >> (64 - index.bits)])
    return count


cdef inline size_t may_be_piece(const Listing *listing, uint64_t mixed) noexcept nogil:
    cdef uint32_t bit = <uint32_t> mixed & listing.sieve_mask
    return listing.sieve[bit >> 6] >> (bit & 63) & 1


cdef inline void look_up_halves(
    const MergeTable *merges, Listing *listing, size_t count
) noexcept nogil:
    """Find the pieces of so many cuts. What only looks like a piece may be among them."""
    cdef const PieceIndex *index = listing.index
    cdef Cut *cut
    cdef size_t i
    for i in range(count):
        cut = &listing.cuts[i]
        cut.left = number_of_tag(index, cut.before)
        cut.right = number_of_tag(index, cut.behind)
        if cut.left != NOT_FOUND and cut.right != NOT_FOUND:
            tokbpe_prefetch(&index.starts[cut.left])
            tokbpe_prefetch(&index.starts[cut.right])
            tokbpe_prefetch(first_slot(merges, cut.left, cut.right))


cdef inline bint list_merge(
    MergeTable *merges, Listing *listing, size_t id, size_t first, size_t last
) noexcept nogil:
    """List the merge of a piece, if it has one, that has these cuts; False if that is not known."""
    cdef Cut *cut
    cdef size_t i
    cdef size_t tries = 0
    cdef size_t end = first
    cdef bint later = False  # whether the piece may be merged of pieces that follow it
    for i in range(first, last):
        cut = &listing.cuts[i]
        if cut.left == NOT_FOUND or cut.right == NOT_FOUND:
            continue
        if cut.left >= id or cut.right >= id:
            later = True
        else:
            listing.cuts[end] = cut[0]
            end += 1
    while first < end:
        if tries == MOST_TRIES:
            return False
        tries += 1
        cut = lowest_cut(listing.cuts, first, end)
        if is_met(listing, merges, id, cut):
            put_merge(merges, cut.left, cut.right, <uint32_t> id)
            return True
        end -= 1
        cut[0] = listing.cuts[end]
    return not later


cdef inline Cut *lowest_cut(Cut *cuts, size_t first, size_t end) noexcept nogil:
    """The cut whose higher half has the lowest number."""
    cdef size_t i
    cdef Cut *best = &cuts[first]
    for i in range(first + 1, end):
        if max(cuts[i].left, cuts[i].right) < max(best.left, best.right):
            best = &cuts[i]
    return best


cdef inline bint is_met(
    const Listing *listing, const MergeTable *merges, size_t id, const Cut *cut
) noexcept nogil:
    """Whether merging the bytes of a piece comes to these two halves."""
    cdef const PieceIndex *index = listing.index
    cdef const uint8_t *piece = index.bytes + index.starts[id]
    cdef const Halves *left = &merges.halves[cut.left]
    cdef const Halves *right = &merges.halves[cut.right]
    # What only looks like a piece has another size, or other bytes.
    return (
        left.size == cut.place
        and left.size + right.size == piece_size(index, id)
        and left.size == piece_size(index, cut.left)
        and right.size == piece_size(index, cut.right)
        and memcmp(index.bytes + index.starts[cut.left], piece, left.size) == 0
        and memcmp(index.bytes + index.starts[cut.right], piece + left.size, right.size) == 0
        and stay_apart(merges, cut.left, cut.right)
    )
