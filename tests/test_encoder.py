"""`tokbpe.fast.Encoder`, the object for loaders."""

import mmap
import pickle
import threading

import numpy as np
import pytest

from tokbpe import Tokenizer, fast

pytestmark = pytest.mark.core

CORPUS = [
    "the cat sat on the mat, and the other cat sat on the hat. " * 4,
    "naïve 漢字 🎈 < | > " * 9,
]
TEXTS = ["the hat of the naïve cat 🎈", "", "<|end|>the cat<|end|>", "漢字 " * 50, "a\n\nb"]
METHODS = {
    "bpe": {"vocabulary_size": 280, "pattern": "cl100k"},
    "byte": {},
    "char": {},
    "word": {},
}


@pytest.fixture(params=METHODS)
def tokenizer(request):
    return Tokenizer(
        [*CORPUS, *TEXTS],
        method=request.param,
        special_tokens=["<|end|>"],
        **METHODS[request.param],
    )


@pytest.mark.parametrize("special", [None, (), {"<|end|>"}, "all"])
def test_it_gives_what_the_tokenizer_gives(tokenizer, special):
    encoder = fast.Encoder(tokenizer, special)
    allowed = {"allowed_special": () if special is None else special}
    for text in TEXTS:
        ids = tokenizer.encode(text, **allowed)
        data = text.encode()
        assert encoder.encode(text) == ids
        for form in (data, bytearray(data), memoryview(data)):
            assert encoder.encode(form) == ids
        assert encoder.encode_array(text).tolist() == ids
        assert encoder.encode_array(text).dtype == np.uint32
        assert encoder.count(text) == len(ids)
        out = np.zeros(len(ids) + 3, np.uint32)
        assert encoder.encode_into(text, out) == len(ids)
        assert out.tolist() == [*ids, 0, 0, 0]
    rows = [tokenizer.encode(text, **allowed) for text in TEXTS]
    assert encoder.encode_batch(TEXTS) == rows
    assert encoder.encode_batch(TEXTS, before=[1], behind=[2, 3]) == [[1, *r, 2, 3] for r in rows]
    for dtype in ("uint32", "uint16"):
        ids, offsets = encoder.encode_batch_arrays(TEXTS, dtype, 2)
        assert ids.dtype == dtype
        assert [ids[a:b].tolist() for a, b in zip(offsets, offsets[1:])] == rows
    assert encoder.count_batch(TEXTS).tolist() == [len(row) for row in rows]
    assert encoder.count(TEXTS[0], 3) == 4


def test_of_a_table():
    table = fast.encoding_table([bytes([byte]) for byte in range(256)], [(104, 105)])
    assert fast.Encoder(table).encode("ohio<e>") == [111, 256, 111, 60, 101, 62]
    assert fast.Encoder(table, {b"<e>": 300}).encode("ohio<e>") == [111, 256, 111, 300]
    special = fast.special_table({b"<e>": 300})
    assert fast.Encoder(table, special).encode(b"hi<e>") == [256, 300]
    assert fast.Encoder(table).table is table


def test_a_mapped_file(tokenizer, tmp_path):
    path = tmp_path / "text"
    path.write_text(TEXTS[0], encoding="utf-8")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert fast.Encoder(tokenizer).encode(data) == tokenizer.encode(TEXTS[0])


def test_wrong_arguments(tokenizer):
    encoder = fast.Encoder(tokenizer)
    with pytest.raises(TypeError, match="Tokenizer or an encoding table, not list"):
        fast.Encoder([])
    with pytest.raises(ValueError, match="'<x>' is no special token"):
        fast.Encoder(tokenizer, ["<x>"])
    with pytest.raises(ValueError, match='engine "reference"'):
        fast.Encoder(Tokenizer.from_bytes(engine="reference"))
    with pytest.raises(TypeError, match="must be str or bytes, not int"):
        encoder.encode(5)
    with pytest.raises(UnicodeEncodeError):
        encoder.encode("\ud800")
    with pytest.raises(TypeError, match="text 1: .* not int"):
        encoder.encode_batch_arrays(["a", 5])
    with pytest.raises(ValueError, match="room for 2"):
        encoder.encode_into("the cat sat", np.zeros(2, np.uint32))


def test_an_unknown_byte_has_its_position():
    encoder = fast.Encoder(Tokenizer(b"abc"))
    with pytest.raises(ValueError, match="0x78 at byte position 3") as error:
        encoder.encode("abcx")
    assert error.value.position == 3
    assert pickle.loads(pickle.dumps(error.value)).position == 3
    assert encoder.encode("cab") == [2, 0, 1]


def test_it_outlives_its_tokenizer(tokenizer):
    encoder = fast.Encoder(tokenizer)
    ids = tokenizer.encode(TEXTS[0])
    tokenizer.close()
    assert encoder.encode(TEXTS[0]) == ids


def test_pickling(tokenizer):
    encoder = pickle.loads(pickle.dumps(fast.Encoder(tokenizer, ["<|end|>"])))
    assert encoder.encode(TEXTS[2]) == tokenizer.encode(TEXTS[2], allowed_special="all")
    with pytest.raises(TypeError, match="made from a table"):
        pickle.dumps(fast.Encoder(encoder.table))


def test_the_cache_is_given_back():
    encoder = fast.Encoder(Tokenizer.from_bytes())
    encoder.table.warm_up()
    for _ in range(2):
        assert encoder.encode("abc") == [97, 98, 99]
        assert encoder.memory() > 0
        encoder.clear_cache()
        assert encoder.memory() == 0


def test_threads_may_share_it(tokenizer):
    encoder = fast.Encoder(tokenizer)
    wanted = [tokenizer.encode(text) for text in TEXTS]
    wrong = []

    def work():
        for _ in range(200):
            found = [encoder.encode(text) for text in TEXTS]
            if found != wanted:
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
