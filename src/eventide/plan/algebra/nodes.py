"""Plan nodes of the event algebra: an event and what follows it, chains, events of one instant.

An event is a row with a period: it began at `start_ts` and ended, or was certain, at `ts`. Two rows
follow each other if the first has ended before the second begins. Both sources have both columns,
and no other name in common.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from eventide.errors import Span
from eventide.plan.check import require, require_columns, require_unique
from eventide.plan.events.timed import ordered_columns
from eventide.plan.expressions import (
    ALWAYS,
    Column,
    Expression,
    Named,
    NamedAggregate,
    columns_of,
)
from eventide.plan.render import render, render_computed, render_equal, render_items
from eventide.plan.standing.edges import FOREVER, Edge
from eventide.plan.times import format_duration
from eventide.plan.tree import (
    ChangeExpression,
    EdgesBelow,
    Keys,
    Names,
    OverGroups,
    OverTwo,
    Plan,
    Row,
    Timed,
    Use,
    changed_values,
)
from eventide.schema import BOOL, INT64, INTERVAL, START_TS, TIMESTAMP, TS

TIMES = frozenset({TS, START_TS})
BOTH = Use("condition", child=None)
"""A condition on an event of the left source and one of the right, and on what is carried."""
_NEXT = Use(child=None)


def attributes(row: Row) -> Row:
    """Return the columns of an event without its times."""
    return {name: kind for name, kind in row.items() if name not in TIMES}


class Follows(OverTwo):
    """Events of the left source that wait for events of the right one.

    A left event meets the right events that begin after it has ended. Those on which `condition` is
    not true are skipped. Of the others, all that end first follow it, at the same instant, and it
    waits no longer. The columns of a result are those of both sources; its period is from the start
    of the left event to the end of the right one, and in `condition` its times are `start_ts` and
    `ts`. With equal `keys` only: null is equal to nothing. With `within_us`, no result is longer;
    `longest` says so for each left event, where queries that run as one differ in it.
    """

    __slots__ = ()
    is_stream = True
    reads_time = True
    keeps_rows = True
    rows_apart = True
    beside = True
    in_chain = False
    condition: Expression
    left_keys: Keys
    right_keys: Keys
    within_us: int | None
    longest: Expression | None
    within_span: Span | None

    @property
    def is_bounded(self) -> bool:
        """Whether results are no longer than something."""
        return self.within_us is not None or self.longest is not None

    @property
    def row(self) -> Row:
        """The columns of the output."""
        left, right = attributes(self.left.row), attributes(self.right.row)
        return {TS: TIMESTAMP, START_TS: TIMESTAMP, **left, **right}

    @property
    def in_order(self) -> bool:
        """Whether rows come in order of (ts, _seq): of `ts` alone."""
        return False

    def row_for(self, use: Use) -> Row:
        """Return the columns that an expression may read."""
        return self.row if use.child is None else self.children[use.child].row

    @property
    def compared(self) -> tuple[Keys, ...]:
        """The keys of each source."""
        return (self.left_keys, self.right_keys)

    @property
    def reach_us(self) -> int | None:
        """How old an event below may be and still count: as old as a result may be long."""
        return self.within_us

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the wanted columns, those that are read, and the times."""
        return tuple(wanted | read | TIMES for read in self.read)

    def check(self) -> None:
        """Both sources have periods and names of their own, and keys are of equal types."""
        for source in self.children:
            require_columns(self, source.row, TS, START_TS)
        require_unique([*attributes(self.left.row), *attributes(self.right.row)])
        require(len(self.left_keys) == len(self.right_keys), "keys without a partner")
        for one, other in zip(*self.compared, strict=True):
            require(one.type == other.type, f"{render(one)} and {render(other)} differ in type")
        require(self.condition.type == BOOL, f"{render(self.condition)} is no condition")
        require(self.within_us is None or self.within_us >= 0, "results of less than no time")
        require(self.longest is None or self.longest.type == INTERVAL, "a length that is none")

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Plan:  # noqa: ARG002 - in the row
        """Return the node with one more key on each side, if the right one has it.

        Otherwise an event follows the left ones of all keys: that needs no key.
        """
        if not keys[1]:
            return self
        left, right = (Column(key, INT64) for key in keys)
        return self.with_compared(((*self.left_keys, left), (*self.right_keys, right)))

    def timed(self) -> Timed:
        """Return the node: its rows are events with a period."""
        time, start = Column(TS, TIMESTAMP), Column(START_TS, TIMESTAMP)
        return Timed(self, time, start, (start, *ordered_columns(self, *attributes(self.row))))

    def edge(self, below: EdgesBelow) -> Edge:  # noqa: ARG002 - whatever is below
        """Events never go."""
        return FOREVER

    @property
    def time_use(self) -> str:
        """The part of the query that needs times."""
        return "a sequence"

    @property
    def asked(self) -> str:
        """What has to hold, as text."""
        parts = [render_equal(self.compared).strip()] if self.left_keys else []
        parts += [render(self.condition)] if self.condition != ALWAYS else []
        parts += [f"within {format_duration(self.within_us)}"] if self.within_us is not None else []
        parts += [f"within {render(self.longest)}"] if self.longest is not None else []
        return f" {', '.join(parts)}" if parts else ""


@dataclass(frozen=True, slots=True)
class Sequence(Follows):
    """Each left event with the right events that follow it: NEXT."""

    left: Plan
    right: Plan
    condition: Expression = ALWAYS
    left_keys: Keys = ()
    right_keys: Keys = ()
    within_us: int | None = None
    longest: Expression | None = None
    span: Span | None = field(default=None, compare=False)
    within_span: Span | None = field(default=None, compare=False)
    """Where the text says `within_us`, if that is in one place."""

    def with_expressions(self, change: ChangeExpression) -> Sequence:
        """Return the node with another condition and other keys."""
        return replace(
            self,
            condition=change(self.condition, BOTH),
            left_keys=changed_values(self.left_keys, change, Use(child=0)),
            right_keys=changed_values(self.right_keys, change, Use(child=1)),
            longest=None if self.longest is None else change(self.longest, Use(child=0)),
        )

    def with_compared(self, keys: tuple[Keys, ...]) -> Sequence:
        """Return the node with other keys."""
        left, right = keys
        return replace(self, left_keys=left, right_keys=right)

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"Sequence{self.asked}"


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that a chain carries on: that of the left column `first`, then `next` each time."""

    name: str
    first: str
    next: Expression


@dataclass(frozen=True, slots=True)
class Iterate(Follows):
    """Each left event with all chains of right events that follow it one after the other: FOLD.

    A chain is followed as a left event is, by events that begin after it has ended and on which
    `condition` is true. There it ends, unless `proceed` is true as well: then it is a result, one
    event longer, and goes on. `carried` are values of the chain. Both conditions, and what the
    values become next, read them as they were before; in a result they are as they are then. The
    columns of the right source are those of the last event of the chain.
    """

    left: Plan
    right: Plan
    condition: Expression = ALWAYS
    proceed: Expression = ALWAYS
    carried: tuple[Carried, ...] = ()
    left_keys: Keys = ()
    right_keys: Keys = ()
    within_us: int | None = None
    longest: Expression | None = None
    span: Span | None = field(default=None, compare=False)
    within_span: Span | None = field(default=None, compare=False)
    """Where the text says `within_us`, if that is in one place."""

    @property
    def row(self) -> Row:
        """The columns of the output."""
        left, right = self.left.row, self.right.row
        carried = {each.name: left[each.first] for each in self.carried}
        both = {**attributes(left), **carried, **attributes(right)}
        return {TS: TIMESTAMP, START_TS: TIMESTAMP, **both}

    def with_expressions(self, change: ChangeExpression) -> Iterate:
        """Return the node with other conditions, values and keys."""
        carried = [replace(each, next=change(each.next, _NEXT)) for each in self.carried]
        return replace(
            self,
            condition=change(self.condition, BOTH),
            proceed=change(self.proceed, BOTH),
            carried=tuple(carried),
            left_keys=changed_values(self.left_keys, change, Use(child=0)),
            right_keys=changed_values(self.right_keys, change, Use(child=1)),
            longest=None if self.longest is None else change(self.longest, Use(child=0)),
        )

    def with_compared(self, keys: tuple[Keys, ...]) -> Iterate:
        """Return the node with other keys."""
        left, right = keys
        return replace(self, left_keys=left, right_keys=right)

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the columns as for any that follows, and the first of carried values."""
        left, right = Follows.needed(self, wanted)
        return left | {each.first for each in self.carried}, right

    def only(self, wanted: Names) -> Iterate:
        """Return the node without carried values that nothing above or in it reads."""
        by_name = {each.name: each for each in self.carried}
        needed = wanted | columns_of(self.condition) | columns_of(self.proceed)
        found: set[str] = set()
        while missing := (needed & by_name.keys()) - found:
            found |= missing
            needed |= frozenset().union(*(columns_of(by_name[name].next) for name in missing))
        return replace(self, carried=tuple(each for each in self.carried if each.name in found))

    def check(self) -> None:
        """Check as for any that follows, and that carried values keep their types."""
        Follows.check(self)
        names = [each.name for each in self.carried]
        require_unique([*attributes(self.left.row), *names, *attributes(self.right.row)])
        require(self.proceed.type == BOOL, f"{render(self.proceed)} is no condition")
        for each in self.carried:
            require_columns(self, self.left.row, each.first)
            kind = self.left.row[each.first]
            require(each.next.type == kind, f"{each.name} is {kind}, then {each.next.type}")

    @property
    def line(self) -> str:
        """Its line in explain."""
        goes_on = "" if self.proceed == ALWAYS else f", as long as {render(self.proceed)}"
        shown = [f"{render(each.next)} AS {each.name}" for each in self.carried]
        return f"Iterate{self.asked}{goes_on}{': ' if shown else ''}{', '.join(shown)}"


@dataclass(frozen=True, slots=True)
class InstantAggregate(OverGroups):
    """One event for each instant at which events end, and for each key: keys and aggregates.

    It has no length. Events of the same instant are in order of all their columns.
    """

    is_stream = True
    reads_time = True
    in_chain = False

    source: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]

    @property
    def row(self) -> Row:
        """The columns of the output."""
        keys = {key.name: key.type for key in self.keys}
        aggregates = {item.name: item.aggregate.type for item in self.aggregates}
        return {TS: TIMESTAMP, START_TS: TIMESTAMP, **keys, **aggregates}

    @property
    def in_order(self) -> bool:
        """Whether rows come in order of (ts, _seq): of `ts` alone."""
        return False

    @property
    def reach_us(self) -> int:
        """Events of one instant come together, so nothing is remembered."""
        return 0

    def check(self) -> None:
        """No key or aggregate has the name of a time."""
        require_unique([*(each.name for each in self.computed), *TIMES])

    def timed(self) -> Timed:
        """Return the node: its rows are events."""
        names = [key.name for key in self.keys]
        time, start = Column(TS, TIMESTAMP), Column(START_TS, TIMESTAMP)
        return Timed(self, time, start, ordered_columns(self, *names))

    def edge(self, below: EdgesBelow) -> Edge:  # noqa: ARG002 - whatever is below
        """Events never go."""
        return FOREVER

    @property
    def time_use(self) -> str:
        """The part of the query that needs times."""
        return "AT INSTANT"

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f"by {render_items(self.keys)}" if self.keys else "of all"
        return f"InstantAggregate {by}{render_computed(self.aggregates)}"
