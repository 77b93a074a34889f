"""Appending, staging and committing: what is refused, and what readers see meanwhile."""

from __future__ import annotations

import fcntl
import os
import pickle
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from eventide.errors import SchemaError, StoreError
from eventide.instants import TimeRange
from eventide.schema import MAX_TS_US, Schema
from eventide.store import Snapshot, StagedSegment, Store, StoredStream
from eventide.store.files.disk import Bytes, Disk
from eventide.store.files.lock import write_lock
from eventide.store.segments.manifest import KEPT_VERSIONS
from eventide.store.upkeep.compaction import FAN_IN, ORPHANS_KEPT_S, RETIRED_KEPT_S
from tests.store.events import (
    COLUMNS,
    SCHEMA,
    at,
    new_stream,
    reopened,
    scanned,
    segment_files,
    table,
    times,
    tiny_files,
)
from tests.store.writing.faults import using


@pytest.fixture
def stream(tmp_path: Path) -> StoredStream:
    return new_stream(tmp_path)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (pa.table({"ts": [1]}), "the events have ts int64"),
        (at(1).append_column("_seq", pa.array([1])), "_seq int64"),
        (table([{"ts": None}]), "ts is null"),
        (at(MAX_TS_US + 1), "outside the years"),
    ],
)
def test_events_that_do_not_fit_are_refused(
    stream: StoredStream, events: pa.Table, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        stream.append(events)
    assert segment_files(stream) == []


def test_an_empty_append_changes_nothing(stream: StoredStream) -> None:
    stream.append(at(1))
    log = stream.path / stream.snapshot().manifest.log
    before = log.read_bytes()
    assert stream.append(at()).rows == 0
    assert log.read_bytes() == before
    with pytest.raises(SchemaError):
        stream.append(pa.table({"wrong": pa.array([], pa.int64())}))


def test_rows_too_large_for_a_leaf_are_kept(stream: StoredStream) -> None:
    with patch("eventide.store.segments.segment_writer.LEAF_BYTES", 100):
        stream.append(table([{"ts": ts, "car": "x" * 90} for ts in range(5)]))
        stream.flush(seal=True)
    assert stream.snapshot().manifest.segments[0].leaves == 5
    assert times(stream.snapshot()) == [0, 1, 2, 3, 4]


def test_a_commit_id_is_applied_once(stream: StoredStream) -> None:
    first = stream.stage(at(1, 2).to_batches())
    assert stream.commit([first], "batch 7").rows == 2
    # The same files again: a retry after an answer that got lost must not delete them.
    assert stream.commit([first], "batch 7").rows == 0
    again = stream.stage(at(1, 2).to_batches())
    assert stream.commit([again], "batch 7").rows == 0
    assert times(stream.snapshot()) == [1, 2]
    assert len(segment_files(stream)) == 1


def test_files_cannot_be_committed_twice(stream: StoredStream) -> None:
    staged = stream.stage(at(1).to_batches())
    stream.commit([staged])
    with pytest.raises(StoreError, match="committed before"):
        stream.commit([staged])
    stream.discard([staged])
    assert times(stream.snapshot()) == [1]


def test_discarded_files_cannot_be_committed(stream: StoredStream) -> None:
    staged = stream.stage(at(1).to_batches())
    stream.discard([staged])
    assert segment_files(stream) == []
    with pytest.raises(StoreError, match="missing or incomplete"):
        stream.commit([staged])


def test_a_failing_source_of_events_leaves_nothing(stream: StoredStream) -> None:
    def broken() -> object:
        yield from at(1).to_batches()
        message = "lost the connection"
        raise ConnectionError(message)

    with (
        tiny_files(),
        patch("eventide.store.writing.staging.SEGMENT_ROWS", 1),
        pytest.raises(ConnectionError),
    ):
        stream.stage(broken())  # type: ignore[arg-type]
    assert segment_files(stream) == []


@pytest.mark.parametrize("name", ["../lock", "/etc/passwd", "seg-.ev", "manifest-1.json"])
def test_staged_names_cannot_leave_the_folder(stream: StoredStream, name: str) -> None:
    entry = stream.stage(at(1).to_batches()).to_json()[0]
    with pytest.raises(StoreError, match="not the name of a segment"):
        StagedSegment.from_json([{**entry, "file": name}])


def test_a_snapshot_does_not_change(stream: StoredStream) -> None:
    stream.append(at(3, 1))
    before = stream.snapshot()
    shipped = pickle.dumps(before)
    stream.append(at(2))
    stream.compact()
    assert times(before) == [1, 3]
    assert times(pickle.loads(shipped)) == [1, 3]
    assert times(stream.snapshot()) == [1, 2, 3]


def test_readers_see_whole_appends_while_writers_go_on(stream: StoredStream) -> None:
    done = threading.Event()

    def write() -> None:
        try:
            for turn in range(30):
                stream.append(at(turn, turn - 10, turn + 10))
                if turn % 10 == 9:
                    stream.compact()
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    counts: list[int] = []
    while not done.is_set():
        snapshot = stream.snapshot()
        found = scanned(snapshot, ["ts", "_seq"])
        assert sorted(seq for _, seq in found) == list(range(snapshot.row_count))  # type: ignore[type-var]
        counts.append(len(found))
    writer.join()
    assert counts == sorted(counts)
    assert all(count % 3 == 0 for count in counts)
    assert len(times(stream.snapshot())) == 90


def append_many(path: str, turns: int) -> None:
    stream = Store.open(path).stream("cars")
    for turn in range(turns):
        stream.append(at(turn, turn))


def test_two_processes_write_without_losing_events(stream: StoredStream, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(append_many, str(tmp_path / "db"), 15) for _ in range(2)]
        for job in jobs:
            job.result()
    found = scanned(stream.snapshot(), ["ts", "_seq"])
    assert sorted(seq for _, seq in found) == list(range(60))  # type: ignore[type-var]
    assert [ts for ts, _ in found] == [ts for ts in range(15) for _ in range(4)]


def test_a_writer_that_waits_too_long_says_why(stream: StoredStream) -> None:
    with (
        write_lock(stream.path),
        patch("eventide.store.files.lock.WAIT_S", 0.05),
        pytest.raises(StoreError, match="another writer"),
    ):
        stream.append(at(1))
    assert times(stream.snapshot()) == []
    assert segment_files(stream) == []
    stream.append(at(1))


def test_who_waits_for_the_lock_is_next(stream: StoredStream) -> None:
    turns: list[str] = []

    def write(name: str) -> threading.Thread:
        def run() -> None:
            with write_lock(stream.path):
                turns.append(name)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    with write_lock(stream.path):
        first = write("first")
        while not is_locked(stream.path):
            time.sleep(0.001)
        second = write("second")
    first.join()
    second.join()
    assert turns == ["first", "second"]


def is_locked(folder: Path) -> bool:
    """Whether somebody waits for the lock of a folder, and so has locked the folder itself."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_small_appends_stay_in_the_log_until_it_is_long(stream: StoredStream) -> None:
    with tiny_files():
        for turn in range(5):
            stream.append(at(turn))
        assert segment_files(stream) == []
        logs = {stream.snapshot().manifest.log}
        for turn in range(5, 60):
            stream.append(at(turn))
            logs.add(stream.snapshot().manifest.log)
        snapshot = stream.snapshot()
        assert len(logs) > 1
        assert snapshot.view.log_end < 7000
        assert {path.name for path in segment_files(stream)} == {s.file for s in snapshot.segments}
        assert snapshot.segments
        assert times(snapshot) == list(range(60))


def test_small_commits_are_merged_as_they_come(stream: StoredStream) -> None:
    with patch("os.fsync"), patch("os.fdatasync"):
        for turn in range(5 * FAN_IN):
            stream.commit([stream.stage(at(turn).to_batches())])
    assert len(stream.snapshot().manifest.segments) < FAN_IN
    assert times(stream.snapshot()) == list(range(5 * FAN_IN))


def test_compaction_leaves_no_overlap_and_is_idempotent(stream: StoredStream) -> None:
    with tiny_files():
        for start in (0, 5, 2, 40, 3):
            stream.append(at(*range(start, start + 20)))
            stream.flush(seal=True)
        expected = scanned(stream.snapshot())
        assert stream.compact() > 0
        segments = sorted(stream.snapshot().manifest.segments, key=lambda s: s.first_key)
        for before, after in pairwise(segments):
            assert before.last_key < after.first_key
        assert scanned(stream.snapshot()) == expected
        assert stream.compact() == 0


def test_replaced_files_go_after_an_hour_and_orphans_after_a_day(stream: StoredStream) -> None:
    for part in (at(1, 3), at(2)):
        stream.append(part)
        stream.flush(seal=True)
    staged = stream.stage(at(9).to_batches())
    assert stream.compact() == 2
    assert len(segment_files(stream)) == 4  # two replaced, one merged, one staged
    with patch("time.time", return_value=time.time() + RETIRED_KEPT_S + 1):
        stream.compact()
    assert len(segment_files(stream)) == 2
    old = time.time() - ORPHANS_KEPT_S - 1
    os.utime(stream.path / staged.segments[0].file, (old, old))
    stream.compact()
    assert len(segment_files(stream)) == 1
    assert times(stream.snapshot()) == [1, 2, 3]


def test_a_stream_that_is_only_committed_to_sheds_what_merges_replaced(
    stream: StoredStream,
) -> None:
    staged = stream.stage(at(99).to_batches())
    old = time.time() - ORPHANS_KEPT_S - 1
    os.utime(stream.path / staged.segments[0].file, (old, old))
    began = time.time()
    with patch("os.fsync"), patch("os.fdatasync"):
        for turn in range(6 * FAN_IN):
            with patch("time.time", return_value=began + turn * RETIRED_KEPT_S / FAN_IN):
                stream.commit([stream.stage(at(turn).to_batches())])
    manifest = stream.snapshot().manifest
    assert len(manifest.retired) <= 3 * FAN_IN
    assert {path.name for path in segment_files(stream)} == {
        name for name in manifest.files if name.startswith("seg-")
    }
    assert times(stream.snapshot()) == list(range(6 * FAN_IN))


def test_a_failed_compaction_does_not_fail_the_commit(
    stream: StoredStream, caplog: pytest.LogCaptureFixture
) -> None:
    with patch("eventide.store.upkeep.compaction.write_segments", side_effect=OSError("disk full")):
        for turn in range(FAN_IN):
            stream.commit([stream.stage(at(turn).to_batches())])
    assert "could not be compacted: disk full" in caplog.text
    assert times(stream.snapshot()) == list(range(FAN_IN))


def test_a_failed_flush_does_not_fail_the_append(
    stream: StoredStream, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        patch("eventide.store.writing.append.LOG_BYTES", 1),
        patch("eventide.store.writing.append.flush", side_effect=OSError("disk full")),
    ):
        assert stream.append(at(1, 2)).rows == 2
    assert "could not be written to segments: disk full" in caplog.text
    assert stream.append(at(3)).first_seq == 2
    assert times(reopened(stream).snapshot()) == [1, 2, 3]


def test_late_data_is_merged_a_little_at_a_time(stream: StoredStream) -> None:
    with (
        patch("eventide.store.segments.segment_writer.LEAF_ROWS", 100),
        patch("eventide.store.reading.scan.SCAN_ROWS", 500),
    ):
        stream.commit([stream.stage(at(*range(0, 20_000, 2)).to_batches())])
        late = at(*range(1, 20_000, 200))  # one leaf over all of the time
        stream.commit([stream.stage(late.to_batches())])
        sizes = [batch.num_rows for batch in stream.snapshot().scan(["ts"])]
        assert max(sizes) <= 1200
        assert times(stream.snapshot()) == sorted([*range(0, 20_000, 2), *range(1, 20_000, 200)])


def test_a_range_scan_reads_only_the_leaves_it_needs(stream: StoredStream) -> None:
    with patch("eventide.store.segments.segment_writer.LEAF_ROWS", 10):
        stream.append(at(*range(100)))
        stream.flush(seal=True)
    path = segment_files(stream)[0]
    snapshot = stream.snapshot()
    with patch("eventide.store.reading.scan.StoredLeaf.read", autospec=True) as read:
        read.side_effect = lambda piece, *_: pa.record_batch({"ts": [piece.first_key[0]]})
        list(snapshot.scan(["ts"], TimeRange(25, 41)))
    assert [call.args[0].first_key[0] for call in read.call_args_list] == [20, 30, 40]
    path.unlink()
    assert scanned(snapshot, COLUMNS, TimeRange(100, 200)) == []


@pytest.mark.parametrize("columns", [[], ["colour"]])
def test_unknown_columns_are_refused_before_the_first_batch(
    stream: StoredStream, columns: list[str]
) -> None:
    with pytest.raises(SchemaError):
        stream.snapshot().scan(columns)


def test_a_damaged_segment_is_named(stream: StoredStream) -> None:
    stream.append(at(*range(1000)))
    stream.flush(seal=True)
    path = segment_files(stream)[0]
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    assert_damaged(reopened(stream).snapshot(), path, "bytes, and [0-9]+ were written")
    path.write_bytes(b"x" * len(content))
    assert_damaged(reopened(stream).snapshot(), path, "is damaged")
    path.unlink()
    assert_damaged(reopened(stream).snapshot(), path, "is missing")


def assert_damaged(snapshot: Snapshot, path: Path, message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        times(snapshot)
    assert str(caught.value).count(path.name) == 1  # said once, not wrapped in itself
    assert str(caught.value).count("hint: ") == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-20], "damaged"),
        (lambda _: b"", "damaged"),
        (lambda content: content.replace(b'"rows":1', b'"rows":2'), "checksum"),
        (lambda content: content.replace(b'"format":3', b'"format":99'), "format 99"),
        (lambda _: b"[]", "damaged"),
    ],
)
def test_a_damaged_manifest_is_named(stream: StoredStream, damage: object, message: str) -> None:
    stream.append(at(1))
    stream.flush(seal=True)
    path = max(stream.path.glob("manifest-*.json"))
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StoreError, match=message) as caught:
        reopened(stream)
    assert path.name in caught.value.message


def test_old_manifests_and_logs_are_swept(stream: StoredStream) -> None:
    for turn in range(20):
        stream.append(at(turn))
        stream.flush(seal=True)
    assert len(list(stream.path.glob("manifest-*.json"))) == KEPT_VERSIONS
    (log,) = stream.path.glob("*.log")
    assert log.name == stream.snapshot().manifest.log


@pytest.mark.parametrize("schema", [SCHEMA, Schema.of({"other": "bool"})])
def test_a_handle_notices_another_stream_in_its_place(
    stream: StoredStream, schema: Schema, tmp_path: Path
) -> None:
    store = Store.open(tmp_path / "db")
    store.drop_stream("cars")
    with pytest.raises(StoreError, match="holds no stream"):
        stream.snapshot()
    with pytest.raises(StoreError):
        stream.append(at(1))
    store.create_stream("cars", schema)
    for use in (stream.snapshot, stream.compact, lambda: stream.append(at(1))):
        with pytest.raises(StoreError, match="another created in its place"):
            use()
    assert store.stream("cars").schema == schema


def test_a_handle_is_its_name_folder_and_identity(stream: StoredStream, tmp_path: Path) -> None:
    again = Store.open(tmp_path / "db").stream("cars")
    assert again == stream
    assert again.schema == SCHEMA
    assert pickle.loads(pickle.dumps(again)) == stream


def test_a_producer_that_repeats_itself_adds_nothing(stream: StoredStream) -> None:
    assert stream.append(at(1, 2), producer="a", sequence=0).rows == 2
    assert stream.append(at(1, 2), producer="a", sequence=0).rows == 0
    assert stream.append(at(3), producer="b", sequence=0).rows == 1
    stream = reopened(stream)
    assert stream.append(at(3), producer="b", sequence=0).rows == 0
    stream.flush(seal=True)
    stream = reopened(stream)
    assert stream.append(at(1, 2), producer="a", sequence=0).rows == 0
    assert stream.append(at(4), producer="a", sequence=7).first_seq == 3
    assert times(stream.snapshot()) == [1, 2, 3, 4]
    with pytest.raises(StoreError, match="go together"):
        stream.append(at(5), producer="a")


def test_a_producer_may_send_nothing_and_still_count(stream: StoredStream) -> None:
    assert stream.append(at(), producer="a", sequence=5).rows == 0
    assert reopened(stream).append(at(1), producer="a", sequence=5).rows == 0
    assert times(stream.snapshot()) == []


class CountingDisk(Disk):
    """Counts the bytes that are written."""

    written = 0

    def write(self, descriptor: int, pieces: Sequence[Bytes], offset: int) -> None:
        self.written += sum(memoryview(piece).nbytes for piece in pieces)
        super().write(descriptor, pieces, offset)


@pytest.mark.parametrize("before", [0, 5])
def test_small_appends_write_only_themselves_after_a_long_value(
    tmp_path: Path, before: int
) -> None:
    stream = new_stream(tmp_path)
    for ts in range(before):
        stream.append(at(ts))
    stream.append(table([{"ts": before, "car": "x" * 20_000_000, "lane": 0}]))
    disk = CountingDisk()
    with using(disk):
        for ts in range(10, 20):
            stream.append(at(ts))
        assert disk.written < 20_000
        stream.flush()
        disk.written = 0
        stream = reopened(stream)
        for ts in range(20, 30):
            stream.append(at(ts))
        assert disk.written < 20_000
    assert times(reopened(stream).snapshot()) == [*range(before + 1), *range(10, 30)]


def test_a_log_that_begins_with_a_long_checkpoint_is_flushed_when_it_has_grown(
    tmp_path: Path,
) -> None:
    """Its length alone says nothing; what has come since does, in whichever process."""
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(table([{"ts": 0, "car": "x" * 20_000, "lane": 0}]))
        stream.flush()
        log = stream.snapshot().manifest.log
        for ts in range(1, 60):
            stream.append(at(ts))
            stream = reopened(stream)
        assert stream.snapshot().manifest.log != log
        assert stream.snapshot().view.log_growth < 6000
        assert times(stream.snapshot()) == list(range(60))


def test_a_leaf_of_many_columns_has_many_rows(tmp_path: Path) -> None:
    """Each column of a leaf costs something: few values of each would cost more than they hold."""
    names = [f"c{number}" for number in range(1024)]
    schema = Schema.of(dict.fromkeys(names, "float64"))
    stream = new_stream(tmp_path, schema=schema)
    values = pa.array(np.arange(500.0))
    ts = pa.array(range(500), pa.timestamp("us"))
    columns = [ts, *(values for _ in names)]
    stream.append(pa.Table.from_arrays(columns, schema=schema.arrow.remove(1)))
    stream.flush(seal=True)
    (segment,) = stream.snapshot().segments
    assert (segment.rows, segment.leaves) == (500, 1)
    (found,) = stream.snapshot().scan(["ts", "c1023"])
    assert found.column("c1023").to_pylist() == values.to_pylist()


def test_a_schema_is_pickled_without_what_was_made_of_it() -> None:
    schema = Schema.of({"car": "string"}, ())
    size = len(pickle.dumps(schema))
    assert (schema.names, schema.type_of("car").arrow) == (("car",), pa.string())
    assert schema.arrow.names == ["ts", "_seq", "car"]
    assert len(pickle.dumps(schema)) == size
    assert pickle.loads(pickle.dumps(schema)) == schema
    table_of = Schema(schema.attributes, ("car",), stored=False, timed=False)
    assert pickle.loads(pickle.dumps(table_of)) == table_of
