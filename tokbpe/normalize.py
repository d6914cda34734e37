"""NFC, the canonical composition of characters, as Hugging Face's `tokenizers` has it.

Its tables are those of Unicode 9.0, so a character that came later is to it one that neither
composes nor moves. Python's own tables are of a later Unicode, another on each Python, but
agree with 9.0 on all characters that 9.0 knows: that is Unicode's promise of stability.
"""

import functools
import re
import sys
import unicodedata
from collections.abc import Iterator

from tokbpe import unicode
from tokbpe.unicode_9_table import UNASSIGNED

# Of marks in a row; shorter ones are left as they are, since Python orders them fast enough.
LONG_ROW = 32
# What means two marks, and is none itself.
TWO_MARKS = {mark: unicodedata.normalize("NFD", mark) for mark in "\u0f73\u0f75\u0f81"}


@functools.cache
def assigned_runs() -> re.Pattern[str]:
    """Finds the runs of characters that Unicode 9.0 assigns."""
    unassigned = tuple(map(unicode.parsed_range, UNASSIGNED.split()))
    # A set of what is assigned, for `re` is slow at a character that a large set lacks.
    assigned = [f"\\U{first:08x}-\\U{last:08x}" for first, last in unicode.complement(unassigned)]
    return re.compile(f"[{''.join(assigned)}]+")


def nfc(text: str) -> str:
    """A text in NFC of Unicode 9.0; characters that it does not assign are copied.

    "e\\u0301" -> "\\xe9"
    """
    # What is normalized in a later Unicode is so in each of its parts, hence in each run.
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return assigned_runs().sub(lambda run: normalized(run.group()), text)


def normalized(run: str) -> str:
    """NFC of characters that are all assigned.

    Python puts marks in order one by one, each of them past all before it that it does not stand
    behind, which takes for ever where a hostile text has many in a row: these are sorted before.
    """
    return unicodedata.normalize("NFC", long_rows().sub(lambda row: ordered(row.group()), run))


@functools.cache
def long_rows() -> re.Pattern[str]:
    """Finds many marks in a row."""
    marks = [chr(code) for first, last in unicode.ranges("M") for code in range(first, last + 1)]
    moving = [mark for mark in marks if unicodedata.combining(mark) or mark in TWO_MARKS]
    return re.compile(f"[{''.join(moving)}]{{{LONG_ROW},}}")


def ordered(marks: str) -> str:
    """Marks in their canonical order, which does not change what they mean.

    "\\u0301\\u0323" -> "\\u0323\\u0301"
    """
    parts = "".join(TWO_MARKS.get(mark, mark) for mark in marks)
    return "".join(sorted(parts, key=unicodedata.combining))


def nfc_segments(text: str) -> Iterator[tuple[str, str]]:
    """A text in segments, each with its NFC: characters that do not act on each other stand
    apart, and what is not changed stays together.

    "abe\u0301c" -> ("ab", "ab"), ("e\u0301", "\xe9"), ("c", "c")
    """
    unchanged = ""
    for match in segment_pattern().finditer(text):
        segment = match.group()
        normalized = nfc(segment)
        if normalized == segment:
            unchanged += segment
            continue
        if unchanged:
            yield unchanged, unchanged
        yield segment, normalized
        unchanged = ""
    if unchanged:
        yield unchanged, unchanged


@functools.cache
def segment_pattern() -> re.Pattern[str]:
    """Finds characters with all those behind them that may move before them or join them."""
    joining = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # Jamo
    joining.update(TWO_MARKS)
    for character in map(chr, range(sys.maxunicode + 1)):
        parts = unicodedata.decomposition(character).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            joining.add(chr(int(parts[1], 16)))
        if unicodedata.combining(character):
            joining.add(character)
    return re.compile(f"(?s:.)[{''.join(map(re.escape, sorted(joining)))}]*")
