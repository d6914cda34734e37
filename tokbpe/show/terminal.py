"""Tokens in a terminal, in colors by rich: the extra `terminal`."""

import io
import os
from typing import Any

from tokbpe.show.shown import Token, Tokens

MISSING = 'colors need rich: pip install "tokbpe[terminal]"'

# Where there are sixteen colors, in which the tints would be one.
FEW = ("cyan", "white", "green")


def wanted(stream: Any) -> bool:
    """Whether a stream is to have colors: that of a terminal that has them, unless NO_COLOR says
    no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream is not None and bool(stream.isatty())


def colored(tokens: Tokens) -> str:
    """Tokens with the escape sequences of their colors; a line ends where the text has one.
    Between brackets for a terminal that has no colors.

    ImportError, naming the extra, without rich.
    """
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError as error:
        raise ImportError(MISSING) from error
    console = Console(file=io.StringIO(), force_terminal=True, no_color=False, highlight=False)
    if console.color_system is None:
        return str(tokens)
    text = Text()
    for number, token in enumerate(tokens.shown):
        text.append(token.plain, style=style(token, number, console.color_system))
        if b"\n" in token.piece:
            text.append("\n")
    with console.capture() as captured:
        console.print(text, soft_wrap=True, end="")
    return str(captured.get())


def style(token: Token, number: int, color_system: str) -> str:
    if color_system == "standard" and token.kind == "piece":
        return f"black on {FEW[number % len(FEW)]}"
    background, ink = token.colors(number)
    return f"{ink} on {background}"
