"""Data sets and batches: what is in them, in which order, and going on in the middle."""

import collections
import itertools
import json
import pickle
import random
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokbpe import Batches, Corpus, TokenDataset, Tokenizer, packing, write_shards
from tokbpe.orders import drawn, mixed, mixed_one, permuted
from tokbpe.packing import Packed, Pair
from tokbpe.shards import FORMAT, sealed

ORDERS = ("sequential", "shuffled", "random")
PACKS = ("stream", "document", "best-fit")
PAD = 60_000


def numbered(lengths):
    """Documents of so many tokens, no two of which are the same, and their offsets."""
    offsets = np.cumsum([0, *lengths])
    return np.arange(offsets[-1], dtype=np.uint16), offsets


def dataset(lengths=(7, 0, 12, 1, 5, 30, 2, 9), context=5, **options):
    tokens, offsets = numbered(lengths)
    if options.get("pack", "stream") != "stream":
        options.setdefault("pad_id", PAD)
    return TokenDataset(tokens, context, offsets=offsets, **options)


def pairs_of(batches):
    """All positions as pairs of input and target."""
    found = []
    for batch in batches:
        inputs, targets = batch[0], batch[1]
        mask = batch.mask if isinstance(batch, Packed) else np.ones(inputs.shape, bool)
        found += zip(inputs[mask].tolist(), targets[mask].tolist())
    return found


def listed(batch):
    return [array.tolist() for array in batch]


# Windows


def test_the_window_of_the_specification():
    ((inputs, targets),) = TokenDataset([4, 7, 2, 9, 3], 4)
    assert inputs.tolist() == [4, 7, 2, 9] and targets.tolist() == [7, 2, 9, 3]
    assert inputs.dtype == targets.dtype == np.uint32


def test_windows_stand_side_by_side():
    data = TokenDataset(np.arange(12), 3)
    assert len(data) == 3 and data.left_over == 2
    assert [listed(row) for row in data] == [
        [[0, 1, 2], [1, 2, 3]],
        [[3, 4, 5], [4, 5, 6]],
        [[6, 7, 8], [7, 8, 9]],
    ]
    assert listed(data[-1]) == listed(data[2]) == listed(data[np.int8(2)])
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"there are 3 rows, and no row {index}"):
            data[index]
    for index in (1.0, True, "0", slice(2)):
        with pytest.raises(TypeError, match="a row is a whole number, not"):
            data[index]


def test_batches_of_a_stream():
    batches = TokenDataset(np.arange(12), 3).batches(2)
    assert [listed(batch) for batch in batches] == [
        [[[0, 1, 2], [3, 4, 5]], [[1, 2, 3], [4, 5, 6]]],
        [[[6, 7, 8]], [[7, 8, 9]]],
        [[[9, 10]], [[10, 11]]],  # what is left over
    ]
    assert len(batches) == 3 and batches.epoch == 1
    full = TokenDataset(np.arange(12), 3).batches(2, drop_last=True)
    assert [batch.inputs.shape for batch in full] == [(2, 3)]
    assert full.dropped == (1, 2)
    assert [batch.inputs.shape for batch in TokenDataset(np.arange(12), 3).batches(1, 5)] == [
        (1, 5),
        (1, 5),
        (1, 1),
    ]


@settings(max_examples=200)
@given(
    count=st.integers(2, 60),
    context=st.integers(1, 9),
    size=st.integers(1, 4),
    world=st.integers(1, 5),
    order=st.sampled_from(["sequential", "shuffled"]),
)
def test_no_token_is_lost_or_doubled(count, context, size, world, order):
    if count <= context:
        return
    data = TokenDataset(np.arange(count), context)
    ranks = []
    for rank in range(world):
        options = {"order": order, "rank": rank, "world_size": world}
        if rank < len(data) + (data.left_over > 0):
            ranks.append(data.batches(size, **options))
        else:
            message = f"no batch of {size} rows for rank {rank} of {world}: there are {len(data)}"
            with pytest.raises(ValueError, match=message):
                data.batches(size, **options)
    seen = [pairs_of(batches) for batches in ranks]
    assert sorted(itertools.chain(*seen)) == [(id, id + 1) for id in range(count - 1)]
    counts = [len(batches) for batches in ranks] + [0] * (world - len(ranks))
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("world", [1, 2, 3])
def test_with_drop_last_all_ranks_have_the_same_number_of_full_batches(order, pack, world):
    data = dataset(pack=pack)
    ranks = [
        data.batches(2, order=order, rank=rank, world_size=world, drop_last=True)
        for rank in range(world)
    ]
    assert len({len(batches) for batches in ranks}) == 1
    rows = 0
    for batches in ranks:
        for batch in batches:
            assert batch.inputs.shape == (2, 5)
            rows += 2
    if order == "random":
        assert batches.dropped == (0, 0)
    else:
        left_over = data.left_over if pack == "stream" else 0
        assert batches.dropped == (len(data) - rows, left_over)
        assert len({batches.dropped for batches in ranks}) == 1


# Orders


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 65, 1000])
def test_a_permutation_has_each_place_once(size):
    for seed in range(10):
        assert sorted(permuted(np.arange(size), size, [seed])) == list(range(size))
    parts = [permuted(np.arange(start, start + 1), size, [3]) for start in range(size)]
    assert np.concatenate(parts).tolist() == permuted(np.arange(size), size, [3]).tolist()


def test_numbers_are_mixed_alike_alone_and_in_arrays():
    numbers = [0, 1, 2**31, 2**63 - 1, 2**64 - 1, *map(random.Random(0).getrandbits, [64] * 50)]
    assert mixed(np.array(numbers, np.uint64)).tolist() == [*map(mixed_one, numbers)]


def test_permutations_are_drawn_evenly():
    seen = collections.Counter(
        tuple(permuted(np.arange(4), 4, [seed]).tolist()) for seed in range(960)
    )
    assert len(seen) == 24
    assert sum((count - 40) ** 2 / 40 for count in seen.values()) < 60  # chi-square, 23 degrees


def test_draws_are_even():
    counts = np.bincount(drawn(np.arange(20_000), 100, [1, 2]), minlength=100)
    assert ((counts - 200) ** 2 / 200).sum() < 180  # chi-square, 99 degrees


def test_orders_never_change():
    """With another order a run that goes on would see other batches."""
    assert permuted(np.arange(8), 8, [0, 0]).tolist() == PERMUTED
    assert permuted(np.arange(3), 10**12, [7, 1]).tolist() == PERMUTED_OF_MANY
    assert drawn(np.arange(4), 1000, [0, 0]).tolist() == DRAWN


PERMUTED = [5, 2, 3, 4, 1, 0, 6, 7]
PERMUTED_OF_MANY = [640377352530, 857701056801, 967543220470]
DRAWN = [958, 150, 825, 941]


def rows_in(batches):
    return [row[0] for batch in batches for row in batch.inputs.tolist()]


def test_shuffled_and_random_depend_on_seed_and_epoch():
    data = TokenDataset(np.arange(1001), 5)
    for order in ("shuffled", "random"):
        batches = data.batches(4, order=order, seed=3)
        first, second = rows_in(batches), rows_in(batches)
        assert batches.epoch == 2 and first != second
        assert rows_in(data.batches(4, order=order, seed=3)) == first
        assert rows_in(data.batches(7, order=order, seed=3)) == first
        assert rows_in(data.batches(4, order=order, seed=4)) != first
        later = data.batches(4, order=order, seed=3)
        later.epoch = 1
        assert rows_in(later) == second
        ranks = [
            rows_in(data.batches(4, order=order, seed=3, rank=r, world_size=3)) for r in range(3)
        ]
        assert [ranks[place % 3][place // 3] for place in range(200)] == first
        if order == "shuffled":
            assert sorted(first) == list(range(0, 1000, 5))
        else:
            assert min(first) >= 0 and max(first) <= 995 and len(set(first)) > 150
            assert {start % 5 for start in first} == set(range(5))


def test_random_windows_reach_both_ends():
    starts = rows_in(
        itertools.islice(TokenDataset(np.arange(8), 5).batches(1, order="random").forever(), 99)
    )
    assert set(starts) == {0, 1, 2}


@pytest.mark.parametrize("order", ORDERS)
def test_orders_beyond_what_is_computed_at_a_time(order):
    data = TokenDataset(np.arange(30_001) % 65_536, 3)
    batches = data.batches(3000, order=order, seed=1)
    one_by_one = rows_in(data.batches(1, order=order, seed=1))
    assert rows_in(batches) == one_by_one
    if order != "random":
        assert len(set(one_by_one)) == 10_000


# Documents in rows


LENGTHS = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 11, 12]), min_size=1, max_size=20)


def expected_pairs(lengths, most=None):
    _, offsets = numbered(lengths)
    return [
        (id, id + 1)
        for start, stop in itertools.pairwise(offsets.tolist())
        for id in range(start, min(stop - 1, start + (most or stop)))
    ]


@pytest.mark.parametrize("pack", ["document", "best-fit"])
@settings(max_examples=200)
@given(lengths=LENGTHS, crop=st.booleans())
def test_packed_documents(pack, lengths, crop):
    """Documents of T, T + 1 and 1 tokens and others; T is 5."""
    pairs = expected_pairs(lengths, 5 if crop else None)
    if not pairs:
        with pytest.raises(ValueError, match="so there is nothing to predict|2 are needed"):
            dataset(lengths, pack=pack, crop=crop)
        return
    data = dataset(lengths, pack=pack, crop=crop)
    assert sorted(pairs_of(data.batches(3))) == pairs
    assert data.left_over == len(expected_pairs(lengths)) - len(pairs)
    assert data.utilization == pytest.approx(len(pairs) / (len(data) * 5))
    owner = np.repeat(np.arange(len(lengths)), lengths)
    for inputs, targets, mask, segments in data:
        assert inputs[~mask].tolist() == targets[~mask].tolist() == [PAD] * int((~mask).sum())
        assert segments.tolist() == sorted(segments.tolist(), key=lambda segment: segment or 99)
        assert (segments > 0).tolist() == mask.tolist()
        for segment in set(segments[mask].tolist()):
            ids = inputs[segments == segment]
            assert np.all(np.diff(ids.astype(int)) == 1) and len(set(owner[ids])) == 1
        if pack == "document":
            assert segments.max() == 1


def test_a_row_for_each_document_in_order():
    data = dataset([5, 1, 6, 8], pack="document")
    assert [row.inputs.tolist() for row in data] == [
        [0, 1, 2, 3, PAD],
        [6, 7, 8, 9, 10],
        [12, 13, 14, 15, 16],
        [17, 18, PAD, PAD, PAD],
    ]
    assert data[0].targets.tolist() == [1, 2, 3, 4, PAD]
    assert data[0].mask.tolist() == [True] * 4 + [False]
    assert data.utilization == 16 / 20


def test_best_fit_fills_rows():
    data = dataset([4, 3, 5, 2, 3], pack="best-fit")  # 3 + 2 + 4 + 1 + 2 positions
    assert len(data) == 3
    assert [row.segments.tolist() for row in data] == [
        [1, 1, 1, 2, 2],
        [1, 1, 1, 1, 2],
        [1, 1, 0, 0, 0],
    ]
    lengths = random.Random(0).choices(range(2, 66), k=2000)
    best, alone = (dataset(lengths, 64, pack=pack) for pack in ("best-fit", "document"))
    assert alone.utilization < 0.55
    assert best.utilization > 0.98


def best_fit_as_told(sizes, context):
    """The rows of best-fit decreasing, by looking at all of them each time."""
    rows = []
    for size in sorted(sizes, reverse=True):
        fitting = [row for row in rows if sum(row) + size <= context]
        if fitting:
            max(fitting, key=sum).append(size)
        else:
            rows.append([size])
    return sorted(sorted(row) for row in rows)


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_best_fit_is_best_fit(sizes):
    chunks = packing.Chunks(np.arange(len(sizes)), np.array(sizes))
    packed, offsets = packing.best_fit(chunks, 9)
    rows = [packed.sizes[start:stop].tolist() for start, stop in itertools.pairwise(offsets)]
    assert len(rows) == len(best_fit_as_told(sizes, 9))
    assert sorted(map(sum, rows)) == sorted(map(sum, best_fit_as_told(sizes, 9)))
    firsts = [packed.starts[start] for start in offsets[:-1]]
    assert firsts == sorted(firsts)


def test_a_context_far_longer_than_all_documents_takes_no_memory():
    tracemalloc.start()
    data = dataset(context=2**24, pack="best-fit")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(data) == 1 and data.left_over == 0
    assert peak < 2**24  # some bits for each room


def test_segments_of_a_stream():
    data = dataset([3, 0, 4, 9], segments=True)
    assert [row.segments.tolist() for row in data] == [[1, 1, 1, 2, 2], [1, 1, 2, 2, 2], [1] * 5]
    assert all(row.mask.all() for row in data)
    (batch,) = itertools.islice(data.batches(2, order="random", seed=5), 1)
    owner = np.repeat(np.arange(4), [3, 0, 4, 9])
    same = owner[batch.inputs][:, :, None] == owner[batch.inputs][:, None, :]
    assert np.array_equal(same, batch.segments[:, :, None] == batch.segments[:, None, :])


# Training and validation


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("as_file", [False, True])
def test_training_never_touches_the_tail(tmp_path, pack, order, as_file):
    """The tail has an id that is nowhere else."""
    mark = 50_000
    tokens = np.arange(100, dtype=np.uint16)
    tokens[75:] = mark
    np.save(tmp_path / "tokens.npy", tokens)
    options = {} if pack == "stream" else {"pad_id": PAD}
    data = TokenDataset(
        tmp_path / "tokens.npy" if as_file else tokens,
        5,
        pack=pack,
        offsets=[0, 30, 80, 100],
        **options,
    )
    for training, validation in (data.split(0.25), data.split(25)):
        for world in (1, 3):
            seen = set()
            for rank in range(world):
                batches = training.batches(3, order=order, rank=rank, world_size=world)
                for batch in itertools.islice(batches.forever(), 60):
                    seen |= {*batch.inputs.flat, *batch.targets.flat}
            assert mark not in seen
            assert 74 in seen or order == "random"  # up to the tail
        for batch in itertools.chain(
            validation.batches(3, order=order), validation.fixed_batches(3)
        ):
            assert {*batch.inputs.flat, *batch.targets.flat} <= {mark, PAD}
        assert mark in {*batch.targets.flat}


def test_parts_and_their_roles():
    data = TokenDataset(np.arange(100), 4)
    rest, test = data.split(20)
    training, validation = rest.split(0.25)
    parts = (training, validation, test)
    assert [rows_in(part.batches(9))[0] for part in parts] == [0, 60, 80]
    assert [part.role for part in (data, *parts)] == [
        "training",
        "training",
        "validation",
        "validation",
    ]
    assert training.fingerprint() == data.split(20)[0].split(20)[0].fingerprint()
    assert len({part.fingerprint() for part in (data, rest, *parts)}) == 5
    with pytest.raises(ValueError, match="only training data can be split, and these are valid"):
        test.split(5)


@pytest.mark.parametrize("role", ["validation", "test"])
def test_only_training_data_are_split(tmp_path, tokenizer, role):
    (tmp_path / "in.txt").write_text("slow lower lowest " * 20)
    write_shards(tmp_path / "in.txt", tokenizer, tmp_path / "out", role=role)
    corpus = Corpus("slow lower lowest " * 20, role=role)
    for source in (tmp_path / "out", tokenizer.encode_corpus(corpus)):
        data = TokenDataset(source, 4)
        assert data.role == role and repr(data).startswith(f"<TokenDataset {role}, stream, ")
        for other in (data, pickle.loads(pickle.dumps(data)), data.batches(1, 6).dataset):
            with pytest.raises(ValueError, match=f"can be split, and these are {role} data"):
                other.split(0.5)


@pytest.mark.parametrize(
    ("validation", "error", "message"),
    [
        (0.0, ValueError, "validation must be between 0 and 1, not 0.0"),
        (1.0, ValueError, "validation must be between 0 and 1, not 1.0"),
        (float("nan"), ValueError, "validation must be between 0 and 1, not nan"),
        (0, ValueError, "validation must be from 1 to"),
        (100, ValueError, "of 100 tokens 100 for validation leave none for training"),
        (True, TypeError, "validation must be a number, not bool"),
        ("1", TypeError, "validation must be a number, not str"),
    ],
)
def test_no_split(tokenizer, validation, error, message):
    """A data set and an encoded corpus are alike in this."""
    corpus = tokenizer.encode_corpus(Corpus(b"?" * 100))
    assert len(corpus.tokens) == 100
    for data in (TokenDataset(np.arange(100), 4), TokenDataset(corpus, 4), corpus):
        with pytest.raises(error, match=message):
            data.split(validation)


def test_a_part_without_a_window():
    with pytest.raises(ValueError, match="a context of 4 needs 5 tokens; there are 3"):
        TokenDataset(np.arange(100), 4).split(3)


def test_fixed_batches():
    data = TokenDataset(np.arange(101), 5)
    first = [listed(batch) for batch in data.fixed_batches(3)]
    assert first == [listed(batch) for batch in data.fixed_batches(3)]
    assert [len(batch[0]) for batch in first] == [3] * 6 + [2]
    some = rows_in(data.fixed_batches(2, count=2))
    assert some == [0, 25, 50, 75]
    for count in (None, 2):
        known = [listed(batch) for batch in data.fixed_batches(3, count)]
        for batch in data.fixed_batches(3, count):
            batch.inputs[:] = 0
        list(data.batches(3, order="shuffled"))
        assert known == [listed(batch) for batch in data.fixed_batches(3, count)]
    with_rest = TokenDataset(np.arange(104), 5)
    assert with_rest.left_over == 3
    assert [listed(batch) for batch in with_rest.fixed_batches(3)] == first
    with pytest.raises(ValueError, match="7 batches of 3 rows are more than all 20"):
        data.fixed_batches(3, count=7)


# Going on


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("packing", [*PACKS, "segments"])
@pytest.mark.parametrize("order", ORDERS)
def test_going_on_at_random_points(packing, order, drop_last):
    """At 200 points of each, no two of which are the same, in any epoch, by any rank."""
    source = random.Random(f"{packing} {order} {drop_last}")
    options = {"segments": True} if packing == "segments" else {"pack": packing}
    options["lengths"] = (7, 0, 12, 1, 5, 30, 2, 9) * 4
    points = 0
    for world in (1, 3):
        for rank in range(world):
            how = {"order": order, "seed": 9, "rank": rank, "world_size": world}
            how["drop_last"] = drop_last
            batches = dataset(**options).batches(2, **how)
            states, seen = [], []
            for batch in itertools.islice(batches.forever(), 104):
                seen.append(listed(batch))
                states.append(json.dumps(batches.state_dict()))
            assert batches.epoch > 1
            # So none is taken for the one behind it.
            assert all(one != other for one, other in itertools.pairwise(seen))
            for point in source.sample(range(100), 50):
                again = dataset(**options).batches(2, **how)
                again.load_state_dict(json.loads(states[point]))
                following = [listed(batch) for batch in itertools.islice(again.forever(), 4)]
                assert following == seen[point + 1 : point + 5]
                points += 1
    assert points == 200


def test_going_on_within_an_epoch_ends_with_it():
    batches = TokenDataset(np.arange(101), 5).batches(3, order="shuffled")
    it = iter(batches)
    next(it)
    state = batches.state_dict()
    rest = [listed(batch) for batch in it]
    again = TokenDataset(np.arange(101), 5).batches(3, order="shuffled")
    again.load_state_dict(state)
    assert list(again.remaining()) == [(0, number) for number in range(1, 7)]
    assert len(again.remaining()) == 6
    assert [listed(batch) for batch in again] == rest
    assert (again.epoch, again.position) == (1, 0)


def test_going_on_from_shards_in_another_process(tmp_path, tokenizer):
    (tmp_path / "in.txt").write_text("low lower lowest " * 50)
    write_shards(tmp_path / "in.txt", tokenizer, tmp_path / "out", shard_tokens=17)
    batches = TokenDataset(tmp_path / "out", 8).batches(2, order="random")
    seen = [listed(batch) for batch in itertools.islice(batches, 3)]
    state = batches.state_dict()
    again = pickle.loads(pickle.dumps(TokenDataset(tmp_path / "out", 8).batches(2, order="random")))
    assert [listed(batch) for batch in itertools.islice(again, 3)] == seen
    again.position = 0
    again.load_state_dict(state)
    assert listed(next(iter(again))) == listed(next(iter(batches)))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("dataset", lambda: dataset([9] * 9).batches(2)),
        ("dataset", lambda: dataset([7, 12, 1, 5, 30, 2, 9]).batches(2)),
        ("dataset", lambda: dataset(segments=True).batches(2)),
        ("dataset", lambda: dataset().split(9)[0].batches(2)),
        ("context", lambda: dataset(context=4).batches(2)),
        ("pack", lambda: dataset(pack="document").batches(2)),
        ("rank", lambda: dataset().batches(2, rank=1, world_size=2)),
        ("order", lambda: dataset().batches(2, order="shuffled")),
        ("seed", lambda: dataset().batches(2, seed=1)),
        ("batch_size", lambda: dataset().batches(3)),
        ("world_size", lambda: dataset().batches(2, world_size=3)),
        ("drop_last", lambda: dataset().batches(2, drop_last=True)),
    ],
    ids=map(str, range(12)),
)
def test_a_foreign_state_is_refused(name, other):
    batches = dataset().batches(2, world_size=2 if name == "rank" else 1)
    state = other().state_dict()
    with pytest.raises(ValueError, match=f"other batches: its {name} is ") as raised:
        batches.load_state_dict(state)
    assert repr(state[name]) in str(raised.value)
    assert repr(batches.state_dict()[name]) in str(raised.value)
    assert (batches.epoch, batches.position) == (0, 0)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (5, TypeError, "a state must be a mapping, not int"),
        ({}, ValueError, "a state has batch_size, context, dataset, "),
        ({"position": 99}, ValueError, "position must be from 0 to 6, not 99"),
        ({"epoch": -1}, ValueError, "epoch must be from 0 to"),
        ({"epoch": 1.5}, TypeError, "epoch must be a whole number"),
        ({"seed": np.zeros(2)}, ValueError, "its seed is array.*, here it is 0"),
        ({"seed": 0.0}, ValueError, "its seed is 0.0, here it is 0"),
    ],
)
def test_what_is_no_state(state, error, message):
    batches = dataset().batches(2)
    if isinstance(state, dict) and state:
        state = {**batches.state_dict(), **state}
    with pytest.raises(error, match=message):
        batches.load_state_dict(state)


# Several loops


@pytest.mark.parametrize("pack", PACKS)
def test_one_loop_at_a_time(pack):
    batches = dataset(pack=pack).batches(2, order="shuffled")
    expected = [listed(batch) for batch in dataset(pack=pack).batches(2, order="shuffled")]
    first = iter(batches)
    second = iter(batches)
    assert [listed(next(first)) for _ in range(2)] == expected[:2]
    assert listed(next(second)) == expected[2]  # goes on where it stands
    with pytest.raises(RuntimeError, match="another loop over these batches has begun"):
        next(first)
    with pytest.raises(StopIteration):
        next(first)
    assert [listed(batch) for batch in second] == expected[3:]
    with pytest.raises(RuntimeError, match="another loop over these batches has begun"):
        list(zip(batches, batches))
    batches.epoch = batches.position = 0
    for number, batch in enumerate(batches):
        if number == 2:
            break
        assert listed(batch) == expected[number]
    assert [listed(batch) for batch in batches] == expected[3:]
    assert (batches.epoch, batches.position) == (1, 0)
    assert [listed(batch) for batch in batches] != expected


def test_a_state_that_is_loaded_in_a_loop():
    batches = dataset().batches(2, order="shuffled")
    state = batches.state_dict()
    batches.epoch = 3
    stream = batches.forever()
    next(stream)
    batches.load_state_dict(state)
    expected = [listed(batch) for batch in dataset().batches(2, order="shuffled")]
    assert [listed(next(stream)) for _ in expected] == expected
    assert (batches.epoch, batches.position) == (1, 0)


def test_batches_of_any_epoch():
    batches = dataset().batches(2, order="random")
    seen = [listed(batch) for batch in itertools.islice(batches.forever(), 3 * len(batches))]
    places = itertools.product(range(3), range(len(batches)))
    assert [listed(batches[place]) for place in places] == seen
    assert (batches.epoch, batches.position) == (3, 0)
    batches.epoch = 1
    assert listed(batches[2]) == listed(batches[1, 2]) == seen[len(batches) + 2]
    with pytest.raises(IndexError, match="there are 7 batches in an epoch, and no batch 7"):
        batches[0, 7]
    with pytest.raises(ValueError, match="epoch must be from 0 to"):
        batches[-1, 0]
    with pytest.raises(TypeError, match="the number of a batch must be a whole number, not tuple"):
        batches[0, 1, 2]


# Sources


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(
        "low lower lowest newest widest " * 9,
        method="bpe",
        vocabulary_size=266,
        pattern="gpt2",
        reserved=["BOS", "EOS", "PAD"],
    )


@pytest.fixture(scope="module", params=[2, 7, 40, 1000])
def shards(request, tmp_path_factory, tokenizer):
    """The same tokens in shards of different sizes."""
    path = tmp_path_factory.mktemp("shards")
    texts = ["low lower " * 5, "", "newest", "x" * 30, "widest low " * 4]
    (path / "in").mkdir()
    for number, text in enumerate(texts):
        (path / "in" / f"{number}").write_text(text)
    return write_shards(path / "in", tokenizer, path / "out", shard_tokens=request.param, eos=True)


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("order", ORDERS)
def test_shards_are_one_array(shards, tokenizer, pack, order):
    whole = TokenDataset(
        shards[:],
        6,
        pack=pack,
        offsets=shards.offsets,
        pad_id=None if pack == "stream" else tokenizer.pad_id,
        dtype="int64",
    )
    for source in (shards, shards.folder, Path(shards.folder)):
        data = TokenDataset(source, 6, pack=pack, dtype="int64")
        for one, other in zip(data.batches(3, order=order), whole.batches(3, order=order)):
            assert listed(one) == listed(other)
            assert one.inputs.dtype == np.int64
    assert data.fingerprint() == TokenDataset(shards, 6, pack=pack).fingerprint()


class TokensAndOffsets:
    """These under the names that an encoded corpus has for them."""

    def __init__(self, *lengths):
        self.tokens, self.offsets = numbered(lengths)


def test_where_documents_begin_is_part_of_the_identity(tokenizer, tmp_path):
    tokens, _ = numbered([5, 6, 2])
    np.save(tmp_path / "tokens.npy", tokens)
    for source in (tokens, tmp_path / "tokens.npy"):
        for how in ({}, {"fingerprint": "known"}):
            found = [
                TokenDataset(source, 3, offsets=offsets, **how).fingerprint()
                for offsets in (None, [0, 5, 11, 13], [0, 6, 11, 13], [0, 5, 13])
            ]
            assert len(set(found)) == 4
            same = TokenDataset(source, 3, offsets=np.array([0, 5, 11, 13], "u8"), **how)
            assert pickle.loads(pickle.dumps(same)).fingerprint() == found[1] == same.fingerprint()
    one, other = (TokenDataset(TokensAndOffsets(*lengths), 3) for lengths in [(5, 8), (6, 7)])
    assert one.fingerprint() != other.fingerprint()
    corpus = tokenizer.encode_corpus(Corpus(["low lower", "newest"]), eos=True)
    known = TokenDataset(corpus, 3).fingerprint()
    assert TokenDataset(corpus, 3, offsets=[0, len(corpus.tokens)]).fingerprint() != known
    states = TokenDataset(tokens, 3, offsets=[0, 5, 13]).batches(1).state_dict()
    with pytest.raises(ValueError, match="the state is of other batches: its dataset is "):
        TokenDataset(tokens, 3, offsets=[0, 6, 13]).batches(1).load_state_dict(states)


def test_what_has_a_fingerprint_gets_no_other(tokenizer):
    corpus = tokenizer.encode_corpus(Corpus(["low lower"]))
    message = f"fingerprint is for arrays; that of EncodedCorpus is {corpus.fingerprint()}, and not"
    with pytest.raises(ValueError, match=message):
        TokenDataset(corpus, 3, fingerprint="another")


def test_offsets_of_shards_are_looked_at(tmp_path, tokenizer):
    """Though the checksums be right."""
    (tmp_path / "in.txt").write_text("low lower\nlowest\n")
    shards = write_shards(tmp_path / "in.txt", tokenizer, tmp_path / "out", documents="line")
    (path,) = (tmp_path / "out").glob("*.offsets.npy")
    found = np.load(path)
    found[0] = 1
    np.save(path, found)
    assert TokenDataset(shards, 2).role == "training"
    with pytest.raises(ValueError, match=r"offsets\[0\] is 1, and the first document begins at 0"):
        TokenDataset(tmp_path / "out", 2, pack="document")


def test_a_manifest_that_has_a_shard_twice(tmp_path, tokenizer):
    (tmp_path / "in.txt").write_text("low lower\nlowest\n")
    write_shards(tmp_path / "in.txt", tokenizer, tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    plain = json.loads(path.read_bytes())
    del plain["sha256"], plain["format"]
    plain["shards"] *= 2
    plain["tokens"] *= 2
    plain["documents"] *= 2
    path.write_bytes(sealed(FORMAT, plain))
    with pytest.raises(ValueError, match="the manifest has the shard '00000-00000' twice"):
        TokenDataset(tmp_path / "out", 2)


def test_other_sources(tmp_path):
    tokens, _ = numbered([5, 6, 2])
    np.save(tmp_path / "tokens.npy", tokens)
    expected = [listed(row) for row in TokenDataset(tokens, 3)]
    both = TokensAndOffsets(5, 6, 2)
    for source in (both, tmp_path / "tokens.npy", tokens.tolist(), tokens.astype("i8")):
        data = TokenDataset(source, 3)
        assert [listed(row) for row in data] == expected
        assert [listed(row) for row in pickle.loads(pickle.dumps(data))] == expected
    by_document = TokenDataset(both, 3, pack="document", pad_id=99)
    assert [len(set(row.inputs.tolist()) - {99}) for row in by_document] == [3, 1, 3, 2, 1]
    identity = TokenDataset(tokens, 3).fingerprint()
    assert TokenDataset(tmp_path / "tokens.npy", 3).fingerprint() == identity
    assert TokenDataset(tokens.astype("u4"), 3).fingerprint() == identity
    assert TokenDataset(tokens + 1, 3).fingerprint() != identity
    assert TokenDataset(tokens, 3, fingerprint="known").fingerprint() != identity
    assert len(pickle.dumps(TokenDataset(tmp_path / "tokens.npy", 3))) < 1000


def test_types_of_ids():
    tokens = np.arange(9, dtype=np.uint16)
    for dtype in ("uint16", "uint32", "int32", "int64"):
        data = TokenDataset(tokens, 4, dtype=dtype)
        assert {array.dtype.name for array in data[0]} == {dtype}
        for order in ORDERS:
            assert next(iter(data.batches(2, order=order))).inputs.dtype == dtype
    for dtype in ("uint16", "int32"):
        with pytest.raises(ValueError, match=r"uint32 may be given as \['uint32', 'int64'\], not"):
            TokenDataset(tokens.astype(np.uint32), 4, dtype=dtype)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"context": 0}, ValueError, "context must be from 1 to"),
        ({"context": 2.0}, TypeError, "context must be a whole number, not float"),
        ({"context": 10}, ValueError, "a context of 10 needs 11 tokens; there are 10"),
        ({"source": []}, ValueError, "there are 0 tokens; to predict one, 2 are needed"),
        ({"source": [1]}, ValueError, "there are 1 tokens"),
        ({"source": [1.5, 2]}, ValueError, "must be whole numbers in one dimension, not float64"),
        ({"source": [[1, 2]]}, ValueError, r"not int64 of the shape \(1, 2\)"),
        ({"source": [-1, 2]}, ValueError, "ids are from 0 to 4294967295; there are -1 and 2"),
        ({"source": [1, 2**32]}, ValueError, "there are 1 and 4294967296"),
        ({"source": ["a", "b"]}, ValueError, "must be whole numbers"),
        ({"source": [[1], 2]}, ValueError, "tokens must be whole numbers in one dimension: "),
        ({"source": None}, TypeError, "a data set is made of .* an array of ids, not of NoneType"),
        ({"source": Corpus("a text")}, TypeError, "an encoded corpus or .*, not of Corpus"),
        ({"source": iter([1, 2])}, TypeError, "an array of ids, not of list_iterator"),
        ({"source": "absent.npy"}, FileNotFoundError, "absent.npy"),
        ({"pack": "tight"}, ValueError, "pack must be one of 'stream', 'document', 'best-fit'"),
        ({"dtype": "int8"}, ValueError, "dtype must be one of"),
        ({"crop": True}, ValueError, "crop is for pack 'document' and 'best-fit'; pack is 'str"),
        ({"pad_id": 0}, ValueError, "pad_id is for pack 'document' and 'best-fit'; pack is 'st"),
        (
            {"segments": True, "pack": "best-fit", "pad_id": 0},
            ValueError,
            "segments is for pack 'stream'; pack is 'best-fit'",
        ),
        ({"segments": True, "pack": "document"}, ValueError, "segments is for pack 'stream'; pack"),
        ({"fingerprint": 5}, TypeError, "fingerprint must be a text, not int"),
        ({"segments": True}, ValueError, "documents need offsets"),
        ({"pack": "document"}, ValueError, "pack 'document' needs a pad_id"),
        ({"pack": "document", "pad_id": 1}, ValueError, "documents need offsets"),
        ({"pack": "document", "pad_id": 2**32}, ValueError, "pad_id must be from 0 to 4294967295"),
        ({"offsets": [0, 9]}, ValueError, r"offsets\[1\], the last, is 9, and there are 10 tokens"),
        (
            {"offsets": [1, 10]},
            ValueError,
            r"offsets\[0\] is 1, and the first document begins at 0",
        ),
        ({"offsets": [-1, 10]}, ValueError, r"offsets\[0\] is -1, and the first document begins"),
        ({"offsets": [0, 7, 5, 10]}, ValueError, r"offsets\[2\] is 5, below offsets\[1\], 7: off"),
        ({"offsets": np.array([0, 2**64 - 1, 10], "u8")}, ValueError, r"offsets\[2\] is 10, below"),
        ({"offsets": [0, [10]]}, ValueError, "offsets must be whole numbers in one dimension: "),
        ({"offsets": [10]}, ValueError, "offsets must be whole numbers in one"),
        ({"offsets": [0.0, 10]}, ValueError, "offsets must be whole numbers in"),
    ],
)
def test_data_sets_that_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        TokenDataset(**{"source": np.arange(10), "context": 4, **options})


def saved(path, array):
    np.save(path, array)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: b"", "this is no whole .npy file: "),
        (lambda path: b"low lower lowest", "this is no whole .npy file: "),
        (lambda path: saved(path, np.arange(9))[:-1], "this is no whole .npy file: "),
        (lambda path: saved(path, np.arange(9))[:20], "this is no whole .npy file: "),
        (lambda path: saved(path, np.ones((3, 3), "u2")), "not uint16 of the shape (3, 3)"),
        (lambda path: saved(path, np.ones(9)), "not float64 of the shape (9,)"),
        (lambda path: saved(path, np.array([-1, 2])), "there are -1 and 2"),
        (lambda path: saved(path, np.array([1, "a"], object)), "this is no whole .npy file: "),
    ],
    ids=map(str, range(8)),
)
def test_files_that_hold_no_tokens(tmp_path, make, message):
    path = tmp_path / "tokens.npy"
    path.write_bytes(make(path))
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{re.escape(message)}"):
        TokenDataset(path, 4)


def test_a_file_with_several_arrays(tmp_path):
    np.savez(tmp_path / "tokens.npz", tokens=np.arange(9))
    with pytest.raises(ValueError, match="tokens.npz: this is no whole .npy file: "):
        TokenDataset(tmp_path / "tokens.npz", 4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be from 1 to"),
        ({"batch_size": True}, TypeError, "batch_size must be a whole number"),
        ({"order": "sorted"}, ValueError, "order must be one of 'sequential', 'shuffled', 'ran"),
        ({"seed": -1}, ValueError, "seed must be from 0 to"),
        ({"rank": 1}, ValueError, "rank must be from 0 to 0, not 1"),
        ({"rank": -1, "world_size": 2}, ValueError, "rank must be from 0 to 1, not -1"),
        ({"world_size": 0}, ValueError, "world_size must be from 1 to"),
        ({"rank": 3, "world_size": 4}, ValueError, "no batch of 2 rows for rank 3 of 4: there are"),
        ({"batch_size": 3, "drop_last": True}, ValueError, "no batch of 3 rows for rank 0 of 1"),
        ({"context": 10}, ValueError, "a context of 10 needs 11 tokens; there are 10"),
    ],
)
def test_batches_that_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        TokenDataset(np.arange(10), 4).batches(**{"batch_size": 2, **options})


def test_places_that_cannot_be():
    batches = TokenDataset(np.arange(30), 4).batches(2)
    with pytest.raises(IndexError, match="there are 5 batches in an epoch, and no batch 5"):
        batches[5]
    with pytest.raises(ValueError, match="the number of a batch must be from 0"):
        batches[-1]
    with pytest.raises(ValueError, match="position must be from 0 to 5, not 6"):
        batches.position = 6
    with pytest.raises(ValueError, match="epoch must be from 0"):
        batches.epoch = -1
    batches.position = 5
    assert (batches.epoch, batches.position) == (1, 0)
    assert "epoch 1, batch 0" in repr(batches) and isinstance(batches, Batches)
    assert "7 rows of 4 positions" in repr(batches.dataset)
    assert isinstance(batches[0], Pair)


# PyTorch


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("order", ORDERS)
def test_workers_of_torch_give_the_same_batches(torch, tmp_path, tokenizer, workers, pack, order):
    (tmp_path / "in.txt").write_text("low lower\nlowest\nwidest\n" * 20)
    write_shards(
        tmp_path / "in.txt",
        tokenizer,
        tmp_path / "out",
        documents="line",
        shard_tokens=50,
        eos=True,
    )
    data = TokenDataset(tmp_path / "out", 6, pack=pack, dtype="int64")
    batches = data.batches(4, order=order)
    expected = [listed(batch) for batch in data.batches(4, order=order)]
    loader = torch.utils.data.DataLoader(batches, batch_size=None, num_workers=workers)
    found = list(loader)
    assert [listed(batch) for batch in found] == expected
    assert all(tensor.dtype == torch.int64 for tensor in found[0][:2])
    batches.position = 3
    loader = torch.utils.data.DataLoader(
        batches, batch_size=None, num_workers=workers, sampler=batches.remaining()
    )
    assert [listed(batch) for batch in loader] == expected[3:]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("order", ORDERS)
def test_epochs_in_workers_of_torch_that_persist(torch, workers, pack, order):
    options = {"pack": pack, "dtype": "int64"}
    expected = [
        listed(batch)
        for batch in itertools.islice(dataset(**options).batches(2, order=order).forever(), 20)
    ]
    batches = dataset(**options).batches(2, order=order)
    loader = torch.utils.data.DataLoader(
        batches,
        batch_size=None,
        num_workers=workers,
        persistent_workers=workers > 0,
        sampler=batches.remaining(),
    )
    seen, states = [], []
    while len(seen) < 20:
        for batch in loader:
            seen.append(listed(batch))
            batches.position += 1
            states.append(batches.state_dict())
    assert seen[:20] == expected
    again = dataset(**options).batches(2, order=order)
    again.load_state_dict(states[11])
    assert [listed(next(iter(again))) for _ in range(8)] == expected[12:20]


@pytest.mark.parametrize("pack", PACKS)
def test_workers_of_torch_that_persist_do_not_repeat_an_epoch(torch, pack):
    batches = dataset(pack=pack, dtype="int64").batches(2, order="shuffled")
    loader = torch.utils.data.DataLoader(
        batches, batch_size=None, num_workers=2, persistent_workers=True
    )
    assert len(list(loader)) == len(batches)
    batches.epoch = 1
    with pytest.raises(RuntimeError, match=r"give the DataLoader sampler=batches.remaining\(\)"):
        list(loader)


@pytest.mark.parametrize("pack", PACKS)
def test_two_loops_over_a_loader_of_torch_at_a_time(torch, pack):
    batches = dataset(pack=pack, dtype="int64").batches(2, order="shuffled")
    expected = [listed(batch) for batch in batches]
    batches.epoch = 0
    loader = torch.utils.data.DataLoader(
        batches, batch_size=None, num_workers=2, sampler=batches.remaining()
    )
    pairs = [(listed(one), listed(other)) for one, other in zip(loader, loader)]
    assert pairs == [(batch, batch) for batch in expected]


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_makes_batches_of_rows(torch, workers):
    data = TokenDataset(np.arange(100, dtype=np.uint16), 6, dtype="int64")
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers)
    expected = [listed(batch) for batch in data.batches(4)][:-1]  # without what is left over
    assert [listed(batch) for batch in loader] == expected
