"""What compiled callers are given of a tokenizer: tables of the compiled engine, and numbers."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from tokbpe import methods
from tokbpe.decoding import DocumentDecoder
from tokbpe.encoding import DocumentEncoder, Finder
from tokbpe.symbols import MARKER


class Parts(NamedTuple):
    """All that a handle of the native table stands for."""

    encoding: Any  # the engine's tables
    special: Any
    decoding: Any
    ids: Mapping[bytes, int]  # of pieces
    spelled: frozenset[int]  # the ids whose bytes are kept as they are where a text ends,
    marker: bytes  # and what is taken off behind the last one else
    method: int  # its stable number
    size: int  # the highest id + 1


def tables(encoder: DocumentEncoder, allowed: Collection[str] | str) -> tuple[Any, Any]:
    """What the engine's `encode` is called with behind a text.

    ValueError, naming it, for what the engine would have to be helped with.
    """
    finder = encoder.finder(allowed)
    reason = refusal(encoder, finder)
    if reason is not None:
        raise ValueError(
            f"compiled callers have the engine alone, but {reason}: use Tokenizer.encode"
        )
    return encoder.table, finder.only


def refusal(encoder: DocumentEncoder, finder: Finder) -> str | None:
    """Why the engine cannot do all by itself, if that is so."""
    vocabulary = encoder.vocabulary
    if encoder.own is not None:
        return f"the method {vocabulary.method!r} has an encoder of its own"
    if encoder.arrays is None:
        return 'this tokenizer has the engine "reference"'
    if vocabulary.normalizer is not None:
        return f"this vocabulary has the normalizer {vocabulary.normalizer!r}"
    if vocabulary.prefix_space:
        return "this vocabulary puts a space in front of a text (prefix_space)"
    if finder.mixed:
        return "some of the special tokens have the flag 'normalized', and others do not"
    return None


def parts(
    encoder: DocumentEncoder, decoder: DocumentDecoder, allowed: Collection[str] | str
) -> Parts:
    """All parts; errors as in `tables`."""
    vocabulary = encoder.vocabulary
    table, special = tables(encoder, allowed)
    return Parts(
        table,
        special,
        decoder.raw,
        decoder.ids,
        frozenset(vocabulary.special_tokens.values()),
        MARKER if vocabulary.unit == "word" else b"",
        methods.get(vocabulary.method).number,
        len(vocabulary),
    )
