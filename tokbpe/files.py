"""Reading a file, and publishing one: all of it or nothing, and never in the place of another."""

import contextlib
import errno
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeAlias

LARGEST = 2**28
STEP = 2**20

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def read(path: Path) -> bytes:
    """The bytes of a file; ValueError for more than LARGEST."""
    with opened(path) as file:
        return rest_of(file, b"")


def named_read(path: Path) -> bytes:
    """The same; the ValueError names the file."""
    with naming(path):
        return read(path)


def opened(path: Path) -> IO[bytes]:
    """A file to read from, or a pipe, which is empty if nobody has it open to write to.

    OSError for a device, which may never come to an end.
    """
    return readable(os.fspath(path), without_waiting)  # not a number, an open file


class NamedFile(io.FileIO):
    """A file to read from, whose errors name it."""

    def readinto(self, buffer: Any) -> Any:
        with naming_target(os.fsdecode(self.name)):
            return super().readinto(buffer)

    def readall(self) -> Any:
        with naming_target(os.fsdecode(self.name)):
            return super().readall()


def readable(
    path: str | bytes, opener: Callable[[str, int], int] | None = None
) -> io.BufferedReader:
    """A file to read from, whose errors name it."""
    check_path(path)
    return io.BufferedReader(NamedFile(path, opener=opener))


def without_waiting(name: str, flags: int) -> int:
    """Opened, also if it is a pipe that nobody writes to."""
    check_kind(os.stat(name), name)  # to open a device may do something
    if not hasattr(os, "O_NONBLOCK"):
        return os.open(name, flags)
    descriptor = os.open(name, flags | os.O_NONBLOCK)
    try:
        check_kind(os.fstat(descriptor), name)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_path(path: Path) -> None:
    """ValueError, naming it, for what no system takes for a path; else Python names none."""
    if "\0" in os.fsdecode(path):
        raise ValueError(f"the path {path!r} has a null byte, which no path has")


def check_kind(status: os.stat_result, name: str) -> None:
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise OSError(errno.EINVAL, "this is a device, and no file", name)


def rest_of(file: IO[bytes], start: bytes) -> bytes:
    """All bytes of a file of which so many are read; ValueError for more than LARGEST."""
    parts, total = [start], len(start)
    size = os.fstat(file.fileno()).st_size  # 0 for a pipe
    while max(size, total) <= LARGEST:
        # Python asks for memory for all that might be read.
        part = file.read(max(size + 1 - total, STEP))
        if not part:
            return b"".join(filter(None, parts))
        parts.append(part)
        total += len(part)
    raise ValueError(f"the file has more than {LARGEST} bytes, which no such file needs")


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """A ValueError that is raised inside names the file; so does one for what is nested so deeply
    that Python cannot follow."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{os.fsdecode(path)}: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{os.fsdecode(path)}: what it holds is nested too deeply") from error


@contextlib.contextmanager
def naming_damage(name: str) -> Iterator[None]:
    """An OSError that names the file, where the file itself, such as one of gzip, names none."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        code = getattr(error, "errno", None) or errno.EIO
        raise OSError(code, getattr(error, "strerror", None) or str(error), name) from error


def publish(path: Path, data: bytes) -> None:
    """Write a new file: `new_file` for what is in memory."""
    with new_file(path) as file:
        write(file, data)


@contextlib.contextmanager
def new_file(path: Path, alone: bool = True) -> Iterator[IO[bytes]]:
    """A new file to write to, which appears at the path in one step and complete when all is
    written, also if the process is killed.

    alone: whether nothing else is done meanwhile. If not, an OSError may be of something else, and
    `naming_target` must stand around each write.

    FileExistsError if anything stands at the path, a dangling link included; another OSError if
    the file cannot be written. Both name the path, and nothing is left behind.
    """
    check_path(path)
    target = os.fsdecode(path)
    with naming_target(target):
        if os.path.lexists(target):
            raise already_there()
        descriptor = unnamed(target)
    if descriptor is None:
        with named_file(target, alone) as file:
            yield file
    else:
        # To close it writes what is left.
        with naming_writes(target, alone) as own, open(descriptor, "w+b") as file:
            with own:
                yield file
            with naming_target(target):
                finish(file)
                if not linked(descriptor, target):
                    import shutil

                    file.seek(0)
                    with named_file(target) as copy:
                        shutil.copyfileobj(file, copy)
    sync_folder(target)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[str]:
    """A folder to write files into, which appears at the path in one step when all are written.

    FileExistsError if anything stands at the path; another OSError if there is no way to write
    there. Both name the path, and nothing is left behind, unless the process is killed.
    """
    check_path(path)
    target = os.path.normpath(os.fsdecode(path))
    temporary = os.path.join(folder_of(target), f".tokbpe-{os.urandom(8).hex()}")
    try:
        os.mkdir(temporary)
        try:
            yield temporary
            rename(temporary, target)
        except BaseException:
            import shutil

            shutil.rmtree(temporary)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error
    sync_folder(target)


def unnamed(target: str) -> int | None:
    """A new file without a name, of which a killed process leaves nothing.

    None where the system or the file system lacks such files.
    """
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.open(folder_of(target), os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:
        return None  # a fault of the folder is met again, by the other way


def linked(descriptor: int, target: str) -> bool:
    """Give a file its name; False where there is no way to."""
    try:
        # `src_dir_fd` is of no use to an absolute path, but makes Python call `linkat`, which
        # follows the link in /proc to the file.
        link = f"/proc/self/fd/{descriptor}"
        os.link(link, target, src_dir_fd=descriptor, follow_symlinks=True)
    except FileExistsError:
        raise
    except OSError:
        return False  # no /proc
    return True


@contextlib.contextmanager
def named_file(target: str, alone: bool = True) -> Iterator[IO[bytes]]:
    """A hidden file beside the target, which a killed process leaves there."""
    temporary = os.path.join(folder_of(target), f".tokbpe-{os.urandom(8).hex()}")
    with naming_target(target):
        file = open(temporary, "xb")  # noqa: SIM115  (closed below: errors there are told else)
    try:
        with naming_writes(target, alone) as own, file:
            with own:
                yield file
            with naming_target(target):
                finish(file)
        with naming_target(target):
            try:
                os.link(temporary, target)
            except FileExistsError:
                raise
            except OSError:
                rename(temporary, target)
    finally:
        with naming_target(target), contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


@contextlib.contextmanager
def naming_target(target: str) -> Iterator[None]:
    """An OSError that is raised inside names the target: the caller knows that, but not what it
    is written through."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error


@contextlib.contextmanager
def naming_writes(target: str, alone: bool) -> Iterator[contextlib.AbstractContextManager[None]]:
    """The same where a caller writes: that names no file. What names one may be reading it.

    Gives what stands around all that the caller does: if he does not write `alone`, errors there
    are left as they are.
    """
    others: list[OSError] = []

    @contextlib.contextmanager
    def own() -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not alone:
                others.append(error)
            raise

    try:
        yield own()
    except OSError as error:
        if error.filename is not None or error in others:
            raise
        raise OSError(error.errno, error.strerror, target) from error


def rename(temporary: str, target: str) -> None:
    """For file systems without hard links. Windows itself refuses a target that exists;
    elsewhere one that appears between the two calls is replaced."""
    if os.path.lexists(target):
        raise already_there()
    os.rename(temporary, target)


def write(file: IO[bytes], data: bytes) -> None:
    file.write(data)


def finish(file: IO[bytes]) -> None:
    """Have what was written on the disk, not only in the system's memory."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(target: str) -> None:
    """Make the new name last, where folders can be synchronized. The file is there anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder_of(target), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def folder_of(target: str) -> str:
    return os.path.dirname(target) or os.curdir


def already_there() -> FileExistsError:
    return FileExistsError(errno.EEXIST, "this path exists, and no file is ever replaced")
