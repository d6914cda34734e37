"""The harness is seen to fail: copies of the compiled engine with one fault each are caught.

A copy is one module of `tokbpe.fast`, built anew from changed text. All else is the engine that
is tested, with the functions of that module put in the place of its own; those of other modules
that call it are loaded once more, so that they call the copy.
"""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import Phase

from differential import KINDS, compare_random
from tokbpe import fast

ROOT = Path(__file__).parents[1]
COMPILER = (sysconfig.get_config_var("CC") or "cl").split()[0]

pytestmark = pytest.mark.skipif(
    shutil.which(COMPILER) is None, reason=f"the compiler {COMPILER} is not on this machine"
)


class Fault(NamedTuple):
    module: str
    right: str  # text that stands once in the module, or in another file that it includes
    wrong: str  # and what is put in its place
    kind: str | None = None  # of the cases that show it; None: in a run of all of them
    file: str | None = None


FAULTS = {
    "tie rule turned": Fault(
        "train",
        "return x.order < y.order",
        "return x.order > y.order",
        file="queue.pxd",
    ),
    "overlap in runs": Fault(
        "recount",
        "tally.count += run.weight\n            tally.size += 1\n            left = right",
        "tally.count += run.weight * (cells[position - 2] != right)\n"
        "            tally.size += 1\n            left = right",
        file="tallies.pxd",
    ),
    "a stale count": Fault(
        "train",
        "if pair.count == top.count:",
        "if pair.count >= self.threshold:",
    ),
    "32-bit weights": Fault(
        "sequences",
        "self.own_weights[index] = weight",
        "self.own_weights[index] = <uint32_t> weight",
    ),
    "a boundary moved": Fault(
        "sequences",
        "self.own_ends[index] = self.symbol_count",
        "self.own_ends[index] = self.symbol_count - <size_t> (\n"
        "                index == 0 and len(row) > 2 and len(rows) > 1 and len(rows[1]) > 1)",
    ),
    "what stood between two new tokens": Fault(
        "train",
        "merge.between += weight",
        "merge.between += 0",
        file="update.pxd",
    ),
    "the neighbor that is pending in the end": Fault(
        "train",
        "settle_pending(self.corpus.narrow, &self.right_side, &merge)",
        "pass",
    ),
    "a pair born at the threshold": Fault(
        "train",
        "if total.weight >= self.threshold:",
        "if total.weight > self.threshold:",
        "cores",
    ),
    "pairs that fell below the threshold": Fault(
        "train",
        "if pair.count >= self.threshold:\n                sink",
        "if pair.count >= self.minimum:\n                sink",
        "cores",
    ),
    "short rows lost when cells are made compact": Fault(
        "train",
        "if target - state.row <= 2:",
        "if target - state.row <= 3:",
        "cores",
        "cells.pxd",
    ),
    "weights mixed up when cells are made compact": Fault(
        "train",
        "Run(<uint32_t> target, runs[state.run].weight)",
        "Run(<uint32_t> target, runs[0].weight)",
        "cores",
        "cells.pxd",
    ),
    "a sieve too coarse": Fault(
        "recount",
        "if counters[i] >= least:",
        "if counters[i] > least:",
        "cores",
    ),
    "a cell between two threads": Fault(
        "recount",
        "share.first = max(<size_t> 1, cells // count * number)",
        "share.first = max(<size_t> 1, cells // count * number + (number > 0))",
        "cores",
    ),
    "a wrong error position": Fault(
        "merge",
        "arguments.absent_byte(piece[count], position + count, ",
        "arguments.absent_byte(piece[count], position, ",
    ),
    "a wrong position behind a special token": Fault(
        "encode",
        "more = self.add_slice(&scanner, first)",
        "more = self.add_slice(&scanner, 0)",
        "special tokens",
    ),
    "whole pieces not looked up": Fault(
        "merge",
        "ids[0] = whole_piece(self.table, piece, size)",
        "ids[0] = NONE",
        "merge rules",
    ),
    "the last of equal ranks first": Fault(
        "merge",
        "            if ranks[i] < ranks[best]:",
        "            if ranks[i] <= ranks[best]:",
        "merge rules",
    ),
    "counting one too many": Fault(
        "encode",
        "return self.counted > self.most",
        "return self.counted >= self.most",
        "merge rules",
    ),
    "every character ends a word": Fault(
        "merge",
        "table.unit == WORD and place + width == size,",
        "table.unit == WORD,",
        "units",
    ),
}
# Of a module: the modules that call it and whose functions the engine has.
USERS = {
    "merge": ["encode"],
    "piece_table": ["count"],
    "recount": ["train"],
    "sequences": ["train"],
}
NO_FAULT = Fault("train", "cdef class Trainer:", "cdef class Trainer:")


def plant(package, fault):
    path = package / (fault.file or f"{fault.module}.pyx")
    source = path.read_text("utf-8")
    times = source.count(fault.right)
    assert times == 1, f"{fault.right!r} stands {times} times in {path.name}, not once"
    path.write_text(source.replace(fault.right, fault.wrong), "utf-8")


def built(folder, fault):
    """An engine with the fault."""
    return engine_with(fault.module, binary_with(folder, fault))


def binary_with(folder, fault):
    """The module with the fault, built in a folder of its own."""
    package = folder / "tokbpe" / "fast"
    package.mkdir(parents=True)
    for header in [*ROOT.glob("tokbpe/fast/*.pxd"), *ROOT.glob("tokbpe/fast/*.h")]:
        shutil.copy(header, package)
    shutil.copytree(ROOT / "tokbpe" / "fast" / "include", package / "include")
    (folder / "tokbpe" / "__init__.py").touch()
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "tokbpe" / "fast" / f"{fault.module}.pyx", package)
    plant(package, fault)
    setup = (ROOT / "setup.py").read_text("utf-8").replace('"-O3"', '"-O0"')
    (folder / "setup.py").write_text(setup, "utf-8")
    build = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert build.returncode == 0, build.stdout
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    return package / f"{fault.module}{suffix}"


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """By the name of the fault: an engine that has it, as a future, for it is being built."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {
            name: pool.submit(built, tmp_path_factory.mktemp("planted"), fault)
            for name, fault in {**FAULTS, "none": NO_FAULT}.items()
        }


def engine_with(module, binary):
    """The compiled engine with the functions of another build of a module."""
    copies = [loaded(module, binary)]
    for user in USERS.get(module, ()):
        # A file is loaded once only: what is loaded once more is another file.
        original = Path(importlib.import_module(f"tokbpe.fast.{user}").__file__)
        name = f"tokbpe.fast.{module}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, name, copies[0])
            copies.append(loaded(user, shutil.copy(original, binary.parent)))
    functions = {name: getattr(fast, name) for name in fast.__all__}
    for copy in copies:
        functions.update({name: getattr(copy, name) for name in functions if hasattr(copy, name)})
    return SimpleNamespace(**functions)


def loaded(module, binary):
    spec = importlib.util.spec_from_file_location(f"tokbpe.fast.{module}", binary)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def normal_run(twin, kinds):
    """As the engine itself is compared; only, no simpler example is looked for."""
    for kind in kinds:
        compare_random(kind, twin, phases=[Phase.generate], database=None)


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_caught(twins, name):
    twin = twins[name].result()
    kind = FAULTS[name].kind
    with pytest.raises(AssertionError, match="where the reference has"):
        normal_run(twin, KINDS if kind is None else [kind])


def test_a_copy_without_fault_agrees(twins):
    compare_random("trainings", twins["none"].result(), examples=200)
