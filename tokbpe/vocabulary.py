"""`Vocabulary`: the ids, their bytes, and how they come about. It never changes."""

import copy
import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from types import MappingProxyType, NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, patterns, tables, unicode
from tokbpe.cached import cached_property
from tokbpe.patterns import Pattern
from tokbpe.ranks import Pieces
from tokbpe.symbols import UNITS
from tokbpe.tables import MERGE_RULES

# Changed when the same merges would encode otherwise; part of each fingerprint.
ALGORITHM = 1

SPECIAL_IDS = ("base", "first", "end")
# Up to so many ids, and so many times the pieces, a table by id is small.
FEW_IDS = 2**16
MOST_GAPS_PER_PIECE = 16
UNKNOWN = b"<UNK>"
NORMALIZERS = ("NFC",)
# In a table of the pieces of all ids: a short file must not ask for gigabytes.
MOST_TABLE_GAPS = 2**24
FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
# The methods whose vocabularies encode as their other fields say, whatever the method's name.
DESCRIBED = ("byte", "bpe", "char", "word")


MAPPINGS = ("special_tokens", "reserved", "added_tokens", "token_flags")
ARRAYS = {"merges": np.uint32, "merge_ids": np.uint32, "merge_counts": np.uint64}
# What is long, in the order and the types in which it is saved.
PACKED = {"merges": "<u4", "merge_ids": "<u4", "merge_counts": "<u8", "alphabet": "<i4"}


def no_merges() -> NDArray[np.uint32]:
    return np.empty((0, 2), np.uint32)


def no_counts() -> NDArray[np.uint64]:
    return np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What a training gives, or a file.

    alphabet: by id, the symbol that the id stands for; None for an id that is no symbol. That of
        an imported vocabulary holds all pieces, of any length.
    merges: `uint32` [n, 2], the two ids that each merge joins, the earliest learned first.
    merge_ids: the id of each merge; None: they follow the alphabet. Merges may make what stands
        in the alphabet, and several may make one piece.
    merge_counts: `uint64` [n], how often each pair stood in the corpus at its turn; empty for
        a vocabulary that was not trained here.
    unit: into what a piece falls before anything is merged: "byte", "character" or "word".
    unknown: the id of a symbol that the alphabet lacks; None: that is an error.
    special_tokens: spelling -> id. reserved: display name -> id.
    merge_rule: "merge_list": the listed pairs merge. "rank_by_piece": any two neighbors whose
        joined bytes are a piece merge, the piece with the lowest id first.
    whole_piece_lookup: whether a pre-token that is a piece itself is taken at once.

    What only files of others have:

    added_tokens: spelling -> id of tokens that always match, not only where they are allowed.
    token_flags: spelling of a special or added token -> some of "lstrip" and "rstrip" (white
        space before or behind it belongs to it), "single_word" (not inside a word) and
        "normalized" (it is looked for in the normalized text).
    normalizer: "NFC", or None.
    prefix_space: whether text that does not begin with a space gets one.
    frame: the ids that `add_special_tokens` puts before and behind a text.
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
    added_tokens: Mapping[str, int] = field(default_factory=dict)
    token_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    normalizer: str | None = None
    prefix_space: bool = False
    frame: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def __post_init__(self) -> None:
        # Copies that nobody can write to.
        for name, dtype in ARRAYS.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), name, dtype))
        for name in MAPPINGS:
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
            *self.added_tokens.values(),
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from tokbpe import show

        return show.summary(self)

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

    @property
    def lossless(self) -> bool:
        """Whether every accepted input comes back byte for byte, special tokens apart."""
        strips = {"lstrip", "rstrip"}
        return (
            self.unit == "byte"
            and self.unknown is None
            and self.normalizer is None
            and not self.prefix_space
            and (self.pattern is None or self.pattern.keep_gaps)
            and not any(strips & {*self.token_flags.get(text, ())} for text in self.added_tokens)
        )

    def pieces(self) -> list[bytes | None]:
        """The bytes of each id; None for a gap. ValueError for more than 2**24 gaps, about."""
        if len(self) > len(self.alphabet) + len(self.merges) + MOST_TABLE_GAPS:
            raise ValueError(
                f"the highest id is {len(self) - 1}, and {MOST_TABLE_GAPS} ids without a piece are "
                "the most for a table of all ids"
            )
        pieces = [*self.alphabet, *[None] * (len(self) - len(self.alphabet))]
        for id, piece in self.pieces_beyond_alphabet():
            pieces[id] = piece
        return pieces

    def by_id(self) -> tuple[bytes | None, ...] | tables.SparsePieces:
        """The same, in a form that takes memory for the pieces, and not for many gaps."""
        items = dict(self.items())
        if len(self) > FEW_IDS + MOST_GAPS_PER_PIECE * len(items):
            return tables.SparsePieces(items, len(self))
        return tuple(self.pieces())

    def items(self) -> list[tuple[int, bytes]]:
        """Each id that has a meaning, in rising order, with its bytes: a special token's
        spelling, b"" for a reserved id."""
        pieces = {id: piece for id, piece in enumerate(self.alphabet) if piece is not None}
        pieces.update(self.pieces_beyond_alphabet())
        return sorted(pieces.items())

    def pieces_beyond_alphabet(self) -> Iterator[tuple[int, bytes]]:
        """The id and the bytes of all else that has a meaning."""
        if not self.makes_only_entries:
            yield from self.made_pieces()
        if self.unknown is not None:
            yield self.unknown, UNKNOWN
        for spelling, id in (*self.special_tokens.items(), *self.added_tokens.items()):
            yield id, spelling.encode("utf-8")
        for id in self.reserved.values():
            yield id, b""

    def made_pieces(self) -> Iterator[tuple[int, bytes]]:
        """The id and the bytes of each merge."""
        entries = {id: piece for id, piece in enumerate(self.alphabet) if piece is not None}
        return tables.made_pieces(entries, *self.listed_merges())

    def listed_merges(self) -> tuple[list[tuple[int, int]], list[int]]:
        """The two ids that each merge joins, and its own."""
        return [(left, right) for left, right in self.merges.tolist()], self.ids_of_merges.tolist()

    @cached_property
    def makes_only_entries(self) -> bool:
        """Whether all that merges make stands in the alphabet already."""
        ids = self.ids_of_merges
        return len(ids) == 0 or (
            int(ids.max()) < len(self.alphabet)
            and all(self.alphabet[id] is not None for id in ids.tolist())
        )

    def symbols(self) -> tuple[bytes | None, ...]:
        """The alphabet without what is a special token, which plain text never yields."""
        listed = self.listed_tokens()
        if not listed:
            return self.alphabet
        symbols = list(self.alphabet)
        for id in listed:
            symbols[id] = None
        return tuple(symbols)

    def listed_tokens(self) -> list[int]:
        """The ids of special and added tokens that stand in the alphabet."""
        tokens = [*self.special_tokens.values(), *self.added_tokens.values()]
        return [id for id in tokens if id < len(self.alphabet) and self.alphabet[id] is not None]

    def usable_merges(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32] | None]:
        """The merges, and their ids if they have some of their own, without those that join a
        token of the alphabet that none makes: they never apply."""
        listed = np.array(self.listed_tokens(), np.intp)
        lost = listed[~np.isin(listed, self.ids_of_merges.astype(np.intp))]
        if not len(lost):
            return self.merges, self.merge_ids
        joins = np.isin(self.merges.astype(np.intp), lost)
        kept = np.flatnonzero(~(joins[:, 0] | joins[:, 1]))
        return self.merges[kept], self.ids_of_merges[kept]

    def validate(self) -> None:
        """ValueError, naming what is wrong and where, unless all parts fit together."""
        if not isinstance(self.method, str):
            raise TypeError(f"method must be a name, not {arguments.type_name(self.method)}")
        for name in ("whole_piece_lookup", "prefix_space"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is a bool, not {getattr(self, name)!r}")
        arguments.choice(self.unit, "unit", UNITS)
        arguments.choice(self.merge_rule, "merge_rule", MERGE_RULES)
        arguments.choice(self.special_ids, "special_ids", SPECIAL_IDS)
        if self.normalizer is not None:
            arguments.choice(self.normalizer, "normalizer", NORMALIZERS)
        if self.tie_break is not None:
            arguments.choice(self.tie_break, "tie_break", arguments.TIE_BREAKS)
        if self.pattern is not None and not isinstance(self.pattern, Pattern):
            raise TypeError(f"pattern must be a Pattern, not {arguments.type_name(self.pattern)}")
        patterns.for_unit(self.pattern, self.unit)
        if self.unit != "byte" and (self.merge_rule != "merge_list" or self.whole_piece_lookup):
            raise ValueError(f"rank_by_piece and whole_piece_lookup are not for {self.unit!r}")
        if self.merges.shape != (len(self.merges), 2):
            raise ValueError(f"merges have the shape {self.merges.shape}, not [n, 2]")
        if len(self.merges) and self.merge_rule == "rank_by_piece":
            raise ValueError(
                f"rank_by_piece has no list of merges, but there are {len(self.merges)}"
            )
        if self.ids_of_merges.shape != (len(self.merges),):
            raise ValueError(f"{len(self.merges)} merges, but {len(self.ids_of_merges)} ids")
        if len(self.merge_counts) not in (0, len(self.merges)):
            raise ValueError(f"{len(self.merges)} merges, but {len(self.merge_counts)} counts")
        if int(self.merge_counts.max(initial=0)) > arguments.HIGHEST_COUNT:
            raise ValueError(
                f"a count of a merge is {self.merge_counts.max()}; "
                f"the highest is {arguments.HIGHEST_COUNT}"
            )
        self.validate_alphabet()
        self.validate_merges()
        self.validate_tokens()

    def validate_alphabet(self) -> None:
        """The alphabet holds some bytes for each id, or None, and nothing twice."""
        if isinstance(self.alphabet, Pieces):
            return
        gaps = self.alphabet.count(None)
        if not {*map(type, self.alphabet)} <= {bytes, NoneType} or b"" in self.alphabet:
            for id, symbol in enumerate(self.alphabet):
                if symbol is not None and (not isinstance(symbol, bytes) or not symbol):
                    raise ValueError(
                        f"alphabet entry {id} must be some bytes or None, not {symbol!r}"
                    )
        if len({*self.alphabet}) != len(self.alphabet) - max(gaps - 1, 0):
            symbols = Counter(symbol for symbol in self.alphabet if symbol is not None)
            raise ValueError(f"the alphabet holds {symbols.most_common(1)[0][0]!r} twice")

    def validate_merges(self) -> None:
        """Merges join ids that have a meaning and no part in themselves, and make an id that is
        new or has their bytes."""
        ids = self.ids_of_merges
        if len(ids) == 0:
            return
        self.validate_pairs()
        last = int(ids.argmax())
        arguments.whole_number(
            int(ids[last]), f"the id of merge {last}", 0, arguments.LARGEST_VOCABULARY - 1
        )
        known = np.array(
            [id for id, symbol in enumerate(self.alphabet) if symbol is not None], np.intp
        )
        made = ids.astype(np.intp)  # NumPy writes to nowhere if it has no memory to convert them
        unknown_halves = ~np.isin(self.merges.astype(np.intp), np.append(made, known))
        if unknown_halves.any():
            rank, half = np.argwhere(unknown_halves)[0].tolist()
            raise ValueError(f"merge {rank} joins {self.merges[rank, half]}, which is no id")
        before = join_lower_ids(self.merges, ids)
        if self.merge_ids is None:
            if not before.all():
                raise ValueError(f"merge {before.argmin()} joins what is made by it or after it")
            return
        if not before.all() and not self.makes_only_entries:
            deque(tables.order_of_making(known.tolist(), *self.listed_merges()), maxlen=0)
        if np.isin(made, known).any() or len(np.unique(ids)) < len(ids):
            pieces = {id: piece for id, piece in enumerate(self.alphabet) if piece is not None}
            for id, piece in self.made_pieces():
                if pieces.setdefault(id, piece) != piece:
                    raise ValueError(
                        f"a merge makes {piece!r} with the id {id}, which is that of {pieces[id]!r}"
                    )

    def validate_pairs(self) -> None:
        """No two merges join the same ids."""
        pairs = self.merges[:, 0].astype(np.uint64) << np.uint64(32) | self.merges[:, 1]
        first_of = np.unique(pairs, return_index=True)[1]
        if len(first_of) < len(pairs):
            rank = int(np.setdiff1d(np.arange(len(pairs)), first_of)[0])
            left, right = self.merges[rank].tolist()
            raise ValueError(f"merge {rank} joins {left} and {right}, as one before it does")

    def validate_tokens(self) -> None:
        """Special and added tokens and reserved ids have an id of their own each."""
        taken: dict[int, str] = {}
        for kind, named, ids in (
            ("special token", "spelling", self.special_tokens),
            ("added token", "spelling", self.added_tokens),
            ("reserved id", "name", self.reserved),
        ):
            for name, id in ids.items():
                if not isinstance(name, str) or not name:
                    raise ValueError(f"a {kind} needs a {named} that is not empty, not {name!r}")
                if any("\ud800" <= letter <= "\udfff" for letter in name):
                    raise ValueError(f"a {kind} needs a {named} that UTF-8 can hold, not {name!r}")
                arguments.whole_number(
                    id, f"the id of {kind} {name!r}", 0, arguments.LARGEST_VOCABULARY - 1
                )
                # A file may list a token among its pieces too.
                listed = kind != "reserved id" and self.listed(id) == name.encode("utf-8")
                meaning = taken.get(id) or (None if listed else self.plain_meaning(id))
                if meaning is not None:
                    raise ValueError(f"{kind} {name!r} has the id {id} of {meaning}")
                taken[id] = f"the {kind} {name!r}"
        if self.unknown is not None:
            arguments.whole_number(self.unknown, "unknown", 0, len(self) - 1)
            meaning = self.meaning_of_piece(self.unknown)
            if meaning is not None:
                raise ValueError(f"unknown is {self.unknown}, the id of {meaning}")
        for spelling in self.special_tokens.keys() & self.added_tokens.keys():
            raise ValueError(f"{spelling!r} is both a special token and an added one")
        for spelling, flags in self.token_flags.items():
            if spelling not in self.special_tokens and spelling not in self.added_tokens:
                raise ValueError(f"{spelling!r} has flags, but is no token")
            for flag in flags:
                arguments.choice(flag, f"a flag of {spelling!r}", FLAGS)
        last = len(self) - 1
        for id in (id for part in self.frame for id in part):
            arguments.whole_number(id, "an id of the frame", 0, last)

    def listed(self, id: int) -> bytes | None:
        """The piece of an id in the alphabet."""
        return self.alphabet[id] if id < len(self.alphabet) else None

    def plain_meaning(self, id: int) -> str | None:
        """What an id stands for in plain text."""
        return repr(UNKNOWN) if id == self.unknown else self.meaning_of_piece(id)

    def meaning_of_piece(self, id: int) -> str | None:
        """Which symbol or merge has an id."""
        piece = self.listed(id)
        if piece is None:
            return "a merge" if self.makes(id) else None
        return repr(piece)

    def makes(self, id: int) -> bool:
        """Whether a merge makes an id that is not in the alphabet."""
        if self.merge_ids is None:
            return len(self.alphabet) <= id < len(self.alphabet) + len(self.merges)
        return not self.makes_only_entries and bool((self.merge_ids == id).any())

    # Plain data: what states, files and fingerprints are made of.

    def plain(self) -> dict[str, Any]:
        """The vocabulary as data that JSON can hold: arrays are lists, bytes are hexadecimal."""
        plain = self._facts()
        plain["alphabet"] = [None if symbol is None else symbol.hex() for symbol in self.alphabet]
        for name in ARRAYS:
            array = getattr(self, name)
            plain[name] = None if array is None else array.tolist()
        return plain

    def packed(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The same, but for what is long: it has `dtype` and `shape` in its place, and its bytes
        beside it. In the place of the alphabet stand the sizes of its symbols, 0 for None, whose
        bytes are "symbols"."""
        plain = self._facts()
        symbols = [symbol or b"" for symbol in self.alphabet]
        sizes = np.fromiter(map(len, symbols), np.int64, len(symbols))
        parts = {}
        for name, dtype in PACKED.items():
            array = sizes if name == "alphabet" else getattr(self, name)
            plain[name] = None if array is None else {"dtype": dtype, "shape": array.shape}
            parts[name] = b"" if array is None else array.astype(dtype).tobytes()
        parts["symbols"] = b"".join(symbols)
        return plain, parts

    def _facts(self) -> dict[str, Any]:
        """All that is short, as data that JSON can hold."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        for name in PACKED:
            del plain[name]
        if self.pattern is not None:
            plain["pattern"] = {
                "name": self.pattern.name,
                "sources": list(self.pattern.sources),
                "keep_gaps": self.pattern.keep_gaps,
            }
        for name in MAPPINGS:
            plain[name] = dict(getattr(self, name))
        plain["token_flags"] = {text: [*flags] for text, flags in self.token_flags.items()}
        plain["frame"] = [[*ids] for ids in self.frame]
        plain["provenance"] = [copy.deepcopy(dict(record)) for record in self.provenance]
        plain["unicode"] = unicode.VERSION
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], trust_pattern: bool = False) -> "Vocabulary":
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
        if not isinstance(parts["alphabet"], tuple):  # of bytes, from the artifact
            parts["alphabet"] = tuple(
                None if symbol is None else bytes.fromhex(symbol) for symbol in parts["alphabet"]
            )
        merges = array_of(parts["merges"], "merges", np.uint32)
        parts["merges"] = merges if merges.size else no_merges()
        parts["merge_counts"] = array_of(parts["merge_counts"], "merge_counts", np.uint64)
        if parts["merge_ids"] is not None:
            parts["merge_ids"] = array_of(parts["merge_ids"], "merge_ids", np.uint32)
        if parts["pattern"] is not None:
            parts["pattern"] = pattern_of(parts["pattern"], trust_pattern)
        for name in MAPPINGS:
            parts[name] = mapping(parts[name], name)
        for name in ("special_tokens", "reserved", "added_tokens"):
            # In the order in which they got their ids, which sorted JSON loses.
            parts[name] = dict(sorted(parts[name].items(), key=itemgetter(1)))
        parts["token_flags"] = {text: (*flags,) for text, flags in parts["token_flags"].items()}
        parts["frame"] = frame_of(parts["frame"])
        parts["provenance"] = tuple(
            mapping(copy.deepcopy(record), "the record of a training")
            for record in parts["provenance"]
        )
        for record in parts["provenance"]:
            arguments.hashes(record.get("hashes"))
        return cls(**parts)

    def fingerprint(self, provenance: bool = True) -> str:
        """A SHA-256 over what encodes and decodes, and over the record of the trainings."""
        plain, parts = self.packed()
        if not provenance:
            # None of these tells what text becomes.
            for name in ("provenance", "merge_counts", "tie_break", "special_ids"):
                del plain[name]
            del parts["merge_counts"]
            if self.method in DESCRIBED:
                del plain["method"]
                if not len(self.merges):
                    del plain["pattern"]
        plain["algorithm"] = ALGORITHM
        digest = hashlib.sha256(as_json(plain))
        for part in parts.values():
            digest.update(part)
        return digest.hexdigest()


def join_lower_ids(merges: NDArray[np.uint32], ids: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which merges join ids that are both lower than their own, [n]."""
    # Half by half: NumPy may crash where it has no memory to hold rows against a column.
    return (merges[:, 0] < ids) & (merges[:, 1] < ids)


def as_json(plain: Mapping[str, Any]) -> bytes:
    """Plain data in the one way in which they are saved and hashed."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode("ascii")


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


def pattern_of(plain: object, trust_pattern: bool = False) -> Pattern:
    """The pattern of plain data."""
    found = mapping(plain, "the pattern of a vocabulary")
    if found.keys() != {"name", "sources", "keep_gaps"}:
        raise ValueError(f"a pattern has name, sources and keep_gaps, not {list(found)}")
    if not isinstance(found["sources"], (list, tuple)) or type(found["keep_gaps"]) is not bool:
        raise TypeError(f"the sources of a pattern are a list, keep_gaps a bool: {found}")
    pattern = Pattern(found["name"], tuple(found["sources"]), found["keep_gaps"])
    return patterns.of_file(pattern, trust_pattern)


def frame_of(plain: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The frame of plain data."""
    if not isinstance(plain, (list, tuple)) or len(plain) != 2:
        raise ValueError(f"the frame of a vocabulary is two lists of ids, not {plain!r}")
    before, behind = (
        (*[arguments.whole_number(id, "an id of the frame", 0, 2**32 - 2) for id in ids],)
        for ids in plain
    )
    return before, behind


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
