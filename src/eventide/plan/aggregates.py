"""The registry of aggregates: each one is defined here, once, for every place that has aggregates.

An entry has what planning needs: arguments, types, nulls, DISTINCT, and whether the answer is
exact. How partial results are added, merged and finished is in accumulators/, by the same names.
Windows, frames, matches and situations use these. A standing query also takes values back; for an
aggregate that cannot, it keeps the rows and computes the answer again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from eventide.plan.types import MAX_PRECISION
from eventide.schema import BOOL, FLOAT64, INT64, STORABLE_KINDS, STRING, DataType

Parameter = Literal["fraction", "count", "half-life", "separator", "share or count"]
"""The constant that some aggregates take behind their arguments: a number from 0 to 1, a count, the
microseconds in which the weight of a value halves, a text, or a share (a float) or count of values
that make a row each."""
Distinct = Literal["counts", "same", "refused"]
"""What DISTINCT does: it counts each value once, changes nothing, or has no meaning."""

LONGEST_WORD = 18
"""Decimals of up to this many digits are integers of 64 bits."""
MOST_AGGREGATES = 63
"""One word says which aggregates of a row are null."""
MOST_LISTED = 1000
"""So many of the most frequent values are kept up as values come and go."""

FREQUENT = ("frequent", "frequent_lower", "frequent_upper")
"""The frequent values of a group, and the bounds of their counts: standing queries with SLIDE have
a row for each such value."""
SKETCHED = ("approx_count_distinct", "approx_top_k", *FREQUENT)
"""Aggregates that standing queries with SLIDE keep as sketches of panes."""

_SPREADS = ("stddev", "stddev_pop", "variance", "var_pop")
MERGED_WITH_SKETCHES = ("count", "sum", "avg", *_SPREADS, "min", "max")
"""Aggregates that may stand beside a sketch: partial results of panes merge to them."""

DECAYED = ("decayed_count", "decayed_sum", "decayed_avg")
"""Aggregates of standing queries whose values weigh less the older they are; they need SLIDE."""
STANDING_ONLY = (*DECAYED, *FREQUENT)
"""Aggregates that no other query has."""

TAKEN_BACK = (
    *("count", "sum", "avg", *_SPREADS),
    *("min", "max", "median", "quantile_cont", "top_k", "approx_quantile", *DECAYED),
)
"""Aggregates from which standing queries take a value back; for others they keep the rows."""

BY_PANE = ("count", "sum", "avg", *_SPREADS, "min", "max", *DECAYED)
"""Aggregates that can be computed from partial results of panes, if no tuple leaves early."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate.

    `result` returns the type for the types of the arguments, or None if it does not take such
    arguments. `needs_order` says that the answer depends on the order of events, `keeps_nulls` that
    a null counts as a value, `exact` that the answer is its definition, rounded at the end only.
    """

    name: str
    takes: str
    result: Callable[..., DataType | None]
    arguments: int = 1
    parameter: Parameter | None = None
    needs_order: bool = False
    keeps_nulls: bool = False
    exact: bool = True
    distinct: Distinct = "counts"


def _sum(argument: DataType) -> DataType | None:
    if argument.kind == "decimal":
        return DataType("decimal", MAX_PRECISION, argument.scale)
    return argument if argument.is_numeric else None


def _float(argument: DataType) -> DataType | None:
    return FLOAT64 if argument.is_numeric else None


def _floats(first: DataType, second: DataType) -> DataType | None:
    return FLOAT64 if first.is_numeric and second.is_numeric else None


def _same(argument: DataType) -> DataType | None:
    return argument if argument.kind in STORABLE_KINDS else None


def _first_of(argument: DataType, by: DataType) -> DataType | None:
    return argument if argument.kind in STORABLE_KINDS and by.kind in STORABLE_KINDS else None


def _count(argument: DataType) -> DataType | None:
    return INT64 if argument.kind in STORABLE_KINDS else None


def _ranking(argument: DataType) -> DataType | None:
    return STRING if argument.kind in STORABLE_KINDS else None


def _truth(argument: DataType) -> DataType | None:
    return BOOL if argument.kind == "bool" else None


def _text(argument: DataType) -> DataType | None:
    return STRING if argument.kind == "string" else None


def _list(argument: DataType) -> DataType | None:
    return DataType("list", element=argument) if argument.kind in STORABLE_KINDS else None


_STORABLE = "values that a stream can hold"
_ORDERED = "values that a stream can hold, and those that they are ordered by"


def _spread(name: str) -> AggregateFunction:
    return AggregateFunction(name, "numbers", _float)


def _relation(name: str) -> AggregateFunction:
    return AggregateFunction(name, "two numbers", _floats, arguments=2, distinct="refused")


def _frequent(name: str, result: Callable[[DataType], DataType | None]) -> AggregateFunction:
    return AggregateFunction(
        name, _STORABLE, result, parameter="share or count", exact=False, distinct="refused"
    )


def _decayed(name: str, takes: str) -> AggregateFunction:
    return AggregateFunction(
        name, takes, _float, parameter="half-life", exact=False, distinct="refused"
    )


AGGREGATES: Mapping[str, AggregateFunction] = {
    each.name: each
    for each in (
        AggregateFunction("count", "anything, or *", lambda _: INT64),
        AggregateFunction("sum", "numbers", _sum),
        AggregateFunction("avg", "numbers", _float),
        *map(_spread, _SPREADS),
        AggregateFunction("min", _STORABLE, _same, distinct="same"),
        AggregateFunction("max", _STORABLE, _same, distinct="same"),
        AggregateFunction("bool_and", "truth values", _truth, distinct="same"),
        AggregateFunction("bool_or", "truth values", _truth, distinct="same"),
        AggregateFunction(
            "first", _STORABLE, _same, needs_order=True, keeps_nulls=True, distinct="same"
        ),
        AggregateFunction(
            "last", _STORABLE, _same, needs_order=True, keeps_nulls=True, distinct="same"
        ),
        AggregateFunction(
            "arg_min", _ORDERED, _first_of, arguments=2, needs_order=True, distinct="refused"
        ),
        AggregateFunction(
            "arg_max", _ORDERED, _first_of, arguments=2, needs_order=True, distinct="refused"
        ),
        AggregateFunction("median", "numbers", _float),
        AggregateFunction("quantile_cont", "numbers", _float, parameter="fraction"),
        AggregateFunction("quantile_disc", _STORABLE, _same, parameter="fraction"),
        AggregateFunction("mode", _STORABLE, _same),
        AggregateFunction("top_k", _STORABLE, _ranking, parameter="count"),
        AggregateFunction("string_agg", "text", _text, parameter="separator", needs_order=True),
        AggregateFunction("array_agg", _STORABLE, _list, needs_order=True, keeps_nulls=True),
        *map(_relation, ("corr", "covar_pop", "covar_samp", "regr_slope")),
        AggregateFunction("approx_count_distinct", _STORABLE, _count, exact=False, distinct="same"),
        AggregateFunction("approx_quantile", "numbers", _float, parameter="fraction", exact=False),
        AggregateFunction("approx_top_k", _STORABLE, _ranking, parameter="count", exact=False),
        _frequent("frequent", _same),
        _frequent("frequent_lower", _count),
        _frequent("frequent_upper", _count),
        _decayed("decayed_count", "a half-life"),
        _decayed("decayed_sum", "numbers"),
        _decayed("decayed_avg", "numbers"),
    )
}
"""All aggregates. The top k are JSON text: [[value, count], …]."""
