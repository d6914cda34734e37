"""OpenAI's own files: on real text, held against tiktoken; and from one format to the other."""

import functools
import hashlib
import json

import pytest

from tokbpe import Tokenizer
from tokbpe.formats.tiktoken_known import KNOWN

tiktoken = pytest.importorskip("tiktoken")


@pytest.fixture(scope="module")
def known(data, tmp_path_factory):
    """A known encoding as tokbpe and as tiktoken have it, from a cache folder as tiktoken's."""
    folder = tmp_path_factory.mktemp("cache")
    places = {path.name: path.resolve() for path in (data / "vocab").rglob("*") if path.is_file()}
    urls = {known.url for known in KNOWN.values()}
    # tiktoken wants the merges of GPT-2, too.
    for url in urls | {KNOWN["gpt2"].url.replace("encoder.json", "vocab.bpe")}:
        name = hashlib.sha1(url.encode()).hexdigest()
        (folder / name).symlink_to(places[url.rpartition("/")[2]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield functools.cache(
            lambda name: (Tokenizer.from_tiktoken(name), tiktoken.get_encoding(name))
        )


@pytest.mark.parametrize("name", list(KNOWN))
def test_real_vocabularies(name, known, data):
    own, theirs = known(name)
    pieces = {piece: id for id, piece in enumerate(own._vocabulary.alphabet) if piece is not None}
    assert pieces == theirs._mergeable_ranks
    assert own.vocab_size == theirs.n_vocab
    again = Tokenizer.from_tiktoken(theirs)
    assert again._vocabulary.alphabet == own._vocabulary.alphabet
    assert (again.pattern, again.special_tokens) == (own.pattern, own.special_tokens)
    # From the middles of all corpora, wherever they are cut.
    for path in sorted((data / "corpora").iterdir()):
        with path.open("rb") as file:
            file.seek(path.stat().st_size // 2)
            text = file.read(50_000).decode("utf-8", "ignore")
        assert own.encode(text) == theirs.encode_ordinary(text)
    text = "".join(f"a{spelling}" for spelling in own.special_tokens)
    ids = own.encode(text, allowed_special="all")
    assert ids == theirs.encode(text, allowed_special="all")
    assert own.decode(ids) == text


def test_a_piece_alone(known):
    own, theirs = known("o200k_base")
    pieces = own._vocabulary.alphabet
    texts = {id: str(piece, "utf-8", "ignore") for id, piece in enumerate(pieces) if piece}
    whole = {id: text for id, text in texts.items() if text.encode() == pieces[id]}
    cut = [text for id, text in whole.items() if own.encode(text) != [id]]
    assert len(cut) == 12  # by the pattern
    assert [own.encode(text) for text in cut] == [theirs.encode_ordinary(text) for text in cut]


@pytest.mark.parametrize("name", ["r50k_base", "p50k_edit", "cl100k_base", "o200k_base"])
def test_real_vocabularies_are_written_as_they_were(name, known, tmp_path, data):
    own, theirs = known(name)
    path = tmp_path / "written.tiktoken"
    names = {}
    exec(own.to_tiktoken(path), names)
    encoding = names["encoding"]
    assert path.read_bytes() == (data / "vocab" / KNOWN[name].file).read_bytes()
    assert encoding._pat_str == theirs._pat_str
    assert encoding._special_tokens == theirs._special_tokens


@pytest.fixture(scope="module")
def real(data):
    return data / "vocab" / "gpt2"


def test_the_files_of_gpt2(real, tmp_path):
    tokenizer = Tokenizer.from_gpt2(real)
    ids = [37573, 4673, 3341, 422, 12692]
    assert tokenizer.encode("Machine learning systems from scratch") == ids
    assert tokenizer.vocab_size == 50257 and tokenizer.special_tokens == {"<|endoftext|>": 50256}
    assert tokenizer.encode("<|endoftext|>", allowed_special="all") == [50256]
    assert tokenizer.encode("<|endoftext|>") == [27, 91, 437, 1659, 5239, 91, 29]
    tokenizer.to_gpt2(tmp_path)
    assert (tmp_path / "merges.txt").read_bytes() == (real / "vocab.bpe").read_bytes()
    vocab = json.loads((tmp_path / "vocab.json").read_bytes())
    assert vocab == json.loads((real / "encoder.json").read_bytes())


def test_the_ranks_of_r50k_are_the_merges_of_gpt2(real, data, tmp_path):
    own = Tokenizer.from_gpt2(real)
    ranks = Tokenizer.from_tiktoken(data / "vocab" / "r50k_base.tiktoken")
    ranks.to_gpt2(tmp_path)
    assert (tmp_path / "merges.txt").read_bytes() == (real / "vocab.bpe").read_bytes()
    own.to_tiktoken(tmp_path / "written.tiktoken")
    written = (tmp_path / "written.tiktoken").read_bytes()
    assert written == (data / "vocab" / "r50k_base.tiktoken").read_bytes()
