"""Exact values of the contract, on both engines. The points are those of `tokbpe.reference`."""

from collections import Counter
from itertools import chain, repeat

import numpy as np
import pytest

from cases import as_lists, vocabulary
from growth import growth
from strategies import BYTES, GPT2_BYTES, noise
from tokbpe import fast, reference

pytestmark = pytest.mark.core

HIGHEST_COUNT = 2**63 - 1
TIE_BREAKS = ["smallest", "first", "greatest"]


def trained(engine, *arguments):
    """Merges and their counts, as lists."""
    return as_lists(engine.train(*arguments))


def learned(engine, sequences, weights, *options):
    """The learned pieces, in the order of the merges."""
    merges, _ = trained(engine, sequences, weights, BYTES, *options)
    return vocabulary(BYTES, merges)[256:]


# Training: points 5 to 8


@pytest.mark.parametrize(
    ("text", "tie_break", "pieces"),
    [
        ("aaabdaaabac", "smallest", ["aa", "ab", "aaab"]),
        ("aaabdaaabac", "first", ["aa", "aaa", "aaab"]),
        ("aaabdaaabac", "greatest", ["aa", "aaa", "aaab"]),
        ("bbbaaaddddcccc", "smallest", ["cc", "dd", "aa", "bb"]),
        ("bbbaaaddddcccc", "first", ["dd", "cc", "bb", "aa"]),
        ("bbbaaaddddcccc", "greatest", ["dd", "cc", "bb", "aa"]),
        ("aaabbbccccdddd", "smallest", ["cc", "dd", "aa", "bb"]),
        ("aaabbbccccdddd", "first", ["cc", "dd", "aa", "bb"]),
        ("aaabbbccccdddd", "greatest", ["dd", "cc", "bb", "aa"]),
        ("aaaaaaa", "smallest", ["aa", "aaaa", "aaa", "aaaaaaa"]),
        ("aaaaaaa", "first", ["aa", "aaaa", "aaaaaa", "aaaaaaa"]),
        ("aaaaaaa", "greatest", ["aa", "aaaa", "aaaaaa", "aaaaaaa"]),
    ],
)
def test_first_merges(engine, text, tie_break, pieces):
    found = learned(engine, [text.encode()], None, len(pieces), 1, tie_break)
    assert found == [piece.encode() for piece in pieces]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_minimum_pair_frequency_is_two_by_default(engine, tie_break):
    run = [b"aaaaaaa"]
    assert learned(engine, run, None, 100, 2, tie_break) == [b"aa", b"aaaa"]
    assert learned(engine, run, None, 100) == [b"aa", b"aaaa"]


@pytest.mark.parametrize("minimum, merges", [(1, 3), (2, 1), (3, 1), (4, 0), (HIGHEST_COUNT, 0)])
def test_minimum_pair_frequency(engine, minimum, merges):
    # `aa` stands three times, then `aa aa` once, then the rest of the run.
    assert trained(engine, [b"aaaa", b"bc"], None, BYTES, 9, minimum)[1] == [3, 1, 1][:merges]


@pytest.mark.parametrize("length", [2, 3, 4, 5, 64, 65, 1000])
def test_a_run_of_n_counts_n_minus_one(engine, length):
    assert engine.count_pairs([b"a" * length], [1]) == {(97, 97): length - 1}
    assert trained(engine, [b"a" * length], None, BYTES, 1, 1) == ([(97, 97)], [length - 1])


def test_overlapping_pairs_are_replaced_from_left_to_right(engine):
    assert engine.merge_pair([1, 1, 1], (1, 1), 2) == [2, 1]
    assert engine.merge_pair([1, 1, 1, 1], (1, 1), 2) == [2, 2]
    assert engine.merge_pair([1, 2, 1, 2, 1], (1, 2), 3) == [3, 3, 1]


def test_the_counts_are_those_at_each_turn(engine):
    merges, counts = trained(engine, [b"low", b"lower"], [5, 2], BYTES, 10, 2)
    assert merges == [(108, 111), (256, 119), (101, 114), (257, 258)]
    assert counts == [7, 7, 2, 2]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_no_merge_reaches_beyond_a_sequence(engine, tie_break):
    assert learned(engine, [b"a", b"b"] * 50, None, 10, 1, tie_break) == []
    assert learned(engine, [b"ab", b"ab"], None, 10, 1, tie_break) == [b"ab"]
    counts = engine.count_pieces(["ab" * 3, "", "b" * 3, "a"])
    pieces = {
        "smallest": [b"ab", b"bb", b"abab", b"bbb", b"ababab"],
        "first": [b"ab", b"abab", b"bb", b"ababab", b"bbb"],
        "greatest": [b"ab", b"bb", b"abab", b"bbb", b"ababab"],
    }
    assert learned(engine, counts, counts.values(), 10, 1, tie_break) == pieces[tie_break]


def test_ties_by_the_order_of_ids(engine):
    """`b"!"` stands before space in the order of GPT-2's printable characters, not in bytes."""
    rows = [b"!!", b"  "]
    in_gpt2_ids = [[GPT2_BYTES.index(bytes([byte])) for byte in row] for row in rows]
    assert trained(engine, rows, None, BYTES, 1, 1)[0] == [(32, 32)]
    assert trained(engine, in_gpt2_ids, None, GPT2_BYTES, 1, 1)[0] == [(0, 0)]


def test_ties_by_the_first_place_as_the_sequences_now_stand(engine):
    # At first `bc` stands before `de`. Merging `ab` takes that place of it away, and then both
    # stand twice.
    rows = [b"abc", b"de", b"bc", b"bc", b"de", b"ab", b"ab", b"ab"]
    assert learned(engine, rows, None, 3, 2, "first") == [b"ab", b"de", b"bc"]
    assert learned(engine, rows, None, 3, 2, "smallest") == [b"ab", b"bc", b"de"]


def test_ties_by_the_strings(engine):
    """`b"b"` is greater than `b"aa"`, though `b"aa"` has the greater id."""
    assert learned(engine, [b"aaaa", b"bc", b"bc"], None, 4, 1, "greatest") == [
        b"aa", b"bc", b"aaaa",
    ]  # fmt: skip
    # Of equal left strings the greater right one is merged.
    assert learned(engine, [b"ab", b"ac"], None, 1, 1, "greatest") == [b"ac"]


def test_words_with_an_end_marker(engine):
    """The worked example of character BPE: `</w>` marks a word's last character."""
    words = Counter(["low", "low", "lower", "newest", "widest"])
    forms = {form for word in words for form in [*word[:-1], word[-1] + "</w>"]}
    seen = {char for word in words for char in word}
    both = sorted(seen | {char + "</w>" for char in seen}, key=lambda f: (f[0], len(f)))
    alphabet = [b"<UNK>"] + [form.encode() for form in both]
    assert len(alphabet) == 21 and forms <= set(both)
    rows = [
        [alphabet.index(form.encode()) for form in [*word[:-1], word[-1] + "</w>"]]
        for word in words
    ]
    merges, counts = trained(engine, rows, list(words.values()), alphabet, 79, 1, "first")
    pieces = vocabulary(alphabet, merges)
    assert pieces[21:25] == [b"lo", b"low</w>", b"we", b"st</w>"]
    assert counts[:4] == [3, 2, 2, 2]
    assert len(pieces) == 34


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_a_string_can_be_learned_that_the_alphabet_has(engine, tie_break):
    alphabet = [b"a", b"aa", b"b"]
    merges, _ = trained(engine, [[0, 0, 2], [0, 0], [1, 2]], None, alphabet, 1, 1, tie_break)
    assert merges == [(0, 0)]


# Weights


def test_counts_beyond_32_bits(engine):
    parts = [Counter({b"ab": 2**31 + 5, b"cd": 10}), Counter({b"ab": 2**32 + 1})]
    for counts in [*parts, parts[0] + parts[1]]:
        merges, found = trained(engine, list(counts), list(counts.values()), BYTES, 1)
        assert (merges, found) == ([(97, 98)], [counts[b"ab"]])


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_sums_up_to_63_bits(engine, tie_break):
    rows, weights = [b"ab", b"xab", b"cd"], [HIGHEST_COUNT // 2, HIGHEST_COUNT // 4, 1]
    weights[2] = HIGHEST_COUNT - weights[0] - 2 * weights[1]
    total = weights[0] + weights[1]
    assert trained(engine, rows, weights, BYTES, 1, 1, tie_break) == ([(97, 98)], [total])
    assert trained(engine, [b"ab"], [HIGHEST_COUNT], BYTES, 1)[1] == [HIGHEST_COUNT]
    weights[2] += 1
    message = r"with sequence 2 the pair counts of this corpus could pass 2\*\*63 - 1"
    with pytest.raises(ValueError, match=message):
        trained(engine, rows, weights, BYTES, 1, 1, tie_break)


def test_a_symbol_alone_is_in_no_pair(engine):
    rows, weights = [b"a", b"", b"ab"], [HIGHEST_COUNT, HIGHEST_COUNT, HIGHEST_COUNT]
    assert trained(engine, rows, weights, BYTES, 1)[1] == [HIGHEST_COUNT]


def test_weights_that_are_none(engine):
    for wrong, error in [(0, ValueError), (-1, ValueError), (2**63, ValueError), (1.0, TypeError)]:
        with pytest.raises(error, match="the weight of sequence 1 must be"):
            engine.train([b"ab", b"ab"], [1, wrong], BYTES, 1)
    with pytest.raises(ValueError, match="2 sequences, but 1 weights"):
        engine.train([b"ab", b"ab"], [1], BYTES, 1)


# Symbols


def test_symbols_that_are_none(engine):
    for wrong in [2, -1, 2**32, 2**64]:
        with pytest.raises(ValueError, match=f"position 2 of sequence 1 holds {wrong}, which is"):
            engine.train([[0], [1, 0, wrong]], None, [b"a", b"b"], 1)
    with pytest.raises(ValueError, match="position 0 of sequence 0 holds 1, which is no id"):
        engine.train([[1, 0]], None, [b"a", None, b"b"], 1)
    for wrong in [1.0, True, "1"]:
        with pytest.raises(TypeError, match=f"position 1 of sequence 0 holds {wrong!r}"):
            engine.train([[0, wrong]], None, [b"a", b"b"], 1)


@pytest.mark.parametrize(
    "row",
    [
        b"\0\1\0\1",
        bytearray(b"\0\1\0\1"),
        (0, 1, 0, 1),
        np.array([0, 1, 0, 1], dtype=np.uint8),
        np.array([0, 1, 0, 1], dtype=np.int64),
        np.array([1, 0, 1, 0], dtype=">u2")[::-1],
        memoryview(b"\0\1\0\1"),
        {0: 0, 1: 1},
    ],
    ids=repr,
)
def test_sequences_of_any_kind(engine, row):
    merges, _ = trained(engine, [row, iter([0, 1, 0])], None, [b"a", b"b"], 1)
    assert merges == [(0, 1)]


def test_arguments_are_left_alone(engine):
    rows, weights, alphabet = [[1, 2, 1, 2], [2, 1]], [3, 4], [None, b"a", b"b"]
    engine.train(rows, weights, alphabet, 5, 1)
    assert rows == [[1, 2, 1, 2], [2, 1]]
    assert weights == [3, 4]
    assert alphabet == [None, b"a", b"b"]


# Options


def test_numbers_of_any_integer_type(engine):
    """Also of one that could not hold the ids."""
    expected = trained(engine, [b"ababab"], None, BYTES, 2, 1)
    for kind in [np.uint8, np.int8, np.int64, np.uint64]:
        assert trained(engine, [b"ababab"], None, BYTES, kind(2), kind(1)) == expected
    most = np.uint32(2**32 - 1)
    assert trained(engine, [b"ab"], None, BYTES, most, 1) == ([(97, 98)], [1])


def test_options_that_are_none(engine):
    with pytest.raises(ValueError, match="must be one of 'smallest', 'first', 'greatest', not 'l"):
        engine.train([b"ab"], None, BYTES, 1, 1, "last")
    with pytest.raises(ValueError, match=f"merges_wanted must be from 0 to {2**32 - 1}, not -1"):
        engine.train([b"ab"], None, BYTES, -1)
    with pytest.raises(ValueError, match=f"must be from 1 to {HIGHEST_COUNT}, not 0"):
        engine.train([b"ab"], None, BYTES, 1, 0)


def test_no_merges_wanted_or_none_possible(engine):
    assert trained(engine, [b"abab"], None, BYTES, 0) == ([], [])
    assert trained(engine, [], None, BYTES, 10) == ([], [])
    assert trained(engine, [], [], [], 10) == ([], [])


def test_steps_are_those_of_train_and_can_be_left(engine):
    steps = engine.train_steps([b"aaabdaaabac"], None, BYTES, 3, 1)
    assert next(steps) == ((97, 97), 4)
    assert next(steps) == ((97, 98), 2)
    steps.close()
    assert list(engine.train_steps([b"aaabdaaabac"], None, BYTES, 3, 1)) == [
        ((97, 97), 4),
        ((97, 98), 2),
        ((256, 257), 2),
    ]


def test_the_documented_examples(engine):
    assert engine.split("I like it", "gpt2") == [b"I", b" like", b" it"]
    assert engine.count_pieces(["low lower", "low"], "gpt2") == {b"low": 2, b" lower": 1}
    assert engine.count_pairs([[1, 1, 1, 2], [1, 2]], [1, 5]) == {(1, 1): 2, (1, 2): 6}
    assert engine.merge_pair([1, 1, 1, 2], (1, 1), 3) == [3, 1, 2]
    assert list(engine.train_steps([b"abab"], None, BYTES, 1)) == [((97, 98), 2)]


def test_progress(engine):
    seen = []
    text = noise("abcd", 1, 2_000).encode()
    merges, _ = engine.train(
        [text], None, BYTES, 100, 1, progress=lambda done, wanted: seen.append((done, wanted))
    )
    assert len(merges) == 100
    assert seen[-1] == (100, 100)
    assert all(wanted == 100 for _, wanted in seen)
    assert seen == sorted(seen)


def test_an_error_of_the_callers_own_comes_out_unchanged(engine):
    error = OSError("the disk is gone")

    def interrupted(*items):
        yield from items
        raise error

    def fails(*arguments):
        raise error

    table = engine.decoding_table(BYTES)
    for call in [
        lambda: engine.count_pieces(interrupted("ab", "cd")),
        lambda: engine.train(interrupted(b"ab"), None, BYTES, 1),
        lambda: engine.train([b"ab", interrupted(1, 2)], None, BYTES, 1),
        lambda: engine.train([b"ab"], interrupted(1), BYTES, 1),
        lambda: engine.train([b"abab"], None, BYTES, 1, progress=fails),
        lambda: engine.encoding_table(BYTES, interrupted((97, 98))),
        lambda: engine.decoding_table(interrupted(b"a")),
        lambda: engine.decode(interrupted(1, 2, 3), table),
    ]:
        with pytest.raises(OSError) as raised:
            call()
        assert raised.value is error


# Encoding and decoding: points 9 and 10


def test_one_merge(engine):
    merges, _ = engine.train([b"abababab"], None, BYTES, 1)
    table = engine.encoding_table(BYTES, merges)
    assert engine.encode(b"abababab", table) == [256, 256, 256, 256]
    assert engine.encode("zé", table) == [122, 0xC3, 0xA9]


def test_the_earliest_merge_first_and_the_leftmost_of_equals(engine):
    # `ab`, `bc`, `abc`: of `abc`, first `ab`, then `abc` as `a bc` is not possible any more.
    table = engine.encoding_table([b"a", b"b", b"c"], [(1, 2), (0, 1), (0, 3)])
    assert engine.encode("abc", table) == [5]
    assert engine.encode("abab", table) == [4, 4]
    assert engine.encode("ababc", table) == [4, 5]
    run = engine.encoding_table([b"a"], [(0, 0)])
    assert engine.encode("aaaaa", run) == [1, 1, 0]


def test_a_merge_that_its_halves_come_late_for(engine):
    """The longest piece is not taken where an earlier merge has used its bytes."""
    table = engine.encoding_table([b"a", b"b", b"c"], [(1, 2), (0, 1), (4, 2)])
    assert engine.encode("abc", table) == [0, 3]


def test_the_longest_match_is_not_what_is_taken(engine):
    merges = [(97, 98), (98, 99), (99, 100), (257, 258)]  # ab, bc, cd, bccd
    table = engine.encoding_table(BYTES, merges)
    assert engine.encode("abccd", table) == [256, 99, 258]
    assert engine.encode("bccd", table) == [259]


def test_ids_of_an_alphabet_with_gaps(engine):
    table = engine.encoding_table([None, b"b", None, b"a"], [(3, 1)])
    assert engine.encode("abb", table) == [4, 1]
    pieces = engine.decoding_table([None, b"b", None, b"a", b"ab"])
    assert engine.decode([4, 1], pieces) == b"abb"


def test_absent_byte(engine):
    table = engine.encoding_table([b"\n", b"a", b"b", b"c"], [])
    assert engine.encode("cab\n", table) == [3, 1, 2, 0]
    with pytest.raises(ValueError, match="byte 0x78 at byte position 3 is not in the vocabulary"):
        engine.encode("cabx\n", table)
    in_pieces = engine.encoding_table([b"a", b" "], [], "gpt2")
    with pytest.raises(ValueError, match="byte 0x62 at byte position 6 "):
        engine.encode("a aa ab b", in_pieces)


@pytest.mark.parametrize("pattern", [None, "gpt2", "[a-z]"])
def test_every_byte_and_every_pair_of_bytes_comes_back(engine, pattern):
    merges, _ = engine.train([bytes(range(256)) * 2], None, BYTES, 100)
    table = engine.encoding_table(BYTES, merges, pattern)
    pieces = engine.decoding_table(vocabulary(BYTES, as_lists((merges, []))[0]))
    for first in range(256):
        data = bytes(chain.from_iterable(zip(repeat(first, 256), range(256))))
        assert engine.decode(engine.encode(data, table), pieces) == data
    for byte in BYTES:
        assert engine.decode(engine.encode(byte, table), pieces) == byte


def test_every_pair_of_bytes_alone_comes_back():
    """All 65,536, each as a document of its own; of the reference, what it would take is time."""
    table, pieces = fast.encoding_table(BYTES, [], "cl100k"), fast.decoding_table(BYTES)
    for first in range(256):
        for second in range(256):
            pair = bytes([first, second])
            assert fast.decode(fast.encode(pair, table), pieces) == pair


def test_ids_that_are_none(engine):
    table = engine.decoding_table([b"a", None, b"c"])
    for ids, error, message in [
        ([0, 3], ValueError, "id 3 at position 1 is not from 0 to 2"),
        ([0, 0, -1], ValueError, "id -1 at position 2 is not from 0 to 2"),
        ([2**64], ValueError, f"id {2**64} at position 0 is not from 0 to 2"),
        ([0, 1], ValueError, "id 1 at position 1 is a gap"),
        ([0, 2.0], TypeError, "position 1 holds 2.0"),
        ([True], TypeError, "position 0 holds True"),
        (np.array([0.0]), TypeError, "position 0 holds"),
        (np.array([0, -1]), ValueError, "id -1 at position 1"),
        ("0", TypeError, "ids must be an iterable of whole numbers, not str"),
        (5, TypeError, "ids must be an iterable of whole numbers, not int"),
    ]:
        with pytest.raises(error, match=message):
            engine.decode(ids, table)


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", ">u2", "i4", "u4", "i8", ">i8", "u8"])
def test_ids_of_any_integer_type(engine, kind):
    table = engine.decoding_table([b"a", b"b", b"", b"\xff"])
    ids = np.array([0, 1, 2, 3, 3], dtype=kind)
    for same in [ids, ids[::-1][::-1], list(ids), tuple(ids.tolist()), iter(ids.tolist())]:
        assert engine.decode(same, table) == b"ab\xff\xff"


def test_results_are_plain(engine):
    """Ids are `int`, whatever the numbers that came in."""
    table = engine.encoding_table(BYTES, np.array([[97, 97]], dtype=np.uint32))
    assert {type(id) for id in engine.encode("aaa" * 100 + "é", table)} == {int}
    assert all(
        {type(left), type(right), type(count)} == {int}
        for (left, right), count in engine.train_steps(
            [np.array([1, 1, 1], dtype=np.uint8)], np.array([5]), BYTES, 3
        )
    )


def test_the_compiled_engine_gives_arrays():
    merges, counts = fast.train([b"abab"], None, BYTES, 5)
    assert (merges.dtype, merges.tolist()) == (np.uint32, [[97, 98]])
    assert (counts.dtype, counts.tolist()) == (np.uint64, [2])
    merges, counts = fast.train([], None, BYTES, 5)
    assert (merges.dtype, merges.shape) == (np.uint32, (0, 2))
    assert (counts.dtype, counts.shape) == (np.uint64, (0,))


def test_merges_of_one_engine_encode_on_the_other(engine):
    for trainer in [reference, fast]:
        merges, _ = trainer.train([b"abab"], None, BYTES, 1)
        assert engine.encode("abab", engine.encoding_table(BYTES, merges)) == [256, 256]


def test_merges_that_are_none(engine):
    alphabet = [b"a", None, b"b"]
    for merges, error, message in [
        ([(0, 2), (0, 4)], ValueError, "merge 1 joins 4, which is no id at that point"),
        ([(0, 1)], ValueError, "merge 0 joins 1, which is no id at that point"),
        ([(-1, 0)], ValueError, "merge 0 joins -1"),
        ([(0, 2), (2, 0), (0, 2)], ValueError, "merges 0 and 2 both join 0 and 2"),
        ([(0, 2.0)], TypeError, "merge 0 must join two ids, not 2.0"),
        ([(0, True)], TypeError, "merge 0 must join two ids, not True"),
    ]:
        with pytest.raises(error, match=message):
            engine.encoding_table(alphabet, merges)


# Texts: points 1 to 4


@pytest.mark.parametrize("pattern", [None, "gpt2", "[a-z]"])
@pytest.mark.parametrize(
    ("text", "start"),
    [("\ud83d", 0), ("é\udc80", 1), ("ab\ud83d\ude00", 2), ("a" * 100 + "\udfff", 100)],
)
def test_a_lone_surrogate_is_an_error_with_its_index(engine, text, start, pattern):
    table = engine.encoding_table(BYTES, [], pattern)
    for call in [
        lambda: engine.split(text, pattern),
        lambda: engine.count_pieces(text, pattern),
        lambda: engine.encode(text, table),
    ]:
        with pytest.raises(UnicodeEncodeError) as raised:
            call()
        assert (raised.value.start, raised.value.object) == (start, text)
    with pytest.raises(UnicodeEncodeError, match="document 2") as raised:
        engine.count_pieces(["ab", "cd", text], pattern)
    assert raised.value.start == start


def test_no_normalization(engine):
    table = engine.encoding_table(BYTES, [])
    assert engine.encode("e\u0301", table) == [0x65, 0xCC, 0x81]
    assert engine.encode("\u00e9", table) == [0xC3, 0xA9]


def test_bytes_that_are_no_utf8_are_pieces_of_their_own(engine):
    assert engine.split(b"\xff\xfehello", "cl100k") == [b"\xff\xfe", b"hello"]
    assert engine.split(b"a\xe4\xbd b", "gpt2") == [b"a", b"\xe4\xbd", b" b"]
    assert engine.split(b"a\xe4\xbd b") == [b"a\xe4\xbd b"]


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "llama3", "qwen2", "o200k"])
def test_what_white_space_is(engine, pattern):
    """A letter takes one character before it along: a space or, but for gpt2, any other."""
    for space in "\x85\u2028\u3000":
        assert engine.split(f"a{space}{space}b", pattern)[0] == b"a"
        assert engine.split(f"a {space}", pattern) == [b"a", f" {space}".encode()]
    for other in "\x1c\x1d\x1e\x1f\u180e\u200b\ufeff":
        assert engine.split(f"a {other}", pattern) == [b"a", f" {other}".encode()]
        assert engine.split(f"{other} {other}", pattern) == [
            other.encode(), f" {other}".encode(),
        ]  # fmt: skip


def test_contractions_ignore_case_as_the_patterns_say(engine):
    assert engine.split("I'LL don't", "cl100k") == [b"I", b"'LL", b" don", b"'t"]
    assert engine.split("it'ſ", "cl100k") == [b"it", "'ſ".encode()]
    assert engine.split("it'ſ", "gpt2") == [b"it", b"'", "ſ".encode()]
    assert engine.split("K\u212a\u017f\u0130\u0131k", "(?i:[a-z])") == [
        b"K", "\u212a".encode(), "\u017f".encode(), "\u0130\u0131".encode(), b"k",
    ]  # fmt: skip


def test_numbers_are_cut_as_the_patterns_say(engine):
    assert engine.split("1234567", "cl100k") == [b"123", b"456", b"7"]
    assert engine.split("1234567", "qwen2") == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
    assert engine.split("1234567", "gpt2") == [b"1234567"]
    assert engine.split("a\r\n\r\nb", "cl100k") == [b"a", b"\r\n\r\n", b"b"]


def test_text_that_no_match_covers_is_a_piece(engine):
    assert engine.split("a1b", "[a-z]") == [b"a", b"1", b"b"]
    assert engine.split("12ab34", "[a-z]+") == [b"12", b"ab", b"34"]
    assert engine.split("aab", "a*b|(?=b)") == [b"aab"]


def test_a_text_is_one_document_never_its_characters(engine):
    assert engine.count_pieces("abab") == {b"abab": 1}
    assert engine.count_pieces(b"abab") == {b"abab": 1}
    assert engine.count_pieces(["ab", "ab", b"ab", bytearray(b"b")]) == {b"ab": 3, b"b": 1}
    assert engine.count_pieces(["ab", ""]) == {b"ab": 1}
    assert engine.count_pieces("") == {}


def test_a_wrong_document_is_named_by_its_index(engine):
    with pytest.raises(TypeError, match="document 2 must be str or bytes, not int"):
        engine.count_pieces(["a", b"b", 3, "c"])


# Time, which the compiled engine promises


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("letters", ["ab", "abcdefgh"])
def test_training_on_one_long_word_is_not_quadratic(letters, tie_break):
    def train(word):
        fast.train([word], None, BYTES, 500, 1, tie_break)

    word = noise(letters, 1, 80_000).encode()
    assert growth(train, word[:20_000], word, 8) < 8


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_training_on_a_long_run_is_not_quadratic(tie_break):
    """A run takes so little that fresh memory, which only the long one needs, is half of it."""

    def train(word):
        fast.train([word], None, BYTES, 500, 1, tie_break)

    assert growth(train, b"a" * 100_000, b"a" * 1_600_000, 64) < 64


@pytest.mark.long
@pytest.mark.parametrize("unit", ["a", "ab", " ", "abcdefgh", "你好"])
def test_encoding_one_long_piece_is_not_quadratic(unit):
    text = unit * (160_000 // len(unit))
    merges, _ = fast.train([text.encode(), noise(unit, 2, 5_000).encode()], None, BYTES, 200)
    table = fast.encoding_table(BYTES, merges)

    assert growth(lambda text: fast.encode(text, table), text[: len(text) // 4], text, 8) < 8
