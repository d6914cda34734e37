"""No memory for Python: each request of an operation for an object fails in turn.

What `test_allocations` does for the memory of compiled code, by a hook that CPython has for its own
tests: so this is also about what compiled code makes of Python's objects, lists of ids, bytes,
exceptions and their tracebacks. A request fails alone, or with many behind it. The operation ends
in a MemoryError, or does without; then the same object gives the right result, and what was to be
written is there complete or not at all. Memory that is left is not looked for: CPython itself loses
references to what it was working with.

Each operation is tried in a process of its own, with one thread: Python waits for ever for a thread
that has no memory to begin (its issue 140746).

TOKBPE_ALLOCATIONS=sample, or all: some requests of each operation, or every one. They have other
numbers in each Python and environment, and what Python and NumPy make of them is not ours to mend;
so this is for looking at, and not for the gate.
"""

import _thread
import concurrent.futures
import faulthandler
import io
import json
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import test_allocations
from test_allocations import ALL, CORPUS, LONG_TEXT, TEXT, TEXTS
from tokbpe import (
    Corpus,
    PieceCounts,
    Shards,
    StreamDecoder,
    StreamedCorpus,
    Tokenizer,
    decode_stream,
    write_shards,
)
from tokbpe.fast.count import use_batches
from tokbpe.fast.groups import use_sizes

testing = pytest.importorskip("_testcapi", reason="Python was built without its own tests")

pytestmark = [
    pytest.mark.skipif(
        "TOKBPE_ALLOCATIONS" not in os.environ, reason="by hand: TOKBPE_ALLOCATIONS=sample, or all"
    ),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are forked"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
NOTHING: dict[str, bytes] = {}  # files
# Of so many requests of an operation each is tried.
MOST_TRIED = 4
# Seconds, far more than any operation takes.
LONGEST = 3600 if ALL else 100
# So many fail in a row. Not all to the end: CPython tries for ever to leave a `with` block without
# memory, and gives up, with the process, when it has tried 32 times to raise a MemoryError.
MANY = 20

# What Python and NumPy tell for want of memory and is no MemoryError, each with what shows that in
# nothing but them.
TOLD_BY_OTHERS: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    r"error return without exception set": (SystemError, lambda: compile("{'a': 1}", "", "eval")),
    r"returned NULL without setting an exception": (
        SystemError,
        lambda: np.arange(300, dtype=np.uint32).sum(),
    ),
    r"fspath> returned a result with an exception set": (
        SystemError,
        lambda: np.fromfile(__file__, np.uint8, 1, offset=1),
    ),
    r"can't allocate lock": (RuntimeError, threading.Lock),
    r"can't allocate read lock": (RuntimeError, lambda: open(__file__, "rb").close()),
    r"expected str, bytes or os.PathLike object, not PosixPath": (
        TypeError,
        lambda: os.fsdecode(Path("a")),
    ),
    r"Can't pickle .*: import of module .* failed": (
        pickle.PicklingError,
        lambda: pickle.dumps(concurrent.futures.Future),
    ),
}


@dataclass(frozen=True)
class Operation:
    name: str
    make: Callable[[Path], Any]  # what it works with, which may write to the folder
    run: Callable[[Any], Any]
    # What it has written, or nothing: what is found, and gone then.
    written: Callable[[Any], Any] = lambda subject: None

    def __str__(self):
        return self.name


OPERATIONS: list[Operation] = []


def operation(make=lambda folder: None, written=lambda subject: None):
    def add(run):
        OPERATIONS.append(Operation(run.__name__, make, run, written))
        return run

    return add


# The methods of a tokenizer

BPE = Tokenizer(
    CORPUS,
    method="bpe",
    vocabulary_size=300,
    pattern="gpt2",
    special_tokens=["<e>"],
    reserved=["BOS", "EOS", "USER", "ASSISTANT"],
    threads=1,
)
PLAIN = Tokenizer(CORPUS, method="bpe", vocabulary_size=290, pattern="gpt2", threads=1)
WORD = Tokenizer(CORPUS, method="word", vocabulary_size=75, threads=1)
IDS = BPE.encode(LONG_TEXT, allowed_special="all", bos=True)
OPTIONS = {"allowed_special": "all", "bos": True, "eos": True}


def fresh(tokenizer=BPE):
    return pickle.loads(pickle.dumps(tokenizer))


def tokenizer_of(folder):
    return fresh()


def word_tokenizer(folder):
    return fresh(WORD)


@operation(tokenizer_of)
def encode(tokenizer):
    return tokenizer.encode(TEXT), tokenizer.encode(TEXT, **OPTIONS)


@operation(tokenizer_of)
def encode_much(tokenizer):
    return tokenizer.encode(LONG_TEXT), tokenizer.encode_bytes(b"\xff\xfe" * 50)


@operation(word_tokenizer)
def encode_words(tokenizer):
    return tokenizer.decode(tokenizer.encode(TEXT))


@operation(tokenizer_of)
def encode_array(tokenizer):
    return tokenizer.encode_array(LONG_TEXT, threads=1, **OPTIONS).tolist()


@operation(tokenizer_of)
def encode_into(tokenizer):
    out = np.zeros(len(TEXT), np.uint32)
    size = tokenizer.encode_into(TEXT, out, **OPTIONS)
    return out[:size].tolist()


@operation(tokenizer_of)
def encode_batch(tokenizer):
    return tokenizer.encode_batch(TEXTS[:4], threads=1, **OPTIONS)


@operation(tokenizer_of)
def encode_batch_arrays(tokenizer):
    found = tokenizer.encode_batch_arrays(TEXTS[:4], dtype="uint16", threads=1, **OPTIONS)
    return [array.tolist() for array in found]


@operation(tokenizer_of)
def encode_file(tokenizer):
    file = io.BytesIO(TEXT.encode() * 3)
    found = tokenizer.encode_file(file, documents="line", threads=1, block_bytes=50, **OPTIONS)
    return [(ids.tolist(), offsets.tolist()) for ids, offsets in found]


@operation(tokenizer_of)
def encode_corpus(tokenizer):
    found = tokenizer.encode_corpus(Corpus([TEXT, "low"], role="test"), threads=1, **OPTIONS)
    return found.tokens.tolist(), found.offsets.tolist(), found.fingerprint()


@operation(tokenizer_of)
def offsets(tokenizer):
    found = tokenizer.encode_with_offsets(TEXT, **OPTIONS)
    return found.ids, found.byte_spans.tolist(), found.character_spans.tolist()


@operation(tokenizer_of)
def chat(tokenizer):
    return tokenizer.encode_chat([("user", TEXT), ("assistant", "the hat")], bos=True)


@operation(tokenizer_of)
def measures(tokenizer):
    return (
        tokenizer.count(TEXT),
        tokenizer.count_batch(TEXTS[:4], threads=1).tolist(),
        tokenizer.split_at(TEXT, 9),
        tokenizer.usage([TEXT, "low"]).counts.tolist(),
    )


@operation(tokenizer_of)
def decode(tokenizer):
    return tokenizer.decode(IDS), tokenizer.decode_bytes(np.array(IDS))


@operation(tokenizer_of)
def decode_batch(tokenizer):
    return tokenizer.decode_batch([IDS[:99], iter(IDS[:9]), []], skip_special=True)


@operation(tokenizer_of)
def decode_a_stream(tokenizer):
    return [*decode_stream(tokenizer, IDS[:99])]


@operation(lambda folder: StreamDecoder(fresh(WORD)))
def decode_a_stream_of_words(decoder):
    decoder.finish()
    return "".join(map(decoder.put, WORD.encode(TEXT))) + decoder.finish()


@operation(tokenizer_of)
def looking_up(tokenizer):
    return tokenizer.vocabulary[-9:], tokenizer.token_to_id("the"), [*tokenizer.items()][-3:]


@operation(tokenizer_of)
def an_error(tokenizer):
    """What is raised for what cannot be encoded, or else that there is no memory to do so."""
    found = []
    for text in ("\ud800", 1, "low" * 99):
        try:
            found.append(tokenizer.encode_batch([text], threads=1))
        except (TypeError, UnicodeError) as error:
            found.append(str(error))
    return found


# Training


def of_training(tokenizer):
    return tokenizer.vocabulary[-20:], tokenizer.merge_counts.tolist(), tokenizer.fingerprint()


@operation()
def train(_):
    seen = []
    made = Tokenizer(
        CORPUS,
        method="bpe",
        vocabulary_size=280,
        pattern="gpt2",
        special_tokens=["<e>"],
        threads=1,
        progress=lambda *all: seen.append(all),
    )
    return of_training(made), seen


@operation()
def train_of_own_pattern(_):
    return of_training(
        Tokenizer(CORPUS, method="bpe", vocabulary_size=270, pattern="[a-z]+|[^a-z]+", threads=1)
    )


@operation()
def train_words(_):
    return of_training(Tokenizer(iter(CORPUS), method="word", vocabulary_size=75, threads=1))


@operation()
def train_bounded(_):
    return of_training(
        Tokenizer(
            CORPUS, method="bpe", vocabulary_size=270, threads=1, max_merge_work=10**6,
            max_pair_types=10**6, on_interrupt="keep",
        )
    )  # fmt: skip


@operation()
def train_without_merges(_):
    return [of_training(Tokenizer(CORPUS, method=method, threads=1)) for method in ("byte", "char")]


@operation()
def train_in_steps(_):
    return [*Tokenizer.train_steps(CORPUS, vocabulary_size=270, pattern="gpt2", threads=1)]


@operation(lambda folder: fresh(PLAIN))
def extended(tokenizer):
    return of_training(tokenizer.extended(CORPUS, 295, threads=1)), of_training(
        tokenizer.truncated(270)
    )


# Counting


def counts_of(corpus, **options):
    return PieceCounts(corpus, pattern="gpt2", threads=1, **options)


def of_counts(counts):
    return [*counts.items()], counts.record, counts.ordered


@operation()
def count(_):
    return of_counts(counts_of(CORPUS, special_tokens=["<e>"]))


@operation(lambda folder: counts_of(CORPUS))
def counts_changed(counts):
    """A change that fails is not begun."""
    before = of_counts(counts)
    try:
        counts.add([TEXT], threads=1)
    except MemoryError:
        assert of_counts(counts) == before
        raise
    return counts[b" the"] > dict(before[0])[b" the"], len(counts)


@operation(lambda folder: counts_of(CORPUS))
def counts_together(counts):
    return of_counts(counts + counts_of([TEXT])), counts.most_common(3), counts.total()


@operation(lambda folder: written_text(folder))
def count_files(path):
    return of_counts(PieceCounts.from_files([path], documents="line", pattern="gpt2", threads=1))


@operation(lambda folder: counts_of(CORPUS))
def train_from_counts(counts):
    return of_training(Tokenizer.from_counts(counts, vocabulary_size=270, threads=1))


def written_text(folder):
    path = folder / "text"
    path.write_text(TEXT * 3, encoding="utf-8")
    return path


# Files


def contents(folder):
    """All files, hidden ones as well, which are removed."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    for path in folder.iterdir():
        path.unlink() if path.is_file() else shutil.rmtree(path)
    return found


def beside(made):
    """What is made, and an empty folder to write to."""

    def make(folder):
        (folder / "out").mkdir()
        return made(folder), folder / "out"

    return make


def written_there(subject):
    return contents(subject[1])


SAVING = {
    "save": lambda tokenizer, out: tokenizer.save(out / "file"),
    "to_json": lambda tokenizer, out: tokenizer.to_json(out / "file"),
    "to_tiktoken": lambda tokenizer, out: tokenizer.to_tiktoken(out / "file") and None,
    "to_gpt2": lambda tokenizer, out: tokenizer.to_gpt2(out),
    "to_huggingface": lambda tokenizer, out: tokenizer.to_huggingface(out / "file"),
}
LOADING = {
    "load": (SAVING["save"], Tokenizer.load),
    "from_json": (SAVING["to_json"], lambda path: Tokenizer.from_json(path, pattern="gpt2")),
    "from_tiktoken": (
        SAVING["to_tiktoken"],
        lambda path: Tokenizer.from_tiktoken(path, pattern="gpt2", special_tokens={}),
    ),
    "from_gpt2": (SAVING["to_gpt2"], lambda path: Tokenizer.from_gpt2(path.parent)),
    "from_huggingface": (SAVING["to_huggingface"], Tokenizer.from_huggingface),
}
for name, save in SAVING.items():
    make = beside(lambda folder: fresh(PLAIN))
    run = lambda subject, save=save: save(*subject)  # noqa: E731
    OPERATIONS.append(Operation(name, make, run, written_there))
for name, (save, load) in LOADING.items():
    OPERATIONS.append(
        Operation(
            name,
            lambda folder, save=save: save(PLAIN, folder) or folder / "file",
            lambda path, load=load: load(path).encode(TEXT),
        )
    )


@operation(tokenizer_of)
def state(tokenizer):
    return json.dumps(tokenizer.state()), tokenizer == Tokenizer.from_state(tokenizer.state())


@operation(tokenizer_of)
def pickled(tokenizer):
    return pickle.loads(pickle.dumps(tokenizer)) == tokenizer


@operation(beside(lambda folder: counts_of(CORPUS)), written_there)
def save_counts(subject):
    counts, out = subject
    counts.save(out / "counts.npz")


@operation(lambda folder: counts_of(CORPUS).save(folder / "counts.npz") or folder / "counts.npz")
def load_counts(path):
    return of_counts(PieceCounts.load(path))


def no_thread(*arguments):
    raise RuntimeError("can't start new thread")


def without_threads(folder):
    _thread.start_new_thread = no_thread  # in the process of this operation
    return fresh()


SHARDS = {"shard_tokens": 100, "eos": True, "threads": 1}


def shards_written(subject):
    """What is there is taken up by the next call, and gives what it gives at once."""
    (tokenizer, source), out = subject
    if not (out / "shards").exists():
        assert list(out.iterdir()) == []
        return NOTHING
    write_shards(source, tokenizer, out / "shards", **SHARDS)
    return contents(out)


for name, source in {
    "write_shards": lambda folder: written_text(folder),
    "write_shards_of_a_corpus": lambda folder: StreamedCorpus(CORPUS),
}.items():
    OPERATIONS.append(
        Operation(
            name,
            beside(lambda folder, source=source: (without_threads(folder), source(folder))),
            lambda subject: len(
                write_shards(subject[0][1], subject[0][0], subject[1] / "shards", **SHARDS)
            ),
            shards_written,
        )
    )


@operation(lambda folder: write_shards(Corpus(CORPUS), fresh(), folder / "shards", **SHARDS).folder)
def read_shards(folder):
    found = Shards(folder)
    found.verify()
    return found[:].tolist(), found[5:-5].tolist()


# The functions of the engine, as far as they can be tried here: with one thread, and without what
# does not survive it itself, the patches of a test and the closures of ctypes.

for engine_operation in test_allocations.OPERATIONS:
    name = engine_operation.name
    by_threads = name.endswith(("_3", "_by_threads")) or name == "tokenizer"
    if not by_threads and not name.startswith(("train_", "native_")):
        OPERATIONS.append(
            Operation(
                f"engine_{name}",
                lambda folder, make=engine_operation.make: make(),
                engine_operation.run,
            )
        )


# Each fails


def outcome(operation, subject, first, size):
    """What an operation gives, or MemoryError, if so many requests from one on fail."""
    error = None
    testing.set_nomemory(first, first + size)
    try:
        return operation.run(subject)
    except Exception as raised:
        error = raised
    finally:
        testing.remove_mem_hooks()
    if not isinstance(error, MemoryError) and told_by_others(error) is None:
        raise error
    return MemoryError


def told_by_others(error):
    """The pattern of what is told for want of memory; None for another error, and for one out of
    our compiled code."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.endswith(".pyx"):
            return None
    for pattern, (kind, _) in TOLD_BY_OTHERS.items():
        if type(error) is kind and re.search(pattern, str(error)):
            return pattern
    return None


def told_without_memory(run):
    """All that is told if one request, or many from one on, fail."""
    run()
    found = set()
    for size in (1, MANY):
        for number in range(100):
            error = None
            testing.set_nomemory(number, number + size)
            try:
                run()
            except Exception as raised:
                error = raised
            finally:
                testing.remove_mem_hooks()
            if error is not None:
                found.add(told_by_others(error))
    return found


@pytest.mark.parametrize("pattern", TOLD_BY_OTHERS)
def test_what_others_tell(pattern, tmp_path):
    def work():
        assert pattern in told_without_memory(TOLD_BY_OTHERS[pattern][1])

    assert in_a_process(work, tmp_path / "log") == 0, (tmp_path / "log").read_text()


def converted_indices():
    np.zeros(400, bool)[np.arange(60, dtype=np.uint32)]


def rows_against_a_column():
    np.zeros((12000, 2), np.uint32) < np.arange(12000, dtype=np.uint32)[:, None]  # noqa: B015


@pytest.mark.parametrize("work", [converted_indices, rows_against_a_column])
def test_what_numpy_does_not_survive(work, tmp_path):
    """It writes to nowhere if it has no memory to make other numbers `intp`, or for an iterator of
    two dimensions: this is why we make them, and compare columns."""
    codes = {
        in_a_process(lambda number=number: without_memory(work, number), tmp_path / "log")
        for number in range(20)
    }
    assert -signal.SIGSEGV in codes


def without_memory(work, number):
    work()
    testing.set_nomemory(number, number + 1)
    try:
        work()
    finally:
        testing.remove_mem_hooks()


@contextmanager
def subject_of(operation, folder):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        yield operation.make(Path(own))


def request_count(operation, folder):
    """How many requests there are: if those behind them fail the operation does not notice."""

    def enough(count):
        with subject_of(operation, folder) as subject:
            found = outcome(operation, subject, count, MANY)
            operation.written(subject)
        return found is not MemoryError

    most = 1
    while not enough(most):
        most *= 2
    least = most // 2
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def chosen(count):
    """The requests to try, from 0 on: all, or the first and the last ones and some between."""
    if ALL or count <= MOST_TRIED:
        return range(count + 1)
    return sorted({round(number) for number in np.linspace(0, count, MOST_TRIED)})


def check(operation, folder):
    """Let requests fail, alone and with many behind them."""
    with subject_of(operation, folder) as subject:
        expected = operation.run(subject)
        written = operation.written(subject)
    count = request_count(operation, folder)
    failed = 0
    for number in chosen(count):
        for size in (1, MANY):
            print(f"request {number} of {count}, {size} of them", flush=True)
            with subject_of(operation, folder) as subject:
                found = outcome(operation, subject, number, size)
                there = operation.written(subject)
                if found is MemoryError:
                    failed += 1
                    assert there in (written, NOTHING)
                else:
                    assert (found, there) == (expected, written)
                assert operation.run(subject) == expected
                assert operation.written(subject) == written
    print(f"{count} requests, {failed} failures survived", flush=True)


def in_a_process(work, log):
    """The exit code of a process that does some work; what it says goes to a file."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            with open(log, "w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
                sys.stdout = sys.stderr = file
                faulthandler.enable(file)
                faulthandler.register(signal.SIGALRM, file, chain=True)  # says where, and ends it
                signal.alarm(LONGEST)
                try:
                    work()
                    code = 0
                except BaseException:
                    traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_each_request_may_fail(operation, tmp_path):
    def work():
        use_sizes(2000, 1000)  # groups and batches for a few bytes already
        use_batches(8000, 5)
        os.fsync = lambda descriptor: None  # a disk takes its time
        check(operation, tmp_path)

    log = tmp_path / "log"
    code = in_a_process(work, log)
    said = log.read_text(errors="replace")
    print(said.splitlines()[-1])
    assert code == 0, said[-5000:]
