"""The native artifact, and states: what comes back, and what is refused."""

import copy
import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import evenly
from tokbpe import PieceCounts, StreamedCorpus, Tokenizer, engines, methods
from tokbpe.formats import artifact
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import SPECIAL_IDS, Vocabulary

CORPUS = ["low lower lowest\n", "new newer newest \r\n", "a\0b a\0b a\0b Grüße 🐈 好", "<e> x"] * 3
SPECIALS = {"special_tokens": ["z z", "<e>", "a\nb\0", "🐈."], "reserved": ["PAD", "BOS", "EOS"]}
TEXTS = [
    *CORPUS,
    "",
    "the newest lowest 123\n\n a\0b z z<e>a\nb\0🐈. z",
    "z <e>z z \x00\x00 lowlow  low\r\n",
]


def bpe(size, corpus=CORPUS, **options):
    return Tokenizer(corpus, method="bpe", vocabulary_size=size, **options)


def words(size, **options):
    return Tokenizer(CORPUS, method="word", vocabulary_size=size, **options)


MADE = {
    "byte": lambda engine: Tokenizer(CORPUS, engine=engine),
    "byte, specials first": lambda engine: Tokenizer(
        CORPUS, special_ids="first", engine=engine, **SPECIALS
    ),
    "all bytes": lambda engine: Tokenizer.from_bytes(engine=engine, **SPECIALS),
    "bpe": lambda engine: bpe(280, engine=engine),
    "bpe, no merges": lambda engine: bpe(256, engine=engine),
    "bpe, gpt2": lambda engine: bpe(270, pattern="gpt2", base="gpt2", engine=engine),
    "bpe, three patterns": lambda engine: bpe(270, pattern="deepseek_v3", engine=engine),
    "bpe, own pattern": lambda engine: bpe(270, pattern="[a-z]+\n?|\r\n|\\p{Lu}\t", engine=engine),
    "bpe, base": lambda engine: bpe(275, special_ids="base", engine=engine, **SPECIALS),
    "bpe, first": lambda engine: bpe(275, special_ids="first", engine=engine, **SPECIALS),
    "bpe, end": lambda engine: bpe(275, special_ids="end", engine=engine, **SPECIALS),
    "bpe, greatest": lambda engine: bpe(270, tie_break="greatest", engine=engine),
    "bpe, first met": lambda engine: bpe(
        270, tie_break="first", minimum_pair_frequency=3, engine=engine
    ),
    "bpe, bytes": lambda engine: bpe(258, corpus=[b"\xff\xfe\0\xff\xfe\0\0\0\0\0"], engine=engine),
    "char": lambda engine: Tokenizer(CORPUS, method="char", engine=engine),
    "char, specials": lambda engine: Tokenizer(CORPUS, method="char", engine=engine, **SPECIALS),
    "word": lambda engine: words(50, engine=engine),
    "word, end": lambda engine: words(50, special_ids="end", engine=engine, **SPECIALS),
    "truncated": lambda engine: bpe(280, engine=engine, **SPECIALS).truncated(270),
    "extended": lambda engine: bpe(270, engine=engine).extended("xyxy zyzyz xyzxyz", 272),
    "extended, end": lambda engine: bpe(270, special_ids="end", engine=engine, **SPECIALS).extended(
        "xyxy zyzyz xyzxyz", 272
    ),
    "of a state": lambda engine: Tokenizer.from_state(
        json.loads(json.dumps(bpe(275, engine=engine, **SPECIALS).state(), sort_keys=True)), engine
    ),
    "of a pickle": lambda engine: pickle.loads(
        pickle.dumps(bpe(270, pattern=Pattern(None, (".\n|é",)), engine=engine))
    ),
}


@pytest.fixture(params=MADE)
def name(request):
    return request.param


@pytest.fixture(params=engines.NAMES)
def engine(request):
    return request.param


def outcome(call, *arguments, **options):
    """What a call gives, or how it fails."""
    try:
        return call(*arguments, **options)
    except (ValueError, AttributeError) as error:
        return type(error), str(error)


def same(one, other, texts=TEXTS):
    """Two tokenizers are alike in all that can be seen."""
    assert one == other and hash(one) == hash(other)
    assert one.fingerprint() == other.fingerprint()
    assert one.state() == other.state()
    assert list(one.special_tokens) == list(other.special_tokens)
    assert list(one.reserved) == list(other.reserved)
    for text in texts:
        for options in ({}, {"allowed_special": "all"}, {"bos": True, "eos": True}):
            ids = outcome(one.encode, text, **options)
            assert ids == outcome(other.encode, text, **options)
            if isinstance(ids, list):
                assert one.decode(ids) == other.decode(ids)
                assert one.decode_bytes(ids) == other.decode_bytes(ids)
    for attribute in (
        "vocabulary", "method", "pattern", "lossless", "vocab_size", "target_vocab_size", "bos_id"
    ):  # fmt: skip
        assert outcome(getattr, one, attribute) == outcome(getattr, other, attribute)
    for array in ("merges", "merge_counts"):
        first, second = getattr(one, array), getattr(other, array)
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        assert not second.flags.writeable
        np.testing.assert_array_equal(first, second)


def reloaded(tokenizer, folder, engine=None):
    tokenizer.save(folder / "tokenizer")
    return Tokenizer.load(folder / "tokenizer", engine, trust_pattern=True)


# What comes back


def test_saved_and_loaded(name, engine, tmp_path):
    tokenizer = MADE[name](engine)
    loaded = reloaded(tokenizer, tmp_path, engine)
    same(tokenizer, loaded)
    assert repr(loaded) == repr(tokenizer)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "tokenizer").read_bytes()
    same(loaded, pickle.loads(pickle.dumps(loaded)), TEXTS[:1])


def test_the_other_engine_reads_it(name, engine, tmp_path):
    tokenizer = MADE[name](engine)
    (other,) = {*engines.NAMES} - {engine}
    loaded = reloaded(tokenizer, tmp_path, other)
    assert f"engine {other!r}" in repr(loaded)
    same(tokenizer, loaded)


def test_both_engines_give_the_same_bytes(name, tmp_path):
    for engine in engines.NAMES:
        MADE[name](engine).save(tmp_path / engine)
    one, other = ((tmp_path / engine).read_bytes() for engine in engines.NAMES)
    assert one == other


def test_what_is_derived_from_a_loaded_one(engine, tmp_path):
    tokenizer = MADE["bpe, first"](engine)
    loaded = reloaded(tokenizer, tmp_path)
    assert list(loaded.special_tokens) == SPECIALS["special_tokens"]
    same(tokenizer.truncated(270), loaded.truncated(270))
    same(tokenizer.extended("xyxyxy", 276), loaded.extended("xyxyxy", 276))


def without_documents(tokenizer, path):
    """The bytes of an artifact that does not tell what was learned from."""
    plain = tokenizer.state()["vocabulary"]
    artifact.save(replace(Vocabulary.from_plain(plain), provenance=()), path)
    return path.read_bytes()


def test_equal_trainings_differ_by_their_documents_alone(engine, tmp_path):
    one, other = bpe(270, engine=engine), bpe(270, corpus=CORPUS[::-1], engine=engine)
    assert one.fingerprint() != other.fingerprint()
    assert without_documents(one, tmp_path / "one") == without_documents(other, tmp_path / "other")


@pytest.mark.parametrize("tie_break", ["smallest", "greatest"])
def test_all_ways_to_the_same_documents_give_the_same_bytes(tie_break, engine, tmp_path):
    options = {"tie_break": tie_break, "pattern": "gpt2", "engine": engine}
    texts = tmp_path / "in"
    texts.mkdir()
    for number, text in enumerate(CORPUS):
        (texts / f"{number}.txt").write_bytes(text.encode())
    shuffled = random.Random(5).sample(CORPUS, len(CORPUS))
    counts = PieceCounts(shuffled, pattern="gpt2", engine=engine)
    ways = {
        "list": bpe(275, **options),
        "shuffled": bpe(275, corpus=shuffled, **options),
        "iterator": bpe(275, corpus=iter(CORPUS), **options),
        "files": bpe(275, corpus=StreamedCorpus.from_files(texts), **options),
        "counts": Tokenizer.from_counts(
            counts, vocabulary_size=275, tie_break=tie_break, engine=engine
        ),
        **{f"{threads} threads": bpe(275, threads=threads, **options) for threads in (1, 2, 4)},
    }
    assert len({without_documents(way, tmp_path / name) for name, way in ways.items()}) == 1


def test_no_hash_of_python_matters(tmp_path):
    """Sets of texts, of which the order depends on it, are nowhere a part of the result."""
    code = (
        "import sys, warnings\n"
        "from tokbpe import Tokenizer, engines, methods\n"
        "warnings.simplefilter('ignore')\n"
        "texts = ['low lower lowest', 'newest widest ' * 3, 'Grüße 🐈 好 <e>']\n"
        "for engine in engines.NAMES:\n"
        "    for method in methods.METHODS:\n"
        "        options = {'special_tokens': ['<e>', 'z', '<f>'], 'reserved': ['EOS', 'BOS']}\n"
        "        made = Tokenizer(texts, method=method, engine=engine, **options)\n"
        "        made.save(f'{sys.argv[1]} {engine} {method}')\n"
    )
    for seed in ("0", "1", "12345"):
        subprocess.run(
            [sys.executable, "-c", code, seed],
            check=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONHASHSEED": seed,
                "PYTHONUTF8": "1",
            },
        )
    for method in methods.METHODS:
        saved = [path.read_bytes() for path in tmp_path.glob(f"* {method}")]
        assert len(saved) == 6 and len(set(saved)) == 1


def test_many_merges(tmp_path):
    pairs = np.stack(np.divmod(np.arange(2**16, dtype=np.uint32), 256), axis=1)
    vocabulary = Vocabulary(
        "bpe",
        tuple(bytes([byte]) for byte in range(256)),
        merges=pairs[:, ::-1].copy(),
        merge_ids=np.arange(2**16, dtype=np.uint32)[::-1] + np.uint32(2**31),
        merge_counts=np.arange(2**16, dtype=np.uint64) + np.uint64(2**40),
    )
    artifact.save(vocabulary, tmp_path / "tokenizer")
    loaded = artifact.load(tmp_path / "tokenizer", engines.get())
    assert loaded.fingerprint() == vocabulary.fingerprint()
    assert loaded.merge_counts.dtype == np.uint64 and loaded.merges.dtype == np.uint32


def test_a_method_that_is_not_registered(monkeypatch, tmp_path):
    monkeypatch.setitem(methods.METHODS, "own", methods.METHODS["byte"])
    vocabulary = Vocabulary("own", (b"a",))
    Tokenizer.from_vocabulary(vocabulary).save(tmp_path / "tokenizer")
    assert Tokenizer.load(tmp_path / "tokenizer").method == "own"
    monkeypatch.delitem(methods.METHODS, "own")
    with pytest.raises(ValueError, match="method must be one of 'byte', .*, not 'own'"):
        Tokenizer.load(tmp_path / "tokenizer")


@pytest.mark.parametrize("number", [int, np.int64, np.uint16])
def test_sizes_of_any_whole_number(number, tmp_path):
    tokenizer = bpe(number(270), minimum_pair_frequency=number(2))
    same(bpe(270, minimum_pair_frequency=2), reloaded(tokenizer, tmp_path))
    tokenizer = tokenizer.extended("xyxyxy", number(271), minimum_pair_frequency=number(1))
    same(tokenizer, Tokenizer.from_state(tokenizer.state()))


CHARACTERS = st.characters(exclude_categories=["Cs"])
NAMES = st.lists(st.text("<>e \n\0é", min_size=1, max_size=4) | st.text(CHARACTERS, min_size=1),
                 max_size=4, unique=True)  # fmt: skip
TEXT = st.text("ab \n", max_size=30) | st.text(CHARACTERS, max_size=20)
PATTERN = st.sampled_from([None, "gpt2", "cl100k", "o200k", "deepseek_v3", "[a-z]+\n| |\0"])


@st.composite
def tokenizers(draw):
    corpus = draw(st.lists(TEXT, min_size=1, max_size=4).filter(any))
    options = {
        "special_tokens": draw(NAMES),
        "reserved": draw(NAMES),
        "engine": draw(st.sampled_from(engines.NAMES)),
        "method": draw(evenly(*map(st.just, methods.METHODS))),
    }
    if options["method"] in ("byte", "bpe"):
        options["special_ids"] = draw(st.sampled_from(SPECIAL_IDS))
    if options["method"] == "bpe":
        options["pattern"] = draw(PATTERN)
        options["base"] = draw(st.sampled_from(["bytes", "gpt2"]))
    if options["method"] in ("bpe", "word"):
        options["tie_break"] = draw(st.sampled_from(["smallest", "first", "greatest"]))
        options["minimum_pair_frequency"] = draw(st.integers(1, 3))
    try:
        return Tokenizer(corpus, **options), corpus
    except ValueError as error:
        assert "to learn from" in str(error)  # all of the corpus is special
        return Tokenizer.from_bytes(), corpus


@given(tokenizers(), st.lists(TEXT, max_size=2), st.sampled_from(engines.NAMES))
def test_any_tokenizer_comes_back(made, texts, engine):
    tokenizer, corpus = made
    with tempfile.TemporaryDirectory() as folder:
        loaded = reloaded(tokenizer, Path(folder), engine)
        same(tokenizer, loaded, [*corpus, *texts, "".join(tokenizer.special_tokens)])


# What is refused


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a small artifact that has all kinds of parts."""
    path = tmp_path_factory.mktemp("small") / "tokenizer"
    tokenizer = Tokenizer(
        "abab bab", method="word", vocabulary_size=8, special_tokens=["<e>"], special_ids="end"
    )
    tokenizer.extended("abab bb bb", 10).save(path)
    return path.read_bytes()


@pytest.fixture
def refused(tmp_path):
    path = tmp_path / "damaged"

    def refused(data, message=None):
        path.unlink(missing_ok=True)  # some file systems are slow to write over a file
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message) as raised:
            Tokenizer.load(path)
        assert str(raised.value).startswith(f"{path}: ")

    return refused


def test_any_changed_byte(small, refused):
    for place, byte in enumerate(small):
        for change in (1, random.Random(place).randrange(2, 256)):
            refused(small[:place] + bytes([byte ^ change]) + small[place + 1 :])


def test_any_length(small, refused):
    for length in range(len(small)):
        refused(small[:length])


def test_bytes_too_many(small, refused):
    for more in (b"\0", b"\n", b" ", small, bytes(1000)):
        refused(small + more, "damaged")
    for place in range(0, len(small), 7):
        refused(small[:place] + b"\n" + small[place:])
        refused(small[:place] + small[place + 1 :])


def test_another_version(small, refused):
    rest = small.removeprefix(b"tokbpe tokenizer 2\n")
    message = "the file has version 3, of a newer tokbpe; this one reads version 2"
    refused(b"tokbpe tokenizer 3\n" + rest, message)
    refused(b"tokbpe tokenizer 3\n", message)
    refused(b"tokbpe tokenizer 3\nall is otherwise there", message)
    refused(b"tokbpe tokenizer 123\n" + rest, "version 123, of a newer tokbpe")
    refused(b"tokbpe tokenizer 0\n" + rest, "version 0, of another tokbpe")


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"#version: 0.2\nl o\n", b'{"vocab": {}}', b"\x80\x04\x95", b"tokbpe"]
)
def test_what_is_no_artifact_at_all(data, refused):
    refused(data, "this is no tokenizer that tokbpe saved: it starts with b")
    refused(data + bytes(10_000), "it starts with b")


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tokenizer.load(tmp_path / "missing")
    with pytest.raises(OSError):
        Tokenizer.load(tmp_path)


def test_an_existing_path_is_refused(tmp_path):
    tokenizer = Tokenizer("ab")
    tokenizer.save(tmp_path / "tokenizer")
    before = (tmp_path / "tokenizer").read_bytes()
    with pytest.raises(FileExistsError, match="tokenizer"):
        bpe(260).save(tmp_path / "tokenizer")
    assert (tmp_path / "tokenizer").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer"]


def test_a_closed_tokenizer_saves_nothing(tmp_path):
    tokenizer = Tokenizer("ab")
    tokenizer.close()
    for save in (tokenizer.save, tokenizer.to_json):
        with pytest.raises(ValueError, match="closed"):
            save(tmp_path / "tokenizer")
    assert list(tmp_path.iterdir()) == []


# Files with a right checksum, made with intent or by another program


def signed(header, body=b""):
    if not isinstance(header, bytes):
        header = json.dumps(header).encode()
    first_line, content = b"tokbpe tokenizer 2\n", header + b"\n" + body
    digest = hashlib.sha256(first_line + content).hexdigest().encode()
    return first_line + digest + b"\n" + content


def parts_of(small):
    header, _, body = small.split(b"\n", 2)[2].partition(b"\n")
    return json.loads(header), body


def test_signed_as_it_is_made(small):
    assert len(small.split(b"\n", 2)[2]) > 500
    header, body = parts_of(small)
    canonical = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    assert signed(canonical, body) == small


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("merges", None, None),
        ("merges", [[0, 1]], "merges must have a dtype and a shape"),
        ("merges", {"dtype": "<u4"}, "merges must have a dtype and a shape"),
        ("merges", {"dtype": "<u4", "shape": 3}, None),
        ("merges", {"dtype": ">u4", "shape": [4, 2]}, "must have the dtype '<u4', not '>u4'"),
        ("merges", {"dtype": "|O", "shape": [4, 2]}, "merges must have the dtype"),
        ("merges", {"dtype": "<u4", "shape": [2**40, 2]}, "a size in the shape of merges must be"),
        ("merges", {"dtype": "<u4", "shape": [60, 60]}, r"merges .*does not fit into the file"),
        ("merges", {"dtype": "<u4", "shape": [-1, 2]}, "a size in the shape of merges must be"),
        ("merges", {"dtype": "<u4", "shape": [True, 2]}, "must be a whole number, not bool"),
        ("merges", {"dtype": "<u4", "shape": [1.0, 2]}, "must be a whole number, not float"),
        ("merges", {"dtype": "<u4", "shape": [0, 2]}, "do not fill"),
        ("merges", {"dtype": "<u4", "shape": [1] * 100}, None),
        ("unicode", "15.0.0", r"of Unicode '15\.0\.0', not '16\.0\.0'"),
        ("unit", "token", "unit must be one of"),
        ("special_ids", "middle", "special_ids must be one of"),
        ("special_tokens", {"<e>": 0}, "special token '<e>' has the id 0"),
        ("special_tokens", {"": 50}, "special token needs a spelling that is not empty"),
        ("special_tokens", {"<e>": -1}, "from 0 to"),
        ("alphabet", ["61"], "alphabet must have a dtype and a shape"),
        ("alphabet", {"dtype": "<i4", "shape": [0]}, "do not fill"),
        ("alphabet", None, "the file has no alphabet"),
        ("pattern", {"name": None, "sources": ["(a"], "keep_gaps": True}, None),
        ("pattern", {"name": None, "sources": ["a*"], "keep_gaps": True}, None),
        ("more", 1, "too much, the fields"),
    ],
)
def test_a_wrong_part(small, refused, name, value, message):
    header, body = parts_of(small)
    refused(signed({**header, name: value}, body), message)


def test_a_missing_part(small, refused):
    header, body = parts_of(small)
    for name in header:
        refused(signed({key: header[key] for key in header if key != name}, body))


@pytest.mark.parametrize("header", [b"", b"{", b"[]", b"5", b"null", b'"a"', b"[" * 100_000])
def test_a_header_that_is_no_object(header, refused):
    refused(signed(header))


def places(value, place=()):
    """The places of all values inside plain data."""
    yield place
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


def value_at(plain, place):
    for key in place:
        plain = plain[key]
    return plain


def changed(plain, place, value):
    """A copy with another value at a place."""
    if not place:
        return value
    result = copy.deepcopy(plain)
    value_at(result, place[:-1])[place[-1]] = value
    return result


OTHER_VALUES = [None, True, -1, 2, 2**32, 2**70, 0.5, "", "x", "ff", [], [0], {}, {"a": 1}]


# Where another value can mean something: another spelling of a token, say.
CHANGEABLE = [
    "added_tokens", "alphabet", "frame", "normalizer", "pattern", "prefix_space", "provenance",
    "reserved", "special_ids", "special_tokens", "tie_break", "token_flags", "unknown",
    "whole_piece_lookup",
]  # fmt: skip


def test_any_other_value_is_refused_or_means_something(small, tmp_path):
    header, body = parts_of(small)
    path = tmp_path / "other"
    refused = 0
    for place in places(header):
        for value in OTHER_VALUES:
            if json.dumps(value) == json.dumps(value_at(header, place)):
                continue
            path.unlink(missing_ok=True)
            path.write_bytes(signed(changed(header, place, value), body))
            try:
                loaded = Tokenizer.load(path)
            except ValueError:
                refused += 1
            else:
                assert place[0] in CHANGEABLE, place
                assert loaded.fingerprint()
    assert refused > 100


# States


def test_any_changed_value_of_a_state(engine):
    tokenizer = words(50, special_ids="end", engine=engine, **SPECIALS)
    state = tokenizer.state()
    same(tokenizer, Tokenizer.from_state(json.loads(json.dumps(state)), engine))
    for place in places(state):
        value = value_at(state, place)
        for other in [*OTHER_VALUES, "1", [value], json.dumps(value)]:
            if json.dumps(other) == json.dumps(value):
                continue
            with pytest.raises((ValueError, TypeError)):
                Tokenizer.from_state(changed(state, place, other), engine)


def test_a_state_of_a_newer_version():
    with pytest.raises(ValueError, match="the state has version 2; this tokbpe reads 1"):
        Tokenizer.from_state({**Tokenizer("ab").state(), "version": 2})


def test_a_missing_or_strange_part_of_a_state():
    state = Tokenizer("ab").state()
    for name in state:
        with pytest.raises(ValueError, match="a state has version, sha256 and vocabulary"):
            Tokenizer.from_state({key: state[key] for key in state if key != name})
    with pytest.raises(ValueError, match="a state has version, sha256 and vocabulary"):
        Tokenizer.from_state({**state, "more": 1})
    for value in (None, [], "state", 5, [state]):
        with pytest.raises(TypeError, match="a state must be a mapping"):
            Tokenizer.from_state(value)
