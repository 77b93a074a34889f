"""Ask a question while the events arrive, and compare with history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from eventide.api.database import open_database, sql
from eventide.demo.agree import check_agree
from eventide.demo.cars import ATTRIBUTES
from eventide.demo.queries import DemoQuestion

LATENESS = "10 s"
BATCH_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What a live query saw and said."""

    rows: pa.Table
    late: pa.Table
    seconds: float
    batches: int
    slowest: float
    """The longest time from the arrival of a batch to its results, in seconds."""


def run_live(
    folder: Path, question: DemoQuestion, events: pa.Table, advance: Callable[[int], None]
) -> LiveRun:
    """Append events as they arrive to a new database that a live query watches."""
    database = open_database(folder)
    stream = database.create_stream("cars", ATTRIBUTES)
    pieces: list[pa.Table] = []
    query = database.subscribe(
        question.text, lambda result: pieces.append(result.to_arrow()), lateness=LATENESS
    )
    started = perf_counter()
    slowest = 0.0
    for first in range(0, events.num_rows, BATCH_ROWS):
        arrived = perf_counter()
        stream.append(events.slice(first, BATCH_ROWS))
        slowest = max(slowest, perf_counter() - arrived)
        advance(min(BATCH_ROWS, events.num_rows - first))
    last = query.finish().to_arrow()
    seconds = perf_counter() - started
    late = query.late().to_arrow()
    assert late.num_rows == query.late_count, "the demo has few late events: all are kept"
    rows = pa.concat_tables(pieces) if pieces else last
    batches = -(-events.num_rows // BATCH_ROWS)
    return LiveRun(rows, late, seconds, batches, slowest)


def check_against_history(question: DemoQuestion, events: pa.Table, run: LiveRun) -> None:
    """Refuse a live answer that is not the history's answer without the late events."""
    on_time = np.ones(events.num_rows, np.bool_)
    # _seq counts arrivals from 0, and so is the row in `events`.
    on_time[run.late["_seq"].to_numpy()] = False
    history = sql(question.text, cars=events.filter(pa.array(on_time)))
    check_agree(f"{question.name}, live and over history", run.rows, history.to_arrow())
