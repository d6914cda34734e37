"""How the documents of a vocabulary become ids: what stands around the engine's `encode`.

Mostly nothing does. The vocabularies of others may have tokens that are found before a text is
normalized and others that are found after it, NFC, and a space in front of each part of the text.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from tokbpe import arguments, methods
from tokbpe.arguments import Document
from tokbpe.engines import Engine
from tokbpe.normalize import nfc, nfc_segments
from tokbpe.vocabulary import Vocabulary


class Finder(NamedTuple):
    """What an engine finds special and added tokens by; None where there are none."""

    plain: Any  # in the text as it is given
    normalized: Any  # in what stands between these, normalized


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
        if hasattr(method, "encoder"):
            self.own = method.encoder(vocabulary)
        else:
            self.table = engine.encoding_table(*methods.table_parts(vocabulary))
        self.last: tuple[frozenset[str], Finder] = frozenset(), self.finder_of(())

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
        if self.at_once(finder):
            return self.engine.encode(document, self.table, finder.plain or finder.normalized)
        ids: list[int] = []
        for part in self.parts(document, finder):
            ids += self.ids_of(part)
        return ids

    def count(self, document: Document, finder: Finder, limit: int | None) -> int:
        """How many ids a document has; with a limit, at most one more than that."""
        if self.at_once(finder):
            found = finder.plain or finder.normalized
            return self.engine.count(document, self.table, found, limit)
        most = arguments.count_limit(limit)
        total = 0
        for part in self.parts(document, finder):
            total += len(self.ids_of(part))
            if total > most:
                return most + 1
        return total

    def at_once(self, finder: Finder) -> bool:
        """Whether the engine can do all."""
        return (
            self.own is None
            and self.vocabulary.normalizer is None
            and not self.vocabulary.prefix_space
            and (finder.plain is None or finder.normalized is None)
        )

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
