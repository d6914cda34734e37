"""Parquet files within bounds: what their pages tell, bombs, and files that are damaged."""

import errno
import gzip
import io
import random

import pytest

from tokbpe import (
    Corpus,
    PieceCounts,
    StreamedCorpus,
    parquet,
    parquet_deltas,
    parquet_pages,
    parquet_thrift,
)

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
    footer = parquet_pages.Footer(file)
    for leaf in range(2):
        chunks = [*footer.chunks(leaf, 2)]
        assert len(chunks) == told.num_row_groups
        for number, chunk in enumerate(chunks):
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


@pytest.mark.parametrize("folded", [False, True])
def test_a_column_of_json(folded, tmp_path):
    """Which is text, also if the file says that it is more."""
    pytest.importorskip("pyarrow", minversion="19")
    path = tmp_path / "a.parquet"
    texts = ['{"a": 1}', "[]"] * 3
    pq.write_table(pa.table({"text": pa.array(texts, pa.json_())}), path, use_dictionary=folded)
    assert pq.read_schema(path).field("text").type == pa.json_()
    assert [*Corpus.from_files(path)] == texts


# Numbers inside of pages


def delta_file(encoding, texts, **options):
    return io.BytesIO(
        written(
            pa.table({"text": texts}),
            use_dictionary=False,
            column_encoding={"text": encoding},
            **options,
        )
    )


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("optional", [False, True])
def test_how_many_values_a_page_has_inside(encoding, version, compression, optional):
    """As many as its header says, and not one less."""
    texts = pa.array(TEXTS, pa.string())
    kind = pa.schema([pa.field("text", pa.string(), nullable=optional)])
    data = io.BytesIO(
        written(
            pa.table({"text": texts}, kind),
            use_dictionary=False,
            column_encoding={"text": encoding},
            data_page_version=version,
            compression=compression,
        )
    )
    (chunk,) = parquet_pages.Footer(data).chunks(0, 1)
    for page in parquet_pages.pages(data, chunk):
        parquet_deltas.check_counts(data, chunk, page, optional)
        less = page._replace(values=page.values - 1)
        with pytest.raises(ValueError, match=f"values says inside that it has {page.values}$"):
            parquet_deltas.check_counts(data, chunk, less, optional)


def varint(number):
    """A number that is not negative, of seven bits in each byte."""
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def zeros(count, block=128):
    """So many zeros as numbers with deltas."""
    blocks = -(-(count - 1) // block)
    return b"".join(map(varint, (block, 1, count))) + bytes(1 + 2 * blocks)


@pytest.mark.parametrize("count", [0, 1, 2, 128, 129, 130, 1000])
def test_where_numbers_end(count):
    data = zeros(count)
    assert parquet_deltas.numbers(data + b"more", 0) == (count, len(data))


DELTAS = {
    "one more": (6, zeros(11), "a page of 10 values says inside that it has 11"),
    "billions": (6, zeros(2**31, 2**20), f"has {2**31}"),
    "of the second numbers": (7, zeros(10) + zeros(2**20), f"has {2**20}"),
    "cut": (7, zeros(10), "ends too early"),
    "cut inside": (7, zeros(1000)[:-1], "ends too early"),
    "large blocks": (6, zeros(9, 2**21), f"blocks of {2**21} numbers in 1 parts"),
    "parts of no size": (6, b"\x80\x01\0\x09\0", "blocks of 128 numbers in 0 parts"),
    "parts of 16": (6, b"\x80\x01\x08\x09\0", "blocks of 128 numbers in 8 parts"),
}


@pytest.mark.parametrize("damage", DELTAS)
def test_wrong_numbers_inside_of_a_page(damage):
    encoding, data, message = DELTAS[damage]
    chunk = parquet_pages.Chunk(values=1000, size=1, data=0, dictionary=0, codec=0)
    page = parquet_pages.Page(len(data), len(data), 10, encoding, 0, {})
    if damage == "cut inside":
        page = page._replace(values=1000)
    with pytest.raises(ValueError, match=f"damaged: .*{message}"):
        parquet_deltas.check_counts(io.BytesIO(data), chunk, page, False)


def test_levels_that_a_page_cannot_have():
    chunk = parquet_pages.Chunk(values=1000, size=1, data=0, dictionary=0, codec=0)
    file = io.BytesIO(zeros(10))
    page = parquet_pages.Page(5, 5, 10, 6, 0, {3: 4})
    with pytest.raises(ValueError, match="a page with levels of the encoding 4"):
        parquet_deltas.check_counts(file, chunk, page, True)
    for levels in (-1, 6):
        page = parquet_pages.Page(5, 5, 10, 6, 0, {4: 6, 5: levels})
        with pytest.raises(ValueError, match=f"a page with {levels} bytes of levels"):
            parquet_deltas.check_counts(file, chunk, page, True)
    page = parquet_pages.Page(5, 5, 10, 6, 0, {3: 3})
    with pytest.raises(ValueError, match="a page of the codec 3"):
        parquet_deltas.check_counts(file, chunk._replace(codec=3), page, True)


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_a_file_with_wrong_numbers_inside(encoding, tmp_path):
    good = delta_file(encoding, ["a"] * 300, compression="none").getvalue()
    start = b"\x80\x01\x04\xac\x02"  # blocks of 128 in 4 parts, 300 numbers
    assert good.count(start) == (1 if "LENGTH" in encoding else 2)
    path = tmp_path / "a.parquet"
    path.write_bytes(good.replace(start, b"\x80\x01\x04\xad\x02"))
    with pytest.raises(ValueError, match=f"{path}: column 'text': .* 300 values .* has 301"):
        Corpus.from_files(path)


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
    columns, options = BOMBS[bomb]
    path = tmp_path / "a.parquet"
    path.write_bytes(
        written(pa.table(columns()), compression="zstd", write_statistics=False, **options)
    )
    assert path.stat().st_size < 2**16
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


def test_a_page_of_empty_texts():
    """Of each pyarrow takes eight bytes, where the page has none."""
    data = delta_file("DELTA_LENGTH_BYTE_ARRAY", [""] * 10001)
    (chunk,) = parquet_pages.Footer(data).chunks(0, 1)
    (page,) = parquet.checked_pages(data, chunk, 8 * 10001, True)
    assert page.values == 10001
    with pytest.raises(ValueError, match="a page takes 80008 bytes of memory, and "):
        next(parquet.checked_pages(data, chunk, 8 * 10001 - 1, True))


def test_a_footer_that_is_too_large(tmp_path):
    path = tmp_path / "a.parquet"
    size = parquet_pages.MOST_FOOTER + 1
    with open(path, "wb") as file:  # of nothing: it takes no room
        file.truncate(size)
        file.seek(size)
        file.write(size.to_bytes(4, "little") + b"PAR1")
    with pytest.raises(
        ValueError, match=f"{path}: .* it has {size} bytes of {size + 8}, of which "
    ):
        Corpus.from_files(path)


def test_a_footer_of_many_columns(monkeypatch, tmp_path):
    """pyarrow takes hundreds of bytes for each."""
    path = tmp_path / "a.parquet"
    columns = {f"c{number}": ["a"] for number in range(50)}
    path.write_bytes(written(pa.table({"text": ["a"], **columns}), row_group_size=1))
    assert [*Corpus.from_files(path)] == ["a"]
    monkeypatch.setattr(parquet_pages, "MOST_COLUMNS", 100)
    assert [*Corpus.from_files(path)] == ["a"]  # they have enough bytes
    monkeypatch.setattr(parquet_pages, "COLUMN_BYTES", 2**20)
    told = "104 columns of all row groups, of which 100 are read"  # 52, a group, and 51 there
    with pytest.raises(ValueError, match=f"{path}: .*{told}"):
        Corpus.from_files(path)


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_a_packed_table_that_is_too_large(packing, monkeypatch, tmp_path):
    path = tmp_path / f"a.parquet.{packing}"
    data = written(pa.table({"text": ["a" * 2**18]}), compression="none", use_dictionary=False)
    if packing == "gz":
        path.write_bytes(gzip.compress(data))
    else:
        path.write_bytes(pytest.importorskip("zstandard").compress(data))
    assert [*Corpus.from_files(path)] == ["a" * 2**18]
    monkeypatch.setattr(parquet, "ROOM", 1)
    most = 100 * path.stat().st_size
    with pytest.raises(ValueError, match=f"{path}: the table that is packed has more than {most} "):
        Corpus.from_files(path)


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
        ValueError, match=rf"^{path}: column 'text': what the file tells of its columns is damaged"
    ):
        [*Corpus.from_files(path)]


def test_row_groups_of_the_same_bytes(tmp_path):
    """Else a few bytes were worth a thousand times as much for each of many groups."""
    good = written(pa.table({"text": ["a"]}), store_schema=False)
    size = int.from_bytes(good[-8:-4], "little")
    told = good[-8 - size : -8]
    at = told.index(b"\x19\x1c\x19")  # a list of one group, which has a list of columns
    end = parquet_thrift.behind(told, at + 2, parquet_thrift.STRUCTURE, 0)
    twice = told[:at] + b"\x19\x2c" + told[at + 2 : end] * 2 + told[end:]
    path = tmp_path / "a.parquet"
    path.write_bytes(good[: -8 - size] + twice + len(twice).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ValueError, match=f"{path}: .*two row groups that both have the byte 4$"):
        Corpus.from_files(path)


def test_a_page_that_ends_behind_its_column():
    data = io.BytesIO(written(pa.table({"text": TEXTS}), use_dictionary=False))
    (chunk,) = parquet_pages.Footer(data).chunks(0, 1)
    assert [*parquet_pages.pages(data, chunk)]
    shorter = chunk._replace(size=chunk.size - parquet_pages.MOST_BEYOND - 1)
    with pytest.raises(ValueError, match=r"a page of \d+ bytes that ends behind its column"):
        list(parquet_pages.pages(data, shorter))


def test_rows_that_are_missing(tmp_path):
    """As far as the footer tells: behind its columns, 300 stands there for all rows."""
    good = written(pa.table({"text": ["a"] * 300}), store_schema=False)
    path = tmp_path / "a.parquet"
    rows = b"\x16\xd8\x04"
    at = good.index(rows + b"\x19")  # before the row groups
    path.write_bytes(good[:at] + b"\x16\xda\x04" + good[at + 3 :])
    with pytest.raises(ValueError, match=f"{path}: the file tells of 301 rows, and has 300"):
        Corpus.from_files(path)


@pytest.mark.parametrize("field", [7, 9], ids=["size", "offset"])
def test_a_column_behind_the_end(field):
    """Where the system may tell of no file."""
    facts = {4: 1, 5: 1, 7: 60, 9: 4}
    assert parquet_pages.chunk_of({3: facts}, 100) == (1, 60, 4, 0, 1)
    with pytest.raises(ValueError, match=f"damaged: the number {2**62}, which must be below 100"):
        parquet_pages.chunk_of({3: {**facts, field: 2**62}}, 100)


def header(*fields):
    """A structure of one field after another, each with its kind and bytes."""
    return b"".join(bytes([16 + kind]) + data for kind, data in fields) + b"\0"


NUMBER = 5, b"\x02"  # 1
DAMAGED = {
    "empty": (b"", "it ends too early"),
    "endless number": (header((5, b"\xff" * 10)), "a number of more than 64 bits"),
    "large number": (header((5, b"\xff" * 9 + b"\2")), "a number of more than 64 bits"),
    "field twice": (header(NUMBER)[:-1] + b"\x05\2\2\0", "field 1 stands twice"),
    "field of 17 bits": (b"\x05\x82\x80\x08\2\0", "a field of the number 65537"),
    "field below 1": (b"\x05\1\2\0", "a field of the number -1"),
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
    "binary without an end": (header(*[NUMBER] * 3, (8, b"\xff" * 8 + b"\1")), "it ends too early"),
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
    chunk = parquet_pages.Chunk(values=1, size=100, data=0, dictionary=0, codec=0)
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
    chunk = parquet_pages.Chunk(values=1, size=len(data) + 5, data=0, dictionary=0, codec=0)
    facts = {1: 1, 2: 8}
    assert [*parquet_pages.pages(file, chunk)] == [
        parquet_pages.Page(5, 10, 1, 8, len(data), facts)
    ]


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (b"PARE", "this Parquet file is encrypted"),
        (b"PAR2", "this is no Parquet file, which would"),
    ],
)
def test_another_end(end, message, tmp_path):
    path = tmp_path / "a.parquet"
    for start in (written(pa.table({"text": ["a"]}))[:-4], b""):
        path.write_bytes(start + end)
        with pytest.raises(ValueError, match=f"{path}: {message}" if start else f"{path}: "):
            Corpus.from_files(path)


def test_encrypted_columns(tmp_path):
    """With a footer that is not."""
    good = written(pa.table({"text": ["a"]}), store_schema=False)
    size = int.from_bytes(good[-8:-4], "little")
    told = good[-8 - size : -9]  # up to the end of the structure
    told += header((12, header((12, header()))))  # behind field 7
    path = tmp_path / "a.parquet"
    path.write_bytes(good[: -8 - size] + told + len(told).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ValueError, match=f"{path}: this Parquet file is encrypted"):
        Corpus.from_files(path)


def test_what_pyarrow_raises():
    with pytest.raises(ValueError, match="^damaged$"), parquet.damage():
        raise OSError("damaged")
    with pytest.raises(ValueError, match="^unknown$"), parquet.damage():
        raise pa.ArrowNotImplementedError("unknown")
    others = TimeoutError("of a signal"), TypeError("of a caller")
    for error in (pa.ArrowMemoryError("none"), OSError(errno.EIO, "of the disk", "a"), *others):
        with pytest.raises(type(error)) as caught, parquet.damage():
            raise error
        assert caught.value is error
