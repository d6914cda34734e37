from typing import final

from tokbpe.fast.table import EncodingTable

SHORT_PIECE_SYMBOLS: int

@final
class Merging:
    def __new__(cls, table: EncodingTable) -> Merging: ...
