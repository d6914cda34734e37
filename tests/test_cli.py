"""The command line: exit codes, what goes to which stream, terminals and pipes."""

import functools
import os
import signal
import subprocess
import sys

import pytest

from tokbpe import __version__, cli, demo, engines

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
    assert lines[-1] == "  The decoded text equals the input."


def test_version():
    done = finished([*COMMAND, "--version"])
    assert done.returncode == 0
    assert done.stdout.decode().strip() == f"tokbpe {__version__}"


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    assert caught.value.code == 0
    assert "example:\n  tokbpe demo\n" in capsys.readouterr().out


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
    assert output.out.endswith("\n  The decoded text equals the input.\n")
    assert output.err == ""


def test_a_difference_between_the_engines_is_a_failure(small_demo, monkeypatch, capsys):
    fast = engines.get("fast")
    train = fast.train

    def miscounting(*args):
        merges, counts = train(*args)
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


def test_a_closed_output_is_no_failure(small_demo, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["demo"]) == 0
    assert capsys.readouterr().err == ""


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
