"""Hugging Face's `tokenizer.json`: byte-level BPE, as most language models have it.

A file is read as `tokenizers` reads it, and gives the same ids, or is refused with the place and
the value that are not honored. A file that is written gives the same ids there.
"""

import json
import os
from typing import Any

from tokbpe import arguments, files
from tokbpe.engines import Engine
from tokbpe.formats.huggingface_read import vocabulary_of
from tokbpe.formats.huggingface_write import content_of
from tokbpe.formats.printable import parsed
from tokbpe.vocabulary import Vocabulary

FILE_NAME = "tokenizer.json"


def load(source: Any, trust_pattern: bool = False) -> Vocabulary:
    """The vocabulary of a `tokenizer.json`, of a folder that holds one, or of a
    `tokenizers.Tokenizer`.

    ValueError, naming the place and the value, for what is not honored or contradicts itself;
    OSError if the file cannot be read.
    """
    if type(source).__module__.partition(".")[0] == "tokenizers" and hasattr(source, "to_str"):
        return loaded(json_of(source), trust_pattern)
    path = os.fsdecode(source)
    if os.path.isdir(path):
        path = os.path.join(path, FILE_NAME)
    with files.naming(path):
        return loaded(files.read(path), trust_pattern)


def json_of(tokenizer: Any) -> bytes:
    """The file that a `tokenizers.Tokenizer` writes."""
    try:
        return str(tokenizer.to_str()).encode("utf-8")
    except Exception as error:  # it has no narrower type
        name = arguments.type_name(tokenizer)  # even its repr() can fail
        raise ValueError(f"this {name} cannot be written as JSON: {error}") from error


def loaded(data: bytes, trust_pattern: bool = False) -> Vocabulary:
    """The vocabulary of the bytes of a file."""
    try:
        return vocabulary_of(parsed(data), trust_pattern)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def save(vocabulary: Vocabulary, path: files.Path, engine: Engine) -> None:
    """Write a new `tokenizer.json`.

    ValueError, naming it, for what the format cannot hold; OSError if the path exists or cannot
    be written.
    """
    text = json.dumps(content_of(vocabulary, engine), ensure_ascii=False)
    files.publish(path, text.encode("utf-8") + b"\n")
