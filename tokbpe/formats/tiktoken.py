"""tiktoken: rank files, its known encodings, and its `Encoding` objects.

    IQ== 0        on each line a piece in base64 and its rank, which is its id
    Ig== 1
    ...

A rank file holds neither a pattern nor special tokens: tiktoken has those of its encodings in its
code, and so has `tiktoken_known`. Nothing is downloaded: files are looked for where tiktoken keeps
them.
"""

import binascii
import errno
import hashlib
import os
from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import itemgetter
from typing import Any

from tokbpe import arguments, equivalence, files, patterns
from tokbpe.engines import Engine
from tokbpe.formats.printable import checked_ids, checked_vocab, parsed
from tokbpe.formats.refusal import refuse_what_is_lost
from tokbpe.formats.tiktoken_known import END_OF_TEXT, KNOWN, Known, without_placeholders
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
CACHE_FOLDER = "data-gym-cache"  # in the folder for temporary files
WHOLE = "(?s:.+)"  # a pattern that takes a text whole: tiktoken cannot do without one
HELD = ("special_tokens", "merge_rule", "whole_piece_lookup")

# Reading


def load(
    source: Any,
    *,
    name: str | None = None,
    pattern: str | Pattern | None = None,
    special_tokens: Mapping[str, int] | None = None,
    engine: Engine,
) -> Vocabulary:
    """The vocabulary of a rank file, a known encoding or a `tiktoken.Encoding`.

    source: the path of a rank file, or of a folder that holds the file of a known encoding; the
        name of a known encoding, whose file lies in tiktoken's cache folder; or an `Encoding`.
    name: the known encoding whose file a path leads to. By default the name that the file has.
    pattern, special_tokens: for a rank file. Those of the known encoding, if there is one, by
        default; otherwise a pattern must be given, and there are no special tokens.

    The file of a known encoding must have the SHA-256 that tiktoken demands, unless both its
    pattern and its special tokens are given.

    ValueError, naming the file and the line, for anything in it that is not as it must be; OSError
    if it cannot be read, FileNotFoundError, naming the place, if it is not in the cache folder.
    """
    if is_encoding(source):
        if (name, pattern, special_tokens) != (None, None, None):
            raise ValueError("an Encoding has a name, a pattern and special tokens of its own")
        return of_encoding(source, engine)
    path, known = place_of(source, name)
    with files.naming(path):
        return loaded(files.read(path), known, pattern, special_tokens, engine)


def loaded(
    data: bytes,
    known: Known | None,
    pattern: str | Pattern | None,
    special_tokens: Mapping[str, int] | None,
    engine: Engine,
) -> Vocabulary:
    """The vocabulary of the bytes of a file."""
    if known is not None:
        if known.is_json or pattern is None or special_tokens is None:
            check_digest(data, known)
        pattern = known.pattern if pattern is None else pattern
        special_tokens = known.special_tokens if special_tokens is None else special_tokens
    if pattern is None:
        raise ValueError(
            "a rank file holds no pattern: give one, and special_tokens, or give as name one "
            f"of {', '.join(map(repr, KNOWN))}"
        )
    pieces = json_pieces(data) if known and known.is_json else engine.read_ranks(data)
    return vocabulary_of(pieces, pattern, {} if special_tokens is None else special_tokens)


def place_of(source: object, name: str | None) -> tuple[str, Known | None]:
    """The path of a rank file, and the known encoding that it is of."""
    if name is None and isinstance(source, str) and source in KNOWN:
        return cached(source), KNOWN[source]
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise TypeError(
            "a path, the name of a known encoding or a tiktoken.Encoding is wanted, "
            f"not {arguments.type_name(source)}"
        )
    path = os.fsdecode(source)
    known = known_of(path, name)
    if known is not None and os.path.isdir(path):
        path = os.path.join(path, known.file)
    return path, known


def known_of(path: str, name: str | None) -> Known | None:
    """The known encoding that a path is of, by the name that is given, or by its own."""
    if name is not None:
        return KNOWN[arguments.choice(name, "name", KNOWN)]
    return KNOWN.get(os.path.splitext(os.path.basename(os.path.normpath(path)))[0])


def cached(name: str) -> str:
    """The path in tiktoken's cache folder of the file of a known encoding."""
    variable = next((name for name in CACHE_VARIABLES if name in os.environ), None)
    if variable is None:
        import tempfile

        folder = os.path.join(tempfile.gettempdir(), CACHE_FOLDER)
    else:
        folder = os.environ[variable]
    known = KNOWN[name]
    path = os.path.join(folder, hashlib.sha1(known.url.encode()).hexdigest())
    if folder and os.path.lexists(path):
        return path
    where = path if folder else f"{variable} is empty, which means that there is no such folder"
    raise FileNotFoundError(
        errno.ENOENT,
        f"{known.file} is not in tiktoken's cache folder, and tokbpe downloads nothing; let "
        f"tiktoken.get_encoding({name!r}) fetch it, or give its path, and {name!r} as name",
        where,
    )


def check_digest(data: bytes, known: Known) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != known.sha256:
        raise ValueError(
            f"this is not the file {known.file} of tiktoken, which has the SHA-256 {known.sha256}, "
            f"but this one {found}; another rank file needs a pattern and special_tokens"
        )


def json_pieces(data: bytes) -> tuple[bytes | None, ...]:
    """The pieces by rank of GPT-2's `encoder.json`, whose ids are the ranks."""
    ids = checked_vocab(parsed(data))
    del ids[END_OF_TEXT]
    pieces = checked_ids(ids)
    return tuple(pieces[id] for id in range(len(pieces)))


def is_encoding(source: object) -> bool:
    """Whether it is a `tiktoken.Encoding`, said without an import of tiktoken."""
    return any(
        (cls.__module__, cls.__name__) == ("tiktoken.core", "Encoding")
        for cls in type(source).__mro__
    )


def of_encoding(encoding: Any, engine: Engine) -> Vocabulary:
    """The vocabulary of a `tiktoken.Encoding`."""
    ranks = sorted(encoding._mergeable_ranks.items(), key=itemgetter(1))
    pieces = engine.read_ranks(rank_lines((rank, piece) for piece, rank in ranks))
    special_tokens = without_placeholders(encoding._special_tokens)
    return vocabulary_of(pieces, encoding._pat_str, special_tokens)


def vocabulary_of(
    pieces: tuple[bytes | None, ...],
    pattern: str | Pattern,
    special_tokens: Mapping[str, int],
) -> Vocabulary:
    return Vocabulary(
        "bpe",
        pieces,
        pattern=checked_pattern(pattern),
        special_tokens=special_tokens,
        merge_rule="rank_by_piece",
        whole_piece_lookup=True,
    )


def checked_pattern(pattern: str | Pattern) -> Pattern | None:
    """The pattern that a name or the spelling for tiktoken stands for; None for WHOLE."""
    if pattern == WHOLE:
        return None
    if isinstance(pattern, str) and not patterns.MERE_WORD.fullmatch(pattern):
        return patterns.from_tiktoken(pattern)
    return patterns.get(pattern)


# Writing


def save(vocabulary: Vocabulary, path: files.Path, engine: Engine) -> str:
    """Write a rank file to a new path; the lines of Python that rebuild the encoding from it.

    ValueError, naming it, for what tiktoken cannot hold, or would encode otherwise; OSError if
    the path exists or cannot be written.
    """
    refuse_what_is_lost(vocabulary, HELD)
    refuse_ambiguous(vocabulary.special_tokens)
    pattern = WHOLE if vocabulary.pattern is None else patterns.to_tiktoken(vocabulary.pattern)
    data = rank_lines(ranked_pieces(vocabulary, engine).items())
    files.publish(path, data)
    return recipe(os.fsdecode(path), data, pattern, vocabulary.special_tokens)


def refuse_ambiguous(special_tokens: Iterable[str]) -> None:
    """ValueError for special tokens of which tiktoken would not take the longest."""
    for first, second in pairwise(sorted(special_tokens)):
        if second.startswith(first):
            raise ValueError(
                f"the special token {second!r} begins with another one, {first!r}: "
                "which of both tiktoken takes is not said"
            )


def ranked_pieces(vocabulary: Vocabulary, engine: Engine) -> dict[int, bytes]:
    """The pieces by rank."""
    known = equivalence.ordinary_pieces(vocabulary)
    missing = {*range(256)} - {piece[0] for piece in known.values() if len(piece) == 1}
    if missing:
        raise ValueError(
            f"tiktoken needs all single bytes; {len(missing)} have no id, 0x{min(missing):02x} is "
            "the first of them"
        )
    if vocabulary.merge_rule == "rank_by_piece" and vocabulary.whole_piece_lookup:
        return known
    return equivalence.ranks_of_merges(vocabulary, engine)


def rank_lines(pieces: Iterable[tuple[int, bytes]]) -> bytes:
    """A rank file of pieces in the order of their ranks."""
    lines = [b"%s %d\n" % (binascii.b2a_base64(piece, newline=False), id) for id, piece in pieces]
    return b"".join(lines)


def recipe(path: str, data: bytes, pattern: str, special_tokens: Mapping[str, int]) -> str:
    """Python that rebuilds an encoding from its rank file.

    The SHA-256 makes tiktoken, which keeps copies of what it once read, see that a file changed.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    return f"""\
import tiktoken
from tiktoken.load import load_tiktoken_bpe

encoding = tiktoken.Encoding(
    {name!r},
    pat_str={pattern!r},
    mergeable_ranks=load_tiktoken_bpe(
        {path!r},
        {hashlib.sha256(data).hexdigest()!r},
    ),
    special_tokens={dict(special_tokens)!r},
)
"""
