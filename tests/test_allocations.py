"""No memory: in debug builds, each request of the compiled code fails in turn.

An operation whose request fails ends in a MemoryError, and what it worked with is as good as
before: the same call gives the right result then, and in the end no block is left that was not
there. A request fails alone, or with all behind it. Only what is no more than a help is done
without: a larger cache of words, the places where long pieces can be cut, giving memory back.

TOKBPE_ALLOCATIONS=all: every request of every operation, not only a sample where there are many.
"""

import base64
import ctypes
import functools
import gc
import itertools
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from cases import rows_of
from engine_threads import small_work
from strategies import BYTES
from tokbpe import Tokenizer, fast, patterns
from tokbpe.fast import capi
from tokbpe.fast.handles import Opened
from tokbpe.fast.merge import Merging
from tokbpe.fast.piece_table import PieceTable

core = pytest.mark.core
SOURCES = Path(__file__).parents[1] / "tokbpe" / "fast"
NAME = "_tokbpe_allocations"
ALL = os.environ.get("TOKBPE_ALLOCATIONS") == "all"
# Of so many requests of an operation each is tried.
MOST_TRIED = 12
NEVER, ALWAYS = 0, 2**62


class Allocations(ctypes.Structure):
    """As in allocations.h."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("made", "live", "first_failing", "last_failing", "failed")
    ]


def shared_by_all_modules():
    """The numbers of a debug build; None in a release build."""
    capsule = getattr(sys, NAME, None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Allocations.from_address(pointer(capsule, NAME.encode()))


COUNTED = shared_by_all_modules()
debug = pytest.mark.skipif(
    COUNTED is None and os.environ.get("TOKBPE_DEBUG_BUILD") != "1",
    reason="allocations are counted, and made to fail, in the debug build alone",
)


@contextmanager
def failing(first, last):
    """Let requests fail, by their numbers from now on, the first being 1."""
    COUNTED.failed = 0
    COUNTED.first_failing, COUNTED.last_failing = COUNTED.made + first, COUNTED.made + last
    try:
        yield
    finally:
        COUNTED.last_failing = NEVER


# What is done


@dataclass(frozen=True)
class Operation:
    name: str
    make: Callable[[], Any]  # what it works with
    run: Callable[[Any], Any]
    least: int  # requests that it makes, so that something is tried
    spared: int = 0  # of those, what it can do without

    def __str__(self):
        return self.name


OPERATIONS: list[Operation] = []


def operation(least, make=lambda: None, spared=0):
    def add(run):
        OPERATIONS.append(Operation(run.__name__, make, run, least, spared))
        return run

    return add


CORPUS = [
    "the cat sat on the mat, and the other cat sat on the hat. " * 4,
    "naïve 漢字漢字 🎈 don't 12345 \n" * 9,
]
ROWS = [text.encode() for text in CORPUS]
MERGES, _ = fast.train(ROWS, None, BYTES, 40)
PIECES = [*BYTES]
for left, right in MERGES.tolist():
    PIECES.append(PIECES[left] + PIECES[right])
PAIRS = [(left, right) for left, right in MERGES.tolist()]
IDS = np.arange(256, 296, dtype=np.uint32)
NO_PAIRS = np.empty((0, 2), np.uint32)
OWN_PATTERN = patterns.Pattern(None, ("[a-z]+|[^a-z]+",))
SPECIAL = {b"<e>": 900, b"<start>": 901}
FLAGS = {b"<e>": ("lstrip", "rstrip"), b"<start>": ("single_word",)}
CHARACTERS = sorted({character.encode() for text in CORPUS for character in text})
TEXT = "the hat of the naïve cat 🎈<e>, and 漢字 that 12 others sat on\n"
LONG_TEXT = TEXT * 150
# Words enough for a cache to grow, and pieces long enough to be cut and merged by windows.
MANY_WORDS = " ".join("".join(letters) for letters in itertools.product("abcdehiost", repeat=4))
LONG_PIECES = "the cat sat" * 30 + " " + "漢字" * 6000 + " " + "thecatsat" * 3000


def merge_list(pattern="cl100k", warm=True):
    return prepared(warm, tuple(BYTES), MERGES, pattern)


def checked_list(warm=True):
    return prepared(warm, BYTES, PAIRS, "gpt2")


def numbered_by_ranks(warm=True):
    """Ids fall from merge to merge, so that they are no numbers."""
    alphabet = [*BYTES, *reversed(PIECES[256:])]
    ids = np.arange(295, 255, -1, dtype=np.uint32)
    merges = np.where(MERGES < 256, MERGES, 551 - MERGES).astype(np.uint32)
    return prepared(warm, tuple(alphabet), merges, "cl100k", ids)


def by_piece(warm=True, whole=True):
    return prepared(
        warm, tuple(PIECES), NO_PAIRS, "cl100k", None, "byte", None, "rank_by_piece", whole
    )


def by_later_pieces(warm=True):
    """A piece comes about out of a later one: all pairs are listed."""
    pieces = (*BYTES, b"abc", b"bc", *PIECES[256:])
    return prepared(warm, pieces, NO_PAIRS, "cl100k", None, "byte", None, "rank_by_piece")


def of_unit(unit, warm=True):
    if unit == "character":
        alphabet = CHARACTERS
    else:
        letters = [character for character in CHARACTERS if character.strip()]
        alphabet = [*letters, *(letter + b" " for letter in letters)]
    pattern = patterns.WORDS if unit == "word" else None
    return prepared(warm, alphabet, [(2, 3), (4, 5)], pattern, None, unit, 0)


def prepared(warm, *arguments):
    table = fast.encoding_table(*arguments)
    if warm:
        table.warm_up()
    return table


TABLES = {
    "merge_list": merge_list,
    "checked_list": checked_list,
    "numbered_by_ranks": numbered_by_ranks,
    "of_own_pattern": lambda warm=True: merge_list(OWN_PATTERN, warm),
    "by_piece": by_piece,
    "by_later_pieces": by_later_pieces,
    "by_character": lambda warm=True: of_unit("character", warm),
    "by_word": lambda warm=True: of_unit("word", warm),
}


def sample(table):
    return fast.encode(TEXT, table)


for name, table in TABLES.items():
    OPERATIONS += [
        Operation(
            f"open_{name}", lambda: None, lambda _, table=table: sample(table(warm=False)), 3
        ),
        Operation(
            f"warm_up_{name}",
            lambda table=table: table(warm=False),
            lambda cold: (cold.warm_up(), sample(cold)),
            6,
        ),
        Operation(
            f"encode_{name}",
            lambda table=table: table(warm=False),
            lambda cold: fast.encode(LONG_TEXT, cold, SPECIAL),
            5,
        ),
        Operation(
            f"encode_warm_{name}", table, lambda warm: fast.encode(LONG_TEXT, warm, SPECIAL), 5
        ),
        Operation(
            f"encode_long_pieces_{name}", table, lambda warm: fast.encode(LONG_PIECES, warm), 1, 3
        ),
    ]


# Encoding


@operation(4, merge_list, spared=8)
def word_cache_that_grows(table):
    return fast.encode(MANY_WORDS, table)


@operation(3, by_piece)
def word_cache_that_begins_full(table):
    return fast.count("the cat sat " * 50000, table)


@operation(3, lambda: merge_list("gpt2"))
def encoding_after_another(table):
    first = fast.encode(TEXT, table, SPECIAL)
    table.clear_cache()
    return first, fast.encode(LONG_TEXT, table, SPECIAL), table.memory() > 0


@operation(2, merge_list)
def counting_ids(table):
    return fast.count(LONG_TEXT, table, SPECIAL), fast.count(LONG_TEXT, table, SPECIAL, 50)


@operation(3, lambda: merge_list("gpt2"), spared=2)
def array_of_ids(table):
    return fast.encode_array(LONG_TEXT * 3, table, SPECIAL, threads=1).tolist()


@operation(3, merge_list)
def ids_into_a_buffer(table):
    out = np.zeros(20000, np.uint16)
    size = fast.encode_into(LONG_TEXT, table, out, SPECIAL)
    return out[:size].tolist()


TEXTS = [TEXT, LONG_TEXT, "", b"\xff\xfe", MANY_WORDS[:5000]] * 3


def batches(threads):
    def lists(table):
        return fast.encode_batch(TEXTS, table, SPECIAL, before=[1], behind=[2], threads=threads)

    def arrays(table):
        ids, ends = fast.encode_batch_arrays(TEXTS, table, SPECIAL, threads=threads)
        return ids.tolist(), ends.tolist()

    def narrow_arrays(table):
        ids, ends = fast.encode_batch_arrays(TEXTS, table, dtype="uint16", threads=threads)
        return ids.tolist(), ends.tolist()

    def counts(table):
        return fast.count_batch(TEXTS, table, SPECIAL, threads=threads).tolist()

    def document(table):
        return fast.encode_array(LONG_TEXT * 20, table, SPECIAL, threads=threads).tolist()

    return lists, arrays, narrow_arrays, counts, document


for threads in (1, 3):
    for run in batches(threads):
        OPERATIONS.append(
            Operation(f"batch_of_{run.__name__}_{threads}", merge_list, run, 5, spared=3 * threads)
        )


@operation(9, lambda: fast.Encoder(merge_list(), SPECIAL), spared=4)
def encoder(encoder):
    out = np.zeros(20000, np.uint32)
    return (
        encoder.encode(TEXT),
        encoder.encode_array(LONG_TEXT, threads=1).tolist(),
        encoder.encode_into(LONG_TEXT, out),
        encoder.encode_batch(TEXTS, threads=1),
        encoder.encode_batch_arrays(TEXTS, threads=1)[0].tolist(),
        encoder.count(LONG_TEXT),
        encoder.count_batch(TEXTS, threads=1).tolist(),
    )


@operation(1, lambda: merge_list(warm=False))
def merging_by_heap(table):
    merging = Merging(table)
    return merging.merge(b"the cat sat on the mat" * 20), merging.parts(b"the cat sat")


@operation(1, lambda: by_piece(warm=False))
def merging_by_joined_bytes(table):
    return Merging(table).merge(b"the cat sat on the mat" * 20)


@operation(1, merge_list, spared=3)
def junctions(table):
    merging = Merging(table)
    return [id for part in merging.parts(ROWS[1]) for id in merging.merge(part)]


# Special tokens, decoding, reading


@operation(5)
def special_table_with_flags(_):
    return fast.cut_special(LONG_TEXT.encode(), fast.special_table(SPECIAL, FLAGS))


@operation(6)
def special_table_of_many(_):
    return fast.cut_special("<77><9>" * 99, {b"<%d>" % number: number for number in range(300)})


@operation(4)
def decoding_table(_):
    table = fast.decoding_table([*PIECES, None], b"?")
    return fast.decode([*range(300)], table), table[200]


@operation(2, lambda: fast.decoding_table(PIECES))
def decoding(table):
    ids = [*range(296)] * 30
    return fast.decode(ids, table), fast.decode(np.array(ids), table)


@operation(4)
def ranks(_):
    lines = (b"%s %d\n" % (base64.b64encode(piece), rank) for rank, piece in enumerate(PIECES))
    return [*fast.read_ranks(b"".join(lines))]


@operation(4)
def cut_pieces(_):
    sizes = np.array([len(piece) for piece in PIECES], np.int32)
    return [*fast.cut_pieces(b"".join(PIECES), sizes)]


@operation(3)
def pairs(_):
    rows = [tuple(row) for row in ROWS]
    return fast.count_pairs(rows, [3, 4]), fast.merge_pair(rows[0], (116, 104), 256)


# Counting


@operation(4)
def piece_counts(_):
    return fast.count_pieces([TEXT, MANY_WORDS, TEXT], "gpt2", SPECIAL)


@operation(4)
def piece_counts_of_words(_):
    return fast.count_pieces([TEXT, MANY_WORDS], patterns.WORDS)


@operation(3)
def piece_counts_by_the_reference(_):
    return fast.count_pieces([TEXT, TEXT], OWN_PATTERN, SPECIAL)


@operation(9)
def piece_counts_by_threads(_):
    table = fast.count_table([TEXT * 3, MANY_WORDS[:9000], TEXT], "cl100k", SPECIAL, threads=3)
    return [*table.as_dict().items()]


def counted(*documents):
    return fast.count_table(documents, "gpt2")


@operation(3, lambda: (PieceTable(about="a"), counted(TEXT, MANY_WORDS)))
def table_with_another_one_added(tables):
    own, other = tables
    before = own.about
    assert own.add(other, before, before)
    total = own.get(b" the")
    # A table to which nothing could be added has nothing of it.
    return total // own.get(b"the"), len(own), len(other), own.arrays()[0].tobytes()


@operation(2, lambda: (PieceTable(about=0), counted(TEXT)))
def table_replaced(tables):
    own, _ = tables
    assert own.replace(counted(TEXT, MANY_WORDS), own.about, 0)
    return own.as_dict()


@operation(3, lambda: counted(MANY_WORDS).arrays())
def table_of_arrays(arrays):
    table = PieceTable()
    table.add_counts(*arrays)
    return table.as_dict()


# Training


def learned(merges, counts):
    return merges.tolist(), counts.tolist()


def train_rows(rows, weights=None, tie_break="smallest", threads=1, **limits):
    with mock.patch.dict(fast.train.__globals__["LIMITS"], limits):
        return learned(*fast.train(rows, weights, BYTES, 30, 2, tie_break, threads=threads))


WAYS = {
    "as_it_is": {},
    "wide": {"narrow_tokens": 0},
    "widened": {"narrow_tokens": 260, "factor": 2, "slice": 40},
    "hashed": {"dense_tokens": 0, "sieve_bits": 6, "factor": 2},
    "hashed_by_threads": {"dense_tokens": 0, "thread_cells": 50, "factor": 4},
    "dense_by_threads": {"thread_cells": 50, "factor": 4},
}
for name, limits in WAYS.items():
    for tie_break in ("smallest", "greatest", "first"):
        threads = 3 if "threads" in name else 1
        run = functools.partial(
            train_rows, weights=[3, 2], tie_break=tie_break, threads=threads, **limits
        )
        OPERATIONS.append(Operation(f"train_{name}_{tie_break}", lambda: ROWS, run, 12, spared=2))


@operation(12)
def train_on_numbers(_):
    return train_rows([[*row] for row in ROWS])


@operation(12)
def train_on_many_pairs(_):
    random = np.random.default_rng(5)
    return train_rows(rows_of(random.integers(0, 256, (30, 300)).tolist()), dense_tokens=0)


@operation(9)
def train_on_an_array(_):
    return train_rows(rows_of(ROWS), np.array([7, 5000]))


@operation(9)
def train_steps(_):
    return [*fast.train_steps(ROWS, None, BYTES, 20)]


# The native table


class Native(ctypes.Structure):
    """As in tokbpe.h."""

    _Handle, _Size = ctypes.c_uint64, ctypes.POINTER(ctypes.c_size_t)
    _encode = ctypes.CFUNCTYPE(
        ctypes.c_int, _Handle, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
        _Size,
    )  # fmt: skip
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("status_text", ctypes.c_void_p),
        ("open", ctypes.PYFUNCTYPE(
            ctypes.c_int, ctypes.py_object, ctypes.py_object, ctypes.POINTER(_Handle))),
        ("close", ctypes.CFUNCTYPE(ctypes.c_int, _Handle)),
        ("method", ctypes.c_void_p),
        ("vocab_size", ctypes.c_void_p),
        ("encode_size", ctypes.CFUNCTYPE(
            ctypes.c_int, _Handle, ctypes.c_char_p, ctypes.c_size_t, _Size)),
        ("encode", _encode),
    ]  # fmt: skip


def native_table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Native.from_address(pointer(capi._table, b"tokbpe.fast.capi._table"))


NATIVE = native_table()
OK, NO_MEMORY = 0, 8


class Handle:
    """A tokenizer that is opened, and closed with this."""

    def __init__(self):
        self.number = ctypes.c_uint64()
        NATIVE.open(pickle.loads(PICKLED), "all", ctypes.byref(self.number))
        assert self.number.value

    def __del__(self):
        if self.number.value:
            NATIVE.close(self.number)

    def encode(self, text):
        data, size = text.encode(), ctypes.c_size_t()
        ids = np.zeros(len(data), np.uint32)
        self.check(NATIVE.encode_size(self.number, data, len(data), ctypes.byref(size)))
        expected = size.value
        self.check(
            NATIVE.encode(
                self.number, data, len(data), ids.ctypes.data, len(ids), ctypes.byref(size)
            )
        )
        assert size.value == expected
        return ids[:expected].tolist()

    def check(self, status):
        if status == NO_MEMORY:
            raise MemoryError
        assert status == OK


TOKENIZER = Tokenizer(
    CORPUS, method="bpe", vocabulary_size=290, pattern="cl100k", special_tokens=["<e>"]
)
PICKLED = pickle.dumps(TOKENIZER)


@operation(9)
def native_handle(_):
    return Handle().encode(TEXT)


@operation(3, Handle)
def native_encoding(handle):
    return handle.encode(TEXT), handle.encode(LONG_TEXT)


@operation(2, Handle, spared=4)
def native_encoding_of_more_and_less(handle):
    """What a longer text has left half prepared is not used for a shorter one."""
    found = []
    for text in ("", MANY_WORDS * 4, TEXT):
        try:
            found.append(handle.encode(text))
        except MemoryError:
            handle.encode(TEXT)
            raise
    return found


@operation(5)
def opened(_):
    Opened(TOKENIZER._native_parts("all"))


# A tokenizer, with all that Python does around


@operation(20)
def tokenizer(_):
    made = Tokenizer(
        CORPUS, method="bpe", vocabulary_size=280, pattern="gpt2", special_tokens=["<e>"]
    )
    ids = made.encode(TEXT, allowed_special="all")
    return ids, made.decode(ids), made.count(TEXT)


# Each fails


@pytest.fixture
def small():
    """Threads, groups and batches for a few bytes already."""
    with small_work(2000, 1000, 8000, 5):
        yield


def chosen(count: int) -> Iterator[int]:
    """The requests to try: all, or the first and the last ones and some between."""
    if ALL or count <= MOST_TRIED:
        return iter(range(1, count + 1))
    return iter(sorted({round(i) for i in np.linspace(1, count, MOST_TRIED)}))


def check_nothing_is_left(live):
    if COUNTED.live != live:
        gc.collect()
    assert COUNTED.live == live


def outcome(run, subject):
    try:
        return run(subject)
    except MemoryError:
        return MemoryError


@core
@debug
@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_each_request_may_fail(operation, small):
    expected = operation.run(operation.make())
    gc.collect()
    live = COUNTED.live
    subject = operation.make()
    made = COUNTED.made
    assert operation.run(subject) == expected
    count = COUNTED.made - made
    assert count >= operation.least
    del subject
    check_nothing_is_left(live)
    spared = 0
    tried = 0
    for number in chosen(count):
        for last in (number, ALWAYS):
            subject = operation.make()
            with failing(number, last):
                found = outcome(operation.run, subject)
            assert COUNTED.failed or number > operation.least
            if found is not MemoryError:
                assert found == expected
                spared += COUNTED.failed and last == number
            tried += COUNTED.failed
            assert operation.run(subject) == expected
            del subject, found
            check_nothing_is_left(live)
    assert spared <= operation.spared
    print(f"{count} requests, {tried} failed, {spared} spared")


# Where Python has no memory


def test_an_array_of_ids_without_memory():
    """NumPy makes one of objects out of anything that it gets no view of, for want of memory too.
    And the next array begins as the last one could not be made."""
    testing = pytest.importorskip("_testcapi")
    table = merge_list()
    expected = fast.encode_array(LONG_TEXT * 3, table, threads=1)
    failed = 0
    for number in range(60):
        found = expected
        testing.set_nomemory(number, number + 1)
        try:
            found = fast.encode_array(LONG_TEXT * 3, table, threads=1)
        except MemoryError:
            failed += 1
        finally:
            testing.remove_mem_hooks()
        assert np.array_equal(found, expected)
        assert np.array_equal(fast.encode_array(LONG_TEXT * 3, table, threads=1), expected)
    assert failed


# That all requests are counted

BY_ANY_NAME = re.compile(
    r"\b(malloc|calloc|realloc|reallocarray|free|strn?dup|posix_memalign|aligned_alloc|memalign"
    r"|valloc|alloca|mmap|munmap|sbrk"
    r"|(?:PyMem|PyObject)_(?:Raw)?(?:Malloc|Calloc|Realloc|Free|New|Resize|Del))\s*\("
)
COUNTED_BY_NAME = re.compile(r'(\w+) "tokbpe_\w+" \(')
FROM_MEMORY = re.compile(r"^from \.memory cimport (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


def uncounted(name, source):
    """What a source calls that the counting does not know of."""
    called = {*BY_ANY_NAME.findall(source)}
    if name == "allocations.h":
        return set()
    if "libc.stdlib" in source or name.endswith(".h"):
        return called
    known = {*COUNTED_BY_NAME.findall(source)}
    for names in FROM_MEMORY.findall(source):
        known.update(re.findall(r"\w+", "".join(names)))
    return called - known


@core
@pytest.mark.skipif(not SOURCES.is_dir(), reason="there are no sources")
def test_memory_is_asked_for_by_the_names_that_count():
    paths = [path for end in ("h", "pxd", "pyx") for path in SOURCES.rglob(f"*.{end}")]
    found = {path.name: uncounted(path.name, path.read_text(encoding="utf-8")) for path in paths}
    assert {"allocations.h", "train.pyx"} < found.keys()
    assert {name: names for name, names in found.items() if names} == {}


@core
@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("a.h", "void *memory = malloc(8);", {"malloc"}),
        ("a.h", "tokbpe_free(tokbpe_calloc(8, 8)); /* free of malloc */", set()),
        ("a.pyx", "from .memory cimport free, resized\nfree(resized(NULL, 8, 8))", set()),
        ("a.pyx", "from .memory cimport (\n    free,\n    malloc,\n)\nfree(malloc(8))", set()),
        ("a.pyx", "from .memory cimport free\nfree(PyMem_Malloc(8))", {"PyMem_Malloc"}),
        ("a.pyx", "from libc.stdlib cimport free\nfrom .memory cimport free\nfree(x)", {"free"}),
        ("a.pyx", "from libc cimport stdlib\nstdlib.free(x)", {"free"}),
        ("memory.pxd", 'void *calloc "tokbpe_calloc" (size_t)\ncalloc(8); malloc(8)', {"malloc"}),
    ],
)
def test_other_names_are_found(name, source, found):
    assert uncounted(name, source) == found
