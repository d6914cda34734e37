"""The tokens of a text, in colors, with id and bytes."""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments
from tokbpe.arguments import BUFFER_TYPES
from tokbpe.show import colors, markup, pieces
from tokbpe.tokenizer import Tokenizer
from tokbpe.vocabulary import Vocabulary

SHOWN = 1000  # tokens, unless the caller says otherwise
LONGEST = 64  # bytes of a token that are shown


@dataclass(frozen=True)
class Token:
    """A token as it is shown.

    kind: "piece", or "special token", "added token", "reserved id", "unknown".
    """

    id: int
    piece: bytes  # what decoding gives; of a reserved id `<|NAME|>`
    kind: str = "piece"
    unit: str = "byte"

    @property
    def plain(self) -> str:
        """The token in a line of text."""
        if len(self.piece) > LONGEST:
            left_out = f"‹{len(self.piece) - LONGEST:,} bytes more›"
            return pieces.plain(self.piece[:LONGEST]) + left_out
        return pieces.plain(self.piece, self.unit)

    @property
    def title(self) -> str:
        """Id, bytes, and what they are if that cannot be seen."""
        parts = [f"id {self.id}"]
        if self.kind != "piece":
            parts.append(self.kind)
        if self.kind != "reserved id":
            more = " ..." if len(self.piece) > LONGEST else ""
            parts.append(f"bytes {self.piece[:LONGEST].hex(' ')}{more}")
        parts += filter(None, [pieces.names(self.piece[:LONGEST])])
        return ", ".join(parts)

    def colors(self, number: int) -> tuple[str, str]:
        """Background and text color; they tell a token from its neighbors, by its number."""
        if self.kind != "piece":
            return colors.SPECIAL, colors.SPECIAL_INK
        return colors.TINTS[number % len(colors.TINTS)], colors.INK

    def on(self, background: str, ink: str, role: str = "") -> str:
        """The token as HTML in these colors."""
        long = len(self.piece) > LONGEST
        if self.kind != "piece" or long:
            shown = html.escape(self.plain)
        else:
            shown = pieces.marked_up(self.piece, self.unit)
        # Text that runs from right to left must not change the order of tokens.
        direction = "" if self.piece.isascii() else ' dir="auto"'
        # Only what has a role can have a name.
        name = (
            f' role="{role}" aria-label="{html.escape(self.plain)}, id {self.id}"' if role else ""
        )
        return (
            f'<code{name}{direction} title="{html.escape(self.title)}" '
            f'style="{markup.TOKEN}background:{background};color:{ink}">{shown}</code>'
        )


class Tokens:
    """The tokens of a text; in a notebook they show themselves in colors.

    ids: all of them, an array `uint32` [n], or a list if they were given.
    shown: the first tokens, which are seen.
    """

    def __init__(
        self, tokenizer: Tokenizer, ids: NDArray[np.uint32] | list[int], limit: int
    ) -> None:
        most = arguments.whole_number(limit, "limit", 0, 2**31 - 1)
        self.ids = ids
        self.shown = shown_tokens(tokenizer, self.ids[:most])

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        """The tokens between brackets."""
        more = f" and {self.left_out:,} more" if self.left_out else ""
        return "".join(f"[{token.plain}]" for token in self.shown) + more

    def __repr__(self) -> str:
        return str(self)

    @property
    def left_out(self) -> int:
        """How many tokens are not shown."""
        return len(self.ids) - len(self.shown)

    @property
    def note(self) -> str:
        """How many tokens there are, and how many of them are left out."""
        number = markup.count(len(self), "token")
        if not self.left_out:
            return number
        shown = f"the first {len(self.shown):,} are shown"
        return f"{number}, of which {shown}: {self.left_out:,} are left out"

    def html(self) -> str:
        """The tokens as HTML, without a note."""
        drawn = [
            token.on(*token.colors(number), "listitem") for number, token in enumerate(self.shown)
        ]
        for first, last, characters in split_characters([token.piece for token in self.shown]):
            drawn[first] = "<ruby>" + drawn[first]
            label = html.escape(pieces.plain(characters.encode("utf-8")))
            drawn[last] += f'<rt style="{markup.ABOVE}">{label}</rt></ruby>'
        for number, token in enumerate(self.shown):
            if b"\n" in token.piece:
                drawn[number] += "<br>"
        label = html.escape(self.note)
        return (
            f'<div {markup.AS_IT_IS} role="list" aria-label="{label}" dir="ltr" '
            f'style="{markup.FLOW}">{"".join(drawn)}</div>'
        )

    def _repr_html_(self) -> str:
        return f"{self.html()}{markup.note(self.note)}"


def tokens(
    tokenizer: Tokenizer,
    text: str | bytes | Iterable[int],
    *,
    limit: int = SHOWN,
    **options: Any,
) -> Tokens:
    """The tokens of a text, of bytes, or of ids, to be shown in a notebook or printed.

    limit: how many are shown at most.
    options: those of `Tokenizer.encode`, for a text or bytes: `allowed_special`, `bos`, `eos` ...

    Raises what `Tokenizer.encode_array` raises, and ValueError or TypeError, naming id and
    position, for what is no id.
    """
    if isinstance(text, (str, *BUFFER_TYPES)):
        return Tokens(tokenizer, tokenizer.encode_array(text, **options), limit)
    if options:
        raise TypeError(f"ids are not encoded: {sorted(options)} are options for a text")
    ids = list(arguments.ids(text))
    tokenizer.decode_bytes(ids)  # an error for what is no id names its position
    return Tokens(tokenizer, ids, limit)


def shown_tokens(tokenizer: Tokenizer, ids: Iterable[int]) -> list[Token]:
    """Ids with what is to be shown of each."""
    vocabulary = tokenizer._vocabulary
    kinds = kinds_of(vocabulary)
    return [token_of(tokenizer, vocabulary, kinds, int(id)) for id in ids]


def kinds_of(vocabulary: Vocabulary) -> dict[int, str]:
    """What the ids are that are no pieces."""
    return {
        **({} if vocabulary.unknown is None else {vocabulary.unknown: "unknown"}),
        **dict.fromkeys(vocabulary.added_tokens.values(), "added token"),
        **dict.fromkeys(vocabulary.special_tokens.values(), "special token"),
        **dict.fromkeys(vocabulary.reserved.values(), "reserved id"),
    }


def token_of(
    tokenizer: Tokenizer, vocabulary: Vocabulary, kinds: Mapping[int, str], id: int
) -> Token:
    kind = kinds.get(id, "piece")
    if kind == "reserved id":
        return Token(id, tokenizer.decode([id]).encode("utf-8"), kind)
    piece = tokenizer.id_to_piece(id)
    if kind == "piece" and not 0 <= id < len(vocabulary):
        kind = "unknown"  # methods whose vocabulary has a symbol for it take any whole number
    return Token(id, piece, kind, vocabulary.unit if kind == "piece" else "byte")


def split_characters(shown: Sequence[bytes]) -> Iterator[tuple[int, int, str]]:
    """The neighbors that share characters: number of the first and of the last of them, and what
    they share.

    [b"a", b"\\xe2\\x82", b"\\xac!"] -> [(1, 2, "€")]
    """
    begin, last, shared = 0, -1, ""
    for start, stop, character in parted(shown):
        if start > last and shared:
            yield begin, last, shared
            shared = ""
        if not shared:
            begin = start
        last, shared = stop, shared + character
    if shared:
        yield begin, last, shared


def parted(shown: Sequence[bytes]) -> Iterator[tuple[int, int, str]]:
    """Each character that several pieces hold together, with the first and the last of these."""
    # Of a long piece its ends alone: what stands between is shared with no other.
    shown = [piece if len(piece) < 8 else piece[:3] + b"." + piece[-3:] for piece in shown]
    ends = [*accumulate(map(len, shown))]
    number = place = 0
    for character in b"".join(shown).decode("utf-8", "surrogateescape"):
        while ends[number] <= place:
            number += 1
        first = number
        place += len(character.encode("utf-8", "surrogateescape"))
        while ends[number] < place:
            number += 1
        if number > first:
            yield first, number, character


class Comparison:
    """A text as several tokenizers have it."""

    def __init__(self, size: int, found: Mapping[str, Tokens]) -> None:
        self.size = size  # in bytes
        self.tokens = dict(found)

    def __repr__(self) -> str:
        return "\n".join(f"{name}, {found.note}: {found}" for name, found in self.tokens.items())

    def _repr_html_(self) -> str:
        rows = (
            f'<div {markup.AS_IT_IS} style="margin:0.6em 0"><b>{html.escape(name)}</b> '
            f"<small>{self.measure(found)}</small>{found.html()}</div>"
            for name, found in self.tokens.items()
        )
        return "".join(rows)

    def measure(self, found: Tokens) -> str:
        """How many tokens a tokenizer makes, and of how many bytes each, as HTML."""
        size = f"{self.size / len(found):.2f} bytes per token" if len(found) else "no bytes"
        return html.escape(f"{found.note}, {size}")


def compare(
    tokenizers: Mapping[str, Tokenizer], text: str | bytes, *, limit: int = SHOWN, **options: Any
) -> Comparison:
    """A text as several tokenizers, by name, have it; see `tokens`."""
    checked_names(tokenizers)
    found = {
        name: tokens(tokenizer, text, limit=limit, **options)
        for name, tokenizer in tokenizers.items()
    }
    return Comparison(len(arguments.document_bytes(text)), found)


def checked_names(tokenizers: object) -> None:
    """TypeError unless tokenizers have names."""
    if not isinstance(tokenizers, Mapping):
        raise TypeError(
            f"tokenizers must be a mapping from name to tokenizer, "
            f"not {arguments.type_name(tokenizers)}"
        )
