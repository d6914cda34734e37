"""How the ids of a vocabulary become bytes: what stands around the engine's `decode`."""

from collections.abc import Iterable, Mapping
from typing import Any

from tokbpe import arguments
from tokbpe.cached import cached_property
from tokbpe.engines import Engine
from tokbpe.symbols import MARKER
from tokbpe.tables import SparsePieces
from tokbpe.vocabulary import UNKNOWN, Vocabulary


class DocumentDecoder:
    """Decodes the ids of a vocabulary by an engine. Threads may share it."""

    def __init__(self, vocabulary: Vocabulary, engine: Engine) -> None:
        self.vocabulary = vocabulary
        self.engine = engine
        self.pieces = vocabulary.by_id()
        self.unknown = None if vocabulary.unknown is None else UNKNOWN

    def decode(
        self,
        ids: Iterable[int],
        skip_special: bool,
        show_reserved: bool,
        max_bytes: int | None = None,
    ) -> bytes:
        """The bytes of ids. Reserved ids are left out or, in a text, shown as `<|NAME|>`.

        max_bytes: ValueError for more than these; None: any number.
        """
        if max_bytes is not None:
            ids = list(arguments.ids(ids))
            shown = self.instead[skip_special] if skip_special or show_reserved else {}
            self.check_size(ids, shown, max_bytes)
        table = self.skipped if skip_special else self.shown if show_reserved else self.raw
        if self.vocabulary.unit != "word":
            return self.engine.decode(ids, table)
        ids = list(arguments.ids(ids))
        data = self.engine.decode(ids, table)
        # The last word's marker goes, but not a space that a special token is spelled with.
        spelled = not skip_special and ids and ids[-1] in self.vocabulary.special_tokens.values()
        return data if spelled else data.removesuffix(MARKER)

    def check_size(self, ids: list[int], instead: Mapping[int, bytes], max_bytes: int) -> None:
        """ValueError for ids that stand for more than so many bytes."""
        most = arguments.whole_number(max_bytes, "max_bytes", 0, arguments.HIGHEST_COUNT)
        size = 0
        for position, id in enumerate(ids):
            piece = self.piece(id, position)
            size += len(instead.get(int(id), piece))
            if size > most:
                raise ValueError(
                    f"with id {id} at position {position} there are {size} bytes, more than "
                    f"max_bytes={most}"
                )

    def piece(self, id: int, position: int) -> bytes:
        """The bytes of an id that stands at `position`."""
        return arguments.known_piece(id, position, self.pieces, self.unknown)

    @cached_property
    def instead(self) -> dict[bool, dict[int, bytes]]:
        """What ids read as in a text that do not read as their pieces, by `skip_special`."""
        vocabulary = self.vocabulary
        left_out = [*vocabulary.special_tokens.values(), *vocabulary.reserved.values()]
        return {
            False: {id: f"<|{name}|>".encode() for name, id in vocabulary.reserved.items()},
            True: dict.fromkeys(left_out, b""),
        }

    @cached_property
    def shown(self) -> Any:
        return self.table(self.instead[False])

    @cached_property
    def skipped(self) -> Any:
        return self.table(self.instead[True])

    @cached_property
    def raw(self) -> Any:
        return self.table({})

    def table(self, instead: Mapping[int, bytes]) -> Any:
        if isinstance(self.pieces, SparsePieces):
            sparse = SparsePieces({**self.pieces.pieces, **instead}, len(self.pieces))
            return self.engine.decoding_table(sparse, self.unknown)
        pieces = list(self.pieces)
        for id, piece in instead.items():
            pieces[id] = piece
        return self.engine.decoding_table(pieces, self.unknown)

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """The ids of pieces. Of what is spelled alike special and added tokens come first, then
        the lowest id; reserved ids have no piece."""
        vocabulary = self.vocabulary
        hidden = {*vocabulary.reserved.values(), vocabulary.unknown}
        found = {text.encode("utf-8"): id for text, id in vocabulary.added_tokens.items()}
        found.update((text.encode("utf-8"), id) for text, id in vocabulary.special_tokens.items())
        for id, piece in vocabulary.items():
            if id not in hidden:
                found.setdefault(piece, id)
        if vocabulary.unknown is not None:
            found.setdefault(UNKNOWN, vocabulary.unknown)
        return found
