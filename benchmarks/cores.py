"""What is followed by key over history, with threads that share the keys, and in one thread."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.cases import Case, Duel
from benchmarks.data import THOUSAND_CARS
from benchmarks.setting import STREAM, Setting
from benchmarks.ways import Way, embedded
from eventide.engines.history.answer import table_of
from eventide.engines.history.replay import run_slice
from eventide.engines.history.slices import Slice
from eventide.instants import ALL_TIME
from eventide.lang.sql import plan_sql
from eventide.store import TableSource

CORES = 2
LEAST_OF_ONE_CORE = 1.6

BY_KEY = {
    "row pattern": (
        "where each car is faster than before, then slower",
        """SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car
        MEASURES FIRST(ts) AS t0, LAST(ts) AS t1, LAST(B.speed) AS top PATTERN (A B+ C)
        DEFINE B AS speed > PREV(speed), C AS speed < PREV(speed))""",
    ),
    "row pattern with a search": (
        "where each car stays above its mean since it braked, then falls below it",
        """SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car
        MEASURES FIRST(ts) AS t0, LAST(ts) AS t1 PATTERN (A B+ C)
        DEFINE A AS accel < -3, B AS speed >= AVG(B.speed), C AS speed < A.speed)""",
    ),
    "situations": (
        "when each car is fast",
        """SELECT * FROM cars SITUATIONS (PARTITION BY car DEFINE fast AS speed > 100
        RETURN MAX(speed) AS top)""",
    ),
    "temporal pattern": (
        "where each car brakes while it is fast",
        """SELECT * FROM cars TPSTREAM (PARTITION BY car
        DEFINE fast AS speed > 80, braking AS accel < 0
        PATTERN fast overlaps braking; fast contains braking; fast starts braking
        WITHIN 5 MINUTES RETURN MAX(fast.speed) AS top)""",
    ),
    "frame": (
        "at each event, average speed of its car over the last 21 events",
        """SELECT ts, car, AVG(speed) OVER (PARTITION BY car ORDER BY ts
        ROWS BETWEEN 20 PRECEDING AND CURRENT ROW) AS mean FROM cars""",
    ),
}


def in_threads(name: str, text: str, threads: int) -> Way:
    """A replay of all events in one piece, in so many threads."""

    def answer(setting: Setting) -> pa.Table:
        source = TableSource(STREAM, setting.schema, setting.events)
        plan = plan_sql(text, {STREAM: setting.schema})
        whole = Slice(ALL_TIME, ALL_TIME, source.row_count)
        return table_of(plan, run_slice(plan, source, whole, threads))

    return embedded(name, answer)


def core_cases() -> list[Case]:
    """Return a case for each kind of operator that follows keys."""
    return [
        Case(
            f"{name}, two cores",
            f"{asked}; the rival is one thread, where other work on the machine counts less",
            THOUSAND_CARS,
            (
                Duel(
                    in_threads("Eventide, two threads", text, CORES),
                    in_threads("Eventide, one thread", text, 1),
                    LEAST_OF_ONE_CORE,
                ),
            ),
        )
        for name, (asked, text) in BY_KEY.items()
    ]
