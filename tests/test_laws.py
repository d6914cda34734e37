"""What must be true of any right engine, and equality with an oracle that is neither of the two."""

from collections import Counter
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
from cases import bytes_of, vocabulary
from strategies import (
    BYTES,
    DOCUMENTS,
    GPT2_BYTES,
    HIGHEST_COUNT,
    PATTERNS,
    SEEDS,
    encoding_cases,
    lists,
    options,
    training_cases,
)
from tokbpe import fast, patterns, reference

pytestmark = pytest.mark.parametrize("engine", [reference, fast], ids=["reference", "fast"])


def trained(engine, case, **changed):
    """Merges and counts as lists."""
    merges, counts = engine.train(
        changed.get("sequences", case.sequences),
        changed.get("weights", case.weights),
        case.alphabet,
        changed.get("merges_wanted", case.options.merges_wanted),
        case.options.minimum_pair_frequency,
        changed.get("tie_break", case.options.tie_break),
    )
    return [(int(left), int(right)) for left, right in merges], [int(count) for count in counts]


def weights_of(case):
    return case.weights or [1] * len(case.sequences)


def can_be_counted(case):
    weights = weights_of(case)
    places = (weight * max(len(row) - 1, 0) for row, weight in zip(case.sequences, weights))
    return max(weights, default=1) <= HIGHEST_COUNT and sum(places) <= HIGHEST_COUNT


TRAININGS = training_cases().filter(can_be_counted)
BYTE_TRAININGS = TRAININGS.filter(
    lambda case: all(len(string) == 1 for string in case.alphabet if string)
)


@given(case=TRAININGS)
def test_training_is_the_oracles(engine, case):
    assume(sum(map(len, case.sequences)) < 200 and case.options.merges_wanted <= 30)
    expected = oracle.train(
        case.sequences,
        weights_of(case),
        case.alphabet,
        case.options.merges_wanted,
        case.options.minimum_pair_frequency,
        case.options.tie_break,
    )
    assert trained(engine, case) == expected


@given(case=encoding_cases())
def test_encoding_is_the_oracles(engine, case):
    table = engine.encoding_table(case.alphabet, case.merges)
    for text in case.texts:
        ids = [case.alphabet.index(bytes([byte])) for byte in text.encode()]
        assert engine.encode(text, table) == oracle.encode(ids, case.merges, len(case.alphabet))


@given(case=BYTE_TRAININGS)
def test_training_leaves_its_text_as_the_encoder_would(engine, case):
    merges, _ = trained(engine, case)
    table = engine.encoding_table(case.alphabet, merges)
    for row in case.sequences:
        text = b"".join(case.alphabet[id] for id in row)
        assert engine.encode(text, table) == oracle.replay(row, merges, len(case.alphabet))


@given(case=BYTE_TRAININGS)
def test_learned_pieces_encode_to_themselves(engine, case):
    merges, _ = trained(engine, case)
    table = engine.encoding_table(case.alphabet, merges)
    for id, piece in enumerate(vocabulary(case.alphabet, merges)):
        if piece is not None:
            assert engine.encode(piece, table) == [id]


@given(case=BYTE_TRAININGS)
def test_trained_pieces_also_merge_by_their_rank(engine, case):
    assume(sum(map(len, case.sequences)) < 300)
    merges, _ = trained(engine, case)
    table = engine.encoding_table(case.alphabet, merges)
    pieces = vocabulary(case.alphabet, merges)
    for row in case.sequences:
        ids = engine.encode(b"".join(case.alphabet[id] for id in row), table)
        assert ids == oracle.encode_by_rank(row, pieces)


@given(case=TRAININGS)
def test_counts_are_those_at_their_turn_and_never_rise(engine, case):
    merges, counts = trained(engine, case)
    rows = [oracle.to_text(row) for row in case.sequences]
    for new_id, (pair, count) in enumerate(zip(merges, counts), len(case.alphabet)):
        assert count == oracle.count(pair, rows, weights_of(case))
        rows = [row.replace(oracle.joined(pair), chr(new_id)) for row in rows]
    assert counts == sorted(counts, reverse=True)
    assert all(count >= case.options.minimum_pair_frequency for count in counts)


@given(case=TRAININGS, size=st.integers(0, 20))
def test_a_prefix_of_the_merges_is_the_smaller_training(engine, case, size):
    merges, counts = trained(engine, case)
    assume(size <= case.options.merges_wanted)
    assert trained(engine, case, merges_wanted=size) == (merges[:size], counts[:size])


@given(case=TRAININGS, seed=SEEDS, tie_break=st.sampled_from(["smallest", "greatest"]))
def test_the_order_of_the_sequences_does_not_matter(engine, case, seed, tie_break):
    pairs = list(zip(case.sequences, weights_of(case)))
    expected = trained(engine, case, tie_break=tie_break)
    Random(seed).shuffle(pairs)
    rows, weights = [row for row, _ in pairs], [weight for _, weight in pairs]
    assert trained(engine, case, sequences=rows, weights=weights, tie_break=tie_break) == expected


@given(documents=lists(DOCUMENTS, 0, 6), pattern=PATTERNS, cut=st.integers(0, 6))
def test_the_counts_of_parts_add_up(engine, documents, pattern, cut):
    """Added in the order of the parts, they are in the order of the whole."""
    parts = Counter(engine.count_pieces(documents[:cut], pattern))
    parts.update(engine.count_pieces(documents[cut:], pattern))
    whole = engine.count_pieces(documents, pattern)
    assert list(parts.items()) == list(whole.items())
    pieces = Counter(piece for document in documents for piece in engine.split(document, pattern))
    assert list(whole.items()) == list(pieces.items())


@given(documents=lists(DOCUMENTS, 0, 6), pattern=PATTERNS, chosen=options(1))
def test_weights_are_repetitions(engine, documents, pattern, chosen):
    """Distinct pieces in order of first appearance train as all pieces do, by every rule."""
    settings = (BYTES, chosen.merges_wanted, chosen.minimum_pair_frequency, chosen.tie_break)
    counts = engine.count_pieces(documents, pattern)
    pieces = [piece for document in documents for piece in engine.split(document, pattern)]
    weighted = list(engine.train_steps(list(counts), list(counts.values()), *settings))
    assert weighted == list(engine.train_steps(pieces, None, *settings))


@given(document=DOCUMENTS, pattern=PATTERNS, chosen=options(1), gpt2=st.booleans())
def test_decoding_undoes_encoding(engine, document, pattern, chosen, gpt2):
    assume(pattern != patterns.WORDS)
    alphabet = GPT2_BYTES if gpt2 else BYTES
    ids = [alphabet.index(bytes([byte])) for byte in bytes_of(document)]
    merges, _ = engine.train([ids], None, alphabet, chosen.merges_wanted)
    table = engine.encoding_table(alphabet, merges, pattern)
    pieces = engine.decoding_table(vocabulary(alphabet, merges))
    assert engine.decode(engine.encode(document, table), pieces) == bytes_of(document)


@given(document=DOCUMENTS, pattern=PATTERNS)
def test_splitting_loses_nothing(engine, document, pattern):
    assume(pattern != patterns.WORDS)
    assert b"".join(engine.split(document, pattern)) == bytes_of(document)
    assert b"" not in engine.split(document, pattern)
