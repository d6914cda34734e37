"""Batches, pieces by their ids and ids by their pieces, counting."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import peak, ratio
from strategies import PATTERN_TEXTS
from tokbpe import StreamDecoder, Tokenizer, engines, files
from tokbpe.vocabulary import Vocabulary

CORPUS = "low lower lowest 你好 😀😀 naïve aaaa" * 3
MADE = {
    method: Tokenizer(
        CORPUS, method=method, special_tokens=["<s>", "é"], reserved=["BOS", "EOS"], engine=engine
    )
    for method, engine in zip(
        ("byte", "bpe", "char", "word"), ("reference", "fast", "fast", "reference")
    )
}


@pytest.fixture(params=MADE)
def tokenizer(request):
    return MADE[request.param]


@pytest.fixture(params=engines.NAMES)
def bpe(request):
    return Tokenizer(CORPUS, method="bpe", special_tokens=["<s>"], engine=request.param)


# Batches

TEXTS = ["low lower", "", "😀", "<s>low"]


@pytest.mark.parametrize("options", [{}, {"allowed_special": "all"}, {"bos": True, "eos": True}])
def test_encode_batch(tokenizer, options):
    texts = TEXTS if tokenizer.method != "byte" else TEXTS[:3]
    encoded = tokenizer.encode_batch(texts, **options)
    assert encoded == [tokenizer.encode(text, **options) for text in texts]
    assert tokenizer.encode_batch((text for text in texts), **options) == encoded
    assert tokenizer.encode_batch(np.array(texts), **options) == encoded
    assert tokenizer.encode_batch([]) == []
    for skip_special in (False, True):
        assert tokenizer.decode_batch(encoded, skip_special=skip_special) == [
            tokenizer.decode(ids, skip_special=skip_special) for ids in encoded
        ]


def test_encode_batch_with_a_frame():
    vocabulary = Vocabulary(
        "byte", (b"a", b"b"), special_tokens={"<s>": 2}, frame=((2,), ()), added_tokens={"<t>": 3}
    )
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    texts = ["ab", "", "a<t>"]
    assert tokenizer.encode_batch(texts, add_special_tokens=True) == [[2, 0, 1], [2], [2, 0, 3]]
    assert tokenizer.encode_batch(texts) == [[0, 1], [], [0, 3]]


def test_a_batch_costs_no_more_than_a_loop():
    tokenizer = MADE["bpe"]
    texts = ["low l"] * 100_000

    def loop():
        return [tokenizer.encode(text) for text in texts]

    assert ratio(lambda: tokenizer.encode_batch(texts), loop, 1.2) < 1.2


def test_batch_of_surrogates(bpe):
    with pytest.raises(UnicodeEncodeError, match=r"\(text 1\)") as raised:
        bpe.encode_batch(["low", "lo\ud83d"])
    assert raised.value.start == 2
    assert bpe.encode_batch(["\ud83d"], errors="replace") == [bpe.encode("\ufffd")]


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("low", TypeError, "a batch must be an iterable of texts, not str"),
        (b"low", TypeError, "a batch must be an iterable of texts, not bytes"),
        ({"low": 1}, TypeError, "a batch must be an iterable of texts, not dict"),
        (None, TypeError, "a batch must be an iterable of texts, not NoneType"),
        (5, TypeError, "a batch must be an iterable of texts, not int"),
        (["low", None], TypeError, "text 1: a document must be str or bytes, not NoneType"),
        (["low", b"low", 5], TypeError, "text 2: a document must be str or bytes, not int"),
        ([["low"]], TypeError, "text 0: a document must be str or bytes, not list"),
    ],
)
def test_what_is_no_batch_of_texts(bpe, texts, error, message):
    with pytest.raises(error, match=message):
        bpe.encode_batch(texts)


def test_errors_of_a_batch_name_the_text():
    with pytest.raises(ValueError, match="text 1: byte 0x78 at byte position 2 is not in the"):
        Tokenizer("abc").encode_batch(["abc", "abxc"])
    with pytest.raises(ValueError, match="errors must be one of"):
        Tokenizer("abc").encode_batch(["abc"], errors="ignore")
    with pytest.raises(ValueError, match="'<x>' is no special token"):
        Tokenizer("abc").encode_batch([], allowed_special={"<x>"})
    with pytest.raises(ValueError, match="no reserved id 'BOS'"):
        Tokenizer("abc").encode_batch([], bos=True)


def test_error_of_an_iterator_comes_out_unchanged(bpe):
    error = ValueError("mine")

    def items():
        yield "low"
        raise error

    for call in (bpe.encode_batch, lambda texts: bpe.decode_batch(map(bpe.encode, texts))):
        with pytest.raises(ValueError) as raised:
            call(items())
        assert raised.value is error


def test_decode_batch(bpe):
    rows = np.array([[97, 98], [99, 0xC3]], np.uint16)
    assert bpe.decode_batch(rows, errors="replace") == ["ab", "c\ufffd"]
    assert bpe.decode_batch([]) == []
    with pytest.raises(UnicodeDecodeError, match=r"\(row 1\)"):
        bpe.decode_batch(rows)
    with pytest.raises(ValueError, match="row 1: id 100000 at position 2 is not from 0"):
        bpe.decode_batch([[97], [97, 98, 10**5]])
    with pytest.raises(TypeError, match="row 0: ids must be an iterable of whole numbers, not int"):
        bpe.decode_batch([97, 98])
    with pytest.raises(TypeError, match="a batch must be an iterable of rows, not bytes"):
        bpe.decode_batch(b"ab")
    with pytest.raises(ValueError, match="errors must be one of"):
        bpe.decode_batch(rows, errors="ignore")


# Pieces


def test_pieces_and_their_ids(tokenizer):
    hidden = {*tokenizer.reserved.values()}
    for id, piece in tokenizer.items():
        assert tokenizer.id_to_piece(id) == piece
        if id not in hidden:
            assert tokenizer.token_to_id(piece) == id
    for spelling, id in tokenizer.special_tokens.items():
        assert tokenizer.token_to_id(spelling) == tokenizer.token_to_id(spelling.encode()) == id


def test_the_text_of_a_piece(bpe):
    assert bpe.token_to_id("low") == bpe.encode("low")[0]
    assert bpe.token_to_id("a") == 97
    words = MADE["word"]
    assert [words.token_to_id("low ")] == words.encode("low")
    with pytest.raises(KeyError, match="'zz' is no piece of the vocabulary"):
        bpe.token_to_id("zz")
    with pytest.raises(KeyError) as raised:
        bpe.token_to_id(b"\xff\xff")
    assert raised.value.args == (r"b'\xff\xff' is no piece of the vocabulary",)
    for wrong in ("", b"", "BOS", "<|BOS|>"):
        with pytest.raises(KeyError):
            MADE["bpe"].token_to_id(wrong)
    for wrong in (97, None, bytearray(b"a"), ["a"]):
        with pytest.raises(TypeError, match="a piece is bytes or str, not"):
            bpe.token_to_id(wrong)
    with pytest.raises(UnicodeEncodeError):
        bpe.token_to_id("\ud83d")


def test_pieces_that_are_spelled_alike():
    vocabulary = Vocabulary(
        "bpe",
        (b"a", b"b", b"<s>", b"<t>"),
        special_tokens={"<s>": 5},
        added_tokens={"<t>": 6},
        merge_rule="rank_by_piece",
    )
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    assert [tokenizer.token_to_id(piece) for piece in ("<s>", b"<s>", "<t>", "a")] == [5, 5, 6, 0]
    assert tokenizer.id_to_piece(2) == tokenizer.id_to_piece(5) == b"<s>"
    with pytest.raises(ValueError, match="id 4 at position 0 is a gap"):
        tokenizer.id_to_piece(4)


def test_a_learned_piece_spelled_as_the_unknown_one():
    words = Tokenizer("<UNK>x <UNK>x", method="word")
    learned = words.token_to_id("<UNK>")
    assert learned != 0 and words.id_to_piece(learned) == b"<UNK>" == words.id_to_piece(0)
    assert MADE["word"].token_to_id("<UNK>") == 0


@pytest.mark.parametrize(
    ("id", "error"), [(10**6, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_what_is_no_id(bpe, id, error):
    with pytest.raises(error) as raised:
        bpe.id_to_piece(id)
    with pytest.raises(error) as decoded:
        bpe.decode([id])
    assert str(raised.value) == str(decoded.value)


def test_an_id_out_of_range_reads_as_unknown():
    for method in ("char", "word"):
        assert MADE[method].id_to_piece(10**6) == b"<UNK>"
    assert MADE["bpe"].id_to_piece(np.uint8(97)) == b"a"


# Counting


@given(
    text=PATTERN_TEXTS,
    method=st.sampled_from(["bpe", "char", "word"]),
    limit=st.none() | st.integers(0, 9),
)
def test_count(text, method, limit):
    tokenizer = MADE[method]
    for allowed in ((), "all"):
        size = len(tokenizer.encode(text, allowed_special=allowed))
        expected = size if limit is None else min(size, limit + 1)
        assert tokenizer.count(text, limit, allowed_special=allowed) == expected


def test_counting_ends_at_the_limit():
    """So it hardly matters how much text is behind it."""
    tokenizer = Tokenizer(CORPUS, method="bpe", pattern="gpt2")
    text = "low lower " * 400_000

    def limited():
        assert tokenizer.count(text, 100) == 101

    assert ratio(limited, lambda: tokenizer.count(text), 0.2) < 0.2


def test_counting_makes_no_ids():
    tokenizer = Tokenizer(CORPUS, method="bpe", pattern="gpt2")
    text = "low lower " * 100_000
    tokens = tokenizer.count(text)
    ids = peak(lambda: tokenizer.encode(text))
    assert peak(lambda: tokenizer.count(text)) < tokens < 8 * tokens < ids


def test_what_cannot_be_counted(bpe):
    assert bpe.count("\ud83d", errors="replace") == 3
    with pytest.raises(UnicodeEncodeError):
        bpe.count("\ud83d")
    with pytest.raises(TypeError, match="a document must be str or bytes, not list"):
        bpe.count(["low"])
    with pytest.raises(ValueError, match="limit must be from 0"):
        bpe.count("low", -1)
    with pytest.raises(TypeError, match="limit must be a whole number, not float"):
        bpe.count("low", 2.0)
    with pytest.raises(ValueError, match="is no special token"):
        bpe.count("low", allowed_special={"<x>"})


@given(st.lists(PATTERN_TEXTS | st.sampled_from(["low <s>", CORPUS]), max_size=5))
def test_usage(documents):
    for allowed in ((), "all"):
        for method in ("bpe", "char"):
            tokenizer = MADE[method]
            usage = tokenizer.usage((text for text in documents), allowed_special=allowed)
            ids = Counter(
                id for text in documents for id in tokenizer.encode(text, allowed_special=allowed)
            )
            assert usage.counts.dtype == np.uint64 and len(usage.counts) == tokenizer.vocab_size
            assert {id: n for id, n in enumerate(usage.counts.tolist()) if n} == ids
            assert usage.tokens == ids.total()
            assert usage.bytes == sum(len(text.encode()) for text in documents)
            assert usage.documents == len(documents)
            others = {*tokenizer.special_tokens.values(), *tokenizer.reserved.values()}
            others |= {0} if method == "char" else set()
            assert usage.unused == [
                id for id, _ in tokenizer.items() if id not in ids and id not in others
            ]


def test_usage_of_a_corpus_in_other_forms(bpe):
    assert bpe.usage("low").documents == bpe.usage(b"low").documents == 1
    usage = bpe.usage(["low", b"\xff", bytearray(b"low")])
    assert (usage.documents, usage.bytes, usage.tokens) == (3, 7, 3)
    assert usage.bytes_per_token == 7 / 3
    assert np.isnan(bpe.usage([]).bytes_per_token)
    assert repr(usage) == "Usage(tokens=3, bytes=7, documents=3)"


def test_usage_of_many_tokens(monkeypatch, bpe):
    once = bpe.usage([CORPUS] * 9)
    monkeypatch.setattr("tokbpe.tally.GATHERED", 10)
    often = bpe.usage([CORPUS] * 9)
    assert often.counts.tolist() == once.counts.tolist()
    assert often.tokens == once.tokens == 9 * len(bpe.encode(CORPUS))


def test_usage_that_cannot_be(bpe):
    with pytest.raises(TypeError, match="document 1 must be str or bytes, not int"):
        bpe.usage(["low", 5])
    with pytest.raises(UnicodeEncodeError, match=r"document 1"):
        bpe.usage(["low", "\ud83d"])
    with pytest.raises(ValueError, match="is no special token"):
        bpe.usage(["low"], allowed_special={"<x>"})
    far = Tokenizer.from_vocabulary(Vocabulary("bpe", (b"a",), reserved={"FAR": 2**24}))
    with pytest.raises(ValueError, match="a vocabulary of 16777217 ids; 16777216 can be counted"):
        far.usage("a")


def test_closed():
    closed = Tokenizer("ab")
    closed.close()
    for call in (
        lambda: closed.encode_batch(["ab"]),
        lambda: closed.count("ab"),
        lambda: closed.usage("ab"),
        lambda: closed.token_to_id("a"),
        lambda: closed.id_to_piece(0),
        lambda: closed.decode_batch([[0]]),
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_decode_batch_checks_before_any_row():
    tokenizer = Tokenizer("abc", method="bpe", vocabulary_size=256)
    for rows in ([], [[97]]):
        with pytest.raises(ValueError, match="^errors must be one of"):
            tokenizer.decode_batch(rows, errors="bogus")
    tokenizer.close()
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        tokenizer.decode_batch([])
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        StreamDecoder(tokenizer)


def test_a_file_that_is_too_large(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "LARGEST", 1000)
    path = tmp_path / "large"
    path.write_bytes(b"tokbpe tokenizer 2\n" + bytes(1000))
    for load in (Tokenizer.load, Tokenizer.from_huggingface, Tokenizer.from_json):
        with pytest.raises(ValueError, match="large: the file has more than 1000 bytes"):
            load(path)
    with pytest.raises(ValueError, match="large: the file has more than 1000 bytes"):
        Tokenizer.from_tiktoken(path, pattern="gpt2")
