"""Other vocabularies from one that was trained here: with fewer merges, or with more."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tokbpe import arguments, engines
from tokbpe.arguments import Documents
from tokbpe.engines import Engine
from tokbpe.methods import (
    Options,
    compared,
    counted,
    finish,
    given,
    learned_merges,
    nothing_to_learn,
    table_parts,
    warn_if_smaller,
)
from tokbpe.vocabulary import Vocabulary, lay_out, taken_out

# What `lay_out` decides on, beside the merges, which follow from it.
LAID_OUT = ("alphabet", "special_tokens", "reserved")


def truncated(vocabulary: Vocabulary, size: int) -> Vocabulary:
    """With a prefix of the merges: what training to that size gives."""
    if not vocabulary.trained or vocabulary.merge_ids is not None:
        raise ValueError(
            f"a vocabulary of the {vocabulary.method} method that was imported, or extended "
            "beyond its special tokens, cannot be truncated"
        )
    base = taken_out(vocabulary)
    again = laid_out(vocabulary, base)
    if any(getattr(again, name) != getattr(vocabulary, name) for name in LAID_OUT):
        raise ValueError(
            "the special tokens and reserved ids do not have the ids that they get by "
            f"special_ids={vocabulary.special_ids!r}: the vocabulary cannot be truncated"
        )
    others = len(vocabulary.special_tokens) + len(vocabulary.reserved)
    fixed = len(base.alphabet) + others
    # The alphabet of words is kept whole, whatever the size.
    least = others + 1 if vocabulary.unit == "word" else fixed
    size = arguments.whole_number(size, "vocabulary_size", least, len(vocabulary))
    count = max(size - fixed, 0)
    shorter = replace(
        base,
        merges=base.merges[:count],
        merge_counts=base.merge_counts[:count],
        provenance=(
            *base.provenance[:-1],
            *({**record, "vocabulary_size": size} for record in base.provenance[-1:]),
        ),
    )
    return laid_out(vocabulary, shorter)


def laid_out(vocabulary: Vocabulary, base: Vocabulary) -> Vocabulary:
    """Another, which has none, with the special tokens and reserved ids of a vocabulary."""
    names = list(vocabulary.special_tokens), list(vocabulary.reserved)
    return lay_out(base, *names, vocabulary.special_ids)


def extended(vocabulary: Vocabulary, corpus: Documents, options: Options) -> Vocabulary:
    """With more merges, learned on a corpus as this vocabulary encodes it. All ids stay."""
    if not vocabulary.trained or vocabulary.tie_break is None or not vocabulary.provenance:
        raise ValueError(
            f"this vocabulary of the {vocabulary.method} method was not trained here by a method "
            "that merges: it cannot be extended"
        )
    size = arguments.whole_number(
        options.vocabulary_size,
        "vocabulary_size",
        len(vocabulary),
        arguments.LARGEST_VOCABULARY,
    )
    last = vocabulary.provenance[-1]
    frequency = arguments.pair_frequency(
        given(
            given(options.minimum_pair_frequency, last.get("minimum_pair_frequency")),
            1 if vocabulary.unit == "word" else 2,
        )
    )
    engine = engines.get(options.engine)
    counts = counted(
        corpus,
        vocabulary.pattern,
        replace(options, special_tokens=tuple(vocabulary.special_tokens)),
        text=vocabulary.unit != "byte",
    )
    record = counts.record
    if not record["bytes"]:
        raise nothing_to_learn("bytes")
    rows, weights = encoded_rows(vocabulary, counts, engine)
    merges, merge_counts = learned_merges(
        {
            "sequences": rows,
            "weights": weights,
            "alphabet": compared_pieces(vocabulary),
            "merges_wanted": size - len(vocabulary),
            "minimum_pair_frequency": frequency,
            "tie_break": vocabulary.tie_break,
        },
        options,
    )

    def lay_out_all() -> Vocabulary:
        first = len(vocabulary)
        new_ids = np.arange(first, first + len(merges), dtype=np.uint32)
        ids = np.concatenate([vocabulary.ids_of_merges, new_ids])
        follows = len(ids) == 0 or int(ids[-1]) == len(vocabulary.alphabet) + len(ids) - 1
        training = {
            **record,
            "vocabulary_size": size,
            "minimum_pair_frequency": frequency,
        }
        new_merges = np.array(merges, np.uint32).reshape(-1, 2)
        new_counts = np.array(merge_counts, np.uint64)
        longer = replace(
            vocabulary,
            merges=np.concatenate([vocabulary.merges, new_merges]),
            merge_counts=np.concatenate([vocabulary.merge_counts, new_counts]),
            merge_ids=None if follows else ids,
            provenance=(*vocabulary.provenance, training),
        )
        warn_if_smaller(longer, size, frequency, options.on_interrupt)
        return longer

    return finish(lay_out_all, options.on_interrupt)


def encoded_rows(
    vocabulary: Vocabulary, counts: Mapping[bytes, int], engine: Engine
) -> tuple[list[list[int]], list[int]]:
    """Pieces as the vocabulary encodes them, in the sequences to go on with, and their weights."""
    # The pieces are cut already; only words are never encoded without their pattern.
    pattern = vocabulary.pattern if vocabulary.unit == "word" else None
    table = engine.encoding_table(*table_parts(replace(vocabulary, pattern=pattern)))
    rows: list[list[int]] = []
    weights: list[int] = []
    for piece, weight in counts.items():
        for row in known_runs(engine.encode(piece, table), vocabulary.unknown):
            rows.append(row)
            weights.append(weight)
    return rows, weights


def known_runs(ids: list[int], unknown: int | None) -> Iterator[list[int]]:
    """The ids between unknown ones, which are never merged."""
    run: list[int] = []
    for id in ids:
        if id == unknown:
            yield run
            run = []
        else:
            run.append(id)
    yield run


def compared_pieces(vocabulary: Vocabulary) -> list[bytes | None]:
    """The string of each id as "greatest" compares it; None for what is never merged."""
    pieces = vocabulary.pieces()
    others = [*vocabulary.special_tokens.values(), *vocabulary.reserved.values()]
    for id in [*others, *([] if vocabulary.unknown is None else [vocabulary.unknown])]:
        pieces[id] = None
    return [compared(piece) for piece in pieces] if vocabulary.unit == "word" else pieces
