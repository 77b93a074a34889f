"""A queue before a stream: order, acknowledgement, back-pressure, failures, and adaptation."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as NotYetError
from concurrent.futures import wait
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import SchemaError, StoreError
from eventide.schema import INT64, STRING
from eventide.store import Appended, Store, StoredStream
from eventide.store.files.disk import Bytes, Disk
from eventide.store.options import Order, StreamOptions
from eventide.store.writing import append
from eventide.store.writing.adaptation import Mode
from eventide.store.writing.append import Producer
from eventide.store.writing.feed import Feed
from eventide.store.writing.open_stream import OpenStream, opened
from eventide.store.writing.view import StreamView
from tests.naive.store import Row
from tests.store.events import (
    COLUMNS,
    at,
    new_stream,
    reopened,
    scanned,
    table,
    times,
    tiny_files,
)
from tests.store.writing.faults import FailingDisk, using

LONG_S = 600.0
"""Nothing waits for this long unless something is wrong."""


class GatedDisk(Disk):
    """A disk that writes only while its gate is open, and says when it is asked to."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.reached = threading.Event()

    def write(self, descriptor: int, pieces: Sequence[Bytes], offset: int) -> None:
        self.reached.set()
        assert self.gate.wait(LONG_S)
        super().write(descriptor, pieces, offset)


@contextlib.contextmanager
def held_up(feed: Feed) -> Iterator[GatedDisk]:
    """Hold the worker in the middle of an append of one event; let it go at the end."""
    disk = GatedDisk()
    with using(disk):
        feed.put(at(0))
        assert disk.reached.wait(LONG_S)
        try:
            yield disk
        finally:
            disk.gate.set()
            with contextlib.suppress(StoreError):
                feed.flush()


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until another thread has come so far."""
    pause = threading.Event()
    for _ in range(int(LONG_S / 0.005)):
        if condition():
            return
        pause.wait(0.005)
    pytest.fail("it never happened")


@pytest.fixture
def stream(tmp_path: Path) -> StoredStream:
    return new_stream(tmp_path)


def test_events_are_stored_in_the_order_of_puts(stream: StoredStream) -> None:
    with Feed(stream, 100) as feed:
        tickets = [feed.put(at(5, 3)), feed.put(at()), feed.put(at(4))]
        assert [ticket.result(LONG_S) for ticket in tickets] == [
            Appended(2, 0),
            Appended(0, 2),
            Appended(1, 2),
        ]
    assert scanned(stream.snapshot(), ["ts", "_seq"]) == [(3, 1), (4, 2), (5, 0)]


def test_what_waits_is_joined_into_one_append(stream: StoredStream) -> None:
    with Feed(stream, 1000) as feed:
        with held_up(feed):
            tickets = [feed.put(at(ts)) for ts in range(1, 501)]
        assert [ticket.result(LONG_S).first_seq for ticket in tickets] == list(range(1, 501))
        found = feed.stats()
        assert (found.puts, found.appends, found.joined_puts) == (501, 2, 500)
        assert (found.queued_rows, found.most_queued_rows, found.capacity_rows) == (0, 500, 1000)
        assert (found.times_blocked, found.refused_puts, found.mode) == (0, 0, Mode.FULL)
    assert times(stream.snapshot()) == list(range(501))


@pytest.mark.parametrize(("limit", "value"), [("JOINED_ROWS", 4), ("JOINED_BYTES", 200)])
def test_an_append_takes_only_so_much(stream: StoredStream, limit: str, value: int) -> None:
    with patch(f"eventide.store.writing.feed.{limit}", value), Feed(stream, 1000) as feed:
        with held_up(feed):
            for ts in range(1, 21):
                feed.put(at(ts))
            feed.put(at(*range(21, 41)))  # more than an append takes: it goes alone
        assert 4 < feed.stats().appends < 20
    assert times(stream.snapshot()) == list(range(41))


def test_a_ticket_is_not_done_before_its_events_are_safe(stream: StoredStream) -> None:
    class UnsyncedDisk(GatedDisk):
        def write(self, descriptor: int, pieces: Sequence[Bytes], offset: int) -> None:
            Disk.write(self, descriptor, pieces, offset)

        def sync(self, descriptor: int) -> None:
            self.reached.set()
            assert self.gate.wait(LONG_S)
            Disk.sync(self, descriptor)

    disk = UnsyncedDisk()
    with using(disk), Feed(stream, 100) as feed:
        ticket = feed.put(at(1))
        assert disk.reached.wait(LONG_S)
        with pytest.raises(NotYetError):
            ticket.result(0)
        assert not ticket.cancel()
        disk.gate.set()
        assert ticket.result(LONG_S) == Appended(1, 0)


def test_a_full_queue_makes_producers_wait(stream: StoredStream) -> None:
    entered: list[int] = []

    def produce(feed: Feed, ts: int) -> None:
        feed.put(at(ts, ts))
        entered.append(ts)

    with Feed(stream, 3) as feed:
        with held_up(feed):
            feed.put(at(1, 1))
            producers = []
            for ts in (2, 3, 4):
                producers.append(threading.Thread(target=produce, args=(feed, ts)))
                producers[-1].start()
                eventually(lambda: len(feed.turns) == len(producers))
            assert feed.stats().queued_rows == 2
            assert not entered
        for producer in producers:
            producer.join(LONG_S)
        feed.flush()
        assert feed.stats().times_blocked == 3
        assert feed.stats().most_queued_rows <= 3
    # Those who wait are let in one after the other, the first one first.
    assert scanned(stream.snapshot(), ["_seq", "ts"]) == [
        (0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (8, 4),
    ]  # fmt: skip


def test_a_producer_that_will_not_wait_is_told(stream: StoredStream) -> None:
    with Feed(stream, 3) as feed:
        with held_up(feed):
            feed.put(at(1, 2))
            with pytest.raises(StoreError, match=r"had no room for 0\.01 s: 2 of 3 rows wait"):
                feed.put(at(8, 9), timeout=0.01)
            with pytest.raises(StoreError, match="nothing was put in"):
                feed.put(at(8, 9), timeout=0)
            feed.put(at(3), timeout=0)
        feed.flush()
        assert feed.stats().times_blocked == 2
    assert times(stream.snapshot()) == [0, 1, 2, 3]


def test_a_table_larger_than_the_queue_is_taken_when_it_is_empty(stream: StoredStream) -> None:
    with Feed(stream, 2) as feed:
        with held_up(feed):
            feed.put(at(*range(1, 10)), timeout=0)
            with pytest.raises(StoreError, match="9 of 2 rows wait"):
                feed.put(at(10), timeout=0)
        assert feed.put(at(10)).result(LONG_S) == Appended(1, 10)


@pytest.mark.parametrize("durability", ["batch", "group", "none"])
def test_many_producers(tmp_path: Path, durability: str) -> None:
    options = StreamOptions.from_json({"durability": durability})
    stream = new_stream(tmp_path, options=options)
    found: dict[int, list[Appended]] = {}

    def produce(feed: Feed, lane: int) -> None:
        rng = random.Random(lane)
        tickets = []
        for turn in range(40):
            event: Row = {"ts": rng.randrange(1000), "lane": lane, "speed": float(turn)}
            tickets.append(feed.put(table([event] * (turn % 3))))
        found[lane] = [ticket.result(LONG_S) for ticket in tickets]

    with tiny_files(), Feed(stream, 25) as feed:
        producers = [threading.Thread(target=produce, args=(feed, lane)) for lane in range(12)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join(LONG_S)
        stored = {row[0]: row[1:] for row in scanned(stream.snapshot(), ["_seq", "lane", "speed"])}
    expected = {
        appended.first_seq + at: (lane, float(turn))
        for lane, all_appended in found.items()
        for turn, appended in enumerate(all_appended)
        for at in range(appended.rows)
    }
    assert stored == expected
    assert len(stored) == 12 * sum(turn % 3 for turn in range(40))


def test_a_bad_table_harms_nobody_else(stream: StoredStream) -> None:
    with Feed(stream, 100) as feed:
        with held_up(feed):
            good = [feed.put(at(1)), feed.put(at(2))]
            bad = [
                feed.put(table([{"ts": None}])),
                feed.put(pa.table({"wrong": [1]})),
                feed.put(at(7).set_column(0, "ts", pa.array([7]))),
            ]
            good.append(feed.put(at(3, 4)))
        for ticket, said in zip(bad, ["ts is null", "wrong int64", "ts int64"], strict=True):
            with pytest.raises(SchemaError, match=said):
                ticket.result(LONG_S)
        assert [ticket.result(LONG_S) for ticket in good] == [
            Appended(1, 1),
            Appended(1, 2),
            Appended(2, 3),
        ]
        assert feed.stats().refused_puts == 3
        with pytest.raises(SchemaError, match="not RecordBatch"):
            feed.put(at(9).to_batches()[0])
    assert times(stream.snapshot()) == [0, 1, 2, 3, 4]


def test_tables_that_differ_only_in_what_may_be_null_are_all_stored(stream: StoredStream) -> None:
    strict = at(1)
    fields = [strict.schema.field(0).with_nullable(False), *list(strict.schema)[1:]]
    with Feed(stream, 100) as feed:
        with held_up(feed):
            feed.put(at(1))
            feed.put(pa.Table.from_arrays(strict.columns, schema=pa.schema(fields)))
        feed.flush()
    assert times(stream.snapshot()) == [0, 1, 1]


def test_a_refusal_that_nobody_has_read_shows_when_the_feed_is_closed(
    stream: StoredStream,
) -> None:
    feed = Feed(stream, 100)
    feed.put(table([{"ts": None}]))
    feed.put(at(1))
    with pytest.raises(SchemaError, match="ts is null"):
        feed.close()
    feed.close()
    assert times(stream.snapshot()) == [1]


def test_what_was_stored_in_spite_of_an_error_is_not_stored_again(stream: StoredStream) -> None:
    """A defect after the events were written: whatever it is, trying again would double them."""
    original = append.add

    def add(
        opened: OpenStream, view: StreamView, events: pa.RecordBatch, producer: Producer
    ) -> None:
        original(opened, view, events, producer)
        message = "afterwards"
        raise ValueError(message)

    feed = Feed(stream, 100)
    with held_up(feed) as disk:
        tickets = [feed.put(at(1)), feed.put(at(2))]
        with patch.object(append, "add", add):
            disk.gate.set()
            wait(tickets, LONG_S)
    for ticket in tickets:
        with pytest.raises(ValueError, match="afterwards"):
            ticket.result(LONG_S)
    with pytest.raises(StoreError, match="has stopped: afterwards"):
        feed.close()
    assert times(stream.snapshot()) == [0, 1, 2]


def test_a_disk_that_fails_stops_the_feed(stream: StoredStream) -> None:
    stream.append(at(-1))
    feed = Feed(stream, 4)
    full = OSError(28, "No space left on device")
    blocked: list[str] = []

    def produce() -> None:
        with pytest.raises(StoreError, match="has stopped") as raised:
            feed.put(at(9, 9))
        blocked.append(str(raised.value))

    producer = threading.Thread(target=produce)
    with patch("eventide.store.writing.feed.JOINED_ROWS", 1), held_up(feed) as disk:
        tickets = [feed.put(at(1, 2)), feed.put(at(3, 4))]
        producer.start()
        eventually(lambda: len(feed.turns) == 1)
        with using(FailingDisk(1, full, dead=True)):
            disk.gate.set()
            wait(tickets, LONG_S)
            producer.join(LONG_S)
    with pytest.raises(StoreError, match="No space left"):
        tickets[0].result(LONG_S)
    with pytest.raises(StoreError, match=r"(?s)has stopped: .*No space left"):
        tickets[1].result(LONG_S)
    assert "No space left" in blocked[0]
    for action in (lambda: feed.put(at(5)), feed.flush, feed.close):
        with pytest.raises(StoreError, match=r"(?s)has stopped: .*No space left"):
            action()
    assert feed.stats().queued_rows == 0
    assert times(reopened(stream).snapshot()) == [-1, 0]
    with Feed(stream, 4) as another:
        another.put(at(6))
    assert times(stream.snapshot()) == [-1, 0, 6]


def test_a_stream_that_is_dropped_stops_its_feed(stream: StoredStream) -> None:
    feed = Feed(stream, 10)
    feed.put(at(1)).result(LONG_S)
    with waiting(stream):
        ticket = feed.put(at(2))
        Store.open(stream.path.parent.parent).drop_stream(stream.name)
    with pytest.raises(StoreError, match=r"was dropped|no stream|cannot write"):
        ticket.result(LONG_S)
    with pytest.raises(StoreError):
        feed.put(at(3))
    with pytest.raises(StoreError, match="has stopped"):
        feed.close()


def test_closing_stores_what_waits(stream: StoredStream) -> None:
    feed = Feed(stream, 100)
    closing = threading.Thread(target=feed.close)
    with held_up(feed):
        for ts in range(1, 20):
            feed.put(at(ts))
        closing.start()
        eventually(lambda: feed.is_closed)
        with pytest.raises(StoreError, match="is closed"):
            feed.put(at(99))
    closing.join(LONG_S)
    assert not feed.thread.is_alive()
    feed.close()
    assert times(stream.snapshot()) == list(range(20))


def test_closing_turns_blocked_producers_away(stream: StoredStream) -> None:
    feed = Feed(stream, 1)
    said: list[str] = []

    def produce() -> None:
        with pytest.raises(StoreError) as raised:
            feed.put(at(9))
        said.append(str(raised.value))

    producer, closing = threading.Thread(target=produce), threading.Thread(target=feed.close)
    with held_up(feed):
        feed.put(at(1))
        producer.start()
        eventually(lambda: len(feed.turns) == 1)
        closing.start()
        producer.join(LONG_S)
        assert "is closed" in said[0]
    closing.join(LONG_S)
    assert times(stream.snapshot()) == [0, 1]


def test_a_callback_cannot_wait_for_its_own_thread(stream: StoredStream) -> None:
    said: list[str] = []

    def again(_: object) -> None:
        for action in (lambda: feed.put(at(8, 9)), feed.flush):
            try:
                action()
            except StoreError as error:
                said.append(str(error))

    with Feed(stream, 3) as feed, patch("eventide.store.writing.feed.JOINED_ROWS", 1):
        with held_up(feed):
            feed.put(at(1)).add_done_callback(again)
            feed.put(at(2, 3))
        feed.flush()
    assert "had no room" in said[0]
    assert "cannot wait for the feed" in said[1]


def test_a_forked_child_is_refused(stream: StoredStream) -> None:
    with Feed(stream, 10) as feed:
        feed.put(at(1)).result(LONG_S)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = b""
            for action in (lambda: feed.put(at(2)), feed.flush, feed.stats):
                try:
                    action()
                except StoreError as error:
                    said += str(error).encode() + b"\n"
            feed.close()
            os.write(writer, said)
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            assert pipe.read().count("belongs to another process") == 3
    assert times(stream.snapshot()) == [1]


def test_a_queue_holds_something(stream: StoredStream) -> None:
    with pytest.raises(StoreError, match="cannot hold 0 rows"):
        Feed(stream, 0)


OPTIONS = StreamOptions(indexes=("speed", "lane", "car"))
CAPACITY = 20


def overload(feed: Feed, stamps: Sequence[int]) -> None:
    """Let a queue full of small tables wait that the worker then takes one by one."""
    assert len(stamps) == CAPACITY == feed.capacity_rows
    with patch("eventide.store.writing.feed.JOINED_ROWS", 1):
        with held_up(feed):
            for start in range(0, CAPACITY, 2):
                feed.put(at(*stamps[start : start + 2]))
        feed.flush()


def late(start: int) -> list[int]:
    """Return as many times as the queue takes, every second one far behind."""
    return [start + step if step % 2 else step - 500 for step in range(CAPACITY)]


def closed_up_to(folder: Path, ts: int, options: StreamOptions) -> StoredStream:
    """Return a stream with one event in a leaf: what is older is late."""
    stream = new_stream(folder, options=options)
    stream.append(at(ts))
    stream.flush()
    return stream


def test_too_many_late_events_are_kept_as_they_arrive(tmp_path: Path) -> None:
    with tiny_files():
        stream = closed_up_to(tmp_path, 1000, OPTIONS)
        with Feed(stream, CAPACITY) as feed:
            overload(feed, late(1001))
            found = feed.stats()
            assert found.mode == Mode.SYSTEM_TIME
            # Once: at the minimum nothing more is done, however long the queue.
            (decision,) = stream.stats().decisions
            assert (decision.what,) == found.decisions
            assert "events are kept as they arrive" in decision.what
            assert "16 of 20 rows waited" in decision.what
            stream.flush()
            (newest,) = [each for each in stream.stats().segments if not each.sealed]
            assert (newest.in_order, newest.indexes) == (False, ())
        assert times(stream.snapshot()) == sorted([1000, 0, *late(1001)])


def test_too_many_events_in_order_cost_the_indexes(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=OPTIONS)
        with Feed(stream, CAPACITY) as feed:
            overload(feed, range(1, CAPACITY + 1))
            assert feed.stats().mode == Mode.PARTIAL
            assert [what.split(" until")[0] for what in feed.stats().decisions] == [
                "no secondary index on lane, car",
                "no secondary index on speed",
            ]
            stream.flush()
            kept = [(s.in_order, s.indexes) for s in stream.stats().segments]
            assert kept == [(True, OPTIONS.indexes), (True, ("speed",)), (True, ())]
        assert times(stream.snapshot()) == list(range(CAPACITY + 1))


def test_one_slow_append_is_no_overload(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, options=OPTIONS)
    with Feed(stream, CAPACITY) as feed:
        with held_up(feed):
            feed.put(at(*range(CAPACITY)))
        feed.flush()
        assert feed.stats().decisions == ()


@pytest.mark.parametrize("split_us", [None, 2000])
def test_a_regular_split_brings_everything_back(tmp_path: Path, split_us: int | None) -> None:
    options = StreamOptions(indexes=("lane",), split_us=split_us)
    # A log that is not so short that it is flushed between a late event and the next.
    with tiny_files(), patch("eventide.store.writing.append.LOG_BYTES", 20_000):
        stream = closed_up_to(tmp_path, 1000, options)
        with Feed(stream, CAPACITY) as feed:
            overload(feed, late(1001))
            assert feed.stats().mode == Mode.SYSTEM_TIME
            for start in range(2100, 2190, 2):
                feed.put(at(start, start + 1)).result(LONG_S)
            stream.flush()
            assert feed.stats().mode == Mode.FULL
            assert stream.stats().reduced is None
            # The last events may have filled their segment, or not.
            newest = max(stream.stats().segments, key=lambda each: each.time_range.start_us)
            assert (newest.in_order, newest.indexes) == (True, ("lane",))
            # No segment is so full that the next events split it.
            stream.flush(seal=True)
            feed.put(at(2190, 2191)).result(LONG_S)
            stream.flush()
            (newest,) = [each for each in stream.stats().segments if not each.sealed]
            assert (newest.in_order, newest.indexes) == (True, ("lane",))
            # And when too much comes again, it goes again.
            overload(feed, late(2200))
            assert feed.stats().mode == Mode.SYSTEM_TIME
            assert len(stream.stats().decisions) == 2
        stamps = [1000, 0, *late(1001), *range(2100, 2192), 0, *late(2200)]
        assert times(stream.snapshot()) == sorted(stamps)


def test_missed_indexes_are_built_when_nothing_comes(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, options=StreamOptions(indexes=("lane",)))
    with (
        tiny_files(),
        patch("eventide.store.writing.feed.IDLE_S", 0.01),
        Feed(stream, CAPACITY) as feed,
    ):
        overload(feed, range(1, CAPACITY + 1))
        assert feed.stats().mode == Mode.PARTIAL
        stream.split()
        eventually(lambda: not feed.owes_indexes)
        assert {segment.indexes for segment in stream.stats().segments} == {("lane",)}
        feed.put(at(CAPACITY + 1)).result(LONG_S)
    assert times(stream.snapshot()) == list(range(CAPACITY + 2))


def test_a_split_that_fails_costs_nothing_but_the_split(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = new_stream(tmp_path, options=OPTIONS)
    error = StoreError("no", hint="never")
    with patch.object(StoredStream, "split", side_effect=error), Feed(stream, CAPACITY) as feed:
        overload(feed, late(1000))
        assert feed.stats().mode == Mode.FULL
        assert feed.stats().decisions == ()
    assert "could not be split" in caplog.text
    assert times(stream.snapshot()) == sorted([0, *late(1000)])


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("split_us", [None, 300])
def test_nothing_is_lost_or_doubled_under_any_load(
    tmp_path: Path, order: Order, split_us: int | None
) -> None:
    options = StreamOptions(indexes=("lane", "car"), order=order, split_us=split_us)
    with tiny_files():
        stream = new_stream(tmp_path, options=options)
        acknowledged: dict[int, int] = {}

        def produce(feed: Feed, seed: int) -> None:
            rng = random.Random(seed)
            for turn in range(25):
                stamps = [turn * 20 - rng.randrange(200) for _ in range(rng.randrange(6))]
                first = feed.put(at(*stamps)).result(LONG_S).first_seq
                acknowledged.update({first + at: ts for at, ts in enumerate(stamps)})

        with patch("eventide.store.writing.feed.SUSTAINED", 1), Feed(stream, 4) as feed:
            producers = [threading.Thread(target=produce, args=(feed, seed)) for seed in range(6)]
            for producer in producers:
                producer.start()
            for producer in producers:
                producer.join(LONG_S)
        expected = sorted((ts, seq) for seq, ts in acknowledged.items())
        assert scanned(stream.snapshot(), ["ts", "_seq"]) == expected
        stream = reopened(stream)
        stream.compact()
        assert len(scanned(stream.snapshot(), COLUMNS)) == len(expected)


@contextlib.contextmanager
def waiting(stream: StoredStream) -> Iterator[None]:
    """Keep other threads from appending; this one may change the stream."""
    with opened(stream.path).mutex:
        yield


def test_a_table_put_before_an_attribute_came_has_null_in_it(stream: StoredStream) -> None:
    with Feed(stream, 100) as feed:
        with waiting(stream):
            before = [feed.put(at(1)), feed.put(at(2))]
            stream.add_column("more", INT64)
            grown = pa.Table.from_pylist(
                [{"ts": 3, "lane": 3, "more": 7}], schema=stream.schema.arrow.remove(1)
            )
            after = feed.put(grown)
        results = [ticket.result(LONG_S) for ticket in (*before, after)]
    assert results == [Appended(1, 0), Appended(1, 1), Appended(1, 2)]
    (rows,) = stream.snapshot().scan(["lane", "more"])
    assert rows.to_pylist() == [
        {"lane": 0, "more": None},
        {"lane": 0, "more": None},
        {"lane": 3, "more": 7},
    ]


def test_a_table_put_before_an_attribute_went_is_stored_without_it(stream: StoredStream) -> None:
    event: Row = {"ts": 1, "car": "a", "speed": 5.0, "lane": 9}
    with Feed(stream, 100) as feed:
        with waiting(stream):
            ticket = feed.put(table([event]))
            stream.drop_column("speed")
            # Another one under the name of the first has none of its values.
            stream.add_column("speed", STRING)
        assert ticket.result(LONG_S) == Appended(1, 0)
    (rows,) = stream.snapshot().scan(["car", "speed", "lane"])
    assert rows.to_pylist() == [{"car": "a", "speed": None, "lane": 9}]


@pytest.mark.parametrize(
    "change",
    [
        lambda stream: stream.add_index("speed", "backfill"),
        lambda stream: stream.drop_index("lane"),
        lambda stream: stream.add_aggregate("max2", "speed", "backfill"),
        lambda stream: stream.set_options(StreamOptions(order="arrival"), split=True),
        lambda stream: stream.compact(),
        lambda stream: stream.drop_before(0),
    ],
)
def test_nothing_done_to_a_stream_keeps_a_feed_from_storing(
    tmp_path: Path, change: Callable[[StoredStream], object]
) -> None:
    stream = new_stream(tmp_path, options=StreamOptions(indexes=("lane",)))
    with Feed(stream, 100) as feed:
        with waiting(stream):
            first = feed.put(at(1))
            change(stream)
            second = feed.put(at(2))
        assert [first.result(LONG_S).rows, second.result(LONG_S).rows] == [1, 1]
    assert times(stream.snapshot()) == [1, 2]


def test_live_queries_see_the_columns_that_are_stored(tmp_path: Path) -> None:
    database = ev.open(tmp_path / "db")
    cars = database.create_stream("cars", {"lane": "int64"})
    seen: list[Row] = []
    database.subscribe("SELECT lane FROM cars", lambda rows: seen.extend(rows.rows()))
    with cars.feed() as feed:
        with waiting(cars.stored):
            tickets = [feed.put([{"ts": ts, "lane": ts}]) for ts in (1, 2, 3)]
            cars.add_attribute("more", "int64")
        for ticket in tickets:
            ticket.result(LONG_S)
    database.wait()
    assert seen == [{"lane": 1}, {"lane": 2}]


def test_an_append_made_for_columns_of_before_is_stored(stream: StoredStream) -> None:
    columns = stream.columns
    stream.add_column("more", INT64)
    outcome = stream.store(at(1), columns)
    assert outcome.events.schema.names == ["ts", "car", "speed", "lane", "more"]
    with pytest.raises(SchemaError, match="the events have"):
        stream.append(at(1))
    assert times(stream.snapshot()) == [1]
