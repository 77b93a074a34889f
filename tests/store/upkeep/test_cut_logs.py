"""A log that was cut off is noticed as far as a commit, or this process, knows how long it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eventide.errors import StoreError
from eventide.store import StoredStream
from eventide.store.upkeep.repair import repair_stream
from eventide.store.upkeep.verify import not_known, verify_stream
from tests.store.events import at, new_stream, reopened, times

COMMITS: dict[str, Callable[[StoredStream], object]] = {
    "an option": lambda stream: stream.add_index("lane", "next"),
    "staged events": lambda stream: stream.commit([stream.stage(at(9).to_batches())]),
    "an attribute": lambda stream: stream.drop_column("car"),
    "a seal": lambda stream: stream.flush(seal=True),
}


def log_of(stream: StoredStream) -> Path:
    return stream.path / stream.snapshot().manifest.log


def record_ends(stream: StoredStream, count: int) -> list[int]:
    """Append events one by one; return how long the log is before the first and after each."""
    ends = [log_of(stream).stat().st_size]
    for ts in range(count):
        stream.append(at(ts))
        ends.append(log_of(stream).stat().st_size)
    return ends


@pytest.mark.parametrize("commit", COMMITS)
@pytest.mark.parametrize("missing", [1, 8, 100])
def test_what_a_commit_has_counted_is_missed(tmp_path: Path, commit: str, missing: int) -> None:
    stream = new_stream(tmp_path)
    record_ends(stream, 3)
    COMMITS[commit](stream)
    log = log_of(stream)
    os.truncate(log, log.stat().st_size - missing)
    again = Path(stream.path)
    with pytest.raises(StoreError, match="is damaged"):
        reopened(stream)
    assert [each.severity for each in verify_stream(again)].count("damage") == 1
    assert not_known(again) is None


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_repair_says_which_events_a_cut_has_taken(tmp_path: Path, kept: int) -> None:
    """Cut at the end of a record: nothing in the log itself tells that there was more."""
    stream = new_stream(tmp_path)
    ends = record_ends(stream, 3)
    stream.add_index("lane", "next")
    os.truncate(log_of(stream), ends[kept])
    with pytest.raises(StoreError, match=f"ends at byte {ends[kept]}, and {ends[3]} were ack"):
        reopened(stream)
    done = repair_stream(stream.path)
    count = 3 - kept
    which = "number 2" if count == 1 else f"numbers {kept} to 2"
    assert [str(loss) for loss in done.losses] == [
        f"{log_name(done.steps)}: {count} events, {which}"
    ]
    again = reopened(stream)
    assert times(again.snapshot()) == list(range(kept))
    assert all(each.severity == "info" for each in verify_stream(again))
    assert again.append(at(7)).first_seq == 3, "numbers of lost events are not given out again"


def log_name(steps: tuple[str, ...]) -> str:
    """Return the log that a repair names first."""
    return next(step for step in steps if step.startswith("log-")).split(":")[0]


def test_what_came_after_the_last_commit_cannot_be_missed_and_that_is_said(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    ends = record_ends(stream, 3)
    os.truncate(log_of(stream), ends[1])
    again = reopened(stream)
    assert times(again.snapshot()) == [0]
    assert list(verify_stream(again)) == []
    assert not_known(again.path) == (
        "whether events that were appended after version 1 was committed were cut off the end of "
        f"its log, behind byte {ends[1]:,}"
    )


def test_the_process_that_wrote_them_misses_them_all_the_same(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    ends = record_ends(stream, 3)
    os.truncate(log_of(stream), ends[2])
    for ask in (stream.snapshot, lambda: stream.append(at(9))):
        with pytest.raises(StoreError, match=f"ends at byte {ends[2]}, and {ends[3]} were ack"):
            ask()


def test_a_torn_record_behind_what_was_counted_is_dropped_in_silence(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    stream.append(at(1))
    stream.add_index("lane", "next")
    before = log_of(stream).stat().st_size
    stream.append(at(2))
    log = log_of(stream)
    os.truncate(log, before + 20)
    again = reopened(stream)
    assert times(again.snapshot()) == [1]
    assert [each.severity for each in verify_stream(again)] == ["info"]
    again.append(at(3))
    assert times(reopened(again).snapshot()) == [1, 3]
