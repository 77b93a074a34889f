"""Hints: what to write inside MATCH_RECOGNIZE instead of SQL that works elsewhere."""

from __future__ import annotations

import re

from sqlglot import exp

from eventide.errors import BindError, Span, UnsupportedError
from eventide.lang.sql.expressions import AROUND_HINT, no_clock
from eventide.lang.sql.patterns.clause import SEMANTICS
from eventide.lang.sql.spans import close_brackets, span_of, written

FUNCTIONS = ("prev", "next", "first", "last", "match_number", "classifier")
"""The functions that only a match has."""
AGGREGATES = ("count", "sum", "avg", "min", "max", "stddev")
_TIMES = ("datesub", "date_sub", "age")
_NAVIGATION: dict[type[exp.Expr], str] = {
    exp.Lag: "PREV",
    exp.Lead: "NEXT",
    exp.FirstValue: "FIRST",
    exp.LastValue: "LAST",
}
_BEFORE_HINT = "run a query that computes it, and match over its rows: ev.sql(text, rows=…)"
_SELECT = re.compile(r"(?:\bEXISTS\s*)?\(\s*(?:SELECT|WITH)\b", re.IGNORECASE)


def refuse_subquery(node: exp.Expr, place: str, text: str) -> None:
    """Refuse a query inside of a condition or a measure."""
    asked = node.args.get("query") if isinstance(node, exp.In) else None
    query = asked if isinstance(asked, exp.Expr) else node
    if not isinstance(query, exp.Query | exp.Exists):
        return
    span = span_of(query)
    opening = [] if span is None else list(_SELECT.finditer(text, 0, span.start))
    if span is not None and opening:
        span = close_brackets(Span(opening[-1].start(), span.end), text)
    message = f"a subquery stands in {place}"
    hint = "a condition looks at rows of its match only: compute it first, and write its value"
    if place == "MEASURES":
        hint = "a measure looks at rows of its match only: put it in the SELECT around"
    raise UnsupportedError(message, span=span, hint=hint)


def beyond_match(node: exp.Expr, place: str, span: Span | None) -> BindError | UnsupportedError:
    """Return the error for an expression that cannot stand in conditions or measures."""
    if isinstance(node, exp.CurrentTimestamp | exp.CurrentDate | exp.CurrentTime):
        return no_clock(span)
    what = f"{written(node)} is beyond Eventide's own operators"
    return UnsupportedError(what, span=span, hint=_instead(node, place))


def _instead(node: exp.Expr, place: str) -> str:
    name = _NAVIGATION.get(type(node))
    if name is not None:
        far = node.args.get("offset")
        parts = [written(each) for each in (node.this, far) if each is not None]
        return f"write {name}({', '.join(parts)})"
    match node:
        case exp.Window():
            return _instead(node.this, place)
        case exp.DateDiff() | exp.TimestampDiff() | exp.DateSub():
            return difference_hint()
        case exp.ArrayOverlaps():
            return "conditions are joined with AND"
        case exp.RowNumber():
            return "COUNT(*) counts the rows of a match up to this one, MATCH_NUMBER() the matches"
        case exp.Bracket() if isinstance(node.this, exp.Column):
            hint = function_hint(node.this)
            if hint is not None:
                return hint
        case exp.AggFunc() | exp.IgnoreNulls():
            around = "use ALL ROWS PER MATCH and GROUP BY around it"
            known = ", ".join(each.upper() for each in AGGREGATES)
            if node.meta.get(SEMANTICS, ("",))[0] == "RUNNING":
                shown = written(node)
                over = f"{shown} OVER (PARTITION BY …, match ORDER BY ts)"
                return f"measure MATCH_NUMBER() AS match, and select {over} around it"
            if place == "MEASURES":
                return around
            return f"a condition has {known}; for others {around}, with HAVING"
    if place == "MEASURES":
        return "measure what it is computed from, and compute it in the SELECT list"
    return _BEFORE_HINT


def window_hint(node: exp.Expr) -> str:
    """Return what to write instead of a function with OVER."""
    if isinstance(node.this, exp.Lag | exp.Lead | exp.FirstValue | exp.LastValue):
        return _instead(node.this, "MEASURES")
    return "compute it in the subquery that MATCH_RECOGNIZE reads, or in a SELECT around it"


def difference_hint() -> str:
    """Return how to write the time between two rows."""
    return "write ts - PREV(ts) > INTERVAL '30' SECOND"


def is_difference(name: str) -> bool:
    """Whether a function of other databases gives the time between two instants."""
    return name.lower() in _TIMES


def function_hint(column: exp.Column) -> str | None:
    """Return the hint for the name of a function without its brackets: `PREV`, `PREV.price`."""
    qualified = isinstance(column.args.get("table"), exp.Identifier)
    name = column.args["table"] if qualified else column.this
    word = name.name.lower()
    if name.args.get("quoted"):
        return None
    if word in ("running", "final"):
        return f"{name.name} stands before FIRST, LAST or an aggregate: {word.upper()} LAST(x)"
    if word not in FUNCTIONS + AGGREGATES:
        return None
    argument = column.name if qualified else _beside(column)
    if word in ("match_number", "classifier"):
        argument = ""
    elif word == "count":
        argument = "*"
    return f"{name.name} is a function: write {name.name.upper()}({argument})"


def _beside(column: exp.Column) -> str:
    """Return the column that a name is compared with."""
    parent = column.parent
    if isinstance(parent, exp.Binary):
        other = parent.expression if parent.this is column else parent.this
        if isinstance(other, exp.Column):
            return written(other)
    return "x"


def hint_before_match(error: UnsupportedError) -> None:
    """Correct the hint for an expression that is evaluated before rows are matched."""
    if error.hint == AROUND_HINT:
        error.hint = _BEFORE_HINT
