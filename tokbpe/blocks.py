"""Files of any size, encoded in blocks that memory holds.

Parts of a document end where the ids of both sides, joined, are those of the whole.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from tokbpe import arguments, files, reading
from tokbpe.encoding import Arrays, DocumentEncoder, Finder, Frame
from tokbpe.reading import MOST_BYTES, Block, Cut, Separation, Source
from tokbpe.vocabulary import Vocabulary


class Plan(NamedTuple):
    """How a file is read."""

    separation: Separation
    size: int  # of a block, in bytes
    cut: Cut | None  # None: each document is encoded whole


def plan(documents: object, size: object, vocabulary: Vocabulary, special: Sequence[str]) -> Plan:
    """How files are read for a vocabulary; special: the tokens that are allowed."""
    return Plan(
        reading.separation(documents),
        arguments.whole_number(size, "block_bytes", 1, MOST_BYTES),
        cutter(vocabulary, special),
    )


class Encoding(NamedTuple):
    """How files are read and encoded."""

    plan: Plan
    encoder: DocumentEncoder
    finder: Finder
    frame: Frame
    dtype: str
    threads: int | None

    def arrays(self, block: Block, name: Callable[[int], str] | None = None) -> Arrays:
        """The ids of a block, and where each document or part in it begins and the last ends.

        name: what a document is called in errors, by its number.
        """
        before, behind = self.frame
        part = () if block.start else before, behind if block.last else ()
        try:
            return self.encoder.encode_batch_arrays(
                block.texts, self.finder, part, self.dtype, self.threads
            )
        except ValueError:
            self._tell_of_document(block, name or self.plan.separation.place)
            raise

    def _tell_of_document(self, block: Block, name: Callable[[int], str]) -> None:
        """Raise the ValueError of the document in a block that cannot be encoded, naming it."""
        for number, text in enumerate(block.texts, block.number):
            try:
                self.encoder.count(text, self.finder)
            except ValueError as error:
                part = f"from byte {block.start} on" if block.start else ""
                places = [place for place in (name(number), part) if place]
                raise ValueError(": ".join([*places, str(error)])) from error


def encoded(source: Source, encoding: Encoding) -> Iterator[Arrays]:
    """The ids of each block of a file, and where in these documents begin and the last ends."""
    with reading.opened(source) as file, naming(file):
        for block in reading.blocks(file, *encoding.plan):
            ids, offsets = encoding.arrays(block)
            yield ids, offsets[1:] if block.start else offsets


def naming(file: Any) -> AbstractContextManager[None]:
    """Has errors of reading name a file, but for one that has no name: they may be of its owner."""
    return files.naming_damage(reading.file_name(file)) if hasattr(file, "name") else nullcontext()


# Cutting


def cutter(vocabulary: Vocabulary, special: Sequence[str]) -> Cut | None:
    """What finds safe cuts in the documents of a vocabulary, None if what it does at a place
    depends on more than what is near."""
    tokens = {*special, *vocabulary.added_tokens}
    flags = vocabulary.token_flags
    if not pattern_can_be_cut(vocabulary) or (
        vocabulary.normalizer is not None
        and any("normalized" in flags.get(token, ()) for token in tokens)
    ):
        return None
    # A space would be put in front of a part that begins with a letter.
    places = (
        reading.BEFORE_SPACE if vocabulary.prefix_space else reading.BEFORE_SPACE_OR_BEHIND_LINE
    )
    return reading.cutter(tokens, places)


def pattern_can_be_cut(vocabulary: Vocabulary) -> bool:
    """Whether `safe_cut` holds for its pattern, or pieces do not matter."""
    pattern = vocabulary.pattern
    if pattern is None:
        return vocabulary.method in ("byte", "char")
    return reading.can_be_cut(pattern)
