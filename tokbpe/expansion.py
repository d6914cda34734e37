"""A split pattern, rewritten for Python's `re` with the classes of Unicode 16.0.

`re` has no `\\p{L}`, and its `\\s`, `\\d`, `\\w` and `(?i)` follow the Unicode of the Python that
runs. So each class is spelled out here as a set of ranges, and `(?i)` as sets that hold the case
variants of letters. All else is passed on as it stands, and its meaning is that of `re`.
"""

import functools
import re
import sys
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any, TypeVar

from tokbpe import unicode
from tokbpe.unicode import Ranges, complement, intersection, merged

# What `re` reads patterns with.
if sys.version_info >= (3, 11):
    parser: Any = re._parser  # type: ignore[attr-defined]
else:
    import sre_parse as parser

Made = TypeVar("Made")

GLOBAL_FLAGS = re.compile(r"\(\?([A-Za-z]+)\)")
GROUP_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:-([A-Za-z]+))?:")
GROUP = re.compile(r"\((?!\?)|\(\?(?:[=!>]|<[=!]|P<\w+>|\([A-Za-z0-9_]+\))")
COMMENT = re.compile(r"\(\?#[^)]*\)")
NAMED_REFERENCE = re.compile(r"\(\?P=\w+\)")
NUMBERED_REFERENCE = re.compile(r"\\[1-9][0-9]?")
QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]*,[0-9]*\}|\{[0-9]+\})([+?]?)")
PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^{}]*)\}|([A-Za-z]))")
HEXADECIMAL = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-3][0-7]{2})")
OCTAL_IN_SET = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?(?![0-7]))")

# `re` has \z from Python 3.14 on only; its \Z, too, is the very end.
TEXT_EDGES = {"A": r"\A", "Z": r"\Z", "z": r"\Z"}
CONTROLS = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
FLAG_NUMBERS = {"i": 0, "m": int(re.MULTILINE), "s": int(re.DOTALL)}

ENDLESS = int(parser.MAXREPEAT)

# Possessive quantifiers and atomic groups came to `re` with Python 3.11.
HAS_POSSESSIVE = sys.version_info >= (3, 11)


def compiled(source: str) -> re.Pattern[str]:
    """The regular expression for Python's `re`; ValueError, with the place, for one that is bad."""
    return expanded(source, re.compile)


def parsed(source: str) -> Any:
    """The regular expression as `re` reads it, a tree; ValueError as of `compiled`."""
    return expanded(source, parser.parse)


def expanded(source: str, use: Callable[[str, int], Made]) -> Made:
    """What is made of the text for `re` and its flags."""
    expansion = Expansion(source)
    try:
        return use("".join(expansion.parts), expansion.flags)
    except re.error as error:
        raise expansion.refusal(error.msg, expansion.place(error.pos)) from None
    except (OverflowError, RecursionError) as error:
        raise expansion.refusal(str(error)) from None


class Expansion:
    """One walk over the text of a pattern.

    `parts` are the texts for `re`, which `places` gives the positions they come from; `flags`
    are those of the whole pattern.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.ignore_case = False
        self.ignore_case_outside: list[bool] = []  # for each group that is open
        self.parts: list[str] = []
        self.places: list[int] = []
        self.flags = self.global_flags()
        while self.at < len(source):
            self.places.append(self.at)
            self.parts.append(self.part())

    def part(self) -> str:
        char = self.source[self.at]
        if char == "[":
            return self.character_set()
        if char == "\\":
            return self.escape()
        if char == "(":
            return self.group()
        if quantifier := self.take(QUANTIFIER):
            return self.quantifier(quantifier)
        self.at += 1
        if char == ")" and self.ignore_case_outside:
            self.ignore_case = self.ignore_case_outside.pop()
        return self.character(ord(char), self.at - 1)

    def take(self, token: re.Pattern[str]) -> re.Match[str] | None:
        match = token.match(self.source, self.at)
        if match:
            self.at = match.end()
        return match

    def character(self, code: int, start: int) -> str:
        """A character outside of a set; its spelling runs from `start` to here."""
        members = self.with_case(((code, code),), start)
        return set_text(members) if len(members) > 1 else self.source[start : self.at]

    # Groups and quantifiers

    def global_flags(self) -> int:
        """Flags of the whole pattern, which stand before all else."""
        numbers = 0
        while flags := self.take(GLOBAL_FLAGS):
            for letter in self.checked_flags(flags[1], flags.start()):
                numbers |= FLAG_NUMBERS[letter]
                self.ignore_case |= letter == "i"
        return numbers

    def group(self) -> str:
        """The opening of a group, or what is spelled like one."""
        start = self.at
        if comment := self.take(COMMENT):
            return comment[0]
        if reference := self.take(NAMED_REFERENCE):
            return self.reference(reference)
        if flags := self.take(GROUP_FLAGS):
            return self.flag_group(flags)
        if opening := self.take(GROUP):
            if opening[0] == "(?>" and not HAS_POSSESSIVE:
                raise self.refusal("an atomic group needs Python 3.11 or newer", start)
            self.ignore_case_outside.append(self.ignore_case)
            return opening[0]
        if GLOBAL_FLAGS.match(self.source, start):
            raise self.refusal("flags of the whole pattern must stand at its start", start)
        raise self.refusal(f"unknown kind of group {self.source[start : start + 4]!r}", start)

    def flag_group(self, flags: re.Match[str]) -> str:
        """The opening of a group with flags of its own, of which `i` is taken out."""
        on, off = (self.checked_flags(letters, flags.start()) for letters in flags.groups(""))
        if set(on) & set(off):
            raise self.refusal(f"{flags[0]!r} turns a flag both on and off", flags.start())
        self.ignore_case_outside.append(self.ignore_case)
        self.ignore_case = "i" in on or (self.ignore_case and "i" not in off)
        on, off = on.replace("i", ""), off.replace("i", "")
        return f"(?{on}-{off}:" if off else f"(?{on}:"

    def checked_flags(self, letters: str, start: int) -> str:
        for letter in letters:
            if letter not in FLAG_NUMBERS:
                raise self.refusal(f"flag {letter!r} is none of 'i', 'm', 's'", start)
        return letters

    def reference(self, reference: re.Match[str]) -> str:
        if self.ignore_case:
            raise self.refusal(
                f"what {reference[0]!r} repeats cannot be compared with case ignored",
                reference.start(),
            )
        return reference[0]

    def quantifier(self, quantifier: re.Match[str]) -> str:
        if quantifier[1] == "+" and not HAS_POSSESSIVE:
            raise self.refusal(
                f"the possessive quantifier {quantifier[0]!r} needs Python 3.11 or newer",
                quantifier.start(),
            )
        return quantifier[0]

    # Escapes

    def escape(self) -> str:
        """An escape outside of a set."""
        start = self.at
        letter = self.source[start + 1 : start + 2]
        if letter in TEXT_EDGES:
            self.at += 2
            return TEXT_EDGES[letter]
        if letter in ("b", "B"):
            self.at += 2
            return word_edge(letter == "b")
        if (members := self.class_escape()) is not None:
            return set_text(members)
        if octal := self.take(OCTAL):
            return self.character(int(octal[1], 8), start)
        if reference := self.take(NUMBERED_REFERENCE):
            return self.reference(reference)
        return self.character(self.character_escape(), start)

    def class_escape(self) -> Ranges | None:
        """The members of a property, \\s, \\d, \\w or an opposite; None for another escape."""
        start = self.at
        letter = self.source[start + 1 : start + 2]
        if letter in ("s", "S"):
            members = unicode.ranges("White_Space")
        elif letter in ("d", "D"):
            members = unicode.ranges("Nd")
        elif letter in ("w", "W"):
            members = word_ranges()
        elif letter in ("p", "P"):
            return self.unicode_property()
        else:
            return None
        self.at += 2
        return self.with_case(complement(members) if letter.isupper() else members, start)

    def unicode_property(self) -> Ranges:
        start = self.at
        match = self.take(PROPERTY)
        if not match:
            raise self.refusal(r"a property is spelled like \p{Lu} or \pL", start)
        letter, caret, long_name, short_name = match.groups("")
        name = long_name or short_name
        if name not in unicode.NAMES:
            raise self.refusal(
                f"unknown property {name!r}; those known are {', '.join(unicode.NAMES)}", start
            )
        members = unicode.ranges(name)
        negated = (letter == "P") != (caret == "^")
        return self.with_case(complement(members) if negated else members, start)

    def character_escape(self) -> int:
        """The code point that an escape stands for."""
        start = self.at
        if match := self.take(HEXADECIMAL):
            code = int(match[match.lastindex or 0], 16)
            if code > unicode.HIGHEST:
                raise self.refusal(f"{match[0]!r} is beyond U+10FFFF", start)
            return code
        letter = self.source[start + 1 : start + 2]
        if letter not in CONTROLS and (not letter or (letter.isascii() and letter.isalnum())):
            raise self.refusal(f"unknown escape {self.source[start : start + 2]!r}", start)
        self.at += 2
        return CONTROLS.get(letter) or ord(letter)

    # Sets

    def character_set(self) -> str:
        """A set [...], whose members become ranges."""
        start = self.at
        self.at += 1
        negated = self.source.startswith("^", self.at)
        self.at += negated
        if self.source.startswith("[", self.at):
            raise self.refusal("a set inside a set; a literal '[' is spelled '\\['", self.at)
        members: list[tuple[int, int]] = []
        while not (members and self.source.startswith("]", self.at)):
            if self.at >= len(self.source):
                raise self.refusal("a set without its end ']'", start)
            if members and self.source[self.at : self.at + 2] in ("--", "&&", "~~", "||"):
                raise self.set_operator()
            members += self.set_item()
        self.at += 1
        return set_text(merged(members), negated)

    def set_item(self) -> Ranges:
        """A class, a character, or a range of characters."""
        start = self.at
        first = self.set_member()
        following = self.source[self.at : self.at + 2]
        if len(following) == 2 and following[0] == "-" and following[1] != "]":
            if following == "--":
                raise self.set_operator()
            self.at += 1
            last = self.set_member()
            if not (isinstance(first, int) and isinstance(last, int) and first <= last):
                raise self.refusal(f"bad range {self.source[start : self.at]!r}", start)
            return self.with_case(((first, last),), start)
        return self.with_case(((first, first),), start) if isinstance(first, int) else first

    def set_member(self) -> int | Ranges:
        """The code point of a character, or the members of a class."""
        if self.source[self.at] != "\\":
            self.at += 1
            return ord(self.source[self.at - 1])
        if self.source.startswith("\\b", self.at):
            self.at += 2
            return 0x08
        if octal := self.take(OCTAL_IN_SET):
            return int(octal[1], 8)
        members = self.class_escape()
        return self.character_escape() if members is None else members

    def set_operator(self) -> ValueError:
        operator = self.source[self.at : self.at + 2]
        return self.refusal(
            f"set operator {operator!r}; as a literal it is spelled '\\{operator[0]}'", self.at
        )

    # Case

    def with_case(self, members: Ranges, start: int) -> Ranges:
        """With case ignored, the members and their case variants."""
        if not self.ignore_case:
            return members
        variants = with_case_variants(members)
        if variants is None:
            raise self.refusal(
                f"{self.source[start : self.at]!r} with case ignored: case variants are known "
                "for ASCII letters only",
                start,
            )
        return variants

    # Errors

    def refusal(self, message: str, place: int | None = None) -> ValueError:
        where = "" if place is None else f" at position {place}"
        return ValueError(f"pattern {self.source!r} is refused{where}: {message}")

    def place(self, position: int | None) -> int | None:
        """The position in the pattern of a position in the text for `re`."""
        if position is None:
            return None
        number = bisect_right(list(accumulate(map(len, self.parts))), position)
        return self.places[number] if number < len(self.places) else len(self.source)


def set_text(members: Ranges, negated: bool = False) -> str:
    """Ranges as a set for `re`, in escapes, so that no character has a meaning of its own."""
    return f"[{'^' if negated else ''}{ranges_text(members)}]"


@functools.lru_cache(maxsize=64)
def ranges_text(members: Ranges) -> str:
    return "".join(
        code_text(first) if first == last else f"{code_text(first)}-{code_text(last)}"
        for first, last in members
    )


def code_text(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


# Words: Alphabetic, M, Nd, Pc and Join_Control (UTS #18, Annex C). Alphabetic is L, Nl, some of M,
# and letters in circles and squares, which general categories count as symbols.
LETTERS_AS_SYMBOLS = (
    (0x24B6, 0x24E9),
    (0x1F130, 0x1F149),
    (0x1F150, 0x1F169),
    (0x1F170, 0x1F189),
)
JOIN_CONTROL = ((0x200C, 0x200D),)


@functools.cache
def word_ranges() -> Ranges:
    """What \\w matches."""
    categories = [unicode.ranges(name) for name in ("L", "Nl", "M", "Nd", "Pc")]
    return merged(sum(categories, LETTERS_AS_SYMBOLS + JOIN_CONTROL))


def word_edge(inside: bool) -> str:
    r"""\b as look-arounds, or its opposite \B."""
    word = set_text(word_ranges())
    after_word, after_other = ("!", "=") if inside else ("=", "!")
    return f"(?:(?<={word})(?{after_word}{word})|(?<!{word})(?{after_other}{word}))"


# Case: every character that has a case variant is in one of these, with all of its variants.
UPPER_IOTA_MARK = (0x345, 0x345)
ROMAN_NUMERALS = ((0x2160, 0x217F),)
CIRCLED_LETTERS = ((0x24B6, 0x24E9),)
# Those whose variants the table has.
KNOWN_LETTERS = ((0x41, 0x5A), (0x61, 0x7A), (0x17F, 0x17F), (0x212A, 0x212A))


@functools.cache
def cased_letters() -> Ranges:
    letters = [unicode.ranges(name) for name in ("Lu", "Ll", "Lt")]
    return merged(sum(letters, (UPPER_IOTA_MARK,)))


@functools.lru_cache(maxsize=64)
def with_case_variants(members: Ranges) -> Ranges | None:
    """The members and all their case variants, None if the table does not know them all.

    A set with all of the letters, or none, has no variants outside of itself.
    """
    result = list(members)
    for cased in (cased_letters(), ROMAN_NUMERALS, CIRCLED_LETTERS):
        present = intersection(members, cased)
        if present == cased:
            continue
        if intersection(present, complement(KNOWN_LETTERS)):
            return None
        letters = (chr(code) for first, last in present for code in range(first, last + 1))
        variants = {variant for letter in letters for variant in unicode.case_variants(letter)}
        result += [(ord(variant), ord(variant)) for variant in variants]
    return merged(result)
