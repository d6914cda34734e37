"""tiktoken's rank files, known encodings and `Encoding` objects, read and written."""

import base64
import functools
import hashlib
import random
import re
import string
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import growth
from tokbpe import Tokenizer, engines, patterns
from tokbpe.formats import tiktoken, tiktoken_known
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

BYTES = tuple(bytes([byte]) for byte in range(256))
PIECES = (*BYTES, b"ab", b"abc", b" \n\0", None, "é".encode(), b"<e>")
TEXTS = ["", "abcab \n\0 é<e>", "I'LL go: 12345  \n\n", "好 🐈 \u2028", "aaaaabcabcabc" * 9]


def lines(pieces):
    """The content of a rank file."""
    return "".join(
        f"{base64.b64encode(piece).decode()} {rank}\n"
        for rank, piece in enumerate(pieces)
        if piece is not None
    ).encode()


@pytest.fixture(params=engines.NAMES)
def engine(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "own.tiktoken"


@pytest.fixture
def read(path, engine):
    """Write a file of some pieces, or of some bytes, and read it."""

    def read(content, pattern="gpt2", **options):
        path.write_bytes(content if isinstance(content, bytes) else lines(content))
        return Tokenizer.from_tiktoken(path, pattern=pattern, engine=engine, **options)

    return read


@pytest.fixture
def refused(read, path):
    def refused(content, message, **options):
        with pytest.raises(ValueError, match=message) as raised:
            read(content, **options)
        assert str(raised.value).startswith(f"{path}: ")

    return refused


@pytest.fixture(scope="module", autouse=True)
def no_cache():
    """tiktoken keeps no copies of the files that these tests write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        yield


def peer():
    return pytest.importorskip("tiktoken")


def rebuilt(recipe):
    """The encoding that a recipe makes."""
    names = {}
    exec(recipe, names)
    return names["encoding"]


# Rank files


def test_what_is_read(read):
    special = {"<e>": 261, "a b": 300}
    tokenizer = read(PIECES, special_tokens=special)
    vocabulary = tokenizer._vocabulary
    assert vocabulary.alphabet == PIECES
    assert (vocabulary.merge_rule, vocabulary.whole_piece_lookup) == ("rank_by_piece", True)
    assert vocabulary.pattern == patterns.get("gpt2")
    assert len(vocabulary.merges) == 0 and not vocabulary.trained
    assert tokenizer.special_tokens == special
    assert (tokenizer.method, tokenizer.vocab_size, tokenizer.lossless) == ("bpe", 301, True)
    assert tokenizer.vocabulary[257:] == (
        *PIECES[257:], *[None] * 38, b"a b"
    )  # fmt: skip
    assert tokenizer.encode("abcab") == [257, 256]
    # What is a special token is no piece.
    assert tokenizer.encode("<e>") == [60, 101, 62]
    assert tokenizer.encode("<e>a b", allowed_special="all") == [261, 300]
    assert tokenizer.decode([257, 261, 300]) == "abc<e>a b"


def test_line_ends_and_the_order_of_lines_do_not_matter(read):
    data = lines(PIECES)
    shuffled = b"".join(random.Random(1).sample(data.splitlines(True), len(PIECES) - 1))
    changed = [data[:-1], data + b"\n", data + b"\r\n\r\n", b"\n" + data, shuffled]
    for content in [*changed, data.replace(b"\n", b"\r\n")]:
        assert read(content)._vocabulary.alphabet == PIECES


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"YWI 256", "line 257 must be base64, a space and a rank, not b'YWI 256'"),
        (b"YW=I 256", "line 257 must be base64"),
        (b"YWJ= 256", "line 257 must be base64"),
        (b"YW-I 256", "line 257 must be base64"),
        (b"\xffWI= 256", "line 257 must be base64"),
        (b"== 256", "line 257 must be base64"),
        (b" 256", "line 257 must be base64"),
        (b"YWI=", "line 257 must be base64"),
        (b"YWI= ", "line 257 must be base64"),
        (b"YWI=256", "line 257 must be base64"),
        (b"YWI=  256", "line 257 must be base64"),
        (b"YWI=\t256", "line 257 must be base64"),
        (b"YWI= 256 1", "line 257 must be base64"),
        (b"YWI= -1", "line 257 must be base64"),
        (b"YWI= 25.6", "line 257 must be base64"),
        (b"YWI= 0x100", "line 257 must be base64"),
        ("YWI= ٣".encode(), "line 257 must be base64"),
        (b"YWI= 255", "lines 256 and 257 both have the rank 255"),
        (b"YWI= 0", "lines 1 and 257 both have the rank 0"),
        (b"YQ== 256", "lines 98 and 257 both hold b'a'"),
        (b"YWI= 16777216", "line 257 has the rank 16777216, which is above 16777215"),
        (b"YWI= 4294967295", "line 257 has the rank 4294967295, which is above"),
        (b"YWI= 99999999999999999999999", "line 257 must be base64"),
        (b"#version: 0.2", "line 257 must be base64"),
        (b"x" * 1_000_000, "line 257 must be base64.*'xxx"),
    ],
)
def test_a_bad_line(line, message, refused):
    refused(lines(BYTES) + line + b"\nYWJj 257\n", message)


def test_a_missing_byte(refused):
    refused(lines((*BYTES[:65], None, *BYTES[66:], b"ab")), "the single byte 0x41 has no rank")
    refused(b"", "the single byte 0x00 has no rank; 256 have none")


def test_a_file_cut_short(refused):
    data = lines(BYTES)
    for length in range(0, len(data) - 1, 31):
        refused(data[:length], "line|has no rank")


def test_another_file(refused):
    refused(b'{"vocab": {}}', "line 1 must be base64")
    refused(bytes(range(256)) * 1000, "line 1 must be base64")
    refused("YQ== 0\n".encode("utf-16"), "line 1 must be base64")


def test_special_tokens_that_collide(refused):
    refused(PIECES, "special token '<x>' has the id 256 of b'ab'", special_tokens={"<x>": 256})
    refused(PIECES, "'<y>' has the id 300 of", special_tokens={"<x>": 300, "<y>": 300})
    refused(PIECES, "a special token needs a spelling", special_tokens={"": 300})
    refused(PIECES, "id of special token '<x>'", special_tokens={"<x>": -1})
    refused(PIECES, "id of special token '<x>'", special_tokens={"<x>": 2**32})


def test_a_pattern_must_be_given(refused, read):
    refused(PIECES, "holds no pattern: give one, .*'cl100k_base', 'o200k_base'", pattern=None)
    refused(PIECES, "pattern 'gpt5' is", pattern="gpt5")
    refused(PIECES, "matches empty", pattern="a*")
    with pytest.raises(TypeError, match="pattern must be"):
        read(PIECES, pattern=5)


def test_patterns(read):
    spelled = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
    assert read(PIECES, pattern=spelled) == read(PIECES)
    assert read(PIECES, pattern=patterns.get("gpt2")) == read(PIECES)
    assert read(PIECES, pattern="(?s:.+)").pattern is None
    # tiktoken drops what no match covers.
    own = read(PIECES, pattern="[a-z]+")
    assert own.encode("a1b") == [97, 98] and not own.lossless


def test_the_source_must_be_one(engine):
    for source in (5, None, ["a"], object()):
        with pytest.raises(TypeError, match="a path, the name of a known encoding or"):
            Tokenizer.from_tiktoken(source, pattern="gpt2", engine=engine)
    with pytest.raises(ValueError, match="name must be one of 'gpt2', .* not 'gpt5'"):
        Tokenizer.from_tiktoken("file", name="gpt5", engine=engine)
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_tiktoken("no such file", pattern="gpt2", engine=engine)


# Known encodings


def test_the_known_encodings_are_those_of_tiktoken(monkeypatch):
    public = pytest.importorskip("tiktoken_ext.openai_public")

    def file(url, expected_hash):
        return {"url": url, "sha256": expected_hash}

    def gpt2_files(encoder_json_file, encoder_json_hash, **merges):
        return file(encoder_json_file, encoder_json_hash)

    monkeypatch.setattr(public, "load_tiktoken_bpe", file)
    monkeypatch.setattr(public, "data_gym_to_mergeable_bpe_ranks", gpt2_files)
    assert list(public.ENCODING_CONSTRUCTORS) == list(tiktoken_known.KNOWN)
    for name, constructor in public.ENCODING_CONSTRUCTORS.items():
        theirs, ours = constructor(), tiktoken_known.KNOWN[name]
        assert theirs["mergeable_ranks"] == {"url": ours.url, "sha256": ours.sha256}
        assert patterns.from_tiktoken(theirs["pat_str"]) == patterns.get(ours.pattern)
        special = dict(theirs["special_tokens"])
        if name == "o200k_harmony":  # this id has another spelling, too
            assert special.pop("<|reserved_200018|>") == special["<|endofprompt|>"] == 200018
        assert ours.special_tokens == special


@pytest.fixture
def tiny(monkeypatch):
    """A known encoding with a small file: its content."""
    data = lines(PIECES)
    known = tiktoken_known.Known(
        "https://example.org/some/tiny.tiktoken",
        hashlib.sha256(data).hexdigest(),
        "cl100k",
        {"<end>": 300},
    )
    monkeypatch.setitem(tiktoken_known.KNOWN, "tiny", known)
    return data


CACHED_NAME = hashlib.sha1(b"https://example.org/some/tiny.tiktoken").hexdigest()


def is_tiny(tokenizer):
    return (
        tokenizer._vocabulary.alphabet == PIECES
        and tokenizer.pattern == "cl100k"
        and tokenizer.special_tokens == {"<end>": 300}
    )


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", None])
def test_the_cache_folder_of_tiktoken(variable, tiny, tmp_path, monkeypatch, engine):
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    folder = tmp_path
    if variable is None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        folder = tmp_path / "data-gym-cache"
        folder.mkdir()
    else:
        monkeypatch.setenv("DATA_GYM_CACHE_DIR", "elsewhere")
        monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(FileNotFoundError) as raised:
        Tokenizer.from_tiktoken("tiny", engine=engine)
    message = str(raised.value)
    assert raised.value.filename == str(folder / CACHED_NAME) and str(folder) in message
    assert "tokbpe downloads nothing" in message and "tiktoken.get_encoding('tiny')" in message
    (folder / CACHED_NAME).write_bytes(tiny)
    assert is_tiny(Tokenizer.from_tiktoken("tiny", engine=engine))
    (folder / CACHED_NAME).write_bytes(tiny[:-1])
    with pytest.raises(ValueError, match=f"{CACHED_NAME}: this is not the file tiny.tiktoken"):
        Tokenizer.from_tiktoken("tiny", engine=engine)
    assert (folder / CACHED_NAME).read_bytes() == tiny[:-1]


def test_no_cache_folder(tiny, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    with pytest.raises(FileNotFoundError, match="TIKTOKEN_CACHE_DIR is empty"):
        Tokenizer.from_tiktoken("tiny")


def test_a_known_file_elsewhere(tiny, tmp_path, engine):
    (tmp_path / "tiny.tiktoken").write_bytes(tiny)
    (tmp_path / "other").write_bytes(tiny)
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "tiny.tiktoken").write_bytes(tiny)
    for source, name in [
        (tmp_path / "tiny.tiktoken", None),
        (str(tmp_path / "other"), "tiny"),
        (bytes(tmp_path / "other"), "tiny"),
        (tmp_path, "tiny"),
        (folder, None),
        (f"{folder}/", None),
    ]:
        assert is_tiny(Tokenizer.from_tiktoken(source, name=name, engine=engine))


def test_a_changed_file_is_refused_unless_all_is_given(tiny, tmp_path, engine):
    path = tmp_path / "tiny.tiktoken"
    path.write_bytes(tiny + b"YWJj 999\n".replace(b"YWJj", b"enp6"))
    for options in ({}, {"pattern": "gpt2"}, {"special_tokens": {}}):
        with pytest.raises(ValueError, match="not the file tiny.tiktoken of tiktoken.*SHA-256"):
            Tokenizer.from_tiktoken(path, engine=engine, **options)
    own = Tokenizer.from_tiktoken(path, pattern="gpt2", special_tokens={}, engine=engine)
    assert own.vocabulary[999] == b"zzz"
    assert (own.pattern, own.special_tokens) == ("gpt2", {})


def test_what_is_given_replaces_what_is_known(tiny, tmp_path, engine):
    path = tmp_path / "tiny.tiktoken"
    path.write_bytes(tiny)
    more = {"<end>": 300, "<more>": 301}
    own = Tokenizer.from_tiktoken(path, special_tokens=more, engine=engine)
    assert (own.pattern, own.special_tokens) == ("cl100k", more)
    assert Tokenizer.from_tiktoken(path, special_tokens={}, engine=engine).special_tokens == {}
    own = Tokenizer.from_tiktoken(path, pattern="gpt2", engine=engine)
    assert (own.pattern, own.special_tokens) == ("gpt2", {"<end>": 300})


def test_gpt2_is_its_very_file(tmp_path):
    for content in (b"{}", lines(PIECES)):
        (tmp_path / "encoder.json").write_bytes(content)
        for options in ({}, {"pattern": "gpt2", "special_tokens": {}}):
            with pytest.raises(ValueError, match="this is not the file encoder.json"):
                Tokenizer.from_tiktoken(tmp_path, name="gpt2", **options)


# Encoding objects


def own_encoding(**options):
    parts = {
        "name": "own",
        "pat_str": r"\p{L}+|\P{L}+",
        "mergeable_ranks": {piece: rank for rank, piece in enumerate(PIECES) if piece},
        "special_tokens": {"<end>": 300, "<|x|>": 302},
        **options,
    }
    return peer().Encoding(**parts)


def test_an_encoding(engine):
    encoding = own_encoding()
    tokenizer = Tokenizer.from_tiktoken(encoding, engine=engine)
    assert tokenizer._vocabulary.alphabet == PIECES
    assert tokenizer._vocabulary.pattern.sources == (r"\p{L}+|\P{L}+",)
    assert tokenizer.special_tokens == {"<end>": 300, "<|x|>": 302}
    for text in [*TEXTS, "<end>ab<|x|>"]:
        assert tokenizer.encode(text) == encoding.encode(text, disallowed_special=())
        assert tokenizer.encode(text, allowed_special="all") == encoding.encode(
            text, allowed_special="all"
        )


def test_an_encoding_has_all_it_needs():
    for options in ({"name": "gpt2"}, {"pattern": "gpt2"}, {"special_tokens": {}}):
        with pytest.raises(ValueError, match="an Encoding has a name, a pattern and special"):
            Tokenizer.from_tiktoken(own_encoding(), **options)


def test_an_encoding_of_a_class_of_ones_own():
    class Own(peer().Encoding):
        pass

    own = Own("own", pat_str="[^a]+|a", mergeable_ranks=own_encoding()._mergeable_ranks,
              special_tokens={})  # fmt: skip
    assert Tokenizer.from_tiktoken(own).encode("bab") == [98, 97, 98]


def test_an_encoding_that_does_not_do(monkeypatch):
    ranks = {piece: rank for rank, piece in enumerate(BYTES[1:])}
    with pytest.raises(ValueError, match="the single byte 0x00 has no rank"):
        Tokenizer.from_tiktoken(own_encoding(mergeable_ranks=ranks))
    with pytest.raises(ValueError, match="'<y>' has the id 300 of"):
        Tokenizer.from_tiktoken(own_encoding(special_tokens={"<x>": 300, "<y>": 300}))
    placeholder = own_encoding(special_tokens={"<|reserved_300|>": 300, "<y>": 300})
    assert Tokenizer.from_tiktoken(placeholder).special_tokens == {"<y>": 300}


def test_tiktoken_is_not_imported(path):
    path.write_bytes(lines(PIECES))
    code = (
        "import sys, tokbpe\n"
        "tokbpe.Tokenizer.from_tiktoken(sys.argv[1], pattern='gpt2').encode('a')\n"
        "assert 'tiktoken' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True, cwd=path.parent)


def test_what_looks_like_an_encoding_is_none():
    fake = types.SimpleNamespace(_mergeable_ranks={}, _pat_str="a", _special_tokens={})
    with pytest.raises(TypeError, match="not SimpleNamespace"):
        Tokenizer.from_tiktoken(fake)


# Writing

CORPUS = ["low lower lowest newer newest\n" * 3, "Grüße 🐈 好 \0\xad" * 2, "aaaa aaaa"]


def bpe(**options):
    return Tokenizer(CORPUS, method="bpe", vocabulary_size=280, minimum_pair_frequency=1, **options)


def test_the_exact_file(read, path, tmp_path):
    tokenizer = read(PIECES, special_tokens={"<e>": 261, "x'y": 300})
    recipe = tokenizer.to_tiktoken(tmp_path / "written.tiktoken")
    data = (tmp_path / "written.tiktoken").read_bytes()
    assert data == lines(PIECES[:-1])  # the special token stands in the recipe
    assert (
        recipe
        == f"""\
import tiktoken
from tiktoken.load import load_tiktoken_bpe

encoding = tiktoken.Encoding(
    'written',
    pat_str={patterns.to_tiktoken(patterns.get("gpt2"))!r},
    mergeable_ranks=load_tiktoken_bpe(
        {str(tmp_path / "written.tiktoken")!r},
        '{hashlib.sha256(data).hexdigest()}',
    ),
    special_tokens={{'<e>': 261, "x'y": 300}},
)
"""
    )


@pytest.mark.parametrize("pattern", [None, "gpt2", "cl100k", "o200k", r"[a-z]+", r"\S+\Z|\s"])
@pytest.mark.parametrize("special_ids", ["base", "first", "end"])
@pytest.mark.parametrize("base", ["bytes", "gpt2"])
def test_what_was_trained_encodes_alike_in_tiktoken(pattern, special_ids, base, tmp_path):
    peer()
    own = bpe(pattern=pattern, special_ids=special_ids, base=base, special_tokens=["<e>", " \n"])
    path = tmp_path / "own.tiktoken"
    encoding = rebuilt(own.to_tiktoken(path))
    back = Tokenizer.from_tiktoken(encoding)
    again = Tokenizer.from_tiktoken(
        path,
        pattern=encoding._pat_str,
        special_tokens=own.special_tokens,
    )
    assert again == back and back.vocabulary == own.vocabulary and back.lossless
    assert encoding.n_vocab == own.vocab_size
    for text in [*CORPUS, *TEXTS, "a1b<e> \n slowest", "low" * 60]:
        for allowed in ("all", ()):
            ids = own.encode(text, allowed_special=allowed)
            theirs = encoding.encode(text, allowed_special=allowed or set(), disallowed_special=())
            assert ids == theirs == back.encode(text, allowed_special=allowed)
        assert encoding.decode(ids) == text
    back.to_tiktoken(tmp_path / "again.tiktoken")
    assert (tmp_path / "again.tiktoken").read_bytes() == path.read_bytes()


@given(
    st.lists(st.text("ab\u0301 好", max_size=20), max_size=5),
    st.text(max_size=30) | st.text("ab\u0301 好", max_size=60),
    st.sampled_from([None, "gpt2", "[ab]+"]),
)
def test_any_training_encodes_alike_in_tiktoken(corpus, text, pattern):
    tiktoken = peer()
    own = Tokenizer(["ab", *corpus], method="bpe", minimum_pair_frequency=1, pattern=pattern)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.tiktoken"
        recipe = own.to_tiktoken(path)
        read = Tokenizer.from_tiktoken(path, pattern="(?s:.+)")
    pat_str = re.search(r"pat_str=(.*),\n", recipe)[1]
    encoding = tiktoken.Encoding(
        "own",
        pat_str=eval(pat_str),
        mergeable_ranks={piece: id for id, piece in read.items()},
        special_tokens={},
    )
    for document in [text, *corpus]:
        assert encoding.encode(document) == own.encode(document)


def test_a_changed_file_is_read_again(tmp_path, monkeypatch):
    peer()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "own.tiktoken"
    small = rebuilt(Tokenizer.from_bytes().to_tiktoken(path))
    path.unlink()
    large = rebuilt(bpe().to_tiktoken(path))
    assert (small.n_vocab, large.n_vocab) == (256, 280)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "char"}, "cannot hold the method 'char'"),
        ({"method": "word"}, "cannot hold the method 'word'"),
        ({"method": "bpe", "reserved": ["BOS"]}, r"cannot hold the reserved ids \['BOS'\]"),
        ({"method": "byte"}, "tiktoken needs all single bytes; 254 have no id, 0x00 is the first"),
        ({"method": "bpe", "pattern": "deepseek_v3"}, "has 3 regular expressions"),
        (
            {"method": "bpe", "special_tokens": ["<|a|>b", "<|a|", "<|a|>"]},
            r"special token '<\|a\|>' begins with another one, '<\|a\|'",
        ),
    ],
)
def test_what_is_lost_is_refused(options, message, path):
    with pytest.raises(ValueError, match=message):
        Tokenizer("abab", **options).to_tiktoken(path)
    assert not path.exists()


MERGES = np.array([[98, 99], [97, 98]], np.uint32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"added_tokens": {"<t>": 300}}, r"added tokens \['<t>'\], which always match"),
        ({"normalizer": "NFC"}, "the normalizer 'NFC'"),
        ({"prefix_space": True}, "the space put before a text"),
        ({"frame": ((97,), ())}, r"the ids put around a text \(\(97,\), \(\)\)"),
        (
            {"special_tokens": {"<t>": 300}, "token_flags": {"<t>": ("lstrip",)}},
            r"the flags of tokens \{'<t>': \['lstrip'\]\}",
        ),
        (
            {"special_tokens": {"<t>": 300, "u": 301}, "token_flags": {"<t>": ("normalized",)}},
            r"the flags of tokens \{'<t>': \['normalized'\]\}",
        ),
        ({"alphabet": (*BYTES, None), "unknown": 256}, "an id for what is unknown"),
        ({"method": "own"}, "the method 'own'"),
        (
            {"merges": MERGES, "merge_ids": np.array([257, 256], np.uint32)},
            "merge 0 makes the id 257, the next one the lower id 256",
        ),
        ({"alphabet": (*BYTES, b"ab")}, r"no merge joins \[97, 98\] to the piece b'ab', id 256"),
        ({"alphabet": (*BYTES, b"abc")}, "lookup of whole pieces would find it"),
        (
            {"alphabet": (*BYTES, b"abc"), "merge_rule": "rank_by_piece"},
            r"the piece b'abc', id 256, becomes \[97, 98, 99\] by merging; lookup",
        ),
    ],
)
def test_a_vocabulary_that_is_lost_is_refused(options, message, path, engine):
    vocabulary = Vocabulary(**{"method": "bpe", "alphabet": BYTES, **options})
    with pytest.raises(ValueError, match=message):
        tiktoken.save(vocabulary, path, engines.get(engine))
    assert not path.exists()


def test_what_looks_lost_and_is_not(tmp_path, engine):
    peer()
    flags = {"<t>": ("normalized",), "u": ("normalized",)}
    ranks = {"alphabet": (*BYTES, b"ab"), "merge_rule": "rank_by_piece"}
    found = {"alphabet": (*BYTES, b"abc"), "whole_piece_lookup": True}
    gaps = Pattern(None, ("[a-z]+",), keep_gaps=False)
    for number, options in enumerate(
        [
            {"special_tokens": {"<t>": 300, "u": 301}, "token_flags": flags},
            ranks,
            found,
            {"pattern": gaps},
        ]
    ):
        vocabulary = Vocabulary(**{"method": "bpe", "alphabet": BYTES, **options})
        path = tmp_path / f"{number}.tiktoken"
        recipe = tiktoken.save(vocabulary, path, engines.get(engine))
        assert path.read_bytes() == lines(vocabulary.alphabet)
        own = Tokenizer.from_vocabulary(vocabulary, engine)
        encoding = rebuilt(recipe)
        for text in ["abc", "abcabab", "xabcy", "ab1ab", "u<t>"]:
            assert encoding.encode(text, allowed_special="all") == own.encode(
                text, allowed_special="all"
            )


def test_an_existing_path_is_refused(path):
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=path.name):
        bpe().to_tiktoken(path)
    assert path.read_text() == "precious"


# Real vocabularies


@pytest.fixture(scope="module")
def real(data):
    """Tokenizers of OpenAI's files, each read once."""
    return functools.cache(
        lambda name, engine=None: Tokenizer.from_tiktoken(
            data / "vocab" / f"{name}_base.tiktoken", engine=engine
        )
    )


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("你好，世界", [57668, 53901, 3922, 3574, 244, 98220]),
        ("नमस्ते", [61196, 88344, 79468, 31584, 97, 35470]),
        ("a\r\n\r\nb", [64, 881, 65]),
        ("I'LL don't", [40, 6, 4178, 1541, 956]),
        ("1234567", [4513, 10961, 22]),
        ("e\u0301", [68, 54939]),
        ("é", [978]),
        ("😀", [76460, 222]),
        ("<|endoftext|>", [27, 91, 8862, 728, 428, 91, 29]),
        (b"\xff\xfehello", [187, 186, 15339]),
    ],
    ids=ascii,
)
def test_ids_of_cl100k(text, ids, real, engine):
    tokenizer = real("cl100k", engine)
    data = text.encode() if isinstance(text, str) else text
    assert tokenizer.encode_bytes(data) == ids
    if isinstance(text, str):
        assert tokenizer.encode(text) == ids and tokenizer.decode(ids) == text
    assert tokenizer.decode_bytes(ids) == data


def test_a_special_token_of_cl100k(real, engine):
    text = "<|endoftext|>"
    assert real("cl100k", engine).encode(text, allowed_special={text}) == [100257]


@pytest.mark.parametrize(("size", "tokens"), [(82, 2), (128, 1), (1000, 9)])
def test_spaces_of_cl100k(size, tokens, real, engine):
    assert real("cl100k", engine).count(" " * size) == tokens
    assert len(real("cl100k", engine).encode(" " * size)) == tokens


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("name", "count", "id"),
    [("cl100k", 125_000, 70540), ("o200k", 125_000, 117525), ("r50k", 250_000, 24794)],
)
def test_a_megabyte_of_one_letter(name, count, id, real):
    assert real(name).encode("a" * MEGABYTE) == [id] * count


def test_a_megabyte_of_spaces(real):
    assert real("cl100k").count(" " * MEGABYTE) == 7813
    assert real("cl100k").decode(real("cl100k").encode(" " * MEGABYTE)) == " " * MEGABYTE


LONG_TEXTS = {
    "a": lambda size: "a" * size,
    "ab": lambda size: "ab" * (size // 2),
    "^": lambda size: "^" * size,
    "_": lambda size: "_" * size,
    "digits": lambda size: "1234567890" * (size // 10),
    "contractions": lambda size: "'s" * (size // 2),
    "emoji": lambda size: "😀" * (size // 4),
    "letters with accents": lambda size: "é" * (size // 2),
    "Chinese": lambda size: "中" * (size // 3),
    "spaces and a letter": lambda size: " " * size + "x",
    "line ends": lambda size: "\n" * size,
    "random letters": lambda size: "".join(random.Random(1).choices(string.ascii_letters, k=size)),
    "base64": lambda size: base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode(),
}


@pytest.mark.parametrize("name", ["cl100k", "o200k", "r50k"])
@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_a_megabyte(kind, name, real):
    """It comes back, and takes about four times as long as a quarter of it."""
    tokenizer = real(name)
    quarter, whole = LONG_TEXTS[kind](MEGABYTE // 4), LONG_TEXTS[kind](MEGABYTE)
    assert growth(lambda text: tokenizer.encode_array(text, threads=1), quarter, whole, 10) < 10
    assert tokenizer.decode(tokenizer.encode(whole)) == whole
