from collections.abc import Mapping
from typing import final

from tokbpe.arguments import Document

@final
class SpecialTable:
    spellings: dict[bytes, int]
    def __new__(cls, special: Mapping[bytes, int]) -> SpecialTable: ...

def special_table(special: Mapping[bytes, int]) -> SpecialTable: ...
def cut_special(
    document: Document, special: SpecialTable | Mapping[bytes, int] | None
) -> list[tuple[bytes, int | None]]: ...
