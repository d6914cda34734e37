"""Orders that are computed, not kept: any place of them is found at once, in no memory.

They are made of whole numbers alone, so they are the same on any machine and with any NumPy.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# The constants of SplitMix64 (Steele, Lea and Flood 2014), which these functions are made of.
CONSTANTS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
GOLDEN, FIRST, SECOND = map(np.uint64, CONSTANTS)
ALL_BITS = 2**64 - 1
ROUNDS = 8
# Halves of at least so many bits: those of fewer have too few permutations.
LEAST_HALF = 3


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each number as another one, which looks drawn at random."""
    values = values + GOLDEN
    values = (values ^ (values >> np.uint64(30))) * FIRST
    values = (values ^ (values >> np.uint64(27))) * SECOND
    return values ^ (values >> np.uint64(31))


def mixed_one(value: int) -> int:
    """The same for one number: arrays would take ten times as long."""
    golden, first, second = CONSTANTS
    value = (value + golden) & ALL_BITS
    value = (value ^ (value >> 30)) * first & ALL_BITS
    value = (value ^ (value >> 27)) * second & ALL_BITS
    return value ^ (value >> 31)


def key(numbers: Iterable[int]) -> np.uint64:
    """A key for some numbers in order."""
    value = 0
    for number in numbers:
        value = mixed_one(value ^ mixed_one(number))
    return np.uint64(value)


def drawn(places: NDArray[np.int64], size: int, numbers: Iterable[int]) -> NDArray[np.int64]:
    """A number from 0 to size - 1 for each place, drawn with replacement.

    numbers: others give other draws.
    """
    values = mixed(mixed(places.astype(np.uint64)) ^ key(numbers))
    return (values % np.uint64(size)).astype(np.int64)


def permuted(places: NDArray[np.int64], size: int, numbers: Iterable[int]) -> NDArray[np.int64]:
    """Where each place from 0 to size - 1 is in a permutation of these.

    numbers: others give another permutation.

    A Feistel network permutes the numbers of an even number of bits. What falls outside goes
    through it again until it is inside: the way there is one of its cycles, so that no two places
    meet (Black and Rogaway 2002).
    """
    half = max(LEAST_HALF, (max(size - 1, 1).bit_length() + 1) // 2)
    keys = mixed(np.arange(ROUNDS, dtype=np.uint64) ^ key(numbers))
    values = network(places.astype(np.uint64), half, keys)
    outside = np.flatnonzero(values >= size)
    while len(outside):
        values[outside] = network(values[outside], half, keys)
        outside = outside[values[outside] >= size]
    return values.astype(np.int64)


def network(values: NDArray[np.uint64], half: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of the numbers of twice so many bits."""
    bits, rest = np.uint64(half), np.uint64(64 - half)
    left, right = values >> bits, values & np.uint64(2**half - 1)
    for number in range(len(keys)):
        drawn = (right ^ keys[number]) * FIRST
        drawn ^= drawn >> np.uint64(32)
        drawn *= SECOND
        left, right = right, left ^ (drawn >> rest)
    return (left << bits) | right
