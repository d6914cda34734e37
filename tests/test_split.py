"""Cutting text into pieces: what both engines give, and the compiled scanners held against the
patterns themselves."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import CallCase, Raised, attempt
from differential import compare
from growth import growth
from tokbpe import fast, patterns, reference, unicode
from tokbpe.fast import build
from tokbpe.patterns import Pattern

COMPILED = ["gpt2", "cl100k", "llama3", "qwen2", "o200k", "deepseek_v3", patterns.WORDS]
# What looks like a compiled pattern and is none; what has several parts; a user's own.
OTHERS = [
    None,
    Pattern(None, patterns.NAMED["deepseek_v3"].sources[:2]),
    "[a-z]+",
    Pattern(None, patterns.NAMED["gpt2"].sources),
    Pattern(None, patterns.NAMED["gpt2"].sources, keep_gaps=False),
    Pattern(None, patterns.WORDS.sources),
]

# One or more of each class that a pattern tells apart, and what is easily taken for another.
CHARACTERS = (
    "aZsStTmMdDlLvVeErRk'\u2019/!_-<\x000123"
    " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u3000"  # white space, and not
    "\u200b\ufeff\u180e\xad"  # no white space
    "ſKİıßÉé\u0413\u0433ǅῼʰªー中あ\u05d0\u0904\u1c89\U00010d50"  # Lu, Ll, Lt, Lm, Lo
    "\u0301\u0488\u0903\ufe0f\U000e0100"  # marks
    "か・ー゛\u3099\u3040\u30a0\u30ff\u3100\u9fa5\u9fa6"  # of deepseek_v3's Chinese, and not
    "½²٣Ⅷ〇\U0001d7ce"  # numbers
    "😀€\u2160\uffff\ufdd0\U0010ffff\ue000\u0378"  # symbols, no characters, private, unassigned
)
NOT_UTF8 = [
    b"\x80", b"\xbf", b"\xc2", b"\xe4", b"\xe4\xb8", b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98",
    b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80",
    b"\xf0\x8f\xbf\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff",
]  # fmt: skip


def text_of(alphabet):
    return st.lists(st.sampled_from(alphabet), max_size=24).map("".join)


# A few characters meet each other in more ways than many do.
TEXTS = st.one_of(
    text_of(CHARACTERS),
    st.lists(st.sampled_from(CHARACTERS), min_size=2, max_size=5).flatmap(text_of),
    st.text(max_size=12),
)
DATA = st.lists(
    TEXTS.map(str.encode) | st.sampled_from(NOT_UTF8) | st.binary(max_size=3), max_size=5
).map(b"".join)


def agree(document, pattern):
    pieces = fast.split(document, pattern)
    assert pieces == reference.split(document, pattern), (document, pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", [*COMPILED, *OTHERS], ids=repr)
@given(document=TEXTS | DATA)
def test_random_text(pattern, document):
    agree(document, pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", COMPILED, ids=repr)
def test_every_short_text(pattern):
    """All of up to two characters, and of four of the most telling ones."""
    for length in range(3):
        for characters in product(CHARACTERS, repeat=length):
            agree("".join(characters), pattern)
    for characters in product("aA中\u0301 \n\t'!1\x00", repeat=4):
        agree("".join(characters), pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", COMPILED, ids=repr)
def test_every_contraction(pattern):
    letters = "sSſtTmMdDlLvVrReEkK"
    for first, second, end in product(letters, letters + "1 '", ["", "x", "'"]):
        agree(f"it'{first}{second}{end}", pattern)
        agree(f" '{first}{second}{end}", pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", COMPILED, ids=repr)
def test_where_classes_begin_and_end(pattern):
    names = ["White_Space", "N", "Lu", "Lt", "Ll", "Lm", "Lo", "M", "P", "S"]
    edges = [pair for name in names for pair in unicode.ranges(name)]
    codes = {code for first, last in edges for code in (first - 1, first, last, last + 1)}
    text = "".join(
        f"a{chr(code)}A{chr(code)}Aa{chr(code)}\n"
        for code in sorted(codes)
        if not 0xD800 <= code <= 0xDFFF
    )
    agree(text, pattern)


@pytest.mark.parametrize("pattern", COMPILED, ids=repr)
def test_every_pair_of_bytes(pattern):
    for pair in product(range(256), repeat=2):
        agree(bytes(pair), pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", [*COMPILED, *OTHERS], ids=repr)
def test_every_byte_and_broken_character(pattern):
    for byte in range(256):
        agree(bytes([byte]), pattern)
    for broken in NOT_UTF8:
        for text in ["", "a", " ", "'s", "é", "中", "\n ", "A\u0301"]:
            agree(text.encode() + broken, pattern)
            agree(broken + text.encode(), pattern)
            agree(b"\xff" + text.encode() + broken + text.encode() + broken, pattern)


def by_definition(data, pattern):
    """What Python's strict decoder takes is cut as text; each run of other bytes is one piece."""
    text = data.decode("utf-8", "surrogateescape")
    pieces = []
    for broken, run in groupby(text, lambda character: "\udc80" <= character <= "\udcff"):
        part = "".join(run)
        if broken:
            pieces.append(part.encode("utf-8", "surrogateescape"))
        else:
            pieces += reference.split(part, pattern)
    return pieces


@pytest.mark.parametrize("pattern", [*COMPILED, "[a-z]+"], ids=repr)
@given(data=DATA)
def test_bytes_are_cut_by_the_definition(pattern, data):
    """Also where training counts them."""
    pieces = by_definition(data, pattern)
    for engine in (reference, fast):
        assert engine.split(data, pattern) == pieces
        assert engine.count_pieces([data], pattern) == Counter(pieces)


@pytest.mark.core
@pytest.mark.parametrize("broken", NOT_UTF8, ids=repr)
def test_a_run_of_other_bytes_is_one_piece(engine, broken):
    assert engine.split(b"a" + broken * 2 + b"b", "gpt2") == [b"a", broken * 2, b"b"]


@pytest.mark.core
@pytest.mark.parametrize("pattern", COMPILED, ids=repr)
def test_lengths(pattern):
    """ASCII is read eight bytes at a time; so texts end, and break off, at every place of these."""
    for length in range(36):
        for end in [b"", "é".encode(), "中".encode(), "😀".encode(), *NOT_UTF8]:
            agree(b"a" * length + end, pattern)
            agree(b" b" * length + end + b" c", pattern)


@pytest.mark.parametrize("pattern", COMPILED, ids=repr)
@pytest.mark.parametrize("name", ["en", "c", "py", "de", "ru", "ja", "zh", "hi"])
def test_real_text(name, pattern, data):
    with open(data / "corpora" / f"{name}.txt", "rb") as file:
        file.seek(1_000_001)  # perhaps within a character
        agree(file.read(60_000), pattern)


# What both engines give

SPLITS = [
    ("gpt2", "I like it", ["I", " like", " it"]),
    ("gpt2", "I'LL don't  we've\n", ["I", "'", "LL", " don", "'t", " ", " we", "'ve", "\n"]),
    ("gpt2", "a's a'ſ", ["a", "'s", " a", "'", "ſ"]),
    ("gpt2", "x1234567 ½", ["x", "1234567", " ½"]),
    ("gpt2", "a \t\n b", ["a", " \t\n", " b"]),
    ("gpt2", "e\u0301", ["e", "\u0301"]),
    ("cl100k", "I'LL don't", ["I", "'LL", " don", "'t"]),
    ("cl100k", "a'ſ k'\u212a", ["a", "'ſ", " k", "'\u212a"]),
    ("cl100k", "1234567", ["123", "456", "7"]),
    ("cl100k", "a\r\n\r\nb", ["a", "\r\n\r\n", "b"]),
    ("cl100k", "a  \n  b", ["a", "  \n", " ", " b"]),
    ("cl100k", "a \n  ", ["a", " \n  "]),
    ("llama3", "a \n  ", ["a", " \n", "  "]),
    ("cl100k", "你好，世界", ["你好", "，世界"]),
    ("cl100k", "!\n\n/x", ["!\n\n", "/x"]),
    ("qwen2", "1234567", list("1234567")),
    ("o200k", "HelloWorld HTTPServer", ["Hello", "World", " HTTPServer"]),
    ("o200k", "don't DON'T", ["don't", " DON'T"]),
    ("o200k", "中ABC", ["中", "ABC"]),
    ("o200k", "\u0301ABC", ["\u0301", "ABC"]),
    ("o200k", "!\n/\n//x", ["!\n/\n//", "x"]),
    ("deepseek_v3", "12345ab，世界", ["123", "45", "ab", "，", "世界"]),
    ("deepseek_v3", "a  1 \x00\x00b", ["a", "  ", "1", " ", "\x00", "\x00b"]),
    ("deepseek_v3", "カ・\u3040\u3040か\n", ["カ", "・", "\u3040", "\u3040か", "\n"]),
    (patterns.WORDS, " naïve\x1cwidest\u3000", ["naïve", "widest"]),
    ("[a-z]", "a1b", ["a", "1", "b"]),
    (None, "a b", ["a b"]),
]


@pytest.mark.core
@pytest.mark.parametrize("pattern, text, pieces", SPLITS)
def test_splits(engine, pattern, text, pieces):
    assert engine.split(text, pattern) == [piece.encode() for piece in pieces]


@pytest.mark.core
@pytest.mark.parametrize("pattern", [*COMPILED, *OTHERS], ids=repr)
def test_nothing_is_nothing(engine, pattern):
    assert engine.split("", pattern) == engine.split(b"", pattern) == []


@pytest.mark.core
def test_white_space(engine):
    spaces = "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
    spaces += "\u2028\u2029\u202f\u205f\u3000"
    assert len(spaces) == 25
    for character in spaces:
        assert engine.split("!" + character, "gpt2") == [b"!", character.encode()]
    for character in "\x1c\x1d\x1e\x1f\u180e\u200b\ufeff":
        assert engine.split("!" + character, "gpt2") == [f"!{character}".encode()]


# Bad input

BAD_CALLS = [
    (1, "gpt2"),
    (None, None),
    (["a"], "gpt2"),
    ("a\ud83d", "gpt2"),
    ("\udc80", None),
    ("a", "gpt5"),
    ("", "gpt5"),
    ("a", ""),
    ("a", "a*"),
    ("a", "["),
    ("a", 1),
    ("a", b"gpt2"),
    ("\ud83d", "gpt5"),
    (1, "gpt5"),
]


@pytest.mark.core
@pytest.mark.parametrize("call", BAD_CALLS)
def test_bad_input(call):
    assert isinstance(attempt(reference.split, *call), Raised)
    compare(CallCase("split", call), fast)


@pytest.mark.core
def test_kinds_of_documents(engine):
    for form in [bytes, bytearray, memoryview, lambda data: memoryview(data[::-1])[::-1]]:
        assert engine.split(form(b"a b\xff"), "gpt2") == [b"a", b" b", b"\xff"]


# Time and threads

LONG_TEXTS = {
    "spaces": lambda size: " " * size,
    "spaces and a letter": lambda size: " " * size + "x",
    "line ends": lambda size: "\n" * size,
    "a line end, spaces and a letter": lambda size: "\n" + " " * size + "x",
    "spaces and line ends": lambda size: " \n" * (size // 2),
    "letters": lambda size: "a" * size,
    "capital letters": lambda size: "A" * size,
    "capital letters after one without case": lambda size: "中" + "A" * size,
    "letters of both kinds": lambda size: "中A" * (size // 4),
    "Chinese": lambda size: "中" * (size // 3),
    "marks": lambda size: "\u0301" * (size // 2),
    "a mark and capital letters": lambda size: "\u0301" + "A" * size,
    "contractions": lambda size: "'s" * (size // 2),
    "signs": lambda size: "!" * size,
    "control characters": lambda size: "\x00" * size,
    "control characters and a letter": lambda size: "\x00" * size + "x",
    "a letter and control characters in turn": lambda size: "x\x00" * (size // 2),
    "Japanese": lambda size: "カ・" * (size // 6),
    "unassigned": lambda size: "\u3040" * (size // 3) + "か",
    "spaces and digits": lambda size: "  1" * (size // 3),
    "digits": lambda size: "1" * size,
    "no UTF-8": lambda size: b"\xff" * size,
    "UTF-8 and other bytes in turn": lambda size: b"\xc3\xa9\xc3" * (size // 3),
}


@pytest.mark.skipif(
    bool(build.facts()["sanitizer"]), reason="a sanitizer takes its own time for large memory"
)
@pytest.mark.parametrize("pattern", COMPILED, ids=repr)
@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_growth(kind, pattern):
    """Four times the text takes about four times as long, and not sixteen times."""
    # Of both the system gives the memory anew, which it does from 128 KB on.
    short, long = map(LONG_TEXTS[kind], (200_000, 800_000))
    assert growth(lambda text: fast.split(text, pattern), short, long, 10) < 10


def test_threads():
    """Scanners share nothing that changes."""
    text = "I'll say: naïve 你好 12345 \n\n  HTTPServer's" * 2_000
    kinds = COMPILED * 4
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda pattern: fast.split(text, pattern), kinds))
    assert results == [fast.split(text, pattern) for pattern in kinds]
