r"""How patterns are spelled elsewhere, and what of a regular expression means the same there.

tiktoken reads patterns as Rust's fancy_regex does, Hugging Face as Oniguruma in Ruby's syntax. What
means something else to them than to us is refused by name, save for the very end of the text,
which is put as each spells it: `\Z` here, `$` or `\z` for tiktoken, `\z` for Hugging Face.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tokbpe.expansion import GLOBAL_FLAGS

# Spellings of named patterns, other than our own.

# In tiktoken 0.8 and newer.
GPT2_OF_TIKTOKEN = (
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
)
CL100K_OF_TIKTOKEN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
# In tiktoken 0.6 and 0.7, whose cl100k_base cut as llama3 does; what was before is spelled as here.
GPT2_BEFORE = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K_BEFORE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
# For Hugging Face: ours of cl100k with the very end as it is spelled there.
CL100K_OF_HUGGING_FACE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
)
# In DeepSeek V3's file: characters, not escapes.
DEEPSEEK_V3_OF_HUGGING_FACE = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
)

KNOWN: dict[tuple[str, ...], str] = {
    (GPT2_OF_TIKTOKEN,): "gpt2",
    (GPT2_BEFORE,): "gpt2",
    (CL100K_OF_TIKTOKEN,): "cl100k",
    (CL100K_BEFORE,): "llama3",
    (CL100K_OF_HUGGING_FACE,): "cl100k",
    DEEPSEEK_V3_OF_HUGGING_FACE: "deepseek_v3",
}
# To Hugging Face `{1,3}+` is not possessive, so this is another pattern there.
NOT_FOR_HUGGING_FACE = {(CL100K_OF_TIKTOKEN,)}

# As which they are written, where that is not as here.
WRITTEN_FOR_TIKTOKEN = {"gpt2": GPT2_OF_TIKTOKEN, "cl100k": CL100K_OF_TIKTOKEN}
WRITTEN_FOR_HUGGING_FACE = {"cl100k": CL100K_OF_HUGGING_FACE}


# The parts of a regular expression


class Part(NamedTuple):
    text: str
    place: int
    in_set: bool
    ignores_case: bool


ESCAPE = r"\\[pP]\{[^{}]*\}|\\[pPx].|\\U.{8}|\\[0-9]+|\\[bB]\{|\\."
PART = re.compile(
    rf"{ESCAPE}|\[\^?\]?(?:\\.|[^\\\]])*\]?|\(\?#[^)]*\)?|\(\?[P(]"
    r"|\(\?[A-Za-z]*(?:-[A-Za-z]+)?[:)]|\(\?<?[=!]|\(\?>"
    r"|[*+?][+?]?|\{[0-9]*,[0-9]*\}[+?]?|\{[0-9]+\}[+?]?|.",
    re.DOTALL,
)
PART_OF_SET = re.compile(rf"{ESCAPE}|&&|--|~~|\|\||.", re.DOTALL)
FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:-([A-Za-z]+))?[:)]")


def parts(source: str) -> Iterator[Part]:
    """Escapes, quantifiers, openings of groups and sets; all else is a character each."""
    ignores_case = [False]  # for the whole, and for each group that is open
    for match in PART.finditer(source):
        text, place = match[0], match.start()
        if text[0] == "[":
            opening = 1 + text.startswith("[^")
            opening += text.startswith("]", opening)
            yield Part(text[:opening], place, False, ignores_case[-1])
            for inner in PART_OF_SET.finditer(source, place + opening, match.end()):
                yield Part(inner[0], inner.start(), True, ignores_case[-1])
            continue
        yield Part(text, place, False, ignores_case[-1])
        flags = FLAGS.fullmatch(text)
        if GLOBAL_FLAGS.fullmatch(text):
            ignores_case[-1] = ignores_case[-1] or "i" in text
        elif flags:
            on, off = flags.groups("")
            ignores_case.append("i" in on or (ignores_case[-1] and "i" not in off))
        elif text[0] == "(" and text[-1] != ")":
            ignores_case.append(ignores_case[-1])
        elif text == ")" and len(ignores_case) > 1:
            ignores_case.pop()


# What means something else


class Reader(NamedTuple):
    """Who reads a regular expression: what is refused outside of sets, and everywhere."""

    name: str
    outside: Mapping[str, str]
    everywhere: Mapping[str, str]
    folds_strings: bool  # with case ignored, one character can match two: U+00DF matches "ss"


OTHERWISE = "is read in another way, or not at all,"
BOTH_OUTSIDE = {
    r"\\Z": "also matches before a line end that ends the text",
    r"\(\?[P(]": OTHERWISE,
}
BOTH_EVERYWHERE = {r"\\[0-9]+": OTHERWISE}
IN_SETS = {r"\[|&&|--|~~|\|\|": "makes sets of sets"}

TIKTOKEN = Reader(
    "tiktoken",
    {
        **BOTH_OUTSIDE,
        r"\$": "matches at the very end alone",
        r"\(\?[a-z-]*m.*": "makes lines of the text, with ^ and $ at each",
        r"\\[<>]|\\[bB]\{": "is the edge of a word",
    },
    BOTH_EVERYWHERE,
    folds_strings=False,
)
HUGGING_FACE = Reader(
    "Hugging Face",
    {
        **BOTH_OUTSIDE,
        r"[$^]": "matches at every line",
        r"\(\?[a-z-]*[ms].*": OTHERWISE,
        r"\{.*\}\+": "is not possessive",
        r"\{[0-9]+\}\?": "matches the empty text, too",
        r"\\[bB]\{?": "goes by other characters of words",
    },
    {
        **BOTH_EVERYWHERE,
        r"\\[wW]": "holds other characters of words",
        r"\\[pP][^{]": "is no property",
        r"\\U.*": "is the letter U",
        r"\\x[89A-Fa-f]": "begins a byte, not a character",
    },
    folds_strings=True,
)

# With case ignored: single characters, and classes without a case, that fold to themselves, edges
# of the text, and the letters that make a string to which one character folds.
UNFOLDED = re.compile(r"[\x00-\x7f]|\\[^A-Za-z0-9]|\\[sdnrtfvAz]|\[\^?\]?|\(.+|.[+?]|\{.*")
FOLDED_STRINGS = ("ff", "fi", "fl", "ss", "st")


def translated(source: str, reader: Reader, replaced: Mapping[str, str]) -> str:
    """The regular expression with some parts replaced; ValueError, with the place, for a part that
    means something else to the reader than here."""
    result = []
    before = ""
    for part in parts(source):
        if part.text in replaced and not part.in_set:
            result.append(replaced[part.text])
            continue
        meaning = other_meaning(part, reader, before)
        if meaning is not None:
            raise ValueError(
                f"pattern {source!r} is refused at position {part.place}: "
                f"{part.text!r} {meaning} for {reader.name}"
            )
        result.append(part.text)
        before = "" if part.in_set else part.text
    return "".join(result)


def other_meaning(part: Part, reader: Reader, before: str) -> str | None:
    """What a part does for the reader, if it is something else than here."""
    for table in (IN_SETS if part.in_set else reader.outside, reader.everywhere):
        for expression, meaning in table.items():
            if re.fullmatch(expression, part.text, re.DOTALL):
                return meaning
    if reader.folds_strings and part.ignores_case:
        if not UNFOLDED.fullmatch(part.text):
            return "with case ignored can match other characters"
        if (before + part.text).lower() in FOLDED_STRINGS:
            return f"after {before!r} and with case ignored matches a ligature, too,"
    return None


def read_from_tiktoken(source: str) -> str:
    return translated(source, TIKTOKEN, {"$": r"\Z"})


def read_from_hugging_face(source: str) -> str:
    return translated(source, HUGGING_FACE, {})


def written_for_tiktoken(source: str) -> str:
    return translated(source, TIKTOKEN, {r"\Z": r"\z"})


def written_for_hugging_face(source: str) -> str:
    return translated(source, HUGGING_FACE, {r"\Z": r"\z"})


# tiktoken drops what no match covers


def with_gaps(source: str) -> str:
    """A regular expression that also matches what this one does not cover, each gap as a whole."""
    return rf"{source}|(?:(?!{source})[\s\S])+"


def without_gaps(source: str) -> str | None:
    """The regular expression of which `with_gaps` made this one; None if it did not."""
    inner = source[: (len(source) - len(with_gaps(""))) // 2]
    return inner if inner and with_gaps(inner) == source else None
