"""System E: documents with roles and provenance."""

import pytest

from tokbpe import Corpus, StreamedCorpus, Tokenizer
from tokbpe.record import MOST_HASHES

pytestmark = pytest.mark.core


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


NAMES = ("BOS", "EOS", "PAD")


# The byte codec


def test_byte_codec():
    tokenizer = Tokenizer.from_bytes(reserved=NAMES)
    assert tokenizer.reserved == {"BOS": 256, "EOS": 257, "PAD": 258}
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id) == (256, 257, 258)
    assert tokenizer.vocab_size == 259
    every = bytes(range(256))
    assert tokenizer.encode_bytes(every) == list(range(256))
    assert tokenizer.decode_bytes(range(256)) == every
    assert tokenizer.vocabulary_bytes == every
    assert tokenizer.target_vocab_size is None


def test_bpe_with_the_same_reserved_ids_learns_from_259():
    tokenizer = Tokenizer("abab", method="bpe", reserved=NAMES, vocabulary_size=260)
    assert tokenizer.reserved == {"BOS": 256, "EOS": 257, "PAD": 258}
    assert tokenizer.vocabulary[259] == b"ab"
    assert tokenizer.encode("abab", bos=True, eos=True) == [256, 259, 259, 257]


def test_ties_go_to_the_smaller_pair_of_ids():
    tokenizer = Tokenizer("dcba" * 2, method="bpe", vocabulary_size=257, minimum_pair_frequency=1)
    assert tokenizer.vocabulary[256] == b"ba"


# The corpus


@pytest.mark.parametrize("role", ["training", "validation", "test"])
def test_a_corpus_is_a_snapshot(role):
    texts = ["low lower", "lowest"]
    corpus = Corpus(texts, role=role)
    texts.append("x")
    assert corpus.documents == ("low lower", "lowest")
    assert corpus.role == role
    assert corpus.summary["documents"] == 2
    assert corpus.fingerprint() == Corpus(["low lower", "lowest"], role=role).fingerprint()
    with pytest.raises(AttributeError):
        corpus.role = "training"
    with pytest.raises(ValueError, match="a corpus needs at least one document"):
        Corpus([], role=role)


def test_an_encoded_corpus_has_marks_for_each_document():
    tokenizer = Tokenizer.from_bytes(reserved=NAMES)
    corpus = Corpus(["hi", "", "yo"], role="test")
    encoded = tokenizer.encode_corpus(corpus, bos=True, eos=True)
    assert encoded.tokens.tolist() == [256, 104, 105, 257, 256, 257, 256, 121, 111, 257]
    assert encoded.offsets.tolist() == [0, 4, 6, 10]
    assert (encoded.documents, encoded.role) == (3, "test")
    plain = tokenizer.encode_corpus(corpus)
    assert plain.tokens.tolist() == [104, 105, 121, 111]
    other = Tokenizer.from_bytes(reserved=NAMES[::-1]).encode_corpus(corpus, bos=True, eos=True)
    prints = {encoded.fingerprint(), plain.fingerprint(), other.fingerprint()}
    assert len(prints) == 3
    again = Tokenizer.from_bytes(reserved=NAMES).encode_corpus(corpus, bos=True, eos=True)
    assert again.fingerprint() == encoded.fingerprint()


def test_each_regular_file_is_a_document(tmp_path):
    (tmp_path / "one.txt").write_bytes(b"two\nlines\n")
    (tmp_path / "two.txt").write_bytes(b"<eos>")
    corpus = Corpus.from_files(tmp_path, max_bytes=15)
    assert corpus.documents == (b"two\nlines\n", b"<eos>")
    with pytest.raises(ValueError, match=r"two\.txt: .* max_bytes=14 bytes"):
        Corpus.from_files(tmp_path, max_bytes=14)
    (tmp_path / "link.txt").symlink_to(tmp_path / "one.txt")
    with pytest.raises(OSError, match="symbolic link"):
        Corpus.from_files(tmp_path)


def test_bpe_is_fitted_on_a_training_corpus_only():
    texts = ["low lower", "lowest"]
    for role in ("validation", "test"):
        with pytest.raises(ValueError, match=f"on a training corpus alone, and this one is {role}"):
            Tokenizer(Corpus(texts, role=role), method="bpe", reserved=NAMES)
    assert Tokenizer(Corpus(texts), method="bpe", reserved=NAMES).merges.tolist()[0] == [108, 111]


# Encode and decode


@pytest.mark.parametrize("text", ["<eos>", "<|EOS|>", "EOS", "<|eos|>", "a<eos>b"])
def test_spelling_of_a_reserved_id_stays_text(text):
    tokenizer = Tokenizer.from_bytes(reserved=NAMES)
    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.encode(text, allowed_special="all") == list(text.encode())
    assert tokenizer.decode(tokenizer.encode(text, eos=True), skip_special=True) == text


def test_bytes_that_are_no_utf8():
    tokenizer = Tokenizer.from_bytes(reserved=NAMES)
    ids = tokenizer.encode_bytes(b"\x00\xff\xc3", bos=True)
    assert ids == [256, 0, 255, 195]
    assert tokenizer.decode_bytes(ids) == b"\x00\xff\xc3"
    assert tokenizer.decode(ids, errors="replace") == "<|BOS|>\x00\ufffd\ufffd"
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode(ids)


# Identity


def trained(corpus=("low lower", "lowest"), **options):
    return Tokenizer(corpus, method="bpe", **{"vocabulary_size": 262, "reserved": NAMES, **options})


def test_same_input_has_the_same_fingerprint(chosen_engine):
    assert trained().fingerprint() == trained().fingerprint()
    assert trained().fingerprint() == trained(engine="reference").fingerprint()
    assert trained(engine="reference").fingerprint() == trained(engine="fast").fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        {"corpus": ["low lower", "lowesT"]},
        {"corpus": ["lowest", "low lower"]},
        {"corpus": ["low lower", "lowest", ""]},
        {"corpus": ["low lowerlowest"]},
        {"vocabulary_size": 261},
        {"reserved": ("EOS", "BOS", "PAD")},
        {"reserved": ("BOS", "EOS", "SEP")},
        {"special_tokens": ["<|e|>"], "vocabulary_size": 263},
        {"special_ids": "first"},
        {"base": "gpt2"},
        {"pattern": "gpt2"},
        {"tie_break": "greatest"},
        {"minimum_pair_frequency": 1},
    ],
    ids=repr,
)
def test_other_input_has_another_fingerprint(other):
    assert trained().fingerprint() != trained(**other).fingerprint()


def test_equal_size_alone_never_means_equal():
    one, other = trained(["ab" * 9], vocabulary_size=260), trained(["cd" * 9], vocabulary_size=260)
    assert one.vocab_size == other.vocab_size
    assert one != other
    assert one.fingerprint() != other.fingerprint()


def test_fingerprint_of_training_on_bytes_is_that_of_the_text():
    assert trained([b"low lower", b"lowest"]).fingerprint() == trained().fingerprint()


@pytest.mark.parametrize("kind", [Corpus, StreamedCorpus])
def test_a_corpus_gives_the_fingerprint_of_its_documents(kind):
    texts = ["low lower", "lowest"]
    assert trained(kind(texts)).fingerprint() == trained(texts).fingerprint()
    record = trained(kind(texts)).state()["vocabulary"]["provenance"][0]
    assert record["fingerprint"] == kind(texts).fingerprint()
    assert kind(texts).fingerprint() != kind(texts[::-1]).fingerprint()
    assert kind(["ab"]).fingerprint() != kind(["cd"]).fingerprint()


# Partitions


@pytest.mark.parametrize("role", ["validation", "test"])
@pytest.mark.parametrize("kind", [Corpus, StreamedCorpus])
def test_a_document_of_the_fitting_data_is_refused(kind, role):
    tokenizer = trained(Corpus(["low lower", "lowest"]))
    with pytest.raises(ValueError, match="document 1: the tokenizer was fitted on this document"):
        tokenizer.encode_corpus(kind(["wider", "lowest"], role=role))
    # What is not the same byte for byte is not detected.
    assert tokenizer.encode_corpus(kind(["wider", "lowest "], role=role)).checked


@pytest.mark.long
def test_beyond_the_hashes_that_are_kept_the_check_cannot_be_made():
    texts = [f"low {number}" for number in range(MOST_HASHES + 1)]
    tokenizer = Tokenizer(Corpus(texts), engine="fast")
    with pytest.warns(UserWarning, match="up to 100000 documents.* it cannot be checked"):
        encoded = tokenizer.encode_corpus(Corpus(["low 7"], role="test"))
    assert not encoded.checked
    kept = Tokenizer(Corpus(texts[1:]), engine="fast")
    with pytest.raises(ValueError, match="document 0: the tokenizer was fitted on this document"):
        kept.encode_corpus(Corpus(["low 7"], role="test"))


# The artifact


def test_artifact(tmp_path):
    tokenizer = trained(special_tokens=["<|e|>"], vocabulary_size=263)
    path = tmp_path / "saved"
    tokenizer.save(path)
    again = Tokenizer.load(path)
    assert again == tokenizer
    assert again.fingerprint() == tokenizer.fingerprint()
    assert again.state() == tokenizer.state()
    assert again.encode("lowest<|e|>", allowed_special="all", eos=True) == tokenizer.encode(
        "lowest<|e|>", allowed_special="all", eos=True
    )


def test_saving_needs_a_new_path(tmp_path):
    path = tmp_path / "saved"
    trained().save(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        trained(vocabulary_size=261).save(path)
    assert path.read_bytes() == before


def test_two_saves_are_the_same_bytes(tmp_path):
    trained(engine="reference").save(tmp_path / "one")
    trained(engine="fast").save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_a_changed_byte_is_detected(tmp_path, place):
    path = tmp_path / "saved"
    trained().save(path)
    data = bytearray(path.read_bytes())
    data[place * len(data) // 100] ^= 1
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(ValueError, match="other: (the file|this is no tokenizer)"):
        Tokenizer.load(tmp_path / "other")


@pytest.mark.parametrize("method", ["byte", "bpe", "char", "word"])
@pytest.mark.parametrize(
    "options", [{}, {"special_tokens": ["\x00 \r\n", "🐈"], "reserved": ["EOS"]}]
)
def test_every_method_is_saved_and_loaded(tmp_path, method, options):
    tokenizer = Tokenizer("ab ab\x00 \r\nab 🐈 a", method=method, **options)
    tokenizer.save(tmp_path / "saved")
    again = Tokenizer.load(tmp_path / "saved")
    for allowed in ((), "all"):
        assert again.encode("ab a", allowed_special=allowed) == tokenizer.encode(
            "ab a", allowed_special=allowed
        )
    assert again == tokenizer
    assert again.special_tokens == tokenizer.special_tokens
