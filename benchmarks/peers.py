"""The peers: how each reads a vocabulary, and how it encodes, at its fastest.

Each function below imports its library, loads a vocabulary, and gives the calls that it has: one
text or many, to lists or to an array. `threads` is how many a call may use. No special token is
recognized in the text, but by Hugging Face's format, which always does; the texts hold none.
"""

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# The patterns of the rank files; `trained` is learned in this run, since rustbpe reads no files.
TRAINED = "trained"
PATTERNS = {"r50k": "gpt2", "cl100k": "cl100k", "o200k": "o200k", TRAINED: "cl100k"}
RANK_FILES = {name: f"{name}_base.tiktoken" for name in ("r50k", "cl100k", "o200k")}
QWEN = "qwen3"
VOCABULARIES = (*RANK_FILES, QWEN, TRAINED)
TRAINED_SIZE = 32_000

ONE, MANY = "one", "many"
LIST, ARRAY = "list", "array"
# How a peer encodes: the calls by (ONE or MANY, LIST or ARRAY).
Calls = Mapping[tuple[str, str], Callable[[Any], Any]]


class Vocabulary(NamedTuple):
    """The files of a vocabulary, as strings that JSON can hold."""

    name: str
    ranks: str | None  # tiktoken's format
    tokenizer: str  # the path of a tokenizer.json
    expression: str | None  # the pattern, as tiktoken spells it
    corpus: str | None  # what the vocabulary `trained` was learned from


class Unsupported(Exception):
    """A peer that has no such vocabulary."""


def vocabulary(name: str, folder: Path, scratch: Path) -> Vocabulary:
    """The files of a vocabulary: those of the folder, and what is derived from them."""
    if name == QWEN:
        return Vocabulary(name, None, str(folder / "qwen3.tokenizer.json"), None, None)
    return with_derived(name, folder / RANK_FILES[name], scratch)


def trained_vocabulary(corpus: Path, scratch: Path) -> Vocabulary:
    """The files of a vocabulary that is learned from a text."""
    from tokbpe import Tokenizer

    learned = Tokenizer(
        corpus.read_text(encoding="utf-8"),
        method="bpe",
        vocabulary_size=TRAINED_SIZE,
        pattern=PATTERNS[TRAINED],
    )
    ranks = scratch / f"{TRAINED}.tiktoken"
    learned.to_tiktoken(ranks)
    return with_derived(TRAINED, ranks, scratch)._replace(corpus=str(corpus))


def with_derived(name: str, ranks: Path, scratch: Path) -> Vocabulary:
    """The files of a vocabulary in tiktoken's format."""
    from tokbpe import Tokenizer, patterns

    tokenizer = Tokenizer.from_tiktoken(ranks, pattern=PATTERNS[name], special_tokens={})
    converted = scratch / f"{name}.tokenizer.json"
    tokenizer.to_huggingface(converted)
    if PATTERNS[name] == "gpt2":
        classic(converted)
    expression = patterns.to_tiktoken(tokenizer._vocabulary.pattern)
    return Vocabulary(name, str(ranks), str(converted), expression, None)


def classic(path: Path) -> None:
    """Write the pattern of GPT-2 as its own file has it: fastokens knows it in that form alone."""
    data = json.loads(path.read_text(encoding="utf-8"))
    data["pre_tokenizer"] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    path.write_text(json.dumps(data), encoding="utf-8")


# The peers


def tokbpe(vocabulary: Vocabulary, threads: int) -> Calls:
    tokenizer = tokbpe_tokenizer(vocabulary)
    return {
        (ONE, LIST): tokenizer.encode,
        (ONE, ARRAY): lambda text: tokenizer.encode_array(text, threads=threads),
        (MANY, LIST): lambda texts: tokenizer.encode_batch(texts, threads=threads),
        (MANY, ARRAY): lambda texts: tokenizer.encode_batch_arrays(texts, threads=threads),
    }


def tokbpe_tokenizer(vocabulary: Vocabulary) -> Any:
    from tokbpe import Tokenizer

    if vocabulary.ranks is None:
        return Tokenizer.from_huggingface(vocabulary.tokenizer)
    return Tokenizer.from_tiktoken(
        vocabulary.ranks, pattern=PATTERNS[vocabulary.name], special_tokens={}
    )


def tokbpe_engine(vocabulary: Vocabulary, threads: int) -> Calls:
    """The compiled engine without the class around it."""
    from tokbpe import fast

    table = tokbpe_tokenizer(vocabulary)._encoder.table
    return {(ONE, LIST): lambda text: fast.encode(text, table)}


def tiktoken(vocabulary: Vocabulary, threads: int) -> Calls:
    import numpy as np
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    if vocabulary.ranks is None:
        raise Unsupported
    encoding = tiktoken.Encoding(
        vocabulary.name,
        pat_str=vocabulary.expression,
        mergeable_ranks=load_tiktoken_bpe(vocabulary.ranks),
        special_tokens={},
    )
    calls: dict[tuple[str, str], Callable[[Any], Any]] = {
        (ONE, LIST): encoding.encode_ordinary,
        (ONE, ARRAY): encoding.encode_to_numpy,
    }
    if threads > 1:
        # For many texts only: one text is work for one thread.
        return {
            (MANY, LIST): lambda texts: encoding.encode_ordinary_batch(texts, num_threads=threads)
        }
    calls[MANY, LIST] = lambda texts: [encoding.encode_ordinary(text) for text in texts]
    calls[MANY, ARRAY] = lambda texts: np.concatenate([*map(encoding.encode_to_numpy, texts)])
    return calls


def tokenizers(vocabulary: Vocabulary, threads: int) -> Calls:
    import numpy as np
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(vocabulary.tokenizer)

    def one(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    def many(texts: list[str]) -> list[list[int]]:
        found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in found]

    if threads > 1:
        return {(MANY, LIST): many}
    return {
        (ONE, LIST): one,
        (ONE, ARRAY): lambda text: np.array(one(text), dtype=np.uint32),
        (MANY, LIST): many,
    }


def gigatoken(vocabulary: Vocabulary, threads: int) -> Calls:
    import awkward  # noqa: F401  # else the first batch pays for it
    import gigatoken

    if vocabulary.ranks is None:
        tokenizer = gigatoken.Tokenizer(vocabulary.tokenizer)
    else:
        tokenizer = gigatoken.Tokenizer.from_tiktoken(
            vocabulary.ranks, PATTERNS[vocabulary.name], {}
        )
    parallel = threads > 1
    calls: dict[tuple[str, str], Callable[[Any], Any]] = {
        (MANY, LIST): lambda texts: tokenizer.encode_batch_list(texts, parallel=parallel),
        (MANY, ARRAY): lambda texts: tokenizer.encode_batch(texts, parallel=parallel),
    }
    if parallel:
        calls[ONE, LIST] = lambda text: tokenizer.encode_batch_list([text], parallel=True)[0]
        calls[ONE, ARRAY] = lambda text: tokenizer.encode_batch([text], parallel=True)
    else:
        calls[ONE, LIST] = lambda text: tokenizer.encode(text).tolist()
        calls[ONE, ARRAY] = tokenizer.encode
    return calls


def fastokens(vocabulary: Vocabulary, threads: int) -> Calls:
    import fastokens
    import numpy as np

    if vocabulary.name in ("cl100k", "o200k"):
        tokenizer = fastokens.Tokenizer.from_tiktoken(
            vocabulary.ranks, encoding=f"{vocabulary.name}_base"
        )
    else:
        tokenizer = fastokens.Tokenizer.from_file(vocabulary.tokenizer)

    def array(texts: list[str]) -> Any:
        return np.frombuffer(tokenizer.encode_batch_flat(texts)[0], dtype=np.uint32)

    return {
        (ONE, LIST): lambda text: tokenizer.encode_ordinary(text).ids,
        (ONE, ARRAY): lambda text: array([text]),
        (MANY, LIST): lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(texts)],
        (MANY, ARRAY): array,
    }


def quicktok(vocabulary: Vocabulary, threads: int) -> Calls:
    import quicktok

    # It reads its own files, for these alone.
    names = {"cl100k": "cl100k_base", "o200k": "o200k_base", QWEN: QWEN}
    if vocabulary.name not in names:
        raise Unsupported
    tokenizer = quicktok.get_encoding(names[vocabulary.name])
    many = {(MANY, ARRAY): lambda texts: tokenizer.encode_batch(texts, threads)[0]}
    if threads > 1:
        return many
    return {
        **many,
        (ONE, LIST): tokenizer.encode_ordinary,
        (ONE, ARRAY): lambda text: tokenizer.encode_batch([text], 1)[0],
        (MANY, LIST): lambda texts: [tokenizer.encode_ordinary(text) for text in texts],
    }


def splintr(vocabulary: Vocabulary, threads: int) -> Calls:
    import numpy as np
    import splintr

    expressions = {
        "r50k": splintr.GPT2_PATTERN,
        "cl100k": splintr.CL100K_BASE_PATTERN,
        "o200k": splintr.O200K_BASE_PATTERN,
        TRAINED: splintr.CL100K_BASE_PATTERN,
    }
    if vocabulary.ranks is None:
        tokenizer = splintr.from_json(vocabulary.tokenizer)
    else:
        tokenizer = splintr.Tokenizer(vocabulary.ranks, expressions[vocabulary.name])

    def array(ids: bytes) -> Any:
        return np.frombuffer(ids, dtype=np.uint32)

    calls: dict[tuple[str, str], Callable[[Any], Any]] = {
        (MANY, LIST): tokenizer.encode_batch,
        (MANY, ARRAY): lambda texts: array(tokenizer.encode_batch_flat(texts)[0]),
    }
    if threads > 1:
        calls[ONE, LIST] = tokenizer.encode_rayon
    else:
        calls[ONE, LIST] = tokenizer.encode_ordinary
        calls[ONE, ARRAY] = lambda text: array(tokenizer.encode_flat(text))
    return calls


def rustbpe(vocabulary: Vocabulary, threads: int) -> Calls:
    import numpy as np
    import rustbpe

    if vocabulary.ranks is None or vocabulary.corpus is None:
        raise Unsupported
    tokenizer = rustbpe.Tokenizer()
    corpus = Path(vocabulary.corpus).read_text(encoding="utf-8")
    # As many ids as tokbpe learned; beyond, rustbpe goes on with pairs that occur once.
    size = Path(vocabulary.ranks).read_text().count("\n")
    tokenizer.train_from_iterator([corpus], size, pattern=vocabulary.expression)
    if threads > 1:
        return {(MANY, LIST): tokenizer.batch_encode}
    return {
        (ONE, LIST): tokenizer.encode,
        (ONE, ARRAY): lambda text: np.array(tokenizer.encode(text), dtype=np.uint32),
        (MANY, LIST): tokenizer.batch_encode,
    }


class Peer(NamedTuple):
    """A peer as it is measured."""

    module: str
    open: Callable[[Vocabulary, int], Calls]
    environment: Mapping[str, str] = {}
    share: float = 1  # of each text: a hundred times slower, it gets less
    short_only: bool = False  # it is there for the short calls


PEERS = {
    "tokbpe": Peer("tokbpe", tokbpe),
    "tokbpe, scalar": Peer("tokbpe", tokbpe, {"TOKBPE_SIMD": "scalar"}),
    "tokbpe.fast": Peer("tokbpe", tokbpe_engine, short_only=True),
    "tiktoken": Peer("tiktoken", tiktoken),
    "tokenizers": Peer("tokenizers", tokenizers, share=0.1),
    "gigatoken": Peer("gigatoken", gigatoken),
    "fastokens": Peer("fastokens", fastokens),
    "quicktok": Peer("quicktok", quicktok),
    "splintr": Peer("splintr", splintr),
    "rustbpe": Peer("rustbpe", rustbpe),
}
# The names of the distributions where they are not those of the modules.
DISTRIBUTIONS = {"quicktok": "quicktok-v1", "splintr": "splintr-rs"}


def installed() -> list[str]:
    return [name for name, peer in PEERS.items() if importlib.util.find_spec(peer.module)]


def versions(names: list[str]) -> dict[str, str]:
    from importlib.metadata import version

    from tokbpe import __version__

    modules = sorted({PEERS[name].module for name in names} - {"tokbpe"})
    others = {module: version(DISTRIBUTIONS.get(module, module)) for module in modules}
    return {"tokbpe": __version__, **others}


def reference(vocabulary: Vocabulary) -> Callable[[list[str]], list[list[int]]]:
    """The library that the vocabulary comes from: the ids that all must give."""
    open_reference = tokenizers if vocabulary.ranks is None else tiktoken
    return open_reference(vocabulary, 1)[MANY, LIST]
