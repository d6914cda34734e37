"""New files appear complete or not at all, and never in the place of another."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tokbpe import files

WAYS = ["unnamed", "named", "renamed"]
# How a process chooses the way; the lines before a script.
CHOOSE = f"""
import os
def no_links(*args, **options):
    raise OSError({errno.EPERM}, "no links here")
if way != "unnamed" and hasattr(os, "O_TMPFILE"):
    del os.O_TMPFILE
if way == "renamed":
    os.link = no_links
"""

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch, tmp_path):
    """Each way to publish a file in turn, as far as the system has it."""

    def no_links(*args, **options):
        raise OSError(errno.EPERM, "no links here")

    if request.param == "unnamed":
        try:
            os.close(os.open(tmp_path, os.O_TMPFILE | os.O_WRONLY))
        except (AttributeError, OSError):
            pytest.skip("this system, or the file system of the test, lacks unnamed files")
        monkeypatch.setattr(files, "named_file", None)
    else:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    if request.param == "renamed":
        monkeypatch.setattr(os, "link", no_links)
    return request.param


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file(way, folder):
    files.publish(folder / "a", b"content\0" * 100_000)
    files.publish(os.fsencode(folder / "b"), b"")
    files.publish(str(folder / "ü 好"), b"x")
    assert (folder / "a").read_bytes() == b"content\0" * 100_000
    assert (folder / "b").read_bytes() == b""
    assert names(folder) == ["a", "b", "ü 好"]


def test_a_path_without_a_folder(way, folder, monkeypatch):
    monkeypatch.chdir(folder)
    files.publish("a", b"content")
    assert (folder / "a").read_bytes() == b"content"


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_mode_is_that_of_any_new_file(way, folder):
    before = os.umask(0o027)
    try:
        files.publish(folder / "a", b"content")
    finally:
        os.umask(before)
    assert (folder / "a").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["file", "empty", "folder", "link", "dangling"])
def test_what_exists_is_never_replaced(way, folder, kind, monkeypatch):
    target = folder / "a"
    if kind == "folder":
        target.mkdir()
    elif kind in ("link", "dangling"):
        if kind == "link":
            (folder / "other").write_bytes(b"precious")
        target.symlink_to(folder / "other")
    else:
        target.write_bytes(b"precious" if kind == "file" else b"")
    before = [(path, path.lstat()) for path in folder.iterdir()]
    monkeypatch.setattr(files, "write", None)  # seen before anything is written
    with pytest.raises(FileExistsError, match="exists") as raised:
        files.publish(target, b"content")
    assert raised.value.filename == str(target)
    assert [(path, path.lstat()) for path in folder.iterdir()] == before


def test_what_appears_in_the_meantime_is_not_replaced(way, folder, monkeypatch):
    target = folder / "a"
    write = files.write

    def slow_write(file, data):
        write(file, data)
        target.write_bytes(b"precious")

    monkeypatch.setattr(files, "write", slow_write)
    with pytest.raises(FileExistsError) as raised:
        files.publish(target, b"content")
    assert raised.value.filename == str(target)
    assert target.read_bytes() == b"precious"
    assert names(folder) == ["a"]


def test_faults_of_the_path_name_it(folder, monkeypatch):
    (folder / "file").write_bytes(b"")
    for target, error in [
        (folder / "missing" / "a", FileNotFoundError),
        (folder / "file" / "a", NotADirectoryError if os.name == "posix" else OSError),
        (folder / ("a" * 300), OSError),
    ]:
        with pytest.raises(error) as raised:
            files.publish(target, b"content")
        assert raised.value.filename == str(target)
    assert names(folder) == ["file"]
    with pytest.raises(ValueError, match="null"):
        files.publish(str(folder / "a\0b"), b"content")
    with pytest.raises(TypeError):
        files.publish(5, b"content")
    assert names(folder) == ["file"]


@contextmanager
def as_a_user_that_may_not_write(folder):
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)  # root may write everywhere
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@POSIX
def test_a_folder_that_is_not_writable(folder):
    with as_a_user_that_may_not_write(folder), pytest.raises(PermissionError) as raised:
        files.publish(folder / "a", b"content")
    assert raised.value.filename == str(folder / "a")
    assert names(folder) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_nothing(way, folder, monkeypatch, error):
    def failing_write(file, data):
        file.write(data[:1000])
        file.flush()
        raise error

    monkeypatch.setattr(files, "write", failing_write)
    with pytest.raises(type(error)) as raised:
        files.publish(folder / "a", b"content" * 1000)
    if isinstance(error, OSError):
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(folder / "a"))
    assert names(folder) == []


def script(way, lines, *arguments):
    text = f"way = {way!r}\n{CHOOSE}\nimport sys\nfrom tokbpe import files\n{lines}"
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # Python warns of a fork with threads
    )


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    files.publish(sys.argv[1], b"content" * 100_000)
except OSError as error:
    print(error.errno, error.filename)
"""


@POSIX
@pytest.mark.parametrize("way", WAYS)
def test_a_limit_on_the_size_of_files(way, folder):
    output, errors = script(way, LIMITED, folder / "a").communicate(timeout=60)
    assert (output, errors) == (f"{errno.EFBIG} {folder / 'a'}\n", "")
    assert names(folder) == []


# Killed

SIZE = 2_000_000

# One process forks each one that is to be killed.
KILL = """
import random, signal, time
content = b"content" * (int(sys.argv[2]) // 7)

def in_a_process(work):
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            os._exit(0)
    return process

def folder(number):
    path = os.path.join(sys.argv[1], str(number))
    os.mkdir(path)
    return path
"""

AT_EACH_LINE = """
def save(path, last):
    lines = 0
    def count(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename != files.__file__:
            return None
        lines += event == "line"
        if lines == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return count
    sys.settrace(count)
    files.publish(path, content)

number, status = 0, signal.SIGKILL
while status == signal.SIGKILL:
    path = os.path.join(folder(number), "a")
    number += 1
    _, status = os.waitpid(in_a_process(lambda: save(path, number)), 0)
print(status)
"""

AT_ANY_TIME = """
def save(path):
    for number in range(100_000):
        files.publish(os.path.join(path, str(number)), content)

moments = random.Random(5)
for number in range(30):
    path = folder(number)
    process = in_a_process(lambda: save(path))
    time.sleep(moments.uniform(0, 0.05))
    os.kill(process, signal.SIGKILL)
    print(os.waitpid(process, 0)[1])
"""


def complete_files(folder, way):
    """How many files stand in the folder, all of them complete.

    Only the way without unnamed files may leave a hidden file there.
    """
    paths = list(folder.iterdir())
    if way != "unnamed" or not hasattr(os, "O_TMPFILE"):
        paths = [path for path in paths if not path.name.startswith(".tokbpe-")]
    for path in paths:
        assert path.read_bytes() == b"content" * (SIZE // 7), path.name
    return len(paths)


def folders(tmp_path):
    return sorted(tmp_path.iterdir(), key=lambda path: int(path.name))


@POSIX
@pytest.mark.parametrize("way", WAYS)
def test_killed_at_each_line(way, tmp_path):
    output, errors = script(way, KILL + AT_EACH_LINE, tmp_path, SIZE).communicate(timeout=100)
    assert (output, errors) == ("0\n", "")
    there = [complete_files(folder, way) for folder in folders(tmp_path)]
    # Not there, from some line on there.
    assert there == sorted(there)
    assert len(there) > 10 and there[0] == 0 and there[-1] == 1


@POSIX
@pytest.mark.parametrize("way", WAYS)
def test_killed_at_any_time(way, tmp_path):
    output, errors = script(way, KILL + AT_ANY_TIME, tmp_path, SIZE).communicate(timeout=100)
    assert (output, errors) == (f"{int(signal.SIGKILL)}\n" * 30, "")
    there = [complete_files(folder, way) for folder in folders(tmp_path)]
    assert len(there) == 30 and sum(there) > 0
