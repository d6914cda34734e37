"""How many values a page of the encodings DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY says inside
that it has.

Some bytes there can tell of billions of them. pyarrow believes it, and takes eight bytes for each,
whatever the header of the page says; so the numbers are looked at before.

Source: the format's `Encodings.md`.
"""

from typing import IO

from tokbpe.parquet_pages import Chunk, Page
from tokbpe.parquet_thrift import Damaged, EndsEarly, behind_number, bits_at

PREFIXES = 7  # DELTA_BYTE_ARRAY
RLE = 3
# The names that pyarrow has for the codecs of the format.
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
# How many numbers a block may have. Those who write have a few hundred or thousand.
MOST_OF_A_BLOCK = 2**20


def check_counts(file: IO[bytes], chunk: Chunk, page: Page, optional: bool) -> None:
    """ValueError for a page that says inside that it has more values than its header does.

    optional: whether values may be null, and the page tells which are.
    """
    data = values_of(file, chunk, page, optional)
    try:
        count, end = numbers(data, 0)
        if page.encoding == PREFIXES and count <= page.values:
            count, _ = numbers(data, end)
    except IndexError:
        raise EndsEarly("a page ends too early") from None
    if count > page.values:
        raise Damaged(f"a page of {page.values} values says inside that it has {count}")


def values_of(file: IO[bytes], chunk: Chunk, page: Page, optional: bool) -> bytes:
    """What a page holds, without what tells which of its values are null."""
    file.seek(page.place)
    data = file.read(page.packed)
    if 4 in page.facts:  # version 2
        ahead = page.facts.get(5, 0) + page.facts.get(6, 0)
        if not 0 <= ahead <= min(len(data), page.size):
            raise Damaged(f"a page with {ahead} bytes of levels")
        is_packed = page.facts.get(7, 1)
        return unpacked(data[ahead:], page.size - ahead, chunk.codec if is_packed else 0)
    data = unpacked(data, page.size, chunk.codec)
    if not optional:
        return data
    if page.facts.get(3) != RLE:
        raise Damaged(f"a page with levels of the encoding {page.facts.get(3)}")
    return data[4 + int.from_bytes(data[:4], "little") :]


def unpacked(data: bytes, size: int, codec: int) -> bytes:
    """What has so many bytes, by a codec of the format; 0: as it is."""
    if codec == 0:
        return data
    if codec not in CODECS:
        raise Damaged(f"a page of the codec {codec}")
    import pyarrow as pa

    return bytes(pa.decompress(data, size, CODECS[codec], asbytes=True))


def numbers(data: bytes, at: int) -> tuple[int, int]:
    """How many numbers of the encoding DELTA_BINARY_PACKED begin there, and where they end."""
    block, at = bits_at(data, at)
    parts, at = bits_at(data, at)
    count, at = bits_at(data, at)
    at = behind_number(data, at)  # the first of them
    if not 0 < parts <= block <= MOST_OF_A_BLOCK or block % (32 * parts):
        raise Damaged(f"blocks of {block} numbers in {parts} parts")
    left = count - 1
    while left > 0:
        at = behind_number(data, at)  # the least of a block
        widths = data[at : at + parts]
        at += parts
        for width in widths:
            if left > 0:  # a part that is not wanted is not there
                at += block // parts * width // 8
                left -= block // parts
        if at > len(data):
            raise IndexError
    return count, at
