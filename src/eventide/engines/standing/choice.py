"""Which plan of a standing query is run, by how many events its streams have."""

from __future__ import annotations

from collections.abc import Mapping

from eventide.engines.standing.reach import scan_of
from eventide.plan.choose_standing import Chosen, choose_plan
from eventide.plan.standing import Standing
from eventide.plan.standing_flow import LeafStatistics, Statistics
from eventide.plan.update_patterns import windows_of
from eventide.store.source import NO_TIME, EventSource

SECOND_US = 1_000_000


def chosen_plan(plan: Standing, sources: Mapping[str, EventSource]) -> Chosen:
    """Return the cheapest plan over streams of which something is stored."""
    return choose_plan(plan, statistics_of(plan, sources))


def statistics_of(plan: Standing, sources: Mapping[str, EventSource]) -> Statistics:
    """Return how many events a second the stream of each window has, as far as is known."""
    found: dict[str, LeafStatistics] = {}
    for leaf in windows_of(plan):
        source = sources.get(scan_of(leaf).stream)
        span = NO_TIME if source is None else source.time_range
        if source is not None and not span.is_empty:
            seconds = max(1.0, (span.end_us - span.start_us) / SECOND_US)
            found[leaf.alias] = LeafStatistics(source.row_count / seconds)
    return found
