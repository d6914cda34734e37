"""Batches of tokens to train on: windows of a stream, or documents in rows."""

import copy
import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokbpe import arguments, packing, states
from tokbpe.arguments import HIGHEST_COUNT
from tokbpe.orders import drawn, permuted
from tokbpe.packing import Documents, Packed, Pair, Rows, Stream, Tokens
from tokbpe.shards import Shards

ORDERS = ("sequential", "shuffled", "random")
PACKS = ("stream", *packing.PACKINGS)
DTYPES = ("uint16", "uint32", "int32", "int64")
VERSION = 1
MOST_POSITIONS = 2**31 - 1
# So many rows of an order are computed at a time.
ORDER_ROWS = 2**12


class TokenDataset:
    """Rows of tokens to train on: item i is row i, a `Pair` or a `Packed`.

    source: `Shards`, or the path of their folder; the path of a .npy file; an encoded corpus, or
        anything else with `tokens` and `offsets`; or an array of ids.
    context: how many positions a row has. Position i is the input `inputs[i]` and what is to be
        predicted there, `targets[i]`, the token that comes next.
    pack: what a row is. "stream": a window of the tokens of all documents, one after another; what
        is left at the end is shorter than a row and belongs to no item. "document": a document,
        or a part of one, with padding behind it. "best-fit": as many of these as have room.
        Documents longer than a row go on in the next; nothing is predicted across documents.
    pad_id: what stands where a row has no position; by default the reserved id PAD of the shards,
        and to be given for what is not in shards.
    crop: of a longer document only what fits into a row is taken.
    segments: has "stream" tell documents apart as well.
    dtype: of the ids that are given: "uint32", "uint16", or "int64" or "int32" as torch wants.
    offsets: where each document of an array begins, and the last ends.
    fingerprint: of an array, for what is known otherwise by a SHA-256 of all of it.

    Rows are a `Pair` for "stream" without segments, and a `Packed` otherwise. Memory is that of
    the order of documents: nothing for a stream, else about 50 bytes for each document.

    ValueError, naming the value, for what is out of bounds; for fewer tokens than a window has;
    for a type that does not hold the ids.
    """

    def __init__(
        self,
        source: Any,
        context: int,
        *,
        pack: str = "stream",
        pad_id: int | None = None,
        crop: bool = False,
        segments: bool = False,
        dtype: str = "uint32",
        offsets: ArrayLike | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.context = arguments.whole_number(context, "context", 1, MOST_POSITIONS)
        self.pack = arguments.choice(pack, "pack", PACKS)
        self.dtype = arguments.choice(dtype, "dtype", DTYPES)
        self.crop, self.segments = bool(crop), bool(segments)
        if self.crop and pack == "stream":
            raise ValueError("crop is for documents; pack is 'stream'")
        self._source = Source(source, offsets, fingerprint)
        self.start, self.stop = 0, len(self._source.tokens)  # of the tokens
        check_type(self._source.tokens, self.dtype)
        self.pad_id = None if pack == "stream" else self._padding(pad_id)
        self._rows  # noqa: B018  (an error if there are none)

    def _padding(self, pad_id: int | None) -> int:
        if pad_id is None:
            pad_id = self._source.pad_id
        if pad_id is None:
            raise ValueError(
                f"pack {self.pack!r} needs a pad_id; the source has no reserved id PAD"
            )
        return arguments.whole_number(pad_id, "pad_id", 0, int(np.iinfo(self.dtype).max))

    def __repr__(self) -> str:
        return (
            f"<TokenDataset {self.pack}, {len(self):,} rows of {self.context:,} positions, "
            f"{self.stop - self.start:,} tokens>"
        )

    # Rows

    @cached_property
    def _rows(self) -> Rows:
        tokens, context, dtype = self._source.tokens, self.context, self.dtype
        count = self.stop - self.start
        if count < 2:
            raise ValueError(f"there are {count} tokens; to predict one, 2 are needed")
        if self.pack == "stream":
            offsets = self._offsets if self.segments else None
            if count <= context:
                raise ValueError(
                    f"a context of {context} needs {context + 1} tokens; there are {count}"
                )
            return Stream(tokens, self.start, self.stop, context, dtype, offsets)
        chunks, left_over = packing.chunks_of(self._offsets, context, self.crop)
        if not len(chunks.sizes):
            raise ValueError("no document has 2 tokens or more, so there is nothing to predict")
        chunks, row_offsets = packing.PACKINGS[self.pack](chunks, context)
        assert self.pad_id is not None
        return Documents(tokens, chunks, row_offsets, left_over, context, dtype, self.pad_id)

    @property
    def _offsets(self) -> NDArray[np.int64]:
        """Where documents begin among these tokens, and where the last ends."""
        offsets = self._source.offsets
        inside = offsets[(offsets > self.start) & (offsets < self.stop)]
        return np.concatenate([[self.start], inside, [self.stop]]).astype(np.int64)

    def __len__(self) -> int:
        return self._rows.count

    def __getitem__(self, index: int) -> Pair | Packed:
        number = arguments.as_index(index)
        if number is None:
            raise TypeError(f"a row is a whole number, not {arguments.type_name(index)}")
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} rows, and no row {number}")
        number %= len(self)
        rows = self._rows.take(range(number, number + 1))
        if isinstance(rows, Packed):
            return Packed(*(array[0] for array in rows))
        return Pair(rows.inputs[0], rows.targets[0])

    def __iter__(self) -> Iterator[Pair | Packed]:
        return (self[number] for number in range(len(self)))

    @property
    def utilization(self) -> float:
        """How much of all rows is no padding, from 0 to 1."""
        return self._rows.positions / (self._rows.count * self.context)

    @property
    def left_over(self) -> int:
        """How many positions are in no row: what follows the last window, or is cropped."""
        return self._rows.left_over

    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of what the rows depend on."""
        return states.digest(
            {
                "source": self._source.fingerprint(),
                "tokens": [self.start, self.stop],
                "context": self.context,
                "pack": self.pack,
                "pad_id": self.pad_id,
                "crop": self.crop,
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_rows"}

    # Other data sets from this one

    def split(self, validation: float | int) -> tuple["TokenDataset", "TokenDataset"]:
        """Training and validation data: the second is the tail of the tokens, which the first has
        nothing of.

        validation: how many tokens it has, or a fraction of all, between 0 and 1. A document that
            is cut there is a shorter one on both sides.
        """
        count = self.stop - self.start
        if isinstance(validation, float):
            if not 0 < validation < 1:
                raise ValueError(f"validation must be between 0 and 1, not {validation}")
            validation = round(count * validation)
        size = arguments.whole_number(validation, "validation", 1, count - 1)
        cut = self.stop - size
        return self._part(self.start, cut), self._part(cut, self.stop)

    def _part(self, start: int, stop: int) -> "TokenDataset":
        part = copy.copy(self)
        part.start, part.stop = start, stop
        part._rows  # noqa: B018  (an error if there are none)
        return part

    def _with_context(self, context: int) -> "TokenDataset":
        other = copy.copy(self)
        other.context = arguments.whole_number(context, "context", 1, MOST_POSITIONS)
        other._rows  # noqa: B018
        return other

    # Batches

    def batches(
        self,
        batch_size: int,
        context: int | None = None,
        *,
        order: str = "sequential",
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
    ) -> "Batches":
        """Batches of rows in an order; see `Batches`.

        context: another one than that of the data set.
        """
        rows = self if context is None else self._with_context(context)
        return Batches(
            rows,
            batch_size,
            order=order,
            seed=seed,
            rank=rank,
            world_size=world_size,
            drop_last=drop_last,
        )

    def fixed_batches(self, batch_size: int, count: int | None = None) -> Iterator[Pair | Packed]:
        """Batches that are the same each time, for validation: all of the rows in order, or so
        many batches of rows that are spread evenly over all."""
        size = arguments.whole_number(batch_size, "batch_size", 1, MOST_POSITIONS)
        rows = np.arange(len(self))
        if count is not None:
            wanted = size * arguments.whole_number(count, "count", 1, MOST_POSITIONS)
            if wanted > len(self):
                raise ValueError(f"{count} batches of {size} rows are more than all {len(self)}")
            rows = np.arange(wanted) * len(self) // wanted
        return (self._rows.take(rows[at : at + size]) for at in range(0, len(rows), size))


class Dropped(NamedTuple):
    """Rows, and positions of a stream behind its last row."""

    rows: int
    positions: int


class Batches:
    """The batches of one rank, epoch after epoch: [batch, context].

    order: "sequential": the rows one after another; "shuffled": each row once in an epoch, in
        another order in each; "random": windows at random places (rows, if documents are packed),
        as many in an epoch.
    seed: others give other orders.
    rank, world_size: rank r has the rows r, r + world_size, ... of the order, so that all ranks
        together have each once.
    drop_last: leaves out batches that are not full, and what some ranks would have more of; then
        all ranks have the same number, and `dropped` tells what that leaves out. Without it the
        last batch may be smaller; and what is left over at the end of a stream is a batch of its
        own, one row that is shorter, in an epoch of any order but "random".

    A loop over it ends with the epoch, and the next loop is over the next epoch. `epoch` and
    `position` say where it stands, and can be set. What order there is depends on seed, epoch,
    rank and world_size alone.

    In `torch.utils.data.DataLoader(batches, batch_size=None, num_workers=...)` the workers make
    the batches of the epoch in this same order; to go on inside of one give it
    `sampler=batches.remaining()`. `DataLoader(dataset, ...)` makes batches of its own out of rows.
    """

    def __init__(
        self,
        dataset: TokenDataset,
        batch_size: int,
        *,
        order: str = "sequential",
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        self.dataset = dataset
        self.batch_size = arguments.whole_number(batch_size, "batch_size", 1, MOST_POSITIONS)
        self.order = arguments.choice(order, "order", ORDERS)
        self.seed = arguments.whole_number(seed, "seed", 0, HIGHEST_COUNT)
        self.world_size = arguments.whole_number(world_size, "world_size", 1, MOST_POSITIONS)
        self.rank = arguments.whole_number(rank, "rank", 0, self.world_size - 1)
        self.drop_last = bool(drop_last)
        self._epoch = self._position = 0
        self._known: tuple[tuple[int, int], NDArray[np.int64]] | None = None
        self.rows, has_rest = self._share()
        self._count = -(-self.rows // self.batch_size) + has_rest
        if not self._count:
            raise ValueError(
                f"there is no batch of {self.batch_size} rows for rank {self.rank} of "
                f"{self.world_size}: there are {len(dataset)} rows"
            )

    def __repr__(self) -> str:
        return (
            f"<Batches {self.order}, {len(self):,} of {self.batch_size} rows in an epoch, "
            f"rank {self.rank} of {self.world_size}, epoch {self.epoch}, batch {self.position}>"
        )

    # Where it stands

    @property
    def epoch(self) -> int:
        """The number of the epoch, from 0 on."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = arguments.whole_number(epoch, "epoch", 0, HIGHEST_COUNT)

    @property
    def position(self) -> int:
        """The number of the next batch in the epoch."""
        return self._position

    @position.setter
    def position(self, position: int) -> None:
        number = arguments.whole_number(position, "position", 0, len(self))
        if number == len(self):  # the epoch is over
            self._epoch += 1
            number = 0
        self._position = number

    def remaining(self) -> range:
        """The numbers of the batches of this epoch that are still to come."""
        return range(self.position, len(self))

    def state_dict(self) -> dict[str, Any]:
        """Where it stands, as plain data: with it the next batch is the very next one."""
        return {**self._identity(), "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken. ValueError, naming both values, for a state of other
        data or of another order."""
        if not isinstance(state, Mapping):
            raise TypeError(f"a state must be a mapping, not {arguments.type_name(state)}")
        own = self._identity()
        names = {*own, "epoch", "position"}
        if state.keys() != names:
            raise ValueError(f"a state has {', '.join(sorted(names))}, not {sorted(state)}")
        for name, value in own.items():
            if state[name] != value:
                raise ValueError(
                    f"the state is of other batches: its {name} is {state[name]!r}, here it is "
                    f"{value!r}"
                )
        epoch = arguments.whole_number(state["epoch"], "epoch", 0, HIGHEST_COUNT)
        position = arguments.whole_number(state["position"], "position", 0, len(self) - 1)
        self._epoch, self._position = epoch, position

    def _identity(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "dataset": self.dataset.fingerprint(),
            "order": self.order,
            "seed": self.seed,
            "batch_size": self.batch_size,
            "rank": self.rank,
            "world_size": self.world_size,
            "drop_last": self.drop_last,
        }

    # What is in an epoch

    def _share(self) -> tuple[int, bool]:
        """How many rows this rank has in an epoch, and whether it has what is left over at the end
        of a stream, which comes behind the last row."""
        data = self.dataset
        count = len(data)
        if self.drop_last:
            return count // self.world_size // self.batch_size * self.batch_size, False
        rows = (count - self.rank + self.world_size - 1) // self.world_size
        is_rest = data.pack == "stream" and data.left_over > 0 and self.order != "random"
        return rows, is_rest and count % self.world_size == self.rank

    @property
    def dropped(self) -> Dropped:
        """What no rank has in an epoch."""
        if not self.drop_last or self.order == "random":
            return Dropped(0, 0)
        left_over = self.dataset.left_over if self.dataset.pack == "stream" else 0
        return Dropped(len(self.dataset) - self.rows * self.world_size, left_over)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Pair | Packed:
        """A batch of this epoch."""
        at = arguments.whole_number(number, "the number of a batch", 0, HIGHEST_COUNT)
        if at >= len(self):
            raise IndexError(f"there are {len(self)} batches in an epoch, and no batch {at}")
        return self._batch(at)

    def _batch(self, number: int) -> Pair | Packed:
        rows = self.dataset._rows
        first = number * self.batch_size
        last = min(first + self.batch_size, self.rows)
        if first >= last:
            assert isinstance(rows, Stream)
            return rows.rest()
        if self.order == "random":
            return rows.drawn(lambda size: self._places(first, last, size))
        if self.order == "sequential" and self.world_size == 1:
            return rows.take(range(first, last))
        return rows.take(self._places(first, last, rows.count))

    def _places(self, first: int, last: int, size: int) -> NDArray[np.int64]:
        """From where to take what this rank has from first to last, of so many places."""
        block, start = divmod(first, ORDER_ROWS)
        if start + last - first <= ORDER_ROWS:
            return self._block(block, size)[start : start + last - first]
        found = []
        while first < last:
            block, start = divmod(first, ORDER_ROWS)
            stop = min(start + last - first, ORDER_ROWS)
            found.append(self._block(block, size)[start:stop])
            first += stop - start
        return np.concatenate(found)

    def _block(self, block: int, size: int) -> NDArray[np.int64]:
        """Many places at a time, which are kept until others are wanted."""
        known = self._known
        if known is not None and known[0] == (self._epoch, block):
            return known[1]
        stop = min((block + 1) * ORDER_ROWS, self.rows)
        own = np.arange(block * ORDER_ROWS, stop, dtype=np.int64)
        places = own * self.world_size + self.rank
        if self.order == "shuffled":
            places = permuted(places, size, [self.seed, self._epoch])
        elif self.order == "random":
            places = drawn(places, size, [self.seed, self._epoch])
        self._known = (self._epoch, block), places
        return places

    def __iter__(self) -> Iterator[Pair | Packed]:
        for number in self.remaining():
            batch = self._batch(number)
            # Before it is given away: a state that is taken then has the next one.
            self.position = number + 1
            yield batch

    def forever(self) -> Iterator[Pair | Packed]:
        """The batches of one epoch after another."""
        while True:
            yield from self


class Source:
    """What a data set takes its tokens from."""

    def __init__(self, source: Any, offsets: ArrayLike | None, fingerprint: str | None) -> None:
        self._given = fingerprint
        self._offsets = offsets
        self._path: str | None = None
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            if os.path.isdir(path):
                source = Shards(path)
            else:
                self._path = os.path.abspath(path)
                source = np.load(path, mmap_mode="r", allow_pickle=False)
        self._of: Any = source
        if isinstance(source, Shards):
            numbers = range(len(source.shards))
            self.tokens = Tokens([source.tokens(number) for number in numbers])
        else:
            self.tokens = Tokens([ids_of(getattr(source, "tokens", source))])
        if offsets is None and hasattr(source, "offsets"):
            self._offsets = source.offsets if not isinstance(source, Shards) else None

    def __reduce__(self) -> tuple[Any, ...]:
        # Files are mapped anew, not copied.
        given = self._of if self._path is None else self._path
        return Source, (given, self._offsets, self._given)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each document begins, and the last ends."""
        if isinstance(self._of, Shards) and self._offsets is None:
            return self._of.offsets.astype(np.int64)
        if self._offsets is None:
            raise ValueError("documents need offsets: where each begins, and the last ends")
        offsets = np.asarray(self._offsets)
        count = len(self.tokens)
        if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
            raise ValueError(
                "offsets must be whole numbers in one dimension, one for each document and one more"
            )
        if offsets[0] != 0 or offsets[-1] != count or np.any(offsets[1:] < offsets[:-1]):
            raise ValueError(f"offsets must rise from 0 to {count}, the number of tokens")
        return offsets.astype(np.int64)

    @property
    def pad_id(self) -> int | None:
        """The reserved id PAD, where it is known."""
        return self._of.manifest["reserved"].get("PAD") if isinstance(self._of, Shards) else None

    def fingerprint(self) -> str:
        if self._given is not None:
            return self._given
        return str(self._of.fingerprint()) if hasattr(self._of, "fingerprint") else self._hash

    @cached_property
    def _hash(self) -> str:
        """The SHA-256 of the tokens, whatever their type."""
        digest = hashlib.sha256()
        for array in self.tokens.arrays:
            for start in range(0, len(array), ORDER_ROWS**2):
                digest.update(array[start : start + ORDER_ROWS**2].astype("<u4").tobytes())
        return digest.hexdigest()


def ids_of(tokens: Any) -> NDArray[Any]:
    """Tokens as an array of ids."""
    ids = np.asarray(tokens)
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise ValueError(
            f"tokens must be whole numbers in one dimension, not {ids.dtype} of the shape "
            f"{ids.shape}"
        )
    if ids.dtype in ("uint16", "uint32"):
        return np.ascontiguousarray(ids)
    if ids.size and (ids.min() < 0 or ids.max() >= 2**32):
        raise ValueError(f"ids are from 0 to {2**32 - 1}; there are {ids.min()} and {ids.max()}")
    return ids.astype(np.uint32)


def check_type(tokens: Tokens, dtype: str) -> None:
    """ValueError for a type that does not hold all tokens that there may be."""
    for array in tokens.arrays:
        if not np.can_cast(array.dtype, dtype):
            allowed = [name for name in DTYPES if np.can_cast(array.dtype, name)]
            raise ValueError(f"tokens of {array.dtype.name} may be given as {allowed}, not {dtype}")
