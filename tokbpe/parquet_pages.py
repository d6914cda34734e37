"""What a Parquet file tells of the pages of its columns, and how large these are.

It is read here and not asked of pyarrow, which does not tell of the headers of pages, takes what
memory a footer asks for, and ends the process where what it tells of a column is damaged.

Source: the format's `parquet.thrift`.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from operator import attrgetter
from typing import IO, Any, NamedTuple

from tokbpe.parquet_thrift import NUMBER, PLACE, Damaged, EndsEarly, Wanted, structure_at

MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
IS_ENCRYPTED = "this Parquet file is encrypted"
# The kinds of pages.
DATA, DICTIONARY, DATA_2 = 0, 2, 3

# Bytes that any footer may have, and which share of the file beyond that.
MOST_FOOTER = 2**25
FOOTER_SHARE = 8
# Columns, and those of each row group, that any footer may tell of, and of how many bytes each
# must be beyond that: pyarrow takes 700 bytes for one.
MOST_COLUMNS = 2**17
COLUMN_BYTES = 16
# So far may the last page of a column end behind it: old writers forgot the header of a dictionary.
MOST_BEYOND = 100
# Of the header of a page, which may hold a long text; most need no more than the first.
HEADER_BYTES = 2**7
MOST_HEADER = 2**24

FOOTER: Wanted = {
    2: [PLACE],  # the schema
    4: [{1: [PLACE]}],  # the columns of each row group
    8: PLACE,  # how columns are encrypted, where the footer is not
}
CHUNK: Wanted = {
    3: {
        4: NUMBER,  # the codec
        5: NUMBER,  # values
        7: NUMBER,  # bytes in the file
        9: NUMBER,  # offset of the first page with data
        11: NUMBER,  # offset of the dictionary
    }
}
HEADER: Wanted = {
    1: NUMBER,  # the kind of the page
    2: NUMBER,  # bytes
    3: NUMBER,  # bytes in the file
    5: {1: NUMBER, 2: NUMBER, 3: NUMBER},  # of data: values, encoding, and that of levels
    7: {1: NUMBER, 2: NUMBER},  # of a dictionary
    8: {1: NUMBER, 4: NUMBER, 5: NUMBER, 6: NUMBER, 7: NUMBER},  # of data, version 2
}
# Which field tells of a kind of page, and in which of its fields the encoding is.
OF_KIND = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_2: (8, 4)}


class Chunk(NamedTuple):
    """Where the pages of a column stand in a row group."""

    values: int
    size: int  # bytes in the file
    data: int  # offset of the first page with data
    dictionary: int  # that of the dictionary; 0: it tells of none
    codec: int

    @property
    def start(self) -> int:
        """The offset of the first page, as pyarrow finds it."""
        return self.dictionary if 0 < self.dictionary < self.data else self.data

    @property
    def end(self) -> int:
        return self.start + self.size


class Page(NamedTuple):
    """What the header of a page tells."""

    packed: int  # bytes in the file
    size: int  # bytes
    values: int
    encoding: int | None  # None: these are of a dictionary
    place: int  # offset of what is packed
    facts: Mapping[int, Any]  # of version 1 or 2


class Footer:
    """What stands at the end of a file; ValueError for what pyarrow should not be given."""

    def __init__(self, file: IO[bytes]) -> None:
        self._end = file.seek(0, os.SEEK_END)
        self._data = footer_of(file, self._end)
        told = structure_at(self._data, 0, FOOTER)[0]
        if 8 in told:
            raise ValueError(IS_ENCRYPTED)
        self._groups = [group.get(1, []) for group in told.get(4, [])]
        self._check_columns(len(told.get(2, [])) + sum(1 + len(group) for group in self._groups))

    def _check_columns(self, count: int) -> None:
        most = max(MOST_COLUMNS, len(self._data) // COLUMN_BYTES)
        if count > most:
            raise Damaged(f"{count} columns of all row groups, of which {most} are read")

    def chunks(self, leaf: int, leaves: int) -> list[Chunk]:
        """Where a column stands in each row group: the one with the number `leaf` among those that
        are stored, of which there are so many. No two share bytes: what the file has once counts
        once."""
        found = []
        for group in self._groups:
            if len(group) != leaves:
                raise Damaged(f"a row group of {len(group)} columns, which must be {leaves}")
            found.append(chunk_of(structure_at(self._data, group[leaf], CHUNK)[0], self._end))
        for before, behind in pairwise(sorted(found, key=attrgetter("start"))):
            if before.end > behind.start:
                raise Damaged(f"two row groups that both have the byte {behind.start}")
        return found


def footer_of(file: IO[bytes], end: int) -> bytes:
    file.seek(max(end - 8, 0))
    size = int.from_bytes(file.read(4), "little")
    magic = file.read(4)
    if magic == ENCRYPTED:
        raise ValueError(IS_ENCRYPTED)
    if magic != MAGIC:
        raise ValueError(f"this is no Parquet file, which would end with {MAGIC!r}")
    most = max(MOST_FOOTER, end // FOOTER_SHARE)
    if size > min(end - 8, most):
        raise Damaged(f"it has {size} bytes of {end}, of which at most {most} are read")
    file.seek(end - 8 - size)
    return file.read(size)


def chunk_of(column: Mapping[int, Any], end: int) -> Chunk:
    """That of a column, in a file that ends there."""
    facts = column.get(3, {})
    values = whole(facts.get(5), 2**63)
    size, data = whole(facts.get(7), end), whole(facts.get(9), end)
    return Chunk(values, size, data, facts.get(11, 0), whole(facts.get(4), 2**31))


def pages(file: IO[bytes], chunk: Chunk) -> Iterator[Page]:
    """The pages of a column in a row group, as pyarrow finds them."""
    start = chunk.start
    left = chunk.values
    while left > 0 and start < chunk.end:
        page = page_of(*header_at(file, start))
        if page.place + page.packed > chunk.end + MOST_BEYOND:
            raise Damaged(f"a page of {page.packed} bytes that ends behind its column")
        yield page
        start = page.place + page.packed
        if page.encoding is not None:
            left -= page.values


def header_at(file: IO[bytes], start: int) -> tuple[Mapping[int, Any], int]:
    """The header of the page that begins there, and where that ends."""
    size = HEADER_BYTES
    while True:
        file.seek(start)
        data = file.read(size)
        try:
            header, end = structure_at(data, 0, HEADER)
        except EndsEarly:
            if len(data) < size or size >= MOST_HEADER:
                raise
            size *= 8
        else:
            return header, start + end


def page_of(header: Mapping[int, Any], place: int) -> Page:
    """What a header tells, behind which the page has its place; ValueError for what is none."""
    kind = header.get(1)
    if kind not in OF_KIND:  # of an index, which nobody writes
        raise Damaged(f"a page of kind {kind}")
    field, encoding = OF_KIND[kind]
    facts = header.get(field, {})
    told = header.get(3), header.get(2), facts.get(1), facts.get(encoding)
    packed, size, values, code = (whole(number, 2**31) for number in told)
    return Page(packed, size, values, None if kind == DICTIONARY else code, place, facts)


def whole(number: int | None, end: int) -> int:
    """A number of bytes or values, below `end`."""
    if number is None or not 0 <= number < end:
        raise Damaged(f"the number {number}, which must be below {end} and not negative")
    return number
