"""The limits of numbers: what is right up to them, and refused by name beyond."""

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from test_counting import heavy
from tokbpe import PieceCounts, StreamDecoder, Tokenizer
from tokbpe.vocabulary import Vocabulary

BYTES = tuple(bytes([byte]) for byte in range(256))
HIGHEST_COUNT = 2**63 - 1
HIGHEST_ID = 2**32 - 2
ENGINES = pytest.mark.parametrize("name", ["fast", "reference"])

core = pytest.mark.core


# Counts


@core
@ENGINES
def test_a_count_is_exact_up_to_63_bits(name, tmp_path):
    trained = Tokenizer.from_counts(
        heavy({b"ab": HIGHEST_COUNT}, name),
        vocabulary_size=257,
        minimum_pair_frequency=HIGHEST_COUNT,
        engine=name,
    )
    trained.save(tmp_path / "saved")
    for tokenizer in (
        trained,
        Tokenizer.load(tmp_path / "saved", engine=name),
        Tokenizer.from_state(trained.state(), engine=name),
    ):
        assert tokenizer.merge_counts.dtype == np.uint64
        assert tokenizer.merge_counts.tolist() == [HIGHEST_COUNT]
    for wrong in (HIGHEST_COUNT + 1, 2**64):
        with pytest.raises(ValueError, match=f"must be from 1 to {HIGHEST_COUNT}, not {wrong}"):
            Tokenizer("ab", method="bpe", minimum_pair_frequency=wrong, engine=name)


@core
@ENGINES
def test_counts_are_added_up_to_63_bits(name, tmp_path):
    most = heavy({b"ab": HIGHEST_COUNT - 1}, name)
    one = heavy({b"ab": 1}, name)
    assert dict(most + one) == {b"ab": HIGHEST_COUNT}
    (most + one).save(tmp_path / "counts")
    assert dict(PieceCounts.load(tmp_path / "counts", engine=name)) == {b"ab": HIGHEST_COUNT}
    with pytest.raises(ValueError, match=f"b'ab' would pass {HIGHEST_COUNT}"):
        most + one + one
    with pytest.raises(ValueError, match=f"b'ab' would pass {HIGHEST_COUNT}"):
        (most + one).add(["ab"])


@core
@pytest.mark.parametrize("tie_break", ["smallest", "first", "greatest"])
def test_counts_times_lengths_up_to_63_bits(engine, tie_break):
    train = partial(engine.train, alphabet=BYTES, merges_wanted=1, tie_break=tie_break)
    weight = HIGHEST_COUNT // 7
    assert 7 * weight == HIGHEST_COUNT
    merges, counts = train([b"a" * 8], [weight])
    assert (np.array(merges).tolist(), np.array(counts).tolist()) == ([[97, 97]], [7 * weight])
    for rows, weights in (
        ([b"a" * 8], [weight + 1]),
        ([b"a" * 9], [weight]),
        ([b"x", b"a" * 8, b"bc"], [HIGHEST_COUNT, weight, 1]),
    ):
        with pytest.raises(ValueError, match=rf"with sequence {len(rows) - 1} .* pass 2\*\*63 - 1"):
            train(rows, weights)


@core
@ENGINES
@pytest.mark.parametrize("factor", [2**32 - 1, 2**32, 2**33 + 1, 2**50])
@pytest.mark.parametrize("tie_break", ["smallest", "first"])
def test_a_corpus_beyond_4_gib(name, factor, tie_break):
    """Repeated so often that it has more than 2**32 places, it gives the same merges."""
    once_counted = dict(Counter(b"low lower lowest newer wider low new lower".split()))
    counts = heavy(once_counted, name)
    many = heavy({piece: count * factor for piece, count in once_counted.items()}, name)
    options = {"vocabulary_size": 268, "tie_break": tie_break, "engine": name}
    once = Tokenizer.from_counts(counts, minimum_pair_frequency=1, **options)
    often = Tokenizer.from_counts(many, minimum_pair_frequency=factor, **options)
    assert len(once.merges) > 10
    assert many.total() > 2**32
    assert often.merges.tolist() == once.merges.tolist()
    assert often.merge_counts.tolist() == [count * factor for count in once.merge_counts.tolist()]


# Ids


def tokenizer_with(name, **fields):
    return Tokenizer.from_vocabulary(Vocabulary("bpe", BYTES, **fields), engine=name)


@core
@ENGINES
@pytest.mark.parametrize("kind", ["special_tokens", "added_tokens"])
def test_the_highest_id_of_a_token(name, kind, tmp_path):
    made = tokenizer_with(name, **{kind: {"<x>": HIGHEST_ID}})
    made.save(tmp_path / "saved")
    for tokenizer in (
        made,
        Tokenizer.load(tmp_path / "saved", engine=name),
        Tokenizer.from_state(made.state(), engine=name),
    ):
        encode = partial(tokenizer.encode, allowed_special="all")
        assert encode("a<x>b") == [97, HIGHEST_ID, 98]
        ids, _ = tokenizer.encode_batch_arrays(["a<x>b"], allowed_special="all")
        assert ids.tolist() == [97, HIGHEST_ID, 98]
        assert tokenizer.vocab_size == HIGHEST_ID + 1
        assert [*tokenizer.items()][-1] == (HIGHEST_ID, b"<x>")
        assert tokenizer.token_to_id("<x>") == HIGHEST_ID


@core
@ENGINES
def test_the_highest_id_is_decoded(name):
    """By a table that has no room for gaps."""
    tokenizer = tokenizer_with(name, special_tokens={"<x>": HIGHEST_ID})
    assert tokenizer.decode([97, HIGHEST_ID]) == "a<x>"
    assert tokenizer.decode_bytes(np.array([HIGHEST_ID, 98], np.uint32)) == b"<x>b"
    assert tokenizer.id_to_piece(HIGHEST_ID) == b"<x>"
    assert tokenizer.encode_with_offsets("a")[0] == [97]
    stream = StreamDecoder(tokenizer)
    assert [stream.put(97), stream.put(HIGHEST_ID), stream.finish()] == ["a", "<x>", ""]
    with pytest.raises(ValueError, match=f"id {HIGHEST_ID - 1} at position 1"):
        tokenizer.decode([97, HIGHEST_ID - 1])


@core
@ENGINES
def test_what_is_made_for_all_ids_is_refused(name, tmp_path):
    tokenizer = tokenizer_with(name, special_tokens={"<x>": HIGHEST_ID})
    with pytest.raises(ValueError, match=r"4294967295 ids is too large .* use \.items\(\)"):
        tokenizer.vocabulary  # noqa: B018
    with pytest.raises(ValueError, match="uint16 holds 0 to 65535"):
        tokenizer.encode_batch_arrays(["a"], dtype="uint16")
    trained = Tokenizer("low lower", method="bpe", vocabulary_size=257, engine=name)
    far = replace(trained._vocabulary, reserved={"EOS": 10**8})
    with pytest.raises(ValueError, match="the highest id is 100000000, and 16777216 ids without"):
        Tokenizer.from_vocabulary(far, name).extended("hello hello", 10**8 + 2)
    assert not [*tmp_path.iterdir()]


@core
@ENGINES
def test_some_gaps_are_no_matter(name):
    id = 256 + 10**5
    tokenizer = tokenizer_with(name, reserved={"EOS": id})
    assert tokenizer.decode([97, id, 98]) == "a<|EOS|>b"


@core
@ENGINES
@pytest.mark.parametrize("kind", ["special_tokens", "added_tokens", "reserved"])
@pytest.mark.parametrize("id", [HIGHEST_ID + 1, HIGHEST_ID + 2, 2**64])
def test_an_id_beyond(name, kind, id):
    with pytest.raises(ValueError, match=f"must be from 0 to {HIGHEST_ID}, not {id}"):
        tokenizer_with(name, **{kind: {"X": id}})


@core
@ENGINES
def test_the_highest_id_of_a_merge(name):
    merges = np.array([[97, 98]], np.uint32)
    highest = np.array([HIGHEST_ID], np.uint32)
    tokenizer = tokenizer_with(name, merges=merges, merge_ids=highest)
    assert tokenizer.encode("cab") == [99, HIGHEST_ID]
    assert tokenizer.encode_array("cab" * 9)[-1] == HIGHEST_ID
    with pytest.raises(ValueError, match=f"from 0 to {HIGHEST_ID}, not {HIGHEST_ID + 1}"):
        tokenizer_with(name, merges=merges, merge_ids=highest + np.uint32(1))


# Sizes


@core
@ENGINES
def test_the_largest_vocabulary_size(name):
    with pytest.warns(UserWarning, match=f"gave 257 of the {2**32 - 1} ids wanted"):
        tokenizer = Tokenizer("abab", method="bpe", vocabulary_size=2**32 - 1, engine=name)
    assert tokenizer.vocab_size == 257
    with pytest.raises(ValueError, match="vocabulary_size must be from 256 to 4294967295"):
        Tokenizer("abab", method="bpe", vocabulary_size=2**32, engine=name)


@core
@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
def test_ids_that_are_read_part_by_part(dtype):
    tokenizer = Tokenizer.from_bytes()
    ids = (np.arange(2_100_000) % 251).astype(dtype)
    assert tokenizer.decode_bytes(ids) == ids.astype(np.uint8).tobytes()
    assert tokenizer.decode_bytes(ids[::3]) == ids[::3].astype(np.uint8).tobytes()
    for position in (999_999, 1_000_000, 2_099_999):
        wrong = ids.copy()
        wrong[position] = 300
        with pytest.raises(ValueError, match=f"id 300 at position {position} is not from 0 to 255"):
            tokenizer.decode_bytes(wrong)
