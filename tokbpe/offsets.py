"""Where the tokens of a text stand in it: their spans, first byte to behind the last one.

The bytes of pieces tell it: for a tokenizer of bytes the spans are laid end to end. That holds
only while all of the text comes back, which is checked; what does not is refused.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments
from tokbpe.encoding import DocumentEncoder, Finder, Frame, Part
from tokbpe.symbols import MARKER, symbols
from tokbpe.tables import SparsePieces

LONGEST_CHARACTER = 4


class Encoded(NamedTuple):
    """The tokens of a text.

    byte_spans: `int64` [n, 2], where each token begins and ends in the text's UTF-8.
    character_spans: `int64` [n, 2], from the character that holds the first byte of the token
        to behind the one that holds its last.
    """

    ids: list[int]
    byte_spans: NDArray[np.int64]
    character_spans: NDArray[np.int64]


class EncodedBytes(NamedTuple):
    """The tokens of some bytes; byte_spans: `int64` [n, 2], where each begins and ends."""

    ids: list[int]
    byte_spans: NDArray[np.int64]


def end_to_end(widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spans of these widths, one after another.

    [1, 3] -> [[0, 1], [1, 4]]
    """
    ends = np.cumsum(widths)
    return np.stack([ends - widths, ends], axis=1)


def character_spans(data: bytes, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spans of bytes as spans of the characters that these belong to.

    ("é!", [[0, 1], [1, 3]]) -> [[0, 1], [0, 2]]
    """
    first = (np.frombuffer(data + b"!", np.uint8) & 0xC0) != 0x80  # no continuation byte
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum(first[:-1], out=before[1:])
    starts, ends = spans[:, 0], spans[:, 1]
    inside = (starts < ends) & ~first[starts]
    return np.stack([before[starts] - inside, before[ends]], axis=1)


class Locator:
    """Finds the spans of the tokens that an encoder makes.

    pieces: the bytes of each id. table: what an engine decodes ids by.
    """

    def __init__(
        self, encoder: DocumentEncoder, pieces: Sequence[bytes | None] | SparsePieces, table: Any
    ) -> None:
        self.encoder = encoder
        self.table = table
        self.vocabulary = encoder.vocabulary
        marker = MARKER if self.vocabulary.unit == "word" else b""
        # The ids that have widths; None: all, from 0 on.
        self.known: NDArray[np.int64] | None = None
        if isinstance(pieces, SparsePieces):
            self.known = np.array([*pieces.pieces], np.int64)
            pieces = [*pieces.pieces.values()]
        widths = [len((piece or b"").removesuffix(marker)) for piece in pieces]
        self.widths = np.array(widths, np.int64)

    def spans(
        self, data: bytes, finder: Finder, frame: Frame = ((), ())
    ) -> tuple[list[int], NDArray[np.int64]]:
        """The ids of a document, and those put before and behind it, with their spans.

        Tokens of characters that the normalizer changes together have the span of all of these.
        ValueError, naming the place, if encoding changes the document otherwise.
        """
        before, behind = frame
        ids = [*before]
        spans = [np.zeros((len(before), 2), np.int64)]
        start = 0
        for part in self.encoder.parts(data, finder):
            try:
                part_ids = self.encoder.ids_of(part)
            except ValueError:
                self.encoder.encode(data, finder)  # the error names a place in the document
                raise
            ids += part_ids
            spans.append(start + self.part_spans(part, part_ids, start))
            start += len(part.covered)
        spans.append(np.full((len(behind), 2), start))
        found = np.concatenate(spans)
        if self.vocabulary.normalizer is not None:
            found = self.before_normalizing(found, data, finder)
        return [*ids, *behind], found

    def before_normalizing(
        self, spans: NDArray[np.int64], data: bytes, finder: Finder
    ) -> NDArray[np.int64]:
        """Spans in the normalized document as spans in the document."""
        pairs = [*self.encoder.segments(data, finder), (b"", b"")]
        sizes = np.array([(len(source), len(text)) for source, text in pairs], np.int64)
        same = np.array([source == text for source, text in pairs])
        ends, text_ends = np.cumsum(sizes, axis=0).T
        starts, text_starts = ends - sizes[:, 0], text_ends - sizes[:, 1]
        first = np.searchsorted(text_ends[:-1], spans[:, 0], "right")
        last = np.searchsorted(text_ends[:-1], spans[:, 1], "left")
        begin = starts[first] + np.where(same[first], spans[:, 0] - text_starts[first], 0)
        inside = starts[last] + spans[:, 1] - text_starts[last]
        end = np.where(same[last], inside, ends[last])
        empty = spans[:, 0] == spans[:, 1]
        return np.stack([begin, np.where(empty, begin, end)], axis=1)

    def part_spans(self, part: Part, ids: list[int], start: int) -> NDArray[np.int64]:
        """The spans of the tokens of a part in it; the part begins at `start`."""
        if part.id is not None:
            return np.array([[0, len(part.covered)]])
        if self.vocabulary.unit != "byte":
            if self.encoder.own is not None or part.given != part.covered:
                raise ValueError(f"the tokens of this {self.vocabulary.method!r} have no spans")
            return self.symbol_spans(part.covered, ids)
        joined = self.encoder.engine.decode(ids, self.table)
        added = len(part.given) - len(part.covered)
        if joined != part.given:
            raise changed(part.given, joined, start - added, "encoding")
        # A prefix space is none of the text: the first token is that much shorter.
        return np.maximum(end_to_end(self.widths[self.places(ids)]) - added, 0)

    def places(self, ids: Any) -> Any:
        """Where the widths of ids stand."""
        return ids if self.known is None else np.searchsorted(self.known, ids)

    def symbol_spans(self, data: bytes, ids: list[int]) -> NDArray[np.int64]:
        """The spans of tokens of characters, of which unknown ones have no bytes of their own."""
        spans = []
        rest = iter(ids)
        place = 0
        for piece in self.encoder.engine.split(data, self.vocabulary.pattern):
            place = data.index(piece, place)
            end = place + len(piece)
            while place < end:
                id = next(rest)
                width = self.widths[self.places(id)]
                if id == self.vocabulary.unknown:
                    width = len(symbols(data[place : place + LONGEST_CHARACTER], "character")[0])
                spans.append((place, place + width))
                place += width
        return np.array(spans, np.int64).reshape(-1, 2)

    def truncated(self, text: str, most: int, finder: Finder) -> str:
        """A beginning of a text that has at most so many tokens."""
        most = arguments.whole_number(most, "n", 0, sys.maxsize)
        data = arguments.document_bytes(text)
        while True:
            ids, spans = self.spans(data, finder)
            if len(ids) <= most:
                return data.decode("utf-8")
            ends = spans[:most, 1].tolist()
            cuts = [end for end in ends if end < len(data) and is_first_byte(data[end])]
            data = data[: max(cuts, default=0)]


def is_first_byte(byte: int) -> bool:
    """Whether a character of UTF-8 begins with it."""
    return byte & 0xC0 != 0x80


def changed(text: bytes, other: bytes, start: int, by: str) -> ValueError:
    place = start + len(os.path.commonprefix([text, other]))
    return ValueError(f"{by} changes the text at byte {place}: its tokens have no spans there")
