"""Unicode 16.0 for split patterns: classes of characters, and the case variants of letters.

Both engines read this table, so a pattern means the same on every Python, whose own tables are
of another Unicode each. `python -m tokbpe.unicode_generate` writes it.
"""

import functools
import sys
from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

from tokbpe import arguments, unicode_table
from tokbpe.unicode_table import CATEGORIES

Ranges: TypeAlias = tuple[tuple[int, int], ...]

VERSION = unicode_table.VERSION
HIGHEST = sys.maxunicode

GROUPS = ("C", "L", "M", "N", "P", "S", "Z")
NAMES = tuple(sorted([*CATEGORIES, *GROUPS])) + ("White_Space",)

CONTROL_SPACES = ((0x09, 0x0D), (0x85, 0x85))
LONG_S = "\u017f"
KELVIN_SIGN = "\u212a"


def ranges(name: str) -> Ranges:
    """The code points of a class as (first, last), both included, rising and merged.

    A class is a general category ("Lu"), a group of these ("L"), or "White_Space". An unknown
    name is a ValueError that lists them all.
    """
    return class_ranges(arguments.choice(name, "the Unicode class", NAMES))


@functools.cache
def class_ranges(name: str) -> Ranges:
    if name == "White_Space":
        return merged(class_ranges("Z") + CONTROL_SPACES)
    if name in GROUPS:
        categories = [category for category in CATEGORIES if category.startswith(name)]
        return merged(pair for category in categories for pair in class_ranges(category))
    return tuple(parsed_range(spelling) for spelling in CATEGORIES[name].split())


def parsed_range(spelling: str) -> tuple[int, int]:
    """("41-5A") -> (65, 90)"""
    first, _, last = spelling.partition("-")
    return int(first, 16), int(last or first, 16)


def merged(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in rising order, those that touch or overlap made one.

    ([(5, 6), (1, 2), (3, 3)]) -> ((1, 3), (5, 6))
    """
    result: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return tuple(result)


def complement(ranges: Ranges) -> Ranges:
    """All other code points; the ranges given must be merged."""
    firsts = [0] + [last + 1 for _, last in ranges]
    lasts = [first - 1 for first, _ in ranges] + [HIGHEST]
    return tuple((first, last) for first, last in zip(firsts, lasts) if first <= last)


def intersection(one: Ranges, other: Ranges) -> Ranges:
    """The code points of both; the ranges given must be merged."""
    return complement(merged(complement(one) + complement(other)))


def includes(ranges: Ranges, char: str) -> bool:
    """Whether a character is one of them; the ranges given must be merged."""
    number = bisect_right(ranges, (ord(char), HIGHEST))
    return number > 0 and ord(char) <= ranges[number - 1][1]


def case_variants(char: str) -> str:
    """All characters that are equal to this one when case is ignored, itself among them.

    Known for what patterns need: the ASCII letters, and the two characters beyond ASCII that
    fold to one. The dotless and the dotted i of Turkish are not variants of "i".

    "s" -> "Ss\\u017f", "\\u212a" -> "Kk\\u212a"
    """
    if char in (LONG_S, "s", "S"):
        return "Ss" + LONG_S
    if char in (KELVIN_SIGN, "k", "K"):
        return "Kk" + KELVIN_SIGN
    if char.isascii() and char.isalpha() and len(char) == 1:
        return char.upper() + char.lower()
    raise ValueError(f"case variants are known for ASCII letters, U+017F and U+212A, not {char!r}")
