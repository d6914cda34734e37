"""`Tokenizer`, the class that users meet."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokbpe import (
    arguments,
    blocks,
    continuing,
    encoded,
    engines,
    methods,
    native,
    reading,
    special,
    states,
    tally,
)
from tokbpe.arguments import Buffer, Document, Documents
from tokbpe.cached import cached_property
from tokbpe.corpus import Corpus
from tokbpe.counting import PieceCounts
from tokbpe.decoding import DocumentDecoder
from tokbpe.encoded import EncodedCorpus
from tokbpe.encoding import (
    CACHE_BYTES,
    Arrays,
    DocumentEncoder,
    ShortCut,
    framed,
    id_type,
    smallest_type,
)
from tokbpe.methods import Merge, Options
from tokbpe.offsets import Encoded, EncodedBytes, Locator, character_spans
from tokbpe.patterns import Pattern
from tokbpe.progress import Progress
from tokbpe.tally import Usage
from tokbpe.tokenizer_files import TokenizerFiles
from tokbpe.vocabulary import Vocabulary, lay_out

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LARGEST_TUPLE = 2**24
NOTHING = ()  # no special tokens

Text = TypeVar("Text", str, Document)


class Tokenizer(TokenizerFiles):
    """A tokenizer, learned from a corpus.

    corpus: a `str` or bytes, which is one document, or an iterable of documents, such as a
        `Corpus`, whose role must be "training".
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
    progress: True for progress bars on a terminal, or a function that is called with two numbers
        from time to time: first with the bytes that are counted and those of the corpus (None
        for these where it is no text, bytes, list or tuple), then with the merges done and
        wanted, of which fewer are done where the corpus gives no more.
    threads: how many may be used; by default as many as there are cores. The result does not
        depend on it.
    on_interrupt: what Ctrl-C does. "raise": KeyboardInterrupt, within a second; "keep": so it
        does while the corpus is read, but what merges are learned by then are the tokenizer.
    max_pair_types: how many different pairs of neighbors the corpus may have before anything is
        merged; max_merge_work: how many pairs may be merged in all, which is the sum of
        `merge_counts`. A ValueError names the bound that is passed. None: any number.
    cache_bytes: see the property, by which it can be changed.

    Raises TypeError or ValueError, naming the value, for arguments of the wrong type or out of
    bounds and for a corpus without bytes; UnicodeError for text with a lone surrogate, and for
    bytes that are no UTF-8 where characters are wanted.

    A tokenizer never changes, so threads may share it. Tokenizers are equal when they encode
    and decode alike.

    >>> from tokbpe import Tokenizer
    >>> tokenizer = Tokenizer(["low lower", "lowest"], method="bpe", vocabulary_size=259,
    ...                       reserved=["EOS"])
    >>> tokenizer
    <Tokenizer bpe, 259 ids, pattern None, engine 'fast'>
    >>> tokenizer.vocabulary[256:], tokenizer.merges.tolist()
    ((b'', b'lo', b'low'), [[108, 111], [257, 119]])
    >>> tokenizer.encode("slow", eos=True)
    [115, 258, 256]
    """

    # One that could not be made is as one that is closed.
    _known: Vocabulary | None = None
    _cache_bytes: int = CACHE_BYTES
    # What `encode` calls, and with what behind the text, when nothing is asked for.
    _short_cut: ShortCut | None = None

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
        threads: int | None = None,
        on_interrupt: str = "raise",
        max_pair_types: int | None = None,
        max_merge_work: int | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        limit = arguments.cache_bytes(cache_bytes)
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
            threads=threads,
            on_interrupt=on_interrupt,
            max_pair_types=max_pair_types,
            max_merge_work=max_merge_work,
        )
        vocabulary = methods.train(method, corpus, options)
        methods.finish(lambda: self._open(vocabulary, engine), on_interrupt)
        self._cache_bytes = limit

    def _open(self, vocabulary: Vocabulary, engine: str | None) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(
                f"a tokenizer needs a Vocabulary, not {arguments.type_name(vocabulary)}"
            )
        methods.check_symbols(vocabulary)
        self._engine_name = engines.name_of(engine)
        self._engine = engines.get(engine)
        self._known = vocabulary

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
        """All 256 bytes, special tokens and reserved ids; needs no corpus.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer.from_bytes(reserved=("BOS", "EOS", "PAD"))
        >>> tokenizer.encode("hi", bos=True, eos=True)
        [256, 104, 105, 257]
        """
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
    def from_counts(
        cls,
        counts: PieceCounts,
        *,
        method: str = "bpe",
        vocabulary_size: int | None = None,
        minimum_pair_frequency: int | None = None,
        tie_break: str | None = None,
        base: str | None = None,
        special_tokens: Sequence[str] | None = None,
        reserved: Sequence[str] = (),
        special_ids: str | None = None,
        engine: str | None = None,
        progress: Progress = False,
        threads: int | None = None,
        on_interrupt: str = "raise",
        max_pair_types: int | None = None,
        max_merge_work: int | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> "Tokenizer":
        """The tokenizer that is learned from a corpus whose pieces are counted: what training on
        the corpus gives. The pattern is that of the counts; so are the special tokens, which may
        be given in another order, by which they get their ids. Other options are those of the
        constructor.

        method: "bpe", or "word" for counts of the pattern "words".

        Counts without an order, which some Parquet files give, cannot be learned from with the
        tie rule "first": ValueError.

        >>> from tokbpe import PieceCounts, Tokenizer
        >>> counts = PieceCounts("low lower lowest", pattern="gpt2")
        >>> Tokenizer.from_counts(counts, vocabulary_size=258).vocabulary[256:]
        (b'lo', b'low')
        """
        limit = arguments.cache_bytes(cache_bytes)
        if special_tokens is None:
            special_tokens = getattr(counts, "special_tokens", ())
        options = Options(
            vocabulary_size=vocabulary_size,
            minimum_pair_frequency=minimum_pair_frequency,
            tie_break=tie_break,
            base=base,
            special_tokens=special_tokens,
            reserved=reserved,
            special_ids=special_ids,
            engine=engine,
            progress=progress,
            threads=threads,
            on_interrupt=on_interrupt,
            max_pair_types=max_pair_types,
            max_merge_work=max_merge_work,
        )
        vocabulary = methods.train_counts(method, counts, options)
        tokenizer = methods.finish(lambda: cls.from_vocabulary(vocabulary, engine), on_interrupt)
        tokenizer._cache_bytes = limit
        return tokenizer

    @classmethod
    def train_steps(
        cls, corpus: Documents, *, method: str = "bpe", **options: Any
    ) -> Iterator[Merge]:
        """Learn merges one by one; the options are those of the constructor.

        Each step gives the id, with base ids first, the bytes of the two pieces and their count.

        >>> from tokbpe import Tokenizer
        >>> for merge in Tokenizer.train_steps("low lower lowest", vocabulary_size=258):
        ...     print(merge)
        Merge(id=256, left=b'l', right=b'o', occurrences=3)
        Merge(id=257, left=b'lo', right=b'w', occurrences=3)
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
        self._short_cut = None
        for name in (
            "_encoder",
            "_locator",
            "_decoder",
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

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        import html

        from tokbpe import show

        if self._known is None:
            return html.escape(repr(self))
        return show.summary(self._known, self._engine_name)

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
        """Whether every accepted input comes back byte for byte, special tokens apart."""
        return self._vocabulary.lossless

    @cached_property
    def vocabulary(self) -> tuple[bytes | None, ...]:
        """The bytes of each id: a special token's spelling, b"" for a reserved id, None for a
        gap. ValueError above 2**24 ids: use `items` there."""
        if self.vocab_size > LARGEST_TUPLE:
            raise ValueError(
                f"a vocabulary of {self.vocab_size} ids is too large for a tuple "
                f"(at most {LARGEST_TUPLE}): use .items()"
            )
        pieces = self._decoder.pieces
        return pieces if isinstance(pieces, tuple) else (*self._vocabulary.pieces(),)

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
        allowed_special: Collection[str] | str = NOTHING,
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
    ) -> list[int]:
        """The ids of a text.

        errors: a lone surrogate is a UnicodeEncodeError with its index ("strict"), or counts as
            U+FFFD ("replace").
        allowed_special: the special tokens that the text may hold, or "all"; the spelling of
            others is plain text.
        bos, eos: whether to put the reserved id BOS before, EOS behind.
        add_special_tokens: whether to put around it what an imported file says.

        ValueError, naming byte and position, for a byte that the vocabulary lacks.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=259,
        ...                       special_tokens=["<|end|>"])
        >>> tokenizer.encode("slow<|end|>", allowed_special={"<|end|>"})
        [115, 258, 256]
        >>> len(tokenizer.encode("<|end|>"))  # not allowed, so it is plain text
        7
        """
        short_cut = self._short_cut
        if (
            short_cut is not None
            and type(text) is str
            and allowed_special is NOTHING
            and errors == "strict"
            and not (bos or eos or add_special_tokens)
        ):
            encode, table, finder = short_cut
            return encode(text, table, finder)
        text = self._checked_text(text, errors)
        before, behind = self._frame(bos, eos, add_special_tokens)
        return before + self._encode(text, allowed_special) + behind

    def encode_bytes(
        self,
        data: Buffer,
        *,
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
    ) -> list[int]:
        """The ids of arbitrary bytes; what is no UTF-8 is cut off from what is.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.encode_bytes(b"\\xfflow")
        [255, 257]
        """
        before, behind = self._frame(bos, eos, add_special_tokens)
        return before + self._encode(self._checked_bytes(data), allowed_special) + behind

    def encode_array(
        self,
        text: Document,
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> NDArray[np.uint32]:
        """The ids of a text, as `encode` gives them, or of bytes: `uint32` [n].

        threads: how many may work on a large text; by default as many as there are cores.

        What may change meanwhile, a `bytearray`, `memoryview` or `mmap`, is copied first; a large
        file is for `encode_file`.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.encode_array("slow")
        array([115, 257], dtype=uint32)
        """
        encoder = self._encoder
        frame = self._frame(bos, eos, add_special_tokens)
        ids = encoder.encode_array(
            self._repaired(text, errors),
            encoder.finder(allowed_special),
            arguments.threads(threads),
        )
        return framed(ids, frame)

    def encode_into(
        self,
        text: Document,
        out: Any,
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
    ) -> int:
        """Write the ids of a text, or of bytes, to the beginning of `out`; how many they are.

        out: an array of `uint32` or `uint16`, or another buffer of these, in one dimension.

        ValueError, naming both sizes, if there is no room for all, and for an id that `uint16`
        does not hold; then there may be anything in `out`.

        >>> import numpy as np
        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> out = np.zeros(4, np.uint16)
        >>> tokenizer.encode_into("slow", out), out.tolist()
        (2, [115, 257, 0, 0])
        """
        encoder = self._encoder
        frame = self._frame(bos, eos, add_special_tokens)
        return encoder.encode_into(
            self._repaired(text, errors), encoder.finder(allowed_special), frame, out
        )

    def encode_batch(
        self,
        texts: Iterable[Document],
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[list[int]]:
        """What `encode` gives for each text, or `encode_bytes` where it is bytes; an error names
        the index of the text.

        threads: how many may work, without the GIL; by default as many as there are cores, and 1
            is none but the caller's. Ids do not depend on it.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.encode_batch(["low", b"slow"])
        [[257], [115, 257]]
        """
        encoder = self._encoder
        finder = encoder.finder(allowed_special)
        frame = self._frame(bos, eos, add_special_tokens)
        workers = arguments.threads(threads)
        return encoder.encode_batch(self._batch(texts, errors), finder, frame, workers)

    def encode_batch_arrays(
        self,
        texts: Iterable[Document],
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
        dtype: Any = "uint32",
        threads: int | None = None,
    ) -> Arrays:
        """The same as arrays: the ids of all texts, one after another, and `uint64` offsets, of
        which text i has those from offsets[i] to offsets[i + 1].

        dtype: "uint32", or "uint16" for a vocabulary whose highest id is at most 65535.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> ids, offsets = tokenizer.encode_batch_arrays(["low", "slow"], dtype="uint16")
        >>> ids.tolist(), offsets.tolist()
        ([257, 115, 257], [0, 1, 3])
        """
        encoder = self._encoder
        finder = encoder.finder(allowed_special)
        frame = self._frame(bos, eos, add_special_tokens)
        id_dtype = id_type(dtype, self._vocabulary)
        workers = arguments.threads(threads)
        return encoder.encode_batch_arrays(
            self._batch(texts, errors), finder, frame, id_dtype, workers
        )

    def encode_file(
        self,
        file: reading.Source,
        *,
        documents: str | bytes = reading.WHOLE,
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
        dtype: Any = "uint32",
        threads: int | None = None,
        block_bytes: int = reading.BLOCK_BYTES,
    ) -> Iterator[Arrays]:
        """The ids of a file of any size, in blocks of ids and offsets.

        file: a path, or a file that is open for reading bytes, such as a pipe or what
            `gzip.open` gives.
        documents: "whole" if the file is one document, "line" if each line is one, or what stands
            between two of them. Line ends and separators belong to none. Each document is
            encoded as by `encode_bytes`, with its own BOS and EOS.
        block_bytes: about how much is read at a time. Memory is a few times that, whatever the
            file's size.

        In each block document i has the ids from offsets[i] to offsets[i + 1]. A document that is
        larger than a block goes on in the next one: ids before offsets[0] belong to the last
        document before. All together they are those of the whole document.

        ValueError for a document of more than 2**30 bytes that cannot be cut: with the patterns
        that have names it can be, where a word ends. OSError if the file changes meanwhile: it is
        read, not mapped, for a mapped file that another process shortens ends this one.

        >>> import io
        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> file = io.BytesIO(b"low\\nslow\\n")
        >>> for ids, offsets in tokenizer.encode_file(file, documents="line"):
        ...     print(ids.tolist(), offsets.tolist())
        [257, 115, 257] [0, 1, 3]
        """
        return blocks.encoded(
            file,
            self._encoding(
                documents=documents,
                allowed_special=allowed_special,
                bos=bos,
                eos=eos,
                add_special_tokens=add_special_tokens,
                dtype=dtype,
                threads=threads,
                block_bytes=block_bytes,
            ),
        )

    def _encoding(
        self,
        *,
        documents: str | bytes = reading.WHOLE,
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
        dtype: Any = "uint32",
        threads: int | None = None,
        block_bytes: int = reading.BLOCK_BYTES,
    ) -> blocks.Encoding:
        """How files and corpora are encoded."""
        encoder = self._encoder
        vocabulary = self._vocabulary
        tokens = arguments.special_choice(allowed_special, vocabulary.special_tokens)
        return blocks.Encoding(
            blocks.plan(documents, block_bytes, vocabulary, tokens),
            encoder,
            encoder.finder(allowed_special),
            self._frame(bos, eos, add_special_tokens),
            id_type(dtype, vocabulary),
            arguments.threads(threads),
        )

    def encode_corpus(
        self,
        corpus: Corpus,
        *,
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
        threads: int | None = None,
        progress: Progress = False,
    ) -> EncodedCorpus:
        """The ids of a corpus, each document encoded as by `encode_bytes`, with its role and an
        identity; see `EncodedCorpus`. They are in memory, `uint16` if the vocabulary fits.

        progress: True for a bar on a terminal, or a function that is called with the bytes done
            and those of the corpus, None for these where they are not known.

        ValueError, naming the document, for a validation or test corpus that holds a document
        that the tokenizer was fitted on, byte for byte: one that says the same in other words is
        not seen. Where the hashes of these are not known, since there were more than 100,000, the
        check cannot be made: a warning says so, and `checked` of the result is False; of imported
        vocabularies they never are. ValueError,
        naming the document, for one that cannot be encoded.

        >>> from tokbpe import Corpus, Tokenizer
        >>> tokenizer = Tokenizer(Corpus(["low lower lowest"]), method="bpe", vocabulary_size=258)
        >>> encoded = tokenizer.encode_corpus(Corpus(["slow", "low"], role="validation"))
        >>> encoded.tokens.tolist(), encoded.offsets.tolist(), encoded.role
        ([115, 257, 257], [0, 2, 3], 'validation')
        """
        if not isinstance(corpus, Corpus):
            raise TypeError(f"encode_corpus takes a Corpus, not {arguments.type_name(corpus)}")
        tokens = arguments.special_choice(allowed_special, self._vocabulary.special_tokens)
        encoding = self._encoding(
            allowed_special=allowed_special,
            bos=bos,
            eos=eos,
            add_special_tokens=add_special_tokens,
            dtype=smallest_type(self._vocabulary),
            threads=threads,
        )
        options = encoded.options(tokens, bos, eos, add_special_tokens)
        return encoded.encoded(corpus, encoding, options, progress)

    def encode_with_offsets(
        self,
        text: str,
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
    ) -> Encoded:
        """The ids of a text, as `encode` gives them, with the bytes and the characters that each
        of them stands for; see `Encoded`.

        What is put before or behind a text, or in front of a word, has an empty span. White
        space between words belongs to no token of the method "word". Tokens of characters that a
        normalizer changes together have the span of all of these.

        ValueError, naming the place, for a text of which a pattern drops something.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> encoded = tokenizer.encode_with_offsets("ö low")
        >>> encoded.ids
        [195, 182, 32, 257]
        >>> encoded.byte_spans.tolist(), encoded.character_spans.tolist()
        ([[0, 1], [1, 2], [2, 3], [3, 6]], [[0, 1], [0, 1], [1, 2], [2, 5]])
        """
        data = arguments.document_bytes(self._checked_text(text, errors))
        frame = self._frame(bos, eos, add_special_tokens)
        ids, spans = self._locator.spans(data, self._encoder.finder(allowed_special), frame)
        return Encoded(ids, spans, character_spans(data, spans))

    def encode_bytes_with_offsets(
        self,
        data: Buffer,
        *,
        allowed_special: Collection[str] | str = (),
        bos: bool = False,
        eos: bool = False,
        add_special_tokens: bool = False,
    ) -> EncodedBytes:
        """The same for arbitrary bytes, which may have no characters."""
        data = bytes(self._checked_bytes(data))
        frame = self._frame(bos, eos, add_special_tokens)
        ids, spans = self._locator.spans(data, self._encoder.finder(allowed_special), frame)
        return EncodedBytes(ids, spans)

    def _checked_text(self, text: str, errors: str = "strict") -> str:
        """A text to encode, without lone surrogates if these are to be replaced."""
        if not isinstance(text, str):
            raise TypeError(
                f"encode takes str, not {arguments.type_name(text)}; bytes go to encode_bytes"
            )
        return self._repaired(text, errors)

    def _repaired(self, text: Text, errors: str) -> Text:
        """A text, or bytes, without lone surrogates if these are to be replaced."""
        arguments.choice(errors, "errors", arguments.ERRORS)
        if errors == "replace" and isinstance(text, str):
            return LONE_SURROGATE.sub("\ufffd", text)
        return text

    def _batch(self, texts: Iterable[Document], errors: str) -> list[Document]:
        """Texts to encode, likewise."""
        arguments.choice(errors, "errors", arguments.ERRORS)
        documents = list(arguments.batch(texts, "text"))
        if errors == "strict":
            return documents
        return [self._repaired(document, errors) for document in documents]

    def _checked_bytes(self, data: Buffer) -> Buffer:
        if not isinstance(data, arguments.BUFFER_TYPES):
            raise TypeError(
                f"encode_bytes takes bytes, not {arguments.type_name(data)}; text goes to encode"
            )
        return data

    def _encode(self, text: Document, allowed_special: Collection[str] | str) -> list[int]:
        encoder = self._encoder
        return encoder.encode(text, encoder.finder(allowed_special))

    def _frame(self, bos: bool, eos: bool, imported: bool) -> tuple[list[int], list[int]]:
        """The ids before and behind a text."""
        vocabulary = self._vocabulary
        before, behind = vocabulary.frame if imported else ((), ())
        return (
            [vocabulary.reserved_id("BOS"), *before] if bos else [*before],
            [*behind, vocabulary.reserved_id("EOS")] if eos else [*behind],
        )

    @cached_property
    def _encoder(self) -> DocumentEncoder:
        encoder = DocumentEncoder(self._vocabulary, self._engine)
        encoder.limit_cache(self._cache_bytes)
        self._short_cut = encoder.short_cut()
        if self._known is None:  # another thread has closed meanwhile
            self._short_cut = None
        return encoder

    # Memory

    @property
    def cache_bytes(self) -> int:
        """How many bytes the fast engine may keep, for all threads together, to encode faster
        what comes again: 64 MB, if nothing else is set; 0 for none. It changes no ids, and goes
        where the tokenizer is pickled to."""
        self._vocabulary  # noqa: B018  (an error if it is closed)
        return self._cache_bytes

    @cache_bytes.setter
    def cache_bytes(self, size: int) -> None:
        self._vocabulary  # noqa: B018  (an error if it is closed)
        self._cache_bytes = arguments.cache_bytes(size)
        if "_encoder" in self.__dict__:
            self._encoder.limit_cache(self._cache_bytes)

    @property
    def cache_used(self) -> int:
        """How many of these bytes are in use."""
        self._vocabulary  # noqa: B018  (an error if it is closed)
        return self._encoder.cache_used if "_encoder" in self.__dict__ else 0

    def clear_cache(self) -> None:
        """Give the memory of caches back; they fill again with what is encoded next."""
        self._vocabulary  # noqa: B018  (an error if it is closed)
        if "_encoder" in self.__dict__:
            self._encoder.clear_cache()

    @cached_property
    def _locator(self) -> Locator:
        return Locator(self._encoder, self._decoder.pieces, self._decoder.raw)

    def encode_chat(
        self, turns: Iterable[tuple[str, str]], *, bos: bool = False
    ) -> tuple[list[int], list[bool]]:
        """The ids of a conversation, and which of them a model is trained on.

        turns: pairs of a role and a text. A role in capitals is the name of a reserved id
            ("USER", "ASSISTANT", "SYSTEM"). What is spelled in a text stays text.

        Each turn is the id of its role, its text and EOS; BOS comes first if `bos`. The mask is
        true for the text of "assistant" turns and for the EOS behind it.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer.from_bytes(reserved=("EOS", "USER", "ASSISTANT"))
        >>> tokenizer.encode_chat([("user", "?"), ("assistant", "!")])
        ([257, 63, 256, 258, 33, 256], [False, False, False, False, True, True])
        """
        reserved_id = self._vocabulary.reserved_id
        encoder = self._encoder
        nothing = encoder.finder(())
        return special.chat_layout(
            turns,
            lambda text: encoder.encode(text, nothing),
            reserved_id,
            [reserved_id("BOS")] if bos else [],
        )

    # Measuring

    def count(
        self,
        text: Document,
        limit: int | None = None,
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
    ) -> int:
        """How many ids a text has, or bytes, without making them.

        limit: when more are found, counting stops and the result is limit + 1.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.count("slow low"), tokenizer.count("slow low", limit=2)
        (4, 3)
        """
        encoder = self._encoder
        return encoder.count(self._repaired(text, errors), encoder.finder(allowed_special), limit)

    def count_batch(
        self,
        texts: Iterable[Document],
        *,
        errors: str = "strict",
        allowed_special: Collection[str] | str = (),
        threads: int | None = None,
    ) -> NDArray[np.uint64]:
        """What `count` gives for each text, `uint64` [texts]; an error names its index."""
        encoder = self._encoder
        finder = encoder.finder(allowed_special)
        workers = arguments.threads(threads)
        return encoder.count_batch(self._batch(texts, errors), finder, workers)

    def truncate(self, text: str, n: int, *, allowed_special: Collection[str] | str = ()) -> str:
        """A beginning of a text that encodes to at most n ids.

        It ends with a character, and with the last token that does among the first n. What a
        pattern makes of it, now that nothing follows, may be more tokens: then it is cut again.
        """
        return self._locator.truncated(
            self._checked_text(text), n, self._encoder.finder(allowed_special)
        )

    def split_at(
        self, text: str, n: int, *, allowed_special: Collection[str] | str = ()
    ) -> tuple[str, str]:
        """What `truncate` gives, and the rest of the text.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.split_at("slow low", 2)
        ('slow', ' low')
        """
        head = self.truncate(text, n, allowed_special=allowed_special)
        return head, text[len(head) :]

    def usage(self, corpus: Documents, *, allowed_special: Collection[str] | str = ()) -> Usage:
        """How often each id occurs in a corpus, and which pieces never do; see `Usage`.

        corpus: a `str` or bytes, which is one document, or an iterable of documents, of which one
            at a time is in memory.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> usage = tokenizer.usage(["slow", "low"])
        >>> usage.tokens, usage.bytes, usage.counts[256:].tolist(), usage.unused[-1]
        (3, 7, [0, 2], 256)
        """
        encoder = self._encoder
        finder = encoder.finder(allowed_special)
        return tally.usage(
            corpus, lambda document: encoder.encode(document, finder), self._vocabulary
        )

    # Decoding

    def decode(
        self,
        ids: Iterable[int],
        errors: str = "strict",
        skip_special: bool = False,
        *,
        max_bytes: int | None = None,
    ) -> str:
        """The text of ids: any iterable of whole numbers. A reserved id shows as `<|NAME|>`.

        errors: bytes that are no UTF-8 are a UnicodeDecodeError ("strict"), or U+FFFD
            ("replace").
        skip_special: leaves reserved ids and special tokens out.
        max_bytes: how many bytes the ids may stand for; a ValueError names this bound and the id
            that passes it, before anything is decoded. None: any number.

        TypeError or ValueError, naming id and position, for what is no id; with the methods
        "char" and "word" a whole number that is none reads as `<UNK>`.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer.from_bytes(reserved=["EOS"])
        >>> tokenizer.decode([104, 105, 256]), tokenizer.decode([104, 105, 256], skip_special=True)
        ('hi<|EOS|>', 'hi')
        >>> tokenizer.decode([240, 159], errors="replace")
        '�'
        """
        arguments.choice(errors, "errors", arguments.ERRORS)
        return self._decoder.decode(ids, skip_special, True, max_bytes).decode("utf-8", errors)

    def decode_bytes(
        self, ids: Iterable[int], skip_special: bool = False, *, max_bytes: int | None = None
    ) -> bytes:
        """The bytes of ids: any iterable of whole numbers. Reserved ids are left out. `max_bytes`
        is that of `decode`."""
        return self._decoder.decode(ids, skip_special, False, max_bytes)

    def decode_batch(
        self,
        batch: Iterable[Iterable[int]],
        errors: str = "strict",
        skip_special: bool = False,
        *,
        max_bytes: int | None = None,
    ) -> list[str]:
        """What `decode` gives for each row of ids; an error names the index of the row."""
        arguments.choice(errors, "errors", arguments.ERRORS)
        self._vocabulary  # noqa: B018  (an error if it is closed)
        return arguments.each(
            lambda ids: self.decode(ids, errors, skip_special, max_bytes=max_bytes),
            map(arguments.Watched.of, arguments.batch(batch, "row")),
            "row",
        )

    def id_to_piece(self, id: int) -> bytes:
        """The bytes of an id: a special token's spelling, b"" for a reserved id. Errors as in
        `decode`."""
        return self._decoder.piece(id, 0)

    def token_to_id(self, piece: bytes | str) -> int:
        """The id of a piece: its bytes, or the text whose UTF-8 they are.

        A special or added token is found by its spelling, before a piece that has the same. With
        the method "word" a piece that ends a word has a space behind it.

        KeyError, naming it, for what is no piece; a reserved id has none.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.token_to_id("low"), tokenizer.id_to_piece(257)
        (257, b'low')
        """
        if not isinstance(piece, (bytes, str)):
            raise TypeError(f"a piece is bytes or str, not {arguments.type_name(piece)}")
        data = piece.encode("utf-8") if isinstance(piece, str) else piece
        ids = self._decoder.ids
        if data not in ids:
            raise KeyError(f"{piece!r} is no piece of the vocabulary")
        return ids[data]

    @cached_property
    def _decoder(self) -> DocumentDecoder:
        return DocumentDecoder(self._vocabulary, self._engine)

    # For compiled callers: `tokbpe.fast` looks for these two.

    def _native_tables(self, allowed_special: Collection[str] | str) -> tuple[Any, Any]:
        return native.tables(self._encoder, allowed_special)

    def _native_parts(self, allowed_special: Collection[str] | str) -> native.Parts:
        return native.parts(self._encoder, self._decoder, allowed_special)

    # Other tokenizers from this one

    def truncated(self, vocabulary_size: int) -> "Tokenizer":
        """The tokenizer that training to a smaller size gives: a prefix of the merges.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.truncated(257).vocabulary[256:]
        (b'lo',)
        """
        return self._like(continuing.truncated(self._vocabulary, vocabulary_size))

    def extended(
        self,
        corpus: Documents,
        vocabulary_size: int,
        *,
        minimum_pair_frequency: int | None = None,
        progress: Progress = False,
        threads: int | None = None,
        on_interrupt: str = "raise",
        max_pair_types: int | None = None,
        max_merge_work: int | None = None,
    ) -> "Tokenizer":
        """A tokenizer with all these ids, and more merges learned on another corpus.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> tokenizer.extended("lower lower", 259).vocabulary[256:]
        (b'lo', b'low', b'er')
        """
        known = self._vocabulary
        options = Options(
            vocabulary_size=vocabulary_size,
            minimum_pair_frequency=minimum_pair_frequency,
            engine=self._engine_name,
            progress=progress,
            threads=threads,
            on_interrupt=on_interrupt,
            max_pair_types=max_pair_types,
            max_merge_work=max_merge_work,
        )
        vocabulary = continuing.extended(known, corpus, options)
        return methods.finish(lambda: self._like(vocabulary), on_interrupt)

    def _like(self, vocabulary: Vocabulary) -> "Tokenizer":
        """The tokenizer of another vocabulary, with this one's engine and limit."""
        tokenizer = self.from_vocabulary(vocabulary, self._engine_name)
        tokenizer._cache_bytes = self._cache_bytes
        return tokenizer

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
        """The tokenizer as plain data, which JSON and any checkpoint can hold.

        >>> from tokbpe import Tokenizer
        >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
        >>> import json
        >>> Tokenizer.from_state(json.loads(json.dumps(tokenizer.state()))) == tokenizer
        True
        """
        return states.plain(self._vocabulary)

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], engine: str | None = None, trust_pattern: bool = False
    ) -> "Tokenizer":
        """The tokenizer of such data. ValueError for data that are damaged or of a newer
        version, and for a pattern as in `load`."""
        return cls.from_vocabulary(states.vocabulary(state, trust_pattern), engine)

    def __reduce__(self) -> tuple[Any, ...]:
        # Attributes of the tokenizer that is made stand behind what makes it.
        kept = {"_cache_bytes": self._cache_bytes}
        return type(self).from_state, (self.state(), self._engine_name, True), kept
