"""Have libFuzzer look for bytes on which a target fails; see `.ci/fuzz`.

python -m fuzzing.run TARGET [option or folder of libFuzzer]...
"""

import sys

import atheris

# What is called for each byte would take most of the time; it has twins in the compiled engine.
PLAIN = [f"tokbpe.{name}" for name in ("arguments", "ranks", "reference", "special", "unicode")]

with atheris.instrument_imports(include=["tokbpe"], exclude=PLAIN):
    from fuzzing.targets import TARGETS
    from tokbpe import files, shards

if __name__ == "__main__":
    # To ask for much room takes long with AddressSanitizer.
    files.LARGEST = 2**20
    shards.CHUNK_BYTES = 2**10
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
