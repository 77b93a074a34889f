"""ASOF JOIN and FOR SYSTEM_TIME AS OF: each row with the newest event of another stream then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eventide.errors import BindError, Span, UnsupportedError
from eventide.lang.sql.standing.scope import Source
from eventide.plan.expressions import Call, Column, Expression, columns_of
from eventide.plan.nodes import DerivedStream, Filter, Project
from eventide.plan.render import render
from eventide.plan.standing.joins import AsOfJoin
from eventide.plan.standing.nodes import Merge
from eventide.plan.standing.windows import RowsWindow, Unbounded, Windowed
from eventide.plan.tree import Plan
from eventide.schema import TS

_FORM = "write ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts"
_VERSION_FORM = "write JOIN c FOR SYSTEM_TIME AS OF t.ts AS c ON t.k = c.k"
_MIRRORED = {"<": ">", "<=": ">="}


def time_of(plan: Plan) -> str | None:
    """Return the column that holds the time at which a row came, if there is one."""
    match plan:
        case Windowed(alias=alias):
            return f"{alias}.{TS}"
        case Filter(source=source):
            return time_of(source)
        case AsOfJoin(left=left):
            return time_of(left)
        case Project(source=source, items=items):
            time = time_of(source)
            same = (item.name for item in items if item.expression == Column(time or "", item.type))
            return None if time is None else next(same, None)
        case Merge(sources=sources):
            times = {time_of(each) for each in sources}
            return times.pop() if len(times) == 1 else None
    return None


def as_of_join(
    parts: list[Plan],
    source: Source,
    conditions: list[Expression],
    span: Span | None,
    *,
    outer: bool,
    using: Sequence[Expression] = (),
) -> None:
    """Put an ASOF JOIN around the part that its conditions read; they are bound.

    The last of the columns of USING is the time.
    """
    _check_right(source)
    if using:
        *conditions, last = conditions
        assert isinstance(last, Call)
        conditions.append(Call(">=", last.arguments, last.type, last.span))
    times: list[Expression] = []
    others: list[Expression] = []
    for condition in conditions:
        (times if _comparison(condition) else others).append(condition)
    if len(times) != 1:
        message = "ASOF JOIN compares two times once"
        raise BindError(message, span=times[1].span if times else span, hint=_FORM)
    comparison, left_time, right_time = _oriented(times[0], source)
    if comparison not in (">", ">="):
        message = "ASOF JOIN looks for what came before"
        raise UnsupportedError(message, span=times[0].span, hint=_FORM)
    pairs = [_pair(each, source, _FORM) for each in others]
    _check_time(right_time, [source.plan], times[0].span, _FORM)
    place = _check_time(left_time, parts, times[0].span, _FORM)
    joined = _beside(parts[place], source, pairs, span)
    _check_relation(joined, source)
    parts[place] = replace(joined, strict=comparison == ">", outer=outer)


def versioned_join(
    parts: list[Plan],
    source: Source,
    conditions: list[Expression],
    span: Span | None,
    *,
    moment: Column,
    outer: bool,
) -> list[Expression]:
    """Join a part with a relation as it was then; return the conditions that remain."""
    window = source.plan.window if isinstance(source.plan, Windowed) else None
    if not (isinstance(window, RowsWindow) and window.count == 1 and window.keys):
        message = f"{source.stream} is no relation: its events have no key"
        hint = f"use ASOF JOIN, or name the key: {source.stream} [LATEST BY …]"
        raise BindError(message, span=source.span, hint=hint)
    keys = {source.column(name) for name in window.keys}
    pairs, rest = [], []
    for condition in conditions:
        found = _sides(condition, source)
        right = None if found is None else found[1]
        if found is not None and isinstance(right, Column) and right.name in keys:
            pairs.append(found)
            keys.discard(right.name)
        else:
            rest.append(condition)
    if keys or (outer and rest):
        wanted = " and ".join(f"… = {name}" for name in sorted(keys))
        message = f"ON has to name the key of {source.stream}"
        hint = f"add {wanted}"
        if not keys:
            message, hint = "LEFT JOIN of a relation has its key in ON alone", _VERSION_FORM
        raise UnsupportedError(message, span=rest[0].span if rest else span, hint=hint)
    place = _check_time(moment, parts, moment.span, _VERSION_FORM)
    parts[place] = replace(_beside(parts[place], source, pairs, span), outer=outer)
    return rest


def _beside(
    left: Plan, source: Source, pairs: list[tuple[Expression, Expression]], span: Span | None
) -> AsOfJoin:
    for key, _ in pairs:
        if not columns_of(key) <= frozenset(left.row):
            message = f"{render(key)} is not of the stream whose time is compared"
            hint = "join that one first, in a SELECT in brackets"
            raise UnsupportedError(message, span=key.span, hint=hint)
    left_keys, right_keys = tuple(key for key, _ in pairs), tuple(key for _, key in pairs)
    return AsOfJoin(left, source.plan, left_keys, right_keys, span=span)


def _check_right(source: Source) -> None:
    window = source.plan.window if isinstance(source.plan, Windowed) else None
    relation = isinstance(window, RowsWindow) and window.deleted is not None
    if not (isinstance(window, Unbounded) or relation):
        message = "the right side of ASOF JOIN is a stream with all its events"
        hint = f"write ASOF JOIN {source.alias} without a window"
        if window is None:
            hint = "name the stream itself; conditions on it may stand in WHERE"
        raise UnsupportedError(message, span=source.span, hint=hint)


def _check_relation(node: AsOfJoin, source: Source) -> None:
    """Refuse to look for the newest of several rows of a relation: each key has just one."""
    window = source.plan.window if isinstance(source.plan, Windowed) else None
    if isinstance(window, RowsWindow):
        wanted = {source.column(name) for name in window.keys}
        if {each.name for each in node.right_keys if isinstance(each, Column)} != wanted:
            message = f"ON has to name the key of the relation {source.stream}"
            hint = f"compare {' and '.join(sorted(wanted))}"
            raise UnsupportedError(message, span=node.span, hint=hint)


def _comparison(condition: Expression) -> bool:
    match condition:
        case Call(function=">" | ">=" | "<" | "<="):
            return True
    return False


def _oriented(condition: Expression, source: Source) -> tuple[str, Expression, Expression]:
    """Return a comparison with the right source on its right side."""
    assert isinstance(condition, Call)
    left, right = condition.arguments
    names = frozenset(source.plan.row)
    if columns_of(left) <= names and not columns_of(right) <= names:
        return _MIRRORED.get(condition.function, "<"), right, left
    return condition.function, left, right


def _sides(condition: Expression, source: Source) -> tuple[Expression, Expression] | None:
    """Return both sides of an equality, that of the right source second."""
    names = frozenset(source.plan.row)
    match condition:
        case Call(function="=", arguments=(left, right)):
            if columns_of(right) <= names and columns_of(right):
                pair = (left, right)
            else:
                pair = (right, left)
            fits = columns_of(pair[1]) <= names and bool(columns_of(pair[1]))
            return pair if fits and not columns_of(pair[0]) & names else None
    return None


def _pair(condition: Expression, source: Source, form: str) -> tuple[Expression, Expression]:
    found = _sides(condition, source)
    if found is None or not columns_of(found[0]):
        message = f"{render(condition)} is no equality of the two sides of ASOF JOIN"
        hint = f"{form}; other conditions stand in WHERE"
        raise UnsupportedError(message, span=condition.span, hint=hint)
    return found


def _is_time(plan: Plan, name: str) -> bool:
    """Whether a column of a window over a query repeats the time of its rows."""
    match plan:
        case Filter(source=source):
            return _is_time(source, name)
        case Windowed(alias=alias, source=DerivedStream(source=Project() as rows)):
            time = rows.origin(TS)
            return time is not None and rows.origin(name.removeprefix(f"{alias}.")) == time
    return False


def _check_time(time: Expression, plans: Sequence[Plan], span: Span | None, form: str) -> int:
    """Return the place of the plan whose rows came at that time."""
    for place, plan in enumerate(plans):
        if isinstance(time, Column) and (time.name == time_of(plan) or _is_time(plan, time.name)):
            return place
    message = f"{render(time)} is not the time at which the rows of a stream came"
    raise UnsupportedError(message, span=span, hint=f"{form}, with ts of both")
