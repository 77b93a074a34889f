"""The first or last rows of a stored stream in order of time: leaves are read from that end on.

Without a condition, the index says which leaves have enough events. With one, more and more leaves
are read, until enough events have met it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.engines.history.access import Cost, StopWatch
from eventide.engines.history.replay import SLICE_ROWS, replay, run_slice
from eventide.engines.history.slices import Slice
from eventide.instants import ALL_TIME, TimeRange
from eventide.operators.columns import concat_batches
from eventide.plan.nodes import EndRows, Filter, Scan, scans_of
from eventide.plan.tree import Plan
from eventide.schema import row_schema
from eventide.store.reading.ends import end_of
from eventide.store.snapshot import Snapshot

MORE = 8
"""How many times as many events are looked at next if too few have met a condition."""


@dataclass(frozen=True)
class EndsAccess:
    """The only way to rows at one end: an `Access`."""

    node: EndRows
    source: Snapshot

    @property
    def name(self) -> str:
        """What kind of way it is."""
        return "index"

    @property
    def wanted(self) -> int:
        """How many rows have to be found."""
        return self.node.count + self.node.offset if self.node.count else 0

    @cached_property
    def times(self) -> TimeRange:
        """The period that is read first: it has enough events, if there are so many."""
        return next((times for times, _ in self.periods()), TimeRange(0, 0))

    def periods(self) -> Iterator[tuple[TimeRange, int]]:
        """Yield periods from that end on, and about how many events they have."""
        (scan,) = scans_of(self.node)
        left, wanted = scan.time_range, self.wanted
        while wanted and not left.is_empty:
            found = end_of(self.source, left, wanted, last=self.node.last)
            yield found, wanted
            if self.node.last:
                left = TimeRange(left.start_us, found.start_us)
            else:
                left = TimeRange(found.end_us, left.end_us)
            wanted *= MORE

    @property
    def has_condition(self) -> bool:
        """Whether events have to meet a condition."""
        return has_filter(self.node)

    @property
    def estimate(self) -> Cost:
        """The expected cost: there is no other way to compare it with."""
        return Cost(0.0, self.wanted)

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        end = "end" if self.node.last else "beginning"
        if self.has_condition:
            return f"leaves are read from the {end} of time on until there are enough rows"
        return f"only leaves at the {end} of time are read"

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        watch = StopWatch()
        schema = row_schema(self.node.row)
        parts: list[pa.RecordBatch] = []
        found = 0
        for times, events in self.periods():
            parts.append(concat_batches(self.read(times, events), schema))
            found += parts[-1].num_rows
            watch.step("read leaves", parts[-1].num_rows)
            if found >= self.wanted:
                break
        rows = self.chosen(concat_batches(parts[::-1] if self.node.last else parts, schema))
        watch.step("take the rows at the end", rows.num_rows)
        return [rows], Cost(watch.total, found, steps=watch.steps)

    def read(self, times: TimeRange, events: int) -> list[pa.RecordBatch]:
        """Return the rows of a period, in order of time."""
        plan = within(self.node.source, times)
        if events > SLICE_ROWS:
            return replay(plan, self.source)
        return run_slice(plan, self.source, Slice(ALL_TIME, times, events))

    def chosen(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are asked for, from those that were found, in order of time."""
        if not self.node.last:
            return rows.slice(self.node.offset, self.node.count)
        end = max(0, rows.num_rows - self.node.offset)
        newest_first = np.arange(end - 1, max(0, end - self.node.count) - 1, -1)
        return rows.take(pa.array(newest_first, pa.int64()))


def has_filter(plan: Plan) -> bool:
    """Whether a plan over one scan leaves out events."""
    return isinstance(plan, Filter) or any(map(has_filter, plan.children))


def within(plan: Plan, times: TimeRange) -> Plan:
    """Return a plan over one scan that reads only a period."""
    if isinstance(plan, Scan):
        return replace(plan, time_range=times)
    return plan.with_children(lambda source: within(source, times))
