"""Files in blocks: the ids are those of each document, wherever blocks and parts of them end."""

import gzip
import io
import os
import re
import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import FLAGS
from tokbpe import Tokenizer, blocks, engines, patterns, reading, reference
from tokbpe.vocabulary import Vocabulary

core = pytest.mark.core

CORPUS = "It's low, lower, lowest: 12345 newest\r\nwidest 你好。世界 naïve e\u0301 don't\n\n" * 3
PATTERNS = [*{pattern.name: pattern for pattern in patterns.NAMED.values()}.values()]

# What patterns treat in different ways, and what stands near white space.
CHARACTERS = [
    *"abLI12 \n\r\t'.,/<>_",
    *"éǅʰٱ٣½你。、ー\u3000\xa0\x85\u2028\u0301\u093e\u200d\x1c\x00\u1161",
    "😀",
]
BYTES = [*(char.encode() for char in CHARACTERS), b"\xff", b"\xc3", b"\x80", b"\xe4\xbd", b"'ll"]
# Mostly letters, digits and white space.
DATA = st.lists(
    st.sampled_from(BYTES) | st.sampled_from([b"a", b" ", b"\n", b"1", "你".encode(), b"."]),
    max_size=24,
).map(b"".join)


def all_cuts(data, places=reading.BEFORE_SPACE_OR_BEHIND_LINE, spellings=()):
    return {reading.safe_cut(data, end, places, spellings) for end in range(len(data) + 1)} - {0}


@core
@pytest.mark.parametrize("pattern", [*PATTERNS, patterns.WORDS], ids=lambda pattern: pattern.name)
@given(data=DATA, more=DATA)
def test_pieces_do_not_cross_a_safe_cut(pattern, data, more):
    data += b"a b\nc" + more
    pieces = reference.split(data, pattern)
    cuts = all_cuts(data)
    assert cuts or len(more) < 4
    for place in cuts:
        assert reference.split(data[:place], pattern) + reference.split(data[place:], pattern) == (
            pieces
        )


@core
@pytest.mark.parametrize(
    ("data", "cuts"),
    [
        ("ab cd ef", {2}),  # four bytes are looked at behind a place
        ("ab cd efghi", {2, 5}),
        ("12 34 5678", {2, 5}),
        (". x y zabcd", {1, 3, 5}),
        ("a  bcdefg", {1}),
        ("a\nbcdefg", {2}),
        ("a\n\nbcdefg", set()),
        ("a\n bcdefg", set()),
        ("a\n1bcdefg", set()),
        (" abcdefg", set()),
        ("\nabcdefg", set()),
        ("a\r\nbcdefg", set()),
        ("a\t bcdefg", set()),
        ("你。\n你好你好", {7}),
        ("你\u3000 bcdefg", set()),
        ("你\xa0\nbcdefg", set()),
        (b"a\xff bcdefg", {2}),
        (b"a\xa0 bcdefg", {2}),  # this is no character, so no white space
        ("abcdefghijk", set()),
    ],
)
def test_where_safe_cuts_are(data, cuts):
    data = data.encode() if isinstance(data, str) else data
    assert all_cuts(data) == cuts


def test_the_last_cut_is_found_across_windows(monkeypatch):
    data = b"word " + b"." * 1000 + b" " + b"x" * 500
    for window in (2, 3, 7, 100, 501, 1001, 5000):
        monkeypatch.setattr(reading, "WINDOW", window)
        assert reading.safe_cut(data, len(data), reading.BEFORE_SPACE, ()) == 1005
        assert reading.safe_cut(data, 1004, reading.BEFORE_SPACE, ()) == 4


def test_no_token_touches_a_cut():
    data = b"low <s> low<s> <s>low low"
    assert all_cuts(data, reading.BEFORE_SPACE, [b"<s>"]) == {3}
    assert all_cuts(data, reading.BEFORE_SPACE, [b"low"]) == {7, 14}
    assert all_cuts(data, reading.BEFORE_SPACE, [b"<s> "]) == {3}
    assert all_cuts(data, reading.BEFORE_SPACE, [b" "]) == set()


# Blocks of a file


def documents_of(data, documents):
    """What `documents` makes of a file, told in another way."""
    if documents == "whole":
        return [data]
    if documents == "line":
        return re.findall(rb"([^\n]*?)\r?\n|([^\n]+)\Z", data) and [
            end or start for start, end in re.findall(rb"([^\n]*?)\r?\n|([^\n]+)\Z", data)
        ]
    separator = documents if isinstance(documents, bytes) else documents.encode()
    found = data.split(separator)
    return found if found[-1] else found[:-1]


def rows_of(blocks):
    """The ids of each document, put together from blocks."""
    rows = []
    for ids, offsets in blocks:
        assert offsets.dtype == np.uint64 and offsets[-1] == len(ids)
        places = offsets.tolist()
        assert places == sorted(places)
        if places[0]:
            rows[-1] += ids[: places[0]].tolist()
        rows += [ids[start:end].tolist() for start, end in zip(places, places[1:])]
    return rows


@cache
def made(pattern, engine, **changes):
    tokenizer = Tokenizer(
        CORPUS,
        method="bpe",
        vocabulary_size=300,
        pattern=pattern,
        special_tokens=["<e>", "a b"],
        reserved=["BOS", "EOS"],
        engine=engine,
    )
    return Tokenizer.from_vocabulary(replace(tokenizer._vocabulary, **changes), engine)


MADE = {
    "cl100k": lambda engine: made("cl100k", engine),
    "gpt2": lambda engine: made("gpt2", engine),
    "prefix": lambda engine: made("gpt2", engine, prefix_space=True),
    "NFC": lambda engine: made("qwen2", engine, normalizer="NFC"),
    "no pattern": lambda engine: made(None, engine),
    "own pattern": lambda engine: made(r"\w+\s?|\W+", engine),
    "char": lambda engine: Tokenizer(
        CORPUS, method="char", engine=engine, reserved=["BOS", "EOS"], special_tokens=["<e>"]
    ),
    "word": lambda engine: Tokenizer(
        CORPUS, method="word", engine=engine, reserved=["BOS", "EOS"], special_tokens=["<e>"]
    ),
    "byte": lambda engine: Tokenizer.from_bytes(
        engine=engine, reserved=["BOS", "EOS"], special_tokens=["<e>"]
    ),
}
TOKENIZERS = {
    (name, engine): make(engine) for name, make in MADE.items() for engine in engines.NAMES
}
FILES = st.lists(
    st.sampled_from([*BYTES, b"<e>", b"a b", b"\n", b"\r\n", b"--", b" "]) | st.just(b"low "),
    max_size=30,
).map(b"".join)


@core
@pytest.mark.parametrize("name", MADE)
@given(
    data=FILES,
    engine=st.sampled_from(engines.NAMES),
    documents=st.sampled_from(["whole", "line", "--", b"\n\n", "a", "\n--", "a b low a"]),
    size=st.integers(1, 40),
    options=st.sampled_from(
        [{}, {"allowed_special": "all"}, {"bos": True}, {"eos": True, "bos": True}]
    ),
    dtype=st.sampled_from(["uint32", "uint16"]),
)
def test_blocks(name, data, engine, documents, size, options, dtype):
    tokenizer = TOKENIZERS[name, engine]
    found = [
        *tokenizer.encode_file(
            io.BytesIO(data), documents=documents, block_bytes=size, dtype=dtype, **options
        )
    ]
    assert all(ids.dtype == dtype for ids, _ in found)
    assert rows_of(found) == [
        tokenizer.encode_bytes(document, **options) for document in documents_of(data, documents)
    ]


@core
@given(
    data=FILES,
    spellings=st.dictionaries(
        st.sampled_from(["<e>", "a b", "low", " ", "low ", "\n", "w lo", "low low"]), FLAGS
    ),
    size=st.integers(1, 20),
    prefix=st.booleans(),
)
def test_flags_of_tokens(data, spellings, size, prefix):
    vocabulary = replace(
        made("gpt2", "fast", prefix_space=prefix)._vocabulary,
        special_tokens={},
        added_tokens={text: 400 + number for number, text in enumerate(spellings)},
        token_flags={text: flags for text, flags in spellings.items() if flags},
    )
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    found = tokenizer.encode_file(io.BytesIO(data), block_bytes=size)
    assert rows_of(found) == [tokenizer.encode_bytes(data)]


@pytest.mark.parametrize("size", range(1, 40))
def test_what_begins_before_a_cut_is_seen_to_its_end(size):
    """A separator and a token, with spaces, of which a block may hold the beginning."""
    data = b"low a b low a b low a low a b low"
    vocabulary = replace(
        made("gpt2", "fast")._vocabulary, special_tokens={"a b low a b": 400, "w a lo": 401}
    )
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    for documents in ("whole", "a b low a", "w a"):
        for allowed in ((), "all"):
            found = tokenizer.encode_file(
                io.BytesIO(data), documents=documents, block_bytes=size, allowed_special=allowed
            )
            assert rows_of(found) == [
                tokenizer.encode_bytes(document, allowed_special=allowed)
                for document in documents_of(data, documents)
            ]


def test_a_space_is_put_in_front_of_a_document_once():
    tokenizer = made("gpt2", "fast", prefix_space=True)
    data = b"low\nlow\nlow\nlow low\nlow\nlow"
    for size in range(1, 20):
        found = tokenizer.encode_file(io.BytesIO(data), block_bytes=size)
        assert rows_of(found) == [tokenizer.encode_bytes(data)]


def test_large_documents_are_cut_and_small_ones_are_not():
    tokenizer = made("cl100k", "fast")
    text = b"low lower " * 1000
    blocks_of_whole = [*tokenizer.encode_file(io.BytesIO(text), block_bytes=100)]
    assert 90 < len(blocks_of_whole) < 120
    assert [len(offsets) for _, offsets in blocks_of_whole] == [2] + [1] * (
        len(blocks_of_whole) - 1
    )
    lines = text.replace(b"r l", b"r\nl")
    blocks_of_lines = [*tokenizer.encode_file(io.BytesIO(lines), documents="line", block_bytes=100)]
    assert all(offsets[0] == 0 for _, offsets in blocks_of_lines)
    assert sum(len(offsets) - 1 for _, offsets in blocks_of_lines) == 1000


@core
@pytest.mark.parametrize("name", ["NFC", "no pattern", "own pattern"])
def test_what_cannot_be_cut_is_one_block(name):
    tokenizer = TOKENIZERS[name, "fast"]
    changes = {}
    if name == "NFC":  # tokens that are found in what is normalized could be made by that
        changes = {"added_tokens": {"K": 500}, "token_flags": {"K": ("normalized",)}}
    tokenizer = Tokenizer.from_vocabulary(replace(tokenizer._vocabulary, **changes))
    found = [*tokenizer.encode_file(io.BytesIO(b"low lower " * 100), block_bytes=10)]
    assert len(found) == 1


def test_memory_has_a_bound(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"low lower lowest newest widest " * 700_000)
    tokenizer = made("cl100k", "fast")
    tokenizer.encode(CORPUS)
    tracemalloc.start()
    try:
        tokens = sum(len(ids) for ids, _ in tokenizer.encode_file(path, block_bytes=2**20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tokens == tokenizer.count(path.read_bytes())
    assert peak < 12 * 2**20 < path.stat().st_size


@pytest.mark.parametrize("documents", ["whole", "line", "x"])
def test_empty_files(documents, tmp_path):
    path = tmp_path / "file"
    path.touch()
    tokenizer = made("cl100k", "fast")
    found = tokenizer.encode_file(path, documents=documents, bos=True, eos=True)
    rows = [[tokenizer.bos_id, tokenizer.eos_id]] if documents == "whole" else []
    assert rows_of(found) == rows


def test_kinds_of_files(tmp_path, monkeypatch):
    tokenizer = made("cl100k", "fast")
    data = CORPUS.encode() * 10
    expected = [tokenizer.encode_bytes(data)]
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data))
    monkeypatch.chdir(tmp_path)
    for path in ("file", b"file", tmp_path / "file"):
        assert rows_of(tokenizer.encode_file(path, block_bytes=100)) == expected
    with open("file", "rb") as file, open("file", "rb", buffering=0) as raw:
        for opened in (file, raw):
            assert rows_of(tokenizer.encode_file(opened, block_bytes=100)) == expected
            assert not opened.closed
    with gzip.open("packed") as packed:
        assert rows_of(tokenizer.encode_file(packed, block_bytes=100)) == expected
    with open("file", encoding="utf-8") as text:
        found = tokenizer.encode_file(text)
        with pytest.raises(TypeError, match="must be open for reading bytes; it gives str"):
            next(found)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe():
    tokenizer = made("cl100k", "fast")
    reader, writer = os.pipe()
    os.write(writer, CORPUS.encode())
    os.close(writer)
    with open(reader, "rb") as file:
        found = rows_of(tokenizer.encode_file(file, block_bytes=10))
    assert found == [tokenizer.encode(CORPUS)]


# What goes wrong


CHANGES = {
    "shorter": lambda file: file.truncate(40_000),
    "empty": lambda file: file.truncate(0),
    "longer": lambda file: file.seek(0, os.SEEK_END) and file.write(b"more"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_meanwhile(tmp_path, change):
    path = tmp_path / "file"
    path.write_bytes(b"low lower " * 10_000)
    found = made("cl100k", "fast").encode_file(path, block_bytes=10_000)
    next(found)
    with open(path, "r+b") as file:
        CHANGES[change](file)
    with pytest.raises(OSError, match="the file was changed while it was read") as raised:
        list(found)
    assert raised.value.filename == str(path)


def test_a_file_that_is_replaced_is_read_to_its_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"low lower " * 10_000)
    tokenizer = made("cl100k", "fast")
    found = tokenizer.encode_file(path, block_bytes=10_000)
    first = next(found)
    (tmp_path / "other").write_bytes(b"other")
    os.replace(tmp_path / "other", path)
    assert rows_of([first, *found]) == [tokenizer.encode("low lower " * 10_000)]


def test_files_that_cannot_be_read(tmp_path):
    tokenizer = made("cl100k", "fast")
    with pytest.raises(FileNotFoundError) as raised:
        next(tokenizer.encode_file(tmp_path / "absent"))
    assert raised.value.filename == str(tmp_path / "absent")
    with pytest.raises(OSError):
        next(tokenizer.encode_file(tmp_path))
    with pytest.raises(TypeError):
        next(tokenizer.encode_file(5))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"documents": ""}, ValueError, "the separator is empty"),
        ({"documents": b""}, ValueError, "the separator is empty"),
        ({"documents": None}, TypeError, "must be 'whole', 'line' or a separator, not NoneType"),
        ({"documents": ["x"]}, TypeError, "must be 'whole', 'line' or a separator, not list"),
        ({"documents": "\ud83d"}, UnicodeEncodeError, "surrogates"),
        ({"block_bytes": 0}, ValueError, "block_bytes must be from 1 to"),
        ({"block_bytes": 1.5}, TypeError, "block_bytes must be a whole number"),
        ({"threads": 0}, ValueError, "threads must be from 1 to"),
        ({"dtype": "int64"}, ValueError, "dtype must be"),
        ({"allowed_special": {"<x>"}}, ValueError, "is no special token"),
    ],
)
def test_arguments_are_checked_at_once(options, error, message):
    with pytest.raises(error, match=message):
        made("cl100k", "fast").encode_file("absent", **options)


@pytest.mark.parametrize("engine", engines.NAMES)
@pytest.mark.parametrize(
    ("documents", "place"),
    [
        ("line", "document 2: byte 0x78 at byte position 3 is"),
        ("b", "document 3: byte 0x78 at byte position 1 is"),
        ("whole", "byte 0x78 at byte position 10 is"),
    ],
)
def test_errors_name_the_place(engine, documents, place):
    tokenizer = Tokenizer("abc\n ", engine=engine)
    data = b"abc\nab\nabcx\nab"
    with pytest.raises(ValueError, match=f"^{place}"):
        list(tokenizer.encode_file(io.BytesIO(data), documents=documents))


def test_errors_in_a_part_of_a_document():
    tokenizer = Tokenizer("abc\n ")
    data = b"abc\n" + b"ab c" * 10 + b"x"
    message = r"^document 1: from byte 34 on: byte 0x78 at byte position 6 is"
    with pytest.raises(ValueError, match=message):
        list(tokenizer.encode_file(io.BytesIO(data), documents="line", block_bytes=12))


def test_errors_behind_a_document_in_parts():
    tokenizer = Tokenizer("abc\n ")
    data = b"ab c" * 10 + b"\nabc\nx"
    message = r"^document 2: byte 0x78 at byte position 0 is"
    with pytest.raises(ValueError, match=message):
        list(tokenizer.encode_file(io.BytesIO(data), documents="line", block_bytes=12))


def test_documents_that_are_too_large(monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    data = b"low\n" + b"low" * 1000
    with pytest.raises(ValueError, match="^document 1 has no place where it could be cut in more"):
        list(made("gpt2", "fast").encode_file(io.BytesIO(data), documents="line", block_bytes=9))
    with pytest.raises(ValueError, match="^document 1 has more than 1000 bytes, and doc.* only"):
        list(made(None, "fast").encode_file(io.BytesIO(data), documents="line", block_bytes=9))


def test_a_method_of_others_is_not_cut():
    vocabulary = Vocabulary("bpe", (b"a", b" ", b"\n"))
    assert blocks.cutter(vocabulary, ()) is None
    assert blocks.cutter(replace(vocabulary, method="byte"), ()) is not None
