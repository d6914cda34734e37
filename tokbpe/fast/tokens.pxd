"""The tokens of a training: their lengths in cells, and their strings where these are compared."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from .memory cimport free, reserve


cdef struct Tokens:
    size_t count, base_count
    uint32_t *lengths  # in cells, since the cells were last made compact
    size_t length_capacity
    bint with_strings
    uint8_t *strings  # of all tokens, one after another
    uint64_t *string_ends
    size_t string_size, string_capacity, end_capacity


cdef inline void close_tokens(Tokens *tokens) noexcept nogil:
    free(tokens.lengths)
    free(tokens.strings)
    free(tokens.string_ends)


cdef inline int add_base(Tokens *tokens, list strings, bint with_strings) except -1:
    tokens.with_strings = with_strings
    for string in strings:
        add_token(tokens, 1)
        if with_strings:
            add_string(tokens, <const uint8_t *> PyBytes_AS_STRING(string),
                       PyBytes_GET_SIZE(string))
            end_string(tokens)
    tokens.base_count = tokens.count
    return 0


cdef inline int add_joined(Tokens *tokens, uint32_t left, uint32_t right) except -1 nogil:
    """The token that a merge makes."""
    add_token(tokens, tokens.lengths[left] + tokens.lengths[right])
    if tokens.with_strings:
        copy_string(tokens, left)
        copy_string(tokens, right)
        end_string(tokens)
    return 0


cdef inline int add_token(Tokens *tokens, uint32_t length) except -1 nogil:
    reserve(<void **> &tokens.lengths, &tokens.length_capacity,
            tokens.count + 1, sizeof(uint32_t))
    tokens.lengths[tokens.count] = length
    tokens.count += 1
    return 0


cdef inline int end_lengths(Tokens *tokens) except -1 nogil:
    """Put the length of a separator behind those of all tokens."""
    add_token(tokens, 1)
    tokens.count -= 1
    return 0


cdef inline int add_string(Tokens *tokens, const uint8_t *string, size_t size) except -1 nogil:
    if size == 0:
        return 0  # there may be no memory yet
    reserve(<void **> &tokens.strings, &tokens.string_capacity, tokens.string_size + size, 1)
    memcpy(tokens.strings + tokens.string_size, string, size)
    tokens.string_size += size
    return 0


cdef inline int copy_string(Tokens *tokens, uint32_t token) except -1 nogil:
    """Append the string of a token to the string of the token in the making."""
    cdef uint64_t start = tokens.string_ends[token - 1] if token else 0
    cdef size_t size = tokens.string_ends[token] - start
    # Room first, for the string to be copied lies in the memory that may move.
    reserve(<void **> &tokens.strings, &tokens.string_capacity, tokens.string_size + size, 1)
    return add_string(tokens, tokens.strings + start, size)


cdef inline int end_string(Tokens *tokens) except -1 nogil:
    reserve(<void **> &tokens.string_ends, &tokens.end_capacity, tokens.count, sizeof(uint64_t))
    tokens.string_ends[tokens.count - 1] = tokens.string_size
    return 0


cdef inline int compare_strings(const Tokens *tokens, uint32_t x, uint32_t y) noexcept nogil:
    cdef uint64_t x_start = tokens.string_ends[x - 1] if x else 0
    cdef uint64_t y_start = tokens.string_ends[y - 1] if y else 0
    cdef uint64_t x_size = tokens.string_ends[x] - x_start
    cdef uint64_t y_size = tokens.string_ends[y] - y_start
    cdef int order = memcmp(tokens.strings + x_start, tokens.strings + y_start,
                            min(x_size, y_size))
    if order == 0 and x_size != y_size:
        return 1 if x_size > y_size else -1
    return order
