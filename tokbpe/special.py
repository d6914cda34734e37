"""Finding special tokens in text: the longest at the leftmost place.

What is found is looked for again behind it. Flags of a spelling, which are those of the added
tokens of Hugging Face, tell which places count and how much of the text belongs to the token:

    single_word  A place counts only if no word character is next to it. One that does not count
                 is passed over: nothing is looked for inside of it.
    lstrip       White space before it belongs to the token, back to the end of the token before.
    rstrip       White space behind it belongs to the token, up to where the next one is spelled.
                 (If that one has lstrip and is nothing but some of this white space, it is gone.)
    normalized   Nothing here: whoever normalizes a text looks for these tokens afterwards.

A byte that is no UTF-8 is neither white space nor a word character.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from tokbpe import arguments, expansion, unicode
from tokbpe.arguments import Document


class SpecialTable(NamedTuple):
    """What `cut_special` looks for."""

    ids: dict[bytes, int]  # by spelling
    flags: dict[bytes, tuple[str, ...]]


Special: TypeAlias = SpecialTable | Mapping[bytes, int] | None


def special_table(
    spellings: Mapping[bytes, int], flags: Mapping[bytes, Collection[str]] | None = None
) -> SpecialTable:
    """Prepare `encode` and `count_pieces` to cut out these spellings: a mapping to their ids.

    Spellings that have flags are given theirs, as in {b"<e>": ("lstrip", "single_word")}.
    """
    ids = arguments.special_spellings(spellings)
    return SpecialTable(ids, arguments.special_flags(flags, ids))


def cut_special(document: Document, special: Special) -> list[tuple[bytes, int | None]]:
    """Cut out special tokens: the longest at the leftmost place. Other parts have no id.

    (b"a<e>", {b"<e>": 7}) -> [(b"a", None), (b"<e>", 7)]
    """
    data = arguments.document_bytes(document)
    if not isinstance(special, SpecialTable):
        special = special_table({} if special is None else special)
    if not special.ids:
        return [(data, None)]
    parts: list[tuple[bytes, int | None]] = []
    done = 0
    for start, stop, id in special_places(data, special):
        parts += [(data[done:start], None), (data[start:stop], id)]
        done = stop
    parts.append((data[done:], None))
    return [(part, id) for part, id in parts if part]


def special_places(data: bytes, table: SpecialTable) -> list[tuple[int, int, int]]:
    """Where each token begins and ends, and its id."""
    places: list[tuple[int, int, int]] = []
    done = 0
    for match in spellings_regex(table.ids).finditer(data):
        start, stop = match.span()
        flags = table.flags.get(match[0], ())
        if "single_word" in flags and not stands_alone(data, start, stop):
            continue
        if start < done:  # in the white space that the token before has taken
            if "lstrip" in flags and stop <= done:
                continue
            places[-1] = (places[-1][0], start, places[-1][2])
        elif "lstrip" in flags:
            while is_space(character_before(data, start, done)):
                start -= len(character_before(data, start, done).encode())
        if "rstrip" in flags:
            while is_space(character_behind(data, stop)):
                stop += len(character_behind(data, stop).encode())
        places.append((start, stop, table.ids[match[0]]))
        done = stop
    return places


def spellings_regex(spellings: Iterable[bytes]) -> re.Pattern[bytes]:
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile(b"|".join(map(re.escape, longest_first)))


def stands_alone(data: bytes, start: int, stop: int) -> bool:
    """Whether neither of the characters next to data[start:stop] is one of a word."""
    return not is_word(character_before(data, start)) and not is_word(character_behind(data, stop))


def is_space(char: str) -> bool:
    return char != "" and unicode.includes(unicode.ranges("White_Space"), char)


def is_word(char: str) -> bool:
    return char != "" and unicode.includes(expansion.word_ranges(), char)


def character_before(data: bytes, place: int, first: int = 0) -> str:
    """The last character of data[first:place], "" if that is empty. A byte that is no UTF-8 is
    a lone surrogate."""
    return data[max(first, place - 4) : place].decode("utf-8", "surrogateescape")[-1:]


def character_behind(data: bytes, place: int) -> str:
    """The first character of data[place:], as above."""
    return data[place : place + 4].decode("utf-8", "surrogateescape")[:1]


def chat_layout(
    turns: Iterable[tuple[str, str]],
    encode: Callable[[str], list[int]],
    reserved_id: Callable[[str], int],
    start: list[int],
) -> tuple[list[int], list[bool]]:
    """The ids of a conversation behind `start`, and which of them a model is trained on."""
    ids = list(start)
    mask = [False] * len(start)
    if isinstance(turns, str) or not isinstance(turns, Iterable):
        raise TypeError(f"turns must be pairs of texts, not {arguments.type_name(turns)}")
    for index, turn in enumerate(turns):
        role, text = arguments.chat_turn(turn, index)
        try:
            ids.append(reserved_id(role.upper()))
        except ValueError as error:
            raise ValueError(f"turn {index} has the role {role!r}: {error}") from None
        mask.append(False)
        try:
            spoken = encode(text)
        except ValueError as error:
            arguments.raise_named(error, f"turn {index}")
        spoken = [*spoken, reserved_id("EOS")]
        ids += spoken
        mask += [role.upper() == "ASSISTANT"] * len(spoken)
    return ids, mask
