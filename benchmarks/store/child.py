"""Processes that a case starts: one that appends until it is killed, one that opens and answers."""

from __future__ import annotations

import json
import sys
import time
from itertools import count

import numpy as np
import pyarrow as pa

from benchmarks.sensors import ATTRIBUTES, GAP_US, MEASURED, STREAM
from eventide.instants import ALL_TIME, TimeRange
from eventide.store import Snapshot, Store
from eventide.store.reading.aggregate import AggregateCall, aggregate

SMALL_ROWS = 100
VALUE = 20.0
CALLS = tuple(AggregateCall(name, MEASURED) for name in ("avg", "min", "max", "stddev", "count"))


def aggregates(snapshot: Snapshot, times: TimeRange) -> dict[str, float]:
    """Ask the store."""
    answer = aggregate(snapshot, CALLS, (times.start_us, times.end_us))
    return {call.function: answer.column(place)[0].as_py() for place, call in enumerate(CALLS)}


def append_forever(path: str) -> None:
    """Append a few events again and again, saying how many batches are safe."""
    stream = Store.open(path).stream(STREAM)
    end_us = stream.snapshot().time_range.end_us
    for number in count(1):
        ts = end_us + GAP_US * np.arange((number - 1) * SMALL_ROWS, number * SMALL_ROWS)
        columns = {"ts": pa.array(ts).cast(pa.timestamp("us"))}
        columns |= {name: pa.array(np.full(SMALL_ROWS, VALUE)) for name in ATTRIBUTES}
        stream.append(pa.table(columns))
        print(number, flush=True)


def open_and_answer(path: str) -> None:
    """Say how long it took to open a database and count its events, and then to aggregate them."""
    start = time.perf_counter()
    snapshot = Store.open(path, create=False).stream(STREAM).snapshot()
    rows = snapshot.row_count
    opened = time.perf_counter() - start
    found = aggregates(snapshot, ALL_TIME)
    answered = time.perf_counter() - start
    print(json.dumps({"opened": opened, "answered": answered, "rows": rows, **found}))


if __name__ == "__main__":
    {"append": append_forever, "open": open_and_answer}[sys.argv[1]](sys.argv[2])
