"""Which format a file, a folder or a name is of: told by how a file starts, and only where that
tells nothing by its name."""

import errno
import os
import re
from collections.abc import Mapping
from typing import IO, NamedTuple

from tokbpe import arguments, files, patterns
from tokbpe.engines import Engine
from tokbpe.formats import artifact, gpt2, huggingface, printable_json, tiktoken
from tokbpe.formats.tiktoken_known import KNOWN, Known
from tokbpe.vocabulary import Vocabulary

FORMATS = ("tokbpe", "tiktoken", "huggingface", "gpt2", "json")
READABLE = (
    "a file that tokbpe saved; a rank file of tiktoken, or the name of one of its encodings, whose "
    "file lies in tiktoken's cache folder; Hugging Face's tokenizer.json, or a folder with one; "
    "GPT-2's vocab and merges, or a folder with both; a JSON file of vocab and merges"
)

# How files start. So much is read of a file before it is known to be one of these.
START = 4096  # bytes
ARTIFACT = b"tokbpe tokenizer "
RANK = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n")
MEMBER = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(.)', re.DOTALL)
HUGGING_FACE = (
    *(b"version", b"truncation", b"padding", b"added_tokens", b"normalizer", b"pre_tokenizer"),
    *(b"post_processor", b"decoder", b"model"),
)

NO_PATTERN = tiktoken.WHOLE  # says that a text is not cut, where a pattern can be given


class Found(NamedTuple):
    """A file that was read, and its format."""

    format: str
    path: str
    data: bytes
    merges: str | None  # the path of GPT-2's other file
    known: Known | None  # the encoding of tiktoken that it is of


# Finding


def find(source: str, *, name: str | None = None, merges: str | None = None) -> Found:
    """What a path, or the name of an encoding of tiktoken, leads to.

    name: the known encoding that a rank file is of. merges: the path of GPT-2's other file.

    ValueError for what is no tokenizer, with a list of what is one, and OSError for what cannot
    be read; both name the path.
    """
    if name is not None:
        arguments.choice(name, "name", KNOWN)
    path = source
    if os.path.isdir(source) and merges is None:
        path, merges = found_in(source, name)
    elif (name, merges) == (None, None) and source in KNOWN and not os.path.lexists(source):
        path, name = tiktoken.cached(source), source
    with opened(path) as file:
        start = file.read(START)
        format = format_of(start, path, named=name is not None, paired=merges is not None)
        if format is None:
            raise ValueError(f"{path}: this is no tokenizer that can be read: {READABLE}")
        with files.naming(path):
            data = files.rest_of(file, start)
    known = tiktoken.known_of(path, name) if format == "tiktoken" else None
    return Found(format, path, data, merges, known)


def found_in(folder: str, name: str | None) -> tuple[str, str | None]:
    """The path of the file in a folder, and of GPT-2's other file if it is one of two."""
    if name is not None:
        return os.path.join(folder, KNOWN[name].file), None
    path = os.path.join(folder, huggingface.FILE_NAME)
    if os.path.lexists(path):
        return path, None
    if any(os.path.lexists(os.path.join(folder, vocab)) for vocab, _ in gpt2.NAMES):
        return gpt2.found_in(folder)
    raise FileNotFoundError(
        errno.ENOENT, f"there is no tokenizer in this folder that can be read: {READABLE}", folder
    )


def opened(path: str) -> IO[bytes]:
    try:
        return files.opened(path)
    except FileNotFoundError as error:
        names = ", ".join(KNOWN)
        raise FileNotFoundError(
            error.errno, f"{error.strerror}, and it is no name of tiktoken's: {names}", path
        ) from None


def format_of(start: bytes, path: str, named: bool, paired: bool) -> str | None:
    """The format of a file that starts so; None if it is of none.

    named: it is said of which encoding of tiktoken it is. paired: it is one of two files.
    """
    if start.startswith(ARTIFACT):
        return "tokbpe"
    if RANK.match(start):
        return "tiktoken"
    if member := MEMBER.match(start):
        key, value = member.groups()
        if value.isdigit():  # a piece and its id: GPT-2's vocab, which tiktoken has, too
            return "tiktoken" if named else "gpt2"
        if key in (b"vocab", b"merges"):
            return "json"
        if key in HUGGING_FACE:
            return "huggingface"
    # What is wrong in a damaged file is told if its format can be guessed.
    if paired:
        return "gpt2"
    if named or path.endswith(".tiktoken"):
        return "tiktoken"
    return "huggingface" if os.path.basename(path) == huggingface.FILE_NAME else None


# Loading


def load(
    found: Found,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    engine: Engine,
    trust_pattern: bool = False,
) -> Vocabulary:
    """The vocabulary that a file holds.

    pattern: for a rank file, or a JSON file of vocab and merges; NO_PATTERN for no cuts.
    special_tokens: for a rank file, or for GPT-2's vocab, whose entries they are.
    trust_pattern: whether a pattern that stands in the file may take any time.

    ValueError, naming the file and the place, for anything in it that is not as it must be;
    OSError if GPT-2's other file cannot be read.
    """
    if found.format == "gpt2":
        return of_two_files(found, special_tokens)
    with files.naming(found.path):
        if found.format == "tokbpe":
            artifact.check_version(found.data[: artifact.LONGEST_FIRST_LINE])
            return artifact.loaded(found.data, engine, trust_pattern)
        if found.format == "tiktoken":
            return tiktoken.loaded(found.data, found.known, pattern, special_tokens, engine)
        if found.format == "huggingface":
            return huggingface.loaded(found.data, trust_pattern)
        cuts = None if pattern is None or pattern == NO_PATTERN else patterns.get(pattern)
        return printable_json.loaded(found.data, cuts)


def of_two_files(found: Found, special_tokens: Mapping[str, int] | None) -> Vocabulary:
    if found.merges is None:
        raise ValueError(f"{found.path}: this is GPT-2's vocab; its file of merges is needed, too")
    named = None if special_tokens is None else list(special_tokens)
    merges = files.named_read(found.merges)
    vocabulary = gpt2.loaded(found.path, found.data, found.merges, merges, named)
    for spelling, id in (special_tokens or {}).items():
        there = vocabulary.special_tokens[spelling]
        if there != id:
            raise ValueError(f"{found.path}: the special token {spelling!r} is {there}, not {id}")
    return vocabulary
