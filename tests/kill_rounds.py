"""Writes shards in processes that are killed at random moments, again and again.

    python kill_rounds.py FOLDER ROUNDS SEED [WORKERS]

FOLDER holds `tokenizer` and `in`, files to encode. Each round is a process that is killed; when
one has finished before that, or three have come no further, its folder is left finished, and the
next round begins another one. Prints
JSON: for each folder how much was there after each kill. A test reads what there is then.
"""

import contextlib
import json
import os
import random
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tokbpe import Tokenizer, sharding, write_shards


def write(folder: Path, out: Path, workers: int) -> None:
    tokenizer = Tokenizer.load(folder / "tokenizer")
    options = {"shard_tokens": 1000, "bos": True, "threads": 1}
    if not workers:
        write_shards(folder / "in", tokenizer, out, **options)
        return
    with ProcessPoolExecutor(workers) as executor:
        write_shards(folder / "in", tokenizer, out, executor=executor, **options)


def let_finish(folder: Path, out: Path, workers: int) -> None:
    """Write shards in a process that is left alone."""
    child = os.fork()
    if not child:
        write(folder, out, workers)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def killed(folder: Path, out: Path, workers: int, longest: float) -> bool:
    """Whether a process that writes shards was killed before it was done."""
    child = os.fork()
    if not child:
        os.setsid()
        write(folder, out, workers)
        os._exit(0)
    # Workers outlive their parent for a while, but not the test: they are in its process group.
    groups.append(child)
    time.sleep(random.random() ** 2 * longest)  # more often before much is there
    if random.random() < 0.5:  # the workers as well
        with contextlib.suppress(ProcessLookupError):  # it may not have its group yet
            os.killpg(child, signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert status == 0
        return False
    return True


def state(out: Path) -> str:
    """How far the work is that was killed."""
    if not out.exists():
        return "nothing"
    if (out / "manifest.json").exists():
        return "manifest"
    return f"{len(list(out.glob('*.offsets.npy')))} shards"


def main() -> None:
    folder, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    random.seed(seed)
    start = time.perf_counter()
    let_finish(folder, folder / "alone", workers)
    longest = 0.7 * (time.perf_counter() - start)
    kills: list[list[str]] = []
    while sum(map(len, kills)) < rounds:
        out = folder / f"out{len(kills)}"
        kills.append([])
        states = kills[-1]
        while killed(folder, out, workers, longest):
            states.append(state(out))
            # The last one is let finish, and one of which nothing more comes in the time.
            if sum(map(len, kills)) >= rounds or states[-3:] == [states[-1]] * 3:
                let_finish(folder, out, workers)
                break
    print(json.dumps(kills))


groups: list[int] = []
if __name__ == "__main__":
    sharding.PART_BYTES = 1
    try:
        main()
    finally:
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
