"""Where tokens stand in a text, and texts cut between tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import DATA, PATTERN_TEXTS
from tokbpe import Tokenizer, engines, methods
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

CORPUS = "low lower lowest  \n 你好 😀😀 naïve aaaa" * 3
SPECIAL = ["<s>", "é", "😀😀"]
RESERVED = ["BOS", "EOS"]
BYTES = tuple(bytes([byte]) for byte in range(256))
MADE = {
    "from_bytes": Tokenizer.from_bytes(special_tokens=SPECIAL, reserved=RESERVED),
    "gpt2": Tokenizer(
        CORPUS, method="bpe", pattern="gpt2", special_tokens=SPECIAL, reserved=RESERVED
    ),
    **{
        method: Tokenizer(
            CORPUS,
            method=method,
            special_tokens=SPECIAL,
            reserved=RESERVED,
            engine="reference" if method == "char" else "fast",
        )
        for method in ("byte", "bpe", "char", "word")
    },
}
TEXTS = st.lists(
    st.sampled_from(["low", " lower", "  ", "\n", "é", "你", "😀", "aaa", "x", "<s>", "naïve", " "])
    | PATTERN_TEXTS,
    max_size=8,
).map("".join)


def of_bytes(spans, data):
    """The character spans as they are defined, one token after another."""
    ends = np.cumsum([len(character.encode()) for character in data.decode()])
    starts = [0, *ends[:-1]]
    found = []
    for start, end in spans:
        touched = [n for n in range(len(ends)) if starts[n] < end and start < ends[n]]
        before = sum(ends <= start)
        found.append([touched[0], touched[-1] + 1] if touched else [before, before])
    return found


def known(tokenizer, text):
    """The text without bytes that the vocabulary lacks."""
    if tokenizer.method != "byte":
        return text
    return "".join(c for c in text if {*c.encode()} <= {*tokenizer.vocabulary_bytes})


@given(data=st.data(), allowed=st.sampled_from([(), "all", ("é",)]), framed=st.booleans())
def test_spans(data, allowed, framed):
    tokenizer = MADE[data.draw(st.sampled_from(sorted(MADE)))]
    text = known(tokenizer, data.draw(TEXTS))
    options = {"allowed_special": allowed, "bos": framed, "eos": framed}
    ids, byte_spans, character_spans = tokenizer.encode_with_offsets(text, **options)
    utf8 = text.encode()
    assert ids == tokenizer.encode(text, **options)
    assert byte_spans.dtype == character_spans.dtype == np.int64
    assert byte_spans.shape == character_spans.shape == (len(ids), 2)
    if framed:
        assert byte_spans[[0, -1]].tolist() == [[0, 0], [len(utf8)] * 2]
    assert character_spans.tolist() == of_bytes(byte_spans.tolist(), utf8)
    again = tokenizer.encode_bytes_with_offsets(utf8, **options)
    assert again.ids == ids and again.byte_spans.tolist() == byte_spans.tolist()
    check_bytes(tokenizer, ids, byte_spans.tolist(), utf8)


@given(data=st.data())
def test_spans_of_any_bytes(data):
    tokenizer = MADE[data.draw(st.sampled_from(sorted(MADE.keys() - {"byte"})))]
    document = data.draw(DATA)
    ids, spans = tokenizer.encode_bytes_with_offsets(document, allowed_special="all")
    assert ids == tokenizer.encode_bytes(document, allowed_special="all")
    check_bytes(tokenizer, ids, spans.tolist(), document)


def check_bytes(tokenizer, ids, spans, document):
    """Each span holds the bytes of its token; between two there is white space at most."""
    place = 0
    for id, (start, end) in zip(ids, spans):
        between = document[place:start]
        if tokenizer.method == "word":
            assert not between.decode("utf-8", "surrogateescape").strip()
        else:
            assert between == b""
        covered = document[start:end]
        if id == 0 and tokenizer.method in ("char", "word"):
            assert len(covered.decode("utf-8", "surrogateescape")) == 1
        elif tokenizer.method == "word" and id not in tokenizer.special_tokens.values():
            assert covered == tokenizer.id_to_piece(id).removesuffix(b" ")
        else:
            assert covered == tokenizer.id_to_piece(id)
        place = end
    rest = document[place:]
    if tokenizer.method == "word":
        assert not rest.decode("utf-8", "surrogateescape").strip()
    else:
        assert rest == b""


@pytest.mark.parametrize("engine", engines.NAMES)
def test_tokens_that_split_characters(engine):
    tokenizer = Tokenizer.from_bytes(engine=engine)
    ids, byte_spans, character_spans = tokenizer.encode_with_offsets("é😀")
    assert ids == [*"é😀".encode()]
    assert byte_spans.tolist() == [[n, n + 1] for n in range(6)]
    assert character_spans.tolist() == [[0, 1]] * 2 + [[1, 2]] * 4


def test_no_tokens():
    for tokenizer in MADE.values():
        for text in ("", " \n") if tokenizer.method == "word" else ("",):
            ids, byte_spans, character_spans = tokenizer.encode_with_offsets(text)
            assert ids == [] and byte_spans.shape == character_spans.shape == (0, 2)


def test_lone_surrogates():
    tokenizer = MADE["bpe"]
    with pytest.raises(UnicodeEncodeError) as raised:
        tokenizer.encode_with_offsets("ab\ud83d")
    assert raised.value.start == 2
    _, byte_spans, character_spans = tokenizer.encode_with_offsets("\ud83da", errors="replace")
    assert byte_spans[-1].tolist() == [3, 4] and character_spans[-1].tolist() == [1, 2]


def test_what_is_no_text():
    tokenizer = MADE["bpe"]
    with pytest.raises(TypeError, match="encode takes str, not bytes"):
        tokenizer.encode_with_offsets(b"low")
    with pytest.raises(TypeError, match="encode_bytes takes bytes, not str"):
        tokenizer.encode_bytes_with_offsets("low")
    with pytest.raises(ValueError, match="errors must be one of"):
        tokenizer.encode_with_offsets("low", errors="ignore")


def test_a_byte_that_is_not_known_is_named_with_its_place_in_the_document():
    tokenizer = Tokenizer("abc", special_tokens=["<s>"])
    for call in (tokenizer.encode_with_offsets, tokenizer.encode):
        with pytest.raises(ValueError, match="byte 0x78 at byte position 5"):
            call("a<s>bxc", allowed_special="all")


# What imported vocabularies have


def imported(**parts):
    return Tokenizer.from_vocabulary(
        Vocabulary("bpe", BYTES, np.array([[108, 111], [32, 256]], np.uint32), **parts)
    )


def spans_of(tokenizer, text, **options):
    ids, byte_spans, character_spans = tokenizer.encode_with_offsets(text, **options)
    assert ids == tokenizer.encode(text, **options)
    assert character_spans.tolist() == of_bytes(byte_spans.tolist(), text.encode())
    return ids, byte_spans.tolist()


def test_tokens_that_always_match():
    tokenizer = imported(added_tokens={"<t>": 300})
    assert spans_of(tokenizer, "lo<t>é") == ([256, 300, 195, 169], [[0, 2], [2, 5], [5, 6], [6, 7]])


def test_white_space_that_a_token_takes_belongs_to_it():
    tokenizer = imported(
        added_tokens={"<t>": 300},
        special_tokens={"<s>": 301},
        token_flags={"<t>": ("lstrip",), "<s>": ("rstrip",)},
    )
    assert spans_of(tokenizer, "lo  <t> x") == (
        [256, 300, 32, 120],
        [[0, 2], [2, 7], [7, 8], [8, 9]],
    )
    assert spans_of(tokenizer, "x<s> \u3000lo", allowed_special="all") == (
        [120, 301, 256],
        [[0, 1], [1, 8], [8, 10]],
    )


def test_a_frame_has_empty_spans():
    tokenizer = imported(special_tokens={"<s>": 300, "</s>": 301}, frame=((300,), (301, 301)))
    ids, spans = spans_of(tokenizer, "élo", add_special_tokens=True)
    assert ids == [300, 195, 169, 256, 301, 301]
    assert spans == [[0, 0], [0, 1], [1, 2], [2, 4], [4, 4], [4, 4]]


def test_the_space_in_front_is_none_of_the_text():
    tokenizer = imported(prefix_space=True, added_tokens={"<t>": 300})
    assert spans_of(tokenizer, "lo") == ([257], [[0, 2]])
    assert spans_of(tokenizer, " lo") == ([257], [[0, 3]])
    assert spans_of(tokenizer, "xlo") == ([32, 120, 256], [[0, 0], [0, 1], [1, 3]])
    assert spans_of(tokenizer, "lo<t>x") == ([257, 300, 32, 120], [[0, 2], [2, 5], [5, 5], [5, 6]])


def test_spans_are_of_the_text_before_it_is_normalized():
    tokenizer = imported(normalizer="NFC", added_tokens={"<t>": 300}, frame=((300,), (300,)))
    plain = tokenizer.encode_with_offsets("lo é<t>")
    assert plain.ids == [256, 32, 195, 169, 300]
    assert plain.byte_spans.tolist() == [[0, 2], [2, 3], [3, 4], [4, 5], [5, 8]]
    changed = tokenizer.encode_with_offsets("e\u0301lo<t>xe\u0301", add_special_tokens=True)
    assert changed.ids == [300, 195, 169, 256, 300, 120, 195, 169, 300]
    assert changed.byte_spans.tolist() == [
        [0, 0], [0, 3], [0, 3], [3, 5], [5, 8], [8, 9], [9, 12], [9, 12], [12, 12]
    ]  # fmt: skip
    assert changed.character_spans.tolist() == [
        [0, 0], [0, 2], [0, 2], [2, 4], [4, 7], [7, 8], [8, 10], [8, 10], [10, 10]
    ]  # fmt: skip
    assert tokenizer.truncate("loe\u0301", 2) == "lo"
    assert tokenizer.split_at("e\u0301lo", 2) == ("e\u0301", "lo")


@given(st.text(st.sampled_from("aeo \u0301\u0327\u0308é\u212b\u1100\u1161\u11a8가中"), max_size=12))
def test_spans_of_normalized_text(text):
    tokenizer = imported(normalizer="NFC")
    ids, spans, _ = tokenizer.encode_with_offsets(text)
    assert ids == tokenizer.encode(text)
    assert sorted(spans.tolist()) == spans.tolist()
    covered = {place for start, end in spans.tolist() for place in range(start, end)}
    assert covered == set(range(len(text.encode())))
    for n in range(4):
        head, tail = tokenizer.split_at(text, n)
        assert head + tail == text and tokenizer.count(head) <= n


def test_a_text_of_which_something_is_dropped_is_refused():
    tokenizer = imported(pattern=Pattern(None, (r"[a-z ]+",), keep_gaps=False))
    assert spans_of(tokenizer, "lo x") == ([256, 32, 120], [[0, 2], [2, 3], [3, 4]])
    with pytest.raises(ValueError, match="encoding changes the text at byte 2"):
        tokenizer.encode_with_offsets("lo1x")


class Reversed:
    """A method whose encoder makes something else of a text."""

    name, number = "reversed", 77

    def train(self, corpus, options):
        return Vocabulary(self.name, BYTES)

    def encoder(self, vocabulary):
        return self

    def encode(self, data):
        return [*reversed(data)]


def test_a_method_with_an_encoder_of_its_own(monkeypatch):
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    methods.register(Reversed())
    tokenizer = Tokenizer("ab", method="reversed")
    assert spans_of(tokenizer, "aba") == ([97, 98, 97], [[0, 1], [1, 2], [2, 3]])
    with pytest.raises(ValueError, match="encoding changes the text at byte 0"):
        tokenizer.encode_with_offsets("ab")


@pytest.mark.parametrize(
    "parts", [{"method": "reversed"}, {"method": "char", "prefix_space": True}]
)
def test_characters_that_are_encoded_otherwise(monkeypatch, parts):
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    methods.register(Reversed())
    vocabulary = Vocabulary(alphabet=(None, b"a", b" "), unit="character", unknown=0, **parts)
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    with pytest.raises(ValueError, match=f"the tokens of this '{parts['method']}' have no spans"):
        tokenizer.encode_with_offsets("aba")


# Cutting


@given(data=st.data(), n=st.integers(0, 12), allowed=st.sampled_from([(), "all"]))
def test_truncate(data, n, allowed):
    tokenizer = MADE[data.draw(st.sampled_from(sorted(MADE)))]
    text = known(tokenizer, data.draw(TEXTS))
    head = tokenizer.truncate(text, n, allowed_special=allowed)
    assert text.startswith(head)
    assert tokenizer.count(head, allowed_special=allowed) <= n
    assert tokenizer.split_at(text, n, allowed_special=allowed) == (head, text[len(head) :])
    ids, _, spans = tokenizer.encode_with_offsets(text, allowed_special=allowed)
    if len(ids) <= n:
        assert head == text
    else:
        assert len(head) <= spans[:n, 1].max(initial=0)
        assert tokenizer.truncate(head, n, allowed_special=allowed) == head


@given(text=TEXTS, n=st.integers(0, 12))
def test_what_no_pattern_cuts_is_cut_behind_the_last_whole_character(text, n):
    tokenizer = MADE["bpe"]
    _, byte_spans, _ = tokenizer.encode_with_offsets(text)
    utf8 = text.encode()
    ends = [0, *byte_spans[:n, 1].tolist()]
    whole = [end for end in ends if utf8[:end].decode("utf-8", "ignore").encode() == utf8[:end]]
    assert tokenizer.truncate(text, n).encode() == utf8[: whole[-1]]


def test_a_head_of_which_the_pattern_makes_more_is_cut_again():
    tokenizer = Tokenizer("aaab " * 9, method="bpe", pattern="a+(?=b)|a")
    assert len(tokenizer.encode("aaab")) == 2 and len(tokenizer.encode("aaa")) == 3
    assert tokenizer.split_at("aaab", 1) == ("a", "aab")
    assert tokenizer.split_at("aaab", 2) == ("aaab", "")


def test_a_word_is_cut_inside():
    words = Tokenizer(["low", "lower", "lowest"], method="word")
    lowest = words.encode("  lowest")
    for n in range(len(lowest)):
        head, tail = words.split_at("  lowest", n)
        assert head + tail == "  lowest" and words.count(head) <= n
    assert words.truncate("  low low", 1) == "  low"


def test_splitting_in_pieces_of_a_size():
    tokenizer = MADE["gpt2"]
    rest, heads = CORPUS, []
    while rest:
        head, rest = tokenizer.split_at(rest, 5)
        assert head and tokenizer.count(head) <= 5
        heads.append(head)
    assert "".join(heads) == CORPUS


def test_where_texts_cannot_be_cut():
    tokenizer = MADE["from_bytes"]
    assert tokenizer.split_at("😀a", 3) == ("", "😀a")
    assert tokenizer.split_at("a", 0) == ("", "a")
    for wrong in (-1, 2**70):
        with pytest.raises(ValueError, match="n must be from 0"):
            tokenizer.truncate("a", wrong)
    for wrong in (1.0, True, None, "1"):
        with pytest.raises(TypeError, match="n must be a whole number"):
            tokenizer.split_at("a", wrong)
    with pytest.raises(UnicodeEncodeError):
        tokenizer.truncate("a\ud83d", 5)
    with pytest.raises(TypeError, match="takes str"):
        tokenizer.truncate(b"a", 5)


def test_closed():
    tokenizer = Tokenizer("ab")
    tokenizer.encode_with_offsets("ab")
    tokenizer.close()
    for call in (tokenizer.encode_with_offsets, lambda text: tokenizer.truncate(text, 1)):
        with pytest.raises(ValueError, match="closed"):
            call("ab")


# A real vocabulary


def test_offsets_with_cl100k(data):
    tokenizer = Tokenizer.from_tiktoken(data / "vocab" / "cl100k_base.tiktoken")
    text = "i ⭢ j 😀!"
    ids, byte_spans, character_spans = tokenizer.encode_with_offsets(text)
    assert len(ids) == 7 and character_spans[:, 0].tolist() == [0, 1, 2, 2, 3, 5, 7]
    check_bytes(tokenizer, ids, byte_spans.tolist(), text.encode())
    document = b"\xff\xfehello \xf0\x9f"
    ids, byte_spans = tokenizer.encode_bytes_with_offsets(document)
    check_bytes(tokenizer, ids, byte_spans.tolist(), document)


def test_offsets_with_qwen_are_those_of_hugging_face(data):
    tokenizers = pytest.importorskip("tokenizers")
    path = data / "vocab" / "qwen3.tokenizer.json"
    mine = Tokenizer.from_huggingface(path)
    other = tokenizers.Tokenizer.from_file(str(path))
    for text in (CORPUS, "<think>low</think>\n\n<|im_end|>", "12 naïve é\r\n 你好"):
        ids, _, character_spans = mine.encode_with_offsets(text, allowed_special="all")
        encoding = other.encode(text, add_special_tokens=False)
        assert ids == encoding.ids
        assert [*map(tuple, character_spans.tolist())] == encoding.offsets
