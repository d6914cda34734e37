"""Counting pieces and pairs, and merging a pair: what both engines give, and the compiled ones
held against the reference."""

import itertools
import sys
import time
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alarms import Stopped, alarm, needs_alarms
from cases import CallCase, Generated, Raised, attempt
from differential import compare
from strategies import CORPORA, PATTERNS
from tokbpe import fast, patterns, reference
from tokbpe.fast.piece_table import SLICE_SIZE

HIGHEST_COUNT = 2**63 - 1


def agree(function, *arguments):
    compare(CallCase(function, arguments), fast)


# Pieces


@pytest.mark.core
@given(CORPORA, PATTERNS)
def test_random_pieces(corpus, pattern):
    agree("count_pieces", corpus, pattern)


@pytest.mark.core
def test_pieces(engine):
    assert engine.count_pieces(["low lower", "low"], "gpt2") == {b"low": 2, b" lower": 1}
    words = engine.count_pieces(["low", "low lower", "newest\nwidest"], patterns.WORDS)
    assert words == {b"low": 2, b"lower": 1, b"newest": 1, b"widest": 1}
    assert engine.count_pieces([b"a\xff\xfeb", b"\xff\xfe"], "gpt2") == {
        b"a": 1,
        b"\xff\xfe": 2,
        b"b": 1,
    }
    assert engine.count_pieces(["ab", "", b"ab", bytearray(b"b")]) == {b"ab": 2, b"b": 1}


@pytest.mark.core
def test_order_is_that_of_first_appearance(engine):
    counts = engine.count_pieces(["c b a", "d a c"], patterns.WORDS)
    assert list(counts.items()) == [(b"c", 2), (b"b", 1), (b"a", 2), (b"d", 1)]


@pytest.mark.core
def test_text_is_one_document(engine):
    for corpus in ["ab", b"ab", bytearray(b"ab"), memoryview(b"ab"), ["ab"]]:
        assert engine.count_pieces(corpus) == {b"ab": 1}
    for corpus in ["", [], [""], [b"", ""], iter([])]:
        assert engine.count_pieces(corpus) == {}


@pytest.mark.core
def test_pieces_of_all_sizes():
    """Sizes around those at which the hash reads in another way; they differ in one byte."""
    pieces = []
    for size in range(1, 40):
        for place in range(size):
            for byte in b"\x00b":
                pieces.append(b"a" * place + bytes([byte]) + b"a" * (size - place - 1))
    pieces = pieces * 2 + pieces[::3]
    counts = fast.count_pieces(pieces)
    assert list(counts.items()) == list(Counter(pieces).items())


@pytest.mark.core
@pytest.mark.parametrize("size", [510, 511, 512, 513, 100_000])
def test_many_pieces(size):
    """The table of slots is doubled for the 512th piece, and many times more."""
    numbers = [*range(size), *range(0, size, 7)]
    counts = fast.count_pieces(" ".join(map(str, numbers)), patterns.WORDS)
    assert list(counts.items()) == list(Counter(b"%d" % number for number in numbers).items())


def forged(words):
    """Words of eight bytes, and one more that gives all such pieces the same hash."""
    factor = 0x9E3779B97F4A7C15
    hash = 8 * (len(words) + 1) * factor
    for word in words:
        hash = (hash ^ word) * factor % 2**64
        hash ^= hash >> 32
    return [*words, hash % 2**64]


@pytest.mark.core
def test_equal_hashes(engine):
    """They are told apart by bytes and size; one of these begins as another."""
    pieces = [
        b"".join(word.to_bytes(8, sys.byteorder) for word in words)
        for words in [forged([1]), forged([2]), forged(forged([1])), forged([3, 4, 5])]
    ]
    for order in itertools.permutations(pieces):
        assert engine.count_pieces(order * 2) == dict.fromkeys(order, 2)


@pytest.mark.parametrize("shift", range(6))
@pytest.mark.parametrize("end", [b"", b"\xff", b"\xe4\xb8", b" x"])
def test_slices(shift, end):
    """A long document is read in slices, which cut neither characters nor pieces."""
    for character in "aé中\U00010437":  # letters
        unit = character.encode()
        text = b"x" * shift + unit * (SLICE_SIZE // len(unit))
        counts = fast.count_pieces(text + end + b"\n", "gpt2")
        assert counts == dict.fromkeys([text, *([end] if end else []), b"\n"], 1)


def test_slices_of_many_pieces():
    document = "naïve \n".encode() * (SLICE_SIZE // 4) + b"\xff"
    counts = fast.count_pieces(document, patterns.WORDS)
    assert counts == {"naïve".encode(): SLICE_SIZE // 4, b"\xff": 1}


class Odd(str):
    """A `str` that is not encoded as others are."""

    def encode(self, *arguments):
        return b"odd one"


@pytest.mark.core
def test_documents_of_other_types():
    agree("count_pieces", [Odd("text"), np.bytes_(b"a b"), np.str_("a c")], "gpt2")


BAD_CORPORA = [
    None,
    1,
    {"a": 1},
    [None],
    ["a", "b", 1],
    ["a", ["b"]],
    "a\ud83d",
    ["a", "b\udc80"],
    Generated(["a", "b"], KeyError("the source")),
    Generated([], ZeroDivisionError()),
]


@pytest.mark.core
@pytest.mark.parametrize("corpus", BAD_CORPORA, ids=repr)
@pytest.mark.parametrize("pattern", [None, "gpt2", "[ab]"])
def test_bad_corpora(corpus, pattern):
    arguments = corpus.generator() if isinstance(corpus, Generated) else corpus
    assert isinstance(attempt(reference.count_pieces, arguments, pattern), Raised)
    agree("count_pieces", corpus, pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", ["gpt5", "a*", "[", 1])
def test_bad_patterns(pattern):
    for corpus in ["a", ["a"], ["a", 1], [1], []]:
        agree("count_pieces", corpus, pattern)


@pytest.mark.core
def test_errors_name_the_document(engine):
    with pytest.raises(TypeError, match="document 2 must be str or bytes, not int"):
        engine.count_pieces(["a", "b", 3])
    with pytest.raises(UnicodeEncodeError, match=r"position 1: .* \(document 1\)"):
        engine.count_pieces(["a", "b\ud83d"])
    error = OSError("gone")
    with pytest.raises(OSError) as caught:
        engine.count_pieces(Generated(["a"], error).generator())
    assert caught.value is error


@needs_alarms
def test_interrupt():
    """Ctrl-C ends the counting of one long document."""
    document = b"\xce\xb1 " * 30_000_000
    start = time.process_time()
    fast.count_pieces(document[: len(document) // 8], "gpt2")
    whole = 8 * (time.process_time() - start)
    start = time.process_time()
    with pytest.raises(Stopped), alarm(whole / 8, of_cpu=True):
        fast.count_pieces(document, "gpt2")
    assert time.process_time() - start < whole / 2


# Pairs

IDS = st.integers(0, 3) | st.sampled_from([255, 256, 2**31, 2**32 - 2, 2**32 - 1, 2**32, -1, 2**70])
ODD = st.sampled_from([True, False, 1.0, 2.5, "a", None, (1,), np.uint8(1), np.int64(2)])
PLAIN_ROWS = st.one_of(
    st.lists(st.integers(0, 3), max_size=12),
    st.lists(st.integers(0, 2**32 - 2), max_size=6),
    st.lists(st.integers(0, 2), max_size=9).map(tuple),
    st.binary(max_size=8),
)
OTHER_ROWS = st.one_of(
    st.lists(IDS, max_size=8),
    st.lists(IDS | ODD, max_size=8),
    st.text("ab", max_size=5),
    st.builds(range, st.integers(0, 4)),
    st.lists(st.integers(0, 3), max_size=5).map(lambda row: np.array(row, dtype=np.uint32)),
    st.sampled_from([None, 1, {1, 2}, bytearray(b"aab"), memoryview(b"aab"), Generated([1, 2])]),
)
WEIGHTS = st.one_of(
    st.integers(0, 3),
    st.sampled_from(
        [2**31, 2**32 + 1, 2**62, HIGHEST_COUNT, 2**63, 2**70, -1, True, 2.5, "a", None]
    ),
)


@pytest.mark.core
@given(
    st.lists(PLAIN_ROWS | PLAIN_ROWS | OTHER_ROWS, max_size=6),
    st.lists(st.integers(1, 3) | WEIGHTS, max_size=7),
)
def test_random_pairs(rows, weights):
    agree("count_pairs", rows, weights)


@pytest.mark.core
@given(
    st.lists(PLAIN_ROWS, min_size=1, max_size=6),
    st.sampled_from([1, 2, 2**32, 2**61, 2**62, HIGHEST_COUNT]),
)
def test_random_plain_pairs(rows, weight):
    agree("count_pairs", rows, [weight] * len(rows))


@pytest.mark.core
def test_pairs(engine):
    assert engine.count_pairs([[1, 1, 1, 2], [1, 2]], [1, 5]) == {(1, 1): 2, (1, 2): 6}
    assert engine.count_pairs([b"aaa"], [2**32 + 1]) == {(97, 97): 2**33 + 2}
    assert engine.count_pairs([[1, 2], [1, 2]], [HIGHEST_COUNT, 5]) == {(1, 2): HIGHEST_COUNT + 5}
    assert engine.count_pairs([[1, 2], [3]], itertools.repeat(7)) == {(1, 2): 7}
    assert engine.count_pairs([], []) == engine.count_pairs([[], [1]], [1, 1]) == {}


@pytest.mark.core
def test_pairs_that_are_hardly_ids(engine):
    """What a table of 64 bits cannot hold is counted all the same."""
    for id in [2**32 - 2, 2**32 - 1, 2**32, 2**64, -1]:
        assert engine.count_pairs([[id, id, id]], [1]) == {(id, id): 2}
    for weight in [HIGHEST_COUNT, 2**63, -1, -(2**62), -(2**63)]:
        assert engine.count_pairs([[1, 1, 1], [1, 1]], [weight] * 2) == {(1, 1): 3 * weight}


@pytest.mark.core
def test_pairs_in_the_order_met(engine):
    counts = engine.count_pairs([[3, 1, 2], [9, 8, 3, 1]], [1, 1])
    assert list(counts) == [(3, 1), (1, 2), (9, 8), (8, 3)]


@pytest.mark.core
def test_many_pairs():
    """More than the table and the rows have room for at first."""
    rows = [Random(seed).choices(range(400), k=size) for seed, size in enumerate([5, 30_000, 900])]
    agree("count_pairs", rows, [1, 2**40, 3])


@pytest.mark.core
@pytest.mark.parametrize(
    "arguments",
    [
        (None, [1]),
        ([[1, 2]], None),
        (5, 5),
        ([[1, 2], None], [1, 1]),
        ([[1, 2], [[], []]], [1, 1]),
        ([[1, 2], [1, 2]], [1, "a"]),
        (Generated([[1, 2]], KeyError("rows")), [1, 1, 1]),
        ([[1, 2], [1, 2]], Generated([1], KeyError("weights"))),
        (Generated([[[], []]], KeyError("rows")), [1, 1]),
    ],
)
def test_bad_pairs(arguments):
    agree("count_pairs", *arguments)


# Merging


@pytest.mark.core
@given(
    PLAIN_ROWS | OTHER_ROWS,
    st.one_of(
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
        st.tuples(IDS | ODD, IDS | ODD),
        st.sampled_from([None, 1, (), (1,), (1, 1, 1), [1, 1], b"ab", "ab", np.array([1, 1])]),
    ),
    IDS | ODD,
)
def test_random_merges(row, pair, new_id):
    agree("merge_pair", row, pair, new_id)


@pytest.mark.core
def test_merges(engine):
    assert engine.merge_pair([1, 1, 1, 2], (1, 1), 3) == [3, 1, 2]
    assert engine.merge_pair([1, 1, 1, 1], (1, 1), 3) == [3, 3]
    assert engine.merge_pair(b"abab", (97, 98), 256) == [256, 256]
    assert engine.merge_pair((1, 2, 1), (1, 2), 2**40) == [2**40, 1]
    assert engine.merge_pair([2, 1], (1, 2), 3) == [2, 1]
    assert engine.merge_pair([], (1, 2), 3) == []


@pytest.mark.core
def test_merges_of_what_are_hardly_ids(engine):
    assert engine.merge_pair([5, 1], (-1, 5), 7) == [5, 1]
    assert engine.merge_pair([-1, 5], (-1, 5), 7) == [7]
    assert engine.merge_pair([1, -1], (1, 2**70), 7) == [1, -1]
    assert engine.merge_pair([1, 2**70], (1, 2**70), -1) == [-1]
    assert engine.merge_pair([1, 2, 2], (1, 2), 1) == [1]


@pytest.mark.core
def test_arguments_are_left_alone(engine):
    row = [1, 2, 1, 2]
    merged = engine.merge_pair(row, (5, 6), 7)
    assert merged == row and merged is not row
    engine.merge_pair(row, (1, 2), 3)
    engine.count_pairs([row], [1])
    assert row == [1, 2, 1, 2]
