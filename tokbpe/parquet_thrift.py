"""Structures in the compact protocol of Thrift, in which Parquet files tell of themselves.

Source: `doc/specs/thrift-compact-protocol.md` of Apache Thrift.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

# What is read of a structure, by the numbers of its fields. All others are skipped.
# NUMBER: a whole number, or a truth. PLACE: where the value begins. A mapping: a structure.
# A list of one of these: a list.
Wanted: TypeAlias = Mapping[int, Any]
NUMBER = "number"
PLACE = "place"

# The kinds of values.
TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, _, STRUCTURE = range(1, 13)
NUMBERS = {INT16, INT32, INT64}
# Those that always take so many bytes, in a list.
BYTES = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}
# The highest number of a field.
MOST_FIELDS = 2**15 - 1
# How deeply structures and lists may lie in others. In Parquet it is less.
MOST_DEPTH = 16


class Damaged(ValueError):
    """What a Parquet file tells of itself cannot be so."""

    def __init__(self, what: str) -> None:
        super().__init__(f"what the file tells of its columns is damaged: {what}")


class EndsEarly(Damaged):
    """There are not as many bytes as there should be."""


def structure_at(data: bytes, at: int, wanted: Wanted) -> tuple[dict[int, Any], int]:
    """What is wanted of the structure that begins there, and where it ends."""
    reader = Reader(data, at)
    try:
        return reader.structure(wanted), reader.at
    except IndexError:
        raise EndsEarly("it ends too early") from None


class Reader:
    """Reads what is wanted, one value after another."""

    def __init__(self, data: bytes, at: int) -> None:
        self.at = at
        self._data = data

    def structure(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field = 0
        while byte := self._byte():
            step, kind = divmod(byte, 16)
            field = field + step if step else self._number()
            if not 0 < field <= MOST_FIELDS:
                raise Damaged(f"a field of the number {field}")
            if field in found:  # of two, readers do not all take the same
                raise Damaged(f"field {field} stands twice")
            if field in wanted:
                found[field] = self._value(kind, wanted[field], depth + 1)
            elif kind not in (TRUE, FALSE):  # whose kind is their value
                self.at = behind(self._data, self.at, kind, depth + 1)
        return found

    def _value(self, kind: int, wanted: Any, depth: int) -> Any:
        if wanted == NUMBER and kind in NUMBERS:
            return self._number()
        if wanted == NUMBER and kind in (TRUE, FALSE):
            return int(kind == TRUE)
        if wanted == PLACE and kind == STRUCTURE:
            place, self.at = self.at, behind(self._data, self.at, kind, depth)
            return place
        if isinstance(wanted, Mapping) and kind == STRUCTURE:
            return self.structure(wanted, depth)
        if isinstance(wanted, list) and kind == LIST:
            size, inner, self.at = list_at(self._data, self.at)
            return [self._value(inner, wanted[0], depth + 1) for _ in range(size)]
        raise Damaged(f"a value of kind {kind}")

    def _number(self) -> int:
        bits, self.at = bits_at(self._data, self.at)
        return signed(bits)

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]


def behind(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends that begins there. As fast as Python is: most of a file's facts are none
    that are wanted."""
    if depth > MOST_DEPTH:
        raise Damaged("it is nested too deeply")
    if kind == STRUCTURE:
        while byte := data[at]:
            at += 1
            kind = byte & 15
            if byte < 16:
                at = behind_number(data, at)
            if kind in NUMBERS:
                while data[at] > 127:
                    at += 1
                at += 1
            elif kind not in (TRUE, FALSE):
                at = behind(data, at, kind, depth + 1)
        return at + 1
    if kind in NUMBERS:
        return behind_number(data, at)
    if kind == BINARY:
        size, at = bits_at(data, at)
        return at + size
    if kind in (LIST, SET):
        size, kind, at = list_at(data, at)
        if kind in BYTES:
            return at + size * BYTES[kind]
        for _ in range(size):
            at = behind(data, at, kind, depth + 1)
        return at
    if kind in (BYTE, DOUBLE):
        return at + BYTES[kind]
    raise Damaged(f"a value of kind {kind}")


def behind_number(data: bytes, at: int) -> int:
    while data[at] > 127:
        at += 1
    return at + 1


def list_at(data: bytes, at: int) -> tuple[int, int, int]:
    """How many values a list has, their kind, and where they begin."""
    size, kind = divmod(data[at], 16)
    at += 1
    if size == 15:
        size, at = bits_at(data, at)
    return size, kind, at


def bits_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits in each byte, the lowest first, and where it ends."""
    bits = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        at += 1
        bits |= (byte & 127) << shift
        if byte < 128 and bits < 2**64:
            return bits, at
    raise Damaged("a number of more than 64 bits")


def signed(bits: int) -> int:
    """A number of which the lowest bit tells the sign ("zigzag")."""
    return bits >> 1 ^ -(bits & 1)
