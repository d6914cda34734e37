"""Merges and ids are those of independent trainers, where these are installed.

Both follow the rule "smallest". To Hugging Face's trainer the bytes stand in the order of their
printable characters, to rustbpe in their own.
"""

import json
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import limits_of, vocabulary
from strategies import BYTES, GPT2_BYTES, PATTERN_TEXTS, lists, texts
from tokbpe import fast, patterns, reference

ENGINES = pytest.mark.parametrize("engine", [reference, fast], ids=["reference", "fast"])

# Patterns that match all text, with nothing in them that the regex engines read differently.
PATTERNS = ["gpt2", "llama3", "qwen2", r"[\s\S]+"]
DOCUMENTS = st.sampled_from(["ab", "abc", "abcd ", "aé ", "ab'\n"]).flatmap(texts) | PATTERN_TEXTS
CORPORA = lists(DOCUMENTS, 1, 5).filter(any)
MERGES_WANTED = st.integers(1, 40)


def expression(pattern):
    return patterns.get(pattern).sources[0]


def trained(engine, documents, pattern, alphabet, merges_wanted, minimum):
    """Merges as pairs of ids, and the encoding table."""
    counts = engine.count_pieces(documents, pattern)
    rows = [[alphabet.index(bytes([byte])) for byte in piece] for piece in counts]
    merges, _ = engine.train(rows, list(counts.values()), alphabet, merges_wanted, minimum)
    return [tuple(map(int, pair)) for pair in merges], engine.encoding_table(
        alphabet, merges, pattern
    )


def hugging_face(documents, pattern, merges_wanted, minimum):
    """A trained tokenizer of Hugging Face and its merges, as pairs of ids."""
    tokenizers = pytest.importorskip("tokenizers")
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression(pattern)), "isolated")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, byte_level])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + merges_wanted,
        min_frequency=minimum,
        initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(model["vocab"][half] for half in merge) for merge in model["merges"]]
    return tokenizer, merges


def rust(documents, pattern, merges_wanted):
    """A trained tokenizer of rustbpe and its learned pieces."""
    rustbpe = pytest.importorskip("rustbpe")
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(
        iter(documents), vocab_size=256 + merges_wanted, pattern=expression(pattern)
    )
    return tokenizer, [bytes(piece) for piece, _ in tokenizer.get_mergeable_ranks()][256:]


def agrees_with_hugging_face(engine, documents, pattern, merges_wanted, minimum):
    tokenizer, expected = hugging_face(documents, pattern, merges_wanted, minimum)
    merges, table = trained(engine, documents, pattern, GPT2_BYTES, merges_wanted, minimum)
    assert merges == expected
    for document in documents:
        assert engine.encode(document, table) == tokenizer.encode(document).ids


def agrees_with_rustbpe(engine, documents, pattern, merges_wanted):
    tokenizer, expected = rust(documents, pattern, merges_wanted)
    merges, table = trained(engine, documents, pattern, BYTES, merges_wanted, 1)
    assert vocabulary(BYTES, merges)[256:] == expected
    for document in documents:
        assert engine.encode(document, table) == tokenizer.encode(document)


@ENGINES
@given(
    documents=CORPORA,
    pattern=st.sampled_from(PATTERNS),
    merges_wanted=MERGES_WANTED,
    minimum=st.integers(1, 4),
)
def test_hugging_face(engine, documents, pattern, merges_wanted, minimum):
    agrees_with_hugging_face(engine, documents, pattern, merges_wanted, minimum)


@ENGINES
@given(documents=CORPORA, pattern=st.sampled_from(PATTERNS), merges_wanted=MERGES_WANTED)
def test_rustbpe(engine, documents, pattern, merges_wanted):
    agrees_with_rustbpe(engine, documents, pattern, merges_wanted)


# The reference would take a minute for these.


@pytest.fixture(params=["en", "de", "ru", "zh", "hi", "c"])
def real_text(request, data):
    text = (data / "corpora" / f"{request.param}.txt").read_bytes()[:100_000]
    return text.decode("utf-8", "ignore").splitlines(keepends=True)


@pytest.mark.parametrize("pattern", ["gpt2", "llama3"])
def test_hugging_face_on_real_text(real_text, pattern):
    agrees_with_hugging_face(fast, real_text, pattern, 3_000, 2)


@pytest.mark.parametrize("pattern", ["gpt2", "llama3"])
def test_rustbpe_on_real_text(real_text, pattern):
    agrees_with_rustbpe(fast, real_text, pattern, 3_000)


@pytest.fixture
def megabyte(data):
    """Languages and code: more than one generation of pairs, and thousands of tokens."""
    names = ["en", "en", "de", "ja", "hi", "c", "py"]
    parts = [(data / "corpora" / f"{name}.txt").read_bytes() for name in names]
    return [part[i * 150_000 :][:150_000].decode("utf-8", "ignore") for i, part in enumerate(parts)]


LIMITS = [
    {},
    {"factor": 2, "narrow_tokens": 1_000, "dense_tokens": 500, "thread_cells": 50_000},
]


@pytest.mark.parametrize("limits", LIMITS, ids=["as it is", "at small sizes"])
def test_rustbpe_on_a_megabyte(megabyte, limits):
    _, expected = rust(megabyte, "gpt2", 8_000)
    with mock.patch.dict(limits_of(fast), limits):
        merges, _ = trained(fast, megabyte, "gpt2", BYTES, 8_000, 1)
    assert vocabulary(BYTES, merges)[256:] == expected


@pytest.mark.parametrize("limits", LIMITS, ids=["as it is", "at small sizes"])
def test_hugging_face_on_a_megabyte(megabyte, limits):
    _, expected = hugging_face(megabyte, "gpt2", 8_000, 2)
    with mock.patch.dict(limits_of(fast), limits):
        merges, _ = trained(fast, megabyte, "gpt2", GPT2_BYTES, 8_000, 2)
    assert merges == expected
