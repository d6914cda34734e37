"""Reading pieces, compiled: the twins of `read_ranks` and `cut_pieces` in `tokbpe.ranks`.

What is as it should be is read here, rank files as tiktoken writes them: in the order of the
ranks. All else is left to the twins, which know how to name what is wrong.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memchr, memcpy, memset

import numpy as np

from tokbpe import ranks

from .memory cimport free, resized
from .pieces cimport (
    PieceIndex,
    add_piece,
    close_piece_index,
    open_piece_index,
    piece_size,
)
from .seeds cimport set_seeds

set_seeds()

cdef enum:
    NO_DIGIT = 64
    LONGEST_RANK = 8  # digits
    HIGHEST_RANK = 0xFFFFFF
    MOST_FILE_GAPS = 0x100000

cdef uint8_t[256] DIGITS  # of base64, by character


cdef int fill_digits() except -1:
    cdef size_t value, character
    memset(DIGITS, NO_DIGIT, sizeof(DIGITS))
    for value, character in enumerate(
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    ):
        DIGITS[character] = <uint8_t> value
    return 0


fill_digits()


def read_ranks(data):
    """The pieces of a rank file by their ranks; None where no piece has the rank.

    The twin of `tokbpe.ranks.read_ranks`, which says what is wrong with a file.
    """
    cdef Reading reading
    if type(data) is bytes:
        reading = Reading()
        if (
            reading.read_lines(data)
            and reading.has_all_bytes()
            and reading.size - reading.count <= <size_t> MOST_FILE_GAPS
        ):
            return reading.result()
    return ranks.read_ranks(data)


def cut_pieces(blob, sizes):
    """The pieces that lie one after another in a blob, by their sizes; None for the size 0.

    The twin of `tokbpe.ranks.cut_pieces`.
    """
    cdef Reading reading
    if type(blob) is bytes and type(sizes) is np.ndarray and sizes.dtype == np.int32:
        reading = Reading()
        if reading.cut(blob, np.ascontiguousarray(sizes)):
            return reading.result()
    return ranks.cut_pieces(blob, sizes)


cdef class Reading:
    """Pieces that have been read, with their ids, which rise."""

    cdef PieceIndex pieces
    cdef uint32_t *ids  # by number in `pieces`
    cdef size_t count
    cdef size_t size  # the highest id + 1

    def __dealloc__(self):
        close_piece_index(&self.pieces)
        free(self.ids)

    cdef int open(self, size_t most, size_t most_bytes) except -1:
        """Make room for so many pieces and bytes."""
        open_piece_index(&self.pieces, most, most_bytes)
        self.pieces.starts[0] = 0
        self.ids = <uint32_t *> resized(NULL, most, sizeof(uint32_t))
        if self.ids == NULL:
            raise MemoryError(f"no memory for {most} pieces")
        return 0

    cdef inline bint add(self, size_t size, size_t id) noexcept nogil:
        """Add a piece of so many bytes, which stand behind the others; False if it is there."""
        self.pieces.starts[self.count + 1] = self.pieces.starts[self.count] + size
        self.ids[self.count] = <uint32_t> id
        self.count += 1
        self.size = id + 1
        return add_piece(&self.pieces, self.count - 1)

    cdef bint read_lines(self, bytes data) except -1:
        """Read a rank file; False if anything in it is not as it mostly is."""
        cdef const uint8_t *text = <const uint8_t *> PyBytes_AS_STRING(data)
        cdef const uint8_t *end = text + <size_t> len(data)
        cdef const uint8_t *line = text
        cdef const uint8_t *line_end
        cdef size_t size, rank
        self.open(data.count(b"\n") + 1, <size_t> len(data) // 4 * 3)
        with nogil:
            while line < end:
                line_end = <const uint8_t *> memchr(line, 10, <size_t> end - <size_t> line)
                if line_end == NULL:
                    line_end = end
                size = decode_piece(
                    &line, line_end, self.pieces.bytes + self.pieces.starts[self.count])
                if size == 0 or not read_rank(line, line_end, &rank) or rank < self.size:
                    return False
                if not self.add(size, rank):
                    return False
                line = line_end + 1
        return True

    cdef bint cut(self, bytes blob, const int32_t[::1] sizes) except -1:
        """Cut a blob; False where the sizes do not fit it, or a piece stands twice."""
        cdef size_t id
        cdef size_t total = 0
        self.open(sizes.shape[0], len(blob))
        memcpy(self.pieces.bytes, PyBytes_AS_STRING(blob), len(blob))
        for id in range(<size_t> sizes.shape[0]):
            if sizes[id] < 0:
                return False
            total += <size_t> sizes[id]
            if total > <size_t> len(blob):
                return False
            if sizes[id] and not self.add(<size_t> sizes[id], id):
                return False
        self.size = sizes.shape[0]
        return total == <size_t> len(blob)

    cdef bint has_all_bytes(self) noexcept:
        cdef size_t number
        cdef size_t found = 0
        for number in range(self.count):
            found += piece_size(&self.pieces, number) == 1
        return found == 256

    cdef object result(self):
        cdef size_t number, id
        cdef const char *piece
        cdef list found = [None] * <Py_ssize_t> self.size
        for number in range(self.count):
            id = self.ids[number]
            piece = <const char *> self.pieces.bytes + self.pieces.starts[number]
            found[id] = PyBytes_FromStringAndSize(piece, piece_size(&self.pieces, number))
        return ranks.Pieces(found)


cdef inline size_t decode_piece(
    const uint8_t **line,  # IN, OUT: behind the space that follows
    const uint8_t *end,
    uint8_t *piece,  # OUT
) noexcept nogil:
    """Decode base64 in its one right form, and the space behind it; the size, 0 for all else."""
    cdef const uint8_t *p = line[0]
    cdef size_t size = 0
    cdef uint32_t a, b, c, d
    while p + 4 < end:
        a, b, c, d = DIGITS[p[0]], DIGITS[p[1]], DIGITS[p[2]], DIGITS[p[3]]
        if a == NO_DIGIT or b == NO_DIGIT:
            return 0
        piece[size] = <uint8_t> (a << 2 | b >> 4)
        if c == NO_DIGIT:
            if p[2] != b"=" or p[3] != b"=" or b & 15:
                return 0
            size += 1
        else:
            piece[size + 1] = <uint8_t> ((b << 4 | c >> 2) & 0xFF)
            if d == NO_DIGIT:
                if p[3] != b"=" or c & 3:
                    return 0
                size += 2
            else:
                piece[size + 2] = <uint8_t> ((c << 6 | d) & 0xFF)
                size += 3
        p += 4
        if p[0] == b" ":
            line[0] = p + 1
            return size
        if c == NO_DIGIT or d == NO_DIGIT:
            return 0
    return 0


cdef inline bint read_rank(const uint8_t *line, const uint8_t *end, size_t *rank) noexcept nogil:
    """Read the digits that are left of a line."""
    cdef size_t digits = 0
    rank[0] = 0
    while line < end:
        if digits == LONGEST_RANK or line[0] < 48 or line[0] > 57:
            return False
        rank[0] = rank[0] * 10 + (line[0] - 48)
        digits += 1
        line += 1
    return digits > 0 and rank[0] <= HIGHEST_RANK
