from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tokbpe.arguments import Buffer
from tokbpe.fast.special import SpecialTable
from tokbpe.fast.table import EncodingTable

def encode_array(
    text: str | Buffer,
    table: EncodingTable,
    special: SpecialTable | Mapping[bytes, int] | None = None,
    *,
    threads: int | None = None,
) -> NDArray[np.uint32]: ...
def encode_into(
    text: str | Buffer,
    table: EncodingTable,
    out: Any,
    special: SpecialTable | Mapping[bytes, int] | None = None,
) -> int: ...
def encode_batch(
    texts: Iterable[str | Buffer],
    table: EncodingTable,
    special: SpecialTable | Mapping[bytes, int] | None = None,
    *,
    before: Iterable[int] = (),
    behind: Iterable[int] = (),
    threads: int | None = None,
) -> list[list[int]]: ...
def encode_batch_arrays(
    texts: Iterable[str | Buffer],
    table: EncodingTable,
    special: SpecialTable | Mapping[bytes, int] | None = None,
    *,
    before: Iterable[int] = (),
    behind: Iterable[int] = (),
    dtype: DTypeLike = "uint32",
    threads: int | None = None,
) -> tuple[NDArray[Any], NDArray[np.uint64]]: ...
def count_batch(
    texts: Iterable[str | Buffer],
    table: EncodingTable,
    special: SpecialTable | Mapping[bytes, int] | None = None,
    *,
    threads: int | None = None,
) -> NDArray[np.uint64]: ...
