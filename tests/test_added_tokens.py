"""Flags of special tokens: which places count, and which white space belongs to a token.

They are those of the added tokens of Hugging Face, whose library is the judge where it is there.
"""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strategies import FLAGS
from tokbpe import expansion, fast, patterns, reference, unicode

pytestmark = pytest.mark.core


def table(engine, flags):
    """What an engine looks for; the ids are from 256 on."""
    ids = {spelling.encode(): 256 + number for number, spelling in enumerate(flags)}
    return engine.special_table(ids, {text.encode(): names for text, names in flags.items()})


def parts(engine, text, flags):
    """What is cut out, special tokens in tuples."""
    found = engine.cut_special(text, table(engine, flags))
    return [part.decode() if id is None else (part.decode(),) for part, id in found]


# One flag


@pytest.mark.parametrize(
    ("text", "spaces"),
    [
        ("<e>", 0),
        (" <e>", 1),
        ("a \t\r\n\x0b\x0c\x85\xa0\u1680\u2000\u2028\u2029\u202f\u205f\u3000<e>", 15),
        ("\u200b<e>", 0),
        (" \ufeff<e>", 0),
        ("\x1c\x1f <e>", 1),
        ("a\u180e  <e>", 2),
    ],
)
def test_white_space(engine, text, spaces):
    rest, taken = text[: len(text) - 3 - spaces], text[len(text) - 3 - spaces :]
    rest = [rest] if rest else []
    assert parts(engine, text, {"<e>": ["lstrip"]}) == [*rest, (taken,)]
    # The other way round
    rest, taken = [part[::-1] for part in rest], taken[::-1]
    assert parts(engine, text[::-1], {">e<": ["rstrip"]}) == [(taken,), *rest]


@pytest.mark.parametrize(
    "neighbor", [*"aZ1_é中٣Ⅷ", "\u0301", "\u093e", "\u200c", "\u200d", "Ⓐ", "ǅ"]
)
def test_word_characters(engine, neighbor):
    for text in (f"{neighbor}<e>", f"<e>{neighbor}", f" {neighbor}<e>{neighbor} "):
        assert parts(engine, text, {"<e>": ["single_word"]}) == [text]


@pytest.mark.parametrize(
    "neighbor", [*" \n-.<½²€🐈", "\u200b", "\u2060", "\u3000", "\U0010ffff", ""]
)
def test_other_characters(engine, neighbor):
    text = f"a{neighbor}" if neighbor else ""
    end = text[::-1]
    expected = [("<e>",)] if not text else [text, ("<e>",), end]
    assert parts(engine, f"{text}<e>{end}", {"<e>": ["single_word"]}) == expected


# White space and words beside other tokens


@pytest.mark.parametrize(
    ("text", "flags", "expected"),
    [
        ("a  b", {"a": [], "b": []}, [("a",), "  ", ("b",)]),
        ("a  b", {"a": ["normalized"], "b": []}, [("a",), "  ", ("b",)]),
        # The one on the left takes first.
        ("a  b", {"a": ["rstrip"], "b": ["lstrip"]}, [("a  ",), ("b",)]),
        ("a  b", {"a": ["lstrip"], "b": ["rstrip"]}, [("a",), "  ", ("b",)]),
        (" a a ", {"a": ["lstrip", "rstrip"]}, [(" a ",), ("a ",)]),
        # White space that the next one is spelled with
        ("a b", {"a": ["rstrip"], " b": []}, [("a",), (" b",)]),
        ("a b", {"a": ["rstrip"], " b": ["lstrip"]}, [("a",), (" b",)]),
        ("a  b", {"a": ["rstrip"], " b": ["lstrip"]}, [("a ",), (" b",)]),
        ("a\t  x", {"a": ["rstrip"], "\t": []}, [("a",), ("\t",), "  x"]),
        (" a \t \t x", {"a": ["rstrip"], "\t": []}, [" ", ("a ",), ("\t",), " ", ("\t",), " x"]),
        ("a \t \t x", {"a": ["rstrip"], "\t": ["rstrip"]}, [("a ",), ("\t ",), ("\t ",), "x"]),
        # One of nothing else
        ("a \tx", {"a": ["rstrip"], "\t": ["lstrip"]}, [("a \t",), "x"]),
        ("a \t\tx", {"a": ["rstrip"], "\t": ["lstrip", "rstrip"]}, [("a \t\t",), "x"]),
        ("a  b", {"a": ["rstrip"], " ": ["lstrip"], " b": ["lstrip"]}, [("a ",), (" b",)]),
        ("a \t b", {"a": ["rstrip"], "\t": ["lstrip"], " b": []}, [("a \t",), (" b",)]),
        ("\t\tx", {"\t": ["lstrip"]}, [("\t",), ("\t",), "x"]),
        ("\t\tx", {"\t": ["lstrip", "rstrip"]}, [("\t\t",), "x"]),
        # Places that do not count are passed over.
        ("xab ab", {"ab": ["single_word"], "b": []}, ["xab ", ("ab",)]),
        ("xab", {"ab": ["single_word"], "a": [], "xa": ["single_word"]}, ["xab"]),
        ("ab abc", {"abc": [], "ab": ["single_word"]}, [("ab",), " ", ("abc",)]),
        ("b<e>", {"b": [], "<e>": ["single_word"]}, [("b",), "<e>"]),
        ("x b", {" ": ["single_word"], "b": ["lstrip"]}, ["x", (" b",)]),
        ("a bc", {"a": ["rstrip"], " b": ["single_word"], "b": []}, [("a ",), "bc"]),
        ("a <e> a", {"<e>": ["single_word", "lstrip", "rstrip"]}, ["a", (" <e> ",), "a"]),
    ],
)
def test_tokens_side_by_side(engine, text, flags, expected):
    assert parts(engine, text, flags) == expected


# Bytes


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xff<e>\xff", [b"\xff", (b"<e>",), b"\xff"]),
        (b"\xc3<e>\xa9", [b"\xc3", (b"<e>",), b"\xa9"]),
        (b"a\xff<e>", [b"a\xff", (b"<e>",)]),
        (b" \xff <e> \xff ", [b" \xff", (b" <e> ",), b"\xff "]),
        (b"\xe3\x80<e>\xc2", [b"\xe3\x80", (b"<e>",), b"\xc2"]),
        (b"\x80<e>\x85 ", [b"\x80", (b"<e>",), b"\x85 "]),
        (b"\xe3\x80\x80\x80<e>", [b"\xe3\x80\x80\x80", (b"<e>",)]),
        (b"\x80\xc2\x85<e>\xc2\xa0\xc2", [b"\x80", (b"\xc2\x85<e>\xc2\xa0",), b"\xc2"]),
        (b"\xed\xa0\x80<e>\xed\xb0\x80", [b"\xed\xa0\x80", (b"<e>",), b"\xed\xb0\x80"]),
        (b"\xf0\x90\x80\x80<e>", [b"\xf0\x90\x80\x80<e>"]),  # a letter of Linear B
        (b"\xc3\xa9<e>", [b"\xc3\xa9<e>"]),
    ],
)  # fmt: skip
def test_bytes_that_are_no_utf8_are_neither_space_nor_word(engine, data, expected):
    flags = {"<e>": ["single_word", "lstrip", "rstrip"]}
    found = engine.cut_special(data, table(engine, flags))
    assert [part if id is None else (part,) for part, id in found] == expected


@pytest.mark.parametrize(
    ("data", "flags", "expected"),
    [
        (b"\xc2\x85a", {b"\xc2": (), b"a": ("lstrip",)}, [(b"\xc2",), b"\x85", (b"a",)]),
        (b"a\xc2\x85", {b"a": ("rstrip",), b"\x85": ()}, [(b"a\xc2",), (b"\x85",)]),
        (b"\xc3\xa9a", {b"\xc3": (), b"a": ("single_word",)}, [(b"\xc3",), b"\xa9a"]),
        (b"a\xc3\xa9", {b"\xc3": ("single_word",), b"\xa9": ()}, [b"a\xc3", (b"\xa9",)]),
    ],
)
def test_spellings_that_are_parts_of_characters(engine, data, flags, expected):
    found = engine.cut_special(data, engine.special_table(dict.fromkeys(flags, 1), flags))
    assert [part if id is None else (part,) for part, id in found] == expected


PARTS = [b"a", b" ", b"\xe3\x80\x80", b"\xe3", b"\x80", b"\xc2\x85", b"\xc2", b"\xc3\xa9"]
SPLINTERS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=12).map(b"".join)


@given(
    flags=st.dictionaries(SPLINTERS.map(lambda data: data[:3]), FLAGS, min_size=1, max_size=4),
    documents=st.lists(SPLINTERS, max_size=8),
)
def test_spellings_that_begin_and_end_inside_of_characters(flags, documents):
    ids = {spelling: number for number, spelling in enumerate(flags)}
    tables = [engine.special_table(ids, flags) for engine in (reference, fast)]
    for document in documents:
        expected, found = (
            engine.cut_special(document, prepared)
            for engine, prepared in zip((reference, fast), tables)
        )
        assert found == expected
        assert b"".join(part for part, _ in found) == document


# Hugging Face


def judge(flags):
    """Their tokenizer, whose other ids are the values of bytes."""
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {char: byte for byte, char in enumerate(patterns.PRINTABLE)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    for spelling, names in flags.items():
        named = {name: True for name in names if name != "normalized"}
        tokenizer.add_tokens([tokenizers.AddedToken(spelling, normalized=False, **named)])
    return tokenizer


def judged(tokenizer, text):
    """The ids, or None where they fail: for a token with lstrip inside of white space that the
    token before has taken."""
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


CHARACTERS = [*"abA<> \t\n_1é-中🐈Ⓐ\x85\u3000\u200b\u200d\u0301\x1c", "<a>", "  ", "e\u0301"]


@st.composite
def flagged_tokens_and_texts(draw):
    """Of few characters, so that most of the texts hold tokens, one in the way of another."""
    some = draw(st.lists(st.sampled_from(CHARACTERS), min_size=2, max_size=6, unique=True))
    some.append(" ")
    # What stands for a byte has its id there.
    spellings = st.lists(st.sampled_from(some), min_size=1, max_size=3).map("".join)
    spellings = spellings.filter(lambda text: text not in patterns.PRINTABLE)
    flags = draw(st.dictionaries(spellings, FLAGS, min_size=1, max_size=4))
    pieces = st.lists(st.sampled_from([*some, *flags]), max_size=8).map("".join)
    return flags, draw(st.lists(pieces, min_size=1, max_size=10))


@given(case=flagged_tokens_and_texts())
def test_ids_are_those_of_hugging_face(case):
    flags, texts = case
    theirs = judge(flags)
    tables = [(engine, table(engine, flags)) for engine in (reference, fast)]
    for text in texts:
        expected = judged(theirs, text)
        assume(expected is not None)
        for engine, prepared in tables:
            found = engine.cut_special(text, prepared)
            assert [
                id for part, own in found for id in (part if own is None else [own])
            ] == expected


def edges(ranges):
    """The characters at the edges of ranges, and those next to them."""
    codes = {code for first, last in ranges for code in (first - 1, first, last, last + 1)}
    codes -= {-1, unicode.HIGHEST + 1, *range(0xD800, 0xE000)}
    return [chr(code) for code in sorted(codes)]


@pytest.mark.parametrize("form", ["{}<e>-", "-<e>{}", "-{}<e>", "<e>{}-"])
@pytest.mark.parametrize("flag", ["single_word", "lstrip", "rstrip"])
def test_classes_are_those_of_hugging_face(engine, flag, form):
    members = expansion.word_ranges() if flag == "single_word" else unicode.ranges("White_Space")
    text = "".join(map(form.format, edges(members)))
    expected = judged(judge({"<e>": [flag]}), text)
    found = engine.cut_special(text, table(engine, {"<e>": [flag]}))
    assert [id for part, own in found for id in (part if own is None else [own])] == expected


# In encoding and counting


def test_white_space_of_a_token_is_no_text(engine):
    found = table(engine, {"<e>": ["lstrip", "rstrip"]})
    encoding = engine.encoding_table([bytes([byte]) for byte in range(256)], [])
    assert engine.encode("a <e>\n b", encoding, found) == [97, 256, 98]
    assert engine.count("a <e>\n b", encoding, found) == 3
    assert engine.count_pieces(["a <e>\n b", " "], None, found) == {b"a": 1, b"b": 1, b" ": 1}


def test_a_byte_behind_white_space_is_named_by_its_place(engine):
    found = table(engine, {"<e>": ["lstrip"]})
    with pytest.raises(ValueError, match="byte 0x78 at byte position 6 "):
        engine.encode("a  <e>x", engine.encoding_table([b"a"], []), found)


# What is refused


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        ([], TypeError, "flags must be a mapping from spelling to flags, not list"),
        ({b"f": ()}, ValueError, "there are flags for b'f', which is no special token; there are"),
        ({"<e>": ()}, ValueError, "there are flags for '<e>', which is no special token"),
        (
            {b"<e>": "lstrip"},
            TypeError,
            "of special token b'<e>' must be a tuple of texts, not str",
        ),
        ({b"<e>": None}, TypeError, "b'<e>' must be a tuple of texts, not NoneType"),
        (
            {b"<e>": ["lstrip", "strip"]},
            ValueError,
            "a flag of special token b'<e>' must be one of 'lstrip', 'rstrip', 'single_word', "
            "'normalized', not 'strip'",
        ),
        ({b"<e>": [1]}, TypeError, "a flag of special token b'<e>' must be one of "),
    ],
)
def test_flags_that_are_refused(engine, flags, error, message):
    with pytest.raises(error, match=re.escape(message)):
        engine.special_table({b"<e>": 1}, flags)


@pytest.mark.parametrize("flags", [None, {}, {b"<e>": ()}, {b"<e>": ["normalized"]}])
def test_flags_that_change_nothing(engine, flags):
    plain = engine.cut_special(b"a <e> a", {b"<e>": 1})
    assert engine.cut_special(b"a <e> a", engine.special_table({b"<e>": 1}, flags)) == plain


def test_plain_mappings_are_taken_by_both(engine):
    assert engine.cut_special(b" <e>", {b"<e>": 1}) == [(b" ", None), (b"<e>", 1)]
    assert engine.cut_special(b" <e>", engine.special_table({})) == [(b" <e>", None)]
