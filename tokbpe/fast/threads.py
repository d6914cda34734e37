"""Work that is split over threads, none of which outlives the call."""

import threading
from collections.abc import Callable


def run_all(work: Callable[[int], object], count: int, stop: Callable[[], object]) -> None:
    """`work(number)` for all numbers below `count`: 0 in this thread, each other in its own.

    What one of them raises, or what interrupts this thread meanwhile, is raised when all have
    ended; `stop` is called to make that soon.
    """
    errors: list[BaseException] = []
    helpers: list[threading.Thread] = []

    def fail(error: BaseException) -> None:
        errors.append(error)
        stop()

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            fail(error)

    try:
        left_over = []  # what no thread could be had for
        for number in range(1, count):
            helpers.append(
                threading.Thread(target=guarded, args=(number,), name="tokbpe", daemon=True)
            )
            try:
                helpers[-1].start()
            except RuntimeError:
                left_over.append(number)
        for number in [0, *left_over]:
            guarded(number)
    except BaseException as error:
        fail(error)
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as error:
                fail(error)
    if errors:
        raise errors[0]
