"""The exercises of the notebooks: what a reader answers, or writes, held against what is right.

`python -m tokbpe.exercises FILE` checks the functions of notebooks/exercise.md that a file has.
"""

import copy
import random
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tokbpe import arguments, engines
from tokbpe.arguments import Pair
from tokbpe.tokenizer import Tokenizer

Cases: TypeAlias = Iterator[tuple[tuple[Any, ...], Any]]  # arguments, and the right result

CASES = 300  # of each function
BYTES = [bytes([byte]) for byte in range(256)]
SPECIAL_TOKENS = ("<|a|>", "<|a|>b", "<|end|>")

reference: Any = engines.get("reference")


@dataclass(frozen=True)
class Verdict:
    """What is to be said of an answer; true if it is right."""

    passed: bool
    text: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.text


NOT_YET = Verdict(False, "… not yet: put your answer in the place of the three dots, and run on")


def judge(answer: Any, problem: Callable[[Any], str | None]) -> Verdict:
    """Whether an answer is right.

    answer: `...` stands for none.
    problem: what tells what is wrong with it; nothing, if it is right. An exception is told too.
    """
    if answer is ...:
        return NOT_YET
    try:
        text = problem(answer)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return Verdict(False, f"✗ {text}") if text else Verdict(True, "✓ right")


def check(function: Callable[..., Any]) -> Verdict:
    """Whether a function gives what the package gives, on random arguments. Its name tells which
    one it is, of STEPS.

    Of the arguments for which it does not, the shortest are told.
    """
    name = arguments.choice(getattr(function, "__name__", None), "the function's name", STEPS)
    failures = [
        f"{name}({', '.join(map(repr, given))})\n  gives {result}\n  right {right!r}"
        for given, right in STEPS[name](random.Random(0))
        if (result := outcome(function, given, right)) is not None
    ]
    if failures:
        shortest = min(failures, key=len)
        return Verdict(False, f"✗ {name}: wrong in {len(failures)} of {CASES} cases\n{shortest}")
    return Verdict(True, f"✓ {name}: right in {CASES} random cases")


def outcome(function: Callable[..., Any], given: tuple[Any, ...], right: Any) -> str | None:
    """What a function gives, in writing, if it is not right."""
    try:
        result = function(*copy.deepcopy(given))
        same = type(result) is type(right) and result == right
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if same else repr(result)


# Random cases: few symbols, so that ties and runs abound.


def counting_cases(source: random.Random) -> Cases:
    for sequences, weights in corpora(source):
        yield (sequences, weights), reference.count_pairs(sequences, weights)


def merging_cases(source: random.Random) -> Cases:
    for _ in range(CASES):
        sequence = list(short_bytes(source, 12))
        pair = source.choice(b"abc"), source.choice(b"abc")
        yield (sequence, pair, 256), reference.merge_pair(sequence, pair, 256)


def training_cases(source: random.Random) -> Cases:
    for sequences, weights in corpora(source):
        wanted = source.randrange(8)
        steps = reference.train_steps(sequences, weights, BYTES, wanted)
        yield (sequences, weights, wanted), list(steps)


def decoding_cases(source: random.Random) -> Cases:
    for tokenizer, merges in trained(source):
        ids = [source.randrange(256 + len(merges)) for _ in range(source.randrange(6))]
        yield (ids, merges), tokenizer.decode_bytes(ids)


def encoding_cases(source: random.Random) -> Cases:
    for tokenizer, merges in trained(source):
        data = short_bytes(source, 16)
        yield (data, merges), tokenizer.encode_bytes(data)


def tokenizing_cases(source: random.Random) -> Cases:
    options = {"pattern": "gpt2", "special_tokens": SPECIAL_TOKENS, "special_ids": "end"}
    for tokenizer, merges in trained(source, **options):
        parts = [*SPECIAL_TOKENS, *"aab é1 ", "ab ab", " aé", "   b", "\n", "<|"]
        text = "".join(source.choices(parts, k=source.randrange(8)))
        ids = tokenizer.encode(text, allowed_special="all")
        yield (text, merges, tokenizer.special_tokens), ids


STEPS: Mapping[str, Callable[[random.Random], Cases]] = {
    "count_pairs": counting_cases,
    "merge_pair": merging_cases,
    "train": training_cases,
    "decode": decoding_cases,
    "encode": encoding_cases,
    "tokenize": tokenizing_cases,
}


def corpora(source: random.Random) -> Iterator[tuple[list[list[int]], list[int]]]:
    for _ in range(CASES):
        sequences = [list(short_bytes(source, 9)) for _ in range(source.randrange(4))]
        yield sequences, [source.randint(1, 3) for _ in sequences]


def trained(source: random.Random, **options: Any) -> Iterator[tuple[Tokenizer, list[Pair]]]:
    """Tokenizers, and their merges."""
    for _ in range(CASES):
        ends = source.choices([" aé", "   b"], k=source.randrange(4))
        corpus = b"ab" + short_bytes(source, 30) + "".join(ends).encode()
        least = source.randint(1, 3)
        tokenizer = Tokenizer(corpus, method="bpe", minimum_pair_frequency=least, **options)
        yield tokenizer, [(left, right) for left, right in tokenizer.merges.tolist()]


def short_bytes(source: random.Random, most: int) -> bytes:
    return bytes(source.choices(b"aaabbc", k=source.randrange(most)))


def main(argv: list[str]) -> int:
    """Check the functions of a file; 1 if one of them is wrong."""
    if len(argv) != 1:
        print("usage: python -m tokbpe.exercises FILE", file=sys.stderr)
        return 2
    found = runpy.run_path(argv[0])
    verdicts = [check(found[name]) for name in STEPS if name in found]
    for verdict in verdicts:
        print(verdict)
    print(f"{sum(map(bool, verdicts))} of {len(STEPS)} steps are done")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
