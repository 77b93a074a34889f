"""Plan nodes of standing queries: relational operators over windows of streams.

A tuple is in its window from its time `at` until it expires: at <= now < exp. At one instant,
tuples expire before others arrive. The answer at an instant is that of the same query over the
events that are in the windows then. Events of one instant count together: the answer is the one
after all of them.

Columns of a window are called `alias.column`, so that several windows can stand side by side; the
topmost `Project` gives them the names of the SELECT list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from eventide.errors import PlanError, Span
from eventide.plan.bind import resolve
from eventide.plan.check import require, require_alike, require_columns, require_unique
from eventide.plan.events.timed import ordered_columns
from eventide.plan.expressions import (
    Call,
    Column,
    Expression,
    Named,
    NamedAggregate,
    OrderKey,
    columns_of,
)
from eventide.plan.nodes import Scan
from eventide.plan.render import (
    render,
    render_computed,
    render_equal,
    render_items,
    render_order,
)
from eventide.plan.standing.edges import (
    FOREVER,
    Circumstances,
    Edge,
    UpdatePattern,
    joined,
    merged,
    outer,
    slid,
)
from eventide.plan.times import format_duration, format_range, format_timestamp
from eventide.plan.tree import (
    ChangeExpression,
    EdgeOf,
    Keys,
    Names,
    OverKeys,
    OverOne,
    OverSeveral,
    OverTwo,
    Plan,
    Row,
    Timed,
    Use,
    below_items,
    changed_aggregates,
    changed_items,
    changed_order,
    changed_values,
    columns_named,
    compared_below,
    every_column,
)
from eventide.schema import BOOL, TIMESTAMP, TS, DataType, Schema

AT = "at"
EXP = "exp"
SIGN = "sign"
LIVE = "live"
CHANGE_COLUMNS = (AT, EXP, SIGN, LIVE)
"""The columns that changes of an answer have in addition to its own."""
ANSWER_EXP = '"shown"'
"""The column that says until when results of a tuple are in the answer: internal windows do not
end."""


@dataclass(frozen=True, slots=True)
class Unbounded:
    """All events; none expires."""

    @property
    def text(self) -> str:
        """Which events it holds, as text."""
        return "all events"

    def edge(self, slide_us: int | None) -> Edge:  # noqa: ARG002 - none goes in time
        """Return how its events come and go, if times are rounded up to multiples of a slide."""
        return FOREVER


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """`[RANGE t]`: an event is in the window for `size_us` from its time on.

    With a jump the tail of the window moves in steps: an event stays until the first multiple of
    `jump_us` at or after ts + size_us.
    """

    size_us: int
    jump_us: int | None = None

    def __post_init__(self) -> None:
        if self.size_us <= 0 or (self.jump_us is not None and self.jump_us <= 0):
            message = f"the length and the jump of a window must be positive, got {self}"
            raise PlanError(message)

    @property
    def text(self) -> str:
        """Which events it holds, as text."""
        jumps = "" if self.jump_us is None else f" in jumps of {format_duration(self.jump_us)}"
        return f"the last {format_duration(self.size_us)}{jumps}"

    def edge(self, slide_us: int | None) -> Edge:
        """Return how its events come and go, if times are rounded up to multiples of a slide."""
        # Rounding times up to a multiple of the slide gives the same result if they were rounded
        # to a part of it before.
        if self.jump_us is None or (slide_us is not None and slide_us % self.jump_us == 0):
            return slid(Edge(UpdatePattern.WEAKEST, self.size_us, in_order=True), slide_us)
        longest = self.size_us + self.jump_us - 1
        return slid(Edge(UpdatePattern.WEAK, longest, in_order=True), slide_us)


@dataclass(frozen=True, slots=True)
class PeriodWindow:
    """`[TUMBLE t]`: the events of the current period; at each multiple of `period_us` all go."""

    period_us: int

    def __post_init__(self) -> None:
        if self.period_us <= 0:
            message = f"the period of a window must be positive, got {self.period_us} us"
            raise PlanError(message)

    @property
    def text(self) -> str:
        """Which events it holds, as text."""
        return f"this period of {format_duration(self.period_us)}"

    def edge(self, slide_us: int | None) -> Edge:
        """Return how its events come and go, if times are rounded up to multiples of a slide."""
        return slid(Edge(UpdatePattern.WEAK, self.period_us, in_order=True), slide_us)


@dataclass(frozen=True, slots=True)
class SinceWindow:
    """`[SINCE a UNTIL b]`: the events of [since_us, until_us); none expires."""

    since_us: int
    until_us: int | None = None

    def __post_init__(self) -> None:
        if self.until_us is not None and self.until_us <= self.since_us:
            message = "a window has to begin before it ends"
            raise PlanError(message)

    @property
    def text(self) -> str:
        """Which events it holds, as text."""
        end = "" if self.until_us is None else f" until {format_timestamp(self.until_us)}"
        return f"since {format_timestamp(self.since_us)}{end}"

    def edge(self, slide_us: int | None) -> Edge:  # noqa: ARG002 - none goes in time
        """Return how its events come and go, if times are rounded up to multiples of a slide."""
        return FOREVER


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`[ROWS n]`: the last `count` events in order of (ts, _seq), of each key if there are keys.

    `keys` are columns of the scan. With one row for each key it is a relation: an event replaces
    the one before, and if its column `deleted` is true it only removes it.
    """

    count: int
    keys: tuple[str, ...] = ()
    deleted: str | None = None

    def __post_init__(self) -> None:
        if self.count <= 0:
            message = f"a window has at least one row, got {self.count}"
            raise PlanError(message)
        if self.deleted is not None and self.count != 1:
            message = "only a window with one row for each key has deletions"
            raise PlanError(message)

    @property
    def text(self) -> str:
        """Which events it holds, as text."""
        if self.keys and self.count == 1:
            gone = "" if self.deleted is None else f" unless {self.deleted}"
            return f"the last row{_of_each(self.keys)}{gone}"
        return f"the last {self.count:,} row{'' if self.count == 1 else 's'}{_of_each(self.keys)}"

    def edge(self, slide_us: int | None) -> Edge:  # noqa: ARG002 - none goes in time
        """Return how its events come and go, if times are rounded up to multiples of a slide."""
        return Edge(UpdatePattern.STRICT, None)


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """`[SESSION gap]`: the events of the current session, of each key if there are keys.

    A session ends `gap_us` after its last event, unless another event comes before; then all its
    events go.
    """

    gap_us: int
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gap_us <= 0:
            message = f"the gap of a session must be positive, got {self.gap_us} us"
            raise PlanError(message)

    @property
    def text(self) -> str:
        """Which events it holds, as text."""
        gap = format_duration(self.gap_us)
        return f"the session{_of_each(self.keys)} with gaps below {gap}"

    def edge(self, slide_us: int | None) -> Edge:  # noqa: ARG002 - none goes in time
        """Return how its events come and go, if times are rounded up to multiples of a slide."""
        return Edge(UpdatePattern.STRICT, None)


def _of_each(keys: tuple[str, ...]) -> str:
    return f" of each {', '.join(keys)}" if keys else ""


StreamWindow = Unbounded | RangeWindow | PeriodWindow | SinceWindow | RowsWindow | SessionWindow


@dataclass(frozen=True, slots=True)
class Windowed(OverOne):
    """The events in the window over a stream; the source is a scan.

    An `internal` window only bounds the state: results stay when its events expire.
    """

    source: Plan
    alias: str
    window: StreamWindow
    internal: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {f"{self.alias}.{name}": kind for name, kind in self.source.row.items()}

    def with_names(self, catalog: Mapping[str, Schema]) -> Windowed:  # noqa: ARG002 - its source's
        """Return the window with its columns spelled as in the stream."""
        window, row = self.window, self.source.row
        if not isinstance(window, RowsWindow | SessionWindow):
            return self
        keys = tuple(resolve(name, row, span=self.span, what="column") for name in window.keys)
        window = replace(window, keys=keys)
        if isinstance(window, RowsWindow) and window.deleted is not None:
            deleted = resolve(window.deleted, row, span=self.span, what="column")
            window = replace(window, deleted=deleted)
        return replace(self, window=window)

    def check(self) -> None:
        """A window is over a stream that has the columns it names."""
        row, window = self.source.row, self.window
        require(self.source.is_stream, "a window over something that is no stream")
        if isinstance(window, RowsWindow | SessionWindow):
            require_columns(self, row, *window.keys)
        if isinstance(window, RowsWindow) and window.deleted is not None:
            require_columns(self, row, window.deleted)
            require(row[window.deleted] == BOOL, f"{window.deleted} is no condition")

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the wanted columns as the stream calls them, the time, and the window's own."""
        below = {name for name in self.source.row if f"{self.alias}.{name}" in wanted}
        if isinstance(self.window, RowsWindow | SessionWindow):
            below |= {*self.window.keys}
        if isinstance(self.window, RowsWindow) and self.window.deleted is not None:
            below.add(self.window.deleted)
        return (frozenset(below | {TS}),)

    @property
    def line(self) -> str:
        """Its line in explain."""
        scan = self.source
        stream, period = "", ""
        if isinstance(scan, Scan):
            stream, period = scan.stream, format_range(scan.time_range)
        alias = "" if self.alias == stream else f" AS {self.alias}"
        internal = ", internal" if self.internal else ""
        columns = ", ".join(scan.row)
        return f"Windowed {stream}{alias}, {self.window.text}{internal} ({columns}){period}"

    @property
    def labelled(self) -> tuple[tuple[str, Plan], ...]:
        """The source, unless the line names it."""
        return () if isinstance(self.source, Scan) else (("", self.source),)

    @property
    def state_keys(self) -> Keys | None:
        """The keys of a window that has any."""
        if not isinstance(self.window, RowsWindow | SessionWindow):
            return None
        return columns_named(self, *(f"{self.alias}.{key}" for key in self.window.keys))

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the key over the columns of the stream; for a window with keys, over those."""
        window, names = self.window, tuple(self.source.row)
        if isinstance(window, RowsWindow | SessionWindow):
            names = window.keys
        columns = columns_named(self.source, *names)
        return below_items(key, (Named(f"{self.alias}.{each.name}", each) for each in columns))

    @property
    def time_use(self) -> str | None:
        """The part of the query that needs times."""
        timeless = isinstance(self.window, RowsWindow | Unbounded)
        return None if timeless else "a window of time"

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - events stay
        """Return how events leave the window."""
        return self.window.edge(circumstances.slide_us)

    @property
    def changes(self) -> bool:
        """Whether its rows may go again: they leave the window."""
        return True


@dataclass(frozen=True, slots=True)
class Merge(OverSeveral):
    """UNION ALL: the rows of all sources, which have the same columns."""

    sources: tuple[Plan, ...]

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.sources[0].row

    def check(self) -> None:
        """The sources have the same columns."""
        require_alike(*self.sources)

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the wanted columns if each source can do without all others, else all."""
        exact = all(each.only(wanted).row.keys() <= wanted for each in self.sources)
        return (wanted,) * len(self.sources) if exact else every_column(self)

    @property
    def state_keys(self) -> None:
        """No state."""
        return None

    def keys_below(self, key: Expression) -> Keys:
        """Return the key for each source: rows pass."""
        return (key,) * len(self.sources)

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """Return the hardest edge of the sources."""
        return merged([of(each) for each in self.sources])


@dataclass(frozen=True, slots=True)
class WindowJoin(OverSeveral):
    """Combinations of one row of each source with equal keys on which the condition is true.

    `keys[i]` are the key expressions of source i, over its own columns; all sources have as many,
    of the same types. Null is equal to nothing. The condition is over the columns of all sources,
    whose names differ.
    """

    sources: tuple[Plan, ...]
    keys: tuple[tuple[Expression, ...], ...]
    condition: Expression | None = None
    band: Band | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {name: kind for source in self.sources for name, kind in source.row.items()}

    def with_expressions(self, change: ChangeExpression) -> WindowJoin:
        """Return the node with other keys and another condition."""
        keys, condition, band = _joined(self, change)
        return replace(self, keys=keys, condition=condition, band=band)

    @property
    def compared(self) -> tuple[Keys, ...]:
        """The keys of each source."""
        return self.keys

    def with_compared(self, keys: tuple[Keys, ...]) -> WindowJoin:
        """Return the node with other keys."""
        return replace(self, keys=keys)

    def check(self) -> None:
        """Check the sources beside each other."""
        _check_join(self)

    @property
    def keeps_rows(self) -> bool:
        """Rows wait for partners."""
        return True

    @property
    def line(self) -> str:
        """Its line in explain."""
        return _join_line(self, "WindowJoin")

    @property
    def state_keys(self) -> Keys:
        """The keys of the first source."""
        return self.compared[0]

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the keys that are compared."""
        return compared_below(key, self.compared)

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """Return the edge of combinations."""
        return joined([of(each) for each in self.sources])


@dataclass(frozen=True, slots=True)
class Band:
    """Two sources join only where |left - right| <= width: numbers, or times in microseconds.

    It is only a hint where to look: the condition of the join contains the same restriction.
    """

    left: Expression
    right: Expression
    width: int | float

    def changed(self, change: ChangeExpression) -> Band:
        """Return the band with other expressions."""
        left, right = change(self.left, Use(child=0)), change(self.right, Use(child=1))
        return replace(self, left=left, right=right)


def _joined(
    join: WindowJoin | OuterJoin, change: ChangeExpression
) -> tuple[tuple[Keys, ...], Expression | None, Band | None]:
    """Return the changed expressions of a join."""
    condition = join.condition and change(join.condition, Use("condition", child=None))
    band = join.band and join.band.changed(change)
    return _changed_keys(join.keys, change), condition, band


def _changed_keys(keys: tuple[Keys, ...], change: ChangeExpression) -> tuple[Keys, ...]:
    """Return the changed keys of each source."""
    return tuple(changed_values(own, change, Use(child=child)) for child, own in enumerate(keys))


def _join_line(join: WindowJoin | OuterJoin, kind: str) -> str:
    condition = "" if join.condition is None else f" where {render(join.condition)}"
    keys = render_equal(join.keys)
    kind = kind if keys or condition else f"{kind} of all with all"
    band = ""
    if join.band is not None:
        # Where there is no key, the nearest are looked for in order.
        band = f", {render(join.band.left)} near {render(join.band.right)}"
    return f"{kind}{keys}{condition}{band}"


def _check_join(join: WindowJoin | OuterJoin) -> None:
    count = len(join.sources)
    require(count >= 2 and len(join.keys) == count, "a join of one source")
    require_unique(name for source in join.sources for name in source.row)
    require(join.band is None or count == 2, "a band between more than two sources")


@dataclass(frozen=True, slots=True)
class OuterJoin(OverSeveral):
    """LEFT, RIGHT and FULL JOIN: a join of two sources, and rows without a partner beside nulls.

    `keeps` names the sources whose rows are kept. The rest is as in `WindowJoin`; the condition has
    only what needs two rows together.
    """

    sources: tuple[Plan, ...]
    keys: tuple[tuple[Expression, ...], ...]
    keeps: tuple[bool, bool]
    condition: Expression | None = None
    band: Band | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {name: kind for source in self.sources for name, kind in source.row.items()}

    @property
    def word(self) -> str:
        """Its name in text: LEFT, RIGHT or FULL."""
        return {(True, False): "LEFT", (False, True): "RIGHT"}.get(self.keeps, "FULL")

    def with_expressions(self, change: ChangeExpression) -> OuterJoin:
        """Return the node with other keys and another condition."""
        keys, condition, band = _joined(self, change)
        return replace(self, keys=keys, condition=condition, band=band)

    @property
    def compared(self) -> tuple[Keys, ...]:
        """The keys of each source."""
        return self.keys

    def with_compared(self, keys: tuple[Keys, ...]) -> OuterJoin:
        """Return the node with other keys."""
        return replace(self, keys=keys)

    def check(self) -> None:
        """Check the sources beside each other."""
        _check_join(self)

    @property
    def keeps_rows(self) -> bool:
        """Rows wait for partners."""
        return True

    @property
    def line(self) -> str:
        """Its line in explain."""
        return _join_line(self, f"OuterJoin {self.word.lower()}")

    @property
    def state_keys(self) -> Keys:
        """The keys as they are in its rows, also in rows without a partner."""
        left, right = self.keys
        if self.word != "FULL":
            return left if self.word == "LEFT" else right
        both = zip(left, right, strict=True)
        return tuple(Call("coalesce", pair, pair[0].type) for pair in both)

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the keys that are compared."""
        kept = self.state_keys
        return tuple(own[kept.index(key)] for own in self.keys) if key in kept else None

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """Return the edge of rows that may lose their nulls."""
        kept = zip(self.sources, self.keeps, strict=True)
        return outer([of(each) for each, keeps in kept if keeps])


@dataclass(frozen=True, slots=True)
class AsOfJoin(OverTwo):
    """Each row of the left source with the newest event of the right one at that row's time.

    The right source has all events of a stream (`Unbounded`), or those of a relation that is not
    retroactive (`RowsWindow` with one row for each key). `right_time` is not after `left_time`, or
    before it if `strict`. Later events on the right change nothing. With `outer`, a row without a
    partner comes beside nulls.
    """

    left: Plan
    right: Plan
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    strict: bool = False
    outer: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {**self.left.row, **self.right.row}

    def with_expressions(self, change: ChangeExpression) -> AsOfJoin:
        """Return the node with other keys."""
        return self.with_compared(_changed_keys(self.compared, change))

    @property
    def compared(self) -> tuple[Keys, ...]:
        """The keys of each source."""
        return (self.left_keys, self.right_keys)

    def with_compared(self, keys: tuple[Keys, ...]) -> AsOfJoin:
        """Return the node with other keys."""
        left, right = keys
        return replace(self, left_keys=left, right_keys=right)

    def check(self) -> None:
        """The sources share no name."""
        require_unique([*self.left.row, *self.right.row])

    @property
    def line(self) -> str:
        """Its line in explain."""
        kind = "AsOfJoin outer" if self.outer else "AsOfJoin"
        newest = "before" if self.strict else "until"
        return f"{kind}{render_equal(self.compared)}, the newest {newest} then"

    @property
    def state_keys(self) -> Keys:
        """The keys of the first source."""
        return self.compared[0]

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the keys that are compared."""
        return compared_below(key, self.compared)

    @property
    def time_use(self) -> str:
        """The part of the query that needs times."""
        return "ASOF JOIN"

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """Return the edge on the left: each row keeps its partner."""
        return of(self.left)


@dataclass(frozen=True, slots=True)
class Distinct(OverOne):
    """One row for each different row; nulls are alike."""

    source: Plan

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.source.row

    def needed(self, wanted: Names) -> tuple[Names, ...]:  # noqa: ARG002 - whatever is wanted
        """Return all columns."""
        return every_column(self)

    @property
    def state_keys(self) -> Keys:
        """All columns."""
        return columns_named(self, *self.row)

    def keys_below(self, key: Expression) -> Keys:
        """Return the key: rows pass."""
        return (key,)

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:
        """Return the edge of values, each as long as some row has it."""
        below = of(self.source)
        if below.pattern == UpdatePattern.MONOTONIC:
            return below
        if below.strict or circumstances.strict_distinct:
            return Edge(UpdatePattern.STRICT, None)
        return Edge(UpdatePattern.WEAK, below.lifetime_us)


@dataclass(frozen=True, slots=True)
class Difference(OverTwo):
    """EXCEPT ALL: a row that is m times left and n times right is m - n times in the answer."""

    left: Plan
    right: Plan
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.left.row

    def check(self) -> None:
        """The sources have the same columns."""
        require_alike(self.left, self.right)

    def needed(self, wanted: Names) -> tuple[Names, ...]:  # noqa: ARG002 - whatever is wanted
        """Return all columns."""
        return every_column(self)

    @property
    def state_keys(self) -> Keys:
        """All columns."""
        return columns_named(self, *self.row)

    def keys_below(self, key: Expression) -> Keys:
        """Return the key for both sources."""
        return key, key

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """Rows may go at any time, and come back."""
        return Edge(UpdatePattern.STRICT, of(self.left).lifetime_us)


@dataclass(frozen=True, slots=True)
class Existence(OverTwo):
    """The left rows for which the right source has a row with equal keys; none, if `negated`.

    Null is equal to nothing: EXISTS and NOT EXISTS.
    """

    left: Plan
    right: Plan
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    negated: bool
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.left.row

    def with_expressions(self, change: ChangeExpression) -> Existence:
        """Return the node with other keys."""
        return self.with_compared(_changed_keys(self.compared, change))

    @property
    def compared(self) -> tuple[Keys, ...]:
        """The keys of each source."""
        return (self.left_keys, self.right_keys)

    def with_compared(self, keys: tuple[Keys, ...]) -> Existence:
        """Return the node with other keys."""
        left, right = keys
        return replace(self, left_keys=left, right_keys=right)

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the wanted columns and the keys of the left rows, but the keys of the right."""
        left, right = self.read
        return wanted | left, right

    @property
    def keeps_rows(self) -> bool:
        """Rows wait for partners."""
        return True

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"{'NotExists' if self.negated else 'Exists'}{render_equal(self.compared)}"

    @property
    def state_keys(self) -> Keys:
        """The keys of the first source."""
        return self.compared[0]

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the keys that are compared."""
        return compared_below(key, self.compared)

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """Rows may go at any time, and come back."""
        return Edge(UpdatePattern.STRICT, of(self.left).lifetime_us)


@dataclass(frozen=True, slots=True)
class GroupAggregate(OverKeys):
    """One row for each key that has a row: keys and aggregates. Null is a key like any other.

    Without keys there is one row, and none while the source is empty.
    """

    source: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        columns = {key.name: key.type for key in self.keys}
        return columns | {item.name: item.aggregate.type for item in self.aggregates}

    def with_expressions(self, change: ChangeExpression) -> GroupAggregate:
        """Return the node with other keys and aggregates."""
        aggregates = changed_aggregates(self.aggregates, change, Use("aging aggregate"))
        return replace(self, keys=changed_items(self.keys, change), aggregates=aggregates)

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes: keys and aggregates."""
        return (*self.keys, *self.aggregates)

    def needed(self, wanted: Names) -> tuple[Names, ...]:  # noqa: ARG002 - whatever is wanted
        """Return the columns that expressions read."""
        return self.read

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f" by {render_items(self.keys)}" if self.keys else ""
        return f"GroupAggregate{by}{render_computed(self.aggregates)}"

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """A value stays until the next one replaces it, also where no row goes."""
        return Edge(UpdatePattern.STRICT, None)


@dataclass(frozen=True, slots=True)
class Top(OverOne):
    """ORDER BY … LIMIT n: the first `count` rows. Of equal ones, those that came first.

    With keys, the first `count` rows of each key. Among equal rows of one instant the choice is
    arbitrary, but the same on every engine.
    """

    source: Plan
    order: tuple[OrderKey, ...]
    count: int
    span: Span | None = field(default=None, compare=False)
    keys: tuple[Expression, ...] = ()

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return self.source.row

    def with_expressions(self, change: ChangeExpression) -> Top:
        """Return the node with another order and other keys."""
        order, keys = changed_order(self.order, change), changed_values(self.keys, change)
        return replace(self, order=order, keys=keys)

    def check(self) -> None:
        """There are rows to choose, and an order."""
        require(bool(self.order) and self.count > 0, "the first rows in no order")

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f" by {', '.join(map(render, self.keys))}" if self.keys else ""
        return f"Top {self.count:,}{by} in order of {render_order(self.order)}"

    @property
    def state_keys(self) -> Keys:
        """Its keys."""
        return self.keys

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the key, if it is one of its own."""
        return (key,) if key in self.keys else None

    def edge(self, of: EdgeOf, circumstances: Circumstances) -> Edge:  # noqa: ARG002 - for windows
        """Rows may go at any time, and come back."""
        return Edge(UpdatePattern.STRICT, of(self.source).lifetime_us)


Report = Choice["current", "istream", "dstream", "rstream"]


@dataclass(frozen=True, slots=True)
class Standing(OverOne):
    """A standing query: which report of its answer is wanted, and when.

    current   the answer itself; live, its changes
    istream   each row with the instant at which it came into the answer, `at`
    dstream   each row with the instant at which it left
    rstream   the whole answer at every refresh, or without `slide_us` at every instant at which
              something changed

    With `slide_us` the answer is that of the last multiple of it. Rows that came and went between
    two refreshes are not seen; with `restore` they are reported at the next one. `output_window` is
    over the istream: the answer is the last results, even if they are no longer in the windows.
    """

    source: Plan
    report: Report = "current"
    slide_us: int | None = None
    restore: bool = False
    output_window: RangeWindow | RowsWindow | None = None
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.slide_us is not None and self.slide_us <= 0:
            message = f"SLIDE must be positive, got {self.slide_us} us"
            raise PlanError(message)
        if self.restore and (self.slide_us is None or self.report in ("current", "dstream")):
            message = "only ISTREAM and RSTREAM with SLIDE have anything to restore"
            raise PlanError(message)

    @property
    def row(self) -> Row:
        """The columns of the answer over history."""
        return {**self.reported, **self.source.row}

    @property
    def changes(self) -> bool:
        """Whether its rows may go again: those of an answer, but not what is reported of it."""
        return self.report == "current"

    @property
    def reported(self) -> dict[str, DataType]:
        """The columns in front of those of the answer."""
        if self.report == "current":
            return {}
        added = {AT: TIMESTAMP}
        return added | {LIVE: BOOL} if self.report == "rstream" and self.restore else added

    def needed(self, wanted: Names) -> tuple[Names, ...]:  # noqa: ARG002 - whatever is wanted
        """Return all columns."""
        return every_column(self)

    @property
    def line(self) -> str:
        """Its line in explain."""
        parts = [] if self.report == "current" else [self.report.upper()]
        if self.restore:
            parts.append("RESTORE")
        if self.output_window is not None:
            parts.append(f"the results of {self.output_window.text}")
        if self.slide_us is not None:
            every = format_duration(self.slide_us)
            parts.append(f"every {every}{_as_if_tumbling(self, self.slide_us, every)}")
        return " ".join(["Standing", *parts])

    @property
    def why_together(self) -> str | None:
        """Why the answer as a whole has to be in one place, if it has to."""
        if self.report == "rstream" and self.slide_us is None:
            return "RSTREAM without SLIDE repeats the whole answer whenever a part of it changes"
        last = isinstance(self.output_window, RowsWindow)
        return "the last results are the last of all" if last else None

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the key, if it is in the answer."""
        inside = columns_of(key) <= self.source.row.keys() and self.why_together is None
        return (key,) if inside else None

    @property
    def time_use(self) -> str | None:
        """The part of the query that needs times."""
        if self.slide_us is not None:
            return "SLIDE"
        return None if self.report == "current" else self.report.upper()

    def timed(self) -> Timed:
        """Return the node: rows of an answer have no order but that of their values."""
        at = Column(AT, TIMESTAMP)
        return Timed(self, at, at, ordered_columns(self, *self.source.row))


def _as_if_tumbling(node: Plan, slide_us: int, every: str) -> str:
    """Say what a window as long as its slide holds: not the same events as TUMBLE."""
    if isinstance(node, Windowed):
        alike = node.window == RangeWindow(slide_us)
        return f", at e of the events in (e - {every}, e]" if alike else ""
    found = (_as_if_tumbling(each, slide_us, every) for each in node.children)
    return next(filter(None, found), "")


def standing_of(plan: Plan) -> Standing | None:
    """Return the highest standing query of a plan, if it has one."""
    if isinstance(plan, Standing):
        return plan
    found = (standing_of(source) for source in plan.children)
    return next((each for each in found if each is not None), None)
