"""One training of `train.py`, in a process of its own.

    python benchmarks/train_once.py < JOB

JOB is an object in JSON with the fields of a `Job`. Prints the seconds, the peak of memory and the
merges as JSON. Reading the text, importing and reading the merges are not counted.
"""

import hashlib
import json
import sys
from typing import Any

from encode_once import keep_to_cores
from timing import clocked, forget_peak, peak_megabytes
from trainers import TRAINERS, Job, Unsupported


def main() -> None:
    job = Job(**json.load(sys.stdin))
    keep_to_cores(job.threads)
    print(json.dumps(trained(job)))


def trained(job: Job) -> dict[str, Any]:
    try:
        training = TRAINERS[job.trainer].prepare(job)
    except Unsupported:
        return {"unsupported": True}
    forget_peak()
    before = peak_megabytes()
    seconds, result = clocked(training.run)
    after = peak_megabytes()
    merges = training.merges(result)
    return {
        "seconds": seconds,
        "peak": None if before is None or after is None else after - before,
        "merges": len(merges),
        "digest": hashlib.sha256(repr(merges).encode()).hexdigest(),
    }


if __name__ == "__main__":
    main()
