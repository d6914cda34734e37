"""Corpora: documents, roles, budgets, hashes, splits; in memory and streamed."""

import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from tokbpe import Corpus, PieceCounts, StreamedCorpus, Tokenizer
from tokbpe.record import MOST_HASHES

pytestmark = pytest.mark.core

TEXTS = ["low lower", "Grüße 🐈", "", "low lower", "lowest"]
KINDS = pytest.mark.parametrize("kind", [Corpus, StreamedCorpus])


def sha(*documents):
    return [hashlib.sha256(document.encode("utf-8")).hexdigest() for document in documents]


def fingerprint_of(*documents):
    digests = b"".join(bytes.fromhex(text) for text in sha(*documents))
    return hashlib.sha256(digests).hexdigest()


# Documents


@KINDS
def test_what_a_corpus_tells(kind):
    corpus = kind(TEXTS)
    assert corpus.role == "training"
    assert list(corpus) == TEXTS
    assert len(corpus) == 5
    assert corpus.bytes == sum(len(text.encode()) for text in TEXTS)
    assert corpus.hashes == tuple(sha(*TEXTS))
    assert corpus.fingerprint() == fingerprint_of(*TEXTS)
    assert corpus.summary == {
        "role": "training",
        "documents": 5,
        "bytes": corpus.bytes,
        "smallest": 0,
        "largest": 12,
        "fingerprint": corpus.fingerprint(),
        "beginnings": ["low lower", "Grüße 🐈", ""],
    }
    assert corpus.name(3) == "document 3"


def test_the_documents_are_a_tuple_that_stays():
    data, texts = bytearray(b"low"), ["a"]
    corpus = Corpus([data, memoryview(b"lower"), b"\xff", *texts])
    data[:] = b"xxx"
    texts.append("b")
    assert corpus.documents == (b"low", b"lower", b"\xff", "a")
    with pytest.raises(AttributeError):
        corpus.documents = ()
    with pytest.raises(AttributeError):
        corpus.role = "test"


@pytest.mark.parametrize("document", ["low lower", b"low lower"], ids=repr)
@KINDS
def test_a_text_is_one_document(kind, document):
    assert list(kind(document)) == [document]


@KINDS
def test_text_and_its_bytes_have_one_fingerprint(kind):
    assert kind(["Grüße"]).fingerprint() == Corpus(["Grüße".encode()]).fingerprint()
    assert kind(["a", "b"]).fingerprint() != Corpus(["b", "a"]).fingerprint()
    assert kind(["a", "b"]).fingerprint() != Corpus(["ab"]).fingerprint()


@KINDS
def test_the_summary_is_bounded(kind):
    corpus = kind(["🐈" * 10_000] * 100)
    assert len(json.dumps(corpus.summary, ensure_ascii=False)) < 700
    assert corpus.summary["beginnings"] == ["🐈" * 60] * 3
    summary = kind(["a" * 100, "b", "c" * 20]).summary
    assert summary["beginnings"] == ["a" * 60, "b", "c" * 20]
    assert (summary["smallest"], summary["largest"]) == (1, 100)


@KINDS
def test_beyond_a_number_of_documents_no_hashes_are_kept(kind):
    texts = list(map(str, range(MOST_HASHES + 1)))
    assert len(kind(texts[1:]).hashes) == MOST_HASHES
    corpus = kind(texts)
    assert corpus.hashes is None
    assert corpus.fingerprint() == fingerprint_of(*texts)


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        ([], ValueError, "a corpus needs at least one document"),
        (["a", 5], TypeError, "document 1 must be str or bytes, not int"),
        (["a", None], TypeError, "document 1 must be str or bytes, not NoneType"),
        (5, TypeError, "a corpus must be str, bytes or an iterable of these, not int"),
        ({"a": "b"}, TypeError, "a corpus must be str, bytes or an iterable of these, not dict"),
        (["a", "b\ud83d"], UnicodeEncodeError, r"surrogates not allowed \(document 1\)"),
    ],
)
@KINDS
def test_what_is_no_corpus(kind, documents, error, message):
    with pytest.raises(error, match=message):
        len(kind(documents))


@KINDS
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"role": "train"}, ValueError, "role must be one of 'training', 'validation', 'test', "),
        ({"role": None}, TypeError, "role must be one of"),
        ({"max_bytes": 0}, ValueError, "max_bytes must be from 1 to"),
        ({"max_bytes": 1.5}, TypeError, "max_bytes must be a whole number, not float"),
        ({"max_documents": 0}, ValueError, "max_documents must be from 1 to"),
        ({"max_documents": True}, TypeError, "max_documents must be a whole number, not bool"),
    ],
)
def test_wrong_options(kind, options, error, message):
    with pytest.raises(error, match=message):
        kind(["a"], **options)


@KINDS
def test_budgets(kind):
    assert len(kind(["ab", "é"], max_bytes=4, max_documents=2)) == 2
    with pytest.raises(ValueError, match="document 1: with this document .* max_bytes=3 bytes"):
        list(kind(["ab", "é", "c"], max_bytes=3))
    with pytest.raises(ValueError, match="document 2: with .* max_documents=2 documents"):
        list(kind(["ab", "é", "c"], max_documents=2))


def test_a_budget_ends_an_endless_iterator():
    def endless():
        while True:
            yield "ab"

    with pytest.raises(ValueError, match="document 5: .* max_documents=5 documents"):
        Corpus(endless(), max_documents=5)
    with pytest.raises(ValueError, match="document 2: .* max_bytes=5 bytes"):
        Corpus(endless(), max_bytes=5)


def test_what_an_iterator_raises_comes_out_unchanged():
    def broken():
        yield "a"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        Corpus(broken())


@KINDS
def test_pickling(kind):
    corpus = pickle.loads(pickle.dumps(kind(TEXTS, role="test")))
    assert (list(corpus), corpus.role) == (TEXTS, "test")
    assert corpus.fingerprint() == fingerprint_of(*TEXTS)
    assert corpus.name(1) == "document 1"


@KINDS
def test_repr(kind):
    corpus = kind(["ab", "c"], role="test")
    assert len(corpus) == 2
    assert repr(corpus) == f"<{kind.__name__} test, 2 documents, 3 bytes>"
    assert repr(StreamedCorpus(["ab"])) == "<StreamedCorpus training>"


# Streamed


class Counted:
    """Documents, and how often they were read."""

    def __init__(self, documents):
        self.documents = documents
        self.times = 0

    def __iter__(self):
        self.times += 1
        return iter(self.documents)


def test_streamed_documents_are_read_when_they_are_wanted():
    documents = Counted(["low lower", "lowest"])
    corpus = StreamedCorpus(documents)
    assert (corpus.role, bool(corpus), repr(corpus)) == (
        "training",
        True,
        "<StreamedCorpus training>",
    )
    assert documents.times == 0
    assert corpus.known_bytes is None
    Tokenizer(corpus, method="bpe")
    assert documents.times == 1
    assert (len(corpus), corpus.bytes, corpus.known_bytes) == (2, 15, 15)
    assert corpus.fingerprint() == fingerprint_of("low lower", "lowest")
    assert documents.times == 1
    assert [*iter(corpus)] == ["low lower", "lowest"]


def test_streamed_documents_are_not_held():
    with pytest.raises(ValueError, match="a streamed corpus does not hold its documents"):
        StreamedCorpus(["a"]).documents  # noqa: B018


def test_an_iterator_cannot_be_streamed():
    with pytest.raises(TypeError, match="which an iterator cannot be"):
        StreamedCorpus(iter(["a"]))


@pytest.mark.parametrize("other", [["a", "x"], ["a"], ["a", "b", "c"], ["b", "a"]])
def test_documents_that_change_between_two_passes(other):
    documents = Counted(["a", "b"])
    corpus = StreamedCorpus(documents)
    parts = corpus.split(validation=0.5)
    for wanted in (corpus, *parts):
        list(wanted)
    documents.documents = other
    for wanted in (corpus, *parts):
        with pytest.raises(ValueError, match="the documents have changed: their fingerprint is"):
            list(wanted)
    documents.documents = ["a", "b"]
    assert list(corpus) == ["a", "b"]


def test_a_pass_that_ends_early_says_nothing():
    corpus = StreamedCorpus(["a", "b"])
    for _ in corpus:
        break
    assert corpus.fingerprint() == fingerprint_of("a", "b")


# Splitting


@KINDS
@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_split(kind, seed):
    texts = list(map(str, range(100)))
    training, validation, test = kind(texts).split(validation=0.1, test=0.25, seed=seed)
    assert [type(part) for part in (training, validation, test)] == [kind] * 3
    assert [part.role for part in (training, validation, test)] == [
        "training",
        "validation",
        "test",
    ]
    assert [len(part) for part in (training, validation, test)] == [65, 10, 25]
    assert sorted([*training, *validation, *test], key=int) == texts
    for part in (training, validation, test):
        assert list(part) == sorted(part, key=int)
        assert part.fingerprint() == fingerprint_of(*part)
        assert part.name(3) == f"document {[*part][3]}"


def test_split_depends_on_the_seed_and_on_nothing_else():
    texts = list(map(str, range(100)))
    for seed in range(5):
        drawn = sorted(texts, key=lambda text: sha(f"{seed}:{text}"))
        assert {*Corpus(texts).split(validation=0.05, seed=seed)[1]} == {*drawn[:5]}
        one = Corpus(texts).split(seed=seed)[1]
        assert {*one} == {*StreamedCorpus(texts[::-1]).split(seed=seed)[1]}
        assert {*one} == {*Corpus([text.encode().decode() for text in texts]).split(seed=seed)[1]}
        assert {*one} != {*Corpus(texts).split(seed=seed + 1)[1]}


@KINDS
def test_equal_documents_go_to_one_part(kind):
    texts = [str(number % 20) for number in range(100)]
    training, validation = kind(texts).split(validation=0.2, seed=7)
    assert len(validation) == 20
    assert not {*training} & {*validation}
    # A document that is there too often leaves its place to others.
    often = ["often"] * 50 + list(map(str, range(50)))
    for seed in range(20):
        training, validation = kind(often).split(validation=0.1, seed=seed)
        assert len(validation) == 10
        assert "often" not in [*validation]


def test_a_small_corpus_has_a_document_in_each_part():
    assert [len(part) for part in Corpus(["a", "b", "c"]).split(validation=0.01, test=0.01)] == [
        1,
        1,
        1,
    ]


@KINDS
@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        ("a", {}, ValueError, "of 1 documents, 1 of them distinct, none is left for training"),
        (["a"] * 9, {}, ValueError, "of 9 documents, 1 of them distinct, none is left for val"),
        (["a", "b"], {"test": 0.1}, ValueError, "none is left for training"),
        (["a", "b"], {"validation": 0.9}, ValueError, "none is left for training"),
        (["a", "b"], {"validation": 0}, ValueError, "validation must be between 0 and 1, not 0"),
        (["a", "b"], {"validation": 1.0}, ValueError, "validation must be between 0 and 1"),
        (["a", "b"], {"validation": float("nan")}, ValueError, "must be between 0 and 1, not nan"),
        (["a", "b"], {"validation": "0.1"}, TypeError, "validation must be a number, not str"),
        (["a", "b"], {"test": -0.1}, ValueError, "test must be between 0 and 1, not -0.1"),
        (["a", "b"], {"seed": -1}, ValueError, "seed must be from 0 to"),
        (["a", "b"], {"seed": 0.5}, TypeError, "seed must be a whole number, not float"),
    ],
)
def test_what_cannot_be_split(kind, texts, options, error, message):
    with pytest.raises(error, match=message):
        kind(texts).split(**options)


def test_only_a_training_corpus_is_split():
    with pytest.raises(
        ValueError, match="only training data can be split, and these are validation"
    ):
        Corpus(["a", "b"], role="validation").split()


def test_the_parts_do_not_hold_each_other():
    training, validation = Corpus(list(map(str, range(10)))).split()
    assert len(pickle.dumps(validation)) < len(pickle.dumps(training)) < 3000


# Learning from it


@KINDS
@pytest.mark.parametrize("role", ["validation", "test"])
def test_only_a_training_corpus_is_learned_from(kind, role):
    corpus = kind(["low lower lowest"] * 3, role=role)
    message = f"a tokenizer is fitted on a training corpus alone, and this one is {role}"
    trained = Tokenizer("low low", method="bpe", vocabulary_size=257)
    pool = ThreadPoolExecutor(1)
    for learn in (
        lambda: Tokenizer(corpus),
        lambda: Tokenizer(corpus, method="bpe"),
        lambda: Tokenizer(corpus, method="char"),
        lambda: Tokenizer(corpus, method="word"),
        lambda: list(Tokenizer.train_steps(corpus)),
        lambda: trained.extended(corpus, 258),
        lambda: PieceCounts(corpus),
        lambda: PieceCounts().add(corpus),
        lambda: PieceCounts().add(corpus, executor=pool),
    ):
        with pytest.raises(ValueError, match=message):
            learn()
    pool.shutdown()
    assert trained.usage(corpus).documents == 3


@KINDS
@pytest.mark.parametrize("method", ["byte", "bpe", "char", "word"])
def test_learning_from_a_corpus_is_learning_from_its_documents(kind, method):
    tokenizer = Tokenizer(kind(TEXTS), method=method)
    assert tokenizer.fingerprint() == Tokenizer(TEXTS, method=method).fingerprint()
    (record,) = tokenizer.state()["vocabulary"]["provenance"]
    assert record["hashes"] == sha(*TEXTS)
    assert record["fingerprint"] == kind(TEXTS).fingerprint()
    assert (record["documents"], record["bytes"]) == (5, kind(TEXTS).bytes)


def test_progress_knows_the_size_of_a_corpus():
    calls = []
    PieceCounts(Corpus(TEXTS * 9), progress=lambda *call: calls.append(call))
    assert calls[-1] == (Corpus(TEXTS).bytes * 9,) * 2
