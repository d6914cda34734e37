"""Processes that begin and end while threads encode: no crash, no wait without an end, and the exit
code that a script asks for."""

import os
import subprocess
import sys

import pytest

from tokbpe.fast import build

BEGIN = """
import atexit, os, sys, threading, time
from tokbpe import Corpus, PieceCounts, StreamDecoder, Tokenizer, fast, write_shards
text = "low lower lowest naïve widest 漢字 " * 40
options = {"method": "bpe", "vocabulary_size": 270, "pattern": "gpt2"}
tokenizer = Tokenizer([text, "newest"], **options)
long_text = text * 400
ids = tokenizer.encode(long_text)

def encode():
    while True:
        assert tokenizer.encode(long_text) == ids

def encode_by_threads():
    while True:
        assert tokenizer.encode_batch([text] * 200, threads=3)[7] == tokenizer.encode(text)
        assert tokenizer.encode_array(long_text, threads=3).tolist() == ids

def train():
    while True:
        Tokenizer([text] * 50, **options, threads=2)

def count():
    while True:
        PieceCounts([text] * 50, pattern="cl100k", threads=2)

def decode():
    while True:
        assert tokenizer.decode(ids) == long_text

def start(work, daemon=True):
    thread = threading.Thread(target=work, daemon=daemon)
    thread.start()
    time.sleep(0.1)
    return thread
"""
WORKS = ["encode", "encode_by_threads", "train", "count", "decode"]


def run(script, expected=0, daemons=False):
    """What a script prints. On the other stream only daemons may say what they miss at the end."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    if daemons:  # the interpreter ends them wherever they are, and frees nothing of theirs
        environment["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", BEGIN + script],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
    )
    assert done.returncode == expected, done.stderr
    assert done.stderr == "" or daemons and "Fatal" not in done.stderr, done.stderr
    return done.stdout


# The end of an interpreter


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("end", ["", "sys.exit(3)", "os._exit(3)"])
def test_daemon_threads_are_at_work_at_the_end(work, end):
    run(f"start({work})\nstart({work})\n{end}", 3 if end else 0, daemons=True)


def test_other_threads_are_waited_for():
    script = """
def work():
    time.sleep(0.3)  # the main thread is at its end then
    print(tokenizer.encode_batch([text] * 200, threads=3) == [tokenizer.encode(text)] * 200)
    print(tokenizer.encode_array(long_text, threads=3).tolist() == ids)
    print(Tokenizer([text] * 50, **options) == Tokenizer([text] * 50, **options))
start(work, daemon=False)
"""
    # Up to Python 3.11 a thread may start others then; later that is a RuntimeError, and one works.
    assert run(script) == "True\n" * 3


def test_what_is_registered_for_the_end_may_encode():
    script = """
@atexit.register
def last():
    print(tokenizer.encode_array(long_text, threads=3).tolist() == ids)
    print(tokenizer.encode_batch([text] * 200, threads=3) == [tokenizer.encode(text)] * 200)
    print(Tokenizer([text, "newest"], **options) == tokenizer)
    print(PieceCounts([text] * 50, pattern="gpt2", threads=2).total() > 0)
start(encode)
"""
    assert run(script) == "True\n" * 4


def test_objects_that_go_last():
    """Tables, encodings and handles are freed by whoever frees modules."""
    script = """
class Last:
    def __init__(self, *kept):
        self.kept = kept
    def __del__(self):
        self.kept[0].encode("low")
sys.kept = Last(tokenizer, fast.Encoder(tokenizer), StreamDecoder(tokenizer), iter(
    Tokenizer.train_steps([text], vocabulary_size=300)), PieceCounts([text]))
next(sys.kept.kept[3])
fast.kept = sys.kept
"""
    run(script)


def test_an_exception_while_threads_encode():
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + "start(encode_by_threads)\nraise KeyError('mine')"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'mine'\n")


# Other processes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are forked")
@pytest.mark.skipif(
    bool(build.facts()["sanitizer"]),
    reason="a fork waits for the sanitizer's memory for ever, if another thread had its lock",
)
@pytest.mark.parametrize("work", WORKS)
def test_forked_while_threads_work(work):
    script = f"""
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads
start({work})
start({work})
for _ in range(5):
    process = os.fork()
    if process == 0:
        good = (
            tokenizer.encode_array(long_text, threads=3).tolist() == ids
            and tokenizer.decode(ids) == long_text
            and Tokenizer([text, "newest"], **options) == tokenizer
            and PieceCounts([text] * 50, pattern="gpt2", threads=2).total() > 0
        )
        os._exit(not good)
    assert os.waitpid(process, 0)[1] == 0
"""
    run(script, daemons=True)


@pytest.mark.parametrize("work", WORKS)
def test_spawned_while_threads_work(work):
    script = f"""
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
start({work})
context = multiprocessing.get_context("spawn")
with ProcessPoolExecutor(1, mp_context=context) as pool:
    assert pool.submit(tokenizer.encode, text).result(90) == tokenizer.encode(text)
"""
    run(script, daemons=True)


INTERPRETERS = """
import importlib
for name in ("_interpreters", "_xxsubinterpreters"):
    try:
        interpreters = importlib.import_module(name)
        break
    except ImportError:
        pass
else:
    print("none")
    sys.exit()
own = interpreters.create()
try:
    failed = interpreters.run_string(own, "import tokbpe")
except interpreters.RunFailedError as error:
    failed = error
print("ImportError" if failed is not None else "works")
interpreters.destroy(own)
print(tokenizer.encode(long_text) == ids)
"""


def test_another_interpreter_in_the_process():
    """Neither NumPy nor the engine can be imported there; this one works on."""
    found = run(INTERPRETERS)
    if found == "none\n":
        pytest.skip("this Python has none")
    assert found == "ImportError\nTrue\n"
