"""The script that trains a tiny model: its gradient, its losses, its command line."""

import importlib
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tokbpe import Tokenizer

FOLDER = Path(__file__).parents[1] / "notebooks"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("train_tiny")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def text():
    """Sentences from few words, about 12 kB."""
    source = random.Random(0)
    words = [["the", "a", "this"], ["cat", "dog", "newest tree"], ["sees", "finds", "likes"]]
    sentences = (
        " ".join(source.choice(choice) for choice in [*words, *words[:2]]) for _ in range(450)
    )
    return ". ".join(sentences)


OPTIONS = {
    "vocabulary_size": 280,
    "minimum_pair_frequency": 2,
    "context": 16,
    "steps": 60,
    "batch_size": 8,
    "seed": 1,
}


@pytest.fixture(scope="module")
def results(script, text):
    return {method: script.trained(text, method, **OPTIONS) for method in ("byte", "bpe")}


@pytest.mark.parametrize("method", ["byte", "bpe"])
def test_training(results, method):
    result = results[method]
    assert result.gradient_error < 1e-6
    assert result.first_validation_loss == pytest.approx(math.log(result.vocab_size))
    assert result.validation_loss < 0.8 * result.unigram_loss
    assert result.unigram_loss < result.first_validation_loss
    assert 0 < result.train_loss_average < result.first_validation_loss
    assert result.bits_per_byte < result.unigram_bits_per_byte


def test_both_are_compared_by_byte(script, results, text):
    byte, bpe = results["byte"], results["bpe"]
    assert byte.vocab_size == len(set(text.encode())) and byte.tokens == len(text)
    assert bpe.vocab_size == 280 and bpe.tokens < 0.6 * byte.tokens
    # A token of the byte method is a byte.
    assert byte.bits_per_byte == pytest.approx(byte.validation_loss / math.log(2))
    assert bpe.bits_per_byte < 0.8 * bpe.validation_loss / math.log(2)
    lines = list(script.lines_of([byte, bpe]))
    assert f"bits per byte {bpe.bits_per_byte:.3f}" in lines[1]


def test_the_same_seed_gives_the_same_model(script, results, text):
    told = []
    again = script.trained(text, "byte", **OPTIONS, tell=told.append)
    assert again == results["byte"]
    assert "fitted on the complete text" in told[0] and "train_loss_average" in told[-1]
    assert script.trained(text, "byte", **{**OPTIONS, "seed": 2}) != again


def test_the_average_of_training_losses_is_smooth(script, text, monkeypatch):
    """It moves by a twentieth of the way to each loss."""
    averages = []
    for steps in (2, 3):
        averages.append(script.trained(text, "byte", **{**OPTIONS, "steps": steps}))
    monkeypatch.setattr(script, "SMOOTHING", 0)
    last = script.trained(text, "byte", **{**OPTIONS, "steps": 3}).train_loss_average
    before, after = (result.train_loss_average for result in averages)
    assert after == pytest.approx(0.95 * before + 0.05 * last) != pytest.approx(before)


def test_a_wrong_gradient_is_seen(script, monkeypatch):
    parameters = script.new_parameters(20, 0)
    source = np.random.default_rng(0)
    for values in parameters.values():
        values += source.normal(0, 0.1, values.shape)
    inputs, targets = source.integers(0, 20, (2, 2, 6))
    assert script.gradient_error(parameters, inputs, targets) < 1e-6
    real = script.losses_and_gradient
    for name in parameters:

        def wrong(*arguments, name=name):
            losses, gradient = real(*arguments)
            return losses, lambda: {**gradient(), name: gradient()[name] * 1.01}

        monkeypatch.setattr(script, "losses_and_gradient", wrong)
        assert script.gradient_error(parameters, inputs, targets) > 5e-3


def test_what_a_position_is_predicted_from(script):
    back = script.looked_back(np.array([[5, 6, 7, 8, 9]]))
    assert back[0].tolist() == [
        [5, -1, -1, -1],
        [6, 5, -1, -1],
        [7, 6, 5, -1],
        [8, 7, 6, 5],
        [9, 8, 7, 6],
    ]
    parameters = script.new_parameters(10, 0)
    parameters["output"][:] = np.random.default_rng(0).normal(size=parameters["output"].shape)
    losses, _ = script.losses_and_gradient(parameters, np.array([[1, 2, 3]]), np.array([[2, 3, 4]]))
    other, _ = script.losses_and_gradient(parameters, np.array([[1, 2, 9]]), np.array([[2, 3, 4]]))
    assert losses[0, :2].tolist() == other[0, :2].tolist()  # what comes later is not looked at
    assert losses[0, 2] != other[0, 2]


def test_unigram_loss(script):
    training, targets = np.array([0, 0, 1]), np.array([0, 1, 2])
    expected = -(math.log(3 / 6) + math.log(2 / 6) + math.log(1 / 6)) / 3
    assert script.unigram_loss(training, targets, 3) == pytest.approx(expected)


def run(*arguments):
    return subprocess.run(
        [sys.executable, FOLDER / "train_tiny.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_command_line(text, tmp_path):
    (tmp_path / "file").write_text(text)
    small = ["--steps", 20, "--context", 8, "--vocab-size", 262, "--min-pair-frequency", 3]
    done = run("--file", tmp_path / "file", "--compare", *small)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-2:]
    assert [line.split(":")[0] for line in last] == ["byte", "bpe"]
    done = run(text, "--tokenizer", "byte", *small)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("byte: validation_loss")
    assert f"{len(set(text))} ids" in done.stdout
    assert Tokenizer(text).vocab_size == len(set(text))
    done = run(text, *small)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("bpe: validation_loss")
    assert "262 ids" in done.stdout
    done = run("ab" * 600, "--min-pair-frequency", 300, "--steps", 2, "--context", 8)
    assert "258 ids; 270 tokens to train on" in done.stdout  # ab, abab


def test_a_file_keeps_its_line_ends(tmp_path):
    (tmp_path / "file").write_bytes(b"low\r\n" * 40)
    done = run("--file", tmp_path / "file", "--tokenizer", "byte", "--steps", 2, "--context", 8)
    assert done.returncode == 0, done.stderr
    assert "5 ids; 180 tokens to train on, 20 to validate" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a text, or a file by --file"),
        (["x", "--file", "y"], "give a text, or a file by --file"),
        (["x" * 20], "a context of 32 needs 33 tokens; there are"),
        (["", "--tokenizer", "byte"], "the corpus"),
        (["x", "--tokenizer", "word"], "invalid choice: 'word'"),
        (["x", "--steps", 1], "--steps must be 2 or more, not 1"),
        (["--file", "absent"], "No such file or directory: 'absent'"),
        (["--file", FOLDER], f"Is a directory: '{FOLDER}'"),
        (["--file", sys.executable], f"{sys.executable}: 'utf-8' codec can't decode byte"),
        (["abc" * 199, "--vocab-size", 256, "--batch-size", 0], "batch_size must be from 1 to"),
        (["abc" * 199, "--vocab-size", 256, "--seed", -1], "seed must be from 0 to"),
    ],
)
def test_wrong_use(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
