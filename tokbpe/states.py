"""The state of a tokenizer: its vocabulary as plain data, with a checksum."""

import hashlib
from collections.abc import Mapping
from typing import Any

from tokbpe import arguments
from tokbpe.vocabulary import Vocabulary, as_json

VERSION = 1


def plain(vocabulary: Vocabulary) -> dict[str, Any]:
    """What JSON and any checkpoint can hold."""
    data = vocabulary.plain()
    return {"version": VERSION, "sha256": digest(data), "vocabulary": data}


def vocabulary(state: Mapping[str, Any], trust_pattern: bool = False) -> Vocabulary:
    """The vocabulary of a state. ValueError for one that is damaged or of a newer version."""
    if not isinstance(state, Mapping):
        raise TypeError(f"a state must be a mapping, not {arguments.type_name(state)}")
    if state.keys() != {"version", "sha256", "vocabulary"}:
        raise ValueError(f"a state has version, sha256 and vocabulary, not {list(state)}")
    if arguments.as_index(state["version"]) != VERSION:
        raise ValueError(f"the state has version {state['version']!r}; this tokbpe reads {VERSION}")
    if not isinstance(state["vocabulary"], Mapping):
        raise ValueError("the state is damaged: its vocabulary is no mapping")
    try:
        if digest(state["vocabulary"]) != state["sha256"]:
            raise ValueError("the state is damaged: its vocabulary does not have its sha256")
        return Vocabulary.from_plain(state["vocabulary"], trust_pattern)
    except TypeError as error:
        raise ValueError(f"the state is damaged: {error}") from error
    except RecursionError as error:
        raise ValueError("the state is damaged: it is nested too deeply") from error


def digest(plain: Mapping[str, Any]) -> str:
    """SHA-256 of plain data, in hexadecimal."""
    return hashlib.sha256(as_json(plain)).hexdigest()
