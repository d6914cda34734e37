"""The notebooks: what they claim, their exercises, and how they are stored.

Their cells are run here as they stand, one after another, without Jupyter; that they run in Jupyter
is seen by the stage `notebooks` of the gate. What they show is kept by the name of the cell.
"""

import ast
import json
import math
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from differential import KINDS
from tokbpe import exercises, reference

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = {path.name[:2]: path for path in sorted(FOLDER.glob("*.ipynb"))}
LARGEST = 500_000  # bytes of a file


@cache
def cells(number):
    """Cell id -> cell, in their order."""
    notebook = json.loads(NOTEBOOKS[number].read_text(encoding="utf-8"))
    return {cell["id"]: cell for cell in notebook["cells"]}


def source(number, name):
    return "".join(cells(number)[name]["source"])


def code_cells(number):
    return [name for name, cell in cells(number).items() if cell["cell_type"] == "code"]


def run(code, name, names):
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    return last and eval(compile(ast.Expression(last.value), name, "eval"), names)


@pytest.fixture(scope="module")
def played():
    """Runs a notebook, once: its names, and what its cells show."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    patch = pytest.MonkeyPatch()
    patch.chdir(FOLDER)
    patch.syspath_prepend(FOLDER)
    pyplot.switch_backend("agg")

    @cache
    def play(number):
        names = {"__name__": "__main__"}
        shown = {name: run(source(number, name), name, names) for name in code_cells(number)}
        pyplot.close("all")
        return SimpleNamespace(names=SimpleNamespace(**names), shown=shown, all=names)

    yield play
    patch.undo()


# How they are stored


def test_there_are_six():
    assert list(NOTEBOOKS) == ["01", "02", "03", "04", "05", "06"]


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_it_is_stored_as_it_was_run(number):
    text = NOTEBOOKS[number].read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    # Nothing of the machine: folders, dates, numbers of processes.
    assert not re.search(r"/(tmp|home|root|work)/|site-packages|ipykernel_|\d{4}-\d\d-\d\dT", text)
    notebook = json.loads(text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert len(cells(number)) == len(notebook["cells"])  # each has an id of its own
    stored = [cells(number)[name] for name in code_cells(number)]
    assert [cell["execution_count"] for cell in stored] == [*range(1, len(stored) + 1)]
    outputs = [output for cell in stored for output in cell["outputs"]]
    for output in outputs:
        assert output["output_type"] != "error" and output.get("name") != "stderr"
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert kinds & {"image/png", "image/svg+xml", "text/html"}  # pictures


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_it_runs(played, number):
    shown = played(number).shown
    checks = [shown[name] for name in shown if re.fullmatch(r"exercise-\d-check", name)]
    assert 2 <= len(checks) <= 3
    assert checks == [exercises.NOT_YET] * len(checks)


@pytest.mark.parametrize("number", ["01"])
def test_what_is_stored_is_what_it_shows(played, number):
    """Of the notebook that depends on nothing but its own texts; `notebooks/store.py` stores it."""
    compared = 0
    for name, value in played(number).shown.items():
        if type(value).__module__.startswith("tokbpe."):
            data = cells(number)[name]["outputs"][-1]["data"]
            assert "".join(data["text/plain"]) == repr(value)
            for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
                if kind in data:
                    assert "".join(data[kind]) == getattr(value, method)()
            compared += 1
    assert compared >= 10


# The questions

QUESTIONS = {
    "why-lowest": ("01", "Why is `lowest` split as it is?"),
    "why-tie": ("01", "What happens at a tie?"),
    "why-runs": ("01", "Why are `aaa` two pairs and one merge?"),
    "why-split-first": ("06", "Why must documents be split before training?"),
}


@pytest.mark.parametrize("tag", QUESTIONS)
def test_a_question_has_its_answer(tag):
    number, question = QUESTIONS[tag]
    names = [*cells(number)]
    (heading,) = (
        place
        for place, name in enumerate(names)
        if re.search(rf"^## \d+\. {re.escape(question)}$", source(number, name), re.MULTILINE)
    )
    tagged = [name for name in names if tag in cells(number)[name]["metadata"].get("tags", ())]
    # A picture and an answer in words, below the question.
    assert {cells(number)[name]["cell_type"] for name in tagged} == {"code", "markdown"}
    assert {names.index(name) - heading for name in tagged} <= {1, 2, 3, 4}
    answers = [name for name in tagged if source(number, name).startswith("**Answer.** ")]
    assert len(answers) == 1


# Exercises

WRONG = {
    ("01", 1): ['("l o", 1)', '("e l", 2)', '("x y", 1)', '"e l"'],
    ("01", 2): ['"aaaa"', '"bcabdbcab"', '""', "5"],
    ("01", 3): ["500", "1", "251"],
    ("02", 1): ['"mats"[:3]', '"the cat"', '"lemon"', "7"],
    ("02", 2): ["[8364]", "[0xE2, 0x82, 0xAD]", "[226, 130]", '"€€€"'],
    ("02", 3): ["3.2768", "0.8", "1"],
    ("03", 1): ["[97, 256, 97, 98]", "[257, 99, 257]", "[97, 256]"],
    ("03", 2): ['"a b c d e"', '"a  b"', '"abcdef  ghijkl  mno"'],
    ("03", 3): [
        'lambda text: own.encode(text + "<|end|>", allowed_special="all")',
        "own.encode",
        "lambda text: [END]",
    ],
    ("04", 1): ['{"a n": -2, "n a": -2, "b a": -1, "b an": 1, "an a": 2}', "{}", "[-2]"],
    ("04", 2): [
        "reference.merge_pair",
        "lambda sequence, pair, new_id: list(sequence)",
        "lambda sequence, pair: sequence",
    ],
    ("05", 1): ["(1.2, 3.1)", "(1.7312, 4.47)", "(1.0648, 1.7312)", "1.73", "(1.7312,)"],
    ("05", 2): ["61_036", "61_034", "65_536"],
    ("05", 3): ["256", "16_384", "0"],
    ("06", 1): ["([1, 4, 1], [4, 1, 5])", "([1, 5, 9], [9, 2, 6])", "([1, 5], [5, 9])"],
    ("06", 2): ["lambda losses, mask: losses.mean()", "lambda losses, mask: losses.sum()", "2"],
    ("06", 3): ["4", "0.3 * 2.7726", "1.25"],
}


def exercises_of(number):
    return [name for name in cells(number) if re.fullmatch(r"exercise-\d", name)]


def test_each_exercise_has_wrong_answers():
    found = {(number, int(name[-1])) for number in NOTEBOOKS for name in exercises_of(number)}
    assert found == set(WRONG)


def verdict(played, number, name, code):
    names = dict(played(number).all)
    run(code, name, names)
    return run(source(number, f"{name}-check"), name, names)


@pytest.mark.parametrize("number, exercise", WRONG)
def test_a_right_answer_passes_and_a_wrong_one_is_told(played, number, exercise):
    name = f"exercise-{exercise}"
    variable = re.fullmatch(r"(\w+) = \.\.\.", source(number, name))[1]
    (answer,) = re.findall(r"^```python\n(.*?)^```$", source(number, f"{name}-answer"), re.S | re.M)
    found = verdict(played, number, name, answer)
    assert found.passed and found.text == "✓ right"
    for wrong in WRONG[number, exercise]:
        found = verdict(played, number, name, f"{variable} = {wrong}")
        assert not found.passed and found.text.startswith("✗ "), wrong


# 1: merges


def test_pairs_are_counted_with_weights(played):
    names = played("01").names
    assert names.corpus == {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    first = names.run.pair_table()
    counts = {first.spelled(pair): count for pair, count in first.counts.items()}
    assert counts == {
        "l o": 7, "o w</w>": 5, "o w": 2, "w e": 8, "e r</w>": 2, "n e": 6, "e w": 6, "e s": 9,
        "s t</w>": 9, "w i": 3, "i d": 3, "d e": 3,
    }  # fmt: skip
    assert first.spelled(first.winner) == "e s"


def test_a_heat_map_shows_the_counts_and_frames_the_winner(played):
    (axes,) = played("01").shown["count-picture"].axes
    columns, rows = (
        [label.get_text() for label in labels]
        for labels in (axes.get_xticklabels(), axes.get_yticklabels())
    )
    written = {
        (rows[round(y)], columns[round(x)]): text.get_text()
        for text in axes.texts
        for x, y in [text.get_position()]
    }
    assert written["e", "s"] == written["s", "t</w>"] == "9"
    assert len(written) == 12
    (frame,) = axes.patches
    x, y = frame.get_xy()
    assert (rows[round(y + 0.5)], columns[round(x + 0.5)]) == ("e", "s")


def test_replacing_in_a_joined_text_is_wrong(played):
    names = played("01").names
    joined = " ".join(names.run.token(id).plain for id in names.row)
    assert joined == "w i d es t</w>"
    assert "s t</w>" in joined and (names.s, names.t) not in zip(names.row, names.row[1:])


def test_lowest(played):
    shown = played("01").shown
    tree = shown["lowest-tree"]
    assert [root.token.plain for root in tree.roots] == ["lo", "we", "st</w>"]
    assert [root.rank for root in tree.roots] == [0, 2, 3]
    assert [state.rank for state in shown["lowest-claim"]] == [None, 0, 2, 3]


def test_ties(played):
    shown = played("01").shown
    table = shown["ties-picture"]
    assert [table.spelled(pair) for pair in table.tied] == ["w e", "e s", "s t</w>"]
    assert shown["ties-claim"] == {"smallest": "e s", "first": "w e", "greatest": "w e"}
    assert table._repr_html_().count("2px dashed") == 2  # as frequent as the winner
    spelled = {rule: str(found) for rule, found in shown["ties-texts"].tokens.items()}
    assert spelled == {
        "smallest": "[aa][ab][d][aa][ab][a][c]",
        "first": "[aaa][b][d][aaa][b][a][c]",
        "greatest": "[aaa][b][d][aaa][b][a][c]",
    }


def test_runs(played):
    (count,) = played("01").shown["runs-table"].counts.values()
    assert count == 2
    assert played("01").names.aaa.rows_after(1) == [[256, 97]]


# 2: characters, bytes, words, subwords


def test_what_a_table_costs(played):
    names = played("02").names
    assert names.entry == 4096 * 4 == 16 * 1024
    assert names.cost["a million words"] == 16_384_000_000
    axes = names.bars.patches[0].axes
    assert [text.get_text() for text in axes.texts][-1] == "16.38 GB"
    assert [bar.get_width() for bar in names.bars][-1] == pytest.approx(16.384)


def test_what_is_unknown(played):
    names = played("02").names
    assert set(names.sentence.split()) == {"the", "cat", "sat", "on", "mat"}
    assert not {"cats", "The", "sat."} & set(names.words)
    assert len(set(names.sentence)) == 10
    unknown = [token.kind for token in played("02").shown["characters-unknown"].shown]
    assert unknown.count("unknown") == 2
    assert str(played("02").shown["bytes-tokens"]).count("‹") == 2 + 3 + 3 + 4


def test_subwords_are_fewer(played):
    found = played("02").shown["subwords-compare"].tokens
    assert len(found["characters"]) == len(found["bytes"]) > 2 * len(found["subwords"])


def test_ten_languages(played):
    names = played("02").names
    assert len(names.cat) == 10
    for text in names.cat.values():
        assert names.subwords.decode(names.subwords.encode(text)) == text


# 3: encoding


def test_merge_order_and_longest_match_differ(played):
    names = played("03").names
    assert [root.token.plain for root in played("03").shown["order-tree"].roots] == ["a", "bc"]
    assert names.longest_first(names.small).findall(b"abc") == [b"ab", b"c"]
    for word in names.others:
        assert names.merged(names.own, word) != names.longest.findall(word)
        assert b"".join(names.longest.findall(word)) == word


def test_a_whole_piece_and_special_tokens(played):
    shown = played("03").shown
    (root,) = shown["whole-cat"].roots
    assert root.taken and root.token.piece == b"cat"
    assert [token.plain for token in shown["whole-tree"].shown][:3] == ["cat", "·", "c"]
    kinds = {
        name: [token.kind for token in shown[name].shown]
        for name in shown
        if "special" in name and shown[name]
    }
    assert "special token" not in kinds["special-text"]
    assert kinds["special-allowed"].count("special token") == 1
    assert kinds["special-roles"].count("reserved id") == 4


def test_real_vocabularies_or_learned_ones(played):
    vocabularies = played("03").names.vocabularies
    assert len(vocabularies) >= 2 and "own" in vocabularies
    assert list(played("03").shown["real-compare"].tokens) == list(vocabularies)


# 4: from Python to Cython


def test_where_the_time_goes(played):
    names = played("04").names
    assert names.shares["train"] == max(names.shares.values()) == 1
    assert names.shares["count_pairs"] + names.shares["merge_pair"] > 0.8


def test_what_a_merge_changes(played):
    names = played("04").names
    assert names.looked_at[0] == len(names.text) and len(names.looked_at) == 100
    assert sum(names.looked_at) > 50 * sum(names.changed)
    assert [bar.get_width() for bar in names.bars] == [*names.change.values()]
    assert names.change == {"l o": -3, "o w": -3, "s l": -1, "lo w": 3, "s lo": 1}


def test_cells(played):
    names = played("04").names
    merged_twice = names.cells(names.small.rows_after(2))
    low = ["low", "", "low"]
    assert merged_twice == [None, *low, "e", "r", None, *low, None, "s", *low, None]


def test_the_lines_of_cython_are_those_that_are_explained(played):
    shown = played("04").names.merge_places
    for words in ("noexcept nogil", "Cell *cells", "tokbpe_prefetch", "note(", "hole", "new"):
        assert words in shown
    assert "if cells[position] != left or" in shown
    assert "    PLACES_AHEAD = 12\n" in played("04").names.update  # as the text has it
    assert len(KINDS) == 9


def test_a_planted_bug_is_caught(played):
    names = played("04").names
    assert names.planted([98, 98, 98], (98, 98), 256) == [256]
    assert reference.merge_pair([98, 98, 98], (98, 98), 256) == [256, 98]
    found = exercises.check(names.planted)
    assert not found and "right [256, 98, 97]" in found.text
    assert not names.found  # by the check of a whole text
    assert names.reference.merge_pair is reference.merge_pair  # it is not left there


def test_the_speed_up_is_what_was_measured(played):
    names = played("04").names
    assert [*names.speedup] == names.MERGES
    (line,) = names.right.lines
    measured = [names.slow[merges] / names.quick[merges] for merges in names.MERGES]
    assert [*line.get_ydata()] == measured
    assert len(names.steps) == names.MERGES[-1]
    assert all(found == names.steps for found, _ in names.runs)


# 5: the size of the vocabulary


def test_longer_tokens_from_more_merges(played):
    names = played("05").names
    assert names.SIZES == [256, 512, 1024, 2048, 4096, 8192, 16_384]
    (line,) = played("05").shown["once-plot"].axes[0].lines
    assert line.get_xdata().tolist() == names.SIZES
    values = line.get_ydata().tolist()
    assert values[0] == 1 and values == sorted(values)
    assert values == names.bytes_per_token.tolist()
    assert all(name not in names.seen for name in names.unseen)


def test_what_is_not_used(played):
    names = played("05").names
    tokenizer = names.largest.truncated(1024)
    occurring = {id for ids in tokenizer.encode_batch(names.unseen) for id in ids}
    assert names.unused[2] == 1024 - len(occurring)


def test_languages_are_measured_on_what_was_not_learned(played):
    names = played("05").names
    learned = "".join(part for part in names.seen if isinstance(part, str))
    assert all(text not in learned for text in names.texts.values())
    rows = names.fertility.tolist()
    assert rows[-1].index(min(rows[-1])) == 0  # English


def test_an_entry_costs_16_kb(played):
    names = played("05").names
    assert names.ENTRY == 16 * 1024
    assert names.megabytes[-1] == 16_384 * 16_384 / 1e6
    assert names.tokens[0] == names.text_bytes == sum(map(len, names.unseen))


def test_token_loss_and_bits_per_byte_point_in_opposite_directions(played):
    names = played("05").names
    left, right = ([*axes.lines[0].get_ydata()] for axes in (names.left, names.right))
    assert left == sorted(left) and right == sorted(right, reverse=True)
    by_byte = names.losses[0] / math.log(2)  # each token is a byte
    assert right[0] == pytest.approx(by_byte)


# 6: from tokens to loss


def test_leakage(played):
    names = played("06").names
    assert not set(names.validation) & set(names.training)
    texts = [text.get_text() for text in played("06").shown["split-first-plot"].axes[0].texts]
    values = names.honest_train, names.honest_new, names.leaky_train, names.leaky_new
    assert texts == [f"{value:.2f}" for value in values]
    assert names.leaky_new > 1.2 * names.honest_new


def test_windows_masks_and_the_stop_id(played):
    names = played("06").names
    assert names.window.inputs.tolist() == [4, 7, 2, 9]
    assert names.window.targets.tolist() == [7, 2, 9, 3]
    assert names.used == {way: data.utilization for way, data in names.ways.items()}
    titles = [axes.get_title(loc="left") for axes in names.all_axes]
    for title, data in zip(titles, names.ways.values()):
        rows = [row.mask for row in data]
        assert f": {sum(mask.sum() for mask in rows)} of {len(rows) * 16} positions" in title
    assert names.row.targets[names.row.mask][-1] == names.tokenizer.eos_id
    assert names.ways["document"].pad_id == names.tokenizer.pad_id


def test_bytes_against_bpe(played):
    names = played("06").names
    assert names.ends_at["bytes"] < names.ends_at["BPE"]
    assert names.bits["bytes"] > names.bits["BPE"]
    assert {name: len(each.losses) for name, each in names.runs.items()} == {
        "bytes": names.STEPS,
        "BPE": names.STEPS,
    }


def test_a_run_goes_on_where_it_stood(played):
    whole, saved, going_on = played("06").names.axes.lines
    assert [*saved.get_ydata(), *going_on.get_ydata()] == [*whole.get_ydata()]
    assert len(saved.get_ydata()) == len(going_on.get_ydata()) == 15
