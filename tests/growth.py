"""What takes how much longer than what: no time by itself, which depends on the machine. And what
takes how much memory."""

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(work: Callable[[], object], other: Callable[[], object], enough: float) -> float:
    """The processor time of some work over that of another.

    The first run of each, with its fresh memory, does not count. Of the others, in turn, the least
    does, since all else only adds to it, and they end when the ratio is below what is enough.
    """
    work(), other()
    least, least_other = seconds(work), seconds(other)
    for _ in range(9):
        if least < enough * least_other:
            break
        least_other = min(least_other, seconds(other))
        least = min(least, seconds(work))
    return least / least_other


def growth(work: Callable[[Any], object], short: Any, long: Any, enough: float) -> float:
    """How much longer some work takes with what is long than with what is short."""
    return ratio(lambda: work(long), lambda: work(short), enough)


def peak(work: Callable[[], object]) -> int:
    """The most bytes that some work has of Python's memory."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def calls(work: Callable[[], object]) -> int:
    """How many functions are called by some work of Python's: the same number each time."""
    number = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return number
