"""`Tokenizer`, the class that users meet."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, engines, methods
from tokbpe.arguments import Buffer, Documents
from tokbpe.methods import Options, Progress
from tokbpe.patterns import Pattern

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LARGEST_TUPLE = 2**24


class Tokenizer:
    """A tokenizer, learned from a corpus.

    corpus: a `str` or bytes, which is one document, or an iterable of documents.
    method: "byte" (the distinct bytes of the corpus) or "bpe" (byte-pair encoding).

    For "bpe":

    vocabulary_size: how many ids to have, 256 to 2**32 - 1; 512 if it is not given. It ends
        smaller, with a warning if it was given, when no pair is frequent enough.
    minimum_pair_frequency: how often a pair must occur to be merged.
    pattern: how documents are cut into the pieces that merges do not cross: the name of a
        pattern ("gpt2", "cl100k", "o200k", ...), a regular expression, or None for no cuts.
    tie_break: which of equally frequent pairs is merged: "smallest" ids, met "first", or
        "greatest" bytes.
    base: the order of the first 256 ids: "bytes", or "gpt2" for that of GPT-2's printable
        characters.

    engine: "fast" or "reference"; None for the environment variable TOKBPE_ENGINE, else "fast".
    progress: True for a progress bar on a terminal, or a function that is called with the
        merges done and wanted.

    Raises TypeError or ValueError, naming the value, for arguments of the wrong type or out of
    bounds and for a corpus without bytes; UnicodeEncodeError for text with a lone surrogate.

    A tokenizer never changes, so threads may share it.
    """

    def __init__(
        self,
        corpus: Documents,
        *,
        method: str = "byte",
        vocabulary_size: int | None = None,
        minimum_pair_frequency: int = 2,
        pattern: str | Pattern | None = None,
        tie_break: str = "smallest",
        base: str = "bytes",
        engine: str | None = None,
        progress: Progress = False,
    ) -> None:
        self._engine = engines.get(engine)
        self._engine_name = engines.name_of(engine)
        options = Options(
            vocabulary_size,
            minimum_pair_frequency,
            pattern,
            tie_break,
            base,
            engine,
            progress,
        )
        self._vocabulary = methods.get(method).train(corpus, options)

    def __repr__(self) -> str:
        return (
            f"<Tokenizer {self.method}, {self.vocab_size} ids, "
            f"pattern {self.pattern!r}, engine {self._engine_name!r}>"
        )

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._vocabulary.method

    @property
    def pattern(self) -> str | None:
        """The split pattern: its name, else its spelling; None if documents are not cut."""
        pattern = self._vocabulary.pattern
        if pattern is None:
            return None
        return pattern.name or pattern.sources[0]

    @property
    def vocab_size(self) -> int:
        """The highest id + 1: the number of rows that an embedding needs."""
        return len(self._vocabulary)

    @cached_property
    def vocabulary(self) -> tuple[bytes, ...]:
        """The bytes of each id. ValueError above 2**24 ids: use `items` there."""
        if self.vocab_size > LARGEST_TUPLE:
            raise ValueError(
                f"a vocabulary of {self.vocab_size} ids is too large for a tuple "
                f"(at most {LARGEST_TUPLE}): use .items()"
            )
        return tuple(self._vocabulary.pieces())

    @property
    def vocabulary_bytes(self) -> bytes:
        """All bytes in the order of their ids. ValueError for other methods than "byte"."""
        if self.method != "byte":
            raise ValueError(
                f"vocabulary_bytes is for the byte method, not {self.method!r}: use .vocabulary"
            )
        return b"".join(self._vocabulary.alphabet)

    def items(self) -> Iterator[tuple[int, bytes]]:
        """Each id with its bytes."""
        return enumerate(self._vocabulary.pieces())

    @property
    def merges(self) -> NDArray[np.uint32]:
        """The pairs of ids in the order learned, `uint32` [n, 2], read only."""
        return self._vocabulary.merges

    @property
    def merge_counts(self) -> NDArray[np.uint64]:
        """How often each pair stood in the corpus when it was merged, `uint64` [n], read only."""
        return self._vocabulary.merge_counts

    def encode(self, text: str, errors: str = "strict") -> list[int]:
        """The ids of a text.

        A lone surrogate is a UnicodeEncodeError with its index, or U+FFFD with
        errors="replace". ValueError, naming byte and position, for a byte that the byte
        method has not seen in training.
        """
        arguments.choice(errors, "errors", arguments.ERRORS)
        if not isinstance(text, str):
            raise TypeError(
                f"encode takes str, not {arguments.type_name(text)}; bytes go to encode_bytes"
            )
        if errors == "replace":
            text = LONE_SURROGATE.sub("\ufffd", text)
        return self._engine.encode(text, self._encoding_table)

    def encode_bytes(self, data: Buffer) -> list[int]:
        """The ids of arbitrary bytes; what is no UTF-8 is cut off from what is."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"encode_bytes takes bytes, not {arguments.type_name(data)}; text goes to encode"
            )
        return self._engine.encode(data, self._encoding_table)

    def decode(self, ids: Iterable[int], errors: str = "strict") -> str:
        """The text of ids: any iterable of whole numbers.

        Bytes that are no UTF-8 are a UnicodeDecodeError, or U+FFFD with errors="replace".
        TypeError or ValueError, naming id and position, for what is no id.
        """
        arguments.choice(errors, "errors", arguments.ERRORS)
        return self.decode_bytes(ids).decode("utf-8", errors)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of ids: any iterable of whole numbers."""
        return self._engine.decode(ids, self._decoding_table)

    @cached_property
    def _encoding_table(self) -> Any:
        vocabulary = self._vocabulary
        return self._engine.encoding_table(
            vocabulary.alphabet, vocabulary.merges.tolist(), vocabulary.pattern
        )

    @cached_property
    def _decoding_table(self) -> Any:
        return self._engine.decoding_table(self._vocabulary.pieces())
