"""Threads, of a call and of the caller: the same ids, and nothing left behind."""

import _thread
import errno
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from engine_threads import begun, none_left
from tokbpe import PieceCounts, StreamedCorpus, Tokenizer, write_shards
from tokbpe.fast.groups import THREAD_TEXT_SIZE

core = pytest.mark.core

WORDS = [
    "low",
    "lower",
    "newest",
    "widest",
    "it's",
    "naïve",
    "42",
    "你好",
    "\n",
    "  ",
    "<e>",
    "e\u0301",
]
CORPUS = " ".join(WORDS * 3)
COUNTS = [1, 2, 3, 8, None]


@cache
def made(normalizer=None):
    tokenizer = Tokenizer(
        CORPUS,
        method="bpe",
        vocabulary_size=285,
        pattern="qwen2",
        special_tokens=["<e>"],
        reserved=["BOS", "EOS"],
    )
    return Tokenizer.from_vocabulary(replace(tokenizer._vocabulary, normalizer=normalizer))


def text(size, seed=0):
    """At least so many bytes."""
    random = Random(seed)
    words = random.choices(WORDS, k=2000)
    part = "".join(word + random.choice(["", " ", " "]) for word in words)
    return part * (1 + size // len(part.encode()))


TEXTS = {
    "one": [text(5 * THREAD_TEXT_SIZE)],
    "many": [text(9000, seed)[: 50 * seed] for seed in range(200)],
    "both": [
        text(3 * THREAD_TEXT_SIZE),
        "",
        "low",
        text(2 * THREAD_TEXT_SIZE, 1).encode(),
        b"\xff",
    ],
    "none": [],
}
OPTIONS = {"allowed_special": "all", "bos": True, "eos": True}


# Threads of a call


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("normalizer", [pytest.param(None, marks=core), "NFC"])
def test_threads_change_nothing(texts, normalizer):
    tokenizer = made(normalizer)
    documents = TEXTS[texts]
    rows = [tokenizer.encode_array(part, threads=1, **OPTIONS).tolist() for part in documents]
    counts = [tokenizer.count(part, allowed_special="all") for part in documents]
    for threads in COUNTS if normalizer is None else [2]:
        with none_left(), begun() as others:
            assert tokenizer.encode_batch(documents, threads=threads, **OPTIONS) == rows
            ids, offsets = tokenizer.encode_batch_arrays(documents, threads=threads, **OPTIONS)
            assert offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
            assert ids.tolist() == [id for row in rows for id in row]
            found = tokenizer.count_batch(documents, allowed_special="all", threads=threads)
            assert found.tolist() == counts
            for part, row in zip(documents[:1], rows):
                assert tokenizer.encode_array(part, threads=threads, **OPTIONS).tolist() == row
        assert threads is None or bool(others) == (threads > 1 and texts != "none")


def test_threads_of_a_file(tmp_path):
    tokenizer = made()
    (tmp_path / "file").write_bytes(text(6 * THREAD_TEXT_SIZE).encode())
    expected = tokenizer.encode_array((tmp_path / "file").read_bytes(), threads=1)
    for threads in COUNTS:
        for size in (2**20, 2**24):
            found = tokenizer.encode_file(tmp_path / "file", threads=threads, block_bytes=size)
            assert np.array_equal(np.concatenate([ids for ids, _ in found]), expected)


@pytest.mark.parametrize(
    ("threads", "error"),
    [(0, ValueError), (-1, ValueError), (2**40, ValueError), (1.0, TypeError), (True, TypeError)],
)
def test_numbers_of_threads_that_are_none(threads, error):
    tokenizer = made()
    for call in (
        lambda: tokenizer.encode_array("low", threads=threads),
        lambda: tokenizer.encode_batch(["low"], threads=threads),
        lambda: tokenizer.encode_batch_arrays([], threads=threads),
        lambda: tokenizer.count_batch(["low"], threads=threads),
        lambda: tokenizer.encode_file("absent", threads=threads),
    ):
        with pytest.raises(error, match="threads must be"):
            call()


def test_whatever_the_engine_threads_are_checked():
    tokenizer = Tokenizer("low", engine="reference")
    with pytest.raises(ValueError, match="threads must be from 1 to"):
        tokenizer.encode_array("low", threads=0)
    assert tokenizer.encode_batch(["low"], threads=2) == [tokenizer.encode("low")]


@pytest.mark.parametrize(
    "call",
    [
        lambda t, text: t.encode_array(text, threads=1),
        lambda t, text: t.encode_batch([text], threads=1),
        lambda t, text: t.encode_batch_arrays([text], threads=1),
        lambda t, text: t.count_batch([text], threads=1),
    ],
    ids=["array", "batch", "batch_arrays", "count_batch"],
)
def test_others_work_meanwhile(call):
    """Who holds the GIL for all of a call makes every other thread wait as long."""
    tokenizer = Tokenizer.from_bytes()
    words = "low lower lowest " * 500_000

    def longest_wait():
        """Of another thread, as a part of the call."""
        moments, ended = [], threading.Event()

        def note():
            while not ended.wait(0.001):
                moments.append(time.perf_counter())

        with ThreadPoolExecutor(1) as pool:
            pool.submit(note)
            try:
                start = time.perf_counter()
                call(tokenizer, words)
                end = time.perf_counter()
            finally:
                ended.set()
        within = [start, *(moment for moment in moments if start < moment < end), end]
        return max(later - earlier for earlier, later in pairwise(within)) / (end - start)

    assert any(longest_wait() < 0.5 for _ in range(20))  # a busy machine can only make it longer


# Where there are no threads


def test_work_that_begins_while_the_interpreter_ends(tmp_path):
    Tokenizer("low lower", method="bpe", vocabulary_size=258).save(tmp_path / "tokenizer")
    code = (
        "import sys, threading, time\n"
        "from tokbpe import Corpus, Tokenizer, write_shards\n"
        "tokenizer = Tokenizer.load(sys.argv[1])\n"
        "def work():\n"
        "    threading.main_thread().join()\n"
        "    time.sleep(0.2)  # until it waits for this thread\n"
        "    shards = write_shards(Corpus(['low']), tokenizer, sys.argv[2], threads=2)\n"
        "    print(shards[:].tolist(), flush=True)\n"
        "threading.Thread(target=work).start()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "tokenizer"), str(tmp_path / "out")],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    assert (ended.stderr, ended.stdout) == ("", "[257]\n")


def no_thread_to_be_had(*arguments, **options):
    raise RuntimeError("can't start new thread")


def test_no_workers_can_be_started(monkeypatch, tmp_path):
    path = tmp_path / "a"
    path.write_text("low")
    monkeypatch.setattr(threading.Thread, "start", no_thread_to_be_had)
    message = r"no workers can be started \(can't start new thread\): work without them"
    with pytest.raises(OSError, match=message) as raised:
        PieceCounts.from_files(path, workers=2)
    assert raised.value.errno == errno.EAGAIN


def test_training_and_shards_without_threads(monkeypatch, tmp_path):
    monkeypatch.setattr(_thread, "start_new_thread", no_thread_to_be_had)
    trained = Tokenizer([CORPUS] * 9, method="bpe", vocabulary_size=280, threads=3)
    shards = write_shards(StreamedCorpus(TEXTS["many"]), trained, tmp_path / "shards", threads=3)
    monkeypatch.undo()
    assert trained == Tokenizer([CORPUS] * 9, method="bpe", vocabulary_size=280, threads=1)
    assert shards[:].tolist() == [id for part in TEXTS["many"] for id in trained.encode(part)]


# Threads of the caller


@core
@pytest.mark.parametrize("limit", [0, 2**17, 2**26])
def test_eight_threads_share_a_tokenizer(limit):
    """They meet while its table is warmed up, and while caches are cleared and limited."""
    tokenizer = Tokenizer(
        CORPUS, method="bpe", vocabulary_size=285, pattern="cl100k", cache_bytes=limit
    )
    texts = [text(40_000, seed) for seed in range(8)]
    other = Tokenizer.from_state(tokenizer.state())
    expected = [other.encode(part) for part in texts]
    ready = threading.Barrier(8)

    def work(number):
        ready.wait()
        part, ids = texts[number], expected[number]
        out = np.zeros(len(ids), np.uint16)
        for turn in range(6):
            assert tokenizer.encode(part) == ids
            assert tokenizer.encode_array(part, threads=2).tolist() == ids
            assert tokenizer.encode_into(part.encode(), out) == len(ids)
            assert out.tolist() == ids
            assert tokenizer.count(part) == len(ids)
            assert tokenizer.encode_batch([part, "low", part], threads=2)[2] == ids
            if number == turn:
                tokenizer.clear_cache()
            if number == turn + 2:
                tokenizer.cache_bytes = limit
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert tokenizer.cache_bytes == limit
    tokenizer.clear_cache()
    assert tokenizer.cache_used == 0


@core
def test_closing_while_batches_are_encoded():
    tokenizer = Tokenizer.from_state(made().state())
    expected = tokenizer.encode_batch(TEXTS["many"])
    started = threading.Barrier(4)

    def work():
        started.wait()
        for _ in range(1000):
            try:
                assert tokenizer.encode_batch(TEXTS["many"], threads=2) == expected
            except ValueError as error:
                return str(error)
        return None

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(work) for _ in range(3)]
        started.wait()
        tokenizer.close()
        assert {future.result(60) for future in futures} == {"this tokenizer is closed"}


# Processes


def encoded(tokenizer):
    return tokenizer.encode_array(TEXTS["one"][0], threads=2).tolist()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are forked")
def test_a_fork_after_threads():
    tokenizer = made()
    expected = encoded(tokenizer)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for found in pool.map(encoded, [tokenizer] * 2, timeout=60):
            assert found == expected


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are forked")
def test_a_fork_while_threads_encode():
    """What another thread holds at the moment of a fork stays out of the child's way."""
    tokenizer = made()
    expected = encoded(tokenizer)
    going = True

    def work():
        while going:
            encoded(tokenizer)

    with ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(work) for _ in range(2)]
        try:
            for _ in range(5):
                process = os.fork()
                if process == 0:
                    os._exit(0 if encoded(tokenizer) == expected else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        finally:
            going = False
        for future in busy:
            future.result(60)
