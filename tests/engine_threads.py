"""Threads of the engine, which `threading` does not know: to have them, and to have none left."""

import _thread
import contextlib
import time
from collections.abc import Iterator
from unittest import mock

from tokbpe.fast.count import use_batches
from tokbpe.fast.groups import use_sizes


@contextlib.contextmanager
def small_work(
    text: int = 1, group: int = 1, batch_bytes: int = 50, batch_documents: int = 5
) -> Iterator[None]:
    """Threads, groups and batches for a few bytes already."""
    use_sizes(text, group)
    use_batches(batch_bytes, batch_documents)
    try:
        yield
    finally:
        use_sizes(262144, 65536)
        use_batches(67108864, 1048576)


@contextlib.contextmanager
def begun() -> Iterator[list[int]]:
    """The threads that are begun meanwhile."""
    found: list[int] = []
    begin = _thread.start_new_thread

    def note(*arguments: object) -> int:
        found.append(begin(*arguments))
        return found[-1]

    with mock.patch.object(_thread, "start_new_thread", note):
        yield found


@contextlib.contextmanager
def none_left() -> Iterator[None]:
    """No thread more than before: one that has nothing more to do ends soon."""
    before = _thread._count()
    yield
    deadline = time.monotonic() + 10
    while _thread._count() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    # One that had not ended, or begun, before may be counted there.
    assert _thread._count() <= before
