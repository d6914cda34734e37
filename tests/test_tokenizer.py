"""The facade's own behavior, apart from the systems of the specification."""

import numpy as np
import pytest

from tokbpe import Tokenizer, engines

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
    for call in (lambda: bpe.encode("a", errors="ignore"), lambda: bpe.decode([97], errors="ignore")):
        with pytest.raises(ValueError, match="errors must be one of 'strict', 'replace', not 'ignore'"):
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
    with pytest.raises(ValueError, match="TOKBPE_ENGINE must be one of 'fast', 'reference', not 'slow'"):
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
