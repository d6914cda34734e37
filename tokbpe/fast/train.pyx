"""Training, compiled: the twin of `train_steps` and `train` in `tokbpe.reference`.

The reference counts all pairs anew for each merge. Here a merge touches only the places where
its pair stands, and the result is the same, for these reasons:

Cells. The corpus is one flat array, with a separator between rows (`cells.pxd`). A token occupies
  as many cells as it joins, its id in the first and in the last one. So the right neighbor starts
  `length` cells further, and the left neighbor ends one cell before: no links are kept, and a
  merge mostly stays in one cache line.

Places. The occurrences of a pair are listed once, in rising order, in the step that makes the
  younger of its two tokens (`places.pxd`). Later they can only disappear, which the cells tell
  when the list is read. For no two merges give the same string, so that a token never appears
  anew. Skipping what has disappeared is all that runs such as `a a a` need.

Update. A merged place takes the pair (l, left) from its left neighbor l and gives it (l, new); on
  the right, (right, r) becomes (new, r). What lies to the right is known only when the next place
  is looked at, and is pending until then: if that place begins where this one ends, two new
  tokens are neighbors, and what stood between them was (right, left). Gains and losses are summed
  for each neighbor in an array by token, and then take one look at the table of pairs each.

Queue. A count is highest when its pair is queued, and the queue is not told when it falls: a pair
  that comes out with an old count goes back with the true one (`queue.pxd`, point 6). The order is
  a total one (point 7). "first" is told by the first place that still stands: while the count is
  unchanged, so is that place.

Generations. Lists, entries and queue hold only the pairs that occur `threshold` times: one that is
  born below can never rise. When none is left, the cells are made compact, the pairs counted anew
  (`recount.pxd`), and the threshold falls, to the least frequency in the end. Tables stay small,
  and a place that will never be merged is mostly never listed.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport (
    INT64_MAX,
    UINT32_MAX,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from contextlib import suppress

import numpy as np

from tokbpe import arguments
from tokbpe.fast.threads import run_all

from .cells cimport (
    HOLE,
    SEPARATOR,
    Cell,
    Compaction,
    Corpus,
    Run,
    close_corpus,
    compact_slice,
    index_runs,
    run_of,
    shrink,
    widen,
)
from .memory cimport allocated, reserve, tokbpe_prefetch
from .pairs cimport make_pair
from .places cimport (
    Block,
    Pair,
    Pairs,
    close_pairs,
    free_places,
    home_of,
    new_places,
    open_pairs,
    put,
    slot_of,
)
from .queue cimport Queue, Queued, append, close_queue, drop_top, push, put_in_order, sink
from .recount cimport (
    Share,
    Sieve,
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
from .sequences cimport Sequences
from .tokens cimport Tokens, add_base, add_joined, close_tokens

# What the tests change to see all parts at work on small input.
LIMITS = {
    "cells": 2**32 - 16,  # so that positions, and ids, of which each needs a cell, fit
    "narrow_tokens": 2**16 - 2,  # so many tokens have cells of two bytes at most
    "factor": 16,  # by which the threshold falls
    "dense_tokens": 1024,  # up to so many, there is a table for any two of them
    "sieve_bits": 21,  # of the number of counters, at most
    "slice": 2_000_000,  # places or cells between two looks for signals
    "thread_cells": 2_000_000,  # a thread is started for so many at least
}

# So many places ahead, the cells are asked for.
cdef enum:
    PLACES_AHEAD = 12
    NEIGHBORS_AHEAD = 6

cdef enum State:
    MORE
    EXHAUSTED  # there are no pairs any more in this generation, or no ids
    DONE

cdef enum Phase:
    COUNT_DENSE
    FILL_SIEVE
    COUNT_HASHED
    LIST_DENSE
    LIST_HASHED


# A neighbor of a merged place, to be listed as a pair with the new token.
cdef struct Event:
    uint32_t neighbor
    uint32_t position


# What all events of one neighbor come to.
cdef struct Total:
    int64_t weight
    uint32_t size
    uint32_t *places  # NULL: the pair is not listed


# The events on one side of the merged places, in rising order.
cdef struct Side:
    bint is_left
    Event *events
    size_t size, capacity
    Total *totals  # by neighbor
    size_t total_capacity
    uint32_t *neighbors  # those that have a total
    size_t neighbor_count, neighbor_capacity


# A merge, and how far it has come.
cdef struct Merge:
    uint32_t left, right, new
    uint32_t left_length, new_length
    uint32_t previous, previous_end  # the last merged place
    int64_t previous_weight
    int64_t between  # so often, (right, left) stood between two new tokens


@cython.final
cdef class Trainer:
    """One training: built from sequences, then advanced merge by merge."""

    cdef Corpus corpus
    cdef Tokens tokens
    # The pairs of this generation.
    cdef int64_t threshold
    cdef bint has_merged
    cdef Pairs pairs
    cdef Block *blocks
    cdef Queue queue
    # One merge.
    cdef Side left_side, right_side
    cdef uint64_t *born
    cdef size_t born_count, born_capacity
    # A recount.
    cdef Share *shares
    cdef size_t share_count
    cdef Sieve sieve
    cdef size_t listed  # places
    cdef uint32_t *listing
    cdef Phase phase
    cdef bint stopped
    # Options and results.
    cdef size_t merges_wanted, slice_size, narrow_tokens
    cdef int64_t minimum, factor
    cdef int thread_count
    cdef dict limits
    cdef bint by_place  # equal counts are told apart by their first places
    cdef uint32_t *merges  # left and right in turn
    cdef int64_t *counts
    cdef size_t merge_count, merge_capacity, count_capacity

    def __cinit__(self, sequences, weights, alphabet, merges_wanted, minimum, tie_break, threads):
        arguments.threads(threads)
        strings = arguments.training_alphabet(alphabet)
        self.merges_wanted, self.minimum = arguments.training_options(
            merges_wanted, minimum, tie_break)
        self.thread_count = arguments.thread_count(threads)
        self.by_place = tie_break == "first"
        self.limits = dict(LIMITS)
        self.slice_size = self.limits["slice"]
        self.factor = self.limits["factor"]
        self.narrow_tokens = self.limits["narrow_tokens"]
        add_base(&self.tokens, strings, tie_break == "greatest")
        self.queue.strings = &self.tokens if tie_break == "greatest" else NULL
        self.left_side.is_left = True
        cdef Sequences given = Sequences(sequences, weights, strings, self.limits["cells"])
        given.fill(&self.corpus, self.tokens.count < self.narrow_tokens, self.by_place)
        self.threshold = INT64_MAX
        self.has_merged = True

    def __dealloc__(self):
        self.close_recount()
        self.close_generation()
        close_corpus(&self.corpus)
        close_tokens(&self.tokens)
        close_side(&self.left_side)
        close_side(&self.right_side)
        free(self.born)
        free(self.merges)
        free(self.counts)

    cdef bint go_on(self, size_t merges_wanted) except -1:
        """Merge for some hundredths of a second. False when training has ended."""
        cdef int state
        with nogil:
            state = self.advance(merges_wanted)
        PyErr_CheckSignals()
        if state == EXHAUSTED:
            if self.threshold == self.minimum and not self.is_full():
                return False
            self.next_generation()
        return state != DONE

    # Generations

    cdef bint is_full(self) noexcept nogil:
        """Whether the next id would not fit into the cells."""
        return self.corpus.narrow != NULL and self.tokens.count >= self.narrow_tokens

    cdef int next_generation(self) except -1:
        """Count the pairs anew, and list those that reach a new threshold."""
        # No count is higher: of a pair that is not queued it is below the threshold.
        cdef int64_t bound = self.threshold - 1
        if self.queue.size:
            bound = self.queue.items[0].count
        self.close_generation()
        if self.merge_count:
            self.compact()
        if self.is_full():
            widen(&self.corpus)
        index_runs(&self.corpus)
        try:
            self.recount(bound)
        finally:
            self.close_recount()
        self.fill_queue()
        self.has_merged = False
        return 0

    cdef void close_generation(self) noexcept:
        close_pairs(&self.pairs)
        free_places(&self.blocks)
        close_queue(&self.queue)

    cdef int compact(self) except -1:
        """One cell for each token."""
        cdef Compaction state = Compaction(1, 1, 1, 0, 0)
        cdef size_t last, i
        while state.source < self.corpus.size:
            last = min(state.source + self.slice_size, self.corpus.size)
            with nogil:
                if self.corpus.narrow != NULL:
                    compact_slice(
                        self.corpus.narrow, &self.corpus, self.tokens.lengths, &state, last)
                else:
                    compact_slice(
                        self.corpus.wide, &self.corpus, self.tokens.lengths, &state, last)
            PyErr_CheckSignals()
        shrink(&self.corpus, &state)
        for i in range(self.tokens.count):
            self.tokens.lengths[i] = 1
        return 0

    cdef int64_t lower(self, int64_t bound) noexcept nogil:
        """The threshold for counts that are not above a bound."""
        cdef int64_t factor = self.factor
        if not self.has_merged:  # in vain: not to go on step by step
            factor = max(factor, 2)
        return max(bound // factor, self.minimum)

    cdef int recount(self, int64_t bound) except -1:
        self.open_shares()
        if self.shares[0].dense != NULL:
            self.in_shares(COUNT_DENSE)
            with nogil:
                self.threshold = self.lower(min(bound, self.highest_dense()))
                open_pairs(&self.pairs, 1024)
                self.gather_dense()
        else:
            self.in_shares(FILL_SIEVE)
            with nogil:
                self.threshold = self.lower(min(bound, self.join_sieves()))
                self.sift()
            self.in_shares(COUNT_HASHED)
            with nogil:
                self.gather_hashed()
        self.listing = new_places(&self.blocks, self.listed)
        self.in_shares(LIST_DENSE if self.shares[0].dense != NULL else LIST_HASHED)
        return 0

    cdef int open_shares(self) except -1:
        """Deal the cells out to threads; the last cell is a separator that begins no pair."""
        cdef size_t cells = self.corpus.size - 1
        cdef size_t side = self.tokens.count + 1
        cdef size_t count = min(<size_t> self.thread_count,
                                cells // <size_t> self.limits["thread_cells"] + 1)
        cdef size_t number
        cdef Share *share
        cdef bint is_dense = (self.tokens.count <= <size_t> self.limits["dense_tokens"]
                              and side * side <= 4 * cells + 70000)
        self.sieve.bits = 1
        while (self.sieve.bits < <int> self.limits["sieve_bits"]
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
                open_dense(share, self.tokens.count)
            else:
                open_sieve(share, self.sieve.bits)
                open_slots(share, 10)
        self.listed = 1  # where the first place is written: 0 means that a pair is not listed
        return 0

    cdef void close_recount(self) noexcept:
        cdef size_t number
        for number in range(self.share_count):
            close_share(&self.shares[number])
        free(self.shares)
        self.shares = NULL
        self.share_count = 0
        free(self.sieve.reached)
        self.sieve.reached = NULL

    cdef int in_shares(self, Phase phase) except -1:
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
        cdef Share *share = &self.shares[number]
        cdef size_t last
        while share.next < share.last and not self.stopped:
            last = min(share.next + self.slice_size, share.last)
            with nogil:
                if self.corpus.narrow != NULL:
                    go_through(self.corpus.narrow, self, share, last)
                else:
                    go_through(self.corpus.wide, self, share, last)
            PyErr_CheckSignals()

    cdef int64_t highest_dense(self) noexcept nogil:
        cdef int64_t highest = 0
        cdef size_t tokens = self.tokens.count
        cdef size_t left, right
        for left in range(tokens):
            for right in range(tokens):
                highest = max(highest, self.dense_total(left * (tokens + 1) + right).count)
        return highest

    cdef inline Tally dense_total(self, size_t entry) noexcept nogil:
        cdef Tally total = self.shares[0].dense[entry]
        cdef size_t number
        for number in range(1, self.share_count):
            total.count += self.shares[number].dense[entry].count
            total.size += self.shares[number].dense[entry].size
        return total

    cdef int gather_dense(self) except -1 nogil:
        """The frequent pairs of all shares, and where these write the places."""
        cdef size_t tokens = self.tokens.count
        cdef size_t left, right, entry, number
        cdef uint32_t cursor
        cdef Tally total
        cdef Tally *tally
        for left in range(tokens):
            for right in range(tokens):
                entry = left * (tokens + 1) + right
                total = self.dense_total(entry)
                if total.count < self.threshold:
                    continue
                cursor = self.list_pair(make_pair(<uint32_t> left, <uint32_t> right), total)
                for number in range(self.share_count):
                    tally = &self.shares[number].dense[entry]
                    tally.cursor = cursor
                    cursor += tally.size
        return 0

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

    cdef int sift(self) except -1 nogil:
        """Note which counters reach the threshold."""
        cdef uint32_t *counters = self.shares[0].sieve
        cdef uint32_t least = <uint32_t> min(self.threshold, <int64_t> UINT32_MAX)
        cdef size_t count = <size_t> 1 << self.sieve.bits
        cdef size_t i
        self.sieve.reached = <uint8_t *> allocated(count // 8 + 1, 1)
        memset(self.sieve.reached, 0, count // 8 + 1)
        for i in range(count):
            if counters[i] >= least:
                self.sieve.reached[i >> 3] |= <uint8_t> (1 << (i & 7))
        return 0

    cdef int gather_hashed(self) except -1 nogil:
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
        open_pairs(&self.pairs, used)
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
                if total.count < self.threshold:
                    continue
                cursor = self.list_pair(pair, total)
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

    cdef uint32_t list_pair(self, uint64_t pair, Tally total) except 0 nogil:
        """A pair of this generation; where its places begin."""
        cdef Pair entry
        cdef uint32_t start = <uint32_t> self.listed
        entry.pair = pair
        entry.count = total.count
        entry.size = total.size
        entry.places = NULL
        entry.first = start  # until there are places
        put(&self.pairs, &entry)
        self.listed += total.size
        return start

    cdef int fill_queue(self) except -1 nogil:
        cdef size_t i
        cdef Pair *pair
        for i in range(<size_t> 1 << self.pairs.bits):
            pair = &self.pairs.slots[i]
            if pair.size:
                pair.places = self.listing + pair.first
                pair.first = 0
                append(&self.queue, self.queued(pair))
        put_in_order(&self.queue)
        return 0

    # The queue

    cdef Queued queued(self, Pair *pair) noexcept nogil:
        """The pair as it stands now."""
        cdef Queued item
        item.count = pair.count
        item.pair = pair.pair
        item.order = pair.pair
        if self.by_place:
            while not self.stands(pair, pair.places[pair.first]):
                pair.first += 1
            item.order = pair.places[pair.first]
        return item

    cdef inline bint stands(self, const Pair *pair, uint32_t position) noexcept nogil:
        """Whether the pair still occurs at a listed position."""
        cdef uint32_t left = <uint32_t> (pair.pair >> 32)
        cdef uint32_t right = <uint32_t> pair.pair
        cdef size_t behind = position + <size_t> self.tokens.lengths[left]
        if self.corpus.narrow != NULL:
            return self.corpus.narrow[position] == left and self.corpus.narrow[behind] == right
        return self.corpus.wide[position] == left and self.corpus.wide[behind] == right

    cdef bint take_best(self, Pair *best, size_t *work) noexcept nogil:
        """The pair to merge next, taken off the queue; False: there is none (point 6)."""
        cdef Queued top
        cdef Pair *pair
        while self.queue.size:
            top = self.queue.items[0]
            pair = slot_of(&self.pairs, top.pair)
            if pair.count == top.count:
                drop_top(&self.queue)
                best[0] = pair[0]
                return True
            if pair.count >= self.threshold:
                sink(&self.queue, 0, self.queued(pair))
            else:
                drop_top(&self.queue)
            work[0] += 1
        return False

    # Merging

    cdef int advance(self, size_t merges_wanted) except -1 nogil:
        """Merge until so many merges are there, or so many places were read."""
        cdef Pair pair
        cdef size_t work = 0
        while self.merge_count < merges_wanted:
            if work > self.slice_size:
                return MORE
            if self.is_full() or not self.take_best(&pair, &work):
                return EXHAUSTED
            work += pair.size
            self.has_merged = True
            self.record(&pair)
            self.merge(&pair)
        return DONE

    cdef int record(self, const Pair *pair) except -1 nogil:
        """Note the merge and make its token (point 8)."""
        cdef size_t n = self.merge_count
        cdef uint32_t left = <uint32_t> (pair.pair >> 32)
        cdef uint32_t right = <uint32_t> pair.pair
        reserve(<void **> &self.merges, &self.merge_capacity, 2 * n + 2, sizeof(uint32_t))
        reserve(<void **> &self.counts, &self.count_capacity, n + 1, sizeof(int64_t))
        add_joined(&self.tokens, left, right)
        self.merges[2 * n] = left
        self.merges[2 * n + 1] = right
        self.counts[n] = pair.count
        self.merge_count = n + 1
        return 0

    cdef int merge(self, const Pair *pair) except -1 nogil:
        """Replace a pair by the newest token everywhere and bring all counts up to date."""
        cdef Merge merge
        cdef size_t start = pair.first
        cdef size_t size, i
        memset(&merge, 0, sizeof(Merge))  # no place begins in cell 0, which is a separator
        merge.left = <uint32_t> (pair.pair >> 32)
        merge.right = <uint32_t> pair.pair
        merge.new = <uint32_t> (self.tokens.count - 1)
        merge.left_length = self.tokens.lengths[merge.left]
        merge.new_length = self.tokens.lengths[merge.new]
        reserve_totals(&self.left_side, self.tokens.count)
        reserve_totals(&self.right_side, self.tokens.count)
        while start < pair.size:
            size = min(pair.size - start, self.slice_size)
            reserve_events(&self.left_side, size)
            reserve_events(&self.right_side, size)
            if self.corpus.narrow != NULL:
                merge_places(self.corpus.narrow, self, &merge, pair.places + start, size)
            else:
                merge_places(self.corpus.wide, self, &merge, pair.places + start, size)
            start += size
            if start < pair.size:
                with gil:
                    PyErr_CheckSignals()
        if self.corpus.narrow != NULL:
            settle_pending(self.corpus.narrow, &self.right_side, &merge)
        else:
            settle_pending(self.corpus.wide, &self.right_side, &merge)
        # The merged pair itself may lose here, too: it is not queued any more.
        self.lose(make_pair(merge.right, merge.left), merge.between)
        self.settle(&self.left_side, merge.left, merge.new)
        self.settle(&self.right_side, merge.right, merge.new)
        for i in range(self.born_count):
            push(&self.queue, self.queued(slot_of(&self.pairs, self.born[i])))
        self.born_count = 0
        return 0

    cdef int settle(self, Side *side, uint32_t old, uint32_t new) except -1 nogil:
        """What stood beside an old token stands beside the new one."""
        cdef Total *total
        cdef uint32_t neighbor
        cdef size_t i
        cdef bint is_listed = False
        for i in range(side.neighbor_count):
            if i + NEIGHBORS_AHEAD < side.neighbor_count:
                tokbpe_prefetch(home_of(
                    &self.pairs, beside(side, side.neighbors[i + NEIGHBORS_AHEAD], old)))
            neighbor = side.neighbors[i]
            total = &side.totals[neighbor]
            if neighbor != new:  # what stood between two new tokens is already counted
                self.lose(beside(side, neighbor, old), total.weight)
            if total.weight >= self.threshold:
                self.gain(beside(side, neighbor, new), total)
                is_listed = True
        if is_listed:
            list_events(side)
        clear_side(side)
        return 0

    cdef inline void lose(self, uint64_t pair, int64_t weight) noexcept nogil:
        """Lower a count; a pair that was always too rare is not known."""
        cdef Pair *slot = slot_of(&self.pairs, pair)
        if slot.size:
            slot.count -= weight

    cdef int gain(self, uint64_t key, Total *total) except -1 nogil:
        """A pair with the new token."""
        cdef Pair pair
        total.places = new_places(&self.blocks, total.size)
        pair.pair = key
        pair.count = total.weight
        pair.places = total.places
        pair.size = total.size
        pair.first = 0
        put(&self.pairs, &pair)
        reserve(<void **> &self.born, &self.born_capacity, self.born_count + 1, sizeof(uint64_t))
        self.born[self.born_count] = key
        self.born_count += 1
        return 0


cdef int go_through(const Cell *cells, Trainer trainer, Share *share, size_t last) except -1 nogil:
    """What this phase of a recount does with some cells."""
    cdef const Corpus *corpus = &trainer.corpus
    if trainer.phase == COUNT_DENSE:
        count_dense(cells, corpus, share, last)
    elif trainer.phase == FILL_SIEVE:
        fill_sieve(cells, corpus, share, trainer.sieve.bits, last)
    elif trainer.phase == COUNT_HASHED:
        count_hashed(cells, corpus, &trainer.sieve, share, last)
    elif trainer.phase == LIST_DENSE:
        list_dense(cells, share, trainer.listing, last)
    else:
        list_hashed(cells, &trainer.sieve, share, trainer.listing, last)
    return 0


cdef void merge_places(
    Cell *cells, Trainer trainer, Merge *merge, const uint32_t *places, size_t size
) noexcept nogil:
    """Merge some of the places of a pair, where it still stands."""
    cdef Cell separator = <Cell> SEPARATOR
    cdef Cell hole = <Cell> HOLE
    cdef Cell left = <Cell> merge.left
    cdef Cell right = <Cell> merge.right
    cdef Cell new = <Cell> merge.new
    cdef Cell neighbor
    cdef const uint32_t *lengths = trainer.tokens.lengths
    cdef Side *left_side = &trainer.left_side
    cdef Side *right_side = &trainer.right_side
    cdef uint32_t left_length = merge.left_length
    cdef uint32_t position
    cdef int64_t weight = 0
    cdef size_t run_end = 0
    cdef const Run *run
    cdef size_t i
    for i in range(size):
        if i + PLACES_AHEAD < size:
            tokbpe_prefetch(&cells[places[i + PLACES_AHEAD]])
        position = places[i]
        if cells[position] != left or cells[position + left_length] != right:
            continue
        if position >= run_end:
            run = run_of(&trainer.corpus, position)
            run_end = run.end
            weight = run.weight
        if position == merge.previous_end:
            note(right_side, merge.new, merge.previous, merge.previous_weight)
            merge.between += weight
        else:
            settle_pending(cells, right_side, merge)
            neighbor = cells[position - 1]
            if neighbor != separator:
                note(left_side, neighbor, position - lengths[neighbor], weight)
        merge.previous = position
        merge.previous_end = position + merge.new_length
        merge.previous_weight = weight
        cells[position + left_length - 1] = hole
        cells[position + left_length] = hole
        cells[position] = new
        cells[merge.previous_end - 1] = new


cdef inline void settle_pending(const Cell *cells, Side *right_side, const Merge *merge) noexcept nogil:
    """Note what stands to the right of the last merged place, and was not merged."""
    cdef Cell neighbor = cells[merge.previous_end]
    if neighbor != <Cell> SEPARATOR:
        note(right_side, neighbor, merge.previous, merge.previous_weight)


cdef inline void note(
    Side *side, uint32_t neighbor, uint32_t position, int64_t weight
) noexcept nogil:
    cdef Total *total = &side.totals[neighbor]
    side.events[side.size] = Event(neighbor, position)
    side.size += 1
    if total.size == 0:
        side.neighbors[side.neighbor_count] = neighbor
        side.neighbor_count += 1
    total.weight += weight
    total.size += 1


cdef inline uint64_t beside(const Side *side, uint32_t neighbor, uint32_t token) noexcept nogil:
    return make_pair(neighbor, token) if side.is_left else make_pair(token, neighbor)


cdef int reserve_totals(Side *side, size_t tokens) except -1 nogil:
    """Room for any neighbors; all totals are zero between merges."""
    cdef size_t known = side.total_capacity
    reserve(<void **> &side.totals, &side.total_capacity, tokens, sizeof(Total))
    memset(side.totals + known, 0, (side.total_capacity - known) * sizeof(Total))
    reserve(<void **> &side.neighbors, &side.neighbor_capacity, tokens, sizeof(uint32_t))
    return 0


cdef int reserve_events(Side *side, size_t more) except -1 nogil:
    """Room for so many events more, and the one that is pending."""
    reserve(<void **> &side.events, &side.capacity, side.size + more + 1, sizeof(Event))
    return 0


cdef void list_events(Side *side) noexcept nogil:
    cdef Total *total
    cdef size_t i
    for i in range(side.size):
        total = &side.totals[side.events[i].neighbor]
        if total.places != NULL:
            total.places[0] = side.events[i].position
            total.places += 1


cdef void clear_side(Side *side) noexcept nogil:
    cdef size_t i
    for i in range(side.neighbor_count):
        side.totals[side.neighbors[i]] = Total(0, 0, NULL)
    side.neighbor_count = 0
    side.size = 0


cdef void close_side(Side *side) noexcept nogil:
    free(side.events)
    free(side.totals)
    free(side.neighbors)


def train_steps(
    sequences,
    weights,
    alphabet,
    merges_wanted,
    minimum_pair_frequency=2,
    tie_break="smallest",
    *,
    threads=None,
):
    """Learn merges one by one, and yield each pair with its count (points 5 to 8).

    The twin of `tokbpe.reference.train_steps`.
    """
    cdef Trainer trainer = Trainer(
        sequences, weights, alphabet, merges_wanted, minimum_pair_frequency, tie_break, threads)
    cdef size_t n = 0
    while n < trainer.merges_wanted:
        while trainer.go_on(n + 1):
            pass
        if trainer.merge_count == n:
            return
        yield (trainer.merges[2 * n], trainer.merges[2 * n + 1]), trainer.counts[n]
        n += 1


def train(
    sequences,
    weights,
    alphabet,
    merges_wanted,
    minimum_pair_frequency=2,
    tie_break="smallest",
    progress=None,
    *,
    threads=None,
    on_interrupt="raise",
):
    """Learn merges: all pairs, `uint32` [n, 2], and their counts, `uint64` [n].

    The twin of `tokbpe.reference.train`. It runs without the GIL and answers Ctrl-C.
    """
    cdef Trainer trainer = None
    cdef bint more = True
    with suppress(*arguments.kept_interrupts(on_interrupt)):
        trainer = Trainer(
            sequences, weights, alphabet, merges_wanted, minimum_pair_frequency, tie_break,
            threads)
        while more:
            more = trainer.go_on(trainer.merges_wanted)
            if progress is not None and trainer.merge_count:
                progress(trainer.merge_count, trainer.merges_wanted)
    if trainer is None:  # interrupted before there was anything
        return np.empty((0, 2), np.uint32), np.empty(0, np.uint64)
    return learned_merges(trainer), learned_counts(trainer)


cdef learned_merges(Trainer trainer):
    merges = np.empty((trainer.merge_count, 2), np.uint32)
    cdef uint32_t[:, ::1] view = merges
    if trainer.merge_count:
        memcpy(&view[0, 0], trainer.merges, 2 * trainer.merge_count * sizeof(uint32_t))
    return merges


cdef learned_counts(Trainer trainer):
    counts = np.empty(trainer.merge_count, np.uint64)
    cdef uint64_t[::1] view = counts
    if trainer.merge_count:
        memcpy(&view[0], trainer.counts, trainer.merge_count * sizeof(uint64_t))
    return counts
