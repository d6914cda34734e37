"""Work that a thread does meanwhile."""

import _thread
import os
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

Lock = TypeVar("Lock")
# A thread that has not begun in so many seconds is not waited for.
SECONDS_TO_BEGIN = 1.0

forks: list[None] = []  # one for each that has led to this process
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=partial(forks.append, None))


def new_lock(kind: Callable[[], Lock]) -> Lock:
    """One of `_thread`, which tells of memory that ends as of a RuntimeError."""
    try:
        return kind()
    except RuntimeError as error:
        raise MemoryError(str(error)) from error


class Work(NamedTuple):
    do: Callable[[], object]
    end: _thread.LockType  # held until the thread has done it


class OneThread:
    """A thread that does one work after another; or the caller, where no thread can be had: for
    want of memory, or since the interpreter is about to end.

    It ends with its `with` block: what it is doing then is waited for, and what waits is not done.

    A `threading.Thread` will not do: whoever starts one waits until it has begun, and that is for
    ever if it has no memory to begin (CPython's issue 140746). Nor may both do what waits, whoever
    comes first: documents out of a database may have to be read by one and the same thread. So
    either this one tells in time that it is there, and then it does all, for which it needs no
    memory of its own; or it is dismissed, and finds nothing to do if it comes later.
    """

    def __init__(self) -> None:
        self._pending: deque[Work] = deque()  # all that has not been waited for
        self._works: deque[Work] = deque()  # what the thread has not taken
        self._call = held_lock()  # released when there is something new for the thread
        # Held by the thread while it takes and does work, in which it may come to close this.
        self._turn = new_lock(_thread.RLock)
        self._is_called = False  # whether there has been a thread to call
        self._is_there = False  # whether it has told so
        self._is_dismissed = False
        self._error: BaseException | None = None  # the first one, behind which nothing is done
        self._forks = len(forks)

    def __enter__(self) -> "OneThread":
        return self

    def later(self, work: Callable[..., object], *arguments: Any) -> None:
        """Have some work done, behind all that waits, unless any of it fails."""
        new = Work(partial(work, *arguments), held_lock())
        self._pending.append(new)
        if not self._is_dismissed:
            self._works.append(new)
            self._call_thread()

    def wait(self, left: int = 0) -> None:
        """Wait until only so many works are left; what one of them raises is raised here."""
        if self._forks < len(forks):
            raise RuntimeError(
                "a fork does not have the threads of its parent, one of which is at work"
            )
        while len(self._pending) > left and self._error is None:
            work = self._pending.popleft()
            if not self._is_done(work):
                try:
                    work.do()
                except BaseException as error:
                    self._error = error
        if self._error is not None:
            raise self._error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._dismiss_thread()
        # A thread that has not ended, or begun, yet keeps nothing of the caller's.
        self._pending.clear()
        self._error = None

    def _call_thread(self) -> None:
        if not self._is_called:
            self._is_called = True
            try:
                _thread.start_new_thread(self._serve, ())
            except RuntimeError:
                self._dismiss_thread()  # there is none
        elif self._call.locked():
            self._call.release()

    def _serve(self) -> None:
        """What the thread does. Nothing here needs memory but the work: no call, no unpacking."""
        self._is_there = True  # before it takes anything
        while not self._is_dismissed:
            self._turn.acquire()
            while self._works and not self._is_dismissed:
                work = self._works.popleft()
                try:
                    if self._error is None:
                        work.do()
                except BaseException as error:
                    self._error = error
                end = work.end
                del work  # which is not to be kept until there is more
                end.release()
            self._turn.release()
            self._call.acquire()

    def _is_done(self, work: Work) -> bool:
        """Whether the thread has done some work, or else does nothing more."""
        if not self._is_dismissed:
            if work.end.acquire(timeout=SECONDS_TO_BEGIN):
                return True
            if self._is_there:
                return work.end.acquire()
            self._dismiss_thread()
        return work.end.acquire(blocking=False)

    def _dismiss_thread(self) -> None:
        """Wait until the thread has done what it is doing; it takes nothing more."""
        self._is_dismissed = True
        if self._call.locked():
            self._call.release()
        # There is none any more in a fork, or when the interpreter frees what is left at its end.
        if self._forks == len(forks) and not sys.is_finalizing():
            self._turn.acquire()
            self._turn.release()
        self._works.clear()


def held_lock() -> _thread.LockType:
    lock = new_lock(_thread.allocate_lock)
    lock.acquire()
    return lock
