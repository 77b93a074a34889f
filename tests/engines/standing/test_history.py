"""Standing queries over what is stored: the right answer, and no more read than needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.history import merged
from eventide.engines.history.answer import run_history
from eventide.engines.standing.reach import needed_ranges
from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    StreamWindow,
    held_range,
)
from eventide.store import TableSource
from eventide.store.source import Where
from tests.engines.standing.queries import (
    AS_OF,
    CATALOG,
    DISTINCT,
    EXCEPT_ALL,
    FILTERED_JOIN,
    GROUP_JOIN,
    INTERNAL,
    JOIN,
    JOIN_3,
    OUTPUT_WINDOWS,
    RELATION_JOIN,
    REPORTS,
    SLIDING,
    SYSTEM_TIME,
    TOP_GROUPS,
    TOP_TIES,
    WINDOWS,
    history,
)
from tests.engines.standing.runs import bag, plan_of
from tests.naive.standing.answers import Question, Streams, Truth
from tests.naive.standing.windows import SECOND


def sources_of(streams: Streams) -> dict[str, TableSource]:
    return {
        name: TableSource(name, schema, pa.Table.from_pylist(streams[name], schema=schema.arrow))
        for name, schema in CATALOG.items()
    }


def newest_of(question: Question, streams: Streams) -> int | None:
    names = {window.stream for window in question.windows.values()}
    return max((event["ts"] for name in names for event in streams[name]), default=None)


def bag_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for batch in table.to_batches():
        found += bag(batch)
    return found


def named(questions: Sequence[Question]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.name)


ASKED = (
    *WINDOWS[::2], *INTERNAL[::3], *SLIDING[::3], JOIN_3, AS_OF, SYSTEM_TIME, RELATION_JOIN,
    DISTINCT, EXCEPT_ALL, GROUP_JOIN, TOP_TIES, TOP_GROUPS, OUTPUT_WINDOWS[2],
)  # fmt: skip


@named(ASKED)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.sampled_from((1, 3, 1000)))
def test_the_answer_as_of_the_newest_event(question: Question, seed: int, rows: int) -> None:
    streams = history(seed)
    now = newest_of(question, streams)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merged, "STEP_ROWS", rows)
        found = bag_of(run_history(plan_of(question.text), sources_of(streams)))
    assert found == (Counter() if now is None else Truth(question, streams).answer(now))


@named(REPORTS[::6])
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_all_reports_up_to_the_newest_event(question: Question, seed: int) -> None:
    streams = history(seed)
    now = newest_of(question, streams)
    found = bag_of(run_history(plan_of(question.text), sources_of(streams)))
    assert found == (Counter() if now is None else Truth(question, streams).reports(now + 1))


class Watched:
    """A source that notes what is asked of it."""

    def __init__(self, source: TableSource) -> None:
        self.source = source
        self.asked: list[tuple[TimeRange, Where | None]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.source, name)

    def scan(
        self, columns: Sequence[str], time_range: TimeRange = ALL_TIME, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        self.asked.append((time_range, where))
        return self.source.scan(columns, time_range, where)


def watched(streams: Streams) -> dict[str, Watched]:
    return {name: Watched(source) for name, source in sources_of(streams).items()}


def asked_of(question: Question, streams: Streams) -> Mapping[str, Watched]:
    sources = watched(streams)
    run_history(plan_of(question.text), sources)  # type: ignore[arg-type]
    return sources


STREAMS: Streams = {
    **{
        name: [
            {"ts": tick * SECOND, "_seq": tick, "k": "p", "g": 1, "v": tick, "f": None}
            for tick in range(20)
        ]
        for name in "abcd"
    },
    "r": [],
}


def test_what_no_window_holds_is_not_read() -> None:
    sources = asked_of(JOIN, STREAMS)
    now = 19 * SECOND
    assert sources["a"].asked == [(TimeRange(now - 4 * SECOND + 1), None)]
    assert sources["b"].asked == [(TimeRange(now - 6 * SECOND + 1), None)]


def test_what_a_condition_rules_out_is_not_asked_for() -> None:
    sources = asked_of(FILTERED_JOIN, STREAMS)
    (((_, a),), ((_, b),)) = sources["a"].asked, sources["b"].asked
    assert a is not None
    assert list(a) == ["v"]
    assert b is not None
    assert list(b) == ["g"]


@named((JOIN.reporting("ISTREAM"), INTERNAL[1], OUTPUT_WINDOWS[1], TOP_GROUPS))
def test_what_needs_all_events_reads_them(question: Question) -> None:
    assert {period for period, _ in asked_of(question, STREAMS)["a"].asked} == {ALL_TIME}


@pytest.mark.parametrize(
    "window",
    [RangeWindow(5), RangeWindow(5, 3), RangeWindow(2, 7), PeriodWindow(4), RangeWindow(1)],
    ids=str,
)
def test_a_window_holds_exactly_what_its_range_says(window: StreamWindow) -> None:
    def expires(ts: int) -> int:
        match window:
            case PeriodWindow(period_us=period):
                return (ts // period + 1) * period
            case RangeWindow(size_us=size, jump_us=jump):
                return ts + size if jump is None else -(-(ts + size) // jump) * jump
        raise AssertionError

    for now in range(-15, 15):
        held = [ts for ts in range(-40, now + 1) if expires(ts) > now]
        assert held == list(range(held_range(window, now).start_us, now + 1))


def test_a_refresh_looks_back_from_the_last_multiple() -> None:
    plan = plan_of(JOIN.sliding(2).text)
    ranges = needed_ranges(plan, 7 * SECOND)
    assert [each.start_us for each in ranges] == [2 * SECOND + 1, 1]


def test_a_query_that_goes_on_remembers_no_more_than_its_windows() -> None:
    plan = plan_of(JOIN.reporting("ISTREAM").text)
    assert needed_ranges(plan, 0)[0] == ALL_TIME
    assert needed_ranges(plan, 0, continuing=True)[0].start_us == -4 * SECOND + 1
    rows = replace(windows_of(plan)[0], window=RowsWindow(2))
    assert needed_ranges(Standing(rows), 0, continuing=True) == (ALL_TIME,)


def two_streams(folder: Path) -> ev.Database:
    db = ev.open(folder / "db")
    for name in "ab":
        stream = db.create_stream(name, {"k": "string", "v": "int64"})
        stream.append([{"ts": tick * SECOND, "k": "pq"[tick % 2], "v": tick} for tick in range(10)])
    return db


TEXT = """
SELECT x.k, x.v, y.v AS w FROM a [RANGE 3 SECONDS] x JOIN b [RANGE 2 SECONDS] y ON x.k = y.k
"""


def test_a_database_and_tables_in_memory_answer_alike(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    tables = {name: db.stream(name).events().to_arrow() for name in "ab"}
    expected = Counter({("q", 9, 9): 1, ("q", 7, 9): 1, ("p", 8, 8): 1})
    assert bag_of(db.sql(TEXT).to_arrow()) == expected
    assert bag_of(ev.sql(TEXT, **tables).to_arrow()) == expected


APART = """
SELECT p.v, q.v AS w FROM (SELECT k, v FROM a [RANGE 4 SECONDS]) p
LEFT JOIN (SELECT k, v FROM b [RANGE 4 SECONDS]) q ON p.k = q.k ORDER BY p.v
"""


def test_all_standing_parts_of_a_query_are_of_one_instant(tmp_path: Path) -> None:
    """At the last event of a, that of 11, the window over b holds 8 and 9 only."""
    db = two_streams(tmp_path)
    db.stream("a").append([{"ts": tick * SECOND, "k": "p", "v": tick} for tick in (10, 11)])
    tables = {name: db.stream(name).events().to_arrow() for name in "ab"}
    expected = [(8, 8), (9, 9), (10, 8), (11, 8)]
    for result in (db.sql(APART), ev.sql(APART, **tables)):
        assert [tuple(row.values()) for row in result.rows()] == expected
    explained = str(db.explain(APART, analyze=True))
    assert "history: b (b): those from 1970-01-01 00:00:07.000001 of 10 events" in explained


def test_reports_over_a_database(tmp_path: Path) -> None:
    reports = two_streams(tmp_path).sql(f"ISTREAM ({TEXT})").rows()
    assert len(reports) == 10 + 8
    assert [row["v"] for row in reports if row["w"] == 9] == [9, 7]


def test_explain_shows_edges_and_what_is_read(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    text = db.explain(TEXT)
    assert "WindowJoin" in text
    assert "weakest, lives 3 s" in text
    assert "history: a (x): those from 1970-01-01 00:00:06.000001 of 10 events" in text
    assert "live: yes" in text
    assert "a (x) for 3 s" in text
    analyzed = db.explain(TEXT, analyze=True)
    assert "history: 3 rows in" in analyzed
    assert "most remembered" in analyzed
    assert "<svg" in analyzed.svg()
