"""How many times as fast as the reference the fast engine trains, by merges and corpus size.

    python benchmarks/speedup.py [--out STEM] [--corpus NAME] [--sizes BYTES ...] [--work N]
    python benchmarks/speedup.py --plot-only FILE.json

Writes STEM.json, and draws STEM.png and STEM.svg (extra `plot`); STEM is `benchmarks/speedup`
if it is not given. The text is that of Python's own library, or with `--corpus en` the file
`corpora/en.txt` of the folder that TOKBPE_DATA names.

A training goes from text in memory to merges: cl100k pieces are counted, merges are learned.
Equal pieces, merges and counts are asserted. Times are process CPU times on one thread in
seconds, medians of interleaved runs. The reference learns each merge by the same pass over the
pieces, so one long run gives its time for every smaller number of merges; the fast engine is run
for each number. kB and MB are 10**3 and 10**6 bytes of UTF-8.
"""

import argparse
import json
import math
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import drawing
from timing import BYTES, machine, timed

from tokbpe import demo, fast, reference

PATTERN = "cl100k"
SIZES = (100_000, 1_000_000, 10_000_000)
WORK = 10**9
RUNS = 3
SUBTITLE = "For each merge the reference counts all pairs anew, the fast engine only what changed."


def main(argv: Sequence[str] | None = None) -> None:
    options = parsed(argv)
    if options.plot_only:
        stem = options.plot_only.with_suffix("")
        figures = json.loads(options.plot_only.read_text())
    else:
        stem = options.out
        words = sys.argv[1:] if argv is None else argv
        figures = {
            "machine": machine(),
            "command": shlex.join(["python", "benchmarks/speedup.py", *words]),
            "pattern": PATTERN,
            "runs": RUNS,
            **measured(options),
        }
        stem.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
    draw(figures, stem)


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    whole = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).with_suffix("")
    whole.add_argument("--out", type=Path, default=here, help="where to write, without suffix")
    whole.add_argument("--corpus", help="a text of the folder TOKBPE_DATA, such as en")
    whole.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes of each corpus")
    whole.add_argument(
        "--work", type=int, default=WORK, help="most bytes x merges of a corpus (default: 10**9)"
    )
    whole.add_argument("--plot-only", type=Path, metavar="FILE.json", help="draw these figures")
    options = whole.parse_args(argv)
    if not 1 <= min(options.sizes) <= max(options.sizes) <= options.work:
        whole.error("each of --sizes must be from 1 to --work, which leaves it one merge")
    return options


# Measuring


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """The figures: for each size the merges, and the seconds of both engines for them."""
    name, text = corpus(options.corpus)
    sizes = sorted({min(size, len(text)) for size in options.sizes})
    rounds = [[one_round(text[:size], options.work // size) for size in sizes] for _ in range(RUNS)]
    return {
        "corpus": name,
        "series": [
            {"bytes": size, "points": [*medians(runs)]} for size, runs in zip(sizes, zip(*rounds))
        ],
    }


def corpus(name: str | None) -> tuple[str, bytes]:
    """What the text is, and the text."""
    if name is None:
        text = b"".join(demo.library_sources(12_000_000))
        return f"the source files of the library of Python {platform.python_version()}", text
    path = Path(os.environ["TOKBPE_DATA"], "corpora", f"{name}.txt")
    return f"{path.name} of TOKBPE_DATA", path.read_bytes()


def one_round(text: bytes, most_merges: int) -> dict[int, tuple[float, float]]:
    """For each number of merges the seconds of the reference and of the fast engine."""
    counting, pieces = timed(lambda: reference.count_pieces([text], PATTERN))
    moments = [time.process_time()]
    merges, counts = reference.train(
        pieces,
        pieces.values(),
        BYTES,
        most_merges,
        progress=lambda done, wanted: moments.append(time.process_time()),
    )

    def fast_training(wanted: int) -> tuple[Any, Any]:
        found = fast.count_pieces([text], PATTERN)
        return found, fast.train(found, found.values(), BYTES, wanted)

    seconds = {}
    for wanted in merge_numbers(len(merges)):
        quick, (found, (pairs, pair_counts)) = timed(lambda wanted=wanted: fast_training(wanted))
        assert list(found.items()) == list(pieces.items()), "the pieces differ"
        assert list(map(tuple, pairs.tolist())) == merges[:wanted], "the merges differ"
        assert pair_counts.tolist() == counts[:wanted], "the counts of the merges differ"
        seconds[wanted] = counting + moments[wanted] - moments[0], quick
    return seconds


def merge_numbers(most: int) -> list[int]:
    """1, 2, 5, 10, 20, 50 ... up to the most."""
    numbers = [digit * 10**power for power in range(len(str(most))) for digit in (1, 2, 5)]
    return [number for number in numbers if number <= most]


def medians(runs: Sequence[dict[int, tuple[float, float]]]) -> Iterator[dict[str, float]]:
    for merges in runs[0]:
        slow, quick = map(statistics.median, zip(*(run[merges] for run in runs)))
        yield {
            "merges": merges,
            "reference": round(slow, 6),
            "fast": round(quick, 6),
            "speedup": round(slow / quick, 1),
        }


# Drawing


def draw(figures: dict[str, Any], stem: Path) -> None:
    """STEM.png and STEM.svg; ends the script with an error if matplotlib is not installed."""
    pyplot = drawing.pyplot()
    chart, axes = pyplot.subplots(figsize=(8, 5.4), dpi=150)
    chart.subplots_adjust(left=0.13, right=0.97, top=0.85, bottom=0.23)
    for series, color, marker in zip(figures["series"], drawing.COLORS, drawing.MARKERS):
        points = series["points"]
        axes.plot(
            [point["merges"] for point in points],
            [point["speedup"] for point in points],
            color=color,
            marker=marker,
            markersize=6,
            linewidth=2,
            label=summary(series),
        )
    finish_axes(axes)
    chart.text(0.03, 0.95, title(figures), fontsize=14, fontweight="bold", va="center")
    chart.text(0.03, 0.9, SUBTITLE, fontsize=10, color="#444444", va="center")
    chart.text(0.03, 0.02, caption(figures), fontsize=8, color="#555555", linespacing=1.4)
    drawing.save(chart, stem)
    pyplot.close(chart)


def finish_axes(axes: Any) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    axes.set(xscale="log", yscale="log")
    axes.set_ylim(decade(axes.get_ylim()[0], math.floor), decade(axes.get_ylim()[1], math.ceil))
    axes.set_xlabel("merges learned", fontsize=10)
    axes.set_ylabel("speed-up (CPU time, reference ÷ fast)", fontsize=10)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f} ×"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    # More merges, more speed-up: this corner stays empty.
    axes.legend(
        loc="lower right",
        fontsize=9,
        title="corpus: CPU time of the reference → of fast",
        alignment="left",
    )


def decade(value: float, rounding: Callable[[float], int]) -> float:
    return 10.0 ** rounding(math.log10(value))


def title(figures: dict[str, Any]) -> str:
    gains = [point["speedup"] for series in figures["series"] for point in series["points"]]
    least, most = (f"{float(f'{gain:.2g}'):,.0f}" for gain in (min(gains), max(gains)))
    return f"The more merges, the greater the speed-up: from {least} to {most} times"


def caption(figures: dict[str, Any]) -> str:
    sizes = ", ".join(size_text(series["bytes"]) for series in figures["series"])
    return (
        f"From text in memory to merges ({figures['pattern']} pieces); equal merges and counts "
        f"asserted; medians of {figures['runs']} interleaved runs, one thread.\n"
        f"Corpora: the first {sizes} of {figures['corpus']}.\n"
        f"Machine: {drawing.machine_text(figures['machine'])}."
    )


def summary(series: dict[str, Any]) -> str:
    """The size of a corpus, and both times for the most merges."""
    last = series["points"][-1]
    return (
        f"{size_text(series['bytes'])}: {seconds_text(last['reference'])} → "
        f"{seconds_text(last['fast'])} for {last['merges']:,} merges"
    )


def size_text(size: int) -> str:
    return f"{size / 1e6:g} MB" if size >= 10**6 else f"{size / 1e3:g} kB"


def seconds_text(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:,.1f} s"
    return f"{seconds * 1e3:.{0 if seconds >= 0.01 else 1}f} ms"


if __name__ == "__main__":
    main()
