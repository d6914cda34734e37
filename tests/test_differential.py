"""The compiled engine against the reference: equal results and equal exceptions."""

import sysconfig
from pathlib import Path
from random import Random

import pytest

from cases import CallCase, Options, TextCase, TrainingCase
from differential import CALLS, CORPORA, compare, compare_calls, compare_corpora
from strategies import BYTES, GPT2_BYTES, noise
from tokbpe import fast, patterns

@pytest.mark.parametrize("examples", [pytest.param(400, marks=pytest.mark.core), CORPORA])
def test_random_corpora(examples):
    compare_corpora(fast, examples)


@pytest.mark.parametrize("examples", [pytest.param(400, marks=pytest.mark.core), CALLS])
def test_random_calls(examples):
    compare_calls(fast, examples)


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
