"""The figures of `encode.py` as tables in Markdown, held against the targets, and as a picture."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import drawing
from encode_once import PHASES
from peers import ARRAY, LIST, ONE, PEERS

MAIN = ("English", "C", "mixed")
UNSPACED_AND_OTHER = ("Russian", "Hindi", "Japanese", "Chinese")
HARD_SECONDS = 0.070
OURS = [name for name, peer in PEERS.items() if peer.module == "tokbpe"]


class Rows:
    """The figures, by what was measured."""

    def __init__(self, figures: dict[str, Any]) -> None:
        self.rows = figures["rows"]

    def of(self, **fields: Any) -> list[dict[str, Any]]:
        return [row for row in self.rows if fields.items() <= plain(row).items()]

    def values(self, field: str, **fields: Any) -> list[Any]:
        """The different values of a field, in their order."""
        return [*dict.fromkeys(row[field] for row in self.of(**fields))]

    def names(self, rows: Sequence[dict[str, Any]]) -> list[str]:
        """The peers of rows."""
        return [name for name in PEERS if any(name in row["peers"] for row in rows)]


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "peers"}


def seconds(row: dict[str, Any], name: str, phase: str, clock: str | None = None) -> float | None:
    """By the clock for several threads, CPU time for one; None where there is no figure."""
    clock = clock or ("cpu" if row["threads"] == 1 else "wall")
    found = row["peers"].get(name, {}).get(phase)
    return None if found is None else float(found[clock])


def speed(row: dict[str, Any], name: str, phase: str) -> float | None:
    """Megabytes in a second."""
    taken = seconds(row, name, phase)
    if taken is None:
        return None
    size = row["peers"][name]["bytes"][1 if phase == "next" else 0]
    return float(size) / 1e6 / taken


# The report


def report(figures: dict[str, Any]) -> str:
    rows = Rows(figures)
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    return "\n".join(
        [
            f"{drawing.machine_text(figures['machine'])}; {versions}. "
            f"`{figures['command']}`: medians of {figures['rounds']} rounds.",
            *texts_tables(rows),
            *megabytes_tables(rows),
            *calls_table(rows),
            *targets_table(rows),
        ]
    )


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


def texts_tables(rows: Rows) -> Iterator[str]:
    """A table for each vocabulary and way to encode: a line for each peer."""
    for vocabulary in rows.values("vocabulary", kind="texts"):
        ways = {
            (row["documents"], row["output"], row["threads"])
            for row in rows.of(kind="texts", vocabulary=vocabulary)
        }
        for way in sorted(ways, key=lambda way: (way[0] != ONE, way[1], way[2])):
            documents, output, threads = way
            chosen = rows.of(
                vocabulary=vocabulary, documents=documents, output=output, threads=threads
            )
            chosen = [row for row in chosen if row["kind"] == "texts"]
            yield f"\n{vocabulary}, {way_text(*way)}: MB/s cold / next / warm\n"
            yield table(
                ["", *(row["text"] for row in chosen), "same ids"],
                [
                    [name, *(speeds(row, name) for row in chosen), exactness(chosen, name)]
                    for name in rows.names(chosen)
                ],
            )


def way_text(documents: str, output: str, threads: int) -> str:
    what = "one document" if documents == ONE else documents
    into = {ARRAY: "an array", LIST: "a list"}[output]
    if documents != ONE:
        into = {ARRAY: "one array", LIST: "lists"}[output]
    return f"{what} to {into}, {threads} thread{'s' if threads > 1 else ''}"


def speeds(row: dict[str, Any], name: str) -> str:
    if name not in row["peers"]:
        return ""
    if "failed" in row["peers"][name]:
        return str(row["peers"][name]["failed"])
    return " / ".join(rounded(speed(row, name, phase)) for phase in PHASES)


def rounded(value: float | None) -> str:
    """Three digits at most."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def exactness(rows: Sequence[dict[str, Any]], name: str) -> str:
    known = [row["peers"].get(name, {}).get("differing") for row in rows]
    differing = sum(number for number in known if number is not None)
    return f"no, {differing:,} differ" if differing else "yes"


def megabytes_tables(rows: Rows) -> Iterator[str]:
    for vocabulary in rows.values("vocabulary", kind="megabyte"):
        chosen = rows.of(kind="megabyte", vocabulary=vocabulary)
        names = rows.names(chosen)
        yield f"\n{vocabulary}, hard texts of a megabyte to an array: milliseconds, cold\n"
        yield table(
            ["", *names],
            [[row["text"], *(milliseconds(row, name) for name in names)] for row in chosen],
        )


def milliseconds(row: dict[str, Any], name: str) -> str:
    found = row["peers"].get(name)
    if found is None:
        return ""
    if "failed" in found:
        return str(found["failed"])[:40]
    taken = seconds(row, name, "cold")
    mark = " (other ids)" if found["differing"] else ""
    return "–" if taken is None else rounded(taken * 1e3) + mark


def calls_table(rows: Rows) -> Iterator[str]:
    for row in rows.of(kind="calls"):
        yield (
            f"\n{row['vocabulary']}, microseconds of a call with 56 characters, to a list; of a "
            "string of 5 characters in a loop, and in a batch\n"
        )
        columns = ("same", "various", "loop", "batch")
        yield table(
            ["", "the same text", "various texts", "loop", "batch"],
            [
                [name, *(microseconds(row["peers"][name].get(column)) for column in columns)]
                for name in rows.names([row])
            ],
        )


def microseconds(value: float | None) -> str:
    return "–" if value is None else f"{value * 1e6:.2f}"


# The targets


class Target(NamedTuple):
    what: str
    goal: str
    measured: str
    met: bool


def targets_table(rows: Rows) -> Iterator[str]:
    found = [*targets(rows)]
    if not found:
        return
    met = sum(target.met for target in found)
    yield f"\nTargets: {met} of {len(found)} met\n"
    yield table(
        ["", "target", "measured", "met"],
        [[*target[:3], "yes" if target.met else "**no**"] for target in found],
    )


def targets(rows: Rows) -> Iterator[Target]:
    for row in rows.of(kind="texts", threads=1):
        yield from speed_targets(row)
        yield from memory_targets(row)
    yield from threads_targets(rows)
    for row in rows.of(kind="megabyte"):
        taken = seconds(row, "tokbpe", "cold")
        if taken is not None:
            what = f"{row['vocabulary']}, {row['text']}: a megabyte"
            yield at_most(what, taken * 1e3, HARD_SECONDS * 1e3, "ms")
    for row in rows.of(kind="calls"):
        yield from calls_targets(row)


def speed_targets(row: dict[str, Any]) -> Iterator[Target]:
    """How many times as fast as others."""
    if row["documents"] != ONE or row["vocabulary"] not in ("r50k", "cl100k", "o200k"):
        return
    if row["text"] in MAIN and row["output"] == ARRAY:
        for phase, factor in zip(PHASES, (1.3, 1.3, 1.0)):
            yield from times_as_fast(row, phase, "gigatoken", factor)
        for phase in ("cold", "next"):
            yield from times_as_fast(row, phase, "gigatoken", 1.0, "tokbpe, scalar")
    if (row["vocabulary"], row["text"], row["output"]) == ("cl100k", "English", ARRAY):
        yield from times_as_fast(row, "cold", "tiktoken", 14)
        yield from times_as_fast(row, "next", "tiktoken", 19)
        yield from times_as_fast(row, "next", "tokenizers", 100)
    if row["text"] in UNSPACED_AND_OTHER and row["output"] == ARRAY:
        yield from times_as_fast(row, "next", fastest(row, "next"), 1.2)
    if row["text"] in MAIN and row["output"] == LIST:
        for phase in PHASES:
            yield from times_as_fast(row, phase, fastest(row, phase), 1.3)


def fastest(row: dict[str, Any], phase: str) -> str | None:
    """The fastest peer with the same ids."""
    found = {
        name: speed(row, name, phase) or 0.0
        for name, figures in row["peers"].items()
        if name not in OURS and not figures.get("differing") and "failed" not in figures
    }
    return max(found, key=found.__getitem__) if found else None


def times_as_fast(
    row: dict[str, Any], phase: str, peer: str | None, factor: float, ours: str = "tokbpe"
) -> Iterator[Target]:
    """The target, if both have been measured."""
    own = speed(row, ours, phase)
    other = None if peer is None else speed(row, peer, phase)
    if own is not None and other is not None:
        ratio = own / other
        what = f"{row['vocabulary']}, {row['text']}, {row['output']}: {phase}"
        if ours != "tokbpe":
            what += f", {ours}"
        yield Target(what, f"≥ {factor:g} × {peer}", f"{ratio:.2f} ×", ratio >= factor)


def memory_targets(row: dict[str, Any]) -> Iterator[Target]:
    """No more memory than the largest peer's."""
    peaks = {name: figures.get("peak") for name, figures in row["peers"].items()}
    own = peaks.get("tokbpe")
    # Only peers that had the whole text.
    others = {
        name: peak
        for name, peak in peaks.items()
        if peak is not None and name not in OURS and PEERS[name].share == 1
    }
    form = (row["documents"], row["output"], row["text"])
    if own is not None and others and form == (ONE, ARRAY, "English"):
        name = max(others, key=others.__getitem__)
        what = f"{row['vocabulary']}, {row['text']}: memory of the three calls"
        yield at_most(what, own, others[name], "MB", f" ({name})")


def threads_targets(rows: Rows) -> Iterator[Target]:
    """Two threads against one, both by the clock."""
    for two in rows.of(kind="texts", threads=2):
        same = {**plain(two), "threads": 1}
        for one in rows.of(**same):
            slow = seconds(one, "tokbpe", "next", "wall")
            quick = seconds(two, "tokbpe", "next", "wall")
            if slow is not None and quick is not None:
                what = f"{two['vocabulary']}, {two['text']}, {two['documents']}, {two['output']}"
                ratio = slow / quick
                yield Target(
                    f"{what}: next, two threads", "≥ 1.8 × one", f"{ratio:.2f} ×", ratio >= 1.8
                )


def calls_targets(row: dict[str, Any]) -> Iterator[Target]:
    vocabulary = row["vocabulary"]
    for name, most in (("tokbpe.fast", 0.4), ("tokbpe", 0.8)):
        if name in row["peers"]:
            taken = row["peers"][name]["same"] * 1e6
            yield at_most(f"{vocabulary}, {name}: 56 characters", taken, most, "µs")
    own = row["peers"].get("tokbpe", {})
    if "batch" in own:
        ratio = own["batch"] / own["loop"]
        yield at_most(f"{vocabulary}: 100,000 strings, batch ÷ loop", ratio, 1.2, "×")


def at_most(what: str, measured: float, most: float, unit: str, remark: str = "") -> Target:
    return Target(what, f"≤ {most:.3g} {unit}{remark}", f"{measured:.3g} {unit}", measured <= most)


# The picture


def draw(figures: dict[str, Any], stem: Path) -> None:
    """STEM.png and STEM.svg: for each corpus and peer a line from cold to warm, with a mark at
    next."""
    pyplot = drawing.pyplot()
    rows = Rows(figures)
    chosen = picture_rows(rows)
    names = [name for name in rows.names(chosen) if name != "tokbpe, scalar"]
    height = 1.6 + 0.75 * len(chosen)
    chart, axes = pyplot.subplots(figsize=(8, height), dpi=150)
    chart.subplots_adjust(left=0.12, right=0.97, top=1 - 0.75 / height, bottom=0.85 / height)
    for number, name in enumerate(names):
        draw_peer(axes, chosen, name, number, len(names))
    finish_axes(axes, [row["text"] for row in chosen])
    handles, labels = axes.get_legend_handles_labels()
    chart.text(0.03, 1 - 0.2 / height, picture_title(chosen), fontsize=14, fontweight="bold")
    chart.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.02, 1 - 0.25 / height),
        ncols=len(names),
        fontsize=9,
        frameon=False,
        columnspacing=1.2,
        handletextpad=0.1,
    )
    caption = (
        "From the first call (cold) to the same text again (warm); the mark is another text of the "
        "kind (next).\n"
        f"Equal ids asserted; medians of {figures['rounds']} rounds. "
        f"Machine: {drawing.machine_text(figures['machine'])}."
    )
    chart.text(0.03, 0.1 / height, caption, fontsize=8, color="#555555", linespacing=1.4)
    drawing.save(chart, stem)
    pyplot.close(chart)


def draw_peer(
    axes: Any, rows: Sequence[dict[str, Any]], name: str, number: int, count: int
) -> None:
    """A line and a mark of one of so many peers for each corpus."""
    shades = (*drawing.COLORS, "#666666", "#a6761d")
    offset = (number - (count - 1) / 2) * 0.8 / count
    label = name
    for place, row in enumerate(rows):
        points = [speed(row, name, phase) for phase in PHASES]
        if None not in points:
            heights = [place + offset] * 2
            axes.plot([min(points), max(points)], heights, color=shades[number], linewidth=2)
            axes.plot(
                points[1:2],
                heights[:1],
                color=shades[number],
                marker=drawing.MARKERS[number % len(drawing.MARKERS)],
                markersize=6,
                linestyle="",
                label=label,
            )
            label = "_"  # once in the legend


def picture_rows(rows: Rows) -> list[dict[str, Any]]:
    """One document to an array on one thread; of cl100k, if it was measured."""
    form = {"kind": "texts", "documents": ONE, "output": ARRAY, "threads": 1}
    vocabularies = rows.values("vocabulary", **form)
    if not vocabularies:
        raise SystemExit("there are no figures to draw: of one document to an array, on one thread")
    chosen = "cl100k" if "cl100k" in vocabularies else vocabularies[0]
    return rows.of(vocabulary=chosen, **form)


def picture_title(rows: Sequence[dict[str, Any]]) -> str:
    return f"Text to ids: {rows[0]['vocabulary']}, one document to an array, one thread"


def finish_axes(axes: Any, corpora: Sequence[str]) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.set(xscale="log", yticks=range(len(corpora)), yticklabels=corpora)
    axes.invert_yaxis()
    axes.set_xlabel("MB/s", fontsize=10)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
