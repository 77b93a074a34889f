"""Events that are followed by those with a value of each query's own: the value becomes a key.

    Sequence(left, Filter(user = 'ann', right)) -> Sequence(left, right) with equal $1, user

What waits is then found by its key. Otherwise each event would be read once for each query that has
its value, although few of them wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eventide.plan.algebra.nodes import Follows
from eventide.plan.expressions import Call, Column, Expression, Literal, Named, conjuncts
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.sharing.literals import is_value
from eventide.plan.sharing.part_rows import is_part
from eventide.plan.tree import Plan, Row, replaced
from eventide.schema import INTERVAL

Pair = tuple[Column, Literal]


def followed_by_value(plan: Plan, named: Callable[[Literal], str]) -> Plan:
    """Return a sequence with keys instead of a condition on what follows, if it only compares.

    `named` gives a constant a name: that of a column of the left source.
    """
    if not isinstance(plan, Follows):
        return plan
    match plan.right:
        case Filter(source=Scan() as scan, condition=condition):
            project = None
        case Project(source=Filter(source=Scan() as scan, condition=condition)) as project:
            pass
        case _:
            return plan
    if is_part(scan):
        return plan
    pairs = [_compared(part) for part in conjuncts(condition)]
    keys: list[Column] = []
    right: Plan = scan if project is None else replace(project, source=scan)
    for pair in pairs:
        if pair is None:
            return plan
        right, key = _with_column(right, pair[0], plan.left.row)
        keys.append(key)
    left = [Column(named(literal), literal.type) for _, literal in filter(None, pairs)]
    compared = ((*plan.left_keys, *left), (*plan.right_keys, *keys))
    return replaced(plan, right=right).with_compared(compared)


def followed_for(plan: Plan, named: Callable[[Literal], str]) -> Plan:
    """Return a sequence with a column instead of the most that its results may last, if it has one.

    `named` gives a constant a name: that of a column of the left source.
    """
    if not isinstance(plan, Follows) or plan.within_us is None:
        return plan
    length = Literal(plan.within_us, INTERVAL, plan.within_span)
    return replaced(plan, within_us=None, longest=Column(named(length), INTERVAL))


def _compared(part: Expression) -> Pair | None:
    """Return the column and the constant that a condition demands to be equal, if it is that."""
    match part:
        case Call(function="=", arguments=(Column() as column, Literal() as value)):
            pass
        case Call(function="=", arguments=(Literal() as value, Column() as column)):
            pass
        case _:
            return None
    return (column, value) if is_value(value) and value.type == column.type else None


def _with_column(plan: Plan, column: Column, taken: Row) -> tuple[Plan, Column]:
    """Return a plan whose rows have a column of its scan, and what that is called."""
    if not isinstance(plan, Project):
        return plan, column
    for item in plan.items:
        if item.expression == column:
            return plan, Column(item.name, column.type)
    name = column.name
    while name in plan.row or name in taken:
        name += "'"
    return replace(plan, items=(*plan.items, Named(name, column))), Column(name, column.type)
