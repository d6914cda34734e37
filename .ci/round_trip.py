"""A round trip through a tokbpe that is installed: training, files, encoding by both engines."""

import shutil
import sys
import tempfile
from pathlib import Path

import tokbpe

assert Path(tokbpe.__file__).is_relative_to(sys.prefix), tokbpe.__file__
assert not any(map(shutil.which, ("cc", "gcc", "clang", "cl"))), "there is a compiler"
text = "low lower lowest 🐈, new newer newest"
trained = tokbpe.Tokenizer(text, method="bpe", vocabulary_size=264, pattern="cl100k")
with tempfile.TemporaryDirectory() as folder:
    trained.save(f"{folder}/small.tokbpe")
    loaded = [tokbpe.Tokenizer.load(f"{folder}/small.tokbpe", e) for e in ("fast", "reference")]
assert all(tokenizer.decode(tokenizer.encode(text)) == text for tokenizer in loaded)
assert loaded[0].encode(text) == loaded[1].encode(text) == trained.encode(text)
print(f"{len(text)} characters, {trained.count(text)} tokens, and back")
