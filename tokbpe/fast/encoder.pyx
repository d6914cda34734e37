"""`Encoder`: encoding for loaders, with nothing around the compiled engine."""

cimport cython

from tokbpe import arguments

from .encode cimport encode_text
from .seeds cimport set_seeds
from .special cimport SpecialTable, as_special_table
from .table cimport EncodingTable

from .batch import count_batch, encode_array, encode_batch, encode_batch_arrays, encode_into
from .encode import count

set_seeds()


@cython.final
cdef class Encoder:
    """The shortest way from text to ids: for loaders, and for many short texts.

    tokenizer: a `Tokenizer` of the engine "fast", or a table that `encoding_table` gives.
    special: the special tokens that a text may hold. Of a tokenizer a set of their spellings, or
        "all"; of a table a mapping from spellings, as bytes, to ids, or what `special_table`
        gives. None: the spelling of each is plain text.

    A text is a `str` or bytes-like: bytes, bytearray, memoryview or mmap. Bytes need not be
    UTF-8; what is none is cut off from what is. A lone surrogate is a UnicodeEncodeError, a byte
    that the vocabulary lacks a ValueError that names it and its position.

    ValueError, naming it, for a tokenizer that the engine would have to be helped with: with a
    normalizer, say, or with a method that has an encoder of its own.

    Threads may share an encoder. It works on after a fork, in both processes, and can be pickled
    if it was made from a tokenizer. It keeps its table, also when the tokenizer is closed.

    >>> import numpy as np
    >>> from tokbpe import Tokenizer, fast
    >>> tokenizer = Tokenizer("low lower lowest", method="bpe", vocabulary_size=258)
    >>> encoder, out = fast.Encoder(tokenizer), np.zeros(4, np.uint16)
    >>> encoder.encode("slow"), encoder.encode_into(b"low", out), out.tolist()
    ([115, 257], 1, [257, 0, 0, 0])
    """

    cdef readonly EncodingTable table
    cdef readonly SpecialTable special
    cdef tuple origin  # what it is made of again, if that can be done

    def __cinit__(self, tokenizer, special=None):
        if isinstance(tokenizer, EncodingTable):
            self.table = tokenizer
            self.special = as_special_table(special)
            return
        if not hasattr(tokenizer, "_native_tables"):
            raise TypeError(
                "an encoder is made from a Tokenizer or an encoding table, not "
                f"{arguments.type_name(tokenizer)}"
            )
        self.table, self.special = tokenizer._native_tables(() if special is None else special)
        self.origin = tokenizer, special

    def __reduce__(self):
        if self.origin is None:
            raise TypeError("an encoder that was made from a table cannot be pickled")
        return Encoder, self.origin

    def encode(self, text, /):
        """The ids of a text, as a list."""
        return encode_text(text, self.table, self.special)

    def encode_array(self, text, *, threads=None):
        """The ids of a text as an array, `uint32` [n].

        threads: how many may work on a large text; None for as many as there are processors.
        """
        return encode_array(text, self.table, self.special, threads=threads)

    def encode_into(self, text, out):
        """Write the ids of a text to the beginning of `out`; how many there are.

        out: a contiguous, writable buffer of `uint32` or `uint16` in one dimension. ValueError,
            naming both sizes, if it is too small, and for an id that is too large for it.
        """
        return encode_into(text, self.table, out, self.special)

    def encode_batch(self, texts, *, before=(), behind=(), threads=None):
        """The ids of each text, as lists; `before` and `behind` are put around each. An error
        names the index of the text."""
        return encode_batch(
            texts, self.table, self.special, before=before, behind=behind, threads=threads
        )

    def encode_batch_arrays(
        self, texts, dtype="uint32", threads=None, *, before=(), behind=()
    ):
        """The ids of all texts in one array [total], and offsets, `uint64` [texts + 1]: text i
        has those from offsets[i] to offsets[i + 1].

        dtype: "uint32" or "uint16"; ValueError, naming it, for an id too large for the latter.
        """
        return encode_batch_arrays(
            texts,
            self.table,
            self.special,
            before=before,
            behind=behind,
            dtype=dtype,
            threads=threads,
        )

    def count(self, text, limit=None):
        """How many ids a text has. Beyond a limit counting ends and gives one more than it."""
        return count(text, self.table, self.special, limit)

    def count_batch(self, texts, *, threads=None):
        """How many ids each text has, `uint64` [texts]."""
        return count_batch(texts, self.table, self.special, threads=threads)

    def clear_cache(self):
        """Free the memory of encodings, but of those that are going on. Others who encode by the
        same table share it."""
        self.table.clear_cache()

    def memory(self):
        """How many bytes that is."""
        return self.table.memory()
