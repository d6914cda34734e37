"""Scanning bytes for pieces without Python, for the other extensions.

    cdef Scanner scanner
    open_scanner(&scanner, kind, data, size, is_text)
    while next_piece(&scanner, &start, &end):
        ...  # data[start:end] is a piece

Or many pieces at once, which is faster:

    count = next_ends(&scanner, ends, most)  # the first begins at scanner.position as it was

A scanner only reads its bytes. It belongs to one thread; any number of them can run at once.
"""

from libc.stdint cimport uint8_t

# What cuts the text.
cdef enum Kind:
    NOT_COMPILED = -1  # there is no scanner for the pattern: use `tokbpe.reference.split`
    WHOLE = 0  # no pattern: a document is one piece
    GPT2
    CL100K
    LLAMA3
    QWEN2
    O200K
    DEEPSEEK_V3
    WORDS


cdef struct Scanner:
    int kind
    const uint8_t *data
    size_t size
    size_t position  # where the next piece is looked for
    size_t text_end  # from `position` to here the bytes are known to be UTF-8,
    bint text_ended  # and here they end to be: the pattern sees the end of the text


cdef int scanner_kind(pattern) except -2
cdef void open_scanner(
    Scanner *scanner, int kind, const uint8_t *data, size_t size, bint is_text
) noexcept nogil
cdef size_t next_ends(Scanner *scanner, size_t *ends, size_t most) noexcept nogil
cdef bint next_piece(Scanner *scanner, size_t *start, size_t *end) noexcept nogil
cdef bint extend_text(Scanner *scanner, size_t most) noexcept nogil


# How many bytes the UTF-8 character at p has, 0 if there is none; `size` bytes can be read.
cdef size_t utf8_width(const uint8_t *p, size_t size) noexcept nogil
