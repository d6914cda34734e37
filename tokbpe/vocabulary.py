"""What a training gives: the ids, their bytes and how they merge. It never changes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokbpe.patterns import Pattern


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Base ids first, each with the byte that it stands for, then one id for each merge."""

    method: str
    alphabet: tuple[bytes, ...]
    merges: NDArray[np.uint32]  # [n, 2]: the two ids that make the id len(alphabet) + n
    merge_counts: NDArray[np.uint64]  # [n]: how often the pair stood in the corpus at its turn
    pattern: Pattern | None

    def __post_init__(self) -> None:
        self.merges.flags.writeable = False
        self.merge_counts.flags.writeable = False

    def __len__(self) -> int:
        return len(self.alphabet) + len(self.merges)

    def pieces(self) -> list[bytes]:
        """The bytes of each id, derived from the alphabet and the merges."""
        pieces = list(self.alphabet)
        for left, right in self.merges.tolist():
            pieces.append(pieces[left] + pieces[right])
        return pieces
