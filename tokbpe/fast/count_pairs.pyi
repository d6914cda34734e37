from collections.abc import Sequence
from typing import final

from tokbpe.arguments import Pair

@final
class PairCounts:
    def __new__(cls) -> PairCounts: ...

def count_pairs(sequences: Sequence[Sequence[int]], weights: Sequence[int]) -> dict[Pair, int]: ...
def merge_pair(sequence: Sequence[int], pair: Pair, new_id: int) -> list[int]: ...
