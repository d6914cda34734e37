"""The word cache: what words became when they were last merged.

A hash table of 32-byte slots, two in a cache line, as a plain struct with free functions. The key
of a word of up to 15 bytes is the word itself; that of a longer one is a hash, and its bytes stand
in the arena. Up to three ids of a short word stand in its slot, all others in the arena.

A cache belongs to one encoding at a time. Its size depends on its number of slots alone.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from .memory cimport free, malloc, tokbpe_zeroed

cdef extern from "words.h" nogil:
    ctypedef struct tokbpe_key:
        uint64_t low
        uint64_t high

    tokbpe_key tokbpe_word_key(
        const uint8_t *data, size_t start, size_t size, size_t data_size, uint64_t tag) noexcept
    tokbpe_key tokbpe_long_key(const uint8_t *word, size_t size, uint64_t tag) noexcept
    uint64_t tokbpe_key_hash(tokbpe_key key) noexcept


cdef enum:
    SHORT_WORD = 15  # bytes that a key holds
    LONGEST_WORD = 64  # bytes
    INLINE_IDS = 3
    SLOTS_IN_LINE = 2
    MOST_AT_ONCE = 512  # words that are kept between two looks for room

# The last byte of a key: the size of a short word, or LONG; and whether the word is a part of a
# piece, which may become other ids than if it were one.
cdef enum:
    PART = 0x10
    LONG = 0x20


cdef struct WordSlot:
    tokbpe_key key  # high == 0: the slot is free
    uint32_t[3] ids  # of a short word; if there are more, or it is long: its place in the arena
    uint32_t count  # of ids


cdef struct WordCache:
    WordSlot *slots
    void *memory  # that the slots stand in
    size_t used
    int bits  # there are 2**bits slots, of which at most three quarters are used
    uint32_t *arena  # ids, and before those of a long word its bytes
    size_t in_arena, arena_capacity


cdef inline size_t words_size(int bits) noexcept nogil:
    """How many bytes a cache of 2**bits slots has."""
    return (sizeof(WordSlot) << bits) + arena_size(bits) * sizeof(uint32_t)


cdef inline size_t arena_size(int bits) noexcept nogil:
    return (<size_t> 1 << bits) + <size_t> MOST_AT_ONCE * (LONGEST_WORD + LONGEST_WORD // 4)


cdef inline bint open_words(WordCache *cache, int bits) noexcept nogil:
    """An empty cache of 2**bits slots; False if there is no memory for it."""
    cdef size_t count = <size_t> 1 << bits
    memset(cache, 0, sizeof(WordCache))
    cache.slots = <WordSlot *> tokbpe_zeroed(count, sizeof(WordSlot), &cache.memory)
    cache.arena_capacity = arena_size(bits)
    cache.arena = <uint32_t *> malloc(cache.arena_capacity * sizeof(uint32_t))
    cache.bits = bits
    if cache.slots == NULL or cache.arena == NULL:
        close_words(cache)
        return False
    return True


cdef inline void close_words(WordCache *cache) noexcept nogil:
    free(cache.memory)
    free(cache.arena)
    memset(cache, 0, sizeof(WordCache))


cdef inline size_t word_place(const WordCache *cache, tokbpe_key key) noexcept nogil:
    """Where the search for a word begins: at the first slot of a cache line."""
    cdef size_t place = <size_t> (tokbpe_key_hash(key) >> (64 - cache.bits))
    return place & ~<size_t> (SLOTS_IN_LINE - 1)


cdef inline WordSlot *word_slot(
    const WordCache *cache, tokbpe_key key, size_t place, const uint8_t *word
) noexcept nogil:
    """Where a word stands, or the free slot where it belongs."""
    cdef size_t mask = (<size_t> 1 << cache.bits) - 1
    cdef WordSlot *slot = &cache.slots[place]
    while slot.key.high and not (
        slot.key.low == key.low
        and slot.key.high == key.high
        and (key.high >> 56 < <uint64_t> LONG or has_bytes(cache, slot, word))
    ):
        place = (place + 1) & mask
        slot = &cache.slots[place]
    return slot


cdef inline size_t long_size(tokbpe_key key) noexcept nogil:
    """How many bytes a long word has."""
    return <size_t> (key.high & 0xFF)


cdef inline size_t arena_words(size_t size) noexcept nogil:
    """How many places of the arena so many bytes take."""
    return (size + sizeof(uint32_t) - 1) // sizeof(uint32_t)


cdef inline bint has_bytes(
    const WordCache *cache, const WordSlot *slot, const uint8_t *word
) noexcept nogil:
    """Whether the long word of a slot is this one."""
    cdef size_t size = long_size(slot.key)
    return memcmp(cache.arena + (slot.ids[0] - arena_words(size)), word, size) == 0


cdef inline const uint32_t *ids_of_word(
    const WordCache *cache, const WordSlot *slot
) noexcept nogil:
    if slot.count > <uint32_t> INLINE_IDS or slot.key.high >> 56 >= <uint64_t> LONG:
        return cache.arena + slot.ids[0]
    return slot.ids


cdef inline bint has_room(const WordCache *cache) noexcept nogil:
    """Whether MOST_AT_ONCE words can be kept, whatever they become."""
    return (
        cache.used + <size_t> MOST_AT_ONCE <= (<size_t> 3 << cache.bits) // 4
        and cache.in_arena + arena_size(0) <= cache.arena_capacity
    )


cdef inline void keep_word(
    WordCache *cache,
    WordSlot *slot,  # OUT: is free, and there is room
    tokbpe_key key,
    const uint8_t *word,
    const uint32_t *ids,
    size_t count,
) noexcept nogil:
    """Fill a slot."""
    cdef bint is_long = key.high >> 56 >= <uint64_t> LONG
    slot.key = key
    slot.count = <uint32_t> count
    cache.used += 1
    if is_long:
        memcpy(cache.arena + cache.in_arena, word, long_size(key))
        cache.in_arena += arena_words(long_size(key))
    elif count <= INLINE_IDS:
        memcpy(slot.ids, ids, count * sizeof(uint32_t))
        return
    memcpy(cache.arena + cache.in_arena, ids, count * sizeof(uint32_t))
    slot.ids[0] = <uint32_t> cache.in_arena
    cache.in_arena += count


cdef inline bint grow_words(WordCache *cache) noexcept nogil:
    """Give the words twice as many slots; False, and nothing changed, if there is no memory."""
    cdef WordCache larger
    cdef WordSlot *slot
    cdef size_t i
    if not open_words(&larger, cache.bits + 1):
        return False
    for i in range(<size_t> 1 << cache.bits):
        slot = &cache.slots[i]
        if slot.key.high:
            # All words differ, so that their bytes need not be looked at.
            free_slot(&larger, slot.key)[0] = slot[0]
    memcpy(larger.arena, cache.arena, cache.in_arena * sizeof(uint32_t))
    larger.in_arena = cache.in_arena
    larger.used = cache.used
    close_words(cache)
    cache[0] = larger
    return True


cdef inline WordSlot *free_slot(const WordCache *cache, tokbpe_key key) noexcept nogil:
    """Where a word that is not there belongs."""
    cdef size_t mask = (<size_t> 1 << cache.bits) - 1
    cdef size_t place = word_place(cache, key)
    while cache.slots[place].key.high:
        place = (place + 1) & mask
    return &cache.slots[place]


cdef inline void wipe_words(WordCache *cache) noexcept nogil:
    """Forget all words."""
    memset(cache.slots, 0, sizeof(WordSlot) << cache.bits)
    cache.used = 0
    cache.in_arena = 0
