"""How fast real vocabularies encode, against every peer that is installed.

    TOKBPE_DATA=... python benchmarks/encode.py [--json FILE.json] [--plot] [--quick] [...]
    python benchmarks/encode.py --from FILE.json [--plot]

Needs the folder that TOKBPE_DATA names and the extra `bench`. Prints tables in Markdown, the last
of them the targets, met or missed. `--plot` draws FILE.png and FILE.svg (extra `plot`).

Each measurement has a process of its own, in which a vocabulary is loaded, which is not counted,
and texts are encoded by one peer. The peers take turns, five rounds; figures are medians. A round
before them compares all ids with those of the library that the vocabulary comes from, tiktoken or
tokenizers. Where tokbpe differs, the run ends; a peer that does is measured, and said to differ.

- cold is the first call, of a text; next is the call after it, of another text of the same kind;
  warm is the first text again. MB are 10**6 bytes of UTF-8.
- One thread is measured by the CPU time of the process, kept on one core; two by the clock.
- tokenizers, a hundred times slower, gets a tenth of each text.
- rustbpe reads no vocabulary: it learns one, `trained`, from the first mixed text.
- "tokbpe, scalar" is tokbpe with the scanner in plain C, which any processor runs.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import encode_report
import numpy as np
import peers
from encode_once import Job
from peers import ARRAY, LIST, ONE, PEERS, QWEN, RANK_FILES, TRAINED, VOCABULARIES, Vocabulary
from texts import CORPORA, documents, megabytes, sentences, two_parts
from timing import machine

ONCE = Path(__file__).with_name("encode_once.py")
SAFE_PART = 100_000  # characters that tokenizers gets at once, about: it is slower with more


class Case(NamedTuple):
    """What all peers do in turn."""

    kind: str  # "texts", "megabyte" or "calls"
    vocabulary: str
    text: str
    documents: str = ONE
    output: str = ARRAY
    threads: int = 1


class Part(NamedTuple):
    """Cases that are chosen together; options choose others in the place of these."""

    vocabularies: Sequence[str]
    corpora: Sequence[str]
    documents: Sequence[str] = (ONE,)
    outputs: Sequence[str] = (ARRAY,)
    threads: Sequence[int] = (1,)


MAIN = ("English", "C", "mixed")
PARTS = {
    "arrays": Part((*RANK_FILES, QWEN), [*CORPORA]),
    "lists": Part([*RANK_FILES], MAIN, outputs=(LIST,)),
    "many": Part(["cl100k"], ["English", "mixed"], ["paragraphs"], (ARRAY, LIST)),
    "threads": Part(["cl100k"], ["English", "mixed"], [ONE, "paragraphs"], threads=(1, 2)),
    TRAINED: Part([TRAINED], MAIN),
    "megabytes": Part([*RANK_FILES], []),  # no corpora, but hard texts
    "calls": Part([*RANK_FILES], ["English"]),
}
KINDS = {"megabytes": "megabyte", "calls": "calls"}  # of the parts that are not of kind "texts"
QUICK = {
    "parts": ["arrays", "lists", "calls"],
    "vocabularies": ["cl100k"],
    "corpora": ["English", "Chinese"],
    "megabytes": 0.5,
    "rounds": 1,
}


def main(argv: Sequence[str] | None = None) -> None:
    options = parsed(argv)
    if options.figures:
        figures = json.loads(options.figures.read_text())
    else:
        words = sys.argv[1:] if argv is None else argv
        names = options.peers or peers.installed()
        figures = {
            "machine": machine(),
            "command": shlex.join(["python", "benchmarks/encode.py", *words]),
            "versions": peers.versions(names),
            "rounds": options.rounds,
            "megabytes": options.megabytes,
            "rows": [],
        }
        for row in measured(names, options):
            figures["rows"].append(row)
            if options.json:  # each time: an interrupted run keeps what it has measured
                options.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(encode_report.report(figures))
    if options.plot:
        encode_report.draw(figures, (options.figures or options.json).with_suffix(""))


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    whole = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    whole.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures there")
    whole.add_argument(
        "--from", type=Path, dest="figures", metavar="FILE.json", help="measure nothing, read these"
    )
    whole.add_argument("--plot", action="store_true", help="draw FILE.png and FILE.svg")
    whole.add_argument("--quick", action="store_true", help="a first look, in a minute")
    whole.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    whole.add_argument("--peers", nargs="+", choices=PEERS, help="those installed, if not said")
    whole.add_argument("--vocabularies", nargs="+", choices=VOCABULARIES)
    whole.add_argument("--corpora", nargs="+", choices=CORPORA)
    whole.add_argument("--documents", nargs="+", choices=(ONE, "paragraphs", "lines"))
    whole.add_argument("--outputs", nargs="+", choices=(LIST, ARRAY))
    whole.add_argument("--threads", nargs="+", type=int)
    whole.add_argument("--megabytes", type=float, default=10, help="of each text (default: 10)")
    whole.add_argument("--rounds", type=int, default=5, help="that are measured (default: 5)")
    whole.add_argument("--limit", type=float, default=120, help="seconds of a process, at most")
    if "--quick" in (sys.argv[1:] if argv is None else argv):
        whole.set_defaults(**QUICK)
    options = whole.parse_args(argv)
    if options.plot and not (options.json or options.figures):
        whole.error("--plot goes with --json or --from, which say where to draw")
    if options.rounds < 1 or options.megabytes <= 0:
        whole.error("--rounds must be at least 1, and --megabytes above 0")
    return options


def cases(options: argparse.Namespace) -> list[Case]:
    """What is chosen, each once."""
    chosen: dict[Case, None] = {}
    for name in options.parts:
        part = PARTS[name]
        kind = KINDS.get(name, "texts")
        vocabularies = options.vocabularies or part.vocabularies
        if kind == "megabyte":
            forms = itertools.product(vocabularies, [text for text, _ in megabytes(0)])
        elif kind == "calls":
            forms = itertools.product(vocabularies, part.corpora, [ONE], [LIST])
        else:
            forms = itertools.product(
                vocabularies,
                options.corpora or part.corpora,
                options.documents or part.documents,
                options.outputs or part.outputs,
                options.threads or part.threads,
            )
        chosen.update(dict.fromkeys(Case(kind, *form) for form in forms))
    return [*chosen]


# Measuring


def measured(names: Sequence[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures of each case."""
    with tempfile.TemporaryDirectory() as scratch:
        files = Files(Path(os.environ["TOKBPE_DATA"]), Path(scratch), options.megabytes)
        for case in cases(options):
            print(*case, sep=", ", file=sys.stderr, flush=True)
            yield {**case._asdict(), "peers": of_case(case, names, files, options)}


def of_case(
    case: Case, names: Sequence[str], files: "Files", options: argparse.Namespace
) -> dict[str, Any]:
    """The figures of each peer that can do it."""
    found: dict[str, Any] = {}
    for name in names:
        if case.kind == "calls" or not PEERS[name].short_only:
            first = once(files.job(case, name), options.limit)
            if "unsupported" not in first:
                found[name] = first
                refuse_differences(case, name, first)
    well = [name for name in found if "failed" not in found[name]]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in well}
    for _ in range(options.rounds):
        for name in well:
            rounds[name].append(once(files.job(case, name), options.limit))
    for name in well:
        sizes = [Path(path).stat().st_size for path in files.job(case, name).texts]
        differing = found[name]["differing"]
        found[name] = {"bytes": sizes, "differing": differing, **medians(rounds[name])}
    return found


def refuse_differences(case: Case, name: str, figures: dict[str, Any]) -> None:
    if PEERS[name].module == "tokbpe" and (figures.get("failed") or figures["differing"]):
        raise SystemExit(f"{name} is wrong on {', '.join(map(str, case))}: {figures}")


def once(job: Job, limit: float) -> dict[str, Any]:
    """The figures of one process."""
    fields = {**job._asdict(), "vocabulary": job.vocabulary._asdict()}
    threads = {"RAYON_NUM_THREADS": str(job.threads)}
    threads["TOKENIZERS_PARALLELISM"] = "true" if job.threads > 1 else "false"
    try:
        done = subprocess.run(
            [sys.executable, ONCE],
            input=json.dumps(fields),
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, **threads, **PEERS[job.peer].environment},
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done in {limit:g} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return dict(json.loads(done.stdout))


def medians(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The medians of all figures but the differences; of those rounds that did not fail."""
    rounds = [figures for figures in rounds if "failed" not in figures]
    found: dict[str, Any] = {}
    for name in rounds[0].keys() - {"differing"} if rounds else ():
        values = [figures[name] for figures in rounds]
        if isinstance(values[0], list):  # by both clocks
            found[name] = dict(zip(("cpu", "wall"), map(statistics.median, zip(*values))))
        elif values[0] is not None:
            found[name] = statistics.median(values)
    return found


class Files:
    """Vocabularies, texts and ids as files, each made when it is first wanted."""

    def __init__(self, folder: Path, scratch: Path, size: float) -> None:
        self.folder = folder
        self.scratch = scratch
        self.size = round(size * 1e6)
        self.hard = dict(megabytes(min(self.size, 10**6)))
        # Kept as attributes, so that the caches go with the object.
        self.vocabulary = cache(self._vocabulary)
        self.reference = cache(self._reference)
        self.texts = cache(self._texts)
        self.ids = cache(self._ids)

    def job(self, case: Case, peer: str) -> Job:
        share = PEERS[peer].share if case.kind == "texts" else 1
        texts = self.texts(case.kind, case.text, share)
        return Job(
            peer,
            self.vocabulary(case.vocabulary),
            case.kind,
            texts,
            self.ids(case.kind, case.vocabulary, case.text, case.documents, share),
            case.documents,
            case.output,
            case.threads,
        )

    def _vocabulary(self, name: str) -> Vocabulary:
        if name == TRAINED:
            return peers.trained_vocabulary(Path(self.texts("texts", "mixed", 1)[0]), self.scratch)
        return peers.vocabulary(name, self.folder / "vocab", self.scratch)

    def _reference(self, name: str) -> Callable[[list[str]], list[list[int]]]:
        return peers.reference(self.vocabulary(name))

    def _texts(self, kind: str, text: str, share: float) -> list[str]:
        """The paths of the texts."""
        if kind == "megabyte":
            parts = ["".join(self.hard[text])]
        else:
            size = round(self.size * share)
            parts = [*two_parts(self.folder / "corpora", CORPORA[text], size)]
        return [str(self.new_file(".txt", part.encode("utf-8"))) for part in parts]

    def _ids(self, kind: str, vocabulary: str, text: str, form: str, share: float) -> list[str]:
        """The paths of the ids that the texts must give."""
        encode = self.reference(vocabulary)
        paths = []
        for path in self.texts(kind, text, share):
            whole = Path(path).read_bytes().decode("utf-8")
            if kind == "megabyte":
                parts = self.hard[text]
            elif kind == "calls":
                parts = sentences(whole)
            elif form == ONE:
                parts = [whole] if vocabulary != QWEN else [*safe_parts(whole)]
            else:
                parts = documents(whole, form)
            ids = itertools.chain.from_iterable(encode(parts))
            paths.append(self.new_file(".npy", b""))
            np.save(paths[-1], np.fromiter(ids, dtype=np.uint32))
        return [*map(str, paths)]

    def new_file(self, suffix: str, data: bytes) -> Path:
        path = self.scratch / f"{len([*self.scratch.iterdir()])}{suffix}"
        path.write_bytes(data)
        return path


def safe_parts(text: str) -> Iterator[str]:
    """Parts that give the ids of the whole: behind a lone line end, before a letter, all patterns
    cut, and do so too where the text ends there."""
    start = 0
    for match in re.finditer(r"(?<=\S)\n(?=[^\W\d_])", text):
        if match.end() >= start + SAFE_PART:
            yield text[start : match.end()]
            start = match.end()
    yield text[start:]


if __name__ == "__main__":
    main()
