"""The accumulator of a bound aggregate, and the partials of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Details, accumulator_for, distinct_of
from eventide.arrays import to_arrow
from eventide.operators.expressions.evaluate import evaluate
from eventide.plan.expressions import Aggregate
from eventide.plan.render import render


def accumulator_of(aggregate: Aggregate) -> Accumulator:
    """Return the accumulator of a bound aggregate, with errors that point at it."""
    argument, second = aggregate.argument, aggregate.second
    # Only a sum of whole numbers may not fit.
    exact = argument is not None and argument.type.kind in ("int64", "decimal")
    found = accumulator_for(
        aggregate.function,
        None if argument is None else argument.type,
        render(aggregate) if exact else "",
        aggregate.span,
        Details(
            None if second is None else second.type,
            aggregate.parameter,
            aggregate.condition is not None,
        ),
    )
    if aggregate.distinct and argument is not None:
        return distinct_of(found, argument.type)
    return found


def arguments_of(aggregate: Aggregate, rows: pa.RecordBatch) -> list[pa.Array]:
    """Return what an accumulator lifts: the arguments of each row, and the condition."""
    parts = (aggregate.argument, aggregate.second, aggregate.condition)
    found = [evaluate(part, rows) for part in parts if part is not None]
    # COUNT(*) counts rows: any column without nulls will do.
    return found or [to_arrow(np.zeros(rows.num_rows, np.int64))]


def lift(aggregate: Aggregate, accumulator: Accumulator, rows: pa.RecordBatch) -> list[pa.Array]:
    """Return the partial of each row alone."""
    return accumulator.lift(*arguments_of(aggregate, rows))
