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
                        `\s+`, that would take the run. Where it is found, it is not found again
                        further on in that run: this happens once in a run. So between these two
                        there may only be more of this form, with the same class.

Then each place of a text is looked at a bounded number of times, whatever the text.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from tokbpe.expansion import ENDLESS, Expansion, parsed
from tokbpe.unicode import Ranges, complement, intersection, merged

# How long a pattern may be, in characters: as it is written, and with the ranges of its classes.
LONGEST = 2**12
LONGEST_WITH_RANGES = 2**18
# What all alternatives together may take at a place of the text, apart from what is in the match:
# the ways through parts of bounded size, times their length.
MOST_STEPS = 2**12
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
    for source in sources:
        tree = parsed(source)
        if tree.state.groups > MOST_GROUPS:
            return (
                f"it has more than {MOST_GROUPS - 1} groups, all of which are kept for each round"
            )
        try:
            why = why_not_linear((*parts_of(tree, tree.state.flags),))
        except (UnknownError, RecursionError) as error:
            why = str(error)
        if why is not None:
            return why
    return None


def why_not_linear(whole: Parts) -> str | None:
    only = whole[0] if len(whole) == 1 else None
    alternatives = only.options if isinstance(only, Choice) else (whole,)
    if sum(map(steps_at_a_place, alternatives)) > MOST_STEPS:
        return f"at a place it may take more than {MOST_STEPS} steps"
    reasons = [why_not_tight(alternative) for alternative in alternatives]
    tight = [reason is None for reason in reasons]
    for number, reason in enumerate(reasons):
        if reason is not None and not is_made_good(alternatives, tight, number):
            return f"alternative {number + 1}: {reason}" if len(alternatives) > 1 else reason
    return None


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
    ways, length = 1, 1
    for place, part in enumerate(parts):
        more_ways, more_length = extent_of_part(part)
        ways, length = ways * more_ways, length + more_length
        if ways * length > MOST_STEPS:
            return parts[:place]
    return parts


def extent(parts: Parts) -> tuple[int, int]:
    """How many ways there are through parts, and their length, each at most MOST_STEPS + 1."""
    ways, length = 1, 1
    for part in parts:
        more_ways, more_length = extent_of_part(part)
        ways = min(ways * more_ways, MOST_STEPS + 1)
        length = min(length + more_length, MOST_STEPS + 1)
    return ways, length


def extent_of_part(part: Part) -> tuple[int, int]:
    if isinstance(part, Class):
        return 1, 1
    if isinstance(part, Look):
        ways, length = extent(part.body)
        return 1, ways * length  # one way is enough
    if isinstance(part, Choice):
        each = [extent(option) for option in part.options]
        return sum(ways for ways, _ in each), sum(length for _, length in each)
    if part.most > MOST_STEPS:
        return MOST_STEPS + 1, MOST_STEPS + 1
    inside, length = extent(part.body)
    if inside > 1 and 2**part.most > MOST_STEPS:
        return MOST_STEPS + 1, part.most * length
    return sum(inside**times for times in range(part.least, part.most + 1)), part.most * length


def steps_at_a_place(parts: Parts) -> int:
    """How much of parts can be tried before they fail, or match little, at most MOST_STEPS + 1."""
    beginning = bounded_beginning(parts)
    ways, length = extent(beginning)
    behind = sum(map(steps_of_part, parts[len(beginning) :]))
    return min(ways * (length + behind), MOST_STEPS + 1)


def steps_of_part(part: Part) -> int:
    if isinstance(part, Class):
        return 1
    if isinstance(part, Look):
        return min(extent_of_part(part)[1], MOST_STEPS + 1)
    if isinstance(part, Choice):
        return sum(map(steps_at_a_place, part.options))
    return min(max(part.least, 1) * steps_at_a_place(part.body), MOST_STEPS + 1)


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
    """A class repeated, what may stand before it, and what stands behind it."""

    before: Parts
    members: Ranges
    behind: Parts


def as_run(parts: Parts) -> Run | None:
    before: Parts = ()
    first = parts[0] if parts else None
    if isinstance(first, Repeat) and first[:2] == (0, 1) and is_class(first.body) and first.greedy:
        before, parts = parts[:1], parts[1:]
    members = run_of(parts[0]) if parts and width(parts) else None
    return None if members is None else Run(before, members, parts[1:])


def is_made_good(alternatives: Sequence[Parts], tight: Sequence[bool], number: int) -> bool:
    """Whether an alternative is of the second form, and one follows that takes the run."""
    run = as_run(alternatives[number])
    if run is None or why_not_tight(run.behind) is not None:
        return False
    for later in range(number + 1, len(alternatives)):
        other = as_run(alternatives[later])
        if other is None or other.before != run.before:
            return False
        if tight[later] and within(run.members, other.members):
            return True
        if other.members != run.members:
            return False
    return False
