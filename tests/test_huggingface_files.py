"""Hugging Face's `tokenizer.json`, read and written, and compared with `tokenizers`."""

import copy
import functools
import json
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from huggingface_samples import (
    FEATURES,
    MERGES,
    NEXT,
    NFC,
    SMALL_SIZE,
    SNIPPETS,
    byte_level,
    cuts,
    more_pieces,
    small_file,
    split,
    template,
    token,
)
from tokbpe import Tokenizer, engines, patterns
from tokbpe.formats import huggingface
from tokbpe.normalize import nfc
from tokbpe.vocabulary import Vocabulary

UNICODE = st.characters(exclude_categories=["Cs"])
texts = st.lists(st.sampled_from(SNIPPETS) | UNICODE | st.text(UNICODE, max_size=3)).map("".join)


@pytest.fixture(params=engines.NAMES)
def engine(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokenizer.json"


@pytest.fixture
def read(path):
    """Write a file of some JSON, or of some bytes, and read it."""

    def read(content, engine=None):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(data)
        return Tokenizer.from_huggingface(path, engine=engine)

    return read


@pytest.fixture
def refused(read, path):
    """Check that a file is refused by a message, in which `...` stands for any text."""

    def refused(content, message):
        with pytest.raises(ValueError) as raised:
            read(content)
        name, _, found = str(raised.value).partition(": ")
        assert name == str(path)
        first, *others = message.split("...")
        assert found.startswith(first)
        for part in others:
            found = found[found.index(first) + len(first) :]
            first = part
            assert part in found

    return refused


@pytest.fixture(scope="module")
def peer():
    """What `tokenizers` makes of the content of a file."""
    module = pytest.importorskip("tokenizers")
    return lambda content: module.Tokenizer.from_str(json.dumps(content))


def ids_of(tokenizer, text, framed=False):
    return tokenizer.encode(text, allowed_special="all", add_special_tokens=framed)


def peer_ids(tokenizer, text, framed=False):
    return tokenizer.encode(text, add_special_tokens=framed).ids


# Read as `tokenizers` reads it


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_against_tokenizers(name, peer):
    content = small_file(**FEATURES[name])
    theirs = peer(content)
    ours = [
        Tokenizer.from_vocabulary(huggingface.loaded(json.dumps(content).encode()), engine)
        for engine in engines.NAMES
    ]
    contents = [item["content"] for item in content["added_tokens"]]
    contents += [nfc(text) for text in contents]
    spaced = [space + text + space for text in contents for space in ("", " ", "\n\t", "a", "-")]

    @settings(max_examples=40)
    @given(st.lists(st.sampled_from([*SNIPPETS, *contents, *spaced]) | UNICODE).map("".join))
    def agrees(text):
        for tokenizer in ours:
            assert ids_of(tokenizer, text) == peer_ids(theirs, text)
            assert ids_of(tokenizer, text, True) == peer_ids(theirs, text, True)

    agrees()
    assert agrees_everywhere(ours[1], theirs, [*SNIPPETS, *spaced])


def agrees_everywhere(ours, theirs, snippets):
    """Whether each snippet alone, and each behind another, has the same ids."""
    return all(
        ids_of(ours, one + other) == peer_ids(theirs, one + other)
        for one in ["", *snippets[::3]]
        for other in snippets
    )


@pytest.fixture(scope="module")
def real(data):
    """Tokenizers of real files, each read once."""
    return functools.cache(
        lambda name: Tokenizer.from_huggingface(data / "vocab" / f"{name}.tokenizer.json")
    )


@pytest.mark.parametrize("name", ["qwen3", "deepseek_v3"])
def test_a_real_vocabulary_against_tokenizers(name, real, data):
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer.from_file(str(data / "vocab" / f"{name}.tokenizer.json"))
    ours = real(name)
    contents = [token.content for token in theirs.get_added_tokens_decoder().values()]

    @settings(max_examples=200)
    @given(st.lists(st.sampled_from(SNIPPETS) | st.sampled_from(contents) | UNICODE).map("".join))
    def agrees(text):
        assert ids_of(ours, text) == peer_ids(theirs, text)

    agrees()
    for file in sorted((data / "corpora").iterdir()):
        with file.open(encoding="utf-8") as opened:
            text = opened.read(50_000)
        assert ids_of(ours, text) == peer_ids(theirs, text), file.name
    ids = ours.encode("low".join(contents), allowed_special="all")
    for skip in (False, True):
        assert ours.decode(ids, skip_special=skip) == theirs.decode(ids, skip_special_tokens=skip)


def test_qwen(real):
    tokenizer = real("qwen3")
    assert tokenizer.pattern == "qwen2" and not tokenizer.lossless
    assert tokenizer.vocab_size == 151669
    assert tokenizer.encode("<think>") == [151667]
    assert tokenizer.encode("<|im_end|>") != [151645]
    assert tokenizer.encode("<|im_end|>", allowed_special={"<|im_end|>"}) == [151645]
    assert tokenizer.decode([151667, 151645, 151668], skip_special=True) == "<think></think>"
    assert tokenizer.encode("e\u0301") == tokenizer.encode("é")


def test_deepseek(real):
    tokenizer = real("deepseek_v3")
    assert tokenizer.pattern == "deepseek_v3" and tokenizer.lossless
    assert tokenizer.vocab_size == 128815
    # The vocab lists these, too: they are special tokens, and no pieces.
    special = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"]
    assert tokenizer.encode("".join(special), allowed_special=special) == [0, 1, 2]
    assert {0, 1, 2}.isdisjoint(tokenizer.encode("".join(special)))
    pieces = [tokenizer.id_to_piece(id) for id in tokenizer.encode("1234567")]
    assert pieces == [b"123", b"456", b"7"]


# Without `tokenizers`


@pytest.mark.core
def test_what_is_read(read, engine):
    tokenizer = read(small_file(), engine)
    assert tokenizer.method == "bpe" and tokenizer.pattern == "gpt2" and tokenizer.lossless
    assert tokenizer.vocab_size == SMALL_SIZE
    assert tokenizer.vocabulary[:256] == tuple(bytes([byte]) for byte in range(256))
    pieces = tokenizer.vocabulary
    assert [pieces[id] for id in tokenizer.encode("hello world")] == [b"hello", b" wor", b"ld"]
    assert [pieces[id] for id in tokenizer.encode("abc")] == [b"abc"]
    assert tokenizer.decode(tokenizer.encode("hello\n\n 12x 🐈")) == "hello\n\n 12x 🐈"


def test_a_path_a_folder_or_an_object(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_file()))
    tokenizer = Tokenizer.from_huggingface(tmp_path)
    assert Tokenizer.from_huggingface(str(tmp_path / "tokenizer.json")) == tokenizer
    assert Tokenizer.from_huggingface(bytes(tmp_path)) == tokenizer
    tokenizers = pytest.importorskip("tokenizers")
    loaded = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.from_huggingface(loaded) == tokenizer


def test_an_object_that_is_no_byte_level_bpe():
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(["hello hello"], vocab_size=260, show_progress=False)
    trained = Tokenizer.from_huggingface(trained)
    assert trained.vocab_size == 260 and trained.pattern == "gpt2"
    with pytest.raises(ValueError, match="model.type is 'WordLevel'"):
        Tokenizer.from_huggingface(tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "a")))
    custom = tokenizers.Tokenizer(tokenizers.models.BPE())
    custom.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(object())
    with pytest.raises(ValueError, match="cannot be written as JSON: Custom PreTokenizer"):
        Tokenizer.from_huggingface(custom)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_huggingface(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json"):
        Tokenizer.from_huggingface(tmp_path)
    for source in (5, None, object()):
        with pytest.raises(TypeError):
            Tokenizer.from_huggingface(source)


def test_merges_as_texts_and_as_pairs(read):
    assert read(small_file(merges=MERGES)) == read(small_file())


def test_the_form_of_a_trained_vocabulary(read, path):
    """Where pieces and merges are as a training leaves them, the vocabularies are equal."""
    trained = Tokenizer("hello hello low low", method="bpe", vocabulary_size=260, pattern="gpt2")
    trained.to_huggingface(path)
    vocabulary = Tokenizer.from_huggingface(path)._vocabulary
    assert vocabulary.merge_ids is None and len(vocabulary.alphabet) == 256
    # In the small file one piece has two merges.
    vocabulary = read(small_file())._vocabulary
    assert len(vocabulary.merge_ids) == len(MERGES) and len(vocabulary.alphabet) == SMALL_SIZE


@pytest.mark.core
def test_special_and_added_tokens(read, engine):
    tokenizer = read(
        small_file(
            vocab={**more_pieces("<k>"), "<e>": NEXT + 3},
            added_tokens=[
                token("<e>", NEXT + 3),
                token("<k>", NEXT, False, "lstrip"),
                token("[K]", NEXT + 2, True, "rstrip", "normalized"),
            ],
        ),
        engine,
    )
    assert tokenizer.special_tokens == {"<e>": NEXT + 3, "[K]": NEXT + 2}
    assert tokenizer._vocabulary.added_tokens == {"<k>": NEXT}
    assert tokenizer._vocabulary.token_flags == {
        "<k>": ("lstrip",),
        "[K]": ("rstrip", "normalized"),
    }
    assert tokenizer.vocabulary[NEXT:] == (b"<k>", None, b"[K]", b"<e>")
    assert tokenizer.encode("h <k><e>") == [*b"h", NEXT, *b"<e>"]
    assert tokenizer.encode("h <k><e>", allowed_special={"<e>"}) == [*b"h", NEXT, NEXT + 3]
    assert not tokenizer.lossless


@pytest.mark.core
def test_a_merge_of_a_token_that_none_makes(read, engine):
    """It never applies, since plain text never yields the token."""
    file = small_file(
        vocab=more_pieces("<k>", "a<k>"),
        merges=[["a", "<k>"]],
        added_tokens=[token("<k>", NEXT, False)],
    )
    assert read(file, engine).encode("a<k>") == [*b"a", NEXT]


@pytest.mark.core
def test_a_template_is_put_around_on_request(read):
    tokenizer = read(small_file(**FEATURES["a template"]))
    assert tokenizer.encode("hello") == [more_pieces()["hello"]]
    assert tokenizer.encode("hello", add_special_tokens=True) == [
        NEXT, NEXT + 1, NEXT + 1, more_pieces()["hello"], NEXT
    ]  # fmt: skip


@pytest.mark.core
def test_missing_bytes(read):
    """`tokenizers` drops them without a word."""
    tokenizer = read(small_file(vocab={"a": 0, "b": 1, "ab": 2}, merges=["a b"]))
    assert tokenizer.encode("abba") == [2, 1, 0]
    with pytest.raises(ValueError, match="byte 0x63 at byte position 1 is not in the vocabulary"):
        tokenizer.encode("ac")
    odd = small_file(vocab={"a": 0, "b": 1, "ab": 2, "abc": 3, "c": 4}, merges=["ab c", "a b"])
    assert read(odd).encode("abc") == [3]


# Written


CORPUS = ["".join(random.Random(1).choices(SNIPPETS, k=2000))]
SPECIAL = ("<e>", "<|end|>", "é ", " x\n", "\0")


def trained(**options):
    return Tokenizer(CORPUS, **{"method": "bpe", "vocabulary_size": 300, **options})


def written(tokenizer, path):
    tokenizer.to_huggingface(path)
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize(
    "pattern", [None, *patterns.NAMED, r"[a-z]+|\d", r"(?i:don't)|\s+(?=x)", "[\n]+|h\n"]
)
def test_patterns_written_and_read(pattern, path):
    tokenizer = trained(pattern=pattern)
    written(tokenizer, path)
    loaded = Tokenizer.from_huggingface(path, trust_pattern=True)
    assert loaded == tokenizer and loaded.pattern == tokenizer.pattern
    same_ids_there(tokenizer, path, 30)


@pytest.mark.core
@pytest.mark.parametrize("base", ["bytes", "gpt2"])
@pytest.mark.parametrize("special_ids", ["base", "first", "end"])
@pytest.mark.parametrize("special_tokens", [(), SPECIAL])
def test_layouts_written_and_read(base, special_ids, special_tokens, path, engine):
    tokenizer = trained(
        base=base,
        special_ids=special_ids,
        special_tokens=special_tokens,
        pattern="gpt2",
        engine=engine,
    )
    written(tokenizer, path)
    loaded = Tokenizer.from_huggingface(path, engine=engine)
    assert loaded == tokenizer
    assert loaded.vocabulary == tokenizer.vocabulary
    assert loaded.special_tokens == tokenizer.special_tokens
    np.testing.assert_array_equal(loaded.merges, tokenizer.merges)
    same_ids_there(tokenizer, path, 20)


def same_ids_there(tokenizer, path, examples):
    """Compare with what `tokenizers`, if there, makes of the file."""
    try:
        import tokenizers
    except ImportError:
        return
    theirs = tokenizers.Tokenizer.from_file(str(path))
    added = [token.content for token in theirs.get_added_tokens_decoder().values()]

    @settings(max_examples=examples)
    @given(st.lists(st.sampled_from([*SNIPPETS, *added]) | UNICODE).map("".join))
    def agrees(text):
        assert ids_of(tokenizer, text) == peer_ids(theirs, text)
        assert ids_of(tokenizer, text, True) == peer_ids(theirs, text, True)

    agrees()


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_written_and_read(name, read, path, tmp_path):
    tokenizer = read(small_file(**FEATURES[name]))
    tokenizer.to_huggingface(tmp_path / "again")
    loaded = Tokenizer.from_huggingface(tmp_path / "again")
    assert loaded == tokenizer
    same_ids_there(tokenizer, tmp_path / "again", 15)
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    loaded.to_huggingface(tmp_path / "once more")
    assert (tmp_path / "once more").read_bytes() == (tmp_path / "again").read_bytes()


def test_the_exact_file(path):
    byte = Tokenizer(b"ba \n\xff", special_tokens=["<e>"], special_ids="first")
    assert written(byte, path) == {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [token("<e>", 0)],
        "normalizer": None,
        "pre_tokenizer": byte_level(use_regex=False),
        "post_processor": None,
        "decoder": byte_level(add_prefix_space=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {"<e>": 0, "Ċ": 1, "Ġ": 2, "a": 3, "b": 4, "ÿ": 5},
            "merges": [],
        },
    }


def test_tokens_stand_in_the_vocab_where_their_ids_need_it(path):
    assert (
        "<e>"
        not in written(trained(special_tokens=SPECIAL, special_ids="end"), path)["model"]["vocab"]
    )
    path.unlink()
    assert "<e>" in written(trained(special_tokens=SPECIAL), path)["model"]["vocab"]
    path.unlink()
    gap = Vocabulary("byte", (b"a", None, b"b"), special_tokens={"<e>": 5, "<f>": 3, "<g>": 6})
    huggingface.save(gap, path, engines.get(None))
    vocab = json.loads(path.read_text())["model"]["vocab"]
    assert vocab == {"a": 0, "b": 2, "<f>": 3, "<e>": 5, "<g>": 6}
    assert huggingface.load(path).special_tokens == gap.special_tokens


def test_ranks_become_merges(path):
    """Also where the ranks make other pieces than any list that was learned."""
    learned = trained().vocabulary
    ranks = Vocabulary(
        "bpe",
        (*learned, b"lohel", b"xyz"),
        pattern=patterns.get("gpt2"),
        special_tokens={"<|end|>": 400},
        merge_rule="rank_by_piece",
        whole_piece_lookup=True,
    )
    tokenizer = Tokenizer.from_vocabulary(ranks)
    assert written(tokenizer, path)["model"]["ignore_merges"] is True
    loaded = Tokenizer.from_huggingface(path)
    assert loaded.vocabulary == tokenizer.vocabulary
    for text in [*SNIPPETS, "xyz", "axyz", "lohel", "lohello"]:
        assert loaded.encode(text) == tokenizer.encode(text)
    same_ids_there(tokenizer, path, 100)


# What a file cannot hold


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reserved": ["BOS", "EOS"]}, r"cannot hold the reserved ids \['BOS', 'EOS'\]"),
        ({"method": "char"}, "this format cannot hold the method 'char'"),
        ({"method": "word"}, "this format cannot hold the method 'word'"),
        ({"special_tokens": ["a"]}, "ids 97 and 256 are both 'a'"),
        ({"special_tokens": ["Ġ"]}, "ids 32 and 256 are both 'Ġ'"),
        ({"special_tokens": ["é"], "special_ids": "end"}, "ids 233 and 2[0-9]+ are both 'é'"),
        ({"pattern": r"\w+"}, "holds other characters of words for Hugging Face"),
    ],
)  # fmt: skip
def test_what_is_lost_is_refused(options, message, path):
    options = {"method": "bpe", **options}
    with pytest.raises(ValueError, match=message):
        Tokenizer("hellohello hellohello", **options).to_huggingface(path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"prefix_space": True, "pattern": patterns.get("qwen2")},
            "cannot put a space before a text that <Pattern qwen2> cuts",
        ),
        ({"special_tokens": {"c": 2}}, "takes the token 'c' in its vocab for a byte"),
        (
            {
                "added_tokens": {"cc": 9},
                "token_flags": {"cc": ("single_word",)},
                "whole_piece_lookup": True,
            },
            "cannot hold the token 'cc' beside the lookup of whole pieces",
        ),
        ({"special_tokens": {"éa": 9}, "whole_piece_lookup": True}, "cannot hold the token 'éa'"),
        ({"alphabet": (b"a", b"b", b"c", b"ab")}, "ids 3 and 4 are both 'ab'"),
    ],
)
def test_a_vocabulary_that_is_lost_is_refused(options, message, path):
    plain = {"method": "bpe", "alphabet": (b"a", b"b"), "merges": np.array([[0, 1]], np.uint32)}
    vocabulary = Vocabulary(**{**plain, "merge_ids": np.array([4], np.uint32), **options})
    with pytest.raises(ValueError, match=message):
        huggingface.save(vocabulary, path, engines.get(None))
    assert not path.exists()


def test_an_existing_path_is_refused(path):
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=path.name):
        Tokenizer("ab").to_huggingface(path)
    assert path.read_text() == "precious"


# What is refused when it is read

WITHOUT = object()


def changed(content, place, value):
    """The content of a file with another value at a place, or without it."""
    content = copy.deepcopy(content)
    target = content
    for step in place[:-1]:
        target = target[step]
    if value is WITHOUT:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return content


@pytest.mark.core
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("version", "2.0", "version is '2.0': only '1.0' can be honored"),
        ("version", None, "version is None"),
        ("truncation", {"max_length": 5}, "truncation is {'max_length': 5}: only None can be"),
        ("padding", {"strategy": "BatchLongest"}, "padding is {'strategy': 'BatchLongest'}"),
        ("own", 5, "own is 5: this field is unknown"),
        ("model", WITHOUT, "the file lacks the field 'model'"),
        ("model", [], "model must be an object, not a list"),
        ("model.type", "Unigram", "model.type is 'Unigram': only 'BPE' can be honored"),
        ("model.type", "WordPiece", "model.type is 'WordPiece'"),
        ("model.dropout", 0.1, "model.dropout is 0.1: only None or 0 or 0.0 can be honored"),
        ("model.dropout", False, "model.dropout is False"),
        ("model.unk_token", 5, "model.unk_token is 5: it must be a text"),
        ("model.continuing_subword_prefix", "##", "model.continuing_subword_prefix is '##'"),
        ("model.end_of_word_suffix", "</w>", "model.end_of_word_suffix is '</w>'"),
        ("model.fuse_unk", True, "model.fuse_unk is True: only False or None can be honored"),
        ("model.byte_fallback", True, "model.byte_fallback is True: only False or None"),
        ("model.ignore_merges", 1, "model.ignore_merges is 1: only False or True or None"),
        ("model.scores", [], "model.scores is []: this field is unknown"),
        ("model.vocab", WITHOUT, "model lacks the field 'vocab'"),
        ("model.vocab", [["a", -1.0]], "vocab must be an object of pieces and ids, not a list"),
        ("model.vocab", {}, "vocab is empty"),
        ("model.vocab.own", 5, "entry 282 of vocab, 'own': the id 5 is that of 'ą' already"),
        ("model.vocab.own", -1, "entry 282 of vocab, 'own': an id must be a whole number from 0"),
        ("model.vocab.own", True, "entry 282 of vocab, 'own': an id must be a whole number"),
        ("model.vocab.own", 2**70, "entry 282 of vocab, 'own': an id must be a whole number"),
        ("model.vocab.own", 2**31, "the highest id is 2147483648, so that 2147483366 ids have no"),
        ("model.vocab.好", 300, "entry 282 of vocab, '好': '好' at position 0 of '好' is none"),
        ("model.vocab.a b", 300, "entry 282 of vocab, 'a b': ' ' at position 1 of 'a b' is none"),
        ("model.vocab.hello", WITHOUT, "merge 3 joins 'hell' and 'o', but 'hello' is no piece"),
        ("model.vocab.h", WITHOUT, "merge 0 joins 'h' and 'e', but 'h' is no piece of the vocab"),
        ("model.merges", {}, "model.merges must be a list, not an object"),
        ("model.merges", [["h", "e"], ["x"]], "model.merges[1] is ['x']: a merge is two pieces"),
        ("model.merges", [["h", "e"], ["h", 5]], "model.merges[1] is ['h', 5]: a merge is two"),
        ("model.merges", ["h e", "h  e"], "model.merges[1] is 'h  e': a merge is two pieces"),
        ("model.merges", ["h e", "he"], "model.merges[1] is 'he': a merge is two pieces"),
        ("model.merges", ["h e", ["l", "l"]], "model.merges is ['h e', ['l', 'l']]: merges are"),
        ("model.merges", [5], "model.merges is [5]: merges are either pairs or texts"),
        ("model.merges", ["h e", "l l", "h e"], "merges 0 and 2 both join 'h' and 'e'"),
        ("model.merges", ["#version: 0.2"], "model.merges[0] is '#version: 0.2': tokenizers takes"),
        ("normalizer", {"type": "NFKC"}, "normalizer.type is 'NFKC': only 'Sequence' or 'NFC'"),
        ("normalizer", {"type": "NFC", "form": 1}, "normalizer.form is 1: this field is unknown"),
        ("normalizer", "NFC", "normalizer is 'NFC': it must be an object with a type"),
        (
            "normalizer",
            {"type": "Sequence", "normalizers": [NFC, {"type": "Lowercase"}]},
            "normalizer.normalizers[1].type is 'Lowercase'",
        ),
        ("pre_tokenizer", None, "pre_tokenizer is None: only bytes are merged here"),
        ("pre_tokenizer", {"type": "Metaspace"}, "pre_tokenizer.type is 'Metaspace': only"),
        (
            "pre_tokenizer",
            {"type": "Sequence", "pretokenizers": [split("a")]},
            "pre_tokenizer is {'type': 'Sequence', ...: only bytes are merged here",
        ),
        (
            "pre_tokenizer",
            cuts(byte_level()),
            "pre_tokenizer.pretokenizers[0].type is 'ByteLevel': only 'Split' or 'Digits'",
        ),
        (
            "pre_tokenizer",
            cuts(split("a"), add_prefix_space=True),
            "pre_tokenizer.pretokenizers[1].add_prefix_space is True: it cannot be honored behind",
        ),
        (
            "pre_tokenizer",
            cuts(split("a", "Removed", True), split("b")),
            "pre_tokenizer is ...: cuts that drop text cannot be honored beside others",
        ),
        ("pre_tokenizer.use_regex", None, "pre_tokenizer.use_regex is None: only False or True"),
        ("pre_tokenizer.trim_offsets", WITHOUT, "pre_tokenizer lacks the field 'trim_offsets'"),
        (
            "pre_tokenizer",
            cuts(split("a", "Removed", False)),
            "pre_tokenizer.pretokenizers[0].behavior is 'Removed': with invert false",
        ),
        (
            "pre_tokenizer",
            cuts(split("a", "MergedWithNext")),
            "pre_tokenizer.pretokenizers[0].behavior is 'MergedWithNext': only 'Isolated' or",
        ),
        (
            "pre_tokenizer",
            cuts(split("(")),
            "pre_tokenizer: pattern '(' is refused at position 0",
        ),
        (
            "pre_tokenizer",
            cuts(split("a*")),
            "pre_tokenizer: pattern 'a*' is refused: it matches empty at position 0",
        ),
        (
            "pre_tokenizer",
            cuts({**split("a"), "pattern": {"String": ""}}),
            "pre_tokenizer.pretokenizers[0].pattern.String is '': it must be a text that is not",
        ),
        (
            "pre_tokenizer",
            cuts({**split("a"), "pattern": {"Own": "a"}}),
            "pre_tokenizer.pretokenizers[0].pattern is {'Own': 'a'}: it must be an object with one",
        ),
        (
            "pre_tokenizer",
            cuts({"type": "Digits", "individual_digits": 1}),
            "pre_tokenizer.pretokenizers[0].individual_digits is 1: only False or True",
        ),
        ("decoder", {"type": "Fuse"}, "decoder.type is 'Fuse': only 'Sequence' or 'ByteLevel'"),
        ("decoder.own", 5, "decoder.own is 5: this field is unknown"),
        ("post_processor", {"type": "BertProcessing"}, "post_processor.type is 'BertProcessing'"),
        ("post_processor.own", 5, "post_processor.own is 5: this field is unknown"),
        ("added_tokens", {}, "added_tokens must be a list, not an object"),
        ("added_tokens", [token("", 282)], "added_tokens[0].content is '': it must be a text"),
        ("added_tokens", [token("\ud800", 282)], "...it holds a lone surrogate"),
        (
            "added_tokens",
            [{**token("<e>", 282), "own": 1}],
            "added_tokens[0].own is 1: this field is unknown",
        ),
        (
            "added_tokens",
            [token("<e>", 282), token("<e>", 282)],
            "added_tokens[1].content is '<e>': added_tokens[0] is the same text",
        ),
        (
            "added_tokens",
            [token("<e>", 282), token("<k>", 282)],
            "added_tokens[1].id is 282: a token that the vocab lacks gets the next id, 283",
        ),
        ("added_tokens", [token("<e>", 300)], "added_tokens[0].id is 300: a token that the vocab"),
        ("added_tokens", [token("<e>", 5)], "added_tokens[0].id is 5: in the vocab that is an"),
        ("added_tokens", [token("hello", 282)], "added_tokens[0].id is 282: in the vocab 'hello'"),
        ("added_tokens", [token("<e>", "282")], "added_tokens[0].id is '282': an id must be"),
        ("added_tokens", [token("a", 97)], "added_tokens[0] is ...: it is one of the bytes in"),
        ("added_tokens", [token("Ġ", 32)], "added_tokens[0] is ...: it is one of the bytes in"),
        ("added_tokens", [token("hello", 259)], "added_tokens[0] is ...: it is made or joined by"),
        (
            "added_tokens",
            [token("Ã©", more_pieces()["Ã©"], False)],
            "added_tokens[0] is ...: it is made or joined by a merge",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(place, value, message, refused):
    refused(changed(small_file(), place.split("."), value), message)


TEMPLATE = "post_processor"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("single", [], "post_processor.single is []: in a template for one text the Sequence A"),
        ("single", 5, "post_processor.single must be a list, not a number"),
        ("single.0", {"Sequence": {"id": "B", "type_id": 0}}, "post_processor.single is ..."),
        ("single.0", {"Sequence": {"id": "A", "type_id": 0}}, "post_processor.single is ..."),
        ("single.0", {}, "post_processor.single[0] is {}: it must be an object with one field"),
        ("single.0.SpecialToken.id", "<f>", "post_processor.single[0].SpecialToken.id is '<f>'"),
        ("single.0.SpecialToken.type_id", -1, "post_processor.single[0].SpecialToken.type_id is"),
        ("single.0.SpecialToken.own", 1, "post_processor.single[0].SpecialToken.own is 1"),
        ("pair.0", None, "post_processor.pair[0] is None: it must be an object with one field"),
        ("pair", WITHOUT, "post_processor lacks the field 'pair'"),
        ("special_tokens", [], "post_processor.special_tokens must be an object, not a list"),
        ("special_tokens.<e>.ids", [5], "post_processor.special_tokens.<e>.ids is [5]: these are"),
        ("special_tokens.<e>.ids", [], "post_processor.special_tokens.<e>.ids is []: these are"),
        ("special_tokens.<e>.tokens", ["<x>"], "post_processor.special_tokens.<e>.ids is [282]"),
    ],
)  # fmt: skip
def test_what_is_refused_of_a_template(place, value, message, refused):
    content = small_file(**FEATURES["a template"])
    steps = [int(step) if step.isdecimal() else step for step in place.split(".")]
    refused(changed(content, ["post_processor", *steps], value), message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"unk_token": "<unk>", "vocab": {"a": 0}, "merges": []},
            "model.unk_token is '<unk>': it stands for bytes that the vocab lacks",
        ),
        (
            {
                "post_processor": {
                    "type": "Sequence",
                    "processors": [template(["A"], {}), template(["A"], {})],
                }
            },
            "post_processor.processors[1] is ...: one template alone can be honored",
        ),
        (
            {
                "normalizer": NFC,
                "added_tokens": [token("éb", NEXT, True, "normalized"), token("éc", NEXT + 1)],
            },
            None,
        ),
        (
            {
                "normalizer": NFC,
                "added_tokens": [
                    token("éa", NEXT, True, "normalized"),
                    token("e\u0301a", NEXT + 1, False, "normalized"),
                ],
            },
            "added_tokens[1].content is 'e\u0301a': added_tokens[0] is the same text",
        ),
        (
            {
                "ignore_merges": True,
                "vocab": more_pieces("xyz"),
                "added_tokens": [token("xyz", NEXT, False, "single_word")],
            },
            "added_tokens[0] is ...: it is a piece, too, that ignore_merges finds",
        ),
        (
            {
                "ignore_merges": True,
                "vocab": more_pieces("ĠĠa"),
                "added_tokens": [token("ĠĠa", NEXT, False)],
            },
            "added_tokens[0] is ...: it is a piece, too, that ignore_merges finds",
        ),
        (
            {
                "ignore_merges": True,
                "vocab": more_pieces("xyz", "x z"),
                "added_tokens": [token("xyz", NEXT), token("x z", NEXT + 1)],
            },
            None,
        ),
    ],
)  # fmt: skip
def test_what_is_refused_together(fields, message, read, refused):
    if message is None:
        read(small_file(**fields))
    else:
        refused(small_file(**fields), message)


@pytest.mark.core
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Expecting value: line 1 column 1"),
        (b"[]", "the file must be an object, not a list"),
        (b"5", "the file must be an object, not a number"),
        (b'{"model": {}', "Expecting ',' delimiter"),
        (b"{} x", "Extra data"),
        (b'{"version": "1.0", "version": "1.0"}', "the key 'version' stands twice in an object"),
        (b'{"model": "\xff"}', "'utf-8' codec can't decode byte 0xff"),
        (b"[" * 200_000, "the JSON is nested too deeply"),
        (b'{"own": ' + b"[" * 500 + b"]" * 500 + b"}", "own is [[[["),
        (b'{"model": ' + b'{"a": ' * 100_000, "the JSON is nested too deeply"),
        (b'{"version": ' + b"9" * 10_000 + b"}", "Exceeds the limit"),
        (json.dumps(small_file()).encode("utf-16"), "'utf-8' codec can't decode"),
        (b"PK\x03\x04", "Expecting value"),
    ],
)
def test_damaged_json(data, message, refused):
    refused(data, message)


def test_a_byte_order_mark_is_tolerated(read):
    assert read(b"\xef\xbb\xbf" + json.dumps(small_file()).encode()) == read(small_file())


def test_a_file_cut_short():
    data = json.dumps(toy_file()).encode()
    for length in range(len(data)):
        with pytest.raises(ValueError):
            huggingface.loaded(data[:length])


# Hostile files


def toy_file():
    """A file with all that can be read, small enough to change each of its values."""
    pieces = [*"abcĠ1", "ab", "abc", "Ġa", "<f>"]
    return small_file(
        vocab={piece: id for id, piece in enumerate(pieces)},
        merges=[["a", "b"], ["ab", "c"], ["Ġ", "a"]],
        normalizer={"type": "Sequence", "normalizers": [NFC]},
        pre_tokenizer=cuts(split(r"\s?[a-z]+"), {"type": "Digits", "individual_digits": True}),
        post_processor={
            "type": "Sequence",
            "processors": [byte_level(), template(["<f>", "A"], {"<f>": [8]})],
        },
        added_tokens=[token("<f>", 8, True, "normalized"), token("bb", 9, False, "single_word")],
    )


def places(value, place=()):
    """The places of all values of some JSON."""
    if place:
        yield place
    if isinstance(value, (dict, list)):
        for step in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[step], (*place, step))


def value_at(content, place):
    for step in place:
        content = content[step]
    return content


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


STRANGE = [
    *(WITHOUT, None, True, False, 0, 1, 8, -1, 2**31, 2**32, 2**100, 0.0, 1.5, float("nan"), 1e300),
    *(
        "",
        "a",
        " ",
        "ab",
        "bb",
        "Ġ",
        "é",
        "\0",
        "\ud800",
        "a b",
        "(",
        "[",
        "BPE",
        "NFC",
        "Isolated",
    ),
    *("Removed", "ByteLevel", "Sequence", [], {}, [[]], [None], [{}], ["a b"], [["a", "b"]]),
    *({"a": 0}, {"type": "NFC"}, {"Regex": "b"}, {"String": "b"}, nested(50), {"own": {"a": [1]}}),
]
TOY_TEXTS = ["", "abc ab", "a bb<f>", "bbb abb", " 11a1", "<f> bb <f>", "cab abcabc  a"]


def loads(call, *arguments):
    """What a call gives; None where it refuses its arguments by a ValueError."""
    try:
        return call(*arguments)
    except ValueError:
        return None


def test_any_other_value_is_refused_or_means_what_it_means_there(peer):
    """Each value of a file is replaced by each of many, and by a few others of the file itself."""
    original = toy_file()
    rng = random.Random(5)
    everywhere = [place for place in places(original) if "vocab" not in place[:-1]]
    accepted = 0
    for place in everywhere:
        others = [value_at(original, other) for other in rng.sample(everywhere, 3)]
        for value in [*STRANGE, *others]:
            content = changed(original, place, value)
            data = json.dumps(content).encode()
            vocabulary = loads(huggingface.loaded, data)
            if vocabulary is None:
                continue
            accepted += 1
            tokenizer = Tokenizer.from_vocabulary(vocabulary)
            theirs = peer(content)
            for text in TOY_TEXTS:
                for framed in (False, True):
                    found = loads(ids_of, tokenizer, text, framed)
                    assert found in (None, peer_ids(theirs, text, framed)), (place, value, text)
    assert accepted > 100
