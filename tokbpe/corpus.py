"""Documents to learn from, and the record of what was learned from."""

import hashlib
from collections.abc import Iterator
from typing import Any

from tokbpe import arguments
from tokbpe.arguments import Documents

# Beyond so many documents only the fingerprint of them all is kept.
MOST_HASHES = 100_000


class Record:
    """Counts and hashes documents as they pass by."""

    def __init__(self) -> None:
        self.documents = 0
        self.bytes = 0
        self.hashes: list[str] | None = []
        self._all = hashlib.sha256()

    def watch(self, corpus: Documents) -> Iterator[bytes]:
        """The documents of a corpus, each one recorded."""
        for document in arguments.documents(corpus):
            digest = hashlib.sha256(document)
            self._all.update(digest.digest())
            self.documents += 1
            self.bytes += len(document)
            if self.documents > MOST_HASHES:
                self.hashes = None
            elif self.hashes is not None:
                self.hashes.append(digest.hexdigest())
            yield document

    def plain(self) -> dict[str, Any]:
        """The record as plain data: sizes, the SHA-256 of each document, and of these in order."""
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "fingerprint": self._all.hexdigest(),
            "hashes": self.hashes,
        }
