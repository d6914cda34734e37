"""`Vocabulary`: what fits together and what does not; plain data; ids in any order."""

import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import calls, growth
from strategies import SEEDS, SPELLINGS, VALID_TEXTS, bytes_of, special_documents
from tokbpe import Tokenizer, engines
from tokbpe import vocabulary as vocabularies
from tokbpe.continuing import truncated
from tokbpe.vocabulary import Vocabulary, lay_out, taken_out

pytestmark = pytest.mark.core

BYTES = tuple(bytes([byte]) for byte in range(256))


def vocabulary(merges=(), merge_ids=None, alphabet=BYTES, **parts):
    return Vocabulary(
        "bpe",
        alphabet,
        np.array(merges, np.uint32).reshape(-1, 2),
        None if merge_ids is None else np.array(merge_ids, np.uint32),
        **parts,
    )


@pytest.fixture(params=engines.NAMES)
def tokenizer_of(request):
    return lambda *arguments, **parts: Tokenizer.from_vocabulary(
        vocabulary(*arguments, **parts), request.param
    )


# Merges of imported files


def test_merges_in_an_odd_order(tokenizer_of):
    """merges [("ab","c"), ("a","b")]: the lowest rank first, so ab and then abc."""
    a, b, c, ab, abc = 0, 1, 2, 3, 4
    tokenizer = tokenizer_of([(ab, c), (a, b)], [abc, ab], (b"a", b"b", b"c"))
    assert tokenizer.vocabulary == (b"a", b"b", b"c", b"ab", b"abc")
    assert tokenizer.encode("abc") == [abc]
    assert tokenizer.encode("abab") == [ab, ab]
    assert tokenizer.decode([abc, ab]) == "abcab"


def test_rank_decides_and_not_the_id(tokenizer_of):
    tokenizer = tokenizer_of([(1, 2), (0, 1)], [3, 4], (b"a", b"b", b"c"))
    assert tokenizer.encode("abc") == [0, 3]
    tokenizer = tokenizer_of([(1, 2), (0, 1)], [4, 3], (b"a", b"b", b"c"))
    assert tokenizer.encode("abc") == [0, 4]
    tokenizer = tokenizer_of([(0, 1), (1, 2)], [4, 3], (b"a", b"b", b"c"))
    assert tokenizer.encode("abc") == [4, 2]


def test_gaps(tokenizer_of):
    tokenizer = tokenizer_of([(97, 98)], [300], special_tokens={"<|e|>": 290})
    assert tokenizer.vocab_size == 301
    assert [id for id, _ in tokenizer.items()] == [*range(256), 290, 300]
    assert tokenizer.vocabulary[299] is None
    assert tokenizer.encode("ab<|e|>", allowed_special="all") == [300, 290]
    with pytest.raises(ValueError, match="id 299 at position 1 is a gap"):
        tokenizer.decode([300, 299])
    with pytest.raises(ValueError, match="id 301 at position 0 is not from 0 to 300"):
        tokenizer.decode_bytes([301])


@pytest.mark.parametrize("engine", engines.NAMES)
@pytest.mark.parametrize("kind", ["gpt2", "huggingface", "json", "tiktoken"])
def test_imported_merges_have_no_counts(kind, engine, tmp_path):
    trained = Tokenizer("low lower " * 9, method="bpe", vocabulary_size=260, pattern="gpt2")
    path = tmp_path if kind == "gpt2" else tmp_path / "file"
    getattr(trained, f"to_{kind}")(path)
    options = {"pattern": "gpt2"} if kind in ("json", "tiktoken") else {}
    read = getattr(Tokenizer, f"from_{kind}")(path, engine=engine, **options)
    read.save(tmp_path / "saved")
    for tokenizer in (read, Tokenizer.load(tmp_path / "saved", engine=engine)):
        merges, counts = tokenizer.merges, tokenizer.merge_counts
        assert (merges.dtype, counts.dtype) == (np.uint32, np.uint64)
        assert merges.shape == ((0, 2) if kind == "tiktoken" else (4, 2))
        assert counts.shape == (0,)


@given(seed=SEEDS, text=st.text("abc", max_size=40))
def test_ids_of_merges_may_be_any(seed, text):
    """Training with its ids renamed encodes alike but for the names."""
    trained = Tokenizer(text + "abcabc", method="bpe", minimum_pair_frequency=1)
    count = len(trained.merges)
    new_ids = Random(seed).sample(range(256, 2 * 256 + count), count)
    name = [*range(256), *new_ids]
    merges = [(name[left], name[right]) for left, right in trained.merges.tolist()]
    for engine in engines.NAMES:
        renamed = Tokenizer.from_vocabulary(vocabulary(merges, new_ids), engine)
        ids = renamed.encode(text)
        assert ids == [name[id] for id in trained.encode(text)]
        assert renamed.decode(ids) == text


def test_special_token_that_is_listed_as_a_piece_is_no_piece(tokenizer_of):
    tokenizer = tokenizer_of(special_tokens={"a": 97})
    assert tokenizer.encode("bab", allowed_special="all") == [98, 97, 98]
    with pytest.raises(ValueError, match="byte 0x61 at byte position 1 is not in the vocabulary"):
        tokenizer.encode("bab")
    assert tokenizer.decode([98, 97], skip_special=True) == "b"


# What does not fit together


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"special_tokens": {"": 300}}, ValueError, "a special token needs a spelling"),
        ({"special_tokens": {5: 300}}, ValueError, "a special token needs a spelling"),
        ({"special_tokens": {"a": 300, "b": 300}}, ValueError, "'b' has the id 300 of the special"),
        ({"special_tokens": {"x": 300, "a special token": 300}}, ValueError, "has the id 300"),
        ({"special_tokens": {"b": 97}}, ValueError, "special token 'b' has the id 97 of b'a'"),
        ({"special_tokens": {"a": 97, "<e>": 97}}, ValueError, "'<e>' has the id 97 of the spec"),
        ({"special_tokens": {"ab": 256}}, ValueError, "special token 'ab' has the id 256 of a mer"),
        ({"special_tokens": {"a merge": 256}}, ValueError, "has the id 256 of a merge"),
        ({"special_tokens": {"a": -1}}, ValueError, "the id of .*'a' must be from 0"),
        ({"special_tokens": {"a": 2**32}}, ValueError, "the id of .*'a' must be from 0"),
        ({"special_tokens": {"a": True}}, TypeError, "the id of .*'a' must be a whole number"),
        ({"special_tokens": {"a": "x"}}, TypeError, "the id of .*'a' must be a whole number"),
        ({"reserved": {"": 300}}, ValueError, "a reserved id needs a name that"),
        ({"reserved": {"A": 300, "B": 300}}, ValueError, "'B' has the id 300 of the reserved id"),
        ({"reserved": {"A": 97}}, ValueError, "reserved id 'A' has the id 97 of b'a'"),
        ({"reserved": {"A": 256}}, ValueError, "reserved id 'A' has the id 256 of a merge"),
        ({"reserved": {"A": 1.5}}, TypeError, "the id of .*'A' must be a whole number"),
        ({"reserved": {"A": 300}, "special_tokens": {"a": 300}}, ValueError, "300 of the special"),
        ({"merges": [(97, 300)]}, ValueError, "merge 0 joins 300, which is no id"),
        ({"merges": [(97, 98), (98, 98)], "merge_ids": [256, 256]}, ValueError, "makes b'bb' with"),
        ({"merge_ids": [97]}, ValueError, "makes b'ab' with the id 97, which is that of b'a'"),
        ({"merge_ids": [300, 301]}, ValueError, "1 merges, but 2 ids"),
        ({"merge_counts": np.array([1, 2], np.uint64)}, ValueError, "1 merges, but 2 counts"),
        ({"alphabet": (b"a", "b")}, ValueError, "alphabet entry 1 must be some bytes or None"),
        ({"alphabet": (b"a", b"")}, ValueError, "alphabet entry 1 must be some bytes or None"),
        ({"unit": "letter"}, ValueError, "unit must be one of"),
        ({"unit": "word"}, ValueError, "words are cut by"),
        ({"unknown": 257}, ValueError, "unknown must be from 0 to 256, not 257"),
        ({"unknown": -1}, ValueError, "unknown must be from 0 to 256, not -1"),
        ({"unknown": "x"}, TypeError, "unknown must be a whole number, not str"),
        ({"tie_break": "last"}, ValueError, "tie_break must be one of"),
        ({"special_ids": "last"}, ValueError, "special_ids must be one of"),
        ({"merge_rule": "longest"}, ValueError, "merge_rule must be one of"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_does_not_fit_together(parts, error, message):
    with pytest.raises(error, match=message):
        vocabulary(**{"merges": [(97, 98)], **parts})


@pytest.mark.parametrize(
    ("merges", "ids", "told"),
    [
        ([(257, 98), (256, 98)], [256, 257], "id 256 joins 257 and 98"),
        ([(256, 256)], [256], "id 256 joins 256 and 256"),
        ([(97, 98), (257, 256)], [256, 257], "id 257 joins 257 and 256"),
    ],
)
def test_merges_that_are_made_of_themselves(merges, ids, told):
    with pytest.raises(ValueError, match=f"{told}, of which one is never made"):
        vocabulary(merges, ids)


@pytest.mark.parametrize("ids", [None, [256, 257, 258]])
def test_merges_of_the_same_pair(ids):
    with pytest.raises(ValueError, match="merge 2 joins 97 and 98, as one before it does"):
        vocabulary([(97, 98), (98, 97), (97, 98)], ids)


def test_merges_that_stand_before_what_they_join():
    """Time grows with their number, and not with its square."""

    def reversed_chain(count):
        merges = [(97, 97), *((256 + number, 97) for number in range(count - 1))]
        return vocabulary(merges[::-1], [*range(256, 256 + count)][::-1])

    assert reversed_chain(3).pieces()[256:] == [b"aa", b"aaa", b"aaaa"]
    # The bytes of all pieces do grow with the square: they are few here.
    chains = {count: reversed_chain(count) for count in (500, 2000)}
    assert growth(lambda count: chains[count].validate(), 500, 2000, 10) < 10


@pytest.mark.parametrize("special_ids", ["base", "first", "end"])
@pytest.mark.parametrize("others", ["base", "first", "end"])
def test_a_layout_that_is_not_what_it_is_called(special_ids, others):
    """Nothing is cut off that is no special token."""
    known = vocabulary([(97, 98), (256, 98)], merge_counts=np.array([3, 2], np.uint64))
    known = replace(lay_out(known, ["<x>"], ["EOS"], special_ids), special_ids=others)
    if special_ids == others:
        assert truncated(known, len(known)).fingerprint() == known.fingerprint()
    else:
        with pytest.raises(ValueError, match=f"special_ids='{others}': .* cannot be truncated"):
            truncated(known, len(known))


@pytest.mark.parametrize("part", ["special_tokens", "added_tokens", "reserved"])
def test_names_that_are_no_text(part):
    with pytest.raises(ValueError, match=r"that UTF-8 can hold, not 'a\\ud83d'"):
        vocabulary([], **{part: {"a\ud83d": 300}})


@pytest.mark.parametrize("hashes", [[1], ["zz"], "zz", {"a": 1}, 5, [None]])
def test_hashes_that_are_none(hashes):
    plain = vocabulary([(97, 98)]).plain()
    plain["provenance"] = [{"documents": 1, "hashes": hashes}]
    with pytest.raises(ValueError, match="is no SHA-256|hashes must be a list"):
        Vocabulary.from_plain(plain)


def test_time_of_a_long_frame():
    """It does not look at all tokens for each id."""
    tokens = {f"<{number}>": 256 + number for number in range(2000)}
    long = vocabulary([], special_tokens=tokens, frame=((1,) * 2000, ()))
    assert calls(long.validate_tokens) < 30 * 4000


@pytest.mark.parametrize("wrong", [None, 5, "bpe", {}, Vocabulary])
def test_what_is_no_vocabulary(wrong):
    with pytest.raises(TypeError, match="a tokenizer needs a Vocabulary, not"):
        Tokenizer.from_vocabulary(wrong)


def test_it_never_changes():
    known = vocabulary([(97, 98)])
    with pytest.raises(AttributeError):
        known.unit = "word"
    with pytest.raises(ValueError, match="read-only"):
        known.merges[0, 0] = 5


# Layout


@given(
    spellings=st.lists(SPELLINGS, max_size=3, unique=True),
    names=st.lists(st.sampled_from(["A", "B", "C"]), max_size=3, unique=True),
    special_ids=st.sampled_from(["base", "first", "end"]),
    text=VALID_TEXTS,
)
def test_layout_moves_ids_alone(spellings, names, special_ids, text):
    plain = Tokenizer(text + "abab", method="bpe", vocabulary_size=257)._vocabulary
    laid_out = lay_out(plain, spellings, names, special_ids)
    assert len(laid_out) == len(plain) + len(spellings) + len(names)
    specials = [*laid_out.special_tokens.values(), *laid_out.reserved.values()]
    start = {"base": 256, "first": 0, "end": len(plain)}[special_ids]
    assert specials == list(range(start, start + len(specials)))
    pieces = [piece for id, piece in enumerate(laid_out.pieces()) if id not in specials]
    assert pieces == plain.pieces()
    again = taken_out(laid_out)
    assert again.pieces() == plain.pieces()
    assert again.merges.tolist() == plain.merges.tolist()


# Plain data


def full():
    return Tokenizer(
        ["abab<|e|>", "cdcd"],
        method="bpe",
        vocabulary_size=260,
        special_tokens=["z", "<|e|>"],
        reserved=["EOS"],
        pattern=r"[a-z]+",
    )


def test_plain_data_are_plain():
    plain = full()._vocabulary.plain()
    assert json.loads(json.dumps(plain)) == plain


@pytest.mark.parametrize("sort_keys", [False, True])
def test_from_plain_data(sort_keys):
    known = full()._vocabulary
    again = Vocabulary.from_plain(json.loads(json.dumps(known.plain(), sort_keys=sort_keys)))
    assert again.plain() == known.plain()
    assert list(again.special_tokens) == ["z", "<|e|>"]
    assert again.fingerprint() == known.fingerprint()
    assert again.pieces() == known.pieces()


WRONG_PARTS = [
    ("alphabet", [None, 5, ["zz"], ["6"], [1], [""]]),
    ("merges", [None, 5, [[1]], [[1, 2, 3]], [[1, 2, 3, 4]], [[-1, 2]], [[1.5, 2.0]], [["a", "b"]],
                [[2**40, 1]], [[True, False]], [[1], [1, 2]], [97, 98], "ab"]),
    ("merge_ids", [5, ["a"], [2**40], [1.5], [-1], [1, 2], [[300]]]),
    ("merge_counts", [None, 5, ["x"], [-1], [1.5], [2**64], [1, 2]]),
    ("unit", [None, 5, "letter"]),
    ("unknown", ["x", -1, 1.5, True, 2**40]),
    ("pattern", [5, "gpt2", {}, [], {"name": "gpt2", "sources": ["a"], "keep_gaps": True},
                 {"name": None, "sources": "ab", "keep_gaps": True},
                 {"name": None, "sources": ["("], "keep_gaps": True},
                 {"name": None, "sources": ["[a]"], "keep_gaps": 1},
                 {"name": None, "sources": [5], "keep_gaps": True}]),
    ("tie_break", [5, "last"]),
    ("special_ids", [None, 5, "last"]),
    ("special_tokens", [None, 5, [], [["a", 1]], {"a": "b"}, {"a": -1}, {"a": 1.5}, {"": 300}]),
    ("reserved", [None, 5, [], {"a": None}, {"a": -1}, {"": 300}, {"a": 97}]),
    ("merge_rule", [None, "longest"]),
    ("provenance", [None, 5, [5]]),
    ("unicode", [None, "15.1.0"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG_PARTS for value in values], ids=repr
)
def test_damaged_plain_data(name, value):
    with pytest.raises((ValueError, TypeError)):
        Vocabulary.from_plain({**full()._vocabulary.plain(), name: value})


@pytest.mark.parametrize("data", [None, 5, "x", [], {}])
def test_what_is_no_plain_data(data):
    with pytest.raises((ValueError, TypeError), match="the data of a vocabulary"):
        Vocabulary.from_plain(data)


def test_plain_data_of_too_few_or_too_many_fields():
    plain = full()._vocabulary.plain()
    with pytest.raises(ValueError, match=r"the fields \['more'\]"):
        Vocabulary.from_plain({**plain, "more": 1})
    del plain["unit"]
    with pytest.raises(ValueError, match=r"the fields \['unit'\]"):
        Vocabulary.from_plain(plain)


# Fingerprints


def test_fingerprint_without_provenance_is_what_encodes():
    plain = Tokenizer("abab", method="bpe", vocabulary_size=257)
    other = Tokenizer("ababxyz", method="bpe", vocabulary_size=257, tie_break="first")
    assert plain == other
    assert plain.fingerprint() != other.fingerprint()
    assert Tokenizer.from_bytes(special_ids="first") == Tokenizer.from_bytes(special_ids="end")


def test_fingerprint_is_of_one_version_of_the_algorithm(monkeypatch):
    def fingerprint():
        return Tokenizer("abab", method="bpe", vocabulary_size=257).fingerprint()

    before = fingerprint()
    monkeypatch.setattr(vocabularies, "ALGORITHM", vocabularies.ALGORITHM + 1)
    assert fingerprint() != before


@given(spellings=st.lists(SPELLINGS, min_size=1, max_size=3, unique=True), data=st.data())
def test_equal_fingerprints_encode_alike(spellings, data):
    document = data.draw(special_documents(spellings))
    one, other = (
        Tokenizer.from_bytes(special_tokens=spellings, engine=name) for name in engines.NAMES
    )
    assert one == other
    for allowed in ((), "all"):
        assert one.encode_bytes(bytes_of(document), allowed_special=allowed) == other.encode_bytes(
            bytes_of(document), allowed_special=allowed
        )


# Nobody can change it


def test_what_it_was_made_of_stays_apart():
    special = {"x": 300}
    merges = np.array([[97, 98]], np.uint32)
    vocabulary = Vocabulary(
        "bpe", tuple(map(bytes, zip(range(256)))), merges, special_tokens=special
    )
    special["y"] = 0
    merges[0, 0] = 99
    assert dict(vocabulary.special_tokens) == {"x": 300}
    assert vocabulary.merges.tolist() == [[97, 98]]
    with pytest.raises(ValueError, match="WRITEABLE"):
        vocabulary.merges.setflags(write=True)
    with pytest.raises(TypeError):
        vocabulary.special_tokens["y"] = 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"merges": np.array([[0, 1]], np.uint32)}, ValueError, "merge 0 joins what is made by it"),
        ({"merges": [[0, 0]]}, TypeError, "merges must be an array of uint32"),
        ({"alphabet": (b"a", b"a")}, ValueError, "the alphabet holds b'a' twice"),
        ({"pattern": "gpt2"}, TypeError, "pattern must be a Pattern, not str"),
    ],
    ids=["itself", "a list", "twice", "a name"],
)
def test_parts_that_cannot_stand_together(options, error, message):
    with pytest.raises(error, match=message):
        Vocabulary(**{"method": "bpe", "alphabet": (b"a",), **options})


@pytest.mark.parametrize(
    "options",
    [{"unit": "character"}, {"unit": "character", "unknown": 0, "alphabet": (None, b"ab")}],
    ids=["no unknown id", "two characters"],
)
def test_what_could_not_be_encoded_is_no_tokenizer(options):
    with pytest.raises(ValueError):
        Tokenizer.from_vocabulary(Vocabulary(**{"method": "bpe", "alphabet": (b"a",), **options}))
