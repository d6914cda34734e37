"""The differential harness: a twin against the reference, on random cases."""

from itertools import zip_longest

from hypothesis import given, settings

from faults import FAULTS
from strategies import CASES
from tokbpe import reference

# How many in a run, at least; the profile "long" asks for more.
CORPORA = max(3000, settings.default.max_examples)
CALLS = max(2000, settings.default.max_examples)


def compare(case, twin):
    """Play a case on both engines; AssertionError at the first step whose outcomes differ."""
    for ours, theirs in zip_longest(case.play(twin), case.play(reference)):
        # In writing, 1 and True and numpy.uint32(1) differ, and dicts show their order.
        assert repr(ours) == repr(theirs), f"{ours}, where the reference has {theirs}, in {case}"


def compare_all(cases, examples, twin, **options):
    """Compare on so many random cases; `options` are settings of hypothesis."""

    @settings(max_examples=examples, **options)
    @given(cases)
    def agrees(case):
        compare(case, twin)

    agrees()


def compare_corpora(twin, examples=CORPORA, **options):
    compare_all(CASES, examples, twin, **options)


def compare_calls(twin, examples=CALLS, **options):
    compare_all(FAULTS, examples, twin, **options)
