"""What names mean in NEXT and FOLD: attributes of the left event, of the right one, of the chain.

    $1.a   of the left event          $2.a   of the right event
    $.a    of the chain so far, before the right event

A plain name is an attribute that only one of them has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from eventide.errors import BindError, Span
from eventide.lang.cel.events import END, START, TIMES, Events, lasting, unknown
from eventide.plan.events.timed import fresh
from eventide.plan.expressions import Column, Expression, Named
from eventide.plan.tree import Plan, Row
from eventide.schema import START_TS, TIMESTAMP, TS, DataType

LEFT, RIGHT, LATEST = "$1", "$2", "$"


@dataclass
class Side:
    """The events of one side, and the columns under which both sides are told apart."""

    events: Events
    names: Mapping[str, str]
    """The column of each attribute."""
    taken: set[str]
    """All names that are used on either side."""
    added: dict[str, Named] = field(default_factory=dict)
    """Further columns, by what they are."""

    def column(self, name: str, span: Span | None = None) -> Column | None:
        """Return the column of an attribute or a time, None if there is none."""
        found = self.events.find(name)
        if found is not None:
            return Column(self.names[found], self.events.attributes[found].type, span)
        if name.lower() in TIMES:
            return self.add(name.lower(), self.events.meanings[name.lower()], span)
        return None

    def add(self, what: str, value: Expression, span: Span | None = None) -> Column:
        """Return the column of another value, which the rows now have."""
        if what not in self.added:
            name = fresh(f"_{what}", self.taken)
            self.taken.add(name)
            self.added[what] = Named(name, value)
        return Column(self.added[what].name, value.type, span)

    @property
    def plan(self) -> Plan:
        """The plan of its rows; it is that of its events, if these have the same columns.

        A column that is no attribute, such as one that a SELECT has left out, may have the name of
        one of the other side.
        """
        plan, columns = self.events.plan, {*TIMES, *self.events.attributes}
        same = columns == plan.row.keys() and all(
            each == Column(self.names[name], each.type)
            for name, each in self.events.attributes.items()
        )
        if same and not self.added and self.events.start == START:
            return plan
        return self.events.rows(self.names, *self.added.values())

    @property
    def row(self) -> Row:
        """Its columns without the times."""
        kinds = {self.names[name]: each.type for name, each in self.events.attributes.items()}
        return kinds | {each.name: each.type for each in self.added.values()}


def both_times() -> dict[str, DataType]:
    """Return the times of an event that is made of two."""
    return {TS: TIMESTAMP, START_TS: TIMESTAMP}


@dataclass
class TwoEvents:
    """What names mean in the condition of NEXT."""

    left: Side
    right: Side
    word: str = "NEXT"

    @property
    def row(self) -> Row:
        """The columns that a condition may read."""
        return both_times() | dict(self.left.row) | dict(self.right.row)

    @property
    def written(self) -> dict[str, str]:
        """What columns are called in a text."""
        sides = ((LEFT, self.left), (RIGHT, self.right))
        return {
            column: f"{word}.{name}" for word, side in sides for name, column in side.names.items()
        }

    @contextmanager
    def as_written(self) -> Iterator[None]:
        """Let errors call columns as the text does."""
        try:
            yield
        except BindError as error:
            names = self.written
            known = re.compile(rf"(?<![\w$.'])({'|'.join(map(re.escape, names)) or '$'})(?![\w'])")
            error.message = known.sub(lambda found: names[found[0]], error.message)
            if error.hint is not None:
                error.hint = known.sub(lambda found: names[found[0]], error.hint)
            raise

    def side(self, side: str, span: Span) -> Side:
        """Return a side by its decorator."""
        if side == LEFT:
            return self.left
        if side == RIGHT:
            return self.right
        raise self.no_side(side, span)

    def no_side(self, side: str, span: Span) -> BindError:
        """Return the error for a decorator that means nothing here."""
        if side == LATEST:
            message = "$. is the chain of a FOLD, and NEXT has none"
            hint = "write $1. for the left event, $2. for the right one"
        else:
            message = f"there is no {side}."
            hint = "$1. is the left event, $2. the right one"
            hint += ", $. the chain so far" if self.word == "FOLD" else ""
        return BindError(message, span=span, hint=hint)

    def attribute(self, name: str, span: Span) -> Expression:
        """Return an attribute that one of them has, or a time of both together."""
        found = [side for side in (self.left, self.right) if side.events.find(name) is not None]
        if len(found) > 1:
            message = f"{name} is an attribute of both sides"
            hint = f"write $1.{name} for the left event, $2.{name} for the right one"
            raise BindError(message, span=span, hint=hint)
        if not found:
            return self.time_or_unknown(name, span)
        column = found[0].column(name, span)
        assert column is not None
        return column

    def time_or_unknown(self, name: str, span: Span) -> Expression:
        """Return a time of both together, or refuse the name."""
        if name.lower() in TIMES:
            return Column(name.lower(), TIMESTAMP, span)
        known = dict.fromkeys([*self.left.events.attributes, *self.right.events.attributes])
        where = " or ".join(dict.fromkeys((self.left.events.called, self.right.events.called)))
        raise unknown(name, where, [*known], span)

    def sided(self, side: str, name: str, span: Span) -> Expression:
        """Return an attribute or a time of one side."""
        found = self.side(side, span)
        column = found.column(name, span)
        if column is None:
            raise unknown(name, found.events.called, [*found.events.attributes], span)
        return column

    def length(self, span: Span, side: str | None = None) -> Expression:
        """Return how long both together last, or one side."""
        if side is None:
            return lasting(END, START, span)
        ends = [self.sided(side, name, span) for name in (TS, START_TS)]
        return lasting(ends[0], ends[1], span)
