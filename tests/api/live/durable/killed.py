"""What the processes do that `kills` starts: append, and run durable queries of several kinds."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from threading import Thread
from unittest import mock

import eventide as ev
from eventide.api.live import durable, journaled
from eventide.api.live.pulled import Pull
from eventide.api.live.receiver import Receive
from eventide.api.live.row_queue import LiveRows
from eventide.api.live.shared.durable_set import DurableSet
from eventide.api.live.subscription import Subscription
from eventide.sinks import IntoStream, JsonLines, Parquet, Sink
from eventide.store.progress import Checkpoint, write_checkpoint

SECOND = 1_000_000
LATENESS = "1 s"
QUERIES = {
    "windows": "SELECT car, window_start, COUNT(*) AS n, SUM(speed) AS total FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '3' SECOND)",
    "pattern": "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car MEASURES A.speed AS a, "
    "LAST(B.speed) AS b PATTERN (A B+) WITHIN INTERVAL '5' SECOND DEFINE B AS speed > A.speed)",
    "situations": "FROM cars PARTITION BY car DEFINE fast AS speed > 2, slow AS speed < 4 "
    "PATTERN fast overlaps slow; fast during slow WITHIN 9 SECONDS RETURN MAX(fast.speed) AS top",
    "join": "ISTREAM (SELECT a.car, a.speed, b.weight FROM cars [RANGE 4 SECONDS] a "
    "JOIN trucks [RANGE 3 SECONDS] b ON a.car = b.car)",
    "named": "SELECT window_start, COUNT(*) AS n FROM quick "
    "GROUP BY TUMBLE(ts, INTERVAL '5' SECOND)",
}
FAST = "SELECT ts, car, speed FROM cars WHERE speed > 2"
"""Its rows are pulled, and go into a stream and into files: each exactly once."""
SET_TEXT = (
    "SELECT car, window_start, SUM(speed) AS total FROM cars WHERE speed > $least "
    "GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND)"
)
SET_ROWS = [{"least": 0.0}, {"least": 2.0}, {"least": 3.0}]
SILENT = "SELECT car, weight FROM trucks WHERE weight > 100"
"""Queries without rows come into the set, and leave it, while it runs."""
PULLED = "pulled"
SET = "set"
RECEIVED = (*QUERIES, SET, PULLED)
"""The queries whose receivers write each row with its number into a file."""

READY, BEGUN, WRITTEN = b"!", b"(", b")"
"""What a follower says: its queries run, a checkpoint is begun, and is written."""


def create(folder: Path) -> None:
    """Create the streams, and a derived one."""
    db = ev.open(folder)
    received_by(folder, "").mkdir()
    db.create_stream("cars", {"car": "string", "speed": "float64"}, durability="none")
    db.create_stream("trucks", {"car": "string", "weight": "float64"}, durability="none")
    db.create_stream("kept", {"car": "string", "speed": "float64"}, durability="none")
    db.sql(
        f"CREATE STREAM quick WITH (lateness = '{LATENESS}') AS "
        "SELECT ts, car, speed FROM cars WHERE speed > 1"
    )


def append_until(folder: Path, stop: Path, seed: int) -> None:
    """Append to both streams, out of order by no more than the lateness, until a file is there."""
    db, choose, now = ev.open(folder), random.Random(seed), SECOND
    while not stop.exists():
        for stream, value in (("cars", "speed"), ("trucks", "weight")):
            batch = []
            for _ in range(choose.randint(1, 3)):
                now += choose.randint(0, SECOND)
                row = {"car": choose.choice("abc"), value: float(choose.randint(0, 5))}
                batch.append({"ts": now - choose.randint(0, SECOND), **row})
            db.stream(stream).append(batch)
        time.sleep(choose.expovariate(100))


def follow(folder: Path, seed: int, say: int) -> None:
    """Run the queries until killed; say when they run, and when checkpoints are written."""
    durable.STEPS_BETWEEN = random.Random(seed).choice((1, 5, 30))

    def written(at: Path, checkpoint: Checkpoint) -> None:
        os.write(say, BEGUN)
        write_checkpoint(at, checkpoint)
        os.write(say, WRITTEN)

    mock.patch.object(journaled, "write_checkpoint", written).start()
    db = ev.open(folder)
    queries = started(db)
    pulled = queries[-1]
    receive = writer(folder, PULLED)
    Thread(target=lambda: [receive(rows) for rows in pulled], daemon=True).start()
    os.write(say, READY)
    for query in queries:
        if isinstance(query, DurableSet):
            change(query, random.Random(seed))


def change(live: DurableSet, choose: random.Random) -> None:
    """Let queries without rows come and go until killed."""
    while True:
        others = [number for number, text in live.texts.items() if text == SILENT]
        if len(others) > 4:
            live.drop(choose.sample(others, 2))
        else:
            live.add([SILENT] * choose.randint(1, 3))
        time.sleep(choose.expovariate(50))


def started(db: ev.Database) -> list[Subscription]:
    """Start all queries, or let them go on where they were; the last one is to be pulled."""
    sinks = {
        "stream": IntoStream(db, "kept"),
        "lines": JsonLines(db.path / "lines", rows=20),
        "parquet": Parquet(db.path / "parquet", rows=50),
    }
    receivers: list[tuple[str, str, Receive | Sink | Pull]] = [
        *((name, text, writer(db.path, name)) for name, text in QUERIES.items()),
        *((name, FAST, sink) for name, sink in sinks.items()),
        (PULLED, FAST, Pull.PULL),
    ]
    several = db.subscribe_many(
        SET_TEXT,
        SET_ROWS,
        writer(db.path, SET),
        name=SET,
        start="beginning",
        lateness=LATENESS,
    )
    return [
        several,
        *(
            db.subscribe(text, receiver, name=name, start="beginning", lateness=LATENESS)
            for name, text, receiver in receivers
        ),
    ]


def complete(folder: Path) -> None:
    """Run the queries until all is received."""
    db = ev.open(folder)
    queries = started(db)
    for query in queries:
        query.advance("2100-01-01")
        query.wait()
    receive = writer(folder, PULLED)
    while (rows := queries[-1].next(timeout=0)) is not None:
        receive(rows)
    db.close()


def received_by(folder: Path, name: str) -> Path:
    """Return the file that the receiver of a query writes."""
    return folder / "received" / name


def writer(folder: Path, name: str) -> Receive:
    """Return a receiver that writes rows with their numbers to a file."""
    file = os.open(received_by(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(rows: LiveRows) -> None:
        if random.random() < 0.3:
            time.sleep(0.02)  # a kill that comes now finds the rows neither received nor dropped
        lines = [f"{number}\t{row!r}" for number, row in enumerate(rows, rows.first_row)]
        # A line that was cut short by a kill is not the beginning of another.
        os.write(file, ("\n" + "\n".join(lines) + "\n").encode())
        if random.random() < 0.3:
            time.sleep(0.02)  # a kill that comes now finds the rows received, but not acknowledged

    return write
