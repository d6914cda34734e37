"""GPT-2's two files: the pieces with their ids, and the merges in their order.

    vocab.json, or encoder.json    {"!": 0, "\\"": 1, ..., "\\u0120the": 262, ...}
    merges.txt, or vocab.bpe       #version: 0.2
                                   \\u0120 t
                                   \\u0120 a
                                   ...

Both are in printable characters. Special tokens are entries of the vocab too, spelled as they
are. The pattern is that of GPT-2 and stands in neither.
"""

import errno
import json
import os
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tokbpe import arguments, equivalence, files, patterns
from tokbpe.engines import Engine
from tokbpe.formats.printable import (
    check_merges,
    checked_ids,
    checked_vocab,
    parsed,
    shown_pieces,
    vocab_of,
)
from tokbpe.formats.refusal import refuse_what_is_lost
from tokbpe.vocabulary import Vocabulary, join_lower_ids

NAMES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
PATTERN = patterns.NAMED["gpt2"]
HEADER = "#version"
END_OF_TEXT = "<|endoftext|>"
# What has a place in the files, or is made to fit.
HELD = ("special_tokens", "merge_rule", "whole_piece_lookup")

# Reading


def load(
    vocab: files.Path,
    merges: files.Path | None = None,
    *,
    special_tokens: Sequence[str] | None = None,
) -> Vocabulary:
    """The vocabulary of two files, or of a folder that holds them under their usual names.

    special_tokens: entries of the vocab that are special tokens; None: `<|endoftext|>`, if it is
        an entry that no merge makes.

    ValueError, naming the file and the entry or line, for anything in them that is not as it must
    be; OSError if they cannot be read.
    """
    if merges is None:
        vocab, merges = found_in(vocab)
    data = files.named_read(vocab), files.named_read(merges)
    return loaded(vocab, data[0], merges, data[1], special_tokens)


def loaded(
    vocab: files.Path,
    vocab_data: bytes,
    merges: files.Path,
    merges_data: bytes,
    special_tokens: Sequence[str] | None,
) -> Vocabulary:
    """The vocabulary of the bytes of two files, whose paths are for messages."""
    named = None if special_tokens is None else arguments.names(special_tokens, "special_tokens")
    with files.naming(merges):
        pairs, first = merges_of(merges_data)
    with files.naming(vocab):
        ids = checked_vocab(parsed(vocab_data))
        special = special_of(ids, pairs, named)
        pieces = checked_pieces(ids, pairs, special)
    with files.naming(merges):
        check_merges(pairs, ids.keys() - special.keys(), "line", first)
    return vocabulary_of(ids, pairs, special, pieces)


def found_in(folder: files.Path) -> tuple[str, str]:
    """The paths of the two files in a folder."""
    where = os.fsdecode(folder)
    pairs = [(os.path.join(where, vocab), os.path.join(where, merges)) for vocab, merges in NAMES]
    found = [pair for pair in pairs if all(map(os.path.lexists, pair))]
    if len(found) == 1:
        return found[0]
    wanted = " or ".join(map(" and ".join, NAMES))
    what = "holds both pairs" if found else "does not hold them"
    raise FileNotFoundError(
        errno.ENOENT, f"a folder with either {wanted} is wanted; this one {what}", where
    )


def merges_of(data: bytes) -> tuple[list[tuple[str, str]], int]:
    """The merges of a file, and the number of the line with the first."""
    text = data.decode("utf-8-sig").rstrip("\r\n")
    lines = text.split("\n") if text else []
    first = 2 if text.startswith(HEADER) else 1
    merges = []
    for number, line in enumerate(lines[first - 1 :], first):
        left, space, right = line.removesuffix("\r").partition(" ")
        if not left or not right or " " in right:
            raise ValueError(
                f"line {number} must be two pieces with a space between them, not {line[:80]!r}"
            )
        merges.append((left, right))
    return merges, first


def special_of(
    ids: Mapping[str, int], merges: Collection[tuple[str, str]], named: Sequence[str] | None
) -> dict[str, int]:
    """The special tokens among the entries of the vocab."""
    if named is None:
        made = any(left + right == END_OF_TEXT for left, right in merges)
        named = () if made or END_OF_TEXT not in ids else (END_OF_TEXT,)
    for spelling in named:
        if spelling not in ids:
            raise ValueError(f"the special token {spelling!r} is no entry of vocab")
    return {spelling: ids[spelling] for spelling in named}


def checked_pieces(
    ids: Mapping[str, int], merges: Collection[tuple[str, str]], special: Collection[str]
) -> dict[int, bytes]:
    """The bytes of each id: of a byte, of what a merge makes, of a special token."""
    pieces = checked_ids(ids, special)
    made = {left + right for left, right in merges}
    for number, piece in enumerate(ids):
        if len(piece) > 1 and piece not in made and piece not in special:
            raise ValueError(
                f"entry {number} of vocab, {piece!r}, is neither a single byte, nor made by a "
                f"merge, nor one of the special tokens {list(special)}"
            )
    return pieces


def vocabulary_of(
    ids: Mapping[str, int],
    merges: Collection[tuple[str, str]],
    special: Mapping[str, int],
    pieces: Mapping[int, bytes],
) -> Vocabulary:
    """The vocabulary; in the form of a trained one, where merges and ids are as in these."""
    others = set(special.values())
    pairs = np.array([(ids[left], ids[right]) for left, right in merges], np.uint32).reshape(-1, 2)
    made = np.array([ids[left + right] for left, right in merges], np.uint32)
    base = [id for id, piece in pieces.items() if len(piece) == 1 and id not in others]
    start = made[0] if len(made) else max(base, default=-1) + 1
    as_trained = (
        np.array_equal(made, np.arange(start, start + len(made)))
        and join_lower_ids(pairs, made).all()
        and max(base, default=-1) < start
    )
    size = start if as_trained else max(pieces) + 1
    return Vocabulary(
        "bpe",
        tuple(None if id in others else pieces.get(id) for id in range(size)),
        merges=pairs,
        merge_ids=None if as_trained else made,
        pattern=PATTERN,
        special_tokens=special,
    )


# Writing


def save(vocabulary: Vocabulary, folder: files.Path, engine: Engine) -> None:
    """Write vocab.json and merges.txt into a folder: both, or none of them.

    ValueError, naming it, for what the format cannot hold; OSError if one of the two exists or
    cannot be written.
    """
    contents = dumped(vocabulary, engine)
    paths = [os.fsencode(os.path.join(os.fsdecode(folder), name)) for name in NAMES[0]]
    for path in paths:
        with files.naming_target(os.fsdecode(path)):
            if os.path.lexists(path):
                raise files.already_there()
    written, inode = 0, None
    try:
        for path, data in zip(paths, contents):
            inode = None
            with files.new_file(path) as file:
                inode = os.fstat(file.fileno()).st_ino
                files.write(file, data)
            written += 1
    except BaseException as error:
        # To remove bytes takes no memory, and a loop would.
        if written > 0 or is_own(paths[0], inode, error):
            remove(paths[0])
        if written > 1 or (written == 1 and is_own(paths[1], inode, error)):
            remove(paths[1])
        raise


def is_own(path: bytes, inode: int | None, error: BaseException) -> bool:
    """Whether the file that was being written has its name already, as it may if an interrupt
    came. With an OSError it has none, and what stands there is of others."""
    if isinstance(error, OSError):
        return False
    try:
        return os.lstat(path).st_ino == inode
    except FileNotFoundError:
        return False
    except MemoryError:
        return True


def remove(path: bytes) -> None:
    try:  # noqa: SIM105  (which would take memory)
        os.unlink(path)
    except FileNotFoundError:
        pass


def dumped(vocabulary: Vocabulary, engine: Engine) -> tuple[bytes, bytes]:
    """The bytes of the two files."""
    refuse_what_is_lost(vocabulary, HELD)
    if vocabulary.pattern != PATTERN:
        raise ValueError(
            f"this format holds no pattern, and that of GPT-2 is meant, not {vocabulary.pattern!r}"
        )
    listed = equivalence.as_merge_list(vocabulary, engine)
    refuse_what_no_merge_makes(listed, engine)
    shown = shown_pieces(listed)
    vocab = json.dumps(checked_vocab(vocab_of(shown)), ensure_ascii=False) + "\n"
    merges = [f"{shown[left]} {shown[right]}\n" for left, right in listed.merges.tolist()]
    return vocab.encode("utf-8"), "".join([f"{HEADER}: 0.2\n", *merges]).encode("utf-8")


def refuse_what_no_merge_makes(listed: Vocabulary, engine: Engine) -> None:
    """ValueError for a piece of which the list of merges makes nothing, or something else where
    looking it up makes it."""
    made = set(listed.ids_of_merges.tolist())
    for id, piece, ids in equivalence.alone(listed, engine):
        if id not in made or (listed.whole_piece_lookup and ids != [id]):
            raise ValueError(
                f"this format cannot hold the piece {piece!r}, id {id}: its merges make it {ids}"
            )
