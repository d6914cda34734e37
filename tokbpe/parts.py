"""The documents that shards are made of: files in parts, or a corpus, hashed as they are read."""

import errno
import glob
import hashlib
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

from tokbpe import arguments, blocks, reading
from tokbpe.reading import Block

Path: TypeAlias = str | os.PathLike[str]


class File(NamedTuple):
    """A file, and what tells whether it has changed."""

    path: str
    size: int
    changed: int


class Part(NamedTuple):
    """Some of the files."""

    number: int
    files: tuple[File, ...]

    @property
    def name(self) -> str:
        return f"{self.number:05}"

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def files_of(source: Path | Iterable[Path]) -> list[File]:
    """The files of paths, in order; symbolic links, and what is no regular file, are refused."""
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if isinstance(source, (*arguments.BUFFER_TYPES, Mapping)) or not isinstance(source, Iterable):
        raise TypeError(f"source must be paths or a corpus, not {arguments.type_name(source)}")
    paths: list[str] = []
    for path in source:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a path must be str or os.PathLike, not {arguments.type_name(path)}")
        paths += paths_below(os.fspath(path))
    return [file_at(path) for path in paths]


def paths_below(path: str) -> Iterator[str]:
    """A path, or what a glob or a folder stands for."""
    if os.path.islink(path):
        raise ValueError(f"{path}: a symbolic link is not followed")
    if os.path.isdir(path):
        for entry in sorted(os.listdir(path)):
            yield from paths_below(os.path.join(path, entry))
    elif glob.has_magic(path) and not os.path.lexists(path):
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise FileNotFoundError(errno.ENOENT, "no file matches", path)
        yield from (match for match in matches if not os.path.isdir(match))
    else:
        yield path


def file_at(path: str) -> File:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: this is no regular file")
    return File(os.path.abspath(path), status.st_size, status.st_mtime_ns)


def parts_of(found: Iterable[File], size: int) -> list[Part]:
    """Files one after another in parts, each closed when it has so many bytes."""
    parts: list[Part] = []
    group: list[File] = []
    for file in found:
        group.append(file)
        if sum(file.size for file in group) >= size:
            parts.append(Part(len(parts), tuple(group)))
            group = []
    return [*parts, Part(len(parts), tuple(group))] if group else parts


class Hashed(NamedTuple):
    """A block of documents of a file, and the SHA-256 of those that end in it."""

    name: str | None
    block: Block
    digests: list[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.block.texts))


def hashed_blocks(part: Part, corpus: Any, plan: blocks.Plan) -> Iterator[Hashed]:
    """The documents of a part."""
    for name, block in part_blocks(part, corpus, plan):
        if block.start == 0 and block.last:
            digests = [hashlib.sha256(text).digest() for text in block.texts]
        else:  # a part of a document
            if block.start == 0:
                digest = hashlib.sha256()
            digest.update(block.texts[0])
            digests = [digest.digest()] if block.last else []
        yield Hashed(name, block, digests)


def part_blocks(part: Part, corpus: Any, plan: blocks.Plan) -> Iterator[tuple[str | None, Block]]:
    if corpus is not None:
        for block in grouped(arguments.documents(corpus), plan.size):
            yield None, block
    for planned in part.files:
        with open(planned.path, "rb") as file:
            if reading.state(file) != planned[1:]:
                raise OSError(
                    errno.EIO, "the file was changed since the work was begun", planned.path
                )
            for block in reading.blocks(file, *plan):
                yield planned.path, block


def grouped(documents: Iterator[bytes], size: int) -> Iterator[Block]:
    """Documents in blocks of about so many bytes."""
    number = held = 0
    texts: list[bytes] = []
    for document in documents:
        texts.append(document)
        held += len(document)
        if held >= size:
            yield Block(texts, number)
            number, held, texts = number + len(texts), 0, []
    if texts:
        yield Block(texts, number)


def ahead(items: Iterator[Hashed]) -> Generator[Hashed]:
    """The same items, each made by another thread while the one before is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
