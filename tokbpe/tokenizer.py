"""`Tokenizer`, the class that users meet."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments, engines, methods, special
from tokbpe.arguments import Buffer, Documents
from tokbpe.formats import artifact, printable_json
from tokbpe.formats.files import Path
from tokbpe.methods import Merge, Options, Progress
from tokbpe.patterns import Pattern
from tokbpe.symbols import MARKER
from tokbpe.vocabulary import UNKNOWN, Vocabulary, lay_out

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LARGEST_TUPLE = 2**24
STATE_VERSION = 1


class Tokenizer:
    """A tokenizer, learned from a corpus.

    corpus: a `str` or bytes, which is one document, or an iterable of documents.
    method: "byte" (the distinct bytes of the corpus), "bpe" (byte-pair encoding), "char" (its
        characters) or "word" (merges inside words, from characters), or a registered one.

    For "bpe" and "word":

    vocabulary_size: how many ids to have, special tokens and reserved ids included; for "bpe"
        from 256 beside these to 2**32 - 1; 512 if it is not given. It ends smaller, with a
        warning if it was given, when no pair is frequent enough.
    minimum_pair_frequency: how often a pair must occur to be merged: 2, or 1 for "word".
    tie_break: which of equally frequent pairs is merged: the "smallest" ids (the default of
        "bpe"), met "first" (that of "word"), or the "greatest" bytes.

    For "bpe":

    pattern: how documents are cut into the pieces that merges do not cross: the name of a
        pattern ("gpt2", "cl100k", "o200k", ...), a regular expression, or None for no cuts.
    base: the order of the first 256 ids: "bytes", or "gpt2" for that of GPT-2's printable
        characters.

    For all:

    special_tokens: texts with an id of their own. In training each is a boundary and is not
        counted; `encode` yields it only where it is allowed.
    reserved: names of ids that no text yields, such as "BOS", "EOS", "PAD".
    special_ids: where both have their ids, in this order: behind the "base", "first", or at
        the "end".
    engine: "fast" or "reference"; None for the environment variable TOKBPE_ENGINE, else "fast".
    progress: True for a progress bar on a terminal, or a function that is called with the
        merges done and wanted.

    Raises TypeError or ValueError, naming the value, for arguments of the wrong type or out of
    bounds and for a corpus without bytes; UnicodeError for text with a lone surrogate, and for
    bytes that are no UTF-8 where characters are wanted.

    A tokenizer never changes, so threads may share it. Tokenizers are equal when they encode
    and decode alike.
    """

    def __init__(
        self,
        corpus: Documents,
        *,
        method: str = "byte",
        vocabulary_size: int | None = None,
        minimum_pair_frequency: int | None = None,
        pattern: str | Pattern | None = None,
        tie_break: str | None = None,
        base: str | None = None,
        special_tokens: Sequence[str] = (),
        reserved: Sequence[str] = (),
        special_ids: str | None = None,
        engine: str | None = None,
        progress: Progress = False,
    ) -> None:
        options = Options(
            vocabulary_size=vocabulary_size,
            minimum_pair_frequency=minimum_pair_frequency,
            pattern=pattern,
            tie_break=tie_break,
            base=base,
            special_tokens=special_tokens,
            reserved=reserved,
            special_ids=special_ids,
            engine=engine,
            progress=progress,
        )
        self._open(methods.train(method, corpus, options), engine)

    def _open(self, vocabulary: Vocabulary, engine: str | None) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(
                f"a tokenizer needs a Vocabulary, not {arguments.type_name(vocabulary)}"
            )
        if vocabulary.whole_piece_lookup or vocabulary.merge_rule != "merge_list":
            raise ValueError(
                "the engines encode merge_rule='merge_list' without whole_piece_lookup, not "
                f"{vocabulary.merge_rule!r} with whole_piece_lookup={vocabulary.whole_piece_lookup}"
            )
        methods.check_symbols(vocabulary)
        self._engine_name = engines.name_of(engine)
        self._engine = engines.get(engine)
        self._known: Vocabulary | None = vocabulary

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary, engine: str | None = None) -> "Tokenizer":
        """The tokenizer of a vocabulary."""
        tokenizer = cls.__new__(cls)
        tokenizer._open(vocabulary, engine)
        return tokenizer

    @classmethod
    def from_bytes(
        cls,
        *,
        special_tokens: Sequence[str] = (),
        reserved: Sequence[str] = (),
        special_ids: str | None = None,
        engine: str | None = None,
    ) -> "Tokenizer":
        """All 256 bytes, special tokens and reserved ids; needs no corpus."""
        options = Options(special_tokens=special_tokens, reserved=reserved, special_ids=special_ids)
        alphabet = tuple(bytes([byte]) for byte in range(256))
        vocabulary = lay_out(
            Vocabulary("byte", alphabet),
            options.special_tokens,
            options.reserved,
            methods.given(special_ids, "base"),
        )
        return cls.from_vocabulary(vocabulary, engine)

    @classmethod
    def train_steps(
        cls, corpus: Documents, *, method: str = "bpe", **options: Any
    ) -> Iterator[Merge]:
        """Learn merges one by one; the options are those of the constructor.

        Each step gives the id, with base ids first, the bytes of the two pieces and their count.
        """
        found = methods.get(method)
        if not hasattr(found, "prepare"):
            raise ValueError(f"the {method} method merges nothing that could be shown")
        chosen = Options(**options)
        return methods.learn_steps(found.prepare(corpus, chosen), chosen)

    # Closing

    @property
    def _vocabulary(self) -> Vocabulary:
        known = self._known  # read once: another thread may close
        if known is None:
            raise ValueError("this tokenizer is closed")
        return known

    def close(self) -> None:
        """End the use of this tokenizer: later calls are a ValueError; those running finish."""
        self._known = None
        for name in (
            "_encoder",
            "_all_special",
            "_last_special",
            "_shown",
            "_skipped",
            "_raw",
            "_identity",
            "vocabulary",
        ):
            self.__dict__.pop(name, None)

    def __enter__(self) -> "Tokenizer":
        self._vocabulary  # noqa: B018  (an error if it is closed)
        return self

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Reading it

    def __repr__(self) -> str:
        if self._known is None:
            return "<Tokenizer, closed>"
        return (
            f"<Tokenizer {self.method}, {self.vocab_size} ids, "
            f"pattern {self.pattern!r}, engine {self._engine_name!r}>"
        )

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._vocabulary.method

    @property
    def pattern(self) -> str | None:
        """The split pattern: its name, else its spelling; None if documents are not cut."""
        pattern = self._vocabulary.pattern
        if pattern is None:
            return None
        return pattern.name or pattern.sources[0]

    @property
    def vocab_size(self) -> int:
        """The highest id + 1: the number of rows that an embedding needs."""
        return len(self._vocabulary)

    @property
    def target_vocab_size(self) -> int | None:
        """The size that the last training was asked for; None if it was not said."""
        provenance = self._vocabulary.provenance
        return provenance[-1].get("vocabulary_size") if provenance else None

    @property
    def lossless(self) -> bool:
        """Whether every accepted input comes back byte for byte."""
        return self._vocabulary.unit == "byte"

    @cached_property
    def vocabulary(self) -> tuple[bytes | None, ...]:
        """The bytes of each id: a special token's spelling, b"" for a reserved id, None for a
        gap. ValueError above 2**24 ids: use `items` there."""
        if self.vocab_size > LARGEST_TUPLE:
            raise ValueError(
                f"a vocabulary of {self.vocab_size} ids is too large for a tuple "
                f"(at most {LARGEST_TUPLE}): use .items()"
            )
        return tuple(self._vocabulary.pieces())

    @property
    def vocabulary_bytes(self) -> bytes:
        """All bytes in the order of their ids. ValueError for other methods than "byte"."""
        if self.method != "byte":
            raise ValueError(
                f"vocabulary_bytes is for the byte method, not {self.method!r}: use .vocabulary"
            )
        return b"".join(symbol for symbol in self._vocabulary.alphabet if symbol is not None)

    def items(self) -> Iterator[tuple[int, bytes]]:
        """Each id that has a meaning, in rising order, with its bytes."""
        return iter(self._vocabulary.items())

    @property
    def merges(self) -> NDArray[np.uint32]:
        """The pairs of ids in the order learned, `uint32` [n, 2], read only."""
        return self._vocabulary.merges

    @property
    def merge_counts(self) -> NDArray[np.uint64]:
        """How often each pair stood in the corpus when it was merged, `uint64` [n], read only."""
        return self._vocabulary.merge_counts

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens and their ids."""
        return dict(self._vocabulary.special_tokens)

    @property
    def reserved(self) -> dict[str, int]:
        """The names of reserved ids and these."""
        return dict(self._vocabulary.reserved)

    @property
    def bos_id(self) -> int:
        """The reserved id BOS; AttributeError if there is none."""
        return self._reserved_attribute("BOS")

    @property
    def eos_id(self) -> int:
        """The reserved id EOS; AttributeError if there is none."""
        return self._reserved_attribute("EOS")

    @property
    def pad_id(self) -> int:
        """The reserved id PAD; AttributeError if there is none."""
        return self._reserved_attribute("PAD")

    def _reserved_attribute(self, name: str) -> int:
        try:
            return self._vocabulary.reserved[name]
        except KeyError:
            raise AttributeError(f"this tokenizer has no reserved id {name!r}") from None

    # Encoding

    def encode(
        self,
        text: str,
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
    ) -> list[int]:
        """The ids of a text.

        errors: a lone surrogate is a UnicodeEncodeError with its index ("strict"), or counts as
            U+FFFD ("replace").
        allowed_special: the special tokens that the text may hold, or "all"; the spelling of
            others is plain text.
        bos, eos: whether to put the reserved id BOS before, EOS behind.

        ValueError, naming byte and position, for a byte that the vocabulary lacks.
        """
        arguments.choice(errors, "errors", arguments.ERRORS)
        if not isinstance(text, str):
            raise TypeError(
                f"encode takes str, not {arguments.type_name(text)}; bytes go to encode_bytes"
            )
        if errors == "replace":
            text = LONE_SURROGATE.sub("\ufffd", text)
        return self._encode(text, allowed_special, bos, eos)

    def encode_bytes(
        self,
        data: Buffer,
        *,
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
    ) -> list[int]:
        """The ids of arbitrary bytes; what is no UTF-8 is cut off from what is."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"encode_bytes takes bytes, not {arguments.type_name(data)}; text goes to encode"
            )
        return self._encode(data, allowed_special, bos, eos)

    def _encode(
        self, text: str | Buffer, allowed_special: Collection[str] | str, bos: bool, eos: bool
    ) -> list[int]:
        vocabulary = self._vocabulary
        before = [vocabulary.reserved_id("BOS")] if bos else []
        behind = [vocabulary.reserved_id("EOS")] if eos else []
        return before + self._encoder(text, self._special(allowed_special)) + behind

    def _special(self, allowed: Collection[str] | str) -> Any:
        """What finds the special tokens that are allowed; None where none is."""
        if isinstance(allowed, str) and allowed == "all":
            return self._all_special
        chosen = frozenset(arguments.special_choice(allowed, self._vocabulary.special_tokens))
        if not chosen:
            return None
        # Callers mostly allow the same set again and again.
        known, table = self.__dict__.get("_last_special", (None, None))
        if known != chosen:
            table = self._special_table(chosen)
            self.__dict__["_last_special"] = chosen, table
        return table

    @cached_property
    def _all_special(self) -> Any:
        spellings = self._vocabulary.special_tokens
        return self._special_table(spellings) if spellings else None

    def _special_table(self, spellings: Iterable[str]) -> Any:
        ids = self._vocabulary.special_tokens
        return self._engine.special_table({text.encode("utf-8"): ids[text] for text in spellings})

    @cached_property
    def _encoder(self) -> methods.Encode:
        return methods.encoder(self._vocabulary, self._engine)

    def encode_chat(
        self, turns: Iterable[tuple[str, str]], *, bos: bool = False
    ) -> tuple[list[int], list[bool]]:
        """The ids of a conversation, and which of them a model is trained on.

        turns: pairs of a role and a text. A role in capitals is the name of a reserved id
            ("USER", "ASSISTANT", "SYSTEM"). What is spelled in a text stays text.

        Each turn is the id of its role, its text and EOS; BOS comes first if `bos`. The mask is
        true for the text of "assistant" turns and for the EOS behind it.
        """
        encode = self._encoder
        reserved_id = self._vocabulary.reserved_id
        return special.chat_layout(
            turns,
            lambda text: encode(text, None),
            reserved_id,
            [reserved_id("BOS")] if bos else [],
        )

    # Decoding

    def decode(self, ids: Iterable[int], errors: str = "strict", skip_special: bool = False) -> str:
        """The text of ids: any iterable of whole numbers. A reserved id shows as `<|NAME|>`.

        errors: bytes that are no UTF-8 are a UnicodeDecodeError ("strict"), or U+FFFD
            ("replace").
        skip_special: leaves reserved ids and special tokens out.

        TypeError or ValueError, naming id and position, for what is no id; with the methods
        "char" and "word" a whole number that is none reads as `<UNK>`.
        """
        arguments.choice(errors, "errors", arguments.ERRORS)
        table = self._skipped if skip_special else self._shown
        return self._decode(ids, table, skip_special).decode("utf-8", errors)

    def decode_bytes(self, ids: Iterable[int], skip_special: bool = False) -> bytes:
        """The bytes of ids: any iterable of whole numbers. Reserved ids are left out."""
        table = self._skipped if skip_special else self._raw
        return self._decode(ids, table, skip_special)

    def _decode(self, ids: Iterable[int], table: Any, skip_special: bool) -> bytes:
        vocabulary = self._vocabulary
        if vocabulary.unit != "word":
            return self._engine.decode(ids, table)
        ids = list(arguments.ids(ids))
        data = self._engine.decode(ids, table)
        # The last word's marker goes, but not a space that a special token is spelled with.
        spelled = not skip_special and ids and ids[-1] in vocabulary.special_tokens.values()
        return data if spelled else data.removesuffix(MARKER)

    @cached_property
    def _shown(self) -> Any:
        names = {id: f"<|{name}|>".encode() for name, id in self._vocabulary.reserved.items()}
        return self._decoding_table(names)

    @cached_property
    def _skipped(self) -> Any:
        vocabulary = self._vocabulary
        ids = [*vocabulary.special_tokens.values(), *vocabulary.reserved.values()]
        return self._decoding_table(dict.fromkeys(ids, b""))

    @cached_property
    def _raw(self) -> Any:
        return self._decoding_table({})

    def _decoding_table(self, instead: Mapping[int, bytes]) -> Any:
        vocabulary = self._vocabulary
        pieces = vocabulary.pieces()
        for id, piece in instead.items():
            pieces[id] = piece
        return self._engine.decoding_table(pieces, None if vocabulary.unknown is None else UNKNOWN)

    # Other tokenizers from this one

    def truncated(self, vocabulary_size: int) -> "Tokenizer":
        """The tokenizer that training to a smaller size gives: a prefix of the merges."""
        return self.from_vocabulary(
            methods.truncated(self._vocabulary, vocabulary_size), self._engine_name
        )

    def extended(
        self,
        corpus: Documents,
        vocabulary_size: int,
        *,
        minimum_pair_frequency: int | None = None,
        progress: Progress = False,
    ) -> "Tokenizer":
        """A tokenizer with all these ids, and more merges learned on another corpus."""
        options = Options(
            vocabulary_size=vocabulary_size,
            minimum_pair_frequency=minimum_pair_frequency,
            engine=self._engine_name,
            progress=progress,
        )
        return self.from_vocabulary(
            methods.extended(self._vocabulary, corpus, options), self._engine_name
        )

    # Identity and state

    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of all that makes this tokenizer: merges, special tokens,
        the documents that it was fitted on, the version of the algorithm."""
        return self._vocabulary.fingerprint()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> str:
        return self._vocabulary.fingerprint(provenance=False)

    def state(self) -> dict[str, Any]:
        """The tokenizer as plain data, which JSON and any checkpoint can hold."""
        plain = self._vocabulary.plain()
        return {"version": STATE_VERSION, "sha256": digest(plain), "vocabulary": plain}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], engine: str | None = None) -> "Tokenizer":
        """The tokenizer of such data. ValueError for data that are damaged or of a newer
        version."""
        if not isinstance(state, Mapping):
            raise TypeError(f"a state must be a mapping, not {arguments.type_name(state)}")
        if state.keys() != {"version", "sha256", "vocabulary"}:
            raise ValueError(f"a state has version, sha256 and vocabulary, not {list(state)}")
        if arguments.as_index(state["version"]) != STATE_VERSION:
            raise ValueError(
                f"the state has version {state['version']!r}; this tokbpe reads {STATE_VERSION}"
            )
        if not isinstance(state["vocabulary"], Mapping):
            raise ValueError("the state is damaged: its vocabulary is no mapping")
        if digest(state["vocabulary"]) != state["sha256"]:
            raise ValueError("the state is damaged: its vocabulary does not have its sha256")
        try:
            vocabulary = Vocabulary.from_plain(state["vocabulary"])
        except TypeError as error:
            raise ValueError(f"the state is damaged: {error}") from error
        return cls.from_vocabulary(vocabulary, engine)

    # Files

    def save(self, path: Path) -> None:
        """Write all of the tokenizer to a new file, which `load` reads. The same training gives
        the same bytes.

        The file appears in one step and complete. FileExistsError if anything stands at the
        path: no file is ever replaced. Another OSError if it cannot be written.
        """
        artifact.save(self._vocabulary, path)

    @classmethod
    def load(cls, path: Path, engine: str | None = None) -> "Tokenizer":
        """The tokenizer of a file that `save` wrote.

        ValueError for another file, for one of a newer version, and for one of which any byte
        has changed; OSError if it cannot be read.
        """
        return cls.from_vocabulary(artifact.load(path), engine)

    def to_json(self, path: Path) -> None:
        """Write `{"vocab": {piece: id}, "merges": [[left, right], ...]}`, in the printable
        characters of GPT-2, to a new file.

        It holds bytes and merges alone: the pattern must be given to `from_json` again, and the
        record of the training is left out. ValueError, naming it, for what would encode
        otherwise without it: special tokens, reserved ids, characters or words. OSError as in
        `save`.
        """
        printable_json.save(self._vocabulary, path)

    @classmethod
    def from_json(
        cls, path: Path, *, pattern: str | Pattern | None = None, engine: str | None = None
    ) -> "Tokenizer":
        """The tokenizer of such a file, with a pattern as in the constructor: the file has none.

        Every piece must be a single byte or made by a merge. ValueError, naming the file and the
        place, for one that is not as it must be; OSError if it cannot be read.
        """
        return cls.from_vocabulary(printable_json.load(path, pattern), engine)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.state(), self._engine_name)


def digest(plain: Mapping[str, Any]) -> str:
    """SHA-256 of plain data, in hexadecimal."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
