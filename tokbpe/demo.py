"""The demonstration: both engines at work on text that every user has.

Nothing is printed here: the functions return data or yield lines.
"""

import functools
import os
import platform
import statistics
import sysconfig
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from tokbpe import engines
from tokbpe.tokenizer import Tokenizer

Result = TypeVar("Result")

PATTERN = "cl100k"
# Tests, which would double the text, and what does not belong to the standard library.
SKIPPED_FOLDERS = {"dist-packages", "idle_test", "site-packages", "test", "tests"}
SENTENCES = {
    "English": "Letters grow into words, and words stay whole.",
    "German": "Aus Bytes werden Wörter, und nichts geht verloren.",
    "Hindi": "बाइट मिलकर शब्द बनते हैं।",
    "Chinese": "字节拼成汉字，汉字拼成词。",
    "Japanese": "よく使われる言葉は短くなります。",
    "Arabic": "الكلمات الشائعة رمز واحد.",
    "emoji": "👩‍💻 🧩 → 🙂 👨‍👩‍👧‍👦",
    "code": "    for left, right in zip(ids, ids[1:]):",
}


@dataclass(frozen=True)
class Plan:
    """How much the demonstration does."""

    library_bytes: int = 10_000_000  # read from Python's library, at most
    multilingual_copies: int = 10  # of the short text, so that its words become frequent
    compared_files: int = 25  # each 25th file of the library is given to both engines
    compared_merges: int = 200
    vocabulary_size: int = 16_384  # of the fast engine on the whole text
    merges_shown: int = 12
    fast_repeats: int = 5


FULL = Plan()


class DemoError(Exception):
    """What the demonstration claims does not hold: engines differ, or something did not come
    back."""


# The text


def library_sources(most_bytes: int) -> list[bytes]:
    """Source files of the running Python's standard library, in the order of their paths.

    They end before the file that would exceed `most_bytes`. Files that cannot be read are left
    out. FileNotFoundError if there are none.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    sources: list[bytes] = []
    size = 0
    for path in source_paths(folder):
        try:
            source = path.read_bytes()
        except OSError:
            continue
        size += len(source)
        if size > most_bytes:
            break
        sources.append(source)
    if not sources:
        raise FileNotFoundError(
            "the demo learns from the source files of Python's own library, "
            f"but this Python has none in {folder}"
        )
    return sources


def source_paths(folder: Path) -> Iterator[Path]:
    """The Python files below a folder, in a fixed order."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        yield from (Path(parent, name) for name in sorted(files) if name.endswith(".py"))


def multilingual_text() -> bytes:
    """A short text about byte-pair encoding in five languages, with emoji and code."""
    return resources.files("tokbpe").joinpath("multilingual.txt").read_bytes()


# The work


@dataclass(frozen=True)
class Run:
    """What one engine made of some documents, and in how many seconds."""

    tokenizer: Tokenizer
    ids: list[list[int]]  # of each document
    training_seconds: float
    encoding_seconds: float


def run(
    engine: str,
    documents: Sequence[bytes],
    vocabulary_size: int,
    repeats: int = 1,
    progress: bool = False,
) -> Run:
    """Train on documents, then encode them; the times are the medians of `repeats` runs."""

    def train() -> Tokenizer:
        return Tokenizer(
            documents,
            method="bpe",
            vocabulary_size=vocabulary_size,
            pattern=PATTERN,
            engine=engine,
            progress=progress,
        )

    engines.get(engine).split("", PATTERN)  # compiles the pattern, before the clock runs
    training_seconds, tokenizer = timed(train, repeats)
    encoding_seconds, ids = timed(lambda: [*map(tokenizer.encode_bytes, documents)], repeats)
    return Run(tokenizer, ids, training_seconds, encoding_seconds)


def timed(work: Callable[[], Result], repeats: int) -> tuple[float, Result]:
    """The median of the seconds that some work takes, and its last result."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def check_agreement(reference: Run, fast: Run) -> None:
    """DemoError, naming the first difference, unless merges, their counts and all ids agree."""
    learned = zip_longest(merges_with_counts(reference), merges_with_counts(fast))
    for index, (expected, found) in enumerate(learned):
        if expected != found:
            raise DemoError(
                f"the engines differ in merge {index} (left id, right id, count): "
                f"the reference has {expected}, the fast engine {found}"
            )
    for index, (expected_ids, found_ids) in enumerate(zip(reference.ids, fast.ids)):
        if expected_ids != found_ids:
            raise DemoError(f"the engines encode document {index} differently")


def merges_with_counts(run: Run) -> list[tuple[int, int, int]]:
    """The two ids and the count of each merge, in the order learned."""
    tokenizer = run.tokenizer
    pairs, counts = tokenizer.merges.tolist(), tokenizer.merge_counts.tolist()
    return [(left, right, count) for (left, right), count in zip(pairs, counts)]


def check_round_trip(tokenizer: Tokenizer, ids: list[int], text: bytes) -> None:
    """DemoError unless the ids decode to the text."""
    if tokenizer.decode_bytes(ids) != text:
        raise DemoError(f"a text does not come back from its tokens; it begins {text[:40]!r}")


# What is shown


def lines(plan: Plan = FULL, progress: bool = False) -> Iterator[str]:
    """The demonstration, line by line, each as soon as it is known.

    progress: whether to show progress bars on standard error while engines train.

    Raises DemoError if the engines differ, or a text or the tokenizer does not come back;
    FileNotFoundError if this Python has no source files, another OSError if no temporary file
    can be written, ImportError if the fast engine is not built.
    """
    engines.get("fast")  # if it is not built, this is told before any work
    library = library_sources(plan.library_bytes)
    multilingual = multilingual_text()
    yield "THE TEXT"
    yield (
        f"  {megabytes(library):>9}   {len(library):,} source files of the library of "
        f"Python {platform.python_version()}"
    )
    yield (
        f"  {megabytes([multilingual]):>9}   German, Hindi, Chinese, Japanese, Arabic, emoji, "
        f"code; taken {plan.multilingual_copies} times"
    )
    yield ""
    yield from compare_lines(plan, [multilingual, *library[:: plan.compared_files]], progress)
    yield ""
    copies = [multilingual] * plan.multilingual_copies
    documents = copies + library
    yield "THE FAST ENGINE ON ALL OF IT"
    fast = run("fast", documents, plan.vocabulary_size, progress=progress)
    for ids, document in zip(fast.ids, documents):
        check_round_trip(fast.tokenizer, ids, document)
    yield from whole_lines(fast, documents, len(copies))
    yield ""
    yield "ITS FIRST MERGES"
    yield from merge_lines(fast, plan.merges_shown)
    yield ""
    yield "SENTENCES THAT IT HAS NOT SEEN (a byte that is only a part of a character: <hex>)"
    yield from sentence_lines(fast.tokenizer)
    yield ""
    yield "EXPORTED, IMPORTED AND COMPARED"
    yield from export_lines(fast.tokenizer)


def compare_lines(plan: Plan, documents: Sequence[bytes], progress: bool) -> Iterator[str]:
    """Both engines at the same work."""
    yield f"BOTH ENGINES ON A PART OF IT: {megabytes(documents)}, {plan.compared_merges} merges"
    size = 256 + plan.compared_merges
    reference = run("reference", documents, size, progress=progress)
    fast = run("fast", documents, size, repeats=plan.fast_repeats)
    check_agreement(reference, fast)
    yield "  The merges agree, and so do their counts and the ids of the encoded text."
    yield ""
    yield "  MB/s          reference        fast     ratio   (MB: a million bytes)"
    for work, slow_seconds, fast_seconds in (
        ("training", reference.training_seconds, fast.training_seconds),
        ("encoding", reference.encoding_seconds, fast.encoding_seconds),
    ):
        yield (
            f"  {work} {rate(documents, slow_seconds):>14} {rate(documents, fast_seconds):>11} "
            f"{slow_seconds / fast_seconds:>7,.0f} x"
        )
    yield f"  The reference: one run. The fast engine: the median of {plan.fast_repeats} runs."


def whole_lines(fast: Run, documents: Sequence[bytes], copies: int) -> Iterator[str]:
    """Speed and compression on the whole text, whose first documents are copies of one."""
    merges = len(fast.tokenizer.merges)
    yield (
        f"  training   {fast.training_seconds:6.2f} s  {rate(documents, fast.training_seconds):>8} "
        f"MB/s   {merges:,} merges learned from {megabytes(documents)}, in one run"
    )
    tokens = sum(map(len, fast.ids))
    yield (
        f"  encoding   {fast.encoding_seconds:6.2f} s  {rate(documents, fast.encoding_seconds):>8} "
        f"MB/s   {tokens:,} tokens"
    )
    yield "  decoding   gives back every byte"
    for name, chosen in (("library", slice(copies, None)), ("languages", slice(copies))):
        ratio = sum(map(len, documents[chosen])) / sum(map(len, fast.ids[chosen]))
        yield f"  {name:<10} {ratio:6.2f} bytes per token"


def merge_lines(fast: Run, number: int) -> Iterator[str]:
    """The first merges: what was joined, and how often it stood in the text."""
    vocabulary = dict(fast.tokenizer.items())
    yield "     id      count        left + right      piece"
    merges = merges_with_counts(fast)[:number]
    for id, (left, right, count) in enumerate(merges, start=256):
        halves = f"{quoted(vocabulary[left]):>11} + {quoted(vocabulary[right]):<10}"
        yield f"  {id:>5} {count:>10,} {halves} {quoted(vocabulary[id])}"


def sentence_lines(tokenizer: Tokenizer) -> Iterator[str]:
    """Sentences with the borders of their tokens."""
    for name, sentence in SENTENCES.items():
        ids = tokenizer.encode(sentence)
        check_round_trip(tokenizer, ids, sentence.encode())
        size = f"{len(sentence.encode())} bytes, {len(ids)} tokens"
        yield f"  {name:<9} {size:<22} {bordered(tokenizer, ids)}"
    yield "  The decoded text equals the input."


def export_lines(tokenizer: Tokenizer) -> Iterator[str]:
    """The tokenizer written to files of both formats, and read again."""
    with tempfile.TemporaryDirectory() as folder:
        for name, save, load in (
            ("demo.tokbpe", tokenizer.save, Tokenizer.load),
            (
                "demo.json",
                tokenizer.to_json,
                functools.partial(Tokenizer.from_json, pattern=PATTERN),
            ),
        ):
            path = Path(folder, name)
            save(path)
            check_same(tokenizer, load(path), name)
            yield f"  {name:<12} {path.stat().st_size:>9,} bytes   an equal tokenizer, the same ids"


def check_same(tokenizer: Tokenizer, imported: Tokenizer, name: str) -> None:
    """DemoError unless an imported tokenizer is equal, and encodes and decodes alike."""
    if imported != tokenizer:
        raise DemoError(f"the tokenizer that comes from {name} is not equal")
    for sentence in SENTENCES.values():
        ids = tokenizer.encode(sentence)
        if imported.encode(sentence) != ids or imported.decode(ids) != sentence:
            raise DemoError(f"the tokenizer that comes from {name} encodes {sentence!r} otherwise")


def bordered(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The pieces of ids between bars."""
    vocabulary = dict(tokenizer.items())
    return "".join(f"|{printable(vocabulary[id])}" for id in ids) + "|"


def quoted(piece: bytes) -> str:
    return f"'{printable(piece)}'"


def printable(piece: bytes) -> str:
    """A piece as text that shows each byte: what is no whole character as <e4>, hexadecimal."""
    text = piece.decode("utf-8", "surrogateescape")
    shown = "".join(map(printable_character, text))
    # A combining mark would sit on what stands before the piece.
    return f"\u25cc{shown}" if unicodedata.category(text[0]).startswith("M") else shown


def printable_character(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"<{ord(character) - 0xDC00:02x}>"
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def megabytes(documents: Sequence[bytes]) -> str:
    """The size of documents, in units of a million bytes."""
    return f"{sum(map(len, documents)) / 1e6:.3f} MB"


def rate(documents: Sequence[bytes], seconds: float) -> str:
    """Megabytes, of a million bytes, in a second."""
    return f"{sum(map(len, documents)) / 1e6 / seconds:,.2f}"
