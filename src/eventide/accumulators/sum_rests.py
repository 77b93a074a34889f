"""Sums of floats that a pair of doubles does not hold: it has a rest of more doubles.

Sums of squares and products are summed as four doubles (kernels/aggregates/wide_sums.py). What four
cannot hold, and other sums that two cannot hold, is summed in digits (expansions.py there).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import floats, int64s, list_of, low_parts
from eventide.accumulators.contract import Columns, Frames, Groups
from eventide.arrays import to_arrow
from eventide.kernels.aggregates.expansions import (
    LARGEST,
    LONGEST,
    expand_frames,
    expand_groups,
)
from eventide.kernels.aggregates.wide_sums import (
    SURELY_FINITE,
    WIDTH,
    Parts,
    round_wide,
    sum_wide_by_frame,
    sum_wide_by_group,
)
from eventide.kernels.compiled import Bools, Floats, Int64s, frozen
from eventide.kernels.ordering import ranges

REST = list_of(pa.float64())
"""What a pair of doubles could not hold of a sum: further doubles, or null."""
HALF_STEP = 2.0**970
"""Half the distance from the largest double to the next, if there were one."""
_FRAMES_AT_ONCE = 50_000
"""The expansions of so many frames are in memory at a time."""


def is_single(pair: Columns, rest: pa.Array) -> bool:
    """Whether each value is one double: a pair may hold the sums of such."""
    return bool(pair[1].null_count == len(pair[1]) and rest.null_count == len(rest))


def products_by_group(
    pair: Columns, rest: pa.Array, groups: Groups
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return high, low and rest of the sum of squares or products of each group."""
    sums, doubt = np.zeros((groups.count, WIDTH)), np.zeros(groups.count, bool)
    parts, longer = _wide(pair, rest)
    sum_wide_by_group(parts, groups.of_row, sums, doubt)
    doubt[groups.of_row[longer]] = True
    if doubt.any():
        chosen, found = expanded((*pair, rest), groups, doubt)
        sums = np.pad(sums, ((0, 0), (0, LONGEST - WIDTH)))
        sums[chosen] = found
    return _together(sums)


def products_by_frame(
    pair: Columns, rest: pa.Array, frames: Frames
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return high, low and rest of the sum of squares or products of each frame."""
    parts, longer = _wide(pair, rest)
    if longer.any():
        return expanded_frames((*pair, rest), frames)
    one, two, three, four = (np.empty(len(rest)) for _ in range(WIDTH))
    sums = np.empty((len(frames.left), WIDTH))
    if sum_wide_by_frame(parts, frames.left, frames.right, (one, two, three, four), sums):
        return expanded_frames((*pair, rest), frames)
    return _together(sums)


def _wide(pair: Columns, rest: pa.Array) -> tuple[Parts, Bools]:
    """Return the first four doubles of partial sums, and which of these have more."""
    none = frozen(np.empty(0))
    if rest.null_count == len(rest):
        return (floats(pair[0]), low_parts(pair[1]), none, none), np.zeros(len(rest), np.bool_)
    lengths = int64s(pc.fill_null(pc.list_value_length(rest), 0).cast(pa.int64()))
    values, starts = floats(rest.flatten()), np.cumsum(lengths) - lengths
    third, fourth = np.zeros(len(rest)), np.zeros(len(rest))
    for place, column in enumerate((third, fourth)):
        has = lengths > place
        column[has] = values[starts[has] + place]
    return (floats(pair[0]), floats(pair[1]), frozen(third), frozen(fourth)), lengths > WIDTH - 2


def expanded(parts: Columns, groups: Groups, wanted: Bools) -> tuple[Int64s, Floats]:
    """Return which groups are wanted, and the expansion of the sum of each of them."""
    rows = np.flatnonzero(wanted[groups.of_row])
    chosen = np.flatnonzero(wanted)
    numbers = np.cumsum(wanted) - 1
    owner = numbers[groups.of_row[rows]]
    values, offsets = _components([part.take(to_arrow(rows)) for part in parts])
    owners = np.repeat(owner, np.diff(offsets))
    order = np.argsort(owners, kind="stable")
    found = np.empty((len(chosen), LONGEST))
    expand_groups(frozen(values[order]), frozen(owners[order]), found)
    return chosen, found


def expanded_frames(parts: Columns, frames: Frames) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return high, low and rest of the sum of each frame, from expansions."""
    values, offsets = _components(parts)
    found = [(pa.nulls(0, pa.float64()), pa.nulls(0, pa.float64()), pa.nulls(0, REST))]
    for first in range(0, len(frames.left), _FRAMES_AT_ONCE):
        some = slice(first, first + _FRAMES_AT_ONCE)
        left, right = frozen(frames.left[some]), frozen(frames.right[some])
        sums = np.empty((len(left), LONGEST))
        expand_frames(frozen(values), frozen(offsets), left, right, sums)
        found.append(_together(sums))
    high, low, rest = (pa.concat_arrays(columns) for columns in zip(*found, strict=True))
    return high, low, rest


def _together(sums: Floats) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return high, low and rest of sums, which are rows of doubles."""
    behind = rests(sums, np.arange(len(sums)), len(sums))
    return to_arrow(sums[:, 0]), to_arrow(sums[:, 1]), behind


def rests(expansions: Floats, rows: Int64s, count: int) -> pa.Array:
    """Return what is behind the first two doubles of expansions, at these of `count` rows."""
    behind = expansions[:, 2:]
    if not behind.any():
        return pa.nulls(count, REST)
    lengths = np.zeros(count, np.int64)
    lengths[rows] = np.count_nonzero(behind, axis=1)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = to_arrow(behind[behind != 0.0])
    none = to_arrow(lengths == 0)
    return pa.ListArray.from_arrays(to_arrow(offsets), values, type=REST, mask=none)


def _components(parts: Columns) -> tuple[Floats, Int64s]:
    """Return the doubles that partial sums consist of, and where those of each begin."""
    rest = parts[2]
    lengths = int64s(pc.fill_null(pc.list_value_length(rest), 0).cast(pa.int64()))
    offsets = np.zeros(len(rest) + 1, np.int64)
    np.cumsum(lengths + 2, out=offsets[1:])
    values = np.empty(int(offsets[-1]))
    values[offsets[:-1]], values[offsets[:-1] + 1] = floats(parts[0]), floats(parts[1])
    values[ranges(offsets[:-1] + 2, lengths)] = floats(rest.flatten())
    return values, offsets


def rounded_parts(parts: Columns) -> tuple[Floats, Floats]:
    """Return sums with a rest, rounded once, and what rounding left out of each, likewise."""
    wide, longer = _wide(parts[:2], parts[2])
    total, left = np.empty(len(longer)), np.empty(len(longer))
    round_wide(wide, total, left)
    others = np.flatnonzero(longer | ~(np.abs(wide[0]) < SURELY_FINITE))
    if len(others):
        found = _rounded_expansions([part.take(to_arrow(others)) for part in parts])
        total[others], left[others] = found
    return total, left


def _rounded_expansions(parts: Columns) -> tuple[Floats, Floats]:
    """Return sums of any size, rounded once, and what rounding left out of each."""
    values, offsets = _components(parts)
    found = np.empty((len(parts[0]), LONGEST))
    owners = np.repeat(np.arange(len(found)), np.diff(offsets))
    expand_groups(frozen(values), frozen(owners), found)
    # A sum beyond the doubles begins with the largest one, and goes on in the same direction.
    first, second, third = (found[:, place] * np.sign(found[:, 0]) for place in range(3))
    beyond = (first == LARGEST) & ((second > HALF_STEP) | ((second == HALF_STEP) & (third >= 0.0)))
    total = np.where(beyond, np.copysign(np.inf, found[:, 0]), found[:, 0])
    return total, np.where(beyond, 0.0, found[:, 1])
