from collections.abc import Iterable, Mapping, Sequence
from typing import final

from tokbpe.arguments import Buffer, Pair
from tokbpe.fast.special import SpecialTable
from tokbpe.patterns import Pattern

SHORT_PIECE_SYMBOLS: int

@final
class EncodingTable:
    def __new__(
        cls,
        alphabet: Sequence[bytes | None],
        merges: Iterable[Pair],
        pattern: str | Pattern | None = None,
        merge_ids: Iterable[int] | None = None,
        unit: str = "byte",
        unknown: int | None = None,
    ) -> EncodingTable: ...

def encoding_table(
    alphabet: Sequence[bytes | None],
    merges: Iterable[Pair],
    pattern: str | Pattern | None = None,
    merge_ids: Iterable[int] | None = None,
    unit: str = "byte",
    unknown: int | None = None,
) -> EncodingTable: ...
def encode(
    text: str | Buffer,
    table: EncodingTable,
    special: SpecialTable | Mapping[bytes, int] | None = None,
) -> list[int]: ...
