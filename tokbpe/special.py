"""Finding special tokens in text."""

import re
from collections.abc import Callable, Iterable, Mapping

from tokbpe import arguments
from tokbpe.arguments import Document


def special_table(special: Mapping[bytes, int]) -> dict[bytes, int]:
    """Prepare `encode` and `count_pieces` to cut out these spellings: a mapping to their ids."""
    return arguments.special_spellings(special)


def cut_special(
    document: Document, special: Mapping[bytes, int] | None
) -> list[tuple[bytes, int | None]]:
    """Cut out special tokens: the longest at the leftmost place. Other parts have no id.

    (b"a<e>", {b"<e>": 7}) -> [(b"a", None), (b"<e>", 7)]
    """
    data = arguments.document_bytes(document)
    special = {} if special is None else arguments.special_spellings(special)
    if not special:
        return [(data, None)]
    longest_first = sorted(special, key=len, reverse=True)
    regex = re.compile(b"(" + b"|".join(map(re.escape, longest_first)) + b")")
    return [
        (part, special[part] if number % 2 else None)
        for number, part in enumerate(regex.split(data))
        if part
    ]


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
        spoken = [*encode(text), reserved_id("EOS")]
        ids += spoken
        mask += [role.upper() == "ASSISTANT"] * len(spoken)
    return ids, mask
