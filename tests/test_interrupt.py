"""Ctrl-C is answered in the middle of the compiled engine's work."""

import threading
import time

import pytest

from alarms import Stopped, alarm, needs_alarms
from tokbpe import fast

BYTES = [bytes([byte]) for byte in range(256)]
# Each takes seconds if nobody stops it. The bound on the answer is far above what is promised
# (a second), so that it fails for a loop without a look at signals and not for a slow machine.
ALARM, PROMPT = 0.2, 10
AGAIN = 1  # seconds

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


def long_training():
    fast.train([noise(40_000_000)], None, BYTES, 1_000_000, 1)


def long_training_by_threads():
    fast.train([noise(60_000_000)], None, BYTES, 1_000_000, 1, threads=2)


def long_counting():
    fast.count_pieces([noise(1_000_000).replace(b"a", b" ")] * 600, "cl100k")


def long_encoding():
    merges, _ = fast.train([noise(1_000_000)], None, BYTES, 200)
    fast.encode(noise(60_000_000), fast.encoding_table(BYTES, merges))


def long_encoding_of_pieces():
    merges, _ = fast.train([noise(1_000_000)], None, BYTES, 2000)
    fast.encode(
        noise(1_000_000).replace(b"a", b" ") * 100, fast.encoding_table(BYTES, merges, "cl100k")
    )


def long_decoding():
    table = fast.decoding_table(BYTES)
    ids = [97] * 1_000_000
    fast.decode((id for _ in range(1000) for id in ids), table)


def long_search_for_special_tokens():
    # Each of these letters ends a spelling, which never begins well.
    fast.cut_special(b"b" * 200_000_000, {b"a" + b"b" * 5000: 1})


def long_white_space():
    table = fast.special_table({b"<e>": 1}, {b"<e>": ("rstrip",)})
    fast.cut_special(b"<e>" + b" " * 200_000_000, table)


def many_special_tokens():
    fast.encode("<e>" * 60_000_000, fast.encoding_table(BYTES, []), {b"<e>": 1})


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
    threads = threading.active_count()
    start = time.process_time()
    with pytest.raises(Stopped), alarm(ALARM, again=AGAIN):
        work()
    assert time.process_time() - start < ALARM + PROMPT
    assert threading.active_count() == threads
