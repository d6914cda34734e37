"""Token shards: what is written, read and checked, and what goes wrong."""

import concurrent.futures
import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokbpe
from alarms import alarm, needs_alarms
from growth import growth
from tokbpe import (
    Shards,
    TokenDataset,
    Tokenizer,
    files,
    shard_work,
    sharding,
    shards,
    write_shards,
)
from tokbpe.parts import files_of, parts_of
from tokbpe.shards import check_fields, sealed

core = pytest.mark.core

CORPUS = ["low lower lowest newest widest " * 9, "slow"]


@pytest.fixture(scope="module", autouse=True)
def quick_disk():
    """What is written is not waited for: what that is good for, a test cannot see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(
        CORPUS,
        method="bpe",
        vocabulary_size=270,
        pattern="gpt2",
        special_tokens=["<e>"],
        reserved=["BOS", "EOS", "PAD"],
    )


class Corpus:
    """Documents in memory, as `write_shards` takes them."""

    def __init__(self, documents, role="training"):
        self.documents = documents
        self.role = role

    def __iter__(self):
        return iter(self.documents)

    def fingerprint(self):
        digest = hashlib.sha256()
        for document in self.documents:
            data = document.encode() if isinstance(document, str) else document
            digest.update(hashlib.sha256(data).digest())
        return digest.hexdigest()


def folder_with(path, texts):
    """A folder with a file for each text."""
    path.mkdir()
    for number, text in enumerate(texts):
        (path / f"{number:03}.txt").write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def contents(folder):
    """The bytes of all files in a folder."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def contents_below(folder):
    """The names of all files and folders below a folder."""
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


def rows_of(found):
    tokens = found[:].tolist()
    return [tokens[start:stop] for start, stop in pairwise(found.offsets.tolist())]


# What is written

DOCUMENTS = st.lists(
    st.lists(st.sampled_from(["low", " lower", "x", "<e>", "\n", "é"]), max_size=12).map("".join),
    min_size=1,
    max_size=12,
)


@pytest.mark.long
@core
@settings(max_examples=40)
@given(
    documents=DOCUMENTS,
    shard_tokens=st.integers(1, 30),
    options=st.sampled_from(
        [{}, {"bos": True}, {"bos": True, "eos": True}, {"eos": True, "allowed_special": "all"}]
    ),
    dtype=st.sampled_from([None, "uint32"]),
    in_files=st.booleans(),
)
def test_the_tokens_are_those_of_each_document(
    tmp_path_factory, tokenizer, documents, shard_tokens, options, dtype, in_files
):
    path = tmp_path_factory.mktemp("shards")
    source = folder_with(path / "in", documents) if in_files else Corpus(documents)
    rows = [tokenizer.encode(document, **options) for document in documents]

    def write(folder):
        return write_shards(
            source, tokenizer, folder, shard_tokens=shard_tokens, dtype=dtype, **options
        )

    if not any(rows):
        with pytest.raises(ValueError, match=rf"nothing to write: {len(rows)} documents have no"):
            write(path / "out")
        assert not (path / "out").exists()
        return
    found = write(path / "out")
    assert rows_of(found) == rows
    assert found.dtype == (dtype or "uint16") and found.offsets.dtype == np.uint64
    assert len(found) == sum(map(len, rows))
    assert found.documents == len(rows) and found.role == "training"
    if not in_files:  # files are taken in parts, which end with smaller shards
        assert [shard.tokens for shard in found.shards[:-1]] == [shard_tokens] * (
            len(found.shards) - 1
        )
    assert all(shard.tokens <= shard_tokens for shard in found.shards)
    found.verify()
    assert Shards(path / "out", tokenizer).fingerprint() == found.fingerprint()
    assert found.corpus_fingerprint == Corpus(documents).fingerprint()


def test_the_files_of_a_shard_are_arrays_of_numpy(tmp_path, tokenizer):
    folder_with(tmp_path / "in", ["low lower", "", "newest low"])
    found = write_shards(tmp_path / "in", tokenizer, tmp_path / "out", eos=True, shard_tokens=5)
    rows = [tokenizer.encode(text, eos=True) for text in ("low lower", "", "newest low")]
    names = sorted(contents(tmp_path / "out"))
    assert names[-1] == "manifest.json"
    tokens = [np.load(tmp_path / "out" / shard.tokens_file) for shard in found.shards]
    assert np.concatenate(tokens).tolist() == sum(rows, [])
    for shard in found.shards:
        for name in (shard.tokens_file, shard.offsets_file):
            path = tmp_path / "out" / name
            array = np.load(path)
            np.save(tmp_path / "again.npy", array)
            assert (tmp_path / "again.npy").read_bytes() == path.read_bytes()
        assert len(np.load(tmp_path / "out" / shard.offsets_file)) == shard.documents + 1
        digest = hashlib.sha256((tmp_path / "out" / shard.tokens_file).read_bytes()[128:])
        assert digest.hexdigest() == shard.tokens_sha256


def test_a_document_goes_on_in_the_next_shards(tmp_path, tokenizer):
    found = write_shards(Corpus(["x" * 7, "", "y"]), tokenizer, tmp_path / "out", shard_tokens=3)
    assert [found.shard_offsets(number).tolist() for number in range(3)] == [[0, 3], [3], [1, 1, 2]]
    assert found.offsets.tolist() == [0, 7, 7, 8]


@pytest.mark.parametrize("documents", ["line", "--", b"\n\n", b"\xff", "é"])
def test_several_documents_in_a_file(tmp_path, tokenizer, documents):
    path = tmp_path / "file"
    path.write_bytes("low--lower\r\n\nslowé\n--\n\nnewest".encode() + b"\xfflow")
    found = write_shards(
        path, tokenizer, tmp_path / "out", documents=documents, eos=True, shard_tokens=4
    )
    rows = [
        ids[start:stop].tolist()
        for ids, offsets in tokenizer.encode_file(path, documents=documents, eos=True)
        for start, stop in pairwise(offsets.tolist())
    ]
    assert len(rows) > 1
    assert rows_of(found) == rows


def parquet(path, texts, **options):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"n": range(len(texts)), "body": texts})
    pytest.importorskip("pyarrow.parquet").write_table(table, path, **options)


def packed(data, packing):
    if packing == ".gz":
        return gzip.compress(data)
    return pytest.importorskip("zstandard").compress(data)


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_packed_files_and_tables(tmp_path, tokenizer, monkeypatch, packing):
    monkeypatch.setattr(sharding, "PART_BYTES", 1)
    texts = ["low lower " * number + "é" for number in range(40)]
    records = b"".join(json.dumps({"body": text}).encode() + b"\n" for text in texts)
    source = tmp_path / "in"
    source.mkdir()
    parquet(source / "e.parquet", texts, row_group_size=7)
    table = (source / "e.parquet").read_bytes()
    (source / f"a.txt{packing}").write_bytes(packed(b"low lower " * 900, packing))
    (source / f"b.jsonl{packing}").write_bytes(packed(records, packing))
    (source / "c.jsonl").write_bytes(records)
    (source / f"d.txt{packing}").write_bytes(packed(b"low", packing) + packed(b" lower", packing))
    (source / f"f.parquet{packing}").write_bytes(packed(table, packing))
    (source / f"g.jsonl{packing}").write_bytes(packed(b"", packing))
    options = {"field": "body", "eos": True, "shard_tokens": 50}
    found = write_shards(source, tokenizer, tmp_path / "out", **options)
    documents = ["low lower " * 900, *texts, *texts, "low lower", *texts, *texts]
    assert rows_of(found) == [tokenizer.encode(text, eos=True) for text in documents]
    killed_early(
        monkeypatch,
        lambda: write_shards(source, tokenizer, tmp_path / "again", **options),
        "00001-00001",
    )
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        write_shards(source, tokenizer, tmp_path / "again", executor=executor, **options)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


@pytest.mark.parametrize(
    ("texts", "field", "message"),
    [
        (["low", None], "body", "row 1 of column 'body' is null"),
        (["low"], "text", "there is no column 'text' among ['n', 'body']"),
        (["low"], "n", "column 'n' must hold texts or bytes, not int64"),
        (["low", "ox"], "body", "row 1: byte 0x78 at byte position 1"),
    ],
    ids=map(str, range(4)),
)
def test_tables_that_hold_no_documents(tmp_path, texts, field, message):
    path = tmp_path / "a.parquet"
    parquet(path, texts)
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        write_shards(path, Tokenizer("low er"), tmp_path / "out", field=field)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=re.escape(f"{path}: ")):
        write_shards(path, Tokenizer("low er"), tmp_path / "out", field=field)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("data", [b"low", None, b""], ids=["text", "cut", "empty"])
def test_zst_files_that_are_damaged(tmp_path, tokenizer, data):
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "a.txt.zst"
    path.write_bytes(zstandard.compress(b"low" * 99)[:-9] if data is None else data)
    message = "the compressed data are damaged" if data != b"" else "there is nothing to write"
    with pytest.raises(ValueError, match=message) as raised:
        write_shards(path, tokenizer, tmp_path / "out")
    assert data == b"" or str(path) in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_files_of_all_kinds(tmp_path, tokenizer, monkeypatch):
    records = b"".join(b'{"body": "low %d"}\n' % number for number in range(9))
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.txt").write_bytes(b"low lower")
    (source / "b.txt.gz").write_bytes(gzip.compress(b"newest " * 90))
    (source / "c.jsonl").write_bytes(records)
    (source / "d.jsonl.gz").write_bytes(gzip.compress(records))
    encoding = Tokenizer._encoding
    monkeypatch.setattr(
        Tokenizer, "_encoding", lambda self, **options: encoding(self, **options, block_bytes=20)
    )
    corpus = tokbpe.Corpus.from_files(source, field="body")
    seen = []
    options = {"field": "body", "eos": True, "shard_tokens": 20}
    found = write_shards(
        source, tokenizer, tmp_path / "out", progress=lambda *all: seen.append(all), **options
    )
    encoded = tokenizer.encode_corpus(corpus, eos=True)
    assert found[:].tolist() == encoded.tokens.tolist()
    assert found.offsets.tolist() == encoded.offsets.tolist()
    assert found.documents == len(corpus) == 20
    assert found.fingerprint() == encoded.fingerprint()
    assert seen[-1] == (corpus.bytes, None)  # how much is packed in files is not known before
    monkeypatch.setattr(sharding, "PART_BYTES", 1)
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        parts = write_shards(source, tokenizer, tmp_path / "2", executor=executor, **options)
    assert parts[:].tolist() == found[:].tolist()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b'{"text": "low"}\n{"body": "low"}\n', "line 2: there is no field 'text'"),
        ("a.jsonl", b'{"text": "low"}\n{"text": "ox"}\n', "line 2: byte 0x78 at byte position 1"),
        ("a.jsonl", b"low\n", "line 1: this is no JSON"),
        ("a.txt.gz", b"low\n", "the compressed data are damaged"),
        ("a.txt.gz", gzip.compress(b"low" * 99)[:-9], "the compressed data are damaged"),
    ],
    ids=map(str, range(5)),
)
def test_files_that_hold_no_documents(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / name}: ") + f".*{message}"):
        write_shards(tmp_path / name, Tokenizer("low er"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_half_a_surrogate_pair_in_json(tmp_path, tokenizer):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "low"}\n{"text": "\\ud800"}\n')
    with pytest.raises(UnicodeEncodeError, match=r"not allowed \(.*a\.jsonl: line 2\)"):
        write_shards(path, tokenizer, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_large_documents_come_in_blocks(tmp_path, tokenizer, monkeypatch):
    encoding = Tokenizer._encoding

    def in_small_blocks(self, **options):
        return encoding(self, **options, block_bytes=100)

    monkeypatch.setattr(Tokenizer, "_encoding", in_small_blocks)
    texts = ["low lower " * 40, "newest", "slow " * 60, "widest " * 9]
    folder_with(tmp_path / "in", texts)
    for shard_tokens in (7, 26, 1000):
        found = write_shards(
            tmp_path / "in",
            tokenizer,
            tmp_path / f"{shard_tokens}",
            shard_tokens=shard_tokens,
            bos=True,
        )
        assert rows_of(found) == [tokenizer.encode(text, bos=True) for text in texts]
        digests = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
        assert found.corpus_fingerprint == hashlib.sha256(digests).hexdigest()


def test_same_input_same_bytes_whatever_works_on_it(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(sharding, "PART_BYTES", 2)
    folder_with(tmp_path / "in", [f"low lower {number} " * (number % 7) for number in range(40)])
    options = {"shard_tokens": 50, "eos": True}
    write_shards(tmp_path / "in", tokenizer, tmp_path / "alone", **options)
    assert len({name[:5] for name in contents(tmp_path / "alone")}) > 3
    for kind in ("ThreadPoolExecutor", "ProcessPoolExecutor"):
        with getattr(concurrent.futures, kind)(2) as executor:
            write_shards(tmp_path / "in", tokenizer, tmp_path / kind, executor=executor, **options)
        assert contents(tmp_path / kind) == contents(tmp_path / "alone")
    write_shards(tmp_path / "in", tokenizer, tmp_path / "threads", threads=3, **options)
    assert contents(tmp_path / "threads") == contents(tmp_path / "alone")


def test_dtype_follows_the_vocabulary(tmp_path, tokenizer):
    def with_ids(count):
        return Tokenizer.from_vocabulary(
            replace(tokenizer._vocabulary, special_tokens={"<e>": count - 1})
        )

    small, large = with_ids(2**16), with_ids(2**16 + 1)
    found = write_shards(Corpus(["<e>"]), small, tmp_path / "small", allowed_special="all")
    assert found.dtype == np.uint16 and found[:].tolist() == [2**16 - 1]
    found = write_shards(Corpus(["<e>"]), large, tmp_path / "large", allowed_special="all")
    assert found.dtype == np.uint32 and found[:].tolist() == [2**16]
    for dtype in ("uint16", np.uint16, np.dtype("uint16")):
        with pytest.raises(ValueError, match="uint16 holds 0 to 65535"):
            write_shards(Corpus(["a"]), large, tmp_path / "no", dtype=dtype)
        found = write_shards(Corpus(["a"]), small, tmp_path / f"{dtype}", dtype=dtype)
        assert found.manifest["dtype"] == "uint16"
    assert not (tmp_path / "no").exists()


# Which files


def test_which_files_there_are_does_not_depend_on_the_folder(tmp_path, monkeypatch):
    folder_with(tmp_path / "in", ["low", "slow"])
    (tmp_path / "in" / ".hidden").write_text("no")
    monkeypatch.chdir(tmp_path)
    expected = [str(tmp_path / "in" / name) for name in ("000.txt", "001.txt")]
    for source in ("in", Path("in"), b"in", ["in/000.txt", "in/001.*"], "in/*", tmp_path / "in"):
        assert [file.path for file in files_of(source, str(tmp_path / "out"))] == expected


def test_a_folder_inside_what_is_read(tmp_path, tokenizer, monkeypatch):
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow"])
    (source / "out-not").mkdir()
    (source / "out-not" / "file").write_text("lowest")
    (tmp_path / "link").symlink_to(source)

    def write(**options):
        return write_shards(source, tokenizer, source / "out", shard_tokens=9, **options)

    killed_early(monkeypatch, write, "00000-00002")
    again = write_shards(source, tokenizer, tmp_path / "link" / "out", shard_tokens=9)
    assert write().documents == again.documents == 3  # finished already
    with pytest.raises(FileExistsError, match="the finished shards there have corpus ="):
        write_shards(source / "out", tokenizer, source / "out", shard_tokens=9)


def test_parts_depend_on_sizes_alone(tmp_path):
    source = folder_with(tmp_path / "in", ["x" * size for size in (3, 4, 0, 9, 1, 1)])
    found = files_of(source, str(tmp_path / "out"))
    sizes = [[file.state[0] for file in part.files] for part in parts_of(found, 5)]
    assert sizes == [[3, 4], [0, 9], [1, 1]]
    assert [part.number for part in parts_of(found, 5)] == [0, 1, 2]


# Going on


class Killed(BaseException):
    """What a process that is killed would not see."""


def killed(*_):
    raise Killed


@pytest.mark.parametrize("in_files", [True, False])
def test_killed_after_each_file_that_is_written(tmp_path, tokenizer, monkeypatch, in_files):
    monkeypatch.setattr(sharding, "PART_BYTES", 1)
    texts = ["low lower " * number + "é" for number in range(8)]
    source = folder_with(tmp_path / "in", texts) if in_files else Corpus(texts)
    options = {"shard_tokens": 20, "bos": True}
    write_shards(source, tokenizer, tmp_path / "whole", **options)
    real, left = files.new_file, 0

    def new_file(path, **options):
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return real(path, **options)

    for module in (files, shard_work.files):
        monkeypatch.setattr(module, "new_file", new_file)
    kills = 0
    while True:
        left = kills
        try:
            write_shards(source, tokenizer, tmp_path / "out", **options)
        except Killed:
            kills += 1
            assert kills < 200
            with pytest.raises(FileNotFoundError, match="no finished shards|No such file"):
                Shards(tmp_path / "out")
            left = 2  # and again, early
            with contextlib.suppress(Killed):
                write_shards(source, tokenizer, tmp_path / "out", **options)
        else:
            break
    assert kills > 5
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_what_has_a_record_is_not_encoded_again(tmp_path, tokenizer, monkeypatch):
    texts = [f"low {number} " * 9 for number in range(30)]
    options = {"shard_tokens": 40}
    write_shards(Corpus(texts), tokenizer, tmp_path / "whole", **options)
    killed_early(
        monkeypatch,
        lambda: write_shards(Corpus(texts), tokenizer, tmp_path / "out", **options),
        "00000-00010",
    )
    encoded = []
    arrays = tokbpe.blocks.Encoding.arrays

    def watched(self, block, name):
        encoded.extend(block.texts)
        return arrays(self, block, name)

    monkeypatch.setattr(tokbpe.blocks.Encoding, "arrays", watched)
    write_shards(Corpus(texts), tokenizer, tmp_path / "out", **options)
    assert 0 < len(encoded) < len(texts)
    assert encoded == [text.encode() for text in texts[-len(encoded) :]]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_what_is_finished_is_looked_at_and_left(tmp_path, tokenizer):
    source = folder_with(tmp_path / "in", ["low", "lower"])
    write_shards(source, tokenizer, tmp_path / "out")
    before = contents(tmp_path / "out")
    (source / "001.txt").write_text("slowe")
    with pytest.raises(
        FileExistsError, match="the finished shards there have corpus = '"
    ) as raised:
        write_shards(source, tokenizer, tmp_path / "out")
    assert raised.value.filename == str(tmp_path / "out")
    with pytest.raises(FileExistsError, match="shards there have eos = False, not True: "):
        write_shards(source, tokenizer, tmp_path / "out", eos=True)
    assert contents(tmp_path / "out") == before


def test_what_is_finished_is_read_with_progress(tmp_path, tokenizer):
    source = folder_with(tmp_path / "in", ["low\n", "lower"])
    write_shards(source, tokenizer, tmp_path / "out", documents="line")
    seen = []
    write_shards(
        source,
        tokenizer,
        tmp_path / "out",
        documents="line",
        progress=lambda *all: seen.append(all),
    )
    assert seen == [(4, 9), (9, 9)]


@pytest.mark.parametrize("removed", [0, 1, 2, 3])
def test_killed_while_it_is_cleaned(tmp_path, tokenizer, monkeypatch, removed):
    source = folder_with(tmp_path / "in", ["low", "lower"])
    write_shards(source, tokenizer, tmp_path / "whole")

    def rmtree(path):
        for name in sorted(os.listdir(path))[:removed]:
            os.unlink(os.path.join(path, name))
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(shutil, "rmtree", rmtree)
        write_shards(source, tokenizer, tmp_path / "out")
    assert len(contents_below(tmp_path / "out")) == 8 - removed
    assert write_shards(source, tokenizer, tmp_path / "out").documents == 2
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_file_systems_without_files_that_have_no_name(tmp_path, tokenizer, monkeypatch):
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow"])
    out = tmp_path / "out"
    write_shards(source, tokenizer, tmp_path / "whole", shard_tokens=9)
    monkeypatch.setattr(files, "unnamed", lambda target: None)
    killed_early(monkeypatch, lambda: write_shards(source, tokenizer, out, shard_tokens=9))
    (out / ".tokbpe-0123456789abcdef").write_text("what a killed process was writing to")
    (out / ".tokbpe-fedcba9876543210").mkdir()
    write_shards(source, tokenizer, out, shard_tokens=9)
    assert contents(out) == contents(tmp_path / "whole")


def killed_early(monkeypatch, call, name="00000-00001"):
    """A call that is killed when it closes a shard."""
    real = shard_work.ShardFiles.close

    def close(self, *rest):
        if self.name == name:
            raise Killed
        real(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(shard_work.ShardFiles, "close", close)
        with pytest.raises(Killed):
            call()


def test_other_input_is_refused(tmp_path, tokenizer, monkeypatch):
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow"])
    out = tmp_path / "out"
    killed_early(monkeypatch, lambda: write_shards(source, tokenizer, out, shard_tokens=9))
    other = Tokenizer.from_bytes()
    for call, message in [
        (
            lambda: write_shards(source, other, out, shard_tokens=9),
            f"tokenizer = '{tokenizer.fingerprint()}', not '{other.fingerprint()}'",
        ),
        (lambda: write_shards(source, tokenizer, out, shard_tokens=8), "shard_tokens = 9, not 8"),
        (
            lambda: write_shards(source, tokenizer, out, shard_tokens=9, eos=True),
            "eos = False, not True",
        ),
        (
            lambda: write_shards(source, tokenizer, out, shard_tokens=9, documents="line"),
            "documents = 'whole', not 'line'",
        ),
        (
            lambda: write_shards(source / "000.txt", tokenizer, out, shard_tokens=9),
            rf"file 1 = \['{source}/001.txt', 4, \d+\], not None",
        ),
    ]:
        with pytest.raises(ValueError, match=f"{out}: the unfinished shards there have {message};"):
            call()
    with monkeypatch.context() as patch:
        patch.setattr(sharding, "PART_BYTES", 5)
        with pytest.raises(ValueError, match="there have part_bytes = 36, not 45; ask"):
            write_shards(source, tokenizer, out, shard_tokens=9)
    with monkeypatch.context() as patch:
        patch.setattr(shards, "VERSION", 2)
        with pytest.raises(ValueError, match="plan.json: the file has version 1; this .* reads 2"):
            write_shards(source, tokenizer, out, shard_tokens=9)
    os.utime(source / "001.txt", (1, 1))
    with pytest.raises(
        ValueError, match=r"file 1 = \[.*001.txt', 4, \d+\], not \[.*, 1000000000\]"
    ):
        write_shards(source, tokenizer, out, shard_tokens=9)


@pytest.mark.parametrize("made", ["folder", "file", "link", "plan"])
def test_a_folder_that_only_has_the_name_of_ours(tmp_path, tokenizer, monkeypatch, made):
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow"])
    out = tmp_path / "out"
    out.mkdir()
    working = out / shard_work.WORK
    if made == "link":  # to a folder of another run
        other = tmp_path / "other"
        killed_early(monkeypatch, lambda: write_shards(source, tokenizer, other, shard_tokens=9))
        working.symlink_to(other / shard_work.WORK)
    elif made == "file":
        working.write_text("mine")
    else:
        working.mkdir()
        (working / "mine").write_text("mine")
        if made == "plan":
            (working / "plan.json").write_text('{"format": "plan of my own"}')
    before = contents_below(tmp_path)
    with pytest.raises(FileExistsError, match="this is no folder of unfinished shards") as raised:
        write_shards(source, tokenizer, out, shard_tokens=9)
    assert raised.value.filename == str(working)
    assert contents_below(tmp_path) == before


def test_folders_of_others_beside_shards_stay(tmp_path, tokenizer):
    source = folder_with(tmp_path / "in", ["low", "lower"])
    out = tmp_path / "out"
    write_shards(source, tokenizer, out)
    for name in ("work", shard_work.WORK, ".tokbpe-mine", ".tokbpe-0123456789abcdef0"):
        (out / name).mkdir()
        (out / name / "mine").write_text("mine")
    before = contents_below(out)
    assert write_shards(source, tokenizer, out).documents == 2
    assert contents_below(out) == before
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "work").mkdir()
    (tmp_path / "new" / "work" / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="something else than unfinished shards"):
        write_shards(source, tokenizer, tmp_path / "new")
    assert contents_below(tmp_path / "new") == ["work", "work/mine"]


def test_killed_before_the_plan_has_its_place(tmp_path, tokenizer, monkeypatch):
    source = folder_with(tmp_path / "in", ["low", "lower"])
    out = tmp_path / "out"
    write_shards(source, tokenizer, tmp_path / "whole")
    left = out / ".tokbpe-0123456789abcdef"
    left.mkdir(parents=True)
    (left / "plan.json").write_text("{}")
    write_shards(source, tokenizer, out)
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.parametrize("name", ["plan.json", "00000-00000.json", "00000.json", "00000.hashes"])
def test_damaged_plans_and_records(tmp_path, tokenizer, monkeypatch, name):
    monkeypatch.setattr(sharding, "PART_BYTES", 1)
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow lower " * 20])
    out = tmp_path / "out"

    def write():
        return write_shards(source, tokenizer, out, shard_tokens=20)

    killed_early(monkeypatch, write, "00001-00001")
    path = out / shard_work.WORK / name
    whole = path.read_bytes()
    for damaged in (
        whole[:-9] + b"\n",
        whole.replace(b"0", b"1", 1) if name != "00000.hashes" else whole[::-1],
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ):
        path.write_bytes(damaged)
        with pytest.raises((ValueError, FileExistsError)) as raised:
            write()
        assert str(path if name != "plan.json" else path.parent) in str(raised.value)
        assert path.read_bytes() == damaged
    path.write_bytes(whole)
    with monkeypatch.context() as patch:
        patch.setattr(files, "LARGEST", 5)
        with pytest.raises(ValueError, match=f"{path.parent}.*: the file has more than 5 bytes"):
            write()
    assert write().documents == 2


@pytest.mark.parametrize("left", ["all", "those it tells of"])
@pytest.mark.parametrize("shards_told", [0, 1, 3])
def test_records_that_tell_of_fewer_shards(tmp_path, tokenizer, monkeypatch, shards_told, left):
    source = folder_with(tmp_path / "in", ["low lower " * 20])
    out = tmp_path / "out"

    def write():
        return write_shards(source, tokenizer, out, shard_tokens=20)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(sharding, "finish", killed)
        write()
    path = out / shard_work.WORK / "00000.json"
    whole = path.read_bytes()
    assert json.loads(whole)["shards"] > 3
    rewritten(path, lambda plain: plain.update(shards=shards_told))
    if left != "all":
        for file in out.rglob("00000-*"):
            if not file.name.startswith(tuple(f"00000-{n:05}" for n in range(shards_told))):
                file.unlink()
    message = f"{path}: the part ends at .*'documents': 1,.* the {shards_told} shards"
    with pytest.raises(ValueError, match=message):
        write()
    assert not (out / "manifest.json").exists()
    if left == "all":
        path.write_bytes(whole)
        write().verify()


def test_shards_that_no_record_tells_of(tmp_path, tokenizer, monkeypatch):
    source = folder_with(tmp_path / "in", ["low lower " * 20])
    out = tmp_path / "out"
    killed_early(monkeypatch, lambda: write_shards(source, tokenizer, out, shard_tokens=20))
    other = out / "00009-00000.tokens.npy"
    other.write_bytes(b"mine")
    with pytest.raises(ValueError, match=f"{other}: this shard is not one of the 4 that"):
        write_shards(source, tokenizer, out, shard_tokens=20)
    other.unlink()
    write_shards(source, tokenizer, out, shard_tokens=20).verify()


ENDLESS = {
    "pipe": (os.mkfifo, "this is no regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "this is a device, and no file"),
    "terabyte": (lambda path: path.touch() or os.truncate(path, 2**40), "1099511627776 bytes, not"),
}


@needs_alarms
@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.parametrize("name", ["tokbpe-unfinished/00000.hashes", "00000-00000.tokens.npy"])
@pytest.mark.parametrize("recorded", [True, False])
def test_what_never_ends_in_the_place_of_a_file(
    tmp_path, tokenizer, monkeypatch, kind, name, recorded
):
    source = Corpus(["low lower " * 20])
    out = tmp_path / "out"

    def write():
        with alarm(20):
            return write_shards(source, tokenizer, out, shard_tokens=20)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(sharding, "finish", killed)
        write()
    if not recorded:
        for record in out.glob("tokbpe-unfinished/0*.json"):
            record.unlink()
    whole = (out / name).read_bytes()
    (out / name).unlink()
    make, message = ENDLESS[kind]
    make(out / name)
    # Of a shard that has a record the size is looked at first.
    message = "the file has .* bytes, not" if recorded and "tokens" in name else message
    with pytest.raises((OSError, ValueError), match=message) as raised:
        write()
    assert str(out / name) in str(raised.value)
    (out / name).unlink()
    (out / name).write_bytes(whole)
    write().verify()


def test_several_at_the_same_time(tmp_path, tokenizer):
    texts = ["low lower lowest " * 300 * number for number in range(1, 9)]
    source = folder_with(tmp_path / "in", texts)
    write_shards(source, tokenizer, tmp_path / "alone", shard_tokens=1000)

    def write(number):
        return write_shards(source, tokenizer, tmp_path / "out", shard_tokens=1000, threads=1)

    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        list(executor.map(write, range(4)))
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


@core
def test_a_file_that_another_process_writes_first(tmp_path):
    path = str(tmp_path / "a")
    with shard_work.new_or_same(path) as one, shard_work.new_or_same(path) as other:
        one.write(b"low")
        other.write(b"low")
    with shard_work.new_or_same(path) as third:
        third.write(b"low")
    assert contents(tmp_path) == {"a": b"low"}


@pytest.mark.parametrize("kind", ["tokens", "offsets"])
def test_a_shard_that_is_gone_before_all_are_finished(tmp_path, tokenizer, monkeypatch, kind):
    source = folder_with(tmp_path / "in", ["low lower " * 20])
    out = tmp_path / "out"

    def write():
        return write_shards(source, tokenizer, out, shard_tokens=9)

    killed_early(monkeypatch, write, "00000-00002")
    path = out / f"00000-00001.{kind}.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=re.escape(f"{path}: the file has {len(whole) - 1} bytes")):
        write()
    path.unlink()
    with pytest.raises(FileNotFoundError) as raised:
        write()
    assert raised.value.filename == str(path)
    path.write_bytes(whole)
    write().verify()


@pytest.mark.parametrize(
    "kind", [Corpus, tokbpe.Corpus, tokbpe.StreamedCorpus], ids=["any", "held", "streamed"]
)
def test_a_corpus_that_has_grown(tmp_path, tokenizer, monkeypatch, kind):
    texts = ["low lower " * 9 for _ in range(4)]
    out = tmp_path / "out"

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(sharding, "finish", killed)
        write_shards(kind(texts), tokenizer, out, shard_tokens=40)
    if kind is tokbpe.Corpus:
        one, other = kind(texts).fingerprint(), kind([*texts, ""]).fingerprint()
        message = f"there have corpus = '{one}', not '{other}'"
    else:
        message = "document 4: there are more documents than in the shards that are there"
    for more in ("", "low", "low lower " * 100):
        with pytest.raises(ValueError, match=message if not more else "corpus = |document 4"):
            write_shards(kind([*texts, more]), tokenizer, out, shard_tokens=40)
    (out / shard_work.WORK / "00000.json").unlink()  # as if killed a moment before
    with pytest.raises(ValueError, match=message):
        write_shards(kind([*texts, ""]), tokenizer, out, shard_tokens=40)
    found = write_shards(kind(texts), tokenizer, out, shard_tokens=40)
    assert rows_of(found) == [tokenizer.encode(text) for text in texts]


def test_a_corpus_that_changes_in_a_shard_without_record(tmp_path, tokenizer, monkeypatch):
    texts = ["low lower " * 9 for _ in range(9)]
    corpus = Corpus(texts)
    write_shards(corpus, tokenizer, tmp_path / "whole", shard_tokens=40)
    real = shard_work.write_record

    def write_record(job, name, record):
        if name == "00000-00002":
            raise Killed
        real(job, name, record)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(shard_work, "write_record", write_record)
        write_shards(corpus, tokenizer, tmp_path / "out", shard_tokens=40)
    path = tmp_path / "out" / "00000-00002.tokens.npy"
    assert path.exists()
    corpus.documents = [*texts[:3], *["slow lower " * 9] * 6]
    with pytest.raises(ValueError, match=re.escape(f"{path}: the documents are not those that")):
        write_shards(corpus, tokenizer, tmp_path / "out", shard_tokens=40)
    corpus.documents = texts
    write_shards(corpus, tokenizer, tmp_path / "out", shard_tokens=40)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize("tokens", [7, 8, 9])
def test_a_corpus_that_grows_behind_a_full_shard(tmp_path, tokenizer, monkeypatch, tokens):
    # Shards of 8: a full one may be followed by others, unless all was finished already.
    texts = ["x" * tokens, ""]
    options = {"shard_tokens": 8}
    write_shards(Corpus([*texts, "y"]), tokenizer, tmp_path / "whole", **options)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(sharding, "write_part", killed_after_the_shards(sharding.write_part))
        write_shards(Corpus(texts), tokenizer, tmp_path / "out", **options)
    if tokens == 8:
        write_shards(Corpus([*texts, "y"]), tokenizer, tmp_path / "out", **options)
        assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    else:
        with pytest.raises(ValueError, match="document 2: there are more documents than in the"):
            write_shards(Corpus([*texts, "y"]), tokenizer, tmp_path / "out", **options)


def killed_after_the_shards(write_part):
    """A `write_part` that is killed before it has a record of the part, and its hashes."""

    def killed(job, part, *rest):
        write_part(job, part, *rest)
        for name in ("json", "hashes"):
            os.unlink(os.path.join(job.work, f"{part.name}.{name}"))
        raise Killed

    return killed


def test_a_corpus_that_is_not_the_same_any_more(tmp_path, tokenizer, monkeypatch):
    texts = ["low lower " * 9 for _ in range(9)]
    corpus = Corpus(texts)
    out = tmp_path / "out"
    killed_early(
        monkeypatch,
        lambda: write_shards(corpus, tokenizer, out, shard_tokens=40),
        "00000-00002",
    )
    corpus.documents = ["slow lower " * 9, *texts[1:]]
    with pytest.raises(ValueError, match="are not those of the shards that are there"):
        write_shards(corpus, tokenizer, out, shard_tokens=40)
    corpus.documents = texts[:1]
    with pytest.raises(ValueError, match="fewer documents than in the shards that are there"):
        write_shards(corpus, tokenizer, out, shard_tokens=40)
    corpus.documents = texts
    assert rows_of(write_shards(corpus, tokenizer, out, shard_tokens=40)) == [
        tokenizer.encode(text) for text in texts
    ]


def test_a_full_disk(tmp_path, tokenizer, monkeypatch):
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow"])
    out = tmp_path / "out"
    write_shards(source, tokenizer, tmp_path / "whole", shard_tokens=9)
    real = shard_work.new_or_same

    class Full:
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextlib.contextmanager
    def new_or_same(path):
        with real(path) as file:
            yield Full() if "00000-00003" in path else file

    with monkeypatch.context() as patch:
        patch.setattr(shard_work, "new_or_same", new_or_same)
        with pytest.raises(OSError, match=r"; 3 shards are finished and stay, and") as raised:
            write_shards(source, tokenizer, out, shard_tokens=9)
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(out / "00000-00003.tokens.npy")
    for name, data in contents(tmp_path / "whole").items():
        if (out / name).exists():
            assert (out / name).read_bytes() == data
    write_shards(source, tokenizer, out, shard_tokens=9)
    assert contents(out) == contents(tmp_path / "whole")


@contextlib.contextmanager
def small_disk(path):
    """A disk in memory, and what sets its size in bytes; skips where none can be mounted."""
    path.mkdir()

    def mount(size, *options):
        options = ["-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", path]
        return subprocess.run(["mount", *options], capture_output=True).returncode

    if not shutil.which("mount") or mount(4096):
        pytest.skip("no disk can be mounted")
    try:
        yield lambda size: mount(size, "remount")
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_disk_that_is_really_full(tmp_path, tokenizer, monkeypatch, workers):
    monkeypatch.setattr(sharding, "PART_BYTES", 1)
    source = folder_with(tmp_path / "in", ["low lower " * 2000 * number for number in range(1, 5)])
    out = tmp_path / "disk" / "out"
    options = {"shard_tokens": 20_000, "eos": True}
    write_shards(source, tokenizer, tmp_path / "whole", **options)
    whole = contents(tmp_path / "whole")
    needed = sum(map(len, whole.values()))
    seen = set()
    with (
        concurrent.futures.ThreadPoolExecutor(max(1, workers)) as executor,
        small_disk(tmp_path / "disk") as resize,
    ):
        for size in range(4096, 2 * needed, needed // 25):
            resize(size)
            try:
                write_shards(
                    source, tokenizer, out, executor=executor if workers else None, **options
                )
            except OSError as error:
                assert error.errno == errno.ENOSPC
                assert Path(error.filename).is_relative_to(out)
            else:
                break
            found = list(out.glob("*.npy")) if out.exists() else []
            assert all(path.read_bytes() == whole[path.name] for path in found)
            seen.add(len(found))
            # One that is given up before any shard was made is tried again from the beginning;
            # another goes on, but not on the same disk: that would only test the last step.
            if size > needed // 2:
                resize(2**22)
                write_shards(source, tokenizer, out, **options)
                assert contents(out) == whole
                shutil.rmtree(out)
        assert len(seen) > 4
        assert contents(out) == whole


@pytest.mark.parametrize("kind", [None, "ThreadPoolExecutor", "ProcessPoolExecutor"])
def test_what_fails_before_any_shard_leaves_nothing(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(sharding, "PART_BYTES", 0.001)
    tokenizer = Tokenizer("low er")
    source = folder_with(tmp_path / "in", ["lox", "lox"])
    message = rf"{re.escape(str(source))}/00[01]\.txt: byte 0x78 at byte position 2"
    for out in (tmp_path / "new", tmp_path / "empty"):
        if out.name == "empty":
            out.mkdir()
        executor = kind and getattr(concurrent.futures, kind)(1)
        with pytest.raises(ValueError, match=message):
            write_shards(source, tokenizer, out, shard_tokens=1000, executor=executor)
        if executor:
            executor.shutdown()
        assert out.exists() == (out.name == "empty")
        assert not out.exists() or not list(out.iterdir())


def test_a_disk_that_is_full_from_the_beginning(tmp_path, tokenizer, monkeypatch):
    def full(file, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_shards(Corpus(["low"]), tokenizer, tmp_path / "out")
    assert raised.value.filename == str(tmp_path / "out" / shard_work.WORK)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [None, "elsewhere"])
@pytest.mark.parametrize("place", ["documents", "progress"])
def test_a_full_disk_of_the_caller_is_not_that_of_the_shards(place, name, tmp_path, tokenizer):
    full = OSError(errno.ENOSPC, "mine", name)

    def documents():
        yield "low"
        if place == "documents":
            raise full

    def progress(done, total):
        raise full

    with pytest.raises(OSError, match="mine") as raised:
        write_shards(
            Corpus(documents()),
            tokenizer,
            tmp_path / "out",
            progress=progress if place == "progress" else False,
        )
    assert raised.value is full


def test_a_document_of_a_corpus_that_cannot_be_encoded(tmp_path):
    with pytest.raises(ValueError, match="^document 2: byte 0x78 at byte position 1"):
        write_shards(Corpus(["low", "er", "ox"]), Tokenizer("low er"), tmp_path / "out")


def test_a_part_that_fails_stops_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(sharding, "PART_BYTES", 0.001)
    tokenizer = Tokenizer("low er")
    source = folder_with(tmp_path / "in", ["low " * 9, "lox", "lower"])
    with (
        concurrent.futures.ThreadPoolExecutor(2) as executor,
        pytest.raises(ValueError, match="001.txt: byte 0x78"),
    ):
        write_shards(source, tokenizer, tmp_path / "out", shard_tokens=100, executor=executor)
    assert not (tmp_path / "out" / shard_work.WORK / "stop").exists()


@pytest.mark.parametrize("failing", ["stop", "remove_work"])
def test_the_first_error_is_told(tmp_path, monkeypatch, failing):
    monkeypatch.setattr(sharding, "PART_BYTES", 0.001)
    tokenizer = Tokenizer("low er")
    source = folder_with(tmp_path / "in", ["lox", "lox"])

    def failed(*arguments, **options):
        raise OSError(errno.EROFS, "the second error")

    if failing == "stop":
        monkeypatch.setattr(sharding, "open", failed, raising=False)
    else:
        monkeypatch.setattr(sharding.os, "rmdir", failed)
    with (
        concurrent.futures.ThreadPoolExecutor(1) as executor,
        pytest.raises(ValueError, match=r"00[01].txt: byte 0x78"),
    ):
        write_shards(source, tokenizer, tmp_path / "out", shard_tokens=1000, executor=executor)


def test_an_executor_that_takes_no_more_work(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(sharding, "PART_BYTES", 0.001)
    source = folder_with(tmp_path / "in", ["low " * 999, "lower", "slow"])

    class Closing(concurrent.futures.ThreadPoolExecutor):
        def submit(self, *work):
            if self.left == 0:
                self.shutdown(wait=False)
            self.left -= 1
            return super().submit(*work)

    with Closing(1) as executor:
        executor.left = 2
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            write_shards(source, tokenizer, tmp_path / "out", shard_tokens=1000, executor=executor)
        # Nobody writes any more.
        assert not (tmp_path / "out" / shard_work.WORK / "stop").exists()
        left = contents_below(tmp_path)
    assert contents_below(tmp_path) == left


def test_a_part_ends_when_another_has_failed(tmp_path, tokenizer):
    source = {"documents": "whole", "field": "text"}
    job = shard_work.Job(str(tmp_path), tokenizer, source, {}, "training", "uint16", 10, None)
    (tmp_path / shard_work.WORK).mkdir()
    (tmp_path / shard_work.WORK / "stop").touch()
    (part,) = parts_of(files_of(folder_with(tmp_path / "in", ["low"]), "out"), 1)
    with pytest.raises(InterruptedError, match="another part has failed"):
        shard_work.write_part(job, part)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", shard_work.WORK]


def test_interrupted(tmp_path, tokenizer):
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow"])

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(source, tokenizer, tmp_path / "out", progress=interrupt)
    assert not (tmp_path / "out").exists()


def test_progress(tmp_path, tokenizer, capsys):
    source = folder_with(tmp_path / "in", ["low lower " * 20, "slow", ""])
    seen = []
    write_shards(source, tokenizer, tmp_path / "1", progress=lambda *all: seen.append(all))
    assert seen == [(200, 204), (204, 204), (204, 204)]
    write_shards(source, tokenizer, tmp_path / "2", progress=True)  # no terminal, no bar
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("documents", ["line", "--", "whole"])
def test_progress_reaches_its_total(tmp_path, tokenizer, monkeypatch, documents, parts):
    encoding = Tokenizer._encoding
    monkeypatch.setattr(
        Tokenizer, "_encoding", lambda self, **options: encoding(self, **options, block_bytes=20)
    )
    monkeypatch.setattr(sharding, "PART_BYTES", 1 if parts == 3 else 1000)
    texts = ["low\r\nlow--er\n\n" * 9, "", "\n", "low\nno end" * 9, "--"]
    source = folder_with(tmp_path / "in", texts)
    total = sum(map(len, texts))
    options = {"documents": documents, "shard_tokens": 30}
    seen = []

    def call(executor=None):
        seen.clear()
        name = f"out{executor is not None}"
        write_shards(
            source,
            tokenizer,
            tmp_path / name,
            executor=executor,
            progress=lambda *all: seen.append(all),
            **options,
        )
        assert seen[-1] == (total, total)
        assert seen == sorted(seen) and {last for _, last in seen} == {total}

    call()
    call()  # finished already
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        call(executor)
    assert Shards(tmp_path / "outTrue").manifest["bytes"] == sum(
        len(document) for document in tokbpe.Corpus.from_files(source, documents=documents)
    )


# What is refused


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shard_tokens": 0}, ValueError, "shard_tokens must be from 1 to"),
        ({"shard_tokens": 1.5}, TypeError, "shard_tokens must be a whole number"),
        ({"role": "train"}, ValueError, "role must be one of 'training', 'validation', 'test'"),
        ({"documents": ""}, ValueError, "the separator is empty"),
        ({"allowed_special": ["<x>"]}, ValueError, "'<x>' is no special token"),
        ({"dtype": "int64"}, ValueError, "dtype must be 'uint16' or 'uint32', not 'int64'"),
        ({"threads": 0}, ValueError, "threads must be from 1 to"),
        ({"progress": 5}, TypeError, "progress must be a bool or a function, not int"),
        ({"tokenizer": 5}, TypeError, "tokenizer must be a Tokenizer, not int"),
        ({"source": b"x"}, FileNotFoundError, "No such file"),
        ({"source": [5]}, TypeError, "path 0 must be a path, not int"),
        ({"source": 5}, TypeError, "paths must be a path or several, not int"),
        ({"field": 5}, TypeError, "field must be a name, not int"),
        ({"source": []}, ValueError, "nothing to write: 0 documents have no tokens"),
        ({"source": Corpus([])}, ValueError, "nothing to write: 0 documents have no tokens"),
        ({"source": Corpus(["a", 5])}, TypeError, "document 1 must be str or bytes, not int"),
        ({"source": Corpus(["\ud800"])}, UnicodeEncodeError, "surrogates"),
        ({"source": Corpus(["a"]), "role": "test"}, ValueError, "the corpus has the role 'train"),
        ({"executor": 5}, TypeError, "executor must be a concurrent.futures.Executor, not int"),
        (
            {"executor": concurrent.futures.ThreadPoolExecutor},
            TypeError,
            "executor must be a .*, not <class",
        ),
        (
            {
                "source": Corpus(["a"]),
                "executor": concurrent.futures.ThreadPoolExecutor(1),
            },
            ValueError,
            "executor is for files",
        ),
    ],
)
def test_arguments_are_checked(tmp_path, tokenizer, options, error, message):
    (tmp_path / "file").write_text("low")
    options = {"source": tmp_path / "file", "tokenizer": tokenizer, **options}
    with pytest.raises(error, match=message):
        write_shards(folder=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["EncodedCorpus", "Shards"])
def test_ids_are_no_documents(tmp_path, tokenizer, kind):
    source = tokenizer.encode_corpus(tokbpe.Corpus(["low", "lower"]))
    if kind == "Shards":
        source = write_shards(Corpus(["low"]), tokenizer, tmp_path / "in")
    with pytest.raises(TypeError, match=f"shards are written of documents, and {kind} holds ids"):
        write_shards(source, tokenizer, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_in_it(tmp_path, tokenizer):
    (tmp_path / "mine").write_text("low")
    with pytest.raises(FileExistsError, match="something else than unfinished shards"):
        write_shards(tmp_path / "mine", tokenizer, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(FileNotFoundError):
        write_shards(tmp_path / "mine", tokenizer, tmp_path / "a" / "b")


def test_a_file_that_changes(tmp_path, tokenizer, monkeypatch):
    source = folder_with(tmp_path / "in", ["low", "lower"])
    real = sharding.write_part

    def later(*arguments):
        (source / "001.txt").write_text("slower")
        return real(*arguments)

    monkeypatch.setattr(sharding, "write_part", later)
    with pytest.raises(OSError, match="the file has changed since it was listed") as raised:
        write_shards(source, tokenizer, tmp_path / "out")
    assert raised.value.filename == str(source / "001.txt")


@pytest.mark.parametrize("role", ["validation", "test"])
def test_documents_that_the_tokenizer_was_fitted_on(tmp_path, tokenizer, role):
    message = f"the tokenizer was fitted on this document, so it cannot be {role} data"
    with pytest.raises(ValueError, match=f"^document 1: {message}"):
        write_shards(Corpus(["new", "slow"], role), tokenizer, tmp_path / "out")
    source = folder_with(tmp_path / "in", ["new", "slow"])
    with pytest.raises(ValueError, match=f"in/001.txt: {message}"):
        write_shards(source, tokenizer, tmp_path / "out", role=role)
    (source / "001.txt").write_text("new\nslow\n")
    with pytest.raises(ValueError, match=f"in/001.txt: document 1: {message}"):
        write_shards(source, tokenizer, tmp_path / "out", role=role, documents="line")
    (source / "002.jsonl").write_text('{"text": "new"}\n{"text": "slow"}\n')
    with pytest.raises(ValueError, match=f"in/002.jsonl: line 2: {message}"):
        write_shards(source, tokenizer, tmp_path / "out", role=role)
    assert not (tmp_path / "out").exists()
    assert write_shards(Corpus(["new", "slow "], role), tokenizer, tmp_path / "out").role == role
    assert write_shards(Corpus(["slow"]), tokenizer, tmp_path / "training").role == "training"


def test_too_many_fitting_documents_to_know(tmp_path, monkeypatch):
    monkeypatch.setattr(tokbpe.record.Record.__init__, "__defaults__", (1,))
    tokenizer = Tokenizer(CORPUS, method="bpe", vocabulary_size=260)
    with pytest.warns(UserWarning, match="cannot be checked that this test corpus") as warned:
        write_shards(Corpus(["slow"], "test"), tokenizer, tmp_path / "out")
    assert warned[0].filename == __file__
    with (
        pytest.warns(UserWarning, match="cannot be checked"),
        pytest.raises(ValueError, match="on these very 2 documents, from document 0 on, so they"),
    ):
        write_shards(Corpus(CORPUS, "test"), tokenizer, tmp_path / "all")
    source = folder_with(tmp_path / "in", CORPUS)
    with (
        pytest.warns(UserWarning, match="cannot be checked"),
        pytest.raises(ValueError, match="on these very 2 documents, from .*000.txt on"),
    ):
        write_shards(source, tokenizer, tmp_path / "files", role="test")
    for folder in ("all", "files"):
        with pytest.raises(FileNotFoundError, match="no finished shards"):
            Shards(tmp_path / folder)


# Reading


@pytest.fixture
def written(tmp_path, tokenizer):
    texts = ["low lower " * 3, "", "newest"]
    return write_shards(Corpus(texts), tokenizer, tmp_path / "out", eos=True, shard_tokens=4)


def test_slices(written, tokenizer):
    tokens = sum(
        (tokenizer.encode(text, eos=True) for text in ("low lower " * 3, "", "newest")), []
    )
    assert len(written.shards) == 3 or len(written.shards) > 3
    for start in range(len(tokens) + 2):
        for stop in range(len(tokens) + 2):
            assert written[start:stop].tolist() == tokens[start:stop]
    assert written[-3:].tolist() == tokens[-3:]
    assert not written[1:3].flags.writeable  # a part of the file
    with pytest.raises(TypeError, match="by slices, not by int"):
        written[3]
    with pytest.raises(ValueError, match="has the step 1, not 2"):
        written[::2]


def test_another_working_directory(tmp_path, tokenizer, monkeypatch):
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("in").write_text("low lower")
    found = write_shards("in", tokenizer, "out", shard_tokens=2)
    opened = Shards("out")
    monkeypatch.chdir("else")
    assert found.folder == opened.folder == str(tmp_path / "out")
    for again in (found, opened, pickle.loads(pickle.dumps(opened))):
        assert again[:].tolist() == tokenizer.encode("low lower")
        again.verify()


def test_pickling_opens_the_folder_again(written):
    again = pickle.loads(pickle.dumps(written))
    assert again[:].tolist() == written[:].tolist()
    assert len(pickle.dumps(written)) < 500
    assert "training" in repr(again) and "of 3 documents" in repr(again)


def test_identity(tmp_path, tokenizer):
    def made(name, texts=("low", "lower"), role="training", **options):
        return write_shards(Corpus(list(texts), role), tokenizer, tmp_path / name, **options)

    first = made("0")
    assert first.fingerprint() == made("1", shard_tokens=1, dtype="uint32").fingerprint()
    others = [
        made("2", ["lower", "low"]),
        made("3", eos=True),
        made("4", role="test"),
        made("5", ["lowlower"]),
    ]
    assert len({shards.fingerprint() for shards in [first, *others]}) == 5
    other = Tokenizer(CORPUS, method="bpe", vocabulary_size=270, reserved=["BOS", "EOS", "PAD"])
    with pytest.raises(ValueError) as raised:
        Shards(tmp_path / "0", other)
    with pytest.raises(TypeError, match="tokenizer must be a Tokenizer, not str"):
        Shards(tmp_path / "0", "tokenizer")
    assert other.fingerprint() in str(raised.value)
    assert tokenizer.fingerprint() in str(raised.value)


@pytest.mark.parametrize("kind", [tokbpe.Corpus, tokbpe.StreamedCorpus])
@pytest.mark.parametrize("role", ["training", "test"])
def test_shards_of_a_corpus_are_its_ids(tmp_path, tokenizer, kind, role):
    corpus = kind(["low <e>", "", "lower"], role=role)
    options = {"bos": True, "allowed_special": "all"}
    encoded = tokenizer.encode_corpus(corpus, **options)
    seen = []
    found = write_shards(
        corpus,
        tokenizer,
        tmp_path / "out",
        shard_tokens=3,
        progress=lambda *all: seen.append(all),
        **options,
    )
    assert found[:].tolist() == encoded.tokens.tolist()
    assert found.offsets.tolist() == encoded.offsets.tolist()
    assert (found.role, found.fingerprint()) == (role, encoded.fingerprint())
    assert found.fingerprint() != tokenizer.encode_corpus(corpus, bos=True).fingerprint()
    assert seen[-1] == (12, 12)
    one, other = (
        TokenDataset(source, 4, pack="document", pad_id=tokenizer.pad_id)
        for source in (found, encoded)
    )
    assert one.fingerprint() == other.fingerprint()
    assert one[0].inputs.tolist() == other[0].inputs.tolist()


# Damage


def changed(path, place, value=None):
    data = bytearray(path.read_bytes())
    data[place] = data[place] ^ 1 if value is None else value
    path.write_bytes(data)


def test_each_byte_counts(tmp_path, written):
    folder = Path(written.folder)
    for path in sorted(folder.glob("00000-0000[02].*")):
        before = path.read_bytes()
        for place in range(len(before)):
            changed(path, place)
            with pytest.raises(ValueError, match=re.escape(f"{path}: ")):
                Shards(folder).verify()
            path.write_bytes(before)
    Shards(folder).verify()


def test_each_byte_of_the_manifest_counts(written):
    path = Path(written.folder) / "manifest.json"
    before = path.read_bytes()
    for place in range(len(before)):
        byte = before[place : place + 1]
        # What is white space may be another one.
        changed(path, place, ord("\t") if byte.isspace() else None)
        with pytest.raises(ValueError, match=re.escape(f"{path}: ")):
            Shards(written.folder)
        path.write_bytes(before)
    Shards(written.folder)


@pytest.mark.parametrize("more", [-1, 1])
def test_files_of_another_size(written, more):
    path = Path(written.folder) / written.shards[0].tokens_file
    os.truncate(path, path.stat().st_size + more)
    with pytest.raises(ValueError, match=r"tokens.npy: the file has \d+ bytes, not \d+$"):
        Shards(written.folder)


def as_file(array):
    """What `np.save` writes."""
    with io.BytesIO() as file:
        np.save(file, array)
        return file.getvalue()


@pytest.mark.parametrize("kind", ["tokens", "offsets"])
@pytest.mark.parametrize(
    "data",
    [
        as_file(np.arange(4, dtype="int16")),
        as_file(np.arange(4, dtype=">u2")),
        as_file(np.arange(4, dtype="uint16").reshape(2, 2)),
        as_file(np.array([{}, None], object)),
        b"x" * 136,
        b"",
    ],
    ids=["type", "order", "shape", "pickled", "text", "empty"],
)
def test_files_of_something_else(written, kind, data):
    path = Path(written.folder) / getattr(written.shards[0], f"{kind}_file")
    if len(data) > 100:  # of the right size
        data = data[:128].ljust(path.stat().st_size, b"\0")
    path.write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(f"{path}: the file ")):
        Shards(written.folder)


def test_a_file_that_is_cut_off_when_it_is_opened_already(written):
    path = Path(written.folder) / written.shards[0].tokens_file
    os.truncate(path, 130)
    with pytest.raises(ValueError, match=re.escape(f"{path}: ")):
        Shards.tokens(fresh(written), 0)


def fresh(found):
    """The same shards, with nothing mapped yet."""
    found._mapped.clear()
    return found


def test_more_shards_than_files_that_may_be_open(tmp_path, tokenizer):
    """Where a file stays open as long as it is mapped, an error tells the way out."""
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    found = write_shards(Corpus(["low lower " * 20]), tokenizer, tmp_path / "out", shard_tokens=1)
    assert len(found.shards) > 40
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as file:
        allowed = file.fileno() + 20
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, before[1]))
        assert found.offsets.tolist() == [0, len(found)]  # these are read, not mapped
        found.verify()
        if sys.version_info >= (3, 13):
            assert len(found[:]) == len(found)
        else:
            message = "one for each shard; allow more of them, or write larger shards"
            with pytest.raises(OSError, match=f"{message}: '.*tokens.npy'"):
                found[:]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("kind", ["tokens", "offsets"])
def test_files_that_are_missing(written, kind):
    name = getattr(written.shards[1], f"{kind}_file")
    os.unlink(Path(written.folder) / name)
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        Shards(written.folder)


def test_what_is_no_folder_of_shards(tmp_path):
    with pytest.raises(FileNotFoundError, match="these are no finished shards"):
        Shards(tmp_path)
    with pytest.raises(FileNotFoundError):
        Shards(tmp_path / "absent")
    for text in ("", "{", "[]", '{"format": "x"}', "[" * 100_000):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match=r"manifest.json: (the file is damaged|this is no)"):
            Shards(tmp_path)


def rewritten(path, change):
    """A manifest or record that was changed, with the right checksum."""
    plain = json.loads(path.read_text())
    del plain["sha256"]
    change(plain)
    path.write_bytes(sealed(plain.pop("format"), plain))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plain: plain.update(version=2), "has version 2; this tokbpe reads 1"),
        (lambda plain: plain.pop("role"), "must have role, of the type str"),
        (lambda plain: plain.update(role="train"), "role must be one of"),
        (lambda plain: plain.update(dtype="int8"), "dtype must be one of"),
        (lambda plain: plain.update(tokens=5), "the tokens of the shards are not 5 together"),
        (lambda plain: plain["shards"].append(5), "a shard has name, tokens"),
        (lambda plain: plain["shards"][0].update(name="../x"), "stands in the folder of its"),
        (lambda plain: plain["shards"][0].update(tokens=-1), "whole number from 0 on, .*not -1"),
        (lambda plain: plain["shards"][0].update(tokens="4"), "must have tokens, of the type int"),
    ],
    ids=map(str, range(9)),
)
def test_manifests_that_nobody_wrote(written, change, message):
    rewritten(Path(written.folder) / "manifest.json", change)
    with pytest.raises(ValueError, match=f"{written.folder}/manifest.json: .*{message}"):
        Shards(written.folder)


def test_a_long_manifest_with_a_shard_twice(written):
    def refuse(names):
        shards = [{**written.manifest["shards"][0], "name": name} for name in names]
        with pytest.raises(ValueError, match="the manifest has the shard '0{5}-0*2999' twice"):
            check_fields({**written.manifest, "shards": shards})

    names = [f"00000-{number:05}" for number in range(3000)]
    assert growth(refuse, names[-300:] + names[-1:], names + names[-1:], 30) < 30


def test_ids_of_a_larger_vocabulary(written):
    rewritten(Path(written.folder) / "manifest.json", lambda plain: plain.update(vocab_size=100))
    with pytest.raises(ValueError, match="there are ids above 99, the highest of the tokenizer"):
        Shards(written.folder).verify()


def test_offsets_that_fall(tmp_path, tokenizer):
    found = write_shards(Corpus(["low", "lower"]), tokenizer, tmp_path / "out")
    path = tmp_path / "out" / found.shards[0].offsets_file
    changed(path, 128, 200)
    with pytest.raises(ValueError, match="the offsets must rise to"):
        Shards(tmp_path / "out").offsets  # noqa: B018


def test_verify_tells_its_progress(written):
    seen = []
    written.verify(lambda *all: seen.append(all))
    assert (
        seen[-1][0]
        == seen[-1][1]
        == sum(len(data) - 128 for name, data in contents(written.folder).items() if "npy" in name)
    )
    assert shards.VERSION == 1
