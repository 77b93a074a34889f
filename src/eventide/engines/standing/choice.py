"""Choose which plan of a standing query is run, by what is stored of its streams."""

from __future__ import annotations

from collections.abc import Mapping

from eventide.engines.standing.statistics import statistics_of
from eventide.plan.standing.choose import (
    Candidates,
    Chosen,
    alternatives_of,
    choose_among,
    with_choices,
)
from eventide.plan.tree import Plan
from eventide.store.source import EventSource


def chosen_plan(plan: Plan, sources: Mapping[str, EventSource]) -> Chosen:
    """Return the cheapest plan over streams of which something is stored."""
    return _chosen_among(alternatives_of(plan), sources)


def best_plan(plan: Plan, sources: Mapping[str, EventSource]) -> Plan:
    """Return the plan that is run: each part of it in the cheapest way."""
    return with_choices(plan, lambda candidates: _chosen_among(candidates, sources).plan)


def _chosen_among(candidates: Candidates, sources: Mapping[str, EventSource]) -> Chosen:
    """Return the cheapest of some plans.

    If there is no alternative, events are not read: their number is enough for `explain`.
    """
    plans = [each for _, each in candidates]
    compared = plans if len(plans) > 1 else []
    return choose_among(candidates, statistics_of(plans[0], compared, sources))
