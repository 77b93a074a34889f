"""Plan nodes of standing queries: relational operators over windows of streams (windows.py).

Joins are in joins.py. The answer at an instant is that of the same query over the
events that are in the windows then. Events of one instant count together: the answer is the one
after all of them.

Columns of a window are called `alias.column`, so that several windows can stand side by side; the
topmost `Project` gives them the names of the SELECT list.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from eventide.errors import PlanError, Span
from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.check import require, require_alike
from eventide.plan.events.timed import ordered_columns
from eventide.plan.expressions import (
    Column,
    Expression,
    Named,
    NamedAggregate,
    OrderKey,
    columns_of,
)
from eventide.plan.nodes import Project
from eventide.plan.render import render, render_computed, render_items, render_order
from eventide.plan.standing.edges import Circumstances, Edge, UpdatePattern, merged, slid
from eventide.plan.standing.update_patterns import nodes_of, pattern_of, windows_of
from eventide.plan.standing.windows import RangeWindow, RowsWindow, Windowed
from eventide.plan.times import format_duration
from eventide.plan.tree import (
    ChangeExpression,
    EdgesBelow,
    Keys,
    Names,
    OverGroups,
    OverOne,
    OverSeveral,
    OverTwo,
    Plan,
    Row,
    Timed,
    Use,
    changed_aggregates,
    changed_items,
    changed_order,
    changed_values,
    columns_named,
    named_columns,
)
from eventide.schema import BOOL, TIMESTAMP, DataType

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
        return (
            (wanted,) * len(self.sources)
            if exact
            else tuple(frozenset(each.row) for each in self.sources)
        )

    @property
    def state_keys(self) -> None:
        """No state."""
        return None

    def keys_below(self, key: Expression) -> Keys:
        """Return the key for each source: rows pass."""
        return (key,) * len(self.sources)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Merge:  # noqa: ARG002 - rows pass
        """Return the node: each row is looked at by itself."""
        return self

    @property
    def comes_with_events(self) -> bool:
        """Whether a row comes with the last of its events: if those below do."""
        return all(each.comes_with_events for each in self.sources)

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the hardest edge of the sources."""
        return merged([below.of(each) for each in self.sources])


@dataclass(frozen=True, slots=True)
class Distinct(OverOne):
    """One row for each different row; nulls are alike."""

    compares_rows = True

    source: Plan

    @property
    def state_keys(self) -> Keys:
        """All columns."""
        return columns_named(self, *self.row)

    def keys_below(self, key: Expression) -> Keys:
        """Return the key: rows pass."""
        return (key,)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Distinct:  # noqa: ARG002 - in rows
        """Return the node: rows of different keys differ."""
        return self

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge of values, each as long as some row has it."""
        rows = below.of(self.source)
        if rows.pattern == UpdatePattern.MONOTONIC:
            return rows
        if rows.strict or below.circumstances.strict_distinct:
            return Edge(UpdatePattern.STRICT, None)
        return Edge(UpdatePattern.WEAK, rows.lifetime_us)


@dataclass(frozen=True, slots=True)
class Difference(OverTwo):
    """EXCEPT ALL: a row that is m times left and n times right is m - n times in the answer."""

    compares_rows = True

    left: Plan
    right: Plan
    span: Span | None = field(default=None, compare=False)

    def check(self) -> None:
        """The sources have the same columns."""
        require_alike(self.left, self.right)

    @property
    def state_keys(self) -> Keys:
        """All columns."""
        return columns_named(self, *self.row)

    def keys_below(self, key: Expression) -> Keys:
        """Return the key for both sources."""
        return key, key

    def edge(self, below: EdgesBelow) -> Edge:
        """Rows may go at any time, and come back."""
        return Edge(UpdatePattern.STRICT, below.of(self.left).lifetime_us)


@dataclass(frozen=True, slots=True)
class GroupAggregate(OverGroups):
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
    def line(self) -> str:
        """Its line in explain."""
        by = f" by {render_items(self.keys)}" if self.keys else ""
        return f"GroupAggregate{by}{render_computed(self.aggregates)}"

    def edge(self, below: EdgesBelow) -> Edge:  # noqa: ARG002 - whatever is below
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

    def edge(self, below: EdgesBelow) -> Edge:
        """Rows may go at any time, and come back."""
        return Edge(UpdatePattern.STRICT, below.of(self.source).lifetime_us)


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

    compares_rows = True
    in_chain = False

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

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Standing | None:  # noqa: ARG002
        """Return the node over rows with the key, which is the last column of its answer."""
        if self.why_together is not None or self.output_window is not None:
            return None
        row = self.source.row
        key, shown = {keys[0]: row[keys[0]]}, {n: k for n, k in row.items() if n[0] != "$"}
        return replace(self, source=Project(self.source, named_columns({**shown, **key})))

    @property
    def why_together(self) -> str | None:
        """Why the answer as a whole has to be in one place, if it has to."""
        if self.report == "rstream" and self.slide_us is None:
            return "RSTREAM without SLIDE repeats the whole answer whenever a part of it changes"
        last = isinstance(self.output_window, RowsWindow)
        return "the last results are the last of all" if last else None

    @property
    def why_whole(self) -> str | None:
        """Why events of any age matter to the answer, whatever its windows hold, if they do."""
        if isinstance(self.output_window, RowsWindow):
            return "the last results may be of any age"
        internal = any(leaf.internal for leaf in windows_of(self))
        if internal and self.report == "current" and self.output_window is None:
            return "results of internal windows stay when their events go"
        first = (node for node in nodes_of(self.source) if isinstance(node, Top))
        if not all(node.source.comes_with_events for node in first):
            return "which of equal rows came first may have been settled at any time"
        return None

    def period_below(self, period: TimeRange) -> TimeRange:
        """Return the instants at which its windows are looked at, or all."""
        if self.why_whole is not None or period.start_us == ALL_TIME.start_us:
            return ALL_TIME
        # What comes or goes at an instant differs from the answer just before.
        clock_us = period.start_us if self.report == "current" else period.start_us - 1
        if self.slide_us is not None:
            clock_us = clock_us // self.slide_us * self.slide_us
        if isinstance(self.output_window, RangeWindow):
            clock_us -= self.output_window.size_us
        return TimeRange.since(clock_us)

    @property
    def state_keys(self) -> Keys | None:
        """All columns, if rows of an instant are compared by value; none if all are together."""
        if self.why_together is not None:
            return ()
        edge = pattern_of(self.source, self.circumstances)
        if self.report in ("istream", "dstream") and edge.strict:
            return columns_named(self, *self.source.row)
        return None

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the key, if it is in the answer."""
        inside = columns_of(key) <= self.source.row.keys() and self.why_together is None
        return (key,) if inside else None

    @property
    def circumstances(self) -> Circumstances:
        """What the edges inside it depend on."""
        return Circumstances.of(self)

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge of the answer."""
        if self.output_window is not None:
            return self.output_window.edge
        edge = below.of(self.source)
        return slid(edge, self.slide_us) if self.restore else edge

    @property
    def standing(self) -> Standing:
        """This one."""
        return self

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
