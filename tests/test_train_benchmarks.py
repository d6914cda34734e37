"""The training benchmarks run, on tiny texts, compare merges, and tell targets that are missed."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tokbpe import demo, fast

FOLDER = Path(__file__).parents[1] / "benchmarks"
TEXT = demo.multilingual_text().decode()


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder like that of TOKBPE_DATA, with little in it."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "corpora").mkdir()
    for name in ("c", "de", "en", "hi", "ja", "py", "ru", "zh"):
        (folder / "corpora" / f"{name}.txt").write_text(TEXT, encoding="utf-8")
    return folder


def run(script, *options, data):
    return subprocess.run(
        [sys.executable, FOLDER / script, *map(str, options)],
        capture_output=True,
        text=True,
        env={**os.environ, "TOKBPE_DATA": str(data)},
        timeout=60,
        check=True,
    )


@pytest.fixture(scope="module")
def figures(data, tmp_path_factory):
    """The file of a small run, and what it printed."""
    file = tmp_path_factory.mktemp("figures") / "train.json"
    few = ["--corpora", "mix10", "letters", "--merges", 500, 1000, "--threads", 1, "--rounds", 1]
    parts = ["--parts", "small", "one word", "--peers", "tokbpe", "reference"]
    return file, run("train.py", "--json", file, *parts, *few, data=data).stdout


def test_a_run_compares_and_measures(figures):
    file, printed = figures
    found = json.loads(file.read_text())
    assert [(row["corpus"], row["merges"]) for row in found["rows"]] == [
        ("mix10", 1000),
        ("letters", 500),
    ]
    for row in found["rows"]:
        assert row["trainers"].keys() == {"tokbpe", "reference"}
        for trainer in row["trainers"].values():
            assert trainer["equal"]
            assert 0 < trainer["merges"] <= row["merges"]
            assert trainer["seconds"]["cpu"] > 0
    assert "| letters, raw, 500 merges, 1 thread | 1 s |" in printed


def test_kept_figures_print_the_same(figures, data):
    file, printed = figures
    assert run("train.py", "--from", file, data=data).stdout == printed


def test_corpora_are_made_of_all_texts(data, tmp_path):
    run("corpora.py", tmp_path, "--megabytes", 1, data=data)
    text = (tmp_path / "mix1.txt").read_text(encoding="utf-8")
    texts = importlib.import_module("texts")
    assert text == "".join(
        texts.part(TEXT.encode(), 10**6 // share, 0) for share in texts.MIXED.values()
    )


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k"])
def test_parts_give_the_pieces_of_the_whole(pattern, monkeypatch):
    trainers = importlib.import_module("trainers")
    monkeypatch.setattr(trainers, "PART", 50)
    parts = trainers.parts_of(TEXT)
    assert "".join(parts) == TEXT
    assert len(parts) > 10
    assert [piece for part in parts for piece in fast.split(part, pattern)] == fast.split(
        TEXT, pattern
    )


def test_halves_of_pieces():
    trainers = importlib.import_module("trainers")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"bc": 257, b"abc": 258}
    assert trainers.halves(ranks) == [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c")]


@pytest.mark.parametrize("regime", ["pieces", "raw"])
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k"])
@pytest.mark.parametrize("name", ["gigatoken", "rustbpe", "tokenizers", "reference"])
def test_each_trainer_learns_the_same(name, pattern, regime, data):
    """As far as it cuts alike and has the rule; gigabpe and marked words are only measured."""
    trainers = importlib.import_module("trainers")
    trainer = trainers.TRAINERS[name]
    pytest.importorskip(trainer.module)
    path = str(data / "corpora" / "en.txt")
    job = trainers.Job(name, path, regime, pattern, 60, 1)
    ours = trainers.TRAINERS[trainer.like].prepare(job)
    try:
        theirs = trainer.prepare(job)
    except trainers.Unsupported:
        return
    assert theirs.merges(theirs.run()) == ours.merges(ours.run())


@pytest.mark.parametrize("regime", ["pieces", "words"])
def test_gigabpe_is_given_room_for_as_many_merges(regime, data):
    trainers = importlib.import_module("trainers")
    pytest.importorskip("gigabpe")
    job = trainers.Job("gigabpe", str(data / "corpora" / "en.txt"), regime, "gpt2", 60, 1)
    training = trainers.gigabpe(job)
    # Its word characters are not quite those of `re`.
    assert abs(len(training.merges(training.run())) - 60) <= 3


def test_targets_are_met_or_missed():
    report = importlib.import_module("train_report")

    def row(own, other, **fields):
        plain = {"corpus": "mix10", "regime": "pieces", "pattern": "gpt2", "bytes": 10**7}
        trainers = {
            name: {"seconds": {"cpu": seconds, "wall": 9}, "peak": 200.0}
            for name, seconds in {"tokbpe": own, "gigabpe": other}.items()
        }
        return {**plain, "merges": 32_000, "threads": 1, **fields, "trainers": trainers}

    assert [*report.targets([row(1, 2.5)])][2:] == [
        "| mix10, gpt2, 32,000 merges, 1 thread, against gigabpe | 2 × | 2.50 × | met |"
    ]
    assert "1.50 × | **missed** |" in [*report.targets([row(1, 1.5)])][2]
    raw = [row(0.5, 1, regime="raw"), row(5, 1, regime="raw", corpus="mix100", bytes=10**8)]
    assert [line.split("|")[2:5] for line in [*report.targets(raw)][2:]] == [
        [" 6 s ", " 5.00 s ", " met "],
        [" 10 ", " 2.0 ", " met "],
        [" 12 × ", " 10.0 × ", " met "],
    ]


def test_pictures_of_kept_figures(tmp_path):
    pytest.importorskip("matplotlib")
    plots = importlib.import_module("plots")
    seconds = {"seconds": {"cpu": 0.5, "wall": 1}, "peak": None}
    rows = [
        {
            "corpus": corpus,
            "regime": "pieces",
            "pattern": "gpt2",
            "merges": merges,
            "threads": 1,
            "bytes": size,
            "trainers": {"tokbpe": seconds},
        }
        for corpus, size in (("mix10", 10**7), ("mix100", 10**8))
        for merges in (8_000, 32_000)
    ]
    file = tmp_path / "train.json"
    machine = {"processor": "x", "cores": 2, "system": "y", "python": "3", "date": "2026"}
    file.write_text(json.dumps({"machine": machine, "command": "c", "rounds": 1, "rows": rows}))
    plots.main([str(file)])
    assert plots.by_vocabulary(rows)["tokbpe, mix10"] == [(8_000, 0.5), (32_000, 0.5)]
    assert plots.by_corpus(rows) == {"tokbpe, gpt2": [(10, 0.5), (100, 0.5)]}
    for name in ("train-vocabulary", "train-growth"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        assert (tmp_path / f"{name}.svg").is_file()
