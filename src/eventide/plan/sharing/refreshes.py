"""Standing queries that are asked again at each multiple of their slide, as windows and changes.

Standing every 10 s                            Refreshed: which rows came, and which went
  Project host, mean                             Project host, mean, at, exp
    GroupAggregate by host        becomes          PeriodicGroups by host, 15 min every 10 s
      Windowed metrics, 15 min                       Filter, over the events themselves
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eventide.plan.aggregates import DECAYED, SKETCHED
from eventide.plan.expressions import (
    Column,
    Expression,
    Named,
    NamedAggregate,
    substituted,
)
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.render import render_computed, render_items
from eventide.plan.standing.nodes import AT, EXP, SIGN, GroupAggregate, Report, Standing
from eventide.plan.standing.windows import RangeWindow, Windowed
from eventide.plan.tree import (
    Keys,
    OverGroups,
    OverOne,
    Plan,
    Row,
    columns_named,
)
from eventide.plan.windows.nodes import Window
from eventide.schema import INT64, TIMESTAMP

_TIMES = {AT: TIMESTAMP, EXP: TIMESTAMP}


@dataclass(frozen=True, slots=True)
class PeriodicGroups(OverGroups):
    """For each refresh one row for each key with an event in (at - size, at]: keys, aggregates.

    `exp` is the next refresh. It is run as windows of many queries.
    """

    reads_time = True

    source: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    window: Window

    @property
    def row(self) -> Row:
        """The columns of the output."""
        keys = {key.name: key.type for key in self.keys}
        return {**_TIMES, **keys, **{each.name: each.aggregate.type for each in self.aggregates}}

    def keyed(self, keys: tuple[str, ...], carried: Row) -> None:  # noqa: ARG002 - none will do
        """Return None: it shares windows, or the query runs by itself."""
        return

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f"by {render_items(self.keys)}, " if self.keys else ""
        return f"PeriodicGroups {by}{self.window.text}{render_computed(self.aggregates)}"


@dataclass(frozen=True, slots=True)
class Refreshed(OverOne):
    """What is reported of answers that are given as a whole at each refresh.

    A row below is in the answer of its query from `at` on; at `exp` the next answer replaces it.
    """

    compares_rows = True

    source: Plan
    report: Report
    number: str = ""
    """The column with the number of the query, if there are many."""

    @property
    def answer(self) -> Row:
        """The columns of the answer."""
        left_out = {AT, EXP, self.number}
        return {name: kind for name, kind in self.source.row.items() if name not in left_out}

    @property
    def row(self) -> Row:
        """The columns of the output."""
        changes = {EXP: TIMESTAMP, SIGN: INT64} if self.report == "current" else {}
        number = {self.number: INT64} if self.number else {}
        return {AT: TIMESTAMP, **self.answer, **changes, **number}

    @property
    def line(self) -> str:
        """Its line in explain."""
        what = "changes" if self.report == "current" else self.report.upper()
        return f"Refreshed, {what}"

    @property
    def state_keys(self) -> Keys:
        """The number of the query."""
        return columns_named(self, self.number) if self.number else ()

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Refreshed | None:
        """Return the node for many queries; it stands above all others."""
        return None if carried else replace(self, number=keys[0])


def as_refreshes(plan: Plan) -> Refreshed | None:
    """Return a standing query as windows and changes of their rows, if it slides over groups."""
    if not isinstance(plan, Standing) or plan.slide_us is None:
        return None
    if plan.restore or plan.output_window is not None:
        return None
    source = _timed(plan.source, plan.slide_us)
    return None if source is None else Refreshed(source, plan.report)


def _timed(plan: Plan, slide_us: int) -> Plan | None:
    """Return what is above groups with the times of each answer, and windows instead of groups."""
    match plan:
        case GroupAggregate():
            return _groups(plan, slide_us)
        case Filter(source=source):
            below = _timed(source, slide_us)
            return None if below is None else replace(plan, source=below)
        case Project(source=source, items=items):
            below = _timed(source, slide_us)
            if below is None or _TIMES.keys() & plan.row.keys():
                return None
            times = tuple(Named(name, Column(name, kind)) for name, kind in _TIMES.items())
            return Project(below, (*items, *times))
    return None


def _groups(plan: GroupAggregate, slide_us: int) -> PeriodicGroups | None:
    """GroupAggregate(Windowed(x)) -> PeriodicGroups(x)."""
    apart = (*SKETCHED, *DECAYED)  # Their meaning is that of panes, or depends on the instant.
    if any(each.aggregate.function in apart for each in plan.aggregates):
        return None
    if any(each.name in _TIMES for each in plan.computed):
        return None
    found = _events(plan.source)
    if found is None:
        return None
    events, size_us, meaning = found

    def meant(expression: Expression, _: object) -> Expression:
        return substituted(expression, meaning)

    changed = plan.with_expressions(meant)
    window = Window(size_us, slide_us)
    return PeriodicGroups(events, changed.keys, changed.aggregates, window)


def _events(plan: Plan) -> tuple[Plan, int, Mapping[str, Expression]] | None:
    """Return the events in a window with conditions, how long it is, and columns over the scan."""
    match plan:
        case Windowed(source=Scan() as scan, window=RangeWindow(size_us=size_us, jump_us=None)):
            if plan.internal:
                return None
            names = {f"{plan.alias}.{name}": Column(name, kind) for name, kind in scan.columns}
            return scan, size_us, names
        case Filter(source=source, condition=condition):
            below = _events(source)
            if below is None:
                return None
            events, size_us, meaning = below
            return Filter(events, substituted(condition, meaning)), size_us, meaning
        case Project(source=source, items=items):
            below = _events(source)
            if below is None:
                return None
            events, size_us, meaning = below
            own = {each.name: substituted(each.expression, meaning) for each in items}
            return events, size_us, own
    return None
