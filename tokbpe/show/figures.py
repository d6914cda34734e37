"""The numbers behind the plots, as arrays."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, metrics
from tokbpe.arguments import Documents
from tokbpe.metrics import Measure
from tokbpe.show.shown import checked_names, kinds_of
from tokbpe.symbols import MARKER
from tokbpe.tokenizer import Tokenizer

SIZES = 12  # of vocabularies, unless the caller chooses them
MEASURES = {"bytes_per_token": "bytes per token", "fertility": "tokens per word"}


class MergeCounts(NamedTuple):
    """How often each pair stood in the corpus when it was merged.

    ranks: `int64` [n], 1 for the first merge.
    counts: `uint64` [n].
    """

    ranks: NDArray[np.int64]
    counts: NDArray[np.uint64]


class PieceLengths(NamedTuple):
    """How many pieces have each length.

    lengths: `int64` [n], 1, 2, ... bytes, to that of the longest.
    pieces: `int64` [n].
    """

    lengths: NDArray[np.int64]
    pieces: NDArray[np.int64]


class Compression(NamedTuple):
    """Bytes per token of a text against the size of the vocabulary.

    sizes: `int64` [n], ids.
    bytes_per_token: `float64` [n].
    """

    sizes: NDArray[np.int64]
    bytes_per_token: NDArray[np.float64]


class Languages(NamedTuple):
    """What several tokenizers make of several texts.

    tokenizers, languages: their names.
    measures: of each tokenizer, and for it each language.
    """

    tokenizers: list[str]
    languages: list[str]
    measures: list[list[Measure]]

    def values(self, measure: str = "bytes_per_token") -> NDArray[np.float64]:
        """One measure, "bytes_per_token" or "fertility": `float64` [tokenizers, languages]."""
        name = arguments.choice(measure, "measure", MEASURES)
        rows = [[getattr(found, name) for found in row] for row in self.measures]
        return np.array(rows, np.float64).reshape(len(self.tokenizers), len(self.languages))


def merge_counts(tokenizer: Tokenizer) -> MergeCounts:
    """How often each merge of a tokenizer stood in its corpus. ValueError for a tokenizer without
    counts, which was not learned here."""
    counts = tokenizer.merge_counts
    if not len(counts):
        raise ValueError(
            "this tokenizer has no counts of merges: it was not learned here, or merges nothing"
        )
    return MergeCounts(np.arange(1, len(counts) + 1), counts)


def piece_lengths(tokenizer: Tokenizer) -> PieceLengths:
    """How many pieces of a tokenizer have each length in bytes, special tokens and reserved ids
    apart; the mark of a word's end is none."""
    vocabulary = tokenizer._vocabulary
    marker = MARKER if vocabulary.unit == "word" else b""
    others = kinds_of(vocabulary)
    sizes = [
        len(piece.removesuffix(marker)) for id, piece in vocabulary.items() if id not in others
    ]
    pieces = np.bincount(np.array(sizes, np.int64), minlength=1)[1:]
    return PieceLengths(np.arange(1, len(pieces) + 1), pieces)


def compression(
    tokenizer: Tokenizer, corpus: Documents, sizes: Sequence[int] | None = None
) -> Compression:
    """Bytes per token of a corpus, for vocabularies of these sizes: each is a prefix of the merges
    of the tokenizer, which is what training to that size gives. Nothing is trained.

    sizes: by default some from no merges to all of them, evenly on a scale of powers.

    ValueError for a tokenizer that was not learned here, and for a size beyond its own.
    """
    documents = kept(corpus)
    chosen = list(default_sizes(tokenizer) if sizes is None else sizes)
    found = [metrics.measure(tokenizer.truncated(size), documents) for size in chosen]
    return Compression(
        np.array(chosen, np.int64), np.array([each.bytes_per_token for each in found], np.float64)
    )


def default_sizes(tokenizer: Tokenizer) -> list[int]:
    merges = len(tokenizer.merges)
    base = tokenizer.vocab_size - merges
    steps = np.geomspace(1, merges + 1, SIZES) - 1
    return sorted({base + round(step) for step in steps})


def languages(tokenizers: Mapping[str, Tokenizer], corpora: Mapping[str, Documents]) -> Languages:
    """What tokenizers, by name, make of corpora, by name, such as one for each language."""
    checked_names(tokenizers)
    documents = {name: kept(corpus) for name, corpus in corpora.items()}
    measures = [[*metrics.measures(each, documents).values()] for each in tokenizers.values()]
    return Languages([*tokenizers], [*documents], measures)


def kept(corpus: Documents) -> list[bytes]:
    """The documents of a corpus, which several tokenizers go through."""
    return [*arguments.documents(corpus)]
