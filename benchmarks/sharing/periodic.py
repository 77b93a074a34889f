"""Thousands of periodic queries over one stream: a set, against a query for each, and DuckDB.

100 hosts send a load 1,000 times a second. Dashboards ask for its mean in windows of a minute to a
day, every 10 s to every hour, by host or for all, on one of 100 conditions, of which the n-th is
asked n times as rarely as the first. Before what is timed, a day of fewer events fills the windows,
of which no refresh is asked for. Seconds are those of the processor, for other work on the machine
would show in the clock on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.guard import MismatchError
from benchmarks.measure import collector_off
from benchmarks.pages import PERIODIC, write_section
from benchmarks.promises import Figure
from benchmarks.race import Target, at_least, at_most
from benchmarks.report import Machine, as_line, facts
from benchmarks.sharing.deadlines import Met, deadlines_met
from benchmarks.sharing.isolation import Isolation, isolation
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.sharing.engine import shared_of
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.engines.live.sharing.windows import WindowsRun
from eventide.engines.standing.choice import best_plan
from eventide.kernels.sharing.slices import NEVER, set_due
from eventide.lang.sql import plan_sql
from eventide.operators.sharing.windows import near
from eventide.plan.sharing.rules import RULES_OF_SETS
from eventide.schema import Schema

QUERIES = 10_000
RATE, BEFORE_RATE = 100_000, 200
"""Events a second of event time, and of the day before."""
DAY_S = 86_400
HOSTS = 100
CONDITIONS = 100
SIZES_S = (60, 300, 900, 3_600, 21_600, DAY_S)
SLIDES_S = (10, 30, 60, 300, 900, 3_600)
SECONDS = 31
"""So many are timed."""
SAMPLE = 12
"""So many queries are run by themselves; what all would take is found from these."""
ALONE_S = 3
"""So many seconds are timed of a query that runs by itself."""
FEW = RATE // 100
BUSY_FROM_S = 600
OVERLOAD = 1.6
"""So many seconds does a second with few events take a machine that is too slow."""
ON_TIME = 0.95
LEAST = 100.0
"""How many times as much time and memory a query for each has to take."""
SCHEMA = Schema.of({"host": "string", "service": "int64", "level": "int64", "load": "float64"})
CATALOG = {"metrics": SCHEMA}
NAMES = pa.array([f"h{number:02}" for number in range(HOSTS)])


@dataclass(frozen=True, slots=True)
class Asked:
    """A periodic query: its window, its condition, and whether it is by host."""

    size_s: int
    slide_s: int
    condition: str
    by_host: bool

    @property
    def text(self) -> str:
        """The query."""
        key, group = ("host, ", " GROUP BY host") if self.by_host else ("", "")
        window = f"[RANGE {self.size_s} SECONDS SLIDE {self.slide_s} SECONDS]"
        return (
            f"RSTREAM (SELECT {key}AVG(load) AS mean FROM metrics {window} "
            f"WHERE {self.condition}{group})"
        )

    def at(self, second: int) -> str:
        """Return the same question for DuckDB, as of a second."""
        key, group = ("host, ", " GROUP BY host") if self.by_host else ("", "")
        return (
            f"SELECT {key}AVG(load) FROM events WHERE ts > {(second - self.size_s) * 1_000_000} "
            f"AND ts <= {second * 1_000_000} AND {self.condition}{group}"
        )


def conditions() -> list[str]:
    """Return the conditions, of which later ones are rarer."""
    kinds = (
        lambda n: f"load > {10 * n % 100}",
        lambda n: f"service = {n % 20}",
        lambda n: f"level >= {n % 10}",
        lambda n: f"service IN ({n % 20}, {(n + 3) % 20}, {(n + 7) % 20})",
        lambda n: f"service = {n % 20} AND level >= {(3 * n) % 10}",
    )
    return [kinds[number % 5](number // 5) for number in range(CONDITIONS)]


def asked_queries(count: int) -> list[Asked]:
    """Return queries, at random."""
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(1, CONDITIONS + 1)
    chosen = rng.choice(CONDITIONS, count, p=shares / shares.sum())
    known, found = conditions(), []
    for number in chosen:
        size = int(rng.choice(SIZES_S))
        slide = int(rng.choice([each for each in SLIDES_S if each <= size]))
        found.append(Asked(size, slide, known[number], bool(rng.random() < 0.5)))
    return found


def events(first_s: float, seconds: float, rate: int, seq: int) -> pa.RecordBatch:
    """Return the events of some seconds."""
    count, rng = int(seconds * rate), np.random.default_rng(seq)
    ts = int(first_s * 1e6) + 1 + np.sort(rng.integers(0, int(seconds * 1e6), count))
    columns = [
        pa.array(ts).view(pa.timestamp("us")),
        pa.array(np.arange(count) + seq),
        NAMES.take(pa.array(rng.integers(0, HOSTS, count))),
        pa.array(rng.integers(0, 20, count)),
        pa.array(rng.integers(0, 10, count)),
        pa.array(rng.gamma(5.0, 10.0, count)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA.arrow)


@dataclass
class Shared:
    """All queries in one set."""

    asked: Sequence[Asked]
    many: ManyQueries = field(default_factory=lambda: ManyQueries(CATALOG))
    seq: int = 0
    planned_s: float = 0.0

    def begin(self) -> None:
        """Plan the queries, and let them begin."""
        began = time.process_time()
        planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params), RULES_OF_SETS)
        planned = planner.texts([each.text for each in self.asked], 0)
        if planned.lone:
            message = f"{len(planned.lone)} periodic queries run by themselves"
            raise MismatchError(message)
        for portion in planned.portions:
            self.many.add(portion, {"metrics": 0})
        self.planned_s = time.process_time() - began

    def take(self, rows: pa.RecordBatch) -> int:
        """Take events; return how many rows came of them."""
        self.seq += rows.num_rows
        return sum(each.rows.num_rows for each in self.many.take({"metrics": rows}).rows)

    @property
    def windows(self) -> list[WindowsRun]:
        """The windows that queries share."""
        states = (shared_of(state) for shared in self.many.shared for state in shared.states)
        runs = (run.windows for state in states for run in state.runs)
        return [each for each in runs if each is not None]

    def fill(self, until_s: int) -> None:
        """Take the events before those that are timed, without refreshes."""
        self.take(events(0, 1, BEFORE_RATE, 0))
        for each in self.windows:
            (state,) = each.states
            state.due[:] = state.next_due = NEVER
        for second in range(1, until_s, 500):
            self.take(events(second, min(500, until_s - second), BEFORE_RATE, self.seq))
        for each in self.windows:
            (state,) = each.states
            # Refreshes would have made the blocks of slices one after the other.
            state.slices.grow(state.known)
            set_due(state.times, near(state.closed_us), each.table.births > 0, state.due)
            state.next_due = int(state.due.min())

    @property
    def nbytes(self) -> int:
        """How many bytes the queries remember."""
        return sum(size.bytes for _, size in self.many.sizes())


@dataclass(frozen=True, slots=True)
class PeriodicSizes:
    """How many queries there are, for how long windows are filled, and how long is timed."""

    queries: int
    before_s: int
    seconds: int
    schedules: int = 1_000_000
    """Of reads of windows, and of what overwrites their panes."""


@dataclass(frozen=True, slots=True)
class PeriodicMeasured:
    """What the queries take, all in a set, and by themselves as found from some of them."""

    queries: int
    synopses: int
    planned_s: float
    second_s: float
    """Seconds of the processor for one of event time, shared."""
    slowest_s: float
    """Those of the slowest step, which is of one second of event time."""
    rows: int
    nbytes: int
    alone_s: float
    alone_bytes: float
    alone_groups: float
    """The bytes of groups alone, without the events that wait for a refresh."""
    window_s: float
    """With one operator for each different window and condition."""
    asked_s: float
    """Those of DuckDB, which answers each refresh from the events."""
    kept_up: Met
    """What is on time with as much time as there is."""
    waited: Met
    stretched: Met
    """On a machine that is too slow: if events wait, and if periods stretch."""
    reads: Isolation


def shared_seconds(
    shared: Shared, first_s: int, seconds: int, rate: int = RATE
) -> tuple[list[float], int]:
    """Return the seconds of each step, and how many rows came."""
    took, rows = [], 0
    for second in range(first_s, first_s + seconds):
        batch = events(second, 1, rate, shared.seq)
        began = time.process_time()
        rows += shared.take(batch)
        took.append(time.process_time() - began)
    return took, rows


def alone(asked: Asked, before_s: int, seconds: int) -> tuple[float, int, int]:
    """Return the seconds of one query for a second of event time, and what it remembers.

    Of that also what is left without the events that wait for a refresh.
    """
    engine = LiveEngine.of(best_plan(plan_sql(asked.text, CATALOG), {}), CATALOG)
    state, seq = engine.initial_state(), 0
    for second in range(0, before_s, 2_000):
        batch = events(second, min(2_000, before_s - second), BEFORE_RATE // 20, seq)
        seq += batch.num_rows
        state = pushed(engine, state, batch)
    took = 0.0
    for second in range(before_s, before_s + seconds):
        batch = events(second, 1, RATE, seq)
        seq += batch.num_rows
        began = time.process_time()
        state = pushed(engine, state, batch)
        took += time.process_time() - began
    sizes = engine.sizes(state)
    total = sum(size.bytes for _, size in sizes)
    waiting = sum(size.bytes for name, size in sizes if name.startswith("window "))
    return took / seconds, total, total - waiting


def pushed(engine: LiveEngine, state: LiveState, rows: pa.RecordBatch) -> LiveState:
    """Return the state behind some events."""
    after, _ = engine.take(state, {"metrics": rows})
    return after


def duckdb_seconds(asked: Sequence[Asked], held_s: int) -> float:
    """Return the seconds of a refresh as a query over the events, per event that is held.

    The events are in memory, in order of time.
    """
    rows = events(0, held_s, RATE, 0)
    table = pa.table({"ts": rows["ts"].view(pa.int64()), **{
        name: rows[name] for name in ("host", "service", "level", "load")
    }})  # fmt: skip
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("arrived", table)
        connection.execute("CREATE TABLE events AS SELECT * FROM arrived")
        began = time.process_time()
        for each in asked:
            connection.execute(Asked(held_s, 1, each.condition, each.by_host).at(held_s)).fetchall()
        took: float = time.process_time() - began
        return took / len(asked) / int(rows.num_rows)


def measured(sizes: PeriodicSizes, sample: int) -> PeriodicMeasured:
    """Return what so many queries take."""
    count, before_s, seconds = sizes.queries, sizes.before_s, sizes.seconds
    asked = asked_queries(count)
    shared = Shared(asked)
    shared.begin()
    shared.fill(before_s)
    took, rows = shared_seconds(shared, before_s, seconds)
    kept_up, waited, stretched = on_time(shared, before_s + seconds, seconds)
    step = max(1, len(asked) // sample)
    some = list(islice(asked, 0, None, step))
    found = [alone(each, min(each.size_s, before_s), ALONE_S) for each in some]
    each_s, each_bytes, each_groups = (sum(own) / len(found) for own in zip(*found, strict=True))
    different = len({(each.size_s, each.slide_s, each.condition, each.by_host) for each in asked})
    by_event = duckdb_seconds(some, 10)
    held = sum(min(each.size_s, before_s) / each.slide_s for each in asked) * RATE
    return PeriodicMeasured(
        count,
        sum(len(each.table.synopses) for each in shared.windows),
        shared.planned_s,
        sum(took) / seconds,
        max(took),
        rows,
        shared.nbytes,
        each_s * count,
        each_bytes * count,
        each_groups * count,
        each_s * different,
        by_event * held,
        kept_up,
        waited,
        stretched,
        isolation(sizes.schedules),
    )


def on_time(shared: Shared, first_s: int, seconds: int) -> tuple[Met, Met, Met]:
    """Return what is on time of refreshes: on this machine, and on one that is too slow.

    There, as events wait, and as periods stretch. Queries ask ten times as often there, and events
    are few, for it is refreshes that give way.
    """
    kept_up = met(shared, RATE, 1.0, range(first_s, first_s + seconds), stretches=True)
    busy = Shared([replace(each, slide_s=each.slide_s // 10) for each in shared.asked])
    busy.begin()
    busy.fill(BUSY_FROM_S)
    few_s = BUSY_FROM_S + seconds
    took, _ = shared_seconds(busy, BUSY_FROM_S, seconds, FEW)
    slower = OVERLOAD * seconds / sum(took)
    between_s = few_s + 2 * seconds
    waited = met(busy, FEW, slower, range(few_s, between_s), stretches=False)
    period = range(between_s, between_s + 4 * seconds)
    return kept_up, waited, met(busy, FEW, slower, period, stretches=True)


def met(shared: Shared, rate: int, slower: float, period: range, *, stretches: bool) -> Met:
    """Return what is on time in some seconds."""

    def batches(second: int) -> pa.RecordBatch:
        rows = events(second, 1, rate, shared.seq)
        shared.seq += rows.num_rows
        return rows

    slides = [each.slide_s for each in shared.asked]
    return deadlines_met(shared.many, slides, batches, period, slower, stretches=stretches)


def figures(found: PeriodicMeasured) -> list[Figure]:
    """Return what has to hold."""
    many = f"{found.queries:,} queries"
    each, per_window = at_least(LEAST), at_least(1.0)
    return [
        figure(f"{many}, time", "one query for each", each, found.alone_s / found.second_s),
        figure(f"{many}, bytes", "one query for each", each, found.alone_bytes / found.nbytes),
        figure(f"{many}, bytes", "groups of each", each, found.alone_groups / found.nbytes),
        figure(f"{many}, time", "one each window", per_window, found.window_s / found.second_s),
        figure(f"{many}, time", "DuckDB, re-asked", per_window, found.asked_s / found.second_s),
        figure(f"{many}, slowest step, s", "", at_most(1.0), found.slowest_s),
        figure(f"{many}, rows on time", "", at_least(1.0), found.kept_up.share),
        figure(
            f"{many}, rows on time, machine too slow", "", at_least(ON_TIME), found.stretched.share
        ),
        *read_figures(found.reads),
    ]


def read_figures(found: Isolation) -> list[Figure]:
    """Return what has to hold of reads of windows whose panes are overwritten."""
    case = f"{found.schedules:,} schedules of reads, begun again"
    fewer = found.aborted_any / max(found.aborted_youngest, 1)
    slowly = f"{case}, at most one slide between two"
    ways, none = (at_least(1.0), at_most(0.0))
    return [
        Figure(case, "youngest first", "oldest first", ways, fewer, ways.met_by(fewer)),
        Figure(slowly, "youngest first", "", none, found.aborted_slowly, found.aborted_slowly == 0),
    ]


def figure(case: str, rival: str, target: Target, value: float) -> Figure:
    """Return a figure."""
    return Figure(case, "a set", rival, target, value, target.met_by(value))


def lines(found: PeriodicMeasured) -> Iterator[tuple[str, str]]:
    """Yield what was measured, in words."""
    yield "queries", f"{found.queries:,}"
    yield "synopses", f"{found.synopses:,}"
    yield "s to plan and add all", f"{found.planned_s:.1f}"
    yield "s for a second of events, shared", f"{found.second_s:.3f}"
    yield "s of the slowest step of a second of events", f"{found.slowest_s:.3f}"
    yield "rows of refreshes", f"{found.rows:,}"
    yield "MB, shared", f"{found.nbytes / 1e6:,.0f}"
    yield "s for a second of events, one query for each", f"{found.alone_s:,.0f}"
    yield "MB, one query for each", f"{found.alone_bytes / 1e6:,.0f}"
    yield "MB of groups, one query for each", f"{found.alone_groups / 1e6:,.0f}"
    yield "s for a second of events, one for each window", f"{found.window_s:,.0f}"
    yield "s for a second of events, DuckDB re-asked", f"{found.asked_s:,.0f}"
    reads = found.reads
    yield "schedules of reads while panes are overwritten", f"{reads.schedules:,}"
    yield "reads begun again, oldest pane first", f"{reads.aborted_any:,}"
    yield "reads begun again, youngest pane first", f"{reads.aborted_youngest:,}"
    yield "panes taken back instead", f"{reads.taken_back:,}"
    yield "rows on time", f"{found.kept_up.share:.2%}"
    for what, met in (("events wait", found.waited), ("periods stretch", found.stretched)):
        text = f"{met.share:.2%}; {met.behind_s:.1f} s behind, periods × {met.stretch}"
        yield f"rows on time on a machine that is too slow, {what}", text


def run_periodic(screen: Console, machine: Machine, sizes: PeriodicSizes, *, write: bool) -> None:
    """Measure, and report."""
    with collector_off():
        found = measured(sizes, SAMPLE)
    for what, value in lines(found):
        screen.print(f"{what}: {value}")
    if write:
        details = periodic_section(found, machine, sizes)
        screen.print(f"written to {write_section(PERIODIC, details, figures(found))}")


def periodic_section(found: PeriodicMeasured, machine: Machine, sizes: PeriodicSizes) -> str:
    """Return the details."""
    about = " ".join(
        (
            "`RSTREAM (SELECT [host,] AVG(load) … [RANGE … SLIDE …] WHERE … [GROUP BY host])`:",
            f"windows of 1 minute to 1 day, slides of 10 s to 1 hour, {CONDITIONS} conditions of",
            f"which the n-th is n times as rare as the first. {RATE:,} events a second of {HOSTS}",
            f"hosts in steps of one second, {sizes.seconds} s of them timed, behind",
            f"{sizes.before_s:,} s of {BEFORE_RATE} a second that fill the windows; longer windows",
            "hold no more. Seconds of the processor. One query for each, and one for each",
            f"different window and condition, are found from {SAMPLE} queries, each run for",
            f"{ALONE_S} s. Most of what a query alone remembers are the events since its last",
            "refresh, here those; its groups are what remains. DuckDB is found from one refresh of",
            "each of these queries over 10 s of events in memory, in proportion to the events in",
            "the windows. On a machine that is too slow, a step takes so many times its time that",
            f"a second with {FEW:,} events takes {OVERLOAD} s, where all ask ten times as often;",
            "the second half counts. Reads",
            "of 20 panes beside updates, three of ten steps, are of the protocol of the thesis:",
            "nothing here is overwritten while it is read.",
        )
    )
    rows = list(lines(found))
    table = [as_line(("What", "Found")), as_line((":--", "--:")), *map(as_line, rows)]
    verdicts = [
        as_line((each.case, each.rival, str(each.target), str(each), "✓" if each.met else "✗"))
        for each in figures(found)
    ]
    heads = ("Case", "Against", "Target", "Found", "Met")
    rules = (":--", ":--", "--:", "--:", ":--")
    return "\n".join(
        [*facts(machine), "", about, "", *table, "", as_line(heads), as_line(rules), *verdicts, ""]
    )
