"""The queue of pairs that wait to be merged: a heap in which each item has four children.

An item keeps the count that its pair had when it was queued. Counts only fall, so an item may
stand too high and never too low: who takes the first one looks whether its count still holds.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from .memory cimport free, reserve
from .tokens cimport Tokens, compare_strings


cdef struct Queued:
    int64_t count
    uint64_t order  # the lower of equal counts comes first, where strings do not tell
    uint64_t pair


cdef struct Queue:
    Queued *items
    size_t size, capacity
    const Tokens *strings  # NULL: they are not compared


cdef inline void close_queue(Queue *queue) noexcept nogil:
    free(queue.items)
    queue.items = NULL
    queue.size = queue.capacity = 0


cdef inline bint before(const Queue *queue, const Queued *x, const Queued *y) noexcept nogil:
    """Whether x is merged before y (points 6 and 7)."""
    if x.count != y.count:
        return x.count > y.count
    if queue.strings != NULL:
        return is_greater(queue.strings, x.pair, y.pair)
    return x.order < y.order


cdef inline bint is_greater(const Tokens *tokens, uint64_t x, uint64_t y) noexcept nogil:
    """Whether the strings of x are the greater ones; ids tell equal strings apart."""
    cdef int order = compare_strings(tokens, <uint32_t> (x >> 32), <uint32_t> (y >> 32))
    if order == 0:
        order = compare_strings(tokens, <uint32_t> x, <uint32_t> y)
    return order > 0 or (order == 0 and x > y)


cdef inline int append(Queue *queue, Queued item) except -1 nogil:
    """Add an item to a queue that is still to be put in order."""
    reserve(<void **> &queue.items, &queue.capacity, queue.size + 1, sizeof(Queued))
    queue.items[queue.size] = item
    queue.size += 1
    return 0


cdef inline void put_in_order(Queue *queue) noexcept nogil:
    cdef size_t place
    if queue.size > 1:
        place = (queue.size - 2) // 4 + 1  # those behind it have no children
        while place:
            place -= 1
            sink(queue, place, queue.items[place])


cdef inline int push(Queue *queue, Queued item) except -1 nogil:
    cdef size_t place = queue.size
    cdef size_t parent
    append(queue, item)
    while place > 0:
        parent = (place - 1) // 4
        if not before(queue, &item, &queue.items[parent]):
            break
        queue.items[place] = queue.items[parent]
        place = parent
    queue.items[place] = item
    return 0


cdef inline void sink(Queue *queue, size_t place, Queued item) noexcept nogil:
    """Put an item in a place, or below, where lower ones have been."""
    cdef size_t child, best, last
    while True:
        child = 4 * place + 1
        if child >= queue.size:
            break
        best = child
        last = min(child + 4, queue.size)
        for child in range(child + 1, last):
            if before(queue, &queue.items[child], &queue.items[best]):
                best = child
        if not before(queue, &queue.items[best], &item):
            break
        queue.items[place] = queue.items[best]
        place = best
    queue.items[place] = item


cdef inline void drop_top(Queue *queue) noexcept nogil:
    queue.size -= 1
    if queue.size:
        sink(queue, 0, queue.items[queue.size])
