"""The compiled engine: the functions of `tokbpe.reference`, with the same results and errors.

Only two types differ: `train` returns NumPy arrays, and the tables that `encoding_table` and
`decoding_table` prepare are opaque. Tables never change, so threads may share them.

`Encoder` is for loaders. Compiled callers have the native table: see `include/tokbpe.h`.
"""

from os import path

try:
    from tokbpe.fast.batch import (
        count_batch,
        encode_array,
        encode_batch,
        encode_batch_arrays,
        encode_into,
    )
    from tokbpe.fast.count import count_pieces, count_table, document_view
    from tokbpe.fast.count_pairs import count_pairs, merge_pair
    from tokbpe.fast.decode import decode, decoding_table
    from tokbpe.fast.encode import count, encode
    from tokbpe.fast.encoder import Encoder
    from tokbpe.fast.piece_table import PieceTable
    from tokbpe.fast.ranks import cut_pieces, read_ranks
    from tokbpe.fast.special import cut_special, special_table
    from tokbpe.fast.split import split
    from tokbpe.fast.table import encoding_table
    from tokbpe.fast.train import train, train_steps
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("tokbpe.fast."):
        raise
    raise ImportError(
        f"the compiled engine is not built ({error.name} is missing): run `pip install .` in the "
        'source folder, with a C compiler, or choose the slow one with engine="reference"'
    ) from error

__all__ = [
    "Encoder",
    "PieceTable",
    "count",
    "count_batch",
    "count_pairs",
    "count_pieces",
    "count_table",
    "cut_pieces",
    "cut_special",
    "decode",
    "decoding_table",
    "document_view",
    "encode",
    "encode_array",
    "encode_batch",
    "encode_batch_arrays",
    "encode_into",
    "encoding_table",
    "get_include",
    "merge_pair",
    "read_ranks",
    "special_table",
    "split",
    "train",
    "train_steps",
]


def get_include() -> str:
    """The folder of `tokbpe.h`, for the compiler of a module that uses the native table."""
    return path.join(path.dirname(__file__), "include")
