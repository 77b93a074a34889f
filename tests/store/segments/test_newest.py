"""The newest version is noted, and whatever happened to the note, it is the newest that is read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from eventide.errors import StoreError
from eventide.store import StoredStream
from eventide.store.files.lock import LOCK_FILE, changed_ns, note_newest, noted_newest
from eventide.store.segments.manifest import load_manifest, manifest_path, versions_in
from eventide.store.upkeep.repair import repair_stream
from tests.store.events import at, new_stream, reopened, times


@pytest.fixture
def stream(tmp_path: Path) -> StoredStream:
    """A stream of three versions and more."""
    stream = new_stream(tmp_path)
    for ts in range(3):
        stream.append(at(ts))
        stream.flush(seal=True)
    return stream


def test_a_folder_is_not_listed_to_open_a_stream(stream: StoredStream) -> None:
    newest = max(versions_in(stream.path))
    assert noted_newest(stream.path) == newest
    with patch("os.listdir", side_effect=AssertionError("this may take long")):
        assert load_manifest(stream.path).version == newest


def test_appends_that_commit_nothing_note_nothing(stream: StoredStream) -> None:
    stream.append(at(7))
    with patch("eventide.store.writing.open_stream.note_newest", side_effect=AssertionError):
        stream.append(at(8))
    assert noted_newest(stream.path) == max(versions_in(stream.path))


@pytest.mark.parametrize(
    "note", [b"", b"7", b"\xff\0", b"0 0\n", b"-1 0", b"3 x", b"1 2 3", b"9" * 5000]
)
def test_a_note_that_makes_no_sense_is_no_note(stream: StoredStream, note: bytes) -> None:
    (stream.path / LOCK_FILE).write_bytes(note)
    os.utime(stream.path, ns=(0, 0))
    assert times(reopened(stream).snapshot()) == [0, 1, 2]


@pytest.mark.parametrize("by", [-2, -1, 1, 5])
def test_a_note_of_another_version_is_no_note(stream: StoredStream, by: int) -> None:
    newest = max(versions_in(stream.path))
    note_newest(stream.path, newest + by, changed_ns(stream.path))
    assert load_manifest(stream.path).version == newest


def test_a_note_from_before_the_folder_changed_is_no_note(stream: StoredStream) -> None:
    """As a crash leaves it, or a process that knows of no notes; here even with a gap."""
    newest = max(versions_in(stream.path))
    content = manifest_path(stream.path, newest).read_bytes()
    os.utime(stream.path, ns=(1, 1))
    note_newest(stream.path, newest, 1)
    assert noted_newest(stream.path) == newest
    manifest_path(stream.path, newest + 2).write_bytes(content)
    assert noted_newest(stream.path) is None
    assert versions_in(stream.path)[-1] == newest + 2


def test_a_copy_is_read_with_the_note_or_without(stream: StoredStream, tmp_path: Path) -> None:
    database = stream.path.parents[1]
    for number, keep_times in enumerate((True, False)):
        copy = tmp_path / str(number)
        shutil.copytree(database, copy, copy_function=shutil.copy2 if keep_times else shutil.copy)
        there = StoredStream(stream.name, copy / "streams" / stream.name, stream.stream_id)
        assert times(there.snapshot()) == [0, 1, 2]


def test_a_repaired_stream_is_read_from_its_newest_version(stream: StoredStream) -> None:
    newest = max(versions_in(stream.path))
    manifest_path(stream.path, newest).write_bytes(b"{}")
    with pytest.raises(StoreError, match="damaged"):
        load_manifest(stream.path)
    repair_stream(stream.path)
    assert load_manifest(stream.path).version == newest + 1
    assert times(reopened(stream).snapshot()) == [0, 1, 2]


def test_a_folder_that_cannot_be_written_to_is_read_without_a_note(stream: StoredStream) -> None:
    (stream.path / LOCK_FILE).unlink()
    assert noted_newest(stream.path) is None
    assert times(reopened(stream).snapshot()) == [0, 1, 2]
