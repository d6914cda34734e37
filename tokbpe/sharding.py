"""From documents to token shards, so that the work can be killed at any moment and goes on.

Files are taken in parts, one after another until a part is large enough; a part is encoded into
shards of its own, so that several can be at once. While there is work, these stand in the folder
`tokbpe-unfinished` beside the shards:

    plan.json           what is to be done; the same must be asked for to go on
    00000-00000.json    the record of a shard, written when its two files are there
    00000.hashes        the SHA-256 of each document of a part
    00000.json          the record of a part, written when all of it is there

    stop                there while workers are to end, since one of them has failed

What has a record is not made again. The folder appears with its plan in it: one that has none was
made by somebody else, and is not touched.
"""

import contextlib
import errno
import glob
import hashlib
import os
import pickle
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from tokbpe import arguments, count_work, files, reading, sources
from tokbpe.corpus import ROLES, TRAINING, Corpus
from tokbpe.encoded import EncodedCorpus, options
from tokbpe.encoding import id_type, smallest_type
from tokbpe.parts import Part, files_of, names_in, parts_of
from tokbpe.progress import Progress, Report, checked, reporting
from tokbpe.shard_work import (
    STOP,
    WORK,
    Add,
    Job,
    Place,
    new_or_same,
    read_record,
    read_shard,
    record_path,
    write_part,
)
from tokbpe.shards import FORMAT, MANIFEST, NAME, Shard, Shards, chunks, read_sealed, sealed
from tokbpe.sources import Listed
from tokbpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

SHARD_TOKENS = 10**8
MOST_SHARD_TOKENS = 2**40
# A part is closed when its files have so many bytes for each token of a shard: about one shard.
PART_BYTES = 4
PLAN = "plan.json"
PLANNED = "plan of token shards"
# What `files` writes to before it has its name, and what `clean` removes.
TEMPORARY = re.compile(r"\.tokbpe-[0-9a-f]{16}")
SHARD_FILE = re.compile(rf"{NAME.pattern}\.(tokens|offsets)\.npy")
# What it may come to when another process is at the same work, or has just ended it.
MET_ANOTHER = {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY}
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def write_shards(
    source: Any,
    tokenizer: Tokenizer,
    folder: files.Path,
    *,
    documents: str | bytes = reading.WHOLE,
    field: str = "text",
    role: str | None = None,
    allowed_special: Collection[str] | str = (),
    bos: bool = False,
    eos: bool = False,
    add_special_tokens: bool = False,
    dtype: Any = None,
    shard_tokens: int = SHARD_TOKENS,
    executor: "Executor | None" = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Shards:
    """Encode documents into a folder of token shards, which `Shards` reads.

    source: a path, or several, of files of all kinds that `Corpus.from_files` takes, chosen as it
        does, but for those in `folder`; or a corpus: a `Corpus`, a `StreamedCorpus`, or what else
        has a `role` and gives its documents each time that it is iterated over. Text files may be
        of any size.
    documents: what a document is in a text file, as in `Tokenizer.encode_file`.
    field: of JSON Lines and Parquet: the name of what holds the text of a document.
    role: "training" (the default), "validation" or "test"; that of a corpus is its own.
    allowed_special, bos, eos, add_special_tokens: as in `Tokenizer.encode`, for each document.
    dtype: of the ids; by default "uint16" if it holds all of the vocabulary, else "uint32".
    shard_tokens: a shard is closed when it has so many.
    executor: any of `concurrent.futures`, for files; parts of at least 4 * shard_tokens bytes are
        encoded at the same time. Shards do not depend on it.
    threads: how many encode; by default as many as there are cores, with an executor one each.
    progress: True for a progress bar on a terminal, or a function that is called with the bytes
        done and those that there are, None for these where they are not known, as of a packed
        file.

    When it is killed, or the disk is full, the same call goes on where it stood, and the shards
    are the same as if nothing had happened. When they are finished already it finds that all
    documents are those that they were made of, and returns.

    ValueError, naming the file, for what cannot be encoded; for no documents or no tokens; for a
    folder with unfinished shards of another input, other options or another version, naming both:
    they are never thrown away; and for a validation or test corpus with a document that the
    tokenizer was fitted on. FileExistsError for a folder with other finished shards, or with
    anything else in it; another OSError for files that cannot be read or written.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer must be a Tokenizer, not {arguments.type_name(tokenizer)}")
    checked(progress)
    files.check_path(folder)
    special = arguments.special_choice(allowed_special, tokenizer.special_tokens)
    corpus = corpus_of(source)
    if executor is not None:
        count_work.check_executor(executor)
        if corpus is not None:
            raise ValueError("executor is for files; a corpus is encoded by threads")
    job = Job(
        os.path.abspath(os.fsdecode(folder)),
        tokenizer,
        {"documents": text_of(documents), "field": sources.field_name(field)},
        options(special, bos, eos, add_special_tokens),
        role_of(role, corpus),
        id_type(dtype or smallest_type(tokenizer._vocabulary), tokenizer._vocabulary),
        arguments.whole_number(shard_tokens, "shard_tokens", 1, MOST_SHARD_TOKENS),
        arguments.threads(1 if threads is None and executor is not None else threads),
    )
    job.encoding()  # arguments are checked before anything is written
    found = [] if corpus is not None else files_of(source, job.folder)
    part_bytes = PART_BYTES * job.shard_tokens
    parts = [Part(0, ())] if corpus is not None else parts_of(found, part_bytes)
    with reporting(progress, "B", unit_scale=True) as report:
        add = adding(report, size_of(found, corpus))
        if os.path.lexists(os.path.join(job.folder, MANIFEST)):
            return finished_already(job, parts, corpus, add)
        fitted = job.fitted()
        if fitted is not None:
            fitted.tell_of_forgotten(job.role)
        wanted = plan(job, found, part_bytes, corpus)
        try:
            with working_folder(job, wanted), telling_of_shards(job.folder):
                write_all(job, parts, corpus, executor, add)
        except OSError as error:
            # Another process may have finished the same work, and removed what both have done.
            is_finished = os.path.lexists(os.path.join(job.folder, MANIFEST))
            if error.errno not in MET_ANOTHER or not is_finished:
                raise
            return finished_already(job, parts, corpus, None)
    return Shards(job.folder)


def write_all(
    job: Job, parts: Sequence[Part], corpus: Any, executor: "Executor | None", add: Add | None
) -> None:
    """Write the shards of all parts, and the manifest."""
    if executor is None:
        for part in parts:
            write_part(job, part, corpus, add)
    else:
        write_parts(job, parts, executor, add)
    finish(job, parts, corpus)


def corpus_of(source: Any) -> Any:
    """A corpus that is given in the place of files, else None."""
    if isinstance(source, (EncodedCorpus, Shards)):
        raise TypeError(
            f"shards are written of documents, and {arguments.type_name(source)} holds ids: give "
            "the corpus or the files that it was made of"
        )
    return source if hasattr(source, "role") else None


def size_of(found: Sequence[Listed], corpus: Any) -> int | None:
    """How many bytes the documents have, None where that is not known before they are read."""
    if corpus is not None:
        return corpus.known_bytes if isinstance(corpus, Corpus) else None
    if not all(sources.is_plain(file.path) for file in found):
        return None
    return sum(size for _, (size, _) in found)


def adding(report: Report | None, total: int | None) -> Add | None:
    """What is called with the bytes of each piece of work that is done."""
    if report is None:
        return None
    done = 0

    def add(size: int) -> None:
        nonlocal done
        done += size
        report(done, total)

    return add


def text_of(documents: str | bytes) -> str:
    """What `documents` says, as JSON can hold it."""
    reading.separation(documents)
    return (
        documents.decode("utf-8", "surrogateescape") if isinstance(documents, bytes) else documents
    )


def role_of(role: str | None, corpus: Any) -> str:
    if corpus is None:
        return arguments.choice(TRAINING if role is None else role, "role", ROLES)
    if role is not None and role != corpus.role:
        raise ValueError(f"role is {role!r}, but the corpus has the role {corpus.role!r}")
    return arguments.choice(corpus.role, "role", ROLES)


def write_parts(job: Job, parts: Sequence[Part], executor: "Executor", add: Add | None) -> None:
    """Write parts at the same time. When one fails the others stop."""
    from concurrent.futures import as_completed

    portable = replace(job, tokenizer=pickle.dumps(job.tokenizer))
    writing: list[Future[int]] = []
    try:
        for part in parts:
            writing.append(executor.submit(write_part, portable, part))
        for done in as_completed(writing):
            read = done.result()
            if add is not None:
                add(read)
    except BaseException:
        stop_writing(job, writing)
        raise


def stop_writing(job: Job, writing: Sequence["Future[int]"]) -> None:
    """Have workers end soon, and wait for that."""
    from concurrent.futures import wait

    stop = os.path.join(job.work, STOP)
    with contextlib.suppress(OSError):  # without it they end later
        open(stop, "wb").close()
    # Those that have not begun end at once. If they were canceled, and the workers killed then, a
    # pool would fail over them up to Python 3.11.
    wait(writing)
    with contextlib.suppress(OSError):
        os.unlink(stop)


# What is to be done


def plan(job: Job, found: Sequence[Listed], part_bytes: float, corpus: Any) -> dict[str, Any]:
    """What must be the same for the work to go on."""
    is_known = isinstance(corpus, Corpus) and corpus.known_bytes is not None
    return {
        **job.facts(corpus.fingerprint() if is_known else None),
        "part_bytes": part_bytes,
        "files": [[file.path, *file.state] for file in found],
    }


def check_same(there: Mapping[str, Any], wanted: Mapping[str, Any], folder: str) -> None:
    """ValueError, naming what differs, unless two plans are the same."""
    for name, one, other in differences(there, wanted):
        if name == "corpus" and None in (one, other):
            continue  # not known before it is read; documents are compared then
        raise ValueError(
            f"{folder}: the unfinished shards there have {name} = {one!r}, not {other!r}; ask "
            "for the same, or remove the folder"
        )


def check_finished(shards: Shards, wanted: Mapping[str, Any]) -> None:
    """FileExistsError, naming what differs, unless shards are those that are wanted."""
    for name, one, other in differences(shards.manifest, wanted):
        raise FileExistsError(
            errno.EEXIST,
            f"the finished shards there have {name} = {one!r}, not {other!r}",
            shards.folder,
        )


def differences(
    there: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """What is wanted but not there: its name, what is there in its place, and what is wanted."""
    for name, value in wanted.items():
        found = there.get(name)
        if found == value:
            continue
        if isinstance(value, Mapping) and isinstance(found, Mapping) and {*found} == {*value}:
            yield from differences(found, value)
        elif name == "files":
            listed = found if isinstance(found, list) else []
            for number, (one, other) in enumerate(zip_longest(listed, value)):
                if one != other:
                    yield f"file {number}", one, other
        else:
            yield name, found, value


# The folder while there is work


@contextlib.contextmanager
def working_folder(job: Job, wanted: Mapping[str, Any]) -> Iterator[None]:
    """The folder, with the plan of what is to be done. If nothing comes of it, nothing is left."""
    is_new = False
    with contextlib.suppress(FileExistsError):
        os.mkdir(job.folder)
        is_new = True
    try:
        begin(job, sealed(PLANNED, wanted))
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                os.rmdir(job.folder)
        raise
    check_same(read_sealed(os.path.join(job.work, PLAN), PLANNED), wanted, job.folder)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # what has gone wrong before is what counts
            remove_work(job, is_new)
        raise


def begin(job: Job, data: bytes) -> None:
    """Make the working folder, with its plan, or find it; FileExistsError for anything else."""
    if not os.path.lexists(job.work):
        names = os.listdir(job.folder)
        # Another process may have begun since, and be at its shards.
        if WORK not in names and not all(map(TEMPORARY.fullmatch, names)):
            raise FileExistsError(
                errno.ENOTEMPTY,
                "the folder holds something else than unfinished shards",
                job.folder,
            )
        try:
            with files.new_folder(job.work) as folder:
                files.publish(os.path.join(folder, PLAN), data)
        except OSError:
            if not os.path.lexists(job.work):  # where another process has begun meanwhile
                raise
    if not is_ours(job):
        raise FileExistsError(
            errno.EEXIST,
            f"this is no folder of unfinished shards: there is no {PLAN}, or another one",
            job.work,
        )
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(job.work, STOP))


def is_ours(job: Job) -> bool:
    """Whether there is a working folder that `begin` has made."""
    path = os.path.join(job.work, PLAN)
    if os.path.islink(job.work) or not os.path.isfile(path):
        return False
    with files.naming(path):
        return f'"format": "{PLANNED}"'.encode("ascii") in files.read(path)  # as `sealed` has it


def remove_work(job: Job, with_folder: bool) -> None:
    """Leave nothing of work that has come to no shard."""
    if all(name == WORK or TEMPORARY.fullmatch(name) for name in os.listdir(job.folder)):
        clean(job)
        if with_folder:
            os.rmdir(job.folder)


def clean(job: Job) -> None:
    """Remove what was needed for the work alone, and what killed processes have left where files
    without a name cannot be made."""
    if is_ours(job):
        # From now on workers that outlive their parent can write nothing there any more. Another
        # process may do the same.
        with contextlib.suppress(FileNotFoundError):
            os.rename(job.work, os.path.join(job.folder, f".tokbpe-{os.urandom(8).hex()}"))
    for name in filter(TEMPORARY.fullmatch, os.listdir(job.folder)):
        path = os.path.join(job.folder, name)
        with contextlib.suppress(FileNotFoundError):
            if os.path.isdir(path) and not os.path.islink(path):
                import shutil

                shutil.rmtree(path)
            else:
                os.unlink(path)


@contextlib.contextmanager
def telling_of_shards(folder: str) -> Iterator[None]:
    """An error of a full disk tells what becomes of the shards. One that names none of their files
    is of the caller's documents, or of his progress."""
    try:
        yield
    except OSError as error:
        is_own = str(error.filename).startswith(os.path.join(folder, ""))
        if error.errno not in FULL or not is_own:
            raise
        shards = len(glob.glob(os.path.join(glob.escape(folder), "*.offsets.npy")))
        raise OSError(
            error.errno,
            f"{error.strerror}; {shards} shards are finished and stay, and the same call goes on "
            "behind them",
            error.filename,
        ) from error


# The end of it


def finished_already(job: Job, parts: Sequence[Part], corpus: Any, add: Add | None) -> Shards:
    """The shards that are there, if they are those that are asked for."""
    shards = Shards(job.folder)
    check_finished(shards, job.facts(shards.corpus_fingerprint))
    digest = hashlib.sha256()
    for part in parts:
        for found in job.hashed(part, corpus, job.encoding().plan):
            digest.update(b"".join(found.digests))
            if add is not None:
                add(found.read)
    check_finished(shards, job.facts(digest.hexdigest()))
    clean(job)
    return shards


class Made(NamedTuple):
    """What all parts have come to."""

    corpus: str  # the fingerprint
    bytes: int
    documents: int
    shards: list[dict[str, Any]]

    @property
    def tokens(self) -> int:
        return sum(shard["tokens"] for shard in self.shards)


def finish(job: Job, parts: Sequence[Part], corpus: Any) -> None:
    """Write the manifest; then the work is done."""
    made = made_of(job, parts)
    check_others(job, made)
    if not made.tokens:
        remove_shards(job, made)
        raise ValueError(f"there is nothing to write: {made.documents} documents have no tokens")
    fitted = job.fitted()
    if fitted is not None:
        name = names_in(parts[0].files[0] if parts[0].files else None, corpus, job.encoding().plan)
        fitted.refuse_all(made.corpus, made.documents, name(0), job.role)
    manifest = {**job.facts(made.corpus), **made._asdict(), "tokens": made.tokens}
    with new_or_same(os.path.join(job.folder, MANIFEST)) as file:
        files.write(file, sealed(FORMAT, manifest))
    clean(job)


def made_of(job: Job, parts: Sequence[Part]) -> Made:
    """What the records tell of all parts."""
    digest = hashlib.sha256()
    size = documents = 0
    shards: list[dict[str, Any]] = []
    for part in parts:
        record = read_record(job, part.name)
        documents += record["documents"]
        size += record["bytes"]
        shards += [shard._asdict() for shard in shards_of(job, part, record)]
        add_hashes(digest, os.path.join(job.work, f"{part.name}.hashes"), record)
    return Made(digest.hexdigest(), size, documents, shards)


def shards_of(job: Job, part: Part, record: Mapping[str, Any]) -> list[Shard]:
    """The shards of a part; ValueError if its record tells of others than there are."""
    shards = []
    place = Place()
    for number in range(record["shards"]):
        shard, place = read_shard(job, f"{part.name}-{number:05}")
        shards.append(shard)
    documents = sum(shard.documents for shard in shards)
    end = Place(record["documents"], 0, record["hashes"])
    if place != end or documents != record["documents"]:
        raise ValueError(
            f"{record_path(job, part.name)}: the part ends at {end._asdict()}, but the "
            f"{len(shards)} shards that its record tells of have {documents} documents and end at "
            f"{place._asdict()}"
        )
    return shards


def check_others(job: Job, made: Made) -> None:
    """ValueError for a file of a shard in the folder that no record tells of."""
    known = {file for plain in made.shards for file in Shard(**plain).files}
    for name in sorted(os.listdir(job.folder)):
        if SHARD_FILE.fullmatch(name) and name not in known:
            raise ValueError(
                f"{os.path.join(job.folder, name)}: this shard is not one of the "
                f"{len(made.shards)} that the documents have come to"
            )


def add_hashes(digest: Any, path: str, record: Mapping[str, Any]) -> None:
    """Take up the hashes of a part; ValueError if they are not those of its record."""
    found = hashlib.sha256()
    for data in chunks(path, record["documents"] * found.digest_size):
        digest.update(data)
        found.update(data)
    expected = record["hashes"]
    if found.hexdigest() != expected:
        raise ValueError(f"{path}: the file is damaged: it does not have the checksum {expected}")


def remove_shards(job: Job, made: Made) -> None:
    for plain in made.shards:
        for name in Shard(**plain).files:
            os.unlink(os.path.join(job.folder, name))
