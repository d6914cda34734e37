"""Files that mean harm: each is an error of the fitting class that names the file, within a second
or two and some memory; nothing in a file is run, and nothing is written.

Each reader reads its files in a process of its own, with a limit to its memory, where an audit hook
notes what a reader must not do.
"""

import base64
import codecs
import functools
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from growth import ratio
from tokbpe import (
    Corpus,
    PieceCounts,
    Shards,
    StreamedCorpus,
    Tokenizer,
    cli,
    count_files,
    fast,
    patterns,
    shards,
    states,
    write_shards,
)
from tokbpe.formats import artifact
from tokbpe.vocabulary import Vocabulary

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and limits of POSIX")

MEGABYTES = 600  # of memory, more than a process has that has read nothing
SECONDS = 10  # of work, on a slow build; most take some milliseconds
DEEP = 100_000
DIGITS = "1" * 10**6
BUDGET = 1000
BOMB = 2**30  # bytes

# Well-formed files, in parts


def small(engine=None):
    return Tokenizer(
        "abab",
        engine=engine,
        method="bpe",
        vocabulary_size=257,
        special_tokens=["<e>"],
        special_ids="end",
        minimum_pair_frequency=1,
    )


def sealed_artifact(header, body=b""):
    start = b"tokbpe tokenizer 2\n"
    content = header + b"\n" + body
    return start + artifact.digest_line(start, content) + content


def artifact_parts():
    _, _, header, body = artifact.dumped(small()._vocabulary).split(b"\n", 3)
    return json.loads(header), body


def changed_artifact(**changes):
    plain, body = artifact_parts()
    return sealed_artifact(json.dumps({**plain, **changes}).encode(), body)


def own(source):
    """A pattern of somebody's own, as plain data."""
    return {"name": None, "sources": [source], "keep_gaps": True}


def nested(levels):
    inner = value = {}
    for _ in range(levels):
        inner["a"] = inner = {}
    return value


def rank_lines(*more):
    lines = [b"%s %d" % (base64.b64encode(bytes([byte])), byte) for byte in range(256)]
    return b"\n".join([*lines, *more]) + b"\n"


VOCAB = {char: id for id, char in enumerate(patterns.PRINTABLE)}


def tokenizer_json(vocab=None, merges=(), splits=(), **more):
    parts = [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        for regex in splits
    ]
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": not splits,
    }
    model = {"type": "BPE", "vocab": {**VOCAB, **(vocab or {})}, "merges": list(merges)}
    return json.dumps(
        {
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*parts, level]},
            "model": model,
            **more,
        }
    ).encode()


def printable(vocab=None, merges=()):
    return json.dumps({"vocab": {**VOCAB, **(vocab or {})}, "merges": list(merges)}).encode()


CYCLIC = ({"ab": 256, "aba": 257}, [["ab", "a"], ["aba", "b"], ["a", "b"]])  # abab is no piece


def counts_file(about=None, sizes=None, deflated=False, name="data"):
    """A file of counts of which an array says another size than it has, or is packed."""
    folder = Path(tempfile.mkdtemp())
    PieceCounts("abab", pattern="gpt2").save(folder / "counts")
    found = io.BytesIO()
    with zipfile.ZipFile(folder / "counts") as whole, zipfile.ZipFile(found, "w") as content:
        for member in whole.namelist():
            data = whole.read(member)
            if member == "about.npy" and about is not None:
                text = io.BytesIO()
                np.save(text, np.frombuffer(about, np.uint8))
                data = text.getvalue()
            if member == f"{name}.npy" and sizes is not None:
                own = b"(%d,)" % len("abab")
                spaces = b" " * (len(sizes) - len(own))  # behind it, to the end of a line
                data = data.replace(own + b", }" + spaces, sizes + b", }", 1)
            packed = (
                zipfile.ZIP_DEFLATED if deflated and member == f"{name}.npy" else zipfile.ZIP_STORED
            )
            content.writestr(member, bytes(BOMB // 4) if packed else data, packed)
    return found.getvalue()


def sealed_counts(**changes):
    """A file whose facts are changed, with the checksum that then is right."""
    folder = Path(tempfile.mkdtemp())
    PieceCounts("abab", pattern="gpt2").save(folder / "counts")
    arrays, facts = count_files.load(folder / "counts")
    count_files.save(folder / "changed", arrays, {**facts, **changes})
    return (folder / "changed").read_bytes()


def state(**changes):
    plain = {**small()._vocabulary.plain(), **changes}
    return json.dumps(
        {"version": states.VERSION, "sha256": states.digest(plain), "vocabulary": plain}
    ).encode()


def manifest(**changes):
    folder = Path(tempfile.mkdtemp())
    write_shards(Corpus(["abab"]), small(), folder / "shards")
    plain = json.loads((folder / "shards" / shards.MANIFEST).read_bytes())
    for name in ("format", "version", "sha256"):
        del plain[name]
    [shard] = plain["shards"]
    for name in [name for name in changes if name in shard]:
        shard[name] = changes.pop(name)
        plain.update({name: shard[name]} if name in ("tokens", "documents") else {})
    return shards.sealed(shards.FORMAT, {**plain, **changes})


def bomb():
    """Many members, each a thousandth of what it holds."""
    return gzip.compress(b"a" * 2**24, 1) * (BOMB // 2**24)


def line_bomb():
    return gzip.compress(b'{"text": "') + bomb()


def zstandard_bomb():
    import zstandard

    return zstandard.ZstdCompressor().compress(b"a" * (BOMB // 4))


def parquet_file(text="a", **options):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = io.BytesIO()
    pq.write_table(pa.table({"text": [text]}), data, **options)
    return data.getvalue()


# The readers: what reads a path, and files that it must refuse: their bytes, and what is said


def corpus(documents="whole", kind=Corpus):
    return lambda path: len(kind.from_files(path, documents=documents, max_bytes=BUDGET))


def gpt2(path):
    return Tokenizer.from_gpt2(path, path.with_name("merges.txt"))


def ranks(path):
    return Tokenizer.from_tiktoken(path, pattern="gpt2", special_tokens={})


# What the name of a file must be.
NAMES = {
    "manifest": shards.MANIFEST,
    "gzip": "file.gz",
    "gzip lines": "file.gz",
    "streamed": "file.gz",
    "jsonl": "file.jsonl",
    "jsonl.gz": "file.jsonl.gz",
    "zstandard": "file.zst",
    "parquet": "file.parquet",
}

SLOW = "trust_pattern=True"
TOO_DEEP = "nested too deeply"

READERS = {
    "artifact": (
        Tokenizer.load,
        {
            "list": (lambda: sealed_artifact(b"[" * DEEP), TOO_DEEP),
            "deep": (lambda: sealed_artifact(b'{"a":' * DEEP), TOO_DEEP),
            "record": (lambda: changed_artifact(provenance=[nested(900)]), TOO_DEEP),
            "digits": (lambda: sealed_artifact(b'{"a":%s}' % DIGITS.encode()), "digits"),
            "doubled": (
                lambda: sealed_artifact(b'{"method":1,"method":1}'),
                "'method' stands twice",
            ),
            "size": (
                lambda: changed_artifact(merges={"dtype": "<u4", "shape": [2**40, 2]}),
                "from 0 to",
            ),
            "sizes": (
                lambda: changed_artifact(merges={"dtype": "<u4", "shape": [2] * 10**5}),
                "must be 2 sizes",
            ),
            "negative": (
                lambda: changed_artifact(alphabet={"dtype": "<i4", "shape": [-1]}),
                "from 0 to",
            ),
            "objects": (lambda: changed_artifact(merges={"dtype": "|O", "shape": [1, 2]}), "dtype"),
            "id": (lambda: changed_artifact(special_tokens={"<e>": 2**32}), "from 0 to 4294967294"),
            "base": (lambda: changed_artifact(special_tokens={"<e>": 97}), "has the id 97"),
            "pattern": (
                lambda: changed_artifact(pattern=own("(a+)+b")),
                SLOW,
            ),
            "long": (
                lambda: changed_artifact(pattern=own("a" * 10**6)),
                SLOW,
            ),
            "classes": (
                lambda: changed_artifact(pattern=own(r"\pL" * 1000)),
                SLOW,
            ),
            "groups": (
                lambda: changed_artifact(pattern=own("(" * 4000)),
                "is refused",
            ),
        },
    ),
    "state": (
        lambda path: Tokenizer.from_state(json.loads(path.read_bytes())),
        {
            "deep": (lambda: state(provenance=[nested(900)]), TOO_DEEP),
            "id": (lambda: state(special_tokens={"<e>": 2**32}), "from 0 to 4294967294"),
            "cyclic": (lambda: state(merges=[[256, 256]]), "made by it or after it"),
            "pattern": (
                lambda: state(pattern=own("(a|a)*b")),
                SLOW,
            ),
        },
    ),
    "ranks": (
        ranks,
        {
            "id": (lambda: rank_lines(b"YWI= 4294967295"), "line 257 has the rank 4294967295"),
            "gaps": (lambda: rank_lines(b"YWI= 16777215"), "16776959 ids have no piece"),
            "digits": (lambda: rank_lines(b"YWI= " + DIGITS.encode()), "line 257 must be"),
            "piece": (lambda: rank_lines(b"A" * 2**22), "line 257 must be"),
            "doubled": (lambda: rank_lines(b"YQ== 256"), "lines 98 and 257"),
        },
    ),
    "huggingface": (
        Tokenizer.from_huggingface,
        {
            "deep": (lambda: b'{"model":' * DEEP, TOO_DEEP),
            "sequence": (
                lambda: json.dumps({"model": {}, "pre_tokenizer": nested(400)}).encode(),
                "pre_tokenizer",
            ),
            "digits": (
                lambda: tokenizer_json({"ab": 7}).replace(b": 7}", b": %s}" % DIGITS.encode()),
                "digits",
            ),
            "doubled": (lambda: tokenizer_json().replace(b'"a": ', b'"b": '), "'b' stands twice"),
            "cyclic": (lambda: tokenizer_json(*CYCLIC), "merge 1 joins"),
            "id": (lambda: tokenizer_json({"ab": 2**32 - 1}), "from 0 to 4294967294"),
            "gaps": (lambda: tokenizer_json({"ab": 2**32 - 2}), "ids have no piece"),
            "pattern": (lambda: tokenizer_json(splits=["(?:.*a){20}"]), SLOW),
            "code": (lambda: tokenizer_json(splits=["(?{ system })"]), "is refused"),
            "splits": (lambda: tokenizer_json(splits=[r"\p{L}+", *["x"] * 5000]), SLOW),
        },
    ),
    "gpt2": (
        gpt2,
        {
            "deep": (lambda: b"[" * DEEP, TOO_DEEP),
            "digits": (lambda: b'{"a": %s}' % DIGITS.encode(), "digits"),
            "doubled": (lambda: b'{"a": 0, "a": 1}', "'a' stands twice"),
            "id": (lambda: json.dumps({**VOCAB, "ab": 2**32}).encode(), "from 0 to 4294967294"),
            "gaps": (
                lambda: json.dumps({**VOCAB, "ab": 2**31, "aba": 1000}).encode(),
                "ids have no piece",
            ),
            "cyclic": (
                lambda: json.dumps({**VOCAB, "aba": 256}).encode(),
                "line 2 joins 'a' and 'b'",
            ),
        },
    ),
    "json": (
        Tokenizer.from_json,
        {
            "deep": (lambda: b'{"vocab":' * DEEP, TOO_DEEP),
            "digits": (lambda: b'{"vocab": {"a": %s}, "merges": []}' % DIGITS.encode(), "digits"),
            "doubled": (lambda: b'{"vocab": {}, "vocab": {}}', "'vocab' stands twice"),
            "cyclic": (lambda: printable(*CYCLIC), "merge 1 joins"),
            "id": (lambda: printable({"ab": 2**32 - 1}, [["a", "b"]]), "from 0 to 4294967294"),
        },
    ),
    "counts": (
        PieceCounts.load,
        {
            "size": (lambda: counts_file(sizes=b"(9999999999999,)"), "does not have"),
            "negative": (lambda: counts_file(sizes=b"(-1,)"), "'data'|data"),
            "bomb": (lambda: counts_file(deflated=True), "is not stored as it is"),
            "deep": (lambda: counts_file(about=b"[" * DEEP), "recursion"),
            "digits": (lambda: counts_file(about=b'{"a": %s}' % DIGITS.encode()), "digits"),
            "doubled": (lambda: counts_file(about=b'{"a": 1, "a": 1}'), "'a' stands twice"),
            "pattern": (
                lambda: sealed_counts(pattern=own("a+b")),
                SLOW,
            ),
        },
    ),
    "manifest": (
        lambda path: Shards(path.parent),
        {
            "deep": (lambda: b"[" * DEEP, "recursion"),
            "digits": (lambda: b'{"a": %s}' % DIGITS.encode(), "digits"),
            "doubled": (lambda: manifest().replace(b'"role"', b'"role": "x",\n "role"'), "damaged"),
            "above": (lambda: manifest(name="../../x"), "stands in the folder"),
            "absolute": (lambda: manifest(name="/etc/passwd"), "stands in the folder"),
            "null": (lambda: manifest(name="a\0b"), "stands in the folder"),
            "tokens": (lambda: manifest(tokens=2**80), "whole number from 0 on, below 2"),
            "fewer": (lambda: manifest(tokens=-1), "whole number from 0 on, below 2"),
        },
    ),
    "text": (corpus(), {"large": (lambda: b"a" * 5000, "max_bytes=1000")}),
    "lines": (corpus("line"), {"large": (lambda: b"a" * 5000, "max_bytes=1000")}),
    "gzip": (
        corpus(),
        {
            "bomb": (bomb, "max_bytes=1000"),
            "damaged": (lambda: bomb()[:-9000], "max_bytes=1000"),
            "no": (lambda: b"a", "damaged"),
        },
    ),
    "gzip lines": (corpus("line"), {"bomb": (bomb, "max_bytes=1000")}),
    "streamed": (corpus(kind=StreamedCorpus), {"bomb": (bomb, "max_bytes=1000")}),
    "jsonl": (
        corpus(),
        {
            "deep": (lambda: b'{"text":' * DEEP, "line 1: .*nested too deeply"),
            "digits": (lambda: b'{"text": %s}' % DIGITS.encode(), "line 1: .*digits"),
            "doubled": (lambda: b'{"text": "a", "text": "b"}', "line 1: .*'text' stands twice"),
            "mark": (lambda: b'\xef\xbb\xbf{"text": "a"}', "line 1: a byte order mark"),
            "large": (lambda: b'{"text": "%s"}' % (b"a" * 5000), "max_bytes=1000"),
        },
    ),
    "jsonl.gz": (
        corpus(),
        {"bomb": (line_bomb, "line 1: the line has more than")},
    ),
    "zstandard": (corpus(), {"bomb": (zstandard_bomb, "max_bytes=1000")}),
    "parquet": (
        corpus(),
        {
            "large": (lambda: parquet_file("a" * 2**26), "max_bytes=1000"),
            "damaged": (lambda: parquet_file()[:-20] + b"\xff" * 16 + b"PAR1", ""),
            "cut": (lambda: parquet_file()[20:], ""),
        },
    ),
}
NEEDS = {"zstandard": "zstandard", "parquet": "pyarrow.parquet"}
# What can stand in the place of any file


def endless(path):
    path.symlink_to("/dev/zero")


def sparse(path):
    with path.open("wb") as file:
        file.write(b"tokbpe tokenizer 2\n")
        file.truncate(2**40)


PLACES = {
    "pipe": (os.mkfifo, (OSError, ValueError)),
    "device": (endless, (OSError,)),
    "folder": (Path.mkdir, (OSError, ValueError)),
    "dangling link": (lambda path: path.symlink_to("absent"), (OSError,)),
    "link to itself": (lambda path: path.symlink_to(path), (OSError,)),
    "terabyte": (sparse, (ValueError,)),
}

CASES = [
    (reader, kind)
    for reader, (_, kinds) in READERS.items()
    for kind in (kinds if reader == "state" else [*kinds, *PLACES])
]

# In the process of a reader

FORBIDDEN = {
    *("exec", "pickle.find_class", "os.system", "os.exec", "os.posix_spawn"),
    *("subprocess.Popen", "socket.connect", "os.remove", "os.rename", "os.mkdir", "os.link"),
    *("os.symlink", "os.truncate", "os.rmdir", "shutil.rmtree", "ctypes.dlopen"),
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def watched():
    """What is done from now on that no reader may do."""
    seen = []

    def hook(event, arguments):
        is_writing = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if event in FORBIDDEN or is_writing:
            seen.append(f"{event} {arguments!r:.200}")

    sys.addaudithook(hook)
    return seen


def limit_memory():
    import resource

    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    most = pages * resource.getpagesize() + MEGABYTES * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def outcome(read, path, seen):
    """What comes of a file."""
    del seen[:]
    start = time.process_time()
    try:
        read(path)
    except BaseException as error:
        classes, message = [cls.__name__ for cls in type(error).__mro__], str(error)
    else:
        classes, message = [], "it was read"
    return {
        "classes": classes,
        "message": message[-3000:],
        "is_named": str(path.parent) in message,
        "seconds": time.process_time() - start,
        "seen": [*seen],
    }


def outcomes(reader, folder):
    """What comes of each file for a reader."""
    read, kinds = READERS[reader]
    paths = {}
    for number, kind in enumerate(kind for name, kind in CASES if name == reader):
        paths[kind] = Path(folder, str(number), NAMES.get(reader, "file"))
        paths[kind].parent.mkdir()
        paths[kind].with_name("merges.txt").write_bytes(b"#version: 0.2\na b\nab a\n")
        if kind in kinds:
            paths[kind].write_bytes(kinds[kind][0]())
        else:
            PLACES[kind][0](paths[kind])
    # What is imported and compiled at first use is so before it is watched.
    first = Path(folder, "first", NAMES.get(reader, "file"))
    first.parent.mkdir()
    first.write_bytes(b"no")
    outcome(read, first, [])
    codecs.lookup("utf-8-sig")
    limit_memory()
    seen = watched()
    return {kind: outcome(read, path, seen) for kind, path in paths.items()}


# The tests


@functools.cache
def found(reader):
    """What comes of the files of a reader, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run(
            [sys.executable, __file__, reader, folder], capture_output=True, timeout=300
        )
    assert process.returncode == 0, process.stderr.decode()
    return json.loads(process.stdout)


@pytest.mark.parametrize(("reader", "kind"), CASES)
def test_a_hostile_file_is_refused(reader, kind):
    if reader in NEEDS:
        pytest.importorskip(NEEDS[reader])
    _, kinds = READERS[reader]
    result = found(reader)[kind]
    message, classes = result["message"], result["classes"]
    if kind in kinds:
        assert "ValueError" in classes, (classes, message)
        assert re.search(kinds[kind][1], message, re.DOTALL), message
    else:
        names = PLACES[kind][1]
        assert {cls.__name__ for cls in names} & {*classes}, (classes, message)
    assert result["is_named"] or reader == "state", message
    assert result["seconds"] < SECONDS
    assert result["seen"] == []


def test_the_watch_sees_what_is_forbidden(tmp_path):
    code = (
        "import sys, pickle, test_hostile_files as tests\n"
        "seen = tests.watched()\n"
        "exec('1')\n"
        "open(sys.argv[1], 'wb').close()\n"
        "pickle.loads(b'cos\\nsystem\\n.')\n"
        "print(len(seen), *(event.split()[0] for event in seen))\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "written")],
        capture_output=True,
        env=environment,
    )
    events = process.stdout.decode().split()
    assert {"exec", "open", "pickle.find_class"} <= {*events}, process.stderr.decode()


def test_folders_deeper_than_python_nests(tmp_path):
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
        Path("text").write_text("abab")
    finally:
        os.chdir(here)
    assert [*Corpus.from_files(tmp_path)] == [b"abab"]
    with pytest.raises(ValueError, match="nested too deeply for a pattern"):
        Corpus.from_files(f"{tmp_path}/**/*")
    subprocess.run(["/bin/rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_file_that_grows_while_it_is_read(tmp_path):
    path = tmp_path / "text"
    path.write_bytes((b"a" * 1000 + b"\n") * 20_000)
    documents = iter(StreamedCorpus.from_files(path, documents="line"))
    next(documents)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(OSError, match="has changed"):
        for _ in documents:
            pass


UNREADABLE = "/proc/self/mem"  # a regular file, of which no byte can be read at its beginning


def with_file(read):
    with open(UNREADABLE, "rb") as file:
        return read(file)


@pytest.mark.skipif(not os.path.exists(UNREADABLE), reason="needs a file of Linux")
@pytest.mark.parametrize(
    "read",
    [
        lambda name: Tokenizer.load(UNREADABLE),
        lambda name: Tokenizer.from_tiktoken(UNREADABLE),
        lambda name: Tokenizer.from_huggingface(UNREADABLE),
        lambda name: PieceCounts.load(UNREADABLE),
        lambda name: Corpus.from_files([__file__, UNREADABLE]),
        lambda name: [*StreamedCorpus.from_files([__file__, UNREADABLE], documents="line")],
        lambda name: PieceCounts(engine=name).add_files([__file__, UNREADABLE]),
        lambda name: with_file(lambda file: PieceCounts(engine=name).add_files([file])),
        lambda name: [*small(name).encode_file(UNREADABLE)],
        lambda name: with_file(lambda file: [*small(name).encode_file(file)]),
        lambda name: write_shards([UNREADABLE], small(name), tempfile.mkdtemp() + "/new"),
    ],
    ids=["load", "tiktoken", "huggingface", "counts", "corpus", "streamed"]
    + ["count", "count_open", "encode", "encode_open", "shards"],
)
def test_an_error_of_reading_names_the_file(engine, read):
    with pytest.raises(OSError, match="Input/output error") as caught:
        read(engine.__name__.rpartition(".")[2])
    assert caught.value.filename == UNREADABLE


@pytest.mark.skipif(not os.path.exists(UNREADABLE), reason="needs a file of Linux")
@pytest.mark.parametrize("given", [UNREADABLE, "-"])
@pytest.mark.parametrize("command", [["train"], ["count"], ["encode", "@"], ["decode", "@"]])
def test_an_error_of_reading_names_the_file_of_a_command(
    command, given, tmp_path, monkeypatch, capsys
):
    small().save(tmp_path / "tokenizer")
    words = [str(tmp_path / "tokenizer") if word == "@" else word for word in command]
    output = str(tmp_path / "new")
    with open(UNREADABLE, encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert cli.main([*words, given, "-o", output]) == 1
    told = capsys.readouterr().err
    name = "(standard input|/proc/self/mem)" if given == "-" else given
    assert re.fullmatch(f"tokbpe: error: {name}: Input/output error\n", told), told


@pytest.mark.parametrize(
    "call",
    [
        lambda path: small().save(path),
        lambda path: Tokenizer.from_bytes().to_json(path),
        lambda path: PieceCounts().save(path),
        lambda path: write_shards(__file__, small(), path),
        Tokenizer.load,
        Tokenizer.from_json,
        PieceCounts.load,
        Shards,
        Corpus.from_files,
        PieceCounts.from_files,
        lambda path: [*small().encode_file(path)],
    ],
    ids=["save", "to_json", "counts.save", "write_shards", "load", "from_json"]
    + ["counts.load", "shards", "corpus", "counts.from_files", "encode_file"],
)
@pytest.mark.parametrize("path", ["a\0b", b"a\0b"], ids=["text", "bytes"])
def test_a_path_with_a_null_byte_is_named(call, path):
    with pytest.raises(ValueError, match=r"a\\x00b(/manifest\.json)?',? has a null byte, which no"):
        call(path)


@pytest.mark.parametrize(
    "words", [["train", "a\0b", "-o", "new"], ["train", __file__, "-o", "a\0b"]]
)
def test_a_path_with_a_null_byte_is_named_by_a_command(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 1
    expected = "tokbpe: error: the path 'a\\x00b' has a null byte, which no path has\n"
    assert capsys.readouterr().err == expected


def test_ids_far_apart_take_no_memory(engine):
    import tracemalloc

    name = engine.__name__.rpartition(".")[2]
    base = tuple(bytes([byte]) for byte in range(256))
    far = Vocabulary("byte", base, special_tokens={"<far>": 2**32 - 2}, reserved={"PAD": 2**31})
    tokenizer = Tokenizer.from_vocabulary(far, name)
    tracemalloc.start()
    ids = tokenizer.encode("a<far>", allowed_special="all")
    assert ids == [97, 2**32 - 2]
    assert tokenizer.decode([*ids, 2**31]) == "a<far><|PAD|>"
    assert tokenizer.decode(np.array(ids, np.uint32), skip_special=True) == "a"
    assert tokenizer.encode_with_offsets("a<far>", allowed_special="all").byte_spans.tolist() == [
        [0, 1],
        [1, 6],
    ]
    for gap in (256, 2**31 - 1, 2**32 - 3):
        with pytest.raises(ValueError, match=f"id {gap} at position 1 is a gap"):
            tokenizer.decode([97, gap])
    with pytest.raises(
        ValueError, match=r"id 4294967295 at position 0 is not from 0 to 4294967294"
    ):
        tokenizer.decode([2**32 - 1])
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


LOW, HIGH = 0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15


def colliding(count):
    """Pieces whose search all began at one place while hashes were the same in each process."""
    inverse = pow(LOW, -1, 2**64)
    tag = (8 << 56) * HIGH
    numbers = (((number * inverse) ^ tag) % 2**64 for number in range(1, count + 1))
    return [number.to_bytes(8, "little") for number in numbers]


def test_pieces_that_would_collide():
    def count(pieces):
        assert len(PieceCounts(pieces, threads=1)) == len(pieces)

    worst, usual = colliding(60_000), [*map(os.urandom, [8] * 60_000)]
    assert ratio(lambda: count(worst), lambda: count(usual), enough=5) < 5


FIRST = np.uint64(256)  # the ids of some pieces of two bytes begin here
TWO_BYTES = 2048  # so many there are


def hashes_of_pairs():
    """All pairs of these pieces, and the hashes that they would have in each process if these had
    no secret."""
    ids = FIRST + np.arange(TWO_BYTES, dtype=np.uint64)
    pairs = (ids[:, None] << np.uint64(32) | ids).ravel()
    hashes = pairs * np.uint64(LOW)
    return pairs, (hashes ^ hashes >> np.uint64(32)) * np.uint64(HIGH)


def hashes_of_pieces():
    """The same for pieces of four bytes, as numbers."""
    pieces = np.arange(TWO_BYTES**2, dtype=np.uint64) * np.uint64(251)
    hashes = np.zeros(len(pieces), np.uint64)
    for place in (24, 16, 8, 0):
        hashes = hashes * np.uint64(LOW) + (pieces >> np.uint64(place) & np.uint64(255))
        hashes += np.uint64(1)
    hashes = (hashes ^ hashes >> np.uint64(32)) * np.uint64(HIGH)
    return pieces, hashes ^ hashes >> np.uint64(32)


def load_merges(pairs):
    """Load a vocabulary that merges these pairs, and prepare it for much text."""
    alphabet = tuple(bytes([byte]) for byte in range(256))
    first = np.arange(TWO_BYTES)
    merges = np.concatenate(
        [np.stack([first >> 8, first & 255], 1), np.stack([pairs >> 32, pairs & (2**32 - 1)], 1)]
    )
    fast.encoding_table(alphabet, merges.astype(np.uint32)).warm_up()


def load_pieces(pieces):
    alphabet = [bytes([byte]) for byte in range(256)]
    alphabet += [int(piece).to_bytes(4, "big") for piece in pieces]
    none = np.zeros((0, 2), np.uint32)
    fast.encoding_table(tuple(alphabet), none, merge_rule="rank_by_piece").warm_up()


def count_pairs(pairs):
    fast.count_pairs(
        [[pair >> 32, pair & (2**32 - 1)] for pair in pairs.tolist()], [1] * len(pairs)
    )


def train(pairs):
    alphabet = [bytes([id >> 8, id & 255]) for id in range(int(FIRST) + TWO_BYTES)]
    sequences = [[pair >> 32, pair & (2**32 - 1)] for pair in pairs.tolist()]
    fast.train(sequences, [2] * len(pairs), alphabet, 1, threads=1)


@pytest.mark.parametrize("work", [load_merges, load_pieces, count_pairs, train])
def test_keys_of_tables_that_would_collide(work):
    count = 30_000
    keys, hashes = hashes_of_pieces() if work is load_pieces else hashes_of_pairs()
    worst = keys[np.argpartition(hashes, count)[:count]]
    usual = np.random.default_rng(0).choice(keys, count, False)
    assert ratio(lambda: work(worst), lambda: work(usual), enough=4) < 4


def test_no_result_depends_on_the_secret():
    code = (
        "from tokbpe import PieceCounts, Tokenizer\n"
        "from tokbpe.formats import artifact\n"
        "text = ' '.join(str(n * n * n) + 'word' * (n % 9) for n in range(3000))\n"
        "counts = PieceCounts(text, pattern='gpt2')\n"
        "for tie_break in ('first', 'smallest', 'greatest'):\n"
        "    tokenizer = Tokenizer.from_counts(counts, vocabulary_size=900, tie_break=tie_break)\n"
        "    saved = artifact.dumped(tokenizer._vocabulary)\n"
        "    ids = [tokenizer.encode(text) for _ in range(2)]  # the second time it is warm\n"
        "    print(hash(tuple(ids[0])), ids[0] == ids[1], tokenizer.fingerprint(), saved)\n"
    )
    path = os.pathsep.join(sys.path)
    results = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(results) == 1


if __name__ == "__main__":
    print(json.dumps(outcomes(*sys.argv[1:])))


def resealed(change):
    """The state of a tokenizer of which something is changed."""
    tokenizer = Tokenizer("abab", method="bpe", vocabulary_size=257)
    plain = json.loads(json.dumps(tokenizer._vocabulary.plain()))
    change(plain)
    return {"version": states.VERSION, "sha256": states.digest(plain), "vocabulary": plain}


def test_a_pattern_without_a_regular_expression(engine):
    """Its piece without bytes led out of memory."""
    without = {"name": None, "sources": [], "keep_gaps": True}
    state = resealed(lambda plain: plain.update(pattern=without))
    with pytest.raises(ValueError, match="needs at least one regular expression"):
        Tokenizer.from_state(state, engine=engine.__name__.rpartition(".")[2])
    with pytest.raises(ValueError, match="needs at least one regular expression"):
        patterns.Pattern(None, ())


def test_pieces_that_double(engine):
    """A merge for each doubling: what a few kilobytes spell has no end."""
    merges = [[97, 97], *([id, id] for id in range(256, 319))]

    def doubled(plain):
        plain.update(merges=merges, merge_counts=[1] * len(merges))

    tokenizer = Tokenizer.from_state(resealed(doubled), engine=engine.__name__.rpartition(".")[2])
    assert tokenizer.encode("aaab") == [256, 97, 98]
    for call in (
        lambda: tokenizer.decode([319], max_bytes=9),
        lambda: tokenizer.vocabulary,
        lambda: tokenizer.to_tiktoken(os.devnull),
    ):
        with pytest.raises(ValueError, match=r"merges make have more than 67108864 bytes .* 28\d"):
            call()


def test_a_count_that_passes_its_limit_names_the_file(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "counts.parquet"
    pq.write_table(pa.table({"piece": [b"a", b"a"], "count": [2**63 - 1, 1]}), path)
    with pytest.raises(ValueError, match=f"^{path}: .* would pass"):
        PieceCounts.from_parquet(path, pattern=None, special_tokens=[])


def test_memory_that_a_command_does_not_get_is_told_in_a_line(monkeypatch, capsys):
    def fails(argv):
        raise MemoryError

    monkeypatch.setattr(cli, "parsed", fails)
    assert cli.main(["inspect", "any"]) == 1
    assert capsys.readouterr().err == "tokbpe: error: there is not enough memory\n"


@pytest.mark.parametrize("form", ["huggingface", "gpt2"])
def test_what_reading_would_refuse_is_not_written(form, tmp_path):
    base = tuple(bytes([byte]) for byte in range(256))
    far = Vocabulary("byte", base, pattern=patterns.NAMED["gpt2"], special_tokens={"<far>": 2**31})
    tokenizer = Tokenizer.from_vocabulary(far)
    target = tmp_path / "new"
    target.mkdir()
    with pytest.raises(ValueError, match="the highest id is 2147483648, so that"):
        getattr(tokenizer, f"to_{form}")(target)
    assert not [*target.iterdir()]
