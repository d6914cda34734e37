"""The command line; nothing else in the package prints."""

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence

from tokbpe import __version__, demo

FAILED = 1
INTERRUPTED = 130  # as a shell reports SIGINT
NOBODY_READS = 141  # as a shell reports SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors are told on standard error.

    0: done; 1: the work failed; 130: Ctrl-C; 141: nobody reads the output any more. Wrong use
    raises SystemExit with the code 2, --help and --version raise it with 0, as argparse does.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An output that is no UTF-8 shows other characters as their code points.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments = parsed(argv)
        for line in arguments.command(arguments):
            say(f"{line}\n")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return NOBODY_READS
    except (OSError, ImportError, demo.DemoError) as error:
        print(f"tokbpe: error: {error}", file=sys.stderr)
        return FAILED
    return 0


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    try:
        return parser().parse_args(argv)
    finally:
        say("")  # flushes what argparse has printed


def parser() -> argparse.ArgumentParser:
    """What the command line accepts; `command` takes the parsed arguments and yields lines."""
    whole = argparse.ArgumentParser(
        prog="tokbpe",
        description="Byte-pair-encoding tokenizers.",
        epilog="example:\n  tokbpe demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"tokbpe {__version__}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demonstration = commands.add_parser(
        "demo",
        help="train on the source files of this Python's library, and show the result",
        description=(
            "Train both engines on a part of the source files of this Python's library and "
            "compare them, train the fast one on all of it, and show merges, tokens and speeds. "
            "Takes some seconds and needs no network."
        ),
    )
    demonstration.set_defaults(command=demo_lines)
    return whole


def demo_lines(arguments: argparse.Namespace) -> Iterator[str]:
    return demo.lines(progress=on_terminal())


def on_terminal() -> bool:
    """Whether a progress bar would be seen, and would disturb no other output."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))


def say(text: str) -> None:
    """Write to standard output at once."""
    try:
        print(text, end="", flush=True)
    except OSError:
        # What could not be written would be tried again, and complained about, at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
