"""What is shown: that it is all there, safe, readable on any page, and true."""

import html
import random
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from tokbpe import PieceCounts, Tokenizer, cli, methods, metrics, reference, show
from tokbpe.show import colors, markup, pieces, terminal
from tokbpe.vocabulary import Vocabulary

WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
TEXT = (
    "The lowest of the low, größer und größer: 🐈🐈 “the newest” — 你好你好 السلام عليكم\n"
    "def train(self):\n\treturn self  # <b>the</b> &amp; 'the' \"widest\"\n" * 4
)
HOSTILE = (
    "<script>alert(1)</script>",
    "</code></div><img src=x onerror=alert(1)>",
    "\"quoted\" 'quoted' &amp; & &#60;",
    "\x00\x01\x1b[31m\x7f\x85",
    "\u202eevil\u202c \u2066x\u2069 \u200b\u200d\ufeff",
    "e\u0301 \u0301 \u0301\ufe0f",
    "\ufffe\uffff\U0010ffff\ue000",
    "a\r\n\n\t b\xa0c\u2028d\u3000e",
    "·↵⇥␀◌‹e2 82›‹U+202E›</w>",
    "]]>-->\\$x^2$",
)

byte = Tokenizer.from_bytes()
bpe = Tokenizer(TEXT, method="bpe", vocabulary_size=340, pattern="gpt2")
loose = Tokenizer(TEXT, method="bpe", vocabulary_size=380)
word = Tokenizer(["low", *WORDS], method="word", vocabulary_size=25)
marked = Tokenizer(
    TEXT,
    method="bpe",
    vocabulary_size=300,
    special_tokens=("<|end|>", "<b>"),
    reserved=("BOS", "EOS"),
)


def ranked(whole_piece_lookup):
    """A tokenizer of ranks, some of whose pieces are no merges."""
    alphabet = [bytes([byte]) for byte in range(256)]
    pieces = [b"he", b"the", b"lo", b"ow", b"low", b" low", b"est", b"est!", b"xyz", b"th", b"we"]
    vocabulary = Vocabulary(
        "bpe",
        (*alphabet, *pieces),
        merge_rule="rank_by_piece",
        whole_piece_lookup=whole_piece_lookup,
    )
    return Tokenizer.from_vocabulary(vocabulary)


TOKENIZERS = {
    "byte": byte,
    "bpe": bpe,
    "no pattern": loose,
    "special": marked,
    "ranks": ranked(False),
    "ranks, whole pieces": ranked(True),
}


# Reading what is shown


class Page(HTMLParser):
    """The elements of some HTML, each with its attributes, depth and styles of its own and of
    those around it; and the text in them."""

    VOID = ("br",)

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.elements = []
        self.texts = []  # text with the elements around it
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        element = (tag, dict(attributes))
        assert len(element[1]) == len(attributes)
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        self.texts.append((data, tuple(self.open)))

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    handle_decl = handle_pi = unknown_decl = handle_comment

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def inside(self, tag):
        """Runs of text with whether they stand for something, in elements of a name."""
        return [
            (data, around[-1][0] == "i")
            for data, around in self.texts
            if any(name == tag for name, _ in around)
        ]


def style(attributes):
    return dict(part.split(":", 1) for part in attributes.get("style", "").split(";") if part)


def seen(runs):
    """The bytes that a reader sees: signs are read back."""
    signs = {sign: character for character, sign in pieces.SIGNS.items()}
    text = ""
    for shown, stands_for in runs:
        if not stands_for:
            text += shown
            continue
        for sign in re.findall(r"‹[^›]*›|.", shown):
            if sign.startswith("‹U+"):
                text += chr(int(sign[3:-1], 16))
            elif sign.startswith("‹"):
                text += bytes.fromhex(sign[1:-1]).decode("utf-8", "surrogateescape")
            elif sign in signs:
                text += signs[sign]
            elif sign != "◌":
                text += chr(ord(sign) - 0x2400)
    return text.encode("utf-8", "surrogateescape")


def bytes_in_titles(page):
    titles = [attributes["title"] for attributes in page.named("code")]
    return b"".join(bytes.fromhex(re.search(r"bytes ([0-9a-f ]*)", title)[1]) for title in titles)


def shown_objects():
    run = show.training(WORDS, method="word")
    hostile = "".join(HOSTILE)
    return {
        "tokens": show.tokens(bpe, TEXT),
        "hostile": show.tokens(loose, hostile),
        "special": show.tokens(marked, "<|end|>x", allowed_special="all", bos=True),
        "unknown": show.tokens(word, "lowest zoo"),
        "compare": show.compare({"<one>": bpe, "&two": byte}, TEXT[:100]),
        "merges": show.merges(loose),
        "steps": show.merge_steps(bpe, TEXT[:100]),
        "hostile steps": show.merge_steps(bpe, hostile),
        "run": run,
        "pairs": run.pair_table(),
        "hostile pairs": show.pair_table(hostile),
        "quoted pairs": show.pair_table('"<"<"<&"<>'),
        "tokenizer": marked,
        "vocabulary": marked._vocabulary,
        "ranks": TOKENIZERS["ranks, whole pieces"],
    }


OBJECTS = shown_objects()
TAGS = {
    *("div", "small", "b", "i", "code", "ruby", "rt", "br"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"class", "style", "title", "role", "aria-label", "dir", "scope"}


@pytest.mark.parametrize("name", OBJECTS)
def test_html_is_whole_and_holds_no_more_than_it_needs(name):
    page = Page(OBJECTS[name]._repr_html_())
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {name for _, attributes in page.elements for name in attributes} <= ATTRIBUTES


@pytest.mark.parametrize("name", OBJECTS)
def test_text_is_read_on_any_page(name):
    """Where there is a color there is a background of ours, and both can be told apart."""
    page = Page(OBJECTS[name]._repr_html_())
    colored = 0
    for _, around in page.texts:
        styles = [style(attributes) for _, attributes in around]
        ink = [found["color"] for found in styles if found.get("color", "inherit") != "inherit"]
        if not ink:
            assert not any("background" in found for found in styles)
            continue
        background = [found["background"] for found in styles if "background" in found]
        assert colors.contrast(ink[-1], background[-1]) >= 4.5
        colored += 1
    assert colored or name == "ranks"  # which has no merges to show
    assert {found["class"] for _, found in page.elements if "class" in found} == {
        "tex2jax_ignore mathjax_ignore"
    }
    assert not re.search(r"\bid=|var\(|<style", OBJECTS[name]._repr_html_())


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [("#000000", "#ffffff", 21), ("#ffffff", "#ffffff", 1), ("#767676", "#ffffff", 4.54)],
)
def test_the_contrast_is_that_of_the_standard(one, other, ratio):
    assert colors.contrast(one, other) == pytest.approx(ratio, abs=0.005)
    assert colors.contrast(other, one) == colors.contrast(one, other)


@pytest.mark.parametrize("page", ["#ffffff", "#000000", "#111111", "#1e1e1e", "#0d1117"])
def test_lines_are_seen_on_any_page(page):
    assert colors.contrast(colors.LINE, page) >= 3


@pytest.mark.parametrize("page", ["#ffffff", "#000000", "#111111", "#1e1e1e", "#0d1117"])
def test_the_frame_of_a_winner_is_seen_on_its_cell_and_on_any_page(page):
    cell, _ = colors.heat(9, 9)
    assert colors.contrast(colors.WINNER, cell) >= 3
    assert colors.contrast(colors.WINNER, page) >= 3


def test_each_count_of_a_heat_map_is_read():
    for count in range(1, 501):
        background, ink = colors.heat(count, 500)
        assert colors.contrast(background, ink) >= 4.5


# Tokens


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", [*HOSTILE, TEXT, ""])
def test_all_of_a_text_is_there(name, text):
    shown = show.tokens(TOKENIZERS[name], text)
    page = Page(shown._repr_html_())
    data = text.encode("utf-8")
    assert bytes_in_titles(page) == data
    assert seen(page.inside("code")) == data
    assert shown.ids.tolist() == TOKENIZERS[name].encode(text)
    ids = [int(re.match(r"id (\d+)", found["title"])[1]) for found in page.named("code")]
    assert ids == shown.ids.tolist()


@given(strategies.VALID_TEXTS | strategies.DATA, st.sampled_from(sorted(TOKENIZERS)))
def test_all_of_any_text_is_there(text, name):
    page = Page(show.tokens(TOKENIZERS[name], text)._repr_html_())
    data = text.encode("utf-8") if isinstance(text, str) else text
    assert bytes_in_titles(page) == data
    assert seen(page.inside("code")) == data


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_invisible_is_left(text):
    found = show.tokens(loose, text)
    for shown in (found._repr_html_(), str(found), show.merge_tree(loose, text)._repr_svg_()):
        assert all(character.isprintable() or character == "\n" for character in shown)


@pytest.mark.parametrize("name", OBJECTS)
def test_no_text_is_typeset_as_mathematics(name):
    page = Page(OBJECTS[name]._repr_html_())
    for data, around in page.texts:
        assert any("mathjax_ignore" in found.get("class", "") for _, found in around), data


def test_a_letter_that_is_drawn_as_nothing_is_named():
    text = "a\u3164\u115f\u2800\u034f\uffa0"
    assert pieces.plain(text.encode()) == "a‹U+3164›‹U+115F›‹U+2800›‹U+034F›‹U+FFA0›"
    assert pieces.names("\u3164".encode()) == "U+3164 HANGUL FILLER"
    assert pieces.names(text.encode()).endswith(", ...")


def test_parts_of_a_character_stand_together_below_it():
    page = Page(show.tokens(byte, "a€b🐈")._repr_html_())
    assert [data for data, _ in page.inside("rt")] == ["€", "🐈"]
    assert len(page.named("ruby")) == 2
    assert [data for data, _ in page.inside("ruby")] == [
        *("‹e2›", "‹82›", "‹ac›", "€"),
        *("‹f0›", "‹9f›", "‹90›", "‹88›", "🐈"),
    ]


def test_characters_that_share_a_token_are_one_group():
    vocabulary = Vocabulary(
        "bpe", (*(bytes([byte]) for byte in range(256)), b"x\xe2\x82", b"\xac\xe2", b"\x82\xacy")
    )
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    page = Page(show.tokens(tokenizer, [256, 257, 258, 226])._repr_html_())
    assert [data for data, _ in page.inside("rt")] == ["€€"]
    assert page.inside("code") == [
        *(("x", False), ("‹e2 82›", True), ("‹ac e2›", True)),
        *(("‹82 ac›", True), ("y", False), ("‹e2›", True)),
    ]


def test_what_is_no_piece_is_told():
    shown = show.tokens(marked, "a<|end|>", allowed_special="all", bos=True, eos=True)
    titles = [found["title"] for found in Page(shown._repr_html_()).named("code")]
    assert titles == [
        f"id {marked.bos_id}, reserved id",
        "id 97, bytes 61",
        f"id {marked.special_tokens['<|end|>']}, special token, bytes 3c 7c 65 6e 64 7c 3e",
        f"id {marked.eos_id}, reserved id",
    ]
    assert str(shown) == "[<|BOS|>][a][<|end|>][<|EOS|>]"
    assert str(show.tokens(marked, "<|end|>")).startswith("[<]")
    assert str(show.tokens(word, "lowest z")) == "[lo][we][st</w>][<UNK>]"
    assert str(show.tokens(word, [21, 99])) == "[lo][<UNK>]"


def test_hidden_characters_have_their_names():
    vocabulary = Vocabulary("char", (None, "\u202e".encode()), unit="character", unknown=0)
    shown = show.tokens(Tokenizer.from_vocabulary(vocabulary), "\u202e")
    (found,) = Page(shown._repr_html_()).named("code")
    assert found["title"] == "id 1, bytes e2 80 ae, U+202E RIGHT-TO-LEFT OVERRIDE"
    assert found["dir"] == "auto"
    assert str(shown) == "[‹U+202E›]"


def test_a_combining_mark_has_something_to_sit_on():
    assert pieces.plain("e\u0301 \u0301\u0308\n\u0301".encode()) == "e\u0301·◌\u0301\u0308↵◌\u0301"
    assert pieces.plain("\u0301".encode()) == "◌\u0301"


def test_a_line_ends_where_the_text_has_one():
    page = Page(show.tokens(byte, "a\nb\n")._repr_html_())
    assert [tag for tag, _ in page.elements if tag in ("code", "br")] == [
        *("code", "code", "br"),
        *("code", "code", "br"),
    ]


def test_a_large_text_is_cut():
    text = "the lowest of the low\n" * 480_000
    shown = show.tokens(bpe, text)
    page = shown._repr_html_()
    assert len(page) < 500_000
    count = bpe.count(text)
    assert shown.note == (
        f"{count:,} tokens, of which the first 1,000 are shown: {count - 1000:,} are left out"
    )
    assert shown.note in page
    assert len(Page(page).named("code")) == 1000
    assert str(shown).endswith(f" and {count - 1000:,} more")


def test_a_long_token_is_cut():
    long = b"\x00" * 100_000
    vocabulary = Vocabulary("bpe", (*(bytes([byte]) for byte in range(256)), long))
    shown = show.tokens(Tokenizer.from_vocabulary(vocabulary), [256] * 1000)
    assert len(shown._repr_html_()) < 1_000_000
    assert shown.shown[0].plain == "␀" * 64 + "‹99,936 bytes more›"
    assert shown.shown[0].title.endswith("00 00 ...")


def test_wrong_input_is_told():
    with pytest.raises(UnicodeEncodeError, match="position 1"):
        show.tokens(bpe, "a\ud800")
    with pytest.raises(ValueError, match="999"):
        show.tokens(bpe, [97, 999])
    for wrong in (1.0, True, "a", None):
        with pytest.raises(TypeError, match="position 1"):
            show.tokens(bpe, [97, wrong])
    with pytest.raises(ValueError, match="position 1500"):
        show.tokens(bpe, [*[97] * 1500, -1])
    with pytest.raises(TypeError, match="ids are not encoded.*bos"):
        show.tokens(bpe, [97], bos=True)
    with pytest.raises(ValueError, match="limit"):
        show.tokens(bpe, "a", limit=-1)
    with pytest.raises(TypeError, match="mapping from name to tokenizer, not list"):
        show.compare([bpe], "a")
    closed = Tokenizer.from_bytes()
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        show.tokens(closed, "a")
    assert closed._repr_html_() == "&lt;Tokenizer, closed&gt;"


def test_a_comparison_names_and_measures():
    found = show.compare({"<one>": bpe, "two": byte}, "the lowest")
    text = "".join(data for data, _ in Page(found._repr_html_()).texts)
    count = len(bpe.encode("the lowest"))
    assert f"<one> {count} tokens, {10 / count:.2f} bytes per token" in text
    assert "two 10 tokens, 1.00 bytes per token" in text


# Merges


STEPPED = [
    pytest.param(tokenizer, text, id=f"{name}-{text[:8]!r}")
    for name, tokenizer in {**TOKENIZERS, "words": word}.items()
    for text in (*HOSTILE, TEXT[:150], "the lowest low est! xyz low", "")
]


def checked_steps(tokenizer, text, **options):
    steps = show.merge_steps(tokenizer, text, **options)
    encode = tokenizer.encode if isinstance(text, str) else tokenizer.encode_bytes
    assert [*steps[-1].ids] == encode(text, **options)
    listed = tokenizer.merges.tolist()
    for before, after in pairwise(steps):
        left, right = after.pair
        ids = [*before.ids]
        assert ids[after.place : after.place + 2] == [left, right]
        new = after.ids[after.place]
        ids[after.place : after.place + 2] = [new]
        assert tuple(ids) == after.ids
        assert tokenizer.id_to_piece(left) + tokenizer.id_to_piece(right) == tokenizer.id_to_piece(
            new
        )
        if listed:
            assert listed[after.rank] == [left, right]
        else:
            assert after.rank == new
    return steps


@pytest.mark.parametrize(("tokenizer", "text"), STEPPED)
def test_the_steps_end_with_what_encode_gives(tokenizer, text):
    checked_steps(tokenizer, text)


@settings(max_examples=50)
@given(strategies.VALID_TEXTS | strategies.DATA, st.sampled_from(sorted(TOKENIZERS)))
def test_the_steps_of_any_text_end_with_what_encode_gives(text, name):
    checked_steps(TOKENIZERS[name], text)


def test_inside_a_piece_ranks_rise_or_repeat_where_a_merge_makes_no_lower_one():
    tokenizer = loose
    ranks = [state.rank for state in show.merge_steps(tokenizer, "the lowest of the low")[1:]]
    assert ranks == sorted(ranks) and len(ranks) > 5


def test_the_steps_of_a_word():
    steps = show.merge_steps(word, "lowest")
    assert [state.ids for state in steps] == [
        (7, 11, 19, 3, 15, 18),
        (21, 19, 3, 15, 18),
        (21, 23, 15, 18),
        (21, 23, 24),
    ]
    assert [state.rank for state in steps] == [None, 0, 2, 3]
    assert str(steps).splitlines() == [
        "    start  [l][o][w][e][s][t</w>]",
        "        0  [lo][w][e][s][t</w>]",
        "        2  [lo][we][s][t</w>]",
        "        3  [lo][we][st</w>]",
    ]


def test_special_tokens_and_whole_pieces_are_there_from_the_start():
    steps = checked_steps(marked, "the<|end|>the", allowed_special="all")
    end = marked.special_tokens["<|end|>"]
    assert all(end in state.ids for state in steps)
    assert steps[0].taken == (3,) and steps[-1].ids[steps[-1].taken[0]] == end
    whole = TOKENIZERS["ranks, whole pieces"]
    (only,) = checked_steps(whole, "xyz")
    assert only.ids == (264,) and only.taken == (0,)
    assert len(checked_steps(TOKENIZERS["ranks"], "xyz")) == 1  # no two neighbors join to a piece


def test_tokens_that_no_merge_makes_are_counted():
    steps = show.merge_steps(marked, "<|end|>we<|end|>", allowed_special="all")
    merges = markup.count(len(steps) - 1, "merge")
    assert f"{merges}, 2 tokens taken without one<" in steps._repr_html_()


def test_what_surrounds_a_text_is_part_of_its_steps():
    alphabet = [bytes([byte]) for byte in range(256)]
    merges = np.array([[0xC3, 0xA9], [32, ord("a")]], np.uint32)
    vocabulary = Vocabulary("bpe", (*alphabet,), merges, normalizer="NFC", prefix_space=True)
    steps = checked_steps(Tokenizer.from_vocabulary(vocabulary), "ae\u0301")
    assert [state.ids for state in steps] == [
        (32, 97, 0xC3, 0xA9),
        (32, 97, 256),
        (257, 256),
    ]


def test_many_steps_are_cut():
    steps = show.merge_steps(loose, TEXT[:60] * 20)
    page = steps._repr_html_()
    assert len(page) < 2_000_000 and len(steps) > 300
    assert f"{len(steps) - 1:,} merges, of which the last {len(steps) - 100:,} are left out" in page


class Own:
    """A method that merges do not describe."""

    name, number = "own", 99

    def train(self, corpus, options):
        return Vocabulary("own", (b"a",))

    def encoder(self, vocabulary):
        return self

    def encode(self, data):
        return [0] * len(data)


def test_a_method_that_merges_do_not_describe(monkeypatch):
    monkeypatch.setitem(methods.METHODS, "own", Own())
    own = Tokenizer("aa", method="own")
    assert str(show.tokens(own, "aa")) == "[a][a]"
    with pytest.raises(ValueError, match="merges do not describe how the method 'own' encodes"):
        show.merge_steps(own, "aa")


def test_steps_of_a_long_text_are_refused():
    with pytest.raises(ValueError, match="2,001 symbols; the steps of at most 2,000"):
        show.merge_steps(byte, "a" * 2001)
    with pytest.raises(ValueError, match="201 symbols; trees of at most 200"):
        show.merge_tree(byte, "a" * 201)
    with pytest.raises(UnicodeEncodeError):
        show.merge_tree(byte, "\udfff")


def test_the_merges_of_a_tokenizer():
    found = show.merges(bpe, first=2, limit=3)
    page = Page(found._repr_html_())
    cells = [data for data, around in page.texts if around[-1][0] == "td"]
    assert cells[:1] + cells[-1:] == ["2", str(bpe.merge_counts[4])]
    assert f"ranks 2 to 4 of {len(bpe.merges)} merges" in found._repr_html_()
    for line, pair, id in zip(str(found).splitlines(), bpe.merges[2:5].tolist(), range(258, 261)):
        left, right = (pieces.plain(bpe.id_to_piece(half)) for half in pair)
        assert line.split()[:3] == [str(id - 256), str(id), str(bpe.merge_counts[id - 256])]
        assert line.endswith(f"  {left} + {right} = {pieces.plain(bpe.id_to_piece(id))}")
    none = show.merges(TOKENIZERS["ranks"])
    assert len(none) == 0
    told = "There is no list of merges: any two pieces that join to a piece, the lowest id first."
    assert (str(none), none._repr_html_()) == (told, markup.note(told))


# The tree


SVG = "{http://www.w3.org/2000/svg}"


def drawn(tree):
    """The boxes of a tree as (left, top, right, bottom), with their texts and colors."""
    root = ElementTree.fromstring(tree._repr_svg_())
    boxes = []
    for group in root.iter(f"{SVG}g"):
        (box,) = group.findall(f"{SVG}rect")
        x, y, width, height = (float(box.get(name)) for name in ("x", "y", "width", "height"))
        texts = [text.text for text in group.findall(f"{SVG}text")]
        inks = {text.get("fill") for text in group.findall(f"{SVG}text")}
        assert all(colors.contrast(box.get("fill"), ink) >= 4.5 for ink in inks)
        boxes.append(((x, y, x + width, y + height), texts))
    return root, boxes


@pytest.mark.parametrize("name", [*TOKENIZERS, "words"])
@pytest.mark.parametrize("text", [*HOSTILE, "the lowest low est! xyz low", "a", ""])
def test_a_tree_is_xml_without_overlaps(name, text):
    tokenizer = {**TOKENIZERS, "words": word}[name]
    tree = show.merge_tree(tokenizer, text)
    root, boxes = drawn(tree)
    assert len(boxes) == len(tree.nodes) == len(str(tree).splitlines())
    assert [node.token.id for node in tree.roots] == tokenizer.encode(text)
    width, height = float(root.get("width")), float(root.get("height"))
    for (left, top, right, bottom), texts in boxes:
        assert 0 <= left < right <= width and 0 <= top < bottom <= height
        assert texts[1].startswith("id ")
    for (one, _), (other, _) in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart
    for node in tree.nodes:
        if node.children:
            assert b"".join(half.token.piece for half in node.children) == node.token.piece
            assert tokenizer._vocabulary.merge_rule == "rank_by_piece" or tokenizer.merges[
                node.rank
            ].tolist() == [half.token.id for half in node.children]


def test_the_tree_of_a_word():
    tree = show.merge_tree(word, "lowest")
    assert str(tree).splitlines()[:3] == ["lo  id 21, rank 0", "  l  id 7", "  o  id 11"]
    root, boxes = drawn(tree)
    assert [texts for _, texts in boxes][-1] == ["st</w>", "id 24", "rank 3"]
    assert root.find(f"{SVG}title").text == "6 symbols become [lo] [we] [st</w>] by 3 merges"


def test_a_tree_says_that_no_merge_made_a_piece():
    tree = show.merge_tree(TOKENIZERS["ranks, whole pieces"], "xyz")
    _, [(_, texts)] = drawn(tree)
    assert texts == ["xyz", "id 264", "whole piece, no merge"]


def test_a_deep_tree_is_drawn():
    chain = Tokenizer(
        "abcdefghijklmnopqrstuvwxyz" * 3, method="bpe", vocabulary_size=281, tie_break="first"
    )
    tree = show.merge_tree(chain, "abcdefghijklmnopqrstuvwxyz" * 3)
    assert max(node.height for node in tree.nodes) > 20
    drawn(tree)


# Training


def test_the_classical_example():
    table = show.pair_table(WORDS, method="word")
    named = {table.spelled(pair): count for pair, count in table.counts.items()}
    assert named["e s"] == named["s t</w>"] == 9 == table.highest
    assert table.spelled(table.winner) == "e s"
    assert [table.spelled(pair) for pair in table.tied] == ["e s", "s t</w>"]
    assert {rule: table.spelled(pair) for rule, pair in table.winners.items()} == {
        "smallest": "e s",
        "first": "e s",
        "greatest": "s t</w>",
    }
    assert "2 pairs are the most frequent, with 9 each." in table.note
    text = html.unescape(table._repr_html_())
    assert 'title="e s: 9, merged next"' in text and 'title="s t</w>: 9, as frequent"' in text


@pytest.mark.parametrize("rule", ["smallest", "first", "greatest"])
def test_counts_and_steps_are_those_of_the_training(rule):
    corpus = [random.Random(seed).choices("abc ", k=40) for seed in range(5)]
    corpus = ["".join(text) for text in corpus]
    options = {"tie_break": rule, "pattern": "gpt2", "vocabulary_size": 270}
    run = show.training(corpus, **options)
    tokenizer = Tokenizer(corpus, method="bpe", engine="reference", **options)
    assert [step.pair for step in run.steps] == [tuple(pair) for pair in tokenizer.merges.tolist()]
    assert [step.count for step in run.steps] == tokenizer.merge_counts.tolist()
    assert [step.id for step in run.steps] == list(range(256, 256 + len(run)))
    cut = Counter(piece for text in corpus for piece in reference.split(text, "gpt2"))
    for number, step in enumerate(run.steps):
        smaller, larger = (tokenizer.truncated(256 + number + more) for more in (0, 1))
        table = run.pair_table(number)
        counts = Counter()
        changed = []
        for piece, weight in cut.items():
            ids = smaller.encode_bytes(piece)
            counts.update(dict.fromkeys(pairwise(ids), 0))
            for pair in pairwise(ids):
                counts[pair] += weight
            if larger.encode_bytes(piece) != ids:
                changed.append(weight)
        assert table.counts == counts
        assert table.winner == step.pair and table.highest == step.count
        assert step.tied == len(table.tied) == list(counts.values()).count(step.count)
        assert (step.changed, step.occurrences) == (len(changed), sum(changed))


def test_counts_can_be_given_in_three_forms():
    many = [text for text, count in WORDS.items() for _ in range(count)]
    counted = PieceCounts(many, pattern="words")
    for corpus in (WORDS, many, counted):
        run = show.training(corpus, method="word", limit=4)
        assert [step.count for step in run.steps] == [9, 9, 7, 6]
        assert "More merges follow" in run._repr_html_()
    assert "More merges follow" not in show.training(WORDS, method="word")._repr_html_()


def test_each_step_of_a_training_is_a_row():
    run = show.training(WORDS, method="word")
    page = Page(run._repr_html_())
    rows = sum(tag == "tr" for tag, _ in page.elements)
    assert rows - 1 == len(run) == 13 == len(str(run).splitlines())
    assert str(run).splitlines()[0] == "     21          9  e + s = es"


def test_a_table_of_pairs_shows_its_counts():
    table = show.pair_table(TEXT, merges=10, pattern="gpt2", vocabulary_size=300)
    lefts, rights, counts = table.array()
    assert lefts == sorted(lefts) and rights == sorted(rights)
    assert counts.shape == (len(lefts), len(rights)) == (24, 24)
    for row, left in enumerate(lefts):
        for column, right in enumerate(rights):
            assert counts[row, column] == table.counts.get((left, right), 0)
    left, right = table.winner
    assert counts[lefts.index(left), rights.index(right)] == table.highest == counts.max()
    page = Page(table._repr_html_())
    cells = [data for data, around in page.texts if any(tag == "td" for tag, _ in around)]
    assert [int(cell.replace(",", "")) for cell in cells] == counts[counts > 0].tolist()
    assert f"{len(cells):,} of {len(table.counts):,} pairs are shown." in table._repr_html_()


def test_a_table_without_pairs():
    table = show.pair_table("a")
    assert (table.counts, table.winner, table.tied) == ({}, None, [])
    assert "There are no pairs." in table._repr_html_()


def test_wrong_trainings_are_told():
    with pytest.raises(ValueError, match="the byte method merges nothing"):
        show.training("a", method="byte")
    with pytest.raises(ValueError, match="count of 'a'.*0"):
        show.training({"a": 0}, method="word")
    with pytest.raises(ValueError, match="at most 1,000,000.*PieceCounts"):
        show.training({"a": 2_000_000})
    with pytest.raises(ValueError, match="merges"):
        show.pair_table("ab", merges=7)


def test_a_tokenizer_at_a_glance():
    text = "".join(data + " " for data, _ in Page(marked._repr_html_()).texts)
    assert "method bpe ids 300 merges 40 tie rule smallest" in text
    assert "special <|end|>, <b>, BOS, EOS" in text
    assert f"learned from {len(TEXT.encode()):,} bytes, 1 document engine fast" in text
    assert "any two pieces that join to a piece" in TOKENIZERS["ranks"]._repr_html_()


# Plots, whose numbers are computed anew here


def test_merge_counts():
    corpus = "the lowest of the low " * 5
    tokenizer = Tokenizer(corpus, method="bpe", vocabulary_size=262)
    ranks, counts = show.merge_counts(tokenizer)
    _, expected = reference.train(
        [corpus.encode()], None, [bytes([byte]) for byte in range(256)], 6
    )
    assert ranks.tolist() == [1, 2, 3, 4, 5, 6] and counts.tolist() == expected
    with pytest.raises(ValueError, match="no counts"):
        show.merge_counts(byte)


def test_piece_lengths():
    lengths, numbers = show.piece_lengths(marked)
    special = {b"<|end|>", b"<b>", b""}
    expected = Counter(len(piece) for piece in marked.vocabulary if piece not in special)
    assert dict(zip(lengths.tolist(), numbers.tolist())) == {
        length: expected[length] for length in range(1, max(expected) + 1)
    }
    lengths, numbers = show.piece_lengths(word)
    assert numbers.tolist() == [20, 3, 1]  # twenty letters; lo, we, st; low


def test_compression_is_that_of_smaller_trainings():
    corpus = ["the lowest of the low", "the newest of the new"]
    tokenizer = Tokenizer(corpus, method="bpe", vocabulary_size=269, pattern="gpt2")
    sizes, values = show.compression(tokenizer, iter(corpus), [256, 260, 269])
    for size, value in zip(sizes.tolist(), values.tolist()):
        smaller = Tokenizer(
            corpus, method="bpe", vocabulary_size=size, pattern="gpt2", engine="reference"
        )
        count = sum(len(smaller.encode(text)) for text in corpus)
        assert value == sum(map(len, corpus)) / count
    sizes, values = show.compression(tokenizer, corpus)
    assert (sizes[0], sizes[-1]) == (256, 269) and values[0] == 1
    assert sizes.tolist() == sorted({*sizes.tolist()})
    with pytest.raises(ValueError, match="imported"):
        show.compression(TOKENIZERS["ranks"], corpus)


CORPORA = {"German": "größer und größer", "Chinese": ["你好", "你好 你好"], "$x$": "the low"}


def test_languages():
    found = show.languages({"bpe": bpe, "byte": byte}, CORPORA)
    for measure, unit in (("bytes_per_token", "bytes"), ("fertility", "words")):
        values = found.values(measure)
        for row, tokenizer in enumerate((bpe, byte)):
            for column, corpus in enumerate(CORPORA.values()):
                texts = [corpus] if isinstance(corpus, str) else corpus
                tokens = sum(len(tokenizer.encode(text)) for text in texts)
                size = sum(
                    len(text.encode()) if unit == "bytes" else len(text.split()) for text in texts
                )
                expected = size / tokens if unit == "bytes" else tokens / size
                assert values[row, column] == pytest.approx(expected)
    assert found.languages == [*CORPORA] and found.tokenizers == ["bpe", "byte"]
    with pytest.raises(ValueError, match="loss"):
        found.values("loss")
    with pytest.raises(TypeError, match="mapping"):
        show.languages([bpe], CORPORA)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    assert pyplot.get_fignums() == []


NAMED = {"a": bpe, "b": byte}
SHORT = {"$x$": "low", "y": "of"}


def plots(new_axes=lambda: None):
    table = show.pair_table(WORDS, method="word")
    return {
        "merge counts": show.plot_merge_counts({"$a$": bpe, "b": loose}, ax=new_axes()),
        "one": show.plot_merge_counts(bpe, ax=new_axes()),
        "lengths": show.plot_piece_lengths(bpe, ax=new_axes()),
        "compression": show.plot_compression(bpe, TEXT, [256, 300, 340], ax=new_axes()),
        "languages": show.plot_languages(NAMED, SHORT, ax=new_axes()),
        "pairs": show.plot_pair_table(table, ax=new_axes()),
    }


def test_plots_draw_the_numbers(pyplot, tmp_path):
    drawn = plots()
    (ax,) = drawn["merge counts"].axes
    for line, tokenizer in zip(ax.get_lines(), (bpe, loose)):
        assert line.get_ydata().tolist() == tokenizer.merge_counts.tolist()
        assert line.get_xdata().tolist() == list(range(1, len(tokenizer.merges) + 1))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (ax,) = drawn["lengths"].axes
    assert [bar.get_height() for bar in ax.patches] == show.piece_lengths(bpe).pieces.tolist()
    (ax,) = drawn["compression"].axes
    (line,) = ax.get_lines()
    assert line.get_xdata().tolist() == [256, 300, 340]
    assert line.get_ydata().tolist() == [
        metrics.measure(bpe.truncated(size), TEXT).bytes_per_token for size in (256, 300, 340)
    ]
    (ax,) = drawn["languages"].axes
    values = show.languages(NAMED, SHORT).values()
    assert [bar.get_width() for bar in ax.patches] == values.ravel().tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$x$", "y"]
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    (ax,) = drawn["pairs"].axes
    _, _, counts = show.pair_table(WORDS, method="word").array()
    assert [int(text.get_text()) for text in ax.texts] == counts[counts > 0].tolist()
    for name, figure in drawn.items():
        (ax,) = figure.axes
        assert ax.get_title(loc="left") and ax.get_xlabel()
        figure.savefig(tmp_path / f"{name}.png")


@pytest.mark.parametrize(("corpus", "merges"), [("aaa", 0), ("a", 0), ("newest lowest " * 9, 9)])
def test_nothing_of_a_heat_map_is_cut_or_overlaps(pyplot, corpus, merges):
    figure = show.plot_pair_table(show.pair_table(corpus, merges=merges, pattern="gpt2"))
    (ax,) = figure.axes
    figure.draw_without_rendering()
    whole = figure.bbox
    for text in [ax.title, ax._left_title, *ax.get_xticklabels(), *ax.get_yticklabels()]:
        box = text.get_window_extent()
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1, text
        assert whole.y0 <= box.y0 and box.y1 <= whole.y1, text
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in zip(boxes, boxes[1:]))


def test_one_merge_is_seen(pyplot):
    (ax,) = show.plot_merge_counts(bpe.truncated(257)).axes
    (line,) = ax.get_lines()
    assert (len(line.get_xdata()), line.get_marker()) == (1, "o")
    (ax,) = show.plot_merge_counts(bpe).axes
    assert ax.get_lines()[0].get_marker() == "None"


def test_plots_draw_on_axes_that_are_given(pyplot):
    given = []

    def new_axes():
        given.append(pyplot.subplots()[1])
        return given[-1]

    assert [*plots(new_axes).values()] == [ax.figure for ax in given]
    pyplot.close("all")


def test_plots_need_tokenizers():
    with pytest.raises(ValueError, match="no tokenizers"):
        show.plot_compression({}, "a")
    with pytest.raises(ValueError, match="sizes must hold one size at least"):
        show.plot_compression(bpe, "a", [])
    with pytest.raises(TypeError, match="mapping from name to tokenizer, not list"):
        show.plot_merge_counts([bpe])


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape('pip install "tokbpe[plot]"')):
        show.plot_merge_counts(bpe)


@pytest.mark.parametrize(
    ("sizes", "ticks"),
    [([256, 340, 1200], [256, 512, 1024]), ([300, 400], [300, 400]), ([259, 512], [512])],
)
def test_sizes_are_marked_by_powers_of_two(sizes, ticks):
    from tokbpe.show.plots import powers_of_two

    assert powers_of_two(sizes) == ticks


# The terminal


@pytest.fixture
def file(tmp_path):
    word.save(tmp_path / "word.tokbpe")
    return str(tmp_path / "word.tokbpe")


class Terminal:
    def __init__(self, is_one):
        self.is_one = is_one

    def isatty(self):
        return self.is_one


@pytest.mark.parametrize(
    ("variables", "is_terminal", "colored"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_when_a_terminal_has_colors(variables, is_terminal, colored, monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert terminal.wanted(Terminal(is_terminal)) is colored
    assert not terminal.wanted(None)


def test_the_command_shows_tokens_steps_and_trees(file, capsys):
    assert cli.main(["show", file, "lowest low"]) == 0
    assert capsys.readouterr() == ("[lo][we][st</w>][low</w>]\n4 tokens\n", "")
    assert cli.main(["show", file, "lowest low", "--limit", "2"]) == 0
    assert capsys.readouterr().out.startswith("[lo][we] and 2 more\n4 tokens, of which")
    assert cli.main(["show", file, "lowest", "--steps"]) == 0
    assert capsys.readouterr().out == f"{show.merge_steps(word, 'lowest')}\n"
    assert cli.main(["show", file, "lowest", "--tree"]) == 0
    assert capsys.readouterr().out == f"{show.merge_tree(word, 'lowest')}\n"


def test_the_command_tells_errors(file, capsys):
    assert cli.main(["show", file, "a" * 3000, "--steps"]) == 1
    assert "3,000 symbols" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["show", file, "a", "--steps", "--tree"])


def test_colors_in_a_terminal(file, capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert cli.main(["show", file, "lowest", "--color", "always"]) == 0
    text = capsys.readouterr().out
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == "lowest</w>\n3 tokens\n"
    backgrounds = [
        "#" + "".join(f"{int(part):02x}" for part in found)
        for found in re.findall(r"48;2;(\d+);(\d+);(\d+)m", text)
    ]
    assert backgrounds == list(colors.TINTS[:3])


@pytest.mark.parametrize("name", ["xterm", "linux", ""])
def test_neighbors_are_told_apart_by_few_colors(name, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.setenv("TERM", name)
    text = terminal.colored(show.tokens(byte, "abcdefgh"))
    found = re.findall(r"\x1b\[([0-9;]+)m(.)\x1b\[0m", text)
    assert [data for _, data in found] == [*"abcdefgh"]
    assert all(one != other for (one, _), (other, _) in zip(found, found[1:]))


def test_where_there_are_no_colors_there_are_brackets(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.colored(show.tokens(byte, "ab")) == "[a][b]"


def test_a_text_cannot_command_the_terminal(capsys):
    pytest.importorskip("rich")
    text = "\x1b[31mred [bold]\x07\n\ttab"
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.colored(show.tokens(byte, text)))
    assert shown == "␛[31mred·[bold]␇↵\n⇥tab"


def test_without_rich_the_extra_is_named(file, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert cli.main(["show", file, "lowest", "--color", "always"]) == 1
    output = capsys.readouterr()
    assert output.out == "" and 'pip install "tokbpe[terminal]"' in output.err
    monkeypatch.setattr(terminal, "wanted", lambda stream: True)
    assert cli.main(["show", file, "lowest"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("[lo][we][st</w>]\n")
    assert 'pip install "tokbpe[terminal]"' in output.err


def test_a_real_vocabulary(data):
    tokenizer = Tokenizer.from_tiktoken(data / "vocab" / "cl100k_base.tiktoken")
    text = TEXT[:200] + " lowest tokenization 12345"
    checked_steps(tokenizer, text)
    page = Page(show.tokens(tokenizer, text)._repr_html_())
    assert bytes_in_titles(page) == text.encode()
