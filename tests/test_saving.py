"""Whatever writes a file of its own: it stands there complete, or nothing does.

Where the disk is full, where nothing may be written, where the process is killed; and what is
written is on the disk before it has its name. How `tokbpe.files` does that is tested in
`test_publishing`, what is special about shards in `test_shards` and `test_kill_and_restart`.
"""

import errno
import os
import random
import shutil
import signal
import time

import numpy as np
import pytest

from test_publishing import as_a_user_that_may_not_write
from test_shards import small_disk
from tokbpe import Corpus, PieceCounts, Tokenizer, write_shards

resource = pytest.importorskip("resource", reason="limits of POSIX")
pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
LETTERS = np.random.default_rng(1).integers(97, 123, 40_000).astype(np.uint8).tobytes().decode()
TOKENIZER = Tokenizer(
    " ".join(LETTERS[start : start + 5] for start in range(0, 40_000, 5)),
    method="bpe",
    vocabulary_size=1500,
    pattern="gpt2",
)
COUNTS = PieceCounts(LETTERS.replace("e", " "), pattern="gpt2")
CORPUS = Corpus([LETTERS])


def save_parquet(path):
    pytest.importorskip("pyarrow")
    COUNTS.to_parquet(path)


# What writes, to a path; a file, or a folder of files.
SAVES = {
    "save": TOKENIZER.save,
    "to_json": TOKENIZER.to_json,
    "to_tiktoken": TOKENIZER.to_tiktoken,
    "to_huggingface": TOKENIZER.to_huggingface,
    "to_gpt2": lambda path: TOKENIZER.to_gpt2(path.parent),
    "counts": COUNTS.save,
    "parquet": save_parquet,
}


@pytest.fixture(params=SAVES)
def save(request):
    return SAVES[request.param]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def complete(save, tmp_path):
    """The files, as they are when nothing goes wrong."""
    (tmp_path / "complete").mkdir()
    save(tmp_path / "complete" / "file")
    return contents(tmp_path / "complete")


# A disk that is full


def sizes(complete):
    """Room that is too little for some of it, from none at all on."""
    largest = max(map(len, complete.values()))
    return [0, 1, 100, 5000, *(largest * part // 10 for part in range(1, 10)), largest - 1]


def test_a_limit_on_the_size_of_files(save, complete, folder):
    """Python ignores the signal that the system sends then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in sizes(complete):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            with pytest.raises(OSError) as raised:
                save(folder / "file")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert raised.value.errno == errno.EFBIG
        assert os.path.dirname(raised.value.filename) == str(folder)
        assert contents(folder) == {}
    save(folder / "file")
    assert contents(folder) == complete


def test_a_disk_that_is_full(save, complete, tmp_path):
    needed = sum(map(len, complete.values()))
    with small_disk(tmp_path / "disk") as resize:
        folder = tmp_path / "disk"
        resize(2 * needed + 2**20)
        resize_to_pages = [1, *(needed * part // 4096 // 8 for part in range(1, 8))]
        failed = 0
        for pages in filter(None, resize_to_pages):
            resize(4096 * pages)
            try:
                save(folder / "file")
            except OSError as error:
                assert error.errno == errno.ENOSPC
                assert os.path.dirname(error.filename) == str(folder)
                assert contents(folder) == {}
                failed += 1
            else:
                assert contents(folder) == complete
                for path in folder.iterdir():
                    path.unlink()
        assert failed
        resize(2 * needed + 2**20)
        save(folder / "file")
        assert contents(folder) == complete


# A folder in which nothing may be written


def test_a_folder_that_is_read_only(save, folder):
    with as_a_user_that_may_not_write(folder), pytest.raises(PermissionError) as raised:
        save(folder / "file")
    assert os.path.dirname(raised.value.filename) == str(folder)
    assert contents(folder) == {}


def test_shards_below_a_folder_that_is_read_only(folder):
    with as_a_user_that_may_not_write(folder), pytest.raises(PermissionError) as raised:
        write_shards(CORPUS, TOKENIZER, folder / "shards")
    assert raised.value.filename == str(folder / "shards")
    assert contents(folder) == {}


# Both files of GPT-2, or none


class Stopped(BaseException):
    pass


@pytest.mark.parametrize("step", range(12))
def test_two_files_or_none_when_stopped(folder, monkeypatch, step):
    """Before or behind each of the steps that the disk sees."""
    steps = iter(range(10**9))
    for real in (os.fsync, os.link):

        def stopping(*arguments, real=real, **options):
            if next(steps) == step:
                raise Stopped
            found = real(*arguments, **options)
            if next(steps) == step:
                raise Stopped
            return found

        monkeypatch.setattr(os, real.__name__, stopping)
    with pytest.raises(Stopped):
        TOKENIZER.to_gpt2(folder)
    assert contents(folder) == {}


@pytest.mark.parametrize("there", ["vocab.json", "merges.txt"])
def test_two_files_of_which_one_is_there(folder, there):
    (folder / there).write_bytes(b"precious")
    with pytest.raises(FileExistsError) as raised:
        TOKENIZER.to_gpt2(folder)
    assert raised.value.filename == str(folder / there)
    assert contents(folder) == {there: b"precious"}


def test_two_files_of_which_one_appears_meanwhile(folder, monkeypatch):
    real = os.link

    def link(*arguments, **options):
        if (folder / "vocab.json").exists():
            (folder / "merges.txt").write_bytes(b"precious")
        return real(*arguments, **options)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(FileExistsError):
        TOKENIZER.to_gpt2(folder)
    assert contents(folder) == {"merges.txt": b"precious"}


# Killed

ROUNDS = int(os.environ.get("TOKBPE_KILLS", "8"))  # of each kind


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are killed")
@pytest.mark.parametrize("kind", SAVES)
def test_killed_at_any_time(kind, tmp_path):
    """TOKBPE_KILLS: how often each kind is killed."""
    save = SAVES[kind]
    (tmp_path / "complete").mkdir()
    begun = time.perf_counter()
    save(tmp_path / "complete" / "file")
    longest = 2 * (time.perf_counter() - begun)
    complete = contents(tmp_path / "complete")
    moments = random.Random(kind)
    kills = 0
    while kills < ROUNDS:
        folder = tmp_path / "out"
        folder.mkdir()
        process = os.fork()
        if process == 0:
            try:
                while True:
                    save(folder / "file")
                    for path in folder.iterdir():
                        path.unlink()
            finally:
                os._exit(1)
        time.sleep(moments.uniform(0, longest))
        os.kill(process, signal.SIGKILL)
        assert os.waitpid(process, 0)[1] == signal.SIGKILL
        kills += 1
        # Of several files one may be there alone, but never a part of one.
        assert contents(folder).items() <= complete.items()
        for path in folder.iterdir():
            path.unlink()
        save(folder / "file")
        assert contents(folder) == complete
        shutil.rmtree(folder)


# On the disk


@pytest.fixture
def steps(monkeypatch):
    """What happens to files and folders, by their identity: they are written, are brought to the
    disk, get their name."""
    found = []

    def identity(status):
        return status.st_dev, status.st_ino

    def fsync(descriptor, real=os.fsync):
        status = os.fstat(descriptor)
        found.append(("sync", identity(status), status.st_size))
        return real(descriptor)

    def link(source, target, real=os.link, **options):
        found.append(("name", identity(os.stat(source)), os.path.dirname(target)))
        return real(source, target, **options)

    def rename(source, target, real=os.rename):
        found.append(("name", identity(os.stat(source)), os.path.dirname(target)))
        return real(source, target)

    for step in (fsync, link, rename):
        monkeypatch.setattr(os, step.__name__, step)
    return found


def check_order(steps, folder):
    """Each file is on the disk, complete, before it has a name there; then that name is."""
    files = {}
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            files[status.st_dev, status.st_ino] = status.st_size, path.parent
    assert files
    for file, (size, parent) in files.items():
        kinds = [(step[0], step[2]) for step in steps if step[1] == file]
        assert ("sync", size) in kinds
        named = next(i for i, step in enumerate(steps) if step[:2] == ("name", file))
        synced = steps.index(("sync", file, size))
        assert synced < named
        status = parent.stat()
        assert any(
            step[:2] == ("sync", (status.st_dev, status.st_ino)) for step in steps[named + 1 :]
        )


@pytest.mark.skipif(os.name != "posix", reason="folders that can be synchronized")
@pytest.mark.parametrize("unnamed", [True, False])
def test_files_are_on_the_disk_before_they_have_a_name(save, folder, steps, unnamed, monkeypatch):
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    save(folder / "file")
    check_order(steps, folder)


@pytest.mark.skipif(os.name != "posix", reason="folders that can be synchronized")
def test_shards_are_on_the_disk_before_they_have_a_name(folder, steps):
    write_shards(CORPUS, TOKENIZER, folder / "shards", shard_tokens=5000)
    check_order(steps, folder / "shards")
