"""The figures of `train.py` as tables in Markdown, held against the targets."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import drawing
from trainers import OURS, PIECES, RAW, TRAINERS, WORDS


class Target(NamedTuple):
    """What tokbpe must reach in one case: so many times a peer's speed, or so many seconds, or so
    many bytes of memory for each byte of text."""

    case: dict[str, Any]
    peer: str | None
    ratio: float | None = None
    seconds: float | None = None
    memory: float | None = None


def pieces(corpus: str, merges: int, pattern: str = "gpt2", threads: int = 1) -> dict[str, Any]:
    return {
        "corpus": corpus,
        "regime": PIECES,
        "merges": merges,
        "pattern": pattern,
        "threads": threads,
    }


def raw(corpus: str, merges: int) -> dict[str, Any]:
    return {"corpus": corpus, "regime": RAW, "merges": merges}


TARGETS = (
    Target(pieces("mix10", 32_000), "gigabpe", 2),
    Target(pieces("mix10", 32_000, "cl100k"), "tokenizers", 16),
    *(Target(pieces("mix100", 32_000, "gpt2", n), "gigabpe", 1.9) for n in (1, 2)),
    *(Target(pieces("mix100", 32_000, "cl100k", n), "tokenizers", 19) for n in (1, 2)),
    Target(pieces("mix100", 100_000), "gigabpe", 1.8),
    Target(raw("mix10", 4_000), "rustbpe", 30),
    Target(raw("mix100", 32_000), None, seconds=6, memory=10),
    Target({"regime": WORDS, "threads": 1}, "gigabpe", 2),
    Target({"corpus": "letters"}, None, seconds=1),
)
GROWTH = 12  # of the time for raw text of ten times the size


def report(figures: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    lines = [
        f"{drawing.machine_text(figures['machine'])}; medians of {figures['rounds']} rounds.",
        f"{versions}; `{figures['command']}`",
        "",
        *table(figures["rows"]),
        "",
        *targets(figures["rows"]),
    ]
    return "\n".join(lines)


# Seconds and memory


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    names = [name for name in TRAINERS if any(name in row["trainers"] for row in rows)]
    yield "Seconds (and megabytes of memory beside the text); × says how often the time of tokbpe."
    yield ""
    yield " | ".join(["| corpus | cut | merges | threads", *names]) + " |"
    yield "| --- " * (len(names) + 4) + "|"
    for row in rows:
        cells = [cell(row, name) for name in names]
        cut = row["pattern"] or row["regime"]
        yield f"| {row['corpus']} | {cut} | {row['merges']:,} | {row['threads']} | " + (
            " | ".join(cells) + " |"
        )


def cell(row: dict[str, Any], name: str) -> str:
    found = row["trainers"].get(name)
    if found is None:
        return ""
    if "failed" in found:
        return str(found["failed"])
    taken, own = seconds(row, name), seconds(row, OURS)
    assert taken is not None
    text = f"{taken:.3g}"
    if found["peak"] is not None:
        text += f" ({found['peak']:.0f})"
    if name != OURS and own:
        text += f" {taken / own:.1f} ×"
    return text if found.get("equal", True) else f"{text}, other merges"


def seconds(row: dict[str, Any], name: str) -> float | None:
    """CPU time for one thread, by the clock for several; None where there is no figure."""
    found = row["trainers"].get(name)
    if found is None or "failed" in found:
        return None
    return float(found["seconds"]["cpu" if row["threads"] == 1 else "wall"])


# Targets


def targets(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| target | wanted | found | |"
    yield "| --- | --- | --- | --- |"
    for target in TARGETS:
        for row in rows:
            if target.case.items() <= row.items():
                yield from against(target, row)
    yield from growth(rows)


def against(target: Target, row: dict[str, Any]) -> Iterator[str]:
    what = [row["corpus"], row["pattern"] or row["regime"], f"{row['merges']:,} merges"]
    case = ", ".join([*what, f"{row['threads']} thread" + "s" * (row["threads"] > 1)])
    own = seconds(row, OURS)
    if own is None:
        return
    if target.ratio is not None and target.peer is not None:
        other = seconds(row, target.peer)
        if other is not None:
            yield line(
                f"{case}, against {target.peer}",
                f"{target.ratio:g} ×",
                f"{other / own:.2f} ×",
                other / own >= target.ratio,
            )
    if target.seconds is not None:
        yield line(case, f"{target.seconds:g} s", f"{own:.2f} s", own <= target.seconds)
    peak = row["trainers"][OURS]["peak"]
    if target.memory is not None and peak is not None:
        used = peak * 1e6 / row["bytes"]
        yield line(
            f"{case}, memory for each byte",
            f"{target.memory:g}",
            f"{used:.1f}",
            used <= target.memory,
        )


def growth(rows: list[dict[str, Any]]) -> Iterator[str]:
    """How many times as long raw text of ten times the size takes."""
    times = {
        row["corpus"]: seconds(row, OURS)
        for row in rows
        if row["regime"] == RAW and row["merges"] == 32_000
    }
    small, large = times.get("mix10"), times.get("mix100")
    if small and large:
        found = large / small
        yield line("raw, mix100 against mix10", f"{GROWTH} ×", f"{found:.1f} ×", found <= GROWTH)


def line(what: str, wanted: str, found: str, met: bool) -> str:
    return f"| {what} | {wanted} | {found} | {'met' if met else '**missed**'} |"
