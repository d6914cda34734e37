"""What the page is given of patterns and vocabularies: data that JSON can hold."""

import re
from typing import Any

from tokbpe import patterns, unicode
from tokbpe.patterns import WORDS, Pattern
from tokbpe.vocabulary import DESCRIBED, Vocabulary

LARGEST_SIZE = 2**24  # ids
# Each has a name that is its own: no aliases.
PATTERNS = {pattern.name: pattern for pattern in (*patterns.NAMED.values(), WORDS)}

PROPERTY = re.compile(r"\\p\{(\w+)\}")
IGNORING_CASE = re.compile(r"\(\?i:([^()]*)\)")
LETTERS = re.compile(r"\[([a-z]+)\]|([a-z])")
# What else is looked at when tokens are found that a text always yields.
FLAGS_LEFT_OUT = ("lstrip", "rstrip", "single_word")


# Patterns


def embedded_patterns() -> dict[str, Any]:
    """The named patterns, and the classes of characters that they need, of Unicode 16.0: a
    browser's own are those of another Unicode."""
    sources = [source for pattern in PATTERNS.values() for source in pattern.sources]
    names = {name for source in sources for name in PROPERTY.findall(source)}
    return {
        "classes": {name: class_text(name) for name in sorted({*names, "White_Space"})},
        "patterns": {
            name: {
                "sources": [for_browser(source) for source in pattern.sources],
                "keep_gaps": pattern.keep_gaps,
            }
            for name, pattern in PATTERNS.items()
        },
    }


def class_text(name: str) -> str:
    """("Zs") -> "20 A0 1680 2000-200A ..." """
    return " ".join(
        f"{first:X}" if first == last else f"{first:X}-{last:X}"
        for first, last in unicode.ranges(name)
    )


def for_browser(source: str) -> str:
    r"""A regular expression of a named pattern without what JavaScript lacks.

    r"(?i:'s)|\s+\Z" -> r"(?:'[Ssſ])|\s+$"
    """
    spelled_out = IGNORING_CASE.sub(lambda match: f"(?:{any_case(match[1])})", source)
    return spelled_out.replace(r"\Z", "$")


def any_case(source: str) -> str:
    """Sets of the case variants of letters, for letters and for sets of them."""
    return LETTERS.sub(
        lambda match: f"[{''.join(map(unicode.case_variants, match[1] or match[2]))}]", source
    )


# Vocabularies


def embedded_vocabulary(name: str, vocabulary: Vocabulary) -> dict[str, Any]:
    """What the page encodes with.

    Special tokens and reserved ids are left out: nobody can allow them there, so text never
    yields them. ValueError, naming what it is, for anything that the page cannot do exactly.
    """
    problem = refusal(vocabulary)
    if problem is not None:
        raise ValueError(f"{name}: the page cannot encode as this tokenizer does: {problem}")
    return {
        "name": name,
        "unit": vocabulary.unit,
        "pattern": None if vocabulary.pattern is None else vocabulary.pattern.name,
        "size": len(vocabulary),
        "unknown": vocabulary.unknown,
        "merge_rule": vocabulary.merge_rule,
        "whole_piece_lookup": vocabulary.whole_piece_lookup,
        "added": dict(vocabulary.added_tokens),
        # A printable character for each byte, and never a space among them.
        "pieces": " ".join(map(printable, vocabulary.symbols())),
        "first": len(vocabulary.alphabet),
        "merges": vocabulary.merges.reshape(-1).tolist(),
        "merge_ids": None if vocabulary.merge_ids is None else vocabulary.merge_ids.tolist(),
    }


def printable(piece: bytes | None) -> str:
    return "" if piece is None else patterns.to_printable(piece)


def refusal(vocabulary: Vocabulary) -> str | None:
    """Why the page cannot encode with a vocabulary; None if it can."""
    if vocabulary.method not in DESCRIBED:
        return f"the method {vocabulary.method!r} encodes in a way of its own"
    if vocabulary.normalizer is not None:
        return f"it normalizes text ({vocabulary.normalizer}), by the tables of another Unicode"
    if vocabulary.prefix_space:
        return "it puts a space in front of a text"
    if len(vocabulary) > LARGEST_SIZE:
        return f"it has {len(vocabulary)} ids, more than {LARGEST_SIZE}"
    return (
        refused_pattern(vocabulary.pattern)
        or refused_tokens(vocabulary)
        or refused_merges(vocabulary)
    )


def refused_pattern(pattern: Pattern | None) -> str | None:
    if pattern is None or PATTERNS.get(pattern.name or "") == pattern:
        return None
    names = ", ".join(map(repr, PATTERNS))
    return f"its pattern {pattern.sources!r} is none of those that have a name: {names}"


def refused_tokens(vocabulary: Vocabulary) -> str | None:
    """Added tokens must match as they are spelled, and all of them at once."""
    flags = {
        spelling: vocabulary.token_flags.get(spelling, ()) for spelling in vocabulary.added_tokens
    }
    for spelling, found in flags.items():
        for flag in found:
            if flag in FLAGS_LEFT_OUT:
                return f"its added token {spelling!r} has the flag {flag!r}"
    if len({"normalized" in found for found in flags.values()}) > 1:
        return "only some of its added tokens have the flag 'normalized'"
    return None


def refused_merges(vocabulary: Vocabulary) -> str | None:
    """Each merge must join what stands before it."""
    if vocabulary.merge_ids is None:
        return None
    known = {id for id, piece in enumerate(vocabulary.symbols()) if piece is not None}
    for rank, (pair, id) in enumerate(
        zip(vocabulary.merges.tolist(), vocabulary.merge_ids.tolist())
    ):
        for half in pair:
            if half not in known:
                return f"its merge {rank} joins the id {half}, which a later merge makes"
        known.add(id)
    return None
