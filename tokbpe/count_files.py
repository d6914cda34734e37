"""Files of counts: one of ours, and Parquet for others to add up.

Ours is a `.npz` file of NumPy with the arrays `data`, `ends` and `counts`, and `about`: JSON as
bytes, with the version, the SHA-256 of the arrays, and facts about the counts.

A Parquet file has a row for each piece: `piece` (binary), `count` (int64), and `first` (int64),
which tells the order in which pieces were first met. The facts stand in its metadata.
"""

import contextlib
import errno
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import files
from tokbpe.sources import parquet

VERSION = 1
DTYPES = {"data": "|u1", "ends": "<u8", "counts": "<i8"}
# What NumPy and the modules below it raise for files that are not as they should be.
DAMAGE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    EOFError,
    OSError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
METADATA = b"tokbpe counts"
COLUMNS = ("piece", "count", "first")
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


# Our own


def save(path: files.Path, arrays: Arrays, facts: Mapping[str, Any]) -> None:
    """Write counts to a new path. OSError if it exists or cannot be written."""
    parts: dict[str, Any] = {
        name: np.asarray(array, DTYPES[name]) for name, array in zip(DTYPES, arrays)
    }
    about = {**facts, "version": VERSION, "sha256": digest(parts.values())}
    text = json.dumps(about, sort_keys=True, separators=(",", ":")).encode("ascii")
    with files.new_file(path) as file:
        np.savez(file, about=np.frombuffer(text, np.uint8), **parts)


def load(path: files.Path) -> tuple[Arrays, dict[str, Any]]:
    """The counts of a file that `save` wrote, and the facts about them.

    ValueError for another file, for one of a newer version and for one that is damaged; OSError
    if it cannot be read.
    """
    with open(os.fspath(path), "rb") as file, files.naming(path):
        try:
            with np.load(file, allow_pickle=False) as content:
                if not isinstance(content, np.lib.npyio.NpzFile):
                    raise ValueError("it holds one array")
                parts = {name: content[name] for name in ("about", *DTYPES)}
            about = json.loads(parts.pop("about").tobytes())
            version = about.pop("version")
            expected = about.pop("sha256")
        except DAMAGE as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # of a wrong place
                raise
            raise ValueError(f"these are no counts that tokbpe saved: {error}") from error
        if version != VERSION:
            raise ValueError(f"the counts have version {version!r}; this tokbpe reads {VERSION}")
        if digest(parts.values()) != expected:
            raise ValueError("the file is damaged: its arrays do not have their checksum")
        return checked(
            Arrays(*(array.astype(array.dtype.newbyteorder("=")) for array in parts.values()))
        ), about


def digest(arrays: Iterable[Any]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(str((array.dtype.str, array.shape)).encode("ascii"))
        found.update(array.tobytes())
    return found.hexdigest()


# Parquet


def save_parquet(
    path: files.Path, arrays: Arrays, facts: Mapping[str, Any], part: int | None
) -> None:
    """Write counts to a new path; `part` None: without their order."""
    pq = parquet()
    import pyarrow as pa

    data, ends, counts = arrays
    offsets = np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    columns = {
        "piece": pa.Array.from_buffers(pa.large_binary(), len(ends), buffers),
        "count": pa.array(counts),
    }
    if part is not None:
        columns["first"] = pa.array(np.arange(len(ends), dtype=np.int64) + part * PART)
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode("ascii")
    table = pa.table(columns).replace_schema_metadata({METADATA: text})
    with files.new_file(path) as file:
        pq.write_table(table, file)


def load_parquet(
    sources: Sequence[files.Path],
) -> tuple[Arrays, list[dict[str, Any] | None], bool]:
    """The counts of files, or of folders of files, in the order of `first`; the facts of each
    file, if they are there, in this order; and whether there is one. Pieces may repeat.

    ValueError, naming the file, the column and the row, for what are no counts.
    """
    pq = parquet()
    import pyarrow as pa

    found = []
    for path in sources:
        for name in files_of(os.fsdecode(path)):
            with naming(name):
                table = pq.read_table(name)
                metadata = (table.schema.metadata or {}).get(METADATA)
                facts = None if metadata is None else json.loads(metadata)
                names = [name for name in COLUMNS if name != "first" or name in table.column_names]
                found.append((pa.table({name: column(table, name) for name in names}), facts))
    if not found:
        raise ValueError(f"there are no files in {', '.join(map(os.fsdecode, sources))}")
    ordered = all("first" in table.column_names for table, _ in found)
    if ordered:
        found.sort(key=lambda file: file[0]["first"][0].as_py() if len(file[0]) else 0)
    whole = pa.concat_tables([table.select(COLUMNS[: 2 + ordered]) for table, _ in found])
    if ordered:
        whole = whole.sort_by("first")
    data, ends = flat(whole["piece"].combine_chunks())
    arrays = checked(Arrays(data, ends, whole["count"].to_numpy()))
    return arrays, [facts for _, facts in found], ordered


def files_of(path: str) -> list[str]:
    """A file, or the files of a folder; as others, without what begins with `.` or `_`."""
    if not os.path.isdir(path):
        return [path]
    names = sorted(name for name in os.listdir(path) if name[0] not in "._")
    return [os.path.join(path, name) for name in names]


def column(table: Any, name: str) -> Any:
    """A column of a table, of the type that it must have."""
    import pyarrow as pa

    if name not in table.column_names:
        raise ValueError(f"there is no column {name!r} among {table.column_names}")
    found = table[name]
    if found.null_count:
        row = found.is_null().to_pylist().index(True)
        raise ValueError(f"row {row} of column {name!r} is null")
    kinds = pa.types
    if name == "piece":
        if kinds.is_binary(found.type) or kinds.is_large_binary(found.type):
            return found.cast(pa.large_binary())
        raise ValueError(f"column 'piece' must hold bytes (BINARY, BLOB), not {found.type}")
    if kinds.is_integer(found.type) or kinds.is_decimal(found.type):
        return found.cast(pa.int64())
    raise ValueError(f"column {name!r} must hold whole numbers (BIGINT), not {found.type}")


def flat(pieces: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """The bytes of pieces, and where each ends in them."""
    _, offsets, data = pieces.buffers()
    places = np.frombuffer(offsets or b"", np.int64)[pieces.offset :][: len(pieces) + 1]
    if len(pieces) == 0:
        return np.empty(0, np.uint8), np.empty(0, np.uint64)
    found = np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]
    return found, (places[1:] - places[0]).astype(np.uint64)


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Errors of pyarrow as ours, with the name of the file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"{name}: {error}") from error
