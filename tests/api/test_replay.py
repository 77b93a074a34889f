"""Replay: stored events, through queries or merged, at full speed or paced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.errors import (
    BindError,
    EvaluationError,
    PlanError,
    SchemaError,
    StoreError,
    UnsupportedError,
)
from eventide.store import source
from tests.engines import engines
from tests.engines.patterns.match_queries import PATTERNS
from tests.engines.scenarios import QUERIES, SCENARIOS, SECOND, as_bag
from tests.naive.merging import merged
from tests.naive.windows import Event

TEXTS = {name: query.text for name, query in QUERIES.items()} | {
    name: PATTERNS[name].text for name in ("row_local", "all_rows", "timeouts")
}
COUNTS = "SELECT window_start, COUNT(*) AS n FROM {} GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"


class FakeClock:
    """A clock that stands still unless somebody sleeps, or works for `busy_s` between looks."""

    def __init__(self, busy_s: float = 0.0) -> None:
        self.now_s = 1000.0
        self.busy_s = busy_s
        self.slept: list[float] = []

    def now(self) -> float:
        self.now_s += self.busy_s
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def rows_of(replay: ev.Replay) -> list[Event]:
    return [row for piece in replay for row in engines.plain(piece.to_arrow())]


def at(*seconds: float) -> list[dict[str, Any]]:
    return [{"ts": int(s * SECOND), "n": place} for place, s in enumerate(seconds)]


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    """Two streams:  cars 0 1 2 … 39,  trucks 5 5 20 (one of them late)."""
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"n": "int64"}).append(at(*range(40)))
    trucks = db.create_stream("trucks", {"n": "int64", "load": "string"})
    trucks.append([{"ts": 20 * SECOND, "n": 0, "load": "sand"}])
    trucks.append(at(5, 5))
    return db


# --- through queries -------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(None, None), (0, 90 * SECOND), (17, 18)], ids=str)
@pytest.mark.parametrize("small", [False, True])
def test_queries_answer_as_over_history(
    bounds: tuple[int | None, int | None],
    small: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if small:  # so that there are many steps
        monkeypatch.setattr("eventide.store.reading.scan.SCAN_ROWS", 16)
    scenario = SCENARIOS["mixed"]()
    assert scenario.late(), "late events are stored, and replayed in their place"
    db = engines.stored(scenario, tmp_path)
    start, end = bounds
    kept = [
        event
        for event in scenario.events()
        if (start is None or event["ts"] >= start) and (end is None or event["ts"] < end)
    ]
    found: dict[str, list[Event]] = {name: [] for name in TEXTS}
    replay = db.replay(TEXTS, start=start, end=end)
    clock_us = -(2**63)
    for piece in replay:
        assert isinstance(piece, ev.Replayed)
        assert clock_us <= piece.clock_us
        clock_us = piece.clock_us
        found[piece.query] += engines.plain(piece.to_arrow())
    for name, text in TEXTS.items():
        assert as_bag(found[name]) == as_bag(engines.run_table(text, kept)), name
    assert replay.progress.events == replay.progress.total == len(kept)
    assert all(query.late_count == 0 for _, query in replay.receiver.queries)  # type: ignore[attr-defined]


def test_pieces_of_several_streams_come_in_order_of_one_clock(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trucks stop at 20 s; their windows close by the time that the cars go on to tell."""
    monkeypatch.setattr("eventide.store.reading.scan.SCAN_ROWS", 1)
    texts = {name: COUNTS.format(name) for name in ("cars", "trucks")}
    told = [
        (piece.clock_us // SECOND, piece.query, [row["n"] for row in piece])
        for piece in paced(db.replay(texts, speed=250), tick_s=10.0)
    ]
    assert told == [
        (10, "cars", [10]),
        (10, "trucks", [2]),
        (20, "cars", [10]),
        (30, "cars", [10]),
        (30, "trucks", [1]),
        (40, "cars", [10]),
    ]


def paced(replay: ev.Replay, tick_s: float) -> ev.Replay:
    """A replay on a clock that never waits; a tick has `tick_s` of event time."""
    assert replay.speed == tick_s / 0.04
    replay.clock = FakeClock()
    return replay


def test_lateness_delays_answers_and_changes_none(db: ev.Database) -> None:
    text = COUNTS.format("cars")
    replay = paced(db.replay(text, speed="25x", lateness="3 s"), tick_s=1.0)
    told = [(piece.clock_us // SECOND, [row["n"] for row in piece]) for piece in replay]
    assert told == [(13, [10]), (23, [10]), (33, [10]), (39, [10])]


def test_conditions_on_time_limit_what_is_read(db: ev.Database) -> None:
    text = "SELECT n FROM cars WHERE ts >= TIMESTAMP '1970-01-01 00:00:30'"
    replay = db.replay(text, end=35 * SECOND)
    assert [row["n"] for row in rows_of(replay)] == [30, 31, 32, 33, 34]
    assert replay.progress.total == 5


@pytest.mark.parametrize("bounds", [(100 * SECOND, None), (5, 5), (1, 2)])
def test_a_range_without_events_is_over_at_once(
    db: ev.Database, bounds: tuple[int, int | None]
) -> None:
    start, end = bounds
    for speed in (None, "10x"):
        replay = db.replay(COUNTS.format("cars"), start=start, end=end, speed=speed)
        replay.clock = FakeClock()
        assert list(replay) == []
        assert replay.run() == ev.ReplayProgress(0, 0)
        assert str(replay.progress) == "not begun: 0 of 0 events, 0 rows"


def test_appends_meanwhile_do_not_show(db: ev.Database) -> None:
    replay = db.replay("SELECT n FROM cars")
    db.stream("cars").append(at(3, 50))
    assert len(rows_of(replay)) == 40


def test_one_query_several_or_a_match_object(db: ev.Database) -> None:
    one, other = "SELECT n FROM cars", "SELECT load FROM trucks"
    assert {piece.query for piece in db.replay(one)} == {one}
    assert {piece.query for piece in db.replay([one, other])} == {one, other}
    a, b = ev.variables("A B")
    pairs = ev.match("cars").pattern(a + b).define(B="n = 1").measures(n="B.n")
    assert [row["n"] for row in rows_of(db.replay(pairs))] == [1]


def test_a_query_that_fails_ends_the_replay_and_points_at_the_place(db: ev.Database) -> None:
    text = "SELECT n + 9223372036854775807 AS x FROM cars"
    with pytest.raises(EvaluationError, match="overflows") as caught:
        db.replay([COUNTS.format("trucks"), text]).run()
    assert text in str(caught.value)


# --- the events themselves -------------------------------------------------------------------


seconds = st.lists(st.integers(0, 6), max_size=12)


@settings(max_examples=25, deadline=None)
@given(st.lists(seconds, min_size=1, max_size=3), st.permutations(range(3)), st.integers(1, 4))
def test_merged_events_agree_with_the_twin(
    tmp_path_factory: pytest.TempPathFactory,
    streams: list[list[int]],
    order: list[int],
    scanned: int,
) -> None:
    db = ev.open(tmp_path_factory.mktemp("db") / "db")
    names = [f"s{place}" for place in order if place < len(streams)]
    stored: dict[str, list[Event]] = {}
    for name in names:
        times = streams[int(name[1:])]
        db.create_stream(name, {"n": "int64", name: "bool"}, durability="none").append(
            [{"ts": ts, "n": ts, name: True} for ts in times]
        )
        stored[name] = [
            {"ts": ts, "_seq": seq, "n": ts, name: True} for seq, ts in enumerate(times) if ts >= 1
        ]
    nothing = dict.fromkeys(names)
    expected = [{"stream": name, **nothing, **row} for name, row in merged(stored)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventide.store.reading.scan.SCAN_ROWS", scanned)
        assert rows_of(db.replay_events(*names, start=1)) == expected
        quick = db.replay_events(*names, start=1, speed=1)
        quick.clock = FakeClock(busy_s=2e-6)
        assert rows_of(quick) == expected


def test_ties_between_streams_go_by_the_order_in_which_they_are_named(db: ev.Database) -> None:
    #  cars 5 (seq 5)      trucks 5 (seq 1), 5 (seq 2)
    found = rows_of(db.replay_events("trucks", "cars", start=5 * SECOND, end=6 * SECOND))
    assert [(row["stream"], row["_seq"]) for row in found] == [
        ("trucks", 1),
        ("trucks", 2),
        ("cars", 5),
    ]
    again = rows_of(db.replay_events("cars", "trucks", start=5 * SECOND, end=6 * SECOND))
    assert [row["stream"] for row in again] == ["cars", "trucks", "trucks"]


def test_columns_can_be_chosen(db: ev.Database) -> None:
    piece = next(db.replay_events("cars", "trucks", columns=["load"]))
    assert piece.columns == ["ts", "stream", "_seq", "load"]
    with pytest.raises(SchemaError, match="none of the streams has a column 'lod'"):
        db.replay_events("cars", columns=["lod"])


def test_attributes_of_one_name_have_one_type(db: ev.Database) -> None:
    db.create_stream("bikes", {"n": "string", "bell": "bool"})
    with pytest.raises(SchemaError, match="'n' is int64 in cars, and string in bikes") as caught:
        db.replay_events("cars", "bikes")
    assert caught.value.hint == "leave it out: columns=['bell']"
    db.create_stream("carts", {"stream": "string"})
    with pytest.raises(SchemaError, match="carts has an attribute 'stream'"):
        db.replay_events("carts")


# --- paced -----------------------------------------------------------------------------------


def test_a_paced_replay_hands_over_what_is_due_at_each_tick(tmp_path: Path) -> None:
    #  10x: a tick of 40 ms has 0.4 s        0   0.1   0.4   1.3         9
    #  tick                                  0    1     1     4         23
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"n": "int64"}).append(at(0, 0.1, 0.4, 1.3, 9))
    replay = db.replay_events("cars", speed="10x")
    clock = FakeClock()
    replay.clock = clock
    told = [(round((clock.now_s - 1000) / 0.04), [row["n"] for row in piece]) for piece in replay]
    assert told == [(0, [0]), (1, [1, 2]), (4, [3]), (23, [4])]
    assert clock.slept == pytest.approx([0.04] * 23)


def test_a_replay_that_falls_behind_catches_up(tmp_path: Path) -> None:
    """A clock that runs on by itself: no sleeping, and every tick brings all that became due."""
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"n": "int64"}).append(at(*range(10)))
    replay = db.replay_events("cars", speed=1)
    clock = FakeClock(busy_s=3.0)
    replay.clock = clock
    assert [len(piece) for piece in replay] == [1, 3, 3, 3]
    assert clock.slept == []


def test_stop_ends_a_replay_and_leaves_open_what_is_open(db: ev.Database) -> None:
    told: list[int] = []
    replay = db.replay(COUNTS.format("cars"), speed="250x")
    replay.clock = FakeClock()

    def take(result: ev.Result) -> None:
        told.extend(row["n"] for row in result)
        if len(told) == 2:
            replay.stop()

    replay.on_result = take
    progress = replay.run()
    assert told == [10, 10]
    assert (progress.events, progress.total, progress.rows) == (21, 40, 2)
    assert progress.clock == "1970-01-01 00:00:20.000001"
    assert "21 of 40 events" in repr(replay)
    assert list(replay) == []


def test_one_can_look_at_some_and_go_on(db: ev.Database) -> None:
    replay = paced(db.replay(COUNTS.format("cars"), speed=250), tick_s=10.0)
    assert [row["n"] for row in next(replay)] == [10]
    assert replay.progress.events < 40
    assert replay.run().events == 40


def test_every_step_is_reported(db: ev.Database) -> None:
    steps: list[int] = []
    replay = paced(db.replay(COUNTS.format("cars"), speed=250), tick_s=10.0)
    replay.on_step = lambda progress: steps.append(progress.events)
    replay.run()
    assert steps == [1, 11, 21, 31, 40]


# --- what cannot be --------------------------------------------------------------------------


@pytest.mark.parametrize("speed", ["fast", "", "0x", 0, -1, float("nan"), float("inf"), True])
def test_a_speed_is_a_positive_number(db: ev.Database, speed: Any) -> None:  # noqa: ANN401
    with pytest.raises(EvaluationError, match="is not a speed") as caught:
        db.replay(COUNTS.format("cars"), speed=speed)
    assert '"10x"' in str(caught.value.hint)
    with pytest.raises(EvaluationError, match="is not a speed"):
        db.replay_events("cars", speed=speed)


def test_what_is_asked_wrongly_is_said_at_once(db: ev.Database) -> None:
    text = COUNTS.format("cars")
    with pytest.raises(EvaluationError, match="the start, 2, comes after the end, 1") as caught:
        db.replay(text, start=2, end=1)
    assert "exchange" in str(caught.value.hint)
    with pytest.raises(EvaluationError, match="is not a time"):
        db.replay_events("cars", start="yesterday")
    with pytest.raises(PlanError, match="is not a length of time"):
        db.replay(text, lateness="a while")
    with pytest.raises(BindError, match="no stream 'boats'"):
        db.replay(COUNTS.format("boats"))
    with pytest.raises(StoreError, match="boats"):
        db.replay_events("cars", "boats")
    with pytest.raises(EvaluationError, match="no query"):
        db.replay([])
    with pytest.raises(EvaluationError, match="no stream"):
        db.replay_events()


def test_a_query_that_cannot_run_live_is_refused(db: ev.Database) -> None:
    with pytest.raises(UnsupportedError, match="ordinary SQL") as caught:
        db.replay("SELECT n FROM cars ORDER BY n DESC LIMIT 1")
    assert "over history" in str(caught.value.hint)


def test_events_that_were_thinned_away_are_refused(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", {"n": "int64"})
    cars.append(at(1, 2))
    cars.split()
    cars.append(at(30))
    cars.thin(10 * SECOND)
    with pytest.raises(StoreError, match="thinned"):
        db.replay("SELECT n FROM cars")
    assert len(rows_of(db.replay("SELECT n FROM cars", start=20 * SECOND))) == 1


def test_batches_are_large_at_full_speed(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    rows = 3 * source.SCAN_ROWS // 2
    table = pa.table({"ts": pa.array(range(rows), pa.timestamp("us")), "n": pa.array(range(rows))})
    db.create_stream("cars", {"n": "int64"}, durability="none").append(table)
    replay = db.replay_events("cars")
    sizes = [len(piece) for piece in replay]
    assert sum(sizes) == rows
    assert len(sizes) <= 2
