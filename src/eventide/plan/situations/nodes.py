"""Plan nodes of situations: their periods, patterns of them, joins by relation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as Choice

from eventide.errors import Span
from eventide.plan.expressions import Aggregate, Named, NamedAggregate, walk
from eventide.plan.situations.parts import Constraint, RowPeriod, Situation
from eventide.plan.tree import Plan, Row
from eventide.schema import BOOL, STRING, TIMESTAMP, TS

START_TS = "start_ts"
END_TS = "end_ts"
SITUATION = "situation"
CONFIRMED = "confirmed"

PairKind = Choice["inner", "left", "semi", "anti"]
Detection = Choice["early", "final"]


@dataclass(frozen=True, slots=True)
class Situations(Plan):
    """The periods for which conditions hold, of each key: [start_ts, end_ts), when they are over.

    A situation is as many events of a key in a row as its condition is true on. It begins with
    the first and ends with the first event on which it is not true; events of one key at the same
    time count one after the other. A key that is silent for longer than `gap_us` ends all its
    situations that long after its last event. `aggregates` are over the events of the situation.
    """

    source: Plan
    keys: tuple[Named, ...]
    situations: tuple[Situation, ...]
    aggregates: tuple[NamedAggregate, ...] = ()
    gap_us: int | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return {
            **{key.name: key.type for key in self.keys},
            SITUATION: STRING,
            START_TS: TIMESTAMP,
            END_TS: TIMESTAMP,
            **{item.name: item.aggregate.type for item in self.aggregates},
        }


@dataclass(frozen=True, slots=True)
class TemporalPattern(Plan):
    """Situations of a key, one of each kind, whose periods have the relations asked for.

    Every such combination is a match. `early` reports it at the first event after which it is
    certain, `final` when all its situations are over; `ts` is that moment, and no situation began
    longer than `within_us` before it. `returns` are over `MatchAggregate` and `PeriodPart` of the
    situations, as they are at that moment. With `confirm`, a match that was reported while some
    situation went on is reported again when all are over. Items with an `Aggregate` are over all
    matches of a key at a moment, one row for each. `limit` is how many matches of a key are
    reported, the first ones.
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
        """Whether rows are over all matches of a key at a moment, not over one match."""
        return any(
            isinstance(part, Aggregate) for item in self.returns for part in walk(item.expression)
        )

    @property
    def row(self) -> Row:
        """The columns that come out."""
        columns = {key.name: key.type for key in self.keys} | {TS: TIMESTAMP}
        columns |= {item.name: item.type for item in self.returns}
        return columns | {CONFIRMED: BOOL} if self.confirm else columns


@dataclass(frozen=True, slots=True)
class PeriodJoin(Plan):
    """Pairs of rows of two plans with equal keys whose periods have a relation asked for.

    `mask` has the relations of `plan.allen` that the period of the left row may have to that of
    the right one. Null keys are equal to nothing; periods that end before they last, or with a
    bound that is null, relate to nothing. With `open_ends`, one without an end goes on: it has the
    relations that it will have whenever it ends. Of kind "left", a left row without a partner
    comes once, beside nulls; "semi" and "anti" are the left rows with and without a partner, each
    once. The two plans share no name; `columns` are those that come out. It stands below a
    `Relational` or another join of periods, nowhere else.
    """

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
        """The columns that come out."""
        both = {**self.left.row, **self.right.row}
        return {name: both[name] for name in self.columns}
