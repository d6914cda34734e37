"""How often each piece of a vocabulary occurs in a corpus."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments
from tokbpe.arguments import Documents
from tokbpe.vocabulary import Vocabulary

MOST_COUNTS = 2**24
# How many ids are gathered before they are counted.
GATHERED = 2**18


@dataclass(frozen=True, eq=False)
class Usage:
    """What a tokenizer makes of a corpus.

    counts: `uint64` [vocab_size], how often each id occurs.
    tokens, bytes, documents: how many of each there are; text counts as UTF-8.
    unused: the ids of pieces that never occur, rising; special tokens, reserved ids and `<UNK>`
        are no pieces.
    """

    counts: NDArray[np.uint64] = field(repr=False)
    tokens: int
    bytes: int
    documents: int
    unused: list[int] = field(repr=False)

    @property
    def bytes_per_token(self) -> float:
        """How much text a token stands for; nan without any."""
        return self.bytes / self.tokens if self.tokens else float("nan")


def usage(corpus: Documents, encode: Callable[[bytes], list[int]], vocabulary: Vocabulary) -> Usage:
    """What `encode` makes of the documents of a corpus; they come one by one."""
    if len(vocabulary) > MOST_COUNTS:
        raise ValueError(f"a vocabulary of {len(vocabulary)} ids; {MOST_COUNTS} can be counted")
    counts = np.zeros(len(vocabulary), np.int64)
    gathered: list[int] = []
    size = documents = 0
    for document in arguments.documents(corpus):
        gathered += encode(document)
        size += len(document)
        documents += 1
        if len(gathered) >= GATHERED:
            counts += np.bincount(gathered, minlength=len(counts))
            gathered.clear()
    counts += np.bincount(np.array(gathered, np.int64), minlength=len(counts))
    others = {
        *vocabulary.special_tokens.values(),
        *vocabulary.reserved.values(),
        vocabulary.unknown,
    }
    unused = [id for id, _ in vocabulary.items() if id not in others and not counts[id]]
    return Usage(counts.astype(np.uint64), int(counts.sum()), size, documents, unused)
