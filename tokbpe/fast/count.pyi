from collections.abc import Mapping
from typing import final

from tokbpe.arguments import Documents
from tokbpe.fast.special import SpecialTable
from tokbpe.patterns import Pattern

SLICE_SIZE: int

@final
class PieceTable:
    def __new__(cls) -> PieceTable: ...

def count_pieces(
    corpus: Documents,
    pattern: str | Pattern | None = None,
    special: SpecialTable | Mapping[bytes, int] | None = None,
) -> dict[bytes, int]: ...
