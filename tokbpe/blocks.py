"""Files of any size, encoded in blocks that memory holds.

A block is some whole documents, or a part of a single one that is larger. Parts end where the
ids of both sides, joined, are those of the whole; `safe_cut` says where that is.

Files are read, not mapped: when another process makes a mapped file shorter, a look at what is
gone ends this process (SIGBUS), where a read just comes to an end. Copying costs a few percent of
what encoding does.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from tokbpe import arguments, patterns, unicode
from tokbpe.encoding import Arrays, DocumentEncoder, Finder, Frame
from tokbpe.special import character_before, character_behind, is_space
from tokbpe.vocabulary import Vocabulary

BLOCK_BYTES = 2**24
# Of a document that cannot be cut, or not soon enough.
MOST_BYTES = 2**30

WHOLE = "whole"
LINE = "line"

# How far back a place to cut is looked for at a time: two bytes or more.
WINDOW = 2**16
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


class Plan(NamedTuple):
    """How a file is read."""

    separation: Separation
    size: int  # of a block, in bytes
    cut: Cut | None  # None: each document is encoded whole


def plan(documents: object, size: object, vocabulary: Vocabulary, special: Sequence[str]) -> Plan:
    """How files are read for a vocabulary; special: the tokens that are allowed."""
    return Plan(
        separation(documents),
        arguments.whole_number(size, "block_bytes", 1, MOST_BYTES),
        cutter(vocabulary, special),
    )


class Encoding(NamedTuple):
    """How files are read and encoded."""

    plan: Plan
    encoder: DocumentEncoder
    finder: Finder
    frame: Frame
    dtype: str
    threads: int | None

    def arrays(self, block: Block) -> Arrays:
        """The ids of a block, and where each document or part in it begins and the last ends."""
        before, behind = self.frame
        part = () if block.start else before, behind if block.last else ()
        try:
            return self.encoder.encode_batch_arrays(
                block.texts, self.finder, part, self.dtype, self.threads
            )
        except ValueError:
            tell_of_document(
                block, self.plan.separation, lambda text: self.encoder.count(text, self.finder)
            )
            raise


def encoded(source: Source, encoding: Encoding) -> Iterator[Arrays]:
    """The ids of each block of a file, and where in these documents begin and the last ends."""
    with opened(source) as file:
        for block in blocks(file, encoding.plan):
            ids, offsets = encoding.arrays(block)
            yield ids, offsets[1:] if block.start else offsets


def tell_of_document(
    block: Block, separated: Separation, encode: Callable[[bytes], object]
) -> None:
    """Raise the ValueError of the document in a block that cannot be encoded, naming it."""
    for index, text in enumerate(block.texts):
        try:
            encode(text)
        except ValueError as error:
            place = "" if separated.separator is None else f"document {block.number + index}: "
            if block.start:
                place += f"from byte {block.start} on: "
            raise ValueError(f"{place}{error}") from error


# Reading


def opened(source: Source) -> AbstractContextManager[Any]:
    """A file that is opened here, or one that is open, which stays so."""
    if hasattr(source, "read"):
        return nullcontext(source)
    return open(os.fspath(source), "rb")


def blocks(file: Any, how: Plan) -> Iterator[Block]:
    """A file in blocks, larger than they should be only where nothing smaller can be cut."""
    rest = b""
    number = start = 0
    unchanged = state(file)
    while data := read(file, max(how.size, len(rest)), unchanged):
        *documents, rest = how.separation.split(rest + data)
        if documents and start:
            yield Block([documents.pop(0)], number, start)
            number, start = number + 1, 0
        if documents:
            yield Block(documents, number)
            number += len(documents)
        if len(rest) >= how.size:
            place = how.cut(rest, len(rest) - how.separation.overlap) if how.cut else 0
            if place:
                yield Block([rest[:place]], number, start, last=False)
                rest = rest[place:]
                start += place
            elif len(rest) > MOST_BYTES:
                raise too_large(number, start, how.cut)
    if rest or how.separation.separator is None:
        yield Block([rest], number, start)


def read(file: Any, size: int, unchanged: object) -> bytes:
    """The next bytes of a file, b"" at its end."""
    data = file.read(size)
    if not isinstance(data, bytes):
        raise TypeError(
            f"the file must be open for reading bytes; it gives {arguments.type_name(data)}"
        )
    if state(file) != unchanged:
        name = getattr(file, "name", None)
        raise OSError(errno.EIO, "the file was changed while it was read", name)
    return data


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
            f"document {number} has more than {MOST_BYTES} bytes, and with this tokenizer only "
            "whole documents can be encoded"
        )
    return ValueError(
        f"document {number} has no place where it could be cut in more than {MOST_BYTES} bytes "
        f"from byte {start} on"
    )


# Cutting


def cutter(vocabulary: Vocabulary, special: Sequence[str]) -> Cut | None:
    """What finds safe cuts in the documents of a vocabulary, None if what it does at a place
    depends on more than what is near."""
    tokens = {*special, *vocabulary.added_tokens}
    flags = vocabulary.token_flags
    if not pattern_can_be_cut(vocabulary) or (
        vocabulary.normalizer is not None
        and any("normalized" in flags.get(token, ()) for token in tokens)
    ):
        return None
    spellings = [token.encode("utf-8") for token in tokens]
    # A space would be put in front of a part that begins with a letter.
    places = BEFORE_SPACE if vocabulary.prefix_space else BEFORE_SPACE_OR_BEHIND_LINE
    return lambda data, end: safe_cut(data, end, places, spellings)


def pattern_can_be_cut(vocabulary: Vocabulary) -> bool:
    """Whether `safe_cut` holds for its pattern, or pieces do not matter."""
    pattern = vocabulary.pattern
    if pattern is None:
        return vocabulary.method in ("byte", "char")
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
