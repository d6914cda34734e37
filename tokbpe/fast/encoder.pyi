from collections.abc import Collection, Iterable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tokbpe.arguments import Buffer
from tokbpe.fast.special import SpecialTable
from tokbpe.fast.table import EncodingTable

@final
class Encoder:
    # The tokenizer is a `tokbpe.Tokenizer`, which this package does not know.
    def __new__(
        cls,
        tokenizer: EncodingTable | Any,
        special: Collection[str] | str | SpecialTable | Mapping[bytes, int] | None = None,
    ) -> Encoder: ...
    @property
    def table(self) -> EncodingTable: ...
    @property
    def special(self) -> SpecialTable | None: ...
    def encode(self, text: str | Buffer, /) -> list[int]: ...
    def encode_array(
        self, text: str | Buffer, *, threads: int | None = None
    ) -> NDArray[np.uint32]: ...
    def encode_into(self, text: str | Buffer, out: Any) -> int: ...
    def encode_batch(
        self,
        texts: Iterable[str | Buffer],
        *,
        before: Iterable[int] = (),
        behind: Iterable[int] = (),
        threads: int | None = None,
    ) -> list[list[int]]: ...
    def encode_batch_arrays(
        self,
        texts: Iterable[str | Buffer],
        dtype: DTypeLike = "uint32",
        threads: int | None = None,
        *,
        before: Iterable[int] = (),
        behind: Iterable[int] = (),
    ) -> tuple[NDArray[Any], NDArray[np.uint64]]: ...
    def count(self, text: str | Buffer, limit: int | None = None) -> int: ...
    def count_batch(
        self, texts: Iterable[str | Buffer], *, threads: int | None = None
    ) -> NDArray[np.uint64]: ...
    def clear_cache(self) -> None: ...
    def memory(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
