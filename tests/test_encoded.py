"""A corpus as ids: arrays, role, identity, and what the tokenizer must not have seen."""

import itertools
import re

import numpy as np
import pytest

from tokbpe import Corpus, PieceCounts, StreamedCorpus, Tokenizer, count_work, record
from tokbpe.vocabulary import Vocabulary

pytestmark = pytest.mark.core

TEXTS = ["low lower", "", "Grüße 🐈", "lowest"]
NAMES = ("BOS", "EOS", "PAD")
KINDS = pytest.mark.parametrize("kind", [Corpus, StreamedCorpus])


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


def trained(corpus=("low lower lowest", "newer newest"), **options):
    return Tokenizer(corpus, method="bpe", **{"reserved": NAMES, **options})


# The arrays


@KINDS
@pytest.mark.parametrize("at_once", [1, 10, 2**25])
@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("eos", [False, True])
def test_ids_are_those_of_the_documents(kind, at_once, bos, eos, monkeypatch):
    monkeypatch.setattr(count_work, "TASK_BYTES", at_once)
    tokenizer = trained()
    encoded = tokenizer.encode_corpus(kind(TEXTS), bos=bos, eos=eos)
    rows = [tokenizer.encode(text, bos=bos, eos=eos) for text in TEXTS]
    assert encoded.tokens.tolist() == [id for row in rows for id in row]
    assert encoded.offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert (encoded.tokens.dtype, encoded.offsets.dtype) == (np.uint16, np.uint64)
    assert (encoded.documents, encoded.role) == (4, "training")
    assert repr(encoded) == (
        f"<EncodedCorpus training, 4 documents, {len(encoded.tokens)} tokens, uint16>"
    )


def test_nothing_can_be_written_to():
    encoded = trained().encode_corpus(Corpus(TEXTS))
    for array in (encoded.tokens, encoded.offsets, *(part.tokens for part in encoded.split())):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        encoded.role = "test"


@pytest.mark.parametrize("number", [2**16, 2**16 + 1])
def test_the_type_is_the_smallest_that_holds_all_ids(number):
    alphabet = tuple(bytes([byte]) for byte in range(256))
    vocabulary = Vocabulary("byte", alphabet, reserved={"EOS": number - 1})
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    assert tokenizer.vocab_size == number
    tokens = tokenizer.encode_corpus(Corpus("a"), eos=True).tokens
    assert tokens.dtype == (np.uint16 if number == 2**16 else np.uint32)
    assert tokens.tolist() == [97, number - 1]


@KINDS
def test_documents_without_tokens(kind):
    encoded = Tokenizer.from_bytes().encode_corpus(kind(["", ""]))
    assert (len(encoded.tokens), encoded.offsets.tolist()) == (0, [0, 0, 0])


@pytest.mark.parametrize("method", ["byte", "char", "word"])
def test_every_method_encodes_a_corpus(method):
    tokenizer = Tokenizer(TEXTS, method=method)
    encoded = tokenizer.encode_corpus(Corpus([*TEXTS, "Grüße".encode()]))
    rows = [tokenizer.encode(text) for text in (*TEXTS, "Grüße")]
    assert encoded.tokens.tolist() == [id for row in rows for id in row]


def test_special_tokens_are_allowed_by_name():
    tokenizer = trained(special_tokens=["<|e|>"])
    corpus = Corpus(["low<|e|>"])
    plain, allowed = (
        tokenizer.encode_corpus(corpus, allowed_special=tokens) for tokens in ((), "all")
    )
    assert allowed.tokens.tolist() == tokenizer.encode("low<|e|>", allowed_special="all")
    assert plain.tokens.tolist() == tokenizer.encode("low<|e|>")
    named = tokenizer.encode_corpus(corpus, allowed_special={"<|e|>"})
    assert named.fingerprint() == allowed.fingerprint() != plain.fingerprint()


@KINDS
def test_the_document_that_cannot_be_encoded_is_named(kind, tmp_path):
    tokenizer = Tokenizer("abc")
    with pytest.raises(ValueError, match="document 2: byte 0x78 at byte position 1 is not in"):
        tokenizer.encode_corpus(kind(["a", "b", "cx"]))
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "a"}\n{"text": "xa"}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl: line 2: byte 0x78 at byte position 0 is"):
        tokenizer.encode_corpus(kind.from_files(tmp_path / "bad.jsonl"))


@pytest.mark.parametrize(
    ("corpus", "options", "error", "message"),
    [
        (["a"], {}, TypeError, "encode_corpus takes a Corpus, not list"),
        ("a", {}, TypeError, "encode_corpus takes a Corpus, not str"),
        (Corpus("a"), {"allowed_special": "x"}, ValueError, "allowed_special is a set of"),
        (Corpus("a"), {"threads": 0}, ValueError, "threads must be from 1 to"),
        (Corpus("a"), {"progress": 5}, TypeError, "progress must be a bool or a function"),
    ],
    ids=range(5),
)
def test_wrong_arguments(corpus, options, error, message):
    with pytest.raises(error, match=message):
        trained().encode_corpus(corpus, **options)


def test_marks_that_the_tokenizer_lacks():
    with pytest.raises(ValueError, match="there is no reserved id 'BOS'"):
        Tokenizer.from_bytes().encode_corpus(Corpus("a"), bos=True)


@KINDS
def test_progress(kind, monkeypatch):
    monkeypatch.setattr(count_work, "TASK_BYTES", 10)
    calls = []
    corpus = kind(TEXTS)
    trained().encode_corpus(corpus, progress=lambda *call: calls.append(call))
    total = None if kind is StreamedCorpus else corpus.bytes
    assert calls == [(21, total), (27, total)]


# Identity


def test_one_identity_for_all_ways_to_the_same_tokens(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "low"}\n{"text": "lower"}\n')
    same = [
        trained().encode_corpus(corpus, eos=True).fingerprint()
        for corpus in (
            Corpus(["low", "lower"]),
            Corpus([b"low", b"lower"]),
            StreamedCorpus(["low", "lower"]),
            StreamedCorpus.from_files(tmp_path / "a.jsonl"),
        )
    ]
    assert len({*same}) == 1


def test_another_identity_for_anything_else():
    corpus = Corpus(["low", "lower"])
    encoded = trained().encode_corpus(corpus)
    half = encoded.split(0.5)
    others = [
        trained().encode_corpus(corpus, bos=True),
        trained().encode_corpus(corpus, eos=True),
        trained().encode_corpus(Corpus(["lower", "low"])),
        trained().encode_corpus(Corpus(["low", "lowes"])),
        trained().encode_corpus(Corpus(["low", "lower"], role="test")),
        trained(reserved=("EOS", "BOS", "PAD")).encode_corpus(corpus),
        trained(["newer newest", "low lower lowest"]).encode_corpus(corpus),
        *half,
        *half[0].split(1),
    ]
    prints = [encoded.fingerprint(), *(other.fingerprint() for other in others)]
    assert len({*prints}) == len(prints)
    assert all(re.fullmatch("[0-9a-f]{64}", text) for text in prints)
    assert encoded.tokenizer == trained().fingerprint()
    assert encoded.corpus == corpus.fingerprint()


# What the tokenizer must not have seen

FITTED = ["low lower lowest", "newer newest"]


@KINDS
@pytest.mark.parametrize("role", ["validation", "test"])
def test_a_document_of_the_fitting_data_is_refused(kind, role, tmp_path):
    tokenizer = trained(Corpus(FITTED))
    message = f"document 1: the tokenizer was fitted on this document, so it cannot be {role} data"
    for document in ("newer newest", b"newer newest"):
        with pytest.raises(ValueError, match=message):
            tokenizer.encode_corpus(kind(["wider", document, "x"], role=role))
    (tmp_path / "a.txt").write_text("newer newest")
    with pytest.raises(ValueError, match=r"a\.txt: the tokenizer was fitted on this document"):
        tokenizer.encode_corpus(kind.from_files(tmp_path / "a.txt", role=role))
    other = tokenizer.encode_corpus(kind(["wider", "newer newest "], role=role))
    assert (other.checked, other.role) == (True, role)
    assert not tokenizer.encode_corpus(kind(FITTED)).checked


def test_what_a_tokenizer_remembers_goes_where_it_goes(tmp_path):
    tokenizer = trained(FITTED, vocabulary_size=262)
    tokenizer.save(tmp_path / "saved")
    counts = PieceCounts(FITTED)
    longer = tokenizer.extended(["wider " * 9], 264)
    for other in (
        Tokenizer.load(tmp_path / "saved"),
        Tokenizer.from_state(tokenizer.state()),
        Tokenizer.from_counts(counts, reserved=NAMES),
        tokenizer.truncated(260),
        longer,
    ):
        with pytest.raises(ValueError, match="document 0: the tokenizer was fitted on"):
            other.encode_corpus(Corpus(FITTED[1:], role="test"))
        assert other.encode_corpus(Corpus("wider", role="test")).checked
    with pytest.raises(ValueError, match="document 0: the tokenizer was fitted on"):
        longer.encode_corpus(Corpus("wider " * 9, role="test"))


@KINDS
def test_parts_of_a_split_may_be_encoded(kind):
    texts = [f"low lower {number % 50}" for number in range(100)]
    training, validation, test = kind(texts).split(validation=0.2, test=0.2)
    tokenizer = trained(training)
    for part in (validation, test):
        assert tokenizer.encode_corpus(part).checked
    with pytest.raises(ValueError, match="the tokenizer was fitted on this document"):
        tokenizer.encode_corpus(kind(training, role="test"))


@KINDS
def test_the_check_that_cannot_be_made(kind, monkeypatch):
    monkeypatch.setattr(record, "MOST_HASHES", 1)
    monkeypatch.setattr(record.Record.__init__, "__defaults__", (1,))
    tokenizer = trained(FITTED)
    assert tokenizer.state()["vocabulary"]["provenance"][0]["hashes"] is None
    with pytest.warns(UserWarning, match="the hashes of the documents .* it cannot be checked"):
        encoded = tokenizer.encode_corpus(kind(["newer newest"], role="validation"))
    assert not encoded.checked
    assert encoded.role == "validation"
    # All together they are known.
    with pytest.raises(ValueError, match=r"fitted on these very 2 documents, from document 0 on"):
        tokenizer.encode_corpus(kind(FITTED, role="validation"))
    assert not tokenizer.encode_corpus(kind(FITTED)).checked


def test_a_tokenizer_that_was_fitted_on_nothing():
    assert Tokenizer.from_bytes().encode_corpus(Corpus("a", role="test")).checked


def test_what_an_imported_vocabulary_was_fitted_on_is_not_known(tmp_path):
    trained(FITTED, reserved=()).to_json(tmp_path / "a.json")
    imported = Tokenizer.from_json(tmp_path / "a.json")
    assert not imported.encode_corpus(Corpus("a", role="test")).checked


# The tail


def rows(encoded):
    """The tokens of each document."""
    places = encoded.offsets.tolist()
    return [encoded.tokens[a:b].tolist() for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize(
    "texts", [["abc"], ["ab", "c"], ["", "ab", "", "", "cde", "f", ""], ["", "", "abc"]], ids=repr
)
def test_the_tail_of_the_tokens(texts):
    whole = Tokenizer.from_bytes().encode_corpus(Corpus(texts))
    count = len(whole.tokens)
    ends = {*whole.offsets.tolist()}
    for kept in range(1, count):
        training, validation = whole.split(kept)
        assert (training.role, validation.role) == ("training", "validation")
        assert (len(training.tokens), len(validation.tokens)) == (count - kept, kept)
        before, behind = rows(training), rows(validation)
        if count - kept not in ends:
            before, behind = [*before[:-1], before[-1] + behind[0]], behind[1:]
        assert before + behind == rows(whole)
        assert (training.part, validation.part) == ((0, count - kept), (count - kept, count))
        assert np.shares_memory(training.tokens, whole.tokens)
        assert not (training.checked or validation.checked)


@pytest.mark.parametrize(
    ("validation", "kept"), [(0.1, 10), (0.5, 50), (0.001, 1), (0.99, 99), (7, 7), (99, 99)]
)
def test_how_much_is_kept(validation, kept):
    whole = Tokenizer.from_bytes().encode_corpus(Corpus("x" * 99 + "y"))
    training, tail = whole.split(validation)
    assert (len(training.tokens), len(tail.tokens)) == (100 - kept, kept)
    assert tail.tokens[-1] == ord("y")
    assert len(whole.split()[1].tokens) == 10


def test_a_part_of_a_part():
    whole = Tokenizer.from_bytes().encode_corpus(Corpus("abcdefghij"))
    training, _ = whole.split(2)
    again, tail = training.split(3)
    assert (again.part, tail.part, bytes(tail.tokens.tolist())) == ((0, 5), (5, 8), b"fgh")


@pytest.mark.parametrize(
    ("validation", "error", "message"),
    [
        (0, ValueError, "validation must be from 1 to"),
        (-1, ValueError, "validation must be from 1 to"),
        (3, ValueError, "of 3 tokens 3 for validation leave none for training"),
        (0.9, ValueError, "of 3 tokens 3 for validation leave none for training"),
        (1.0, ValueError, "validation must be between 0 and 1, not 1.0"),
        (True, TypeError, "validation must be a number, not bool"),
        ("0.1", TypeError, "validation must be a number, not str"),
    ],
)
def test_what_is_no_tail(validation, error, message):
    with pytest.raises(error, match=message):
        Tokenizer.from_bytes().encode_corpus(Corpus("abc")).split(validation)


def test_only_training_data_have_a_tail_to_keep():
    encoded = Tokenizer.from_bytes().encode_corpus(Corpus("abc", role="test"))
    with pytest.raises(ValueError, match="only training data can be split, and these are test"):
        encoded.split()
