"""The corpora of the training benchmarks: half English, a quarter in five other languages, a
quarter code.

    TOKBPE_DATA=... python benchmarks/corpora.py FOLDER [--megabytes N ...]

Writes mix10.txt and mix100.txt, of 10 and 100 MB, or those of the sizes that are given, to FOLDER.
They are made of the beginnings of the texts of TOKBPE_DATA, and the same each time.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from texts import mixed


def main(argv: Sequence[str] | None = None) -> None:
    whole = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    whole.add_argument("folder", type=Path)
    whole.add_argument("--megabytes", type=int, nargs="+", default=[10, 100])
    options = whole.parse_args(argv)
    for size in options.megabytes:
        path = write_mix(Path(os.environ["TOKBPE_DATA"]), options.folder, size)
        print(path, path.stat().st_size)


def write_mix(data: Path, folder: Path, megabytes: int) -> Path:
    """Write the mixture of so many megabytes; its path."""
    path = folder / f"mix{megabytes}.txt"
    text = "".join(mixed(data / "corpora", megabytes * 10**6))
    path.write_bytes(text.encode("utf-8"))
    return path


if __name__ == "__main__":
    main()
