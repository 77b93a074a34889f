"""Groups and first rows of standing queries the obvious way: from all living rows at an instant."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Value = Any
"""Whatever a column holds, or an aggregate makes of it."""


@dataclass(frozen=True)
class Tuple:
    """A tuple that lives from `at` until `exp`, or until `gone` if that is earlier."""

    at: int
    exp: int
    gone: int | None
    id: int
    values: dict[str, Any]

    @property
    def end(self) -> int:
        return self.exp if self.gone is None else min(self.gone, self.exp)

    def lives(self, instant: int) -> bool:
        return self.at <= instant < self.end


def plain(value: Value) -> Value:
    """Return a value that is equal to those that count as equal to it."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def grouped(
    tuples: Sequence[Tuple], instant: int, key: str, aggregates: Sequence[tuple[str, str, Any]]
) -> Counter[tuple[Any, ...]]:
    """Return the rows at an instant; an aggregate is its function, its column and a parameter."""
    groups: dict[Any, list[Tuple]] = {}
    for each in tuples:
        if each.lives(instant):
            groups.setdefault(plain(each.values[key]), []).append(each)
    return Counter(
        (name, *(plain(aggregate(members, *item)) for item in aggregates))
        for name, members in groups.items()
    )


def aggregate(members: Sequence[Tuple], function: str, column: str, parameter: Value) -> Value:
    if column == "*":
        return len(members)
    values = [each.values[column] for each in members if each.values[column] is not None]
    if function == "count":
        return len(values)
    if function == "count_distinct":
        return len(set(map(plain, values)))
    if function == "top_k":
        return top(values, parameter)
    if not values:
        return None
    if function == "sum":
        return total(values)
    if function == "avg":
        found = total(values)
        return float(found) / len(values)
    ordered = sorted(values, key=in_order)
    if function in ("min", "max"):
        return ordered[0 if function == "min" else -1]
    return quantile(ordered, 0.5 if parameter is None else parameter)


def in_order(value: Value) -> Value:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def total(values: Sequence[Any]) -> Value:
    if not isinstance(values[0], float):
        return sum(values)
    wild = [value for value in values if not math.isfinite(value)]
    if wild:
        return sum(wild)
    exact = sum((Fraction(value) for value in values), Fraction())
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def quantile(ordered: Sequence[Any], share: float) -> float:
    along = share * (len(ordered) - 1)
    below = math.floor(along)
    low = float(ordered[below])
    if along == below:
        return low
    high = float(ordered[below + 1])
    return low if plain(low) == plain(high) else low + (high - low) * (along - below)


def top(values: Sequence[Any], count: int) -> str:
    ranked = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    return json.dumps([[value, times] for value, times in ranked[:count]], ensure_ascii=False)


def first_rows(
    tuples: Sequence[Tuple],
    instant: int,
    order: Sequence[tuple[str, bool, bool]],
    count: int,
    columns: Sequence[str],
) -> Counter[tuple[Any, ...]]:
    """Return the first rows at an instant by columns, each (name, descending, nulls first)."""
    living = sorted((each for each in tuples if each.lives(instant)), key=lambda e: (e.at, e.id))
    for name, descending, nulls_first in reversed(order):
        nulls = [each for each in living if each.values[name] is None]
        rest = [each for each in living if each.values[name] is not None]
        rest.sort(key=lambda e: in_order(e.values[name]), reverse=descending)
        living = nulls + rest if nulls_first else rest + nulls
    return Counter(tuple(plain(each.values[name]) for name in columns) for each in living[:count])
