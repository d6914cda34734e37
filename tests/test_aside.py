"""Work that a thread does meanwhile, and what becomes of it where there is no thread."""

import _thread
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

from engine_threads import none_left
from tokbpe import aside
from tokbpe.aside import OneThread

pytestmark = pytest.mark.core


def started_never(monkeypatch):
    def fails(*arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", fails)


def begun_never(monkeypatch):
    """As where there is no memory to begin."""
    monkeypatch.setattr(_thread, "start_new_thread", lambda *arguments: 1)
    monkeypatch.setattr(aside, "SECONDS_TO_BEGIN", 0.01)


def as_usual(monkeypatch):
    pass


THREADS = pytest.mark.parametrize("threads", [as_usual, started_never, begun_never])


@pytest.fixture(autouse=True)
def no_thread_is_left():
    with none_left():
        yield


@THREADS
def test_in_order_and_once(threads, monkeypatch):
    threads(monkeypatch)
    done, by = [], set()

    def work(number):
        done.append(number)
        by.add(_thread.get_ident())

    with OneThread() as thread:
        for number in range(300):
            thread.later(work, number)
            if number % 3 == 0:
                thread.wait(number % 5)
        thread.wait()
        assert done == [*range(300)]
    assert len(by) == 1
    assert (by == {_thread.get_ident()}) == (threads is not as_usual)


def test_both_work_at_the_same_time():
    """Each waits for what the other does."""
    ours, theirs = threading.Event(), threading.Event()

    def work():
        ours.set()
        assert theirs.wait(10)

    with OneThread() as thread:
        thread.later(work)
        assert ours.wait(10)
        theirs.set()
        thread.wait()


def test_one_that_begins_late_finds_nothing_to_do(monkeypatch):
    late = []
    monkeypatch.setattr(_thread, "start_new_thread", lambda work, _: late.append(work))
    monkeypatch.setattr(aside, "SECONDS_TO_BEGIN", 0.01)
    done = []
    with OneThread() as thread:
        for number in range(3):
            thread.later(done.append, number)
        thread.wait(2)
        late.pop()()
        thread.later(done.append, 3)
        thread.wait()
    assert done == [0, 1, 2, 3]
    assert not late


@THREADS
def test_an_error_is_raised_and_nothing_done_behind_it(threads, monkeypatch):
    threads(monkeypatch)
    done = []
    with OneThread() as thread:
        thread.later(done.append, 0)
        thread.later(int, "x")
        thread.later(done.append, 1)
        for _ in range(2):
            with pytest.raises(ValueError, match="invalid literal"):
                thread.wait()
        thread.later(done.append, 2)
        with pytest.raises(ValueError, match="invalid literal"):
            thread.wait()
    assert done == [0]


def test_the_block_ends_when_the_thread_has_done_what_it_is_doing():
    begun, done = threading.Event(), []

    def work():
        begun.set()
        time.sleep(0.05)
        done.append("this")

    with OneThread() as thread:
        thread.later(work)
        thread.later(done.append, "and no more")
        assert begun.wait(10)
    assert done == ["this"]


@THREADS
def test_nothing_is_kept(threads, monkeypatch):
    """Neither what was done nor what was not, also where the caller does it."""
    threads(monkeypatch)

    class Given:
        pass

    given = [Given(), Given()]
    left = [weakref.ref(one) for one in given]
    with OneThread() as thread:
        thread.later(id, None)
        thread.wait()
        thread.later(id, given[0])
        thread.wait()
        del given[0]
        gc.collect()
        assert left[0]() is None
        thread.later(int, "x")
        thread.later(id, given.pop())
    deadline = time.monotonic() + 10
    while left[1]() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert left[1]() is None


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms of POSIX")
def test_an_interrupt_while_it_is_waited_for():
    going, done = threading.Event(), []

    def work():
        going.wait(10)
        done.append("this")

    def stop(*_):
        going.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(KeyboardInterrupt), OneThread() as thread:
            thread.later(work)
            thread.later(done.append, "and no more")
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            thread.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert done == ["this"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are forked")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_it_works():
    """The child does not wait for a thread that it does not have."""
    going = threading.Event()
    with OneThread() as thread:
        thread.later(going.wait, 10)
        child = os.fork()
        if not child:
            signal.alarm(10)
            try:
                with thread:
                    thread.wait()
            except RuntimeError:
                os._exit(0)
            finally:
                os._exit(1)
        going.set()
        thread.wait()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_it_ends_from_within():
    """As where it is the thread in which what holds it is freed."""
    done = []
    thread = OneThread()
    thread.later(thread.__exit__, None, None, None)
    thread.later(done.append, 1)
    deadline = time.monotonic() + 10
    while not thread._is_dismissed and time.monotonic() < deadline:
        time.sleep(0.001)
    assert thread._is_dismissed
    assert not done


@pytest.mark.parametrize("number", range(3))
def test_locks_without_memory(number, monkeypatch):
    allocate = _thread.allocate_lock
    left = [number]

    def fails():
        if left[0] == 0:
            raise RuntimeError("can't allocate lock")
        left[0] -= 1
        return allocate()

    monkeypatch.setattr(_thread, "allocate_lock", fails)
    done = []
    if number == 0:
        with pytest.raises(MemoryError, match="can't allocate lock"):
            OneThread()
        return
    with OneThread() as thread:
        for step in range(number - 1):
            thread.later(done.append, step)
        with pytest.raises(MemoryError, match="can't allocate lock"):
            thread.later(done.append, "lost")
        thread.wait()
    assert done == [*range(number - 1)]


def test_the_interpreter_ends_while_it_works():
    code = (
        "import time\n"
        "from tokbpe.aside import OneThread\n"
        "thread = OneThread()\n"
        "thread.later(time.sleep, 60)\n"
        "thread.later(print, 'no more')\n"
        "print('end', flush=True)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert (ended.stdout, ended.stderr) == ("end\n", "")
