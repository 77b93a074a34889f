"""Drop columns that nothing above needs before rows are kept in state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eventide.plan.expressions import Column, Expression, Named, columns_of
from eventide.plan.nodes import Filter, Project
from eventide.plan.standing.nodes import (
    AsOfJoin,
    Existence,
    GroupAggregate,
    OuterJoin,
    Standing,
    Top,
    Windowed,
    WindowJoin,
)
from eventide.plan.tree import Plan

Names = frozenset[str]


def narrow_rows(plan: Plan) -> Plan:
    """Project(a.x, Join(Filter(a.y > 0, a), b)) -> Project(a.x, Join(Project(…, Filter(…)), b)).

    It works below joins and (NOT) EXISTS. It does not work below DISTINCT, EXCEPT and UNION ALL,
    where all columns of a row matter, nor to the right of a join as of a time, which reads the
    whole stream.
    """
    return _narrow(plan, frozenset(plan.row))


def _narrow(plan: Plan, needed: Names) -> Plan:
    """Return the plan with at least the needed columns of its row."""
    match plan:
        case Windowed():
            return plan
        case Standing(source=source):
            return replace(plan, source=_narrow(source, frozenset(source.row)))
        case Filter(source=source, condition=condition):
            return replace(plan, source=_narrow(source, needed | columns_of(condition)))
        case Project(source=source, items=items):
            # An unneeded column costs nothing here, where no state is kept.
            return replace(plan, source=_narrow(source, _read(each.expression for each in items)))
        case (
            WindowJoin(keys=keys, condition=condition, band=band)
            | OuterJoin(keys=keys, condition=condition, band=band)
        ):
            own = _read(key for each in keys for key in each)
            own |= frozenset() if condition is None else columns_of(condition)
            own |= frozenset() if band is None else _read((band.left, band.right))
            return plan.with_children(lambda source: _only(source, needed | own))
        case AsOfJoin(left=left, left_keys=keys):
            return replace(plan, left=_narrow(left, needed | _read(keys)))
        case Existence(left=left, right=right, left_keys=left_keys, right_keys=right_keys):
            return replace(
                plan,
                left=_only(left, needed | _read(left_keys)),
                right=_only(right, _read(right_keys)),
            )
        case GroupAggregate(source=source, keys=keys, aggregates=aggregates):
            below = _read(key.expression for key in keys)
            below |= _read(item.aggregate for item in aggregates)
            return replace(plan, source=_narrow(source, below))
        case Top(source=source, order=order, keys=keys):
            below = needed | _read(keys) | _read(item.expression for item in order)
            return replace(plan, source=_narrow(source, below))
        case _:
            return plan.with_children(lambda source: _narrow(source, frozenset(source.row)))


def _only(source: Plan, needed: Names) -> Plan:
    """Return a source without other columns, if dropping them takes at most one more node."""
    narrowed = _narrow(source, needed)
    kept = [name for name in narrowed.row if name in needed] or list(narrowed.row)[:1]
    if len(kept) == len(narrowed.row):
        return narrowed
    if isinstance(narrowed, Project):
        items = tuple(item for item in narrowed.items if item.name in kept)
        return replace(narrowed, items=items)
    return Project(narrowed, tuple(Named(each, Column(each, narrowed.row[each])) for each in kept))


def _read(expressions: Iterable[Expression]) -> Names:
    return frozenset[str]().union(*map(columns_of, expressions))
