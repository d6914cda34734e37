"""How long real vocabularies take from their file to the first ids, and how much memory.

    TOKBPE_DATA=... python benchmarks/load.py [--json FILE] [--runs N]

Needs Linux, the folder that TOKBPE_DATA names and the extra `bench`. Each load runs in a process
of its own, all in turn, with the libraries imported before the clock starts; equal ids are asserted
first. Seconds are process CPU times, medians of five runs; MB (10**6 bytes) are what the peak
of the resident memory grows by.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import machine

TEXT = "Low lower lowest: 1234567 你好 🐈"

# What is imported, and what loads and encodes; each leaves `ids`.
SETUPS = {
    "tokbpe": "from tokbpe import Tokenizer",
    "tiktoken": "import regex\nimport tiktoken\nfrom tiktoken.load import load_tiktoken_bpe",
    "tokenizers": "import tokenizers",
}
LOADS = {
    "tokbpe, rank file": ("tokbpe", "ids = Tokenizer.from_tiktoken(path).encode(text)"),
    "tokbpe, artifact": ("tokbpe", "ids = Tokenizer.load(saved).encode(text)"),
    "tiktoken": (
        "tiktoken",
        "from tiktoken_ext import openai_public\n"
        "ranks = load_tiktoken_bpe(path)\n"
        "ids = tiktoken.Encoding('x', pat_str=pattern, mergeable_ranks=ranks, special_tokens={})"
        ".encode(text)",
    ),
    "tokbpe, tokenizer.json": ("tokbpe", "ids = Tokenizer.from_huggingface(path).encode(text)"),
    "tokbpe, its artifact": ("tokbpe", "ids = Tokenizer.load(saved).encode(text)"),
    "tokenizers": ("tokenizers", "ids = tokenizers.Tokenizer.from_file(path).encode(text).ids"),
}
RANK_FILES = ("tokbpe, rank file", "tokbpe, artifact", "tiktoken")
JSON_FILES = ("tokbpe, tokenizer.json", "tokbpe, its artifact", "tokenizers")
FILES = {
    "cl100k": ("cl100k_base.tiktoken", RANK_FILES),
    "o200k": ("o200k_base.tiktoken", RANK_FILES),
    "qwen3": ("qwen3.tokenizer.json", JSON_FILES),
    "deepseek_v3": ("deepseek_v3.tokenizer.json", JSON_FILES),
}

PROCESS = """
import json, sys, time
folder, path, saved, text, pattern = sys.argv[1:]
sys.path.insert(0, folder)
from timing import peak_megabytes

{setup}
before = peak_megabytes()
start = time.process_time()
{load}
seconds = time.process_time() - start
print(json.dumps([seconds, peak_megabytes() - before, ids]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    vocabularies = Path(os.environ["TOKBPE_DATA"]) / "vocab"
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            "machine": machine(),
            "vocabularies": {
                name: loads(vocabularies / file, Path(folder) / name, kinds, options.runs)
                for name, (file, kinds) in FILES.items()
            },
        }
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def loads(
    path: Path, saved: Path, kinds: tuple[str, ...], runs: int
) -> dict[str, dict[str, float]]:
    """The median figures of each way to load a file."""
    from tokbpe import Tokenizer, patterns

    if kinds is RANK_FILES:
        tokenizer = Tokenizer.from_tiktoken(path)
    else:
        tokenizer = Tokenizer.from_huggingface(path)
    tokenizer.save(saved)
    pattern = patterns.to_tiktoken(tokenizer._vocabulary.pattern) if kinds is RANK_FILES else ""
    arguments = [str(path), str(saved), TEXT, pattern]
    ids = tokenizer.encode(TEXT)
    results: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(runs):
        for kind in kinds:
            seconds, megabytes, found = loaded(kind, arguments)
            if found != ids:
                raise SystemExit(f"{kind} gives {found}, where tokbpe gives {ids}")
            results[kind].append((seconds, megabytes))
    return {
        kind: {
            "seconds": round(statistics.median(seconds for seconds, _ in rows), 4),
            "megabytes": round(statistics.median(megabytes for _, megabytes in rows), 1),
        }
        for kind, rows in results.items()
    }


def loaded(kind: str, arguments: list[str]) -> tuple[float, float, list[int]]:
    """Seconds, megabytes and ids of one load in a new process."""
    library, load = LOADS[kind]
    script = PROCESS.format(setup=SETUPS[library], load=load)
    folder = str(Path(__file__).parent)
    command = [sys.executable, "-c", script, folder, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes, ids = json.loads(done.stdout)
    return seconds, megabytes, ids


if __name__ == "__main__":
    main()
