"""A crash between any two steps leaves the state before or the state after, never another."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from eventide.errors import StoreError
from eventide.store import Store, StoredStream
from eventide.store.segment import block_statistics
from tests.store.events import SCHEMA, at, new_stream, reopened, segment_files, times

Action = Callable[[StoredStream], object]


class Crash(BaseException):
    """The power fails: no handler of ours cleans up after this one."""


@contextmanager
def failing_at(step: int, error: BaseException) -> Iterator[None]:
    """Raise `error` at the n-th call that changes the disk; a crash also stops cleaning up."""
    calls = 0

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if calls == step or (calls > step and isinstance(error, Crash)):
                raise error
            return call(*args, **kwargs)

        return wrapper

    with ExitStack() as stack:
        for name, call in [
            ("os.fsync", os.fsync),
            ("os.replace", os.replace),
            ("pyarrow.OSFile", pa.OSFile),
            ("eventide.store.segment.block_statistics", block_statistics),
        ]:
            stack.enter_context(patch(name, counted(call)))
        if isinstance(error, Crash):
            for module in ("durable", "segment", "stream", "manifest", "compaction"):
                stack.enter_context(patch(f"eventide.store.{module}.remove"))
        yield


def append(stream: StoredStream) -> object:
    return stream.append(at(5, 1))


def commit_two(stream: StoredStream) -> object:
    staged = [stream.stage(at(5).to_batches()), stream.stage(at(1).to_batches())]
    return stream.commit(staged, "once")


def compact(stream: StoredStream) -> object:
    return stream.compact()


ACTIONS = [(append, [1, 2, 3, 4, 5]), (commit_two, [1, 2, 3, 4, 5]), (compact, [2, 3, 4])]


@pytest.mark.parametrize(("action", "after"), ACTIONS)
def test_a_crash_at_any_step_leaves_old_or_new(
    tmp_path: Path, action: Action, after: list[int]
) -> None:
    for step in range(1, 100):
        stream = new_stream(tmp_path, f"cars{step}")
        stream.append(at(2, 4))
        stream.append(at(3))
        finished = False
        try:
            with failing_at(step, Crash()):
                action(stream)
                finished = True
        except Crash:
            pass
        stream = reopened(stream)
        found = times(stream.snapshot())
        assert found == after or (not finished and found == [2, 3, 4])
        stream.append(at(9))
        stream.compact()
        assert times(stream.snapshot()) == [*found, 9]
        if finished:
            assert step > 3, "the crash was never injected"
            return
    pytest.fail("the action never finished")


@pytest.mark.parametrize(("action", "after"), ACTIONS)
def test_a_full_disk_changes_nothing_and_leaves_no_files(
    tmp_path: Path, action: Action, after: list[int]
) -> None:
    for step in range(1, 100):
        stream = new_stream(tmp_path, f"cars{step}")
        stream.append(at(2, 4))
        stream.append(at(3))
        failed = None
        try:
            with failing_at(step, OSError(errno.ENOSPC, "No space left on device")):
                action(stream)
        except StoreError as error:
            failed = error.message
        if failed is not None:
            assert "No space left" in failed
            snapshot = stream.snapshot()
            assert times(snapshot) in ([2, 3, 4], after)
            staged = 1 if action is commit_two else 0  # the caller's own, still to be discarded
            assert len(segment_files(stream)) <= len(snapshot.manifest.files) + staged
            assert not list(stream.path.glob("*.tmp"))
        else:
            assert step > 3
            return
    pytest.fail("the action never finished")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_named_before_it_is_on_the_disk(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    steps: list[str] = []

    def fsync(descriptor: int) -> None:
        steps.append(f"sync {kind(Path(f'/proc/self/fd/{descriptor}').readlink())}")

    def replace(source: Path, target: Path) -> None:
        steps.append(f"rename {kind(source)} to {kind(target)}")
        source.rename(target)

    with patch("os.fsync", fsync), patch("os.replace", replace):
        stream.append(at(1))
    assert steps == [
        "sync segment",
        "sync folder",
        "sync temporary",
        "rename temporary to manifest",
        "sync folder",
    ]


def kind(path: Path) -> str:
    suffixes = {".ev": "segment", ".tmp": "temporary", ".json": "manifest", "": "folder"}
    return suffixes[path.suffix]


def test_create_and_drop_survive_a_crash(tmp_path: Path) -> None:
    for step in range(1, 20):
        folder = tmp_path / f"db{step}"
        store = Store.open(folder)
        kept = store.create_stream("kept", SCHEMA)
        kept.append(at(1))
        finished = False
        try:
            with failing_at(step, Crash()):
                store.create_stream("new", kept.schema)
                store.drop_stream("kept")
                finished = True
        except Crash:
            pass
        names = Store.open(folder, create=False).streams()
        assert set(names) <= {"kept", "new"}
        if "kept" in names:
            assert times(store.stream("kept").snapshot()) == [1]
        if "new" not in names:
            store.create_stream("new", kept.schema)
        assert times(store.stream("new").snapshot()) == []
        if finished:
            return
    pytest.fail("the actions never finished")


def test_opening_again_after_a_crash_while_opening(tmp_path: Path) -> None:
    for step in range(1, 10):
        folder = tmp_path / f"db{step}"
        try:
            with failing_at(step, Crash()):
                Store.open(folder)
        except Crash:
            assert Store.open(folder).streams() == ()
        else:
            return
    pytest.fail("opening never finished")


APPEND_FOREVER = """
import sys
import pyarrow as pa
from eventide.store import Store
stream = Store.open(sys.argv[1]).stream("cars")
event = pa.Table.from_pylist([{"ts": 0}], schema=stream.schema.arrow.remove(1))
while True:
    print(stream.append(event).first_seq, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", APPEND_FOREVER, str(tmp_path / "db")], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(40)]
    process.kill()
    acknowledged += [int(line) for line in process.stdout.read().splitlines()]
    process.stdout.close()
    process.wait()
    assert acknowledged == list(range(len(acknowledged)))
    found = len(times(reopened(stream).snapshot()))
    assert found in (len(acknowledged), len(acknowledged) + 1)
    assert stream.append(at(1)).first_seq == found
