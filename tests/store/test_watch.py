"""Changes of folders are noticed, where the system tells of them and where it does not."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import pytest

from eventide.store.watch import FolderWatch

LONG_S = 120.0
TOLD = pytest.param(True, marks=pytest.mark.skipif(sys.platform != "linux", reason="no inotify"))


@pytest.fixture(params=[TOLD, False], ids=["told", "polled"])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderWatch]:
    if not request.param:
        monkeypatch.setattr("eventide.store.watch.inotify", lambda: None)
    watch = FolderWatch()
    assert (watch.told is not None) == request.param
    yield watch
    watch.close()


def settle(watch: FolderWatch) -> None:
    """Take in what has been told so far."""
    watch.wait(0.0)


def waits(watch: FolderWatch) -> float:
    started = monotonic()
    watch.wait(LONG_S)
    return monotonic() - started


def test_a_change_is_noticed(watch: FolderWatch, tmp_path: Path) -> None:
    assert watch.watch({tmp_path})
    assert not watch.watch({tmp_path})
    log = tmp_path / "log"
    for change in (log.touch, lambda: log.write_text("x"), lambda: log.rename(tmp_path / "b")):
        settle(watch)
        change()
        assert waits(watch) < LONG_S


def test_a_wake_is_noticed(watch: FolderWatch) -> None:
    watch.wake()
    assert waits(watch) < LONG_S

    def wake_later() -> None:
        sleep(0.05)
        watch.wake()

    waking = Thread(target=wake_later)
    waking.start()
    assert waits(watch) < LONG_S
    waking.join()


def test_nothing_is_noticed_when_nothing_happens(watch: FolderWatch, tmp_path: Path) -> None:
    watch.watch({tmp_path})
    settle(watch)
    started = monotonic()
    watch.wait(0.05)
    # Who is not told looks again soon.
    assert monotonic() - started >= (0.05 if not watch.polls else 0.01)


def test_a_folder_that_is_not_watched_any_more_is_not_noticed(
    watch: FolderWatch, tmp_path: Path
) -> None:
    watch.watch({tmp_path})
    watch.watch(set())
    settle(watch)
    (tmp_path / "log").touch()
    started = monotonic()
    watch.wait(0.05)
    assert monotonic() - started >= 0.05


def test_a_folder_that_comes_later_is_looked_at_and_then_watched(
    watch: FolderWatch, tmp_path: Path
) -> None:
    folder = tmp_path / "later"
    watch.watch({folder})
    assert watch.polls
    assert waits(watch) < LONG_S
    folder.mkdir()
    assert watch.watch({folder}) == (watch.told is not None)
    assert watch.polls == (watch.told is None)


def test_a_folder_that_is_made_anew_is_watched_again(watch: FolderWatch, tmp_path: Path) -> None:
    folder = tmp_path / "stream"
    folder.mkdir()
    watch.watch({folder})
    folder.rmdir()
    folder.mkdir()
    settle(watch)
    settle(watch)
    assert watch.watch({folder}) == (watch.told is not None)
    settle(watch)
    (folder / "log").touch()
    assert waits(watch) < LONG_S


def test_one_folder_under_two_names_is_watched_until_both_are_gone(
    watch: FolderWatch, tmp_path: Path
) -> None:
    folder, link = tmp_path / "stream", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    watch.watch({folder, link})
    watch.watch({folder})
    settle(watch)
    watch.watch({folder})
    settle(watch)
    (folder / "log").touch()
    assert waits(watch) < LONG_S


def test_a_wake_after_the_end_writes_into_no_other_file(watch: FolderWatch, tmp_path: Path) -> None:
    rope = watch.rope
    watch.close()
    log = tmp_path / "log"
    with log.open("wb") as file:
        if rope >= 0:
            os.dup2(file.fileno(), rope)
        watch.wake()
        if rope >= 0:
            os.close(rope)
    assert log.read_bytes() == b""


def test_descriptors_above_those_of_select(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2_000:
        pytest.skip("so many files may not be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_000), hard))
    files = [os.dup(1) for _ in range(1_100)]
    try:
        other = FolderWatch()
        other.watch({tmp_path})
        other.wait(0.0)
        (tmp_path / "log").touch()
        assert waits(other) < LONG_S
        other.close()
    finally:
        for each in files:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
