"""What the formats in GPT-2's printable characters share: their JSON, ids, pieces and merges."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tokbpe import arguments, patterns, ranks
from tokbpe.vocabulary import Vocabulary

# Reading


def parsed(data: bytes) -> Any:
    """The value of a JSON file; ValueError where it is none, or an object has a key twice."""
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=arguments.without_doubles)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def checked_vocab(vocab: object) -> dict[str, Any]:
    """An object of pieces, their ids not yet checked."""
    if not isinstance(vocab, dict):
        raise ValueError(f"vocab must be an object of pieces and ids, not {kind(vocab)}")
    if not vocab:
        raise ValueError("vocab is empty")
    return vocab


def checked_ids(vocab: Mapping[str, Any], special: Collection[str] = ()) -> dict[int, bytes]:
    """The bytes of each id. Special tokens are spelled as they are, other pieces printable."""
    pieces: dict[int, bytes] = {}
    for number, (piece, id) in enumerate(vocab.items()):
        where = f"entry {number} of vocab, {piece!r}"
        if not piece:
            raise ValueError(f"{where}: a piece must not be empty")
        if type(id) is not int or not 0 <= id < arguments.LARGEST_VOCABULARY:
            raise ValueError(
                f"{where}: an id must be a whole number from 0 to "
                f"{arguments.LARGEST_VOCABULARY - 1}, not {id!r}"
            )
        if id in pieces:
            other = next(other for other, same in vocab.items() if same == id)
            raise ValueError(f"{where}: the id {id} is that of {other!r} already")
        try:
            is_special = piece in special
            pieces[id] = piece.encode("utf-8") if is_special else patterns.from_printable(piece)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    ranks.check_gaps(max(pieces), len(pieces))
    return pieces


def check_merges(
    merges: Iterable[Sequence[str]], vocab: Collection[str], what: str = "merge", first: int = 0
) -> None:
    """ValueError for a merge of or to what is no piece, and for one that stands twice.

    what, first: the name of a merge's place, and the number of the first.
    """
    numbers: dict[tuple[str, str], int] = {}
    for number, (left, right) in enumerate(merges, first):
        for piece in (left, right, left + right):
            if piece not in vocab:
                raise ValueError(
                    f"{what} {number} joins {left!r} and {right!r}, but {piece!r} is no piece of "
                    "the vocab"
                )
        if numbers.setdefault((left, right), number) != number:
            raise ValueError(
                f"{what}s {numbers[left, right]} and {number} both join {left!r} and {right!r}"
            )


def kind(value: object) -> str:
    """What a JSON value is, for messages."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return names.get(type(value), "null" if value is None else "a number")


# Writing


def shown_pieces(vocabulary: Vocabulary) -> dict[int, str]:
    """By id, each piece in printable characters, each special token as it is spelled."""
    shown = {id: patterns.to_printable(piece) for id, piece in vocabulary.items()}
    for spelling, id in vocabulary.special_tokens.items():
        shown[id] = spelling
    return shown


def vocab_of(shown: Mapping[int, str]) -> dict[str, int]:
    """Piece -> id, in rising order; ValueError where two ids have one piece, and for ids that are
    so far apart that reading them would be refused."""
    ranks.check_gaps(max(shown), len(shown))
    vocab: dict[str, int] = {}
    for id, piece in sorted(shown.items()):
        if vocab.setdefault(piece, id) != id:
            raise ValueError(
                f"ids {vocab[piece]} and {id} are both {piece!r}: "
                "this format can give a piece one id only"
            )
    return vocab
