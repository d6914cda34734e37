"""Encoding, compiled: the twins of `encode` and `count` in `tokbpe.reference`.

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
from libc.stdint cimport SIZE_MAX, uint8_t, uint32_t
from libc.stdlib cimport free

from tokbpe import arguments, reference

from .memory cimport reserve
from .merge cimport Merging
from .special cimport SpecialSearch, SpecialTable, as_special_table
from .split cimport NOT_COMPILED, WHOLE, Scanner, next_piece, open_scanner
from .table cimport BYTE, WARM_TEXT, EncodingTable
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

CHUNK_SIZE = CHUNK
WARM_TEXT_SIZE = WARM_TEXT


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
    cdef Merging merging
    cdef uint32_t *ids
    cdef size_t size
    cdef size_t capacity
    cdef bint only_counting
    cdef size_t counted, most  # ids, when only counting
    cdef Words words  # None: pieces are merged one by one
    cdef uint32_t *spill  # the ids of pieces that the cache lacked
    cdef size_t spill_capacity

    def __cinit__(self, EncodingTable table not None):
        self.table = table
        self.merging = Merging(table)
        self.most = SIZE_MAX

    def __dealloc__(self):
        free(self.ids)
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
            self.merging.begin()
            return 0
        if not self.table.warm:
            self.table.warm_up()
        self.merging.begin()
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
            work.count = self.merging.merged(
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
        self.size += self.merging.merged(piece, size, position, self.ids + self.size)
        return 0

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
