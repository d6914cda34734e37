"""Where a data set takes its tokens from: shards, arrays, files, encoded corpora."""

import hashlib
import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokbpe import arguments, files, shards, states, written
from tokbpe.cached import cached_property
from tokbpe.corpus import TRAINING
from tokbpe.shards import CHUNK_BYTES, Shards

Ids: TypeAlias = NDArray[Any]

# What ids are given as; torch wants the last two.
DTYPES = (*shards.DTYPES, "int32", "int64")


class Tokens:
    """Arrays of tokens, one after another, as one."""

    def __init__(self, arrays: Sequence[Ids]) -> None:
        self.arrays = [array for array in arrays if len(array)]
        self.starts = [0, *accumulate(map(len, self.arrays))]
        self._windows: dict[int, Ids] = {}

    def __len__(self) -> int:
        return self.starts[-1]

    def part(self, start: int, size: int, dtype: "np.dtype[Any]") -> Ids:
        """A copy of so many tokens from a place on."""
        number = bisect_right(self.starts, start) - 1
        first = start - self.starts[number]
        found = self.arrays[number][first : first + size]
        if len(found) == size:
            return found.astype(dtype)
        parts = [found]
        missing = size - len(found)
        while missing:
            number += 1
            parts.append(self.arrays[number][:missing])
            missing -= len(parts[-1])
        return np.concatenate(parts, dtype=dtype)

    def at(self, places: NDArray[np.int64]) -> Ids:
        """The tokens at some places."""
        if len(self.arrays) == 1:
            found: Ids = self.arrays[0][places]
            return found
        out = np.empty(len(places), np.result_type(*self.arrays))
        numbers = np.searchsorted(self.starts, places, "right") - 1
        for number in np.unique(numbers).tolist():
            here = numbers == number
            out[here] = self.arrays[number][places[here] - self.starts[number]]
        return out

    def windows(self, starts: NDArray[np.int64], size: int, dtype: "np.dtype[Any]") -> Ids:
        """Windows of so many tokens: [starts, size]."""
        if len(self.arrays) == 1:
            return self._gathered(starts, size).astype(dtype, copy=False)
        out = np.empty((len(starts), size), dtype)
        numbers = np.searchsorted(self.starts, starts, "right") - 1
        firsts = starts - np.take(self.starts, numbers)
        for row, (number, first) in enumerate(zip(numbers.tolist(), firsts.tolist())):
            found = self.arrays[number][first : first + size]
            whole = len(found) == size
            out[row] = found if whole else self.part(int(starts[row]), size, dtype)
        return out

    def _gathered(self, starts: NDArray[np.int64], size: int) -> Ids:
        """Windows of the only array, in its own type."""
        (array,) = self.arrays
        if size not in self._windows:
            # All windows, each as one item, which is copied faster than so many of its own.
            item = np.dtype((np.void, size * array.itemsize))
            count = len(array) - size + 1
            self._windows[size] = np.ndarray((count,), item, array, 0, array.strides)
        array[starts]  # fetches what is far from each other at once: a quarter less time
        return np.ndarray((len(starts), size), array.dtype, self._windows[size][starts])

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokens, (self.arrays,)


class Source:
    """What a data set takes its tokens from, with documents, role and identity.

    source: `Shards`, the path of their folder or of a .npy file, what has `tokens`, or an array.
    offsets: where each document begins, and the last ends; None for what the source tells.
    fingerprint: of an array, for what is known otherwise by a SHA-256 of all of it.
    """

    def __init__(self, source: Any, offsets: ArrayLike | None, fingerprint: str | None) -> None:
        self._fingerprint = fingerprint
        self._path: str | None = None
        if isinstance(source, (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(source))
            if os.path.isdir(path):
                source = Shards(path)
            else:
                self._path = path
                with files.naming(path):
                    source = ids_of(mapped(path))
        self._of: Any = source
        if isinstance(source, Shards):
            numbers = range(len(source.shards))
            self.tokens = Tokens([source.tokens(number) for number in numbers])
        else:
            self.tokens = Tokens([ids_of(getattr(source, "tokens", source))])
        if fingerprint is not None:
            self._check_fingerprint(fingerprint)
        # Those of the source itself are read when they are needed.
        self._offsets = None if offsets is None else checked_offsets(offsets, len(self.tokens))

    def _check_fingerprint(self, fingerprint: object) -> None:
        if not isinstance(fingerprint, str):
            raise TypeError(f"fingerprint must be a text, not {arguments.type_name(fingerprint)}")
        if self._identifies_itself:
            raise ValueError(
                f"fingerprint is for arrays; that of {arguments.type_name(self._of)} is "
                f"{self._of.fingerprint()}, and not to be {fingerprint}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        # Files are mapped anew, not copied.
        given = self._of if self._path is None else self._path
        return Source, (given, self._offsets, self._fingerprint)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each document begins, and the last ends. ValueError, naming the place, for what
        cannot be that."""
        if self._offsets is not None:
            return self._offsets
        given = getattr(self._of, "offsets", None)
        if given is None:
            raise ValueError("documents need offsets: where each begins, and the last ends")
        return checked_offsets(given, len(self.tokens))

    @property
    def role(self) -> str:
        """What the tokens are for; an array that has no role is there for training."""
        return str(getattr(self._of, "role", TRAINING))

    @property
    def pad_id(self) -> int | None:
        """The reserved id PAD, where it is known."""
        return self._of.manifest["reserved"].get("PAD") if isinstance(self._of, Shards) else None

    @property
    def _identifies_itself(self) -> bool:
        return hasattr(self._of, "fingerprint")

    def fingerprint(self) -> str:
        """What tells the tokens, and where documents begin if that is known."""
        if self._identifies_itself and self._offsets is None:
            return str(self._of.fingerprint())
        return self._digest

    @cached_property
    def _digest(self) -> str:
        if self._fingerprint is not None:
            digest = self._fingerprint
        elif self._identifies_itself:
            digest = str(self._of.fingerprint())
        else:
            digest = hash_of(self.tokens.arrays, "<u4")
        if self._offsets is None and not hasattr(self._of, "offsets"):
            return digest
        return states.digest({"tokens": digest, "offsets": hash_of([self.offsets], "<u8")})


def mapped(path: str) -> Ids:
    """The array of a .npy file, mapped into memory."""
    with written.reading_array():
        array = np.lib.format.open_memmap(path, mode="r")
    if not array.ndim:
        raise ValueError("tokens must be whole numbers in one dimension, not a single number")
    return array


def array_of(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be whole numbers in one dimension: {error}") from error


def ids_of(tokens: Any) -> Ids:
    """Tokens as an array of ids."""
    ids = array_of(tokens, "tokens")
    if not ids.ndim:
        raise TypeError(
            "a data set is made of shards, a path, an encoded corpus or an array of ids, not of "
            f"{arguments.type_name(tokens)}"
        )
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise ValueError(
            f"tokens must be whole numbers in one dimension, not {ids.dtype} of the shape "
            f"{ids.shape}"
        )
    if ids.dtype in shards.DTYPES:
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


def checked_offsets(given: ArrayLike, count: int) -> NDArray[np.int64]:
    """Where each document begins among so many tokens, and the last ends."""
    offsets = array_of(given, "offsets")
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be whole numbers in one dimension, one for each document and one more"
        )
    if offsets[0] != 0:
        raise ValueError(f"offsets[0] is {offsets[0]}, and the first document begins at 0")
    falling = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falling):
        place = int(falling[0])
        raise ValueError(
            f"offsets[{place + 1}] is {offsets[place + 1]}, below offsets[{place}], "
            f"{offsets[place]}: offsets never fall"
        )
    if offsets[-1] != count:
        raise ValueError(
            f"offsets[{len(offsets) - 1}], the last, is {offsets[-1]}, and there are {count} tokens"
        )
    return offsets.astype(np.int64)


def hash_of(arrays: Sequence[NDArray[Any]], dtype: str) -> str:
    """The SHA-256 of some arrays, whatever their type."""
    digest = hashlib.sha256()
    step = CHUNK_BYTES // np.dtype(dtype).itemsize
    for array in arrays:
        for start in range(0, len(array), step):
            digest.update(array[start : start + step].astype(dtype).data)
    return digest.hexdigest()
