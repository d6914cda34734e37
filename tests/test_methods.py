"""Methods: the registry with one from outside; cutting and continuing a training."""

import copy
import json
import pickle
from itertools import count

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strategies import TIE_BREAKS, texts
from tokbpe import Tokenizer, arguments, engines, methods
from tokbpe.vocabulary import Vocabulary

pytestmark = pytest.mark.core


# A method from outside


class LongestMatch:
    """The distinct words of a corpus, and all bytes; the longest piece that fits is taken."""

    name = "longest"
    number = 100

    def train(self, corpus, options):
        words = sorted({word.encode() for document in corpus for word in document.split()})
        alphabet = [bytes([byte]) for byte in range(256)]
        alphabet += [word for word in words if len(word) > 1]
        start = len(alphabet)
        return Vocabulary(
            self.name,
            tuple(alphabet),
            special_tokens=dict(zip(options.special_tokens, count(start))),
            reserved=dict(zip(options.reserved, count(start + len(options.special_tokens)))),
        )

    def encoder(self, vocabulary):
        return LongestMatchEncoder(vocabulary.alphabet)


class LongestMatchEncoder:
    def __init__(self, pieces):
        self.ids = {piece: id for id, piece in enumerate(pieces)}
        self.longest = max(map(len, pieces))

    def encode(self, data):
        ids = []
        while data:
            sizes = range(min(self.longest, len(data)), 0, -1)
            size = next(size for size in sizes if data[:size] in self.ids)
            ids.append(self.ids[data[:size]])
            data = data[size:]
        return ids


@pytest.fixture
def longest(monkeypatch):
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    methods.register(LongestMatch())


@pytest.fixture
def tokenizer(longest):
    return Tokenizer(
        ["low lower", "we"], method="longest", special_tokens=["<|e|>"], reserved=["BOS", "EOS"]
    )


def test_method_from_outside(tokenizer):
    assert tokenizer.method == "longest"
    assert tokenizer.vocabulary[256:] == (b"low", b"lower", b"we", b"<|e|>", b"", b"")
    assert tokenizer.encode("lowered low") == [257, 101, 100, 32, 256]
    assert tokenizer.decode([257, 101, 100, 32, 256]) == "lowered low"
    assert tokenizer.encode_bytes(b"\xfflow") == [255, 256]
    assert tokenizer.encode("") == []


def test_method_from_outside_with_special_tokens(tokenizer):
    plain = [256, 60, 124, 101, 124, 62, 256]
    assert tokenizer.encode("low<|e|>low") == plain
    assert tokenizer.encode("low<|e|>low", allowed_special="all") == [256, 259, 256]
    assert tokenizer.encode("low", bos=True, eos=True) == [260, 256, 261]
    assert tokenizer.decode([260, 256, 259, 261]) == "<|BOS|>low<|e|><|EOS|>"
    with pytest.raises(UnicodeEncodeError):
        tokenizer.encode("\ud800")


def through_state(tokenizer):
    return Tokenizer.from_state(json.loads(json.dumps(tokenizer.state())))


def through_pickle(tokenizer):
    return pickle.loads(pickle.dumps(tokenizer))


@pytest.mark.parametrize("copied", [through_state, through_pickle, copy.deepcopy])
def test_method_from_outside_is_kept(tokenizer, copied):
    other = copied(tokenizer)
    assert other == tokenizer
    assert other.method == "longest"
    assert other.encode("lowered<|e|>") == tokenizer.encode("lowered<|e|>")


def test_method_from_outside_saves(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved").encode("lowered") == tokenizer.encode("lowered")


def test_method_that_is_not_registered_is_not_encoded_otherwise(tokenizer, monkeypatch):
    state = tokenizer.state()
    monkeypatch.delitem(methods.METHODS, "longest")
    for call in (
        lambda: Tokenizer.from_state(state),
        lambda: Tokenizer("low", method="longest"),
        lambda: pickle.loads(pickle.dumps(tokenizer)),
    ):
        with pytest.raises(ValueError, match="method must be one of 'byte', .*, not 'longest'"):
            call()


def test_method_without_training_of_merges_cannot_go_on(tokenizer):
    with pytest.raises(ValueError, match="cannot be extended"):
        tokenizer.extended(["low"], 300)
    with pytest.raises(ValueError, match="the longest method merges nothing"):
        Tokenizer.train_steps(["low"], method="longest")


def described(**parts):
    return type("Described", (), {"train": lambda *_: None, **parts})()


@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        (LongestMatch(), ValueError, "there is 'longest' with number 100 already"),
        (described(name="other", number=100), ValueError, "there is 'longest' with number 100"),
        (described(name="bpe", number=101), ValueError, "there is 'bpe' with number 1 already"),
        (described(name="other", number=1), ValueError, "there is 'bpe' with number 1 already"),
        (described(name="other"), TypeError, "a method has a number"),
        (described(number=101), TypeError, "a method has a name"),
        (described(name="", number=101), ValueError, "is empty"),
        (described(name=5, number=101), TypeError, "must be str, not int"),
        (described(name="other", number="101"), TypeError, "must be a whole number, not str"),
        (described(name="other", number=True), TypeError, "must be a whole number, not bool"),
        (described(name="other", number=-1), ValueError, "must be from 0 to 2147483647, not -1"),
        (described(name="other", number=2**31), ValueError, "must be from 0 to 2147483647"),
        (described(name="other", number=101, train=None), TypeError, "cannot be called to train"),
        (5, TypeError, "a method has a name"),
    ],
)
def test_methods_that_are_refused(longest, method, error, message):
    before = dict(methods.METHODS)
    with pytest.raises(error, match=message):
        methods.register(method)
    assert before == methods.METHODS


def test_method_must_give_a_vocabulary(longest):
    methods.register(described(name="nothing", number=101))
    with pytest.raises(TypeError, match="method 'nothing' must return a Vocabulary, not NoneType"):
        Tokenizer("ab", method="nothing")


# A prefix of the merges

CORPORA = st.lists(texts("ab") | texts("ab ") | st.just("a<|e|>bab"), min_size=1, max_size=3)


@st.composite
def trainings(draw):
    method = draw(st.sampled_from(["bpe", "bpe", "word"]))
    layouts = ["base", "first", "end"] if method == "bpe" else ["base", "end"]
    options = {
        "method": method,
        "engine": draw(st.sampled_from(engines.NAMES)),
        "tie_break": draw(TIE_BREAKS),
        "minimum_pair_frequency": draw(st.sampled_from([1, 1, 2])),
        "special_ids": draw(st.sampled_from(layouts)),
        "special_tokens": draw(st.sampled_from([[], ["<|e|>"], ["z", "<|e|>", "a"]])),
        "reserved": draw(st.sampled_from([[], ["PAD"], ["EOS", "BOS"]])),
    }
    if method == "bpe":
        options["base"] = draw(st.sampled_from(["bytes", "gpt2"]))
        options["pattern"] = draw(st.sampled_from([None, "gpt2"]))
    return draw(CORPORA), options


def least_size(tokenizer):
    return tokenizer.vocab_size - len(tokenizer.merges)


def trained(corpus, options, size):
    try:
        return Tokenizer(corpus, vocabulary_size=size, **options)
    except ValueError as error:
        assume("to learn from" not in str(error))
        raise


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the corpus gave")
@given(training=trainings(), merges=st.integers(0, 12), less=st.integers(0, 12), sort=st.booleans())
def test_truncated_is_training_to_that_size(training, merges, less, sort):
    corpus, options = training
    others = len(options["special_tokens"]) + len(options["reserved"])
    alphabet = 256 if options["method"] == "bpe" else len({*"".join(corpus)}) * 2
    large = trained(corpus, options, alphabet + others + merges)
    if sort:  # through data whose keys are sorted, too
        large = Tokenizer.from_state(json.loads(json.dumps(large.state(), sort_keys=True)))
    size = max(large.vocab_size - less, least_size(large))
    small = trained(corpus, options, size)
    cut = large.truncated(size)
    assert cut == small
    assert cut.vocabulary == small.vocabulary
    assert cut.special_tokens == small.special_tokens
    assert cut.reserved == small.reserved
    assert cut.merge_counts.tolist() == small.merge_counts.tolist()
    for text in corpus:
        assert cut.encode(text, allowed_special="all") == small.encode(text, allowed_special="all")


def test_truncated_is_the_smaller_training_in_every_respect():
    small = Tokenizer("abab abab", method="bpe", vocabulary_size=257)
    cut = Tokenizer("abab abab", method="bpe", vocabulary_size=258).truncated(257)
    assert cut.fingerprint() == small.fingerprint()
    assert cut.target_vocab_size == 257


def test_words_keep_their_alphabet_when_truncated():
    cut = Tokenizer(["ab", "ab"], method="word", vocabulary_size=6).truncated(2)
    assert cut == Tokenizer(["ab", "ab"], method="word", vocabulary_size=2)
    assert (cut.vocab_size, cut.target_vocab_size) == (5, 2)


def test_truncated_twice_is_truncated_once():
    tokenizer = Tokenizer("low lower lowest " * 3, method="bpe", vocabulary_size=262)
    assert tokenizer.truncated(260).truncated(258) == tokenizer.truncated(258)
    assert tokenizer.truncated(262) == tokenizer


@pytest.mark.parametrize("method", ["byte", "char"])
def test_nothing_to_truncate(method):
    tokenizer = Tokenizer("ab", method=method)
    assert tokenizer.truncated(tokenizer.vocab_size) == tokenizer
    with pytest.raises(ValueError, match="vocabulary_size must be from 2 to 2|from 3 to 3"):
        tokenizer.truncated(tokenizer.vocab_size - 1)


SIZES = [
    (None, TypeError), ("260", TypeError), (260.0, TypeError), (True, TypeError),
    (255, ValueError), (-1, ValueError), (0, ValueError), (2**40, ValueError),
]  # fmt: skip


@pytest.mark.parametrize(("size", "error"), SIZES)
def test_wrong_sizes(size, error):
    tokenizer = Tokenizer("ababab", method="bpe", vocabulary_size=258)
    with pytest.raises(error, match="vocabulary_size must be"):
        tokenizer.truncated(size)
    with pytest.raises(error, match="vocabulary_size must be"):
        tokenizer.extended("abab", size)


def test_sizes_of_other_number_types():
    tokenizer = Tokenizer("ababab", method="bpe", vocabulary_size=np.int64(258))
    assert tokenizer.target_vocab_size == 258
    json.dumps(tokenizer.state())
    assert tokenizer.truncated(np.uint16(257)) == tokenizer.truncated(257)


# Learning on


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the corpus gave")
@given(training=trainings(), merges=st.integers(0, 6), more=st.integers(0, 8), corpus=CORPORA)
def test_extended_keeps_every_id(training, merges, more, corpus):
    first, options = training
    others = len(options["special_tokens"]) + len(options["reserved"])
    alphabet = 256 if options["method"] == "bpe" else len({*"".join(first)}) * 2
    old = trained(first, options, alphabet + others + merges)
    assume(any(corpus) and (options["method"] == "bpe" or "".join(corpus).split()))
    try:
        new = old.extended(corpus, old.vocab_size + more)
    except ValueError as error:  # nothing but special tokens
        assert "to learn from" in str(error)
        return
    assert new.vocabulary[: old.vocab_size] == old.vocabulary
    assert len(new.merges) == len(old.merges) + new.vocab_size - old.vocab_size
    assert new.special_tokens == old.special_tokens
    assert new.reserved == old.reserved
    for text in [*first, *corpus]:
        for allowed in ((), "all"):
            ids = new.encode(text, allowed_special=allowed)
            assert max(ids, default=0) < new.vocab_size
            assert new.decode(ids) == old.decode(old.encode(text, allowed_special=allowed))
            assert len(ids) <= len(old.encode(text, allowed_special=allowed))
    records = new.state()["vocabulary"]["provenance"]
    assert records[:-1] == old.state()["vocabulary"]["provenance"]
    assert records[-1]["documents"] == len(corpus)
    assert new.target_vocab_size == old.vocab_size + more
    again = Tokenizer.from_state(json.loads(json.dumps(new.state(), sort_keys=True)))
    assert again == new
    assert [again.encode(text) for text in corpus] == [new.encode(text) for text in corpus]


@pytest.mark.parametrize("engine", engines.NAMES)
def test_extended_by_hand(engine):
    old = Tokenizer(
        "ababab",
        method="bpe",
        vocabulary_size=258,
        special_tokens=["<|e|>"],
        special_ids="end",
        engine=engine,
    )
    assert old.vocabulary[256:] == (b"ab", b"<|e|>")
    new = old.extended(["abcabc<|e|>abc", "cc"], 259)
    assert new.vocabulary[256:] == (b"ab", b"<|e|>", b"abc")
    assert new.merges.tolist() == [[97, 98], [256, 99]]
    assert new.merge_counts.tolist() == [3, 3]
    assert new.encode("abcab<|e|>", allowed_special="all") == [258, 256, 257]
    hashes = [record["hashes"] for record in new.state()["vocabulary"]["provenance"]]
    assert [len(documents) for documents in hashes] == [1, 2]
    with pytest.raises(ValueError, match="extended beyond its special tokens, cannot be truncated"):
        new.truncated(259)


def test_extended_says_once_that_the_corpus_is_exhausted():
    old = Tokenizer("ababab", method="bpe", vocabulary_size=257)
    with pytest.warns(UserWarning, match="gave 258 of the 300 ids wanted") as warned:
        old.extended("ababab", 300)
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_code_without_a_module_is_warned_too():
    code = "Tokenizer('abab', method='bpe', vocabulary_size=300)"
    with pytest.warns(UserWarning, match="ids wanted"):
        exec(code, {"Tokenizer": Tokenizer})


def test_extended_by_nothing_is_equal():
    old = Tokenizer("ababab", method="bpe", vocabulary_size=257)
    new = old.extended("xyz", 257)
    assert new == old
    assert new.fingerprint() != old.fingerprint()


def test_extended_keeps_the_frequency_of_the_training():
    old = Tokenizer("ababab", method="bpe", vocabulary_size=257, minimum_pair_frequency=3)
    with pytest.warns(UserWarning, match="3 times or more"):
        assert old.extended("cdcd", 258) == old
    assert old.extended("cdcd", 258, minimum_pair_frequency=2).vocabulary[257] == b"cd"


def test_extended_words_leave_unknown_characters_apart():
    old = Tokenizer("ab ab", method="word", vocabulary_size=6)
    with pytest.warns(UserWarning, match="ids wanted"):
        new = old.extended("a☃b a☃b ba ba", 20)
    assert new.vocabulary[5:] == (b"ab ", b"ba ")
    assert 0 not in new.merges
    assert new.encode("a☃b ba") == [1, 0, 4, 6]


@pytest.mark.parametrize(
    ("corpus", "error", "message"),
    [
        (None, TypeError, "a corpus must be str, bytes or an iterable of these, not NoneType"),
        (5, TypeError, "a corpus must be"),
        ({"a": 1}, TypeError, "a corpus must be"),
        (["a", 5], TypeError, "document 1 must be str or bytes, not int"),
        ("", ValueError, "holds no bytes"),
        (["a", "\ud800"], UnicodeEncodeError, "document 1"),
    ],
)
def test_extended_by_a_wrong_corpus(corpus, error, message):
    old = Tokenizer("ababab", method="bpe", vocabulary_size=258, special_tokens=["<|e|>"])
    with pytest.raises(error, match=message):
        old.extended(corpus, 300)


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("minimum_pair_frequency", 0, ValueError),
        ("minimum_pair_frequency", 2.0, TypeError),
        ("progress", "yes", TypeError),
    ],
)
def test_extended_with_wrong_options(option, value, error):
    old = Tokenizer("ababab", method="bpe", vocabulary_size=257)
    with pytest.raises(error, match=option):
        old.extended("abab", 300, **{option: value})


@pytest.mark.parametrize("method", ["byte", "char"])
def test_methods_that_cannot_be_extended(method):
    with pytest.raises(ValueError, match=f"the {method} method .* cannot be extended"):
        Tokenizer("ab", method=method).extended("ab", 300)
    with pytest.raises(ValueError, match="cannot be extended"):
        Tokenizer.from_bytes().extended("ab", 300)


def test_imported_vocabularies_can_be_neither_cut_nor_extended():
    imported = Tokenizer.from_vocabulary(
        Vocabulary(
            "bpe", tuple(bytes([byte]) for byte in range(256)), np.array([[97, 98]], np.uint32)
        )
    )
    assert imported.encode("ab") == [256]
    with pytest.raises(ValueError, match="cannot be truncated"):
        imported.truncated(256)
    with pytest.raises(ValueError, match="cannot be extended"):
        imported.extended("abab", 300)


# Steps


@pytest.mark.parametrize("engine", engines.NAMES)
@pytest.mark.parametrize("method", ["bpe", "word"])
def test_steps_are_those_of_the_training(engine, method):
    options = {"method": method, "engine": engine, "minimum_pair_frequency": 2}
    steps = list(Tokenizer.train_steps("low lower lowest low", **options))
    tokenizer = Tokenizer("low lower lowest low", **options)
    assert [step.occurrences for step in steps] == tokenizer.merge_counts.tolist()
    assert [step.left + step.right for step in steps] == [
        tokenizer.vocabulary[step.id] for step in steps
    ]
    assert [step.id for step in steps] == list(
        range(tokenizer.vocab_size - len(steps), tokenizer.vocab_size)
    )


def test_steps_are_lazy_but_arguments_are_checked_at_once():
    assert next(Tokenizer.train_steps("ab" * 9)).left == b"a"
    with pytest.raises(ValueError, match="the byte method merges nothing"):
        Tokenizer.train_steps("ab", method="byte")
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Tokenizer.train_steps("ab", size=300)
    with pytest.raises(ValueError, match="tie_break must be one of"):
        Tokenizer.train_steps("ab", tie_break="last")


def test_a_method_from_outside_needs_not_know_of_special_tokens(longest):
    tokenizer = Tokenizer("hello world", method="longest", special_tokens=["<e>"], reserved=["BOS"])
    ids = tokenizer.encode("hello<e>", allowed_special="all", bos=True)
    assert ids[0] == tokenizer.bos_id
    assert ids[-1] == tokenizer.special_tokens["<e>"]
    assert tokenizer.decode(ids, skip_special=True) == "hello"


@pytest.mark.parametrize("special_tokens", [[], ["<e>"]])
def test_the_byte_method_tells_how_far_it_is(special_tokens, monkeypatch):
    monkeypatch.setattr(methods, "BYTES_TOGETHER", 4)
    told = []
    tokenizer = Tokenizer(
        ["low lower", "<e>est"],
        method="byte",
        special_tokens=special_tokens,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == sorted(told)
    assert told[:3] == [(4, 15), (8, 15), (9, 15)]
    assert told[-1] == (15, 15)
    spelled = {
        tokenizer.id_to_piece(id) for id in range(tokenizer.vocab_size - len(special_tokens))
    }
    assert (b"<" in spelled) == (not special_tokens)

    def interrupted(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tokenizer("low lower", method="byte", progress=interrupted)


def test_many_special_tokens_are_compared_little():
    compared = 0

    class Counted(str):
        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    tokens = [Counted(f"<{number}>") for number in range(1000)]
    assert arguments.names(tokens, "special_tokens") == tuple(tokens)
    assert compared < 10_000
    with pytest.raises(ValueError, match="names holds '<5>' twice"):
        arguments.names([*tokens, "<5>"], "names")
