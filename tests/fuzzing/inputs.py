"""From bytes to what a target needs, and the outcome of a call on it."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

from cases import Raised

Item = TypeVar("Item")
Result = TypeVar("Result")

REFUSALS = (ValueError, OSError)  # what readers of files may raise
INTERESTING = (
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    31,
    32,
    34,
    44,
    48,
    57,
    63,
    64,
    91,
    93,
    123,
    125,
    127,
    128,
    255,
)


class Choices:
    """Decisions, drawn one after another from bytes; those behind their end are 0."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def number(self, below: int) -> int:
        """A number of as many bytes as it needs."""
        size = max(1, ((below - 1).bit_length() + 7) // 8)
        return int.from_bytes(self.bytes(size), "little") % below

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.number(len(items))]

    def bytes(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        return self.bytes(len(self._data))


class OutOfTime(BaseException):
    """A regular expression that takes too long; no `except Exception` hides it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Leave the block without an error after so many seconds of work: how long a regular
    expression of a user's own may take is no matter of these tests."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except OutOfTime:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def outcome(
    call: Callable[..., Result],
    *arguments: Any,
    allowed: tuple[type[Exception], ...] = (ValueError,),
) -> Result | Raised:
    """What a call gives, or which of the exceptions that are allowed it raises."""
    try:
        return call(*arguments)
    except allowed as error:
        return Raised(type(error), error.args, str(error))


def same(ours: Result, theirs: Result) -> Result:
    """What two ways to the same give; AssertionError if they differ."""
    assert repr(ours) == repr(theirs), f"{ours!r:.500}, where the other way gives {theirs!r:.500}"
    return ours


def mutated(data: bytes, random: Random) -> bytes:
    """The bytes with a few changes, simple ones."""
    for _ in range(random.choice([1, 1, 2, 3, 8])):
        place = random.randrange(len(data) + 1)
        size = random.choice([1, 1, 2, 4, 16])
        part = data[place : place + size]
        new = random.choice(
            [
                b"",
                part + part,
                random.randbytes(len(part)),
                bytes(random.choices(INTERESTING, k=len(part))),
                bytes(random.choices(data or b"\0", k=len(part))),
                part[::-1],
                data[(other := random.randrange(len(data) + 1)) : other + 2 * size],
            ]
        )
        data = data[:place] + new + data[place + size * random.choice([0, 1]) :]
    return data
