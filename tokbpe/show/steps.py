"""How a text is encoded, merge by merge, as the reference does it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload
from weakref import WeakKeyDictionary

from tokbpe import arguments, engines, methods
from tokbpe.show import colors, markup
from tokbpe.show.shown import Token, shown_tokens
from tokbpe.tokenizer import Tokenizer
from tokbpe.vocabulary import Vocabulary

MOST_SYMBOLS = 2000  # of a text whose steps are kept
SHOWN = 100  # steps in a notebook, each with so many tokens around the new one:
AROUND = 20

reference: Any = engines.get("reference")
tables: WeakKeyDictionary[Vocabulary, Any] = WeakKeyDictionary()


@dataclass(frozen=True)
class State:
    """The tokens of a text after a merge, or before the first one.

    ids: of all tokens.
    place: which of them was made by the merge, None before the first.
    pair: the two ids that were merged.
    rank: the number of the merge in the order learned; where pieces have ranks, the id.
    taken: the places of tokens that no merge makes: special tokens, and pieces that were looked
        up whole.
    """

    ids: tuple[int, ...]
    taken: tuple[int, ...]
    place: int | None = None
    pair: tuple[int, int] | None = None
    rank: int | None = None


class MergeSteps(Sequence[State]):
    """The states of a text, from its symbols to its tokens."""

    def __init__(self, tokenizer: Tokenizer, states: Sequence[State]) -> None:
        self.tokenizer = tokenizer
        self.states = tuple(states)

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, index: int) -> State: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[State]: ...
    def __getitem__(self, index: int | slice) -> State | Sequence[State]:
        return self.states[index]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """A line of text for each state."""
        for state in self.states:
            tokens = "".join(f"[{token.plain}]" for token in self.tokens(state.ids))
            if state.pair is None or state.rank is None:
                yield f"{'start':>9}  {tokens}"
            else:
                yield f"{state.rank:>9}  {tokens}"

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        """Ids with what is to be shown of each."""
        return shown_tokens(self.tokenizer, ids)

    def _repr_html_(self) -> str:
        rows = [self.row(number, state) for number, state in enumerate(self.states[:SHOWN])]
        header = ("step", "merge", "rank", "tokens then")
        left_out = len(self.states) - len(rows)
        text = markup.count(len(self.states) - 1, "merge")
        taken = len(self.states[0].taken)
        if taken:
            text += f", {markup.count(taken, 'token')} taken without one"
        if left_out:
            text += f", of which the last {left_out:,} are left out"
        return markup.table(header, rows, right="step rank") + markup.note(text)

    def row(self, number: int, state: State) -> list[str]:
        """The cells of a state, as HTML."""
        first = max((state.place or 0) - AROUND, 0)
        ids = state.ids[first : first + 2 * AROUND]
        drawn = "".join(
            token.on(colors.TINTS[0] if place == state.place else colors.PLAIN, colors.INK)
            for place, token in enumerate(self.tokens(ids), first)
        )
        before = "... " if first else ""
        drawn = before + drawn + (" ..." if first + len(ids) < len(state.ids) else "")
        if state.pair is None:
            return [str(number), "", "", drawn]
        left, right = (token.on(colors.PLAIN, colors.INK) for token in self.tokens(state.pair))
        return [str(number), f"{left} + {right}", f"{state.rank:,}", drawn]


def merge_steps(
    tokenizer: Tokenizer, text: str | bytes, *, allowed_special: Collection[str] | str = ()
) -> MergeSteps:
    """The states in which a text stands while it is encoded, one for each merge: the first has
    its symbols, the last the ids that `Tokenizer.encode` gives.

    Inside each piece the merge that was learned earliest comes first, the leftmost of equals; the
    pieces follow one another. Where pieces have ranks, any two neighbors that join to a piece
    are a merge, and the lowest id comes first.

    ValueError for a text of more than 2,000 symbols, and for methods that merges do not describe;
    for others what `encode_array` raises.
    """
    tokenizer.encode_array(text, allowed_special=allowed_special)  # its errors name the place
    parts = parts_of(tokenizer, text, allowed_special)
    count = sum(len(ids) for ids, _ in parts)
    if count > MOST_SYMBOLS:
        raise ValueError(
            f"the text has {count:,} symbols; the steps of at most {MOST_SYMBOLS:,} are kept"
        )
    merges = table_of(tokenizer._vocabulary).merges
    ids: list[int] = []
    taken: list[int] = []
    for part, merged in parts:
        if not merged:
            taken.append(len(ids))
        ids += part
    states = [State(tuple(ids), tuple(taken))]
    start = 0
    for part, merged in parts:
        stop = start + len(part)
        while merged and (merge := reference.next_merge(ids[start:stop], merges)) is not None:
            rank, new_id, place = merge
            place += start
            pair = ids[place], ids[place + 1]
            ids[place : place + 2] = [new_id]
            taken = [at - (at > place) for at in taken]
            stop -= 1
            states.append(State(tuple(ids), tuple(taken), place, pair, rank))
        start = stop
    return MergeSteps(tokenizer, states)


def parts_of(
    tokenizer: Tokenizer, text: str | bytes, allowed_special: Collection[str] | str
) -> list[tuple[list[int], bool]]:
    """The ids with which each piece of a text begins, and whether these are merged."""
    vocabulary = tokenizer._vocabulary
    encoder = tokenizer._encoder
    if encoder.own is not None:
        raise ValueError(f"merges do not describe how the method {vocabulary.method!r} encodes")
    table = table_of(vocabulary)
    parts: list[tuple[list[int], bool]] = []
    for part in encoder.parts(arguments.document_bytes(text), encoder.finder(allowed_special)):
        if part.id is not None:
            parts.append(([part.id], False))
        else:
            for piece in reference.split(part.given, table.pattern):
                whole = table.whole_pieces.get(piece)
                if whole is not None:
                    parts.append(([whole], False))
                else:
                    parts.append((reference.base_ids(piece, table, 0), True))
    return parts


def table_of(vocabulary: Vocabulary) -> Any:
    """What the reference encodes by; made once for each vocabulary."""
    if vocabulary not in tables:
        tables[vocabulary] = reference.encoding_table(*methods.table_parts(vocabulary))
    return tables[vocabulary]
