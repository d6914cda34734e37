"""An error that comes while a test is at work, as that of Ctrl-C does."""

import contextlib
import signal
from collections.abc import Iterator

import pytest

needs_alarms = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="the system has no alarms"
)


class Stopped(Exception):
    pass


@contextlib.contextmanager
def alarm(
    after: float, error: type[BaseException] = Stopped, again: float = 0, of_cpu: bool = False
) -> Iterator[None]:
    """Raise an error in so many seconds, which may be inside of what is entered next: `raises`
    goes before it.

    again: and so many after that, and so on.
    of_cpu: seconds of work, of which there are as many on a busy machine.
    """
    timer, number = (
        (signal.ITIMER_PROF, signal.SIGPROF) if of_cpu else (signal.ITIMER_REAL, signal.SIGALRM)
    )

    def stop(*_: object) -> None:
        raise error

    before = signal.signal(number, stop)
    try:
        signal.setitimer(timer, after, again)
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
