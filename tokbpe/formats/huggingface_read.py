"""From the content of a `tokenizer.json` to a vocabulary.

Read is what makes ids, and refused by its name is all that would make others. What `tokenizers`
does was read in its version 0.23, and is tested against it.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokbpe import patterns
from tokbpe.formats.huggingface_fields import Field, byte_level
from tokbpe.formats.huggingface_tokens import (
    Token,
    added_tokens,
    check_token_ids,
    frame,
    is_looked_up,
    is_plain,
)
from tokbpe.formats.printable import check_merges, checked_ids, checked_vocab
from tokbpe.patterns import BYTE_OF_PRINTABLE, Pattern
from tokbpe.vocabulary import Vocabulary

METACHARACTERS = re.compile(r"[\\.^$|?*+()\[\]{}]")


def vocabulary_of(content: Any, trust_pattern: bool = False) -> Vocabulary:
    """The vocabulary of a file's JSON; ValueError, naming the place, for what is not honored."""
    file = Field(content, "").members(
        "model",
        version="1.0",
        truncation=None,
        padding=None,
        added_tokens=[],
        normalizer=None,
        pre_tokenizer=None,
        post_processor=None,
        decoder=None,
    )
    if "type" in file["model"].entries():  # all else is of no interest with another one
        file["model"].kind("BPE")
    file["version"].only("1.0")
    file["truncation"].only(None)
    file["padding"].only(None)
    for _, part in file["decoder"].parts("decoders", "ByteLevel"):
        byte_level(part)
    pattern, prefix_space = cuts(file["pre_tokenizer"], trust_pattern)
    normalizer = normalizer_of(file["normalizer"])
    tokens = added_tokens(file["added_tokens"], normalizer)
    ids = {token.content: token.id for token in tokens}
    model = model_of(file["model"], ids)
    check_token_ids(tokens, model.vocab, model.pieces)
    pieces, merge_ids = as_trained(alphabet(model, tokens, normalizer), model.merges)
    return Vocabulary(
        "bpe",
        pieces,
        merges=model.merges[:, :2],
        merge_ids=merge_ids,
        pattern=pattern,
        special_tokens={token.content: token.id for token in tokens if token.special},
        added_tokens={token.content: token.id for token in tokens if not token.special},
        token_flags={token.content: token.flags for token in tokens if token.flags},
        whole_piece_lookup=model.ignore_merges,
        normalizer=normalizer,
        prefix_space=prefix_space,
        frame=frame(file["post_processor"], {**model.vocab, **ids}),
    )


# Before the model


def normalizer_of(field: Field) -> str | None:
    parts = [*field.parts("normalizers", "NFC")]
    for _, part in parts:
        part.members("type")
    return "NFC" if parts else None


def cuts(field: Field, trust_pattern: bool = False) -> tuple[Pattern | None, bool]:
    """The pattern, and whether a text gets a space put before it."""
    parts = [*field.parts("pretokenizers", "Split", "Digits", "ByteLevel")]
    if not parts or parts[-1][0] != "ByteLevel":
        raise field.refused("only bytes are merged here, so a ByteLevel must come last")
    found = [cut(part) for _, part in parts[:-1]]
    last = byte_level(parts[-1][1])
    prefix_space = last["add_prefix_space"]
    if found and prefix_space.value:
        raise prefix_space.refused("it cannot be honored behind other cuts")
    if len({keep_gaps for _, keep_gaps in found}) > 1:
        raise field.refused("cuts that drop text cannot be honored beside others that keep it")
    sources = [source for source, _ in found]
    if last["use_regex"].value:
        sources.append(patterns.GPT2)  # which leaves no gaps
    if not sources:
        return None, prefix_space.value
    keep_gaps = not found or found[0][1]
    try:
        pattern = patterns.from_huggingface(tuple(sources), keep_gaps, trust_pattern)
    except ValueError as error:
        raise ValueError(f"{field.place}: {error}") from error
    return pattern, prefix_space.value


def cut(field: Field) -> tuple[str, bool]:
    """The regular expression of one cut, and whether text between its matches is kept."""
    if field.kind("Split", "Digits") == "Digits":
        # There a digit is what Rust takes for one: from its Unicode 17 on, 13 characters more.
        found = field.members("type", "individual_digits")
        return (r"\p{N}" if found["individual_digits"].flag() else r"\p{N}+"), True
    found = field.members("type", "pattern", "behavior", "invert")
    invert = found["invert"].flag()  # what is isolated stays so
    removed = found["behavior"].only("Isolated", "Removed") == "Removed"
    if removed and not invert:
        raise found["behavior"].refused("with invert false what the pattern matches is dropped")
    return source_of(found["pattern"]), not removed


def source_of(field: Field) -> str:
    """The regular expression that `{"Regex": ...}` or `{"String": ...}` stands for."""
    kind, found = field.tagged("Regex", "String")
    return found.text() if kind == "Regex" else METACHARACTERS.sub(r"\\\g<0>", found.text())


# The model


class Model(NamedTuple):
    """Pieces in printable characters and as bytes; merges as two ids and the one they make."""

    vocab: Mapping[str, int]
    pieces: dict[int, bytes]
    merges: NDArray[np.uint32]
    ignore_merges: bool


def model_of(field: Field, spelled: Collection[str]) -> Model:
    """The model; `spelled` are tokens, which its vocab may list and does not make printable."""
    found = field.members(
        "vocab",
        "merges",
        type="BPE",
        dropout=None,
        unk_token=None,
        continuing_subword_prefix=None,
        end_of_word_suffix=None,
        fuse_unk=None,
        byte_fallback=None,
        ignore_merges=None,
    )
    found["dropout"].only(None, 0, 0.0)
    found["continuing_subword_prefix"].only(None, "")
    found["end_of_word_suffix"].only(None, "")
    found["fuse_unk"].only(False, None)
    found["byte_fallback"].only(False, None)
    ignore_merges = found["ignore_merges"].only(False, True, None)
    vocab = checked_vocab(found["vocab"].value)
    pieces = checked_ids(vocab, spelled)
    if found["unk_token"].value is not None:
        found["unk_token"].text()
        if not BYTE_OF_PRINTABLE.keys() <= vocab.keys():
            raise found["unk_token"].refused("it stands for bytes that the vocab lacks")
    return Model(vocab, pieces, merges_of(found["merges"], vocab), bool(ignore_merges))


def merges_of(field: Field, vocab: Mapping[str, int]) -> NDArray[np.uint32]:
    """The ids of each merge, `uint32` [n, 3]: the two that it joins and the one that it makes."""
    pairs = merge_pairs(field)
    try:
        ids = [(vocab[left], vocab[right], vocab[left + right]) for left, right in pairs]
    except KeyError:
        check_merges(pairs, vocab)  # names it
        raise
    merges = np.array(ids, np.uint32).reshape(-1, 3)
    if len(np.unique(merges[:, 0].astype(np.uint64) << np.uint64(32) | merges[:, 1])) < len(ids):
        check_merges(pairs, vocab)  # names the two that are one
    return merges


def merge_pairs(field: Field) -> list[list[str]]:
    """The two pieces of each merge, which stand in a list, or in a text with a space between."""
    kinds = {*map(type, field.values())}
    if kinds not in (set(), {str}, {list}):
        raise field.refused("merges are either pairs or texts")
    pairs = [merge.split(" ") for merge in field.value] if kinds == {str} else field.values()
    for number, pair in enumerate(pairs):
        if len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not str:
            raise field.item(number).refused("a merge is two pieces")
        if kinds == {str} and pair[0].startswith("#version"):
            raise field.item(number).refused("tokenizers takes this for a comment")
    return pairs


def alphabet(model: Model, tokens: list[Token], normalizer: str | None) -> tuple[bytes | None, ...]:
    """The pieces by id, without the tokens that the vocab lists too.

    ValueError for a token that stands for other bytes too, or that plain text would yield.
    """
    pieces = dict(model.pieces)
    listed = [token for token in tokens if token.content in model.vocab]
    # NumPy writes to nowhere if it has no memory to convert other numbers.
    merged = np.isin(
        np.array([token.id for token in listed], np.intp), model.merges.astype(np.intp)
    )
    for token, is_merged in zip(listed, merged.tolist()):
        if token.content in BYTE_OF_PRINTABLE:
            raise token.field.refused("it is one of the bytes in the vocab")
        if is_merged:
            if token.special or not is_plain(token.content):
                raise token.field.refused("it is made or joined by a merge")
        elif model.ignore_merges and is_looked_up(token.content, token.flags, normalizer):
            raise token.field.refused("it is a piece, too, that ignore_merges finds")
        else:
            del pieces[token.id]
    return tuple(map(pieces.get, range(max(pieces, default=-1) + 1)))


def as_trained(
    alphabet: tuple[bytes | None, ...], merges: NDArray[np.uint32]
) -> tuple[tuple[bytes | None, ...], NDArray[np.uint32] | None]:
    """The alphabet and the ids of the merges; in the form of a vocabulary that was trained here,
    without what merges make and without ids, where they are as in one."""
    made = merges[:, 2]
    base = alphabet[: len(alphabet) - len(merges)]
    follow = np.array_equal(made, np.arange(len(base), len(alphabet)))
    if follow and (merges[:, :2] < merges[:, 2:]).all() and {*map(len, filter(None, base))} <= {1}:
        return base, None
    return alphabet, made
