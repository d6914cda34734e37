from collections.abc import Iterable, Sequence
from typing import final

from tokbpe.arguments import Pair
from tokbpe.patterns import Pattern

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
        merge_rule: str = "merge_list",
        whole_piece_lookup: bool = False,
    ) -> EncodingTable: ...
    cache_limit: int
    @property
    def cache_size(self) -> int: ...
    def memory(self) -> int: ...
    def clear_cache(self) -> None: ...
    def warm_up(self) -> None: ...

def encoding_table(
    alphabet: Sequence[bytes | None],
    merges: Iterable[Pair],
    pattern: str | Pattern | None = None,
    merge_ids: Iterable[int] | None = None,
    unit: str = "byte",
    unknown: int | None = None,
    merge_rule: str = "merge_list",
    whole_piece_lookup: bool = False,
) -> EncodingTable: ...
