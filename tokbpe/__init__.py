"""Byte-pair-encoding tokenizers that people can read and that run fast."""

from tokbpe.tokenizer import Tokenizer

__version__ = "0.1.0"

__all__ = ["Tokenizer", "__version__"]
