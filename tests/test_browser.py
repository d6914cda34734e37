"""The page in headless Chromium: its own byte-pair encoding against the package's, and what a
reader does with it.

Needs Chromium with its driver and selenium (the extra `browser`).
"""

import json
import random
import shutil
import time

import numpy as np
import pytest

from test_page import trained
from tokbpe import Tokenizer, cli, engines, methods, page, patterns, reference, unicode
from tokbpe.formats import detect
from tokbpe.methods import Options
from tokbpe.page import embedding
from tokbpe.patterns import WORDS
from tokbpe.symbols import symbols
from tokbpe.vocabulary import Vocabulary

pytest.importorskip("selenium", reason='selenium is missing: pip install "tokbpe[browser]"')
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip("chromium or chromedriver is missing", allow_module_level=True)

from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

LOW = (
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest"
)
PHONE = {"width": 375, "height": 812, "deviceScaleFactor": 2, "mobile": True}
DESKTOP = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
NAMES = sorted(embedding.PATTERNS)


# The browser


class Reader:
    """A browser with a page, and what can be done with it."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESKTOP)
        self.scheme("light")
        self.driver.get(path.as_uri())

    def __getitem__(self, id):
        return self.driver.find_element(By.ID, id)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def click(self, *ids):
        for id in ids:
            self[id].click()

    def choose(self, id, value):
        Select(self[id]).select_by_value(value)

    def type(self, id, text):
        self[id].send_keys(Keys.CONTROL, "a")
        self[id].send_keys(Keys.DELETE, text)

    def paste(self, id, text):
        script = """
            const box = document.getElementById(arguments[0]);
            box.value = arguments[1];
            box.dispatchEvent(new Event("input"));
        """
        self.run(script, id, text)

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def text(self, id):
        return " ".join(self[id].get_property("textContent").split())

    def rows(self, table):
        """The text of the cells of a table, row by row, with small numbers left out."""
        script = """
            const text = (cell) => {
                const copy = cell.cloneNode(true);
                for (const id of copy.querySelectorAll(".id")) id.remove();
                return copy.textContent.trim();
            };
            const rows = document.getElementById(arguments[0]).tBodies[0].rows;
            return Array.from(rows, (row) => Array.from(row.cells, text));
        """
        return self.run(script, table)

    def pieces(self, place="text-tokens"):
        """The tokens in a place, as they are shown."""
        script = """
            const found = document.querySelectorAll(`#${arguments[0]} .token .piece`);
            return Array.from(found, (node) => node.textContent);
        """
        return self.run(script, place)

    def active(self):
        return self.run("return document.activeElement.id")

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def size(self, size):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that were asked for since the last look."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="module")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "plain.html"
    assert cli.main(["page", str(path)]) == 0
    return path


@pytest.fixture
def reader(driver, plain):
    """A new page; when the test is over, nothing was complained of or asked of a network."""
    reader = Reader(driver)
    reader.complaints(), reader.requests()
    reader.open(plain)
    yield reader
    assert reader.complaints() == []
    addresses = reader.requests()
    assert addresses and all(url.startswith(("file:", "data:")) for url in addresses)


# Its own byte-pair encoding


ALPHABETS = [
    "ab",
    "abc ",
    "aé ",
    "ab\u0301 1",
    "x日本🐈 ",
    "'sSſtT lL\n",
    "aA1 .,\r\n\t\u00a0\u3000",
]
ANY = "aZ09 ''.,\n\t_ßÄéİıſK\u0301日本語한ไทยहिन्दी🐈👩\u200d💻Ⅷ½٣\u2028\ufeff\x00</w>"


def random_text(random, most=60):
    alphabet = random.choice([*ALPHABETS, ANY])
    if random.random() < 0.5:
        words = ["".join(random.choices(alphabet, k=random.randint(1, 4))) for _ in range(4)]
        return random.choice(["", " "]).join(random.choices(words, k=random.randint(0, 15)))
    return "".join(random.choices(alphabet, k=random.randint(0, most)))


def training_case(random):
    unit = random.choice(["byte", "character", "word"])
    pattern = "words" if unit == "word" else random.choice([None, *NAMES[:-1]])
    return {
        "text": random_text(random),
        "other": random_text(random),
        "unit": unit,
        "pattern": pattern,
        "rule": random.choice(["first", "smallest", "greatest"]),
        "minimum": random.choice([1, 1, 2, 3]),
        "most": random.choice([0, 5, 30]),
    }


# Two tokens of the same string, one at the end of a word, in a tie.
SPELLED_ALIKE = {
    "text": "a</w>b " * 9 + "xa " * 3 + "xa</w>c " * 3,
    "other": "",
    "unit": "word",
    "pattern": "words",
    "rule": "greatest",
    "minimum": 1,
    "most": 30,
}

TRAIN = """
return arguments[0].map((options) => {
    const prepared = prepareTraining(options.text, options);
    const learned = train(prepared, options);
    const tokenizer = tokenizerOfTraining("x", prepared, learned);
    const idsOf = (text) => {
        try { return encode(text, tokenizer).flatMap(({ ids }) => ids); }
        catch (error) { return error.message; }
    };
    const rowsAfter = learned.merges.reduce(
        (rows, merge) => rows.map((row) => mergePair(row, merge, merge.id)), prepared.rows);
    return {
        pieces: prepared.pieces,
        weights: prepared.weights,
        rows: prepared.rows,
        merges: learned.merges.map(({ left, right }) => [left, right]),
        counts: learned.merges.map(({ count }) => count),
        after: rowsAfter,
        ids: [options.text, options.other].map(idsOf),
    };
});
"""


def alphabet_of(pieces, unit):
    if unit == "byte":
        return [bytes([byte]) for byte in range(256)]
    chars = sorted({char for piece in pieces for char in symbols(piece, "character")})
    forms = [(char, char + b" ") if unit == "word" else (char,) for char in chars]
    return [None, *(form for both in forms for form in both)]


def written_marker(symbol):
    """The string of a word's symbol as it is compared."""
    return symbol and symbol.removesuffix(b" ") + b"</w>" * symbol.endswith(b" ")


def expected_training(case):
    """What the reference makes of a case, and a tokenizer of the package with its merges."""
    unit = case["unit"]
    pattern = case["pattern"] and embedding.PATTERNS[case["pattern"]]
    counts = reference.count_pieces(case["text"], pattern)
    alphabet = alphabet_of(counts, unit)
    ids = {symbol: id for id, symbol in enumerate(alphabet)}
    rows = [[ids[symbol] for symbol in symbols(piece, unit)] for piece in counts]
    weights = [*counts.values()]
    strings = [*map(written_marker, alphabet)] if unit == "word" else alphabet
    merges, merge_counts = reference.train(
        rows, weights, strings, case["most"], case["minimum"], case["rule"]
    )
    tokenizer = Tokenizer.from_vocabulary(
        Vocabulary(
            "bpe" if unit == "byte" else "word",
            tuple(alphabet),
            merges=np.array(merges, np.uint32).reshape(-1, 2),
            unit=unit,
            unknown=None if unit == "byte" else 0,
            pattern=pattern,
        )
    )
    after = rows
    for number, pair in enumerate(merges):
        after = [reference.merge_pair(row, pair, len(alphabet) + number) for row in after]
    found = {
        "pieces": [piece.decode() for piece in counts],
        "weights": weights,
        "rows": rows,
        "merges": [[*pair] for pair in merges],
        "counts": merge_counts,
        "after": after,
        "ids": [tokenizer.encode(case["text"]), tokenizer.encode(case["other"])],
    }
    return found, tokenizer


def test_its_training_is_that_of_the_reference(reader):
    chosen = random.Random(8)
    cases = [SPELLED_ALIKE, *(training_case(chosen) for _ in range(1500))]
    kinds = {(case["unit"], case["rule"]) for case in cases}
    assert len(kinds) == 9
    merged = 0
    for case, found in zip(cases, reader.run(TRAIN, cases), strict=True):
        expected, _ = expected_training(case)
        assert found == expected, case
        merged += len(found["merges"])
    assert merged > 4000


@pytest.mark.parametrize(
    ("method", "unit", "pattern", "minimum"),
    [("bpe", "byte", "cl100k", 2), ("bpe", "byte", "o200k", 2), ("word", "word", "words", 1)],
)
@pytest.mark.parametrize("rule", ["first", "smallest", "greatest"])
def test_its_training_is_that_of_a_tokenizer(reader, method, unit, pattern, minimum, rule):
    text = (
        LOW
        + "\nGrüße, Bücher, Füße; 東京と東京、привет привет 🐈🐈. It's 12345 O'Neill's</w>\n" * 3
    )
    case = {"text": text, "other": f"lowest {ANY}", "unit": unit, "pattern": pattern}
    case |= {"rule": rule, "minimum": minimum, "most": 40}
    (found,) = reader.run(TRAIN, [case])
    options = {"tie_break": rule} | ({} if method == "word" else {"pattern": pattern})
    size = 256 if method == "bpe" else len(alphabet_of(reference.count_pieces(text, WORDS), unit))
    tokenizer = Tokenizer(text, method=method, vocabulary_size=size + 40, **options)
    assert found["merges"] == tokenizer.merges.tolist()
    assert found["counts"] == tokenizer.merge_counts.tolist()
    assert found["ids"] == [tokenizer.encode(text), tokenizer.encode(case["other"])]


@pytest.mark.parametrize("name", NAMES)
def test_its_patterns_cut_as_those_of_the_package(reader, name):
    """At the edges of all classes, between letters, digits, signs and spaces."""
    edges = {
        code + step
        for kind in (*unicode.GROUPS, "Lu", "Ll", "Lt", "Lm", "Lo", "White_Space")
        for pair in unicode.ranges(kind)
        for code in pair
        for step in (-1, 0, 1)
    }
    chosen = random.Random(8)
    chars = [chr(code) for code in sorted(edges) if 0 <= code <= 0x10FFFF]
    chars = [char for char in chars if not "\ud800" <= char <= "\udfff"]
    assert len(chars) > 5000
    around = ["", "", " ", "a", "A", "1", ".", "'s", "\n", "  \r\n"]
    text = "".join(chosen.choice(around) + char for char in chars)
    found = reader.run("return split(arguments[0], patternOf(arguments[1]))", text, name)
    expected = reference.split(text, embedding.PATTERNS[name])
    assert [piece.encode() for piece in found] == expected


ENCODE = """
const tokenizer = tokenizerOfEmbedded(arguments[0]);
return arguments[1].map((text) => {
    try {
        const pieces = encode(text, tokenizer);
        const bytes = pieces.flatMap(({ ids }) => ids).map((id) => tokenizer.strings[id]).join("");
        return [pieces.flatMap(({ ids }) => ids), Array.from(bytes, (byte) => byte.charCodeAt(0))];
    } catch (error) {
        return error.message;
    }
});
"""


def ranked(**changes):
    """A vocabulary of the kind that tiktoken's files hold, where ranks are not merges learned."""
    pieces = [b"ab", b"bc", b"abc", b"bcd", b"aa", b"aab", b" a", b"\xc3\xa9", b" ab\xc3\xa9"]
    return Vocabulary(
        "bpe",
        (*(bytes([byte]) for byte in range(256)), *pieces),
        merge_rule="rank_by_piece",
        **changes,
    )


KINDS = (
    *("byte", "char", "word", "base", "first", "end", "gpt2 order", "word specials"),
    *("ranks", "lookup", "added", "flags", "ids of their own", "pieces made twice"),
)


def vocabularies():
    text = f"{LOW} {ANY} abab abé abcd aab " * 3
    special = {"special_tokens": ("<|a|>",), "reserved": ("EOS",)}
    yield "byte", methods.train("byte", text, Options())
    yield "char", methods.train("char", text, Options())
    yield "word", methods.train("word", text, Options(vocabulary_size=150))
    for place in ("base", "first", "end"):
        options = Options(vocabulary_size=300, special_ids=place, pattern="gpt2", **special)
        yield place, methods.train("bpe", text, options)
    yield "gpt2 order", methods.train("bpe", text, Options(vocabulary_size=280, base="gpt2"))
    yield "word specials", methods.train("word", text, Options(vocabulary_size=150, **special))
    yield "ranks", ranked(pattern=patterns.get("gpt2"))
    yield "lookup", ranked(pattern=patterns.get("cl100k"), whole_piece_lookup=True)
    tokens = {"<t>": 400, "<t>>": 401, "a.b": 402}
    yield "added", ranked(added_tokens=tokens, pattern=patterns.get("qwen2"))
    flags = dict.fromkeys(tokens, ("normalized",))
    yield "flags", ranked(added_tokens=tokens, token_flags=flags)
    yield "ids of their own", renumbered(trained(text, vocabulary_size=300, pattern="gpt2"))
    yield "pieces made twice", made_twice()


def made_twice():
    """What merges make stands in the alphabet already, or is made by two of them."""
    return Vocabulary(
        "bpe",
        (*(bytes([byte]) for byte in range(256)), b"ab", b"bc"),
        merges=np.array([[97, 98], [98, 99], [260, 99], [97, 261]], np.uint32),
        merge_ids=np.array([260, 261, 262, 263], np.uint32),
        whole_piece_lookup=True,
        pattern=patterns.get("gpt2"),
    )


def renumbered(vocabulary):
    """The same merges, whose ids fall from 1100."""
    ids = np.arange(1100, 1100 - len(vocabulary.merges), -1, np.uint32)
    merges = vocabulary.merges.copy()
    learned = merges >= 256
    merges[learned] = ids[merges[learned] - 256]
    return Vocabulary(
        "bpe", vocabulary.alphabet, merges=merges, merge_ids=ids, whole_piece_lookup=True
    )


@pytest.mark.parametrize("name", KINDS)
def test_an_embedded_vocabulary_encodes_as_the_package(reader, name):
    vocabulary = dict(vocabularies())[name]
    chosen = random.Random(8)
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    texts = [random_text(chosen, 200) for _ in range(300)]
    texts += [
        f"{LOW} abcd<t>aa<t>>abc a.b axb\nab\nbc\nabc\nabbc abé <|a|> {ANY}",
        "a" * 3000,
        "ab" * 999,
        "",
    ]
    embedded = embedding.embedded_vocabulary(name, vocabulary)
    refused = 0
    for text, found in zip(texts, reader.run(ENCODE, embedded, texts), strict=True):
        try:
            ids = tokenizer.encode(text)
        except ValueError as error:
            byte = int(str(found).removeprefix("the byte 0x").split()[0], 16)
            assert f"byte {byte}" in str(error) or f"{byte:#04x}" in str(error), (error, found)
            refused += 1
            continue
        assert found[0] == ids, text
        if vocabulary.unit != "word":
            assert bytes(found[1]) == tokenizer.decode_bytes(ids)
    assert refused < len(texts)


@pytest.mark.parametrize(
    "name",
    ["cl100k_base.tiktoken", "o200k_base.tiktoken", "gpt2", "deepseek_v3.tokenizer.json"],
)
def test_a_real_vocabulary_encodes_as_the_package(reader, tmp_path, data, name):
    path = tmp_path / "real.html"
    source = str(data / "vocab" / name)
    assert cli.main(["page", str(path), "--tokenizer", source]) == 0
    reader.open(path)
    tokenizer = Tokenizer.from_vocabulary(detect.load(detect.find(source), engine=engines.get()))
    texts = [
        path.read_text(encoding="utf-8")[start : start + 3000]
        for path in sorted((data / "corpora").iterdir())
        for start in (0, 20_000)
    ]
    chosen = random.Random(8)
    texts += [random_text(chosen, 300) for _ in range(100)]
    script = """
        const tokenizer = encoding.candidates[0].tokenizer();
        return arguments[0].map((text) => encode(text, tokenizer).flatMap(({ ids }) => ids));
    """
    for text, ids in zip(texts, reader.run(script, texts), strict=True):
        assert ids == tokenizer.encode(text)
    # The tab of the tokenizer is the one that is open.
    assert reader["encoding"].is_displayed()
    reader.type("encoding-text", "the slowest newcomers")
    ids = tokenizer.encode("the slowest newcomers")
    assert [int(row[0]) for row in reader.rows("tokens")] == [*dict.fromkeys(ids)]


def test_a_lone_surrogate_is_the_replacement_character(reader):
    (ids,) = reader.run(
        "const {candidates} = encoding; learn();"
        "return [encode('a\\ud800b', trainedTokenizer('x')).flatMap(({piece}) => piece)]"
    )
    assert ids == ["a\ufffdb"]


# What a reader does


def test_it_begins_with_the_words_of_the_first_example(reader):
    assert reader["training-text"].get_property("value") == LOW
    assert reader.text("step-count") == "0"
    assert reader.rows("pairs")[:3] == [
        ["e + s", "3, 15", "9", "next"],
        ["s + t</w>", "15, 18", "9", "tie"],
        ["w + e", "19, 3", "8", ""],
    ]
    assert reader.rows("pieces") == [
        ["5", "low</w>"],
        ["2", "lower</w>"],
        ["6", "newest</w>"],
        ["3", "widest</w>"],
    ]
    assert reader.text("explanation") == (
        "Next: a tie. 2 pairs occur 9 times: e + s, s + t</w>. The rule “first” takes the pair "
        "that is met first when the pieces, as they now stand, are read in order: e + s "
        "(ids 3 and 15)."
    )


def test_stepping_forward_and_back(reader):
    assert reader.pieces()[-6:] == ["w", "i", "d", "e", "s", "t</w>"]
    reader.click("on")
    assert reader.text("explanation").startswith("Merge 1: e + s became es, id 21.")
    assert reader.pieces()[-5:] == ["w", "i", "d", "es", "t</w>"]
    assert reader.rows("merges") == [["1", "e + s", "es", "9"]]
    reader.click("on")
    assert reader.pieces()[-4:] == ["w", "i", "d", "est</w>"]
    reader.click("to-end")
    assert reader.text("step-count") == reader.text("learned-count") == "13"
    assert reader.text("explanation").endswith(
        "The end: each piece is one token, so no pair is left."
    )
    assert [*dict.fromkeys(reader.pieces())] == ["low</w>", "lower</w>", "newest</w>", "widest</w>"]
    assert reader.rows("pairs") == []
    last = reader.pieces()
    reader.click("back", "on")
    assert reader.pieces() == last
    reader.click("on")  # does nothing more
    assert reader.text("step-count") == "13"
    reader.click("back", "to-start", "back")
    assert reader.text("step-count") == "0"
    assert reader.pieces()[-6:] == ["w", "i", "d", "e", "s", "t</w>"]


def test_typing_begins_anew(reader):
    reader.click("to-end")
    reader.type("training-text", "ab ab ab")
    assert reader.text("step-count") == "0"
    assert reader.rows("pieces") == [["3", "ab</w>"]]
    assert reader.rows("pairs") == [["a + b</w>", "1, 4", "3", "next"]]
    assert "occurs 3 times, more often than any other" in reader.text("explanation")
    reader.type("training-text", "")
    assert reader.text("explanation") == "There is no text to learn from yet."


def test_a_run_holds_two_pairs_and_one_merge(reader):
    reader.choose("example", "a run: aaa")
    assert reader.rows("pairs") == [["a + a", "1, 1", "2", "next"]]
    assert reader.text("explanation") == (
        "Next: a + a occurs 2 times, more often than any other pair. "
        "Some of its places overlap, so 1 place is merged."
    )
    reader.click("on")
    assert reader.pieces() == ["aa", "a"]


def test_rules_are_switched(reader):
    reader.choose("example", "ties: three rules, three answers")
    winners = {}
    for rule in ("first", "smallest", "greatest"):
        reader.choose("rule", rule)
        assert f"The rule “{rule}” takes " in reader.text("explanation")
        assert "a tie. 11 pairs occur 2 times" in reader.text("explanation")
        (winners[rule],) = [row[0] for row in reader.rows("pairs") if row[3] == "next"]
        assert [row[3] for row in reader.rows("pairs")] == ["next"] + ["tie"] * 10
    assert winners == {"first": "k + i", "smallest": "a + p", "greatest": "z + e"}


def test_examples_can_be_stepped_through(reader):
    names = [option.get_attribute("value") for option in Select(reader["example"]).options]
    assert len(names) == 5
    for name in names:
        reader.choose("example", name)
        text = reader["training-text"].get_property("value")
        assert (name == "own") == (text == "")
        reader.click("to-end")
        assert reader.text("step-count") == reader.text("learned-count")
        assert (reader.text("step-count") == "0") == (name == "own")
        ending = "There is no text" if name == "own" else "The end: "
        assert ending in reader.text("explanation")


def test_bytes_and_patterns(reader):
    reader.choose("unit", "byte")
    # Words are of characters, so another pattern takes their place.
    assert reader["pattern"].get_property("value") == "gpt2"
    reader.type("training-text", "é é")
    assert reader.pieces() == ["<c3>", "<a9>", "␣", "<c3>", "<a9>"]
    assert reader.rows("pairs")[0] == ["<c3> + <a9>", "195, 169", "2", "next"]
    reader.click("on")
    assert reader.pieces() == ["é", "␣", "é"]
    reader.choose("pattern", "words")
    assert reader["unit"].get_property("value") == "character"
    assert reader.rows("pieces") == [["2", "é</w>"]]


def test_what_cannot_be_seen_has_a_sign(reader):
    text = "e\u0301 \u0301\n\u0301\u3164\u2800\u034f\x00\u202e"
    shown = reader.run("return visible(bytesOf(arguments[0]))", text)
    assert shown == "e\u0301␣◌\u0301⏎◌\u0301<U+3164><U+2800><U+034F><U+0000><U+202E>"
    assert reader.run("return visible('\\u00cc\\u0081')") == "◌\u0301"


def test_bounds_of_training(reader):
    reader.type("most", "2")
    assert reader.text("learned-count") == "2"
    reader.click("to-end")
    assert reader.text("explanation").endswith("The end: the 2 merges asked for are made.")
    reader.type("most", "100")
    reader.type("minimum", "7")
    reader.click("to-end")
    assert reader.text("explanation").endswith("The end: no pair occurs 7 times or more.")
    assert [row[3] for row in reader.rows("merges")] == ["7", "9", "9"]


def test_a_long_text_is_cut_and_said_to_be(reader):
    reader.paste("training-text", "ab " * 4000)
    assert reader.text("training-note") == "Only the first 10,000 of 12,000 characters are used."
    assert reader.rows("pieces")[0][0] == "3,333"
    assert "more tokens are not shown" in reader.text("text-rest")


def test_the_keyboard_steps(reader):
    reader["on"].send_keys(Keys.ENTER)
    assert (reader.active(), reader.text("step-count")) == ("on", "1")
    reader.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert reader.text("step-count") == "3"
    reader.keys(Keys.ARROW_LEFT)
    assert reader.text("step-count") == "2"
    reader.keys(Keys.END)
    assert reader.text("step-count") == "13"
    reader.keys(Keys.HOME)
    assert reader.text("step-count") == "0"
    reader["step"].send_keys(Keys.ARROW_RIGHT)
    assert reader.text("step-count") == "1"
    assert reader["step"].get_attribute("aria-valuetext") == "1 of 13 merges"
    # In a text, arrows move in the text.
    reader["training-text"].send_keys(Keys.ARROW_LEFT)
    assert reader.text("step-count") == "1"


def test_tabs_are_switched_by_keys(reader):
    reader["training-tab"].send_keys(Keys.ARROW_RIGHT)
    assert reader.active() == "encoding-tab"
    assert reader["encoding"].is_displayed() and not reader["training"].is_displayed()
    assert reader["encoding-tab"].get_attribute("aria-selected") == "true"
    assert reader["training-tab"].get_attribute("aria-selected") == "false"
    reader.keys(Keys.ARROW_RIGHT)
    assert reader.active() == "training-tab"
    reader.keys(Keys.END)
    assert reader.active() == "encoding-tab"
    reader.keys(Keys.HOME)
    assert reader["training"].is_displayed()


@pytest.mark.parametrize("tab", ["training", "encoding"])
def test_the_tab_key_reaches_every_control(reader, tab):
    reader.click(f"{tab}-tab")
    mark = """
        const wanted = `[role=tab][aria-selected=true], #${arguments[0]} :is(textarea, select,
            input, button:not(.piece-button[aria-pressed=false]), .scroll)`;
        const found = [...document.querySelectorAll(wanted)];
        found.forEach((node, number) => { node.dataset.number = number; });
        document.activeElement.blur();
        return found.length;
    """
    count = reader.run(mark, tab)
    assert count >= 8
    reached = []
    reader.driver.find_element(By.TAG_NAME, "body").click()
    for _ in range(count + 1):
        reader.keys(Keys.TAB)
        reached.append(reader.run("return document.activeElement.dataset.number ?? null"))
    assert {*map(str, range(count))} <= {*reached}


@pytest.mark.parametrize("tab", ["training", "encoding"])
def test_everything_has_a_name(reader, tab):
    reader.click(f"{tab}-tab")
    controls = reader.driver.find_elements(
        By.CSS_SELECTOR, f"#{tab} :is(textarea, select, input, button, table, .scroll)"
    )
    assert len(controls) >= 8
    for control in controls:
        assert control.accessible_name.strip(), control.get_attribute("outerHTML")
    assert reader[f"{tab}-tab"].aria_role == "tab"
    assert reader[tab].accessible_name.lower() == tab


def said_after(reader, *actions):
    """What stood in the live region one after the other, for a reader who does this."""
    reader.run(
        "const list = window.heard = [];"
        "new MutationObserver(() => list.push(byId('said').textContent))"
        ".observe(byId('said'), { childList: true });"
    )
    for act in actions:
        act()
    time.sleep(1.3)
    return reader.run("return heard")


def test_nothing_is_said_while_one_types_or_holds_a_key(reader):
    assert reader.run("return document.querySelectorAll('[aria-live]').length") == 0
    typed = said_after(reader, lambda: reader.type("training-text", "low lower lowest"))
    assert typed == [reader.text("explanation")]
    held = said_after(reader, lambda: reader["step"].send_keys(Keys.ARROW_RIGHT * 4))
    (last,) = held
    assert last.startswith("Merge 4: ")
    reader.click("encoding-tab")
    (told,) = said_after(reader, lambda: reader.type("encoding-text", "low lower"))
    assert told == "what the training tab learned: 2 tokens."
    (told,) = said_after(
        reader, reader["piece-buttons"].find_elements(By.TAG_NAME, "button")[1].click
    )
    assert told == reader.text("piece-words")


@pytest.mark.parametrize("tab", ["training", "encoding"])
def test_a_phone_does_not_scroll_sideways(reader, tab):
    reader.size(PHONE)
    reader.click(f"{tab}-tab")
    for text in (LOW, "W" * 300, "\u0301" * 100 + "🐈" * 100, "a b " * 200):
        reader.paste(f"{tab}-text", text)
        if tab == "training":
            reader.run("showStep(training.learned.merges.length)")
            reader.run("showStep(2)")
        assert reader.run("return document.documentElement.scrollWidth") == 375


@pytest.mark.parametrize("width", [320, 375])
def test_tokens_in_tables_are_not_broken_on_a_phone(reader, width):
    reader.size(PHONE | {"width": width})
    reader.click("encoding-tab")
    heights = reader.run(
        "return Array.from(document.querySelectorAll('#encoding td .piece'), (n) => n.offsetHeight)"
    )
    assert len(heights) > 10
    assert len({*heights}) == 1
    assert reader.run("return document.documentElement.scrollWidth") == width


def test_tables_of_a_small_text_fit_a_narrow_phone(reader):
    reader.size(PHONE | {"width": 320})
    reader.click("to-end")
    for step in (0, 3):
        reader.run("showStep(arguments[0])", step)
        wide = reader.run(
            "return Array.from(document.querySelectorAll('#training .scroll'))"
            ".filter((node) => node.scrollWidth > node.clientWidth).length"
        )
        assert wide == 0


def test_the_steps_do_not_cover_a_low_page(reader):
    position = "return getComputedStyle(document.querySelector('.stepper')).position"
    assert reader.run(position) == "sticky"
    reader.size(PHONE | {"width": 320, "height": 256})
    assert reader.run(position) == "static"


def test_lines_tell_all_where_the_colors_are_the_readers_own(reader):
    reader.click("to-start", "on", "on")

    def look(script):
        return reader.run(f"return {script}")

    reader.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]}
    )
    border = "getComputedStyle(document.querySelector('{}')).borderBottomWidth"
    assert look(border.format("#text-tokens .token:not(.next-left, .next-right)")) == "1px"
    assert look(border.format("#text-tokens .next-left")) == "3px"
    color = "getComputedStyle(document.querySelector('{}')).borderBottomColor"
    ground = look("getComputedStyle(document.body).backgroundColor")
    assert look(color.format("#encoding-tab")) == ground
    assert look(color.format("#training-tab")) != ground
    reader.click("encoding-tab")
    assert look(border.format("[aria-pressed=true]")) == "3px"
    assert look(border.format("[aria-pressed=false]")) == "1px"


CONTRASTS = """
const channels = (color) => color.match(/[\\d.]+/g).map(Number);
const luminance = (color) => {
    const [r, g, b] = channels(color).slice(0, 3).map((value) => {
        const c = value / 255;
        return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
        const color = getComputedStyle(at).backgroundColor;
        if ((channels(color)[3] ?? 1) === 1) return color;
    }
    return "rgb(255, 255, 255)";
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const found = [];
while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const both = [luminance(style.color), luminance(ground(node))].sort((a, b) => a - b);
    found.push([(both[1] + 0.05) / (both[0] + 0.05), node.outerHTML, style.color, ground(node)]);
}
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", ["training", "encoding"])
def test_all_text_is_readable(reader, tab, scheme):
    reader.scheme(scheme)
    reader.click(f"{tab}-tab")
    reader.run("showStep(8)")
    found = reader.run(CONTRASTS)
    assert len(found) > 50
    assert len({tuple(row[2:]) for row in found}) >= 6
    for ratio, *place in found:
        assert ratio >= 4.5, (ratio, place)


# The second tab


def test_the_word_lowest_merge_by_merge(reader):
    reader.choose("example", "low, lower, newest, widest")
    reader.click("encoding-tab")
    reader.type("encoding-text", "lowest low")
    assert reader.pieces("encoded") == ["low", "est</w>", "low</w>"]
    assert reader.rows("steps") == [
        ["0", "l o w e s t</w>", "", ""],
        ["1", "l o w es t</w>", "e + s", "0"],
        ["2", "l o w est</w>", "es + t</w>", "1"],
        ["3", "lo w est</w>", "l + o", "2"],
        ["4", "low est</w>", "lo + w", "10"],
    ]
    tokenizer = Tokenizer(LOW, method="word", vocabulary_size=34)
    ids = tokenizer.encode("lowest low")
    assert [int(row[0]) for row in reader.rows("tokens")] == ids
    assert [row[1:] for row in reader.rows("tokens")] == [
        ["low", "6c 6f 77", "1"],
        ["est</w>", "65 73 74", "1"],
        ["low</w>", "6c 6f 77", "1"],
    ]
    assert reader.rows("comparison") == [["what the training tab learned", "34", "3", "3.33"]]


def test_what_looks_like_the_end_of_a_word_is_none(reader, tmp_path):
    text, rows = "a</w>b a</w>b", []
    reader.type("training-text", text)
    reader.type("most", "4")
    reader.click("encoding-tab")
    reader.type("encoding-text", "a</w>b a</w>")
    rows.append(reader.rows("tokens"))
    path = tmp_path / "word.html"
    path.write_text(
        page.written({"words": methods.train("word", text, Options(vocabulary_size=17))}), "utf-8"
    )
    reader.open(path)
    reader.type("encoding-text", "a</w>b a</w>")
    rows.append(reader.rows("tokens"))
    for found in rows:
        assert [row[1:] for row in found] == [
            ["a</w>", "61 3c 2f 77 3e", "1"],
            ["b</w>", "62", "1"],
            ["a</w", "61 3c 2f 77", "1"],
            ["></w>", "3e", "1"],
        ]
    assert reader.run("return document.querySelectorAll('#tokens .marker').length") == 2


def test_pieces_are_chosen_by_pointer_and_by_keys(reader):
    reader.click("encoding-tab")
    reader.type("encoding-text", "low newest widest")
    buttons = reader.driver.find_elements(By.CLASS_NAME, "piece-button")
    assert [button.text for button in buttons] == ["low", "newest", "widest"]
    buttons[1].click()
    assert reader.rows("steps")[0][1] == "n e w e s t</w>"
    assert "6 symbols and 5 merges give 1 token." in reader.text("piece-words")
    reader.keys(Keys.ARROW_RIGHT)
    assert reader.driver.switch_to.active_element == buttons[2]
    assert reader.rows("steps")[0][1] == "w i d e s t</w>"
    reader.keys(Keys.HOME)
    assert reader.rows("steps")[0][1] == "l o w</w>"
    assert [button.get_attribute("aria-pressed") for button in buttons] == [
        "true",
        "false",
        "false",
    ]


def test_up_to_three_tokenizers_are_compared(reader):
    reader.choose("example", "bytes of several languages")
    for most in (0, 5, 20):
        reader.type("most", str(most))
        reader.click("keep")
    assert "bytes, cut by gpt2, smallest, 20 merges" in reader.text("keep-note")
    reader.click("keep")
    assert reader.text("keep-note").startswith("The encoding tab has it already: ")
    reader.click("encoding-tab")
    boxes = reader["candidates"].find_elements(By.TAG_NAME, "input")
    assert [box.is_selected() for box in boxes] == [True, True, True, False]
    assert not boxes[3].is_enabled()
    boxes[0].click()
    assert reader.driver.switch_to.active_element == boxes[0]
    assert boxes[3].is_enabled()
    boxes[3].click()
    text = "你好，Bücher"
    reader.type("encoding-text", text)
    rows = reader.rows("comparison")
    corpus = reader["training-text"].get_property("value")
    for (name, size, tokens, ratio), most in zip(rows, (0, 5, 20), strict=True):
        tokenizer = Tokenizer.from_vocabulary(
            trained(corpus, vocabulary_size=256 + most, pattern="gpt2")
        )
        count = tokenizer.count(text)
        assert name == f"bytes, cut by gpt2, smallest, {most} merges"
        assert [size, tokens, ratio] == [
            str(256 + most),
            str(count),
            f"{len(text.encode()) / count:.2f}",
        ]
    reader.choose("subject", rows[2][0])
    assert reader.text("comparison-count") == f"{len(text.encode())} bytes"


def test_tokenizers_of_two_texts_are_two(reader):
    for text in ("ab ab", "cd cd", "ab ab"):
        reader.type("training-text", text)
        reader.click("keep")
    name = "characters, cut by words, first, 1 merge"
    assert reader.text("keep-note") == f"The encoding tab has it already: “{name}”."
    reader.click("encoding-tab")
    reader.type("encoding-text", "cd")
    assert [[name, tokens] for name, _, tokens, _ in reader.rows("comparison")] == [
        ["what the training tab learned", "2"],
        [name, "2"],
        [f"{name} (2)", "1"],
    ]


def test_a_long_piece_is_merged_without_looking_at_all_of_it_for_each_merge(reader):
    found = reader.run(
        """
        let looked = 0;
        const plain = lowestRank;
        lowestRank = (...given) => {
            looked += given.at(-1).length;
            return plain(...given);
        };
        try {
            const symbols = Array.from({ length: 10000 }, (_, place) => place % 7);
            const grow = (left, right) => ({ rank: left + right, id: left + right });
            return [mergePiece(symbols, grow), looked];
        } finally {
            lowestRank = plain;
        }
        """
    )
    (merged, looked) = found
    assert merged["ids"] == [sum(place % 7 for place in range(10000))]
    assert len(merged["steps"]) == 9999
    assert looked < 10000 * 1500


def test_the_steps_of_a_long_piece_are_seen_where_they_happen(reader):
    reader.choose("pattern", "none")
    reader.type("training-text", "abab")
    reader.click("encoding-tab")
    reader.paste("encoding-text", "x" * 300 + "ab")
    rows = reader.rows("steps")
    assert len(rows) == 2
    assert rows[1][1].endswith("ab") and rows[1][1].startswith("…")
    reader.paste("encoding-text", "ab" * 400)
    assert len(reader.rows("steps")) == 200
    # 400 times ab, 200 times abab and the row before the first merge.
    steps = reader.run("return subjectResult().pieces[0].steps.length")
    assert reader.text("steps-rest") == f"{steps + 1 - 200} more rows are not shown."


def test_nothing_merges_with_what_is_behind_the_last(reader):
    asked = reader.run(
        """
        const asked = [];
        mergePiece([0, 1], (...pair) => { asked.push(pair); return { rank: 0, id: 2 }; });
        return asked;
        """
    )
    assert asked == [[0, 1]]


def test_what_cannot_be_is_not_left_in_its_field(reader):
    for id, given, used in [("most", "9999", "500"), ("minimum", "-3", "1")]:
        reader.type(id, given)
        reader.keys(Keys.TAB)
        assert reader[id].get_property("value") == used


def test_what_a_tokenizer_cannot_encode_is_told(reader, tmp_path):
    path = tmp_path / "byte.html"
    path.write_text(page.written({"few": methods.train("byte", "abc", Options())}), "utf-8")
    reader.open(path)
    reader.type("encoding-text", "abxc")
    assert "It cannot encode this: the byte 0x78 has no id in it." in reader.text("encoded")
    assert reader.rows("comparison") == [["few", "3", "–", "–"]]
    reader.type("encoding-text", "cab")
    assert [row[0] for row in reader.rows("tokens")] == ["2", "0", "1"]


def test_whole_pieces_and_added_tokens_are_told(reader, tmp_path):
    path = tmp_path / "whole.html"
    vocabulary = ranked(
        pattern=patterns.get("gpt2"), whole_piece_lookup=True, added_tokens={"<t>": 300}
    )
    path.write_text(page.written({"whole": vocabulary}), "utf-8")
    reader.open(path)
    reader.type("encoding-text", "aab<t>")
    buttons = reader.driver.find_elements(By.CLASS_NAME, "piece-button")
    assert reader.text("piece-words").startswith("The whole piece is in the vocabulary")
    buttons[1].click()
    assert reader.text("piece-words").startswith("A token that always matches")


def test_a_corpus_is_where_the_page_begins(reader, tmp_path):
    (tmp_path / "book.txt").write_text("A cat sat on the mat.\n" * 20, encoding="utf-8")
    path = tmp_path / "book.html"
    assert cli.main(["page", str(path), "--corpus", str(tmp_path / "book.txt")]) == 0
    reader.open(path)
    assert reader["training"].is_displayed()
    assert Select(reader["example"]).first_selected_option.text == "book.txt"
    assert reader.rows("pairs")[0][0] == "a + t"
    reader.choose("example", "a run: aaa")
    reader.choose("example", "own")
    assert reader["training-text"].get_property("value").startswith("A cat sat")
    reader.click("encoding-tab")
    assert reader.rows("comparison")[0][0] == "book.txt"


def test_the_lines_of_a_corpus_end_as_they_do_in_its_file(reader, tmp_path):
    (tmp_path / "dos.txt").write_bytes(b"low\r\nlow\r\n")
    path = tmp_path / "dos.html"
    assert cli.main(["page", str(path), "--corpus", str(tmp_path / "dos.txt")]) == 0
    reader.open(path)
    reader.click("to-start")
    assert "".join(reader.pieces()) == "low<U+000D>⏎" * 2
    assert reader.text("text-count").startswith("10 tokens for 10 bytes")
    # What is typed has the line ends of a field.
    reader["training-text"].send_keys("x")
    assert reader.text("text-count").endswith("for 9 bytes: 1.00 bytes per token")


# Text of others


def test_text_never_becomes_a_part_of_the_page(reader, tmp_path):
    hostile = "</script><img src=x onerror=alert(1)><!--<b>"
    path = tmp_path / "hostile.html"
    vocabulary = trained(hostile * 3, vocabulary_size=290)
    path.write_text(page.written({hostile: vocabulary}, hostile, hostile), "utf-8")
    reader.open(path)
    assert reader["training-text"].get_property("value") == hostile
    assert reader.driver.title == f"{page.TITLE}: {hostile}"
    reader.click("to-end", "keep", "encoding-tab")
    reader.type("encoding-text", hostile)
    assert "".join(reader.pieces("encoded")).startswith(hostile.replace(" ", "␣"))
    assert reader.run("return document.querySelectorAll('img, b').length") == 0
    assert reader.rows("comparison")[0][0] == hostile


def test_the_policy_stops_other_scripts(reader):
    script = """
        const other = document.createElement("script");
        other.textContent = "window.ran = true";
        document.body.append(other);
        return window.ran === true;
    """
    assert reader.run(script) is False
    (complaint,) = reader.complaints()
    assert "Content Security Policy" in complaint
