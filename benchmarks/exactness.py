"""Whether real vocabularies give the ids of tiktoken and of Hugging Face's tokenizers.

    TOKBPE_DATA=... python benchmarks/exactness.py [--json FILE] [--bytes N] [--strings N]
                                                   [--only NAME ...] [--variants NAME ...]

Needs the folder that TOKBPE_DATA names and the extras `bench` and `test`. For each vocabulary the
ids of both are compared, special tokens allowed, on

- all texts of the folder, or `--bytes` from the middle of each,
- random strings of all of Unicode (`--strings`, 100,000 if it is not said),
- awkward strings: those that other tokenizers got wrong,
- each piece alone;

the arrays of tokbpe with its lists on all these, and on each text of the folder as one document
for two threads; and the two engines of tokbpe on samples. All that is done once by each variant of
the scanner that this machine runs, or by `--variants`, in a process of its own. Any difference ends
the run with the first text that shows it. Prints, and writes as JSON, how much was compared.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from timing import machine, timed

from tokbpe import Tokenizer
from tokbpe.fast.split import VARIANT, VARIANTS

TIKTOKEN = ("r50k_base", "p50k_base", "cl100k_base", "o200k_base")
HUGGING_FACE = ("gpt2", "qwen3", "deepseek_v3")
TEXTS = ("c", "de", "en", "hi", "ja", "py", "ru", "zh")
CHUNK = 200_000  # bytes that a peer gets at once, about; Hugging Face is slower with more
SAMPLES = 300  # strings that the reference, too, encodes
SHORT = 400  # bytes of them, at most

# What splits differently in one pattern or another, to be put side by side.
SNIPPETS = (
    *("a", "B", "ß", "ſ", "Σ", "ǅ", "ʰ", "中", "ノ", "ー", "ั", "̃", "\u20dd", "क", "्"),
    *("1", "12", "1234567", "٣", "Ⅷ", "½", "'s", "'S", "'ſ", "'ll", "'LL", "'Re", "'", "’s"),
    *(" ", "  ", "\t", "\n", "\r\n", "\r", "\x0b", "\x1c", "\x85", "\xa0", "\u2028", "\u3000"),
    *("\u200b", "\ufeff", "\u180e", "\ufffe", "\U0001ffff", "\x00", "\x7f", "\u0378", "\ue000"),
    *("_", "/", "!", "$", "€", "...", "<|", "|>", "</s>", "=>", "😀", "👩‍💻", "🇩🇪", "ﷺ", "۝"),
    *("<|endoftext|>", "<|fim_prefix|>", "<|im_start|>", "<think>", "<｜User｜>"),
)
# A fault of another tokenizer each; long ones are for the peer's patience.
CASES = (
    *("", "<|endoftext|>", "e\u0301", "é", "你好，世界", "नमस्ते", "a\r\n\r\nb", "I'LL don't"),
    *("1234567", "😀", "i ⭢ j 😀!", "Machine learning systems from scratch", "low lower lowest"),
    *(" " * 82, " " * 128, " " * 1000, "\n" * 1000, "a" * 1000, "'s" * 500, "^" * 1000),
    *("é" * 500, "中" * 500, "🐈" * 300, "ab" * 500, "0" * 1000, "_" * 1000, "x" + " " * 99),
    *("".join(map(chr, range(256))), "\x1c \x1d\u180e \u200b\u3000x", "İıKſ", "K's'ſ'S"),
)


class Peer(NamedTuple):
    """A vocabulary, here and there."""

    ours: Tokenizer
    theirs: Callable[[list[str]], list[list[int]]]  # the ids of texts


def main(argv: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else [*argv]
    options = parsed(words)
    if options.variants == [VARIANT]:
        compared = {VARIANT: by_this_process(options)}
    else:
        compared = {name: by_another_process(words, name) for name in options.variants}
    figures = {"machine": machine(), "differences": 0, "compared": compared}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--bytes", type=int, help="of each text")
    parser.add_argument("--strings", type=int, default=100_000, help="how many random strings")
    parser.add_argument("--only", nargs="+", default=[*TIKTOKEN, *HUGGING_FACE])
    parser.add_argument(
        "--variants", nargs="+", choices=VARIANTS, default=[*VARIANTS], help="of the scanner"
    )
    return parser.parse_args(argv)


def by_this_process(options: argparse.Namespace) -> dict[str, dict[str, int]]:
    """How much was compared, for each vocabulary."""
    folder = Path(os.environ["TOKBPE_DATA"])
    strings = random_strings(options.strings)
    rows = {}
    for name in options.only:
        seconds, rows[name] = timed(
            lambda name=name: compared(peer(name, folder), folder, options.bytes, strings)
        )
        print(VARIANT, name, json.dumps(rows[name]), f"{seconds:.0f} s", flush=True)
    return rows


def by_another_process(words: Sequence[str], variant: str) -> dict[str, dict[str, int]]:
    """The same from a process that scans by a variant: it is chosen when tokbpe is imported."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, __file__, *words, "--variants", variant, "--json", str(file)]
        done = subprocess.run(command, env={**os.environ, "TOKBPE_SIMD": variant})
        if done.returncode:
            raise SystemExit(done.returncode)
        return dict(json.loads(file.read_text())["compared"][variant])


# The vocabularies


def peer(name: str, folder: Path) -> Peer:
    """A vocabulary as tokbpe reads it, and the same in the library that it comes from."""
    vocabularies = folder / "vocab"
    if name in TIKTOKEN:
        return Peer(
            Tokenizer.from_tiktoken(vocabularies / f"{name}.tiktoken"),
            tiktoken_of(name, vocabularies),
        )
    import tokenizers

    if name == "gpt2":
        files = [vocabularies / "gpt2" / file for file in ("encoder.json", "vocab.bpe")]
        other = tokenizers.ByteLevelBPETokenizer.from_file(*map(str, files))._tokenizer
        other.add_special_tokens(["<|endoftext|>"])
        return Peer(Tokenizer.from_gpt2(vocabularies / "gpt2"), hugging_face(other))
    path = vocabularies / f"{name}.tokenizer.json"
    other = tokenizers.Tokenizer.from_file(str(path))
    return Peer(Tokenizer.from_huggingface(path), hugging_face(other))


def tiktoken_of(name: str, vocabularies: Path) -> Callable[[list[str]], list[list[int]]]:
    """tiktoken's encoding of a name, from the file in a folder of ours."""
    import tiktoken

    with tempfile.TemporaryDirectory() as cache:
        os.environ["TIKTOKEN_CACHE_DIR"] = cache
        url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
        kept = Path(cache) / hashlib.sha1(url.encode()).hexdigest()
        kept.symlink_to((vocabularies / f"{name}.tiktoken").resolve())
        encoding = tiktoken.get_encoding(name)
        del os.environ["TIKTOKEN_CACHE_DIR"]
    return lambda texts: [encoding.encode(text, allowed_special="all") for text in texts]


def hugging_face(tokenizer: Any) -> Callable[[list[str]], list[list[int]]]:
    return lambda texts: [
        encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ]


# What is compared


def compared(peer: Peer, folder: Path, size: int | None, strings: list[str]) -> dict[str, int]:
    """Compare all; how much it was."""
    reference = Tokenizer.from_vocabulary(peer.ours._vocabulary, "reference")
    pieces = [piece for _, piece in peer.ours.items()]
    alone = [piece.decode("utf-8") for piece in pieces if is_text(piece)]
    text_bytes = tokens = 0
    for name in TEXTS:
        chunks = list(parts_of_text(folder / "corpora" / f"{name}.txt", size))
        text_bytes += sum(len(chunk.encode("utf-8")) for chunk in chunks)
        tokens += equal(peer, chunks)
        arrays_agree(peer.ours, ["".join(chunks)])
        engines_agree(peer.ours, reference, chunks)
    for texts in (strings, CASES, alone):
        tokens += equal(peer, texts)
        engines_agree(peer.ours, reference, texts)
    return {
        "text_bytes": text_bytes,
        "strings": len(strings),
        "cases": len(CASES),
        "pieces": len(alone),
        "tokens": tokens,
    }


def equal(peer: Peer, texts: Iterable[str]) -> int:
    """Compare the ids of texts; how many there are. SystemExit where they differ."""
    count = 0
    batch: list[str] = []
    for text in [*texts, None]:
        if text is not None:
            batch.append(text)
        if batch and (text is None or len(batch) == 1000):
            for one, theirs in zip(batch, peer.theirs(batch)):
                ours = peer.ours.encode(one, allowed_special="all")
                if ours != theirs:
                    raise SystemExit(shown(peer, one, ours, theirs))
                count += len(ours)
            arrays_agree(peer.ours, batch)
            batch = []
    return count


def shown(peer: Peer, text: str, ours: list[int], theirs: list[int]) -> str:
    place = next((n for n, (a, b) in enumerate(zip(ours, theirs)) if a != b), len(ours))
    return (
        f"{peer.ours} differs at token {place} of {text[:200]!r}:\n"
        f"{ours[place : place + 20]}, where there is\n{theirs[place : place + 20]}"
    )


def arrays_agree(ours: Tokenizer, texts: list[str]) -> None:
    """Compare arrays and lists of all texts, alone and together. SystemExit where they differ."""
    lists = [ours.encode(text, allowed_special="all") for text in texts]
    ids, offsets = ours.encode_batch_arrays(texts, allowed_special="all", threads=2)
    spans = pairwise(offsets.tolist())
    for text, expected, (start, end) in zip(texts, lists, spans, strict=True):
        alone = ours.encode_array(text, allowed_special="all", threads=2)
        for found in (alone, ids[start:end]):
            if found.tolist() != expected:
                raise SystemExit(
                    f"the arrays of {ours} differ on {text[:200]!r}: {found[:20]}, where the list "
                    f"begins with {expected[:20]}"
                )
    if offsets[-1] != len(ids):
        raise SystemExit(f"the offsets of {ours} end at {offsets[-1]} of {len(ids)} ids")


def engines_agree(ours: Tokenizer, reference: Tokenizer, texts: Iterable[str]) -> None:
    """Compare both engines on a sample. SystemExit where they differ."""
    texts = list(texts)
    for text in random.Random(0).sample(texts, min(SAMPLES, len(texts))):
        text = text[:SHORT]
        ids = [each.encode(text, allowed_special="all") for each in (ours, reference)]
        if ids[0] != ids[1]:
            raise SystemExit(f"the engines differ on {text!r}: {ids}")


def parts_of_text(path: Path, size: int | None) -> Iterator[str]:
    """A text, or so many bytes from its middle, in parts that end with a line."""
    data = path.read_bytes()
    if size is not None and size < len(data):
        start = data.find(b"\n", (len(data) - size) // 2) + 1
        data = data[start : start + size]
    # The last character may have been cut.
    text = data.decode("utf-8", "ignore")
    start = 0
    while start < len(text):
        end = text.find("\n", start + CHUNK) + 1 or len(text)
        yield text[start:end]
        start = end


def is_text(piece: bytes) -> bool:
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def random_strings(count: int) -> list[str]:
    """Strings of all of Unicode but lone surrogates, of snippets that patterns cut, of both."""
    characters = st.characters(exclude_categories=["Cs"])
    anything = st.text(characters, max_size=30)
    snippets = st.lists(st.sampled_from(SNIPPETS), max_size=15).map("".join)
    either = st.one_of(st.sampled_from(SNIPPETS), st.text(characters, max_size=3))
    mixed = st.lists(either, max_size=12).map("".join)
    found: list[str] = []

    @settings(
        max_examples=-(-count // 20),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.one_of(anything, snippets, mixed), min_size=20, max_size=20))
    def collect(strings: list[str]) -> None:
        found.extend(strings)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return found[:count]


if __name__ == "__main__":
    sys.exit(main())
