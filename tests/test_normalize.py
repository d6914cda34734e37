"""NFC of Unicode 9.0, as Hugging Face has it."""

import json
import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import growth
from tokbpe import normalize, unicode
from tokbpe.normalize import assigned_runs, nfc, nfc_segments
from tokbpe.unicode_9_table import UNASSIGNED

pytestmark = pytest.mark.core

# U+1DFA, a mark that stands below, came with Unicode 14.0; U+0301 stands above.
LATER_MARK = "\u1dfa"
UNASSIGNED_RANGES = tuple(map(unicode.parsed_range, UNASSIGNED.split()))
MARKS = [chr(code) for first, last in unicode.ranges("M") for code in range(first, last + 1)]
# Both parts of composed characters, and what is composed, decomposed or moved.
MOVING = [
    *"AEOaeo =<",
    *"\u0338\u0301\u0323\u0344\u0340\u0958\u09be\u09c7\u1100\u1161\u11a8\uac00\uac01",
    *"\u00c5\u212a\u212b\u1fef\u2126\ufb1d\U0001109a\U000110ba\U0001d15e\U0001d165",
]
mark_heavy = st.text(
    st.sampled_from(MARKS) | st.sampled_from(MOVING) | st.characters(exclude_categories=["Cs"])
)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("", ""),
        ("plain", "plain"),
        ("e\u0301", "\xe9"),
        ("\xe9", "\xe9"),
        ("\u212a", "K"),
        ("\u1100\u1161\u11a8", "\uac01"),
        ("\u0958", "\u0915\u093c"),
        ("a\u0301\u0323", "\u1ea1\u0301"),
        # Where Unicode 14.0 moves the later mark before the accent, 9.0 leaves it.
        ("a\u0301" + LATER_MARK, "\xe1" + LATER_MARK),
        ("a\u0302" + LATER_MARK + "\u0301", "\xe2" + LATER_MARK + "\u0301"),
        ("=\u0301" + LATER_MARK + "\u0338", "=\u0301" + LATER_MARK + "\u0338"),
    ],
)
def test_nfc(text, normalized):
    assert nfc(text) == normalized


def test_a_later_mark_is_where_plain_unicodedata_goes_wrong():
    if unicodedata.combining(LATER_MARK) == 0:
        pytest.skip(f"U+1DFA is not in Unicode {unicodedata.unidata_version} of this Python")
    assert unicodedata.normalize("NFC", "=\u0301" + LATER_MARK) == "=" + LATER_MARK + "\u0301"


@given(mark_heavy)
def test_laws(text):
    normalized = nfc(text)
    assert nfc(normalized) == normalized
    runs = assigned_runs().findall(text)
    assert assigned_runs().findall(normalized) == [unicodedata.normalize("NFC", r) for r in runs]
    assert assigned_runs().split(normalized) == assigned_runs().split(text)


def test_the_table(data):
    path = data / "unicode" / "unassigned_unicode_9_0.json"
    assert [list(pair) for pair in UNASSIGNED_RANGES] == json.loads(path.read_text())["unassigned"]


def test_what_is_assigned_stays_so():
    unassigned_later = unicode.ranges("Cn")
    assert unicode.intersection(UNASSIGNED_RANGES, unassigned_later) == unassigned_later


@pytest.fixture(scope="module")
def peer():
    return pytest.importorskip("tokenizers").normalizers.NFC().normalize_str


@given(mark_heavy)
def test_against_tokenizers(peer, text):
    assert nfc(text) == peer(text)


def test_every_character_against_tokenizers(peer):
    wrong = []
    for first in range(0, 0x110000, 0x100):
        # Between two of these nothing composes or moves.
        text = "".join(f"{chr(c)} " for c in range(first, first + 0x100) if c >> 11 != 0x1B)
        if nfc(text) != peer(text):
            wrong.append(hex(first))
    assert wrong == []


def test_many_marks_against_tokenizers(peer):
    """Fifty thousand texts, since those in which a later mark moves are rare."""
    rng = random.Random(9)
    pool = MARKS + MOVING * (len(MARKS) // len(MOVING))
    texts = ["".join(rng.choices(pool, k=rng.randrange(2, 12))) for _ in range(50_000)]
    assert [text for text in texts if nfc(text) != peer(text)] == []
    assert any(nfc(text) != unicodedata.normalize("NFC", text) for text in texts)


@given(st.text(st.one_of(st.sampled_from(MARKS), st.characters(exclude_categories=["Cs"]))))
def test_segments(text):
    found = list(nfc_segments(text))
    assert "".join(segment for segment, _ in found) == text
    assert "".join(normalized for _, normalized in found) == nfc(text)
    assert all(nfc(segment) == normalized for segment, normalized in found)


@pytest.mark.parametrize("mark", "\u0f73\u0f75\u0f81")
def test_segments_of_what_means_two_marks(mark):
    """They are no marks themselves, but move as marks do."""
    for text in (f"a{mark}\u0301b", f"\u020d{mark}\u0323", f"e\u0301{mark}\u0f71\u0323"):
        segments = [*nfc_segments(text)]
        assert "".join(source for source, _ in segments) == text
        assert "".join(normalized for _, normalized in segments) == nfc(text)


def test_long_rows_of_marks(monkeypatch):
    """They are put in order before Python does it, which gives the same."""
    drawn = random.Random(4)
    rows = [
        "".join(drawn.choices("ae\u00e9\u0f40", k=2) + drawn.choices(MARKS, k=k)) for k in range(70)
    ]
    rows += [
        "a" + "".join(drawn.choices("\u0344\u0f73\u0f75\u0f81\u0f74\u0301", k=60)) for _ in range(9)
    ]
    monkeypatch.setattr(normalize, "LONG_ROW", 10**4)
    normalize.long_rows.cache_clear()
    expected = [*map(nfc, rows)]
    for least in (1, 2, 32):
        monkeypatch.setattr(normalize, "LONG_ROW", least)
        normalize.long_rows.cache_clear()
        assert [*map(nfc, rows)] == expected


LONG_TEXTS = {
    "two marks in turn": lambda size: "a" + "\u0301\u0323" * (size // 4),
    "marks in a falling order": lambda size: "a" + "\u0301" * (size // 4) + "\u0323" * (size // 4),
    "what means two marks": lambda size: "a" + "\u0f73" * (size // 3),
    "one mark": lambda size: "e" + "\u0301" * (size // 2),
    "letters with marks": lambda size: "e\u0301" * (size // 3),
    "a later mark between": lambda size: "a" + f"\u0301{LATER_MARK}\u0323" * (size // 7),
    "Jamo": lambda size: "\u1100\u1161\u11a8" * (size // 9),
}


@pytest.mark.parametrize("work", [nfc, lambda text: [*nfc_segments(text)]], ids=["nfc", "segments"])
@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_growth(kind, work):
    """Four times the text takes about four times as long, and not sixteen times."""
    short, long = map(LONG_TEXTS[kind], (20_000, 80_000))
    assert growth(work, short, long, 10) < 10
