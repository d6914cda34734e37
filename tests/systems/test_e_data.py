"""System E: what is encoded has a role and an identity, and work goes on with the same alone."""

import itertools
import re

import pytest

from tokbpe import Shards, TokenDataset, Tokenizer, write_shards

pytestmark = pytest.mark.core

FITTED = ["low lower lowest " * 9, "newest"]


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


@pytest.fixture
def tokenizer():
    return Tokenizer(
        FITTED, method="bpe", vocabulary_size=265, reserved=("BOS", "EOS", "PAD"), pattern="gpt2"
    )


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    for number, text in enumerate(["low lower\nlowest\n", "slow"]):
        (tmp_path / "in" / f"{number}.txt").write_text(text)
    return tmp_path / "in"


def test_each_file_is_one_document_with_its_own_bos_and_eos(tmp_path, source, tokenizer):
    shards = write_shards(source, tokenizer, tmp_path / "out", bos=True, eos=True)
    assert shards.documents == 2 and shards.role == "training"
    tokens = shards[:].tolist()
    assert tokens == [
        id
        for text in ("low lower\nlowest\n", "slow")
        for id in tokenizer.encode(text, bos=True, eos=True)
    ]
    assert tokens.count(tokenizer.bos_id) == tokens.count(tokenizer.eos_id) == 2


def test_symbolic_links_are_refused(tmp_path, source, tokenizer):
    (source / "link").symlink_to(source / "0.txt")
    with pytest.raises(OSError, match="this is a symbolic link, and none is followed: .*link"):
        write_shards(source, tokenizer, tmp_path / "out")


def test_identity(tmp_path, source, tokenizer):
    first = write_shards(source, tokenizer, tmp_path / "1", eos=True)
    assert write_shards(source, tokenizer, tmp_path / "2", eos=True).fingerprint() == (
        first.fingerprint()
    )
    other = Tokenizer(
        ["slow slower"] * 9,
        method="bpe",
        vocabulary_size=265,
        reserved=("BOS", "EOS", "PAD"),
        pattern="gpt2",
    )
    assert other.vocab_size == tokenizer.vocab_size  # equal size alone never means compatible
    message = f"{tokenizer.fingerprint()}, not of this one, {other.fingerprint()}"
    with pytest.raises(ValueError, match=re.escape(message)):
        Shards(tmp_path / "1", other)


def test_partitions(tmp_path, source, tokenizer):
    (source / "2.txt").write_text("newest")
    with pytest.raises(ValueError, match="2.txt: the tokenizer was fitted on this document, so it"):
        write_shards(source, tokenizer, tmp_path / "out", role="test")
    assert not (tmp_path / "out").exists()
    assert write_shards(source, tokenizer, tmp_path / "out").role == "training"


def test_going_on_needs_the_same_corpus_and_order(tmp_path, source, tokenizer):
    def batches(folder, order="shuffled"):
        return TokenDataset(tmp_path / folder, 3).batches(1, order=order)

    write_shards(source, tokenizer, tmp_path / "1")
    (source / "1.txt").write_text("slower")
    write_shards(source, tokenizer, tmp_path / "2")
    begun = batches("1")
    seen = [batch.inputs.tolist() for batch in itertools.islice(begun, 2)]
    state = begun.state_dict()
    following = next(iter(begun)).inputs.tolist()
    again = batches("1")
    again.load_state_dict(state)
    assert next(iter(again)).inputs.tolist() == following not in seen
    for other in (batches("2"), batches("1", "sequential")):
        with pytest.raises(ValueError, match="the state is of other batches") as raised:
            other.load_state_dict(state)
        name = re.search("its (\\w+) is", str(raised.value))[1]
        assert repr(state[name]) in str(raised.value)
        assert repr(other.state_dict()[name]) in str(raised.value)


def test_a_changed_byte_is_detected(tmp_path, source, tokenizer):
    shards = write_shards(source, tokenizer, tmp_path / "out")
    path = tmp_path / "out" / shards.shards[0].tokens_file
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="tokens.npy: "):
        Shards(tmp_path / "out").verify()
