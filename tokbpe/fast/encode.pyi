from collections.abc import Iterable, Sequence
from typing import final

from tokbpe.arguments import Buffer, Pair
from tokbpe.patterns import Pattern

SHORT_PIECE_SYMBOLS: int

@final
class EncodingTable:
    def __init__(
        self,
        alphabet: Sequence[bytes | None],
        merges: Iterable[Pair],
        pattern: str | Pattern | None = None,
    ) -> None: ...

def encoding_table(
    alphabet: Sequence[bytes | None],
    merges: Iterable[Pair],
    pattern: str | Pattern | None = None,
) -> EncodingTable: ...
def encode(text: str | Buffer, table: EncodingTable) -> list[int]: ...
