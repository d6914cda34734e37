"""Scanners that are exact for all texts and find one piece at a time.

They look at where a piece begins and tell where it ends, as the pattern would: the alternatives
are tried in their order, and what a regular expression finds by going back is told from where
the runs of its classes end. A run that is read further than its piece reaches is read again for
the next pieces, at most twice, so the time is linear.
"""

from libc.stdint cimport uint8_t

from .split cimport CL100K, DEEPSEEK_V3, GPT2, LLAMA3, O200K, QWEN2, WORDS


cdef extern from "scan.h":
    const uint8_t *tokbpe_capitalized_end(const uint8_t *p, const uint8_t *end) noexcept nogil
    const uint8_t *tokbpe_contraction_end(
        const uint8_t *p, const uint8_t *end, bint any_case
    ) noexcept nogil


cdef extern from "scan_classes.h":
    enum:
        SPACE "TOKBPE_SPACE"
        LETTER "TOKBPE_LETTER"
        NUMBER "TOKBPE_NUMBER"
        OTHER "TOKBPE_OTHER"
        UPPER "TOKBPE_UPPER"
        LOWER "TOKBPE_LOWER"
        NEWLINE "TOKBPE_NEWLINE"
        BREAK "TOKBPE_BREAK"
    uint8_t[0x110000] tokbpe_classes
    uint8_t[0x110000] tokbpe_deepseek_classes
    const uint8_t *read_class "tokbpe_read_class"(
        const uint8_t *p, uint8_t *found
    ) noexcept nogil
    const uint8_t *run_end "tokbpe_run_end"(
        const uint8_t *p, const uint8_t *end, uint8_t classes
    ) noexcept nogil
    const uint8_t *letters_end "tokbpe_letters_end"(
        const uint8_t *p, const uint8_t *end
    ) noexcept nogil
    const uint8_t *read_deepseek "tokbpe_read_deepseek"(
        const uint8_t *p, uint8_t *found
    ) noexcept nogil


# The classes of characters for deepseek_v3, beside SPACE. Numbers are of none: they are cut out
# first, so what stands before them sees the end of the text. Chinese and Japanese are cut out
# second and have classes of their own.
cdef enum:
    WORDLIKE = 2  # L, M
    SIGN = 4  # P, S
    UNCOVERED = 8  # C, which its third regex matches before a word only
    CHINESE_WORDLIKE = 16
    CHINESE_SIGN = 32
    CHINESE_UNCOVERED = 64
    TO_CHINESE = 3  # by so much a class is shifted


# Patterns: where the piece that begins at p ends. The text goes up to `end`.


cdef inline const uint8_t *piece_end(
    int kind, const uint8_t *p, const uint8_t *end
) noexcept nogil:
    if kind == CL100K or kind == LLAMA3 or kind == QWEN2:
        return cl100k_end(kind, p, end)
    if kind == O200K:
        return o200k_end(p, end)
    if kind == DEEPSEEK_V3:
        return deepseek_end(p, end)
    if kind == GPT2:
        return gpt2_end(p, end)
    if kind == WORDS:
        return word_end(p, end)
    return end


cdef inline const uint8_t *gpt2_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    cdef uint8_t flags, following
    cdef const uint8_t *after
    if p[0] == b" " and is_ascii_letter(p + 1, end):
        return letters_end(p + 2, end)
    after = tokbpe_contraction_end(p, end, False)
    if after != p:
        return after
    after = read_class(p, &flags)
    if p[0] == b" " and after < end:
        read_class(after, &following)
        if not following & SPACE:
            flags = following
    if flags & SPACE:
        return spaces_end(GPT2, p, end)
    if flags & LETTER:
        return letters_end(after, end)
    return run_end(after, end, flags & (LETTER | NUMBER | OTHER))


cdef inline const uint8_t *cl100k_end(
    int kind, const uint8_t *p, const uint8_t *end
) noexcept nogil:
    """For cl100k, llama3 and qwen2."""
    cdef uint8_t flags, following = 0
    cdef const uint8_t *after
    if p[0] == b" " and is_ascii_letter(p + 1, end):
        return letters_end(p + 2, end)
    after = tokbpe_contraction_end(p, end, True)
    if after != p:
        return after
    after = read_class(p, &flags)
    if flags & LETTER:
        return letters_end(after, end)
    if flags & NUMBER:
        return after if kind == QWEN2 else numbers_end(after, end)
    if after < end:
        read_class(after, &following)
    if following & LETTER and not flags & NEWLINE:
        return letters_end(after, end)
    if flags & OTHER or p[0] == b" " and following & OTHER:
        return run_end(run_end(after, end, OTHER), end, NEWLINE)
    return spaces_end(kind, p, end)


cdef inline const uint8_t *o200k_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    cdef uint8_t flags, following = 0
    cdef const uint8_t *after
    if p[0] == b" " and is_ascii_letter(p + 1, end):
        return tokbpe_contraction_end(cased_end(p + 1, end), end, True)
    after = read_class(p, &flags)
    if flags & (UPPER | LOWER):
        return tokbpe_contraction_end(cased_end(p, end), end, True)
    if flags & NUMBER:
        return numbers_end(after, end)
    if after < end:
        read_class(after, &following)
    if following & (UPPER | LOWER) and not flags & NEWLINE:
        return tokbpe_contraction_end(cased_end(after, end), end, True)
    if flags & OTHER or p[0] == b" " and following & OTHER:
        after = run_end(after, end, OTHER)
        while after < end and (after[0] == b"/" or after[0] == b"\n" or after[0] == b"\r"):
            after += 1
        return after
    return spaces_end(O200K, p, end)


cdef inline const uint8_t *cased_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    """UPPER* LOWER+ or else UPPER+, at a letter or a mark.

    Where no LOWER follows the run of UPPER, LOWER+ goes back to the last character of the run
    that is of both. A mark in front could also stand for the sign that may precede a word; it
    is tried as that first, with the same end, but it is a word itself if no other way is left.
    """
    cdef uint8_t flags = 0
    cdef const uint8_t *place = tokbpe_capitalized_end(p, end)
    cdef const uint8_t *after
    cdef const uint8_t *both_end = NULL
    if place != p and (place == end or place[0] < 0x80):
        return place
    place = p
    while place < end:
        after = read_class(place, &flags)
        if not flags & UPPER:
            break
        if flags & LOWER:
            both_end = after
        place = after
    if place < end and flags & LOWER:
        return run_end(place, end, LOWER)
    return place if both_end == NULL else both_end


cdef inline const uint8_t *deepseek_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    """Its third regex sees a part of the text, which begins and ends with numbers or Chinese, or
    is Chinese: beyond the part are other classes, as if the text ended there."""
    cdef uint8_t flags, following = 0
    cdef const uint8_t *after = read_deepseek(p, &flags)
    if flags == 0:
        return numbers_end(after, end)
    cdef int shift = TO_CHINESE if flags >= CHINESE_WORDLIKE else 0
    cdef uint8_t wordlike = WORDLIKE << shift, sign = SIGN << shift, uncovered = UNCOVERED << shift
    if flags & wordlike:
        return deepseek_run_end(after, end, wordlike)
    if after < end:
        read_deepseek(after, &following)
    if following & wordlike and not flags & sign and p[0] != b"\n" and p[0] != b"\r":
        return deepseek_run_end(after, end, wordlike)
    if flags & SIGN and p[0] < 0x80 and is_ascii_letter(after, end):
        while is_ascii_letter(after, end):
            after += 1
        return after
    if flags & sign or p[0] == b" " and following & sign:
        after = deepseek_run_end(after, end, sign)
        return after if shift else run_end(after, end, NEWLINE)
    if flags & uncovered:
        return uncovered_end(p, end, uncovered, wordlike)
    after = deepseek_run_end(p, end, SPACE)
    if after < end:
        read_deepseek(after, &following)
        if not following & (WORDLIKE | SIGN | UNCOVERED):
            end = after
    return spaces_end(DEEPSEEK_V3, p, end)


cdef inline const uint8_t *uncovered_end(
    const uint8_t *p, const uint8_t *end, uint8_t uncovered, uint8_t wordlike
) noexcept nogil:
    """What is not matched, up to the next match: that may begin with the last of the run."""
    cdef uint8_t flags = 0
    cdef const uint8_t *place = p
    cdef const uint8_t *after
    cdef const uint8_t *last = p
    while place < end:
        after = read_deepseek(place, &flags)
        if not flags & uncovered:
            break
        last = place
        place = after
    return last if flags & wordlike else place


cdef inline const uint8_t *deepseek_run_end(
    const uint8_t *p, const uint8_t *end, uint8_t classes
) noexcept nogil:
    """Where the characters of these classes of deepseek_v3 end."""
    cdef uint8_t flags
    cdef const uint8_t *after
    while p < end:
        after = read_deepseek(p, &flags)
        if not flags & classes:
            break
        p = after
    return p


cdef inline bint is_ascii_letter(const uint8_t *p, const uint8_t *end) noexcept nogil:
    return p < end and b"a" <= p[0] | 0x20 <= b"z"


cdef inline const uint8_t *word_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    cdef uint8_t flags
    cdef const uint8_t *after
    while p < end:
        after = read_class(p, &flags)
        if flags & BREAK:
            break
        p = after
    return p


# Parts that patterns share


cdef inline const uint8_t *spaces_end(
    int kind, const uint8_t *p, const uint8_t *end
) noexcept nogil:
    """White space: up to its last line end (not gpt2), or all at the end of the text, or all
    but the last character, which is left to what follows it."""
    cdef uint8_t flags
    cdef const uint8_t *place = p
    cdef const uint8_t *after
    cdef const uint8_t *last = p
    cdef const uint8_t *line_end = NULL
    while place < end:
        after = read_class(place, &flags)
        if not flags & SPACE:
            break
        if flags & NEWLINE:
            line_end = after
        last = place
        place = after
    if place == end and (kind == CL100K or kind == GPT2 or line_end == NULL):
        return end
    if kind != GPT2 and line_end != NULL:
        return line_end
    return place if last == p else last


cdef inline const uint8_t *numbers_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    """Up to two numbers more."""
    cdef uint8_t flags
    cdef const uint8_t *after
    cdef int more = 0
    while more < 2 and p < end:
        after = read_class(p, &flags)
        if not flags & NUMBER:
            break
        p = after
        more += 1
    return p
