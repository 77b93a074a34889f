"""Whether sums of floats from the index are correctly rounded; those that are not, from the events.

The index has a sum as a pair of doubles. A pair is added up without loss but for its second half,
whose rounding errors have a bound: it follows from the count, the squares and the extremes, which
the index has too. A sum is proven if it rounds to the same double anywhere within that bound.
Others are rare: their values cancel out, all but a millionth of them. For these the events are
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats, int64s
from eventide.accumulators.contract import Groups
from eventide.accumulators.sums import FLOAT_SUM
from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools, Floats, frozen
from eventide.store.index.aggregates import find_registered
from eventide.store.reading.question import AggregateQuestion
from eventide.store.segments.segment_writer import LEAF_ROWS
from eventide.store.snapshot import Snapshot

HALF_STEP_SQUARED = 2.0**-106
LEVELS = 8
"""More levels than an index has, with those that merge segments and periods."""


def summed(question: AggregateQuestion) -> list[str]:
    """Return the attributes whose sums of floats are asked for, alone or in an average."""
    names = (
        call.attribute
        for call in question.calls
        if call.attribute is not None
        and question.schema.type_of(call.attribute).kind == "float64"
        and _needs_sum(call.function)
    )
    return list(dict.fromkeys(names))


def _needs_sum(function: str) -> bool:
    if function in ("sum", "avg"):
        return True
    found = find_registered(function)
    return found is not None and any(map(_needs_sum, found.needs))


def error_of(snapshot: Snapshot, attribute: str, partials: pa.RecordBatch) -> Floats:
    """Return how far the sum of each row of partials may be from its pair.

    The second half of a pair is at most c u S if c numbers were added, where S is the sum of their
    absolute values and u is 2^-53. Each addition to it is off by u times as much.
    """
    longest = max([LEAF_ROWS, *(rows.num_rows for rows in snapshot.memory)])
    entries = len(snapshot.memory) + sum(1 + segment.leaves for segment in snapshot.segments)
    most = longest + LEVELS * entries
    additions = 2.0 * longest * longest + 2.0 * LEVELS * entries * most
    found: Floats = additions * HALF_STEP_SQUARED * _absolute(attribute, partials)
    return found


def _absolute(attribute: str, partials: pa.RecordBatch) -> Floats:
    """Return a bound of the sum of absolute values."""
    counts = int64s(partials.column(f"{attribute}.count")).astype(np.float64)
    squares = floats(partials.column(f"{attribute}.squares.high"))
    smallest, largest = (
        np.abs(floats(partials.column(f"{attribute}.{part}"))) for part in ("min", "max")
    )
    with np.errstate(over="ignore", invalid="ignore"):
        by_extremes = counts * np.maximum(smallest, largest)
        by_squares = np.sqrt(counts) * np.sqrt(np.abs(squares)) * (1.0 + 2.0**-20)
    bound: Floats = np.fmin(by_extremes, by_squares)
    return bound


def doubtful(snapshot: Snapshot, attribute: str, partials: pa.RecordBatch) -> Bools:
    """Return which sums of an attribute are not proven to be correctly rounded."""
    high, low = (floats(partials.column(f"{attribute}.sum.{half}")) for half in ("high", "low"))
    error = error_of(snapshot, attribute, partials)
    with np.errstate(invalid="ignore", over="ignore"):
        least = high + np.nextafter(low - error, -np.inf)
        most = high + np.nextafter(low + error, np.inf)
    uncertain = (least != most) & (error != 0.0)
    endless = ~np.isfinite(high)
    if endless.any():
        uncertain = np.where(endless, high_is_wrong(attribute, partials, high), uncertain)
    found: Bools = uncertain & (int64s(partials.column(f"{attribute}.count")) > 0)
    return found


def high_is_wrong(attribute: str, partials: pa.RecordBatch, high: Floats) -> Bools:
    """Return which sums are not finite although their values do not say so."""
    smallest, largest = (floats(partials.column(f"{attribute}.{part}")) for part in ("min", "max"))
    with np.errstate(invalid="ignore"):
        # inf + -inf is NaN, and the sum of a finite and an infinite extreme is the infinite one.
        ends = np.where(np.isfinite(smallest), 0.0, smallest)
        ends = ends + np.where(np.isfinite(largest), 0.0, largest)
    same: Bools = (ends == high) | (np.isnan(ends) & np.isnan(high))
    return ~same


def proven(
    snapshot: Snapshot,
    question: AggregateQuestion,
    partials: pa.RecordBatch,
    periods_of: Callable[[int], Iterable[TimeRange]],
) -> pa.RecordBatch:
    """Return partials whose sums of floats round correctly; row i is of the periods that it is of.

    Where events were thinned to aggregates, their sums stay as they are.
    """
    for attribute in summed(question):
        rows = np.flatnonzero(doubtful(snapshot, attribute, partials))
        if not len(rows):
            continue
        names = [f"{attribute}.sum.{half}" for half in ("high", "low")]
        halves = [floats(partials.column(name)).copy() for name in names]
        for row in rows.tolist():
            exact = _from_events(snapshot, attribute, list(periods_of(row)))
            if exact is not None:
                halves[0][row], halves[1][row] = exact
        for name, half in zip(names, halves, strict=True):
            place = partials.schema.get_field_index(name)
            partials = partials.set_column(place, partials.schema.field(place), pa.array(half))
    return partials


def _from_events(
    snapshot: Snapshot, attribute: str, periods: Sequence[TimeRange]
) -> tuple[float, float] | None:
    """Return a sum, rounded once, and what rounding left out; None if some events are gone."""
    thinned = [segment.time_range for segment in snapshot.segments if segment.thinned]
    if any(period.overlaps(gone) for period in periods for gone in thinned):
        return None
    found: list[list[pa.Array]] = []
    for period in periods:
        for rows in snapshot.scan([attribute], period):
            one = Groups(frozen(np.zeros(rows.num_rows, np.int64)), 1)
            found.append(FLOAT_SUM.by_group(FLOAT_SUM.lift(rows.column(attribute)), one))
    together = [pa.concat_arrays(parts) for parts in zip(*found, strict=True)]
    total = FLOAT_SUM.by_group(together, Groups(frozen(np.zeros(len(found), np.int64)), 1))
    ((high, low),) = FLOAT_SUM.pairs(total)
    return float(high[0]), float(low[0])
