"""ThreadSanitizer is seen to find: copies of the engine in which threads get in each other's way.

Each is the package with one module built anew from changed text; tests of the suite run on it in a
process of their own. The faults do no harm by themselves: it is the sanitizer that must see them.
"""

import os
import shutil
import subprocess
import sys

import pytest

from test_planted_faults import ROOT, Fault, binary_with

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(
        "tsan" not in os.environ.get("LD_PRELOAD", ""),
        reason="needs the build for ThreadSanitizer, and its library (see .ci/threads)",
    ),
]

# With the function that the report must name, and the tests that run.
RACES = {
    "a lock that orders nothing": (
        Fault(
            "handles",
            "__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)",
            "__atomic_exchange_n(lock, 1, __ATOMIC_RELAXED)",
            file="lock.h",
        ),
        "entered",
        "test_capi.py::test_eight_threads_that_python_does_not_know",
    ),
    "one place for what all groups count": (
        Fault(
            "batch",
            "self.counts[i] = encoding.size + encoding.counted - start",
            "self.counts[i] = self.total = encoding.size + encoding.counted - start",
        ),
        "encode_group",
        "test_threads.py::test_threads_change_nothing",
    ),
    "no fault": (
        Fault("batch", "cdef class Batch(Groups):", "cdef class Batch(Groups):"),
        None,
        "test_threads.py::test_threads_change_nothing",
    ),
}


REPORTED = 66  # the exit code of a process in which the sanitizer has seen a race


@pytest.mark.parametrize("name", RACES)
def test_a_planted_race_is_reported(name, tmp_path):
    fault, function, tests = RACES[name]
    package = shutil.copytree(ROOT / "tokbpe", tmp_path / "copy" / "tokbpe")
    shutil.copy(binary_with(tmp_path / "build", fault), package / "fast")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "core", ROOT / "tests" / tests],
        cwd=package.parent,  # from where Python takes the copy
        env={**os.environ, "TSAN_OPTIONS": f"log_path={tmp_path}/report"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == (0 if function is None else REPORTED), run.stdout
    found = "".join(path.read_text("utf-8") for path in tmp_path.glob("report*"))
    assert function is None or ("data race" in found and function in found), found
