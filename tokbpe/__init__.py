"""Byte-pair-encoding tokenizers that people can read and that run fast."""

from tokbpe.batches import Batches, TokenDataset
from tokbpe.corpus import Corpus, StreamedCorpus
from tokbpe.counting import PieceCounts
from tokbpe.encoded import EncodedCorpus
from tokbpe.sharding import write_shards
from tokbpe.shards import Shards
from tokbpe.stream import StreamDecoder, decode_stream
from tokbpe.tokenizer import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "Batches",
    "Corpus",
    "EncodedCorpus",
    "PieceCounts",
    "Shards",
    "StreamDecoder",
    "StreamedCorpus",
    "TokenDataset",
    "Tokenizer",
    "__version__",
    "decode_stream",
    "write_shards",
]
