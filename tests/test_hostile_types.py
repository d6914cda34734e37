"""Objects that lie about themselves must not reach memory that is not theirs."""

import contextlib
import importlib
import pickle
import pkgutil

import pytest

from tokbpe import fast, reference

pytestmark = pytest.mark.core

BYTES = [bytes([byte]) for byte in range(256)]


class Long(bytes):
    """Says that it is longer than it is."""

    def __len__(self):
        return 10**9


class Other(bytes):
    """Has other items than its bytes."""

    def __iter__(self):
        return iter([1, 2, 1, 2])


def compiled_types():
    for module in pkgutil.iter_modules(fast.__path__, "tokbpe.fast."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and value.__module__ == module.name:
                yield value


@pytest.mark.parametrize("made", [*compiled_types()], ids=lambda made: made.__name__)
def test_an_object_that_was_never_opened(made):
    """It is refused, or it is empty: nothing of it is used, and no copy is made."""
    try:
        empty = made()
    except TypeError:
        return
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps(empty, protocol)
    for use in (len, list, memoryview, lambda empty: empty.work(0)):
        with contextlib.suppress(TypeError, AttributeError, IndexError):
            assert not use(empty)


def test_a_length_that_lies(engine):
    assert engine.decode([0, 1], engine.decoding_table([Long(b"ab"), b"c"])) == b"abc"
    for rule in ("smallest", "greatest"):
        merges, _ = engine.train([[0, 1, 0, 1]], None, [Long(b"a"), Long(b"b")], 1, 1, rule)
        assert [tuple(pair) for pair in merges] == [(0, 1)]


def test_items_that_lie():
    merges, counts = fast.train([Other(b"abab")], None, BYTES, 1)
    assert (merges.tolist(), counts.tolist()) == ([[1, 2]], [2])
    assert reference.train([Other(b"abab")], None, BYTES, 1) == ([(1, 2)], [2])


@pytest.mark.parametrize("id", [0, 5, 10**8, 2**63, 2**70, -1, "0", 0.0], ids=repr)
def test_ids_beyond_an_empty_table(engine, id):
    table = engine.decoding_table([])
    with pytest.raises((TypeError, ValueError)):
        engine.decode([id], table)
    with pytest.raises(IndexError):
        fast.decoding_table([])[id]


def test_a_table_is_a_sequence():
    assert list(fast.decoding_table([b"a", None, b"b"])) == [b"a", None, b"b"]


def test_an_index_that_changes(engine):
    class Changing:
        values = iter([1, 10**9])

        def __index__(self):
            return next(self.values)

    assert engine.decode([Changing()], engine.decoding_table([b"a", b"b"])) == b"b"


@pytest.mark.parametrize("wanted", [0, 3])
def test_progress_is_not_called_where_nothing_is_merged(engine, wanted):
    merges, _ = engine.train([b"abcd"], None, BYTES, wanted, progress=lambda done, total: 1 / 0)
    assert len(merges) == 0
