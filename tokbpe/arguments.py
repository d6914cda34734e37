"""Checks of what callers pass, so that each message exists once and both engines give the same.

A function that checks returns the value in the form that the engines want. A function that is
named for a fault returns the exception, for its caller to raise.
"""

import mmap
import operator
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")

Pair: TypeAlias = tuple[int, int]
Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap
Document: TypeAlias = str | Buffer
Documents: TypeAlias = Document | Iterable[Document]

BUFFER_TYPES = (bytes, bytearray, memoryview, mmap.mmap)
DOCUMENT_TYPES = (str, *BUFFER_TYPES)
TIE_BREAKS = ("smallest", "first", "greatest")
INTERRUPTS = ("raise", "keep")
ERRORS = ("strict", "replace")
TOKEN_FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
HIGHEST_COUNT = 2**63 - 1
LARGEST_VOCABULARY = 2**32 - 1
MOST_THREADS = 2**15 - 1
SHA256 = re.compile("[0-9a-f]{64}")


def type_name(value: object) -> str:
    return type(value).__name__


def warn(message: str) -> None:
    """A warning at the line outside of this package that has called."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tokbpe."):
        frame = frame.f_back
        level += 1
    warnings.warn(message, stacklevel=level)


def choice(value: object, name: str, allowed: Iterable[str]) -> str:
    """One of a few names."""
    names = list(allowed)
    if not isinstance(value, str):
        raise TypeError(
            f"{name} must be one of {', '.join(map(repr, names))}, not {type_name(value)}"
        )
    if value not in names:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, not {value!r}")
    return value


def names(values: object, name: str) -> tuple[str, ...]:
    """Texts that are not empty, each of them once."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise TypeError(f"{name} must be a list of texts, not {type_name(values)}")
    met: set[str] = set()
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(f"{name}[{index}] must be str, not {type_name(value)}")
        if not value:
            raise ValueError(f"{name}[{index}] is empty")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            error.reason += f" ({name}[{index}])"
            raise
        if value in met:
            raise ValueError(f"{name} holds {value!r} twice")
        met.add(value)
    return tuple(values)


def special_choice(values: object, known: Iterable[str]) -> list[str]:
    """Some of the special tokens that are known, or "all" of them."""
    if isinstance(values, str):
        if values == "all":
            return list(known)
        raise ValueError(f'allowed_special is a set of special tokens or "all", not {values!r}')
    if isinstance(values, BUFFER_TYPES) or not isinstance(values, Collection):
        raise TypeError(
            f'allowed_special must be a set of special tokens or "all", not {type_name(values)}'
        )
    chosen = list(values)
    for value in chosen:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{value!r} is no special token; there are {sorted(known)}")
    return chosen


def whole_number(value: object, name: str, least: int, most: int) -> int:
    """A whole number within bounds; bools and floats are none."""
    number = as_index(value)
    if number is None:
        raise TypeError(f"{name} must be a whole number, not {type_name(value)}")
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {number}")
    return number


def as_index(value: object) -> int | None:
    """A whole number as an `int`, or None for what is none (a bool, a float, text)."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def batch(items: Iterable[Item], name: str) -> Iterable[Item]:
    """Any iterable but a single document and a mapping."""
    if isinstance(items, (*DOCUMENT_TYPES, Mapping)) or not isinstance(items, Iterable):
        raise TypeError(f"a batch must be an iterable of {name}s, not {type_name(items)}")
    return items


class Watched:
    """The items of an iterable. An error of its own is known from one that is about them."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items
        self.error: BaseException | None = None

    @classmethod
    def of(cls, items: Any) -> Any:
        """What is no plain collection is watched."""
        plain = isinstance(items, Sized) or not isinstance(items, Iterable)
        return items if plain else cls(items)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.items
        except BaseException as error:
            self.error = error
            raise


def each(function: Callable[[Item], Result], items: Iterable[Item], name: str) -> list[Result]:
    """What a function makes of each item; what it raises names the item, but for errors of items
    that are `Watched`."""
    results = []
    for index, item in enumerate(batch(items, name)):
        try:
            results.append(function(item))
        except (TypeError, ValueError) as error:
            if isinstance(item, Watched) and error is item.error:
                raise
            raise_named(error, f"{name} {index}")
    return results


def raise_named(error: TypeError | ValueError, name: str) -> NoReturn:
    """Raise an error once more, which names what it is an error of."""
    if isinstance(error, (UnicodeEncodeError, UnicodeDecodeError)):
        error.reason += f" ({name})"
        raise error
    kind = TypeError if isinstance(error, TypeError) else ValueError
    raise kind(f"{name}: {error}") from error


# Documents


def document_bytes(text: object, index: int | None = None) -> bytes:
    """The UTF-8 bytes of one document; `index` is its place in a corpus."""
    if isinstance(text, str):
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            if index is not None:
                error.reason += f" (document {index})"
            raise
    if isinstance(text, BUFFER_TYPES):
        return bytes(text)
    what = "a document" if index is None else f"document {index}"
    raise TypeError(f"{what} must be str or bytes, not {type_name(text)}")


def documents(
    corpus: Documents, read: Callable[[Any, int | None], Any] = document_bytes
) -> Iterator[Any]:
    """The documents of a corpus one by one; a `str` or `bytes` is a single document.

    read: what gives the bytes of each, as `document_bytes` does.
    """
    if isinstance(corpus, DOCUMENT_TYPES):
        yield read(corpus, None)
        return
    if isinstance(corpus, Mapping) or not isinstance(corpus, Iterable):
        raise TypeError(
            f"a corpus must be str, bytes or an iterable of these, not {type_name(corpus)}"
        )
    for index, document in enumerate(corpus):
        yield read(document, index)


# Training


def training_alphabet(alphabet: Sequence[bytes | None]) -> list[bytes]:
    """The byte string of each base id; b"" stands for None, an id that is no symbol."""
    strings = list(alphabet)
    seen: dict[bytes, int] = {}
    for id, string in enumerate(strings):
        if string is None:
            continue
        if not isinstance(string, bytes):
            raise TypeError(f"alphabet entry {id} must be bytes or None, not {type_name(string)}")
        if not string:
            raise ValueError(f"alphabet entry {id} is empty; None stands for an id without symbol")
        if string in seen:
            raise ValueError(f"alphabet entries {seen[string]} and {id} are both {string!r}")
        seen[string] = id
    return [string or b"" for string in strings]


def training_options(
    merges_wanted: object, minimum_pair_frequency: object, tie_break: object
) -> tuple[int, int]:
    """The merges wanted and the minimum frequency as ints; the tie rule is one of the three."""
    merges = whole_number(merges_wanted, "merges_wanted", 0, LARGEST_VOCABULARY)
    minimum = pair_frequency(minimum_pair_frequency)
    choice(tie_break, "tie_break", TIE_BREAKS)
    return merges, minimum


def pair_frequency(value: object) -> int:
    return whole_number(value, "minimum_pair_frequency", 1, HIGHEST_COUNT)


def kept_interrupts(on_interrupt: object) -> tuple[type[BaseException], ...]:
    """The exceptions that end a training without losing what it has learned."""
    keep = choice(on_interrupt, "on_interrupt", INTERRUPTS) == "keep"
    return (KeyboardInterrupt,) if keep else ()


def training_rows(
    sequences: Iterable[Iterable[int]],
    weights: Iterable[int] | None,
    alphabet: Sequence[bytes],
) -> tuple[list[list[int]], list[int]]:
    """Sequences as lists of ids and their weights as ints, each checked."""
    rows, counts = training_lists(sequences, weights)
    checked_rows, checked_weights, places = [], [], 0
    for index, (row, count) in enumerate(zip(rows, counts)):
        weight = sequence_weight(count, index)
        symbols = sequence_symbols(row, index, alphabet)
        places += weight * max(len(symbols) - 1, 0)
        if places > HIGHEST_COUNT:
            raise counts_overflow(index)
        checked_rows.append(symbols)
        checked_weights.append(weight)
    return checked_rows, checked_weights


def training_lists(
    sequences: Iterable[Iterable[int]], weights: Iterable[int] | None
) -> tuple[list[Iterable[int]], list[int]]:
    """Sequences and weights as lists of one length; without weights each sequence counts once."""
    rows = list(sequences)
    counts = [1] * len(rows) if weights is None else list(weights)
    check_weight_count(len(rows), len(counts))
    return rows, counts


def check_weight_count(rows: int, weights: int) -> None:
    if rows != weights:
        raise ValueError(f"{rows} sequences, but {weights} weights")


def sequence_weight(value: object, index: int) -> int:
    return whole_number(value, f"the weight of sequence {index}", 1, HIGHEST_COUNT)


def sequence_symbols(sequence: Iterable[int], index: int, alphabet: Sequence[bytes]) -> list[int]:
    """The base ids of one sequence."""
    if isinstance(sequence, str) or not isinstance(sequence, Iterable):
        raise TypeError(
            f"sequence {index} must be bytes or an iterable of ids, not {type_name(sequence)}"
        )
    symbols = []
    for position, value in enumerate(sequence):
        symbol = as_index(value)
        if symbol is None:
            raise TypeError(
                f"an id must be a whole number; "
                f"position {position} of sequence {index} holds {value!r}"
            )
        if not 0 <= symbol < len(alphabet) or not alphabet[symbol]:
            raise no_symbol(symbol, position, index, len(alphabet))
        symbols.append(symbol)
    return symbols


def no_symbol(symbol: int, position: int, index: int, size: int) -> ValueError:
    return ValueError(
        f"position {position} of sequence {index} holds {symbol}, "
        f"which is no id of the alphabet of {size}"
    )


# A table that takes no more is always had.
SMALL_TABLE = 2**20


def too_many_pieces(needed: int, limit: int) -> MemoryError:
    return MemoryError(
        f"with the next pieces the tables may take {needed} bytes of memory, more than "
        f"memory_bytes={limit}: count parts of the corpus, prune them, and add them"
    )


def machine_memory() -> int | None:
    """How many bytes of memory this machine has; None where that cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def piece_overflow(piece: bytes) -> ValueError:
    return ValueError(f"the count of the piece {piece!r} would pass {HIGHEST_COUNT}")


def counts_overflow(index: int) -> ValueError:
    return ValueError(
        f"with sequence {index} the pair counts of this corpus could pass 2**63 - 1, "
        "the highest that can be counted"
    )


# Encoding


class AbsentByte(ValueError):
    """A byte that the vocabulary lacks stands at `position` of a document."""

    position: int


def absent_byte(byte: int, position: int, symbols: Iterable[bytes]) -> AbsentByte:
    known = b"".join(sorted(symbols))
    error = AbsentByte(
        f"byte 0x{byte:02x} at byte position {position} is not in the vocabulary, "
        f"which knows {len(known)} bytes: {known!r}"
    )
    error.position = position
    return error


def count_limit(value: object) -> int:
    """How many ids are counted at most."""
    return 2**63 - 2 if value is None else whole_number(value, "limit", 0, 2**63 - 2)


def thread_count(value: object) -> int:
    """How many threads may be used; None: as many as there are processors for this process."""
    if value is not None:
        return whole_number(value, "threads", 1, MOST_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads(value: object) -> int | None:
    """How many threads may be used, as `thread_count` takes it."""
    return None if value is None else thread_count(value)


def cache_bytes(value: object) -> int:
    return whole_number(value, "cache_bytes", 0, HIGHEST_COUNT)


def frame_ids(ids: Iterable[int], name: str) -> list[int]:
    """The ids that are put around each document."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"{name} must be an iterable of ids, not {type_name(ids)}")
    return [
        whole_number(id, f"position {position} of {name}", 0, LARGEST_VOCABULARY - 1)
        for position, id in enumerate(ids)
    ]


def id_dtype(value: object) -> np.dtype[Any]:
    """The type of the ids of an array."""
    dtype: np.dtype[Any] | None
    try:
        dtype = np.dtype(value)  # type: ignore[call-overload]
    except TypeError:
        dtype = None
    if dtype is None or dtype not in (np.dtype("uint16"), np.dtype("uint32")):
        raise ValueError(f"dtype must be 'uint16' or 'uint32', not {value!r}")
    return dtype


def id_buffer(out: object) -> memoryview:
    """A buffer that ids can be written to."""
    try:
        view = memoryview(out)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`out` must be an array or a buffer, not {type_name(out)}") from None
    try:
        kind = str(np.dtype(view.format))
    except TypeError:  # the format of records
        kind = f"the format {view.format!r}"
    if kind not in ("uint16", "uint32"):
        raise TypeError(f"`out` must hold uint16 or uint32, not {kind}")
    if view.ndim != 1 or not view.c_contiguous:
        raise ValueError("`out` must be contiguous and have one dimension")
    if view.readonly:
        raise ValueError("`out` is read only")
    return view


def special_spellings(special: Mapping[bytes, int]) -> dict[bytes, int]:
    """Spelling -> id of special tokens."""
    if not isinstance(special, Mapping):
        raise TypeError(
            f"special tokens must be a mapping from spelling to id, not {type_name(special)}"
        )
    spellings: dict[bytes, int] = {}
    for spelling, id in special.items():
        if not isinstance(spelling, bytes) or not spelling:
            raise ValueError(f"a special token is spelled by at least one byte, not {spelling!r}")
        name = f"the id of special token {spelling!r}"
        spellings[bytes(spelling)] = whole_number(id, name, 0, LARGEST_VOCABULARY - 1)
    return spellings


def special_flags(
    flags: Mapping[bytes, Collection[str]] | None, spellings: Mapping[bytes, int]
) -> dict[bytes, tuple[str, ...]]:
    """Spelling -> flags, for some of the special tokens."""
    if flags is None:
        return {}
    if not isinstance(flags, Mapping):
        raise TypeError(f"flags must be a mapping from spelling to flags, not {type_name(flags)}")
    checked: dict[bytes, tuple[str, ...]] = {}
    for spelling, values in flags.items():
        if spelling not in spellings:
            raise ValueError(
                f"there are flags for {spelling!r}, which is no special token; "
                f"there are {sorted(spellings)}"
            )
        name = f"special token {spelling!r}"
        if isinstance(values, (str, bytes)) or not isinstance(values, Collection):
            raise TypeError(
                f"the flags of {name} must be a tuple of texts, not {type_name(values)}"
            )
        checked[bytes(spelling)] = tuple(
            choice(value, f"a flag of {name}", TOKEN_FLAGS) for value in values
        )
    return checked


def chat_turn(turn: object, index: int) -> tuple[str, str]:
    """The role and the text of one turn of a conversation."""
    if isinstance(turn, (tuple, list)) and len(turn) == 2:
        role, text = turn
        if isinstance(role, str) and isinstance(text, str):
            return role, text
    raise TypeError(f"turn {index} must be a role and a text, not {turn!r}")


# Decoding


def ids(values: Iterable[int]) -> Iterable[int]:
    """Ids to decode: any iterable of whole numbers but text and bytes."""
    if isinstance(values, (str, bytes, bytearray)) or not isinstance(values, Iterable):
        raise TypeError(f"ids must be an iterable of whole numbers, not {type_name(values)}")
    return values


class ById(Protocol):
    """Pieces by their ids, None for a gap."""

    def __len__(self) -> int: ...

    def __getitem__(self, id: int, /) -> bytes | None: ...


def known_piece(
    value: object, position: int, pieces: "ById", unknown: bytes | None = None
) -> bytes:
    """The bytes of an id that stands at `position`."""
    id = as_index(value)
    if id is None:
        raise TypeError(f"an id must be a whole number; position {position} holds {value!r}")
    piece = pieces[id] if 0 <= id < len(pieces) else None
    if piece is not None:
        return piece
    if unknown is not None:
        return unknown
    if 0 <= id < len(pieces):
        raise ValueError(f"id {id} at position {position} is a gap: the vocabulary has no piece")
    raise ValueError(f"id {id} at position {position} is not from 0 to {len(pieces) - 1}")


def without_doubles(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless a key stands in it twice."""
    found = dict(members)
    if len(found) != len(members):
        seen: set[str] = set()
        for key, _ in members:
            if key in seen:
                raise ValueError(f"the key {key!r} stands twice in an object")
            seen.add(key)
    return found


def hashes(values: object) -> None:
    """ValueError unless these are SHA-256 hashes as texts, in a list; or None, not known."""
    if values is None:
        return
    if not isinstance(values, list):
        raise ValueError(f"hashes must be a list, not {type_name(values)}")
    for text in values:
        if not isinstance(text, str) or not SHA256.fullmatch(text):
            raise ValueError(f"{text!r} is no SHA-256")
