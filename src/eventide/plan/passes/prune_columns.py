"""Scans read only the columns that something above them uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from eventide.plan.expressions import Expression, columns_of
from eventide.plan.nodes import (
    Filter,
    MatchRecognize,
    NamedAggregate,
    PeriodJoin,
    Plan,
    Project,
    Relational,
    Scan,
    Situations,
    SlidingAggregate,
    TemporalPattern,
    WindowAggregate,
)
from eventide.schema import TS

Names = frozenset[str]


def prune_columns(plan: Plan) -> Plan:
    """Project(a, Scan(a, b)) -> Project(a, Scan(a)). `ts` always stays.

    No operator needs `seq`: whoever reads a scan hands its rows over in order of (ts, seq).
    """
    return _prune(plan, frozenset(plan.row))


def _prune(plan: Plan, needed: Names) -> Plan:
    """Return the plan with at least the needed columns of its row."""
    match plan:
        case Scan(columns=columns):
            kept = tuple(column for column in columns if column[0] in needed | {TS})
            return replace(plan, columns=kept)
        case Filter(source=source, condition=condition):
            return replace(plan, source=_prune(source, needed | columns_of(condition)))
        case Project(source=source, items=items):
            below = _read_by(item.expression for item in items)
            return replace(plan, source=_prune(source, below))
        case WindowAggregate(source=source, keys=keys, aggregates=aggregates):
            below = _read_by(key.expression for key in keys) | _arguments(aggregates)
            return replace(plan, source=_prune(source, below))
        case SlidingAggregate(source=source, keys=keys, aggregates=aggregates):
            below = needed | _read_by(keys) | _arguments(aggregates)
            return replace(plan, source=_prune(source, below))
        case MatchRecognize(source=source):
            items = (*plan.keys, *plan.defines, *plan.measures)
            below = _read_by(item.expression for item in items)
            below |= _read_by(item.expression for item in plan.order)
            shown = needed & frozenset(source.row) if plan.all_rows else frozenset[str]()
            return replace(plan, source=_prune(source, below | shown))
        case Situations(source=source, aggregates=aggregates):
            below = _read_by(key.expression for key in plan.keys) | _arguments(aggregates)
            below |= _read_by(item.condition for item in plan.situations)
            return replace(plan, source=_prune(source, below))
        case TemporalPattern(source=source):
            below = _read_by(item.expression for item in (*plan.keys, *plan.returns))
            below |= _read_by(item.condition for item in plan.situations)
            return replace(plan, source=_prune(source, below))
        case PeriodJoin(left=left, right=right):
            return replace(
                plan,
                left=_prune(left, frozenset(left.row)),
                right=_prune(right, frozenset(right.row)),
            )
        case Relational(inputs=inputs):
            pruned = tuple((name, _prune(source, frozenset(source.row))) for name, source in inputs)
            return replace(plan, inputs=pruned)
    assert_never(plan)


def _read_by(expressions: Iterable[Expression]) -> Names:
    return frozenset[str]().union(*map(columns_of, expressions))


def _arguments(items: tuple[NamedAggregate, ...]) -> Names:
    return _read_by(item.aggregate for item in items)
