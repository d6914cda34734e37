"""Reading pieces: the compiled readers against their twins, and what is refused.

What a real file holds is tested where it is loaded.
"""

import base64
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import attempt
from tokbpe import fast, ranks, reference
from tokbpe.fast.encode import WARM_TEXT_SIZE
from tokbpe.vocabulary import Vocabulary

pytestmark = pytest.mark.core

BYTES = [bytes([byte]) for byte in range(256)]


def lines(pieces):
    return [b"%s %d" % (base64.b64encode(piece), rank) for rank, piece in enumerate(pieces)]


GOOD = lines([*BYTES, b"ab", b"abc", "é".encode(), b"\0\xff\0"])


def both(data):
    """What both readers give, which must be the same."""
    results = [attempt(engine.read_ranks, data) for engine in (fast, reference)]
    assert repr(results[0]) == repr(results[1])
    return results[0]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\n"])
def test_a_file(end):
    pieces = both(b"\n".join(GOOD) + end)
    assert isinstance(pieces, ranks.Pieces)
    assert pieces == (*BYTES, b"ab", b"abc", "é".encode(), b"\0\xff\0")


def test_other_orders_line_ends_and_gaps():
    shuffled = Random(0).sample(GOOD, len(GOOD))
    assert both(b"\n".join(shuffled)) == both(b"\r\n".join(GOOD))
    assert both(b"\n".join([*GOOD, b"YWJjZA== 300"]))[259:] == (b"\0\xff\0", *[None] * 40, b"abcd")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"YWJj", "line 3 must be base64, a space and a rank, not b'YWJj'"),
        (b"YWJj ", "line 3 must be"),
        (b" 700", "line 3 must be"),
        (b"YWJj x", "line 3 must be"),
        (b"YWJj -1", "line 3 must be"),
        (b"YWJj 1.5", "line 3 must be"),
        (b"YWJj  700", "line 3 must be"),
        (b"YWJj 700 ", "line 3 must be"),
        (b"YWJj\t700", "line 3 must be"),
        (b"YW!j 700", "line 3 must be"),
        (b"YWJ 700", "line 3 must be"),
        (b"YWJjZB== 700", "line 3 must be"),  # of bits that mean nothing
        (b"YW=j 700", "line 3 must be"),
        (b"==== 700", "line 3 must be"),
        (b"YWJjZA== 99999999999999999999", "line 3 must be"),
        (b"YWJjZA== 4294967295", "line 3 has the rank 4294967295, which is above 16777215"),
        (b"YWJjZA== 16777216", "line 3 has the rank 16777216, which is above"),
        (b"YWJjZA== 1", "lines 2 and 3 both have the rank 1"),
        (b"YWJj 700", "lines 3 and 259 both hold b'abc'"),
    ],
)
def test_a_wrong_line(line, message):
    raised = both(b"\n".join([*GOOD[:2], line, *GOOD[2:]]))
    assert raised.type is ValueError and message in raised.text


def test_a_missing_byte():
    raised = both(b"\n".join(GOOD[:65] + GOOD[66:]))
    assert raised.type is ValueError
    assert raised.text == "the single byte 0x41 has no rank; 1 have none"
    assert "the single byte 0x00 has no rank; 256 have none" in both(b"").text


@given(st.data())
def test_any_damage(data):
    """A byte changed, left out or put in, a line moved: both engines say the same."""
    text = bytearray(b"\n".join(GOOD) + b"\n")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        end = place + data.draw(st.integers(0, 2))
        text[place:end] = data.draw(st.sampled_from([b"", b"A", b"=", b" ", b"\n", b"9", b"\xff"]))
    both(bytes(text))


@given(st.lists(st.binary(max_size=3), max_size=8), st.lists(st.integers(-1, 3), max_size=8))
def test_cutting_a_blob(pieces, sizes):
    blob = b"".join(pieces)
    for tried in ([len(piece) for piece in pieces], sizes):
        for given_sizes in (tried, np.array(tried, np.int32)):
            results = [
                attempt(engine.cut_pieces, blob, given_sizes) for engine in (fast, reference)
            ]
            assert repr(results[0]) == repr(results[1])


def test_pairs_are_listed_when_some_text_has_come():
    pieces = both(b"\n".join(lines([*BYTES, b"ab", b"aba", b"bab", b"abab", b"ba", b"bb", b"bbb"])))
    nothing = np.empty((0, 2), np.uint32)
    arguments = (pieces, nothing, None, None, "byte", None, "rank_by_piece")
    table, slow = fast.encoding_table(*arguments), reference.encoding_table(*arguments)
    texts = ["".join(Random(seed).choices("abx", k=50)) for seed in range(200)]
    before = [fast.encode(text, table) for text in texts]
    assert before == [reference.encode(text, slow) for text in texts]
    # More than that at once, then more by and by.
    assert fast.count("x" * WARM_TEXT_SIZE, table) == WARM_TEXT_SIZE
    assert before == [fast.encode(text, table) for text in texts]


def test_pieces_are_not_looked_at_again():
    """A vocabulary trusts what a reader has checked, and checks what anyone else gives."""
    twice = (*BYTES, b"ab", b"ab")
    with pytest.raises(ValueError, match="the alphabet holds b'ab' twice"):
        Vocabulary("bpe", twice)
    with pytest.raises(ValueError, match="the alphabet holds b'ab' twice"):
        Vocabulary("bpe", (*both(b"\n".join(GOOD)), b"ab"))
