"""Plan nodes of windows: aggregates over periods, numbers of events and frames, ranks of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from eventide.errors import PlanError
from eventide.plan.check import require_unique
from eventide.plan.events.timed import ordered_columns
from eventide.plan.expressions import (
    Column,
    Expression,
    Frame,
    Named,
    NamedAggregate,
    OrderKey,
    RangeFrame,
    RowsFrame,
)
from eventide.plan.render import render, render_computed, render_items, render_order, render_over
from eventide.plan.times import format_duration
from eventide.plan.tree import (
    VALUE,
    ChangeExpression,
    Keys,
    OverGroups,
    OverOne,
    Plan,
    Row,
    Timed,
    changed_aggregates,
    changed_order,
    changed_values,
    columns_named,
    replaced,
)
from eventide.schema import INT64, TIMESTAMP

WINDOW_START = "window_start"
WINDOW_END = "window_end"
Rank = Literal["row_number", "rank", "dense_rank"]
CalendarUnit = Literal["week", "month", "quarter", "year", "all"]


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

    @property
    def text(self) -> str:
        """Which windows there are, as text."""
        size, slide = format_duration(self.size_us), format_duration(self.slide_us)
        return f"tumbling {size}" if self.is_tumbling else f"hopping {size} every {slide}"


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The events i·slide … i·slide + size - 1 of a key, for every i; they are numbered from 0."""

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

    @property
    def text(self) -> str:
        """Which windows there are, as text."""
        size = f"{self.size:,} row{'' if self.size == 1 else 's'}"
        return f"tumbling {size}" if self.is_tumbling else f"hopping {size} every {self.slide:,}"


@dataclass(frozen=True, slots=True)
class Sessions:
    """Events of a key that follow one another with less than a gap between them."""

    gap_us: int

    def __post_init__(self) -> None:
        if self.gap_us <= 0:
            message = f"the gap between sessions must be positive, got {self}"
            raise PlanError(message)

    @property
    def text(self) -> str:
        """Which windows there are, as text."""
        return f"sessions with a gap of {format_duration(self.gap_us)}"


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    """The weeks (from Monday on), months, quarters or years in UTC, or all of time as one window.

    Weeks to years come from the index of a stored stream; no operator computes them from events.
    """

    unit: CalendarUnit

    @property
    def text(self) -> str:
        """Which windows there are, as text."""
        return "over all of time" if self.unit == "all" else f"by {self.unit}"


@dataclass(frozen=True, slots=True)
class WindowAggregate(OverGroups):
    """One row for each window and key: keys, window bounds, aggregates.

    Windows of time are those with an event, [start, end); windows by count are the full ones, from
    the time of their first event to that of their last. A session is [first, last + gap). All of
    time is a window also if it has no event.
    """

    reads_time = True

    source: Plan
    keys: tuple[Named, ...]
    window: Window | CountWindow | Sessions | CalendarWindow
    aggregates: tuple[NamedAggregate, ...]

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {
            **{key.name: key.type for key in self.keys},
            WINDOW_START: TIMESTAMP,
            WINDOW_END: TIMESTAMP,
            **{item.name: item.aggregate.type for item in self.aggregates},
        }

    @property
    def reach_us(self) -> int | None:
        """How long a window of time lasts."""
        return self.window.size_us if isinstance(self.window, Window) else None

    def check(self) -> None:
        """No key or aggregate has the name of a bound."""
        require_unique([*(each.name for each in self.computed), WINDOW_START, WINDOW_END])

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f"by {render_items(self.keys)}, " if self.keys else ""
        return f"WindowAggregate {by}{self.window.text}{render_computed(self.aggregates)}"

    @property
    def time_use(self) -> str | None:
        """The part of the query that needs times."""
        return None if isinstance(self.window, CountWindow) else "a window of time"

    def timed(self) -> Timed:
        """Return the node: a window is certain when it ends."""
        order = ordered_columns(self, WINDOW_START, *(key.name for key in self.keys))
        start, end = columns_named(self, WINDOW_START, WINDOW_END)
        return Timed(self, end, start, order)


class BesideRows(OverOne):
    """A node whose rows pass, each with something computed from rows of the same key."""

    __slots__ = ()
    reads_time = True
    keys: Keys

    @property
    def state_keys(self) -> Keys:
        """Its keys."""
        return self.keys

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the key, if it is one of its own."""
        return (key,) if key in self.keys else None

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Plan:  # noqa: ARG002 - rows pass
        """Return the node with one more key."""
        return replaced(self, keys=(*self.keys, Column(keys[0], INT64)))


@dataclass(frozen=True, slots=True)
class SlidingAggregate(BesideRows):
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
        """The columns of the output."""
        added = {item.name: item.aggregate.type for item in self.aggregates}
        return {**self.source.row, **added}

    @property
    def in_order(self) -> bool:
        """Whether rows are in order of time: if those below are."""
        return self.source.in_order

    def with_expressions(self, change: ChangeExpression) -> SlidingAggregate:
        """Return the node with other keys and aggregates."""
        keys = changed_values(self.keys, change)
        return replace(self, keys=keys, aggregates=changed_aggregates(self.aggregates, change))

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes: aggregates."""
        return self.aggregates

    def check(self) -> None:
        """No aggregate has the name of one of their columns."""
        require_unique([*self.source.row, *(item.name for item in self.aggregates)])

    @property
    def line(self) -> str:
        """Its line in explain."""
        over = render_over(self.keys, self.frame)
        return f"SlidingAggregate {over}{render_computed(self.aggregates)}"

    @property
    def reach_us(self) -> int | None:
        """How far a frame of time reaches."""
        return self.frame.preceding_us if isinstance(self.frame, RangeFrame) else None

    @property
    def time_use(self) -> str | None:
        """The part of the query that needs times."""
        return "a frame of time" if isinstance(self.frame, RangeFrame) else None

    def timed(self) -> Timed:
        """Return the rows with the times of those below."""
        below = self.source.timed()
        return replace(below, plan=replace(self, source=below.plan))


@dataclass(frozen=True, slots=True)
class WindowRanks(BesideRows):
    """The rows of complete windows, with their ranks in an order among those of the same key.

    All rows of a key are known at the instant `end`, which is the same for each of them: the end of
    the window that the keys name. Rows that are equal in the order are as their events came.
    """

    source: Plan
    keys: tuple[Expression, ...]
    order: tuple[OrderKey, ...]
    end: Expression
    ranks: tuple[tuple[str, Rank], ...]

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {**self.source.row, **dict.fromkeys((name for name, _ in self.ranks), INT64)}

    def with_expressions(self, change: ChangeExpression) -> WindowRanks:
        """Return the node with other keys, another order and another end."""
        keys, order = changed_values(self.keys, change), changed_order(self.order, change)
        return replace(self, keys=keys, order=order, end=change(self.end, VALUE))

    def check(self) -> None:
        """No rank has the name of one of their columns."""
        require_unique([*self.source.row, *(name for name, _ in self.ranks)])

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f"by {', '.join(map(render, self.keys))}"
        ranks = ", ".join(f"{rank}() AS {name}" for name, rank in self.ranks)
        return f"WindowRanks {by}, in order of {render_order(self.order)}: {ranks}"

    @property
    def time_use(self) -> str | None:
        """The part of the query that needs times."""
        return "a window of time"

    def timed(self) -> Timed:
        """Return the rows with the order of those below; each is certain when its window ends."""
        below = self.source.timed()
        return replace(below, plan=replace(self, source=below.plan), ts=self.end)
