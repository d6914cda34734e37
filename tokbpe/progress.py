"""Telling how far long work is."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tokbpe import arguments

# Called with what is done and what is to be done, None where that is not known.
Report: TypeAlias = Callable[[int, int | None], object]
Progress: TypeAlias = bool | Report


def checked(progress: object) -> None:
    """TypeError for what is neither a bool nor a function."""
    if not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            f"progress must be a bool or a function, not {arguments.type_name(progress)}"
        )


@contextlib.contextmanager
def reporting(progress: Progress, unit: str, **options: Any) -> Iterator[Report | None]:
    """What is to be called while one kind of work is done; True shows a bar on a terminal.

    options: of the bar. TypeError for what is neither a bool nor a function.
    """
    checked(progress)
    if callable(progress):
        yield without_stop(progress)
    elif not progress:
        yield None
    else:
        from tqdm import tqdm

        with tqdm(unit=unit, disable=None, leave=False, **options) as bar:

            def show(done: int, wanted: int | None) -> None:
                bar.total = wanted
                bar.update(done - bar.n)

            yield show


def without_stop(report: Report) -> Report:
    """A function whose StopIteration, which would end any loop around it, is an error."""

    def told(done: int, wanted: int | None) -> None:
        try:
            report(done, wanted)
        except StopIteration as error:
            raise RuntimeError("the function that progress is has raised StopIteration") from error

    return told
