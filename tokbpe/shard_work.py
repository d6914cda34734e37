"""The work on the shards of a part of the documents, which can be killed at any moment.

Each file appears in one step and complete, and none is ever replaced: the same input gives the
same bytes, so what another process has written meanwhile (workers that outlive their parent) is
what this one would have. A shard that has a record is not made again: documents before its end
are read and hashed, but not encoded.
"""

import contextlib
import errno
import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tokbpe import blocks, files, reading, written
from tokbpe.aside import OneThread
from tokbpe.cached import cached_property
from tokbpe.encoded import Fitted
from tokbpe.parts import Hashed, Part, ahead, hashed_blocks
from tokbpe.reading import Block
from tokbpe.shards import (
    OFFSETS,
    Shard,
    check_shard,
    check_types,
    chunks,
    read_sealed,
    sealed,
)
from tokbpe.tokenizer import Tokenizer

WORK = "tokbpe-unfinished"
STOP = "stop"
RECORD = "record of token shards"
PART_FIELDS = {"documents": int, "bytes": int, "read": int, "hashes": str, "shards": int}
SHARD_FIELDS = {"shard": dict, "place": list}
# How much the thread that writes may have to do, in blocks.
MOST_PENDING = 4
# The disk gets what is written in such steps, while there is more to encode, not all at the end.
FLUSHED_BYTES = 2**23

# Called with the bytes of each piece of work that is done.
Add: TypeAlias = Callable[[int], object]


@dataclass(frozen=True)
class Job:
    """What is to be written."""

    folder: str
    tokenizer: Tokenizer | bytes  # or pickled, for other processes
    source: Mapping[str, Any]  # what is a document of a file
    options: Mapping[str, Any]  # how each is encoded
    role: str
    dtype: str
    shard_tokens: int
    threads: int | None

    @property
    def work(self) -> str:
        return os.path.join(self.folder, WORK)

    def of(self) -> Tokenizer:
        """The tokenizer."""
        return (
            self.tokenizer if isinstance(self.tokenizer, Tokenizer) else unpickled(self.tokenizer)
        )

    def encoding(self) -> blocks.Encoding:
        documents = self.source["documents"]
        if documents not in (reading.WHOLE, reading.LINE):
            documents = documents.encode("utf-8", "surrogateescape")
        return self.of()._encoding(
            documents=documents, **self.options, dtype=self.dtype, threads=self.threads
        )

    def hashed(self, part: Part, corpus: Any, plan: blocks.Plan) -> Iterator[Hashed]:
        """The documents of a part."""
        return hashed_blocks(part, corpus, plan, self.source["field"])

    def fitted(self) -> Fitted | None:
        """What the documents must not be of; None: these may be any."""
        return Fitted.forbidden(self.of()._vocabulary, self.role)

    @cached_property
    def fingerprint(self) -> str:
        """That of the tokenizer."""
        return self.of().fingerprint()

    def facts(self, corpus: str | None) -> dict[str, Any]:
        """What the manifest says of the input, with the fingerprint of the corpus."""
        tokenizer = self.of()
        return {
            "tokenizer": self.fingerprint,
            "corpus": corpus,
            "source": dict(self.source),
            "options": dict(self.options),
            "role": self.role,
            "dtype": self.dtype,
            "shard_tokens": self.shard_tokens,
            "vocab_size": tokenizer.vocab_size,
            "reserved": tokenizer.reserved,
        }


@lru_cache(1)
def unpickled(data: bytes) -> Tokenizer:
    """The tokenizer of a worker, which is made once."""
    tokenizer: Tokenizer = pickle.loads(data)
    return tokenizer


class Place(NamedTuple):
    """Where in a part a shard ends."""

    documents: int = 0  # that have ended
    tokens: int = 0  # of the document that has not
    digest: str = hashlib.sha256().hexdigest()  # of the hashes of those that have


class Ended:
    """The documents of a part that have ended."""

    def __init__(self) -> None:
        self.count = 0
        self.digest = hashlib.sha256()

    def add(self, digests: Sequence[bytes]) -> None:
        self.count += len(digests)
        self.digest.update(b"".join(digests))

    def place(self, tokens: int) -> Place:
        return Place(self.count, tokens, self.digest.hexdigest())


class Encoded(NamedTuple):
    """The ids of a block."""

    ids: NDArray[Any]
    offsets: NDArray[np.uint64]  # where each document, or part of one, begins; the end
    continued: bool  # whether the first of these began before
    digests: Sequence[bytes]  # of those that end here, which the last one may not


def write_part(job: Job, part: Part, corpus: Any = None, add: Add | None = None) -> int:
    """Write the shards of a part that are not there yet; how many bytes of the part were read, of
    which `add` is told as well."""
    check_running(job)
    if corpus is None and has_record(job, part.name):  # a corpus may have changed
        read = int(read_record(job, part.name)["read"])
        if add is not None:
            add(read)
        return read
    size = read = 0
    encoding = job.encoding()
    fitted = job.fitted()
    ended = Ended()
    hashes_path = os.path.join(job.work, f"{part.name}.hashes")

    def watched(found: Iterator[Hashed]) -> Iterator[Hashed]:
        nonlocal size, read
        for item in found:
            check_running(job)
            if fitted is not None:
                fitted.refuse(item.digests, item.block.number, item.name, job.role)
            with files.naming_target(hashes_path):
                hashes.write(b"".join(item.digests))
            yield item
            size += item.size
            read += item.read
            if add is not None:
                add(item.read)

    with (
        new_or_same(hashes_path) as hashes,
        ShardWriter(job, part, ended) as writer,
        contextlib.closing(ahead(job.hashed(part, corpus, encoding.plan))) as coming,
    ):
        for encoded in encoded_from(writer.place, writer.whole, watched(coming), encoding, ended):
            writer.write(encoded)
        shards = writer.finish()
    record = {
        "documents": ended.count,
        "bytes": size,
        "read": read,
        "hashes": ended.digest.hexdigest(),
        "shards": shards,
    }
    write_record(job, part.name, record)
    return read


def check_running(job: Job) -> None:
    """InterruptedError if this is to end."""
    if os.path.lexists(os.path.join(job.work, STOP)):
        raise InterruptedError(errno.EINTR, "another part has failed", job.folder)


def encoded_from(
    place: Place, whole: bool, coming: Iterable[Hashed], encoding: blocks.Encoding, ended: Ended
) -> Iterator[Encoded]:
    """The ids of documents from a place on; those before it have `ended`.

    whole: whether there must be none.
    """
    left = place.tokens  # to be made once more, and left out
    for name, block, digests, _ in coming:
        skipped = min(place.documents - ended.count, len(digests))
        if skipped > 0:
            ended.add(digests[:skipped])
            if ended.count == place.documents and ended.place(place.tokens) != place:
                raise ValueError(
                    f"{name(block.number + skipped - 1)}: the documents up to this one are not "
                    "those of the shards that are there"
                )
        if ended.count < place.documents or 0 < skipped == len(block.texts):
            continue
        if whole:
            raise ValueError(
                f"{name(block.number + max(skipped, 0))}: there are more documents than in the "
                "shards that are there"
            )
        if skipped > 0:
            block = Block(block.texts[skipped:], block.number + skipped, 0, block.last)
            digests = digests[skipped:]
        ids, offsets = encoding.arrays(block, name)
        dropped = np.uint64(min(left, len(ids)))
        if left:
            left -= int(dropped)
            ids = ids[dropped:]
            offsets = np.maximum(offsets, dropped) - dropped
        yield Encoded(ids, offsets, bool(block.start or dropped), digests)
    if ended.count < place.documents or left:
        raise ValueError("there are fewer documents than in the shards that are there")


class ShardWriter:
    """Cuts the tokens of a part into shards, which another thread writes."""

    def __init__(self, job: Job, part: Part, ended: Ended) -> None:
        self.job = job
        self.part = part
        self.ended = ended
        self.number = 0  # of the shard
        self.place = Place()  # from which on there is something to do
        self.whole = has_record(job, part.name)  # whether all shards are there
        while has_record(job, self.name):
            shard, self.place = read_shard(job, self.name)
            self.whole = self.whole or shard.tokens < job.shard_tokens
            self.number += 1
        self.shard: ShardFiles | None = None  # if it has begun
        self.unfinished: set[ShardFiles] = set()  # that one, and those the other thread closes
        self.count = 0  # tokens in it
        self.open = self.place.tokens  # tokens so far of the document that has not ended
        self.thread = OneThread()

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, *error: Any) -> None:
        self.thread.__exit__(*error)
        for shard in self.unfinished:
            shard.give_up()

    @property
    def name(self) -> str:
        return f"{self.part.name}-{self.number:05}"

    def write(self, encoded: Encoded) -> None:
        ids, offsets, continued, digests = encoded
        done = 0  # tokens that are in shards
        ended = 0  # documents whose end is
        begun = int(continued)  # documents whose beginning is
        while len(ids) > (cut := done + self.job.shard_tokens - self.count):
            # A document begins in the shard that has its first token. One without tokens is in
            # the shard of the token before it.
            whole = int(np.searchsorted(offsets[1:], cut, "right"))
            start = int(offsets[whole])  # of the document that is cut here, or comes next
            last = whole + int(start < cut)
            self.begin_documents(offsets[begun:last], done)
            self.put(ids[done:cut])
            self.ended.add(digests[ended:whole])
            before = self.open if continued and not whole else 0
            self.close(before + cut - start)
            done, ended, begun = cut, whole, max(begun, last)
        self.begin_documents(offsets[begun:-1], done)
        self.put(ids[done:])
        self.ended.add(digests[ended:])
        if len(digests) == len(offsets) - 1:
            self.open = 0
        else:
            before = self.open if continued and len(offsets) == 2 else 0
            self.open = before + len(ids) - int(offsets[-2])

    def begin_documents(self, starts: NDArray[np.uint64], done: int) -> None:
        if len(starts):
            places = starts - np.uint64(done) + np.uint64(self.count)
            self.later(self.begin().offsets.write, places)

    def put(self, ids: NDArray[Any]) -> None:
        if len(ids):
            self.later(self.begin().tokens.write, ids)
            self.count += len(ids)

    def begin(self) -> "ShardFiles":
        """The shard, which may begin here."""
        if self.shard is None:
            self.shard = ShardFiles(self.job.folder, self.name, self.job.dtype)
            self.unfinished.add(self.shard)
        return self.shard

    def close(self, open_tokens: int) -> None:
        """Close the shard; open_tokens: so many the document has that goes on behind it."""
        place = self.ended.place(open_tokens)
        shard = self.begin()
        self.later(shard.close, self.job, place)
        self.later(self.unfinished.discard, shard)
        self.shard, self.count = None, 0
        self.number += 1

    def later(self, work: Callable[..., object], *arguments: Any) -> None:
        """Have the other thread do some work, which waits if it has much to do."""
        self.thread.later(work, *arguments)
        self.thread.wait(MOST_PENDING)

    def finish(self) -> int:
        """Close the last shard; how many there are."""
        if self.shard is not None:
            self.close(0)
        self.thread.wait()
        return self.number


class ShardFiles:
    """The two files of a shard that is written."""

    def __init__(self, folder: str, name: str, dtype: str) -> None:
        self.name = name
        self.tokens = ArrayFile(os.path.join(folder, f"{name}.tokens.npy"), np.dtype(dtype))
        self.offsets = ArrayFile(os.path.join(folder, f"{name}.offsets.npy"), OFFSETS)

    def close(self, job: Job, place: Place) -> None:
        """Finish the files, and record the shard."""
        self.offsets.write(np.array([self.tokens.count], np.uint64))
        for file in (self.tokens, self.offsets):
            file.close()
        shard = Shard(
            self.name,
            self.tokens.count,
            self.offsets.count - 1,
            self.tokens.digest.hexdigest(),
            self.offsets.digest.hexdigest(),
        )
        write_record(job, self.name, {"shard": shard._asdict(), "place": list(place)})

    def give_up(self) -> None:
        """Leave nothing behind."""
        for file in (self.tokens, self.offsets):
            file.give_up()


class ArrayFile:
    """A .npy file that is written, of numbers in one dimension."""

    def __init__(self, path: str, dtype: "np.dtype[Any]") -> None:
        self.path = path
        self.dtype = dtype.newbyteorder("<")
        self.count = 0
        self.digest = hashlib.sha256()
        self._unflushed = 0  # bytes
        self._opened: contextlib.AbstractContextManager[IO[bytes]] | None = None
        self._file: IO[bytes] | None = None

    def write(self, numbers: NDArray[Any]) -> None:
        data = np.ascontiguousarray(numbers, self.dtype).view(np.uint8).data
        with files.naming_target(self.path):
            self.file.write(data)
            self._unflushed += len(data)
            if self._unflushed >= FLUSHED_BYTES and not self.was_there:
                files.finish(self.file)
                self._unflushed = 0
        self.digest.update(data)
        self.count += len(numbers)

    @property
    def file(self) -> IO[bytes]:
        """The file, opened by the thread that writes to it."""
        if self._file is None:
            self._opened = new_or_same(self.path)
            self._file = self._opened.__enter__()
            self._file.write(written.header(self.dtype, 0))  # the number is not known yet
        return self._file

    @property
    def was_there(self) -> bool:
        """Whether the file was there before, so that what is written is thrown away."""
        return bool(self.file.name == os.devnull)

    def close(self) -> None:
        """Finish the file; ValueError if one was there, and has other numbers."""
        was_there = self.was_there
        with files.naming_target(self.path):
            self.file.seek(0)
            self.file.write(written.header(self.dtype, self.count))
        opened, self._opened = self._opened, None
        assert opened is not None
        opened.__exit__(None, None, None)
        size = self.count * self.dtype.itemsize
        if was_there and digest_of(self.path, size) != self.digest.hexdigest():
            raise ValueError(
                f"{self.path}: the documents are not those that this shard was made of"
            )

    def give_up(self) -> None:
        if self._opened is not None:
            reason = InterruptedError(errno.EINTR, "the shard is not finished", self.path)
            # Or another error, of a full disk: the first one is told already.
            with contextlib.suppress(OSError):
                self._opened.__exit__(type(reason), reason, None)


# Files


def digest_of(path: str, size: int) -> str:
    """The SHA-256 of the numbers in a .npy file, which have so many bytes."""
    digest = hashlib.sha256()
    for data in chunks(path, written.HEADER_BYTES + size, written.HEADER_BYTES):
        digest.update(data)
    return digest.hexdigest()


def record_path(job: Job, name: str) -> str:
    return os.path.join(job.work, f"{name}.json")


def has_record(job: Job, name: str) -> bool:
    return os.path.lexists(record_path(job, name))


def read_record(job: Job, name: str) -> dict[str, Any]:
    """The record of a part. ValueError, naming the file, for one that is damaged."""
    path = record_path(job, name)
    record = read_sealed(path, RECORD)
    with files.naming(path):
        check_types(record, PART_FIELDS, "the record of a part")
    return record


def read_shard(job: Job, name: str) -> tuple[Shard, Place]:
    """A shard that has a record, and where it ends; ValueError or OSError, naming the file, if its
    files are not what they were."""
    path = record_path(job, name)
    record = read_sealed(path, RECORD)
    with files.naming(path):
        check_types(record, SHARD_FIELDS, "the record of a shard")
        check_shard(record["shard"])
        if record["shard"]["name"] != name:  # whose files would be taken for it, and removed
            raise ValueError(f"this is the record of the shard {record['shard']['name']!r}")
        place = dict(zip(Place._fields, record["place"]))
        check_types(place, Place.__annotations__, "the place of a shard")
    shard = Shard(**record["shard"])
    shard.check(job.folder, np.dtype(job.dtype))
    return shard, Place(**place)


def write_record(job: Job, name: str, record: Mapping[str, Any]) -> None:
    path = record_path(job, name)
    with new_or_same(path) as file, files.naming_target(path):
        files.write(file, sealed(RECORD, record))


@contextlib.contextmanager
def new_or_same(path: str) -> Iterator[IO[bytes]]:
    """A new file to write to, which appears complete; or, where it is there, one that is thrown
    away: what is there has the same bytes."""
    is_new = False
    try:
        with files.new_file(path, alone=False) as file:
            is_new = True
            yield file
    except FileExistsError as error:
        if error.filename != path:
            raise
    if not is_new:
        with open(os.devnull, "wb") as nothing:
            yield nothing
