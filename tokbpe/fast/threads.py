"""Work that is split over threads, none of which outlives the call."""

import threading
from collections.abc import Callable, Iterator


def run_all(work: Callable[[int], object], count: int, stop: Callable[[], object]) -> None:
    """`work(number)` for all numbers below `count`, as many at a time as threads can be had.

    What one of them raises is raised when all have ended; `stop` is called to make that soon.
    """
    waiting = list(reversed(range(count)))
    errors: list[BaseException] = []

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

    def give_up(error: BaseException) -> None:
        # First of all this: a thread whose start was interrupted may begin at any time, and is
        # not to find work any more when nobody waits for it.
        waiting.clear()
        errors.append(error)
        stop()

    def start(helpers: list[threading.Thread]) -> None:
        for helper in helpers:
            try:
                helper.start()
            except RuntimeError:
                return  # there are no more threads

    helpers = [threading.Thread(target=work_on, name="tokbpe", daemon=True) for _ in waiting[1:]]
    try:
        start(helpers)
        work_on()
    except BaseException as error:
        give_up(error)
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as error:
                give_up(error)
    if errors:
        raise errors[0]
