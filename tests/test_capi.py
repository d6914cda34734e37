"""The native table, by an extension in C and one in Cython that are built here."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from alarms import alarm
from tokbpe import Tokenizer, fast, methods
from tokbpe.fast import capi
from tokbpe.vocabulary import Vocabulary

if os.name == "posix":
    import resource

EXAMPLE = Path(__file__).with_name("capi_example")
COMPILER = (sysconfig.get_config_var("CC") or "cl").split()[0]
# The engine is sanitized, and so is the example then.
PRELOADED = os.environ.get("LD_PRELOAD", "")
SANITIZERS = {
    "asan": " -fsanitize=address,undefined -fno-sanitize-recover=all",
    "tsan": " -fsanitize=thread",
}
SANITIZER = "".join(options for name, options in SANITIZERS.items() if name in PRELOADED)
POSIX = pytest.mark.skipif(os.name != "posix", reason="threads of POSIX, fork and signals")

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(
        shutil.which(COMPILER) is None, reason=f"the compiler {COMPILER} is not on this machine"
    ),
]

# As in the header.
OK, SMALL_BUFFER, CHANGED_SIZE, CLOSED, WRONG_VERSION, UNKNOWN_BYTE, UNKNOWN_ID = range(7)
UNKNOWN_PIECE, NO_MEMORY, NOT_SUPPORTED, NULL_POINTER, TOO_LONG, INTERRUPTED = range(7, 13)

CORPUS = ["the cat sat on the mat, and the other cat sat on the hat. " * 4, "naïve 漢字 🎈 " * 9]
TEXT = "the hat of the naïve cat 🎈, and 漢字 that 12 others sat on\n"
TOKENIZERS = {
    "bpe": Tokenizer(
        CORPUS,
        method="bpe",
        vocabulary_size=280,
        pattern="cl100k",
        special_tokens=["<|end|>", "<|start|>"],
        reserved=["EOS"],
    ),
    "byte": Tokenizer.from_bytes(special_tokens=["<|end|>"]),
    "char": Tokenizer(CORPUS, method="char", special_tokens=["<|end|>"]),
    "word": Tokenizer(CORPUS, method="word", special_tokens=["<|end|>", "stop "]),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capi") / "example"
    shutil.copytree(EXAMPLE, folder)
    paths = os.pathsep.join([str(Path(fast.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    options = {"PYTHONPATH": paths, "ASAN_OPTIONS": "detect_leaks=0"}
    if COMPILER != "cl":
        options["CFLAGS"] = f"-O0 -Wall{SANITIZER}"
    build = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, **options},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert build.returncode == 0, build.stdout
    assert "warning" not in build.stdout, build.stdout
    return folder


def loaded(folder, name):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}{suffix}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def native(built):
    return loaded(built, "native_calls")


@pytest.fixture(scope="module")
def cython(built):
    return loaded(built, "cython_loader")


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]


@pytest.fixture
def handle(native, tokenizer):
    handle = native.open(tokenizer, "all")
    yield handle
    native.close(handle)


@pytest.fixture
def bpe(native):
    handle = native.open(TOKENIZERS["bpe"])
    yield handle
    native.close(handle)


def array(ids):
    return np.array(ids, np.uint32).tobytes()


# What it gives


@pytest.mark.parametrize(
    "text", [TEXT, "", "a", " ", "a<|end|>b<|end|>", "stop the cat", TEXT * 99]
)
def test_the_ids_are_those_of_the_tokenizer(native, tokenizer, handle, text):
    data = text.encode()
    ids = tokenizer.encode(text, allowed_special="all")
    size = len(ids)
    assert native.encode_size(handle, data) == (OK, size)
    assert native.encode(handle, data, size) == (OK, size, array(ids))
    assert native.encode(handle, data, size + 9) == (OK, size, array(ids))
    assert native.encode_copy(handle, data, size) == (OK, size, array(ids))


def test_bytes_that_are_no_utf_8(native, tokenizer, handle):
    data = b"the \xff\xfe cat\xe6\xbc"
    ids = tokenizer.encode_bytes(data)
    assert native.encode(handle, data, len(data)) == (OK, len(ids), array(ids))


def test_special_tokens_are_text_unless_they_are_allowed(native):
    tokenizer = TOKENIZERS["bpe"]
    text = "a<|end|>b<|start|>"
    for allowed in (None, [], ["<|end|>"], {"<|start|>", "<|end|>"}, "all"):
        handle = native.open(tokenizer, allowed)
        ids = tokenizer.encode(text, allowed_special=allowed or ())
        assert native.encode_size(handle, text.encode()) == (OK, len(ids))
        assert native.encode(handle, text.encode(), 99) == (OK, len(ids), array(ids))
        native.close(handle)


@pytest.mark.parametrize("text", [TEXT, "", "the", "the cat ", "a<|end|>", "the stop ", TEXT * 99])
def test_the_bytes_are_those_of_the_tokenizer(native, tokenizer, handle, text):
    ids = tokenizer.encode(text, allowed_special="all")
    data = tokenizer.decode_bytes(ids)
    size = len(data)
    assert native.decode_size(handle, array(ids)) == (OK, size)
    assert native.decode(handle, array(ids), size) == (OK, size, data)
    assert native.decode(handle, array(ids), size + 9) == (OK, size, data)
    assert native.decode_copy(handle, array(ids), size) == (OK, size, data)


def test_every_run_of_ids_decodes_alike(native, tokenizer, handle):
    ids = [*range(tokenizer.vocab_size)]
    for first in range(0, len(ids), 7):
        for last in (first + 1, first + 2, first + 5):
            run = ids[first:last]
            data = tokenizer.decode_bytes(run)
            assert native.decode(handle, array(run), 999) == (OK, len(data), data)


def test_the_vocabulary(native, tokenizer, handle):
    assert native.vocab_size(handle) == (OK, tokenizer.vocab_size)
    assert native.method(handle) == (OK, methods.get(tokenizer.method).number)
    for id, piece in tokenizer.items():
        assert native.piece(handle, id) == (OK, piece)
        if piece:
            assert native.piece_id(handle, piece) == (OK, tokenizer.token_to_id(piece))
    assert native.piece_id(handle, b"no such piece")[0] == UNKNOWN_PIECE
    assert native.piece_id(handle, b"")[0] == UNKNOWN_PIECE


def test_the_numbers_of_the_methods_are_those_of_the_header(native):
    header = Path(fast.get_include(), "tokbpe.h").read_text(encoding="utf-8")
    for method in methods.METHODS.values():
        if method.name in TOKENIZERS:
            assert f"TOKBPE_{method.name.upper()} = {method.number}" in header


def test_a_handle_lives_on_its_own(native):
    tokenizer = Tokenizer(CORPUS, method="bpe", vocabulary_size=270)
    ids = tokenizer.encode(TEXT)
    handle = native.open(tokenizer)
    tokenizer.close()
    del tokenizer
    assert native.encode(handle, TEXT.encode(), 999) == (OK, len(ids), array(ids))
    assert native.close(handle) == OK


def test_the_cache_is_given_back(native):
    tokenizer = Tokenizer(CORPUS, method="bpe", vocabulary_size=270, pattern="cl100k")
    handle = native.open(tokenizer)
    table = tokenizer._encoder.table
    assert native.encode_size(handle, TEXT.encode())[0] == OK
    assert table.cache_size > 0
    assert native.clear_cache(handle) == OK
    assert table.memory() == 0
    assert native.encode_size(handle, TEXT.encode()) == (OK, tokenizer.count(TEXT))
    native.close(handle)
    tokenizer.clear_cache()
    assert table.memory() == 0


# Misuse


def test_a_small_buffer(native, tokenizer, handle):
    ids = tokenizer.encode(TEXT)
    for room in (0, 1, len(ids) - 1):
        assert native.encode(handle, TEXT.encode(), room) == (SMALL_BUFFER, len(ids), b"")
    data = tokenizer.decode_bytes(ids)
    for room in (0, 1, len(data) - 1):
        assert native.decode(handle, array(ids), room) == (SMALL_BUFFER, len(data), b"")


def test_a_size_that_changed(native, tokenizer, handle):
    ids = tokenizer.encode(TEXT)
    data = tokenizer.decode_bytes(ids)
    for wrong in (-1, 1, 50):
        assert native.encode_copy(handle, TEXT.encode(), len(ids) + wrong) == (
            CHANGED_SIZE,
            len(ids),
            b"",
        )
        assert native.decode_copy(handle, array(ids), len(data) + wrong) == (
            CHANGED_SIZE,
            len(data),
            b"",
        )


@pytest.mark.parametrize("made_up", [0, 1, 2**32, 2**32 + 1, 2**64 - 1, 0xDEADBEEF << 32])
def test_a_handle_that_never_was(native, bpe, made_up):
    assert made_up != bpe
    check_closed(native, made_up)


def test_a_handle_that_is_closed(native):
    first = native.open(TOKENIZERS["byte"])
    assert native.close(first) == OK
    check_closed(native, first)
    second = native.open(TOKENIZERS["byte"])
    assert second != first
    check_closed(native, first)
    assert native.encode_size(second, b"abc") == (OK, 3)
    assert native.close(second) == OK


def check_closed(native, handle):
    assert native.close(handle) == CLOSED
    assert native.clear_cache(handle) == CLOSED
    assert native.method(handle) == (CLOSED, -1)
    assert native.vocab_size(handle) == (CLOSED, 0)
    assert native.encode_size(handle, b"abc") == (CLOSED, 0)
    assert native.encode(handle, b"abc", 3) == (CLOSED, 0, b"")
    assert native.encode_copy(handle, b"abc", 3) == (CLOSED, 0, b"")
    assert native.decode_size(handle, array([97])) == (CLOSED, 0)
    assert native.decode(handle, array([97]), 3) == (CLOSED, 0, b"")
    assert native.decode_copy(handle, array([97]), 3) == (CLOSED, 0, b"")
    assert native.piece(handle, 97) == (CLOSED, None)
    assert native.piece_id(handle, b"a") == (CLOSED, 0)


def test_an_unknown_byte(native):
    tokenizer = Tokenizer(b"abc abc<e>", special_tokens=["<e>"])
    handle = native.open(tokenizer, "all")
    assert native.encode_size(handle, b"a<e>cxb") == (UNKNOWN_BYTE, 5)
    assert native.encode(handle, b"abcx", 9) == (UNKNOWN_BYTE, 3, b"")
    assert native.encode_copy(handle, b"x", 1) == (UNKNOWN_BYTE, 0, b"")
    assert native.encode_size(handle, b"abc") == (OK, 3)
    native.close(handle)


def test_an_unknown_id(native, bpe):
    size = TOKENIZERS["bpe"].vocab_size
    for id in (size, 2**31, 2**32 - 1):
        assert native.decode_size(bpe, array([5, 6, id])) == (UNKNOWN_ID, 2)
        assert native.decode(bpe, array([id]), 99) == (UNKNOWN_ID, 0, b"")
        assert native.decode_copy(bpe, array([5, id]), 2) == (UNKNOWN_ID, 1, b"")
        assert native.piece(bpe, id) == (UNKNOWN_ID, None)


@pytest.mark.parametrize("name", ["char", "word"])
def test_an_id_that_reads_as_unknown(native, name):
    handle = native.open(TOKENIZERS[name])
    ids = [1, 2**32 - 1, 3, TOKENIZERS[name].vocab_size]
    data = TOKENIZERS[name].decode_bytes(ids)
    assert native.decode(handle, array(ids), 999) == (OK, len(data), data)
    assert native.piece(handle, 2**32 - 1) == (OK, b"<UNK>")
    native.close(handle)


def test_a_gap(native):
    tokenizer = Tokenizer.from_vocabulary(Vocabulary("bpe", (b"a", None, b"b")))
    handle = native.open(tokenizer)
    assert native.decode_size(handle, array([0, 2, 1])) == (UNKNOWN_ID, 2)
    assert native.piece(handle, 1) == (UNKNOWN_ID, None)
    native.close(handle)


def test_null_pointers(native, bpe):
    assert {*native.null_pointers(bpe)} == {NULL_POINTER}
    assert native.nothing(bpe) == [OK, OK, OK, OK, UNKNOWN_PIECE]


def test_other_versions(native, monkeypatch):
    version, size = native.VERSION, native.TABLE_SIZE
    assert native.check(version, size) == OK
    assert native.check(version, size + 8) == OK  # what was appended later
    for wrong in [(version + 1, size), (0, size), (version, size - 8), (version, 8), (version, 0)]:
        assert native.check(*wrong) == WRONG_VERSION
    assert native.import_again() is None
    monkeypatch.setattr(capi, "_table", native.newer_table())
    with pytest.raises(ImportError, match=f"version {version + 1} .* for version {version}"):
        native.import_again()
    monkeypatch.setattr(capi, "_table", None)
    with pytest.raises(AttributeError, match="tokbpe.fast.capi._table"):
        native.import_again()


def test_the_text_of_every_status(native):
    texts = [native.status_text(status) for status in range(INTERRUPTED + 1)]
    assert len({*texts}) == len(texts)
    assert native.status_text(-1) == native.status_text(10**6) == "no status of this version"


class Reversing:
    """A method with an encoder of its own."""

    name = "reversing"
    number = 99

    def train(self, corpus, options):
        return Vocabulary("reversing", (b"a",))

    def encoder(self, vocabulary):
        return self

    def encode(self, data):
        return [0] * len(data)


def refused(monkeypatch):
    monkeypatch.setitem(methods.METHODS, "reversing", Reversing())
    letters = tuple(bytes([byte]) for byte in range(256))
    added = {"<a>": 256, "<b>": 257}
    return {
        "encoder of its own": Tokenizer("a", method="reversing"),
        'engine "reference"': Tokenizer.from_bytes(engine="reference"),
        "normalizer 'NFC'": Vocabulary("bpe", letters, normalizer="NFC"),
        "space in front": Vocabulary("bpe", letters, prefix_space=True),
        "flag 'normalized'": Vocabulary(
            "bpe", letters, added_tokens=added, token_flags={"<a>": ("normalized",)}
        ),
    }


def test_what_the_engine_cannot_do_is_refused_by_name(native, monkeypatch):
    for reason, tokenizer in refused(monkeypatch).items():
        if isinstance(tokenizer, Vocabulary):
            tokenizer = Tokenizer.from_vocabulary(tokenizer)
        assert native.status_of_open(tokenizer) == NOT_SUPPORTED
        with pytest.raises(ValueError, match=reason):
            native.open(tokenizer)
        with pytest.raises(ValueError, match=reason):
            fast.Encoder(tokenizer)


def test_what_cannot_be_opened(native):
    closed = Tokenizer.from_bytes()
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        native.open(closed)
    with pytest.raises(TypeError, match="Tokenizer, not int"):
        native.open(5)
    with pytest.raises(ValueError, match="'<x>' is no special token"):
        native.open(TOKENIZERS["bpe"], ["<x>"])
    pattern = Tokenizer(CORPUS, method="bpe", vocabulary_size=270, pattern=r"\w+|\W")
    with pytest.raises(ValueError, match="without the GIL"):
        native.open(pattern)
    for tokenizer in (closed, 5, pattern):
        assert native.status_of_open(tokenizer) == NOT_SUPPORTED


# Threads, processes, signals


def run_threads(native, handle, tokenizer, text, rounds):
    """(calls, wrong results) of eight threads; the handle is closed meanwhile if rounds == 0."""
    ids = tokenizer.encode(text)
    return native.run_threads(
        handle, text.encode(), array(ids), tokenizer.decode_bytes(ids), 8, rounds
    )


@POSIX
def test_eight_threads_that_python_does_not_know(native, tokenizer, handle):
    assert run_threads(native, handle, tokenizer, TEXT, 300) == (8 * 300, 0)


@POSIX
def test_longer_texts_in_eight_threads(native, bpe):
    text = "".join(f"{TEXT}{n * 7919} " for n in range(8000))
    assert len(text) > 500000
    assert run_threads(native, bpe, TOKENIZERS["bpe"], text, 2) == (16, 0)


@POSIX
def test_closing_while_calls_run(native):
    for _ in range(5):
        handle = native.open(TOKENIZERS["bpe"])
        calls, wrong = run_threads(native, handle, TOKENIZERS["bpe"], TEXT, 0)
        assert calls >= 8
        assert wrong == 0
        check_closed(native, handle)


@POSIX
def test_errors_in_a_thread_that_python_does_not_know(native):
    handle = native.open(Tokenizer(b"abc"))
    for _ in range(50):
        assert native.ask_in_thread(handle, b"abcxa") == (UNKNOWN_BYTE, 3)
        assert native.ask_in_thread(handle, b"abca") == (OK, 4)
    native.close(handle)


def test_a_thread_that_python_knows_need_not_leave(native):
    assert native.leave_thread() == OK


def test_python_threads_in_cython(cython, tokenizer):
    loader = cython.Loader(tokenizer, "all")
    texts = [f"{TEXT}<|end|> {n} the cat" for n in range(200)]
    wanted = [tokenizer.encode(text, allowed_special="all") for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(loader.encode, map(str.encode, texts))] == wanted
        rows = [np.array(ids, np.uint32) for ids in wanted]
        assert [*pool.map(loader.decode, rows)] == [*map(tokenizer.decode_bytes, wanted)]
    assert len(loader) == tokenizer.vocab_size
    assert loader.method == methods.get(tokenizer.method).number
    loader.close()
    with pytest.raises(cython.Failure, match="closed") as failure:
        loader.encode(b"a")
    assert failure.value.status == CLOSED


def test_errors_in_cython(cython):
    with pytest.raises(TypeError, match="Tokenizer, not str"):
        cython.Loader("no tokenizer")
    with pytest.raises(ValueError, match="engine"):
        cython.Loader(Tokenizer.from_bytes(engine="reference"))
    loader = cython.Loader(Tokenizer(b"ab"))
    with pytest.raises(cython.Failure, match="byte") as failure:
        loader.encode(b"abc")
    assert (failure.value.status, failure.value.result) == (UNKNOWN_BYTE, 2)
    loader.close()


@POSIX
def test_handles_after_a_fork(native, bpe):
    ids = TOKENIZERS["bpe"].encode(TEXT)
    wanted = (OK, len(ids), array(ids))
    assert native.encode(bpe, TEXT.encode(), 999) == wanted
    stop = threading.Event()

    def work():
        while not stop.is_set():
            native.encode(bpe, TEXT.encode(), 999)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(20):
            assert forked(lambda: child(native, bpe, wanted)) == 0
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert native.encode(bpe, TEXT.encode(), 999) == wanted


def child(native, handle, wanted):
    assert native.encode(handle, TEXT.encode(), 999) == wanted
    assert native.close(handle) == OK
    other = native.open(TOKENIZERS["byte"])
    assert native.encode_size(other, b"abc") == (OK, 3)


def forked(function):
    """The exit code of a process of its own that calls a function."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@POSIX
def test_a_signal_ends_a_long_call(native):
    handle = native.open(TOKENIZERS["bpe"])
    data = (TEXT * 400000).encode()

    with pytest.raises(KeyboardInterrupt), alarm(0.02, KeyboardInterrupt):
        native.encode_size(handle, data)
    assert native.encode_size(handle, TEXT.encode())[0] == OK
    native.close(handle)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.skipif(SANITIZER != "", reason="no memory ends a sanitized process")
def test_no_memory(native, bpe):
    data = (TEXT * 400000).encode()

    def check():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**23, used + 2**23))
        assert native.encode(bpe, data, 1) == (NO_MEMORY, 0, b"")
        assert native.encode_size(bpe, TEXT.encode())[0] == OK

    assert forked(check) == 0
