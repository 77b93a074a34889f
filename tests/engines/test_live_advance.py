"""A live query whose stream falls silent: `advance` moves time without events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.live.engine import LiveEngine
from eventide.errors import SchemaError
from eventide.plan.explain import explain
from eventide.plan.passes import optimise
from tests.naive.situations.matches import by_closed_form
from tests.naive.situations.nodes import CATALOG, SCHEMA, SECOND, Case, cases
from tests.operators.situations.drive import bag, plain

Rows = list[dict[str, Any]]

QUERIES = {
    "windows": """SELECT k, window_start, COUNT(*) AS n FROM s
        GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)""",
    "silence": "SELECT * FROM s SITUATIONS (PARTITION BY k DEFINE a AS v > 1 GAP 5 SECONDS)",
    "least": """FROM s PARTITION BY k DEFINE a AS v > 1 AT LEAST 4 SECONDS GAP 5 SECONDS
        PATTERN a WITHIN 1 MINUTE RETURN DURATION(a) AS lasted""",
    "rows": """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k MEASURES COUNT(*) AS n
        PATTERN (A+) WITHIN INTERVAL '6' SECOND DEFINE A AS v > 1)""",
}


def opened(folder: Path) -> ev.Database:
    db = ev.open(folder / "db")
    db.create_stream("s", {"k": "string", "v": "float64"})
    return db


def append(db: ev.Database, *events: tuple[float, str, float]) -> None:
    db.stream("s").append([{"ts": round(ts * SECOND), "k": k, "v": v} for ts, k, v in events])


EVENTS = [(0, "p", 2.0), (1, "p", 2.0), (2, "q", 2.0), (3, "q", 0.0), (3.5, "r", 5.0)]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("second", [3.5, 4, 6, 6.000001, 8, 9, 10, 10.5, 25])
def test_time_that_goes_on_does_what_an_event_of_that_time_would(
    query: str, second: float, tmp_path: Path
) -> None:
    """The event comes in a stream of its own twin, for a key of its own that matches nothing."""
    found: list[Rows] = []
    for name in ("advanced", "pushed"):
        db = opened(tmp_path / name)
        results: list[ev.Result] = []
        standing = db.subscribe(QUERIES[query], results.append)
        append(db, *EVENTS)
        if name == "advanced":
            standing.advance(round(second * SECOND))
        else:
            append(db, (second, "other", 0.0))
        db.wait()
        found.append(sorted((row for each in results for row in each.rows()), key=repr))
    assert found[0] == found[1]
    if second == 25:
        assert found[0]


def test_what_waits_is_let_go_and_what_comes_behind_is_late(tmp_path: Path) -> None:
    db = opened(tmp_path)
    rows: Rows = []
    standing = db.subscribe(
        QUERIES["windows"], lambda result: rows.extend(result.rows()), lateness="1 minute"
    )
    append(db, (1, "p", 1.0), (12, "p", 1.0))
    standing.wait()
    assert rows == []
    standing.advance(10 * SECOND)
    standing.wait()
    assert [(row["k"], row["n"]) for row in rows] == [("p", 1)]
    standing.advance(3 * SECOND)  # time does not go back
    assert standing.watermark_us == 10 * SECOND
    append(db, (9, "p", 1.0), (11, "p", 1.0))
    assert standing.late_counts == {"s": 1}
    standing.advance(20 * SECOND)
    standing.wait()
    assert [(row["k"], row["n"]) for row in rows] == [("p", 1), ("p", 2)]
    with pytest.raises(SchemaError, match="does not read 't'"):
        standing.advance(30 * SECOND, stream="t")
    standing.finish()
    assert len(standing.advance(40 * SECOND)) == 0


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(cases(), st.integers(0, 14), st.integers(0, 9))
def test_patterns_tell_all_that_is_certain_by_then(case: Case, count: int, ahead: int) -> None:
    node, events = case
    note(explain(node))
    engine = LiveEngine.of(optimise(node), CATALOG, 0)
    state = engine.initial_state()
    found: Rows = []
    arrived = pa.RecordBatch.from_pylist(events[:count], schema=SCHEMA.arrow)
    state, arrival = engine.push(state, arrived)
    found += plain(arrival.rows)
    until = (events[:count][-1]["ts"] if events[:count] else 0) + ahead * SECOND
    state = engine.load(engine.dump(state))
    state, reported = engine.advance(state, until)
    found += plain(reported.rows)
    decided = [event for event in events[:count] if event["ts"] < until]
    assert bag(found) == bag(by_closed_form(node, decided, until))
