"""`repair` keeps what is whole, and says what is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from eventide.errors import StoreError
from eventide.store import Store, StreamOptions
from eventide.store.files.frame import Kind
from eventide.store.files.mapped import stamp_of as segment_stamp
from eventide.store.upkeep.repair import Repair, repair_stream
from eventide.store.upkeep.repair.salvage import newest_root
from eventide.store.upkeep.verify import verify_stream
from eventide.store.writing.log import RecordKind, read_records, stamp_of
from tests.store.events import SCHEMA, table, tiny_files
from tests.store.upkeep.damage import (
    Original,
    events_of,
    flipped,
    frames_of,
    make,
    opened,
    repaired,
    rows,
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    with tiny_files():
        yield make(tmp_path_factory.mktemp("original"))


def without_new(original: Original, folder: Path) -> list[object]:
    """Return which events of the original are left."""
    left = events_of(opened(folder))
    return [event for event in original.events if event in left]


def test_a_whole_stream_is_not_touched(original: Original, tmp_path: Path) -> None:
    folder = original.copy(tmp_path)
    assert repair_stream(folder) == Repair((), ())
    assert {path.name for path in folder.iterdir()} == {*original.files, "lock"}


@pytest.mark.parametrize("kind", [Kind.HEAD, Kind.NODE, Kind.ROOT])
def test_nothing_is_lost_if_only_the_index_is_damaged(
    original: Original, tmp_path: Path, kind: Kind
) -> None:
    segment = original.snapshot.view.segment
    assert segment is not None
    places = [start for each, start, _ in frames_of(original.stream.path, segment) if each == kind]
    for start in places:
        broken = flipped(original.files[segment.file], start + 50, 3)
        folder = original.copy(tmp_path, **{segment.file: broken})
        assert repaired(folder).losses == ()
        assert without_new(original, folder) == original.events


def test_a_damaged_leaf_loses_its_own_rows_only(original: Original, tmp_path: Path) -> None:
    segment = original.snapshot.manifest.segments[0]
    start = next(
        start for kind, start, _ in frames_of(original.stream.path, segment) if kind == Kind.LEAF
    )
    broken = flipped(original.files[segment.file], start + 200, 3)
    folder = original.copy(tmp_path, **{segment.file: broken})
    (loss,) = repaired(folder).losses
    assert loss.part is not None
    assert str(loss).startswith(f"{segment.file}: {loss.part.rows} events, 1970-01-01 00:00:00")
    assert 0 < loss.part.rows <= 3
    left = without_new(original, folder)
    assert len(left) == len(original.events) - loss.part.rows
    lost = [event for event in original.events if event not in left]
    assert all(loss.part.ts_min <= event[0] <= loss.part.ts_max for event in lost)  # type: ignore[operator]


def test_a_leaf_that_late_events_rewrote_is_found_in_its_old_place(
    original: Original, tmp_path: Path
) -> None:
    segment = original.snapshot.view.segment
    assert segment is not None
    leaves = [
        start for kind, start, _ in frames_of(original.stream.path, segment) if kind == Kind.LEAF
    ]
    broken = flipped(original.files[segment.file], max(leaves) + 200, 3)
    folder = original.copy(tmp_path, **{segment.file: broken})
    (loss,) = repaired(folder).losses
    assert loss.part is not None
    assert loss.part.rows <= 3  # the late ones; the others are in the leaf before


def test_a_missing_segment_is_taken_off_the_list(original: Original, tmp_path: Path) -> None:
    segment = original.snapshot.manifest.segments[0]
    folder = original.copy(tmp_path, **{segment.file: None})
    (loss,) = repaired(folder).losses
    assert loss.part is not None
    assert (loss.part.rows, loss.part.ts_min, loss.part.ts_max) == (
        *(segment.rows, segment.ts_min, segment.ts_max),
    )
    assert len(without_new(original, folder)) == len(original.events) - segment.rows


def test_an_index_is_taken_off_its_segment(original: Original, tmp_path: Path) -> None:
    segment = original.snapshot.manifest.segments[0]
    (index,) = segment.indexes
    for content in (None, b"", flipped(original.files[index.file], 100, 0)):
        folder = original.copy(tmp_path, **{index.file: content})
        done = repaired(folder)
        assert done.losses == ()
        assert f"{index.file}: take the index of car off its segment" in done.steps
        assert done.hints == ("run `eventide compact` to build it again",)
        assert "hint" not in "\n".join(done.steps)
        assert without_new(original, folder) == original.events


def test_a_lost_log_leaves_what_is_in_segments(original: Original, tmp_path: Path) -> None:
    name = original.snapshot.manifest.log
    stored = sum(segment.rows for segment in original.snapshot.segments)
    for content in (None, b"", b"\1" * 600):
        folder = original.copy(tmp_path, **{name: content})
        done = repaired(folder)
        assert done.losses
        assert len(without_new(original, folder)) == stored


def test_leaves_behind_the_last_root_are_taken_in(original: Original, tmp_path: Path) -> None:
    segment, name = original.snapshot.view.segment, original.snapshot.manifest.log
    assert segment is not None
    broken = flipped(original.files[segment.file], segment.root + 50, 1)
    before = newest_root(
        pa.py_buffer(broken), segment_stamp(segment.file), segment.file, segment.form
    )
    assert before is not None
    assert before.rows < segment.rows  # or nothing would have to be taken in
    folder = original.copy(tmp_path, **{name: None, segment.file: broken})
    repaired(folder)
    stored = sum(each.rows for each in original.snapshot.segments)
    assert len(without_new(original, folder)) == stored


@pytest.mark.parametrize("flushed", [4, 7])
def test_leaves_behind_the_last_root_of_a_first_segment_are_taken_in(
    tmp_path: Path, flushed: int
) -> None:
    """Its numbers begin at 0, as those of a staged segment do."""
    with tiny_files():
        stream = Store.open(tmp_path).create_stream("cars", SCHEMA, StreamOptions())
        for start in (0, 100):
            stream.append(table(rows(start, flushed)))
            stream.flush()
        segment, events = stream.snapshot().view.segment, events_of(stream.snapshot())
        assert segment is not None
        file = stream.path / segment.file
        content = flipped(file.read_bytes(), segment.root + 50, 1)
        file.unlink()
        file.write_bytes(content)
        (log,) = stream.path.glob("log-*.log")
        log.unlink()
        planned = repair_stream(stream.path, dry_run=True)
        assert repair_stream(stream.path) == planned
        assert events_of(opened(stream.path)) == events
        assert repair_stream(stream.path) == Repair((), ())


def test_a_damaged_manifest_still_tells_where_staged_events_belong(tmp_path: Path) -> None:
    stream = Store.open(tmp_path).create_stream("cars", SCHEMA, StreamOptions())
    for start in (0, 100, 200):
        stream.commit([stream.stage(table(rows(start, 4)).to_batches())])
    events = events_of(stream.snapshot())
    newest = max(stream.path.glob("manifest-*.json"))
    newest.write_bytes(newest.read_bytes().replace(b'"next_seq":12', b'"next_seq":13'))
    done = repair_stream(stream)
    assert any("take in 4 events" in step for step in done.steps)
    assert events_of(stream.snapshot()) == events
    assert stream.append(table(rows(300, 1))).first_seq == 12


def test_staged_events_that_nobody_committed_stay_out(tmp_path: Path) -> None:
    stream = Store.open(tmp_path).create_stream("cars", SCHEMA, StreamOptions())
    stream.stage(table(rows(0, 4)).to_batches())
    (log,) = stream.path.glob("log-*.log")
    log.unlink()
    repair_stream(stream)
    assert stream.snapshot().row_count == 0


def test_staged_events_find_their_place_without_a_manifest(
    original: Original, tmp_path: Path
) -> None:
    gone = {name: None for name in original.files if name.startswith("manifest-")}
    folder = original.copy(tmp_path, **gone)
    for number, segment in enumerate(original.snapshot.segments):
        os.utime(folder / segment.file, (number, number))
    repaired(folder)
    assert without_new(original, folder) == original.events


def test_manifests_of_another_format_are_not_damaged(original: Original, tmp_path: Path) -> None:
    later: dict[str, bytes | None] = {
        name: content.replace(b'"format":3', b'"format":9')
        for name, content in original.files.items()
        if name.startswith("manifest-")
    }
    with pytest.raises(StoreError, match="has format 9"):
        repair_stream(original.copy(tmp_path, **later))


def test_a_missing_log_is_said_to_be_missing(original: Original, tmp_path: Path) -> None:
    name = original.snapshot.manifest.log
    folder = original.copy(tmp_path, **{name: None})
    with pytest.raises(StoreError, match=f"{name} is missing"):
        opened(folder)
    assert [str(each) for each in verify_stream(folder)] == [f"{name} is missing"]
    steps = repair_stream(folder, dry_run=True).steps
    assert f"{name} is missing; nothing of it can be kept" in steps


def test_an_unreadable_log_is_one_place(original: Original, tmp_path: Path) -> None:
    name = original.snapshot.manifest.log
    folder = original.copy(tmp_path, **{name: b"\1" * 600})
    (found,) = verify_stream(folder)
    assert found.file == name


def test_everything_damaged_at_once(original: Original, tmp_path: Path) -> None:
    broken: dict[str, bytes | None] = {
        name: flipped(content, len(content) // 2, 1)
        for name, content in original.files.items()
        if name.endswith(".ix")
    }
    for segment in original.snapshot.segments:
        content = original.files[segment.file]
        frames = list(frames_of(original.stream.path, segment))
        for wanted in (Kind.LEAF, Kind.NODE):
            start, end = next((start, end) for kind, start, end in frames if kind == wanted)
            content = flipped(content, (start + end) // 2, 1)
        broken[segment.file] = content
    log = original.snapshot.manifest.log
    broken[log] = flipped(original.files[log], first_of_events(original) + 100, 1)
    assert {*broken} == {name for name in original.files if not name.startswith("manifest-")}
    folder = original.copy(tmp_path, **broken)
    done = repaired(folder)
    left = without_new(original, folder)
    files = [*(segment.file for segment in original.snapshot.manifest.segments), log]
    for name in files:
        assert any(str(loss).startswith(f"{name}: ") for loss in done.losses), name
    assert len(original.events) // 2 < len(left) < len(original.events)


def first_of_events(original: Original) -> int:
    """Return where the first record of the log begins whose events are in no segment."""
    name, schema = original.snapshot.manifest.log, original.snapshot.schema.arrow
    schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
    records = list(read_records(original.files[name], stamp_of(name), schemas, synced=True))
    checkpoints = [each for each in records if each.kind == RecordKind.CHECKPOINT]
    assert records[-1].kind == RecordKind.EVENTS
    return checkpoints[-1].end
