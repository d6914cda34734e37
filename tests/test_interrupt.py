"""Ctrl-C is answered in the middle of the compiled engine's work, within a second."""

import os
import time
import traceback
from functools import partial
from itertools import repeat

import numpy as np
import pytest

from alarms import Stopped, alarm, needs_alarms
from engine_threads import none_left
from tokbpe import PieceCounts, StreamedCorpus, Tokenizer, fast, write_shards
from tokbpe.fast import build

BYTES = [bytes([byte]) for byte in range(256)]
# In seconds of work, of which there are as many on a busy machine. A second is promised; each of
# what is done takes more if nobody stops it, and for each loop without a look at signals the test
# must fail. Builds with checks of their own are slower and promise nothing.
ALARM = 0.2
PROMPT = 6 if build.facts()["checked"] or build.facts()["sanitizer"] else 0.6
AGAIN = 1

# An alarm may come while Python runs a callback of its own, such as that of a thread that ends,
# which ignores it; so it comes again. What compiled functions lose is an error as elsewhere.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function:pytest.PytestUnraisableExceptionWarning"
)


def noise(size):
    """Text of four letters in which nothing repeats for long."""
    number, letters = 1, bytearray()
    while len(letters) < 1 << 16:
        number = (number * 6364136223846793005 + 1442695040888963407) % 2**64
        letters += bytes(97 + (number >> shift & 3) for shift in range(32, 64, 2))
    return bytes(letters) * (size >> 16)


# What is done, with all that it needs made before the alarm is set.


def long_training():
    return partial(fast.train, [noise(60_000_000)], None, BYTES, 1_000_000, 1)


def long_training_by_threads():
    return partial(fast.train, [noise(60_000_000)], None, BYTES, 1_000_000, 1, threads=2)


def training_on_many_rows():
    return partial(fast.train, [b"abcd"] * 20_000_000, None, BYTES, 10)


def long_splitting():
    fast.split("a", "cl100k")  # the first time it makes its tables, in Python
    return partial(fast.split, noise(80_000_000).replace(b"a", b" "), "cl100k")


def long_count_of_pairs():
    return partial(fast.count_pairs, [noise(150_000_000)], [1])


def long_counting():
    return partial(fast.count_pieces, [noise(1_000_000).replace(b"a", b" ")] * 2000, "cl100k")


def long_encoding():
    merges, _ = fast.train([noise(1_000_000)], None, BYTES, 200)
    return partial(fast.encode, noise(80_000_000), fast.encoding_table(BYTES, merges))


def long_encoding_of_pieces():
    merges, _ = fast.train([noise(1_000_000)], None, BYTES, 2000)
    text = noise(1_000_000).replace(b"a", b" ") * 250
    return partial(fast.encode, text, fast.encoding_table(BYTES, merges, "cl100k"))


def long_decoding():
    return partial(fast.decode, repeat(97, 500_000_000), fast.decoding_table(BYTES))


def long_search_for_special_tokens():
    # Each of these letters ends a spelling, which never begins well.
    return partial(fast.cut_special, b"b" * 300_000_000, {b"a" + b"b" * 5000: 1})


def long_white_space():
    table = fast.special_table({b"<e>": 1}, {b"<e>": ("rstrip",)})
    return partial(fast.cut_special, b"<e>" + b" " * 300_000_000, table)


def many_special_tokens():
    return partial(fast.encode, "<e>" * 60_000_000, fast.encoding_table(BYTES, []), {b"<e>": 1})


def stopped(call):
    """The error by which some work is stopped, and promptly in one of three times: a busy machine
    can only make it later."""
    for _ in range(3):
        start = time.process_time()
        with pytest.raises(Stopped) as raised, alarm(ALARM, again=AGAIN, of_cpu=True):
            call()
        taken = time.process_time() - start
        if taken < ALARM + PROMPT:
            break
    assert taken < ALARM + PROMPT
    return raised


@needs_alarms
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_keeps_what_was_learned(threads):
    """Wherever the training is: what is returned is its beginning."""
    text = [noise(40_000_000)]
    for delay in (0.02, 0.05, 0.08, 0.11, ALARM):
        with alarm(delay, KeyboardInterrupt, AGAIN):
            merges, counts = fast.train(
                text, None, BYTES, 1_000_000, 1, threads=threads, on_interrupt="keep"
            )
        again, same_counts = fast.train(text, None, BYTES, len(merges), 1)
        assert merges.tolist() == again.tolist()
        assert counts.tolist() == same_counts.tolist()


@needs_alarms
@pytest.mark.parametrize(
    "work",
    [
        long_training,
        long_training_by_threads,
        training_on_many_rows,
        long_splitting,
        long_count_of_pairs,
        long_counting,
        long_encoding,
        long_encoding_of_pieces,
        long_decoding,
        long_search_for_special_tokens,
        long_white_space,
        many_special_tokens,
    ],
)
def test_work_is_interrupted(work):
    """In the middle of compiled code, or of a check in Python that this calls."""
    call = work()
    with none_left():
        raised = stopped(call)
    # Before the alarm's own; threads are begun, and waited for, by Python code in between.
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(raised.tb)][:-1]
    places = [name for name in files if not name.endswith("threads.py")]
    assert any(name.endswith(".pyx") for name in places[-3:]), places


# A tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    text = noise(100_000).replace(b"a", b" ")
    return Tokenizer(text, method="bpe", vocabulary_size=1000, pattern="cl100k")


@needs_alarms
@pytest.mark.parametrize(
    "work",
    [
        lambda t, text: partial(t.encode_batch, [text] * 200, threads=2),
        lambda t, text: partial(t.encode_batch_arrays, [text] * 200, threads=1),
        lambda t, text: partial(t.encode_batch_arrays, [text] * 200, threads=2),
        lambda t, text: partial(t.encode_array, text * 80, threads=2),
        lambda t, text: partial(t.count, text * 80),
        lambda t, text: partial(t.count_batch, [text] * 200, threads=2),
        lambda t, text: partial(t.encode_bytes_with_offsets, text * 40),
        lambda t, text: partial(t.usage, [text] * 200),
        lambda t, text: partial(t.decode, np.broadcast_to(np.uint32(97), 150_000_000)),
    ],
    ids=[
        "batch",
        "batch_arrays",
        "batch_arrays_by_threads",
        "array_by_threads",
        "count",
        "count_batch",
        "offsets",
        "usage",
        "decode",
    ],
)
def test_work_of_a_tokenizer_is_interrupted(work, tokenizer):
    tokenizer = Tokenizer.from_state(tokenizer.state())
    tokenizer.cache_bytes = 0  # less text takes long enough
    call = work(tokenizer, noise(1_000_000).replace(b"a", b" "))
    with none_left():
        stopped(call)


# Files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of many files, all of which are one."""
    folder = tmp_path_factory.mktemp("interrupted") / "in"
    folder.mkdir()
    (folder / "0.txt").write_bytes(noise(16_000_000).replace(b"a", b" "))
    for number in range(1, 100):
        os.link(folder / "0.txt", folder / f"{number}.txt")
    return folder


@needs_alarms
@pytest.mark.parametrize(
    "work",
    [
        lambda t, files: PieceCounts.from_files([*files.iterdir()], pattern="cl100k"),
        lambda t, files: Tokenizer(StreamedCorpus.from_files(files), method="bpe"),
        lambda t, files: t.encode_corpus(StreamedCorpus.from_files(files)),
        lambda t, files: [len(ids) for path in files.iterdir() for ids in t.encode_file(path)],
        lambda t, files: write_shards(files, t, files.parent / "out", threads=1),
        lambda t, files: write_shards(files, t, files.parent / "out", threads=2),
    ],
    ids=["count", "train", "encode_corpus", "encode_file", "shards", "shards_by_threads"],
)
def test_work_on_files_is_interrupted(work, tokenizer, folder):
    with none_left():
        stopped(lambda: work(tokenizer, folder))
    assert os.listdir(folder.parent) == ["in"]
