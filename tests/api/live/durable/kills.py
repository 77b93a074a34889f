"""Kill a process that runs durable queries, again and again, while another one appends.

python -m tests.api.live.durable.kills FOLDER KILLS SEED

Every round has a database of its own. Children are forked: what they need is loaded and compiled
once. A third of the kills come while the queries start, a third while they run, and a third right
after a checkpoint has been begun.

After each kill: rows came in the order of their numbers, none was left out, none that was
acknowledged came again, and each number has one row. At the end of a round all rows are those of
history; a stream and files have each of them once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

import eventide as ev
from eventide.api.live.durable import QUERIES as KEPT
from eventide.store.progress import received_rows
from tests.api.live.durable import killed
from tests.api.live.durable.killed import (
    BEGUN,
    FAST,
    PULLED,
    QUERIES,
    READY,
    RECEIVED,
    SET,
    SET_ROWS,
    SET_TEXT,
    SILENT,
    WRITTEN,
)

ROUND = 25
"""So many kills are done to one database."""
MOMENTS = ("start", "run", "checkpoint")
Count = Counter[str]


class Received:
    """The rows that the receiver of a query has got, read again after each kill."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.rows: list[str] = []
        self.place = self.acknowledged = 0

    def look(self) -> Count:
        """Read what has come since the last look, from one process; return what was seen."""
        path = killed.received_by(self.folder, self.name)
        if not path.exists():
            return Counter()
        with path.open() as file:
            file.seek(self.place)
            text = file.read()
            self.place = file.tell()
        lines = (line.partition("\t") for line in text.splitlines())
        came = [(int(number), row) for number, _, row in lines if row.endswith("}")]
        again = sum(number < len(self.rows) for number, _ in came)
        if came:
            first = came[0][0]
            assert [number for number, _ in came] == list(range(first, first + len(came)))
            assert first <= len(self.rows), f"{self.name}: rows before {first} are left out"
            assert first >= self.acknowledged, f"{self.name}: row {first} had been acknowledged"
        for number, row in came:
            if number < len(self.rows):
                assert self.rows[number] == row, f"{self.name}: row {number} differs"
            else:
                self.rows.append(row)
        self.acknowledged = received_rows(self.folder / KEPT / self.name)
        assert self.acknowledged <= len(self.rows), f"{self.name}: acknowledged, not received"
        return Counter(rows=len(came) - again, again=again)


def kill_in_round(folder: Path, kills: int, seed: int) -> Count:
    """Kill so often; return what was seen, or raise what is wrong."""
    choose = random.Random(seed)
    killed.create(folder)
    for text in (*QUERIES.values(), FAST, SILENT):
        ev.open(folder).sql(text)
    stop = folder / "stop"
    appender = forked(killed.append_until, folder, stop, seed)
    received = [Received(folder, name) for name in RECEIVED]
    seen: Count = Counter()
    starting_s = 1.0
    try:
        for kill in range(kills):
            moment = MOMENTS[kill % len(MOMENTS)]
            hears, says = os.pipe()
            began = time.monotonic()
            child = forked(killed.follow, folder, seed + kill, says)
            os.close(says)
            said = b""
            if moment == "start":
                time.sleep(choose.uniform(0, starting_s))
            else:
                said = heard(hears, b"", READY)
                starting_s = time.monotonic() - began
                if moment == "run":
                    time.sleep(choose.expovariate(10))
                else:
                    said = heard(hears, said[said.index(READY) + 1 :], BEGUN)
                    time.sleep(choose.uniform(0, 0.005))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), f"a follower ended by itself with {status}"
            while more := os.read(hears, 1 << 16):
                said += more
            os.close(hears)
            ran = moment != "start" or READY in said
            came = sum((each.look() for each in received), start=Counter())
            seen += came
            seen["kills"] += 1
            seen["kills of queries that ran" if ran else "kills while queries started"] += 1
            seen["kills in a checkpoint"] += said.count(BEGUN) > said.count(WRITTEN)
            seen["kills after rows had come"] += bool(came)
    finally:
        stop.touch()
        assert os.waitpid(appender, 0)[1] == 0
    assert os.waitpid(forked(killed.complete, folder), 0)[1] == 0
    seen += sum((each.look() for each in received), start=Counter())
    compare(folder, received)
    db = ev.open(folder)
    seen["events"] += sum(len(db.stream(name)) for name in ("cars", "trucks"))
    return seen


def heard(pipe: int, said: bytes, wanted: bytes) -> bytes:
    """Return what a follower has said, once it has said something."""
    while wanted not in said:
        more = os.read(pipe, 1 << 16)
        assert more, "a follower ended by itself"
        said += more
    return said


def compare(folder: Path, received: list[Received]) -> None:
    """Compare what has come with history."""
    db = ev.open(folder)
    texts = {**QUERIES, PULLED: FAST}
    rows = {name: list(db.sql(text).rows()) for name, text in texts.items()}
    rows[SET] = [
        {"query": number, **row}
        for number, params in enumerate(SET_ROWS)
        for row in db.sql(SET_TEXT, params=params).rows()
    ]
    for each in received:
        expected = sorted(map(repr, rows[each.name]))
        assert expected
        assert sorted(each.rows) == expected, f"{each.name}: not the rows of history"
    fast = sorted((row["ts"], row["car"], row["speed"]) for row in db.sql(FAST))
    kept = sorted((row["ts"], row["car"], row["speed"]) for row in db.sql("SELECT * FROM kept"))
    assert kept == fast, "the stream has not the rows of history, each once"
    without_times = sorted((car, speed) for _, car, speed in fast)
    lines = [
        json.loads(line)
        for file in (folder / "lines").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert sorted((row["car"], row["speed"]) for row in lines) == without_times, "lines differ"
    tables = [pq.read_table(file) for file in (folder / "parquet").glob("*.parquet")]
    parquet = [row for table in tables for row in table.to_pylist()]
    assert sorted((row["car"], row["speed"]) for row in parquet) == without_times, "Parquet differs"


def run(folder: Path, kills: int, seed: int) -> str:
    """Kill so often, in rounds; return what was seen."""
    warnings.simplefilter("ignore")
    seen: Count = Counter()
    for start in range(0, kills, ROUND):
        place = folder / f"round-{seed + start}"
        place.parent.mkdir(parents=True, exist_ok=True)
        seen += kill_in_round(place, min(ROUND, kills - start), seed + start)
        # What was wrong can be looked at; what was right need not be.
        shutil.rmtree(place)
        print(shown(seen), file=sys.stderr, flush=True)  # noqa: T201
    return shown(seen)


def shown(seen: Count) -> str:
    """Return counts as a text."""
    return ", ".join(f"{count:,} {what}" for what, count in seen.items())


def forked(work: Callable[..., None], *args: object) -> int:
    """Do work in a child; its process ends with 0 unless something was raised."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*args)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    print(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])), flush=True)  # noqa: T201
