"""Live queries that follow the store: how soon rows come, and what that costs who appends.

There is no rival. The delay is from just before an append to the call of the receiver, by the clock
that all processes of a machine share. What appends take is compared with appends that nobody
follows, in the same run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from threading import Event

import numpy as np
from rich.console import Console

import eventide as ev
from benchmarks.keys import (
    BATCH,
    OF_TEXTS,
    WITH_TEXTS,
    appended_a_second,
    batches_of,
    lines_of,
)
from benchmarks.pages import FOLLOWING as PAGE
from benchmarks.pages import write_section
from benchmarks.promises import VERDICT, Figure, verdict
from benchmarks.race import at_least
from benchmarks.report import Machine, facts

APPENDS = 2_000
PAUSE_S = 0.003
PATTERN_KEYS = 100
WANTED = at_least(2)
QUERY = "SELECT sent FROM s WHERE sent > 0"

APPENDING = """
import sys, time
import eventide as ev
from benchmarks.following import append
append(ev.open(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
"""


@dataclass(frozen=True, slots=True)
class Delays:
    """Milliseconds from an append to the receiver."""

    half: float
    most: float
    worst: float
    rows: int

    @classmethod
    def of(cls, taken_ms: Sequence[float]) -> Delays:
        """Sum up what was measured."""
        half, most = np.quantile(taken_ms, [0.5, 0.99])
        return cls(float(half), float(most), max(taken_ms), len(taken_ms))


def created(folder: Path) -> ev.Database:
    """Return a database with a stream whose appends do not wait for the disk."""
    db = ev.open(folder)
    db.create_stream("s", {"sent": "int64"}, durability="none")
    return db


def append(db: ev.Database, count: int, pause_s: float = 0.0) -> list[float]:
    """Append events one by one; return the milliseconds that each took."""
    stream, taken = db.stream("s"), []
    for _ in range(count):
        if pause_s:
            time.sleep(pause_s)
        sent = time.time_ns() // 1000
        began = time.perf_counter()
        # The second event shows that the instant of the first is over: its row is certain.
        stream.append([{"ts": sent, "sent": sent}, {"ts": sent + 1, "sent": 0}])
        taken.append(1000 * (time.perf_counter() - began))
    return taken


def delays(db: ev.Database, appending: Callable[[], object], count: int) -> Delays:
    """Return how long the rows of appends took to be received."""
    taken: list[float] = []
    enough = Event()

    def receive(rows: ev.Result) -> None:
        now = time.time_ns() // 1000
        taken.extend((now - row["sent"]) / 1000 for row in rows)
        if len(taken) >= count:
            enough.set()

    with db.subscribe(QUERY, receive):
        appending()
        enough.wait()
    # The first ones find code that has not run yet.
    return Delays.of(taken[len(taken) // 10 :])


def other_process(db: ev.Database, count: int) -> None:
    """Let another process append."""
    arguments = [str(db.path), str(count), str(PAUSE_S)]
    subprocess.run([sys.executable, "-c", APPENDING, *arguments], check=True)


def receivers(blocked: Event) -> dict[str, Callable[[ev.Result], None] | None]:
    """Return receivers of several kinds, and None for no query at all."""

    def fail(_: ev.Result) -> None:
        message = "no"
        raise RuntimeError(message)

    return {
        "nobody follows": None,
        "a quick receiver": lambda _: None,
        "a receiver that never returns": lambda _: (blocked.wait(), None)[1],
        "a receiver that always fails": fail,
    }


def run_following(
    folder: Path, screen: Console, machine: Machine, count: int, *, write: bool
) -> None:
    """Measure, and report."""
    first, second = created(folder / "one"), created(folder / "two")
    append(first, 50)
    found = [
        ("in the same process", delays(first, lambda: append(first, count, PAUSE_S), count)),
        ("in another process", delays(second, lambda: other_process(second, count), count)),
    ]
    rows = [
        (name, f"{each.half:.2f}", f"{each.most:.2f}", f"{each.worst:.1f}", f"{each.rows:,}")
        for name, each in found
    ]
    for row in rows:
        screen.print(" | ".join(row))
    blocked, costs = Event(), []
    for number, (name, receiver) in enumerate(receivers(blocked).items()):
        db = created(folder / f"cost {number}")
        append(db, 50)
        query = None if receiver is None else db.subscribe(QUERY, receiver, retry_after="1 h")
        taken = append(db, count)
        costs.append((name, f"{mean(taken):.3f}", f"{np.quantile(taken, 0.99):.3f}"))
        screen.print(" | ".join(costs[-1]))
        blocked.set()
        if query is not None:
            query.cancel()
            assert query.queue is not None
            query.queue.drop_unreceived()
        blocked.clear()
    figure = figure_of(appended_with_pattern())
    screen.print(f"{figure.case} | {figure}")
    if write:
        details = following_section(rows, costs, figure, count, machine)
        screen.print(f"written to {write_section(PAGE, details, [figure])}")


def appended_with_pattern() -> float:
    """Return how many million events a second are appended while a row pattern follows."""
    return appended_a_second(batches_of(PATTERN_KEYS), OF_TEXTS, WITH_TEXTS)


def figure_of(found: float) -> Figure:
    """Return the figure that has a target."""
    case = (
        f"`A B+ C` of texts follows appends of {BATCH:,} events of {PATTERN_KEYS} keys, durability "
        '"none", M events/s'
    )
    return Figure(case, "appended, live", "", WANTED, found, WANTED.met_by(found))


def following_section(
    rows: Sequence[tuple[str, ...]],
    costs: Sequence[tuple[str, ...]],
    figure: Figure,
    count: int,
    machine: Machine,
) -> str:
    """Return the details."""
    about = (
        f"{count:,} events, appended one by one, {1000 * PAUSE_S:g} ms apart: milliseconds from "
        "just before the append to the call of the receiver."
    )
    cost = f"Milliseconds of an append in the process of the query, of {count:,} without a pause."
    lines = [
        *facts(machine),
        "",
        about,
        "",
        *lines_of(("Appended", "median ms", "99 % ms", "worst ms", "rows"), rows),
        "",
        cost,
        "",
        *lines_of(("Who receives", "mean ms", "99 % ms"), costs),
        "",
        *lines_of(VERDICT, [verdict(figure)]),
    ]
    return "\n".join(lines) + "\n"
