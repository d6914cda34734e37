"""From bytes to what a target needs, and the outcome of a call on it."""

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

from cases import Raised

Item = TypeVar("Item")
Result = TypeVar("Result")

REFUSALS = (ValueError, OSError)  # what readers of files may raise
INTERESTING = b"\x00\x01\x02\x07\x08\x0f\x10\x1f ',0?@AZ[]az{}\x7f\x80\xff"
# Ids near 2**32, which make large tables, have tests of their own.
VALUES = (
    *(None, True, -1, 0, 1, 2, 7, 8, 2**63 - 1, 2**63, 2**64, 10**30, 1.5, 1e999),
    *(
        "",
        "x",
        "../x",
        "/",
        "\0",
        "00000-00000",
        "test",
        "uint32",
        "\ud800",
        [],
        {},
        [[1]],
        {"a": 1},
    ),
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


def edit_plain(plain: Any, choices: Choices) -> None:
    """Change, remove or add a value somewhere in plain data."""
    places = [*plain] if isinstance(plain, dict) else [*range(len(plain))]
    if not places:
        return
    place = choices.pick(places)
    kind = choices.number(6)
    if kind < 3 and isinstance(plain[place], (dict, list)):
        edit_plain(plain[place], choices)
    elif kind == 3:
        del plain[place]
    elif kind == 4 and isinstance(plain, list):
        plain.append(plain[place])
    elif kind == 4:
        plain["more"] = choices.pick(VALUES)
    else:
        plain[place] = choices.pick(VALUES)


def mutated(data: bytes, random: Random) -> bytes:
    """The bytes with a few changes: in JSON of values, or of bytes."""
    if random.random() < 0.5 and (edited := json_edited(data, random)) is not None:
        return edited
    return bytes_edited(data, random)


def json_edited(data: bytes, random: Random) -> bytes | None:
    """The same with another value in the first JSON object; None if there is none."""
    start = data.find(b"{")
    if start < 0:
        return None
    text = data[start:].decode("utf-8", "surrogateescape")
    try:
        plain, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    edit_plain(plain, Choices(random.randbytes(16)))
    rest = text[end:].encode("utf-8", "surrogateescape")
    return data[:start] + json.dumps(plain).encode("ascii") + rest


def bytes_edited(data: bytes, random: Random) -> bytes:
    """The same with some bytes removed, repeated, moved or put in the place of others."""
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
