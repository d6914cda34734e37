"""Bounds of a training, for those who want them: a ValueError names the one that is passed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments
from tokbpe.arguments import Pair
from tokbpe.engines import Engine
from tokbpe.rows import Rows

Step = tuple[Pair, int]

# So many symbols are looked at at a time.
SYMBOLS = 2**22


def bound(value: object, name: str) -> int | None:
    """How much there may be at most; None: any amount."""
    return (
        None if value is None else arguments.whole_number(value, name, 1, arguments.HIGHEST_COUNT)
    )


def check_pair_types(rows: Rows | list[list[int]], most: int | None) -> None:
    """ValueError for more than so many different pairs of neighbors in some sequences."""
    if most is None:
        return
    known = np.empty(0, np.uint64)
    for keys in pairs_in(rows):
        known = np.union1d(known, keys)
        if len(known) > most:
            raise ValueError(
                f"the corpus has more than max_pair_types={most} different pairs of neighbors"
            )


def pairs_in(rows: Rows | list[list[int]]) -> Iterator[NDArray[np.uint64]]:
    """The pairs of neighbors in sequences, each as one number."""
    if not isinstance(rows, Rows):
        symbols = np.fromiter(chain.from_iterable(rows), np.uint32)
        rows = Rows(symbols, np.cumsum([len(row) for row in rows], dtype=np.uint64))
    begins = np.zeros(len(rows.symbols) + 1, bool)
    begins[rows.ends.astype(np.intp)] = True  # NumPy without memory to do so writes to nowhere
    for start in range(0, len(rows.symbols) - 1, SYMBOLS):
        symbols = rows.symbols[start : start + SYMBOLS + 1].astype(np.uint64)
        inside = ~begins[start + 1 : start + len(symbols)]
        yield ((symbols[:-1] << np.uint64(32)) | symbols[1:])[inside]


def within(steps: Iterable[Step], most: int | None) -> Iterator[Step]:
    """The steps of a training; ValueError when more than so many pairs have been merged, counted
    as training counts them."""
    work = 0
    for number, step in enumerate(steps, 1):
        work += step[1]
        if most is not None and work > most:
            raise ValueError(
                f"with merge {number}, {work} pairs are merged, more than max_merge_work={most}"
            )
        yield step


def train(
    engine: Engine,
    most: int,
    *,
    progress: Callable[[int, int], object] | None,
    threads: int | None,
    on_interrupt: str,
    **training: Any,
) -> tuple[list[Pair], list[int]]:
    """What `train` of an engine gives; ValueError when more than so many pairs were merged."""
    learned: list[Step] = []
    with suppress(*arguments.kept_interrupts(on_interrupt)):
        for step in within(engine.train_steps(**training, threads=threads), most):
            learned.append(step)
            if progress is not None:
                progress(len(learned), training["merges_wanted"])
    return [pair for pair, _ in learned], [count for _, count in learned]
