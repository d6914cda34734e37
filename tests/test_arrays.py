"""Ids as arrays, in batches and in buffers of the caller: what `encode` gives, in other forms."""

import ctypes
import mmap
import pickle
from array import array
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import peak
from strategies import FLAGS
from tokbpe import Tokenizer, encoding, engines, methods
from tokbpe.vocabulary import Vocabulary

core = pytest.mark.core

CORPUS = "low lower lowest 你好 😀😀 naïve e\u0301 aaaa" * 3
TEXTS = ["low lower", "", "😀<s>low", "e\u0301 é", "<t>", "low\u212a>x"]
OPTIONS = [{}, {"allowed_special": "all"}, {"bos": True, "eos": True, "add_special_tokens": True}]


def trained(method="bpe", engine="fast", **changes):
    options = {"vocabulary_size": 290, "pattern": "gpt2"} if method == "bpe" else {}
    tokenizer = Tokenizer(
        CORPUS,
        method=method,
        special_tokens=["<s>", "é"],
        reserved=["BOS", "EOS"],
        engine=engine,
        **options,
    )
    if changes:
        vocabulary = replace(tokenizer._vocabulary, **changes)
        return Tokenizer.from_vocabulary(vocabulary, engine)
    return tokenizer


class Characters:
    """A method that merges do not describe."""

    name, number = "code points", 101

    def train(self, corpus, options):
        return Vocabulary("code points", (*(bytes([byte]) for byte in range(256)),))

    def encoder(self, vocabulary):
        return SimpleNamespace(encode=lambda data: [byte // 2 for byte in data])


@pytest.fixture(scope="module", autouse=True)
def other_method():
    methods.register(Characters())
    yield
    del methods.METHODS["code points"]


ADDED = {"added_tokens": {"<t>": 300, "K>": 301}, "frame": ((300,), (301, 301))}
MADE = {
    "bpe": lambda engine: trained(engine=engine),
    "char": lambda engine: trained("char", engine),
    "word": lambda engine: trained("word", engine),
    "added": lambda engine: trained(engine=engine, **ADDED),
    "NFC": lambda engine: trained(engine=engine, normalizer="NFC", **ADDED),
    "both kinds": lambda engine: trained(
        engine=engine, normalizer="NFC", token_flags={"K>": ("normalized",)}, **ADDED
    ),
    "later": lambda engine: trained(
        engine=engine,
        normalizer="NFC",
        special_tokens={},
        reserved={"BOS": 302, "EOS": 303},
        token_flags={"K>": ("normalized",), "<t>": ("normalized",)},
        **ADDED,
    ),
    "prefix": lambda engine: trained(engine=engine, prefix_space=True, **ADDED),
    "from outside": lambda engine: Tokenizer.from_vocabulary(
        Vocabulary(
            "code points",
            tuple(bytes([byte]) for byte in range(256)),
            special_tokens={"<s>": 256},
            reserved={"BOS": 257, "EOS": 258},
        ),
        engine,
    ),
}


@pytest.fixture(params=MADE, scope="module")
def name(request):
    return request.param


@pytest.fixture(params=engines.NAMES, scope="module")
def tokenizer(request, name):
    return MADE[name](request.param)


@pytest.fixture
def bpe():
    return trained()


def rows_of(tokenizer, texts, options):
    return [
        tokenizer.encode_bytes(text, **options)
        if isinstance(text, bytes)
        else tokenizer.encode(text, **options)
        for text in texts
    ]


# One text


@core
@pytest.mark.parametrize("options", OPTIONS)
def test_arrays(tokenizer, options):
    for text in [*TEXTS, b"low\xff"]:
        (expected,) = rows_of(tokenizer, [text], options)
        ids = tokenizer.encode_array(text, **options)
        assert ids.dtype == np.uint32 and ids.flags.owndata | (ids.base is not None)
        assert ids.flags.writeable and ids.tolist() == expected
        for dtype in (np.uint32, np.uint16):
            out = np.full(len(expected) + 2, 7, dtype)
            assert tokenizer.encode_into(text, out, **options) == len(expected)
            assert out.tolist() == [*expected, 7, 7]
        count = tokenizer.count(text, allowed_special=options.get("allowed_special", ()))
        around = len(tokenizer.encode("", **options))
        assert count == len(expected) - around


@core
def test_surrogates_are_replaced_everywhere(tokenizer):
    if tokenizer.method == "code points":
        pytest.skip("the same code")
    options = {"errors": "replace"}
    expected = tokenizer.encode("\ufffd")
    assert tokenizer.encode_array("\ud83d", **options).tolist() == expected
    assert tokenizer.encode_with_offsets("\ud83d", **options).ids == expected
    assert tokenizer.encode_batch(["\ud83d", b"a"], **options)[0] == expected
    assert tokenizer.encode_batch_arrays(["\ud83d"], **options)[0].tolist() == expected
    assert tokenizer.count("\ud83d", **options) == len(expected)
    assert tokenizer.count_batch(["\ud83d"], **options).tolist() == [len(expected)]
    out = np.zeros(9, np.uint32)
    assert tokenizer.encode_into("\ud83d", out, **options) == len(expected)
    for call in (
        tokenizer.encode_array,
        tokenizer.count,
        lambda text: tokenizer.encode_into(text, out),
    ):
        with pytest.raises(UnicodeEncodeError) as raised:
            call("e\u0301\ud83d")
        assert raised.value.start == 2
    for call in (tokenizer.encode_batch, tokenizer.encode_batch_arrays, tokenizer.count_batch):
        with pytest.raises(UnicodeEncodeError, match=r"\(text 1\)") as raised:
            call(["a", "e\u0301\ud83d"])
        assert raised.value.start == 2


@core
def test_all_kinds_of_buffers(tokenizer, tmp_path):
    data = "low lower e\u0301 naïve<s>".encode() + b"\xff\xfe low"
    (tmp_path / "file").write_bytes(data)
    expected = tokenizer.encode_bytes(data)
    with (
        open(tmp_path / "file", "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        strided = memoryview(bytes(byte for byte in data for _ in range(2)))[::2]
        kinds = [data, bytearray(data), memoryview(data), strided, mapped]
        for kind in kinds:
            assert tokenizer.encode_bytes(kind) == expected
            assert tokenizer.encode_array(kind).tolist() == expected
            assert tokenizer.count(kind) == len(expected)
            out = np.zeros(len(expected), np.uint32)
            assert tokenizer.encode_into(kind, out) == len(expected)
            assert out.tolist() == expected
        assert tokenizer.encode_batch(kinds) == [expected] * len(kinds)
        assert tokenizer.encode_batch(["a", *kinds])[0] == tokenizer.encode("a")
        with pytest.raises(TypeError, match="a batch must be an iterable of texts, not mmap"):
            tokenizer.encode_batch(mapped)
    with pytest.raises(ValueError, match="closed"):
        tokenizer.encode_array(mapped)


def test_a_mapped_corpus(tmp_path):
    (tmp_path / "file").write_bytes(CORPUS.encode())
    with (
        open(tmp_path / "file", "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        assert Tokenizer(mapped, method="bpe") == Tokenizer(CORPUS, method="bpe")


@core
def test_what_is_no_text(tokenizer):
    out = np.zeros(9, np.uint32)
    for call in (
        tokenizer.encode_array,
        tokenizer.count,
        lambda text: tokenizer.encode_into(text, out),
    ):
        with pytest.raises(TypeError, match="a document must be str or bytes, not list"):
            call(["low"])
    for call in (tokenizer.encode_batch, tokenizer.encode_batch_arrays, tokenizer.count_batch):
        with pytest.raises(TypeError, match="text 1: a document must be str or bytes, not int"):
            call(["low", 5])
        with pytest.raises(TypeError, match="a batch must be an iterable of texts, not str"):
            call("low")
        with pytest.raises(ValueError, match="errors must be one of"):
            call([], errors="ignore")
        with pytest.raises(ValueError, match="'<x>' is no special token"):
            call([], allowed_special={"<x>"})


@pytest.mark.parametrize("engine", engines.NAMES)
def test_unknown_bytes(engine):
    tokenizer = Tokenizer("abc", engine=engine)
    known = "not in the vocabulary, which knows 3 bytes: b'abc'"
    for call in (
        tokenizer.encode_array,
        tokenizer.count,
        lambda text: tokenizer.encode_into(text, np.zeros(9, np.uint32)),
    ):
        with pytest.raises(ValueError, match=f"^byte 0x78 at byte position 2 is {known}"):
            call("abxc")
    for call in (tokenizer.encode_batch, tokenizer.encode_batch_arrays, tokenizer.count_batch):
        with pytest.raises(ValueError, match=f"^text 1: byte 0x78 at byte position 2 is {known}"):
            call(["abc", "abxc", "y"])


# Buffers of the caller


@core
@pytest.mark.parametrize("engine", engines.NAMES)
@pytest.mark.parametrize("options", [{}, {"bos": True}])
def test_buffers_that_do_not_do(engine, options):
    tokenizer = trained(engine=engine)
    size = len(tokenizer.encode("low lower", **options))
    out = np.zeros(size, np.uint32)
    frozen = out.copy()
    frozen.flags.writeable = False
    for buffer, error, message in (
        ([0] * size, TypeError, "`out` must be an array or a buffer, not list"),
        (None, TypeError, "`out` must be an array or a buffer, not NoneType"),
        (out.astype(np.int64), TypeError, "`out` must hold uint16 or uint32, not int64"),
        (out.astype(np.int32), TypeError, "`out` must hold uint16 or uint32, not int32"),
        (out.astype(np.float32), TypeError, "`out` must hold uint16 or uint32, not float32"),
        (bytearray(99), TypeError, "`out` must hold uint16 or uint32, not uint8"),
        (np.zeros((size, 1), np.uint32), ValueError, "one dimension"),
        (np.zeros(2 * size, np.uint32)[::2], ValueError, "contiguous"),
        (out[::-1], ValueError, "contiguous"),
        (frozen, ValueError, "`out` is read only"),
        (out[:-1], ValueError, f"the text has {size} ids, but `out` has room for {size - 1}"),
        (out[:0], ValueError, f"the text has {size} ids, but `out` has room for 0"),
    ):
        with pytest.raises(error, match=message):
            tokenizer.encode_into("low lower", buffer, **options)
    expected = tokenizer.encode("low lower", **options)
    for buffer in (
        array("I", bytes(4 * size)),
        array("H", bytes(2 * size)),
        memoryview(out),
        (ctypes.c_uint32 * size)(),
    ):
        assert tokenizer.encode_into("low lower", buffer, **options) == size
        assert list(buffer) == expected


@pytest.mark.parametrize("engine", engines.NAMES)
def test_ids_beyond_16_bits(engine):
    vocabulary = Vocabulary(
        "byte", (b"a", b"b"), special_tokens={"<s>": 65536}, reserved={"EOS": 3}
    )
    tokenizer = Tokenizer.from_vocabulary(vocabulary, engine)
    out = np.zeros(2, np.uint16)
    assert tokenizer.encode_into("ab", out) == 2
    for options in ({}, {"eos": True}):
        with pytest.raises(ValueError, match="id 65536 is too large for uint16, which holds 0 to"):
            tokenizer.encode_into("<s>", out, allowed_special="all", **options)
    message = "uint16 holds 0 to 65535, and the highest id is 65536: use uint32"
    with pytest.raises(ValueError, match=message):
        tokenizer.encode_batch_arrays(["ab"], dtype="uint16")
    smaller = Tokenizer.from_vocabulary(replace(vocabulary, special_tokens={"<s>": 65535}), engine)
    ids, _ = smaller.encode_batch_arrays(["<s>"], dtype=np.uint16, allowed_special="all")
    assert (ids.dtype, ids.tolist()) == (np.uint16, [65535])


@pytest.mark.parametrize("dtype", ["int32", "uint64", ">u2", None, "x", 5, np.int16, float])
def test_types_that_are_none_for_ids(bpe, dtype):
    with pytest.raises(ValueError, match="dtype must be 'uint16' or 'uint32', not"):
        bpe.encode_batch_arrays(["low"], dtype=dtype)


# Batches


@core
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS, b"low\xff", b""], ["low"], [""], []])
def test_batches(tokenizer, texts, options):
    rows = rows_of(tokenizer, texts, options)
    assert tokenizer.encode_batch(iter(texts), **options) == rows
    for dtype in ("uint32", np.uint16, np.dtype("uint32")):
        ids, offsets = tokenizer.encode_batch_arrays(texts, dtype=dtype, **options)
        assert ids.dtype == dtype and offsets.dtype == np.uint64
        assert ids.tolist() == [id for row in rows for id in row]
        assert offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    allowed = options.get("allowed_special", ())
    counts = tokenizer.count_batch(texts, allowed_special=allowed)
    assert counts.dtype == np.uint64
    assert counts.tolist() == [tokenizer.count(text, allowed_special=allowed) for text in texts]


def test_arrays_take_no_number_of_python_for_each_id(bpe):
    """What the engine has itself is not seen here; of a list each id takes 8 bytes at least."""
    texts = ["low lower lowest " * 20_000] * 3
    tokens = int(bpe.count_batch(texts).sum())
    arrays = peak(lambda: bpe.encode_batch_arrays(texts, threads=1))
    lists = peak(lambda: bpe.encode_batch(texts, threads=1))
    assert arrays < 5 * tokens < 8 * tokens < lists


def test_an_error_of_an_iterator_comes_out_unchanged(tokenizer):
    error = ValueError("mine")

    def items():
        yield "low"
        raise error

    for call in (tokenizer.encode_batch_arrays, tokenizer.count_batch):
        with pytest.raises(ValueError) as raised:
            call(items())
        assert raised.value is error


# What goes to the engine at once


SPELLINGS = ["<t>", "K>", "a;", " b", "é", "x"]
NEAR_TOKENS = st.lists(
    st.sampled_from(SPELLINGS)
    | st.sampled_from("<t>K;`abx é\u212a\u037e\u1fef\u0301\u0338\u0307\u1dfa\u1100\u1161\n"),
    max_size=12,
).map("".join)


@core
@pytest.mark.parametrize("engine", engines.NAMES)
@given(
    texts=st.lists(NEAR_TOKENS | NEAR_TOKENS.map(str.encode) | st.binary(max_size=5), max_size=3),
    spellings=st.dictionaries(st.sampled_from(SPELLINGS), FLAGS, max_size=3),
    normalizer=st.sampled_from([None, "NFC"]),
    prefix=st.booleans(),
)
def test_at_once_is_as_in_parts(engine, texts, spellings, normalizer, prefix):
    tokenizer = trained(
        engine=engine,
        special_tokens={},
        added_tokens={text: 400 + number for number, text in enumerate(spellings)},
        token_flags={text: tuple(flags) for text, flags in spellings.items() if flags},
        normalizer=normalizer,
        prefix_space=prefix,
    )
    encoder = tokenizer._encoder
    finder = encoder.finder(())
    in_parts = [
        [id for part in encoder.parts(text, finder) for id in encoder.ids_of(part)]
        for text in texts
    ]
    assert rows_of(tokenizer, texts, {}) == in_parts
    assert tokenizer.encode_batch(texts) == in_parts
    assert tokenizer.count_batch(texts).tolist() == list(map(len, in_parts))


@core
def test_both_kinds_of_tokens_are_found(engine):
    for normalizer in (None, "NFC"):
        tokenizer = trained(
            engine=engine.__name__.removeprefix("tokbpe."),
            added_tokens={"<t>": 300, "K>": 301},
            token_flags={"K>": ("normalized",)},
            normalizer=normalizer,
        )
        for text in ("<t>K>a", b"<t>K>a"):
            assert tokenizer.encode_array(text).tolist() == [300, 301, 97]
            assert tokenizer.encode_batch([text, "b"]) == [[300, 301, 97], [98]]
            assert tokenizer.count(text) == 3
        assert (tokenizer.encode("\u212a>") == [301]) == (normalizer == "NFC")


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("plain<t>", "plain<t>"),
        ("é", "é"),
        (b"low\xff", b"low\xff"),
        ("e\u0301<t>e\u0301", "é<t>é".encode()),
        # A mark that Unicode 9.0 does not know stays where it is.
        ("a\u0301\u1dfa", "á\u1dfa".encode()),
        ("<e\u0301", "<é".encode()),
        # Normalized, it would be a token that is looked for before.
        ("\u212a>", None),
    ],
)
def test_documents_go_at_once_where_that_changes_nothing(text, given):
    encoder = MADE["NFC"]("fast")._encoder
    assert encoder.at_once(text, encoder.finder(())) == given


def test_a_batch_of_normalized_documents_goes_at_once(monkeypatch):
    tokenizer = MADE["NFC"]("fast")
    expected = [tokenizer.encode(text) for text in TEXTS[:5]]
    monkeypatch.setattr(encoding.DocumentEncoder, "parts", None)
    assert tokenizer.encode_batch(TEXTS[:5]) == expected


# The short cut


def test_a_short_cut_is_no_way_around_the_checks(bpe):
    assert bpe.encode("low") == bpe.encode("low", allowed_special=()) == bpe.encode("low")
    with pytest.raises(TypeError, match="encode takes str, not bytes; bytes go to encode_bytes"):
        bpe.encode(b"low")
    with pytest.raises(ValueError, match="allowed_special is a set"):
        bpe.encode("low", allowed_special="")
    with pytest.raises(ValueError, match="errors must be one of"):
        bpe.encode("low", errors="ignore")
    with pytest.raises(UnicodeEncodeError):
        bpe.encode("\ud83d")
    assert bpe.encode(np.str_("low")) == bpe.encode("low")
    assert bpe.encode("low", bos=True)[0] == bpe.bos_id
    bpe.close()
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        bpe.encode("low")


def test_there_is_no_short_cut_around_a_normalizer():
    tokenizer = MADE["NFC"]("fast")
    for _ in range(2):
        assert tokenizer.encode("e\u0301") == tokenizer.encode("é")
    prefixed = MADE["prefix"]("fast")
    for _ in range(2):
        assert prefixed.encode("low") == prefixed.encode(" low")


# Memory


def words(count, seed=5):
    random = np.random.default_rng(seed)
    letters = random.integers(97, 123, (count, 8), np.uint8)
    letters[:, -1] = 32
    return letters.tobytes()


def test_a_cache_has_a_limit():
    tokenizer = trained()
    assert tokenizer.cache_bytes == 2**26 and tokenizer.cache_used == 0
    text = words(200_000)
    expected = tokenizer.encode_array(text)
    assert 2**20 < tokenizer.cache_used <= 2**26
    tokenizer.cache_bytes = 2**20
    assert tokenizer.cache_used <= 2**20
    for seed in range(3):
        tokenizer.encode_array(words(200_000, seed))
        assert tokenizer.cache_used <= 2**20
    assert np.array_equal(tokenizer.encode_array(text), expected)
    tokenizer.cache_bytes = 0
    assert np.array_equal(tokenizer.encode_array(text), expected)
    assert tokenizer.cache_used == 0


def test_a_cache_is_given_back():
    tokenizer = trained()
    expected = tokenizer.encode_array(words(50_000))
    assert tokenizer.cache_used > 0
    tokenizer.clear_cache()
    assert tokenizer.cache_used == 0
    assert np.array_equal(tokenizer.encode_array(words(50_000)), expected)
    tokenizer.clear_cache()
    tokenizer.clear_cache()


def test_the_limit_goes_where_the_tokenizer_goes():
    tokenizer = Tokenizer(CORPUS, method="bpe", cache_bytes=12345)
    assert tokenizer.cache_bytes == 12345
    for other in (
        pickle.loads(pickle.dumps(tokenizer)),
        pickle.loads(pickle.dumps(tokenizer, 0)),
        tokenizer.truncated(256),
        tokenizer.extended(CORPUS, tokenizer.vocab_size),
    ):
        assert other.cache_bytes == 12345
        other.encode("low")
        assert other._encoder.table.cache_limit == 12345
    assert Tokenizer.from_state(tokenizer.state()).cache_bytes == encoding.CACHE_BYTES


def test_limits_that_are_none():
    for size, error in ((-1, ValueError), (1.5, TypeError), (True, TypeError), (None, TypeError)):
        with pytest.raises(error, match="cache_bytes must be"):
            Tokenizer(CORPUS, cache_bytes=size)
        tokenizer = Tokenizer(CORPUS)
        with pytest.raises(error, match="cache_bytes must be"):
            tokenizer.cache_bytes = size
        assert tokenizer.cache_bytes == encoding.CACHE_BYTES


def test_the_reference_keeps_nothing():
    tokenizer = trained(engine="reference")
    tokenizer.encode(CORPUS)
    tokenizer.cache_bytes = 5
    tokenizer.clear_cache()
    assert (tokenizer.cache_bytes, tokenizer.cache_used) == (5, 0)


def test_closed():
    tokenizer = trained()
    tokenizer.close()
    out = np.zeros(9, np.uint32)
    for call in (
        lambda: tokenizer.encode_array("low"),
        lambda: tokenizer.encode_into("low", out),
        lambda: tokenizer.encode_batch_arrays(["low"]),
        lambda: tokenizer.count_batch([]),
        lambda: tokenizer.encode_file("absent"),
        lambda: tokenizer.cache_bytes,
        lambda: tokenizer.cache_used,
        lambda: setattr(tokenizer, "cache_bytes", 5),
        tokenizer.clear_cache,
    ):
        with pytest.raises(ValueError, match="this tokenizer is closed"):
            call()
