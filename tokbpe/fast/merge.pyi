from typing import final

from tokbpe.fast.table import EncodingTable

SHORT_PIECE_SYMBOLS: int
FEW: int
WINDOW_SIZE: int

@final
class Merging:
    packed: bool
    def __new__(cls, table: EncodingTable) -> Merging: ...
    def merge(self, piece: bytes) -> list[int]: ...
    def parts(self, piece: bytes) -> list[bytes]: ...
