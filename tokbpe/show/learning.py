"""A training, step by step, and the counts of pairs that each step chooses from."""

import html
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, engines, methods
from tokbpe.arguments import TIE_BREAKS, Document, Documents, Pair
from tokbpe.counting import PieceCounts
from tokbpe.methods import Options, Training
from tokbpe.show import colors, markup
from tokbpe.show.shown import Token

Weighted: TypeAlias = Documents | PieceCounts | Mapping[Document, int]

STEPS = 100  # of a training, unless the caller says otherwise; and in a notebook at most
MOST_DOCUMENTS = 1_000_000  # of a mapping
SYMBOLS = 24  # of a table of pairs, in a row and in a column

reference: Any = engines.get("reference")


@dataclass(frozen=True)
class Step:
    """One merge of a training.

    id: of the new token.
    pair: the two ids.
    count: how often they stood side by side.
    tied: how many pairs were as frequent, this one included.
    changed: how many different pieces held the pair.
    occurrences: how often these pieces occur.
    """

    id: int
    pair: Pair
    count: int
    tied: int
    changed: int
    occurrences: int


class TrainingRun:
    """The first merges of a training, and the corpus after each of them.

    steps: what was merged.
    rows: the corpus before the first step: the ids of each different piece.
    weights: how often each of these pieces occurs.
    """

    def __init__(self, training: Training, engine: str | None, limit: int) -> None:
        self.training = training
        self.unit = training.base.unit
        self.tie_break = training.base.tie_break or "smallest"
        self.rows = [list(map(int, row)) for row in training.rows]
        self.weights = [int(weight) for weight in training.weights]
        self.pieces = training.base.pieces()  # of each id
        self.strings = list(training.strings)  # the same as the tie rule "greatest" compares them
        self.steps: list[Step] = []
        found = engines.get(engine).train_steps(**training.arguments())
        rows = self.rows
        for pair, count in islice(found, limit):
            rows = self.learn(pair, count, rows)
        self.complete = next(found, None) is None

    def learn(self, pair: Pair, count: int, rows: list[list[int]]) -> list[list[int]]:
        """Note a step; the corpus behind it."""
        counts = reference.count_pairs(rows, self.weights)
        merged = self.merged(rows, pair, len(self.pieces))
        changed = [
            weight
            for before, after, weight in zip(rows, merged, self.weights)
            if len(after) < len(before)
        ]
        tied = sum(other == count for other in counts.values())
        step = Step(len(self.pieces), pair, count, tied, len(changed), sum(changed))
        self.steps.append(step)
        for known in (self.pieces, self.strings):
            left, right = (known[half] or b"" for half in pair)
            known.append(left + right)
        return merged

    def merged(self, rows: list[list[int]], pair: Pair, id: int) -> list[list[int]]:
        """Rows after a merge."""
        return [reference.merge_pair(row, pair, id) for row in rows]

    def __len__(self) -> int:
        return len(self.steps)

    def token(self, id: int) -> Token:
        """An id with what is to be shown of it."""
        return Token(id, self.pieces[id] or b"", "piece", self.unit)

    def rows_after(self, merges: int) -> list[list[int]]:
        """The ids of each piece of the corpus after so many merges."""
        count = arguments.whole_number(merges, "merges", 0, len(self.steps))
        rows = self.rows
        for step in self.steps[:count]:
            rows = self.merged(rows, step.pair, step.id)
        return rows

    def pair_table(self, merges: int = 0) -> "PairTable":
        """The counts of pairs after so many merges."""
        return PairTable(self, self.rows_after(merges))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """A line of text for each step."""
        for step in self.steps:
            left, right = (self.token(half).plain for half in step.pair)
            new = self.token(step.id).plain
            yield f"{step.id:>7} {step.count:>10,}  {left} + {right} = {new}"

    def _repr_html_(self) -> str:
        header = ("step", "pair", "count", "tied", "new token", "id", "pieces changed")
        body = [self.row(number, step) for number, step in enumerate(self.steps[:STEPS], 1)]
        more = "" if self.complete else " More merges follow."
        if len(body) < len(self.steps):
            more += f" The first {len(body)} are shown."
        text = (
            f"{markup.count(len(self.steps), 'merge')}, {markup.count(len(self.rows), 'piece')} "
            f"with {sum(self.weights):,} occurrences, tie rule {self.tie_break}.{more}"
        )
        return markup.table(header, body, right="step count id") + markup.note(text)

    def row(self, number: int, step: Step) -> list[str]:
        """The cells of a step, as HTML."""
        left, right = (self.token(half).on(colors.PLAIN, colors.INK) for half in step.pair)
        tied = f"{markup.count(step.tied, 'pair')}" if step.tied > 1 else ""
        return [
            str(number),
            f"{left} + {right}",
            f"{step.count:,}",
            tied,
            self.token(step.id).on(colors.TINTS[0], colors.INK),
            f"{step.id:,}",
            f"{step.changed:,} of {len(self.rows):,}",
        ]


def training(
    corpus: Weighted, *, method: str = "bpe", limit: int = STEPS, **options: Any
) -> TrainingRun:
    """The first steps of a training, to be shown in a notebook or printed.

    corpus: as for `Tokenizer`; or a mapping from text to how often it occurs, of which each text
        is that many documents; or `PieceCounts`.
    limit: the most merges that are shown. Each goes through the whole corpus, in Python: this is
        for corpora that one looks at.
    options: those of `Tokenizer`. Ids follow the base: special tokens have none here.
    """
    most = arguments.whole_number(limit, "limit", 0, 2**31 - 1)
    chosen = Options(**options)
    return TrainingRun(prepared(corpus, method, chosen), chosen.engine, most)


def prepared(corpus: Weighted, method: str, options: Options) -> Training:
    """What an engine is to learn."""
    found: Any = methods.get(method)
    if not hasattr(found, "prepare"):
        raise ValueError(f"the {method} method merges nothing that could be shown")
    if isinstance(corpus, PieceCounts):
        result = found.training(corpus, options)
    elif isinstance(corpus, Mapping):
        result = found.prepare(repeated(corpus), options)
    else:
        result = found.prepare(corpus, options)
    return cast(Training, result)


def repeated(counts: Mapping[Any, int]) -> Iterable[Document]:
    """Each text as many times as it occurs."""
    for text, count in counts.items():
        arguments.whole_number(count, f"the count of {text!r}", 1, arguments.HIGHEST_COUNT)
    if sum(counts.values()) > MOST_DOCUMENTS:
        raise ValueError(
            f"the counts are {sum(counts.values()):,} together, at most {MOST_DOCUMENTS:,}; "
            "for more there is PieceCounts"
        )
    return chain.from_iterable(repeat(text, count) for text, count in counts.items())


def pair_table(
    corpus: Weighted, *, merges: int = 0, method: str = "bpe", **options: Any
) -> "PairTable":
    """How often each pair of neighbors occurs in a corpus after so many merges, and which pair is
    merged next; the arguments are those of `training`.

    {"low": 5, "lower": 2, "newest": 6, "widest": 3} with the method "word": 9 for `e s`.
    """
    return training(corpus, method=method, limit=merges, **options).pair_table(merges)


class PairTable:
    """The counts of pairs of neighbors, and which of them is merged next.

    counts: pair of ids -> its count, in the order in which they are met.
    winners: tie rule -> the pair that it takes; empty where there are no pairs.
    tied: the pairs with the highest count.
    """

    def __init__(self, run: TrainingRun, rows: list[list[int]]) -> None:
        self.token = run.token
        self.tie_break = run.tie_break
        self.counts: dict[Pair, int] = reference.count_pairs(rows, run.weights)
        self.winners: dict[str, Pair] = {
            rule: reference.choose_pair(self.counts, run.strings, rule)
            for rule in (TIE_BREAKS if self.counts else ())
        }
        self.highest = max(self.counts.values(), default=0)
        self.tied = [pair for pair, count in self.counts.items() if count == self.highest]

    @property
    def winner(self) -> Pair | None:
        """The pair that is merged next, if it is frequent enough."""
        return self.winners.get(self.tie_break)

    def spelled(self, pair: Pair) -> str:
        """A pair in a line of text."""
        return " ".join(self.token(half).plain for half in pair)

    def array(self) -> tuple[list[int], list[int], NDArray[np.int64]]:
        """The ids that stand left, those that stand right, and the counts, `int64` [left, right].

        Of many ids those of the most frequent pairs alone, at most 24 on each side.
        """
        lefts, rights = self.sides()
        table = np.zeros((len(lefts), len(rights)), np.int64)
        for (left, right), count in self.counts.items():
            if left in lefts and right in rights:
                table[lefts.index(left), rights.index(right)] = count
        return lefts, rights, table

    def sides(self) -> tuple[list[int], list[int]]:
        """The ids of rows and columns, rising."""
        by_count = sorted(self.counts, key=lambda pair: self.counts[pair], reverse=True)
        # The pairs that the rules take are shown in any case.
        pairs = [*self.winners.values(), *by_count]
        lefts, rights = ({pair[side]: None for pair in pairs} for side in (0, 1))
        return sorted([*lefts][:SYMBOLS]), sorted([*rights][:SYMBOLS])

    @property
    def note(self) -> str:
        """Which pair is merged next, and why."""
        winner = self.winner
        if winner is None:
            return "There are no pairs."
        if len(self.tied) == 1:
            return f"Most frequent, and merged next: {self.spelled(winner)}, with {self.highest:,}."
        rules = (
            f"{rule}{' (the rule here)' if rule == self.tie_break else ''}: {self.spelled(pair)}"
            for rule, pair in self.winners.items()
        )
        return (
            f"{len(self.tied):,} pairs are the most frequent, with {self.highest:,} each. "
            f"Merged next, by tie rule: {'; '.join(rules)}."
        )

    def __repr__(self) -> str:
        pairs = sorted(self.counts.items(), key=lambda item: -item[1])[:SYMBOLS]
        lines = [f"{count:>10,}  {self.spelled(pair)}" for pair, count in pairs]
        return "\n".join([*lines, self.note])

    def _repr_html_(self) -> str:
        lefts, rights, table = self.array()
        shown = int(np.count_nonzero(table))
        header = "".join(
            f'<th scope="col" style="{HEAD}">{self.drawn(right)}</th>' for right in rights
        )
        rows = "".join(
            f'<tr><th scope="row" style="{HEAD}">{self.drawn(left)}</th>'
            + "".join(
                self.cell((left, right), int(count)) for right, count in zip(rights, table[place])
            )
            + "</tr>"
            for place, left in enumerate(lefts)
        )
        text = self.note
        if shown < len(self.counts):
            text += f" {shown:,} of {len(self.counts):,} pairs are shown."
        head = f'<th scope="col" style="{HEAD}"><small>left, right</small></th>{header}'
        return markup.framed(
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>",
            "border-collapse:separate;border-spacing:2px",
        ) + markup.note(text)

    def drawn(self, id: int) -> str:
        """An id in the head of the table, as HTML."""
        return self.token(id).on(colors.PLAIN, colors.INK)

    def cell(self, pair: Pair, count: int) -> str:
        """The cell of a pair, as HTML."""
        if not count:
            return f'<td style="{CELL}"></td>'
        background, ink = colors.heat(count, self.highest)
        title = f"{self.spelled(pair)}: {count:,}"
        border = ""
        if pair == self.winner:
            title += ", merged next"
            border = f";outline:3px solid {colors.WINNER};outline-offset:-3px;font-weight:bold"
        elif count == self.highest:
            title += ", as frequent"
            border = f";outline:2px dashed {colors.WINNER};outline-offset:-2px"
        shown = f"<b>{count:,}</b>" if pair == self.winner else f"{count:,}"
        return (
            f'<td title="{html.escape(title)}" style="{CELL};background:{background};'
            f'color:{ink}{border}">{shown}</td>'
        )


HEAD = "padding:2px;border:0;text-align:center;font-weight:normal"
CELL = "min-width:2.2em;padding:4px;border:0;text-align:center"
