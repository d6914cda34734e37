"""The native artifact: a file that holds all of a vocabulary.

    tokbpe tokenizer 2          the format and its version
    5d41402abc4b...             SHA-256, in hexadecimal, of all other bytes of the file
    {"alphabet":{...},...}      the plain data of the vocabulary, as JSON with sorted keys; in
                                the place of an array stand its "dtype" and its "shape"
    ...                         merges, merge_ids (if there are any), merge_counts and alphabet:
                                their items, each array directly behind the one before it
    ...                         the entries of the alphabet, one directly behind the other; its
                                array holds their sizes, 0 for an id without an entry

Lines are ASCII and end with a line feed. Equal vocabularies give equal bytes.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, files
from tokbpe.engines import Engine
from tokbpe.vocabulary import PACKED, Vocabulary, as_json

VERSION = 2
FIRST_LINE = re.compile(rb"tokbpe tokenizer ([0-9]{1,9})\n")
LONGEST_FIRST_LINE = 32
DIGEST_LINE = 65


def save(vocabulary: Vocabulary, path: files.Path) -> None:
    """Write a vocabulary to a new path. OSError if it exists or cannot be written."""
    files.publish(path, dumped(vocabulary))


def load(path: files.Path, engine: Engine, trust_pattern: bool = False) -> Vocabulary:
    """The vocabulary that a file holds; its engine cuts the alphabet.

    ValueError for a file that is no artifact, has another version or is damaged; OSError if it
    cannot be read.
    """
    with files.opened(path) as file, files.naming(path):
        start = file.read(LONGEST_FIRST_LINE)
        check_version(start)
        return loaded(files.rest_of(file, start), engine, trust_pattern)


def dumped(vocabulary: Vocabulary) -> bytes:
    """The bytes of the file."""
    plain, parts = vocabulary.packed()
    first_line = b"tokbpe tokenizer %d\n" % VERSION
    content = b"".join([as_json(plain), b"\n", *parts.values()])
    return first_line + digest_line(first_line, content) + content


def digest_line(first_line: bytes, content: bytes) -> bytes:
    """The second line: the SHA-256 of the first and of all behind the second."""
    digest = hashlib.sha256(first_line)
    digest.update(content)
    return digest.hexdigest().encode("ascii") + b"\n"


def check_version(start: bytes) -> None:
    """ValueError unless a file that starts so is an artifact that can be read."""
    match = FIRST_LINE.match(start)
    if match is None:
        raise ValueError(f"this is no tokenizer that tokbpe saved: it starts with {start!r}")
    version = int(match[1])
    if version != VERSION:
        age = "a newer" if version > VERSION else "another"
        raise ValueError(
            f"the file has version {version}, of {age} tokbpe; this one reads version {VERSION}"
        )


def loaded(data: bytes, engine: Engine, trust_pattern: bool = False) -> Vocabulary:
    """The vocabulary of the bytes of a file whose version is known."""
    line_end = data.index(b"\n") + 1
    content = data[line_end + DIGEST_LINE :]
    if data[line_end : line_end + DIGEST_LINE] != digest_line(data[:line_end], content):
        raise ValueError("the file is damaged: its bytes do not have its checksum")
    header, _, body = content.partition(b"\n")
    plain = json.loads(header, object_pairs_hook=arguments.without_doubles)
    if not isinstance(plain, dict):
        raise ValueError(
            f"the data of a vocabulary are an object, not {arguments.type_name(plain)}"
        )
    try:
        return vocabulary_of(plain, body, engine, trust_pattern)
    except TypeError as error:
        raise ValueError(str(error)) from error


def vocabulary_of(
    plain: Mapping[str, Any], body: bytes, engine: Engine, trust_pattern: bool
) -> Vocabulary:
    """The vocabulary of its plain data, and of what stands behind these."""
    arrays, rest = arrays_of(plain, body)
    if "alphabet" not in arrays:
        raise ValueError("the file has no alphabet")
    sizes = arrays.pop("alphabet").astype(np.int32)
    pieces = engine.cut_pieces(rest, sizes)
    return Vocabulary.from_plain({**plain, **arrays, "alphabet": pieces}, trust_pattern)


def arrays_of(plain: Mapping[str, Any], body: bytes) -> tuple[dict[str, NDArray[Any]], bytes]:
    """The arrays that the plain data declare, and what stands behind them in the body."""
    arrays = {}
    start = 0
    for name, dtype in PACKED.items():
        declared = plain.get(name)
        if declared is None:
            continue
        if not isinstance(declared, dict) or declared.keys() != {"dtype", "shape"}:
            raise ValueError(f"{name} must have a dtype and a shape, not {declared!r:.100}")
        if declared["dtype"] != dtype:
            raise ValueError(f"{name} must have the dtype {dtype!r}, not {declared['dtype']!r}")
        shape = declared["shape"]
        dimensions = 2 if name == "merges" else 1
        if not isinstance(shape, list) or len(shape) != dimensions:
            raise ValueError(f"the shape of {name} must be {dimensions} sizes, not {shape!r:.100}")
        for size in shape:  # no merges have the shape (0, 2)
            arguments.whole_number(size, f"a size in the shape of {name}", 0, max(2, len(body)))
        count = math.prod(shape)
        end = start + count * np.dtype(dtype).itemsize
        if end > len(body):
            raise ValueError(f"{name} of the shape {shape!r:.100} does not fit into the file")
        arrays[name] = np.frombuffer(body, dtype, count, start).reshape(shape)
        start = end
    return arrays, body[start:]
