"""Every aggregate straight from its definition, over a list of rows in order of time."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.naive.windows import exact_average, nan_last

Value = Any


def aggregate(function: str, rows: Sequence[tuple[Any, ...]], parameter: Value = None) -> Value:
    """Return an aggregate; a row is its arguments."""
    if function in ("first", "last"):
        return rows[0 if function == "first" else -1][0] if rows else None
    if function == "array_agg":
        return [row[0] for row in rows] or None
    present = [row for row in rows if all(value is not None for value in row)]
    values = [row[0] for row in present]
    match function:
        case "count":
            return len(values)
        case "approx_count_distinct":
            return len(distinct(values))
        case "top_k":
            return top(values, parameter)
    return ANSWERS[function](present, values, parameter) if values else None


def distinct(values: Sequence[Value]) -> list[Value]:
    """Return each different value once; NaNs are equal, and so are both zeros."""
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault("NaN" if value != value else value, value)  # noqa: PLR0124
    return list(found.values())


def total(values: Sequence[Value]) -> Value:
    """Return the sum, rounded once."""
    if not any(isinstance(value, float) for value in values):
        return sum(values)
    wild = [value for value in values if not math.isfinite(value)]
    if wild:
        return sum(wild)
    try:
        return float(sum(map(Fraction, values)))
    except OverflowError:
        return math.inf if sum(map(Fraction, values)) > 0 else -math.inf


def moment(first: Sequence[Value], second: Sequence[Value]) -> Fraction | None:
    """Return the sum of the products of deviations, None if a value is not finite."""
    if not all(math.isfinite(value) for value in (*first, *second)):
        return None
    count = len(first)
    one, other = (Fraction(sum(map(Fraction, each))) / count for each in (first, second))
    found = Fraction(0)
    for x, y in zip(first, second, strict=True):
        found += (Fraction(x) - one) * (Fraction(y) - other)
    return found


def spread(values: Sequence[Value], less: int) -> float | None:
    found = moment(values, values)
    if len(values) <= less:
        return None
    return math.nan if found is None else float(found / (len(values) - less))


def root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value) if value == value else value  # noqa: PLR0124


def covariance(rows: Sequence[tuple[Any, ...]], less: int) -> float | None:
    if len(rows) <= less:
        return None
    found = moment(*zip(*rows, strict=True))
    return math.nan if found is None else float(found / (len(rows) - less))


def slope(rows: Sequence[tuple[Any, ...]]) -> float | None:
    first, second = zip(*rows, strict=True)
    common, own = moment(first, second), moment(second, second)
    if own == 0:
        return None
    return math.nan if own is None or common is None else float(common / own)


def correlation(rows: Sequence[tuple[Any, ...]]) -> float | None:
    first, second = zip(*rows, strict=True)
    parts = (moment(first, second), moment(first, first), moment(second, second))
    if any(part is None for part in parts):
        return math.nan
    common, one, other = (part or Fraction(0) for part in parts)
    if not one or not other:
        return None
    return float(common) / math.sqrt(float(one)) / math.sqrt(float(other))


def cont(values: Sequence[Value], share: float) -> float:
    """PERCENTILE_CONT: between the two values around the place share * (n - 1)."""
    ordered = sorted(map(float, values), key=nan_last)
    along = share * (len(ordered) - 1)
    low, high = ordered[math.floor(along)], ordered[math.ceil(along)]
    return low if low == high else low + (high - low) * (along - math.floor(along))


def disc(values: Sequence[Value], share: float) -> Value:
    """PERCENTILE_DISC: the first value with at least that share of the values up to it."""
    ordered = sorted(values, key=nan_last)
    return next(value for place, value in enumerate(ordered, 1) if place >= share * len(ordered))


def ranking(values: Sequence[Value]) -> list[tuple[Any, int]]:
    """Return values and counts: the most frequent first, of equally frequent ones the smaller."""
    known = distinct(values)
    names = Counter("NaN" if value != value else value for value in values)  # noqa: PLR0124
    counted = [(value, names["NaN" if value != value else value]) for value in known]  # noqa: PLR0124
    return sorted(counted, key=lambda item: (-item[1], nan_last(item[0])))


def top(values: Sequence[Value], count: int) -> str:
    return json.dumps([list(pair) for pair in ranking(values)[:count]], ensure_ascii=False)


def best(rows: Sequence[tuple[Any, ...]], *, largest: bool) -> Value:
    """Return the first row's value with the smallest or largest second value."""
    keys = [nan_last(row[1]) for row in rows]
    return rows[keys.index(max(keys) if largest else min(keys))][0]


ANSWERS: dict[str, Callable[[Sequence[tuple[Any, ...]], Sequence[Any], Any], Any]] = {
    "sum": lambda _, values, __: total(values),
    "avg": lambda _, values, __: mean(values),
    "min": lambda _, values, __: min(values, key=nan_last),
    "max": lambda _, values, __: max(values, key=nan_last),
    "stddev": lambda _, values, __: root(spread(values, 1)),
    "stddev_pop": lambda _, values, __: root(spread(values, 0)),
    "variance": lambda _, values, __: spread(values, 1),
    "var_pop": lambda _, values, __: spread(values, 0),
    "bool_and": lambda _, values, __: all(values),
    "bool_or": lambda _, values, __: any(values),
    "arg_min": lambda rows, _, __: best(rows, largest=False),
    "arg_max": lambda rows, _, __: best(rows, largest=True),
    "median": lambda _, values, __: cont(values, 0.5),
    "quantile_cont": lambda _, values, share: cont(values, share),
    "quantile_disc": lambda _, values, share: disc(values, share),
    "mode": lambda _, values, __: ranking(values)[0][0],
    "string_agg": lambda _, values, separator: separator.join(values),
    "corr": lambda rows, _, __: correlation(rows),
    "covar_pop": lambda rows, _, __: covariance(rows, 0),
    "covar_samp": lambda rows, _, __: covariance(rows, 1),
    "regr_slope": lambda rows, _, __: slope(rows),
}


def mean(values: Sequence[Value]) -> float:
    if any(isinstance(value, float) for value in values):
        return float(total(values)) / len(values)
    if isinstance(values[0], Decimal):
        return float(sum(values)) / len(values)
    return exact_average(list(values))
