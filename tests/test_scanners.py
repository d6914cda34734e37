"""The compiled scanners against the patterns, and against the engines that tiktoken and Hugging
Face cut with, on strings that cross from class to class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import fast, patterns, reference
from tokbpe.patterns import NAMED

NAMES = ["gpt2", "cl100k", "llama3", "qwen2", "o200k", "deepseek_v3"]

# Each row is told apart, by some pattern, from what stands beside it in another row.
CLASSES = (
    ["a", "s", "t", "l", "v", "e", "r", "d", "m", "ſ", "ß", "ı", "é", "г", "ꞌ"],  # small letters
    ["A", "S", "L", "K", "\u212a", "İ", "Г", "Ꞌ", "\u1c89"],  # capitals
    ["ǅ", "ῼ", "ʰ", "ª", "ー", "々", "ㇰ", "中", "あ", "ア", "א", "\u9fa5", "\u9fa6"],  # no case
    ["\u0301", "\u0903", "\u20dd", "\u3099", "\u0345", "\ufe0f", "\U000e0100"],  # marks
    ["0", "1", "23", "456", "٣", "½", "²", "Ⅷ", "〇", "\U0001d7ce"],  # numbers
    ["'s", "'S", "'ſ", "'t", "'ll", "'lL", "'ve", "'RE", "'d", "'M", "’s"],  # contractions
    ["'", '"', ".", ",", "!", "/", "//", "-", "_", "[", "\\", "。", "・", "゠", "«"],  # punctuation
    ["$", "+", "<", "|", "`", "^", "~", "€", "゛", "😀", "©", "⃣", "\U0001f3fb"],  # symbols
    [" ", "  ", "   ", "\t", "\x0b", "\x85", "\xa0", "\u1680", "\u2028", "\u3000"],  # white space
    ["\n", "\r", "\r\n", "\n\n", " \n", "\n ", "\n/"],  # line ends
    ["\x00", "\x1c", "\x1f", "\x7f", "\x9f", "\xad", "\u200b", "\u200d", "\u180e", "\ufeff"],  # C
    ["\u0378", "\u3040", "\u3097", "\ue000", "\ufdd0", "\uffff", "\U0010ffff", "\U000323b0"],  # Cn
)
PARTS = [part for row in CLASSES for part in row]


def joined(parts):
    return st.lists(st.sampled_from(parts), max_size=14).map("".join)


# Few parts meet each other in more ways than many do.
CROSSING = st.one_of(
    st.lists(st.sampled_from(PARTS), min_size=2, max_size=6).flatmap(joined),
    st.lists(st.sampled_from(CLASSES), min_size=2, max_size=3).map(
        lambda rows: [part for row in rows for part in row]
    ).flatmap(joined),
    joined(PARTS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=14),
)  # fmt: skip


def pieces(text, name):
    return [piece.decode() for piece in fast.split(text, name)]


@pytest.mark.core
@pytest.mark.parametrize("name", NAMES)
@given(text=CROSSING)
def test_the_reference(name, text):
    assert fast.split(text, name) == reference.split(text, name)


@pytest.fixture(scope="module")
def splitters():
    """Hugging Face's pre-tokenizer for each pattern, as it is written for it."""
    tokenizers = pytest.importorskip("tokenizers")
    return {
        name: tokenizers.pre_tokenizers.Sequence(
            [
                tokenizers.pre_tokenizers.Split(tokenizers.Regex(source), "isolated")
                for source in patterns.to_huggingface(NAMED[name])
            ]
        )
        for name in NAMES
    }


@pytest.mark.parametrize("name", NAMES)
@given(text=CROSSING)
def test_hugging_face(name, splitters, text):
    assert pieces(text, name) == [piece for piece, _ in splitters[name].pre_tokenize_str(text)]


def pieces_of_tiktoken(pat_str, texts):
    """The pieces of each text: in a vocabulary of all their parts, each piece is one token."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    for text in texts:
        for start in range(len(text)):
            for end in range(start + 1, len(text) + 1):
                ranks.setdefault(text[start:end].encode(), len(ranks))
    encoding = tiktoken.Encoding("any", pat_str=pat_str, mergeable_ranks=ranks, special_tokens={})
    return [encoding.decode_tokens_bytes(encoding.encode_ordinary(text)) for text in texts]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "deepseek_v3"])
@given(texts=st.lists(CROSSING, min_size=2, max_size=6))
def test_tiktoken(name, texts):
    expected = pieces_of_tiktoken(patterns.to_tiktoken(NAMED[name]), texts)
    assert [fast.split(text, name) for text in texts] == expected
