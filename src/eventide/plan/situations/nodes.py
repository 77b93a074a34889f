"""Plan nodes of situations: their periods, patterns of them, joins by relation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from eventide.errors import Span
from eventide.plan.check import (
    require,
    require_columns,
    require_local,
    require_type,
    require_unique,
)
from eventide.plan.events.timed import fresh, ordered_columns
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Expression,
    MatchAggregate,
    Named,
    NamedAggregate,
    PeriodPart,
    walk,
)
from eventide.plan.render import render_computed, render_items
from eventide.plan.situations.allen import ANY, words_of
from eventide.plan.situations.parts import Constraint, RowPeriod, Situation
from eventide.plan.times import format_duration
from eventide.plan.tree import (
    CONDITION,
    ChangeExpression,
    OverKeys,
    OverTwo,
    Plan,
    Row,
    Timed,
    Use,
    changed_aggregates,
    changed_items,
    columns_named,
)
from eventide.schema import BOOL, START_TS, STRING, TIMESTAMP, TS

END_TS = "end_ts"
SITUATION = "situation"
CONFIRMED = "confirmed"
MOST_SITUATIONS = 32
"""Each is a bit, and an order of joining them has to be found."""
_RETURNED = Use("item", local=False)

PairKind = Choice["inner", "left", "semi", "anti"]
Detection = Choice["early", "final"]


class FollowsSituations(OverKeys):
    """A node that follows situations of each key."""

    __slots__ = ()
    reads_time = True
    situations: tuple[Situation, ...]

    @property
    def details(self) -> tuple[str, ...]:
        """The conditions."""
        return tuple(each.text for each in self.situations)

    @property
    def time_use(self) -> str:
        """The part of the query that needs times."""
        return "a situation"


@dataclass(frozen=True, slots=True)
class Situations(FollowsSituations):
    """The periods in which conditions hold, of each key: [start_ts, end_ts), when they are over.

    A situation covers consecutive events of a key on which its condition is true. It begins with
    the first of them and ends with the first event on which the condition is not true; events of
    one key at the same time count one after the other. If a key is silent for longer than `gap_us`,
    all its situations end that long after its last event. `aggregates` are over the events of the
    situation.
    """

    source: Plan
    keys: tuple[Named, ...]
    situations: tuple[Situation, ...]
    aggregates: tuple[NamedAggregate, ...] = ()
    gap_us: int | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {
            **{key.name: key.type for key in self.keys},
            SITUATION: STRING,
            START_TS: TIMESTAMP,
            END_TS: TIMESTAMP,
            **{item.name: item.aggregate.type for item in self.aggregates},
        }

    def with_expressions(self, change: ChangeExpression) -> Situations:
        """Return the node with other keys, conditions and aggregates."""
        return replace(
            self,
            keys=changed_items(self.keys, change),
            situations=_changed(self.situations, change),
            aggregates=changed_aggregates(self.aggregates, change),
        )

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes: keys and aggregates."""
        return (*self.keys, *self.aggregates)

    def check(self) -> None:
        """Check what is followed, and that all columns have names of their own."""
        _check_situations(self.situations)
        names = [each.name for each in self.computed]
        require_unique([*names, SITUATION, START_TS, END_TS])

    @property
    def line(self) -> str:
        """Its line in explain."""
        by = f"by {render_items(self.keys)}, " if self.keys else ""
        names = ", ".join(each.name for each in self.situations)
        return f"Situations {by}{names}{_silence(self.gap_us)}{render_computed(self.aggregates)}"

    def timed(self) -> Timed:
        """Return the node: a situation is certain when it ends."""
        order = ordered_columns(self, START_TS, *(key.name for key in self.keys), SITUATION)
        start, end = columns_named(self, START_TS, END_TS)
        return Timed(self, end, start, order)


@dataclass(frozen=True, slots=True)
class TemporalPattern(FollowsSituations):
    """Situations of a key, one of each kind, whose periods have the required relations.

    Every such combination is a match. `early` reports it at the first event after which it is
    certain, `final` when all its situations are over; `ts` is that instant, and no situation began
    longer than `within_us` before it. `returns` are over `MatchAggregate` and `PeriodPart` of the
    situations, as they are at that instant. With `confirm`, a match that was reported while a
    situation was open is reported again when all are over. Items with an `Aggregate` are over all
    matches of a key at an instant, with one row for each instant. `limit` is how many matches of a
    key are reported, the first ones.
    """

    source: Plan
    keys: tuple[Named, ...]
    situations: tuple[Situation, ...]
    constraints: tuple[Constraint, ...]
    within_us: int
    returns: tuple[Named, ...]
    detection: Detection = "early"
    confirm: bool = False
    limit: int | None = None
    gap_us: int | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def is_summary(self) -> bool:
        """Whether a row is over all matches of a key at an instant, not over one match."""
        return any(
            isinstance(part, Aggregate) for item in self.returns for part in walk(item.expression)
        )

    @property
    def row(self) -> Row:
        """The columns of the output."""
        columns = {key.name: key.type for key in self.keys} | {TS: TIMESTAMP}
        columns |= {item.name: item.type for item in self.returns}
        return columns | {CONFIRMED: BOOL} if self.confirm else columns

    def with_expressions(self, change: ChangeExpression) -> TemporalPattern:
        """Return the node with other keys, conditions and items."""
        return replace(
            self,
            keys=changed_items(self.keys, change),
            situations=_changed(self.situations, change),
            returns=changed_items(self.returns, change, _RETURNED),
        )

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes: keys and items."""
        return (*self.keys, *self.returns)

    def check(self) -> None:
        """Check what is followed, how it is related, and what is returned of it."""
        _check_situations(self.situations)
        own = [CONFIRMED] if self.confirm else []
        require_unique([*(each.name for each in self.computed), TS, *own])
        require(self.within_us > 0, "a pattern fits into no time")
        require(not (self.is_summary and self.limit), "a limit on matches that are only summed up")
        twice = self.is_summary and self.confirm
        require(not twice, "matches that are only summed up, confirmed")
        pairs = [(each.first, each.second) for each in self.constraints]
        require(len(pairs) == len(set(pairs)), "two constraints on one pair")
        for each in self.constraints:
            in_pattern = 0 <= each.first < each.second < len(self.situations)
            require(in_pattern, f"no such pair: {each}")
            require(0 < each.mask <= ANY, f"no such relations: {each}")
        known = {item.name for item in self.situations}
        for item in self.returns:
            for part in walk(item.expression):
                if isinstance(part, PeriodPart | MatchAggregate):
                    require(part.variable in known, f"no situation {part.variable!r}")
                if isinstance(part, MatchAggregate):
                    require_type(part)
                    for inner in part.plain.parts:
                        require_local(inner, self.source.row)

    @property
    def line(self) -> str:
        """Its line in explain."""
        parts = [f"by {render_items(self.keys)}"] if self.keys else []
        names = [each.name for each in self.situations]
        for each in self.constraints:
            parts.append(_related(names[each.first], each.mask, names[each.second]))
        if not self.constraints:
            parts.append(", ".join(names))
        parts.append(f"within {format_duration(self.within_us)}")
        parts.append("detected early" if self.detection == "early" else "when all are over")
        if self.confirm:
            parts.append("confirmed")
        if self.limit is not None:
            parts.append(f"at most {self.limit:,} a key")
        described = f"TemporalPattern {', '.join(parts)}{_silence(self.gap_us)}"
        return described + render_computed(self.returns)

    def timed(self) -> Timed:
        """Return the matches, with their earliest start as a hidden item."""
        starts = tuple(PeriodPart(each.name, "start") for each in self.situations)
        earliest: Expression = starts[0]
        if len(starts) > 1:
            earliest = Call("least", starts, TIMESTAMP)
        if self.is_summary:
            earliest = Aggregate("min", earliest, TIMESTAMP)
        start = Column(fresh("_start", self.row), TIMESTAMP)
        order = (start, *ordered_columns(self, *(each.name for each in self.computed)))
        node = replace(self, returns=(*self.returns, Named(start.name, earliest)))
        return Timed(node, Column(TS, TIMESTAMP), start, order)


def _related(first: str, mask: int, second: str) -> str:
    relations = " or ".join(words_of(mask)) if mask != ANY else "anyhow beside"
    return f"{first} {relations} {second}"


def _silence(gap_us: int | None) -> str:
    return "" if gap_us is None else f", over after {format_duration(gap_us)} of silence"


def _changed(situations: tuple[Situation, ...], change: ChangeExpression) -> tuple[Situation, ...]:
    return tuple(replace(item, condition=change(item.condition, CONDITION)) for item in situations)


def _check_situations(situations: tuple[Situation, ...]) -> None:
    require_unique(item.name for item in situations)
    require(0 < len(situations) <= MOST_SITUATIONS, f"{len(situations)} situations")
    for item in situations:
        longest = item.least_us if item.most_us is None else item.most_us
        require(0 <= item.least_us <= longest, f"{item.name} lasts at least more than at most")


@dataclass(frozen=True, slots=True)
class PeriodJoin(OverTwo):
    """Pairs of rows of two plans with equal keys whose periods have one of the required relations.

    `mask` has the relations (situations/allen.py) that the period of the left row may have to that
    of the right one. Null keys equal nothing; empty periods, and periods with a null bound, have no
    relation. With `open_ends`, a period without an end is open: it has the relations that it will
    have whenever it ends. Kind "left" adds left rows without a partner, once, beside nulls; "semi"
    and "anti" are the left rows with and without a partner, each once. The two plans share no name;
    `columns` are those of the output. The node stands only below a `Relational` or another join of
    periods.
    """

    compares_rows = True

    left: Plan
    right: Plan
    first: RowPeriod
    second: RowPeriod
    keys: tuple[tuple[str, str], ...]
    mask: int
    columns: tuple[str, ...]
    kind: PairKind = "inner"
    open_ends: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        both = {**self.left.row, **self.right.row}
        return {name: both[name] for name in self.columns}

    def check(self) -> None:
        """Periods are of times, keys are of equal types, and columns are there."""
        left, right = self.left.row, self.right.row
        require_unique([*left, *right])
        require(0 < self.mask <= ANY, f"no such relations: {self.mask}")
        for row, period in ((left, self.first), (right, self.second)):
            require_columns(self, row, period.start, period.end)
            for name in (period.start, period.end):
                require(row[name] == TIMESTAMP, f"{name} is {row[name]}, not a time")
        for one, other in self.keys:
            require_columns(self, left, one)
            require_columns(self, right, other)
            require(left[one] == right[other], f"{one} and {other} differ in type")
        shown = left if self.kind in ("semi", "anti") else {**left, **right}
        require_columns(self, shown, *self.columns)
        require_unique(self.columns)

    @property
    def line(self) -> str:
        """Its line in explain."""
        kind = "PeriodJoin" if self.kind == "inner" else f"PeriodJoin {self.kind}"
        by = f", {self.equal_text}" if self.keys else ""
        return f"{kind} {self.related_text}{by}: {', '.join(self.columns)}"

    @property
    def related_text(self) -> str:
        """Which relations it allows, as text."""
        related = _related(self.first.name, self.mask, self.second.name)
        return f"{related}, open ends" if self.open_ends else related

    @property
    def equal_text(self) -> str:
        """Which columns have to be equal, as text."""
        return " and ".join(f"{one} = {other}" for one, other in self.keys)
