"""The documents that shards are made of: files in parts, or a corpus, hashed as they are read."""

import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from tokbpe import arguments, blocks, reading, sources
from tokbpe.aside import OneThread
from tokbpe.reading import Block
from tokbpe.sources import Listed, Paths


class Part(NamedTuple):
    """Some of the files."""

    number: int
    files: tuple[Listed, ...]

    @property
    def name(self) -> str:
        return f"{self.number:05}"


def files_of(paths: Paths, folder: str) -> list[Listed]:
    """The files of paths but for those in a folder, where what is made of them is to be; under
    names that hold in any folder that a process works in."""
    found = sources.list_files(paths)
    absolute = [file._replace(path=os.path.abspath(file.path)) for file in found]
    there = {os.path.dirname(file.path) for file in absolute}
    made = os.path.join(os.path.realpath(folder), "")
    there -= {path for path in there if os.path.join(os.path.realpath(path), "").startswith(made)}
    return [file for file in absolute if os.path.dirname(file.path) in there]


def parts_of(found: Iterable[Listed], size: int) -> list[Part]:
    """Files one after another in parts, each closed when it has so many bytes."""
    parts: list[Part] = []
    group: list[Listed] = []
    held = 0
    for file in found:
        group.append(file)
        held += file.state[0]
        if held >= size:
            parts.append(Part(len(parts), tuple(group)))
            group, held = [], 0
    return [*parts, Part(len(parts), tuple(group))] if group else parts


class Hashed(NamedTuple):
    """A block of documents of one file or corpus, and the SHA-256 of those that end in it."""

    name: Callable[[int], str]  # of a document, by its number
    block: Block
    digests: list[bytes]
    read: int  # so many bytes of a plain file, separators included; else of the documents

    @property
    def size(self) -> int:
        return size_of(self.block)


def hashed_blocks(part: Part, corpus: Any, plan: blocks.Plan, field: str) -> Iterator[Hashed]:
    """The documents of a part: of its files, or of a corpus that is there in the place of these.

    field: what holds the text of a document where documents are records.
    """
    if corpus is not None:
        found = reading.grouped(arguments.documents(corpus), plan.size)
        yield from hashed(names_in(None, corpus, plan), found, None)
    for file in part.files:
        name = names_in(file, corpus, plan)
        if sources.has_records(file.path):
            found = reading.grouped(records_of(file, field, name), plan.size)
            yield from hashed(name, found, None)
            continue
        with sources.contents(file) as data:
            place = data.tell if sources.is_plain(file.path) else None
            yield from hashed(name, reading.blocks(data, *plan), place)


def records_of(file: Listed, field: str, name: Callable[[int], str]) -> Iterator[bytes]:
    """The documents of a file that has records; a UnicodeEncodeError names the one."""
    for number, text in enumerate(sources.records_in(file, field)):
        yield sources.bytes_of(text, name, number)


def names_in(file: Listed | None, corpus: Any, plan: blocks.Plan) -> Callable[[int], str]:
    """What a document of a file, or of a corpus, is called, by its number there."""
    if file is None:
        return getattr(corpus, "name", sources.Given.name)
    return partial(sources.place, file.path, plan.separation)


def hashed(
    name: Callable[[int], str], found: Iterable[Block], place: Callable[[], int] | None
) -> Iterator[Hashed]:
    """Blocks with their hashes; place: how far the file is read."""
    read = 0
    for block in found:
        if block.start == 0 and block.last:
            digests = [hashlib.sha256(text).digest() for text in block.texts]
        else:  # a part of a document
            if block.start == 0:
                digest = hashlib.sha256()
            digest.update(block.texts[0])
            digests = [digest.digest()] if block.last else []
        before, read = read, read + size_of(block) if place is None else place()
        yield Hashed(name, block, digests, read - before)


def size_of(block: Block) -> int:
    return sum(map(len, block.texts))


def ahead(items: Iterator[Hashed]) -> Generator[Hashed]:
    """The same items, each made by another thread while the one before is worked on."""
    coming: list[Hashed] = []  # one, or none when all are there

    def come() -> None:
        coming.extend(islice(items, 1))

    with OneThread() as thread:
        thread.later(come)
        thread.wait()
        while coming:
            item = coming.pop()
            thread.later(come)
            yield item
            thread.wait()
