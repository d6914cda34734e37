"""A little of each part of the compiled engine, for `test_memcheck.py`: valgrind is slow."""

import sys

from tokbpe import PieceCounts, StreamDecoder, Tokenizer, fast
from tokbpe.fast import groups

TEXT = "Low lower lowest, the newest: it's 42 naïve\n\n  你好 🐈 <e> " * 40
LONG = "abcab" * 2000
OPTIONS = {"vocabulary_size": 290, "special_tokens": ["<e>"], "pattern": "cl100k"}


def main(example: str | None) -> None:
    groups.use_sizes(1000, 300)
    for tie_break in ("smallest", "first", "greatest"):
        Tokenizer(TEXT, method="bpe", tie_break=tie_break, **OPTIONS)
    for method in ("byte", "char", "word"):
        tokenizer = Tokenizer(TEXT, method=method)
        assert tokenizer.decode(tokenizer.encode(TEXT)).split() == TEXT.split()
    for pattern in ("gpt2", "o200k", "llama3", "deepseek_v3", None):
        tokenizer = Tokenizer(TEXT, method="bpe", vocabulary_size=290, pattern=pattern)
        encode_and_decode(tokenizer, [TEXT, LONG, "", "low"])
    tokenizer = Tokenizer(TEXT, method="bpe", **OPTIONS)
    encode_and_decode(tokenizer, [TEXT, LONG, "", "low"])
    stream(tokenizer)
    count()
    if example is not None:
        sys.path.insert(0, example)
        call_native(tokenizer)


def encode_and_decode(tokenizer: Tokenizer, texts: list[str]) -> None:
    rows = [tokenizer.encode(text) for text in texts]
    assert [tokenizer.decode(row) for row in rows] == texts
    for threads in (1, 2):
        ids, offsets = tokenizer.encode_batch_arrays(texts, threads=threads)
        assert ids.tolist() == sum(rows, [])
        assert offsets[-1] == len(ids)
        assert tokenizer.count_batch(texts, threads=threads).tolist() == [*map(len, rows)]
        assert tokenizer.encode_batch(texts, threads=threads) == rows
    tokenizer.clear_cache()


def stream(tokenizer: Tokenizer) -> None:
    decoder = StreamDecoder(tokenizer)
    ids = tokenizer.encode(TEXT, allowed_special="all")
    assert "".join(map(decoder.put, ids)) + decoder.finish() == TEXT
    assert fast.Encoder(tokenizer, "all").encode(TEXT.encode()) == ids


def count() -> None:
    for threads in (1, 2):
        counts = PieceCounts([TEXT] * 9 + [LONG], pattern="gpt2", threads=threads)
        assert (counts + counts).total() == 2 * counts.total()
        Tokenizer.from_counts(counts, vocabulary_size=280, threads=threads)


def call_native(tokenizer: Tokenizer) -> None:
    import native_calls

    handle = native_calls.open(tokenizer, None)
    data, ids = TEXT.encode(), tokenizer.encode_array(TEXT)
    assert native_calls.encode(handle, data, len(ids)) == (0, len(ids), ids.tobytes())
    assert native_calls.run_threads(handle, data, ids.tobytes(), data, 8, 5) == (40, 0)
    assert native_calls.close(handle) == 0


if __name__ == "__main__":
    main(*sys.argv[1:] or [None])
