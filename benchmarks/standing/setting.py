"""Where the standing cases run: how many events they have, and how queries are fed and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.guard import MismatchError
from benchmarks.race import ROUNDS, Finding, timed
from benchmarks.situations.setting import check_rows, in_turn
from benchmarks.standing.data import SECOND_US, START_US, Int64s, links
from eventide.engines.build import build_tree
from eventide.engines.standing.options import StandingOptions
from eventide.lang.sql import plan_sql
from eventide.operators.fingerprints import fingerprints
from eventide.operators.tree import OperatorTree, States
from eventide.plan.standing.choose import choose_plan
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Standing
from eventide.schema import SEQ, TS, Schema
from eventide.store.memory import TableSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = 1_000_000
STEP_TUPLES, SHORT_STEP_TUPLES = 10_000, 1_000
"""How many tuples of traffic come with a step, on all links together; the second number is for
windows that are shorter than a step, and for what is slow."""
FILLING_TUPLES = 20_000
"""The same while the windows fill, which nobody times."""
SLOW = "direct"
COMPARED_ROWS = 100_000
"""Answers of more rows are compared by sums of what their rows hash to."""


@dataclass(frozen=True, slots=True)
class StandingSizes:
    """How long windows and streams are, from how many events the largest stream has."""

    many: int = MANY

    def of(self, share: float, least: int = 1_000) -> int:
        """Return so many times as many events as the largest stream has."""
        return max(least, int(self.many * share))

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows over traffic, in units of time: 2,000 to 200,000."""
        return tuple(max(20, int(self.many * share)) for share in (0.002, 0.02, 0.1, 0.2))

    @property
    def stretch(self) -> int:
        """How many thousands of tuples with full windows are timed in a round."""
        return max(ROUNDS, min(20, self.many // 50_000))


class StandingSetting:
    """A folder to work in, one with the rivals' environments, and the traffic."""

    def __init__(self, sizes: StandingSizes, folder: Path, rivals: Path) -> None:
        self.sizes = sizes
        self.folder = folder
        self.rivals = rivals
        self.versions: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def links(self) -> dict[str, pa.Table]:
        """The traffic of three links, for as long as the longest window needs."""
        timed_units = ROUNDS * self.sizes.stretch * SHORT_STEP_TUPLES
        return links(max(self.sizes.windows) + timed_units)

    @cached_property
    def sources(self) -> dict[str, TableSource]:
        """The traffic as an engine finds it stored."""
        catalog = catalog_of(self.links)
        return {name: TableSource(name, catalog[name], each) for name, each in self.links.items()}

    def parquet(self, name: str, events: pa.Table) -> Path:
        """Return events as a file for a rival."""
        path = self.folder / f"{name}-{events.num_rows}.parquet"
        if not path.exists():
            pq.write_table(events, path)
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


@dataclass(frozen=True, slots=True)
class StandingCase:
    """Something asked of standing queries, and how it is checked and measured."""

    name: str
    asked: str
    run: Callable[[StandingSetting], list[Finding]]
    spark: bool = False


def planned(text: str, streams: Mapping[str, pa.Table]) -> Standing:
    """Return the plan of a query, as it was written."""
    plan = plan_sql(text, catalog_of(streams))
    assert isinstance(plan, Standing)
    return plan


def catalog_of(streams: Mapping[str, pa.Table]) -> dict[str, Schema]:
    """Return the attributes of streams."""
    return {name: Schema.from_arrow(table.schema) for name, table in streams.items()}


def built(plan: Standing, execution: Execution, partitions: int | None = None) -> OperatorTree:
    """Return the operators of a query without columns that it does not need."""
    return build_tree(
        choose_plan(plan).plan, standing=StandingOptions(execution, partitions=partitions)
    )


@dataclass(frozen=True, slots=True)
class Step:
    """The events of each window before an instant."""

    rows: tuple[pa.RecordBatch, ...]
    until_us: int

    @property
    def count(self) -> int:
        """How many events there are."""
        return sum(rows.num_rows for rows in self.rows)


def steps_of(
    tree: OperatorTree, streams: Mapping[str, pa.Table], cuts_us: Sequence[int]
) -> list[Step]:
    """Return the events of streams as steps that end at these instants.

    The first begins with the first event: what was before the first cut is in the first step.
    """
    parts = []
    for leaf in tree.leaves:
        events = streams[leaf.scan.stream]
        if SEQ not in events.column_names:
            events = events.append_column(SEQ, pa.array(np.arange(events.num_rows)))
        (rows,) = events.select(leaf.schema.names).combine_chunks().to_batches()
        places = np.searchsorted(times_of(events), np.array(cuts_us)).tolist()
        starts = [0, *places[:-1]]
        parts.append(
            [rows.slice(start, end - start) for start, end in zip(starts, places, strict=True)]
        )
    return [Step(rows, cut) for rows, cut in zip(zip(*parts, strict=True), cuts_us, strict=True)]


def times_of(events: pa.Table) -> Int64s:
    """Return when events came, in microseconds."""
    moments: Int64s = events.column(TS).cast(pa.int64()).to_numpy()
    return moments


class Runner:
    """A tree with its state, to which steps are given."""

    def __init__(self, tree: OperatorTree) -> None:
        self.tree = tree
        self.state: States = tree.initial_state()

    def run(self, steps: Iterable[Step]) -> int:
        """Take steps; return how many rows were reported."""
        reported = 0
        for step in steps:
            self.state, rows = self.tree.step(self.state, step.rows, step.until_us)
            reported += rows.num_rows
        return reported

    @property
    def answer(self) -> pa.RecordBatch:
        """The answer after the last step."""
        return self.tree.current(self.state)

    @property
    def size(self) -> tuple[int, int]:
        """How many tuples all operators remember, and how many bytes that takes."""
        sizes = [size for _, size in self.tree.sizes(self.state)]
        return sum(size.tuples for size in sizes), sum(size.bytes for size in sizes)


@dataclass(frozen=True, slots=True)
class Measured:
    """Of each way: median seconds for 1,000 tuples with full windows, and what it remembers."""

    seconds: Mapping[str, float]
    sizes: Mapping[str, tuple[int, int]]
    answer_rows: int


def with_full_windows(
    what: str, trees: Mapping[str, OperatorTree], setting: StandingSetting, window: int
) -> Measured:
    """Feed all trees until their windows are full, compare their answers, and time what follows.

    Every round is a stretch of steps that nobody has seen, the same for all trees.
    """
    streams, rounds, stretch = setting.links, ROUNDS, setting.sizes.stretch
    first = next(iter(trees.values()))
    read = len({leaf.scan.stream for leaf in first.leaves})
    filling = cuts_of(0, window, FILLING_TUPLES // read)
    # Direct execution looks through all it has at every instant: of long windows, one short step.
    short = {SLOW} if 2 * window >= max(setting.sizes.windows) else set[str]()
    runners = {name: Runner(tree) for name, tree in trees.items()}
    stretches: dict[str, list[list[Step]]] = {}
    for name, runner in runners.items():
        thousands = 1 if name in short else stretch
        in_step = STEP_TUPLES if window >= 2 * STEP_TUPLES and name not in short else 0
        units = max(in_step, SHORT_STEP_TUPLES) // read
        later = cuts_of(window, window + rounds * thousands * SHORT_STEP_TUPLES // read, units)
        steps = steps_of(runner.tree, streams, [*filling, *later])
        runner.run(steps[: len(filling)])
        rest = steps[len(filling) :]
        many = -(-len(rest) // rounds)
        stretches[name] = [rest[at : at + many] for at in range(0, len(rest), many)]
    check_answers(what, runners)
    sizes = {name: runner.size for name, runner in runners.items()}
    spent: dict[str, list[float]] = {name: [] for name in runners}
    for turn, name in enumerate(in_turn(list(runners), rounds)):
        steps = stretches[name][turn // len(runners)]
        seconds = timed(partial(runners[name].run, steps))
        spent[name].append(1_000 * seconds / sum(step.count for step in steps))
    check_answers(what, {name: each for name, each in runners.items() if name not in short})
    rows = next(iter(runners.values())).answer.num_rows
    return Measured({name: median(each) for name, each in spent.items()}, sizes, rows)


def cuts_of(start: int, end: int, units: int) -> list[int]:
    """Return the instants at which steps of so many units end."""
    last = [*range(start + units, end, units), end]
    return [START_US + SECOND_US * unit for unit in last]


def check_answers(what: str, runners: Mapping[str, Runner]) -> None:
    """Refuse answers that differ from that of the first."""
    (first, runner), *others = runners.items()
    expected = runner.answer
    for name, other in others:
        check_same_rows(f"{what}: {name} and {first}", expected, other.answer)


def check_same_rows(what: str, expected: pa.RecordBatch, found: pa.RecordBatch) -> None:
    """Refuse rows that differ, whatever their order; of many rows the sums of their hashes."""
    if expected.num_rows <= COMPARED_ROWS:
        check_rows(what, *(pa.Table.from_batches([rows]) for rows in (expected, found)))
    elif summed(expected) != summed(found):
        message = f"{what}: {found.num_rows:,} rows differ from {expected.num_rows:,}"
        raise MismatchError(message)


def summed(rows: pa.RecordBatch) -> tuple[int, int, int]:
    """Return how many rows there are, and sums of what they hash to."""
    keys = fingerprints(rows.columns, rows.num_rows)
    mixed = keys.first * 0x9E3779B9 ^ keys.second
    return rows.num_rows, int(keys.first.sum()), int((mixed * mixed).sum())
