"""Expressions: what is computed for one row. A closed union of frozen values.

A parser builds expressions without types; `bind` returns the same tree with every `type` set.
Operators are calls too: `speed > 3` is `Call(">", (Column("speed"), Literal(3)))`, so that the
table in functions.py is the only place that knows what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, assert_never
from typing import Literal as Choice

from eventide.errors import Span
from eventide.schema import BOOL, INT64, INTERVAL, NULL, STRING, TIMESTAMP, DataType

if TYPE_CHECKING:
    from eventide.plan.user_functions import UserFunction

Edge = Choice["first", "last", "start"]

Scalar = bool | int | float | str | bytes | Decimal | None
"""A constant. Timestamps and intervals are int microseconds; the literal's type tells which."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field of the source's rows."""

    name: str
    type: DataType = NULL
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Scalar
    type: DataType
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator applied to arguments, by its name in `functions.FUNCTIONS`.

    `user` is the function, once the call is bound, if it is a user's.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: DataType = NULL
    span: Span | None = field(default=None, compare=False)
    user: UserFunction | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as another type; a value that cannot be cast is an error, or null if `or_null`."""

    argument: Expression
    type: DataType
    span: Span | None = field(default=None, compare=False)
    or_null: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate by its name in `plan.aggregates`; `COUNT(*)` has no argument.

    `parameter` is the constant behind the argument, if the aggregate has one: `QUANTILE(x, 0.9)`.
    `time` is the instant from which a value ages, if values do: `DECAYED_SUM(x, '10 s')`. `second`
    is the second argument of `ARG_MAX(x, y)`. With `distinct` each value counts once. `condition`
    chooses rows for an aggregate that takes a null for a value; elsewhere a `CASE` does. `kept` is
    how many values a pane keeps of `FREQUENT(x, 0.01)`.
    """

    function: str
    argument: Expression | None
    type: DataType = NULL
    span: Span | None = field(default=None, compare=False)
    parameter: float | int | str | None = None
    time: Expression | None = None
    second: Expression | None = None
    distinct: bool = False
    condition: Expression | None = None
    kept: int | None = None

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that it is computed from."""
        found = (self.argument, self.second, self.condition, self.time)
        return tuple(part for part in found if part is not None)


@dataclass(frozen=True, slots=True)
class RangeFrame:
    """The events of [ts - preceding_us, ts]. RANGE includes the peers of the row."""

    preceding_us: int


@dataclass(frozen=True, slots=True)
class RowsFrame:
    """The event and the `preceding` ones before it in order of (ts, _seq)."""

    preceding: int


Frame = RangeFrame | RowsFrame


@dataclass(frozen=True, slots=True)
class Over:
    """An aggregate over the frame of each event, `AVG(x) OVER (PARTITION BY … RANGE …)`."""

    aggregate: Aggregate
    keys: tuple[Expression, ...]
    frame: Frame
    span: Span | None = field(default=None, compare=False)

    @property
    def type(self) -> DataType:
        """The type of the aggregate."""
        return self.aggregate.type


@dataclass(frozen=True, slots=True)
class At:
    """An expression computed at one row of a match: `PREV(LAST(A.price, 1), 2)`.

    The row is found in three steps: the first or last row of `variable` (a pattern variable, a
    subset, or None for all rows of the match); from there `offset` rows of the variable further
    inside; from there `shift` rows of the partition forward (NEXT), or back if negative (PREV). If
    there is no such row, the value is null. With `final` the whole match counts, otherwise the
    match up to the current row. `argument` is computed from that row alone. The edge "start" is the
    row at which the match begins, also that of an empty match; it stands only in measures that the
    planner adds.
    """

    argument: Expression
    variable: str | None = None
    edge: Edge = "last"
    offset: int = 0
    shift: int = 0
    final: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def type(self) -> DataType:
        """The type of the argument."""
        return self.argument.type


@dataclass(frozen=True, slots=True)
class MatchAggregate:
    """An aggregate over the rows of a match that belong to `variable`; None is all rows.

    `COUNT(*)` and `COUNT(A.*)` have no argument. `final` as in `At`, the rest as in `Aggregate`.
    """

    function: str
    argument: Expression | None
    variable: str | None = None
    distinct: bool = False
    final: bool = False
    type: DataType = NULL
    span: Span | None = field(default=None, compare=False)
    parameter: float | int | str | None = None
    second: Expression | None = None
    condition: Expression | None = None

    @property
    def plain(self) -> Aggregate:
        """The same aggregate without the match."""
        return Aggregate(
            self.function,
            self.argument,
            self.type,
            self.span,
            self.parameter,
            second=self.second,
            distinct=self.distinct,
            condition=self.condition,
        )

    def over(self, plain: Aggregate) -> MatchAggregate:
        """Return another aggregate over the same rows of the match."""
        return replace(
            self,
            argument=plain.argument,
            type=plain.type,
            second=plain.second,
            distinct=plain.distinct,
            condition=plain.condition,
        )


@dataclass(frozen=True, slots=True)
class Classifier:
    """The variable of the row it is computed at: only inside `At` and `MatchAggregate`."""

    span: Span | None = field(default=None, compare=False)

    @property
    def type(self) -> DataType:
        """Text."""
        return STRING


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """The number of the match within its partition, from one."""

    span: Span | None = field(default=None, compare=False)

    @property
    def type(self) -> DataType:
        """A whole number."""
        return INT64


Part = Choice["start", "end", "duration"]


@dataclass(frozen=True, slots=True)
class PeriodPart:
    """When a situation of a match began or ended, or how long it has lasted: `START(A)`.

    While it goes on, its end is null, and its duration is up to the instant of detection.
    """

    variable: str
    part: Part
    span: Span | None = field(default=None, compare=False)

    @property
    def type(self) -> DataType:
        """A time, or a length of time."""
        return INTERVAL if self.part == "duration" else TIMESTAMP


Expression = (
    Column
    | Literal
    | Call
    | Cast
    | Aggregate
    | Over
    | At
    | MatchAggregate
    | Classifier
    | MatchNumber
    | PeriodPart
)


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the name of the column it becomes."""

    name: str
    expression: Expression

    @property
    def type(self) -> DataType:
        """The type of the column."""
        return self.expression.type


@dataclass(frozen=True, slots=True)
class NamedAggregate:
    """An aggregate and the name of the column it becomes."""

    name: str
    aggregate: Aggregate

    @property
    def expression(self) -> Aggregate:
        """The aggregate."""
        return self.aggregate


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One item of ORDER BY. Equal rows stay in order of (ts, _seq)."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct parts of an expression."""
    match expression:
        case Column() | Literal() | Classifier() | MatchNumber() | PeriodPart():
            return ()
        case Call(arguments=arguments):
            return arguments
        case Cast(argument=argument) | At(argument=argument):
            return (argument,)
        case Aggregate():
            return expression.parts
        case MatchAggregate():
            return expression.plain.parts
        case Over(aggregate=aggregate, keys=keys):
            return (aggregate, *keys)
    assert_never(expression)


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the expression with `change` applied to each direct part."""
    match expression:
        case Column() | Literal() | Classifier() | MatchNumber() | PeriodPart():
            return expression
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(map(change, arguments)))
        case Cast(argument=argument) | At(argument=argument):
            return replace(expression, argument=change(argument))
        case Aggregate():
            return rebuild_aggregate(expression, change)
        case MatchAggregate():
            return expression.over(rebuild_aggregate(expression.plain, change))
        case Over(aggregate=aggregate, keys=keys):
            changed = change(aggregate)
            assert isinstance(changed, Aggregate)
            return replace(expression, aggregate=changed, keys=tuple(map(change, keys)))
    assert_never(expression)


def rebuild_aggregate(
    aggregate: Aggregate, change: Callable[[Expression], Expression]
) -> Aggregate:
    """Return the aggregate with `change` applied to each of its parts."""
    argument, second, condition, time = (
        None if part is None else change(part)
        for part in (aggregate.argument, aggregate.second, aggregate.condition, aggregate.time)
    )
    return replace(aggregate, argument=argument, second=second, condition=condition, time=time)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and all its parts, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def substituted(expression: Expression, meaning: Mapping[str, Expression]) -> Expression:
    """Return the expression with columns replaced by their expressions."""
    if isinstance(expression, Column):
        return meaning.get(expression.name, expression)
    return rebuild(expression, lambda part: substituted(part, meaning))


def columns_of(expression: Expression) -> frozenset[str]:
    """Return the names of the columns an expression reads."""
    return frozenset(part.name for part in walk(expression) if isinstance(part, Column))


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the parts of a chain of ANDs, left to right."""
    match condition:
        case Call(function="and", arguments=(left, right)):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case _:
            yield condition


ALWAYS = Literal(True, BOOL)
"""The condition of a pattern variable that has none."""


def integer(value: int) -> Literal:
    """Return an int64 constant."""
    return Literal(value, INT64)
