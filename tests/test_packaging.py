"""What an installation of the package holds."""

import re
from fnmatch import fnmatch
from importlib import metadata, resources
from pathlib import Path

import pytest

import tokbpe
from tokbpe import page

ROOT = Path(__file__).parents[1]
FOR_COMPILED_CALLERS = ("capi.pxd", "include/tokbpe.h")  # see `get_include` and `capi.pxd`
COMPILED = sorted(path.stem for path in (ROOT / "tokbpe" / "fast").glob("*.pyx"))


def test_the_version_is_that_of_the_package():
    assert metadata.version("tokbpe") == tokbpe.__version__


def test_the_command_is_installed():
    (command,) = metadata.entry_points(group="console_scripts", name="tokbpe")
    assert callable(command.load())


def test_types_are_shipped():
    assert resources.files("tokbpe").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_module_has_its_stub(name):
    assert resources.files("tokbpe").joinpath("fast", f"{name}.pyi").is_file()


@pytest.mark.parametrize("name", (page.TEMPLATE, page.STYLE, *page.SCRIPTS))
def test_the_files_of_the_page_are_shipped(name):
    assert resources.files("tokbpe.page").joinpath(name).is_file()


@pytest.mark.parametrize("name", FOR_COMPILED_CALLERS)
def test_what_compiled_callers_need_is_shipped(name):
    assert resources.files("tokbpe").joinpath("fast", name).is_file()


def test_what_is_no_python_is_shipped():
    """But for the parts of the engine, of which an installation has the compiled modules."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]
    assert patterns["tokbpe.fast"] == [*FOR_COMPILED_CALLERS]
    no_data = {".py", ".pyx", ".pxd", ".h", ".pyc", ".c", ".so", ".pyd"}
    others = {
        path.name
        for path in (ROOT / "tokbpe").rglob("*")
        if path.is_file() and path.suffix not in no_data
    }
    assert {page.TEMPLATE, page.STYLE, *page.SCRIPTS} < others
    unknown = [name for name in others if not any(fnmatch(name, known) for known in patterns["*"])]
    assert unknown == []


def test_the_tests_compile_with_the_cython_of_the_build():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tests_need = project["project"]["optional-dependencies"]["test"]
    assert set(project["build-system"]["requires"]) <= set(tests_need)


def test_the_tests_of_what_is_promised_are_there():
    promises = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What is promised")[2]
    named = re.findall(r"`((?:benchmarks/)?\w+\.py)`", promises)
    assert len(named) > 10
    folders = {True: ROOT, False: ROOT / "tests"}
    assert [name for name in named if not (folders["/" in name] / name).is_file()] == []
