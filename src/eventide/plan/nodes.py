"""Plan nodes: what is done with rows. A closed union of frozen values that refuse to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from eventide.batch import ALL_TIME, TimeRange
from eventide.errors import PlanError, Span, UnsupportedError
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    Frame,
    Named,
    RangeFrame,
    RowsFrame,
    rebuild_aggregate,
    walk,
)
from eventide.plan.patterns.tree import PAST_LAST_ROW, Output, Pattern, Skip, Strategy, variables_of
from eventide.plan.situations.parts import Constraint, RowPeriod, Situation
from eventide.plan.standing.nodes import StandingNode
from eventide.plan.standing.rebuild import (
    rebuild_standing_expressions,
    rebuild_standing_sources,
    standing_sources,
)
from eventide.schema import BOOL, STRING, TIMESTAMP, TS, DataType

WINDOW_START = "window_start"
WINDOW_END = "window_end"
TIMED_OUT = "timed_out"
START_TS = "start_ts"
END_TS = "end_ts"
SITUATION = "situation"
CONFIRMED = "confirmed"

Row = Mapping[str, DataType]
"""The columns of a node's output, in order."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Events that a query writes down itself, in order of arrival; times are microseconds."""

    columns: tuple[tuple[str, DataType], ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """The events of a stream, of one span of time, in order of (ts, _seq)."""

    stream: str
    columns: tuple[tuple[str, DataType], ...] = ()
    time_range: TimeRange = ALL_TIME
    span: Span | None = field(default=None, compare=False)
    written: WrittenRows | None = None
    """The events themselves, if no stream holds them."""

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
class CountWindow:
    """The events number i·slide … i·slide + size - 1 of a key, for every i; numbers begin at 0."""

    size: int
    slide: int

    def __post_init__(self) -> None:
        if self.size <= 0 or self.slide <= 0:
            message = f"a window's size and slide must be positive, got {self}"
            raise PlanError(message)

    @property
    def is_tumbling(self) -> bool:
        """Whether every event lies in exactly one window."""
        return self.size == self.slide


@dataclass(frozen=True, slots=True)
class NamedAggregate:
    """An aggregate and the name of the column it becomes."""

    name: str
    aggregate: Aggregate


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """One row for each window and key: keys, window bounds, aggregates.

    Windows of time are those with an event, [start, end); windows by count are the full ones, from
    the time of their first event to that of their last.
    """

    source: Plan
    keys: tuple[Named, ...]
    window: Window | CountWindow
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
class OrderKey:
    """One item of ORDER BY. Equal rows stay in order of (ts, _seq)."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class MatchRecognize:
    """Matches of a row pattern among the rows of each key, in order.

    `order` is empty for the order of (ts, _seq). `defines` has the condition of every variable of
    the pattern, in the order of `variables`; `subsets` are names for several of them.
    """

    source: Plan
    keys: tuple[Named, ...]
    order: tuple[OrderKey, ...]
    pattern: Pattern
    defines: tuple[Named, ...]
    measures: tuple[Named, ...]
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    output: Output = "one row"
    skip: Skip = PAST_LAST_ROW
    within_us: int | None = None
    strategy: Strategy = "contiguous"
    timeout_rows: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """The pattern's variables, as the pattern spells them, in order of first sight."""
        return variables_of(self.pattern)

    @property
    def all_rows(self) -> bool:
        """Whether matched rows come out one by one."""
        return self.output != "one row"

    @property
    def row(self) -> Row:
        """The columns that come out."""
        columns = {key.name: key.type for key in self.keys}
        measures = {item.name: item.type for item in self.measures}
        if self.timeout_rows:
            measures[TIMED_OUT] = BOOL
        if not self.all_rows:
            return {**columns, **measures}
        # As the standard has it: keys, what is ordered by, measures, and the rest of the row.
        source = self.source.row
        ordered = [item.expression for item in self.order] or [Column(TS)]
        names = [each.name for each in ordered if isinstance(each, Column)]
        first = {name: source[name] for name in names if name not in columns}
        return {**columns, **first, **measures} | {
            name: kind for name, kind in source.items() if name not in measures
        }


@dataclass(frozen=True, slots=True)
class Situations:
    """The periods for which conditions hold, of each key: [start_ts, end_ts), when they are over.

    A situation is as many events of a key in a row as its condition is true on. It begins with
    the first and ends with the first event on which it is not true; events of one key at the same
    time count one after the other. A key that is silent for longer than `gap_us` ends all its
    situations that long after its last event. `aggregates` are over the events of the situation.
    """

    source: Plan
    keys: tuple[Named, ...]
    situations: tuple[Situation, ...]
    aggregates: tuple[NamedAggregate, ...] = ()
    gap_us: int | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return {
            **{key.name: key.type for key in self.keys},
            SITUATION: STRING,
            START_TS: TIMESTAMP,
            END_TS: TIMESTAMP,
            **{item.name: item.aggregate.type for item in self.aggregates},
        }


PairKind = Choice["inner", "left", "semi", "anti"]
Detection = Choice["early", "final"]


@dataclass(frozen=True, slots=True)
class TemporalPattern:
    """Situations of a key, one of each kind, whose periods have the relations asked for.

    Every such combination is a match. `early` reports it at the first event after which it is
    certain, `final` when all its situations are over; `ts` is that moment, and no situation began
    longer than `within_us` before it. `returns` are over `MatchAggregate` and `PeriodPart` of the
    situations, as they are at that moment. With `confirm`, a match that was reported while some
    situation went on is reported again when all are over. Items with an `Aggregate` are over all
    matches of a key at a moment, one row for each. `limit` is how many matches of a key are
    reported, the first ones.
    """

    source: Plan
    keys: tuple[Named, ...]
    situations: tuple[Situation, ...]
    constraints: tuple[Constraint, ...]
    within_us: int
    returns: tuple[Named, ...]
    detection: Detection = "early"
    confirm: bool = False
    limit: int | None = None
    gap_us: int | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def is_summary(self) -> bool:
        """Whether rows are over all matches of a key at a moment, not over one match."""
        return any(
            isinstance(part, Aggregate) for item in self.returns for part in walk(item.expression)
        )

    @property
    def row(self) -> Row:
        """The columns that come out."""
        columns = {key.name: key.type for key in self.keys} | {TS: TIMESTAMP}
        columns |= {item.name: item.type for item in self.returns}
        return columns | {CONFIRMED: BOOL} if self.confirm else columns


@dataclass(frozen=True, slots=True)
class PeriodJoin:
    """Pairs of rows of two plans with equal keys whose periods have a relation asked for.

    `mask` has the relations of `plan.allen` that the period of the left row may have to that of
    the right one. Null keys are equal to nothing; periods that end before they last, or with a
    bound that is null, relate to nothing. With `open_ends`, one without an end goes on: it has the
    relations that it will have whenever it ends. Of kind "left", a left row without a partner
    comes once, beside nulls; "semi" and "anti" are the left rows with and without a partner, each
    once. The two plans share no name; `columns` are those that come out. It stands below a
    `Relational` or another join of periods, nowhere else.
    """

    left: Plan
    right: Plan
    first: RowPeriod
    second: RowPeriod
    keys: tuple[tuple[str, str], ...]
    mask: int
    columns: tuple[str, ...]
    kind: PairKind = "inner"
    open_ends: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        both = {**self.left.row, **self.right.row}
        return {name: both[name] for name in self.columns}


@dataclass(frozen=True, slots=True)
class Relational:
    """Ordinary SQL around our operators: the rest of the query, over their results.

    The text comes in the dialect of each engine that can run it; `inputs` are the names it uses
    for the plans below. `spark_gap` says why Spark cannot run it, if it cannot; `reason` what of it
    our own operators cannot do, if that is one expression.
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


Plan = (
    Scan
    | Filter
    | Project
    | WindowAggregate
    | SlidingAggregate
    | MatchRecognize
    | Situations
    | TemporalPattern
    | PeriodJoin
    | Relational
    | StandingNode
)


def sources_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the plans directly below a node."""
    match plan:
        case Scan():
            return ()
        case PeriodJoin(left=left, right=right):
            return (left, right)
        case Relational(inputs=inputs):
            return tuple(source for _, source in inputs)
        case Filter() | Project() | WindowAggregate() | SlidingAggregate() | MatchRecognize():
            return (plan.source,)
        case Situations() | TemporalPattern():
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
    match plan:
        case Scan():
            return plan
        case PeriodJoin(left=left, right=right):
            return replace(plan, left=change(left), right=change(right))
        case Relational(inputs=inputs):
            return replace(plan, inputs=tuple((name, change(each)) for name, each in inputs))
        case Filter() | Project() | WindowAggregate() | SlidingAggregate() | MatchRecognize():
            return replace(plan, source=change(plan.source))
        case Situations() | TemporalPattern():
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

    match plan:
        case Scan() | PeriodJoin() | Relational():
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
