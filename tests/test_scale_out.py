"""Counting by the workers of executors, a Dask cluster among them, and counts in Parquet, which
DuckDB adds up. What is not installed is skipped."""

import json
import os
import re
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import active_children, get_context
from random import Random

import numpy as np
import pytest

from alarms import alarm
from tokbpe import PieceCounts, Tokenizer, count_files, count_work

WORDS = ["low", "lower", "newest", "wide", "naïve", "你好", "\n", "it's"]
HIGHEST = 2**63 - 1


def some_text(seed, words=300):
    random = Random(seed)
    return " ".join(f"{random.choice(WORDS)}{random.randrange(40)}" for _ in range(words))


@pytest.fixture
def paths(tmp_path):
    for seed in range(12):
        (tmp_path / f"{seed:02}.txt").write_text(some_text(seed), encoding="utf-8")
    return sorted(tmp_path.glob("*.txt"))


def learned(counts):
    return Tokenizer.from_counts(counts, vocabulary_size=300, tie_break="first").fingerprint()


def same(found, expected):
    assert found == expected
    assert found.record == expected.record
    assert learned(found) == learned(expected)


# Processes


def test_processes(paths):
    expected = PieceCounts.from_files(paths, pattern="gpt2")
    same(PieceCounts.from_files(paths, pattern="gpt2", workers=2), expected)


def test_an_executor_of_processes(paths, monkeypatch):
    monkeypatch.setattr(count_work, "TASK_BYTES", 3000)
    documents = [path.read_text(encoding="utf-8") for path in paths]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for engine in ("fast", "reference"):
            expected = PieceCounts(documents, pattern="cl100k", engine=engine)
            same(PieceCounts(documents, pattern="cl100k", engine=engine, executor=pool), expected)
            found = PieceCounts.from_files(paths, pattern="cl100k", engine=engine, executor=pool)
            same(found, expected)
        with pytest.raises(FileNotFoundError, match="absent"):
            PieceCounts.from_files([*paths, "absent"], pattern="gpt2", executor=pool)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize("own", [True, False])
def test_an_interrupt_waits_for_no_worker(own, tmp_path, monkeypatch):
    """Neither for what has begun, which never ends here, nor for what waits behind it."""
    monkeypatch.setattr(count_work, "TASK_FILE_BYTES", 0)
    paths = [tmp_path / f"{number}" for number in range(9)]
    for path in paths:
        os.mkfifo(path)  # whoever opens one waits until somebody writes
    executor = None if own else ThreadPoolExecutor(2)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), alarm(3, KeyboardInterrupt):  # all workers have begun
        PieceCounts.from_files(paths, executor=executor, workers=2 if own else None)
    if executor is None:
        # The pool's own thread collects them too; what it is just collecting still looks alive.
        while active_children() and time.monotonic() - start < 20:
            time.sleep(0.01)
        assert not active_children()
    else:
        for path in paths[:2]:  # all that has begun
            path.write_text("low")
        executor.shutdown()


@pytest.mark.filterwarnings("ignore")  # of what Dask needs
def test_a_dask_cluster(paths, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(count_work, "TASK_BYTES", 3000)
    documents = [path.read_text(encoding="utf-8") for path in paths]
    expected = PieceCounts(documents, pattern="gpt2")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        same(PieceCounts.from_files(paths, pattern="gpt2", executor=executor), expected)
        same(PieceCounts(documents, pattern="gpt2", executor=executor), expected)
        pids = set(client.run(lambda: __import__("os").getpid()).values())
        assert len(pids) == 2


# Parquet


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow")


def parquet_file(path, **columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)
    return path


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    counts = PieceCounts("low")
    for call in (counts.to_parquet, PieceCounts.from_parquet):
        with pytest.raises(ImportError, match=r'pip install "tokbpe\[arrow\]"'):
            call(tmp_path / "counts.parquet")
    assert not (tmp_path / "counts.parquet").exists()


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("pattern", [None, "gpt2", "words", "[a-z]+"])
def test_a_file_and_back(arrow, engine, pattern, tmp_path):
    import pyarrow.parquet as pq

    counts = PieceCounts(
        [some_text(1), b"\xff\x00low", "<e>"],
        pattern=pattern,
        special_tokens=["<e>"],
        engine=engine,
    )
    counts.to_parquet(tmp_path / "a.parquet")
    found = PieceCounts.from_parquet(tmp_path / "a.parquet", engine=engine)
    assert found == counts
    assert (found.record, found.special_tokens) == (counts.record, ("<e>",))
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["piece", "count", "first"]
    assert dict(zip(table["piece"].to_pylist(), table["count"].to_pylist())) == dict(counts)
    assert table["first"].to_pylist() == [*range(len(counts))]
    physical = pq.ParquetFile(tmp_path / "a.parquet").schema
    assert [physical.column(i).physical_type for i in range(3)] == ["BYTE_ARRAY", "INT64", "INT64"]
    with pytest.raises(FileExistsError):
        counts.to_parquet(tmp_path / "a.parquet")
    empty = PieceCounts(engine=engine)
    empty.to_parquet(tmp_path / "empty.parquet")
    assert PieceCounts.from_parquet(tmp_path / "empty.parquet", engine=engine) == empty


def parts(paths, folder):
    """Counts of each file, in a file of its own; their order is not that of their names."""
    folder.mkdir()
    for number, path in enumerate(paths):
        counts = PieceCounts.from_files(path, pattern="gpt2")
        counts.to_parquet(folder / f"{99 - number}.parquet", part=number)
    return folder


def test_parts_are_added_up_in_their_order(arrow, paths, tmp_path):
    expected = PieceCounts.from_files(paths, pattern="gpt2")
    folder = parts(paths, tmp_path / "parts")
    for source in (folder, sorted(folder.iterdir()), [*folder.iterdir()][::-1]):
        found = PieceCounts.from_parquet(source, pattern="gpt2")
        assert found == expected and found.ordered
        same(found, expected)
    with pytest.raises(ValueError, match="part must be from 0 to"):
        expected.to_parquet(tmp_path / "x", part=-1)


def test_counts_without_an_order(arrow, tmp_path):
    path = parquet_file(
        tmp_path / "a.parquet", piece=[b"cd", b"ab", b"cd"], count=[2, 2**40, 5], other=[1, 2, 3]
    )
    counts = PieceCounts.from_parquet(path, pattern=None)
    assert dict(counts) == {b"cd": 7, b"ab": 2**40}
    assert not counts.ordered
    with pytest.raises(ValueError, match="no order of first appearance, which tie_break='first'"):
        Tokenizer.from_counts(counts, tie_break="first")
    for rule in ("smallest", "greatest"):
        found = Tokenizer.from_counts(counts, tie_break=rule, vocabulary_size=257)
        assert found.vocabulary[256] == b"ab"
        assert found.fingerprint() == Tokenizer.from_state(found.state()).fingerprint()
    counts.save(tmp_path / "counts.npz")
    counts.to_parquet(tmp_path / "again.parquet")
    for again in (
        PieceCounts.load(tmp_path / "counts.npz"),
        PieceCounts.from_parquet(tmp_path / "again.parquet"),
        counts + PieceCounts(),
        PieceCounts() + counts,
    ):
        assert not again.ordered and dict(again) == dict(counts)
    ordered = PieceCounts("ab")
    ordered.to_parquet(tmp_path / "b.parquet")
    mixed = PieceCounts.from_parquet([path, tmp_path / "b.parquet"], pattern=None)
    assert not mixed.ordered and mixed[b"ab"] == 2**40 + 1


def test_files_of_different_pieces(arrow, tmp_path):
    PieceCounts("low", pattern="gpt2", special_tokens=["<e>"]).to_parquet(tmp_path / "a.parquet")
    PieceCounts("low", pattern="cl100k").to_parquet(tmp_path / "b.parquet", part=1)
    one, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    ours, given = "pattern 'gpt2', special tokens ['<e>']", "pattern 'cl100k', special tokens []"
    with pytest.raises(ValueError, match=re.escape(f"b.parquet holds counts of {given}, not of ")):
        PieceCounts.from_parquet([one, other])
    with pytest.raises(ValueError, match=re.escape(f"{one} holds counts of {ours}, not of ")):
        PieceCounts.from_parquet(one, pattern="cl100k")
    with pytest.raises(ValueError, match="not of pattern 'gpt2', special tokens \\['x'\\]"):
        PieceCounts.from_parquet(one, special_tokens=["x"])
    assert PieceCounts.from_parquet(one, pattern="gpt2", special_tokens=["<e>"])
    foreign = parquet_file(tmp_path / "c.parquet", piece=[b"a"], count=[1], first=[7])
    with pytest.raises(ValueError, match="c.parquet does not say by which pattern"):
        PieceCounts.from_parquet([one, foreign])
    with pytest.raises(ValueError, match="a.parquet holds counts of .*, not of pattern None"):
        PieceCounts.from_parquet([one, foreign], pattern=None)


def test_parts_of_the_same_number(arrow, tmp_path):
    """They would be read in an order that no corpus has."""
    for name in ("a", "b"):
        PieceCounts(f"{name} x", pattern="gpt2").to_parquet(tmp_path / name, part=3)
    with pytest.raises(ValueError, match=r"/a and .*/b have the same place of the order.* `part`"):
        PieceCounts.from_parquet(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda facts: facts.pop("record"), "must have .*'record'"),
        (lambda facts: facts.update(ordered=3), "the field 'ordered': it must be true or false"),
    ],
)
def test_wrong_facts_in_parquet(arrow, change, message, tmp_path):
    import pyarrow.parquet as pq

    counts = PieceCounts("low lower", pattern="gpt2")
    counts.to_parquet(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    facts = json.loads(table.schema.metadata[count_files.METADATA])
    change(facts)
    text = json.dumps(facts)
    pq.write_table(
        table.replace_schema_metadata({count_files.METADATA: text}), tmp_path / "b.parquet"
    )
    with pytest.raises(ValueError, match="b.parquet: the file is damaged, or was changed"):
        PieceCounts.from_parquet(tmp_path / "b.parquet")
    del facts["sha256"]
    facts["sha256"] = count_files.digest(facts, [*counts.arrays, np.arange(2)])
    pq.write_table(
        table.replace_schema_metadata({count_files.METADATA: json.dumps(facts)}),
        tmp_path / "c.parquet",
    )
    with pytest.raises(ValueError, match=f"c.parquet: .*{message}"):
        PieceCounts.from_parquet(tmp_path / "c.parquet")
    for facts in ("[1]", "{"):
        pq.write_table(
            table.replace_schema_metadata({count_files.METADATA: facts}), tmp_path / "d.parquet"
        )
        with pytest.raises(ValueError, match="d.parquet: "):
            PieceCounts.from_parquet(tmp_path / "d.parquet")


def test_damaged_parquet(arrow, tmp_path):
    counts = PieceCounts(["low lower", "newest"], pattern="gpt2", special_tokens=["<e>"])
    counts.to_parquet(tmp_path / "a.parquet")
    good = (tmp_path / "a.parquet").read_bytes()
    for number, place in enumerate(range(0, len(good), 7)):
        data = bytearray(good)
        data[place] ^= 1
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(data)
        try:
            found = PieceCounts.from_parquet(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:  # what a reader does not look at
            assert (found, found.record) == (counts, counts.record)


@pytest.mark.skipif(os.name == "nt", reason="the system has no such paths")
def test_paths_are_those_of_this_machine(arrow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    counts = PieceCounts("low", pattern="gpt2")
    for path in ("s3:/y", "part=1 [x]*?.parquet"):
        counts.to_parquet(path)
        assert PieceCounts.from_parquet(path) == counts
    with pytest.raises(ValueError, match="no files are given"):
        PieceCounts.from_parquet([])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"piece": [b"a"]}, r"there is no column 'count' among \['piece'\]"),
        ({"piece": ["a"], "count": [1]}, "'piece' must hold bytes .*, not string"),
        ({"piece": [b"a"], "count": [1.0]}, "'count' must hold whole numbers .*, not double"),
        ({"piece": [b"a", None], "count": [1, 1]}, "row 1 of column 'piece' is null"),
        (
            {"piece": [b"a", b"b"], "count": [1, 1], "first": [1, None]},
            "row 1 of column 'first' is",
        ),
        ({"piece": [b"a", b""], "count": [1, 1]}, "a.parquet: row 1 of column 'piece' is empty"),
        ({"piece": [b"a", b"b"], "count": [1, 0]}, "a.parquet: row 1 of column 'count' is 0"),
        (
            {"piece": [b"a", b"b"], "count": [1, -4], "first": [5, 1]},
            "a.parquet: row 1 of column 'count' is -4",
        ),
        (
            {"piece": [b"a", b"b"], "count": [1, 4], "first": [1, 1]},
            "a.parquet and .*a.parquet have the same place of the order, first=1",
        ),
        ({"piece": [b"a", b"a"], "count": [HIGHEST, 1]}, "the piece b'a' would pass"),
    ],
)
def test_files_that_hold_no_counts(arrow, columns, message, tmp_path):
    path = parquet_file(tmp_path / "a.parquet", **columns)
    with pytest.raises(ValueError, match=message):
        PieceCounts.from_parquet(path, pattern=None)


def test_a_folder_of_others(arrow, tmp_path):
    (tmp_path / "total").mkdir()
    for number in range(2):
        parquet_file(tmp_path / "total" / f"part-{number}", piece=[b"a"], count=[1], first=[number])
    for name in ("_SUCCESS", ".part-0.crc"):
        (tmp_path / "total" / name).touch()
    assert dict(PieceCounts.from_parquet(tmp_path / "total", pattern=None)) == {b"a": 2}
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="there are no files in .*empty"):
        PieceCounts.from_parquet(tmp_path / "empty", pattern=None)


def test_other_files(arrow, tmp_path):
    (tmp_path / "a.parquet").write_text("low")
    with pytest.raises(ValueError, match="a.parquet: "):
        PieceCounts.from_parquet(tmp_path / "a.parquet")
    with pytest.raises(FileNotFoundError, match="absent"):
        PieceCounts.from_parquet(tmp_path / "absent")


def test_types_of_others(arrow, tmp_path):
    """Unsigned, small and decimal numbers, as databases write sums; views of bytes."""
    import decimal

    pa = arrow
    for kind in (pa.int32(), pa.uint64(), pa.decimal128(38, 0)):
        counts = (
            [decimal.Decimal(3), decimal.Decimal(4)]
            if kind.id == pa.decimal128(38, 0).id
            else [3, 4]
        )
        columns = {
            "piece": pa.array([b"a", b"b"], pa.large_binary()),
            "count": pa.array(counts, kind),
        }
        path = parquet_file(tmp_path / f"{kind.id}.parquet", **columns)
        assert dict(PieceCounts.from_parquet(path, pattern=None)) == {b"a": 3, b"b": 4}
    path = parquet_file(tmp_path / "large", piece=[b"a"], count=pa.array([2**63], pa.uint64()))
    with pytest.raises(ValueError, match="large: "):
        PieceCounts.from_parquet(path, pattern=None)


def test_the_places_of_parts_do_not_meet():
    assert count_files.MOST_PARTS * count_files.PART == 2**63


def test_duckdb_adds_up(arrow, paths, tmp_path, monkeypatch):
    """By the example in the docstring of `to_parquet`."""
    duckdb = pytest.importorskip("duckdb")
    parts(paths, tmp_path / "counts")
    monkeypatch.chdir(tmp_path)
    example = re.search(r"COPY \(.*?parquet\)", PieceCounts.to_parquet.__doc__, re.DOTALL)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        duckdb.sql(example)
    found = PieceCounts.from_parquet("total.parquet", pattern="gpt2")
    expected = PieceCounts.from_files(paths, pattern="gpt2")
    assert found == expected
    assert found.record["documents"] is None
    assert np.array_equal(
        Tokenizer.from_counts(found, tie_break="first").merges,
        Tokenizer.from_counts(expected, tie_break="first").merges,
    )
