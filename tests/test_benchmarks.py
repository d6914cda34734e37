"""The benchmark scripts run, on tiny sizes, and their figures can be drawn."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tokbpe import Tokenizer, demo, fast

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
    paths = [str(folder), os.environ.get("PYTHONPATH")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


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


# Encoding

PHASES = ("cold", "next", "warm")


@pytest.fixture
def benchmark(monkeypatch):
    """Imports a script, or a module of the scripts."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.fixture(scope="module")
def small_data(texts):
    """The same folder with a small vocabulary under the name of a real one."""
    (texts / "vocab").mkdir()
    small = Tokenizer(
        demo.multilingual_text().decode("utf-8"),
        method="bpe",
        vocabulary_size=500,
        pattern="cl100k",
    )
    small.to_tiktoken(texts / "vocab" / "cl100k_base.tiktoken")
    return texts


@pytest.fixture(scope="module")
def encoded(tmp_path_factory, small_data):
    """The file of a run of the script, and what the run printed."""
    pytest.importorskip("tiktoken")
    file = tmp_path_factory.mktemp("figures") / "encode.json"
    what = ["--parts", "arrays", "threads", "--vocabularies", "cl100k"]
    few = ["--corpora", "mixed", "--peers", "tokbpe", "tiktoken", "--rounds", 1]
    options = [*what, *few, "--megabytes", 0.02, "--json", file]
    done = run("encode.py", *options, TOKBPE_DATA=str(small_data))
    assert done.returncode == 0, done.stderr
    return file, done.stdout


def test_encode_measures_each_way_once(encoded):
    figures = json.loads(encoded[0].read_text())
    ways = [(row["documents"], row["output"], row["threads"]) for row in figures["rows"]]
    assert sorted(ways) == [
        ("one", "array", 1),
        ("one", "array", 2),
        ("paragraphs", "array", 1),
        ("paragraphs", "array", 2),
    ]
    for row in figures["rows"]:
        for name, found in row["peers"].items():
            assert found["differing"] == 0, name
            assert all(5000 < size <= 20_000 for size in found["bytes"])
            assert min(found[phase][clock] for phase in PHASES for clock in ("cpu", "wall")) > 0
    assert {len(row["peers"]) for row in figures["rows"] if row["threads"] == 1} == {2}
    assert figures["versions"].keys() == {"tokbpe", "tiktoken"}


def test_encode_prints_tables_and_targets_again_from_its_file(encoded):
    file, printed = encoded
    assert "cl100k, one document to an array, 1 thread: MB/s cold / next / warm" in printed
    assert re.search(r"^\| tokbpe \| [\d.]+ / [\d.]+ / [\d.]+ \| yes \|$", printed, re.MULTILINE)
    assert re.search(r"^\| cl100k, mixed, one, array: next, two threads \| ≥ 1.8", printed, re.M)
    assert run("encode.py", "--from", file).stdout == printed


def test_encode_draws_its_figures(encoded):
    pytest.importorskip("matplotlib")
    done = run("encode.py", "--from", encoded[0], "--plot")
    assert done.returncode == 0, done.stderr
    assert encoded[0].with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert encoded[0].with_suffix(".svg").read_bytes().rstrip().endswith(b"</svg>")


def test_encode_measures_short_calls_and_hard_texts(benchmark, small_data, tmp_path):
    pytest.importorskip("tiktoken")
    encode = benchmark("encode")
    files = encode.Files(small_data, tmp_path, 0.02)
    calls = encode.Case("calls", "cl100k", "English", "one", "list")
    figures = encode.once(files.job(calls, "tokbpe"), 60)
    assert figures.pop("differing") == 0
    assert figures.keys() == {"same", "various", "loop", "batch"}
    assert min(figures.values()) > 0
    hard = encode.Case("megabyte", "cl100k", "spaces, then x")
    figures = encode.once(files.job(hard, "tokbpe"), 60)
    assert figures["differing"] == 0
    assert min(figures["cold"]) > 0


def test_encode_says_what_failed(benchmark, small_data, tmp_path):
    pytest.importorskip("tiktoken")
    encode = benchmark("encode")
    job = encode.Files(small_data, tmp_path, 0.02).job(
        encode.Case("texts", "cl100k", "English"), "tokbpe"
    )
    assert encode.once(job, 0.001) == {"failed": "not done in 0.001 s"}
    Path(job.texts[1]).unlink()
    assert encode.once(job, 60)["failed"].startswith("FileNotFoundError")


def test_encode_ends_where_tokbpe_differs(benchmark):
    encode = benchmark("encode")
    case = encode.Case("texts", "cl100k", "English")
    encode.refuse_differences(case, "tokbpe", {"differing": 0})
    encode.refuse_differences(case, "tiktoken", {"differing": 1})
    with pytest.raises(SystemExit, match="^tokbpe is wrong on texts, cl100k, English"):
        encode.refuse_differences(case, "tokbpe", {"differing": 1})
    with pytest.raises(SystemExit, match="^tokbpe, scalar is wrong .*no memory"):
        encode.refuse_differences(case, "tokbpe, scalar", {"failed": "no memory"})


@pytest.mark.parametrize(
    ("result", "differing"),
    [
        ([1, 2, 3, 4], 0),
        ([[1, 2], [], [3, 4]], 0),
        ((np.array([1, 2, 3, 4], dtype=np.uint32), [0, 4]), 0),
        ([1, 2, 4, 3], 2),
        ([1, 2, 3], 1),
        ([1, 2, 9, 3, 4], 3),
        ([], 4),
    ],
)
def test_encode_counts_ids_that_differ(benchmark, tmp_path, result, differing):
    np.save(tmp_path / "ids.npy", np.array([1, 2, 3, 4], dtype=np.uint32))
    assert benchmark("encode_once").differing(result, tmp_path / "ids.npy") == differing


def figures_of(row, **peers):
    """A row with the megabytes per second of peers."""
    measured = {
        name.replace("_", ", "): {
            "bytes": [10**6, 10**6],
            "differing": differing,
            **{phase: {"cpu": 1 / s, "wall": 1 / s} for phase, s in zip(PHASES, speeds)},
        }
        for name, (differing, speeds) in peers.items()
    }
    plain = {"kind": "texts", "documents": "one", "threads": 1, "vocabulary": "cl100k"}
    return {**plain, **row, "peers": measured}


def test_encode_holds_figures_against_targets(benchmark):
    report = benchmark("encode_report")
    rows = [
        figures_of(
            {"text": "C", "output": "array"},
            tokbpe=(0, (13, 26, 40)),
            gigatoken=(0, (10, 20, 40.1)),
        ),
        # The fastest gives other ids, and does not count.
        figures_of(
            {"text": "Chinese", "output": "array"},
            tokbpe=(0, (1, 12, 1)),
            fastokens=(0, (9, 9.9, 9)),
            splintr=(5, (50, 50, 50)),
        ),
        {
            "kind": "megabyte",
            "vocabulary": "r50k",
            "text": "^",
            "threads": 1,
            "documents": "one",
            "output": "array",
            "peers": {"tokbpe": {"differing": 0, "cold": {"cpu": 0.0701, "wall": 1}}},
        },
    ]
    found = [tuple(target) for target in report.targets(report.Rows({"rows": rows}))]
    assert found == [
        ("cl100k, C, array: cold", "≥ 1.3 × gigatoken", "1.30 ×", True),
        ("cl100k, C, array: next", "≥ 1.3 × gigatoken", "1.30 ×", True),
        ("cl100k, C, array: warm", "≥ 1 × gigatoken", "1.00 ×", False),
        ("cl100k, Chinese, array: next", "≥ 1.2 × fastokens", "1.21 ×", True),
        ("r50k, ^: a megabyte", "≤ 70 ms", "70.1 ms", False),
    ]
    printed = "\n".join(report.texts_tables(report.Rows({"rows": rows})))
    assert "| splintr |  | 50 / 50 / 50 | no, 5 differ |" in printed


def test_texts_of_a_kind_do_not_overlap(benchmark, texts):
    module = benchmark("texts")
    whole = demo.multilingual_text()
    first, second = module.two_parts(texts / "corpora", "ru", 1001)
    assert first == whole[:1001].decode(errors="ignore")
    assert second == whole[1001:2002].decode(errors="ignore")
    for kind in ("paragraphs", "lines"):
        documents = module.documents(whole.decode(), kind)
        assert "".join(documents) == whole.decode()
        assert len(documents) > 5


def test_hard_texts_have_their_size(benchmark):
    for name, parts in benchmark("texts").megabytes(3000):
        assert 2990 <= len("".join(parts).encode()) <= 3000, name


def test_safe_parts_give_the_ids_of_the_whole(benchmark, monkeypatch):
    encode = benchmark("encode")
    monkeypatch.setattr(encode, "SAFE_PART", 50)
    text = demo.multilingual_text().decode() + "a\n\nb\n c\r\nd/\ne\n/\n \nf \ng." * 20
    parts = [*encode.safe_parts(text)]
    assert "".join(parts) == text
    assert len(parts) > 5
    for pattern in ("gpt2", "cl100k", "o200k", "qwen2"):
        pieces = [piece for part in parts for piece in fast.split(part, pattern)]
        assert pieces == fast.split(text, pattern), pattern


@pytest.mark.parametrize("name", ["tiktoken", "tokenizers", "gigatoken", "fastokens", "quicktok"])
def test_a_peer_gives_the_ids_of_tokbpe(benchmark, data, tmp_path, name):
    peers, once = benchmark("peers"), benchmark("encode_once")
    pytest.importorskip(peers.PEERS[name].module)
    vocabulary = peers.vocabulary("cl100k", data / "vocab", tmp_path)
    texts = ["Low lower lowest: 1234567 你好\n\n", "it's   3 o'clock 🐈", "'"]
    for threads in (1, 2):
        ours = peers.PEERS["tokbpe"].open(vocabulary, threads)
        for form, call in peers.PEERS[name].open(vocabulary, threads).items():
            given = texts if form[0] == peers.MANY else "".join(texts)
            assert once.flat(call(given)).tolist() == once.flat(ours[form](given)).tolist(), form


class WrongArrays:
    """A tokenizer one of whose results is wrong."""

    def __init__(self, wrong):
        self.wrong = wrong

    def encode(self, text, **options):
        return [*text.encode()]

    def encode_array(self, text, **options):
        return np.array(self.encode(text)) + (self.wrong == "array")

    def encode_batch_arrays(self, texts, **options):
        ids = np.concatenate([self.encode(text) for text in texts]) + (self.wrong == "ids")
        ends = np.cumsum([0, *map(len, texts)])
        ends[-1] -= self.wrong == "offsets"
        return ids, ends


@pytest.mark.parametrize("wrong", ["array", "ids", "offsets"])
def test_exactness_compares_arrays_with_lists(benchmark, wrong):
    exactness = benchmark("exactness")
    exactness.arrays_agree(WrongArrays(None), ["ab", "", "c"])
    with pytest.raises(SystemExit, match="differ on"):
        exactness.arrays_agree(WrongArrays(wrong), ["ab", "", "c"])


def test_exactness_runs_by_the_variants_that_are_chosen(data, tmp_path):
    pytest.importorskip("tiktoken")
    file = tmp_path / "exactness.json"
    small = ["--bytes", 2000, "--strings", 20, "--only", "r50k_base"]
    done = run("exactness.py", *small, "--variants", "scalar", "--json", file)
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert figures["differences"] == 0
    assert figures["compared"]["scalar"]["r50k_base"]["text_bytes"] > 8 * 1900


def test_loader(data, tmp_path):
    file = tmp_path / "loader.json"
    small = ["--runs", 1, "--megabytes", 0.1, "--gigabytes", 0.001, "--tokens", 200_000]
    done = run("loader.py", *small, "--json", file, TOKBPE_DATA=str(data))
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    for measured in figures["write"].values():
        expected = measured["shards"] / measured["encoder"]
        assert measured["ratio"] == pytest.approx(expected, rel=0.01, abs=0.01)
    assert len(figures["batches"]) == 12
    for measured in figures["batches"].values():
        expected = measured["copies"] / measured["sequential"]
        assert measured["sequential / copies"] == pytest.approx(expected, rel=0.1, abs=0.01)
    assert figures["memory"]["bytes"] == 10**6
    assert all(figures["memory"][process]["megabytes"] > 10 for process in ("write", "read"))


def test_limits_on_little_text(tmp_path):
    figures = tmp_path / "limits.json"
    done = run("limits.py", "--bytes", 3_000_000, "--folder", tmp_path, "--json", figures)
    assert done.returncode == 0, done.stderr
    steps = json.loads(figures.read_text("utf-8"))
    assert steps["count_tokens"]["result"].endswith("ids of single bytes")
    assert steps["read_shards"]["seconds"] > 0
    assert [*tmp_path.iterdir()] == [figures]
