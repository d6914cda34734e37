"""Plots, by matplotlib: the extra `plot`. Each draws the numbers that
a function of `figures` gives.

Each takes `ax`, the axes to draw on, and returns the figure. One that is made here is none of
pyplot's open figures: it is seen as the value of a notebook's cell, or saved by `savefig`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tokbpe.arguments import Documents
from tokbpe.show import colors, figures
from tokbpe.show.learning import PairTable
from tokbpe.show.shown import checked_names
from tokbpe.tokenizer import Tokenizer

Axes: TypeAlias = Any  # matplotlib's
Figure: TypeAlias = Any

# Told apart by color-blind people too.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "os^Dvp"
GRID = "#dddddd"
UPRIGHT = 4  # characters of a symbol that fit below a column of a heat map


def plot_merge_counts(
    tokenizers: Tokenizer | Mapping[str, Tokenizer], *, ax: Axes | None = None
) -> Figure:
    """How often each pair stood in the corpus when it was merged, against its rank, both on
    logarithmic scales; see `merge_counts`. Several tokenizers have names."""
    named = by_name(tokenizers)
    found = {name: figures.merge_counts(each) for name, each in named.items()}
    ax = axes(ax)
    for number, (name, (ranks, counts)) in enumerate(found.items()):
        point = "o" if len(ranks) == 1 else None  # of which there is no line
        ax.plot(ranks, counts, color=color(number), marker=point, linewidth=1.8, label=name)
    ax.set(xscale="log", yscale="log")
    return finished(
        ax, "Count of each merge against its rank", "rank of the merge, from 1", "count", named
    )


def plot_piece_lengths(
    tokenizers: Tokenizer | Mapping[str, Tokenizer], *, ax: Axes | None = None
) -> Figure:
    """How many pieces have each length in bytes; see `piece_lengths`. Several tokenizers have
    names."""
    named = by_name(tokenizers)
    found = {name: figures.piece_lengths(each) for name, each in named.items()}
    ax = axes(ax)
    width = 0.8 / max(len(found), 1)
    for number, (name, (lengths, pieces)) in enumerate(found.items()):
        places = lengths + (number - (len(found) - 1) / 2) * width
        ax.bar(places, pieces, width, color=color(number), label=name)
    return finished(ax, "Pieces by their length", "length, bytes", "pieces", named)


def plot_compression(
    tokenizers: Tokenizer | Mapping[str, Tokenizer],
    corpus: Documents,
    sizes: Sequence[int] | None = None,
    *,
    ax: Axes | None = None,
) -> Figure:
    """Bytes per token of a corpus against the size of the vocabulary; see `compression`. Several
    tokenizers have names."""
    named = by_name(tokenizers)
    if sizes is not None and not len(sizes):
        raise ValueError("sizes must hold one size at least, not none")
    documents = figures.kept(corpus)
    found = {name: figures.compression(each, documents, sizes) for name, each in named.items()}
    ax = axes(ax)
    for number, (name, (ids, values)) in enumerate(found.items()):
        ax.plot(
            ids,
            values,
            color=color(number),
            marker=MARKERS[number % len(MARKERS)],
            linewidth=1.8,
            markersize=5,
            label=name,
        )
    ax.set_xscale("log")
    ticks = powers_of_two(int(size) for ids, _ in found.values() for size in ids)
    ax.set_xticks(ticks, [f"{size:,}" for size in ticks])
    ax.minorticks_off()
    return finished(
        ax, "Bytes per token against vocabulary size", "vocabulary, ids", "bytes per token", named
    )


def plot_languages(
    tokenizers: Mapping[str, Tokenizer],
    corpora: Mapping[str, Documents],
    measure: str = "bytes_per_token",
    *,
    ax: Axes | None = None,
) -> Figure:
    """What each tokenizer makes of each corpus, such as one for each language: bytes per token, or
    tokens per word ("fertility", which tells nothing where words have no space between them); see
    `languages`."""
    found = figures.languages(tokenizers, corpora)
    values = found.values(measure)
    ax = axes(ax, (8, 0.5 + 0.35 * len(found.languages) * max(len(found.tokenizers), 1) + 1))
    height = 0.8 / max(len(found.tokenizers), 1)
    middles = np.arange(len(found.languages))
    for number, name in enumerate(found.tokenizers):
        places = middles + (number - (len(found.tokenizers) - 1) / 2) * height
        bars = ax.barh(places, values[number], height, color=color(number), label=name)
        ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    ax.set_yticks(middles, found.languages, parse_math=False)
    ax.invert_yaxis()
    ax.margins(x=0.1)
    what = figures.MEASURES[measure]
    return finished(ax, f"{what.capitalize()} of each text", what, "", dict.fromkeys(tokenizers))


def plot_pair_table(table: PairTable, *, ax: Axes | None = None) -> Figure:
    """The counts of pairs as a heat map; the pair that is merged next has a frame."""
    lefts, rights, counts = table.array()
    # At least as wide as its title.
    ax = axes(ax, (max(1.5 + 0.42 * len(rights), 3), 1.5 + 0.42 * len(lefts)))
    picture = np.ones((len(lefts), len(rights), 3))
    for row, column in np.argwhere(counts):
        count = int(counts[row, column])
        background, ink = colors.heat(count, table.highest)
        picture[row, column] = [int(background[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        ax.text(column, row, f"{count:,}", ha="center", va="center", fontsize=8, color=ink)
    if table.winner is not None:
        left, right = table.winner
        ax.imshow(picture, aspect="auto")
        ax.add_patch(frame(rights.index(right) - 0.5, lefts.index(left) - 0.5))
    for ticks, ids in ((ax.set_xticks, rights), (ax.set_yticks, lefts)):
        ticks(range(len(ids)), [table.token(id).plain for id in ids], parse_math=False)
    if any(len(table.token(id).plain) > UPRIGHT for id in rights):
        ax.tick_params("x", rotation=90)
    finished(ax, "Counts of pairs", "right symbol", "left symbol", {})
    ax.grid(False)
    return ax.figure


# What they share


def axes(ax: Axes | None, size: tuple[float, float] = (7, 4.2)) -> Axes:
    """The axes to draw on. ImportError, naming the extra, without matplotlib."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "tokbpe[plot]"') from error
    figure, made = pyplot.subplots(figsize=size, layout="constrained")
    pyplot.close(figure)
    return made


def frame(x: float, y: float) -> Any:
    """A frame around a cell of a heat map."""
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 1, 1, fill=False, edgecolor=colors.WINNER, linewidth=2.5)


def powers_of_two(sizes: Iterable[int]) -> list[int]:
    """Those from the least size to the greatest; the sizes where there are none.

    [259, 700, 1200] -> [512, 1024]
    """
    chosen = sorted(sizes)
    lowest, highest = (size.bit_length() for size in (chosen[0] - 1, chosen[-1]))
    return [2**power for power in range(lowest, highest)] or chosen


def by_name(tokenizers: Tokenizer | Mapping[str, Tokenizer]) -> Mapping[str, Tokenizer]:
    """Tokenizers by name; one alone needs none."""
    if isinstance(tokenizers, Tokenizer):
        return {"": tokenizers}
    checked_names(tokenizers)
    if not tokenizers:
        raise ValueError("there are no tokenizers to draw")
    return tokenizers


def color(number: int) -> str:
    return COLORS[number % len(COLORS)]


def finished(ax: Axes, title: str, x: str, y: str, named: Mapping[str, object]) -> Figure:
    """The figure, with what all plots have: title, labels, a quiet grid, a legend of names."""
    ax.set_title(title, loc="left", fontsize=12, fontweight="bold")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if any(named):
        for text in ax.legend(frameon=False, fontsize=9).get_texts():
            text.set_parse_math(False)
    return ax.figure
