"""System A: the facade, one Tokenizer over interchangeable methods."""

import json

import numpy as np
import pytest

from tokbpe import Corpus, Tokenizer, methods

pytestmark = pytest.mark.core


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


def test_default_is_the_byte_method():
    tokenizer = Tokenizer("cab\n")
    assert tokenizer.method == "byte"
    assert tokenizer.encode("cab\n") == [3, 1, 2, 0]
    assert tokenizer.decode([3, 1, 2, 0]) == "cab\n"


@pytest.mark.parametrize("corpus", ["cab\n", "\nabc", ["c", "ba", "\n"], b"bbcca\n"])
def test_byte_ids_rise_whatever_the_order_of_the_corpus(corpus):
    tokenizer = Tokenizer(corpus)
    assert tokenizer.vocabulary == (b"\n", b"a", b"b", b"c")
    assert tokenizer.vocabulary_bytes == b"\nabc"
    assert tokenizer.vocab_size == 4
    assert tokenizer.merges.shape == (0, 2)
    assert tokenizer.merge_counts.shape == (0,)


def test_byte_absent_from_the_corpus():
    tokenizer = Tokenizer("cab\n")
    with pytest.raises(ValueError, match="byte 0x64 at byte position 2 is not in the vocabulary"):
        tokenizer.encode("cad")
    with pytest.raises(ValueError, match="byte 0xc3 at byte position 1 "):
        tokenizer.encode("aé")
    with pytest.raises(ValueError, match="byte 0xff at byte position 0 "):
        tokenizer.encode_bytes(b"\xff")


@pytest.mark.parametrize("method", ["byte", "bpe"])
@pytest.mark.parametrize("corpus", ["", b"", [], [""], ["", b""]], ids=repr)
def test_no_bytes_at_all(method, corpus):
    with pytest.raises(ValueError, match="holds no bytes to learn from"):
        Tokenizer(corpus, method=method)


def test_one_merge():
    tokenizer = Tokenizer(b"abababab", method="bpe", vocabulary_size=257)
    assert tokenizer.method == "bpe"
    assert tokenizer.vocab_size == 257
    assert tokenizer.vocabulary[:256] == tuple(bytes([byte]) for byte in range(256))
    assert tokenizer.vocabulary[256] == b"ab"
    assert tokenizer.encode_bytes(b"abababab") == [256, 256, 256, 256]
    assert tokenizer.encode("abababab") == [256, 256, 256, 256]
    assert tokenizer.merges.dtype == np.uint32
    assert tokenizer.merges.tolist() == [[97, 98]]
    assert tokenizer.merge_counts.dtype == np.uint64
    assert tokenizer.merge_counts.tolist() == [4]


def test_byte_never_seen_still_encodes():
    tokenizer = Tokenizer(b"abababab", method="bpe", vocabulary_size=257)
    assert tokenizer.encode_bytes(b"\x00ab\xff") == [0, 256, 255]


def test_all_names_of_the_constructor():
    tokenizer = Tokenizer(
        "abracadabra " * 10, method="bpe", vocabulary_size=264, minimum_pair_frequency=2
    )
    assert tokenizer.vocab_size == 264
    assert tokenizer.decode(tokenizer.encode("abracadabra")) == "abracadabra"


def test_vocabulary_size_defaults_to_512():
    text = "".join(chr(97 + i * i % 26) + chr(97 + i * i // 26 % 26) for i in range(3000))
    assert Tokenizer(text, method="bpe").vocab_size == 512


def test_vocabulary_bytes_is_for_the_byte_method():
    with pytest.raises(ValueError, match=r"use \.vocabulary"):
        Tokenizer("abab", method="bpe").vocabulary_bytes  # noqa: B018


def test_unknown_method_lists_the_names():
    with pytest.raises(
        ValueError, match="method must be one of 'byte', 'bpe', 'char', 'word', not 'wordpiece'"
    ):
        Tokenizer("abab", method="wordpiece")


@pytest.mark.parametrize("size", [0, 255, 2**32, -1])
def test_vocabulary_size_out_of_bounds(size):
    with pytest.raises(
        ValueError, match=f"vocabulary_size must be from 256 to 4294967295, not {size}"
    ):
        Tokenizer("abab", method="bpe", vocabulary_size=size)


@pytest.mark.parametrize("option", ["vocabulary_size", "minimum_pair_frequency"])
@pytest.mark.parametrize("value", [256.0, True, "256"])
def test_option_of_the_wrong_type(option, value):
    with pytest.raises(TypeError, match=f"{option} must be a whole number, not"):
        Tokenizer("abab", method="bpe", **{option: value})


def test_minimum_pair_frequency_is_at_least_1():
    with pytest.raises(ValueError, match="minimum_pair_frequency must be from 1 "):
        Tokenizer("abab", method="bpe", minimum_pair_frequency=0)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("vocabulary_size", 300),
        ("minimum_pair_frequency", 3),
        ("pattern", "gpt2"),
        ("tie_break", "first"),
        ("base", "gpt2"),
    ],
)
def test_byte_method_has_no_options_of_training(option, value):
    with pytest.raises(ValueError, match=f"the byte method has no {option}, but it is {value!r}"):
        Tokenizer("abab", **{option: value})


def test_byte_method_takes_the_default_frequency():
    assert Tokenizer("ab", minimum_pair_frequency=2).vocab_size == 2


def test_exactly_the_base_is_allowed():
    tokenizer = Tokenizer("abab", method="bpe", vocabulary_size=256)
    assert tokenizer.vocab_size == 256
    assert tokenizer.encode("abab") == [97, 98, 97, 98]


def test_exhausted_corpus_warns_once_when_a_size_was_named():
    with pytest.warns(UserWarning) as warned:
        tokenizer = Tokenizer("abab", method="bpe", vocabulary_size=300)
    assert len(warned) == 1
    assert "gave 257 of the 300 ids wanted" in str(warned[0].message)
    assert warned[0].filename == __file__
    assert tokenizer.vocab_size == 257
    Tokenizer("abab", method="bpe")  # no size named, no warning: warnings are errors here


def test_least_size_counts_special_tokens_and_reserved_ids():
    def make(size):
        return Tokenizer(
            "abab",
            method="bpe",
            vocabulary_size=size,
            special_tokens=["<|e|>", "<|f|>"],
            reserved=["PAD"],
        )

    with pytest.raises(ValueError, match="vocabulary_size must be from 259 to 4294967295, not 258"):
        make(258)
    assert make(259).vocab_size == 259
    assert len(make(259).merges) == 0
    assert make(260).vocabulary[256:] == (b"<|e|>", b"<|f|>", b"", b"ab")


@pytest.mark.parametrize("method", ["byte", "bpe", "char", "word"])
def test_lifecycle(method):
    with Tokenizer("abab", method=method) as tokenizer:
        assert tokenizer.decode(tokenizer.encode("ab")) == "ab"
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        tokenizer.encode("ab")
    tokenizer.close()


@pytest.mark.parametrize("method", ["byte", "bpe", "char", "word"])
def test_state(method):
    tokenizer = Tokenizer("abab ba", method=method)
    state = json.loads(json.dumps(tokenizer.state()))
    assert Tokenizer.from_state(state).encode("ba ab") == tokenizer.encode("ba ab")
    state["vocabulary"]["alphabet"][-1] = "63"
    with pytest.raises(ValueError, match="the state is damaged"):
        Tokenizer.from_state(state)


def test_numbers_of_the_methods():
    assert {name: method.number for name, method in list(methods.METHODS.items())[:4]} == {
        "byte": 0,
        "bpe": 1,
        "char": 2,
        "word": 3,
    }


# The data split


def test_a_contiguous_tail_of_the_tokens_is_kept_for_validation():
    text = "the cat sat on the mat; " * 50
    tokenizer = Tokenizer(text, method="bpe", vocabulary_size=272, minimum_pair_frequency=2)
    whole = tokenizer.encode_corpus(Corpus(text))
    training, validation = whole.split(validation=0.1)
    ids = tokenizer.encode(text)
    place = len(ids) - round(0.1 * len(ids))
    assert training.tokens.tolist() == ids[:place]
    assert validation.tokens.tolist() == ids[place:]
    assert (training.role, validation.role) == ("training", "validation")
    assert np.shares_memory(training.tokens, whole.tokens)
    assert tokenizer.decode(training.tokens) + tokenizer.decode(validation.tokens) == text


def test_the_byte_method_fitted_on_the_whole_text_encodes_the_tail():
    text = "abc" * 30 + "xyz"
    tail = Tokenizer(text).encode_corpus(Corpus(text)).split(validation=3)[1]
    assert tail.tokens.tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match="document 0: byte 0x78 at byte position 90 is not in"):
        Tokenizer(text[:-3]).encode_corpus(Corpus(text))
