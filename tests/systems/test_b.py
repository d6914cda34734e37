"""System B: words with an end marker, and characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import Tokenizer, engines

pytestmark = pytest.mark.core

FIVE = ["low", "low", "lower", "newest", "widest"]


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


def words(corpus, size, **options):
    return Tokenizer(corpus, method="word", vocabulary_size=size, **options)


# Characters


def test_characters():
    tokenizer = Tokenizer("cab\n", method="char")
    assert tokenizer.vocabulary == (b"<UNK>", b"\n", b"a", b"b", b"c")
    assert tokenizer.encode("cab\n") == [4, 2, 3, 1]
    assert tokenizer.encode("axé🐈b") == [2, 0, 0, 0, 3]
    assert tokenizer.decode([2, 0, 3]) == "a<UNK>b"
    assert tokenizer.encode("") == []
    assert not tokenizer.lossless


def test_characters_are_sorted_by_code_point():
    assert Tokenizer("中é🐈aé", method="char").vocabulary[1:] == tuple(
        character.encode() for character in "aé中🐈"
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("vocabulary_size", 300),
        ("minimum_pair_frequency", 1),
        ("pattern", "gpt2"),
        ("tie_break", "first"),
        ("base", "bytes"),
    ],
)
def test_characters_have_no_options_of_training(option, value):
    with pytest.raises(ValueError, match=f"the char method has no {option}, but it is {value!r}"):
        Tokenizer("abab", method="char", **{option: value})


# The five words


def test_five_words():
    tokenizer = words(FIVE, 25)
    base = [form.encode() for letter in "deilnorstw" for form in (letter, letter + " ")]
    assert tokenizer.vocabulary[:21] == (b"<UNK>", *base)
    assert tokenizer.vocabulary[21:] == (b"lo", b"low ", b"we", b"st ")
    assert tokenizer.merges.tolist() == [[7, 11], [21, 20], [19, 3], [15, 18]]
    assert tokenizer.merge_counts.tolist() == [3, 2, 2, 2]
    assert (tokenizer.vocab_size, tokenizer.target_vocab_size) == (25, 25)


def test_lowest():
    tokenizer = words(FIVE, 25)
    assert tokenizer.encode("lowest") == [21, 23, 24]
    assert tokenizer.decode([21, 23, 24]) == "lowest"
    assert tokenizer.decode_bytes([21, 23, 24]) == b"lowest"


def test_unknown_characters():
    tokenizer = words(FIVE, 25)
    assert tokenizer.encode("naïve widest") == [9, 0, 0, 0, 4, 19, 5, 1, 3, 24]
    assert tokenizer.decode(tokenizer.encode("naïve widest")) == "n<UNK><UNK><UNK>e widest"


def test_alphabet_is_kept_whole():
    tokenizer = words(["ab"], 2)
    assert tokenizer.vocabulary == (b"<UNK>", b"a", b"a ", b"b", b"b ")
    assert tokenizer.merges.shape == (0, 2)
    assert tokenizer.encode("ba") == [3, 2]
    assert (tokenizer.vocab_size, tokenizer.target_vocab_size) == (5, 2)


def test_training_stops_when_the_words_are_whole():
    with pytest.warns(UserWarning, match="gave 34 of the 100 ids wanted"):
        tokenizer = words(FIVE, 100)
    assert (tokenizer.vocab_size, len(tokenizer.merges)) == (34, 13)
    assert tokenizer.target_vocab_size == 100
    assert [len(tokenizer.encode(word)) for word in FIVE] == [1] * 5


def test_frequency_and_tie_rule_by_default():
    assert Tokenizer("ab", method="word").vocabulary[5:] == (b"ab ",)
    assert Tokenizer("ab", method="word", minimum_pair_frequency=2).vocab_size == 5
    assert Tokenizer("dc ab", method="word").vocabulary[9:] == (b"dc ", b"ab ")
    assert Tokenizer("dc ab", method="word", tie_break="smallest").vocabulary[9:] == (
        b"ab ",
        b"dc ",
    )


def test_greatest_compares_the_marker_as_it_is_written():
    """`x !!` or `x !</w>`: "!!" is less than "!<", though greater than "! "."""
    corpus = "!!c !!c !!c x!!y x!"
    tokenizer = words(corpus, 13, tie_break="greatest")
    assert tokenizer.vocabulary[9:] == (b"!!", b"!!c ", b"x! ", b"x!!")
    assert [merge.occurrences for merge in Tokenizer.train_steps(
        corpus, method="word", vocabulary_size=13, tie_break="greatest"
    )] == [4, 3, 1, 1]  # fmt: skip


@pytest.mark.parametrize("tie_break", ["smallest", "first", "greatest"])
def test_a_word_of_one_character_merges_nothing(tie_break):
    assert len(Tokenizer("a b a", method="word", tie_break=tie_break).merges) == 0


def test_each_distinct_word_counts_as_often_as_it_occurs():
    tokenizer = words(["ab ab", "ab", "cd"], 10)
    assert tokenizer.vocabulary[9:] == (b"ab ",)
    assert tokenizer.merge_counts.tolist() == [3]


# White space


@pytest.mark.parametrize(
    "space", [*" \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u3000", "\r\n", "  "]
)
def test_words_are_those_of_str_split(space):
    tokenizer = words(f"{space}low{space}lower{space}", 12)
    assert tokenizer == words("low lower", 12)
    text = f"low{space}lower{space}"
    assert text.split() == ["low", "lower"]
    assert tokenizer.encode(text) == tokenizer.encode("low lower")
    assert tokenizer.decode(tokenizer.encode(text)) == "low lower"


@pytest.mark.parametrize("other", ["\u180e", "\u200b", "\ufeff", "\u2060", "\0"])
def test_what_is_no_white_space(other):
    tokenizer = words(f"a{other}b", 9)
    assert other.encode() in tokenizer.vocabulary
    assert tokenizer.decode(tokenizer.encode(f"a{other}b")) == f"a{other}b"


def test_nothing_but_white_space():
    with pytest.raises(ValueError, match="holds no words to learn from"):
        Tokenizer(" \n\u3000", method="word")
    tokenizer = words("ab", 5)
    assert tokenizer.encode(" \n ") == []
    assert tokenizer.decode([]) == ""


# Decoding


@pytest.mark.parametrize("method", ["char", "word"])
def test_ids_out_of_range_read_unknown(method):
    tokenizer = Tokenizer("ab", method=method)
    for id in (-1, tokenizer.vocab_size, 2**32, -(2**70), 10**30):
        assert tokenizer.decode([1, id]) == "a<UNK>"
        assert tokenizer.decode_bytes([id, 1]) == b"<UNK>a"
    for wrong in (1.0, True, None, "1"):
        with pytest.raises(TypeError, match="position 1 holds"):
            tokenizer.decode([1, wrong])


def test_literal_marker_in_text_survives():
    text = "</w> a</w> </w>a a </w"
    with pytest.warns(UserWarning, match="ids wanted"):
        tokenizer = words(text, 100)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert words(text, 5).decode(words(text, 5).encode(text)) == text


def test_learned_piece_that_is_spelled_as_unknown():
    with pytest.warns(UserWarning, match="ids wanted"):
        tokenizer = words("<UNK>x <UNK>x <UNK>y <UNK>", 100)
    learned = tokenizer.vocabulary.index(b"<UNK>", 1)
    assert learned > 0
    assert tokenizer.encode("<UNK>x<UNK>") != [0]
    assert 0 not in tokenizer.encode("<UNK>x <UNK>y <UNK>")
    assert tokenizer.encode("\u2603") == [0]
    assert tokenizer.decode([learned]) == tokenizer.decode([0]) == "<UNK>"
    assert tokenizer.decode(tokenizer.encode("<UNK>x <UNK>")) == "<UNK>x <UNK>"


def test_layout():
    tokenizer = words(["ab"], 8, special_tokens=["<|e|>"], reserved=["EOS"], special_ids="end")
    assert tokenizer.vocabulary == (
        b"<UNK>", b"a", b"a ", b"b", b"b ", b"ab ", b"<|e|>", b""
    )  # fmt: skip


@pytest.mark.parametrize("method", ["char", "word"])
def test_unknown_keeps_its_place(method):
    with pytest.raises(ValueError, match="special_ids='first' would move <UNK>"):
        Tokenizer("ab", method=method, special_tokens=["<|e|>"], special_ids="first")


@pytest.mark.parametrize("option", [{"pattern": "gpt2"}, {"base": "bytes"}])
def test_options_that_words_do_not_have(option):
    with pytest.raises(ValueError, match="the word method has no"):
        Tokenizer("ab", method="word", **option)


@pytest.mark.parametrize("method", ["char", "word"])
def test_bytes_must_be_utf8_in_training(method):
    with pytest.raises(UnicodeDecodeError, match="document 1"):
        Tokenizer([b"ab", b"a\xff"], method=method)
    tokenizer = Tokenizer(b"a\xc3\xa9", method=method)
    assert tokenizer.decode(tokenizer.encode_bytes("aé".encode())) == "aé"
    assert tokenizer.encode_bytes(b"a\xff\xc3")[-2:] == [0, 0]
    if method == "word":
        with pytest.raises(UnicodeDecodeError, match="document 0"):
            tokenizer.extended([b"\xff"], 20)


@pytest.mark.parametrize("engine", engines.NAMES)
@given(text=st.text("ab<>/wUNK é\u0301🐈\n\x1c\u3000", max_size=40))
def test_round_trip_but_for_white_space(engine, text):
    alphabet = "ab<>/wUNKé\u0301🐈"
    tokenizer = words([" ".join([alphabet, alphabet[::-1], text])], 40, engine=engine)
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())
    characters = Tokenizer([text + "a"], method="char", engine=engine)
    assert characters.decode(characters.encode(text)) == text
