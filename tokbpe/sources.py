"""Where the documents of a corpus come from: texts that are given, or files of several kinds.

A source can be read again and again, gives the same documents each time, and has a name for each
of them. Of files, one document at a time is in memory, and a file that has changed since it was
listed is an error.
"""

import bisect
import codecs
import errno
import glob
import gzip
import io
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias

from tokbpe import arguments, files, parquet, reading
from tokbpe.arguments import Documents
from tokbpe.reading import BLOCK_BYTES, MOST_BYTES, Separation

Text: TypeAlias = str | bytes
Paths: TypeAlias = files.Path | Iterable[files.Path]

JSON_LINES = (".jsonl", ".ndjson")
PARQUET = ".parquet"
GZIP = ".gz"
ZSTANDARD = ".zst"
TEXT_TYPES = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
JSON_TYPE = "extension<arrow.json>"  # of texts
# Of JSON for a byte of a text.
LONGEST_ESCAPE = 6
# Rows of a Parquet file that are texts of Python at a time, at most.
ROWS = 256
# Of a packed table, which is packed in itself as well, for each byte of the file, beyond the room
# that any has.
PACKED_RATIO = 100
# Of a .zst file at a time: each byte may stand for 32 KB.
ZSTANDARD_BYTES = 2**12
NOT_READ = 2**63 - 1
DECODER = json.JSONDecoder(object_pairs_hook=arguments.without_doubles)


class Source(Protocol):
    """What gives documents, and tells what to call each of them."""

    def __iter__(self) -> Iterator[Text]: ...

    @property
    def name(self) -> Callable[[int], str]: ...


def bytes_of(document: Text, name: Callable[[int], str], number: int) -> bytes:
    """The bytes of a document; a UnicodeEncodeError tells what it is called, by its number."""
    try:
        return arguments.document_bytes(document)
    except UnicodeEncodeError as error:
        error.reason += f" ({name(number)})"
        raise


class Given:
    """Documents as a caller gives them: a text or bytes, or an iterable of these."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    @property
    def once(self) -> bool:
        """Whether they can be read once only, as those of an iterator."""
        return isinstance(self._documents, Iterator)

    def __iter__(self) -> Iterator[Text]:
        return arguments.documents(self._documents, unchangeable)

    @staticmethod
    def name(number: int) -> str:
        return f"document {number}"


def unchangeable(document: Any, index: int | None) -> Text:
    """A document that nobody can change."""
    return document if isinstance(document, str) else arguments.document_bytes(document, index)


# Files


class Listed(NamedTuple):
    """A file, and what tells whether it has changed."""

    path: str
    state: tuple[int, int]


class Files:
    """The documents of files.

    paths: a path or several: of a file; of a folder, for all files in it and in its folders whose
        names do not begin with a dot, sorted; or a pattern of `glob`, for the files that it
        matches, sorted.
    documents: how a text file is made of documents, as `reading.separation` takes it.
    field: where JSON Lines and Parquet files hold the text.
    most: of a text file that is one document no more bytes than this and one are read; None for
        all of it.
    """

    def __init__(self, paths: Paths, documents: object, field: object, most: int | None) -> None:
        self._separation = reading.separation(documents)
        self._field = field_name(field)
        self._most = most
        self._files = list_files(paths)
        # The number of the first document of each file, once that is known.
        self._starts = [NOT_READ] * len(self._files)

    def __iter__(self) -> Iterator[Text]:
        number = 0
        for index, file in enumerate(self._files):
            self._starts[index] = number
            for document in self._documents(file):
                yield document
                number += 1
        if self._files and not number:
            others = f" and {len(self._files) - 1} others" if len(self._files) > 1 else ""
            raise ValueError(
                f"{self._files[0].path}{others}: there is no document, and a corpus needs at least "
                "one document"
            )

    def _documents(self, entry: Listed) -> Iterator[Text]:
        if has_records(entry.path):
            yield from records_in(entry, self._field, self._most)
            return
        with contents(entry) as data:
            yield from texts(data, self._separation, self._most)

    def name(self, number: int) -> str:
        """The file of a document, and where in it."""
        index = bisect.bisect_right(self._starts, number) - 1
        return place(self._files[index].path, self._separation, number - self._starts[index])


def field_name(field: object) -> str:
    if not isinstance(field, str):
        raise TypeError(f"field must be a name, not {arguments.type_name(field)}")
    return field


def place(path: str, separation: Separation, number: int) -> str:
    """What a document of a file is called, by its number there."""
    kind, _ = kind_of(path)
    if kind in JSON_LINES:
        where = f"line {number + 1}"
    else:
        where = f"row {number}" if kind == PARQUET else separation.place(number)
    return f"{path}: {where}" if where else path


def has_records(path: str) -> bool:
    """Whether each document of a file is a line of JSON, or a row of a table."""
    kind, _ = kind_of(path)
    return kind in JSON_LINES or kind == PARQUET


def is_plain(path: str) -> bool:
    """Whether a file has the bytes of its documents, and not another number of them."""
    return not has_records(path) and not kind_of(path)[1]


def kind_of(path: str) -> tuple[str, str]:
    """The kind of a file and how it is packed, both as the ending of its name."""
    stem, packing = os.path.splitext(path.lower())
    if packing not in (GZIP, ZSTANDARD):
        return packing, ""
    return os.path.splitext(stem)[1], packing


# Which files


def list_files(paths: Paths) -> list[Listed]:
    """The files of some paths."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    if not isinstance(paths, Iterable):
        raise TypeError(f"paths must be a path or several, not {arguments.type_name(paths)}")
    given = reading.sources([*paths], or_open=False)
    return [file for path in given for file in found(os.fsdecode(path))]


def found(path: str) -> list[Listed]:
    """The files of a path; OSError for one that is not there, ValueError for one without files."""
    if os.path.lexists(path):
        names = [*files_below(path)]
    elif glob.has_magic(path):
        names = matching(path)
    else:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not names:
        raise ValueError(f"{path}: there are no files")
    return [Listed(name, regular(name)) for name in names]


def files_below(path: str) -> Iterator[str]:
    """A file, or those in a folder and in its folders, in the order of their names."""
    waiting = [path]
    while waiting:
        path = waiting.pop()
        if not stat.S_ISDIR(unlinked(path).st_mode):
            yield path
            continue
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
        waiting += [os.path.join(path, name) for name in reversed(names)]


def matching(pattern: str) -> list[str]:
    """The files that a pattern of `glob` matches, in the order of the names on their paths."""
    root = pattern
    while glob.has_magic(root):
        root = os.path.dirname(root)
    names = []
    try:
        matches = {*glob.iglob(pattern, recursive=True)}  # `**/**` finds the same several times
    except RecursionError as error:
        raise ValueError(f"{pattern}: the folders are nested too deeply for a pattern") from error
    for name in matches:
        part = name
        while len(part) > len(root):
            status = unlinked(part)
            if part == name and not stat.S_ISDIR(status.st_mode):
                names.append(name)
            part = os.path.dirname(part)
    return sorted(names, key=lambda name: name.split(os.sep))


def unlinked(path: str) -> os.stat_result:
    """What there is to say of a path; OSError for a symbolic link."""
    status = os.lstat(path.rstrip(os.sep) or path)  # with a separator behind it, it is followed
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "this is a symbolic link, and none is followed", path)
    return status


def regular(path: str) -> tuple[int, int]:
    """The state of a regular file; OSError for what is none."""
    status = unlinked(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "this is no regular file", path)
    return status.st_size, status.st_mtime_ns


# Opening


@contextmanager
def contents(entry: Listed) -> Iterator[Any]:
    """What a file holds, unpacked; a ValueError that is raised inside names the file."""
    _, packing = kind_of(entry.path)
    with opened(entry) as file, files.naming(entry.path), unpacked(file, packing) as data:
        yield data


@contextmanager
def opened(entry: Listed) -> Iterator[Any]:
    """A file, opened; OSError if it is not what was listed, before or after it is read."""
    regular(entry.path)  # what is opened first may wait for ever
    with io.BufferedReader(ListedFile(entry)) as file:
        check_unchanged(file, entry)
        try:
            yield file
        except Exception:
            check_unchanged(file, entry)  # what is wrong with it may be that it changes
            raise
        check_unchanged(file, entry)


class ListedFile(files.NamedFile):
    """A file that is looked at whenever some of it is read, so that none is read for ever."""

    def __init__(self, entry: Listed) -> None:
        super().__init__(entry.path, opener=without_links)
        self.entry = entry

    def readinto(self, buffer: Any) -> Any:
        size = super().readinto(buffer)
        check_unchanged(self, self.entry)
        return size


def without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def check_unchanged(file: Any, entry: Listed) -> None:
    if reading.state(file) != entry.state:
        raise OSError(errno.EIO, "the file has changed since it was listed", entry.path)


@contextmanager
def unpacked(file: Any, packing: str) -> Iterator[Any]:
    """What a file holds, unpacked; ValueError for one that is damaged."""
    if not packing:
        yield file
        return
    errors: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error, EOFError)
    if packing == GZIP:
        data: Any = gzip.GzipFile(fileobj=file)
    else:
        zstandard = zstd()
        data = io.BufferedReader(Frames(file, zstandard.ZstdDecompressor().decompressobj))
        errors = (zstandard.ZstdError, EOFError)
    with data:
        try:
            yield data
        except errors as error:
            raise ValueError(f"the compressed data are damaged: {error}") from error


class Frames(io.RawIOBase):
    """What the frames of a .zst file hold.

    The reader of `zstandard` itself takes a file that is cut off for a whole one.
    """

    def __init__(self, file: Any, new_frame: Callable[[], Any]) -> None:
        self._file = file
        self._new_frame = new_frame
        self._frame: Any = None  # None between two of them
        self._packed = b""
        self._data = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._data:
            self._packed = self._packed or self._file.read(ZSTANDARD_BYTES)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("the file ends inside a frame")
                return 0
            if self._frame is None:
                self._frame = self._new_frame()
            self._data = memoryview(self._frame.decompress(self._packed))
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(buffer), len(self._data))
        buffer[:size] = self._data[:size]
        self._data = self._data[size:]
        return size


def zstd() -> Any:
    """The module; ImportError, naming the extra, if it is not installed."""
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(
            '.zst files need zstandard: pip install "tokbpe[zstandard]"', name="zstandard"
        ) from error
    return zstandard


# Documents in a file


def texts(file: Any, separation: Separation, most: int | None) -> Iterator[bytes]:
    """The documents of a text file."""
    if separation.separator is None:
        yield reading.all_bytes(file) if most is None else file.read(most + 1)
        return
    for block in reading.blocks(file, separation, BLOCK_BYTES, None, most):
        yield from block.texts


def records_in(entry: Listed, field: str, most: int | None = None) -> Iterator[Text]:
    """The documents of a file that has records.

    most: no document is wanted that has more bytes; None for any size.
    """
    kind, packing = kind_of(entry.path)
    with contents(entry) as data:
        if kind in JSON_LINES:
            yield from json_lines(data, field, most)
            return
        if packing:  # pyarrow goes to and fro in it
            data = in_memory(data, max(parquet.ROOM, PACKED_RATIO * entry.state[0]))
        yield from parquet_rows(data, field, most)


def json_lines(file: Any, field: str, most: int | None = None) -> Iterator[str]:
    """A field of each line, which is a JSON object; blank lines may only be the last ones."""
    number = 0
    longest = MOST_BYTES if most is None else min(MOST_BYTES, LONGEST_ESCAPE * most + BLOCK_BYTES)
    lines = iter(lambda: file.readline(longest + 1), b"")
    try:
        for number, line in enumerate(lines, 1):
            if number == 1 and line.startswith(codecs.BOM_UTF8):
                raise ValueError("a byte order mark stands before it, where JSON has none")
            if line.isspace():
                check_blank(file)
                return
            yield field_of(line, field, longest)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error


def check_blank(file: Any) -> None:
    """ValueError unless the rest of a file is white space, of which packed files can have much."""
    while data := file.read(BLOCK_BYTES):
        if not data.isspace():
            raise ValueError("this line is blank, and others follow")


def field_of(line: bytes, field: str, longest: int) -> str:
    """The text of a field in a line of JSON."""
    if len(line) > longest:
        raise ValueError(f"the line has more than {longest} bytes")
    try:
        values = DECODER.decode(line.decode("utf-8"))
    except RecursionError as error:
        raise ValueError(f"the JSON is nested too deeply: {error}") from error
    except ValueError as error:
        raise ValueError(f"this is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"a line must be an object, not {arguments.type_name(values)}")
    if field not in values:
        raise ValueError(f"there is no field {field!r} among {[*values]!r:.200}")
    text = values[field]
    if not isinstance(text, str):
        raise ValueError(f"field {field!r} must be a text, not {json.dumps(text):.50}")
    return text


def parquet_rows(file: Any, field: str, most: int | None = None) -> Iterator[Text]:
    """A column of a Parquet file: texts, or bytes."""
    row = 0
    page = MOST_BYTES if most is None else min(MOST_BYTES, most + parquet.ROOM)
    with parquet.damage():
        table = parquet.Table(file)
        check_column(table.schema, field)
        limits = parquet.Limits(ROWS, page)
        for batch in parquet.batches(table, [field], limits):
            column = batch.column(0)
            if column.null_count:
                row += column.is_null().to_pylist().index(True)
                raise ValueError(f"row {row} of column {field!r} is null")
            yield from column.to_pylist()
            row += len(batch)


def in_memory(file: Any, most: int) -> io.BytesIO:
    """What a packed file holds; ValueError for more than so many bytes."""
    most = min(most, MOST_BYTES)
    data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"the table that is packed has more than {most} bytes")
    return io.BytesIO(data)


def check_column(schema: Any, name: str) -> None:
    """ValueError unless there is one column of a name, of texts or of bytes."""
    count = schema.names.count(name)
    if count != 1:
        many = f"there are {count} columns" if count else "there is no column"
        raise ValueError(f"{many} {name!r} among {schema.names!r:.200}")
    kind = schema.field(name).type
    stored = kind.storage_type if str(kind) == JSON_TYPE else kind
    stored = stored.value_type if str(stored).startswith("dictionary") else stored
    if str(stored) not in TEXT_TYPES:
        raise ValueError(f"column {name!r} must hold texts or bytes, not {kind}")
