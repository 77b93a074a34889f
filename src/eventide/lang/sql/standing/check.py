"""Check a standing query as a whole: whether its windows and its report fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eventide.errors import BindError, Span
from eventide.lang.sql.standing.clause import ReportClause, WindowClause
from eventide.lang.sql.standing.from_clause import Negation
from eventide.plan.nodes import scans_of
from eventide.plan.standing.edges import Circumstances, UpdatePattern
from eventide.plan.standing.joins import AsOfJoin, Existence
from eventide.plan.standing.nodes import CHANGE_COLUMNS, Difference, GroupAggregate, Standing, Top
from eventide.plan.standing.update_patterns import pattern_of
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    Unbounded,
    Windowed,
)
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan


def slide_of(windows: Sequence[WindowClause]) -> int | None:
    """Return the SLIDE of a query, which all its windows share."""
    slides = [each.slide for each in windows if each.slide is not None]
    if not slides:
        return None
    first = slides[0]
    for other in slides[1:]:
        if other.us != first.us:
            message = f"one query slides by {format_duration(first.us)} and by another length"
            hint = "the answer of a query is renewed as one: write the same SLIDE, once is enough"
            raise BindError(message, span=other.span, hint=hint)
    for each in windows:
        length = _length(each)
        if length is not None and length < first.us:
            message = f"SLIDE is longer than a window of {format_duration(length)}"
            span = first.span if each.slide is None else each.slide.span
            hint = "events would come and go unseen: slide more often, or take a longer window"
            raise BindError(message, span=span, hint=hint)
    return first.us


def _length(clause: WindowClause) -> int | None:
    match clause.window:
        case RangeWindow(size_us=size):
            return size
        case PeriodWindow(period_us=period):
            return period
    return None


def check_report(report: ReportClause, slide: int | None, windows: Sequence[WindowClause]) -> None:
    """Refuse RESTORE where nothing is lost, and windows that WSTREAM cannot have."""
    if report.restore is not None:
        if report.word in ("DSTREAM", "WSTREAM"):
            message = f"{report.word} has nothing to restore"
            hint = "ISTREAM RESTORE and RSTREAM RESTORE report what came and went between refreshes"
            raise BindError(message, span=report.restore, hint=hint)
        if slide is None:
            message = "RESTORE without SLIDE: nothing is lost where every instant counts"
            hint = "leave it out, or add SLIDE to a window, as in [RANGE 1 MINUTE SLIDE 10 SECONDS]"
            raise BindError(message, span=report.restore, hint=hint)
    window = report.window
    if window is None:
        return
    sliding = next((each.slide for each in (*windows, window) if each.slide is not None), None)
    if sliding is not None:
        message = "WSTREAM with SLIDE: the last results are those of every instant"
        raise BindError(message, span=sliding.span, hint="leave SLIDE out")
    plain = isinstance(window.window, RowsWindow) and not window.keys
    ranged = isinstance(window.window, RangeWindow) and window.window.jump_us is None
    if not (plain or ranged) or window.internal is not None:
        message = "the window behind WSTREAM is by rows or by time"
        raise BindError(message, span=window.span, hint="write [ROWS 10] or [RANGE 1 MINUTE]")


def check_columns(names: Sequence[str], spans: dict[str, Span | None]) -> None:
    """Refuse column names that the changes of an answer use themselves."""
    for name in names:
        if name.lower() in CHANGE_COLUMNS:
            message = f"a column of a standing query cannot be called {name!r}"
            renamed = f"AS {name}_value, or another name"
            if name not in spans:
                renamed = f"* EXCLUDE ({name}), {name} AS {name}_value"
            hint = f"its changes have one of that name: write {renamed}"
            raise BindError(message, span=spans.get(name, spans.get("*")), hint=hint)


def check_internal(
    plan: Plan,
    windows: Sequence[WindowClause],
    negations: Sequence[Negation],
    report: ReportClause | None,
) -> Plan:
    """Return the plan, all its windows internal if those whose events leave are all INTERNAL.

    Windows whose events never leave, such as [SINCE …], follow the others. WSTREAM makes all
    windows internal.
    """
    marked = next((each.internal for each in windows if each.internal is not None), None)
    output = report is not None and report.window is not None
    if marked is None and not output:
        return plan
    word = "WSTREAM" if output else "INTERNAL"
    if negations:
        negation = negations[0]
        message = f"{word} and {negation.word} in one query: its rows would have to go again"
        hint = f"leave {word} out, or {negation.word}"
        raise BindError(message, span=negation.span, hint=hint)
    leaving = [each for each in _windows(plan) if not isinstance(each.window, _STAYING)]
    if output or all(each.internal for each in leaving):
        return _all_internal(plan)
    relation = next(filter(_is_relation, leaving), None)
    if relation is not None:
        message = "INTERNAL beside a relation: its rows are taken back when they change"
        as_it_was = f"JOIN {scans_of(relation)[0].stream} FOR SYSTEM_TIME AS OF t.ts"
        hint = f"leave INTERNAL out; a window of time can {as_it_was}"
        raise BindError(message, span=marked, hint=hint)
    changing = _changing(plan)
    if changing is not None:
        message = f"INTERNAL on some windows of a query with {changing}"
        hint = "write INTERNAL behind all its windows, or behind none"
        raise BindError(message, span=marked, hint=hint)
    return plan


_STAYING = (Unbounded, SinceWindow)


def _is_relation(node: Windowed) -> bool:
    return isinstance(node.window, RowsWindow) and node.window.deleted is not None


def _windows(plan: Plan) -> Iterator[Windowed]:
    """Yield the windows of a plan, without those that rows only look something up in."""
    if isinstance(plan, Windowed):
        yield plan
    elif isinstance(plan, AsOfJoin):
        yield from _windows(plan.left)
    else:
        for source in plan.children:
            yield from _windows(source)


def _all_internal(plan: Plan) -> Plan:
    if isinstance(plan, Windowed):
        return replace(plan, internal=True)
    return plan.with_children(_all_internal)


def _changing(plan: Plan) -> str | None:
    """Return the node of a plan that retracts rows for reasons other than time, if there is one."""
    match plan:
        case Windowed(window=RowsWindow()):
            return "a relation" if _is_relation(plan) else "windows by rows"
        case Windowed(window=SessionWindow()):
            return "sessions"
        case GroupAggregate():
            return "GROUP BY or aggregates"
        case Top():
            return "ORDER BY and LIMIT"
        case Difference() | Existence():
            return "EXCEPT or EXISTS"
        case AsOfJoin(left=left):
            return _changing(left)
    found = (_changing(source) for source in plan.children)
    return next((each for each in found if each is not None), None)


def check_as_of(plan: Standing) -> None:
    """Refuse ASOF JOIN of rows that may be retracted before they expire."""
    circumstances = Circumstances.of(plan)
    for node in _as_of_joins(plan):
        if pattern_of(node.left, circumstances).pattern == UpdatePattern.STRICT:
            what = _changing(node.left) or "DISTINCT"
            message = f"ASOF JOIN of rows that may be taken back: there are {what} on its left"
            if what in ("a relation", "DISTINCT"):
                message = f"ASOF JOIN of rows that may be taken back: there is {what} on its left"
            hint = "join the stream itself under a window of time, and group or order around that"
            raise BindError(message, span=node.span, hint=hint)


def _as_of_joins(plan: Plan) -> Iterator[AsOfJoin]:
    if isinstance(plan, AsOfJoin):
        yield plan
    for source in plan.children:
        yield from _as_of_joins(source)
