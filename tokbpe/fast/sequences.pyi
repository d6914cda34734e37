from collections.abc import Iterable, Sequence
from typing import Any, final

@final
class Sequences:
    def __new__(
        cls,
        sequences: Iterable[Iterable[int]],
        weights: Iterable[int] | None,
        strings: list[bytes],
        most_cells: int,
    ) -> Sequences: ...
    def refuse(
        self, rows: Sequence[Any], weights: Sequence[Any], strings: list[bytes], row: int
    ) -> None: ...
