"""Encoding, compiled: the twins of `encode` and `count` in `tokbpe.reference`.

A document is encoded by one thread, without the GIL. Until some text has come to a table, its
pieces are merged one by one. From then on words are remembered, and the work is done in chunks of
some hundred pieces, one stage after the other, so that the memory which a stage jumps about in has
been asked for before:

    find_items      where pieces end; the key of each, and its place in the word cache
    put_out         the ids of those that the cache has; what it lacks is merged and kept

A long piece is taken apart first, where no merge can cross, and its parts are items like others.

Measured, in MB/s of cl100k English, cold / next / warm: pieces merged one by one 20; with the
cache 60 / 85 / 170; with the scanners that give many ends, keys without branches, and pieces of the
vocabulary known from the beginning 110 / 180 / 360. Tried and left out: collecting what the cache
lacks and merging it together, which is slower (155 instead of 178 for `next`), as all places have
been asked for already, and no faster with four words side by side, each of which finds the slots
of its merges in the processor's cache (137 instead of 141 for `cold`); a cache of 2**18 words,
which is wiped too often; a word brought to the first slot of its line when it is found elsewhere,
which brings nothing.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_GET_ITEM, PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport SIZE_MAX, uint8_t, uint32_t
from libc.string cimport memcpy

from tokbpe import arguments, reference

from .memory cimport free, reserve, tokbpe_large_pages, tokbpe_prefetch
from .merge cimport Merging
from .pairs cimport NOT_FOUND as NONE
from .pieces cimport PieceIndex, piece_size
from .seeds cimport set_seeds
from .special cimport SpecialSearch, SpecialTable, as_special_table
from .split cimport NOT_COMPILED, WORDS, Scanner, next_ends, next_piece, open_scanner
from .table cimport BYTE, WARM_TEXT, EncodingTable, long_whole_piece
from .words cimport (
    INLINE_IDS,
    LONG,
    LONGEST_WORD,
    PART,
    SHORT_WORD,
    WordSlot,
    close_words,
    grow_words,
    has_room,
    ids_of_word,
    keep_word,
    open_words,
    tokbpe_key,
    tokbpe_long_key,
    tokbpe_word_key,
    wipe_words,
    word_place,
    word_slot,
    words_size,
)

set_seeds()

# How many bytes are encoded between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000

# Of a word cache: of the first; of what a large text gets at once, which takes 19 MB; and of the
# largest, to which it grows when it has to. Beyond that all words are forgotten.
cdef enum:
    LEAST_BITS = 12
    LARGE_BITS = 19
    MOST_BITS = 20
    TEXT_FOR_EACH_SLOT = 16  # bytes

# A cache for so much text knows the pieces of the vocabulary from the beginning.
cdef enum:
    SEEDED_TEXT = 500000

# Shorter documents are encoded with the GIL: to give it up takes as long as a few words.
cdef enum:
    SHORT_DOCUMENT = 2048

# More memory for ids is not kept for the next encoding.
cdef enum:
    KEPT_IDS = 16384

# Up to this id Python's numbers are kept for results, some megabytes for all tables together.
cdef enum:
    HIGHEST_KEPT = 262143

cdef list NUMBERS = []

cdef enum:
    NUMBERS_AHEAD = 16

# So much text of long pieces is merged as it is, before it is prepared where they can be cut: to
# prepare takes some milliseconds, and most texts have little of it.
cdef enum:
    UNCUT_TEXT = 16384  # bytes

CHUNK_SIZE = CHUNK
WARM_TEXT_SIZE = WARM_TEXT


cdef extern from *:
    PyObject **PySequence_Fast_ITEMS(object sequence)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    const void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)


cdef object open_document(text, Document *document):
    """The bytes of a document; what is returned keeps them.

    A `str` has its UTF-8, or gets it and keeps it. What could be changed meanwhile is copied.
    """
    cdef Py_ssize_t size
    cdef bytes data
    if type(text) is str:
        document.is_text = True
        if PyUnicode_IS_COMPACT_ASCII(text):
            document.data = <const uint8_t *> PyUnicode_DATA(text)
            document.size = PyUnicode_GET_LENGTH(text)
            return text
        try:
            document.data = <const uint8_t *> PyUnicode_AsUTF8AndSize(text, &size)
        except UnicodeEncodeError:
            arguments.document_bytes(text)
            raise
        document.size = size
        return text
    data = text if type(text) is bytes else arguments.document_bytes(text)
    document.data = <const uint8_t *> PyBytes_AS_STRING(data)
    document.size = PyBytes_GET_SIZE(data)
    document.is_text = False
    return data


@cython.final
cdef class Encoding:
    """What one thread encodes documents with: their ids, the word cache, scratch memory.

    It serves one call after another, and has the table of its vocabulary only meanwhile.
    """

    def __dealloc__(self):
        close_words(&self.cache)
        free(self.ids)

    cdef int open(self, EncodingTable table, SpecialTable special, size_t size) except -1:
        """Begin with documents that have so many bytes together."""
        self.table = table
        self.by_chunks = False  # what fails below may leave no cache
        if self.merging is None:
            self.merging = Merging(table)
        self.merging.table = table
        if special is None:
            self.search = None
        elif self.search is None or self.search.table is not special:
            self.search = SpecialSearch(special)
        self.size = self.counted = self.unpaused = 0
        self.only_counting = False
        self.most = SIZE_MAX
        self.group = 0
        self.failed = NULL
        table.text_size += size
        if table.text_size >= WARM_TEXT and not table.warm:
            table.warm_up()
        self.merging.begin()
        self.by_chunks = (
            table.warm
            and table.unit == BYTE
            and table.kind != NOT_COMPILED
            and table.kind != WORDS
            and self.has_cache(size)
        )
        self.part_tag = PART if table.takes_whole else 0
        return 0

    cdef int close(self) except -1:
        """Leave the memory to the next encoding."""
        cdef EncodingTable table = self.table
        self.table = self.merging.table = None
        self.shrink()
        if table.spare is None:
            table.spare = self
        else:
            table.idle.append(self)
        return 0

    cdef void shrink(self) noexcept nogil:
        """Free what was needed for much text alone."""
        if self.capacity > KEPT_IDS:
            free(self.ids)
            self.ids = NULL
            self.capacity = 0

    # The word cache

    cdef bint has_cache(self, size_t size) except -1:
        """Have a word cache for so much text, as far as the limit of the table allows."""
        cdef bint seeds = size >= SEEDED_TEXT and self.table.takes_whole
        cdef size_t most = self.table.pieces.count * 2 if seeds else 0
        cdef int bits = LEAST_BITS
        while bits < LARGE_BITS and (
            <size_t> TEXT_FOR_EACH_SLOT << bits < size or <size_t> 1 << bits < most
        ):
            bits += 1
        if self.cache.used == 0 and self.cache.bits < bits:
            self.table.cache_size -= self.drop_cache()
        while self.cache.bits < bits and self.cache.slots:
            if not self.grow():
                break
        while self.cache.slots == NULL and bits >= LEAST_BITS:
            if self.may_take(words_size(bits)):
                if not open_words(&self.cache, bits):
                    self.table.cache_size -= words_size(bits)
                    raise MemoryError(f"no memory for a cache of 2**{bits} words")
            bits -= 1
        if seeds and not self.seeded and most <= <size_t> 1 << self.cache.bits:
            with nogil:
                self.seed()
            self.seeded = True
        return self.cache.slots != NULL

    cdef int seed(self) noexcept nogil:
        """Know all pieces that are taken whole and that a key can hold: what the cache lacks need
        not be looked up in the vocabulary then."""
        cdef const PieceIndex *pieces = &self.table.pieces
        cdef size_t number, size
        cdef size_t count = 0
        for number in range(pieces.count):
            size = piece_size(pieces, number)
            if 0 < size <= SHORT_WORD:
                self.add_item(count, number, tokbpe_word_key(
                    pieces.bytes, pieces.starts[number], size, pieces.starts[pieces.count], size))
                count += 1
            if count == CHUNK or number + 1 == pieces.count:
                self.keep_seeds(count)
                count = 0
        return 0

    cdef int keep_seeds(self, size_t count) noexcept nogil:
        """Keep the pieces whose numbers stand in the place of the ends of items."""
        cdef size_t i
        cdef uint32_t id
        cdef const uint8_t *piece
        cdef WordSlot *slot
        for i in range(count):
            id = <uint32_t> self.items.ends[i]
            piece = self.table.pieces.bytes + self.table.pieces.starts[id]
            slot = word_slot(&self.cache, self.items.keys[i], self.items.places[i], piece)
            if slot.key.high == 0:
                if self.table.piece_ids != NULL:
                    id = self.table.piece_ids[id]
                keep_word(&self.cache, slot, self.items.keys[i], piece, &id, 1)
        return 0

    def cleared(self):
        """Free the cache; how many bytes it had."""
        return self.drop_cache()

    def kept(self):
        """How many bytes are kept beside the cache."""
        return self.capacity * sizeof(uint32_t)

    cdef size_t drop_cache(self) noexcept:
        """Free the cache; how many bytes it had."""
        cdef size_t size = words_size(self.cache.bits) if self.cache.slots else 0
        close_words(&self.cache)
        self.seeded = False
        return size

    cdef bint may_take(self, size_t size) except -1:
        """Whether the limit of the table allows so many bytes more, which are then taken."""
        if self.table.cache_size + size > self.table.cache_limit:
            return False
        self.table.cache_size += size
        return True

    cdef bint grow(self) except -1:
        """Double the cache, if the limit allows that."""
        cdef size_t more = words_size(self.cache.bits + 1) - words_size(self.cache.bits)
        if not self.may_take(more):
            return False
        if not grow_words(&self.cache):
            self.table.cache_size -= more
            return False
        return True

    cdef int make_room(self) except -1 nogil:
        """Have room for the words of a chunk."""
        cdef bint grown = False
        if has_room(&self.cache):
            return 0
        if self.cache.bits < MOST_BITS:
            with gil:
                grown = self.grow()
        if not grown:
            wipe_words(&self.cache)
            if self.seeded:
                self.seed()
        return 0

    # Documents

    cdef int add_document(self, const Document *document) except -1 nogil:
        """Encode a document, special tokens cut out first (point 12)."""
        cdef size_t done = 0
        cdef size_t length = 0
        cdef size_t place = document.size
        cdef uint32_t id = 0
        if self.search is not None:
            self.search.open(document.data, document.size)
        while done < document.size:
            if self.search is not None:
                place = self.search.find(&length, &id)
            self.add_part(document, done, place)
            if self.enough():
                break
            if length:
                self.put_id(id)
                if self.enough():
                    break
            done = place + length
        return 0

    cdef int expect(self, size_t size) except -1 nogil:
        """Have room for the ids of so many bytes, if each stands for three or more, as it mostly
        does."""
        cdef size_t before = self.capacity
        reserve(
            <void **> &self.ids,
            &self.capacity,
            self.size + size // BYTES_FOR_EACH_ID + <size_t> CHUNK,
            sizeof(uint32_t),
        )
        if self.capacity != before:
            tokbpe_large_pages(self.ids, self.capacity * sizeof(uint32_t))
        return 0

    cdef int put_id(self, uint32_t id) except -1 nogil:
        reserve(<void **> &self.ids, &self.capacity, self.size + 1, sizeof(uint32_t))
        self.ids[self.size] = id
        self.size += 1
        return 0

    cdef int add_part(self, const Document *document, size_t first, size_t last) except -1 nogil:
        """Encode a part of a document in which there are no special tokens."""
        cdef Scanner scanner
        cdef bint more = first < last
        cdef size_t before
        if self.table.kind == NOT_COMPILED:
            with gil:
                self.add_pieces(document.data, first, last)
            return 0
        open_scanner(
            &scanner, self.table.kind, document.data + first, last - first, document.is_text)
        self.at = self.piece_end = self.piece_count = self.next = 0
        while more:
            before = scanner.position
            if self.by_chunks:
                more = self.add_chunks(&scanner, first)
            else:
                more = self.add_slice(&scanner, first)
            self.unpaused += scanner.position - before
            if self.unpaused >= SLICE:
                self.pause()
        return 0

    cdef int pause(self) except -1 nogil:
        """Look for signals, and whether other threads have failed."""
        self.unpaused = 0
        with gil:
            PyErr_CheckSignals()
            if self.failed != NULL and self.failed[0] < self.group:
                raise RuntimeError("another thread has failed")
        return 0

    cdef int add_pieces(self, const uint8_t *data, size_t first, size_t last) except -1:
        """Encode data[first:last] by the reference's splitter."""
        cdef const uint8_t *start
        cdef size_t size
        cdef size_t position = 0
        cdef bytes text = PyBytes_FromStringAndSize(<const char *> data + first, last - first)
        for piece in reference.split(text, self.table.pattern):
            start = <const uint8_t *> PyBytes_AS_STRING(piece)
            size = PyBytes_GET_SIZE(piece)
            position = text.index(piece, position)  # patterns may drop text between pieces
            with nogil:
                self.add_piece(start, size, first + position)
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

    cdef int add_piece(self, const uint8_t *piece, size_t size, size_t position) except -1 nogil:
        """Encode a piece that stands at `position` of the document."""
        reserve(<void **> &self.ids, &self.capacity, self.size + size, sizeof(uint32_t))
        self.size += self.merging.merged(piece, size, position, self.ids + self.size)
        return 0

    cdef inline bint enough(self) noexcept nogil:
        """When only counting: count the ids instead of keeping them, and tell at the limit."""
        if not self.only_counting:
            return False
        self.counted += self.size
        self.size = 0
        return self.counted > self.most

    # Chunks of pieces, by the word cache

    cdef bint add_chunks(self, Scanner *scanner, size_t position) except -1 nogil:
        """Encode some chunks of what begins at `position`; False when there is no more."""
        cdef size_t first = scanner.position
        cdef size_t count
        while scanner.position - first < SLICE or self.next < self.piece_count:
            self.make_room()
            count = self.find_items(scanner)
            if count == 0:
                return False
            # An id stands for a byte at least; and ids are copied three at a time.
            reserve(
                <void **> &self.ids,
                &self.capacity,
                self.size + (self.items.ends[count - 1] - self.items.first) + INLINE_IDS + 1,
                sizeof(uint32_t),
            )
            self.put_out(scanner.data, position, count)
            if self.enough():
                return False
        return True

    cdef size_t find_items(self, Scanner *scanner) noexcept nogil:
        """The next pieces, long ones in parts, with their keys and places in the cache."""
        cdef size_t count = 0
        self.items.first = self.at
        while count < CHUNK:
            if self.at < self.piece_end:
                count = self.add_parts(scanner, count)
            elif self.next < self.piece_count:
                count = self.add_words(scanner, count)
                if count < CHUNK and self.next < self.piece_count:
                    count = self.add_long_piece(scanner, count)
            else:
                self.next = 0
                self.piece_count = next_ends(scanner, self.items.piece_ends, CHUNK)
                if self.piece_count == 0:
                    break
        return count

    cdef inline size_t add_words(self, const Scanner *scanner, size_t count) noexcept nogil:
        """Pieces up to the first long one."""
        cdef size_t start = self.at
        cdef size_t end, size
        while count < CHUNK and self.next < self.piece_count:
            end = self.items.piece_ends[self.next]
            size = end - start
            if size > SHORT_WORD:
                break
            self.add_item(count, end, tokbpe_word_key(
                scanner.data, start, size, scanner.size, size))
            start = end
            self.next += 1
            count += 1
        self.at = start
        return count

    cdef inline void add_item(self, size_t i, size_t end, tokbpe_key key) noexcept nogil:
        cdef size_t place = word_place(&self.cache, key)
        tokbpe_prefetch(&self.cache.slots[place])
        self.items.ends[i] = end
        self.items.keys[i] = key
        self.items.places[i] = <uint32_t> place

    cdef size_t add_long_piece(self, const Scanner *scanner, size_t count) noexcept nogil:
        """A piece that is looked for in the cache, or in the vocabulary, or else taken apart."""
        cdef const uint8_t *piece = scanner.data + self.at
        cdef size_t end = self.items.piece_ends[self.next]
        cdef size_t size = end - self.at
        self.next += 1
        # Text without spaces, which seldom comes again, is mostly not ASCII.
        if size <= LONGEST_WORD and max(piece[0], piece[1]) < 0xE3:
            self.add_item(count, end, tokbpe_long_key(piece, size, LONG))
        elif long_whole_piece(self.table, piece, size) != NONE:
            self.add_item(count, end, tokbpe_key(0, 0))
        elif self.uncut + size <= UNCUT_TEXT:
            self.uncut += size
            self.add_item(count, end, tokbpe_key(1, 0))
        else:
            self.piece_start = self.at
            self.piece_end = end
            return count
        self.at = end
        return count + 1

    cdef size_t add_parts(self, const Scanner *scanner, size_t count) noexcept nogil:
        """Parts of the long piece that we are in."""
        cdef const uint8_t *piece = scanner.data + self.piece_start
        cdef size_t size_of_piece = self.piece_end - self.piece_start
        cdef size_t start, end, size
        cdef tokbpe_key key
        while count < CHUNK and self.at < self.piece_end:
            start = self.at - self.piece_start
            end = self.merging.part_end(piece, start, size_of_piece)
            size = end - start
            if size <= SHORT_WORD:
                key = tokbpe_word_key(
                    scanner.data, self.at, size, scanner.size, size | self.part_tag)
            elif size <= LONGEST_WORD:
                key = tokbpe_long_key(piece + start, size, <size_t> LONG | self.part_tag)
            else:
                key = tokbpe_key(1, 0)
            self.at += size
            self.add_item(count, self.at, key)
            count += 1
        return count

    cdef int put_out(
        self, const uint8_t *data, size_t position, size_t count
    ) except -1 nogil:
        """Append the ids of the items."""
        cdef size_t i = self.put_known(data, 0, count)
        while i < count:
            self.put_merged(data, position, i)
            i = self.put_known(data, i + 1, count)
        return 0

    cdef inline size_t start_of(self, size_t i) noexcept nogil:
        """Where an item begins."""
        return self.items.ends[i - 1] if i else self.items.first

    cdef size_t put_known(self, const uint8_t *data, size_t i, size_t count) noexcept nogil:
        """Append the ids of items from i on, up to one that the cache lacks; its number."""
        cdef size_t start = self.start_of(i)
        cdef uint32_t *out = self.ids + self.size
        cdef size_t size = 0
        cdef WordSlot *slot
        cdef tokbpe_key key
        while i < count:
            key = self.items.keys[i]
            slot = word_slot(&self.cache, key, self.items.places[i], data + start)
            if slot.key.high == 0:
                break
            if slot.count <= <uint32_t> INLINE_IDS and key.high >> 56 < <size_t> LONG:
                memcpy(out + size, slot.ids, (INLINE_IDS + 1) * sizeof(uint32_t))
            else:
                memcpy(
                    out + size, ids_of_word(&self.cache, slot), slot.count * sizeof(uint32_t))
            size += slot.count
            start = self.items.ends[i]
            i += 1
        self.size += size
        return i

    cdef int put_merged(self, const uint8_t *data, size_t position, size_t i) except -1 nogil:
        """Merge an item that the cache lacks, append its ids, and keep them if it is not too
        long."""
        cdef uint32_t *out = self.ids + self.size
        cdef size_t start = self.start_of(i)
        cdef size_t size = self.items.ends[i] - start
        cdef tokbpe_key key = self.items.keys[i]
        cdef size_t count
        cdef bint is_part
        if key.high == 0:
            is_part = key.low != 0
        else:
            # What begins with all pieces of the vocabulary lacks none.
            is_part = key.high >> 56 & PART or self.seeded and size <= SHORT_WORD
        if is_part:
            count = self.merging.merged_part(data + start, size, position + start, out)
        else:
            count = self.merging.merged(data + start, size, position + start, out)
        if key.high:
            keep_word(
                &self.cache,
                word_slot(&self.cache, key, self.items.places[i], data + start),
                key,
                data + start,
                out,
                count,
            )
        self.size += count
        return 0

    cdef int put_ids(self, const uint32_t[::1] ids) except -1 nogil:
        cdef size_t i
        for i in range(<size_t> ids.shape[0]):
            self.put_id(ids[i])
        self.enough()
        return 0


cdef list as_list(const uint32_t *ids, size_t count):
    """Ids as Python's numbers."""
    cdef size_t last
    cdef size_t first = 0
    cdef list numbers = PyList_New(count)
    cdef bint kept = count > CHUNK and keep_numbers(ids, count)
    # The list of a large text has never been touched: 10 MB of English take 15 to 20 % less.
    tokbpe_large_pages(PySequence_Fast_ITEMS(numbers), count * sizeof(PyObject *))
    while first < count:
        last = min(count, first + SLICE)
        if kept:
            put_kept(numbers, ids, first, last)
        else:
            put_numbers(numbers, ids, first, last)
        if last < count:
            PyErr_CheckSignals()
        first = last
    return numbers


cdef bint keep_numbers(const uint32_t *ids, size_t count) except -1:
    """Have ready what many results will hold: making a number takes long. False if not all are."""
    cdef size_t i
    cdef uint32_t highest = 0
    for i in range(count):
        highest = max(highest, ids[i])
    NUMBERS.extend(range(len(NUMBERS), min(highest, <uint32_t> HIGHEST_KEPT) + 1))
    return highest < len(NUMBERS)


cdef int put_kept(list numbers, const uint32_t *ids, size_t first, size_t last) except -1:
    """Numbers that are ready. Rare ones are not in the processor's cache: they are asked for
    before they are needed."""
    cdef PyObject **kept = PySequence_Fast_ITEMS(NUMBERS)
    cdef PyObject **out = PySequence_Fast_ITEMS(numbers)
    cdef size_t i
    for i in range(first, last):
        if i + NUMBERS_AHEAD < last:
            tokbpe_prefetch(kept[ids[i + NUMBERS_AHEAD]])
        Py_INCREF(<object> kept[ids[i]])
        out[i] = kept[ids[i]]
    return 0


cdef int put_numbers(list numbers, const uint32_t *ids, size_t first, size_t last) except -1:
    cdef size_t i
    cdef size_t kept = len(NUMBERS)
    for i in range(first, last):
        if ids[i] < kept:
            number = <object> PyList_GET_ITEM(NUMBERS, ids[i])
        else:
            number = ids[i]
        Py_INCREF(number)
        PyList_SET_ITEM(numbers, i, number)
    return 0


cdef Encoding begin(EncodingTable table, SpecialTable special, size_t size):
    """An encoding for documents that have so many bytes together."""
    cdef Encoding encoding = table.spare
    if encoding is not None:
        table.spare = None
    elif table.idle:
        encoding = table.idle.pop()
    else:
        encoding = Encoding()
    try:
        encoding.open(table, special, size)
    except BaseException:
        # Its cache, which counts against the limit, is not lost.
        if encoding.merging is not None:
            encoding.close()
        raise
    return encoding


cdef int encode_document(Encoding encoding, const Document *document) except -1:
    if document.size < SHORT_DOCUMENT:
        return encoding.add_document(document)
    with nogil:
        encoding.add_document(document)
    return 0


cdef list encode_text(text, EncodingTable table, SpecialTable special):
    cdef Document document
    _owner = open_document(text, &document)
    cdef Encoding encoding = begin(table, special, document.size)
    try:
        encode_document(encoding, &document)
        return as_list(encoding.ids, encoding.size)
    finally:
        encoding.close()


def encode(text, EncodingTable table not None, special=None):
    """The ids of a document, special tokens cut out first (points 9, 10 and 12).

    The twin of `tokbpe.reference.encode`. It runs without the GIL and answers Ctrl-C.
    """
    return encode_text(text, table, as_special_table(special))


def count(text, EncodingTable table not None, special=None, limit=None):
    """How many ids a document has. Beyond a `limit` counting ends and gives one more than it.

    The twin of `tokbpe.reference.count`. It keeps no ids.
    """
    cdef Document document
    cdef size_t most = arguments.count_limit(limit)
    _owner = open_document(text, &document)
    cdef Encoding encoding = begin(table, as_special_table(special), document.size)
    encoding.only_counting = True
    encoding.most = most
    try:
        encode_document(encoding, &document)
        encoding.enough()
        return encoding.counted if limit is None else min(encoding.counted, most + 1)
    finally:
        encoding.close()
