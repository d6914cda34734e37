"""The benchmark scripts run, on tiny sizes, and their figures can be drawn."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tokbpe import demo, fast

FOLDER = Path(__file__).parents[1] / "benchmarks"
NO_MATPLOTLIB = "raise ImportError('not here')"


def run(script, *options, **environment):
    """A finished benchmark as a process of its own."""
    return subprocess.run(
        [sys.executable, FOLDER / script, *map(str, options)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
    )


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder like that of TOKBPE_DATA, with little in it."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "corpora").mkdir()
    for name in ("c", "de", "en", "hi", "ja", "py", "ru", "zh"):
        (folder / "corpora" / f"{name}.txt").write_bytes(demo.multilingual_text())
    return folder


@pytest.fixture
def without_matplotlib(tmp_path):
    """An environment in which matplotlib is not to be found."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "matplotlib.py").write_text(NO_MATPLOTLIB)
    return {"PYTHONPATH": str(folder)}


def measured(stem, without_matplotlib, *options, **environment):
    """The figures of the script without a picture, which is drawn by another test."""
    run("speedup.py", "--out", stem, *options, **without_matplotlib, **environment)
    return json.loads(stem.with_suffix(".json").read_text())


def test_speedup_measures_each_number_of_merges_and_each_size(tmp_path, without_matplotlib):
    sizes = ["--sizes", 5000, 2000, "--work", 50_000]
    figures = measured(tmp_path / "small", without_matplotlib, *sizes)
    merges = {s["bytes"]: [point["merges"] for point in s["points"]] for s in figures["series"]}
    assert merges == {2000: [1, 2, 5, 10, 20], 5000: [1, 2, 5, 10]}
    for series in figures["series"]:
        reference = [point["reference"] for point in series["points"]]
        assert reference == sorted(reference)  # as one long run gives them
        for point in series["points"]:
            assert point["speedup"] == pytest.approx(point["reference"] / point["fast"], rel=0.05)
    assert figures["command"].endswith(" --sizes 5000 2000 --work 50000")
    assert figures["corpus"].startswith("the source files of the library of Python 3.")
    assert figures["machine"].keys() == {"processor", "cores", "system", "python", "date"}


def test_speedup_takes_another_corpus_whole_if_it_is_small(tmp_path, texts, without_matplotlib):
    options = ["--corpus", "en", "--sizes", 1000, 10**5, "--work", 10**5]
    figures = measured(tmp_path / "en", without_matplotlib, *options, TOKBPE_DATA=str(texts))
    assert figures["corpus"] == "en.txt of TOKBPE_DATA"
    whole = len(demo.multilingual_text())
    assert [series["bytes"] for series in figures["series"]] == [1000, whole]


def test_speedup_without_matplotlib_keeps_the_figures_and_names_the_extra(
    tmp_path, without_matplotlib
):
    stem = tmp_path / "kept"
    done = run("speedup.py", "--out", stem, "--sizes", 1000, "--work", 1000, **without_matplotlib)
    assert done.returncode == 1
    assert done.stderr == 'to draw the figures, install matplotlib: pip install "tokbpe[plot]"\n'
    assert stem.with_suffix(".json").is_file()


@pytest.mark.parametrize("options", [["--sizes", 10, 0], ["--sizes", 10, 50, "--work", 49]])
def test_speedup_refuses_sizes_that_leave_no_merge(tmp_path, options):
    done = run("speedup.py", "--out", tmp_path / "none", *options)
    assert done.returncode == 2
    assert "each of --sizes must be from 1 to --work" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def speedup(monkeypatch):
    """The script as a module."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("speedup")


def test_speedup_takes_the_medians_of_both_times(speedup):
    rounds = [{1: (4, 0.5), 2: (7, 1)}, {1: (6, 0.1), 2: (8, 2)}, {1: (2, 0.4), 2: (9, 4)}]
    assert list(speedup.medians(rounds)) == [
        {"merges": 1, "reference": 4, "fast": 0.4, "speedup": 10},
        {"merges": 2, "reference": 8, "fast": 2, "speedup": 4},
    ]


def one_more_piece(corpus, pattern):
    return {**fast.count_pieces(corpus, pattern), b"another": 1}


def other_merges(*arguments):
    pairs, counts = fast.train(*arguments)
    return pairs[:, ::-1], counts


def other_counts(*arguments):
    pairs, counts = fast.train(*arguments)
    return pairs, counts + 1


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"count_pieces": one_more_piece}, "the pieces differ"),
        ({"train": other_merges}, "the merges differ"),
        ({"train": other_counts}, "the counts of the merges differ"),
    ],
)
def test_speedup_times_nothing_that_differs(speedup, monkeypatch, wrong, what):
    engine = {"count_pieces": fast.count_pieces, "train": fast.train, **wrong}
    monkeypatch.setattr(speedup, "fast", SimpleNamespace(**engine))
    with pytest.raises(AssertionError, match=f"^{what}"):
        speedup.one_round(b"low lower lowest", 2)


def test_the_kept_figures_are_drawn_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    figures = (FOLDER / "speedup.json").read_text()
    drawn = []
    for name in ("one", "two"):
        stem = tmp_path / name
        stem.with_suffix(".json").write_text(figures)
        done = run("speedup.py", "--plot-only", stem.with_suffix(".json"))
        assert done.returncode == 0, done.stderr
        drawn.append([stem.with_suffix(suffix).read_bytes() for suffix in (".png", ".svg")])
    assert drawn[0] == drawn[1]
    png, svg = drawn[0]
    assert png.startswith(b"\x89PNG") and len(png) > 10_000
    assert svg.rstrip().endswith(b"</svg>")


def test_twins_measures(tmp_path, texts):
    file = tmp_path / "twins.json"
    done = run("twins.py", "--quick", "--json", file, TOKBPE_DATA=str(texts))
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert json.loads(done.stdout) == figures
    assert figures["one_sequence"]["bytes"] == len(demo.multilingual_text())
    assert figures["growth"]["ratio_80k_20k"] > 0
