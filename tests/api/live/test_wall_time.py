"""Every kind of query closes its window, absence or situation by the wall clock alone."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest

import eventide as ev
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.errors import PlanError

SECOND = 1_000_000
LONG_S = 60.0

Rows = list[dict[str, Any]]

DECIDED_BY_TIME = {
    "rows as they come": "SELECT * FROM s WHERE v > 1",
    "tumbling": """SELECT k, window_start, COUNT(*) AS n, SUM(v) AS x, FIRST(v) AS f, LAST(v) AS l
        FROM s GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)""",
    "hopping": """SELECT k, window_start, COUNT(*) AS n FROM s
        GROUP BY k, HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)""",
    "sessions": """SELECT k, window_start, window_end, COUNT(*) AS n FROM s
        GROUP BY k, SESSION(ts, INTERVAL '3' SECOND)""",
    "by count": "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s GROUP BY k, TUMBLE(ROWS, 3)",
    "frames of time": """SELECT ts, k, SUM(v) OVER (PARTITION BY k ORDER BY ts
        RANGE INTERVAL '4' SECOND PRECEDING) AS n FROM s""",
    "frames of rows": """SELECT ts, k, SUM(v) OVER (PARTITION BY k ORDER BY ts
        ROWS 2 PRECEDING) AS n FROM s""",
    "ranks": """SELECT * FROM (SELECT *, ROW_NUMBER() OVER (
            PARTITION BY window_start, window_end ORDER BY n DESC, k) AS r
        FROM (SELECT k, window_start, window_end, COUNT(*) AS n FROM s
              GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND))) WHERE r <= 1""",
    "windows of windows": """SELECT window_start, SUM(n) AS n
        FROM (SELECT window_end AS ts, COUNT(*) AS n FROM s
              GROUP BY k, TUMBLE(ts, INTERVAL '2' SECOND))
        GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)""",
    "row pattern": """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
        MEASURES COUNT(*) AS n, LAST(ts) AS e
        PATTERN (A+) WITHIN INTERVAL '6' SECOND DEFINE A AS v > 1)""",
    "all rows of matches": """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
        MEASURES COUNT(*) AS n ALL ROWS PER MATCH
        PATTERN (A B*) WITHIN INTERVAL '6' SECOND DEFINE A AS v > 1, B AS v <= 1)""",
    "absence at the end": """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
        MEASURES FIRST(ts) AS since STRATEGY skip_till_next AFTER MATCH SKIP TO NEXT ROW
        PATTERN (A NOT B) WITHIN INTERVAL '6' SECOND DEFINE A AS v > 2, B AS v < 1)""",
    "absence between": """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
        MEASURES FIRST(ts) AS since STRATEGY skip_till_next AFTER MATCH SKIP TO NEXT ROW
        PATTERN (A NOT B C?) WITHIN INTERVAL '6' SECOND
        DEFINE A AS v > 2, B AS v < 1, C AS v = 1)""",
    "timeouts": """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
        MEASURES FIRST(ts) AS since, CLASSIFIER() AS c TIMEOUT ROWS
        PATTERN (A B) WITHIN INTERVAL '6' SECOND DEFINE A AS v > 2, B AS v < 1)""",
    "situations with a gap": """SELECT * FROM s SITUATIONS (
        PARTITION BY k DEFINE a AS v > 1 GAP 5 SECONDS)""",
    "temporal pattern": """FROM s PARTITION BY k
        DEFINE a AS v > 0 AT LEAST 2 SECONDS, b AS v > 2 GAP 5 SECONDS
        PATTERN b finishes a WITHIN 1 MINUTE
        RETURN DURATION(a) AS lasted""",
    "pattern over windows": """SELECT * FROM (
            SELECT k, window_end AS ts, COUNT(*) AS n FROM s
            GROUP BY k, TUMBLE(ts, INTERVAL '2' SECOND))
        MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(ts) AS e
            PATTERN (A B?) WITHIN INTERVAL '6' SECOND DEFINE B AS n > A.n)""",
}


class Following:
    """A live query with a manual clock, and the rows that it has reported."""

    def __init__(self, db: ev.Database, text: str, **options: Any) -> None:  # noqa: ANN401
        self.clock = ev.ManualClock()
        self.received: Rows = []
        self.query = db.subscribe(
            text,
            lambda result: self.received.extend(result.rows()),
            clock=self.clock,
            **{"idle": "5 s", "max_state_bytes": 10**9, **options},
        )

    @property
    def reported(self) -> Rows:
        self.query.wait()
        return self.received

    def rows(self) -> list[str]:
        return sorted(map(repr, self.reported))


def opened(folder: Path, *streams: str) -> ev.Database:
    db = ev.open(folder / "db")
    for name in streams or ("s",):
        db.create_stream(name, {"k": "string", "v": "int64"})
    return db


def append(db: ev.Database, stream: str, *events: tuple[float, str, int]) -> None:
    rows = [{"ts": round(ts * SECOND), "k": k, "v": v} for ts, k, v in events]
    db.stream(stream).append(rows)


def over_history(db: ev.Database, text: str) -> list[str]:
    return sorted(map(repr, db.sql(text).rows()))


def some_events(choose: random.Random) -> Iterator[tuple[float, tuple[float, str, int]]]:
    """How long each event is waited for, and the event."""
    second = 0.0
    for _ in range(40):
        passed = choose.choice([0, 0.5, 1, 1, 2, 4, 9])
        second += passed
        yield passed, (second, choose.choice("abc"), choose.randrange(4))
    # What these leave open, no event decides.
    yield from ((1, (second + more, "d", v)) for more, v in ((1, 1), (2, 3), (3, 3)))


@pytest.mark.parametrize("lateness", ["0 s", "3 s"])
@pytest.mark.parametrize("kind", DECIDED_BY_TIME)
def test_the_clock_alone_gives_the_rows_of_history(
    kind: str, lateness: str, tmp_path: Path
) -> None:
    """Event time goes with the clock; in some pauses all is silent, and time goes on without."""
    text = DECIDED_BY_TIME[kind]
    db, choose = opened(tmp_path), random.Random(3)
    live = Following(db, text, lateness=lateness)
    for passed, event in some_events(choose):
        live.clock.advance(f"{passed} s")
        append(db, "s", event)
    assert live.query.late_count == 0
    before = live.rows()
    for _ in range(40):
        live.clock.advance(f"{choose.choice([1, 3, 7])} s")
    assert len(before) < len(live.rows())
    assert live.rows() == over_history(db, text)


@pytest.mark.parametrize("kind", DECIDED_BY_TIME)
def test_events_that_come_faster_than_time_are_decided_as_well(kind: str, tmp_path: Path) -> None:
    """History that is loaded at once, far behind the clock."""
    text = DECIDED_BY_TIME[kind]
    db, choose = opened(tmp_path), random.Random(4)
    live = Following(db, text)
    live.clock.advance("1000 h")
    append(db, "s", *(event for _, event in some_events(choose)))
    live.clock.advance("4999 ms")
    assert live.rows() != over_history(db, text)
    live.clock.advance("1 h")
    assert live.rows() == over_history(db, text)


@pytest.mark.parametrize("kind", ["sessions", "absence at the end", "temporal pattern"])
def test_what_was_moved_can_be_moved_again_without_a_clock(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of a run, events and instants by stream, give the same rows in the same steps."""
    text, choose = DECIDED_BY_TIME[kind], random.Random(8)
    db = opened(tmp_path)
    live = Following(db, text, lateness="1 s")
    engine, steps, whole = live.query.engine, list[tuple[Any, ...]](), LiveEngine.take

    def noted(self: LiveEngine, state: LiveState, *given: Any) -> Any:  # noqa: ANN401
        after, reported = whole(self, state, *given)
        steps.append((given, reported.rows))
        return after, reported

    monkeypatch.setattr(LiveEngine, "take", noted)
    for passed, event in some_events(choose):
        live.clock.advance(f"{passed} s")
        append(db, "s", event)
    live.clock.advance("1 h")
    monkeypatch.undo()
    assert any(reached for (_, _, reached), _ in steps)
    state = engine.initial_state()
    for (arrived, _, reached), rows in steps:
        state, reported = engine.take(engine.load(engine.dump(state)), arrived, None, reached)
        assert reported.rows.equals(rows)
    assert live.rows() == over_history(db, text)


def test_a_window_closes_to_the_moment(tmp_path: Path) -> None:
    db = opened(tmp_path)
    live = Following(db, DECIDED_BY_TIME["tumbling"], lateness="2 s")
    append(db, "s", (3, "a", 1))
    live.clock.advance("8999999 us")  # the newest event, and the silence, less the lateness
    assert live.query.watermark_us == 10 * SECOND - 1
    assert live.rows() == []
    live.clock.advance("1 us")
    assert live.query.watermark_us == 3 * SECOND - 2 * SECOND + 8_999_999
    live.clock.advance("500 ms")  # all is silent: it is looked at ten times in each `idle`
    assert len(live.rows()) == 1


def test_events_after_a_silence_may_be_late(tmp_path: Path) -> None:
    db = opened(tmp_path)
    live = Following(db, DECIDED_BY_TIME["tumbling"], lateness="1 s")
    append(db, "s", (0, "a", 1))
    live.clock.advance("8 s")
    assert live.query.watermark_us == 7 * SECOND
    append(db, "s", (6.9, "a", 1), (7, "a", 1))
    assert live.query.late_counts == {"s": 1}
    # It was heard of, so it is waited for again.
    live.clock.advance("4 s")
    assert live.query.watermark_us == 7 * SECOND
    live.clock.advance("1 s")
    assert live.query.watermark_us == 12 * SECOND
    assert [row["n"] for row in live.reported] == [2]


def test_a_silent_stream_does_not_hold_another_back(tmp_path: Path) -> None:
    db = opened(tmp_path, "a", "b")
    text = """SELECT a.k, a.v, b.v AS w
        FROM a [RANGE 4 SECONDS] JOIN b [RANGE 4 SECONDS] ON a.k = b.k"""
    live = Following(db, text)
    append(db, "b", (0, "p", 7))
    append(db, "a", (1, "p", 1), (2, "p", 2))
    assert live.query.watermark_us == 0
    live.clock.advance("4 s")
    append(db, "a", (3, "p", 3), (3600, "p", 4))  # b is still waited for
    assert live.query.watermark_us == 0
    live.clock.advance("1 s")
    assert live.query.watermark_us == 3600 * SECOND
    assert sorted(row["v"] for row in live.reported) == [1, 2, 3]
    append(db, "a", (7200, "p", 5))  # at once, not with the next look
    assert live.query.watermark_us == 7200 * SECOND
    append(db, "b", (3601, "p", 8))
    assert live.query.late_counts == {"a": 0, "b": 1}


def test_a_stream_that_never_had_an_event_is_not_waited_for_without_end(tmp_path: Path) -> None:
    db = opened(tmp_path, "a", "b")
    live = Following(db, "SELECT v FROM a [RANGE 4 s] EXCEPT SELECT v FROM b [RANGE 4 s]")
    live.clock.advance("1 h")
    append(db, "a", (9, "p", 1), (10, "p", 2))
    assert live.query.watermark_us == 10 * SECOND
    assert [row["v"] for row in live.reported] == [1]
    live.clock.advance("5 s")
    assert live.query.watermark_us == 15 * SECOND
    assert len(live.query.current()) == 0


STANDING = {
    "a join": "SELECT a.k, b.v FROM a [RANGE 4 SECONDS] JOIN b [RANGE 6 SECONDS] ON a.k = b.k",
    "groups": "SELECT k, COUNT(*) AS n FROM a [RANGE 4 SECONDS] GROUP BY k",
    "absence": "SELECT k FROM a [RANGE 9 SECONDS] EXCEPT SELECT k FROM b [RANGE 4 SECONDS]",
    "sessions": "SELECT k, COUNT(*) AS n FROM a [SESSION 3 SECONDS] GROUP BY k",
    "slides": "SELECT k, v FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS]",
    "first rows": "SELECT k, v FROM a [RANGE 4 SECONDS] ORDER BY v DESC LIMIT 1",
    "what goes": "DSTREAM (SELECT k, v FROM a [RANGE 4 SECONDS])",
}


@pytest.mark.parametrize("kind", STANDING)
def test_the_answer_of_a_standing_query_goes_on_with_the_clock(kind: str, tmp_path: Path) -> None:
    """Rows expire without events, as if every stream had been advanced by hand."""
    text = STANDING[kind]
    db = opened(tmp_path, "a", "b")
    live = Following(db, text)
    by_hand: Rows = []
    twin = db.subscribe(text, lambda result: by_hand.extend(result.rows()))
    append(db, "b", (0, "p", 1), (2, "q", 2))
    append(db, "a", (1, "p", 3), (2.5, "q", 4), (3, "p", 5))
    live.clock.advance("4 s")
    for passed in range(5, 30):
        live.clock.advance("1 s")
        twin.advance((3 + passed) * SECOND)
        twin.wait()
        assert live.query.watermark_us == twin.watermark_us
        assert live.rows() == sorted(map(repr, by_hand))
        if kind != "what goes":
            assert live.query.current().rows() == twin.current().rows()
    assert live.rows()
    if kind != "what goes":
        assert len(live.query.current()) == 0


def test_relations_are_not_waited_for(tmp_path: Path) -> None:
    db = opened(tmp_path)
    names = db.create_relation("names", {"k": "string", "name": "string"}, key=["k"])
    names.upsert([{"ts": 0, "k": "a", "name": "Ada"}])
    text = "SELECT s.v, n.name FROM s [RANGE 4 SECONDS] JOIN names n ON s.k = n.k"
    live = Following(db, text)
    live.clock.advance("1 h")
    append(db, "s", (1, "a", 1))
    live.clock.advance("4 s")
    names.upsert([{"ts": 2 * SECOND, "k": "a", "name": "Bea"}])
    live.clock.advance("1 s")  # the relation was heard of, and the stream is silent all the same
    assert live.query.watermark_us == 6 * SECOND
    assert live.query.late_count == 0


def test_derived_streams_below_are_moved_with_their_reader(tmp_path: Path) -> None:
    db = opened(tmp_path, "s", "t")
    db.sql("""CREATE STREAM counts WITH (lateness = '2 seconds') AS
        SELECT k, window_end AS ts, COUNT(*) AS n FROM s
        GROUP BY k, TUMBLE(ts, INTERVAL '2' SECOND)""")
    text = """SELECT window_start, SUM(n) AS n FROM counts
        GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"""
    live = Following(db, text)
    by_hand: Rows = []
    db.subscribe(text, lambda result: by_hand.extend(result.rows()))
    for second in range(7):
        append(db, "s", (second, "a", 1))
    live.clock.advance("4 s")
    assert live.rows() == []
    live.clock.advance("1 s")
    assert live.rows() == []  # 6 s and the silence of 5 s, less the lateness of the stream below
    live.clock.advance("1 s")
    assert live.rows() == over_history(db, text)
    assert sorted(map(repr, by_hand)) == live.rows()  # it is moved for all its readers


def test_a_derived_stream_of_few_rows_does_not_hold_others_back(tmp_path: Path) -> None:
    db = opened(tmp_path, "s", "t")
    db.sql("CREATE STREAM high AS SELECT ts, k, v FROM s WHERE v > 90")
    live = Following(
        db, "SELECT t.v FROM t [RANGE 4 s] WHERE t.k NOT IN (SELECT k FROM high [RANGE 4 s])"
    )
    append(db, "t", (1, "a", 1))
    append(db, "s", (1.5, "a", 1))
    live.clock.advance("3 s")
    append(db, "t", (5, "b", 2))
    assert live.query.watermark_us == 1.5 * SECOND
    live.clock.advance("2 s")  # s is silent now, t is not
    assert live.query.watermark_us == 5 * SECOND
    live.clock.advance("3 s")  # and now both are
    assert live.query.watermark_us == 10 * SECOND
    assert [row["v"] for row in live.reported] == [1, 2]


def test_a_query_that_begins_with_history_listens_from_its_beginning_on(tmp_path: Path) -> None:
    db = opened(tmp_path)
    append(db, "s", (1, "a", 1), (12, "a", 1))
    live = Following(db, DECIDED_BY_TIME["tumbling"], from_history=True)
    live.clock.advance("4 s")
    assert live.query.watermark_us == 12 * SECOND
    live.clock.advance("4 s")
    assert live.query.watermark_us == 20 * SECOND
    assert [(row["n"]) for row in live.reported] == [1]


def test_a_query_that_is_over_is_not_moved(tmp_path: Path) -> None:
    db = opened(tmp_path)
    live = Following(db, DECIDED_BY_TIME["tumbling"])
    append(db, "s", (3, "a", 1))
    live.query.finish()
    reported = live.rows()
    live.clock.advance("1 h")
    assert live.rows() == reported
    assert live.clock.waiting.next_us is None


def test_a_clock_does_not_keep_a_database_alive(tmp_path: Path) -> None:
    db = opened(tmp_path)
    clock = ev.ManualClock()
    gone = weakref.ref(db.subscribe(DECIDED_BY_TIME["tumbling"], idle="5 s", clock=clock))
    append(db, "s", (3, "a", 1))
    assert gone() is not None
    del db
    until = monotonic() + LONG_S
    while gone() is not None and monotonic() < until:
        gc.collect()
        sleep(0.01)  # the follower may be looking at it
    assert gone() is None
    clock.advance("1 h")
    assert clock.waiting.next_us is None


def test_by_the_clock_of_the_system_all_goes_by_itself(tmp_path: Path) -> None:
    db, came, rows = opened(tmp_path), Event(), list[dict[str, Any]]()

    def on_result(result: ev.Result) -> None:
        rows.extend(result.rows())
        came.set()

    query = db.subscribe(
        "SELECT window_start, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '1' MILLISECOND)",
        on_result,
        idle="20 ms",
    )
    append(db, "s", (3, "a", 1))
    assert came.wait(LONG_S)
    assert [row["n"] for row in rows] == [1]
    query.finish()


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    db = opened(tmp_path)
    with pytest.raises(PlanError, match="idle has to be longer than 0 s"):
        db.subscribe("SELECT * FROM s", idle="0 s")
    with pytest.raises(PlanError, match="idle says when they are"):
        db.subscribe("SELECT * FROM s", clock=ev.ManualClock())
