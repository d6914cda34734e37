"""Encoding, compiled: the twins of `encode` and `count` in `tokbpe.reference`.

A piece is merged in a scratch array. A short one by the reference's own loop, with the ranks of
neighbors kept beside it; a long one with links between the tokens and a heap of the merges that are
possible, which is O(n log n) in its length.

When some text has come to a table, words are remembered: pieces are found in chunks, looked up
in a cache all together, so that the memory is read ahead, and only those that it lacks are merged,
one after the other. Against merging each piece: English 20 -> 60 MB/s for a text that is new to
the cache, 160 for one that is not (cl100k, counting).
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_GET_ITEM, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport SIZE_MAX, UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove

from tokbpe import arguments, reference

from .characters cimport code_point
from .memory cimport look_for_signals, reserve
from .pairs cimport NOT_FOUND as NONE  # no id, no merge, no neighbor
from .pairs cimport find_pair, make_pair
from .special cimport SpecialSearch, SpecialTable, as_special_table
from .split cimport NOT_COMPILED, WHOLE, Scanner, next_piece, open_scanner, utf8_width
from .table cimport (
    BYTE,
    WARM_TEXT,
    WORD,
    EncodingTable,
    joined_piece,
    merged_id,
    rank_of,
    whole_piece,
)
from .words cimport (
    INLINE_IDS,
    LONGEST_WORD,
    MOST_BITS,
    WordCache,
    WordSlot,
    close_words,
    grow_words,
    keep_word,
    open_words,
    room_for_words,
    tokbpe_key,
    tokbpe_prefetch,
    tokbpe_word_key,
    word_place,
    word_slot,
)

cdef extern from "hash.h" nogil:
    uint64_t tokbpe_hash_next(uint64_t hash, uint8_t byte) noexcept

# Pieces of more symbols than this are merged with a heap.
cdef enum:
    SHORT_PIECE = 24

# How many bytes, or steps, are worked on between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000

# How many pieces are worked on together.
cdef enum:
    CHUNK = 512

# Of the first word cache, which grows when it has to; a large text gets a larger one at once.
cdef enum:
    LEAST_BITS = 12

# Up to this id Python's numbers are kept for results, some megabytes for all tables together.
cdef enum:
    HIGHEST_KEPT = 262143

cdef list NUMBERS = []

SHORT_PIECE_SYMBOLS = SHORT_PIECE
CHUNK_SIZE = CHUNK
WARM_TEXT_SIZE = WARM_TEXT


# A token of a long piece; dead tokens were merged into their left neighbor.
cdef struct Token:
    uint32_t id
    uint32_t previous
    uint32_t next


# A piece of a chunk, and what it becomes.
cdef struct Work:
    const uint8_t *piece
    size_t size
    tokbpe_key key  # high == 0: the piece is too long for the cache
    size_t place  # in the cache
    const uint32_t *ids
    size_t count


@cython.final
cdef class Words:
    """A word cache, and room for the pieces of a chunk."""

    cdef WordCache cache
    cdef Work[CHUNK] work

    def __dealloc__(self):
        close_words(&self.cache)


@cython.final
cdef class Encoding:
    """The ids of one call, and the scratch memory that they are made in."""

    cdef EncodingTable table
    cdef uint32_t *ids
    cdef size_t size
    cdef size_t capacity
    cdef bint packed  # whether the table is warm
    cdef bint by_bytes  # whether the pairs of the table are not listed yet
    cdef const uint8_t *piece  # that is merged, and the hashes of its beginnings
    cdef uint64_t *hashes
    cdef size_t hash_capacity
    cdef bint only_counting
    cdef size_t counted, most  # ids, when only counting
    cdef Token *tokens
    cdef size_t token_capacity
    cdef uint64_t *heap  # rank << 32 | place: the earliest learned first, then the leftmost
    cdef size_t heap_size
    cdef size_t heap_capacity
    cdef Words words  # None: pieces are merged one by one
    cdef uint32_t *spill  # the ids of pieces that the cache lacked
    cdef size_t spill_capacity

    def __cinit__(self, EncodingTable table not None):
        self.table = table
        self.most = SIZE_MAX

    def __dealloc__(self):
        free(self.ids)
        free(self.tokens)
        free(self.heap)
        free(self.hashes)
        free(self.spill)

    cdef int add_text(self, bytes data, SpecialTable special) except -1:
        """Encode a document, special tokens cut out first (point 12)."""
        cdef const uint8_t *start = <const uint8_t *> PyBytes_AS_STRING(data)
        cdef size_t size = len(data)
        cdef size_t done = 0
        cdef size_t length = 0
        cdef size_t place = size
        cdef size_t steps = 0
        cdef uint32_t id = 0
        cdef SpecialSearch search = None if special is None else SpecialSearch(special, data)
        self.choose_way(size)
        while done < size:
            if search is not None:
                with nogil:
                    place = search.find(&length, &id)
            if self.table.kind == NOT_COMPILED:
                self.add_pieces(data, done, place)
            else:
                self.add_part(start, done, place)
            if self.enough():
                break
            if length:
                reserve(<void **> &self.ids, &self.capacity, self.size + 1, sizeof(uint32_t))
                self.ids[self.size] = id
                self.size += 1
                if self.enough():
                    break
            done = place + length
            steps += 1
            if steps % SLICE == 0:
                PyErr_CheckSignals()
        return 0

    cdef int choose_way(self, size_t size) except -1:
        """How pieces are to be merged in a document of this size."""
        self.table.text_size += size
        if self.table.text_size < WARM_TEXT:
            self.by_bytes = not self.table.listed
            return 0
        if not self.table.warm:
            self.table.warm_up()
        self.packed = self.table.merges.slots != NULL
        if self.table.unit == BYTE and self.table.kind > WHOLE and self.most == SIZE_MAX:
            self.borrow_words(size)
        return 0

    cdef int borrow_words(self, size_t size) except -1:
        """A cache of the table that no other encoding uses, or a new one."""
        cdef int bits = LEAST_BITS
        while bits < MOST_BITS and <size_t> 1 << bits < size // 16:
            bits += 1
        self.words = self.table.caches.pop() if self.table.caches else Words()
        if self.words.cache.slots == NULL:
            open_words(&self.words.cache, bits)
        while self.words.cache.bits < bits:
            grow_words(&self.words.cache)
        return 0

    cdef int return_words(self) except -1:
        """For the next encoding."""
        if self.words is not None:
            self.table.caches.append(self.words)
            self.words = None
        return 0

    cdef int add_part(self, const uint8_t *data, size_t first, size_t last) except -1:
        """Encode data[first:last] by a compiled scanner."""
        cdef Scanner scanner
        cdef bint more = first < last
        open_scanner(&scanner, self.table.kind, data + first, last - first)
        while more:
            with nogil:
                if self.words is None:
                    more = self.add_slice(&scanner, first)
                else:
                    more = self.add_chunks(&scanner, first)
            PyErr_CheckSignals()
        return 0

    cdef int add_pieces(self, bytes data, size_t first, size_t last) except -1:
        """Encode data[first:last] by the reference's splitter."""
        cdef const uint8_t *start
        cdef size_t size
        cdef size_t position = first
        for piece in reference.split(data[first:last], self.table.pattern):
            start = <const uint8_t *> PyBytes_AS_STRING(piece)
            size = PyBytes_GET_SIZE(piece)
            position = data.index(piece, position)  # patterns may drop text between pieces
            with nogil:
                self.add_piece(start, size, position)
            if self.enough():
                break
            position += size
            PyErr_CheckSignals()
        return 0

    cdef bint add_slice(self, Scanner *scanner, size_t position) except -1 nogil:
        """Encode some pieces of what begins at `position`; False when there are no more."""
        cdef size_t start, end
        cdef size_t done = 0
        while done < SLICE:
            if not next_piece(scanner, &start, &end):
                return False
            self.add_piece(scanner.data + start, end - start, position + start)
            if self.enough():
                return False
            done += end - start
        return True

    # Chunks of pieces, by the word cache

    cdef bint add_chunks(self, Scanner *scanner, size_t position) except -1 nogil:
        """Encode some chunks of what begins at `position`; False when there is no more."""
        cdef size_t first = scanner.position
        cdef size_t count
        while scanner.position - first < SLICE:
            room_for_words(&self.words.cache, CHUNK)
            count = self.find_pieces(scanner)
            if count == 0:
                return False
            if self.look_up(count) < count:
                self.merge_missing(count, scanner.data, position)
            self.put_out(count)
        return True

    cdef size_t find_pieces(self, Scanner *scanner) noexcept nogil:
        """The next pieces, with their keys and where the cache is to be looked at for them."""
        cdef const uint8_t *end = scanner.data + scanner.size
        cdef WordCache *cache = &self.words.cache
        cdef Work *work
        cdef size_t count = 0
        cdef size_t start, stop
        while count < CHUNK and next_piece(scanner, &start, &stop):
            work = &self.words.work[count]
            work.piece = scanner.data + start
            work.size = stop - start
            work.ids = NULL
            work.key.high = 0
            if work.size <= LONGEST_WORD:
                work.key = tokbpe_word_key(
                    work.piece, work.size, <size_t> end - <size_t> work.piece)
                work.place = word_place(cache, work.key)
                tokbpe_prefetch(&cache.slots[work.place])
            count += 1
        return count

    cdef size_t look_up(self, size_t count) noexcept nogil:
        """Take from the cache what is there; how many pieces that were."""
        cdef WordCache *cache = &self.words.cache
        cdef WordSlot *slot
        cdef Work *work
        cdef size_t i
        cdef size_t found = 0
        for i in range(count):
            work = &self.words.work[i]
            if work.key.high == 0:
                continue
            slot = word_slot(cache, work.key, work.place)
            if slot.key.high:
                work.count = slot.count
                work.ids = slot.ids
                if slot.count > INLINE_IDS:
                    work.ids = cache.arena + slot.ids[0]
                found += 1
        return found

    cdef int merge_missing(
        self, size_t count, const uint8_t *data, size_t position
    ) except -1 nogil:
        """Merge the pieces that are not there yet, and keep what they become."""
        cdef WordCache *cache = &self.words.cache
        cdef WordSlot *slot
        cdef Work *work
        cdef uint32_t *ids
        cdef size_t i
        cdef size_t total = 0
        for i in range(count):
            if self.words.work[i].ids == NULL:
                total += self.words.work[i].size
        reserve(<void **> &self.spill, &self.spill_capacity, total, sizeof(uint32_t))
        ids = self.spill
        for i in range(count):
            work = &self.words.work[i]
            if work.ids != NULL:
                continue
            work.ids = ids
            work.count = self.merged(
                work.piece,
                work.size,
                position + (<size_t> work.piece - <size_t> data),
                ids,
            )
            ids += work.count
            if work.key.high:
                slot = word_slot(cache, work.key, work.place)
                if not slot.key.high:
                    keep_word(cache, slot, work.key, work.ids, work.count)
        return 0

    cdef int put_out(self, size_t count) except -1 nogil:
        """Append the ids of a chunk."""
        cdef size_t i, k
        cdef size_t total = 0
        cdef uint32_t *out
        cdef const uint32_t *ids
        for i in range(count):
            total += self.words.work[i].count
        if self.only_counting:
            self.counted += total
            return 0
        reserve(<void **> &self.ids, &self.capacity, self.size + total, sizeof(uint32_t))
        out = self.ids + self.size
        for i in range(count):
            ids = self.words.work[i].ids
            for k in range(self.words.work[i].count):
                out[k] = ids[k]
            out += self.words.work[i].count
        self.size += total
        return 0

    cdef inline bint enough(self) noexcept nogil:
        """When only counting: count the ids instead of keeping them, and tell at the limit."""
        if not self.only_counting:
            return False
        self.counted += self.size
        self.size = 0
        return self.counted > self.most

    cdef int add_piece(self, const uint8_t *piece, size_t size, size_t position) except -1 nogil:
        """Encode a piece that stands at `position` of the document."""
        reserve(<void **> &self.ids, &self.capacity, self.size + size, sizeof(uint32_t))
        self.size += self.merged(piece, size, position, self.ids + self.size)
        return 0

    cdef size_t merged(
        self, const uint8_t *piece, size_t size, size_t position, uint32_t *ids
    ) except 0 nogil:
        """The ids of a piece that stands at `position`, for which there is room; how many."""
        cdef size_t count
        ids[0] = whole_piece(self.table, piece, size)
        if ids[0] != NONE:
            return 1
        if self.table.unit == BYTE:
            count = read_bytes(self.table, piece, size, ids)
            if count < size:
                with gil:
                    raise arguments.absent_byte(piece[count], position + count, self.table.symbols)
        else:
            count = read_characters(self.table, piece, size, ids)
        if self.by_bytes:
            self.read_hashes(piece, size)
            return self.merge_long(ids, count)
        if self.table.ranks.used == 0:
            return count
        if count <= SHORT_PIECE:
            return merge_short(self.table, self.packed, ids, <uint32_t> count)
        return self.merge_long(ids, count)

    cdef int read_hashes(self, const uint8_t *piece, size_t size) except -1 nogil:
        """The hashes of all beginnings of a piece."""
        cdef size_t place
        reserve(<void **> &self.hashes, &self.hash_capacity, size + 1, sizeof(uint64_t))
        self.piece = piece
        self.hashes[0] = 0
        for place in range(size):
            self.hashes[place + 1] = tokbpe_hash_next(self.hashes[place], piece[place])
        return 0

    cdef inline uint32_t rank_at(self, uint32_t place, uint32_t right, size_t size) noexcept nogil:
        """The rank of the merge of two tokens of a piece of `size` symbols, NONE if there is
        none."""
        cdef size_t end
        if not self.by_bytes:
            return rank_of(
                self.table, self.packed, self.tokens[place].id, self.tokens[right].id
            )
        end = size if self.tokens[right].next == NONE else self.tokens[right].next
        return joined_piece(self.table, self.piece, self.hashes, place, end)

    cdef size_t merge_long(self, uint32_t *ids, size_t size) except 0 nogil:
        """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
        cdef Token *tokens
        cdef uint32_t place, right, rank
        cdef size_t count = 0
        cdef size_t steps = 0
        if size >= UINT32_MAX:
            with gil:
                raise ValueError(
                    f"a piece of {size} bytes; the longest that can be encoded is {UINT32_MAX - 1}"
                )
        reserve(<void **> &self.tokens, &self.token_capacity, size, sizeof(Token))
        reserve(<void **> &self.heap, &self.heap_capacity, size, sizeof(uint64_t))
        tokens = self.tokens
        for place in range(<uint32_t> size):
            tokens[place] = Token(ids[place], place - 1 if place else NONE,
                                  place + 1 if place + 1 < size else NONE)
        self.heap_size = 0
        for place in range(<uint32_t> size):
            self.offer(place, size)
            steps = look_for_signals(steps)
        while self.heap_size:
            steps = look_for_signals(steps)
            rank = <uint32_t> (self.heap[0] >> 32)
            place = <uint32_t> self.heap[0]
            self.drop_first()
            right = tokens[place].next
            # The neighbors may have merged otherwise since this merge was offered.
            if (
                tokens[place].id == NONE
                or right == NONE
                or self.rank_at(place, right, size) != rank
            ):
                continue
            tokens[place].id = merged_id(self.table, rank)
            tokens[place].next = tokens[right].next
            tokens[right].id = NONE
            if tokens[right].next != NONE:
                tokens[tokens[right].next].previous = place
            self.offer(place, size)
            if tokens[place].previous != NONE:
                self.offer(tokens[place].previous, size)
        place = 0
        while place != NONE:
            ids[count] = tokens[place].id
            count += 1
            place = tokens[place].next
        return count

    cdef int offer(self, uint32_t place, size_t size) except -1 nogil:
        """Queue the merge of a token with its right neighbor, if there is one."""
        cdef uint32_t right = self.tokens[place].next
        cdef uint32_t rank
        cdef uint64_t item
        cdef size_t child, parent
        if right == NONE:
            return 0
        rank = self.rank_at(place, right, size)
        if rank == NONE:
            return 0
        item = make_pair(rank, place)
        reserve(<void **> &self.heap, &self.heap_capacity, self.heap_size + 1, sizeof(uint64_t))
        child = self.heap_size
        self.heap_size += 1
        while child > 0:
            parent = (child - 1) // 2
            if self.heap[parent] <= item:
                break
            self.heap[child] = self.heap[parent]
            child = parent
        self.heap[child] = item
        return 0

    cdef void drop_first(self) noexcept nogil:
        cdef uint64_t item
        cdef size_t parent = 0
        cdef size_t child = 1
        self.heap_size -= 1
        item = self.heap[self.heap_size]
        while child < self.heap_size:
            if child + 1 < self.heap_size and self.heap[child + 1] < self.heap[child]:
                child += 1
            if item <= self.heap[child]:
                break
            self.heap[parent] = self.heap[child]
            parent = child
            child = 2 * parent + 1
        self.heap[parent] = item

    cdef list result(self):
        cdef Py_ssize_t i
        cdef size_t kept
        if self.size > CHUNK:
            self.keep_numbers()
        kept = len(NUMBERS)
        ids = PyList_New(self.size)
        for i in range(<Py_ssize_t> self.size):
            if i % SLICE == SLICE - 1:
                PyErr_CheckSignals()
            if self.ids[i] < kept:
                number = <object> PyList_GET_ITEM(NUMBERS, self.ids[i])
            else:
                number = self.ids[i]
            Py_INCREF(number)
            PyList_SET_ITEM(ids, i, number)
        return ids

    cdef int keep_numbers(self) except -1:
        """Have ready what many results will hold: making a number takes long."""
        cdef size_t i
        cdef uint32_t highest = 0
        for i in range(self.size):
            highest = max(highest, self.ids[i])
        NUMBERS.extend(range(len(NUMBERS), min(highest, <uint32_t> HIGHEST_KEPT) + 1))
        return 0


cdef size_t read_bytes(
    EncodingTable table,
    const uint8_t *piece,  # IN
    size_t size,
    uint32_t *ids,  # OUT
) noexcept nogil:
    """The ids of the bytes of a piece, up to the first that has none; how many there are."""
    cdef size_t i
    for i in range(size):
        ids[i] = table.byte_ids[piece[i]]
        if ids[i] == NONE:
            return i
    return size


cdef size_t read_characters(
    EncodingTable table,
    const uint8_t *piece,  # IN
    size_t size,
    uint32_t *ids,  # OUT
) noexcept nogil:
    """The ids of the characters of a piece; how many there are."""
    cdef size_t count = 0
    cdef size_t place = 0
    cdef size_t width
    cdef uint32_t id
    while place < size:
        width = utf8_width(piece + place, size - place)
        id = NONE
        if width:
            id = find_pair(
                &table.character_ids,
                make_pair(
                    code_point(piece + place, width),
                    table.unit == WORD and place + width == size,
                ),
            )
        ids[count] = table.unknown if id == NONE else id
        count += 1
        place += width if width else 1
    return count


cdef uint32_t merge_short(
    EncodingTable table,
    bint packed,
    uint32_t *ids,  # IN, OUT
    uint32_t size,
) noexcept nogil:
    """Merge the symbols of a piece in place; returns how many ids are left (point 9)."""
    cdef uint32_t ranks[SHORT_PIECE]  # of the merge of a token and its right neighbor
    cdef uint32_t i, best
    for i in range(1, size):
        ranks[i - 1] = rank_of(table, packed, ids[i - 1], ids[i])
    while size > 1:
        best = 0
        for i in range(1, size - 1):
            if ranks[i] < ranks[best]:
                best = i
        if ranks[best] == NONE:
            break
        ids[best] = merged_id(table, ranks[best])
        size -= 1
        memmove(ids + best + 1, ids + best + 2, (size - best - 1) * sizeof(uint32_t))
        if best + 1 < size:
            memmove(ranks + best, ranks + best + 1, (size - best - 1) * sizeof(uint32_t))
            ranks[best] = rank_of(table, packed, ids[best], ids[best + 1])
        if best > 0:
            ranks[best - 1] = rank_of(table, packed, ids[best - 1], ids[best])
    return size


def encode(text, EncodingTable table not None, special=None):
    """The ids of a document, special tokens cut out first (points 9, 10 and 12).

    The twin of `tokbpe.reference.encode`. It runs without the GIL and answers Ctrl-C.
    """
    cdef Encoding encoding = Encoding(table)
    encoding.add_text(arguments.document_bytes(text), as_special_table(special))
    encoding.return_words()
    return encoding.result()


def count(text, EncodingTable table not None, special=None, limit=None):
    """How many ids a document has. Beyond a `limit` counting ends and gives one more than it.

    The twin of `tokbpe.reference.count`. It keeps no ids.
    """
    cdef Encoding encoding = Encoding(table)
    encoding.only_counting = True
    if limit is not None:
        encoding.most = arguments.count_limit(limit)
    encoding.add_text(arguments.document_bytes(text), as_special_table(special))
    encoding.return_words()
    encoding.enough()
    return encoding.counted if limit is None else min(encoding.counted, encoding.most + 1)
