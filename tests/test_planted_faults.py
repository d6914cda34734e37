"""The harness is seen to fail: copies of the compiled engine with one fault each are caught.

A copy is one module of `tokbpe.fast`, built anew from changed text. All else is the engine that
is tested, with the functions of that module put in the place of its own; those of other modules
that call it are loaded once more, so that they call the copy. A module is built once, with all of
its faults in it, of which each copy has one turned on.
"""

import importlib.machinery
import importlib.util
import os
import re
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
    shutil.which(COMPILER) is None,
    reason=f"the compiler {COMPILER} is not on this machine",
)


class Fault(NamedTuple):
    module: str
    right: str  # text that stands once in the module, or in another file that it includes
    wrong: str  # and what is put in its place, or in that of the expression between « and »
    kind: str | None = None  # of the cases that show it; None: in a run of all of them
    file: str | None = None


FAULTS = {
    "tie rule turned": Fault(
        "train",
        "return «x.order < y.order»",
        "x.order > y.order",
        file="queue.pxd",
    ),
    "overlap in runs": Fault(
        "recount",
        "tally.count += «run.weight»\n            tally.size += 1\n            left = right",
        "run.weight * (cells[position - 2] != right)",
        file="tallies.pxd",
    ),
    "a stale count": Fault(
        "train",
        "if «pair.count == top.count»:",
        "pair.count >= self.threshold",
    ),
    "32-bit weights": Fault(
        "sequences",
        "self.own_weights[index] = «weight»",
        "<uint32_t> weight",
    ),
    "a boundary moved": Fault(
        "sequences",
        "self.own_ends[index] = «self.symbol_count»",
        "self.symbol_count - <size_t> ("
        "index == 0 and len(row) > 2 and len(rows) > 1 and len(rows[1]) > 1)",
    ),
    "what stood between two new tokens": Fault(
        "train",
        "merge.between += «weight»",
        "0",
        file="update.pxd",
    ),
    "the neighbor that is pending in the end": Fault(
        "train",
        "settle_pending(self.corpus.narrow, &self.right_side, &merge)",
        "pass",
    ),
    "a pair born at the threshold": Fault(
        "train",
        "if «total.weight >= self.threshold»:",
        "total.weight > self.threshold",
        "cores",
    ),
    "pairs that fell below the threshold": Fault(
        "train",
        "if «pair.count >= self.threshold»:\n                sink",
        "pair.count >= self.minimum",
        "cores",
    ),
    "short rows lost when cells are made compact": Fault(
        "train",
        "if target - state.row <= «2»:",
        "3",
        "cores",
        "cells.pxd",
    ),
    "weights mixed up when cells are made compact": Fault(
        "train",
        "Run(<uint32_t> target, «runs[state.run].weight»)",
        "runs[0].weight",
        "cores",
        "cells.pxd",
    ),
    "a sieve too coarse": Fault(
        "recount",
        "if «counters[i] >= least»:",
        "counters[i] > least",
        "cores",
    ),
    "a cell between two threads": Fault(
        "recount",
        "share.first = max(<size_t> 1, «cells // count * number»)",
        "cells // count * number + (number > 0)",
        "cores",
    ),
    "a wrong error position": Fault(
        "merge",
        "arguments.absent_byte(piece[count], «position + count», ",
        "position",
    ),
    "a wrong position behind a special token": Fault(
        "encode",
        "more = self.add_slice(&scanner, «first»)",
        "0",
        "special tokens",
    ),
    "whole pieces not looked up": Fault(
        "merge",
        "ids[0] = «whole_piece(self.table, piece, size)»",
        "NONE",
        "merge rules",
    ),
    "the last of equal ranks first": Fault(
        "merge",
        "            if «ranks[i] < ranks[best]»:",
        "ranks[i] <= ranks[best]",
        "merge rules",
    ),
    "counting one too many": Fault(
        "encode",
        "return «self.counted > self.most»",
        "self.counted >= self.most",
        "merge rules",
    ),
    "every character ends a word": Fault(
        "merge",
        "table.unit == WORD and «place + width == size»,",
        "place + width <= size",
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


def plant(path, right, wrong):
    source = path.read_text("utf-8")
    times = source.count(right)
    assert times == 1, f"{right!r} stands {times} times in {path.name}, not once"
    path.write_text(source.replace(right, wrong), "utf-8")


def copy_of(folder, module):
    """The files that a module is built from."""
    package = folder / "tokbpe" / "fast"
    package.mkdir(parents=True)
    for header in [*ROOT.glob("tokbpe/fast/*.pxd"), *ROOT.glob("tokbpe/fast/*.h")]:
        shutil.copy(header, package)
    shutil.copytree(ROOT / "tokbpe" / "fast" / "include", package / "include")
    (folder / "tokbpe" / "__init__.py").touch()
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "tokbpe" / "fast" / f"{module}.pyx", package)
    setup = (ROOT / "setup.py").read_text("utf-8").replace('"-O3"', '"-O0"')
    (folder / "setup.py").write_text(setup, "utf-8")
    return package


def binary_of(package, module):
    build = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=package.parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert build.returncode == 0, build.stdout
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    return package / f"{module}{suffix}"


def binary_with(folder, fault):
    """A module with one fault, for good, built in a folder of its own."""
    package = copy_of(folder, fault.module)
    plant(package / (fault.file or f"{fault.module}.pyx"), fault.right, fault.wrong)
    return binary_of(package, fault.module)


NUMBERS = {name: number for number, name in enumerate(FAULTS, start=1)}
DECLARED = 'cdef extern from "planted.h":\n    int planted\n\n'
TURNING_ON = "\n\ndef turn_on(int number):\n    global planted\n    planted = number\n"


def turned_on_by(number, fault):
    """What stands in the file, and the text by which the fault is there when it is turned on."""
    if fault.wrong == "pass":
        return fault.right, f"if planted != {number}: {fault.right}"
    before, right, behind = re.split("[«»]", fault.right)
    either = f"(({fault.wrong}) if planted == {number} else ({right}))"
    return before + right + behind, before + either + behind


def binary_with_faults(folder, module):
    """A module with all of its faults, none of which is turned on."""
    package = copy_of(folder, module)
    (package / "planted.h").write_text("static int planted = 0;\n")
    main = package / f"{module}.pyx"
    files = {main}
    for name, fault in FAULTS.items():
        if fault.module == module:
            path = package / fault.file if fault.file else main
            plant(path, *turned_on_by(NUMBERS[name], fault))
            files.add(path)
    for path in files:  # in front of all but what the file says about itself
        source = path.read_text("utf-8")
        first = re.search("^(from|cimport|cdef)", source, re.MULTILINE).start()
        text = source[:first] + DECLARED + source[first:] + TURNING_ON * (path == main)
        path.write_text(text, "utf-8")
    return binary_of(package, module)


@pytest.fixture(scope="module")
def binaries(tmp_path_factory):
    """By the name of the module: its file, as a future, for it is being built."""
    modules = dict.fromkeys(fault.module for fault in FAULTS.values())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {
            name: pool.submit(binary_with_faults, tmp_path_factory.mktemp("planted"), name)
            for name in modules
        }


def twin(binaries, module, number, folder):
    """An engine with one fault; with number 0, with none."""
    return engine_with(module, shutil.copy(binaries[module].result(), folder), number)


def engine_with(module, binary, number=None):
    """The compiled engine with the functions of another build of a module; a fault turned on."""
    copies = [loaded(module, binary)]
    if number is not None:
        copies[0].turn_on(number)
    for user in USERS.get(module, ()):
        # A file is loaded once only: what is loaded once more is another file.
        original = Path(importlib.import_module(f"tokbpe.fast.{user}").__file__)
        name = f"tokbpe.fast.{module}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, name, copies[0])
            copies.append(loaded(user, shutil.copy(original, Path(binary).parent)))
    functions = {name: getattr(fast, name) for name in fast.__all__}
    for copy in copies:
        functions.update({name: getattr(copy, name) for name in functions if hasattr(copy, name)})
    return SimpleNamespace(**functions)


def loaded(module, binary):
    spec = importlib.util.spec_from_file_location(f"tokbpe.fast.{module}", binary)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def normal_run(engine, kinds):
    """As the engine itself is compared; only, no simpler example is looked for."""
    for kind in kinds:
        compare_random(kind, engine, phases=[Phase.generate], database=None)


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_caught(binaries, tmp_path, name):
    fault = FAULTS[name]
    engine = twin(binaries, fault.module, NUMBERS[name], tmp_path)
    with pytest.raises(AssertionError, match="where the reference has"):
        normal_run(engine, KINDS if fault.kind is None else [fault.kind])


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("train", "trainings"),
        ("sequences", "trainings"),
        ("recount", "cores"),
        ("merge", "merge rules"),
        ("encode", "special tokens"),
    ],
)
def test_a_copy_without_fault_agrees(binaries, tmp_path, module, kind):
    examples = 200 if module == "train" else 60
    compare_random(kind, twin(binaries, module, 0, tmp_path), examples=examples)
