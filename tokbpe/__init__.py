"""Byte-pair-encoding tokenizers that people can read and that run fast.

    >>> from tokbpe import Tokenizer
    >>> tokenizer = Tokenizer("low lower lowest, new newer newest", method="bpe",
    ...                       vocabulary_size=264, pattern="gpt2", reserved=["EOS"])
    >>> tokenizer.encode("slow newest", eos=True)
    [115, 259, 119, 260, 257, 262, 256]
    >>> tokenizer.decode([115, 259, 119])
    'slow'

The algorithm is written twice: `tokbpe.reference` is plain Python, made to be read, and
`tokbpe.fast` the same functions, compiled. They give the same results and the same errors.

## By task

- Train a tokenizer: `Tokenizer`, from a text, documents or a `Corpus`; `Tokenizer.train_steps` to
  see merges happen; `Tokenizer.extended` and `Tokenizer.truncated` for more of them, or fewer.
  Patterns that cut text into pieces have names: see `tokbpe.patterns`.
- Keep it: `Tokenizer.save`, `Tokenizer.load`; `Tokenizer.state` and `Tokenizer.from_state` for
  checkpoints; `Tokenizer.fingerprint` to tell it from others.
- Use a vocabulary of others: `Tokenizer.from_tiktoken`, `Tokenizer.from_huggingface`,
  `Tokenizer.from_gpt2`, `Tokenizer.from_json`, and back with `Tokenizer.to_tiktoken` and so on.
  `tokbpe.compat.as_tiktoken` has the methods of `tiktoken.Encoding`.
- Encode: `Tokenizer.encode`, `Tokenizer.encode_array`, `Tokenizer.encode_into`; many documents with
  `Tokenizer.encode_batch` and `Tokenizer.encode_batch_arrays`; files of any size with
  `Tokenizer.encode_file`; chats with `Tokenizer.encode_chat`; where tokens stand with
  `Tokenizer.encode_with_offsets`; how many there are with `Tokenizer.count`.
- Decode: `Tokenizer.decode`, `Tokenizer.decode_bytes`; `StreamDecoder` and `decode_stream` for ids
  that come one at a time.
- Prepare data: `Corpus` and `StreamedCorpus`, documents with a role; `Tokenizer.encode_corpus`
  gives an `EncodedCorpus`; `write_shards` writes `Shards` of tokens to a folder; `TokenDataset` and
  `Batches` make of these what a model is trained on.
- Count once, learn many times, on many machines: `PieceCounts`, and `Tokenizer.from_counts`.
- See it: `tokbpe.show`, tokens, merges and trainings in notebooks, as plots, in a terminal;
  `tokbpe.page`, a page in which one steps through training and encoding in a browser.
- Compare: `tokbpe.metrics`, bits per byte, bytes per token, tokens per word; `Tokenizer.usage`.
- From loaders and compiled code: `tokbpe.fast.Encoder`; for C and Cython the header `tokbpe.h`,
  whose folder `tokbpe.fast.get_include` gives.
- Add a method of your own: `tokbpe.methods.register`.

## Types

Signatures use these names:

- `Buffer`: bytes, bytearray, memoryview or mmap; `Document`: a str or one of these; `Text`: a str
  or bytes.
- `Documents`: a `Document`, or an iterable of them.
- `Path`: a str, bytes or `os.PathLike`; `Paths`: one or several; `Source`: a `Path`, or a file that
  is open for reading bytes.
- `Progress`: True, for a bar on a terminal, or a function that is called with what is done and what
  there is to do.
- `Arrays`: a tuple of ids and offsets, but for counts (see `tokbpe.count_files.Arrays`).
- `NDArray[np.uint32]`: a NumPy array of this type. Shapes stand in the text: [n, 2].
- Of the engines: `Pair`, two ids; `EncodingTable`, `DecodingTable` and `SpecialTable`, what
  `tokbpe.fast.encoding_table`, `tokbpe.fast.decoding_table` and `tokbpe.fast.special_table` give;
  `Special`, the last of these, or a mapping from spellings, as bytes, to ids, or None.

Wrong arguments are a TypeError or ValueError that names the value, where it stood and what is
allowed.
"""

from tokbpe.batches import Batches, TokenDataset
from tokbpe.corpus import Corpus, StreamedCorpus
from tokbpe.counting import PieceCounts
from tokbpe.encoded import EncodedCorpus
from tokbpe.sharding import write_shards
from tokbpe.shards import Shards
from tokbpe.stream import StreamDecoder, decode_stream
from tokbpe.tokenizer import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "Tokenizer",
    "PieceCounts",
    "Corpus",
    "StreamedCorpus",
    "EncodedCorpus",
    "write_shards",
    "Shards",
    "TokenDataset",
    "Batches",
    "StreamDecoder",
    "decode_stream",
    "__version__",
]
