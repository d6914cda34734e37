"""The command line for shards and for measures."""

import contextlib
import gzip
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tokbpe import Shards, Tokenizer, cli, metrics
from tokbpe.count_work import new_processes


@pytest.fixture
def run(tmp_path, monkeypatch, capfdbinary):
    """Runs a command in a folder of its own: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for name, text in (("a.txt", "low lower\nlowest\n"), ("b.txt", "slow\n")):
        Path("texts", name).write_text(text)

    def call(line):
        code = cli.main(shlex.split(line))
        output, error = capfdbinary.readouterr()
        return code, output.decode(), error.decode()

    assert call("train texts/a.txt -o my.tokbpe --vocab-size 258 --reserved EOS") == (0, "", "")
    return call


def test_shard_and_verify(run):
    command = "shard my.tokbpe texts -o out --eos --documents line --shard-tokens 7"
    assert run(command) == (0, "", "")
    tokenizer = Tokenizer.load("my.tokbpe")
    shards = Shards("out", tokenizer)
    lines = ["low lower", "lowest", "slow"]
    assert shards[:].tolist() == [id for line in lines for id in tokenizer.encode(line, eos=True)]
    assert shards.documents == 3 and shards.role == "training" and len(shards.shards) > 1
    code, output, error = run("verify out --tokenizer my.tokbpe")
    assert (code, error) == (0, "")
    assert "documents          3\n" in output and shards.fingerprint() in output
    assert "eos yes" in output
    facts = json.loads(run("verify out --json")[1])
    assert facts["tokens"] == len(shards) and facts["shards"] == len(shards.shards)
    assert run(command) == (0, "", "")  # finished already


def test_options_of_shard(run):
    command = "shard my.tokbpe texts/*.txt -o out --role validation --dtype uint32 --threads 1"
    code, _, error = run(command)
    assert code == 1 and "a.txt: the tokenizer was fitted on this document, so" in error
    assert not Path("out").exists()
    assert run("shard my.tokbpe texts/b.txt -o out --role validation --dtype uint32")[0] == 0
    assert Shards("out").role == "validation" and Shards("out").dtype == "uint32"
    assert run("shard my.tokbpe texts -o parallel --workers 2")[0] == 0
    assert run("shard my.tokbpe texts -o alone")[0] == 0
    assert {path.name: path.read_bytes() for path in Path("parallel").iterdir()} == {
        path.name: path.read_bytes() for path in Path("alone").iterdir()
    }


def test_records(run):
    Path("texts", "c.jsonl").write_text('{"body": "slow"}\n{"body": "low"}\n')
    code, _, error = run("shard my.tokbpe texts -o out")
    assert code == 1 and "c.jsonl: line 1: there is no field 'text'" in error
    assert run("shard my.tokbpe texts -o out --field body") == (0, "", "")
    assert Shards("out").documents == 4
    assert "field body" in run("verify out")[1]


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_packed_records_and_tables(run, packing):
    pack = gzip if packing == "gz" else pytest.importorskip("zstandard")
    pyarrow = pytest.importorskip("pyarrow")
    records = b'{"body": "slow"}\n{"body": "low"}\n'
    path = Path("texts", f"c.jsonl.{packing}")
    path.write_bytes(pack.compress(records))
    Path("texts", f"d.txt.{packing}").write_bytes(pack.compress(b"slow\nlow\n"))
    Path("texts", "e.jsonl").write_bytes(records)
    table = pyarrow.table({"body": ["slow", "low"]})
    pytest.importorskip("pyarrow.parquet").write_table(table, "texts/f.parquet")
    command = "shard my.tokbpe texts -o out --field body --documents line --eos"
    assert run(command) == (0, "", "")
    lines = ["low lower", "lowest", "slow", *["slow", "low"] * 4]
    tokenizer = Tokenizer.load("my.tokbpe")
    expected = [id for line in lines for id in tokenizer.encode(line, eos=True)]
    assert Shards("out")[:].tolist() == expected
    command = "shard my.tokbpe texts/c.* -o c --field body --workers 1"
    assert run(command) == (0, "", "") and Shards("c").documents == 2
    path.write_bytes(pack.compress(records)[:-3])
    code, _, error = run("shard my.tokbpe texts/c.* -o damaged --field body --workers 1")
    assert code == 1 and f"{path}: the compressed data are damaged" in error
    assert not Path("damaged").exists()


def test_a_worker_that_is_killed(run, monkeypatch):
    @contextlib.contextmanager
    def killed(workers):
        with new_processes(workers) as executor:
            executor.submit(os.kill, os.getpid(), 0).result()
            executor.submit(os._exit, 1)
            yield executor

    monkeypatch.setattr(cli, "new_processes", killed)
    code, output, error = run("shard my.tokbpe texts -o out --workers 1")
    assert (code, output) == (1, "") and "process" in error and error.count("\n") == 1
    monkeypatch.undo()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_command(run, number):
    for name in range(12):
        Path("texts", f"{name:02}").write_text("low lower lowest " * 100_000)
    command = "-m tokbpe shard my.tokbpe texts -o out --workers 2 --shard-tokens 100000"
    process = subprocess.Popen(
        [sys.executable, *command.split()], stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(Path().glob("out/*.npy")) and time.monotonic() < deadline:
        time.sleep(0.01)
    if number == signal.SIGINT:  # a terminal sends it to all
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    # The workers hold the other end of the pipe as long as they live.
    _, errors = process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert (process.returncode, errors) == (cli.INTERRUPTED, b"")
    assert not Path("out/manifest.json").exists()
    assert run(command.removeprefix("-m tokbpe ")) == (0, "", "")
    assert run("shard my.tokbpe texts -o alone --shard-tokens 100000") == (0, "", "")
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == {
        path.name: path.read_bytes() for path in Path("alone").iterdir()
    }


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("shard my.tokbpe absent -o out", "absent: No such file or directory"),
        ("shard absent texts -o out", "absent: No such file or directory"),
        ("shard my.tokbpe texts -o texts", "{here}/texts: the folder holds something else"),
        ("shard my.tokbpe texts -o out --bos", "there is no reserved id 'BOS'"),
        ("verify absent", "{here}/absent/manifest.json: No such file or directory"),
        ("verify texts", "{here}/texts/manifest.json: these are no finished shards"),
        ("verify texts --tokenizer texts/a.txt", "texts/a.txt: this is no tokenizer"),
    ],
)
def test_failures(run, command, message):
    code, output, error = run(command)
    assert (code, output) == (1, "")
    message = message.format(here=Path.cwd())
    assert error.startswith(f"tokbpe: error: {message}") and error.count("\n") == 1


def test_damage_and_another_tokenizer(run):
    run("shard my.tokbpe texts -o out")
    run("train texts/b.txt -o other.tokbpe")
    code, _, error = run("verify out --tokenizer other.tokbpe")
    assert code == 1 and "out: the shards are of the tokenizer " in error
    (path,) = Path("out").glob("*.tokens.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    code, _, error = run("verify out")
    assert code == 1 and error.startswith(f"tokbpe: error: {path.absolute()}: ")


@pytest.mark.parametrize(
    "option", ["--shard-tokens 0", "--role train", "--workers x", "--workers 1025", ""]
)
def test_wrong_use(run, option, capfdbinary):
    with pytest.raises(SystemExit) as caught:
        run(f"shard my.tokbpe texts {option}" + (" -o out" if option else ""))
    assert caught.value.code == 2
    assert b"error: " in capfdbinary.readouterr().err


def test_inspect_corpus(run):
    code, output, error = run("inspect my.tokbpe --corpus texts/a.txt texts/b.txt")
    assert (code, error) == (0, "")
    tokenizer = Tokenizer.load("my.tokbpe")
    measure = metrics.measure(tokenizer, Path("texts/a.txt").read_bytes())
    assert f"texts/a.txt        bytes {measure.bytes}, words {measure.words}" in output
    assert f"bytes per token {measure.bytes_per_token:.3f}" in output
    assert "all files          bytes 22, words 4" in output
    facts = json.loads(run("inspect my.tokbpe --json --corpus texts/b.txt")[1])
    assert facts["corpus"].keys() == {"texts/b.txt"}
    assert facts["corpus"]["texts/b.txt"]["tokens"] == tokenizer.count("slow\n")
    Path("empty").touch()
    facts = json.loads(run("inspect my.tokbpe --json --corpus empty")[1])
    assert facts["corpus"]["empty"]["bytes_per_token"] is None
    assert "corpus" not in json.loads(run("inspect my.tokbpe --json")[1])


def test_inspect_a_corpus_of_records_and_packed_files(run):
    lines = "".join(json.dumps({"body": text}) + "\n" for text in ("low lower", "slow"))
    Path("c.jsonl").write_text(lines)
    Path("c.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    Path("texts", "d.txt.gz").write_bytes(gzip.compress(b"lower"))
    names = "c.jsonl c.jsonl.gz texts texts/d.txt.gz texts/*.txt"
    code, output, error = run(f"inspect my.tokbpe --json --field body --corpus {names}")
    assert (code, error) == (0, "")
    found = json.loads(output)["corpus"]
    sizes = {name: (measure["bytes"], measure["words"]) for name, measure in found.items()}
    assert sizes == {
        "c.jsonl": (13, 3),
        "c.jsonl.gz": (13, 3),
        "texts": (27, 5),
        "texts/d.txt.gz": (5, 1),
        "texts/*.txt": (22, 4),
        "all files": (80, 16),
    }
    tokenizer = Tokenizer.load("my.tokbpe")
    assert found["c.jsonl"]["tokens"] == tokenizer.count_batch(["low lower", "slow"]).sum()


@pytest.mark.parametrize("name", ["c.parquet", "c.txt.zst"])
def test_inspect_a_corpus_that_needs_an_extra(run, name):
    if name == "c.parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="the extra arrow is not installed")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"text": ["low lower"]}), name)
    else:
        zstandard = pytest.importorskip("zstandard", reason="the extra zstandard is not installed")
        Path(name).write_bytes(zstandard.ZstdCompressor().compress(b"low lower"))
    facts = json.loads(run(f"inspect my.tokbpe --json --corpus {name}")[1])
    assert facts["corpus"][name]["bytes"] == 9


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("c.jsonl", "c.jsonl: line 2: there is no field 'text' among ['body']"),
        (
            "half.jsonl",
            "'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed "
            "(half.jsonl: line 1)",
        ),
        ("c.jsonl --field 5", "c.jsonl: line 1: there is no field '5' among ['text']"),
        ("cut.gz", "cut.gz: the compressed data are damaged: "),
        ("absent", "absent: No such file or directory"),
        ("link", "link: this is a symbolic link, and none is followed"),
    ],
)
def test_inspect_a_corpus_that_cannot_be_read(run, names, message):
    Path("c.jsonl").write_text('{"text": "low"}\n{"body": "low"}\n')
    Path("half.jsonl").write_text('{"text": "\\ud800"}\n')
    Path("cut.gz").write_bytes(gzip.compress(b"low lower")[:-3])
    Path("link").symlink_to("c.jsonl")
    code, output, error = run(f"inspect my.tokbpe --corpus {names}")
    assert (code, output) == (1, "")
    assert error.startswith(f"tokbpe: error: {message}") and error.count("\n") == 1


def test_inspect_names_the_document_that_cannot_be_encoded(run):
    Path("c.jsonl").write_text('{"text": "low"}\n{"text": "? low"}\n')
    assert run("train texts/a.txt -o bytes.tokbpe --method byte")[0] == 0
    code, output, error = run("inspect bytes.tokbpe --corpus c.jsonl")
    assert (code, output) == (1, "")
    assert error.startswith("tokbpe: error: c.jsonl: line 2: byte 0x3f at byte position 0 is not")
