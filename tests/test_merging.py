"""Merging a piece by the merge table, in windows and in parts: all must give what plain merging
gives, whatever the vocabulary and the bytes."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import fast, methods, reference
from tokbpe.fast.merge import FEW, WINDOW_SIZE, Merging
from tokbpe.formats import huggingface, tiktoken

pytestmark = pytest.mark.core

BYTES = tuple(bytes([byte]) for byte in range(256))
NOTHING = np.empty((0, 2), np.uint32)
# Characters of each size whose bytes are much alike, and bytes that are no UTF-8.
CHARACTERS = [*"ab é¢中丮串🐈🐉"]
BROKEN = [b"\x80", b"\xa2", b"\xc3", b"\xe4\xb8", b"\xb8\xad", b"\xf0\x9f\x90", b"\xff", b"\xe4a"]
SMALL = [b"a", b"b", b"ab", b"aa"]
LONG_FOR_REFERENCE = 100
LENGTHS = [0, FEW - 1, FEW, FEW + 1, 40, WINDOW_SIZE - 1, WINDOW_SIZE, WINDOW_SIZE + 1, 700]


def pairs(merges):
    return np.array(merges, np.uint32).reshape(-1, 2)


def learned(random, count, units):
    """Pieces that are joined of two that stand before them, and the merges that do it."""
    pieces, merges, known = list(BYTES), [], set(BYTES)
    made = [byte for unit in units for byte in unit]
    for _ in range(count):
        left, right = random.choice(made), random.choice(made)
        piece = pieces[left] + pieces[right]
        if piece not in known and len(piece) < 60:
            known.add(piece)
            made += [len(pieces)] * 3
            pieces.append(piece)
            merges.append((left, right))
    return pieces, merges


def noise(random, units, pieces, length):
    """Bytes of units and of longer pieces."""
    text = b""
    longer = pieces[256:] or units
    while len(text) < length:
        text += random.choice(units if random.random() < 0.7 else longer)
        if random.random() < 0.05:
            text += random.choice(units) * random.randrange(20)
    return text[:length]


def units_of(random):
    units = [character.encode() for character in CHARACTERS]
    return random.choice([SMALL, units, units + BROKEN, random.sample(units, 2), units[4:]])


def both(*arguments):
    """A table that is warm, one that is not, and that of the reference."""
    warm = fast.encoding_table(*arguments)
    warm.warm_up()
    return Merging(warm), Merging(fast.encoding_table(*arguments)), reference_of(*arguments)


def reference_of(*arguments):
    table = reference.encoding_table(*arguments)
    return lambda piece: reference.merge_piece(reference.base_ids(piece, table, 0), table.merges)


def agree(merging, cold, plain, texts, numbered=None):
    if numbered is not None:
        assert merging.packed == numbered
    for text in texts:
        expected = cold.merge(text)
        assert merging.merge(text) == expected
        if len(text) < LONG_FOR_REFERENCE:
            assert plain(text) == expected
        parts = merging.parts(text)
        assert b"".join(parts) == text and all(parts)
        assert [id for part in parts for id in merging.merge(part)] == expected


def texts(random, units, pieces):
    lengths = [random.choice(LENGTHS) + random.randrange(1, 5) for _ in range(4)]
    return [noise(random, units, pieces, length) for length in lengths]


SEEDS = st.integers(0, 2**32)


@given(SEEDS)
def test_pieces_in_the_order_of_their_merges(seed):
    random = Random(seed)
    units = units_of(random)
    pieces, _ = learned(random, random.randrange(60), units)
    found = both(tuple(pieces), NOTHING, None, None, "byte", None, "rank_by_piece")
    agree(*found, texts(random, units, pieces))


@given(SEEDS)
def test_pieces_in_any_order(seed):
    """Pieces that come about out of later ones, never, or in several ways; and gaps."""
    random = Random(seed)
    units = units_of(random)
    pieces, _ = learned(random, random.randrange(40), units)
    later = pieces[256:]
    later += [noise(random, units, [], 3) for _ in range(9)]
    later = [piece for piece in dict.fromkeys(later) if len(piece) > 1]
    random.shuffle(later)
    if random.random() < 0.5:
        later.sort(key=len)
    gaps = [None] * random.randrange(3)
    found = both((*BYTES, *gaps, *later), NOTHING, None, None, "byte", None, "rank_by_piece")
    agree(*found, texts(random, units, [*BYTES, *later]))


@given(SEEDS)
def test_lists_of_merges(seed):
    random = Random(seed)
    units = units_of(random)
    pieces, merges = learned(random, random.randrange(60), units)
    found = both(BYTES, pairs(merges))
    agree(*found, texts(random, units, pieces), numbered=True)


@given(SEEDS)
def test_merges_with_ids_of_their_own(seed):
    """Far ids, ids in any order, several merges with one id, merges of what is made later."""
    random = Random(seed)
    units = units_of(random)
    pieces, merges = learned(random, random.randrange(1, 40), units)
    alphabet = list(BYTES) + [None] * (3 * len(merges))
    places = random.sample(range(256, len(alphabet)), len(merges))
    if random.random() < 0.5:
        places.sort()
    id_of = [*range(256), *places]
    for id, piece in zip(id_of, pieces):
        alphabet[id] = piece
    merges = [(id_of[left], id_of[right]) for left, right in merges]
    ids = id_of[256:]
    number_of = {piece: id for id, piece in zip(id_of, pieces)}
    if random.random() < 0.5:  # all ways to cut some of the pieces
        for piece in pieces[256:]:
            for cut in range(1, len(piece)):
                pair = number_of.get(piece[:cut]), number_of.get(piece[cut:])
                if None not in pair and pair not in merges and random.random() < 0.5:
                    place = random.choice([merges.index(merges[-1]), len(merges)])
                    merges.insert(place, pair)
                    ids.insert(place, number_of[piece])
    if random.random() < 0.2:
        order = random.sample(range(len(merges)), len(merges))
        merges, ids = [merges[i] for i in order], [ids[i] for i in order]
    found = both(tuple(alphabet), pairs(merges), None, np.array(ids, np.uint32))
    agree(*found, texts(random, units, pieces))


@given(SEEDS)
def test_lists_of_all_ways_to_cut(seed):
    """One id for several merges, of which some are never met, or come before their halves."""
    random = Random(seed)
    units = units_of(random)
    pieces, _ = learned(random, random.randrange(1, 40), units)
    later = pieces[256:]
    if random.random() < 0.5:
        random.shuffle(later)
    alphabet = (*BYTES, *later)
    ids = {piece: id for id, piece in enumerate(alphabet)}
    merges = [
        (ids[piece[:cut]], ids[piece[cut:]], ids[piece])
        for piece in later
        for cut in random.sample(range(1, len(piece)), len(piece) - 1)
        if piece[:cut] in ids and piece[cut:] in ids
    ]
    made = np.array([id for _, _, id in merges], np.uint32)
    found = both(alphabet, pairs([merge[:2] for merge in merges]), None, made)
    agree(*found, texts(random, units, [*BYTES, *later]))


def test_ids_beyond_those_of_the_merge_table():
    far = 2**21 + 7
    alphabet = [*BYTES, *[None] * far]
    alphabet[far : far + 2] = b"ab", b"abab"
    ids = np.array([far, far + 1], np.uint32)
    found = both(tuple(alphabet), pairs([(97, 98), (far, far)]), None, ids)
    agree(*found, [b"abababa", b"ab" * 300], numbered=True)


def test_a_chain_longer_than_a_window():
    """Whether two letters merge is told by what stands far behind them."""
    letters = BYTES[:250] * 3
    merges = [(left, left + 1) for left in reversed(range(249))] + [(0, 0), (249, 0)]
    found = both(BYTES, pairs(merges))
    text = b"".join(letters)
    agree(*found, [text, text[1:], text[:-1], text[:600] * 4, text[7:] + text], numbered=True)


def test_tokens_longer_than_a_window():
    pieces, merges = list(BYTES), []
    for _ in range(11):
        last = merges and len(pieces) - 1 or 97
        merges.append((last, last))
        pieces.append(pieces[last] * 2)
    found = both(BYTES, pairs(merges))
    agree(*found, [b"a" * size for size in (300, 2047, 2048, 5001)] + [b"ba" * 400], numbered=True)


def test_tokens_longer_than_any_text():
    merges = [(97, 97), *[(id, id) for id in range(256, 296)]]
    agree(*both(BYTES, pairs(merges)), [b"a" * 1000, b"ba" * 200], numbered=True)


def test_a_byte_that_the_alphabet_lacks():
    found, *_ = both((*BYTES[:98], b"aa"), NOTHING, None, None, "byte", None, "rank_by_piece")
    for size in (1, FEW, WINDOW_SIZE, 1000):
        with pytest.raises(ValueError, match="0x62"):
            found.merge(b"a" * (size - 1) + b"b")


def test_a_symbol_for_several_bytes_is_never_cut():
    table = both(BYTES[:98], pairs([(97, 0)]), None, None, "byte", 97)
    agree(*table, [b"xa\0b", b"a\0" * 20])


@pytest.mark.long
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "r50k_base", "qwen3"])
def test_real_vocabularies(data, name):
    """Parts of unspaced text are short, and nothing is changed by them."""
    if name == "qwen3":
        vocabulary = huggingface.load(data / "vocab" / "qwen3.tokenizer.json")
    else:
        vocabulary = tiktoken.load(data / "vocab" / f"{name}.tiktoken", engine=fast)
    arguments = methods.table_parts(vocabulary)
    warm = fast.encoding_table(*arguments)
    cold = Merging(fast.encoding_table(*arguments))
    warm.warm_up()
    merging = Merging(warm)
    assert merging.packed and not cold.packed
    for language in ("ja", "zh", "hi", "ru", "en", "c"):
        text = (data / "corpora" / f"{language}.txt").read_bytes()[:30_000]
        count = 0
        for piece in [text, *text.split()]:
            ids = cold.merge(piece)
            assert merging.merge(piece) == ids
            parts = merging.parts(piece)
            assert [id for part in parts for id in merging.merge(part)] == ids
            count += len(parts)
        if language in ("ja", "zh"):
            assert count > len(text) // 8
    for seed in range(20):
        text = Random(seed).randbytes(2000)
        assert merging.merge(text) == cold.merge(text)
        ids = [id for part in merging.parts(text) for id in merging.merge(part)]
        assert ids == cold.merge(text)
