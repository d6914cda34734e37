"""Every form of scanning that this machine has, against the reference: blocks of 64 bytes by
AVX-512, AVX2 and in plain C, and without blocks, which is exact for all that they are not sure of.

Texts are made for the edges of blocks: what is told apart there begins, ends and is cut short at
each of their places.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import growth
from strategies import BROKEN
from test_scanners import CROSSING, NAMES, PARTS
from tokbpe import fast, reference
from tokbpe.fast import build
from tokbpe.fast.split import VARIANTS, use_variant

# The function of this name hides the module.
SCANNERS = sys.modules["tokbpe.fast.split"]
HEADERS = Path(__file__).parents[1] / "tokbpe" / "fast"  # no wheel has them
COMPILER = (sysconfig.get_config_var("CC") or "cl").split()[0]

BLOCK = 64
OFFSETS = range(2 * BLOCK + 3)
BLOCK_NAMES = [name for name in NAMES if name != "deepseek_v3"]

# What is more than one byte, or is told by what stands around it.
FRAGMENTS = [
    "", "x", " x", "X", "xX", "xXx", "XXx", "1", "12345", " 1", "!", "!!", " !", "!x", "!!x",
    "'s", "'S", "'ll", "'Re", "'ſ", "'x", " 's", "x's", "x's's's", "x'sX", "x'll's", "1's", "!'s",
    "''s", "'s\n", "don't", "DON'T", "'", "x'", "x'r", "x'l", "x'v x", " ", "  ", "   x", "  !",
    " \n", "\n ", "\n  x", "\r\n", "\n\n \n", " \r\n \r\n  x", "x\n\n  \n\t", "\t", "\tx",
    "\t\tx", "\xa0", "\xa0x", " \xa0", "\xa0 ", "\u3000\u3000x", " \u3000\n\u3000", "!\n",
    "!\r\n\n x", "!\n/", "!\n//x", "!/\n/", "/", "/x", "//\n", " /\n", "!\n \n", "é", "É", "éÉ",
    "Éé", "中", "中中", "中X", "中Xx", "x中X", "中'sX", "ªA", "ǅx", "xǅ", "день ДеньНочь",
    "\u0301", "x\u0301X", "!\u0301", "!!\u0301x", " \u0301", "1\u0301", "\n\u0301", " !\u0301",
    "हिन्दी", "٣", "٣٤٥٦", "12٣٤5", "½½½½", "\U0001d7ce" * 5, "。", "。中", "。。中", "！\n",
    "😀", "😀x", " 😀", "x😀😀x", "\x00", "\x1c", "\x85", "\u2028", "\u200b", "\ufeff", "\x7fx",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def variant_kept():
    """The others of the session are tested with the variant that it has."""
    before = SCANNERS.VARIANT
    yield
    use_variant(before)


def compare(document, pattern):
    expected = reference.split(document, pattern)
    for name in VARIANTS:
        use_variant(name)
        assert fast.split(document, pattern) == expected, name


# Texts for the edges of blocks

FILLERS = [
    "a",
    " ",
    "a b",
    "\n",
    "1",
    "!",
    "中",
    "é",
    "न",
    "A",
    "aB",
    "x ",
    ".\n",
    " \n",
    "'s",
    "it's ",
]
WIDE = st.builds(
    lambda filler, length, text: (filler * length)[:length] + text,
    st.sampled_from(FILLERS),
    st.integers(0, 2 * BLOCK),
    CROSSING,
)
LONG = st.lists(st.sampled_from(PARTS + FRAGMENTS + FILLERS), max_size=60).map("".join)
ASCII = st.lists(
    st.sampled_from(
        [part for part in [*PARTS, *FRAGMENTS, *FILLERS] if part.isascii()] + [" ", " x"]
    ),
    max_size=80,
).map("".join)
TEXTS = st.one_of(WIDE, LONG, ASCII, st.lists(WIDE | CROSSING, max_size=4).map("".join))


@pytest.mark.core
@pytest.mark.parametrize("pattern", NAMES)
@given(text=TEXTS)
def test_texts(pattern, text):
    compare(text, pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k"])
@given(parts=st.lists(TEXTS.map(str.encode) | st.sampled_from(BROKEN) | st.binary(max_size=3)))
def test_bytes(pattern, parts):
    """Texts with bytes between them that are no UTF-8, and characters cut short."""
    data = b"".join(parts)
    compare(data, pattern)
    compare(data[:-1], pattern)


@pytest.mark.parametrize("pattern", BLOCK_NAMES)
@pytest.mark.parametrize("filler", ["a", "ab "])
def test_every_offset(filler, pattern):
    """Each fragment at each place of a block, at the end of the text and with more behind it."""
    for fragment in FRAGMENTS:
        for offset in range(BLOCK + 3):
            before = (filler * BLOCK)[:offset]
            compare(before + fragment + ["", "more", " more"][offset // 3 % 3], pattern)


@pytest.mark.core
@pytest.mark.parametrize("pattern", BLOCK_NAMES)
def test_every_size(pattern):
    """A text, and what is left of it, may end anywhere in a block."""
    text = "".join(fragment + "ab " for fragment in FRAGMENTS)
    for size in OFFSETS:
        for start in (0, 100, 300, 500):
            compare(text[start : start + size], pattern)
            compare(text.encode()[start : start + size], pattern)


# Each number of bytes that a lead may ask for, with the first and last second bytes.
ODD_BYTES = [
    *BROKEN,
    *[bytes([lead, second, *tail])
      for lead in [*range(0x7F, 0x81), 0xBF, *range(0xC0, 0xC4), *range(0xDE, 0x100)]
      for second in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
      for tail in (b"", b"\x80", b"\x80\xbf")],
]  # fmt: skip


@pytest.mark.core
def test_odd_bytes():
    for odd in ODD_BYTES:
        compare(b"ab \xc3\xa9" * 7 + odd + b" cd" * 24, "gpt2")


@pytest.mark.parametrize("odd", BROKEN)
def test_odd_bytes_at_every_offset(odd):
    for offset in range(BLOCK + 3):
        compare(b"." * offset + odd + "中é𝟎".encode() * 12, "gpt2")


@pytest.mark.parametrize("pattern", BLOCK_NAMES)
def test_chunks(pattern):
    """Pieces are found 512 at a time; a block has up to 63 ends."""
    for unit in ["a b", " !a", "1", "x y\n", "it's ", "中。", "aB"]:
        for pieces in [*range(440, 530, 3), 1100]:
            compare(unit * pieces, pattern)


# Long runs


@pytest.mark.parametrize("pattern", BLOCK_NAMES)
@pytest.mark.parametrize(
    "unit",
    [" ", "\n", " \n", "\r\n", "a", "A", "aA", "1", "!", "'", "'s", "/", "中", "\u3000", "\u0301"],
)
def test_long_runs(unit, pattern):
    """Four times as much takes four times as long; what looks ahead without end, sixteen times."""
    # Of the quarter, too, the system gives the memory anew, which it does from 128 KB on.
    text = unit * (800_000 // len(unit.encode()))
    quarter = text[: len(text) // 4]
    for name in VARIANTS:
        use_variant(name)
        if not build.facts()["sanitizer"]:  # which takes its own time for large memory
            assert growth(lambda text: fast.split(text, pattern), quarter, text, 10) < 10, name
        assert b"".join(fast.split(text, pattern)) == text.encode()
    compare(text[:3000], pattern)


@pytest.mark.parametrize("pattern", NAMES)
@pytest.mark.parametrize("name", ["en", "c", "py", "de", "ru", "hi", "ja", "zh"])
def test_real_text(name, pattern, data):
    """Of the whole of these, 105 MB, the same was seen once."""
    with open(data / "corpora" / f"{name}.txt", "rb") as file:
        file.seek(1_000_000)
        compare(file.read(40_000), pattern)


# Which one is used


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


SHOW = "from tokbpe.fast.split import VARIANT; print(VARIANT)"


@pytest.mark.parametrize("name", [*VARIANTS, ""])
def test_forced(name):
    done = run(SHOW, TOKBPE_SIMD=name)
    assert (done.stdout.strip(), done.stderr) == (name or VARIANTS[0], "")


def test_an_unknown_variant():
    done = run(SHOW, TOKBPE_SIMD="neon")
    allowed = ", ".join(map(repr, VARIANTS))
    assert done.returncode == 1
    assert (
        f"ValueError: TOKBPE_SIMD on this machine must be one of {allowed}, not 'neon'"
        in done.stderr
    )


def test_a_variant_is_chosen():
    assert VARIANTS[-2:] == ("scalar", "exact")
    for name in VARIANTS:
        use_variant(name)
        assert name == SCANNERS.VARIANT
    with pytest.raises(
        ValueError, match="TOKBPE_SIMD on this machine must be one of .*'exact', not 'sse'"
    ):
        use_variant("sse")
    assert SCANNERS.VARIANT == "exact"


# Reading

# Texts of each size stand before a page that cannot be read, and behind one.
GUARDED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "scan_variants.h"

#define PAGE 4096

static const char *const UNITS[] = {"It's a test. ", "ab  \n", "ä¸­ã", "1aÃ© "};

static void fill_classes(void)
{
    memset(tokbpe_classes, TOKBPE_LETTER | TOKBPE_UPPER | TOKBPE_LOWER, sizeof tokbpe_classes);
    memset(tokbpe_classes, TOKBPE_OTHER, 0x80);
    memset(tokbpe_classes + '0', TOKBPE_NUMBER, 10);
    memset(tokbpe_classes + 'A', TOKBPE_LETTER | TOKBPE_UPPER, 26);
    memset(tokbpe_classes + 'a', TOKBPE_LETTER | TOKBPE_LOWER, 26);
    tokbpe_classes[' '] = TOKBPE_SPACE;
    tokbpe_classes['\n'] = TOKBPE_SPACE | TOKBPE_NEWLINE;
}

int main(void)
{
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *end = pages + 2 * PAGE;
    size_t found = 0;
    if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE))
        return 2;
    fill_classes();
    tokbpe_fill_spread();
    for (int unit = 0; unit < 4; unit++)
        for (size_t size = 1; size < 200; size++)
            for (int variant = 0; variant <= TOKBPE_BY_WORDS; variant++)
                for (int pattern = TOKBPE_GPT2; pattern <= TOKBPE_O200K; pattern++) {
                    const char *text = UNITS[unit];
                    size_t length = strlen(text), whole = size / length * length;
                    tokbpe_scan scan = tokbpe_scan_by(variant);
                    size_t *ends;
                    if (scan == NULL || whole == 0)
                        continue;
                    for (size_t i = 0; i < whole; i++)
                        end[i - whole] = (uint8_t)text[i % length];
                    ends = malloc(whole * sizeof(size_t));
                    found += scan(pattern, end - whole, 0, whole, ends, whole);
                    free(ends);
                }
    printf("%d\n", found > 0);
    return 0;
}
"""


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which(COMPILER) is None or not HEADERS.is_dir(),
    reason="needs Linux, a C compiler and the headers",
)
def test_nothing_behind_the_text_is_read(tmp_path):
    source, program = tmp_path / "guarded.c", tmp_path / "guarded"
    source.write_text(GUARDED)
    subprocess.run([COMPILER, "-O2", "-I", HEADERS, source, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"1\n")
