"""Plan nodes that no room owns: rows of streams, chosen, computed, in order, left to SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eventide.errors import PlanError, Span, UnsupportedError
from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.bind import resolve
from eventide.plan.check import require, require_columns, require_unique
from eventide.plan.events.timed import kept, ordered_columns, shown, time_name
from eventide.plan.expressions import Column, Expression, Named, NamedAggregate
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render, render_items
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.standing.edges import FOREVER, Edge
from eventide.plan.times import format_range
from eventide.plan.tree import (
    CONDITION,
    ChangeExpression,
    ChangePlan,
    EdgesBelow,
    Keys,
    Names,
    OverOne,
    Plan,
    Row,
    Timed,
    below_items,
    changed_items,
    named_columns,
)
from eventide.schema import INT64, SEQ, START_TS, TIMESTAMP, TS, DataType, Schema


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

    is_stream = True

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

    def with_names(self, catalog: Mapping[str, Schema]) -> Scan:
        """Return the scan with the requested fields of its stream, or all if it requests none."""
        if self.written is not None:
            return self
        stream = resolve(self.stream, catalog, span=self.span, what="stream")
        fields = dict(catalog[stream].fields())
        wanted = self.columns or tuple(fields.items())
        names = [resolve(name, fields, span=self.span, what="column") for name, _ in wanted]
        return replace(self, stream=stream, columns=tuple((name, fields[name]) for name in names))

    def check(self) -> None:
        """Every event has a time; rows of something else, such as `$windows`, may have none."""
        require_unique(name for name, _ in self.columns)
        if not self.stream.startswith("$"):
            require_columns(self, self.row, TS)

    def only(self, wanted: Names) -> Scan:
        """Return the scan of fewer columns. `ts` stays."""
        kept = tuple(column for column in self.columns if column[0] in wanted | {TS})
        return replace(self, columns=kept)

    @property
    def line(self) -> str:
        """Its line in explain."""
        names = ", ".join(name for name, _ in self.columns)
        return f"Scan {self.stream} ({names}){format_range(self.time_range)}"

    def timed(self) -> Timed:
        """Return the scan: events have a time and a place in arrival order."""
        time = Column(TS, TIMESTAMP)
        # The events of a derived stream say where they began.
        has_start = self.row.get(START_TS) == TIMESTAMP
        start = Column(START_TS, TIMESTAMP) if has_start else time
        return Timed(self, time, start, (Column(SEQ, INT64),))


@dataclass(frozen=True, slots=True)
class Filter(OverOne):
    """The rows on which `condition` is true, neither false nor null."""

    rows_apart = True

    source: Plan
    condition: Expression

    @property
    def in_order(self) -> bool:
        """Whether rows are in order of time: if those below are."""
        return self.source.in_order

    def with_expressions(self, change: ChangeExpression) -> Filter:
        """Return the node with another condition."""
        return replace(self, condition=change(self.condition, CONDITION))

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"Filter {render(self.condition)}"

    @property
    def state_keys(self) -> None:
        """No state."""
        return None

    @property
    def reach_us(self) -> int:
        """No state."""
        return 0

    @property
    def comes_with_events(self) -> bool:
        """Whether a row comes with the last of its events: if those below do."""
        return self.source.comes_with_events

    def keys_below(self, key: Expression) -> Keys:
        """Return the key: rows pass."""
        return (key,)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Filter:  # noqa: ARG002 - rows pass
        """Return the node: each row is looked at by itself."""
        return self

    def timed(self) -> Timed:
        """Return the rows with the times of those below."""
        below = self.source.timed()
        return replace(below, plan=replace(self, source=below.plan))

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge of the source: rows pass."""
        return below.of(self.source)


@dataclass(frozen=True, slots=True)
class Project(OverOne):
    """The named expressions, computed for every row."""

    rows_apart = True

    passes = False

    source: Plan
    items: tuple[Named, ...]

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {item.name: item.type for item in self.items}

    @property
    def in_order(self) -> bool:
        """Whether rows are in order of time: if those below are, and `ts` is theirs."""
        return self.origin(TS) == TS and self.source.in_order

    def origin(self, name: str) -> str | None:
        """Return the column below that an item repeats, or None if it is computed."""
        for item in self.items:
            if item.name == name and isinstance(item.expression, Column):
                return item.expression.name
        return None

    def with_expressions(self, change: ChangeExpression) -> Project:
        """Return the node with other items."""
        return replace(self, items=changed_items(self.items, change))

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes: all of them."""
        return self.items

    def only(self, wanted: Names) -> Project:
        """Return the node with fewer items, but one."""
        kept = tuple(item for item in self.items if item.name in wanted)
        return replace(self, items=kept or self.items[:1])

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"Project {render_items(self.items)}"

    @property
    def state_keys(self) -> None:
        """No state."""
        return None

    @property
    def reach_us(self) -> int:
        """No state."""
        return 0

    @property
    def comes_with_events(self) -> bool:
        """Whether a row comes with the last of its events: if those below do."""
        return self.source.comes_with_events

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the key over the columns that its items are computed from."""
        return below_items(key, self.items)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Project:
        """Return the node with items for the key and what is carried."""
        return replace(self, items=(*self.items, *named_columns({keys[0]: INT64, **carried})))

    def timed(self) -> Timed:
        """Return the node with items for times and order; named times are those of the query."""
        below = self.source.timed()
        items = [Named(time_name(item.name), item.expression) for item in self.items]
        ts = shown(items, TS, below.ts)
        start = shown(items, START_TS, below.start)
        order = tuple(kept(items, part) for part in below.order)
        named = next(item.expression for item in items if item.name == TS)
        in_time = below.in_time and named == below.ts
        return Timed(Project(below.plan, tuple(items)), ts, start, order, in_time)

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge of the source: rows pass."""
        return below.of(self.source)


@dataclass(frozen=True, slots=True)
class EndRows(OverOne):
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
    def line(self) -> str:
        """Its line in explain."""
        which, order = ("last", ", newest first") if self.last else ("first", "")
        skipped = f" after {self.offset:,} others" if self.offset else ""
        return f"EndRows the {which} {self.count:,}{skipped}{order}"


@dataclass(frozen=True, slots=True)
class DerivedStream(OverOne):
    """The rows of an append-only query as events; `ts` is the instant at which a row is certain.

    Rows come in order of `ts`, then of the columns `order`, then as the source has them. Other
    nodes rely on that order as on the order of a scan.
    """

    rows_apart = True

    is_stream = True
    reads_time = True
    in_chain = False

    source: Plan
    order: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)
    in_time: bool = True
    """Whether `ts` is the instant at which a row is certain, not another time of the query's."""

    def check(self) -> None:
        """Rows have a time, and the columns of their order."""
        require_columns(self, self.row, *self.order)
        require(self.row[TS] == TIMESTAMP, f"{TS} is {self.row[TS]}, not a time")

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the wanted columns and those of the order."""
        return (wanted | {TS, *self.order},)

    @property
    def state_keys(self) -> None:
        """Rows wait for each other, but those of different keys do not need each other."""
        return None

    def keys_below(self, key: Expression) -> Keys:
        """Return the key: rows pass."""
        return (key,)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> DerivedStream:  # noqa: ARG002 - rows pass
        """Return the node: rows of a key stay in their order, whatever is between them."""
        return self

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"DerivedStream in order of {', '.join((TS, *self.order))}"

    def timed(self) -> Timed:
        """Return the node: its rows are events."""
        time = Column(TS, TIMESTAMP)
        has_start = self.row.get(START_TS) == TIMESTAMP
        start = Column(START_TS, TIMESTAMP) if has_start else time
        return Timed(self, time, start, ordered_columns(self, *self.order))

    def edge(self, below: EdgesBelow) -> Edge:  # noqa: ARG002 - whatever is below
        """Events never go."""
        return FOREVER


@dataclass(frozen=True, slots=True)
class Relational(Plan):
    """Ordinary SQL around our operators: the rest of the query, over their results.

    The text is given in the dialect of each engine that can run it; `inputs` are the names it uses
    for the plans below. `spark_gap` says why Spark cannot run it, if it cannot; `reason` is the
    expression that our own operators cannot do, if it is just one.
    """

    compares_rows = True
    in_chain = False

    inputs: tuple[tuple[str, Plan], ...]
    duckdb_sql: str
    spark_sql: str
    spark_gap: UnsupportedError | None = None
    reason: UnsupportedError | None = None

    @property
    def row(self) -> Row:
        """Unknown: the engine that runs the text decides it."""
        return {}

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return tuple(source for _, source in self.inputs)

    def with_children(self, change: ChangePlan) -> Relational:
        """Return the node over changed inputs."""
        return replace(self, inputs=tuple((name, change(each)) for name, each in self.inputs))

    def check(self) -> None:
        """Each input has a name of its own."""
        require_unique(name for name, _ in self.inputs)

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"Relational {self.duckdb_sql}"

    @property
    def labelled(self) -> tuple[tuple[str, Plan], ...]:
        """The inputs with their names."""
        return self.inputs


def scans_of(plan: Plan) -> tuple[Scan, ...]:
    """Return all scans of a plan, left to right."""
    if isinstance(plan, Scan):
        return (plan,)
    return tuple(scan for source in plan.children for scan in scans_of(source))


def stored_streams(plan: Plan) -> set[str]:
    """Return the streams that a plan reads, without rows that are written in the query."""
    return {scan.stream for scan in scans_of(plan) if scan.written is None}


def is_chain(plan: Plan) -> bool:
    """Whether a plan is a chain of operators over one scan: one block, without windows in FROM."""
    while not isinstance(plan, Scan):
        if not plan.in_chain or len(plan.children) != 1:
            return False
        (plan,) = plan.children
    return True


def match_of(plan: Plan) -> MatchRecognize | None:
    """Return the row pattern of a plan over one scan, if it has one."""
    if isinstance(plan, MatchRecognize):
        return plan
    found = (match_of(source) for source in plan.children)
    return next((each for each in found if each is not None), None)


def situations_of(plan: Plan) -> Situations | TemporalPattern | None:
    """Return the node of a plan over one scan that follows situations, if it has one."""
    if isinstance(plan, Situations | TemporalPattern):
        return plan
    found = (situations_of(source) for source in plan.children)
    return next((each for each in found if each is not None), None)


def derived_in(plan: Plan) -> bool:
    """Whether a plan reads the rows of a query as events."""
    return isinstance(plan, DerivedStream) or any(map(derived_in, plan.children))
