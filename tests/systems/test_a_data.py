"""System A: next-token windows, the split of the tokens, fixed validation batches."""

import itertools

import numpy as np
import pytest

from tokbpe import TokenDataset, Tokenizer

pytestmark = pytest.mark.core


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


def test_next_token_windows():
    (window,) = TokenDataset([4, 7, 2, 9, 3], 4)
    assert window.inputs.tolist() == [4, 7, 2, 9]
    assert window.targets.tolist() == [7, 2, 9, 3]
    (batch,) = TokenDataset([4, 7, 2, 9, 3], 4).batches(1, order="random")
    assert [array.tolist() for array in batch] == [[[4, 7, 2, 9]], [[7, 2, 9, 3]]]
    assert batch.inputs.dtype == batch.targets.dtype == np.uint32


@pytest.mark.parametrize("method", ["byte", "bpe"])
def test_context_counts_tokens(method):
    text = "low lower lowest " * 20
    options = {"pattern": "gpt2"} if method == "bpe" else {}
    tokenizer = Tokenizer(text, method=method, **options)
    tokens = tokenizer.encode_array(text)
    batches = TokenDataset(tokens, 8).batches(3)
    shapes = [batch.inputs.shape for batch in batches][:-1]
    assert set(shapes[:-1]) == {(3, 8)}
    assert tokenizer.decode(next(iter(batches)).inputs[0]) == tokenizer.decode(tokens[:8])


def test_data_split():
    text = "low lower lowest newest widest " * 30
    tokenizer = Tokenizer(text, method="bpe", pattern="gpt2")
    tokens = tokenizer.encode_array(text)
    marked = np.arange(len(tokens))  # places in the place of ids
    training, validation = TokenDataset(marked, 4).split(0.1)
    tail = round(0.9 * len(tokens))
    assert validation[0].inputs[0] == tail
    for order in ("sequential", "shuffled", "random"):
        batches = itertools.islice(training.batches(4, order=order).forever(), 200)
        assert max(batch.targets.max() for batch in batches) < tail
    first = [batch.targets.tolist() for batch in validation.fixed_batches(2)]
    assert first == [batch.targets.tolist() for batch in validation.fixed_batches(2)]
    assert min(map(min, itertools.chain(*first))) > tail
