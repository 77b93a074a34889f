"""Rows of live queries that are pulled: by loops, in event loops, as Arrow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.database import Database
from eventide.api.live.pulled import PullQueue
from eventide.api.live.subscription import Subscription
from eventide.errors import EventideError, StateError

Found = TypeVar("Found")

FAST = "SELECT car, speed FROM cars WHERE speed > 70"
SMALL = "SELECT CAST(speed AS BIGINT) AS s FROM cars WHERE speed > 0"
"""It fails if a car is too fast."""
LONG_S = 60.0
"""A time-out that no test reaches, unless something is wrong."""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(tmp_path / "traffic.ev") as opened:
        opened.create_stream("cars", {"car": "string", "speed": "float64"})
        yield opened


def drive(db: Database, *speeds: float, start: int = 0) -> None:
    """Append one event for each speed, and one of a car that stands: then the first is certain."""
    for second, speed in enumerate(speeds, start):
        events = [
            {"ts": 1_000_000 * second, "car": "a", "speed": speed},
            {"ts": 1_000_000 * second + 1, "car": "b", "speed": 0.0},
        ]
        db.stream("cars").append(events)


def speeds_of(parts: list[list[dict[str, object]]]) -> list[object]:
    return [row["speed"] for part in parts for row in part]


def test_a_loop_gets_rows_and_ends_with_the_query(db: Database) -> None:
    query = db.live(FAST)
    drive(db, 80, 50, 90)
    query.finish()
    found = [(rows.first_row, rows.rows()) for rows in query]
    assert found == [(0, [{"car": "a", "speed": 80.0}]), (1, [{"car": "a", "speed": 90.0}])]
    assert query.next() is None
    assert query.status == "finished"


def test_a_loop_waits_until_rows_come(db: Database) -> None:
    query = db.live(FAST)
    found: list[list[dict[str, object]]] = []
    first = threading.Event()

    def loop() -> None:
        for rows in query:
            found.append(rows.rows())
            first.set()

    thread = threading.Thread(target=loop)
    thread.start()
    drive(db, 80)
    assert first.wait(LONG_S)
    drive(db, 81, start=1)
    query.cancel()
    thread.join(LONG_S)
    assert not thread.is_alive()
    assert speeds_of(found) == [80.0, 81.0]


def test_a_timeout_ends_the_wait_and_not_the_query(db: Database) -> None:
    with db.live(FAST) as query:
        assert query.next(timeout=0.01) is None
        assert not query.finished
        drive(db, 80)
        rows = query.next(timeout=LONG_S)
        assert rows is not None
        assert rows.rows() == [{"car": "a", "speed": 80.0}]
        assert query.next(timeout=0) is None
    assert query.status == "finished"


def test_a_failed_query_raises_why_after_its_rows(db: Database) -> None:
    query = db.live(SMALL)
    drive(db, 80, 1e30)
    assert next(query).rows() == [{"s": 80}]
    with pytest.raises(EventideError) as raised:
        next(query)
    assert raised.value is query.failure
    assert query.status == "failed"
    with pytest.raises(EventideError):
        query.to_arrow()


def test_a_query_that_fails_wakes_who_waits(db: Database) -> None:
    query = db.live(SMALL)
    raised: list[BaseException] = []

    def loop() -> None:
        try:
            query.next()
        except EventideError as error:
            raised.append(error)

    thread = threading.Thread(target=loop)
    thread.start()
    drive(db, 1e30)
    thread.join(LONG_S)
    assert raised == [query.failure]


def test_failed_queries_are_listed_until_cancelled(db: Database) -> None:
    failed, running = db.live(SMALL), db.live(FAST)
    drive(db, 1e30)
    assert db.queries() == (failed, running)
    failed.cancel()
    assert db.queries() == (running,)
    assert failed.status == "failed"


def test_a_full_queue_lets_the_query_wait_and_nothing_is_lost(db: Database) -> None:
    query = db.live(FAST, queue_rows=2)
    drive(db, *range(80, 100))
    assert query.held
    assert isinstance(query.queue, PullQueue)
    assert query.queue.waiting_rows == 2
    found: list[float] = []
    while len(found) < 20:
        rows = query.next(timeout=LONG_S)
        assert rows is not None
        found += [row["speed"] for row in rows]
    assert found == [float(speed) for speed in range(80, 100)]


def test_the_end_takes_all_that_is_stored_however_many_rows_wait(db: Database) -> None:
    query = db.live(FAST, queue_rows=2)
    taken: list[object] = []
    slow = threading.Event()

    def receive(rows: object) -> None:
        slow.wait(LONG_S)
        taken.append(rows)

    received = db.subscribe(FAST, receive, queue_rows=2)
    drive(db, *range(80, 100))
    assert query.held
    assert received.held
    query.finish()
    threading.Timer(0.05, slow.set).start()
    received.finish()
    assert [row["speed"] for row in query.waiting()] == [float(speed) for speed in range(80, 100)]
    assert sum(map(len, taken)) == 20  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, "fast"])
def test_no_event_is_late_because_rows_wait(db: Database, name: str | None) -> None:
    query = db.live(FAST, queue_rows=2, name=name)
    drive(db, *range(80, 100))
    assert query.held
    query.advance("2000-01-01")
    assert query.late_count == 0
    assert [row["speed"] for row in query.waiting()] == [float(speed) for speed in range(80, 100)]
    query.pause()
    with pytest.raises(StateError, match="paused"):
        query.advance("2001-01-01")


def test_waiting_for_a_query_whose_rows_wait_to_be_pulled(db: Database) -> None:
    query = db.live(FAST, queue_rows=2)
    drive(db, *range(80, 100))
    assert db.wait(LONG_S)
    assert query.metrics()["waiting_rows"] == 20


def test_threads_that_append_and_threads_that_pull(db: Database) -> None:
    query = db.live("SELECT speed FROM cars WHERE speed > 0", queue_rows=5)
    found: list[float] = []
    turn, clock = threading.Lock(), iter(range(10_000))

    def append() -> None:
        for _ in range(100):
            with turn:
                drive(db, 1.0, start=next(clock))

    def pull() -> None:
        for rows in query:
            found.extend(row["speed"] for row in rows)

    pulling = [threading.Thread(target=pull) for _ in range(3)]
    appending = [threading.Thread(target=append) for _ in range(3)]
    for thread in pulling + appending:
        thread.start()
    for thread in appending:
        thread.join(LONG_S)
    query.finish()
    for thread in pulling:
        thread.join(LONG_S)
        assert not thread.is_alive()
    assert len(found) == 300


def test_what_waits_is_taken_at_once(db: Database) -> None:
    query = db.live(FAST)
    drive(db, 80, 90)
    frame = query.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame["speed"].to_list() == [80.0, 90.0]
    assert query.to_arrow() == query.output_schema.empty_table()
    drive(db, 91, start=2)
    assert query.to_pandas()["speed"].tolist() == [91.0]
    drive(db, 92, start=3)
    assert query.waiting().first_row == 3


def test_results_are_arrow_batches(db: Database) -> None:
    query = db.live(FAST)
    drive(db, 80, 90)
    reader = query.results()
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema == query.output_schema
    assert reader.read_next_batch().to_pylist() == [{"car": "a", "speed": 80.0}]
    query.finish()
    assert reader.read_all().to_pylist() == [{"car": "a", "speed": 90.0}]


def test_results_raise_why_a_query_failed(db: Database) -> None:
    query = db.live(SMALL)
    drive(db, 1e30)
    with pytest.raises(EventideError):
        query.results().read_all()


def test_rows_of_a_receiver_cannot_be_pulled(db: Database) -> None:
    query = db.subscribe(FAST, lambda _: None)
    with pytest.raises(StateError, match="receiver"):
        query.next(timeout=0)


def test_a_query_without_a_receiver_keeps_rows_once_it_is_asked(db: Database) -> None:
    query = db.subscribe(FAST)
    drive(db, 80)
    assert query.next(timeout=0) is None
    drive(db, 90, start=1)
    rows = query.next(timeout=LONG_S)
    assert rows is not None
    assert (rows.first_row, rows.rows()) == (1, [{"car": "a", "speed": 90.0}])


def test_closing_the_database_ends_loops(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "traffic.ev")
    db.create_stream("cars", {"car": "string", "speed": "float64"})
    query = db.live(FAST)
    thread = threading.Thread(target=lambda: list(query))
    thread.start()
    db.close()
    thread.join(LONG_S)
    assert not thread.is_alive()


# --- asyncio ---------------------------------------------------------------------------------


async def in_thread(db: Database, *speeds: float, start: int = 0) -> None:
    await asyncio.to_thread(drive, db, *speeds, start=start)


def run_within(main: Coroutine[object, object, Found]) -> Found:
    async def limited() -> Found:
        return await asyncio.wait_for(main, LONG_S)

    return asyncio.run(limited())


def test_async_for_gets_rows_and_ends_with_the_query(db: Database) -> None:
    async def main() -> list[object]:
        found: list[object] = []
        async with db.live(FAST) as query:
            await in_thread(db, 80)
            async for rows in query:
                found += [row["speed"] for row in rows]
                if len(found) == 1:
                    await in_thread(db, 90, start=1)
                else:
                    await asyncio.to_thread(query.cancel)
        assert query.status == "finished"
        return found

    assert run_within(main()) == [80.0, 90.0]


def test_the_event_loop_goes_on_while_a_query_waits(db: Database) -> None:
    async def main() -> list[dict[str, Any]]:
        query = db.live(FAST)
        waiting = asyncio.ensure_future(anext(query))
        turns = 0
        while turns < 100:
            await asyncio.sleep(0)
            turns += 1
        assert not waiting.done()
        await in_thread(db, 80)
        return (await waiting).rows()

    assert run_within(main()) == [{"car": "a", "speed": 80.0}]


def test_the_event_loop_goes_on_while_rows_wait(db: Database) -> None:
    async def main() -> int:
        query, turns, done = db.live(FAST), 0, False

        async def count() -> None:
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0)

        await in_thread(db, *range(80, 100))
        counting = asyncio.ensure_future(count())
        for _ in range(20):
            await anext(query)
        done = True
        await counting
        return turns

    assert run_within(main()) >= 19


def test_a_cancelled_wait_leaves_nothing_behind_and_loses_nothing(db: Database) -> None:
    async def main() -> object:
        query = db.live(FAST)
        assert isinstance(query.queue, PullQueue)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(query), 0.01)
        assert query.queue.wakers == []
        await in_thread(db, 80)
        return (await anext(query)).rows()

    before = set(threading.enumerate())
    assert run_within(main()) == [{"car": "a", "speed": 80.0}]
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert left <= {"eventide live"}


def test_several_queries_and_several_loops_over_one(db: Database) -> None:
    async def collect(query: Subscription) -> list[float]:
        return [row["speed"] async for rows in query for row in rows]

    async def main() -> list[list[float]]:
        shared, other = db.live(FAST), db.live("SELECT speed FROM cars WHERE speed > 0")
        loops = [asyncio.ensure_future(collect(each)) for each in (shared, shared, shared, other)]
        await in_thread(db, *range(60, 100))
        await asyncio.to_thread(shared.finish)
        await asyncio.to_thread(other.finish)
        return await asyncio.gather(*loops)

    first, second, third, other = run_within(main())
    assert sorted(first + second + third) == [float(speed) for speed in range(71, 100)]
    assert other == [float(speed) for speed in range(60, 100)]


def test_async_for_raises_why_a_query_failed(db: Database) -> None:
    async def main() -> None:
        async for _ in db.live(SMALL):
            await in_thread(db, 1e30, start=2)

    drive(db, 1)
    with pytest.raises(EventideError):
        run_within(with_events(main(), db))


async def with_events(main: Coroutine[object, object, None], db: Database) -> None:
    task = asyncio.ensure_future(main)
    await asyncio.sleep(0)
    await in_thread(db, 2, start=1)
    await task


def test_rows_that_come_when_the_loop_is_closed_do_no_harm(db: Database) -> None:
    query = db.live(FAST)
    loop = asyncio.new_event_loop()
    waits = query.__anext__()
    task = loop.create_task(waits)
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    assert isinstance(query.queue, PullQueue)
    while not query.queue.wakers:
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    drive(db, 80)
    assert query.status == "running"
    assert query.to_arrow().num_rows == 1
    waits.close()
    assert query.queue.wakers == []


# --- durable -----------------------------------------------------------------------------------


def test_rows_of_a_durable_query_are_received_once_the_next_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "traffic.ev"
    with ev.open(path) as db:
        db.create_stream("cars", {"car": "string", "speed": "float64"})
        query = db.live(FAST, name="fast")
        drive(db, 80, 90, 100)
        assert [next(query).rows()[0]["speed"] for _ in range(2)] == [80.0, 90.0]
    with ev.open(path) as db:
        drive(db, 110, start=3)
        query = db.live(FAST, name="fast")
        rows = query.waiting()
        assert (rows.first_row, [row["speed"] for row in rows]) == (1, [90.0, 100.0, 110.0])
        assert query.next(timeout=0) is None
    with ev.open(path) as db:
        assert db.live(FAST, name="fast").next(timeout=0) is None


def test_a_durable_query_that_is_cancelled_ends_its_loops_and_keeps_its_rows(db: Database) -> None:
    query = db.live(FAST, name="fast")
    drive(db, 80, 90)
    query.cancel()
    assert list(query) == []
    again = db.live(FAST, name="fast")
    assert [row["speed"] for row in again.waiting()] == [80.0, 90.0]


def test_rows_that_the_wall_clock_completes_can_be_pulled(db: Database) -> None:
    clock = ev.ManualClock()
    query = db.live("SELECT car FROM cars", idle="5 s", clock=clock)
    db.stream("cars").append([{"ts": 0, "car": "a", "speed": 1.0}])
    assert query.next(timeout=0) is None
    clock.advance("6 s")
    rows = query.next(timeout=LONG_S)
    assert rows is not None
    assert rows.rows() == [{"car": "a"}]
