"""Drop columns that nothing above needs before rows are kept in state."""

from __future__ import annotations

from dataclasses import replace

from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import Project
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import Names, Plan


def narrow_rows(plan: Plan) -> Plan:
    """Project(a.x, Join(Filter(a.y > 0, a), b)) -> Project(a.x, Join(Project(…, Filter(…)), b)).

    It works below joins and (NOT) EXISTS. It does not work below DISTINCT, EXCEPT and UNION ALL,
    where all columns of a row matter, nor to the right of a join as of a time, which reads the
    whole stream.
    """
    return _narrow(plan, frozenset(plan.row))


def _narrow(plan: Plan, wanted: Names) -> Plan:
    """Return the plan with at least the wanted columns of its row.

    An unneeded column costs nothing where no rows are kept.
    """
    if isinstance(plan, Windowed):
        return plan
    needed = iter(plan.needed(wanted))
    narrow = _only if plan.keeps_rows else _narrow
    return plan.with_children(lambda each: narrow(each, next(needed)))


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
