"""Run by the python of pandas-match-recognize's environment: answers, says how long it took.

It reads a task as JSON from its standard input, and its last line of output is the answer as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from importlib.metadata import version

import pandas as pd
from pandas_match_recognize import match_recognize  # type: ignore[import-not-found]

PACKAGE = "pandas-match-recognize"


def main() -> None:
    task = json.load(sys.stdin)
    runs = []
    for job in task["jobs"]:
        events = pd.read_parquet(job["events"])
        seconds = []
        for _ in range(job["repeats"]):
            gc.collect()
            start = time.perf_counter()
            answer = match_recognize(task["text"], events)
            seconds.append(time.perf_counter() - start)
        if job["rows"]:
            answer.to_parquet(job["rows"])
        runs.append({"seconds": min(seconds), "matches": len(answer), "idle": 0.0})
    print(json.dumps({"version": version(PACKAGE), "runs": runs}))


if __name__ == "__main__":
    main()
