"""Random corpora, options and merges on which the engines are compared.

Sizes are small, so that thousands of cases fit into a minute. Alphabets are often tiny, which
makes ties and runs; lengths reach beyond the thresholds in the compiled engine.
"""

from functools import cache
from random import Random

import numpy as np
from hypothesis import strategies as st

from cases import (
    CoreCase,
    EncodingCase,
    Generated,
    Options,
    RuleCase,
    SpecialCase,
    TextCase,
    TokenizerCase,
    TrainingCase,
    UnitCase,
    Way,
    bytes_of,
)
from tokbpe import arguments, patterns
from tokbpe.fast.merge import SHORT_PIECE_SYMBOLS

BYTES = [bytes([byte]) for byte in range(256)]
GPT2_BYTES = [bytes([byte]) for byte in patterns.GPT2_BYTE_ORDER]
HIGHEST_COUNT = 2**63 - 1

SEEDS = st.integers(0, 2**32)
# Short ones; around the lengths at which the compiled engine changes its way; longer ones.
LENGTHS = st.one_of(
    st.integers(0, 20),
    st.integers(SHORT_PIECE_SYMBOLS - 2, SHORT_PIECE_SYMBOLS + 2),
    st.integers(0, 20).map(lambda root: root * root),
)


def evenly(*strategies):
    """One of the strategies, all equally likely; `one_of` looks inside of them and may not."""
    return st.sampled_from(strategies).flatmap(lambda chosen: chosen)


def one_in(times, value, otherwise):
    """The value, but once in so many times what the strategy gives."""
    return evenly(*[st.just(value)] * (times - 1), otherwise)


def lists(items, least, most):
    """Lists, as many of each size; hypothesis' own are mostly short."""
    return st.one_of(
        [st.lists(items, min_size=size, max_size=size) for size in range(least, most + 1)]
    )


# Texts


def noise(alphabet, seed, length):
    return "".join(Random(seed).choices(alphabet, k=length))


def run(unit, length):
    return (unit * length)[:length]


@cache
def texts(alphabet):
    """Noise and runs, such as `aaaa` and `abababa`, one after another."""
    noises = st.builds(noise, st.just(alphabet), SEEDS, LENGTHS)
    runs = st.builds(run, st.text(alphabet, min_size=1, max_size=4), LENGTHS)
    return lists(noises | runs, 0, 4).map("".join)


# Characters among which the patterns distinguish, and strings that they know.
LETTERS = "aZsSſtTmdlLvrekKEé\u0301ßǅʰÀあ中\u093e\u200d"
OTHERS = "0٣Ⅷ½'\".,!/_^$€+-\x00\u200b🐈\ufeff"
SPACES = " \t\r\n\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2028\u3000"
KNOWN = ["'s", "'S", "'ſ", "'ll", "'lL", "'re", "'VE", "'t", "'m", "'D", "\r\n", "  ", "\n\n"]

PATTERN_TEXTS = lists(
    st.one_of(
        st.builds(noise, st.just(LETTERS), SEEDS, st.integers(1, 5)),
        st.builds(noise, st.just(OTHERS), SEEDS, st.integers(1, 4)),
        st.builds(noise, st.just(SPACES), SEEDS, st.integers(1, 4)),
        st.builds(noise, st.just(LETTERS + OTHERS + SPACES), SEEDS, st.integers(1, 60)),
        st.sampled_from(KNOWN),
    ),
    0,
    12,
).map("".join)

ASCII = "".join(map(chr, range(128)))
ALPHABETS = ["a", "ab", "abc", "abcd", "ab ", "abc \n", "aB'sé ", ASCII]
VALID_TEXTS = st.one_of(
    st.sampled_from(ALPHABETS).flatmap(texts), PATTERN_TEXTS, st.text(max_size=30)
)

# A lone surrogate has no UTF-8.
SURROGATES = "\ud800\udbff\udc00\udc80\udcff\udfff"
SURROGATE_TEXTS = st.builds(
    "{}{}{}".format, PATTERN_TEXTS, st.sampled_from(SURROGATES), PATTERN_TEXTS
)

# What looks like UTF-8 but is not: cut short, overlong, surrogates, beyond the last code point.
BROKEN = [
    b"\x80", b"\xff", b"\xc3", b"\xe4\xbd", b"\xf0\x9f\x90", b"\xc0\x80", b"\xc1\xbf",
    b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xb2\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80",
    b"\xf8\x88\x80\x80\x80",
]  # fmt: skip
DATA = lists(
    st.one_of(
        PATTERN_TEXTS.map(str.encode),
        st.sampled_from(BROKEN),
        st.binary(max_size=4),
        st.builds(lambda seed, size: Random(seed).randbytes(size), SEEDS, LENGTHS),
    ),
    0,
    6,
).map(b"".join)


# Documents and corpora


def strided(data):
    """The same bytes, but not side by side in memory."""
    return memoryview(bytes(byte for pair in zip(data, data) for byte in pair))[::2]


def applied(form, value):
    return form(value)


DOCUMENTS = evenly(
    VALID_TEXTS,
    st.builds(
        applied,
        st.sampled_from([bytes, bytes, bytearray, memoryview, strided]),
        VALID_TEXTS.map(str.encode) | DATA,
    ),
)


def dict_values(items):
    return dict(enumerate(items)).values()


def containers(items):
    """Lists, and what else can be iterated over."""
    return st.builds(applied, st.sampled_from([list, list, tuple, Generated, dict_values]), items)


# A user's own pattern, from a single character to one that leaves much uncovered.
OWN_PATTERNS = ["[a]", "[a-z]", r"\p{Lu}+|\s", "a+b*|(?=b)b", r"(?s:.{1,7})", r"\w+", r"\S+\Z|ab"]
PATTERNS = st.none() | st.sampled_from(
    [*patterns.NAMED, *OWN_PATTERNS, patterns.WORDS, patterns.WORDS, patterns.get("cl100k")]
)


def alphabet_of(data, kind, seed):
    """Single bytes: all 256, or those of the data, with one missing or with gaps between."""
    random = Random(seed)
    entries = [bytes([byte]) for byte in sorted(set(data))]
    if kind == "bytes":
        return BYTES
    if kind == "gpt2":
        return GPT2_BYTES
    if kind == "shuffled":
        random.shuffle(entries)
    if kind == "gaps":
        for _ in range(3):
            entries.insert(random.randint(0, len(entries)), None)
    if kind == "absent" and entries:
        entries.pop(random.randrange(len(entries)))
    return entries


BYTE_ALPHABETS = ["bytes", "bytes", "bytes", "gpt2", "gpt2", "own", "shuffled", "gaps", "absent"]


# Options

TIE_BREAKS = st.sampled_from(["smallest", "first", "greatest"])
MERGES_WANTED = st.integers(0, 12) | st.sampled_from([1, 2, 30, 100, 300])
FACTORS = [1, 1, 1, 1, 2, 2**31, 2**32 - 1, 2**32 + 1, 2**40, 2**57, 2**62, HIGHEST_COUNT]


@cache
def options(factor):
    """Options that suit weights which are multiples of a factor."""
    minimums = [1, 1, 2, 2, 3, 5, factor, factor + 1, 2 * factor, 3 * factor]
    allowed = [minimum for minimum in minimums if minimum <= HIGHEST_COUNT]
    return st.builds(Options, MERGES_WANTED, st.sampled_from(allowed), TIE_BREAKS)


# Cases

# Numbers of pieces, to make a text from a vocabulary: counted from its end, they are learned.
RECIPES = lists(st.integers(0, 300) | st.integers(-20, -1), 0, 12)
MORE_TEXTS = lists(evenly(DOCUMENTS, DOCUMENTS, DOCUMENTS, SURROGATE_TEXTS), 0, 2)
CORPORA = evenly(
    containers(lists(DOCUMENTS, 0, 5)),
    containers(lists(DOCUMENTS, 1, 3)),
    DOCUMENTS,
    DOCUMENTS,
    containers(lists(DOCUMENTS | SURROGATE_TEXTS, 1, 2)),
)


def documents_of(corpus):
    if isinstance(corpus, (str, bytes, bytearray, memoryview)):
        return [corpus]
    return list(corpus.items if isinstance(corpus, Generated) else corpus)


@st.composite
def text_cases(draw):
    corpus = draw(CORPORA)
    documents = documents_of(corpus)
    factor = draw(st.sampled_from(FACTORS))
    return TextCase(
        corpus=corpus,
        documents=documents,
        pattern=draw(PATTERNS),
        alphabet=alphabet_of(
            b"".join(map(bytes_of, documents)),
            draw(st.sampled_from(BYTE_ALPHABETS)),
            draw(SEEDS),
        ),
        weight_factor=factor,
        options=draw(options(factor)),
        texts=draw(MORE_TEXTS),
        recipe=draw(RECIPES),
        ids=draw(st.lists(st.integers(0, 280), max_size=8)),
    )


# Alphabets whose strings are longer than a byte: the same string can come about in several ways.
# None is no symbol.
STRINGS = [
    [b"a"],
    [b"a", b"b"],
    [b"c", b"b", b"a"],
    [b"d", b"a", b"c", b"b"],
    [None, b"b", None, b"a", None],
    [b"a", b"aa", b"ab", b"b", b"ba"],
    [b"<UNK>", b"e", b"e ", b"l", b"l ", b"o", b"o ", b"w", b"w "],
    [b"\x80", b"\x7f", b"\xff", b"\x00", b"\x00\x00", b"\xff\x00"],
    BYTES,
    GPT2_BYTES,
]


def symbols_of(alphabet):
    return [id for id, string in enumerate(alphabet) if string is not None]


@cache
def sequences_of(symbols):
    """Lists of sequences of these ids."""
    letters = "".join(map(chr, symbols))
    sequence = (texts(letters) | st.text(letters, max_size=4)).map(lambda text: [*map(ord, text)])
    return lists(sequence, 0, 8)


@st.composite
def sequences(draw, alphabet):
    """Sequences of ids, of few symbols or of all."""
    symbols = symbols_of(alphabet)
    return draw(sequences_of(tuple(symbols[-draw(st.sampled_from([1, 2, 2, 3, 4, 256])) :])))


def weights(size, factor):
    one = st.sampled_from([1, 1, 2, 3, factor, factor, factor + 1, 2 * factor])
    return st.none() | st.lists(one, min_size=size, max_size=size)


@st.composite
def training_cases(draw):
    alphabet = draw(st.sampled_from(STRINGS))
    factor = draw(st.sampled_from(FACTORS))
    rows = draw(sequences(alphabet))
    chosen = draw(weights(len(rows), factor))
    if chosen is not None and draw(st.integers(0, 4)) == 0:
        # One pair more brings all counts together to the most that is allowed, or beyond.
        places = sum(weight * max(len(row) - 1, 0) for weight, row in zip(chosen, rows))
        last = HIGHEST_COUNT - places + draw(st.integers(-1, 1))
        if 1 <= last <= HIGHEST_COUNT:
            rows = [*rows, symbols_of(alphabet)[:1] * 2]
            chosen = [*chosen, last]
    return TrainingCase(rows, chosen, alphabet, draw(options(factor)))


@st.composite
def ways(draw, alphabet, narrow_tokens, factor):
    """One way to train: with cells of two bytes up to so many tokens, this factor, and all else
    that depends on sizes where tiny corpora reach it, or far away."""
    types = ["uint16", "uint32"] if len(alphabet) > 256 else ["uint8", "uint16", "uint32"]
    return Way(
        limits={
            "narrow_tokens": narrow_tokens,
            "factor": factor,
            "dense_tokens": draw(st.sampled_from([0, 0, len(alphabet) + 3, 1024])),
            "sieve_bits": draw(st.sampled_from([1, 3, 20])),
            "slice": draw(st.sampled_from([1, 7, 2_000_000])),
            "thread_cells": draw(st.sampled_from([1, 1, 2, 5])),
        },
        threads=draw(st.sampled_from([1] * 6 + [2, 3])),  # to start one takes long
        symbol_type=draw(st.sampled_from([None, *types])),
        weight_type=draw(st.sampled_from(["int64", "uint64"])),
    )


@st.composite
def core_cases(draw):
    """Trainings that go through all parts of the compiled core, in cells of each width, of both,
    and with each factor."""
    alphabet = draw(st.sampled_from(STRINGS))
    factor = draw(st.sampled_from(FACTORS))
    rows = draw(sequences(alphabet))
    chosen = draw(weights(len(rows), factor))
    chosen_options = draw(options(factor))
    widths = [2**16 - 2, 0, len(alphabet) + draw(st.integers(1, 8))]
    factors = draw(st.permutations([1, 2, 16]))
    return CoreCase(
        rows,
        chosen,
        alphabet,
        chosen_options,
        [
            draw(ways(alphabet, width, times))
            for width, times in [*zip(widths, factors), *zip(widths, factors[1:] + factors[:1])]
        ],
    )


def odd_merges(size, number, seed):
    """Any merges of symbols that exist before them, each once, in no sensible order."""
    random = Random(seed)
    lengths = [1] * size
    merges = []
    for _ in range(number):
        lowest = max(0, len(lengths) - random.choice([3, 1000]))
        pair = random.randrange(lowest, len(lengths)), random.randrange(len(lengths))
        pair = pair[:: random.choice([-1, 1])]
        length = lengths[pair[0]] + lengths[pair[1]]
        if pair not in merges and length <= 60:
            merges.append(pair)
            lengths.append(length)
    return merges


@st.composite
def encoding_cases(draw):
    letters = draw(st.sampled_from(["a", "ab", "ba", "abc", "abcd", "ab c"]))
    merges = odd_merges(len(letters), draw(st.integers(0, 30)), draw(SEEDS))
    gaps = draw(st.integers(0, 2))
    return EncodingCase(
        alphabet=[None] * gaps + [letter.encode() for letter in letters],
        merges=[(left + gaps, right + gaps) for left, right in merges],
        pattern=draw(one_in(5, None, PATTERNS)),
        texts=draw(lists(texts(letters), 1, 3)),
        recipe=draw(RECIPES),
        ids=draw(st.lists(st.integers(0, 16), max_size=6)),
    )


@st.composite
def rule_cases(draw):
    """Pieces of few letters, in which most ways to cut one give pieces again, with odd ranks."""
    letters = draw(st.sampled_from(["a", "ab", "abc", "ab ", "aé"]))
    pieces = draw(
        st.lists(st.text(letters, min_size=2, max_size=6), max_size=25, unique=True).map(
            lambda texts: [text.encode() for text in texts]
        )
    )
    symbols = sorted({bytes([byte]) for byte in letters.encode()})
    alphabet = draw(st.permutations([*symbols, *pieces, *[None] * draw(st.integers(0, 2))]))
    whole = st.sampled_from(["a", *(piece.decode() for piece in pieces)])
    rule = draw(st.sampled_from(["merge_list", "rank_by_piece"]))
    ids = {piece: id for id, piece in enumerate(alphabet)}
    cuts = [(piece, cut) for piece in pieces for cut in range(1, len(piece))]
    cuts = [(p[:cut], p[cut:], p) for p, cut in cuts if p[:cut] in ids and p[cut:] in ids]
    listed = draw(st.permutations(cuts)) if rule == "merge_list" else []
    listed = listed[: draw(st.integers(0, 40))]
    merges = [(ids[left], ids[right]) for left, right, _ in listed]
    merge_ids = [ids[piece] for _, _, piece in listed]
    if draw(one_in(8, False, st.just(True))) and merges:  # a fault
        merge_ids[-1] = draw(st.integers(0, len(alphabet) + 1))
    as_arrays = draw(st.booleans())
    return RuleCase(
        table={
            "alphabet": tuple(alphabet) if as_arrays else alphabet,
            "merges": np.array(merges, np.uint32).reshape(-1, 2) if as_arrays else merges,
            "pattern": draw(one_in(3, None, PATTERNS)),
            "merge_ids": np.array(merge_ids, np.uint32) if as_arrays else merge_ids,
            "merge_rule": rule,
            "whole_piece_lookup": draw(st.booleans()),
        },
        warm=draw(st.booleans()),
        special=draw(st.sampled_from([{}, {b"ab": 900}, {b" ": 901, b"aa": 902}])),
        texts=draw(lists(evenly(st.text(letters, max_size=40), whole), 1, 4)),
        limits=draw(lists(one_in(4, None, st.integers(-1, 12)), 1, 3)),
    )


# Special tokens

# Of few symbols, one the beginning or a part of another, and of symbols with a meaning elsewhere.
SPELLINGS = st.one_of(
    st.sampled_from(["<|a|>", "<|a|>b", "<|a", "|>", "<|e|>", "a", "ab", "aab", "ba", "b"]),
    st.sampled_from(["\x00", "\n", "\r\n", " ", "  ", ".*", "[a]", "a|b", "\\", "$", "(?i)", "🐈"]),
    st.sampled_from(
        ["é", "e\u0301", "\u0301", "\ufeff", "</w>", "<UNK>", "a ", " a", "🐈\n", "中"]
    ),
    st.text("ab<|>", min_size=1, max_size=5),
    st.text(min_size=1, max_size=3),
)


def special_documents(spellings):
    """Documents made of special tokens, of parts of these, and of other text."""
    whole = st.sampled_from(["a", *spellings]).map(str.encode)
    parts = st.builds(
        lambda text, start, end: text[start % len(text) :][: 1 + end],
        whole,
        st.integers(0, 4),
        st.integers(0, 4),
    )
    other = st.text("ab <|>", max_size=6).map(str.encode)
    spaces = st.text(" \n\u3000\u200b", max_size=3).map(str.encode)
    kinds = evenly(whole, whole, parts, other, spaces, st.sampled_from(BROKEN))
    data = lists(kinds, 0, 8).map(b"".join)
    return data.map(as_text)


def as_text(data):
    """The text of bytes that are UTF-8; others stay as they are."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


FLAGS = st.lists(st.sampled_from(arguments.TOKEN_FLAGS), max_size=3, unique=True).map(tuple)


@st.composite
def special_cases(draw):
    spellings = draw(st.lists(SPELLINGS, min_size=1, max_size=5, unique=True))
    flagged = st.sampled_from([spelling.encode() for spelling in spellings])
    documents = draw(st.lists(special_documents(spellings), min_size=1, max_size=4))
    ids = st.integers(0, 300) | st.sampled_from([2**31, 2**32 - 2])
    return SpecialCase(
        documents=documents,
        special={spelling.encode(): draw(ids) for spelling in spellings},
        flags=draw(one_in(3, None, st.dictionaries(flagged, FLAGS))),
        pattern=draw(one_in(3, None, PATTERNS)),
        alphabet=alphabet_of(
            b"".join(map(bytes_of, documents)),
            draw(st.sampled_from(["bytes", "bytes", "gpt2", "own", "absent"])),
            draw(SEEDS),
        ),
        options=Options(draw(st.integers(0, 6)), 1, draw(TIE_BREAKS)),
    )


# Units

UNIT_LETTERS = ["ab", "abc", "aé中🐈", "a\ufffd", "\x00\x7f\x80", "ab\u0301\U0010ffff"]
UNIT_PATTERNS = st.sampled_from([None, None, "gpt2", "cl100k", r"\S+", "[a]"])


@st.composite
def unit_cases(draw):
    unit = draw(st.sampled_from(["byte", "character", "word", "word"]))
    letters = draw(st.sampled_from(UNIT_LETTERS))
    symbols = sorted({letter.encode() for letter in letters})
    if unit == "byte":
        symbols = [bytes([byte]) for byte in sorted(set(b"".join(symbols)))]
    if unit == "word":
        symbols += [symbol + b" " for symbol in symbols]
    Random(draw(SEEDS)).shuffle(symbols)
    missing = draw(st.integers(0, 1))
    alphabet = [None, *symbols[missing:]]
    # Merges of anything with anything, in any order, each with an id of its own.
    size = len(alphabet)
    odd = odd_merges(size, draw(st.integers(0, 12)), draw(SEEDS))
    gap = draw(st.sampled_from([0, 0, 3, 2**20]))
    numbered = list(enumerate(odd, size))
    Random(draw(SEEDS)).shuffle(numbered)
    known = {id for id, symbol in enumerate(alphabet) if symbol} | {id for id, _ in numbered}
    numbered = [(id, pair) for id, pair in numbered if set(pair) <= known]
    while len(kept := closed(alphabet, numbered)) < len(numbered):
        numbered = kept
    move = [id + gap * (id >= size) for id in range(size + len(odd))]
    texts_of = texts(letters) | texts(letters + " \n") | DOCUMENTS | SURROGATE_TEXTS
    return UnitCase(
        unit=unit,
        alphabet=alphabet,
        merges=[(move[left], move[right]) for _, (left, right) in numbered],
        merge_ids=[move[id] for id, _ in numbered],
        unknown=draw(st.sampled_from([0, 0, 2**32 - 2] + [None] * (unit == "byte"))),
        pattern=patterns.WORDS if unit == "word" else draw(UNIT_PATTERNS),
        texts=draw(lists(texts_of, 1, 4)),
        ids=draw(st.lists(st.integers(-2, 12) | st.sampled_from([2**32, -(2**70)]), max_size=8)),
        unknown_bytes=draw(st.sampled_from([None, b"<UNK>", b""])),
    )


def closed(alphabet, numbered):
    """The merges whose halves are symbols or made by one of them."""
    known = {id for id, symbol in enumerate(alphabet) if symbol} | {id for id, _ in numbered}
    return [(id, pair) for id, pair in numbered if set(pair) <= known]


# Tokenizers

TOKENIZER_PATTERNS = st.sampled_from([None, "gpt2", "cl100k", "o200k", r"[a-z]+", r"\S"])


@st.composite
def tokenizer_cases(draw):
    method = draw(st.sampled_from(["byte", "bpe", "bpe", "char", "word", "word"]))
    spellings = draw(st.lists(SPELLINGS, max_size=3, unique=True))
    reserved = draw(st.lists(st.sampled_from(["BOS", "EOS", "PAD"]), max_size=3, unique=True))
    documents = evenly(special_documents(spellings), texts("ab"), texts("ab c"), VALID_TEXTS)
    layouts = ["base", "end", "first"] if method in ("byte", "bpe") else ["base", "end"]
    chosen = {
        "method": method,
        "special_tokens": spellings,
        "reserved": reserved,
        "special_ids": draw(st.sampled_from(layouts)),
    }
    if method in ("bpe", "word"):
        # The word method keeps its alphabet whole, however small the size.
        base = len(spellings) + len(reserved) + (256 if method == "bpe" else 1)
        merges = st.integers(0, 12) | st.sampled_from([1, 2, 40] if method == "bpe" else [50, 100])
        chosen["vocabulary_size"] = base + draw(merges)
        chosen["minimum_pair_frequency"] = draw(st.sampled_from([None, 1, 1, 2, 3]))
        chosen["tie_break"] = draw(st.none() | TIE_BREAKS)
    if method == "bpe":
        chosen["pattern"] = draw(TOKENIZER_PATTERNS)
        chosen["base"] = draw(st.sampled_from([None, "gpt2"]))
    corpus = draw(st.lists(documents, min_size=1, max_size=3))
    return TokenizerCase(
        corpus=corpus,
        options=chosen,
        texts=corpus[:1] + draw(st.lists(documents | SURROGATE_TEXTS, max_size=2)),
        allowed=draw(st.sampled_from(["all", "all", (), spellings[:1], set(spellings[1:])])),
        ids=draw(st.lists(st.integers(-1, 290), max_size=5)),
        smaller=draw(st.sampled_from([0, 1, 1, 2, 3, 5])),
        more=draw(lists(documents, 0, 3)),
        larger=draw(st.integers(-1, 8)),
    )
