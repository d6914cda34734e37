"""The methods: each turns a corpus into a vocabulary."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tokbpe import arguments, engines, patterns
from tokbpe.arguments import Documents
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

Progress: TypeAlias = bool | Callable[[int, int], object]

BASES = {"bytes": bytes(range(256)), "gpt2": patterns.GPT2_BYTE_ORDER}
DEFAULT_VOCABULARY_SIZE = 512


@dataclass(frozen=True)
class Options:
    """What a training is asked for; None means that the caller did not say."""

    vocabulary_size: int | None = None
    minimum_pair_frequency: int | None = None
    pattern: str | Pattern | None = None
    tie_break: str | None = None
    base: str | None = None
    engine: str | None = None
    progress: Progress = False


class Method(Protocol):
    """A way to turn a corpus into a vocabulary."""

    name: str

    def train(self, corpus: Documents, options: Options) -> Vocabulary: ...


class ByteMethod:
    """The distinct bytes of the corpus, in rising order; nothing is merged."""

    name = "byte"

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        defaults = {
            "vocabulary_size": None,
            "minimum_pair_frequency": 2,
            "pattern": None,
            "tie_break": "smallest",
            "base": "bytes",
        }
        for option, default in defaults.items():
            value = getattr(options, option)
            if value is not None and value != default:
                raise ValueError(f"the byte method has no {option}, but it is {value!r}")
        seen: set[int] = set()
        for document in arguments.documents(corpus):
            seen.update(document)
        if not seen:
            raise no_bytes()
        return Vocabulary(
            method=self.name,
            alphabet=tuple(bytes([byte]) for byte in sorted(seen)),
            merges=np.empty((0, 2), np.uint32),
            merge_counts=np.empty(0, np.uint64),
            pattern=None,
        )


class BpeMethod:
    """Byte-pair encoding: all 256 bytes and the merges that are learned."""

    name = "bpe"

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        engine = engines.get(options.engine)
        size = given(options.vocabulary_size, DEFAULT_VOCABULARY_SIZE)
        arguments.whole_number(size, "vocabulary_size", 256, arguments.LARGEST_VOCABULARY)
        frequency = arguments.pair_frequency(given(options.minimum_pair_frequency, 2))
        tie_break = arguments.choice(
            given(options.tie_break, "smallest"), "tie_break", arguments.TIE_BREAKS
        )
        order = BASES[arguments.choice(given(options.base, "bytes"), "base", BASES)]
        pattern = patterns.lossless(options.pattern)
        counts = engine.count_pieces(corpus, pattern)
        if not counts:
            raise no_bytes()
        alphabet = tuple(bytes([byte]) for byte in order)
        ids_of_bytes = bytes(order.index(byte) for byte in range(256))
        with progress_callback(options.progress) as progress:
            merges, merge_counts = engine.train(
                [piece.translate(ids_of_bytes) for piece in counts],
                counts.values(),
                alphabet,
                size - 256,
                frequency,
                tie_break,
                progress,
            )
        if options.vocabulary_size is not None and len(merges) < size - 256:
            warnings.warn(
                f"the corpus gave {256 + len(merges)} of the {size} ids wanted: no other pair "
                f"occurs at least {frequency} times",
                stacklevel=3,
            )
        return Vocabulary(
            method=self.name,
            alphabet=alphabet,
            merges=np.array(merges, np.uint32).reshape(-1, 2),
            merge_counts=np.array(merge_counts, np.uint64),
            pattern=pattern,
        )


METHODS: dict[str, Method] = {method.name: method for method in (ByteMethod(), BpeMethod())}


def get(name: str) -> Method:
    """The method of a name; ValueError for an unknown one."""
    return METHODS[arguments.choice(name, "method", METHODS)]


def given(value: Any, default: Any) -> Any:
    return default if value is None else value


def no_bytes() -> ValueError:
    return ValueError("the corpus holds no bytes: there is nothing to learn from")


@contextlib.contextmanager
def progress_callback(progress: Progress) -> Iterator[Callable[[int, int], object] | None]:
    """What an engine calls with the merges done and wanted: True shows a bar on a terminal."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        from tqdm import tqdm

        with tqdm(unit="merge", disable=None, leave=False) as bar:

            def show(done: int, wanted: int) -> None:
                bar.total = wanted
                bar.update(done - bar.n)

            yield show
