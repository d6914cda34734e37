"""Valgrind's memcheck on a sample of the engine's work, which sees what is read without having been
written. It is seen to find: copies of the engine with a fault in one module are reported.

Only what has a frame of the engine counts: Python and NumPy are not ours.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from test_planted_faults import ROOT, Fault, binary_with

pytestmark = pytest.mark.skipif(
    "TOKBPE_MEMCHECK" not in os.environ, reason="takes minutes (see .ci/valgrind)"
)

MEMORY = "self.counts = <size_t *> resized(NULL, self.part_count, sizeof(size_t))"
# With what is reported of them.
FAULTS = {
    "memory that nobody has written": (
        Fault("batch", "memset(self.encoded, 0, self.group_count * sizeof(Encoded))", "pass"),
        "uninitialised",
    ),
    "memory for one count too few": (
        Fault("batch", MEMORY, MEMORY.replace("self.part_count", "self.part_count - 1")),
        "Invalid write of size 8",
    ),
}
FRAME = re.compile(r"tokbpe/fast/\w+\.\S*so|native_calls\.\S*so")


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The native table's example in C, built."""
    folder = shutil.copytree(ROOT / "tests/capi_example", tmp_path_factory.mktemp("capi") / "c")
    subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # where Cython looks for `capi.pxd`
        check=True,
    )
    return folder


def reports(package, example, folder):
    """What memcheck says of the sample, about the engine of this package."""
    done = subprocess.run(
        ["valgrind", "--error-limit=no", "--num-callers=30", f"--log-file={folder}/log.%p"]
        + [sys.executable, "-W", "error", ROOT / "tests/memcheck_sample.py", example],
        env={**os.environ, "PYTHONPATH": package.parent, "PYTHONMALLOC": "malloc"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    logs = "".join(path.read_text("utf-8") for path in folder.glob("log.*"))
    assert "ERROR SUMMARY" in logs, done.stdout
    found = re.sub("(?m)^==[0-9]+== ?", "", logs).split("\n\n")
    return done, [report for report in found if FRAME.search(report)]


def test_the_engine(example, tmp_path):
    done, found = reports(ROOT / "tokbpe", example, tmp_path)
    assert done.returncode == 0, done.stdout
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_reported(name, example, tmp_path):
    fault, message = FAULTS[name]
    package = shutil.copytree(ROOT / "tokbpe", tmp_path / "copy" / "tokbpe")
    shutil.copy(binary_with(tmp_path / "build", fault), package / "fast")
    _, found = reports(package, example, tmp_path)
    assert any(message in report for report in found), found
