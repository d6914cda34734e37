from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tokbpe.arguments import Pair

LIMITS: dict[str, int]

def train_steps(
    sequences: Iterable[Iterable[int]],
    weights: Iterable[int] | None,
    alphabet: Sequence[bytes | None],
    merges_wanted: int,
    minimum_pair_frequency: int = 2,
    tie_break: str = "smallest",
    *,
    threads: int | None = None,
) -> Iterator[tuple[Pair, int]]: ...
def train(
    sequences: Iterable[Iterable[int]],
    weights: Iterable[int] | None,
    alphabet: Sequence[bytes | None],
    merges_wanted: int,
    minimum_pair_frequency: int = 2,
    tie_break: str = "smallest",
    progress: Callable[[int, int], object] | None = None,
    *,
    threads: int | None = None,
    on_interrupt: str = "raise",
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...
