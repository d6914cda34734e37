"""Corpora: documents with a role, from texts or from files, in memory or read again and again."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, reading
from tokbpe.arguments import Documents
from tokbpe.record import Record
from tokbpe.sources import Files, Given, Paths, Source, Text, bytes_of

TRAINING, VALIDATION, TEST = ROLES = ("training", "validation", "test")
# What a summary shows of documents.
SHOWN_DOCUMENTS = 3
SHOWN_CHARACTERS = 60

Kind = TypeVar("Kind", bound="Corpus")


class Budget(NamedTuple):
    """How much a corpus may hold at most; None: any amount."""

    bytes: int | None
    documents: int | None

    @classmethod
    def of(cls, max_bytes: object, max_documents: object) -> "Budget":
        return cls(
            *(
                None
                if value is None
                else arguments.whole_number(value, name, 1, arguments.HIGHEST_COUNT)
                for name, value in (("max_bytes", max_bytes), ("max_documents", max_documents))
            )
        )


class Survey:
    """What is known of the documents of a corpus once they were all seen."""

    def __init__(self) -> None:
        self.record = Record()
        self.documents = self.bytes = self.smallest = self.largest = 0
        self.beginnings: list[str] = []

    def add(self, data: bytes) -> None:
        self.record.add(data)
        size = len(data)
        self.smallest = min(self.smallest, size) if self.documents else size
        self.largest = max(self.largest, size)
        self.documents += 1
        self.bytes += size
        if len(self.beginnings) < SHOWN_DOCUMENTS:
            text = data[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")
            self.beginnings.append(text[:SHOWN_CHARACTERS])

    @property
    def fingerprint(self) -> str:
        return str(self.record.fingerprint)  # which a record that is counted here has


def surveyed(source: Source, budget: Budget, survey: Survey) -> Iterator[Text]:
    """The documents of a source, which must be some, each of them within the budget."""
    for number, document in enumerate(source):
        if number == budget.documents:
            raise ValueError(
                f"{source.name(number)}: with this document the corpus has more than "
                f"max_documents={number} documents"
            )
        data = bytes_of(document, source.name, number)
        survey.add(data)
        if budget.bytes is not None and survey.bytes > budget.bytes:
            raise ValueError(
                f"{source.name(number)}: with this document the corpus has more than "
                f"max_bytes={budget.bytes} bytes"
            )
        yield document
    if not survey.documents:
        raise ValueError("a corpus needs at least one document")


class Corpus:
    """Documents with a role: a snapshot that never changes.

    documents: a `str` or bytes, which is one document, or an iterable of documents; at least one.
    role: "training", "validation" or "test".
    max_bytes, max_documents: how much the corpus may hold; a ValueError names the bound and the
        document that passes it. None: any amount.

    Iteration gives the documents in their order, as they were given: text as `str`, and bytes,
    such as those of a text file, as `bytes`. `len` is how many there are. What is counted and
    hashed of a text is its UTF-8, so a lone surrogate is a UnicodeEncodeError.

    A tokenizer is fitted on a training corpus alone, and keeps the hashes of its documents.
    """

    _role: str
    _name: Callable[[int], str]
    _documents: tuple[Text, ...]
    _survey: Survey  # without documents until they were seen

    def __init__(
        self,
        documents: Documents,
        *,
        role: str = TRAINING,
        max_bytes: int | None = None,
        max_documents: int | None = None,
    ) -> None:
        self._open(Given(documents), role, Budget.of(max_bytes, max_documents))

    def _open(self, source: Source, role: str, budget: Budget) -> None:
        self._role = arguments.choice(role, "role", ROLES)
        self._name = source.name
        self._survey = Survey()
        self._documents = (*surveyed(source, budget, self._survey),)

    @classmethod
    def from_files(
        cls: type[Kind],
        paths: Paths,
        *,
        role: str = TRAINING,
        documents: Text = reading.WHOLE,
        field: str = "text",
        max_bytes: int | None = None,
        max_documents: int | None = None,
    ) -> Kind:
        """The documents of files, in the order given.

        paths: one or several. Of a folder all files count that are in it or in its folders, but
            for those whose name begins with a dot; with `*`, `?` or `[...]` in it, all files that
            match; both are sorted by name.
        documents: of text files: "whole" if each is one document, "line" if each line is one, or
            what stands between two of them. Line ends and separators belong to none.
        field: of JSON Lines (`.jsonl`, `.ndjson`) and Parquet (`.parquet`): the name of what holds
            the text of a document, which each line or row is.

        Other files are text, which need not be UTF-8. Files whose name goes on with `.gz` or
        `.zst` are unpacked. Parquet needs the extra `arrow`, `.zst` the extra `zstandard`.

        Symbolic links are refused, but for folders on the way to a path that is given; so is what
        is no regular file, and a file that changes while it is read: OSError. ValueError, naming
        the file and the line or row, for what is no text.
        """
        budget = Budget.of(max_bytes, max_documents)
        corpus = cls.__new__(cls)
        corpus._open(Files(paths, documents, field, budget.bytes), role, budget)
        return corpus

    # Reading it

    def __iter__(self) -> Iterator[Text]:
        return iter(self._documents)

    def __len__(self) -> int:
        return self._surveyed().documents

    def __bool__(self) -> bool:
        return True  # without a look at the files

    def __repr__(self) -> str:
        size = ""
        if self._survey.documents:
            size = f", {self._survey.documents} documents, {self._survey.bytes} bytes"
        return f"<{type(self).__name__} {self._role}{size}>"

    def _surveyed(self) -> Survey:
        """What is known of the documents, which are read for that if they were not."""
        if not self._survey.documents:
            for _ in self:
                pass
        return self._survey

    @property
    def role(self) -> str:
        """What the documents are for: "training", "validation" or "test"."""
        return self._role

    @property
    def documents(self) -> tuple[Text, ...]:
        """All documents."""
        return self._documents

    @property
    def bytes(self) -> int:
        """How many bytes the documents have; text counts as UTF-8."""
        return self._surveyed().bytes

    @property
    def known_bytes(self) -> int | None:
        """The same if it is known without reading, else None."""
        return self._survey.bytes if self._survey.documents else None

    @property
    def hashes(self) -> tuple[str, ...] | None:
        """The SHA-256 of each document, in hexadecimal; None beyond 100,000 documents."""
        hashes = self._surveyed().record.plain()["hashes"]
        return None if hashes is None else (*hashes,)

    def fingerprint(self) -> str:
        """The SHA-256, in hexadecimal, of the SHA-256 of all documents in their order."""
        return self._surveyed().fingerprint

    @property
    def summary(self) -> dict[str, Any]:
        """What there is to say of the corpus, as plain data of bounded size: role, numbers of
        documents and bytes, the sizes of the smallest and the largest document, the fingerprint,
        and how the first documents begin."""
        survey = self._surveyed()
        return {
            "role": self._role,
            "documents": survey.documents,
            "bytes": survey.bytes,
            "smallest": survey.smallest,
            "largest": survey.largest,
            "fingerprint": survey.fingerprint,
            "beginnings": [*survey.beginnings],
        }

    def name(self, number: int) -> str:
        """What a document is called in errors: its number, or its file and its place there."""
        return self._name(number)

    # Splitting

    def split(
        self: Kind, *, validation: float = 0.1, test: float = 0.0, seed: int = 0
    ) -> tuple[Kind, ...]:
        """A training and a validation corpus, and a test corpus if `test` is not 0.

        validation, test: which share of the documents each gets; at least one document.
        seed: chooses them. The same documents and seed give the same parts, on any machine.

        Documents that are equal go to one part, so that the parts have none in common; those that
        are nearly equal, or say the same in other words, are not seen as such. Each part keeps
        the order. ValueError for another than a training corpus, and if a part would be empty.
        """
        check_divisible(self._role)
        shares = {VALIDATION: share(validation, "validation")}
        if test:
            shares[TEST] = share(test, "test")
        parts = parted(self, shares, arguments.whole_number(seed, "seed", 0, 2**63 - 1))
        roles = enumerate((TRAINING, *shares))
        return tuple(self._part(parts == part, role) for part, role in roles)

    def _part(self: Kind, chosen: NDArray[np.bool_], role: str) -> Kind:
        part = type(self).__new__(type(self))
        part._open(Chosen(self, chosen), role, Budget(None, None))
        return part


class StreamedCorpus(Corpus):
    """Documents that memory need not hold: they are read each time that they are asked for.

    The arguments are those of `Corpus`; `documents` must be an iterable that can be read again and
    again, which an iterator cannot. `from_files` lists the files at once and reads them later.

    What `len`, `bytes`, `fingerprint()`, `hashes` and `summary` tell is that of a `Corpus` of the
    same documents. It is known once all of them were read, by training for example; before that
    they are read for it, also by `list`, which asks for `len` first. Errors of documents and of
    budgets are raised when these are read.

    OSError, naming the file, if one has changed since it was listed; ValueError if all documents
    together are not those of the time before.
    """

    _source: Source
    _budget: Budget

    def _open(self, source: Source, role: str, budget: Budget) -> None:
        if isinstance(source, Given) and source.once:
            raise TypeError(
                "a streamed corpus is read again and again, which an iterator cannot be: "
                "give what it comes from"
            )
        self._role = arguments.choice(role, "role", ROLES)
        self._name = source.name
        self._source = source
        self._budget = budget
        self._survey = Survey()

    def __iter__(self) -> Iterator[Text]:
        survey = Survey()
        yield from surveyed(self._source, self._budget, survey)
        known = self._survey
        if known.documents and known.fingerprint != survey.fingerprint:
            raise ValueError(
                f"the documents have changed: their fingerprint is {survey.fingerprint}, "
                f"and was {known.fingerprint}"
            )
        self._survey = survey

    @property
    def documents(self) -> tuple[Text, ...]:
        """Not to be had: iteration gives them one by one."""
        raise ValueError("a streamed corpus does not hold its documents: iterate over it")


class Chosen:
    """Some of the documents of a corpus."""

    def __init__(self, corpus: Corpus, chosen: NDArray[np.bool_]) -> None:
        self._corpus = corpus
        self._chosen = chosen
        self.name = partial(name_among, corpus._name, np.flatnonzero(chosen))

    def __iter__(self) -> Iterator[Text]:
        chosen = iter(self._chosen.tolist())
        for document in self._corpus:
            if next(chosen, False):
                yield document


def name_among(name: Callable[[int], str], numbers: NDArray[np.int64], number: int) -> str:
    """What is called the document that has a number among some whose numbers are these."""
    return name(int(numbers[number]))


def for_training(documents: Documents) -> Documents:
    """Documents to learn from; ValueError for a corpus that is there for something else."""
    if isinstance(documents, Corpus) and documents.role != TRAINING:
        raise ValueError(
            f"a tokenizer is fitted on a training corpus alone, and this one is {documents.role}"
        )
    return documents


def share(value: object, name: str) -> float:
    """A part of a whole."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {arguments.type_name(value)}")
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, not {value}")
    return float(value)


def check_divisible(role: str) -> None:
    """ValueError for data that are not there for training: those alone are split."""
    if role != TRAINING:
        raise ValueError(f"only training data can be split, and these are {role} data")


def tail_of(count: int, validation: object) -> int:
    """How many of so many tokens, the last ones, are kept for validation.

    validation: which share of them, or how many.
    """
    if arguments.as_index(validation) is None:
        kept = max(round(share(validation, "validation") * count), 1)
    else:
        kept = arguments.whole_number(validation, "validation", 1, arguments.HIGHEST_COUNT)
    if kept >= count:
        raise ValueError(f"of {count} tokens {kept} for validation leave none for training")
    return kept


def parted(corpus: Corpus, shares: Mapping[str, float], seed: int) -> NDArray[np.uint8]:
    """The part of each document: 0 for what is left, and from 1 on by shares."""
    keys = np.fromiter((drawn(document, seed) for document in corpus), np.uint64)
    # Equal documents have one key, and the order of the keys is that of no document.
    distinct, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    part_of = np.zeros(len(distinct), np.uint8)
    for part, wanted in enumerate(shares.values(), 1):
        left = max(round(wanted * len(keys)), 1)
        for index in np.flatnonzero(part_of == 0).tolist():
            if counts[index] <= left:
                part_of[index] = part
                left -= int(counts[index])
                if not left:
                    break
    parts = part_of[places]
    empty = {*range(len(shares) + 1)} - {*parts.tolist()}
    if empty:
        role = (TRAINING, *shares)[min(empty)]
        raise ValueError(
            f"of {len(keys)} documents, {len(distinct)} of them distinct, none is left for {role} "
            f"when {', '.join(f'{role} gets {wanted}' for role, wanted in shares.items())}"
        )
    return parts


def drawn(document: Text, seed: int) -> int:
    """A number that only the document and the seed tell."""
    digest = hashlib.sha256(b"%d:" % seed + arguments.document_bytes(document)).digest()
    return int.from_bytes(digest[:8], "big")
