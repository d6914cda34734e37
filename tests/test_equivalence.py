"""Lists of merges and ranks of pieces that give the same ids, on small vocabularies."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tokbpe import engines, equivalence, methods
from tokbpe.vocabulary import Vocabulary

FAST = engines.get("fast")
STRINGS = [bytes(letters) for size in range(9) for letters in product(b"ab", repeat=size)]
PIECES = [text for text in STRINGS if 2 <= len(text) <= 5]
LONGER = st.lists(st.sampled_from(b"ab"), max_size=60).map(bytes)


@pytest.fixture(params=engines.NAMES)
def engine(request):
    return engines.get(request.param)


def ranked(pieces, **options):
    """`a` and `b` with the ids 0 and 1, pieces from 2 on."""
    return Vocabulary("bpe", (b"a", b"b", *pieces), merge_rule="rank_by_piece", **options)


def listed(merges, pieces, **options):
    """A list of merges over `a`, `b` and pieces, which have the ids from 0 on."""
    entries = (b"a", b"b", *pieces)
    pairs = [(entries.index(left), entries.index(right)) for left, right in merges]
    ids = [entries.index(left + right) for left, right in merges]
    return Vocabulary(
        "bpe",
        entries,
        merges=np.array(pairs, np.uint32).reshape(-1, 2),
        merge_ids=np.array(ids, np.uint32),
        **options,
    )


def encoded(vocabulary, texts, engine=FAST):
    table = engine.encoding_table(*methods.table_parts(vocabulary))
    return [engine.encode(text, table) for text in texts]


# Any pieces in any order, so that a piece may come before what it is made of, or is never made.
PIECE_LISTS = st.lists(st.sampled_from(PIECES), max_size=10, unique=True)


@given(PIECE_LISTS, st.booleans(), st.lists(LONGER, max_size=5))
def test_ranks_as_merges_give_the_same_ids(pieces, lookup, longer):
    vocabulary = ranked(pieces, whole_piece_lookup=lookup)
    found = equivalence.as_merge_list(vocabulary, FAST)
    assert found.merge_rule == "merge_list" and found.whole_piece_lookup is lookup
    texts = [*STRINGS, *longer]
    assert encoded(found, texts) == encoded(vocabulary, texts)


@st.composite
def merge_lists(draw):
    """Merges of all pieces but some, by one cut or several, mostly with rising ids."""
    pieces = draw(PIECE_LISTS)
    known = {b"a", b"b", *pieces}
    merges = []
    for piece in pieces:
        cuts = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        cuts = [(left, right) for left, right in cuts if left in known and right in known]
        if cuts:
            merges += draw(st.lists(st.sampled_from(cuts), max_size=2, unique=True))
    if draw(st.integers(0, 4)) == 0:
        merges = draw(st.permutations(merges))
    return listed(merges, pieces, whole_piece_lookup=draw(st.booleans()))


@given(merge_lists(), st.lists(LONGER, max_size=5))
def test_merges_as_ranks_give_the_same_ids_or_are_refused(vocabulary, longer):
    try:
        pieces = equivalence.ranks_of_merges(vocabulary, FAST)
    except ValueError:
        assume(False)
    assert pieces == dict(enumerate(vocabulary.alphabet))
    texts = [*STRINGS, *longer]
    found = ranked(vocabulary.alphabet[2:], whole_piece_lookup=True)
    assert encoded(found, texts) == encoded(vocabulary, texts)


@given(PIECE_LISTS)
def test_there_and_back(pieces):
    vocabulary = ranked(pieces, whole_piece_lookup=True)
    merges = equivalence.as_merge_list(vocabulary, FAST)
    assert equivalence.ranks_of_merges(merges, FAST) == dict(enumerate(vocabulary.alphabet))


@given(st.lists(st.text("ab ", max_size=20), max_size=5), st.sampled_from(["base", "first", "end"]))
def test_what_was_trained_can_be_ranked(corpus, special_ids):
    options = methods.Options(
        minimum_pair_frequency=1, special_tokens=["<e>", "b a"], special_ids=special_ids
    )
    vocabulary = methods.train("bpe", ["ab", *corpus], options)
    pieces = equivalence.ranks_of_merges(vocabulary, FAST)
    assert len(pieces) == 256 + len(vocabulary.merges)
    assert pieces.items() <= dict(vocabulary.items()).items()


def test_the_engines_agree(engine):
    vocabulary = ranked([b"ab", b"bb", b"abb", b"aab", b"babab"], whole_piece_lookup=True)
    merges, merge_ids = equivalence.merges_of_ranks(vocabulary, engine)
    assert merges.tolist() == [[0, 1], [1, 1], [2, 1], [0, 2]]
    assert merge_ids.tolist() == [2, 3, 4, 5]
    assert (merges.dtype, merge_ids.dtype) == (np.uint32, np.uint32)
    listed = equivalence.as_merge_list(vocabulary, engine)
    assert equivalence.as_merge_list(listed, engine) is listed
    assert equivalence.ranks_of_merges(listed, engine) == dict(enumerate(vocabulary.alphabet))


def test_no_pieces(engine):
    vocabulary = ranked([])
    merges, merge_ids = equivalence.merges_of_ranks(vocabulary, engine)
    assert (merges.shape, merge_ids.shape) == ((0, 2), (0,))
    assert equivalence.ranks_of_merges(vocabulary, engine) == {0: b"a", 1: b"b"}


def test_a_part_may_have_the_higher_rank(engine):
    # `ab` comes after `abb`, which is made of it.
    vocabulary = ranked([b"abb", b"ab"])
    merges, merge_ids = equivalence.merges_of_ranks(vocabulary, engine)
    assert merges.tolist() == [[3, 1], [0, 1]] and merge_ids.tolist() == [2, 3]
    assert encoded(vocabulary, [b"abab"], engine) == [[3, 3]]


# Refused, since ranks would merge what the list does not: each with a text that shows it.
DIFFERENT = [
    # No merge makes `ab`.
    (listed([], [b"ab"]), b"ab", r"no merge joins \[0, 1\] to the piece b'ab', id 2"),
    # `abb` is made of `a` and `bb` alone, but `ab` is merged first.
    (
        listed([(b"a", b"b"), (b"b", b"b"), (b"a", b"bb")], [b"ab", b"bb", b"abb"]),
        b"abb",
        r"no merge joins \[2, 1\] to the piece b'abb', id 4",
    ),
    # The list merges `bb` first, ranks would merge `ab`.
    (
        listed([(b"b", b"b"), (b"a", b"b")], [b"ab", b"bb"]),
        b"abb",
        "merge 0 makes the id 3, the next one the lower id 2",
    ),
    # Only lookup finds `aba`, which this vocabulary does not do.
    (
        listed([], [b"aba"]),
        b"aba",
        r"the piece b'aba', id 2, becomes \[0, 1, 0\] by merging; lookup of whole pieces would",
    ),
]


@pytest.mark.parametrize(("vocabulary", "text", "message"), DIFFERENT)
def test_what_ranks_would_merge_otherwise(vocabulary, text, message, engine):
    with pytest.raises(ValueError, match=message):
        equivalence.ranks_of_merges(vocabulary, engine)
    ranks = ranked(vocabulary.alphabet[2:], whole_piece_lookup=True)
    assert encoded(ranks, [text], engine) != encoded(vocabulary, [text], engine)


def test_two_ids_of_one_piece(engine):
    vocabulary = Vocabulary(
        "bpe",
        (b"a", b"b"),
        merges=np.array([[0, 1], [1, 0], [0, 3], [2, 0]], np.uint32),
    )
    with pytest.raises(ValueError, match="ids 4 and 5 are both b'aba'"):
        equivalence.ranks_of_merges(vocabulary, engine)


def test_special_tokens_are_no_pieces(engine):
    vocabulary = ranked(
        [b"ab", b"<e>", b"aab"],
        special_tokens={"<e>": 3},
        added_tokens={"ab": 2},
        reserved={"BOS": 7},
    )
    assert equivalence.ordinary_pieces(vocabulary) == {0: b"a", 1: b"b", 4: b"aab"}
    assert len(equivalence.as_merge_list(vocabulary, engine).merges) == 0
