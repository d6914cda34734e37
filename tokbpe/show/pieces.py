"""Pieces as people read them: what can be seen as it is, all else by a sign or a name.

What cannot be seen, or would change how its neighbors look, is told apart from what can: white
space, control characters, marks of direction, bytes that are no whole character, combining marks
without anything to combine with.
"""

import html
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from tokbpe.show import colors
from tokbpe.symbols import MARKER

TEXT, SIGN, BYTES = "text", "sign", "bytes"
END_OF_WORD = "</w>"
SIGNS = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍", "\x7f": "␡"}
CONTROLS = 0x2400  # where the pictures of U+0000 to U+001F begin
# Letters and signs that are drawn as nothing.
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
NAMED = 3  # of the names of characters, in one tooltip


class Run(NamedTuple):
    """Characters that are shown in the same way."""

    kind: str  # "text": as they are; "sign": what stands for them; "bytes": hexadecimal
    shown: str


def runs(piece: bytes, unit: str = "byte") -> list[Run]:
    """What is shown of a piece; in words the end has its mark.

    (b"a\\n\\xf0\\x9f", "byte") -> [("text", "a"), ("sign", "↵"), ("bytes", "‹f0 9f›")]
    """
    ends_word = unit == "word" and piece.endswith(MARKER)
    text = piece.removesuffix(MARKER) if ends_word else piece
    parts = signs(text.decode("utf-8", "surrogateescape"))
    found = [joined(kind, group) for kind, group in groupby(parts, key=lambda run: run.kind)]
    return [*found, Run(SIGN, END_OF_WORD)] if ends_word else found


def signs(text: str) -> Iterator[Run]:
    """Each character as it is shown."""
    before = None
    for character in text:
        if "\udc80" <= character <= "\udcff":
            run = Run(BYTES, f"{ord(character) - 0xDC00:02x}")
        elif character in SIGNS or not is_drawn(character):
            run = Run(SIGN, sign(character))
        else:
            run = Run(TEXT, character)
            if before != TEXT and unicodedata.category(character).startswith("M"):
                yield Run(SIGN, "◌")  # else it would sit on what stands before
        before = run.kind
        yield run


def is_drawn(character: str) -> bool:
    """Whether a character leaves a mark."""
    return character.isprintable() and character not in FILLERS


def sign(character: str) -> str:
    """What stands for a character that cannot be seen."""
    if character in SIGNS:
        return SIGNS[character]
    if character < " ":
        return chr(CONTROLS + ord(character))
    return f"‹U+{ord(character):04X}›"


def joined(kind: str, group: Iterable[Run]) -> Run:
    parts = [run.shown for run in group]
    return Run(kind, f"‹{' '.join(parts)}›" if kind == BYTES else "".join(parts))


def plain(piece: bytes, unit: str = "byte") -> str:
    """A piece in a line of text."""
    return "".join(run.shown for run in runs(piece, unit))


def marked_up(piece: bytes, unit: str = "byte") -> str:
    """A piece as HTML, to stand on a tint."""
    return "".join(
        html.escape(run.shown)
        if run.kind == TEXT
        else f'<i style="font-style:normal;color:{colors.MARK}">{html.escape(run.shown)}</i>'
        for run in runs(piece, unit)
    )


def names(piece: bytes) -> str:
    """The names of characters of a piece that cannot be seen, the first few of them."""
    text = piece.decode("utf-8", "surrogateescape")
    hidden = [char for char in dict.fromkeys(text) if is_hidden(char)]
    shown = [name(character) for character in hidden[:NAMED]]
    return ", ".join([*shown, *["..."] * (len(hidden) > NAMED)])


def is_hidden(character: str) -> bool:
    """Whether a character is shown by its number."""
    seen = is_drawn(character) or character in SIGNS
    return not seen and character >= " " and not "\udc80" <= character <= "\udcff"


def name(character: str) -> str:
    """The number of a character and its name, if it has one.

    "\\u202e" -> "U+202E RIGHT-TO-LEFT OVERRIDE"
    """
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
