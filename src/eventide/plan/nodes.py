"""Plan nodes: what is done with rows. A closed union of frozen values that check themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

from eventide.batch import ALL_TIME, TimeRange
from eventide.errors import PlanError, Span, UnsupportedError
from eventide.plan.expressions import (
    Column,
    Expression,
    Named,
    NamedAggregate,
    OrderKey,
    rebuild_aggregate,
)
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.situations.nodes import PeriodJoin, Situations, TemporalPattern
from eventide.plan.situations.parts import Situation
from eventide.plan.standing.nodes import StandingNode
from eventide.plan.standing.rebuild import (
    rebuild_standing_expressions,
    rebuild_standing_sources,
    standing_sources,
)
from eventide.plan.tree import Plan, Row
from eventide.plan.windows.nodes import SlidingAggregate, WindowAggregate
from eventide.schema import TS, DataType


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Events written in the query itself, in order of arrival; times are microseconds."""

    columns: tuple[tuple[str, DataType], ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Scan(Plan):
    """The events of a stream, of one period, in order of (ts, _seq).

    Rows that stand for a derived stream are in order of (ts, the columns `order`, _seq).
    """

    stream: str
    columns: tuple[tuple[str, DataType], ...] = ()
    time_range: TimeRange = ALL_TIME
    span: Span | None = field(default=None, compare=False)
    written: WrittenRows | None = None
    """The events themselves, if no stream holds them."""
    order: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return dict(self.columns)


@dataclass(frozen=True, slots=True)
class Filter(Plan):
    """The rows on which `condition` is true, neither false nor null."""

    source: Plan
    condition: Expression

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.source.row


@dataclass(frozen=True, slots=True)
class Project(Plan):
    """The named expressions, computed for every row."""

    source: Plan
    items: tuple[Named, ...]

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {item.name: item.type for item in self.items}


@dataclass(frozen=True, slots=True)
class EndRows(Plan):
    """The first `count` rows in order of time behind `offset` others, or the last, newest first.

    The source chooses and computes with each event of a stored stream by itself, so leaves are read
    from that end on.
    """

    source: Plan
    count: int
    offset: int
    last: bool

    def __post_init__(self) -> None:
        if self.count < 0 or self.offset < 0:
            message = f"a number of rows below zero: {self.count} behind {self.offset}"
            raise PlanError(message)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.source.row


@dataclass(frozen=True, slots=True)
class DerivedStream(Plan):
    """The rows of an append-only query as events; `ts` is the instant at which a row is certain.

    Rows come in order of `ts`, then of the columns `order`, then as the source has them. Other
    nodes rely on that order as on the order of a scan.
    """

    source: Plan
    order: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)
    in_time: bool = True
    """Whether `ts` is the instant at which a row is certain, not another time of the query's."""

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.source.row

    @property
    def order_keys(self) -> tuple[OrderKey, ...]:
        """The order of the rows, nulls first."""
        row = self.row
        names = (TS, *self.order)
        return tuple(OrderKey(Column(name, row[name]), nulls_first=True) for name in names)


@dataclass(frozen=True, slots=True)
class Relational(Plan):
    """Ordinary SQL around our operators: the rest of the query, over their results.

    The text is given in the dialect of each engine that can run it; `inputs` are the names it uses
    for the plans below. `spark_gap` says why Spark cannot run it, if it cannot; `reason` is the
    expression that our own operators cannot do, if it is just one.
    """

    inputs: tuple[tuple[str, Plan], ...]
    duckdb_sql: str
    spark_sql: str
    spark_gap: UnsupportedError | None = None
    reason: UnsupportedError | None = None

    @property
    def row(self) -> Row:
        """Unknown: the engine that runs the text decides it."""
        return {}


Node = (
    Scan
    | Filter
    | Project
    | EndRows
    | WindowAggregate
    | SlidingAggregate
    | MatchRecognize
    | Situations
    | TemporalPattern
    | PeriodJoin
    | DerivedStream
    | Relational
    | StandingNode
)


def node_of(plan: Plan) -> Node:
    """Return a plan as one of the known nodes, so that mypy sees what a match leaves out.

    `tests/plan/test_nodes.py` makes sure that there is no other.
    """
    return cast("Node", plan)


def sources_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the plans directly below a node."""
    plan = node_of(plan)
    match plan:
        case Scan():
            return ()
        case PeriodJoin(left=left, right=right):
            return (left, right)
        case Relational(inputs=inputs):
            return tuple(source for _, source in inputs)
        case Filter() | Project() | WindowAggregate() | SlidingAggregate() | MatchRecognize():
            return (plan.source,)
        case Situations() | TemporalPattern() | DerivedStream() | EndRows():
            return (plan.source,)
        case _:
            return standing_sources(plan)


def scans_of(plan: Plan) -> tuple[Scan, ...]:
    """Return all scans of a plan, left to right."""
    if isinstance(plan, Scan):
        return (plan,)
    return tuple(scan for source in sources_of(plan) for scan in scans_of(source))


def match_of(plan: Plan) -> MatchRecognize | None:
    """Return the row pattern of a plan over one scan, if it has one."""
    if isinstance(plan, MatchRecognize):
        return plan
    found = (match_of(source) for source in sources_of(plan))
    return next((each for each in found if each is not None), None)


def situations_of(plan: Plan) -> Situations | TemporalPattern | None:
    """Return the node of a plan over one scan that follows situations, if it has one."""
    if isinstance(plan, Situations | TemporalPattern):
        return plan
    found = (situations_of(source) for source in sources_of(plan))
    return next((each for each in found if each is not None), None)


def rebuild_sources(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Return the node with `change` applied to each plan directly below it."""
    plan = node_of(plan)
    match plan:
        case Scan():
            return plan
        case PeriodJoin(left=left, right=right):
            return replace(plan, left=change(left), right=change(right))
        case Relational(inputs=inputs):
            return replace(plan, inputs=tuple((name, change(each)) for name, each in inputs))
        case Filter() | Project() | WindowAggregate() | SlidingAggregate() | MatchRecognize():
            return replace(plan, source=change(plan.source))
        case Situations() | TemporalPattern() | DerivedStream() | EndRows():
            return replace(plan, source=change(plan.source))
        case _:
            return rebuild_standing_sources(plan, change)


def rebuild_expressions(plan: Plan, change: Callable[[Expression], Expression]) -> Plan:
    """Return the node with `change` applied to each of its own expressions."""

    def named(items: tuple[Named, ...]) -> tuple[Named, ...]:
        return tuple(Named(item.name, change(item.expression)) for item in items)

    def aggregated(items: tuple[NamedAggregate, ...]) -> tuple[NamedAggregate, ...]:
        return tuple(
            replace(item, aggregate=rebuild_aggregate(item.aggregate, change)) for item in items
        )

    def held(items: tuple[Situation, ...]) -> tuple[Situation, ...]:
        return tuple(replace(item, condition=change(item.condition)) for item in items)

    plan = node_of(plan)
    match plan:
        case Scan() | PeriodJoin() | DerivedStream() | EndRows() | Relational():
            return plan
        case Filter(condition=condition):
            return replace(plan, condition=change(condition))
        case Project(items=items):
            return replace(plan, items=named(items))
        case WindowAggregate(keys=keys, aggregates=aggregates):
            return replace(plan, keys=named(keys), aggregates=aggregated(aggregates))
        case SlidingAggregate(keys=keys, aggregates=aggregates):
            return replace(plan, keys=tuple(map(change, keys)), aggregates=aggregated(aggregates))
        case MatchRecognize(keys=keys, order=order, defines=defines, measures=measures):
            ordered = tuple(replace(item, expression=change(item.expression)) for item in order)
            return replace(
                plan,
                keys=named(keys),
                order=ordered,
                defines=named(defines),
                measures=named(measures),
            )
        case Situations(keys=keys, situations=situations, aggregates=aggregates):
            return replace(
                plan,
                keys=named(keys),
                situations=held(situations),
                aggregates=aggregated(aggregates),
            )
        case TemporalPattern(keys=keys, situations=situations, returns=returns):
            return replace(
                plan, keys=named(keys), situations=held(situations), returns=named(returns)
            )
        case _:
            return rebuild_standing_expressions(plan, change)


def derived_in(plan: Plan) -> bool:
    """Whether a plan reads the rows of a query as events."""
    return isinstance(plan, DerivedStream) or any(map(derived_in, sources_of(plan)))
