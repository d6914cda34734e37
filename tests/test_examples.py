"""Every example in a docstring of the package, compiled modules included, gives what it shows."""

import doctest
import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import tokbpe
from tokbpe import PieceCounts, fast, methods

SOURCES = Path(__file__).parents[1] / "tokbpe"
MODULES = ["tokbpe"] + sorted(
    found.name
    for found in pkgutil.walk_packages(tokbpe.__path__, "tokbpe.")
    if not found.name.endswith("__main__")
)


def examples(name):
    """The docstrings of a module with examples; these get no names that they do not import."""
    module = importlib.import_module(name)
    found = doctest.DocTestFinder(exclude_empty=True).find(module, name, globs={})
    return [test for test in found if test.examples]


TESTS = [test for name in MODULES for test in examples(name)]


@pytest.fixture(autouse=True)
def anywhere(tmp_path, monkeypatch):
    """Examples write files, and register methods."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_an_example_gives_what_it_shows(test):
    result = doctest.DocTestRunner().run(test)
    assert result.attempted == len(test.examples)
    assert result.failed == 0


@pytest.mark.skipif(not SOURCES.is_dir(), reason="there are no sources")
def test_no_example_is_left_out():
    """As many statements begin in the sources as are run."""
    sources = [path for path in SOURCES.rglob("*") if path.suffix in (".py", ".pyx", ".pyi")]
    begun = sum(
        len(re.findall(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE))
        for path in sources
    )
    assert begun == sum(len(test.examples) for test in TESTS) > 100


def test_compiled_modules_have_some():
    assert any(test.name == "tokbpe.fast.encoder.Encoder" for test in TESTS)
    assert fast.Encoder.__doc__.count(">>> ") == 5


def test_a_wrong_example_is_seen(capsys):
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 1


# Spark, in the docstring of `to_parquet`


class Column:
    """A column as Spark's functions name it: what is done to it, and its new name."""

    def __init__(self, name, function):
        self.name, self.function = name, function

    def alias(self, name):
        assert name == self.name
        return self


class Spark:
    """In place of a Spark session: what the docstring calls, done by pyarrow."""

    def __init__(self):
        self.read = self.write = self
        self.table = None

    def parquet(self, path):
        if self.table is None:
            return Spark.of(self.arrow().read_table(path))
        Path(path).mkdir()
        self.arrow().write_table(self.table, Path(path, "part-00000.parquet"))

    @classmethod
    def of(cls, table):
        made = cls()
        made.table = table
        return made

    @staticmethod
    def arrow():
        import pyarrow.parquet

        return pyarrow.parquet

    def groupBy(self, name):
        self.groups = self.table.group_by(name)
        return self

    def agg(self, *columns):
        found = self.groups.aggregate([(column.name, column.function) for column in columns])
        names = {f"{column.name}_{column.function}": column.name for column in columns}
        return Spark.of(
            found.rename_columns([names.get(name, name) for name in found.schema.names])
        )


def indented(docstring):
    """The blocks of code in a docstring."""
    return [
        textwrap.dedent(block)
        for block in inspect.cleandoc(docstring).split("\n\n")
        if block.startswith("    ")
    ]


def test_counts_that_spark_adds_up(monkeypatch):
    pytest.importorskip("pyarrow")
    _, python = indented(PieceCounts.to_parquet.__doc__)  # before it, DuckDB's: test_scale_out.py
    texts = ["low lower", "lowest low", "newest\n"]
    Path("counts").mkdir()
    for part, text in enumerate(texts):
        PieceCounts(text, pattern="gpt2").to_parquet(f"counts/{9 - part}.parquet", part=part)
    functions = SimpleNamespace(
        sum=lambda name: Column(name, "sum"), min=lambda name: Column(name, "min")
    )
    exec(python, {"spark": Spark(), "F": functions})
    expected = PieceCounts(texts, pattern="gpt2")
    found = PieceCounts.from_parquet("total", pattern="gpt2")
    assert (found, [*found]) == (expected, [*expected])
