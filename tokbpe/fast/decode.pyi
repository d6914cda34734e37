from collections.abc import Iterable
from typing import final

from tokbpe.tables import SparsePieces

@final
class DecodingTable:
    def __new__(
        cls, vocabulary: Iterable[bytes | None] | SparsePieces, unknown: bytes | None = None
    ) -> DecodingTable: ...
    def __len__(self) -> int: ...
    def __getitem__(self, id: int, /) -> bytes | None: ...

def decoding_table(
    vocabulary: Iterable[bytes | None] | SparsePieces, unknown: bytes | None = None
) -> DecodingTable: ...
def decode(ids: Iterable[int], table: DecodingTable) -> bytes: ...
