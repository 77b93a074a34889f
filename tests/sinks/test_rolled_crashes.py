"""Whatever fails and whenever the process dies, files hold each row once, in order."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import SinkError
from eventide.sinks import JsonLines, Parquet
from eventide.sinks.rolled import RolledFiles
from eventide.store.files.disk import Disk
from tests.sinks.rows import SCHEMA, die, rows_between, written
from tests.store.writing.faults import (
    FailingDisk,
    RecordingDisk,
    crash_images,
    lay_out,
    using,
)

FULL = OSError(errno.ENOSPC, "No space left on device")
KINDS = [JsonLines, Parquet]
FILE_ROWS = 5


@pytest.fixture(scope="module", autouse=True)
def _without_waiting() -> Iterator[None]:
    """This machine stays up: what was synced is seen in the calls."""
    with patch("os.fsync"), patch("os.fdatasync"):
        yield


class Crash(BaseException):
    """The process dies: no handler of ours cleans up after this one."""


class RenamedAndFailed(Disk):
    """Renames a file, and fails all the same, as a server of files may."""

    def __init__(self) -> None:
        self.failed = False

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        super().rename(source, target)
        if not self.failed:
            self.failed = True
            raise FULL


class HandOver:
    """Hands rows to a sink as a live query does, over failures and restarts."""

    def __init__(self, kind: type[RolledFiles], folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.seconds = 0.0
        self.acknowledged = 0
        self.next_row = 0
        self.offered = 0
        self.begin()

    def begin(self) -> None:
        """Begin in a new process."""
        self.sink = self.kind(self.folder, rows=FILE_ROWS, every="10 s", clock=lambda: self.seconds)
        there = self.sink.begin("alerts", SCHEMA)
        assert there >= self.acknowledged
        assert written(self.folder) == list(range(there))
        assert not list(self.folder.glob(".*.tmp"))
        self.next_row = self.acknowledged

    def act(self, rows: int, disk: FailingDisk) -> None:
        """Take rows, or let the clock tick; try again if it failed, begin again if it crashed."""
        try:
            with using(disk):
                self.once(rows)
        except Crash:
            die(self.sink)
            self.begin()
        except SinkError as error:
            if not error.try_again:
                raise
            self.check()
            self.once(rows)
        self.check()

    def once(self, rows: int) -> None:
        """Take rows, or let the clock tick."""
        if rows:
            self.offered = max(self.offered, self.next_row + rows)
            self.sink.take(rows_between(self.next_row, self.next_row + rows), self.next_row)
            self.next_row += rows
        else:
            self.sink.tick()

    def check(self) -> None:
        """What is safe is there, and what is there are the first rows."""
        self.acknowledged = self.sink.safe()
        found = written(self.folder)
        assert found == list(range(len(found)))
        assert self.acknowledged <= len(found) <= self.offered


@settings(deadline=None)
@given(st.data(), st.sampled_from(KINDS))
def test_random_takes_errors_and_crashes(data: st.DataObject, kind: type[RolledFiles]) -> None:
    with TemporaryDirectory() as folder:
        over = HandOver(kind, Path(folder))
        try:
            for _ in range(data.draw(st.integers(1, 12))):
                over.seconds += data.draw(st.sampled_from([0.0, 4.0, 11.0]))
                step = data.draw(st.integers(0, 14))
                crash = data.draw(st.booleans())
                disk = FailingDisk(step or 1_000, Crash() if crash else FULL, dead=crash)
                over.act(data.draw(st.integers(0, 13)), disk)
            over.sink.close()
        finally:
            die(over.sink)
        assert written(Path(folder)) == list(range(max(over.next_row, over.sink.safe())))


@pytest.mark.parametrize("crash", [True, False], ids=["crash", "error"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_of_the_disk_may_fail(
    tmp_path: Path, kind: type[RolledFiles], crash: bool
) -> None:
    for step in range(1, 100):
        folder = tmp_path / f"{step}"
        over = HandOver(kind, folder)
        over.act(3, FailingDisk(1_000, FULL, dead=False))
        disk = FailingDisk(step, Crash() if crash else FULL, dead=crash)
        over.act(2 * FILE_ROWS, disk)
        over.act(20 - over.next_row, FailingDisk(1_000, FULL, dead=False))
        over.sink.close()
        assert written(folder) == list(range(20))
        if disk.calls < step:
            assert step > 5, "nothing was injected"
            return
    pytest.fail("taking rows never finished")


@pytest.mark.parametrize("rows", [0, 1, 30])
def test_a_file_that_got_its_name_though_renaming_failed_is_not_written_again(
    tmp_path: Path, rows: int
) -> None:
    sink = JsonLines(tmp_path, rows=FILE_ROWS)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 3), 0)
    with using(RenamedAndFailed()), pytest.raises(SinkError, match="No space left"):
        sink.flush()
    assert sink.safe() == 0
    sink.take(rows_between(3, 3 + rows), 3)
    sink.close()
    assert written(tmp_path) == list(range(3 + rows))


def test_rows_that_were_not_taken_are_not_written_with_later_ones(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path, rows=FILE_ROWS)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 3), 0)
    with using(FailingDisk(1, FULL, dead=True)), pytest.raises(SinkError, match="No space left"):
        sink.take(rows_between(3, 9), 3)
    # They went to the dead letters.
    sink.skip(9)
    sink.take(rows_between(9, 11), 9)
    sink.close()
    assert written(tmp_path) == [0, 1, 2, 9, 10]


def test_beginning_may_fail_and_be_tried_again(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path, rows=2)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 2), 0)
    sink.close()
    for step in (1, 2, 3):
        (tmp_path / ".alerts-000000000002-000000000004.jsonl.tmp").write_text("{")
        with using(FailingDisk(step, FULL, dead=False)), pytest.raises(SinkError):
            sink.begin("alerts", SCHEMA)
    assert sink.begin("alerts", SCHEMA) == 2
    sink.close()


@pytest.mark.parametrize("seed", range(2))
def test_safe_rows_survive_a_power_failure_at_any_moment(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    kind = KINDS[seed % 2]
    root = tmp_path / "disk"
    (root / "out").mkdir(parents=True)
    disk = RecordingDisk(root)
    marks = [(0, 0)]
    row = 0
    with using(disk):
        sink = kind(root / "out", rows=4)
        sink.begin("alerts", SCHEMA)
        for _ in range(6):
            count = rng.randint(0, 9)
            sink.take(rows_between(row, row + count), row)
            row += count
            if rng.random() < 0.3:
                sink.flush()
            marks.append((len(disk.trace.changes), sink.safe()))
    die(sink)
    images = 0
    for upto in range(len(disk.trace.changes) + 1):
        safe = max(rows for changes, rows in marks if changes <= upto)
        for image in crash_images(disk.trace, upto, rng, 1):
            images += 1
            folder = tmp_path / f"after{images}"
            lay_out(image, folder)
            after = kind(folder / "out", rows=4)
            there = after.begin("alerts", SCHEMA)
            assert safe <= there <= row
            assert written(folder / "out") == list(range(there))
            after.take(rows_between(safe, row), safe)
            after.close()
            assert written(folder / "out") == list(range(row))
    assert images > 100
