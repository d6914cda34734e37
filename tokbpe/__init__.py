"""Byte-pair-encoding tokenizers that people can read and that run fast."""

from tokbpe.corpus import Corpus, StreamedCorpus
from tokbpe.counting import PieceCounts
from tokbpe.encoded import EncodedCorpus
from tokbpe.stream import StreamDecoder, decode_stream
from tokbpe.tokenizer import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "EncodedCorpus",
    "PieceCounts",
    "StreamDecoder",
    "StreamedCorpus",
    "Tokenizer",
    "__version__",
    "decode_stream",
]
