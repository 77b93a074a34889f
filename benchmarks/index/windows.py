"""Windows over a week of events, replayed and from the index: how the slide decides.

W1 of Körber's thesis: 60.48 million events, a hundred a second, one double each; sum, average and
count of windows of a day, from one every 10 ms to one a day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.data import START_US
from benchmarks.guard import MismatchError
from benchmarks.pages import WINDOWS, write_section
from benchmarks.promises import figures_of
from benchmarks.race import ROUNDS, Finding, at_least, at_most, race
from benchmarks.report import (
    HOW_TO_READ_STORE,
    Machine,
    as_table,
    facts,
    table_lines,
)
from benchmarks.store.setting import remove
from eventide.engines.build import build_tree
from eventide.engines.history.choice import ways
from eventide.engines.history.replay import replay
from eventide.engines.history.weights import DEFAULTS
from eventide.engines.history.windows.index import WindowIndex, window_access
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Project
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import Schema
from eventide.store import Snapshot, Store
from eventide.store.reading.aggregate import AggregateCall, aggregate

STREAM = "readings"
SEED = 20_210_308
GAP_US = 10_000
SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
EVENTS = 7 * DAY_US // GAP_US
CHUNK_ROWS = 1_000_000
# Day zero begins at midnight: so do windows.
FIRST_US = START_US // DAY_US * DAY_US
QUERY = f"""
    SELECT window_start, SUM(level) AS total, AVG(level) AS mean, COUNT(*) AS events
    FROM {STREAM} WHERE ts < TIMESTAMP '{{end}}'
    GROUP BY HOP(ts, INTERVAL '1 hour', INTERVAL '1 day')
"""
SHORT_SECONDS = 0.5
SHORT_ROUNDS = 7
"""What takes less than so many seconds is run so many times as often."""
EACH = "a question for each window"
NAIVE_SLIDE_US = 900 * SECOND_US
"""With shorter slides, to ask the index for each window alone takes too long to wait for."""


@dataclass(frozen=True, slots=True)
class Slide:
    """A slide, and the part of the week that it is measured on."""

    us: int
    days: float = 7
    least: float | None = None
    """How many times faster than a replay the index has to be."""

    def __str__(self) -> str:
        part = "" if self.days == 7 else f", {format_duration(round(self.days * DAY_US))}"
        return f"every {format_duration(self.us)}{part}"


SLIDES = (
    # Each row of the two shortest is a window of its own, tens of millions in a week.
    Slide(10_000, days=0.25),
    Slide(100_000, days=2),
    Slide(SECOND_US),
    Slide(10 * SECOND_US),
    Slide(60 * SECOND_US),
    Slide(300 * SECOND_US),
    Slide(900 * SECOND_US, least=50),
    Slide(3_600 * SECOND_US),
    Slide(6 * 3_600 * SECOND_US),
    Slide(DAY_US),
)


@dataclass(frozen=True)
class WindowSetting:
    """The stream, made when it is first asked for."""

    folder: Path
    events: int = EVENTS

    @cached_property
    def snapshot(self) -> Snapshot:
        """The events, all of them in segments."""
        stream = Store.open(self.folder).create_stream(STREAM, Schema.of({"level": "float64"}))
        random = np.random.default_rng(SEED)
        for start in range(0, self.events, CHUNK_ROWS):
            count = min(CHUNK_ROWS, self.events - start)
            ts = FIRST_US + GAP_US * np.arange(start, start + count)
            levels = random.normal(20, 5, count)
            stream.append(pa.table({"ts": pa.array(ts, pa.timestamp("us")), "level": levels}))
        stream.flush()
        return stream.snapshot()

    def plan(self, slide: Slide) -> Plan:
        """Return the query of a slide. SQL refuses the shortest, so it is put in afterwards."""
        end = np.datetime64(FIRST_US + round(slide.days * DAY_US), "us")
        plan = plan_sql(QUERY.format(end=end), {STREAM: self.snapshot.schema})
        assert isinstance(plan, Project)
        assert isinstance(plan.source, WindowAggregate)
        return replace(plan, source=replace(plan.source, window=Window(DAY_US, slide.us)))

    def close(self) -> None:
        """Delete everything."""
        remove(self.folder)


def window_findings(
    setting: WindowSetting, slides: Sequence[Slide] = SLIDES, rounds: int = ROUNDS
) -> Iterator[list[Finding]]:
    """Yield what each slide takes: replayed, from the index, and as chosen."""
    for slide in slides:
        plan, snapshot = setting.plan(slide), setting.snapshot
        check(slide, plan, [way(plan, snapshot) for way in (replay, from_index, chosen)])
        best = ways(plan, snapshot, DEFAULTS).best
        yield findings_of(slide, seconds_of(slide, plan, snapshot, rounds), best.name)


def seconds_of(slide: Slide, plan: Plan, snapshot: Snapshot, rounds: int) -> dict[str, float]:
    """Return the median seconds of each way."""
    compared: dict[str, Callable[[], object]] = {
        "replay": lambda: replay(plan, snapshot),
        "index": lambda: from_index(plan, snapshot),
        "chosen": lambda: chosen(plan, snapshot),
    }
    if slide.us >= NAIVE_SLIDE_US:
        compared[EACH] = lambda: naive(snapshot, slide.us)
    seconds = race(compared, rounds)
    if seconds["index"] < SHORT_SECONDS:
        # A few milliseconds are told from a few others only by many rounds.
        again = {name: compared[name] for name in ("index", "chosen")}
        seconds |= race(again, SHORT_ROUNDS * rounds)
    return seconds


def findings_of(slide: Slide, seconds: dict[str, float], taken: str) -> list[Finding]:
    """Return the lines of one slide."""
    case, better = str(slide), min(seconds["replay"], seconds["index"])
    target = None if slide.least is None else at_least(slide.least)
    found = [
        Finding("index", seconds["index"], "replay", seconds["replay"], target, case=case),
        Finding(
            f"chosen: {taken}", seconds["chosen"], "the better", better, at_most(1.1), case=case
        ),
    ]
    if EACH in seconds:
        found.append(Finding("index", seconds["index"], EACH, seconds[EACH], case=case))
    return found


def from_index(plan: Plan, snapshot: Snapshot) -> list[pa.RecordBatch]:
    """Return the rows from the index, whatever it takes."""
    access = window_access(plan, snapshot, DEFAULTS)
    assert isinstance(access, WindowIndex)
    return access.run()[0]


def chosen(plan: Plan, snapshot: Snapshot) -> list[pa.RecordBatch]:
    """Return the rows the way that Eventide chooses, which is timed as well."""
    return ways(plan, snapshot, DEFAULTS).best.run()[0]


def naive(snapshot: Snapshot, slide_us: int) -> list[pa.RecordBatch]:
    """Return an answer for each window that begins with the stream or later, one by one."""
    calls = [AggregateCall("sum", "level"), AggregateCall("avg", "level"), AggregateCall("count")]
    times = snapshot.time_range
    starts = range(times.start_us, times.end_us, slide_us)
    return [aggregate(snapshot, calls, [start, start + DAY_US]) for start in starts]


def check(slide: Slide, plan: Plan, answers: Sequence[Sequence[pa.RecordBatch]]) -> None:
    """Refuse answers that differ in a bit."""
    schema = build_tree(plan).output_schema
    expected, *others = (pa.Table.from_batches(rows, schema) for rows in answers)
    if not all(other.equals(expected) for other in others):
        message = f"{slide}: the index and a replay give different windows"
        raise MismatchError(message)


def run_windows(
    folder: Path, screen: Console, machine: Machine, events: int = EVENTS, *, write: bool = True
) -> None:
    """Run the sweep over slides, and report."""
    screen.print(f"{events:,} events, {len(SLIDES)} slides. {HOW_TO_READ_STORE}")
    setting = WindowSetting(folder / "windows", events)
    findings: list[Finding] = []
    for found in window_findings(setting):
        findings += found
        screen.print(as_table(found))
    setting.close()
    screen.print(as_table(findings))
    if write:
        details = windows_section(findings, events, machine)
        path = write_section(WINDOWS, details, figures_of(findings))
        screen.print(f"written to {path}")


def windows_section(findings: Sequence[Finding], events: int, machine: Machine) -> str:
    """Return the details about windows."""
    lines = [
        *facts(machine),
        f"- Events: {events:,}, a hundred a second, one double each; of short slides only so much "
        "time as the table says, for every slide is a row of the answer",
        f"- Seconds: median of {ROUNDS} rounds, warm, and of {ROUNDS * SHORT_ROUNDS} for the index "
        f"below {SHORT_SECONDS} s; to choose is part of what was chosen",
        "",
        HOW_TO_READ_STORE,
        "",
        *table_lines(findings),
        "",
        "Each case asks for sum, average and count of windows of one day that begin so often.",
    ]
    return "\n".join(lines) + "\n"
