"""Pictures of how merges are learned, out of the figures of `train.py` and `speedup.py`.

    python benchmarks/plots.py TRAIN.json [--speedup SPEEDUP.json]

Draws, beside TRAIN.json, TRAIN-vocabulary (time against vocabulary size) and TRAIN-growth (time
against corpus size), and beside SPEEDUP.json the speed-up over the reference against the number of
merges; each as .png and .svg. Needs the extra `plot`.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import drawing
import speedup
from train_report import seconds
from trainers import PIECES, RAW, TRAINERS

Rows = list[dict[str, Any]]
Line = list[tuple[float, float]]  # points


def main(argv: Sequence[str] | None = None) -> None:
    whole = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    whole.add_argument("train", type=Path, metavar="TRAIN.json")
    whole.add_argument("--speedup", type=Path, metavar="SPEEDUP.json")
    options = whole.parse_args(argv)
    figures = json.loads(options.train.read_text())
    stem = options.train.with_suffix("")
    draw(
        figures,
        by_vocabulary(figures["rows"]),
        "Time of a training against the number of merges",
        "merges learned",
        stem.with_name(f"{stem.name}-vocabulary"),
    )
    draw(
        figures,
        by_corpus(figures["rows"]),
        "Time of a training against the size of the corpus",
        "corpus, MB",
        stem.with_name(f"{stem.name}-growth"),
    )
    if options.speedup:
        speedup.draw(json.loads(options.speedup.read_text()), options.speedup.with_suffix(""))


def by_vocabulary(rows: Rows) -> dict[str, Line]:
    """Seconds against merges, for each corpus and trainer, on one thread."""
    lines: dict[str, Line] = {}
    for row in rows:
        if row["regime"] == PIECES and row["pattern"] == "gpt2" and row["threads"] == 1:
            for name in TRAINERS:
                add_point(lines, f"{name}, {row['corpus']}", row, name, row["merges"])
    return more_than_one(lines)


def by_corpus(rows: Rows) -> dict[str, Line]:
    """Seconds against megabytes, for pieces and raw text and each trainer, on one thread."""
    lines: dict[str, Line] = {}
    for row in rows:
        mixed = row["corpus"].startswith("mix")
        if mixed and row["threads"] == 1 and row["merges"] == 32_000:
            cut = {PIECES: row["pattern"], RAW: "no pieces"}.get(row["regime"])
            for name in TRAINERS if cut else ():
                add_point(lines, f"{name}, {cut}", row, name, row["bytes"] / 1e6)
    return more_than_one(lines)


def add_point(lines: dict[str, Line], label: str, row: dict[str, Any], name: str, x: float) -> None:
    taken = seconds(row, name)
    if taken is not None:
        lines.setdefault(label, []).append((x, taken))


def more_than_one(lines: dict[str, Line]) -> dict[str, Line]:
    return {label: sorted(points) for label, points in lines.items() if len(points) > 1}


def draw(
    figures: dict[str, Any], lines: dict[str, Line], title: str, what: str, stem: Path
) -> None:
    """STEM.png and STEM.svg; ends the script with an error if matplotlib is not installed."""
    pyplot = drawing.pyplot()
    chart, axes = pyplot.subplots(figsize=(8, 5.4), dpi=150)
    chart.subplots_adjust(left=0.1, right=0.97, top=0.9, bottom=0.2)
    names = [*dict.fromkeys(label.partition(",")[0] for label in lines)]
    for number, (label, points) in enumerate(lines.items()):
        axes.plot(
            *zip(*points),
            color=drawing.COLORS[names.index(label.partition(",")[0]) % len(drawing.COLORS)],
            marker=drawing.MARKERS[number % len(drawing.MARKERS)],
            linewidth=2,
            label=label,
        )
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(what, fontsize=10)
    axes.set_ylabel("seconds, from text in memory to merges (one thread)", fontsize=10)
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, 1))
    chart.text(0.03, 0.95, title, fontsize=14, fontweight="bold", va="center")
    caption = (
        f"CPU time, medians of {figures['rounds']} rounds: `{figures['command']}`.\n"
        f"Machine: {drawing.machine_text(figures['machine'])}."
    )
    chart.text(0.03, 0.03, caption, fontsize=8, color="#555555", linespacing=1.4, wrap=True)
    drawing.save(chart, stem)
    pyplot.close(chart)


if __name__ == "__main__":
    main()
