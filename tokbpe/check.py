"""The check: both engines at work on a user's own text, and the smallest text where they differ.

Nothing is printed here: the functions return data or yield lines.
"""

import functools
import io
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, BinaryIO, TypeAlias, TypeVar

from tokbpe import arguments, engines
from tokbpe.tokenizer import Tokenizer

# What an engine makes of documents: names and values, one by one.
Work: TypeAlias = Callable[[str, list[bytes]], Iterator[tuple[str, Any]]]
Items = TypeVar("Items", bytes, list[bytes])

# The reference takes time that grows with the square of a piece, and a document can be one piece.
LONGEST_DOCUMENT = 1000
LONGEST_SHOWN = 300  # characters of a value

PIECES = "the pieces"
COUNTS = "the counts of the pieces"
MERGES = "the merges"
MERGE_COUNTS = "the counts of the merges"
IDS = "the ids"
DECODED = "the decoded documents"
ERROR = "the error"
ABSENT = "(nothing)"


@dataclass(frozen=True)
class Plan:
    """How much is compared."""

    bytes: int = 50_000  # of the text, at most
    merges: int = 200  # for each tie rule, at most
    pattern: str | None = "cl100k"
    reducing_seconds: float = 30  # in which a text with a difference is made smaller


class CheckError(Exception):
    """The engines differ, or a text does not come back."""


# The text


def sample(files: Sequence[BinaryIO], most_bytes: int) -> list[bytes]:
    """Parts of files as documents, together no more than `most_bytes`, evenly from each file.

    They are cut between bytes, so that characters that are not whole are compared too.
    """
    documents: list[bytes] = []
    for number, file in enumerate(files):
        left = most_bytes - sum(map(len, documents))
        documents += parts(file, left // (len(files) - number))
    return documents


def parts(file: BinaryIO, most_bytes: int) -> list[bytes]:
    """Parts of a file, together no more than `most_bytes`, evenly from all of it."""
    if not file.seekable():
        file = io.BytesIO(file.read())
    size = file.seek(0, io.SEEK_END)
    number = -(-min(size, most_bytes) // LONGEST_DOCUMENT)
    found = []
    for index in range(number):
        start, end = index * size // number, (index + 1) * size // number
        file.seek(start)
        found.append(file.read(min(end - start, most_bytes // number)))
    return found


# What is compared


def cut(plan: Plan, engine: str, documents: list[bytes]) -> Iterator[tuple[str, Any]]:
    """How documents fall into pieces."""
    functions = engines.get(engine)
    yield PIECES, [functions.split(document, plan.pattern) for document in documents]
    yield COUNTS, list(functions.count_pieces(documents, plan.pattern).items())


def learn(
    plan: Plan, tie_break: str, engine: str, documents: list[bytes]
) -> Iterator[tuple[str, Any]]:
    """What is learned from documents, their ids, and what these decode to."""
    with warnings.catch_warnings():
        # That there are fewer merges than wanted is no news here.
        warnings.simplefilter("ignore")
        tokenizer = Tokenizer(
            documents,
            method="bpe",
            vocabulary_size=256 + plan.merges,
            minimum_pair_frequency=1,
            pattern=plan.pattern,
            tie_break=tie_break,
            engine=engine,
        )
    yield MERGES, tokenizer.merges.tolist()
    yield MERGE_COUNTS, tokenizer.merge_counts.tolist()
    ids = [tokenizer.encode_bytes(document) for document in documents]
    yield IDS, ids
    yield DECODED, [tokenizer.decode_bytes(row) for row in ids]


@dataclass(frozen=True)
class Difference:
    """A result that should be one, and who has which."""

    what: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """The results of the reference, and the first one that differs."""

    results: dict[str, Any]
    difference: Difference | None


def compare(work: Work, documents: list[bytes]) -> Comparison:
    """What the two engines make of documents."""
    reference, fast = (outcome(work(engine, documents)) for engine in ("reference", "fast"))
    difference = None
    for what in {**reference, **fast}:
        values = {
            name: found.get(what, found.get(ERROR))
            for name, found in (("reference", reference), ("fast", fast))
        }
        if values["reference"] != values["fast"]:
            difference = Difference(what, values)
            break
    else:
        if reference.get(DECODED, documents) != documents:
            difference = Difference(
                DECODED, {"the documents": documents, "both engines": reference[DECODED]}
            )
    return Comparison(reference, difference)


def outcome(results: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """The results, up to an error, which is the last of them."""
    found = {}
    try:
        for what, value in results:
            found[what] = value
    except Exception as error:
        found[ERROR] = f"{type(error).__name__}: {error}"
    return found


# Making a difference smaller


def smallest(documents: list[bytes], differs: Callable[[list[bytes]], bool]) -> list[bytes]:
    """The documents without all that can be left out while they still differ."""
    documents = reduced(documents, differs)
    for index, document in enumerate(documents):

        def differs_with(changed: bytes, index: int = index) -> bool:
            return differs([*documents[:index], changed, *documents[index + 1 :]])

        documents[index] = reduced(document, differs_with)
    return documents


def reduced(items: Items, differs: Callable[[Items], bool]) -> Items:
    """The items without ever smaller runs of them that can be left out, at last without any
    single one."""
    step = len(items)
    while step:
        start, size = 0, len(items)
        while start < len(items):
            shorter = items[:start] + items[start + step :]
            if differs(shorter):
                items = shorter
            else:
                start += step
        # What could not be left out may have become superfluous.
        if step > 1 or len(items) == size:
            step //= 2
    return items


def until(deadline: float, work: Work) -> Callable[[list[bytes]], bool]:
    """Whether the engines differ in documents; false when the time is over."""

    def differs(documents: list[bytes]) -> bool:
        return time.monotonic() < deadline and compare(work, documents).difference is not None

    return differs


# What is shown


def lines(files: Sequence[BinaryIO], plan: Plan) -> Iterator[str]:
    """The check, line by line, each as soon as it is known.

    Raises CheckError if the engines differ or a document does not come back, ValueError for
    files without bytes, ImportError if the fast engine is not built.
    """
    engines.get("fast")  # if it is not built, this is told before any work
    documents = sample(files, plan.bytes)
    size = sum(map(len, documents))
    if not size:
        raise ValueError("the files hold no bytes: there is nothing to compare")
    yield (
        f"{size:,} bytes from {len(files)} {'file' if len(files) == 1 else 'files'}, "
        f"as {len(documents)} documents of at most {LONGEST_DOCUMENT:,} bytes"
    )
    yield f"  {plan.merges} merges at most for each tie rule, pattern {plan.pattern or 'none'}"
    results = yield from compare_lines(functools.partial(cut, plan), "splitting", documents, plan)
    yield (
        f"  splitting: {sum(map(len, results[PIECES])):,} pieces, "
        f"{len(results[COUNTS]):,} distinct ones with their counts"
    )
    for tie_break in arguments.TIE_BREAKS:
        work = functools.partial(learn, plan, tie_break)
        results = yield from compare_lines(work, f"ties {tie_break}", documents, plan)
        yield (
            f"  ties {tie_break}: {len(results[MERGES]):,} merges with their counts, "
            f"{sum(map(len, results[IDS])):,} ids, which decode to every byte"
        )
    yield "The engines agree in all of this."


def compare_lines(
    work: Work, name: str, documents: list[bytes], plan: Plan
) -> Generator[str, None, dict[str, Any]]:
    """Nothing to say, and the results, if the engines agree; else the smallest difference."""
    compared = compare(work, documents)
    if compared.difference is None:
        if ERROR in compared.results:
            raise CheckError(f"both engines fail alike ({name}): {compared.results[ERROR]}")
        return compared.results
    deadline = time.monotonic() + plan.reducing_seconds
    fewest = smallest(documents, until(deadline, work))
    # A fault that comes and goes may not show again.
    difference = compare(work, fewest).difference or compared.difference
    yield f"  DIFFERENCE ({name}) in {difference.what}"
    when = "" if time.monotonic() < deadline else " before the time was over"
    yield f"  The smallest text found{when}, {sum(map(len, fewest)):,} bytes:"
    yield from (f"    {document!r}" for document in fewest)
    index, values = narrowed(difference)
    yield f"  What differs first{index}:"
    yield from (f"    {owner}: {shown(value)}" for owner, value in values.items())
    raise CheckError(f"{' and '.join(difference.values)} differ in {difference.what} ({name})")


def narrowed(difference: Difference) -> tuple[str, dict[str, Any]]:
    """The place and the values of the first items that differ in lists, and lists in these."""
    place, values = "", difference.values
    while all(isinstance(value, list) for value in values.values()):
        items = enumerate(zip_longest(*values.values(), fillvalue=ABSENT))
        index, unequal = next((n, row) for n, row in items if row[0] != row[1])
        place, values = f"{place}[{index}]", dict(zip(values, unequal))
    return place, values


def shown(value: Any) -> str:
    """A value in writing, which is cut if it is long."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ..."
