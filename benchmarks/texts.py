"""The texts of the benchmarks: corpora in two parts of a kind, documents, hard megabytes."""

import random
import re
import string
from collections.abc import Iterator
from pathlib import Path

CORPORA = {
    "English": "en",
    "C": "c",
    "Python": "py",
    "mixed": "mixed",
    "Russian": "ru",
    "Hindi": "hi",
    "Japanese": "ja",
    "Chinese": "zh",
}
# Half English, a quarter in five other languages, a quarter code.
MIXED = {"en": 2, **dict.fromkeys(["de", "ru", "ja", "zh", "hi"], 20), "c": 8, "py": 8}


def two_parts(folder: Path, corpus: str, size: int) -> tuple[str, str]:
    """The first bytes of a corpus, so many or half of it, and as many that come next."""
    if corpus == "mixed":
        return "".join(mixed(folder, size)), "".join(mixed(folder, size, 1))
    data = (folder / f"{corpus}.txt").read_bytes()
    size = min(size, len(data) // 2)
    return part(data, size, 0), part(data, size, 1)


def mixed(folder: Path, size: int, number: int = 0) -> list[str]:
    """The texts of a mixture of so many bytes; another number gives other parts of the corpora."""
    return [
        part((folder / f"{name}.txt").read_bytes(), size // share, number)
        for name, share in MIXED.items()
    ]


def part(data: bytes, size: int, number: int) -> str:
    """The part of that number; characters that its ends cut are left out."""
    return data[size * number : size * (number + 1)].decode("utf-8", "ignore")


def documents(text: str, kind: str) -> list[str]:
    """The paragraphs or the lines of a text, which together are the text."""
    ends = {"paragraphs": r"(?<=\n\n)(?!\n)", "lines": r"(?<=\n)"}[kind]
    return [document for document in re.split(ends, text) if document]


def megabytes(size: int) -> Iterator[tuple[str, list[str]]]:
    """Texts of so many bytes that other tokenizers are slow with, or fail on. In the parts given
    here, all patterns cut them too."""
    source = random.Random(0)

    def drawn(alphabet: str) -> list[str]:
        return ["".join(source.choices(alphabet, k=size))]

    def repeated(unit: str) -> list[str]:
        return [unit * (size // len(unit.encode("utf-8")))]

    yield "one letter", repeated("a")
    yield "^", repeated("^")
    yield "_", repeated("_")
    yield "one digit", repeated("7")
    yield "digits", drawn(string.digits)
    yield "'s", repeated("'s")
    yield "emoji", repeated("😀")
    yield "é", repeated("é")
    yield "one Chinese character", repeated("中")
    yield "Chinese characters", [chinese(source, size)]
    yield "random letters", drawn(string.ascii_lowercase)
    yield "base64", drawn(string.ascii_letters + string.digits + "+/")
    yield "spaces", repeated(" ")
    yield "spaces, then x", [" " * (size - 2), " x"]
    yield "newlines", repeated("\n")


def chinese(source: random.Random, size: int) -> str:
    """Characters that no dictionary has side by side."""
    return "".join(chr(source.randrange(0x4E00, 0x9FA6)) for _ in range(size // 3))


# 56 characters, and so many different strings of them.
SENTENCE = "The quick brown fox jumps over the lazy dog at 10 to 12."
SENTENCES = 1000


def sentences(text: str) -> list[str]:
    """Different strings of 56 characters from a text."""
    length = len(SENTENCE)
    starts = range(0, len(text) - length, max(length, len(text) // SENTENCES))
    return [text[start : start + length] for start in starts][:SENTENCES]


def five_characters(text: str, count: int) -> list[str]:
    return [text[start : start + 5] for start in range(0, min(5 * count, len(text) - 4), 5)]
