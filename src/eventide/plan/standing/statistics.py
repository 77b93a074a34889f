"""What is known of the streams of a standing query, and what is assumed where nothing is known.

For conditions on one stream the share of events is measured as a whole, if events are stored. All
others are estimated from their parts, assuming that these are independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from eventide.plan.expressions import Call, Column, Expression, Literal

DEFAULT_RATE = 100.0
DEFAULT_DISTINCT = 1000.0
EQUAL = 0.1
"""The assumed share of rows that have a given value, if nothing is known."""
SOME = 1 / 3
"""The assumed share of rows on which a condition is true, if nothing is known."""
_FEW = 0.1


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values that a column has in a window.

    `distinct` is the number of different values at a time. `even` is the number of equally frequent
    values that would be equal in two rows as often as these are: fewer than `distinct` if some are
    frequent, None if it is the same. `nulls` is the share of rows without a value. `measured` says
    that all this was counted, not guessed.
    """

    distinct: float = DEFAULT_DISTINCT
    even: float | None = None
    nulls: float = 0.0
    measured: bool = True

    @property
    def chances(self) -> float:
        """The number n such that one in n rows of another stream has the value of a row here."""
        return self.distinct if self.even is None else self.even

    def left(self, rows: float, share: float) -> ColumnValues:
        """Return the values that are left in a share of the rows, chosen independently of them."""
        if share >= 1.0:
            return self
        each = rows / self.distinct
        distinct = self.distinct * (1.0 - (1.0 - share) ** each)
        return self.among(max(1.0, distinct))

    def selected(self, share: float) -> ColumnValues:
        """Return the values of rows that were selected by value, with a share of the values."""
        distinct, even = max(1.0, self.distinct * share), max(1.0, self.chances * share)
        return replace(self, distinct=distinct, even=even)

    def among(self, most: float) -> ColumnValues:
        """Return the values if only this many are present: two are equal no more often."""
        return self if self.distinct <= most else replace(self, distinct=most, even=self.chances)


UNKNOWN = ColumnValues(measured=False)


@dataclass(frozen=True, slots=True)
class LeafStatistics:
    """What is known of the events of a window.

    The rate in a second, the values of columns, by their name in the stream, and the share of
    events on which conditions are true.
    """

    rate: float = DEFAULT_RATE
    values: Mapping[str, ColumnValues] = field(default_factory=dict)
    shares: Mapping[Expression, float] = field(default_factory=dict)


Statistics = Mapping[str, LeafStatistics]
"""By the alias of the window; defaults are assumed for what is missing."""
Shares = Mapping[Expression, float]


def share_of(condition: Expression, values: Mapping[str, ColumnValues], known: Shares) -> float:
    """Return the estimated share of rows on which a condition is true."""
    if condition in known:
        return known[condition]
    match condition:
        case Literal(value=value):
            return 1.0 if value is True else 0.0
        case Call(function="and", arguments=(left, right)):
            return share_of(left, values, known) * share_of(right, values, known)
        case Call(function="or", arguments=(left, right)):
            one, other = share_of(left, values, known), share_of(right, values, known)
            return one + other - one * other
        case Call(function="not", arguments=(inner,)):
            return 1.0 - share_of(inner, values, known)
        case Call(function="=" | "is not distinct from", arguments=arguments):
            return _equal(arguments, values)
        case Call(function="<>" | "is distinct from", arguments=arguments):
            return 1.0 - _equal(arguments, values)
        case Call(function="in", arguments=(value, *others)):
            return min(1.0, len(others) * _equal((value,), values))
        case Call(function="is null", arguments=(Column(name=name),)) if name in values:
            return values[name].nulls if values[name].measured else _FEW
        case Call(function="is null"):
            return _FEW
    return SOME


def _equal(arguments: Iterable[Expression], values: Mapping[str, ColumnValues]) -> float:
    """Return how likely two values are equal: of two columns, or of a column and a constant."""
    columns = [values.get(each.name, UNKNOWN) for each in arguments if isinstance(each, Column)]
    if not columns:
        return SOME
    if len(columns) == 1 and not columns[0].measured:
        return EQUAL
    return 1.0 / max(each.chances for each in columns)
