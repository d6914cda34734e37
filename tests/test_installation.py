"""What `tokbpe --version` says, what `import tokbpe` does not import, what the modules declare."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import tokbpe
from tokbpe import engines, installation
from tokbpe.fast import build

pytestmark = pytest.mark.core

HEADERS = Path(__file__).parents[1] / "tokbpe" / "fast"  # no wheel has them
COMPILER = (sysconfig.get_config_var("CC") or "cl").split()[0]
WITH_GNU_OPTIONS = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which(COMPILER) is None or not HEADERS.is_dir(),
    reason="needs a compiler with GNU's options and the headers",
)

RELEASE = {
    "compiler": "GCC 12.2.0",
    "c_standard": 201710,
    "cython": "3.2.9",
    "optimized": True,
    "checked": False,
    "sanitizer": "",
    "variants": ("avx2", "scalar", "exact"),
    "variant": "scalar",
}
PRINTING = r"""
#include <stdio.h>
#include "build.h"

int main(void)
{
    printf("%s|%ld|%d|%s|%d", TOKBPE_COMPILER, TOKBPE_C_STANDARD, TOKBPE_OPTIMIZED,
           TOKBPE_SANITIZER, TOKBPE_WITHOUT_GIL);
}
"""

IMPORTING = """
import importlib, sys, numpy
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(*set(sys.modules) - before, sep="\\n")
"""
# Each is slow to import, and of use to few calls.
NOT_IMPORTED = {
    "concurrent.futures",
    "html",
    "importlib.metadata",
    "importlib.resources",
    "logging",
    "matplotlib",
    "multiprocessing",
    "pathlib",
    "pyarrow",
    "random",
    "rich",
    "secrets",
    "shutil",
    "tempfile",
    "tokbpe.cli",
    "tokbpe.compat",
    "tokbpe.page",
    "tokbpe.show",
    "tqdm",
    "zipfile",
    "zstandard",
}


@pytest.mark.parametrize(
    ("module", "not_imported"),
    [
        ("tokbpe", NOT_IMPORTED | {"tokbpe.fast", "tokbpe.reference"}),
        ("tokbpe.fast", NOT_IMPORTED),
    ],
)
def test_importing_is_quick(tmp_path, module, not_imported):
    found = subprocess.run(
        [sys.executable, "-c", IMPORTING, module],
        cwd=tmp_path,  # not beside sources that are not built
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    assert "tokbpe.tokenizer" in found.stdout.split()
    assert not_imported & {*found.stdout.split()} == set()


def test_versions():
    first, second, *_ = installation.lines()
    assert first == f"tokbpe {tokbpe.__version__}"
    assert f" {sys.version.split()[0]}, NumPy {np.__version__}, " in second


def test_the_build_is_that_of_the_compiled_modules():
    *_, compiled, scanning = installation.lines()
    facts = build.facts()
    assert compiled.startswith("compiled engine: ")
    assert f"{facts['compiler']}, " in compiled
    assert any(character.isdigit() for character in facts["compiler"])
    assert ("debug" in compiled) == facts["checked"]
    scanners = sys.modules["tokbpe.fast.split"]  # which the function of this name hides
    assert scanning == f"SIMD: {scanners.VARIANT} in use, of {', '.join(scanners.VARIANTS)}"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "optimized, GCC 12.2.0, C17, Cython 3.2.9"),
        (
            {"optimized": False, "checked": True, "c_standard": 0},
            "debug build with bounds and overflow checks, not optimized, GCC 12.2.0, Cython 3.2.9",
        ),
        (
            {"sanitizer": "AddressSanitizer", "c_standard": 202000},
            "optimized, sanitized by AddressSanitizer, GCC 12.2.0, C of 202000, Cython 3.2.9",
        ),
    ],
)
def test_how_a_build_is_told(monkeypatch, changes, line):
    monkeypatch.setattr(engines, "build", lambda: RELEASE | changes)
    assert [*installation.lines()][2:] == [
        f"compiled engine: {line}",
        "SIMD: scalar in use, of avx2, scalar, exact",
    ]


def test_an_engine_that_is_not_built_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokbpe.fast.build", None)
    *_, last = installation.lines()
    assert last.startswith("the compiled engine does not load: ")


def test_a_wrong_variant_is_told(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tokbpe", "--version"],
        cwd=tmp_path,  # not beside sources that are not built
        capture_output=True,
        env={**os.environ, "TOKBPE_SIMD": "mmx"},
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "does not load: TOKBPE_SIMD on this machine must be one of " in done.stdout


@WITH_GNU_OPTIONS
@pytest.mark.parametrize(
    ("options", "standard", "optimized", "sanitizer"),
    [
        (["-std=c11", "-O0"], 201112, 0, ""),
        (["-std=gnu17", "-O3", "-DCYTHON_FREETHREADING_COMPATIBLE=0"], 201710, 1, ""),
        (["-std=c99", "-O1", "-fsanitize=address"], 199901, 1, "AddressSanitizer"),
        (["-std=c99", "-O1", "-fsanitize=thread"], 199901, 1, "ThreadSanitizer"),
    ],
)
def test_the_compiler_tells_about_itself(tmp_path, options, standard, optimized, sanitizer):
    source, done = tmp_path / "printing.c", tmp_path / "printing.i"
    source.write_text(PRINTING)
    # Preprocessed only: sanitized programs do not run everywhere.
    subprocess.run([COMPILER, *options, "-E", "-P", "-I", HEADERS, source, "-o", done], check=True)
    last = done.read_text().rpartition("printf(")[2]
    name = '"Clang "' if "clang" in COMPILER else '"GCC "'
    assert name in last
    assert f"{standard}L, {optimized}," in last
    assert (sanitizer or '"",') in last


def test_no_module_says_that_it_can_do_without_the_gil():
    """That is not proved by tests, so a Python without it takes it again for tokbpe."""
    assert build.facts()["without_gil"] is False
