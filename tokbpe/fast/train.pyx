"""Training, compiled: the twin of `train_steps` and `train` in `tokbpe.reference`.

The reference counts all pairs anew for each merge. Here a merge touches only the places where
its pair stands, and the result is the same, for these reasons:

- The corpus is one array of cells, with a separator around each sequence. A token occupies as
  many cells as it joins symbols; its id stands in its first and in its last cell, and what lies
  between are holes. So the right neighbor starts `length` cells further, and the left neighbor
  ends one cell before: no links are kept.
- The occurrences of a pair are listed once, in rising order, in the step that makes the younger
  of its two tokens. Later they can only disappear, which the cells tell when the list is read.
  No two merges give the same string, so a token never appears anew, and a pair born below the
  minimum frequency needs no list at all: its count only falls.
- A count is therefore highest when it is queued. The queue is not updated when counts fall: a
  pair that comes out with an old count is queued again with the true one (point 6).
- The queue's order is a total one (point 7). "first" is told by the first occurrence that
  still stands; while the count is unchanged, so is that place.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from contextlib import suppress

import numpy as np

from tokbpe import arguments

from .memory cimport reserve, resized
from .pairs cimport (
    NOT_FOUND,
    PairTable,
    close_pair_table,
    find_pair,
    make_pair,
    open_pair_table,
    put_pair,
)

# Two values of a cell that are no ids. The number of cells is limited so that positions, and ids,
# of which each needs a cell to be learned, stay below them.
cdef extern from *:
    """
    #define TOKBPE_SEPARATOR UINT32_C(0xFFFFFFFF)
    #define TOKBPE_HOLE UINT32_C(0xFFFFFFFE)
    #define TOKBPE_MOST_CELLS UINT32_C(0xFFFFFFF0)
    """
    const uint32_t SEPARATOR "TOKBPE_SEPARATOR"
    const uint32_t HOLE "TOKBPE_HOLE"
    const uint32_t MOST_CELLS "TOKBPE_MOST_CELLS"

# How many occurrences are read between two looks for signals: some hundredths of a second.
cdef enum:
    SLICE = 2_000_000

cdef enum TieBreak:
    SMALLEST
    FIRST
    GREATEST

TIE_BREAKS = {"smallest": SMALLEST, "first": FIRST, "greatest": GREATEST}


cdef struct Occurrence:
    uint32_t position  # of the left token's first cell
    uint32_t sequence  # whose weight counts


cdef struct Pair:
    uint32_t left
    uint32_t right
    int64_t count
    Occurrence *places  # NULL: born below the minimum frequency
    uint32_t size
    uint32_t first  # places before this one are known to be gone


cdef struct Queued:
    int64_t count
    uint64_t order  # the lower of equal counts comes first; unused by GREATEST
    uint32_t pair


# A neighbor of a merged place, to be listed as a pair with the new token.
cdef struct Event:
    uint32_t neighbor
    Occurrence place


# What all events of one neighbor come to.
cdef struct Neighbor:
    int64_t weight
    uint32_t size
    Occurrence *places


# The events on one side of the merged places, in rising order.
cdef struct Side:
    Event *events
    size_t size
    size_t capacity
    Neighbor *neighbors  # by token
    size_t neighbor_capacity


# Memory for lists of occurrences, given out in pieces and freed all at once.
cdef struct Block:
    Block *previous
    size_t size
    size_t used


@cython.final
cdef class Trainer:
    """One training: built from sequences, then advanced merge by merge."""

    # The corpus.
    cdef uint32_t *cells
    cdef size_t cell_count, cell_capacity
    cdef int64_t *weights  # by sequence
    cdef size_t sequence_count, weight_capacity
    # Tokens.
    cdef uint32_t *lengths  # in cells
    cdef size_t token_count, length_capacity, base_count
    cdef uint8_t *strings  # of all tokens, one after another; only for GREATEST
    cdef uint64_t *string_ends
    cdef size_t string_size, string_capacity, end_capacity
    # Pairs.
    cdef PairTable table
    cdef Pair *pairs
    cdef size_t pair_count, pair_capacity
    cdef Block *blocks
    cdef Queued *queue  # a heap in which each item has four children
    cdef size_t queue_size, queue_capacity
    cdef Side left_side, right_side
    # Options and results.
    cdef size_t merges_wanted
    cdef int64_t minimum
    cdef int tie_break
    cdef uint32_t *merges  # left and right in turn
    cdef int64_t *counts
    cdef size_t merge_count, merge_capacity, count_capacity

    def __cinit__(self, sequences, weights, alphabet, merges_wanted, minimum, tie_break):
        strings = arguments.training_alphabet(alphabet)
        self.merges_wanted, self.minimum = arguments.training_options(
            merges_wanted, minimum, tie_break)
        self.tie_break = TIE_BREAKS[tie_break]
        open_pair_table(&self.table, 10)
        self.add_base(strings)
        sequences, weights = arguments.training_lists(sequences, weights)
        self.add_sequences(sequences, weights, strings)
        self.count_pairs()
        self.list_places()
        self.fill_queue()

    def __dealloc__(self):
        cdef Block *block
        while self.blocks != NULL:
            block = self.blocks
            self.blocks = block.previous
            free(block)
        free(self.cells)
        free(self.weights)
        free(self.lengths)
        free(self.strings)
        free(self.string_ends)
        close_pair_table(&self.table)
        free(self.pairs)
        free(self.queue)
        free(self.left_side.events)
        free(self.left_side.neighbors)
        free(self.right_side.events)
        free(self.right_side.neighbors)
        free(self.merges)
        free(self.counts)

    # Reading the corpus into cells.

    cdef int add_base(self, list strings) except -1:
        for string in strings:
            self.add_token(1)
            if self.tie_break == GREATEST:
                self.add_string(
                    <const uint8_t *> PyBytes_AS_STRING(string), PyBytes_GET_SIZE(string))
                self.end_string()
        self.base_count = self.token_count
        return 0

    cdef int add_sequences(self, list sequences, list weights, list strings) except -1:
        """The cells of all sequences, each of them and its weight checked (point 5)."""
        cdef int64_t places = 0
        cdef int64_t weight
        cdef size_t size, i
        cdef Py_ssize_t index
        cdef uint32_t symbol
        cdef bint any_byte = len(strings) >= 256 and all(strings[:256])
        cdef const uint8_t *data
        self.add_separator()
        for index in range(len(sequences)):
            weight = checked_weight(weights[index], index)
            sequence = sequences[index]
            if not (any_byte and type(sequence) is bytes):
                sequence = arguments.sequence_symbols(sequence, index, strings)
            size = len(sequence)
            if size < 2:
                continue
            if weight > (INT64_MAX - places) // <int64_t> (size - 1):
                raise arguments.counts_overflow(index)
            places += weight * <int64_t> (size - 1)
            if size >= MOST_CELLS - self.cell_count:
                raise ValueError(
                    f"with sequence {index} the corpus has more than {MOST_CELLS} symbols, "
                    "the most that the fast engine trains on"
                )
            reserve(<void **> &self.cells, &self.cell_capacity,
                    self.cell_count + size + 1, sizeof(uint32_t))
            if type(sequence) is bytes:
                data = <const uint8_t *> PyBytes_AS_STRING(sequence)
                for i in range(size):
                    self.cells[self.cell_count + i] = data[i]
                self.cell_count += size
            else:
                for symbol in <list> sequence:
                    self.cells[self.cell_count] = symbol
                    self.cell_count += 1
            self.add_separator()
            reserve(<void **> &self.weights, &self.weight_capacity,
                    self.sequence_count + 1, sizeof(int64_t))
            self.weights[self.sequence_count] = weight
            self.sequence_count += 1
        return 0

    cdef int add_separator(self) except -1:
        reserve(<void **> &self.cells, &self.cell_capacity,
                self.cell_count + 1, sizeof(uint32_t))
        self.cells[self.cell_count] = SEPARATOR
        self.cell_count += 1
        return 0

    # Counting and listing the pairs of base symbols.

    cdef int count_pairs(self) except -1:
        """The pairs in the order in which they are first met, with their counts (point 5)."""
        cdef size_t start = 0
        cdef uint32_t sequence = 0
        while start + 1 < self.cell_count:
            with nogil:
                start = self.count_slice(start, &sequence)
            PyErr_CheckSignals()
        return 0

    cdef size_t count_slice(self, size_t start, uint32_t *sequence) except? 0 nogil:
        cdef size_t end = min(self.cell_count - 1, start + SLICE)
        cdef size_t position
        cdef uint32_t left, right
        cdef Pair *pair
        for position in range(start, end):
            left = self.cells[position]
            right = self.cells[position + 1]
            if right == SEPARATOR:
                sequence[0] += 1
            elif left != SEPARATOR:
                pair = self.known_pair(left, right)
                pair.count += self.weights[sequence[0]]
                pair.size += 1
        return end

    cdef Pair *known_pair(self, uint32_t left, uint32_t right) except NULL nogil:
        """The pair, new with count 0 if it was never met."""
        cdef uint32_t index = put_pair(
            &self.table, make_pair(left, right), <uint32_t> self.pair_count)[0]
        cdef Pair *pair
        if index < self.pair_count:
            return &self.pairs[index]
        reserve(<void **> &self.pairs, &self.pair_capacity, self.pair_count + 1, sizeof(Pair))
        pair = &self.pairs[index]
        memset(pair, 0, sizeof(Pair))
        pair.left = left
        pair.right = right
        self.pair_count += 1
        return pair

    cdef int list_places(self) except -1:
        """The occurrences of each pair that is frequent enough."""
        cdef size_t start = 0
        cdef size_t i
        cdef uint32_t sequence = 0
        for i in range(self.pair_count):
            if self.pairs[i].count >= self.minimum:
                self.pairs[i].places = self.new_places(self.pairs[i].size)
            self.pairs[i].size = 0
        while start + 1 < self.cell_count:
            with nogil:
                start = self.list_slice(start, &sequence)
            PyErr_CheckSignals()
        return 0

    cdef size_t list_slice(self, size_t start, uint32_t *sequence) noexcept nogil:
        cdef size_t end = min(self.cell_count - 1, start + SLICE)
        cdef size_t position
        cdef uint32_t left, right
        cdef Pair *pair
        for position in range(start, end):
            left = self.cells[position]
            right = self.cells[position + 1]
            if right == SEPARATOR:
                sequence[0] += 1
            elif left != SEPARATOR:
                pair = &self.pairs[find_pair(&self.table, make_pair(left, right))]
                if pair.places != NULL:
                    pair.places[pair.size] = Occurrence(<uint32_t> position, sequence[0])
                    pair.size += 1
        return end

    cdef Occurrence *new_places(self, size_t size) except NULL nogil:
        """Room for a list of occurrences."""
        cdef Block *block = self.blocks
        cdef Occurrence *places
        cdef size_t wanted
        if block == NULL or block.size - block.used < size:
            wanted = max(size, <size_t> 1 << 17)
            # One item more than needed covers the block's own head.
            block = <Block *> resized(NULL, wanted + sizeof(Block) // sizeof(Occurrence) + 1,
                                      sizeof(Occurrence))
            if block == NULL:
                with gil:
                    raise MemoryError(f"no memory for {wanted} occurrences")
            block.previous = self.blocks
            block.size = wanted
            block.used = 0
            self.blocks = block
        places = <Occurrence *> (block + 1) + block.used
        block.used += size
        return places

    # The queue.

    cdef int fill_queue(self) except -1 nogil:
        cdef size_t i
        for i in range(self.pair_count):
            if self.pairs[i].places != NULL:
                self.push(<uint32_t> i)
        return 0

    cdef inline bint before(self, const Queued *x, const Queued *y) noexcept nogil:
        """Whether x is merged before y (points 6 and 7)."""
        if x.count != y.count:
            return x.count > y.count
        if self.tie_break == GREATEST:
            return self.greater(&self.pairs[x.pair], &self.pairs[y.pair])
        return x.order < y.order

    cdef bint greater(self, const Pair *x, const Pair *y) noexcept nogil:
        """Whether the strings of x are the greater ones; ids tell equal strings apart."""
        cdef int order = self.compare_strings(x.left, y.left)
        if order == 0:
            order = self.compare_strings(x.right, y.right)
        if order == 0:
            return make_pair(x.left, x.right) > make_pair(y.left, y.right)
        return order > 0

    cdef int compare_strings(self, uint32_t x, uint32_t y) noexcept nogil:
        cdef uint64_t x_start = self.string_ends[x - 1] if x else 0
        cdef uint64_t y_start = self.string_ends[y - 1] if y else 0
        cdef uint64_t x_size = self.string_ends[x] - x_start
        cdef uint64_t y_size = self.string_ends[y] - y_start
        cdef int order = memcmp(self.strings + x_start, self.strings + y_start,
                                min(x_size, y_size))
        if order == 0 and x_size != y_size:
            return 1 if x_size > y_size else -1
        return order

    cdef Queued queued(self, uint32_t index) noexcept nogil:
        """The pair as it stands now."""
        cdef Pair *pair = &self.pairs[index]
        cdef Queued item
        item.count = pair.count
        item.pair = index
        item.order = 0
        if self.tie_break == SMALLEST:
            item.order = make_pair(pair.left, pair.right)
        elif self.tie_break == FIRST:
            while not self.stands(pair, pair.places[pair.first].position):
                pair.first += 1
            item.order = pair.places[pair.first].position
        return item

    cdef inline bint stands(self, const Pair *pair, uint32_t position) noexcept nogil:
        """Whether the pair still occurs at a listed position."""
        return (self.cells[position] == pair.left
                and self.cells[position + self.lengths[pair.left]] == pair.right)

    cdef int push(self, uint32_t index) except -1 nogil:
        cdef Queued item
        cdef size_t place = self.queue_size
        cdef size_t parent
        reserve(<void **> &self.queue, &self.queue_capacity, place + 1, sizeof(Queued))
        item = self.queued(index)
        self.queue_size += 1
        while place > 0:
            parent = (place - 1) // 4
            if not self.before(&item, &self.queue[parent]):
                break
            self.queue[place] = self.queue[parent]
            place = parent
        self.queue[place] = item
        return 0

    cdef void replace_top(self, Queued item) noexcept nogil:
        """Put an item in the place of the first one and let it sink."""
        cdef size_t place = 0
        cdef size_t child, best, last
        while True:
            child = 4 * place + 1
            if child >= self.queue_size:
                break
            best = child
            last = min(child + 4, self.queue_size)
            for child in range(child + 1, last):
                if self.before(&self.queue[child], &self.queue[best]):
                    best = child
            if not self.before(&self.queue[best], &item):
                break
            self.queue[place] = self.queue[best]
            place = best
        self.queue[place] = item

    cdef void drop_top(self) noexcept nogil:
        self.queue_size -= 1
        if self.queue_size:
            self.replace_top(self.queue[self.queue_size])

    cdef Pair *best_pair(self) noexcept nogil:
        """The pair to merge next, taken off the queue; NULL when training ends (point 6)."""
        cdef Queued top
        cdef Pair *pair
        while self.queue_size:
            top = self.queue[0]
            pair = &self.pairs[top.pair]
            if pair.count == top.count:
                self.drop_top()
                return pair
            if pair.count >= self.minimum:
                self.replace_top(self.queued(top.pair))
            else:
                self.drop_top()
        return NULL

    # Merging.

    cdef bint advance(self, size_t merges_wanted, size_t work) except -1 nogil:
        """Merge until so many merges are there or so many occurrences were read.

        False when training has ended.
        """
        cdef Pair *pair
        cdef size_t done = 0
        while self.merge_count < merges_wanted and done < work:
            pair = self.best_pair()
            if pair == NULL:
                return False
            done += pair.size
            self.record(pair)
            self.merge(pair)
        return self.merge_count < merges_wanted

    cdef int record(self, const Pair *pair) except -1 nogil:
        """Note the merge and make its token (point 8)."""
        cdef size_t n = self.merge_count
        reserve(<void **> &self.merges, &self.merge_capacity, 2 * n + 2, sizeof(uint32_t))
        reserve(<void **> &self.counts, &self.count_capacity, n + 1, sizeof(int64_t))
        self.add_token(self.lengths[pair.left] + self.lengths[pair.right])
        if self.tie_break == GREATEST:
            self.copy_string(pair.left)
            self.copy_string(pair.right)
            self.end_string()
        self.merges[2 * n] = pair.left
        self.merges[2 * n + 1] = pair.right
        self.counts[n] = pair.count
        self.merge_count = n + 1
        return 0

    cdef int add_token(self, uint32_t length) except -1 nogil:
        reserve(<void **> &self.lengths, &self.length_capacity,
                self.token_count + 1, sizeof(uint32_t))
        self.lengths[self.token_count] = length
        self.token_count += 1
        return 0

    cdef int add_string(self, const uint8_t *string, size_t size) except -1 nogil:
        if size == 0:
            return 0  # there may be no memory yet
        reserve(<void **> &self.strings, &self.string_capacity, self.string_size + size, 1)
        memcpy(self.strings + self.string_size, string, size)
        self.string_size += size
        return 0

    cdef int copy_string(self, uint32_t token) except -1 nogil:
        """Append the string of a token to the string of the token in the making."""
        cdef uint64_t start = self.string_ends[token - 1] if token else 0
        cdef size_t size = self.string_ends[token] - start
        # Room first, for the string to be copied lies in the memory that may move.
        reserve(<void **> &self.strings, &self.string_capacity, self.string_size + size, 1)
        return self.add_string(self.strings + start, size)

    cdef int end_string(self) except -1 nogil:
        reserve(<void **> &self.string_ends, &self.end_capacity,
                self.token_count, sizeof(uint64_t))
        self.string_ends[self.token_count - 1] = self.string_size
        return 0

    cdef int merge(self, const Pair *pair) except -1 nogil:
        """Replace a pair by the newest token everywhere and bring all counts up to date.

        A merged place takes the pair (l, left) from its left neighbor l and gives it (l, new);
        on the right, (right, r) becomes (new, r). What lies to the right is known only when
        the next place is looked at: if that begins where this one ends, two new tokens are
        neighbors, and what stood between them was (right, left).
        """
        cdef uint32_t *cells = self.cells
        cdef uint32_t left = pair.left
        cdef uint32_t right = pair.right
        cdef uint32_t new = <uint32_t> (self.token_count - 1)
        cdef uint32_t left_length = self.lengths[left]
        cdef uint32_t new_length = self.lengths[new]
        cdef uint32_t i, position, neighbor
        cdef uint32_t previous_end = 0  # no place begins in cell 0, which is a separator
        cdef int64_t between = 0
        cdef Occurrence place
        cdef Occurrence previous = Occurrence(0, 0)
        cdef size_t first_new_pair = self.pair_count
        prepare_side(&self.left_side, pair.size, self.token_count)
        prepare_side(&self.right_side, pair.size, self.token_count)
        for i in range(pair.first, pair.size):
            place = pair.places[i]
            position = place.position
            if cells[position] != left or cells[position + left_length] != right:
                continue
            if position == previous_end:
                self.note(&self.right_side, new, previous)
                between += self.weights[place.sequence]
            else:
                if cells[previous_end] != SEPARATOR:
                    self.note(&self.right_side, cells[previous_end], previous)
                neighbor = cells[position - 1]
                if neighbor != SEPARATOR:
                    self.note(&self.left_side, neighbor,
                              Occurrence(position - self.lengths[neighbor], place.sequence))
            previous = place
            previous_end = position + new_length
            cells[position + left_length - 1] = HOLE
            cells[position + left_length] = HOLE
            cells[position] = new
            cells[previous_end - 1] = new
        if cells[previous_end] != SEPARATOR:
            self.note(&self.right_side, cells[previous_end], previous)
        # The merged pair itself may lose here, too: it is not queued any more.
        self.lose(right, left, between)
        self.settle_left(left, new)
        self.settle_right(right, new)
        for i in range(<uint32_t> first_new_pair, <uint32_t> self.pair_count):
            self.push(i)
        return 0

    cdef inline void note(self, Side *side, uint32_t neighbor, Occurrence place) noexcept nogil:
        cdef Neighbor *total = &side.neighbors[neighbor]
        cdef Event *event = &side.events[side.size]
        event.neighbor = neighbor
        event.place = place
        side.size += 1
        total.weight += self.weights[place.sequence]
        total.size += 1

    cdef int settle_left(self, uint32_t left, uint32_t new) except -1 nogil:
        """(l, left) became (l, new)."""
        cdef Side *side = &self.left_side
        cdef Neighbor *total
        cdef uint32_t neighbor
        cdef size_t i
        for i in range(side.size):
            neighbor = side.events[i].neighbor
            total = &side.neighbors[neighbor]
            if total.size:
                self.lose(neighbor, left, total.weight)
                self.gain(neighbor, new, total)
            add_place(total, side.events[i].place)
        clear_side(side)
        return 0

    cdef int settle_right(self, uint32_t right, uint32_t new) except -1 nogil:
        """(right, r) became (new, r); what stood between two new tokens is already counted."""
        cdef Side *side = &self.right_side
        cdef Neighbor *total
        cdef uint32_t neighbor
        cdef size_t i
        for i in range(side.size):
            neighbor = side.events[i].neighbor
            total = &side.neighbors[neighbor]
            if total.size:
                if neighbor != new:
                    self.lose(right, neighbor, total.weight)
                self.gain(new, neighbor, total)
            add_place(total, side.events[i].place)
        clear_side(side)
        return 0

    cdef inline void lose(self, uint32_t left, uint32_t right, int64_t weight) noexcept nogil:
        """Lower a count; pairs that were always too rare are not known or not listed."""
        cdef uint32_t index = find_pair(&self.table, make_pair(left, right))
        if index != NOT_FOUND:
            self.pairs[index].count -= weight

    cdef int gain(self, uint32_t left, uint32_t right, Neighbor *total) except -1 nogil:
        """Make a pair with the new token, if it is frequent enough ever to be merged."""
        cdef Pair *pair
        if total.weight >= self.minimum:
            total.places = self.new_places(total.size)
            pair = self.known_pair(left, right)
            pair.count = total.weight
            pair.size = total.size
            pair.places = total.places
        total.weight = 0
        total.size = 0
        return 0


cdef int prepare_side(Side *side, size_t events, size_t tokens) except -1 nogil:
    """Room for the events of one merge; all totals are zero between merges."""
    cdef size_t known = side.neighbor_capacity
    reserve(<void **> &side.events, &side.capacity, events, sizeof(Event))
    reserve(<void **> &side.neighbors, &side.neighbor_capacity, tokens, sizeof(Neighbor))
    memset(side.neighbors + known, 0, (side.neighbor_capacity - known) * sizeof(Neighbor))
    return 0


cdef inline void add_place(Neighbor *total, Occurrence place) noexcept nogil:
    if total.places != NULL:
        total.places[0] = place
        total.places += 1


cdef void clear_side(Side *side) noexcept nogil:
    cdef size_t i
    for i in range(side.size):
        side.neighbors[side.events[i].neighbor].places = NULL
    side.size = 0


cdef int64_t checked_weight(value, size_t index) except -1:
    """The weight of a sequence."""
    return arguments.sequence_weight(value, index)


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
    arguments.threads(threads)
    cdef Trainer trainer = Trainer(
        sequences, weights, alphabet, merges_wanted, minimum_pair_frequency, tie_break)
    cdef size_t wanted = trainer.merges_wanted
    cdef size_t n = 0
    while n < wanted:
        with nogil:
            trainer.advance(n + 1, SLICE)
        PyErr_CheckSignals()
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
        arguments.threads(threads)
        trainer = Trainer(
            sequences, weights, alphabet, merges_wanted, minimum_pair_frequency, tie_break)
        while more:
            with nogil:
                more = trainer.advance(trainer.merges_wanted, SLICE)
            PyErr_CheckSignals()
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
