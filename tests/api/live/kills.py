"""Kill a process that runs durable queries, again and again, while another one appends.

python -m tests.api.live.kills FOLDER KILLS SEED

Children are forked: what they need is loaded and compiled once. A receiver writes each row with its
number into a file. At the end every number has one row, and the rows are those of history.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import eventide as ev
from eventide.api.live import durable
from eventide.api.live.row_queue import LiveRows
from eventide.api.live.subscription import Subscription
from eventide.sinks import IntoStream, JsonLines

SECOND = 1_000_000
QUERIES = {
    "windows": "SELECT car, window_start, COUNT(*) AS n, SUM(speed) AS total FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '3' SECOND)",
    "pattern": "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car MEASURES A.speed AS a, "
    "LAST(B.speed) AS b PATTERN (A B+) WITHIN INTERVAL '5' SECOND DEFINE B AS speed > A.speed)",
    "situations": "FROM cars PARTITION BY car DEFINE fast AS speed > 2, slow AS speed < 4 "
    "PATTERN fast overlaps slow; fast during slow WITHIN 9 SECONDS RETURN MAX(fast.speed) AS top",
    "join": "ISTREAM (SELECT a.car, a.speed, b.weight FROM cars [RANGE 4 SECONDS] a "
    "JOIN trucks [RANGE 3 SECONDS] b ON a.car = b.car)",
}


FAST = "SELECT ts, car, speed FROM cars WHERE speed > 2"
"""Its rows go into a stream and into files, each exactly once."""


def create(folder: Path) -> None:
    db = ev.open(folder)
    db.create_stream("cars", {"car": "string", "speed": "float64"}, durability="none")
    db.create_stream("trucks", {"car": "string", "weight": "float64"}, durability="none")
    db.create_stream("kept", {"car": "string", "speed": "float64"}, durability="none")


def append_until(folder: Path, stop: Path, seed: int) -> None:
    """Append to both streams, in order of time, until a file is there."""
    db, choose, now = ev.open(folder), random.Random(seed), 0
    while not stop.exists():
        for stream, value in (("cars", "speed"), ("trucks", "weight")):
            batch = []
            for _ in range(choose.randint(1, 3)):
                now += choose.randint(0, SECOND)
                row = {"car": choose.choice("abc"), value: float(choose.randint(0, 5))}
                batch.append({"ts": now, **row})
            db.stream(stream).append(batch)
        time.sleep(choose.expovariate(300))


def follow(folder: Path, out: Path, seed: int, ready: int) -> None:
    """Run the queries, until killed; say when they run."""
    durable.STEPS_BETWEEN = random.Random(seed).choice((1, 5, 30))
    db = ev.open(folder)
    for name, text in QUERIES.items():
        db.subscribe(text, writer(out / name), name=name, start="beginning")
    into_sinks(db, out)
    os.write(ready, b"!")
    while True:
        time.sleep(1)


def into_sinks(db: ev.Database, out: Path) -> list[Subscription]:
    """Run a query twice: into a stream, and into files."""
    sinks = {"stream": IntoStream(db, "kept"), "files": JsonLines(out.parent / "files", rows=20)}
    return [
        db.subscribe(FAST, sink, name=f"into {name}".replace(" ", "_"), start="beginning")
        for name, sink in sinks.items()
    ]


def complete(folder: Path, out: Path) -> None:
    """Run the queries until all is received."""
    db = ev.open(folder)
    for name, text in QUERIES.items():
        query = db.subscribe(text, writer(out / name), name=name, start="beginning")
        query.advance("2100-01-01")
        query.wait()
    for query in into_sinks(db, out):
        query.advance("2100-01-01")
        query.wait()
    db.close()


def writer(path: Path) -> Any:  # noqa: ANN401
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(rows: LiveRows) -> None:
        lines = [f"{number}\t{row!r}" for number, row in enumerate(rows, rows.first_row)]
        # A line that was cut short by a kill is not the beginning of another.
        os.write(file, ("\n" + "\n".join(lines) + "\n").encode())
        if random.random() < 0.1:
            time.sleep(0.02)  # a kill that comes now finds the rows received, but not acknowledged

    return write


def received(path: Path) -> tuple[dict[int, str], int]:
    """Return the rows by number, and how many came more than once."""
    found: dict[int, str] = {}
    again = 0
    for line in path.read_text().splitlines():
        number, _, row = line.partition("\t")
        if not row.endswith("}"):
            continue
        again += int(number) in found
        assert found.setdefault(int(number), row) == row, f"row {number} of {path.name} differs"
    return found, again


def run(folder: Path, kills: int, seed: int) -> str:
    """Kill so often; return what was seen, or raise what is wrong."""
    warnings.simplefilter("ignore")
    choose = random.Random(seed)
    create(folder)
    out, stop = folder / "received", folder / "stop"
    out.mkdir()
    for text in QUERIES.values():
        ev.open(folder).sql(text)
    appender = forked(append_until, folder, stop, seed)
    for kill in range(kills):
        running, ready = os.pipe()
        child = forked(follow, folder, out, seed + kill, ready)
        os.close(ready)
        if kill % 3:
            os.read(running, 1)  # else it may not have begun
        time.sleep(choose.expovariate(20))
        os.close(running)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"a follower ended by itself with {status}"
    early = sum(len(received(each)[0]) for each in out.iterdir())
    stop.touch()
    assert os.waitpid(appender, 0)[1] == 0
    assert os.waitpid(forked(complete, folder, out), 0)[1] == 0
    told = []
    db = ev.open(folder)
    for name, text in QUERIES.items():
        rows, again = received(out / name)
        assert sorted(rows) == list(range(len(rows))), f"{name}: numbers are missing"
        expected = sorted(repr(row) for row in db.sql(text).rows())
        assert sorted(rows.values()) == expected, f"{name}: not the rows of history"
        told.append(f"{name} {len(rows):,} rows, {again:,} came again")
    fast = [(row["ts"], row["car"], row["speed"]) for row in db.sql(FAST)]
    stored = [(row["ts"], row["car"], row["speed"]) for row in db.sql("SELECT * FROM kept")]
    assert sorted(stored) == sorted(fast), "a stream has not the rows of history, each once"
    lines = [
        json.loads(line)
        for file in sorted((folder / "files").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    written = [(row["car"], row["speed"]) for row in lines]
    assert sorted(written) == sorted((car, speed) for _, car, speed in fast), "files differ"
    told.append(f"a stream and files {len(fast):,} rows each, once")
    events = sum(len(db.stream(name)) for name in ("cars", "trucks"))
    assert early, "no follower lived long enough"
    return f"{kills:,} kills, {events:,} events, {early:,} rows before the last: {'; '.join(told)}"


def forked(work: Any, *args: Any) -> int:  # noqa: ANN401
    """Do work in a child; its process ends with 0 unless something was raised."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*args)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    print(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])), flush=True)  # noqa: T201
