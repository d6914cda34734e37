"""Documents from files: which files, of which kinds, packed or not, and what is refused."""

import bz2
import errno
import gzip
import json
import os
import sys
import time

import pytest

from growth import calls
from tokbpe import Corpus, StreamedCorpus, files, sources

pytestmark = pytest.mark.core

KINDS = pytest.mark.parametrize("kind", [Corpus, StreamedCorpus])


@pytest.fixture
def write(tmp_path):
    """Writes a file and the folders that it is in."""

    def write(name, data=b"text"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


def lines_of(*documents, field="text"):
    return b"".join(json.dumps({field: text, "n": 1}).encode() + b"\n" for text in documents)


# Which files


@KINDS
def test_each_file_is_a_document_whatever_is_in_it(kind, write):
    data = [b"two\nlines\r\n", b"", b"\xff\x00", "Grüße".encode()]
    paths = [write(f"{index}.txt", text) for index, text in enumerate(data)]
    for given in (paths, map(str, paths), [os.fsencode(path) for path in paths]):
        corpus = kind.from_files(list(given))
        assert list(corpus) == data
        assert corpus.fingerprint() == Corpus(data).fingerprint()
    assert list(kind.from_files(paths[3])) == data[3:]
    assert list(kind.from_files(paths[::-1])) == data[::-1]
    assert kind.from_files(paths).role == "training"
    assert kind.from_files(paths, role="test").role == "test"
    corpus = kind.from_files(paths)
    assert [len(corpus), corpus.name(1)] == [4, str(paths[1])]


@KINDS
def test_folders_and_patterns_are_sorted(kind, write, tmp_path):
    names = ["b.txt", "a/z.txt", "a/b/c.txt", "a.txt", "c.md", "a/.hidden", ".git/config", "_e.txt"]
    for name in names:
        write(name, name.encode())

    def found(*patterns, **options):
        paths = [str(tmp_path / pattern) for pattern in patterns]
        return [document.decode() for document in kind.from_files(paths, **options)]

    everything = ["_e.txt", "a/b/c.txt", "a/z.txt", "a.txt", "b.txt", "c.md"]
    assert found("") == everything
    assert found("a") == ["a/b/c.txt", "a/z.txt"]
    assert found("*.txt") == ["_e.txt", "a.txt", "b.txt"]
    assert found("*") == ["_e.txt", "a.txt", "b.txt", "c.md"]
    assert found("**") == found("**/*") == everything
    assert found("**/[cz].*") == ["a/b/c.txt", "a/z.txt", "c.md"]
    assert found("**/**/*") == found("**/**/**/*") == everything
    assert found("**/a/**/**/*.txt") == ["a/b/c.txt", "a/z.txt"]
    assert found("b.txt", "a", "b.txt") == ["b.txt", "a/b/c.txt", "a/z.txt", "b.txt"]


@KINDS
def test_patterns_below_the_working_folder(kind, write, monkeypatch, tmp_path):
    write("a/b.txt", b"ab")
    write("c.txt", b"c")
    monkeypatch.chdir(tmp_path)
    assert list(kind.from_files("*.txt")) == [b"c"]
    assert list(kind.from_files("*/b.txt")) == [b"ab"]
    assert list(kind.from_files(".")) == [b"ab", b"c"]


@KINDS
def test_a_name_that_is_there_is_no_pattern(kind, write):
    path = write("[ab].txt", b"brackets")
    write("a.txt", b"a")
    assert list(kind.from_files(path)) == [b"brackets"]


@KINDS
@pytest.mark.parametrize("name", ["missing.txt", "*.md", "missing/*"])
def test_what_is_not_there(kind, name, write, tmp_path):
    write("a.txt")
    path = str(tmp_path / name)
    error, message = (ValueError, "there are no files") if "*" in name else (OSError, "No such")
    with pytest.raises(error, match=message) as caught:
        kind.from_files(path)
    assert path in str(caught.value)


@KINDS
def test_a_folder_without_files(kind, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty: there are no files"):
        kind.from_files(tmp_path / "empty")
    with pytest.raises(ValueError, match="a corpus needs at least one document"):
        list(kind.from_files([]))


@KINDS
@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        (5, {}, "paths must be a path or several, not int"),
        (["x", 5], {}, "path 1 must be a path, not int"),
        ("x", {"field": None}, "field must be a name, not NoneType"),
        ("x", {"documents": 5}, "documents must be 'whole', 'line' or a separator, not int"),
    ],
)
def test_wrong_arguments(kind, paths, options, message):
    with pytest.raises(TypeError, match=message):
        kind.from_files(paths, **options)


# What is refused


@KINDS
def test_symbolic_links(kind, write, tmp_path):
    write("folder/a.txt")
    write("outside/b.txt")
    (tmp_path / "link.txt").symlink_to(tmp_path / "folder/a.txt")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "linked").symlink_to(tmp_path / "outside")
    for given, named in (
        ("link.txt", "link.txt"),
        ("dangling", "dangling"),
        ("linked", "linked"),
        ("linked/", "linked/"),
        ("*.txt", "link.txt"),
        ("*/b.txt", "linked"),
        ("", "dangling"),
    ):
        with pytest.raises(OSError, match="this is a symbolic link, and none is followed") as error:
            kind.from_files(os.path.join(tmp_path, given))
        assert error.value.errno == errno.ELOOP
        assert error.value.filename == os.path.join(tmp_path, named)
    assert list(kind.from_files(tmp_path / "folder")) == [b"text"]
    # The folders on the way to what a caller names are the caller's own.
    assert list(kind.from_files(tmp_path / "linked" / "b.txt")) == [b"text"]
    assert list(kind.from_files(str(tmp_path / "linked" / "*"))) == [b"text"]


def test_a_file_that_is_made_a_link_later(write, tmp_path):
    path = write("a.txt")
    corpus = StreamedCorpus.from_files(path)
    path.rename(tmp_path / "b.txt")
    path.symlink_to(tmp_path / "b.txt")
    with pytest.raises(OSError, match="this is a symbolic link"):
        list(corpus)
    # Also between the look at it and the opening.
    with pytest.raises(OSError) as caught, open(path, "rb", opener=sources.without_links):
        pass
    assert caught.value.errno == errno.ELOOP


@KINDS
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_regular_file(kind, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/null"):
        with pytest.raises(OSError, match="this is no regular file"):
            kind.from_files(path)


@pytest.mark.parametrize("change", ["longer", "newer", "gone"])
def test_a_file_that_changes_between_two_passes(change, write):
    paths = [write("a.txt"), write("b.txt")]
    corpus = StreamedCorpus.from_files(paths)
    assert list(corpus) == [b"text"] * 2
    if change == "gone":
        paths[1].unlink()
    elif change == "longer":
        paths[1].write_bytes(b"longer text")
    else:
        os.utime(paths[1], ns=(1, time.time_ns() - 10**10))
    documents = iter(corpus)
    assert next(documents) == b"text"
    with pytest.raises(OSError) as caught:
        next(documents)
    assert caught.value.filename == str(paths[1])


def test_a_file_that_changes_once_it_was_read(write):
    path = write("a.txt", b"text")
    documents = iter(StreamedCorpus.from_files(path))
    assert next(documents) == b"text"
    path.write_bytes(b"longer")
    with pytest.raises(OSError, match=r"the file has changed since it was listed: .*a\.txt"):
        next(documents)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.jsonl.gz"])
def test_a_file_that_changes_while_it_is_read(name, write):
    data = lines_of("a", "b")
    path = write(name, gzip.compress(data) if name.endswith(".gz") else data)
    corpus = StreamedCorpus.from_files(path, documents="line")
    documents = iter(corpus)
    next(documents)
    with path.open("ab") as file:
        file.write(b"{}")
    with pytest.raises(OSError, match="file (was changed while|has changed since)") as caught:
        list(documents)
    assert caught.value.filename == str(path)


@KINDS
@pytest.mark.parametrize("documents", ["whole", "line"])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.jsonl.gz", "a.txt.gz", "a.txt.zst"])
def test_a_file_that_grows_as_fast_as_it_is_read(kind, documents, name, write, monkeypatch):
    data = lines_of(*["low"] * 1000)
    if name.endswith(".gz"):
        data = gzip.compress(data, 0)
    elif name.endswith(".zst"):
        data = zstandard_of(data)
    path = write(name, data)
    reads, read = [], files.NamedFile.readinto

    def readinto(self, buffer):
        if len(reads) < 100:
            with path.open("ab") as file:
                file.write(data * (1 + len(buffer) // len(data)))
        reads.append(len(buffer))
        return read(self, buffer)

    monkeypatch.setattr(files.NamedFile, "readinto", readinto)
    with pytest.raises(OSError, match=r"the file (was changed|has changed)") as caught:
        list(kind.from_files(path, documents=documents))
    assert caught.value.filename == str(path)
    assert len(reads) == 1


@KINDS
def test_budgets_of_files(kind, write):
    paths = [write(name, b"12345") for name in ("a.txt", "b.txt", "c.txt")]
    assert len(kind.from_files(paths, max_bytes=15, max_documents=3)) == 3
    with pytest.raises(ValueError, match=r"c\.txt: with this document .* max_bytes=14 bytes"):
        list(kind.from_files(paths, max_bytes=14))
    with pytest.raises(ValueError, match=r"b\.txt: with .* max_documents=1 documents"):
        list(kind.from_files(paths, max_documents=1))


@KINDS
def test_a_packed_file_is_not_unpacked_beyond_the_budget(kind, write, monkeypatch):
    path = write("zeros.txt.gz", gzip.compress(bytes(10**7)))
    sizes = []
    read = gzip.GzipFile.read
    monkeypatch.setattr(
        gzip.GzipFile, "read", lambda self, size=-1: sizes.append(size) or read(self, size)
    )
    with pytest.raises(ValueError, match=r"zeros\.txt\.gz: .* max_bytes=1000 bytes"):
        list(kind.from_files(path, max_bytes=1000))
    assert sizes == [1001]


# Text files of several documents


@KINDS
def test_lines_and_separators(kind, write):
    paths = [write("a.txt", b"one\r\ntwo\n\nfour"), write("b.txt", b""), write("c.txt", b"x\n")]
    corpus = kind.from_files(paths, documents="line")
    assert list(corpus) == [b"one", b"two", b"", b"four", b"x"]
    assert corpus.name(3) == f"{paths[0]}: document 3"
    assert corpus.name(4) == f"{paths[2]}: document 0"
    path = write("d.txt", b"one<|e|>two\n<|e|>")
    assert list(kind.from_files(path, documents="<|e|>")) == [b"one", b"two\n"]


# JSON Lines


@KINDS
@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "JSONL"])
def test_json_lines(kind, ending, write):
    texts = ["Grüße 🐈", "", "two\nlines", "\u2028"]
    path = write(f"a.{ending}", lines_of(*texts) + b'{"text": "last"}')
    corpus = kind.from_files(path)
    assert list(corpus) == [*texts, "last"]
    assert len(corpus) == 5
    assert corpus.name(1) == f"{path}: line 2"
    assert list(kind.from_files(write("b.jsonl", lines_of("a", field="body")), field="body")) == [
        "a"
    ]


@KINDS
def test_json_lines_may_end_with_blank_lines(kind, write):
    assert list(kind.from_files(write("a.jsonl", lines_of("a") + b"\n \r\n"))) == ["a"]


@KINDS
def test_many_blank_lines_take_no_work_each(kind, write):
    def blank(rest):
        path = write("a.jsonl.gz", gzip.compress(lines_of("a") + b"\n" * 10**6 + rest))
        return lambda: [*kind.from_files(path)]

    assert blank(b" ")() == ["a"]
    assert calls(blank(b"")) < 10**5
    with pytest.raises(ValueError, match="line 2: this line is blank, and others follow"):
        blank(lines_of("b"))()


BAD_LINES = [
    (b'{"text": "a"', "line 2: this is no JSON: Expecting ',' delimiter"),
    (b"\xff", "line 2: this is no JSON: 'utf-8' codec can't decode byte 0xff"),
    (b'"text"', "line 2: a line must be an object, not str"),
    (b"[1]", "line 2: a line must be an object, not list"),
    (b'{"body": "a"}', r"line 2: there is no field 'text' among \['body'\]"),
    (b'{"text": null}', "line 2: field 'text' must be a text, not null"),
    (b'{"text": [1]}', r"line 2: field 'text' must be a text, not \[1\]"),
    (b"", "line 2: this line is blank, and others follow"),
    (b'{"n": ' + b"9" * 5000 + b"}", "line 2: "),
    (b"[" * 200_000, "line 2: the JSON is nested too deeply"),
]


@KINDS
@pytest.mark.parametrize(("line", "message"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_is_named(kind, line, message, write):
    path = write("bad.jsonl", lines_of("a") + line + b"\n" + lines_of("b"))
    with pytest.raises(ValueError, match=message) as caught:
        list(kind.from_files(path))
    assert str(caught.value).startswith(f"{path}: line 2: ")


@KINDS
def test_half_a_surrogate_pair_in_json(kind, write):
    path = write("bad.jsonl", lines_of("a") + b'{"text": "a\\ud83d"}\n')
    with pytest.raises(UnicodeEncodeError, match=r"surrogates not allowed \(.*bad\.jsonl: line 2"):
        list(kind.from_files(path))
    assert list(kind.from_files(write("b.jsonl", b'{"text": "\\ud83d\\udc08"}'))) == ["🐈"]


# Packed


def zstandard_of(data, **options):
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor(**options).compress(data)


PACKERS = {"gz": gzip.compress, "zst": zstandard_of}
PACKED = pytest.mark.parametrize("packing", PACKERS)


@KINDS
@PACKED
def test_packed_files(kind, packing, write):
    pack = PACKERS[packing]
    lines = lines_of("Grüße", "b")
    text = write(f"a.txt.{packing}", pack(b"low\nlower\n"))
    # Several parts one after another are one file.
    both = write(f"b.jsonl.{packing.upper()}", pack(lines[:7]) + pack(b"") + pack(lines[7:]))
    assert list(kind.from_files([text, both])) == [b"low\nlower\n", "Grüße", "b"]
    assert kind.from_files(both).fingerprint() == Corpus(["Grüße", "b"]).fingerprint()
    assert list(kind.from_files(text, documents="line")) == [b"low", b"lower"]
    corpus = kind.from_files([text, both])
    assert len(corpus) == 3
    assert corpus.name(2) == f"{both}: line 2"


@KINDS
@PACKED
@pytest.mark.parametrize("documents", ["whole", "line"])
def test_a_damaged_packed_file(kind, packing, documents, write):
    data = os.urandom(5000) + b"\n"
    packed = PACKERS[packing](data * 3)
    for number, damaged in enumerate(
        (packed[:-3], packed[: len(packed) // 2], b"nothing packed", packed + b"more")
    ):
        path = write(f"bad{number}.txt.{packing}", damaged)
        with pytest.raises(ValueError, match="the compressed data are damaged") as caught:
            list(kind.from_files(path, documents=documents))
        assert str(caught.value).startswith(f"{path}: ")


@KINDS
def test_a_large_zst_file(kind, write):
    data = b"".join(b"%d\n" % number for number in range(200_000))
    path = write("a.txt.zst", zstandard_of(data, level=1))
    assert list(kind.from_files(path)) == [data]
    assert list(kind.from_files(path, documents="line")) == data.splitlines()


def test_zst_needs_its_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r'pip install "tokbpe\[zstandard\]"'):
        Corpus.from_files(write("a.txt.zst"))


@KINDS
def test_other_packings_are_bytes(kind, write):
    packed = bz2.compress(b"a")
    assert list(kind.from_files(write("a.txt.bz2", packed))) == [packed]


# Parquet


@pytest.fixture
def parquet(tmp_path):
    """Writes a Parquet file of some columns."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def write(name, columns, types=None, **options):
        arrays = {
            column: pa.array(values, (types or {}).get(column))
            for column, values in columns.items()
        }
        pq.write_table(pa.table(arrays), tmp_path / name, **options)
        return tmp_path / name

    return write


@KINDS
def test_parquet(kind, parquet):
    texts = ["Grüße 🐈", "", *map(str, range(1000))]
    path = parquet("a.parquet", {"text": texts, "n": range(1002)}, row_group_size=300)
    corpus = kind.from_files(path)
    assert list(corpus) == texts
    assert len(corpus) == 1002
    assert corpus.fingerprint() == Corpus(texts).fingerprint()
    assert corpus.name(700) == f"{path}: row 700"


@KINDS
@pytest.mark.parametrize("kind_of_text", ["string", "large_string", "binary", "large_binary"])
def test_parquet_of_other_types(kind, kind_of_text, parquet):
    pa = pytest.importorskip("pyarrow")
    texts = ["a", "é"] if "string" in kind_of_text else [b"a", b"\xff"]
    types = {"body": getattr(pa, kind_of_text)()}
    path = parquet("a.parquet", {"body": texts}, types)
    assert list(kind.from_files(path, field="body")) == texts
    types = {"body": pa.dictionary(pa.int32(), types["body"])}
    assert (
        list(kind.from_files(parquet("b.parquet", {"body": texts}, types), field="body")) == texts
    )


@KINDS
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"body": ["a"]}, r"there is no column 'text' among \['body'\]"),
        ({"text": [1]}, "column 'text' must hold texts or bytes, not int64"),
        ({"text": [["a"]]}, "column 'text' must hold texts or bytes, not list<"),
        ({"text": ["a"] * 300 + [None]}, "row 300 of column 'text' is null"),
    ],
)
def test_what_is_no_column_of_texts(kind, column, message, parquet):
    path = parquet("bad.parquet", column)
    with pytest.raises(ValueError, match=message) as caught:
        list(kind.from_files(path))
    assert str(caught.value).startswith(f"{path}: ")


@KINDS
def test_two_columns_of_one_name(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "bad.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 2, names=["text"] * 2), path)
    with pytest.raises(ValueError, match=r"bad\.parquet: there are 2 columns 'text' among"):
        list(kind.from_files(path))


@KINDS
def test_a_damaged_parquet_file(kind, parquet):
    path = parquet("bad.parquet", {"text": list(map(str, range(5000)))})
    data = bytearray(path.read_bytes())
    path.write_bytes(data[:-5])
    with pytest.raises(ValueError, match=r"bad\.parquet: .*Parquet"):
        list(kind.from_files(path))
    data[20:200] = bytes(180)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"bad\.parquet: "):
        list(kind.from_files(path))


@KINDS
def test_a_bomb_of_empty_documents(kind, write):
    """`max_bytes` does not count them, but `max_documents` does."""
    path = write("a.txt.gz", gzip.compress(b"\n" * 10**7))
    options = {"documents": "line", "max_documents": 10}

    def refuse():
        with pytest.raises(ValueError, match=r"a\.txt\.gz: document 10: .* max_documents=10 "):
            list(kind.from_files(path, **options))

    assert calls(refuse) < 10**4


@KINDS
def test_a_table_without_rows(kind, parquet, write):
    path = parquet("a.parquet", {"text": []}, {"text": "string"})
    with pytest.raises(ValueError, match=r"a\.parquet: there is no document, and a corpus needs"):
        list(kind.from_files(path))
    with pytest.raises(ValueError, match=r"b\.jsonl and 1 others: there is no document"):
        list(kind.from_files([write("b.jsonl", b""), path]))


def test_parquet_needs_its_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'pip install "tokbpe\[arrow\]"'):
        Corpus.from_files(write("a.parquet"))


# All together


def test_a_mixed_folder_split_keeps_the_names(write, tmp_path):
    write("a.txt", b"first")
    write("b.jsonl", lines_of("second", "third"))
    write("c.txt.gz", gzip.compress(b"fourth"))
    for kind in (Corpus, StreamedCorpus):
        corpus = kind.from_files(tmp_path)
        assert list(corpus) == [b"first", "second", "third", b"fourth"]
        training, validation = corpus.split(validation=0.25, seed=3)
        (document,) = validation
        place = list(corpus).index(document)
        assert validation.name(0) == corpus.name(place)
        assert list(training) == [text for text in corpus if text != document]
