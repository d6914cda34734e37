"""What a format cannot hold is refused by name, never left out."""

from collections.abc import Collection

from tokbpe.vocabulary import Vocabulary

METHODS = ("byte", "bpe")


def refuse_what_is_lost(vocabulary: Vocabulary, holds: Collection[str] = ()) -> None:
    """ValueError for what encodes or decodes but has no place in a file.

    holds: the names of the fields that have one.
    """
    flags = lost_flags(vocabulary)
    lost = {
        "method": (f"the method {vocabulary.method!r}", vocabulary.method not in METHODS),
        "unit": (f"the unit {vocabulary.unit!r}", vocabulary.unit != "byte"),
        "special_tokens": (
            f"the special tokens {list(vocabulary.special_tokens)!r:.200}",
            vocabulary.special_tokens,
        ),
        "added_tokens": (
            f"the added tokens {list(vocabulary.added_tokens)!r:.200}, which always match",
            vocabulary.added_tokens,
        ),
        "token_flags": (f"the flags of tokens {flags!r:.200}", flags),
        "reserved": (f"the reserved ids {list(vocabulary.reserved)!r:.200}", vocabulary.reserved),
        "merge_rule": (
            f"the merge rule {vocabulary.merge_rule!r}",
            vocabulary.merge_rule != "merge_list",
        ),
        "whole_piece_lookup": ("the lookup of whole pieces", vocabulary.whole_piece_lookup),
        "unknown": ("an id for what is unknown", vocabulary.unknown is not None),
        "normalizer": (f"the normalizer {vocabulary.normalizer!r}", vocabulary.normalizer),
        "prefix_space": ("the space put before a text", vocabulary.prefix_space),
        "frame": (f"the ids put around a text {vocabulary.frame}", any(vocabulary.frame)),
    }
    for field, (what, there) in lost.items():
        if there and field not in holds:
            raise ValueError(f"this format cannot hold {what}; use save() for all of a tokenizer")


def lost_flags(vocabulary: Vocabulary) -> dict[str, list[str]]:
    """The flags of tokens. Where all are sought in the normalized text, and there is no normalizer
    (which is refused by itself), that flag says nothing."""
    tokens = (*vocabulary.special_tokens, *vocabulary.added_tokens)
    flags = {spelling: list(vocabulary.token_flags.get(spelling, ())) for spelling in tokens}
    if all(found == ["normalized"] for found in flags.values()):
        return {}
    return {spelling: found for spelling, found in flags.items() if found}
