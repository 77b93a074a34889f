"""Scans read only the columns that something above them uses."""

from __future__ import annotations

from eventide.plan.tree import Names, Plan


def prune_columns(plan: Plan) -> Plan:
    """Project(a, Scan(a, b)) -> Project(a, Scan(a)). `ts` always stays.

    No operator needs `_seq`: the reader of a scan returns its rows in order of (ts, _seq).
    """
    return _prune(plan, frozenset(plan.row))


def _prune(plan: Plan, wanted: Names) -> Plan:
    """Return the plan with at least the wanted columns of its row."""
    plan = plan.only(wanted)
    needed = iter(plan.needed(wanted))
    return plan.with_children(lambda each: _prune(each, next(needed) & each.row.keys()))
