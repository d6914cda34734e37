"""The record of the documents that a tokenizer was learned from."""

import contextlib
import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from tokbpe import arguments
from tokbpe.arguments import Documents
from tokbpe.aside import OneThread

# Beyond so many documents only the fingerprint of them all is kept.
MOST_HASHES = 100_000
DIGEST = 32  # bytes
# A thread hashes so many bytes of documents at a time.
HASHED_TOGETHER = 2**23
MOST_HASHED_TOGETHER = 2**16  # documents


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
        self._stopped = False  # then the record is of no use any more

    @classmethod
    def unknown(cls) -> "Record":
        """The record of documents of which nothing is known."""
        return cls.from_plain(dict.fromkeys(("documents", "bytes", "fingerprint", "hashes")))

    def watch(
        self,
        corpus: Documents,
        read: Callable[[Any, int | None], Any] = arguments.document_bytes,
        aside: bool = False,
    ) -> Generator[Any, None, None]:
        """The documents of a corpus, as `arguments.documents` gives them, each one recorded;
        `aside`, by a thread, while something else is done with them."""
        with self.adding(aside) as add:
            for document in arguments.documents(corpus, read):
                add(document)
                yield document

    @contextlib.contextmanager
    def adding(self, aside: bool) -> Iterator[Callable[..., None]]:
        """What is called to `add`; `aside`, it leaves that to a thread, which ends here."""
        if not aside:
            yield self.add
            return
        with OneThread() as thread:
            waiting: list[tuple[Any, bool]] = []
            size = 0

            def add(data: Any, last: bool = True) -> None:
                nonlocal waiting, size
                waiting.append((data, last))
                size += len(data)
                if size >= HASHED_TOGETHER or len(waiting) >= MOST_HASHED_TOGETHER:
                    thread.wait()  # so that not too much waits
                    thread.later(self._add_all, waiting)
                    waiting, size = [], 0

            try:
                yield add
            except BaseException:
                self._stopped = True
                raise
            thread.wait()
            self._add_all(waiting)

    def _add_all(self, documents: Iterable[tuple[Any, bool]]) -> None:
        for data, last in documents:
            self.add(data, last)

    def add(self, data: Any, last: bool = True) -> None:
        """Record a document, or a part of one, which is its `last` or not."""
        if self._part is None:
            self._part = hashlib.sha256()
        if len(data) <= HASHED_TOGETHER:
            self._part.update(data)
        else:
            self._update_slowly(memoryview(data))
        if self.bytes is not None:
            self.bytes += len(data)
        if last:
            self._add_digests(self._part.digest())
            self._part = None

    def _update_slowly(self, data: memoryview) -> None:
        """Hash a large document so that Ctrl-C is answered meanwhile."""
        for start in range(0, len(data), HASHED_TOGETHER):
            if not self._stopped:
                self._part.update(data[start : start + HASHED_TOGETHER])

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
        elif self.documents == 0 and other._all is not None:
            self._digests, self._all = None, other._all.copy()
        elif other.documents != 0:
            self._result = other.fingerprint if self.documents == 0 else None
            self._digests = self._all = None
        self.documents = total(documents, other.documents)
        self.bytes = total(size, other.bytes)

    def joined(self, other: "Record") -> "Record":
        """The record of both, one behind the other; neither of them changes."""
        both = Record(self._most)
        both.join(self)
        both.join(other)
        return both

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
