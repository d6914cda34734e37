"""The page as it is written: one file, safe for any text, and only of what it can do exactly.

What it does in a browser is the matter of `test_browser.py`.
"""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from tokbpe import Tokenizer, cli, engines, methods, page, patterns, unicode
from tokbpe.formats import detect
from tokbpe.methods import Options
from tokbpe.page import embedding
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

TEMPLATES = (page.TEMPLATE, page.STYLE, *page.SCRIPTS)
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]> --> &lt; &amp; '\" \\ \u2028\u2029\x00\x7f",
    "{{data}} {{script}}",
    "<img src=x onerror=alert(1)>",
    "\ud800 lone",
]
BYTES = tuple(bytes([byte]) for byte in range(256))


class Read(HTMLParser):
    """The elements of a page with their attributes and, of some, their text."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.texts = []
        self.open = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        self.open = True

    def handle_data(self, data):
        if self.open:
            self.texts[-1] += data

    def handle_endtag(self, tag):
        self.open = False

    def of(self, tag):
        return [
            (attributes, text)
            for (name, attributes), text in zip(self.elements, self.texts)
            if name == tag
        ]

    @property
    def data(self):
        ((_, text),) = [found for found in self.of("script") if "type" in found[0]]
        return json.loads(text)


def trained(text="low lower newest widest " * 4, **options):
    return methods.train("bpe", text, Options(**options))


# One file


def test_it_is_small_and_needs_nothing_else():
    source = page.written()
    assert len(source.encode()) < 200_000
    read = Read(source)
    for tag, attributes in read.elements:
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
        # What the policy forbids would not work.
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttp|import\(", source)


def test_the_policy_allows_its_style_and_its_script_alone():
    read = Read(page.written())
    ((_, style),) = read.of("style")
    ((_, script),) = [found for found in read.of("script") if "type" not in found[0]]
    ((attributes, _),) = [found for found in read.of("meta") if "http-equiv" in found[0]]
    assert attributes["http-equiv"] == "Content-Security-Policy"
    assert attributes["content"].split("; ") == [
        "default-src 'none'",
        f"script-src '{page.digest(script)}'",
        f"style-src '{page.digest(style)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_nothing_that_would_end_it_or_run_text(name):
    source = page.template(name)
    if name != page.TEMPLATE:
        assert not re.search(r"</(script|style)|<!--", source, re.IGNORECASE)
        assert "{{" not in source
    assert not re.search(r"\beval\b|innerHTML|outerHTML|insertAdjacent|document\.write", source)
    assert not re.search(r"new Function|setTimeout\(['\"]", source)


def test_each_id_is_there_once_and_what_refers_to_it_finds_it():
    read = Read(page.written())
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len({*ids}) == len(ids)
    referring = ("for", "aria-labelledby", "aria-describedby", "aria-controls")
    named = {
        attributes[name]
        for _, attributes in read.elements
        for name in referring & attributes.keys()
    }
    wanted = {
        id for name in page.SCRIPTS for id in re.findall(r'byId\("([\w-]+)"\)', page.template(name))
    }
    assert wanted > {"training-text", "step"}
    assert named | wanted <= {*ids}


# Text of others


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text):
    vocabularies = {text: trained(vocabulary_size=260)}
    plain = Read(page.written({"a": trained(vocabulary_size=260)}, "b", "c"))
    read = Read(page.written(vocabularies, text, text))
    assert [tag for tag, _ in read.elements] == [tag for tag, _ in plain.elements]
    shown = page.valid(text)
    assert read.data["text"] == read.data["text_name"] == shown
    assert read.data["tokenizers"][0]["name"] == shown
    ((_, title),) = read.of("title")
    assert title == f"{page.TITLE}: {shown}"
    # Nor does a vocabulary get out, whatever its tokens are.
    added = replace(vocabularies[text], added_tokens={page.valid(text): 300})
    assert Read(page.written({"a": added})).data["tokenizers"][0]["added"] == {shown: 300}


def test_json_in_a_script_has_no_character_that_matters_there():
    source = page.script_json("".join(map(chr, [*range(0x3000), 0x1F408])))
    assert not set("<>&\u2028\u2029\n\r") & {*source}
    assert json.loads(source) == "".join(map(chr, [*range(0x3000), 0x1F408]))


def test_only_the_beginning_of_a_long_text_is_kept():
    long = "ä🐈" * page.LONGEST_TEXT
    data = Read(page.written({}, long, "book.txt")).data
    assert data["text"] == long[: page.LONGEST_TEXT]
    assert data["text_name"] == "book.txt, the first 10,000 characters"
    data = Read(page.written({}, long[: page.LONGEST_TEXT], "book.txt")).data
    assert data["text_name"] == "book.txt"


# Patterns


def test_patterns_are_those_of_the_package_under_one_name_each():
    embedded = embedding.embedded_patterns()
    named = {pattern.name for pattern in patterns.NAMED.values()}
    assert embedded["patterns"].keys() == named | {"words"}
    assert [name for name, found in embedded["patterns"].items() if not found["keep_gaps"]] == [
        "words"
    ]


@pytest.mark.parametrize("name", ["L", "N", "White_Space", "Lt"])
def test_classes_are_those_of_the_package(name):
    text = embedding.embedded_patterns()["classes"][name]
    pairs = [(part.split("-")[0], part.split("-")[-1]) for part in text.split()]
    assert tuple((int(first, 16), int(last, 16)) for first, last in pairs) == unicode.ranges(name)


@pytest.mark.parametrize(
    ("source", "written"),
    [
        (r"(?i:'s|'t)?|\p{L}+", "(?:'[Ss\u017f]|'[Tt])?|\\p{L}+"),
        (r"'(?i:[sk]|ll)", "'(?:[Ss\u017fKk\u212a]|[Ll][Ll])"),
        (r"\s+\Z|\s", r"\s+$|\s"),
    ],
)
def test_a_pattern_is_written_for_browsers(source, written):
    assert embedding.for_browser(source) == written


# Vocabularies


def test_a_vocabulary_is_embedded():
    vocabulary = trained("abab abab", vocabulary_size=259, special_tokens=("<e>",))
    embedded = embedding.embedded_vocabulary("x", vocabulary)
    pieces = embedded.pop("pieces").split(" ")
    assert [patterns.from_printable(piece) for piece in pieces] == [*BYTES, b""]
    assert embedded == {
        "name": "x",
        "unit": "byte",
        "pattern": None,
        "size": 259,
        "unknown": None,
        "merge_rule": "merge_list",
        "whole_piece_lookup": False,
        "added": {},
        "first": 257,
        "merges": [97, 98, 257, 257],
        "merge_ids": None,
    }


def bpe(**changes):
    return replace(Vocabulary("bpe", BYTES), **changes)


@pytest.mark.parametrize(
    ("vocabulary", "reason"),
    [
        (bpe(normalizer="NFC"), r"it normalizes text \(NFC\)"),
        (bpe(prefix_space=True), "it puts a space in front"),
        (bpe(method="mine"), "the method 'mine' encodes in a way of its own"),
        (bpe(pattern=Pattern(None, ("a+|b",))), r"its pattern \('a\+\|b',\) is none of .* 'gpt2'"),
        (
            bpe(pattern=Pattern(None, patterns.NAMED["gpt2"].sources, keep_gaps=False)),
            "its pattern .* is none of",
        ),
        (bpe(special_tokens={"<e>": 2**24}), "it has 16777217 ids, more than 16777216"),
        (
            bpe(added_tokens={"<t>": 300}, token_flags={"<t>": ("lstrip",)}),
            "its added token '<t>' has the flag 'lstrip'",
        ),
        (
            bpe(added_tokens={"<t>": 300, "<u>": 301}, token_flags={"<t>": ("normalized",)}),
            "only some of its added tokens have the flag 'normalized'",
        ),
        (
            bpe(
                merges=np.array([[257, 99], [97, 98]], np.uint32),
                merge_ids=np.array([256, 257], np.uint32),
            ),
            "its merge 0 joins the id 257, which a later merge makes",
        ),
    ],
)
def test_what_the_page_cannot_do_is_refused(vocabulary, reason):
    with pytest.raises(ValueError, match=f"^my file: the page cannot encode .*: {reason}"):
        page.written({"my file": vocabulary})


def test_there_are_three_at_most():
    vocabularies = {str(number): bpe() for number in range(4)}
    with pytest.raises(ValueError, match="number of vocabularies .* 3"):
        page.written(vocabularies)


@pytest.mark.parametrize(
    "name",
    ["cl100k_base.tiktoken", "o200k_base.tiktoken", "r50k_base.tiktoken", "gpt2"],
)
def test_real_vocabularies_can_be_embedded(data, name):
    vocabulary = detect.load(detect.find(str(data / "vocab" / name)), engine=engines.get())
    (embedded,) = Read(page.written({name: vocabulary})).data["tokenizers"]
    symbols = [patterns.from_printable(piece) or None for piece in embedded["pieces"].split(" ")]
    assert symbols == [*vocabulary.symbols()]


# Readable


def luminance(color):
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    """As WCAG 2 defines it."""
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_computed_as_wcag_does():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_is_readable(scheme):
    blocks = re.findall(r":root \{(.*?)\}", page.template(page.STYLE), re.DOTALL)
    assert len(blocks) == 2
    colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", blocks[scheme]))
    tokens = [f"token-{number}" for number in range(8)]
    assert {*tokens} < colors.keys()
    pairs = [("token-ink", ground) for ground in [*tokens, "plain"]]
    pairs += [(ink, ground) for ink in ("ink", "quiet") for ground in ("ground", "raised")]
    pairs += [("ink", "winner"), ("mark", "winner"), ("on-accent", "accent")]
    for ink, ground in pairs:
        assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
    # What is drawn and not read.
    for ink, ground in [
        ("accent", "ground"),
        ("mark", "ground"),
        ("accent", "raised"),
        ("edge", "ground"),
        ("edge", "raised"),
    ]:
        assert contrast(colors[ink], colors[ground]) >= 3, (ink, ground)


def test_a_color_for_each_number():
    style = page.template(page.STYLE)
    (count,) = re.findall(r"const COLORS = (\d+);", page.template("drawing.js"))
    assert re.findall(r"\.color-(\d+) \{ background: var\(--token-\1\); \}", style) == [
        str(number) for number in range(int(count))
    ]


# The command


pytestmark = pytest.mark.filterwarnings("ignore:the corpus gave")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text("A cat sat on the mat. " * 50, encoding="utf-8")
    for name, size in (("a.tokbpe", 258), ("b.tokbpe", 259)):
        vocabulary = trained("abab aba" * size, vocabulary_size=size)
        Tokenizer.from_vocabulary(vocabulary).save(tmp_path / name)
    return tmp_path


def test_a_page_is_written(folder, capsys):
    assert cli.main(["page", "out.html"]) == 0
    assert (folder / "out.html").read_text(encoding="utf-8") == page.written()
    assert capsys.readouterr() == ("", "")


def test_a_page_of_tokenizers(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "a.tokbpe").write_bytes((folder / "b.tokbpe").read_bytes())
    command = ["page", "out.html", "--tokenizer", "a.tokbpe", "--tokenizer", "b.tokbpe"]
    assert cli.main(command) == 0
    data = Read((folder / "out.html").read_text(encoding="utf-8")).data
    assert [found["name"] for found in data["tokenizers"]] == ["a.tokbpe", "b.tokbpe"]
    # Files of one name are told apart.
    paths = ["a.tokbpe", "sub/a.tokbpe"]
    assert cli.main(["page", "two.html", *(f"--tokenizer={path}" for path in paths)]) == 0
    data = Read((folder / "two.html").read_text(encoding="utf-8")).data
    assert [found["name"] for found in data["tokenizers"]] == paths


def test_a_page_of_a_corpus(folder):
    assert cli.main(["page", "out.html", "--corpus", "book.txt"]) == 0
    data = Read((folder / "out.html").read_text(encoding="utf-8")).data
    text = (folder / "book.txt").read_text(encoding="utf-8")
    assert (data["text"], data["text_name"]) == (text, "book.txt")
    (embedded,) = data["tokenizers"]
    merges = trained(text, vocabulary_size=259, pattern="gpt2").merges.reshape(-1).tolist()
    assert embedded["merges"][: len(merges)] == merges


def test_what_exists_is_not_replaced(folder, capsys):
    (folder / "out.html").write_text("mine")
    assert cli.main(["page", "out.html"]) == 1
    assert "out.html: this path exists, and no file is ever replaced" in capsys.readouterr().err
    assert (folder / "out.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-"], "OUT must be a file"),
        (["out.html"] + ["--tokenizer", "a.tokbpe"] * 2, "3 files at most, each once"),
        (
            ["out.html", *(f"--tokenizer={name}.tokbpe" for name in "abcd")],
            "3 files at most, each once",
        ),
        (["out.html", "--corpus", "book.txt", "--tokenizer", "a.tokbpe"], "not allowed with"),
        (["out.html", "--tokenizer", "ranks.tiktoken"], "convert it with --to tokbpe"),
    ],
)
def test_wrong_use(folder, capsys, options, told):
    (folder / "ranks.tiktoken").write_bytes(b"YQ== 0\nYg== 1\n")
    with pytest.raises(SystemExit) as caught:
        cli.main(["page", *options])
    assert caught.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (folder / "out.html").exists()


@pytest.mark.parametrize("option", ["--corpus", "--tokenizer"])
def test_a_file_that_is_missing_is_a_failure(folder, capsys, option):
    assert cli.main(["page", "out.html", option, "absent"]) == 1
    assert "absent: No such file" in capsys.readouterr().err
    assert not (folder / "out.html").exists()


def test_a_corpus_that_is_empty_is_a_failure(folder, capsys):
    (folder / "empty.txt").touch()
    assert cli.main(["page", "out.html", "--corpus", "empty.txt"]) == 1
    assert "empty.txt: the corpus holds no bytes" in capsys.readouterr().err
