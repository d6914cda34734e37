from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tokbpe.arguments import Documents
from tokbpe.fast.special import SpecialTable
from tokbpe.patterns import Pattern

SLICE_SIZE: int
CHUNK_SIZE: int

def use_batches(most_bytes: int, most_documents: int) -> None: ...

@final
class TextView:
    def __new__(cls) -> TextView: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class PieceTable:
    longest: int
    longest_document: int
    def __new__(cls) -> PieceTable: ...
    def __len__(self) -> int: ...
    def add(self, other: PieceTable) -> None: ...
    def add_counts(
        self, data: NDArray[np.uint8], ends: NDArray[np.uint64], counts: NDArray[np.int64]
    ) -> None: ...
    def counts(self) -> NDArray[np.int64]: ...
    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.int64]]: ...
    def get(self, piece: bytes, default: int | None = None) -> int | None: ...
    def as_dict(self) -> dict[bytes, int]: ...

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
