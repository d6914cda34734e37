"""Named patterns, patterns of the user's own, and GPT-2's printable bytes."""

import copy
import json
import pickle
import re
import unicodedata
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import patterns, reference, unicode
from tokbpe.patterns import NAMED, PROBES, WORDS, Pattern

pytestmark = pytest.mark.core

FAMILIES = ["gpt2", "cl100k", "llama3", "qwen2", "o200k", "deepseek_v3"]


def pieces(text, pattern):
    return [piece.decode() for piece in reference.split(text, pattern)]


# Names


def test_the_names():
    assert [*FAMILIES, "r50k", "p50k", "gpt4", "qwen3"] == list(NAMED)
    assert [NAMED[name].name for name in FAMILIES] == FAMILIES


@pytest.mark.parametrize(
    ("alias", "name"), [("r50k", "gpt2"), ("p50k", "gpt2"), ("gpt4", "cl100k"), ("qwen3", "qwen2")]
)
def test_aliases(alias, name):
    assert patterns.get(alias) is patterns.get(name) is NAMED[name]


def test_qwen2_is_llama3_with_digits_one_by_one():
    (llama3,), (qwen2,) = NAMED["llama3"].sources, NAMED["qwen2"].sources
    assert qwen2 == llama3.replace(r"\p{N}{1,3}", r"\p{N}")


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "deepseek_v3"])
def test_the_spelling_of_a_named_pattern_is_that_pattern(name):
    (source,) = NAMED[name].sources
    assert patterns.get(source) is NAMED[name]
    assert patterns.get(Pattern(None, (source,))) is NAMED[name]
    assert patterns.get(Pattern(None, (source,), keep_gaps=False)) is not NAMED[name]


@pytest.mark.parametrize("name", [*FAMILIES, "words"])
@pytest.mark.parametrize("probe", PROBES)
def test_no_pattern_of_ours_matches_empty(name, probe):
    pattern = WORDS if name == "words" else NAMED[name]
    assert all(match.group() for regex in pattern.regexes for match in regex.finditer(probe))


# Patterns of the user's own


def test_a_regular_expression_is_a_pattern_without_a_name():
    pattern = patterns.get("[a-z]")
    assert pattern == Pattern(None, ("[a-z]",), keep_gaps=True)
    assert patterns.get("[a-z]") is pattern
    assert patterns.get(pattern) == pattern
    assert pieces("a1b", "[a-z]") == ["a", "1", "b"]


def test_sources_cut_one_inside_the_other():
    pattern = Pattern(None, (r"\d+", r"[a-z]|\d"))
    assert pieces("ab12,3", pattern) == ["a", "b", "1", "2", ",", "3"]


def test_gaps_are_dropped_at_each_step():
    pattern = Pattern(None, ("[^,]+", r"[^\s]+"), keep_gaps=False)
    assert pieces(" a b,c , d", pattern) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("text", ["gtp2", "words", "GPT4", "o200k_base", "cl-100k", "a", "100"])
def test_a_word_that_is_no_name_is_refused_with_the_names(text):
    with pytest.raises(ValueError, match=f"^pattern '{text}' is none of") as caught:
        patterns.get(text)
    assert all(repr(name) in str(caught.value) for name in NAMED)


@pytest.mark.parametrize(
    ("source", "position", "probe"),
    [
        ("", 0, ""),
        ("a*", 0, ""),
        (r"\s+|$", 0, ""),
        (r"\p{L}+|(?=\p{N})", ord("0"), PROBES[1]),
        (r"(?<=[a-z])(?=[A-Z])|\s+", PROBES[2].index("Case"), PROBES[2]),
        (r"(?<=\p{L})(?=\p{M})", PROBES[3].index("\u094d"), PROBES[3]),
    ],
)
def test_a_pattern_that_matches_empty_is_refused(source, position, probe):
    with pytest.raises(ValueError) as caught:
        patterns.get(source)
    assert str(caught.value) == (
        f"pattern {source!r} is refused: "
        f"it matches empty at position {position} of the probe {probe!r}"
    )


@pytest.mark.parametrize("form", [str, lambda source: Pattern(None, (source,))])
@pytest.mark.parametrize(
    ("source", "position"), [("[a", 0), ("a(b", 1), (r"a\p{Han}", 1), ("(?i:é)", 4)]
)
def test_a_bad_regular_expression_is_refused_with_the_place(form, source, position):
    with pytest.raises(ValueError) as caught:
        patterns.get(form(source))
    assert str(caught.value).startswith(f"pattern {source!r} is refused at position {position}: ")


@pytest.mark.parametrize("value", [None, 3, b"gpt2", ["gpt2"], re.compile("a")])
def test_another_type_is_refused(value):
    with pytest.raises(TypeError, match=f"or a Pattern, not {type(value).__name__}"):
        patterns.get(value)


@pytest.mark.parametrize("sources", ["abc", ["a"], (b"a",), (None,), None])
def test_sources_of_another_type_are_refused(sources):
    with pytest.raises(TypeError, match=re.escape(f"a tuple of str, not {sources!r}")):
        Pattern(None, sources)


@pytest.mark.parametrize("name", ["gpt2", "mine"])
def test_a_name_cannot_be_taken(name):
    with pytest.raises(ValueError, match=f"has the name '{name}', but the names are 'gpt2', "):
        patterns.get(Pattern(name, ("[a-z]",)))


# The object


@pytest.mark.parametrize("pattern", [NAMED["gpt2"], WORDS, Pattern(None, ("[a-z]", "b"), False)])
def test_copies_are_equal_and_work(pattern):
    expected = reference.split("I like it", pattern)
    for twin in (pickle.loads(pickle.dumps(pattern)), copy.deepcopy(pattern)):
        assert twin == pattern
        assert hash(twin) == hash(pattern)
        assert reference.split("I like it", twin) == expected


def test_a_pickle_holds_no_compiled_pattern():
    pattern = Pattern("gpt2", NAMED["gpt2"].sources)
    before = pickle.dumps(pattern)
    assert pattern.regexes is pattern.regexes
    assert pickle.dumps(pattern) == before


def test_sources_are_compiled_at_first_use():
    pattern = Pattern(None, ("[a",))
    with pytest.raises(ValueError, match="a set without its end"):
        pattern.regexes  # noqa: B018


def test_a_pattern_cannot_be_changed():
    with pytest.raises(AttributeError):
        NAMED["gpt2"].sources = ("a",)


def test_repr():
    assert repr(NAMED["gpt4"]) == "<Pattern cl100k>"
    assert repr(WORDS) == "<Pattern words>"
    own = Pattern(None, ("[a-z]",), False)
    assert eval(repr(own)) == own


# What the families do, worked out by hand: the pieces of a text, with | between them.

ALL = " ".join(FAMILIES)
SPLITS = [
    # Contractions: gpt2 knows them in lower case, deepseek_v3 not at all ("'ll" is a mark with
    # ASCII letters); o200k leaves them with the word; U+017F is an s with case ignored.
    ("I'll we'VE", {
        "gpt2": "I|'ll| we|'|VE",
        "cl100k llama3 qwen2 deepseek_v3": "I|'ll| we|'VE",
        "o200k": "I'll| we'VE",
    }),
    ("he'ſ it'st", {
        "gpt2": "he|'|ſ| it|'s|t",
        "cl100k llama3 qwen2": "he|'ſ| it|'s|t",
        "o200k": "he'ſ| it's|t",
        "deepseek_v3": "he|'|ſ| it|'st",
    }),
    ("'s 'tis", {
        "gpt2": "'s| '|tis",
        "cl100k llama3 qwen2": "'s| '|tis",
        "o200k deepseek_v3": "'s| '|tis",
    }),
    ("a'sx a'tx a'rex a'vex a'mx a'llx a'dx", {
        "gpt2 cl100k llama3 qwen2": "a|'s|x| a|'t|x| a|'re|x| a|'ve|x| a|'m|x| a|'ll|x| a|'d|x",
        "o200k": "a's|x| a't|x| a're|x| a've|x| a'm|x| a'll|x| a'd|x",
        "deepseek_v3": "a|'sx| a|'tx| a|'rex| a|'vex| a|'mx| a|'llx| a|'dx",
    }),
    ("A'Sx A'TX a'Rex a'VEx A'MX A'lLx A'Dx A'Nx", {
        "gpt2": "A|'|Sx| A|'|TX| a|'|Rex| a|'|VEx| A|'|MX| A|'|lLx| A|'|Dx| A|'|Nx",
        "cl100k llama3 qwen2":
            "A|'S|x| A|'T|X| a|'Re|x| a|'VE|x| A|'M|X| A|'lL|x| A|'D|x| A|'Nx",
        "o200k": "A'S|x| A'T|X| a'Re|x| a'VE|x| A'M|X| A'lL|x| A'D|x| A|'Nx",
        "deepseek_v3": "A|'Sx| A|'TX| a|'Rex| a|'VEx| A|'MX| A|'lLx| A|'Dx| A|'Nx",
    }),
    ("x's'", {
        "gpt2 cl100k llama3 qwen2 deepseek_v3": "x|'s|'",
        "o200k": "x's|'",
    }),
    # Digits, and what is a number without being a digit.
    ("12345 a1234", {
        "gpt2": "12345| a|1234",
        "cl100k llama3 o200k deepseek_v3": "123|45| a|123|4",
        "qwen2": "1|2|3|4|5| a|1|2|3|4",
    }),
    ("½Ⅷ٣1", {
        "gpt2": "½Ⅷ٣1",
        "cl100k llama3 o200k deepseek_v3": "½Ⅷ٣|1",
        "qwen2": "½|Ⅷ|٣|1",
    }),
    # Runs of spaces: the last one goes to the word, at the end of the text the run stays whole.
    ("a   b", {ALL: "a|  | b"}),
    ("a   ", {ALL: "a|   "}),
    ("   a", {ALL: "  | a"}),
    ("a  1", {
        "gpt2": "a| | 1",
        "cl100k llama3 qwen2 o200k": "a| | |1",
        # Digits are cut out first, so here the run is at an end.
        "deepseek_v3": "a|  |1",
    }),
    ("a 中  b", {
        "gpt2 cl100k llama3 qwen2 o200k": "a| 中| | b",
        "deepseek_v3": "a| |中| | b",
    }),
    ("a\xa0\xa0b", {
        "gpt2": "a|\xa0|\xa0|b",
        "cl100k llama3 qwen2 o200k deepseek_v3": "a|\xa0|\xa0b",
    }),
    ("\ta", {
        "gpt2": "\t|a",
        "cl100k llama3 qwen2 o200k deepseek_v3": "\ta",
    }),
    # Line ends.
    ("a \r\n\r\n b", {ALL: "a| \r\n\r\n| b"}),
    ("a\n  b", {
        "gpt2": "a|\n | b",
        "cl100k llama3 qwen2 o200k deepseek_v3": "a|\n| | b",
    }),
    ("a\n\n", {ALL: "a|\n\n"}),
    ("\n\n  ", {
        # White space at the end of the text is one piece for cl100k.
        "gpt2 cl100k": "\n\n  ",
        "llama3 qwen2 o200k deepseek_v3": "\n\n|  ",
    }),
    ("\r\na", {
        "gpt2": "\r|\n|a",
        "cl100k llama3 qwen2 o200k deepseek_v3": "\r\n|a",
    }),
    ("b.\n\n/c", {
        "gpt2": "b|.|\n|\n|/|c",
        "cl100k llama3 qwen2 deepseek_v3": "b|.\n\n|/c",
        "o200k": "b|.\n\n/|c",
    }),
    # Signs.
    ("!!a?b $5", {
        "gpt2": "!!|a|?|b| $|5",
        "cl100k llama3 qwen2 o200k deepseek_v3": "!!|a|?b| $|5",
    }),
    ("€a", {
        "gpt2 deepseek_v3": "€|a",
        "cl100k llama3 qwen2 o200k": "€a",
    }),
    # Combining marks are letters for o200k and deepseek_v3 only.
    ("e\u0301a ne\u0301", {
        "gpt2": "e|\u0301|a| ne|\u0301",
        "cl100k llama3 qwen2": "e|\u0301a| ne|\u0301",
        "o200k deepseek_v3": "e\u0301a| ne\u0301",
    }),
    ("नमस्ते", {
        "gpt2": "नमस|\u094d|त|\u0947",
        "cl100k llama3 qwen2": "नमस|\u094dत|\u0947",
        "o200k deepseek_v3": "नमस्ते",
    }),
    # o200k cuts where a small letter meets a capital one; a title-case letter counts as capital.
    ("camelCase ABCdef ǅx xǅ", {
        "gpt2 cl100k llama3 qwen2 deepseek_v3": "camelCase| ABCdef| ǅx| xǅ",
        "o200k": "camel|Case| ABCdef| ǅx| x|ǅ",
    }),
    # deepseek_v3 cuts Chinese and Japanese out.
    ("是abcかな、カ1", {
        "gpt2": "是abcかな|、|カ|1",
        "cl100k llama3 qwen2 o200k": "是abcかな|、カ|1",
        "deepseek_v3": "是|abc|かな|、|カ|1",
    }),
    ("\u3040b ヿb 一b 龥龦b", {
        "gpt2": "\u3040|b| ヿb| 一b| 龥龦b",
        "cl100k llama3 qwen2 o200k": "\u3040b| ヿb| 一b| 龥龦b",
        "deepseek_v3": "\u3040|b| |ヿ|b| |一|b| |龥|龦b",
    }),
    # White space and what is none, beyond the usual.
    ("a\x85 b", {ALL: "a|\x85| b"}),
    ("a\u2028 b", {ALL: "a|\u2028| b"}),
    ("a\u180e\u200b\ufeff b", {
        "gpt2 cl100k llama3 qwen2 o200k": "a|\u180e\u200b\ufeff| b",
        # Cf is neither a sign nor a letter: three gaps in one, and a piece of its own.
        "deepseek_v3": "a|\u180e\u200b\ufeff| b",
    }),
    ("a\x1c\x1f b", {ALL: "a|\x1c\x1f| b"}),
    ("\x1cb", {
        "gpt2": "\x1c|b",
        "cl100k llama3 qwen2 o200k deepseek_v3": "\x1cb",
    }),
    # New letters of Unicode 16, which older tables lack.
    ("\u1c89\u1c8a a", {
        "gpt2 cl100k llama3 qwen2 o200k deepseek_v3": "\u1c89\u1c8a| a",
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        pytest.param(text, name, expected.split("|"), id=f"{name}-{ascii(text)}")
        for text, by_families in SPLITS
        for families, expected in by_families.items()
        for name in families.split()
    ],
)
def test_splits(text, name, expected):
    assert pieces(text, name) == expected


def test_each_split_is_written_for_each_family():
    for _, by_families in SPLITS:
        assert sorted(" ".join(by_families).split()) == sorted(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_nothing_is_lost(name, text):
    assert b"".join(reference.split(text, name)) == text.encode()
    assert all(reference.split(text, name))


# Words


def test_words_are_what_str_split_gives():
    text = "".join(f"{chr(code)}x" for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert pieces(text, WORDS) == text.split()


@given(st.text("ab \t\n\x1c\x1f\x85\xa0\u180e\u200b\u2028\u3000\ufeff"))
def test_words(text):
    assert pieces(text, WORDS) == text.split()


# Other implementations, on characters whose category is the same in their Unicode and in ours

TRICKY = (
    "aZsSſtTmdlLvrekKéßǅʰÀあ中是\u0301\u093e\u0903\u20dd0٣Ⅷ½'\"’.,!/_^$€+-\\]\x00\u200b\u200d🐈\ufeff"
    " \t\r\n\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2028\u3000"
)
PARTS = [*TRICKY, "'s", "'ſ", "'LL", "'re", "'Ve", "\r\n", "  ", "   ", "\n\n", "ab", "Ab", "123"]


def category_of_all():
    """The category of each code point by our table."""
    categories = [""] * 0x110000
    for name in unicode.NAMES:
        if len(name) == 2:
            for first, last in unicode.ranges(name):
                categories[first : last + 1] = [name] * (last + 1 - first)
    return categories


@pytest.fixture(scope="module")
def shared_characters():
    """Characters whose category has been the same from this Python's Unicode on."""
    categories = category_of_all()
    return [
        chr(code)
        for code, name in enumerate(categories)
        if name not in ("Cn", "Co", "Cs") and unicodedata.category(chr(code)) == name
        # The one that Unicode 17 has moved.
        if code != 0x295
    ]


def noise(characters, seed):
    random = Random(seed)
    parts = PARTS if seed % 2 else PARTS + random.choices(characters, k=len(PARTS))
    return "".join(random.choices(parts, k=30))


def for_others(source):
    """`\\Z`, the very end, is spelled `\\z` elsewhere."""
    return source.replace(r"\Z", r"\z")


@pytest.mark.parametrize("name", FAMILIES)
def test_splits_are_those_of_the_regex_library(name, shared_characters):
    regex = pytest.importorskip("regex")
    for seed in range(300):
        text = noise(shared_characters, seed)
        parts = [text]
        for source in NAMED[name].sources:
            cut = [regex.split(f"({source})", part) for part in parts]
            parts = [piece for part in cut for piece in part if piece]
        assert pieces(text, name) == parts


@pytest.mark.parametrize("name", FAMILIES)
def test_splits_are_those_of_tokenizers(name, shared_characters):
    tokenizers = pytest.importorskip("tokenizers")
    splitters = [
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(for_others(source)), "isolated")
        for source in NAMED[name].sources
    ]
    splitter = tokenizers.pre_tokenizers.Sequence(splitters)
    for seed in range(300):
        text = noise(shared_characters, seed)
        assert pieces(text, name) == [piece for piece, _ in splitter.pre_tokenize_str(text)]


def tokens_of_tiktoken(source, texts):
    """The pieces of each text: in a vocabulary of all parts of the texts, each is one token."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    for text in texts:
        for start in range(len(text)):
            for end in range(start + 1, len(text) + 1):
                ranks.setdefault(text[start:end].encode(), len(ranks))
    encoding = tiktoken.Encoding("pieces", pat_str=source, mergeable_ranks=ranks, special_tokens={})
    return [encoding.decode_tokens_bytes(encoding.encode(text)) for text in texts]


@pytest.mark.parametrize("name", ["llama3", "qwen2"])
def test_splits_are_those_of_tiktoken(name, shared_characters):
    texts = [noise(shared_characters, seed)[:40] for seed in range(60)]
    (source,) = NAMED[name].sources
    expected = tokens_of_tiktoken(for_others(source), texts)
    assert [reference.split(text, name) for text in texts] == expected


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("gpt2", "r50k_base"), ("cl100k", "cl100k_base"), ("o200k", "o200k_base")],
)
def test_splits_are_those_of_the_encodings_of_tiktoken(
    name, encoding, shared_characters, monkeypatch
):
    openai_public = pytest.importorskip("tiktoken_ext.openai_public")
    # Only the pattern is wanted, not the vocabulary, which would be downloaded.
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})
    source = getattr(openai_public, encoding)()["pat_str"]
    texts = [noise(shared_characters, seed)[:40] for seed in range(60)]
    expected = tokens_of_tiktoken(source, texts)
    assert [reference.split(text, name) for text in texts] == expected


@pytest.mark.parametrize(
    ("name", "file"),
    [("qwen2", "qwen3.tokenizer.json"), ("deepseek_v3", "deepseek_v3.tokenizer.json")],
)
def test_sources_are_those_of_the_files(name, file, data):
    content = json.loads((data / "vocab" / file).read_text(encoding="utf-8"))
    steps = content["pre_tokenizer"]["pretokenizers"]
    sources = tuple(step["pattern"]["Regex"] for step in steps if step["type"] == "Split")
    # The files spell some characters that are escapes here.
    expected = [regex.pattern for regex in NAMED[name].regexes]
    assert [regex.pattern for regex in Pattern(None, sources).regexes] == expected


# Printable bytes


def test_printable_bytes():
    assert len(set(patterns.PRINTABLE)) == 256
    assert all(char.isprintable() and not char.isspace() for char in patterns.PRINTABLE)
    assert patterns.to_printable(b" a\n\x00\xff\xad\xa0\x7f!") == "ĠaĊĀÿŃłġ!"
    assert patterns.to_printable("Grüße".encode()) == "GrÃ¼ÃŁe"
    assert patterns.to_printable(memoryview(b" ")) == patterns.PRINTABLE[32] == "\u0120"


@given(st.binary())
def test_printable_bytes_come_back(data):
    assert patterns.from_printable(patterns.to_printable(data)) == data


def test_every_byte_comes_back():
    data = bytes(range(256))
    assert patterns.to_printable(data) == "".join(patterns.PRINTABLE)
    assert patterns.from_printable("".join(patterns.PRINTABLE)) == data


@pytest.mark.parametrize(
    ("text", "char", "position"),
    [("a b", " ", 1), ("é€é", "€", 1), ("\xad", "\xad", 0), ("aĠ\u0144", "\u0144", 2)],
)
def test_other_characters_are_refused_with_the_place(text, char, position):
    with pytest.raises(ValueError) as caught:
        patterns.from_printable(text)
    assert str(caught.value).startswith(f"{char!r} at position {position} of {text!r} is none of")


@pytest.mark.parametrize("value", ["a", 3, None])
def test_printable_is_for_bytes(value):
    with pytest.raises(TypeError):
        patterns.to_printable(value)


def test_the_order_of_the_base_alphabet():
    order = patterns.GPT2_BYTE_ORDER
    assert sorted(order) == list(range(256))
    assert [patterns.PRINTABLE[byte] for byte in order] == sorted(patterns.PRINTABLE)
    assert order[:3] == b'!"#'
    assert order[-1] == 0xAD


def test_the_order_is_that_of_tokenizers():
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert patterns.to_printable(patterns.GPT2_BYTE_ORDER) == "".join(alphabet)
