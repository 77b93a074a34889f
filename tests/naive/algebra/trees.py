"""What a plan of the event algebra gives, node by node, over lists of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eventide.plan.algebra import nodes as plan
from eventide.plan.expressions import Column, Expression
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TS
from tests.naive.algebra.events import (
    Bag,
    Condition,
    Event,
    Row,
    Value,
    event,
    introduce,
    mu,
    project,
    rename,
    select,
    seq,
)
from tests.naive.patterns.rows import of_row

Rows = list[dict[str, Any]]


def answer(node: Plan, streams: Mapping[str, Sequence[Row]]) -> Rows:
    """Return the rows of a bound plan, in no order."""
    match node:
        case Scan(stream=stream, time_range=period):
            return [
                {name: row[name] for name in node.row}
                for row in streams[stream]
                if period.start_us <= row[TS] < period.end_us
            ]
        case Filter(source=source, condition=condition):
            return [row for row in answer(source, streams) if value(condition)(row) is True]
        case Project(source=source, items=items):
            return [
                {item.name: value(item.expression)(row) for item in items}
                for row in answer(source, streams)
            ]
        case Merge(sources=sources):
            return [row for source in sources for row in answer(source, streams)]
        case DerivedStream(source=source):
            return answer(source, streams)
        case plan.Sequence():
            left, right = followers(node, streams)
            return rows(node, seq(left, right, asked(node)))
        case plan.Iterate():
            return rows(node, iterated(node, *followers(node, streams)))
    raise AssertionError(node)


def followers(node: plan.Follows, streams: Mapping[str, Sequence[Row]]) -> tuple[Bag, Bag]:
    left, right = (events(answer(source, streams)) for source in (node.left, node.right))
    return left, right


def events(found: Iterable[Row]) -> Bag:
    return [event(row[START_TS], row[TS], plan.attributes(row)) for row in found]


def rows(node: plan.Follows, found: Iterable[Event]) -> Rows:
    return [{name: each.row[name] for name in node.row} for each in found]


def value(expression: Expression) -> Value:
    return lambda row: of_row(expression, dict(row), None)


def asked(node: plan.Follows) -> Condition:
    """Return all that a node asks of an event that follows another."""

    def condition(row: Row) -> bool:
        keys = zip(node.left_keys, node.right_keys, strict=True)
        return (
            value(node.condition)(row) is True
            and all(same(value(one)(row), value(other)(row)) for one, other in keys)
            and (node.within_us is None or row[TS] - row[START_TS] <= node.within_us)
        )

    return condition


def same(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Whether two keys are equal: null is equal to nothing, NaN to itself."""
    return one is not None and (one == other or (one != one and other != other))  # noqa: PLR0124


def iterated(node: plan.Iterate, left: Bag, right: Bag) -> Bag:
    """Chains of a node: those of μ, whose left events have the attributes of the right ones.

    Those of the right source get names that no carried value can have, as `.last` of one.
    """
    marked = {name: f"right {name}" for name in plan.attributes(node.right.row)}
    names = {marked.get(name, name): name for name in node.row}

    def seen(compute: Value) -> Value:
        return lambda row: compute({names[each]: row[each] for each in row if each in names})

    firsts = {each.name: value(Column(each.first)) for each in node.carried}
    begun = introduce({**firsts, **{name: lambda _: None for name in marked.values()}}, left)
    nexts = {each.name: seen(value(each.next)) for each in node.carried}

    def chain(found: Bag) -> Bag:
        return introduce(nexts, select(seen(value(node.proceed)), found))

    found = mu(begun, rename(marked, right), seen(asked(node)), chain)
    return rename(names, project(names, found))
