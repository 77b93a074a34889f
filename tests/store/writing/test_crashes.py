"""An error or a crash between any two steps leaves the state before or after, never another."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from eventide.errors import StoreError
from eventide.schema import INT64
from eventide.store import Snapshot, StagedSegment, Store, StoredStream
from eventide.store.files.disk import Disk
from eventide.store.options import StreamOptions
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.manifest import MANIFEST_NAME, decode_manifest
from eventide.store.upkeep.compaction import is_ours
from eventide.store.writing.log import SPARE_NAME
from eventide.store.writing.open_stream import OPENED, OpenStream
from tests.exploring import EXPLORING
from tests.store.events import SCHEMA, at, reopened, times, tiny_files
from tests.store.writing.faults import FailingDisk, Rename, recorded, remains, renamed, using

MANY = 200
"""More calls of the disk than any action makes."""


class Crash(BaseException):
    """The power fails: no handler of ours cleans up after this one."""


@dataclass(frozen=True)
class Failure:
    """What goes wrong, and whether everything does from then on, or one more call soon after."""

    error: BaseException
    dead: bool = False
    then: int = 0
    second: int = 2
    apart: int = 1

    @property
    def steps(self) -> list[int]:
        """The calls of the disk that fail.

        Each of them finds a full disk once while events are stored. What else goes wrong begins at
        the first call, and then at some: one kind of failure where another does not.
        """
        return [1, *(range(2, MANY) if EXPLORING else range(self.second, MANY, self.apart))]


FULL = OSError(errno.ENOSPC, "No space left on device")
FAILURES = {
    "a full disk": Failure(FULL),
    "a full disk at times": Failure(FULL, apart=3),
    "twice in a row": Failure(FULL, then=1, second=3, apart=5),
    "twice": Failure(FULL, then=2, second=5, apart=5),
    "a disk that stays full": Failure(FULL, dead=True, second=2, apart=4),
    "an interruption": Failure(KeyboardInterrupt(), second=3, apart=4),
    "a crash": Failure(Crash(), dead=True, second=2, apart=4),
}


@dataclass(frozen=True)
class Action:
    """Something done to a stream."""

    act: Callable[[StoredStream], object]
    prepare: Callable[[StoredStream], object] = lambda _: None
    log_bytes: int = 6000


def stage_and_commit(stream: StoredStream) -> None:
    staged: list[StagedSegment] = []
    try:
        staged += [stream.stage(at(5).to_batches())]
        staged += [stream.stage(at(1).to_batches())]
    except BaseException:
        stream.discard(staged)
        raise
    try:
        stream.commit(staged, "once")
    except BaseException:
        # Until they are committed the staged files are the caller's: to try again, or to discard.
        with suppress(Exception):
            stream.discard(staged)
        raise


OF_EVENTS = {
    "a small append": Action(lambda stream: stream.append(at(52, 1))),
    "a bulk append": Action(lambda stream: stream.append(at(*range(60, 85)))),
    "a long log": Action(lambda stream: stream.append(at(52)), log_bytes=100),
    "late events": Action(
        lambda stream: stream.flush(), prepare=lambda stream: stream.append(at(3, 5, 7, 9, -1))
    ),
    "a commit": Action(stage_and_commit),
    "a merge": Action(lambda stream: stream.compact(), prepare=stage_and_commit),
    "a seal": Action(lambda stream: stream.flush(seal=True)),
}
OF_THE_STREAM = {
    "a sync": Action(lambda stream: stream.sync()),
    "one attribute more": Action(lambda stream: stream.add_column("more", INT64)),
    "one attribute less": Action(lambda stream: stream.drop_column("speed")),
    "an index": Action(lambda stream: stream.add_index("speed", "backfill")),
    "an aggregate": Action(lambda stream: stream.add_aggregate("max2", "speed", "backfill")),
    "retention": Action(lambda stream: stream.drop_before(23)),
}
ACTIONS = {**OF_EVENTS, **OF_THE_STREAM}


@pytest.fixture(autouse=True)
def _tiny() -> Iterator[None]:
    with tiny_files():
        yield


def prepared(folder: Path, name: str) -> StoredStream:
    """Return a stream with a sealed segment, an open one and something in the log."""
    options = StreamOptions(indexes=("lane",))
    stream = Store.open(folder / "db").create_stream(name, SCHEMA, options)
    stream.append(at(20, 21, 22))
    stream.flush(seal=True)
    stream.append(at(*range(0, 40, 2)))
    stream.append(at(50, 51))
    return stream


@pytest.mark.parametrize(
    ("action", "failure"),
    [
        *((action, each) for action in OF_EVENTS for each in FAILURES if "at times" not in each),
        # They write files as actions of events do, and there are many of them.
        *((action, each) for action in OF_THE_STREAM for each in ("a full disk at times", "twice")),
    ],
)
def test_whichever_call_fails_the_state_is_old_or_new(
    tmp_path: Path, action: str, failure: str
) -> None:
    chosen, fails = ACTIONS[action], FAILURES[failure]
    healthy = prepared(tmp_path, "healthy")
    chosen.prepare(healthy)
    failing(chosen, healthy, FailingDisk(0, FULL, dead=False))
    after = times(healthy.snapshot())
    for step in fails.steps:
        stream = prepared(tmp_path, f"cars{step}")
        chosen.prepare(stream)
        before, columns = times(stream.snapshot()), stream.columns
        disk = FailingDisk(step, fails.error, dead=fails.dead, then=fails.then)
        raised = failing(chosen, stream, disk)
        if isinstance(raised, StoreError):
            assert "No space left on device" in raised.message
            assert str(stream.path) in raised.message
        if isinstance(fails.error, Crash):
            stream = reopened(stream)
        found = times(stream.snapshot())
        assert found == after or (raised is not None and found == before)
        check_words(raised, found, seen_by_others(stream), before, after)
        if disk.calls < step:
            assert raised is None
            assert step > 1, "nothing was injected"
            return
        if not fails.dead and not fails.then:
            # What was listed stays if it is not certain that the new list is on the disk.
            assert leaked(stream) <= disk.spared | listed_once(stream)
        go_on(stream, found, columns)
    pytest.fail("the action never finished")


def seen_by_others(stream: StoredStream) -> list[object]:
    """Return what another process sees."""
    return times(Snapshot(stream.path, OpenStream(stream.path).view()))


def check_words(
    raised: BaseException | None,
    found: list[object],
    others: list[object],
    before: list[object],
    after: list[object],
) -> None:
    """An error says what is so: for this process, and for others that read the same files."""
    hint = str(raised.hint) if isinstance(raised, StoreError) else ""
    if "may be there when the stream is opened again" in hint:
        assert found == before
        assert others in (before, after)
        return
    assert others == found
    if "nothing was stored" in hint:
        assert found == before
    if "what was done is visible" in hint:
        assert found == after


def sorted_times(values: Sequence[object]) -> list[object]:
    """Sort numbers that the types say less about."""
    return sorted(values, key=lambda value: int(str(value)))


def failing(action: Action, stream: StoredStream, disk: FailingDisk) -> BaseException | None:
    """Act on a disk that fails; return what was raised."""
    with using(disk), patch("eventide.store.writing.append.LOG_BYTES", action.log_bytes):
        try:
            action.act(stream)
        except (StoreError, KeyboardInterrupt, Crash) as error:
            return error
    return None


def leaked(stream: StoredStream) -> set[str]:
    """Return the files that nobody refers to, and that nobody will use again."""
    found = {path.name for path in stream.path.iterdir() if is_ours(path.name)}
    return found - stream.snapshot().view.files - {SPARE_NAME}


def listed_once(stream: StoredStream) -> set[str]:
    """Return the files that some kept version of the manifest lists."""
    paths = (path for path in stream.path.iterdir() if MANIFEST_NAME.fullmatch(path.name))
    return {name for path in paths for name in decode_manifest(path.read_bytes(), path).files}


def go_on(stream: StoredStream, found: list[object], columns: StreamColumns) -> None:
    """Append, read and compact as if nothing had happened; leftovers are swept in the end."""
    assert stream.store(at(99), columns).error is None
    assert seen_by_others(stream) == [*found, 99]
    assert times(stream.snapshot()) == [*found, 99]
    stream.flush()
    stream = reopened(stream)
    assert times(stream.snapshot()) == [*found, 99]
    with patch("eventide.store.upkeep.compaction.ORPHANS_KEPT_S", -10.0):
        stream.compact()
    assert not leaked(stream)
    assert times(stream.snapshot()) == [*found, 99]


def test_nothing_is_listed_before_it_is_on_the_disk(tmp_path: Path) -> None:
    commits = 0
    with recorded(tmp_path) as disk:
        stream = prepared(tmp_path, "cars")
        for action in OF_EVENTS.values():
            action.prepare(stream)
            action.act(stream)
    for upto, change in enumerate(disk.trace.changes):
        if isinstance(change, Rename) and change.target.suffix == ".json":
            if not MANIFEST_NAME.fullmatch(change.target.name):
                continue
            left = remains(disk.trace, upto)
            number = renamed(left.names, left.pending)[change.source]
            (content,) = left.versions[number]
            manifest = decode_manifest(content, change.target)
            retired = {each.file for each in manifest.retired}
            for name in manifest.files - retired:
                file = left.names[change.target.parent / name]
                assert len(left.versions[file]) == 1, f"{name} is not synced"
            commits += 1
    assert commits > 5


def test_create_and_drop_survive_a_crash(tmp_path: Path) -> None:
    for step in range(1, MANY):
        folder = tmp_path / f"db{step}"
        store = Store.open(folder)
        store.create_stream("kept", SCHEMA).append(at(1))
        disk = FailingDisk(step, Crash(), dead=True)
        with using(disk), suppress(Crash):
            store.create_stream("new", SCHEMA)
            store.drop_stream("kept")
        names = Store.open(folder, create=False).streams()
        assert set(names) <= {"kept", "new"}
        if "kept" in names:
            assert times(reopened(store.stream("kept")).snapshot()) == [1]
        if "new" not in names:
            store.create_stream("new", SCHEMA)
        assert times(reopened(store.stream("new")).snapshot()) == []
        if disk.calls < step:
            assert names == ("new",)
            return
    pytest.fail("the actions never finished")


def test_a_stream_that_cannot_be_created_can_be_created_later(tmp_path: Path) -> None:
    for step in range(1, MANY):
        store = Store.open(tmp_path / f"db{step}")
        disk = FailingDisk(step, FULL, dead=False)
        message = ""
        with using(disk):
            try:
                store.create_stream("cars", SCHEMA)
            except StoreError as error:
                message = error.message
        if disk.calls < step:
            assert not message
            return
        assert not message or "No space left on device" in message
        if "cars" not in store.streams():
            store.create_stream("cars", SCHEMA)
        stream = store.stream("cars")
        stream.append(at(1))
        assert times(reopened(stream).snapshot()) == [1]
    pytest.fail("creating never finished")


def test_opening_again_after_a_crash_while_opening(tmp_path: Path) -> None:
    for step in range(1, MANY):
        folder = tmp_path / f"db{step}"
        disk = FailingDisk(step, Crash(), dead=True)
        with using(disk), suppress(Crash):
            Store.open(folder)
        assert Store.open(folder).streams() == ()
        if disk.calls < step:
            return
    pytest.fail("opening never finished")


class UnsyncedDisk(Disk):
    """Fails to sync, after somebody else has looked at what was written."""

    def __init__(self, look: Callable[[], object]) -> None:
        self.look = look

    def sync(self, descriptor: int) -> None:
        """See `Disk`."""
        super().sync(descriptor)
        self.look()
        raise FULL


@pytest.mark.parametrize("others", [[7], [7, 8, 9], [7, 8, 9, 10, 11]])
def test_what_another_process_saw_of_a_failed_append_is_forgotten(
    tmp_path: Path, others: list[int]
) -> None:
    stream = prepared(tmp_path, "cars")
    before = times(stream.snapshot())
    other = OpenStream(stream.path)
    with using(UnsyncedDisk(other.view)), pytest.raises(StoreError, match="No space left"):
        stream.append(at(60, 61, 62))
    assert times(stream.snapshot()) == before
    stream.append(at(*others))
    # The other process writes next: what it holds must not replace what was acknowledged.
    with patch.dict(OPENED, {stream.path: other}):
        stream.append(at(99))
        stream.flush()
    assert times(reopened(stream).snapshot()) == sorted_times([*before, *others, 99])
