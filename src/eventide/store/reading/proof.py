"""Whether sums of floats from the index are correctly rounded; those that are not, from the events.

The index has a sum as a pair of doubles. A pair is added up without loss but for its second half.
Mostly that has lost nothing either: count, extremes and the least value say so in one pass
(kernels/aggregates/proofs.py), and nothing is left to prove. For the others its rounding errors
have a bound, which follows from the count, the squares and the extremes. A sum is proven if it
rounds to the same double anywhere within that bound. The rest is rare: values of very different
size that cancel out, or whose sum is halfway between two doubles. For these the events are read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats
from eventide.accumulators.sums import FLOAT_SUM
from eventide.kernels.aggregates.proofs import bound_absolutes, mark_exact
from eventide.kernels.compiled import Bools, Floats, Int64s
from eventide.store.index.attribute_summaries import LEAST, raw_floats, raw_integers
from eventide.store.reading.exact import SummedPeriods, exact_sums
from eventide.store.reading.question import AggregateQuestion
from eventide.store.segments.segment_writer import LEAF_ROWS
from eventide.store.snapshot import Snapshot

HALF_STEP_SQUARED = 2.0**-106
LEVELS = 8
"""More levels than an index has, with those that merge segments and periods."""


def error_of(snapshot: Snapshot, attribute: str, partials: pa.RecordBatch) -> Floats | None:
    """Return how far the sum of each row of partials may be from its pair; None if none may be.

    It is infinite if a sum overflows that need not, and a NaN if a value is not finite: then the
    sum follows from the extremes.
    """
    counts, *parts = (
        partials.column(f"{attribute}.{part}")
        for part in ("count", "min", "max", LEAST, "sum.high")
    )
    smallest, largest, least, high = map(raw_floats, parts)
    exact: Bools = np.empty(partials.num_rows, np.bool_)
    if mark_exact(raw_integers(counts), (smallest, largest), least, high, exact):
        return None
    rest = np.flatnonzero(~exact)
    error: Floats = np.zeros(partials.num_rows)
    error[rest] = bound_of(snapshot, attribute, partials.take(pa.array(rest)))
    return error


def bound_of(snapshot: Snapshot, attribute: str, partials: pa.RecordBatch) -> Floats:
    """Return how far sums may be off that may have lost something."""
    counts, *parts = (
        partials.column(f"{attribute}.{part}")
        for part in ("count", "min", "max", "squares.high", "sum.high")
    )
    smallest, largest, squares, high = map(raw_floats, parts)
    error: Floats = np.empty(partials.num_rows)
    bound_absolutes(raw_integers(counts), (smallest, largest), squares, error)
    error *= share_lost(snapshot, sum(1 + segment.leaves for segment in snapshot.segments))
    endless = np.flatnonzero(~np.isfinite(high))
    if len(endless):
        wrong = high_is_wrong(attribute, partials.take(pa.array(endless)), high[endless])
        error[endless] = np.where(wrong, np.inf, np.nan)
    return error


def share_lost(snapshot: Snapshot, stored: int) -> float:
    """Return what share of the sum of absolute values a sum may have lost.

    `stored` is how many segments and leaves there are.

    The second half of a pair is at most c u S if c numbers were added, where S is the sum of their
    absolute values and u is 2^-53. Each addition to it is off by u times as much.
    """
    longest = max([LEAF_ROWS, *(rows.num_rows for rows in snapshot.memory)])
    entries = len(snapshot.memory) + stored
    most = longest + LEVELS * entries
    additions = 2.0 * longest * longest + 2.0 * LEVELS * entries * most
    return float(additions * HALF_STEP_SQUARED)


def unsure(high: Floats, low: Floats, error: Floats | float) -> Bools:
    """Return which sums high + low do not round to the same double anywhere within an error."""
    with np.errstate(invalid="ignore", over="ignore"):
        least = high + np.nextafter(low - error, -np.inf)
        most = high + np.nextafter(low + error, np.inf)
    found: Bools = (least != most) & (error > 0.0)
    return found


def doubtful(snapshot: Snapshot, attribute: str, partials: pa.RecordBatch) -> Int64s:
    """Return the rows whose sums of an attribute are not proven to be correctly rounded."""
    error = error_of(snapshot, attribute, partials)
    if error is None:
        return np.empty(0, np.int64)
    high, low = (floats(partials.column(f"{attribute}.sum.{half}")) for half in ("high", "low"))
    return np.flatnonzero(unsure(high, low, error))


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
    periods_of: Callable[[Int64s], SummedPeriods],
) -> pa.RecordBatch:
    """Return partials whose sums of floats round correctly; `periods_of` some rows is asked for.

    Where events were thinned to aggregates, their sums stay as they are.
    """
    for attribute in question.summed:
        rows = doubtful(snapshot, attribute, partials)
        if not len(rows):
            continue
        periods = periods_of(rows)
        whole = ~np.isin(np.arange(len(rows)), periods.owners[are_thinned(snapshot, periods)])
        exact = exact_sums(snapshot, attribute, periods.of(whole), len(rows))
        high, low = FLOAT_SUM.pairs(exact)[0]
        # A rest that is just half a step away may round the other way once more.
        low = np.where(high + low == high, low, np.nextafter(low, 0.0))
        for half, sums in (("high", high), ("low", low)):
            place = partials.schema.get_field_index(f"{attribute}.sum.{half}")
            column = floats(partials.column(place)).copy()
            column[rows[whole]] = sums[whole]
            partials = partials.set_column(place, partials.schema.field(place), pa.array(column))
    return partials


def are_thinned(snapshot: Snapshot, periods: SummedPeriods) -> Bools:
    """Return which periods have events that were thinned to aggregates."""
    gone: Bools = np.zeros(len(periods.owners), np.bool_)
    for segment in snapshot.segments:
        if segment.thinned:
            times = segment.time_range
            gone |= (periods.starts < times.end_us) & (periods.ends > times.start_us)
    return gone
