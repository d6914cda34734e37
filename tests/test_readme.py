"""All code blocks of the README, in order, and the two commands it starts with."""

import contextlib
import doctest
import glob
import hashlib
import importlib.util
import random
import re
import shlex
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tokbpe import PieceCounts, Tokenizer, cli, fast
from tokbpe.formats import tiktoken_known

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
RUN = {"bash", "c", "pycon", "python"}
COMPILER = (sysconfig.get_config_var("CC") or "cl").split()[0]


def blocks(language):
    return [text for found, text in BLOCKS if found == language]


def test_there_is_a_test_for_every_kind_of_block():
    assert {language for language, _ in BLOCKS} == RUN
    assert README.count("```") == 2 * len(BLOCKS)


@pytest.mark.parametrize("example", blocks("pycon"))
def test_an_example_gives_what_it_shows(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted > 0
    assert result.failed == 0


# Commands


def test_the_first_thing_is_the_two_commands():
    new = "python3 -m venv .venv && . .venv/bin/activate && pip install"
    assert blocks("bash")[:2] == [f"{new} . && tokbpe demo\n", f'{new} -e ".[test]" && pytest\n']
    assert README.split("```")[0].count("\n") == 4


def commands():
    """Each line of the blocks, and what stands in the text as a command on files."""
    lines = [line for block in blocks("bash")[2:] for line in block.splitlines()]
    inline = re.findall(r"`(tokbpe [^`]*)`", re.sub(r"```.*?```", "", README, flags=re.DOTALL))
    complete = [" ".join(line.split()) for line in inline if re.search(r"\w\.\w+ ", line)]
    return lines + [line for line in complete if not re.search(r"\b[A-Z]{3,}\b", line)]


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A folder with the files that the commands read."""
    monkeypatch.chdir(tmp_path)
    words = ["cat", "dog", "mat", "newest", "lower", "sat", "on", "the", "a", "Grüße"]
    source = random.Random(0)
    text = "".join(" ".join(source.choices(words, k=8)) + ".\n" for _ in range(200))
    for name in ("book.txt", "corpus.txt", "english.txt", "german.txt", "corpus/a.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    shutil.copytree("corpus", "texts")
    Path("chapter.txt").write_text("The cat and the mat.\n", encoding="utf-8")
    tokenizer = Tokenizer(text, method="bpe", vocabulary_size=280, pattern="cl100k")
    tokenizer.to_huggingface("tokenizer.json")
    # Stands in for the file of OpenAI, which is known by its checksum.
    tokenizer.to_tiktoken("cl100k_base.tiktoken")
    digest = hashlib.sha256(Path("cl100k_base.tiktoken").read_bytes()).hexdigest()
    known = tiktoken_known.KNOWN["cl100k_base"]._replace(sha256=digest)
    monkeypatch.setitem(tiktoken_known.KNOWN, "cl100k_base", known)


def script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:the corpus gave")  # fewer ids than are wanted of a book
def test_the_commands_run(prepared, capfdbinary):
    outputs = {}
    for line in commands():
        words = shlex.split(line, comments=True)
        words = [path for word in words for path in sorted(glob.glob(word)) or [word]]
        if words[0] == "tokbpe":
            assert cli.main(words[1:]) == 0, line
        else:
            assert words[0] == "python"
            script(ROOT / words[1]).main([*words[2:], "--steps", "2"])  # all steps take long
        outputs[line] = capfdbinary.readouterr().out
    assert outputs["tokbpe decode book.tokbpe chapter.npy"] == b"The cat and the mat.\n"
    assert np.load("chapter.npy").tolist() == Tokenizer.load("book.tokbpe").encode(
        "The cat and the mat.\n"
    )
    assert Path("corpus.bin").stat().st_size > 0
    assert {line.split()[1] for line in outputs} >= {
        *("train", "encode", "decode", "inspect", "check", "convert"),
        *("shard", "verify", "count", "notebooks/train_tiny.py"),
    }


def test_commands_in_the_text_are_found():
    assert any("-o corpus.bin" in line for line in commands())
    assert not any("OUT.html" in line for line in commands())


# Python: what needs a cluster is given stand-ins that do the work here


class Ray:
    """`ray.remote` and `ray.get`: a task runs when its result is asked for."""

    def __init__(self):
        self.tasks = []

    def remote(self, function):
        def later(*values):
            self.tasks.append(values)
            return lambda: function(*values)

        return SimpleNamespace(remote=later)

    def get(self, task):
        return task()


class Pool(ThreadPoolExecutor):
    """In place of `MPIPoolExecutor`, and of what a Dask client gives."""

    made = []

    def __init__(self):
        super().__init__(2)
        self.submitted = 0
        self.made.append(self)

    def submit(self, *values, **named):
        self.submitted += 1
        return super().submit(*values, **named)


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """The names that the README's Python takes for granted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Pool, "made", [])
    paths = []
    for number in range(4):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(f"low lower lowest {number} newest\n" * 3, encoding="utf-8")
    (tmp_path / "counts").mkdir()
    return {
        "PieceCounts": PieceCounts,
        "paths": paths,
        "parts": [paths[:2], paths[2:]],
        "part": 0,
        "client": SimpleNamespace(get_executor=Pool),
        "MPIPoolExecutor": Pool,
        "ray": Ray(),
    }


def test_python_that_counts_on_many_machines(surroundings):
    pytest.importorskip("pyarrow")
    paths = surroundings["paths"]
    expected = PieceCounts.from_files(paths, pattern="cl100k")
    expected.to_parquet("total.parquet")  # which another system writes
    (block,) = blocks("python")
    with contextlib.ExitStack() as stack:
        exec(compile(block, "README.md", "exec"), surroundings)
        for pool in Pool.made:
            stack.enter_context(pool)
    assert [pool.submitted > 0 for pool in Pool.made] == [True, True]
    assert surroundings["ray"].tasks == [(paths[:2],), (paths[2:],)]
    assert surroundings["total"] == surroundings["counts"] == expected
    assert PieceCounts.from_parquet("counts/0.parquet") == expected


# C


@pytest.mark.skipif(
    shutil.which(COMPILER) is None or COMPILER == "cl", reason="needs gcc or clang to compile"
)
def test_the_c_compiles(tmp_path):
    """Around it stands what the text takes for granted; what it calls is run by test_capi.py."""
    (block,) = blocks("c")
    include, _, body = block.partition("\n")
    source = tmp_path / "example.c"
    source.write_text(
        f"""#define PY_SSIZE_T_CLEAN
{include}
PyObject *use(PyObject *tokenizer, const uint8_t *text, size_t size, uint32_t *ids, size_t capacity)
{{
{body}
    return PyLong_FromLong(status);
}}
""",
        encoding="utf-8",
    )
    folders = [fast.get_include(), sysconfig.get_path("include")]
    result = subprocess.run(
        [COMPILER, "-fsyntax-only", "-Wall", "-Werror", *(f"-I{path}" for path in folders), source],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
