"""Each fuzzing target on its seeds, on what was once found, and on simple mutations of these.

`.ci/fuzz` looks for more, guided by what is reached. What it finds comes into the folder of the
target, with a name that says what was wrong.
"""

from pathlib import Path
from random import Random

import pytest

from fuzzing.inputs import mutated
from fuzzing.targets import TARGETS
from tokbpe import Shards, fast, parquet_pages, reference
from tokbpe.formats import printable_json

SEEDS = Path(__file__).parent / "fuzzing" / "seeds"
MUTATIONS = 40

pytestmark = pytest.mark.core


def seeds(target):
    return {path.name: path.read_bytes() for path in sorted((SEEDS / target).iterdir())}


def run(target, data):
    try:
        TARGETS[target](data)
    except Exception as error:
        raise AssertionError(f"{target} fails on {data!r}") from error


def test_each_target_has_seeds():
    assert {path.name for path in SEEDS.iterdir()} == {*TARGETS}


@pytest.mark.parametrize("target", TARGETS)
def test_seeds(target):
    for data in seeds(target).values():
        run(target, data)


@pytest.mark.parametrize("target", TARGETS)
def test_mutations(target):
    random = Random(target)
    found = [*seeds(target).values()]
    for _ in range(MUTATIONS):
        run(target, mutated(random.choice(found), random))


# That targets can fail


def without_the_last(function):
    return lambda *arguments: function(*arguments)[:-1]


def breaking(*_):
    raise KeyError("a fault")


PLANTED = {
    "json": (printable_json, "check_merges", lambda _: breaking),
    "shards": (Shards, "verify", lambda _: lambda *_: None),
    "parquet": (parquet_pages, "page_of", lambda _: breaking),
    "encode": (reference, "encode", without_the_last),
    "decode": (reference, "decode", without_the_last),
    "pattern": (reference, "split", without_the_last),
    "special": (fast, "cut_special", without_the_last),
}


@pytest.mark.parametrize("target", PLANTED)
def test_planted_faults_are_found(target, monkeypatch):
    place, name, fault = PLANTED[target]
    run_seeds = [*seeds(target).values()]
    monkeypatch.setattr(place, name, fault(getattr(place, name)))
    with pytest.raises(AssertionError, match=f"{target} fails on "):
        for data in run_seeds:
            run(target, data)
