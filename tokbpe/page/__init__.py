"""The page: one HTML file in which a reader steps through training and encoding.

It needs no network and no other file. Its own small byte-pair encoding, in JavaScript, gives the
merges and the ids of the package; the tests run both on the same text. The page, its style and
its scripts are files of this folder, put together here.
"""

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from tokbpe import arguments, methods, patterns
from tokbpe.methods import Options
from tokbpe.page.embedding import embedded_patterns, embedded_vocabulary
from tokbpe.vocabulary import Vocabulary

MOST_TOKENIZERS = 3
LEARNED_SIZE = 1024  # ids of the tokenizer that is learned from a corpus
LONGEST_TEXT = 10_000  # characters that the page works on
TITLE = "Byte-pair encoding, step by step"

TEMPLATE = "page.html"
STYLE = "page.css"
SCRIPTS = ("bpe.js", "drawing.js", "training.js", "encoding.js", "tabs.js")
PLACE = re.compile(r"\{\{(\w+)\}\}")
READ_DATA = '"use strict";\nconst DATA = JSON.parse(document.getElementById("data").textContent);\n'

# JSON may spell any character of a string so. These could end the script that holds it, or begin
# a comment, or are line ends to some readers.
HIDDEN = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def written(
    vocabularies: Mapping[str, Vocabulary] | None = None,
    text: str | None = None,
    text_name: str | None = None,
) -> str:
    """The page as HTML.

    vocabularies: those to encode with, by the names that are shown; three at most.
    text: what the page learns from at first; only the first 10,000 characters are kept.
    text_name: where it comes from.

    ValueError, naming the vocabulary and the reason, for one with which the page could not encode
    as the package does.
    """
    vocabularies = vocabularies or {}
    arguments.whole_number(len(vocabularies), "the number of vocabularies", 0, MOST_TOKENIZERS)
    data = {
        **embedded_patterns(),
        "printable": "".join(patterns.PRINTABLE),
        "longest_text": LONGEST_TEXT,
        "text": None if text is None else valid(text[:LONGEST_TEXT]),
        "text_name": None if text_name is None else valid(named(text_name, text or "")),
        "tokenizers": [
            embedded_vocabulary(valid(name), vocabulary)
            for name, vocabulary in vocabularies.items()
        ],
    }
    style = template(STYLE)
    script = READ_DATA + "\n".join(map(template, SCRIPTS))
    names = [*vocabularies] if text_name is None else [text_name]
    parts = {
        "title": html.escape(": ".join([TITLE, ", ".join(map(valid, names))]) if names else TITLE),
        "policy": html.escape(policy(style, script)),
        "style": style,
        "script": script,
        "data": script_json(data),
    }
    # One pass: what is put in is not looked at again.
    return PLACE.sub(lambda place: parts[place[1]], template(TEMPLATE))


def named(name: str, text: str) -> str:
    """What a text is called, of which the page may have only a part."""
    is_cut = len(text) > LONGEST_TEXT
    return f"{name}, the first {LONGEST_TEXT:,} characters" if is_cut else name


def learned(corpus: bytes) -> Vocabulary:
    """What a page on a corpus encodes with: bytes, cut by GPT-2's pattern."""
    options = Options(vocabulary_size=LEARNED_SIZE, pattern="gpt2")
    return methods.train("bpe", corpus, options)


def names_of(paths: Sequence[str]) -> list[str]:
    """What files are shown as: the ends of their paths, or whole paths if these are alike."""
    ends = [os.path.basename(os.path.normpath(path)) for path in paths]
    return ends if len({*ends}) == len(ends) else [*paths]


def policy(style: str, script: str) -> str:
    """A Content-Security-Policy that allows this style, this script and nothing else."""
    return (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def template(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def script_json(value: Any) -> str:
    """JSON that can stand in a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(HIDDEN)


def valid(text: str) -> str:
    """A text without lone surrogates, which a file name may have."""
    return text.encode("utf-8", "replace").decode("utf-8")
