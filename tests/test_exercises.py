"""The checks of the exercises: right answers pass, wrong ones are told. The functions of
notebooks/exercise.md are those of tests/test_exercise_text.py."""

import random

import pytest

from tokbpe import exercises, reference


def test_an_answer_is_judged():
    def problem(answer):
        return None if answer == 2 else f"{answer} is not two"

    assert exercises.judge(..., problem) == exercises.NOT_YET
    assert not exercises.NOT_YET and "not yet" in repr(exercises.NOT_YET)
    assert exercises.judge(2, problem)
    assert repr(exercises.judge(2, problem)) == "✓ right"
    assert repr(exercises.judge(3, problem)) == "✗ 3 is not two"


def test_an_exception_is_a_wrong_answer():
    found = exercises.judge("two", lambda answer: answer + 1)
    assert not found and found.text.startswith("✗ TypeError: can only concatenate")


def test_the_shortest_failure_is_told():
    def merge_pair(sequence, pair, new_id):  # overlaps: what was merged is merged again
        merged = list(sequence)
        for place in range(len(sequence) - 1):
            if tuple(sequence[place : place + 2]) == pair:
                merged[place : place + 2] = [new_id, new_id]
        return merged

    found = exercises.check(merge_pair)
    assert not found
    first, call, gives, right = found.text.splitlines()
    assert first.startswith("✗ merge_pair: wrong in ") and first.endswith(" of 300 cases")
    given = eval(call.removeprefix("merge_pair"))
    assert gives == f"  gives {merge_pair(*given)}"
    assert right == f"  right {reference.merge_pair(*given)}"
    assert len(given[0]) == 2


def test_errors_and_other_types_are_told():
    def count_pairs(sequences, weights):
        raise KeyError(97)

    def decode(ids, merges):
        return "text"

    assert "gives KeyError: 97" in exercises.check(count_pairs).text
    assert "gives 'text'" in exercises.check(decode).text


def test_a_function_may_change_what_it_is_given():
    def merge_pair(sequence, pair, new_id):
        merged = reference.merge_pair(sequence, pair, new_id)
        sequence.clear()
        return merged

    assert exercises.check(merge_pair)


def test_a_name_that_is_no_step():
    def merge_pairs(sequence, pair, new_id): ...

    with pytest.raises(ValueError, match="must be one of 'count_pairs', .*, not 'merge_pairs'"):
        exercises.check(merge_pairs)
    with pytest.raises(TypeError, match="not NoneType"):
        exercises.check(3)


@pytest.mark.parametrize("name", exercises.STEPS)
def test_cases_are_many_and_varied(name):
    cases = list(exercises.STEPS[name](random.Random(0)))
    assert len(cases) == exercises.CASES
    assert len({repr(given) for given, _ in cases}) > 100
    assert len({repr(right) for _, right in cases}) > 60
    assert repr(list(exercises.STEPS[name](random.Random(0)))) == repr(cases)


def test_the_command(tmp_path, capsys):
    path = tmp_path / "mine.py"
    one = "from tokbpe.reference import merge_pair\n"
    path.write_text(f"{one}def decode(ids, merges): return b''\n")
    assert exercises.main([str(path)]) == 1
    merging, decoding, *shown, last = capsys.readouterr().out.splitlines()
    assert merging == "✓ merge_pair: right in 300 random cases"
    assert decoding.startswith("✗ decode: wrong in ")
    assert last == "1 of 6 steps are done"
    path.write_text(one)
    assert exercises.main([str(path)]) == 0
    assert exercises.main([]) == 2
    assert "usage: python -m tokbpe.exercises FILE" in capsys.readouterr().err
