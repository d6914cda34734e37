"""Sequences of symbols that stand in one array, one after another: what counting hands to
training without an object for each."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


class Rows(Sequence[NDArray[Any]]):
    """Sequences in one array; row `i` is `symbols[ends[i - 1] : ends[i]]`.

    symbols: `uint8`, `uint16` or `uint32` [symbols].
    ends: `uint64` [rows], never falling, the last one the number of symbols.

    ValueError or TypeError for other arrays.
    """

    def __init__(self, symbols: NDArray[Any], ends: NDArray[np.uint64]) -> None:
        for name, array, kinds in (
            ("symbols", symbols, ("uint8", "uint16", "uint32")),
            ("ends", ends, ("uint64",)),
        ):
            if not isinstance(array, np.ndarray) or array.dtype.name not in kinds:
                found = getattr(array, "dtype", type(array).__name__)
                raise TypeError(f"{name} must be an array of {' or '.join(kinds)}, not {found}")
            if array.ndim != 1:
                raise ValueError(f"{name} must have one dimension, not {array.ndim}")
        if np.any(ends[1:] < ends[:-1]):
            row = int(np.argmax(ends[1:] < ends[:-1])) + 1
            raise ValueError(f"row {row} ends at {ends[row]}, before row {row - 1} does")
        last = int(ends[-1]) if len(ends) else 0
        if last != len(symbols):
            raise ValueError(f"the last row ends at {last}, but there are {len(symbols)} symbols")
        self.symbols = np.ascontiguousarray(symbols)
        self.ends = np.ascontiguousarray(ends)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> "list[NDArray[Any]]": ...
    def __getitem__(self, index: int | slice) -> "NDArray[Any] | list[NDArray[Any]]":
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        row = range(len(self))[index]
        return self.symbols[int(self.ends[row - 1]) if row else 0 : int(self.ends[row])]
