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

Update. What a merge changes stands beside its places (`update.pxd`). Gains and losses are summed
  for each neighbor in an array by token, and then take one look at the table of pairs each. No
  pair is ever counted that the merge itself takes away again.

Queue. A count is highest when its pair is queued, and the queue is not told when it falls: a pair
  that comes out with an old count goes back with the true one (`queue.pxd`, point 6). The order is
  a total one (point 7). "first" is told by the first place that still stands: while the count is
  unchanged, so is that place.

Generations. Lists, entries and queue hold only the pairs that occur `threshold` times: one that is
  born below can never rise. When none is left, the cells are made compact, the pairs counted anew
  (`recount.pyx`), and the threshold falls, to the least frequency in the end. Tables stay small,
  and a place that will never be merged is mostly never listed.

What was tried (seconds of processor time for 100 MB, half English, a quarter in other languages, a
quarter code: 540,000 distinct pieces and 32,000 merges, or one raw text and 32,000 merges):
- Thresholds that fall by 4, 16 and 64: 0.38, 0.26 and 0.24, raw 4.1 with 16 and 4.0 with 64, which
  takes 0.9 bytes more a byte of text (5.8 in all, beside the text). Not going on to where the last
  merge is expected: 0.39, for one generation more that brings few merges.
- Cells compacted by going from token to token: 22 ms for 7 million cells, 10 as it is, since each
  step had to wait for a length. Places listed with a branch for those of rare pairs: 40 ms, without
  it and with the memory of the lists asked for ahead: 11.
- Hash tables of which one is emptied into another that still has to grow: 0.9 seconds more, for
  pairs come in the order of their hashes and pile up at one end.
- Rows of equal weight side by side, instead of the weight looked up for each place: 0.31 instead of
  0.41 for words of 50 MB and 10,000 merges. The rule "first" needs the order given.
- Asking for the cells of 24 or 40 places ahead instead of 12: no difference.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport sqrt
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset


import numpy as np

from tokbpe import arguments

from .cells cimport (
    Compaction,
    Corpus,
    close_corpus,
    compact_slice,
    index_runs,
    shrink,
    widen,
)
from .memory cimport free, reserve, tokbpe_prefetch
from .pairs cimport make_pair
from .places cimport (
    Block,
    Pair,
    Pairs,
    close_pairs,
    free_places,
    home_of,
    new_places,
    put,
    slot_of,
)
from .queue cimport Queue, Queued, append, close_queue, drop_top, push, put_in_order, sink
from .recount cimport Recount
from .seeds cimport set_seeds
from .sequences cimport Sequences
from .tokens cimport Tokens, add_base, add_joined, close_tokens, end_lengths
from .update cimport (
    Merge,
    Side,
    Total,
    beside,
    clear_side,
    close_side,
    list_events,
    merge_places,
    reserve_events,
    reserve_totals,
    settle_pending,
)

set_seeds()

# What the tests change to see all parts at work on small input.
LIMITS = {
    "cells": 2**32 - 16,  # so that positions, and ids, of which each needs a cell, fit
    "narrow_tokens": 2**16 - 2,  # so many tokens have cells of two bytes at most
    "factor": 64,  # by which the threshold falls
    "dense_tokens": 1024,  # up to so many, there is a table for any two of them
    "sieve_bits": 21,  # of the number of counters, at most
    "slice": 2_000_000,  # places or cells between two looks for signals
    "thread_cells": 2_000_000,  # a thread is started for so many at least
}

# So many neighbors ahead, the entries of their pairs are asked for.
cdef enum:
    NEIGHBORS_AHEAD = 6

cdef enum State:
    MORE
    EXHAUSTED  # there are no pairs any more in this generation, or no ids
    DONE


@cython.final
cdef class Trainer:
    """One training: built from sequences, then advanced merge by merge."""

    cdef Corpus corpus
    cdef Tokens tokens
    # The pairs of this generation.
    cdef int64_t threshold
    cdef bint has_merged, has_counted
    cdef Pairs pairs
    cdef Block *blocks
    cdef Queue queue
    # One merge.
    cdef Side left_side, right_side
    cdef uint64_t *born
    cdef size_t born_count, born_capacity
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
            if self.has_counted and self.threshold == self.minimum and not self.is_full():
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
        cdef Recount recount
        if self.queue.size:
            bound = self.queue.items[0].count
        self.close_generation()
        if self.merge_count:
            self.compact()
        if self.is_full():
            widen(&self.corpus)
        index_runs(&self.corpus)
        recount = Recount()
        recount.open(self, &self.corpus, self.tokens.count, self.thread_count, self.limits)
        self.threshold = self.lower(min(bound, recount.count()))
        recount.gather(self.threshold, &self.pairs)
        recount.list_places(&self.pairs, &self.blocks)
        self.fill_queue()
        self.has_merged = False
        self.has_counted = True
        return 0

    cdef void close_generation(self) noexcept:
        close_pairs(&self.pairs)
        free_places(&self.blocks)
        close_queue(&self.queue)

    cdef int compact(self) except -1:
        """One cell for each token."""
        cdef Compaction state = Compaction(1, 1, 1, 1, 0, 0)
        cdef size_t tokens = self.tokens.count
        cdef size_t last, i
        end_lengths(&self.tokens)
        while state.source < self.corpus.size:
            last = min(state.source + self.slice_size, self.corpus.size)
            with nogil:
                if self.corpus.narrow != NULL:
                    compact_slice(self.corpus.narrow, &self.corpus, self.tokens.lengths, tokens,
                                  &state, last)
                else:
                    compact_slice(self.corpus.wide, &self.corpus, self.tokens.lengths, tokens,
                                  &state, last)
            PyErr_CheckSignals()
        shrink(&self.corpus, &state)
        for i in range(tokens):
            self.tokens.lengths[i] = 1
        return 0

    cdef int64_t lower(self, int64_t bound) noexcept nogil:
        """The threshold for counts that are not above a bound."""
        cdef int64_t factor = self.factor
        cdef int64_t last = self.expected_last(bound)
        if not self.has_merged:  # in vain: not to go on step by step
            factor = max(factor, 2)
        if last >= bound // factor // factor:  # near enough to go there at once
            return max(last, self.minimum)
        return max(bound // factor, self.minimum)

    cdef int64_t expected_last(self, int64_t bound) noexcept nogil:
        """About the count of the last merge wanted, rather too low than too high.

        In text, counts fall with the number of the merge or a little faster.
        """
        cdef double done = <double> self.merge_count / <double> self.merges_wanted
        return <int64_t> (0.75 * <double> bound * done * sqrt(done))

    cdef int fill_queue(self) except -1 nogil:
        cdef size_t i
        cdef Pair *pair
        for i in range(<size_t> 1 << self.pairs.bits):
            pair = &self.pairs.slots[i]
            if pair.size:
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
            # That its count is not 0 tells that one stands.
            while pair.first + 1 < pair.size and not self.stands(pair, pair.places[pair.first]):
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
                merge_places(
                    self.corpus.narrow, &self.corpus, self.tokens.lengths, &merge,
                    pair.places + start, size, &self.left_side, &self.right_side)
            else:
                merge_places(
                    self.corpus.wide, &self.corpus, self.tokens.lengths, &merge,
                    pair.places + start, size, &self.left_side, &self.right_side)
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
    kept = arguments.kept_interrupts(on_interrupt)
    try:  # no `with`: its end runs Python, where an interrupt could be raised once more
        trainer = Trainer(
            sequences, weights, alphabet, merges_wanted, minimum_pair_frequency, tie_break,
            threads)
        while more:
            more = trainer.go_on(trainer.merges_wanted)
            if progress is not None and trainer.merge_count:
                progress(trainer.merge_count, trainer.merges_wanted)
    except kept:
        pass
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
