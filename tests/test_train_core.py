"""Training: what the two engines take beside sequences, and the parts of the compiled one."""

import _thread
import contextlib
import gc
import threading
import weakref
from unittest import mock

import numpy as np
import pytest

from cases import limits_of, rows_of
from strategies import BYTES
from tokbpe import fast
from tokbpe.threads import run_all

pytestmark = pytest.mark.core

TEXT = [b"low lower", b"lowest low", b"newer newest"]


def plain(trained):
    merges, counts = trained
    return np.array(merges).tolist(), np.array(counts).tolist()


# Interrupts


@pytest.mark.parametrize("last", [1, 3])
def test_an_interrupt_keeps_what_was_learned(engine, last):
    expected = plain(engine.train(TEXT, None, BYTES, 9, 1))

    def stop(done, wanted):
        assert wanted == 9
        if done >= last:
            raise KeyboardInterrupt

    merges, counts = plain(
        engine.train(TEXT, None, BYTES, 9, 1, "smallest", stop, on_interrupt="keep")
    )
    assert last <= len(merges) == len(counts)
    assert (merges, counts) == (expected[0][: len(merges)], expected[1][: len(counts)])
    with pytest.raises(KeyboardInterrupt):
        engine.train(TEXT, None, BYTES, 9, 1, "smallest", stop)


def test_an_interrupt_before_anything_was_learned(engine):
    def interrupted():
        yield b"abab"
        raise KeyboardInterrupt

    assert plain(engine.train(interrupted(), None, BYTES, 9, on_interrupt="keep")) == ([], [])
    with pytest.raises(KeyboardInterrupt):
        engine.train(interrupted(), None, BYTES, 9)


def test_other_exceptions_are_not_kept(engine):
    def stop(done, wanted):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        engine.train(TEXT, None, BYTES, 9, 1, "smallest", stop, on_interrupt="keep")


@pytest.mark.parametrize(
    ("value", "error"), [("stop", ValueError), (None, TypeError), (True, TypeError)]
)
def test_other_words_for_interrupts(engine, value, error):
    with pytest.raises(error, match="on_interrupt must be one of 'raise', 'keep', not"):
        engine.train(TEXT, None, BYTES, 9, on_interrupt=value)


# Threads


@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_any_number_of_threads(engine, threads):
    found = engine.train(TEXT, None, BYTES, 9, 1, threads=threads)
    assert plain(found) == plain(engine.train(TEXT, None, BYTES, 9, 1))
    steps = list(engine.train_steps(TEXT, None, BYTES, 9, 1, threads=threads))
    assert steps == list(engine.train_steps(TEXT, None, BYTES, 9, 1))


@pytest.mark.parametrize(
    ("threads", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_numbers_of_threads_that_are_none(engine, threads, error):
    with pytest.raises(error, match="threads must be"):
        engine.train(TEXT, None, BYTES, 9, threads=threads)
    with pytest.raises(error, match="threads must be"):
        list(engine.train_steps(TEXT, None, BYTES, 9, threads=threads))


def test_each_part_of_the_work_is_done_once():
    for count in (1, 2, 3, 8):
        done = []
        run_all(done.append, count, lambda: None)
        assert sorted(done) == list(range(count))


@pytest.mark.parametrize("missing", ["allocate_lock", "start_new_thread"])
def test_no_more_threads_can_be_had(missing, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, missing, fail)
    done = []
    run_all(done.append, 3, lambda: None)
    assert sorted(done) == [0, 1, 2]


def test_threads_that_never_begin(monkeypatch):
    """Without memory one may end before it does anything; nobody waits for it."""
    monkeypatch.setattr(_thread, "start_new_thread", lambda function, arguments: 1)
    done = []
    run_all(done.append, 3, lambda: None)
    assert sorted(done) == [0, 1, 2]


def test_a_thread_that_has_not_begun_keeps_nothing(monkeypatch):
    late = []
    monkeypatch.setattr(_thread, "start_new_thread", lambda *all: late.append(all))

    class Work:
        def __init__(self, fails):
            self.fails = fails

        def do(self, number):
            if self.fails:
                raise ZeroDivisionError

    for fails in (False, True):
        work = Work(fails)
        gone = weakref.ref(work)
        with contextlib.suppress(ZeroDivisionError):
            run_all(work.do, 3, lambda work=work: None)
        del work
        gc.collect()
        assert late
        assert gone() is None
    for function, arguments in late:
        function(*arguments)


def test_an_error_of_one_thread_stops_the_others():
    stopped = threading.Event()
    begun, ended = [], []

    def work(number):
        begun.append(number)
        try:
            if number == 2:
                raise ZeroDivisionError
            assert stopped.wait(10)
        finally:
            ended.append(number)

    with pytest.raises(ZeroDivisionError):
        run_all(work, 3, stopped.set)
    assert sorted(ended) == sorted(begun)


def test_a_thread_that_begins_too_late_finds_no_work(monkeypatch):
    """An interrupt can come between a thread's start and its first step."""
    late = []

    def start(function, arguments):
        late.append((function, arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(_thread, "start_new_thread", start)
    done = []
    with pytest.raises(KeyboardInterrupt):
        run_all(done.append, 3, lambda: None)
    function, arguments = late[0]
    function(*arguments)
    assert done == []


# Rows


@pytest.mark.parametrize("weight_type", [np.int64, np.uint64, np.int32, None])
@pytest.mark.parametrize("symbol_type", [np.uint8, np.uint16, np.uint32])
def test_rows_train_as_lists_do(engine, symbol_type, weight_type):
    weights = None if weight_type is None else np.array([1, 2**30, 3], weight_type)
    as_list = None if weights is None else weights.tolist()
    expected = plain(engine.train(TEXT, as_list, BYTES, 9, 1))
    assert plain(engine.train(rows_of(TEXT, symbol_type), weights, BYTES, 9, 1)) == expected
    assert len(expected[0]) == 9


@pytest.mark.parametrize("form", [list, rows_of])
def test_more_symbols_than_there_are_positions(form):
    """Symbols and separators, before, between and behind; what has no pair needs no place."""
    sequences = [b"abcd", b"e", b"fghi"]
    with mock.patch.dict(limits_of(fast), cells=11):
        assert plain(fast.train(form(sequences), None, BYTES, 1, 2)) == ([], [])
    with (
        mock.patch.dict(limits_of(fast), cells=10),
        pytest.raises(ValueError, match="^with sequence 2 the corpus has more than 10 symbols, th"),
    ):
        fast.train(form(sequences), None, BYTES, 1, 2)


@pytest.mark.parametrize("tie_break", ["smallest", "greatest", "first"])
@pytest.mark.parametrize("count", [2**63 - 2, 2**63 - 1])
def test_the_highest_counts(engine, count, tie_break):
    trained = engine.train([[0, 0]], [count], [b"a"], 1, count, tie_break)
    assert plain(trained) == ([[0, 0]], [count])
    assert plain(engine.train([[0, 0]], [count - 1], [b"a"], 1, count, tie_break)) == ([], [])
