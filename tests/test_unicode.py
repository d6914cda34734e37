"""The Unicode 16.0 table, its generator, and what is computed from it."""

import re
from itertools import chain
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbpe import unicode, unicode_generate
from tokbpe.unicode import complement, intersection, merged, ranges

pytestmark = pytest.mark.core

CATEGORIES = [name for name in unicode.NAMES if len(name) == 2]


def size(pairs):
    return sum(last - first + 1 for first, last in pairs)


def holds(name, code):
    return any(first <= code <= last for first, last in ranges(name))


# Classes


@pytest.mark.parametrize(
    ("name", "count"), [("L", 141_028), ("N", 1_911), ("White_Space", 25), ("Cs", 2_048)]
)
def test_counts_of_unicode_16(name, count):
    assert unicode.VERSION == "16.0.0"
    assert size(ranges(name)) == count


def test_categories_tile_all_code_points():
    pairs = sorted(chain.from_iterable(map(ranges, CATEGORIES)))
    firsts = [first for first, _ in pairs]
    assert firsts == [0] + [last + 1 for _, last in pairs[:-1]]
    assert pairs[-1][1] == 0x10FFFF
    assert len(CATEGORIES) == 30


@pytest.mark.parametrize("name", unicode.NAMES)
def test_ranges_are_rising_and_merged(name):
    pairs = ranges(name)
    assert all(first <= last for first, last in pairs)
    assert all(last + 1 < first for (_, last), (first, _) in zip(pairs, pairs[1:]))


@pytest.mark.parametrize("group", "CLMNPSZ")
def test_a_group_is_the_union_of_its_categories(group):
    categories = [name for name in CATEGORIES if name[0] == group]
    assert ranges(group) == merged(chain.from_iterable(map(ranges, categories)))


@pytest.mark.parametrize("code", [0x09, 0x0D, 0x20, 0x85, 0xA0, 0x2028, 0x2029, 0x3000])
def test_white_space(code):
    assert holds("White_Space", code)


@pytest.mark.parametrize("code", [0x1C, 0x1D, 0x1E, 0x1F, 0x180E, 0x200B, 0xFEFF])
def test_what_looks_like_white_space_and_is_none(code):
    assert not holds("White_Space", code)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (ord("½"), "No"),
        (ord("Ⅷ"), "Nl"),
        (0x663, "Nd"),  # an Arabic digit
        (0x1C5, "Lt"),
        (0x2B0, "Lm"),
        (0x301, "Mn"),
        (0x295, "Ll"),  # Lo from Unicode 17 on
        (0x1C89, "Lu"),  # new in Unicode 16
        (0x88F, "Cn"),  # new in Unicode 17
        (0xD800, "Cs"),
    ],
)
def test_categories_of_single_code_points(code, name):
    assert [category for category in CATEGORIES if holds(category, code)] == [name]


def test_numbers_are_not_what_isnumeric_says():
    assert "一".isnumeric()
    assert not holds("N", ord("一"))


@pytest.mark.parametrize("name", ["Han", "lu", "", "L&", "Nd "])
def test_an_unknown_class_is_refused_with_the_list(name):
    with pytest.raises(ValueError, match=re.escape(repr(name))) as caught:
        ranges(name)
    assert all(repr(known) in str(caught.value) for known in unicode.NAMES)


@pytest.mark.parametrize("name", [None, 3, b"L", ["L"]])
def test_a_class_is_named_by_a_str(name):
    with pytest.raises(TypeError, match="the Unicode class must be one of"):
        ranges(name)


# The generator


def test_the_table_is_that_of_unicodedata2():
    unicodedata2 = pytest.importorskip("unicodedata2")
    assert unicodedata2.unidata_version == "16.0.0"
    for name in CATEGORIES:
        for first, last in ranges(name):
            assert {unicodedata2.category(chr(code)) for code in range(first, last + 1)} == {name}


def test_the_generator_writes_the_table_that_is_checked_in(tmp_path, monkeypatch):
    pytest.importorskip("unicodedata2")
    checked_in = unicode_generate.TABLE.read_bytes()
    monkeypatch.setattr(unicode_generate, "TABLE", tmp_path / "table.py")
    unicode_generate.main()
    assert (tmp_path / "table.py").read_bytes() == checked_in


@pytest.mark.parametrize("version", ["15.1.0", "17.0.0"])
def test_the_generator_refuses_another_unicode(version):
    other = SimpleNamespace(__name__="other", unidata_version=version)
    with pytest.raises(ValueError, match=f"other carries {version}; .*unicodedata2==16.0.0"):
        unicode_generate.table_text(other)


# Sets of ranges

small_sets = st.frozensets(st.integers(0, 30))


def as_ranges(codes):
    return merged((code, code) for code in codes)


def as_set(pairs):
    return {code for first, last in pairs for code in range(first, min(last, 30) + 1)}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5))))
def test_merged_ranges_hold_the_same(starts_and_lengths):
    pairs = [(start, start + length) for start, length in starts_and_lengths]
    codes = {code for first, last in pairs for code in range(first, last + 1)}
    result = merged(pairs)
    assert [code for first, last in result for code in range(first, last + 1)] == sorted(codes)
    assert all(last + 1 < first for (_, last), (first, _) in zip(result, result[1:]))


@given(small_sets, small_sets)
def test_sets_of_ranges_behave_as_sets(one, other):
    assert as_set(complement(as_ranges(one))) == set(range(31)) - one
    assert complement(complement(as_ranges(one))) == as_ranges(one)
    assert intersection(as_ranges(one), as_ranges(other)) == as_ranges(one & other)


def test_nothing_and_everything():
    assert merged([]) == ()
    assert complement(()) == ((0, 0x10FFFF),)
    assert complement(((0, 0x10FFFF),)) == ()


# Case


@pytest.mark.parametrize(
    ("char", "variants"),
    [("a", "Aa"), ("Z", "Zz"), ("i", "Ii"), ("I", "Ii")]
    + [(char, "Ss\u017f") for char in "sS\u017f"]
    + [(char, "Kk\u212a") for char in "kK\u212a"],
)
def test_case_variants(char, variants):
    assert unicode.case_variants(char) == variants


def test_case_variants_are_those_of_case_folding():
    variants = {letter: set() for letter in "abcdefghijklmnopqrstuvwxyz"}
    for char in map(chr, range(0x110000)):
        folded = char.casefold()
        if folded in variants:
            variants[folded].add(char)
    for letter, expected in variants.items():
        assert set(unicode.case_variants(letter)) == expected


@pytest.mark.parametrize("char", ["1", "_", "é", "İ", "ı", "", "ab"])
def test_case_variants_of_other_characters_are_unknown(char):
    with pytest.raises(ValueError, match=re.escape(repr(char))):
        unicode.case_variants(char)
