"""The plan of a CEL text: what each part of its syntax tree becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from eventide.lang.cel.events import Events, OneEvent
from eventide.lang.cel.fold import fold_events
from eventide.lang.cel.follow import next_events
from eventide.lang.cel.instants import instant_events
from eventide.lang.cel.select import selected_events
from eventide.lang.cel.tree import (
    Filtered,
    Fold,
    Instants,
    NamedStream,
    Next,
    Query,
    Stream,
    Union,
    Value,
)
from eventide.lang.cel.unite import united_events
from eventide.lang.cel.values import ValueReader
from eventide.plan.bind import bind_condition
from eventide.plan.nodes import DerivedStream, Filter, is_chain
from eventide.plan.tree import Plan
from eventide.schema import START_TS

ReadStream = Callable[[NamedStream], Events]
"""Return the events of a stream that is read by name."""


def plan_cel(stream: Stream, read: ReadStream, values: Mapping[int, object]) -> Plan:
    """Return the bound plan of a text: its rows are events in order of time.

    Events of the same instant are in order of their starts, then of their attributes. `values` are
    those of parameters, by their places.
    """
    found = CelPlanner(read, values).events(stream)
    plan = found.rows()
    if is_chain(plan):
        return plan
    return DerivedStream(plan, (START_TS, *found.attributes), stream.span)


@dataclass(frozen=True)
class CelPlanner:
    """Turns the parts of a text into events."""

    read: ReadStream
    values: Mapping[int, object]

    def events(self, stream: Stream) -> Events:
        """Return the events of a part."""
        match stream:
            case NamedStream():
                return self.read(stream)
            case Filtered(condition=condition, source=source):
                return self.filtered(condition, self.events(source))
            case Next(left=left, right=right):
                one, other = self.events(left), self.events(right)
                return next_events(stream, one, other, self.reader(one))
            case Fold(left=left, right=right):
                one, other = self.events(left), self.events(right)
                return fold_events(stream, one, other, self.reader(one))
            case Union(sources=sources):
                return united_events(stream, [self.events(each) for each in sources])
            case Instants(source=source):
                events = self.events(source)
                return instant_events(stream, events, self.reader(events))
            case Query(source=source):
                events = self.events(source)
                return selected_events(stream.items, events, self.reader(events))
        assert_never(stream)

    def reader(self, events: Events) -> ValueReader:
        """Return the reader of values over one event."""
        return ValueReader(OneEvent(events), self.values)

    def filtered(self, condition: Value, events: Events) -> Events:
        """Return the events on which a condition is true."""
        bound = bind_condition(self.reader(events).read(condition), events.row)
        return replace(events, plan=Filter(events.plan, events.below(bound)))
