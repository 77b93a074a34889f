"""A log that is no longer needed is written over by the next but one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest

from eventide.errors import StoreError
from eventide.store import Snapshot, StoredStream, StreamOptions
from eventide.store.segments.manifest import decode_manifest, encode_manifest, manifest_path
from eventide.store.upkeep.repair import repair_stream
from eventide.store.upkeep.verify import verify_stream
from eventide.store.writing.log import SPARE_NAME, stamp_of
from eventide.store.writing.log_sectors import (
    CONTENT,
    FILE_SIZE,
    MOST_LOGS,
    SECTOR,
    in_sectors,
    is_unwritten,
    logs_before,
    next_stamp,
    tag_of,
)
from eventide.store.writing.open_stream import OPENED, OpenStream, opened
from tests.store.events import at, new_stream, reopened, times, tiny_files
from tests.store.writing.faults import FailingDisk, using
from tests.store.writing.old_logs import rewritten_as_old
from tests.store.writing.test_failed_appends import BROKEN, BrokenDisk


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[StoredStream]:
    with tiny_files():
        yield new_stream(tmp_path)


def log_of(stream: StoredStream) -> Path:
    return stream.path / stream.snapshot().manifest.log


def fill(stream: StoredStream, logs: int, start: int = 0) -> int:
    """Append until so many new logs have begun; return from where on to go on."""
    seen = {log_of(stream)}
    while len(seen) <= logs:
        stream.append(at(start))
        start += 1
        seen.add(log_of(stream))
    stream.append(at(start))
    return start + 1


def is_recycled(stream: StoredStream) -> bool:
    return logs_before(stamp_of(log_of(stream).name)) > 0


def test_the_file_of_a_log_is_used_again(stream: StoredStream) -> None:
    inodes, start = [], 0
    for _ in range(6):
        inodes.append(log_of(stream).stat().st_ino)
        start = fill(stream, 1, start)
        assert [each.severity for each in verify_stream(stream)] == []
    assert inodes == [inodes[0], inodes[1]] * 3
    assert len(list(stream.path.glob("log*"))) == 2
    assert log_of(stream).stat().st_size > stream.snapshot().view.log_end
    assert times(stream.snapshot()) == list(range(start))
    assert times(Snapshot(stream.path, OpenStream(stream.path).view())) == list(range(start))


def test_another_process_goes_on_with_such_a_log(stream: StoredStream) -> None:
    start = fill(stream, 3)
    assert is_recycled(stream)
    other = OpenStream(stream.path)
    for turn in range(start, start + 30, 3):
        stream.append(at(turn))
        assert times(Snapshot(stream.path, other.view())) == list(range(turn + 1))
        with patch.dict(OPENED, {stream.path: other}):
            stream.append(at(turn + 1))
            stream.append(at(turn + 2))
        assert times(stream.snapshot()) == list(range(turn + 3))
    again = reopened(stream)
    assert times(again.snapshot()) == list(range(start + 30))
    assert all(each.severity == "info" for each in verify_stream(again))


def stamps_with_alike_tags() -> Iterator[bytes]:
    """Stamps of files in which the tags of the first two logs have the same last byte."""
    for number in count():
        stamp = number.to_bytes(FILE_SIZE, "big") + bytes(4)
        following = next_stamp(stamp)
        assert following is not None
        if tag_of(stamp) >> 56 == tag_of(following) >> 56:
            yield stamp


def test_another_process_sees_what_is_in_a_log_whose_tag_is_like_that_of_the_one_before(
    tmp_path: Path,
) -> None:
    """One file in 256 has such logs: their sectors were taken for unwritten, and written over."""
    stamps = stamps_with_alike_tags()
    with (
        tiny_files(),
        patch("eventide.store.writing.log.first_stamp", side_effect=lambda: next(stamps)),
    ):
        test_another_process_goes_on_with_such_a_log(new_stream(tmp_path))


def test_no_log_takes_its_own_sectors_for_unwritten() -> None:
    file = bytes(FILE_SIZE)
    alike = 0
    for number in range(MOST_LOGS):
        stamp = file + number.to_bytes(4, "big")
        before = [file + each.to_bytes(4, "big") for each in range(number)]
        alike += any(tag_of(each) >> 56 == tag_of(stamp) >> 56 for each in before)
        (sector,) = in_sectors(bytes([1]) * CONTENT, stamp)
        assert not is_unwritten(sector.tobytes(), stamp)
        if before:
            (older,) = in_sectors(bytes([1]) * CONTENT, before[-1])
            assert is_unwritten(older.tobytes(), stamp)
    assert alike > 0


def test_a_reader_reads_only_what_is_new(stream: StoredStream) -> None:
    fill(stream, 3)
    reader = OpenStream(stream.path)
    held = reader.view()
    assert reader.view() is held
    with patch.object(OpenStream, "read", side_effect=AssertionError("nothing has changed")):
        assert reader.view() is held


def test_the_spare_of_a_process_that_is_gone_is_not_used(stream: StoredStream) -> None:
    start = fill(stream, 2)
    left = stream.path / SPARE_NAME
    number = left.stat().st_ino
    again = reopened(stream)
    start = fill(again, 1, start)
    assert log_of(again).stat().st_ino != number
    fill(again, 3, start)
    assert is_recycled(again)
    assert len(list(stream.path.glob("log*"))) == 2, "it was replaced"


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_spare_that_another_process_has_taken_is_left_alone(
    stream: StoredStream, how: str
) -> None:
    start = fill(stream, 1)
    spare = stream.path / SPARE_NAME
    spare.unlink()
    if how == "replaced":
        spare.write_bytes(b"of another")
    start = fill(stream, 1, start)
    assert not is_recycled(stream)
    assert times(reopened(stream).snapshot()) == list(range(start))


def test_short_logs_are_not_kept(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    for ts in range(4):
        stream.append(at(ts))
        stream.flush(seal=True)
    assert not (stream.path / SPARE_NAME).exists()


def test_zeros_behind_the_end_are_room(stream: StoredStream) -> None:
    stream.append(at(1))
    log = log_of(stream)
    end = log.stat().st_size
    os.truncate(log, end + 20 * SECTOR)
    again = reopened(stream)
    assert times(again.snapshot()) == [1]
    again.append(at(2))
    assert times(reopened(again).snapshot()) == [1, 2]


def test_a_log_that_could_not_be_synced_is_not_kept(stream: StoredStream) -> None:
    start = fill(stream, 2)
    log = log_of(stream)

    with using(BrokenDisk("sync", "truncate")), pytest.raises(StoreError):
        stream.append(at(99))
    assert stream.append(at(start)).rows == 1
    assert log_of(stream) != log
    assert not log.exists()
    held = opened(stream.path).spare
    assert held is None
    assert times(reopened(stream).snapshot()) == list(range(start + 1))


def test_a_failed_append_leaves_nothing_in_such_a_log(stream: StoredStream) -> None:
    """The next record is shorter: what is left of the failed one must not follow it."""
    start = fill(stream, 3)

    with using(FailingDisk(2, BROKEN, dead=False)), pytest.raises(StoreError):
        stream.append(at(*range(100, 107)))
    for ts in range(start, start + 4):
        stream.append(at(ts))
        assert times(Snapshot(stream.path, OpenStream(stream.path).view()))[-1] == ts


# --- logs of the format before --------------------------------------------------------------


def old_stream(folder: Path, durability: str = "batch") -> tuple[StoredStream, list[int]]:
    """Return a stream with three events in a log as an earlier Eventide wrote it."""
    stream = new_stream(folder, options=StreamOptions.from_json({"durability": durability}))
    for ts in range(3):
        stream.append(at(ts))
    ends = rewritten_as_old(stream)
    path = manifest_path(stream.path, 1)
    manifest = decode_manifest(path.read_bytes(), path)
    path.write_bytes(encode_manifest(replace(manifest, log_end=ends[0])))
    return reopened(stream), ends


def test_an_old_log_is_read_and_then_followed_by_a_new_one(tmp_path: Path) -> None:
    stream, ends = old_stream(tmp_path)
    log = log_of(stream)
    assert stream.snapshot().view.log_end == ends[-1]
    assert times(stream.snapshot()) == [0, 1, 2]
    assert list(verify_stream(stream)) == []
    stream.append(at(3))
    assert log_of(stream) != log
    assert not log.exists()
    assert times(reopened(stream).snapshot()) == [0, 1, 2, 3]


def test_an_old_log_grows_while_it_is_read(tmp_path: Path) -> None:
    stream, ends = old_stream(tmp_path)
    log = log_of(stream)
    content = log.read_bytes()
    log.write_bytes(content[: ends[1]])
    reader = OpenStream(stream.path)
    assert times(Snapshot(stream.path, reader.view())) == [0]
    log.write_bytes(content[: ends[1] + 60])
    assert times(Snapshot(stream.path, reader.view())) == [0]
    log.write_bytes(content)
    assert times(Snapshot(stream.path, reader.view())) == [0, 1, 2]


@pytest.mark.parametrize("durability", ["batch", "none"])
def test_an_old_log_that_was_torn(tmp_path: Path, durability: str) -> None:
    stream, ends = old_stream(tmp_path, durability)
    log = log_of(stream)
    content = log.read_bytes()
    for torn in (content[: ends[-2] + 20], content[: ends[-2]] + bytes(700)):
        log.write_bytes(torn)
        assert times(reopened(stream).snapshot()) == [0, 1]
    (found,) = verify_stream(stream.path)
    assert "700 bytes of a record that was never acknowledged" in found.what
    stream = reopened(stream)
    stream.append(at(7))
    assert times(reopened(stream).snapshot()) == [0, 1, 7]


@pytest.mark.parametrize("place", [0, 60, 300])
def test_an_old_log_that_is_damaged_is_repaired(tmp_path: Path, place: int) -> None:
    stream, ends = old_stream(tmp_path)
    log = log_of(stream)
    content = bytearray(log.read_bytes())
    content[ends[1] + place] ^= 4
    log.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        reopened(stream)
    done = repair_stream(stream.path)
    assert [str(loss) for loss in done.losses] == [f"{log.name}: 1 events, number 1"]
    again = reopened(stream)
    assert times(again.snapshot()) == [0, 2]
    assert again.append(at(5)).first_seq == 3
