"""How pictures are drawn from kept figures: the same figures give the same file."""

import sys
from pathlib import Path
from typing import Any

# Told apart by color-blind people too.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "os^Dvp"


def pyplot() -> Any:
    """matplotlib's pyplot; ends the script with an error if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        sys.exit('to draw the figures, install matplotlib: pip install "tokbpe[plot]"')
    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "tokbpe"
    return pyplot


def save(chart: Any, stem: Path) -> None:
    """STEM.png and STEM.svg."""
    chart.savefig(stem.with_suffix(".png"))
    chart.savefig(stem.with_suffix(".svg"), metadata={"Date": None})


def machine_text(machine: dict[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}, {machine['date']}"
    )
