"""The work of counting: of documents and of files, here or by the workers of an executor.

Whoever counts is an engine. Its table keeps the pieces in the order of their first appearance, on
which the tie rule "first" depends: so partial tables are joined in the order of the input.
"""

import bisect
import contextlib
import errno
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokbpe import arguments, engines, files, patterns, reading
from tokbpe.arguments import Documents
from tokbpe.corpus import Corpus
from tokbpe.count_files import Arrays
from tokbpe.engines import Table
from tokbpe.patterns import WORDS, Pattern
from tokbpe.progress import Report
from tokbpe.record import Record
from tokbpe.vocabulary import pattern_of

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

# Of a piece: from so many bytes on, and from such a part of the corpus, it is told about.
GIANT_BYTES = 2**16
GIANT_PART = 100

# Workers get so many bytes at a time, of documents or, a file at least, of files.
TASK_BYTES = 2**25
TASK_DOCUMENTS = 2**18
TASK_FILE_BYTES = 2**28
TASKS_FOR_EACH_WORKER = 4
MOST_WORKERS = 1024

# What a count in a dictionary takes, and before so many pieces more it is looked how much memory
# they may take.
INT_BYTES = sys.getsizeof(2**31)
PIECES_UNCHECKED = 1024


class DictTable:
    """The table of an engine that counts into a dictionary."""

    def __init__(self, memory_bytes: int | None = None, about: object = None) -> None:
        # The counts, the size of pieces and counts, what is known about them: all of one moment,
        # also where Python lets another thread on between any two instructions (3.10).
        self._now: tuple[dict[bytes, int], int, Any] = {}, 0, about
        self._memory_bytes = memory_bytes
        self._replacing = threading.Lock()

    @property
    def about(self) -> Any:
        return self._now[2]

    def __len__(self) -> int:
        return len(self._now[0])

    def get(self, piece: bytes, default: int | None = None) -> int | None:
        return self._now[0].get(piece, default)

    def add(self, other: "DictTable", before: object = None, about: object = None) -> bool:
        """Count what another table has counted, and be `about` that; new pieces follow in its
        order. False, and nothing done, if this table is not about `before` any more."""
        sums = DictTable(self._memory_bytes)
        counts, size, _ = self._now
        sums._now = counts.copy(), size, None
        sums.count_up(other._now[0].items())
        return self.replace(sums, before, about)

    def replace(self, other: "DictTable", before: object, about: object) -> bool:
        """Take what another table has counted, and be `about` that, in one step for threads and
        signals. False, and nothing done, if this table is not about `before` any more."""
        counts, size, _ = other._now
        with self._replacing:
            if self.about is not before:
                return False
            self._now = counts, size, about
            return True

    def count_up(self, counts: Iterable[tuple[bytes, int]]) -> None:
        """Count pieces so often; a table that has raised is not to be used."""
        sums, size, about = self._now
        for piece, count in counts:
            found = sums.get(piece)
            if found is None:
                size += sys.getsizeof(piece) + INT_BYTES
                if len(sums) % PIECES_UNCHECKED == 0:
                    self._check_memory(size + sys.getsizeof(sums))
            count += found or 0
            if count > arguments.HIGHEST_COUNT:
                raise arguments.piece_overflow(piece)
            sums[piece] = count
        self._check_memory(size + sys.getsizeof(sums))
        self._now = sums, size, about

    def _check_memory(self, needed: int) -> None:
        if self._memory_bytes is not None and needed > max(
            self._memory_bytes, arguments.SMALL_TABLE
        ):
            raise arguments.too_many_pieces(needed, self._memory_bytes)

    def add_counts(self, data: Any, ends: Any, counts: Any) -> None:
        self.count_up(zip(pieces_of(data, ends), counts.tolist()))

    def arrays(self) -> Arrays:
        counts = self._now[0]
        ends = np.cumsum([len(piece) for piece in counts], dtype=np.uint64)
        data = np.frombuffer(b"".join(counts), np.uint8)
        return Arrays(data, ends, np.array([*counts.values()], np.int64))


def pieces_of(data: Any, ends: Any) -> Iterator[bytes]:
    """The pieces that stand in arrays."""
    whole = data.tobytes()
    start = 0
    for end in ends.tolist():
        yield whole[start:end]
        start = end


# Counting documents


@dataclass(frozen=True)
class Settings:
    """What pieces depend on, and who counts them."""

    pattern: Pattern | None
    special_tokens: tuple[str, ...]
    engine: str
    memory_bytes: int | None

    @classmethod
    def of(
        cls,
        pattern: str | Pattern | None,
        special_tokens: Sequence[str],
        engine: str | None,
        memory_bytes: int | None = None,
    ) -> "Settings":
        if pattern == WORDS.name:
            pattern = WORDS
        found = None if pattern is None else patterns.get(pattern)
        tokens = arguments.names(special_tokens, "special_tokens")
        if memory_bytes is None:
            memory_bytes = arguments.machine_memory()
        else:
            memory_bytes = arguments.whole_number(
                memory_bytes, "memory_bytes", 1, arguments.HIGHEST_COUNT
            )
        return cls(found, tokens, engines.name_of(engine), memory_bytes)

    def new_table(self, about: object = None) -> Table:
        engine = engines.with_arrays(engines.get(self.engine))
        kind = DictTable if engine is None else engine.PieceTable
        return kind(self.memory_bytes, about)

    def spellings(self) -> dict[bytes, int]:
        """The spellings that are boundaries."""
        return {spelling.encode("utf-8"): n for n, spelling in enumerate(self.special_tokens)}

    def cutter(self) -> reading.Cut | None:
        """What finds where a document may be cut; None if it cannot be."""
        if self.pattern is None or not reading.can_be_cut(self.pattern):
            return None
        return reading.cutter(self.special_tokens)

    @property
    def pattern_name(self) -> str | None:
        """The name of the pattern, else its spelling."""
        return None if self.pattern is None else self.pattern.name or self.pattern.sources[0]

    def name(self) -> str:
        """What tells these settings from others, for messages."""
        return f"pattern {self.pattern_name!r}, special tokens {list(self.special_tokens)}"

    def as_plain(self) -> dict[str, Any]:
        pattern = None
        if self.pattern is not None:
            pattern = {
                "name": self.pattern.name,
                "sources": list(self.pattern.sources),
                "keep_gaps": self.pattern.keep_gaps,
            }
        return {"pattern": pattern, "special_tokens": list(self.special_tokens)}

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], engine: str | None, memory_bytes: int | None = None
    ) -> "Settings":
        """The settings of facts, which were checked if they come from a file."""
        pattern = None if plain["pattern"] is None else pattern_of(plain["pattern"], True)
        return cls.of(pattern, plain["special_tokens"], engine, memory_bytes)


def same_pieces(one: Settings, other: Settings) -> bool:
    """Whether two settings give the same pieces."""
    return one.pattern == other.pattern and {*one.special_tokens} == {*other.special_tokens}


class Giant(NamedTuple):
    """A long piece, and the document in which it stands."""

    size: int
    place: str

    @staticmethod
    def larger(one: "Giant | None", other: "Giant | None") -> "Giant | None":
        """The larger one, the first of equals."""
        if one is None or other is None:
            return one or other
        return other if other.size > one.size else one

    def tell(self, size: int | None) -> None:
        """A warning, if it is large for a corpus of so many bytes."""
        if self.size * GIANT_PART >= (size or 0):
            arguments.warn(
                f"{self.place} has a piece of {self.size} bytes, which the pattern does not cut: "
                "in such text merges are learned across what should be words"
            )


def count(
    documents: Iterator[Any],
    settings: Settings,
    threads: int | None,
    report: Callable[[int], object] | None,
    name: Callable[[int], str] = "document {}".format,
) -> tuple[Table, Giant | None]:
    """The pieces of documents, which `viewer` gives, and the longest of them if it is long.

    name: what a document is called, by its number.
    """
    engine = engines.get(settings.engine)
    arrays = engines.with_arrays(engine)
    longest, index = 0, 0
    if arrays is not None:
        table = arrays.count_table(
            documents,
            settings.pattern,
            settings.spellings(),
            threads=threads,
            progress=report,
            memory_bytes=settings.memory_bytes,
        )
        longest, index = table.longest, table.longest_document
    else:
        arguments.threads(threads)
        table = DictTable(settings.memory_bytes)
        done = 0
        for number, document in enumerate(documents):
            counts = engine.count_pieces([document], settings.pattern, settings.spellings())
            table.count_up(counts.items())
            longest, _, index = max(
                (longest, -index, index), (max(map(len, counts), default=0), -number, number)
            )
            done += len(document)
            if report is not None:
                report(done)
    if settings.pattern is None or longest < GIANT_BYTES:
        return table, None
    return table, Giant(longest, name(index))


def viewer(settings: Settings) -> Callable[[Any, int | None], Any]:
    """What gives the bytes of a document as the engine reads them best."""
    engine = engines.with_arrays(engines.get(settings.engine))
    return arguments.document_bytes if engine is None else engine.document_view


def known_size(corpus: Any) -> int | None:
    """How many bytes a corpus has, if it can be told before it is read."""
    if isinstance(corpus, Corpus):
        return corpus.known_bytes
    if isinstance(corpus, arguments.DOCUMENT_TYPES):
        corpus = [corpus]
    if not isinstance(corpus, (list, tuple)):
        return None
    size = 0
    for document in corpus:
        if isinstance(document, str) and document.isascii():
            size += len(document)
        else:
            try:
                size += len(arguments.document_bytes(document))
            except (TypeError, UnicodeEncodeError):
                return None  # told when it is its turn
    return size


def counter_of(report: Report | None, total: int | None) -> Callable[[int], object] | None:
    """What is called with the bytes done."""
    return None if report is None else lambda done: report(done, total)


class Partial(NamedTuple):
    """What a worker has counted."""

    arrays: Arrays
    record: Record
    giant: Giant | None


def count_documents(
    documents: Sequence[bytes], first: int, settings: Settings, threads: int | None
) -> Partial:
    """Count documents, of which the first has this number; for a worker."""
    record = Record(most_hashes=None)  # whoever joins the records decides what to keep
    table, giant = count(
        record.watch(documents), settings, threads, None, lambda n: f"document {first + n}"
    )
    return Partial(Arrays(*table.arrays()), record, giant)


def batches(corpus: Documents) -> Iterator[tuple[list[bytes], int]]:
    """Documents in lists for workers, and the number of the first of each list."""
    for block in reading.grouped(arguments.documents(corpus), TASK_BYTES, TASK_DOCUMENTS):
        yield block.texts, block.number


def only_text(documents: Iterable[Any]) -> Iterator[Any]:
    """The documents; UnicodeDecodeError, naming the document, for bytes that are no UTF-8."""
    for index, document in enumerate(documents):
        if isinstance(document, bytes):
            try:
                document.decode("utf-8")
            except UnicodeDecodeError as error:
                error.reason += f" (document {index})"
                raise
        yield document


# Counting files


class FileDocuments:
    """The documents of files, each recorded; those that are larger than a block come in parts."""

    def __init__(
        self,
        paths: Sequence[reading.Source],
        separation: reading.Separation,
        settings: Settings,
        record: Record,
        aside: bool = False,
    ) -> None:
        self._paths = paths
        self._separation = separation
        self._cut = settings.cutter()
        self._record = record
        self._aside = aside
        # Of each block: the number of its first part, its file, and its first document there.
        self._starts: list[int] = []
        self._places: list[tuple[str, int]] = []

    def __iter__(self) -> Generator[bytes, None, None]:
        number = 0
        with self._record.adding(self._aside) as add:
            for path in self._paths:
                with reading.opened(path) as file:
                    for block in self._blocks(file):
                        self._starts.append(number)
                        self._places.append((reading.file_name(path), block.number))
                        for text in block.texts:
                            add(text, block.last)
                            yield text
                        number += len(block.texts)

    def _blocks(self, file: Any) -> Iterator[reading.Block]:
        name = reading.file_name(file)
        with files.naming(name), files.naming_damage(name):
            yield from reading.blocks(file, self._separation, reading.BLOCK_BYTES, self._cut)

    def name(self, number: int) -> str:
        """What the document of a part is called."""
        block = bisect.bisect_right(self._starts, number) - 1
        file, first = self._places[block]
        if self._separation.separator is None:
            return file
        return f"{file}: document {first + number - self._starts[block]}"


def count_some_files(
    paths: Sequence[reading.Source],
    separation: reading.Separation,
    settings: Settings,
    threads: int | None,
) -> Partial:
    """Count the documents of files; for a worker."""
    record = Record(most_hashes=None)
    documents = FileDocuments(paths, separation, settings, record)
    table, giant = count(iter(documents), settings, threads, None, documents.name)
    return Partial(Arrays(*table.arrays()), record, giant)


def file_size(source: reading.Source) -> int:
    """How many bytes a file has, 0 if that cannot be told."""
    status = reading.state(source) if hasattr(source, "read") else None
    if status is not None:
        return status[0]
    return 0 if hasattr(source, "read") else os.stat(os.fspath(source)).st_size


def file_groups(paths: Sequence[Any], most: int) -> Iterator[tuple[list[Any], int]]:
    """Files, one after another, in lists of about so many bytes; and these bytes."""
    group: list[Any] = []
    size = 0
    for path in paths:
        group.append(path)
        size += file_size(path)
        if size >= most:
            yield group, size
            group, size = [], 0
    if group:
        yield group, size


def count_files_elsewhere(
    paths: Sequence[Any],
    separation: reading.Separation,
    settings: Settings,
    threads: int | None,
    report: Callable[[int], object] | None,
    executor: "Executor | None",
    workers: int | None,
    cancel: bool = True,
) -> Generator[Partial, None, None]:
    """What the workers of an executor, or so many new processes, count of files, in order.

    cancel: as `in_order` takes it.
    """
    for path in paths:
        if hasattr(path, "read"):
            raise TypeError(f"workers need paths, but {path!r} is an open file")
    if executor is None:
        most = arguments.whole_number(workers, "workers", 1, MOST_WORKERS)
        with new_processes(most) as pool:
            yield from count_files_elsewhere(
                paths, separation, settings, threads, report, pool, None, cancel=False
            )
        return
    if workers is not None:
        raise ValueError("an executor has its own workers: give one or the other")
    total = sum(file_size(path) for path in paths)
    at_a_time = min(TASK_FILE_BYTES, 1 + total // (TASKS_FOR_EACH_WORKER * worker_count(executor)))
    groups = [*file_groups(paths, at_a_time)]
    tasks = ((count_some_files, group, separation, settings, threads or 1) for group, _ in groups)
    done = 0
    with contextlib.closing(in_order(executor, tasks, cancel)) as partials:
        for partial, (_, size) in zip(partials, groups):
            yield partial
            done += size
            if report is not None:
                report(done)


# Executors


def check_executor(executor: object) -> None:
    """TypeError for what cannot be given work to."""
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        found = repr(executor) if isinstance(executor, type) else arguments.type_name(executor)
        raise TypeError(f"executor must be a concurrent.futures.Executor, not {found}")


def in_order(
    executor: "Executor", tasks: Iterable[tuple[Any, ...]], cancel: bool = True
) -> Generator[Any, None, None]:
    """The results of calls, in their order. Not many more than there are workers wait.

    If it is closed, what has not begun is canceled, and nobody waits for what has. Not to be
    canceled where the workers are killed: up to Python 3.11 a pool fails over such tasks then.
    """
    most = 2 * worker_count(executor)
    pending: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            pending.append(executor.submit(*task))
            if len(pending) > most:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending if cancel else ():
            future.cancel()


def worker_count(executor: "Executor") -> int:
    """How many workers an executor has, or 16 if it does not say."""
    workers = getattr(executor, "_max_workers", None)
    return workers if isinstance(workers, int) and workers > 0 else 16


@contextlib.contextmanager
def new_processes(workers: int) -> Iterator["Executor"]:
    """Processes of this machine that share nothing with this one; ended at once by an error."""
    # Slow to import, and of no use to who counts alone.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.context import SpawnContext

    started: list[Any] = []

    class Context(SpawnContext):
        def Process(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
            started.append(super().Process(*args, **options))
            return started[-1]

    class Pool(ProcessPoolExecutor):
        def submit(self, *work: Any, **options: Any) -> Any:
            # It starts processes, which inherit that.
            with interrupts_later(), telling_of_workers():
                return super().submit(*work, **options)

    with telling_of_workers():
        pool = Pool(workers, mp_context=Context(), initializer=begin_worker)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        kill(started)
        pool.shutdown(wait=False)
        kill(started)  # one may have been about to begin
        raise


@contextlib.contextmanager
def telling_of_workers() -> Iterator[None]:
    """OSError where a machine, or a Python, has no processes or threads for workers."""
    from concurrent.futures import BrokenExecutor

    try:
        yield
    except BrokenExecutor:
        raise
    except (OSError, ImportError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(
            getattr(error, "errno", None) or errno.EAGAIN,
            f"no workers can be started ({reason}): work without them",
        ) from error


def kill(processes: list[Any]) -> None:
    for process in processes:
        if process.pid is not None:
            process.kill()


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """Hold back Ctrl-C, where a system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the one that started this; and end
    when that is killed, or this one would wait for its next task for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
