"""A vocabulary as one JSON file, in the printable characters of GPT-2.

    {"vocab": {"h": 0, "o": 1, ..., "ho": 4}, "merges": [["h", "o"], ...]}

The merges stand in their order; an id is that of a piece, in any order. The file holds bytes and
merges alone: no split pattern, no special tokens, no record of the training.
"""

import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tokbpe import arguments, patterns
from tokbpe.formats import files
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

METHODS = ("byte", "bpe")
MOST_GAPS = 2**24


# Writing


def save(vocabulary: Vocabulary, path: files.Path) -> None:
    """Write a vocabulary to a new path; its pattern is not in the file.

    ValueError, naming it, for what the format cannot hold; OSError if the path exists or cannot
    be written.
    """
    files.publish(path, dumped(vocabulary))


def dumped(vocabulary: Vocabulary) -> bytes:
    """The bytes of the file, with the ids in rising order."""
    refuse_what_is_lost(vocabulary)
    shown = [
        None if piece is None else patterns.to_printable(piece) for piece in vocabulary.pieces()
    ]
    vocab: dict[str, int] = {}
    for id, piece in enumerate(shown):
        if piece is not None and vocab.setdefault(piece, id) != id:
            raise ValueError(
                f"ids {vocab[piece]} and {id} are both {piece!r}: "
                "this format can give a piece one id only"
            )
    merges = [(shown[left], shown[right]) for left, right in vocabulary.merges.tolist()]
    text = json.dumps({"vocab": vocab, "merges": merges}, ensure_ascii=False)
    return text.encode("utf-8") + b"\n"


def refuse_what_is_lost(vocabulary: Vocabulary) -> None:
    """ValueError for what encodes or decodes but has no place in the file."""
    lost = {
        f"the method {vocabulary.method!r}": vocabulary.method not in METHODS,
        f"the unit {vocabulary.unit!r}": vocabulary.unit != "byte",
        f"the special tokens {list(vocabulary.special_tokens)}": vocabulary.special_tokens,
        f"the reserved ids {list(vocabulary.reserved)}": vocabulary.reserved,
        f"the merge rule {vocabulary.merge_rule!r}": vocabulary.merge_rule != "merge_list",
        "the lookup of whole pieces": vocabulary.whole_piece_lookup,
        "an id for what is unknown": vocabulary.unknown is not None,
    }
    for what, there in lost.items():
        if there:
            raise ValueError(f"this format cannot hold {what}; use save() for all of a tokenizer")


# Reading


def load(path: files.Path, pattern: str | Pattern | None = None) -> Vocabulary:
    """The vocabulary that a file holds, with a pattern, which files of this format lack.

    ValueError, naming the file and the place, for anything in it that is not as it must be;
    OSError if it cannot be read.
    """
    checked = patterns.for_unit(pattern, "byte")
    with open(os.fspath(path), "rb") as file:  # not a number, which would be an open file
        data = file.read()
    try:
        return loaded(data, checked)
    except ValueError as error:
        raise ValueError(f"{os.fsdecode(path)}: {error}") from error


def loaded(data: bytes, pattern: Pattern | None) -> Vocabulary:
    """The vocabulary of the bytes of a file."""
    vocab, merges = parts(data)
    ids = checked_ids(vocab)
    made = checked_merges(merges, vocab)
    for piece in vocab:
        if len(piece) > 1 and piece not in made:
            raise ValueError(f"the piece {piece!r} is neither a single byte nor made by a merge")
    bytes_of_ids = {id: piece for id, piece in ids.items() if len(piece) == 1}
    alphabet = tuple(bytes_of_ids.get(id) for id in range(max(bytes_of_ids, default=-1) + 1))
    merge_ids = [vocab[piece] for piece in made]
    follow = merge_ids == list(range(len(alphabet), len(alphabet) + len(merge_ids)))
    pairs = [(vocab[left], vocab[right]) for left, right in merges]
    return Vocabulary(
        "bpe" if merges else "byte",
        alphabet,
        merges=np.array(pairs, np.uint32).reshape(-1, 2),
        merge_ids=None if follow else np.array(merge_ids, np.uint32),
        pattern=pattern,
    )


def parts(data: bytes) -> tuple[dict[str, Any], list[Any]]:
    """The vocab and the merges of a file, their members not yet checked."""
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=without_doubles)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(found, dict) or found.keys() != {"vocab", "merges"}:
        shown = sorted(found) if isinstance(found, dict) else kind(found)
        raise ValueError(f"the file must hold an object with vocab and merges, not {shown}")
    vocab, merges = found["vocab"], found["merges"]
    if not isinstance(vocab, dict):
        raise ValueError(f"vocab must be an object of pieces and ids, not {kind(vocab)}")
    if not vocab:
        raise ValueError("vocab is empty")
    if not isinstance(merges, list):
        raise ValueError(f"merges must be a list of pairs, not {kind(merges)}")
    return vocab, merges


def without_doubles(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless a key stands in it twice."""
    found = dict(members)
    if len(found) != len(members):
        seen: set[str] = set()
        for key, _ in members:
            if key in seen:
                raise ValueError(f"the key {key!r} stands twice in an object")
            seen.add(key)
    return found


def checked_ids(vocab: dict[str, Any]) -> dict[int, bytes]:
    """The bytes of each id."""
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
            other = patterns.to_printable(pieces[id])
            raise ValueError(f"{where}: the id {id} is that of {other!r} already")
        try:
            pieces[id] = patterns.from_printable(piece)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    # A short file must not ask for gigabytes, which a table by id would have.
    gaps = max(pieces) + 1 - len(pieces)
    if gaps > MOST_GAPS:
        raise ValueError(
            f"the highest id is {max(pieces)}, so that {gaps} ids have no piece; "
            f"at most {MOST_GAPS} may lack one"
        )
    return pieces


def checked_merges(merges: Iterable[Any], vocab: dict[str, int]) -> dict[str, int]:
    """The pieces that the merges make, in their order, each with the number of its merge."""
    made: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    for number, pair in enumerate(merges):
        if not is_pair(pair):
            raise ValueError(f"merge {number} must be a list of two pieces, not {pair!r}")
        left, right = pair
        for piece in (left, right, left + right):
            if piece not in vocab:
                raise ValueError(
                    f"merge {number} joins {left!r} and {right!r}, but {piece!r} is no piece of "
                    "the vocab"
                )
        if pairs.setdefault((left, right), number) != number:
            raise ValueError(
                f"merges {pairs[left, right]} and {number} both join {left!r} and {right!r}"
            )
        if made.setdefault(left + right, number) != number:
            raise ValueError(f"merges {made[left + right]} and {number} both make {left + right!r}")
    return made


def is_pair(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(piece, str) for piece in value)
    )


def kind(value: object) -> str:
    """What a JSON value is, for messages."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return names.get(type(value), "null" if value is None else "a number")
