"""A vocabulary as one JSON file, in the printable characters of GPT-2.

    {"vocab": {"h": 0, "o": 1, ..., "ho": 4}, "merges": [["h", "o"], ...]}

The merges stand in their order; an id is that of a piece, in any order. The file holds bytes and
merges alone: no split pattern, no special tokens, no record of the training.
"""

import json
from typing import Any

import numpy as np

from tokbpe import files, patterns
from tokbpe.formats.printable import (
    check_merges,
    checked_ids,
    checked_vocab,
    kind,
    parsed,
    shown_pieces,
    vocab_of,
)
from tokbpe.formats.refusal import refuse_what_is_lost
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

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
    shown = shown_pieces(vocabulary)
    vocab = vocab_of(shown)
    merges = [(shown[left], shown[right]) for left, right in vocabulary.merges.tolist()]
    text = json.dumps({"vocab": vocab, "merges": merges}, ensure_ascii=False)
    data = text.encode("utf-8") + b"\n"
    try:
        loaded(data, None)  # of another's vocabulary a merge may be missing, or one too many
    except ValueError as error:
        raise ValueError(f"this format cannot hold all of this vocabulary: {error}") from error
    return data


# Reading


def load(path: files.Path, pattern: str | Pattern | None = None) -> Vocabulary:
    """The vocabulary that a file holds, with a pattern, which files of this format lack.

    ValueError, naming the file and the place, for anything in it that is not as it must be;
    OSError if it cannot be read.
    """
    checked = patterns.for_unit(pattern, "byte")
    with files.naming(path):
        return loaded(files.read(path), checked)


def loaded(data: bytes, pattern: Pattern | None) -> Vocabulary:
    """The vocabulary of the bytes of a file."""
    vocab, merges = parts(data)
    ids = checked_ids(vocab)
    made = made_pieces(merges, vocab)
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


def parts(data: bytes) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The vocab and the merges of a file, their pieces not yet checked."""
    found = parsed(data)
    if not isinstance(found, dict) or found.keys() != {"vocab", "merges"}:
        shown = sorted(found) if isinstance(found, dict) else kind(found)
        raise ValueError(f"the file must hold an object with vocab and merges, not {shown}")
    merges = found["merges"]
    if not isinstance(merges, list):
        raise ValueError(f"merges must be a list of pairs, not {kind(merges)}")
    for number, pair in enumerate(merges):
        if not is_pair(pair):
            raise ValueError(f"merge {number} must be a list of two pieces, not {pair!r}")
    return checked_vocab(found["vocab"]), [(left, right) for left, right in merges]


def is_pair(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(piece, str) for piece in value)
    )


def made_pieces(merges: list[tuple[str, str]], vocab: dict[str, int]) -> dict[str, int]:
    """The pieces that the merges make, in their order, each with the number of its merge."""
    check_merges(merges, vocab)
    made: dict[str, int] = {}
    for number, (left, right) in enumerate(merges):
        if made.setdefault(left + right, number) != number:
            raise ValueError(f"merges {made[left + right]} and {number} both make {left + right!r}")
    return made
