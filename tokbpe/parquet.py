"""Columns of Parquet files, read by pyarrow in no more memory than the files are worth.

A few kilobytes can stand for terabytes there: a page may be a thousand times as large as it is
stored, and a long value that is stored once may stand in all rows. pyarrow takes what memory that
takes. So the headers of the pages, which tell how large these are, are read before, and then no
more rows at a time than have room.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from tokbpe.parquet_pages import Chunk, Page, chunks, pages

# Bytes that pages, and the rows of a batch, may have in any case.
ROOM = 2**26
# What pages, and rows, may have beyond that for each byte of the file. No text is so much alike.
MOST_RATIO = 1000
# What a row takes, however short it is.
ROW_BYTES = 64
# Of a column that is stored, at a time.
BUFFER_BYTES = 2**20
# Encodings: PLAIN and DELTA_LENGTH_BYTE_ARRAY, with all bytes of each value.
STORED_WHOLE = {0, 6}
# PLAIN_DICTIONARY and RLE_DICTIONARY, with the number of each value in a dictionary.
STORED_ONCE = {2, 8}
# Of a number at most, in memory.
NUMBER_BYTES = 16


def module() -> Any:
    """That of pyarrow; ImportError, naming the extra, if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Parquet needs pyarrow: pip install "tokbpe[arrow]"', name="pyarrow"
        ) from error
    return pyarrow.parquet


@contextmanager
def damage() -> Iterator[None]:
    """What pyarrow raises for damage, and for what it does not know, as a ValueError."""
    module()
    import pyarrow as pa

    try:
        yield
    except MemoryError:  # of pyarrow's own errors one is such
        raise
    except (TypeError, OSError, pa.ArrowException) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(str(error)) from error


def table_of(file: IO[bytes]) -> Any:
    """The `ParquetFile` of a file."""
    return module().ParquetFile(file, buffer_size=BUFFER_BYTES)


class Limits(NamedTuple):
    """What rows may take."""

    rows: int  # how many at a time
    page: int  # bytes of a page
    given: int  # bytes of all rows, however few they have in the file


def batches(file: IO[bytes], table: Any, names: Sequence[str], limits: Limits) -> Iterator[Any]:
    """The rows of some columns, as record batches without dictionaries.

    table: `table_of` the file.

    ValueError for rows or pages that take more than they may.
    """
    given = row = 0
    for batch, packed in batches_of_groups(file, table, names, limits):
        given += batch.nbytes + ROW_BYTES * len(batch)
        row += len(batch)
        most = max(limits.given, MOST_RATIO * packed)
        if given > most:
            raise ValueError(
                f"the first {row} rows take {given} bytes of memory, and {packed} of the file: at "
                f"most {most} are read"
            )
        yield batch


def batches_of_groups(
    file: IO[bytes], table: Any, names: Sequence[str], limits: Limits
) -> Iterator[tuple[Any, int]]:
    """The same batches, each with the bytes that the columns have in the file up to the end of its
    row group."""
    schema = table.schema
    leaves = [leaf_of(schema, name) for name in names]
    folded = any(is_dictionary(table.schema_arrow.field(name).type) for name in names)
    packed = 0
    for number, group in enumerate(chunks(file, len(schema))):
        weights = [
            weight_of(file, schema.column(leaf), group[leaf], limits.page) for leaf in leaves
        ]
        packed += sum(weight.packed for weight in weights)
        rows = ROOM // max(sum(weight.of_a_row for weight in weights), 1)
        rows = min(max(rows, 1), limits.rows)
        # As long as they are folded, many rows take no more memory than a few.
        together = limits.rows if folded else rows
        # Threads would read columns side by side, and take longer for one of them.
        for found in table.iter_batches(together, [number], [*names], use_threads=False):
            for part in cut(found, rows):
                yield without_dictionaries(part), packed


def leaf_of(schema: Any, name: str) -> int:
    """The number of a column among those that are stored; ValueError unless there is one."""
    found = [leaf for leaf in range(len(schema)) if schema.column(leaf).path == name]
    if len(found) != 1:
        raise ValueError(f"there are {len(found)} columns that are stored as {name!r}, not one")
    return found[0]


def weight_of(file: IO[bytes], column: Any, chunk: Chunk, most: int) -> "Weight":
    """That of a column in a row group."""
    try:
        return Weight(pages(file, chunk), length_of(column), most)
    except ValueError as error:
        raise ValueError(f"column {column.path!r}: {error}") from error


def length_of(column: Any) -> int | None:
    """How many bytes each value has; None where they have not all the same."""
    if column.physical_type == "BYTE_ARRAY":
        return None
    return int(column.length) or NUMBER_BYTES


def cut(batch: Any, rows: int) -> Iterator[Any]:
    """A batch in parts of so many rows."""
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def is_dictionary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind))


def without_dictionaries(batch: Any) -> Any:
    import pyarrow as pa

    if not any(map(is_dictionary, batch.schema.types)):
        return batch
    columns = [
        column.dictionary_decode() if is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(columns, batch.schema.names)


# Pages


class Weight:
    """What the values of a column take in a row group; ValueError for a page that has too many
    bytes.

    length: bytes of each value, or None where they have not all the same.
    """

    def __init__(self, pages: Iterable[Page], length: int | None, most: int) -> None:
        self.packed = 0  # bytes in the file
        self.of_a_row = 0  # bytes; at the mean of a page, where these are stored for each row
        self._length = length
        self._dictionary = 0
        for page in pages:
            check_size(page, most)
            self.packed += page.packed
            self.of_a_row = max(self.of_a_row, self._in(page))

    def _in(self, page: Page) -> int:
        if self._length is not None:
            return self._length
        if page.encoding is None:
            self._dictionary = page.size
            return 0
        if page.encoding in STORED_ONCE:
            return self._dictionary
        if page.encoding in STORED_WHOLE:
            return -(-page.size // max(page.values, 1))
        return page.size  # each value may begin with all of the one before it


def check_size(page: Page, most: int) -> None:
    most = min(most, max(ROOM, MOST_RATIO * page.packed))
    if page.size > most:
        raise ValueError(
            f"a page takes {page.size} bytes of memory, and {page.packed} of the file: at most "
            f"{most} are read"
        )
