"""What a tokenizer is, at a glance, and its merges."""

from collections.abc import Iterator

from tokbpe import arguments
from tokbpe.show import colors, markup, pieces
from tokbpe.show.shown import Token
from tokbpe.tokenizer import Tokenizer
from tokbpe.vocabulary import Vocabulary

MERGES = 20  # unless the caller says otherwise
AT_A_GLANCE = 5
BY_PIECES = "any two pieces that join to a piece, the lowest id first"
NAMES = 8  # of special tokens


class Merges:
    """Some merges of a vocabulary, in the order learned."""

    def __init__(self, vocabulary: Vocabulary, first: int, limit: int) -> None:
        self.first = arguments.whole_number(first, "first", 0, 2**32)
        most = arguments.whole_number(limit, "limit", 0, 2**31 - 1)
        self.unit = vocabulary.unit
        self.by_pieces = vocabulary.merge_rule == "rank_by_piece"
        self.total = len(vocabulary.merges)
        chosen = slice(self.first, self.first + most)
        self.pairs = vocabulary.merges[chosen].tolist()
        self.ids = vocabulary.ids_of_merges[chosen].tolist()
        self.counts = vocabulary.merge_counts[chosen].tolist()  # none, if it was imported
        self.pieces = dict(vocabulary.items()) if self.pairs else {}

    def __len__(self) -> int:
        return len(self.pairs)

    def token(self, id: int) -> Token:
        """An id with what is to be shown of it."""
        return Token(id, self.pieces[id], "piece", self.unit)

    def __repr__(self) -> str:
        return self.no_list if self.by_pieces else "\n".join(self.lines())

    @property
    def no_list(self) -> str:
        """What is said where pieces have ranks."""
        return f"There is no list of merges: {BY_PIECES}."

    def lines(self) -> Iterator[str]:
        """A line of text for each merge."""
        for place, ((left, right), id) in enumerate(zip(self.pairs, self.ids)):
            count = f"{self.counts[place]:,}" if self.counts else ""
            halves = f"{self.token(left).plain} + {self.token(right).plain}"
            yield f"{self.first + place:>7} {id:>7} {count:>12}  {halves} = {self.token(id).plain}"

    def _repr_html_(self) -> str:
        if self.by_pieces:
            return markup.note(self.no_list)
        header = ["rank", "merge", "piece", "id", *["count"] * bool(self.counts)]
        rows = (self.row(place) for place in range(len(self)))
        last = self.first + len(self) - 1
        part = 0 < len(self) < self.total
        shown = f"ranks {self.first:,} to {last:,} of " if part else ""
        text = shown + markup.count(self.total, "merge")
        return markup.table(header, rows, right="rank id count") + markup.note(text)

    def row(self, place: int) -> list[str]:
        """The cells of a merge, as HTML."""
        left, right = (self.token(half).on(colors.PLAIN, colors.INK) for half in self.pairs[place])
        id = self.ids[place]
        piece = self.token(id).on(colors.TINTS[0], colors.INK)
        counts = [f"{count:,}" for count in self.counts[place : place + 1]]
        return [f"{self.first + place:,}", f"{left} + {right}", piece, f"{id:,}", *counts]


def merges(tokenizer: Tokenizer, first: int = 0, limit: int = MERGES) -> Merges:
    """The merges of a tokenizer from a rank on, to be shown in a notebook or printed; none where
    pieces have ranks."""
    return Merges(tokenizer._vocabulary, first, limit)


def summary(vocabulary: Vocabulary, engine: str | None = None) -> str:
    """A vocabulary at a glance, as HTML."""
    found = markup.facts(facts(vocabulary, engine))
    listed = Merges(vocabulary, 0, AT_A_GLANCE)
    return found + listed._repr_html_() if len(listed) else found


def facts(vocabulary: Vocabulary, engine: str | None) -> Iterator[tuple[str, str]]:
    """What there is to say in a line each."""
    yield "method", vocabulary.method
    yield "ids", f"{len(vocabulary):,}"
    if vocabulary.merge_rule == "rank_by_piece":
        yield "merges", BY_PIECES
    else:
        yield "merges", f"{len(vocabulary.merges):,}"
    pattern = vocabulary.pattern
    if pattern is not None:
        yield "pattern", pattern.name or " ; ".join(pattern.sources)
    if vocabulary.whole_piece_lookup:
        yield "whole pieces", "looked up before anything is merged"
    if vocabulary.tie_break is not None:
        yield "tie rule", vocabulary.tie_break
    names = [*vocabulary.special_tokens, *vocabulary.added_tokens, *vocabulary.reserved]
    if names:
        spelled = ", ".join(pieces.plain(name.encode("utf-8")) for name in names[:NAMES])
        more = f" and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
        yield "special", spelled + more
    for record in vocabulary.provenance:
        size, documents = record.get("bytes"), record.get("documents")
        if size is not None and documents is not None:
            yield "learned from", f"{size:,} bytes, {markup.count(documents, 'document')}"
    if engine is not None:
        yield "engine", engine
