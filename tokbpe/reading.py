"""Files of any size as documents, in blocks that memory holds.

A block is some whole documents, or a part of a single one that is larger. `safe_cut` says where
such parts may end, for the work that is done with them.

Files are read, not mapped: when another process makes a mapped file shorter, a look at what is
gone ends this process (SIGBUS), where a read just comes to an end. Copying costs a few percent of
what encoding does.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from tokbpe import arguments, files, patterns, unicode
from tokbpe.patterns import Pattern
from tokbpe.special import character_before, character_behind, is_space

BLOCK_BYTES = 2**22
# Of a document that cannot be cut, or not soon enough.
MOST_BYTES = 2**30

WHOLE = "whole"
LINE = "line"

# How far back a place to cut is looked for at a time: two bytes or more. There mostly is one near.
WINDOW = 2**10
# What stands before a place, and the white space that it is in front of, or behind.
BEFORE_SPACE = re.compile(rb"[!-~\x80-\xff] ")
BEFORE_SPACE_OR_BEHIND_LINE = re.compile(rb"[!-~\x80-\xff][ \n]")
LONGEST_CHARACTER = 4

Source: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes] | BinaryIO
# Takes bytes and a place in them, gives the last safe cut up to there, 0 for none.
Cut: TypeAlias = Callable[[bytes, int], int]


class Separation(NamedTuple):
    """How a file is made of documents. Behind the last separator there is one more if anything
    is there."""

    separator: bytes | None  # None: the file is one document
    line: bool = False  # a line may end with "\r\n" as well

    @property
    def overlap(self) -> int:
        """How much of a separator can stand at the end of what has none."""
        return len(self.separator) - 1 if self.separator else 0

    def place(self, number: int) -> str:
        """What a document of a file is called; "" for the only one."""
        return "" if self.separator is None else f"document {number}"

    def split(self, data: bytes) -> list[bytes]:
        """The documents that end in some bytes, and what is behind them."""
        if self.separator is None:
            return [data]
        *documents, rest = data.split(self.separator)
        if self.line and b"\r" in data:
            documents = [document.removesuffix(b"\r") for document in documents]
        return [*documents, rest]


class Block(NamedTuple):
    """Some whole documents, or a part of one."""

    texts: list[bytes]
    number: int  # of the first document in the file
    start: int = 0  # of the part in its document
    last: bool = True  # whether the document ends here


def separation(documents: object) -> Separation:
    """What `documents` asks for: "whole", "line" or a separator."""
    if documents == WHOLE:
        return Separation(None)
    if documents == LINE:
        return Separation(b"\n", line=True)
    if not isinstance(documents, (str, bytes)):
        raise TypeError(
            f"documents must be {WHOLE!r}, {LINE!r} or a separator, "
            f"not {arguments.type_name(documents)}"
        )
    if not documents:
        raise ValueError("documents must be separated by something: the separator is empty")
    return Separation(arguments.document_bytes(documents))


def sources(found: Sequence[Any], or_open: bool = True) -> Sequence[Any]:
    """Paths, `or_open` files; TypeError or ValueError, naming the place, for what is neither."""
    for number, source in enumerate(found):
        if or_open and hasattr(source, "read"):
            continue
        if not isinstance(source, (str, bytes, os.PathLike)):
            what = "a path or an open file" if or_open else "a path"
            raise TypeError(f"path {number} must be {what}, not {arguments.type_name(source)}")
        if "\0" in os.fsdecode(source):
            raise ValueError(f"path {number}, {source!r}, has a null byte, which no path has")
    return found


def opened(source: Source) -> AbstractContextManager[Any]:
    """A file that is opened here, or one that is open, which stays so. OSError for a device, which
    may never come to an end; a pipe is waited for."""
    if hasattr(source, "read"):
        return nullcontext(source)
    path = os.fspath(source)
    files.check_path(path)
    files.check_kind(os.stat(path), os.fsdecode(path))
    return open(path, "rb")


def file_name(source: Source) -> str:
    """What a file is called in errors."""
    name = getattr(source, "name", "a file") if hasattr(source, "read") else source
    return os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else str(name)


def blocks(
    file: Any, separation: Separation, size: int, cut: Cut | None, most: int | None = None
) -> Iterator[Block]:
    """A file in blocks of about so many bytes, larger only where nothing smaller can be cut.

    cut: finds where a document can be cut; None: each one stays whole.
    most: a document that has more bytes need not end, since nobody wants it; None for any size.
    """
    rest = b""
    number = start = 0
    unchanged = state(file)
    while data := read(file, max(size, len(rest)), unchanged):
        *documents, rest = separation.split(rest + data)
        if documents and start:
            yield Block([documents.pop(0)], number, start)
            number, start = number + 1, 0
        if documents:
            yield Block(documents, number)
            number += len(documents)
        if len(rest) >= size:
            place = cut(rest, len(rest) - separation.overlap) if cut else 0
            if place:
                yield Block([rest[:place]], number, start, last=False)
                rest = rest[place:]
                start += place
            elif most is not None and len(rest) > most + separation.overlap:
                yield Block([rest], number)
                return
            elif len(rest) > MOST_BYTES:
                raise too_large(number, start, cut)
    if rest or separation.separator is None:
        yield Block([rest], number, start)


def grouped(documents: Iterable[bytes], size: int, most: int | None = None) -> Iterator[Block]:
    """Documents in blocks of about so many bytes, and of so many documents at most."""
    number = held = 0
    texts: list[bytes] = []
    for document in documents:
        texts.append(document)
        held += len(document)
        if held >= size or len(texts) == most:
            yield Block(texts, number)
            number, held, texts = number + len(texts), 0, []
    if texts:
        yield Block(texts, number)


def read(file: Any, size: int, unchanged: object) -> bytes:
    """The next bytes of a file, b"" at its end."""
    data = file.read(size)
    if not isinstance(data, bytes):
        raise TypeError(
            f"the file must be open for reading bytes; it gives {arguments.type_name(data)}"
        )
    if state(file) != unchanged:
        raise OSError(errno.EIO, "the file was changed while it was read", file_name(file))
    return data


def all_bytes(file: Any) -> bytes:
    """What is left of a file; OSError if it changes meanwhile, so that none is read for ever."""
    unchanged = state(file)
    if unchanged is None:
        return read(file, -1, None)
    parts: list[bytes] = []
    left = unchanged[0] + 1
    # What is packed has more bytes than the file, and so have some files of the system.
    while data := read(file, max(left, BLOCK_BYTES), unchanged):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def state(file: Any) -> tuple[int, int] | None:
    """What tells whether a file has changed, None for what is no file on a disk."""
    try:
        status = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return None
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def too_large(number: int, start: int, cut: Cut | None) -> ValueError:
    if cut is None:
        return ValueError(
            f"document {number} has more than {MOST_BYTES} bytes, and documents can only be read "
            "whole here"
        )
    return ValueError(
        f"document {number} has no place where it could be cut in more than {MOST_BYTES} bytes "
        f"from byte {start} on"
    )


# Cutting


def cutter(tokens: Collection[str], places: re.Pattern[bytes] = BEFORE_SPACE_OR_BEHIND_LINE) -> Cut:
    """What finds safe cuts where these special tokens, or added ones, are looked for."""
    spellings = [token.encode("utf-8") for token in tokens]
    return lambda data, end: safe_cut(data, end, places, spellings)


def can_be_cut(pattern: Pattern) -> bool:
    """Whether `safe_cut` holds for a pattern."""
    return pattern == patterns.WORDS or pattern in patterns.NAMED.values()


def safe_cut(data: bytes, end: int, places: re.Pattern[bytes], spellings: Sequence[bytes]) -> int:
    """The last place, up to `end`, where a document can be cut; 0 if there is none.

    In front of a space: no named pattern has a piece with a space behind anything but white
    space, and what is found before does not depend on what follows. Or behind a line end, alone
    between what is no white space and a letter: there a piece ends, and what is white space at
    the end of a text is the same piece as before a letter.

    Both are safe for NFC, since nothing joins a space or a line end, or moves across it. No
    special token, or added one, may touch the place: flags of it look at what is next to it.
    """
    longest = max(map(len, spellings), default=0)
    end = min(end, len(data) - max(longest, LONGEST_CHARACTER))
    while end > 0:
        start = max(0, end - WINDOW)
        found = [match.end() for match in places.finditer(data, start, end)]
        for place in reversed(found):
            place = place - 1 if data[place - 1 : place] == b" " else place
            if divides(data, place) and not touched(data, place, spellings):
                return place
        end = start + 1 if start else 0
    return 0


def divides(data: bytes, place: int) -> bool:
    """Whether there is no more white space at a place than one space behind, or line end before."""
    if data[place - 1 : place] != b"\n":
        return not is_space(character_before(data, place))
    letters = unicode.ranges("L")
    following = character_behind(data, place)
    return not is_space(character_before(data, place - 1)) and unicode.includes(letters, following)


def touched(data: bytes, place: int, spellings: Sequence[bytes]) -> bool:
    """Whether any of some texts ends, begins or goes on at a place."""
    return any(
        data.find(spelling, max(0, place - len(spelling)), place + len(spelling)) >= 0
        for spelling in spellings
    )
