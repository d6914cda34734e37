"""The word cache of encoding: what it remembers must be what merging gives, whatever happens to it.

The reference is too slow for what it takes to fill one, so that merging each piece, which is held
against the reference elsewhere, is the judge here: a table does so until it is warm.
"""

import threading
from itertools import product
from random import Random

import numpy as np
import pytest

from tokbpe import fast, reference
from tokbpe.fast.encode import CHUNK_SIZE, WARM_TEXT_SIZE

pytestmark = pytest.mark.core

BYTES = tuple(bytes([byte]) for byte in range(256))
PIECES = (*BYTES, *(b"".join(pair) for pair in product([b"a", b"b", b" "], repeat=2)), b"abab")
TOO_FEW = 30_000_000  # bytes: a cache of 2**19 words, of which none can grow


def table(pattern="gpt2", warm=False):
    """Pieces of few letters: most words become several ids."""
    nothing = np.empty((0, 2), np.uint32)
    found = fast.encoding_table(PIECES, nothing, pattern, None, "byte", None, "rank_by_piece", True)
    if warm:
        found.warm_up()
    return found


def merged(words):
    """The ids of words by merging each."""
    ids, size, cold = [], 0, table()
    for word in words:
        size += len(word)
        if size >= WARM_TEXT_SIZE:
            cold, size = table(), len(word)
        ids += fast.encode(word, cold)
    return ids


def words(count, least, most, letters=b"abcdefgh", seed=0):
    random = Random(seed)
    return [
        b" " + bytes(random.choices(letters, k=random.randint(least, most))) for _ in range(count)
    ]


@pytest.mark.parametrize("size", [*range(1, 20), *range(60, 70)])
def test_words_of_each_size(size):
    """Up to 15 bytes a word is its own key; up to 64 it is remembered."""
    found = words(40, size, size, b"ab", size) + words(40, size, size, b"abc", size)
    warm = table(warm=True)
    for _ in range(2):
        assert fast.encode(b"".join(found), warm) == merged(found)
        for word in found:
            assert fast.encode(word, warm) == merged([word])


@pytest.mark.parametrize("letters", [*range(1, 12), *range(29, 36)])
def test_words_that_are_not_ascii(letters):
    """Those of scripts with spaces are remembered whole like others, up to 64 bytes."""
    random = Random(letters)
    found = [" " + "".join(random.choices("абв", k=letters)) for _ in range(60)]
    warm = table(warm=True)
    for _ in range(2):
        text = "".join(found)
        assert fast.encode(text, warm) == merged([text.encode()])


@pytest.mark.parametrize("count", [1, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE])
def test_chunks(count):
    found = words(count, 1, 17)
    warm = table(warm=True)
    for _ in range(2):
        assert fast.encode(b"".join(found), warm) == merged(found)
        assert fast.count(b"".join(found), warm) == len(merged(found))


def test_a_word_at_the_very_end():
    """Its key is not read beyond the text, wherever that ends."""
    warm = table(warm=True)
    found = words(30, 1, 9)
    for size in range(140):
        for text in (b"ab" * size, b"".join(found)[:size], "né 日本 ".encode()[: size % 10] * 9):
            assert fast.encode(text, warm) == fast.encode(text, table())


def test_pieces_without_spaces():
    """They are taken apart, and a part is not looked up as if it were a piece."""
    parts = ["日本", "語", "ab", "é", "नम", "स्ते", "中"]
    whole = tuple("".join(pair).encode() for pair in product(parts, repeat=2))
    vocabulary = tuple(
        dict.fromkeys([*PIECES, *[part.encode() for part in parts[:4]], *whole[:40]])
    )
    random = Random(3)
    texts = ["".join(random.choices(parts, k=random.randint(1, 40))) for _ in range(300)]
    for lookup in (False, True):
        options = ("cl100k", None, "byte", None, "rank_by_piece", lookup)
        warm = fast.encoding_table(vocabulary, np.empty((0, 2), np.uint32), *options)
        warm.warm_up()
        slow = reference.encoding_table(vocabulary, [], *options)
        for text in [*texts, "。".join(texts), "".join(texts[:9]) + "\n"]:
            assert fast.encode(text, warm) == reference.encode(text, slow)


def test_long_pieces_that_are_taken_whole():
    """Merging does not make them, so that they have to be found in the vocabulary."""
    long = ["日本語" * 3, "日" * 6, "नम" * 3, "中" * 30]
    vocabulary = (*BYTES, *[piece.encode() for piece in long])
    nothing = np.empty((0, 2), np.uint32)
    options = ("cl100k", None, "byte", None, "rank_by_piece", True)
    warm = fast.encoding_table(vocabulary, nothing, *options)
    warm.warm_up()
    for number, piece in enumerate(long):
        assert fast.encode(f"{piece}\n{piece}\n", warm) == [256 + number, 10] * 2
        other = piece[:-1] + "文"
        assert fast.encode(other, warm) == list(other.encode())


@pytest.mark.long
@pytest.mark.parametrize("seeded", [False, True])
def test_a_cache_that_begins_with_the_vocabulary(seeded):
    """Pieces of it that are wiped, and words that it lacks, give what they gave before."""
    size = 600_000 if seeded else 100_000
    found = words(size // 8, 3, 9, b"ab")
    warm = table(warm=True)
    warm.cache_limit = TOO_FEW
    for part in (found, found[:100], words(430_000, 6, 6), found):
        assert fast.encode(b"".join(part), warm) == merged(part)


def test_a_cache_that_grows():
    found = words(30_000, 3, 9)
    warm = table(warm=True)
    for part in (found, found[:100], found):
        assert fast.encode(b"".join(part), warm) == merged(part)


@pytest.mark.long
@pytest.mark.parametrize("limit", [TOO_FEW, 64_000_000])
def test_more_words_than_a_large_cache_holds(limit):
    """And more ids. It grows, or is wiped; what comes back later is right as well."""
    for found in (words(420_000, 6, 6), words(100_000, 14, 14, b"cdefgh")):
        warm = table(warm=True)
        warm.cache_limit = limit
        fast.encode(b"".join(found), warm)
        assert TOO_FEW / 2 < warm.cache_size <= limit
        assert (warm.cache_size > TOO_FEW) == (limit > TOO_FEW)
        for part in (found[:1000], found[-1000:]):
            assert fast.encode(b"".join(part), warm) == merged(part)


def test_ids_above_those_that_are_kept():
    alphabet = (*BYTES, *[None] * 300_000, b"aa", b"ab")
    nothing = np.empty((0, 2), np.uint32)
    large = fast.encoding_table(alphabet, nothing, "gpt2", None, "byte", None, "rank_by_piece")
    assert fast.encode("aaab" * 10_000, large) == [300_256, 300_257] * 10_000


def test_an_absent_byte_is_told_at_its_place():
    alphabet = tuple(byte if byte != b"x" else None for byte in BYTES)
    found = fast.encoding_table(alphabet, np.empty((0, 2), np.uint32), "gpt2")
    found.warm_up()
    text = b" ab" * 1000
    for _ in range(2):
        with pytest.raises(ValueError, match="byte 0x78 at byte position 3001 is not"):
            fast.encode(text + b" x" + text, found)
        assert len(fast.encode(text, found)) == 3000


def test_threads_have_caches_of_their_own():
    warm = table()
    found = [words(20_000, 1, 12, seed=seed) for seed in range(4)]
    expected = [merged(part) for part in found]
    results = [None] * 8

    def work(number):
        results[number] = fast.encode(b"".join(found[number % 4]), warm)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == expected * 2
