"""How fast the two engines train, against each other and against Hugging Face.

    TOKBPE_DATA=... python benchmarks/twins.py [--json FILE] [--quick]

Needs the folder of texts that TOKBPE_DATA names, and the extra `bench` for Hugging Face's
tokenizers. Equal merges are asserted before anything is timed. Times are process CPU times on
one thread in seconds, medians of five interleaved runs, but for the reference's long training,
which is run once. MB are 10**6 bytes of UTF-8.
"""

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

from texts import mixed
from timing import BYTES, interleaved, machine, timed

from tokbpe import Tokenizer, fast, reference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    options = parser.parse_args()
    # Before the tokenizers library is loaded: it reads this once.
    os.environ["RAYON_NUM_THREADS"] = "1"
    scale = 10 if options.quick else 1
    texts = Path(os.environ["TOKBPE_DATA"]) / "corpora"
    english = (texts / "en.txt").read_bytes()
    figures = {
        "machine": machine(),
        "reference_step": reference_step(english[: 1_000_000 // scale]),
        "one_sequence": one_sequence(english[: 1_000_000 // scale], 1000 // scale),
        "growth": growth(english),
        "hugging_face": hugging_face(mixed(texts, 10_000_000 // scale), 32_000 // scale),
    }
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def reference_step(data: bytes) -> dict[str, float]:
    """A merge step of the reference, against counting the same pairs and walking the list."""
    sequence = list(data)

    def step() -> None:
        counts = reference.count_pairs([sequence], [1])
        reference.merge_pair(sequence, reference.choose_pair(counts, BYTES, "smallest"), 256)

    def count() -> None:
        Counter(zip(sequence, sequence[1:]))

    def walk() -> None:
        for _ in sequence:
            pass

    whole, counting, walking = interleaved(step, count, walk)
    return {
        "symbols": len(sequence),
        "step": whole,
        "count": counting,
        "walk": walking,
        "ratio": whole / (counting + walking),
    }


def one_sequence(data: bytes, merges: int) -> dict[str, float]:
    """Merges on one text without a pattern, both engines."""
    slow_seconds, slow = timed(lambda: reference.train([data], None, BYTES, merges))
    pairs, counts = fast.train([data], None, BYTES, merges)
    assert (list(map(tuple, pairs.tolist())), counts.tolist()) == slow
    (fast_seconds,) = interleaved(lambda: fast.train([data], None, BYTES, merges))
    return {
        "bytes": len(data),
        "merges": merges,
        "reference": slow_seconds,
        "fast": fast_seconds,
        "ratio": slow_seconds / fast_seconds,
    }


def growth(data: bytes) -> dict[str, float]:
    """One unsplit sequence of 20,000 symbols against one of 80,000, 500 merges."""
    sizes = (20_000, 40_000, 80_000, 320_000)
    times = interleaved(*(lambda n=n: fast.train([data[:n]], None, BYTES, 500) for n in sizes))
    return {**{str(n): t for n, t in zip(sizes, times)}, "ratio_80k_20k": times[2] / times[0]}


def hugging_face(texts: list[str], vocabulary_size: int) -> dict[str, object]:
    """The cl100k pattern, from text in memory to merges."""
    try:
        from tokenizers import Regex, models, pre_tokenizers, trainers
        from tokenizers import Tokenizer as Peer
    except ImportError:
        return {"skipped": "the extra `bench` is not installed"}
    # Its own regular expression engine has another word for the end of a text.
    pattern = (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
    )

    def theirs() -> list[tuple[str, str]]:
        peer = Peer(models.BPE())
        peer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            min_frequency=2,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
            special_tokens=[],
        )
        peer.train_from_iterator(texts, trainer)
        return [tuple(pair) for pair in json.loads(peer.to_str())["model"]["merges"]]

    def ours() -> Tokenizer:
        return Tokenizer(
            texts, method="bpe", vocabulary_size=vocabulary_size, pattern="cl100k", base="gpt2"
        )

    assert printable_merges(ours()) == theirs(), "the merges differ"
    tokbpe_seconds, peer_seconds = interleaved(ours, theirs)
    return {
        "bytes": sum(len(text.encode()) for text in texts),
        "vocabulary": vocabulary_size,
        "tokbpe": tokbpe_seconds,
        "tokenizers": peer_seconds,
        "ratio": peer_seconds / tokbpe_seconds,
    }


def printable_merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    from tokbpe.patterns import to_printable

    pieces = [to_printable(piece) for piece in tokenizer.vocabulary]
    return [(pieces[left], pieces[right]) for left, right in tokenizer.merges.tolist()]


if __name__ == "__main__":
    sys.exit(main())
