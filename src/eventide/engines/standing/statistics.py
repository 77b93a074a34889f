"""What is known of the streams of a standing query: a sample answers what its plans need to know.

They need the values of columns that are compared, joined, grouped or made distinct, and the
selectivity of conditions that read one stream only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from eventide.engines.standing.reach import scan_of
from eventide.engines.standing.sampling import SECOND_US, sample_of
from eventide.errors import StoreError
from eventide.plan.expressions import Column, Expression, columns_of, conjuncts, walk
from eventide.plan.failing import can_fail
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.standing.joins import Existence, WindowJoin
from eventide.plan.standing.nodes import Difference, Distinct, GroupAggregate
from eventide.plan.standing.statistics import LeafStatistics, Statistics
from eventide.plan.standing.update_patterns import nodes_of, windows_of
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    StreamWindow,
    Windowed,
)
from eventide.plan.tree import Plan
from eventide.schema import TS
from eventide.store.snapshot import Snapshot
from eventide.store.source import EventSource


@dataclass(frozen=True, slots=True)
class WindowQuestion:
    """What is needed of a stream: the window, columns whose values are counted, and conditions."""

    leaf: Windowed
    columns: tuple[str, ...]
    conditions: tuple[Expression, ...]


def statistics_of(
    plan: Plan, alternatives: Iterable[Plan], sources: Mapping[str, EventSource]
) -> Statistics:
    """Return what is known of the stream of each window, as far as it matters to alternatives."""
    nodes = [node for each in alternatives for node in nodes_of(each)]
    compared = frozenset(name for node in nodes for name in compared_columns(node))
    conditions = tuple(dict.fromkeys(part for node in nodes for part in conditions_in(node)))
    found: dict[str, LeafStatistics] = {}
    for leaf in windows_of(plan):
        # Of derived events nothing is known before they are derived.
        source = sources.get(leaf.source.stream) if isinstance(leaf.source, Scan) else None
        if source is None or source.time_range.is_empty:
            continue
        columns = tuple(name for name in leaf.source.row if f"{leaf.alias}.{name}" in compared)
        own = tuple(each for each in conditions if reads_only(each, leaf))
        found[leaf.alias] = known_of(WindowQuestion(leaf, columns, own), source)
    return found


def reads_only(condition: Expression, leaf: Windowed) -> bool:
    """Whether a condition belongs to a window: another SELECT may use its name for another."""
    read = [part for part in walk(condition) if isinstance(part, Column)]
    return all(leaf.row.get(column.name) == column.type for column in read)


def known_of(question: WindowQuestion, source: EventSource) -> LeafStatistics:
    """Return what is known of a stream; for a stored one it is kept until the stream has grown."""
    if not (question.columns or question.conditions):
        return LeafStatistics(average_rate(source))
    if isinstance(source, Snapshot):
        return source.found(question, lambda: measured(question, source))
    return measured(question, source)


def average_rate(source: EventSource) -> float:
    """Return how many events a second a stream has had."""
    period = source.time_range
    return source.row_count / max(1.0, (period.end_us - period.start_us) / SECOND_US)


def measured(question: WindowQuestion, source: EventSource) -> LeafStatistics:
    """Return what a sample of the newest events shows."""
    leaf = question.leaf
    names = {TS, *question.columns}
    for condition in question.conditions:
        names |= {name.removeprefix(f"{leaf.alias}.") for name in columns_of(condition)}
    columns = [name for name in leaf.source.row if name in names]
    whole = source.time_range
    window_us = length_of(leaf.window)
    try:
        reach_us = whole.end_us - whole.start_us if window_us is None else window_us
        sample = sample_of(source, columns, scan_of(leaf).time_range, reach_us)
    except StoreError:
        # Damaged or thinned data does not concern the plan: the query reports it when it reads.
        sample = None
    if sample is None:
        return LeafStatistics(average_rate(source))
    named = sample.named(leaf.alias)
    rows = rows_of(leaf.window, sample.rate, source.row_count)
    return LeafStatistics(
        sample.rate,
        {name: sample.values(name, rows) for name in question.columns},
        {each: named.share(each) for each in question.conditions},
    )


def length_of(window: StreamWindow) -> int | None:
    """Return how long a window is, None if it may hold events of any age."""
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            return size + (jump or 0)
        case PeriodWindow(period_us=period):
            return period
        case SessionWindow(gap_us=gap):
            return 2 * gap
        case RowsWindow(keys=()):
            return 0
    return None


def rows_of(window: StreamWindow, rate: float, stored: int) -> float:
    """Return how many events a window has."""
    if isinstance(window, RowsWindow) and not window.keys:
        return window.count
    length_us = length_of(window)
    return stored if length_us is None else rate * length_us / SECOND_US


def compared_columns(node: Plan) -> Iterator[str]:
    """Yield the columns whose number of different values matters."""
    match node:
        case WindowJoin(keys=keys, condition=condition):
            yield from (name for each in keys for key in each for name in columns_of(key))
            if condition is not None:
                yield from columns_of(condition)
        case Existence(left_keys=left, right_keys=right):
            yield from (name for key in (*left, *right) for name in columns_of(key))
        case GroupAggregate(keys=keys):
            yield from (name for key in keys for name in columns_of(key.expression))
        case Windowed(window=RowsWindow(keys=keys), alias=alias):
            yield from (f"{alias}.{key}" for key in keys)
        case Distinct() | Difference():
            yield from (name for each in node.children for name in named_in(each))


def named_in(plan: Plan) -> Iterator[str]:
    """Yield the columns that the rows of a plan are made of, as far down as is plain."""
    match plan:
        case Filter(source=source):
            yield from named_in(source)
        case Project(items=items):
            yield from (name for item in items for name in columns_of(item.expression))
        case _:
            yield from plan.row


def conditions_in(node: Plan) -> Iterator[Expression]:
    """Yield the conditions of a node, each as a whole and in its parts."""
    match node:
        case Filter(condition=condition):
            parts = condition, *conjuncts(condition)
        case WindowJoin(condition=condition) if condition is not None:
            parts = tuple(conjuncts(condition))
        case _:
            return
    yield from (part for part in parts if columns_of(part) and not can_fail(part))
