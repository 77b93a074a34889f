"""The node of many time windows over the same rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.plan.check import require_columns, require_unique
from eventide.plan.events.timed import ordered_columns
from eventide.plan.expressions import Named, NamedAggregate
from eventide.plan.render import render_computed, render_items
from eventide.plan.sharing.query_windows import QueryWindows
from eventide.plan.standing.nodes import AT, EXP
from eventide.plan.tree import (
    Names,
    OverGroups,
    Plan,
    Row,
    Timed,
    columns_named,
)
from eventide.plan.windows.nodes import WINDOW_END, WINDOW_START
from eventide.schema import INT64, QUERY_NUMBER, SEQ, TIMESTAMP, TS


@dataclass(frozen=True, slots=True)
class ManyWindows(OverGroups):
    """For each query one row for each of its windows and key: its number, bounds, keys, aggregates.

    The queries differ in their windows, and in which events they count, which are in a table that
    changes while events flow. The aggregates are those of all of them. Events are numbered by
    `_seq`: a query counts those from the number on that its row has.

    If they are `refreshes`, a window is that of a standing query, (at - size, at]; the row says
    when the next one is, `exp`, instead of where the window begins.
    """

    reads_time = True

    source: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    table: QueryWindows = field(default_factory=QueryWindows, compare=False, repr=False)
    refreshes: bool = False

    @property
    def bounds(self) -> tuple[str, str]:
        """The columns with the bounds of a window, or of the time until the next refresh."""
        return (AT, EXP) if self.refreshes else (WINDOW_START, WINDOW_END)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {
            QUERY_NUMBER: INT64,
            **dict.fromkeys(self.bounds, TIMESTAMP),
            **{key.name: key.type for key in self.keys},
            **{item.name: item.aggregate.type for item in self.aggregates},
        }

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the columns of the source that are read, and what says when an event came."""
        return tuple(each | {SEQ} for each in OverGroups.needed(self, wanted))

    def check(self) -> None:
        """No column has the name of another, and events have times and numbers."""
        require_unique([QUERY_NUMBER, *self.bounds, *(each.name for each in self.computed)])
        require_columns(self, self.source.row, TS, SEQ)

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f"by {render_items(self.keys)}, " if self.keys else ""
        return f"ManyWindows {by}of many queries{render_computed(self.aggregates)}"

    @property
    def time_use(self) -> str:
        """The part of the query that needs times."""
        return "a window of time"

    def timed(self) -> Timed:
        """Return the node: a window is certain when it ends."""
        names = (key.name for key in self.keys)
        start, end = columns_named(self, *self.bounds)
        order = ordered_columns(self, QUERY_NUMBER, start.name, *names)
        return Timed(self, start if self.refreshes else end, start, order)
