"""`Vocabulary`: the ids, their bytes, and how they come about. It never changes."""

import copy
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, patterns, unicode
from tokbpe.patterns import Pattern
from tokbpe.symbols import UNITS

# Changed when the same merges would encode otherwise; part of each fingerprint.
ALGORITHM = 1

MERGE_RULES = ("merge_list", "rank_by_piece")
SPECIAL_IDS = ("base", "first", "end")
UNKNOWN = b"<UNK>"
# The methods whose vocabularies encode as their other fields say, whatever the method's name.
DESCRIBED = ("byte", "bpe", "char", "word")


ARRAYS = {"merges": np.uint32, "merge_ids": np.uint32, "merge_counts": np.uint64}


def no_merges() -> NDArray[np.uint32]:
    return np.empty((0, 2), np.uint32)


def no_counts() -> NDArray[np.uint64]:
    return np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What a training gives, or a file.

    alphabet: by id, the symbol that the id stands for; None for an id that is no symbol. With
        the merge rule "rank_by_piece" it holds all pieces.
    merges: `uint32` [n, 2], the two ids that each merge joins, the earliest learned first.
    merge_ids: the id of each merge; None: they follow the alphabet.
    merge_counts: `uint64` [n], how often each pair stood in the corpus at its turn; empty for
        a vocabulary that was not trained here.
    unit: into what a piece falls before anything is merged: "byte", "character" or "word".
    unknown: the id of a symbol that the alphabet lacks; None: that is an error.
    special_tokens: spelling -> id. reserved: display name -> id.
    merge_rule: "merge_list": the listed pairs merge. "rank_by_piece": any two neighbors whose
        joined bytes are a piece merge, the piece with the lowest id first.
    whole_piece_lookup: whether a pre-token that is a piece itself is taken at once.
    """

    method: str
    alphabet: tuple[bytes | None, ...]
    merges: NDArray[np.uint32] = field(default_factory=no_merges)
    merge_ids: NDArray[np.uint32] | None = None
    merge_counts: NDArray[np.uint64] = field(default_factory=no_counts)
    unit: str = "byte"
    unknown: int | None = None
    pattern: Pattern | None = None
    tie_break: str | None = None
    special_ids: str = "base"
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    merge_rule: str = "merge_list"
    whole_piece_lookup: bool = False
    provenance: tuple[Mapping[str, Any], ...] = ()  # a record of each training

    def __post_init__(self) -> None:
        # Copies that nobody can write to.
        for name, dtype in ARRAYS.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), name, dtype))
        for name in ("special_tokens", "reserved"):
            copied = MappingProxyType(mapping(getattr(self, name), name))
            object.__setattr__(self, name, copied)
        self.validate()

    def __len__(self) -> int:
        """The highest id + 1."""
        return 1 + max(
            len(self.alphabet) - 1,
            int(self.ids_of_merges.max(initial=0)) if len(self.merges) else -1,
            *self.special_tokens.values(),
            *self.reserved.values(),
        )

    @cached_property
    def ids_of_merges(self) -> NDArray[np.uint32]:
        """The id of each merge, `uint32` [n]."""
        if self.merge_ids is not None:
            return self.merge_ids
        first = len(self.alphabet)
        return np.arange(first, first + len(self.merges), dtype=np.uint32)

    @property
    def trained(self) -> bool:
        """Whether the vocabulary was trained here, so that its merges can be cut or continued."""
        return self.merge_rule == "merge_list" and len(self.merge_counts) == len(self.merges)

    def reserved_id(self, name: str) -> int:
        """The reserved id of a name; ValueError if there is none."""
        if name not in self.reserved:
            raise ValueError(f"there is no reserved id {name!r}, only {sorted(self.reserved)}")
        return self.reserved[name]

    def pieces(self) -> list[bytes | None]:
        """The bytes of each id; None for a gap."""
        pieces: list[bytes | None] = [None] * len(self)
        for id, piece in self.items():
            pieces[id] = piece
        return pieces

    def items(self) -> list[tuple[int, bytes]]:
        """Each id that has a meaning, in rising order, with its bytes: a special token's
        spelling, b"" for a reserved id."""
        pieces = {id: piece for id, piece in enumerate(self.alphabet) if piece is not None}
        pieces.update(self.merged_pieces())
        if self.unknown is not None:
            pieces[self.unknown] = UNKNOWN
        for spelling, id in self.special_tokens.items():
            pieces[id] = spelling.encode("utf-8")
        pieces.update(dict.fromkeys(self.reserved.values(), b""))
        return sorted(pieces.items())

    def merged_pieces(self) -> Iterator[tuple[int, bytes]]:
        """The id and the bytes of each merge, which may join merges that stand after it."""
        known = {id: piece for id, piece in enumerate(self.alphabet) if piece is not None}
        waiting = list(zip(self.merges.tolist(), self.ids_of_merges.tolist()))
        while waiting:
            later = []
            for (left, right), id in waiting:
                if left in known and right in known:
                    known[id] = known[left] + known[right]
                    yield id, known[id]
                else:
                    later.append(((left, right), id))
            if len(later) == len(waiting):
                (left, right), id = later[0]
                raise ValueError(f"id {id} joins {left} and {right}, of which one is never made")
            waiting = later

    def symbols(self) -> list[bytes | None]:
        """The alphabet without what is a special token, which plain text never yields."""
        special = set(self.special_tokens.values())
        return [None if id in special else symbol for id, symbol in enumerate(self.alphabet)]

    def validate(self) -> None:
        """ValueError, naming what is wrong and where, unless all parts fit together."""
        if not isinstance(self.method, str):
            raise TypeError(f"method must be a name, not {arguments.type_name(self.method)}")
        if not isinstance(self.whole_piece_lookup, bool):
            raise TypeError(f"whole_piece_lookup is a bool, not {self.whole_piece_lookup!r}")
        arguments.choice(self.unit, "unit", UNITS)
        arguments.choice(self.merge_rule, "merge_rule", MERGE_RULES)
        arguments.choice(self.special_ids, "special_ids", SPECIAL_IDS)
        if self.pattern is not None and not isinstance(self.pattern, Pattern):
            raise TypeError(f"pattern must be a Pattern, not {arguments.type_name(self.pattern)}")
        patterns.for_unit(self.pattern, self.unit)
        if self.merges.shape != (len(self.merges), 2):
            raise ValueError(f"merges have the shape {self.merges.shape}, not [n, 2]")
        if len(self.ids_of_merges) != len(self.merges):
            raise ValueError(f"{len(self.merges)} merges, but {len(self.ids_of_merges)} ids")
        if len(self.merge_counts) not in (0, len(self.merges)):
            raise ValueError(f"{len(self.merges)} merges, but {len(self.merge_counts)} counts")
        if self.tie_break is not None:
            arguments.choice(self.tie_break, "tie_break", arguments.TIE_BREAKS)
        for id, symbol in enumerate(self.alphabet):
            if symbol is not None and (not isinstance(symbol, bytes) or not symbol):
                raise ValueError(f"alphabet entry {id} must be some bytes or None, not {symbol!r}")
        symbols = Counter(symbol for symbol in self.alphabet if symbol is not None)
        for symbol, count in symbols.most_common(1):
            if count > 1:
                raise ValueError(f"the alphabet holds {symbol!r} twice")
        for kind, ids in (("special token", self.special_tokens), ("reserved id", self.reserved)):
            for name, id in ids.items():
                arguments.whole_number(
                    id, f"the id of {kind} {name!r}", 0, arguments.LARGEST_VOCABULARY - 1
                )
        if self.unknown is not None:
            arguments.whole_number(self.unknown, "unknown", 0, len(self) - 1)
        self.validate_ids()

    def validate_ids(self) -> None:
        """Each id has one meaning, and merges join ids that have one."""
        meanings = {id: symbol for id, symbol in enumerate(self.alphabet) if symbol is not None}
        ids = self.ids_of_merges
        if self.merge_ids is not None:  # else they are distinct, and behind the alphabet
            seen = set(meanings)
            for rank, id in enumerate(ids.tolist()):
                if id in seen:
                    raise ValueError(f"merge {rank} makes the id {id}, which exists already")
                seen.add(id)
        unknown_halves = ~np.isin(self.merges, np.append(ids, np.array([*meanings], np.uint32)))
        if unknown_halves.any():
            rank, half = np.argwhere(unknown_halves)[0].tolist()
            raise ValueError(f"merge {rank} joins {self.merges[rank, half]}, which is no id")
        if self.merge_ids is None and (self.merges >= ids[:, None]).any():
            rank = int(np.argwhere((self.merges >= ids[:, None]).any(axis=1))[0, 0])
            raise ValueError(f"merge {rank} joins what is made by it or after it")
        if self.unknown is not None:
            meanings[self.unknown] = UNKNOWN
        others = [*self.special_tokens.values(), *self.reserved.values()]
        made = ids[np.isin(ids, np.array(others, np.uint32))].tolist()
        taken = {id: repr(piece) for id, piece in meanings.items()}
        taken.update(dict.fromkeys(made, "a merge"))
        for spelling, id in self.special_tokens.items():
            if not isinstance(spelling, str) or not spelling:
                raise ValueError(
                    f"a special token must be a text that is not empty, not {spelling!r}"
                )
            # A file may list a special token among its pieces too.
            if id in taken and meanings.pop(id, None) != spelling.encode("utf-8"):
                raise ValueError(f"special token {spelling!r} has the id {id} of {taken[id]}")
            taken[id] = f"the special token {spelling!r}"
        for name, id in self.reserved.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"a reserved id needs a name that is not empty, not {name!r}")
            if id in taken:
                raise ValueError(f"reserved id {name!r} has the id {id} of {taken[id]}")
            taken[id] = f"the reserved id {name!r}"

    # Plain data: what states, files and fingerprints are made of.

    def plain(self, lists: bool = True) -> dict[str, Any]:
        """The vocabulary as data that JSON can hold: arrays are lists, or stay arrays if lists
        are not wanted, and bytes are hexadecimal."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        plain["alphabet"] = [None if symbol is None else symbol.hex() for symbol in self.alphabet]
        for name in ("merges", "merge_ids", "merge_counts"):
            if lists and plain[name] is not None:
                plain[name] = plain[name].tolist()
        if self.pattern is not None:
            plain["pattern"] = {
                "name": self.pattern.name,
                "sources": list(self.pattern.sources),
                "keep_gaps": self.pattern.keep_gaps,
            }
        plain["special_tokens"] = dict(self.special_tokens)
        plain["reserved"] = dict(self.reserved)
        plain["provenance"] = [copy.deepcopy(dict(record)) for record in self.provenance]
        plain["unicode"] = unicode.VERSION
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Vocabulary":
        """The vocabulary of such data; ValueError or TypeError where it is damaged."""
        parts = mapping(plain, "the data of a vocabulary")
        names = {item.name for item in fields(cls)} | {"unicode"}
        if parts.keys() != names:
            wrong = sorted(parts.keys() ^ names)
            raise ValueError(f"the data of a vocabulary lack, or have too much, the fields {wrong}")
        if parts.pop("unicode") != unicode.VERSION:
            raise ValueError(
                f"the vocabulary is of Unicode {plain['unicode']!r}, not {unicode.VERSION!r}"
            )
        parts["alphabet"] = tuple(
            None if symbol is None else bytes.fromhex(symbol) for symbol in parts["alphabet"]
        )
        merges = array_of(parts["merges"], "merges", np.uint32)
        parts["merges"] = merges if merges.size else no_merges()
        parts["merge_counts"] = array_of(parts["merge_counts"], "merge_counts", np.uint64)
        if parts["merge_ids"] is not None:
            parts["merge_ids"] = array_of(parts["merge_ids"], "merge_ids", np.uint32)
        if parts["pattern"] is not None:
            parts["pattern"] = pattern_of(parts["pattern"])
        for name in ("special_tokens", "reserved"):
            parts[name] = mapping(parts[name], name)
            # In the order in which they got their ids, which sorted JSON loses.
            parts[name] = dict(sorted(parts[name].items(), key=itemgetter(1)))
        parts["provenance"] = tuple(
            mapping(copy.deepcopy(record), "the record of a training")
            for record in parts["provenance"]
        )
        return cls(**parts)

    def fingerprint(self, provenance: bool = True) -> str:
        """A SHA-256 over what encodes and decodes, and over the record of the trainings."""
        plain = self.plain()
        if not provenance:
            # None of these tells what text becomes.
            for name in ("provenance", "merge_counts", "tie_break", "special_ids"):
                del plain[name]
            if self.method in DESCRIBED:
                del plain["method"]
                if not len(self.merges):
                    del plain["pattern"]
        plain["algorithm"] = ALGORITHM
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def frozen(array: object, name: str, dtype: type[Any]) -> NDArray[Any]:
    """A copy of an array in memory that cannot be made writable."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise TypeError(f"{name} must be an array of {dtype.__name__}, not {array!r:.100}")
    if array.size == 0:
        empty = array.copy()
        empty.flags.writeable = False
        return empty
    return np.frombuffer(array.tobytes(), dtype).reshape(array.shape)


def mapping(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {arguments.type_name(value)}")
    return dict(value)


def array_of(values: object, name: str, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    """Whole numbers as an array; ValueError where there are others."""
    array = np.array(values)
    if array.ndim == 0 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} of a vocabulary are whole numbers, not {array.dtype}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) <= np.iinfo(dtype).max:
        raise ValueError(f"{name} of a vocabulary go from 0 to {np.iinfo(dtype).max}")
    return array.astype(dtype)


def pattern_of(plain: object) -> Pattern:
    """The pattern of plain data."""
    found = mapping(plain, "the pattern of a vocabulary")
    if found.keys() != {"name", "sources", "keep_gaps"}:
        raise ValueError(f"a pattern has name, sources and keep_gaps, not {list(found)}")
    if not isinstance(found["sources"], (list, tuple)) or type(found["keep_gaps"]) is not bool:
        raise TypeError(f"the sources of a pattern are a list, keep_gaps a bool: {found}")
    return patterns.get(Pattern(found["name"], tuple(found["sources"]), found["keep_gaps"]))


def lay_out(
    vocabulary: Vocabulary,
    special_tokens: Sequence[str],
    reserved: Sequence[str],
    special_ids: str,
) -> Vocabulary:
    """Give ids to special tokens and reserved names: behind the base, "first", or at the "end".

    The vocabulary has none yet, and its merges follow its alphabet. The order of base and merges
    stays, so ties are as they were.
    """
    names = [*special_tokens, *reserved]
    base = len(vocabulary.alphabet)
    gaps = (None,) * len(names)
    start, alphabet = {
        "base": (base, vocabulary.alphabet + gaps),
        "first": (0, gaps + vocabulary.alphabet),
        "end": (base + len(vocabulary.merges), vocabulary.alphabet),
    }[special_ids]
    shift = len(alphabet) - base
    moved = 0 if special_ids == "first" else base
    merges = vocabulary.merges + np.where(vocabulary.merges >= moved, shift, 0).astype(np.uint32)
    ids = iter(range(start, start + len(names)))
    return replace(
        vocabulary,
        alphabet=alphabet,
        merges=merges,
        special_tokens={spelling: next(ids) for spelling in special_tokens},
        reserved={name: next(ids) for name in reserved},
        special_ids=special_ids,
    )


def taken_out(vocabulary: Vocabulary) -> Vocabulary:
    """Undo `lay_out`: no special tokens and reserved ids, and merges that follow the base."""
    count = len(vocabulary.special_tokens) + len(vocabulary.reserved)
    alphabet = vocabulary.alphabet
    shift, moved = 0, 0
    if vocabulary.special_ids == "first":
        alphabet, shift = alphabet[count:], count
    elif vocabulary.special_ids == "base":
        alphabet, shift = alphabet[: len(alphabet) - count], count
        moved = len(vocabulary.alphabet)
    merges = vocabulary.merges - np.where(vocabulary.merges >= moved, shift, 0).astype(np.uint32)
    return replace(vocabulary, alphabet=alphabet, merges=merges, special_tokens={}, reserved={})
