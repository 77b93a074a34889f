"""Answer a plan over history on Spark: each block as a DataFrame, then the ordinary rest."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eventide.engines.derived import Opener
from eventide.engines.history.choice import ways
from eventide.engines.history.composed import schema_of as derived_schema
from eventide.engines.history.ends import EndsAccess
from eventide.engines.history.merged import streams_of_windows
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.slices import halo_of
from eventide.engines.history.weights import Weights
from eventide.engines.history.windows.calendar import CalendarIndex
from eventide.engines.history.windows.count_index import CountIndex
from eventide.engines.history.windows.index import WindowIndex
from eventide.engines.spark.aggregate import IndexAnswers
from eventide.engines.spark.frames import over_frame, over_store_by_key, over_streams_stored
from eventide.engines.spark.history import over_ends, over_store
from eventide.engines.spark.joined import joined_frame
from eventide.engines.spark.periods import over_periods
from eventide.engines.spark.rest import around
from eventide.engines.spark.types import (
    spark_schema,
    to_the_border,
    zoneless_in,
)
from eventide.engines.spark.zones import zoneless_columns
from eventide.engines.standing.choice import best_plan
from eventide.operators.columns import concat_batches
from eventide.plan.nodes import Relational, is_chain, scans_of
from eventide.plan.situations.nodes import PeriodJoin
from eventide.plan.standing.nodes import Merge
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.schema import Schema, row_schema
from eventide.store import Snapshot

MOST_ON_DRIVER = 200_000
"""So many slices the driver asks of the index itself; more are left to tasks."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the streams of one query are: DataFrames, or one snapshot of each stored stream."""

    frames: dict[str, DataFrame]
    schemas: dict[str, Schema]
    """Those of the DataFrames."""
    stored: dict[str, Snapshot]
    zoneless: dict[str, Collection[str]]
    """The columns of each stream that are timestamps without a zone."""


@dataclass(frozen=True, slots=True)
class SparkAnswer:
    """Answers a query from the inside; `given` gains the rows of derived streams."""

    session: SparkSession
    given: Given
    weights: Weights
    opener: Opener
    below_windows: frozenset[str]
    """The streams below windows of the query, which share the newest event."""

    @classmethod
    def of(cls, session: SparkSession, plan: Plan, given: Given, weights: Weights) -> SparkAnswer:
        """Return what answers a plan and all plans inside it."""
        return cls(session, given, weights, Opener.of(plan), streams_of_windows(plan))

    def rows(self, plan: Plan, zoneless: Collection[str] | None = None) -> DataFrame:
        """Return the rows of a plan; `zoneless` are those of its columns without a time zone."""
        plan = self.opened(plan)
        beside = streams_of_windows(plan) | self.below_windows
        if not isinstance(plan, Relational):
            own = zoneless_columns(plan, self.given.zoneless) if zoneless is None else zoneless
            return self.block(plan, beside, own)
        if plan.spark_gap is not None:
            raise plan.spark_gap
        inputs = [(name, self.input(source, beside)) for name, source in plan.inputs]
        return around(self.session, plan.spark_sql, inputs)

    def opened(self, plan: Plan) -> Plan:
        """Return a plan over scans alone, having answered the derived streams that it reads."""
        found = self.opener.open(plan)
        given = self.given
        for name, stream in found.below.items():
            if name not in given.frames:
                zoneless = zoneless_columns(stream, given.zoneless)
                given.frames[name] = self.rows(stream.source, zoneless)
                given.schemas[name] = derived_schema(stream)
                given.zoneless[name] = zoneless_in(given.frames[name].schema)
        return found.plan

    def input(self, plan: Plan, beside: Set[str]) -> DataFrame:
        """Return the rows of an input of the rest: of a block, or of several that are joined."""
        zoneless = zoneless_columns(plan, self.given.zoneless)
        if not isinstance(plan, PeriodJoin):
            return self.block(plan, beside, zoneless)
        left, right = (self.input(each, beside) for each in (plan.left, plan.right))
        return joined_frame(plan, left, right, zoneless)

    def block(self, plan: Plan, beside: Set[str], zoneless: Collection[str]) -> DataFrame:
        """Return the rows of a plan over one scan, of one that merges several, or of all arms."""
        if isinstance(plan, Merge):
            arms = [self.block(each, beside, zoneless) for each in plan.sources]
            return reduce(DataFrame.unionAll, arms)
        if windows_of(plan) or not is_chain(plan):
            read = beside | {scan.stream for scan in scans_of(plan)}
            return self.merged(plan, read, zoneless)
        (scan,) = scans_of(plan)
        given = self.given
        if scan.stream in given.frames:
            return over_frame(plan, given.frames[scan.stream], given.schemas[scan.stream], zoneless)
        source = given.stored[scan.stream]
        # Periods by key are found on one machine only: the next best way is taken then.
        best = next(
            each
            for each in ways(plan, source, self.weights).accesses
            if not (isinstance(each, IntervalAccess) and each.question.by_key)
        )
        if isinstance(best, EndsAccess) and best.has_condition:
            return over_ends(self.session, best.node, source, zoneless)
        if isinstance(best, CalendarIndex):
            best = replace(best, partials=IndexAnswers(self.session).partials)
        if isinstance(best, CalendarIndex | EndsAccess) or (
            isinstance(best, WindowIndex | CountIndex) and best.estimate.intervals <= MOST_ON_DRIVER
        ):
            rows, _ = best.run()
            schema = rows[0].schema if rows else row_schema(plan.row)
            whole = concat_batches(rows, schema)
            table = pa.Table.from_batches([to_the_border(whole, zoneless)])
            return self.session.createDataFrame(table, spark_schema(schema, zoneless))
        if isinstance(best, IntervalAccess):
            return over_periods(self.session, best, zoneless)
        if halo_of(plan) is None:
            return over_store_by_key(self.session, plan, source, zoneless)
        return over_store(self.session, plan, source, zoneless)

    def merged(self, plan: Plan, beside: Set[str], zoneless: Collection[str]) -> DataFrame:
        """Return the rows of a plan over stored streams and DataFrames, merged in order of time."""
        given = self.given
        stored = {name: each for name, each in given.stored.items() if name in beside}
        frames = {name: each for name, each in given.frames.items() if name in beside}
        chosen = best_plan(plan, stored)
        return over_streams_stored(self.session, chosen, frames, given.schemas, stored, zoneless)
