"""The facade's own behavior, apart from the systems of the specification."""

import json

import numpy as np
import pytest

from tokbpe import (
    Corpus,
    PieceCounts,
    StreamedCorpus,
    Tokenizer,
    engines,
    fast,
    metrics,
    write_shards,
)
from tokbpe.vocabulary import Vocabulary

pytestmark = pytest.mark.core


@pytest.fixture(params=["reference", "fast"])
def bpe(request):
    return Tokenizer(
        "low lower lowest " * 5, method="bpe", vocabulary_size=260, engine=request.param
    )


def test_lone_surrogate(bpe):
    with pytest.raises(UnicodeEncodeError) as raised:
        bpe.encode("ab\ud83d")
    assert (raised.value.start, raised.value.end) == (2, 3)
    assert bpe.decode(bpe.encode("ab\ud83d", errors="replace")) == "ab\ufffd"
    assert bpe.decode(bpe.encode("\ud83d\ude00", errors="replace")) == "\ufffd\ufffd"


def test_lone_surrogate_in_training_names_the_document():
    for engine in engines.NAMES:
        with pytest.raises(UnicodeEncodeError, match=r"document 1") as raised:
            Tokenizer(["fine", "a\udc00"], method="bpe", engine=engine)
        assert raised.value.start == 1


LONE = "é\ud83d"  # the place is that of the character, not of a byte
# Calls that take text. The folder is for what is written.
TAKING_TEXT = {
    "encode": lambda t, f: t.encode(LONE),
    "encode_array": lambda t, f: t.encode_array(LONE),
    "encode_into": lambda t, f: t.encode_into(LONE, np.zeros(9, np.uint32)),
    "encode_batch": lambda t, f: t.encode_batch(["a", LONE]),
    "encode_batch_arrays": lambda t, f: t.encode_batch_arrays(["a", LONE], threads=2),
    "encode_with_offsets": lambda t, f: t.encode_with_offsets(LONE),
    "encode_chat": lambda t, f: t.encode_chat([("user", "a"), ("user", LONE)]),
    "count": lambda t, f: t.count(LONE),
    "count_limited": lambda t, f: t.count(LONE, 1),
    "count_batch": lambda t, f: t.count_batch(["a", LONE]),
    "truncate": lambda t, f: t.truncate(LONE, 1),
    "split_at": lambda t, f: t.split_at(LONE, 1),
    "usage": lambda t, f: t.usage(["a", LONE]),
    "metrics": lambda t, f: metrics.measure(t, ["a", LONE]),
    "train": lambda t, f: Tokenizer(["a", LONE], method="bpe"),
    "train_byte": lambda t, f: Tokenizer(["a", LONE]),
    "train_char": lambda t, f: Tokenizer(["a", LONE], method="char"),
    "train_word": lambda t, f: Tokenizer(["a", LONE], method="word"),
    "train_steps": lambda t, f: [*Tokenizer.train_steps(["a", LONE])],
    "extended": lambda t, f: t.extended(["a", LONE], 300),
    "counts": lambda t, f: PieceCounts(["a", LONE]),
    "corpus": lambda t, f: Corpus(["a", LONE]),
    "encode_corpus": lambda t, f: t.encode_corpus(StreamedCorpus(["a", LONE])),
    "shards": lambda t, f: write_shards(StreamedCorpus(["a", LONE]), t, f / "out"),
    "shards_of_a_file": lambda t, f: write_shards(f / "in.jsonl", t, f / "out"),
    "engine_encode": lambda t, f: fast.encode(LONE, fast.encoding_table([b"a"], [])),
}


@pytest.mark.parametrize("engine", engines.NAMES)
@pytest.mark.parametrize("name", TAKING_TEXT)
def test_a_lone_surrogate_is_the_same_error_everywhere(name, engine, tmp_path, monkeypatch):
    monkeypatch.setenv(engines.VARIABLE, engine)
    tokenizer = Tokenizer("low lower", method="bpe", reserved=["EOS", "USER"])
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": LONE}) + "\n")
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed") as raised:
        TAKING_TEXT[name](tokenizer, tmp_path)
    error = raised.value
    assert (error.object[error.start : error.end], error.start) == ("\ud83d", 1)
    assert not (tmp_path / "out").exists()


def test_encode_and_encode_bytes_point_to_each_other(bpe):
    with pytest.raises(TypeError, match="encode takes str, not bytes; bytes go to encode_bytes"):
        bpe.encode(b"low")
    with pytest.raises(TypeError, match="encode_bytes takes bytes, not str; text goes to encode"):
        bpe.encode_bytes("low")
    with pytest.raises(TypeError, match="encode takes str, not NoneType"):
        bpe.encode(None)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind(bpe, kind):
    assert bpe.encode_bytes(kind(b"low")) == bpe.encode("low")
    assert Tokenizer(kind(b"low low"), method="bpe").vocabulary == bpe_of(b"low low").vocabulary


def bpe_of(corpus):
    return Tokenizer(corpus, method="bpe")


def test_errors_is_one_of_two(bpe):
    for call in (
        lambda: bpe.encode("a", errors="ignore"),
        lambda: bpe.decode([97], errors="ignore"),
    ):
        with pytest.raises(
            ValueError, match="errors must be one of 'strict', 'replace', not 'ignore'"
        ):
            call()


@pytest.mark.parametrize(
    "ids",
    [
        [108, 111, 119],
        (108, 111, 119),
        np.array([108, 111, 119], np.uint8),
        np.array([108, 111, 119], np.int64),
        np.array([108, 0, 111, 0, 119], np.uint32)[::2],
        np.array([108, 111, 119], np.uint64),
        range(108, 109),
        memoryview(np.array([108], np.uint16)),
    ],
)
def test_ids_of_any_kind(bpe, ids):
    assert bpe.decode(ids) in ("low", "l")
    assert bpe.decode(id for id in ids) == bpe.decode(ids)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([97, 260], ValueError, "id 260 at position 1 is not from 0 to 259"),
        ([97, 98, -1], ValueError, "id -1 at position 2"),
        ([10**30], ValueError, "id 1000000000000000000000000000000 at position 0"),
        ([97, 1.0], TypeError, "position 1 holds 1.0"),
        ([True], TypeError, "position 0 holds True"),
        ([None], TypeError, "position 0 holds None"),
        ("low", TypeError, "ids must be an iterable of whole numbers, not str"),
        (b"low", TypeError, "ids must be an iterable of whole numbers, not bytes"),
        (97, TypeError, "ids must be an iterable of whole numbers, not int"),
        (np.array([97, 300]), ValueError, "id 300 at position 1"),
        (np.array([97.0]), TypeError, "position 0 holds"),
    ],
)
def test_what_is_no_id(bpe, ids, error, message):
    for call in (bpe.decode, bpe.decode_bytes):
        with pytest.raises(error, match=message):
            call(ids)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (5, "a corpus must be str, bytes or an iterable of these, not int"),
        (None, "a corpus must be str, bytes or an iterable of these, not NoneType"),
        ({"a": 1}, "a corpus must be str, bytes or an iterable of these, not dict"),
        (["a", 5], "document 1 must be str or bytes, not int"),
        ([["a"]], "document 0 must be str or bytes, not list"),
    ],
)
@pytest.mark.parametrize("method", ["byte", "bpe"])
@pytest.mark.parametrize("engine", engines.NAMES)
def test_what_is_no_corpus(corpus, message, method, engine):
    with pytest.raises(TypeError, match=message):
        Tokenizer(corpus, method=method, engine=engine)


@pytest.mark.parametrize("method", ["byte", "bpe"])
@pytest.mark.parametrize("engine", engines.NAMES)
def test_error_of_an_iterator_comes_out_unchanged(method, engine):
    error = KeyError("mine")

    def documents():
        yield "fine"
        raise error

    with pytest.raises(KeyError) as raised:
        Tokenizer(documents(), method=method, engine=engine)
    assert raised.value is error


def test_a_text_is_one_document_and_a_list_several(bpe):
    assert Tokenizer("aaaa", method="bpe").merge_counts.tolist() == [3]
    assert Tokenizer(["aa", "aa"], method="bpe").merge_counts.tolist() == [2]


def test_arrays_are_read_only(bpe):
    with pytest.raises(ValueError, match="read-only"):
        bpe.merges[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        bpe.merge_counts[0] = 1


def test_items(bpe):
    assert list(bpe.items()) == list(enumerate(bpe.vocabulary))


def test_repr_names_the_engine():
    assert "'reference'" in repr(Tokenizer("ab", engine="reference"))
    assert "'fast'" in repr(Tokenizer("ab", engine="fast"))


def test_engine_of_the_environment(monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", "reference")
    assert "'reference'" in repr(Tokenizer("ab"))
    assert "'fast'" in repr(Tokenizer("ab", engine="fast"))
    monkeypatch.setenv("TOKBPE_ENGINE", "slow")
    with pytest.raises(
        ValueError, match="TOKBPE_ENGINE must be one of 'fast', 'reference', not 'slow'"
    ):
        Tokenizer("ab")
    with pytest.raises(ValueError, match="engine must be one of 'fast', 'reference', not 'c'"):
        Tokenizer("ab", engine="c")


@pytest.mark.parametrize("engine", engines.NAMES)
def test_progress(engine, capfd):
    seen = []
    Tokenizer(
        "low lower lowest " * 5,
        method="bpe",
        vocabulary_size=260,
        engine=engine,
        progress=lambda done, wanted: seen.append((done, wanted)),
    )
    assert seen[-1] == (4, 4)
    Tokenizer("abab", method="bpe", engine=engine, progress=True)
    assert capfd.readouterr() == ("", "")  # no bar where there is no terminal


@pytest.mark.parametrize("engine", engines.NAMES)
def test_error_of_progress_comes_out_unchanged(engine):
    def stop(done, wanted):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        Tokenizer("abab", method="bpe", engine=engine, progress=stop)


WRONG_ARGUMENTS = [
    ("method", None, TypeError),
    ("method", 5, TypeError),
    ("method", ["bpe"], TypeError),
    ("method", "BPE", ValueError),
    ("vocabulary_size", "300", TypeError),
    ("vocabulary_size", 300.0, TypeError),
    ("vocabulary_size", True, TypeError),
    ("vocabulary_size", [300], TypeError),
    ("vocabulary_size", np.float64(300), TypeError),
    ("vocabulary_size", 10**30, ValueError),
    ("minimum_pair_frequency", "2", TypeError),
    ("minimum_pair_frequency", 2.0, TypeError),
    ("minimum_pair_frequency", False, TypeError),
    ("minimum_pair_frequency", -1, ValueError),
    ("minimum_pair_frequency", 2**63, ValueError),
    ("pattern", 5, TypeError),
    ("pattern", b"gpt2", TypeError),
    ("pattern", ["gpt2"], TypeError),
    ("pattern", "(", ValueError),
    ("pattern", "a*", ValueError),
    ("pattern", "", ValueError),
    ("tie_break", 5, TypeError),
    ("tie_break", ["first"], TypeError),
    ("tie_break", "First", ValueError),
    ("base", 5, TypeError),
    ("base", b"gpt2", TypeError),
    ("base", "characters", ValueError),
    ("engine", 5, TypeError),
    ("engine", "Fast", ValueError),
    ("progress", "yes", TypeError),
    ("progress", 1, TypeError),
    ("progress", None, TypeError),
]


@pytest.mark.parametrize(("option", "value", "error"), WRONG_ARGUMENTS, ids=repr)
@pytest.mark.parametrize(
    "call", [Tokenizer, Tokenizer.train_steps], ids=["Tokenizer", "train_steps"]
)
def test_arguments_of_the_wrong_kind(call, option, value, error):
    with pytest.raises(error, match=option):
        call("abab", **{"method": "bpe", option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [case[:2] for case in WRONG_ARGUMENTS if case[0] != "method" and case[1] != "characters"],
    ids=repr,
)
def test_arguments_of_the_wrong_kind_for_words(option, value):
    with pytest.raises((TypeError, ValueError), match=option):
        Tokenizer("abab", method="word", **{option: value})


@pytest.mark.parametrize(
    "call", [Tokenizer.from_bytes, Tokenizer.from_state, Tokenizer.from_vocabulary]
)
def test_engine_of_the_other_constructors(call):
    known = Tokenizer("ab")
    argument = {"from_state": [known.state()], "from_vocabulary": [known._vocabulary]}
    arguments = argument.get(call.__name__, [])
    assert "'reference'" in repr(call(*arguments, engine="reference"))
    with pytest.raises(ValueError, match="engine must be one of 'fast', 'reference', not 'c'"):
        call(*arguments, engine="c")
    with pytest.raises(TypeError, match="engine must be one of"):
        call(*arguments, engine=5)


@pytest.mark.parametrize("text", [None, 5, b"ab", bytearray(b"ab"), ["ab"], np.str_], ids=repr)
def test_what_encode_does_not_take(bpe, text):
    with pytest.raises(TypeError, match="encode takes str, not"):
        bpe.encode(text)


@pytest.mark.parametrize("data", [None, 5, "ab", ["ab"], [97], np.array([97], np.uint8)], ids=repr)
def test_what_encode_bytes_does_not_take(bpe, data):
    with pytest.raises(TypeError, match="encode_bytes takes bytes, not"):
        bpe.encode_bytes(data)


class Text(str):
    pass


def test_text_of_a_type_of_its_own(bpe):
    assert bpe.encode(Text("low")) == bpe.encode("low")
    assert bpe.encode(np.str_("low")) == bpe.encode("low")


@pytest.mark.parametrize("errors", [None, 5, b"strict", ["strict"]], ids=repr)
def test_errors_of_the_wrong_type(bpe, errors):
    for call, argument in ((bpe.encode, "a"), (bpe.decode, [97])):
        with pytest.raises(TypeError, match="errors must be one of"):
            call(argument, errors=errors)


def test_vocabulary_too_large_for_a_tuple():
    known = Vocabulary("bpe", (b"a",), reserved={"FAR": 2**24})
    with pytest.raises(ValueError, match=r"16777217 ids is too large .* use \.items\(\)"):
        Tokenizer.from_vocabulary(known).vocabulary  # noqa: B018
    assert list(Tokenizer.from_vocabulary(known).items()) == [(0, b"a"), (2**24, b"")]


def test_size_that_was_asked_for(bpe):
    assert bpe.target_vocab_size == bpe.vocab_size == 260
    assert Tokenizer("abab", method="bpe").target_vocab_size is None
    assert Tokenizer("ab").target_vocab_size is None
