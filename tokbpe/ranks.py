"""Reading pieces by their ids: of rank files, which are tiktoken's format, and of blobs.

On each line of a rank file stand a piece in base64, a space, and the rank of the piece.
"""

import binascii
import re
from collections.abc import Sequence

LINE = re.compile(rb"([A-Za-z0-9+/]+={0,2}) ([0-9]{1,10})\r?")
HIGHEST_RANK = 2**24 - 1
MOST_FILE_GAPS = 2**20  # ids without a piece: a short file must not ask for gigabytes


class Pieces(tuple[bytes | None, ...]):
    """Pieces by their ids, None for a gap. No piece is empty, and none stands twice: this is
    known, so that nobody needs to look again at what may be hundreds of thousands."""

    __slots__ = ()


def read_ranks(data: bytes) -> Pieces:
    """The pieces of a rank file by their ranks; None where no piece has the rank.

    Empty lines are skipped. ValueError, naming the line, for any other line that does not hold a
    piece and its rank, and for a piece or a rank that stands twice; also where one of the 256
    single bytes is missing.
    """
    lines: dict[int, int] = {}  # rank -> the line where it stands
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if line in (b"", b"\r"):
            continue
        try:
            match = LINE.fullmatch(line)
            piece = binascii.a2b_base64(match[1]) if match else b""
        except binascii.Error:
            piece = b""
        if match is None or not piece or binascii.b2a_base64(piece, newline=False) != match[1]:
            raise ValueError(f"line {number} must be base64, a space and a rank, not {line[:80]!r}")
        rank = int(match[2])
        if rank > HIGHEST_RANK:
            raise ValueError(f"line {number} has the rank {rank}, which is above {HIGHEST_RANK}")
        if rank in lines:
            raise ValueError(f"lines {lines[rank]} and {number} both have the rank {rank}")
        if piece in ranks:
            raise ValueError(f"lines {lines[ranks[piece]]} and {number} both hold {piece[:80]!r}")
        lines[rank] = number
        ranks[piece] = rank
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ValueError(
            f"the single byte 0x{missing[0]:02x} has no rank; {len(missing)} have none"
        )
    check_gaps(max(lines), len(lines))
    pieces: list[bytes | None] = [None] * (max(lines) + 1)
    for piece, rank in ranks.items():
        pieces[rank] = piece
    return Pieces(pieces)


def check_gaps(highest: int, count: int) -> None:
    """ValueError for too many ids without a piece, for a table by id."""
    gaps = highest + 1 - count
    if gaps > MOST_FILE_GAPS:
        raise ValueError(
            f"the highest id is {highest}, so that {gaps} ids have no piece; at most "
            f"{MOST_FILE_GAPS} may lack one"
        )


def cut_pieces(blob: bytes, sizes: Sequence[int]) -> Pieces:
    """The pieces that lie one after another in a blob, by their sizes; None for the size 0.

    (b"abc", [1, 0, 2]) -> (b"a", None, b"bc")

    ValueError unless the sizes fill the blob, and for a piece that stands twice.
    """
    sizes = [int(size) for size in sizes]
    if min(sizes, default=0) < 0 or sum(sizes) != len(blob):
        raise ValueError(f"the sizes of the pieces, {sum(sizes)} in all, do not fill {len(blob)}")
    pieces: dict[bytes, int] = {}
    start = 0
    for id, size in enumerate(sizes):
        piece = blob[start : start + size]
        if size and pieces.setdefault(piece, id) != id:
            raise ValueError(f"the ids {pieces[piece]} and {id} both have the piece {piece[:80]!r}")
        start += size
    found: list[bytes | None] = [None] * len(sizes)
    for piece, id in pieces.items():
        found[id] = piece
    return Pieces(found)
