"""Patterns from files: those whose time could grow faster than the text are refused."""

import itertools
import random
import re
import sys

import pytest

from growth import calls, growth
from tokbpe import PieceCounts, Tokenizer, backtracking, cli, patterns
from tokbpe.backtracking import Choice, Class, Look
from tokbpe.expansion import HAS_POSSESSIVE, parsed

pytestmark = pytest.mark.core

# What researchers use, and what tokenizer.json files of others hold.
TAKEN = [
    r"\w+|[^\w\s]+|\s+",
    r"\b\w+\b",
    r"\d+(?:[.,]\d+)*|\w+(?:['-]\w+)*|\s+|.",
    r"\s+(?!\S)|\s+",
    r"[A-Z]?[a-z]+|.",
    r"\d+\.\d+|\d+|\w+",
    r"(?:\d{1,3}\.){3}\d{1,3}|\d",
    r"https?://\S+|\w+|\s+|.",
    r"[^\n]*\n|[^\n]+",
    r"(?s:.+)",
    r"((a+b?)+c?)+",
    r"\p{N}{1,3}",
    "[0-9][0-9][0-9]",
    r"\s?\p{L}+",
    r"\s?\p{P}+",
    "[\r\n]",
    # Mistral's tekken
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    # DeepSeek's coder
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫ]+",
    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    "[一-龥ࠀ-一가-퟿]+",
]

REFUSED = [
    "(?:a" + "()" * 90 + ")+",  # memory for each round
    "(?:a" + "b?" * 10 + "(?:c|d)" * 4 + ")+",
    "a?" * 7 + "a{4096,}",  # steps at each place
    "a*b|" + "|".join(["a{4096,}"] * 400),
    r"(a+)+$",
    r"(a|a)*b",
    r"(.*a){20}",
    r"(?:x+x+)+y",
    r"(?:a|b|ab){1,40}c",
    r"a+b",
    r"a{1,5000}b",
    r".*X|.",
    r"\s+$|.",
    r"<[^>]+>|.",
    r"\w+@\w+\.com|\w+",
    r"(\w+)\1",
    r"(?=(\d{3})+(?!\d))",
    r"(?=a*b)a",
    r"a+\s*(?!\S)",
    r"(?:a+b?){2,}",
    r"a(?:a*;)*|b",
    # The run would be taken, but only after less of it was.
    r"\s+\Z|\s|\s+",
    r"\s+\Z|\s+?|\s+",
    r"\s+\Z|\s+?(?=\s)|\s+",
    r"\s+\Z|[ \t]+x|\s+",
    r"\s+\Z|\s{1,2}|\s+",
    r"\s+\Z|a?\s+",
    # It would be taken, if it were longer: a run is begun anew at each of its characters.
    "\U00031350+(?=\\p{L}{20}c)|\U00031350{20,}",
    "\U00031350+(?=\\p{L}{950}c)|\U00031350{950,}",
    r"a+(?=[ax]{40}c)|a{40,}",
    r"a+(?=[ax]{1000}c)|a{1000,}",
    # Much at each place.
    r"a+(?=[ax]{1000}c)|a+",
    r"(?=\p{L}{1900}c)a|\p{L}",
    r"(?=\p{L}{30}c)a|\p{L}",
    "(?=(?:" + "(" * 15 + "a" + ")" * 15 + "){400}c)a|a",
    "|".join(rf"[a-z]+{digit}" for digit in "0123456789" * 3) + "|[a-z]+",
    "x" * 5000,
    r"\pL" * 100,
]


@pytest.mark.parametrize("source", TAKEN, ids=ascii)
def test_usual_patterns_are_taken(source):
    assert backtracking.why_slow((source,)) is None


@pytest.mark.parametrize("name", patterns.NAMED)
def test_named_patterns_are_of_that_kind(name):
    assert backtracking.why_slow(patterns.NAMED[name].sources) is None


@pytest.mark.parametrize("source", REFUSED, ids=lambda source: ascii(source[:30]))
def test_slow_patterns_are_refused(source):
    assert backtracking.why_slow((source,))


def test_several_patterns_in_sequence_are_counted_together():
    source = "(?=a{400}c)a|a"
    assert backtracking.why_slow((source, source)) is None
    assert "more than 1000 steps" in backtracking.why_slow((source, source, source))


@pytest.mark.parametrize(
    "source",
    ["(?:" * 200 + "a" + "){4000}" * 200, r"\s+a|" * 500 + r"\s+", "(?:" * 900, "(" * 4096]
    + [r"\S+x|" * 800 + r"\S+", "a{0,999}" * 500, "(?:a+" * 100 + ")*" * 100, r"\p{L}" * 26],
)
def test_looking_into_a_pattern_is_quick(source):
    def look():
        try:
            backtracking.why_slow((source,))
        except ValueError as error:
            assert "is refused" in str(error)

    assert 1000 < calls(look) < 1_000_000


SLOW = r"(?:a+)+b|c"


@pytest.mark.parametrize("engine_name", ["reference", "fast"])
def test_where_patterns_come_from_files(tmp_path, engine_name):
    tokenizer = Tokenizer(
        "aacaac", method="bpe", vocabulary_size=257, pattern=SLOW, engine=engine_name
    )
    tokenizer.save(tmp_path / "own")
    tokenizer.to_huggingface(tmp_path / "tokenizer.json")
    counts = PieceCounts("aacaac", pattern=SLOW, engine=engine_name)
    counts.save(tmp_path / "counts")
    for read, source in [
        (Tokenizer.load, tmp_path / "own"),
        (Tokenizer.from_state, tokenizer.state()),
        (Tokenizer.from_huggingface, tmp_path / "tokenizer.json"),
        (PieceCounts.load, tmp_path / "counts"),
    ]:
        with pytest.raises(ValueError, match="alternative 1: .* say trust_pattern=True") as caught:
            read(source, engine=engine_name)
        assert isinstance(source, dict) or str(source) in str(caught.value)
        again = read(source, engine=engine_name, trust_pattern=True)
        assert again == (counts if read == PieceCounts.load else tokenizer)


def test_where_counts_come_from_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    counts = PieceCounts("aacaac", pattern=SLOW)
    counts.to_parquet(tmp_path / "counts.parquet")
    with pytest.raises(ValueError, match=r"counts.parquet: .* say trust_pattern=True"):
        PieceCounts.from_parquet(tmp_path / "counts.parquet")
    assert PieceCounts.from_parquet(tmp_path / "counts.parquet", trust_pattern=True) == counts


def test_what_is_made_in_the_program_is_trusted():
    import pickle

    tokenizer = Tokenizer("aacaac", method="bpe", vocabulary_size=257, pattern=SLOW)
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    counts = PieceCounts("aacaac", pattern=SLOW)
    assert pickle.loads(pickle.dumps(counts)) == counts


# What a pattern takes, counted by a matcher that goes back as `re` does.


class Steps:
    def __init__(self, text):
        self.text = text
        self.taken = 0

    def ends(self, parts, start):
        """Where parts can end that start there, in the order in which they are tried."""
        self.taken += 1
        if not parts:
            yield start
            return
        for end in self.ends_of(parts[0], start):
            yield from self.ends(parts[1:], end)

    def ends_of(self, part, start):
        if isinstance(part, Class):
            code = ord(self.text[start]) if start < len(self.text) else -1
            if any(first <= code <= last for first, last in part.members):
                yield start + 1
        elif isinstance(part, Choice):
            for option in part.options:
                yield from self.ends(option, start)
        elif isinstance(part, Look):
            if self.holds(part, start) == part.wanted:
                yield start
        elif part.possessive:
            yield from itertools.islice(self.repeated(part, 0, start), 1)
        else:
            yield from self.repeated(part, 0, start)

    def holds(self, test, place):
        if not test.body:
            return place == len(self.text)
        if test.ahead:
            return any(True for _ in self.ends(test.body, place))
        return place > 0 and place in self.ends(test.body, place - 1)

    def repeated(self, part, times, start):
        self.taken += 1
        if not part.greedy and times >= part.least:
            yield start
        if times < part.most:
            for end in self.ends(part.body, start):
                if end > start or times < part.least:
                    yield from self.repeated(part, times + 1, end)
        if part.greedy and times >= part.least:
            yield start

    def matches(self, parts):
        place = 0
        while place < len(self.text):
            end = next((end for end in self.ends(parts, place) if end > place), None)
            if end is not None:
                yield self.text[place:end]
            place = place + 1 if end is None else end


def steps(source, text):
    """How often the matcher steps in a text, and what it finds."""
    tree = parsed(source)
    counted = Steps(text)
    found = [*counted.matches((*backtracking.parts_of(tree, tree.state.flags),))]
    return counted.taken, found


CLASSES = ("a", "b", " ", "[ab]", "[a ]", "[^a]", "[^ ]", ".", "[b ]")
TESTS = ("(?!a)", "(?! )", "(?=b)", "(?![ab])", r"\Z", "(?<=a)", "(?<!b)", "(?![^ ])")
QUANTIFIERS = ("*", "+", "+", "?", "{1,2}", "{2,}", "+?", "*?")
MANY = ("(?=[ab]{30}c)", "(?![ab ]{20}c)", "(?:a?b?){1,2}", "[ab]{1,20}", "a{9,}", "(?:ab?){2}")
WORDS = ["".join(word) for size in (1, 2, 3) for word in itertools.product("ab ", repeat=size)]


def sequence(chance, depth):
    return "".join(item(chance, depth) for _ in range(chance.choice((1, 1, 2, 3))))


def item(chance, depth):
    kind = chance.random()
    if kind < 0.2:
        return chance.choice(TESTS)
    inner = chance.choice(CLASSES)
    if kind > 0.7 and depth:
        inner = "|".join(sequence(chance, depth - 1) for _ in range(chance.choice((1, 2))))
        inner = f"(?:{inner})"
    return inner + (chance.choice(QUANTIFIERS) if chance.random() < 0.5 else "")


def alternatives(chance):
    """Half of them begin alike, as the second form does."""
    run = chance.choice(("", "", "b?", "[^a]?")) + chance.choice(("a", "[ab]", "[a ]", "[^b]"))
    found = []
    for _ in range(chance.choice((1, 2, 3))):
        rest = sequence(chance, 1)
        if chance.random() < 0.5:
            rest = run + chance.choice(QUANTIFIERS) + chance.choice((rest, "", "(?!a)", r"\Z"))
        found.append(rest)
    return "|".join(found)


@pytest.fixture
def deep_recursion():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("deep_recursion")
def test_the_matcher_finds_what_re_finds():
    possessive = "a++b|" if HAS_POSSESSIVE else ""
    for source in (
        "a+b|[ab ]{1,2}",
        r"\s+\Z|\s*b|\s+(?!\S)|\s",
        f"(?:a|ab)*?b|{possessive}.",
        "(?<!b)a|b?",
    ):
        for text in WORDS:
            expected = [match.group() for match in re.finditer(source, text) if match.group()]
            assert steps(source, text)[1] == expected


@pytest.mark.usefixtures("deep_recursion")
@pytest.mark.parametrize("source", ["a+b", r"\s+\Zb|\s", "(?:a?)+b", r"[^b]?a*b|a"])
def test_the_matcher_sees_what_is_slow(source):
    text = " " if r"\s" in source else "a"
    assert steps(source, text * 96)[0] > 10 * steps(source, text * 24)[0]


@pytest.mark.long
@pytest.mark.usefixtures("deep_recursion")
def test_what_is_taken_is_what_was_counted():
    """At each place, a bounded number of times the steps that were counted."""
    taken = 0
    for seed in range(1500):
        chance = random.Random(seed)
        first, *others = alternatives(chance).split("|")
        source = "|".join([first + chance.choice(MANY), *others])
        try:
            if backtracking.why_slow((source,)) is not None:
                continue
        except ValueError:  # cut apart in a group
            continue
        taken += 1
        tree = parsed(source)
        counted = backtracking.steps_of_whole((*backtracking.parts_of(tree, tree.state.flags),))
        one, other = chance.choice(WORDS), chance.choice(WORDS)
        for text in (one * 60, one * 40 + other * 40, (one + other * 20) * 3):
            assert steps(source, text)[0] <= (4 * counted + 30) * len(text), (source, text)
    assert taken > 200


@pytest.mark.long
@pytest.mark.usefixtures("deep_recursion")
def test_what_is_taken_grows_with_the_text():
    taken = 0
    for seed in range(600):
        chance = random.Random(seed)
        source = alternatives(chance)
        if backtracking.why_slow((source,)) is not None:
            continue
        taken += 1
        one, other, end = chance.choice(WORDS), chance.choice(WORDS), chance.choice(("", "b", "x"))
        for template in (
            lambda u, v, n: u * n,
            lambda u, v, n: u * n + v * n,
            lambda u, v, n: (u + v * n) * 3,
        ):
            small, large = template(one, other, 24) + end, template(one, other, 96) + end
            few, many = steps(source, small)[0], steps(source, large)[0]
            assert many / len(large) < 2 * few / len(small) + 30, (source, large)
    assert taken > 100


@pytest.mark.long
@pytest.mark.parametrize("source", TAKEN, ids=ascii)
def test_time_of_usual_patterns(source):
    """Runs and ends that make the patterns fail late, in texts large enough to show a square."""
    pattern = patterns.get(source)
    for unit, end in [(" ", "x"), ("\n ", "x"), ("a", "1"), ("A", " "), ("1.", "a"), ("'", "a")]:
        short, long = unit * 3_000 + end, unit * 12_000 + end
        assert growth(lambda text: patterns.cut(text, pattern), short, long, 9) < 9, unit


def test_on_the_command_line(tmp_path, capfd):
    path = tmp_path / "own"
    Tokenizer("aacaac", method="bpe", vocabulary_size=257, pattern=SLOW).save(path)
    assert cli.main(["inspect", str(path)]) == 1
    assert "say trust_pattern=True" in capfd.readouterr().err
    assert cli.main(["inspect", str(path), "--trust-pattern"]) == 0
