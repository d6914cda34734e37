"""Parquet files within bounds: what their pages tell, bombs, and files that are damaged."""

import errno
import io
import random

import pytest

from tokbpe import Corpus, PieceCounts, StreamedCorpus, parquet, parquet_pages

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def written(table, **options):
    data = io.BytesIO()
    pq.write_table(table, data, **options)
    return data.getvalue()


def repeated(value, rows):
    """A column of which the value is stored once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([value]))


TEXTS = [f"text {number % 700}" * (number % 5) for number in range(3000)]
FORMS = {
    "default": {},
    "plain": {"use_dictionary": False, "compression": "none"},
    "version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "small pages": {"data_page_size": 2000, "write_batch_size": 50, "compression": "gzip"},
    "small dictionary": {"dictionary_pagesize_limit": 1000, "write_batch_size": 50},
    "prefixes": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    "lengths": {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
    "groups": {"row_group_size": 500, "write_page_index": True},
    "no statistics": {"write_statistics": False, "store_schema": False},
}


@pytest.mark.parametrize("form", FORMS)
def test_the_pages_of_a_file(form):
    """They hold all values, and fill what pyarrow says that the column has."""
    table = pa.table({"number": range(3000), "text": TEXTS})
    file = io.BytesIO(written(table, **FORMS[form]))
    told = pq.ParquetFile(file).metadata
    groups = [*parquet_pages.chunks(file, 2)]
    assert len(groups) == told.num_row_groups
    for number, group in enumerate(groups):
        for leaf, chunk in enumerate(group):
            expected = told.row_group(number).column(leaf)
            assert chunk.values == expected.num_values
            assert chunk.data == expected.data_page_offset
            found = [*parquet_pages.pages(file, chunk)]
            assert sum(page.values for page in found if page.encoding is not None) == chunk.values
            headers = expected.total_compressed_size - sum(page.packed for page in found)
            assert headers + sum(page.size for page in found) == expected.total_uncompressed_size
            assert any(page.encoding is None for page in found) == expected.has_dictionary_page
    assert {"small pages": 2, "groups": 0}.get(form, 0) < len(found) < 1000


@pytest.mark.parametrize("kind", [Corpus, StreamedCorpus])
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_read(form, kind, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(written(pa.table({"number": range(3000), "text": TEXTS}), **FORMS[form]))
    assert [*kind.from_files(path)] == TEXTS


def test_a_column_with_the_name_of_a_nested_one(tmp_path):
    path = tmp_path / "a.parquet"
    nested = pa.array([{"b": "no"}], pa.struct([("b", pa.string())]))
    pq.write_table(pa.table({"a": nested, "c.d": ["yes"]}), path)
    assert [*Corpus.from_files(path, field="c.d")] == ["yes"]
    pq.write_table(pa.table({"a": nested, "a.b": ["yes"]}), path)
    with pytest.raises(ValueError, match=r"there are 2 columns that are stored as 'a\.b', not one"):
        Corpus.from_files(path, field="a.b")


# Bombs

LONG = 2**22  # bytes of a text: a few rows of it have more than there is room for


def stored_once():
    return {"text": repeated("a" * LONG, 2000)}


def stored_as_prefix():
    return {"text": ["a" * LONG] * 40}


BOMBS = {
    "page": (lambda: {"text": ["a" * (parquet.ROOM + 1)]}, {"use_dictionary": False}),
    "dictionary page": (lambda: {"text": repeated("a" * (parquet.ROOM + 1), 2)}, {}),
    "rows": (stored_once, {"store_schema": False}),
    "rows of a dictionary": (stored_once, {}),
    "rows without an end": (lambda: {"text": repeated("", 2**20)}, {"store_schema": False}),
    "prefixes": (
        stored_as_prefix,
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs(bomb, tmp_path, monkeypatch):
    """They are refused, or read a few rows at a time, and never as a whole."""
    from tokbpe import sources

    columns, options = BOMBS[bomb]
    path = tmp_path / "a.parquet"
    path.write_bytes(
        written(pa.table(columns()), compression="zstd", write_statistics=False, **options)
    )
    assert path.stat().st_size < 2**16
    monkeypatch.setattr(sources, "MOST_TEXTS", 2**26)
    largest = []
    given = parquet.without_dictionaries

    def measured(batch):
        batch = given(batch)
        largest.append(batch.nbytes)
        return batch

    monkeypatch.setattr(parquet, "without_dictionaries", measured)
    message = "column 'text': a page takes" if "page" in bomb else r"the first \d+ rows take"
    with pytest.raises(ValueError, match=rf"a\.parquet: {message} \d+ bytes of memory, and \d+ "):
        for _ in StreamedCorpus.from_files(path):
            pass
    assert max(largest, default=0) <= 1.1 * parquet.ROOM


def test_a_page_beyond_the_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROOM", 1000)
    path = tmp_path / "a.parquet"
    text = random.Random(1).randbytes(3000).hex()
    pq.write_table(pa.table({"text": [text, "a"]}), path, use_dictionary=False)
    assert len(Corpus.from_files(path, max_bytes=len(text) + 1)) == 2
    with pytest.raises(ValueError, match=r"a page takes 60\d\d bytes .* at most 1010 are read"):
        Corpus.from_files(path, max_bytes=10)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"piece": repeated(b"a" * LONG, 100), "count": [1] * 100}, "the first"),
        ({"piece": repeated(b"a", 2**20 + 1), "count": [1] * (2**20 + 1)}, "the first"),
        ({"piece": [b"a" * (parquet.ROOM + 1)], "count": [1]}, "column 'piece': a page takes"),
    ],
    ids=["long", "many", "page"],
)
def test_bombs_of_counts(columns, message, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(
        written(pa.table(columns), compression="zstd", store_schema=False, write_statistics=False)
    )
    with pytest.raises(ValueError, match=rf"^{path}: {message}"):
        PieceCounts.from_parquet(path, pattern=None)


def test_a_bomb_in_another_column_is_not_opened(tmp_path):
    """Its page tells of four times the room, and takes no part in it."""
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a"], "other": ["b" * (4 * parquet.ROOM)]})
    path.write_bytes(written(table, compression="zstd", write_statistics=False))
    assert [*Corpus.from_files(path)] == ["a"]


# What is damaged


@pytest.mark.parametrize("form", ["default", "version 2", "prefixes", "groups"])
def test_each_byte_changed(form, tmp_path):
    """Its texts, others, or a ValueError that names the file: the process does not end."""
    texts = [f"text {number % 7}" * (number % 3) for number in range(20)]
    options = {**FORMS[form], "compression": "zstd", "row_group_size": 10}
    numbers = pa.array(range(20), pa.int8())
    good = written(pa.table({"number": numbers, "text": texts}), **options)
    drawn = random.Random(form)
    path = tmp_path / "a.parquet"
    outcomes = set()
    for place in range(4, len(good)):
        data = bytearray(good)
        data[place] ^= drawn.choice([1, 2, 16, 128, 255])
        path.write_bytes(data)
        try:
            outcomes.add([*StreamedCorpus.from_files(path)] == texts)
        except ValueError as error:
            outcomes.add(ValueError)
            assert str(error).startswith(f"{path}: ")
    assert {True, ValueError} <= outcomes


def test_a_file_that_ends_inside_a_page(tmp_path):
    good = written(pa.table({"text": TEXTS}), **FORMS["small pages"])
    size = int.from_bytes(good[-8:-4], "little") + 8
    path = tmp_path / "a.parquet"
    path.write_bytes(good[:600] + good[-size:])
    with pytest.raises(
        ValueError, match=rf"^{path}: what the file tells of its columns is damaged"
    ):
        [*Corpus.from_files(path)]


@pytest.mark.parametrize("field", [7, 9], ids=["size", "offset"])
def test_a_column_behind_the_end(field):
    """Where the system may tell of no file."""
    facts = {5: 1, 7: 60, 9: 4}
    assert parquet_pages.chunk_of({3: facts}, 100) == (1, 60, 4, 0)
    with pytest.raises(ValueError, match=f"damaged: the number {2**62}, which must be below 100"):
        parquet_pages.chunk_of({3: {**facts, field: 2**62}}, 100)


def header(*fields):
    """A structure of one field after another, each with its kind and bytes."""
    return b"".join(bytes([16 + kind]) + data for kind, data in fields) + b"\0"


NUMBER = 5, b"\x02"  # 1
DAMAGED = {
    "empty": (b"", "it ends too early"),
    "endless number": (header((5, b"\xff" * 10)), "a number without an end"),
    "map": (header((11, b"")), "a value of kind 11"),
    "other kind": (header((8, b"\1a")), "a value of kind 8"),
    "no kind": (header(), "a page of kind None"),
    "index": (header(NUMBER), "a page of kind 1"),
    "negative": (
        header((5, b"\0"), (5, b"\1"), NUMBER, NUMBER, (12, header(NUMBER, NUMBER))),
        "the number -1,",
    ),
    "no size": (header((5, b"\0")), "the number None,"),
    "large": (
        header((5, b"\0"), (5, b"\x80\x80\x80\x80\x10"), NUMBER, NUMBER, (12, header(NUMBER))),
        f"the number {2**31},",
    ),
    "binary without an end": (header(*[NUMBER] * 3, (8, b"\xff" * 8 + b"\1")), "the number"),
    "list without an end": (
        header(*[NUMBER] * 3, (9, b"\xf5\xff\xff\xff\xff\x07")),
        "it ends too early",
    ),
    "list of doubles": (header(*[NUMBER] * 3, (9, b"\xf7\xff\xff\xff\xff\x07")), "it ends too"),
    "lists in lists": (header(*[NUMBER] * 3, (9, b"\x19" * 100)), "nested too deeply"),
    "structures": (header(*[NUMBER] * 3, (12, b"\x1c" * 5000)), "nested too deeply"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_headers(damage):
    data, message = DAMAGED[damage]
    chunk = parquet_pages.Chunk(values=1, size=100, data=0, dictionary=0)
    with pytest.raises(ValueError, match=rf"what the file tells of its columns is .*{message}"):
        next(parquet_pages.pages(io.BytesIO(data), chunk))


def test_what_is_skipped_in_a_header():
    """Values of all kinds, in fields that the format does not have."""
    told = header(
        (5, b"\0"), (5, b"\x14"), (5, b"\x0a"), NUMBER, (12, header(NUMBER, (5, b"\x10")))
    )
    others = header(
        (3, b"x"),
        (7, b"12345678"),
        (8, b"\4text"),
        (9, b"\x32\1\2\1"),  # a list of truths
        (10, b"\x28\1a\1b"),  # a set of bytes
        (12, header((2, b""), NUMBER)),
    )
    true_in_field_40 = b"\x01\x50"
    data = told[:-1] + true_in_field_40 + others
    file = io.BytesIO(data + bytes(5))
    chunk = parquet_pages.Chunk(values=1, size=len(data) + 5, data=0, dictionary=0)
    assert [*parquet_pages.pages(file, chunk)] == [parquet_pages.Page(5, 10, 1, 8)]
    assert file.tell() == len(data)


def test_what_pyarrow_raises():
    with pytest.raises(ValueError, match="^damaged$"), parquet.damage():
        raise OSError("damaged")
    with pytest.raises(ValueError, match="^unknown$"), parquet.damage():
        raise pa.ArrowNotImplementedError("unknown")
    for error in (pa.ArrowMemoryError("none"), OSError(errno.EIO, "of the disk", "a")):
        with pytest.raises(type(error)) as caught, parquet.damage():
            raise error
        assert caught.value is error
