"""Fuzzing: targets, each a function of bytes that raises where something does not hold.

`test_fuzzing.py` runs each target on its seeds and on mutations of them; `.ci/fuzz` has libFuzzer,
by way of atheris, look for bytes that reach more of the code.
"""
