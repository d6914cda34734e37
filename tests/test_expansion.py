"""Regular expressions with the classes of Unicode 16.0, rewritten for Python's `re`."""

import re
import sys
import warnings
from bisect import bisect_left, bisect_right

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokbpe import expansion, unicode
from tokbpe.expansion import compiled

EVERYTHING = "".join(map(chr, range(0x110000)))
ASCII = EVERYTHING[:128]
# Where classes begin and end, in order.
BORDERS = sorted({code for name in unicode.NAMES for pair in unicode.ranges(name) for code in pair})
BORDER_CHARACTERS = "".join(map(chr, BORDERS))


def matched(source, text=BORDER_CHARACTERS):
    """The characters that a pattern for one character matches."""
    return "".join(compiled(f"(?:{source})+").findall(text))


def members(*names):
    """The characters of some classes."""
    codes = set()
    for first, last in (pair for name in names for pair in unicode.ranges(name)):
        codes.update(BORDERS[bisect_left(BORDERS, first) : bisect_right(BORDERS, last)])
    return "".join(map(chr, sorted(codes)))


def without(chars, text=BORDER_CHARACTERS):
    others = set(chars)
    return "".join(char for char in text if char not in others)


# Classes


@pytest.mark.parametrize("name", unicode.NAMES)
def test_every_class_of_the_table(name):
    assert matched(rf"\p{{{name}}}") == matched(rf"[\p{{{name}}}]") == members(name)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (r"\pL", ["L"]),
        (r"\P{^L}", ["L"]),
        (r"[^\P{L}]", ["L"]),
        (r"\s", ["White_Space"]),
        (r"[\s]", ["White_Space"]),
        (r"[^\S]", ["White_Space"]),
        (r"\d", ["Nd"]),
        (r"[^\D]", ["Nd"]),
        (r"[\pL\p{Nd}]", ["L", "Nd"]),
        (r"[\s\p{P}\p{S}]", ["White_Space", "P", "S"]),
    ],
)
def test_classes(source, names):
    assert matched(source) == members(*names)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (r"\P{L}", ["L"]),
        (r"\PL", ["L"]),
        (r"\p{^L}", ["L"]),
        (r"[\P{L}]", ["L"]),
        (r"[^\pL]", ["L"]),
        (r"\S", ["White_Space"]),
        (r"[^\s]", ["White_Space"]),
        (r"\D", ["Nd"]),
        (r"[^\s\p{L}\p{N}]", ["White_Space", "L", "N"]),
    ],
)
def test_complements(source, names):
    assert matched(source) == without(members(*names))


def test_everything_and_nothing():
    assert matched(r"[\s\S]") == matched(r"[\pL\PL]") == BORDER_CHARACTERS
    assert matched(r"[^\s\S]") == ""


def test_words_are_made_of_letters_marks_digits_and_connectors():
    word = matched(r"\w")
    assert matched(r"[\w]") == matched(r"[^\W]") == word
    assert matched(r"\W") == without(word)
    assert set(word) > set(members("L", "M", "Nd", "Nl", "Pc"))


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0x200C, 0x200D),
        (0x24B6, 0x24E9),
        (0x1F130, 0x1F149),
        (0x1F150, 0x1F169),
        (0x1F170, 0x1F189),
    ],
)
def test_what_else_words_are_made_of(first, last):
    text = EVERYTHING[first - 1 : last + 2]
    assert matched(r"\w", text) == text[1:-1]


def test_words_are_those_of_the_regex_library():
    regex = pytest.importorskip("regex")
    unassigned = {code for first, last in unicode.ranges("Cn") for code in range(first, last + 1)}
    assigned = "".join(char for code, char in enumerate(EVERYTHING) if code not in unassigned)
    assert matched(r"\w", assigned) == "".join(regex.findall(r"\w", assigned))


IN_WORDS = "aZ9_é\u0301\u093e\u200dⒶ"


@pytest.mark.parametrize("edge", [r"\b", r"\B"])
@given(st.text(IN_WORDS + " \n.-½²"))
def test_edges_of_words(edge, text):
    inside = [False] + [char in IN_WORDS for char in text] + [False]
    expected = [
        place
        for place in range(len(text) + 1)
        if (inside[place] != inside[place + 1]) == (edge == r"\b")
    ]
    assert [match.start() for match in compiled(edge).finditer(text)] == expected


@pytest.mark.parametrize("source", [r"a\Z", r"a\z"])
def test_the_very_end(source):
    assert compiled(source).findall("a\na") == ["a"]
    assert not compiled(source).search("a\n")


# All else means what it means to `re`


@pytest.mark.parametrize("char", ASCII + "é€🐈\ud800")
def test_a_character_in_a_set_is_itself(char):
    text = ASCII + "é€🐈\ud800"
    escaped = re.escape(char)
    code = ord(char)
    assert matched(f"[{escaped}]", text) == char
    assert matched(f"[^{escaped}]", text) == text.replace(char, "")
    assert matched(f"[{escaped}-{escaped}]", text) == char
    assert matched(f"\\U{code:08x}", text) == matched(f"[\\U{code:08x}]", text) == char


@pytest.mark.parametrize(
    ("source", "chars"),
    [
        (r"[]a]", "]a"),
        (r"[^]a]", without("]a", ASCII)),
        (r"[a-]", "-a"),
        (r"[-a]", "-a"),
        (r"[a-c-]", "-abc"),
        (r"[--/]", "-./"),
        (r"[a^]", "^a"),
        (r"[a\]]", "]a"),
        (r"[\-\^]", "-^"),
        (r"[\b\a\f\n\r\t\v]", "\a\b\t\n\v\f\r"),
        (r"[\0\1\12\101]", "\0\1\nA"),
        (r"[\x41-\u0043]", "ABC"),
        (r"\x41|\u0042|\U00000043|\101|\0", "\0ABC"),
        (r"\.|\[|\/", "./["),
        (r".", without("\n", ASCII)),
        (r"(?s).", ASCII),
        (r"(?s:.)", ASCII),
        (r"(?s)(?-s:.)", without("\n", ASCII)),
    ],
)
def test_characters_and_sets(source, chars):
    found = [char for char in ASCII if compiled(source).fullmatch(char)]
    assert sorted(found) == sorted(chars)


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        (r"(?m)^a$", "a\na", ["a", "a"]),
        (r"(?m:^)a", "a\na", ["a", "a"]),
        (r"(?ms)^.+", "a\na", ["a\na"]),
        (r"(a)\1", "aaa", ["a"]),
        (r"(?P<x>a)(?P=x)", "aaa", ["a"]),
        (r"(a)?(?(1)b|c)", "abcb", ["a", ""]),
        (r"(?P<x>a)?(?(x)b|c)", "abc", ["a", ""]),
        (r"a(?# letters )*b", "aab", ["aab"]),
        (r"(?<=a)b|(?<!a)c|d(?=e)|f(?!g)", "abacbcdedffgf", ["b", "c", "d", "f", "f"]),
        (r"a{2}|b{1,2}|c{,2}d|e{2,}", "aabbbccdeee", ["aa", "bb", "b", "ccd", "eee"]),
        (r"a+?|b*?c|d??e", "aabbcde", ["a", "a", "bbc", "de"]),
        (r"x{|y{,z}", "x{y{,z}", ["x{", "y{,z}"]),
    ],
)
def test_groups_and_quantifiers(source, text, found):
    assert compiled(source).findall(text) == found


FRAGMENTS = [
    *"aKk1_ -^$.|[]()*+?{},:=!<>#&~\n\\",
    *(r"\d", r"\w", r"\s", r"\W", r"\n", r"\A", r"\]", r"\x41", r"\1", r"\12", r"\101"),
    *("[^", "[a-c]", "&&", "{2}", "{,2}", "(?i)", "(?m)", "(?=", "(?!", "(?<="),
    *("(?:", "(?i:", "(?-i:", "(?s-i:", "(?P<n>", "(?P=n)", "(?(1)"),
]


@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=8).map("".join),
    st.text("aAbBcCkK1_ -^]&\n", max_size=12),
)
@example("[a--b]", "a")
@example("(?i)a(?-i:b)", "ABAb")
def test_on_ascii_text_all_is_as_for_re(source, text):
    try:
        regex = compiled(source)
    except ValueError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = re.compile(source)
    assert regex.groups == expected.groups
    found = [(match.span(), match.groups()) for match in regex.finditer(text)]
    assert found == [(match.span(), match.groups()) for match in expected.finditer(text)]


@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=5).map("".join))
def test_what_re_accepts_is_refused_for_a_reason(source):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            re.compile(source)
        except (re.error, Warning):
            return
    try:
        compiled(source)
    except ValueError as error:
        assert re.search("with case ignored|a set inside a set", str(error))


# Case

SAMPLE = ASCII + "Éé\u0130\u0131\u017f\u212aⅧⅷⒶⓐ中½"


@pytest.mark.parametrize(
    ("source", "chars"),
    [
        ("(?i)s", "Ss\u017f"),
        ("(?i)\u017f", "Ss\u017f"),
        ("(?i:K)", "Kk\u212a"),
        (r"(?i:\x4b)", "Kk\u212a"),
        (r"(?i:\113)", "Kk\u212a"),
        (r"(?i:[\u212a])", "Kk\u212a"),
        ("(?i:i)", "Ii"),
        ("(?i:[ij])", "IJij"),
        ("(?i:[r-t_1])", "1RST_rst\u017f"),
        ("(?i:[Z-a])", "AZ[\\]^_`az"),
        (r"(?i:\.|%|中)", ".%中"),
        (r"(?i:\d)", "0123456789"),
        (r"(?i:[\s_])", "\t\n\v\f\r _"),
        (r"(?i:\p{Nl}|\p{So})", "ⅧⅷⒶⓐ"),
        (r"(?i:\p{Lo})", "中"),
        (r"(?i:\P{Nd})", without("0123456789", SAMPLE)),
        (r"(?i:\S)", without("\t\n\v\f\r ", SAMPLE)),
        (
            r"(?i:\w)",
            without("½", "".join(char for char in SAMPLE if char.isalnum() or char in "_ⒶⓐⅧⅷ")),
        ),
        ("(?i:[^k])", without("Kk\u212a", SAMPLE)),
        (r"(?i:[^\x00-\x7f])", without(ASCII + "\u017f\u212a", SAMPLE)),
        ("(?-i:s)|(?i-s:t)", "Tst"),
        ("(?i)(?-i:s)|t", "Tst"),
        ("(?i:(?-i:a)|b)|c", "Babc"),
        ("(?i:(?:(?-i:a)|d)|e)|f", "DEadef"),
        ("(?i:(?=a)(?:a)|(?<!a)b(?!c)|(?P<x>d)|(e))|f", "ABDEabdef"),
    ],
)
def test_case_ignored(source, chars):
    found = [match[0] for match in map(compiled(source).fullmatch, SAMPLE) if match]
    assert sorted(found) == sorted(chars)


def test_ascii_letters_with_case_ignored():
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\u017f\u212a"
    assert matched("(?i:[a-z])", EVERYTHING) == matched("(?i:[A-Z])", EVERYTHING) == letters
    assert not compiled("(?i:[a-z])").search("\u0130\u0131")


@pytest.mark.parametrize(
    ("source", "place", "what"),
    [
        ("(?i)é", 4, "'é'"),
        ("(?i:a\u0130)", 5, "'\u0130'"),
        (r"(?i:a\xe9)", 5, r"'\\xe9'"),
        (r"x(?i:\p{L})", 5, r"'\\p{L}'"),
        (r"(?i:[a\p{Lu}])", 6, r"'\\p{Lu}'"),
        (r"(?i:\P{Ll})", 4, r"'\\P{Ll}'"),
        (r"(?i:\pM)", 4, r"'\\pM'"),
        ("(?i:[a-é])", 5, "'a-é'"),
        ("(?i:Ⅷ)", 4, "'Ⅷ'"),
        ("(?i:[Ⓐ-Ⓒ])", 5, "'Ⓐ-Ⓒ'"),
        (r"(a)(?i:b\1)", 8, r"'\\1'"),
        (r"(?i)(?P<x>a)(?P=x)", 12, "'(?P=x)'"),
    ],
)
def test_case_variants_that_the_table_lacks_are_refused(source, place, what):
    with pytest.raises(ValueError, match="with case ignored") as caught:
        compiled(source)
    assert f"{source!r} is refused at position {place}: " in str(caught.value)
    assert what in str(caught.value)


def test_a_character_and_its_case_variants_are_in_one_block():
    blocks = [
        {chr(code) for first, last in block for code in range(first, last + 1)}
        for block in (
            expansion.cased_letters(),
            expansion.ROMAN_NUMERALS,
            expansion.CIRCLED_LETTERS,
        )
    ]
    for char in EVERYTHING:
        for variant in {char.lower(), char.upper(), char.casefold()} - {char}:
            assert len(variant) > 1 or any({char, variant} <= block for block in blocks)


# Refusals


@pytest.mark.parametrize(
    ("source", "place", "reason"),
    [
        (r"\p{Han}", 0, "unknown property 'Han'; those known are C, Cc, "),
        (r"a[\p{L}\p{Script=Han}]", 7, "unknown property 'Script=Han'"),
        (r"\p{lu}", 0, "unknown property 'lu'"),
        (r"\pX", 0, "unknown property 'X'"),
        (r"\p{}", 0, "unknown property ''"),
        (r"a\p{L", 1, "a property is spelled like"),
        (r"\p", 0, "a property is spelled like"),
        (r"\q", 0, r"unknown escape '\\q'"),
        (r"\N{DIGIT ONE}", 0, r"unknown escape '\\N'"),
        (r"a\X", 1, r"unknown escape '\\X'"),
        (r"\x4", 0, r"unknown escape '\\x'"),
        (r"[\8]", 1, r"unknown escape '\\8'"),
        (r"[\477]", 1, r"unknown escape '\\4'"),
        (r"[\A]", 1, r"unknown escape '\\A'"),
        (r"[\B]", 1, r"unknown escape '\\B'"),
        ("a\\", 1, r"unknown escape '\\'"),
        (r"\U00110000", 0, "beyond U+10FFFF"),
        ("[z-a]", 1, "bad range 'z-a'"),
        (r"[a-\d]", 1, r"bad range 'a-\\d'"),
        (r"[\p{Zl}-z]", 1, r"bad range '\\p{Zl}-z'"),
        ("a[b", 1, "a set without its end"),
        ("[]", 0, "a set without its end"),
        ("[a-", 0, "a set without its end"),
        ("[[a]", 1, "a set inside a set"),
        ("[[:alpha:]]", 1, "a set inside a set"),
        ("[^[a]", 2, "a set inside a set"),
        ("[a--b]", 2, "set operator '--'"),
        ("[ab--c]", 3, "set operator '--'"),
        (r"[\w--a]", 3, "set operator '--'"),
        ("[+--]", 2, "set operator '--'"),
        ("[a-c--b]", 4, "set operator '--'"),
        ("[a&&b]", 2, "set operator '&&'"),
        ("[a||b]", 2, "set operator '||'"),
        ("[a~~b]", 2, "set operator '~~'"),
        ("(?x)a", 0, "flag 'x' is none of 'i', 'm', 's'"),
        ("(?a:b)", 0, "flag 'a'"),
        ("a(?iu:b)", 1, "flag 'u'"),
        ("(?s-L:b)", 0, "flag 'L'"),
        ("a(?i)b", 1, "flags of the whole pattern must stand at its start"),
        ("(?:(?s)b)", 3, "flags of the whole pattern must stand at its start"),
        ("(?s-s:b)", 0, "turns a flag both on and off"),
        ("(?-i)b", 0, "unknown kind of group '(?-i'"),
        ("(?<n>a)", 0, "unknown kind of group '(?<n'"),
        ("(?&n)", 0, "unknown kind of group '(?&n'"),
        ("(?P>n)", 0, "unknown kind of group '(?P>'"),
        ("(?P=n", 0, "unknown kind of group '(?P='"),
        ("(?#a", 0, "unknown kind of group '(?#a'"),
        ("(?(+1)a)", 0, "unknown kind of group '(?(+'"),
        # What `re` itself refuses, with the place in the pattern as the user spelled it.
        (r"\p{L}(", 5, "missing )"),
        (r"\p{L}a)", 6, "unbalanced parenthesis"),
        (r"[\s\p{L}]+|*", 11, "nothing to repeat"),
        (r"\p{L}{2}{3}", 8, "multiple repeat"),
        (r"\s(a)\2", 5, "invalid group reference 2"),
        (r"\s(?P=n)", 2, "unknown group name 'n'"),
        (r"(?i:k)(?P<1>a)", 6, "bad character in group name '1'"),
    ],
)
def test_a_refusal_names_the_pattern_the_place_and_the_reason(source, place, reason):
    with pytest.raises(ValueError) as caught:
        compiled(source)
    assert str(caught.value).startswith(f"pattern {source!r} is refused at position {place}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (r"(?<=\s+)a", "look-behind requires fixed-width pattern"),
        (r"\p{L}{99999999999999999999}", "the repetition number is too large"),
        ("(" * 5000, "recursion"),
    ],
)
def test_a_refusal_without_a_place(source, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        compiled(source)
    assert str(caught.value).startswith(f"pattern {source!r} is refused: ")


POSSESSIVE = [
    ("a++", 1, "possessive quantifier '++'"),
    ("ba*+", 2, "possessive quantifier '*+'"),
    (r"\p{L}?+", 5, "possessive quantifier '?+'"),
    ("a{2,3}+", 1, "possessive quantifier '{2,3}+'"),
    ("a(?>b)", 1, "atomic group"),
]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="`re` has these from Python 3.11 on")
def test_possessive_quantifiers_and_atomic_groups():
    assert expansion.HAS_POSSESSIVE
    assert compiled(r"\p{L}++a|\p{L}b").findall("aba") == ["ab"]
    assert compiled(r"(?>\p{L}+)a|\p{L}b").findall("aba") == ["ab"]
    assert all(compiled(source) for source, _, _ in POSSESSIVE)


@pytest.mark.parametrize(("source", "place", "what"), POSSESSIVE)
def test_on_python_3_10_possessives_are_refused(source, place, what, monkeypatch):
    monkeypatch.setattr(expansion, "HAS_POSSESSIVE", False)
    with pytest.raises(ValueError, match=re.escape(what)) as caught:
        compiled(source)
    assert f" at position {place}: " in str(caught.value)
    assert "needs Python 3.11 or newer" in str(caught.value)
