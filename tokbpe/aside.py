"""Work that a thread does meanwhile."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any


class OneThread(ThreadPoolExecutor):
    """A thread that does one work after another; or the caller, where no thread can be had: for
    want of memory, or since the interpreter is about to end."""

    def __init__(self) -> None:
        super().__init__(1, "tokbpe")
        self._last: Future[Any] | None = None
        self._is_there = True

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        if self._is_there:
            try:
                self._last = super().submit(work, *arguments, **options)
                return self._last
            except RuntimeError:
                self._is_there = False  # and what may be in its queue now is never done
        if self._last is not None:
            wait([self._last])
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments, **options))
        except BaseException as error:
            done.set_exception(error)
        return done
