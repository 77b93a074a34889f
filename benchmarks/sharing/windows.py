"""Many time windows over one stream: one operator for all against one for each.

Windows are tumbling ones of 1 to 20 s, at random, or hopping ones of 60 s with slides from 60 s to
250 ms. Figures are events a second of the processor, as other work on the machine would show in the
clock on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from rich.console import Console

import eventide.engines.live.sharing.windows  # noqa: F401 - so that trees have the operator
from benchmarks.guard import MismatchError
from benchmarks.measure import collector_off
from benchmarks.pages import SHARED_WINDOWS, write_section
from benchmarks.promises import Figure, verdict
from benchmarks.race import Target, at_least
from benchmarks.report import Machine, as_line, facts
from eventide.engines.build import build_tree
from eventide.engines.live.engine import LiveEngine
from eventide.operators.tree import OperatorTree, States
from eventide.plan.bind import bind
from eventide.plan.expressions import Aggregate, Column, Named, NamedAggregate
from eventide.plan.nodes import Scan
from eventide.plan.sharing.query_windows import AskedWindow, QueryWindows
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import SEQ, TS, Schema

EVENTS = 20_000_000
RATE = 1_000_000
"""Events a second of event time."""
BEFORE_S, BEFORE_RATE = 60, 5_000
"""Before, fewer events come for so long that all windows have begun and end as they always will."""
KEYS = 1_000
LARGE, SMALL = 100_000, 1_000
MANY = (1, 10, 100, 1_000, 10_000)
SLIDES_MS = (60_000, 10_000, 1_000, 250)
ROUNDS = 3
LATE_US = 100_000
SCHEMA = Schema.of({"car": "int64", "speed": "float64"})
CATALOG = {"cars": SCHEMA}
KINDS = {"sum, avg": ("sum", "avg"), "min, max": ("min", "max")}
LEAST_PLAIN, LEAST_KEYED = 30.0, 10.0
NEARLY_ONE = 0.9


@dataclass(frozen=True, slots=True)
class Shape:
    """What is computed: which aggregates, by which keys, in batches of how many events."""

    kind: str
    keyed: bool
    batch: int

    @property
    def name(self) -> str:
        """What it is called."""
        by = f"{KEYS:,} keys" if self.keyed else "no keys"
        return f"{self.kind}; {by}; batches of {self.batch:,}"

    @property
    def keys(self) -> tuple[Named, ...]:
        """The keys."""
        return (Named("car", Column("car")),) if self.keyed else ()

    @property
    def aggregates(self) -> tuple[NamedAggregate, ...]:
        """The aggregates."""
        functions = KINDS[self.kind]
        return tuple(NamedAggregate(each, Aggregate(each, Column("speed"))) for each in functions)

    def alone(self, window: Window) -> Plan:
        """Return the plan of one window."""
        return bind(WindowAggregate(Scan("cars"), self.keys, window, self.aggregates), CATALOG)

    def shared(self, windows: Sequence[Window]) -> Plan:
        """Return the plan of many windows."""
        table = QueryWindows()
        for number, window in enumerate(windows):
            table.add(AskedWindow(number, window), 0)
        return bind(ManyWindows(Scan("cars"), self.keys, self.aggregates, table), CATALOG)


SHAPES = tuple(
    Shape(kind, keyed, batch)
    for kind in KINDS
    for keyed in (False, True)
    for batch in (LARGE, SMALL)
)


@cache
def events(count: int, rate: int, first_us: int = 0) -> pa.RecordBatch:
    """Return events in order of time."""
    rng = np.random.default_rng(count)
    ts = first_us + np.sort(rng.integers(0, count * 1_000_000 // rate, count))
    columns = [
        pa.array(ts).view(pa.timestamp("us")),
        pa.array(np.arange(count) + (count if first_us else 0)),
        pa.array(rng.integers(0, KEYS, count)),
        pa.array(rng.normal(50.0, 10.0, count)),
    ]
    return pa.RecordBatch.from_arrays(columns, [TS, SEQ, "car", "speed"])


def before() -> pa.RecordBatch:
    """Return the events that come before those that are timed."""
    return events(BEFORE_S * BEFORE_RATE, BEFORE_RATE)


def timed_events(count: int) -> pa.RecordBatch:
    """Return the events that are timed."""
    return events(count, RATE, BEFORE_S * 1_000_000)


def random_windows(count: int) -> list[Window]:
    """Return tumbling windows of 1 to 20 s."""
    sizes = np.random.default_rng(count).integers(1_000, 20_001, count) * 1_000
    return [Window(int(size), int(size)) for size in sizes]


def seconds_of(tree: OperatorTree, count: int, batch: int) -> tuple[float, int]:
    """Return the seconds of the processor for the timed events, and how many rows came of them."""
    state, _ = stepped(tree, tree.initial_state(), before(), LARGE // 10)
    began = time.process_time()
    _, found = stepped(tree, state, timed_events(count), batch)
    return time.process_time() - began, found


def stepped(
    tree: OperatorTree, state: States, rows: pa.RecordBatch, batch: int
) -> tuple[States, int]:
    """Take events in batches; return the state, and how many rows came of them."""
    rows, found = rows.select(tree.input_schema.names), 0
    for start in range(0, rows.num_rows, batch):
        part = rows.slice(start, batch)
        state, results = tree.step(state, (part,), part.column(TS)[-1].value)
        found += results.num_rows
    return state, found


def speeds(plans: Sequence[Plan], count: int, batch: int) -> list[tuple[float, int]]:
    """Return million events a second of some plans in turn, the best of some rounds, and rows."""
    trees = [build_tree(plan) for plan in plans]
    for tree in trees:
        # Compiles kernels.
        seconds_of(tree, min(count, batch), batch)
    rounds = [[seconds_of(tree, count, batch) for tree in trees] for _ in range(ROUNDS)]
    return [
        (count / min(seconds for seconds, _ in found) / 1e6, found[0][1])
        for found in zip(*rounds, strict=True)
    ]


def for_each(shape: Shape, windows: Sequence[Window], count: int) -> float:
    """Return million events a second with an operator for each window, from some of them."""
    some = windows[:10]
    seconds = sum(seconds_of(build_tree(shape.alone(each)), count, shape.batch)[0] for each in some)
    return count / (seconds * len(windows) / len(some)) / 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """Million events a second: shared by so many windows, and with an operator for each."""

    shape: Shape
    windows: int
    shared: float
    each: float
    rows: int

    @property
    def step_us(self) -> float:
        """The microseconds of a step."""
        return self.shape.batch / self.shared

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        shared, each = f"{self.shared:.1f}", f"{self.each:.3g}"
        many, rows = f"{self.windows:,}", f"{self.rows:,}"
        return (self.shape.name, many, shared, f"{self.step_us:,.0f}", each, rows)


def measured(shape: Shape, count: int) -> Iterator[Measured]:
    """Yield what is measured of random tumbling windows."""
    count = count if shape.batch == LARGE else count // 4
    plans = [shape.shared(random_windows(many)) for many in MANY]
    for many, (shared, rows) in zip(MANY, speeds(plans, count, shape.batch), strict=True):
        each = for_each(shape, random_windows(many), min(count, 500_000))
        yield Measured(shape, many, shared, each, rows)


def hopping(shape: Shape, count: int) -> Iterator[tuple[str, ...]]:
    """Yield the figures of windows of 60 s by slide: shared by one, by ten others, and alone."""
    for slide in SLIDES_MS:
        window = Window(60_000_000, slide * 1_000)
        others = shape.shared([window, *random_windows(10)])
        plans = (shape.shared([window]), others, shape.alone(window))
        (shared, rows), (more, _), (alone, expected) = speeds(plans, count, shape.batch)
        if rows != expected:
            message = f"hopping windows: {rows} rows, alone {expected}"
            raise MismatchError(message)
        cells = (f"{each:.1f}" for each in (shared, more, alone))
        yield (shape.name, f"{slide:,} ms", *cells)


def live_speed(plan: Plan, count: int, *, in_order: bool) -> float:
    """Return million events a second through a live engine."""
    engine = LiveEngine.of(plan, CATALOG, LATE_US)
    rows = timed_events(count)
    if not in_order:
        delays = np.random.default_rng(1).integers(0, LATE_US, count)
        ts = rows.column(TS).view(pa.int64()).to_numpy()
        rows = rows.take(pa.array(np.argsort(ts + delays, kind="stable")))
        rows = rows.set_column(1, SEQ, pa.array(np.arange(count)))
    batches = [rows.slice(start, LARGE) for start in range(0, count, LARGE)]
    best = np.inf
    for _ in range(ROUNDS):
        state = engine.initial_state()
        began = time.process_time()
        for batch in batches:
            state, _ = engine.push(state, batch)
        best = min(best, time.process_time() - began)
    return count / best / 1e6


def arrivals(shape: Shape, count: int) -> Iterator[tuple[str, ...]]:
    """Yield the figures of a live engine: in order, and out of order by up to 100 ms."""
    for name, plan in (
        ("1,000 windows, shared", shape.shared(random_windows(1_000))),
        ("one window alone", shape.alone(Window(10_000_000, 10_000_000))),
    ):
        found = (live_speed(plan, count, in_order=each) for each in (True, False))
        yield (shape.name, name, *(f"{each:.1f}" for each in found))


def figures(found: Sequence[Measured]) -> list[Figure]:
    """Return what has to hold of 1,000 windows and large batches."""
    kept: list[Figure] = []
    for each in found:
        if each.windows != 1_000 or each.shape.batch != LARGE:
            continue
        target = at_least(LEAST_KEYED if each.shape.keyed else LEAST_PLAIN)
        kept.append(figure("M events/s", each, "", target, each.shared))
        one = next(one for one in found if one.shape == each.shape and one.windows == 1)
        ratio = each.shared / one.shared
        kept.append(figure("speed", each, "one window, shared", at_least(NEARLY_ONE), ratio))
    return kept


def figure(what: str, each: Measured, rival: str, target: Target, value: float) -> Figure:
    """Return a figure of 1,000 windows."""
    case = "1,000 windows, 1,000 keys" if each.shape.keyed else "1,000 windows"
    return Figure(f"{case}, {what}", each.shape.kind, rival, target, value, target.met_by(value))


def run_shared_windows(screen: Console, machine: Machine, count: int, *, write: bool) -> None:
    """Measure all shapes, and report."""
    found: list[Measured] = []
    with collector_off():
        for shape in SHAPES:
            for each in measured(shape, count):
                found.append(each)
                screen.print(" | ".join(each.cells()))
        large = [shape for shape in SHAPES if shape.batch == LARGE]
        slides = [row for shape in large for row in hopping(shape, count)]
        ways = [row for shape in large for row in arrivals(shape, count // 4)]
        for row in (*slides, *ways):
            screen.print(" | ".join(row))
    if write:
        details = windows_section(found, slides, ways, machine, count)
        screen.print(f"written to {write_section(SHARED_WINDOWS, details, figures(found))}")


def windows_section(
    found: Sequence[Measured],
    slides: Sequence[tuple[str, ...]],
    ways: Sequence[tuple[str, ...]],
    machine: Machine,
    count: int,
) -> str:
    """Return the details."""
    about = (
        f"{count:,} events (a quarter in batches of {SMALL:,}), {RATE:,} a second of event time, "
        f"behind {BEFORE_S} s of event time that are not timed, over tumbling windows of 1 to 20 s."
        f" Million events a second of one processor, the best of {ROUNDS} rounds in turn; "
        "microseconds of a step; million events a second with one operator for each window, of "
        "which ten are run on up to 500,000 events; and rows of the shared operator."
    )
    hops = (
        "Windows of 60 s by slide: million events a second of one in the shared operator, of it "
        "with ten tumbling windows, and of the operator for one window."
    )
    lives = (
        "Million events a second through a live engine that waits 100 ms, with events in order and "
        "out of order by up to that."
    )
    heads = ("Aggregates", "Windows", "shared", "step µs", "one for each", "rows out")
    lines = [
        *(*facts(machine), "", about, ""),
        *lines_of(heads, [each.cells() for each in found]),
        *("", hops, ""),
        *lines_of(("Aggregates", "Slide", "shared", "with ten others", "alone"), slides),
        *("", lives, ""),
        *lines_of(("Aggregates", "What", "in order", "out of order"), ways),
    ]
    verdicts = [verdict(each) for each in figures(found)]
    what = ("Case", "Aggregates", "Against", "Target", "Found", "Met")
    lines += ["", *lines_of(what, verdicts)]
    return "\n".join(lines) + "\n"


def lines_of(headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a table as Markdown, its first column text and the others numbers."""
    rules = [":--", *("--:" for _ in headings[1:])]
    return [as_line(headings), as_line(rules), *map(as_line, rows)]
