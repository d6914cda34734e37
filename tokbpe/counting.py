"""Counting pieces once, to learn from the counts many times."""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokbpe import arguments, count_files, count_work, files, reading
from tokbpe.arguments import Documents
from tokbpe.corpus import for_training
from tokbpe.count_files import Arrays
from tokbpe.count_work import FileDocuments, Giant, Partial, Settings, pieces_of, same_pieces
from tokbpe.engines import Table
from tokbpe.patterns import Pattern
from tokbpe.progress import Progress, reporting
from tokbpe.record import Record

if TYPE_CHECKING:
    from concurrent.futures import Executor

NOT_GIVEN: Any = object()


class About(NamedTuple):
    """What is known about counts; it changes with them, as a whole."""

    record: Record
    ordered: bool = True
    pruned: int = 0

    def joined(self, other: "About") -> "About":
        return About(
            self.record.joined(other.record),
            self.ordered and other.ordered,
            max(self.pruned, other.pruned),
        )


class PieceCounts(Mapping[bytes, int]):
    """How often each piece of a corpus occurs, in the order of first appearance.

    corpus: as for `Tokenizer`; nothing, to begin with no pieces.
    pattern: how documents are cut into pieces, as for `Tokenizer`; or "words", for the method
        "word": what stands between white space.
    special_tokens: texts that are boundaries and are not counted.
    engine: "fast" or "reference"; None for the environment variable TOKBPE_ENGINE, else "fast".
    threads, progress, executor: see `add`.

    memory_bytes: a MemoryError tells before the table of these counts takes more, or those of
        a corpus that is being counted, one in each thread, or of a worker of an executor; by
        default, and for counts from files, as much as the machine has; 1 MB is always had. A
        piece takes some hundred bytes in a table. Beside them stand 64 MB of documents, or one
        that is larger, and the `arrays` once they have been asked for.

    A mapping from pieces, as bytes, to their counts, which are 64-bit: a sum that would pass
    2**63 - 1 is a ValueError. Since the order is kept, the tie rule "first" gives what it gives on
    the text.

    Threads, and handlers of signals, may read the same counts and change them: each change is
    done as a whole, and an interrupt finds it done or not begun. What several threads add at a
    time follows in any order.

    >>> from tokbpe import PieceCounts
    >>> counts = PieceCounts(["low low", "new low"], pattern="gpt2")
    >>> dict(counts), counts[b" low"], counts.total()
    ({b'low': 1, b' low': 2, b'new': 1}, 2, 4)
    """

    def __init__(
        self,
        corpus: Documents = (),
        *,
        pattern: str | Pattern | None = None,
        special_tokens: Sequence[str] = (),
        engine: str | None = None,
        threads: int | None = None,
        progress: Progress = False,
        executor: "Executor | None" = None,
        memory_bytes: int | None = None,
    ) -> None:
        self._open(Settings.of(pattern, special_tokens, engine, memory_bytes))
        self.add(corpus, threads=threads, progress=progress, executor=executor)

    def _open(self, settings: Settings) -> None:
        """Begin with no pieces."""
        self._settings = settings
        self._table = settings.new_table(About(Record()))
        self._known: tuple[About | None, Arrays | None] = (None, None)

    @classmethod
    def _of(cls, settings: Settings) -> "PieceCounts":
        counts = cls.__new__(cls)
        counts._open(settings)
        return counts

    @classmethod
    def of_corpus(
        cls,
        corpus: Documents,
        settings: Settings,
        threads: int | None,
        progress: Progress,
        text: bool = False,
    ) -> "PieceCounts":
        """The counts of a corpus, which must be `text` or may be any bytes; for methods."""
        counts = cls._of(settings)
        counts._count(corpus, threads, progress, count_work.only_text if text else iter)
        return counts

    @classmethod
    def from_files(
        cls,
        paths: reading.Source | Iterable[reading.Source],
        *,
        documents: str | bytes = reading.WHOLE,
        pattern: str | Pattern | None = None,
        special_tokens: Sequence[str] = (),
        engine: str | None = None,
        threads: int | None = None,
        progress: Progress = False,
        executor: "Executor | None" = None,
        workers: int | None = None,
        memory_bytes: int | None = None,
    ) -> "PieceCounts":
        """The counts of files of any size; the options are those of `add_files`."""
        counts = cls._of(Settings.of(pattern, special_tokens, engine, memory_bytes))
        counts.add_files(
            paths,
            documents=documents,
            threads=threads,
            progress=progress,
            executor=executor,
            workers=workers,
        )
        return counts

    # Counting

    def add(
        self,
        corpus: Documents,
        *,
        threads: int | None = None,
        progress: Progress = False,
        executor: "Executor | None" = None,
    ) -> None:
        """Count another corpus behind what is counted; nothing changes if that fails.

        threads: how many may count; by default as many as there are cores. Counts and their
            order do not depend on it.
        progress: True for a bar on a terminal, or a function that is called with the bytes
            counted and the bytes of the corpus, None for these where it is no text and no list.
        executor: counts elsewhere: any `concurrent.futures.Executor`. It is given some 32 MB of
            documents at a time; of results not many more wait than it has workers. A worker has
            one thread then, unless `threads` says otherwise.
        """
        arguments.threads(threads)
        if executor is None:
            self._count(corpus, threads, progress, iter)
            return
        corpus = for_training(corpus)
        count_work.check_executor(executor)
        with reporting(progress, "B", unit_scale=True) as report:
            told = count_work.counter_of(report, count_work.known_size(corpus) if report else None)
            tasks = (
                (count_work.count_documents, batch, first, self._settings, threads or 1)
                for batch, first in count_work.batches(corpus)
            )
            self._join(count_work.in_order(executor, tasks), told)

    def _count(
        self,
        corpus: Documents,
        threads: int | None,
        progress: Progress,
        checked: Callable[[Iterator[Any]], Iterator[Any]],
    ) -> None:
        corpus = for_training(corpus)
        record = Record()
        with reporting(progress, "B", unit_scale=True) as report:
            told = count_work.counter_of(report, count_work.known_size(corpus) if report else None)
            documents = record.watch(corpus, count_work.viewer(self._settings), aside(threads))
            with contextlib.closing(documents):
                table, giant = count_work.count(checked(documents), self._settings, threads, told)
        self._take(table, About(record), giant)

    def add_files(
        self,
        paths: reading.Source | Iterable[reading.Source],
        *,
        documents: str | bytes = reading.WHOLE,
        threads: int | None = None,
        progress: Progress = False,
        executor: "Executor | None" = None,
        workers: int | None = None,
    ) -> None:
        """Count files behind what is counted, in the order given; nothing changes if that fails.

        paths: of files, or files that are open for reading bytes; one or several.
        documents: "whole" if a file is one document, "line" if each line is one, or what stands
            between two of them. Line ends and separators belong to none.
        threads, progress, executor: as in `add`. An executor, which needs paths that its workers
            can open, counts several files at a time and gives one table for them.
        workers: so many processes of this machine count, where there is no executor. A script
            that asks for them must be importable (`if __name__ == "__main__":`).

        A document that is larger than 4 MB is read in parts where the pattern has a name;
        otherwise it must have at most 2**30 bytes: ValueError. OSError if a file cannot be read
        or changes meanwhile.
        """
        sources = reading.sources(listed(paths))
        arguments.threads(threads)
        if executor is not None:
            count_work.check_executor(executor)
        separation = reading.separation(documents)
        with reporting(progress, "B", unit_scale=True) as report:
            total = sum(count_work.file_size(source) for source in sources)
            told = count_work.counter_of(report, total or None)
            if executor is not None or workers is not None:
                self._join(
                    count_work.count_files_elsewhere(
                        sources, separation, self._settings, threads, told, executor, workers
                    )
                )
                return
            record = Record()
            found = FileDocuments(sources, separation, self._settings, record, aside(threads))
            with contextlib.closing(iter(found)) as parts:
                table, giant = count_work.count(parts, self._settings, threads, told, found.name)
            if told is not None and total:
                told(total)  # what stands between documents, too
        self._take(table, About(record), giant)

    def _join(
        self,
        partials: Generator[Partial, None, None],
        told: Callable[[int], object] | None = None,
    ) -> None:
        """Count what workers have counted, in this order; `told` is called with the bytes."""
        table = self._settings.new_table()
        record = Record()
        giant = None
        with contextlib.closing(partials):  # an error ends their work now, not some time later
            for partial in partials:
                table.add_counts(*partial.arrays)
                record.join(partial.record)
                giant = Giant.larger(giant, partial.giant)
                if told is not None and record.bytes is not None:
                    told(record.bytes)
        self._take(table, About(record), giant)

    def _take(self, table: Table, about: About, giant: Giant | None = None) -> None:
        """Add a table that nobody else has; a warning may be an error, and so comes first."""
        if giant is not None:
            giant.tell(about.record.bytes)
        changed = False
        while not changed:  # if others have changed the counts meanwhile, once more
            before = self._table.about
            change = self._table.add if len(self._table) else self._table.replace
            changed = change(table, before, before.joined(about))

    # Together

    def __iadd__(self, other: "PieceCounts") -> "PieceCounts":
        """Add other counts to these; pieces that are new follow in the order of the other.

        ValueError, and nothing done, if their patterns or special tokens are not the same.
        """
        if not isinstance(other, PieceCounts):
            return NotImplemented
        if not same_pieces(self._settings, other._settings):
            raise ValueError(
                f"counts of {self._settings.name()} and of {other._settings.name()} "
                "are of different pieces: they cannot be added"
            )
        table = self._settings.new_table()
        about, arrays = other._state()
        table.add_counts(*arrays)
        self._take(table, about)
        return self

    def __add__(self, other: "PieceCounts") -> "PieceCounts":
        """The counts of both, in the order of this one, and behind it that of the other.

        ValueError if their patterns or special tokens are not the same.

        >>> from tokbpe import PieceCounts
        >>> dict(PieceCounts("low", pattern="gpt2") + PieceCounts("low new", pattern="gpt2"))
        {b'low': 2, b' new': 1}
        """
        if not isinstance(other, PieceCounts):
            return NotImplemented
        both = self._of(self._settings)
        both += self
        both += other
        return both

    def prune(self, min_count: int) -> "PieceCounts":
        """Forget pieces that occur less often; these counts themselves, for what follows.

        Training on what is left need not give the merges of the corpus.

        >>> from tokbpe import PieceCounts
        >>> dict(PieceCounts("low low low new", pattern="gpt2").prune(2))
        {b' low': 2}
        """
        least = arguments.whole_number(min_count, "min_count", 1, arguments.HIGHEST_COUNT)
        while True:  # if others change the counts meanwhile, once more
            before, (data, ends, counts) = self._state()
            kept = counts >= least
            if kept.all():
                return self
            sizes = np.diff(ends, prepend=np.uint64(0))
            table = self._settings.new_table()
            table.add_counts(
                data[np.repeat(kept, sizes.astype(np.int64))],
                np.cumsum(sizes[kept], dtype=np.uint64),
                counts[kept],
            )
            about = before._replace(pruned=max(before.pruned, least))
            if self._table.replace(table, before, about):
                return self

    # Reading

    @property
    def pattern(self) -> str | None:
        """How documents were cut: the name of the pattern, else its spelling; None: not at all."""
        return self._settings.pattern_name

    @property
    def special_tokens(self) -> tuple[str, ...]:
        return self._settings.special_tokens

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def ordered(self) -> bool:
        """Whether the pieces stand in the order of first appearance; if not, they cannot be
        learned from with the tie rule "first"."""
        return bool(self._table.about.ordered)

    @property
    def arrays(self) -> Arrays:
        """The pieces without a Python object for each: `data`, `ends` and `counts`; read only."""
        return self._state()[1]

    def _state(self) -> tuple[About, Arrays]:
        """What is known about the counts, and these; both of one moment."""
        while True:
            about, arrays = self._known
            if arrays is None or about is not self._table.about:
                about = self._table.about
                arrays = Arrays(*self._table.arrays())
                for array in arrays:
                    array.flags.writeable = False
            if about is self._table.about:
                self._known = about, arrays
                return about, arrays

    @property
    def record(self) -> dict[str, Any]:
        """What was counted, as far as it is known: `documents`, `bytes`, the SHA-256 of each
        document (`hashes`) and of these in order (`fingerprint`). Beyond 100,000 documents the
        hashes are not kept, and the fingerprint not where such counts are added behind others,
        or more is added to them when they come from a file."""
        about = self._table.about
        pruned = {"pruned": about.pruned} if about.pruned else {}
        return {**about.record.plain(), **pruned}

    def total(self) -> int:
        """How often all pieces occur together."""
        counts = self.arrays.counts
        if len(counts) and int(counts.max()) > arguments.HIGHEST_COUNT // len(counts):
            return sum(counts.tolist())
        return int(counts.sum())

    def most_common(self, n: int | None = None) -> list[tuple[bytes, int]]:
        """Pieces with their counts, the highest first, equal ones in their order; all, or n.

        >>> from tokbpe import PieceCounts
        >>> PieceCounts("low low low new", pattern="gpt2").most_common(1)
        [(b' low', 2)]
        """
        data, ends, counts = self.arrays
        order = np.argsort(-counts, kind="stable")
        if n is not None:
            order = order[: arguments.whole_number(n, "n", 0, arguments.HIGHEST_COUNT)]
        starts = ends - np.diff(ends, prepend=np.uint64(0))
        return [
            (data[int(starts[i]) : int(ends[i])].tobytes(), int(counts[i])) for i in order.tolist()
        ]

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[bytes]:
        return pieces_of(self.arrays.data, self.arrays.ends)

    def __getitem__(self, piece: bytes) -> int:
        if not isinstance(piece, bytes):
            raise TypeError(f"a piece is bytes, not {arguments.type_name(piece)}")
        count = self._table.get(piece)
        if count is None:
            raise KeyError(piece)
        return count

    def __contains__(self, piece: object) -> bool:
        return isinstance(piece, bytes) and self._table.get(piece) is not None

    def __eq__(self, other: object) -> bool:
        """Whether these are the same counts of the same pieces, in the same order."""
        if not isinstance(other, PieceCounts):
            return NotImplemented
        mine_about, mine_arrays = self._state()
        about, arrays = other._state()
        both: list[tuple[Any, Any]] = [*zip(mine_arrays, arrays)]
        return (
            same_pieces(self._settings, other._settings)
            and mine_about.ordered == about.ordered
            and all(np.array_equal(mine, others) for mine, others in both)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<PieceCounts {len(self)} pieces, pattern {self.pattern!r}, "
            f"special tokens {list(self.special_tokens)}>"
        )

    # Files

    def _facts(self, about: About) -> dict[str, Any]:
        return {
            **self._settings.as_plain(),
            "record": about.record.plain(),
            "ordered": about.ordered,
            "pruned": about.pruned,
        }

    @classmethod
    def _from_parts(
        cls,
        arrays: Arrays,
        facts: Mapping[str, Any],
        engine: str | None,
        memory_bytes: int | None = None,
    ) -> "PieceCounts":
        settings = Settings.from_plain(facts, engine, memory_bytes)
        record = Record.from_plain(facts["record"])
        return cls._filled(settings, arrays, About(record, facts["ordered"], facts["pruned"]))

    @classmethod
    def _filled(cls, settings: Settings, arrays: Arrays, about: About) -> "PieceCounts":
        counts = cls._of(settings)
        table = settings.new_table()
        table.add_counts(*arrays)
        counts._take(table, about)
        return counts

    def save(self, path: files.Path) -> None:
        """Write the counts to a new `.npz` file, which `load` reads.

        FileExistsError if anything stands at the path: no file is ever replaced. Another OSError
        if it cannot be written.

        >>> from tokbpe import PieceCounts
        >>> counts = PieceCounts("low lower", pattern="gpt2")
        >>> counts.save("counts.npz")
        >>> PieceCounts.load("counts.npz") == counts
        True
        """
        about, arrays = self._state()
        count_files.save(path, arrays, self._facts(about))

    @classmethod
    def load(
        cls, path: files.Path, engine: str | None = None, trust_pattern: bool = False
    ) -> "PieceCounts":
        """The counts of a file that `save` wrote.

        trust_pattern: whether to take a pattern of any time, as in `Tokenizer.load`.

        ValueError for another file, for one of a newer version, for one that is damaged, and for
        such a pattern; OSError if it cannot be read.
        """
        arrays, facts = count_files.load(path, trust_pattern)
        with files.naming(path):
            return cls._from_parts(arrays, facts, engine)

    def to_parquet(self, path: files.Path, *, part: int = 0) -> None:
        """Write the counts to a new Parquet file: `piece` BINARY, `count` INT64, `first` INT64.

        part: the place of what was counted among all parts of a corpus. Of tables of all parts
            that are added up, the least `first` of each piece tells the order.

        Needs the extra `arrow`. Counts without an order have no column `first`.

        Whatever adds up will do for that. DuckDB does it in SQL:

            COPY (
                SELECT piece, CAST(sum("count") AS BIGINT) AS "count", min("first") AS "first"
                FROM 'counts/*.parquet' GROUP BY piece
            ) TO 'total.parquet' (FORMAT parquet)

        and Spark into a folder of files, which `from_parquet` takes as well:

            spark.read.parquet("counts").groupBy("piece").agg(
                F.sum("count").alias("count"), F.min("first").alias("first")
            ).write.parquet("total")
        """
        place = arguments.whole_number(part, "part", 0, count_files.MOST_PARTS - 1)
        about, arrays = self._state()
        count_files.save_parquet(path, arrays, self._facts(about), place if about.ordered else None)

    @classmethod
    def from_parquet(
        cls,
        source: files.Path | Iterable[files.Path],
        *,
        pattern: Any = NOT_GIVEN,
        special_tokens: Any = NOT_GIVEN,
        engine: str | None = None,
        trust_pattern: bool = False,
    ) -> "PieceCounts":
        """The counts of a Parquet file, a folder of such files, or several of them, added up.

        pattern, special_tokens: of files that `to_parquet` did not write, and which therefore do
            not say how the pieces were made. Those of files that do may be given, too.
        trust_pattern: whether to take a pattern of any time, as in `Tokenizer.load`.

        Pieces stand in the order of the column `first`, the least of each; without it they have
        none, and the tie rule "first" is refused. ValueError, naming the file, the column and the
        row, for what are no counts; and naming the files that have the same `first`, as parts of
        a corpus have that were written as the same `part`.
        """
        paths = reading.sources(listed(source), False)
        arrays, tables, ordered = count_files.load_parquet(paths, trust_pattern)
        settings = cls._settings_of(tables, pattern, special_tokens, engine)
        record = Record()
        pruned = 0
        for table in tables:
            facts = table.facts
            record.join(Record.unknown() if facts is None else Record.from_plain(facts["record"]))
            pruned = max(pruned, 0 if facts is None else facts["pruned"])
        # What several files have together is the fault of none.
        with files.naming(paths[0]) if len(paths) == 1 else contextlib.nullcontext():
            return cls._filled(settings, arrays, About(record, ordered, pruned))

    @staticmethod
    def _settings_of(
        tables: Sequence[count_files.Table],
        pattern: Any,
        special_tokens: Any,
        engine: str | None,
    ) -> Settings:
        """What the pieces of files depend on, as they say, or as is given."""
        told = [
            (table.name, Settings.from_plain(table.facts, engine))
            for table in tables
            if table.facts is not None
        ]
        if pattern is NOT_GIVEN and len(told) < len(tables):
            name = next(table.name for table in tables if table.facts is None)
            raise ValueError(
                f"{name} does not say by which pattern the pieces were cut: "
                "give pattern=, None for none"
            )
        known = told[0][1] if told else Settings.of(None, (), engine)
        settings = Settings.of(
            known.pattern if pattern is NOT_GIVEN else pattern,
            known.special_tokens if special_tokens is NOT_GIVEN else special_tokens,
            engine,
        )
        for name, other in told:
            if not same_pieces(other, settings):
                raise ValueError(f"{name} holds counts of {other.name()}, not of {settings.name()}")
        return settings

    def __reduce__(self) -> tuple[Any, ...]:
        about, arrays = self._state()
        settings = self._settings
        parts = (arrays, self._facts(about), settings.engine, settings.memory_bytes)
        return self._from_parts, parts


def aside(threads: int | None) -> bool:
    """Whether documents are hashed by a thread of its own: where several may be used."""
    return arguments.thread_count(threads) > 1


def listed(paths: Any) -> list[Any]:
    """One path, or one open file, or several."""
    if isinstance(paths, (str, bytes)) or hasattr(paths, "read"):
        return [paths]
    return list(paths) if isinstance(paths, Iterable) else [paths]
