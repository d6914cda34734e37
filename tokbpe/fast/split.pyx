"""Cutting text into pieces, compiled: the twin of `split` in `tokbpe.reference` (points 1 to 3).

A scanner looks at where a piece begins and tells where it ends, as its pattern would: the
alternatives are tried in their order, and what a regular expression finds by going back is told
from where the runs of its classes end. A run that is read further than its piece reaches is
read again for the next pieces, at most twice, so the time is linear.

Measured and left for later: ASCII letters eight at a time by 64-bit arithmetic, in C, since it
is meant to wrap around. Scanning English 295 -> 420 MB/s, counting its pieces 117 -> 140.
"""

import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from tokbpe import arguments, patterns, reference, unicode

cdef extern from "scan_variants.h":
    ctypedef size_t (*tokbpe_scan)(
        int pattern,
        const uint8_t *classes,
        const uint8_t *data,
        size_t place,
        size_t end,
        size_t *ends,
        size_t most,
    ) noexcept nogil
    enum:
        TOKBPE_NONE
        TOKBPE_GPT2
        TOKBPE_CL100K
        TOKBPE_QWEN2
        TOKBPE_O200K
    tokbpe_scan tokbpe_scan_by(int variant) noexcept nogil
    const uint8_t *tokbpe_ascii_end(const uint8_t *p, const uint8_t *end) noexcept nogil
    const uint8_t *tokbpe_letters_end(const uint8_t *p, const uint8_t *end) noexcept nogil
    const uint8_t *tokbpe_capitalized_end(const uint8_t *p, const uint8_t *end) noexcept nogil
    const uint8_t *tokbpe_contraction_end(
        const uint8_t *p, const uint8_t *end, bint any_case
    ) noexcept nogil

# The classes of characters. Each is one of SPACE, LETTER, NUMBER and OTHER; marks are OTHER.
cdef enum:
    SPACE = 1
    LETTER = 2
    NUMBER = 4
    OTHER = 8
    UPPER = 16  # Lu, Lt, Lm, Lo, M
    LOWER = 32  # Ll, Lm, Lo, M
    NEWLINE = 64  # \r and \n
    BREAK = 128  # between words

cdef tuple CLASS_FLAGS = (
    ("White_Space", SPACE | BREAK),
    ("N", NUMBER),
    ("Lu", LETTER | UPPER),
    ("Lt", LETTER | UPPER),
    ("Ll", LETTER | LOWER),
    ("Lm", LETTER | UPPER | LOWER),
    ("Lo", LETTER | UPPER | LOWER),
    ("M", OTHER | UPPER | LOWER),
)

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

cdef tuple DEEPSEEK_FLAGS = (
    ("L", WORDLIKE),
    ("M", WORDLIKE),
    ("P", SIGN),
    ("S", SIGN),
    ("N", 0),
    ("White_Space", SPACE),
)
cdef tuple CHINESE = ((0x3040, 0x30FF), (0x4E00, 0x9FA5))

# By code point. Filled when the module is imported, only read from then on.
cdef uint8_t[0x110000] CLASSES
cdef uint8_t[0x110000] DEEPSEEK_CLASSES


cdef int fill(uint8_t *classes, uint8_t others, tuple class_flags) except -1:
    cdef size_t first, last
    cdef int flags
    memset(classes, others, sizeof(CLASSES))
    for name, flags in class_flags:
        for first, last in unicode.ranges(name):
            memset(classes + first, flags, last - first + 1)
    return 0


cdef int fill_classes() except -1:
    cdef size_t first, last, code
    fill(CLASSES, OTHER, CLASS_FLAGS)
    for code in b"\r\n":
        CLASSES[code] |= NEWLINE
    for code in b"\x1c\x1d\x1e\x1f":
        CLASSES[code] |= BREAK
    fill(DEEPSEEK_CLASSES, UNCOVERED, DEEPSEEK_FLAGS)
    for first, last in CHINESE:
        for code in range(first, last + 1):
            DEEPSEEK_CLASSES[code] <<= TO_CHINESE
    return 0


fill_classes()

cdef dict KINDS = {
    patterns.NAMED["gpt2"]: GPT2,
    patterns.NAMED["cl100k"]: CL100K,
    patterns.NAMED["llama3"]: LLAMA3,
    patterns.NAMED["qwen2"]: QWEN2,
    patterns.NAMED["o200k"]: O200K,
    patterns.NAMED["deepseek_v3"]: DEEPSEEK_V3,
    patterns.WORDS: WORDS,
}


# How many pieces are found together.
cdef enum:
    CHUNK = 512

# How blocks are scanned, in the order of `scan_variants.h`; "scalar": they are not.
cdef tuple VARIANT_NAMES = ("avx512", "avx2", "scalar")
VARIANTS = tuple(
    name
    for number, name in enumerate(VARIANT_NAMES)
    if name == "scalar" or tokbpe_scan_by(number) != NULL
)
VARIANT = VARIANTS[0]

cdef tokbpe_scan SCAN = NULL


def use_variant(name):
    """Scan by this one of VARIANTS from now on, in all threads. For tests."""
    global SCAN, VARIANT
    VARIANT = arguments.choice(name, "TOKBPE_SIMD on this machine", VARIANTS)
    SCAN = tokbpe_scan_by(VARIANT_NAMES.index(name))


use_variant(os.environ.get("TOKBPE_SIMD") or VARIANT)


cdef int block_pattern(int kind) noexcept nogil:
    """The pattern of `scan_blocks.h` that a kind has."""
    if kind == GPT2:
        return TOKBPE_GPT2
    if kind == CL100K or kind == LLAMA3:  # they differ at the end of a text only
        return TOKBPE_CL100K
    if kind == QWEN2:
        return TOKBPE_QWEN2
    if kind == O200K:
        return TOKBPE_O200K
    return TOKBPE_NONE


cdef int scanner_kind(pattern) except -2:
    """What cuts text by this pattern, which is checked as `patterns.get` does."""
    if pattern is None:
        return WHOLE
    return KINDS.get(patterns.get(pattern), NOT_COMPILED)


def split(text, pattern=None):
    """Cut one document into its pieces (points 1 to 3).

    ("I like it", "gpt2") -> [b"I", b" like", b" it"]
    """
    cdef Scanner scanner
    cdef bytes data = arguments.document_bytes(text)
    cdef int kind = scanner_kind(pattern)
    if kind == NOT_COMPILED:
        return reference.split(data, pattern)
    if kind == WHOLE:
        return [data] if data else []
    open_scanner(&scanner, kind, data, len(data), isinstance(text, str))
    return words(&scanner) if kind == WORDS else pieces(&scanner)


cdef list pieces(Scanner *scanner):
    """All pieces of a document."""
    cdef size_t[CHUNK] ends
    cdef size_t i, start, count
    cdef list found = []
    while True:
        start = scanner.position
        count = next_ends(scanner, ends, CHUNK)
        if count == 0:
            return found
        for i in range(count):
            found.append(part(scanner, start, ends[i]))
            start = ends[i]
        PyErr_CheckSignals()


cdef list words(Scanner *scanner):
    cdef size_t start, end
    cdef list found = []
    while next_piece(scanner, &start, &end):
        found.append(part(scanner, start, end))
        if len(found) % CHUNK == 0:
            PyErr_CheckSignals()
    return found


cdef inline bytes part(const Scanner *scanner, size_t start, size_t end):
    return PyBytes_FromStringAndSize(<const char *> scanner.data + start, end - start)


# Documents: texts in UTF-8, and what stands between them and is none (point 3)


cdef void open_scanner(
    Scanner *scanner, int kind, const uint8_t *data, size_t size, bint is_text
) noexcept nogil:
    """Start at the beginning of a document, with any kind but NOT_COMPILED.

    is_text: the bytes are known to be UTF-8, so they are not checked.
    """
    scanner.kind = kind
    scanner.data = data
    scanner.size = size
    scanner.position = 0
    scanner.text_ended = is_text or kind == WHOLE
    scanner.text_end = size if scanner.text_ended else 0


cdef size_t next_ends(Scanner *scanner, size_t *ends, size_t most) noexcept nogil:
    """Where the next pieces end, `most` of them or fewer; 0 only when there are none.

    They follow each other without gaps from scanner.position on, so this is not for WORDS.
    """
    cdef size_t found
    cdef size_t count = 0
    cdef int pattern = TOKBPE_NONE if SCAN == NULL else block_pattern(scanner.kind)
    while count < most and scanner.position < scanner.size:
        if not scanner.text_ended:
            extend_text(scanner, scanner.size)
        if scanner.position == scanner.text_end:
            ends[count] = skip_other_bytes(scanner)
            count += 1
            continue
        found = 0
        if pattern != TOKBPE_NONE:
            found = SCAN(
                pattern,
                CLASSES,
                scanner.data,
                scanner.position,
                scanner.text_end,
                ends + count,
                most - count,
            )
        if found == 0:
            found = exact_ends(
                scanner, ends + count, most - count if pattern == TOKBPE_NONE else 1
            )
        count += found
        scanner.position = ends[count - 1]
    return count


cdef size_t exact_ends(Scanner *scanner, size_t *ends, size_t most) noexcept nogil:
    """As `next_ends`, in the text that stands at scanner.position; a loop for each pattern."""
    cdef const uint8_t *p = scanner.data + scanner.position
    cdef const uint8_t *end = scanner.data + scanner.text_end
    if scanner.kind == GPT2:
        return ends_of(GPT2, scanner.data, p, end, ends, most)
    if scanner.kind == O200K:
        return ends_of(O200K, scanner.data, p, end, ends, most)
    if scanner.kind == QWEN2:
        return ends_of(QWEN2, scanner.data, p, end, ends, most)
    if scanner.kind == LLAMA3:
        return ends_of(LLAMA3, scanner.data, p, end, ends, most)
    if scanner.kind == CL100K:
        return ends_of(CL100K, scanner.data, p, end, ends, most)
    return ends_of(scanner.kind, scanner.data, p, end, ends, most)


cdef inline size_t ends_of(
    int kind,
    const uint8_t *data,
    const uint8_t *p,
    const uint8_t *end,
    size_t *ends,
    size_t most,
) noexcept nogil:
    cdef size_t count = 0
    while count < most and p < end:
        p = piece_end(kind, p, end)
        ends[count] = distance(data, p)
        count += 1
    return count


cdef size_t skip_other_bytes(Scanner *scanner) noexcept nogil:
    """Go to the end of a run of bytes that are no UTF-8."""
    cdef size_t end = other_bytes_end(scanner.data, scanner.position, scanner.size)
    scanner.position = scanner.text_end = end
    scanner.text_ended = False
    return end


cdef bint next_piece(Scanner *scanner, size_t *start, size_t *end) noexcept nogil:
    """Find the next piece, data[start:end]; False if there is none."""
    cdef const uint8_t *data = scanner.data
    cdef const uint8_t *text_end
    while scanner.position < scanner.size:
        if not scanner.text_ended:
            extend_text(scanner, scanner.size)
        start[0] = scanner.position
        if scanner.position == scanner.text_end:
            end[0] = skip_other_bytes(scanner)
            return True
        text_end = data + scanner.text_end
        if scanner.kind == WORDS:
            start[0] = distance(data, run_end(data + scanner.position, text_end, BREAK))
            scanner.position = start[0]
            if start[0] == scanner.text_end:
                continue
        end[0] = distance(data, piece_end(scanner.kind, data + start[0], text_end))
        scanner.position = end[0]
        return True
    return False


cdef inline size_t distance(const uint8_t *first, const uint8_t *last) noexcept nogil:
    """Cython's overflow checks do not know differences of pointers."""
    return <size_t> last - <size_t> first


cdef bint extend_text(Scanner *scanner, size_t most) noexcept nogil:
    """Look for the end of the text in the next `most` bytes; True if it is found.

    `next_piece` does this for all bytes at once. Whoever wants to be interrupted does it
    before, part by part.
    """
    cdef const uint8_t *data = scanner.data
    cdef size_t place = scanner.text_end
    cdef size_t limit = place + min(most, scanner.size - place)
    cdef size_t width = 1
    while place < limit and width:
        if data[place] < 0x80:
            place = distance(data, tokbpe_ascii_end(data + place, data + limit))
            continue
        width = utf8_width(data + place, scanner.size - place)
        place += width
    scanner.text_end = place
    scanner.text_ended = width == 0 or place == scanner.size
    return scanner.text_ended


cdef size_t other_bytes_end(const uint8_t *data, size_t place, size_t size) noexcept nogil:
    """Where a run of bytes that are no UTF-8 ends."""
    while place < size and utf8_width(data + place, size - place) == 0:
        place += 1
    return place


cdef size_t utf8_width(const uint8_t *p, size_t size) noexcept nogil:
    """How many bytes the UTF-8 character at p has, 0 if there is none; `size` bytes can be read."""
    cdef uint8_t lead = p[0]
    cdef uint8_t least = 0x80, most = 0xBF  # of the second byte
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    # The second byte tells what is overlong, a surrogate or above U+10FFFF.
    if lead == 0xE0:
        least = 0xA0
    elif lead == 0xED:
        most = 0x9F
    elif lead == 0xF0:
        least = 0x90
    elif lead == 0xF4:
        most = 0x8F
    if size < 2 or p[1] < least or p[1] > most:
        return 0
    if lead < 0xE0:
        return 2
    if size < 3 or p[2] & 0xC0 != 0x80:
        return 0
    if lead < 0xF0:
        return 3
    if size < 4 or p[3] & 0xC0 != 0x80:
        return 0
    return 4


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


cdef inline const uint8_t *letters_end(const uint8_t *p, const uint8_t *end) noexcept nogil:
    p = tokbpe_letters_end(p, end)
    return p if p == end or p[0] < 0x80 else run_end(p, end, LETTER)


cdef inline const uint8_t *run_end(
    const uint8_t *p, const uint8_t *end, uint8_t classes
) noexcept nogil:
    """Where the characters of these classes end."""
    cdef uint8_t flags
    cdef const uint8_t *after
    while p < end:
        after = read_class(p, &flags)
        if not flags & classes:
            break
        p = after
    return p


cdef inline const uint8_t *read_class(const uint8_t *p, uint8_t *flags) noexcept nogil:
    """The class of the UTF-8 character at p; where the next one begins."""
    cdef uint32_t code
    cdef const uint8_t *after = read_character(p, &code)
    flags[0] = CLASSES[code]
    return after


cdef inline const uint8_t *read_deepseek(const uint8_t *p, uint8_t *flags) noexcept nogil:
    """The class for deepseek_v3 of the UTF-8 character at p; where the next one begins."""
    cdef uint32_t code
    cdef const uint8_t *after = read_character(p, &code)
    flags[0] = DEEPSEEK_CLASSES[code]
    return after


cdef inline const uint8_t *read_character(const uint8_t *p, uint32_t *code) noexcept nogil:
    cdef uint32_t lead = p[0]
    if lead < 0x80:
        code[0] = lead
        return p + 1
    if lead < 0xE0:
        code[0] = (lead & 0x1F) << 6 | p[1] & 0x3F
        return p + 2
    if lead < 0xF0:
        code[0] = (lead & 0x0F) << 12 | (p[1] & 0x3F) << 6 | p[2] & 0x3F
        return p + 3
    code[0] = (lead & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | p[3] & 0x3F
    return p + 4
