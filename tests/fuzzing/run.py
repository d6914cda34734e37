"""Have libFuzzer look for bytes on which a target fails; see `.ci/fuzz`.

python -m fuzzing.run TARGET [option or folder of libFuzzer]...
"""

import sys

import atheris

# What is called for each byte or id would take most of the time; the compiled engine has its twin.
PLAIN = ("arguments", "ranks", "reference", "special", "tables", "unicode")

with atheris.instrument_imports(include=["tokbpe"], exclude=[f"tokbpe.{name}" for name in PLAIN]):
    from fuzzing.targets import TARGETS
    from tokbpe import files, shards

if __name__ == "__main__":
    # To ask for much room takes long with AddressSanitizer.
    files.LARGEST = 2**20
    shards.CHUNK_BYTES = 2**10
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
