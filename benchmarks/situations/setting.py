"""Where the situation cases run: events in every form, and the ways that Eventide answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eventide as ev
from benchmarks.guard import MismatchError, as_bag, difference_of
from benchmarks.measure import collector_off
from benchmarks.race import timed_alone
from benchmarks.situations.data import DRIVERS, Bools, Floats, Int64s, drivers
from benchmarks.situations.queries import Ask
from eventide.api.live.query import LiveQuery, live_query
from eventide.engines.build import build_tree
from eventide.engines.history.replay import run_chain
from eventide.lang.sql import plan_sql
from eventide.operators.situations.match import MatchSituations
from eventide.operators.tree import OperatorTree
from eventide.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = 10_000_000
CHUNK_ROWS = 1_000_000
ARRIVING_ROWS = 10_000
PIPELINE_ROWS = 100_000
SINGLE_WARM_UPS = 500
ASKED_COLUMNS = ["ts", "car", "speed", "accel"]


@dataclass(frozen=True, slots=True)
class SituationSizes:
    """How many events a case is over, from how many the largest is."""

    many: int = MANY

    def of(self, share: float, least: int = 1_000) -> int:
        """Return so many times as many events as the largest case of drivers has."""
        return max(least, int(self.many * share))

    @property
    def sample(self) -> int:
        """What is compared row by row before anything is timed."""
        return min(self.many, 200_000)

    @property
    def singles(self) -> int:
        """How many events arrive one at a time."""
        return max(100, min(10_000, self.many // 100))


class SituationSetting:
    """A folder to work in, one with the rivals' environments, and the drivers in every form."""

    def __init__(self, sizes: SituationSizes, folder: Path, rivals: Path) -> None:
        self.sizes = sizes
        self.folder = folder
        self.rivals = rivals
        self.versions: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def drivers(self) -> pa.Table:
        """The reports of all cars, without the column that nobody asks for."""
        return drivers(self.sizes.many).select(ASKED_COLUMNS)

    @cached_property
    def sample(self) -> pa.Table:
        """A few cars."""
        return drivers(self.sizes.sample).select(ASKED_COLUMNS)

    @cached_property
    def database(self) -> ev.Database:
        """All reports in a store on disk."""
        database = ev.open(self.folder / "drivers.ev")
        schema = Schema.from_arrow(self.drivers.schema)
        stream = database.create_stream(DRIVERS, schema.to_json())
        for start in range(0, self.drivers.num_rows, CHUNK_ROWS):
            stream.append(self.drivers.slice(start, CHUNK_ROWS))
        return database

    def parquet(self, name: str, events: pa.Table) -> Path:
        """Return events as a file for a rival's process."""
        path = self.folder / f"{name}-{events.num_rows}.parquet"
        if not path.exists():
            pq.write_table(events, path, row_group_size=CHUNK_ROWS)
        return path

    @cached_property
    def spark(self) -> SparkSession:
        """A Spark session on this machine's cores."""
        from eventide.engines.spark.session import local_session

        return local_session("eventide-bench")

    def close(self) -> None:
        """Stop Spark, if it was started."""
        if "spark" in vars(self):
            self.spark.stop()


@contextmanager
def one_core() -> Iterator[None]:
    """Leave all threads of this process, also those that it starts, one core to share."""
    before = {thread: os.sched_getaffinity(thread) for thread in threads()}
    last = max(os.sched_getaffinity(0))
    confine({thread: {last} for thread in before})
    try:
        yield
    finally:
        whole = set().union(*before.values())
        confine({thread: before.get(thread, whole) for thread in threads()})


def threads() -> list[int]:
    """Return the numbers of this process's threads."""
    return [int(each.name) for each in Path("/proc/self/task").iterdir()]


def confine(cores: Mapping[int, Iterable[int]]) -> None:
    """Say where threads may run; some may have ended meanwhile."""
    for thread, allowed in cores.items():
        try:
            os.sched_setaffinity(thread, allowed)
        except ProcessLookupError:
            continue


def over_arrow(ask: Ask, events: pa.Table) -> pa.Table:
    """Answer over events in memory."""
    return ev.tpstream(ask.text, **{ask.stream: events}).to_arrow()


def over_store(ask: Ask, database: ev.Database) -> pa.Table:
    """Answer over a stored stream."""
    return database.tpstream(ask.text).to_arrow()


def standing(ask: Ask, schema: pa.Schema) -> LiveQuery:
    """Return a standing query that is fed by hand."""
    catalog = {ask.stream: Schema.from_arrow(schema)}
    return live_query(plan_sql(ask.text, catalog), catalog, None, "0 s")


def arrivals(events: pa.Table, rows: int) -> list[pa.RecordBatch]:
    """Return events as they arrive at a live query, numbered, so many at a time."""
    numbered = events.append_column("_seq", pa.array(np.arange(events.num_rows)))
    return list(numbered.combine_chunks().to_batches(max_chunksize=rows))


def pushed(ask: Ask, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return all results of a standing query."""
    query = standing(ask, schema)
    results = [query.push(batch).to_arrow() for batch in batches]
    return pa.concat_tables([*results, query.finish().to_arrow()])


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds from each event to its results, how many rows each gave, how many matches in all.

    Only those `kept` are looked at.
    """

    seconds: Floats
    rows: Int64s
    matches: int
    kept: Bools

    def busy(self, changed: Bools) -> Spent:
        """Return the same of events that change something, or give rows."""
        return replace(self, kept=self.kept & (changed | (self.rows > 0)))

    @property
    def percentiles(self) -> dict[str, float]:
        """The median and the 99th percentile; none without any event."""
        warm = self.seconds[self.kept]
        places = {"p50": 50, "p99": 99} if len(warm) else {}
        return {name: float(np.percentile(warm, place)) for name, place in places.items()}


def single_pushes(query: LiveQuery, batches: Sequence[pa.RecordBatch]) -> Spent:
    """Return the seconds from each event to its results; the first are not kept."""
    seconds = np.empty(len(batches))
    results = []
    with collector_off():
        for number, batch in enumerate(batches):
            start = time.perf_counter()
            rows = query.push(batch).to_arrow()
            seconds[number] = time.perf_counter() - start
            results.append(rows)
    counted = [rows for rows in results if "n" in rows.column_names]
    sizes = np.array([rows.num_rows for rows in results], np.int64)
    kept = np.arange(len(batches)) >= min(SINGLE_WARM_UPS, len(batches) // 2)
    return Spent(seconds, sizes, sum(map(matches_in, counted)), kept)


def ordered_tree(
    ask: Ask, schema: pa.Schema, order: tuple[int, ...] | None, *, adaptive: bool
) -> OperatorTree:
    """Return the operators of a pattern that joins in a fixed order, or in one that it chooses."""
    plan = plan_sql(ask.text, {ask.stream: Schema.from_arrow(schema)})
    tree = build_tree(plan)
    fixed: dict[str, Any] = {"order": order, "adaptive": adaptive}
    placed = tuple(
        replace(each, operator=replace(each.operator, **fixed))
        if isinstance(each.operator, MatchSituations)
        else each
        for each in tree.placed
    )
    return replace(tree, placed=placed)


def through(tree: OperatorTree, events: pa.Table, rows: int = PIPELINE_ROWS) -> pa.Table:
    """Send events through operators, in one thread."""
    wanted = events.select(tree.input_schema.names)
    batches = iter(wanted.to_batches(max_chunksize=rows))
    return pa.Table.from_batches(run_chain(tree, batches), tree.output_schema)


def matches_in(rows: pa.Table) -> int:
    """Return how many matches counting rows stand for."""
    return int(np.sum(rows.column("n").to_numpy())) if rows.num_rows else 0


def fastest(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least seconds of each way, all in turn.

    What disturbs a run only ever makes it longer: of the least, noise decides least.
    """
    seconds = dict.fromkeys(ways, float("inf"))
    with collector_off():
        for name in in_turn(list(ways), rounds):
            seconds[name] = min(seconds[name], timed_alone(ways[name]))
    return seconds


def in_turn(names: Sequence[str], rounds: int) -> Iterator[str]:
    """Yield all names in every round, each time from another on: none is always first.

    >>> list(in_turn(["a", "b"], 2))
    ['a', 'b', 'b', 'a']
    """
    for number in range(rounds):
        first = number % len(names)
        yield from names[first:]
        yield from names[:first]


def check_rows(what: str, expected: pa.Table, found: pa.Table) -> None:
    """Refuse rows that differ, whatever their order."""
    difference = difference_of(as_bag(expected), as_bag(found))
    if difference:
        message = f"{what}: {difference}"
        raise MismatchError(message)


def check_counts(what: str, counts: Mapping[str, int]) -> None:
    """Refuse numbers of matches that differ."""
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        message = f"{what}: numbers of matches differ: {found}"
        raise MismatchError(message)
