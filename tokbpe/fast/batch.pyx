"""Many documents at once, or one large one: to arrays or lists, by one thread or several.

They are encoded in groups (`groups.pxd`). The results stand in the order of the documents, whoever
made them.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

import numpy as np

from tokbpe import arguments

from .encode cimport (
    Document,
    Encoding,
    as_list,
    begin,
    encode_document,
    open_document,
)
from .groups cimport Group, Groups, Part, safe_cut, thread_text
from .memory cimport reserve, resized
from .merge cimport Merging
from .pairs cimport NOT_FOUND as NONE
from .special cimport as_special_table
from .split cimport NOT_COMPILED, WHOLE
from .table cimport EncodingTable

# Larger arrays keep the memory that the ids were made in; smaller ones are copied.
cdef enum:
    COPIED_IDS = 4096

# The ids of a group.
cdef struct Encoded:
    uint32_t *ids
    size_t size


@cython.final
cdef class Ids:
    """Memory with ids, which an array stands on."""

    cdef uint32_t *ids
    cdef Py_ssize_t[1] shape, strides

    def __dealloc__(self):
        free(self.ids)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        self.strides[0] = sizeof(uint32_t)
        buffer.buf = self.ids
        buffer.format = b"I"
        buffer.internal = NULL
        buffer.itemsize = sizeof(uint32_t)
        buffer.len = self.shape[0] * <Py_ssize_t> sizeof(uint32_t)
        buffer.ndim = 1
        buffer.obj = self
        buffer.readonly = False
        buffer.shape = self.shape
        buffer.strides = self.strides
        buffer.suboffsets = NULL


cdef object as_array(uint32_t **ids, size_t size):
    """An array of ids; it takes their memory over, or copies them."""
    cdef Ids owner
    cdef uint32_t[::1] view
    cdef void *shrunk
    if size <= COPIED_IDS:
        array = np.empty(size, np.uint32)
        if size:
            view = array
            memcpy(&view[0], ids[0], size * sizeof(uint32_t))
        return array
    shrunk = resized(ids[0], size, sizeof(uint32_t))
    owner = Ids()
    owner.ids = ids[0] if shrunk == NULL else <uint32_t *> shrunk
    owner.shape[0] = size
    ids[0] = NULL
    return np.asarray(owner)


def same(text):
    return text


@cython.final
cdef class Batch(Groups):
    """Documents, the groups that they are encoded in, and what they become."""

    cdef EncodingTable table
    cdef uint32_t[::1] before, behind  # each document
    cdef bint only_counting
    cdef size_t *counts  # ids of each part
    cdef Encoded *encoded  # of each group
    cdef Merging merging  # which knows where raw text can be cut
    cdef bint named  # whether an error tells which text it is about

    def __cinit__(self, texts, EncodingTable table not None, special, before=(), behind=()):
        cdef size_t i
        self.table = table
        self.special = as_special_table(special)
        self.before = np.array(arguments.frame_ids(before, "before"), np.uint32)
        self.behind = np.array(arguments.frame_ids(behind, "behind"), np.uint32)
        cdef list given = texts if type(texts) is list else arguments.each(same, texts, "text")
        self.count = len(given)
        reserve(<void **> &self.documents, &self.capacity, self.count, sizeof(Document))
        self.owners = []
        try:
            for i in range(self.count):
                self.owners.append(open_document(given[i], &self.documents[i]))
                self.total += self.documents[i].size
        except (TypeError, UnicodeEncodeError):
            arguments.each(arguments.document_bytes, given, "text")  # which names the text
            raise
        self.named = True

    def __dealloc__(self):
        cdef size_t i
        if self.encoded != NULL:
            for i in range(self.group_count):
                free(self.encoded[i].ids)
        free(self.encoded)
        free(self.counts)

    cdef int run(self, threads) except -1:
        """Encode all."""
        self.merging = Merging(self.table)
        self.merging.begin()
        self.make_groups(threads, self.table.kind == NOT_COMPILED)
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
        encoding.only_counting = self.only_counting
        return encoding

    cdef int do_group(self, worker, size_t number) except -1:
        cdef Encoding encoding = worker
        encoding.group = number + 1
        encoding.failed = &self.failed
        with nogil:
            self.encode_group(encoding, number)
        return 0

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
        cdef Encoded *encoded = &self.encoded[number]
        cdef size_t size = 0
        for i in range(group.first, group.last):
            size += self.parts[i].last - self.parts[i].first
        if not self.only_counting:
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
        encoded.size = encoding.size
        if not self.only_counting:
            encoded.ids = encoding.ids
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

    cdef list lists(self):
        """The ids of each document."""
        cdef list lists = [None] * <Py_ssize_t> self.count
        cdef Group *group
        cdef const uint32_t *ids
        cdef size_t number, i
        for number in range(self.group_count):
            group = &self.groups[number]
            ids = self.encoded[number].ids
            for i in range(group.first, group.last):
                found = as_list(ids, self.counts[i])
                ids += self.counts[i]
                if lists[self.parts[i].document] is None:
                    lists[self.parts[i].document] = found
                else:
                    lists[self.parts[i].document] += found
            free(self.encoded[number].ids)
            self.encoded[number].ids = NULL
        return lists

    cdef object flat(self, bint narrow):
        """The ids of all documents, one behind the other."""
        cdef size_t i, total = 0
        cdef Encoded *encoded
        cdef uint32_t[::1] wide
        cdef uint16_t[::1] half
        if self.group_count == 1 and not narrow:
            return as_array(&self.encoded[0].ids, self.encoded[0].size)
        for i in range(self.group_count):
            total += self.encoded[i].size
        ids = np.empty(total, np.uint16 if narrow else np.uint32)
        if total == 0:
            return ids
        if narrow:
            half = ids
        else:
            wide = ids
        total = 0
        for i in range(self.group_count):
            encoded = &self.encoded[i]
            if narrow:
                narrow_ids(&half[0] + total, encoded.ids, encoded.size)
            elif encoded.size:
                memcpy(&wide[0] + total, encoded.ids, encoded.size * sizeof(uint32_t))
            total += encoded.size
            PyErr_CheckSignals()
        return ids


cdef int narrow_ids(
    uint16_t *out,  # OUT
    const uint32_t *ids,  # IN
    size_t size,
) except -1:
    """Write ids as 16-bit numbers. All are looked at before the first is written."""
    cdef size_t i
    cdef uint32_t any_of = 0
    for i in range(size):
        any_of |= ids[i]
    if any_of >> 16:
        for i in range(size):
            if ids[i] >> 16:
                raise ValueError(f"id {ids[i]} is too large for uint16, which holds 0 to 65535")
    for i in range(size):
        out[i] = <uint16_t> ids[i]
    return 0


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
        batch = Batch([text], table, special)
        batch.named = False
        batch.run(threads)
        return batch.flat(False)
    encoding = begin(table, as_special_table(special), document.size)
    try:
        encoding.expect(document.size)
        encode_document(encoding, &document)
        array = as_array(&encoding.ids, encoding.size)
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
    cdef Batch batch = Batch(texts, table, special, before, behind)
    batch.run(threads)
    return batch.lists()


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
    cdef Batch batch = Batch(texts, table, special, before, behind)
    narrow = arguments.id_dtype(dtype) == np.uint16
    batch.run(threads)
    return batch.flat(narrow), batch.offsets()


def count_batch(texts, EncodingTable table not None, special=None, *, threads=None):
    """How many ids each document has, `uint64` [n]."""
    cdef Batch batch = Batch(texts, table, special)
    batch.only_counting = True
    batch.run(threads)
    return np.diff(batch.offsets())
