"""What the command line accepts."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from tokbpe import check, engines, installation, methods, page, patterns
from tokbpe.arguments import LARGEST_VOCABULARY, MOST_THREADS, TIE_BREAKS
from tokbpe.corpus import ROLES
from tokbpe.count_work import MOST_WORKERS
from tokbpe.formats import detect
from tokbpe.formats.detect import NO_PATTERN
from tokbpe.formats.tiktoken import checked_pattern
from tokbpe.formats.tiktoken_known import KNOWN
from tokbpe.patterns import WORDS
from tokbpe.reading import LINE, WHOLE, separation
from tokbpe.sharding import MOST_SHARD_TOKENS, SHARD_TOKENS
from tokbpe.shards import DTYPES
from tokbpe.show.shown import SHOWN
from tokbpe.vocabulary import SPECIAL_IDS

# Takes the parsed arguments, yields what goes to standard output: lines of text, or bytes.
Command: TypeAlias = Callable[[argparse.Namespace], Iterator[str | bytes]]

STANDARD = "-"  # standard input or output in the place of a file
EXIT_CODES = "exit code: 0 done, 1 failed, 2 wrong use"

# What the files of each format do not say themselves, and options tell.
TOLD = {
    "tokbpe": (),
    "tiktoken": ("name", "pattern", "special"),
    "huggingface": (),
    "gpt2": ("merges_file", "special"),
    "json": ("pattern",),
}


def parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """What parses a command line. Of the result, `command` is to be called with all of it, and
    `wrong_use` with a text about what is found to be wrong later."""
    whole = argparse.ArgumentParser(
        prog="tokbpe",
        description="Byte-pair-encoding tokenizers.",
        epilog="example:\n  tokbpe demo\n\n`tokbpe COMMAND --help` has an example of each command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument(
        "--version",
        action=Version,
        nargs=0,
        help="show the version, and how this installation was built, and exit",
    )
    group = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (summary, description, example, accept) in HELP.items():
        command = group.add_parser(
            name,
            help=summary,
            description=description,
            epilog=f"example:\n  {example}\n\n{EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.set_defaults(command=commands[name], wrong_use=command.error)
        accept(command)
    return whole


class Version(argparse.Action):
    """Shows what is installed, which argparse's own action would put into one line."""

    def __call__(self, *_: Any, **__: Any) -> None:
        sys.stdout.writelines(f"{line}\n" for line in installation.lines())
        sys.exit()


def accept_training(training: argparse.ArgumentParser) -> None:
    accept_files(training, "text, or any bytes, to learn from", least="*")
    training.add_argument(
        "--counts",
        metavar="COUNTS",
        help="what `tokbpe count` wrote, to learn from in the place of files",
    )
    training.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="a new file for the tokenizer; one named *.json holds vocabulary and merges alone",
    )
    training.add_argument(
        "--method",
        choices=list(methods.METHODS),
        default="bpe",
        help="what is learned (bpe)",
    )
    training.add_argument(
        "--vocab-size",
        metavar="N",
        type=whole_number(1, LARGEST_VOCABULARY),
        help="ids, special tokens and reserved ids included (512)",
    )
    training.add_argument(
        "--min-pair-frequency",
        metavar="N",
        type=whole_number(1),
        help="how often a pair must occur to be merged (2; for words 1)",
    )
    accept_pattern(training, None, "how documents are cut: a name, a regular expression, or `none`")
    training.add_argument(
        "--tie-break",
        choices=TIE_BREAKS,
        help="which of equally frequent pairs is merged (smallest; for words first)",
    )
    training.add_argument(
        "--base", choices=list(methods.BYTE_ORDERS), help="the order of the first 256 ids (bytes)"
    )
    training.add_argument(
        "--special",
        metavar="TOKEN",
        action="append",
        default=[],
        help="a special token: a text with an id of its own; repeatable",
    )
    training.add_argument(
        "--reserved",
        metavar="NAME",
        action="append",
        default=[],
        help="the name of an id that no text yields, such as EOS; repeatable",
    )
    training.add_argument(
        "--special-ids", choices=SPECIAL_IDS, help="where these have their ids (behind the base)"
    )
    accept_trust(training)
    accept_threads(training)
    training.add_argument("--engine", choices=engines.NAMES, help="what does the work (fast)")


def accept_counting(counting: argparse.ArgumentParser) -> None:
    accept_files(counting, "text, or any bytes, of any size")
    counting.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="a new file for the counts; one named *.parquet is a Parquet file",
    )
    counting.add_argument(
        "--pattern",
        type=counting_pattern,
        help="how documents are cut: a name, a regular expression, `words`, for the method "
        "`word`, or `none`",
    )
    counting.add_argument(
        "--special",
        metavar="TOKEN",
        action="append",
        default=[],
        help="a special token, which is a boundary and not counted; repeatable",
    )
    accept_documents(counting)
    accept_threads(counting)
    counting.add_argument(
        "--workers",
        metavar="N",
        type=whole_number(1, MOST_WORKERS),
        help="how many processes count, each by one thread unless --threads tells (none)",
    )
    counting.add_argument("--engine", choices=engines.NAMES, help="what does the work (fast)")


def accept_encoding(encoding: argparse.ArgumentParser) -> None:
    accept_tokenizer(encoding)
    accept_files(encoding, "text, or any bytes")
    accept_output(encoding)
    encoding.add_argument(
        "--dtype", choices=("uint32", "uint16"), help="the type of an array's ids (uint32)"
    )
    accept_encoded(encoding)


def accept_encoded(encoding: argparse.ArgumentParser) -> None:
    """How each document is encoded."""
    accept_documents(encoding)
    accept_threads(encoding)
    encoding.add_argument(
        "--allow-special",
        metavar="TOKEN",
        action="append",
        default=[],
        help="a special token that the files may hold, or `all`; others are plain text; repeatable",
    )
    encoding.add_argument(
        "--bos", action="store_true", help="the reserved id BOS before each document"
    )
    encoding.add_argument(
        "--eos", action="store_true", help="the reserved id EOS behind each document"
    )
    encoding.add_argument(
        "--add-special-tokens",
        action="store_true",
        help="around each document what a tokenizer.json wants around a text",
    )


def accept_decoding(decoding: argparse.ArgumentParser) -> None:
    accept_tokenizer(decoding)
    accept_files(decoding, "ids as text or .npy")
    accept_output(decoding)
    decoding.add_argument(
        "--skip-special", action="store_true", help="leave special tokens out as well"
    )


def accept_field(reading: argparse.ArgumentParser) -> None:
    reading.add_argument(
        "--field",
        metavar="NAME",
        default="text",
        help="what holds the text of a document in .jsonl and .parquet files (text)",
    )


def accept_showing(showing: argparse.ArgumentParser) -> None:
    accept_tokenizer(showing)
    showing.add_argument("text", metavar="TEXT", help=f"a text; {STANDARD} is standard input")
    how = showing.add_mutually_exclusive_group()
    how.add_argument("--steps", action="store_true", help="the tokens after each merge")
    how.add_argument("--tree", action="store_true", help="what each token is merged of")
    showing.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(0, 2**31 - 1),
        default=SHOWN,
        help=f"how many tokens to show ({SHOWN:,})",
    )
    showing.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="whether tokens are told apart by colors: auto means on a terminal, unless NO_COLOR "
        "is set (auto)",
    )
    showing.add_argument(
        "--allow-special",
        metavar="TOKEN",
        action="append",
        default=[],
        help="a special token that the text may hold, or `all`; others are plain text; repeatable",
    )


def accept_inspecting(inspecting: argparse.ArgumentParser) -> None:
    accept_tokenizer(inspecting)
    inspecting.add_argument(
        "--merges",
        metavar="N",
        type=whole_number(0),
        default=10,
        help="how many merges to show (10)",
    )
    inspecting.add_argument(
        "--corpus",
        metavar="PATH",
        nargs="+",
        default=[],
        help="what to measure, bytes per token and tokens per word: files, globs, folders; text, "
        ".jsonl or .parquet, also as .gz or .zst",
    )
    accept_field(inspecting)
    inspecting.add_argument("--json", action="store_true", help="as one JSON object")


def accept_sharding(sharding: argparse.ArgumentParser) -> None:
    accept_tokenizer(sharding)
    sharding.add_argument(
        "files",
        metavar="PATH",
        nargs="+",
        help="a file, a glob, or a folder with all below it: text, .jsonl or .parquet, also as .gz "
        "or .zst",
    )
    sharding.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="where the shards are to be"
    )
    accept_encoded(sharding)
    accept_field(sharding)
    sharding.add_argument(
        "--role", choices=ROLES, default=ROLES[0], help=f"what the documents are for ({ROLES[0]})"
    )
    sharding.add_argument(
        "--shard-tokens",
        metavar="N",
        type=whole_number(1, MOST_SHARD_TOKENS),
        default=SHARD_TOKENS,
        help=f"a shard is closed when it has so many ({SHARD_TOKENS:,})",
    )
    sharding.add_argument(
        "--dtype", choices=DTYPES, help="the type of the ids (uint16, if it holds them all)"
    )
    sharding.add_argument(
        "--workers",
        metavar="N",
        type=whole_number(1, MOST_WORKERS),
        help="processes that encode parts of the files at the same time (none)",
    )


def accept_verifying(verifying: argparse.ArgumentParser) -> None:
    verifying.add_argument("folder", metavar="FOLDER", help="a folder of shards")
    verifying.add_argument(
        "--tokenizer", metavar="FILE", help="a file of `tokbpe train`, which the shards must be of"
    )
    accept_trust(verifying)
    verifying.add_argument("--json", action="store_true", help="as one JSON object")


def accept_converting(converting: argparse.ArgumentParser) -> None:
    accept_tokenizer(converting, "IN")
    converting.add_argument(
        "output", metavar="OUT", help="a new file, or for GPT-2's two a new folder"
    )
    converting.add_argument(
        "--to", choices=detect.FORMATS, required=True, help="the format of what is written"
    )


def accept_checking(checking: argparse.ArgumentParser) -> None:
    accept_files(checking, "text, or any bytes")
    checking.add_argument(
        "--bytes",
        metavar="N",
        type=whole_number(1),
        default=check.Plan.bytes,
        help=f"the size of the sample, at most ({check.Plan.bytes})",
    )
    checking.add_argument(
        "--merges",
        metavar="N",
        type=whole_number(0, LARGEST_VOCABULARY - 256),
        default=check.Plan.merges,
        help=f"how many to learn, at most ({check.Plan.merges})",
    )
    accept_pattern(
        checking,
        check.Plan.pattern,
        f"how text is cut: a name, a regular expression, or `none` ({check.Plan.pattern})",
    )


def accept_page(writing: argparse.ArgumentParser) -> None:
    writing.add_argument("output", metavar="OUT", help="a new file, named *.html")
    source = writing.add_mutually_exclusive_group()
    source.add_argument(
        "--corpus",
        metavar="FILE",
        help=f"text: a tokenizer of {page.LEARNED_SIZE:,} ids is learned from it, and the page "
        f"begins with its first {page.LONGEST_TEXT:,} characters",
    )
    source.add_argument(
        "--tokenizer",
        metavar="FILE",
        action="append",
        default=[],
        help=f"{detect.READABLE}; up to {page.MOST_TOKENIZERS} times, to compare them",
    )
    accept_trust(writing)


def accept_nothing(command: argparse.ArgumentParser) -> None:
    pass


def accept_files(command: argparse.ArgumentParser, what: str, least: str = "+") -> None:
    command.add_argument(
        "files", metavar="FILE", nargs=least, help=f"{what}; {STANDARD} is standard input"
    )


def accept_documents(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--documents",
        metavar="WHAT",
        type=documents,
        default=WHOLE,
        help=f"what a document is: `{WHOLE}`, a file; `{LINE}`, a line of it; or the text that "
        f"stands between two of them ({WHOLE})",
    )


def accept_threads(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--threads",
        metavar="N",
        type=whole_number(1, MOST_THREADS),
        help="how many work at once (as many as there are cores)",
    )


def accept_tokenizer(command: argparse.ArgumentParser, metavar: str = "TOKENIZER") -> None:
    command.add_argument(
        "tokenizer", metavar=metavar, help=f"{detect.READABLE}. Nothing is downloaded"
    )
    group = command.add_argument_group(f"what {metavar} may not say itself")
    group.add_argument(
        "--name",
        metavar="NAME",
        choices=list(KNOWN),
        help=f"the encoding of tiktoken that a rank file is of: {', '.join(KNOWN)}",
    )
    group.add_argument(
        "--pattern",
        metavar="PATTERN",
        type=pattern_of_file,
        help="how text is cut, of another rank file or a JSON file of vocab and merges: a name, a "
        "regular expression, for a rank file as tiktoken writes it, or `none`",
    )
    group.add_argument(
        "--special",
        metavar="TOKEN=ID",
        type=token_and_id,
        action="append",
        default=[],
        help="a special token, of a rank file or in GPT-2's vocab; repeatable",
    )
    group.add_argument("--merges-file", metavar="FILE", help="the merges that GPT-2's vocab needs")
    accept_trust(command)


def accept_trust(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--trust-pattern",
        action="store_true",
        help="take a pattern that stands in a file, though time may grow faster than the text",
    )


def misfit(arguments: argparse.Namespace, found: detect.Found) -> str | None:
    """What is wrong with the options about a file, now that its format is known."""
    for option in ("name", "pattern", "special", "merges_file"):
        if getattr(arguments, option) and option not in TOLD[found.format]:
            return f"--{option.replace('_', '-')} is not for the format {found.format}"
    if found.format == "tiktoken" and found.known is None and arguments.pattern is None:
        return (
            "a rank file holds no pattern and no special tokens: give --pattern, and --special "
            "TOKEN=ID for each of them, or --name if it is one of tiktoken's own"
        )
    if found.format == "gpt2" and found.merges is None:
        return "this is GPT-2's vocab: give its merges by --merges-file, or the folder with both"
    return None


def accept_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        default=STANDARD,
        help="a new file; without it, standard output",
    )


def accept_pattern(command: argparse.ArgumentParser, default: str | None, help: str) -> None:
    command.add_argument("--pattern", type=split_pattern, default=default, help=help)


def whole_number(least: int, most: int = 2**63 - 1) -> Callable[[str], int]:
    """What turns an argument into a whole number within bounds."""

    def convert(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
        if not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be from {least} to {most}, not {text}")
        return int(text)

    return convert


def documents(text: str) -> str:
    try:
        separation(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def split_pattern(text: str) -> str | None:
    if text == "none":
        return None
    try:
        patterns.get(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def counting_pattern(text: str) -> str | None:
    return text if text == WORDS.name else split_pattern(text)


def pattern_of_file(text: str) -> str:
    if text == "none":
        return NO_PATTERN
    with contextlib.suppress(ValueError):
        checked_pattern(text)
        return text
    split_pattern(text)
    return text


def token_and_id(text: str) -> tuple[str, int]:
    token, _, id = text.rpartition("=")
    if not token:
        raise argparse.ArgumentTypeError(f"must be a token and its id, TOKEN=ID, not {text!r}")
    return token, whole_number(0, LARGEST_VOCABULARY - 1)(id)


class Help(NamedTuple):
    """What a command's help says, and what adds its arguments."""

    summary: str
    description: str
    example: str
    accept: Callable[[argparse.ArgumentParser], None]


HELP = {
    "train": Help(
        "learn a tokenizer from files",
        "Learn a tokenizer from files, each of which is one document, or from counts, and save it\n"
        "in a new file. A progress bar and a summary are shown on a terminal only.",
        "tokbpe train book.txt notes.txt -o my.tokbpe --vocab-size 8192 --pattern cl100k",
        accept_training,
    ),
    "count": Help(
        "count the pieces of files, to learn from the counts",
        "Count the pieces into which a pattern cuts the files, and save the counts in a new file,\n"
        "from which `tokbpe train --counts` learns tokenizers of any size.",
        "tokbpe count book.txt notes.txt -o counts.npz --pattern cl100k",
        accept_counting,
    ),
    "encode": Help(
        "turn files into ids",
        "Turn files of any size, each of which is one document or many, into ids: a line of them\n"
        "for each document. An output named *.npy is a NumPy array instead, with the ids of all\n"
        "documents one after another, and one named *.bin the same without a header, each id\n"
        "little-endian; with several documents they need --bos or --eos, or what a tokenizer.json\n"
        "puts around a text, which mark where they meet.",
        "tokbpe encode my.tokbpe book.txt -o book.npy",
        accept_encoding,
    ),
    "decode": Help(
        "turn ids into the bytes that they stand for",
        "Turn ids into bytes. The files hold ids between white space, or are NumPy arrays.\n"
        "Reserved ids are left out.",
        "tokbpe decode my.tokbpe book.npy -o book.txt",
        accept_decoding,
    ),
    "show": Help(
        "show the tokens of a text",
        "Show the tokens of a text, in colors on a terminal (the extra `terminal`), elsewhere\n"
        "between brackets. What cannot be seen has a sign: `·` is a space, `↵` ends a line,\n"
        "‹e2 82› are bytes of a character that several tokens hold together. --steps shows the\n"
        "tokens after each merge, with its rank; --tree what each token is merged of.",
        "tokbpe show my.tokbpe lowest",
        accept_showing,
    ),
    "inspect": Help(
        "show what a tokenizer is",
        "Show what was read: the format and the method, ids without a meaning (gaps), rule and\n"
        "number of merges, whether a piece that is cut out whole is looked up first, pattern,\n"
        "special tokens, normalizer, a space put in front of a text, what is put around it\n"
        "(frame), whether all bytes come back (lossless), fingerprint, trainings, first merges;\n"
        "and pieces that do not encode to themselves: those that no text yields (never made), and\n"
        "those that the pattern cuts, so that at most a longer text yields them (cut alone). With\n"
        "--corpus also what it makes of each path: bytes, words, tokens, bytes per token\n"
        "(compression), tokens per word (fertility).",
        "tokbpe inspect my.tokbpe --corpus english.txt german.txt",
        accept_inspecting,
    ),
    "shard": Help(
        "turn files into token shards, to train on",
        "Turn files into a folder of token shards, which `tokbpe.Shards` and `TokenDataset` read.\n"
        "When it is killed, or the disk is full, the same command goes on where it stood. A\n"
        "progress bar and a summary are shown on a terminal only.",
        "tokbpe shard my.tokbpe texts/ -o shards --eos",
        accept_sharding,
    ),
    "verify": Help(
        "check each byte of token shards",
        "Read all files of a folder of shards and say what they are. The first that is missing,\n"
        "damaged, or of another tokenizer is named, and is a failure.",
        "tokbpe verify shards --tokenizer my.tokbpe",
        accept_verifying,
    ),
    "convert": Help(
        "write a tokenizer in another format",
        "Write a tokenizer in another format, with the same ids. What that cannot hold is refused\n"
        "by name. For tiktoken the Python that rebuilds the encoding is printed.",
        "tokbpe convert my.tokbpe my.tiktoken --to tiktoken",
        accept_converting,
    ),
    "check": Help(
        "compare both engines on text of your own",
        "Train both engines on a sample of the files with each tie rule, and compare pieces,\n"
        "merges, all counts, ids and decoded bytes. A difference is made small, shown, and is\n"
        "a failure. Takes some seconds; more with more bytes.",
        "tokbpe check book.txt",
        accept_checking,
    ),
    "page": Help(
        "write a page for the browser that shows training and encoding step by step",
        "Write one HTML file that needs no network: type text and step through training, merge by\n"
        "merge; see how tokenizers encode it, and compare them. A tokenizer that the page could\n"
        "not follow exactly is refused: one that normalizes text, puts a space in front of it, or\n"
        "cuts it by a pattern without a name.",
        "tokbpe page page.html --tokenizer my.tokbpe",
        accept_page,
    ),
    "demo": Help(
        "train on the source files of this Python's library, and show the result",
        "Train both engines on a part of the source files of this Python's library and compare\n"
        "them; train the fast one on all of it; show merges, tokens and speeds; export, import\n"
        "and compare. Takes some seconds and needs no network.",
        "tokbpe demo",
        accept_nothing,
    ),
}
