"""Text, ids and shards beyond 4 GiB, where numbers of 32 bits end: what comes out, time and memory.

    python benchmarks/limits.py [--bytes N] [--folder FOLDER] [--json FILE]

Some text is repeated until there are N bytes (4.06 GiB), so what must come out is known from the
one text. Each step asserts that before its figures are printed: seconds by the clock, and the MB
(10**6 bytes) that the process has held at most. So are a vocabulary of 2**20 ids and a piece of
270 MB. It takes 9 GB of memory, and of the folder, a temporary one unless it is named, the text and
9 GB.
"""

import argparse
import hashlib
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from timing import clocked, forget_peak, machine, peak_megabytes

from tokbpe import PieceCounts, Shards, TokenDataset, Tokenizer, write_shards

BYTES = 2**32 + 2**26
TEXT_BYTES = 2**20
VOCABULARY_SIZE = 2**15
PATTERN = "cl100k"
# Behind all text: a byte that is in no text, and a special token.
ABSENT, SPECIAL = b"\xff", "<|end|>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--folder", type=Path, help="where the text and the shards are put")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    figures: dict[str, object] = {"machine": machine(), "bytes": options.bytes}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        limits = Limits(Path(folder), options.bytes)
        for step in (
            limits.write,
            limits.count_pieces,
            limits.train,
            limits.encode_file,
            limits.count_tokens,
            limits.find_absent_byte,
            limits.encode_array_and_decode,
            limits.write_shards,
            limits.read_shards,
            limits.learn_a_million,
            limits.take_one_piece,
        ):
            forget_peak()
            seconds, said = clocked(step)
            name = step.__name__
            figures[name] = {"seconds": seconds.wall, "peak": peak_megabytes(), "result": said}
            peak = f"{peak_megabytes() or 0:7.0f} MB"
            print(f"{name:24} {seconds.wall:7.1f} s {peak}   {said}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


class Limits:
    """The steps, in their order."""

    def __init__(self, folder: Path, size: int) -> None:
        self.path = folder / "text"
        self.shards = folder / "shards"
        self.text = lines(TEXT_BYTES)
        self.times = -(-size // len(self.text))
        self.size = self.times * len(self.text)
        self.counts = PieceCounts([self.text], pattern=PATTERN, special_tokens=[SPECIAL])

    @property
    def texts(self) -> list[bytes]:
        return [self.text] * self.times

    def write(self) -> str:
        with self.path.open("wb") as file:
            file.writelines(self.texts)
        assert self.path.stat().st_size == self.size
        return f"{self.size:,} bytes"

    def count_pieces(self) -> str:
        found = PieceCounts.from_files(self.path, pattern=PATTERN, special_tokens=[SPECIAL])
        assert dict(found) == {piece: count * self.times for piece, count in self.counts.items()}
        self.all_counts = found
        return f"{len(found):,} pieces, {found.total():,} in all"

    def train(self) -> str:
        options = {"vocabulary_size": VOCABULARY_SIZE, "special_tokens": [SPECIAL]}
        expected = Tokenizer.from_counts(self.counts, minimum_pair_frequency=2, **options)
        self.tokenizer = Tokenizer.from_counts(
            self.all_counts, minimum_pair_frequency=2 * self.times, **options
        )
        assert np.array_equal(self.tokenizer.merges, expected.merges)
        times = np.uint64(self.times)
        assert np.array_equal(self.tokenizer.merge_counts, expected.merge_counts * times)
        self.ids = self.tokenizer.encode_array(self.text)
        return f"{len(expected.merges):,} merges, counts up to {expected.merge_counts[0] * times:,}"

    def encode_file(self) -> str:
        tokens = 0
        for ids, _ in self.tokenizer.encode_file(self.path):
            tokens += len(ids)
        assert tokens == self.times * len(self.ids)
        assert np.array_equal(ids[-1000:], self.ids[-1000:])
        return f"{tokens:,} ids"

    def count_tokens(self) -> str:
        """Of one document in memory, to which a byte and a special token are added."""
        self.document = b"".join([*self.texts, ABSENT, SPECIAL.encode()])
        found = self.tokenizer.count(self.document, allowed_special="all")
        assert found == self.times * len(self.ids) + 2
        found = Tokenizer.from_bytes().count(self.document)
        assert found == len(self.document)
        return f"{found:,} ids of single bytes"

    def find_absent_byte(self) -> str:
        try:
            Tokenizer(self.text).count(self.document)
        except ValueError as error:
            assert f"byte 0xff at byte position {self.size} is not in" in str(error)
            return str(error).partition(" is not")[0]
        raise AssertionError("the byte was not missed")

    def encode_array_and_decode(self) -> str:
        ids = self.tokenizer.encode_array(self.document, allowed_special="all")
        digest = hashlib.sha256(self.document).digest()
        del self.document
        assert ids[-2:].tolist() == [ABSENT[0], self.tokenizer.special_tokens[SPECIAL]]
        for row in ids[:-2].reshape(self.times, -1):
            assert np.array_equal(row, self.ids)
        assert hashlib.sha256(self.tokenizer.decode_bytes(ids)).digest() == digest
        return f"{len(ids):,} ids"

    def write_shards(self) -> str:
        """One shard of bytes: both tokens and bytes are beyond 2**32."""
        found = write_shards(
            self.path,
            Tokenizer.from_bytes(reserved=["EOS"]),
            self.shards,
            documents="\n",
            eos=True,
            shard_tokens=2**40,
        )
        assert len(found.shards) == 1
        return f"{len(found):,} tokens of {found.documents:,} documents"

    def read_shards(self) -> str:
        shards = Shards(self.shards)
        shards.verify()
        assert len(shards) == self.size  # EOS in the place of each line end
        row = np.frombuffer(self.text, np.uint8).astype(np.uint16)
        ends = np.flatnonzero(row == ord("\n")) + 1
        row[ends - 1] = 256
        for place in self.places():
            within = place % len(row)
            assert np.array_equal(shards[place : place + 1000], row[within : within + 1000])
        starts = np.uint64(len(row)) * np.arange(self.times, dtype=np.uint64)
        expected = (starts[:, None] + ends.astype(np.uint64)[None, :]).ravel()
        assert np.array_equal(shards.offsets[1:], expected)
        rows = TokenDataset(shards, 1000)
        for number in (0, len(rows) // 2, len(rows) - 1):
            pair = rows[number]
            expected = np.take(row, np.arange(number * 1000, number * 1000 + 1001), mode="wrap")
            assert np.array_equal(pair.inputs, expected[:-1])
            assert np.array_equal(pair.targets, expected[1:])
        return f"{len(rows):,} rows of {rows.context:,}"

    def learn_a_million(self) -> str:
        """2**20 ids, of bytes that are drawn."""
        text = np.random.default_rng(0).bytes(min(2**23, self.size // 500))
        size = min(2**20, len(text) // 8)
        made = Tokenizer(text, method="bpe", vocabulary_size=size, minimum_pair_frequency=1)
        made.save(self.path.with_name("saved"))
        loaded = Tokenizer.load(self.path.with_name("saved"))
        assert loaded.vocab_size == size
        assert loaded.fingerprint() == made.fingerprint()
        ids = loaded.encode_array(text)
        assert ids.max() == size - 1  # it is left as it was learned
        assert loaded.decode_bytes(ids) == text
        return f"{size:,} ids from {len(text):,} bytes"

    def take_one_piece(self) -> str:
        """Without a pattern a document is one piece: to train on, to encode, to decode."""
        piece = b"abc " * (self.size // 64)
        tokenizer = Tokenizer(piece, method="bpe", vocabulary_size=259)
        assert [*tokenizer.vocabulary[256:]] == [b"ab", b"c ", b"abc "]
        ids = tokenizer.encode_array(piece)
        assert len(ids) == len(piece) // 4
        assert tokenizer.decode_bytes(ids) == piece
        return f"{len(piece):,} bytes, {len(ids):,} ids"

    def places(self) -> Iterator[int]:
        """Places that have 1,000 tokens of one text behind them, the last ones among them."""
        for place in (0, 2**31, 2**32, self.size - 1000):
            if place < self.size:
                yield place if place % len(self.text) + 1000 <= len(self.text) else place - 1000


def lines(size: int) -> bytes:
    """Lines of words, so many bytes or a little more. A word is some syllables."""
    chance = random.Random(0)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(chance.choices(syllables, k=chance.randint(2, 6))) for _ in range(20_000)]
    text = bytearray()
    while len(text) < size:
        text += " ".join(chance.choices(words, k=1000)).encode() + b"\n"
    return bytes(text)


if __name__ == "__main__":
    main()
