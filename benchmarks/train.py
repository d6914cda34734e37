"""How fast merges are learned, and in how much memory, against every peer that is installed.

    TOKBPE_DATA=... python benchmarks/train.py [--json FILE.json] [--parts ...] [--rounds N] [...]
    python benchmarks/train.py --from FILE.json

Needs the folder that TOKBPE_DATA names and the extra `bench`. Prints tables in Markdown, the last
of them the targets, met or missed; `plots.py` draws the figures.

Each training has a process of its own and goes from the text in memory to merges; gigabpe reads
its file. Trainers take turns, five rounds; figures are medians. One thread is measured by CPU time,
on one core; two by the clock. The peak is what training adds to the memory of the process with the
text. A round before the others compares the merges with those of tokbpe, where the rule is the same
one; where they differ that is said, and where it is tokbpe that differs between its own engines or
numbers of threads, the run ends.

- pieces: cut by a pattern; raw: one sequence; words: characters, the last of a word marked.
- mix10 and mix100 are 10 and 100 MB, half English, a quarter in five languages, a quarter code.
- tokenizers would take hours for raw text; other peers lack patterns or words. gigabpe cuts white
  space otherwise than GPT-2's pattern, and marked words have other ids in each trainer, so that
  there merges are not the same.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import train_report
from corpora import write_mix
from timing import machine
from trainers import PIECES, RAW, TRAINERS, WORDS, Job, installed

ONCE = Path(__file__).with_name("train_once.py")


class Case(NamedTuple):
    """What all trainers do in turn."""

    corpus: str
    regime: str
    merges: int
    pattern: str = ""
    threads: int = 1


def pieces(corpus: str, pattern: str, merges: Sequence[int], threads: Sequence[int]) -> list[Case]:
    return [Case(corpus, PIECES, size, pattern, count) for size in merges for count in threads]


PARTS = {
    "small": pieces("mix10", "gpt2", (1_000, 8_000, 32_000, 100_000), (1,)),
    "cl100k": [
        *pieces("mix10", "cl100k", (32_000,), (1,)),
        *pieces("mix100", "cl100k", (32_000,), (1, 2)),
    ],
    "large": pieces("mix100", "gpt2", (32_000, 100_000), (1, 2)),
    "raw": [
        *(Case(corpus, RAW, merges) for corpus in ("mix1", "mix10") for merges in (4_000, 32_000)),
        Case("mix100", RAW, 32_000),
    ],
    "words": [Case("English", WORDS, 10_000, threads=threads) for threads in (1, 2)],
    "one word": [Case("letters", RAW, 500)],
}
LETTERS = 320_000  # of one word


def main(argv: Sequence[str] | None = None) -> None:
    options = parsed(argv)
    if options.figures:
        figures = json.loads(options.figures.read_text())
    else:
        words = sys.argv[1:] if argv is None else argv
        figures = {
            "machine": machine(),
            "command": shlex.join(["python", "benchmarks/train.py", *words]),
            "versions": versions(options.peers),
            "rounds": options.rounds,
            "rows": [],
        }
        for row in measured(options):
            figures["rows"].append(row)
            if options.json:  # each time: an interrupted run keeps what it has measured
                options.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(train_report.report(figures))


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    whole = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    whole.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures there")
    whole.add_argument(
        "--from", type=Path, dest="figures", metavar="FILE.json", help="measure nothing, read these"
    )
    whole.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    whole.add_argument("--peers", nargs="+", choices=TRAINERS, default=[*installed()])
    whole.add_argument("--corpora", nargs="+", help="of the cases only those on these")
    whole.add_argument("--merges", nargs="+", type=int, help="of the cases only those with so many")
    whole.add_argument(
        "--threads", nargs="+", type=int, help="of the cases only those with so many"
    )
    whole.add_argument("--rounds", type=int, default=5, help="that are measured (default: 5)")
    whole.add_argument("--limit", type=float, default=120, help="seconds of a training, at most")
    options = whole.parse_args(argv)
    if options.rounds < 1:
        whole.error("--rounds must be at least 1")
    return options


def versions(names: Sequence[str]) -> dict[str, str]:
    from importlib.metadata import version

    from tokbpe import __version__

    modules = {TRAINERS[name].module for name in names} - {"tokbpe"}
    return {"tokbpe": __version__, **{module: version(module) for module in sorted(modules)}}


def cases(options: argparse.Namespace) -> list[Case]:
    return [
        case
        for part in options.parts
        for case in PARTS[part]
        if case.corpus in (options.corpora or [case.corpus])
        and case.merges in (options.merges or [case.merges])
        and case.threads in (options.threads or [case.threads])
    ]


# Measuring


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures of each case."""
    with tempfile.TemporaryDirectory() as scratch:
        path = cache(lambda corpus: corpus_path(corpus, Path(scratch)))
        for case in cases(options):
            print(*case, sep=", ", file=sys.stderr, flush=True)
            text = path(case.corpus)
            row = {**case._asdict(), "bytes": text.stat().st_size}
            yield {**row, "trainers": of_case(case, text, options)}


def corpus_path(corpus: str, scratch: Path) -> Path:
    """The file of a corpus, made if there is none."""
    data = Path(os.environ["TOKBPE_DATA"])
    if corpus == "English":
        return data / "corpora" / "en.txt"
    if corpus == "letters":
        letters = [byte for byte in (data / "corpora" / "en.txt").read_bytes() if 97 <= byte <= 122]
        path = scratch / "letters.txt"
        path.write_bytes(bytes(letters[:LETTERS]))
        return path
    return write_mix(data, scratch, int(corpus.removeprefix("mix")))


def of_case(case: Case, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of each trainer that can do it."""
    learned: dict[str, dict[str, Any]] = {}

    def is_equal(name: str, first: dict[str, Any]) -> bool:
        """Whether a trainer learns what the one of ours with the same ids of bytes learns."""
        like = TRAINERS[name].like
        if like not in learned:
            learned[like] = once(job(case, like, path), options.limit)
        ours = learned[like]
        if first["merges"] > ours["merges"]:  # rustbpe goes on with pairs that occur once
            shorter = case._replace(merges=ours["merges"])
            first = once(job(shorter, name, path), options.limit)
        return bool(first["digest"] == ours["digest"])

    found: dict[str, Any] = {}
    for name in options.peers:
        first = once(job(case, name, path), options.limit)
        if "unsupported" not in first:
            found[name] = first
            if "failed" not in first and case.regime != WORDS:
                first["equal"] = is_equal(name, first)
                if not first["equal"] and TRAINERS[name].module == "tokbpe":
                    raise SystemExit(f"{name} learns other merges on {', '.join(map(str, case))}")
    well = [name for name in found if "failed" not in found[name]]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in well}
    for _ in range(options.rounds):
        for name in well:
            rounds[name].append(once(job(case, name, path), options.limit))
    for name in well:
        found[name].update(medians(rounds[name]))
    return found


def job(case: Case, trainer: str, path: Path) -> Job:
    return Job(trainer, str(path), case.regime, case.pattern, case.merges, case.threads)


def once(job: Job, limit: float) -> dict[str, Any]:
    """The figures of one process."""
    threads = {"RAYON_NUM_THREADS": str(job.threads)}
    threads["TOKENIZERS_PARALLELISM"] = "true" if job.threads > 1 else "false"
    try:
        done = subprocess.run(
            [sys.executable, ONCE],
            input=json.dumps(job._asdict()),
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, **threads},
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done in {limit:g} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def medians(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The median seconds by both clocks, and the median peak."""
    rounds = [figures for figures in rounds if "failed" not in figures]
    if not rounds:
        return {"failed": "in each round"}
    cpu, wall = zip(*(figures["seconds"] for figures in rounds))
    peaks = [figures["peak"] for figures in rounds if figures["peak"] is not None]
    return {
        "seconds": {"cpu": statistics.median(cpu), "wall": statistics.median(wall)},
        "peak": statistics.median(peaks) if peaks else None,
    }


if __name__ == "__main__":
    main()
