"""The coarse map of a pattern: which units of the store can have a part of a match at all.

A unit has the smallest and largest value of every attribute, so it is known which symbols can have
rows in it. A match has rows of all symbols in order, and lasts no longer than WITHIN: where the
units leave no room for that, nothing has to be read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.engines.history.patterns.conditions import Condition, Shape
from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools, Int64s
from eventide.store.reading.leaves import Units


def kept_units(
    units: Units, shape: Shape, within_us: int, time_range: TimeRange, coarse: int = 1
) -> Bools:
    """Return the units that may have a row of a match; runs of them are independent.

    With `coarse`, this many units are treated as one.
    """
    inside = (units.ts_max >= time_range.start_us) & (units.ts_min < time_range.end_us)
    possible = [
        joined(inside & meets(units, shape.of_symbol(symbol)), coarse)
        for symbol in range(len(shape.skeleton.symbols))
    ]
    starts = np.arange(0, units.count, coarse)
    if not len(starts) or not possible:
        return inside
    ts_min, ts_max = units.ts_min[starts], np.maximum.reduceat(units.ts_max, starts)
    kept = feasible(possible, ts_min, ts_max, within_us, shape)
    return without_ties(np.repeat(kept, coarse)[: units.count] & inside, units)


def without_ties(kept: Bools, units: Units) -> Bools:
    """Keep the units between two kept units that have an instant in common.

    So runs of kept units share no instant, and every match begins in one of them.
    """
    places = np.flatnonzero(kept)
    tied = np.flatnonzero(units.ts_min[places[1:]] <= units.ts_max[places[:-1]])
    filled = kept.copy()
    for first, last in zip(places[tied].tolist(), places[tied + 1].tolist(), strict=True):
        filled[first:last] = True
    return filled


def meets(units: Units, conditions: Sequence[Condition]) -> Bools:
    """Return the units in which some row may meet each of some conditions."""
    found = np.ones(units.count, np.bool_)
    for condition in conditions:
        options = [units.may_hold(*atom) for atom in condition.clause]
        found &= np.logical_or.reduce(options)
    return found


def joined(possible: Bools, coarse: int) -> Bools:
    """Return which groups of neighbours have one that is possible."""
    if coarse == 1 or not len(possible):
        return possible
    return np.asarray(np.logical_or.reduceat(possible, np.arange(0, len(possible), coarse)))


def feasible(
    possible: Sequence[Bools], ts_min: Int64s, ts_max: Int64s, within_us: int, shape: Shape
) -> Bools:
    """Return the units between a first and a last symbol that can belong to one match."""
    count = len(ts_min)
    reached = np.where(possible[0], np.arange(count), count)
    for symbol in possible[1:]:
        reached = np.append(following(symbol), count)[reached]
    first = np.flatnonzero(reached < count)
    first = first[ts_min[reached[first]] - ts_max[first] <= within_us]
    # The latest unit that can have the last symbol, and how far rows around symbols may reach.
    begin_us = ts_min[reached[first]] - within_us
    end_us = ts_max[first] + within_us
    latest = np.searchsorted(ts_min, end_us, "right") - 1
    begins = first if shape.skeleton.begins else np.searchsorted(ts_max, begin_us)
    if shape.skeleton.ends:
        latest = preceding(possible[-1])[latest]
    marks = np.zeros(count + 1, np.int64)
    np.add.at(marks, np.minimum(begins, first), 1)
    np.add.at(marks, np.maximum(latest, reached[first]) + 1, -1)
    return np.asarray(np.cumsum(marks[:-1]) > 0)


def following(possible: Bools) -> Int64s:
    """Return for each unit the nearest possible one from it on; the number of units if none."""
    count = len(possible)
    places = np.where(possible, np.arange(count), count)
    return np.minimum.accumulate(places[::-1])[::-1]


def preceding(possible: Bools) -> Int64s:
    """Return for each unit the nearest possible one up to it; -1 if none."""
    return np.maximum.accumulate(np.where(possible, np.arange(len(possible)), -1))
