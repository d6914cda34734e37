"""The methods: each turns a corpus into a vocabulary. A user's own can be registered.

Byte, character and word vocabularies are the same thing with another base: a byte tokenizer is
one without merges, a character tokenizer has another alphabet, and words are pieces whose last
character is marked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, bounds, engines, patterns, tables
from tokbpe import progress as progresses
from tokbpe.arguments import Documents
from tokbpe.corpus import for_training
from tokbpe.count_work import Settings, counter_of, known_size, pieces_of
from tokbpe.counting import PieceCounts
from tokbpe.patterns import WORDS, Pattern
from tokbpe.progress import Progress, reporting
from tokbpe.record import Record
from tokbpe.rows import Rows
from tokbpe.special import cut_special
from tokbpe.symbols import MARKER, symbols
from tokbpe.vocabulary import SPECIAL_IDS, Vocabulary, lay_out

Result = TypeVar("Result")
Merges: TypeAlias = tuple[Any, Any]  # and their counts, as lists or arrays

DEFAULT_VOCABULARY_SIZE = 512
BYTE_ORDERS = {"bytes": bytes(range(256)), "gpt2": patterns.GPT2_BYTE_ORDER}
BYTES_TOGETHER = 2**20  # are looked at between two looks for signals
WRITTEN_MARKER = b"</w>"  # as which the end of a word counts where byte strings are compared


@dataclass(frozen=True)
class Options:
    """What a training is asked for: the arguments of `tokbpe.Tokenizer` that have these names.
    None means that the caller left it to the method."""

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
    threads: int | None = None
    on_interrupt: str = "raise"
    max_pair_types: int | None = None
    max_merge_work: int | None = None

    def __post_init__(self) -> None:
        bounds.bound(self.max_pair_types, "max_pair_types")
        bounds.bound(self.max_merge_work, "max_merge_work")
        arguments.names(self.special_tokens, "special_tokens")
        arguments.names(self.reserved, "reserved")
        if self.special_ids is not None:
            arguments.choice(self.special_ids, "special_ids", SPECIAL_IDS)
        progresses.checked(self.progress)
        arguments.threads(self.threads)
        arguments.kept_interrupts(self.on_interrupt)

    def special_spellings(self) -> dict[bytes, int]:
        """The spellings that are boundaries in training."""
        return {spelling.encode("utf-8"): n for n, spelling in enumerate(self.special_tokens)}


class Encoder(Protocol):
    """How a method encodes whose merges do not describe it."""

    def encode(self, data: bytes) -> list[int]:
        """The ids of a document, or of a part between special tokens."""


class Method(Protocol):
    """A way to turn a corpus into a vocabulary.

    `name` is what callers pass, `number` what compiled callers see: it never changes. A method
    that merges do not describe also has `encoder(vocabulary) -> Encoder`.
    """

    name: str
    number: int

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        """The vocabulary that is learned from a corpus; ValueError or TypeError, naming the
        value, for options that the method does not have."""


# Learning


@dataclass(frozen=True)
class Training:
    """What a method asks an engine to learn."""

    base: Vocabulary  # without merges, special tokens and reserved ids
    rows: Rows | list[list[int]]
    weights: NDArray[np.int64]
    strings: Sequence[bytes | None]  # of the base ids, as "greatest" compares them
    merges_wanted: int
    minimum_pair_frequency: int
    record: Mapping[str, Any]

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
    merges, counts = learned_merges(training.arguments(), options)

    def lay_out_all() -> Vocabulary:
        vocabulary = replace(
            training.base,
            merges=np.array(merges, np.uint32).reshape(-1, 2),
            merge_counts=np.array(counts, np.uint64),
        )
        vocabulary = finished(vocabulary, options, training.record)
        if options.vocabulary_size is not None:
            warn_if_smaller(
                vocabulary,
                options.vocabulary_size,
                training.minimum_pair_frequency,
                options.on_interrupt,
            )
        return vocabulary

    return finish(lay_out_all, options.on_interrupt)


def learned_merges(training: Mapping[str, Any], options: Options) -> Merges:
    """The merges that the engine learns, and their counts."""
    bounds.check_pair_types(training["sequences"], options.max_pair_types)
    engine = engines.get(options.engine)
    learn = engine.train
    if options.max_merge_work is not None:
        learn = partial(bounds.train, engine, options.max_merge_work)
    found: list[Merges] = []
    try:
        with reporting(options.progress, "merge") as report:
            train = partial(
                learn,
                **training,
                progress=report,
                threads=options.threads,
                on_interrupt=options.on_interrupt,
            )
            # They are in the list before Python looks at signals again.
            found.extend(starmap(train, [()]))
    except arguments.kept_interrupts(options.on_interrupt):
        if not found:
            raise
    return found[0]


def finish(work: Callable[[], Result], on_interrupt: str) -> Result:
    """Do what is left to do when merges are learned, and do it anew if an interrupt, which must
    not lose them, stops it."""
    while True:
        try:
            return work()
        except arguments.kept_interrupts(on_interrupt):
            continue


def warn_if_smaller(
    vocabulary: Vocabulary, size: int, minimum_pair_frequency: int, on_interrupt: str
) -> None:
    """Say so when the corpus gave fewer ids than its user asked for."""
    if len(vocabulary) < size:
        stopped = "the training was interrupted, or " if on_interrupt == "keep" else ""
        arguments.warn(
            f"the corpus gave {len(vocabulary)} of the {size} ids wanted: {stopped}no other pair "
            f"occurs {minimum_pair_frequency} times or more"
        )


def learn_steps(training: Training, options: Options) -> Iterator[Merge]:
    """The merges one by one; their ids follow the base."""
    pieces = [piece or b"" for piece in training.base.pieces()]
    bounds.check_pair_types(training.rows, options.max_pair_types)
    steps = engines.get(options.engine).train_steps(**training.arguments(), threads=options.threads)
    for (left, right), count in bounds.within(steps, options.max_merge_work):
        pieces.append(pieces[left] + pieces[right])
        yield Merge(len(pieces) - 1, pieces[left], pieces[right], count)


def finished(vocabulary: Vocabulary, options: Options, record: Mapping[str, Any]) -> Vocabulary:
    """With special tokens, reserved ids and a record of the training."""
    laid_out = lay_out(
        vocabulary,
        options.special_tokens,
        options.reserved,
        given(options.special_ids, "base"),
    )
    training = {
        **record,
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
        seen = np.zeros(256, bool)
        done = 0
        with reporting(options.progress, "B", unit_scale=True) as report:
            told = counter_of(report, known_size(corpus) if report else None)
            for document in record.watch(corpus):
                for part, special_id in cut_special(document, special):
                    for start in range(0, len(part), BYTES_TOGETHER):
                        bytes_here = np.frombuffer(part, np.uint8)[start : start + BYTES_TOGETHER]
                        if special_id is None:
                            seen[bytes_here.astype(np.intp)] = True  # see `word_rows`
                        done += len(bytes_here)
                        if told is not None:
                            told(done)
        if not seen.any():
            raise nothing_to_learn("bytes")
        base = Vocabulary(self.name, tuple(bytes([byte]) for byte in np.flatnonzero(seen)))
        return finished(base, options, record.plain())


class BpeMethod:
    """Byte-pair encoding: all 256 bytes and the merges that are learned."""

    name = "bpe"
    number = 1

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        return learn(self.prepare(corpus, options), options)

    def prepare(self, corpus: Documents, options: Options) -> Training:
        self.check(options)
        pattern = patterns.for_training(options.pattern)
        return self.training(counted(corpus, pattern, options), options)

    def check(self, options: Options) -> None:
        """An error for options that this method does not take."""
        merges_wanted(options, 256, 256)
        arguments.pair_frequency(given(options.minimum_pair_frequency, 2))
        arguments.choice(given(options.tie_break, "smallest"), "tie_break", arguments.TIE_BREAKS)
        arguments.choice(given(options.base, "bytes"), "base", BYTE_ORDERS)

    def training(self, counts: PieceCounts, options: Options) -> Training:
        """What is to be learned from counts."""
        self.check(options)
        record = counts.record
        if not len(counts) and not record["bytes"]:
            raise nothing_to_learn("bytes")
        order = BYTE_ORDERS[given(options.base, "bytes")]
        alphabet = tuple(bytes([byte]) for byte in order)
        tie_break = given(options.tie_break, "smallest")
        return Training(
            base=Vocabulary(
                self.name,
                alphabet,
                pattern=patterns.for_training(counts.settings.pattern),
                tie_break=tie_break,
            ),
            rows=byte_rows(counts, order),
            weights=counts.arrays.counts,
            strings=alphabet,
            merges_wanted=merges_wanted(options, 256, 256),
            minimum_pair_frequency=arguments.pair_frequency(
                given(options.minimum_pair_frequency, 2)
            ),
            record=record,
        )


def byte_rows(counts: PieceCounts, order: bytes) -> Rows:
    """Pieces as sequences of the ids that their bytes have in an order."""
    data, ends, _ = counts.arrays
    if order == BYTE_ORDERS["bytes"]:
        return Rows(data, ends)
    ids = np.argsort(np.frombuffer(order, np.uint8)).astype(np.uint8)
    return Rows(np.frombuffer(data.tobytes().translate(ids.tobytes()), np.uint8), ends)


class CharMethod:
    """`<UNK>` and the distinct characters of the corpus, sorted; nothing is merged."""

    name = "char"
    number = 2

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        refuse_merging(self.name, options)
        refuse_other_layout(self.name, options)
        counts = counted(corpus, None, options, text=True)
        if not counts:
            raise nothing_to_learn("characters")
        seen = {symbol for piece in counts for symbol in symbols(piece, "character")}
        alphabet = (None, *sorted(seen))
        base = Vocabulary(self.name, alphabet, unit="character", unknown=0)
        return finished(base, options, counts.record)


class WordMethod:
    """Characters, those that end a word apart, and the merges learned inside words."""

    name = "word"
    number = 3

    def train(self, corpus: Documents, options: Options) -> Vocabulary:
        return learn(self.prepare(corpus, options), options)

    def prepare(self, corpus: Documents, options: Options) -> Training:
        refuse("pattern", options.pattern, None, self.name)
        self.check(options)
        return self.training(counted(corpus, WORDS, options, text=True), options)

    def check(self, options: Options) -> None:
        """An error for options that this method does not take."""
        refuse_other_layout(self.name, options)
        arguments.pair_frequency(given(options.minimum_pair_frequency, 1))
        arguments.choice(given(options.tie_break, "first"), "tie_break", arguments.TIE_BREAKS)

    def training(self, counts: PieceCounts, options: Options) -> Training:
        """What is to be learned from counts."""
        self.check(options)
        if counts.settings.pattern != WORDS:
            raise ValueError(
                f"the word method learns from words, but the pattern of these counts is "
                f"{counts.pattern!r}: count with pattern={WORDS.name!r}"
            )
        if not counts:
            raise nothing_to_learn("words")
        rows, characters = word_rows(counts)
        alphabet = (None, *(form for char in characters for form in (char, char + MARKER)))
        return Training(
            base=Vocabulary(
                self.name,
                alphabet,
                unit="word",
                unknown=0,
                pattern=WORDS,
                tie_break=given(options.tie_break, "first"),
            ),
            rows=rows,
            weights=counts.arrays.counts,
            strings=[compared(symbol) for symbol in alphabet],
            merges_wanted=merges_wanted(options, len(alphabet), 1),
            minimum_pair_frequency=arguments.pair_frequency(
                given(options.minimum_pair_frequency, 1)
            ),
            record=counts.record,
        )


def word_rows(counts: PieceCounts) -> tuple[Rows, list[bytes]]:
    """Words as sequences of ids, and the distinct characters, sorted.

    Character i has the id 1 + 2 * i, and the next one where it ends a word: that is the order of
    the symbols, sorted, since no character begins as another one does.
    """
    data, ends, _ = counts.arrays
    begins_character = (data & 0xC0) != 0x80
    starts = ends - np.diff(ends, prepend=np.uint64(0))
    try:
        text = data.tobytes().decode("utf-8")
        if not begins_character[starts.astype(np.int64)].all():
            raise ValueError
    except ValueError:
        for number, piece in enumerate(pieces_of(data, ends)):
            try:
                piece.decode("utf-8")
            except UnicodeDecodeError as error:
                error.reason += f" (piece {number})"
                raise
    # NumPy itself, where it has no memory to make indices `intp`, writes to nowhere.
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.intp)
    last_characters = np.cumsum(begins_character)[ends.astype(np.int64) - 1] - 1
    met = np.zeros(int(codes.max()) + 1, bool)
    met[codes] = True
    known = np.flatnonzero(met)
    ids_of_codes = np.cumsum(met).astype(np.uint32 if 2 * len(known) > 0xFFFF else np.uint16)
    ids = (2 * ids_of_codes - 1)[codes]
    ids[last_characters] += 1
    return Rows(ids, (last_characters + 1).astype(np.uint64)), [
        chr(code).encode("utf-8") for code in known
    ]


def counted(
    corpus: Documents, pattern: Pattern | None, options: Options, text: bool = False
) -> PieceCounts:
    """The pieces of a corpus, which must be `text`, with their counts."""
    return PieceCounts.of_corpus(
        corpus,
        Settings.of(pattern, options.special_tokens, options.engine),
        options.threads,
        options.progress,
        text,
    )


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
    vocabulary = get(name).train(for_training(corpus), options)
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


def train_counts(name: str, counts: PieceCounts, options: Options) -> Vocabulary:
    """What a method makes of counts, with the special tokens of the options, which must be those
    of the counts."""
    method = get(name)
    if not hasattr(method, "training"):
        raise ValueError(f"the {name} method does not learn from counts")
    if not isinstance(counts, PieceCounts):
        raise TypeError(f"counts must be PieceCounts, not {arguments.type_name(counts)}")
    if {*options.special_tokens} != {*counts.special_tokens}:
        raise ValueError(
            f"the special tokens {list(options.special_tokens)} are not those that were "
            f"boundaries when the pieces were counted, {list(counts.special_tokens)}"
        )
    training = method.training(counts, options)
    if not counts.ordered and training.base.tie_break == "first":
        raise ValueError(
            "these counts have no order of first appearance, which tie_break='first' goes by: "
            "choose 'smallest' or 'greatest'"
        )
    return learn(training, options)


METHODS: dict[str, Method] = {}


def register(method: Method) -> None:
    """Add a method. TypeError or ValueError for one without, or with another's, name or number.

    >>> from tokbpe import Tokenizer, methods
    >>> from tokbpe.vocabulary import Vocabulary
    >>> class Letters:  # those of the Latin alphabet, for any corpus
    ...     name, number = "letters", 1000
    ...     def train(self, corpus, options):
    ...         return Vocabulary(self.name, tuple(bytes([byte]) for byte in range(97, 123)))
    >>> methods.register(Letters())
    >>> Tokenizer("", method="letters").encode("abc")
    [0, 1, 2]
    """
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


def table_parts(vocabulary: Vocabulary) -> tuple[Any, ...]:
    """What `encoding_table` of an engine is called with."""
    merges, merge_ids = vocabulary.usable_merges()
    return (
        vocabulary.symbols(),
        merges,
        vocabulary.pattern,
        merge_ids,
        vocabulary.unit,
        vocabulary.unknown,
        vocabulary.merge_rule,
        vocabulary.whole_piece_lookup,
    )
