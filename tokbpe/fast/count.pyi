from collections.abc import Callable, Mapping
from typing import Any, final

from tokbpe.arguments import Documents
from tokbpe.fast.piece_table import PieceTable
from tokbpe.fast.special import SpecialTable
from tokbpe.patterns import Pattern

def use_batches(most_bytes: int, most_documents: int) -> None: ...

@final
class TextView:
    def __new__(cls) -> TextView: ...
    def __len__(self) -> int: ...

@final
class PieceCounting: ...

def document_view(document: object, index: int | None = None) -> Any: ...
def count_table(
    corpus: Documents,
    pattern: str | Pattern | None = None,
    special: SpecialTable | Mapping[bytes, int] | None = None,
    *,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
    memory_bytes: int | None = None,
) -> PieceTable: ...
def count_pieces(
    corpus: Documents,
    pattern: str | Pattern | None = None,
    special: SpecialTable | Mapping[bytes, int] | None = None,
) -> dict[bytes, int]: ...
