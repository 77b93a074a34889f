"""Choose which plan of a standing query is run, by what is stored of its streams."""

from __future__ import annotations

from collections.abc import Mapping

from eventide.engines.standing.statistics import statistics_of
from eventide.plan.nodes import Filter, Project
from eventide.plan.standing.choose import Chosen, alternatives_of, choose_among
from eventide.plan.standing.nodes import Standing
from eventide.plan.tree import Plan
from eventide.store.source import EventSource


def chosen_plan(plan: Standing, sources: Mapping[str, EventSource]) -> Chosen:
    """Return the cheapest plan over streams of which something is stored.

    If there is no alternative, events are not read: their number is enough for `explain`.
    """
    candidates = alternatives_of(plan)
    plans = [each for _, each in candidates] if len(candidates) > 1 else []
    return choose_among(candidates, statistics_of(plan, plans, sources))


def best_plan(plan: Plan, sources: Mapping[str, EventSource]) -> Plan:
    """Return the plan that is run: of a standing query the cheapest, any other as it is."""
    match plan:
        case Standing():
            return chosen_plan(plan, sources).plan
        case Filter() | Project():
            return plan.with_children(lambda source: best_plan(source, sources))
    return plan
