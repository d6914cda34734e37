"""The differential harness: a twin against the reference, on random cases."""

from itertools import zip_longest
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from faults import FAULTS
from strategies import (
    core_cases,
    encoding_cases,
    rule_cases,
    special_cases,
    text_cases,
    tokenizer_cases,
    training_cases,
    unit_cases,
)
from tokbpe import reference


class Kind(NamedTuple):
    """A kind of random cases."""

    cases: SearchStrategy
    examples: int  # in a run, at least; the profile "long" asks for more


# Of the corpora of the first four there are 4,000 in a run.
KINDS = {
    "texts": Kind(text_cases(), 1500),
    "trainings": Kind(training_cases(), 1000),
    "cores": Kind(core_cases(), 1000),
    "encodings": Kind(encoding_cases(), 500),
    "merge rules": Kind(rule_cases(), 600),
    "special tokens": Kind(special_cases(), 400),
    "units": Kind(unit_cases(), 400),
    "tokenizers": Kind(tokenizer_cases(), 300),
    "faults": Kind(FAULTS, 2000),
}


def compare(case, twin):
    """Play a case on both engines; AssertionError at the first step whose outcomes differ."""
    for ours, theirs in zip_longest(case.play(twin), case.play(reference)):
        # In writing, 1 and True and numpy.uint32(1) differ, and dicts show their order.
        assert repr(ours) == repr(theirs), f"{ours}, where the reference has {theirs}, in {case}"


def compare_random(kind, twin, examples=None, **options):
    """Compare on random cases of a kind; `options` are settings of hypothesis."""
    cases, least = KINDS[kind]

    @settings(max_examples=examples or max(least, settings.default.max_examples), **options)
    @given(cases)
    def agrees(case):
        compare(case, twin)

    agrees()
