"""PieceCounts: counting documents and files, adding up, saving, and learning from counts."""

import contextlib
import copy
import gzip
import hashlib
import inspect
import io
import itertools
import json
import pickle
import threading
import time
import warnings
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alarms import alarm, needs_alarms
from engine_threads import begun, none_left
from strategies import TIE_BREAKS, texts
from tokbpe import (
    PieceCounts,
    Tokenizer,
    continuing,
    count_work,
    engines,
    methods,
    reading,
    record,
    reference,
)
from tokbpe.record import MOST_HASHES, Record

pytestmark = pytest.mark.core
ENGINES = pytest.mark.parametrize("engine", engines.NAMES)
HIGHEST = 2**63 - 1
CORPUS = ["low lower<|e|> lowest", "newer newest\nlow", b"wide\xff", "", "naïve 你好 low low"]


def made(corpus=(), engine="fast", **options):
    return PieceCounts(corpus, **{"pattern": "gpt2", "engine": engine, **options})


def heavy(counts, engine="fast"):
    """Counts that no corpus could give here."""
    found = made(engine=engine)
    for piece, count in counts.items():
        part = (np.frombuffer(piece, np.uint8), np.array([len(piece)], np.uint64))
        found._table.add_counts(*part, np.array([count], np.int64))
    return found


# Reading


@ENGINES
def test_counts_are_those_of_the_reference(engine):
    special = {b"<|e|>": 0}
    for pattern in (None, "gpt2", "cl100k", "[a-z]+"):
        counts = made(CORPUS, engine, pattern=pattern, special_tokens=["<|e|>"])
        assert [*counts.items()] == [*reference.count_pieces(CORPUS, pattern, special).items()]


@ENGINES
def test_it_reads_as_a_mapping(engine):
    counts = made(["low lower", "low"], engine)
    assert dict(counts) == {b"low": 2, b" lower": 1}
    assert [*counts] == [b"low", b" lower"]
    assert (len(counts), counts[b"low"], counts.get(b"x"), b"low" in counts) == (2, 2, None, True)
    assert "low" not in counts and b"lo" not in counts
    assert counts.total() == 3
    with pytest.raises(KeyError, match="b'lo'"):
        counts[b"lo"]
    with pytest.raises(TypeError, match="a piece is bytes, not str"):
        counts["low"]
    data, ends, numbers = counts.arrays
    assert data.tobytes() == b"low lower"
    assert (ends.tolist(), numbers.tolist()) == ([3, 9], [2, 1])
    with pytest.raises(ValueError, match="read-only"):
        numbers[0] = 5
    assert repr(counts) == "<PieceCounts 2 pieces, pattern 'gpt2', special tokens []>"
    with pytest.raises(TypeError, match="unhashable"):
        hash(counts)


@ENGINES
def test_no_pieces(engine):
    counts = made(engine=engine)
    assert (len(counts), dict(counts), counts.total(), counts.most_common()) == (0, {}, 0, [])
    assert counts == made([], engine) == made(["", b""], engine)
    assert counts.record["documents"] == 0
    assert counts.prune(5) == counts


@ENGINES
def test_most_common(engine):
    counts = made("b a c b a d b", engine, pattern="words")
    assert counts.most_common() == [(b"b", 3), (b"a", 2), (b"c", 1), (b"d", 1)]
    assert counts.most_common(2) == [(b"b", 3), (b"a", 2)]
    assert counts.most_common(0) == []
    with pytest.raises(ValueError, match="n must be from 0"):
        counts.most_common(-1)


@ENGINES
def test_totals_beyond_63_bits(engine):
    counts = heavy({b"a": HIGHEST, b"b": HIGHEST, b"c": 1}, engine)
    assert counts.total() == 2**64 - 1
    assert counts.most_common(1) == [(b"a", HIGHEST)]


def test_equality():
    counts = made(["a b", "c"])
    assert counts == made(["a b", "c"]) == made(["a b", "c"], "reference")
    assert counts != made(["c", "a b"])
    assert counts != made(["a b", "c"], pattern="cl100k")
    assert counts != made(["a b", "c"], special_tokens=["x"])
    assert made(special_tokens=["x", "y"]) == made(special_tokens=["y", "x"])
    assert counts != dict(counts)


# Adding


@ENGINES
def test_adding_corpora(engine):
    counts = made("b a", engine)
    counts.add(["c a", "a"])
    assert [*counts.items()] == [(b"b", 1), (b" a", 2), (b"c", 1), (b"a", 1)]
    assert counts == made(["b a", "c a", "a"], engine)
    assert counts.record == made(["b a", "c a", "a"], engine).record
    before = copy.deepcopy(counts)
    for wrong in (["x", 1], ["x", "\ud800"], 5, {"a": 1}, counts):
        with pytest.raises((TypeError, UnicodeEncodeError)):
            counts.add(wrong)
        assert counts == before and counts.record == before.record


@pytest.mark.long
@ENGINES
@given(parts=st.lists(st.lists(texts("ab ") | st.text(max_size=5), max_size=3), max_size=4))
def test_sums(engine, parts):
    whole = made(itertools.chain(*parts), engine)
    total = made(engine=engine)
    for part in parts:
        counts = made(part, engine)
        joined = total + counts
        total.add(part)
        assert joined == total and joined.record == total.record
        assert counts == made(part, engine)  # as before
    assert total == whole and total.record == whole.record


def test_the_sum_keeps_the_order_of_the_first():
    total = made("d b") + made("b a c d")
    assert [*total] == [b"d", b" b", b"b", b" a", b" c", b" d"]


def test_what_cannot_be_added():
    counts = made("a")
    for other in (made("a", pattern=None), made("a", special_tokens=["x"])):
        with pytest.raises(ValueError, match="of different pieces: they cannot be added"):
            counts + other
    with pytest.raises(TypeError):
        counts + {b"a": 1}


@ENGINES
def test_sums_beyond_63_bits(engine):
    one, other = heavy({b"a": HIGHEST, b"b": 1}, engine), heavy({b"b": 1, b"a": 1}, engine)
    with pytest.raises(ValueError, match="the count of the piece b'a' would pass"):
        one + other
    with pytest.raises(ValueError, match="the count of the piece b'a' would pass"):
        one.add("b a a".replace(" ", "") and ["a"])
    assert dict(one) == {b"a": HIGHEST, b"b": 1}


@ENGINES
def test_pruning(engine):
    counts = made("a b a c longer-than-a-key b a", engine, pattern="words")
    assert counts.prune(1) is counts and len(counts) == 4
    assert "pruned" not in counts.record
    assert [*counts.prune(2).items()] == [(b"a", 3), (b"b", 2)]
    assert counts.record["pruned"] == 2
    assert (counts[b"a"], b"c" in counts) == (3, False)
    counts.add("c c")
    assert [*counts.items()] == [(b"a", 3), (b"b", 2), (b"c", 2)]
    for wrong, error in ((0, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="min_count must be"):
            counts.prune(wrong)


# The record


def test_records_join():
    documents = [b"%d" % number for number in range(7)]
    whole = Record()
    assert [*whole.watch(documents)] == documents
    for most in (None, 2, 100):
        for cut in range(8):
            record, other = Record(), Record(most)
            for document in documents[:cut]:
                record.add(document)
            for document in documents[cut:]:
                other.add(document)
            other = pickle.loads(pickle.dumps(other))
            record.join(other)
            assert (record.documents, record.bytes) == (7, 7)
            known = most != 2 or 7 - cut <= 2 or cut == 0
            assert (record.fingerprint == whole.fingerprint) == known
            assert (record.fingerprint is None) == (not known)
            if most != 2:
                assert record.plain() == whole.plain()


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_documents_are_hashed_aside(size, monkeypatch):
    monkeypatch.setattr(record, "HASHED_TOGETHER", size)
    documents = [b"", b"a", b"low lower", b"newest" * 9] * 5
    expected = Record()
    for document in documents:
        expected._add_digests(hashlib.sha256(document).digest())
    for aside in (False, True):
        with none_left(), begun() as threads:
            found = Record()
            assert [*found.watch(documents, aside=aside)] == documents
            assert found.plain() == {**expected.plain(), "bytes": sum(map(len, documents))}
            with pytest.raises(TypeError, match="document 3 must be"):
                [*Record().watch([*documents[:3], 5], aside=aside)]
            with pytest.raises(ZeroDivisionError), Record().adding(aside) as add:
                add(b"low" * 500)
                raise ZeroDivisionError
        assert bool(threads) == aside


def test_documents_in_parts_are_one():
    record, other = Record(), Record()
    record.add(b"ab", last=False)
    record.add(b"", last=False)
    record.add(b"c")
    other.add(b"abc")
    assert record.plain() == other.plain()


def test_of_many_documents_the_hashes_are_not_kept():
    record = Record()
    for _ in range(MOST_HASHES):
        record.add(b"")
    assert len(record.plain()["hashes"]) == MOST_HASHES
    record.add(b"")
    assert record.plain()["hashes"] is None
    assert len(record.fingerprint) == 64
    restored = pickle.loads(pickle.dumps(record))
    assert restored.plain() == record.plain()
    restored.join(Record())
    assert restored.plain() == record.plain()
    restored.add(b"")
    assert restored.fingerprint is None
    record.join(Record.unknown())
    assert record.plain() == dict.fromkeys(("documents", "bytes", "fingerprint", "hashes"))


# Files


@pytest.fixture
def paths(tmp_path):
    contents = [b"low lower\r\nnewest\n\nwidest", b"", b"low<|e|>\n", b"wide \xff low lower " * 9]
    for number, content in enumerate(contents):
        (tmp_path / str(number)).write_bytes(content)
    return [tmp_path / str(number) for number in range(len(contents))]


@ENGINES
@pytest.mark.parametrize("documents", ["whole", "line", "<|e|>", b"\n\n"])
@pytest.mark.parametrize("pattern", ["gpt2", "words", None, "[a-z]+"])
@pytest.mark.parametrize("block", [1, 7, 2**24])
def test_files(engine, documents, pattern, block, paths, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    listed = []
    for path in paths:
        data = path.read_bytes()
        if documents == "whole":
            listed.append(data)
        else:
            parts = data.split(
                b"\n"
                if documents == "line"
                else documents.encode()
                if isinstance(documents, str)
                else documents
            )
            parts = parts if parts[-1] else parts[:-1]
            listed += [p.removesuffix(b"\r") if documents == "line" else p for p in parts]
    options = {"pattern": pattern, "engine": engine, "special_tokens": ["w l"]}
    found = PieceCounts.from_files(paths, documents=documents, **options)
    expected = PieceCounts(listed, **options)
    assert found == expected
    assert found.record == expected.record
    one = PieceCounts.from_files(str(paths[0]), documents=documents, **options)
    one.add_files((path for path in paths[1:]), documents=documents)
    assert one == expected and one.record == expected.record


def test_open_files(paths):
    expected = PieceCounts.from_files(paths[0], pattern="gpt2")
    with open(paths[0], "rb") as file:
        assert PieceCounts.from_files(file, pattern="gpt2") == expected
    found = PieceCounts.from_files([io.BytesIO(paths[0].read_bytes())], pattern="gpt2")
    assert found == expected
    with pytest.raises(TypeError, match="workers need paths, but .* is an open file"):
        PieceCounts.from_files(io.BytesIO(b"a"), workers=1)


def test_files_that_cannot_be_read(paths, tmp_path, monkeypatch):
    counts = PieceCounts.from_files(paths, pattern="gpt2")
    before = copy.deepcopy(counts)
    with pytest.raises(FileNotFoundError, match="absent"):
        counts.add_files([paths[0], tmp_path / "absent"])
    monkeypatch.setattr(reading, "MOST_BYTES", 100)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 10)
    (tmp_path / "long").write_bytes(b"a" * 1000)
    with pytest.raises(ValueError, match="long: document 0 has no place where it could be cut"):
        counts.add_files([paths[0], tmp_path / "long"])
    with pytest.raises(TypeError, match="documents must be 'whole'"):
        counts.add_files(paths, documents=5)
    assert counts == before and counts.record == before.record


# Progress and warnings


@ENGINES
def test_progress_of_counting(engine, paths):
    def told(call):
        seen = []
        call(lambda done, total: seen.append((done, total)))
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        return seen[-1]

    corpus = ["low", "naïve", b"\xff"]
    assert told(lambda tell: made(corpus, engine, progress=tell)) == (10, 10)
    assert told(lambda tell: made("low", engine, progress=tell)) == (3, 3)
    assert told(lambda tell: made(iter(corpus), engine, progress=tell)) == (10, None)
    size = sum(path.stat().st_size for path in paths)
    assert told(
        lambda tell: PieceCounts.from_files(paths, pattern="gpt2", engine=engine, progress=tell)
    ) == (size, size)
    assert told(
        lambda tell: PieceCounts.from_files(
            paths, documents="line", pattern="gpt2", engine=engine, progress=tell
        )
    ) == (size, size)
    with ThreadPoolExecutor(2) as pool:
        assert told(
            lambda tell: PieceCounts.from_files(
                paths, pattern="gpt2", engine=engine, progress=tell, executor=pool
            )
        ) == (size, size)
        assert told(lambda tell: made(corpus, engine, progress=tell, executor=pool)) == (10, 10)


def test_progress_of_an_executor_tells_what_is_counted(monkeypatch):
    monkeypatch.setattr(count_work, "TASK_BYTES", 3)
    free, seen = threading.Event(), []

    class Slow(ThreadPoolExecutor):
        def submit(self, *task):
            assert not seen or free.is_set()
            return super().submit(lambda: (free.wait(5), task[0](*task[1:]))[1])

    with Slow(2) as pool:
        threading.Timer(0.05, free.set).start()
        made(["low"] * 9, progress=lambda *told: seen.append(told), executor=pool)
    assert seen == [(done, 27) for done in range(3, 28, 3)]


@ENGINES
def test_a_function_that_raises_stop_iteration(engine, paths):
    def stop(done, wanted):
        raise StopIteration

    counts = made("low low", engine)
    with ThreadPoolExecutor(1) as pool:
        for call in (
            lambda: made("low", engine, progress=stop),
            lambda: made("low", engine, progress=stop, executor=pool),
            lambda: PieceCounts.from_files(paths, engine=engine, progress=stop, executor=pool),
            lambda: Tokenizer.from_counts(counts, engine=engine, progress=stop),
        ):
            with pytest.raises(RuntimeError, match="progress is has raised StopIteration"):
                call()


@ENGINES
def test_progress_of_training(engine):
    seen = []
    Tokenizer(
        "low lower lowest " * 5,
        method="bpe",
        vocabulary_size=260,
        engine=engine,
        progress=lambda done, wanted: seen.append((done, wanted)),
    )
    assert seen[0] == (85, 85) and seen[-1] == (4, 4)


def test_wrong_progress():
    with pytest.raises(TypeError, match="progress must be a bool or a function, not int"):
        made("a", progress=5)


@pytest.mark.long
@ENGINES
def test_one_warning_for_giant_pieces(engine, tmp_path):
    giant = "a" * 70_000
    documents = ["low lower", giant[:66_000], giant, "b" * 70_000]
    message = "document 2 has a piece of 70000 bytes, which the pattern does not cut"
    for call in (
        lambda: made(documents, engine),
        lambda: made(engine=engine).add(documents),
        lambda: Tokenizer(
            documents, method="bpe", pattern="gpt2", engine=engine, vocabulary_size=257
        ),
    ):
        with pytest.warns(UserWarning, match=message) as warned:
            call()
        assert len(warned) == 1
        assert warned[0].filename == __file__
    (tmp_path / "a").write_text("low\nlow " + giant)
    with pytest.warns(UserWarning, match="a: document 1 has a piece of 70001 bytes"):
        PieceCounts.from_files([tmp_path / "a"], documents="line", pattern="gpt2", engine=engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(documents, engine, pattern=None)
        made([giant, "low " * 2_000_000], engine)  # little of the corpus


@ENGINES
def test_a_warning_that_is_an_error_comes_first(engine):
    counts = made("low", engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="a piece of 70000 bytes"):
            counts.add("a" * 70_000)
    assert counts == made("low", engine)
    assert counts.record == made("low", engine).record


def test_memory_that_is_bounded():
    text = " ".join(map(str, range(500_000)))
    for threads in (1, 2):
        with pytest.raises(MemoryError, match="more than memory_bytes=20000000"):
            made(text, pattern="words", memory_bytes=20_000_000, threads=threads)
        counts = made(text, pattern="words", memory_bytes=200_000_000, threads=threads)
        assert len(counts) == 500_000
    assert len(made("low", memory_bytes=1)) == 1  # nothing to speak of
    with pytest.raises(ValueError, match="memory_bytes must be from 1"):
        made("low", memory_bytes=0)


def parts_of_numbers():
    return [" ".join(map(str, range(first, first + 20_000))) for first in range(0, 100_000, 20_000)]


def added(counts):
    for part in parts_of_numbers():
        counts.add(part)


def joined(counts):
    for part in parts_of_numbers():
        counts += made(part, counts.settings.engine, pattern="words")


def by_workers(counts):
    with ThreadPoolExecutor(1) as pool:
        counts.add(parts_of_numbers(), executor=pool)


@ENGINES
@pytest.mark.parametrize("add", [added, joined, by_workers])
@pytest.mark.parametrize("copied", [False, True])
def test_memory_of_all_that_is_added(engine, add, copied, monkeypatch):
    monkeypatch.setattr(count_work, "TASK_DOCUMENTS", 1)
    counts = made(engine=engine, pattern="words", memory_bytes=4_000_000)
    counts.add("low")
    if copied:
        counts = pickle.loads(pickle.dumps(counts))
    with pytest.raises(MemoryError, match="more than memory_bytes=4000000"):
        add(counts)
    before = counts.total()
    assert before == counts.record["documents"] * 20_000 - (20_000 - 1)
    counts.add("low")
    assert counts.total() == before + 1


def test_memory_of_a_pattern_that_is_not_compiled():
    with pytest.raises(MemoryError, match="more than memory_bytes=4000000"):
        made(parts_of_numbers(), pattern="[0-9]+", memory_bytes=4_000_000)


@pytest.mark.long
def test_many_small_documents():
    lengths = [len(batch) for batch, _ in count_work.batches(iter([b""] * 600_000))]
    assert max(lengths) == count_work.TASK_DOCUMENTS
    waiting = []
    with Record().adding(aside=True) as add:
        for _ in range(200_000):
            add(b"")
            waiting.append(len(inspect.getclosurevars(add).nonlocals["waiting"]))
    assert max(waiting) < record.MOST_HASHED_TOGETHER


# Threads and interrupts


@ENGINES
@pytest.mark.parametrize("change", ["add", "+=", "prune"])
def test_threads_that_change_the_same_counts(engine, change):
    texts = [" ".join(f"w{i * 7 + k * 1000}" for i in range(2000)) for k in range(4)]
    parts = [made(text, engine, threads=1) for text in texts]
    counts = made("low", engine)
    errors = []

    def work(number):
        try:
            for _ in range(3):
                if change == "+=":
                    counts.__iadd__(parts[number])
                else:
                    counts.add(texts[number], threads=1)
                if change == "prune":
                    counts.prune(1)
                assert len(counts.arrays.ends) == len(counts.arrays.counts)
                assert counts[b"low"] == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    expected = Counter({b"low": 1})
    for part in parts * 3:
        expected.update(dict(part))
    assert dict(counts) == dict(expected)
    assert counts.record["documents"] == 13


@needs_alarms
@ENGINES
def test_an_interrupt_leaves_nothing_half_added(engine):
    size = 300_000 if engine == "fast" else 20_000
    one, other = (made(" ".join(f"{c}{i}" for i in range(size)), engine) for c in "ab")
    whole = one + made(engine=engine)
    start = time.process_time()
    whole += other
    taken = time.process_time() - start
    interrupted = 0
    for number in range(10):
        counts = one + made(engine=engine)
        try:
            with alarm(taken * (number + 1) / 12, KeyboardInterrupt, of_cpu=True):
                counts += other
        except KeyboardInterrupt:
            interrupted += 1
        done = whole if len(counts) == len(whole) else one
        assert counts == done
        assert counts.record["documents"] == done.record["documents"]
    assert interrupted


@ENGINES
def test_a_table_is_changed_by_who_knows_it(engine):
    counts = made("low", engine)
    table, about = counts._table, counts._table.about
    other = made("low lower", engine)._table
    for change in (table.add, table.replace):
        assert not change(other, object(), None)
        assert (len(table), table.get(b"low"), table.about is about) == (1, 1, True)
    assert table.add(other, about, "more")
    assert (len(table), table.get(b"low"), table.about) == (2, 2, "more")


@ENGINES
def test_counts_are_added_to_themselves(engine):
    counts = made("a b a", engine)
    counts += counts
    assert counts.most_common() == [(b"a", 2), (b" b", 2), (b" a", 2)]
    assert (counts.record["documents"], counts.record["bytes"]) == (2, 10)
    assert counts == made(["a b a"] * 2, engine)
    assert counts.record == made(["a b a"] * 2, engine).record


@ENGINES
def test_an_overflow_changes_nothing(engine):
    counts = heavy({b"a": 2**61}, engine)
    part = (np.frombuffer(b"a", np.uint8), np.array([1], np.uint64))
    counts._table.add_counts(*part, np.array([2**61], np.int64))
    with pytest.raises(ValueError, match="the count of the piece b'a' would pass"):
        counts += heavy({b"new": 5, b"a": 2**62}, engine)
    assert counts == heavy({b"a": 2**62}, engine)


def test_the_fingerprint_of_many_documents():
    documents = [b""] * (MOST_HASHES + 1)
    counts = made(documents, pattern=None)
    counts.add("e")
    expected = made([*documents, "e"], pattern=None)
    assert counts.record == expected.record
    assert expected.record["fingerprint"]


# Our own files


@ENGINES
@pytest.mark.parametrize("pattern", [None, "gpt2", "[a-z]+| ", "words"])
def test_saving(engine, pattern, tmp_path):
    counts = made(CORPUS, engine, pattern=pattern, special_tokens=["<|e|>", "low"])
    counts.save(tmp_path / "counts.npz")
    found = PieceCounts.load(tmp_path / "counts.npz", engine)
    assert found == counts
    assert (found.record, found.special_tokens) == (counts.record, counts.special_tokens)
    counts.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "counts.npz").read_bytes()
    with pytest.raises(FileExistsError):
        counts.save(tmp_path / "counts.npz")
    assert pickle.loads(pickle.dumps(counts)) == counts == copy.deepcopy(counts)


def test_heavy_counts_are_saved(tmp_path):
    counts = heavy({b"a": HIGHEST, b"b": 2**32 + 1}).prune(2**40)
    counts.save(tmp_path / "counts.npz")
    found = PieceCounts.load(tmp_path / "counts.npz")
    assert dict(found) == {b"a": HIGHEST} and found.record["pruned"] == 2**40
    empty = made()
    empty.save(tmp_path / "empty.npz")
    assert PieceCounts.load(tmp_path / "empty.npz") == empty


def test_damaged_files(tmp_path):
    made(CORPUS).save(tmp_path / "counts.npz")
    good = (tmp_path / "counts.npz").read_bytes()
    for number, place in enumerate(range(0, len(good), 11)):
        data = bytearray(good)
        data[place] ^= 4
        path = tmp_path / f"{number}.npz"
        path.write_bytes(data)
        try:
            found = PieceCounts.load(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:  # what zip repeats in its directory is not looked at
            assert found == made(CORPUS)
    for size in (0, 1, len(good) // 2, len(good) - 1):
        (tmp_path / "cut.npz").write_bytes(good[:size])
        with pytest.raises(ValueError, match="cut.npz: these are no counts that tokbpe saved"):
            PieceCounts.load(tmp_path / "cut.npz")


def rewritten(path, **changes):
    """A file of counts with other contents, whose checksum is right."""
    from tokbpe import count_files

    with np.load(path) as content:
        parts = {name: content[name] for name in content.files}
    about = json.loads(parts.pop("about").tobytes())
    for name, value in changes.items():
        (parts if name in parts else about)[name] = value
    del about["sha256"]
    about["sha256"] = count_files.digest(about, parts.values())
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    other = path.with_name("other.npz")
    np.savez(other, about=text, **parts)
    return other


RECORD = made("low").record


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version 2; this tokbpe reads 1"),
        ({"counts": np.array([1, 0], np.int64)}, "piece 1 has the count 0"),
        ({"counts": np.array([1], np.int64)}, "there are 2 pieces, but 1 counts"),
        ({"ends": np.array([3, 3], np.uint64)}, "piece 1 ends at 3, where it begins"),
        ({"ends": np.array([0, 9], np.uint64)}, "piece 0 ends at 0"),
        ({"ends": np.array([3, 8], np.uint64)}, "ends at 8, but there are 9 bytes"),
        ({"ends": np.array([3.0, 9.0])}, "ends must be an array of <u8"),
        ({"data": np.array([object()])}, "data must be an array of |u1 with one dimension$"),
        ({"ordered": "no"}, "other.npz: the field 'ordered': it must be true or false, not 'no'"),
        ({"pruned": "x"}, "the field 'pruned': it must be a whole number, not str"),
        ({"pruned": -1}, "the field 'pruned': it must be from 0"),
        ({"pattern": "gpt2"}, "the field 'pattern': "),
        ({"special_tokens": [3]}, "the field 'special_tokens': .* must be str, not int"),
        ({"record": []}, "the field 'record': it must be a mapping, not list"),
        ({"record": {"documents": 1}}, "the field 'record': it must have .*'hashes'"),
        ({"record": {**RECORD, "documents": "x"}}, "'record': documents must be a whole number"),
        ({"record": {**RECORD, "bytes": -5}}, "'record': bytes must be from 0"),
        ({"record": {**RECORD, "fingerprint": "zz"}}, "'record': 'zz' is no SHA-256"),
        ({"record": {**RECORD, "hashes": ["zz"]}}, "'record': 'zz' is no SHA-256"),
        ({"record": {**RECORD, "hashes": "zz"}}, "'record': hashes must be a list, not str"),
        ({"record": {**RECORD, "documents": 3}}, "'record': .* do not go together"),
        ({"other": 1}, "the facts must have .* not .*'other'"),
    ],
)
def test_files_that_hold_no_counts(changes, message, tmp_path):
    made(["low lower", "low"]).save(tmp_path / "counts.npz")
    with pytest.raises(ValueError, match=message):
        PieceCounts.load(rewritten(tmp_path / "counts.npz", **changes))


def test_other_files(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(3))
    np.savez(tmp_path / "others.npz", a=np.arange(3))
    (tmp_path / "text").write_text("low")
    (tmp_path / "list.npz").write_text("[1, 2]")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (2**50,)}
    )
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as file:
        file.writestr("about.npy", header.getvalue())
    with zipfile.ZipFile(tmp_path / "zip", "w") as file:
        file.writestr("about.npy", "low")
    deep = b"-" * 9000 + b"1"  # of which Python's parser takes more than it has
    with zipfile.ZipFile(tmp_path / "deep.npz", "w") as file:
        file.writestr("about.npy", b"\x93NUMPY\1\0" + len(deep).to_bytes(2, "little") + deep)
    for name in ("array.npy", "others.npz", "text", "zip", "list.npz", "huge.npz", "deep.npz"):
        with pytest.raises(ValueError, match=f"{name}: these are no counts that") as caught:
            PieceCounts.load(tmp_path / name)
        assert "pickle" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        PieceCounts.load(tmp_path / "absent")


# Learning


def same_training(corpus, counts, engine, **options):
    expected = Tokenizer(corpus, engine=engine, **options)
    options.pop("pattern", None)
    found = Tokenizer.from_counts(counts, engine=engine, **options)
    assert found == expected
    assert found.fingerprint() == expected.fingerprint()
    assert np.array_equal(found.merges, expected.merges)
    assert np.array_equal(found.merge_counts, expected.merge_counts)


@pytest.mark.long
@ENGINES
@given(
    corpus=st.lists(texts("ab ") | texts("aé<|e|>") | st.text(max_size=9), min_size=1, max_size=4),
    pattern=st.sampled_from([None, "gpt2", "cl100k", "[a-z]+| "]),
    tie_break=TIE_BREAKS,
    base=st.sampled_from(["bytes", "gpt2"]),
    special_ids=st.sampled_from(["base", "first", "end"]),
)
def test_learning_from_counts(engine, corpus, pattern, tie_break, base, special_ids):
    if not any(corpus):
        return
    options = {
        "method": "bpe",
        "pattern": pattern,
        "tie_break": tie_break,
        "base": base,
        "special_ids": special_ids,
        "special_tokens": ["<|e|>", "b a"],
        "reserved": ["EOS"],
    }
    counts = PieceCounts(corpus, pattern=pattern, special_tokens=["b a", "<|e|>"], engine=engine)
    for size in (None, 259, 263):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same_training(corpus, counts, engine, vocabulary_size=size, **options)


@pytest.mark.long
@ENGINES
@given(
    corpus=st.lists(texts("ab ") | st.text(max_size=9), min_size=1, max_size=4),
    tie_break=TIE_BREAKS,
)
def test_learning_words_from_counts(engine, corpus, tie_break):
    if not any(text.split() for text in corpus):
        return
    counts = PieceCounts(corpus, pattern="words", engine=engine)
    for size in (None, 3, 20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same_training(
                corpus, counts, engine, method="word", tie_break=tie_break, vocabulary_size=size
            )


def test_words_of_many_characters():
    """More symbols than 16 bits hold."""
    corpus = [" ".join(chr(code) + chr(code + 1) for code in range(0x4E00, 0x9F00))]
    corpus.append(" ".join(chr(code) + "a" for code in range(0x20000, 0x25000)))
    counts = PieceCounts(corpus, pattern="words")
    found = Tokenizer.from_counts(counts, method="word", vocabulary_size=10)
    symbols = sorted({*"".join(corpus)} - {" "}, key=str.encode)
    forms = [form for char in symbols for form in (char, char + " ")]
    assert found.vocab_size == 1 + len(forms) > 2**16
    assert [found.id_to_piece(id).decode() for id in (1, 2, len(forms))] == [
        forms[0],
        forms[1],
        forms[-1],
    ]
    assert found.decode(found.encode(corpus[0])) == corpus[0]


def test_special_tokens_of_counts():
    counts = made("a<|e|>b c", special_tokens=["<|e|>", "c"])
    assert Tokenizer.from_counts(counts).special_tokens == {"<|e|>": 256, "c": 257}
    assert Tokenizer.from_counts(counts, special_tokens=["c", "<|e|>"]).special_tokens == {
        "c": 256,
        "<|e|>": 257,
    }
    for wrong in ([], ["c"], ["c", "<|e|>", "d"]):
        with pytest.raises(ValueError, match="not those that were boundaries when the pieces"):
            Tokenizer.from_counts(counts, special_tokens=wrong)


def test_counts_that_are_not_learned_from():
    words = made("low lower", pattern="words")
    with pytest.raises(ValueError, match="<Pattern words> drops the text between its matches"):
        Tokenizer.from_counts(words)
    with pytest.raises(ValueError, match="the pattern of these counts is 'gpt2'"):
        Tokenizer.from_counts(made("low"), method="word")
    for method in ("byte", "char"):
        with pytest.raises(ValueError, match=f"the {method} method does not learn from counts"):
            Tokenizer.from_counts(made("low"), method=method)
    with pytest.raises(TypeError, match="counts must be PieceCounts, not dict"):
        Tokenizer.from_counts({b"low": 1})
    with pytest.raises(ValueError, match="holds no bytes to learn from"):
        Tokenizer.from_counts(made())
    with pytest.raises(UnicodeDecodeError, match=r"\(piece 1\)"):
        Tokenizer.from_counts(made([b"low \xff"], pattern="words"), method="word")
    with pytest.raises(ValueError, match="threads must be from 1"):
        Tokenizer.from_counts(made("low"), threads=0)
    with pytest.raises(TypeError, match="a corpus must be str"):
        Tokenizer(made("low"))


@ENGINES
def test_weights_of_64_bits(engine):
    for counts in ({b"cd": 10, b"ab": 2**31 + 5}, {b"cd": 1, b"ab": 2**32 + 1}):
        found = Tokenizer.from_counts(heavy(counts, engine), vocabulary_size=257, engine=engine)
        assert found.vocabulary[256] == b"ab"
        assert found.merge_counts.tolist() == [counts[b"ab"]]
    with pytest.raises(ValueError, match=r"could pass 2\*\*63 - 1"):
        Tokenizer.from_counts(heavy({b"ab": HIGHEST, b"cd": HIGHEST}, engine), engine=engine)


@ENGINES
@pytest.mark.parametrize("threads", [1, 2, None])
def test_threads_change_no_merges(engine, threads):
    random = Random(3)
    corpus = [" ".join(random.choices(["low", "lower", "newest", "wide", "é"], k=200))] * 3
    expected = Tokenizer(corpus, method="bpe", pattern="gpt2", vocabulary_size=270)
    found = Tokenizer(
        corpus, method="bpe", pattern="gpt2", vocabulary_size=270, engine=engine, threads=threads
    )
    assert found.fingerprint() == expected.fingerprint()
    more = found.extended(corpus, 273, threads=threads)
    assert more.fingerprint() == expected.extended(corpus, 273).fingerprint()


@ENGINES
def test_interrupted_training_is_kept(engine):
    def stop(done, wanted):
        if wanted == 44 and done >= 3:
            raise KeyboardInterrupt

    options = {"method": "bpe", "engine": engine, "progress": stop}
    with pytest.raises(KeyboardInterrupt):
        Tokenizer("low lower lowest " * 9, vocabulary_size=300, **options)
    with pytest.warns(UserWarning, match="the training was interrupted, or no other pair"):
        kept = Tokenizer(
            "low lower lowest " * 9, vocabulary_size=300, on_interrupt="keep", **options
        )
    assert 256 < kept.vocab_size < 300
    assert kept == Tokenizer("low lower lowest " * 9, method="bpe", vocabulary_size=kept.vocab_size)
    with pytest.raises(ValueError, match="on_interrupt must be one of"):
        Tokenizer("low", method="bpe", on_interrupt="stop")


@ENGINES
@pytest.mark.parametrize("place", ["lay_out", "warn_if_smaller", "check_symbols", "reporting"])
def test_merges_that_are_learned_are_kept(engine, place, monkeypatch):
    """Wherever an interrupt comes behind the last merge."""
    corpus = ["low lower lowest " * 9]
    options = {"method": "bpe", "vocabulary_size": 300, "engine": engine, "on_interrupt": "keep"}
    with pytest.warns(UserWarning):
        expected = Tokenizer(corpus, **options)
        longer = expected.extended(corpus, 310)
    interrupts = []

    def once(*arguments, **named):
        if not interrupts:
            interrupts.append(place)
            raise KeyboardInterrupt
        return work(*arguments, **named)

    @contextlib.contextmanager
    def interrupted_behind(progress, unit, **bar):
        yield None
        if unit == "merge":
            once()

    def work(*arguments, **named):
        return None

    if place == "reporting":
        monkeypatch.setattr(methods, place, interrupted_behind)
    else:
        work = getattr(methods, place)
        monkeypatch.setattr(methods, place, once)
        if place == "warn_if_smaller":
            monkeypatch.setattr(continuing, place, once)
    counts = PieceCounts(corpus, engine=engine)
    for call, wanted in (
        (lambda: Tokenizer(corpus, **options), expected),
        (lambda: Tokenizer.from_counts(counts, **options), expected),
        (lambda: expected.extended(corpus, 310, on_interrupt="keep"), longer),
    ):
        interrupts.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert call().fingerprint() == wanted.fingerprint()
        assert interrupts or (place == "lay_out" and wanted is longer)


# Executors


def test_results_come_in_order_and_few_wait():
    with ThreadPoolExecutor(2) as pool:
        assert [*count_work.in_order(pool, ((pow, n, 2) for n in range(50)))] == [
            n * n for n in range(50)
        ]
        with pytest.raises(TypeError):
            [*count_work.in_order(pool, [(pow, 1, 2), (pow, "a", 2), (pow, 1, 2)])]


@ENGINES
def test_threads_as_workers(engine, paths, monkeypatch):
    monkeypatch.setattr(count_work, "TASK_BYTES", 20)
    monkeypatch.setattr(count_work, "TASK_FILE_BYTES", 20)
    corpus = [f"low{n} lower{n % 7}" for n in range(200)]
    with ThreadPoolExecutor(2) as pool:
        found = made(corpus, engine, executor=pool)
        assert found == made(corpus, engine) and found.record == made(corpus, engine).record
        for documents in ("whole", "line"):
            expected = PieceCounts.from_files(paths, documents=documents, engine=engine)
            found = PieceCounts.from_files(paths, documents=documents, engine=engine, executor=pool)
            assert found == expected and found.record == expected.record
        with pytest.raises(TypeError, match="document 150 must be str"):
            made([*corpus[:150], 1], engine, executor=pool)
        with pytest.raises(ValueError, match="give one or the other"):
            PieceCounts.from_files(paths, executor=pool, workers=2)
        with pytest.warns(UserWarning, match="document 200 has a piece of 70000 bytes"):
            made([*corpus, "a" * 70_000], engine, executor=pool)
    with pytest.raises(ValueError, match="workers must be from 1"):
        PieceCounts.from_files(paths, workers=0)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda path: made("a", executor=3), TypeError, "executor must be .*Executor, not int"),
        (lambda path: made([], executor=3), TypeError, "executor must be .*Executor, not int"),
        (lambda path: made("a", executor=ThreadPoolExecutor), TypeError, "Executor, not <class"),
        (lambda path: PieceCounts.from_files(path, executor=3), TypeError, "Executor, not int"),
        (lambda path: PieceCounts.from_files([], executor=3), TypeError, "Executor, not int"),
        (
            lambda path: made("a", threads=0, executor=ThreadPoolExecutor(1)),
            ValueError,
            "threads must be from 1",
        ),
        (
            lambda path: PieceCounts.from_files(path, threads=0, workers=1),
            ValueError,
            "threads must be from 1",
        ),
        (lambda path: PieceCounts.from_files(None), TypeError, "path 0 must be .*, not NoneType"),
        (lambda path: PieceCounts.from_files(5), TypeError, "path 0 must be a path or an open"),
        (lambda path: PieceCounts.from_files([path, None]), TypeError, "path 1 must be"),
        (lambda path: PieceCounts.from_files([path, "a\0"]), ValueError, "path 1, 'a.*null byte"),
        (
            lambda path: made("a") + made("a", pattern=None, special_tokens=["x"]),
            ValueError,
            "^counts of pattern 'gpt2', special tokens \\[\\] and of pattern None, special tokens",
        ),
    ],
    ids=itertools.count(),
)
def test_wrong_arguments(call, kind, message, paths):
    with pytest.raises(kind, match=message):
        call(paths[0])


def test_damaged_files_of_gzip(tmp_path):
    path = tmp_path / "text.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"low lower " * 10_000)
    good = path.read_bytes()
    for place, data in ((-6, None), (30, None), (None, good[:-30])):
        if data is None:
            data = bytearray(good)
            data[place] ^= 3
        path.write_bytes(data)
        with gzip.open(path) as file, pytest.raises(OSError, match=r"text\.gz"):
            PieceCounts.from_files(file)


def test_counter_as_oracle():
    random = Random(1)
    words = [f"w{random.randrange(300)}" for _ in range(5000)]
    assert dict(made(" ".join(words), pattern="words")) == {
        word.encode(): count for word, count in Counter(words).items()
    }
