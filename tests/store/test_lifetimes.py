"""After any operations, a stream has the events that have not expired, and answers from them."""

from __future__ import annotations

import pickle
import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import SchemaError, StoreError
from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import TIMESTAMP, Schema
from eventide.store import Snapshot, Store, StoredStream
from eventide.store.options import StreamOptions
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.upkeep.verify import verify_stream
from tests.exploring import EXPLORING
from tests.naive.lifetimes import NaiveLifetimes
from tests.naive.store import NaiveStream, Row
from tests.store.events import new_stream, reopened, tiny_files, values
from tests.store.writing.faults import FailingDisk, using
from tests.store.writing.test_crashes import Crash

SCHEMA = Schema.of({"until": "timestamp", "lane": "int64"})
NAMES = ["ts", "_seq", "until", "lane"]
CALLS = [AggregateCall("count"), AggregateCall("sum", "lane"), AggregateCall("max", "lane")]
CALLS += [AggregateCall("count", "until")]
rows = st.builds(
    lambda ts, lasts, lane: {
        "ts": ts,
        "until": None if lasts is None else ts + lasts,
        "lane": lane,
    },
    st.integers(-20, 60),
    st.none() | st.integers(-3, 40),
    st.none() | st.integers(0, 9),
)
batches = st.lists(rows, max_size=12)
steps = st.one_of(
    st.tuples(st.just("append"), batches),
    st.tuples(st.just("commit"), batches),
    st.tuples(st.sampled_from(["flush", "seal", "compact", "retain", "reopen"]), st.none()),
)
layouts = st.builds(
    lambda order, split_us: StreamOptions(order=order, split_us=split_us, keep_until="until"),
    st.sampled_from(["time", "arrival"]),
    st.none() | st.just(15),
)
time_ranges = st.just(ALL_TIME) | st.builds(
    lambda start, length: TimeRange(start, start + length),
    st.integers(-25, 60),
    st.integers(0, 40),
)


def table(events: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(events, schema=SCHEMA.arrow.remove(1))


def leases(folder: Path, options: StreamOptions | None = None) -> StoredStream:
    return new_stream(folder, "leases", options or StreamOptions(keep_until="until"), SCHEMA)


def taken(
    stream: StoredStream, naive: NaiveLifetimes, step: tuple[str, list[Row] | None]
) -> StoredStream:
    match step:
        case ("append", list(events)):
            stream.append(table(events))
            naive.append(events)
        case ("commit", list(events)):
            ordered = sorted(events, key=lambda row: int(str(row["ts"])))
            stream.commit([stream.stage(batches_of(ordered))])
            naive.append(ordered)
        case ("flush", _):
            stream.flush()
        case ("seal", _):
            stream.flush(seal=True)
        case ("compact", _):
            stream.compact()
        case ("retain", _):
            stream.retain()
        case ("reopen", _):
            return reopened(stream)
    return stream


def batches_of(events: list[Row]) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = table(events).to_batches()
    return found


def scanned(snapshot: Snapshot, time_range: TimeRange = ALL_TIME) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for batch in snapshot.scan(NAMES, time_range):
        found += zip(*(values(column) for column in batch.columns), strict=True)
    return found


def check(snapshot: Snapshot, naive: NaiveStream, time_range: TimeRange) -> None:
    """A snapshot has the rows of a list, whichever way one asks."""
    there = naive.scan(NAMES)
    assert snapshot.row_count == len(there)
    assert scanned(snapshot) == there
    inside = naive.scan(NAMES, time_range)
    assert scanned(snapshot, time_range) == inside
    for other in (snapshot.within(time_range), pickle.loads(pickle.dumps(snapshot))):
        assert scanned(other, time_range) == inside
    slices = [part.time_range for part in snapshot.slices(ALL_TIME, 3)]
    assert [row for each in slices for row in scanned(snapshot, each)] == there
    if there:
        times = [int(str(row[0])) for row in there]
        assert snapshot.time_range == TimeRange(min(times), max(times) + 1)
    lanes = [row for row in there if row[3] is not None and int(str(row[3])) >= 5]
    found = snapshot.scan(NAMES, where={"lane": (5, None)})
    assert [
        row for batch in found for row in zip(*map(values, batch.columns), strict=True)
    ] == lanes
    for cuts in ([time_range.start_us, time_range.end_us], [-30, -5, 0, 7, 8, 20, 33, 70, 110]):
        assert aggregate(snapshot, CALLS, cuts).to_pylist() == [
            folded(naive.scan(NAMES, TimeRange(start, end))) for start, end in pairwise(cuts)
        ]


def folded(events: list[tuple[object, ...]]) -> dict[str, object]:
    lanes = [int(str(row[3])) for row in events if row[3] is not None]
    return {
        "count(*)": len(events),
        "sum(lane)": sum(lanes) if lanes else None,
        "max(lane)": max(lanes, default=None),
        "count(until)": sum(row[2] is not None for row in events),
    }


@settings(max_examples=60, deadline=None)
@given(layouts, st.lists(steps, max_size=14), time_ranges)
def test_a_stream_has_what_has_not_expired(
    options: StreamOptions, taking: list[tuple[str, list[Row] | None]], time_range: TimeRange
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream, naive = leases(Path(folder), options), NaiveLifetimes()
        for step in taking:
            stream = taken(stream, naive, step)
            assert scanned(stream.snapshot()) == naive.living().scan(NAMES)
            snapshot = stream.snapshot()
            held = sum(segment.rows for segment in snapshot.segments)
            held += sum(part.num_rows for part in snapshot.memory)
            assert held == snapshot.row_count == len(naive.living().rows)
        check(stream.snapshot(), naive.living(), time_range)
        assert not list(verify_stream(stream))


@settings(max_examples=25, deadline=None)
@given(layouts, st.lists(batches, min_size=1, max_size=4), st.integers(-25, 100), time_ranges)
def test_events_expire_although_no_others_come(
    options: StreamOptions, taking: list[list[Row]], now: int, time_range: TimeRange
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream, naive = leases(Path(folder), options), NaiveLifetimes()
        for events in taking:
            stream.append(table(events))
            naive.append(events)
            stream.flush(seal=True)
        if naive.rows:
            later = max(now, naive.now())
            check(stream.snapshot(now), naive.living(later), time_range)
            check(stream.snapshot(), naive.living(), time_range)


def lease(ts: int, until: int | None, lane: int = 0) -> Row:
    return {"ts": ts, "until": until, "lane": lane}


def test_an_event_is_gone_at_the_very_time_it_names(tmp_path: Path) -> None:
    stream = leases(tmp_path)
    stream.append(table([lease(0, 10), lease(5, None)]))
    stream.append(table([lease(9, 9)]))
    assert [row[0] for row in scanned(stream.snapshot())] == [0, 5]
    assert [row[0] for row in scanned(stream.snapshot(10))] == [5]


def test_time_does_not_go_back_when_the_newest_event_is_freed(tmp_path: Path) -> None:
    stream = leases(tmp_path)
    stream.append(table([lease(0, 50), lease(1, None)]))
    stream.flush(seal=True)
    stream.append(table([lease(60, 60)]))
    stream.flush(seal=True)
    stream.compact()
    assert stream.retain() == 0
    assert [row[0] for row in scanned(reopened(stream).snapshot())] == [1]
    manifest = stream.current().manifest
    assert (manifest.segments.rows, manifest.clock_us) == (2, 60)


def test_files_whose_events_are_all_gone_are_dropped(tmp_path: Path) -> None:
    stream = leases(tmp_path, StreamOptions(keep_until="until", split_us=100))
    stream.append(table([lease(ts, ts + 20) for ts in range(0, 400, 10)]))
    stream.flush()  # which seals segments, and drops what it can
    assert (stream.snapshot().row_count, stream.stats().expired_events) == (2, 8)
    assert "expired" in stream.stats().decisions[-1].what
    stream.flush(seal=True)
    before = stream.everything()
    stream.append(table([lease(500, 510)]))
    assert stream.retain() == 10
    assert stream.everything().row_count == stream.snapshot().row_count == 1
    assert before.row_count == len(scanned(before)) == 10  # an older snapshot has its files
    assert not list(verify_stream(stream))


def test_an_event_from_the_future_frees_nothing(tmp_path: Path) -> None:
    stream = leases(tmp_path)
    stream.append(table([lease(0, 2**52), lease(1, 2**52)]))
    stream.flush(seal=True)
    stream.append(table([lease(2**53, None)]))
    stream.flush(seal=True)
    assert stream.snapshot().row_count == 1
    assert (stream.retain(), stream.everything().row_count) == (0, 3)


def test_files_with_mostly_dead_events_are_rewritten(tmp_path: Path) -> None:
    stream = leases(tmp_path)
    stream.append(table([lease(ts, ts + 20) for ts in range(100)]))
    stream.flush(seal=True)
    assert stream.compact() == 1
    assert stream.everything().row_count == stream.snapshot().row_count == 20
    assert stream.compact() == 0


@pytest.mark.parametrize("work", ["retain", "compact"])
def test_whichever_call_fails_the_same_events_are_there(tmp_path: Path, work: str) -> None:
    def prepared(name: str) -> StoredStream:
        options = StreamOptions(keep_until="until", split_us=50)
        stream = Store.open(tmp_path / "db").create_stream(name, SCHEMA, options)
        short = [5 + ts % 2 * 200 for ts in range(50)]
        lasting = [*short, *(5 if ts % 4 else 500 for ts in range(50, 120))]
        stream.append(table([lease(ts, ts + us) for ts, us in enumerate(lasting)]))
        stream.flush(seal=True)
        stream.append(table([lease(500, None)]))
        return stream

    with tiny_files():
        for step in range(1, 200, 1 if EXPLORING else 4):
            stream = prepared(f"leases{step}")
            before = scanned(stream.snapshot())
            disk = FailingDisk(step, Crash(), dead=True)
            with using(disk), suppress(Crash):
                getattr(stream, work)()
            stream = reopened(stream)
            assert scanned(stream.snapshot()) == before
            getattr(stream, work)()
            assert scanned(stream.snapshot()) == before
            assert not [each for each in verify_stream(stream) if each.severity != "info"]
            if disk.calls < step:
                assert step > 1, "nothing was injected"
                return
    pytest.fail("the work never finished")


def test_a_backup_has_the_same_events(tmp_path: Path) -> None:
    stream = leases(tmp_path)
    stream.append(table([lease(0, 50), lease(10, 20), lease(30, 90)]))
    stream.flush()
    copy = Store.open(tmp_path / "db").backup(tmp_path / "copy").stream("leases")
    assert scanned(copy.snapshot()) == scanned(stream.snapshot())
    copy.append(table([lease(60, 90)]))
    assert [row[0] for row in scanned(copy.snapshot())] == [30, 60]


def test_an_attribute_that_comes_later_lets_older_events_stay(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, "late", None, Schema.of({"lane": "int64"}))
    stream.append(pa.table({"ts": pa.array([0], pa.timestamp("us")), "lane": [1]}))
    stream.add_column("until", TIMESTAMP)
    stream.set_options(StreamOptions(keep_until="until"))
    schema = stream.schema.arrow.remove(1)
    events = [{"ts": 1, "lane": 2, "until": 5}, {"ts": 7, "lane": 3, "until": 9}]
    stream.append(pa.Table.from_pylist(events, schema=schema))
    assert [row[0] for row in scanned(stream.snapshot())] == [0, 7]


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no attribute of type timestamp"):
        leases(tmp_path, StreamOptions(keep_until="lane"))
    with pytest.raises(SchemaError, match="does not summarise"):
        leases(tmp_path, StreamOptions(keep_until="until", summaries=("lane",)))
    stream = leases(tmp_path)
    with pytest.raises(SchemaError, match="until when"):
        stream.drop_column("until")
    with pytest.raises(StoreError, match="expire one by one"):
        stream.thin(100)
    assert StreamOptions(keep_until="until").to_json()["keep_until"] == "until"
    assert "keep_until" not in StreamOptions().to_json()
