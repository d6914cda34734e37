"""Properties that are made once."""

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """That of `functools`, as it is from Python 3.12 on: without a lock for all objects, which
        a child process would wait for without an end if another thread had it when it was forked.
        Threads that ask at the same time may make the value twice, and one of the two is kept."""

        def __init__(self, func):
            super().__init__(func)
            self.lock = nullcontext()
