"""Files of data: counts, documents, ids, and folders of token shards, finished or not."""

import atexit
import contextlib
import gzip
import io
import json
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from cases import Raised
from fuzzing.inputs import REFUSALS, Choices, edit_plain, limited, outcome, same
from fuzzing.readers import SECONDS, folder
from tokbpe import (
    Corpus,
    PieceCounts,
    Shards,
    TokenDataset,
    Tokenizer,
    cli,
    count_files,
    parquet_pages,
    shards,
    write_shards,
)
from tokbpe import parquet as parquet_reader

# Counts


def counts(data: bytes) -> None:
    """The parts of a file of counts as JSON, put together with a checksum; or a whole file."""
    with folder() as path, limited(SECONDS):
        file = path / "some.counts"
        if data.startswith(count_files.ZIP_START):
            file.write_bytes(data)
        elif not write_counts(file, data):
            return
        ours, theirs = (
            outcome(lambda engine=engine: PieceCounts.load(file, engine), allowed=REFUSALS)
            for engine in ("fast", "reference")
        )
        if isinstance(ours, Raised) or isinstance(theirs, Raised):
            same(ours, theirs)
            assert str(path) in ours.text
            return
        same([(piece, ours[piece]) for piece in ours], [(piece, theirs[piece]) for piece in theirs])
        ours.save(path / "again")
        assert PieceCounts.load(path / "again") == ours
        same(*(outcome(lambda one=one: trained(one)) for one in (ours, theirs)))


def write_counts(file: Path, data: bytes) -> bool:
    """Write what such JSON says; False if it is none."""
    try:
        plain = json.loads(data)
        arrays = count_files.Arrays(
            np.frombuffer(plain["data"].encode("utf-8"), np.uint8),
            np.array(plain["ends"], np.uint64),
            np.array(plain["counts"], np.int64),
        )
        count_files.save(file, arrays, plain["facts"])
    except Exception:  # whatever: it is the input that is wrong
        return False
    return True


def trained(counts: PieceCounts) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few ids
        options = {"vocabulary_size": 256 + len(counts.special_tokens) + 6}
        method = "word" if counts.pattern == "words" else "bpe"
        return Tokenizer.from_counts(counts, method=method, **options).fingerprint()


# Documents

NAMES = ("a.txt", "a.jsonl", "a.ndjson.gz", "a.txt.gz", "b.txt.gz", "b.jsonl.gz")


def documents(data: bytes) -> None:
    """Files of one kind, read in every way that there is."""
    choices = Choices(data)
    name = choices.pick(NAMES)
    separator = choices.pick(["whole", "line", b"\0", b"ab"])
    block = 1 + choices.number(40)
    content = choices.rest()
    if name.startswith("a.") and name.endswith(".gz"):
        content = gzip.compress(content, 1, mtime=0)
    with folder() as path:
        file = path / name
        file.write_bytes(content)
        read = outcome(lambda: [*Corpus.from_files(file, documents=separator)], allowed=REFUSALS)
        if isinstance(read, Raised):
            assert str(path) in read.text or "at least one document" in read.text
        if ".txt" not in name or isinstance(read, Raised):
            return
        with gzip.open(file) if name.endswith(".gz") else open(file, "rb") as opened:
            check_documents(opened, separator, block, read)


def check_documents(file: Any, separator: str | bytes, block: int, read: list[bytes]) -> None:
    """The same documents, encoded and counted in small blocks."""
    tokenizer = Tokenizer.from_bytes()
    parts = [*tokenizer.encode_file(file, documents=separator, block_bytes=block)]
    ids = b"".join(part.astype(np.uint8).tobytes() for part, _ in parts)
    assert ids == b"".join(read)
    if separator == "whole":
        return
    file.seek(0)
    found = PieceCounts.from_files([file], documents=separator, pattern="gpt2")
    assert found == PieceCounts(read, pattern="gpt2")


# Columns


def parquet(data: bytes) -> None:
    """What a Parquet file tells of its pages; before it a byte, the number of its columns."""
    columns, file = data[:1], io.BytesIO(data[1:])

    def told() -> list[parquet_pages.Page]:
        chunks = parquet_pages.Footer(file).chunks(0, columns[0] if columns > b"\0" else 1)
        plain = [chunk._replace(codec=0) for chunk in chunks]
        return [
            page
            for chunk in plain
            for page in parquet_reader.checked_pages(file, chunk, 2**26, True)
        ]

    pages = outcome(told, allowed=(ValueError,))
    if not isinstance(pages, Raised):
        assert all(0 <= number < 2**31 for page in pages for number in page[:3])


# Ids


def ids(data: bytes) -> None:
    """What `tokbpe decode` is given: ids as text, or an array of NumPy, which can also be a data
    set."""
    with folder() as path, contextlib.redirect_stderr(io.StringIO()) as told:
        (path / "ids").write_bytes(data)
        names = [str(base() / "tokenizer"), str(path / "ids"), "-o", str(path / "text")]
        status = cli.main(["decode", *names])
        assert status in (0, 1)
        assert status == 0 or str(path) in told.getvalue(), told.getvalue()
        found = outcome(TokenDataset, path / "ids", 2, allowed=REFUSALS)
        if isinstance(found, Raised):
            few = found.text.startswith(("there are ", "a context of "))  # tokens, for a row
            assert few or str(path) in found.text, found
        else:
            assert len([*found]) == len(found)


@cache
def small_tokenizer() -> Tokenizer:
    return Tokenizer("low lower lowest", method="bpe", vocabulary_size=262, reserved=["EOS", "PAD"])


# Shards

TEXTS = ("low lower\n", "lowest\n" * 4, "é slow\n" * 3, "x", "")
OPTIONS = {"shard_tokens": 7, "documents": "line", "eos": True, "threads": 1}


def finished_shards(data: bytes) -> None:
    """Edits of the files of finished shards."""
    files = dict(finished())
    sealed = edited(files, Choices(data))
    put(files)
    found = outcome(Shards, out(), allowed=REFUSALS)
    if isinstance(found, Raised):
        assert str(out()) in found.text, found
    else:
        check_shards(found, sealed)
    check_made(outcome(write, allowed=REFUSALS), sealed)


def check_shards(found: Shards, sealed: bool) -> None:
    """What is read of them is refused or the same, unless its checksum was made anew."""
    read = all_read(found)
    if not sealed and not isinstance(read[0], Raised):
        assert read == expected(), read
    if not any(isinstance(value, Raised) for value in read):
        assert read[2] == sorted(read[2]) and read[2][-1] == len(found)


def all_read(found: Shards) -> list[Any]:
    """What shards give, or how that is refused."""
    return [
        outcome(call, allowed=REFUSALS)
        for call in (
            found.verify,
            lambda: found[:].tobytes(),
            lambda: found.offsets.tolist(),
            found.fingerprint,
            lambda: repr((found, len(found), found.role, found.documents)),
            lambda: repr([*TokenDataset(found, 3)]),
            lambda: repr([*TokenDataset(found, 3, pack="document")]),
        )
    ]


def unfinished_shards(data: bytes) -> None:
    """Edits of what is there when work on shards was killed; then it goes on."""
    files = dict(unfinished())
    sealed = edited(files, Choices(data))
    put(files)
    check_made(outcome(write, allowed=REFUSALS), sealed)


def check_made(made: Shards | Raised, sealed: bool) -> None:
    """Refused, also when every byte is looked at, or what would have been there without edits."""
    if isinstance(made, Raised):
        assert str(out()) in made.text, made
    else:
        damage = outcome(made.verify, allowed=REFUSALS)
        assert sealed or isinstance(damage, Raised) or contents(out()) == finished()


def edited(files: dict[str, bytes], choices: Choices) -> bool:
    """Edit files as the choices say; whether a checksum was made anew."""
    sealed = False
    for _ in range(1 + choices.number(3)):
        name = choices.pick([*files])
        data = files[name]
        kind = choices.number(4)
        if kind == 0:
            place = choices.number(len(data) + 1)
            removed = choices.number(9)
            files[name] = data[:place] + choices.bytes(choices.number(9)) + data[place + removed :]
        elif kind == 1:
            files[name] = data[: choices.number(len(data) + 1)]
        elif kind == 2:
            del files[name]
        elif name.endswith(".json"):
            with contextlib.suppress(ValueError, KeyError):  # what is damaged already
                plain = json.loads(data)
                del plain["sha256"]
                edit_plain(plain, choices)
                files[name] = shards.sealed(plain["format"], plain)
                sealed = True
    return sealed


# The shards that are edited


@cache
def base() -> Path:
    """A folder with a tokenizer and files to make shards of, until the end of the process: plans
    tell their paths and times."""
    folder = Path(tempfile.mkdtemp(prefix="fuzzing-"))
    atexit.register(shutil.rmtree, folder)
    small_tokenizer().save(folder / "tokenizer")
    (folder / "in").mkdir()
    for number, text in enumerate(TEXTS):
        (folder / "in" / f"{number}.txt").write_text(text, "utf-8")
    return folder


def out() -> Path:
    return base() / "out"


def write() -> Shards:
    return write_shards(base() / "in", small_tokenizer(), out(), **OPTIONS)


def put(files: dict[str, bytes]) -> None:
    """Write the files of shards anew."""
    shutil.rmtree(out(), ignore_errors=True)
    out().mkdir()
    for name, data in files.items():
        (out() / name).parent.mkdir(exist_ok=True)
        (out() / name).write_bytes(data)


def contents(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


@cache
def unfinished() -> dict[str, bytes]:
    """The files of shards whose manifest could not be written."""
    put({})
    with (
        mock.patch("tokbpe.sharding.finish", side_effect=OSError("no more")),
        contextlib.suppress(OSError),
    ):
        write()
    return contents(out())


@cache
def finished() -> dict[str, bytes]:
    put({})
    write()
    return contents(out())


@cache
def expected() -> list[Any]:
    """What is read of them."""
    put(finished())
    return all_read(Shards(out()))
