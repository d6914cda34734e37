"""The files of a tokenizer: its own, and those of others."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tokbpe import engines, files
from tokbpe.engines import Engine
from tokbpe.files import Path
from tokbpe.formats import artifact, gpt2, huggingface, printable_json, tiktoken
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary


class Whole(Protocol):
    """What the methods here need of a tokenizer."""

    _engine: Engine

    @property
    def _vocabulary(self) -> Vocabulary: ...

    @classmethod
    def from_vocabulary(
        cls: type["Made"], vocabulary: Vocabulary, engine: str | None = None
    ) -> "Made": ...


Made = TypeVar("Made", bound=Whole)


class TokenizerFiles:
    """The part of `Tokenizer` that writes and reads files."""

    def save(self: Whole, path: Path) -> None:
        """Write all of the tokenizer to a new file, which `load` reads. The same training gives
        the same bytes.

        The file appears in one step and complete. FileExistsError if anything stands at the
        path: no file is ever replaced. Another OSError if it cannot be written.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.save("small.tokbpe")
        >>> Tokenizer.load("small.tokbpe") == tokenizer
        True
        """
        artifact.save(self._vocabulary, path)

    @classmethod
    def load(
        cls: type[Made], path: Path, engine: str | None = None, trust_pattern: bool = False
    ) -> Made:
        """The tokenizer of a file that `save` wrote.

        trust_pattern: whether to take a pattern for which the time of splitting may grow faster
            than the text, with the square of its length or worse. Patterns that have a name, and
            those that repeat a class and do not go back behind it, are taken anyway.

        ValueError for another file, for one of a newer version, for one of which any byte has
        changed, and for such a pattern, telling why; OSError if it cannot be read.
        """
        vocabulary = artifact.load(path, engines.get(engine), trust_pattern)
        with files.naming(path):  # it may be of a method that is not known here
            return cls.from_vocabulary(vocabulary, engine)

    def to_json(self: Whole, path: Path) -> None:
        """Write `{"vocab": {piece: id}, "merges": [[left, right], ...]}`, in the printable
        characters of GPT-2, to a new file.

        It holds bytes and merges alone: the pattern must be given to `from_json` again, and the
        record of the training is left out. ValueError, naming it, for what would encode
        otherwise without it: special tokens, reserved ids, characters or words. OSError as in
        `save`.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.to_json("small.json")
        >>> Tokenizer.from_json("small.json") == tokenizer
        True
        """
        printable_json.save(self._vocabulary, path)

    @classmethod
    def from_json(
        cls: type[Made],
        path: Path,
        *,
        pattern: str | Pattern | None = None,
        engine: str | None = None,
    ) -> Made:
        """The tokenizer of such a file, with a pattern as in the constructor: the file has none.

        Every piece must be a single byte or made by a merge. ValueError, naming the file and the
        place, for one that is not as it must be; OSError if it cannot be read.
        """
        return cls.from_vocabulary(printable_json.load(path, pattern), engine)

    def to_tiktoken(self: Whole, path: Path) -> str:
        """Write the pieces to a new file in tiktoken's format, base64 and rank on each line, and
        return the Python that rebuilds a `tiktoken.Encoding` from it.

        ValueError, naming it, for what tiktoken cannot hold, or would encode otherwise. OSError as
        in `save`.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258,
        ...                       pattern="gpt2")
        >>> recipe = tokenizer.to_tiktoken("small.tiktoken")
        >>> again = Tokenizer.from_tiktoken("small.tiktoken", pattern="gpt2", special_tokens={})
        >>> again.encode("slow") == tokenizer.encode("slow")
        True
        """
        return tiktoken.save(self._vocabulary, path, self._engine)

    @classmethod
    def from_tiktoken(
        cls: type[Made],
        source: Any,
        *,
        name: str | None = None,
        pattern: str | Pattern | None = None,
        special_tokens: Mapping[str, int] | None = None,
        engine: str | None = None,
    ) -> Made:
        """The tokenizer that gives the ids of tiktoken.

        source: the path of a `.tiktoken` file; or the name of an encoding ("gpt2", "r50k_base",
            "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"), whose file is
            looked for where tiktoken keeps it, in the folder TIKTOKEN_CACHE_DIR; or a
            `tiktoken.Encoding`. Nothing is downloaded.
        name: which of these a file is, if its own name does not say so.
        pattern, special_tokens: for a file of none of these; its pattern, as tiktoken spells it
            or by its name, and its special tokens and their ids.

        The file of a named encoding is checked by the SHA-256 that tiktoken demands, unless
        pattern and special tokens are both given. ValueError, naming the file and the line, for
        one that is not as it must be; OSError if it cannot be read, or is not there.
        """
        vocabulary = tiktoken.load(
            source,
            name=name,
            pattern=pattern,
            special_tokens=special_tokens,
            engine=engines.get(engine),
        )
        return cls.from_vocabulary(vocabulary, engine)

    def to_gpt2(self: Whole, folder: Path) -> None:
        """Write GPT-2's two files, `vocab.json` and `merges.txt`, into a folder: both, or none.

        ValueError, naming it, for what they cannot hold, such as a pattern other than "gpt2".
        OSError as in `save`.
        """
        gpt2.save(self._vocabulary, folder, self._engine)

    @classmethod
    def from_gpt2(
        cls: type[Made],
        vocab: Path,
        merges: Path | None = None,
        *,
        special_tokens: Sequence[str] | None = None,
        engine: str | None = None,
    ) -> Made:
        """The tokenizer of GPT-2's two files: `vocab.json` or `encoder.json`, and `merges.txt` or
        `vocab.bpe`; or of a folder with two of these. The pattern is "gpt2".

        special_tokens: which entries are special tokens. By default `<|endoftext|>`, if there is
            such an entry, and no merge makes it.

        Every other piece must be a single byte or made by a merge. ValueError, naming the file
        and the place, for one that is not as it must be; OSError if it cannot be read.
        """
        vocabulary = gpt2.load(vocab, merges, special_tokens=special_tokens)
        return cls.from_vocabulary(vocabulary, engine)

    def to_huggingface(self: Whole, path: Path) -> None:
        """Write a new `tokenizer.json`, with which `tokenizers` gives the same ids.

        There a special token always matches, as here where `encode` allows all of them.
        ValueError, naming it, for what the file cannot hold, such as reserved ids. OSError as in
        `save`.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258,
        ...                       pattern="gpt2")
        >>> tokenizer.to_huggingface("tokenizer.json")
        >>> Tokenizer.from_huggingface("tokenizer.json") == tokenizer
        True
        """
        huggingface.save(self._vocabulary, path, self._engine)

    @classmethod
    def from_huggingface(
        cls: type[Made], source: Any, *, engine: str | None = None, trust_pattern: bool = False
    ) -> Made:
        """The tokenizer that gives the ids of Hugging Face's `tokenizers`.

        source: the path of a `tokenizer.json`, or of a folder that holds one; or a
            `tokenizers.Tokenizer`. It must be byte-level BPE.
        trust_pattern: whether to take a pattern of any time, as in `load`.

        `encode` with `allowed_special="all"` gives what `encode` gives there; both put the ids of
        the file's template around a text with `add_special_tokens=True` alone. ValueError, naming
        the file, the place in it and the value, for what would not be honored or contradicts
        itself; OSError if it cannot be read.
        """
        return cls.from_vocabulary(huggingface.load(source, trust_pattern), engine)
