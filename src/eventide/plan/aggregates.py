"""The aggregates and their types: those of all windows, and those of standing queries only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from eventide.plan.types import MAX_PRECISION
from eventide.schema import FLOAT64, INT64, STORABLE_KINDS, STRING, DataType

Parameter = Literal["fraction", "count", "half-life"]
"""The constant that some aggregates take behind their argument: a number from 0 to 1, a count, or
the microseconds in which the weight of a value halves."""

SKETCHED = ("approx_count_distinct", "approx_top_k")
"""Aggregates of standing queries that are kept as sketches of panes, so they need SLIDE."""

DECAYED = ("decayed_count", "decayed_sum", "decayed_avg")
"""Aggregates of standing queries whose values weigh less the older they are; they need SLIDE."""

BY_PANE = ("count", "sum", "avg", "stddev", "min", "max", *DECAYED)
"""Aggregates that can be computed from partial results of panes, if no tuple leaves early."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate: its type rule, and whether its answer depends on the order of events.

    `result` returns the type for an argument type, or None if it does not take such arguments.
    `parameter` is the constant that stands behind the argument, if there is one.
    """

    name: str
    takes: str
    result: Callable[[DataType], DataType | None]
    needs_order: bool = False
    parameter: Parameter | None = None


def _sum(argument: DataType) -> DataType | None:
    if argument.kind == "decimal":
        return DataType("decimal", MAX_PRECISION, argument.scale)
    return argument if argument.is_numeric else None


def _float(argument: DataType) -> DataType | None:
    return FLOAT64 if argument.is_numeric else None


def _same(argument: DataType) -> DataType | None:
    return argument if argument.kind in STORABLE_KINDS else None


def _count(argument: DataType) -> DataType | None:
    return INT64 if argument.kind in STORABLE_KINDS else None


def _ranking(argument: DataType) -> DataType | None:
    return STRING if argument.kind in STORABLE_KINDS else None


_STORABLE = "values that a stream can hold"

AGGREGATES: Mapping[str, AggregateFunction] = {
    each.name: each
    for each in (
        AggregateFunction("count", "anything, or *", lambda _: INT64),
        AggregateFunction("sum", "numbers", _sum),
        AggregateFunction("avg", "numbers", _float),
        AggregateFunction("stddev", "numbers", _float),
        AggregateFunction("min", _STORABLE, _same),
        AggregateFunction("max", _STORABLE, _same),
        AggregateFunction("first", _STORABLE, _same, needs_order=True),
        AggregateFunction("last", _STORABLE, _same, needs_order=True),
    )
}
"""Aggregates that every window can compute: TUMBLE and HOP, frames, situations."""

STANDING_AGGREGATES: Mapping[str, AggregateFunction] = {
    **AGGREGATES,
    **{
        each.name: each
        for each in (
            AggregateFunction("count_distinct", _STORABLE, _count),
            AggregateFunction("median", "numbers", _float),
            AggregateFunction("quantile", "numbers", _float, parameter="fraction"),
            AggregateFunction("top_k", _STORABLE, _ranking, parameter="count"),
            AggregateFunction("approx_count_distinct", _STORABLE, _count),
            AggregateFunction("approx_quantile", "numbers", _float, parameter="fraction"),
            AggregateFunction("approx_top_k", _STORABLE, _ranking, parameter="count"),
            AggregateFunction("decayed_count", "a half-life", _float, parameter="half-life"),
            AggregateFunction("decayed_sum", "numbers", _float, parameter="half-life"),
            AggregateFunction("decayed_avg", "numbers", _float, parameter="half-life"),
        )
    },
}
"""Aggregates for the groups of standing queries. The top k are JSON text: [[value, count], …]."""
