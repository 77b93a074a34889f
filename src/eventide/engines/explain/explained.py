"""How a query is answered, for explain: ways, conditions, and the measured cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import pyarrow as pa

from eventide.engines.derived import Opener
from eventide.engines.explain.leaf_strip import LeafStrip, leaf_strip
from eventide.engines.history.access import Access, Cost, WorkStep
from eventide.engines.history.algebra.spans import Spans, spans_of
from eventide.engines.history.answer import table_of
from eventide.engines.history.choice import ReplayWay, Ways, ways
from eventide.engines.history.composed import latest, source_of
from eventide.engines.history.merged import newest_of, run_merged
from eventide.engines.history.patterns.conditions import Condition
from eventide.engines.history.patterns.estimate import PatternFacts, estimates
from eventide.engines.history.patterns.question import PatternQuestion
from eventide.engines.history.patterns.selection import best_choice
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.profiling import replay_timed
from eventide.engines.history.rest import run_rest
from eventide.engines.history.situations.joined import named_inputs, run_input
from eventide.engines.history.situations.pairs import PeriodPairs
from eventide.engines.history.weights import Weights
from eventide.engines.standing.explained import ExplainedStanding, explain_standing
from eventide.instants import END_OF_TIME_US
from eventide.plan.nodes import DerivedStream, Relational, Scan, is_chain, scans_of
from eventide.plan.situations.nodes import PeriodJoin
from eventide.plan.standing.nodes import Merge
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.schema import row_schema
from eventide.store.reading.hits import Reach, reach_of, reach_of_one
from eventide.store.snapshot import Snapshot
from eventide.store.source import EventSource

WORTH_IT = 0.7
"""An index is recommended if it would reduce the time of the query to this share."""


@dataclass(frozen=True)
class Considered:
    """A condition that can be looked up in an index, and what that costs."""

    condition: Condition
    text: str
    reach: Reach
    chosen: bool


@dataclass(frozen=True, slots=True)
class Advice:
    """An index that a stream does not have, and what the query would cost with it."""

    stream: str
    attribute: str
    seconds: float
    missing: bool
    """The stream keeps such an index, but some segments do not have it yet."""


@dataclass(frozen=True)
class ExplainedBlock:
    """A plan over one scan: the ways to answer it and, if it was run, the measured cost."""

    name: str
    """The name of its rows in the rest of the query; empty if there is no rest."""
    plan: Plan
    source: EventSource
    ways: Ways
    planning: WorkStep
    weights: Weights
    actual: Cost | None = None
    rows: int = 0

    @property
    def scan(self) -> Scan:
        """What it reads."""
        (scan,) = scans_of(self.plan)
        return scan

    @property
    def best(self) -> Access:
        """The way that is chosen."""
        return self.ways.best

    @property
    def steps(self) -> tuple[WorkStep, ...]:
        """How the time was spent."""
        return (self.planning, *(self.actual.steps if self.actual else ()))

    @property
    def question(self) -> PatternQuestion | None:
        """What is known from the index about a pattern."""
        found = (each.question for each in self.ways.accesses if isinstance(each, IntervalAccess))
        return next(found, None)

    @cached_property
    def conditions(self) -> list[Considered]:
        """The conditions of a pattern that can be looked up in an index."""
        question = self.question
        if question is None:
            return []
        chosen = self.best.chosen if isinstance(self.best, IntervalAccess) else ()
        return [
            Considered(
                each,
                question.named(each),
                reach_of(question.snapshot, each.clause, question.time_range),
                each in chosen,
            )
            for each in question.shape.conditions
        ]

    @cached_property
    def strip(self) -> LeafStrip | None:
        """The leaves of the stream, and whether each is read; None if there are none."""
        return leaf_strip(self.plan, self.source, self.best)

    @cached_property
    def advice(self) -> list[Advice]:
        """The indexes that would help, the best first."""
        question = self.question
        if question is None:
            return []
        facts = question.facts(self.weights)
        lacking = {
            attribute
            for each in self.conditions
            if each.reach.read_rows
            for attribute in each.condition.attributes
        }
        kept = question.snapshot.manifest.options.indexes
        found = []
        for attribute in sorted(lacking):
            with_index = replace(facts, reaches=list(reaches_with(question, facts, attribute)))
            choice = best_choice(with_index, self.weights)[None, :]
            seconds = float(estimates(with_index, choice, self.weights).seconds[0])
            if seconds < WORTH_IT * self.best.estimate.seconds:
                found.append(Advice(self.scan.stream, attribute, seconds, attribute in kept))
        return sorted(found, key=lambda each: each.seconds)


def reaches_with(question: PatternQuestion, facts: PatternFacts, attribute: str) -> Iterator[Reach]:
    """Yield the cost of finding the events of each condition if an attribute had an index."""
    segments = len(question.snapshot.segments)
    for condition, reach in zip(facts.shape.conditions, facts.reaches, strict=True):
        for atom in condition.clause:
            if atom[0] == attribute:
                own = reach_of_one(question.snapshot, *atom, question.time_range)
                read, asked = own.read_rows, max(1, segments - own.lookups)
                fresh = own.events - own.entries
                reach = Reach(  # noqa: PLW2901 - what is left of it, atom by atom
                    reach.events,
                    reach.entries + fresh,
                    reach.lookups + asked,
                    reach.read_rows - read,
                )
        yield reach


@dataclass(frozen=True, slots=True)
class ExplainedMerge:
    """A block whose scans are merged in order of time, and the cost of all of it if it was run."""

    name: str
    events: Mapping[str, int]
    """How many events each stream has."""
    spans: Spans | str
    """The periods that are read, or why all events are."""
    step: WorkStep | None = None


@dataclass(frozen=True)
class Explained:
    """A query, block by block."""

    plan: Plan
    blocks: tuple[ExplainedBlock, ...]
    rest: WorkStep | None = None
    """The time of DuckDB for the ordinary SQL around the blocks."""
    joins: tuple[WorkStep, ...] = ()
    """The time of each join of periods."""
    standing: tuple[ExplainedStanding, ...] = ()
    """The blocks that are standing queries."""
    derived: Mapping[str, DerivedStream] = field(default_factory=dict)
    """The derived streams that blocks read, by the names of their scans."""
    merged: tuple[ExplainedMerge, ...] = ()
    """The blocks over several scans, without windows."""

    @property
    def is_standing(self) -> bool:
        """Whether all of it is one standing query, without ordinary SQL around it."""
        whole = [each for each in self.standing if not each.name]
        return len(whole) == 1 and all(block.name for block in self.blocks)

    @property
    def analyzed(self) -> bool:
        """Whether it was run."""
        ran = any(each.steps for each in self.standing) or any(each.step for each in self.merged)
        return ran or any(block.actual is not None for block in self.blocks)


def explained(
    plan: Plan, sources: Mapping[str, EventSource], weights: Weights, *, analyze: bool
) -> Explained:
    """Return how a plan is answered; with `analyze`, run it and time every step."""
    seen = Explainer(dict(sources), weights, analyze, Opener.of(plan), newest_of(plan, sources))
    tables = seen.tables(plan)
    joined: list[PeriodPairs] = []

    def remembered(node: PeriodJoin, left: pa.Table, right: pa.Table) -> PeriodPairs:
        joined.append(PeriodPairs(node, left, right))
        return joined[-1]

    rest = None
    if analyze and isinstance(plan, Relational):
        inputs = {
            name: run_input(name, source, lambda block, _: tables[block], remembered)
            for name, source in plan.inputs
        }
        before = sum(each.seconds for each in joined)
        started = perf_counter()
        rows = run_rest(plan.duckdb_sql, inputs).num_rows
        # DuckDB reads pairs while they are joined.
        waited = sum(each.seconds for each in joined) - before
        rest = WorkStep("DuckDB", max(0.0, perf_counter() - started - waited), rows)
    joins = tuple(WorkStep("PeriodJoin", each.seconds, each.rows) for each in joined)
    standing, merged = tuple(seen.standing), tuple(seen.merged)
    return Explained(plan, tuple(seen.blocks), rest, joins, standing, seen.derived, merged)


@dataclass
class Explainer:
    """Explains a query from the inside: the plans below derived streams before those above."""

    sources: dict[str, EventSource]
    weights: Weights
    analyze: bool
    opener: Opener
    newest_us: int | None
    blocks: list[ExplainedBlock] = field(default_factory=list)
    standing: list[ExplainedStanding] = field(default_factory=list)
    derived: dict[str, DerivedStream] = field(default_factory=dict)
    merged: list[ExplainedMerge] = field(default_factory=list)

    def tables(self, plan: Plan, called: str = "") -> dict[str, pa.Table]:
        """Explain a plan; return the rows of its inputs, by name, without `analyze` no rows."""
        opened = self.opener.open(plan)
        for name, stream in opened.below.items():
            if name not in self.derived:
                (table,) = self.tables(stream.source, name).values()
                self.sources[name] = source_of(name, stream, table)
                self.derived[name] = stream
        until_us = latest(newest_of(opened.plan, self.sources), self.newest_us)
        inputs = named_inputs(opened.plan)
        return {name or called: self.block(name or called, each, until_us) for name, each in inputs}

    def block(self, name: str, block: Plan, until_us: int | None) -> pa.Table:
        """Explain a plan over windows or over one scan, or several of them; return the rows."""
        if isinstance(block, Merge):
            return pa.concat_tables([self.block(name, each, until_us) for each in block.sources])
        if windows_of(block):
            query, table = explain_standing(
                name, block, self.sources, until_us, analyze=self.analyze
            )
            self.standing.append(query)
            return row_schema(block.row).empty_table() if table is None else table
        if not is_chain(block):
            return self.merged_block(name, block)
        (scan,) = scans_of(block)
        source = self.sources[scan.stream]
        started = perf_counter()
        found = ways(block, source, self.weights)
        planning = WorkStep("Plan", perf_counter() - started, 0)
        seen = ExplainedBlock(name, block, source, found, planning, self.weights)
        rows: pa.Table = row_schema(block.row).empty_table()
        if self.analyze:
            batches, cost = run_timed(block, source, found.best)
            rows = table_of(block, batches)
            seen = replace(seen, actual=cost, rows=rows.num_rows)
        self.blocks.append(seen)
        return rows

    def merged_block(self, name: str, block: Plan) -> pa.Table:
        """Explain a plan over several scans without windows; return the rows."""
        rows: pa.Table = row_schema(block.row).empty_table()
        events = {scan.stream: self.sources[scan.stream].row_count for scan in scans_of(block)}
        spans = spans_of(block, self.sources)
        seen = ExplainedMerge(name, events, spans)
        if self.analyze:
            started = perf_counter()
            periods = None if isinstance(spans, str) else spans.periods
            batches = run_merged(block, self.sources, END_OF_TIME_US, periods=periods)
            rows = table_of(block, batches)
            step = WorkStep("Merge", perf_counter() - started, rows.num_rows)
            seen = replace(seen, step=step)
        self.merged.append(seen)
        return rows


def run_timed(plan: Plan, source: EventSource, best: Access) -> tuple[list[pa.RecordBatch], Cost]:
    """Run a way; for a replay, time every operator and count the leaves."""
    if not isinstance(best, ReplayWay):
        return best.run()
    rows, cost = replay_timed(plan, source)
    strip = leaf_strip(plan, source, best) if isinstance(source, Snapshot) else None
    return rows, replace(cost, blocks=0 if strip is None else strip.count("read"))
