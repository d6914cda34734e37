"""The peers as trainers: how each learns merges from a text, at its fastest.

Each function below imports its library and gives a call that trains, and what the merges of its
result are, as pairs of byte strings. All learn so many merges beside their alphabet, by the rule
"smallest"; ids, which break ties, are in the order of bytes or of GPT-2's printable characters.
"""

import importlib.util
import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tokbpe import patterns

# How a text is cut before merges are learned: by a pattern, not at all, or into words whose last
# character is marked.
PIECES, RAW, WORDS = "pieces", "raw", "words"
REGIMES = (PIECES, RAW, WORDS)
PATTERNS = ("gpt2", "cl100k")
MARK = "</w>"
PART = 100_000  # characters that tokenizers and rustbpe get at once, about

Merges = list[tuple[bytes, bytes]]


class Job(NamedTuple):
    """A training."""

    trainer: str
    path: str  # of the text, in UTF-8
    regime: str
    pattern: str  # for PIECES
    merges: int
    threads: int


class Training(NamedTuple):
    """A training that is ready to be run, and how its result is read."""

    run: Callable[[], Any]
    merges: Callable[[Any], Merges]


class Unsupported(Exception):
    """A peer that has no such training."""


def text_of(job: Job) -> str:
    return Path(job.path).read_bytes().decode("utf-8")


def parts_of(text: str) -> list[str]:
    """A text in parts of which all patterns make the pieces of the whole: cut before a space that
    stands behind an ASCII letter."""
    parts = []
    start = 0
    while start < len(text):
        end = min(start + PART, len(text))
        while end < len(text) and not (text[end] == " " and text[end - 1] in string.ascii_letters):
            end += 1
        parts.append(text[start:end])
        start = end
    return parts


def marked_symbols(words: Iterable[str]) -> int:
    """How many symbols words have, where the last one of each is marked."""
    return len({symbol for word in set(words) for symbol in (*word[:-1], word[-1] + MARK)})


# The peers


def tokbpe(job: Job, base: str = "bytes") -> Training:
    from tokbpe import Tokenizer

    text = text_of(job)
    options: dict[str, Any] = {"method": "bpe", "base": base}
    size = 256
    if job.regime == PIECES:
        options["pattern"] = job.pattern
    if job.regime == WORDS:
        options = {"method": "word", "minimum_pair_frequency": 2}
        size = 1 + 2 * len(set("".join(set(text.split()))))

    def run() -> Tokenizer:
        return Tokenizer(text, vocabulary_size=size + job.merges, threads=job.threads, **options)

    def merges(tokenizer: Tokenizer) -> Merges:
        pieces = tokenizer.vocabulary
        return [(pieces[left], pieces[right]) for left, right in tokenizer.merges.tolist()]

    return Training(run, merges)


def tokbpe_printable(job: Job) -> Training:
    """With the ids of peers that rank bytes by their printable characters."""
    return tokbpe(job, "gpt2")


def reference(job: Job) -> Training:
    from tokbpe import Tokenizer

    if job.regime == WORDS:
        raise Unsupported
    text = text_of(job)
    pattern = job.pattern if job.regime == PIECES else None

    def run() -> Tokenizer:
        return Tokenizer(
            text,
            method="bpe",
            vocabulary_size=256 + job.merges,
            pattern=pattern,
            engine="reference",
        )

    return Training(run, tokbpe(job).merges)


def tokenizers(job: Job) -> Training:
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, trainers

    if job.regime == RAW:
        raise Unsupported  # quadratic: hours
    text = text_of(job)
    parts = parts_of(text)
    size = 256
    options: dict[str, Any] = {}
    if job.regime == WORDS:
        cut: Any = pre_tokenizers.WhitespaceSplit()
        size = marked_symbols(text.split())
        options["end_of_word_suffix"] = MARK
    else:
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
        cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=job.pattern == "gpt2")
        if job.pattern != "gpt2":
            expressions = patterns.to_huggingface(patterns.get(job.pattern))
            splits = [
                pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
                for expression in expressions
            ]
            cut = pre_tokenizers.Sequence([*splits, cut])

    def run() -> Any:
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = cut
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size + job.merges, min_frequency=2, show_progress=False, **options
        )
        tokenizer.train_from_iterator(parts, trainer)
        return tokenizer

    def merges(tokenizer: Any) -> Merges:
        return read_pairs(json.loads(tokenizer.to_str())["model"]["merges"], job.regime)

    return Training(run, merges)


def read_pairs(pairs: Iterable[Sequence[str]], regime: str) -> Merges:
    read = patterns.from_printable if regime == PIECES else str.encode
    return [(read(left), read(right)) for left, right in pairs]


def rustbpe(job: Job) -> Training:
    import rustbpe

    if job.regime == WORDS:
        raise Unsupported
    text = text_of(job)
    if job.regime == RAW:
        parts, expression = [text], r"[\s\S]+"
    else:
        parts, expression = parts_of(text), patterns.to_tiktoken(patterns.get(job.pattern))

    def run() -> Any:
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(parts, 256 + job.merges, pattern=expression)
        return tokenizer

    def merges(tokenizer: Any) -> Merges:
        return halves(dict(tokenizer.get_mergeable_ranks()))

    return Training(run, merges)


def halves(ranks: Mapping[bytes, int]) -> Merges:
    """What the pieces of a trained vocabulary were merged from: the two that their bytes come to,
    when the pair of lowest rank is merged again and again."""
    found = []
    for piece in sorted(ranks, key=ranks.__getitem__):
        parts = [bytes([byte]) for byte in piece]
        while len(parts) > 2:
            joined = [left + right for left, right in pairwise(parts)]
            place = min(range(len(joined)), key=lambda n: ranks.get(joined[n], len(ranks)))
            parts[place : place + 2] = [joined[place]]
        if len(parts) == 2:
            found.append((parts[0], parts[1]))
    return found


def gigabpe(job: Job) -> Training:
    import gigabpe

    if job.regime == RAW or (job.regime == PIECES and job.pattern != "gpt2"):
        raise Unsupported
    # Its alphabet is what it sees, and its words are cut at punctuation too.
    text = text_of(job)
    size = len(set(text.encode("utf-8")))
    options: dict[str, Any] = {"pretokenizer": "bytelevel"}
    if job.regime == WORDS:
        size = marked_symbols(re.findall(r"\w+|[^\w\s]+", text))
        options = {"pretokenizer": "whitespace", "end_of_word_suffix": MARK}

    def run() -> Any:
        return gigabpe.train_bpe(
            [job.path],
            size + job.merges,
            special_tokens=[],
            min_frequency=2,
            threads=job.threads,
            **options,
        )

    return Training(run, lambda result: read_pairs(result[1], job.regime))


def gigatoken(job: Job) -> Training:
    import gigatoken

    if job.regime != PIECES or job.pattern != "gpt2":
        raise Unsupported
    data = Path(job.path).read_bytes()

    def run() -> Any:
        return gigatoken.train_bpe(data, 256 + job.merges, [])

    return Training(run, lambda result: [(bytes(left), bytes(right)) for left, right in result[1]])


class Trainer(NamedTuple):
    module: str
    prepare: Callable[[Job], Training]
    like: str  # the one of ours with the same ids of bytes, which must learn the same merges


OURS, PRINTABLE = "tokbpe", "tokbpe, printable order"
TRAINERS = {
    OURS: Trainer("tokbpe", tokbpe, OURS),
    "gigabpe": Trainer("gigabpe", gigabpe, PRINTABLE),
    "gigatoken": Trainer("gigatoken", gigatoken, PRINTABLE),
    "rustbpe": Trainer("rustbpe", rustbpe, OURS),
    "tokenizers": Trainer("tokenizers", tokenizers, PRINTABLE),
    "reference": Trainer("tokbpe", reference, OURS),
    PRINTABLE: Trainer("tokbpe", tokbpe_printable, PRINTABLE),
}


def installed() -> Iterator[str]:
    """The peers that can be measured; the reference takes too long to be among them unasked."""
    for name, trainer in TRAINERS.items():
        asked_for = name in ("reference", PRINTABLE)
        if not asked_for and importlib.util.find_spec(trainer.module):
            yield name
