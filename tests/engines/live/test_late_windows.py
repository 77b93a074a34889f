"""Late events by window: taken while a window of theirs is open, counted else."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from eventide.engines.live.engine import LiveEngine
from eventide.engines.live.late_windows import checked_late
from eventide.errors import PlanError, StateError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.schema import Schema
from tests.engines.engines import plain
from tests.naive.late_windows import LateSessions, LateWindows
from tests.naive.windows import Aggregates, Event

SCHEMA = Schema.of({"k": "string", "v": "int64"})
CATALOG = {"s": SCHEMA, "t": SCHEMA}
IN_ANY_ORDER: Aggregates = [("n", "count(*)", "v"), ("x", "sum", "v"), ("low", "min", "v")]
IN_ORDER: Aggregates = [*IN_ANY_ORDER, ("f", "first", "v"), ("l", "last", "v")]
SQL = {
    "n": "COUNT(*)",
    "x": "SUM(v)",
    "low": "MIN(v)",
    "f": "FIRST(v)",
    "l": "LAST(v)",
}
WINDOWS: dict[str, tuple[str, tuple[int, int] | int]] = {
    "tumbling": ("TUMBLE(ts, INTERVAL '7' MICROSECOND)", (7, 7)),
    "hopping": ("HOP(ts, INTERVAL '4' MICROSECOND, INTERVAL '10' MICROSECOND)", (10, 4)),
    "with gaps": ("HOP(ts, INTERVAL '9' MICROSECOND, INTERVAL '5' MICROSECOND)", (5, 9)),
    "sessions": ("SESSION(ts, INTERVAL '5' MICROSECOND)", 5),
}


def text_of(window: str, aggregates: Aggregates, *, by_key: bool, filtered: bool) -> str:
    chosen = ", ".join(f"{SQL[name]} AS {name}" for name, _, _ in aggregates)
    keys = "k, " if by_key else ""
    where = "WHERE v > 2" if filtered else ""
    return (
        f"SELECT {keys}window_start, window_end, {chosen} FROM s {where} "
        f"GROUP BY {keys}{WINDOWS[window][0]}"
    )


def twin_of(window: str, aggregates: Aggregates, *, by_key: bool) -> LateWindows | LateSessions:
    keys, bounds = ["k"] if by_key else [], WINDOWS[window][1]
    if isinstance(bounds, tuple):
        return LateWindows(keys, *bounds, aggregates)
    return LateSessions(keys, bounds, aggregates)


def bag(rows: list[Event]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def batch_of(events: list[Event]) -> pa.RecordBatch:
    rows = [{name: event[name] for name in SCHEMA.arrow.names} for event in events]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA.arrow)


Batches = list[list[tuple[int, str, int]]]


@st.composite
def drifting(draw: st.DrawFn) -> Batches:
    """Batches of events whose times go on, and of which many are late."""
    one = st.tuples(st.integers(-14, 5), st.sampled_from("ab"), st.integers(0, 9))
    batches: Batches = []
    now = draw(st.integers(-20, 20))
    for passed, events in draw(
        st.lists(st.tuples(st.integers(0, 7), st.lists(one, max_size=5)), max_size=10)
    ):
        now += passed
        batches.append([(now + ago, k, v) for ago, k, v in events])
    return batches


@settings(deadline=None, max_examples=400)
@given(
    drifting(),
    st.integers(0, 6),
    st.sampled_from(sorted(WINDOWS)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_rows_and_late_events_are_those_of_the_twin(
    batches: Batches, lateness: int, window: str, ordered: bool, by_key: bool, filtered: bool
) -> None:
    aggregates = IN_ORDER if ordered else IN_ANY_ORDER
    text = text_of(window, aggregates, by_key=by_key, filtered=filtered)
    note(text)
    engine = LiveEngine.of(plan_sql(text, CATALOG), CATALOG, lateness, late="window")
    check(engine, twin_of(window, aggregates, by_key=by_key), batches, lateness, filtered=filtered)


def check(
    engine: LiveEngine,
    twin: LateWindows | LateSessions,
    batches: Batches,
    lateness: int,
    *,
    filtered: bool,
) -> None:
    """Compare rows and late events after every batch; the state is written and read in between."""
    state, rows, late = engine.initial_state(), list[Event](), list[int]()
    newest: int | None = None
    seq = 0
    for batch in batches:
        events = [
            {"ts": ts, "_seq": seq + i, "k": k, "v": v, "passes": v > 2 or not filtered}
            for i, (ts, k, v) in enumerate(batch)
        ]
        seq += len(events)
        state, reported = engine.push(state, batch_of(events))
        times = [ts for ts, _, _ in batch]
        newest = max([*times, *([] if newest is None else [newest])], default=None)
        twin.take(events, None if newest is None else newest - lateness)
        rows += plain(pa.Table.from_batches([reported.rows]))
        for each in reported.late.values():
            late += each.column("_seq").to_pylist()
        assert late == twin.told.late
        assert bag(rows) == bag(twin.told.rows)
        state = engine.load(engine.dump(state))
    _, reported = engine.finish(state)
    twin.report(all_of_them=True)
    assert bag(rows + plain(pa.Table.from_batches([reported.rows]))) == bag(twin.told.rows)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("aggregates", [IN_ORDER, IN_ANY_ORDER], ids=["in order", "in any order"])
def test_many_keys_and_events(window: str, aggregates: Aggregates) -> None:
    """State by key in layers, late events of some keys in each step."""
    choose, now = random.Random(5), 0
    text = text_of(window, aggregates, by_key=True, filtered=False)
    engine = LiveEngine.of(plan_sql(text, CATALOG), CATALOG, 2, late="window")
    batches: Batches = []
    for size in [2000, *([40] * 12)]:
        now += choose.randrange(3)
        batches.append(
            [
                (now - choose.randrange(14), f"k{choose.randrange(1500)}", choose.randrange(9))
                for _ in range(size)
            ]
        )
    check(engine, twin_of(window, aggregates, by_key=True), batches, 2, filtered=False)


def reported_by(
    text: str, batches: list[list[int]], late: str = "window", lateness: int = 0
) -> Any:  # noqa: ANN401
    """The rows of a query over events of the given times, whose values are their numbers."""
    engine = LiveEngine.of(plan_sql(text, CATALOG), CATALOG, lateness, late=checked_late(late))
    state, rows, late_count, seq = engine.initial_state(), [], 0, 0
    for times in batches:
        events = [{"ts": ts, "_seq": seq + i, "k": "a", "v": seq + i} for i, ts in enumerate(times)]
        seq += len(times)
        state, reported = engine.push(state, batch_of(events))
        rows += plain(pa.Table.from_batches([reported.rows]))
        late_count += sum(each.num_rows for each in reported.late.values())
        state = engine.load(engine.dump(state))
    _, reported = engine.finish(state)
    return rows + plain(pa.Table.from_batches([reported.rows])), late_count


def test_a_late_event_counts_only_in_windows_that_are_open() -> None:
    #  watermark 12: [0, 10) is closed; [5, 15) and [10, 20) are open
    #  an event at 7 belongs to [0, 10) and [5, 15)
    text = """SELECT window_start, COUNT(*) AS n FROM s
        GROUP BY HOP(ts, INTERVAL '5' MICROSECOND, INTERVAL '10' MICROSECOND)"""
    rows, late = reported_by(text, [[6], [12], [7], [4]])
    assert {row["window_start"]: row["n"] for row in rows} == {0: 1, 5: 3, 10: 1}
    assert late == 1
    rows, late = reported_by(text, [[6], [12], [7], [4]], "watermark")
    assert {row["window_start"]: row["n"] for row in rows} == {0: 1, 5: 2, 10: 1}
    assert late == 2


def test_lists_are_in_order_of_time_as_over_history() -> None:
    text = """SELECT window_start, ARRAY_AGG(v) AS vs, ARG_MIN(v, v) AS least
        FROM s GROUP BY TUMBLE(ts, INTERVAL '10' MICROSECOND)"""
    rows, late = reported_by(text, [[1, 8], [3], [8, 2], [9]])
    assert (rows[0]["vs"], rows[0]["least"], late) == ([0, 4, 2, 1, 3, 5], 0, 0)


def test_a_late_event_makes_a_session_longer_and_joins_two() -> None:
    #  gap 5, watermark 10: the session of 8 is open; 4 is over alone, but less than 5 before 8
    text = """SELECT window_start, window_end, ARRAY_AGG(v) AS vs FROM s
        GROUP BY SESSION(ts, INTERVAL '5' MICROSECOND)"""
    rows, late = reported_by(text, [[8], [10], [4], [3], [-2]])
    assert (rows, late) == ([{"window_start": 3, "window_end": 15, "vs": [3, 2, 0, 1]}], 1)
    # Two that come together make a bridge, whichever comes first.
    assert reported_by(text, [[8], [10], [0, 4]])[0][0]["vs"] == [2, 3, 0, 1]


def test_what_is_above_the_windows_gets_them_complete() -> None:
    text = """SELECT * FROM (SELECT window_end AS ts, COUNT(*) AS n FROM s
            GROUP BY TUMBLE(ts, INTERVAL '10' MICROSECOND))
        MATCH_RECOGNIZE (ORDER BY ts MEASURES A.n AS a, B.n AS b
            PATTERN (A B) DEFINE B AS n < A.n)"""
    rows, late = reported_by(text, [[1, 5], [3], [12], [11], [4], [33]])
    assert (rows, late) == ([{"a": 3, "b": 2}], 1)


KINDS = {
    "a row pattern: it goes from row to row": """SELECT * FROM s MATCH_RECOGNIZE (
        MEASURES COUNT(*) AS n PATTERN (A+) DEFINE A AS v > 1)""",
    "situations: they go from event to event": "SELECT * FROM s SITUATIONS (DEFINE a AS v > 1)",
    "a temporal pattern: it goes from event to event": """FROM s DEFINE a AS v > 1, b AS v > 2
        PATTERN a meets b WITHIN 1 MINUTE RETURN DURATION(a) AS d""",
    "a window by count: they would move": """SELECT COUNT(*) AS n FROM s
        GROUP BY TUMBLE(ROWS, 3)""",
    "the frames of OVER: rows behind them": """SELECT SUM(v) OVER (ORDER BY ts
        RANGE INTERVAL '4' SECOND PRECEDING) AS x FROM s""",
    "windows in brackets: their answer was right": "SELECT v FROM s [RANGE 4 SECONDS]",
    "a query without a window: rows behind them": "SELECT * FROM s WHERE v > 1",
    "UNION ALL: the rows of all streams come in one order": """SELECT COUNT(*) AS n FROM (
            SELECT ts, v FROM s UNION ALL SELECT ts, v FROM t)
        GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)""",
}


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("why", KINDS)
def test_other_queries_are_refused(why: str) -> None:
    plan = plan_sql(KINDS[why], CATALOG)
    with pytest.raises(UnsupportedError, match=f"late events cannot join {why}") as error:
        LiveEngine.of(plan, CATALOG, late="window")
    assert "GROUP BY TUMBLE, HOP or SESSION" in str(error.value)


def test_a_choice_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PlanError, match="late='never' is none of 'watermark' and 'window'"):
        checked_late("never")


@pytest.mark.parametrize("window", ["tumbling", "sessions"])
def test_a_state_belongs_to_the_choice_it_was_written_with(window: str) -> None:
    plan = plan_sql(text_of(window, IN_ORDER, by_key=True, filtered=False), CATALOG)
    by_window = LiveEngine.of(plan, CATALOG, late="window")
    by_watermark = LiveEngine.of(plan, CATALOG)
    with pytest.raises(StateError, match="late: it was written with by window"):
        by_watermark.load(by_window.dump(by_window.initial_state()))
    with pytest.raises(StateError, match="this has by window"):
        by_window.load(by_watermark.dump(by_watermark.initial_state()))
