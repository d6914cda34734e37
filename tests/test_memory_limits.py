"""A process that may have only so much memory: what it does ends well, or in a MemoryError, and
what it has written is complete or not there.

TOKBPE_LIMITS: how many limits are tried of each operation, between what Python and NumPy have taken
and what the operation needs; 8 are a sample. By hand, since what else takes memory then is another
thing in each environment.
"""

import os
import sys

import numpy as np
import pytest

from test_python_allocations import in_a_process
from tokbpe import PieceCounts, Shards, StreamedCorpus, Tokenizer, write_shards

resource = pytest.importorskip("resource", reason="limits of POSIX")
pytestmark = [
    pytest.mark.skipif(
        "TOKBPE_LIMITS" not in os.environ, reason="by hand: TOKBPE_LIMITS=8, or more"
    ),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells of the memory"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
LIMITS = int(os.environ.get("TOKBPE_LIMITS", "8"))
# More than any operation takes beyond what is there: the stacks of threads are some of it.
MOST = 2**29
THREADS = 3
CORPUS = [
    np.random.default_rng(seed).integers(97, 107, 60_000).astype(np.uint8).tobytes().decode()
    for seed in range(100)
]
TEXT = "".join(CORPUS)
OPTIONS = {"method": "bpe", "vocabulary_size": 320}


def fresh():
    return Tokenizer.from_state(STATE)


SMALL = Tokenizer(TEXT[:5000], **OPTIONS)
STATE = SMALL.state()
IDS = SMALL.encode(TEXT[:1000])


def check_ids(ids):
    assert SMALL.decode(ids[:1000]) == TEXT[: len(SMALL.decode_bytes(ids[:1000]))]


def shards_of(tokenizer, folder, threads=None):
    corpus = StreamedCorpus(CORPUS[:20])
    write_shards(corpus, tokenizer, folder / "shards", shard_tokens=50_000, threads=threads)


OPERATIONS = {
    "encode": lambda folder: check_ids(fresh().encode(TEXT)),
    "encode_array": lambda folder: check_ids(fresh().encode_array(TEXT, threads=THREADS)),
    "encode_batch": lambda folder: [
        check_ids(ids[:9]) for ids in fresh().encode_batch(CORPUS, threads=THREADS)[:1]
    ],
    "decode": lambda folder: SMALL.decode(IDS * 2000).startswith(TEXT[:1000]),
    "train": lambda folder: Tokenizer(CORPUS, **OPTIONS, threads=THREADS),
    "train_with_a_pattern": lambda folder: Tokenizer(
        CORPUS, **OPTIONS, pattern="gpt2", threads=THREADS
    ),
    "count": lambda folder: PieceCounts(
        [text.replace("a", " ") for text in CORPUS], pattern="cl100k", threads=THREADS
    ).save(folder / "counts"),
    "save": lambda folder: fresh().save(folder / "tokenizer"),
    "shards": lambda folder: write_shards(
        StreamedCorpus(CORPUS[:20]),
        fresh(),
        folder / "shards",
        shard_tokens=50_000,
        threads=THREADS,
    ),
}


def check_written(folder):
    """Whatever is there is read as it must be; work on shards may have begun, and can go on."""
    if (folder / "counts").exists():
        assert PieceCounts.load(folder / "counts").total()
    if (folder / "tokenizer").exists():
        assert Tokenizer.load(folder / "tokenizer") == SMALL
    if (folder / "shards").exists():
        shards_of(SMALL, folder)
        Shards(folder / "shards").verify()
    assert {path.name for path in folder.iterdir()} <= {"counts", "tokenizer", "shards"}


def limited(operation, folder, more):
    """Do it with so many bytes more than there are."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    highest = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + more, highest))
    try:
        operation(folder)
        found = "done"
    except MemoryError:
        found = "MemoryError"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (highest, highest))
    SMALL.encode(TEXT[:5000])
    print(found)


@pytest.mark.parametrize("name", OPERATIONS)
def test_less_and_less_memory(name, tmp_path):
    found = {"done": 0, "MemoryError": 0}
    for number, more in enumerate(np.geomspace(2**16, MOST, LIMITS).astype(int).tolist()):
        folder = tmp_path / str(number)
        folder.mkdir()
        log = tmp_path / f"{number}.log"
        work = lambda folder=folder, more=more: limited(OPERATIONS[name], folder, more)  # noqa: E731
        code = in_a_process(work, log)
        said = log.read_text(errors="replace")
        assert code == 0, f"{more} bytes: {said[-3000:]}"
        found[said.split()[-1]] += 1
        check_written(folder)
    print(found)
    assert found["done"]
