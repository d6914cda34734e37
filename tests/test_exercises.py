"""The checks of the exercises, and notebooks/exercise.md: right answers pass, wrong ones are
told."""

import doctest
import random
import re
import subprocess
import sys
from pathlib import Path

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


# The text

TEXT = (Path(__file__).parents[1] / "notebooks" / "exercise.md").read_text(encoding="utf-8")
*ANSWERS, END = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
ALL = "\n\n".join(ANSWERS)


def names_of(code):
    names = {}
    exec(code, names)
    return names


def test_there_is_an_answer_for_each_step():
    headings = re.findall(r"^## (\d)\. .*\n\nWrite `(\w+)\(", TEXT, re.MULTILINE)
    assert [name for _, name in headings] == [*exercises.STEPS]
    assert [int(number) for number, _ in headings] == [*range(1, 7)]
    assert [re.search(r"^def (\w+)", code, re.M)[1] for code in ANSWERS] == [*exercises.STEPS]


def test_the_examples_give_what_they_show():
    (names, failed, attempted) = (names_of(ALL), 0, 0)
    for example in re.findall(r"^```pycon\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE):
        test = doctest.DocTestParser().get_doctest(example, names, "exercise.md", None, 0)
        result = doctest.DocTestRunner().run(test, clear_globs=False)
        failed, attempted = failed + result.failed, attempted + result.attempted
    assert failed == 0 and attempted == 8


def test_the_answers_pass_as_the_text_says(tmp_path):
    (command,) = re.findall(r"^```bash\npython (.*)\n```$", TEXT, re.MULTILINE)
    assert command == "-m tokbpe.exercises my_tokenizer.py"
    (tmp_path / "my_tokenizer.py").write_text(ALL, encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "-X", "utf8", *command.split()],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        *(f"✓ {name}: right in 300 random cases" for name in exercises.STEPS),
        "6 of 6 steps are done",
    ]


def test_the_end_holds():
    exec(END, names_of(ALL))


SMALLER = "min(counts, key=lambda pair: (-counts[pair], pair))"
MISTAKES = {
    "weights forgotten": ("count_pairs", "+ weight", "+ 1"),
    "the last pair left out": ("count_pairs", "sequence[1:]", "sequence[1:-1]"),
    "overlapping merges": ("merge_pair", "place += 2", "place += 1"),
    "the greater of a tie": ("train", SMALLER, "max(counts, key=lambda p: (counts[p], p))"),
    "met first at a tie": ("train", SMALLER, "max(counts, key=counts.get)"),
    "pairs that occur once": ("train", "< 2", "< 1"),
    "halves turned": ("decode", "pieces[left] + pieces[right]", "pieces[right] + pieces[left]"),
    "merges backwards": ("encode", "enumerate(merges, 256)", "[*enumerate(merges, 256)][::-1]"),
    "the shortest special token": ("tokenize", ", reverse=True", ""),
    "no pieces": ("tokenize", 'split(part, "gpt2")', "[part.encode()]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake):
    name, right, wrong = MISTAKES[mistake]
    number = [*exercises.STEPS].index(name)
    assert ANSWERS[number].count(right) == 1
    code = [*ANSWERS]
    code[number] = ANSWERS[number].replace(right, wrong)
    found = exercises.check(names_of("\n\n".join(code))[name])
    assert not found and found.text.startswith(f"✗ {name}: wrong in ")


def test_the_failure_that_the_text_shows_is_real():
    (shown,) = re.findall(r"^```text\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)

    def merge_pair(sequence, pair, new_id):
        return reference.merge_pair(sequence, pair, new_id) if pair[0] != pair[1] else sequence

    assert repr(exercises.check(merge_pair)) == "\n".join(shown.splitlines()[1:-1])
