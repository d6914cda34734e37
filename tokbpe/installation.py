"""What is installed here: versions, and how the engine was compiled."""

import platform
from collections.abc import Iterator
from typing import Any

import numpy as np

from tokbpe import __version__, engines

C_STANDARDS = {199901: "C99", 201112: "C11", 201710: "C17", 202311: "C23"}


def lines() -> Iterator[str]:
    """What `tokbpe --version` says: the first line names the version alone."""
    yield f"tokbpe {__version__}"
    yield (
        f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.system()} {platform.machine()}"
    )
    try:
        build = engines.build()
    except (ImportError, ValueError) as error:  # not built, or TOKBPE_SIMD is wrong
        yield f"the compiled engine does not load: {error}"
        return
    yield f"compiled engine: {', '.join(compilation(build))}"
    yield f"SIMD: {build['variant']} in use, of {', '.join(build['variants'])}"


def compilation(build: dict[str, Any]) -> Iterator[str]:
    """The parts of a line about how the engine was compiled."""
    if build["checked"]:
        yield "debug build with bounds and overflow checks"
    yield "optimized" if build["optimized"] else "not optimized"
    if build["sanitizer"]:
        yield f"sanitized by {build['sanitizer']}"
    yield build["compiler"]
    standard = build["c_standard"]
    if standard:
        yield C_STANDARDS.get(standard, f"C of {standard}")
    yield f"Cython {build['cython']}"
