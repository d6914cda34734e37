"""The object with the methods of `tiktoken.Encoding`, compared with that method by method."""

import _thread
import base64
import copy
import inspect
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import PATTERN_TEXTS, SURROGATES
from tokbpe import Tokenizer, patterns
from tokbpe.compat import Encoding, as_tiktoken

CORPUS = "I'll say: it's 12,345 €!\r\n\r\n\tcamelCase low lower lowest 你好 😀😀 naïve <|e|>\n" * 4
SPECIAL = ("<|endoftext|>", "<|e|>", "é")
NAMES = ("gpt2", "cl100k", "o200k")


@cache
def ours(pattern="cl100k", special_tokens=SPECIAL):
    tokenizer = Tokenizer(
        CORPUS,
        method="bpe",
        vocabulary_size=300 + len(special_tokens),
        pattern=pattern,
        special_tokens=special_tokens,
    )
    return as_tiktoken(tokenizer, "made")


@cache
def theirs(pattern="cl100k", special_tokens=SPECIAL):
    tiktoken = pytest.importorskip("tiktoken")
    tokenizer = ours(pattern, special_tokens).tokenizer
    special = tokenizer.special_tokens
    return tiktoken.Encoding(
        "made",
        pat_str=patterns.get(pattern).sources[0].replace(r"\Z", r"\z"),
        mergeable_ranks={
            piece: id for id, piece in tokenizer.items() if id not in special.values()
        },
        special_tokens=special,
    )


def outcome(call, encoding):
    """What a call gives, or the type of what it raises."""
    try:
        value = call(encoding)
    except Exception as error:
        return type(error)
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    return type(value), value


TEXT = "low<|e|> é 😀\n"
CALLS = [
    # Special tokens
    lambda enc: enc.encode(TEXT),
    lambda enc: enc.encode(TEXT, disallowed_special=()),
    lambda enc: enc.encode(TEXT, disallowed_special=None),
    lambda enc: enc.encode(TEXT, allowed_special="all"),
    lambda enc: enc.encode(TEXT, allowed_special={"<|e|>"}),
    lambda enc: enc.encode(TEXT, allowed_special={"<|e|>", "é"}),
    lambda enc: enc.encode(TEXT, allowed_special={"<|e|>", "é", "nothing"}),
    lambda enc: enc.encode(TEXT, allowed_special=frozenset({"<|e|>"}), disallowed_special=()),
    lambda enc: enc.encode(TEXT, allowed_special={"<|e|>"}, disallowed_special={"<|e|>"}),
    lambda enc: enc.encode(TEXT, allowed_special="all", disallowed_special=["low"]),
    lambda enc: enc.encode(TEXT, allowed_special="all", disallowed_special=["lower"]),
    lambda enc: enc.encode(TEXT, allowed_special="all", disallowed_special="xyz"),
    lambda enc: enc.encode(TEXT, allowed_special="all", disallowed_special="xyw"),
    lambda enc: enc.encode(TEXT, allowed_special="all", disallowed_special=[""]),
    lambda enc: enc.encode(TEXT, disallowed_special=[5]),
    lambda enc: enc.encode(TEXT, allowed_special=["<|e|>"]),
    lambda enc: enc.encode(TEXT, allowed_special=["<|e|>"], disallowed_special=()),
    lambda enc: enc.encode(TEXT, allowed_special="<|e|>"),
    lambda enc: enc.encode(TEXT, allowed_special="<|e|>", disallowed_special=()),
    lambda enc: enc.encode(TEXT, allowed_special=None),
    lambda enc: enc.encode(TEXT, allowed_special={5}),
    lambda enc: enc.encode(TEXT, "all"),
    # Texts
    *(
        lambda enc, name=name, text=text: getattr(enc, name)(text)
        for name in ("encode", "encode_ordinary", "encode_to_numpy")
        for text in (
            "", "low", "<|e|>", "\ud83d\ude00", "a\ud83d", "\ud83d", "\ude00a", "\ude00\ud83d",
            b"low", 5, None, ["low"], np.str_("low lower"),
        )
    ),
    lambda enc: enc.encode("<|e|>\ud83d\ude00\ud83d", allowed_special="all"),
    lambda enc: enc.encode_to_numpy(TEXT, allowed_special="all"),
    lambda enc: enc.encode_to_numpy(TEXT, disallowed_special=()),
    lambda enc: enc.encode_to_numpy(TEXT, allowed_special={"<|e|>"}),
    # Batches
    lambda enc: enc.encode_ordinary_batch(["low lower", "", TEXT] * 100),
    lambda enc: enc.encode_ordinary_batch(["low lower", "a\ud83d"], num_threads=1),
    lambda enc: enc.encode_ordinary_batch(["low", 5]),
    lambda enc: enc.encode_ordinary_batch("low"),
    lambda enc: enc.encode_batch(["low lower", "", "naïve"]),
    lambda enc: enc.encode_batch(["low lower", TEXT]),
    lambda enc: enc.encode_batch([TEXT, "low"], allowed_special="all"),
    lambda enc: enc.encode_batch([TEXT, "low"], disallowed_special=(), num_threads=3),
    lambda enc: enc.encode_batch([TEXT, "low"], allowed_special={"<|e|>"}, disallowed_special=()),
    lambda enc: enc.encode_batch(text for text in ["low", "lower"]),
    lambda enc: enc.encode_batch([]),
    lambda enc: enc.encode_batch(None),
    lambda enc: enc.encode_batch(["low"], num_threads=0),
    lambda enc: enc.encode_batch(["low"], num_threads=-1),
    lambda enc: enc.decode_batch([[97, 98], [], [255]] * 50),
    lambda enc: enc.decode_batch([[97, 98], [255]], errors="strict"),
    lambda enc: enc.decode_batch([[97, 98], [255]], num_threads=1, errors="ignore"),
    lambda enc: enc.decode_batch([[97], [10**6]]),
    lambda enc: enc.decode_batch([[97], 5]),
    lambda enc: enc.decode_batch(np.array([[97, 98], [99, 100]])),
    lambda enc: enc.decode_bytes_batch([[97, 98], [], [255]], num_threads=2),
    lambda enc: enc.decode_bytes_batch([[97], [10**6]]),
    # Decoding
    *(
        lambda enc, name=name, tokens=tokens: getattr(enc, name)(tokens)
        for name in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets")
        for tokens in (
            [], [97, 300], (97, 258, 98), range(97, 100), b"ab", [255], [0xC3], [0xC3, 0xA9, 257],
            [97, 10**6], [2**32 - 1], [2**32], [-1], [97, 1.0], [True, 97], [None], ["97"], None,
            97, "ab", np.array([97, 300]), np.array([97, 98], np.uint8), np.array([97, -1]),
            np.array([97.0]), [np.int64(97), np.uint16(98)], [[97]],
        )
    ),
    *(
        lambda enc, errors=errors: enc.decode([97, 0xC3, 98, 0xF0, 0x9F], errors)
        for errors in ("strict", "replace", "ignore", "backslashreplace", "nonsense")
    ),
    lambda enc: enc.decode([97], errors="strict"),
    lambda enc: enc.decode([255], errors="strict"),
    # Single tokens
    *(
        lambda enc, token=token: enc.decode_single_token_bytes(token)
        for token in (97, 257, 300, 10**6, -1, 2**40, "a", 1.0, True, None, np.int64(97))
    ),
    *(
        lambda enc, piece=piece: enc.encode_single_token(piece)
        for piece in (
            "low", b"low", " low", "<|e|>", b"<|e|>", "é", "", b"", "zzz", b"\xff", 5, None,
            "\ud83d", bytearray(b"low"), "你",
        )
    ),
    *(
        lambda enc, token=token: enc.is_special_token(token)
        for token in (97, 256, 257, 258, 259, 10**6, -1, True, 257.0, "a", None, np.int64(257))
    ),
    # What there is
    lambda enc: enc.token_byte_values(),
    lambda enc: enc.eot_token,
    lambda enc: enc.special_tokens_set,
    lambda enc: enc.n_vocab,
    lambda enc: enc.max_token_value,
    lambda enc: enc.name,
    lambda enc: repr(enc),
    lambda enc: str(enc),
    lambda enc: enc.nothing,
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_a_call_gives_the_same(call):
    assert outcome(call, ours()) == outcome(call, theirs())


@pytest.mark.parametrize("pattern", NAMES)
@given(data=st.data())
def test_a_text_gives_the_same(pattern, data):
    pieces = PATTERN_TEXTS | st.sampled_from([*SPECIAL, *SURROGATES, "\ud83d\ude00", " low"])
    text = "".join(data.draw(st.lists(pieces, max_size=6)))
    sets = st.sets(st.sampled_from([*SPECIAL, "other"]))
    allowed = data.draw(sets | st.just("all"))
    disallowed = data.draw(sets | st.sampled_from(["all", ()]))

    def encode(enc):
        return enc.encode(text, allowed_special=allowed, disallowed_special=disallowed)

    def all_of_it(enc):
        ids = enc.encode(text, allowed_special=allowed, disallowed_special=())
        return [
            ids,
            enc.decode(ids),
            enc.decode_bytes(ids),
            enc.decode_with_offsets(ids),
            enc.encode_ordinary(text),
        ]

    mine, other = ours(pattern), theirs(pattern)
    assert outcome(encode, mine) == outcome(encode, other)
    assert all_of_it(mine) == all_of_it(other)


@given(st.lists(st.integers(0, 305), max_size=12))
def test_tokens_give_the_same(tokens):
    for call in (
        lambda enc: enc.decode(tokens),
        lambda enc: enc.decode(tokens, errors="strict"),
        lambda enc: enc.decode_bytes(tokens),
        lambda enc: enc.decode_tokens_bytes(tokens),
        lambda enc: enc.decode_with_offsets(tokens),
    ):
        assert outcome(call, ours()) == outcome(call, theirs())


def test_without_special_tokens():
    for call in (
        lambda enc: enc.eot_token,
        lambda enc: getattr(enc, "eot_token", None),
        lambda enc: enc.special_tokens_set,
        lambda enc: enc.encode("<|endoftext|>"),
        lambda enc: enc.encode("<|e|>", allowed_special={"<|e|>"}),
        lambda enc: enc.max_token_value,
        lambda enc: enc.is_special_token(299),
        lambda enc: enc.encode_single_token("<|endoftext|>"),
    ):
        assert outcome(call, ours(special_tokens=())) == outcome(call, theirs(special_tokens=()))


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def plain(parameter):
    return parameter.name, parameter.kind, parameter.default


def test_signatures_are_those_of_tiktoken():
    encoding = type(theirs())
    of_instances = {"name", "max_token_value"}  # set in the constructor of theirs
    assert public(encoding) == public(Encoding) - of_instances
    for name in public(encoding):
        mine = inspect.getattr_static(Encoding, name)
        other = inspect.getattr_static(encoding, name)
        assert callable(mine) == callable(other), name
        if callable(other):
            assert [*map(plain, inspect.signature(mine).parameters.values())] == [
                *map(plain, inspect.signature(other).parameters.values())
            ], name


def test_an_error_says_what_that_of_tiktoken_says_first():
    def message(enc):
        with pytest.raises(ValueError, match="disallowed_special=") as raised:
            enc.encode("low<|e|>low")
        return str(raised.value).splitlines()[0]

    first = "Encountered text corresponding to disallowed special token '<|e|>'."
    assert message(ours()) == first
    assert message(theirs()) == first


def test_an_unknown_token_is_named_with_its_position():
    with pytest.raises(KeyError, match="Invalid token for decoding: id 1000000 at position 1"):
        ours().decode([97, 10**6])
    with pytest.raises(KeyError, match="1000000"):
        ours().decode_single_token_bytes(10**6)


def test_what_it_does_not_offer():
    with pytest.raises(NotImplementedError):
        ours().encode_with_unstable("low")


def test_results_are_lists_and_arrays_of_their_own():
    encoded = ours().encode_to_numpy("low lower")
    assert encoded.dtype == np.uint32 and encoded.ndim == 1
    assert encoded.tolist() == ours().encode("low lower")
    assert ours().encode_to_numpy("").dtype == np.uint32


@pytest.mark.parametrize(
    "copied", [lambda enc: pickle.loads(pickle.dumps(enc)), copy.copy, copy.deepcopy]
)
def test_copies(copied):
    again = copied(ours())
    assert again.name == "made"
    assert again.encode(TEXT, allowed_special="all") == ours().encode(TEXT, allowed_special="all")
    assert again.special_tokens_set == {*SPECIAL}


def test_the_longest_special_token_counts():
    tokenizer = Tokenizer.from_bytes(special_tokens=["<e", "<e>", "<e>b"])
    encoding = as_tiktoken(tokenizer)
    assert encoding.encode("a<e>b<e", allowed_special="all") == [97, 258, 256]
    with pytest.raises(ValueError, match="special token '<e>b'"):
        encoding.encode("a<e>b")


def test_names():
    assert repr(as_tiktoken(Tokenizer.from_bytes())) == "<Encoding 'tokbpe'>"
    assert as_tiktoken(Tokenizer.from_bytes(), "mine").name == "mine"


def test_reserved_ids_are_special_and_no_text():
    tokenizer = Tokenizer.from_bytes(reserved=["BOS", "EOS"], special_tokens=["<e>"])
    encoding = as_tiktoken(tokenizer)
    bos = tokenizer.bos_id
    assert encoding.is_special_token(bos) and encoding.special_tokens_set == {"<e>"}
    assert encoding.decode([bos, 97, bos]) == "a"
    assert encoding.decode_with_offsets([bos, 0xC3, 0xA9, bos, 97]) == ("éa", [0, 0, 0, 1, 1])
    assert encoding.max_token_value == tokenizer.eos_id
    assert encoding.token_byte_values() == [bytes([byte]) for byte in range(256)]


@pytest.mark.parametrize("method", ["char", "word"])
def test_only_tokenizers_of_bytes(method):
    with pytest.raises(ValueError, match=f"of bytes alone, not the method '{method}'"):
        as_tiktoken(Tokenizer("low lower", method=method))
    with pytest.raises(TypeError, match="takes a Tokenizer, not str"):
        as_tiktoken("cl100k")


def test_a_byte_that_is_not_known():
    encoding = as_tiktoken(Tokenizer("abc"))
    assert encoding.encode_batch(["abc", "cab"]) == [[0, 1, 2], [2, 0, 1]]
    with pytest.raises(ValueError, match="byte 0x78 at byte position 1"):
        encoding.encode("axe")


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_batches_without_more_threads(threads, monkeypatch):
    """The caller's own does the work then; the error is that of the first text."""

    def no_thread(*_):
        raise RuntimeError("can't start new thread")

    encoding = as_tiktoken(Tokenizer("abc"))
    texts = [*["abc", "cab"] * 30, "x", *["a"] * 30, "y"]
    for _ in range(2):
        good = encoding.encode_batch(texts[:60], num_threads=threads)
        assert good == [[0, 1, 2], [2, 0, 1]] * 30
        with pytest.raises(ValueError, match="byte 0x78 at"):
            encoding.encode_batch(texts, num_threads=threads)
        monkeypatch.setattr(_thread, "start_new_thread", no_thread)


def test_a_real_vocabulary_gives_the_same(data):
    tiktoken = pytest.importorskip("tiktoken")
    path = data / "vocab" / "cl100k_base.tiktoken"
    mine = as_tiktoken(Tokenizer.from_tiktoken(path, name="cl100k_base"), "made")
    ranks = [line.split() for line in path.read_bytes().splitlines()]
    other = tiktoken.Encoding(
        "made",
        pat_str=patterns.get("cl100k").sources[0].replace(r"\Z", r"\z"),
        mergeable_ranks={base64.b64decode(piece): int(rank) for piece, rank in ranks},
        special_tokens=mine.tokenizer.special_tokens,
    )
    assert mine.special_tokens_set == other.special_tokens_set > {"<|endoftext|>", "<|fim_prefix|>"}
    text = CORPUS + "<|endoftext|>i ⭢ j 😀!<|fim_prefix|>"
    assert mine.encode(text, allowed_special="all") == other.encode(text, allowed_special="all")
    for call in [
        *CALLS,
        lambda enc: enc.encode(text),
        lambda enc: enc.encode(text, allowed_special={"<|endoftext|>"}, disallowed_special=()),
        lambda enc: enc.decode_with_offsets(enc.encode_ordinary(text)),
        lambda enc: enc.encode_single_token("<|endoftext|>"),
        lambda enc: enc.decode_single_token_bytes(100257),
        lambda enc: enc.decode_single_token_bytes(100256),  # a gap
        lambda enc: enc.decode([100256]),
    ]:
        assert outcome(call, mine) == outcome(call, other)
