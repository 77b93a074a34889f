"""Which templates take a row once for all queries that want it: those that only follow events.

Project(Sequence(numbered, plain))    rows of the left side are independent of each other, and
                                      what follows them is the same for all queries
"""

from __future__ import annotations

from eventide.plan.nodes import Scan, scans_of
from eventide.plan.tree import Plan, remembers
from eventide.schema import QUERY_NUMBER


def has_channels(plan: Plan) -> bool:
    """Whether a template's rows may be of several queries at once."""
    (first, *others) = scans_of(plan)
    constants = [name for name in first.row if name.startswith("$") and name != QUERY_NUMBER]
    if constants or any(name.startswith("$") for leaf in others for name in leaf.row):
        return False
    return QUERY_NUMBER in plan.row and remembers(plan) and rows_stay_apart(plan)


def rows_stay_apart(plan: Plan) -> bool:
    """Whether rows of the first scan do not meet, all the way up."""
    while not isinstance(plan, Scan):
        if not plan.rows_apart:
            return False
        plan = plan.children[0]
    return True
