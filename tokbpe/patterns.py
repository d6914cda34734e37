"""Split patterns: those that have a name, and regular expressions of the user's own.

A pattern is written as for Python's `re`, with the classes of Unicode 16.0 on every Python,
inside and outside of `[...]`:

    \\p{Lu} \\pL \\P{L} \\p{^L}   a general category, a group of these, or White_Space
    \\s \\S   \\d \\D            White_Space, Nd, and all else
    \\w \\W   \\b \\B            a character of words as UTS #18 defines it, the edge of a word
    \\Z \\z                    the very end of the text, both
    (?i) (?i:...) (?-i:...)  case is ignored, for ASCII letters: (?i:s) also matches U+017F

Refused by name, with the place: flags other than i, m and s, case variants of other letters,
sets inside sets and set operators, unknown properties and escapes (\\N{...} among them); on
Python 3.10 also possessive quantifiers and atomic groups, which its `re` lacks.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokbpe import arguments, backtracking, spellings
from tokbpe.cached import cached_property
from tokbpe.expansion import compiled


@dataclass(frozen=True, repr=False)
class Pattern:
    """How text is cut into pieces.

    Each of `sources`, regular expressions, cuts the pieces that the one before it gives.
    `keep_gaps`: text that no match covers is a piece of its own, else it is dropped.
    """

    name: str | None
    sources: tuple[str, ...]
    keep_gaps: bool = True

    def __post_init__(self) -> None:
        sources = self.sources
        if not isinstance(sources, tuple) or not all(isinstance(text, str) for text in sources):
            raise TypeError(f"the sources of a pattern must be a tuple of str, not {sources!r}")
        if not sources:
            raise ValueError("a pattern needs at least one regular expression; its sources are ()")

    @cached_property
    def regexes(self) -> tuple[re.Pattern[str], ...]:
        """The sources compiled for Python's `re`, at first use; ValueError for a bad one."""
        return tuple(compiled(source) for source in self.sources)

    def __repr__(self) -> str:
        if self.name is not None:
            return f"<Pattern {self.name}>"
        return f"Pattern(None, {self.sources!r}, {self.keep_gaps!r})"

    def __reduce__(self) -> tuple[type["Pattern"], tuple[str | None, tuple[str, ...], bool]]:
        return Pattern, (self.name, self.sources, self.keep_gaps)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\Z|\s*[\r\n]|\s+(?!\S)|\s"
)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)

NAMED: dict[str, Pattern] = {
    "gpt2": Pattern("gpt2", (GPT2,)),
    "cl100k": Pattern("cl100k", (CL100K,)),
    "llama3": Pattern("llama3", (LLAMA3,)),
    "qwen2": Pattern("qwen2", (QWEN2,)),
    "o200k": Pattern("o200k", (O200K,)),
    "deepseek_v3": Pattern("deepseek_v3", DEEPSEEK_V3),
}
ALIASES = {"r50k": "gpt2", "p50k": "gpt2", "gpt4": "cl100k", "qwen3": "qwen2"}
NAMED.update({alias: NAMED[name] for alias, name in ALIASES.items()})

# What is taken for a name that is not known, and never for a regular expression.
MERE_WORD = re.compile("[A-Za-z0-9_-]+")

# What `str.split()` gives. It is not among the names, since it loses the white space.
WORDS = Pattern("words", (r"[^\s\x1c-\x1f]+",), keep_gaps=False)

SPELLED = {(pattern.sources, pattern.keep_gaps): pattern for pattern in [*NAMED.values(), WORDS]}
SPELLED.update({(sources, True): NAMED[name] for sources, name in spellings.KNOWN.items()})

# Those of which some match covers each character of each text, so that there are no gaps.
COVERING = tuple(NAMED[name] for name in ("gpt2", "cl100k", "llama3", "qwen2", "o200k"))

# What a user's pattern is tried on: it is refused if it matches empty somewhere in these.
PROBES = (
    "",
    "".join(map(chr, range(128))),
    "I'll say: it's 12,345.60 €!\r\n\r\n\tcamelCase_a1b = [x - y]  \n",
    "Grüße, 你好，世界 नमस्ते 🐈",
)


def get(pattern: str | Pattern) -> Pattern:
    """The pattern that a name or a regular expression stands for; or a Pattern, checked.

    What is spelled as a named pattern is that one. ValueError for a regular expression that does
    not compile, asks for what the Unicode table lacks, or matches empty in one of PROBES; also
    for a mere word that is no name.

    >>> from tokbpe import patterns
    >>> patterns.get("gpt2"), patterns.get(r"[a-z]+")
    (<Pattern gpt2>, Pattern(None, ('[a-z]+',), True))
    """
    if isinstance(pattern, (str, Pattern)):
        return found(pattern)
    raise TypeError(
        "a pattern must be a name, a regular expression or a Pattern, "
        f"not {arguments.type_name(pattern)}"
    )


def for_unit(pattern: str | Pattern | None, unit: str) -> Pattern | None:
    """The pattern checked: words are cut by WORDS alone, characters by none that drops text."""
    checked = None if pattern is None else get(pattern)
    if unit == "word" and checked != WORDS:
        raise ValueError(f"words are cut by {WORDS!r}, not by {checked!r}")
    return checked if unit in ("byte", "word") else keeping_all(checked)


def for_training(pattern: str | Pattern | None) -> Pattern | None:
    """The pattern checked: none that drops text, which could not be decoded, is trained with."""
    return keeping_all(None if pattern is None else get(pattern))


def keeping_all(pattern: Pattern | None) -> Pattern | None:
    if pattern is not None and not pattern.keep_gaps:
        raise ValueError(f"{pattern!r} drops the text between its matches: it cannot be used here")
    return pattern


@functools.lru_cache(maxsize=64)
def found(pattern: str | Pattern) -> Pattern:
    if isinstance(pattern, str):
        if pattern in NAMED:
            return NAMED[pattern]
        if MERE_WORD.fullmatch(pattern):
            raise ValueError(
                f"pattern {pattern!r} is none of {', '.join(map(repr, NAMED))}; "
                "as a regular expression it would match this very word only"
            )
        pattern = Pattern(None, (pattern,))
    known = SPELLED.get((pattern.sources, pattern.keep_gaps))
    return known or checked(pattern)


def checked(pattern: Pattern) -> Pattern:
    """A pattern of the user's own: it must compile, and match nothing empty in PROBES."""
    if pattern.name is not None:
        raise ValueError(
            f"pattern {pattern.sources!r} has the name {pattern.name!r}, but the names are "
            f"{', '.join(map(repr, NAMED))}, each with its own sources; another has the name None"
        )
    for source, regex in zip(pattern.sources, pattern.regexes):
        for probe in PROBES:
            for match in regex.finditer(probe):
                if not match.group():
                    raise ValueError(
                        f"pattern {source!r} is refused: it matches empty "
                        f"at position {match.start()} of the probe {probe!r}"
                    )
    return pattern


def of_file(pattern: Pattern, trust_pattern: bool = False) -> Pattern:
    """A pattern that stands in a file, as `get` has it.

    ValueError, before anything is split by it, for one that could take time that grows faster
    than the text, unless it is trusted.
    """
    if (pattern.sources, pattern.keep_gaps) not in SPELLED and not trust_pattern:
        why = backtracking.why_slow(pattern.sources)
        if why is not None:
            raise ValueError(
                f"pattern {' and '.join(pattern.sources)!r:.200} is refused, since it comes from "
                "a file and the time that it takes may grow faster than a text does, or be long at "
                f"each place: {why}. If you trust it, say trust_pattern=True"
            )
    return get(pattern)


# Elsewhere


def from_tiktoken(pat_str: str) -> Pattern:
    """The pattern that tiktoken's regular expression stands for.

    Text that no match covers is dropped there, so a pattern that is not known drops it here too.
    ValueError, as by `get`, and with the place for what means something else to tiktoken.
    """
    if not isinstance(pat_str, str):
        raise TypeError(f"pat_str must be a str, not {arguments.type_name(pat_str)}")
    known = SPELLED.get(((pat_str,), True))
    if known is not None:
        return known
    covered = spellings.without_gaps(pat_str)
    source = spellings.read_from_tiktoken(pat_str if covered is None else covered)
    return get(Pattern(None, (source,), keep_gaps=covered is not None))


def from_huggingface(
    sources: Sequence[str], keep_gaps: bool, trust_pattern: bool = False
) -> Pattern:
    """The pattern that regular expressions of Hugging Face stand for, each of a Split of its own.

    `keep_gaps`: the behavior is Isolated; otherwise it is Removed, and inverted. ValueError, as by
    `of_file`, and with the place for what means something else to Hugging Face.
    """
    pattern = Pattern(None, tuple(sources), keep_gaps)
    if pattern.sources not in spellings.NOT_FOR_HUGGING_FACE:
        known = SPELLED.get((pattern.sources, True))
        if known is not None and (keep_gaps or known in COVERING):
            return known
    for source in pattern.sources:
        spellings.read_from_hugging_face(source)
    return of_file(pattern, trust_pattern)


def to_tiktoken(pattern: Pattern) -> str:
    """The regular expression with which tiktoken cuts as this pattern does.

    ValueError for several regular expressions in sequence, and, with the place, for what means
    something else to tiktoken.
    """
    if pattern.name in spellings.WRITTEN_FOR_TIKTOKEN:
        return spellings.WRITTEN_FOR_TIKTOKEN[pattern.name]
    if len(pattern.sources) != 1:
        raise ValueError(
            f"{pattern!r} has {len(pattern.sources)} regular expressions; for tiktoken it must be 1"
        )
    source = spellings.written_for_tiktoken(pattern.sources[0])
    return spellings.with_gaps(source) if pattern.keep_gaps and pattern not in COVERING else source


def to_huggingface(pattern: Pattern) -> list[str]:
    """The regular expressions with which Hugging Face cuts as this pattern does, each in a Split:
    Isolated, or if gaps are dropped Removed and inverted. ValueError as by `from_huggingface`."""
    if pattern.name in spellings.WRITTEN_FOR_HUGGING_FACE:
        return [spellings.WRITTEN_FOR_HUGGING_FACE[pattern.name]]
    return [spellings.written_for_hugging_face(source) for source in pattern.sources]


def cut(text: str, pattern: Pattern) -> list[str]:
    """The matches of a pattern and the text between them; several regexes cut one after another."""
    texts = [text]
    for regex in pattern.regexes:
        parts = []
        for text in texts:
            end = 0
            for match in regex.finditer(text):
                if match.group():
                    if pattern.keep_gaps:
                        parts.append(text[end : match.start()])
                    parts.append(match.group())
                    end = match.end()
            if pattern.keep_gaps:
                parts.append(text[end:])
        texts = [part for part in parts if part]
    return texts


# Printable bytes


def printable_characters() -> tuple[str, ...]:
    """GPT-2's character for each byte value.

    Bytes that are printable in Latin-1 stand for themselves; the others, in rising order, have
    the characters from U+0100 on.
    """
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return tuple(
        chr(byte) if byte in shown else chr(0x100 + hidden.index(byte)) for byte in range(256)
    )


PRINTABLE = printable_characters()
BYTE_OF_PRINTABLE = {char: byte for byte, char in enumerate(PRINTABLE)}

# The bytes in the order of their printable characters: the base ids of Hugging Face's trainer.
GPT2_BYTE_ORDER = bytes(sorted(range(256), key=PRINTABLE.__getitem__))


def to_printable(data: bytes) -> str:
    """Bytes as GPT-2 shows them, a character each: b" a" -> "\\u0120a".

    >>> from tokbpe import patterns
    >>> patterns.from_printable(patterns.to_printable(b" a"))
    b' a'
    """
    return str(data, "latin-1").translate(PRINTABLE)


def from_printable(text: str) -> bytes:
    """The bytes that GPT-2 shows so; ValueError, with the place, for any other character."""
    try:
        return bytes(map(BYTE_OF_PRINTABLE.__getitem__, text))
    except KeyError as error:
        char = error.args[0]
        raise ValueError(
            f"{char!r} at position {text.index(char)} of {text!r} is none of the 256 printable "
            "characters that stand for bytes"
        ) from None
