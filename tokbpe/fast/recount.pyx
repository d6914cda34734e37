"""A recount: the pairs of compact cells, and the places of those that reach a threshold.

`tallies.pxd` has what is done with the cells of one thread; here the threads are started, and
what they found is put together. Whatever their number, a list has its places in rising order:
each share knows where in the list its own places begin.

A sieve is not tried for few tokens: the table for any two of them is as small, and exact.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from tokbpe.threads import run_all

from .cells cimport Cell, Corpus
from .memory cimport allocated, free
from .pairs cimport make_pair
from .places cimport Block, Pair, Pairs, new_places, open_pairs, put
from .seeds cimport set_seeds
from .tallies cimport (
    Share,
    Tally,
    close_share,
    count_dense,
    count_hashed,
    fill_sieve,
    list_dense,
    list_hashed,
    open_dense,
    open_sieve,
    open_slots,
    tally_of,
)

set_seeds()

cdef enum Phase:
    COUNT_DENSE
    FILL_SIEVE
    COUNT_HASHED
    LIST_DENSE
    LIST_HASHED

# A table for any two tokens has so many entries in any case, and so many for each cell.
cdef enum:
    DENSE_ENTRIES = 70000
    DENSE_ENTRIES_FOR_CELL = 4


@cython.final
cdef class Recount:
    def __dealloc__(self):
        cdef size_t number
        for number in range(self.share_count):
            close_share(&self.shares[number])
        free(self.shares)
        free(self.sieve.reached)

    cdef int open(
        self, owner, const Corpus *corpus, size_t tokens, size_t threads, dict limits
    ) except -1:
        """Deal the cells out to threads; the last cell is a separator that begins no pair."""
        cdef size_t cells = corpus.size - 1
        cdef size_t count = min(threads, cells // <size_t> limits["thread_cells"] + 1)
        cdef size_t side = tokens + 1
        cdef bint is_dense = (
            tokens <= <size_t> limits["dense_tokens"]
            and side * side <= DENSE_ENTRIES_FOR_CELL * cells + DENSE_ENTRIES)
        cdef size_t number
        cdef Share *share
        self.owner = owner
        self.corpus = corpus
        self.tokens = tokens
        self.slice_size = limits["slice"]
        self.sieve.bits = 1
        while (self.sieve.bits < <int> limits["sieve_bits"]
               and <size_t> 1 << self.sieve.bits < cells // 4):
            self.sieve.bits += 1
        self.shares = <Share *> allocated(count, sizeof(Share))
        memset(self.shares, 0, count * sizeof(Share))
        self.share_count = count
        for number in range(count):
            share = &self.shares[number]
            share.first = max(<size_t> 1, cells // count * number)
            share.last = cells if number + 1 == count else cells // count * (number + 1)
            if is_dense:
                open_dense(share, tokens)
            else:
                open_sieve(share, self.sieve.bits)
                open_slots(share, 10)
        return 0

    cdef int64_t count(self) except -1:
        """Count all pairs, or, by the sieve, groups of them; no count is above the result."""
        if self.shares[0].dense != NULL:
            self.in_shares(COUNT_DENSE)
            return self.highest_dense()
        self.in_shares(FILL_SIEVE)
        return self.join_sieves()

    cdef int gather(self, int64_t threshold, Pairs *pairs) except -1:
        """The pairs that reach the threshold, with their counts, but without places."""
        self.listed = 1  # where the first place is written: 0 tells that a pair is not listed
        if self.shares[0].dense != NULL:
            with nogil:
                self.gather_dense(threshold, pairs)
            return 0
        self.sift(threshold)
        self.in_shares(COUNT_HASHED)
        with nogil:
            self.gather_hashed(threshold, pairs)
        return 0

    cdef int list_places(self, Pairs *pairs, Block **blocks) except -1:
        cdef Pair *pair
        cdef size_t i
        self.places = new_places(blocks, self.listed)
        self.in_shares(LIST_DENSE if self.shares[0].dense != NULL else LIST_HASHED)
        for i in range(<size_t> 1 << pairs.bits):
            pair = &pairs.slots[i]
            if pair.size:
                pair.places = self.places + pair.first
                pair.first = 0
        return 0

    # Threads

    cdef int in_shares(self, int phase) except -1:
        """Go through all cells, one thread a share."""
        cdef size_t number
        for number in range(self.share_count):
            self.shares[number].next = self.shares[number].first
        self.phase = phase
        self.stopped = False
        run_all(self.work, self.share_count, self.stop)
        return 0

    def stop(self):
        self.stopped = True

    def work(self, size_t number):
        cdef Share *share = self.shares + number
        cdef size_t last
        if number >= self.share_count:
            raise IndexError(f"there are {self.share_count} shares, and no share {number}")
        while share.next < share.last and not self.stopped:
            last = min(share.next + self.slice_size, share.last)
            with nogil:
                if self.corpus.narrow != NULL:
                    go_through(self.corpus.narrow, self, share, last)
                else:
                    go_through(self.corpus.wide, self, share, last)
            PyErr_CheckSignals()

    # With a table for any two tokens.

    cdef int64_t highest_dense(self) noexcept nogil:
        cdef int64_t highest = 0
        cdef size_t tokens = self.tokens
        cdef size_t left, right
        for left in range(tokens):
            for right in range(tokens):
                highest = max(highest, self.dense_total(left * (tokens + 1) + right).count)
        return highest

    cdef Tally dense_total(self, size_t entry) noexcept nogil:
        cdef Tally total = self.shares[0].dense[entry]
        cdef size_t number
        for number in range(1, self.share_count):
            total.count += self.shares[number].dense[entry].count
            total.size += self.shares[number].dense[entry].size
        return total

    cdef int gather_dense(self, int64_t threshold, Pairs *pairs) except -1 nogil:
        """The frequent pairs of all shares, and where these write the places."""
        cdef size_t tokens = self.tokens
        cdef size_t left, right, entry, number
        cdef uint32_t cursor
        cdef Tally total
        cdef Tally *tally
        open_pairs(pairs, 1024)
        for left in range(tokens):
            for right in range(tokens):
                entry = left * (tokens + 1) + right
                total = self.dense_total(entry)
                if total.count < threshold:
                    continue
                cursor = self.list_pair(
                    pairs, make_pair(<uint32_t> left, <uint32_t> right), total)
                for number in range(self.share_count):
                    tally = &self.shares[number].dense[entry]
                    tally.cursor = cursor
                    cursor += tally.size
        return 0

    # With a sieve and hash tables.

    cdef int64_t join_sieves(self) noexcept nogil:
        """Add the counters of all shares up; the highest, as far as they can tell."""
        cdef uint32_t *counters = self.shares[0].sieve
        cdef uint64_t counter
        cdef uint64_t highest = 0
        cdef size_t i, number
        for i in range(<size_t> 1 << self.sieve.bits):
            counter = counters[i]
            for number in range(1, self.share_count):
                counter += self.shares[number].sieve[i]
            highest = max(highest, counter)
            counters[i] = <uint32_t> min(counter, <uint64_t> UINT32_MAX)
        return INT64_MAX if highest >= UINT32_MAX else <int64_t> highest

    cdef int sift(self, int64_t threshold) except -1 nogil:
        """Note which counters reach the threshold."""
        cdef uint32_t *counters = self.shares[0].sieve
        cdef uint32_t least = <uint32_t> min(threshold, <int64_t> UINT32_MAX)
        cdef size_t count = <size_t> 1 << self.sieve.bits
        cdef size_t i
        self.sieve.reached = <uint8_t *> allocated(count // 8 + 1, 1)
        memset(self.sieve.reached, 0, count // 8 + 1)
        for i in range(count):
            if counters[i] >= least:
                self.sieve.reached[i >> 3] |= <uint8_t> (1 << (i & 7))
        return 0

    cdef int gather_hashed(self, int64_t threshold, Pairs *pairs) except -1 nogil:
        """The frequent pairs of all shares, and where these write the places."""
        cdef size_t number, other, i
        cdef uint32_t cursor
        cdef size_t used = 0
        cdef uint64_t pair
        cdef Tally total
        cdef Tally *tally
        # Room for all at once: pairs come in the order of their hashes, so that a table which is
        # still too small would be filled from its one end.
        for number in range(self.share_count):
            used += self.shares[number].used
        open_pairs(pairs, used)
        for number in range(self.share_count):
            for i in range(<size_t> 1 << self.shares[number].bits):
                total = self.shares[number].slots[i].tally
                if total.size == 0:
                    continue
                pair = self.shares[number].slots[i].pair
                if self.is_tallied_before(pair, number):
                    continue
                for other in range(number + 1, self.share_count):
                    tally = tally_of(&self.shares[other], pair)
                    total.count += tally.count
                    total.size += tally.size
                if total.count < threshold:
                    continue
                cursor = self.list_pair(pairs, pair, total)
                for other in range(number, self.share_count):
                    tally = tally_of(&self.shares[other], pair)
                    if tally.size:
                        tally.cursor = cursor
                        cursor += tally.size
        return 0

    cdef bint is_tallied_before(self, uint64_t pair, size_t share) noexcept nogil:
        cdef size_t number
        for number in range(share):
            if tally_of(&self.shares[number], pair).size:
                return True
        return False

    cdef uint32_t list_pair(self, Pairs *pairs, uint64_t pair, Tally total) except 0 nogil:
        """A pair of this generation; where its places begin."""
        cdef Pair entry
        cdef uint32_t start = <uint32_t> self.listed
        entry.pair = pair
        entry.count = total.count
        entry.size = total.size
        entry.places = NULL
        entry.first = start  # until there are places
        put(pairs, &entry)
        self.listed += total.size
        return start


cdef int go_through(
    const Cell *cells, Recount recount, Share *share, size_t last
) except -1 nogil:
    """What this phase of a recount does with some cells."""
    if recount.phase == COUNT_DENSE:
        count_dense(cells, recount.corpus, share, last)
    elif recount.phase == FILL_SIEVE:
        fill_sieve(cells, recount.corpus, share, recount.sieve.bits, last)
    elif recount.phase == COUNT_HASHED:
        count_hashed(cells, recount.corpus, &recount.sieve, share, last)
    elif recount.phase == LIST_DENSE:
        list_dense(cells, share, recount.places, last)
    else:
        list_hashed(cells, &recount.sieve, share, recount.places, last)
    return 0
