"""The methods: each turns a corpus into a vocabulary. A user's own can be registered.

Byte, character and word vocabularies are the same thing with another base: a byte tokenizer is
one without merges, a character tokenizer has another alphabet, and words are pieces whose last
character is marked.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from tokbpe import arguments, engines, patterns, tables
from tokbpe.arguments import Documents
from tokbpe.corpus import Record
from tokbpe.engines import Engine
from tokbpe.patterns import WORDS, Pattern
from tokbpe.special import cut_special
from tokbpe.symbols import MARKER, symbols
from tokbpe.vocabulary import SPECIAL_IDS, Vocabulary, lay_out, taken_out

Progress: TypeAlias = bool | Callable[[int, int], object]

DEFAULT_VOCABULARY_SIZE = 512
BYTE_ORDERS = {"bytes": bytes(range(256)), "gpt2": patterns.GPT2_BYTE_ORDER}
WRITTEN_MARKER = b"</w>"  # as which the end of a word counts where byte strings are compared


@dataclass(frozen=True)
class Options:
    """What a training is asked for; None means that the caller left it to the method."""

    vocabulary_size: int | None = None
    minimum_pair_frequency: int | None = None
    pattern: str | Pattern | None = None
    tie_break: str | None = None
    base: str | None = None
    special_tokens: Sequence[str] = ()
    reserved: Sequence[str] = ()
    special_ids: str | None = None
    engine: str | None = None
    progress: Progress = False

    def __post_init__(self) -> None:
        arguments.names(self.special_tokens, "special_tokens")
        arguments.names(self.reserved, "reserved")
        if self.special_ids is not None:
            arguments.choice(self.special_ids, "special_ids", SPECIAL_IDS)
        if not isinstance(self.progress, bool) and not callable(self.progress):
            raise TypeError(
                f"progress must be a bool or a function, not {arguments.type_name(self.progress)}"
            )

    def special_spellings(self) -> dict[bytes, int]:
        """The spellings that are boundaries in training."""
        return {spelling.encode("utf-8"): n for n, spelling in enumerate(self.special_tokens)}


class Encoder(Protocol):
    """How a method encodes whose merges do not describe it."""

    def encode(self, data: bytes) -> list[int]: ...


class Method(Protocol):
    """A way to turn a corpus into a vocabulary.

    `name` is what callers pass, `number` what compiled callers see: it never changes. A method
    that merges do not describe also has `encoder(vocabulary) -> Encoder`.
    """

    name: str
    number: int

    def train(self, corpus: Documents, options: Options) -> Vocabulary: ...


# Learning


@dataclass(frozen=True)
class Training:
    """What a method asks an engine to learn."""

    base: Vocabulary  # without merges, special tokens and reserved ids
    rows: Sequence[Sequence[int]]
    weights: Iterable[int]
    strings: Sequence[bytes | None]  # of the base ids, as "greatest" compares them
    merges_wanted: int
    minimum_pair_frequency: int
    record: Record

    def arguments(self) -> dict[str, Any]:
        """What `train` and `train_steps` of an engine are called with."""
        return {
            "sequences": self.rows,
            "weights": self.weights,
            "alphabet": self.strings,
            "merges_wanted": self.merges_wanted,
            "minimum_pair_frequency": self.minimum_pair_frequency,
            "tie_break": self.base.tie_break,
        }


class Merge(NamedTuple):
    """One step of a training: the new id, the two pieces that it joins, how often they stood
    side by side."""

    id: int
    left: bytes
    right: bytes
    occurrences: int


def learn(training: Training, options: Options) -> Vocabulary:
    """The base with the merges that the engine learns, special tokens and reserved ids."""
    with progress_callback(options.progress) as callback:
        merges, counts = engines.get(options.engine).train(
            **training.arguments(), progress=callback
        )
    vocabulary = replace(
        training.base,
        merges=np.array(merges, np.uint32).reshape(-1, 2),
        merge_counts=np.array(counts, np.uint64),
    )
    vocabulary = finished(vocabulary, options, training.record)
    if options.vocabulary_size is not None:
        warn_if_smaller(vocabulary, options.vocabulary_size, training.minimum_pair_frequency, 6)
    return vocabulary


def warn_if_smaller(
    vocabulary: Vocabulary, size: int, minimum_pair_frequency: int, stacklevel: int
) -> None:
    """Say so when the corpus gave fewer ids than its user asked for."""
    if len(vocabulary) < size:
        warnings.warn(
            f"the corpus gave {len(vocabulary)} of the {size} ids wanted: no other pair occurs "
            f"{minimum_pair_frequency} times or more",
            stacklevel=stacklevel,
        )


def learn_steps(training: Training, options: Options) -> Iterator[Merge]:
    """The merges one by one; their ids follow the base."""
    pieces = [piece or b"" for piece in training.base.pieces()]
    for (left, right), count in engines.get(options.engine).train_steps(**training.arguments()):
        pieces.append(pieces[left] + pieces[right])
        yield Merge(len(pieces) - 1, pieces[left], pieces[right], count)


def finished(vocabulary: Vocabulary, options: Options, record: Record) -> Vocabulary:
    """With special tokens, reserved ids and a record of the training."""
    laid_out = lay_out(
        vocabulary,
        options.special_tokens,
        options.reserved,
        given(options.special_ids, "base"),
    )
    training = {
        **record.plain(),
        "vocabulary_size": arguments.as_index(options.vocabulary_size),
        "minimum_pair_frequency": arguments.as_index(options.minimum_pair_frequency),
    }
    return replace(laid_out, provenance=(training,))


def merges_wanted(options: Options, base: int, least: int) -> int:
    """How many merges the vocabulary size leaves beside the base and the special tokens."""
    others = len(options.special_tokens) + len(options.reserved)
    fixed = base + others
    size = arguments.whole_number(
        given(options.vocabulary_size, max(DEFAULT_VOCABULARY_SIZE, fixed)),
        "vocabulary_size",
        least + others,
        arguments.LARGEST_VOCABULARY,
    )
    return max(size - fixed, 0)


# The methods


class ByteMethod:
    """The distinct bytes of the corpus, in rising order; nothing is merged."""

    name = "byte"
    number = 0

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        refuse_merging(self.name, options)
        refuse("base", options.base, "bytes", self.name)
        record = Record()
        special = options.special_spellings()
        seen: set[int] = set()
        for document in record.watch(corpus):
            for part, special_id in cut_special(document, special):
                if special_id is None:
                    seen.update(part)
        if not seen:
            raise nothing_to_learn("bytes")
        base = Vocabulary(self.name, tuple(bytes([byte]) for byte in sorted(seen)))
        return finished(base, options, record)


class BpeMethod:
    """Byte-pair encoding: all 256 bytes and the merges that are learned."""

    name = "bpe"
    number = 1

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        return learn(self.prepare(corpus, options), options)

    def prepare(self, corpus: Documents, options: Options) -> Training:
        wanted = merges_wanted(options, 256, 256)
        frequency = arguments.pair_frequency(given(options.minimum_pair_frequency, 2))
        tie_break = given(options.tie_break, "smallest")
        arguments.choice(tie_break, "tie_break", arguments.TIE_BREAKS)
        order = BYTE_ORDERS[arguments.choice(given(options.base, "bytes"), "base", BYTE_ORDERS)]
        pattern = patterns.for_training(options.pattern)
        counts, record = counted(corpus, pattern, options)
        if not record.bytes:
            raise nothing_to_learn("bytes")
        alphabet = tuple(bytes([byte]) for byte in order)
        ids_of_bytes = bytes(order.index(byte) for byte in range(256))
        return Training(
            base=Vocabulary(self.name, alphabet, pattern=pattern, tie_break=tie_break),
            rows=[piece.translate(ids_of_bytes) for piece in counts],
            weights=counts.values(),
            strings=alphabet,
            merges_wanted=wanted,
            minimum_pair_frequency=frequency,
            record=record,
        )


class CharMethod:
    """`<UNK>` and the distinct characters of the corpus, sorted; nothing is merged."""

    name = "char"
    number = 2

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        refuse_merging(self.name, options)
        refuse_other_layout(self.name, options)
        counts, record = counted(corpus, None, options, text=True)
        if not counts:
            raise nothing_to_learn("characters")
        seen = {symbol for piece in counts for symbol in symbols(piece, "character")}
        alphabet = (None, *sorted(seen))
        base = Vocabulary(self.name, alphabet, unit="character", unknown=0)
        return finished(base, options, record)


class WordMethod:
    """Characters, those that end a word apart, and the merges learned inside words."""

    name = "word"
    number = 3

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        return learn(self.prepare(corpus, options), options)

    def prepare(self, corpus: Documents, options: Options) -> Training:
        refuse("pattern", options.pattern, None, self.name)
        refuse_other_layout(self.name, options)
        frequency = arguments.pair_frequency(given(options.minimum_pair_frequency, 1))
        tie_break = given(options.tie_break, "first")
        arguments.choice(tie_break, "tie_break", arguments.TIE_BREAKS)
        counts, record = counted(corpus, WORDS, options, text=True)
        if not counts:
            raise nothing_to_learn("words")
        rows = [symbols(word, "word") for word in counts]
        seen = {symbol.removesuffix(MARKER) for row in rows for symbol in row}
        alphabet = (None, *sorted({*seen, *(symbol + MARKER for symbol in seen)}))
        ids = {symbol: id for id, symbol in enumerate(alphabet)}
        return Training(
            base=Vocabulary(
                self.name,
                alphabet,
                unit="word",
                unknown=0,
                pattern=WORDS,
                tie_break=tie_break,
            ),
            rows=[[ids[symbol] for symbol in row] for row in rows],
            weights=counts.values(),
            strings=[compared(symbol) for symbol in alphabet],
            merges_wanted=merges_wanted(options, len(alphabet), 1),
            minimum_pair_frequency=frequency,
            record=record,
        )


def counted(
    corpus: Documents, pattern: Pattern | None, options: Options, text: bool = False
) -> tuple[dict[bytes, int], Record]:
    """The pieces of a corpus, which must be `text`, with their counts; the record of it."""
    record = Record()
    documents = record.watch(corpus)
    counts = engines.get(options.engine).count_pieces(
        only_text(documents) if text else documents, pattern, options.special_spellings()
    )
    return counts, record


def only_text(documents: Iterable[bytes]) -> Iterator[bytes]:
    """The documents; UnicodeDecodeError, naming the document, for bytes that are no UTF-8."""
    for index, document in enumerate(documents):
        try:
            document.decode("utf-8")
        except UnicodeDecodeError as error:
            error.reason += f" (document {index})"
            raise
        yield document


def compared(symbol: bytes | None) -> bytes | None:
    """The string of a symbol as "greatest" compares it."""
    if symbol is not None and symbol.endswith(MARKER) and symbol != MARKER:
        return symbol.removesuffix(MARKER) + WRITTEN_MARKER
    return symbol


def refuse_merging(method: str, options: Options) -> None:
    """ValueError for what a method that merges nothing has no use for."""
    for option, default in MERGING_DEFAULTS.items():
        refuse(option, getattr(options, option), default, method)


def refuse_other_layout(method: str, options: Options) -> None:
    """ValueError for another base than characters, and for ids before that of `<UNK>`."""
    refuse("base", options.base, "characters", method)
    if options.special_ids == "first":
        raise ValueError(f"special_ids='first' would move <UNK>, which is 0 in the {method} method")


def refuse(option: str, value: object, default: object, method: str) -> None:
    """ValueError for an option that a method lacks, unless it says what holds anyway."""
    if value is not None and value != default:
        raise ValueError(f"the {method} method has no {option}, but it is {value!r}")


MERGING_DEFAULTS = {
    "vocabulary_size": None,
    "minimum_pair_frequency": 2,
    "pattern": None,
    "tie_break": "smallest",
}


def nothing_to_learn(what: str) -> ValueError:
    return ValueError(f"the corpus holds no {what} to learn from, special tokens apart")


def given(value: Any, default: Any) -> Any:
    return default if value is None else value


# The registry


def train(name: str, corpus: Documents, options: Options) -> Vocabulary:
    """What a method makes of a corpus, with the special tokens and reserved ids of the options."""
    vocabulary = get(name).train(corpus, options)
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(
            f"method {name!r} must return a Vocabulary, not {arguments.type_name(vocabulary)}"
        )
    missing = {*options.special_tokens} - {*vocabulary.special_tokens}
    missing |= {*options.reserved} - {*vocabulary.reserved}
    if not missing:
        return vocabulary
    if vocabulary.special_tokens or vocabulary.reserved or vocabulary.merge_ids is not None:
        raise ValueError(f"method {name!r} has made no ids for {sorted(missing)}")
    return lay_out(
        vocabulary,
        options.special_tokens,
        options.reserved,
        given(options.special_ids, "base"),
    )


METHODS: dict[str, Method] = {}


def register(method: Method) -> None:
    """Add a method. TypeError or ValueError for one without, or with another's, name or number."""
    for part in ("name", "number"):
        if not hasattr(method, part):
            raise TypeError(f"a method has a {part}, but {method!r} has none")
    arguments.names([method.name], "the name of a method")
    arguments.whole_number(method.number, f"the number of method {method.name!r}", 0, 2**31 - 1)
    if not callable(getattr(method, "train", None)):
        raise TypeError(f"method {method.name!r} cannot be called to train")
    for known in METHODS.values():
        if known.name == method.name or known.number == method.number:
            raise ValueError(
                f"method {method.name!r} with number {method.number}: there is "
                f"{known.name!r} with number {known.number} already"
            )
    METHODS[method.name] = method


def get(name: str) -> Method:
    """The method of a name; ValueError for an unknown one."""
    return METHODS[arguments.choice(name, "method", METHODS)]


for method in (ByteMethod(), BpeMethod(), CharMethod(), WordMethod()):
    register(method)


# Encoding


def check_symbols(vocabulary: Vocabulary) -> None:
    """ValueError for a vocabulary that could not be encoded: of a method that is not registered,
    or with symbols that pieces do not fall into, unless the method has an encoder of its own."""
    if not hasattr(get(vocabulary.method), "encoder") and vocabulary.unit != "byte":
        tables.encoding_table(
            vocabulary.symbols(),
            (),
            vocabulary.pattern,
            (),
            vocabulary.unit,
            vocabulary.unknown,
        )


# Going on


def truncated(vocabulary: Vocabulary, size: int) -> Vocabulary:
    """With a prefix of the merges: what training to that size gives."""
    if not vocabulary.trained or vocabulary.merge_ids is not None:
        raise ValueError(
            f"a vocabulary of the {vocabulary.method} method that was imported, or extended "
            "beyond its special tokens, cannot be truncated"
        )
    base = taken_out(vocabulary)
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
    return lay_out(
        shorter,
        list(vocabulary.special_tokens),
        list(vocabulary.reserved),
        vocabulary.special_ids,
    )


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
    record = Record()
    special = {spelling.encode(): id for spelling, id in vocabulary.special_tokens.items()}
    documents = record.watch(corpus)
    if vocabulary.unit != "byte":
        documents = only_text(documents)
    counts = engine.count_pieces(documents, vocabulary.pattern, special)
    if not record.bytes:
        raise nothing_to_learn("bytes")
    rows, weights = encoded_rows(vocabulary, counts, engine)
    with progress_callback(options.progress) as callback:
        merges, merge_counts = engine.train(
            rows,
            weights,
            compared_pieces(vocabulary),
            size - len(vocabulary),
            frequency,
            vocabulary.tie_break,
            callback,
        )
    first = len(vocabulary)
    new_ids = np.arange(first, first + len(merges), dtype=np.uint32)
    ids = np.concatenate([vocabulary.ids_of_merges, new_ids])
    follows = len(ids) == 0 or int(ids[-1]) == len(vocabulary.alphabet) + len(ids) - 1
    training = {
        **record.plain(),
        "vocabulary_size": size,
        "minimum_pair_frequency": frequency,
    }
    longer = replace(
        vocabulary,
        merges=np.concatenate([vocabulary.merges, np.array(merges, np.uint32).reshape(-1, 2)]),
        merge_counts=np.concatenate([vocabulary.merge_counts, np.array(merge_counts, np.uint64)]),
        merge_ids=None if follows else ids,
        provenance=(*vocabulary.provenance, training),
    )
    warn_if_smaller(longer, size, frequency, 4)
    return longer


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


def table_parts(vocabulary: Vocabulary) -> tuple[Any, ...]:
    """What `encoding_table` of an engine is called with."""
    return (
        vocabulary.symbols(),
        vocabulary.merges,
        vocabulary.pattern,
        vocabulary.merge_ids,
        vocabulary.unit,
        vocabulary.unknown,
        vocabulary.merge_rule,
        vocabulary.whole_piece_lookup,
    )


@contextlib.contextmanager
def progress_callback(progress: Progress) -> Iterator[Callable[[int, int], object] | None]:
    """What an engine calls with the merges done and wanted: True shows a bar on a terminal."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        from tqdm import tqdm

        with tqdm(unit="merge", disable=None, leave=False) as bar:

            def show(done: int, wanted: int) -> None:
                bar.total = wanted
                bar.update(done - bar.n)

            yield show
