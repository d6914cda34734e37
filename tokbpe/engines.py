"""The two engines behind one name: the only place that knows that there are two."""

import importlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments
from tokbpe.arguments import Buffer, Document, Documents, Pair
from tokbpe.patterns import Pattern
from tokbpe.ranks import Pieces
from tokbpe.tables import SparsePieces

NAMES = ("fast", "reference")
VARIABLE = "TOKBPE_ENGINE"


class Engine(Protocol):
    """The functions that both engines have; `tokbpe.reference` explains them."""

    __name__: str

    def split(self, text: str | Buffer, pattern: str | Pattern | None = ...) -> list[bytes]: ...

    def count_pieces(
        self,
        corpus: Documents,
        pattern: str | Pattern | None = ...,
        special: Any = ...,
    ) -> dict[bytes, int]: ...

    def train_steps(
        self,
        sequences: Iterable[Iterable[int]],
        weights: Iterable[int] | None,
        alphabet: Sequence[bytes | None],
        merges_wanted: int,
        minimum_pair_frequency: int = ...,
        tie_break: str = ...,
        *,
        threads: int | None = ...,
    ) -> Iterator[tuple[Pair, int]]: ...

    # Merges and counts are lists or arrays, and the tables of each engine are its own.
    def train(
        self,
        sequences: Iterable[Iterable[int]],
        weights: Iterable[int] | None,
        alphabet: Sequence[bytes | None],
        merges_wanted: int,
        minimum_pair_frequency: int = ...,
        tie_break: str = ...,
        progress: Callable[[int, int], object] | None = ...,
        *,
        threads: int | None = ...,
        on_interrupt: str = ...,
    ) -> tuple[Any, Any]: ...

    def encoding_table(
        self,
        alphabet: Sequence[bytes | None],
        merges: Iterable[Pair],
        pattern: str | Pattern | None = ...,
        merge_ids: Iterable[int] | None = ...,
        unit: str = ...,
        unknown: int | None = ...,
        merge_rule: str = ...,
        whole_piece_lookup: bool = ...,
    ) -> Any: ...

    def read_ranks(self, data: bytes) -> Pieces: ...

    def cut_pieces(self, blob: bytes, sizes: Any) -> Pieces: ...

    def special_table(
        self,
        spellings: Mapping[bytes, int],
        flags: Mapping[bytes, Collection[str]] | None = ...,
    ) -> Any: ...

    def cut_special(self, data: bytes, special: Any) -> list[tuple[bytes, int | None]]: ...

    def encode(self, text: str | Buffer, table: Any, special: Any = ...) -> list[int]: ...

    def count(
        self, text: str | Buffer, table: Any, special: Any = ..., limit: int | None = ...
    ) -> int: ...

    def decoding_table(
        self, vocabulary: Iterable[bytes | None] | SparsePieces, unknown: bytes | None = ...
    ) -> Any: ...

    def decode(self, ids: Iterable[int], table: Any) -> bytes: ...


class Table(Protocol):
    """Pieces with their counts, in the order of their first appearance."""

    @property
    def about(self) -> Any: ...

    def __len__(self) -> int: ...

    def get(self, piece: bytes, default: int | None = ...) -> int | None: ...

    def add(self, other: Any, before: object = ..., about: object = ...) -> bool: ...

    def replace(self, other: Any, before: object, about: object) -> bool: ...

    def add_counts(
        self, data: NDArray[np.uint8], ends: NDArray[np.uint64], counts: NDArray[np.int64]
    ) -> None: ...

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.int64]]: ...


class ArrayEngine(Engine, Protocol):
    """What the fast engine has beside: arrays, batches, threads. Its tables have caches."""

    PieceTable: Callable[[int | None, object], Table]

    def document_view(self, document: object, index: int | None = ...) -> Any: ...

    def count_table(
        self,
        corpus: Documents,
        pattern: str | Pattern | None = ...,
        special: Any = ...,
        *,
        threads: int | None = ...,
        progress: Callable[[int], object] | None = ...,
        memory_bytes: int | None = ...,
    ) -> Any: ...

    def encode_array(
        self, text: Document, table: Any, special: Any = ..., *, threads: int | None = ...
    ) -> NDArray[np.uint32]: ...

    def encode_into(self, text: Document, table: Any, out: Any, special: Any = ...) -> int: ...

    def encode_batch(
        self,
        texts: Sequence[Document],
        table: Any,
        special: Any = ...,
        *,
        before: Sequence[int] = ...,
        behind: Sequence[int] = ...,
        threads: int | None = ...,
    ) -> list[list[int]]: ...

    def encode_batch_arrays(
        self,
        texts: Sequence[Document],
        table: Any,
        special: Any = ...,
        *,
        before: Sequence[int] = ...,
        behind: Sequence[int] = ...,
        dtype: str = ...,
        threads: int | None = ...,
    ) -> tuple[NDArray[Any], NDArray[np.uint64]]: ...

    def count_batch(
        self,
        texts: Sequence[Document],
        table: Any,
        special: Any = ...,
        *,
        threads: int | None = ...,
    ) -> NDArray[np.uint64]: ...


def with_arrays(engine: Engine) -> ArrayEngine | None:
    """The engine, if it is one that makes arrays; the reference makes lists alone."""
    return cast(ArrayEngine, engine) if hasattr(engine, "encode_array") else None


def name_of(engine: str | None = None) -> str:
    """The engine's name: the one given, else that of the environment variable, else "fast"."""
    if engine is not None:
        return arguments.choice(engine, "engine", NAMES)
    return arguments.choice(os.environ.get(VARIABLE) or "fast", VARIABLE, NAMES)


def get(engine: str | None = None) -> Engine:
    """The engine of a name; ValueError for an unknown one, ImportError if it is not built."""
    return cast(Engine, importlib.import_module(f"tokbpe.{name_of(engine)}"))


def build() -> dict[str, Any]:
    """How the fast engine was compiled, and its ways of scanning, `variants`, of which this machine
    uses the `variant`. ImportError if the engine is not built."""
    facts = importlib.import_module("tokbpe.fast.build").facts()
    scanners = importlib.import_module("tokbpe.fast.split")
    return {**facts, "variants": scanners.VARIANTS, "variant": scanners.VARIANT}
