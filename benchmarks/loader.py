"""How fast files become shards and shards become batches, and in how much memory.

    python benchmarks/loader.py [--json FILE] [--parts write batches memory] [--runs N]

Needs Linux and the folder that TOKBPE_DATA names. `write`: English, C and mixed text, by one thread
and by as many as there are cores, against the encoder alone on the same file, each call on a
tokenizer that has seen nothing; tokens are first found equal. `batches`: against NumPy that copies
the same tokens out of the same mapped file into arrays of the same shapes and type, which are two,
inputs and targets. Windows in order: contiguous copies. Random windows: each copied into its row,
as training scripts have it; all gathered at once, by fancy indexing of NumPy's sliding windows; and
contiguous copies, which no random access to memory reaches. And one copy, in the place of two.
`memory`: the peak of a process of its own that encodes 2 GB (--gigabytes), and of one that reads
the shards. Seconds are wall times, medians of interleaved runs.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from texts import mixed
from timing import clocked, machine

from tokbpe import TokenDataset, Tokenizer, write_shards

FILES = {"English": "en.txt", "C": "c.txt", "mixed": None}
SHAPES = ((8, 256), (32, 1024), (64, 1024), (16, 4096))  # batch and context
SIZES = {"in the processor's cache": 10**6, "in memory": 2 * 10**8}  # tokens
DTYPES = ("uint16", "uint32", "int64")
SLICES = 10  # of a run, so that calls take turns often

WRITE = """
import resource, sys, time
from tokbpe import Tokenizer, write_shards
tokenizer = Tokenizer.from_tiktoken(sys.argv[1])
start = time.perf_counter()
write_shards(sys.argv[2], tokenizer, sys.argv[3])
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
READ = """
import sys, time
from tokbpe import TokenDataset
def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
batches = TokenDataset(sys.argv[1], 1024).batches(64)
start, peak = time.perf_counter(), 0
for number, batch in enumerate(batches):
    if not number % 100:
        peak = max(peak, anonymous())
print(time.perf_counter() - start, peak)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=50, help="of each text that is written")
    parser.add_argument("--gigabytes", type=float, default=2, help="that are streamed")
    parser.add_argument("--tokens", type=int, help="in the place of the sizes of `batches`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = {"machine": machine()}
        for part in options.parts:
            figures[part] = PARTS[part](Path(folder), options)
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def data_folder() -> Path:
    return Path(os.environ["TOKBPE_DATA"])


def rank_file() -> Path:
    return data_folder() / "vocab" / "r50k_base.tiktoken"


def fresh() -> Tokenizer:
    """A tokenizer whose cache is empty, with its tables built."""
    tokenizer = Tokenizer.from_tiktoken(rank_file())
    tokenizer.encode("a")
    return tokenizer


# Writing


def write(folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """MB/s of the encoder and of `write_shards`."""
    figures = {}
    for name, file in FILES.items():
        path = folder / name
        size = int(options.megabytes * 1e6)
        corpora = data_folder() / "corpora"
        if file is None:
            path.write_text("".join(mixed(corpora, size)))
        else:
            path.write_bytes((corpora / file).read_bytes()[:size])
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            figures[f"{name}, {threads} threads"] = written(path, threads, options.runs)
    return figures


def written(path: Path, threads: int, runs: int) -> dict[str, float]:
    out = path.with_name("shards")
    size = path.stat().st_size

    def encode(tokenizer: Tokenizer) -> object:
        blocks = tokenizer.encode_file(path, dtype="uint16", threads=threads)
        return sum(len(ids) for ids, _ in blocks)

    def shard(tokenizer: Tokenizer) -> object:
        return len(write_shards(path, tokenizer, out, threads=threads))

    seconds: dict[Callable[[Tokenizer], object], list[float]] = {encode: [], shard: []}
    for _ in range(runs):
        counts = set()
        for call, times in seconds.items():
            tokenizer = fresh()
            spent, count = clocked(lambda call=call, tokenizer=tokenizer: call(tokenizer))
            times.append(spent.wall)
            counts.add(count)
            shutil.rmtree(out, ignore_errors=True)
        if len(counts) > 1:
            raise SystemExit(f"{path}: there are {counts} tokens")
    encoder, shards = (size / 1e6 / statistics.median(times) for times in seconds.values())
    return {
        "encoder": float(f"{encoder:.4g}"),
        "shards": float(f"{shards:.4g}"),
        "ratio": ratio(shards, encoder),
    }


def ratio(one: float, other: float) -> float:
    return round(one / other, 2)


# Batches


def batches(folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """Microseconds for a batch."""
    sizes = {"as given": options.tokens} if options.tokens else SIZES
    figures = {}
    for (place, count), (rows, context), dtype in itertools.product(sizes.items(), SHAPES, DTYPES):
        path = folder / f"{count}.npy"
        if not path.exists():
            np.save(path, np.random.default_rng(0).integers(0, 50_000, count, dtype=np.uint16))
        figures[f"{place}: {rows} x {context} {dtype}"] = batch(
            path, rows, context, dtype, options.runs
        )
    return figures


def batch(path: Path, rows: int, context: int, dtype: str, runs: int) -> dict[str, float]:
    data = TokenDataset(path, context, dtype=dtype)
    (tokens,) = data._source.tokens.arrays
    size = rows * context
    tokens.sum()  # all pages are mapped before anything is timed

    def contiguous(start: int) -> np.ndarray:
        return np.array(tokens[start : start + size].reshape(rows, context), dtype)

    starts = itertools.cycle(range(0, len(tokens) - size, size))
    generator = np.random.default_rng(1)
    drawn = itertools.cycle(generator.integers(0, len(tokens) - context - 1, (2000, rows)))
    windows = sliding_window_view(tokens, context)

    def both(copy: Callable[[Any], np.ndarray], places: Iterator[Any]) -> Callable[[], object]:
        """Inputs, and targets from the tokens behind these."""

        def copies() -> tuple[np.ndarray, np.ndarray]:
            place = next(places)
            return copy(place), copy(place + 1)

        return copies

    def gathered(places: np.ndarray) -> np.ndarray:
        return windows[places].astype(dtype, copy=False)

    def row_by_row(places: np.ndarray) -> np.ndarray:
        out = np.empty((rows, context), dtype)
        for row, start in enumerate(places):
            out[row] = tokens[start : start + context]
        return out

    in_order = data.batches(rows, drop_last=True).forever()
    at_random = data.batches(rows, order="random").forever()
    shuffled = data.batches(rows, order="shuffled", drop_last=True).forever()
    calls = {
        "a copy": lambda: contiguous(next(starts)),
        "copies": both(contiguous, starts),
        "gathered": both(gathered, drawn),
        "row by row": both(row_by_row, drawn),
        "sequential": lambda: next(in_order),
        "random": lambda: next(at_random),
        "shuffled": lambda: next(shuffled),
    }
    first = next(iter(data.batches(rows)))
    if not np.array_equal(first.inputs, contiguous(0)) or not np.array_equal(
        first.targets, contiguous(1)
    ):
        raise SystemExit("the first batch is not what stands in the file")
    times: dict[str, list[float]] = {name: [] for name in calls}
    repeats = max(1, 10**7 // size // SLICES)
    for _ in range(runs * SLICES):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            times[name].append((time.perf_counter() - start) / repeats * 1e6)
    figures = {name: round(statistics.median(spent), 2) for name, spent in times.items()}
    return {
        **figures,
        "sequential / copies": ratio(figures["copies"], figures["sequential"]),
        "sequential / a copy": ratio(figures["a copy"], figures["sequential"]),
        "random / row by row": ratio(figures["row by row"], figures["random"]),
        "random / gathered": ratio(figures["gathered"], figures["random"]),
        "random / copies": ratio(figures["copies"], figures["random"]),
    }


# Memory


def memory(folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """Seconds and the peak of memory in MB, of a process that writes and of one that reads.

    Of the one that reads without what is mapped, which the system takes back when it likes.
    """
    path = folder / "large"
    text = (data_folder() / "corpora" / "en.txt").read_bytes()
    size = int(options.gigabytes * 1e9)
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(text[: size - file.tell()])
    figures: dict[str, object] = {"bytes": path.stat().st_size}
    writing = [WRITE, str(rank_file()), str(path), str(folder / "out")]
    for name, command in (("write", writing), ("read", [READ, str(folder / "out")])):
        done = subprocess.run(
            [sys.executable, "-c", *command], capture_output=True, text=True, check=True
        )
        seconds, kilobytes = done.stdout.split()
        figures[name] = {
            "seconds": round(float(seconds), 1),
            "megabytes": round(int(kilobytes) * 1024 / 1e6, 1),
        }
    shutil.rmtree(folder / "out")
    path.unlink()
    return figures


PARTS = {"write": write, "batches": batches, "memory": memory}


if __name__ == "__main__":
    main()
