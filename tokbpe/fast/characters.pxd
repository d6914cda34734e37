"""Characters next to a place in UTF-8, and sets of characters, as a plain struct with free
functions.

Looking up from several threads is safe.
"""

from libc.stdint cimport uint8_t, uint32_t

from .memory cimport free, resized
from .split cimport utf8_width


cdef struct CharacterSet:
    uint32_t *bounds  # where runs of members begin and end, in rising order
    size_t count


cdef inline int open_character_set(CharacterSet *members, tuple ranges) except -1:
    """A set of code points, given as `tokbpe.unicode.ranges` gives them."""
    cdef uint32_t first, last
    members.count = 0
    members.bounds = <uint32_t *> resized(NULL, 2 * len(ranges), sizeof(uint32_t))
    if members.bounds == NULL:
        raise MemoryError(f"no memory for {len(ranges)} ranges of characters")
    for first, last in ranges:
        members.bounds[members.count] = first
        members.bounds[members.count + 1] = last + 1
        members.count += 2
    return 0


cdef inline void close_character_set(CharacterSet *members) noexcept nogil:
    free(members.bounds)
    members.bounds = NULL


cdef inline bint has_character(
    const CharacterSet *members, const uint8_t *p, size_t width
) noexcept nogil:
    """Whether the UTF-8 character of so many bytes is a member; no bytes are no character."""
    cdef size_t low = 0
    cdef size_t high = members.count
    cdef size_t middle
    cdef uint32_t code
    if width == 0:
        return False
    code = code_point(p, width)
    while low < high:
        middle = (low + high) // 2
        if members.bounds[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low % 2 == 1


cdef inline size_t width_before(const uint8_t *data, size_t place, size_t first) noexcept nogil:
    """How many bytes the character has that ends at a place and begins at `first` or behind;
    0 if there is none."""
    cdef size_t width
    for width in range(1, min(<size_t> 4, place - first) + 1):
        if utf8_width(data + (place - width), width) == width:
            return width
    return 0


cdef inline size_t width_behind(const uint8_t *data, size_t place, size_t size) noexcept nogil:
    """How many bytes the character has that begins at a place; 0 if there is none."""
    return utf8_width(data + place, size - place) if place < size else 0


cdef inline uint32_t code_point(const uint8_t *p, size_t width) noexcept nogil:
    """The UTF-8 character of so many bytes."""
    cdef size_t i
    cdef uint32_t code = p[0] if width == 1 else p[0] & (0x7F >> width)
    for i in range(1, width):
        code = code << 6 | p[i] & 0x3F
    return code
