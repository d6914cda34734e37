"""Decoding ids one at a time, into text as soon as whole characters stand."""

import codecs
import operator
from collections.abc import Iterable, Iterator

from tokbpe import arguments
from tokbpe.symbols import MARKER
from tokbpe.tokenizer import Tokenizer

# How surrogates would begin, which have no UTF-8: Python would wait for their third byte.
SURROGATES = tuple(bytes([0xED, byte]) for byte in range(0xA0, 0xC0))


class StreamDecoder:
    """Decodes a stream of ids, such as a model yields.

    errors: bytes that are no UTF-8 are U+FFFD ("replace"), or a UnicodeDecodeError as soon as
        that is certain ("strict").
    skip_special: leaves reserved ids and special tokens out.

    The texts of a stream joined are what `tokenizer.decode` gives for all of its ids: so the
    white space behind a word, with the method "word", is held back until more follows. However
    long a stream is, only some bytes are kept.

    A decoder is for one stream at a time, and not for several threads.

    >>> from tokbpe import StreamDecoder, Tokenizer
    >>> decoder = StreamDecoder(Tokenizer.from_bytes())
    >>> [decoder.put(id) for id in [104, 195, 164, 33, 195]], decoder.finish()
    (['h', '', 'ä', '!', ''], '�')
    """

    def __init__(
        self, tokenizer: Tokenizer, errors: str = "replace", skip_special: bool = False
    ) -> None:
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(
                f"a stream is decoded by a Tokenizer, not {arguments.type_name(tokenizer)}"
            )
        arguments.choice(errors, "errors", arguments.ERRORS)
        tokenizer._vocabulary  # noqa: B018  (an error if it is closed)
        self._tokenizer = tokenizer
        self._skip_special = bool(skip_special)
        self._characters = codecs.getincrementaldecoder("utf-8")(errors)
        self._start()

    def _start(self) -> None:
        self._characters.reset()
        self._held = b""  # a marker that ends the word before
        self._position = 0

    def put(self, id: int) -> str:
        """The characters that are complete with the next id, if there are any.

        TypeError or ValueError, naming id and position in the stream, for what is no id;
        UnicodeDecodeError for bytes that are no UTF-8 if `errors` is "strict". Then the stream
        is as before the call.
        """
        piece, marked = self._read(id)
        data = self._held + piece
        held = MARKER if marked and data.endswith(MARKER) else b""
        try:
            text = self._decode(data.removesuffix(held))
        except UnicodeDecodeError as error:
            error.reason += f" (id {id} at position {self._position} of the stream)"
            raise
        self._held = held
        self._position += 1
        return text

    def _read(self, id: int) -> tuple[bytes, bool]:
        """The bytes of an id, and whether a space at their end is the marker of a word."""
        vocabulary = self._tokenizer._vocabulary
        decoder = self._tokenizer._decoder
        piece = decoder.piece(id, self._position)
        number = operator.index(id)
        shown = decoder.instead[self._skip_special].get(number, piece)
        if vocabulary.unit != "word":
            return shown, False
        return shown, self._skip_special or number not in vocabulary.special_tokens.values()

    def _decode(self, data: bytes) -> str:
        """The characters that are complete with these bytes."""
        before = self._characters.getstate()
        try:
            text = self._characters.decode(data)
            waiting, _ = self._characters.getstate()
            if waiting.startswith(SURROGATES):
                text += self._characters.decode(b"", final=True)
        except UnicodeDecodeError:
            self._characters.setstate(before)
            raise
        return text

    def finish(self) -> str:
        """What is left at the end of a stream: U+FFFD for a character that was cut, or, if
        `errors` is "strict", a UnicodeDecodeError. Then the next stream begins."""
        try:
            return self._characters.decode(b"", final=True)
        except UnicodeDecodeError as error:
            error.reason += f" (the stream ends behind position {self._position - 1})"
            raise
        finally:
            self._start()


def decode_stream(
    tokenizer: Tokenizer,
    ids: Iterable[int],
    errors: str = "replace",
    skip_special: bool = False,
) -> Iterator[str]:
    """The texts of a stream of ids, each as soon as it stands; none of them is empty.

    >>> from tokbpe import Tokenizer, decode_stream
    >>> list(decode_stream(Tokenizer.from_bytes(), [104, 195, 164, 33]))
    ['h', 'ä', '!']
    """
    decoder = StreamDecoder(tokenizer, errors, skip_special)
    for id in arguments.ids(ids):
        if text := decoder.put(id):
            yield text
    if text := decoder.finish():
        yield text
