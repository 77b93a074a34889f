"""A set of queries in the engine that shares, without a store, and how fast events go through it.

Times are those of the processor: other work on the machine would show in the clock on the wall.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from benchmarks.guard import MismatchError
from benchmarks.measure import collector_off
from eventide.engines.live.engine import LiveEngine
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.live.sharing.planned import ManyPlanner, PlannedQueries, row_of
from eventide.lang.sql import plan_sql
from eventide.plan.sharing.rules import ALL_RULES, SharingRules
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS, Schema

BATCH = 1_000
WARM, ROUNDS, BATCHES = 5, 5, 20
ALONE_BATCHES = 5
ENOUGH_S = 5.0
"""A set whose rounds would take longer has fewer of them."""
START_US = 1_772_323_200_000_000

Arrived = dict[str, pa.RecordBatch]
Asked = tuple[str | Sequence[str], pa.Table | None]
"""A text with a table of its parameters, or texts without any."""


@dataclass(frozen=True)
class QuerySet:
    """Queries and events: `asked` gives so many queries, `events` batches one after the other.

    A round takes so many `batches`: enough for all that is done once in several of them.
    """

    name: str
    about: str
    catalog: Mapping[str, Schema]
    asked: Callable[[int], list[Asked]]
    events: Callable[[], Iterator[Arrived]]
    batches: int = BATCHES


class Running:
    """A set of queries that runs."""

    def __init__(self, queries: QuerySet, count: int, rules: SharingRules = ALL_RULES) -> None:
        self.catalog = queries.catalog
        self.many = ManyQueries(self.catalog)
        self.planner = ManyPlanner(self.plan, rules)
        self.arriving = queries.events()
        self.asked = queries.asked(count)
        began = time.process_time()
        first = 0
        for texts, table in self.asked:
            planned = self.planned(texts, table, first)
            first += len(texts) if table is None else table.num_rows
            for portion in planned.portions:
                self.many.add(portion)
            for number, plan in planned.lone.items():
                engine = LiveEngine.of(plan, self.catalog)
                self.many.add_lone(number, engine, engine.initial_state())
        self.deployed_s = time.process_time() - began

    def plan(self, text: str, params: Mapping[str, object] | None) -> Plan:
        """Plan a text."""
        return plan_sql(text, self.catalog, params)

    def planned(
        self, texts: str | Sequence[str], table: pa.Table | None, first: int
    ) -> PlannedQueries:
        """Plan queries, which are numbered from `first` on."""
        if isinstance(texts, str):
            assert table is not None
            return self.planner.table(texts, table, first)
        return self.planner.texts(texts, first)

    def take(self, arrived: Arrived) -> int:
        """Take a batch; return how many rows came of it."""
        step = self.many.take(arrived)
        if step.failed:
            raise next(iter(step.failed.values()))
        return sum(len(each.numbers) for each in step.rows)

    def settle(self) -> None:
        """Let events that have waited for others be worked out: a state has all that was taken."""
        for _ in self.many.states:
            pass


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured of a set: events a second of one processor, and rows of an event."""

    queries: int
    events_s: float
    rows: float
    deployed_s: float
    octets: float
    """What a query takes, with all that the operators remember."""


def speed(
    queries: QuerySet, count: int, rules: SharingRules = ALL_RULES, batches: int | None = None
) -> Speed:
    """Return how fast events go through so many queries: the best of some rounds."""
    running = Running(queries, count, rules)
    batches = queries.batches if batches is None else batches
    best, rows, events, spent = np.inf, 0, 0, 0.0
    with collector_off():
        for arrived in islice(running.arriving, min(WARM, batches)):
            running.take(arrived)
        running.settle()
        for _ in range(ROUNDS):
            arriving = list(islice(running.arriving, batches))
            began = time.process_time()
            found = sum(map(running.take, arriving))
            running.settle()
            seconds = time.process_time() - began
            taken = sum(rows_in(each) for each in arriving)
            best, rows, events = min(best, seconds / taken), rows + found, events + taken
            spent += seconds
            if spent > ENOUGH_S:
                break
    octets = sum(size.bytes for _, size in running.many.sizes()) / count
    return Speed(count, 1 / best, rows / events, running.deployed_s, octets)


def rows_in(arrived: Arrived) -> int:
    """Return how many events there are in a batch."""
    return sum(each.num_rows for each in arrived.values())


def check_set(queries: QuerySet, count: int = 200, batches: int = 5) -> int:
    """Compare queries that share with each of them alone; return how many rows they have."""
    running = Running(queries, count)
    arriving = list(islice(queries.events(), batches))
    found: dict[int, Counter[str]] = {}
    for arrived in [*arriving, None]:
        step = running.many.finish() if arrived is None else running.many.take(arrived)
        for each in step.rows:
            for number in np.unique(each.numbers).tolist():
                own = each.rows.filter(pa.array(each.numbers == number))
                found.setdefault(number, Counter()).update(map(repr, own.to_pylist()))
    for number, (text, params) in enumerate(single_texts(running.asked)):
        engine = LiveEngine.of(running.plan(text, params), queries.catalog)
        state, alone = engine.initial_state(), Counter[str]()
        for arrived in arriving:
            own = {name: arrived[name] for name in engine.streams}
            state, reported = engine.take(state, own)
            alone.update(map(repr, reported.rows.to_pylist()))
        _, reported = engine.finish(state)
        alone.update(map(repr, reported.rows.to_pylist()))
        if alone != found.get(number, Counter()):
            message = f"{queries.name}: query {number} has other rows alone"
            raise MismatchError(message)
    return sum(sum(each.values()) for each in found.values())


def single_texts(asked: Sequence[Asked]) -> Iterator[tuple[str, dict[str, object] | None]]:
    """Yield each query by itself, with its parameters."""
    for texts, table in asked:
        if isinstance(texts, str):
            assert table is not None
            for place in range(table.num_rows):
                yield texts, row_of(table, place)
        else:
            for text in texts:
                yield text, None


def numbered(
    columns: Mapping[str, np.ndarray | pa.Array], first: int, step_us: int, start_us: int = START_US
) -> pa.RecordBatch:
    """Return events with time and number: one follows another by `step_us`."""
    count = len(next(iter(columns.values())))
    numbers = np.arange(first, first + count)
    times = pa.array(start_us + numbers * step_us).view(pa.timestamp("us"))
    arrays = [pa.array(each) for each in columns.values()]
    return pa.RecordBatch.from_arrays([times, pa.array(numbers), *arrays], [TS, SEQ, *columns])


def zipf(rng: np.random.Generator, values: int, skew: float, count: int) -> np.ndarray:
    """Return numbers from 0 on, the k-th as often as `k ** -skew` says."""
    upto = np.cumsum(np.arange(1, values + 1, dtype=np.float64) ** -skew)
    return np.asarray(np.searchsorted(upto, rng.random(count) * upto[-1]))


def alone(queries: QuerySet, count: int, some: int = 2) -> float:
    """Return events a second with an engine for each of so many queries, from some of them."""
    batches = list(islice(queries.events(), 2 + ALONE_BATCHES))
    seconds = []
    for text, params in islice(single_texts(queries.asked(count)), some):
        engine = LiveEngine.of(plan_sql(text, queries.catalog, params), queries.catalog)
        state = engine.initial_state()
        own = [{name: each[name] for name in engine.streams} for each in batches]
        for arrived in own[:2]:
            state, _ = engine.take(state, arrived)
        began = time.process_time()
        for arrived in own[2:]:
            state, _ = engine.take(state, arrived)
        seconds.append(time.process_time() - began)
    events = sum(map(rows_in, batches[2:]))
    return events / (float(np.mean(seconds)) * count)
