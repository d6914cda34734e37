"""Cases to play on an engine, from texts to ids and back.

A case yields the name and the outcome of each step: the value that a call gave or, just as
good, the exception that it raised.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from tokbpe import Tokenizer, engines
from tokbpe.formats import artifact
from tokbpe.rows import Rows

LONGEST_MADE_TEXT = 300


class Raised(NamedTuple):
    """An exception as an outcome."""

    type: type[Exception]
    arguments: tuple[object, ...]
    text: str


def attempt(call: Callable[..., Any], *arguments: object) -> Any:
    """What a call gives: its value or what it raises."""
    try:
        return call(*arguments)
    except Exception as error:
        return Raised(type(error), error.args, str(error))


@dataclass(frozen=True)
class Generated:
    """Stands for a generator of these items, which in the end raises `error` if there is one."""

    items: Sequence[object]
    error: Exception | None = None

    def generator(self) -> Iterator[object]:
        yield from fresh(self.items)
        if self.error is not None:
            raise self.error


def fresh(value: Any) -> Any:
    """A copy for one engine alone, in which generators are real and not used up."""
    if isinstance(value, Generated):
        return value.generator()
    if type(value) in (list, tuple):
        return type(value)(map(fresh, value))
    return value


@dataclass(frozen=True)
class Options:
    merges_wanted: Any
    minimum_pair_frequency: Any = 2
    tie_break: Any = "smallest"

    def all(self):
        return self.merges_wanted, self.minimum_pair_frequency, self.tie_break


@dataclass(frozen=True)
class TextCase:
    """Documents, from text to merges to ids and back."""

    corpus: Any
    documents: list[Any]  # those of the corpus
    pattern: Any
    alphabet: list[bytes | None]
    weight_factor: int
    options: Options
    texts: list[Any]  # to be encoded, beside the documents
    recipe: list[int]  # of a text made from the learned vocabulary
    ids: list[int]  # to be decoded

    def play(self, engine):
        for document in self.documents:
            yield "split", attempt(engine.split, document, self.pattern)
        counts = attempt(engine.count_pieces, fresh(self.corpus), self.pattern)
        yield "count_pieces", counts
        if isinstance(counts, Raised):
            counts = {}
        rows = [in_ids(piece, self.alphabet) for piece in counts]
        weights = [count * self.weight_factor for count in counts.values()]
        merges = yield from play_training(engine, rows, weights, self.alphabet, self.options)
        yield from play_encoding(
            engine, self.alphabet, merges, self.pattern, self.documents + self.texts, self.recipe
        )
        yield from play_decoding(engine, self.alphabet, merges, self.ids)


@dataclass(frozen=True)
class TrainingCase:
    """Sequences of ids of any alphabet, with weights of any size."""

    sequences: list[list[int]]
    weights: list[int] | None
    alphabet: list[bytes | None]
    options: Options

    def play(self, engine):
        yield from play_training(engine, self.sequences, self.weights, self.alphabet, self.options)


@dataclass(frozen=True)
class CoreCase:
    """A training in several ways, all of which must give the same."""

    sequences: list[list[int]]
    weights: list[int] | None
    alphabet: list[bytes | None]
    options: Options
    ways: list["Way"]

    def play(self, engine):
        # The reference, which knows one way only, goes it once.
        ways = self.ways if limits_of(engine) else self.ways[:1]
        found = [self.train(engine, way) for way in ways]
        for outcomes in found * (len(self.ways) // len(ways)):
            yield from outcomes

    def train(self, engine, way):
        with mock.patch.dict(limits_of(engine), way.limits):
            return [
                (name, attempt(self.call, getattr(engine, name), way))
                for name in ("train", "train_steps")
            ]

    def call(self, function, way):
        rows, weights = self.sequences, self.weights
        if way.symbol_type is not None:
            rows = rows_of(rows, way.symbol_type)
            if weights is not None:
                fits = all(weight < 2**63 for weight in weights)
                weights = np.array(weights, way.weight_type if fits else np.uint64)
        given = function(rows, weights, self.alphabet, *self.options.all(), threads=way.threads)
        return list(given) if function.__name__ == "train_steps" else as_lists(given)


class Way(NamedTuple):
    """How the compiled engine trains."""

    limits: dict[str, int]
    threads: int
    symbol_type: str | None  # of `Rows`; None: lists
    weight_type: str


def limits_of(engine):
    """What changes at which sizes the training of the compiled engine takes which way."""
    return getattr(engine.train, "__globals__", {}).get("LIMITS", {})


def rows_of(sequences, symbol_type="uint8"):
    """The same sequences in one array."""
    symbols = [symbol for sequence in sequences for symbol in sequence]
    ends = np.cumsum([len(sequence) for sequence in sequences], dtype=np.uint64)
    return Rows(np.array(symbols, symbol_type), ends)


@dataclass(frozen=True)
class EncodingCase:
    """A list of merges that no training gave."""

    alphabet: list[bytes | None]
    merges: list[tuple[int, int]]
    pattern: Any
    texts: list[Any]
    recipe: list[int]
    ids: list[int]

    def play(self, engine):
        yield from play_encoding(
            engine, self.alphabet, self.merges, self.pattern, self.texts, self.recipe
        )
        yield from play_decoding(engine, self.alphabet, self.merges, self.ids)


@dataclass(frozen=True)
class RuleCase:
    """A table of whole pieces, under either merge rule, with or without lookup of these."""

    table: dict[str, Any]  # the arguments of `encoding_table`
    warm: bool  # whether the compiled engine is prepared for much text
    special: dict[bytes, int]
    texts: list[Any]
    limits: list[Any]

    def play(self, engine):
        table = attempt(lambda: engine.encoding_table(**self.table))
        if isinstance(table, Raised):
            yield "encoding_table", table
            return
        if self.warm:
            warm_up(table)
        for text in self.texts:
            yield "encode", attempt(engine.encode, text, table, self.special)
            for limit in self.limits:
                yield "count", attempt(engine.count, text, table, self.special, limit)


@dataclass(frozen=True)
class SpecialCase:
    """Documents with special tokens in them."""

    documents: list[Any]
    special: dict[bytes, int]
    flags: dict[bytes, tuple[str, ...]] | None  # None: the engine makes no table of them first
    pattern: Any
    alphabet: list[bytes | None]
    options: Options

    def play(self, engine):
        special = self.special
        if self.flags is not None:
            special = engine.special_table(self.special, self.flags)
        for document in self.documents:
            yield "cut_special", engine.cut_special(bytes_of(document), special)
        counts = attempt(engine.count_pieces, self.documents, self.pattern, special)
        yield "count_pieces", counts
        merges = []
        if not isinstance(counts, Raised):
            rows = [in_ids(piece, self.alphabet) for piece in counts]
            weights = list(counts.values())
            merges = yield from play_training(engine, rows, weights, self.alphabet, self.options)
        table = attempt(engine.encoding_table, self.alphabet, merges, self.pattern)
        if isinstance(table, Raised):
            yield "encoding_table", table
            return
        for document in self.documents:
            yield "encode", attempt(engine.encode, document, table, special)


@dataclass(frozen=True)
class UnitCase:
    """A list of merges with ids of their own, over bytes, characters or words."""

    unit: str
    alphabet: list[bytes | None]
    merges: list[tuple[int, int]]
    merge_ids: list[int]
    unknown: int | None
    pattern: Any
    texts: list[Any]
    ids: list[int]
    unknown_bytes: bytes | None

    def play(self, engine):
        table = engine.encoding_table(
            self.alphabet, self.merges, self.pattern, self.merge_ids, self.unit, self.unknown
        )
        for text in self.texts:
            yield "encode", attempt(engine.encode, text, table)
        pieces = engine.decoding_table(self.alphabet, self.unknown_bytes)
        yield "decode", attempt(engine.decode, self.ids, pieces)


@dataclass(frozen=True)
class TokenizerCase:
    """The life of a tokenizer: trained, cut, extended, saved and loaded."""

    corpus: Any
    options: dict[str, Any]
    texts: list[Any]
    allowed: Any
    ids: list[int]
    smaller: int  # by so many ids
    more: Any  # documents
    larger: int

    def play(self, engine):
        # All at once: two that are played in turn would find each other's engine.
        with (
            mock.patch.object(engines, "get", lambda name=None: engine),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            tokenizer = attempt(lambda: Tokenizer(fresh(self.corpus), **self.options))
            found = [("Tokenizer", tokenizer)]
            if not isinstance(tokenizer, Raised):
                found += self.life(tokenizer)
            return [*found, ("warnings", [str(warning.message) for warning in warned])]

    def life(self, tokenizer):
        yield "state", tokenizer.state()
        encoded = self.encoded(tokenizer)
        yield "encode", encoded
        for again in (
            Tokenizer.from_state(
                json.loads(json.dumps(tokenizer.state(), sort_keys=True)), trust_pattern=True
            ),
            Tokenizer.from_vocabulary(
                artifact.loaded(artifact.dumped(tokenizer._vocabulary), engines.get(), True)
            ),
        ):
            assert again == tokenizer and again.state() == tokenizer.state()
            assert repr(self.encoded(again)) == repr(encoded)
        for ids in [*encoded, self.ids]:
            if not isinstance(ids, Raised):
                yield "decode_bytes", attempt(tokenizer.decode_bytes, ids)
                for errors, skip in [("strict", False), ("strict", True), ("replace", False)]:
                    yield "decode", attempt(tokenizer.decode, ids, errors, skip)
        size = tokenizer.vocab_size
        shorter = attempt(tokenizer.truncated, size - self.smaller)
        longer = attempt(tokenizer.extended, fresh(self.more), size + self.larger)
        for name, other in [("truncated", shorter), ("extended", longer)]:
            yield name, other
            if not isinstance(other, Raised):
                yield name, other.state()
                yield name, self.encoded(other)

    def encoded(self, tokenizer):
        return [attempt(self.encoded_text, tokenizer, text) for text in self.texts]

    def encoded_text(self, tokenizer, text):
        encode = tokenizer.encode if isinstance(text, str) else tokenizer.encode_bytes
        return encode(text, allowed_special=self.allowed)


@dataclass(frozen=True)
class CallCase:
    """One call, mostly with something wrong in it. Its last argument can be a table."""

    function: str
    arguments: tuple[Any, ...]
    table_function: str | None = None
    table_arguments: tuple[Any, ...] = ()

    def play(self, engine):
        yield self.function, attempt(self.call, engine)

    def call(self, engine):
        arguments = fresh(self.arguments)
        if self.table_function is not None:
            table = getattr(engine, self.table_function)(*fresh(self.table_arguments))
            return getattr(engine, self.function)(*arguments, table)
        result = getattr(engine, self.function)(*arguments)
        if self.function == "train":
            return as_lists(result)
        if self.function == "train_steps":
            return list(result)
        # What a table looks like is each engine's own affair.
        return None if self.function.endswith("table") else result


def play_training(engine, rows, weights, alphabet, options):
    """Count, train and replay; gives the merges."""
    settings = options.all()
    yield (
        "count_pairs",
        attempt(engine.count_pairs, rows, [1] * len(rows) if weights is None else weights),
    )
    trained = attempt(lambda: as_lists(engine.train(rows, weights, alphabet, *settings)))
    yield "train", trained
    steps = attempt(lambda: list(engine.train_steps(rows, weights, alphabet, *settings)))
    yield "train_steps", steps
    if isinstance(trained, Raised):
        return []
    merges, _ = trained
    for row in rows[:2]:
        for new_id, pair in enumerate(merges, len(alphabet)):
            row = engine.merge_pair(row, pair, new_id)
            yield "merge_pair", row
    return merges


def as_lists(trained):
    """Merges and counts as lists; of the compiled engine they are arrays."""
    merges, counts = trained
    return [(int(left), int(right)) for left, right in merges], [int(count) for count in counts]


def warm_up(table):
    """Have the compiled engine do what it does when some text has come."""
    if hasattr(table, "warm_up"):
        table.warm_up()


def play_encoding(engine, alphabet, merges, pattern, texts, recipe):
    """Encode texts, and one made from the vocabulary; decode what they give."""
    table = attempt(engine.encoding_table, alphabet, merges, pattern)
    if isinstance(table, Raised):
        yield "encoding_table", table
        return
    pieces = vocabulary(alphabet, merges)
    made = b"".join(pieces[number % len(pieces)] or b"" for number in recipe if pieces)
    decoding_table = engine.decoding_table(pieces)
    if len(recipe) % 2:
        warm_up(table)
    for text in [*texts, made[:LONGEST_MADE_TEXT]]:
        ids = attempt(engine.encode, text, table)
        yield "encode", ids
        if not isinstance(ids, Raised):
            yield "decode", attempt(engine.decode, ids, decoding_table)


def play_decoding(engine, alphabet, merges, ids):
    table = engine.decoding_table(vocabulary(alphabet, merges))
    yield "decode", attempt(engine.decode, ids, table)


def in_ids(data: bytes, alphabet: list[bytes | None]) -> Sequence[int]:
    """Bytes as ids; one that is not in the alphabet gets an id that is not either."""
    known = {string[0]: id for id, string in enumerate(alphabet) if string is not None}
    if all(known.get(byte) == byte for byte in data):
        return data
    return [known.get(byte, len(alphabet)) for byte in data]


def bytes_of(document):
    return document.encode("utf-8", "replace") if isinstance(document, str) else bytes(document)


def vocabulary(
    alphabet: Sequence[bytes | None], merges: Iterable[tuple[int, int]]
) -> list[bytes | None]:
    """The bytes of all ids."""
    pieces = list(alphabet)
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    return pieces
