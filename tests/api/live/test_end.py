"""The end of a database, of a process, of a copy of a process: what is stored is handed over."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import pytest

import eventide as ev
from eventide.api.live.follower import FOLLOWER
from eventide.api.result import Result
from eventide.errors import StateError
from tests.api.live.kinds import Rows, database, events

PLAIN = "SELECT v FROM a"
PATIENCE_S = 120.0


def run(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    assert done.stderr == ""
    return done.stdout


def test_close_hands_over_what_is_stored(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        go_on, rows = Event(), Rows()

        def slow(given: Result) -> None:
            go_on.wait()
            rows(given)

        query = db.subscribe(PLAIN, slow, queue_rows=1)
        paused = db.subscribe(PLAIN, Rows())
        paused.pause()
        for ts in range(8):
            db.stream("a").append(events([ts]))
        go_on.set()
    assert len(rows.rows) == 7  # the last instant is not complete
    assert (query.status, paused.status) == ("finished", "finished")
    assert db.queries() == ()
    db.stream("a").append(events([9]))
    with pytest.raises(StateError, match="closed"):
        db.subscribe(PLAIN)


def test_close_does_not_wait_between_retries_nor_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db, never = database(tmp_path), Event()

    def refuse(_: Result) -> None:
        raise RuntimeError

    def hang(_: Result) -> None:
        never.wait()

    refused = db.subscribe(PLAIN, refuse, retry_after="1 hour")
    db.subscribe(PLAIN, hang)
    db.stream("a").append(events(range(4)))
    db.delivery.close(timeout=0.5)
    assert refused.queue is not None
    assert refused.queue.drained(PATIENCE_S)
    assert len(db.stream("dead_letters")) == 3
    assert "not handed over in time" in caplog.text
    never.set()


def test_the_end_of_the_interpreter_hands_over_what_is_stored(tmp_path: Path) -> None:
    database(tmp_path)
    code = """
import sys, time, eventide as ev
from tests.api.live.kinds import events
db = ev.open(sys.argv[1])
seen = []
def slow(rows):
    time.sleep(0.001)
    seen.extend(rows.rows())
    print(len(seen), flush=True)
db.subscribe("SELECT v FROM a", slow, queue_rows=10)
feed = db.stream("a").feed()
for ts in range(200):
    feed.put(events([ts]))
"""
    assert run(code, tmp_path / "db").split()[-1] == "199"


def test_what_nobody_holds_is_followed_only_if_it_has_a_receiver(tmp_path: Path) -> None:
    without, with_one = database(tmp_path / "1"), database(tmp_path / "2")
    rows = Rows()
    without.subscribe(PLAIN)
    with_one.subscribe(PLAIN, rows)
    gone, kept = weakref.ref(without.delivery), weakref.ref(with_one.delivery)
    del without, with_one
    until = monotonic() + PATIENCE_S
    while gone() is not None and monotonic() < until:
        sleep(0.01)
        gc.collect()  # the follower may be looking at it
    assert gone() is None
    assert kept() is not None
    ev.open(tmp_path / "2/db").stream("a").append(events(range(3)))
    while len(rows.rows) < 2 and monotonic() < until:
        sleep(0.01)
    assert len(rows.rows) == 2
    delivery = kept()
    assert delivery is not None
    delivery.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors")
def test_many_databases_leave_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    database(tmp_path)
    known = threading.enumerate()  # that which syncs files stays, and other tests may have begun it

    def once() -> None:
        with ev.open(tmp_path / "db") as db:
            db.subscribe(PLAIN, Rows())
            db.stream("a").append(events(range(2)))

    def settled() -> None:
        until = monotonic() + PATIENCE_S
        while FOLLOWER.watch is not None and monotonic() < until:
            sleep(0.01)
        assert FOLLOWER.watch is None

    once()
    settled()
    files = open_files()
    for _ in range(100):
        once()
    settled()
    until = monotonic() + PATIENCE_S
    while threads_but(known) and monotonic() < until:
        sleep(0.01)  # those of hand-overs end when nothing has come for a while
    assert threads_but(known) == []
    assert open_files() <= files


def threads_but(known: list[threading.Thread]) -> list[str]:
    return [
        each.name
        for each in threading.enumerate()
        if each.name.startswith("eventide ") and each not in known
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_leaves_live_queries_to_its_parent(tmp_path: Path) -> None:
    database(tmp_path)
    code = """
import os, sys, warnings, eventide as ev
from tests.api.live.kinds import Rows, events
warnings.simplefilter("ignore", DeprecationWarning)
db = ev.open(sys.argv[1])
rows = Rows()
query = db.subscribe("SELECT v FROM a", rows)
db.stream("a").append(events(range(5)))
child = os.fork()
if child == 0:
    assert db.queries() == () and query.finished and query.wait()
    own = Rows()
    more = db.subscribe("SELECT v FROM a", own)
    db.stream("a").append(events(range(5, 10)))
    more.finish()
    assert len(own.rows) == 5, own.rows
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
query.finish()
assert len(rows.rows) == 10, rows.rows
print("good")
"""
    assert run(code, tmp_path / "db") == "good\n"
