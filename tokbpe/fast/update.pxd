"""The places of one merge: replacing the pair there, and summing up what its neighbors become.

A merged place takes the pair (l, left) from its left neighbor l and gives it (l, new); on the
right, (right, r) becomes (new, r). What lies to the right is known only when the next place is
looked at, and is pending until then: if that place begins where this one ends, two new tokens are
neighbors, and what stood between them was (right, left).
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from .cells cimport HOLE, SEPARATOR, Cell, Corpus, Run, run_of
from .memory cimport free, reserve, tokbpe_prefetch
from .pairs cimport make_pair

# So many places ahead, the cells are asked for.
cdef enum:
    PLACES_AHEAD = 12


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


cdef inline void merge_places(
    Cell *cells, const Corpus *corpus, const uint32_t *lengths, Merge *merge,
    const uint32_t *places, size_t size, Side *left_side, Side *right_side,
) noexcept nogil:
    """Merge some of the places of a pair, where it still stands."""
    cdef Cell separator = <Cell> SEPARATOR
    cdef Cell hole = <Cell> HOLE
    cdef Cell left = <Cell> merge.left
    cdef Cell right = <Cell> merge.right
    cdef Cell new = <Cell> merge.new
    cdef Cell neighbor
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
            run = run_of(corpus, position)
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


cdef inline void settle_pending(
    const Cell *cells, Side *right_side, const Merge *merge
) noexcept nogil:
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


cdef inline int reserve_totals(Side *side, size_t tokens) except -1 nogil:
    """Room for any neighbors; all totals are zero between merges."""
    cdef size_t known = side.total_capacity
    reserve(<void **> &side.totals, &side.total_capacity, tokens, sizeof(Total))
    memset(side.totals + known, 0, (side.total_capacity - known) * sizeof(Total))
    reserve(<void **> &side.neighbors, &side.neighbor_capacity, tokens, sizeof(uint32_t))
    return 0


cdef inline int reserve_events(Side *side, size_t more) except -1 nogil:
    """Room for so many events more, and the one that is pending."""
    reserve(<void **> &side.events, &side.capacity, side.size + more + 1, sizeof(Event))
    return 0


cdef inline void list_events(Side *side) noexcept nogil:
    cdef Total *total
    cdef size_t i
    for i in range(side.size):
        total = &side.totals[side.events[i].neighbor]
        if total.places != NULL:
            total.places[0] = side.events[i].position
            total.places += 1


cdef inline void clear_side(Side *side) noexcept nogil:
    cdef size_t i
    for i in range(side.neighbor_count):
        side.totals[side.neighbors[i]] = Total(0, 0, NULL)
    side.neighbor_count = 0
    side.size = 0


cdef inline void close_side(Side *side) noexcept nogil:
    free(side.events)
    free(side.totals)
    free(side.neighbors)
