"""NEXT → a sequence of the plan."""

from __future__ import annotations

from dataclasses import replace

from eventide.errors import BindError, Span
from eventide.lang.cel.events import START, Events
from eventide.lang.cel.sides import Side, TwoEvents
from eventide.lang.cel.tree import Next
from eventide.lang.cel.values import ValueReader
from eventide.plan.algebra.nodes import Sequence
from eventide.plan.bind import bind_condition
from eventide.plan.expressions import ALWAYS, Column, Expression

BEFORE = "_1"
"""What the names of left events get behind them."""


def next_events(node: Next, left: Events, right: Events, reader: ValueReader) -> Events:
    """Return the events of left NEXT{…} right.

    If the sides have an attribute of the same name, all left attributes a become a_1.
    """
    names = {name: name for name in left.attributes}
    if any(right.find(name) is not None for name in names):
        names = {name: f"{name}{BEFORE}" for name in names}
    _refuse_clash(names, right, node.span)
    taken = {*names.values(), *right.attributes}
    sides = TwoEvents(
        Side(left, names, taken), Side(right, {name: name for name in right.attributes}, taken)
    )
    asked = replace(reader, names=sides).read(node.condition) if node.condition else ALWAYS
    with sides.as_written():
        condition = bind_condition(asked, sides.row)
    sequence = Sequence(sides.left.plan, sides.right.plan, condition, span=node.span)
    shown = [*names.values(), *right.attributes]
    columns: dict[str, Expression] = {name: Column(name, sequence.row[name]) for name in shown}
    return Events(sequence, columns, START, "the events of NEXT")


def _refuse_clash(names: dict[str, str], right: Events, span: Span) -> None:
    """Refuse sides that have names in common even after left attributes were renamed."""
    for name, called in names.items():
        found = right.find(called)
        if found is not None:
            message = f"the left {name} would become {called}, which the right side has as well"
            hint = f"rename one of them before, in a SELECT: {found} AS other"
            raise BindError(message, span=span, hint=hint)
