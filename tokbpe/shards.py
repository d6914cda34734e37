"""Token shards: the ids of a corpus in files that are mapped into memory.

    manifest.json               all there is to know, with a checksum of its own; written last
    00000-00000.tokens.npy      ids, `uint16` or `uint32`
    00000-00000.offsets.npy     `uint64`: where each document that begins in this shard does, and
                                how many ids the shard has

The ids of all shards, in the order of the manifest, are those of one document after another. A
document may go on from one shard to the next: ids before the first offset belong to a document
that began before. The numbers in a name are those of the part of the files that the shard was
made of, and of the shard in it.
"""

import errno
import hashlib
import json
import mmap
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, files, states, written
from tokbpe.cached import cached_property
from tokbpe.corpus import ROLES
from tokbpe.encoded import identity
from tokbpe.progress import Progress, reporting
from tokbpe.tokenizer import Tokenizer

# Of all files: how documents are taken in parts, parts in shards, and what is said of them.
VERSION = 1
FORMAT = "tokbpe shards"
MANIFEST = "manifest.json"
NAME = re.compile("[0-9]{5,}-[0-9]{5,}")
DTYPES = ("uint16", "uint32")
OFFSETS = np.dtype("<u8")
# How much of a file is looked at at a time.
CHUNK_BYTES = 2**24
# Until Python 3.13 a file is open as long as it is mapped, and a process has so many at most.
NOT_KEPT_OPEN: dict[str, Any] = (
    {"trackfd": False} if os.name == "posix" and sys.version_info >= (3, 13) else {}
)

FIELDS = {
    "version": int,
    "role": str,
    "dtype": str,
    "vocab_size": int,
    "reserved": dict,
    "tokenizer": str,
    "corpus": str,
    "source": dict,
    "options": dict,
    "shard_tokens": int,
    "bytes": int,
    "documents": int,
    "tokens": int,
    "shards": list,
}


class Shard(NamedTuple):
    """What the manifest tells of a shard."""

    name: str
    tokens: int
    documents: int  # that begin in it
    tokens_sha256: str  # of the numbers, without the header of the file
    offsets_sha256: str

    @property
    def tokens_file(self) -> str:
        return f"{self.name}.tokens.npy"

    @property
    def offsets_file(self) -> str:
        return f"{self.name}.offsets.npy"

    @property
    def files(self) -> tuple[str, str]:
        return self.tokens_file, self.offsets_file

    def check(self, folder: str, dtype: "np.dtype[Any]") -> None:
        """A quick look at both files, but not at the numbers in them."""
        check_array(os.path.join(folder, self.tokens_file), self.tokens, dtype)
        check_array(os.path.join(folder, self.offsets_file), self.documents + 1, OFFSETS)


def check_array(path: str, count: int, dtype: "np.dtype[Any]") -> None:
    """ValueError for a file of another size, or that is no array of so many of these numbers."""
    dtype = dtype.newbyteorder("<")
    check_size(path, os.stat(path), written.HEADER_BYTES + count * dtype.itemsize)
    with files.opened(path) as file:
        if file.read(written.HEADER_BYTES) != written.header(dtype, count):
            raise ValueError(
                f"{path}: the file is damaged: its header is not that of an array of {count} "
                f"{dtype.name}"
            )


def check_size(path: str, status: os.stat_result, expected: int) -> None:
    if status.st_size != expected:
        raise ValueError(f"{path}: the file has {status.st_size} bytes, not {expected}")


def chunks(path: str, size: int, start: int = 0) -> Iterator[bytes]:
    """What a file of so many bytes holds from a place on, step by step; ValueError for one of
    another size, OSError for what is no regular file and might never come to an end."""
    with files.opened(path) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "this is no regular file", path)
        check_size(path, status, size)
        file.seek(start)
        while data := file.read(min(CHUNK_BYTES, size - file.tell())):
            yield data


def mapped(path: str, count: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """So many numbers of a .npy file, mapped into memory, read only."""
    if not count:
        return np.empty(0, dtype)
    try:
        with files.opened(path) as file, files.naming(path):  # which may be shorter now
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, **NOT_KEPT_OPEN)
            return np.frombuffer(data, dtype, count, written.HEADER_BYTES)
    except OSError as error:
        reason = error.strerror
        if error.errno == errno.EMFILE and not NOT_KEPT_OPEN:
            reason = f"{reason}: one for each shard; allow more of them, or write larger shards"
        raise OSError(error.errno, reason, path) from error


class Shards:
    """A finished folder of token shards.

    folder: what `write_shards` has written.
    tokenizer: if it is given, the shards must be of this one.

    `len` is the number of tokens, and a slice gives them: as a view of the file where they stand
    in one shard, which nothing can be written to. Files are mapped when they are first needed.
    ValueError for a manifest that is damaged or of a newer version, for a file of another size
    or type than it tells, and for another tokenizer, naming both fingerprints; OSError for what is
    not there. `verify` looks at every byte.
    """

    def __init__(self, folder: files.Path, tokenizer: Tokenizer | None = None) -> None:
        self.folder = os.path.abspath(os.fsdecode(folder))  # files are mapped later
        self.manifest = read_manifest(self.folder)
        self.shards = [Shard(**plain) for plain in self.manifest["shards"]]
        self.dtype = np.dtype(self.manifest["dtype"]).newbyteorder("<")
        # The number of the first token of each shard, and of what would come behind the last.
        self.starts = np.cumsum([0, *(shard.tokens for shard in self.shards)], dtype=np.int64)
        self._mapped: dict[int, NDArray[Any]] = {}
        if tokenizer is not None:
            self._check_tokenizer(tokenizer)
        for shard in self.shards:
            shard.check(self.folder, self.dtype)

    def __repr__(self) -> str:
        return (
            f"<Shards {self.folder!r}, {self.role}, {len(self):,} tokens of "
            f"{self.documents:,} documents in {len(self.shards)} shards>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Shards, (self.folder,)

    # Reading it

    @property
    def role(self) -> str:
        """ "training", "validation" or "test"."""
        return str(self.manifest["role"])

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return int(self.manifest["documents"])

    @property
    def tokenizer_fingerprint(self) -> str:
        return str(self.manifest["tokenizer"])

    @property
    def corpus_fingerprint(self) -> str:
        return str(self.manifest["corpus"])

    def fingerprint(self) -> str:
        """That of the `EncodedCorpus` of the same documents, encoded the same way."""
        options = self.manifest["options"]
        return identity(self.tokenizer_fingerprint, self.corpus_fingerprint, self.role, options)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def offsets(self) -> NDArray[np.uint64]:
        """Where each document begins, and the number of tokens: `uint64` [documents + 1]."""
        offsets = np.empty(self.documents + 1, np.uint64)
        end = 0
        for number, (shard, start) in enumerate(zip(self.shards, self.starts.tolist())):
            found = self.shard_offsets(number)
            offsets[end : end + shard.documents] = found[:-1]
            offsets[end : end + shard.documents] += np.uint64(start)
            end += shard.documents
        offsets[-1] = len(self)
        return offsets

    def __getitem__(self, place: slice) -> NDArray[Any]:
        if not isinstance(place, slice):
            raise TypeError(f"tokens are read by slices, not by {arguments.type_name(place)}")
        start, stop, step = place.indices(len(self))
        if step != 1:
            raise ValueError(f"a slice of tokens has the step 1, not {step}")
        parts = [part for part in self._parts(start, stop) if len(part)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, self.dtype), *parts])

    def _parts(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
        first = int(np.searchsorted(self.starts, start, "right")) - 1
        for number in range(first, len(self.shards)):
            base = int(self.starts[number])
            if base >= stop:
                break
            yield self.tokens(number)[max(0, start - base) : stop - base]

    def tokens(self, number: int) -> NDArray[Any]:
        """The tokens of a shard, read only."""
        if number not in self._mapped:
            shard = self.shards[number]
            self._mapped[number] = mapped(self._path(shard.tokens_file), shard.tokens, self.dtype)
        return self._mapped[number]

    def shard_offsets(self, number: int) -> NDArray[Any]:
        """Where documents begin in a shard, and its number of tokens."""
        shard = self.shards[number]
        path = self._path(shard.offsets_file)
        check_array(path, shard.documents + 1, OFFSETS)  # once more: it may have changed
        offsets = np.fromfile(path, OFFSETS, offset=written.HEADER_BYTES)
        if np.any(offsets[1:] < offsets[:-1]) or offsets[-1] != shard.tokens:
            raise ValueError(
                f"{path}: the offsets must rise to {shard.tokens}, the number of tokens"
            )
        return offsets

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    # Checking it

    def _check_tokenizer(self, tokenizer: Tokenizer) -> None:
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(f"tokenizer must be a Tokenizer, not {arguments.type_name(tokenizer)}")
        if tokenizer.fingerprint() != self.tokenizer_fingerprint:
            raise ValueError(
                f"{self.folder}: the shards are of the tokenizer {self.tokenizer_fingerprint}, "
                f"not of this one, {tokenizer.fingerprint()}"
            )

    def verify(self, progress: Progress = False) -> None:
        """Read all files, and raise ValueError, naming the file, for the first that is damaged.

        progress: True for a bar on a terminal, or a function that is called with the bytes that
            are read and that there are.
        """
        total = sum(
            shard.tokens * self.dtype.itemsize + (shard.documents + 1) * OFFSETS.itemsize
            for shard in self.shards
        )
        done = 0
        with reporting(progress, "B", unit_scale=True) as report:
            for size in self._all_verified():
                done += size
                if report is not None:
                    report(done, total)

    def _all_verified(self) -> Iterator[int]:
        """Looks at all files; how much of them, step by step."""
        for number, shard in enumerate(self.shards):
            for name, count, dtype, digest in (
                (shard.tokens_file, shard.tokens, self.dtype, shard.tokens_sha256),
                (shard.offsets_file, shard.documents + 1, OFFSETS, shard.offsets_sha256),
            ):
                yield from self._verified(name, count, dtype, digest)
            self.shard_offsets(number)

    def _verified(
        self, name: str, count: int, dtype: "np.dtype[Any]", digest: str
    ) -> Iterator[int]:
        """Looks at a file; how much of it, step by step."""
        found = hashlib.sha256()
        size = self.manifest["vocab_size"]
        check_array(self._path(name), count, dtype)  # once more: it may have changed
        end = written.HEADER_BYTES + count * dtype.itemsize
        for data in chunks(self._path(name), end, written.HEADER_BYTES):
            found.update(data)
            yield len(data)
            if dtype == self.dtype and np.frombuffer(data, dtype).max() >= size:
                raise ValueError(
                    f"{self._path(name)}: there are ids above {size - 1}, the highest of the "
                    "tokenizer"
                )
        if found.hexdigest() != digest:
            raise ValueError(
                f"{self._path(name)}: the file is damaged: its bytes do not have the checksum "
                f"{digest} of the manifest"
            )


# The manifest, and other plain data in files


def read_manifest(folder: str) -> dict[str, Any]:
    """The data of a manifest; ValueError for one that is damaged or newer."""
    path = os.path.join(folder, MANIFEST)
    if os.path.isdir(folder) and not os.path.lexists(path):
        raise FileNotFoundError(
            errno.ENOENT, "these are no finished shards: there is no manifest", path
        )
    plain = read_sealed(path, FORMAT)
    with files.naming(path):
        check_fields(plain)
    return plain


def check_fields(plain: Mapping[str, Any]) -> None:
    """ValueError for data that no `write_shards` has written, though the checksum is right."""
    check_types(plain, FIELDS, "the manifest")
    arguments.choice(plain["role"], "role", ROLES)
    arguments.choice(plain["dtype"], "dtype", DTYPES)
    for name, id in plain["reserved"].items():
        if type(id) is not int or not 0 <= id < arguments.LARGEST_VOCABULARY:
            raise ValueError(
                f"the reserved id {name!r} must be a whole number from 0 to "
                f"{arguments.LARGEST_VOCABULARY - 1}, not {id!r}"
            )
    names: set[str] = set()
    for shard in plain["shards"]:
        check_shard(shard)
        if shard["name"] in names:
            raise ValueError(f"the manifest has the shard {shard['name']!r} twice")
        names.add(shard["name"])
    for name in ("tokens", "documents"):
        total = sum(shard[name] for shard in plain["shards"])
        if total != plain[name] or total > arguments.HIGHEST_COUNT:
            raise ValueError(f"the {name} of the shards are not {plain[name]} together")


def check_types(plain: Mapping[str, Any], fields: Mapping[str, type], what: str) -> None:
    """ValueError unless plain data have these fields, each of its type, and numbers can be those
    of something."""
    for name, kind in fields.items():
        if type(plain.get(name)) is not kind:
            raise ValueError(f"{what} must have {name}, of the type {kind.__name__}")
        if kind is int and not 0 <= plain[name] <= arguments.HIGHEST_COUNT:
            raise ValueError(
                f"{name} of {what} must be a whole number from 0 on, below 2**63, "
                f"not {plain[name]!r}"
            )


def check_shard(shard: Any) -> None:
    """ValueError for plain data that are not those of a `Shard`."""
    if not isinstance(shard, dict) or shard.keys() != set(Shard._fields):
        raise ValueError(f"a shard has {', '.join(Shard._fields)}, not {shard!r}")
    check_types(shard, Shard.__annotations__, "a shard")
    if not NAME.fullmatch(shard["name"]):
        raise ValueError(
            "a shard stands in the folder of its manifest, with a name such as 00000-00000, not at "
            f"{shard['name']!r}"
        )


def sealed(kind: str, plain: Mapping[str, Any]) -> bytes:
    """Plain data as they are written: with what they are, and a checksum."""
    whole = {"format": kind, "version": VERSION, **plain}
    whole["sha256"] = states.digest(whole)
    return json.dumps(whole, indent=1, sort_keys=True).encode("ascii") + b"\n"


def read_sealed(path: str, kind: str) -> dict[str, Any]:
    """What `sealed` has made of plain data; ValueError, naming the file, for anything else."""
    with files.naming(path):
        data = files.read(path)
        try:
            plain = json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"the file is damaged: {error}") from error
        if not isinstance(plain, dict) or plain.get("format") != kind:
            raise ValueError(f"this is no file of {kind}")
        if plain.get("version") != VERSION:
            raise ValueError(
                f"the file has version {plain.get('version')!r}; this tokbpe reads {VERSION}"
            )
        digest = plain.pop("sha256", None)
        if states.digest(plain) != digest:
            raise ValueError("the file is damaged: its data do not have its checksum")
        if sealed(kind, plain) != data:
            raise ValueError("the file is damaged: white space in it has changed")
    return plain
