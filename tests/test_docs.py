"""The API reference: what its builder makes of docstrings, and what it finds wrong."""

import html
import importlib
import re
import sys
import types
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / ".ci" / "reference"


@pytest.fixture(scope="module")
def builder():
    pytest.importorskip("pdoc")
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("pages")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def pages(builder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    assert builder.build(folder) == []
    return folder


def text_of(page):
    """A page without its tags."""
    return " ".join(html.unescape(re.sub("<[^>]*>", "", page.read_text("utf-8"))).split())


def test_the_pages(builder, pages):
    names = {name.replace(".", "/") + ".html" for name in builder.PAGES}
    found = {path.relative_to(pages).as_posix() for path in pages.rglob("*.html")}
    assert found == names | {"index.html"}


def test_what_is_shown_has_a_page_for_what_it_returns(pages):
    page = (pages / "tokbpe/show.html").read_text("utf-8")
    for returned in ("shown.html#Tokens", "learning.html#TrainingRun", "figures.html#Compression"):
        assert f'href="show/{returned}"' in page
    assert '<li><code><a href="#merge_tree">merge_tree</a></code>: the tree of merges' in page


def test_compiled_names_have_the_types_of_their_stubs(pages):
    text = text_of(pages / "tokbpe/fast.html")
    assert "encode_array( self, text: str | Buffer, *, threads: int | None = None" in text
    assert ") -> NDArray[np.uint32]:" in text
    assert "encode_array(text, EncodingTable table" not in text  # Cython's own signature


def test_types_are_as_written_and_linked(pages):
    page = (pages / "tokbpe.html").read_text("utf-8")
    assert "dtype[numpy.uint32]" not in page
    assert 'href="tokbpe/packing.html#Packed"' in page
    text = text_of(pages / "tokbpe.html")
    load = "cls, path: Path, engine: str | None = None, trust_pattern: bool = False"
    assert f"def load( {load}) -> Tokenizer:" in text
    assert "def to_huggingface(self, path: Path)" in text  # of a class without a page
    assert "source: Path | Iterable[Path], *, pattern: Any = ...," in text
    assert "allowed_special: Literal['all'] | " in text_of(pages / "tokbpe/compat.html")
    assert "Method(*args, **kwargs)" not in text_of(pages / "tokbpe/methods.html")


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("Text, up to 2**32 ids of <UNK>.", "Text, up to 2\\*\\*32 ids of &lt;UNK>."),
        ("See `a*b` and `<UNK>`.", "See `a*b` and `<UNK>`."),
        ("n, m: two\n    numbers.\nk: one.", "\n- **`n, m`**: two\n    numbers.\n- **`k`**: one."),
        ("Compression: of text.", "Compression: of text."),
        ("([1], 2) -> [b'x']", "    ([1], 2) -> [b'x']"),
        (">>> 1\n1\n\nMore.", "```pycon\n>>> 1\n1\n```\n\nMore."),
        ("Points\n  9. one\n 10. two", "Points\n9. one\n10. two"),
    ],
)
def test_docstrings_as_markdown(builder, docstring, markdown):
    assert builder.as_markdown(docstring) == markdown


def test_faults_are_found(builder, monkeypatch, tmp_path):
    module = types.ModuleType("tokbpe.faulty", "There is no `tokbpe.Tokenizer.absent`.")
    exec("def silent(): pass\n", vars(module))
    monkeypatch.setitem(sys.modules, "tokbpe.faulty", module)
    monkeypatch.setitem(builder.PAGES, "tokbpe.faulty", ("silent", "gone"))
    assert builder.build(tmp_path) == [
        "tokbpe.faulty has no gone",
        "tokbpe.faulty.silent has no docstring",
        "tokbpe.faulty: the name tokbpe.Tokenizer.absent leads nowhere",
    ]
