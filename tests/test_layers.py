"""Who may import whom: data flows along one line and never back.

A new module gets its place in ROWS here before the tests pass.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tokbpe"

# Each module may import from the rows before its own.
ROWS = (
    {
        "arguments",
        "aside",
        "cached",
        "files",
        "parquet_thrift",
        "rows",
        "symbols",
        "threads",
        "unicode_9_table",
        "unicode_table",
    },
    {"parquet_pages", "ranks", "unicode"},
    {"parquet_deltas"},
    {"parquet"},
    {"expansion", "normalize", "progress", "unicode_generate"},
    {"backtracking", "spellings"},
    {"patterns", "special"},
    {"reading", "tables"},
    {"reference"},
    {"fast"},
    {"engines"},
    {"bounds"},
    {"vocabulary"},
    {"record", "sources"},
    {"corpus"},
    {"count_files"},
    {"count_work"},
    {"counting"},
    {"methods"},
    {"continuing"},
    {"decoding", "encoding"},
    {"blocks", "native", "offsets", "states", "tally", "written"},
    {"encoded", "equivalence"},
    {"formats"},
    {"page", "tokenizer_files"},
    {"tokenizer"},
    {"compat", "metrics", "orders", "parts", "shards", "stream"},
    {"shard_work", "show", "tokens"},
    {"packing", "sharding"},
    {"batches"},
    {"check", "demo", "exercises"},
    {"__init__"},
    {"describe", "installation"},
    {"usage"},
    {"cli"},
    {"__main__"},
)
HEIGHT = {module: height for height, row in enumerate(ROWS) for module in row}
# What only some may import, whatever their row.
ONLY_FOR = {
    "reference": {"fast", "engines"},
    "fast": {"engines"},
    "unicode_generate": set(),
}
# What may be imported when a module is loaded; an extra is imported where it is used.
ALWAYS_THERE = {*sys.stdlib_module_names, "cython", "libc", "cpython", "numpy", "tokbpe"}

CYTHON_IMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+c?import\s+(\([^)]*\)|.*)|c?import\s+([\w., ]+))", re.MULTILINE
)


def sources() -> list[Path]:
    return sorted(
        path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyi", ".pyx", ".pxd")
    )


def module_of(path: Path) -> str:
    """The module or subpackage of `tokbpe` that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def python_imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, list[str]]]:
    """Each import as what it names before and after the word `import`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((name.name, []) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), [name.name for name in node.names]


def cython_imports(source: str) -> Iterator[tuple[str, list[str]]]:
    for origin, names, modules in CYTHON_IMPORT.findall(source):
        if origin:
            yield origin, re.findall(r"\w+", names)
        else:
            yield from ((module.split()[0], []) for module in modules.split(","))


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is loaded."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
            yield from outside_functions(child)


def all_but_views(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of what a notebook calls to show an object: that imports `show`, which
    stands above, and nothing depends on it."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and child.name == "_repr_html_"):
            yield child
            yield from all_but_views(child)


def imports(path: Path) -> Iterator[tuple[str, list[str]]]:
    source = path.read_text(encoding="utf-8")
    if path.suffix in (".pyx", ".pxd"):
        yield from cython_imports(source)
    else:
        yield from python_imports(all_but_views(ast.parse(source)))


def imported_modules(path: Path) -> set[str]:
    """The modules of `tokbpe` that a file imports, other than its own."""
    folder = ["tokbpe", *path.relative_to(PACKAGE).parts[:-1]]
    found = set()
    for origin, names in imports(path):
        relative = len(origin) - len(origin.lstrip("."))
        parts = [part for part in origin.split(".") if part]
        if relative:
            parts = folder[: len(folder) + 1 - relative] + parts
        if parts == ["tokbpe"]:
            found |= {name if name in HEIGHT else "__init__" for name in names or ["__init__"]}
        elif parts[0] == "tokbpe":
            found.add(parts[1])
    return found - {module_of(path)}


def breaches(path: Path) -> list[str]:
    importer = module_of(path)
    wrong = []
    for module in sorted(imported_modules(path)):
        if HEIGHT[module] >= HEIGHT[importer]:
            wrong.append(f"{importer} stands before {module}, or beside it, and imports it")
        if module in ONLY_FOR and importer not in ONLY_FOR[module]:
            wrong.append(f"{importer} imports {module}, which is not for it")
    return wrong


def test_every_module_has_its_place():
    assert {module_of(path) for path in sources()} <= HEIGHT.keys()


def test_contributing_tells_the_role_of_every_module():
    table = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:tokbpe/)?(\w+)(?:\.py|/)`", table))
    assert {module_of(path) for path in sources()} - {"__init__", "__main__"} <= named


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_what_stands_before_it(path):
    assert breaches(path) == []


def test_the_reference_needs_the_standard_library_alone():
    path = PACKAGE / "reference.py"
    assert imported_modules(path) == {
        "arguments",
        "patterns",
        "ranks",
        "special",
        "tables",
    }
    assert {origin.split(".")[0] for origin, _ in imports(path)} <= {
        *sys.stdlib_module_names,
        "tokbpe",
    }


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_extras_are_imported_where_they_are_used(path):
    source = path.read_text(encoding="utf-8")
    if path.suffix in (".pyx", ".pxd"):
        found = cython_imports(source)
    else:
        found = python_imports(outside_functions(ast.parse(source)))
    assert {origin.split(".")[0] for origin, _ in found} - {""} <= ALWAYS_THERE


def included(path: Path) -> set[str]:
    """The headers that a Cython source has, also by what it imports."""
    source = path.read_text(encoding="utf-8")
    found = set(re.findall(r'cdef extern from "([^"]+)"', source))
    for declared in re.findall(r"^from \.(\w+) cimport", source, re.MULTILINE):
        found |= included(path.with_name(f"{declared}.pxd"))
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("fast/*.pyx")), ids=lambda path: path.stem)
def test_modules_that_hash_have_the_secret_of_the_process(path):
    hashes = not included(path).isdisjoint({"hash.h", "words.h"})
    assert ("set_seeds()" in path.read_text(encoding="utf-8").splitlines()) == hashes


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("vocabulary.py", "from tokbpe.tokenizer import Tokenizer", {"tokenizer"}),
        ("vocabulary.py", "from tokbpe import special, tokenizer", {"special", "tokenizer"}),
        ("vocabulary.py", "import tokbpe", {"__init__"}),
        ("vocabulary.py", "from tokbpe import Tokenizer", {"__init__"}),
        ("vocabulary.py", "def f():\n    from .show import page", {"show"}),
        ("vocabulary.py", "class C:\n  def _repr_html_(self):\n    from . import show", set()),
        ("formats/gpt2.py", "from .tiktoken import read", set()),
        ("formats/gpt2.py", "from ..show import page", {"show"}),
        ("fast/train.pyx", "from .table cimport (\n    a,\n    b,\n)", set()),
        (
            "fast/train.pyx",
            "from tokbpe import (\n    arguments,\n    show,\n)",
            {"arguments", "show"},
        ),
        ("fast/train.pyx", "cimport tokbpe.fast.table, libc.math", set()),
        ("fast/train.pyx", "import tokbpe.show as show", {"show"}),
    ],
)
def test_imports_are_found(tmp_path, monkeypatch, name, source, found):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert imported_modules(path) == found


@pytest.mark.parametrize(
    ("name", "source", "breach"),
    [
        ("vocabulary.py", "from tokbpe import tokenizer", "vocabulary stands before tokenizer"),
        ("vocabulary.py", "from tokbpe import corpus", "vocabulary stands before corpus"),
        ("corpus.py", "from tokbpe.fast import split", "corpus imports fast"),
        ("engines.py", "from tokbpe import fast, reference", None),
    ],
)
def test_a_breach_is_seen(tmp_path, monkeypatch, name, source, breach):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / name).write_text(source)
    assert [text.startswith(breach) for text in breaches(tmp_path / name)] == [True] * bool(breach)
