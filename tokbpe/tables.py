"""What encoding and decoding look up, checked and prepared once, in the form of the reference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tokbpe import arguments, patterns
from tokbpe.arguments import Pair
from tokbpe.patterns import Pattern
from tokbpe.symbols import MARKER, UNITS, symbols

MERGE_RULES = ("merge_list", "rank_by_piece")
MOST_MADE_BYTES = 2**26  # by all merges together: a short file must not ask for gigabytes


class EncodingTable(NamedTuple):
    """What `encode` looks up."""

    symbols: dict[bytes, int]
    merges: dict[Pair, tuple[int, int]]  # pair -> its rank, the lower the earlier, and its id
    pattern: Pattern | None
    unit: str
    unknown: int | None
    whole_pieces: Mapping[bytes, int]  # what is taken at once


def encoding_table(
    alphabet: Sequence[bytes | None],
    merges: Iterable[Pair],
    pattern: str | Pattern | None = None,
    merge_ids: Iterable[int] | None = None,
    unit: str = "byte",
    unknown: int | None = None,
    merge_rule: str = "merge_list",
    whole_piece_lookup: bool = False,
) -> EncodingTable:
    """Prepare `encode`. The alphabet gives each base id its symbol (None: the id has none); with
    the unit "byte" it may also hold longer pieces.

    Merge number n has the id len(alphabet) + n, or merge_ids[n]. Pieces fall into symbols by
    `unit`: "byte", "character" or "word". A symbol that the alphabet lacks gets the id
    `unknown`, or is an error if there is none.

    With the merge rule "rank_by_piece" there is no list of merges: any two neighbors merge
    that join to an entry of the alphabet, whose id is the rank. With `whole_piece_lookup` a piece
    that is an entry, or made by a merge, is not merged but taken at once.
    """
    arguments.choice(unit, "unit", UNITS)
    arguments.choice(merge_rule, "merge_rule", MERGE_RULES)
    if unknown is not None:
        unknown = arguments.whole_number(unknown, "unknown", 0, arguments.LARGEST_VOCABULARY - 1)
    elif unit != "byte":
        raise ValueError(f"the unit {unit!r} needs an id for unknown symbols")
    if unit != "byte" and (merge_rule != "merge_list" or whole_piece_lookup):
        raise ValueError(f"rank_by_piece and whole_piece_lookup are for bytes, not for {unit!r}")
    entries = alphabet_entries(alphabet, unit)
    pieces = {piece: id for id, piece in entries.items()}
    ranked = ranked_merges(pieces, merges, len(alphabet), merge_ids)
    if whole_piece_lookup:
        for id, piece in made_pieces(entries, ranked, [id for _, id in ranked.values()]):
            pieces.setdefault(piece, id)
    if merge_rule == "rank_by_piece":
        if ranked:
            raise ValueError(f"the merge rule 'rank_by_piece' has no list of {len(ranked)} merges")
        ranked = merges_of_pieces(pieces)
    return EncodingTable(
        {piece: id for id, piece in entries.items() if unit != "byte" or len(piece) == 1},
        ranked,
        patterns.for_unit(pattern, unit),
        unit,
        unknown,
        pieces if whole_piece_lookup else {},
    )


def base_ids(piece: bytes, table: EncodingTable, position: int) -> list[int]:
    """The ids of the symbols of a piece that stands at `position` of its document."""
    ids: list[int] = []
    for symbol in symbols(piece, table.unit):
        id = table.symbols.get(symbol, table.unknown)
        if id is None:
            raise arguments.absent_byte(symbol[0], position + len(ids), table.symbols)
        ids.append(id)
    return ids


ONE = {"byte": "some bytes", "character": "one character", "word": "one character, marked or not"}


def is_entry(data: bytes, unit: str) -> bool:
    """Whether an alphabet can hold it."""
    if unit == "byte":
        return len(data) > 0
    if unit == "word":
        data = data.removesuffix(MARKER)
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


def alphabet_entries(alphabet: Sequence[bytes | None], unit: str) -> dict[int, bytes]:
    """Id -> symbol or longer piece."""
    ids: dict[bytes, int] = {}
    for id, entry in enumerate(alphabet):
        if entry is None:
            continue
        if not isinstance(entry, bytes) or not is_entry(entry, unit):
            raise ValueError(f"alphabet entry {id} must be {ONE[unit]} or None, not {entry!r}")
        if entry in ids:
            raise ValueError(f"alphabet entries {ids[entry]} and {id} are both {entry!r}")
        ids[entry] = id
    return {id: entry for entry, id in ids.items()}


def merges_of_pieces(pieces: Mapping[bytes, int]) -> dict[Pair, tuple[int, int]]:
    """Any two pieces that join to a piece -> its id, as rank and id."""
    return {
        (pieces[piece[:cut]], pieces[piece[cut:]]): (id, id)
        for piece, id in pieces.items()
        for cut in range(1, len(piece))
        if piece[:cut] in pieces and piece[cut:] in pieces
    }


def made_pieces(
    entries: Mapping[int, bytes], merges: Iterable[Pair], ids: Iterable[int]
) -> Iterator[tuple[int, bytes]]:
    """The id and the bytes of each merge, which may join merges that stand after it.

    ValueError for a merge of what is never made, and for more than MOST_MADE_BYTES: 30 merges that
    each join the one before with itself make a piece of a gigabyte.
    """
    known = dict(entries)
    pairs, ids = list(merges), list(ids)
    size = 0
    for rank in order_of_making(known, pairs, ids):
        (left, right), id = pairs[rank], ids[rank]
        size += len(known[left]) + len(known[right])
        if size > MOST_MADE_BYTES:
            raise ValueError(
                f"the pieces that merges make have more than {MOST_MADE_BYTES} bytes with that of "
                f"id {id}, which joins {left} and {right}"
            )
        piece = known[left] + known[right]
        known.setdefault(id, piece)
        yield id, piece


def order_of_making(
    known: Iterable[int], merges: Sequence[Pair], ids: Sequence[int]
) -> Iterator[int]:
    """The merges, by their ranks, so that each stands behind what it joins: in their own order
    where that is so. ValueError for one of what is never made."""
    made = set(known)
    waiting: dict[int, list[int]] = {}  # id -> merges that join it
    for first in range(len(merges)):
        ready = [first]
        while ready:
            rank = ready.pop()
            missing = next((half for half in merges[rank] if half not in made), None)
            if missing is not None:
                waiting.setdefault(missing, []).append(rank)
                continue
            yield rank
            made.add(ids[rank])
            ready += reversed(waiting.pop(ids[rank], []))
    if waiting:
        rank = min(rank for ranks in waiting.values() for rank in ranks)
        left, right = merges[rank]
        raise ValueError(f"id {ids[rank]} joins {left} and {right}, of which one is never made")


def ranked_merges(
    entries: Mapping[bytes, int],
    merges: Iterable[Pair],
    first_id: int,
    merge_ids: Iterable[int] | None,
) -> dict[Pair, tuple[int, int]]:
    """Pair -> rank and id. Without ids of their own, merges join only ids that exist before."""
    pairs = list(merges)
    ids = list(range(first_id, first_id + len(pairs)) if merge_ids is None else merge_ids)
    if len(ids) != len(pairs):
        raise ValueError(f"{len(pairs)} merges, but {len(ids)} ids for them")
    if merge_ids is not None:
        ids = [merge_id(id, rank) for rank, id in enumerate(ids)]
    known = set(entries.values())
    if merge_ids is not None:
        known.update(ids)
    ranked: dict[Pair, tuple[int, int]] = {}
    for rank, (pair, id) in enumerate(zip(pairs, ids)):
        left, right = (merge_half(half, rank, known) for half in pair)
        if (left, right) in ranked:
            first, _ = ranked[left, right]
            raise ValueError(f"merges {first} and {rank} both join {left} and {right}")
        ranked[left, right] = rank, id
        known.add(id)
    return ranked


def merge_id(value: object, rank: int) -> int:
    return arguments.whole_number(
        value, f"the id of merge {rank}", 0, arguments.LARGEST_VOCABULARY - 1
    )


def merge_half(value: object, rank: int, known: set[int]) -> int:
    """One of the two ids that merge number `rank` joins."""
    id = arguments.as_index(value)
    if id is None:
        raise TypeError(f"merge {rank} must join two ids, not {value!r}")
    if id not in known:
        raise ValueError(f"merge {rank} joins {id}, which is no id at that point")
    return id


class SparsePieces:
    """Pieces by their ids, most of which have none."""

    def __init__(self, pieces: Mapping[int, bytes], size: int) -> None:
        self.pieces = dict(sorted(pieces.items()))
        self.size = size  # the highest id + 1

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, id: int) -> bytes | None:
        return self.pieces.get(id)


class DecodingTable(NamedTuple):
    """What `decode` looks up."""

    pieces: tuple[bytes | None, ...] | SparsePieces
    unknown: bytes | None


def decoding_table(
    vocabulary: Iterable[bytes | None] | SparsePieces, unknown: bytes | None = None
) -> DecodingTable:
    """Prepare `decode`: the bytes of each id, None for an id without meaning.

    A whole number that is no id reads as `unknown`, or is an error if that is None.
    """
    if unknown is not None and not isinstance(unknown, bytes):
        raise TypeError(f"unknown must be bytes or None, not {arguments.type_name(unknown)}")
    if isinstance(vocabulary, SparsePieces):
        return DecodingTable(vocabulary, unknown)
    pieces = tuple(vocabulary)
    for id, piece in enumerate(pieces):
        if piece is not None and not isinstance(piece, bytes):
            raise TypeError(
                f"vocabulary entry {id} must be bytes or None, not {arguments.type_name(piece)}"
            )
    return DecodingTable(pieces, unknown)
