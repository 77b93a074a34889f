"""AT INSTANT: one event of all that end at the same instant, perhaps for each key."""

from __future__ import annotations

from lark import Tree

from eventide.errors import BindError
from eventide.lang.cel.events import START, TIMES, Events
from eventide.lang.cel.functions import aggregate_name, aggregate_of
from eventide.lang.cel.select import name_of, value_of
from eventide.lang.cel.tree import CelItem, Instants, Value, span_of
from eventide.lang.cel.values import ValueReader
from eventide.plan.algebra.nodes import InstantAggregate
from eventide.plan.bind import bind_aggregate
from eventide.plan.expressions import Aggregate, Column, Expression, Named, NamedAggregate


def instant_events(node: Instants, events: Events, reader: ValueReader) -> Events:
    """Return one event for each instant at which events end; items without aggregates are keys."""
    keys: list[Named] = []
    aggregates: list[NamedAggregate] = []
    seen: set[str] = set()
    for item in node.items:
        name = _checked_name(item, seen)
        seen.add(name.lower())
        assert item.value is not None
        found = _aggregate(item.value, events, reader)
        if found is None:
            keys.append(Named(name, value_of(item.value, events, reader)))
        else:
            aggregates.append(NamedAggregate(name, found))
    plan = InstantAggregate(events.plan, tuple(keys), tuple(aggregates))
    shown = [each.name for each in plan.computed]
    columns: dict[str, Expression] = {name: Column(name, plan.row[name]) for name in shown}
    return Events(plan, columns, START, "the events of AT INSTANT")


def _checked_name(item: CelItem, seen: set[str]) -> str:
    if item.value is None:
        message = "* stands where one value is needed"
        hint = "write AT INSTANT{MAX(price) AS top, COUNT(*) AS n} stream"
        raise BindError(message, span=item.span, hint=hint)
    name = name_of(item)
    if name.lower() in TIMES:
        message = f"{name} is a time of every event"
        raise BindError(message, span=item.span, hint="leave it out")
    if name.lower() in seen:
        message = f"AT INSTANT has two items called {name}"
        raise BindError(message, span=item.span, hint="give one of them another name with AS")
    return name


def _aggregate(value: Value, events: Events, reader: ValueReader) -> Aggregate | None:
    """Return an aggregate over the rows of a plan, None if a value is none."""
    if value.data not in ("call", "call_of_all"):
        return None
    name = aggregate_name(str(value.children[0]))
    if name is None:
        return None
    distinct, arguments = False, []
    if value.data == "call":
        _, word, given = value.children
        distinct = str(word).upper() == "DISTINCT"
        parts = given.children if isinstance(given, Tree) else []
        arguments = [reader.read(each) for each in parts if isinstance(each, Tree)]
    found = aggregate_of(name, arguments, span_of(value), distinct=distinct)
    below = events.below(bind_aggregate(found, events.row))
    assert isinstance(below, Aggregate)
    return below
