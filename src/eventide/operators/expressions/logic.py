"""Comparisons, three-valued logic and choices between values.

NaN equals itself and is greater than every other number, as in DuckDB; so every comparison is
total, and `<`, `=` and `>` exclude each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from eventide.operators.expressions.datum import (
    Datum,
    Implementation,
    as_array,
    has_nan,
    is_float,
    length_of,
)
from eventide.schema import DataType


def equal(left: Datum, right: Datum) -> Datum:
    """Whether two values are equal; null if one is null."""
    same = pc.equal(left, right)
    if is_float(left) and has_nan(left) and has_nan(right):
        return pc.or_kleene(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return same


def less(left: Datum, right: Datum) -> Datum:
    """Whether one value is less than another; null if one is null."""
    if isinstance(left, pa.Scalar) and is_float(right) and not has_nan(left):
        # What is not at most a number is greater, NaN too: so nobody looks for NaN.
        return pc.invert(pc.less_equal(right, left))
    smaller = pc.less(left, right)
    if is_float(right) and has_nan(right):
        return pc.or_kleene(smaller, pc.and_not(pc.is_nan(right), pc.is_nan(left)))
    return smaller


def distinct(left: Datum, right: Datum) -> Datum:
    """Whether two values differ, null being a value like any other."""
    one_null = pc.xor(pc.is_null(left), pc.is_null(right))
    differ = pc.fill_null(pc.invert(equal(left, right)), fill_value=False)
    return pc.or_(one_null, differ)


def contained(arguments: Sequence[Datum], _: DataType) -> Datum:
    """Whether x IN (a, b), which is x = a OR x = b."""
    value, *others = arguments
    constants = [each for each in others if isinstance(each, pa.Scalar) and each.is_valid]
    if len(constants) < len(others) or is_float(value):
        return reduce(pc.or_kleene, (equal(value, each) for each in others))
    value_set = pa.array([each.as_py() for each in constants], value.type)
    return pc.if_else(pc.is_valid(value), pc.is_in(value, value_set=value_set), None)


def nullif(arguments: Sequence[Datum], _: DataType) -> Datum:
    """The first value, or null where it equals the second."""
    value, other = arguments
    same = pc.fill_null(equal(value, other), fill_value=False)
    return pc.if_else(same, pa.scalar(None, value.type), value)


def _better(left: Datum, right: Datum, *, greatest: bool) -> Datum:
    """The greater or smaller of two values; a null loses."""
    wins = less(right, left) if greatest else less(left, right)
    take_left = pc.or_kleene(pc.fill_null(wins, fill_value=False), pc.is_null(right))
    return pc.if_else(take_left, left, right)


def greatest(arguments: Sequence[Datum], _: DataType) -> Datum:
    """The greatest value that is not null."""
    return reduce(lambda left, right: _better(left, right, greatest=True), arguments)


def least(arguments: Sequence[Datum], _: DataType) -> Datum:
    """The smallest value that is not null."""
    return reduce(lambda left, right: _better(left, right, greatest=False), arguments)


def case(arguments: Sequence[Datum], _: DataType) -> Datum:
    """The value of the first condition that holds, else the last value."""
    *branches, otherwise = arguments
    rows = length_of(arguments)
    conditions = [as_array(each, rows) for each in branches[::2]]
    names = [str(place) for place in range(len(conditions))]
    chosen = pc.make_struct(*conditions, field_names=names)
    return pc.case_when(chosen, *branches[1::2], otherwise)


LOGIC: Mapping[str, Implementation] = {
    "and": lambda arguments, _: pc.and_kleene(*arguments),
    "or": lambda arguments, _: pc.or_kleene(*arguments),
    "not": lambda arguments, _: pc.invert(*arguments),
    "=": lambda arguments, _: equal(*arguments),
    "<>": lambda arguments, _: pc.invert(equal(*arguments)),
    "<": lambda arguments, _: less(*arguments),
    "<=": lambda arguments, _: pc.invert(less(arguments[1], arguments[0])),
    ">": lambda arguments, _: less(arguments[1], arguments[0]),
    ">=": lambda arguments, _: pc.invert(less(*arguments)),
    "is distinct from": lambda arguments, _: distinct(*arguments),
    "is not distinct from": lambda arguments, _: pc.invert(distinct(*arguments)),
    "is null": lambda arguments, _: pc.is_null(*arguments),
    "in": contained,
    "case": case,
    "coalesce": lambda arguments, _: pc.coalesce(*arguments),
    "nullif": nullif,
    "greatest": greatest,
    "least": least,
}
