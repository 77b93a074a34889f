"""The events that a part of a CEL text stands for, and what their attributes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from eventide.errors import BindError, Span
from eventide.plan.bind import suggestion
from eventide.plan.expressions import Call, Column, Expression, Named, substituted
from eventide.plan.nodes import Project
from eventide.plan.tree import Plan, Row
from eventide.schema import START_TS, TIMESTAMP, TS

END = Column(TS, TIMESTAMP)
START = Column(START_TS, TIMESTAMP)
TIMES = (TS, START_TS)


@dataclass(frozen=True)
class Events:
    """Events: a bound plan whose rows have their time `ts`, and what else they are made of.

    `attributes` are typed expressions over the rows of the plan, `start` is where an event began.
    `called` is what errors say.
    """

    plan: Plan
    attributes: Mapping[str, Expression]
    start: Expression
    called: str

    @property
    def row(self) -> Row:
        """The times and attributes, with their types."""
        kinds = {name: each.type for name, each in self.attributes.items()}
        return {TS: TIMESTAMP, START_TS: TIMESTAMP, **kinds}

    @property
    def meanings(self) -> Mapping[str, Expression]:
        """What times and attributes are of the rows of the plan."""
        return {**self.attributes, TS: END, START_TS: self.start}

    def below(self, expression: Expression) -> Expression:
        """Return an expression over times and attributes as one over the rows of the plan."""
        return substituted(expression, self.meanings)

    def find(self, name: str) -> str | None:
        """Return how an attribute is spelled, or None; case does not matter."""
        folded = name.lower()
        return next((each for each in self.attributes if each.lower() == folded), None)

    def computed(self) -> Events:
        """Return the same events with attributes that are columns of the plan."""
        if all(isinstance(each, Column) for each in self.attributes.values()):
            return self
        columns = {name: Column(name, kind) for name, kind in attribute_types(self).items()}
        return replace(self, plan=self.rows(), attributes=columns, start=START)

    def rows(self, names: Mapping[str, str] | None = None, *others: Named) -> Project:
        """Return a plan of times and attributes, perhaps under other names, and other columns."""
        called = names or {}
        items = [Named(TS, END), Named(START_TS, self.start)]
        items += [Named(called.get(name, name), each) for name, each in self.attributes.items()]
        return Project(self.plan, (*items, *others))


def attribute_types(events: Events) -> Row:
    """Return the types of attributes."""
    return {name: each.type for name, each in events.attributes.items()}


@dataclass(frozen=True)
class OneEvent:
    """What names mean where there is one event."""

    events: Events

    def attribute(self, name: str, span: Span) -> Expression:
        """Return an attribute or a time."""
        found = self.events.find(name)
        if found is not None:
            return Column(found, self.events.row[found], span)
        if name.lower() in TIMES:
            return Column(name.lower(), TIMESTAMP, span)
        raise unknown(name, self.events.called, [*self.events.attributes], span)

    def sided(self, side: str, name: str, span: Span) -> Expression:
        """Refuse a decorator."""
        self.refuse_side(side, name, span)

    @staticmethod
    def refuse_side(side: str, name: str, span: Span) -> NoReturn:
        """Refuse a decorator where there is one event."""
        message = f"{side}. stands in the conditions of NEXT and FOLD only"
        raise BindError(message, span=span, hint=f"there is one event here: write {name}")

    def length(self, span: Span, side: str | None = None) -> Expression:
        """Return how long the event lasts."""
        return self.sided(side, "DUR", span) if side else lasting(END, START, span)


def lasting(end: Expression, start: Expression, span: Span) -> Expression:
    """Return the time from a start to an end."""
    return Call("-", (end, start), span=span)


def unknown(name: str, where: str, known: list[str], span: Span) -> BindError:
    """Return the error for an attribute that is not there."""
    message = f"no attribute {name!r} in {where}"
    return BindError(message, span=span, hint=suggestion(name, known, "attribute"))
