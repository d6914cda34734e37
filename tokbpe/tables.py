"""What encoding and decoding look up, checked and prepared once, in the form of the reference."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tokbpe import arguments, patterns
from tokbpe.arguments import Pair
from tokbpe.patterns import Pattern
from tokbpe.symbols import MARKER, UNITS


class EncodingTable(NamedTuple):
    """What `encode` looks up."""

    symbols: dict[bytes, int]
    merges: dict[Pair, tuple[int, int]]  # pair -> its rank, the lower the earlier, and its id
    pattern: Pattern | None
    unit: str
    unknown: int | None


def encoding_table(
    alphabet: Sequence[bytes | None],
    merges: Iterable[Pair],
    pattern: str | Pattern | None = None,
    merge_ids: Iterable[int] | None = None,
    unit: str = "byte",
    unknown: int | None = None,
) -> EncodingTable:
    """Prepare `encode`. The alphabet gives each base id its symbol (None: the id has none).

    Merge number n has the id len(alphabet) + n, or merge_ids[n]. Pieces fall into symbols by
    `unit`: "byte", "character" or "word". A symbol that the alphabet lacks gets the id
    `unknown`, or is an error if there is none.
    """
    arguments.choice(unit, "unit", UNITS)
    if unknown is not None:
        unknown = arguments.whole_number(unknown, "unknown", 0, arguments.LARGEST_VOCABULARY - 1)
    elif unit != "byte":
        raise ValueError(f"the unit {unit!r} needs an id for unknown symbols")
    symbols = base_symbols(alphabet, unit)
    return EncodingTable(
        symbols,
        ranked_merges(symbols, merges, len(alphabet), merge_ids),
        patterns.for_unit(pattern, unit),
        unit,
        unknown,
    )


ONE = {"byte": "one byte", "character": "one character", "word": "one character, marked or not"}


def is_symbol(data: bytes, unit: str) -> bool:
    """Whether pieces can fall into it."""
    if unit == "byte":
        return len(data) == 1
    if unit == "word":
        data = data.removesuffix(MARKER)
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


def base_symbols(alphabet: Sequence[bytes | None], unit: str) -> dict[bytes, int]:
    """Symbol -> id."""
    symbols: dict[bytes, int] = {}
    for id, symbol in enumerate(alphabet):
        if symbol is None:
            continue
        if not isinstance(symbol, bytes) or not is_symbol(symbol, unit):
            raise ValueError(f"alphabet entry {id} must be {ONE[unit]} or None, not {symbol!r}")
        if symbol in symbols:
            raise ValueError(f"alphabet entries {symbols[symbol]} and {id} are both {symbol!r}")
        symbols[symbol] = id
    return symbols


def ranked_merges(
    symbols: Mapping[bytes, int],
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
    known = set(symbols.values())
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


class DecodingTable(NamedTuple):
    """What `decode` looks up."""

    pieces: tuple[bytes | None, ...]
    unknown: bytes | None


def decoding_table(
    vocabulary: Iterable[bytes | None], unknown: bytes | None = None
) -> DecodingTable:
    """Prepare `decode`: the bytes of each id, None for an id without meaning.

    A whole number that is no id reads as `unknown`, or is an error if that is None.
    """
    if unknown is not None and not isinstance(unknown, bytes):
        raise TypeError(f"unknown must be bytes or None, not {arguments.type_name(unknown)}")
    pieces = tuple(vocabulary)
    for id, piece in enumerate(pieces):
        if piece is not None and not isinstance(piece, bytes):
            raise TypeError(
                f"vocabulary entry {id} must be bytes or None, not {arguments.type_name(piece)}"
            )
    return DecodingTable(pieces, unknown)
