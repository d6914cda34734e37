"""Cutting text into pieces, compiled: the twin of `split` in `tokbpe.reference` (points 1 to 3).

A text is scanned by blocks of 64 bytes (`scan_blocks.h`), with AVX-512 or AVX2 where the machine
has them, else in plain C; a piece that blocks are not sure of, and all pieces of the patterns that
have no blocks, by a scanner that looks at where the piece begins and tells where it ends
(`exact.pxd`).

Scanning alone, MB/s by AVX-512 and by the exact scanner, on a busy machine (AVX2 is within a
fourth of AVX-512): cl100k on English 2300 and 480, C 2440 and 410, Russian 1210 and 610, Chinese
1120 and 640; on English gpt2 3390 and 510, o200k 2010 and 460, deepseek_v3, never by blocks, 290.
The UTF-8 check of bytes, by blocks and without: Russian 4600 and 900, Chinese 4600 and 1500.

What it took: ASCII letters eight at a time and a loop for each pattern, exact 280 -> 480; blocks of
ASCII leave out what longer characters need, + 8 %. Tried and dropped: going on from the last
blank before a letter, which is known sooner than the last end (the number of instructions is
the limit, not how they wait for each other). Blocks in plain C, where all was left to the exact
scanner before, made encoding as a whole faster by 1.2 (English, `next`) to 1.35 (C), and Chinese
slower by 0.96.
"""

import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t
from libc.string cimport memset

from tokbpe import arguments, patterns, reference, unicode

from .exact cimport (
    BREAK,
    LETTER,
    LOWER,
    NEWLINE,
    NUMBER,
    OTHER,
    SIGN,
    SPACE,
    TO_CHINESE,
    UNCOVERED,
    UPPER,
    WORDLIKE,
    piece_end,
    run_end,
    tokbpe_classes,
    tokbpe_deepseek_classes,
)


cdef extern from "scan.h":
    const uint8_t *tokbpe_ascii_end(const uint8_t *p, const uint8_t *end) noexcept nogil


cdef extern from "scan_variants.h":
    ctypedef size_t (*tokbpe_scan)(
        int pattern, const uint8_t *data, size_t place, size_t end, size_t *ends, size_t most
    ) noexcept nogil
    enum:
        TOKBPE_NONE
        TOKBPE_GPT2
        TOKBPE_CL100K
        TOKBPE_QWEN2
        TOKBPE_O200K
    void tokbpe_fill_spread() noexcept nogil
    tokbpe_scan tokbpe_scan_by(int variant) noexcept nogil
    ctypedef const uint8_t *(*tokbpe_utf8_end)(const uint8_t *p, const uint8_t *end) noexcept nogil
    tokbpe_utf8_end tokbpe_utf8_end_by(int variant) noexcept nogil


# The classes of characters, by what the Unicode table calls them.
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

cdef tuple DEEPSEEK_FLAGS = (
    ("L", WORDLIKE),
    ("M", WORDLIKE),
    ("P", SIGN),
    ("S", SIGN),
    ("N", 0),
    ("White_Space", SPACE),
)
cdef tuple CHINESE = ((0x3040, 0x30FF), (0x4E00, 0x9FA5))


cdef list flagged_ranges(tuple class_flags):
    return [(unicode.ranges(name), flags) for name, flags in class_flags]


cdef int fill(uint8_t *classes, uint8_t others, list flagged) except -1:
    cdef size_t first, last
    cdef int flags
    memset(classes, others, sizeof(tokbpe_classes))
    for ranges, flags in flagged:
        for first, last in ranges:
            memset(classes + first, flags, last - first + 1)
    return 0


# Classes are filled for the first pattern that needs them: that takes milliseconds, which are not
# to pass when this is imported.
cdef bint classes_are_filled = False
cdef bint deepseek_is_filled = False


cdef int fill_classes() except -1:
    global classes_are_filled
    cdef size_t code
    if classes_are_filled:
        return 0
    cdef list flagged = flagged_ranges(CLASS_FLAGS)
    # From here on no other thread runs: one that did might find the table half full.
    if classes_are_filled:
        return 0
    fill(tokbpe_classes, OTHER, flagged)
    for code in b"\r\n":
        tokbpe_classes[code] |= NEWLINE
    for code in b"\x1c\x1d\x1e\x1f":
        tokbpe_classes[code] |= BREAK
    classes_are_filled = True
    return 0


cdef int fill_deepseek_classes() except -1:
    global deepseek_is_filled
    cdef size_t first, last, code
    if deepseek_is_filled:
        return 0
    cdef list flagged = flagged_ranges(DEEPSEEK_FLAGS)
    # As above.
    if deepseek_is_filled:
        return 0
    fill(tokbpe_deepseek_classes, UNCOVERED, flagged)
    for first, last in CHINESE:
        for code in range(first, last + 1):
            tokbpe_deepseek_classes[code] <<= TO_CHINESE
    deepseek_is_filled = True
    return 0


tokbpe_fill_spread()

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

# How blocks are scanned, in the order of `scan_variants.h`; "exact": they are not.
cdef tuple VARIANT_NAMES = ("avx512", "avx2", "scalar", "exact")
VARIANTS = tuple(
    name
    for number, name in enumerate(VARIANT_NAMES)
    if name == "exact" or tokbpe_scan_by(number) != NULL
)
VARIANT = VARIANTS[0]

cdef tokbpe_scan SCAN = NULL
cdef tokbpe_utf8_end UTF8_END = NULL


def use_variant(name):
    """Scan by this one of VARIANTS from now on, in all threads. For tests."""
    global SCAN, UTF8_END, VARIANT
    VARIANT = arguments.choice(name, "TOKBPE_SIMD on this machine", VARIANTS)
    SCAN = tokbpe_scan_by(VARIANT_NAMES.index(name))
    UTF8_END = tokbpe_utf8_end_by(VARIANT_NAMES.index(name))


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
    kind = KINDS.get(patterns.get(pattern), NOT_COMPILED)
    if kind != NOT_COMPILED:
        fill_classes()
    if kind == DEEPSEEK_V3:
        fill_deepseek_classes()
    return kind


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
    cdef size_t count = 0
    while count < most and scanner.position < scanner.size:
        if not scanner.text_ended:
            extend_text(scanner, scanner.size)
        if scanner.position == scanner.text_end:
            ends[count] = skip_other_bytes(scanner)
            count += 1
        else:
            count += text_ends(scanner, ends + count, most - count)
            scanner.position = ends[count - 1]
    return count


cdef size_t text_ends(Scanner *scanner, size_t *ends, size_t most) noexcept nogil:
    """As `next_ends`, in the text at scanner.position: by blocks, or one piece that they are not
    sure of."""
    cdef int pattern = block_pattern(scanner.kind)
    cdef size_t count
    if SCAN == NULL or pattern == TOKBPE_NONE:
        return exact_ends(scanner, ends, most)
    count = SCAN(pattern, scanner.data, scanner.position, scanner.text_end, ends, most)
    return count or exact_ends(scanner, ends, 1)


cdef size_t exact_ends(Scanner *scanner, size_t *ends, size_t most) noexcept nogil:
    """As `text_ends`, one piece after another; a loop for each pattern."""
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
    if UTF8_END != NULL:
        place = distance(data, UTF8_END(data + place, data + limit))
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
