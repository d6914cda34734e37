"""Numbering the merges of a list by their ranks, for a merge table."""

from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from .memory cimport calloc, free, resized
from .merges cimport MOST_NUMBERS, MergeTable, is_merged, open_merges, put_merge, stay_apart
from .pairs cimport (
    NOT_FOUND,
    PairTable,
    close_pair_table,
    find_pair,
    make_pair,
    open_pair_table,
    put_pair,
)


# The merge of a pair.
cdef struct Merge:
    uint32_t left
    uint32_t right
    uint32_t id


cdef struct MergeList:
    Merge *merges  # by rising rank
    size_t count
    uint8_t *is_symbol  # by id, below `highest`
    size_t highest  # of all ids, + 1


cdef inline void close_merge_list(MergeList *all) noexcept nogil:
    free(all.merges)
    free(all.is_symbol)
    memset(all, 0, sizeof(MergeList))


cdef inline bint open_merge_list(
    MergeList *all, const PairTable *ranks, const uint32_t *merge_ids
) except -1 nogil:
    """The pairs of a table in the order of their ranks; False if there are too many ranks.

    merge_ids: what the pairs merge to, by rank; NULL: the rank is the id.
    """
    cdef size_t slots = <size_t> 1 << ranks.bits
    cdef size_t i, rank
    cdef size_t ends = 1  # the highest rank + 1
    cdef uint32_t *places
    cdef uint64_t pair
    memset(all, 0, sizeof(MergeList))
    for i in range(slots):
        if ranks.slots[i].pair != UINT64_MAX:
            ends = max(ends, <size_t> ranks.slots[i].value + 1)
    if ends > MOST_NUMBERS:
        return False
    all.count = ranks.used
    all.merges = <Merge *> resized(NULL, all.count, sizeof(Merge))
    places = <uint32_t *> calloc(ends + 1, sizeof(uint32_t))
    if all.merges == NULL or places == NULL:
        free(places)
        close_merge_list(all)
        with gil:
            raise MemoryError(f"no memory for a list of {ranks.used} merges")
    for i in range(slots):
        if ranks.slots[i].pair != UINT64_MAX:
            places[ranks.slots[i].value + 1] += 1
    for rank in range(ends):
        places[rank + 1] += places[rank]
    for i in range(slots):
        pair = ranks.slots[i].pair
        if pair != UINT64_MAX:
            rank = ranks.slots[i].value
            all.merges[places[rank]] = Merge(
                <uint32_t> (pair >> 32),
                <uint32_t> pair,
                <uint32_t> rank if merge_ids == NULL else merge_ids[rank],
            )
            places[rank] += 1
    free(places)
    return True


cdef inline int mark_symbols(
    MergeList *all, const uint32_t *symbols, size_t count
) except -1 nogil:
    """Note which ids are symbols; all of them below MOST_NUMBERS."""
    cdef size_t i
    for i in range(all.count):
        all.highest = max(
            all.highest,
            <size_t> max(all.merges[i].id, all.merges[i].left, all.merges[i].right) + 1,
        )
    for i in range(count):
        if symbols[i] != NOT_FOUND:
            all.highest = max(all.highest, <size_t> symbols[i] + 1)
    if all.highest > MOST_NUMBERS:
        return 0
    all.is_symbol = <uint8_t *> calloc(max(all.highest, <size_t> 1), 1)
    if all.is_symbol == NULL:
        with gil:
            raise MemoryError(f"no memory for {all.highest} ids")
    for i in range(count):
        if symbols[i] != NOT_FOUND:
            all.is_symbol[symbols[i]] = True
    return 0


cdef inline bint number_by_ids(MergeTable *merges, const MergeList *all) except -1 nogil:
    """Where ids never fall from merge to merge, they are the numbers. False where they do, or where
    a token may come about out of a later one, or where it is a symbol too."""
    cdef size_t i
    cdef bint checked = False  # whether one id stands for several merges
    cdef const Merge *merge
    if all.highest > MOST_NUMBERS:
        return False
    for i in range(all.count):
        if all.is_symbol[all.merges[i].id]:
            return False
        if i > 0 and all.merges[i].id <= all.merges[i - 1].id:
            if all.merges[i].id < all.merges[i - 1].id:
                return False
            checked = True
    open_merges(merges, all.highest, all.count)
    for i in range(all.count):
        merge = &all.merges[i]
        if (
            not is_merged(merges, merge.id)
            and is_made(merges, all, merge.left)
            and is_made(merges, all, merge.right)
            and (not checked or stay_apart(merges, merge.left, merge.right))
        ):
            put_merge(merges, merge.left, merge.right, merge.id)
    for i in range(all.count):
        merge = &all.merges[i]
        if (
            not is_merged(merges, merge.id)
            and is_made(merges, all, merge.left)
            and is_made(merges, all, merge.right)
            and not (is_before(all, merge.left, merge.id) and is_before(all, merge.right, merge.id))
        ):
            return False
    return True


cdef inline bint is_made(
    const MergeTable *merges, const MergeList *all, uint32_t id
) noexcept nogil:
    return all.is_symbol[id] or is_merged(merges, id)


cdef inline bint is_before(const MergeList *all, uint32_t id, uint32_t merged) noexcept nogil:
    return all.is_symbol[id] or id < merged


cdef inline bint number_by_ranks(
    MergeTable *merges, const MergeList *all, const uint32_t *byte_ids
) except -1 nogil:
    """Number the single bytes and then the merges. False where an id stands for several, or a
    merge does not follow its halves."""
    cdef PairTable numbers  # by id
    cdef bint whole
    if all.count > MOST_NUMBERS - 256:
        return False
    open_merges(merges, 256 + all.count, all.count)
    merges.ids = <uint32_t *> resized(NULL, 256 + all.count, sizeof(uint32_t))
    if merges.ids == NULL:
        with gil:
            raise MemoryError(f"no memory for the ids of {all.count} merges")
    open_pair_table(&numbers, merges.bits)
    try:
        whole = fill_numbers(merges, all, byte_ids, &numbers)
    finally:
        close_pair_table(&numbers)
    return whole


cdef inline bint fill_numbers(
    MergeTable *merges, const MergeList *all, const uint32_t *byte_ids, PairTable *numbers
) except -1 nogil:
    cdef uint32_t number, left, right
    cdef const Merge *merge
    for number in range(256):
        merges.ids[number] = byte_ids[number]
        if byte_ids[number] != NOT_FOUND:
            merges.symbols[number] = number
            if put_pair(numbers, byte_ids[number], number)[0] != number:
                return False
    for number in range(256, <uint32_t> merges.count):
        merge = &all.merges[number - 256]
        merges.ids[number] = merge.id
        left = find_pair(numbers, merge.left)
        right = find_pair(numbers, merge.right)
        if left == NOT_FOUND or right == NOT_FOUND:
            return False
        if put_pair(numbers, merge.id, number)[0] != number:
            return False
        put_merge(merges, left, right, number)
    return True
