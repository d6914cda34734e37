"""Rows of a fixed number of positions: windows of a stream of tokens, documents in rows.

A position is an input and its target, the next token. A document of n tokens has n - 1 of them;
in a stream the last token of a document has one as well, the first of the next document.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tokbpe.tokens import Ids, Tokens

PADDING = 0  # the segment of what is no document


class Pair(NamedTuple):
    """Tokens, and for each the one that comes next: [batch, context], or [context] for a row.

    Both are parts of one array: what is written to one may be seen in the other.
    """

    inputs: Ids
    targets: Ids


class Packed(NamedTuple):
    """The same, with what is to be known of documents.

    mask: `bool`, whether there is a position; what is none has the pad id.
    segments: `int32`, 1 for the positions of the first document in a row, 2 for the next, ...;
        0 for what is none. Attention that stays inside of documents compares these.
    """

    inputs: Ids
    targets: Ids
    mask: NDArray[np.bool_]
    segments: NDArray[np.int32]


class Rows(Protocol):
    """What a data set is made of."""

    count: int
    positions: int  # in all rows
    left_over: int  # positions of the tokens that are in no row

    def take(self, rows: NDArray[np.int64] | range) -> Pair | Packed:
        """Some of the rows."""

    def drawn(self, draws: "Draws") -> Pair | Packed:
        """Rows at random places."""


class Draws(Protocol):
    """Gives as many random numbers as are wanted, from 0 to size - 1."""

    def __call__(self, size: int) -> NDArray[np.int64]: ...


class Stream:
    """Windows side by side in tokens[start:stop]; what is left at the end is no whole row.

    offsets: where documents begin, for segments; None for none.
    """

    def __init__(
        self,
        tokens: Tokens,
        start: int,
        stop: int,
        context: int,
        dtype: "np.dtype[Any]",
        offsets: NDArray[np.int64] | None,
    ) -> None:
        self.tokens, self.start, self.stop = tokens, start, stop
        self.context, self.dtype, self.offsets = context, dtype, offsets
        self.count, self.left_over = divmod(max(0, stop - start - 1), context)
        self.positions = self.count * context

    def take(self, rows: NDArray[np.int64] | range) -> Pair | Packed:
        if isinstance(rows, range):  # side by side: one copy makes both
            start = self.start + rows.start * self.context
            return self.shaped(start, len(rows), self.context)
        return self.at(self.start + rows * self.context)

    def drawn(self, draws: Draws) -> Pair | Packed:
        return self.at(self.start + draws(self.stop - self.start - self.context))

    def rest(self) -> Pair | Packed:
        """What is left over, as a row that is shorter: [1, left_over]."""
        return self.shaped(self.stop - self.left_over - 1, 1, self.left_over)

    def shaped(self, start: int, rows: int, context: int) -> Pair | Packed:
        flat = self.tokens.part(start, rows * context + 1, self.dtype)
        pair = Pair(flat[:-1].reshape(rows, context), flat[1:].reshape(rows, context))
        if self.offsets is None:
            return pair
        return self.with_segments(pair, start + context * np.arange(rows), self.offsets)

    def at(self, starts: NDArray[np.int64]) -> Pair | Packed:
        found = self.tokens.windows(starts, self.context + 1, self.dtype)
        pair = Pair(found[:, :-1], found[:, 1:])
        return pair if self.offsets is None else self.with_segments(pair, starts, self.offsets)

    def with_segments(
        self, pair: Pair, starts: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> Packed:
        places = starts[:, None] + np.arange(pair.inputs.shape[1])
        document = np.searchsorted(offsets, places, "right")
        segments = (document - document[:, :1] + 1).astype(np.int32)
        return Packed(*pair, np.ones(pair.inputs.shape, bool), segments)


class Chunks(NamedTuple):
    """Parts of documents: where each begins among the tokens, and its positions, rising."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


class Documents:
    """Rows of chunks of documents, with the pad id where there are none."""

    def __init__(
        self,
        tokens: Tokens,
        chunks: Chunks,
        row_offsets: NDArray[np.int64],
        left_over: int,
        context: int,
        dtype: "np.dtype[Any]",
        pad_id: int,
    ) -> None:
        self.tokens, self.chunks, self.row_offsets = tokens, chunks, row_offsets
        self.context, self.dtype, self.pad_id = context, dtype, pad_id
        self.count = len(row_offsets) - 1
        self.positions = int(chunks.sizes.sum())
        self.left_over = left_over

    def take(self, rows: NDArray[np.int64] | range) -> Packed:
        rows = np.asarray(rows)
        first = self.row_offsets[rows]
        counts = self.row_offsets[rows + 1] - first  # of chunks; each row has one
        number = places_in_runs(counts)
        chunks = np.repeat(first, counts) + number
        sizes = self.chunks.sizes[chunks]
        places = np.repeat(self.chunks.starts[chunks], sizes) + places_in_runs(sizes)
        # Rows are filled from the left, so their positions are in order those of the chunks.
        filled = np.add.reduceat(sizes, np.cumsum(counts) - counts)
        mask = np.arange(self.context) < filled[:, None]
        inputs = np.full(mask.shape, self.pad_id, self.dtype)
        targets = inputs.copy()
        segments = np.full(mask.shape, PADDING, np.int32)
        inputs[mask] = self.tokens.at(places)
        targets[mask] = self.tokens.at(places + 1)
        segments[mask] = np.repeat(number + 1, sizes)
        return Packed(inputs, targets, mask, segments)

    def drawn(self, draws: Draws) -> Packed:
        return self.take(draws(self.count))


def places_in_runs(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each in its run, for runs of so many: [2, 3] -> [0, 1, 0, 1, 2]"""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def chunks_of(offsets: NDArray[np.int64], context: int, crop: bool) -> tuple[Chunks, int]:
    """Documents in chunks of at most so many positions, and how many positions that leaves out.

    offsets: where each document begins, and the last ends.
    crop: whether only the first chunk of a document is taken.
    """
    positions = np.maximum(np.diff(offsets) - 1, 0)
    pieces = -(-positions // context)
    if crop:
        pieces = np.minimum(pieces, 1)
    document = np.repeat(np.arange(len(positions)), pieces)
    number = places_in_runs(pieces)
    starts = offsets[:-1][document] + number * context
    sizes = np.minimum(context, positions[document] - number * context)
    return Chunks(starts, sizes), int(positions.sum() - sizes.sum())


def one_each(chunks: Chunks, context: int) -> tuple[Chunks, NDArray[np.int64]]:
    """A row for each chunk: the chunks of all rows, and where those of each row begin."""
    return chunks, np.arange(len(chunks.sizes) + 1)


def best_fit(chunks: Chunks, context: int) -> tuple[Chunks, NDArray[np.int64]]:
    """Chunks in few rows, of at most so many positions each: best-fit decreasing, as in "Fewer
    Truncations Improve Language Modeling" (Ding et al. 2024).

    The largest chunk comes first, each into the fullest row that has room for it. Rows are then in
    the order of their first chunks, and chunks in a row in their own.
    """
    order = np.argsort(-chunks.sizes, kind="stable")
    row_of = np.empty(len(order), np.int64)
    waiting: dict[int, list[int]] = defaultdict(list)  # rows by the room in them
    rooms = 0  # a bit for each room that some row has
    rows = 0
    for chunk, size in zip(order.tolist(), chunks.sizes[order].tolist()):
        fitting = rooms >> size
        if fitting:
            room = size + (fitting & -fitting).bit_length() - 1
            row = waiting[room].pop()
            if not waiting[room]:
                rooms ^= 1 << room
        else:
            room, row = context, rows
            rows += 1
        row_of[chunk] = row
        left = room - size
        if left:
            waiting[left].append(row)
            rooms |= 1 << left
    first = np.full(rows, len(order))
    np.minimum.at(first, row_of, np.arange(len(order)))
    rank = np.empty(rows, np.int64)
    rank[np.argsort(first)] = np.arange(rows)
    by_row = np.argsort(rank[row_of], kind="stable")
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row_of, minlength=rows)[np.argsort(first)], out=offsets[1:])
    return Chunks(chunks.starts[by_row], chunks.sizes[by_row]), offsets


PACKINGS: dict[str, Callable[[Chunks, int], tuple[Chunks, NDArray[np.int64]]]] = {
    "document": one_each,
    "best-fit": best_fit,
}
