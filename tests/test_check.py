"""The check on a user's own text: what it takes, what it finds, how small it makes it."""

import io
import sys

import pytest

from tokbpe import check, engines

pytestmark = pytest.mark.core

TEXT = "low lower lowest, new newer newest: Grüße 🐈\n".encode() * 5 + bytes([0, 255, 128])
SMALL = check.Plan(merges=8)


def files(*contents):
    return [io.BytesIO(content) for content in contents]


def checked(*contents, plan=SMALL):
    """The lines, and the message of the failure if there is one."""
    lines = []
    try:
        for line in check.lines(files(*contents), plan):
            lines.append(line)
    except check.CheckError as error:
        return lines, str(error)
    return lines, None


@pytest.fixture
def fast():
    """The module of the fast engine."""
    return engines.get("fast")


# The text


class Pipe(io.BytesIO):
    """A file in which one cannot go back."""

    def seekable(self):
        return False

    def seek(self, *arguments):
        raise io.UnsupportedOperation("a pipe has no places")


@pytest.mark.parametrize("kind", [io.BytesIO, Pipe])
@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 3456])
def test_a_file_within_the_bound_is_taken_whole(kind, size):
    content = bytes(index % 251 for index in range(size))
    documents = check.parts(kind(content), 4000)
    assert b"".join(documents) == content
    assert all(0 < len(document) <= check.LONGEST_DOCUMENT for document in documents)


@pytest.mark.parametrize("kind", [io.BytesIO, Pipe])
def test_a_long_file_is_taken_evenly(kind):
    content = b"".join(b"%06d" % index for index in range(10_000))
    documents = check.parts(kind(content), 3000)
    assert documents == [content[start : start + 1000] for start in (0, 20_000, 40_000)]


def test_what_short_files_leave_others_get():
    documents = check.sample(files(b"a" * 10, b"b" * 900, b"c" * 900), 1000)
    assert b"".join(documents) == b"a" * 10 + b"b" * 495 + b"c" * 495


def test_files_without_bytes_are_refused():
    with pytest.raises(ValueError, match="the files hold no bytes"):
        list(check.lines(files(b"", b""), SMALL))


# Engines that agree


@pytest.mark.parametrize("pattern", ["cl100k", None, "[a-z]+"])
def test_engines_agree_and_the_check_says_in_what(pattern):
    lines, failure = checked(TEXT, b"another", plan=check.Plan(merges=8, pattern=pattern))
    assert failure is None
    assert lines[0].startswith(f"{len(TEXT) + 7} bytes from 2 files, as 2 documents")
    assert [line.split(":")[0] for line in lines[2:-1]] == [
        "  splitting",
        "  ties smallest",
        "  ties first",
        "  ties greatest",
    ]
    assert all("8 merges with their counts, " in line for line in lines[3:-1])
    assert lines[-1] == "The engines agree in all of this."


def test_numbers_are_right():
    lines, failure = checked(b"ababab")
    assert failure is None
    assert lines[2] == "  splitting: 1 pieces, 1 distinct ones with their counts"
    assert lines[3].startswith("  ties smallest: 3 merges with their counts, 1 ids, ")


# Engines that differ


def wrong_results(function, change, seen=lambda *arguments: True):
    """A function whose results are changed, for such arguments as are `seen`."""

    def wrong(*arguments, **options):
        result = function(*arguments, **options)
        return change(result) if seen(*arguments, *options.values()) else result

    return wrong


def count_raised(result):
    merges, counts = result
    return merges, counts + 1


def last_merge_lost(result):
    merges, counts = result
    return merges[:-1], counts[:-1]


def without_last(result):
    return dict(list(result.items())[:-1])


def holds(word):
    return lambda text, *rest: word in bytes(text)


def asks_for(rule):
    return lambda *arguments: any(isinstance(a, str) and a == rule for a in arguments)


FAULTS = {
    "split": (lambda pieces: pieces[1:], holds(b"er l"), "the pieces (splitting)", 4),
    "count_pieces": (without_last, lambda *a: True, "the counts of the pieces (splitting)", 1),
    "train": (last_merge_lost, asks_for("greatest"), "the merges (ties greatest)", 2),
    "encode": (lambda ids: ids[1:], holds(b"new"), "the ids (ties smallest)", 3),
    "decode": (lambda data: data + b"!", lambda *a: True, "the decoded documents (ties sm", 1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_made_small(fast, monkeypatch, name):
    change, seen, what, size = FAULTS[name]
    monkeypatch.setattr(fast, name, wrong_results(getattr(fast, name), change, seen))
    lines, failure = checked(b"some other text", TEXT)
    assert failure.startswith(f"reference and fast differ in {what}")
    assert any(line.startswith("  DIFFERENCE (") for line in lines)
    assert f"  The smallest text found, {size} bytes:" in lines
    assert any(line.startswith("    reference: ") for line in lines)
    assert any(line.startswith("    fast: ") for line in lines)
    assert "agree" not in "".join(lines)


def test_the_smallest_text_and_the_place_are_shown(fast, monkeypatch):
    wrong = wrong_results(fast.encode, lambda ids: [*ids[:-1], 0], holds(b"new"))
    monkeypatch.setattr(fast, "encode", wrong)
    lines, _ = checked(TEXT)
    assert lines[-6:] == [
        "  DIFFERENCE (ties smallest) in the ids",
        "  The smallest text found, 3 bytes:",
        "    b'new'",
        "  What differs first[0][0]:",
        "    reference: 257",
        "    fast: 0",
    ]


def test_a_wrong_count_is_found(fast, monkeypatch):
    monkeypatch.setattr(fast, "train", wrong_results(fast.train, count_raised))
    lines, failure = checked(b"some other text", TEXT)
    assert failure == "reference and fast differ in the counts of the merges (ties smallest)"
    assert "  The smallest text found, 2 bytes:" in lines


def test_an_error_of_one_engine_is_a_difference(fast, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("out of order")

    monkeypatch.setattr(fast, "encode", fail)
    lines, failure = checked(TEXT)
    assert failure == "reference and fast differ in the ids (ties smallest)"
    assert "    fast: RuntimeError: out of order" in lines


def test_an_error_of_both_engines_is_no_agreement(fast, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("out of order")

    for engine in fast, engines.get("reference"):
        monkeypatch.setattr(engine, "encode", fail)
    _, failure = checked(TEXT)
    assert failure == "both engines fail alike (ties smallest): RuntimeError: out of order"


def test_a_text_that_neither_engine_gives_back_is_found(fast, monkeypatch):
    for engine in fast, engines.get("reference"):
        wrong = wrong_results(engine.decode, lambda data: data.replace(b"w", b"v"))
        monkeypatch.setattr(engine, "decode", wrong)
    lines, failure = checked(TEXT)
    assert failure == (
        "the documents and both engines differ in the decoded documents (ties smallest)"
    )
    assert lines[-4:] == [
        "    b'w'",
        "  What differs first[0]:",
        "    the documents: b'w'",
        "    both engines: b'v'",
    ]


def test_a_fault_that_does_not_show_again_is_reported(fast, monkeypatch):
    calls = []
    split = fast.split

    def wrong_once(*arguments):
        calls.append(arguments)
        return split(*arguments)[1:] if len(calls) == 1 else split(*arguments)

    monkeypatch.setattr(fast, "split", wrong_once)
    lines, failure = checked(TEXT)
    assert failure == "reference and fast differ in the pieces (splitting)"
    assert f"  The smallest text found, {len(TEXT)} bytes:" in lines


def test_ctrl_c_is_not_taken_for_a_difference(fast, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fast, "split", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checked(TEXT)


def test_an_engine_that_is_not_built_is_told_before_any_work(monkeypatch):
    engines.get("fast")
    monkeypatch.delitem(sys.modules, "tokbpe.fast")
    monkeypatch.setitem(sys.modules, "tokbpe.fast.train", None)
    with pytest.raises(ImportError, match="is not built"):
        next(check.lines(files(TEXT), SMALL))


# Making a difference smaller


def test_what_can_be_left_out_is_left_out():
    def differs(documents):
        text = b"|".join(documents)
        return b"x" in text and b"y" in text.partition(b"x")[2]

    documents = [b"aaa", b"bbxbb", b"cc", b"ddydyd", b""]
    assert check.smallest(documents, differs) == [b"x", b"y"]


def test_what_becomes_superfluous_is_left_out():
    # Of the two letters one can go, but only after all digits that stand behind it.
    def differs(text):
        return text in {b"ab12", b"ab1", b"ab", b"b"}

    assert check.reduced(b"ab12", differs) == b"b"


def test_reducing_ends_with_the_time(fast, monkeypatch):
    monkeypatch.setattr(fast, "split", wrong_results(fast.split, lambda pieces: pieces[1:]))
    lines, _ = checked(TEXT, plan=check.Plan(reducing_seconds=0))
    assert f"  The smallest text found before the time was over, {len(TEXT)} bytes:" in lines


def test_long_values_are_cut():
    assert check.shown([1, 2]) == "[1, 2]"
    assert check.shown(b"a" * 1000) == f"b'{'a' * 298} ..."
