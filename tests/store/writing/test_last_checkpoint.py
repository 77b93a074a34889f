"""A log is read from its last checkpoint on; if anything is odd there, all of it is."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from eventide.errors import StoreError
from eventide.store import Snapshot, StoredStream
from eventide.store.upkeep.verify import verify_stream
from eventide.store.writing.log import READ_BYTES, last_checkpoint, stamp_of
from eventide.store.writing.log_sectors import SECTOR
from eventide.store.writing.open_stream import OpenStream
from tests.store.events import at, new_stream, reopened, times


@pytest.fixture
def stream(tmp_path: Path) -> StoredStream:
    """A stream whose log has a checkpoint, events, a checkpoint, events."""
    stream = new_stream(tmp_path)
    for ts in range(4):
        stream.append(at(ts))
    stream.flush()
    for ts in range(4, 7):
        stream.append(at(ts))
    return stream


def log_of(stream: StoredStream) -> Path:
    return stream.path / stream.snapshot().manifest.log


def checkpoint_in(log: Path) -> tuple[int, int]:
    with log.open("rb") as file:
        return last_checkpoint(file, log.stat().st_size, stamp_of(log.name))


def flip(path: Path, place: int) -> None:
    """Change one bit."""
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def test_a_log_is_read_from_its_last_checkpoint_on(stream: StoredStream) -> None:
    start, number = checkpoint_in(log_of(stream))
    assert (start > 0, number) == (True, 5)
    whole = OpenStream(stream.path).refreshed(whole=True)
    short = OpenStream(stream.path).view()
    assert (short.log_end, short.log_records, short.log_header, short.next_seq) == (
        *(whole.log_end, whole.log_records, whole.log_header, whole.next_seq),
    )
    assert start < short.log_start == whole.log_start
    assert times(Snapshot(stream.path, short)) == times(Snapshot(stream.path, whole))
    again = reopened(stream)
    again.append(at(7))
    assert times(reopened(again).snapshot()) == list(range(8))


def test_damage_before_the_checkpoint_takes_nothing_away_and_is_found(stream: StoredStream) -> None:
    log = log_of(stream)
    flip(log, 2 * SECTOR + 100)
    assert times(reopened(stream).snapshot()) == list(range(7))
    assert [each.severity for each in verify_stream(stream.path)].count("damage") == 1


@pytest.mark.parametrize("behind", [20, 100, SECTOR])
def test_damage_from_the_checkpoint_on_is_refused(stream: StoredStream, behind: int) -> None:
    log = log_of(stream)
    flip(log, checkpoint_in(log)[0] + behind)
    with pytest.raises(StoreError, match="is damaged"):
        reopened(stream)


def test_a_checkpoint_that_was_torn_never_was(tmp_path: Path) -> None:
    """Its header is whole, and its last sectors are as before: room."""
    stream = new_stream(tmp_path)
    for ts in range(4):
        stream.append(at(ts))
    log = log_of(stream)
    size = log.stat().st_size
    stream.flush()
    content = log.read_bytes()
    for kept in range(size, len(content), SECTOR):
        log.write_bytes(content[:kept].ljust(len(content), b"\0"))
        assert times(reopened(stream).snapshot()) == [0, 1, 2, 3]
        log.write_bytes(content[:kept])
        assert times(reopened(stream).snapshot()) == [0, 1, 2, 3]
    again = reopened(stream)
    again.append(at(9))
    assert times(reopened(again).snapshot()) == [0, 1, 2, 3, 9]


def test_a_long_hole_before_more_of_the_log_is_damage(stream: StoredStream) -> None:
    """What was lost is longer than what is read at once: more follows all the same."""
    log, end = log_of(stream), log_of(stream).stat().st_size
    content = log.read_bytes()
    hole = bytes(3 * READ_BYTES)
    log.write_bytes(content + hole)
    assert times(reopened(stream).snapshot()) == list(range(7))
    log.write_bytes(content + hole + content[end - SECTOR :])
    with pytest.raises(StoreError, match="is damaged"):
        reopened(stream)


def test_what_was_read_is_not_read_again(stream: StoredStream) -> None:
    reader = OpenStream(stream.path)
    reader.view()
    stream.append(at(7))
    with patch(
        "eventide.store.writing.open_stream.last_checkpoint", side_effect=AssertionError("known")
    ):
        assert times(Snapshot(stream.path, reader.view())) == list(range(8))
