"""How this engine was compiled. What is told here stands in the compiled module itself."""

from libc.limits cimport UINT_MAX


cdef extern from "build.h":
    const char *TOKBPE_COMPILER
    const char *TOKBPE_SANITIZER
    const long TOKBPE_C_STANDARD
    const bint TOKBPE_OPTIMIZED
    const bint TOKBPE_WITHOUT_GIL


cdef extern from *:
    const unsigned long CYTHON_HEX_VERSION


def facts():
    """The facts by name; see the stub."""
    return {
        "compiler": TOKBPE_COMPILER.decode("utf-8", "replace").strip(),
        "c_standard": TOKBPE_C_STANDARD,
        "cython": ".".join(str(CYTHON_HEX_VERSION >> shift & 255) for shift in (24, 16, 8)),
        "optimized": TOKBPE_OPTIMIZED,
        "checked": overflow_is_seen(UINT_MAX, 1),
        "sanitizer": TOKBPE_SANITIZER.decode(),
        "without_gil": TOKBPE_WITHOUT_GIL,
    }


cdef bint overflow_is_seen(unsigned int number, unsigned int more):
    """Whether the checks of the debug build are there, for a sum that is too large."""
    try:
        number += more
    except OverflowError:
        return True
    return False
