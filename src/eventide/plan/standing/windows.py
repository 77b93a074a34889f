"""Windows in brackets: which events of a stream a standing query sees at an instant.

A tuple is in its window from its time `at` until it expires: at <= now < exp. At one instant,
tuples expire before others arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from eventide.errors import PlanError, Span
from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.bind import resolve
from eventide.plan.check import require, require_columns
from eventide.plan.expressions import Column, Expression, Named, substituted
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.standing.edges import FOREVER, Edge, UpdatePattern, slid
from eventide.plan.times import format_duration, format_range, format_timestamp
from eventide.plan.tree import (
    EdgesBelow,
    Keys,
    Names,
    OverOne,
    Plan,
    Row,
    below_items,
    columns_named,
    named_columns,
)
from eventide.schema import BOOL, INT64, TS, Schema


@dataclass(frozen=True, slots=True)
class Unbounded:
    """All events; none expires."""

    edge: ClassVar[Edge] = FOREVER

    @property
    def text(self) -> str:
        """Which events it holds, as text."""
        return "all events"


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

    @property
    def edge(self) -> Edge:
        """How its events come and go, if no times are rounded."""
        if self.jump_us is None:
            return Edge(UpdatePattern.WEAKEST, self.size_us, in_order=True)
        return Edge(UpdatePattern.WEAK, self.size_us + self.jump_us - 1, in_order=True)


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

    @property
    def edge(self) -> Edge:
        """How its events come and go, if no times are rounded."""
        return Edge(UpdatePattern.WEAK, self.period_us, in_order=True)


@dataclass(frozen=True, slots=True)
class SinceWindow:
    """`[SINCE a UNTIL b]`: the events of [since_us, until_us); none expires."""

    edge: ClassVar[Edge] = FOREVER

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


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`[ROWS n]`: the last `count` events in order of (ts, _seq), of each key if there are keys.

    `keys` are columns of the scan. With one row for each key it is a relation: an event replaces
    the one before, and if its column `deleted` is true it only removes it.
    """

    edge: ClassVar[Edge] = Edge(UpdatePattern.STRICT, None)

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


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """`[SESSION gap]`: the events of the current session, of each key if there are keys.

    A session ends `gap_us` after its last event, unless another event comes before; then all its
    events go.
    """

    edge: ClassVar[Edge] = Edge(UpdatePattern.STRICT, None)

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


def _of_each(keys: tuple[str, ...]) -> str:
    return f" of each {', '.join(keys)}" if keys else ""


StreamWindow = Unbounded | RangeWindow | PeriodWindow | SinceWindow | RowsWindow | SessionWindow


def window_edge(window: StreamWindow, slide_us: int | None) -> Edge:
    """Return how the events of a window come and go, at multiples of a slide if there is one."""
    if isinstance(window, RangeWindow) and window.jump_us and slide_us:
        # Rounding up to a multiple of the slide gives the same if times were rounded to a part
        # of it before.
        window = RangeWindow(window.size_us) if slide_us % window.jump_us == 0 else window
    return slid(window.edge, slide_us)


def held_range(window: StreamWindow, now_us: int) -> TimeRange:
    """Return a period outside of which a window holds no event at an instant, nor later."""
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            tail_us = now_us if jump is None else now_us // jump * jump
            return TimeRange.since(tail_us - size + 1)
        case PeriodWindow(period_us=period):
            return TimeRange.since(now_us // period * period)
        case SinceWindow(since_us=since_us, until_us=until_us):
            return TimeRange(since_us, ALL_TIME.end_us if until_us is None else until_us)
        case Unbounded() | RowsWindow() | SessionWindow():
            return ALL_TIME


@dataclass(frozen=True, slots=True)
class Windowed(OverOne):
    """The events in the window over a stream; the source is a scan.

    An `internal` window only bounds the state: results stay when its events expire.
    """

    reads_time = True
    in_chain = False

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

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Plan | None:
        """Return a window of time with the key as a column; what others hold depends on all."""
        if not isinstance(self.window, RangeWindow) or self.internal:
            return None
        more = {keys[0]: INT64, **carried}
        own = {name: kind for name, kind in self.row.items() if self.below(name) not in more}
        items = (Named(name, Column(f"{self.alias}.{name}", kind)) for name, kind in more.items())
        return Project(self, (*named_columns(own), *items))

    def filtered(self, condition: Expression) -> Plan | None:
        """Return a window of time over filtered events: time alone decides what leaves it."""
        if not isinstance(self.window, RangeWindow):
            return None
        row = self.source.row.items()
        meaning = {f"{self.alias}.{name}": Column(name, kind) for name, kind in row}
        return replace(self, source=Filter(self.source, substituted(condition, meaning)))

    def below(self, name: str) -> str:
        """Return what a column is called in the source."""
        return name.removeprefix(f"{self.alias}.")

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

    def edge(self, below: EdgesBelow) -> Edge:
        """Return how events leave the window."""
        return window_edge(self.window, below.circumstances.slide_us)

    @property
    def changes(self) -> bool:
        """Whether its rows may go again: they leave the window."""
        return True

    @property
    def comes_with_events(self) -> bool:
        """A row is an event."""
        return True

    def period_below(self, period: TimeRange) -> TimeRange:
        """Return the times of the events that the window holds in a period."""
        return held_range(self.window, period.start_us)
