"""The examples of the README, and the two commands it starts with."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from tokbpe import cli

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```pycon\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_gives_what_it_shows(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_commands_run(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text("A cat sat on the mat. " * 50, encoding="utf-8")
    Path("chapter.txt").write_text("The cat and the mat.\n", encoding="utf-8")
    block = re.search(r"^```bash\n(tokbpe train .*?)^```$", README, re.DOTALL | re.MULTILINE)
    outputs = []
    for line in block[1].splitlines():
        assert cli.main(shlex.split(line, comments=True)[1:]) == 0
        outputs.append(capfdbinary.readouterr().out)
    assert b"The cat and the mat.\n" in outputs  # what `decode` writes


def test_the_first_thing_is_the_two_commands():
    commands = re.findall(r"^```bash\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[:2]
    new = "python3 -m venv .venv && . .venv/bin/activate && pip install"
    assert commands == [f"{new} . && tokbpe demo\n", f'{new} -e ".[test]" && pytest\n']
