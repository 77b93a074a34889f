"""Aggregates as partial results that merge: of rows, of batches, of panes, of frames.

An accumulator lifts a column of values to columns of partial results (one partial a row), merges
partials by group or by frame, and finishes them. Other code moves partials around without knowing
what they mean. Partials come in order of time, so that the first and the last of a group are simply
its first and last rows.

contract.py  what an accumulator is
sums.py      counts, sums, means and deviations
picks.py     the smallest, largest, first and last
columns.py   between Arrow columns and the arrays of kernels
"""

from __future__ import annotations

from eventide.accumulators.contract import Accumulator, Frames, Groups
from eventide.accumulators.picks import Extreme, FirstOrLast
from eventide.accumulators.sums import (
    COUNT,
    FLOAT_SUM,
    Average,
    IntegerSum,
    StandardDeviation,
    WideDecimalSum,
)
from eventide.errors import PlanError, Span
from eventide.schema import DataType

LONG_DECIMAL = 28
"""Ten thousand million decimals of this many digits sum to 38 digits at most."""

__all__ = ["LONG_DECIMAL", "Accumulator", "Frames", "Groups", "accumulator_for"]


def accumulator_for(
    function: str, argument: DataType | None, described: str = "", span: Span | None = None
) -> Accumulator:
    """Return the accumulator of an aggregate with such an argument.

    `described` is the aggregate as a person would write it, `span` its place in the query: both are
    for the error of a sum that does not fit.
    """
    if function == "count":
        return COUNT
    assert argument is not None
    match function, argument.kind:
        case "sum", "float64":
            return FLOAT_SUM
        case "avg", "float64":
            return Average(FLOAT_SUM)
        case "sum" | "avg", "decimal" if argument.precision > LONG_DECIMAL:
            exact = WideDecimalSum(IntegerSum(described, span, argument.scale))
            return exact if function == "sum" else Average(FLOAT_SUM)
        case "sum" | "avg", "int64" | "decimal" as kind:
            total = IntegerSum(described, span, argument.scale if kind == "decimal" else None)
            return total if function == "sum" else Average(total)
        case "stddev", _:
            return StandardDeviation()
        case "min" | "max", _:
            return Extreme(argument.arrow, 1 if function == "min" else -1)
        case "first" | "last", _:
            return FirstOrLast(argument.arrow, function == "first")
    message = f"no accumulator for {function}({argument})"
    raise PlanError(message)
