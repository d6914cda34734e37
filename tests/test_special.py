"""Special tokens and reserved ids: found only where they are allowed, never out of plain text."""

import re
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import bytes_of
from growth import growth
from strategies import FLAGS, SEEDS, SPELLINGS, special_documents, texts
from tokbpe import Tokenizer, decode_stream, engines, fast, reference
from tokbpe.fast.special import WINDOW_SIZE
from tokbpe.vocabulary import Vocabulary

pytestmark = pytest.mark.core

OVERLAPPING = ["<|a|>", "<|a|>b", "<|a"]
TEXT = "<|a|>b<|a|>c<|a"


def parts(engine, data, spellings):
    """What is cut out, special tokens in tuples."""
    found = engine.cut_special(data.encode(), {name.encode(): 7 for name in spellings})
    return [(part.decode(),) if id == 7 else part.decode() for part, id in found]


# Cutting


@pytest.mark.parametrize("seed", range(6))
def test_longest_at_the_leftmost_place(engine, seed):
    order = Random(seed).sample(OVERLAPPING, 3)
    assert parts(engine, TEXT, order) == [("<|a|>b",), ("<|a|>",), "c", ("<|a",)]


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (["<|a"], [("<|a",), "|>b", ("<|a",), "|>c", ("<|a",)]),
        (["<|a|>"], [("<|a|>",), "b", ("<|a|>",), "c<|a"]),
        (["<|a|>b"], [("<|a|>b",), "<|a|>c<|a"]),
        (["<|a|>b", "<|a"], [("<|a|>b",), ("<|a",), "|>c", ("<|a",)]),
        ([], [TEXT]),
    ],
)
def test_only_the_allowed_ones_count(engine, allowed, expected):
    assert parts(engine, TEXT, allowed) == expected


@pytest.mark.parametrize(
    ("text", "spellings", "expected"),
    [
        ("aaaaa", ["aa"], [("aa",), ("aa",), "a"]),
        ("aaaaa", ["aa", "aaa"], [("aaa",), ("aa",)]),
        ("aaab", ["aab", "aa"], [("aa",), "ab"]),  # leftmost, though a longer one is further on
        ("abcabd", ["abcabx", "bc"], ["a", ("bc",), "abd"]),  # the first one ends too early
        ("ab", ["abc"], ["ab"]),
        ("abcd", ["abcde", "bcd", "cd"], ["a", ("bcd",)]),
        ("", ["a"], []),
    ],
)
def test_few_symbols(engine, text, spellings, expected):
    assert parts(engine, text, spellings) == expected


@given(spellings=st.lists(SPELLINGS, min_size=1, max_size=5, unique=True), data=st.data())
def test_cutting_by_its_definition(spellings, data):
    document = bytes_of(data.draw(special_documents(spellings)))
    special = {spelling.encode(): number for number, spelling in enumerate(spellings)}
    expected, rest = [], b""
    place = 0
    while place < len(document):
        here = [name for name in special if document.startswith(name, place)]
        if here:
            longest = max(here, key=len)
            expected += [(rest, None)] * bool(rest) + [(longest, special[longest])]
            rest = b""
            place += len(longest)
        else:
            rest += document[place : place + 1]
            place += 1
    expected += [(rest, None)] * bool(rest)
    for name in engines.NAMES:
        assert engines.get(name).cut_special(document, special) == expected


# Tokenizers


@pytest.fixture(params=engines.NAMES)
def engine_name(request, monkeypatch):
    monkeypatch.setenv(engines.VARIABLE, request.param)
    return request.param


def test_overlapping_special_tokens(engine_name):
    for seed in range(6):
        order = Random(seed).sample(OVERLAPPING, 3)
        tokenizer = Tokenizer.from_bytes(special_tokens=order)
        id = tokenizer.special_tokens
        assert tokenizer.encode(TEXT, allowed_special="all") == [
            id["<|a|>b"], id["<|a|>"], ord("c"), id["<|a"]
        ]  # fmt: skip
        assert tokenizer.encode(TEXT, allowed_special={"<|a"}) == [
            id["<|a"], *b"|>b", id["<|a"], *b"|>c", id["<|a"]
        ]  # fmt: skip
        assert tokenizer.encode(TEXT) == list(TEXT.encode())


UNUSUAL = [
    " ", "  ", "a b", "\n", "\r\n", "\t", "\x00", "a\x00b", "🐈", "🐈\u200d⬛", "é", "e\u0301",
    "\ufeff", ".*", "[a]", "(a)", "a|b", "^", "$", "\\", "\\d",
    "{2}", "a+?", "(?i)", "#", "-", "&&", "<UNK>", "</w>", "a",
]  # fmt: skip


@pytest.mark.parametrize("method", ["byte", "bpe", "char"])
def test_unusual_spellings(engine_name, method):
    corpus = "".join(UNUSUAL) + "plain"
    reserved = ["BOS"]
    tokenizer = Tokenizer(
        [corpus, "plain"], method=method, special_tokens=UNUSUAL, reserved=reserved
    )
    known = "plin"
    for spelling, id in tokenizer.special_tokens.items():
        assert tokenizer.vocabulary[id] == spelling.encode()
        text = f"{known}{spelling}{spelling}{known}"
        ids = tokenizer.encode(text, allowed_special=[spelling])
        plain = tokenizer.encode(known)
        assert ids == [*plain, id, id, *plain]
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode(ids, skip_special=True) == known * 2
        assert tokenizer.decode_bytes(ids) == text.encode()
        assert tokenizer.encode_bytes(text.encode(), allowed_special=[spelling]) == ids


@pytest.mark.parametrize("data", [b"\xff<|e|>\xff", b"\xe4<|e|>\xb8", b"\xf0\x9f\x90<|e|>\x88"])
def test_special_tokens_between_bytes_that_are_no_utf8(engine_name, data):
    tokenizer = Tokenizer(data, method="bpe", special_tokens=["<|e|>"], pattern="gpt2")
    before, behind = data.split(b"<|e|>")
    ids = tokenizer.encode_bytes(data, allowed_special="all")
    assert ids == [*before, 256, *behind]
    assert tokenizer.decode_bytes(ids) == data
    assert 256 not in tokenizer.encode_bytes(data)


def test_pattern_sees_the_parts_as_texts_of_their_own(engine_name):
    """cl100k cuts white space at the very end of a text otherwise than inside of it."""
    tokenizer = Tokenizer("x", method="bpe", special_tokens=["<|e|>"], pattern="cl100k")
    engine = engines.get(engine_name)
    counts = engine.count_pieces("a  <|e|>  b", "cl100k", {b"<|e|>": 0})
    assert counts == {b"a": 1, b"  ": 1, b" ": 1, b" b": 1}
    assert tokenizer.encode("a  <|e|>  b", allowed_special="all").count(256) == 1


# In training


@pytest.mark.parametrize("pattern", [None, "gpt2"])
def test_fifty_copies_alone_give_no_merge(engine_name, pattern):
    for corpus in ("<|e|>" * 50, ["<|e|>" * 50, "x"]):
        tokenizer = Tokenizer(corpus, method="bpe", special_tokens=["<|e|>"], pattern=pattern)
        assert (len(tokenizer.merges), tokenizer.vocab_size) == (0, 257)


@pytest.mark.parametrize("method", ["byte", "char", "word"])
def test_fifty_copies_alone_give_no_alphabet(engine_name, method):
    with pytest.raises(ValueError, match="to learn from, special tokens apart"):
        Tokenizer("<|e|>" * 50, method=method, special_tokens=["<|e|>"])


@pytest.mark.parametrize("corpus", ["a<|e|>b" * 9, ["a<|e|>b"] * 9, "<|e|>".join("ab" * 9)])
@pytest.mark.parametrize("method", ["bpe", "word"])
def test_nothing_is_learned_across(engine_name, method, corpus):
    tokenizer = Tokenizer(corpus, method=method, special_tokens=["<|e|>"], minimum_pair_frequency=1)
    learned = tokenizer.vocabulary[-len(tokenizer.merges) :] if len(tokenizer.merges) else ()
    assert not [piece for piece in learned if b"ab" in piece or re.search(rb"[<|e>]", piece)]


def test_what_is_not_declared_is_no_boundary(engine_name):
    tokenizer = Tokenizer("a<|e|>b" * 9, method="bpe", special_tokens=["<|f|>"])
    assert any(b"<|" in piece for piece in tokenizer.vocabulary[257:])


@pytest.mark.parametrize("method", ["byte", "char"])
def test_special_tokens_are_no_part_of_the_alphabet(engine_name, method):
    tokenizer = Tokenizer("ab<|e|>ab", method=method, special_tokens=["<|e|>"])
    assert tokenizer.vocab_size == 3 + (method == "char")


def test_training_text_encodes_as_training_left_it(engine_name):
    tokenizer = Tokenizer(
        ["low<|e|>lowlow"], method="bpe", special_tokens=["<|e|>"], vocabulary_size=259
    )
    assert tokenizer.vocabulary[256:] == (b"<|e|>", b"lo", b"low")
    assert tokenizer.encode("low<|e|>lowlow", allowed_special="all") == [258, 256, 258, 258]


# Layout


@pytest.mark.parametrize(
    ("special_ids", "specials", "byte", "merge"),
    [("base", (256, 257), 97, 258), ("first", (0, 1), 99, 258), ("end", (257, 258), 97, 256)],
)
def test_layout(engine_name, special_ids, specials, byte, merge):
    tokenizer = Tokenizer(
        "abab",
        method="bpe",
        special_tokens=["<|e|>"],
        reserved=["EOS"],
        special_ids=special_ids,
        vocabulary_size=259,
    )
    assert (tokenizer.special_tokens["<|e|>"], tokenizer.eos_id) == specials
    assert tokenizer.encode("aab<|e|>", allowed_special="all", eos=True) == [byte, merge, *specials]
    assert tokenizer.merges.tolist() == [[byte, byte + 1]]
    assert tokenizer.decode([byte, merge, *specials]) == "aab<|e|><|EOS|>"


@pytest.mark.parametrize("method", ["byte", "bpe", "char", "word"])
@pytest.mark.parametrize("special_ids", ["base", "end"])
def test_layout_of_each_method(engine_name, method, special_ids):
    tokenizer = Tokenizer(
        "ab ab", method=method, special_tokens=["<|e|>"], reserved=["EOS"], special_ids=special_ids
    )
    plain = Tokenizer("ab ab", method=method)
    ids = tokenizer.encode("ab<|e|>ab", allowed_special=["<|e|>"], eos=True)
    assert tokenizer.vocab_size == plain.vocab_size + 2
    assert ids.count(tokenizer.special_tokens["<|e|>"]) == 1
    assert ids[-1] == tokenizer.eos_id
    assert len(ids) == 2 * len(plain.encode("ab")) + 2
    assert tokenizer.decode(ids, skip_special=True).replace(" ", "") == "abab"


def test_what_is_skipped(engine_name):
    """Special tokens and reserved ids, but no added tokens that are not special."""
    vocabulary = Vocabulary(
        "bpe",
        tuple(bytes([byte]) for byte in range(256)),
        added_tokens={"<t>": 300},
        special_tokens={"<s>": 301},
        reserved={"EOS": 302},
    )
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    ids = tokenizer.encode("a<t><s>b", allowed_special="all", eos=True)
    assert ids == [97, 300, 301, 98, 302]
    assert tokenizer.decode(ids) == "a<t><s>b<|EOS|>"
    assert tokenizer.decode(ids, skip_special=True) == "a<t>b"
    assert tokenizer.decode_bytes(ids) == b"a<t><s>b"
    assert tokenizer.decode_bytes(ids, skip_special=True) == b"a<t>b"
    assert "".join(decode_stream(tokenizer, ids, skip_special=True)) == "a<t>b"


# Plain text


@st.composite
def plain_cases(draw):
    """A tokenizer with special tokens, and text made of these, of parts, and of markers."""
    names = draw(st.lists(st.sampled_from(["BOS", "EOS", "A"]), max_size=3, unique=True))
    spellings = draw(st.lists(SPELLINGS, min_size=1, max_size=4, unique=True))
    documents = special_documents([*spellings, *(f"<|{name}|>" for name in names)])
    tokenizer = Tokenizer(
        [*draw(st.lists(documents | texts("ab"), max_size=3)), "x"],
        method="bpe",
        vocabulary_size=256 + len(spellings) + len(names) + draw(st.integers(0, 8)),
        minimum_pair_frequency=1,
        special_tokens=spellings,
        reserved=names,
        special_ids=draw(st.sampled_from(["base", "first", "end"])),
        pattern=draw(st.sampled_from([None, "gpt2"])),
        engine=draw(st.sampled_from(engines.NAMES)),
    )
    return tokenizer, draw(documents)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the corpus gave")
@given(case=plain_cases(), seed=SEEDS)
def test_plain_text_never_yields_a_special_id(case, seed):
    tokenizer, document = case
    data = bytes_of(document)
    others = {*tokenizer.special_tokens.values(), *tokenizer.reserved.values()}
    ids = tokenizer.encode_bytes(data)
    assert others.isdisjoint(ids)
    assert tokenizer.decode_bytes(ids) == tokenizer.decode_bytes(ids, skip_special=True) == data
    if isinstance(document, str):
        assert tokenizer.encode(document) == ids
        assert tokenizer.decode(ids) == tokenizer.decode(ids, skip_special=True) == document
    some = Random(seed).sample(list(tokenizer.special_tokens), 1)
    allowed = tokenizer.encode_bytes(data, allowed_special=some)
    assert others.intersection(allowed) <= {tokenizer.special_tokens[some[0]]}
    assert allowed.count(tokenizer.special_tokens[some[0]]) == data.count(some[0].encode())
    every = tokenizer.encode_bytes(data, allowed_special="all")
    assert not set(tokenizer.reserved.values()).intersection(every)
    assert tokenizer.decode_bytes(every) == data


# What is refused


@pytest.mark.parametrize("option", ["special_tokens", "reserved"])
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([""], ValueError, r"\[0\] is empty"),
        (["a", ""], ValueError, r"\[1\] is empty"),
        (["a", "b", "a"], ValueError, "holds 'a' twice"),
        ("<|e|>", TypeError, "must be a list of texts, not str"),
        (b"ab", TypeError, "must be a list of texts, not bytes"),
        (None, TypeError, "must be a list of texts, not NoneType"),
        (5, TypeError, "must be a list of texts, not int"),
        ({"a"}, TypeError, "must be a list of texts, not set"),
        ({"a": 1}, TypeError, "must be a list of texts, not dict"),
        ([b"a"], TypeError, r"\[0\] must be str, not bytes"),
        (["a", None], TypeError, r"\[1\] must be str, not NoneType"),
        (["a\ud800"], UnicodeEncodeError, "surrogates not allowed"),
    ],
)
@pytest.mark.parametrize(
    "make", [Tokenizer.from_bytes, lambda **options: Tokenizer("ab", **options)]
)
def test_names_that_are_refused(make, option, value, error, message):
    with pytest.raises(error, match=message):
        make(**{option: value})


@pytest.mark.parametrize("value", ["last", "", "BASE"])
def test_layout_that_is_refused(value):
    for make in (Tokenizer.from_bytes, lambda **options: Tokenizer("ab", **options)):
        with pytest.raises(ValueError, match="special_ids must be one of 'base', 'first', 'end'"):
            make(special_ids=value)
        with pytest.raises(TypeError, match="special_ids must be one of"):
            make(special_ids=5)
        assert make(special_ids=None) == make(special_ids="base")


NO_SET = 'allowed_special must be a set of special tokens or "all", not '


@pytest.mark.parametrize(
    ("allowed", "error", "message"),
    [
        ("<|e|>", ValueError, "allowed_special is a set of special tokens or \"all\", not '<|e|>'"),
        ("", ValueError, "allowed_special is a set"),
        (None, TypeError, NO_SET + "NoneType"),
        (5, TypeError, NO_SET + "int"),
        (True, TypeError, NO_SET + "bool"),
        (b"all", TypeError, NO_SET + "bytes"),
        (iter(["<|e|>"]), TypeError, NO_SET + "list_iterator"),
        (["<|e|>", "<|f|>"], ValueError, "'<|f|>' is no special token; there are ['<|e|>']"),
        (["BOS"], ValueError, "'BOS' is no special token"),
        (["all"], ValueError, "'all' is no special token"),
        ([5], ValueError, "5 is no special token"),
        ([["<|e|>"]], ValueError, "is no special token"),
        ([b"<|e|>"], ValueError, "is no special token"),
    ],
)
def test_allowed_special_of_the_wrong_kind(allowed, error, message):
    tokenizer = Tokenizer.from_bytes(special_tokens=["<|e|>"], reserved=["BOS"])
    for call, text in ((tokenizer.encode, "a"), (tokenizer.encode_bytes, b"a")):
        with pytest.raises(error, match=re.escape(message)):
            call(text, allowed_special=allowed)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, dict.fromkeys])
def test_allowed_special_of_any_kind(kind):
    tokenizer = Tokenizer.from_bytes(special_tokens=["<|e|>", "<|f|>"])
    assert tokenizer.encode("<|e|><|f|>", allowed_special=kind(["<|f|>"])) == [*b"<|e|>", 257]
    assert tokenizer.encode("<|e|>", allowed_special=kind([])) == list(b"<|e|>")
    assert tokenizer.encode("<|e|>", allowed_special=tokenizer.special_tokens) == [256]


def test_a_special_token_and_a_reserved_id_of_one_name():
    tokenizer = Tokenizer.from_bytes(special_tokens=["<|EOS|>"], reserved=["EOS"])
    assert tokenizer.encode("<|EOS|>", allowed_special="all", eos=True) == [256, 257]
    assert tokenizer.decode([256, 257]) == "<|EOS|><|EOS|>"
    assert tokenizer.decode_bytes([256, 257]) == b"<|EOS|>"
    assert tokenizer.decode([256, 257], skip_special=True) == ""


def test_what_is_read_is_a_copy():
    tokenizer = Tokenizer.from_bytes(special_tokens=["<|e|>"], reserved=["EOS"])
    tokenizer.special_tokens.clear()
    tokenizer.reserved.clear()
    assert tokenizer.special_tokens == {"<|e|>": 256}
    assert tokenizer.reserved == {"EOS": 257}


@pytest.mark.parametrize("size", [20_000, 80_000])
def test_many_places_that_almost_match(engine, size):
    spelling = b"a" * 50 + b"b"
    text = b"a" * size
    assert engine.cut_special(text, {spelling: 1}) == [(text, None)]
    assert engine.cut_special(text + b"b", {spelling: 1}) == [(text[50:], None), (spelling, 1)]


# Long texts: the compiled search reads them in windows, each from its end, and in linear time

WIDTHS = [1, 7, WINDOW_SIZE - 1, WINDOW_SIZE, WINDOW_SIZE + 1, 3 * WINDOW_SIZE]


@pytest.mark.parametrize("width", WIDTHS)
def test_edges_of_windows(width):
    spelling = b"<" + b"-" * (width - 2) + b">" * (width > 1)
    for edge in (0, WINDOW_SIZE, 2 * WINDOW_SIZE, width):
        for place in range(max(edge - 2, 0), edge + 3):
            before, behind = b"a" * place, b"a" * (WINDOW_SIZE + 2 - place % 3)
            expected = [(before, None), (spelling, 1), (spelling, 1), (behind, None)]
            found = fast.cut_special(before + spelling * 2 + behind, {spelling: 1, b"b": 2})
            assert found == [(part, id) for part, id in expected if part]


@given(
    spellings=st.lists(st.text("ab ", min_size=1, max_size=9), min_size=1, max_size=5, unique=True),
    flags=st.lists(FLAGS, min_size=5, max_size=5),
    letters=st.sampled_from(["ab", "ab ", "aaaaab", "a  "]),
    seed=SEEDS,
)
@settings(max_examples=10)
def test_long_texts(spellings, flags, letters, seed):
    special = {spelling.encode(): number for number, spelling in enumerate(spellings)}
    flagged = dict(zip(special, flags))
    text = "".join(Random(seed).choices(letters, k=3 * WINDOW_SIZE))
    expected, found = (
        engine.cut_special(text, engine.special_table(special, flagged))
        for engine in (reference, fast)
    )
    assert found == expected


STRIP = ("lstrip", "rstrip")
# What is repeated, what is looked for, and the flags.
HOSTILE = {
    "a long one that never begins well": (b"b", {b"a" + b"b" * 5000: 1}, {}),
    "and a short one": (b"a", {b"a" * 5000 + b"b": 1, b"a": 2}, {}),
    "many beginnings": (b"<|a|>", {b"<|a%d|>" % number: number for number in range(1000)}, {}),
    "white space that is taken again and again": (
        b" ", {b" ": 1, b"  ": 2}, {b" ": ("rstrip",), b"  ": ("rstrip",)},
    ),
    "white space that is looked at again": (
        b" \t", {b" ": 1, b"\t": 2}, {b" ": STRIP, b"\t": STRIP},
    ),
    "no words": (b"a", {b"aa": 1, b"a": 2}, {b"aa": ("single_word",), b"a": ("single_word",)}),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", HOSTILE)
def test_growth_with_the_text(kind):
    """Four times the text takes about four times as long, and not sixteen times."""
    unit, special, flags = HOSTILE[kind]
    table = fast.special_table(special, flags)

    short, long = (unit * (size // len(unit)) for size in (200_000, 800_000))
    assert growth(lambda text: fast.cut_special(text, table), short, long, 10) < 10


def test_growth_with_the_longest_spelling():
    """It does not matter how long a spelling is that is not there."""

    short, long = (
        fast.special_table({b"a" * width + b"b": 1, b"a": 2, b"c" + b"a" * width: 3})
        for width in (500, 50_000)
    )
    text = b"a" * 200_000
    assert growth(lambda table: fast.cut_special(text, table), short, long, 10) < 10


SPELLING_SETS = {
    "one": lambda size: [b"a" * size + b"b"],
    "many": lambda size: [b"%d" % number + b"a" * 90 for number in range(size // 100)],
    "one long": lambda size: [b"a" * (size // 2), *(b"%d" % n for n in range(size // 10))],
    "in each other": lambda size: [b"a" * width for width in range(1, int((2 * size) ** 0.5))],
}


@pytest.mark.parametrize("kind", SPELLING_SETS)
def test_growth_of_tables(kind):
    """Four times the bytes in all spellings take about four times as long."""

    few, many = (
        {spelling: n for n, spelling in enumerate(SPELLING_SETS[kind](size))}
        for size in (200_000, 800_000)
    )
    assert growth(fast.special_table, few, many, 10) < 10


# Odd spellings


def test_spellings_of_a_subclass_of_bytes(engine):
    special = {np.bytes_(b"<e>"): 7}
    assert engine.cut_special(b"a<e>", special) == [(b"a", None), (b"<e>", 7)]
    assert engine.count_pieces(["a<e>a"], None, special) == {b"a": 2}


@pytest.mark.parametrize("special", [[], iter([(b"<e>", 1)]), "<e>"], ids=type)
def test_spellings_are_a_mapping(engine, special):
    with pytest.raises(TypeError, match="special tokens must be a mapping"):
        engine.cut_special(b"a<e>", special)


@pytest.mark.parametrize("document", ["a<e>", bytearray(b"a<e>"), memoryview(b"a<e>")], ids=type)
def test_documents_of_any_kind(engine, document):
    assert engine.cut_special(document, {b"<e>": 7}) == [(b"a", None), (b"<e>", 7)]
    assert engine.cut_special(document, None) == [(b"a<e>", None)]


def test_a_space_that_belongs_to_a_special_word(engine_name):
    tokenizer = Tokenizer("a b", method="word", special_tokens=[" ", "<e> "])
    ids = tokenizer.special_tokens
    assert tokenizer.decode([ids[" "]]) == " "
    assert tokenizer.decode([ids["<e> "], ids["<e> "]]) == "<e> <e> "
    assert tokenizer.decode(tokenizer.encode("a b")) == "a b"
