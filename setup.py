"""Build of the compiled engine. Everything else about the package stands in pyproject.toml.

TOKBPE_DEBUG_BUILD=1    bounds, initialization and overflow checks, allocations counted, -O0 -g
TOKBPE_SANITIZE=1       AddressSanitizer and UndefinedBehaviorSanitizer (gcc, clang)
TOKBPE_SANITIZE=thread  ThreadSanitizer (gcc, clang)
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("TOKBPE_DEBUG_BUILD") == "1"
SANITIZERS = {
    "": [],
    "0": [],
    "1": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
SANITIZE = os.environ.get("TOKBPE_SANITIZE", "")
if SANITIZE not in SANITIZERS:
    raise SystemExit(f"TOKBPE_SANITIZE must be 0, 1 or thread, not {SANITIZE!r}")
SANITIZER = SANITIZERS[SANITIZE]

DIRECTIVES = {
    "language_level": 3,
    "binding": True,
    "embedsignature": True,
    "autotestdict": False,
    "wraparound": False,
    "cdivision": True,
    "boundscheck": DEBUG,
    "initializedcheck": DEBUG,
    "overflowcheck": DEBUG,
}

# Each variant has a folder of its own, so that no file of one gets into another.
BUILD = f"build/{'debug' if DEBUG else 'release'}"
if SANITIZER:
    BUILD += "-threads" if SANITIZE == "thread" else "-sanitized"


def flags():
    if sys.platform == "win32":
        if DEBUG or SANITIZER:
            raise SystemExit("the debug and the sanitized build need gcc or clang")
        return [], []
    compiling = ["-O0", "-g"] if DEBUG else ["-O3", "-g0"]
    if not SANITIZER:
        return compiling, []
    # Python's own flags have -fwrapv, with which overflow of signed numbers would not be seen.
    return [
        *compiling,
        "-O1",
        "-g",
        "-fno-wrapv",
        "-fno-omit-frame-pointer",
        *SANITIZER,
    ], SANITIZER


def extensions():
    compiling, linking = flags()
    headers = [header.as_posix() for header in Path("tokbpe/fast").rglob("*.h")]
    for source in sorted(Path("tokbpe/fast").glob("*.pyx")):
        yield Extension(
            f"tokbpe.fast.{source.stem}",
            [source.as_posix()],
            depends=headers,  # Cython knows of those only that it includes itself
            include_dirs=["tokbpe/fast/include"],
            define_macros=[("TOKBPE_DEBUG_BUILD", "1")] * DEBUG,
            extra_compile_args=compiling,
            extra_link_args=linking,
        )


class BuildExtensions(build_ext):
    def copy_extensions_to_source(self):
        self.force = True  # else a newer file of another variant would stay in the tree
        super().copy_extensions_to_source()


setup(
    ext_modules=cythonize(
        list(extensions()), compiler_directives=DIRECTIVES, build_dir=f"{BUILD}/c"
    ),
    cmdclass={"build_ext": BuildExtensions},
    options={
        "build": {"build_base": BUILD},
        "build_ext": {"parallel": os.cpu_count()},
    },
)
