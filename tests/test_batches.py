"""Batches, arrays and threads of the compiled engine: the same ids as `encode` gives one by one."""

import _thread
import time
from random import Random

import numpy as np
import pytest

from tokbpe import fast
from tokbpe.fast.groups import THREAD_TEXT_SIZE

BYTES = tuple(bytes([byte]) for byte in range(256))
PIECES = (*BYTES, b"th", b"the", b" a", b"in", b" the", b"  ", b"\xc3\xa9")
WORDS = ["the", "thing", "a", "in", "it's", "été", "42", "  ", "\n", "<e>", "<e", "日本", "x!"]


def table(pattern="cl100k", pieces=PIECES):
    nothing = np.empty((0, 2), np.uint32)
    return fast.encoding_table(pieces, nothing, pattern, None, "byte", None, "rank_by_piece", True)


def text(size, seed=0):
    """About so many characters."""
    random = Random(seed)
    parts = random.choices(WORDS, k=size // 4)
    return "".join(part + random.choice(["", " ", " "]) for part in parts)


SPECIAL = fast.special_table({b"<e>": 1000})
# One large text, many small ones, some of each, nothing.
BATCHES = {
    "one": [text(2 * THREAD_TEXT_SIZE)],
    "many": [text(size, size) for size in range(1500)],
    "both": [text(5), text(2 * THREAD_TEXT_SIZE), "", text(300_000, 2), text(9)],
    "bytes": [b"\xff" + text(400_000).encode() + b"\xc3", memoryview(b"the thing"), bytearray(b"")],
    "empty": ["", ""],
    "none": [],
}


@pytest.mark.core
@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("special", [None, SPECIAL])
@pytest.mark.parametrize("pattern", ["cl100k", "gpt2", "deepseek_v3", None, r"\w+|\W+"])
def test_batches_are_what_each_text_is(name, special, pattern):
    texts = BATCHES[name]
    if pattern != "cl100k":  # the cuts are not tested again
        texts = [part[:20_000] for part in texts[:200]]
    alone = table(pattern)
    rows = [fast.encode(part, alone, special) for part in texts]
    framed = [[7, 8, *row, 9] for row in rows]
    for threads in (1, 3):
        found = table(pattern)
        arguments = {"before": [7, 8], "behind": [9], "threads": threads}
        assert fast.encode_batch(texts, found, special, threads=threads) == rows
        assert fast.encode_batch(texts, found, special, **arguments) == framed
        for dtype in ("uint32", "uint16"):
            ids, offsets = fast.encode_batch_arrays(texts, found, special, dtype=dtype, **arguments)
            assert ids.dtype == dtype and offsets.dtype == np.uint64
            assert offsets.tolist() == np.cumsum([0, *map(len, framed)]).tolist()
            assert ids.tolist() == [id for row in framed for id in row]
        counts = fast.count_batch(texts, found, special, threads=threads)
        assert counts.dtype == np.uint64
        assert counts.tolist() == [len(row) for row in rows]
        for part, row in zip(texts[:3], rows):
            ids = fast.encode_array(part, found, special, threads=threads)
            assert ids.dtype == np.uint32 and ids.flags.writeable
            assert ids.tolist() == row


@pytest.mark.core
def test_into_a_buffer():
    found = table()
    ids = fast.encode("the thing", found)
    for dtype in (np.uint32, np.uint16):
        out = np.full(len(ids) + 2, 7, dtype)
        assert fast.encode_into("the thing", found, out) == len(ids)
        assert out.tolist() == [*ids, 7, 7]
        assert fast.encode_into("the thing", found, out[: len(ids)]) == len(ids)
        with pytest.raises(ValueError, match=rf"has {len(ids)} ids, .* room for {len(ids) - 1}"):
            fast.encode_into("the thing", found, out[: len(ids) - 1])
        assert fast.encode_into("", found, out[:0]) == 0
    for wrong, error in [
        (np.zeros(9, np.int64), TypeError),
        (np.zeros(9, [("id", "u4")]), TypeError),
        (np.zeros((3, 3), np.uint32), ValueError),
        (np.zeros(18, np.uint32)[::2], ValueError),
        (np.frombuffer(bytes(40), np.uint32), ValueError),
        ([0] * 9, TypeError),
    ]:
        with pytest.raises(error, match="`out`"):
            fast.encode_into("the thing", found, wrong)


@pytest.mark.core
def test_ids_that_are_too_large():
    found = table(pieces=(*BYTES, *[None] * 70_000, b"th"))
    out = np.zeros(9, np.uint16)
    with pytest.raises(ValueError, match="id 70256 is too large for uint16"):
        fast.encode_into("a th", found, out)
    assert not out.any()
    with pytest.raises(ValueError, match="text 1: id 70256 is too large for uint16"):
        fast.encode_batch_arrays(["a", "a th", "a"], found, dtype="uint16")
    for dtype in ("int32", "uint8", 7, "x"):
        with pytest.raises(ValueError, match="dtype must be 'uint16' or 'uint32'"):
            fast.encode_batch_arrays(["a"], found, dtype=dtype)


@pytest.mark.core
@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_error_counts(threads):
    """Whichever thread meets it."""
    pieces = tuple(bytes([byte]) for byte in range(256) if byte not in b"Z#")
    found = table(pieces=pieces)
    before = _thread._count()
    texts = ["the thing " * 20_000] * 9
    texts[3] = texts[3] + "Z"
    texts[7] = "#"
    for function in (fast.encode_batch, fast.encode_batch_arrays, fast.count_batch):
        with pytest.raises(ValueError, match="text 3: byte 0x5a at byte position 200000 "):
            function(texts, found, threads=threads)
        with pytest.raises(UnicodeEncodeError, match=r"\(text 1\)"):
            function(["a", "\ud800"], found, threads=threads)
        with pytest.raises(TypeError, match="text 1: a document must be str or bytes, not int"):
            function(["a", 5], found, threads=threads)
        with pytest.raises(ValueError, match="threads must be"):
            function(["a"], found, threads=0)
    with pytest.raises(ValueError, match="^byte 0x5a at byte position 200000 "):
        fast.encode_array(texts[3] * 3, found, threads=threads)
    for _ in range(1000):
        if _thread._count() == before:
            break
        time.sleep(0.01)  # a thread that has nothing more to do ends soon
    assert _thread._count() == before


@pytest.mark.core
def test_arrays_keep_their_ids():
    """Whatever is encoded later."""
    found = table()
    arrays = [fast.encode_array(text(60_000, seed), found) for seed in range(5)]
    for seed, ids in enumerate(arrays):
        assert ids.tolist() == fast.encode(text(60_000, seed), found)
        ids[:] = 0


@pytest.mark.core
@pytest.mark.parametrize("limit", [0, 500_000, 3_000_000, 1 << 25])
def test_the_limit_of_the_caches(limit):
    found = table()
    found.cache_limit = limit
    random = Random(1)
    for _attempt in range(4):
        noise = " ".join("".join(random.choices("abcdefghij", k=9)) for _ in range(20_000))
        ids = fast.encode(noise, found)
        assert found.cache_size <= limit
        assert fast.encode_batch([noise] * 3, found, threads=3) == [ids] * 3
        assert found.cache_size <= limit
    assert (found.cache_size > 0) == (limit > 0)


@pytest.mark.core
def test_caches_that_are_cleared():
    found = table()
    noise = text(200_000)
    ids = fast.encode(noise, found)
    fast.encode_batch([noise] * 4, found, threads=3)
    assert found.memory() >= found.cache_size > 0
    found.clear_cache()
    assert found.memory() == found.cache_size == 0
    assert fast.encode(noise, found) == ids


@pytest.mark.core
def test_raw_text_is_cut_too():
    """One piece is encoded by several threads, cut where no merge crosses."""
    raw = text(3 * THREAD_TEXT_SIZE)
    nothing = np.empty((0, 2), np.uint32)
    found = fast.encoding_table(PIECES, nothing, None, None, "byte", None, "rank_by_piece")
    ids = fast.encode(raw, found)
    assert fast.encode_array(raw, found, threads=3).tolist() == ids
    assert fast.encode_array(raw, found, SPECIAL, threads=3).tolist() == fast.encode(
        raw, found, SPECIAL
    )


@pytest.mark.core
def test_threads_that_cannot_be_had(monkeypatch):
    """The calling one does the work then."""
    found = table()
    large = text(5 * THREAD_TEXT_SIZE)
    ids = fast.encode(large, found)

    def start(function, arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", start)
    assert fast.encode_array(large, found, threads=4).tolist() == ids


@pytest.mark.core
def test_frames_are_ids():
    for wrong in (5, "7", b"7"):
        with pytest.raises(TypeError, match="before must be an iterable of ids, not "):
            fast.encode_batch(["the"], table(), before=wrong)
