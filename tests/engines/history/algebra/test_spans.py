"""Sequences whose first event is rare: what is read of the stream; the rows are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.history.algebra.spans import Spans, joined, spans_of
from eventide.engines.history.choice import LEAST_ROWS
from eventide.instants import TimeRange

EVENTS = 120_000
RARE = 12
QUERIES = (
    "SELECT * FROM FILTER{level > 1000} s NEXT{$1.host = $2.host AND DUR <= 5 seconds} s",
    "SELECT * FROM FILTER{level > 1000 AND host <> 'b'} s NEXT{DUR <= 5 seconds AND $2.level < 40} "
    "s",
    "SELECT * FROM FILTER{DUR <= 9 seconds}(FILTER{level > 1000} s "
    "NEXT{$2.level < 9} s NEXT{$2.level > 90} s)",
    "SELECT host, n, level FROM (SELECT *, 1 AS n FROM FILTER{level > 1000} s) "
    "FOLD{$2.host = $.host AND DUR <= 3 seconds, , $.n + 1 AS n} s",
    "FILTER{level > 1000} s NEXT{DUR <= 9 seconds} (SELECT n FROM AT INSTANT{COUNT(*) AS n} s)",
    "FILTER{level > 1000} s NEXT{DUR <= 20 seconds} "
    "(SELECT n FROM (SELECT level AS n FROM s) NEXT{$2.host = 'a'} (SELECT host FROM s))",
)
FRAME = (
    "WITH f AS (SELECT ts, SUM(level) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '9' SECOND PRECEDING"
    " AND CURRENT ROW) AS total FROM s) SELECT * FROM CEL (FILTER{level > 1000} s"
    " NEXT{DUR <= 5 seconds} f)"
)
MATCHED = (
    "WITH f AS (SELECT ts, start_ts, n FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(ts) AS ts,"
    " FIRST(ts) AS start_ts, SUM(level) AS n PATTERN (A A A A A))) SELECT * FROM CEL"
    " (FILTER{level > 1000} s NEXT{DUR <= 50 seconds} f)"
)
POINTS = (
    "WITH f AS (SELECT ts, ts AS start_ts, level_1 AS n FROM CEL (s NEXT{$2.host = 'a' AND"
    " $1.level > 95} s)) SELECT * FROM CEL (FILTER{level > 1000} s NEXT{DUR <= 20 seconds} f)"
)
FIRST_POINTS = (
    "WITH f AS (SELECT ts, ts AS start_ts, level_1 AS n FROM CEL (FILTER{level > 1000} s"
    " NEXT{$2.level = 3} s)) SELECT * FROM CEL (f NEXT{DUR <= 9 seconds} s)"
)
LONG = (
    "FILTER{level > 1000} s NEXT{DUR <= 20 seconds} (SELECT x FROM AT INSTANT{COUNT(*) AS x} "
    "(FILTER{level > 95} s NEXT{$2.host = 'a' AND $2.level > 5} s))"
)
OF_EARLIER = {
    "a moving sum": FRAME,
    "a pattern that skips": MATCHED,
    "points of sequences": POINTS,
    "points first": FIRST_POINTS,
    "sequences that end at once": LONG,
}
"""What follows depends on events before the first one."""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> ev.Database:
    random = np.random.default_rng(5)
    level = random.integers(0, 100, EVENTS)
    level[random.choice(EVENTS, RARE, replace=False)] = 2_000
    hosts = np.array(["a", "b", "c"])[random.integers(0, 3, EVENTS)]
    found = ev.open(tmp_path_factory.mktemp("spans") / "db")
    stream = found.create_stream("s", {"host": "string", "level": "int64"})
    times = np.cumsum(random.integers(0, 2_000_000, EVENTS))
    stream.append(
        pa.table({"ts": pa.array(times).view(pa.timestamp("us")), "host": hosts, "level": level})
    )
    return found


def chosen(db: ev.Database, text: str) -> Spans | str:
    plan = db.plan(text)
    while not plan.children[0].children or type(plan).__name__ == "DerivedStream":
        (plan,) = plan.children
    return spans_of(plan, db.sources(plan))


@pytest.mark.parametrize("text", QUERIES)
def test_the_index_changes_no_row(
    db: ev.Database, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_index = chosen(db, text)
    assert isinstance(by_index, Spans), by_index
    assert 0 < by_index.begun <= RARE
    assert by_index.rows < EVENTS / 100
    rows = db.cel(text).rows()
    monkeypatch.setattr("eventide.engines.history.algebra.spans.spans_of", lambda *_: "not asked")
    assert rows == db.cel(text).rows()
    assert rows


@pytest.mark.parametrize("name", OF_EARLIER)
def test_what_depends_on_earlier_events_reads_them(
    db: ev.Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = OF_EARLIER[name]
    rows = db.sql(text).rows()
    monkeypatch.setattr("eventide.engines.history.algebra.spans.spans_of", lambda *_: "not asked")
    assert rows == db.sql(text).rows()
    assert rows


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT * FROM FILTER{level > 1000} s NEXT{$1.host = $2.host} s", "bounded"),
        ("SELECT * FROM s NEXT{$1.host = $2.host AND DUR <= 1 second} s", "condition"),
        ("SELECT * FROM FILTER{level > 5} s NEXT{DUR <= 1 second} s", "too many events"),
        ("SELECT * FROM FILTER{level > 1000} s NEXT{DUR <= 1 hour} s", "most of the stream"),
        ("SELECT * FROM FILTER{level + 1 > 1001} s NEXT{DUR <= 1 second} s", "knows nothing"),
    ],
)
def test_all_is_read_where_the_index_does_not_help(db: ev.Database, text: str, why: str) -> None:
    found = chosen(db, text)
    assert isinstance(found, str)
    assert why in found


def test_explain_says_what_is_read(db: ev.Database, tmp_path: Path) -> None:
    text = str(db.explain(QUERIES[0]))
    assert f"index: yes, {RARE} events can begin a sequence, and about" in text
    small = ev.open(tmp_path / "db")
    small.create_stream("s", {"host": "string", "level": "int64"})
    assert f"index: no, because fewer than {LEAST_ROWS:,} events" in str(small.explain(QUERIES[0]))


def test_periods_that_touch_are_one() -> None:
    assert joined(np.array([0, 5, 15, 27]), 10) == (TimeRange(0, 26), TimeRange(27, 38))
    assert joined(np.array([], np.int64), 10) == ()
