"""A replay that times every operator, for `explain(…, analyze=True)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from time import perf_counter

import pyarrow as pa

from eventide.engines.build import build_tree
from eventide.engines.explain.situations import learnt_lines
from eventide.engines.history.access import Cost, WorkStep
from eventide.engines.history.replay import replay
from eventide.instants import ALL_TIME, TimeRange
from eventide.operators.operator import Edge
from eventide.operators.situations.match import MatchSituations
from eventide.operators.situations.plan import Statistics
from eventide.operators.tree import OperatorStep, OperatorTree
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.tree import Plan
from eventide.schema import Schema
from eventide.store.source import EventSource, TimeSlice, Where


@dataclass
class StepTally:
    """The cost of one step of a tree, summed over slices and threads."""

    name: str
    seconds: float = 0.0
    rows_in: int = 0
    rows_out: int = 0


def edge_rows(edge: Edge) -> int:
    """Return how many rows travel on an edge."""
    return edge.num_rows if isinstance(edge, pa.RecordBatch) else len(edge)


class OperatorClock:
    """Counts the time and the rows of the scan and of each operator, from any thread."""

    def __init__(self, names: Sequence[str]) -> None:
        self.tallies = [StepTally(name) for name in names]
        self.learnt: dict[int, tuple[MatchSituations, Statistics]] = {}
        self.lock = Lock()

    def add(self, place: int, seconds: float, rows_in: int, rows_out: int) -> None:
        """Count a call: place 0 is the scan, the operators follow from the bottom up."""
        with self.lock:
            tally = self.tallies[place]
            tally.seconds += seconds
            tally.rows_in += rows_in
            tally.rows_out += rows_out

    def watching(self, places: Mapping[int, int]) -> Callable[[OperatorStep], None]:
        """Return what counts the steps of operators, whose places are given by their identity."""

        def count(step: OperatorStep) -> None:
            rows_in = sum(edge_rows(each) for each in step.inputs)
            self.add(places[id(step.operator)], step.seconds, rows_in, edge_rows(step.output))
            if isinstance(step.operator, MatchSituations):
                # What it has learnt of its data so far, slice by slice.
                with self.lock:
                    start_us = step.operator.owned.start_us
                    self.learnt[start_us] = step.operator, step.state.statistics

        return count

    def notes(self) -> Iterator[str]:
        """Yield what matchers of situations have learnt."""
        if self.learnt:
            yield from learnt_lines([each for _, each in sorted(self.learnt.items())])

    def steps(self) -> Iterator[WorkStep]:
        """Yield what was counted."""
        for number, each in enumerate(self.tallies):
            yield WorkStep(each.name, each.seconds, each.rows_out, each.rows_in if number else None)


@dataclass(frozen=True, slots=True)
class TimedSource:
    """An `EventSource` that reports the time of reading to a clock."""

    source: EventSource
    clock: OperatorClock

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.source.name

    @property
    def schema(self) -> Schema:
        """The stream's schema."""
        return self.source.schema

    @property
    def row_count(self) -> int:
        """How many events there are."""
        return self.source.row_count

    @property
    def time_range(self) -> TimeRange:
        """From the first event to the last."""
        return self.source.time_range

    def slices(self, time_range: TimeRange, target_rows: int) -> list[TimeSlice]:
        """Cut a time range as the source does."""
        return self.source.slices(time_range, target_rows)

    def scan(
        self, columns: Sequence[str], time_range: TimeRange = ALL_TIME, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield what the source yields, and report the time of each batch."""
        batches = self.source.scan(columns, time_range, where)
        while True:
            started = perf_counter()
            rows = next(batches, None)
            seconds = perf_counter() - started
            self.clock.add(0, seconds, 0, 0 if rows is None else rows.num_rows)
            if rows is None:
                return
            yield rows


def replay_timed(plan: Plan, source: EventSource) -> tuple[list[pa.RecordBatch], Cost]:
    """Return the rows of a plan over one scan, and the cost of its operators.

    The seconds of steps are those of all threads together, the total is elapsed time.
    """
    clock = OperatorClock(list(step_names(plan)))

    def build(part: Plan, owned: TimeRange, threads: int) -> OperatorTree:
        made = build_tree(part, owned, threads)
        places = {id(each): place for place, each in enumerate(made.operators, 1)}
        return replace(made, watch=clock.watching(places))

    started = perf_counter()
    rows = replay(plan, TimedSource(source, clock), build)
    seconds = perf_counter() - started
    steps = tuple(clock.steps())
    notes = tuple(clock.notes())
    return rows, Cost(seconds, steps[0].rows, intervals=1, steps=steps, notes=notes)


def step_names(plan: Plan) -> Iterator[str]:
    """Yield the names of the scan and of each operator above it, bottom first."""
    for below in plan.children:
        yield from step_names(below)
    if isinstance(plan, MatchRecognize) and plan.order:
        yield f"Order by {', '.join(render(key.expression) for key in plan.order)}"
    yield plan.line
