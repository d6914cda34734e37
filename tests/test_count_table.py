"""Counting into tables: by chunks, batches and threads, held against the reference."""

import shutil
from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alarms import Stopped, alarm, needs_alarms
from cases import Generated, attempt, fresh
from engine_threads import begun, none_left, small_work
from strategies import CORPORA, PATTERNS
from test_planted_faults import COMPILER, Fault, binary_with, engine_with
from tokbpe import fast, patterns, reference
from tokbpe.fast.count import use_batches
from tokbpe.fast.groups import use_sizes
from tokbpe.fast.piece_table import CHUNK_SIZE, PieceTable

core = pytest.mark.core
HIGHEST = 2**63 - 1
NAMES = [None, "gpt2", "cl100k", "llama3", "qwen2", "o200k", "deepseek_v3", patterns.WORDS]
# Letters, spaces and what patterns treat in their own ways, so that there are cuts to find.
WORDS = ["low", "lower", " it's", "naïve", "42", "你好", "\n", "  ", "a", " b", "<e>", "-", "ſ"]
SPECIAL = {b"<e>": 0, b"w l": 1}


@pytest.fixture
def small():
    """Threads, groups and batches for a few bytes already."""
    with small_work():
        yield


def some_text(seed, words):
    return "".join(Random(seed).choices(WORDS, k=words))


def counted(count_table, corpus, pattern, special, threads):
    return list(count_table(corpus, pattern, special, threads=threads).as_dict().items())


def compare(corpus, pattern, special=None, count_table=fast.count_table):
    """All thread counts against the reference: pieces, counts, order and errors."""
    expected = attempt(lambda: [*reference.count_pieces(fresh(corpus), pattern, special).items()])
    for threads in (1, 2, 4):
        found = attempt(counted, count_table, fresh(corpus), pattern, special, threads)
        assert found == expected, (corpus, pattern, special, threads)


# Against the reference


@core
@given(CORPORA, PATTERNS, st.sampled_from([None, SPECIAL, {b"a": 0}]))
def test_random_corpora(corpus, pattern, special):
    with small_work():
        compare(corpus, pattern, special)


@core
@pytest.mark.parametrize("pattern", NAMES, ids=str)
@pytest.mark.parametrize("special", [None, SPECIAL], ids=["plain", "special"])
def test_cuts_at_every_place(small, pattern, special):
    text = some_text(1, 20)
    documents = [text, text[7:].encode() + b"\xff\xe4 low", some_text(2, 3), ""]
    for size in range(1, len(text.encode()) + 2):
        use_sizes(1, size)
        for start in (0, 1, 2):
            compare([documents[0][start:], *documents[1:]], pattern, special)


@core
@pytest.mark.parametrize("batch", [(1, 1), (50, 1000), (10**6, 3), (10**6, 1000)])
def test_batches(small, batch):
    use_batches(*batch)
    compare([some_text(seed, 12) for seed in range(40)], "gpt2")
    compare([some_text(seed, 12) for seed in range(40)], "[a-z]+| ", SPECIAL)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_much_text(threads):
    """With the sizes that are in use."""
    random = Random(5)
    words = [f" {random.choice(WORDS)}{random.randrange(30_000)}" for _ in range(40_000)]
    text = "".join(random.choices(words, k=150_000))
    documents = [text, text[:400_000].encode(), *words[:2000]]
    expected = reference.count_pieces(documents, patterns.WORDS)
    found = fast.count_table(documents, patterns.WORDS, threads=threads)
    assert list(found.as_dict().items()) == list(expected.items())


@core
@pytest.mark.parametrize("size", [1534, 1535, 1536, 1537, 3072, 20_000])
def test_tables_that_grow(size):
    """There are 2048 slots at first, three quarters of them to be filled."""
    numbers = [*range(size), *range(0, size, 3)]
    table = fast.count_table(" ".join(map(str, numbers)), patterns.WORDS)
    assert table.as_dict() == {b"%d" % number: 1 + (number % 3 == 0) for number in range(size)}


@core
@pytest.mark.parametrize("count", [CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE])
def test_chunks(count):
    text = "".join(f" {chr(97 + number % 26)}" for number in range(count))
    for pattern in ("gpt2", patterns.WORDS):
        compare(text, pattern)


@core
def test_pieces_of_all_sizes_by_their_keys():
    """Keys hold 15 bytes; of longer pieces a hash, which bytes have to confirm."""
    pieces = [
        b"a" * place + bytes([byte]) + b"a" * (size - place - 1)
        for size in (1, 2, 7, 8, 9, 14, 15, 16, 17, 31, 32, 33, 300)
        for place in range(size)
        for byte in b"\x00b\xff"
    ]
    compare(pieces * 2 + pieces[::3], None)


def with_equal_hashes():
    """Pieces of 24 bytes with the same key; the second eight bytes make up for the first."""
    factor = 0xD6E8FEB86659FD93
    pieces = []
    for first in (1, 2, 3):
        state = 24 * 0x9E3779B97F4A7C15 % 2**64
        state = (state ^ first) * factor % 2**64
        state ^= state >> 32
        pieces.append(b"".join(word.to_bytes(8, "little") for word in (first, state ^ 7, 99)))
    return pieces


@core
def test_equal_keys():
    pieces = with_equal_hashes()
    for order in permutations(pieces):
        table = fast.count_table([*order, order[1]])
        assert list(table.as_dict().items()) == [(order[0], 1), (order[1], 2), (order[2], 1)]


# Errors and interruption


@core
@pytest.mark.parametrize(
    "corpus",
    [
        ["a", "b", 1],
        ["a"] * 30 + ["b\ud800"],
        Generated(["a b"] * 20, KeyError("the source")),
        ["<e>", 1],
        ["<e>a", 1],
        ["", 1],
        [b"<e>"],
    ],
    ids=repr,
)
@pytest.mark.parametrize("pattern", [None, "gpt2", "gpt5", "a*", 1])
@pytest.mark.parametrize("special", [None, {b"<e>": 1}, {"<e>": 1}, 5])
def test_errors_are_those_of_the_reference(small, corpus, pattern, special):
    with none_left():
        compare(corpus, pattern, special)


@pytest.mark.parametrize("threads", [0, 2.0, "two"])
def test_numbers_of_threads_that_are_none(threads):
    with pytest.raises((TypeError, ValueError), match="threads must be"):
        fast.count_table(["low"], threads=threads)


@core
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pattern", ["gpt2", "[a-z]+"])
def test_progress(small, threads, pattern):
    documents = [some_text(seed, 200) for seed in range(30)] + ["<e>", ""]
    seen = []
    fast.count_table(documents, pattern, {b"<e>": 1}, threads=threads, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == sum(len(document.encode()) for document in documents)


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_within_a_document(threads):
    seen = []
    fast.count_table("low lower " * 600_000, "gpt2", threads=threads, progress=seen.append)
    assert len(set(seen)) >= 2
    assert seen[-1] == 6_000_000


@core
@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_progress_comes_out_unchanged(small, threads):
    with none_left(), begun() as others, pytest.raises(ZeroDivisionError):
        fast.count_table(["low lower"] * 100, "gpt2", threads=threads, progress=lambda done: 1 / 0)
    assert bool(others) == (threads > 1)


@needs_alarms
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("document", ["low lower ", "naïve \n".encode(), b"\xff a"])
def test_interrupt(threads, document):
    large = document * (40_000_000 // len(document))
    documents = iter([large] * 100)
    with none_left(), pytest.raises(Stopped), alarm(0.2):
        fast.count_table(documents, "gpt2", threads=threads)
    assert len([*documents]) > 50  # were not even begun


# Tables


def table_of(counts):
    table = PieceTable()
    for piece, count in counts.items():
        one = (np.frombuffer(piece, np.uint8), np.array([len(piece)], np.uint64))
        table.add_counts(*one, np.array([count], np.int64))
    return table


@core
@given(st.lists(st.dictionaries(st.binary(min_size=1, max_size=20), st.integers(1, 9)), max_size=4))
def test_tables_are_added(parts):
    total = PieceTable()
    expected = {}
    for part in parts:
        total.add(table_of(part))
        for piece, count in part.items():
            expected[piece] = expected.get(piece, 0) + count
    assert list(total.as_dict().items()) == list(expected.items())
    data, ends, counts = total.arrays()
    assert (data.dtype, ends.dtype, counts.dtype) == (np.uint8, np.uint64, np.int64)
    assert data.tobytes() == b"".join(expected)
    assert ends.tolist() == np.cumsum([len(piece) for piece in expected]).tolist()
    assert counts.tolist() == [*expected.values()]
    again = PieceTable()
    again.add_counts(data, ends, counts)
    assert again.as_dict() == total.as_dict()
    for piece, count in expected.items():
        assert total.get(piece) == count
    assert total.get(b"absent, and longer than a key") is None
    assert total.get(b"", 0) == 0
    assert len(total) == len(expected)


@core
def test_sums_beyond_63_bits_are_refused():
    table = table_of({b"a": HIGHEST - 5, b"a long one, more than a key": HIGHEST})
    table.add(table_of({b"b": HIGHEST}))
    table.add(table_of({b"a": 5}))
    assert table.get(b"a") == HIGHEST
    for piece in (b"a", b"a long one, more than a key"):
        before = table.as_dict()
        with pytest.raises(ValueError, match="would pass 9223372036854775807") as error:
            table.add(table_of({b"new": 1, piece: 1}))
        assert repr(piece) in str(error.value)
        assert table.as_dict() == before
    with pytest.raises(ValueError, match="the count of the piece b'a' would pass"):
        table_of({b"a": HIGHEST}).add_counts(
            np.frombuffer(b"aa", np.uint8), np.array([1, 2], np.uint64), np.array([1, 1])
        )


@core
def test_the_longest_piece(small):
    documents = ["low", "lowest low", "lowest", "é" * 40 + " ab", "é" * 40]
    for threads in (1, 2, 4):
        table = fast.count_table(documents, "gpt2", threads=threads)
        assert (table.longest, table.longest_document) == (80, 3)
        table = fast.count_table(documents[:3], "[a-z]+", threads=threads)
        assert (table.longest, table.longest_document) == (6, 1)


@core
def test_views_of_documents():
    ascii_text, text = "low " * 100, "naïve"
    for document in (ascii_text, text, b"a\xff", bytearray(b"b"), memoryview(b"c")):
        view = fast.document_view(document)
        expected = document.encode() if isinstance(document, str) else bytes(document)
        assert bytes(view) == expected
        assert len(view) == len(expected)
        assert memoryview(view).readonly
        assert fast.document_view(view) is view or type(view) is bytes
    with pytest.raises(UnicodeEncodeError, match=r"\(document 3\)"):
        fast.document_view("\ud800", 3)
    assert fast.count_pieces([fast.document_view("low"), "low"]) == {b"low": 2}


# Faults, planted into copies of the module


FAULTS = {
    "tables joined in another order": Fault(
        "count", "in sorted(self.runs):", "in reversed(sorted(self.runs)):"
    ),
    "batches mixed up": Fault(
        "count",
        "self.runs.append((self.groups_before + number,",
        "self.runs.append((number,",
    ),
    "the last place of the queue": Fault(
        "piece_table",
        "                slot.count += 1\n",
        "                slot.count += i < CHUNK - 1\n",
    ),
    "places of the table before it grew": Fault(
        "piece_table",
        "            chunk.places[i] = piece_place(&self.table, chunk.keys[i])",
        "            chunk.places[i] = piece_place(&self.table, chunk.keys[max(i, 1) - 1])",
    ),
    "what is cut between two threads": Fault(
        "count",
        "return last if self.kind == WHOLE else safe_cut(data, first + size, last)",
        "return first + size",
    ),
}


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="there is no compiler")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_caught(small, tmp_path, name):
    twin = engine_with(FAULTS[name].module, binary_with(tmp_path, FAULTS[name]))
    twin.count_table.__globals__["use_batches"](50, 5)  # which the copy has of its own
    with pytest.raises(AssertionError):
        for seed in range(20):
            compare(
                [some_text(seed, 30) for seed in range(seed, 30)], "gpt2", None, twin.count_table
            )
            compare(some_text(seed, CHUNK_SIZE * 2), "gpt2", None, twin.count_table)
