"""Columns of Parquet files, read by pyarrow in no more memory than the files are worth.

A few kilobytes can stand for terabytes there: a page may be a thousand times as large as it is
stored, and a long value that is stored once may stand in all rows. pyarrow takes what memory that
takes. So the headers of the pages, which tell how large these are, are read before, and then no
more rows at a time than have room.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from tokbpe import parquet_deltas
from tokbpe.parquet_pages import Chunk, Footer, Page, pages

# Bytes that a page, the rows of a batch, and all rows may have in any case.
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
# DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, of whose values pyarrow keeps two numbers each.
DELTAS = {6, 7}
DELTA_BYTES = 8
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
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            raise  # of the system, or of who reads, such as a TimeoutError
        raise ValueError(str(error)) from error


class Limits(NamedTuple):
    """What rows may take."""

    rows: int  # how many at a time
    page: int  # bytes of a page


class Table:
    """A file that is open: what it tells of its columns, and how pyarrow reads these."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.footer = Footer(file)  # before pyarrow is given it
        self.content = module().ParquetFile(file, buffer_size=BUFFER_BYTES)
        self.schema = self.content.schema_arrow

    def weights(self, name: str, most: int) -> Iterator["Weight"]:
        """What a column takes in each row group, where no page may take more than `most`."""
        stored = self.content.schema
        leaf = leaf_of(stored, name)
        column = stored.column(leaf)
        length, optional = length_of(column), column.max_definition_level > 0
        try:
            for chunk in self.footer.chunks(leaf, len(stored)):
                yield Weight(checked_pages(self.file, chunk, most, optional), length)
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from error


def batches(table: Table, names: Sequence[str], limits: Limits) -> Iterator[Any]:
    """The rows of some columns, as record batches without dictionaries.

    ValueError for rows or pages that take more than they may, and where rows are missing.
    """
    given = row = 0
    for batch, packed in batches_of_groups(table, names, limits):
        given += batch.nbytes + ROW_BYTES * len(batch)
        row += len(batch)
        most = max(ROOM, MOST_RATIO * packed)
        if given > most:
            raise ValueError(
                f"the first {row} rows take {given} bytes of memory, and {packed} of the file: at "
                f"most {most} are read"
            )
        yield batch
    if row != table.content.metadata.num_rows:
        raise ValueError(f"the file tells of {table.content.metadata.num_rows} rows, and has {row}")


def batches_of_groups(
    table: Table, names: Sequence[str], limits: Limits
) -> Iterator[tuple[Any, int]]:
    """The same batches, each with the bytes that the columns have in the file up to the end of its
    row group."""
    folded = any(is_dictionary(table.schema.field(name).type) for name in names)
    packed = 0
    for number, weights in enumerate(zip(*(table.weights(name, limits.page) for name in names))):
        packed += sum(weight.packed for weight in weights)
        rows = ROOM // max(sum(weight.of_a_row for weight in weights), 1)
        rows = min(max(rows, 1), limits.rows)
        # As long as they are folded, many rows take no more memory than a few.
        together = limits.rows if folded else rows
        # Threads would read columns side by side, and take longer for one of them.
        found = table.content.iter_batches(together, [number], [*names], use_threads=False)
        for batch in found:
            for part in cut(batch, rows):
                yield without_dictionaries(part), packed


def leaf_of(schema: Any, name: str) -> int:
    """The number of a column among those that are stored; ValueError unless there is one."""
    found = [leaf for leaf in range(len(schema)) if schema.column(leaf).path == name]
    if len(found) != 1:
        raise ValueError(f"there are {len(found)} columns that are stored as {name!r}, not one")
    return found[0]


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
    """What the values of a column take in a row group.

    length: bytes of each value, or None where they have not all the same.
    """

    def __init__(self, pages: Iterable[Page], length: int | None) -> None:
        self.packed = 0  # bytes in the file
        self.of_a_row = 0  # bytes; at the mean of a page, where these are stored for each row
        self._length = length
        self._dictionary = 0
        for page in pages:
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


def checked_pages(file: IO[bytes], chunk: Chunk, most: int, optional: bool) -> Iterator[Page]:
    """The pages of a column in a row group; ValueError for one that takes more than it may.

    optional: whether values may be null.
    """
    for page in pages(file, chunk):
        check_size(page, most)
        if page.encoding in DELTAS:
            parquet_deltas.check_counts(file, chunk, page, optional)
        yield page


def check_size(page: Page, most: int) -> None:
    taken = max(page.size, DELTA_BYTES * page.values) if page.encoding in DELTAS else page.size
    most = min(most, max(ROOM, MOST_RATIO * page.packed))
    if taken > most:
        raise ValueError(
            f"a page takes {taken} bytes of memory, and {page.packed} of the file: at most {most} "
            "are read"
        )
