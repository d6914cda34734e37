"""The same ids by the other merge rule: lists of merges as ranks of pieces, and back.

All of it rests on one thought. Let a piece p stand in a text, and let its place be covered by
just two tokens, l and r, at some moment of the encoding. No token ever reached beyond p's ends
till then, so inside them just that was merged, in just that order, which is merged when p is
encoded alone. So p alone comes by l r as well, and it comes by one pair only, its last.

From that follows, for both rules without lookup of whole pieces:

  - Ranks as merges. List for each piece the last pair of its encoding alone, in the order of the
    ranks. Whenever the rule "rank_by_piece" can join l and r to p, p alone comes by l r, so that
    this pair is in the list, in p's place. Both rules choose among the same pairs in the same
    order, always. A piece that alone ends in three tokens or more is never made by merging.
  - Merges as ranks. If the ids of the merges rise in their order, and each piece alone becomes
    itself, or three tokens or more, then the same holds: where "rank_by_piece" can join l and r
    to p, p alone comes by l r, so it becomes p, by a merge of l and r in the list.

With lookup of whole pieces p is taken at once, which changes nothing where p alone becomes itself.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tokbpe import methods
from tokbpe.engines import Engine
from tokbpe.vocabulary import Vocabulary


def ordinary_pieces(vocabulary: Vocabulary) -> dict[int, bytes]:
    """The bytes of each id that plain text can yield; ValueError where two have the same."""
    others = {
        *vocabulary.special_tokens.values(),
        *vocabulary.added_tokens.values(),
        *vocabulary.reserved.values(),
    }
    pieces = {id: piece for id, piece in vocabulary.items() if id not in others}
    ids: dict[bytes, int] = {}
    for id, piece in pieces.items():
        if ids.setdefault(piece, id) != id:
            raise ValueError(f"ids {ids[piece]} and {id} are both {piece!r}")
    return pieces


def alone(vocabulary: Vocabulary, engine: Engine) -> Iterator[tuple[int, bytes, list[int]]]:
    """Each ordinary piece of several bytes, and what it becomes by merging alone."""
    merging = replace(vocabulary, pattern=None, whole_piece_lookup=False)
    table = engine.encoding_table(*methods.table_parts(merging))
    for id, piece in ordinary_pieces(vocabulary).items():
        if len(piece) > 1:
            yield id, piece, engine.encode(piece, table)


def ranks_of_merges(vocabulary: Vocabulary, engine: Engine) -> dict[int, bytes]:
    """The pieces by rank with which "rank_by_piece" and lookup of whole pieces give the same ids.

    The vocabulary is of bytes. ValueError, naming a piece or a merge, where they would not, or
    where that is not proved.
    """
    falls = np.flatnonzero(np.diff(vocabulary.ids_of_merges.astype(np.int64)) < 0)
    if len(falls):
        first, second = vocabulary.ids_of_merges[falls[0] : falls[0] + 2].tolist()
        raise ValueError(
            f"merge {falls[0]} makes the id {first}, the next one the lower id {second}: ranks, "
            "which are ids, would merge in another order"
        )
    for id, piece, ids in alone(vocabulary, engine):
        if ids == [id]:
            continue
        if len(ids) == 2:
            raise ValueError(f"no merge joins {ids} to the piece {piece!r}, id {id}; ranks would")
        if not vocabulary.whole_piece_lookup:
            raise ValueError(
                f"the piece {piece!r}, id {id}, becomes {ids} by merging; "
                "lookup of whole pieces would find it"
            )
    return ordinary_pieces(vocabulary)


def merges_of_ranks(
    vocabulary: Vocabulary, engine: Engine
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The merges, `uint32` [n, 2], and their ids, with which "merge_list" gives the same ids as
    the "rank_by_piece" of the vocabulary, with lookup of whole pieces or without.

    There is no merge for a piece that only lookup finds.
    """
    pairs = last_pairs(vocabulary, engine)
    merges = np.array([pairs[id] for id in sorted(pairs)], np.uint32)
    return merges.reshape(-1, 2), np.array(sorted(pairs), np.uint32)


def last_pairs(vocabulary: Vocabulary, engine: Engine) -> dict[int, list[int]]:
    """The two tokens, last of all, that a piece consists of when it is merged alone.

    They are what is left of it where no piece of its length or more is known.
    """
    pieces = sorted(ordinary_pieces(vocabulary).items(), key=length)
    shorter: list[bytes | None] = [None] * len(vocabulary.alphabet)
    pairs = {}
    for size, group in groupby(pieces, key=length):
        same_size = list(group)
        if size > 1:
            table = engine.encoding_table(
                tuple(shorter), vocabulary.merges, merge_rule="rank_by_piece"
            )
            for id, piece in same_size:
                ids = engine.encode(piece, table)
                if len(ids) == 2:
                    pairs[id] = ids
        for id, piece in same_size:
            shorter[id] = piece
    return pairs


def length(item: tuple[int, bytes]) -> int:
    return len(item[1])


def as_merge_list(vocabulary: Vocabulary, engine: Engine) -> Vocabulary:
    """A vocabulary with a list of merges that gives the same ids: itself if it has one."""
    if vocabulary.merge_rule == "merge_list":
        return vocabulary
    merges, merge_ids = merges_of_ranks(vocabulary, engine)
    return replace(vocabulary, merge_rule="merge_list", merges=merges, merge_ids=merge_ids)
