"""By which keys the events of a standing query can be distributed over buckets.

Every operator with state has keys of its own; events may be distributed by the keys that all of
them share, so that no answer needs two buckets. Each key is followed from its operator down to the
windows: there it is an expression over the events' columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eventide.engines.build import substituted
from eventide.engines.standing.reach import scan_of, unaliased
from eventide.plan.expressions import Call, Column, Expression, columns_of
from eventide.plan.nodes import Filter, Project, sources_of
from eventide.plan.render import render
from eventide.plan.standing.nodes import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    OuterJoin,
    RowsWindow,
    SessionWindow,
    Standing,
    Windowed,
    WindowJoin,
)
from eventide.plan.standing.update_patterns import (
    Circumstances,
    UpdatePattern,
    pattern_of,
    windows_of,
)
from eventide.plan.tree import Plan
from eventide.schema import INT64, SEQ

Places = Mapping[int, Expression]
"""One key: what it is over the columns of each window's events, by the window's number."""
Keys = tuple[Expression, ...]


def leaf_keys(plan: Standing) -> tuple[Keys, ...] | None:
    """Return for each window the keys that distribute its events, or None: all into one bucket."""
    if why_together(plan) is not None:
        return None
    found = _spread(plan.source, _Numbers(plan))
    if _cancels_by_value(plan):
        by_value = [Column(name, kind) for name, kind in plan.source.row.items()]
        found = _surviving(plan.source, by_value, _Numbers(plan))
    if found is None:
        return None
    return tuple(found[number] for number in range(len(windows_of(plan))))


def why_together(plan: Standing) -> str | None:
    """Return why the answer as a whole has to be in one place, or None."""
    if plan.report == "rstream" and plan.slide_us is None:
        return "RSTREAM without SLIDE repeats the whole answer whenever a part of it changes"
    if isinstance(plan.output_window, RowsWindow):
        return "the last results are the last of all"
    return None


def spread_line(plan: Standing) -> str:
    """Return how a standing query is spread over a cluster, or why it is not."""
    streams = ", ".join(dict.fromkeys(scan_of(leaf).stream for leaf in windows_of(plan)))
    keys = leaf_keys(plan)
    if keys is None:
        why = why_together(plan) or "its operators share no key"
        return f"{streams}: shuffled into one bucket, because {why}"
    shown = "; ".join(
        f"{leaf.alias} by {', '.join(map(render, own))}"
        for leaf, own in zip(windows_of(plan), keys, strict=True)
    )
    return f"{streams}: shuffled once, {shown}, then Eventide's operators in Python workers"


def _cancels_by_value(plan: Standing) -> bool:
    """Whether rows that come and go in the same instant are compared by their values."""
    edge = pattern_of(plan.source, Circumstances.of(plan))
    return plan.report in ("istream", "dstream") and edge.pattern == UpdatePattern.STRICT


class _Numbers:
    """The numbers of the windows of a plan, left to right."""

    def __init__(self, plan: Plan) -> None:
        # By identity: two windows of a plan may be equal.
        self.by_identity = {id(leaf): number for number, leaf in enumerate(windows_of(plan))}

    def of(self, leaf: Windowed) -> int:
        return self.by_identity[id(leaf)]


def _spread(plan: Plan, numbers: _Numbers) -> dict[int, Keys] | None:
    """Return the keys that the operators of a plan share, or None if there are none."""
    match plan:
        case Windowed(window=RowsWindow(keys=keys) | SessionWindow(keys=keys), alias=alias):
            named = [Column(f"{alias}.{key}", plan.row[f"{alias}.{key}"]) for key in keys]
            return _surviving(plan, named, numbers)
        case Windowed():
            # Any key will do: state is never about more than single events.
            return {numbers.of(plan): (Column(SEQ, INT64),)}
        case Filter(source=source) | Project(source=source):
            return _spread(source, numbers)
        case Merge(sources=sources):
            parts = [_spread(source, numbers) for source in sources]
            return _together(parts)
        case Distinct() | Difference():
            columns = [Column(name, kind) for name, kind in plan.row.items()]
            return _surviving(plan, columns, numbers)
        case GroupAggregate(keys=named_keys):
            own = [Column(key.name, key.type) for key in named_keys]
            return _surviving(plan, own, numbers)
        case WindowJoin(keys=keys):
            return _surviving(plan, keys[0], numbers)
        case OuterJoin():
            return _surviving(plan, kept_keys(plan), numbers)
        case AsOfJoin(left_keys=left) | Existence(left_keys=left):
            return _surviving(plan, left, numbers)
    return None


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
    """Return a key over a plan's rows as it is in each window, or None if it cannot be used."""
    match plan:
        case Windowed(window=window, alias=alias):
            own, used = unaliased(key, alias), columns_of(unaliased(key, alias))
            if isinstance(window, RowsWindow | SessionWindow) and not used <= set(window.keys):
                return None
            if not used:
                return None
            return {numbers.of(plan): own}
        case Filter(source=source) | Distinct(source=source):
            return _place(source, key, numbers)
        case Project(source=source, items=items):
            below = substituted(key, {item.name: item.expression for item in items})
            return _place(source, below, numbers)
        case GroupAggregate(source=source, keys=keys):
            known = {named.name: named.expression for named in keys}
            if not columns_of(key) <= set(known):
                return None
            return _place(source, substituted(key, known), numbers)
        case Merge() | Difference():
            return _places([(source, key) for source in sources_of(plan)], numbers)
        case WindowJoin(sources=sources, keys=keys_of):
            return _joined(sources, keys_of, key, numbers)
        case OuterJoin(sources=sources, keys=keys_of):
            for kept, pair in zip(kept_keys(plan), zip(*keys_of, strict=True), strict=True):
                if key == kept:
                    return _places(zip(sources, pair, strict=True), numbers)
        case AsOfJoin() | Existence():
            sides = (plan.left, plan.right)
            return _joined(sides, (plan.left_keys, plan.right_keys), key, numbers)
    return None


def _joined(
    sources: Sequence[Plan], keys_of: Sequence[Keys], key: Expression, numbers: _Numbers
) -> Places | None:
    """Return a key of a join as it is in each window, if it is one of those it compares."""
    for place in range(len(keys_of[0])):
        equal = [keys[place] for keys in keys_of]
        if key in equal:
            return _places(zip(sources, equal, strict=True), numbers)
    return None


def kept_keys(join: OuterJoin) -> Keys:
    """Return the keys of an outer join as they are in its rows, also in rows without a partner."""
    left, right = join.keys
    match join.keeps:
        case (True, False):
            return left
        case (False, True):
            return right
    both = zip(left, right, strict=True)
    return tuple(Call("coalesce", pair, pair[0].type) for pair in both)


def _places(parts: Iterable[tuple[Plan, Expression]], numbers: _Numbers) -> Places | None:
    found: dict[int, Expression] = {}
    for plan, key in parts:
        places = _place(plan, key, numbers)
        if places is None:
            return None
        found |= places
    return found
