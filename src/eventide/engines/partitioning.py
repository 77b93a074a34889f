"""By which keys the events of a query can be distributed over buckets.

Every operator with state has keys of its own; events may be distributed by the keys that all of
them share, so that no row needs two buckets. Each key is followed from its operator down to the
scans: there it is an expression over the events' columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eventide.engines.build import substituted
from eventide.engines.standing.reach import unaliased
from eventide.plan.expressions import Call, Column, Expression, Named, columns_of
from eventide.plan.nodes import Filter, Project, Scan, scans_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.situations.nodes import Situations, TemporalPattern
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
    Top,
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
from eventide.plan.windows.nodes import SlidingAggregate, WindowAggregate
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


def why_together(plan: Plan) -> str:
    """Return why all events have to be in one place."""
    standing = plan if isinstance(plan, Standing) else None
    return (standing and _whole_answer(standing)) or "its operators share no key"


def _whole_answer(plan: Standing) -> str | None:
    """Return why the answer as a whole has to be in one place, or None."""
    if plan.report == "rstream" and plan.slide_us is None:
        return "RSTREAM without SLIDE repeats the whole answer whenever a part of it changes"
    if isinstance(plan.output_window, RowsWindow):
        return "the last results are the last of all"
    return None


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


def _cancels_by_value(plan: Standing) -> bool:
    """Whether rows that come and go in the same instant are compared by their values."""
    edge = pattern_of(plan.source, Circumstances.of(plan))
    return plan.report in ("istream", "dstream") and edge.pattern == UpdatePattern.STRICT


class _Numbers:
    """The numbers of the scans of a plan, left to right."""

    def __init__(self, plan: Plan) -> None:
        # By identity: two scans of a plan may be equal.
        self.by_identity = {id(leaf): number for number, leaf in enumerate(scans_of(plan))}

    def of(self, leaf: Scan) -> int:
        return self.by_identity[id(leaf)]


def _spread(plan: Plan, numbers: _Numbers) -> dict[int, Keys] | None:
    """Return the keys that the operators of a plan share, or None if there are none."""
    match plan:
        case Scan():
            # Any key will do: state is never about more than single events.
            return {numbers.of(plan): (Column(SEQ, INT64),)}
        case Standing():
            return _of_standing(plan, numbers)
    keys = _own_keys(plan)
    if keys is not None:
        return _surviving(plan, keys, numbers)
    return _together([_spread(source, numbers) for source in plan.children])


def _own_keys(plan: Plan) -> Sequence[Expression] | None:
    """Return the keys by which a node keeps its state, over its own rows; None if it keeps none."""
    match plan:
        case Windowed(window=RowsWindow(keys=names) | SessionWindow(keys=names), alias=alias):
            return [Column(f"{alias}.{key}", plan.row[f"{alias}.{key}"]) for key in names]
        case Filter() | Project() | Merge() | Windowed():
            return None
        case Distinct() | Difference():
            return [Column(name, kind) for name, kind in plan.row.items()]
        case OuterJoin():
            return kept_keys(plan)
        case AsOfJoin(left_keys=left) | Existence(left_keys=left):
            return left
        case WindowJoin(keys=keys_of):
            return keys_of[0]
        case SlidingAggregate(keys=keys) | Top(keys=keys):
            return keys
    return [Column(key.name, key.type) for key in _named_keys(plan)]


def _named_keys(plan: Plan) -> tuple[Named, ...]:
    """Return the keys of a node that are columns of its rows."""
    match plan:
        case (
            GroupAggregate(keys=keys)
            | WindowAggregate(keys=keys)
            | MatchRecognize(keys=keys)
            | Situations(keys=keys)
            | TemporalPattern(keys=keys)
        ):
            return keys
    return ()


def _of_standing(plan: Standing, numbers: _Numbers) -> dict[int, Keys] | None:
    """Return the keys that the operators of a standing query share, or None."""
    if _whole_answer(plan) is not None:
        return None
    if _cancels_by_value(plan):
        by_value = [Column(name, kind) for name, kind in plan.source.row.items()]
        return _surviving(plan.source, by_value, numbers)
    return _spread(plan.source, numbers)


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
    match plan:
        case Scan():
            return {numbers.of(plan): key} if columns_of(key) else None
        case Merge() | Difference():
            return _places([(source, key) for source in plan.children], numbers)
        case WindowJoin(sources=sources, keys=keys_of):
            return _joined(sources, keys_of, key, numbers)
        case OuterJoin(sources=sources, keys=keys_of):
            for kept, pair in zip(kept_keys(plan), zip(*keys_of, strict=True), strict=True):
                if key == kept:
                    return _places(zip(sources, pair, strict=True), numbers)
            return None
        case AsOfJoin() | Existence():
            sides = (plan.left, plan.right)
            return _joined(sides, (plan.left_keys, plan.right_keys), key, numbers)
    below = _below(plan, key)
    return None if below is None else _place(plan.children[0], below, numbers)


def _below(plan: Plan, key: Expression) -> Expression | None:
    """Return a key over the rows of a node with one source as it is below, or None."""
    known: Mapping[str, Expression]
    match plan:
        case Filter() | Distinct():
            return key
        case SlidingAggregate(keys=keys) | Top(keys=keys):
            return key if key in keys else None
        case Standing(source=source):
            inside = columns_of(key) <= {*source.row} and _whole_answer(plan) is None
            return key if inside else None
        case Windowed(window=window, alias=alias):
            own = unaliased(key, alias)
            if isinstance(window, RowsWindow | SessionWindow):
                return own if columns_of(own) <= {*window.keys} else None
            return own
        case Project(items=items):
            known = {item.name: item.expression for item in items}
        case _:
            known = {named.name: named.expression for named in _named_keys(plan)}
    return substituted(key, known) if columns_of(key) <= {*known} else None


def _joined(
    sources: Sequence[Plan], keys_of: Sequence[Keys], key: Expression, numbers: _Numbers
) -> Places | None:
    """Return a key of a join as it is in each scan, if it is one of those it compares."""
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
