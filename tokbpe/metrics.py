"""Measures by which tokenizers, and models over them, are compared.

Tokens of different tokenizers stand for different amounts of text, so losses by token cannot be
compared; by byte of text they can.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, reading
from tokbpe.arguments import Documents
from tokbpe.corpus import Corpus
from tokbpe.files import naming
from tokbpe.reading import BLOCK_BYTES, Block
from tokbpe.sources import Given, Source, bytes_of
from tokbpe.tokenizer import Tokenizer

LARGEST_TABLE = 2**24


@dataclass(frozen=True)
class Measure:
    """What a tokenizer makes of some text; measures of several texts can be added.

    bytes: of the text as UTF-8. words: what `str.split()` finds. tokens: without any that would be
        put around a document.
    """

    documents: int = 0
    bytes: int = 0
    words: int = 0
    tokens: int = 0

    @property
    def bytes_per_token(self) -> float:
        """Compression: how much text a token stands for; nan without any."""
        return self.bytes / self.tokens if self.tokens else math.nan

    @property
    def fertility(self) -> float:
        """Tokens per word; nan without any word."""
        return self.tokens / self.words if self.words else math.nan

    def __add__(self, other: "Measure") -> "Measure":
        return Measure(
            self.documents + other.documents,
            self.bytes + other.bytes,
            self.words + other.words,
            self.tokens + other.tokens,
        )


def measure(tokenizer: Tokenizer, corpus: Documents) -> Measure:
    """What a tokenizer makes of a corpus: a `Corpus`, a `str` or bytes, which is one document, or
    an iterable of documents. What is no UTF-8 counts as part of a word. ValueError, naming the
    document, for one that cannot be encoded."""
    return measure_of(tokenizer, corpus if isinstance(corpus, Corpus) else Given(corpus))


def measure_of(tokenizer: Tokenizer, source: Source) -> Measure:
    """The same for the documents of a source, with their names there."""
    total = Measure()
    documents = (bytes_of(text, source.name, number) for number, text in enumerate(source))
    for block in reading.grouped(documents, BLOCK_BYTES):
        total += measured(tokenizer, block, source.name)
    return total


def measured(tokenizer: Tokenizer, block: Block, name: Callable[[int], str]) -> Measure:
    documents = block.texts
    try:
        tokens = int(tokenizer.count_batch(documents).sum())
    except ValueError:
        for number, document in enumerate(documents, block.number):
            with naming(name(number)):
                tokenizer.count(document)
        raise
    return Measure(
        len(documents),
        sum(map(len, documents)),
        sum(len(document.decode("utf-8", "replace").split()) for document in documents),
        tokens,
    )


def measures(tokenizer: Tokenizer, corpora: Mapping[str, Documents]) -> dict[str, Measure]:
    """What a tokenizer makes of each corpus, such as one for each source or language."""
    if not isinstance(corpora, Mapping):
        raise TypeError(
            f"corpora must be a mapping from name to corpus, not {arguments.type_name(corpora)}"
        )
    return {name: measure(tokenizer, corpus) for name, corpus in corpora.items()}


def bits_per_byte(loss: float, bytes: int) -> float:
    """How many bits a model needs for a byte of text.

    loss: the sum, not the mean, of the losses of all tokens of the text, in nats: natural
        logarithms, as torch, JAX and NumPy have them.
    bytes: of the text, or of the tokens that were predicted; see `token_bytes`.
    """
    size = arguments.whole_number(bytes, "bytes", 1, arguments.HIGHEST_COUNT)
    try:
        is_loss = math.isfinite(loss) and loss >= 0
    except TypeError:
        raise TypeError(f"a loss is a number, not {arguments.type_name(loss)}") from None
    if not is_loss:
        raise ValueError(f"a loss is 0 or more, and finite, not {loss}")
    return float(loss) / math.log(2) / size


def token_bytes(tokenizer: Tokenizer) -> NDArray[np.uint32]:
    """How many bytes of text each id stands for, `uint32` [vocab_size]: 0 for special tokens,
    reserved ids, gaps, and `<UNK>`, which may stand for any character.
    `token_bytes(tokenizer)[targets].sum()` is what `bits_per_byte` takes where a loss is that of
    some targets; losses of targets without bytes should not count."""
    if tokenizer.vocab_size > LARGEST_TABLE:
        raise ValueError(f"a vocabulary of {tokenizer.vocab_size} ids; at most {LARGEST_TABLE}")
    sizes = np.zeros(tokenizer.vocab_size, np.uint32)
    others = {*tokenizer.special_tokens.values(), tokenizer._vocabulary.unknown}
    for id, piece in tokenizer.items():
        if id not in others:
            sizes[id] = len(piece)
    return sizes
