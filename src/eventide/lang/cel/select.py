"""SELECT: attributes are chosen, computed and named. The times of an event always stay."""

from __future__ import annotations

from dataclasses import replace

from eventide.errors import BindError
from eventide.lang.cel.events import TIMES, Events, OneEvent
from eventide.lang.cel.tree import CelItem, Value
from eventide.lang.cel.values import ValueReader, spelled
from eventide.plan.bind import bind_expression, cast_implicitly
from eventide.plan.expressions import Expression
from eventide.schema import INT64, NULL, SEQ


def selected_events(items: tuple[CelItem, ...], events: Events, reader: ValueReader) -> Events:
    """Return events with other attributes; without items they stay as they are.

    All values are computed from the events as they were. One that has the name of an attribute
    that `*` stands for takes its place.
    """
    if not items:
        return events
    if any(item.value is not None and not is_name(item.value) for item in items):
        # What is computed from computed attributes would be written out again and again.
        events = events.computed()
        reader = replace(reader, names=OneEvent(events))
    starred: dict[str, Expression] = {}
    found: dict[str, tuple[str, Expression]] = {}
    for item in items:
        if item.value is None:
            starred = dict(events.attributes)
            continue
        name = name_of(item)
        if name.lower() in TIMES:
            refuse_time(item, name)
            continue
        if name.lower() in found:
            message = f"SELECT has two items called {name}"
            raise BindError(message, span=item.span, hint="give one of them another name with AS")
        found[name.lower()] = (name, value_of(item.value, events, reader))
    attributes: dict[str, Expression] = {}
    for name, value in starred.items():
        called, meant = found.pop(name.lower(), (name, value))
        attributes[called] = meant
    attributes |= dict(found.values())
    return replace(events, attributes=attributes)


def value_of(value: Value, events: Events, reader: ValueReader) -> Expression:
    """Return a typed value over the rows of a plan."""
    bound = bind_expression(reader.read(value), events.row)
    return events.below(cast_implicitly(bound, INT64) if bound.type == NULL else bound)


def is_name(value: Value) -> bool:
    """Whether a value is just an attribute or a time."""
    return value.data == "attribute"


def name_of(item: CelItem) -> str:
    """Return the name of an item."""
    if item.name is not None:
        if item.name.text.lower() == SEQ:
            message = f"{item.name.text} is the number of every stored event"
            raise BindError(message, span=item.name.span, hint="choose another name")
        return item.name.text
    assert item.value is not None
    if is_name(item.value):
        return plain_name(item.value)
    if item.value.data == "sided":
        side = str(item.value.children[0]).rstrip(" .")
        OneEvent.refuse_side(side, spelled(item.value.children[1]), item.span)
    message = "a value without a name"
    raise BindError(message, span=item.span, hint="give it one: … AS name")


def plain_name(value: Value) -> str:
    """Return the name that a value is."""
    return spelled(value.children[0])


def refuse_time(item: CelItem, name: str) -> None:
    """Refuse another value for the time of an event; the time itself is there anyway."""
    assert item.value is not None
    if is_name(item.value) and plain_name(item.value).lower() == name.lower():
        return
    message = f"{name} is a time of every event"
    raise BindError(message, span=item.span, hint="choose another name")
