"""Siddhi, in a process of its own: an open engine for complex events, written in Java.

Its jars are in a wheel. Each query is written in the way that is its best: conditions right behind
the stream, no partitions, all events in batches, and a callback that counts rows. Only the time of
the thread that sends is counted, so its compiler and its collector are free.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.guard import MismatchError
from benchmarks.patterns.rivals import INSTALL_SECONDS, called
from benchmarks.sharing.sets import usual
from benchmarks.sharing.sets.running import BATCH, QuerySet, Running, single_texts
from eventide.schema import TS

HERE = Path(__file__).parent
WHEEL = "PySiddhi==5.1.0"
VERSION = "5.1.7"
BATCHES_OF_ROUND, ENOUGH_S, MOST_BATCHES = 10, 5.0, 300
QUERIES = {
    usual.SELECTIONS.name: (
        "from trades[sym == {sym}L and x > {high}] select ts, sym, x insert into found;"
    ),
    usual.SEQUENCES.name: (
        "from every e1=trades[sym == {sym}L and x > {high}] "
        "-> e2=trades[sym == {sym}L and x < {low}] within 10 sec "
        "select e2.ts as ts, e1.sym as sym, e2.x as x insert into found;"
    ),
}
STREAMS = (
    "define stream trades (ts long, sym long, x double);\n"
    "define stream found (ts long, sym long, x double);\n"
)


@dataclass(frozen=True, slots=True)
class Siddhi:
    """What Siddhi did: seconds to deploy, events a second of its thread, events and rows."""

    deployed_s: float
    events_s: float
    events: int
    rows: int


def jars(folder: Path) -> Path:
    """Return the folder with Siddhi's jars, which are fetched if they are not there."""
    home = folder / f"siddhi-{VERSION}"
    if not (home / "done").exists():
        with tempfile.TemporaryDirectory() as place:
            fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", place]
            called([*fetch, WHEEL], "Siddhi", INSTALL_SECONDS)
            (wheel,) = Path(place).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if name.endswith(".jar")]
                archive.extractall(home, names)
        (home / "done").touch()
    return home


def ask_siddhi(queries: QuerySet, count: int, folder: Path) -> Siddhi:
    """Run so many queries of a set in Siddhi."""
    home = jars(folder)
    with tempfile.TemporaryDirectory() as place:
        app, events = Path(place, "app.siddhi"), Path(place, "events")
        app.write_text(siddhi_app(queries, count))
        events.write_bytes(as_bytes(queries))
        paths = ":".join(map(str, home.rglob("*.jar")))
        command = ["java", "-Xmx4g", "-XX:+UseParallelGC", "-cp", paths]
        command += [str(HERE / "SiddhiChild.java"), str(app), str(events), str(BATCH)]
        said = called([*command, str(BATCHES_OF_ROUND), str(ENOUGH_S)], "Siddhi", 600)
    deployed, sent, best, rows = map(float, said.splitlines()[-1].split())
    return Siddhi(deployed, BATCHES_OF_ROUND * BATCH / best, int(sent), int(rows))


def siddhi_app(queries: QuerySet, count: int) -> str:
    """Return an application with the same queries."""
    written = [STREAMS]
    for _, values in single_texts(queries.asked(count)):
        assert values is not None
        written.append(QUERIES[queries.name].format(**values))
    return "\n".join(written)


def as_bytes(queries: QuerySet) -> bytes:
    """Return trades as the child reads them."""
    parts = []
    for arrived in islice(queries.events(), MOST_BATCHES):
        rows = arrived["trades"]
        columns = np.empty((rows.num_rows, 3), np.int64)
        columns[:, 0] = rows.column(TS).cast(pa.int64()).to_numpy() // 1_000
        columns[:, 1] = rows.column("sym").to_numpy()
        columns[:, 2] = rows.column("x").to_numpy().view(np.int64)
        parts.append(columns.tobytes())
    return b"".join(parts)


def check_siddhi(queries: QuerySet, count: int, theirs: Siddhi) -> None:
    """Compare how many rows Siddhi has found with ours."""
    running = Running(queries, count)
    batches = islice(running.arriving, theirs.events // BATCH)
    rows = sum(map(running.take, batches))
    rows += sum(len(each.numbers) for each in running.many.finish().rows)
    if rows != theirs.rows:
        message = f"{queries.name}: Siddhi found {theirs.rows:,} rows, Eventide {rows:,}"
        raise MismatchError(message)
