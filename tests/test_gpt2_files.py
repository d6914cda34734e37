"""GPT-2's two files, read and written."""

import contextlib
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import Tokenizer, engines, files, patterns
from tokbpe.formats import gpt2
from tokbpe.vocabulary import Vocabulary

BYTES = tuple(bytes([byte]) for byte in range(256))
CORPUS = ["low lower lowest newer newest\n" * 3, "Grüße 🐈 好 \0\xad" * 2, "#version #version"]
END = "<|endoftext|>"


@pytest.fixture(params=engines.NAMES)
def engine(request):
    return request.param


@pytest.fixture
def read(tmp_path, engine):
    """Write a vocab, or bytes of one, and lines of merges, or bytes of them, and read them."""

    def read(vocab, merges, **options):
        if isinstance(vocab, str):
            vocab = {piece: id for id, piece in enumerate(vocab.split())}
        if not isinstance(vocab, bytes):
            vocab = json.dumps(vocab).encode()
        if not isinstance(merges, bytes):
            merges = "".join(f"{line}\n" for line in ["#version: 0.2", *merges]).encode()
        (tmp_path / "vocab.json").write_bytes(vocab)
        (tmp_path / "merges.txt").write_bytes(merges)
        return Tokenizer.from_gpt2(tmp_path, engine=engine, **options)

    return read


@pytest.fixture
def refused(read, tmp_path):
    def refused(file, vocab, merges, message, **options):
        with pytest.raises(ValueError, match=message) as raised:
            read(vocab, merges, **options)
        assert str(raised.value).startswith(f"{tmp_path / file}: ")

    return refused


def bpe(size=290, pattern="gpt2", **options):
    return Tokenizer(CORPUS, method="bpe", vocabulary_size=size, pattern=pattern, **options)


# What is read


def test_what_is_read(read):
    tokenizer = read(f"a b Ġ ab Ġab c {END}", ["a b", "Ġ ab"])
    assert tokenizer.vocabulary == (b"a", b"b", b" ", b"ab", b" ab", b"c", END.encode())
    assert tokenizer.special_tokens == {END: 6}
    assert (tokenizer.pattern, tokenizer.method) == ("gpt2", "bpe")
    assert not tokenizer._vocabulary.trained
    assert tokenizer.encode("ab abb") == [3, 4, 1]
    assert tokenizer.encode(f"a{END}", allowed_special="all") == [0, 6]
    with pytest.raises(ValueError, match="byte 0x7a at byte position 1 is not in the vocab"):
        tokenizer.encode("az")


LINES = ["a b", "ab c"]


@pytest.mark.parametrize(
    "merges",
    [
        b"#version: 0.2\na b\nab c\n",
        b"#version: 0.2\r\na b\r\nab c\r\n",
        b"#version: 0.2\na b\nab c",
        b"#version: 0.2\na b\nab c\n\n",
        b"#version: 0.2\r\na b\r\nab c\r\n\r\n",
        b"\xef\xbb\xbf#version: 0.2\na b\nab c\n",
        b"\xef\xbb\xbfa b\nab c\n",
        b"a b\nab c\n",
        b"#version\na b\nab c\n",
        b"#version: 0.2 - Trained by `huggingface/tokenizers`\na b\nab c\n",
    ],
)
def test_header_and_line_ends(merges, read):
    tokenizer = read("a b c ab abc", merges)
    assert tokenizer.merges.tolist() == [[0, 1], [3, 2]]
    assert tokenizer == read("a b c ab abc", ["a b", "ab c"])


def test_a_byte_order_mark_before_the_vocab(read):
    assert read(b'\xef\xbb\xbf{"a": 0}', []).vocabulary == (b"a",)


def test_no_merges(read):
    for merges in (b"", b"#version: 0.2", b"#version: 0.2\n", b"\n"):
        assert read("a b", merges).encode("ab") == [0, 1]


def test_only_the_first_line_is_a_header(read):
    pieces = "# v e r s i o n ve er #ve #ver #vers #versi #versio #version #versionn"
    merges = ["v e", "# ve", "#ve r", "#ver s", "#vers i", "#versi o", "#versio n", "#version n"]
    vocab = {piece: id for id, piece in enumerate(pieces.split()) if piece != "er"}
    tokenizer = read(vocab, merges)
    assert tokenizer.merges.tolist()[-1] == [vocab["#version"], vocab["n"]]


def test_a_piece_may_be_made_in_several_ways(read):
    tokenizer = read("a b c ab bc abc", ["b c", "a bc", "a b", "ab c"])
    assert tokenizer.encode("abc") == [5] and len(tokenizer.merges) == 4


def test_the_order_of_the_merges_is_that_of_their_ranks(read):
    # A merge may stand before those that make its halves.
    assert read("a b c ab abc", ["ab c", "a b"]).encode("abc") == [4]
    assert read("a b c ab bc abc", ["a b", "b c", "a bc"]).encode("abc") == [3, 2]
    assert read("a b c ab bc abc", ["b c", "a b", "a bc"]).encode("abc") == [5]


def test_ids_in_any_order_and_with_gaps(read):
    vocab = {"hola": 0, "l": 1, "ho": 9, "o": 3, "la": 4, "h": 7, "a": 6}
    tokenizer = read(vocab, ["l a", "h o", "ho la"])
    assert tokenizer.encode("holaho") == [0, 9] and tokenizer.encode("lah") == [4, 7]
    assert tokenizer.vocabulary == (
        b"hola", b"l", None, b"o", b"la", None, b"a", b"h", None, b"ho"
    )  # fmt: skip


def test_bytes_that_look_like_white_space(read):
    # U+0085, U+2028 and the like in printable characters are no line ends.
    vocab = {patterns.to_printable(piece): id for id, piece in enumerate(BYTES)}
    pieces = [b"\x85\x85", b"\xa0\xad", b"\r\n", b" \n", b"\x1c\x1d"]
    vocab |= {patterns.to_printable(piece): 256 + id for id, piece in enumerate(pieces)}
    merges = [" ".join(patterns.to_printable(piece)) for piece in pieces]
    tokenizer = read(vocab, merges)
    assert tokenizer.vocabulary[256:] == tuple(pieces)
    assert tokenizer.encode_bytes(b"\x85\x85") == [256]


# Special tokens


def test_special_tokens(read):
    vocab = {"a": 0, END: 5, "<e f>": 2, "é好\u2028": 3, "b": 4}
    given = ["<e f>", "é好\u2028", END]
    tokenizer = read(vocab, [], special_tokens=given)
    assert tokenizer.special_tokens == {"<e f>": 2, "é好\u2028": 3, END: 5}
    assert tokenizer.encode("a<e f>é好\u2028b", allowed_special="all") == [0, 2, 3, 4]
    assert tokenizer.decode([2, 3, 5]) == f"<e f>é好\u2028{END}"


def test_the_end_of_text_is_special_if_none_are_given(read, refused):
    assert read({"a": 0, END: 1}, []).special_tokens == {END: 1}
    assert read({"a": 0}, []).special_tokens == {}
    refused(
        "vocab.json",
        {"a": 0, END: 1, "<x>": 2},
        [],
        r"entry 1 of vocab, '<\|endoftext\|>', is neither .* special tokens \['<x>'\]",
        special_tokens=["<x>"],
    )
    refused("vocab.json", {END: 1}, [], r"entry 0 .* tokens \[\]", special_tokens=[])


def test_the_end_of_text_that_merges_make_is_a_piece(read, refused):
    pieces = [END[: size + 1] for size in range(len(END))]
    vocab = {piece: id for id, piece in enumerate(dict.fromkeys([*END, *pieces]))}
    merges = [f"{piece} {END[len(piece)]}" for piece in pieces[:-1]]
    tokenizer = read(vocab, merges)
    assert tokenizer.special_tokens == {}
    assert tokenizer.encode(END)[:1] == [vocab["<|"]]  # the pattern cuts it
    message = rf"line {len(END)} joins '<\|endoftext\|' and '>', but .* is no piece"
    refused("merges.txt", vocab, merges, message, special_tokens=[END])


def test_special_tokens_that_are_none(refused, read):
    refused("vocab.json", "a", [], "'<x>' is no entry of vocab", special_tokens=["<x>"])
    for wrong, message in [("<x>", "must be a list"), ([5], r"\[0\] must be str")]:
        with pytest.raises(TypeError, match=message):
            read("a", [], special_tokens=wrong)
    with pytest.raises(ValueError, match="holds 'a' twice"):
        read("a", [], special_tokens=["a", "a"])


# Where the files are


def test_two_paths_or_a_folder(tmp_path, engine):
    bpe().to_gpt2(tmp_path)
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    for arguments in ((vocab, merges), (str(vocab), bytes(merges)), (tmp_path,), (str(tmp_path),)):
        assert Tokenizer.from_gpt2(*arguments, engine=engine) == bpe()
    vocab.rename(tmp_path / "encoder.json")
    with pytest.raises(FileNotFoundError, match=f"this one does not hold them.*{tmp_path.name}"):
        Tokenizer.from_gpt2(tmp_path)
    merges.rename(tmp_path / "vocab.bpe")
    assert Tokenizer.from_gpt2(tmp_path) == bpe()
    bpe(280).to_gpt2(tmp_path)
    with pytest.raises(FileNotFoundError, match="vocab.json and .* this one holds both"):
        Tokenizer.from_gpt2(tmp_path)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_gpt2(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_gpt2(tmp_path / "missing", tmp_path / "missing too")
    for wrong in (5, None, ["a"]):
        with pytest.raises(TypeError):
            Tokenizer.from_gpt2(wrong)


# What is refused


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ("a b", ["a b"], "line 2 joins 'a' and 'b', but 'ab' is no piece of the vocab"),
        ("a b ab", b"a b\nc a\n", "line 2 joins 'c' and 'a', but 'c' is no piece"),
        ("a b ab", ["a b", "a b"], "lines 2 and 3 both join 'a' and 'b'"),
        ("a b ab", b"a b\na b\n", "lines 1 and 2 both join 'a' and 'b'"),
        ("a b ab", ["a b", "ab"], "line 3 must be two pieces with a space between them, not 'ab'"),
        ("a b ab", ["a  b"], "line 2 must be two pieces"),
        ("a b ab", [" a b"], "line 2 must be two pieces"),
        ("a b ab", ["a b "], "line 2 must be two pieces"),
        ("a b ab", ["a b c"], "line 2 must be two pieces .* not 'a b c'"),
        ("a b ab", ["a\tb"], "line 2 must be two pieces"),
        ("a b ab", ["", "a b"], "line 2 must be two pieces .* not ''"),
        ("a b ab", [" "], "line 2 must be two pieces"),
        ("a b ab", ["a b", "#version: 0.2"], "line 3 joins '#version:' and '0.2', but"),
        ("a b ab", b"#version: 0.2\ra b\r", "'ab', is neither"),
        ("a b ab", ["a b", "x" * 1000], "line 3 must be .* not 'x{80}'$"),
        ("a b ab", b"a \xff\n", "can't decode byte 0xff in position 2"),
        ("a b ab", "a b\n".encode("utf-16"), "can't decode"),
    ],
)  # fmt: skip
def test_bad_merges(vocab, merges, message, refused):
    file = "vocab.json" if "neither" in message else "merges.txt"
    refused(file, vocab, merges, message)


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        ("a b ab", "entry 2 of vocab, 'ab', is neither a single byte, nor made by a merge"),
        ({"a": 0, "b": 0}, "entry 1 of vocab, 'b': the id 0 is that of 'a' already"),
        ({END: 0, "b": 0}, r"entry 1 of vocab, 'b': the id 0 is that of '<\|endoftext\|>'"),
        ({"a": 0, "": 1}, "entry 1 of vocab, '': a piece must not be empty"),
        ({" ": 0}, "entry 0 of vocab, ' ': ' ' at position 0 of ' ' is none of the 256"),
        ({"a": -1}, "an id must be a whole number from 0 to 4294967294, not -1"),
        ({"a": 2**32 - 1}, "from 0 to 4294967294, not 4294967295"),
        ({"a": 2**32 - 2}, "the highest id is 4294967294, so that 4294967294 ids have no piece"),
        ({"a": "0"}, "an id must be a whole number"),
        ({"a": True}, "an id must be a whole number"),
        ({"a": [0]}, "an id must be a whole number"),
        ({}, "vocab is empty"),
        (["a"], "vocab must be an object of pieces and ids, not a list"),
        (b"", "line 1 column 1"),
        (b'{"a": 0', "line 1 column 8"),
        (b'{"a": 0, "b": 1, "a": 2}', "the key 'a' stands twice"),
        (b'{"a": 0} {', "Extra data"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"\xff": 0}', "can't decode byte 0xff"),
        (b'{"a": 1' + b"0" * 10_000 + b"}", "digits|whole number"),
    ],
)  # fmt: skip
def test_a_bad_vocab(vocab, message, refused):
    refused("vocab.json", vocab, [], message)


def test_files_of_two_tokenizers(read, refused):
    read("a b c ab abc", ["a b", "ab c"])
    refused("merges.txt", "a b c ab", ["a b", "b c"], "line 3 joins .*, but 'bc' is no piece")
    refused("vocab.json", "a b c ab bc", ["a b"], "entry 4 of vocab, 'bc', is neither")


def test_files_cut_short(tmp_path, read):
    bpe(275).to_gpt2(tmp_path)
    vocab, merges = ((tmp_path / name).read_bytes() for name in ("vocab.json", "merges.txt"))
    for length in range(0, len(vocab) - 2, 101):
        with pytest.raises(ValueError):
            read(vocab[:length], merges)
    for length in range(0, len(merges) - 3, 3):
        with pytest.raises(ValueError):
            read(vocab, merges[:length])
    assert read(vocab, merges) == bpe(275)


# Written and read


@pytest.mark.parametrize("special_ids", ["base", "first", "end"])
@pytest.mark.parametrize("base", ["bytes", "gpt2"])
def test_written_and_read(special_ids, base, tmp_path, engine):
    tokens = [END, "<e f>", "好\n"]
    tokenizer = bpe(special_ids=special_ids, base=base, special_tokens=tokens, engine=engine)
    tokenizer.to_gpt2(tmp_path)
    loaded = Tokenizer.from_gpt2(tmp_path, special_tokens=tokens, engine=engine)
    assert loaded == tokenizer and loaded.vocabulary == tokenizer.vocabulary
    for text in [*CORPUS, "", "slow\0 Wörter 🐈🐈", f"low{END}<e f>好\n"]:
        for allowed in ("all", ()):
            ids = tokenizer.encode(text, allowed_special=allowed)
            assert loaded.encode(text, allowed_special=allowed) == ids
    (tmp_path / "again").mkdir()
    loaded.to_gpt2(tmp_path / "again")
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_exact_files(read, tmp_path):
    tokenizer = read({"b": 1, "Ġ": 0, "Ġb": 4, "Ġbb": 3, END: 6}, ["Ġ b", "Ġb b"])
    folder = tmp_path / "new"
    folder.mkdir()
    tokenizer.to_gpt2(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["merges.txt", "vocab.json"]
    assert (folder / "vocab.json").read_text("utf-8") == (
        '{"Ġ": 0, "b": 1, "Ġbb": 3, "Ġb": 4, "<|endoftext|>": 6}\n'
    )
    assert (folder / "merges.txt").read_bytes() == "#version: 0.2\nĠ b\nĠb b\n".encode()


def test_a_merge_that_looks_like_a_header_survives(read, tmp_path):
    pieces = [*"#version"] + ["#version"[:size] for size in range(2, 9)] + ["#versions", "s"]
    vocab = {piece: id for id, piece in enumerate(dict.fromkeys(pieces))}
    merges = [f"{'#version'[:size]} {'#versions'[size]}" for size in range(1, 9)]
    tokenizer = read(vocab, merges[::-1])  # that of "#version" comes first
    folder = tmp_path / "new"
    folder.mkdir()
    tokenizer.to_gpt2(folder)
    assert (folder / "merges.txt").read_text("utf-8").startswith("#version: 0.2\n#version s\n")
    assert Tokenizer.from_gpt2(folder) == tokenizer
    assert tokenizer.merges.tolist()[0] == [vocab["#version"], vocab["s"]]


def test_merges_of_white_space(tmp_path):
    """None breaks a line, or looks like the space between two pieces."""
    pieces = [b"  ", b"\n\n", b"\r\n", b" \n", b"\x00\t", b"\x85\xa0", b"\x0b\x0c", b"\x1c "]
    merges = np.array([[*piece] for piece in pieces], np.uint32)
    vocabulary = Vocabulary("bpe", BYTES, merges, pattern=patterns.get("gpt2"))
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    tokenizer.to_gpt2(tmp_path)
    lines = (tmp_path / "merges.txt").read_text("utf-8").split("\n")
    assert lines[1:4] == ["Ġ Ġ", "Ċ Ċ", "č Ċ"] and len(lines) == len(pieces) + 2
    loaded = Tokenizer.from_gpt2(tmp_path)
    assert loaded == tokenizer and loaded.vocabulary[256:] == tuple(pieces)


@given(
    st.lists(st.text("ab# \u0301好", max_size=20), max_size=5),
    st.sampled_from(["bytes", "gpt2"]),
    st.sampled_from(engines.NAMES),
)
def test_any_training_comes_back(corpus, base, engine):
    tokenizer = Tokenizer(
        ["ab", *corpus],
        method="bpe",
        minimum_pair_frequency=1,
        pattern="gpt2",
        base=base,
        special_tokens=[END],
        engine=engine,
    )
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.to_gpt2(folder)
        loaded = Tokenizer.from_gpt2(folder, engine=engine)
    assert loaded == tokenizer
    np.testing.assert_array_equal(loaded.merges, tokenizer.merges)


def test_ranks_are_written_as_merges(tmp_path, engine):
    ranks = Vocabulary(
        "bpe",
        (*BYTES, b"ab", b"abc", b"cab"),
        pattern=patterns.get("gpt2"),
        merge_rule="rank_by_piece",
        whole_piece_lookup=True,
    )
    gpt2.save(ranks, tmp_path, engines.get(engine))
    loaded = Tokenizer.from_gpt2(tmp_path, engine=engine)
    assert loaded.merges.tolist() == [[97, 98], [256, 99], [99, 256]]
    own = Tokenizer.from_vocabulary(ranks, engine)
    for text in ["abc", "cab", "cabc", "abcabcab", "abab cab"]:
        assert loaded.encode(text) == own.encode(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "char"}, "cannot hold the method 'char'"),
        ({"method": "word"}, "cannot hold the method 'word'"),
        ({"pattern": "gpt2", "reserved": ["BOS"]}, r"cannot hold the reserved ids \['BOS'\]"),
        ({}, "that of GPT-2 is meant, not None"),
        ({"pattern": "o200k"}, "that of GPT-2 is meant, not <Pattern o200k>"),
        ({"pattern": "gpt2", "special_tokens": ["b"]}, "are both 'b': this format can give"),
    ],
)
def test_what_is_lost_is_refused(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        Tokenizer("abab", **{"method": "bpe", **options}).to_gpt2(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"added_tokens": {"<t>": 300}}, r"added tokens \['<t>'\], which always match"),
        ({"normalizer": "NFC"}, "the normalizer 'NFC'"),
        ({"prefix_space": True}, "the space put before a text"),
        ({"frame": ((97,), ())}, "the ids put around a text"),
        (
            {"special_tokens": {"<t>": 300}, "token_flags": {"<t>": ("rstrip",)}},
            r"the flags of tokens \{'<t>': \['rstrip'\]\}",
        ),
        ({"alphabet": (*BYTES, None), "unknown": 256}, "an id for what is unknown"),
        ({"alphabet": (*BYTES, b"ab")}, r"the piece b'ab', id 256: its merges make it \[97, 98\]"),
        (
            {"alphabet": (*BYTES, b"abc"), "whole_piece_lookup": True},
            r"cannot hold the piece b'abc', id 256: its merges make it \[97, 98, 99\]",
        ),
        (
            {
                "alphabet": (*BYTES, b"abc"),
                "whole_piece_lookup": True,
                "merge_rule": "rank_by_piece",
            },
            r"cannot hold the piece b'abc', id 256",
        ),
        (
            # There is a merge of `abc`, but `ab` is merged first.
            {
                "alphabet": (*BYTES, b"ab", b"bc", b"abc"),
                "merges": np.array([[97, 98], [98, 99], [97, 257]], np.uint32),
                "merge_ids": np.array([256, 257, 258], np.uint32),
                "whole_piece_lookup": True,
            },
            r"cannot hold the piece b'abc', id 258: its merges make it \[256, 99\]",
        ),
    ],
)
def test_a_vocabulary_that_is_lost_is_refused(options, message, tmp_path, engine):
    parts = {"method": "bpe", "alphabet": BYTES, "pattern": patterns.get("gpt2"), **options}
    with pytest.raises(ValueError, match=message):
        gpt2.save(Vocabulary(**parts), tmp_path, engines.get(engine))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_an_existing_path_is_refused(name, tmp_path):
    (tmp_path / name).write_text("precious")
    with pytest.raises(FileExistsError, match=name):
        bpe().to_gpt2(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "precious"


@pytest.mark.parametrize("error", [OSError(28, "no space"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
@pytest.mark.parametrize("named", [False, True])
def test_both_files_or_none(error, name, named, tmp_path, monkeypatch):
    """Also where an interrupt comes when a file has its name already."""
    new_file = files.new_file

    @contextlib.contextmanager
    def broken(path):
        with new_file(path) as file:
            yield file
            if Path(os.fsdecode(path)).name == name and not named:
                raise error
        if Path(os.fsdecode(path)).name == name and named:
            raise KeyboardInterrupt

    monkeypatch.setattr(files, "new_file", broken)
    with pytest.raises(KeyboardInterrupt if named else type(error)):
        bpe().to_gpt2(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_the_files_of_another_are_left(error, name, tmp_path, monkeypatch):
    """Who writes them while this one is at work, and is interrupted."""
    new_file = files.new_file

    @contextlib.contextmanager
    def interrupted(path):
        with new_file(path) as file:
            yield file
            if Path(os.fsdecode(path)).name == name:
                (tmp_path / name).write_text("of another")
                raise error

    monkeypatch.setattr(files, "new_file", interrupted)
    with pytest.raises(error):
        bpe().to_gpt2(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "of another"


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        bpe().to_gpt2(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        bpe().to_gpt2(tmp_path / "file")


# A peer


def test_tokenizers_reads_what_is_written(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    own = bpe(base="gpt2")
    own.to_gpt2(tmp_path)
    vocab, merges = str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(vocab, merges))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in [*CORPUS, "slow\0 Wörter 🐈🐈", "I'll  go\n\n 123"]:
        assert theirs.encode(text).ids == own.encode(text)
