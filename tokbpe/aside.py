"""Work that a thread does meanwhile."""

from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from typing import Any


class OneThread(Executor):
    """A thread that does one work after another; or the caller, where no thread can be had: for
    want of memory, or since the interpreter is about to end."""

    def __init__(self) -> None:
        self._pool: Executor | None = None
        self._last: Future[Any] | None = None
        try:
            # What this imports, an interpreter that is about to end refuses.
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1, "tokbpe")
        except RuntimeError:
            pass
        self._is_there = self._pool is not None

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        if self._pool is not None and self._is_there:
            try:
                self._last = self._pool.submit(work, *arguments, **options)
                return self._last
            except RuntimeError:
                self._is_there = False  # and what may be in its queue now is never done
        if self._last is not None:
            wait([self._last])
        done: Future[Any] = Future()
        try:
            result = work(*arguments, **options)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)
