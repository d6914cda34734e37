"""What a caller's iterators and functions do: what they raise comes out as it is, wherever they
raise it; no thread is left, nothing half done; and they may use the very object that calls them."""

import io
import os

import pytest

from engine_threads import begun, none_left, small_work
from tokbpe import (
    Corpus,
    PieceCounts,
    Shards,
    StreamedCorpus,
    Tokenizer,
    count_work,
    decode_stream,
    fast,
    metrics,
    record,
    write_shards,
)

TEXTS = [f"low lower lowest {number} newest widest\n" * 9 for number in range(7)]
OPTIONS = {"method": "bpe", "vocabulary_size": 270, "pattern": "gpt2"}
BYTES = [bytes([byte]) for byte in range(256)]
ERRORS = [
    KeyError("mine"),
    ValueError("mine"),
    TypeError("mine"),
    UnicodeDecodeError("utf-8", b"mine", 0, 1, "mine"),
    OSError(5, "mine"),
    MemoryError("mine"),
    RuntimeError("mine"),
    KeyboardInterrupt("mine"),
    GeneratorExit("mine"),
    SystemExit("mine"),
]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    with none_left():
        yield


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(Corpus(TEXTS), **OPTIONS, reserved=["BOS", "EOS", "USER"])


class Raising:
    """An iterable, which may be asked again: the items, and an error in the place of one."""

    def __init__(self, items, place, error):
        self.items = items
        self.place = place
        self.error = error

    def __iter__(self):
        for place, item in enumerate(self.items):
            if place == self.place:
                raise self.error
            yield item
        if self.place == len(self.items):
            raise self.error


class RaisingFile(io.RawIOBase):
    """A file that gives a block at a time, and an error in the place of one."""

    def __init__(self, blocks):
        self.blocks = iter(blocks)

    def readable(self):
        return True

    def readinto(self, buffer):
        data = next(self.blocks, "").encode()
        buffer[: len(data)] = data
        return len(data)


IDS = [[108, 111, 119], [97], [], [98, 99], [100]]
# Calls with an iterable, and what it gives. The folder is for what is written.
CALLS = {
    "train": (lambda t, f, items: Tokenizer(items, **OPTIONS), TEXTS),
    "train_byte": (lambda t, f, items: Tokenizer(items), TEXTS),
    "train_char": (lambda t, f, items: Tokenizer(items, method="char"), TEXTS),
    "train_word": (lambda t, f, items: Tokenizer(items, method="word", vocabulary_size=40), TEXTS),
    "train_reference": (lambda t, f, items: Tokenizer(items, **OPTIONS, engine="reference"), TEXTS),
    "train_one_thread": (lambda t, f, items: Tokenizer(items, **OPTIONS, threads=1), TEXTS),
    "train_kept": (
        lambda t, f, items: Tokenizer(items, **OPTIONS, on_interrupt="keep"),
        TEXTS,
    ),
    "train_steps": (lambda t, f, items: [*Tokenizer.train_steps(items)], TEXTS),
    "extended": (lambda t, f, items: t.extended(items, 280), TEXTS),
    "counts": (lambda t, f, items: PieceCounts(items, pattern="cl100k"), TEXTS),
    "corpus": (lambda t, f, items: Corpus(items), TEXTS),
    "streamed_corpus": (lambda t, f, items: len(StreamedCorpus(items)), TEXTS),
    "train_streamed": (lambda t, f, items: Tokenizer(StreamedCorpus(items), **OPTIONS), TEXTS),
    "encode_corpus": (lambda t, f, items: t.encode_corpus(StreamedCorpus(items)), TEXTS),
    "shards": (lambda t, f, items: write_shards(StreamedCorpus(items), t, f / "new"), TEXTS),
    "shards_one_thread": (
        lambda t, f, items: write_shards(StreamedCorpus(items), t, f / "new", threads=1),
        TEXTS,
    ),
    "encode_batch": (lambda t, f, items: t.encode_batch(items), TEXTS),
    "encode_batch_arrays": (lambda t, f, items: t.encode_batch_arrays(items), TEXTS),
    "count_batch": (lambda t, f, items: t.count_batch(items), TEXTS),
    "encoder_batch": (lambda t, f, items: fast.Encoder(t).encode_batch(items), TEXTS),
    "usage": (lambda t, f, items: t.usage(items), TEXTS),
    "metrics": (lambda t, f, items: metrics.measure(t, items), TEXTS),
    "chat": (lambda t, f, items: t.encode_chat(items), [("user", text) for text in TEXTS]),
    "encode_file": (lambda t, f, items: [*t.encode_file(RaisingFile(items))], TEXTS),
    "count_file": (lambda t, f, items: PieceCounts.from_files(RaisingFile(items)), TEXTS),
    "decode": (lambda t, f, items: t.decode(items), [*b"lowest"]),
    "decode_bytes": (lambda t, f, items: t.decode_bytes(items), [*b"lowest"]),
    "decode_bounded": (lambda t, f, items: t.decode(items, max_bytes=99), [*b"lowest"]),
    "decode_batch": (lambda t, f, items: t.decode_batch(items), IDS),
    "decode_batch_row": (lambda t, f, items: t.decode_batch([[97], items]), [*b"lowest"]),
    "decode_stream": (lambda t, f, items: [*decode_stream(t, items)], [*b"lowest"]),
    "engine_count": (lambda t, f, items: fast.count_pieces(items, "gpt2"), TEXTS),
    "engine_train": (lambda t, f, items: fast.train(items, None, BYTES, 9), IDS),
    "engine_train_row": (lambda t, f, items: fast.train([b"ab", items], None, BYTES, 9), [1, 2, 3]),
    "engine_weights": (lambda t, f, items: fast.train(IDS, items, BYTES, 9), [1, 2, 3, 4, 5]),
    "engine_steps": (lambda t, f, items: [*fast.train_steps(items, None, BYTES, 9)], IDS),
    "engine_pairs": (lambda t, f, items: fast.count_pairs(items, [1] * 5), IDS),
    "engine_decode": (lambda t, f, items: fast.decode(items, fast.decoding_table(BYTES)), [1, 2]),
    "engine_table": (
        lambda t, f, items: fast.encoding_table(BYTES, items),
        [(97, 98), (98, 99), (99, 100)],
    ),
    "engine_decoding_table": (lambda t, f, items: fast.decoding_table(items), BYTES[:9]),
}
# Calls with a function that is told of the progress.
PROGRESS = {
    "train": lambda t, f, told: Tokenizer(TEXTS, **OPTIONS, progress=told),
    "train_byte": lambda t, f, told: Tokenizer(TEXTS, progress=told),
    "train_char": lambda t, f, told: Tokenizer(TEXTS, method="char", progress=told),
    "train_reference": lambda t, f, told: Tokenizer(
        TEXTS, **OPTIONS, engine="reference", progress=told
    ),
    "from_counts": lambda t, f, told: Tokenizer.from_counts(
        PieceCounts(TEXTS, pattern="gpt2"), vocabulary_size=270, progress=told
    ),
    "extended": lambda t, f, told: t.extended(TEXTS, 280, progress=told),
    "counts": lambda t, f, told: PieceCounts(TEXTS, pattern="gpt2", progress=told),
    "count_files": lambda t, f, told: PieceCounts.from_files([f / "text"], progress=told),
    "encode_corpus": lambda t, f, told: t.encode_corpus(Corpus(TEXTS), progress=told),
    "shards": lambda t, f, told: write_shards(f / "text", t, f / "new", progress=told),
    "shards_of_a_corpus": lambda t, f, told: write_shards(
        Corpus(TEXTS), t, f / "new", progress=told
    ),
    "verify": lambda t, f, told: Shards(f / "shards").verify(progress=told),
}


@pytest.fixture
def folder(tmp_path, tokenizer):
    (tmp_path / "text").write_text("".join(TEXTS))
    write_shards(Corpus(TEXTS), tokenizer, tmp_path / "shards", shard_tokens=100)
    return tmp_path


def below(folder):
    return sorted(str(path) for path in folder.rglob("*"))


def check_unchanged(call, tokenizer, folder, error):
    """The call raises this very error, and leaves nothing."""
    before = below(folder), tokenizer.encode("slow newest")
    with pytest.raises(type(error)) as raised:
        call()
    assert raised.value is error
    assert (below(folder), tokenizer.encode("slow newest")) == before


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_an_iterable(name, tokenizer, folder):
    call, items = CALLS[name]
    call(tokenizer, folder / "..", Raising(items, None, None)) if "shards" not in name else None
    for error in ERRORS:
        for place in (0, 1, len(items) // 2, len(items) - 1, len(items)):
            raising = Raising(items, place, error)
            if name == "count_file" and isinstance(error, ValueError | OSError):
                continue  # these name the file
            check_unchanged(
                lambda raising=raising: call(tokenizer, folder, raising), tokenizer, folder, error
            )


@pytest.mark.parametrize(
    "call",
    [
        lambda t, f, items: Tokenizer(items, **OPTIONS, threads=3),
        lambda t, f, items: Tokenizer(items, method="bpe", vocabulary_size=270, threads=3),
        lambda t, f, items: t.extended(items, 280, threads=3),
        lambda t, f, items: PieceCounts(items, pattern="gpt2", threads=3),
        lambda t, f, items: t.encode_corpus(StreamedCorpus(items), threads=3),
        lambda t, f, items: write_shards(StreamedCorpus(items), t, f / "new", threads=3),
    ],
    ids=["train", "train_raw", "extended", "counts", "encode_corpus", "shards"],
)
@pytest.mark.parametrize("place", [8, 20])
def test_an_error_of_an_iterable_while_threads_work(place, call, tokenizer, folder, monkeypatch):
    monkeypatch.setattr(record, "HASHED_TOGETHER", 100)
    monkeypatch.setattr(count_work, "TASK_BYTES", 1000)
    error = KeyError("mine")
    raising = Raising(TEXTS * 3, place, error)
    with small_work(64, 16, 1000, 100), begun() as threads:
        check_unchanged(lambda: call(tokenizer, folder, raising), tokenizer, folder, error)
    assert threads


@pytest.mark.parametrize("name", PROGRESS)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_an_error_of_a_progress_function(name, place, tokenizer, folder):
    call = PROGRESS[name]
    told = []
    call(tokenizer, folder, lambda *all: told.append(all))
    assert told
    if (folder / "new").exists():
        os.rename(folder / "new", folder / "whole")
    wanted = {"first": 0, "middle": len(told) // 2, "last": len(told) - 1}[place]
    for error in ERRORS:
        calls = iter(range(len(told) + 9))

        def tell(done, total, calls=calls, error=error):
            if next(calls) == wanted:
                raise error

        check_unchanged(lambda tell=tell: call(tokenizer, folder, tell), tokenizer, folder, error)


@pytest.mark.parametrize("name", CALLS)
def test_an_iterable_that_uses_the_tokenizer(name, tokenizer, folder):
    """While it is asked for the next item; other trainings may go on then, too."""
    call, items = CALLS[name]
    tokenizer = Tokenizer.from_state(tokenizer.state())
    expected = [tokenizer.encode(text) for text in TEXTS]

    def using():
        for item in items:
            assert tokenizer.encode_batch(TEXTS) == expected
            assert tokenizer.decode(expected[0]) == TEXTS[0]
            tokenizer.clear_cache()
            assert Tokenizer(TEXTS, **OPTIONS).merges.tolist()
            yield item

    class Items:
        def __iter__(self):
            return using()

    alone = call(tokenizer, folder, Raising(items, None, None))
    if (folder / "new").exists():
        os.rename(folder / "new", folder / "alone")
    found = call(tokenizer, folder, Items())
    assert type(found) is type(alone)
    comparable = isinstance(found, list | str | bytes | Tokenizer | PieceCounts)
    if comparable and name != "encode_file":  # which gives arrays
        assert found == alone


@pytest.mark.parametrize("name", CALLS)
def test_an_iterable_that_closes_the_tokenizer(name, tokenizer, folder):
    """What runs comes to its end, or says that the tokenizer is closed."""
    call, items = CALLS[name]
    tokenizer = Tokenizer.from_state(tokenizer.state())

    class Items:
        def __iter__(self):
            for item in items:
                tokenizer.close()
                yield item

    try:
        call(tokenizer, folder, Items())
    except ValueError as error:
        assert "this tokenizer is closed" in str(error)
    with pytest.raises(ValueError, match="this tokenizer is closed"):
        tokenizer.encode("low")


def test_stop_iteration_in_a_generator(tokenizer):
    """Python makes an error of it, so that it does not look like the end."""

    def stopping():
        yield TEXTS[0]
        raise StopIteration

    for call in (Tokenizer, PieceCounts, Corpus, tokenizer.encode_batch, tokenizer.usage):
        with pytest.raises(RuntimeError, match="generator raised StopIteration"):
            call(stopping())
