"""Many documents at once, or one large one: to arrays or lists, by one thread or several.

The documents are cut into parts, where that changes nothing, and the parts are put together to
groups of about equal size. Each thread takes one group after another. What a group has become is
put behind that of the groups before it as soon as these are there: while the other threads go on,
and in memory that the next group is encoded in again. No thread outlives the call.

Tried before: joining all results at the end, which kept the second thread waiting (1.55 times as
fast as one, for one document of 20 MB).
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport SIZE_MAX, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

import threading

import numpy as np

from tokbpe import arguments

from .arrays cimport as_array, check_narrow, narrow_ids, size_of_id
from .encode cimport (
    BYTES_FOR_EACH_ID,
    Document,
    Encoding,
    as_list,
    begin,
    encode_document,
    open_document,
)
from .memory cimport reserve, resized, tokbpe_large_pages
from .merge cimport Merging
from .pairs cimport NOT_FOUND as NONE
from .special cimport SpecialSearch, SpecialTable, as_special_table
from .split cimport NOT_COMPILED, WHOLE
from .table cimport EncodingTable

# A thread is started for so many bytes at least: else it costs more than it brings.
cdef enum:
    THREAD_TEXT = 262144

# Each thread gets so many groups, if they are not too small, so that all end at about one time.
cdef enum:
    GROUPS_FOR_EACH_THREAD = 8
    LEAST_GROUP = 65536  # bytes

# So far behind a place a cut is looked for.
cdef enum:
    CUT_RANGE = 65536

# Lists are made of so much text at once, while its ids are in the processor's cache.
cdef enum:
    LIST_GROUP = 1048576  # bytes

THREAD_TEXT_SIZE = THREAD_TEXT


# What a batch makes: numbers of ids, lists of ids, or an array of them, of 32 or 16 bits.
cdef enum Output:
    COUNTS
    LISTS
    WIDE
    NARROW


# A document, or a part of one: data[first:last], and the special token behind it.
cdef struct Part:
    size_t document
    size_t first, last
    uint32_t id  # NONE: there is none
    bint is_cut  # whether there is more of the document


# Memory for ids, and how many are in it.
cdef struct Buffer:
    uint32_t *ids
    size_t size, capacity


# Parts that one thread encodes, one behind the other.
cdef struct Group:
    size_t first, last
    Buffer buffer
    bint is_done


def same(text):
    return text


@cython.final
cdef class Batch:
    """Documents, the groups that they are encoded in, and what they become."""

    cdef EncodingTable table
    cdef SpecialTable special
    cdef list owners  # of the bytes of the documents
    cdef Document *documents
    cdef size_t count
    cdef size_t total  # bytes
    cdef uint32_t[::1] before, behind  # each document
    cdef int output
    cdef Part *parts
    cdef size_t part_count, part_capacity
    cdef size_t *counts  # ids of each part
    cdef Group *groups
    cdef size_t group_count, group_capacity, next_group
    cdef Buffer *spare  # which groups were encoded in
    cdef size_t spare_count, spare_capacity
    cdef size_t groups_put  # how many groups are in the results
    cdef bint putting  # whether a thread is about that
    cdef void *ids  # of all documents, one behind the other, if an array is wanted
    cdef size_t size, capacity
    cdef list lists  # of ids, if these are wanted
    cdef size_t failed  # the number of the first group that has failed, from 1 on
    cdef object error
    cdef int thread_count
    cdef Merging merging  # which knows where raw text can be cut
    cdef bint named  # whether an error tells which text it is about

    def __cinit__(
        self, texts, EncodingTable table not None, special, int output, before=(), behind=()
    ):
        cdef size_t i
        self.table = table
        self.special = as_special_table(special)
        self.before = np.array(arguments.frame_ids(before, "before"), np.uint32)
        self.behind = np.array(arguments.frame_ids(behind, "behind"), np.uint32)
        self.output = output
        self.owners = list(texts) if type(texts) is list else arguments.each(same, texts, "text")
        self.count = len(self.owners)
        self.documents = <Document *> resized(NULL, self.count, sizeof(Document))
        if self.documents == NULL:
            raise MemoryError(f"no memory for {self.count} documents")
        try:
            for i in range(self.count):
                self.owners[i] = open_document(self.owners[i], &self.documents[i])
                self.total += self.documents[i].size
        except (TypeError, UnicodeEncodeError):
            arguments.each(arguments.document_bytes, self.owners, "text")  # which names the text
            raise
        if output == LISTS:
            self.lists = [None] * <Py_ssize_t> self.count
        self.failed = SIZE_MAX
        self.named = True

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.group_count):
            free(self.groups[i].buffer.ids)
        for i in range(self.spare_count):
            free(self.spare[i].ids)
        free(self.groups)
        free(self.spare)
        free(self.ids)
        free(self.parts)
        free(self.counts)
        free(self.documents)

    cdef int run(self, threads) except -1:
        """Encode all."""
        cdef size_t most = max(<size_t> 1, self.total // THREAD_TEXT)
        self.thread_count = 1
        if most > 1 and self.table.kind != NOT_COMPILED:
            self.thread_count = <int> min(<size_t> arguments.thread_count(threads), most)
        else:
            arguments.thread_count(threads)
        self.merging = Merging(self.table)
        self.merging.begin()
        self.make_groups()
        self.counts = <size_t *> resized(NULL, self.part_count, sizeof(size_t))
        if self.counts == NULL:
            raise MemoryError(f"no memory for {self.part_count} counts")
        helpers = []
        try:
            self.start(helpers)
            self.work()
        except BaseException:
            self.failed = 0
            raise
        finally:
            self.join(helpers)
        if self.error is not None:
            raise self.error
        return 0

    cdef int start(self, list helpers) except -1:
        """Start the threads beside this one, as many as can be had."""
        cdef size_t wanted = min(<size_t> self.thread_count, self.group_count)
        while <size_t> len(helpers) + 1 < wanted:
            helpers.append(threading.Thread(target=self.work, name="tokbpe", daemon=True))
            try:
                helpers[len(helpers) - 1].start()
            except RuntimeError:
                break
        return 0

    cdef int join(self, list helpers) except -1:
        """Wait for all, however often that is interrupted."""
        interrupt = None
        for helper in helpers:
            while helper.is_alive():
                try:
                    helper.join()
                except BaseException as error:
                    self.failed = 0
                    interrupt = error
        if interrupt is not None:
            raise interrupt
        return 0

    # Parts and groups

    cdef int make_groups(self) except -1:
        cdef size_t i, first
        cdef size_t size = <size_t> LIST_GROUP if self.output == LISTS else SIZE_MAX
        cdef size_t bytes_in_group = 0
        if self.thread_count > 1:
            size = max(
                <size_t> LEAST_GROUP,
                self.total // (<size_t> self.thread_count * GROUPS_FOR_EACH_THREAD),
            )
        for i in range(self.count):
            if self.thread_count > 1 and self.documents[i].size > size:
                self.cut_document(i, size)
            else:
                self.add_part(i, 0, self.documents[i].size, NONE, False)
        first = 0
        for i in range(self.part_count):
            bytes_in_group += self.parts[i].last - self.parts[i].first
            if bytes_in_group >= size or i + 1 == self.part_count:
                reserve(<void **> &self.groups, &self.group_capacity, self.group_count + 1,
                        sizeof(Group))
                self.groups[self.group_count] = Group(first, i + 1, Buffer(NULL, 0, 0), False)
                self.group_count += 1
                first = i + 1
                bytes_in_group = 0
        return 0

    cdef int add_part(
        self, size_t document, size_t first, size_t last, uint32_t id, bint is_cut
    ) except -1 nogil:
        reserve(<void **> &self.parts, &self.part_capacity, self.part_count + 1, sizeof(Part))
        self.parts[self.part_count] = Part(document, first, last, id, is_cut)
        self.part_count += 1
        return 0

    cdef int cut_document(self, size_t number, size_t size) except -1:
        """Cut a document into parts of about so many bytes, and at its special tokens."""
        cdef Document *document = &self.documents[number]
        cdef SpecialSearch search
        cdef size_t first = 0
        cdef size_t length = 0
        cdef size_t place = document.size
        cdef uint32_t id = NONE
        if self.special is None:
            return self.cut_text(number, 0, document.size, NONE, document.size, size)
        search = SpecialSearch(self.special)
        search.open(document.data, document.size)
        while first < document.size:
            with nogil:
                place = search.find(&length, &id)
                if not length:
                    id = NONE
                self.cut_text(number, first, place, id, place + length, size)
            first = place + length
            if self.part_count % 4096 == 0:
                PyErr_CheckSignals()
        return 0

    cdef int cut_text(
        self, size_t number, size_t first, size_t last, uint32_t id, size_t behind, size_t size
    ) except -1 nogil:
        """Parts of what has no special tokens in it; `behind` begins what follows."""
        cdef const uint8_t *data = self.documents[number].data
        cdef size_t cut = first
        while last - first > size:
            if self.table.kind != WHOLE:
                cut = safe_cut(data, first + size, last)
            elif not self.table.takes_whole:  # a part is not to be taken for a piece
                cut = first + self.merging.part_end(data + first, size, last - first)
            if cut <= first or cut >= last:
                break
            self.add_part(number, first, cut, NONE, True)
            first = cut
        return self.add_part(number, first, last, id, behind < self.documents[number].size)

    # Work

    def work(self):
        """Encode one group after another, as long as there are any."""
        cdef Encoding encoding = None
        cdef size_t number = 0
        try:
            encoding = begin(
                self.table, self.special, self.total // <size_t> self.thread_count)
            encoding.only_counting = self.output == COUNTS
            while self.next_group < self.group_count:
                number = self.next_group
                self.next_group += 1
                encoding.group = number + 1
                encoding.failed = &self.failed
                self.lend_buffer(encoding)
                with nogil:
                    self.encode_group(encoding, &self.groups[number])
                self.groups[number].is_done = True
                self.put_groups()
        except BaseException as error:
            # The error of the first group counts: a single thread would have met it first.
            if number + 1 < self.failed:
                self.failed = number + 1 if isinstance(error, Exception) else 0
                self.error = error
                if isinstance(error, ValueError) and self.named:
                    self.error = ValueError(f"text {encoding.document}: {error}")
                    self.error.__cause__ = error
        finally:
            if encoding is not None:
                encoding.close()

    cdef int encode_group(self, Encoding encoding, Group *group) except -1 nogil:
        cdef size_t i, start
        cdef Part *part
        cdef Document *document
        cdef size_t size = 0
        for i in range(group.first, group.last):
            size += self.parts[i].last - self.parts[i].first
        if self.output != COUNTS:
            encoding.expect(size)
        for i in range(group.first, group.last):
            part = &self.parts[i]
            document = &self.documents[part.document]
            encoding.document = part.document
            start = encoding.size + encoding.counted
            if part.first == 0:
                encoding.put_ids(self.before)
            if part.last - part.first == document.size:
                encoding.add_document(document)
            else:
                encoding.add_part(document, part.first, part.last)
                if part.id != NONE:
                    encoding.put_id(part.id)
            if not part.is_cut:
                encoding.put_ids(self.behind)
            self.counts[i] = encoding.size + encoding.counted - start
        if self.output == NARROW:
            check_narrow(encoding.ids, encoding.size)
        if self.output != COUNTS:
            group.buffer = Buffer(encoding.ids, encoding.size, encoding.capacity)
            encoding.ids = NULL
            encoding.capacity = 0
        encoding.size = encoding.counted = 0
        return 0

    # Results

    cdef object offsets(self):
        """Where the ids of each document begin, and where the last ones end."""
        offsets = np.zeros(self.count + 1, np.uint64)
        cdef uint64_t[::1] view = offsets
        cdef size_t i
        for i in range(self.part_count):
            view[self.parts[i].document + 1] += self.counts[i]
        for i in range(self.count):
            view[i + 1] += view[i]
        return offsets

    cdef int lend_buffer(self, Encoding encoding) except -1:
        """Let a group be encoded where another one was."""
        cdef Buffer buffer
        if encoding.ids == NULL and self.spare_count:
            self.spare_count -= 1
            buffer = self.spare[self.spare_count]
            encoding.ids = buffer.ids
            encoding.capacity = buffer.capacity
        return 0

    cdef int put_groups(self) except -1:
        """Put the groups that are done into the results, up to one that is not.

        With the GIL, and so by one thread only, even if that looks for signals.
        """
        cdef Group *group
        if self.putting:
            return 0
        self.putting = True
        try:
            while self.groups_put < self.group_count and self.groups[self.groups_put].is_done:
                group = &self.groups[self.groups_put]
                if self.output == LISTS:
                    self.put_lists(group)
                elif self.output != COUNTS:
                    self.put_ids(&group.buffer)
                self.take_back(&group.buffer)
                self.groups_put += 1
        finally:
            self.putting = False
        return 0

    cdef int take_back(self, Buffer *buffer) except -1:
        if buffer.ids != NULL:
            reserve(<void **> &self.spare, &self.spare_capacity, self.spare_count + 1,
                    sizeof(Buffer))
            self.spare[self.spare_count] = buffer[0]
            self.spare_count += 1
            buffer.ids = NULL
        return 0

    cdef int put_lists(self, const Group *group) except -1:
        cdef const uint32_t *ids = group.buffer.ids
        cdef size_t i, document
        for i in range(group.first, group.last):
            document = self.parts[i].document
            found = as_list(ids, self.counts[i])
            ids += self.counts[i]
            if self.lists[document] is None:
                self.lists[document] = found
            else:
                self.lists[document] += found
        return 0

    cdef int put_ids(self, Buffer *buffer) except -1:
        cdef bint narrow = self.output == NARROW
        cdef size_t capacity = self.capacity
        if self.group_count == 1 and not narrow:
            self.ids = buffer.ids
            self.size = buffer.size
            buffer.ids = NULL
            return 0
        reserve(
            &self.ids,
            &self.capacity,
            max(self.size + buffer.size, self.total // BYTES_FOR_EACH_ID),
            size_of_id(narrow),
        )
        if self.capacity != capacity:
            tokbpe_large_pages(self.ids, self.capacity * size_of_id(narrow))
        if narrow:
            narrow_ids(<uint16_t *> self.ids + self.size, buffer.ids, buffer.size)
        else:
            memcpy(
                <uint32_t *> self.ids + self.size, buffer.ids, buffer.size * sizeof(uint32_t))
        self.size += buffer.size
        return 0

    cdef object array(self):
        """The ids of all documents, one behind the other."""
        return as_array(&self.ids, self.size, self.output == NARROW)


cdef size_t safe_cut(const uint8_t *data, size_t first, size_t last) noexcept nogil:
    """A place, not far behind the first, where any pattern begins a new piece, whatever follows:
    a space behind an ASCII letter; `last` if there is none.

    A piece that has a letter in it ends with letters, in all compiled patterns, unless these are
    followed by a mark or an apostrophe; and no pattern looks back.
    """
    cdef size_t place
    cdef size_t end = min(last, first + CUT_RANGE)
    for place in range(max(first, <size_t> 1), end):
        if data[place] == b" " and b"a" <= data[place - 1] | 0x20 <= b"z":
            return place
    return last


# What the engine gives


def encode_array(text, EncodingTable table not None, special=None, *, threads=None):
    """The ids of a document as an array, `uint32` [n].

    threads: how many are used for a document that is long enough; None for as many as there are
        processors.
    """
    cdef Document document
    cdef Encoding encoding
    cdef Batch batch
    _owner = open_document(text, &document)
    if document.size >= 2 * <size_t> THREAD_TEXT and arguments.thread_count(threads) > 1:
        batch = Batch([text], table, special, WIDE)
        batch.named = False
        batch.run(threads)
        return batch.array()
    encoding = begin(table, as_special_table(special), document.size)
    try:
        encoding.expect(document.size)
        encode_document(encoding, &document)
        array = as_array(<void **> &encoding.ids, encoding.size, False)
        if encoding.ids == NULL:
            encoding.capacity = 0
        return array
    finally:
        encoding.close()


def encode_into(text, EncodingTable table not None, out, special=None):
    """Write the ids of a document to the beginning of `out`; how many there are.

    out: a contiguous, writable buffer [m] of `uint32` or `uint16`. ValueError if it is too small,
        or an id too large for it: nothing is written then.
    """
    cdef Document document
    cdef Encoding encoding
    cdef uint32_t[::1] wide
    cdef uint16_t[::1] half
    cdef size_t room
    view = arguments.id_buffer(out)
    room = len(view)
    narrow = view.itemsize == 2
    _owner = open_document(text, &document)
    encoding = begin(table, as_special_table(special), document.size)
    try:
        encode_document(encoding, &document)
        if encoding.size > room:
            raise ValueError(f"the text has {encoding.size} ids, but `out` has room for {room}")
        if encoding.size and narrow:
            half = view
            check_narrow(encoding.ids, encoding.size)
            narrow_ids(&half[0], encoding.ids, encoding.size)
        elif encoding.size:
            wide = view
            memcpy(&wide[0], encoding.ids, encoding.size * sizeof(uint32_t))
        return encoding.size
    finally:
        encoding.close()


def encode_batch(
    texts, EncodingTable table not None, special=None, *, before=(), behind=(), threads=None
):
    """The ids of each document, as lists; `before` and `behind` are put around each."""
    cdef Batch batch = Batch(texts, table, special, LISTS, before, behind)
    batch.run(threads)
    return batch.lists


def encode_batch_arrays(
    texts,
    EncodingTable table not None,
    special=None,
    *,
    before=(),
    behind=(),
    dtype="uint32",
    threads=None,
):
    """The ids of all documents in one array [total], and where each begins, `uint64` [n + 1].

    dtype: "uint32" or "uint16"; ValueError, naming it, for an id that is too large for the latter.
    """
    cdef int output = NARROW if arguments.id_dtype(dtype) == np.uint16 else WIDE
    cdef Batch batch = Batch(texts, table, special, output, before, behind)
    batch.run(threads)
    return batch.array(), batch.offsets()


def count_batch(texts, EncodingTable table not None, special=None, *, threads=None):
    """How many ids each document has, `uint64` [n]."""
    cdef Batch batch = Batch(texts, table, special, COUNTS)
    batch.run(threads)
    return np.diff(batch.offsets())
