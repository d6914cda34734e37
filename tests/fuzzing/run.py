"""Have libFuzzer look for bytes on which a target fails; see `.ci/fuzz`.

    python -m fuzzing.run TARGET [option or folder of libFuzzer]...
"""

import sys

import atheris_no_libfuzzer as atheris

with atheris.instrument_imports(include=["tokbpe"]):
    from fuzzing.targets import TARGETS

if __name__ == "__main__":
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
