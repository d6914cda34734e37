"""The word cache: what short words became when they were last merged.

A hash table of 32-byte slots, as a plain struct with free functions: the key holds a word of up to
15 bytes and its size, and up to three ids stand beside it; more of them in an arena. It
belongs to one encoding at a time.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from .memory cimport reserve

cdef extern from "words.h" nogil:
    ctypedef struct tokbpe_key:
        uint64_t low
        uint64_t high

    tokbpe_key tokbpe_word_key(const uint8_t *word, size_t size, size_t readable) noexcept
    uint64_t tokbpe_key_hash(tokbpe_key key) noexcept
    void tokbpe_prefetch(const void *address) noexcept


cdef enum:
    LONGEST_WORD = 15  # bytes
    INLINE_IDS = 3
    MOST_BITS = 19  # 16 MB
    MOST_IN_ARENA = 1048576  # ids; 4 MB


cdef struct WordSlot:
    tokbpe_key key  # high == 0: the slot is free
    uint32_t[3] ids  # or, if there are more, where they stand in the arena
    uint32_t count


cdef struct WordCache:
    WordSlot *slots
    size_t used
    int bits  # there are 2**bits slots, of which at most three quarters are used
    uint32_t *arena
    size_t arena_size, arena_capacity


cdef inline int open_words(WordCache *cache, int bits) except -1 nogil:
    """An empty cache of 2**bits slots."""
    cache.slots = <WordSlot *> calloc(<size_t> 1 << bits, sizeof(WordSlot))
    if cache.slots == NULL:
        with gil:
            raise MemoryError(f"no memory for a cache of 2**{bits} words")
    cache.bits = bits
    cache.used = 0
    cache.arena_size = 0
    return 0


cdef inline void close_words(WordCache *cache) noexcept nogil:
    free(cache.slots)
    free(cache.arena)
    memset(cache, 0, sizeof(WordCache))


cdef inline size_t word_place(const WordCache *cache, tokbpe_key key) noexcept nogil:
    """Where the search for a word begins."""
    return <size_t> (tokbpe_key_hash(key) & ((<uint64_t> 1 << cache.bits) - 1))


cdef inline WordSlot *word_slot(
    const WordCache *cache, tokbpe_key key, size_t place
) noexcept nogil:
    """Where a word stands, or the free slot where it belongs."""
    cdef size_t mask = (<size_t> 1 << cache.bits) - 1
    while cache.slots[place].key.high and (
        cache.slots[place].key.low != key.low or cache.slots[place].key.high != key.high
    ):
        place = (place + 1) & mask
    return &cache.slots[place]


cdef inline void keep_word(
    WordCache *cache, WordSlot *slot, tokbpe_key key, const uint32_t *ids, size_t count
) noexcept nogil:
    """Fill a free slot; there is room in the arena."""
    if count <= INLINE_IDS:
        memcpy(slot.ids, ids, count * sizeof(uint32_t))
    else:
        memcpy(cache.arena + cache.arena_size, ids, count * sizeof(uint32_t))
        slot.ids[0] = <uint32_t> cache.arena_size
        cache.arena_size += count
    slot.key = key
    slot.count = <uint32_t> count
    cache.used += 1


cdef inline int grow_words(WordCache *cache) except -1 nogil:
    """Give the words twice as many slots."""
    cdef WordCache larger = cache[0]
    cdef WordSlot *slot
    cdef size_t i
    open_words(&larger, cache.bits + 1)
    for i in range(<size_t> 1 << cache.bits):
        slot = &cache.slots[i]
        if slot.key.high:
            word_slot(&larger, slot.key, word_place(&larger, slot.key))[0] = slot[0]
    free(cache.slots)
    cache.slots = larger.slots
    cache.bits = larger.bits
    return 0


cdef inline void wipe_words(WordCache *cache) noexcept nogil:
    """Forget all words."""
    memset(cache.slots, 0, (<size_t> 1 << cache.bits) * sizeof(WordSlot))
    cache.used = 0
    cache.arena_size = 0


cdef inline int room_for_words(WordCache *cache, size_t count) except -1 nogil:
    """Make room for so many words more: their ids will not move until the next call."""
    if cache.used + count > (<size_t> 3 << cache.bits) // 4 or cache.arena_size > MOST_IN_ARENA:
        if cache.bits < MOST_BITS and cache.arena_size <= MOST_IN_ARENA:
            grow_words(cache)
        else:
            wipe_words(cache)
    return reserve(
        <void **> &cache.arena,
        &cache.arena_capacity,
        cache.arena_size + count * LONGEST_WORD,
        sizeof(uint32_t),
    )
