"""Small `tokenizer.json` files, built by hand, in which each feature can be tried."""

import copy
from typing import Any

from tokbpe import patterns

GPT2_REGEX = patterns.GPT2
SPACE, E_ACUTE = patterns.to_printable(b" "), patterns.to_printable("é".encode())
MERGES = [
    *("h e", "l l", "he ll", "hell o", f"{SPACE} w", "o r", f"{SPACE}w or", "l d"),
    *("he l", "hel l"),  # another way to `hell`
    *("1 2", "12 3", "a a", "aa aa", f"{SPACE} {SPACE}", " ".join(E_ACUTE), f"e {E_ACUTE[:1]}"),
    *(". .", "Ċ Ċ", "č Ċ", f"{SPACE}{SPACE} {SPACE}{SPACE}", "( )", "Ì ģ", "e Ì", "eÌ ģ"),
    "ab c",  # before the merge that makes its half
    "a b",
]
# What texts to try are made of, beside all of Unicode.
SNIPPETS = [
    *("hello", "hell", " world", "12", "3", "1234567", "aaaa", "  ", " ", "\n\n", "\r\n", "\t"),
    *(
        "x",
        "xx",
        "你",
        "_xx",
        "é",
        "e\u0301",
        "e",
        "\u0301",
        "\u212a",
        "K",
        "()",
        "...",
        "don't",
        "I'LL",
        "abc",
        "_",
    ),
    *("你好", "नमस्ते", "🐈", "٣", "½", "\u3000", "\xa0", "\u1dfa", "ſ", "<e>", "<e", "<k>", "[K]"),
]


def byte_level(**fields: Any) -> dict[str, Any]:
    plain = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"type": "ByteLevel", **plain, **fields}


def split(regex: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def cuts(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A sequence of these, and a ByteLevel that cuts nothing more."""
    last = byte_level(**{"use_regex": False, **fields})
    return {"type": "Sequence", "pretokenizers": [*parts, last]}


def token(content: str, id: int, special: bool = True, *flags: str) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized")
    found = {name: name in flags for name in names}
    return {"id": id, "content": content, **found, "special": special}


def template(single: list[str], ids: dict[str, list[int]]) -> dict[str, Any]:
    def pieces(names: list[str]) -> list[dict[str, Any]]:
        return [
            {"Sequence" if name in "AB" else "SpecialToken": {"id": name, "type_id": 0}}
            for name in names
        ]

    return {
        "type": "TemplateProcessing",
        "single": pieces(single),
        "pair": pieces([*single, "B"]),
        "special_tokens": {
            name: {"id": name, "ids": found, "tokens": [name] * len(found)}
            for name, found in ids.items()
        },
    }


def small_file(**fields: Any) -> dict[str, Any]:
    """All bytes and a few merges; `fields` in the place of those of the file or of its model."""
    pairs = [merge.split(" ") for merge in MERGES]
    pieces = [*patterns.PRINTABLE, *dict.fromkeys(map("".join, pairs))]
    file = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": byte_level(),
        "post_processor": byte_level(trim_offsets=False),
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
            "vocab": {piece: id for id, piece in enumerate(pieces)},
            "merges": pairs,
        },
    }
    for name, value in copy.deepcopy(fields).items():
        target = file if name in file else file["model"]
        target[name] = value
    return file


SMALL_SIZE = len(small_file()["model"]["vocab"])


def more_pieces(*pieces: str) -> dict[str, int]:
    """The vocab of the small file with these behind it."""
    vocab: dict[str, int] = small_file()["model"]["vocab"]
    return {**vocab, **{piece: SMALL_SIZE + place for place, piece in enumerate(pieces)}}


QWEN2 = patterns.QWEN2
NFC = {"type": "NFC"}
NEXT = SMALL_SIZE  # the id of the first added token that is not in the vocab
LETTERS_OR_SPACES = r"[A-Za-z]+| +"

FEATURES: dict[str, dict[str, Any]] = {
    "as GPT-2": {},
    "whole texts": {"pre_tokenizer": byte_level(use_regex=False)},
    "no use_regex": {
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    },
    "nothing but the model": {"normalizer": None, "post_processor": None, "decoder": None},
    "prefix space": {"pre_tokenizer": byte_level(add_prefix_space=True)},
    "prefix space of whole texts": {
        "pre_tokenizer": byte_level(add_prefix_space=True, use_regex=False)
    },
    "prefix space, NFC, tokens": {
        "pre_tokenizer": byte_level(add_prefix_space=True),
        "normalizer": NFC,
        "added_tokens": [
            token("<e>", NEXT),
            token("<k>", NEXT + 1, False, "normalized", "rstrip"),
            token("[K]", NEXT + 2, False, "lstrip"),
        ],
    },
    "as Llama 3": {"pre_tokenizer": cuts(split(patterns.LLAMA3)), "ignore_merges": True},
    "as Qwen": {"pre_tokenizer": cuts(split(QWEN2)), "normalizer": NFC},
    "as DeepSeek": {
        "pre_tokenizer": cuts(*map(split, patterns.DEEPSEEK_V3)),
        "normalizer": {"type": "Sequence", "normalizers": []},
    },
    "as GPT-4o": {"pre_tokenizer": cuts(split(patterns.O200K, "Removed", True))},
    "as StarCoder": {
        "pre_tokenizer": cuts({"type": "Digits", "individual_digits": True}, use_regex=True)
    },
    "digits together": {
        "pre_tokenizer": cuts(
            split(r"\s+"), {"type": "Digits", "individual_digits": False}, use_regex=False
        )
    },
    "gaps dropped": {"pre_tokenizer": cuts(split(LETTERS_OR_SPACES, "Removed", True))},
    "gaps dropped, then GPT-2": {
        "pre_tokenizer": cuts(split(r"[^\n]+", "Removed", True), use_regex=True)
    },
    "gaps dropped twice": {
        "pre_tokenizer": cuts(
            split(LETTERS_OR_SPACES, "Removed", True), split(r"[a-m ]+", "Removed", True)
        )
    },
    "gaps kept": {"pre_tokenizer": cuts(split(LETTERS_OR_SPACES))},
    "gaps isolated": {"pre_tokenizer": cuts(split(LETTERS_OR_SPACES, "Isolated", True))},
    "a text to cut at": {
        "pre_tokenizer": cuts({**split(""), "pattern": {"String": "l"}}, use_regex=False)
    },
    "a text that is no regex": {
        "pre_tokenizer": cuts({**split(""), "pattern": {"String": "()"}}, use_regex=False)
    },
    "sequences in sequences": {
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Sequence", "pretokenizers": [split(r"\p{N}"), split("l+")]},
                {"type": "Sequence", "pretokenizers": []},
                cuts(split(r"\s")),
            ],
        },
        "normalizer": {"type": "Sequence", "normalizers": [NFC, NFC]},
        "decoder": {"type": "Sequence", "decoders": [byte_level()]},
        "post_processor": {"type": "Sequence", "processors": [byte_level()]},
    },
    "merges as texts": {"merges": MERGES},
    "no merges": {"merges": []},
    "pieces that only lookup finds": {
        "vocab": more_pieces("helloo", f"{SPACE}hello", "()x"),
        "ignore_merges": True,
    },
    "pieces that nothing finds": {"vocab": more_pieces("helloo", f"{SPACE}hello")},
    "an unknown token without use": {"unk_token": "<unk>", "dropout": 0.0, "fuse_unk": None},
    "empty affixes": {"continuing_subword_prefix": "", "end_of_word_suffix": ""},
    "special tokens": {
        "added_tokens": [token("<e>", NEXT), token("<e", NEXT + 1), token("e>x", NEXT + 2)]
    },
    "left and right": {
        "added_tokens": [
            token("<e>", NEXT, True, "lstrip"),
            token("<k>", NEXT + 1, True, "rstrip"),
            token("[K]", NEXT + 2, False, "lstrip", "rstrip"),
            token("()..", NEXT + 3, False),
        ]
    },
    "single words": {
        "added_tokens": [
            token("<e>", NEXT, True, "single_word"),
            token("xx", NEXT + 1, False, "single_word", "lstrip", "rstrip"),
            token("12", more_pieces()["12"], False, "single_word", "normalized"),
            token("你", NEXT + 2, False, "single_word"),
        ],
    },
    "normalized": {
        "normalizer": NFC,
        "pre_tokenizer": cuts(split(QWEN2)),
        "added_tokens": [
            token("e\u0301", NEXT, False, "rstrip", "normalized"),
            token("\u0301", NEXT + 1, False),
            token("[K]", NEXT + 2, False, "normalized", "single_word"),
            token("\u212a", NEXT + 3, True, "normalized"),
            token("éé", NEXT + 4, True),
        ],
    },
    "normalized without a normalizer": {
        "added_tokens": [
            token("<e>", NEXT, False, "normalized"),
            token("e>", NEXT + 1, False),
            token("e\u0301", NEXT + 2, True, "normalized", "rstrip"),
        ]
    },
    "tokens of space": {
        "added_tokens": [token("  ", NEXT, False), token("\n", NEXT + 1), token(" <e>", NEXT + 2)]
    },
    "tokens in the vocab, with gaps": {
        "vocab": {**more_pieces(), "<e>": NEXT + 5, "<k>": NEXT + 9, "你好": NEXT + 7},
        "added_tokens": [
            token("<e>", NEXT + 5),
            token("你好", NEXT + 7, False),
            token("<k>", NEXT + 9),
            token("[K]", NEXT + 3),
            token("()...", NEXT + 4, False),
        ],
    },
    "a piece as a token": {
        "added_tokens": [
            token("hell", more_pieces()["hell"], False, "single_word"),
            token("12", more_pieces()["12"], False),
        ],
    },
    "a template": {
        "post_processor": template(
            ["<e>", "<k>", "A", "<e>"], {"<e>": [NEXT], "<k>": [NEXT + 1, NEXT + 1]}
        ),
        "added_tokens": [token("<e>", NEXT), token("<k>", NEXT + 1, False)],
    },
    "a template in a sequence": {
        "post_processor": {
            "type": "Sequence",
            "processors": [byte_level(), template(["a", "A"], {"a": [ord("a")]})],
        },
        "normalizer": NFC,
        "ignore_merges": True,
    },
}
