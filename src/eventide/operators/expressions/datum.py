"""Shared by implementations of functions: values that are a column or one constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow, to_numpy
from eventide.schema import DataType

Datum: TypeAlias = pa.Array | pa.Scalar
"""A column, or a constant in place of a column of equal values."""

Implementation = Callable[[Sequence[Datum], DataType], Datum]
"""Computes a function from its arguments, at least one of which is a column."""


def as_array(datum: Datum, length: int) -> pa.Array:
    """Return a column of the given length."""
    if isinstance(datum, pa.Array):
        return datum
    return pa.repeat(datum, length)


def length_of(arguments: Sequence[Datum]) -> int:
    """Return the number of rows that the arguments stand for."""
    return next((len(each) for each in arguments if isinstance(each, pa.Array)), 1)


def nulls(length: int, arrow: pa.DataType) -> pa.Array:
    """Return a column of nulls."""
    return pa.nulls(length, arrow)


def scatter(parts: Sequence[pa.Array], places: Sequence[pa.Array]) -> pa.Array:
    """Return the column whose rows `places[i]` are `parts[i]`; the places cover every row."""
    values = pa.concat_arrays(list(parts))
    order = np.argsort(pa.concat_arrays(list(places)).to_numpy(zero_copy_only=False))
    return values.take(to_arrow(order))


def map_distinct(
    convert: Callable[[object], object], column: pa.Array, arrow: pa.DataType
) -> pa.Array:
    """Apply a Python function once to each distinct value; nulls stay null."""
    encoded = column.dictionary_encode()
    values = [None if each is None else convert(each) for each in encoded.dictionary.to_pylist()]
    return pa.array(values, arrow).take(encoded.indices)


def per_parameter(
    kernel: Callable[..., pa.Array],
    values: pa.Array,
    parameters: Sequence[Datum],
    arrow: pa.DataType,
) -> pa.Array:
    """Call a kernel that takes constants once for each distinct combination of parameters.

    Arrow's string kernels take patterns and positions as options, SQL takes them as columns.
    """
    if all(isinstance(each, pa.Scalar) for each in parameters):
        return _apply(kernel, values, [each.as_py() for each in parameters], arrow)
    names = [str(place) for place in range(len(parameters))]
    columns = [as_array(each, len(values)) for each in parameters]
    rows = pa.table([*columns, to_arrow(np.arange(len(values)))], names=[*names, "row"])
    groups = rows.group_by(names).aggregate([("row", "list")])
    choices = zip(*(groups[name].to_pylist() for name in names), strict=True)
    places = [each.values for each in groups["row_list"].combine_chunks()]
    parts = [
        _apply(kernel, values.take(place), list(choice), arrow)
        for place, choice in zip(places, choices, strict=True)
    ]
    return scatter(parts, places) if parts else nulls(0, arrow)


def _apply(
    kernel: Callable[..., pa.Array], values: pa.Array, choice: list[object], arrow: pa.DataType
) -> pa.Array:
    if any(each is None for each in choice):
        return nulls(len(values), arrow)
    return kernel(values, *choice)


def is_float(datum: Datum) -> bool:
    """Whether a value is a float, which has NaN."""
    return bool(pa.types.is_floating(datum.type))


def has_nan(datum: Datum) -> bool:
    """Whether a float is NaN somewhere."""
    if isinstance(datum, pa.Scalar):
        return datum.is_valid and math.isnan(datum.as_py())
    if isinstance(datum, pa.Array) and not datum.null_count:
        # The least of values with a NaN is NaN.
        values = to_numpy(datum)
        return bool(len(values)) and bool(np.isnan(values.min()))
    return bool(pc.any(pc.is_nan(datum)).as_py())
