"""Choose how to answer a block: replay all events, or use the index to find those that matter.

A way is imported when it comes into question: most blocks are replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from eventide.engines.history.access import Access, Cost
from eventide.engines.history.replay import replay
from eventide.engines.history.weights import Weights
from eventide.plan.nodes import EndRows, Filter, Project, match_of, scans_of, situations_of
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.tree import Plan, remembers
from eventide.plan.windows.nodes import CalendarWindow, WindowAggregate
from eventide.store.snapshot import Snapshot
from eventide.store.source import EventSource

LEAST_ROWS = 20_000
"""Fewer events are replayed sooner than an index can be read."""


@dataclass(frozen=True)
class ReplayWay:
    """The way that always exists: every event, through the operators."""

    plan: Plan
    source: EventSource
    estimate: Cost

    @property
    def name(self) -> str:
        """What kind of way it is."""
        return "replay"

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        return f"replay all {self.estimate.rows:,} events"

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        started = perf_counter()
        rows = replay(self.plan, self.source)
        seconds = perf_counter() - started
        return rows, Cost(seconds, self.estimate.rows, self.estimate.blocks, 0, 1)


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways to answer a block, cheapest first, and why others are missing."""

    accesses: Sequence[Access]
    refused: str | None = None

    @property
    def best(self) -> Access:
        """The way with the least expected cost."""
        return self.accesses[0]


def ways(plan: Plan, source: EventSource, weights: Weights) -> Ways:
    """Return the ways to answer a plan over one scan."""
    if not isinstance(source, Snapshot):
        return Ways(
            [ReplayWay(plan, source, Cost(0.0, source.row_count))], "it is not a stored stream"
        )
    if isinstance(plan, EndRows):
        from eventide.engines.history.ends import EndsAccess

        return Ways([EndsAccess(plan, source)])
    calendar = calendar_of(plan)
    if calendar is not None:
        from eventide.engines.history.windows.calendar import CalendarIndex

        return Ways([CalendarIndex(plan, calendar, source)])
    if not remembers(plan):
        return only_replay(plan, source, weights, None)
    if source.row_count < LEAST_ROWS:
        return only_replay(plan, source, weights, f"fewer than {LEAST_ROWS:,} events are soon read")
    asked = asked_of_index(plan, source, weights)
    if isinstance(asked, str):
        return only_replay(plan, source, weights, asked)
    found, seconds = asked
    every: list[Access] = [replay_of(plan, source, seconds), *found]
    return Ways(sorted(every, key=lambda each: each.estimate.seconds))


def calendar_of(plan: Plan) -> WindowAggregate | None:
    """Return the windows of the calendar that a block aggregates over, if the index has them."""
    while isinstance(plan, Filter | Project):
        plan = plan.source
    if isinstance(plan, WindowAggregate) and isinstance(plan.window, CalendarWindow):
        from eventide.engines.history.windows.calendar import is_indexed

        return plan if is_indexed(plan) else None
    return None


def asked_of_index(
    plan: Plan, source: Snapshot, weights: Weights
) -> tuple[Sequence[Access], float] | str:
    """Return the ways through the index and the seconds of a replay, or why there are none."""
    if match_of(plan) is None and situations_of(plan) is not None:
        return "every event tells whether a situation goes on"
    if match_of(plan) is None:
        from eventide.engines.history.windows.index import replay_seconds, window_access

        windows = window_access(plan, source, weights)
        if isinstance(windows, str):
            return windows
        return [windows], replay_seconds(plan, source, weights)
    from eventide.engines.history.patterns.ways import pattern_ways

    patterns = pattern_ways(plan, source, weights)
    if isinstance(patterns, str):
        return patterns
    (scan,) = scans_of(plan)
    rows = source.rows_in(scan.time_range)
    return patterns, rows * patterns[0].question.row_seconds(weights)


def only_replay(plan: Plan, source: Snapshot, weights: Weights, refused: str | None) -> Ways:
    """Return replay as the only way, and why there is no other."""
    (scan,) = scans_of(plan)
    node = situations_of(plan)
    row_seconds = weights.replay_event if node is None else situation_seconds(node, weights)
    seconds = source.rows_in(scan.time_range) * row_seconds
    return Ways([replay_of(plan, source, seconds)], refused)


def situation_seconds(node: Situations | TemporalPattern, weights: Weights) -> float:
    """Return the time for following situations, for each row."""
    by_key = weights.match_key if node.keys else 0.0
    return weights.match_row + by_key + len(node.situations) * weights.match_condition


def replay_of(plan: Plan, source: Snapshot, seconds: float) -> ReplayWay:
    """Return replay as a way."""
    (scan,) = scans_of(plan)
    rows = source.rows_in(scan.time_range)
    share = rows / max(1, source.row_count)
    blocks = round(share * sum(segment.leaves for segment in source.segments))
    return ReplayWay(plan, source, Cost(seconds, rows, blocks, 0, 1))
