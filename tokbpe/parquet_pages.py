"""What a Parquet file tells of the pages of its columns, and how large these are.

It is read here and not asked of pyarrow, which does not tell of the headers of pages, and ends the
process where what it tells of a column is damaged.

Source: the format's `parquet.thrift`, in the compact protocol of Thrift.
"""

import io
import os
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple, TypeAlias

MAGIC = b"PAR1"
# The kinds of pages.
DATA, DICTIONARY, DATA_2 = 0, 2, 3


class Chunk(NamedTuple):
    """Where the pages of a column stand in a row group."""

    values: int
    size: int  # bytes in the file
    data: int  # offset of the first page with data
    dictionary: int  # that of the dictionary; 0: it tells of none


class Page(NamedTuple):
    """What the header of a page tells."""

    packed: int  # bytes in the file
    size: int  # bytes
    values: int
    encoding: int | None  # None: these are of a dictionary


def chunks(file: IO[bytes], columns: int) -> Iterator[list[Chunk]]:
    """Those of each row group: one for each column that is stored, of which there are so many."""
    end = file.seek(0, os.SEEK_END)
    for group in structure_of(io.BytesIO(footer(file)), FOOTER).get(4, []):
        found = group.get(1, [])
        if len(found) != columns:
            raise damaged(f"a row group of {len(found)} columns, which must be {columns}")
        yield [chunk_of(column, end) for column in found]


def footer(file: IO[bytes]) -> bytes:
    end = file.seek(-8, os.SEEK_END)
    size = int.from_bytes(file.read(4), "little")
    if file.read(4) != MAGIC or size > end:
        raise damaged(f"it has {size} bytes of {end}, or another end than {MAGIC!r}")
    file.seek(end - size)
    return file.read(size)


def chunk_of(column: Mapping[int, Any], end: int) -> Chunk:
    """That of a column, in a file that ends there."""
    facts = column.get(3, {})
    values = whole(facts.get(5), 2**63)
    size, data = whole(facts.get(7), end), whole(facts.get(9), end)
    return Chunk(values, size, data, facts.get(11, 0))


def pages(file: IO[bytes], chunk: Chunk) -> Iterator[Page]:
    """The pages of a column in a row group, as pyarrow finds them."""
    start = chunk.dictionary if 0 < chunk.dictionary < chunk.data else chunk.data
    end = start + chunk.size
    left = chunk.values
    while left > 0 and start < end:
        file.seek(start)
        page = page_of(structure_of(file, HEADER))
        yield page
        start = file.tell() + page.packed
        if page.encoding is not None:
            left -= page.values


def page_of(header: Mapping[int, Any]) -> Page:
    """What a header tells; ValueError for what is none."""
    kind = header.get(1)
    if kind not in OF_KIND:  # of an index, which nobody writes
        raise damaged(f"a page of kind {kind}")
    field, encoding = OF_KIND[kind]
    facts = header.get(field, {})
    told = header.get(3), header.get(2), facts.get(1), facts.get(encoding)
    page = Page(*(whole(number, 2**31) for number in told))
    return page._replace(encoding=None) if kind == DICTIONARY else page


def whole(number: int | None, end: int) -> int:
    """A number of bytes or values, below `end`."""
    if number is None or not 0 <= number < end:
        raise damaged(f"the number {number}, which must be below {end} and not negative")
    return number


def damaged(what: str) -> ValueError:
    return ValueError(f"what the file tells of its columns is damaged: {what}")


# What is read of a structure, by the numbers of its fields: None for a whole number, a mapping for
# a structure, a list of one of these for a list. All others are skipped.
Wanted: TypeAlias = Mapping[int, Any]
FOOTER: Wanted = {4: [{1: [{3: {5: None, 7: None, 9: None, 11: None}}]}]}
HEADER: Wanted = {
    1: None,  # the kind of the page
    2: None,  # bytes
    3: None,  # bytes in the file
    5: {1: None, 2: None},  # of data: the number of values, and the encoding
    7: {1: None, 2: None},  # of a dictionary
    8: {1: None, 4: None},  # of data, version 2
}
# Which field tells of a kind of page, and in which of its fields the encoding is.
OF_KIND = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_2: (8, 4)}

# The kinds of values in the compact protocol.
TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, _, STRUCTURE = range(1, 13)
NUMBERS = {INT16, INT32, INT64}
# Those that always take so many bytes, in a list.
BYTES = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}
# How deeply structures and lists may lie in others. In Parquet it is less.
MOST_DEPTH = 16


def structure_of(file: IO[bytes], wanted: Wanted) -> dict[int, Any]:
    """The structure that begins here; the file stands behind it then."""
    return Reader(file).structure(wanted, 0)


class Reader:
    """Reads values in the compact protocol."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def structure(self, wanted: Wanted, depth: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field = 0
        while byte := self._byte():
            step, kind = divmod(byte, 16)
            field = field + step if step else self._number()
            if field not in wanted:
                self._skip(kind, depth + 1)
            else:
                found[field] = self._value(kind, wanted[field], depth + 1)
        return found

    def _value(self, kind: int, wanted: Any, depth: int) -> Any:
        if wanted is None and kind in NUMBERS:
            return self._number()
        if isinstance(wanted, Mapping) and kind == STRUCTURE:
            return self.structure(wanted, depth)
        if isinstance(wanted, list) and kind == LIST:
            size, inner = self._list()
            return [self._value(inner, wanted[0], depth + 1) for _ in range(size)]
        raise damaged(f"a value of kind {kind}")

    def _skip(self, kind: int, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise ValueError("what the file tells of its columns is nested too deeply")
        if kind in NUMBERS:
            self._bits()
        elif kind == BINARY:
            self._file.seek(whole(self._bits(), 2**31), os.SEEK_CUR)
        elif kind in (LIST, SET):
            size, inner = self._list()
            if inner in BYTES:
                self._file.seek(size * BYTES[inner], os.SEEK_CUR)
            else:
                for _ in range(size):
                    self._skip(inner, depth + 1)
        elif kind == STRUCTURE:
            self.structure({}, depth)
        elif kind in (BYTE, DOUBLE):
            self._file.seek(BYTES[kind], os.SEEK_CUR)
        elif kind not in (TRUE, FALSE):  # whose kind is their value
            raise damaged(f"a value of kind {kind}")

    def _list(self) -> tuple[int, int]:
        """How many values a list has, and their kind."""
        size, kind = divmod(self._byte(), 16)
        return (whole(self._bits(), 2**31) if size == 15 else size), kind

    def _number(self) -> int:
        bits = self._bits()
        return bits >> 1 ^ -(bits & 1)

    def _bits(self) -> int:
        """A number of seven bits in each byte, the lowest first."""
        bits = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            bits |= (byte & 127) << shift
            if byte < 128:
                return bits
        raise damaged("a number without an end")

    def _byte(self) -> int:
        byte = self._file.read(1)
        if not byte:
            raise damaged("it ends too early")
        return byte[0]
