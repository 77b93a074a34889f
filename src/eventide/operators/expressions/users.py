"""Functions of users, called with whole columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.errors import EvaluationError
from eventide.plan.expressions import Call
from eventide.plan.user_functions import UserFunction


def computed(call: Call, arguments: Sequence[pa.Array], count: int) -> pa.Array:
    """Return what a function says of so many rows."""
    assert call.user is not None
    try:
        return values_of(call.user, arguments, count)
    except EvaluationError as error:
        error.span = error.span or call.span
        raise


def values_of(function: UserFunction, arguments: Sequence[pa.Array], count: int) -> pa.Array:
    """Return the values of a function as a column of its type."""
    kind, name = function.returns.arrow, function.name
    if not count:
        return pa.nulls(0, kind)
    try:
        found = function.compute(*arguments)
    except Exception as error:
        message = f"{name} failed: {type(error).__name__}: {error}"
        hint = "it is your function: it gets an Arrow array for each argument, with nulls in it"
        raise EvaluationError(message, hint=hint) from error
    column = as_column(found, kind)
    if column is None:
        message = f"{name} returned {_shown(found)}, which is no column of {function.returns}"
        raise EvaluationError(message, hint="return an Arrow array, a NumPy array or a list")
    if len(column) != count:
        message = f"{name} returned {len(column):,} values for {count:,} rows"
        raise EvaluationError(message, hint="it has to return one value for each row")
    return column


def as_column(found: object, kind: pa.DataType) -> pa.Array | None:
    """Return what a function returned as a column of a type, None if it is none."""
    try:
        if isinstance(found, pa.ChunkedArray):
            column = found.combine_chunks()
        elif isinstance(found, pa.Array):
            column = found
        elif isinstance(found, np.ndarray | list | tuple):
            column = pa.array(found)
        else:
            return None
        return column if column.type == kind else column.cast(kind)
    except (pa.ArrowException, TypeError, ValueError):
        return None


def _shown(found: object) -> str:
    if isinstance(found, pa.Array | pa.ChunkedArray):
        return f"an array of {found.type}"
    return type(found).__name__
