from collections.abc import Mapping, Sequence
from typing import final

from tokbpe.arguments import Documents, Pair
from tokbpe.fast.special import SpecialTable
from tokbpe.patterns import Pattern

SLICE_SIZE: int

@final
class PieceTable:
    def __new__(cls) -> PieceTable: ...

@final
class PairCounts:
    def __new__(cls) -> PairCounts: ...

def count_pieces(
    corpus: Documents,
    pattern: str | Pattern | None = None,
    special: SpecialTable | Mapping[bytes, int] | None = None,
) -> dict[bytes, int]: ...
def count_pairs(sequences: Sequence[Sequence[int]], weights: Sequence[int]) -> dict[Pair, int]: ...
def merge_pair(sequence: Sequence[int], pair: Pair, new_id: int) -> list[int]: ...
