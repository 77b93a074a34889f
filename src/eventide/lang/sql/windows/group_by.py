"""GROUP BY …, TUMBLE(ts, size), HOP(ts, slide, size) or SESSION(ts, gap); by count: ROWS for ts."""

from __future__ import annotations

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.spans import span_of
from eventide.plan.expressions import Column
from eventide.plan.times import UNIT_US
from eventide.plan.windows.nodes import (
    WINDOW_END,
    WINDOW_START,
    CountWindow,
    Sessions,
    Window,
)
from eventide.schema import TS

_FORMS = {
    "tumble": "TUMBLE(ts, INTERVAL '10' SECOND)",
    "hop": "HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND): how often, then how long",
    "session": "SESSION(ts, INTERVAL '30' SECOND): how long nothing happens between two sessions",
}
_COUNT_FORMS = {
    "tumble": "TUMBLE(ROWS, 10)",
    "hop": "HOP(ROWS, 5, 10): every so many rows, then how many",
}

_LONGEST_US = 1_000 * 366 * UNIT_US["day"]
"""The bounds of longer windows would leave the calendar, which ends with the year 9999."""
_MOST_OVERLAPPING = 1_000_000
"""A hop of a second in windows of eleven days; a hop of a microsecond would never end."""
_MOST_ROWS = 10**12
"""More than a stream can hold; numbers of events stay inside 64 bits."""


def is_window(node: exp.Expr) -> bool:
    """Whether an item of GROUP BY is TUMBLE, HOP or SESSION."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _FORMS


def is_windowed(select: exp.Select) -> bool:
    """Whether a SELECT groups by TUMBLE, HOP or SESSION."""
    group = select.args.get("group")
    return group is not None and any(is_window(each) for each in group.expressions)


def check_windowed(scope: Scope, select: exp.Select) -> None:
    """Refuse a window over a SELECT in brackets with a column named like a window bound."""
    group = select.args["group"]
    for name in scope.fields:
        if name.lower() in (WINDOW_START, WINDOW_END):
            message = f"{name} of {scope.stream} is called as a bound of the window"
            raise BindError(message, span=span_of(group), hint="give it another name inside")


def window_and_keys(
    select: exp.Select, scope: Scope
) -> tuple[Window | CountWindow | Sessions, list[exp.Expr]]:
    """Return the window of a GROUP BY and its keys."""
    group = select.args["group"]
    for extension in ("all", "rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(extension):
            refuse("a window has plain keys", group, "list the keys one by one")
    windows = [each for each in group.expressions if is_window(each)]
    if len(windows) > 1:
        message = "two windows in one GROUP BY"
        raise BindError(
            message, span=span_of(windows[1]), hint="one TUMBLE, HOP or SESSION is enough"
        )
    keys = [meant_key(each, select) for each in group.expressions if not is_window(each)]
    return _window(windows[0], scope), keys


def meant_key(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return the key that an item means: a number means an item of the SELECT list."""
    if not (isinstance(node, exp.Literal) and node.is_int):
        return node
    place = int(node.name)
    if not 1 <= place <= len(select.expressions):
        message = f"GROUP BY {place} points outside the SELECT list"
        raise BindError(message, span=span_of(node), hint=f"it has {len(select.expressions)} items")
    item: exp.Expr = select.expressions[place - 1].unalias()
    return item


def _window(node: exp.Expr, scope: Scope) -> Window | CountWindow | Sessions:
    name = node.name.lower()
    column, *lengths = node.expressions or [None]
    counts = _is_rows(column) and name in _COUNT_FORMS
    if len(lengths) != (2 if name == "hop" else 1):
        message = f"{name.upper()} takes {'three' if name == 'hop' else 'two'} arguments"
        hint = _COUNT_FORMS[name] if counts else _FORMS[name]
        raise BindError(message, span=span_of(node), hint=hint)
    if counts:
        counted = [_count(each, name) for each in lengths]
        return CountWindow(size=counted[-1], slide=counted[0])
    timed = isinstance(column, exp.Column) and not _is_rows(column)
    if not (timed and _is_time(column, scope)):
        message = f"{name.upper()} goes over ts{', or over ROWS' if name in _COUNT_FORMS else ''}"
        raise BindError(message, span=span_of(column or node), hint=_either(name))
    sizes = [_length(each, name) for each in lengths]
    if name == "session":
        return Sessions(sizes[0])
    window = Window(size_us=sizes[-1], slide_us=sizes[0])
    overlapping = window.size_us // window.slide_us
    if overlapping > _MOST_OVERLAPPING:
        message = f"every event would lie in {overlapping:,} windows"
        hint = "hop less often, or take a frame for every event: OVER (ORDER BY ts RANGE …)"
        raise BindError(message, span=span_of(node), hint=hint)
    return window


def _is_time(column: exp.Column, scope: Scope) -> bool:
    # An item of that name is known only once the window is.
    hidden = not column.table and column.name.lower() in scope.hidden
    found = column.name.lower() if hidden else scope.resolve(column)
    return isinstance(found, str) and scope.means(found) == Column(TS)


def _is_rows(node: exp.Expr | None) -> bool:
    """Whether windows go by count: the plain word ROWS, which is never taken for a column."""
    if not (isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)):
        return False
    return node.name.lower() == "rows" and not node.table and not node.this.quoted


def _either(name: str) -> str:
    if name not in _COUNT_FORMS:
        return _FORMS[name].partition(":")[0]
    return f"{_FORMS[name].partition(':')[0]}, or by count: {_COUNT_FORMS[name].partition(':')[0]}"


def _count(node: exp.Expr, name: str) -> int:
    span = span_of(node) or span_of(node.parent or node)
    if isinstance(node, exp.Interval):
        message = "a window over ROWS has a number of rows, not a length of time"
        raise BindError(message, span=span, hint=_either(name))
    amount = node.this if isinstance(node, exp.Neg) else node
    if not (isinstance(amount, exp.Literal) and amount.is_int):
        message = "a window's number of rows is a whole number"
        raise BindError(message, span=span, hint=_COUNT_FORMS[name])
    rows = int(amount.name)
    if isinstance(node, exp.Neg) or rows == 0:
        message = "a window's number of rows must be positive"
        raise BindError(message, span=span, hint=_COUNT_FORMS[name])
    if rows > _MOST_ROWS:
        message = f"a window of more than {_MOST_ROWS:,} rows"
        hint = "without a window, GROUP BY takes all rows together"
        raise BindError(message, span=span, hint=hint)
    return rows


def _length(node: exp.Expr, name: str) -> int:
    if not isinstance(node, exp.Interval):
        message = "a window's length is an interval"
        by_count = isinstance(node, exp.Literal) and node.is_int
        hint = _either(name) if by_count else _FORMS[name]
        raise BindError(message, span=span_of(node), hint=hint)
    us = interval_us(node)
    if us <= 0:
        message = "a window's length must be positive"
        raise BindError(message, span=span_of(node), hint=_FORMS[name])
    if us > _LONGEST_US:
        message = "a window of more than 1,000 years"
        hint = "without a window, GROUP BY takes all of time together"
        raise BindError(message, span=span_of(node), hint=hint)
    return us
