"""A disk that fails: the error is true, and what is acknowledged after it is safe."""

from __future__ import annotations

import errno
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from unittest.mock import patch

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import StoreError
from eventide.store import Snapshot, Store, StoredStream
from eventide.store.files.disk import Disk
from eventide.store.files.lock import write_lock
from eventide.store.options import Durability, StreamOptions
from eventide.store.writing.feed import Feed
from eventide.store.writing.group_commit import COMMITS
from eventide.store.writing.open_stream import OpenStream, opened
from tests.store.events import SCHEMA, at, new_stream, reopened, times, tiny_files
from tests.store.writing.faults import FailingDisk, FaultyDisk, crash_images, lay_out, using
from tests.store.writing.test_feed import eventually

BROKEN = OSError(errno.EIO, "Input/output error")
LONG_S = 600.0
MANY = 100


class BrokenDisk(Disk):
    """Fails in the calls of some kinds, as long as it is broken."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def sync(self, descriptor: int) -> None:
        """See `Disk`."""
        if "sync" in self.kinds:
            raise BROKEN
        super().sync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """See `Disk`."""
        if "truncate" in self.kinds:
            raise BROKEN
        super().truncate(descriptor, size)


def seen_by_others(stream: StoredStream) -> list[object]:
    """Return what another process sees."""
    return times(Snapshot(stream.path, OpenStream(stream.path).view()))


@pytest.fixture
def stream(tmp_path: Path) -> StoredStream:
    created = new_stream(tmp_path)
    created.append(at(1))
    return created


def test_what_cannot_be_taken_back_is_not_called_gone(stream: StoredStream) -> None:
    with using(BrokenDisk("sync", "truncate")), pytest.raises(StoreError) as raised:
        stream.append(at(2))
    assert "not take back what was written: [Errno 5] Input/output error" in str(raised.value)
    assert "may be there when the stream is opened again" in str(raised.value)
    assert times(stream.snapshot()) == [1], "this process shows none of it"
    assert seen_by_others(stream) == [1, 2], "the record is whole, and nobody else knows"


def test_what_could_not_be_taken_back_goes_with_the_next_append(stream: StoredStream) -> None:
    with using(BrokenDisk("sync", "truncate")):
        for _ in range(3):
            with pytest.raises(StoreError):
                stream.append(at(2))
            assert times(stream.snapshot()) == [1]
    assert stream.append(at(3)).first_seq == 1
    for seen in (times(stream.snapshot()), seen_by_others(stream)):
        assert seen == [1, 3]
    assert times(reopened(stream).snapshot()) == [1, 3]


def test_a_retry_after_a_restart_is_safe_with_a_producer(stream: StoredStream) -> None:
    with using(BrokenDisk("sync", "truncate")), pytest.raises(StoreError):
        stream.append(at(2), producer="p", sequence=1)
    again = reopened(stream)
    again.append(at(2), producer="p", sequence=1)
    assert times(again.snapshot()) == [1, 2]


def test_another_writer_that_goes_on_behind_it_has_decided(stream: StoredStream) -> None:
    with using(BrokenDisk("sync", "truncate")), pytest.raises(StoreError):
        stream.append(at(2))
    other = OpenStream(stream.path)
    with patch.dict("eventide.store.writing.open_stream.OPENED", {stream.path: other}):
        stream.append(at(3))
    assert times(stream.snapshot()) == [1, 2, 3]
    stream.append(at(4))
    assert seen_by_others(stream) == [1, 2, 3, 4]


def test_a_checkpoint_that_cannot_be_taken_back_shows_nothing(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(at(*range(20)))
        with using(BrokenDisk("sync", "truncate")), pytest.raises(StoreError):
            stream.append(at(*range(20, 40)))
        assert times(stream.snapshot()) == list(range(20))
        stream.append(at(50))
        assert seen_by_others(stream) == [*range(20), 50]


@pytest.mark.parametrize("durability", ["group", "none"])
def test_a_sync_that_failed_is_not_taken_for_done_by_the_next(
    tmp_path: Path, durability: Durability
) -> None:
    options = StreamOptions(durability=durability, commit_interval_ms=3_600_000)
    stream = Store.open(tmp_path / "db").create_stream("cars", SCHEMA, options)
    stream.append(at(1))
    log = stream.snapshot().manifest.log
    with using(BrokenDisk("sync")), pytest.raises(StoreError, match="cannot sync") as raised:
        stream.sync()
    assert "all events are visible" in str(raised.value)
    assert times(stream.snapshot()) == [1]
    stream.sync()
    assert stream.snapshot().manifest.log != log, "the system has forgotten what that log lacks"
    COMMITS.finish()


def appended(name: str) -> Callable[[StoredStream], object]:
    """Return one of the ways to add events."""
    ways: dict[str, Callable[[StoredStream], object]] = {
        "a few": lambda stream: stream.append(at(52, 1)),
        "a bulk": lambda stream: stream.append(at(*range(60, 85))),
        "staged": lambda stream: stream.commit([stream.stage(at(70).to_batches())], "once"),
        "a seal": lambda stream: stream.flush(seal=True),
    }
    return ways[name]


class Killed(BaseException):
    """The process dies: no handler of ours can do anything on the disk after this."""


FAILURES: dict[str, tuple[BaseException, Callable[[int], Collection[int]]]] = {
    "once": (BROKEN, lambda step: {step}),
    "twice in a row": (BROKEN, lambda step: {step, step + 1}),
    "twice": (BROKEN, lambda step: {step, step + 2}),
    "killed": (Killed(), lambda step: range(step, MANY)),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("way", ["a few", "a bulk", "staged", "a seal"])
def test_what_is_acknowledged_after_a_failure_survives_the_power(
    tmp_path: Path, way: str, failure: str
) -> None:
    """Whichever call fails, or whenever its process dies: the append after that is safe."""
    error, steps_from = FAILURES[failure]
    with tiny_files():
        for step in range(1, MANY):
            root = tmp_path / str(step)
            root.mkdir()
            stream = new_stream(root)
            stream.append(at(*range(0, 40, 2)))
            stream.append(at(50))
            before = set(times(stream.snapshot()))
            disk = FaultyDisk(root, steps_from(step), error)
            with using(disk):
                with suppress(StoreError, Killed):
                    appended(way)(stream)
                if disk.calls < step:
                    return
                disk.steps = ()
                stream = reopened(stream) if isinstance(error, Killed) else stream
                visible = set(times(stream.snapshot()))
                stream.append(at(99))
            for image in crash_images(disk.trace, len(disk.trace.changes), Random(step), 1):
                with tempfile.TemporaryDirectory(dir=root) as folder:
                    lay_out(image, Path(folder))
                    left = Store.open(Path(folder) / "db", create=False).stream("cars")
                    assert set(times(left.snapshot())) == {*visible, 99}
            assert before <= visible
    pytest.fail("it never came to an end")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[ev.Database]:
    with tiny_files():
        yield ev.open(tmp_path / "db")


class UnsafeDisk(Disk):
    """The last sync of a commit fails: that of the folder, when the manifest has its name."""

    def __init__(self) -> None:
        self.renamed = False

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        super().rename(source, target)
        self.renamed |= target.name.startswith("manifest-")

    def sync_folder(self, path: Path) -> None:
        """See `Disk`."""
        if self.renamed:
            raise BROKEN
        super().sync_folder(path)


def cars_with_query(database: ev.Database, seen: list[int]) -> ev.Stream:
    """Return a stream and let a live query note its lanes."""
    cars = database.create_stream("cars", {"lane": "int64"}, split="1 s")
    database.subscribe(
        "SELECT lane FROM cars", lambda rows: seen.extend(row["lane"] for row in rows.rows())
    )
    return cars


def check_seen(cars: ev.Stream, seen: Sequence[int], expected: Sequence[int]) -> None:
    """Compare what a live query has seen with what is stored, once the last is complete."""
    cars.append(bulk([99]))
    assert [row["lane"] for row in cars.events().rows()] == [*expected, 99]
    assert seen == list(expected)


def bulk(lanes: Sequence[int]) -> pa.Table:
    """Return so many events that they go to a segment at once, and that it is sealed."""
    ts = pa.array([lane * 1_000_000 for lane in lanes], pa.timestamp("us"))
    return pa.table({"ts": ts, "lane": pa.array(lanes, pa.int64())})


def test_live_queries_see_what_is_visible_though_not_safe(database: ev.Database) -> None:
    seen: list[int] = []
    cars = cars_with_query(database, seen)
    with using(UnsafeDisk()), pytest.raises(StoreError, match="may not survive a power failure"):
        cars.append(bulk(range(40)))
    check_seen(cars, seen, range(40))


def test_a_feed_tells_live_queries_what_is_visible_though_not_safe(database: ev.Database) -> None:
    seen: list[int] = []
    cars = cars_with_query(database, seen)
    feed = cars.feed()
    with using(UnsafeDisk()):
        ticket = feed.put(bulk(range(40)))
        with pytest.raises(StoreError, match="may not survive a power failure"):
            ticket.result(LONG_S)
        with pytest.raises(StoreError, match="has stopped"):
            feed.close()
    check_seen(cars, seen, range(40))


def test_a_feed_does_not_call_visible_what_it_never_tried_to_store(database: ev.Database) -> None:
    """Tables of other columns are taken together, and appended one kind after the other."""
    cars = database.create_stream("cars", {"lane": "int64"}, split="1 s")
    feed = cars.feed()
    with ExitStack() as later:
        with opened(cars.stored.path).mutex:
            first = feed.put(bulk([0]))
            eventually(lambda: feed.stats().queued_rows == 0)
            visible = feed.put(bulk(range(1, 41)))
            cars.add_attribute("more", "int64")
            untried = feed.put([{"ts": 41_000_000, "lane": 41, "more": 1}])
            later.enter_context(using(UnsafeDisk()))
        assert first.result(LONG_S).rows == 1
        with pytest.raises(StoreError, match="may not survive a power failure") as unsafe:
            visible.result(LONG_S)
        with pytest.raises(StoreError, match="has stopped") as stopped:
            untried.result(LONG_S)
        assert "this was not stored" not in str(unsafe.value)
        assert "this was not stored" in str(stopped.value)
        assert "what was done is visible" not in str(stopped.value)
        with pytest.raises(StoreError, match="has stopped"):
            feed.close()
    assert [row["lane"] for row in cars.events().rows()] == list(range(41))


def test_live_queries_see_what_an_interrupt_came_after(database: ev.Database) -> None:
    seen: list[int] = []
    cars = cars_with_query(database, seen)
    with (
        patch("eventide.store.writing.append.settle", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        cars.append(bulk(range(40)))
    check_seen(cars, seen, range(40))


def test_live_queries_see_nothing_that_is_not_visible(database: ev.Database) -> None:
    seen: list[int] = []
    cars = cars_with_query(database, seen)
    for kinds in (["sync"], ["sync", "truncate"]):
        with using(BrokenDisk(*kinds)), pytest.raises(StoreError):
            cars.append(bulk([1]))
    check_seen(cars, seen, [])


def test_a_feed_outlasts_another_writer(stream: StoredStream) -> None:
    """However long another process holds the lock, what was put in is stored."""
    waits = threading.Semaphore(0)
    with (
        patch("eventide.store.files.lock.WAIT_S", 0.01),
        patch("eventide.store.writing.feed.log.warning", side_effect=lambda *_: waits.release()),
        Feed(stream, 10) as feed,
    ):
        with write_lock(stream.path):
            ticket = feed.put(at(2))
            for _ in range(3):
                assert waits.acquire(timeout=LONG_S)
            assert not ticket.done()
        assert ticket.result(LONG_S).rows == 1
    assert times(stream.snapshot()) == [1, 2]


def test_a_database_that_is_gone_is_not_an_empty_one(tmp_path: Path) -> None:
    database = ev.open(tmp_path / "db")
    database.create_stream("cars", {"lane": "int64"})
    (tmp_path / "db").rename(tmp_path / "elsewhere")
    for ask in (
        database.streams,
        lambda: database.backup(tmp_path / "copy"),
        lambda: database.sql("SELECT * FROM cars"),
    ):
        with pytest.raises(StoreError, match="db is no longer there"):
            ask()
    assert not list(tmp_path.glob("copy*"))


def test_a_backup_is_not_without_events_that_no_manifest_lists(tmp_path: Path) -> None:
    database = ev.open(tmp_path / "db")
    cars = database.create_stream("cars", {"lane": "int64"})
    cars.append(bulk([1]))
    cars.flush()
    for path in cars.stored.path.glob("manifest-*.json"):
        path.unlink()
    with pytest.raises(StoreError, match="but no manifest"):
        database.backup(tmp_path / "copy")
    assert not list(tmp_path.glob("copy*"))


def test_a_backup_onto_a_full_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    database = ev.open(tmp_path / "db")
    cars = database.create_stream("cars", {"lane": "int64"}, index=["lane"])
    cars.append(bulk(range(10)))
    cars.flush()
    for step in range(1, MANY):
        disk = FailingDisk(step, full, dead=True)
        said = ""
        with using(disk):
            try:
                copy = database.backup(tmp_path / "copy")
            except StoreError as error:
                said = str(error)
        if said and "may not survive" not in said:
            assert "No space left on device" in said
            assert "nothing is left of it" in said
            assert not list(tmp_path.glob("copy*"))
            continue
        if disk.calls < step:
            assert copy.stream("cars").snapshot().row_count == 10
            return
        shutil.rmtree(tmp_path / "copy")
    pytest.fail("the backup never finished")
