"""The added tokens of a `tokenizer.json`, and the template that puts ids around a text."""

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from tokbpe.formats.huggingface_fields import Field, byte_level
from tokbpe.normalize import nfc
from tokbpe.patterns import BYTE_OF_PRINTABLE
from tokbpe.vocabulary import FLAGS

Ids: TypeAlias = tuple[int, ...]


class Token(NamedTuple):
    """An added token, special or not."""

    field: Field
    content: str
    id: int
    special: bool
    flags: tuple[str, ...]


def added_tokens(field: Field, normalizer: str | None) -> list[Token]:
    """The added tokens in their order, no two of them looked for as the same text."""
    tokens = []
    places: dict[tuple[str, bool], str] = {}
    for item in field.items():
        found = item.members("id", "content", "special", *FLAGS)
        flags = tuple(name for name in FLAGS if found[name].flag())
        content = found["content"].text()
        looked_for = [(content, False)]
        if normalizer is not None and "normalized" in flags:
            looked_for.append((nfc(content), True))
        for text in looked_for:
            if places.setdefault(text, item.place) != item.place:
                raise found["content"].refused(f"{places[text]} is the same text")
        tokens.append(Token(item, content, found["id"].id(), found["special"].flag(), flags))
    return tokens


def check_token_ids(tokens: list[Token], vocab: Mapping[str, int], taken: Collection[int]) -> None:
    """ValueError for an id that `tokenizers` would not give: it takes that in the vocab, and
    tokens that are not there get the next ones."""
    following = len(vocab)
    for token in tokens:
        id = token.field.member("id")
        if token.content in vocab:
            if token.id != vocab[token.content]:
                raise id.refused(f"in the vocab {token.content!r} is {vocab[token.content]}")
            continue
        if token.id in taken:
            raise id.refused(f"in the vocab that is another piece than {token.content!r}")
        if token.id != following:
            raise id.refused(f"a token that the vocab lacks gets the next id, {following}")
        following += 1


def is_plain(content: str) -> bool:
    """Whether a token is spelled as the piece that the vocab would have in its place."""
    return content.isascii() and BYTE_OF_PRINTABLE.keys() >= {*content}


def is_looked_up(content: str, flags: Collection[str], normalizer: str | None) -> bool:
    """Whether text in which a token of the vocab does not match can be that entry of it."""
    if is_plain(content):
        return "single_word" in flags or normalizer is not None
    return BYTE_OF_PRINTABLE.keys() >= {*content}


def frame(field: Field, ids: Mapping[str, int]) -> tuple[Ids, Ids]:
    """The ids that are put before and behind a text on request."""
    templates = []
    for kind, part in field.parts("processors", "ByteLevel", "TemplateProcessing"):
        if kind == "ByteLevel":
            byte_level(part)
        else:
            templates.append(part)
    if not templates:
        return (), ()
    if len(templates) > 1:
        raise templates[1].refused("one template alone can be honored")
    found = templates[0].members("type", "single", "pair", "special_tokens")
    entries = found["special_tokens"].entries()
    tokens = {name: template_token(entry, ids) for name, entry in entries.items()}
    template(found["pair"], tokens)  # for two texts, which are not encoded together here
    pieces = template(found["single"], tokens)
    if [piece for piece in pieces if isinstance(piece, str)] != ["A"]:
        raise found["single"].refused("in a template for one text the Sequence A stands once")
    middle = pieces.index("A")
    return joined(pieces[:middle]), joined(pieces[middle + 1 :])


def joined(pieces: list[str | Ids]) -> Ids:
    return tuple(id for piece in pieces if not isinstance(piece, str) for id in piece)


def template_token(field: Field, ids: Mapping[str, int]) -> Ids:
    """The ids that a name in a template stands for."""
    found = field.members("id", "ids", "tokens")
    found["id"].text()
    texts = [item.text() for item in found["tokens"].items()]
    own = tuple(item.id() for item in found["ids"].items())
    if own != tuple(map(ids.get, texts)):
        raise found["ids"].refused(f"these are not the ids of {texts}")
    return own


def template(field: Field, tokens: Mapping[str, Ids]) -> list[str | Ids]:
    """The pieces of a template: "A" or "B" for a text, or the ids of a special token."""
    pieces: list[str | Ids] = []
    for item in field.items():
        kind, found = item.tagged("Sequence", "SpecialToken")
        piece = found.members("id", "type_id")
        piece["type_id"].id()
        if kind == "Sequence":
            pieces.append(str(piece["id"].only("A", "B")))
        else:
            pieces.append(tokens[piece["id"].only(*tokens)])
    return pieces
