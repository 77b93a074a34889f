"""Windows by count from the index: the rows of a replay, and of the definition."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.history.choice import ways
from eventide.engines.history.windows import count_index
from eventide.engines.history.windows.count_index import CountIndex
from eventide.engines.history.windows.index import replay_seconds, window_access
from eventide.errors import EvaluationError, StoreError
from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import Schema
from eventide.store import Snapshot
from eventide.store.options import Order, StreamOptions
from eventide.store.reading import counted
from eventide.store.reading.leaves import leaf_entries
from tests.engines.history.windows.window_queries import (
    CALLS,
    COUNT,
    ENCODINGS,
    JITTER,
    NAMED,
    NOISE,
    TIED,
    WEIGHTS,
    DrawnHistory,
    arrived,
    by_count,
    check_any_history,
    from_index,
    from_replay,
    histories,
    orders,
    plain,
    planned,
    rows_of_cars,
    sensor,
    spelled,
    stored,
    time_ranges,
    within,
)
from tests.naive import windows as naive
from tests.store.events import new_stream, table, tiny_files

lengths = st.integers(1, 40)
SHAPES = [
    (30_000, 30_000),  # each after the other
    (40_000, 20_000),  # the slide divides the size
    (50_000, 30_000),  # it does not
    (20_000, 50_000),  # with gaps
    (1000, 7),
    (7, 1000),
    (5, 1),
    (1, 1),
    (COUNT, 3),  # one window
    (COUNT + 1, 1),  # none
]


def access_to(snapshot: Snapshot, text: str) -> CountIndex:
    access = window_access(planned(snapshot, text), snapshot, WEIGHTS)
    assert isinstance(access, CountIndex), access
    return access


def check(snapshot: Snapshot, text: str) -> pa.Table:
    """Hold the index against a replay, to the bit, and return its rows."""
    plan = planned(snapshot, text)
    found = from_index(snapshot, plan)
    assert found.equals(from_replay(snapshot, plan))
    return found


@settings(deadline=None, max_examples=25)
@given(histories, st.tuples(lengths, lengths), time_ranges)
def test_any_history_has_the_windows_of_its_replay(
    history: DrawnHistory, window: tuple[int, int], times: TimeRange
) -> None:
    check_any_history(history, lambda calls: by_count(calls, *window, within(times)))


@settings(deadline=None, max_examples=60)
@given(
    rows_of_cars,
    st.tuples(lengths, lengths),
    st.integers(1, 4),
    orders,
    st.just(ALL_TIME) | st.builds(lambda a, b: TimeRange(a, a + b), lengths, lengths),
)
def test_windows_are_those_of_their_definition(
    rows: list[dict[str, Any]],
    window: tuple[int, int],
    appends: int,
    order: Order,
    times: TimeRange,
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        snapshot = stored(Path(folder), rows, appends, order)
        text = by_count(CALLS, *window, within(times))
        found = from_index(snapshot, planned(snapshot, text))
        assert found.equals(from_replay(snapshot, planned(snapshot, text)))
    events = [
        each for each in arrived(rows, appends) if times.start_us <= each["ts"] < times.end_us
    ]
    assert plain(found) == naive.count_windows(events, [], *window, NAMED)


@pytest.mark.parametrize(("values", "ts"), ENCODINGS)
def test_leaves_of_any_encoding_are_cut_rightly(
    tmp_path: Path, values: np.ndarray[Any, Any], ts: np.ndarray[Any, Any] | None
) -> None:
    snapshot = sensor(tmp_path, values, ts)
    for size, slide in SHAPES:
        check(snapshot, by_count(["count(*)", "avg(speed)", "max(speed)"], size, slide))
    plan = planned(snapshot, by_count(["sum(lane)", "sum(speed)"], 5000, 300))
    assert spelled(from_index(snapshot, plan)) == spelled(from_replay(snapshot, plan))


def test_windows_begin_with_the_first_event_of_the_time_asked_for(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE, JITTER)
    last = int(JITTER[-1])
    for start, end in [(1, last), (333_333, 666_666), (0, last + 1), (500_000, 500_001), (9, 9)]:
        for size, slide in [(30_000, 30_000), (700, 90), (90, 700), (1, 1)]:
            check(snapshot, by_count(CALLS, size, slide, within(TimeRange(start, end))))


def test_events_at_the_same_time_are_counted_one_by_one(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE, TIED)
    instant = int(TIED[50_000])
    found = check(
        snapshot, by_count(["sum(speed)"], 100, 100, within(TimeRange(instant, instant + 1)))
    )
    assert found.num_rows == np.count_nonzero(instant == TIED) // 100
    assert found.column("window_start").to_pylist() == found.column("window_end").to_pylist()


def test_late_events_move_what_comes_after_them(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(table([{"ts": 10 * ts, "lane": ts} for ts in range(60)]))
        stream.flush(seal=True)
        stream.append(table([{"ts": 10 * ts + 5, "lane": 100 + ts} for ts in (7, 8, 30)]))
        queued = stream.snapshot()
        stream.flush(seal=True)
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(400, 800, 9)]))
        for snapshot in (queued, stream.snapshot()):
            for size, slide in [(9, 9), (20, 3), (3, 20), (1, 1), (100, 1), (20, 20)]:
                check(snapshot, by_count(["sum(lane)", "count(*)", "min(lane)"], size, slide))
        # Leaves that overlap are not read where they lie between two cuts.
        access = access_to(stream.snapshot(), by_count(["sum(lane)"], 100, 100))
        assert access.counted.whole[np.diff(access.counted.units.bounds) > 1].any()


def test_rows_that_are_only_in_the_log_are_counted_too(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    rows: list[dict[str, Any]] = [
        {"ts": ts, "speed": ts / 7, "lane": ts % 5} for ts in range(70_000)
    ]
    stream.append(table(rows[:66_000]))
    stream.flush()
    stream.append(table(rows[66_000:]))
    for size, slide in [(10_000, 10_000), (30_000, 20_000), (70_000, 1), (500, 100)]:
        check(stream.snapshot(), by_count(CALLS, size, slide))


def test_segments_that_know_less_are_read(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(summaries=("lane",)))
        stream.append(table([{"ts": ts, "speed": float(ts), "lane": ts} for ts in range(50)]))
        stream.flush()
        stream.add_column("power", Schema.of({"power": "float64"}).type_of("power"))
        more = [{"ts": ts, "speed": 1.0, "lane": ts, "power": 2.0} for ts in range(40, 90)]
        schema = stream.snapshot().schema.arrow.remove(1)
        stream.append(pa.Table.from_pylist(more, schema=schema))
        for call in ("sum(speed)", "sum(lane)", "sum(power)", "count(power)", "count(*)"):
            for size, slide in [(30, 7), (100, 100), (3, 3)]:
                check(stream.snapshot(), by_count([call], size, slide))


def test_only_leaves_that_a_cut_goes_through_are_read(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    assert snapshot.segments[0].leaves == 7  # six of 16,384 events, and what is left
    for size, slide, blocks, slices in [
        (COUNT, COUNT, 0, 1),
        (16_384, 16_384, 0, 6),
        (32_768, 16_384, 0, 6),
        (50_000, 50_000, 1, 2),
        (30_000, 30_000, 3, 3),  # the last 10,000 events fill no window
        (40_000, 30_000, 6, 7),  # cut at 0 and 10,000, 30,000 and 40,000, and so on
        (100, 100, 7, 1000),
        (10, 40_000, 3, 3),  # leaves between windows are not read
        (COUNT + 1, 1, 0, 0),
    ]:
        access = access_to(snapshot, by_count(["sum(speed)"], size, slide))
        rows, cost = access.run()
        assert (cost.blocks, cost.intervals) == (blocks, slices)
        estimate = access.estimate
        assert (estimate.blocks, estimate.rows, estimate.intervals) == (
            cost.blocks,
            cost.rows,
            cost.intervals,
        )
        assert sum(part.num_rows for part in rows) == access.window_count


def test_many_windows_are_put_together_in_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_index, "LEAST_WINDOWS", 10)
    monkeypatch.setattr(count_index, "THREADS", 3)
    snapshot = sensor(tmp_path, NOISE)
    for size, slide in [(9000, 70), (700, 700), (300, 500), (COUNT - 5, 1)]:
        check(snapshot, by_count(["count(*)", "avg(speed)", "max(lane)"], size, slide))


def test_what_is_above_windows_stays(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    found = check(
        snapshot,
        """
        SELECT * FROM (
            SELECT window_end AS ts, AVG(speed) AS mean FROM cars
            GROUP BY TUMBLE(ROWS, 100) HAVING MAX(speed) < 45)
        MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(up.ts) AS since, LAST(up.mean) AS top
                         PATTERN (up{3,}) DEFINE up AS mean > 20.2)
        """,
    )
    assert found.num_rows > 5


def test_a_stream_with_few_events_or_none(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    for _ in range(2):
        for size, slide in [(1, 1), (2, 5), (5, 2)]:
            text = by_count(["count(*)", "sum(speed)"], size, slide)
            check(stream.snapshot(), text)
            assert access_to(stream.snapshot(), text).estimate.blocks == 0
            plan = planned(stream.snapshot(), text)
            assert replay_seconds(plan, stream.snapshot(), WEIGHTS) >= 0
        stream.append(table([{"ts": 3, "speed": 1.5}]))


def test_sums_of_integers_that_do_not_fit_are_the_same_error(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    stream.append(table([{"ts": ts, "lane": 2**62} for ts in range(5)]))
    plan = planned(stream.snapshot(), by_count(["sum(lane)"], 4, 2))
    for way in (from_index, from_replay):
        with pytest.raises(EvaluationError, match=r"sum\(lane\) does not fit"):
            way(stream.snapshot(), plan)


def test_a_damaged_leaf_is_an_error_that_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted, "THREADS", 1)
    snapshot = sensor(tmp_path, NOISE)
    segment = snapshot.segments[0]
    address = leaf_entries(snapshot.path, segment).column("address")[3].as_py()
    path = snapshot.path / segment.file
    content = path.read_bytes()
    for place in (address + 20, address + 48 + 30, address + 5000):
        damaged = bytearray(content)
        damaged[place] ^= 4
        with path.open("r+b") as file:
            file.write(damaged)
        with pytest.raises(StoreError, match=rf"is damaged: .*byte {address}"):
            access_to(snapshot, by_count(["sum(speed)"], 100, 100)).run()
    # Who does not read it does not notice.
    assert access_to(snapshot, by_count(["sum(speed)"], 16_384, 16_384)).run()[1].blocks == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ROWS, 5)",
            "the index has no aggregates by key",
        ),
        (
            "SELECT LAST(speed) AS f FROM cars GROUP BY TUMBLE(ROWS, 5)",
            "the index has no last: last(speed) needs each event",
        ),
        (
            "SELECT SUM(speed * 2) AS f FROM cars GROUP BY TUMBLE(ROWS, 5)",
            "sum(speed * 2.0) is of an expression, and the index has only attributes",
        ),
        (
            "SELECT COUNT(*) AS n FROM cars WHERE speed > 3 GROUP BY TUMBLE(ROWS, 5)",
            "speed > 3.0 has to be asked of each event",
        ),
    ],
)
def test_what_the_index_cannot_answer_is_said(tmp_path: Path, text: str, reason: str) -> None:
    snapshot = new_stream(tmp_path).snapshot()
    assert window_access(planned(snapshot, text), snapshot, WEIGHTS) == reason


def test_thinned_events_are_not_asked_for(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(split_us=10))
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(50)]))
        stream.flush()
        stream.thin(25, 2)
        snapshot = stream.snapshot()
        refused = window_access(planned(snapshot, by_count(["count(*)"], 5, 5)), snapshot, WEIGHTS)
        assert isinstance(refused, str)
        assert "thinned to aggregates" in refused
        for start in (20, 27):
            times = within(TimeRange(start, 100))
            found = check(snapshot, by_count(["count(*)", "sum(lane)"], 5, 3, times))
            assert found.column("a1")[0].as_py() == sum(range(start, start + 5))


def test_leaves_that_overlap_thinned_ones_cannot_be_numbered(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(order="arrival"))
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(0, 21)]))
        stream.flush(seal=True)
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(18, 60, 4)]))
        stream.flush(seal=True)
        stream.thin(22, 1)
        snapshot = stream.snapshot()
        assert {each.thinned for each in snapshot.segments} == {0, 1}
        text = by_count(["sum(lane)"], 2, 2, within(TimeRange(22, 100)))
        refused = window_access(planned(snapshot, text), snapshot, WEIGHTS)
        assert isinstance(refused, str)
        assert "thinned to aggregates" in refused
        check(snapshot, by_count(["sum(lane)"], 2, 2, within(TimeRange(30, 100))))


def test_the_way_says_what_it_does_and_is_chosen_for_long_windows(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    for size, slide, said in [
        (40_000, 20_000, "windows of 40,000 events every 20,000"),
        (50_000, 50_000, "windows of 50,000 events"),
    ]:
        found = ways(planned(snapshot, by_count(["avg(speed)"], size, slide)), snapshot, WEIGHTS)
        assert [each.name for each in found.accesses] == ["index", "replay"]
        assert found.best.describe() == (
            f"{said} from the time index, reading only leaves that their ends cut"
        )
