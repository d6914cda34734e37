"""How the documents of a vocabulary become ids: what stands around the engine's `encode`.

Mostly nothing does. The vocabularies of others may have tokens that are found before a text is
normalized and others that are found after it, NFC, and a space in front of each part of the text.
What an engine cannot be given at once it is given in parts; what makes lists alone, the reference
and methods of others, gets its lists made arrays here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, engines, methods
from tokbpe.arguments import Document
from tokbpe.cached import cached_property
from tokbpe.engines import Engine
from tokbpe.normalize import nfc, nfc_segments
from tokbpe.vocabulary import Vocabulary

Frame: TypeAlias = tuple[Sequence[int], Sequence[int]]  # the ids before and behind a document
ShortCut: TypeAlias = tuple[Callable[..., list[int]], Any, Any]
Arrays: TypeAlias = tuple[NDArray[Any], NDArray[np.uint64]]  # ids, and where each document begins

MOST_UINT16 = 2**16 - 1
CACHE_BYTES = 2**26


class Finder(NamedTuple):
    """What an engine finds special and added tokens by; None where there are none."""

    plain: Any  # in the text as it is given
    normalized: Any  # in what stands between these, normalized

    @property
    def mixed(self) -> bool:
        return self.plain is not None and self.normalized is not None

    @property
    def only(self) -> Any:
        """The one that there is, if it is not mixed; None for none."""
        return self.normalized if self.plain is None else self.plain


class Part(NamedTuple):
    """A part of a document: a token that was found in it, or what the engine is to encode."""

    covered: bytes  # of the document, normalized
    id: int | None
    given: bytes  # to the engine: normalized, and behind the space in front


class DocumentEncoder:
    """Encodes documents by a vocabulary and an engine. Threads may share it."""

    def __init__(self, vocabulary: Vocabulary, engine: Engine) -> None:
        self.vocabulary = vocabulary
        self.engine = engine
        method = methods.get(vocabulary.method)
        self.own: methods.Encoder | None = None
        self.arrays: engines.ArrayEngine | None = None  # the same engine, if it makes arrays
        if hasattr(method, "encoder"):
            self.own = method.encoder(vocabulary)
        else:
            self.arrays = engines.with_arrays(engine)
            self.table = engine.encoding_table(*methods.table_parts(vocabulary))
        # Whether nothing is done to a text before the engine has it.
        self.simple = (
            self.own is None and vocabulary.normalizer is None and not vocabulary.prefix_space
        )
        self.last: tuple[frozenset[str], Finder] = frozenset(), self.finder_of(())

    # Caches, which the tables of the fast engine alone have

    def limit_cache(self, size: int) -> None:
        """Have caches and scratch memory of so many bytes at most."""
        if self.has_cache:
            self.table.cache_limit = size
            self.table.clear_cache()

    def clear_cache(self) -> None:
        if self.has_cache:
            self.table.clear_cache()

    @property
    def cache_used(self) -> int:
        """How many bytes these have now."""
        return self.table.memory() if self.has_cache else 0

    @property
    def has_cache(self) -> bool:
        return self.arrays is not None

    # What is found beside plain text

    def finder(self, allowed: Collection[str] | str) -> Finder:
        """What finds the special tokens that are allowed, and those that always match."""
        if isinstance(allowed, str) and allowed == "all":
            return self.all_tokens
        chosen = frozenset(arguments.special_choice(allowed, self.vocabulary.special_tokens))
        # Callers mostly allow the same set again and again.
        known, finder = self.last
        if known != chosen:
            finder = self.finder_of(chosen)
            self.last = chosen, finder
        return finder

    @cached_property
    def all_tokens(self) -> Finder:
        return self.finder_of(self.vocabulary.special_tokens)

    def finder_of(self, special: Iterable[str]) -> Finder:
        vocabulary = self.vocabulary
        ids = {spelling: vocabulary.special_tokens[spelling] for spelling in special}
        ids.update(vocabulary.added_tokens)
        flags = vocabulary.token_flags
        later = {spelling for spelling in ids if "normalized" in flags.get(spelling, ())}
        return Finder(
            self.found_by({text: id for text, id in ids.items() if text not in later}),
            self.found_by({text: ids[text] for text in later}, self.normalized),
        )

    def found_by(self, ids: dict[str, int], spelled: Callable[[str], str] = str) -> Any:
        """What finds tokens in a text, each as it is `spelled` there."""
        if not ids:
            return None
        spellings = {text: spelled(text).encode("utf-8") for text in ids}
        flags = {
            spellings[text]: flags
            for text, flags in self.vocabulary.token_flags.items()
            if text in ids
        }
        found = {spellings[text]: id for text, id in ids.items()}
        return self.engine.special_table(found, flags)

    # Encoding

    def encode(self, document: Document, finder: Finder) -> list[int]:
        """The ids of a document."""
        given = self.at_once(document, finder)
        if given is not None:
            return self.engine.encode(given, self.table, finder.only)
        return [id for part in self.parts(document, finder) for id in self.ids_of(part)]

    def short_cut(self) -> ShortCut | None:
        """An engine's `encode`, and what to call it with behind a text for its ids where no
        special tokens are allowed; None where more is to do."""
        finder = self.finder(())
        if finder.mixed or not self.simple:
            return None
        return self.engine.encode, self.table, finder.only

    def encode_array(
        self, document: Document, finder: Finder, threads: int | None
    ) -> NDArray[np.uint32]:
        """The same, `uint32` [n]."""
        given = self.at_once(document, finder)
        if self.arrays is None or given is None:
            return np.array(self.encode(document, finder), np.uint32)
        return self.arrays.encode_array(given, self.table, finder.only, threads=threads)

    def encode_into(self, document: Document, finder: Finder, frame: Frame, out: Any) -> int:
        """Write the same, framed, to the beginning of a buffer; how many ids that are."""
        view = arguments.id_buffer(out)
        before, behind = frame
        given = self.at_once(document, finder)
        if not (self.arrays is None or given is None or before or behind):
            return self.arrays.encode_into(given, self.table, out, finder.only)
        ids = np.array([*before, *self.encode(document, finder), *behind], np.uint32)
        if len(ids) > len(view):
            raise ValueError(f"the text has {len(ids)} ids, but `out` has room for {len(view)}")
        if view.itemsize == 2 and ids.max(initial=0) > MOST_UINT16:
            raise ValueError(
                f"id {ids.max()} is too large for uint16, which holds 0 to {MOST_UINT16}"
            )
        if len(ids):  # `asarray` makes an array of something else where there is no memory for this
            np.frombuffer(view, view.format)[: len(ids)] = ids
        return len(ids)

    def encode_batch(
        self, documents: Sequence[Document], finder: Finder, frame: Frame, threads: int | None
    ) -> list[list[int]]:
        """The ids of each document, framed; an error names the index of the document."""
        before, behind = frame
        given = self.batch_at_once(documents, finder)
        if self.arrays is None or given is None:
            return arguments.each(
                lambda document: [*before, *self.encode(document, finder), *behind],
                documents,
                "text",
            )
        return self.arrays.encode_batch(
            given, self.table, finder.only, before=before, behind=behind, threads=threads
        )

    def encode_batch_arrays(
        self,
        documents: Sequence[Document],
        finder: Finder,
        frame: Frame,
        dtype: str,
        threads: int | None,
    ) -> Arrays:
        """The same, one document after another in an array [total] of a type that holds all ids,
        and where each begins and the last ends, `uint64` [documents + 1]."""
        given = self.batch_at_once(documents, finder)
        if self.arrays is None or given is None:
            rows = self.encode_batch(documents, finder, frame, threads)
            offsets = np.zeros(len(rows) + 1, np.uint64)
            np.cumsum([len(row) for row in rows], out=offsets[1:])
            return np.fromiter(chain.from_iterable(rows), dtype, int(offsets[-1])), offsets
        before, behind = frame
        return self.arrays.encode_batch_arrays(
            given,
            self.table,
            finder.only,
            before=before,
            behind=behind,
            dtype=dtype,
            threads=threads,
        )

    def count(self, document: Document, finder: Finder, limit: int | None = None) -> int:
        """How many ids a document has; with a limit, at most one more than that."""
        given = self.at_once(document, finder)
        if given is not None:
            return self.engine.count(given, self.table, finder.only, limit)
        most = arguments.count_limit(limit)
        total = 0
        for part in self.parts(document, finder):
            total += len(self.ids_of(part))
            if total > most:
                return most + 1
        return total

    def count_batch(
        self, documents: Sequence[Document], finder: Finder, threads: int | None
    ) -> NDArray[np.uint64]:
        """How many ids each document has, `uint64` [documents]."""
        given = self.batch_at_once(documents, finder)
        if self.arrays is None or given is None:
            counts = arguments.each(lambda text: self.count(text, finder), documents, "text")
            return np.array(counts, np.uint64)
        return self.arrays.count_batch(given, self.table, finder.only, threads=threads)

    def at_once(self, document: Document, finder: Finder) -> Document | None:
        """What the engine can be given for a whole document, None if only parts of it do."""
        if finder.mixed or self.own is not None or self.vocabulary.prefix_space:
            return None
        if self.simple:
            return document
        return self.normalized_at_once(document, finder)

    def batch_at_once(
        self, documents: Sequence[Document], finder: Finder
    ) -> Sequence[Document] | None:
        """The same for each of some documents, None if that is so for any of them."""
        if self.simple and not finder.mixed:
            return documents
        given = []
        for document in arguments.each(
            lambda document: self.at_once(document, finder), documents, "text"
        ):
            if document is None:
                return None
            given.append(document)
        return given

    def normalized_at_once(self, document: Document, finder: Finder) -> Document | None:
        """A document normalized; None if tokens that are found before that would not be found
        at the same places afterwards."""
        if self.is_normalized(document):
            return document  # and so is each part of it
        data = arguments.document_bytes(document)
        if finder.plain is None:
            return self.normalized_bytes(data)
        parts = [
            (source if id is not None else self.normalized_bytes(source), id)
            for source, id in self.engine.cut_special(data, finder.plain)
        ]
        joined = b"".join(source for source, _ in parts)
        return joined if self.engine.cut_special(joined, finder.plain) == parts else None

    def is_normalized(self, document: Document) -> bool:
        if not isinstance(document, str):
            document = arguments.document_bytes(document).decode("utf-8", "surrogateescape")
        return self.normalized(document) == document

    def ids_of(self, part: Part) -> list[int]:
        if part.id is not None:
            return [part.id]
        if self.own is not None:
            return self.own.encode(part.given)
        return self.engine.encode(part.given, self.table)

    def parts(self, document: Document, finder: Finder) -> Iterator[Part]:
        """The tokens in a document and the text between them, in order."""
        data = arguments.document_bytes(document)
        for source, id in self.engine.cut_special(data, finder.plain):
            if id is not None:
                yield Part(source, id, source)
                continue
            text = self.normalized_bytes(source)
            for part, later_id in self.engine.cut_special(text, finder.normalized):
                given = part if later_id is not None else self.with_prefix(part)
                yield Part(part, later_id, given)

    def segments(self, data: bytes, finder: Finder) -> Iterator[tuple[bytes, bytes]]:
        """A document in segments, each with what it is when it is normalized."""
        for source, id in self.engine.cut_special(data, finder.plain):
            if id is not None or self.normalized_bytes(source) == source:
                yield source, source
                continue
            for text, normalized in nfc_segments(source.decode("utf-8", "surrogateescape")):
                yield (
                    text.encode("utf-8", "surrogateescape"),
                    normalized.encode("utf-8", "surrogateescape"),
                )

    def normalized_bytes(self, data: bytes) -> bytes:
        if self.vocabulary.normalizer is None or data.isascii():
            return data
        text = data.decode("utf-8", "surrogateescape")
        return self.normalized(text).encode("utf-8", "surrogateescape")

    def normalized(self, text: str) -> str:
        return text if self.vocabulary.normalizer is None else nfc(text)

    def with_prefix(self, text: bytes) -> bytes:
        """With the space in front that the vocabulary may want."""
        wanted = self.vocabulary.prefix_space and text and text[:1] != b" "
        return b" " + text if wanted else text


def id_type(dtype: object, vocabulary: Vocabulary) -> str:
    """The name of a type of ids; ValueError for one that does not hold all of a vocabulary."""
    name = arguments.id_dtype(dtype).name
    highest = len(vocabulary) - 1
    if name == "uint16" and highest > MOST_UINT16:
        raise ValueError(
            f"uint16 holds 0 to {MOST_UINT16}, and the highest id is {highest}: use uint32"
        )
    return name


def smallest_type(vocabulary: Vocabulary) -> str:
    """The name of the smallest type of ids that holds all of a vocabulary."""
    return "uint16" if len(vocabulary) <= MOST_UINT16 + 1 else "uint32"


def framed(ids: NDArray[np.uint32], frame: Frame) -> NDArray[np.uint32]:
    """Ids with those that come before and behind."""
    before, behind = frame
    if not (before or behind):
        return ids
    return np.concatenate([np.array(before, np.uint32), ids, np.array(behind, np.uint32)])
