"""Bounds of training and decoding: exact, off by default, and named when they are passed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import PieceCounts, Tokenizer, bounds
from tokbpe.rows import Rows

pytestmark = pytest.mark.core

TEXT = "low lower lowest newest widest " * 9


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


def trained(method, **options):
    size = {"bpe": 270, "word": 25}[method]
    return Tokenizer(TEXT, method=method, vocabulary_size=size, **options)


@pytest.mark.parametrize("method", ["bpe", "word"])
def test_merge_work_is_bounded(method):
    free = trained(method)
    work = int(free.merge_counts.sum())
    assert trained(method, max_merge_work=work) == free
    last = int(free.merge_counts[-1])
    message = f"with merge {len(free.merges)}, {work} pairs are merged, more than max_merge_work="
    for most in (work - 1, work - last):
        with pytest.raises(ValueError, match=f"{message}{most}"):
            trained(method, max_merge_work=most)
    with pytest.raises(ValueError, match="with merge 1, "):
        trained(method, max_merge_work=1)


def test_pair_types_are_bounded():
    types = len({*itertools.pairwise(TEXT)})
    free = trained("bpe")
    assert trained("bpe", max_pair_types=types) == free
    message = f"the corpus has more than max_pair_types={types - 1} different pairs of neighbors"
    with pytest.raises(ValueError, match=message):
        trained("bpe", max_pair_types=types - 1)
    # Pairs across words are none.
    assert Tokenizer(["ab cb"], method="word", max_pair_types=2).vocab_size > 2
    with pytest.raises(ValueError, match="max_pair_types=1 "):
        Tokenizer(["ab cb"], method="word", max_pair_types=1)


@given(
    rows=st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=8),
    as_array=st.booleans(),
    together=st.integers(1, 9),
)
def test_pair_types_are_those_inside_of_sequences(rows, as_array, together):
    expected = {pair for row in rows for pair in itertools.pairwise(row)}
    sequences = rows
    if as_array:
        symbols = np.array([symbol for row in rows for symbol in row], np.uint8)
        sequences = Rows(symbols, np.cumsum([len(row) for row in rows], dtype=np.uint64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "SYMBOLS", together)
        found = np.concatenate([np.empty(0, np.uint64), *bounds.pairs_in(sequences)]).tolist()
        assert {(key >> 32, key & 0xFFFFFFFF) for key in found} == expected
        assert len(found) == sum(max(len(row) - 1, 0) for row in rows)
        bounds.check_pair_types(sequences, max(len(expected), 1))
        if len(expected) > 1:
            with pytest.raises(ValueError, match=f"max_pair_types={len(expected) - 1} "):
                bounds.check_pair_types(sequences, len(expected) - 1)


def test_every_way_to_train_has_the_bounds():
    counts = PieceCounts()
    counts.add(TEXT)
    begun = Tokenizer("ab" * 9, method="bpe", vocabulary_size=257)
    ways = {
        "steps": lambda **bound: list(Tokenizer.train_steps(TEXT, vocabulary_size=270, **bound)),
        "counts": lambda **bound: Tokenizer.from_counts(counts, vocabulary_size=270, **bound),
        "extended": lambda **bound: begun.extended(TEXT, 270, **bound),
    }
    for way in ways.values():
        free = way()
        assert way(max_merge_work=10**6, max_pair_types=10**6) == free
        for name in ("max_merge_work", "max_pair_types"):
            with pytest.raises(ValueError, match=f"more than {name}=3"):
                way(**{name: 3})


def test_progress_and_interrupts_are_those_of_a_training_without_bounds():
    told = []
    trained("bpe", max_merge_work=10**6, progress=lambda *numbers: told.append(numbers))
    assert told[-1] == (14, 14)

    def interrupting(done, wanted):
        if wanted == 14 and done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained("bpe", max_merge_work=10**6, progress=interrupting)
    with pytest.warns(UserWarning, match="the training was interrupted"):
        kept = trained("bpe", max_merge_work=10**6, progress=interrupting, on_interrupt="keep")
    assert kept.merges.tolist() == trained("bpe").merges[:5].tolist()


@pytest.mark.parametrize("name", ["max_merge_work", "max_pair_types"])
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (True, TypeError), (1.5, TypeError)])
def test_what_is_no_bound_of_a_training(name, value, error):
    with pytest.raises(error, match=f"{name} must be "):
        trained("bpe", **{name: value})


# Decoding


@pytest.fixture
def tokenizer():
    return Tokenizer(
        TEXT,
        method="bpe",
        vocabulary_size=270,
        pattern="gpt2",
        special_tokens=["<e>"],
        reserved=["EOS"],
    )


def test_decoded_bytes_are_bounded(tokenizer):
    text = "low Grüße 🐈<e>"
    ids = tokenizer.encode(text, allowed_special="all")
    size = len(text.encode())
    for same in (ids, iter(ids), np.array(ids)):
        assert tokenizer.decode(same, max_bytes=size) == text
    message = f"with id {ids[-1]} at position {len(ids) - 1} there are {size} bytes, more than max"
    for decode in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(ValueError, match=f"{message}_bytes={size - 1}"):
            decode(ids, max_bytes=size - 1)
        assert len(decode(ids, skip_special=True, max_bytes=size - 3)) <= size - 3
    assert tokenizer.decode_batch([ids, ids], max_bytes=size) == [text, text]
    with pytest.raises(ValueError, match=f"row 1: with id .* more than max_bytes={size}"):
        tokenizer.decode_batch([ids, ids + ids], max_bytes=size)
    assert tokenizer.decode([], max_bytes=0) == ""


def test_what_is_shown_for_a_reserved_id_counts(tokenizer):
    ids = [tokenizer.eos_id] * 2
    assert tokenizer.decode(ids, max_bytes=14) == "<|EOS|>" * 2
    with pytest.raises(ValueError, match="there are 14 bytes, more than max_bytes=13"):
        tokenizer.decode(ids, max_bytes=13)
    assert tokenizer.decode_bytes(ids, max_bytes=0) == b""
    assert tokenizer.decode(ids, skip_special=True, max_bytes=0) == ""


@pytest.mark.parametrize("ids", [[270], [-1], [1.5], [True], ["a"], [[1]], "ab", 5, None])
def test_what_is_no_id_is_the_same_error_with_a_bound(tokenizer, ids):
    errors = []
    for most in (None, 100):
        with pytest.raises((ValueError, TypeError)) as raised:
            tokenizer.decode(ids, max_bytes=most)
        errors.append((type(raised.value), str(raised.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), (True, TypeError), (1.5, TypeError)]
)
def test_what_is_no_bound_of_decoding(tokenizer, value, error):
    with pytest.raises(error, match="max_bytes must be "):
        tokenizer.decode([1], max_bytes=value)


def test_ids_that_are_none_count_as_what_they_read_as():
    tokenizer = Tokenizer("low", method="char")
    assert tokenizer.decode([1, 99], max_bytes=6) == "l<UNK>"
    with pytest.raises(ValueError, match="with id 99 at position 1 there are 6 bytes"):
        tokenizer.decode([1, 99], max_bytes=5)
