"""Build of the example: `python setup.py build_ext --inplace`, with tokbpe installed."""

import sys
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
        include_path=sys.path,  # where Cython finds tokbpe's own files
        compiler_directives={"language_level": 3},
    ),
)
