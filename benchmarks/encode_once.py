"""One measurement of `encode.py`, in a process of its own.

    python benchmarks/encode_once.py < JOB

JOB is an object in JSON with the fields of a `Job`. Prints its figures as JSON. Loading is not
counted, and the ids are compared when all is timed.
"""

import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from peers import ARRAY, LIST, MANY, ONE, PEERS, Calls, Unsupported, Vocabulary
from texts import SENTENCE, documents, five_characters, sentences
from timing import clocked, peak_megabytes

PHASES = ("cold", "next", "warm")
CALLS = 5_000  # with short texts, so often
REPEATS = 5
STRINGS = 100_000  # of a batch


class Job(NamedTuple):
    """What is measured."""

    peer: str
    vocabulary: Vocabulary
    kind: str  # "texts", "megabyte" or "calls"
    texts: Sequence[str]  # the paths of the texts
    ids: Sequence[str]  # and of the ids that they must give
    documents: str = ONE
    output: str = ARRAY
    threads: int = 1


def main() -> None:
    fields = json.load(sys.stdin)
    job = Job(**{**fields, "vocabulary": Vocabulary(**fields["vocabulary"])})
    keep_to_cores(job.threads)
    try:
        figures = KINDS[job.kind](job, PEERS[job.peer].open(job.vocabulary, job.threads))
    except Unsupported:
        figures = {"unsupported": True}
    print(json.dumps(figures))


def keep_to_cores(threads: int) -> None:
    """As many cores as threads: some peers start more threads than they are told to."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def chosen(calls: Calls, documents: str, output: str) -> Callable[[Any], Any]:
    form = ONE if documents == ONE else MANY, output
    if form not in calls:
        raise Unsupported
    return calls[form]


def whole_texts(job: Job, calls: Calls) -> dict[str, Any]:
    """Two texts of a kind: the first call, another text, the first text again."""
    call = chosen(calls, job.documents, job.output)
    first, second = (given(Path(path), job.documents) for path in job.texts)
    before = peak_megabytes()
    timed_calls = [clocked(lambda text=text: call(text)) for text in (first, second, first)]
    after = peak_megabytes()
    seconds, results = zip(*timed_calls)
    expected = [job.ids[0], job.ids[1], job.ids[0]]
    return {
        **dict(zip(PHASES, seconds)),
        "peak": None if before is None or after is None else after - before,
        "differing": sum(differing(result, path) for result, path in zip(results, expected)),
    }


def given(path: Path, kind: str) -> Any:
    text = path.read_bytes().decode("utf-8")
    return text if kind == ONE else documents(text, kind)


def megabyte(job: Job, calls: Calls) -> dict[str, Any]:
    """A hard text: the first call."""
    call = chosen(calls, ONE, job.output)
    text = given(Path(job.texts[0]), ONE)
    seconds, result = clocked(lambda: call(text))
    return {"cold": seconds, "differing": differing(result, job.ids[0])}


def short_calls(job: Job, calls: Calls) -> dict[str, Any]:
    """Short texts to lists: seconds for a call, and for a batch of tiny texts against a loop."""
    call = chosen(calls, ONE, LIST)
    text = given(Path(job.texts[0]), ONE)
    various = sentences(text)
    figures: dict[str, Any] = {
        "same": median_seconds(call, [SENTENCE] * CALLS),
        "various": median_seconds(call, various * (CALLS // len(various) + 1)),
        "differing": differing([call(sentence) for sentence in various], job.ids[0]),
    }
    if (MANY, LIST) in calls:
        strings = five_characters(text, STRINGS)
        figures["loop"] = for_each(call, strings)
        figures["batch"] = clocked(lambda: calls[MANY, LIST](strings))[0].cpu / len(strings)
    return figures


def median_seconds(call: Callable[[str], Any], texts: list[str]) -> float:
    return statistics.median(for_each(call, texts) for _ in range(REPEATS))


def for_each(call: Callable[[str], Any], texts: list[str]) -> float:
    """The seconds of a call in a loop over texts."""

    def loop() -> None:
        for text in texts:
            call(text)

    return clocked(loop)[0].cpu / len(texts)


# Comparing


def differing(result: Any, path: str) -> int:
    """How many ids are not those of the file, from the first that differs on."""
    ids, expected = flat(result), np.load(path)
    shorter = min(len(ids), len(expected))
    unequal = np.flatnonzero(ids[:shorter] != expected[:shorter])
    if len(ids) == len(expected):
        return len(unequal)
    return max(len(ids), len(expected)) - (int(unequal[0]) if len(unequal) else shorter)


def flat(result: Any) -> Any:
    """All ids of a result, one text after another, as one array."""
    if isinstance(result, tuple):  # with offsets
        return np.asarray(result[0])
    if isinstance(result, list):
        if result and isinstance(result[0], list):
            return np.concatenate([np.array(ids, dtype=np.uint32) for ids in result])
        return np.array(result, dtype=np.uint32)
    if type(result).__module__.startswith("awkward"):
        import awkward

        return awkward.to_numpy(awkward.flatten(result))
    return np.asarray(result)


KINDS = {"texts": whole_texts, "megabyte": megabyte, "calls": short_calls}

if __name__ == "__main__":
    main()
