"""Measures of tokenizers and models."""

import math

import numpy as np
import pytest

from tokbpe import StreamedCorpus, Tokenizer, metrics
from tokbpe.metrics import Measure, bits_per_byte, measure, measures, token_bytes


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(
        "low lower lowest " * 9,
        method="bpe",
        vocabulary_size=264,
        pattern="gpt2",
        special_tokens=["<e>"],
        reserved=["EOS"],
    )


def test_measure(tokenizer):
    texts = ["low lowest\nnew", "", "Grüße"]
    found = measure(tokenizer, texts)
    tokens = sum(len(tokenizer.encode(text)) for text in texts)
    assert found == Measure(documents=3, bytes=14 + 7, words=4, tokens=tokens)
    assert found.bytes_per_token == 21 / tokens and found.fertility == tokens / 4
    assert measure(tokenizer, "low lowest\nnew").documents == 1
    assert measure(tokenizer, iter([b"low \xff", "low"])).words == 3


def test_measures_add_up(tokenizer, monkeypatch):
    texts = ["low lowest", "new " * 9, "x"]
    whole = measure(tokenizer, texts)
    assert sum((measure(tokenizer, text) for text in texts), Measure()) == whole
    monkeypatch.setattr(metrics, "BLOCK_BYTES", 20)
    assert measure(tokenizer, texts) == whole


def test_the_document_that_cannot_be_measured_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "BLOCK_BYTES", 5)
    tokenizer = Tokenizer("low")
    with pytest.raises(ValueError, match="document 2: byte 0x65 at byte position 3 is not in the"):
        measure(tokenizer, ["low", "low", "lowest"])
    for name in "ab":
        (tmp_path / name).write_text("low\nlow" + name)
    corpus = StreamedCorpus.from_files(tmp_path, documents="line")
    with pytest.raises(
        ValueError, match="/a: document 1: byte 0x61 at byte position 3 is not in the"
    ):
        measure(tokenizer, corpus)
    with pytest.raises(UnicodeEncodeError, match="document 1"):
        measure(tokenizer, ["low", "\ud800"])


def test_nothing_measured(tokenizer):
    assert measure(tokenizer, []) == Measure()
    assert math.isnan(Measure().bytes_per_token) and math.isnan(Measure().fertility)


def test_measures_by_source(tokenizer):
    found = measures(tokenizer, {"known": "low lowest", "other": ["你好", "x"]})
    assert list(found) == ["known", "other"]
    assert found["known"].bytes_per_token > found["other"].bytes_per_token == 1
    with pytest.raises(TypeError, match="corpora must be a mapping from name to corpus, not list"):
        measures(tokenizer, ["low"])
    with pytest.raises(TypeError, match="a corpus must be str, bytes or an iterable"):
        measure(tokenizer, 5)


def test_bits_per_byte():
    assert bits_per_byte(8 * math.log(2), 4) == 2
    assert bits_per_byte(np.float32(0), np.int64(3)) == 0
    # Uniform over 256 bytes.
    assert bits_per_byte(10 * math.log(256), 10) == pytest.approx(8)


@pytest.mark.parametrize(
    ("loss", "size", "error", "message"),
    [
        (-1.0, 5, ValueError, "a loss is 0 or more, and finite, not -1.0"),
        (math.nan, 5, ValueError, "a loss is 0 or more, and finite, not nan"),
        (math.inf, 5, ValueError, "a loss is 0 or more, and finite, not inf"),
        ("1", 5, TypeError, "a loss is a number, not str"),
        (np.ones(2), 5, TypeError, "a loss is a number, not ndarray"),
        (1.0, 0, ValueError, "bytes must be from 1 to"),
        (1.0, 2.5, TypeError, "bytes must be a whole number, not float"),
    ],
)
def test_what_gives_no_bits_per_byte(loss, size, error, message):
    with pytest.raises(error, match=message):
        bits_per_byte(loss, size)


def test_bytes_of_tokens(tokenizer):
    sizes = token_bytes(tokenizer)
    assert sizes.dtype == np.uint32 and len(sizes) == tokenizer.vocab_size
    text = "low lowest, Grüße"
    assert sizes[tokenizer.encode(text)].sum() == len(text.encode())
    assert sizes[tokenizer.special_tokens["<e>"]] == sizes[tokenizer.eos_id] == 0


@pytest.mark.parametrize("method", ["char", "word"])
def test_an_unknown_character_has_no_known_size(method):
    tokenizer = Tokenizer("low <UNK>", method=method)
    sizes = token_bytes(tokenizer)
    assert sizes[tokenizer.encode("é")].tolist() == [0]
    assert sizes[tokenizer.encode("low <UNK>")].sum() >= len("low <UNK>")


def test_too_many_tokens_for_a_table(tokenizer, monkeypatch):
    monkeypatch.setattr(metrics, "LARGEST_TABLE", 263)
    with pytest.raises(ValueError, match="a vocabulary of 264 ids; at most 263"):
        token_bytes(tokenizer)
