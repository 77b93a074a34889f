"""The periods in which sequences can be, if their first event is rare and their length bounded.

    first event       a                    a
    all of a sequence [── within ──]       [── within ──]      the rest is not read

The index finds the leaves in which a first event can be. Everything that follows it within the
bound is read, and goes through the ordinary operators. So what follows has to be made of events
that come after the first one: a moving sum, say, is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eventide.accumulators.columns import int64s
from eventide.engines.history.choice import LEAST_ROWS
from eventide.engines.history.pruning import merged
from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.plan.algebra.nodes import Follows, InstantAggregate
from eventide.plan.expressions import columns_of, conjuncts
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TS
from eventide.store.snapshot import Snapshot
from eventide.store.source import EventSource

SPAN_ROWS = 4_096
"""To read a period takes about as long as so many events, however short it is."""
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Spans:
    """The periods to read, in order of time, and about how many events they have."""

    periods: tuple[TimeRange, ...]
    begun: int
    rows: int

    @property
    def line(self) -> str:
        """What is read, in a line for people."""
        return (
            f"{self.begun:,} event{'' if self.begun == 1 else 's'} can begin a sequence, and about "
            f"{self.rows:,} are near enough to follow"
        )


def spans_of(plan: Plan, sources: Mapping[str, EventSource]) -> Spans | str:
    """Return the periods in which results of a plan can be, or why all events are read."""
    first = first_of(plan)
    if first is None:
        return "no condition with a constant is on the first event of a bounded sequence"
    within_us, leaf, scan = first
    if not _begins_with_first(_follows(plan)):
        return "what follows depends on events that came before the first one"
    source = sources[scan.stream]
    if not isinstance(source, Snapshot):
        return "it is not a stored stream"
    if source.row_count < LEAST_ROWS:
        return f"fewer than {LEAST_ROWS:,} events are soon read"
    where = dict(merged(conjuncts(leaf.condition)))
    if not where:
        return "the index knows nothing of the condition on the first event"
    most = int(source.row_count * _HALF) // SPAN_ROWS
    times = times_of_first(leaf, scan, source, most)
    if times is None:
        return "too many events can begin a sequence"
    periods = joined(times, within_us)
    whole = source.time_range
    length = max(1, whole.end_us - whole.start_us)
    shares = (each.intersect(whole) for each in periods)
    covered = sum(max(0, each.end_us - each.start_us) for each in shares) / length
    rows = round(covered * source.row_count)
    if rows + len(periods) * SPAN_ROWS > source.row_count * _HALF:
        return "what can follow the first events is most of the stream"
    return Spans(periods, len(times), rows)


def first_of(plan: Plan) -> tuple[int, Filter, Scan] | None:
    """Return how long results can be, and the filter of their first events, if both are known."""
    plan = _follows(plan)
    if not isinstance(plan, Follows) or plan.within_us is None:
        return None
    within_us, below = plan.within_us, plan.left
    while True:
        match below:
            case Filter(source=Scan() as scan):
                return within_us, below, scan
            case Filter() | Project():
                below = below.source
            case Follows():
                below = below.left
            case _:
                return None


def _follows(plan: Plan) -> Plan:
    """Return what is below filters and projections."""
    while isinstance(plan, Filter | Project):
        plan = plan.source
    return plan


def _begins_with_first(plan: Plan) -> bool:
    """Whether rows are made of nothing that came before they began.

    A row of one event is that event. One of several keeps the start of the first of them, but a
    projection may give it another: a point at its end, say.
    """
    match plan:
        case Filter() | DerivedStream() | Merge():
            return all(map(_begins_with_first, plan.children))
        case Project(source=source):
            keeps = plan.origin(TS) == TS and plan.origin(START_TS) == START_TS
            return _is_of_one_event(plan) or (keeps and _begins_with_first(source))
        case InstantAggregate(source=source):
            return _is_of_one_event(source)
        case Follows():
            return all(map(_begins_with_first, plan.children))
    return isinstance(plan, Scan)


def _is_of_one_event(plan: Plan) -> bool:
    """Whether each row is made of one event, at its time."""
    match plan:
        case Project(source=source):
            return plan.origin(TS) == TS and _is_of_one_event(source)
        case Filter() | DerivedStream() | Merge():
            return all(map(_is_of_one_event, plan.children))
    return isinstance(plan, Scan)


def times_of_first(leaf: Filter, scan: Scan, source: Snapshot, most: int) -> Int64s | None:
    """Return the times of first events, ascending; None if there are more than `most`."""
    columns = [*dict.fromkeys([TS, *sorted(columns_of(leaf.condition))])]
    where = dict(merged(conjuncts(leaf.condition)))
    found, count = [], 0
    for rows in source.scan(columns, scan.time_range, where):
        times = int64s(rows.filter(evaluate_predicate(leaf.condition, rows)).column(TS))
        found.append(times)
        count += len(times)
        if count > most:
            return None
    return np.concatenate(found) if found else np.empty(0, np.int64)


def joined(times: Int64s, within_us: int) -> tuple[TimeRange, ...]:
    """Return the periods from each time on, those that touch as one; times ascend.

    >>> joined(np.array([0, 5, 30]), 10)
    (TimeRange(start_us=0, end_us=16), TimeRange(start_us=30, end_us=41))
    """
    if not len(times):
        return ()
    begins = np.append(True, times[1:] - times[:-1] > within_us)
    ends = np.append(begins[1:], True)
    pairs = zip(times[begins].tolist(), times[ends].tolist(), strict=True)
    return tuple(TimeRange(start, last + within_us + 1) for start, last in pairs)
