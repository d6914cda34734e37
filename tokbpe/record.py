"""The record of the documents that a tokenizer was learned from."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tokbpe import arguments
from tokbpe.arguments import Documents

# Beyond so many documents only the fingerprint of them all is kept.
MOST_HASHES = 100_000
DIGEST = 32  # bytes


class Record:
    """Counts and hashes documents as they pass by.

    most_hashes: of so many documents the hashes are kept; None for all.
    documents, bytes: how many there were; None where that is not known.
    """

    def __init__(self, most_hashes: int | None = MOST_HASHES) -> None:
        self.documents: int | None = 0
        self.bytes: int | None = 0
        self._most = most_hashes
        self._digests: bytearray | None = bytearray()
        self._all: Any = hashlib.sha256()  # None where only its result is known,
        self._result: str | None = None  # or not even that
        self._part: Any = None  # the hash of a document that comes in parts

    @classmethod
    def unknown(cls) -> "Record":
        """The record of documents of which nothing is known."""
        return cls.from_plain(dict.fromkeys(("documents", "bytes", "fingerprint", "hashes")))

    def watch(
        self, corpus: Documents, read: Callable[[Any, int | None], Any] = arguments.document_bytes
    ) -> Iterator[Any]:
        """The documents of a corpus, as `arguments.documents` gives them, each one recorded."""
        for document in arguments.documents(corpus, read):
            self.add(document)
            yield document

    def add(self, data: Any, last: bool = True) -> None:
        """Record a document, or a part of one, which is its `last` or not."""
        if self._part is None:
            self._part = hashlib.sha256(data)
        else:
            self._part.update(data)
        if self.bytes is not None:
            self.bytes += len(data)
        if last:
            self._add_digests(self._part.digest())
            self._part = None

    def _add_digests(self, digests: bytes | bytearray) -> None:
        """The SHA-256 of some more documents."""
        if self.documents is not None:
            self.documents += len(digests) // DIGEST
        if self._all is not None:
            self._all.update(digests)
        elif digests:
            self._result = None
        if self._digests is not None:
            self._digests += digests
            if self._most is not None and len(self._digests) > self._most * DIGEST:
                self._digests = None

    def join(self, other: "Record") -> None:
        """Record the documents of another record behind these, as far as they are known."""
        documents, size = self.documents, self.bytes
        if other._digests is not None:
            self._add_digests(other._digests)
        elif other.documents != 0:
            self._result = other.fingerprint if self.documents == 0 else None
            self._digests = self._all = None
        self.documents = total(documents, other.documents)
        self.bytes = total(size, other.bytes)

    @property
    def fingerprint(self) -> str | None:
        """The SHA-256 of those of the documents in order; None where it is not known."""
        return self._result if self._all is None else self._all.hexdigest()

    def plain(self) -> dict[str, Any]:
        """The record as plain data: sizes, the SHA-256 of each document, and of these in order."""
        hashes = None
        if self._digests is not None:
            text = self._digests.hex()
            hashes = [text[i : i + 2 * DIGEST] for i in range(0, len(text), 2 * DIGEST)]
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "fingerprint": self.fingerprint,
            "hashes": hashes,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return Record.from_plain, (self.plain(), self._most)

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], most_hashes: int | None = MOST_HASHES
    ) -> "Record":
        """The record of such data."""
        record = cls(most_hashes)
        if plain["hashes"] is not None:
            record._add_digests(bytes.fromhex("".join(plain["hashes"])))
        else:
            record._digests = record._all = None
            record._result = plain["fingerprint"]
        record.documents = plain["documents"]
        record.bytes = plain["bytes"]
        return record


def total(one: int | None, other: int | None) -> int | None:
    """The sum of what is known."""
    return None if one is None or other is None else one + other
