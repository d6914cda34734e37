"""Work that is split over threads, none of which works on when the call has ended."""

import _thread
from collections.abc import Callable, Iterator


def run_all(work: Callable[[int], object], count: int, stop: Callable[[], object]) -> None:
    """`work(number)` for all numbers below `count`, as many at a time as threads can be had.

    What one of them raises is raised when all have ended; `stop` is called to make that soon.

    A `threading.Thread` will not do: whoever starts one waits until it has begun, and that is for
    ever if it has no memory to begin (CPython's issue 140746). Nobody waits for one of these until
    it has told that it works; what it does not take is done by the others.
    """
    waiting = list(reversed(range(count)))
    first_error: BaseException | None = None
    ends: list[_thread.LockType] = []  # of helpers, held as long as they work
    working: set[_thread.LockType] = set()

    def taken() -> Iterator[int]:
        while True:
            try:
                yield waiting.pop()
            except IndexError:
                return

    def work_on() -> None:
        for number in taken():
            try:
                work(number)
            except BaseException as error:
                give_up(error)

    def help_out(end: _thread.LockType) -> None:
        end.acquire()
        working.add(end)  # before it takes anything
        try:
            work_on()
        except BaseException as error:
            give_up(error)
        finally:
            working.discard(end)
            end.release()

    def give_up(error: BaseException) -> None:
        nonlocal first_error
        # First of all this: a thread whose start was interrupted may begin at any time, and is
        # not to find work any more when nobody waits for it.
        waiting.clear()
        if first_error is None:
            first_error = error  # which takes no memory
        stop()

    def start_helpers() -> None:
        for _ in range(count - 1):
            try:
                ends.append(_thread.allocate_lock())
                _thread.start_new_thread(help_out, (ends[-1],))
            except RuntimeError:
                return  # there are no more threads, or locks

    try:
        start_helpers()
        work_on()
    except BaseException as error:
        give_up(error)
    for end in ends:
        while end in working:
            try:
                end.acquire()
            except BaseException as error:
                give_up(error)
    try:
        if first_error is not None:
            raise first_error
    finally:
        # A thread that has not ended, or begun, yet keeps nothing of the caller's.
        work = stop = nothing_more
        first_error = None


def nothing_more(number: int = 0) -> None:
    """What there is to do when the call has ended."""
