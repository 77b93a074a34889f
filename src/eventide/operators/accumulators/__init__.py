"""Aggregates as partial results that merge: of rows, of batches, of panes, of frames.

An accumulator lifts a column of values to columns of partial results (one partial a row),
merges partials by group or by frame, and finishes them. Everything else in this package moves
partials around without knowing what they mean. Partials come in order of time, so that the
first and the last of a group are simply its first and last rows.

contract.py  what an accumulator is
sums.py      counts, sums, means and deviations
picks.py     the smallest, largest, first and last
"""

from __future__ import annotations

from eventide.errors import PlanError
from eventide.operators.accumulators.contract import Accumulator, Frames, Groups
from eventide.operators.accumulators.picks import Edge, Extreme
from eventide.operators.accumulators.sums import (
    COUNT,
    FLOAT_SUM,
    Average,
    IntegerSum,
    StandardDeviation,
    WideDecimalSum,
)
from eventide.plan.expressions import Aggregate

LONG_DECIMAL = 28
"""Ten thousand million decimals of this many digits sum to 38 digits at most."""

__all__ = ["Accumulator", "Frames", "Groups", "accumulator_for"]


def accumulator_for(aggregate: Aggregate) -> Accumulator:
    """Return how a bound aggregate is computed."""
    if aggregate.function == "count":
        return COUNT
    assert aggregate.argument is not None
    argument = aggregate.argument.type
    match aggregate.function, argument.kind:
        case "sum", "float64":
            return FLOAT_SUM
        case "avg", "float64":
            return Average(FLOAT_SUM)
        case ("sum" | "avg") as function, "decimal" if argument.precision > LONG_DECIMAL:
            exact = WideDecimalSum(IntegerSum(aggregate, argument.scale))
            return exact if function == "sum" else Average(FLOAT_SUM)
        case ("sum" | "avg") as function, "int64" | "decimal" as kind:
            total = IntegerSum(aggregate, argument.scale if kind == "decimal" else None)
            return total if function == "sum" else Average(total)
        case "stddev", _:
            return StandardDeviation()
        case ("min" | "max") as function, _:
            return Extreme(argument.arrow, 1 if function == "min" else -1)
        case ("first" | "last") as function, _:
            return Edge(argument.arrow, function == "first")
    message = f"no accumulator for {aggregate.function}({argument})"
    raise PlanError(message)
