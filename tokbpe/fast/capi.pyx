"""The native table: the engine for C and Cython, from any thread without the GIL.

`include/tokbpe.h` tells what each function does, `handles.pyx` what a handle is.
"""

from cpython.exc cimport PyErr_SetObject
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport SIZE_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tokbpe import arguments

from .decode cimport DecodingTable
from .encode cimport Document, Encoding
from .handles cimport (
    LARGEST_TEXT,
    Opened,
    Worker,
    closed,
    entered,
    know_thread,
    leave_thread,
    left,
    taken_slot,
)
from .pairs cimport NOT_FOUND
from .pieces cimport PieceIndex, hash_of_piece, number_of_piece
from .seeds cimport set_seeds

set_seeds()


# What becomes of a result.
cdef enum Output:
    COUNTED
    FITTING  # it is copied to a buffer with room for it
    EXPECTED  # likewise, and has a size that is known


# Errors

cdef int raised() except -1:
    """Go on with the exception that is set."""
    return -1


cdef int status_of_error(size_t *position) noexcept with gil:
    """The status for the exception that is set. One that a signal handler has raised stays set."""
    try:
        raised()
    except arguments.AbsentByte as absent:
        position[0] = absent.position
        return TOKBPE_UNKNOWN_BYTE
    except MemoryError:
        return TOKBPE_NO_MEMORY
    except ValueError:
        return TOKBPE_TOO_LONG
    except BaseException as error:
        other = error
    PyErr_SetObject(type(other), other)
    return TOKBPE_INTERRUPTED


# Opening and closing

cdef int open_tokenizer(PyObject *tokenizer, PyObject *special, tokbpe_handle *handle) noexcept:
    cdef Opened opened
    cdef int status
    if handle != NULL:
        handle[0] = 0
    try:
        if handle == NULL or tokenizer == NULL:
            status = TOKBPE_NULL_POINTER
            raise ValueError("`open` needs a tokenizer and a place for its handle, not NULL")
        status = TOKBPE_NOT_SUPPORTED
        opened = Opened(parts_of(
            <object> tokenizer, None if special == NULL else <object> special))
        handle[0] = taken_slot(<PyObject *> opened)
        if handle[0] == 0:
            raise MemoryError("no memory for a handle more")
        Py_INCREF(opened)
        return TOKBPE_OK
    except MemoryError as error:
        status = TOKBPE_NO_MEMORY
        failure = error
    except BaseException as error:
        failure = error
    PyErr_SetObject(type(failure), failure)
    return status


cdef object parts_of(tokenizer, special):
    """What a tokenizer is made of. Its errors tell what cannot be done."""
    if not hasattr(tokenizer, "_native_parts"):
        raise TypeError(f"`open` takes a Tokenizer, not {arguments.type_name(tokenizer)}")
    return tokenizer._native_parts(() if special is None else special)


cdef int close_handle(tokbpe_handle handle) noexcept nogil:
    return TOKBPE_OK if closed(handle) else TOKBPE_CLOSED


cdef int clear_cache(tokbpe_handle handle) noexcept nogil:
    cdef PyObject *opened = entered(handle, NULL)
    if opened == NULL:
        return TOKBPE_CLOSED
    with gil:
        (<Opened> opened).dismiss()
        (<Opened> opened).table.clear_cache()
    left(opened, NULL)
    return TOKBPE_OK


cdef int method_number(tokbpe_handle handle, int *number) noexcept nogil:
    cdef PyObject *opened
    if number == NULL:
        return TOKBPE_NULL_POINTER
    opened = entered(handle, NULL)
    if opened == NULL:
        return TOKBPE_CLOSED
    number[0] = (<Opened> opened).method
    left(opened, NULL)
    return TOKBPE_OK


cdef int vocabulary_size(tokbpe_handle handle, size_t *size) noexcept nogil:
    cdef PyObject *opened
    if size == NULL:
        return TOKBPE_NULL_POINTER
    opened = entered(handle, NULL)
    if opened == NULL:
        return TOKBPE_CLOSED
    size[0] = (<Opened> opened).size
    left(opened, NULL)
    return TOKBPE_OK


cdef int part_from_thread() noexcept nogil:
    return TOKBPE_OK if leave_thread() else TOKBPE_NOT_SUPPORTED


# Encoding

cdef int encode_size(
    tokbpe_handle handle, const uint8_t *text, size_t size, size_t *count
) noexcept nogil:
    return encoded(handle, text, size, COUNTED, NULL, 0, count)


cdef int encode(
    tokbpe_handle handle, const uint8_t *text, size_t size,
    uint32_t *ids, size_t capacity, size_t *count
) noexcept nogil:
    return encoded(handle, text, size, FITTING, ids, capacity, count)


cdef int encode_copy(
    tokbpe_handle handle, const uint8_t *text, size_t size,
    uint32_t *ids, size_t expected, size_t *count
) noexcept nogil:
    return encoded(handle, text, size, EXPECTED, ids, expected, count)


cdef int encoded(
    tokbpe_handle handle, const uint8_t *text, size_t size, Output output,
    uint32_t *ids, size_t room, size_t *count
) noexcept nogil:
    cdef Worker worker = Worker(NULL, 0)
    cdef PyObject *opened
    cdef int status
    if count == NULL:
        return TOKBPE_NULL_POINTER
    count[0] = 0
    if (text == NULL and size) or (ids == NULL and room):
        return TOKBPE_NULL_POINTER
    opened = entered(handle, &worker)
    if opened == NULL:
        return TOKBPE_CLOSED
    know_thread()
    status = prepared(opened, &worker, size)
    if status == TOKBPE_OK:
        status = encoded_by(worker.encoding, text, size, output, ids, room, count)
    left(opened, &worker)
    return status


cdef int prepared(PyObject *opened, Worker *worker, size_t size) noexcept nogil:
    """Have a worker for a text of so many bytes."""
    if worker.encoding == NULL or worker.prepared < min(size, <size_t> LARGEST_TEXT):
        return prepared_now(opened, worker, size)
    return TOKBPE_OK


cdef int prepared_now(PyObject *opened, Worker *worker, size_t size) noexcept with gil:
    try:
        (<Opened> opened).prepare(worker, size)
        return TOKBPE_OK
    except MemoryError:
        return TOKBPE_NO_MEMORY


ctypedef int (*Adding)(Encoding, const Document *, bint) noexcept nogil


cdef int add_text(Encoding encoding, const Document *document, bint is_counted) except -1 nogil:
    encoding.size = encoding.counted = encoding.unpaused = 0
    encoding.only_counting = is_counted
    if not is_counted:
        encoding.expect(document.size)
    encoding.add_document(document)
    encoding.enough()
    return 0


cdef int encoded_by(
    PyObject *worker, const uint8_t *text, size_t size, Output output,
    uint32_t *ids, size_t room, size_t *count
) noexcept nogil:
    cdef Document document = Document(text, size, False)
    cdef int status = TOKBPE_OK
    # As what raises nothing: the exception stays set.
    if (<Adding> add_text)(<Encoding> worker, &document, output == COUNTED) < 0:
        status = status_of_error(count)
    elif output == COUNTED:
        count[0] = (<Encoding> worker).counted
    else:
        count[0] = (<Encoding> worker).size
        status = status_of_size(output, count[0], room)
        if status == TOKBPE_OK and count[0]:
            memcpy(ids, (<Encoding> worker).ids, count[0] * sizeof(uint32_t))
    (<Encoding> worker).shrink()
    return status


cdef inline int status_of_size(Output output, size_t size, size_t room) noexcept nogil:
    if output == EXPECTED and size != room:
        return TOKBPE_CHANGED_SIZE
    if output == FITTING and size > room:
        return TOKBPE_SMALL_BUFFER
    return TOKBPE_OK


# Decoding

cdef int decode_size(
    tokbpe_handle handle, const uint32_t *ids, size_t count, size_t *size
) noexcept nogil:
    return decoded(handle, ids, count, COUNTED, NULL, 0, size)


cdef int decode(
    tokbpe_handle handle, const uint32_t *ids, size_t count,
    uint8_t *bytes, size_t capacity, size_t *size
) noexcept nogil:
    return decoded(handle, ids, count, FITTING, bytes, capacity, size)


cdef int decode_copy(
    tokbpe_handle handle, const uint32_t *ids, size_t count,
    uint8_t *bytes, size_t expected, size_t *size
) noexcept nogil:
    return decoded(handle, ids, count, EXPECTED, bytes, expected, size)


cdef int decoded(
    tokbpe_handle handle, const uint32_t *ids, size_t count, Output output,
    uint8_t *bytes, size_t room, size_t *size
) noexcept nogil:
    cdef PyObject *opened
    cdef int status
    if size == NULL:
        return TOKBPE_NULL_POINTER
    size[0] = 0
    if (ids == NULL and count) or (bytes == NULL and room):
        return TOKBPE_NULL_POINTER
    opened = entered(handle, NULL)
    if opened == NULL:
        return TOKBPE_CLOSED
    status = size_of_bytes(<Opened> opened, ids, count, size)
    if status == TOKBPE_OK:
        status = status_of_size(output, size[0], room)
    if status == TOKBPE_OK and output != COUNTED:
        copy_bytes((<Opened> opened).decoding, ids, count, bytes, size[0])
    left(opened, NULL)
    return status


cdef inline size_t entry_of(DecodingTable table, uint32_t id) noexcept nogil:
    """Where the bytes of an id stand in a table; SIZE_MAX if there are none."""
    cdef size_t entry = table.entry(id)
    return entry if table.known[entry] else SIZE_MAX


cdef inline const uint8_t *entry_bytes(
    DecodingTable table, size_t entry, size_t *size
) noexcept nogil:
    cdef uint64_t start = table.start(entry)
    size[0] = <size_t> (table.ends[entry] - start)
    return table.blob + start


cdef int size_of_bytes(
    Opened opened, const uint32_t *ids, size_t count, size_t *size
) noexcept nogil:
    """How many bytes ids have; or the position of the first unknown one."""
    cdef const uint8_t *bytes
    cdef size_t i, entry, part
    cdef size_t total = 0
    cdef int last = -1  # byte
    for i in range(count):
        entry = entry_of(opened.decoding, ids[i])
        if entry == SIZE_MAX:
            size[0] = i
            return TOKBPE_UNKNOWN_ID
        bytes = entry_bytes(opened.decoding, entry, &part)
        if part:
            last = bytes[part - 1]
        total += part
    if last >= 0 and last == opened.marker and not is_spelled(opened, ids[count - 1]):
        total -= 1
    size[0] = total
    return TOKBPE_OK


cdef inline bint is_spelled(Opened opened, uint32_t id) noexcept nogil:
    return opened.is_spelled[opened.decoding.entry(id)]


cdef void copy_bytes(
    DecodingTable table, const uint32_t *ids, size_t count,
    uint8_t *bytes,  # OUT
    size_t size,
) noexcept nogil:
    """The first `size` bytes of ids. More are not written, whatever another thread may write to
    the ids meanwhile."""
    cdef const uint8_t *piece
    cdef size_t i, entry, part
    cdef size_t done = 0
    for i in range(count):
        entry = entry_of(table, ids[i])
        if entry == SIZE_MAX:
            break
        piece = entry_bytes(table, entry, &part)
        part = min(part, size - done)
        if part:
            memcpy(bytes + done, piece, part)
        done += part


# The vocabulary

cdef int piece_of_id(
    tokbpe_handle handle, uint32_t id, const uint8_t **bytes, size_t *size
) noexcept nogil:
    cdef PyObject *opened
    cdef size_t entry
    if bytes == NULL or size == NULL:
        return TOKBPE_NULL_POINTER
    bytes[0] = NULL
    size[0] = 0
    opened = entered(handle, NULL)
    if opened == NULL:
        return TOKBPE_CLOSED
    entry = entry_of((<Opened> opened).decoding, id)
    if entry != SIZE_MAX:
        bytes[0] = entry_bytes((<Opened> opened).decoding, entry, size)
    left(opened, NULL)
    return TOKBPE_UNKNOWN_ID if entry == SIZE_MAX else TOKBPE_OK


cdef int id_of_piece(
    tokbpe_handle handle, const uint8_t *bytes, size_t size, uint32_t *id
) noexcept nogil:
    cdef PyObject *opened
    cdef const PieceIndex *pieces
    cdef uint32_t number
    if (bytes == NULL and size) or id == NULL:
        return TOKBPE_NULL_POINTER
    opened = entered(handle, NULL)
    if opened == NULL:
        return TOKBPE_CLOSED
    pieces = &(<Opened> opened).pieces
    number = number_of_piece(pieces, hash_of_piece(bytes, size), bytes, size)
    if number != NOT_FOUND:
        id[0] = (<Opened> opened).piece_ids[number]
    left(opened, NULL)
    return TOKBPE_UNKNOWN_PIECE if number == NOT_FOUND else TOKBPE_OK


# The table

cdef const char *status_text(int status) noexcept nogil:
    if status == TOKBPE_OK:
        return b"no error"
    if status == TOKBPE_SMALL_BUFFER:
        return b"the buffer is too small"
    if status == TOKBPE_CHANGED_SIZE:
        return b"the size is not the one that was expected"
    if status == TOKBPE_CLOSED:
        return b"the handle is closed, or never was one"
    if status == TOKBPE_WRONG_VERSION:
        return b"the installed tokbpe has another version of the native table, or none"
    if status == TOKBPE_UNKNOWN_BYTE:
        return b"the text has a byte that is not in the vocabulary"
    if status == TOKBPE_UNKNOWN_ID:
        return b"there is an id that is not in the vocabulary"
    if status == TOKBPE_UNKNOWN_PIECE:
        return b"these bytes are no piece of the vocabulary"
    if status == TOKBPE_NO_MEMORY:
        return b"there is not enough memory"
    if status == TOKBPE_NOT_SUPPORTED:
        return b"this cannot be done by the compiled engine"
    if status == TOKBPE_NULL_POINTER:
        return b"an argument is NULL"
    if status == TOKBPE_TOO_LONG:
        return b"the text has a piece that is too long to be encoded"
    if status == TOKBPE_INTERRUPTED:
        return b"a signal handler has raised an exception"
    return b"no status of this version"


cdef tokbpe_table TABLE
TABLE.size = sizeof(tokbpe_table)
TABLE.version = TOKBPE_VERSION
TABLE.status_text = status_text
TABLE.open = <int (*)(object, object, tokbpe_handle *) except *> open_tokenizer
TABLE.close = close_handle
TABLE.method = method_number
TABLE.vocab_size = vocabulary_size
TABLE.encode_size = encode_size
TABLE.encode = encode
TABLE.encode_copy = encode_copy
TABLE.decode_size = decode_size
TABLE.decode = decode
TABLE.decode_copy = decode_copy
TABLE.piece = piece_of_id
TABLE.piece_id = id_of_piece
TABLE.clear_cache = clear_cache
TABLE.leave_thread = part_from_thread

_table = PyCapsule_New(&TABLE, TOKBPE_CAPSULE, NULL)
