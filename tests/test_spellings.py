"""How tiktoken and Hugging Face spell patterns: what is known, what is translated, what refused."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_scanners import CROSSING, pieces_of_tiktoken
from tokbpe import Tokenizer, patterns, reference, spellings, unicode
from tokbpe.expansion import HAS_POSSESSIVE
from tokbpe.patterns import COVERING, NAMED, WORDS, Pattern

CATEGORIES = [name for name in unicode.NAMES if name != "Cs"]
EDGES = [chr(code) for name in CATEGORIES for pair in unicode.ranges(name) for code in pair]
KNOWN = [pytest.param(*item, id=f"{item[1]}-{i}") for i, item in enumerate(spellings.KNOWN.items())]
CONVERTIBLE = [name for name in NAMED if name not in patterns.ALIASES]


def possessive(sources):
    return re.search(r"[+*?}]\+", "".join(sources)) is not None


def cut_by_hugging_face(sources, keep_gaps, text):
    tokenizers = pytest.importorskip("tokenizers")
    how = {"behavior": "isolated"} if keep_gaps else {"behavior": "removed", "invert": True}
    splits = [tokenizers.pre_tokenizers.Split(tokenizers.Regex(text), **how) for text in sources]
    return [piece for piece, _ in tokenizers.pre_tokenizers.Sequence(splits).pre_tokenize_str(text)]


def cut_by_tiktoken(pat_str, text):
    return [piece.decode() for piece in pieces_of_tiktoken(pat_str, [text])[0]]


# Known spellings


@pytest.mark.parametrize(("sources", "name"), KNOWN)
def test_a_known_spelling_is_the_named_pattern(sources, name):
    assert patterns.get(Pattern(None, sources)) is NAMED[name]
    if len(sources) == 1:
        assert patterns.get(sources[0]) is patterns.from_tiktoken(sources[0]) is NAMED[name]
    if sources not in spellings.NOT_FOR_HUGGING_FACE:
        assert patterns.from_huggingface(sources, True) is NAMED[name]


@pytest.mark.parametrize(("sources", "name"), KNOWN)
@given(text=CROSSING)
def test_a_known_spelling_cuts_as_the_named_pattern(sources, name, text):
    if possessive(sources) and not HAS_POSSESSIVE:
        pytest.skip("possessive quantifiers need Python 3.11")
    assert patterns.cut(text, Pattern(None, sources)) == patterns.cut(text, NAMED[name])


@pytest.mark.parametrize(("sources", "name"), KNOWN)
@given(text=CROSSING)
def test_a_known_spelling_cuts_so_elsewhere(sources, name, text):
    expected = patterns.cut(text, NAMED[name])
    if len(sources) == 1:
        assert cut_by_tiktoken(sources[0], text) == expected
    if sources not in spellings.NOT_FOR_HUGGING_FACE:
        assert cut_by_hugging_face(sources, True, text) == expected


def test_a_spelling_of_tiktoken_that_is_another_pattern_for_hugging_face():
    source = spellings.CL100K_OF_TIKTOKEN
    assert cut_by_tiktoken(source, "12345") == ["123", "45"]
    assert cut_by_hugging_face([source], True, "12345") == ["12345"]
    with pytest.raises(ValueError, match=r"'\{1,3\}\+' is not possessive for Hugging Face"):
        patterns.from_huggingface([source], True)


def test_the_encodings_of_tiktoken(monkeypatch):
    openai_public = pytest.importorskip("tiktoken_ext.openai_public")
    for loader in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        monkeypatch.setattr(openai_public, loader, lambda *_, **__: {})
    found = {
        name: patterns.from_tiktoken(make()["pat_str"]).name
        for name, make in openai_public.ENCODING_CONSTRUCTORS.items()
    }
    assert found == {
        "gpt2": "gpt2",
        "r50k_base": "gpt2",
        "p50k_base": "gpt2",
        "p50k_edit": "gpt2",
        "cl100k_base": "cl100k",
        "o200k_base": "o200k",
        "o200k_harmony": "o200k",
    }


@pytest.mark.parametrize(
    ("file", "name"),
    [("qwen3.tokenizer.json", "qwen2"), ("deepseek_v3.tokenizer.json", "deepseek_v3")],
)
def test_the_files_of_hugging_face(file, name, data):
    content = json.loads((data / "vocab" / file).read_text(encoding="utf-8"))
    steps = content["pre_tokenizer"]["pretokenizers"]
    sources = [step["pattern"]["Regex"] for step in steps if step["type"] == "Split"]
    assert patterns.from_huggingface(sources, True) is NAMED[name]


# Gaps


@pytest.mark.parametrize("pattern", COVERING, ids=repr)
def test_there_are_no_gaps(pattern):
    """Of each class a character is in a match wherever it stands."""
    dropping = Pattern(None, pattern.sources, keep_gaps=False)
    text = "".join(f"{char}a{char} {char}\n" for char in EDGES if not "\ud800" <= char <= "\udfff")
    assert "".join(patterns.cut(text, dropping)) == text


@pytest.mark.parametrize("pattern", COVERING, ids=repr)
@given(text=CROSSING)
def test_there_are_no_gaps_in_random_text(pattern, text):
    dropping = Pattern(None, pattern.sources, keep_gaps=False)
    assert patterns.cut(text, dropping) == patterns.cut(text, pattern)


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_what_covers_all_text_keeps_it_either_way(name):
    sources = patterns.to_huggingface(NAMED[name])
    assert patterns.from_huggingface(sources, True) is NAMED[name]
    dropping = patterns.from_huggingface(sources, False)
    assert (dropping is NAMED[name]) == (NAMED[name] in COVERING)
    assert dropping.keep_gaps == (name != "deepseek_v3")


def test_deepseek_v3_does_not_cover_all_text():
    dropping = Pattern(None, NAMED["deepseek_v3"].sources[2:], keep_gaps=False)
    assert patterns.cut("a\x00 \u200b\u0378b", dropping) == ["a", " ", "\u0378b"]


def test_tiktoken_drops_gaps_so_an_unknown_pattern_does():
    pattern = patterns.from_tiktoken("[a-z]+")
    assert pattern == Pattern(None, ("[a-z]+",), keep_gaps=False)
    assert patterns.cut("ab, c", pattern) == ["ab", "c"]


def test_patterns_that_drop_text_are_for_bytes_only_and_not_for_training():
    dropping = Pattern(None, ("[a-z]",), keep_gaps=False)
    assert patterns.for_unit(dropping, "byte") == dropping
    assert patterns.for_unit("gpt2", "character") is NAMED["gpt2"]
    assert patterns.for_training("gpt2") is NAMED["gpt2"]
    assert patterns.for_training(None) is None
    with pytest.raises(ValueError, match="drops the text between its matches"):
        patterns.for_unit(dropping, "character")
    with pytest.raises(ValueError, match="words are cut by"):
        patterns.for_unit(dropping, "word")
    for pattern in (dropping, WORDS):
        with pytest.raises(ValueError, match="drops the text between its matches"):
            Tokenizer("a b", method="bpe", vocabulary_size=256, pattern=pattern)


# Reading what is not known

READ = [
    # Source, its form here read from tiktoken, and from Hugging Face; None where it is refused.
    (r"[a-z]+|\s+$", r"[a-z]+|\s+\Z", None),
    (r"[$^]|\$|\^|a", r"[$^]|\$|\^|a", r"[$^]|\$|\^|a"),
    (r"[]$]|[^]$]|a$", r"[]$]|[^]$]|a\Z", None),
    (r"[\]$]a", r"[\]$]a", r"[\]$]a"),
    (r"^a", r"^a", None),
    (r"a\z", r"a\z", r"a\z"),
    (r"a\Z", None, None),
    (r"\w+\b", r"\w+\b", None),
    (r"[\w]", r"[\w]", None),
    (r"[\b]", r"[\b]", r"[\b]"),
    (r"\pL", r"\pL", None),
    (r"\p{L}\P{Lu}\p{^N}", r"\p{L}\P{Lu}\p{^N}", r"\p{L}\P{Lu}\p{^N}"),
    (r"\x41[\x7f]", r"\x41[\x7f]", r"\x41[\x7f]"),
    (r"[\xe9]", r"[\xe9]", None),
    (r"\u00e9", r"\u00e9", r"\u00e9"),
    (r"\U0001f408", r"\U0001f408", None),
    ("a{1,2}?b{3}c{1,}", "a{1,2}?b{3}c{1,}", "a{1,2}?b{3}c{1,}"),
    ("a{2}?", "a{2}?", None),
    (r"(?s:a.)", r"(?s:a.)", None),
    (r"(?m:a)", None, None),
    (r"(?-m:a)", None, None),
    (r"[a[bc]", None, None),
    (r"[a[:alpha:]]", None, None),
    (r"[&&a]", None, None),
    (r"[a\-&]|&&|--", r"[a\-&]|&&|--", r"[a\-&]|&&|--"),
    (r"(a)\1", None, None),
    (r"[\0]", None, None),
    (r"(?P<n>a)", None, None),
    (r"\<a", None, r"\<a"),
    (r"a\b{x}", None, None),
    (r"(?i:'s|'ll|[sdmt])|a", r"(?i:'s|'ll|[sdmt])|a", r"(?i:'s|'ll|[sdmt])|a"),
    (r"(?i:ss)", r"(?i:ss)", None),
    (r"(?i:s|s)(?i:sa)ss", r"(?i:s|s)(?i:sa)ss", r"(?i:s|s)(?i:sa)ss"),
    (r"(?i:s(?-i:ss)a)ss", r"(?i:s(?-i:ss)a)ss", r"(?i:s(?-i:ss)a)ss"),
    (r"(?i)a(b)fi", r"(?i)a(b)fi", None),
    (r"(?i:a[(]b)st", r"(?i:a[(]b)st", r"(?i:a[(]b)st"),
    ("(?i:t\u0308)", "(?i:t\u0308)", None),
    (r"(?i:\d)", r"(?i:\d)", r"(?i:\d)"),
    (r"(?i:\D)", r"(?i:\D)", None),
]


def read(function, *arguments):
    """The source of the pattern that is read; None if it is refused in the name of its reader."""
    try:
        (source,) = function(*arguments).sources
    except ValueError as error:
        assert re.search(
            r" is refused at position \d+: .* for (tiktoken|Hugging Face)$", str(error)
        )
        return None
    return source


@pytest.mark.parametrize(("source", "tiktoken", "hugging_face"), READ)
def test_what_is_read(source, tiktoken, hugging_face):
    assert read(patterns.from_tiktoken, source) == tiktoken
    assert read(patterns.from_huggingface, [source], True) == hugging_face


ALPHABET = "abclstSTfiß'ﬁẗ\u0308ſK019 \t\n\r[]$^&-:é中🐈\x7f."


@pytest.mark.parametrize(("source", "tiktoken", "hugging_face"), READ)
@settings(max_examples=20)
@given(text=st.text(ALPHABET, max_size=12) | st.text("as \n", max_size=8))
def test_what_is_read_cuts_as_there(source, tiktoken, hugging_face, text):
    if tiktoken is not None:
        expected = patterns.cut(text, patterns.from_tiktoken(source))
        assert cut_by_tiktoken(source, text) == expected
    for keep_gaps in [True, False] * (hugging_face is not None):
        expected = patterns.cut(text, patterns.from_huggingface([source], keep_gaps))
        assert cut_by_hugging_face([source], keep_gaps, text) == expected


@pytest.mark.parametrize(
    ("read", "source", "message"),
    [
        ("from_tiktoken", r"a|b\Z", r"position 3: '\\Z' also matches before a line end that ends"),
        ("from_tiktoken", r"[a&&b]", "position 2: '&&' makes sets of sets for tiktoken"),
        ("from_tiktoken", r"a|\h", r"position 2: unknown escape"),
        ("from_huggingface", r"\s+$", "position 3: '$' matches at every line for Hugging Face"),
        ("from_huggingface", r"a|^b", "position 2: '^' matches at every line for Hugging Face"),
        ("from_huggingface", r"\d{1,3}+", "position 2: '{1,3}+' is not possessive for"),
        ("from_huggingface", r"(?i:ass)", "position 6: 's' after 's' and with case ignored"),
        ("from_huggingface", r"a|\h", r"position 2: unknown escape"),
        ("from_huggingface", "a*", "it matches empty at position 0"),
    ],
)
def test_the_place_and_the_reason_are_named(read, source, message):
    arguments = [source] if read == "from_tiktoken" else [[source], True]
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(patterns, read)(*arguments)


@pytest.mark.skipif(HAS_POSSESSIVE, reason="this Python has possessive quantifiers")
@pytest.mark.parametrize("source", ["a++", "a{1,2}+", "(?>a)"])
def test_possessive_patterns_that_are_not_known_need_a_newer_python(source):
    with pytest.raises(ValueError, match="needs Python 3.11 or newer"):
        patterns.from_tiktoken(source)


@pytest.mark.parametrize("wrong", [None, 5, b"a", ["a"]])
def test_what_is_no_pat_str(wrong):
    with pytest.raises(TypeError, match="pat_str must be a str, not"):
        patterns.from_tiktoken(wrong)


def test_a_long_pattern_is_read_in_time():
    for unit in ["[", "(", "(?P", "(?#", "\\p{", "{1", "\\", "(?i:", "[^]", "{", "[[:"]:
        for _ in spellings.parts(unit * 50_000):
            pass


# Writing


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_what_is_written_is_known_when_read(name):
    assert patterns.from_huggingface(patterns.to_huggingface(NAMED[name]), True) is NAMED[name]
    if name != "deepseek_v3":
        assert patterns.from_tiktoken(patterns.to_tiktoken(NAMED[name])) is NAMED[name]


def test_tiktoken_holds_one_regular_expression():
    with pytest.raises(ValueError, match="<Pattern deepseek_v3> has 3 regular expressions; for"):
        patterns.to_tiktoken(NAMED["deepseek_v3"])


WRITTEN = [r"[a-z]+\Z|[a-z]", r"\p{Lu}|(?i:a)", r"(?<=a)b|[^\S\n]+(?!\S)", "(?i)a|b", "[ab]|中+"]


@pytest.mark.parametrize("keep_gaps", [True, False])
@pytest.mark.parametrize("source", WRITTEN)
def test_patterns_come_back(source, keep_gaps):
    pattern = Pattern(None, (source.replace(r"\Z", r"\z"),), keep_gaps)
    assert patterns.from_tiktoken(patterns.to_tiktoken(pattern)) == pattern
    if "Z" not in source:
        assert patterns.from_huggingface(patterns.to_huggingface(pattern), keep_gaps) == pattern


@pytest.mark.parametrize("keep_gaps", [True, False])
@pytest.mark.parametrize("source", WRITTEN)
@settings(max_examples=20)
@given(text=st.text("abAB中 \n", max_size=10))
def test_what_is_written_cuts_so_there(source, keep_gaps, text):
    pattern = Pattern(None, (source,), keep_gaps)
    expected = patterns.cut(text, pattern)
    assert cut_by_tiktoken(patterns.to_tiktoken(pattern), text) == expected
    assert cut_by_hugging_face(patterns.to_huggingface(pattern), keep_gaps, text) == expected


@pytest.mark.parametrize(
    ("write", "source", "message"),
    [
        ("to_tiktoken", "a$", "position 1: '$' matches at the very end alone for tiktoken"),
        ("to_huggingface", "a$", "position 1: '$' matches at every line for Hugging Face"),
        ("to_huggingface", r"\w+", r"position 0: '\\w' holds other characters of words for"),
        ("to_tiktoken", r"(a)\1", r"position 3: '\\1' is read in another way, or not at all, for"),
    ],
)
def test_what_cannot_be_written_is_named(write, source, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(patterns, write)(Pattern(None, (source,)))


def test_words_are_written():
    assert patterns.to_huggingface(WORDS) == [patterns.to_tiktoken(WORDS)] == list(WORDS.sources)
    assert reference.split(" a\x1cb ", WORDS) == [b"a", b"b"]
