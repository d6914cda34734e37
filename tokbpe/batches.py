"""Batches of tokens to train on: windows of a stream, or documents in rows."""

import sys
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokbpe import arguments, packing, states
from tokbpe.arguments import HIGHEST_COUNT
from tokbpe.corpus import VALIDATION, check_divisible, tail_of
from tokbpe.orders import drawn, permuted
from tokbpe.packing import Documents, Packed, Pair, Rows, Stream
from tokbpe.tokens import DTYPES, Source, check_type

ORDERS = ("sequential", "shuffled", "random")
STREAM = "stream"
PACKS = (STREAM, *packing.PACKINGS)
# What only some packings use.
USED_BY = {
    "pad_id": (*packing.PACKINGS,),
    "crop": (*packing.PACKINGS,),
    "segments": (STREAM,),
}
VERSION = 1
LARGEST_CONTEXT = 2**28
MOST_ROWS = 2**31 - 1
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
    pad_id: for documents: what stands where a row has no position; by default the reserved id PAD
        of the shards, and to be given for what is not in shards.
    crop: for documents: of a longer one only what fits into a row is taken.
    segments: for "stream": tells documents apart there as well.
    dtype: of the ids that are given: "uint32", "uint16", or "int64" or "int32" as torch wants.
    offsets: where each document of an array begins, and the last ends.
    fingerprint: of an array, for what is known otherwise by a SHA-256 of all of it.

    Rows are a `Pair` for "stream" without segments, and a `Packed` otherwise. Memory is that of
    the order of documents: nothing for a stream, else about 50 bytes for each document.

    ValueError, naming the value, for what is out of bounds; for an option that the packing does
    not use; for fewer tokens than a window has; for a type that does not hold the ids.
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
        self.context = context_of(context)
        self.pack = arguments.choice(pack, "pack", PACKS)
        self.dtype = arguments.choice(dtype, "dtype", DTYPES)
        self.crop, self.segments = bool(crop), bool(segments)
        check_used(pack, pad_id=pad_id is not None, crop=self.crop, segments=self.segments)
        self._source = Source(source, offsets, fingerprint)
        self.role = self._source.role
        self.start, self.stop = 0, len(self._source.tokens)  # of the tokens
        check_type(self._source.tokens, self.dtype)
        self.pad_id = None if pack == STREAM else self._padding(pad_id)
        self._rows = self._laid_out()

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
            f"<TokenDataset {self.role}, {self.pack}, {len(self):,} rows of {self.context:,} "
            f"positions, {self.stop - self.start:,} tokens>"
        )

    # Rows

    def _laid_out(self) -> Rows:
        """The rows; ValueError if there are none."""
        tokens, context, dtype = self._source.tokens, self.context, np.dtype(self.dtype)
        count = self.stop - self.start
        if count < 2:
            raise ValueError(f"there are {count} tokens; to predict one, 2 are needed")
        if self.pack == STREAM:
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
        """Where documents that have some of these tokens begin, and where the last ends."""
        offsets = np.clip(self._source.offsets, self.start, self.stop)
        distinct: NDArray[np.int64] = offsets[np.diff(offsets, prepend=-1) > 0]
        return distinct

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
                "segments": self.segments,
            }
        )

    # Rows are laid out anew, not copied.

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_rows"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._rows = self._laid_out()

    # Other data sets from this one

    def split(self, validation: float | int = 0.1) -> tuple["TokenDataset", "TokenDataset"]:
        """Training and validation data: the second is the tail of the tokens, which the first has
        nothing of.

        validation: which share of the tokens is kept for validation, or how many of them. A
            document that is cut there is a shorter one on both sides.

        ValueError for other than training data, such as the tail of another split.
        """
        check_divisible(self.role)
        cut = self.stop - tail_of(self.stop - self.start, validation)
        return (
            self._with(start=self.start, stop=cut),
            self._with(start=cut, stop=self.stop, role=VALIDATION),
        )

    def _with(self, **changes: object) -> "TokenDataset":
        """Another data set over the same source."""
        other = object.__new__(type(self))
        other.__setstate__({**self.__getstate__(), **changes})
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
        rows = self if context is None else self._with(context=context_of(context))
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
        """Batches that are the same at each call, for validation: all rows in their order; what is
        left over at the end of a stream is none.

        count: only so many batches, all of them full, of rows that are spread evenly over all.

        Nothing that is done to a batch changes the next call.
        """
        size = batch_size_of(batch_size)
        rows = np.arange(len(self))
        if count is not None:
            wanted = size * arguments.whole_number(count, "count", 1, MOST_ROWS)
            if wanted > len(self):
                raise ValueError(f"{count} batches of {size} rows are more than all {len(self)}")
            rows = np.arange(wanted) * len(self) // wanted
        return (self._rows.take(rows[at : at + size]) for at in range(0, len(rows), size))


def context_of(value: object) -> int:
    return arguments.whole_number(value, "context", 1, LARGEST_CONTEXT)


def batch_size_of(value: object) -> int:
    return arguments.whole_number(value, "batch_size", 1, MOST_ROWS)


def check_used(pack: str, **given: bool) -> None:
    """ValueError for an option that is given though the packing does not use it."""
    for name, is_given in given.items():
        if is_given and pack not in USED_BY[name]:
            packs = " and ".join(map(repr, USED_BY[name]))
            raise ValueError(f"{name} is for pack {packs}; pack is {pack!r}")


class Remaining:
    """The epoch and number of each batch that is still to come in the epoch."""

    def __init__(self, batches: "Batches") -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches) - self._batches.position

    def __iter__(self) -> Iterator[tuple[int, int]]:
        batches = self._batches
        return zip(repeat(batches.epoch), range(batches.position, len(batches)))


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
    `position` say where it stands, and can be set, also during a loop, which then goes on there.
    What order there is depends on seed, epoch, rank and world_size alone. There is one loop at a
    time: when another has begun, the first is a RuntimeError as soon as it is to go on.

    `torch.utils.data.DataLoader(batches, batch_size=None, sampler=batches.remaining())` gives what
    is to come in the epoch, in this same order, with any `num_workers`. Workers are ahead of the
    loop, which alone knows where it stands: it says so by `batches.position += 1` after each batch.
    Without a sampler a loader gives all of the epoch, and its workers, if they are persistent, do
    not hear of the next one, which is a RuntimeError there. `DataLoader(dataset, ...)` makes
    batches of its own out of rows.
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
        self.batch_size = batch_size_of(batch_size)
        self.order = arguments.choice(order, "order", ORDERS)
        self.seed = arguments.whole_number(seed, "seed", 0, HIGHEST_COUNT)
        self.world_size = arguments.whole_number(world_size, "world_size", 1, MOST_ROWS)
        self.rank = arguments.whole_number(rank, "rank", 0, self.world_size - 1)
        self.drop_last = bool(drop_last)
        self._is_in_order = order == "sequential" and self.world_size == 1
        self._epoch = self._position = 0
        self._loop: object = None  # the one that goes on
        self._asked = -1  # the last number, of those that come alone
        self._known: tuple[tuple[int, int], NDArray[np.int64]] | None = None
        self.rows, has_rest = self._share()
        self._count = -(-self.rows // self.batch_size) + has_rest
        if not self._count:
            raise ValueError(
                f"there is no batch of {self.batch_size} rows for rank {self.rank} of "
                f"{self.world_size}: there are {len(dataset)} rows"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_loop": None, "_asked": -1, "_known": None}

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

    def remaining(self) -> "Remaining":
        """The batches that are still to come in the epoch, for a `sampler` of PyTorch: what
        `batches[...]` takes, found anew by each loop over it."""
        return Remaining(self)

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
            if not isinstance(state[name], type(value)) or state[name] != value:
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
            "pack": self.dataset.pack,
            "context": self.dataset.context,
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
        is_rest = data.pack == STREAM and data.left_over > 0 and self.order != "random"
        return rows, is_rest and count % self.world_size == self.rank

    @property
    def dropped(self) -> Dropped:
        """What no rank has in an epoch."""
        if not self.drop_last or self.order == "random":
            return Dropped(0, 0)
        left_over = self.dataset.left_over if self.dataset.pack == STREAM else 0
        return Dropped(len(self.dataset) - self.rows * self.world_size, left_over)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int | tuple[int, int]) -> Pair | Packed:
        """A batch of this epoch, by its number; or of any epoch, by that and the number."""
        if isinstance(place, tuple) and len(place) == 2:
            epoch = arguments.whole_number(place[0], "epoch", 0, HIGHEST_COUNT)
            return self._batch(epoch, self._number(place[1]))
        number = self._number(place)
        self._check_worker(number)
        return self._batch(self._epoch, number)

    def _number(self, value: object) -> int:
        number = arguments.whole_number(value, "the number of a batch", 0, HIGHEST_COUNT)
        if number >= len(self):
            raise IndexError(f"there are {len(self)} batches in an epoch, and no batch {number}")
        return number

    def _check_worker(self, number: int) -> None:
        """RuntimeError in a worker of PyTorch whose numbers begin again: it was not told whether
        the epoch is another one."""
        torch_data = sys.modules.get("torch.utils.data")
        if torch_data is None or torch_data.get_worker_info() is None:
            return
        if number <= self._asked:
            raise RuntimeError(
                f"batch {number} is asked for after batch {self._asked}, by a worker that does not "
                "know of which epoch: give the DataLoader sampler=batches.remaining()"
            )
        self._asked = number

    def _batch(self, epoch: int, number: int) -> Pair | Packed:
        rows = self.dataset._rows
        first = number * self.batch_size
        last = first + self.batch_size
        if last > self.rows:
            last = self.rows
            if first >= last:
                assert isinstance(rows, Stream)
                return rows.rest()
        if self._is_in_order:
            return rows.take(range(first, last))
        if self.order == "random":
            return rows.drawn(lambda size: self._places(epoch, first, last, size))
        return rows.take(self._places(epoch, first, last, rows.count))

    def _places(self, epoch: int, first: int, last: int, size: int) -> NDArray[np.int64]:
        """From where to take what this rank has from first to last, of so many places."""
        block, start = divmod(first, ORDER_ROWS)
        stop = start + last - first
        if stop <= ORDER_ROWS:
            return self._block(epoch, block, size)[start:stop]
        blocks = range(block, -(-last // ORDER_ROWS))
        return np.concatenate([self._block(epoch, block, size) for block in blocks])[start:stop]

    def _block(self, epoch: int, block: int, size: int) -> NDArray[np.int64]:
        """Many places at a time, which are kept until others are wanted."""
        known = self._known
        if known is not None and known[0] == (epoch, block):
            return known[1]
        stop = min((block + 1) * ORDER_ROWS, self.rows)
        own = np.arange(block * ORDER_ROWS, stop, dtype=np.int64)
        places = own * self.world_size + self.rank
        if self.order == "shuffled":
            places = permuted(places, size, [self.seed, epoch])
        elif self.order == "random":
            places = drawn(places, size, [self.seed, epoch])
        self._known = (epoch, block), places
        return places

    def __iter__(self) -> Iterator[Pair | Packed]:
        self._loop = loop = object()
        is_last = False
        while not is_last:
            if self._loop is not loop:
                raise RuntimeError(
                    "another loop over these batches has begun; loops at the same time need "
                    "batches of their own"
                )
            batch = self._batch(self._epoch, self._position)
            # When a batch is given away, a state has the one behind it as the next.
            self._position += 1
            is_last = self._position == self._count
            if is_last:
                self._epoch, self._position = self._epoch + 1, 0
            yield batch

    def forever(self) -> Iterator[Pair | Packed]:
        """The batches of one epoch after another."""
        while True:
            yield from self
