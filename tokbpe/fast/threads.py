"""Work that is split over threads, none of which outlives the call."""

import threading
from collections.abc import Callable


def run_all(work: Callable[[int], object], count: int, stop: Callable[[], object]) -> None:
    """`work(number)` for all numbers below `count`: 0 in this thread, each other in its own.

    What one of them raises is raised when all have ended; `stop` is called to make that soon.
    """
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)
            stop()

    left_over = []  # what no thread could be had for
    helpers = []
    for number in range(1, count):
        helper = threading.Thread(target=guarded, args=(number,), name="tokbpe", daemon=True)
        try:
            helper.start()
            helpers.append(helper)
        except RuntimeError:
            left_over.append(number)
    for number in [0, *left_over]:
        guarded(number)
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as error:
                errors.append(error)
                stop()
    if errors:
        raise errors[0]
