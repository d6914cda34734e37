"""Shards whose writing is killed, by SIGKILL at random moments, and begun again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tokbpe import Shards, Tokenizer

SCRIPT = Path(__file__).parent / "kill_rounds.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of POSIX")
@pytest.mark.parametrize(("rounds", "workers"), [(50, 0), (50, 2)])
def test_killed_and_begun_again(tmp_path, rounds, workers):
    tokenizer = Tokenizer(
        "low lower lowest newest widest " * 9,
        method="bpe",
        vocabulary_size=266,
        pattern="gpt2",
        reserved=["BOS"],
    )
    tokenizer.save(tmp_path / "tokenizer")
    texts = ["low lower lowest " * (40 * number) + "x" for number in range(8)]
    (tmp_path / "in").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "in" / f"{number:02}").write_text(text)
    arguments = [str(value) for value in (tmp_path, rounds, rounds, workers)]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    kills = json.loads(done.stdout)
    assert sum(map(len, kills)) == rounds
    # They are spread over the work: before there is anything, and where there is more and more.
    assert len({state for states in kills for state in states}) > 3, kills
    expected = [id for text in texts for id in tokenizer.encode(text, bos=True)]
    assert Shards(tmp_path / "alone", tokenizer)[:].tolist() == expected
    alone = {path.name: path.read_bytes() for path in (tmp_path / "alone").iterdir()}
    for number in range(len(kills)):
        out = tmp_path / f"out{number}"
        found = {path.name: path.read_bytes() for path in out.iterdir()}
        assert found == alone
        Shards(out).verify()
    assert len(np.unique(expected)) > 1
