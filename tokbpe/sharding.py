"""From documents to token shards, so that the work can be killed at any moment and goes on.

Files are taken in parts, one after another until a part is large enough; a part is encoded into
shards of its own, so that several can be at once. While there is work, these stand in the folder
`work` beside the shards:

    plan.json           what is to be done; the same must be asked for to go on
    00000-00000.json    the record of a shard, written when its two files are there
    00000.hashes        the SHA-256 of each document of a part
    00000.json          the record of a part, written when all of it is there

    stop                there while workers are to end, since one of them has failed

What has a record is not made again.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import pickle
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed, wait
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from tokbpe import arguments, files, reading, sources
from tokbpe.corpus import ROLES, TRAINING
from tokbpe.encoded import options
from tokbpe.encoding import smallest_type
from tokbpe.parts import Part, files_of, names_in, parts_of
from tokbpe.progress import Progress, Report, checked, reporting
from tokbpe.shard_work import STOP, WORK, Add, Job, new_or_same, read_record, write_part
from tokbpe.shards import CHUNK_BYTES, MANIFEST, Shards, manifest_bytes
from tokbpe.sources import Listed
from tokbpe.tokenizer import Tokenizer

SHARD_TOKENS = 10**8
MOST_SHARD_TOKENS = 2**40
# A part is closed when its files have so many bytes for each token of a shard: about one shard.
PART_BYTES = 4
PLAN = "plan.json"
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
    dtype: str | None = None,
    shard_tokens: int = SHARD_TOKENS,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Shards:
    """Encode documents into a folder of token shards, which `Shards` reads.

    source: a path, or several, of files of all kinds that `Corpus.from_files` takes, chosen as it
        does; or a corpus: a `Corpus`, a `StreamedCorpus`, or what else has a `role` and gives its
        documents each time that it is iterated over. Text files may be of any size.
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
    folder with unfinished shards of another input; and for a validation or test corpus with a
    document that the tokenizer was fitted on. FileExistsError for a folder with anything else in
    it; another OSError for files that cannot be read or written.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer must be a Tokenizer, not {arguments.type_name(tokenizer)}")
    checked(progress)
    special = arguments.special_choice(allowed_special, tokenizer.special_tokens)
    corpus = source if hasattr(source, "role") else None
    if corpus is not None and executor is not None:
        raise ValueError("executor is for files; a corpus is encoded by threads")
    job = Job(
        os.fsdecode(folder),
        tokenizer,
        {"documents": text_of(documents), "field": sources.field_name(field)},
        options(special, bos, eos, add_special_tokens),
        role_of(role, corpus),
        dtype or smallest_type(tokenizer._vocabulary),
        arguments.whole_number(shard_tokens, "shard_tokens", 1, MOST_SHARD_TOKENS),
        arguments.threads(1 if threads is None and executor is not None else threads),
    )
    job.encoding()  # arguments are checked before anything is written
    found = [] if corpus is not None else files_of(source)
    parts = [Part(0, ())] if corpus is not None else parts_of(found, PART_BYTES * job.shard_tokens)
    if os.path.lexists(os.path.join(job.folder, MANIFEST)):
        return finished_already(job, parts, corpus)
    fitted = job.fitted()
    if fitted is not None:
        fitted.tell_of_forgotten(job.role)
    with (
        working_folder(job, job.plan(found)),
        reporting(progress, "B", unit_scale=True) as report,
    ):
        add = adding(report, size_of(found, corpus))
        try:
            if executor is None:
                for part in parts:
                    write_part(job, part, corpus, add)
            else:
                write_parts(job, parts, executor, add)
            finish(job, parts, corpus)
        except OSError as error:
            raise told_of_shards(error, job.folder) from error
    return Shards(job.folder)


def size_of(found: Sequence[Listed], corpus: Any) -> int | None:
    """How many bytes the documents have, None where that is not known before they are read."""
    if corpus is not None:
        return getattr(corpus, "known_bytes", None)
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


def write_parts(job: Job, parts: Sequence[Part], executor: Executor, add: Add | None) -> None:
    """Write parts at the same time. When one fails the others stop."""
    portable = replace(job, tokenizer=pickle.dumps(job.tokenizer))
    writing = [executor.submit(write_part, portable, part) for part in parts]
    stop = os.path.join(job.work, STOP)
    try:
        for done in as_completed(writing):
            size = done.result()
            if add is not None:
                add(size)
    except BaseException:
        with open(stop, "wb"):
            wait([future for future in writing if not future.cancel()])
        os.unlink(stop)
        raise


# The folder while there is work


@contextlib.contextmanager
def working_folder(job: Job, plan: Mapping[str, Any]) -> Iterator[None]:
    """The folder, with the plan of what is to be done. If nothing comes of it, nothing is left."""
    is_new = not os.path.lexists(job.folder)
    if is_new:
        os.mkdir(job.folder)
    elif set(os.listdir(job.folder)) - {WORK} and not os.path.lexists(job.work):
        raise FileExistsError(
            errno.ENOTEMPTY, "the folder holds something else than unfinished shards", job.folder
        )
    os.makedirs(job.work, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(job.work, STOP))
    path = os.path.join(job.work, PLAN)
    data = json.dumps(plan, indent=1).encode("ascii")
    try:
        if not os.path.lexists(path):
            with new_or_same(path) as file:
                files.write(file, data)
    except BaseException:
        remove_work(job, is_new)
        raise
    check_same(json.loads(files.read(path)), json.loads(data), job.folder)
    try:
        yield
    except BaseException:
        remove_work(job, is_new)
        raise


def remove_work(job: Job, with_folder: bool) -> None:
    """Leave nothing of work that has come to no shard."""
    if set(os.listdir(job.folder)) <= {WORK}:
        shutil.rmtree(job.work)
        if with_folder:
            os.rmdir(job.folder)


def check_same(there: Mapping[str, Any], wanted: Mapping[str, Any], folder: str) -> None:
    """ValueError, naming what differs, unless two plans are the same."""
    for name, value in wanted.items():
        if there.get(name) == value:
            continue
        one, other = there.get(name), value
        if name == "files":
            pairs = zip_longest(one or (), other)
            one, other = next(pair for pair in pairs if pair[0] != pair[1])
        raise ValueError(
            f"{folder}: there are unfinished shards of another input, whose {name} are "
            f"{one!r}, not {other!r}; ask for the same, or remove the folder"
        )


def told_of_shards(error: OSError, folder: str) -> OSError:
    """An error that tells what becomes of the shards if the disk is full."""
    if error.errno not in FULL:
        return error
    try:
        shards = sum(name.endswith(".offsets.npy") for name in os.listdir(folder))
    except OSError:
        return error
    return OSError(
        error.errno,
        f"{error.strerror}; {shards} shards are finished and stay, and the same call goes on "
        "behind them",
        error.filename,
    )


def finished_already(job: Job, parts: Sequence[Part], corpus: Any) -> Shards:
    """The shards that are there, if they are those that are asked for."""
    shards = Shards(job.folder)
    check_finished(shards, job.facts(shards.corpus_fingerprint))
    digest = hashlib.sha256()
    for part in parts:
        for found in job.hashed(part, corpus, job.encoding().plan):
            digest.update(b"".join(found.digests))
    check_finished(shards, job.facts(digest.hexdigest()))
    clean(job)
    return shards


def check_finished(shards: Shards, wanted: Mapping[str, Any]) -> None:
    """FileExistsError, naming what differs, unless shards are those that are wanted."""
    for name, value in wanted.items():
        if shards.manifest[name] != value:
            raise FileExistsError(
                errno.EEXIST,
                f"there are finished shards whose {name} is {shards.manifest[name]!r}, not "
                f"{value!r}",
                shards.folder,
            )


def finish(job: Job, parts: Sequence[Part], corpus: Any) -> None:
    """Write the manifest; then the work is done."""
    digest = hashlib.sha256()
    shards = []
    size = documents = 0
    for part in parts:
        record = read_record(job, part.name)
        documents += record["documents"]
        size += record["bytes"]
        names = [f"{part.name}-{number:05}" for number in range(record["shards"])]
        shards += [read_record(job, name)["shard"] for name in names]
        with open(os.path.join(job.work, f"{part.name}.hashes"), "rb") as hashes:
            while data := hashes.read(CHUNK_BYTES):
                digest.update(data)
    tokens = sum(shard["tokens"] for shard in shards)
    if not tokens:
        for name in (shard["name"] for shard in shards):
            os.unlink(os.path.join(job.folder, f"{name}.tokens.npy"))
            os.unlink(os.path.join(job.folder, f"{name}.offsets.npy"))
        raise ValueError(f"there is nothing to write: {documents} documents have no tokens")
    fitted = job.fitted()
    if fitted is not None:
        name = names_in(parts[0].files[0] if parts[0].files else None, corpus, job.encoding().plan)
        fitted.refuse_all(digest.hexdigest(), documents, name(0), job.role)
    facts = job.facts(digest.hexdigest())
    manifest = {**facts, "bytes": size, "documents": documents, "tokens": tokens, "shards": shards}
    with new_or_same(os.path.join(job.folder, MANIFEST)) as file:
        files.write(file, manifest_bytes(manifest))
    clean(job)


def clean(job: Job) -> None:
    """Remove what was needed for the work alone, and what killed processes have left where files
    without a name cannot be made."""
    with contextlib.suppress(FileNotFoundError):
        # From now on workers that outlive their parent can write nothing there any more.
        os.rename(job.work, os.path.join(job.folder, f".tokbpe-{secrets.token_hex(8)}"))
    for path in glob.glob(os.path.join(glob.escape(job.folder), ".tokbpe-*")):
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
