"""The compiled engine against the reference, and against itself where it has several ways."""

import json
import warnings
from typing import Any

import numpy as np

from cases import CoreCase, Options, Raised, Way, attempt, warm_up
from differential import compare
from fuzzing.inputs import Choices, limited, outcome, same
from fuzzing.readers import SECONDS
from tokbpe import StreamDecoder, Tokenizer, fast, patterns, reference
from tokbpe.offsets import EncodedBytes

BYTES = [bytes([byte]) for byte in range(256)]
PATTERNS = [None, *patterns.NAMED, patterns.WORDS, r"\w+|\s", "[a]", r"(?s:.{1,7})", "a+b*"]
FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
ENGINES = (fast, reference)
PLAIN = Tokenizer.from_bytes(special_tokens=["<|end|>", "é"], reserved=["EOS"])


def encode(data: bytes) -> None:
    """A table of merges or of ranks, special tokens, and a text."""
    choices = Choices(data)
    special = special_tokens(choices)
    arguments = table_arguments(choices)
    warm = choices.number(2)
    limit = choices.pick([None, 0, 1, 5, 40])
    text = choices.rest()
    ours, theirs = (
        outcome(lambda engine=engine: engine.encoding_table(**arguments)) for engine in ENGINES
    )
    if isinstance(ours, Raised) or isinstance(theirs, Raised):
        same(ours, theirs)
        return
    if warm:
        warm_up(ours)
    ids = same(
        outcome(fast.encode, text, ours, special), outcome(reference.encode, text, theirs, special)
    )
    same(
        outcome(fast.count, text, ours, special, limit),
        outcome(reference.count, text, theirs, special, limit),
    )
    if isinstance(ids, Raised):
        return
    assert fast.Encoder(ours, special).encode(text) == ids
    assert fast.encode_array(text, ours, special, threads=2).tolist() == ids
    texts = [text, text[: len(text) // 2], b"", text]
    rows = fast.encode_batch(texts, ours, special, threads=2)
    assert rows == [fast.encode(part, ours, special) for part in texts]
    flat, offsets = fast.encode_batch_arrays(texts, ours, special, threads=2)
    assert [part.tolist() for part in np.split(flat, offsets[1:-1].astype(np.int64))] == rows
    room = np.zeros(len(ids), np.uint32)
    assert fast.encode_into(text, ours, room, special) == len(ids) and room.tolist() == ids


def special_tokens(choices: Choices) -> Any:
    """Up to three spellings with ids of their own."""
    return {
        choices.bytes(1 + choices.number(4)) or b"<": 70_000 + number
        for number in range(choices.number(4))
    }


def table_arguments(choices: Choices) -> dict[str, Any]:
    """Merges of ids that exist, or of any; or pieces with ranks."""
    pattern = choices.pick(PATTERNS)
    whole = bool(choices.number(2))
    if choices.number(3) == 0:
        pieces = [choices.bytes(2 + choices.number(5)) for _ in range(choices.number(40))]
        alphabet = [*BYTES, *dict.fromkeys(piece for piece in pieces if len(piece) > 1)]
        rule = "rank_by_piece"
        return {"alphabet": alphabet, "merges": [], "pattern": pattern, "merge_rule": rule,
                "whole_piece_lookup": whole}  # fmt: skip
    merges = []
    for number in range(choices.number(60)):
        pair = choices.number(256), choices.number(256)
        if choices.number(2):  # the last ones again
            pair = pair[0], 256 + number - 1 - pair[1] % 4
        merges.append(pair)
    return {"alphabet": BYTES, "merges": merges, "pattern": pattern, "whole_piece_lookup": whole}


def decode(data: bytes) -> None:
    """Ids of several types, to bytes at once and one after another."""
    choices = Choices(data)
    vocabulary = [choices.bytes(choices.number(4)) or None for _ in range(choices.number(300))]
    unknown = choices.pick([None, b"?"])
    kind = choices.pick(["uint8", "uint16", "uint32", "int64", "uint64", "list", "wide"])
    rest = choices.rest()
    if kind in ("list", "wide"):
        sizes = range(0, len(rest), 1 if kind == "list" else 9)
        step = 1 if kind == "list" else 9
        ids: Any = [int.from_bytes(rest[at : at + step], "little", signed=True) for at in sizes]
    else:
        size = np.dtype(kind).itemsize
        ids = np.frombuffer(rest[: len(rest) // size * size], kind)
    same(
        *(
            attempt(engine.decode, ids, engine.decoding_table(vocabulary, unknown))
            for engine in ENGINES
        )
    )
    few = [int(id) % 262 for id in ids]
    for skip in (False, True):
        whole = outcome(PLAIN.decode, few, "replace", skip)
        stream = StreamDecoder(PLAIN, "replace", skip)
        parts = outcome(lambda s=stream: "".join(map(s.put, few)) + s.finish())
        if isinstance(whole, Raised):
            assert isinstance(parts, Raised)
        else:
            assert whole == parts


def train(data: bytes) -> None:
    """A training by options, of documents with zero bytes between them."""
    choices = Choices(data)
    method = choices.pick(["bpe", "bpe", "bpe", "word", "char", "byte"])
    options: dict[str, Any] = {"method": method, "threads": 1 + choices.number(3)}
    if method in ("bpe", "word"):
        options["vocabulary_size"] = choices.pick([None, 257, 270, 400])
        options["minimum_pair_frequency"] = choices.pick([None, 1, 2, 3])
        options["tie_break"] = choices.pick([None, "smallest", "first", "greatest"])
    if method == "bpe":
        options["pattern"] = choices.pick([None, *patterns.NAMED, r"\w+|\s", "[a]"])
        options["base"] = choices.pick([None, "bytes", "gpt2"])
        options["special_ids"] = choices.pick([None, "base", "first", "end"])
    options["special_tokens"] = choices.pick([(), ("<|e|>",), ("a", "ab", " "), ("é\n", "\0")])
    options["reserved"] = choices.pick([(), ("BOS", "EOS")])
    documents = choices.rest().split(b"\0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few ids
        ours, theirs = (
            outcome(lambda engine=engine: Tokenizer(documents, engine=engine, **options))
            for engine in ("fast", "reference")
        )
    if isinstance(ours, Raised) or isinstance(theirs, Raised):
        same(ours, theirs)
        return
    assert json.dumps(ours.state()) == json.dumps(theirs.state())
    for document in documents:
        ids = same(*(outcome(one.encode_bytes, document) for one in (ours, theirs)))
        if isinstance(ids, Raised):
            continue
        if ours.lossless:
            assert ours.decode_bytes(ids) == document
        spans = outcome(ours.encode_bytes_with_offsets, document)
        if isinstance(spans, EncodedBytes):
            assert list(spans.ids) == ids


def cores(data: bytes) -> None:
    """Sequences of few symbols, with weights, through all ways of the compiled training."""
    choices = Choices(data)
    alphabet = choices.pick([[b"a", b"b"], [b"c", None, b"ab", b"a", b"b"], BYTES])
    symbols = [id for id, entry in enumerate(alphabet) if entry is not None]
    chosen = Options(
        choices.number(40),
        choices.pick([1, 2, 3, 2**32, 2**62]),
        choices.pick(["smallest", "first", "greatest"]),
    )
    limits = {
        "narrow_tokens": choices.pick([0, len(alphabet) + 1, len(alphabet) + 9, 2**16 - 2]),
        "factor": choices.pick([1, 2, 16]),
        "dense_tokens": choices.pick([0, len(alphabet) + 3, 1024]),
        "sieve_bits": choices.pick([1, 3, 20]),
        "slice": choices.pick([1, 7, 2_000_000]),
        "thread_cells": choices.pick([1, 2, 5]),
    }
    way = Way(
        limits,
        choices.pick([1, 1, 2, 3]),
        choices.pick([None, "uint16", "uint32"]),
        choices.pick(["int64", "uint64"]),
    )
    factor = choices.pick([1, 1, 2**31, 2**32 + 1, 2**57, 2**62])
    rows, weights = [], []
    for row in choices.rest().split(b"\xff"):
        weights.append(factor * (1 + (row[0] if row else 0) % 3))
        rows.append([symbols[byte % len(symbols)] for byte in row])
    compare(CoreCase(rows, weights, alphabet, chosen, [way]), fast)


def pattern(data: bytes) -> None:
    """A regular expression and, behind a zero byte, a text: compiled and its pieces join to the
    text, or refused; the same as others spell it, and back."""
    spelled, _, text = data.partition(b"\0")
    source = spelled.decode("utf-8", "surrogateescape")
    with limited(SECONDS):
        for read in (patterns.get, patterns.from_tiktoken, from_hugging_face):
            found = outcome(read, source)
            if not isinstance(found, Raised):
                check_pattern(found, text)


def from_hugging_face(source: str) -> patterns.Pattern:
    return patterns.from_huggingface([source], keep_gaps=False)


def check_pattern(found: patterns.Pattern, text: bytes) -> None:
    pieces = same(*(engine.split(text, found) for engine in ENGINES))
    if found.keep_gaps:
        assert b"".join(pieces) == text
    for write, read in (
        (patterns.to_tiktoken, patterns.from_tiktoken),
        (
            patterns.to_huggingface,
            lambda made: patterns.from_huggingface(made, found.keep_gaps, trust_pattern=True),
        ),
    ):
        made = outcome(write, found)
        if not isinstance(made, Raised):
            assert fast.split(text, read(made)) == pieces, f"{found} became {made}"


def special(data: bytes) -> None:
    """Special tokens with flags, cut out of a text."""
    choices = Choices(data)
    ids = {}
    flags = {}
    for number in range(choices.number(5)):
        spelling = choices.bytes(1 + choices.number(5)) or b"<"
        ids[spelling] = 300 + number
        chosen = choices.number(16)
        flags[spelling] = tuple(flag for bit, flag in enumerate(FLAGS) if chosen >> bit & 1)
    text = choices.rest()
    tables = [outcome(engine.special_table, ids, flags) for engine in ENGINES]
    if any(isinstance(table, Raised) for table in tables):
        same(*tables)
        return
    cut = same(*(e.cut_special(text, table) for e, table in zip(ENGINES, tables)))
    assert b"".join(part for part, _ in cut) == text
    same(*(e.count_pieces([text], "gpt2", table) for e, table in zip(ENGINES, tables)))
