"""`repair` where manifests are missing, or records of the log are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.errors import StoreError
from eventide.store import Store, StoredStream, StreamOptions
from eventide.store.files.disk import AppendFile
from eventide.store.upkeep.repair import repair_stream
from eventide.store.upkeep.verify import Finding, verify_stream
from eventide.store.writing.log import LogWriter, RecordKind
from tests.store.events import SCHEMA, table
from tests.store.upkeep.damage import Event, events_of, flipped, opened, repaired, rows

LEFT_OVER = "not part of the stream: staged, or left over"


def is_all_there(events: list[Event], stream: StoredStream) -> bool:
    """Whether a stream has these events, once, and the five that `repaired` adds."""
    left = events_of(opened(stream.path))
    return len(left) == len(events) + 5 and set(events) <= set(left)


def without(folder: Path, pattern: str) -> None:
    """Delete files of a stream."""
    for path in folder.glob(pattern):
        path.unlink()


def test_a_stream_without_a_manifest_gets_one(tmp_path: Path) -> None:
    for content in (None, b"{"):
        stream = filled(tmp_path / str(content))
        events = events_of(stream.snapshot())
        for path in stream.path.glob("manifest-*.json"):
            path.unlink()
            if content is not None:
                path.write_bytes(content)
        done = repaired(stream.path)
        assert "no version of the manifest can be read: make one from the segments" in done.steps
        assert is_all_there(events, stream)
        assert opened(stream.path).schema == SCHEMA


def test_nothing_that_tells_the_columns(tmp_path: Path) -> None:
    stream = Store.open(tmp_path).create_stream("cars", SCHEMA, StreamOptions())
    stream.append(table(rows(0, 4)))
    without(stream.path, "manifest-*")
    with pytest.raises(StoreError, match="no segment is there that tells the columns"):
        repair_stream(stream)


def filled(folder: Path) -> StoredStream:
    """Return a stream of several sealed segments, an open one, and a log."""
    stream = Store.open(folder).create_stream("cars", SCHEMA, StreamOptions())
    for start in range(0, 50, 10):
        stream.append(table(rows(start, 4)))
        stream.flush(seal=True)
    stream.append(table(rows(100, 4)))
    stream.flush()
    stream.append(table(rows(110, 3)))
    return stream


@pytest.mark.parametrize("deleted", [1, 3, 5])
def test_a_missing_newest_manifest(tmp_path: Path, deleted: int) -> None:
    stream = filled(tmp_path)
    events = events_of(stream.snapshot())
    for path in sorted(stream.path.glob("manifest-*"))[-deleted:]:
        path.unlink()
    found = "\n".join(map(str, verify_stream(stream.path)))
    assert "a newer version seems to be missing" in found
    done = repaired(stream.path)
    assert any(step.startswith("the newest manifest is missing") for step in done.steps)
    assert is_all_there(events, stream)


@pytest.mark.parametrize("deleted", [1, 2, 3])
@pytest.mark.parametrize("is_swept", [False, True])
def test_a_missing_newest_manifest_after_a_compaction(
    tmp_path: Path, deleted: int, is_swept: bool
) -> None:
    stream = filled(tmp_path)
    stream.flush(seal=True)
    stream.compact()
    retired = [each.file for each in stream.snapshot().manifest.retired]
    assert retired
    stream.append(table(rows(200, 3)))
    stream.flush(seal=True)
    events = events_of(stream.snapshot())
    for path in sorted(stream.path.glob("manifest-*"))[-deleted:]:
        path.unlink()
    for name in retired if is_swept else ():
        (stream.path / name).unlink()
    repaired(stream.path)
    assert is_all_there(events, stream)


def test_part_of_a_merged_segment_is_taken_in(tmp_path: Path) -> None:
    stream = filled(tmp_path)
    stream.flush(seal=True)
    stream.compact()
    stream.append(table(rows(200, 3)))
    stream.flush(seal=True)
    events = events_of(stream.snapshot())
    retired = [each.file for each in stream.snapshot().manifest.retired if ".ev" in each.file]
    for path in sorted(stream.path.glob("manifest-*"))[-2:]:
        path.unlink()
    (stream.path / retired[0]).unlink()
    repaired(stream.path)
    assert is_all_there(events, stream)


def logged(folder: Path) -> tuple[StoredStream, Path, list[int]]:
    """Return a stream of 20 records of 3 events, its log, and where those records begin."""
    stream = Store.open(folder).create_stream("cars", SCHEMA, StreamOptions())
    (log,) = stream.path.glob("log-*.log")
    starts = []
    for number in range(20):
        starts.append(log.stat().st_size)
        stream.append(table(rows(10 * number, 3)), producer=f"p{number % 4}", sequence=number)
    return stream, log, starts


@pytest.mark.parametrize("place", [6, 60, 300])
def test_records_behind_a_damaged_one_are_kept(tmp_path: Path, place: int) -> None:
    stream, log, starts = logged(tmp_path)
    events = events_of(stream.snapshot())
    log.write_bytes(flipped(log.read_bytes(), starts[10] + place, 2))
    done = repair_stream(stream)
    assert [str(loss) for loss in done.losses] == [f"{log.name}: 3 events, numbers 30 to 32"]
    assert events_of(opened(stream.path)) == events[:30] + events[33:]
    producers = opened(stream.path).view.producers
    assert producers == {"p0": 16, "p1": 17, "p2": 18, "p3": 19}
    assert list(verify_stream(stream.path)) == [
        Finding(f"{log.name}.damaged", None, LEFT_OVER, "info")
    ]
    assert stream.append(table(rows(300, 1))).first_seq == 60


def test_the_numbers_of_a_lost_last_record_are_not_given_out_again(tmp_path: Path) -> None:
    stream, log, starts = logged(tmp_path)
    log.write_bytes(flipped(log.read_bytes(), starts[-1] + 100, 2))
    (loss,) = repair_stream(stream).losses
    assert f"what only {log.name} had behind byte {starts[-1]}: at most" in str(loss)
    assert opened(stream.path).row_count == 57
    assert stream.append(table(rows(300, 1))).first_seq >= 60


def test_a_damaged_first_checkpoint_is_skipped(tmp_path: Path) -> None:
    stream, log, _ = logged(tmp_path)
    events = events_of(stream.snapshot())
    log.write_bytes(flipped(log.read_bytes(), 60, 2))
    (loss,) = repair_stream(stream).losses
    assert str(loss) == f"what only the first record of {log.name} had"
    assert events_of(opened(stream.path)) == events


def test_a_checkpoint_stands_for_a_damaged_record_before_it(tmp_path: Path) -> None:
    stream, log, starts = logged(tmp_path)
    stream.flush()
    stream.append(table(rows(300, 2)))
    events = events_of(stream.snapshot())
    log.write_bytes(flipped(log.read_bytes(), starts[10] + 60, 2))
    assert repaired(stream.path).losses == ()
    assert is_all_there(events, stream)


def test_a_damaged_checkpoint_in_the_middle(tmp_path: Path) -> None:
    stream, log, _ = logged(tmp_path)
    start = log.stat().st_size
    stream.flush()
    for number in (300, 310):
        stream.append(table(rows(number, 2)))
    events = events_of(stream.snapshot())
    log.write_bytes(flipped(log.read_bytes(), start + 60, 2))
    assert repaired(stream.path).losses == ()
    assert is_all_there(events, stream)


@pytest.mark.parametrize("producers", [["p"], {"p": 1.5}, {"p": [1]}, {"p": float("inf")}, 7])
def test_a_checkpoint_of_wrong_types(tmp_path: Path, producers: object) -> None:
    stream, log, _ = logged(tmp_path)
    events = events_of(stream.snapshot())
    facts, batches = stream.snapshot().view.checkpoint()
    writer = LogWriter(AppendFile.open(log), 21)
    writer.append(RecordKind.CHECKPOINT, {**facts, "producers": producers}, batches)
    writer.file.close()
    with pytest.raises(StoreError, match="says what cannot be"):
        opened(stream.path)
    (found,) = verify_stream(stream.path)
    assert found.file == log.name
    repaired(stream.path)
    assert is_all_there(events, stream)


@pytest.mark.parametrize("wrong", [{"sequence": 1.5}, {"producer": ["p"]}, {"first_seq": None}])
def test_events_of_wrong_types(tmp_path: Path, wrong: dict[str, object]) -> None:
    stream, log, _ = logged(tmp_path)
    events = events_of(stream.snapshot())
    writer = LogWriter(AppendFile.open(log), 21)
    facts = {"first_seq": 60, "producer": "p", "sequence": 1, **wrong}
    writer.append(RecordKind.EVENTS, facts, table(rows(300, 2)).to_batches())
    writer.file.close()
    with pytest.raises(StoreError, match="says what cannot be"):
        opened(stream.path)
    repaired(stream.path)
    assert is_all_there(events, stream)
