"""Tokens in a terminal, in colors by rich: the extra `terminal`."""

import io
import os
from typing import Any

from tokbpe.show.shown import Tokens

MISSING = 'colors need rich: pip install "tokbpe[terminal]"'


def wanted(stream: Any) -> bool:
    """Whether a stream is to have colors: that of a terminal that has them, unless NO_COLOR says
    no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream is not None and bool(stream.isatty())


def colored(tokens: Tokens) -> str:
    """Tokens with the escape sequences of their colors; a line ends where the text has one.

    ImportError, naming the extra, without rich.
    """
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError as error:
        raise ImportError(MISSING) from error
    text = Text()
    for number, token in enumerate(tokens.shown):
        background, ink = token.colors(number)
        text.append(token.plain, style=f"{ink} on {background}")
        if b"\n" in token.piece:
            text.append("\n")
    console = Console(file=io.StringIO(), force_terminal=True, no_color=False, highlight=False)
    with console.capture() as captured:
        console.print(text, soft_wrap=True, end="")
    return str(captured.get())
