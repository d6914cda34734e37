"""The compiled engine against the reference: equal results and equal exceptions."""

import sysconfig
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cases import CallCase, Options, TextCase, TrainingCase
from differential import KINDS, compare, compare_random
from strategies import BYTES, GPT2_BYTES, noise
from tokbpe import fast, patterns


@pytest.mark.parametrize("kind", KINDS)
def test_random_cases(kind):
    compare_random(kind, fast)


@pytest.mark.core
@pytest.mark.parametrize("kind", KINDS)
def test_some_random_cases(kind):
    compare_random(kind, fast, examples=100)


# Larger than what hypothesis makes: beyond the sizes to which tables and blocks of memory grow.


def standard_library(size):
    """Source text that comes with every Python."""
    folder = Path(sysconfig.get_path("stdlib"))
    names = ["argparse", "ast", "inspect", "locale", "tarfile", "typing"]
    return "\n".join((folder / f"{name}.py").read_text("utf-8") for name in names)[:size]


@pytest.mark.parametrize(
    ("pattern", "tie_break"),
    [
        ("gpt2", "greatest"),
        ("cl100k", "first"),
        ("o200k", "smallest"),
        (patterns.WORDS, "first"),
        (r"\w+|\W", "greatest"),
    ],
)
def test_real_text(pattern, tie_break):
    text = standard_library(40_000)
    compare(
        TextCase(
            corpus=[text[:30_000], text[30_000:]],
            documents=[text],
            pattern=pattern,
            alphabet=BYTES,
            weight_factor=2**33,
            options=Options(300, 1, tie_break),
            texts=[],
            recipe=list(range(-100, 0)),
            ids=list(range(256, 556)),
        ),
        fast,
    )


@pytest.mark.parametrize("tie_break", ["smallest", "first", "greatest"])
@pytest.mark.parametrize("letters", ["a", "ab", "abcdefgh"])
def test_long_sequences(letters, tie_break):
    """More occurrences than a block of memory holds."""
    rows = [noise(letters, seed, length).encode() for seed, length in enumerate([150_000, 40_000])]
    compare(TrainingCase(rows, [1, 2**40], BYTES, Options(6, 1, tie_break)), fast)


@pytest.mark.parametrize("tie_break", ["smallest", "first", "greatest"])
def test_many_pairs(tie_break):
    """More kinds of pairs than the table has room for at first, several times over."""
    row = Random(1).choices(range(256), k=20_000)
    compare(TrainingCase([row], None, GPT2_BYTES, Options(40, 1, tie_break)), fast)


@pytest.mark.parametrize("gaps", [2**8 - 3, 2**16 - 3])
def test_ids_that_need_more_bytes(gaps):
    """Merges on both sides of the ids at which a narrower type would be full."""
    alphabet = [None] * gaps + [b"b", b"a"]
    row = [gaps + ord(letter) % 2 for letter in noise("ab", 5, 500)]
    compare(TrainingCase([row], None, alphabet, Options(20)), fast)


def test_thousands_of_merges():
    """An encoding table that has grown, for short pieces and long ones."""
    text = standard_library(60_000)
    merges, _ = fast.train([text.encode()], None, BYTES, 3_000, 1)
    assert len(merges) == 3_000
    for pattern in ["gpt2", None]:
        case = CallCase("encode", (text[:3_000],), "encoding_table", (BYTES, merges, pattern))
        compare(case, fast)


# Longer than a slice, after which the compiled engine looks for signals: a million bytes or ids,
# two million symbols in training.


@pytest.mark.parametrize("length", [1_999_997, 1_999_998, 1_999_999])
def test_training_beyond_a_slice(length):
    rows = [noise("abcd", 3, length).encode(), noise("abcd", 4, 1_000).encode()]
    compare(CallCase("train", (rows, [1, 2**33], BYTES, 2)), fast)


def test_encoding_beyond_a_slice():
    text = noise("abc ", 5, 1_050_000)
    table = BYTES, [(97, 98), (256, 99), (32, 97)], "gpt2"
    compare(CallCase("encode", (text,), "encoding_table", table), fast)
    alphabet = [b"a", b"b", b"c", b" "]
    wrong = text + "x"
    compare(CallCase("encode", (wrong,), "encoding_table", (alphabet, [(0, 1)], "gpt2")), fast)


@pytest.mark.parametrize("form", [list, np.array])
@pytest.mark.parametrize("last", [0, 1, 2, -1])
def test_decoding_beyond_a_slice(form, last):
    ids = form([0, 2] * 500_010 + [last])
    compare(CallCase("decode", (ids,), "decoding_table", ([b"a", None, b"bc"],)), fast)
