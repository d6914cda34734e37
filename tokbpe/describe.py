"""What there is to say of a tokenizer: as data that JSON can hold, and as lines of text."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

from tokbpe import demo, methods, unicode
from tokbpe.encoding import CACHE_BYTES, DocumentEncoder
from tokbpe.engines import Engine
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

WARM_TEXT = 2**20  # bytes, from which a cache is there
SHOWN = 10  # of many tokens, gaps or pieces, in a line
KINDS = {"byte": "bytes", "character": "characters", "word": "characters, inner and final"}


# As data


def facts(vocabulary: Vocabulary, engine: Engine, most_merges: int) -> dict[str, Any]:
    """All facts by name, with the first merges, at most so many; bytes are hexadecimal."""
    items = vocabulary.items()
    pieces = plain_pieces(vocabulary, items)
    trainings = [
        # The hashes can be as many as there were documents.
        {name: value for name, value in training.items() if name != "hashes"}
        for training in vocabulary.provenance
    ]
    before, behind = vocabulary.frame
    pattern = vocabulary.pattern
    return {
        "method": vocabulary.method,
        "vocab_size": len(vocabulary),
        "target_vocab_size": trainings[-1].get("vocabulary_size") if trainings else None,
        "pieces": len(pieces),
        "gaps": gaps((id for id, _ in items), len(vocabulary)),
        "merges": len(vocabulary.merges),
        "merge_rule": vocabulary.merge_rule,
        "piece_lookup": vocabulary.whole_piece_lookup,
        "base": base_of(vocabulary),
        "pattern": spelled(pattern),
        "drops_text": pattern is not None and not pattern.keep_gaps,
        "tie_break": vocabulary.tie_break,
        "special_tokens": dict(vocabulary.special_tokens),
        "added_tokens": dict(vocabulary.added_tokens),
        "token_flags": {text: list(flags) for text, flags in vocabulary.token_flags.items()},
        "reserved": dict(vocabulary.reserved),
        "special_ids": vocabulary.special_ids,
        "normalizer": vocabulary.normalizer,
        "prefix_space": vocabulary.prefix_space,
        "frame": {"before": list(before), "behind": list(behind)},
        "lossless": vocabulary.lossless,
        **unreachable(vocabulary, pieces, engine),
        "cache": cache(vocabulary, pieces, engine),
        "unicode": unicode.VERSION,
        "fingerprint": vocabulary.fingerprint(),
        "trainings": trainings,
        "first_merges": first_merges(vocabulary, dict(items), most_merges),
    }


def plain_pieces(
    vocabulary: Vocabulary, items: Iterable[tuple[int, bytes]]
) -> list[tuple[int, bytes]]:
    """The id and the bytes of what plain text consists of."""
    others = {
        *vocabulary.special_tokens.values(),
        *vocabulary.added_tokens.values(),
        *vocabulary.reserved.values(),
        vocabulary.unknown,
    }
    return [(id, piece) for id, piece in items if id not in others]


def gaps(ids: Iterable[int], size: int) -> list[list[int]]:
    """The first and the last id of each run of ids that mean nothing. `ids` rise.

    ([0, 1, 4], 6) -> [[2, 3], [5, 5]]
    """
    known = pairwise([-1, *ids, size])
    return [[left + 1, right - 1] for left, right in known if right - left > 1]


def base_of(vocabulary: Vocabulary) -> str:
    """What there is before anything is merged."""
    symbols = [symbol for symbol in vocabulary.symbols() if symbol is not None]
    if vocabulary.unit == "byte":
        symbols = [symbol for symbol in symbols if len(symbol) == 1]
    for name, order in methods.BYTE_ORDERS.items():
        if b"".join(symbols) == order:
            return f"256 bytes, order {name!r}"
    return f"{len(symbols):,} {KINDS[vocabulary.unit]}"


def spelled(pattern: Pattern | None) -> str | list[str] | None:
    """The name of a pattern, else its regular expression, or all of them."""
    if pattern is None:
        return None
    sources = list(pattern.sources)
    return pattern.name or (sources[0] if len(sources) == 1 else sources)


def first_merges(
    vocabulary: Vocabulary, pieces: Mapping[int, bytes], most: int
) -> list[dict[str, Any]]:
    """The first merges: id, left and right half, piece and count, which imported ones lack."""
    pairs = vocabulary.merges[:most].tolist()
    ids = vocabulary.ids_of_merges[:most].tolist()
    counts = vocabulary.merge_counts[:most].tolist() or [None] * len(pairs)
    return [
        {
            "id": id,
            "left": pieces[left].hex(),
            "right": pieces[right].hex(),
            "piece": pieces[id].hex(),
            "count": count,
        }
        for (left, right), id, count in zip(pairs, ids, counts)
    ]


def unreachable(
    vocabulary: Vocabulary, pieces: Iterable[tuple[int, bytes]], engine: Engine
) -> dict[str, list[dict[str, Any]]]:
    """The pieces that do not encode to themselves.

    never_made: not even where the pattern cuts a text into just them. Then no text yields them:
        what merging makes of a piece inside a longer one, it makes of the piece alone.
    cut_alone: the others that, as a text of their own, become something else, since the pattern
        cuts them or NFC changes them. So at most a longer text yields them. What is not UTF-8 is
        left out: it occurs inside of characters, but alone it is no text.
    """
    never_made, cut_alone = [], []
    if vocabulary.unit != "word":  # an inner piece of words cannot stand alone
        uncut = engine.encoding_table(*methods.table_parts(replace(vocabulary, pattern=None)))
        encoder = DocumentEncoder(replace(vocabulary, prefix_space=False), engine)
        nothing = encoder.finder(())
        for id, piece in pieces:
            if engine.encode(piece, uncut) != [id]:
                never_made.append({"id": id, "piece": piece.hex()})
            elif encoder.encode(piece, nothing) != [id] and is_text(piece):
                cut_alone.append({"id": id, "piece": piece.hex()})
    return {"never_made": never_made, "cut_alone": cut_alone}


def cache(
    vocabulary: Vocabulary, pieces: Iterable[tuple[int, bytes]], engine: Engine
) -> dict[str, int] | None:
    """How many bytes encoding may keep, and how many it does when it has seen all pieces; None
    for an engine that keeps nothing."""
    # Pieces are no text: they are neither normalized nor put behind a space.
    encoder = DocumentEncoder(replace(vocabulary, normalizer=None, prefix_space=False), engine)
    if not encoder.has_cache:
        return None
    encoder.limit_cache(CACHE_BYTES)
    text = b"".join(piece for _, piece in pieces)
    encoder.count(text * (1 + WARM_TEXT // (len(text) + 1)), encoder.finder(()))
    return {"limit": CACHE_BYTES, "used": encoder.cache_used}


def is_text(piece: bytes) -> bool:
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# As text


def lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """A line for each fact and each of the first merges."""
    shown = dict(facts)
    merges = shown.pop("first_merges")
    for kind in ("special_tokens", "added_tokens", "reserved"):
        shown[kind] = {repr(name): str(id) for name, id in shown[kind].items()}
    shown["token_flags"] = {
        repr(name): " ".join(flags) for name, flags in shown["token_flags"].items()
    }
    shown["frame"] = {place: [str(id) for id in ids] for place, ids in shown["frame"].items()}
    shown["gaps"] = [
        str(first) if first == last else f"{first} to {last}" for first, last in shown["gaps"]
    ]
    for kind in ("never_made", "cut_alone"):
        shown[kind] = [f"{piece['id']} {quoted(piece['piece'])}" for piece in shown[kind]]
    shown["trainings"] = [
        {name.replace("_", " "): value for name, value in training.items()}
        for training in shown["trainings"]
    ]
    corpus = shown.pop("corpus", {})
    yield from named(shown)
    for name, measure in corpus.items():
        yield from named({name: {what.replace("_", " "): part for what, part in measure.items()}})
    for number, merge in enumerate(merges):
        left, right, piece = (quoted(merge[part]) for part in ("left", "right", "piece"))
        count = "" if merge["count"] is None else f"{merge['count']:,}"
        name = "" if number else "first merges"
        yield f"{name:<18} {merge['id']:>6} {count:>10}  {left} + {right} = {piece}"


def named(facts: Mapping[str, Any]) -> Iterator[str]:
    """A line for each fact."""
    for name, value in facts.items():
        yield f"{name.replace('_', ' '):<18} {written(value)}"


def quoted(piece: str) -> str:
    return demo.quoted(bytes.fromhex(piece))


def written(value: Any) -> str:
    """A value in a line of text."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return shortened(map(written, value), len(value), "; ")
    if isinstance(value, dict):
        parts = (f"{name} {written(part)}" for name, part in value.items())
        return shortened(parts, len(value), ", ")
    return "".join(map(demo.printable_character, str(value)))


def shortened(parts: Iterable[str], count: int, between: str) -> str:
    """The parts; if there are many their number and the first of them."""
    text = between.join(islice(parts, SHOWN))
    return f"{count:,}: {text}{between}..." if count > SHOWN else text or "none"
