"""The HTML that all that is shown shares. It brings its own styles, element by element, since a
notebook may drop a style sheet, and reads well where these are dropped as well."""

import html
from collections.abc import Iterable, Sequence

TOKEN = (
    "font:0.9em/1.4 monospace;padding:1px 3px;margin:1px;border:0;border-radius:3px;"
    "display:inline-block;white-space:pre-wrap;"
)
FLOW = "line-height:2.3;overflow-wrap:anywhere"
ABOVE = "font-size:0.8em;line-height:1"  # what stands above tokens
# Dollars in a text are no mathematics, which some notebooks typeset.
AS_IT_IS = 'class="tex2jax_ignore mathjax_ignore"'
CELL = "padding:3px 10px;border:0;white-space:nowrap;text-align:"


def note(text: str) -> str:
    return f"<div {AS_IT_IS}><small>{html.escape(text)}</small></div>"


def count(number: int, what: str) -> str:
    """(1, "token") -> "1 token"; (2_000, "token") -> "2,000 tokens" """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
    """A table of cells that are HTML; `right` names the columns with numbers."""
    sides = ["right" if name in right.split() else "left" for name in header]
    head = "".join(
        f'<th scope="col" style="{CELL}{side}">{name}</th>' for name, side in zip(header, sides)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{CELL}{side}">{cell}</td>' for cell, side in zip(row, sides))
        + "</tr>"
        for row in rows
    )
    return framed(f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and what there is to say of them, both text."""
    return framed(
        "".join(
            f'<tr><th scope="row" style="{CELL}left">{html.escape(name)}</th>'
            f'<td style="{CELL}left">{html.escape(value)}</td></tr>'
            for name, value in rows
        )
    )


def framed(rows: str, style: str = "border-collapse:collapse") -> str:
    """A table that scrolls where it is wider than its place."""
    return (
        f'<div {AS_IT_IS} style="overflow-x:auto">'
        f'<table style="{style};color:inherit">{rows}</table></div>'
    )
