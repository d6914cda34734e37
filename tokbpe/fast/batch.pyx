"""Many documents at once, or one large one: to arrays or lists, by one thread or several.

They are encoded in groups (`groups.pxd`). What a group has become is put behind that of the groups
before it as soon as these are there: while the other threads go on, and in memory that the next
group is encoded in again.

Tried before: joining all results at the end, which kept the second thread waiting (1.55 times as
fast as one, for one document of 20 MB).
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport SIZE_MAX, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

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
from .groups cimport Group, Groups, Part, safe_cut, thread_text
from .memory cimport free, reserve, resized, tokbpe_large_pages, tokbpe_prefetch
from .merge cimport Merging
from .pairs cimport NOT_FOUND as NONE
from .seeds cimport set_seeds
from .special cimport as_special_table
from .split cimport NOT_COMPILED, WHOLE
from .table cimport EncodingTable

set_seeds()

# Lists, and arrays of 16 bits, are made of so much text at once, while its ids are in the
# processor's cache.
cdef enum:
    CACHED_GROUP = 1048576  # bytes


cdef enum:
    TEXTS_AHEAD = 16


# What a batch makes: numbers of ids, lists of ids, or an array of them, of 32 or 16 bits.
cdef enum Output:
    COUNTS
    LISTS
    WIDE
    NARROW


# Memory for ids, and how many are in it.
cdef struct Buffer:
    uint32_t *ids
    size_t size, capacity


# What a group has become.
cdef struct Encoded:
    Buffer buffer
    bint is_done


def same(text):
    return text


@cython.final
cdef class Batch(Groups):
    """Documents, the groups that they are encoded in, and what they become."""

    cdef EncodingTable table
    cdef uint32_t[::1] before, behind  # each document
    cdef int output
    cdef size_t *counts  # ids of each part
    cdef Encoded *encoded  # of each group
    cdef Buffer *spare  # which groups were encoded in
    cdef size_t spare_count, spare_capacity
    cdef size_t groups_put  # how many groups are in the results
    cdef bint putting  # whether a thread is about that
    cdef void *ids  # of all documents, one behind the other, if an array is wanted
    cdef size_t size, id_capacity
    cdef list lists  # of ids, if these are wanted
    cdef Merging merging  # which knows where raw text can be cut
    cdef bint named  # whether an error tells which text it is about

    def __cinit__(
        self, texts, EncodingTable table not None, special, int output, before=(), behind=()
    ):
        self.table = table
        self.special = as_special_table(special)
        self.before = np.array(arguments.frame_ids(before, "before"), np.uint32)
        self.behind = np.array(arguments.frame_ids(behind, "behind"), np.uint32)
        self.output = output
        self.owners = list(texts) if type(texts) is list else arguments.each(same, texts, "text")
        self.count = len(self.owners)
        try:
            self.open_documents()
        # Not both at once: Cython's look at several crashes if an exception is lost for want of
        # memory.
        except TypeError:
            arguments.each(arguments.document_bytes, self.owners, "text")  # which names the text
            raise
        except UnicodeEncodeError:
            arguments.each(arguments.document_bytes, self.owners, "text")
            raise
        if output == LISTS:
            self.lists = [None] * <Py_ssize_t> self.count
        self.named = True

    def __dealloc__(self):
        cdef size_t i
        if self.encoded != NULL:
            for i in range(self.group_count):
                free(self.encoded[i].buffer.ids)
        for i in range(self.spare_count):
            free(self.spare[i].ids)
        free(self.encoded)
        free(self.counts)
        free(self.spare)
        free(self.ids)

    cdef int open_documents(self) except -1:
        """Have the bytes of all texts; one thread does this, so texts are asked for ahead."""
        cdef size_t i
        reserve(<void **> &self.documents, &self.capacity, self.count, sizeof(Document))
        for i in range(self.count):
            if i + TEXTS_AHEAD < self.count:
                tokbpe_prefetch(PyList_GET_ITEM(self.owners, i + TEXTS_AHEAD))
            text = <object> PyList_GET_ITEM(self.owners, i)
            owner = open_document(text, &self.documents[i])
            if owner is not text:
                self.owners[i] = owner
            self.total += self.documents[i].size
        return 0

    cdef int run(self, threads) except -1:
        """Encode all."""
        self.merging = Merging(self.table)
        self.merging.begin()
        self.make_groups(
            threads,
            self.table.kind == NOT_COMPILED,
            <size_t> CACHED_GROUP if self.output in (LISTS, NARROW) else SIZE_MAX,
        )
        self.counts = <size_t *> resized(NULL, self.part_count, sizeof(size_t))
        if self.counts == NULL:
            raise MemoryError(f"no memory for {self.part_count} counts")
        self.encoded = <Encoded *> resized(NULL, self.group_count, sizeof(Encoded))
        if self.encoded == NULL:
            raise MemoryError(f"no memory for {self.group_count} groups")
        memset(self.encoded, 0, self.group_count * sizeof(Encoded))
        return self.run_groups()

    # Work

    cdef size_t cut_behind(
        self, const uint8_t *data, size_t first, size_t size, size_t last
    ) noexcept nogil:
        if self.table.kind != WHOLE:
            return safe_cut(data, first + size, last)
        if self.table.takes_whole:  # a part is not to be taken for a piece
            return last
        return first + self.merging.part_end(data + first, size, last - first)

    cdef object begin_work(self):
        cdef Encoding encoding = begin(
            self.table, self.special, self.total // <size_t> self.thread_count)
        encoding.only_counting = self.output == COUNTS
        return encoding

    cdef int do_group(self, worker, size_t number) except -1:
        cdef Encoding encoding = worker
        encoding.group = number + 1
        encoding.failed = &self.failed
        self.lend_buffer(encoding)
        with nogil:
            self.encode_group(encoding, number)
        self.encoded[number].is_done = True
        return self.put_groups()

    cdef object told(self, worker, error):
        """A ValueError names the text."""
        cdef Encoding encoding = worker
        if not (isinstance(error, ValueError) and self.named):
            return error
        told = ValueError(f"text {encoding.document}: {error}")
        told.__cause__ = error
        return told

    cdef int end_work(self, worker) except -1:
        cdef Encoding encoding = worker
        return encoding.close()

    cdef int encode_group(self, Encoding encoding, size_t number) except -1 nogil:
        cdef size_t i, start
        cdef Part *part
        cdef Document *document
        cdef Group group = self.groups[number]
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
                check_narrow(encoding.ids + start, self.counts[i])
        if self.output != COUNTS:
            self.encoded[number].buffer = Buffer(encoding.ids, encoding.size, encoding.capacity)
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
        cdef Encoded *group
        if self.putting:
            return 0
        self.putting = True
        try:
            while self.groups_put < self.group_count and self.encoded[self.groups_put].is_done:
                group = &self.encoded[self.groups_put]
                if self.output == LISTS:
                    self.put_lists(&self.groups[self.groups_put], group.buffer.ids)
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

    cdef int put_lists(self, const Group *group, const uint32_t *ids) except -1:
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
        cdef size_t capacity = self.id_capacity
        if self.group_count == 1 and not narrow:
            self.ids = buffer.ids
            self.size = buffer.size
            buffer.ids = NULL
            return 0
        reserve(
            &self.ids,
            &self.id_capacity,
            max(self.size + buffer.size, self.total // BYTES_FOR_EACH_ID),
            size_of_id(narrow),
        )
        if self.id_capacity != capacity:
            tokbpe_large_pages(self.ids, self.id_capacity * size_of_id(narrow))
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
    if document.size >= 2 * thread_text and arguments.thread_count(threads) > 1:
        batch = Batch([text], table, special, WIDE)
        batch.named = False
        batch.run(threads)
        return batch.array()
    encoding = begin(table, as_special_table(special), document.size)
    try:
        encoding.expect(document.size)
        encode_document(encoding, &document)
        return as_array(<void **> &encoding.ids, encoding.size, False)
    finally:
        if encoding.ids == NULL:  # the array has them, also where it could not be made
            encoding.capacity = 0
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
