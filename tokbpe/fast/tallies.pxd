"""Counting the pairs of compact cells, and listing where the frequent ones stand.

The cells are dealt out in shares, one for each thread. Each share is tallied by itself: in a
table with an entry for any two tokens while those are few, else in a hash table. So that the
latter does not hold the many pairs that are too rare, a sieve goes before it: an array of
counters in which pairs may share one. What a counter has not reached, none of its pairs has.

When the pairs of all shares are put together, each entry is told where the places of its pair
in this share are to be written, and the cells are gone through once more.
"""

from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t

from .cells cimport SEPARATOR, Cell, Corpus, Run, run_of
from .memory cimport free, tokbpe_prefetch, tokbpe_zeroed
from .pairs cimport make_pair, tokbpe_hash_pair


cdef struct Tally:
    int64_t count
    uint32_t size  # places
    uint32_t cursor  # where the next place is written; 0: the pair is not listed


cdef struct PairTally:
    uint64_t pair
    Tally tally  # of size 0: the slot is free


cdef struct Share:
    size_t first, last  # cells
    size_t next  # the cell to go on with
    Tally *dense  # by left * side + right
    size_t side  # one more than there are tokens: all separators are one
    uint32_t *sieve
    PairTally *slots  # 2**bits
    size_t used
    int bits
    void *dense_memory
    void *sieve_memory
    void *slot_memory


# A pair that has passed the sieve.
cdef struct Candidate:
    uint64_t pair
    uint32_t position


# So many cells are sifted at once.
cdef enum:
    CHUNK = 512

# So far ahead, memory is asked for: what lists need next is mostly in another line.
cdef enum:
    PLACES_IN_LINE = 16


# The counters that reach the threshold, one bit each.
cdef struct Sieve:
    uint8_t *reached
    int bits  # there are 2**bits


cdef inline void close_share(Share *share) noexcept nogil:
    free(share.dense_memory)
    free(share.sieve_memory)
    free(share.slot_memory)


cdef inline void *zeroed(size_t count, size_t size, void **memory) except NULL nogil:
    cdef void *items = tokbpe_zeroed(count, size, memory)
    if items == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} items of {size} bytes")
    return items


cdef inline int open_dense(Share *share, size_t tokens) except -1 nogil:
    share.side = tokens + 1
    share.dense = <Tally *> zeroed(share.side * share.side, sizeof(Tally), &share.dense_memory)
    return 0


cdef inline int open_sieve(Share *share, int bits) except -1 nogil:
    share.sieve = <uint32_t *> zeroed(
        <size_t> 1 << bits, sizeof(uint32_t), &share.sieve_memory)
    return 0


cdef inline int open_slots(Share *share, int bits) except -1 nogil:
    share.slots = <PairTally *> zeroed(
        <size_t> 1 << bits, sizeof(PairTally), &share.slot_memory)
    share.bits = bits
    share.used = 0
    return 0


cdef inline void list_place(Tally *tally, uint32_t position, uint32_t *places) noexcept nogil:
    """Write a place down, if the pair is listed.

    There is no branch, which would be guessed wrong every so often: what is not listed is written
    as well, to the first place of all. And memory is asked for what this list will need next.
    """
    cdef uint32_t cursor = tally.cursor
    tokbpe_prefetch(&places[cursor] + PLACES_IN_LINE)
    places[cursor] = position
    tally.cursor = cursor + (cursor > 0)


# With a table for any two tokens.


cdef inline void count_dense(
    const Cell *cells, const Corpus *corpus, Share *share, size_t last
) noexcept nogil:
    cdef uint32_t separator = <uint32_t> (share.side - 1)
    cdef size_t position = share.next
    cdef uint32_t left = min(<uint32_t> cells[position], separator)
    cdef uint32_t right
    cdef size_t stop
    cdef const Run *run
    cdef Tally *tally
    while position < last:
        run = run_of(corpus, position)
        stop = min(<size_t> run.end, last)
        while position < stop:
            position += 1
            right = min(<uint32_t> cells[position], separator)
            tally = &share.dense[left * share.side + right]
            tally.count += run.weight
            tally.size += 1
            left = right
    share.next = last


cdef inline void list_dense(
    const Cell *cells, Share *share, uint32_t *places, size_t last
) noexcept nogil:
    cdef uint32_t separator = <uint32_t> (share.side - 1)
    cdef size_t position = share.next
    cdef uint32_t left = min(<uint32_t> cells[position], separator)
    cdef uint32_t right
    cdef Tally *tally
    while position < last:
        right = min(<uint32_t> cells[position + 1], separator)
        tally = &share.dense[left * share.side + right]
        list_place(tally, <uint32_t> position, places)
        left = right
        position += 1
    share.next = last


# With a sieve and a hash table.


cdef inline void fill_sieve(
    const Cell *cells, const Corpus *corpus, Share *share, int bits, size_t last
) noexcept nogil:
    cdef Cell separator = <Cell> SEPARATOR
    cdef size_t position = share.next
    cdef size_t stop
    cdef uint32_t *counter
    cdef const Run *run
    while position < last:
        run = run_of(corpus, position)
        stop = min(<size_t> run.end, last)
        while position < stop:
            if cells[position] != separator and cells[position + 1] != separator:
                counter = &share.sieve[
                    tokbpe_hash_pair(make_pair(cells[position], cells[position + 1]))
                    >> (64 - bits)]
                counter[0] = <uint32_t> min(
                    counter[0] + <uint64_t> run.weight, <uint64_t> UINT32_MAX)
            position += 1
    share.next = last


cdef inline bint passes(const Sieve *sieve, uint64_t pair) noexcept nogil:
    cdef uint64_t counter = tokbpe_hash_pair(pair) >> (64 - sieve.bits)
    return sieve.reached[counter >> 3] >> (counter & 7) & 1


cdef inline size_t tally_home(const Share *share, uint64_t pair) noexcept nogil:
    """The number of the slot where the search for a pair begins."""
    return <size_t> (tokbpe_hash_pair(pair) >> (64 - share.bits))


cdef inline Tally *tally_of(const Share *share, uint64_t pair) noexcept nogil:
    """The tally of a pair; one of size 0 if it has none."""
    return &tally_slot(share, pair).tally


cdef inline PairTally *tally_slot(const Share *share, uint64_t pair) noexcept nogil:
    cdef size_t mask = (<size_t> 1 << share.bits) - 1
    cdef size_t place = tally_home(share, pair)
    while share.slots[place].tally.size and share.slots[place].pair != pair:
        place = (place + 1) & mask
    return &share.slots[place]


cdef inline int double_slots(Share *share) except -1 nogil:
    cdef Share larger = share[0]
    cdef size_t i
    open_slots(&larger, share.bits + 1)
    for i in range(<size_t> 1 << share.bits):
        if share.slots[i].tally.size:
            tally_slot(&larger, share.slots[i].pair)[0] = share.slots[i]
    larger.used = share.used
    free(share.slot_memory)
    share[0] = larger
    return 0


cdef inline size_t sift_chunk(
    const Cell *cells, const Sieve *sieve, const Share *share, size_t last, Candidate *candidates
) noexcept nogil:
    """Those pairs of the next cells that pass the sieve; memory is asked for their tallies."""
    cdef Cell separator = <Cell> SEPARATOR
    cdef Cell left, right
    cdef uint64_t pair
    cdef size_t position, i
    cdef size_t count = 0
    for position in range(share.next, last):
        left = cells[position]
        right = cells[position + 1]
        pair = make_pair(left, right)
        candidates[count] = Candidate(pair, <uint32_t> position)
        # Without a branch, which would be guessed wrong every so often.
        count += passes(sieve, pair) & (left != separator) & (right != separator)
    for i in range(count):
        tokbpe_prefetch(&share.slots[tally_home(share, candidates[i].pair)])
    return count


cdef inline int count_hashed(
    const Cell *cells, const Corpus *corpus, const Sieve *sieve, Share *share, size_t last
) except -1 nogil:
    cdef Candidate candidates[CHUNK]
    cdef const Candidate *candidate
    cdef const Run *run = run_of(corpus, share.next)
    cdef PairTally *slot
    cdef size_t end, i
    while share.next < last:
        end = min(share.next + CHUNK, last)
        for i in range(sift_chunk(cells, sieve, share, end, candidates)):
            candidate = &candidates[i]
            if candidate.position >= run.end:
                run = run_of(corpus, candidate.position)
            slot = tally_slot(share, candidate.pair)
            if slot.tally.size == 0:
                if 2 * (share.used + 1) > <size_t> 1 << share.bits:
                    double_slots(share)
                    slot = tally_slot(share, candidate.pair)
                slot.pair = candidate.pair
                share.used += 1
            slot.tally.count += run.weight
            slot.tally.size += 1
        share.next = end
    return 0


cdef inline void list_hashed(
    const Cell *cells, const Sieve *sieve, Share *share, uint32_t *places, size_t last
) noexcept nogil:
    cdef Candidate candidates[CHUNK]
    cdef Tally *tally
    cdef size_t end, i
    while share.next < last:
        end = min(share.next + CHUNK, last)
        for i in range(sift_chunk(cells, sieve, share, end, candidates)):
            tally = tally_of(share, candidates[i].pair)
            list_place(tally, candidates[i].position, places)
        share.next = end
