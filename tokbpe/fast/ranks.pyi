from collections.abc import Sequence
from typing import Any

from tokbpe.ranks import Pieces

def read_ranks(data: bytes) -> Pieces: ...
def cut_pieces(blob: bytes, sizes: Sequence[int] | Any) -> Pieces: ...
