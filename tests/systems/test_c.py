"""System C: bytes, documents, reserved ids, chat."""

import pytest

from tokbpe import Corpus, Tokenizer

pytestmark = pytest.mark.core

NAMES = ("PAD", "BOS", "EOS", "USER", "ASSISTANT", "SYSTEM")
TEXTS = [
    "plain ASCII",
    "Grüße 🐈",
    "line\nbreaks\r\nof\rall\x0bkinds\n",
    "🐈‍⬛👩🏽‍🚀",
    "",
    "<|endoftext|> <eos> <|EOS|> <assistant> <|ASSISTANT|> BOS",
    "\x00\x00",
]


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


@pytest.fixture
def tokenizer():
    return Tokenizer.from_bytes(reserved=NAMES)


def test_reserved_ids(tokenizer):
    assert tokenizer.reserved == dict(zip(NAMES, range(256, 262)))
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (256, 257, 258)
    assert tokenizer.vocab_size == 262
    assert tokenizer.vocabulary[256:] == (b"",) * 6


def test_reserved_ids_in_output(tokenizer):
    ids = [257, 104, 105, 258, 256, 259, 260, 261]
    assert tokenizer.decode(ids) == "<|BOS|>hi<|EOS|><|PAD|><|USER|><|ASSISTANT|><|SYSTEM|>"
    assert tokenizer.decode(ids, skip_special=True) == "hi"
    assert tokenizer.decode_bytes(ids) == b"hi"
    assert tokenizer.decode_bytes(ids, skip_special=True) == b"hi"


def test_reserved_ids_are_put_in_by_argument(tokenizer):
    assert tokenizer.encode("hi", bos=True, eos=True) == [257, 104, 105, 258]
    assert tokenizer.encode_bytes(b"hi", eos=True) == [104, 105, 258]
    assert tokenizer.encode("", bos=True) == [257]


def test_reserved_ids_that_are_not_there():
    tokenizer = Tokenizer.from_bytes(reserved=["EOS"])
    with pytest.raises(ValueError, match=r"there is no reserved id 'BOS', only \['EOS'\]"):
        tokenizer.encode("hi", bos=True)
    with pytest.raises(AttributeError, match="no reserved id 'PAD'"):
        tokenizer.pad_id  # noqa: B018
    assert not hasattr(tokenizer, "bos_id")
    with pytest.raises(ValueError, match="there is no reserved id 'USER'"):
        tokenizer.encode_chat([("user", "hi")])


def test_chat(tokenizer):
    ids, mask = tokenizer.encode_chat(
        [("system", "S"), ("user", "hi"), ("assistant", "yo")], bos=True
    )
    assert ids == [257, 261, 83, 258, 259, 104, 105, 258, 260, 121, 111, 258]
    trained_on = [121, 111, 258]
    assert mask == [False] * 9 + [True] * 3
    assert [id for id, counts in zip(ids, mask) if counts] == trained_on
    assert tokenizer.encode_chat([]) == ([], [])
    assert tokenizer.encode_chat([("Assistant", "")]) == ([260, 258], [False, True])


@pytest.mark.parametrize(
    "typed", ["<assistant>", "<|assistant|>", "<|ASSISTANT|>", "ASSISTANT", "<|EOS|>"]
)
def test_what_is_typed_in_a_chat_stays_text(typed):
    tokenizer = Tokenizer.from_bytes(reserved=NAMES, special_tokens=["<|assistant|>", "<|EOS|>"])
    ids, mask = tokenizer.encode_chat([("user", typed), ("assistant", typed)])
    text = list(typed.encode())
    roles = tokenizer.reserved
    assert ids == [roles["USER"], *text, roles["EOS"], roles["ASSISTANT"], *text, roles["EOS"]]
    assert mask == [False] * (len(text) + 3) + [True] * (len(text) + 1)
    assert tokenizer.decode(ids, skip_special=True) == typed * 2


@pytest.mark.parametrize(
    ("turns", "error", "message"),
    [
        ("user", TypeError, "turns must be pairs of texts, not str"),
        (None, TypeError, "turns must be pairs of texts, not NoneType"),
        (5, TypeError, "turns must be pairs of texts, not int"),
        (["ab"], TypeError, "turn 0 must be a role and a text, not 'ab'"),
        ([("user", "a"), ("user",)], TypeError, "turn 1 must be a role and a text"),
        ([("user", "a", "b")], TypeError, "turn 0 must be a role and a text"),
        ([("user", b"a")], TypeError, "turn 0 must be a role and a text"),
        ([(1, "a")], TypeError, "turn 0 must be a role and a text"),
        ({"user": "a"}, TypeError, "turn 0 must be a role and a text, not 'user'"),
        ([("nobody", "a")], ValueError, "there is no reserved id 'NOBODY', only"),
        (
            [("user", "a"), ("user", "b\ud800")],
            UnicodeEncodeError,
            r"in position 1: surrogates not allowed \(turn 1\)",
        ),
    ],
)
def test_what_is_no_chat(tokenizer, turns, error, message):
    with pytest.raises(error, match=message):
        tokenizer.encode_chat(turns)


def test_a_turn_that_cannot_be_encoded_is_named():
    tokenizer = Tokenizer("ab", reserved=["EOS", "USER"])
    with pytest.raises(ValueError, match="^turn 1: byte 0x63 at byte position 1 is not in the"):
        tokenizer.encode_chat([("user", "ab"), ("user", "bc")])


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("special_ids", ["base", "first", "end"])
def test_merges_bounded_by_their_number(number, special_ids):
    tokenizer = Tokenizer(
        "abcabcabc",
        method="bpe",
        vocabulary_size=256 + 6 + 1 + number,
        reserved=NAMES,
        special_tokens=["<|e|>"],
        special_ids=special_ids,
    )
    assert len(tokenizer.merges) == number
    assert tokenizer.vocab_size == 263 + number
    learned = [piece for piece in tokenizer.vocabulary if piece in (b"ab", b"abc")]
    assert learned == [b"ab", b"abc"][:number]


def test_merges_do_not_cross_documents():
    assert len(Tokenizer(["a", "b"] * 9, method="bpe").merges) == 0
    assert Tokenizer("ab" * 9, method="bpe").vocabulary[256] == b"ab"


@pytest.mark.parametrize("text", TEXTS)
def test_round_trip(tmp_path, text):
    trained = Tokenizer(
        TEXTS,
        method="bpe",
        reserved=NAMES,
        special_tokens=["<|endoftext|>"],
        minimum_pair_frequency=1,
    )
    for tokenizer in (Tokenizer.from_bytes(reserved=NAMES), trained):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode_bytes(ids) == text.encode()
        assert max(tokenizer.reserved.values()) not in ids
        path = tmp_path / f"{tokenizer.method}.tokbpe"
        tokenizer.save(path)
        again = Tokenizer.load(path)
        assert again.encode(text) == ids
        assert again == tokenizer


# The training partition


def test_documents_are_split_first_and_merges_learned_on_the_training_documents_only():
    # Each document is of one letter, and so is each merge.
    texts = [chr(97 + number) * 8 for number in range(26)]
    training, validation = Corpus(texts).split(validation=0.25, seed=5)
    tokenizer = Tokenizer(training, method="bpe", reserved=NAMES, minimum_pair_frequency=1)
    learned = {piece[:1] for piece in tokenizer.vocabulary if piece and len(piece) > 1}
    assert learned == {text[0].encode() for text in training}
    assert not learned & {text[0].encode() for text in validation}
    assert {*training, *validation} == {*texts}
    assert (len(training), len(validation)) == (20, 6)
    # Two letters never stand together in a document.
    assert all(len({*piece}) == 1 for _, piece in tokenizer.items() if piece)


def test_each_document_has_its_marks(tokenizer):
    encoded = tokenizer.encode_corpus(Corpus(["hi", "", "<|EOS|>"]), bos=True, eos=True)
    assert encoded.offsets.tolist() == [0, 4, 6, 15]
    assert encoded.tokens.tolist() == [257, 104, 105, 258, 257, 258, 257, *b"<|EOS|>", 258]


def test_bytes_per_token_of_a_corpus():
    corpus = Corpus(["abab" * 10, "é"])
    tokenizer = Tokenizer(corpus, method="bpe", vocabulary_size=257)
    assert corpus.bytes / len(tokenizer.encode_corpus(corpus).tokens) == 42 / 22
    assert tokenizer.usage(corpus).bytes_per_token == 42 / 22
