"""Plan nodes of situations: their periods, patterns of them, joins by relation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from eventide.errors import Span
from eventide.plan.expressions import (
    Aggregate,
    Named,
    NamedAggregate,
    rebuild_aggregates,
    rebuild_named,
    walk,
)
from eventide.plan.situations.parts import Constraint, RowPeriod, Situation
from eventide.plan.tree import ChangeExpression, OverOne, OverTwo, Plan, Row
from eventide.schema import BOOL, STRING, TIMESTAMP, TS

START_TS = "start_ts"
END_TS = "end_ts"
SITUATION = "situation"
CONFIRMED = "confirmed"

PairKind = Choice["inner", "left", "semi", "anti"]
Detection = Choice["early", "final"]


@dataclass(frozen=True, slots=True)
class Situations(OverOne):
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
            keys=rebuild_named(self.keys, change),
            situations=_changed(self.situations, change),
            aggregates=rebuild_aggregates(self.aggregates, change),
        )


@dataclass(frozen=True, slots=True)
class TemporalPattern(OverOne):
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
            keys=rebuild_named(self.keys, change),
            situations=_changed(self.situations, change),
            returns=rebuild_named(self.returns, change),
        )


def _changed(situations: tuple[Situation, ...], change: ChangeExpression) -> tuple[Situation, ...]:
    return tuple(replace(item, condition=change(item.condition)) for item in situations)


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
