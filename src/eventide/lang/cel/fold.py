"""FOLD → an iteration of the plan.

An attribute that both sides have is a_1 as the left event has it, and a as the last event has it.
The values that FOLD computes are carried along the chain, and so is what `$.` asks of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eventide.errors import BindError, Span
from eventide.lang.cel.events import END, START, TIMES, Events, unknown
from eventide.lang.cel.follow import BEFORE
from eventide.lang.cel.sides import LATEST, Side, TwoEvents
from eventide.lang.cel.tree import CelName, Fold
from eventide.lang.cel.values import ValueReader
from eventide.plan.algebra.nodes import Carried, Iterate
from eventide.plan.bind import bind_condition, bind_expression, cast_implicitly
from eventide.plan.events.timed import fresh
from eventide.plan.expressions import ALWAYS, Column, Expression, Literal
from eventide.plan.tree import Row
from eventide.plan.types import common_pair
from eventide.schema import INT64, NULL, SEQ, TS, DataType


@dataclass
class ChainNames(TwoEvents):
    """What names mean in FOLD: those of both sides, and of the chain so far."""

    word: str = "FOLD"
    kinds: dict[str, DataType] = field(default_factory=dict)
    """The values that FOLD computes, with their types as far as they are known."""
    without_first: frozenset[str] = frozenset()
    """Those that the left event has no value of, in lower case."""
    latest: dict[str, Carried] = field(default_factory=dict)
    """Attributes and times of the last event, by what they are."""

    @property
    def written(self) -> dict[str, str]:
        """What columns and values are called in a text."""
        latest = {each.name: f"$.{name}" for name, each in self.latest.items()}
        return {**super().written, **latest, **{name: f"$.{name}" for name in self.kinds}}

    @property
    def row(self) -> Row:
        """The columns that a condition may read."""
        carried = {each.name: each.next.type for each in self.latest.values()}
        return {**super().row, **carried, **self.kinds}

    def computed(self, name: str) -> str | None:
        """Return how a value that FOLD computes is spelled, or None."""
        return next((each for each in self.kinds if each.lower() == name.lower()), None)

    def attribute(self, name: str, span: Span) -> Expression:
        """Return an attribute that only the left side has, and that stays as it is."""
        if self.computed(name) is not None:
            message = f"{name} is computed here, so it is not clear which value is meant"
            hint = f"write $.{name} for the chain so far, $1.{name} for the left event"
            raise BindError(message, span=span, hint=hint)
        if self.right.events.find(name) is not None:
            message = f"{name} is an attribute of both sides"
            hint = f"write $2.{name} for the new event, $.{name} for the last, $1.{name} the first"
            raise BindError(message, span=span, hint=hint)
        return super().attribute(name, span)

    def sided(self, side: str, name: str, span: Span) -> Expression:
        """Return an attribute or a time of a side, or of the chain so far."""
        return self.so_far(name, span) if side == LATEST else super().sided(side, name, span)

    def so_far(self, name: str, span: Span) -> Expression:
        """Return an attribute or a time of the chain, before the right event."""
        found = self.computed(name)
        if found is not None:
            return Column(found, self.kinds[found], span)
        own, other = self.left.events.find(name), self.right.events.find(name)
        if own is not None and other is not None:
            return self.last(own, other, span)
        if own is None and name.lower() == TS:
            return self.last_time(span)
        column = self.left.column(name, span)
        if column is None and name.lower() in self.without_first:
            message = f"{name} has no value yet when a chain begins"
            hint = f"let the left event have one, in a SELECT before: *, 0 AS {name}"
            raise BindError(message, span=span, hint=hint)
        if column is None:
            raise unknown(name, self.left.events.called, [*self.left.events.attributes], span)
        return column

    def last(self, own: str, other: str, span: Span) -> Column:
        """Return an attribute of the last event: first of the left one, then of right ones."""
        left, right = self.left.column(own), self.right.column(other)
        assert left is not None
        assert right is not None
        kind = common_pair(left.type, right.type)
        if kind is None:
            message = f"{own} is {left.type} in the left event, and {right.type} in the right one"
            raise BindError(message, span=span, hint="cast one of them in a SELECT: CAST(… AS …)")
        if own not in self.latest:
            first = left.name
            if left.type != kind:
                value = cast_implicitly(self.left.events.attributes[own], kind)
                first = self.left.add(f"first_{own}", value).name
            self.carry(own, first, cast_implicitly(right, kind))
        return Column(self.latest[own].name, kind, span)

    def last_time(self, span: Span) -> Column:
        """Return the end of the chain so far."""
        if TS not in self.latest:
            self.carry(TS, self.left.add(TS, END).name, END)
        return Column(self.latest[TS].name, END.type, span)

    def carry(self, what: str, first: str, then: Expression) -> None:
        """Let the chain carry a value."""
        taken = self.left.taken
        name = fresh(f"_last_{what}", taken)
        taken.add(name)
        self.latest[what] = Carried(name, first, then)


def fold_events(node: Fold, left: Events, right: Events, reader: ValueReader) -> Events:
    """Return the events of left FOLD{…} right."""
    _refuse_other_attributes(left, right, node.span)
    computed = _computed(node, right)
    names = _names(left, right, computed, node.span)
    taken = {*names.values(), *right.attributes, *(each.text for each in computed)}
    chain = ChainNames(
        Side(left, names, taken), Side(right, {name: name for name in right.attributes}, taken)
    )
    first = {name.text: _first(name.text, left) for name in computed}
    chain.without_first = frozenset(name.lower() for name, each in first.items() if each is None)
    chain.kinds.update({name: each.type for name, each in first.items() if each is not None})
    reading = replace(reader, names=chain)
    values = {
        name.text: reading.read(item.value)
        for name, item in zip(computed, node.items, strict=True)
        if item.value is not None
    }
    conditions = [reading.read(each) if each else ALWAYS for each in (node.condition, node.proceed)]
    _settle(chain, values)
    carried = [_carried(name, first[name], value, chain) for name, value in values.items()]
    with chain.as_written():
        condition, proceed = (bind_condition(each, chain.row) for each in conditions)
    iterate = Iterate(
        chain.left.plan,
        chain.right.plan,
        condition,
        proceed,
        (*carried, *chain.latest.values()),
        span=node.span,
    )
    shown = [chain.computed(name) or called for name, called in names.items()]
    shown += [*chain.kinds, *right.attributes]
    columns: dict[str, Expression] = {name: Column(name, iterate.row[name]) for name in shown}
    return Events(iterate, columns, START, "the events of FOLD")


def _first(name: str, left: Events) -> Expression | None:
    """Return what a computed value is in the left event, None if that has no such attribute."""
    own = left.find(name)
    return None if own is None else left.attributes[own]


def _refuse_other_attributes(left: Events, right: Events, span: Span) -> None:
    """The events of a chain look alike: the left one has all attributes of the right ones."""
    missing = [name for name in right.attributes if left.find(name) is None]
    if missing:
        message = f"{left.called} has no {missing[0]}, which the events that FOLD takes have"
        shown = ", ".join(name for name in right.attributes if name not in missing) or "…"
        hint = f"choose what both have on the right, {shown}, or give the left side one"
        raise BindError(message, span=span, hint=hint)


def _computed(node: Fold, right: Events) -> list[CelName]:
    """Return the names of the values that FOLD computes."""
    names = [item.name for item in node.items if item.name is not None]
    seen: set[str] = set()
    for each in names:
        lower = each.text.lower()
        message = hint = ""
        if lower in TIMES:
            message, hint = f"{each.text} is a time of every event", "choose another name"
        elif lower == SEQ:
            message, hint = (
                f"{each.text} is the number of every stored event",
                "choose another name",
            )
        elif lower in seen:
            message, hint = f"{each.text} is computed twice", "leave one of them out"
        elif right.find(each.text) is not None:
            message = f"{each.text} is an attribute of the events that FOLD takes"
            hint = "choose another name: this one has the value of the last event"
        if message:
            raise BindError(message, span=each.span, hint=hint)
        seen.add(lower)
    return names


def _names(left: Events, right: Events, computed: list[CelName], span: Span) -> dict[str, str]:
    """Return the columns of left attributes: a_1 if both sides have a, hidden if computed."""
    folded = {each.text.lower() for each in computed}
    taken = {*left.attributes, *right.attributes, *(each.text for each in computed)}
    names = {}
    for name in left.attributes:
        names[name] = f"{name}{BEFORE}" if right.find(name) is not None else name
        if name.lower() in folded:
            names[name] = fresh(f"_first_{name}", taken)
            taken.add(names[name])
    shown = [each.lower() for each in (*names.values(), *folded)]
    for name, called in names.items():
        if shown.count(called.lower()) > 1:
            message = f"the left {name} would become {called}, which is there already"
            hint = f"rename it before, in a SELECT: {called} AS other"
            raise BindError(message, span=span, hint=hint)
    return names


def _settle(chain: ChainNames, values: Mapping[str, Expression]) -> None:
    """Find types that hold what each value is at first and becomes: a sum from 0 may be a float."""
    changed = True
    while changed:
        changed = False
        for name, value in values.items():
            with chain.as_written():
                bound = bind_expression(value, chain.row)
            known = chain.kinds.get(name, NULL)
            kind = common_pair(known, bound.type)
            if kind is None:
                message = f"{name} is {known} at first, and {bound.type} then"
                raise BindError(message, span=value.span, hint="cast one of them: CAST(… AS …)")
            kind = INT64 if kind == NULL else kind
            changed = changed or kind != known
            chain.kinds[name] = kind


def _carried(name: str, first: Expression | None, value: Expression, chain: ChainNames) -> Carried:
    """Return a computed value, which is null in the left event if that has no such attribute."""
    kind = chain.kinds[name]
    own = chain.left.column(name) if first is not None else None
    if own is None or own.type != kind:
        begin = cast_implicitly(first or Literal(None, kind), kind)
        own = chain.left.add(f"first_{name}", begin)
    return Carried(name, own.name, cast_implicitly(bind_expression(value, chain.row), kind))
