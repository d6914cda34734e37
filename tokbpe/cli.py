"""The command line; nothing else in the package prints.

A command is a function that takes the parsed arguments and yields what goes to standard output:
lines of text, or bytes. What is accepted stands in `usage`.
"""

import argparse
import contextlib
import errno
import io
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tokbpe import (
    check,
    demo,
    describe,
    engines,
    files,
    metrics,
    page,
    patterns,
    show,
    usage,
    written,
)
from tokbpe.count_work import new_processes
from tokbpe.counting import PieceCounts
from tokbpe.encoding import Arrays
from tokbpe.formats import detect
from tokbpe.patterns import Pattern
from tokbpe.reading import WHOLE, all_bytes
from tokbpe.sharding import write_shards
from tokbpe.shards import Shards
from tokbpe.show import terminal
from tokbpe.sources import Files
from tokbpe.tokenizer import Tokenizer
from tokbpe.usage import STANDARD
from tokbpe.vocabulary import Vocabulary

FAILED = 1
INTERRUPTED = 130  # as a shell reports SIGINT
NOBODY_READS = 141  # as a shell reports SIGPIPE

# What can go wrong in the work, BrokenExecutor where a worker is killed.
FAILURES = (
    *(OSError, ImportError, ValueError, MemoryError),
    *(BrokenExecutor, demo.DemoError, check.CheckError),
)
ARRAY_START = b"\x93NUMPY"
# What `verify` shows of a manifest.
VERIFIED = (
    *("role", "dtype", "bytes", "documents", "tokens"),
    *("source", "options", "tokenizer", "corpus"),
)
LONGEST_ID = 10  # digits
PARQUET = ".parquet"
LONGEST_SHOWN = 40  # bytes of what is no id


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors are told on standard error.

    0: done; 1: the work failed, or a difference was found; 130: Ctrl-C; 141: nobody reads the
    output any more. Wrong use raises SystemExit with the code 2, --help and --version raise it
    with 0, as argparse does.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An output that is no UTF-8 shows other characters as their code points.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments = parsed(argv)
        for output in arguments.command(arguments):
            say(output if isinstance(output, bytes) else f"{output}\n")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return NOBODY_READS
    except FAILURES as error:
        tell(f"error: {message(error)}")
        return FAILED
    return 0


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    try:
        arguments = usage.parser(COMMANDS).parse_args(argv)
        if getattr(arguments, "files", []).count(STANDARD) > 1:
            arguments.wrong_use(f"{STANDARD} can be read once only")
        return arguments
    finally:
        say("")  # flushes what argparse has printed


# The commands


def train(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    if arguments.output == STANDARD:
        arguments.wrong_use("-o must be a file: a tokenizer is not written to standard output")
    as_json = arguments.output.endswith(".json")
    if as_json and (
        arguments.method not in ("byte", "bpe") or arguments.special or arguments.reserved
    ):
        arguments.wrong_use(
            f"-o {arguments.output}: a .json file holds bytes and merges alone, no characters, "
            "words, special tokens or reserved ids; another name keeps everything"
        )
    if (arguments.counts is None) == (not arguments.files):
        arguments.wrong_use("give the FILEs to learn from, or --counts")
    if arguments.counts is not None and (arguments.pattern or arguments.special):
        arguments.wrong_use("--pattern and --special are those of the counts")
    check_new(arguments.output)
    counts = None if arguments.counts is None else counts_of(arguments)
    corpus = Corpus(arguments.files)
    start = time.perf_counter()
    options = {
        "method": arguments.method,
        "vocabulary_size": arguments.vocab_size,
        "minimum_pair_frequency": arguments.min_pair_frequency,
        "tie_break": arguments.tie_break,
        "base": arguments.base,
        "reserved": arguments.reserved,
        "special_ids": arguments.special_ids,
        "engine": arguments.engine,
        "progress": on_terminal(sys.stderr),
        "threads": arguments.threads,
    }
    try:
        with told_warnings():
            if counts is not None:
                tokenizer = Tokenizer.from_counts(counts, **options)
            else:
                tokenizer = Tokenizer(
                    corpus,
                    pattern=arguments.pattern,
                    special_tokens=arguments.special,
                    **options,
                )
    except ValueError as error:
        if counts is None and not corpus.begun:
            arguments.wrong_use(str(error))
        raise
    seconds = time.perf_counter() - start
    (tokenizer.to_json if as_json else tokenizer.save)(arguments.output)
    if as_json and tokenizer.pattern:
        tell_of_pattern(patterns.get(tokenizer.pattern))
    if on_terminal(sys.stderr):
        source = f"{corpus.bytes:,} bytes" if counts is None else f"{len(counts):,} pieces"
        tell(
            f"{tokenizer.vocab_size:,} ids, {len(tokenizer.merges):,} merges from {source} "
            f"in {seconds:.2f} s: {arguments.output}"
        )
    return iter(())


def count(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    if arguments.output == STANDARD:
        arguments.wrong_use("-o must be a file: counts are not written to standard output")
    if arguments.workers is not None and STANDARD in arguments.files:
        arguments.wrong_use(f"--workers read files, and {STANDARD} is none")
    check_new(arguments.output)
    start = time.perf_counter()
    counts = PieceCounts(
        pattern=arguments.pattern, special_tokens=arguments.special, engine=arguments.engine
    )
    with told_warnings(), contextlib.ExitStack() as stack:
        counts.add_files(
            [
                stack.enter_context(reading(name)) if name == STANDARD else name
                for name in arguments.files
            ],
            documents=arguments.documents,
            threads=arguments.threads,
            workers=arguments.workers,
            progress=on_terminal(sys.stderr),
        )
    seconds = time.perf_counter() - start
    write = counts.to_parquet if arguments.output.endswith(PARQUET) else counts.save
    write(arguments.output)
    if on_terminal(sys.stderr):
        tell(
            f"{len(counts):,} pieces from {counts.record['bytes']:,} bytes in {seconds:.2f} s: "
            f"{arguments.output}"
        )
    return iter(())


def counts_of(arguments: argparse.Namespace) -> PieceCounts:
    """What `count` wrote."""
    path = arguments.counts
    read = PieceCounts.from_parquet if path.endswith(PARQUET) else PieceCounts.load
    return read(path, trust_pattern=arguments.trust_pattern)


def encode(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    output = arguments.output
    as_array = output.endswith((".npy", ".bin"))
    if arguments.dtype is not None and not as_array:
        arguments.wrong_use("--dtype is for an output named *.npy or *.bin")
    check_new(output)
    tokenizer = loaded(arguments)
    dtype = arguments.dtype or "uint32"
    options = {
        "allowed_special": allowed_special(arguments),
        "bos": arguments.bos,
        "eos": arguments.eos,
        "add_special_tokens": arguments.add_special_tokens,
    }

    def blocks_of(file: Any) -> Iterator[Arrays]:
        return tokenizer.encode_file(
            file,
            documents=arguments.documents,
            dtype=dtype,
            threads=arguments.threads,
            **options,
        )

    try:
        blocks_of(io.BytesIO())
        marks = tokenizer.encode_bytes(b"", **options)
    except ValueError as error:
        arguments.wrong_use(str(error))
    if as_array and not marks and (len(arguments.files) > 1 or arguments.documents != WHOLE):
        arguments.wrong_use(
            f"-o {output}: an array does not tell where one of several files or documents ends; "
            "mark it by --bos or --eos, or --add-special-tokens"
        )
    encoded = (blocks_of_file(name, blocks_of) for name in arguments.files)
    if output == STANDARD:
        yield from written.lines(encoded)
        return
    with files.new_file(output) as file:
        if output.endswith(".npy"):
            written.write_array(file, encoded, dtype)
        else:
            parts = written.numbers(encoded) if as_array else written.lines(encoded)
            for part in parts:
                file.write(part)


def allowed_special(arguments: argparse.Namespace) -> list[str] | str:
    allowed: list[str] = arguments.allow_special
    return "all" if "all" in allowed else allowed


def blocks_of_file(name: str, blocks_of: Callable[[Any], Iterator[Arrays]]) -> Iterator[Arrays]:
    """The blocks of a file, whose errors name it."""
    with reading(name) as file, placed("standard input" if name == STANDARD else name):
        yield from blocks_of(file)


def decode(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    check_new(arguments.output)
    tokenizer = loaded(arguments)

    def text_of(data: bytes) -> bytes:
        if data.startswith(ARRAY_START):
            return tokenizer.decode_bytes(ids_of_array(data), arguments.skip_special)
        lines = [ids_of_line(line, number) for number, line in enumerate(data.split(b"\n"), 1)]
        try:
            return tokenizer.decode_bytes(
                [id for line in lines for id in line], arguments.skip_special
            )
        except ValueError:
            for number, line in enumerate(lines, 1):
                with placed(f"line {number}"):
                    tokenizer.decode_bytes(line)
            raise

    texts = each_file(arguments.files, text_of)
    if arguments.output == STANDARD:
        yield from texts
    else:
        files.publish(arguments.output, b"".join(texts))


def ids_of_array(data: bytes) -> Any:
    """The ids that a .npy file holds; ValueError for anything else in it."""
    with written.reading_array():
        ids = np.load(io.BytesIO(data), allow_pickle=False)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"the array must hold whole numbers in one dimension, not {ids.dtype} "
            f"of the shape {ids.shape}"
        )
    return ids


def ids_of_line(line: bytes, number: int) -> list[int]:
    """The ids between white space in a line of text."""
    words = line.split()
    for word in words:
        if not word.isdigit() or len(word) > LONGEST_ID:
            raise ValueError(f"line {number}: {demo.printable(word[:LONGEST_SHOWN])!r} is no id")
    return [int(word) for word in words]


def show_tokens(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    tokenizer = loaded(arguments)
    text = os.fsencode(arguments.text)
    if arguments.text == STANDARD:
        text = content(STANDARD)
    allowed = allowed_special(arguments)
    if arguments.steps:
        yield from show.merge_steps(tokenizer, text, allowed_special=allowed).lines()
        return
    if arguments.tree:
        yield from show.merge_tree(tokenizer, text).lines()
        return
    shown = show.tokens(tokenizer, text, limit=arguments.limit, allowed_special=allowed)
    yield colored(shown, arguments.color)
    yield shown.note


def colored(shown: Any, color: str) -> str:
    """Tokens for standard output: in colors or, where there are none, between brackets."""
    if color == "always":
        return terminal.colored(shown)
    if color == "auto" and terminal.wanted(sys.stdout):
        try:
            return terminal.colored(shown)
        except ImportError as error:
            tell(str(error))
    return str(shown)


def inspect(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    found, vocabulary = read_vocabulary(arguments)
    facts = {
        "file": found.path,
        **({} if found.merges is None else {"merges_file": found.merges}),
        "format": found.format,
        **describe.facts(vocabulary, engines.get(), arguments.merges),
    }
    if arguments.corpus:
        tokenizer = Tokenizer.from_vocabulary(vocabulary)
        facts["corpus"] = measured(arguments.corpus, arguments.field, tokenizer)
    if arguments.json:
        yield json.dumps(facts, indent=2)
    else:
        yield from describe.lines(facts)


def measured(names: Sequence[str], field: str, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """What a tokenizer makes of each path, and of all together.

    field: what holds the text of records.
    """
    found: dict[str, metrics.Measure] = {}
    for name in names:
        if name == STANDARD:
            data = content(name)
            with placed("standard input"):
                found[name] = metrics.measure(tokenizer, data)
        else:
            found[name] = metrics.measure_of(tokenizer, Files(name, WHOLE, field, None))
    if len(found) > 1:
        found["all files"] = sum(found.values(), metrics.Measure())
    return {
        name: {
            "bytes": measure.bytes,
            "words": measure.words,
            "tokens": measure.tokens,
            "bytes_per_token": rounded(measure.bytes_per_token),
            "tokens_per_word": rounded(measure.fertility),
        }
        for name, measure in found.items()
    }


def rounded(value: float) -> float | None:
    """A figure as it is shown; None for what JSON lacks."""
    return None if math.isnan(value) else round(value, 3)


def shard(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    tokenizer = loaded(arguments)
    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(told_warnings())
        executor = None
        if arguments.workers is not None:
            executor = stack.enter_context(new_processes(arguments.workers))
        shards = write_shards(
            arguments.files,
            tokenizer,
            arguments.output,
            documents=arguments.documents,
            field=arguments.field,
            role=arguments.role,
            allowed_special=allowed_special(arguments),
            bos=arguments.bos,
            eos=arguments.eos,
            add_special_tokens=arguments.add_special_tokens,
            dtype=arguments.dtype,
            shard_tokens=arguments.shard_tokens,
            executor=executor,
            threads=arguments.threads,
            progress=on_terminal(sys.stderr),
        )
    if on_terminal(sys.stderr):
        tell(
            f"{len(shards):,} tokens of {shards.documents:,} documents in "
            f"{len(shards.shards):,} shards in {time.perf_counter() - start:.2f} s: "
            f"{arguments.output}"
        )
    return iter(())


def verify(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    tokenizer = None
    if arguments.tokenizer is not None:
        tokenizer = Tokenizer.load(arguments.tokenizer, trust_pattern=arguments.trust_pattern)
    shards = Shards(arguments.folder, tokenizer)
    shards.verify(progress=on_terminal(sys.stderr))
    facts = {
        "folder": shards.folder,
        **{name: shards.manifest[name] for name in VERIFIED},
        "shards": len(shards.shards),
        "fingerprint": shards.fingerprint(),
    }
    if arguments.json:
        yield json.dumps(facts, indent=2)
    else:
        yield from describe.named(facts)


def convert(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    output = arguments.output
    check_new(output)
    _, vocabulary = read_vocabulary(arguments)
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    recipe = ""
    with placed(f"--to {arguments.to}"):
        if arguments.to == "gpt2":
            with files.new_folder(output) as folder:
                tokenizer.to_gpt2(folder)
        elif arguments.to == "tiktoken":
            recipe = tokenizer.to_tiktoken(output)
        elif arguments.to == "huggingface":
            tokenizer.to_huggingface(output)
        elif arguments.to == "json":
            tokenizer.to_json(output)
            tell_of_pattern(vocabulary.pattern)
        else:
            tokenizer.save(output)
    yield from recipe.splitlines()


def check_files(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    plan = check.Plan(arguments.bytes, arguments.merges, arguments.pattern)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(reading(name)) for name in arguments.files]
        yield from check.lines(opened, plan)


def write_page(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    if arguments.output == STANDARD:
        arguments.wrong_use("OUT must be a file: a page is not written to standard output")
    paths = arguments.tokenizer
    if len(paths) > page.MOST_TOKENIZERS or len({*paths}) < len(paths):
        arguments.wrong_use(f"--tokenizer is for {page.MOST_TOKENIZERS} files at most, each once")
    check_new(arguments.output)
    text = name = None
    if arguments.corpus is None:
        vocabularies = dict(
            zip(page.names_of(paths), (said_by_itself(arguments, p) for p in paths))
        )
    else:
        (name,) = page.names_of([arguments.corpus])
        data = content(arguments.corpus)
        with placed(arguments.corpus), told_warnings():
            vocabularies = {name: page.learned(data)}
        text = data.decode("utf-8", "replace")
    files.publish(arguments.output, page.written(vocabularies, text, name).encode())
    return iter(())


def said_by_itself(arguments: argparse.Namespace, path: str) -> Vocabulary:
    """What a file holds that needs no options to be read."""
    told = {option: None for options in usage.TOLD.values() for option in options}
    found = detect.find(path)
    if usage.misfit(argparse.Namespace(**told), found) is not None:
        arguments.wrong_use(
            f"{path}: this file does not say all that a tokenizer is: see `tokbpe convert --help`, "
            "and convert it with --to tokbpe"
        )
    return detect.load(found, engine=engines.get(), trust_pattern=arguments.trust_pattern)


def show_demo(arguments: argparse.Namespace) -> Iterator[str | bytes]:
    # A bar would disturb other output on the same terminal, if that is not seen there too.
    return demo.lines(progress=on_terminal(sys.stdout) and on_terminal(sys.stderr))


# Files


@contextlib.contextmanager
def reading(name: str) -> Iterator[BinaryIO]:
    """A file, or standard input, which stays open. OSError for a device."""
    if name != STANDARD:
        files.check_path(name)
        files.check_kind(os.stat(name), name)
        with files.readable(name) as file:
            yield file
    elif sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
    else:
        with files.naming_damage("standard input"):
            yield sys.stdin.buffer


def content(name: str) -> bytes:
    """All bytes of a file, or of standard input; OSError for a file that changes meanwhile."""
    with reading(name) as file:
        return all_bytes(file)


class Corpus:
    """Files as documents, read one by one."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.begun = False
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        self.begun = True
        for name in self.names:
            document = content(name)
            self.bytes += len(document)
            yield document


def each_file(names: Sequence[str], work: Callable[[bytes], Any]) -> Iterator[Any]:
    """What is made of the bytes of each file."""
    for name in names:
        data = content(name)
        with placed("standard input" if name == STANDARD else name):
            result = work(data)
        yield result


@contextlib.contextmanager
def placed(place: str) -> Iterator[None]:
    """Names the place in a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def loaded(arguments: argparse.Namespace) -> Tokenizer:
    """The tokenizer that the arguments name."""
    return Tokenizer.from_vocabulary(read_vocabulary(arguments)[1])


def read_vocabulary(arguments: argparse.Namespace) -> tuple[detect.Found, Vocabulary]:
    """The file that the arguments name, and what it holds."""
    special = dict(arguments.special)
    if len(special) < len(arguments.special):
        arguments.wrong_use("--special names a token twice")
    found = detect.find(arguments.tokenizer, name=arguments.name, merges=arguments.merges_file)
    problem = usage.misfit(arguments, found)
    if problem is not None:
        arguments.wrong_use(f"{found.path}: {problem}")
    vocabulary = detect.load(
        found,
        pattern=arguments.pattern,
        special_tokens=special or None,
        engine=engines.get(),
        trust_pattern=arguments.trust_pattern,
    )
    return found, vocabulary


def check_new(output: str) -> None:
    """OSError, before any work, where a file could not be written after it."""
    if output == STANDARD:
        return
    files.check_path(output)
    if os.path.lexists(output):
        raise FileExistsError(
            errno.EEXIST, "this path exists, and no file is ever replaced", output
        )
    folder = Path(output).parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "there is no such folder", str(folder))


# What is said


def on_terminal(stream: Any) -> bool:
    """Whether a progress bar would be seen on a stream."""
    return stream is not None and stream.isatty()


@contextlib.contextmanager
def told_warnings() -> Iterator[None]:
    """Tells warnings as it tells errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        tell(f"warning: {warning.message}")


def tell_of_pattern(pattern: Pattern | None) -> None:
    """Warn of a pattern that a JSON file of vocab and merges does not hold."""
    if pattern is not None:
        text = pattern.name or pattern.sources[0]
        known = patterns.get(text) == pattern
        use = f"use it with --pattern {text}" if known else f"no --pattern is as {pattern!r}"
        tell(f"warning: the file holds no pattern: {use}")


def message(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory" + (f": {error}" if str(error) else "")
    return str(error)


def tell(text: str) -> None:
    """Write a line to standard error."""
    if sys.stderr is not None:
        print(f"tokbpe: {text}", file=sys.stderr)


def say(output: str | bytes) -> None:
    """Write to standard output at once."""
    if sys.stdout is None:
        if output:
            raise OSError(errno.EBADF, "standard output is closed")
        return
    try:
        if isinstance(output, str):
            sys.stdout.write(output)
        else:
            left = memoryview(output)
            while left:  # with PYTHONUNBUFFERED a part may be written, without an error
                left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.flush()
    except OSError:
        # What could not be written would be tried again, and complained about, at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


COMMANDS = {
    "train": train,
    "count": count,
    "encode": encode,
    "decode": decode,
    "show": show_tokens,
    "inspect": inspect,
    "shard": shard,
    "verify": verify,
    "convert": convert,
    "check": check_files,
    "page": write_page,
    "demo": show_demo,
}
