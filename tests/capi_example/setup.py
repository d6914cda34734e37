"""Build of the example: `python setup.py build_ext --inplace`, with tokbpe installed."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

import tokbpe.fast

SOURCES = ["cython_loader.pyx", "native_calls.c"]

setup(
    name="capi_example",
    ext_modules=cythonize(
        [
            Extension(
                Path(source).stem,
                [source],
                include_dirs=[tokbpe.fast.get_include()],
            )
            for source in SOURCES
        ],
        compiler_directives={"language_level": 3},
    ),
)
