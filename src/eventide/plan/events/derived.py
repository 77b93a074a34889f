"""The rows of an append-only query as events: their time `ts`, their start `start_ts`, their order.

Every node knows when its rows are certain and where they began. `as_events` adds both as columns,
with those that decide the order of rows of the same time, and puts a `DerivedStream` above. Columns
that nothing reads are dropped again by `prune_columns`.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventide.errors import BindError, Span
from eventide.plan.events.timed import time_name
from eventide.plan.expressions import Column, Expression, Literal, Named
from eventide.plan.nodes import DerivedStream, Project
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan, Timed
from eventide.schema import INT64, SEQ, START_TS, TIMESTAMP, TS

_ARM = "_arm"


def as_events(plan: Plan, span: Span | None = None, *, always: bool = False) -> Plan:
    """Return a bound plan of an append-only query as a plan whose rows are events.

    Its columns are those of the plan, then `ts` and `start_ts` if the plan has none of that name,
    then those of the order. Rows that are in order of their events need no `DerivedStream`; with
    `always` they get one too.
    """
    found = _projected(plan).timed()
    shown = _checked(found, span).plan
    assert isinstance(shown, Project)
    if shown.in_order and not always:
        names = {*plan.row, TS, START_TS}
        return Project(shown.source, tuple(item for item in shown.items if item.name in names))
    _refuse_numbers(shown, span)
    order = dict.fromkeys(map(_name_of, found.order))
    ordered_by = tuple(name for name in order if name != TS)
    return DerivedStream(shown, ordered_by, span, found.in_time)


def merged_events(plans: Sequence[Plan], span: Span | None = None) -> DerivedStream:
    """Return UNION ALL of plans as events; the plans are bound and have the same columns.

    Rows of the same time are in the order of the plans, then in that of their own plan. So the rows
    have the number of their plan, and the columns of the order of all plans.
    """
    arms = [_checked(_projected(each).timed(), span) for each in plans]
    names = dict.fromkeys((*(time_name(name) for name in plans[0].row), TS, START_TS))
    orders = [(number, part) for number, arm in enumerate(arms) for part in arm.order]
    merged = []
    for number, arm in enumerate(arms):
        row = arm.plan.row
        items = [Named(name, Column(name, row[name])) for name in names]
        items.append(Named(_ARM, Literal(number, INT64)))
        for place, (owner, part) in enumerate(orders):
            own = part if owner == number else Literal(None, part.type)
            items.append(Named(f"{_ARM}_{place}", own))
        merged.append(Project(arm.plan, tuple(items)))
    _refuse_numbers(merged[0], span)
    order = (_ARM, *(f"{_ARM}_{place}" for place in range(len(orders))))
    in_time = all(arm.in_time for arm in arms)
    return DerivedStream(Merge(tuple(merged)), order, span, in_time)


def _projected(plan: Plan) -> Project:
    """Return the plan below a projection of all its columns, unless it is one itself."""
    if isinstance(plan, Project):
        return plan
    return Project(plan, tuple(Named(name, Column(name, kind)) for name, kind in plan.row.items()))


def _name_of(expression: Expression) -> str:
    assert isinstance(expression, Column)
    return expression.name


def _checked(found: Timed, span: Span | None) -> Timed:
    """Refuse rows whose time is none."""
    kind = found.plan.row[TS]
    if kind != TIMESTAMP:
        message = f"the column {TS} of this query is {kind}, and rows are in order of it"
        hint = f"give the column another name: then {TS} is the time at which a row is certain"
        raise BindError(message, span=span, hint=hint)
    return found


def _refuse_numbers(plan: Plan, span: Span | None) -> None:
    if SEQ in plan.row:
        message = f"the rows of this query have no {SEQ}: they have not arrived"
        raise BindError(message, span=span, hint=f"give it another name, as in {SEQ} AS number")
