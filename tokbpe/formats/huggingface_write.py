"""From a vocabulary to the content of a `tokenizer.json`."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tokbpe import equivalence, patterns
from tokbpe.engines import Engine
from tokbpe.formats.huggingface_tokens import is_looked_up
from tokbpe.formats.printable import checked_vocab, shown_pieces, vocab_of
from tokbpe.formats.refusal import refuse_what_is_lost
from tokbpe.vocabulary import FLAGS, Vocabulary

HELD = (
    "special_tokens",
    "added_tokens",
    "token_flags",
    "merge_rule",
    "whole_piece_lookup",
    "normalizer",
    "prefix_space",
    "frame",
)
GPT2 = patterns.NAMED["gpt2"]


def content_of(vocabulary: Vocabulary, engine: Engine) -> dict[str, Any]:
    """The JSON of the file; ValueError, naming it, for what it cannot hold."""
    refuse_what_is_lost(vocabulary, HELD)
    listed = equivalence.as_merge_list(vocabulary, engine)
    tokens = {**vocabulary.special_tokens, **vocabulary.added_tokens}
    shown = shown_pieces(listed)
    for spelling, id in tokens.items():
        shown[id] = spelling
    vocab = vocab_of(shown)
    # What merges join or make has to be in the vocab.
    merged = {*np.unique(listed.merges).tolist(), *listed.ids_of_merges.tolist()}
    apart = [spelling for spelling, id in tokens.items() if id not in merged]
    for spelling in following(vocab, apart):
        del vocab[spelling]
    refuse_tokens(vocabulary, [spelling for spelling in apart if spelling in vocab])
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            added_token(vocabulary, spelling, tokens[spelling])
            for spelling in sorted(tokens, key=tokens.__getitem__)
        ],
        "normalizer": vocabulary.normalizer and {"type": vocabulary.normalizer},
        "pre_tokenizer": pre_tokenizer(vocabulary),
        "post_processor": post_processor(vocabulary.frame, shown),
        "decoder": byte_level(prefix_space=True, use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": vocabulary.whole_piece_lookup,
            "vocab": checked_vocab(vocab),
            "merges": [(shown[left], shown[right]) for left, right in listed.merges.tolist()],
        },
    }


# Tokens


def following(vocab: Mapping[str, int], tokens: Iterable[str]) -> list[str]:
    """The tokens that need not be in the vocab: they have the ids which `tokenizers` gives to
    those that it does not find there, the next ones behind the number of its entries."""
    spellings = {vocab[spelling]: spelling for spelling in tokens}
    found = []
    id = len(vocab) - 1
    while id in spellings:
        found.append(spellings[id])
        id -= 1
    return found


def refuse_tokens(vocabulary: Vocabulary, listed: Iterable[str]) -> None:
    """ValueError for a token in the vocab that text yields in which it does not match."""
    for spelling in listed:
        flags = vocabulary.token_flags.get(spelling, ())
        if len(spelling) == 1 and spelling in patterns.BYTE_OF_PRINTABLE:
            raise ValueError(f"this format takes the token {spelling!r} in its vocab for a byte")
        if vocabulary.whole_piece_lookup and is_looked_up(spelling, flags, vocabulary.normalizer):
            raise ValueError(
                f"this format cannot hold the token {spelling!r} beside the lookup of whole pieces"
            )


def added_token(vocabulary: Vocabulary, spelling: str, id: int) -> dict[str, Any]:
    flags = vocabulary.token_flags.get(spelling, ())
    return {
        "id": id,
        "content": spelling,
        **{flag: flag in flags for flag in FLAGS},
        "special": spelling in vocabulary.special_tokens,
    }


def post_processor(
    frame: tuple[tuple[int, ...], tuple[int, ...]], shown: Mapping[int, str]
) -> dict[str, Any] | None:
    """What puts ids around a text, or around each of two."""
    if frame == ((), ()):
        return None
    before, behind = frame

    def framed(name: str, number: int) -> list[dict[str, Any]]:
        parts = [
            *(("SpecialToken", shown.get(id)) for id in before),
            ("Sequence", name),
            *(("SpecialToken", shown.get(id)) for id in behind),
        ]
        return [{kind: {"id": id, "type_id": number}} for kind, id in parts]

    return {
        "type": "TemplateProcessing",
        "single": framed("A", 0),
        "pair": [*framed("A", 0), *framed("B", 1)],
        "special_tokens": {
            shown.get(id): {"id": shown.get(id), "ids": [id], "tokens": [shown.get(id)]}
            for id in (*before, *behind)
        },
    }


# Cuts


def byte_level(prefix_space: bool, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def pre_tokenizer(vocabulary: Vocabulary) -> dict[str, Any]:
    """The cuts, and the change to printable characters."""
    pattern = vocabulary.pattern
    if vocabulary.prefix_space:
        if pattern not in (None, GPT2):
            raise ValueError(f"this format cannot put a space before a text that {pattern!r} cuts")
        return byte_level(prefix_space=True, use_regex=pattern == GPT2)
    last = byte_level(prefix_space=False, use_regex=False)
    if pattern is None:
        return last
    splits = [
        {
            "type": "Split",
            "pattern": {"Regex": source},
            "behavior": "Isolated" if pattern.keep_gaps else "Removed",
            "invert": not pattern.keep_gaps,
        }
        for source in patterns.to_huggingface(pattern)
    ]
    return {"type": "Sequence", "pretokenizers": [*splits, last]}
