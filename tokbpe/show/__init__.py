"""Tokenizers, tokens, merges and trainings, shown: in notebooks, as plots, in a terminal.

What these functions return shows itself as the value of a notebook's cell, and prints as text.
All of it takes any text: what cannot be seen has a sign or a name, and nothing in a text is taken
for markup.

Tokens and merges:

- `tokens`: the tokens of a text, in colors, with id and bytes.
- `compare`: a text as several tokenizers have it.
- `merges`: the merges of a tokenizer.
- `summary`: a vocabulary at a glance, which is what a tokenizer shows of itself.
- `merge_steps`: how a text is encoded, merge by merge.
- `merge_tree`: the tree of merges behind a word.

Training:

- `training`: the merges of a training, and the corpus after each.
- `pair_table`: the counts of pairs from which the next merge is chosen.

Plots, by the extra `plot`; beside each what gives its numbers:

- `plot_merge_counts`, `merge_counts`: the count of each merge against its rank.
- `plot_piece_lengths`, `piece_lengths`: how many pieces have each length.
- `plot_compression`, `compression`: bytes per token against the size of the vocabulary.
- `plot_languages`, `languages`: tokenizers compared over several texts.
- `plot_pair_table`: a table of pairs.

    >>> from tokbpe import Tokenizer, show
    >>> tokenizer = Tokenizer("low low lower lower", method="bpe", vocabulary_size=259)
    >>> show.tokens(tokenizer, "slow 東")
    [s][low][·][‹e6›][‹9d›][‹b1›]
    >>> show.merge_tree(tokenizer, "low")
    low  id 257, rank 1
      lo  id 256, rank 0
        l  id 108
        o  id 111
      w  id 119
"""

from tokbpe.show.figures import compression, languages, merge_counts, piece_lengths
from tokbpe.show.learning import pair_table, training
from tokbpe.show.plots import (
    plot_compression,
    plot_languages,
    plot_merge_counts,
    plot_pair_table,
    plot_piece_lengths,
)
from tokbpe.show.shown import compare, tokens
from tokbpe.show.steps import merge_steps
from tokbpe.show.summary import merges, summary
from tokbpe.show.tree import merge_tree

__all__ = [
    "compare",
    "compression",
    "languages",
    "merge_counts",
    "merge_steps",
    "merge_tree",
    "merges",
    "pair_table",
    "piece_lengths",
    "plot_compression",
    "plot_languages",
    "plot_merge_counts",
    "plot_pair_table",
    "plot_piece_lengths",
    "summary",
    "tokens",
    "training",
]
