"""Live queries see what other processes append: every event once, in order of `_seq`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import sleep

import eventide as ev
from tests.api.live.kinds import KINDS, Rows, bag, database, events, expected

# Each process has every third event, of both streams. All are within the lateness of one second.
APPEND = """
import sys
import eventide as ev
from tests.api.live.kinds import events
db, place = ev.open(sys.argv[1]), int(sys.argv[2])
for start in range(place, 600, 30):
    for name in "ab":
        db.stream(name).append(events(range(start, start + 30, 3)))
"""
FOLLOW = """
import pickle, sys
import eventide as ev
from tests.api.live.kinds import KINDS, Rows, bag
db = ev.open(sys.argv[1])
rows = {kind: Rows() for kind in KINDS}
queries = [db.subscribe(KINDS[kind], rows[kind], lateness="1 s") for kind in KINDS]
print("ready", flush=True)
sys.stdin.readline()
for query in queries:
    query.finish()
sys.stdout.flush()
sys.stdout.buffer.write(pickle.dumps({kind: bag(each.rows) for kind, each in rows.items()}))
"""


@contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        try:
            yield child
        finally:
            child.kill()


def output(child: subprocess.Popen[bytes], given: bytes = b"") -> bytes:
    found, _ = child.communicate(given, timeout=240)
    assert child.returncode == 0
    return found


def test_three_processes_append_and_two_follow(tmp_path: Path) -> None:
    db = database(tmp_path, "1 second")
    rows = {kind: Rows() for kind in KINDS}
    with process(FOLLOW, db.path) as other:
        queries = {kind: db.subscribe(KINDS[kind], rows[kind], lateness="1 s") for kind in KINDS}
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        with (
            process(APPEND, db.path, 0) as first,
            process(APPEND, db.path, 1) as second,
            process(APPEND, db.path, 2) as third,
        ):
            for child in (first, second, third):
                output(child)
        assert len(db.stream("a")) == len(db.stream("b")) == 600
        seen = pickle.loads(output(other, b"end\n"))
    for kind, query in queries.items():
        query.finish()
        assert query.late_count == 0
        assert query.failure is None
        wanted = expected(db, kind)
        assert wanted
        assert dict(seen[kind]) == dict(wanted), kind
        assert bag(rows[kind].rows) == wanted, kind
    assert queries["plain"].counters.events == 600


def test_what_a_process_appends_comes_without_a_call(tmp_path: Path) -> None:
    db = database(tmp_path)
    received: list[int] = []
    query = db.subscribe("SELECT v FROM a", lambda rows: received.append(len(rows)))
    code = """
import sys, eventide as ev
from tests.api.live.kinds import events
ev.open(sys.argv[1]).stream("a").append(events([1, 2]))
"""
    with process(code, db.path) as child:
        output(child)
    while not received:  # the follower is told; nothing here asks for it
        assert query.status == "running"
        sleep(0.001)
    assert received == [1]


def test_ingest_by_the_command_line_is_followed(tmp_path: Path) -> None:
    db = database(tmp_path)
    rows = Rows()
    query = db.subscribe("SELECT v FROM a", rows)
    csv = tmp_path / "a.csv"
    csv.write_text("ts,k,v\n" + "".join(f"{ts},x,{ts}\n" for ts in range(5_000)))
    code = "from eventide.cli import main; main()"
    with process(code, "ingest", csv, "--into", db.path, "--stream", "a") as child:
        output(child)
    query.finish()
    assert [row["v"] for row in rows.rows] == list(range(5_000))
    assert query.counters.events == 5_000


def test_threads_that_append_at_once(tmp_path: Path) -> None:
    db, threads = database(tmp_path), 4
    rows = Rows()
    numbered = db.subscribe("SELECT _seq FROM a", rows, lateness="1 s")

    def append(place: int) -> None:
        for start in range(place, 1_000, 10 * threads):
            db.stream("a").append(events(range(start, start + 10 * threads, threads)))

    running = [Thread(target=append, args=(place,)) for place in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    numbered.finish()
    assert sorted(row["_seq"] for row in rows.rows) == list(range(len(db.stream("a"))))
    assert numbered.counters.events == len(rows.rows)


def test_a_feed_is_followed_once(tmp_path: Path) -> None:
    db, other = database(tmp_path), ev.open(tmp_path / "db")
    rows = {"here": Rows(), "there": Rows()}
    here = db.subscribe("SELECT _seq, v FROM a", rows["here"], lateness="1 s")
    there = other.subscribe("SELECT _seq, v FROM a", rows["there"], lateness="1 s")
    with db.stream("a").feed() as feed:
        for start in range(0, 500, 5):
            feed.put(events(range(start, start + 5)))
            if start % 50 == 0:
                other.stream("a").append(events([start]))
    for query in (here, there):
        query.finish()
        assert query.counters.events == 510
    assert sorted(row["_seq"] for row in rows["here"].rows) == list(range(510))
    assert rows["there"].rows == rows["here"].rows
