"""Rows in one array."""

import numpy as np
import pytest

from tokbpe import reference
from tokbpe.rows import Rows


def rows(symbols: list[int], ends: list[int], dtype: str = "uint8") -> Rows:
    return Rows(np.array(symbols, dtype), np.array(ends, np.uint64))


def test_rows_are_a_sequence_of_sequences() -> None:
    found = rows([1, 2, 3, 4, 5], [2, 2, 5])
    assert len(found) == 3
    assert [row.tolist() for row in found] == [[1, 2], [], [3, 4, 5]]
    assert found[-1].tolist() == [3, 4, 5]
    assert [row.tolist() for row in found[1:]] == [[], [3, 4, 5]]
    assert list(rows([], [])) == []
    with pytest.raises(IndexError):
        found[3]


def test_rows_train_as_lists_do() -> None:
    alphabet = [bytes([symbol]) for symbol in range(256)]
    listed = [[1, 2, 1, 2], [], [2, 1, 2]]
    flat = rows([1, 2, 1, 2, 2, 1, 2], [4, 4, 7], "uint16")
    assert reference.train(flat, [1, 2, 3], alphabet, 9) == reference.train(
        listed, [1, 2, 3], alphabet, 9
    )


@pytest.mark.parametrize(
    ("symbols", "ends", "message"),
    [
        (np.zeros(2, np.int64), np.array([2], np.uint64), "uint8 or uint16 or uint32, not int64"),
        (np.zeros(2, np.uint8), [2], "array of uint64, not list"),
        (np.zeros((2, 1), np.uint8), np.array([2], np.uint64), "one dimension, not 2"),
        (np.zeros(2, np.uint8), np.array([1, 0, 2], np.uint64), "row 1 ends at 0, before row 0"),
        (np.zeros(2, np.uint8), np.array([3], np.uint64), "ends at 3, but there are 2 symbols"),
        (np.zeros(2, np.uint8), np.array([], np.uint64), "ends at 0, but there are 2 symbols"),
    ],
)
def test_other_arrays_are_refused(symbols: object, ends: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Rows(symbols, ends)  # type: ignore[arg-type]
