"""An object with the methods of `tiktoken.Encoding`, for code that was written for tiktoken.

    enc = as_tiktoken(Tokenizer.load("my.tokbpe"))  # instead of tiktoken.get_encoding("...")

Names, arguments, results and the types of exceptions are those of tiktoken 0.14. Other than there:

- `encode_with_unstable` is a NotImplementedError.
- Of special tokens that begin at the same place the longest is found.
- Tokens may come in any iterable. A token that does not exist is a KeyError that says where it
  stood.
- Added tokens that are not special always match, as the tokenizer has it, and are no special
  tokens. Reserved ids are special and decode to nothing.
"""

import operator
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tokbpe import arguments
from tokbpe.arguments import LARGEST_VOCABULARY, Item, Result
from tokbpe.cached import cached_property
from tokbpe.offsets import character_spans, end_to_end
from tokbpe.threads import run_all
from tokbpe.tokenizer import Tokenizer

NONE: AbstractSet[str] = frozenset()
# So many runs of a batch for each thread: single items would cost more than they take to encode.
RUNS = 8


def as_tiktoken(tokenizer: Tokenizer, name: str | None = None) -> "Encoding":
    """A tokenizer as tiktoken would have it. TypeError or ValueError for what is no tokenizer of
    bytes.

    >>> from tokbpe import Tokenizer
    >>> from tokbpe.compat import as_tiktoken
    >>> as_tiktoken(Tokenizer.from_bytes(special_tokens=["<|end|>"])).encode(
    ...     "hi<|end|>", allowed_special="all")
    [104, 105, 256]
    """
    return Encoding(tokenizer, "tokbpe" if name is None else name)


class Encoding:
    """The methods of `tiktoken.Encoding` over a tokenizer of tokbpe; see `as_tiktoken`."""

    def __init__(self, tokenizer: Tokenizer, name: str) -> None:
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(f"as_tiktoken takes a Tokenizer, not {arguments.type_name(tokenizer)}")
        if tokenizer._vocabulary.unit != "byte":
            raise ValueError(
                f"tiktoken knows tokenizers of bytes alone, not the method {tokenizer.method!r}"
            )
        self.name = name
        self.tokenizer = tokenizer

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # Encoding

    def encode_ordinary(self, text: str) -> list[int]:
        """The tokens of a text, in which nothing is special."""
        return self._encode(text, NONE)

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """The tokens of a text.

        allowed_special: the special tokens that are looked for, a set or "all".
        disallowed_special: what must not stand in the text, else it is a ValueError: "all" for
            all special tokens that are not allowed; () for nothing, then it is plain text.
        """
        return self._encode(text, self._allowed(text, allowed_special, disallowed_special))

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> NDArray[np.uint32]:
        """The tokens of a text, `uint32` [n]. Any surrogate is a UnicodeEncodeError."""
        allowed = self._allowed(text, allowed_special, disallowed_special)
        return np.array(self.tokenizer.encode(text, allowed_special=allowed), np.uint32)

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """`encode_ordinary` of each text."""
        return in_threads(self.encode_ordinary, text, num_threads)

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: Literal["all"] | AbstractSet[str] = NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[list[int]]:
        """`encode` of each text."""

        def encode(one: str) -> list[int]:
            return self.encode(
                one, allowed_special=allowed_special, disallowed_special=disallowed_special
            )

        return in_threads(encode, text, num_threads)

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """NotImplementedError."""
        raise NotImplementedError("tokbpe does not tell which tokens the next text could change")

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The token of a piece, or of a special token; KeyError if there is none."""
        return self.tokenizer.token_to_id(text_or_bytes)

    def _encode(self, text: str, allowed: AbstractSet[str]) -> list[int]:
        try:
            return self.tokenizer.encode(text, allowed_special=allowed)
        except UnicodeEncodeError:
            repaired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return self.tokenizer.encode(repaired, allowed_special=allowed)

    def _allowed(
        self,
        text: str,
        allowed: Literal["all"] | AbstractSet[str],
        disallowed: Literal["all"] | Collection[str],
    ) -> AbstractSet[str]:
        """The special tokens to look for; ValueError if what is disallowed stands in the text."""
        known = self.special_tokens_set
        if isinstance(allowed, str) and allowed == "all":
            allowed = known
        if not isinstance(allowed, AbstractSet):
            raise TypeError(f'allowed_special must be a set or "all", not {allowed!r}')
        if isinstance(disallowed, str) and disallowed == "all":
            disallowed = known - allowed
        if disallowed and (found := any_of(frozenset(disallowed)).search(text)):
            raise ValueError(
                f"Encountered text corresponding to disallowed special token {found.group()!r}.\n"
                f"allowed_special={{{found.group()!r}}} makes it that token; "
                "disallowed_special=() leaves it, and all others, plain text."
            )
        if not all(isinstance(spelling, str) for spelling in allowed):
            raise TypeError(f"allowed_special must hold texts alone, not {allowed!r}")
        return known & allowed

    # Decoding

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of tokens, joined."""
        known = tokens if isinstance(tokens, (list, tuple, np.ndarray)) else list(tokens)
        try:
            return self.tokenizer.decode_bytes(known)
        except (TypeError, ValueError):  # tiktoken takes more, and calls it by other names
            pass
        numbers = [token_number(token) for token in known]
        try:
            return self.tokenizer.decode_bytes(numbers)
        except ValueError as error:
            raise KeyError(f"Invalid token for decoding: {error}") from None

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """The text of tokens; `errors` is that of `bytes.decode`."""
        return self.decode_bytes(tokens).decode("utf-8", errors=errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of a token; KeyError if it does not exist."""
        try:
            return self.tokenizer.id_to_piece(token_number(token))
        except ValueError:
            raise KeyError(str(token)) from None

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """The bytes of each token."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """The text of tokens, and for each of them the index of the character that holds its
        first byte. UnicodeDecodeError if they are no UTF-8."""
        pieces = self.decode_tokens_bytes(tokens)
        data = b"".join(pieces)
        spans = end_to_end(np.array([len(piece) for piece in pieces], np.int64))
        return data.decode("utf-8"), character_spans(data, spans)[:, 0].tolist()

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """`decode` of each list of tokens."""
        return in_threads(lambda tokens: self.decode(tokens, errors), batch, num_threads)

    def decode_bytes_batch(
        self, batch: Sequence[Sequence[int]], *, num_threads: int = 8
    ) -> list[bytes]:
        """`decode_bytes` of each list of tokens."""
        return in_threads(self.decode_bytes, batch, num_threads)

    # What there is

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all tokens that are not special, sorted."""
        tokenizer = self.tokenizer
        return sorted(piece for id, piece in tokenizer.items() if id not in self._special_values)

    @property
    def eot_token(self) -> int:
        """The special token `<|endoftext|>`; KeyError if there is none."""
        return self.tokenizer.special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """The spellings of the special tokens."""
        return set(self.tokenizer.special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether a token is special. AssertionError for what is no `int`, as there."""
        if not isinstance(token, int):
            raise AssertionError(f"a token is an int, not {arguments.type_name(token)}")
        return token in self._special_values

    @cached_property
    def _special_values(self) -> set[int]:
        tokenizer = self.tokenizer
        return {*tokenizer.special_tokens.values(), *tokenizer.reserved.values()}

    @property
    def max_token_value(self) -> int:
        """The highest token."""
        return self.tokenizer.vocab_size - 1

    @property
    def n_vocab(self) -> int:
        """The highest token + 1."""
        return self.tokenizer.vocab_size


def token_number(token: Any) -> int:
    """A token as a number; OverflowError for one that no vocabulary has."""
    number = int(operator.index(token))
    if not 0 <= number <= LARGEST_VOCABULARY:
        raise OverflowError(f"a token is from 0 to {LARGEST_VOCABULARY}, not {number}")
    return number


@lru_cache(maxsize=64)
def any_of(spellings: frozenset[str]) -> re.Pattern[str]:
    """What finds any of some texts, the longest at the leftmost place."""
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], num_threads: int
) -> list[Result]:
    """What a function makes of each item, in their order; the first error in this order."""
    all_items = list(items)
    threads = arguments.whole_number(num_threads, "num_threads", 1, arguments.MOST_THREADS)
    size = max(1, len(all_items) // (RUNS * threads))
    starts = deque(range(0, len(all_items), size))
    done: dict[int, list[Result]] = {}
    failed: dict[int, Exception] = {}

    def work(_: int) -> None:
        while starts and not failed:
            try:
                start = starts.popleft()
            except IndexError:  # another thread has it
                return
            try:
                done[start] = [function(item) for item in all_items[start : start + size]]
            except Exception as error:
                failed[start] = error

    run_all(work, min(threads, len(starts)), starts.clear)
    if failed:
        raise failed[min(failed)]
    return [result for start in sorted(done) for result in done[start]]
