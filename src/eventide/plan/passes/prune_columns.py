"""Scans read only the columns that something above them uses."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import assert_never

from eventide.plan.expressions import Expression, NamedAggregate, columns_of
from eventide.plan.nodes import DerivedStream, EndRows, Filter, Project, Relational, Scan, node_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.situations.nodes import PeriodJoin, Situations, TemporalPattern
from eventide.plan.standing.nodes import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    OuterJoin,
    RowsWindow,
    SessionWindow,
    Standing,
    StandingNode,
    Top,
    Windowed,
    WindowJoin,
)
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import SlidingAggregate, WindowAggregate
from eventide.schema import TS

Names = frozenset[str]


def prune_columns(plan: Plan) -> Plan:
    """Project(a, Scan(a, b)) -> Project(a, Scan(a)). `ts` always stays.

    No operator needs `_seq`: the reader of a scan returns its rows in order of (ts, _seq).
    """
    return _prune(plan, frozenset(plan.row))


def _prune(plan: Plan, needed: Names) -> Plan:
    """Return the plan with at least the needed columns of its row."""
    plan = node_of(plan)
    match plan:
        case Scan(columns=columns):
            kept = tuple(column for column in columns if column[0] in needed | {TS})
            return replace(plan, columns=kept)
        case Filter(source=source, condition=condition):
            return replace(plan, source=_prune(source, needed | columns_of(condition)))
        case Project(source=source, items=items):
            below = _read_by(item.expression for item in items)
            return replace(plan, source=_slimmed(source, below))
        case EndRows(source=source):
            return replace(plan, source=_prune(source, needed))
        case WindowAggregate(source=source, keys=keys, aggregates=aggregates):
            below = _read_by(key.expression for key in keys) | _arguments(aggregates)
            return replace(plan, source=_slimmed(source, below | {TS}))
        case SlidingAggregate(source=source, keys=keys, aggregates=aggregates):
            below = needed | _read_by(keys) | _arguments(aggregates)
            return replace(plan, source=_slimmed(source, below | {TS}))
        case MatchRecognize(source=source, measures=measures):
            # A match without columns could not be counted.
            measures = tuple(item for item in measures if item.name in needed) or measures[:1]
            plan = replace(plan, measures=measures)
            items = (*plan.keys, *plan.defines, *measures)
            below = _read_by(item.expression for item in items)
            below |= _read_by(item.expression for item in plan.order)
            shown = needed & frozenset(source.row) if plan.all_rows else frozenset[str]()
            return replace(plan, source=_slimmed(source, below | shown | {TS}))
        case Situations(source=source) | TemporalPattern(source=source):
            below = _read_by(key.expression for key in plan.keys)
            below |= _read_by(item.condition for item in plan.situations)
            if isinstance(plan, Situations):
                below |= _arguments(plan.aggregates)
            else:
                below |= _read_by(item.expression for item in plan.returns)
            return replace(plan, source=_slimmed(source, below | {TS}))
        case PeriodJoin(left=left, right=right):
            return replace(
                plan,
                left=_prune(left, frozenset(left.row)),
                right=_prune(right, frozenset(right.row)),
            )
        case DerivedStream():
            return _prune_derived(plan, needed | {TS, *plan.order})
        case Relational(inputs=inputs):
            pruned = tuple((name, _prune(source, frozenset(source.row))) for name, source in inputs)
            return replace(plan, inputs=pruned)
        case _:
            return _prune_standing(plan, needed)


def _prune_derived(plan: DerivedStream, needed: Names) -> Plan:
    match plan.source:
        case Merge(sources=sources):
            # All sources have the same columns, and no row is compared with another.
            return replace(plan, source=Merge(tuple(_slimmed(each, needed) for each in sources)))
    return replace(plan, source=_slimmed(plan.source, needed))


def _prune_standing(plan: StandingNode, needed: Names) -> Plan:
    match plan:
        case Windowed(source=source, alias=alias, window=window):
            below = frozenset(name for name in source.row if f"{alias}.{name}" in needed)
            if isinstance(window, RowsWindow | SessionWindow):
                below |= frozenset(window.keys)
            if isinstance(window, RowsWindow) and window.deleted is not None:
                below |= {window.deleted}
            return replace(plan, source=_slimmed(source, below | {TS}))
        case WindowJoin(condition=condition) | OuterJoin(condition=condition):
            below = needed if condition is None else needed | columns_of(condition)
            band = () if plan.band is None else (plan.band.left, plan.band.right)
            below |= _read_by((*(key for keys in plan.keys for key in keys), *band))
            return plan.with_children(lambda each: _slimmed(each, below))
        case AsOfJoin(left=left, right=right):
            return replace(
                plan,
                left=_slimmed(left, needed | _read_by(plan.left_keys)),
                right=_slimmed(right, needed | _read_by(plan.right_keys)),
            )
        case Existence(left=left, right=right):
            return replace(
                plan,
                left=_slimmed(left, needed | _read_by(plan.left_keys)),
                right=_slimmed(right, _read_by(plan.right_keys)),
            )
        case GroupAggregate(source=source, keys=keys, aggregates=aggregates):
            below = _read_by(key.expression for key in keys) | _arguments(aggregates)
            return replace(plan, source=_slimmed(source, below))
        case Top(source=source, order=order, keys=keys):
            below = needed | _read_by(keys) | _read_by(item.expression for item in order)
            return replace(plan, source=_slimmed(source, below))
        case Merge() | Distinct() | Difference() | Standing():
            # Rows that differ in any column are different rows.
            return plan.with_children(lambda each: _prune(each, frozenset(each.row)))
    assert_never(plan)


def _slimmed(plan: Plan, needed: AbstractSet[str]) -> Plan:
    """Return a plan with the needed columns; drop the other items of a projection."""
    names = frozenset(needed) & frozenset(plan.row)
    match plan:
        case Project(items=items):
            kept = tuple(item for item in items if item.name in names) or items[:1]
            return _prune(replace(plan, items=kept), names)
        case Filter(source=source, condition=condition):
            return replace(plan, source=_slimmed(source, names | columns_of(condition)))
    return _prune(plan, names)


def _read_by(expressions: Iterable[Expression]) -> Names:
    return frozenset[str]().union(*map(columns_of, expressions))


def _arguments(items: tuple[NamedAggregate, ...]) -> Names:
    return _read_by(item.aggregate for item in items)
