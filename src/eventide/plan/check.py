"""Check a plan: every pass relies on these properties and must preserve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from eventide.errors import PlanError
from eventide.plan.aggregates import AGGREGATES, STANDING_ONLY
from eventide.plan.expressions import (
    Aggregate,
    At,
    Call,
    Classifier,
    Column,
    Expression,
    MatchAggregate,
    MatchNumber,
    Over,
    PeriodPart,
    walk,
)
from eventide.plan.functions import FUNCTIONS
from eventide.plan.render import render
from eventide.plan.tree import Plan, Row, Use
from eventide.schema import BOOL, NULL, TS


def check_plan(plan: Plan, *, after: str) -> Plan:
    """Return the plan, or raise `PlanError` naming the pass that broke it."""
    try:
        _check(plan)
    except PlanError as error:
        message = f"after {after}: {error.message}"
        raise PlanError(message, span=error.span) from error
    return plan


def _check(plan: Plan) -> None:
    for source in plan.children:
        _check(source)
    if plan.reads_time:
        for source in plan.children:
            require_columns(plan, source.row, TS)
    plan.check()
    require_unique(each.name for each in plan.computed)
    row_for = cache(plan.row_for)
    for expression, use in plan.expressions:
        _check_use(expression, use, row_for(use))
    kinds = [[key.type for key in keys] for keys in plan.compared]
    require(all(each == kinds[0] for each in kinds), f"keys of different types: {kinds}")


def _check_use(expression: Expression, use: Use, row: Row) -> None:
    """Check that an expression fits its use."""
    if use.role == "condition" and expression.type != BOOL:
        message = f"{render(expression)} is no condition"
        raise PlanError(message)
    if isinstance(expression, Aggregate) and use.role in ("aggregate", "aging aggregate"):
        _check_aggregate(expression, row, ages=use.role == "aging aggregate")
    elif use.local:
        require_local(expression, row)


def _check_aggregate(aggregate: Aggregate, row: Row, *, ages: bool) -> None:
    name = aggregate.function
    function = AGGREGATES.get(name)
    known = function is not None and (ages or name not in STANDING_ONLY)
    require(known, f"{name} has no place here")
    wanted = function is not None and function.parameter is not None
    if wanted != (aggregate.parameter is not None):
        message = f"{render(aggregate)} has a wrong parameter"
        raise PlanError(message)
    require_type(aggregate)
    for part in aggregate.parts:
        require_local(part, row)


def require(condition: bool, message: str) -> None:
    """Raise `PlanError` unless the condition holds."""
    if not condition:
        raise PlanError(message)


def require_columns(plan: Plan, row: Row, *names: str) -> None:
    """Raise `PlanError` if a row lacks a column that a node needs."""
    for name in names:
        require(name in row, f"{type(plan).__name__} needs {name}")


def require_unique(names: Iterable[str]) -> None:
    """Raise `PlanError` if a name appears twice."""
    for name, count in Counter(names).items():
        require(count == 1, f"the name {name!r} appears {count} times")


def require_alike(first: Plan, *others: Plan) -> None:
    """Raise `PlanError` unless all plans have the same columns."""
    for other in others:
        same = list(first.row.items()) == list(other.row.items())
        require(same, f"rows of different columns: {first.row} and {other.row}")


def require_type(expression: Expression) -> None:
    """Raise `PlanError` if an expression has no type."""
    # Text is made only for errors: rendering every part would take quadratic time.
    if expression.type == NULL:
        message = f"{render(expression)} has no type"
        raise PlanError(message)


def require_local(expression: Expression, row: Row) -> None:
    """Raise `PlanError` unless an expression is over one row of the given columns, and typed."""
    for part in walk(expression):
        match part:
            case Column(name=name, type=data_type):
                if row.get(name) != data_type:
                    require(name in row, f"no column {name!r}")
                    message = f"{name} is {row[name]}, not {data_type}"
                    raise PlanError(message)
            case Call(function=function, user=user):
                require(user is not None or function in FUNCTIONS, f"no function {function!r}")
                require_type(part)
            case (
                Aggregate()
                | Over()
                | At()
                | MatchAggregate()
                | Classifier()
                | MatchNumber()
                | PeriodPart()
            ):
                message = f"{render(part)} stands where only row-local expressions may"
                raise PlanError(message)
