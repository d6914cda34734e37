"""The demonstration: its text, its work on a small plan, and that it does not claim too much."""

import sys
import sysconfig
import tempfile
import unicodedata

import pytest

from tokbpe import Tokenizer, demo, engines

SMALL = demo.Plan(
    library_bytes=100_000,
    multilingual_copies=3,
    compared_files=4,
    compared_merges=20,
    vocabulary_size=500,
    merges_shown=2,
    fast_repeats=2,
)
TEXT = [b"low lower lowest", b"new newer newest, widest"]


@pytest.fixture
def library(tmp_path, monkeypatch):
    """An empty folder in the place of the standard library."""
    monkeypatch.setattr(sysconfig, "get_path", {"stdlib": str(tmp_path)}.__getitem__)
    return tmp_path


# The text


def test_sources_come_in_the_order_of_their_paths_without_what_is_skipped(library):
    names = ["b.py", "a.py", "c.txt", "e/z.py", "e/deep/y.py"]
    names += [f"{folder}/x.py" for folder in "ihgfd"]
    skipped = ["test/t.py", "d/tests/t.py", "site-packages/s.py", "dist-packages/d/p.py"]
    for name in names + skipped:
        path = library / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    expected = "a.py b.py d/x.py e/z.py e/deep/y.py f/x.py g/x.py h/x.py i/x.py"
    assert b" ".join(demo.library_sources(10**6)).decode() == expected


def test_sources_are_bounded_and_end_with_a_whole_file(library):
    for name in "abc":
        (library / f"{name}.py").write_bytes(name.encode() * 10)
    assert demo.library_sources(30) == [b"a" * 10, b"b" * 10, b"c" * 10]
    assert demo.library_sources(29) == [b"a" * 10, b"b" * 10]


def test_a_file_that_cannot_be_read_is_left_out(library, monkeypatch):
    (library / "b.py").write_bytes(b"\xff is no UTF-8")
    paths = [library / "absent.py", library / "b.py"]
    monkeypatch.setattr(demo, "source_paths", lambda folder: iter(paths))
    assert demo.library_sources(100) == [b"\xff is no UTF-8"]


def test_a_python_without_sources_is_an_error_that_names_the_folder(library):
    (library / "compiled.pyc").write_bytes(b"")
    with pytest.raises(FileNotFoundError) as caught:
        demo.library_sources(100)
    assert str(library) in str(caught.value)


def test_this_python_has_sources_and_always_the_same():
    sources = demo.library_sources(2_000_000)
    assert 1_000_000 < sum(map(len, sources)) <= 2_000_000
    assert demo.library_sources(2_000_000) == sources


def test_the_multilingual_text_has_all_its_scripts():
    text = demo.multilingual_text().decode()
    scripts = {unicodedata.name(char, "").split()[0] for char in text if not char.isspace()}
    assert {"LATIN", "DEVANAGARI", "CJK", "HIRAGANA", "KATAKANA", "ARABIC"} <= scripts
    assert "ä" in text and "\u200d" in text and "def " in text
    assert 3_000 < len(text.encode()) < 6_000


def test_the_sentences_are_not_in_the_multilingual_text():
    text = demo.multilingual_text().decode()
    assert [name for name, sentence in demo.SENTENCES.items() if sentence in text] == []


# The work


@pytest.fixture
def fast():
    """The module of the fast engine."""
    return engines.get("fast")


def test_a_run_measures_the_median(monkeypatch):
    clock = iter([0, 1, 10, 17, 20, 22])
    monkeypatch.setattr(demo.time, "perf_counter", lambda: next(clock))
    results = iter("abc")
    assert demo.timed(lambda: next(results), 3) == (2, "c")


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_run_trains_and_encodes(engine):
    run = demo.run(engine, TEXT, 260, repeats=2)
    assert len(run.tokenizer.merges) == 4
    assert [run.tokenizer.decode_bytes(ids) for ids in run.ids] == TEXT
    assert run.training_seconds > 0 and run.encoding_seconds > 0


def test_runs_that_agree():
    demo.check_agreement(demo.run("reference", TEXT, 260), demo.run("fast", TEXT, 260))


@pytest.mark.parametrize(
    ("sizes", "absent"),
    [((260, 259), "the fast engine None"), ((259, 260), "the reference has None")],
)
def test_a_missing_merge_is_found(sizes, absent):
    reference, fast = demo.run("reference", TEXT, sizes[0]), demo.run("fast", TEXT, sizes[1])
    with pytest.raises(demo.DemoError, match=f"differ in merge 3 .*{absent}"):
        demo.check_agreement(reference, fast)


def test_a_wrong_count_is_found(fast, monkeypatch):
    train = fast.train

    def miscounting(*arguments, **options):
        merges, counts = train(*arguments, **options)
        counts[2] += 1
        return merges, counts

    monkeypatch.setattr(fast, "train", miscounting)
    with pytest.raises(demo.DemoError, match="the engines differ in merge 2 "):
        list(demo.lines(SMALL))


def test_wrong_ids_are_found(fast, monkeypatch):
    encode = fast.encode
    monkeypatch.setattr(fast, "encode", lambda *arguments: encode(*arguments)[1:])
    with pytest.raises(demo.DemoError, match="the engines encode document 0 differently"):
        list(demo.lines(SMALL))


def test_a_text_that_does_not_come_back_is_found(fast, monkeypatch):
    decode = fast.decode
    monkeypatch.setattr(fast, "decode", lambda ids, table: decode(ids, table) + b"!")
    with pytest.raises(demo.DemoError, match="does not come back"):
        list(demo.lines(SMALL))


def test_a_tokenizer_that_does_not_come_back_is_found(monkeypatch):
    tokenizer = demo.run("fast", TEXT, 260).tokenizer
    other = demo.run("fast", TEXT, 259).tokenizer
    for name in "load", "from_json":
        with monkeypatch.context() as patched:
            patched.setattr(Tokenizer, name, lambda path, pattern=None: other)
            with pytest.raises(demo.DemoError, match="is not equal"):
                list(demo.export_lines(tokenizer))


def test_an_import_that_encodes_otherwise_is_found(fast, monkeypatch):
    tokenizer = demo.run("reference", TEXT, 260).tokenizer
    encode = fast.encode
    monkeypatch.setattr(fast, "encode", lambda *arguments: encode(*arguments)[1:])
    imported = Tokenizer.from_state(tokenizer.state(), "fast")
    with pytest.raises(demo.DemoError, match="encodes 'Letters grow .* otherwise"):
        demo.check_same(tokenizer, imported, "a file")


def test_the_exported_files_do_not_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tokenizer = demo.run("fast", TEXT, 260).tokenizer
    assert [line.split()[0] for line in demo.export_lines(tokenizer)] == [
        "demo.tokbpe",
        "demo.json",
    ]
    assert list(tmp_path.iterdir()) == []


# What is shown


@pytest.fixture(scope="module")
def shown() -> list[str]:
    return list(demo.lines(SMALL))


def test_the_demo_tells_what_it_learned_from(shown):
    library = demo.library_sources(SMALL.library_bytes)
    size = f"{sum(map(len, library)) / 1e6:.3f} MB"
    version = ".".join(map(str, sys.version_info[:3]))
    assert any(
        size in line and f"{len(library)} source files" in line and version in line
        for line in shown
    )
    assert any(line.endswith("emoji, code; taken 3 times") for line in shown)


def test_the_demo_compares_the_engines(shown):
    assert "  The merges agree, and so do their counts and the ids of the encoded text." in shown
    for work in "training", "encoding":
        (row,) = (line.split() for line in shown if line.split()[:1] == [work] and "x" in line)
        reference, fast, ratio = (float(word.replace(",", "")) for word in row[1:4])
        assert fast > 0
        assert ratio == pytest.approx(fast / reference, rel=0.2, abs=0.6)


def test_the_demo_shows_the_first_merges_with_their_counts(shown):
    text = [demo.multilingual_text()] * 3 + demo.library_sources(SMALL.library_bytes)
    tokenizer = Tokenizer(
        text, method="bpe", pattern=demo.PATTERN, vocabulary_size=258, engine="reference"
    )
    start = shown.index("ITS FIRST MERGES") + 2
    for line, id, count in zip(shown[start:], (256, 257), tokenizer.merge_counts.tolist()):
        left, right = tokenizer.merges[id - 256].tolist()
        words = line.split(maxsplit=2)
        assert words[:2] == [str(id), f"{count:,}"]
        pieces = [f"'{demo.printable(tokenizer.vocabulary[i])}'" for i in (left, right, id)]
        assert "".join(words[2].split()) == "".join("{}+{}{}".format(*pieces).split())
    assert shown[start + 2] == ""


def test_the_demo_shows_tokens_that_join_to_the_sentences(shown):
    rows = {name: line for line in shown for name in demo.SENTENCES if f"  {name} " in line[:12]}
    assert rows.keys() == demo.SENTENCES.keys()
    for name in "English", "code":
        row = rows[name].partition("|")[2]
        assert row.replace("|", "") == demo.SENTENCES[name]
        assert f", {row.count('|')} tokens " in rows[name]
    assert "  The decoded text equals the input." in shown


def test_the_demo_exports_and_imports(shown):
    start = shown.index("EXPORTED, IMPORTED AND COMPARED") + 1
    artifact, json = shown[start:]
    for line, name in (artifact, "demo.tokbpe"), (json, "demo.json"):
        assert line.startswith(f"  {name} ")
        assert line.endswith(" bytes   an equal tokenizer, the same ids")
        assert int(line.split()[1].replace(",", "")) > 500


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        (b" a", " a"),
        (b"|\n\t\0", r"|\n\t\x00"),
        ("é字🙂".encode(), "é字🙂"),
        (b" \xe5\xad", " <e5><ad>"),
        (b"\x97a\xff", "<97>a<ff>"),
        ("\u200d💻".encode(), "\\u200d💻"),
        ("ाइ".encode(), "\u25ccाइ"),
        ("बा".encode(), "बा"),
    ],
)
def test_pieces_are_readable(piece, text):
    assert demo.printable(piece) == text
