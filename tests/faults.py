"""Random calls, mostly with something wrong in them, to compare what the engines raise."""

from array import array
from types import MappingProxyType

import numpy as np
from hypothesis import strategies as st

from cases import CallCase, Generated, rows_of
from strategies import (
    BYTES,
    DOCUMENTS,
    GPT2_BYTES,
    HIGHEST_COUNT,
    PATTERNS,
    SEEDS,
    STRINGS,
    SURROGATE_TEXTS,
    SURROGATES,
    TIE_BREAKS,
    applied,
    containers,
    evenly,
    odd_merges,
    one_in,
    sequences,
    texts,
    weights,
)
from tokbpe import patterns


class Number(int):
    """A whole number of a type of its own."""


class Index:
    """No number, but usable as one."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


class BadIndex(Index):
    def __index__(self):
        raise ArithmeticError("this index has no value")


# A small number in one of the types that a number may have.
NUMBER_TYPES = st.sampled_from(
    [int, int, Number, Index, np.uint8, np.int16, np.uint32, np.int64, np.uint64]
)
WRONG_NUMBERS = [
    True, False, None, 1.0, -1.0, float("nan"), 1j, "1", b"1", (1,), [], np.float32(1), np.True_,
    np.array([1, 2]), -1, -(2**31), -(2**63), -(2**64), 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63,
    2**64, 2**64 + 1, 2**70, np.int8(-1), np.int64(-1), np.uint32(2**32 - 1), np.uint64(2**64 - 1),
    Index(-1), Index(2**64), Index(1.0), BadIndex(1), Number(-1),
]  # fmt: skip
WRONG_DOCUMENTS = st.sampled_from(
    [None, 1, 1.5, True, ["a"], ("a",), {"a": 1}, np.array([97, 98]), array("B", b"ab"),
     *SURROGATES, "ab\udc80", "\ud83d\ude00", "é" * 30 + "\ud83d" + "é" * 5]
)  # fmt: skip
WRONG_PATTERNS = st.sampled_from(
    ["", "gpt5", "words", "a*", "(", "[a-z", r"\p{Xx}", "(?=a)", 1, b"gpt2", ["gpt2"]]
)
ERRORS = st.sampled_from([KeyError("the source"), OSError(5, "broken"), ZeroDivisionError()])


def insert_all(items, additions):
    items = list(items)
    for place, value in additions:
        items.insert(place % (len(items) + 1), value)
    return items


def disturbed(items, wrong):
    """Lists in which wrong items stand, or none."""
    return st.builds(insert_all, items, st.lists(st.tuples(st.integers(0, 50), wrong), max_size=2))


def interrupted(items):
    """Iterables; some of them raise an error of their own in the end."""
    return containers(items) | st.builds(Generated, items, st.none() | ERRORS)


# Splitting and counting

SPLIT_CALLS = st.builds(
    lambda *arguments: CallCase("split", arguments),
    WRONG_DOCUMENTS | SURROGATE_TEXTS | DOCUMENTS,
    WRONG_PATTERNS | PATTERNS,
)

WRONG_CORPORA = [None, 1, 1.5, {"a": "b"}, MappingProxyType({"a": 1}), object, str]
COUNT_CALLS = st.builds(
    lambda *arguments: CallCase("count_pieces", arguments),
    interrupted(disturbed(st.lists(DOCUMENTS, max_size=4), WRONG_DOCUMENTS | SURROGATE_TEXTS))
    | st.sampled_from(WRONG_CORPORA),
    one_in(5, None, WRONG_PATTERNS | PATTERNS),
)


# Training

ARRAY_TYPES = [
    lambda row: np.array(row, dtype=np.uint8),
    lambda row: np.array(row, dtype=np.int32),
    lambda row: np.array(row, dtype=">u4"),
    lambda row: np.array([row, row], dtype=np.uint16).T[:, 0],
    lambda row: np.array(row, dtype=np.int64)[::-1],
    lambda row: np.array(row, dtype=np.uint64),
    lambda row: np.array(row, dtype=np.float64),
    lambda row: np.array(row, dtype=bool),
    lambda row: np.array(row, dtype=object),
    lambda row: np.array([row], dtype=np.uint32),
    lambda row: np.ma.array(row, dtype=np.int64, mask=[id == 1 for id in row]),
    lambda row: array("H", row),
    lambda row: array("i", row),
    lambda row: memoryview(array("L", row)),
    lambda row: memoryview(bytes(row)),
    bytes,
    bytearray,
]


def number_rows(highest):
    """Sequences of ids from 0 to `highest`, some of them wrong in one way or another."""
    number = st.integers(0, highest)
    good = st.lists(st.builds(applied, NUMBER_TYPES, number), max_size=40)
    wrong = st.sampled_from([*WRONG_NUMBERS, highest + 1, 255, 256])
    return st.one_of(
        interrupted(disturbed(good, wrong)),
        st.builds(applied, st.sampled_from(ARRAY_TYPES), st.lists(number, max_size=12)),
        st.builds(range, number),
        st.sampled_from([None, 1, "ab", "", b"", {}, {1: 2, 0: 5}, np.array(1), Index]),
    )


def wrong_alphabets(alphabet):
    entries = [None, b"", b"a", b"a", b"ab", "a", 1, bytearray(b"a"), np.bytes_(b"q")]
    return st.one_of(
        disturbed(st.just(alphabet), st.sampled_from(entries)),
        st.sampled_from([None, 1, "ab", b"ab", ()]),
    )


def wrong_weights(size):
    good = st.builds(applied, NUMBER_TYPES, st.integers(1, 100))
    any_one = good | st.sampled_from([*WRONG_NUMBERS, 0])
    return st.one_of(
        interrupted(st.lists(any_one, min_size=size, max_size=size)),
        interrupted(st.lists(good, max_size=size + 1)),
        st.sampled_from([1, "1" * size, b"1" * size, {}]),
    )


WRONG_TIE_BREAKS = st.sampled_from(["last", "Smallest", "", None, 1, b"first", ["first"]])


@st.composite
def training_calls(draw):
    """Mostly one argument is wrong. Sometimes several are, which tells what is checked first."""
    number_or_wrong = st.builds(applied, NUMBER_TYPES, st.integers(0, 3)) | st.sampled_from(
        [*WRONG_NUMBERS, 0]
    )
    alphabet = draw(st.sampled_from(STRINGS))
    rows = draw(sequences(alphabet))
    chosen = draw(weights(len(rows), 2**32))
    merges_wanted, minimum, tie_break = draw(st.integers(0, 4)), 1, "smallest"
    wrong = draw(
        st.sets(
            st.sampled_from(["alphabet", "rows", "weights", "merges", "minimum", "tie"]),
            min_size=1,
            max_size=draw(st.sampled_from([1, 1, 2, 3])),
        )
    )
    if "rows" in wrong:
        one = number_rows(len(alphabet) - 1)
        rows = draw(
            interrupted(disturbed(st.just(rows), one)) | st.sampled_from([None, 1, "ab", b"ab"])
        )
        chosen = None
    if "weights" in wrong:
        chosen = draw(wrong_weights(len(rows) if isinstance(rows, list) else 2))
    if "merges" in wrong:
        merges_wanted = draw(number_or_wrong)
    if "minimum" in wrong:
        minimum = draw(number_or_wrong)
    if "tie" in wrong:
        tie_break = draw(WRONG_TIE_BREAKS)
    if "alphabet" in wrong:
        alphabet = draw(wrong_alphabets(alphabet))
    name = draw(st.sampled_from(["train", "train_steps"]))
    return CallCase(name, (rows, chosen, alphabet, merges_wanted, minimum, tie_break))


@st.composite
def array_training_calls(draw):
    """Rows and weights in arrays, in which a symbol or a weight, or their number, may be wrong."""
    alphabet = draw(st.sampled_from(STRINGS))
    types = ["uint16", "uint32", "uint16", ">u4"] if len(alphabet) > 255 else ["uint8", "uint16"]
    symbols = st.integers(0, len(alphabet) - 1) | st.just(len(alphabet))
    rows = draw(st.lists(st.lists(symbols, max_size=5), max_size=5))
    type_of_weights = draw(st.sampled_from(["int64", "uint64", "int8", "uint16", ">i8", "float64"]))
    one = st.integers(1, 100)
    if draw(one_in(3, False, st.just(True))):
        one |= st.just(0)
    if type_of_weights[-1] == "8" and type_of_weights[0] == "i":
        one |= st.just(-1)
    if type_of_weights in ("int64", "uint64"):
        one |= st.sampled_from([2**31, 2**61, HIGHEST_COUNT, HIGHEST_COUNT // 2])
    if type_of_weights == "uint64":
        one |= st.sampled_from([2**63, 2**64 - 1])
    size = len(rows) + draw(st.sampled_from([0, 0, 0, 0, 1]))
    chosen = np.array(draw(st.lists(one, min_size=size, max_size=size)), type_of_weights)
    chosen = draw(st.sampled_from([chosen, chosen, chosen, chosen[::-1], chosen[:, None], None]))
    rows = rows_of(rows, draw(st.sampled_from(types)))
    return CallCase("train", (rows, chosen, alphabet, 3, 1, draw(TIE_BREAKS)))


# Counting and merging pairs, which take any objects for ids

OBJECTS = st.sampled_from([0, 1, 1, 2, 2, 255, *WRONG_NUMBERS])
OBJECT_ROWS = st.one_of(
    st.lists(st.integers(0, 2), max_size=30),
    st.lists(OBJECTS, max_size=8).map(tuple),
    st.binary(max_size=8),
    st.sampled_from(["abab", b"", None, 1, np.array([1, 2, 1, 2]), range(3)]),
)
COUNT_PAIRS_CALLS = st.builds(
    lambda *arguments: CallCase("count_pairs", arguments),
    interrupted(st.lists(OBJECT_ROWS, max_size=4)),
    interrupted(
        st.lists(
            st.sampled_from([1, 2, 0, -1, 2**31, 2**61, 2**62, HIGHEST_COUNT, 2**63, 2**70, True]),
            max_size=5,
        )
    ),
)
MERGE_PAIR_CALLS = st.builds(
    lambda *arguments: CallCase("merge_pair", arguments),
    OBJECT_ROWS,
    st.tuples(OBJECTS, OBJECTS)
    | st.sampled_from([[1, 1], (1,), (1, 1, 1), None, 1, "ab", b"\1\1", np.array([1, 1])]),
    OBJECTS | st.sampled_from([2**32, 2**63]),
)


# Encoding

HALVES = st.integers(0, 5)
ODD_HALVES = st.sampled_from([*WRONG_NUMBERS, 255, 256, 257])
WRONG_MERGES = st.one_of(
    st.tuples(HALVES, ODD_HALVES),
    st.tuples(ODD_HALVES, HALVES),
    st.sampled_from([(), (1,), (0, 0, 0), [0, 1], b"\0\1", 1, None, np.array([0, 1])]),
)
ENCODING_TABLE_CALLS = st.builds(
    lambda *arguments: CallCase("encoding_table", arguments),
    st.one_of(
        st.sampled_from([[b"a", b"b"], [None, b"b", b"a"], BYTES, GPT2_BYTES]),
        wrong_alphabets([b"x", b"y"]),
    ),
    st.one_of(
        interrupted(disturbed(st.lists(st.tuples(HALVES, HALVES), max_size=4), WRONG_MERGES)),
        st.sampled_from([None, 1, {}, {(0, 1): 2}, np.array([[0, 1], [1, 1]], dtype=np.uint32)]),
    ),
    one_in(5, None, WRONG_PATTERNS),
)


NUMBERS = st.builds(applied, NUMBER_TYPES, st.integers(0, 9))
UNIT_TABLE_CALLS = st.builds(
    lambda *arguments: CallCase("encoding_table", arguments),
    st.lists(
        st.sampled_from([None, b"a", b"a ", b"b", "é".encode(), b"ab", b" ", b"\xff", b"a  ", "a"]),
        max_size=5,
    ),
    st.lists(st.tuples(HALVES, HALVES), max_size=3),
    one_in(4, None, st.just(patterns.WORDS) | WRONG_PATTERNS),
    st.none() | interrupted(st.lists(NUMBERS | st.sampled_from(WRONG_NUMBERS), max_size=4)),
    st.sampled_from(["byte", "character", "word", "character", "word", "letter", None, 1]),
    evenly(st.just(0), st.none(), NUMBERS, st.sampled_from(WRONG_NUMBERS)),
)


@st.composite
def unit_encode_calls(draw):
    """Tables with numbers of odd types, which must be those of plain ones."""
    number = st.builds(applied, NUMBER_TYPES, st.integers(0, 9))
    table = ([b"a", b"b"], [(0, 1), (1, 0)], None, [draw(number), draw(number)], "byte")
    text = (draw(texts("ab")) + draw(st.sampled_from(["", "c"])),)
    return CallCase("encode", text, "encoding_table", (*table, draw(st.none() | number)))


# Special tokens

WRONG_SPELLINGS = st.sampled_from([b"", "a", "", 1, None, (b"a",), b"ok"])
SPECIALS = st.one_of(
    st.dictionaries(
        one_in(4, b"a", WRONG_SPELLINGS),
        one_in(2, 7, st.sampled_from(WRONG_NUMBERS) | NUMBERS),
        max_size=3,
    ),
    st.sampled_from([None, {}, [], (), 0, 1, "ab", [(b"a", 1)], [b"ab"], (b"a", 1)]),
)
CUT_CALLS = st.builds(
    lambda *arguments: CallCase("cut_special", arguments), texts("ab").map(str.encode), SPECIALS
)
WRONG_FLAGS = st.one_of(
    st.dictionaries(
        one_in(4, b"a", st.sampled_from([b"b", b"", "a", None, 1])),
        st.one_of(
            st.lists(st.sampled_from(["lstrip", "normalized", "LSTRIP", "", b"lstrip", None, 1])),
            st.sampled_from([("rstrip",), {"rstrip"}, {}, "rstrip", b"rstrip", None, 1]),
        ),
        max_size=2,
    ),
    st.sampled_from([None, {}, [], (), "lstrip", 1, {"lstrip"}]),
)
SPECIAL_TABLE_CALLS = st.builds(
    lambda *arguments: CallCase("special_table", arguments),
    evenly(st.just({b"a": 1}), SPECIALS),
    WRONG_FLAGS,
)
SPECIAL_COUNT_CALLS = st.builds(
    lambda *arguments: CallCase("count_pieces", arguments),
    st.lists(texts("ab") | WRONG_DOCUMENTS, max_size=3),
    one_in(3, None, WRONG_PATTERNS),
    SPECIALS,
)


@st.composite
def encode_calls(draw):
    """Texts with a byte that the alphabet lacks, somewhere in a piece of any length."""
    letters = draw(st.sampled_from(["ab", "abc ", "aé"]))
    alphabet = [bytes([byte]) for byte in sorted(set(letters.encode()))]
    merges = odd_merges(len(alphabet), draw(st.integers(0, 6)), draw(SEEDS))
    wrong = st.sampled_from(["", "x", "é", "b", "\x00", " ", "\ud800"])
    text = draw(st.builds("{}{}{}".format, texts(letters), wrong, texts(letters)) | WRONG_DOCUMENTS)
    return CallCase("encode", (text,), "encoding_table", (alphabet, merges, draw(PATTERNS)))


# Decoding

PIECES = st.sampled_from([b"a", b"b", b"", b"ab", b"\xff", "é".encode(), b"a" * 70, None])


@st.composite
def decode_calls(draw):
    pieces = draw(st.lists(PIECES, max_size=6) | st.just(BYTES))
    ids = draw(number_rows(max(len(pieces) - 1, 0)))
    unknown = draw(st.sampled_from([None, None, b"", b"<UNK>", "<UNK>", 0, bytearray(b"a")]))
    return CallCase("decode", (ids,), "decoding_table", (pieces, unknown))


WRONG_PIECES = st.sampled_from(["a", 1, bytearray(b"a"), b"ok", np.bytes_(b"ok"), [b"a"], True])
DECODING_TABLE_CALLS = st.builds(
    lambda entries: CallCase("decoding_table", (entries,)),
    st.one_of(
        interrupted(
            disturbed(st.lists(st.binary(max_size=3) | st.none(), max_size=5), WRONG_PIECES)
        ),
        st.sampled_from([None, 1, b"ab", "ab", ""]),
    ),
)

FAULTS = evenly(
    SPLIT_CALLS,
    COUNT_CALLS,
    COUNT_PAIRS_CALLS,
    MERGE_PAIR_CALLS,
    training_calls(),
    training_calls(),
    array_training_calls(),
    ENCODING_TABLE_CALLS,
    encode_calls(),
    UNIT_TABLE_CALLS,
    unit_encode_calls(),
    CUT_CALLS,
    SPECIAL_TABLE_CALLS,
    SPECIAL_COUNT_CALLS,
    decode_calls(),
    DECODING_TABLE_CALLS,
)
