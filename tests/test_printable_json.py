"""The single JSON of pieces and merges in GPT-2's printable characters."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import Tokenizer, engines, methods
from tokbpe.formats import printable_json
from tokbpe.vocabulary import Vocabulary

CORPUS = ["low lower lowest newer newest\n" * 3, "Grüße 🐈 好 \0\xad" * 2]


@pytest.fixture(params=engines.NAMES)
def engine(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokenizer.json"


@pytest.fixture
def read(path):
    """Write a file of some JSON, or of some bytes, and read it."""

    def read(content, **options):
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        path.write_bytes(content)
        return Tokenizer.from_json(path, **options)

    return read


@pytest.fixture
def refused(read, path):
    def refused(content, message):
        with pytest.raises(ValueError, match=message) as raised:
            read(content)
        assert str(raised.value).startswith(f"{path}: ")

    return refused


def file_of(vocab, *merges):
    """The content of a file: pieces with ids from 0 on, or a mapping; merges as "left right"."""
    if isinstance(vocab, str):
        vocab = {piece: id for id, piece in enumerate(vocab.split())}
    return {"vocab": vocab, "merges": [merge.split() for merge in merges]}


def bpe(size, **options):
    return Tokenizer(CORPUS, method="bpe", vocabulary_size=size, **options)


# Written and read


@pytest.mark.parametrize("pattern", [None, "gpt2", "[a-z]+\n"])
@pytest.mark.parametrize("base", ["bytes", "gpt2"])
def test_written_and_read(pattern, base, engine, path):
    tokenizer = bpe(275, pattern=pattern, base=base, engine=engine)
    tokenizer.to_json(path)
    loaded = Tokenizer.from_json(path, pattern=pattern, engine=engine)
    assert loaded == tokenizer
    assert repr(loaded) == repr(tokenizer)
    assert loaded.vocabulary == tokenizer.vocabulary
    np.testing.assert_array_equal(loaded.merges, tokenizer.merges)
    assert loaded.merge_counts.tolist() == [] and loaded.target_vocab_size is None
    for text in [*CORPUS, "", "slow\0 Wörter 🐈🐈"]:
        assert loaded.encode(text) == tokenizer.encode(text)
        assert loaded.decode(loaded.encode(text)) == text


def test_the_exact_file(path, tmp_path):
    tokenizer = Tokenizer(b"ba \n\xff")
    tokenizer.to_json(path)
    assert path.read_text("utf-8") == (
        '{"vocab": {"Ċ": 0, "Ġ": 1, "a": 2, "b": 3, "ÿ": 4}, "merges": []}\n'
    )
    loaded = Tokenizer.from_json(path)
    assert loaded == tokenizer and loaded.method == "byte"
    with pytest.raises(ValueError, match="byte 0x63 at byte position 1 is not in the vocabulary"):
        loaded.encode("ac")
    file = {"vocab": {"o": 5, "h": 7, "ho": 2, "Ġ": 0}, "merges": [["h", "o"]]}
    (tmp_path / "own").write_text(json.dumps(file))
    Tokenizer.from_json(tmp_path / "own").to_json(tmp_path / "again")
    assert (tmp_path / "again").read_text("utf-8") == (
        '{"vocab": {"Ġ": 0, "ho": 2, "o": 5, "h": 7}, "merges": [["h", "o"]]}\n'
    )


def test_two_writings_are_the_same_bytes(tmp_path):
    for name in engines.NAMES:
        bpe(270, engine=name).to_json(tmp_path / name)
        Tokenizer.from_json(tmp_path / name).to_json(tmp_path / f"{name} again")
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_ids_need_not_follow_the_merges(read, engine):
    vocab = {"hola": 0, "l": 1, "ho": 9, "o": 3, "la": 4, "h": 7, "a": 6}
    tokenizer = read(file_of(vocab, "l a", "h o", "ho la"), engine=engine)
    assert tokenizer.encode("hola") == [0]
    assert tokenizer.encode("holaho") == [0, 9]
    assert tokenizer.encode("lah") == [4, 7]
    assert tokenizer.vocab_size == 10
    assert tokenizer.vocabulary == (
        b"hola", b"l", None, b"o", b"la", None, b"a", b"h", None, b"ho"
    )  # fmt: skip
    assert tokenizer.decode([0, 9, 1]) == "holahol"
    with pytest.raises(ValueError, match="id 5 at position 0 is a gap"):
        tokenizer.decode([5])


def test_ids_that_follow_are_not_stored(read):
    assert read(file_of("a b ab", "a b"))._vocabulary.merge_ids is None
    assert read(file_of({"a": 0, "b": 5, "ab": 6}, "a b"))._vocabulary.merge_ids is None
    assert read(file_of({"a": 0, "b": 1, "ab": 3}, "a b"))._vocabulary.merge_ids.tolist() == [3]


def test_the_order_of_the_merges_is_that_of_their_ranks(read, engine):
    vocab = "a b c ab bc abc"
    assert read(file_of(vocab, "a b", "b c", "a bc"), engine=engine).encode("abc") == [3, 2]
    assert read(file_of(vocab, "b c", "a b", "a bc"), engine=engine).encode("abc") == [5]
    # A merge may stand before those that make its halves.
    assert read(file_of("a b c ab abc", "ab c", "a b"), engine=engine).encode("abc") == [4]


def test_the_pattern_is_not_in_the_file(path):
    tokenizer = bpe(275, pattern="gpt2")
    tokenizer.to_json(path)
    assert Tokenizer.from_json(path).pattern is None
    assert Tokenizer.from_json(path, pattern="gpt2") == tokenizer
    assert Tokenizer.from_json(path) != tokenizer
    with pytest.raises(ValueError, match="matches empty"):
        Tokenizer.from_json(path, pattern="a*")
    with pytest.raises(TypeError, match="pattern must be"):
        Tokenizer.from_json(path, pattern=5)


@given(
    st.lists(st.binary(max_size=12) | st.text("ab \n", max_size=20), min_size=1).filter(any),
    st.sampled_from([None, "gpt2", "o200k"]),
    st.sampled_from(engines.NAMES),
)
def test_any_bpe_tokenizer_comes_back(corpus, pattern, engine):
    tokenizer = Tokenizer(
        corpus, method="bpe", minimum_pair_frequency=1, pattern=pattern, engine=engine
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        tokenizer.to_json(path)
        loaded = Tokenizer.from_json(path, pattern=pattern, engine=engine)
    assert loaded.vocabulary == tokenizer.vocabulary
    np.testing.assert_array_equal(loaded.merges, tokenizer.merges)
    for document in corpus:
        data = document.encode() if isinstance(document, str) else document
        assert loaded.encode_bytes(data) == tokenizer.encode_bytes(data)


# What the format cannot hold


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"special_tokens": ["<e>", "x y"]}, r"special tokens \['<e>', 'x y'\]"),
        ({"method": "bpe", "special_tokens": ["<e>"]}, r"special tokens \['<e>'\]"),
        ({"reserved": ["BOS"]}, r"reserved ids \['BOS'\]"),
        ({"method": "char"}, "method 'char'"),
        ({"method": "word"}, "method 'word'"),
    ],
)
def test_what_is_lost_is_refused(options, message, path):
    with pytest.raises(ValueError, match=f"this format cannot hold the {message}"):
        Tokenizer("abab", **options).to_json(path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"merge_rule": "rank_by_piece"}, "the merge rule 'rank_by_piece'"),
        ({"whole_piece_lookup": True}, "the lookup of whole pieces"),
        ({"unit": "character", "unknown": 2}, "the unit 'character'"),
        ({"unknown": 2}, "an id for what is unknown"),
        ({"method": "own"}, "the method 'own'"),
    ],
)
def test_a_vocabulary_that_is_lost_is_refused(options, message, path):
    vocabulary = Vocabulary(**{"method": "bpe", "alphabet": (b"a", b"b", None), **options})
    with pytest.raises(ValueError, match=message):
        printable_json.save(vocabulary, path)
    assert not path.exists()


def test_one_piece_of_two_ids_is_refused(path):
    vocabulary = Vocabulary(
        "bpe",
        (b"a", b"b", b"c"),
        merges=np.array([[0, 1], [1, 2], [3, 2], [0, 4]], np.uint32),
    )
    with pytest.raises(ValueError, match="ids 5 and 6 are both 'abc'"):
        printable_json.save(vocabulary, path)
    assert not path.exists()


def test_an_existing_path_is_refused(path):
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=path.name):
        Tokenizer("ab").to_json(path)
    assert path.read_text() == "precious"


# What is refused when it is read


def test_a_merge_that_joins_no_piece(refused):
    refused(
        file_of("h o l a ho ol hola", "h o", "o l", "ho la"),
        "merge 2 joins 'ho' and 'la', but 'la' is no piece of the vocab",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (file_of("a b", "a b"), "merge 0 joins 'a' and 'b', but 'ab' is no piece"),
        (file_of("a b ab", "a b", "c a"), "merge 1 joins 'c' and 'a', but 'c' is no piece"),
        (file_of("a b ab", "a b", "a b"), "merges 0 and 1 both join 'a' and 'b'"),
        (
            file_of("a b c ab bc abc", "a b", "b c", "a bc", "ab c"),
            "merges 2 and 3 both make 'abc'",
        ),
        (file_of("a b ab"), "the piece 'ab' is neither a single byte nor made by a merge"),
        (file_of("a b <|endoftext|>"), "the piece '<|endoftext|>' is neither".replace("|", r"\|")),
        ({"vocab": {"a": 0}, "merges": [["a"]]}, r"a list of two pieces, not \['a'\]"),
        ({"vocab": {"a": 0}, "merges": ["a a"]}, "merge 0 must be a list of two pieces, not 'a a'"),
        ({"vocab": {"a": 0}, "merges": [["a", 0]]}, "merge 0 must be a list of two pieces"),
        ({"vocab": {"a": 0}, "merges": [["a", ""]]}, "joins 'a' and '', but '' is no piece"),
        ({"vocab": {"a": 0}, "merges": {}}, "merges must be a list of pairs, not an object"),
        ({"vocab": {"a": 0}, "merges": None}, "merges must be a list of pairs, not null"),
        ({"vocab": ["a"], "merges": []}, "vocab must be an object of pieces and ids, not a list"),
        ({"vocab": 5, "merges": []}, "vocab must be an object of pieces and ids, not a number"),
        ({"vocab": {}, "merges": []}, "vocab is empty"),
        ({"vocab": {"a": 0}}, r"an object with vocab and merges, not \['vocab'\]"),
        ({"vocab": {"a": 0}, "merges": [], "version": 1}, "object with vocab and merges, not "),
        ([], "the file must hold an object with vocab and merges, not a list"),
        ("vocab", "the file must hold an object with vocab and merges, not a text"),
        (True, "the file must hold an object with vocab and merges, not a truth value"),
        (file_of({"a": 0, "b": 0}), "entry 1 of vocab, 'b': the id 0 is that of 'a' already"),
        (file_of({"a": 0, "": 1}), "entry 1 of vocab, '': a piece must not be empty"),
        (file_of({" ": 0}), "entry 0 of vocab, ' ': ' ' at position 0 of ' ' is none of the 256"),
        (file_of({"a": 0, "好": 1}), "entry 1 of vocab, '好': '好' at position 0"),
        (file_of({"\ud83d": 0}), "at position 0 of .* is none of the 256"),
        (file_of({"a": -1}), "an id must be a whole number from 0 to 4294967294, not -1"),
        (file_of({"a": 2**32 - 1}), "from 0 to 4294967294, not 4294967295"),
        (file_of({"a": 2**80}), "from 0 to 4294967294, not 1208925819614629174706176"),
        (file_of({"a": 0.0}), "an id must be a whole number from 0 to 4294967294, not 0.0"),
        (file_of({"a": True}), "an id must be a whole number from 0 to 4294967294, not True"),
        (file_of({"a": "0"}), "an id must be a whole number from 0 to 4294967294, not '0'"),
        (file_of({"a": None}), "an id must be a whole number from 0 to 4294967294, not None"),
        (file_of({"a": float("nan")}), "an id must be a whole number"),
        (file_of({"a": 2**32 - 2}), "the highest id is 4294967294, so that 4294967294 ids have no"),
        (b"", "line 1 column 1"),
        (b'{"vocab": {"a": 0},\n "merges": [}', "line 2 column 13"),
        (b'{"vocab": {"a": 0}, "merges": []} x', "line 1 column 35"),
        (b'{"vocab": {"a": 0, "b": 1, "a": 2}, "merges": []}', "the key 'a' stands twice"),
        (b'{"vocab": {"a": 0}, "vocab": {"b": 0}, "merges": []}', "the key 'vocab' stands twice"),
        (b'{"vocab": {"a": 0}, "merges": []}'.decode().encode("utf-16"), "utf-8"),
        (b'{"vocab": {"\xff": 0}, "merges": []}', "can't decode byte 0xff in position 12"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_must_be(content, message, refused):
    refused(content, message)


def test_a_file_cut_short(read, path, tmp_path):
    bpe(260).to_json(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    for length in range(0, len(data) - 2, 7):
        with pytest.raises(ValueError):
            read(data[:length])
    assert read(data[:-1]) == bpe(260)  # the line end is not part of the JSON


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_json(tmp_path / "missing")
    with pytest.raises(OSError):
        Tokenizer.from_json(tmp_path)


def test_all_methods_are_written_or_refused(tmp_path):
    written = []
    for name in methods.METHODS:
        try:
            Tokenizer(CORPUS, method=name).to_json(tmp_path / name)
        except ValueError as error:
            assert repr(name) in str(error)
        else:
            written.append(name)
    assert written == ["byte", "bpe"]
