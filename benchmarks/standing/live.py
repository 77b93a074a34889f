"""A sliding average of each key as events arrive, and DuckDB that computes it anew each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.race import Finding, at_least, race
from benchmarks.situations.setting import arrivals, check_counts, check_rows, one_core
from benchmarks.standing.data import SECOND_US, readings
from benchmarks.standing.setting import (
    StandingCase,
    StandingSetting,
    catalog_of,
    times_of,
)
from eventide.api.live.query import LiveQuery, live_query
from eventide.lang.sql import plan_sql

ARRIVING_ROWS = 10_000
WINDOW_S = 60
LIVE_SPEED = 2_000_000
"""Events a second that one core has to take, at least."""
AVERAGE = f"SELECT key, AVG(x) AS mean FROM s [RANGE {WINDOW_S} SECONDS] GROUP BY key"
EVERY_SECOND = AVERAGE.replace("SECONDS]", "SECONDS SLIDE 1 SECOND]")
OVER = (
    "SELECT key, AVG(x) OVER (PARTITION BY key ORDER BY ts "
    f"RANGE BETWEEN INTERVAL '{WINDOW_S}' SECOND PRECEDING AND CURRENT ROW) AS mean FROM s"
)
ANEW = "SELECT key, avg(x) AS mean FROM held GROUP BY key"


def opened(text: str, events: pa.Table) -> LiveQuery:
    """Return a live query that is fed by hand."""
    catalog = catalog_of({"s": events})
    return live_query(plan_sql(text, catalog), catalog, None, "0 s")


def pushed(text: str, events: pa.Table, batches: Sequence[pa.RecordBatch]) -> int:
    """Feed a live query; return how many rows it gave."""
    query = opened(text, events)
    rows = sum(len(query.push(batch)) for batch in batches)
    return rows + len(query.finish())


def computed_anew(
    connection: duckdb.DuckDBPyConnection,
    events: pa.Table,
    ends: Sequence[int],
    question: str = ANEW,
    window_s: int = WINDOW_S,
) -> list[pa.Table]:
    """Return the answers at the end of each batch, each computed over all that its window holds."""
    moments = times_of(events)
    first = np.searchsorted(moments, moments[np.array(ends) - 1] - window_s * SECOND_US, "right")
    answers = []
    for start, end in zip(first.tolist(), ends, strict=True):
        connection.register("held", events.slice(start, end - start))
        answers.append(connection.sql(question).to_arrow_table())
    return answers


def check_average(events: pa.Table) -> None:
    """Compare the answer after each batch with DuckDB's, and the older form with its window."""
    batches = arrivals(events, ARRIVING_ROWS)
    ends = np.cumsum([batch.num_rows for batch in batches]).tolist()
    expected = computed_anew(duckdb.connect(), events, ends)
    query = opened(AVERAGE, events)
    for number, batch in enumerate(batches):
        query.push(batch)
        # The instant of the last event is not over before the next one comes.
        query.advance(int(times_of(pa.Table.from_batches([batch]))[-1]) + 1)
        check_rows(f"average after batch {number}", expected[number], query.current().to_arrow())
    connection = duckdb.connect()
    connection.register("s", events)
    live = opened(OVER, events)
    rows = [live.push(batch).to_arrow() for batch in batches]
    found = pa.concat_tables([*rows, live.finish().to_arrow()]).select(["key", "mean"])
    check_rows("average over preceding rows", connection.sql(OVER).to_arrow_table(), found)


def averages(setting: StandingSetting) -> list[Finding]:
    """All forms of the average, and DuckDB's answers at the end of each batch."""
    check_average(readings(setting.sizes.of(0.1)))
    events = readings(setting.sizes.many)
    batches = arrivals(events, ARRIVING_ROWS)
    ends = np.cumsum([batch.num_rows for batch in batches]).tolist()
    connection = duckdb.connect(config={"threads": 1})
    ways: dict[str, Callable[[], Any]] = {
        name: partial(pushed, text, events, batches)
        for name, text in (("live", AVERAGE), ("slide", EVERY_SECOND), ("over", OVER))
    }
    ways["anew"] = partial(computed_anew, connection, events, ends)
    with one_core():
        rows = {name: way() for name, way in ways.items()}
        check_counts(
            "rows over preceding", {"events": events.num_rows, "rows": int(str(rows["over"]))}
        )
        del rows
        took = race(ways)
    count = events.num_rows
    asked, least = f"{LIVE_SPEED / 1e6:g} M events/s", count / LIVE_SPEED
    at_a_time = f"{ARRIVING_ROWS:,} at a time"
    return [
        Finding(f"GROUP BY, {at_a_time}", took["live"], asked, least, at_least(1), count),
        Finding(f"the same, SLIDE 1 s, {at_a_time}", took["slide"], "", None, None, count),
        Finding(f"OVER, {at_a_time}", took["over"], asked, least, at_least(1), count),
        Finding(
            "GROUP BY, true at every instant",
            took["live"],
            "DuckDB, anew after each batch",
            took["anew"],
            None,
            count,
        ),
    ]


LIVE_CASES = (
    StandingCase(
        "sliding average",
        "the average of each of 1,000 keys over the last 60 s as events arrive, of which there is "
        "one a millisecond: as a standing query, whose changes are reported at every instant or "
        "with SLIDE every second; as a window over preceding rows; and DuckDB, which answers only "
        "at the end of each batch, from scratch. On one core",
        averages,
    ),
)
