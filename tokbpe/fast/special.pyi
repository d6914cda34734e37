from collections.abc import Collection, Mapping
from typing import final

from tokbpe.arguments import Document

WINDOW_SIZE: int

@final
class SpecialTable:
    spellings: dict[bytes, int]
    def __new__(
        cls,
        spellings: Mapping[bytes, int],
        flags: Mapping[bytes, Collection[str]] | None = None,
    ) -> SpecialTable: ...

def special_table(
    spellings: Mapping[bytes, int], flags: Mapping[bytes, Collection[str]] | None = None
) -> SpecialTable: ...
def cut_special(
    document: Document, special: SpecialTable | Mapping[bytes, int] | None
) -> list[tuple[bytes, int | None]]: ...
