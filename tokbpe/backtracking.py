r"""Which regular expressions take time that grows no faster than the text.

Python's `re` goes back and tries again where a pattern fails behind a repetition: the time of
`(a+)+b` doubles with each character, and that of `a+b`, which is tried at each `a` of many, grows
with their square. `why_slow` finds patterns that cannot do so: each alternative of them has one of
two forms.

    ` ?\p{L}+(?:'s)?`   "Tight": a part of bounded size, then repetitions and all else that cannot
                        fail. Nothing is tried again once a repetition has begun, and what was
                        looked at, but for some characters, is in the match.
    `\s*[\r\n]+`        A class repeated, perhaps behind one optional character, then what is tight
                        and may fail. It is tried at all places of a run of the class, the last
                        first, and an alternative that is tight must follow, here `\s+(?!\S)` or
                        `\s+`, that would take the run, however short it is. Where it is found, it
                        is not found again further on in that run: this happens once in a run. So
                        between these two there may only be more of this form, with the same class,
                        and the run is gone through once more for each of them.

Then each place of a text is looked at a bounded number of times, whatever the text: MOST_STEPS
bounds what this takes.
"""

import functools
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from tokbpe.expansion import ENDLESS, Expansion, parsed
from tokbpe.unicode import Ranges, complement, intersection, merged

# How long a pattern may be, in characters: as it is written, and with the ranges of its classes.
LONGEST = 2**12
LONGEST_WITH_RANGES = 2**18
# What all alternatives together may take at a place of the text. A step is what `re` takes to
# compare a character with a class, some 20 ns; a long class takes several, since `re` goes through
# those of its ranges that lie beyond U+FFFF. A round of what is not a class takes more as well, and
# all take more where groups are noted.
MOST_STEPS = 1000
RANGES_IN_A_STEP = 8
STEPS_OF_A_ROUND = 4
GROUPS_IN_A_STEP = 5
# `re` keeps, for each round of a repetition, what stands in it, and all groups of the pattern.
MOST_PARTS_REPEATED = 16
MOST_GROUPS = 16


class Class(NamedTuple):
    """One character of some."""

    members: Ranges


class Look(NamedTuple):
    """What takes no character: the parts that must stand ahead, or behind, or must not.

    Edges of the text and of lines have no parts.
    """

    ahead: bool
    wanted: bool
    body: "Parts"


class Choice(NamedTuple):
    options: "tuple[Parts, ...]"


class Repeat(NamedTuple):
    least: int
    most: int
    body: "Parts"
    greedy: bool
    possessive: bool


Part: TypeAlias = Class | Look | Choice | Repeat
Parts: TypeAlias = tuple[Part, ...]


class UnknownError(Exception):
    """There is a part of which nothing can be said."""


@functools.lru_cache(maxsize=64)
def why_slow(sources: tuple[str, ...]) -> str | None:
    """Why splitting by some regular expressions may take time that grows faster than the text;
    None if it cannot. ValueError for one that is bad, once it is looked into."""
    size = sum(map(len, sources))
    if size > LONGEST:
        return f"it has {size} characters; of more than {LONGEST} nothing is said"
    size = sum(len(part) for source in sources for part in Expansion(source).parts)
    if size > LONGEST_WITH_RANGES:
        return f"with the ranges of its classes it has {size} characters, which takes too long"
    steps = 0
    for source in sources:
        tree = parsed(source)
        if tree.state.groups > MOST_GROUPS:
            return (
                f"it has more than {MOST_GROUPS - 1} groups, all of which are kept for each round"
            )
        try:
            whole = (*parts_of(tree, tree.state.flags),)
            why = why_not_linear(whole)
            steps += steps_of_whole(whole) * (1 + tree.state.groups // GROUPS_IN_A_STEP)
        except (UnknownError, RecursionError) as error:
            why = str(error)
        if why is not None:
            return why
    return f"at a place it may take more than {MOST_STEPS} steps" if steps > MOST_STEPS else None


def why_not_linear(whole: Parts) -> str | None:
    alternatives = alternatives_of(whole)
    reasons = [why_not_tight(alternative) for alternative in alternatives]
    made_good = are_made_good(alternatives, [reason is None for reason in reasons])
    for number, reason in enumerate(reasons):
        if reason is not None and not made_good[number]:
            return f"alternative {number + 1}: {reason}" if len(alternatives) > 1 else reason
    return None


def alternatives_of(whole: Parts) -> Sequence[Parts]:
    only = whole[0] if len(whole) == 1 else None
    return only.options if isinstance(only, Choice) else (whole,)


# From what `re` parses to parts


def parts_of(tree: Any, flags: int) -> Iterator[Part]:
    """The parts of a sequence. What a group holds stands in its place."""
    for code, argument in tree:
        name = str(code)
        if name == "SUBPATTERN":
            _, added, removed, body = argument
            yield from parts_of(body, (flags | added) & ~removed)
        elif name == "BRANCH":
            yield Choice(tuple((*parts_of(option, flags),) for option in argument[1]))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = argument
            greedy, possessive = name != "MIN_REPEAT", name == "POSSESSIVE_REPEAT"
            yield Repeat(int(least), int(most), (*parts_of(body, flags),), greedy, possessive)
        elif name in ("ASSERT", "ASSERT_NOT"):
            direction, body = argument
            yield Look(direction > 0, name == "ASSERT", (*parts_of(body, flags),))
        elif name == "AT":
            yield Look(True, True, ())
        else:
            yield Class(members_of(name, argument, flags))


def members_of(name: str, argument: Any, flags: int) -> Ranges:
    """Which characters a single one may be."""
    if name == "LITERAL":
        return ((argument, argument),)
    if name == "RANGE":
        return (argument,)
    if name == "NOT_LITERAL":
        return complement(((argument, argument),))
    if name == "ANY":
        return complement(() if flags & re.DOTALL else ((0x0A, 0x0A),))
    if name == "IN":
        items = [(str(code), item) for code, item in argument]
        found = merged(
            pair for kind, item in items if kind != "NEGATE" for pair in members_of(kind, item, 0)
        )
        return complement(found) if items[0][0] == "NEGATE" else found
    known = {"ATOMIC_GROUP": "an atomic group", "GROUPREF": "a reference to a group"}
    raise UnknownError(f"of {known.get(name, name)} nothing is said")


# Bounded parts


def is_bounded(parts: Parts) -> bool:
    return len(bounded_beginning(parts)) == len(parts)


def bounded_beginning(parts: Parts) -> Parts:
    """The first parts, as long as they take no more than MOST_STEPS together."""
    ways, steps = 1, 0
    for place, part in enumerate(parts):
        more_ways, more_steps = extent_of_part(part)
        ways, steps = ways * more_ways, steps + ways * more_steps
        if max(ways, steps) > MOST_STEPS:
            return parts[:place]
    return parts


def extent(parts: Parts) -> tuple[int, int]:
    """How many ways there are through parts, and the steps of all, each at most MOST_STEPS + 1."""
    ways, steps = 1, 0
    for part in parts:
        more_ways, more_steps = extent_of_part(part)
        steps = min(steps + ways * more_steps, MOST_STEPS + 1)
        ways = min(ways * more_ways, MOST_STEPS + 1)
    return ways, steps


def extent_of_part(part: Part) -> tuple[int, int]:
    if isinstance(part, Class):
        return 1, steps_of_class(part)
    if isinstance(part, Look):
        return 1, 1 + extent(part.body)[1]  # one way is enough
    if isinstance(part, Choice):
        each = [extent(option) for option in part.options]
        return sum(ways for ways, _ in each), sum(1 + steps for _, steps in each)
    inside, steps = extent(part.body)
    steps += extra_steps_of_round(part)
    if inside == 1:
        return part.most - part.least + 1, part.most * steps
    ways, total, reached = 0, 0, 1
    for times in range(part.most + 1):
        if max(reached, total) > MOST_STEPS:
            return MOST_STEPS + 1, MOST_STEPS + 1
        ways += reached if times >= part.least else 0
        total += reached * steps if times < part.most else 0
        reached *= inside
    return ways, total


def steps_of_class(part: Class) -> int:
    beyond = len(part.members) - bisect_left(part.members, (0x10000, 0))
    return 1 + beyond // RANGES_IN_A_STEP


def extra_steps_of_round(part: Repeat) -> int:
    return 0 if is_class(part.body) else STEPS_OF_A_ROUND


# What is taken at a place of the text


def steps_of_whole(whole: Parts) -> int:
    """What all alternatives take at a place, those that are not tight once more for each of their
    kind."""
    alternatives = alternatives_of(whole)
    runs = [
        None if why_not_tight(alternative) is None else as_run(alternative)
        for alternative in alternatives
    ]
    kinds = Counter((run.before, run.members) for run in runs if run is not None)
    return sum(
        steps_at_a_place(alternative) * (1 if run is None else 1 + kinds[run.before, run.members])
        for alternative, run in zip(alternatives, runs)
    )


def steps_at_a_place(parts: Parts) -> int:
    """What parts take before they fail, or for each character, at most MOST_STEPS + 1."""
    beginning = bounded_beginning(parts)
    ways, steps = extent(beginning)
    behind = sum(map(steps_of_part, parts[len(beginning) :]))
    return min(steps + ways * behind, MOST_STEPS + 1)


def steps_of_part(part: Part) -> int:
    if isinstance(part, (Class, Look)):
        return extent_of_part(part)[1]
    if isinstance(part, Choice):
        return sum(1 + steps_at_a_place(option) for option in part.options)
    ways, steps = (1, 0) if part.least <= 1 else extent_of_part(part._replace(most=part.least))
    round_steps = steps_at_a_place(part.body) + extra_steps_of_round(part)
    if part.most > 1 and not is_class(part.body):
        round_steps *= 2  # behind the last of several rounds, one more fails
    return min(steps + ways * round_steps, MOST_STEPS + 1)


def part_count(parts: Parts) -> int:
    """Of how many parts it is made, those inside of others as well."""
    total = len(parts)
    for part in parts:
        if isinstance(part, Choice):
            total += sum(map(part_count, part.options))
        elif not isinstance(part, Class):
            total += part_count(part.body)
    return total


def width(parts: Parts) -> int:
    """How many characters parts take at least, as far as MOST_STEPS."""
    total = 0
    for part in parts:
        if isinstance(part, Class):
            total += 1
        elif isinstance(part, Choice):
            total += min(map(width, part.options))
        elif isinstance(part, Repeat):
            total += part.least * width(part.body)
    return min(total, MOST_STEPS)


# The first form


def why_not_tight(parts: Parts) -> str | None:
    """Why parts can fail, or can match and leave what they looked at, after any number of
    characters; None if they cannot."""
    start = len(bounded_beginning(parts))
    for place in range(start, len(parts)):
        reason = why_part_not_tight(parts[place])
        if reason is not None:
            return reason
        if place > start and not (
            is_optional(parts[place])
            or holds_behind(parts[place - 1], parts[place])
            or (place == start + 1 and steps_back(*parts[start:]))
        ):
            return "what stands behind a repetition can fail, so that it is tried again"
    return None


def why_part_not_tight(part: Part) -> str | None:
    if isinstance(part, Look):
        return None if is_bounded(part.body) else "what is looked at ahead has no bound"
    if isinstance(part, Choice):
        return next(filter(None, map(why_not_tight, part.options)), None)
    if isinstance(part, Class) or (is_class(part.body) and part.least <= MOST_STEPS):
        return None
    if width(part.body) == 0:
        return "what is repeated may be empty"
    if part_count(part.body) > MOST_PARTS_REPEATED:
        return "what is repeated is made of too many parts, which are kept for each round"
    if part.least > 1 and not is_bounded((part._replace(most=part.least),)):
        return "what is repeated can be divided in several ways"
    return why_not_tight(part.body)


def is_class(parts: Parts) -> bool:
    return len(parts) == 1 and isinstance(parts[0], Class)


def is_optional(part: Part) -> bool:
    """Whether it cannot fail."""
    if isinstance(part, Choice):
        return any(all(map(is_optional, option)) for option in part.options)
    return isinstance(part, Repeat) and part.least == 0


def run_of(part: Part) -> Ranges | None:
    """The class of which a part takes as many characters as there are."""
    if isinstance(part, Repeat) and part.most == ENDLESS and part.greedy:
        [*inside] = part.body
        if len(inside) == 1 and isinstance(inside[0], Class):
            return inside[0].members
    return None


def holds_behind(run: Part, part: Part) -> bool:
    r"""Whether a part cannot fail where a run ends, as `\b` behind `\w+`."""
    members = run_of(run)
    if members is None:
        return False
    if isinstance(part, Choice):
        return any(all(holds_behind(run, inner) for inner in option) for option in part.options)
    if not isinstance(part, Look) or len(part.body) != 1 or not isinstance(part.body[0], Class):
        return False
    found = part.body[0].members
    if part.ahead:
        return not part.wanted and within(found, members)
    return part.wanted and within(members, found) and width((run,)) > 0


def steps_back(run: Part, *behind: Part) -> bool:
    r"""Whether what stands behind a run holds one character before its end: `(?!\S)` behind
    `\s+`."""
    members = run_of(run)
    if members is None or len(behind) != 1 or (isinstance(run, Repeat) and run.possessive):
        return False
    [test] = behind
    return (
        isinstance(test, Look)
        and test.ahead
        and not test.wanted
        and len(test.body) == 1
        and isinstance(test.body[0], Class)
        and not intersection(test.body[0].members, members)
    )


def within(one: Ranges, other: Ranges) -> bool:
    return not intersection(one, complement(other))


# The second form


class Run(NamedTuple):
    """A class repeated, at least so often, what may stand before it, and what stands behind it."""

    before: Parts
    members: Ranges
    least: int
    behind: Parts


def as_run(parts: Parts) -> Run | None:
    before: Parts = ()
    first = parts[0] if parts else None
    if isinstance(first, Repeat) and first[:2] == (0, 1) and is_class(first.body) and first.greedy:
        before, parts = parts[:1], parts[1:]
    run = parts[0] if parts and width(parts) else None
    members = None if run is None else run_of(run)
    if members is None or not isinstance(run, Repeat):
        return None
    return Run(before, members, run.least, parts[1:])


def are_made_good(alternatives: Sequence[Parts], tight: Sequence[bool]) -> list[bool]:
    """For each alternative, whether it is of the second form, and one follows that takes the run
    from its first character."""
    runs = [*map(as_run, alternatives)]
    taken = [False] * len(runs)
    for number in range(len(runs) - 2, -1, -1):
        run, other = runs[number : number + 2]
        if run is not None and other is not None and run.before == other.before:
            if tight[number + 1] and other.least <= 1 and within(run.members, other.members):
                taken[number] = True
            else:
                taken[number] = taken[number + 1] and run.members == other.members
    return [
        is_taken and run is not None and why_not_tight(run.behind) is None
        for is_taken, run in zip(taken, runs)
    ]
