"""By which keys the events of a query can be distributed over buckets.

Every operator with state has keys of its own; events may be distributed by the keys that all of
them share, so that no row needs two buckets. Each key is followed from its operator down to the
scans: there it is an expression over the events' columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventide.plan.expressions import Column, Expression, columns_of
from eventide.plan.nodes import Scan, scans_of
from eventide.plan.render import render
from eventide.plan.standing.update_patterns import nodes_of, windows_of
from eventide.plan.tree import Plan, remembers
from eventide.schema import INT64, SEQ

Places = Mapping[int, Expression]
"""One key: what it is over the columns of each scan's events, by the scan's number."""
Keys = tuple[Expression, ...]


def leaf_keys(plan: Plan) -> tuple[Keys, ...] | None:
    """Return for each scan the keys that distribute its events, or None: all into one bucket."""
    found = _spread(plan, _Numbers(plan))
    if found is None:
        return None
    return tuple(found[number] for number in range(len(scans_of(plan))))


def bucket_keys(plan: Plan) -> tuple[Keys, ...] | None:
    """Return the keys of each scan, of a plan that remembers something."""
    return leaf_keys(plan) if remembers(plan) else None


def keys_of_scan(plan: Plan) -> str:
    """Return as text the keys that distribute the events of a plan over one scan."""
    keys = bucket_keys(plan)
    return "" if keys is None else ", ".join(map(render, keys[0]))


def why_together(plan: Plan) -> str:
    """Return why all events have to be in one place."""
    reasons = (node.why_together for node in nodes_of(plan))
    return next(filter(None, reasons), "its operators share no key")


def spread_line(plan: Plan) -> str:
    """Return how a query is spread over a cluster, or why it is not."""
    scans = scans_of(plan)
    streams = ", ".join(dict.fromkeys(scan.stream for scan in scans))
    keys = leaf_keys(plan)
    if keys is None:
        return f"{streams}: shuffled into one bucket, because {why_together(plan)}"
    windows = {id(each.source): each.alias for each in windows_of(plan)}
    shown = "; ".join(
        f"{windows.get(id(scan), scan.stream)} by {', '.join(map(render, own))}"
        for scan, own in zip(scans, keys, strict=True)
    )
    return f"{streams}: shuffled once, {shown}, then Eventide's operators in Python workers"


class _Numbers:
    """The numbers of the scans of a plan, left to right."""

    def __init__(self, plan: Plan) -> None:
        # By identity: two scans of a plan may be equal.
        self.by_identity = {id(leaf): number for number, leaf in enumerate(scans_of(plan))}

    def of(self, leaf: Scan) -> int:
        return self.by_identity[id(leaf)]


def _spread(plan: Plan, numbers: _Numbers) -> dict[int, Keys] | None:
    """Return the keys that the operators of a plan share, or None if there are none."""
    if isinstance(plan, Scan):
        # Any key will do: state is never about more than single events.
        return {numbers.of(plan): (Column(SEQ, INT64),)}
    keys = plan.state_keys
    if keys is not None:
        return _surviving(plan, keys, numbers)
    return _together([_spread(source, numbers) for source in plan.children])


def _surviving(plan: Plan, keys: Iterable[Expression], numbers: _Numbers) -> dict[int, Keys] | None:
    """Return those of some keys over a plan's rows by which everything below can be distributed."""
    found = [places for key in keys if (places := _place(plan, key, numbers)) is not None]
    if not found:
        return None
    return {number: tuple(places[number] for places in found) for number in found[0]}


def _together(parts: Iterable[Mapping[int, Keys] | None]) -> dict[int, Keys] | None:
    found: dict[int, Keys] = {}
    for part in parts:
        if part is None:
            return None
        found |= part
    return found


def _place(plan: Plan, key: Expression, numbers: _Numbers) -> Places | None:
    """Return a key over a plan's rows as it is in each scan, or None if it cannot be used."""
    if isinstance(plan, Scan):
        return {numbers.of(plan): key} if columns_of(key) else None
    below = plan.keys_below(key)
    if below is None:
        return None
    found: dict[int, Expression] = {}
    for source, own in zip(plan.children, below, strict=True):
        places = _place(source, own, numbers)
        if places is None:
            return None
        found |= places
    return found
