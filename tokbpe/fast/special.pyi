from collections.abc import Mapping
from typing import final

@final
class SpecialTable:
    spellings: dict[bytes, int]
    def __init__(self, special: Mapping[bytes, int]) -> None: ...

def special_table(special: Mapping[bytes, int]) -> SpecialTable: ...
def cut_special(
    data: bytes, special: SpecialTable | Mapping[bytes, int] | None
) -> list[tuple[bytes, int | None]]: ...
