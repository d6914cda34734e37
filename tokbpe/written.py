"""Ids as they are written: lines of text, mere numbers, a NumPy array.

They come as the blocks of one file after another, which `Tokenizer.encode_file` gives.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import IO

import numpy as np

from tokbpe.encoding import Arrays

HEADER_BYTES = 128


def lines(files: Iterable[Iterable[Arrays]]) -> Iterator[bytes]:
    """A line of ids for each document, in parts."""
    for blocks in files:
        begun = False  # whether there is a line that has not ended
        between = ""  # what comes before the next id of it
        for ids, offsets in blocks:
            numbers = ids.tolist()
            text = []
            for index, (start, stop) in enumerate(pairwise([0, *offsets.tolist()])):
                if index:  # what comes first belongs to the document before
                    text.append("\n" if begun else "")
                    begun, between = True, ""
                if start < stop:
                    text += [between, " ".join(map(str, numbers[start:stop]))]
                    between = " "
            yield "".join(text).encode("ascii")
        if begun:
            yield b"\n"


def numbers(files: Iterable[Iterable[Arrays]]) -> Iterator[bytes]:
    """All ids, little-endian, in parts."""
    for blocks in files:
        for ids, _ in blocks:
            yield ids.astype(ids.dtype.newbyteorder("<"), copy=False).tobytes()


def write_array(file: IO[bytes], files: Iterable[Iterable[Arrays]], dtype: str) -> None:
    """All ids as a .npy file."""
    kind = np.dtype(dtype).newbyteorder("<")
    size = 0
    # How many there are stands before them, in a header that has the same size for any number.
    write_header(file, kind, 0)
    for part in numbers(files):
        file.write(part)
        size += len(part)
    file.seek(0)
    write_header(file, kind, size // kind.itemsize)


@contextmanager
def reading_array() -> Iterator[None]:
    """NumPy raises errors of many kinds for a .npy file that is damaged; here they are a
    ValueError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"this is no whole .npy file: {error}") from error


def write_header(file: IO[bytes], kind: "np.dtype[np.unsignedinteger]", count: int) -> None:
    file.write(header(kind, count))


def header(kind: "np.dtype[np.unsignedinteger]", count: int) -> bytes:
    """What stands before the numbers of a .npy file, as NumPy writes it."""
    text = f"{{'descr': {kind.str!r}, 'fortran_order': False, 'shape': ({count},), }}"
    return b"\x93NUMPY\x01\x00v\x00" + text.encode("ascii").ljust(HEADER_BYTES - 11) + b"\n"
