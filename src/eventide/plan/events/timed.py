"""Columns with the time, the start and the order of rows, beside those that a query names."""

from __future__ import annotations

from collections.abc import Iterable

from eventide.plan.expressions import Column, Expression, Named
from eventide.plan.tree import Plan, columns_named
from eventide.schema import NULL, START_TS, TS


def ordered_columns(plan: Plan, *names: str) -> tuple[Column, ...]:
    """Return columns of a plan, without those that are all null: they have no order."""
    return tuple(each for each in columns_named(plan, *names) if each.type != NULL)


def time_name(name: str) -> str:
    """Return a name; that of a time, in any case, under that very name."""
    folded = name.lower()
    return folded if folded in (TS, START_TS) else name


def shown(items: list[Named], name: str, meaning: Expression) -> Expression:
    """Return the column of a name, adding it as an item if the query has none of that name."""
    found = next((item for item in items if item.name == name), None)
    if found is None:
        found = Named(name, meaning)
        items.append(found)
    return Column(name, found.type)


def kept(items: list[Named], meaning: Expression) -> Expression:
    """Return the column that has a value of the rows below, adding it as a hidden item."""
    found = next((item for item in items if item.expression == meaning), None)
    if found is None:
        found = Named(fresh("_order", [item.name for item in items]), meaning)
        items.append(found)
    return Column(found.name, found.type)


def fresh(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken; case does not matter."""
    used = {each.lower() for each in taken}
    number = 0
    while f"{name}_{number}" in used:
        number += 1
    return f"{name}_{number}"
