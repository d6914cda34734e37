"""The command line: exit codes, what goes to which stream, terminals and pipes."""

import contextlib
import functools
import io
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tokbpe import (
    Tokenizer,
    __version__,
    check,
    cli,
    demo,
    engines,
    fast,
    files,
    installation,
    usage,
)
from tokbpe.vocabulary import Vocabulary

SMALL = demo.Plan(library_bytes=100_000, compared_files=4, compared_merges=20, vocabulary_size=500)
COMMAND = [sys.executable, "-m", "tokbpe"]
# Unbuffered, argparse writes, and passes over errors, before the command line can see them.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def command_with(lines):
    """The command `tokbpe demo` with another expression in the place of `demo.lines`."""
    code = (
        "import functools, sys; from tokbpe import cli, demo; from tokbpe.demo import Plan; "
        f"demo.lines = {lines}; sys.exit(cli.main(['demo']))"
    )
    return [sys.executable, "-c", code]


SMALL_DEMO = command_with(f"functools.partial(demo.lines, {SMALL})")
posix = pytest.mark.skipif(os.name != "posix", reason="signals and terminals of POSIX")


def finished(command, stdout=subprocess.PIPE, **environment):
    """A finished process with its output as bytes."""
    return subprocess.run(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, **environment},
        timeout=60,
    )


@pytest.fixture
def small_demo(monkeypatch):
    monkeypatch.setattr(demo, "lines", functools.partial(demo.lines, SMALL))


def test_the_whole_demo_in_a_pipe():
    done = finished([*COMMAND, "demo"], PYTHONIOENCODING="utf-8")
    assert done.stderr == b""
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert "  The merges agree, and so do their counts and the ids of the encoded text." in lines
    assert any(line.startswith("  emoji ") and "👩\\u200d💻" in line for line in lines)
    assert lines[-1].endswith("an equal tokenizer, the same ids")


def test_version():
    done = finished([*COMMAND, "--version"])
    assert done.returncode == 0
    assert done.stdout.decode().splitlines() == [*installation.lines()]
    assert done.stdout.decode().startswith(f"tokbpe {__version__}\n")


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    assert caught.value.code == 0
    assert "example:\n  tokbpe demo\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_each_command_has_an_example_that_is_accepted(name, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([name, "--help"])
    assert caught.value.code == 0
    example = capsys.readouterr().out.partition("example:\n  tokbpe ")[2].splitlines()[0]
    assert example.split()[0] == name
    assert usage.parser(cli.COMMANDS).parse_args(example.split()).command is cli.COMMANDS[name]


@pytest.mark.parametrize("argv", [[], ["nothing"], ["demo", "more"], ["demo", "--more"], ["--x"]])
def test_wrong_use_is_told_on_standard_error(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("usage: tokbpe") and "error: " in output.err


def test_success(small_demo, capsys):
    assert cli.main(["demo"]) == 0
    output = capsys.readouterr()
    assert output.out.endswith(" an equal tokenizer, the same ids\n")
    assert output.err == ""


def test_a_difference_between_the_engines_is_a_failure(small_demo, monkeypatch, capsys):
    fast = engines.get("fast")
    train = fast.train

    def miscounting(*arguments, **options):
        merges, counts = train(*arguments, **options)
        return merges, counts + 1

    monkeypatch.setattr(fast, "train", miscounting)
    assert cli.main(["demo"]) == 1
    output = capsys.readouterr()
    assert output.err.startswith("tokbpe: error: the engines differ in merge 0 ")
    assert "agree" not in output.out


def test_a_python_without_sources_is_a_failure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo.sysconfig, "get_path", lambda name: str(tmp_path))
    assert cli.main(["demo"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("tokbpe: error: ") and output.err.count("\n") == 1
    assert str(tmp_path) in output.err


def test_an_engine_that_is_not_built_is_a_failure(small_demo, monkeypatch, capsys):
    engines.get("fast")
    monkeypatch.delitem(sys.modules, "tokbpe.fast")
    monkeypatch.setitem(sys.modules, "tokbpe.fast.train", None)
    assert cli.main(["demo"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("tokbpe: error: the compiled engine is not built")


def test_characters_that_the_output_lacks_are_escaped():
    done = finished(
        command_with("lambda progress: ['W\u00f6rter \u5b57']"), PYTHONIOENCODING="ascii"
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.split() == [rb"W\xf6rter", rb"\u5b57"]


@posix
@pytest.mark.parametrize("arguments", [["demo"], ["--help"]])
def test_a_broken_pipe_is_silent(arguments):
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "wb") as full:
        done = finished([*COMMAND, "demo"], stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith(b"tokbpe: error: ") and done.stderr.count(b"\n") == 1


def test_a_closed_output_is_a_failure(small_demo, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["demo"]) == 1
    assert "standard output is closed" in capsys.readouterr().err


@posix
def test_control_c_ends_the_demo():
    with subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"THE TEXT\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 130


def on_terminal(command, streams):
    """What a command writes to a terminal, on which the named streams are, and to pipes."""
    import fcntl
    import pty
    import struct
    import termios

    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        command,
        **{name: terminal if name in streams else subprocess.PIPE for name in ("stdout", "stderr")},
    ) as process:
        os.close(terminal)
        with os.fdopen(ours, "rb") as reading:
            seen = bytearray()
            # Linux reports the end as an error.
            try:
                while chunk := reading.read1(4096):
                    seen += chunk
            except OSError:
                pass
        piped = b"".join(
            stream.read() for stream in (process.stdout, process.stderr) if stream is not None
        )
    assert process.returncode == 0
    return bytes(seen), piped


@posix
def test_a_terminal_shows_a_progress_bar():
    seen, _ = on_terminal(SMALL_DEMO, {"stdout", "stderr"})
    assert b"merge/s" in seen
    assert b"The decoded text equals the input." in seen


@posix
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_progress_bar_beside_a_pipe(stream):
    assert b"merge/s" not in b"".join(on_terminal(SMALL_DEMO, {stream}))


# Work on files

TEXT = "low lower lowest <|e|> newest\n"
OTHER = bytes([0, 255]) + "Grüße 🐈".encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with two texts and a tokenizer of them."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text(TEXT)
    Path("other").write_bytes(OTHER)
    tokenizer = Tokenizer(
        [TEXT, OTHER],
        method="bpe",
        vocabulary_size=264,
        pattern="gpt2",
        special_tokens=["<|e|>"],
        reserved=["BOS", "EOS"],
    )
    tokenizer.save("saved")
    return tmp_path


@pytest.fixture
def run(folder, capsysbinary):
    """Run a command; its exit code, output and errors. Nothing but whole files may stay."""

    def run(*argv):
        try:
            code = cli.main([*argv])
        except SystemExit as exit:
            code = exit.code
        output = capsysbinary.readouterr()
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
        return code, output.out, output.err.decode()

    return run


def standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def saved():
    return Tokenizer.load("saved")


# train


def test_train(run):
    options = "--vocab-size 264 --pattern gpt2 --special <|e|> --reserved BOS --reserved EOS"
    assert run("train", "text", "other", "-o", "new", *options.split()) == (0, b"", "")
    assert Path("new").read_bytes() == Path("saved").read_bytes()


def test_train_with_every_option(run):
    options = (
        "--method bpe --vocab-size 262 --min-pair-frequency 1 --pattern none --tie-break greatest "
        "--base gpt2 --special a --special b --reserved X --special-ids end --engine reference"
    )
    assert run("train", "text", "-o", "new", *options.split()) == (0, b"", "")
    expected = Tokenizer(
        TEXT,
        method="bpe",
        vocabulary_size=262,
        minimum_pair_frequency=1,
        tie_break="greatest",
        base="gpt2",
        special_tokens=["a", "b"],
        reserved=["X"],
        special_ids="end",
    )
    assert Tokenizer.load("new").fingerprint() == expected.fingerprint()


@pytest.mark.parametrize("method", ["byte", "char", "word"])
def test_train_other_methods(run, method):
    assert run("train", "text", "-o", "new", "--method", method) == (0, b"", "")
    assert Tokenizer.load("new").fingerprint() == Tokenizer(TEXT, method=method).fingerprint()


def test_train_on_standard_input(run, monkeypatch):
    standard_input(monkeypatch, OTHER)
    assert run("train", "text", "-", "-o", "new") == (0, b"", "")
    assert Tokenizer.load("new") == Tokenizer([TEXT, OTHER], method="bpe")


def test_train_to_json(run):
    code, output, error = run("train", "text", "-o", "new.json", "--pattern", "gpt2")
    assert (code, output) == (0, b"")
    assert error == "tokbpe: warning: the file holds no pattern: use it with --pattern gpt2\n"
    expected = Tokenizer(TEXT, method="bpe", pattern="gpt2")
    assert Tokenizer.from_json("new.json", pattern="gpt2") == expected
    assert run("encode", "new.json", "text", "--pattern", "gpt2")[:2] == (
        0,
        f"{' '.join(map(str, expected.encode(TEXT)))}\n".encode(),
    )


def test_a_smaller_vocabulary_is_a_warning(run):
    code, output, error = run("train", "text", "-o", "new", "--vocab-size", "5000")
    assert (code, output) == (0, b"")
    assert error.startswith("tokbpe: warning: the corpus gave ") and error.count("\n") == 1


def test_train_never_replaces_a_file_and_says_so_before_the_work(run, monkeypatch):
    Path("new").symlink_to("absent")
    monkeypatch.setattr(cli, "Tokenizer", None)
    for path in "saved", "new":
        code, output, error = run("train", "text", "-o", path)
        assert (code, output) == (1, b"")
        assert error == f"tokbpe: error: {path}: this path exists, and no file is ever replaced\n"
    assert not Path("absent").exists()


def test_train_into_a_folder_that_is_not_there(run, monkeypatch):
    monkeypatch.setattr(cli, "Tokenizer", None)
    code, _, error = run("train", "text", "-o", "absent/new")
    assert (code, error) == (1, "tokbpe: error: absent: there is no such folder\n")


# count


@pytest.mark.parametrize("name", ["counts.npz", "counts.parquet"])
def test_count(run, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    options = "--pattern gpt2 --special <|e|> --threads 2"
    assert run("count", "text", "other", "-o", name, *options.split()) == (0, b"", "")
    options = "--vocab-size 264 --reserved BOS --reserved EOS --threads 1"
    assert run("train", "--counts", name, "-o", "new", *options.split()) == (0, b"", "")
    assert Path("new").read_bytes() == Path("saved").read_bytes()
    options = "--pattern gpt2 --special <|e|> --workers 1"
    assert run("count", "text", "other", "-o", f"2{name}", *options.split()) == (0, b"", "")
    assert Path(f"2{name}").read_bytes() == Path(name).read_bytes()
    code, _, error = run("count", "-", "-o", "new2", "--workers", "1")
    assert code == 2 and "--workers read files, and - is none" in error
    code, _, error = run("count", "text", "-o", name)
    assert (code, error.count("\n")) == (1, 1) and "no file is ever replaced" in error


def test_count_words_of_lines_on_standard_input(run, monkeypatch):
    standard_input(monkeypatch, b"low lower\nlow")
    options = "--pattern words --documents line --engine reference"
    assert run("count", "-", "-o", "counts.npz", *options.split()) == (0, b"", "")
    assert run("train", "--counts", "counts.npz", "-o", "new", "--method", "word") == (0, b"", "")
    expected = Tokenizer(["low lower", "low"], method="word")
    assert Tokenizer.load("new").fingerprint() == expected.fingerprint()


def test_train_with_what_are_no_counts(run):
    code, output, error = run("train", "--counts", "text", "-o", "new")
    assert (code, output) == (1, b"")
    assert error.startswith("tokbpe: error: text: these are no counts that tokbpe saved: ")
    code, _, error = run("train", "--counts", "absent", "-o", "new")
    assert (code, error) == (1, "tokbpe: error: absent: No such file or directory\n")


# encode


def test_encode(run):
    code, output, error = run("encode", "saved", "text", "other")
    assert (code, error) == (0, "")
    rows = [saved().encode(TEXT), saved().encode_bytes(OTHER)]
    assert [[int(id) for id in line.split()] for line in output.splitlines()] == rows


def test_an_empty_file_is_an_empty_line(run):
    Path("empty").touch()
    assert run("encode", "saved", "empty", "empty") == (0, b"\n\n", "")


def test_encode_special_tokens_only_where_they_are_allowed(run):
    special = saved().special_tokens["<|e|>"]
    for options, times in ([], 0), (["--allow-special", "<|e|>"], 1), (["--allow-special=all"], 1):
        _, output, _ = run("encode", "saved", "text", *options)
        assert output.split().count(str(special).encode()) == times


def test_encode_with_bos_and_eos(run, monkeypatch):
    standard_input(monkeypatch, b"a")
    assert run("encode", "saved", "-", "--bos", "--eos") == (0, b"257 97 258\n", "")


def test_encode_to_a_file(run):
    assert run("encode", "saved", "text", "other", "-o", "ids") == (0, b"", "")
    assert Path("ids").read_bytes() == run("encode", "saved", "text", "other")[1]


def test_encode_to_an_array(run):
    assert run("encode", "saved", "text", "-o", "ids.npy") == (0, b"", "")
    ids = np.load("ids.npy")
    assert ids.dtype == np.uint32
    assert ids.tolist() == saved().encode(TEXT)


def test_several_files_in_an_array_are_marked(run):
    code, output, error = run("encode", "saved", "text", "other", "-o", "ids.npy")
    assert (code, output) == (2, b"") and "mark it by --bos or --eos" in error
    assert run("encode", "saved", "text", "other", "-o", "ids.npy", "--eos") == (0, b"", "")
    rows = [saved().encode(TEXT, eos=True), saved().encode_bytes(OTHER, eos=True)]
    assert np.load("ids.npy").tolist() == sum(rows, [])


LINES = b"low lower\n\nlowest<|e|>\r\nnewest"
SPLIT = [b"low lower", b"", b"lowest<|e|>", b"newest"]


def test_encode_lines(run):
    Path("lines").write_bytes(LINES)
    rows = [" ".join(map(str, saved().encode_bytes(line))) for line in SPLIT]
    expected = "".join(f"{row}\n" for row in rows).encode()
    assert run("encode", "saved", "lines", "--documents", "line") == (0, expected, "")
    again = run("encode", "saved", "lines", "text", "--documents", "line")[1]
    assert again == expected + run("encode", "saved", "text", "--documents", "line")[1]
    parts = run("encode", "saved", "lines", "--documents", "<|e|>", "--bos")[1].splitlines()
    assert [line.split()[0] for line in parts] == [b"257", b"257"]


@pytest.mark.parametrize("name", ["ids.npy", "ids.bin"])
@pytest.mark.parametrize("dtype", ["uint32", "uint16", None])
def test_encode_lines_to_an_array(run, name, dtype):
    Path("lines").write_bytes(LINES)
    command = ["encode", "saved", "lines", "--documents", "line", "-o", name, "--eos"]
    options = [] if dtype is None else ["--dtype", dtype]
    assert run(*command, *options, "--threads", "1") == (0, b"", "")
    rows = [saved().encode_bytes(line, eos=True) for line in SPLIT]
    kind = np.dtype(dtype or "uint32").newbyteorder("<")
    if name == "ids.npy":
        ids = np.load(name)
        np.save("other.npy", np.array(sum(rows, []), kind))
        assert Path(name).read_bytes() == Path("other.npy").read_bytes()
    else:
        ids = np.fromfile(name, kind)
    assert ids.dtype == kind and ids.tolist() == sum(rows, [])


@pytest.mark.parametrize("name", ["ids", "ids.npy", "ids.bin"])
def test_a_large_document_is_written_in_parts(run, monkeypatch, name):
    monkeypatch.setattr(
        Tokenizer.encode_file,
        "__kwdefaults__",
        {**Tokenizer.encode_file.__kwdefaults__, "block_bytes": 50},
    )
    Path("large").write_text("low lower lowest \n\n" * 100)
    row = saved().encode("low lower lowest \n\n" * 100)
    assert run("encode", "saved", "large", "-o", name)[0] == 0
    if name == "ids":
        assert Path(name).read_text() == f"{' '.join(map(str, row))}\n"
        assert run("encode", "saved", "large")[1] == Path(name).read_bytes()
    else:
        ids = np.load(name) if name == "ids.npy" else np.fromfile(name, "<u4")
        assert ids.tolist() == row


def test_what_a_file_puts_around_a_text_marks_documents(run):
    vocabulary = Vocabulary("byte", (b"a", b"b"), special_tokens={"<s>": 2}, frame=((2,), ()))
    Tokenizer.from_vocabulary(vocabulary).save("framed")
    Path("lines").write_bytes(b"ab\nb")
    command = ["encode", "framed", "lines", "--documents", "line", "-o", "ids.npy"]
    assert run(*command)[0] == 2
    assert run(*command, "--add-special-tokens") == (0, b"", "")
    assert np.load("ids.npy").tolist() == [2, 0, 1, 2, 1]


def test_no_ids_in_an_array(run):
    Path("empty").touch()
    assert run("encode", "saved", "empty", "-o", "ids.npy") == (0, b"", "")
    assert run("encode", "saved", "empty", "-o", "ids.bin") == (0, b"", "")
    assert np.load("ids.npy").shape == (0,) and Path("ids.bin").read_bytes() == b""
    assert run("encode", "saved", "empty", "--documents", "line") == (0, b"", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-o ids.npy --documents line", "mark it by --bos or --eos"),
        ("-o ids.bin --documents x", "mark it by --bos or --eos"),
        ("-o ids --dtype uint16", "--dtype is for an output named *.npy or *.bin"),
        ("--dtype uint16", "--dtype is for an output named *.npy or *.bin"),
        ("-o ids.npy --dtype int64", "invalid choice: 'int64'"),
        ("--documents=", "the separator is empty"),
        ("--threads 0", "must be from 1 to"),
    ],
)
def test_encode_options_that_do_not_fit(run, options, message):
    code, output, error = run("encode", "saved", "text", *options.split(" "))
    assert (code, output) == (2, b"") and message in error
    assert not Path("ids").exists() and not Path("ids.npy").exists()


def test_a_type_that_is_too_small(run):
    Tokenizer.from_vocabulary(Vocabulary("byte", (b"a",), special_tokens={"<s>": 70_000})).save(
        "far"
    )
    code, output, error = run("encode", "far", "text", "-o", "ids.npy", "--dtype", "uint16")
    assert (code, output) == (2, b"") and "the highest id is 70000: use uint32" in error


def test_a_second_file_that_is_not_there_leaves_nothing(run):
    for name in ("ids", "ids.npy", "ids.bin"):
        code, output, error = run("encode", "saved", "text", "absent", "--eos", "-o", name)
        assert (code, output) == (1, b"")
        assert error == "tokbpe: error: absent: No such file or directory\n"
        assert not Path(name).exists()


def test_a_file_that_changes_leaves_nothing(run, monkeypatch):
    def changed(*arguments, **options):
        Path("text").write_text("other")
        return encode_batch_arrays(*arguments, **options)

    encode_batch_arrays = fast.encode_batch_arrays
    monkeypatch.setattr(fast, "encode_batch_arrays", changed)
    monkeypatch.setattr(
        Tokenizer.encode_file,
        "__kwdefaults__",
        {**Tokenizer.encode_file.__kwdefaults__, "block_bytes": 10},
    )
    Path("text").write_text(TEXT * 10)
    code, _, error = run("encode", "saved", "text", "-o", "ids")
    assert (code, error) == (1, "tokbpe: error: text: the file was changed while it was read\n")
    assert not Path("ids").exists()


class Growing(files.NamedFile):
    """A file that is longer, whenever it is read, than what was read of it."""

    def grow(self):
        end = os.path.getsize(self.name)
        assert end < 2**24, "it is read for ever"
        os.truncate(self.name, 2 * end)

    def readinto(self, buffer):
        self.grow()
        return super().readinto(buffer)

    def readall(self):
        self.grow()
        return super().readall()


@pytest.mark.parametrize(
    "command",
    [
        ["train", "text", "-o", "new"],
        ["page", "new", "--corpus", "text"],
        ["encode", "saved", "text", "-o", "new"],
        ["decode", "saved", "text", "-o", "new"],
    ],
    ids=lambda command: command[0],
)
def test_a_file_that_grows_as_fast_as_it_is_read(run, monkeypatch, command):
    readable = files.readable
    monkeypatch.setattr(
        files,
        "readable",
        lambda name, *more: (
            io.BufferedReader(Growing(name)) if name == "text" else readable(name, *more)
        ),
    )
    code, _, error = run(*command)
    assert (code, error) == (1, "tokbpe: error: text: the file was changed while it was read\n")
    assert not Path("new").exists()


def test_a_byte_that_is_not_in_the_vocabulary(run):
    run("train", "text", "-o", "new", "--method", "byte")
    code, output, error = run("encode", "new", "text", "other", "-o", "ids")
    assert (code, output) == (1, b"")
    assert error.startswith("tokbpe: error: other: byte 0x00 at byte position 0 is not in the ")
    assert not Path("ids").exists()


# decode


@pytest.mark.parametrize("name", ["ids", "ids.npy"])
def test_decode_gives_back_the_bytes(run, monkeypatch, name):
    run("encode", "saved", "other", "-o", name)
    assert run("decode", "saved", name) == (0, OTHER, "")
    assert run("decode", "saved", name, "-o", "back") == (0, b"", "")
    assert Path("back").read_bytes() == OTHER
    standard_input(monkeypatch, Path(name).read_bytes())
    assert run("decode", "saved", "-") == (0, OTHER, "")


def test_decode_ids_between_any_white_space(run):
    Path("ids").write_bytes(b"\n 97\t98\r\n99  ")
    Path("more").write_bytes(b"100")
    assert run("decode", "saved", "ids", "more", "ids") == (0, b"abcdabc", "")


def test_decode_without_special_tokens(run):
    Path("ids").write_bytes(b"257 97 256 258")
    assert run("decode", "saved", "ids") == (0, b"a<|e|>", "")
    assert run("decode", "saved", "ids", "--skip-special") == (0, b"a", "")


def test_unknown_ids_of_words(run):
    run("train", "text", "-o", "words", "--method", "word")
    Path("ids").write_bytes(b"99999")
    assert run("decode", "words", "ids") == (0, b"<UNK>", "")


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (b"97\n98 x99\n", "line 2: 'x99' is no id"),
        (b"97\n\n-1", "line 3: '-1' is no id"),
        (b"1_0", "line 1: '1_0' is no id"),
        (b"1.0", "line 1: '1.0' is no id"),
        ("٣".encode(), "line 1: '٣' is no id"),
        (b"\xff", "line 1: '<ff>' is no id"),
        (b"9" * 5000, "line 1: '999"),
        (b"97\n97 264 97\n", "line 2: id 264 at position 1 is not from 0 to 263"),
        (b"9999999999", "line 1: id 9999999999 at position 0 is not from 0 to 263"),
    ],
)
def test_a_bad_number_is_named_with_its_place(run, ids, problem):
    Path("ids").write_bytes(ids)
    code, output, error = run("decode", "saved", "ids", "-o", "back")
    assert (code, output) == (1, b"")
    assert error.startswith(f"tokbpe: error: ids: {problem}") and error.count("\n") == 1
    assert not Path("back").exists()


def npy(array, **options):
    written = io.BytesIO()
    np.save(written, array, **options)
    return written.getvalue()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (npy(np.array([97.0])), "the array must hold whole numbers in one dimension, not float64"),
        (npy(np.array([True])), "the array must hold whole numbers in one dimension, not bool"),
        (npy(np.array([[97]])), "the array must hold whole numbers in one dimension, not int64"),
        (npy(np.array(97)), "the array must hold whole numbers in one dimension, not int64"),
        (npy(np.array([97, 98]))[:-1], "this is no whole .npy file"),
        (npy(np.array([97, 98]))[:20], "this is no whole .npy file"),
        (npy(np.array([None]), allow_pickle=True), "this is no whole .npy file"),
        (npy(np.array([97, -1])), "id -1 at position 1 is not from 0 to 263"),
        (npy(np.array([2**40])), "id 1099511627776 at position 0 is not from 0 to 263"),
    ],
)
def test_a_bad_array_is_refused(run, data, problem):
    Path("ids").write_bytes(data)
    code, output, error = run("decode", "saved", "ids")
    assert (code, output) == (1, b"")
    assert error.startswith(f"tokbpe: error: ids: {problem}") and error.count("\n") == 1


# inspect


def test_inspect(run):
    code, output, error = run("inspect", "saved", "--merges", "2")
    assert (code, error) == (0, "")
    facts = dict(line.split("  ", 1) for line in output.decode().splitlines()[:-2])
    facts = {name: value.strip() for name, value in facts.items()}
    assert facts["method"] == "bpe"
    assert facts["merges"] == "5"
    assert facts["base"] == "256 bytes, order 'bytes'"
    assert facts["pattern"] == "gpt2"
    assert facts["tie break"] == "smallest"
    assert facts["special tokens"] == "'<|e|>' 256"
    assert facts["reserved"] == "'BOS' 257, 'EOS' 258"
    assert facts["lossless"] == "yes"
    assert facts["fingerprint"] == saved().fingerprint()
    assert "documents 2" in facts["trainings"] and "hashes" not in facts["trainings"]
    merges = output.decode().splitlines()[-2:]
    assert merges[0].split() == ["first", "merges", "259", "3", "'l'", "+", "'o'", "=", "'lo'"]
    assert merges[1].split()[0] == "260"


@pytest.mark.parametrize("engine", engines.NAMES)
@pytest.mark.parametrize("options", ["", "--method byte", "--method word", "--pattern gpt2"])
def test_inspect_tells_of_memory(run, monkeypatch, engine, options):
    monkeypatch.setenv("TOKBPE_ENGINE", engine)
    run("train", "text", "-o", "new", *options.split())
    lines = run("inspect", "new")[1].decode().splitlines()
    (line,) = [line for line in lines if line.startswith("cache ")]
    memory = json.loads(run("inspect", "new", "--json")[1])["cache"]
    if engine == "reference":
        assert memory is None and line.split() == ["cache", "none"]
        return
    assert memory["limit"] == 2**26 and 0 <= memory["used"] <= 2**26
    assert (memory["used"] > 10_000) == (options != "--method word")
    assert line == f"cache              limit {memory['limit']:,}, used {memory['used']:,}"


def test_inspect_as_json(run):
    code, output, error = run("inspect", "saved", "--json")
    assert (code, error) == (0, "")
    facts = json.loads(output)
    assert facts["vocab_size"] == facts["target_vocab_size"] == 264
    assert facts["special_tokens"] == {"<|e|>": 256}
    assert facts["trainings"][0]["bytes"] == len(TEXT) + len(OTHER)
    assert facts["first_merges"][0] == {
        "id": 259,
        "left": "6c",
        "right": "6f",
        "piece": "6c6f",
        "count": 3,
    }
    assert len(facts["first_merges"]) == facts["merges"] == 5


@pytest.mark.parametrize(
    ("options", "base"),
    [
        ("--base gpt2", "256 bytes, order 'gpt2'"),
        ("--method byte", "13 bytes"),
        ("--method char", "13 characters"),
        ("--method word", "22 characters, inner and final"),
    ],
)
def test_inspect_tells_the_base(run, options, base):
    run("train", "text", "-o", "new", *options.split())
    assert json.loads(run("inspect", "new", "--json")[1])["base"] == base


def test_inspect_what_was_imported(run):
    Path("a.json").write_text('{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}')
    output = run("inspect", "a.json")[1].decode().splitlines()
    assert "base               2 bytes" in output
    assert "trainings          none" in output
    assert output[-1].split() == ["first", "merges", "2", "'a'", "+", "'b'", "=", "'ab'"]


def test_inspect_keeps_a_line_for_each_fact(run):
    run("train", "text", "-o", "new", "--special", "a\nb_c", "--pattern", "[a-z]+|\n")
    output = run("inspect", "new", "--merges", "0")[1].decode().splitlines()
    assert "special tokens     'a\\nb_c' 256" in output
    assert "pattern            [a-z]+|\\n" in output
    assert all(line[18] == " " for line in output)


# check


def test_check(run, monkeypatch):
    standard_input(monkeypatch, OTHER)
    code, output, error = run("check", "text", "-", "--merges", "5", "--bytes", "20")
    assert (code, error) == (0, "")
    lines = output.decode().splitlines()
    assert lines[0].startswith("20 bytes from 2 files")
    assert lines[1] == "  5 merges at most for each tie rule, pattern cl100k"
    assert lines[-1] == "The engines agree in all of this."


def test_check_without_a_pattern(run):
    assert b"1 pieces, 1 distinct" in run("check", "text", "--pattern", "none")[1]


def test_a_difference_is_a_failure(run, monkeypatch):
    fast = engines.get("fast")
    encode = fast.encode
    monkeypatch.setattr(fast, "encode", lambda *arguments: encode(*arguments)[1:])
    code, output, error = run("check", "text")
    assert code == 1
    assert b"  The smallest text found, 1 bytes:\n" in output
    assert error == "tokbpe: error: reference and fast differ in the ids (ties smallest)\n"


def test_check_takes_some_seconds_only():
    assert (check.Plan.bytes, check.Plan.merges, check.LONGEST_DOCUMENT) == (50_000, 200, 1000)


# Wrong use and failures


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("train", "-o/--output"),
        ("train -o new", "give the FILEs to learn from, or --counts"),
        ("train text -o new --counts text", "give the FILEs to learn from, or --counts"),
        ("train -o new --counts text --pattern gpt2", "--pattern and --special are those of"),
        ("train text -o new --threads 0", "must be from 1 to"),
        ("count -o new", "FILE"),
        ("count text -o -", "-o must be a file"),
        ("count text -o new --pattern cl200k", "pattern 'cl200k' is none of"),
        ("train text", "-o/--output"),
        ("train text -o -", "-o must be a file"),
        ("train - - -o new", "- can be read once only"),
        ("train text -o new --method nothing", "invalid choice: 'nothing'"),
        ("train text -o new --vocab-size many", "must be a whole number, not 'many'"),
        ("train text -o new --vocab-size 0", "must be from 1 to 4294967295, not 0"),
        ("train text -o new --vocab-size 255", "must be from 256 to 4294967295, not 255"),
        ("train text -o new --min-pair-frequency 0", "must be from 1 to"),
        ("train text -o new --pattern (a", "pattern '(a' is refused at position 0"),
        ("train text -o new --pattern cl200k", "pattern 'cl200k' is none of"),
        ("train text -o new --method word --pattern gpt2", "the word method has no pattern"),
        ("train text -o new --method byte --vocab-size 300", "the byte method has no vocab"),
        ("train text -o new --special a --special a", "holds 'a' twice"),
        ("train text -o new.json --special a", "a .json file holds bytes and merges alone"),
        ("train text -o new.json --reserved A", "a .json file holds bytes and merges alone"),
        ("train text -o new.json --method char", "a .json file holds bytes and merges alone"),
        ("encode saved", "FILE"),
        ("encode saved text --allow-special <x>", "'<x>' is no special token"),
        ("encode saved text --pattern gpt2", "saved: --pattern is not for the format tokbpe"),
        ("encode new.json text --pattern (", "is refused"),
        ("decode saved text --bos", "unrecognized arguments: --bos"),
        ("inspect saved saved", "unrecognized arguments: saved"),
        ("inspect saved --merges -1", "--merges"),
        ("check text --bytes 0", "must be from 1 to"),
        ("check text --merges 1e3", "must be a whole number, not '1e3'"),
    ],
)
def test_wrong_use(run, command, problem):
    code, output, error = run(*command.split())
    assert (code, output) == (2, b"")
    # What argparse does not know, it tells with the usage of the whole.
    whole = "unrecognized" in problem
    assert error.startswith(f"usage: tokbpe {'[-h]' if whole else command.split()[0]} ")
    assert problem in error.splitlines()[-1]
    assert not Path("new").exists() and not Path("new.json").exists()


def test_a_reserved_id_that_is_not_there(run):
    run("train", "text", "-o", "new")
    for option, name in ("--bos", "BOS"), ("--eos", "EOS"):
        code, _, error = run("encode", "new", "text", option)
        assert code == 2 and f"there is no reserved id '{name}'" in error


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("train absent -o new", "absent: No such file or directory"),
        ("train . -o new", ".: Is a directory"),
        ("train empty -o new", "the corpus holds no bytes"),
        ("train other -o new --method char", "'utf-8' codec can't decode byte 0xff"),
        ("encode absent text", "absent: No such file or directory"),
        ("encode text text", "text: this is no tokenizer"),
        ("encode saved text absent -o new", "absent: No such file or directory"),
        ("encode saved text -o text", "text: this path exists"),
        ("encode saved text -o absent/new", "absent: there is no such folder"),
        ("encode absent.json text", "absent.json: No such file or directory"),
        ("decode saved absent -o new", "absent: No such file or directory"),
        ("decode saved text -o text", "text: this path exists"),
        ("inspect text", "text: this is no tokenizer"),
        ("check absent", "absent: No such file or directory"),
        ("check empty", "the files hold no bytes"),
    ],
)
@posix
def test_failures(run, command, problem):
    Path("empty").touch()
    code, output, error = run(*command.split())
    assert (code, output) == (1, b"")
    assert error.startswith(f"tokbpe: error: {problem}") and error.count("\n") == 1
    assert not Path("new").exists()
    assert Path("text").read_text() == TEXT


def test_a_closed_standard_input_is_a_failure(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    code, output, error = run("encode", "saved", "-")
    assert (code, output) == (1, b"")
    assert error.startswith("tokbpe: error: standard input: ")


def test_closed_outputs(run, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert run("train", "text", "-o", "new") == (0, b"", "")  # it has nothing to say
    code, _, error = run("encode", "saved", "text")
    assert (code, "standard output is closed" in error) == (1, True)
    monkeypatch.setattr(sys, "stderr", None)
    assert run("encode", "saved", "absent") == (1, b"", "")


# From outside


@posix
def test_commands_in_a_pipe(folder):
    script = (
        "printf 'low lower lowest' | $tokbpe train - -o new --vocab-size 258 && "
        "printf 'slow\\0\\377' | $tokbpe encode new - | $tokbpe decode new - && "
        "$tokbpe encode new absent"
    )
    command = f"'{sys.executable}' -m tokbpe"
    done = finished(["/bin/sh", "-c", script.replace("$tokbpe", command)])
    assert done.returncode == 1
    assert done.stdout == b"slow\0\xff"
    assert done.stderr == b"tokbpe: error: absent: No such file or directory\n"


@posix
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["encode", "decode"])
def test_work_into_a_broken_pipe_is_silent(folder, command, unbuffered):
    Path("long").write_bytes(b"97 " * 1_000_000)
    with subprocess.Popen(
        [*COMMAND, command, "saved", "long"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@posix
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_training_shows_a_bar_and_a_summary_on_a_terminal_only(folder, stream):
    # The first merges pass before a bar is drawn.
    command = [*COMMAND, "train", "text", "-o", "new", "--min-pair-frequency", "1"]
    seen, piped = on_terminal(command, {stream})
    assert piped == b""
    if stream == "stderr":
        assert b"merge/s" in seen
        size, merges = Tokenizer.load("new").vocab_size, len(Tokenizer.load("new").merges)
        assert f"tokbpe: {size} ids, {merges} merges from 30 bytes in ".encode() in seen
    else:
        assert seen == b""


@posix
@pytest.mark.parametrize(
    "command",
    ["encode saved - -o new", "encode saved - -o new.npy", "train - -o new", "count - -o new.npz"],
)
def test_control_c_leaves_no_file(command, folder):
    """While it waits for more of its input."""
    before = sorted(os.listdir())
    with subprocess.Popen(
        [*COMMAND, *command.split()], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"low lower\n" * 50_000)  # more than a pipe holds
        # Python sees no signal that comes between two reads of a pipe before it gives more.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)  # another signal while it ends would end it at once
        assert process.stderr.read() == b""
    assert process.returncode == cli.INTERRUPTED
    assert sorted(os.listdir()) == before


@posix
def test_files_have_the_rights_of_new_files(run):
    mask = os.umask(0o027)
    try:
        run("encode", "saved", "text", "-o", "ids")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(Path("ids").stat().st_mode) == 0o640
