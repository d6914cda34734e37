"""System D: patterns, printable bytes and training inside pre-tokens."""

import json

import pytest

from tokbpe import Tokenizer, patterns

pytestmark = pytest.mark.core

NAMES = [
    "gpt2", "r50k", "p50k", "cl100k", "gpt4", "llama3", "qwen2", "qwen3", "o200k", "deepseek_v3"
]  # fmt: skip


@pytest.fixture(params=["reference", "fast"], autouse=True)
def chosen_engine(request, monkeypatch):
    monkeypatch.setenv("TOKBPE_ENGINE", request.param)
    return request.param


def test_printable_bytes():
    assert patterns.to_printable(b" ") == "\u0120"
    assert patterns.to_printable(b"low lower\n") == "low\u0120lower\u010a"
    every = bytes(range(256))
    assert patterns.from_printable(patterns.to_printable(every)) == every
    assert len(set(patterns.to_printable(every))) == 256
    assert patterns.to_printable(every).isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_merges_stay_inside_pre_tokens(name):
    tokenizer = Tokenizer("a b a b a b a b", method="bpe", vocabulary_size=258, pattern=name)
    assert tokenizer.vocabulary[256:] == (b" b", b" a")
    assert tokenizer.merge_counts.tolist() == [4, 3]


def test_pairs_are_weighted_by_pre_token_count():
    text = "hug " * 10 + "pug " * 5 + "hugs " * 5 + "bun " * 4
    tokenizer = Tokenizer(text, method="bpe", vocabulary_size=259, pattern="gpt2")
    assert tokenizer.vocabulary[256:] == (b"ug", b"hug", b" hug")
    # The very first word has no space before it; all others have one.
    assert tokenizer.merge_counts.tolist() == [20, 15, 14]


def test_stops_when_no_pair_occurs_twice():
    with pytest.warns(UserWarning, match="no other pair occurs 2 times or more"):
        tokenizer = Tokenizer("ab ab cd", method="bpe", vocabulary_size=300, pattern="gpt2")
    assert tokenizer.vocabulary[256:] == (b"ab",)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("base", ["bytes", "gpt2"])
def test_round_trip(name, base):
    text = "Grüße 🐈, I'LL don't\r\n\r\n  naïve 12345   \n\t世界 नमस्ते e\u0301 <|endoftext|> \x00  "
    tokenizer = Tokenizer(text * 3, method="bpe", pattern=name, base=base)
    assert tokenizer.pattern == patterns.get(name).name
    assert tokenizer.decode(tokenizer.encode(text)) == text
    data = bytes(range(256)) + text.encode() + b"\xff\xfe"
    assert tokenizer.decode_bytes(tokenizer.encode_bytes(data)) == data


def test_base_of_gpt2():
    tokenizer = Tokenizer("abab", method="bpe", base="gpt2", vocabulary_size=257)
    assert tokenizer.vocabulary[0] == b"!"
    assert tokenizer.vocabulary[220] == b" "  # as in GPT-2's own vocabulary
    assert tokenizer.vocabulary[256] == b"ab"
    assert tokenizer.merges.tolist() == [[64, 65]]
    assert tokenizer.encode(" ab") == [220, 256]


def test_pattern_of_the_users_own():
    tokenizer = Tokenizer(["a1b a1b"], method="bpe", pattern="[a-z]", vocabulary_size=256)
    assert tokenizer.pattern == "[a-z]"
    tokenizer = Tokenizer("a11b a11b", method="bpe", pattern="[a-z]+", vocabulary_size=257)
    assert tokenizer.vocabulary[256] == b"11"


def test_unknown_names_list_what_exists():
    with pytest.raises(ValueError, match="pattern 'gpt5' is none of 'gpt2', 'cl100k'"):
        Tokenizer("abab", method="bpe", pattern="gpt5")
    with pytest.raises(
        ValueError, match="tie_break must be one of 'smallest', 'first', 'greatest'"
    ):
        Tokenizer("abab", method="bpe", tie_break="last")
    with pytest.raises(ValueError, match="base must be one of 'bytes', 'gpt2', not 'gpt3'"):
        Tokenizer("abab", method="bpe", base="gpt3")


def test_truncated_sequence_never_raises_when_replacing():
    tokenizer = Tokenizer("😀", method="bpe", vocabulary_size=256)
    ids = tokenizer.encode("😀")
    assert ids == [0xF0, 0x9F, 0x98, 0x80]
    for size in range(1, 4):
        assert tokenizer.decode(ids[:size], errors="replace") == "\ufffd"
        with pytest.raises(UnicodeDecodeError):
            tokenizer.decode(ids[:size])
        assert tokenizer.decode_bytes(ids[:size]) == bytes(ids[:size])


def test_json_of_the_worked_example(tmp_path):
    tokenizer = Tokenizer(
        "hola hola", method="bpe", vocabulary_size=259, pattern="gpt2", tie_break="first"
    )
    assert tokenizer.vocabulary[256:] == (b"ho", b"hol", b"hola")
    tokenizer.to_json(tmp_path / "hola.json")
    written = json.loads((tmp_path / "hola.json").read_text("utf-8"))
    assert written["merges"] == [["h", "o"], ["ho", "l"], ["hol", "a"]]
    assert written["vocab"]["hola"] == 258
    assert written["vocab"]["\u0120"] == 32
    again = Tokenizer.from_json(tmp_path / "hola.json", pattern="gpt2")
    assert again.encode("hola 🐈") == tokenizer.encode("hola 🐈") == [258, 32, 240, 159, 144, 136]


def test_json_whose_merges_and_vocab_disagree(tmp_path):
    pieces = [*(patterns.to_printable(bytes([byte])) for byte in range(256)), "ho", "ol", "hola"]
    content = {
        "vocab": {piece: id for id, piece in enumerate(pieces)},
        "merges": [["h", "o"], ["o", "l"], ["ho", "la"]],
    }
    (tmp_path / "hola.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(ValueError, match="merge 2|merges.2") as raised:
        Tokenizer.from_json(tmp_path / "hola.json")
    assert "'la'" in str(raised.value)
