"""The examples of the README, and the two commands it starts with."""

import doctest
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```pycon\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_gives_what_it_shows(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_first_thing_is_the_two_commands():
    commands = re.findall(r"^```bash\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[:2]
    new = "python3 -m venv .venv && . .venv/bin/activate && pip install"
    assert commands == [f"{new} . && tokbpe demo\n", f'{new} -e ".[test]" && pytest\n']
