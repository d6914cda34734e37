"""Files that hold a tokenizer: refused with a clear error, or read alike by both engines, and then
of use, and the same after they were written again."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cases import Raised
from fuzzing.inputs import REFUSALS, limited, outcome, same
from tokbpe import Tokenizer, engines, states
from tokbpe.formats import artifact, detect, tiktoken

SECONDS = 1.0
TEXTS = (
    "low lower\n é <|end|>  I'll 12345 你🐈 e\u0301".encode(),
    b"",
    b"aaaaaaaabababab\xff\xfe \xc3",
)
SINGLE_BYTES = tiktoken.rank_lines((byte, bytes([byte])) for byte in range(256))


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fuzzing-") as name:
        yield Path(name)


def rank_file(data: bytes) -> None:
    """A line with a pattern, as tiktoken spells it, and the lines of a rank file. With `+` in
    front of the pattern, lines of all single bytes come first."""
    pattern, _, lines = data.partition(b"\n")
    if pattern.startswith(b"+"):
        lines = SINGLE_BYTES + lines
    options = {
        "pattern": pattern.removeprefix(b"+").decode("utf-8", "replace") or tiktoken.WHOLE,
        "special_tokens": {"<|end|>": 300},
    }
    read_file(lines, "some.tiktoken", Tokenizer.from_tiktoken, **options)


def hugging_face(data: bytes) -> None:
    read_file(data, "tokenizer.json", Tokenizer.from_huggingface)


def gpt2_files(data: bytes) -> None:
    """Two files, with a zero byte between them."""
    vocab, _, merges = data.partition(b"\0")
    with folder() as path, limited(SECONDS):
        (path / "vocab.json").write_bytes(vocab)
        (path / "merges.txt").write_bytes(merges)
        read(lambda engine: Tokenizer.from_gpt2(path, engine=engine), str(path))


def printable_json(data: bytes) -> None:
    read_file(data, "some.json", Tokenizer.from_json)


def artifact_file(data: bytes) -> None:
    """What stands behind the checksum, which is put there; or a whole file."""
    if not data.startswith(detect.ARTIFACT):
        first_line = b"tokbpe tokenizer %d\n" % artifact.VERSION
        data = first_line + artifact.digest_line(first_line, data) + data
    read_file(data, "some.tokbpe", Tokenizer.load)


def any_file(data: bytes) -> None:
    """A line with the name of a file, and the file, whose format is to be found."""
    name, _, content = data.partition(b"\n")
    name = name.decode("ascii", "replace").replace("/", "").replace("\0", "") or "x"

    def load(path: str, engine: str | None) -> Tokenizer:
        found = detect.find(path)
        vocabulary = detect.load(found, pattern="gpt2", engine=engines.get(engine))
        return Tokenizer.from_vocabulary(vocabulary, engine)

    if name not in (".", ".."):
        read_file(content, name[:50], lambda path, engine: load(str(path), engine))


def state(data: bytes) -> None:
    """The vocabulary of a state as JSON. The checksum is put to it."""
    try:
        plain = json.loads(data)
        whole = {"version": 1, "sha256": states.digest(plain), "vocabulary": plain}
    except (ValueError, RecursionError):
        return
    with limited(SECONDS):
        read(lambda engine: Tokenizer.from_state(whole, engine=engine), "")


# What must hold


def read_file(data: bytes, name: str, reader: Callable[..., Tokenizer], **options: Any) -> None:
    with folder() as path, limited(SECONDS):
        (path / name).write_bytes(data)
        read(lambda engine: reader(path / name, engine=engine, **options), str(path))


def read(reader: Callable[[str], Tokenizer], place: str) -> None:
    """Read by both engines; an error must tell the place."""
    ours, theirs = (outcome(reader, engine, allowed=REFUSALS) for engine in ("fast", "reference"))
    if isinstance(ours, Raised) or isinstance(theirs, Raised):
        same(ours, theirs)
        assert place in ours.text, f"{ours.text!r} does not tell of {place}"
        return
    assert ours.fingerprint() == theirs.fingerprint()
    texts = [*TEXTS, from_pieces(ours)]
    check_use(ours, theirs, texts)
    check_written(ours, texts)


def from_pieces(tokenizer: Tokenizer) -> bytes:
    """A text of some pieces, of the last ones above all."""
    pieces = [piece[:40] for _, piece in [*tokenizer.items()][-30:]]
    return b"".join(pieces[::-2] + pieces)[:300]


def check_use(ours: Tokenizer, theirs: Tokenizer, texts: list[bytes]) -> None:
    """Both engines encode and decode alike, and what was encoded comes back."""
    for text in texts:
        for allowed in ((), "all"):
            ids = same(*(outcome(encoded, one, text, allowed) for one in (ours, theirs)))
            if isinstance(ids, Raised):
                continue
            back = same(*(outcome(one.decode_bytes, ids) for one in (ours, theirs)))
            if ours.lossless and not allowed:
                assert back == text


def encoded(tokenizer: Tokenizer, text: bytes, allowed: Any) -> list[int]:
    return tokenizer.encode_bytes(text, allowed_special=allowed, add_special_tokens=bool(allowed))


def check_written(tokenizer: Tokenizer, texts: list[bytes]) -> None:
    """Each format that holds it gives the same ids again; its pattern may be of a caller."""
    state = json.loads(json.dumps(tokenizer.state()))
    again = Tokenizer.from_state(state, trust_pattern=True)
    assert again == tokenizer and again.fingerprint() == tokenizer.fingerprint()
    with folder() as path:
        tokenizer.save(path / "saved")
        assert Tokenizer.load(path / "saved", trust_pattern=True) == tokenizer
        for again in written(tokenizer, path):
            for text in texts:
                ids = outcome(again.encode_bytes, text)
                assert isinstance(ids, Raised) or ids == tokenizer.encode_bytes(text)
                if isinstance(ids, Raised):
                    assert isinstance(outcome(tokenizer.encode_bytes, text), Raised)


def written(tokenizer: Tokenizer, path: Path) -> Iterator[Tokenizer]:
    """The tokenizer out of each file of others that can hold it."""
    pattern = tokenizer._vocabulary.pattern
    if not isinstance(outcome(tokenizer.to_json, path / "json"), Raised):
        yield Tokenizer.from_json(path / "json", pattern=pattern)
    if not isinstance(outcome(tokenizer.to_gpt2, path), Raised):
        yield Tokenizer.from_gpt2(path, special_tokens=list(tokenizer.special_tokens))
    if not isinstance(outcome(tokenizer.to_huggingface, path / "tokenizer.json"), Raised):
        yield Tokenizer.from_huggingface(path / "tokenizer.json", trust_pattern=True)
    if not isinstance(outcome(tokenizer.to_tiktoken, path / "ranks"), Raised):
        yield Tokenizer.from_tiktoken(
            path / "ranks",
            pattern=tiktoken.WHOLE if pattern is None else pattern,
            special_tokens=tokenizer.special_tokens,
        )
