"""Run a plan over events as they arrive: the same operators behind an ordering stage."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.batch import ALL_TIME, START_OF_TIME_US, Batch, TimeRange
from eventide.engines.build import Pipeline, States, build_live_pipeline, common_keys
from eventide.errors import SchemaError, UnboundedStateWarning
from eventide.ingest.ordering import Ordering, OrderingState, times
from eventide.operators.checking import require, require_ascending, require_instant
from eventide.operators.envelope import QUERY, Owner
from eventide.operators.key_layers import ready
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful, columns_text
from eventide.plan.bounds import unbounded_reasons
from eventide.plan.explain import explain
from eventide.plan.meaning import digest_of
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS, Schema


@dataclass(frozen=True, slots=True)
class LiveState:
    """The state of a live query."""

    ordering: OrderingState
    operators: States


@dataclass(frozen=True, slots=True)
class PushResult:
    """The result of one push: rows that are complete now, and late events."""

    results: pa.RecordBatch
    late: pa.RecordBatch
    watermark_us: int


@dataclass(frozen=True, slots=True)
class Reported:
    """The result of a step of any live query: rows, and late events by stream."""

    rows: pa.RecordBatch
    late: Mapping[str, pa.RecordBatch]
    watermark_us: int


@dataclass(frozen=True, slots=True)
class LiveEngine(Stateful[LiveState]):
    """A pipeline behind an ordering stage: configuration only, the state travels."""

    plan: Plan
    pipeline: Pipeline
    ordering: Ordering

    @classmethod
    def of(cls, plan: Plan, catalog: Mapping[str, Schema], lateness_us: int) -> LiveEngine:
        """Build the engine of a plan; `UnsupportedError` if it cannot run live."""
        pipeline = build_live_pipeline(plan)
        for reason in unbounded_reasons(plan):
            warnings.warn(reason, UnboundedStateWarning, stacklevel=4)
        schema = catalog[pipeline.scan.stream].arrow
        names = [TS, SEQ, *(n for n, _ in pipeline.scan.columns if n not in (TS, SEQ))]
        wanted = pa.schema([schema.field(name) for name in names])
        # Kernels are compiled now, not while the first event waits.
        nothing = pa.RecordBatch.from_pylist([], schema=pipeline.input_schema)
        pipeline.step(pipeline.initial_state(), Batch(nothing, START_OF_TIME_US))
        if common_keys(plan):
            ready()
        return cls(plan, pipeline, Ordering(wanted, lateness_us))

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: the plan, the columns that it reads, and the lateness."""
        ordering = self.ordering
        facts = {
            QUERY: explain(self.plan),
            f"columns of {self.stream}": columns_text(ordering.schema),
            "lateness": format_duration(ordering.lateness_us),
        }
        digest = digest_of(self.plan, ordering.schema, ordering.lateness_us)
        return Owner("a live query", digest, facts)

    @property
    def stream(self) -> str:
        """The stream whose events the query reads."""
        return self.pipeline.scan.stream

    @property
    def streams(self) -> tuple[str, ...]:
        """The same, as of a query over several."""
        return (self.stream,)

    @property
    def reads(self) -> dict[str, tuple[list[str], TimeRange]]:
        """The columns and times that are read of the stream."""
        return {self.stream: (self.ordering.schema.names, self.pipeline.scan.time_range)}

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the results."""
        return self.pipeline.output_schema

    def initial_state(self) -> LiveState:
        """Return the state before the first event."""
        return LiveState(self.ordering.initial_state(), self.pipeline.initial_state())

    def push(
        self, state: LiveState, arrived: pa.RecordBatch, newest_us: int | None = None
    ) -> tuple[LiveState, PushResult]:
        """Take events in arrival order; they have `ts`, `_seq` and the columns of the scan."""
        check_present(self.ordering.schema, arrived.schema, self.stream)
        wanted = arrived.select(self.ordering.schema.names)
        ordering, batch, late = self.ordering.step(state.ordering, wanted, newest_us)
        return self.forward(LiveState(ordering, state.operators), batch, late)

    def take(
        self,
        state: LiveState,
        arrived: Mapping[str, pa.RecordBatch],
        clock_us: int | None = None,
    ) -> tuple[LiveState, Reported]:
        """Take events by stream; `clock_us` is the newest time where streams share a clock."""
        after, arrival = self.push(state, arrived[self.stream], clock_us)
        late = {self.stream: arrival.late}
        return after, Reported(arrival.results, late, arrival.watermark_us)

    def advance(
        self, state: LiveState, until_us: int, stream: str | None = None
    ) -> tuple[LiveState, Reported]:
        """Move the watermark to a time, if it is not there yet: no earlier event will come."""
        self.check_stream(stream or self.stream)
        nothing = pa.RecordBatch.from_pylist([], schema=self.ordering.schema)
        watermark_us = max(state.ordering.watermark_us, until_us)
        ordering, batch = self.ordering.release(state.ordering, nothing, watermark_us)
        after, arrival = self.forward(LiveState(ordering, state.operators), batch, nothing)
        return after, Reported(arrival.results, {}, arrival.watermark_us)

    def check_stream(self, stream: str) -> None:
        """Refuse a stream that the query does not read."""
        if stream != self.stream:
            message = f"the query does not read {stream!r}"
            raise SchemaError(message, hint=f"it reads {self.stream}")

    def end(self, state: LiveState) -> tuple[LiveState, Reported]:
        """Complete all that is open."""
        after, arrival = self.finish(state)
        return after, Reported(arrival.results, {}, arrival.watermark_us)

    def feed_schema(self, stream: str) -> pa.Schema:  # noqa: ARG002 - there is only one
        """Return the columns that are read of a stream."""
        return self.ordering.schema

    def finish(self, state: LiveState) -> tuple[LiveState, PushResult]:
        """Complete all that is open: no event will follow."""
        ordering, batch = self.ordering.finish(state.ordering)
        nothing = pa.RecordBatch.from_pylist([], schema=self.ordering.schema)
        return self.forward(LiveState(ordering, state.operators), batch, nothing)

    def forward(
        self, state: LiveState, batch: Batch, late: pa.RecordBatch
    ) -> tuple[LiveState, PushResult]:
        """Send the events that the ordering stage released through the operators."""
        rows = batch.rows.select(self.pipeline.input_schema.names)
        if self.pipeline.scan.time_range != ALL_TIME:
            rows = within(rows, self.pipeline.scan.time_range)
        operators, results = self.pipeline.step(state.operators, Batch(rows, batch.watermark_us))
        arrival = PushResult(results.rows, late, batch.watermark_us)
        return LiveState(state.ordering, operators), arrival

    def write(self, state: LiveState) -> bytes:
        """Write the state out."""
        facts = {"watermark_us": state.ordering.watermark_us}
        ordering = write_rows("Ordering", state.ordering.waiting, facts)
        return join_parts([ordering, self.pipeline.write(state.operators)])

    def read(self, written: bytes) -> LiveState:
        """Read back what `write` wrote."""
        ordering, operators = parts_of("the query", written, 2)
        waiting, facts = read_rows("Ordering", ordering, self.ordering.schema)
        check_in_order(waiting)
        watermark_us = facts["watermark_us"]
        require_instant(watermark_us, "the watermark")
        return LiveState(OrderingState(waiting, watermark_us), self.pipeline.read(operators))


def check_in_order(waiting: pa.RecordBatch) -> None:
    """Refuse a written state whose waiting events are not in order of time."""
    for name in (TS, SEQ):
        require(waiting.column(name).null_count == 0, f"a null among the {name} of events")
    require_ascending(times(waiting), "the times of events that wait")


def check_present(wanted: pa.Schema, present: pa.Schema, stream: str) -> None:
    """Refuse events without columns that a query reads: the stream has changed since it began."""
    for field in wanted:
        now = present.get_field_index(field.name)
        if now < 0:
            what = "is no longer there"
        elif present.field(now).type != field.type:
            what = f"is {present.field(now).type} now, it was {field.type}"
        else:
            continue
        message = f"the attribute {field.name!r} of {stream}, which the query reads, {what}"
        raise SchemaError(message, hint="subscribe again, with a query over what is there now")


def within(rows: pa.RecordBatch, time_range: TimeRange) -> pa.RecordBatch:
    """Return the rows of a time range; rows come in order."""
    bounds = [time_range.start_us, max(time_range.start_us, time_range.end_us)]
    start, end = np.searchsorted(times(rows), bounds)
    return rows.slice(int(start), int(end - start))
