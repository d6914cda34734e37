"""What the benchmarks share: process CPU times, and the name of the machine."""

import contextlib
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")

BYTES = [bytes([byte]) for byte in range(256)]
PROCESSORS = Path("/proc/cpuinfo")  # Linux's
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def machine() -> dict[str, object]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """The name of the processor, where the system tells it."""
    if PROCESSORS.is_file():
        for line in PROCESSORS.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    """The seconds that a call takes, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


class Seconds(NamedTuple):
    cpu: float  # of the process, all threads together
    wall: float


def clocked(call: Callable[[], Result]) -> tuple[Seconds, Result]:
    """The seconds that a call takes by both clocks, and its result."""
    wall = time.perf_counter()
    cpu, result = timed(call)
    return Seconds(cpu, time.perf_counter() - wall), result


def peak_megabytes() -> float | None:
    """The most memory that the process has held; Linux tells it, and anew for each process."""
    if not STATUS.is_file():
        return None
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def forget_peak() -> None:
    """Let the peak be what the process holds now, where Linux lets us."""
    with contextlib.suppress(OSError):
        CLEAR.write_text("5")


def interleaved(*calls: Callable[[], object], runs: int = 5) -> list[float]:
    """The median seconds of each call."""
    times = [[timed(call)[0] for call in calls] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*times)]
