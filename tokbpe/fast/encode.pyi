from collections.abc import Mapping

from tokbpe.arguments import Buffer
from tokbpe.fast.special import SpecialTable
from tokbpe.fast.table import EncodingTable

CHUNK_SIZE: int
WARM_TEXT_SIZE: int

def encode(
    text: str | Buffer,
    table: EncodingTable,
    special: SpecialTable | Mapping[bytes, int] | None = None,
) -> list[int]: ...
def count(
    text: str | Buffer,
    table: EncodingTable,
    special: SpecialTable | Mapping[bytes, int] | None = None,
    limit: int | None = None,
) -> int: ...
