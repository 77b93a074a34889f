"""Stored derived streams when processes are killed, and when several append at a time."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.live.stored import query as stored
from tests.api.named.test_stored import (
    QUERIES,
    SECOND,
    Oracle,
    failure_of,
    new_database,
    often,
    rows_of,
    sorted_rows,
)
from tests.exploring import EXPLORING

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")

ROOT = Path(__file__).parents[3]
KILLS = 14 if EXPLORING else 8
APPENDS = 150
PLACES = (9, 25, 33, 46, 49) if EXPLORING else (9, 33, 49)
OTHERS = "xy" if EXPLORING else "x"

DYING = """
import os, signal, sys
from eventide.store.files.disk import Disk
from tests.api.named import test_stored_processes as tested

def dying(name, place):
    done = getattr(Disk, name)
    def die_or_do(*args, **how):
        global left
        left -= 1
        # Half of the bytes may be there.
        if left == 0 and name == "write" and place % 2:
            disk, descriptor, buffers, offset = args
            done(disk, descriptor, [bytes(memoryview(buffers[0]))[:9]], offset)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done(*args, **how)
    setattr(Disk, name, die_or_do)

# Each process is a fork of this one, which has loaded everything and opened nothing.
tested.load()
for folder, place in zip(sys.argv[2::2], map(int, sys.argv[3::2])):
    child = os.fork()
    if child == 0:
        left = place
        try:
            for name in ("open", "write", "sync", "sync_folder", "rename", "truncate", "unlink"):
                dying(name, place)
            getattr(tested, sys.argv[1])(tested.opened_often(folder))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status))
"""
APPEND_WHEN_ASKED = """
import sys
from tests.api.named.test_stored_processes import append_one, opened_often
db = opened_often(sys.argv[1])
print("open", flush=True)
for line in sys.stdin:
    append_one(db, int(line))
    print(line.strip(), flush=True)
"""
APPEND_MANY = """
import sys
from tests.api.named.test_stored_processes import append_many, opened_often
db = opened_often(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
append_many(db, sys.argv[2])
"""


def opened_often(folder: str) -> ev.Database:
    """Open a database whose queries write checkpoints after few steps."""
    stored.STEPS_BETWEEN = 7
    return ev.open(folder)


def events_of(number: int) -> tuple[str, pa.Table]:
    """Return the events of an append: some of the same time, some late."""
    choose = random.Random(number)
    stream = "trucks" if number % 3 == 2 else "cars"
    ts = [max(0, number + choose.randint(-5, 2)) * SECOND for _ in range(3)]
    columns = {"ts": pa.array(ts, pa.timestamp("us")), "car": [choose.choice("ab") for _ in ts]}
    values = [choose.randint(0, 100) for _ in ts]
    if stream == "cars":
        return stream, pa.table({**columns, "speed": pa.array(map(float, values))})
    return stream, pa.table({**columns, "load": pa.array(values, pa.int64())})


def append_one(db: ev.Database, number: int) -> None:
    stream, events = events_of(number)
    db.stream(stream).append(events)


def appended(db: ev.Database) -> int:
    """Return how many appends are stored; each has three events."""
    return sum(db.store.stream(name).current().next_seq for name in ("cars", "trucks")) // 3


def append_from(db: ev.Database, until: int = APPENDS) -> None:
    for number in range(appended(db), until):
        append_one(db, number)


def create_in_parts(db: ev.Database) -> None:
    """Create a stored stream over history that is read in several parts."""
    with often(7, 10):
        db.sql(f"CREATE STORED STREAM IF NOT EXISTS kept AS {QUERIES[0]}")


def append_many(db: ev.Database, name: str) -> None:
    for second in range(30):
        db.stream("cars").append([{"ts": second * SECOND, "car": name, "speed": float(second)}])


def load() -> None:
    """Load what the queries of these tests need."""
    tables = {"cars": events_of(0)[1], "trucks": events_of(2)[1]}
    for text in QUERIES[:4]:
        ev.sql(text, **{name: table for name, table in tables.items() if name in text})


def kill(work: str, *places: object) -> None:
    """Do some work in a database until it is killed at a call of the disk, and so on."""
    with started(DYING, work, *places) as process:
        found, _ = process.communicate()
        assert process.returncode == 0
    assert found.split() == [str(int(signal.SIGKILL))] * (len(places) // 2)


def started(script: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def new_streams(folder: Path, *, two: bool) -> tuple[ev.Database, list[tuple[str, Oracle]]]:
    """Return a database with stored streams, and the same queries live."""
    db = new_database(folder)
    queries = {"kept": QUERIES[3 if two else 1], "found": QUERIES[2]}
    for name, text in queries.items():
        db.sql(f"CREATE STORED STREAM {name} AS {text}")
    return db, [(name, Oracle(db, text, "0 s")) for name, text in queries.items()]


def check(db: ev.Database, oracles: list[tuple[str, Oracle]], appends: int) -> None:
    for name, oracle in oracles:
        for number in range(appends):
            oracle.append(*events_of(number))
            oracle.step()
        assert failure_of(db, name) is None
        assert sorted_rows(rows_of(db, name)) == sorted_rows(oracle.found)
        assert oracle.found


def test_rows_are_stored_once_when_processes_are_killed(tmp_path: Path) -> None:
    """At any write, sync, rename or removal; also while the next one mends what was left."""
    choose = random.Random(17)
    db, oracles = new_streams(tmp_path / "db", two=True)
    kill("append_from", *(each for _ in range(KILLS) for each in (db.path, choose.randint(1, 60))))
    with often(7, 10**6):
        db = ev.open(db.path)
        done = appended(db)
        assert 0 < done < APPENDS
        append_from(db, done + 20)
    check(db, oracles, done + 20)


def test_rows_are_stored_once_when_killed_over_history(tmp_path: Path) -> None:
    db = new_database(tmp_path / "db")
    oracle = Oracle(db, QUERIES[0], "0 s")
    for number in range(40):
        append_one(db, number)
        oracle.append(*events_of(number))
    oracle.step()
    assert oracle.found
    places = {tmp_path / f"db{place}": place for place in PLACES}
    for folder in places:
        shutil.copytree(db.path, folder)
    kill("create_in_parts", *(each for pair in places.items() for each in pair))
    for folder, place in places.items():
        db = ev.open(folder)
        create_in_parts(db)
        assert failure_of(db) is None, place
        assert sorted_rows(rows_of(db)) == sorted_rows(oracle.found), place


def test_processes_take_turns(tmp_path: Path) -> None:
    """Each goes on where the other is."""
    db, oracles = new_streams(tmp_path / "db", two=True)
    with started(APPEND_WHEN_ASKED, db.path) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        for number in range(40):
            if number % 5 < 3:
                append_one(db, number)
                continue
            other.stdin.write(f"{number}\n")
            other.stdin.flush()
            assert other.stdout.readline() == f"{number}\n"
        other.stdin.close()
    # The other process may have had the last word.
    check(ev.open(db.path), oracles, 40)


def test_processes_append_at_the_same_time(tmp_path: Path) -> None:
    db = new_database(tmp_path / "db")
    text = "SELECT car, speed FROM cars WHERE speed >= 5"
    db.sql(f"CREATE STORED STREAM kept WITH (lateness = '1 hour') AS {text}")
    others = [started(APPEND_MANY, db.path, name) for name in OTHERS]
    for other in others:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
    for other in others:
        assert other.stdin is not None
        other.stdin.write("go\n")
        other.stdin.flush()
    append_many(db, "z")
    for other in others:
        other.communicate()
        assert other.returncode == 0
    db.stream("cars").append([{"ts": 10**10, "car": "last", "speed": 1.0}])
    assert failure_of(db) is None
    found = [(row["car"], row["speed"]) for row in rows_of(db)]
    assert sorted(found) == [
        (name, float(speed)) for name in (*OTHERS, "z") for speed in range(5, 30)
    ]
