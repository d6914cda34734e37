"""A corpus as ids, with its role and an identity."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, count_work, states
from tokbpe.blocks import Encoding
from tokbpe.corpus import TRAINING, VALIDATION, Corpus, check_divisible, tail_of
from tokbpe.progress import Progress, reporting
from tokbpe.reading import Block
from tokbpe.record import MOST_HASHES
from tokbpe.vocabulary import Vocabulary

# Part of each fingerprint.
VERSION = 1


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """The ids of a corpus, which `Tokenizer.encode_corpus` gives. It never changes.

    tokens: `uint16` or, where the vocabulary needs it, `uint32` [tokens], read only: the ids of
        all documents, one after another.
    offsets: `uint64` [documents + 1], read only: document i has the ids from offsets[i] to
        offsets[i + 1].
    role: that of the corpus.
    tokenizer, corpus: the fingerprints of what it was made by and of.
    options: how it was encoded, as plain data.
    checked: whether no document of it is one that the tokenizer was fitted on; False for a training
        corpus, and where that could not be told.
    part: of `split`, the first token and the end of the part, in the whole; None for that.
    """

    tokens: NDArray[Any]
    offsets: NDArray[np.uint64]
    role: str
    tokenizer: str
    corpus: str
    options: Mapping[str, Any]
    checked: bool = False
    part: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for array in (self.tokens, self.offsets):
            array.flags.writeable = False

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return (
            f"<EncodedCorpus {self.role}, {self.documents} documents, {len(self.tokens)} tokens, "
            f"{self.tokens.dtype}>"
        )

    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of all that tells the tokens: the fingerprints of tokenizer and
        corpus, the options, the part; and of the role."""
        return identity(self.tokenizer, self.corpus, self.role, self.options, self.part)

    def split(self, validation: float | int = 0.1) -> tuple["EncodedCorpus", "EncodedCorpus"]:
        """The tokens but for the last ones, as training data, and these, as validation data.

        validation: which share of the tokens is kept for validation, or how many of them.

        A document that is cut has a part in both. Nothing is copied. The tokenizer may have seen
        what is kept: `Corpus.split`, before it is fitted, divides whole documents instead.
        """
        check_divisible(self.role)
        count = len(self.tokens)
        place = count - tail_of(count, validation)
        # A document that ends at the place, with or without tokens, is training data.
        beyond = int(np.searchsorted(self.offsets, np.uint64(place), "right"))
        before = self.offsets[:beyond]
        if int(before[-1]) < place:
            before = np.append(before, np.uint64(place))
        behind = np.append(np.uint64(0), self.offsets[beyond:] - np.uint64(place))
        return (
            self._between(0, place, before, TRAINING),
            self._between(place, count, behind, VALIDATION),
        )

    def _between(
        self, start: int, stop: int, offsets: NDArray[np.uint64], role: str
    ) -> "EncodedCorpus":
        return replace(
            self,
            tokens=self.tokens[start:stop],
            offsets=offsets,
            role=role,
            part=(start, stop),
        )


class Fitted(NamedTuple):
    """The documents that a vocabulary was fitted on, as far as they are known."""

    hashes: frozenset[bytes]
    fingerprints: frozenset[str]  # of all documents of a training
    forgotten: bool  # whether there are trainings whose hashes were not kept
    complete: bool  # whether these are all documents

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "Fitted":
        trainings = vocabulary.provenance
        known = [record.get("hashes") for record in trainings]
        fingerprints = [record.get("fingerprint") for record in trainings]
        forgotten = None in known
        return cls(
            frozenset(bytes.fromhex(text) for hashes in known for text in hashes or ()),
            frozenset(text for text in fingerprints if text is not None),
            forgotten,
            not forgotten and vocabulary.trained,
        )

    @classmethod
    def forbidden(cls, vocabulary: Vocabulary, role: str) -> "Fitted | None":
        """What documents of a role must not be among; None: these may be any."""
        return None if role == TRAINING else cls.of(vocabulary)

    def refuse(
        self, digests: Iterable[bytes], first: int, name: Callable[[int], str], role: str
    ) -> None:
        """ValueError if any of some documents is known.

        digests: the SHA-256 of each. first: the number of the first one. name: what a document is
        called, by its number. role: what they were to be for.
        """
        for number, digest in enumerate(digests, first):
            if digest in self.hashes:
                raise ValueError(
                    f"{name(number)}: the tokenizer was fitted on this document, "
                    f"so it cannot be {role} data"
                )

    def refuse_all(self, fingerprint: str, documents: int, first: str, role: str) -> None:
        """ValueError if all documents together are those of a training; first: what the first
        one is called."""
        if fingerprint in self.fingerprints:
            raise ValueError(
                f"the tokenizer was fitted on these very {documents} documents, from {first} on, "
                f"so they cannot be {role} data"
            )

    def tell_of_forgotten(self, role: str) -> None:
        """A warning if there is a training of whose documents no more is known."""
        if self.forgotten:
            arguments.warn(
                "the hashes of the documents that the tokenizer was fitted on are not known "
                f"(they are kept for up to {MOST_HASHES} documents), so it cannot be checked that "
                f"this {role} corpus holds none of them"
            )


def identity(
    tokenizer: str,
    corpus: str,
    role: str,
    options: Mapping[str, Any],
    part: tuple[int, int] | None = None,
) -> str:
    """SHA-256, in hexadecimal, of all that tells the tokens of a corpus, and of their role.

    tokenizer, corpus: fingerprints. part: the first token and the end of it, in the whole.
    """
    return states.digest(
        {
            "version": VERSION,
            "tokenizer": tokenizer,
            "corpus": corpus,
            "role": role,
            "options": dict(options),
            "part": None if part is None else [*part],
        }
    )


def options(
    special: Iterable[str], bos: bool, eos: bool, add_special_tokens: bool
) -> dict[str, Any]:
    """How documents are encoded, as plain data; special: the tokens that are allowed."""
    return {
        "bos": bool(bos),
        "eos": bool(eos),
        "add_special_tokens": bool(add_special_tokens),
        "allowed_special": sorted({*special}),
    }


def encoded(
    corpus: Corpus, encoding: Encoding, options: Mapping[str, Any], progress: Progress
) -> EncodedCorpus:
    """The ids of a corpus. ValueError if it is no training corpus and holds a document that the
    vocabulary was fitted on; a warning if the hashes of those were not kept."""
    vocabulary = encoding.encoder.vocabulary
    fitted = Fitted.forbidden(vocabulary, corpus.role)
    tokens = bytearray()
    offsets = [np.zeros(1, np.uint64)]
    with reporting(progress, "B", unit_scale=True) as report:
        told = count_work.counter_of(report, corpus.known_bytes)
        done = 0
        for documents, first in count_work.batches(corpus):
            if fitted is not None:
                digests = (hashlib.sha256(document).digest() for document in documents)
                fitted.refuse(digests, first, corpus.name, corpus.role)
            ids, places = encoding.arrays(Block(documents, first), corpus.name)
            tokens += ids.data
            offsets.append(places[1:] + offsets[-1][-1])
            done += sum(map(len, documents))
            if told is not None:
                told(done)
    if fitted is not None:
        fitted.refuse_all(corpus.fingerprint(), len(corpus), corpus.name(0), corpus.role)
        fitted.tell_of_forgotten(corpus.role)
    return EncodedCorpus(
        np.frombuffer(tokens, encoding.dtype),
        np.concatenate(offsets),
        corpus.role,
        vocabulary.fingerprint(),
        corpus.fingerprint(),
        options,
        checked=fitted is not None and fitted.complete,
    )
