"""Byte-pair encoding in plain Python: the algorithm as a person would explain it.

The compiled engine, `tokbpe.fast`, has the same functions and must give the same results and
the same errors. It, and the tests, cite the points below by their numbers.

Pieces
  1. A corpus is one document (a `str`, or bytes) or an iterable of documents. Text stands for
     its UTF-8 bytes; a lone surrogate has none and is an error.
  2. A pattern cuts a document into pieces. Its matches, found from left to right, are pieces,
     and so is the text between two matches; an empty match cuts nothing. Without a pattern a
     document is one piece.
  3. Bytes that are no UTF-8 are not shown to the pattern: each longest run of them is a piece.
  4. Equal pieces are counted together, in the order of their first appearance.

Training
  5. Sequences of symbols are trained on, each with a weight: how often it occurs. Neighbors in
     a sequence form a pair, whose count is the sum of the weights of its places. Places may
     overlap: `a a a` holds the pair `a a` twice.
  6. The pair with the highest count is merged, if that is at least the minimum frequency;
     otherwise training ends.
  7. Equal counts are told apart by one of three rules. "smallest": the smaller pair of ids.
     "first": the pair met first in the sequences as they now stand. "greatest": the greater
     pair of byte strings.
  8. The merged pair becomes the next id. It is replaced in every sequence, from left to right
     and without overlap: `a a a` becomes `aa a`. No merge reaches beyond a sequence.

Encoding and decoding
  9. Inside each piece the neighbors whose merge was learned earliest are merged first, and of
     those the leftmost, one place at a time, until no neighbors can be merged.
 10. Vocabularies of others may rank by piece: any neighbors merge that join to a piece, that of
     the lowest id first. Or they look a whole piece up before anything is merged.
 11. Decoding joins the bytes of the ids.

Special tokens
 12. The spelling of a special token that is looked for is cut out of a document before all this,
     the longest one at the leftmost place. The parts between are documents of their own.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from tokbpe import arguments, patterns
from tokbpe.arguments import Document, Documents, Pair
from tokbpe.patterns import Pattern
from tokbpe.ranks import cut_pieces, read_ranks
from tokbpe.special import Special, cut_special, special_table
from tokbpe.tables import DecodingTable, EncodingTable, base_ids, decoding_table, encoding_table

NOT_UTF8 = re.compile("([\udc80-\udcff]+)")


def split(text: Document, pattern: str | Pattern | None = None) -> list[bytes]:
    """Cut one document into its pieces (points 1 to 3).

    ("I like it", "gpt2") -> [b"I", b" like", b" it"]
    """
    data = arguments.document_bytes(text)
    if pattern is None:
        return [data] if data else []
    pattern = patterns.get(pattern)
    pieces = []
    # Every second run is one of bytes that are no UTF-8, each decoded to a lone surrogate.
    runs = NOT_UTF8.split(data.decode("utf-8", "surrogateescape"))
    for number, run in enumerate(runs):
        texts = patterns.cut(run, pattern) if number % 2 == 0 else [run]
        pieces += [text.encode("utf-8", "surrogateescape") for text in texts]
    return pieces


def count_pieces(
    corpus: Documents, pattern: str | Pattern | None = None, special: Special = None
) -> dict[bytes, int]:
    """Count equal pieces of all documents, in order of first appearance (point 4).

    (["low lower", "low"], "gpt2") -> {b"low": 2, b" lower": 1}
    """
    counts: dict[bytes, int] = {}
    for document in arguments.documents(corpus):
        for part, special_id in cut_special(document, special):
            for piece in split(part, pattern) if special_id is None else []:
                counts[piece] = counts.get(piece, 0) + 1
    return counts


def count_pairs(sequences: Sequence[Sequence[int]], weights: Sequence[int]) -> dict[Pair, int]:
    """Count neighbors, in the order in which they are first met (point 5).

    ([[1, 1, 1, 2], [1, 2]], [1, 5]) -> {(1, 1): 2, (1, 2): 6}
    """
    counts: Counter[Pair] = Counter()
    for sequence, weight in zip(sequences, weights):
        pairs = zip(sequence, sequence[1:])
        if weight == 1:
            counts.update(pairs)
        else:
            for pair in pairs:
                counts[pair] += weight
    return dict(counts)


def choose_pair(counts: Mapping[Pair, int], strings: Sequence[bytes], tie_break: str) -> Pair:
    """The pair to merge next (points 6 and 7)."""
    if tie_break == "first":
        # The counts stand in the order met, and max() takes the first of equals.
        return max(counts, key=counts.__getitem__)
    if tie_break == "greatest":
        return max(counts, key=lambda p: (counts[p], strings[p[0]], strings[p[1]], p))
    highest = max(counts.values())
    return min(pair for pair, count in counts.items() if count == highest)


def merge_pair(sequence: Sequence[int], pair: Pair, new_id: int) -> list[int]:
    """Replace a pair from left to right, without overlap (point 8).

    ([1, 1, 1, 2], (1, 1), 3) -> [3, 1, 2]
    """
    left, right = pair
    merged: list[int] = []
    previous = None
    for symbol in sequence:
        if symbol == right and previous == left:
            # The new id is neither half of the pair, so what was merged is not merged again.
            merged[-1] = previous = new_id
        else:
            merged.append(symbol)
            previous = symbol
    return merged


def train_steps(
    sequences: Iterable[Iterable[int]],
    weights: Iterable[int] | None,
    alphabet: Sequence[bytes | None],
    merges_wanted: int,
    minimum_pair_frequency: int = 2,
    tie_break: str = "smallest",
    *,
    threads: int | None = None,
) -> Iterator[tuple[Pair, int]]:
    """Learn merges one by one, and yield each pair with its count (points 5 to 8).

    `alphabet` gives each base id its byte string (None for an id that is no symbol), so the
    first merge has the id `len(alphabet)`. No weights: each sequence counts once. `threads`, the
    most to be used (None: as many as there are processors), are for the compiled engine.

    ([b"abab"], None, BYTES, 1) -> ((97, 98), 2)
    """
    arguments.threads(threads)
    strings = arguments.training_alphabet(alphabet)
    wanted, least = arguments.training_options(merges_wanted, minimum_pair_frequency, tie_break)
    rows, row_weights = arguments.training_rows(sequences, weights, strings)
    for new_id in range(len(strings), len(strings) + wanted):
        counts = count_pairs(rows, row_weights)
        if max(counts.values(), default=0) < least:
            return
        pair = choose_pair(counts, strings, tie_break)
        strings.append(strings[pair[0]] + strings[pair[1]])
        rows = [merge_pair(row, pair, new_id) for row in rows]
        yield pair, counts[pair]


def train(
    sequences: Iterable[Iterable[int]],
    weights: Iterable[int] | None,
    alphabet: Sequence[bytes | None],
    merges_wanted: int,
    minimum_pair_frequency: int = 2,
    tie_break: str = "smallest",
    progress: Callable[[int, int], object] | None = None,
    *,
    threads: int | None = None,
    on_interrupt: str = "raise",
) -> tuple[list[Pair], list[int]]:
    """All merges and their counts, as `train_steps` yields them.

    `progress` is called with the merges done and wanted, from time to time. With `on_interrupt`
    "keep", Ctrl-C ends the training, and what was learned is returned.
    """
    learned = []
    options = (alphabet, merges_wanted, minimum_pair_frequency, tie_break)
    with suppress(*arguments.kept_interrupts(on_interrupt)):
        for step in train_steps(sequences, weights, *options, threads=threads):
            learned.append(step)
            if progress is not None:
                progress(len(learned), merges_wanted)
    return [pair for pair, _ in learned], [count for _, count in learned]


def encode(text: Document, table: EncodingTable, special: Special = None) -> list[int]:
    """The ids of a document."""
    return [id for ids in encoded_pieces(text, table, special) for id in ids]


def count(
    text: Document, table: EncodingTable, special: Special = None, limit: int | None = None
) -> int:
    """How many ids a document has. Beyond a `limit` counting ends and gives one more than it."""
    most = arguments.count_limit(limit)
    total = 0
    for ids in encoded_pieces(text, table, special):
        total += len(ids)
        if total > most:
            return most + 1
    return total


def encoded_pieces(text: Document, table: EncodingTable, special: Special) -> Iterator[list[int]]:
    """The ids of each piece and each special token (points 9, 10 and 12)."""
    data = arguments.document_bytes(text)
    position = 0
    for part, special_id in cut_special(data, special):
        for piece in split(part, table.pattern) if special_id is None else [part]:
            position = data.index(piece, position)  # patterns may drop text between pieces
            if special_id is not None:
                yield [special_id]
            elif piece in table.whole_pieces:
                yield [table.whole_pieces[piece]]
            else:
                yield merge_piece(base_ids(piece, table, position), table.merges)
            position += len(piece)


def merge_piece(ids: list[int], merges: Mapping[Pair, tuple[int, int]]) -> list[int]:
    """Merge one place after another, until there is nothing to merge (point 9)."""
    while (merge := next_merge(ids, merges)) is not None:
        _, new_id, place = merge
        ids[place : place + 2] = [new_id]
    return ids


def next_merge(
    ids: Sequence[int], merges: Mapping[Pair, tuple[int, int]]
) -> tuple[int, int, int] | None:
    """The merge of lowest rank, the leftmost of equals: rank, new id, place.

    ([1, 2, 3], {(2, 3): (0, 4), (1, 2): (1, 5)}) -> (0, 4, 1)
    """
    places = enumerate(zip(ids, ids[1:]))
    return min(((*merges[pair], place) for place, pair in places if pair in merges), default=None)


def decode(ids: Iterable[int], table: DecodingTable) -> bytes:
    """The bytes of ids, joined (point 11)."""
    return b"".join(
        arguments.known_piece(id, position, table.pieces, table.unknown)
        for position, id in enumerate(arguments.ids(ids))
    )
