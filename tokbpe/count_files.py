"""Files of counts: one of ours, and Parquet for others to add up.

Ours is a `.npz` file of NumPy with the arrays `data`, `ends` and `counts`, and `about`: JSON as
bytes, with the version, facts about the counts, and the SHA-256 of the arrays and of these.

A Parquet file has a row for each piece: `piece` (binary), `count` (int64), and `first` (int64),
which tells the order in which pieces were first met. The facts and the checksum stand in its
metadata, which others leave out.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, files, parquet
from tokbpe.record import Record
from tokbpe.vocabulary import pattern_of

VERSION = 1
DTYPES = {"data": "|u1", "ends": "<u8", "counts": "<i8"}
# What `zipfile` raises, beside its own error, for files that are not as they should be.
DAMAGE = (
    ValueError,
    EOFError,
    OSError,
    NotImplementedError,
    RecursionError,
    zlib.error,
)
ZIP_START = b"PK\x03\x04"
NPY_START = b"\x93NUMPY\x01\x00"
# As NumPy writes it; its own reader runs Python's parser, of which a hostile text asks too much.
NPY_HEADER = re.compile(
    rb"\{'descr': '([!-~]{1,20})', 'fortran_order': (?:True|False), "
    rb"'shape': \(([0-9, ]{,100})\), \} *\n"
)
FACTS = {"pattern", "special_tokens", "record", "ordered", "pruned"}
RECORD = {"documents", "bytes", "fingerprint", "hashes"}
METADATA = b"tokbpe counts"
# Rows of a Parquet file at a time, and bytes of each page, at most.
ROWS = 2**16
MOST_PAGE = 2**30
# The pieces of one part of a corpus have so many places of the order.
PART = 2**40
MOST_PARTS = 2**23


class Arrays(NamedTuple):
    """Pieces in the order of their first appearance: piece i is data[ends[i - 1] : ends[i]].

    data: `uint8` [bytes]; ends: `uint64` [n]; counts: `int64` [n], each 1 or more.
    """

    data: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    counts: NDArray[np.int64]


def checked(arrays: Arrays) -> Arrays:
    """ValueError or TypeError for arrays that are no counts."""
    for name, array in zip(DTYPES, arrays):
        if not isinstance(array, np.ndarray) or array.dtype != DTYPES[name] or array.ndim != 1:
            raise ValueError(f"{name} must be an array of {DTYPES[name]} with one dimension")
    data, ends, counts = arrays
    if len(ends) != len(counts):
        raise ValueError(f"there are {len(ends)} pieces, but {len(counts)} counts")
    starts = np.concatenate([np.zeros(1, np.uint64), ends])
    if np.any(starts[1:] <= starts[:-1]):
        index = int(np.argmax(starts[1:] <= starts[:-1]))
        raise ValueError(f"piece {index} ends at {ends[index]}, where it begins or before")
    if int(starts[-1]) != len(data):
        raise ValueError(f"the last piece ends at {starts[-1]}, but there are {len(data)} bytes")
    if np.any(counts < 1):
        index = int(np.argmax(counts < 1))
        raise ValueError(f"piece {index} has the count {counts[index]}; counts are 1 or more")
    return arrays


# The facts


def checked_facts(facts: Any, trust_pattern: bool = False) -> dict[str, Any]:
    """ValueError, naming the field, for what are no facts about counts."""
    check_fields(facts, FACTS, "the facts")
    with field("pattern"):
        if facts["pattern"] is not None:
            pattern_of(facts["pattern"], trust_pattern)
    with field("special_tokens"):
        arguments.names(facts["special_tokens"], "they")
    with field("ordered"):
        if not isinstance(facts["ordered"], bool):
            raise ValueError(f"it must be true or false, not {facts['ordered']!r}")
    with field("pruned"):
        arguments.whole_number(facts["pruned"], "it", 0, arguments.HIGHEST_COUNT)
    with field("record"):
        check_record(facts["record"])
    found: dict[str, Any] = facts
    return found


def check_record(record: Any) -> None:
    check_fields(record, RECORD, "it")
    for name in ("documents", "bytes"):
        if record[name] is not None:
            arguments.whole_number(record[name], name, 0, arguments.HIGHEST_COUNT)
    hashes = record["hashes"]
    arguments.hashes(hashes)
    if record["fingerprint"] is not None:
        arguments.hashes([record["fingerprint"]])
    if hashes is not None:
        known = Record.from_plain(record, None).plain()
        if known != {**record, "documents": len(hashes)} or record["documents"] != len(hashes):
            raise ValueError("hashes, fingerprint and documents do not go together")


def check_fields(found: Any, names: set[str], what: str) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"{what} must be a mapping, not {arguments.type_name(found)}")
    if found.keys() != names:
        raise ValueError(f"{what} must have {sorted(names)}, not {sorted(found)}")


@contextlib.contextmanager
def field(name: str) -> Iterator[None]:
    """A ValueError for what is wrong inside, naming the field."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"the field {name!r}: {error}") from error


def as_json(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode("ascii")


def digest(facts: Mapping[str, Any], arrays: Iterable[Any]) -> str:
    """The checksum of facts and arrays."""
    found = hashlib.sha256(as_json(facts))
    for array in arrays:
        found.update(str((array.dtype.str, array.shape)).encode("ascii"))
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


# Our own


def save(path: files.Path, arrays: Arrays, facts: Mapping[str, Any]) -> None:
    """Write counts to a new path. OSError if it exists or cannot be written."""
    parts: dict[str, Any] = {
        name: np.asarray(array, DTYPES[name]) for name, array in zip(DTYPES, arrays)
    }
    about = {**facts, "version": VERSION}
    text = as_json({**about, "sha256": digest(about, parts.values())})
    with files.new_file(path) as file, telling_the_first_error():
        np.savez(file, about=np.frombuffer(text, np.uint8), **parts)


@contextlib.contextmanager
def telling_the_first_error() -> Iterator[None]:
    """What `zipfile` says of a file that it cannot end, since writing to it has failed, is not what
    has happened: the error before it is."""
    try:
        yield
    except ValueError as error:
        first = error.__context__
        if isinstance(first, OSError | MemoryError):
            raise first from None
        raise


def load(path: files.Path, trust_pattern: bool = False) -> tuple[Arrays, dict[str, Any]]:
    """The counts of a file that `save` wrote, and the facts about them.

    ValueError for another file, for one of a newer version and for one that is damaged; OSError
    if it cannot be read.
    """
    import zipfile

    with files.opened(path) as file, files.naming(path):
        try:
            parts = stored_arrays(file)
            about = json.loads(
                parts.pop("about").tobytes(), object_pairs_hook=arguments.without_doubles
            )
            if not isinstance(about, dict):
                raise ValueError("their facts are no mapping")
        except (*DAMAGE, zipfile.BadZipFile) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # of a wrong place
                raise
            raise ValueError(f"these are no counts that tokbpe saved: {error}") from error
        version = about.get("version")
        if version != VERSION:
            raise ValueError(f"the counts have version {version!r}; this tokbpe reads {VERSION}")
        expected = about.pop("sha256", None)
        if digest(about, parts.values()) != expected:
            raise ValueError("the file is damaged: its arrays and facts do not have their checksum")
        del about["version"]
        return checked(
            Arrays(*(array.astype(array.dtype.newbyteorder("=")) for array in parts.values()))
        ), checked_facts(about, trust_pattern)


def stored_arrays(file: IO[bytes]) -> dict[str, Any]:
    """The arrays of a file as `save` writes it. ValueError before anything is made of a size that
    the file does not have."""
    import zipfile

    if file.read(len(ZIP_START)) != ZIP_START:
        raise ValueError("the file is no .npz file")
    size = file.seek(0, os.SEEK_END)
    found = {}
    with zipfile.ZipFile(file) as content:
        for name, dtype in {"about": "|u1", **DTYPES}.items():
            try:
                member = content.getinfo(f"{name}.npy")
            except KeyError:
                raise ValueError(f"there is no array {name!r}") from None
            is_plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
            if not is_plain or member.file_size > size:  # compressed, encrypted or cut off
                raise ValueError(f"the array {name!r} is not stored as it is")
            found[name] = stored_array(content.read(member), name, dtype)
    return found


def stored_array(data: bytes, name: str, dtype: str) -> Any:
    """An array of one dimension, as a `.npy` file of version 1.0."""
    end = len(NPY_START) + 2 + int.from_bytes(data[len(NPY_START) :][:2], "little")
    header = NPY_HEADER.fullmatch(data, len(NPY_START) + 2, end)
    if not data.startswith(NPY_START) or header is None:
        raise ValueError(f"the array {name!r} cannot be read")
    found, shape = header[1].decode("ascii"), header[2].decode("ascii")
    if found != dtype or not shape.endswith(",") or not shape[:-1].isdecimal():
        raise ValueError(f"{name} must be an array of {dtype} with one dimension")
    if int(shape[:-1]) * np.dtype(dtype).itemsize != len(data) - end:
        raise ValueError(
            f"the array {name!r} does not have the {shape[:-1]} elements that it tells"
        )
    return np.frombuffer(data, dtype, offset=end)


# Parquet


def save_parquet(
    path: files.Path, arrays: Arrays, facts: Mapping[str, Any], part: int | None
) -> None:
    """Write counts to a new path; `part` None: without their order."""
    pq = parquet.module()
    import pyarrow as pa

    columns = {"piece": pieces_of(arrays), "count": pa.array(arrays.counts)}
    places = []
    if part is not None:
        places.append(np.arange(len(arrays.counts), dtype=np.int64) + part * PART)
        columns["first"] = pa.array(places[0])
    text = as_json({**facts, "sha256": digest(facts, [*arrays, *places])})
    table = pa.table(columns).replace_schema_metadata({METADATA: text})
    with files.new_file(path) as file:
        pq.write_table(table, file, use_dictionary=False)  # no piece is there twice


def pieces_of(arrays: Arrays) -> Any:
    """The pieces as an array of pyarrow."""
    import pyarrow as pa

    offsets = np.concatenate([np.zeros(1, np.int64), arrays.ends.astype(np.int64)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(arrays.data)]
    return pa.Array.from_buffers(pa.large_binary(), len(arrays.ends), buffers)


class Table(NamedTuple):
    """What stands in a Parquet file. `first` and `facts` are None where they are left out."""

    name: str
    arrays: Arrays
    first: NDArray[np.int64] | None
    facts: dict[str, Any] | None


def load_parquet(
    sources: Sequence[files.Path], trust_pattern: bool = False
) -> tuple[Arrays, list[Table], bool]:
    """The counts of files, or of folders of files, in the order of `first`; the table of each
    file, in this order; and whether there is one. Pieces may repeat.

    ValueError, naming the file, the column and the row, for what are no counts.
    """
    parquet.module()
    names = [name for path in sources for name in files_of(os.fsdecode(path))]
    if not names:
        folders = ", ".join(map(os.fsdecode, sources))
        raise ValueError(f"there are no files in {folders}" if folders else "no files are given")
    tables = [read_table(name, trust_pattern) for name in names]
    places = [table.first for table in tables if table.first is not None]
    if len(places) < len(tables):
        return joined([table.arrays for table in tables]), tables, False
    tables.sort(key=lambda table: place(table.first))
    first = np.concatenate(sorted(places, key=place))
    order = np.argsort(first, kind="stable")
    check_places(first, order, tables)
    return in_that_order(joined([table.arrays for table in tables]), order), tables, True


def place(first: Any) -> int:
    """That of the first row of a table in the order of them all."""
    return int(first[0]) if len(first) else 0


def read_table(name: str, trust_pattern: bool = False) -> Table:
    """The table of a file."""
    with files.opened(name) as file, files.naming(name), parquet.damage():
        content = parquet.Table(file)
        columns = read_columns(content)
        data, ends = flat(columns["piece"].combine_chunks())
        arrays = Arrays(data, ends, columns["count"].to_numpy())
        sizes = np.diff(ends, prepend=np.uint64(0))
        if not sizes.all():
            raise ValueError(f"row {int(np.argmin(sizes))} of column 'piece' is empty")
        if np.any(arrays.counts < 1):
            row = int(np.argmax(arrays.counts < 1))
            raise ValueError(
                f"row {row} of column 'count' is {arrays.counts[row]}; counts are 1 or more"
            )
        first = columns["first"].to_numpy() if "first" in columns else None
        facts = (content.schema.metadata or {}).get(METADATA)
        if facts is not None:
            facts = json.loads(facts, object_pairs_hook=arguments.without_doubles)
            if not isinstance(facts, dict):
                raise ValueError("the facts must be a mapping")
            expected = facts.pop("sha256", None)
            if digest(facts, [*arrays, *([] if first is None else [first])]) != expected:
                raise ValueError(
                    "the file is damaged, or was changed: its columns and facts do not have their "
                    f"checksum; who changes it must leave out the metadata {METADATA.decode()!r}"
                )
            checked_facts(facts, trust_pattern)
    return Table(name, arrays, first, facts)


def read_columns(content: parquet.Table) -> dict[str, Any]:
    """The columns `piece`, `count`, and `first` if it is there, in the types that they get."""
    import pyarrow as pa

    schema = content.schema
    types = {"piece": pa.large_binary(), "count": pa.int64()}
    if "first" in schema.names:
        types["first"] = pa.int64()
    for name in types:
        check_type(schema, name)
    limits = parquet.Limits(ROWS, MOST_PAGE)
    rows = [*parquet.batches(content, [*types], limits)]
    if not rows:
        return {name: pa.chunked_array([], kind) for name, kind in types.items()}
    table = pa.Table.from_batches(rows).combine_chunks()
    return {name: values(table[name], kind, name) for name, kind in types.items()}


def joined(tables: Sequence[Arrays]) -> Arrays:
    """The pieces of some tables, one behind another."""
    before = np.cumsum([0, *(len(arrays.data) for arrays in tables)], dtype=np.uint64)
    return Arrays(
        np.concatenate([arrays.data for arrays in tables]),
        np.concatenate([arrays.ends + start for arrays, start in zip(tables, before)]),
        np.concatenate([arrays.counts for arrays in tables]),
    )


def in_that_order(arrays: Arrays, order: NDArray[np.int64]) -> Arrays:
    """The pieces in another order."""
    import pyarrow as pa

    data, ends = flat(pieces_of(arrays).take(pa.array(order)))
    return Arrays(data, ends, arrays.counts[order])


def check_places(
    first: NDArray[np.int64], order: NDArray[np.int64], tables: Sequence[Table]
) -> None:
    """ValueError, naming the files, where two rows have one place: then there is no order."""
    same = np.flatnonzero(first[order[1:]] == first[order[:-1]])
    if not len(same):
        return
    ends = np.cumsum([len(table.arrays.counts) for table in tables])
    one, other = order[same[0]], order[same[0] + 1]
    names = [tables[int(np.searchsorted(ends, row, "right"))].name for row in (one, other)]
    raise ValueError(
        f"{names[0]} and {names[1]} have the same place of the order, first={first[one]}: each "
        "part of a corpus needs another `part`; counts of files that have the same can be added "
        "with +"
    )


def files_of(path: str) -> list[str]:
    """A file, or the files of a folder and its folders; as others, without what begins with `.` or
    `_`."""
    found = []
    waiting = [path]
    while waiting:
        name = waiting.pop()
        if not os.path.isdir(name):
            found.append(name)
        elif name != path and os.path.islink(name):
            raise OSError(errno.ELOOP, "this is a link to a folder, and none is followed", name)
        else:
            names = sorted(inner for inner in os.listdir(name) if inner[0] not in "._")
            waiting += [os.path.join(name, inner) for inner in reversed(names)]
    return found


def check_type(schema: Any, name: str) -> None:
    """ValueError unless there is one column of a name, of the type that it must have."""
    import pyarrow as pa

    if name not in schema.names:
        raise ValueError(f"there is no column {name!r} among {schema.names}")
    if schema.names.count(name) > 1:
        raise ValueError(f"there are several columns {name!r}")
    kind = schema.field(name).type
    kinds = pa.types
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    if name == "piece":
        if not kinds.is_binary(kind) and not kinds.is_large_binary(kind):
            raise ValueError(f"column 'piece' must hold bytes (BINARY, BLOB), not {kind}")
    elif not kinds.is_integer(kind) and not kinds.is_decimal(kind):
        raise ValueError(f"column {name!r} must hold whole numbers (BIGINT), not {kind}")


def values(column: Any, kind: Any, name: str) -> Any:
    """Those of a column, in a type; ValueError where one is null, or has no place in it."""
    import pyarrow as pa

    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise ValueError(f"row {row} of column {name!r} is null")
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {name!r}: {error}") from error


def flat(pieces: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """The bytes of pieces, and where each ends in them."""
    _, offsets, data = pieces.buffers()
    places = np.frombuffer(offsets or b"", np.int64)[pieces.offset :][: len(pieces) + 1]
    if len(pieces) == 0:
        return np.empty(0, np.uint8), np.empty(0, np.uint64)
    found = np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]
    return found, (places[1:] - places[0]).astype(np.uint64)
