"""What a stream promises about safety: to processes that are killed, and to others."""

from __future__ import annotations

import errno
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO
from unittest.mock import patch

import pytest

from eventide.errors import StoreError
from eventide.store import Store, StoredStream
from eventide.store.files.disk import AppendFile, write_back
from eventide.store.options import Durability, StreamOptions
from eventide.store.writing import open_stream
from eventide.store.writing.group_commit import COMMITS
from eventide.store.writing.open_stream import READ_ATTEMPTS
from tests.store.events import SCHEMA, at, reopened, scanned, times, tiny_files
from tests.store.writing.faults import (
    FailingDisk,
    Link,
    Sync,
    SyncFolder,
    Write,
    crash_images,
    lay_out,
    recorded,
    using,
)

ROOT = Path(__file__).parents[3]
HOUR_MS = 3_600_000
DURABILITIES: list[Durability] = ["batch", "group", "none"]

APPEND_FOREVER = """
from tests.store.events import *
with tiny_files():
    stream = Store.open(sys.argv[1]).stream("cars")
    for number in itertools.count():
        late = number - 30 if number % 7 == 0 else number
        print(stream.append(at(number, late, number)).first_seq, flush=True)
"""
APPEND_WHEN_ASKED = """
from tests.store.events import *
with tiny_files():
    stream = Store.open(sys.argv[1]).stream("cars")
    for line in sys.stdin:
        print(stream.append(at(*map(int, line.split()))).first_seq, flush=True)
"""
HOLD_THE_LOCK = """
from eventide.store.files.lock import write_lock
with write_lock(Path(sys.argv[1]) / "streams" / "cars"):
    print("held", flush=True)
    sys.stdin.read()
"""


def new_stream(folder: Path, durability: Durability, interval_ms: int = 20) -> StoredStream:
    options = StreamOptions(durability=durability, commit_interval_ms=interval_ms)
    return Store.open(folder / "db").create_stream("cars", SCHEMA, options)


@contextmanager
def child(script: str, stream: StoredStream) -> Iterator[subprocess.Popen[str]]:
    """Run a script on a stream in another process; kill it, as hard as can be, in the end."""
    script = f"import itertools, sys\nfrom pathlib import Path\n{script}"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(stream.path.parent.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def ask(process: subprocess.Popen[str], line: str) -> str:
    """Send a line to a child, and return its answer."""
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return output(process).readline()


@pytest.mark.parametrize("durability", DURABILITIES)
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, durability: Durability) -> None:
    stream = new_stream(tmp_path, durability)
    with child(APPEND_FOREVER, stream) as process:
        acknowledged = [int(output(process).readline()) for _ in range(60)]
        process.kill()
        # The last line may be cut off.
        acknowledged += [int(line) for line in output(process) if line.endswith("\n")]
    assert acknowledged == list(range(0, 3 * len(acknowledged), 3))
    with tiny_files():
        stream = reopened(stream)
        found = scanned(stream.snapshot(), ["_seq"])
        assert len(found) in (3 * len(acknowledged), 3 * len(acknowledged) + 3)
        assert sorted(found) == [(seq,) for seq in range(len(found))]
        assert stream.append(at(1)).first_seq == len(found)
        assert len(times(reopened(stream).snapshot())) == len(found) + 1


def test_batch_syncs_each_append_before_it_returns(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, "batch")
    with recorded(tmp_path) as disk:
        for count in range(1, 6):
            stream.append(at(count))
            kinds = [type(change) for change in disk.trace.changes]
            assert kinds == [Write, Sync] * count
        stream.flush(seal=True)
        assert disk.is_synced(stream.path / stream.snapshot().segments[0].file)
        assert isinstance(disk.trace.changes[-2], SyncFolder)


def test_group_syncs_many_appends_at_once(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, "group", HOUR_MS)
    with recorded(tmp_path) as disk:
        for count in range(20):
            stream.append(at(count))
        assert disk.syncs() == 0
        COMMITS.finish()
        assert disk.is_synced(stream.path / stream.snapshot().manifest.log)
        assert disk.syncs() == 1


def test_group_syncs_by_itself(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, "group", interval_ms=20)
    log = stream.path / stream.snapshot().manifest.log
    with recorded(tmp_path) as disk:
        stream.append(at(1))
        while not disk.is_synced(log):  # without a limit: a loaded machine may take its time
            time.sleep(0.01)


def test_group_syncs_every_stream_whatever_number_its_file_has(tmp_path: Path) -> None:
    with recorded(tmp_path) as disk:
        stream = new_stream(tmp_path, "group", HOUR_MS)
        stream.append(at(1))
        # Another file gets the descriptor of this one while its sync is due.
        reopened(stream)
        options = StreamOptions(durability="group", commit_interval_ms=HOUR_MS)
        other = Store.open(tmp_path / "db").create_stream("trucks", SCHEMA, options)
        other.append(at(1))
        COMMITS.finish()
        for each in (stream, other):
            assert disk.is_synced(each.path / each.snapshot().manifest.log)


def test_a_group_sync_that_failed_is_made_good_by_the_next_append(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, "group", HOUR_MS)
    stream.append(at(1))
    with using(FailingDisk(1, OSError(errno.EIO, "Input/output error"), dead=True)):
        COMMITS.finish()
    # The system drops what it could not write, and later syncs do not mention it.
    with recorded(tmp_path) as disk:
        stream.append(at(2))
    (log, _) = (change for change in disk.trace.changes if isinstance(change, Link))
    assert log.path.name == stream.snapshot().manifest.log
    *_, least = crash_images(disk.trace, len(disk.trace.changes), random.Random(1), 0)
    lay_out(least, tmp_path / "left")
    assert times(Store.open(tmp_path / "left" / "db").stream("cars").snapshot()) == [1]
    assert times(stream.snapshot()) == [1, 2]


@pytest.mark.parametrize("has_call", [True, False])
def test_the_disk_may_begin_before_the_sync(tmp_path: Path, has_call: bool) -> None:
    """On every system the file is the same; only Linux begins to write it early."""
    path = tmp_path / "file"
    file = AppendFile.create(path)
    with ExitStack() as without:
        if not has_call:
            without.enter_context(patch("eventide.store.files.disk.write_back", lambda: None))
        elif sys.platform == "linux":
            assert write_back() is not None
        file.begin_sync(file.append([b"one"]))
        file.begin_sync(file.append([b"two"]))
    file.sync()
    assert path.read_bytes() == b"onetwo"


def test_none_syncs_nothing_but_on_request(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, "none")
    with recorded(tmp_path) as disk:
        for count in range(20):
            stream.append(at(count))
        assert disk.syncs() == 0
        stream.sync()
        assert disk.is_synced(stream.path / stream.snapshot().manifest.log)


def test_a_lock_keeps_others_out_until_its_holder_dies(tmp_path: Path) -> None:
    stream = new_stream(tmp_path, "batch")
    stream.append(at(1))
    with child(HOLD_THE_LOCK, stream) as process:
        assert output(process).readline() == "held\n"
        said = r"another writer has held .*lock for 0\.05 s"
        with patch("eventide.store.files.lock.WAIT_S", 0.05), pytest.raises(StoreError, match=said):
            stream.append(at(2))
        assert times(stream.snapshot()) == [1]
    stream.append(at(3))
    assert times(stream.snapshot()) == [1, 3]


@pytest.mark.parametrize("durability", ["batch", "none"])
def test_two_processes_take_turns(tmp_path: Path, durability: Durability) -> None:
    stream = new_stream(tmp_path, durability)
    expected: list[int] = []
    with child(APPEND_WHEN_ASKED, stream) as process, tiny_files():
        for turn in range(40):
            # Late events, and bulks, so that each finds segments that the other has written.
            own = [turn - 20] if turn % 3 == 0 else [turn]
            others = list(range(turn, turn + 15)) if turn % 8 == 0 else [turn]
            assert stream.append(at(*own)).first_seq == len(expected)
            expected += own
            assert int(ask(process, " ".join(map(str, others)))) == len(expected)
            expected += others
            if turn % 10 == 5:
                stream.flush(seal=turn % 20 == 5)
                stream.compact()
            found = scanned(stream.snapshot(), ["_seq", "ts"])
            assert sorted(found) == list(enumerate(expected))
        assert scanned(reopened(stream).snapshot(), ["_seq", "ts"]) == found


@pytest.mark.parametrize("attempts", [READ_ATTEMPTS, 0])
def test_readers_see_whole_batches_in_the_order_of_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    """Also a reader whom the writer is always ahead of: then the writer waits for it."""
    monkeypatch.setattr(open_stream, "READ_ATTEMPTS", attempts)
    stream = new_stream(tmp_path, "batch")
    seen = [0]
    with child(APPEND_FOREVER, stream) as process:
        output(process).readline()
        with tiny_files():
            while len(set(seen)) < 6:
                assert process.poll() is None, "the writer has ended"
                snapshot = stream.snapshot()
                found = sorted(scanned(snapshot, ["_seq"]))
                assert found == [(seq,) for seq in range(len(found))]
                assert len(found) % 3 == 0
                assert len(found) == snapshot.row_count >= seen[-1]
                seen.append(len(found))
