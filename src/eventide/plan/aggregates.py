"""The aggregates a window may compute, with their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eventide.plan.types import MAX_PRECISION
from eventide.schema import FLOAT64, INT64, STORABLE_KINDS, DataType


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate: its type rule, and whether its answer depends on the order of events.

    `result` returns the type for an argument type, or None if it does not take such arguments.
    """

    name: str
    takes: str
    result: Callable[[DataType], DataType | None]
    needs_order: bool = False


def _sum(argument: DataType) -> DataType | None:
    if argument.kind == "decimal":
        return DataType("decimal", MAX_PRECISION, argument.scale)
    return argument if argument.is_numeric else None


def _float(argument: DataType) -> DataType | None:
    return FLOAT64 if argument.is_numeric else None


def _same(argument: DataType) -> DataType | None:
    return argument if argument.kind in STORABLE_KINDS else None


AGGREGATES: Mapping[str, AggregateFunction] = {
    each.name: each
    for each in (
        AggregateFunction("count", "anything, or *", lambda _: INT64),
        AggregateFunction("sum", "numbers", _sum),
        AggregateFunction("avg", "numbers", _float),
        AggregateFunction("stddev", "numbers", _float),
        AggregateFunction("min", "values that a stream can hold", _same),
        AggregateFunction("max", "values that a stream can hold", _same),
        AggregateFunction("first", "values that a stream can hold", _same, needs_order=True),
        AggregateFunction("last", "values that a stream can hold", _same, needs_order=True),
    )
}
