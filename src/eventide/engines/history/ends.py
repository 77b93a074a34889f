"""The first or last rows of a stored stream in order of time: only leaves at that end are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.batch import ALL_TIME, TimeRange
from eventide.engines.build import arrow_schema
from eventide.engines.history.access import Cost, StopWatch
from eventide.engines.history.replay import run_slice
from eventide.engines.history.slices import Slice
from eventide.operators.columns import concat_batches
from eventide.plan.nodes import EndRows, Scan, rebuild_sources, scans_of
from eventide.plan.tree import Plan
from eventide.store.reading.ends import end_of
from eventide.store.snapshot import Snapshot


@dataclass(frozen=True)
class EndsAccess:
    """The only way to rows at one end: an `Access`."""

    node: EndRows
    source: Snapshot

    @property
    def name(self) -> str:
        """What kind of way it is."""
        return "index"

    @cached_property
    def times(self) -> TimeRange:
        """The period that is read: it has enough events, if there are so many."""
        (scan,) = scans_of(self.node)
        wanted = self.node.count + self.node.offset
        if self.node.count == 0:
            return TimeRange(0, 0)
        return end_of(self.source, scan.time_range, wanted, last=self.node.last)

    @property
    def estimate(self) -> Cost:
        """The expected cost: there is no other way to compare it with."""
        return Cost(0.0, self.node.count + self.node.offset)

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        return f"only leaves at the {'end' if self.node.last else 'beginning'} of time are read"

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        watch = StopWatch()
        part = Slice(ALL_TIME, self.times, self.node.count)
        watch.step("find the period in the index", 0)
        below = within(self.node.source, self.times)
        read = concat_batches(run_slice(below, self.source, part), arrow_schema(below.row))
        watch.step("read its leaves", read.num_rows)
        rows = self.chosen(read)
        watch.step("take the rows at its end", rows.num_rows)
        return [rows], Cost(watch.total, read.num_rows, steps=watch.steps)

    def chosen(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are asked for, from those of the period in order of time."""
        if not self.node.last:
            return rows.slice(self.node.offset, self.node.count)
        end = max(0, rows.num_rows - self.node.offset)
        newest_first = np.arange(end - 1, max(0, end - self.node.count) - 1, -1)
        return rows.take(pa.array(newest_first, pa.int64()))


def within(plan: Plan, times: TimeRange) -> Plan:
    """Return a plan over one scan that reads only a period."""
    if isinstance(plan, Scan):
        return replace(plan, time_range=times)
    return rebuild_sources(plan, lambda source: within(source, times))
