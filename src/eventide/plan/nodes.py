"""Plan nodes: what is done with rows. A closed union of frozen values that refuse to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from eventide.batch import ALL_TIME, TimeRange
from eventide.errors import PlanError, Span
from eventide.plan.expressions import (
    Aggregate,
    Expression,
    Frame,
    Named,
    RangeFrame,
    RowsFrame,
    rebuild_aggregate,
)
from eventide.schema import TIMESTAMP, DataType

WINDOW_START = "window_start"
WINDOW_END = "window_end"

Row = Mapping[str, DataType]
"""The columns of a node's output, in order."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The events of a stream, of one span of time, in order of (ts, seq)."""

    stream: str
    columns: tuple[tuple[str, DataType], ...] = ()
    time_range: TimeRange = ALL_TIME
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return dict(self.columns)


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows on which `condition` is true; neither false nor null will do."""

    source: Plan
    condition: Expression

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return self.source.row


@dataclass(frozen=True, slots=True)
class Project:
    """The named expressions, computed for every row."""

    source: Plan
    items: tuple[Named, ...]

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return {item.name: item.type for item in self.items}


@dataclass(frozen=True, slots=True)
class Window:
    """The periods [k·slide, k·slide + size) for every integer k; tumbling when slide is size."""

    size_us: int
    slide_us: int

    def __post_init__(self) -> None:
        if self.size_us <= 0 or self.slide_us <= 0:
            message = f"a window's size and slide must be positive, got {self}"
            raise PlanError(message)

    @property
    def is_tumbling(self) -> bool:
        """Whether every instant lies in exactly one window."""
        return self.size_us == self.slide_us


@dataclass(frozen=True, slots=True)
class NamedAggregate:
    """An aggregate and the name of the column it becomes."""

    name: str
    aggregate: Aggregate


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """One row for each window and key that has an event: keys, window bounds, aggregates."""

    source: Plan
    keys: tuple[Named, ...]
    window: Window
    aggregates: tuple[NamedAggregate, ...]

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return {
            **{key.name: key.type for key in self.keys},
            WINDOW_START: TIMESTAMP,
            WINDOW_END: TIMESTAMP,
            **{item.name: item.aggregate.type for item in self.aggregates},
        }


@dataclass(frozen=True, slots=True)
class SlidingAggregate:
    """Every event, with aggregates over its frame among the events of the same key."""

    source: Plan
    keys: tuple[Expression, ...]
    frame: Frame
    aggregates: tuple[NamedAggregate, ...]

    def __post_init__(self) -> None:
        match self.frame:
            case RangeFrame(preceding_us=preceding) | RowsFrame(preceding=preceding):
                if preceding < 0:
                    message = f"a frame cannot start after its row: {self.frame}"
                    raise PlanError(message)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        added = {item.name: item.aggregate.type for item in self.aggregates}
        return {**self.source.row, **added}


@dataclass(frozen=True, slots=True)
class Relational:
    """Ordinary SQL around our operators: the rest of the query, over their results.

    The text comes in the dialect of each engine that can run it; `inputs` are the names it uses
    for the plans below.
    """

    inputs: tuple[tuple[str, Plan], ...]
    duckdb_sql: str
    spark_sql: str

    @property
    def row(self) -> Row:
        """Unknown: the engine that runs the text decides it."""
        return {}


Plan = Scan | Filter | Project | WindowAggregate | SlidingAggregate | Relational


def sources_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the plans directly below a node."""
    match plan:
        case Scan():
            return ()
        case Relational(inputs=inputs):
            return tuple(source for _, source in inputs)
        case _:
            return (plan.source,)


def scans_of(plan: Plan) -> tuple[Scan, ...]:
    """Return all scans of a plan, left to right."""
    if isinstance(plan, Scan):
        return (plan,)
    return tuple(scan for source in sources_of(plan) for scan in scans_of(source))


def rebuild_sources(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Return the node with `change` applied to each plan directly below it."""
    match plan:
        case Scan():
            return plan
        case Relational(inputs=inputs):
            return replace(plan, inputs=tuple((name, change(each)) for name, each in inputs))
        case _:
            return replace(plan, source=change(plan.source))


def rebuild_expressions(plan: Plan, change: Callable[[Expression], Expression]) -> Plan:
    """Return the node with `change` applied to each of its own expressions."""

    def named(items: tuple[Named, ...]) -> tuple[Named, ...]:
        return tuple(Named(item.name, change(item.expression)) for item in items)

    def aggregated(items: tuple[NamedAggregate, ...]) -> tuple[NamedAggregate, ...]:
        return tuple(
            replace(item, aggregate=rebuild_aggregate(item.aggregate, change)) for item in items
        )

    match plan:
        case Scan() | Relational():
            return plan
        case Filter(condition=condition):
            return replace(plan, condition=change(condition))
        case Project(items=items):
            return replace(plan, items=named(items))
        case WindowAggregate(keys=keys, aggregates=aggregates):
            return replace(plan, keys=named(keys), aggregates=aggregated(aggregates))
        case SlidingAggregate(keys=keys, aggregates=aggregates):
            return replace(plan, keys=tuple(map(change, keys)), aggregates=aggregated(aggregates))
    assert_never(plan)
