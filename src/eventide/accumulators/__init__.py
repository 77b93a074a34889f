"""Aggregates as partial results that merge: of rows, of batches, of panes, of frames.

An accumulator lifts the arguments of rows to columns of partial results (one partial a row), merges
partials by group or by frame, and finishes them. Other code moves partials around without knowing
what they mean. Partials come in order of time, so that the first and the last of a group are simply
its first and last rows.

contract.py    what an accumulator is
sums.py        counts, sums and means; sum_rests.py: sums that two doubles do not hold
moments.py     variances, deviations, covariance, correlation
picks.py       the smallest, largest, first and last; a value where another is smallest or largest
kept.py        what needs all values: quantiles, modes, distinct values, lists
columns.py     between Arrow columns and the arrays of kernels
buckets.py     numbers in buckets, for approximate quantiles
json_lists.py  lists of values and counts as JSON text
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.accumulators.contract import Accumulator, Frames, Groups
from eventide.accumulators.kept import (
    DistinctCount,
    DistinctOf,
    Frequent,
    Quantile,
    TextList,
    ValueList,
)
from eventide.accumulators.moments import Covariance, Deviation
from eventide.accumulators.picks import ArgExtreme, ChosenFirstOrLast, Extreme, FirstOrLast
from eventide.accumulators.sums import COUNT, FLOAT_SUM, Average, IntegerSum, WideDecimalSum
from eventide.errors import PlanError, Span
from eventide.schema import DataType

LONG_DECIMAL = 28
"""Ten thousand million decimals of this many digits sum to 38 digits at most."""

__all__ = [
    "LONG_DECIMAL",
    "Accumulator",
    "Details",
    "Frames",
    "Groups",
    "accumulator_for",
    "distinct_of",
]


@dataclass(frozen=True, slots=True)
class Details:
    """What only some aggregates have: a second argument, a parameter, a condition.

    With a condition, the last argument of `lift` says which rows count.
    """

    second: DataType | None = None
    parameter: float | str | None = None
    conditional: bool = False


PLAIN = Details()


def accumulator_for(  # noqa: PLR0911, PLR0912 - one place for all aggregates
    function: str,
    argument: DataType | None,
    described: str = "",
    span: Span | None = None,
    details: Details = PLAIN,
) -> Accumulator:
    """Return the accumulator of an aggregate with such arguments.

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
        case ("stddev" | "stddev_pop" | "variance" | "var_pop") as spread, _:
            return Deviation(function=spread)
        case ("covar_samp" | "covar_pop" | "corr" | "regr_slope") as relation, _:
            return Covariance(function=relation)
        case "min" | "max" | "bool_and" | "bool_or", _:
            return Extreme(argument.arrow, 1 if function in ("min", "bool_and") else -1)
        case "first" | "last", _:
            pick = ChosenFirstOrLast if details.conditional else FirstOrLast
            return pick(argument.arrow, function == "first")
        case "arg_min" | "arg_max", _:
            assert details.second is not None
            return ArgExtreme(
                argument.arrow, details.second.arrow, 1 if function == "arg_min" else -1
            )
        case "median", _:
            return Quantile(argument.arrow, "quantile_cont", 0.5)
        case ("quantile_cont" | "quantile_disc" | "approx_quantile") as share, _:
            return Quantile(argument.arrow, share, float(details.parameter or 0.0))
        case "approx_count_distinct", _:
            return DistinctCount(argument.arrow)
        case "mode", _:
            return Frequent(argument.arrow)
        case "top_k" | "approx_top_k", _:
            return Frequent(argument.arrow, int(details.parameter or 1))
        case "string_agg", _:
            return TextList(argument.arrow, str(details.parameter))
        case "array_agg", _:
            return ValueList(argument.arrow)
    message = f"no accumulator for {function}({argument})"
    raise PlanError(message)


def distinct_of(inner: Accumulator, argument: DataType) -> Accumulator:
    """Return an aggregate of one argument over each different value once."""
    if inner is COUNT:
        return DistinctCount(argument.arrow)
    if isinstance(inner, ValueList):
        return ValueList(argument.arrow, distinct=True)
    return DistinctOf(argument.arrow, inner=inner)
