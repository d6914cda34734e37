"""Streaming decode: ids one at a time."""

import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokbpe import StreamDecoder, Tokenizer, decode_stream, engines
from tokbpe.vocabulary import Vocabulary

pytestmark = pytest.mark.core

CORPUS = "low lower lowest 你好 😀😀 naïve" * 3
SPECIAL = ["<s> ", "é", "</w>"]
MADE = {
    "from_bytes": Tokenizer.from_bytes(special_tokens=SPECIAL, reserved=["BOS", "EOS"]),
    **{
        method: Tokenizer(CORPUS, method=method, special_tokens=SPECIAL, reserved=["BOS", "EOS"])
        for method in ("byte", "bpe", "char", "word")
    },
}


def ids_of(tokenizer):
    return st.lists(st.sampled_from([id for id, _ in tokenizer.items()]), max_size=30)


def streamed(decoder, ids):
    return "".join([decoder.put(id) for id in ids] + [decoder.finish()])


@given(data=st.data(), skip_special=st.booleans())
def test_joined_it_is_what_decode_gives(data, skip_special):
    tokenizer = MADE[data.draw(st.sampled_from(sorted(MADE)))]
    ids = data.draw(ids_of(tokenizer))
    whole = tokenizer.decode(ids, errors="replace", skip_special=skip_special)
    decoder = StreamDecoder(tokenizer, skip_special=skip_special)
    assert streamed(decoder, ids) == whole
    assert streamed(decoder, ids) == whole  # it began anew
    assert "".join(decode_stream(tokenizer, ids, skip_special=skip_special)) == whole


def can_be_continued(data):
    """Whether some bytes begin a text."""
    tails = [b"", b"\x80", b"\x90", b"\xa0", b"\x80\x80", b"\x90\x80", b"\xa0\x80"]
    tails += [b"\x80\x80\x80", b"\x90\x80\x80", b"\x9f\x80", b"\x8f\x80\x80"]
    return any(is_utf8(data + tail) for tail in tails)


def is_utf8(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


PARTS = ["é", "你", "😀", "a", "\u0800", "\ud7ff", "\U0010ffff", "\U00010000"]
ODD_BYTES = st.sampled_from(list(b"a\x80\x8f\x90\x9f\xa0\xbf\xc0\xc3\xe0\xed\xf0\xf4\xf5\xff"))
BYTES = st.lists(st.sampled_from(PARTS).map(str.encode) | ODD_BYTES.map(lambda b: bytes([b])))


@given(BYTES.map(b"".join))
@example(b"\xed\xa0")  # only a surrogate begins so
@example(b"a\xed\xbf\xbf")
def test_strict_raises_as_soon_as_it_is_certain(data):
    decoder = StreamDecoder(MADE["from_bytes"], errors="strict")
    texts = []
    for position, byte in enumerate(data):
        if not can_be_continued(data[: position + 1]):
            with pytest.raises(UnicodeDecodeError, match=f"id {byte} at position {position} of"):
                decoder.put(byte)
            assert "".join(texts) == data[:position].decode("utf-8", "ignore")
            return
        texts.append(decoder.put(byte))
    if is_utf8(data):
        assert "".join(texts) + decoder.finish() == data.decode("utf-8")
    else:
        with pytest.raises(UnicodeDecodeError, match=f"ends behind position {len(data) - 1}"):
            decoder.finish()


def test_whole_characters():
    decoder = StreamDecoder(MADE["from_bytes"])
    assert [decoder.put(byte) for byte in "😀".encode()] == ["", "", "", "😀"]
    assert [decoder.put(byte) for byte in b"\xc3\xc3AB"] == ["", "\ufffd", "\ufffdA", "B"]
    assert [decoder.put(byte) for byte in b"\xed\xa0\x80"] == ["", "\ufffd\ufffd", "\ufffd"]
    assert [decoder.put(0xE4), decoder.put(0xBD), decoder.finish()] == ["", "", "\ufffd"]
    assert decoder.finish() == ""


def test_the_next_stream_knows_nothing_of_the_one_before():
    decoder = StreamDecoder(MADE["from_bytes"], errors="strict")
    decoder.put(0xC3)
    with pytest.raises(UnicodeDecodeError):
        decoder.finish()
    assert decoder.put(97) == "a"
    with pytest.raises(ValueError, match="id -1 at position 1 is not"):
        decoder.put(-1)


def test_a_word_waits_for_its_white_space():
    words = MADE["word"]
    low, lower = words.encode("low lower")
    special, bos = words.special_tokens["<s> "], words.reserved["BOS"]
    decoder = StreamDecoder(words)
    assert [decoder.put(low), decoder.put(lower), decoder.finish()] == ["low", " lower", ""]
    # The space that a special token is spelled with is none of the markers.
    assert [decoder.put(low), decoder.put(special), decoder.finish()] == ["low", " <s> ", ""]
    assert [decoder.put(low), decoder.put(bos), decoder.finish()] == ["low", " <|BOS|>", ""]
    decoder = StreamDecoder(words, skip_special=True)
    assert [decoder.put(low), decoder.put(special), decoder.put(low)] == ["low", "", " low"]
    assert decoder.finish() == ""


def test_what_is_no_id_reads_as_unknown():
    for method in ("char", "word"):
        decoder = StreamDecoder(MADE[method])
        assert [decoder.put(10**6), decoder.put(-1)] == ["<UNK>", "<UNK>"]
        with pytest.raises(TypeError, match="position 2 holds 'a'"):
            decoder.put("a")


@pytest.mark.parametrize("engine", engines.NAMES)
@pytest.mark.parametrize(
    ("id", "error", "message"),
    [
        (256, ValueError, "id 256 at position 2 is not from 0 to 255"),
        (-1, ValueError, "id -1 at position 2"),
        (2**70, ValueError, f"id {2**70} at position 2"),
        (97.0, TypeError, "position 2 holds 97.0"),
        (True, TypeError, "position 2 holds True"),
        (None, TypeError, "position 2 holds None"),
        ("a", TypeError, "position 2 holds 'a'"),
        ([97], TypeError, r"position 2 holds \[97\]"),
    ],
)
def test_what_is_no_id(engine, id, error, message):
    decoder = StreamDecoder(Tokenizer.from_bytes(engine=engine))
    assert [decoder.put(0xC3), decoder.put(0xA9)] == ["", "é"]
    for _ in range(2):  # the stream is as it was
        with pytest.raises(error, match=message):
            decoder.put(id)
    assert decoder.put(np.uint8(97)) == "a"


def test_a_gap():
    vocabulary = Vocabulary("bpe", (b"a", None, b"c"), special_tokens={"<s>": 4})
    decoder = StreamDecoder(Tokenizer.from_vocabulary(vocabulary))
    assert decoder.put(4) == "<s>"
    for gap in (1, 3):
        with pytest.raises(ValueError, match=f"id {gap} at position 1 is a gap"):
            decoder.put(gap)


def test_a_character_is_as_it_was_before_an_error():
    decoder = StreamDecoder(MADE["from_bytes"], errors="strict")
    assert decoder.put(0xC3) == ""
    with pytest.raises(UnicodeDecodeError, match="id 65 at position 1 of the stream"):
        decoder.put(65)
    assert decoder.put(0xA9) == "é"


def test_what_a_decoder_does_not_take():
    with pytest.raises(TypeError, match="by a Tokenizer, not str"):
        StreamDecoder("bpe")
    with pytest.raises(ValueError, match="errors must be one of 'strict', 'replace'"):
        StreamDecoder(MADE["byte"], errors="ignore")
    with pytest.raises(TypeError, match="ids must be an iterable of whole numbers, not str"):
        list(decode_stream(MADE["byte"], "ab"))


def test_closed_tokenizer():
    tokenizer = Tokenizer.from_bytes()
    decoder = StreamDecoder(tokenizer)
    decoder.put(97)
    tokenizer.close()
    with pytest.raises(ValueError, match="closed"):
        decoder.put(97)


def test_texts_come_one_by_one():
    def ids():
        yield 97
        raise KeyError("the source")

    texts = decode_stream(MADE["from_bytes"], ids())
    assert next(texts) == "a"
    with pytest.raises(KeyError, match="the source"):
        next(texts)
    assert list(decode_stream(MADE["from_bytes"], np.array([0xC3, 0xA9, 0xC3]))) == ["é", "\ufffd"]


@pytest.mark.parametrize("method", ["bpe", "word"])
def test_memory_stays_constant(method):
    tokenizer = MADE[method]
    ids = [id for id, _ in tokenizer.items()]
    decoder = StreamDecoder(tokenizer)

    def steps(count):
        for step in range(count):
            decoder.put(ids[step % len(ids)])

    steps(1_000)
    tracemalloc.start()
    try:
        steps(1_000)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        steps(100_000)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2_000 and peak - before < 10_000
    assert sys.getsizeof(decoder._held) < 100


def test_half_a_character_with_cl100k(data):
    tokenizer = Tokenizer.from_tiktoken(data / "vocab" / "cl100k_base.tiktoken")
    assert tokenizer.encode("😀") == [76460, 222]
    assert tokenizer.decode([76460], errors="replace") == "\ufffd"
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode([76460])
    assert tokenizer.decode_bytes([76460]) == "😀".encode()[:3]
    decoder = StreamDecoder(tokenizer)
    assert [decoder.put(76460), decoder.put(222), decoder.finish()] == ["", "😀", ""]
    assert [decoder.put(76460), decoder.finish()] == ["", "\ufffd"]
    with pytest.raises(ValueError, match="id 100256 at position 0 is a gap"):
        decoder.put(100256)
