"""Aggregates of a match that a few registers do not hold.

Sums that a pair of doubles cannot hold are added up again, from the rows taken. Quantiles and modes
come from trees of counts by rank: a node has the sum, or the maximum, of the two below it. Taking a
row counts up along one path to the root, giving it back counts down.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.exact_sums import add_double, read_sum
from eventide.kernels.aggregates.expansions import DIGITS
from eventide.kernels.aggregates.sums import co_deviation
from eventide.kernels.compiled import Floats, call_lean
from eventide.kernels.patterns.code import (
    ADD_FLOATS,
    BETWEEN,
    CORR,
    COUNT_RANKS,
    COVAR_POP,
    FREQUENT,
    GAP,
    KEY,
    LATE_SET,
    MOMENT,
    ONE_FLOAT,
    ONE_INTEGER,
    PATH_ROW,
    PATH_VARIABLE,
    STDDEV_POP,
    UPDATE,
    VAR_POP,
    Code,
    Tables,
    Work,
)


@call_lean
def count_in_tree(code: Code, tables: Tables, work: Work, update: int, row: int, more: int) -> None:
    """Count the value of a row up or down in the tree of an update."""
    table, codes = code.updates[update, 8], code.updates[update, 9]
    start, counts = tables.starts[table], work.counts
    leaves = (tables.starts[table + 1] - start) // 2
    place = leaves + tables.codes[codes, row]
    counts[start + place] += more
    place //= 2
    while place > 0:
        if code.updates[update, 0] == COUNT_RANKS:
            counts[start + place] += more
        else:
            below = start + 2 * place
            counts[start + place] = max(counts[below], counts[below + 1])
        place //= 2


@call_lean
def _ranked_at(tables: Tables, work: Work, table: int, place: int) -> int:
    """Return where the value at a place, counted from 0, of the values in a tree of sums is."""
    start, counts = tables.starts[table], work.counts
    leaves = (tables.starts[table + 1] - start) // 2
    node = np.int64(1)
    left = np.int64(place)
    while node < leaves:
        node *= 2
        if counts[start + node] <= left:
            left -= counts[start + node]
            node += 1
    return int(start + node - leaves)


@call_lean
def _most_frequent(tables: Tables, work: Work, table: int) -> int:
    """Return where the most frequent value in a tree of maxima is; of equal ones the smaller."""
    start, counts = tables.starts[table], work.counts
    leaves = (tables.starts[table + 1] - start) // 2
    node = np.int64(1)
    while node < leaves:
        wanted = counts[start + node]
        node *= 2
        if counts[start + node] < wanted:
            node += 1
    return int(start + node - leaves)


@call_lean
def _share(tables: Tables, work: Work, count: int, table: int, share: float, form: int) -> float:
    """Return a quantile that is a float, as kernels/aggregates/ranked.py defines them."""
    along = share * (count - 1)
    place = int(along)
    low = _ranked_at(tables, work, table, place)
    one = np.int64(tables.ranked[low]).view(np.float64)
    if form != BETWEEN or along == place:
        return one
    high = _ranked_at(tables, work, table, place + 1)
    if high == low:
        return one
    other = np.int64(tables.ranked[high]).view(np.float64)
    return float(one + (other - one) * (along - place))


@call_lean
def _deviation(count: int, sums: Floats, one: int, other: int, products: int) -> float:
    """Return the sum of the products of deviations, given where the sums are."""
    return float(
        co_deviation(
            count,
            (sums[one], sums[one + 1]),
            (sums[other], sums[other + 1]),
            (sums[products], sums[products + 1]),
        )
    )


@call_lean
def _moment(count: int, sums: Floats, form: int) -> tuple[float, bool]:
    """Return a variance, a deviation or a relation of two values, and whether there is one.

    They are finished as in accumulators/moments.py.
    """
    # A function is compiled once for each constant that it is given: these are none.
    zero = int(np.int64(0))
    less = 0 if form in (STDDEV_POP, VAR_POP, COVAR_POP) else 1
    rows = np.float64(max(count - less, 1))
    if form <= VAR_POP:
        found = _deviation(count, sums, zero, zero, zero + 2)
        # A NaN stays one.
        found = (0.0 if found < 0.0 else found) / rows
        return np.sqrt(found) if form <= STDDEV_POP else found, count > less
    common = _deviation(count, sums, zero, zero + 2, zero + 4)
    if form <= COVAR_POP:
        return common / rows, count > less
    own = _deviation(count, sums, zero + 2, zero + 2, zero + 8)
    if form == CORR:
        own = np.sqrt(own) * np.sqrt(_deviation(count, sums, zero, zero, zero + 6))
    if count == 0 or own == 0.0:
        return 0.0, False
    found = common / own
    if form == CORR and not np.isnan(found):
        found = min(max(found, -1.0), 1.0)
    return found, True


@call_lean
def kept_value(code: Code, tables: Tables, work: Work, depth: int, at: int, top: int) -> None:
    """Push the value of a moment, a quantile or a mode; `top` is the place."""
    operation, form = code.instructions[at, 0], code.instructions[at, 4]
    count, second = work.frames[depth + 1, code.instructions[at, 1]], code.instructions[at, 2]
    if operation == MOMENT:
        sums = work.float_registers[depth + 1, second:]
        work.stack_floats[top], work.stack_valid[top] = _moment(count, sums, form)
        return
    work.stack_valid[top] = count > 0
    if count == 0:
        return
    if operation == FREQUENT:
        found = _most_frequent(tables, work, second)
    else:
        share = tables.constant_floats[code.instructions[at, 3]]
        if form not in (ONE_FLOAT, ONE_INTEGER):
            work.stack_floats[top] = _share(tables, work, count, second, share, form)
            return
        along = share * count
        place = int(along) if along == int(along) else int(along) + 1
        found = _ranked_at(tables, work, second, max(place - 1, 0))
    if form == ONE_INTEGER:
        work.stack[top] = tables.ranked[found]
    else:
        work.stack_floats[top] = np.int64(tables.ranked[found]).view(np.float64)


@call_lean
def exact_sum(code: Code, tables: Tables, work: Work, depth: int, first: int) -> float:
    """Add up the floats of a sum again, up to row number `depth`, without any rounding.

    The digits of the sum are where keys are written. What is not finite is added as it is.
    """
    digits, updates, frames = work.info, code.updates, work.frames
    for each in range(KEY, KEY + DIGITS):
        digits[each] = 0
    before = depth
    if work.info[GAP] > 0:
        # A skipped row is checked late: it sees the match as it was, or all rows of later ones.
        seen_late = code.of_floats[first] & ~work.info[LATE_SET] == 0
        before = depth - 1 if seen_late else work.info[GAP] - 1
    endless = 0.0
    for undo in range(2):
        for place in range(before + 1):
            taken = place if place < before else depth
            row, variable = frames[taken, PATH_ROW], frames[taken, PATH_VARIABLE]
            for each in range(
                code.by_variable[variable, UPDATE], code.by_variable[variable + 1, UPDATE]
            ):
                if (
                    updates[each, 0] != ADD_FLOATS
                    or updates[each, 4] != first
                    or not tables.valid[updates[each, 2], row]
                ):
                    continue
                if updates[each, 6] >= 0:
                    # A count is negative as long as its value has been added.
                    at = tables.starts[updates[each, 6]] + tables.codes[updates[each, 7], row]
                    done = work.counts[at] < 0
                    if done == (undo == 1):
                        work.counts[at] = -work.counts[at]
                    if done:
                        continue
                value = tables.floats[updates[each, 1], row]
                if undo == 1:
                    continue
                if np.isfinite(value):
                    add_double(digits, KEY, value, 1)
                else:
                    endless += value
    if endless != 0.0:
        return endless
    return float(read_sum(digits, KEY, DIGITS, 0)[0])
