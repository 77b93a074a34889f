"""All live queries of a database, and what they share, as text."""

from __future__ import annotations

from eventide.api.live.groups import LiveGroups
from eventide.api.live.query import LiveQuery
from eventide.api.live.shared.live_set import LiveSet
from eventide.api.live.shared.shared_live import SharedLive
from eventide.engines.explain.many import explain_many, indented
from eventide.plan.explain import explain


def explain_all(groups: LiveGroups) -> str:
    """Return how all live queries run, those that share with what they share."""
    lines: list[str] = []
    for query in groups.queries:
        lines += described(query)
    return "\n".join(lines) or "no live queries"


def described(query: LiveQuery) -> list[str]:
    """Return the lines of a query, of a set, or of queries that run as one."""
    if isinstance(query, SharedLive):
        return explain_many(query.many, "queries that run as one").splitlines()
    if isinstance(query, LiveSet):
        return explain_many(query.many, f"set {query.id}").splitlines()
    return [f"{query.described()}", *indented(explain(query.engine.plan).splitlines())]
