"""A tokenizer as an object: state, copies, equality, closing, threads and processes."""

import copy
import json
import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from hypothesis import given

from strategies import VALID_TEXTS
from tokbpe import Corpus, Tokenizer, engines

core = pytest.mark.core

CORPUS = ["low lower<|e|>", "lowest low 🐈 abab"]
OPTIONS = {
    "byte": {},
    "bpe": {"vocabulary_size": 264, "pattern": r"\S+|\s", "base": "gpt2", "special_ids": "first"},
    "char": {"special_ids": "end"},
    "word": {"vocabulary_size": 33, "tie_break": "greatest"},
}
TEXTS = ["lowest low", "abab<|e|>🐈", ""]


def make(method, engine=None):
    return Tokenizer(
        CORPUS,
        method=method,
        special_tokens=["z", "<|e|>"],
        reserved=["EOS", "BOS"],
        engine=engine,
        **OPTIONS[method],
    )


@pytest.fixture(params=OPTIONS)
def tokenizer(request):
    return make(request.param)


def uses(tokenizer):
    """What a tokenizer does."""
    ids = [tokenizer.encode(text, allowed_special="all", bos=True) for text in TEXTS]
    return ids, [tokenizer.decode(row) for row in ids], tokenizer.vocabulary


# Copies


def through_json(tokenizer):
    return Tokenizer.from_state(json.loads(json.dumps(tokenizer.state())))


def through_sorted_json(tokenizer):
    return Tokenizer.from_state(json.loads(json.dumps(tokenizer.state(), sort_keys=True)))


def through_pickle(tokenizer):
    return pickle.loads(pickle.dumps(tokenizer))


def through_first_protocol(tokenizer):
    return pickle.loads(pickle.dumps(tokenizer, 0))


COPIES = [
    through_json,
    through_sorted_json,
    through_pickle,
    through_first_protocol,
    copy.copy,
    copy.deepcopy,
]


@core
@pytest.mark.parametrize("copied", COPIES)
def test_copies_are_equal(tokenizer, copied):
    before = uses(tokenizer)
    other = copied(tokenizer)
    assert other == tokenizer
    assert hash(other) == hash(tokenizer)
    assert other.fingerprint() == tokenizer.fingerprint()
    assert other.state() == tokenizer.state()
    assert uses(other) == before
    assert list(other.special_tokens) == list(tokenizer.special_tokens)
    assert list(other.reserved) == list(tokenizer.reserved)
    assert other.target_vocab_size == tokenizer.target_vocab_size
    other.close()
    assert uses(tokenizer) == before


@core
@pytest.mark.parametrize("engine", engines.NAMES)
def test_copies_keep_the_engine_but_states_do_not(engine):
    tokenizer = make("bpe", engine)
    for copied in (copy.copy, copy.deepcopy, through_pickle):
        assert f"engine {engine!r}" in repr(copied(tokenizer))
    other = {"fast": "reference", "reference": "fast"}[engine]
    again = Tokenizer.from_state(tokenizer.state(), engine=other)
    assert f"engine {other!r}" in repr(again)
    assert again == tokenizer
    assert uses(again) == uses(tokenizer)


class Special(Tokenizer):
    pass


@core
def test_copies_of_a_subclass_are_of_it():
    tokenizer = Special("abab", method="bpe")
    for copied in (copy.copy, copy.deepcopy, through_pickle):
        assert type(copied(tokenizer)) is Special
    assert type(tokenizer.truncated(256)) is Special


# States


@core
def test_state_is_plain_data_of_its_own(tokenizer):
    state = tokenizer.state()
    assert json.loads(json.dumps(state)) == state
    before = tokenizer.fingerprint()
    again = Tokenizer.from_state(state)
    state["vocabulary"]["provenance"][0]["hashes"].append("0")
    state["vocabulary"]["provenance"][0]["documents"] = 0
    state["vocabulary"]["special_tokens"]["more"] = 1
    state["vocabulary"]["alphabet"].clear()
    assert tokenizer.fingerprint() == again.fingerprint() == before
    assert tokenizer.special_tokens == again.special_tokens


@core
@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (None, TypeError, "a state must be a mapping, not NoneType"),
        ("x", TypeError, "a state must be a mapping, not str"),
        ([], TypeError, "a state must be a mapping, not list"),
        ({}, ValueError, "a state has version, sha256 and vocabulary, not"),
        ({1: 2, "version": 1}, ValueError, "a state has version, sha256 and vocabulary, not"),
    ],
)
def test_what_is_no_state(state, error, message):
    with pytest.raises(error, match=message):
        Tokenizer.from_state(state)


@core
@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("version", 2, "the state has version 2; this tokbpe reads 1"),
        ("version", "1", "the state has version '1'"),
        ("version", None, "the state has version None"),
        ("sha256", "", "the state is damaged"),
        ("sha256", None, "the state is damaged"),
        ("vocabulary", {}, "the state is damaged"),
        ("vocabulary", None, "the state is damaged"),
        ("vocabulary", b"x", "the state is damaged"),
    ],
)
def test_damaged_state(tokenizer, part, value, message):
    with pytest.raises(ValueError, match=message):
        Tokenizer.from_state({**tokenizer.state(), part: value})


def places(value, path=()):
    """Where the numbers, texts and lists of plain data stand."""
    yield path
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def put(value, path, item):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = item


@core
def test_any_change_of_a_state_is_noticed():
    state = make("word").state()
    for path in places(state):
        for item in (None, 0, "x", []):
            damaged = copy.deepcopy(state)
            if not path:
                continue
            put(damaged, path, item)
            if damaged != state:
                with pytest.raises((ValueError, TypeError)):
                    Tokenizer.from_state(damaged)


# Equality


@core
def test_equality_is_of_what_encodes_and_decodes():
    tokenizer = Tokenizer("ababab", method="bpe", vocabulary_size=257)
    assert tokenizer == Tokenizer("xababab", method="bpe", vocabulary_size=257)
    assert tokenizer == Tokenizer("ababab", method="bpe", vocabulary_size=257, engine="reference")
    assert tokenizer == Tokenizer("ababab", method="bpe", vocabulary_size=257, tie_break="first")
    assert len({tokenizer, through_json(tokenizer), tokenizer.truncated(256)}) == 2


@core
@pytest.mark.parametrize(
    "options",
    [
        {"vocabulary_size": 258},
        {"vocabulary_size": 256},
        {"base": "gpt2"},
        {"pattern": "gpt2"},
        {"vocabulary_size": 258, "special_tokens": ["z"]},
        {"vocabulary_size": 258, "reserved": ["a"]},
    ],
    ids=repr,
)
def test_what_encodes_or_decodes_otherwise_is_not_equal(options):
    common = {"method": "bpe", "vocabulary_size": 257}
    assert Tokenizer("ababab", **common) != Tokenizer("ababab", **{**common, **options})


@core
@pytest.mark.parametrize("other", [None, 5, "ab", object(), (b"a", b"b")])
def test_other_things_are_not_equal(other):
    assert Tokenizer("ab") != other
    assert other != Tokenizer("ab")


# Closing


USES = {
    "encode": lambda tokenizer: tokenizer.encode("ab"),
    "encode_bytes": lambda tokenizer: tokenizer.encode_bytes(b"ab"),
    "encode_chat": lambda tokenizer: tokenizer.encode_chat([]),
    "decode": lambda tokenizer: tokenizer.decode([1]),
    "decode, skipping": lambda tokenizer: tokenizer.decode([1], skip_special=True),
    "decode_bytes": lambda tokenizer: tokenizer.decode_bytes([1]),
    "truncated": lambda tokenizer: tokenizer.truncated(300),
    "extended": lambda tokenizer: tokenizer.extended("ab", 300),
    "state": lambda tokenizer: tokenizer.state(),
    "fingerprint": lambda tokenizer: tokenizer.fingerprint(),
    "hash": hash,
    "equality": lambda tokenizer: tokenizer == Tokenizer("ab"),
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "with": lambda tokenizer: tokenizer.__enter__(),
    "items": lambda tokenizer: list(tokenizer.items()),
    "encode_bytes_with_offsets": lambda tokenizer: tokenizer.encode_bytes_with_offsets(b"ab"),
    "encode_corpus": lambda tokenizer: tokenizer.encode_corpus(Corpus("ab")),
    "split_at": lambda tokenizer: tokenizer.split_at("ab", 1),
    **{
        name: lambda tokenizer, name=name: getattr(tokenizer, name)("never written")
        for name in ("save", "to_gpt2", "to_huggingface", "to_json", "to_tiktoken")
    },
    **{
        name: lambda tokenizer, name=name: getattr(tokenizer, name)
        for name in (
            "method", "pattern", "vocab_size", "target_vocab_size", "lossless", "vocabulary",
            "vocabulary_bytes", "merges", "merge_counts", "special_tokens", "reserved", "bos_id",
            "eos_id", "pad_id",
        )
    },
}  # fmt: skip


@core
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("used_before", [False, True])
def test_every_use_of_a_closed_tokenizer_is_an_error(tokenizer, use, used_before):
    if used_before:
        uses(tokenizer)
        tokenizer.decode([1], skip_special=True)
        tokenizer.decode_bytes([1])
    tokenizer.close()
    tokenizer.close()
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        USES[use](tokenizer)
    assert repr(tokenizer) == "<Tokenizer, closed>"


@core
def test_with_closes_also_after_an_error():
    with pytest.raises(KeyError), Tokenizer("ab") as tokenizer:
        raise KeyError("mine")
    assert repr(tokenizer) == "<Tokenizer, closed>"


@core
@pytest.mark.parametrize("use", USES)
def test_what_was_never_made_is_as_closed(use):
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        USES[use](Tokenizer.__new__(Tokenizer))


def failing():
    yield "abab"
    raise KeyError("mine")


def told(done, total):
    raise KeyError("mine")


@core
@pytest.mark.parametrize(
    ("corpus", "options"),
    [
        ("", {"method": "bpe"}),
        ("abab", {"method": "wordpiece"}),
        ("abab", {"engine": "c"}),
        ("abab", {"cache_bytes": -1}),
        (["abab", 5], {"method": "bpe"}),
        (failing(), {"method": "bpe"}),
        ("abab", {"method": "bpe", "progress": told}),
        # Behind the last merge: the warning of a smaller vocabulary is an error here.
        ("abab", {"method": "bpe", "vocabulary_size": 300}),
    ],
    ids=["nothing", "method", "engine", "cache", "document", "iterator", "progress", "warning"],
)
def test_what_could_not_be_made_is_as_closed(corpus, options):
    tokenizer = Tokenizer.__new__(Tokenizer)
    with pytest.raises((ValueError, TypeError, KeyError, UserWarning)):
        tokenizer.__init__(corpus, **options)
    assert repr(tokenizer) == "<Tokenizer, closed>"
    for use in ("encode", "save", "vocabulary"):
        with pytest.raises(ValueError, match="this tokenizer is closed"):
            USES[use](tokenizer)


@core
def test_calls_already_running_finish(tokenizer):
    """A caller's own iterator closes the tokenizer in the middle of the call."""
    others = [through_json(tokenizer) for _ in range(3)]

    def closing(items, other):
        for item in items:
            yield item
            other.close()

    ids = tokenizer.encode("low low")
    assert others[0].decode(closing(ids, others[0])) == "low low"
    assert others[1].decode_bytes(closing(ids, others[1]), skip_special=True) == b"low low"
    if tokenizer.method in ("bpe", "word"):
        longer = others[2].extended(closing(["low low"], others[2]), tokenizer.vocab_size)
        assert longer == tokenizer
        assert repr(others[2]) == "<Tokenizer, closed>"
    assert [repr(other) for other in others[:2]] == ["<Tokenizer, closed>"] * 2


@core
def test_a_running_chat_finishes():
    tokenizer = Tokenizer.from_bytes(reserved=["EOS", "USER"])

    def turns():
        yield "user", "a"
        tokenizer.close()
        yield "user", "b"

    ids, mask = tokenizer.encode_chat(turns())
    assert ids == [257, 97, 256, 257, 98, 256]
    assert mask == [False] * 6
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        tokenizer.encode_chat([])


@core
@pytest.mark.parametrize("engine", engines.NAMES)
def test_closing_while_threads_encode(engine):
    """Each call gives the right ids or the error, and from the error on always the error."""
    tokenizer = make("bpe", engine)
    expected = tokenizer.encode("lowest low " * 20)
    started = threading.Barrier(5)

    def work():
        started.wait()
        results = []
        while len(results) < 100_000:
            try:
                results.append(tokenizer.encode("lowest low " * 20) == expected)
            except ValueError as error:
                results.append(str(error))
                if len(results) > 3 and results[-3:] == ["this tokenizer is closed"] * 3:
                    return results
        return results

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work) for _ in range(4)]
        started.wait()
        tokenizer.close()
        for future in futures:
            results = future.result(30)
            assert set(results) <= {True, "this tokenizer is closed"}
            assert results[-1] == "this tokenizer is closed"
            assert results == sorted(results, key=lambda result: result is not True)


# Threads and processes


@core
def test_threads_share_a_tokenizer(tokenizer):
    texts = ["lowest low " * size for size in range(60)]
    expected = [make(tokenizer.method).encode(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(tokenizer.encode, texts)) == expected
        decoded = pool.map(tokenizer.decode, expected)
        assert list(decoded) == [tokenizer.decode(ids) for ids in expected]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_process_pools(start):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{sys.platform} does not {start}")
    tokenizers = [make(method) for method in OPTIONS]
    texts = ["lowest low", "abab", "low 🐈"] * 2
    expected = [[tokenizer.encode(text) for text in texts] for tokenizer in tokenizers]
    with ThreadPoolExecutor(4) as threads:  # a fork after threaded encoding does not hang
        list(threads.map(tokenizers[1].encode, texts))
    context = multiprocessing.get_context(start)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        found = [list(pool.map(tokenizer.encode, texts, timeout=60)) for tokenizer in tokenizers]
    assert found == expected


# Any text


@core
@given(text=VALID_TEXTS)
def test_copies_encode_alike(text):
    tokenizer = Tokenizer([text, "abab"], method="bpe", vocabulary_size=257)
    for copied in (through_sorted_json, through_pickle):
        assert copied(tokenizer).encode(text) == tokenizer.encode(text)
