"""Aggregates of a match that a few registers do not hold.

Sums that a pair of doubles cannot hold are added up again, from the rows taken. Quantiles and modes
come from trees of counts by rank: a node has the sum, or the maximum, of the two below it. Taking a
row counts up along one path to the root, giving it back counts down.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.exact_sums import add_double, read_rest, read_sum
from eventide.kernels.aggregates.expansions import DIGITS
from eventide.kernels.aggregates.sums import co_deviation, two_product, two_sum
from eventide.kernels.aggregates.wide_sums import SURELY_FINITE, round_four
from eventide.kernels.compiled import call_lean
from eventide.kernels.patterns.code import (
    ADD_FLOATS,
    ADD_PRODUCTS,
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
    PRODUCTS,
    SECOND_SQUARES,
    SECONDS,
    SQUARES,
    STDDEV_POP,
    UPDATE,
    VALUES,
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
def _summand(code: Code, tables: Tables, update: int, row: int, term: int) -> tuple[float, float]:
    """Return what a row adds to a sum: a value, or a product of two."""
    one = tables.floats[code.updates[update, 1], row]
    other = one
    if term in (SECONDS, PRODUCTS, SECOND_SQUARES):
        other = tables.floats[code.updates[update, 5], row]
    if term <= SECONDS:
        return other, 0.0
    return two_product(other if term == SECOND_SQUARES else one, other)


@call_lean
def exact_sum(
    code: Code, tables: Tables, work: Work, depth: int, first: int, term: int
) -> tuple[float, float]:
    """Add up the floats of a sum again, up to row number `depth`, without any rounding.

    Return the sum, rounded once, and what is left of it, rounded once. The digits of the sum are
    where keys are written. What is not finite is added as it is.
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
                    not ADD_FLOATS <= updates[each, 0] <= ADD_PRODUCTS
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
                if undo == 1:
                    continue
                high, low = _summand(code, tables, each, row, term)
                if np.isfinite(high):
                    add_double(digits, KEY, high, 1)
                    add_double(digits, KEY, low, 1)
                else:
                    endless += high
    if endless != 0.0:
        return endless, 0.0
    total = float(read_sum(digits, KEY, DIGITS, 0))
    rest = 0.0
    if np.isfinite(total):
        rest = float(read_rest(digits, KEY, DIGITS, 0, total))
    return total, rest


@call_lean
def _sum_of(
    code: Code, tables: Tables, work: Work, depth: int, at: int, term: int
) -> tuple[float, float]:
    """Return a sum of a moment, rounded once, and what is left of it, rounded once."""
    register, first = code.instructions[at, 1], code.instructions[at, 2]
    # Sums of values are two doubles, those of products four.
    place = first + (2 * term if term <= PRODUCTS else 4 * term - 4)
    if code.instructions[at, 4] <= VAR_POP and term == SQUARES:
        place = first + 2
    floats, to = work.float_registers, depth + 1
    high, low = floats[to, place], floats[to, place + 1]
    if work.frames[to, register + 1] != 0 or SURELY_FINITE <= abs(high) < np.inf:
        return exact_sum(code, tables, work, depth, first, term)
    if term <= SECONDS or not np.isfinite(high):
        return two_sum(high, low) if np.isfinite(high) else (high, 0.0)
    return round_four(high, low, floats[to, place + 2], floats[to, place + 3])


@call_lean
def _deviation(code: Code, tables: Tables, work: Work, depth: int, at: int, term: int) -> float:
    """Return the sum of the products of deviations, given which products."""
    count = work.frames[depth + 1, code.instructions[at, 1]]
    products = _sum_of(code, tables, work, depth, at, term)
    # A function is compiled once for each constant that it is given: these are none.
    one = int(np.int64(SECONDS if term == SECOND_SQUARES else VALUES))
    other = int(np.int64(VALUES if term == SQUARES else SECONDS))
    first = _sum_of(code, tables, work, depth, at, one)
    second = first if one == other else _sum_of(code, tables, work, depth, at, other)
    return float(co_deviation(count, first, second, products))


@call_lean
def _moment(code: Code, tables: Tables, work: Work, depth: int, at: int) -> tuple[float, bool]:
    """Return a variance, a deviation or a relation of two values, and whether there is one.

    They are finished as in accumulators/moments.py.
    """
    form = code.instructions[at, 4]
    count = work.frames[depth + 1, code.instructions[at, 1]]
    less = 0 if form in (STDDEV_POP, VAR_POP, COVAR_POP) else 1
    rows = np.float64(max(count - less, 1))
    squares = int(np.int64(SQUARES))
    if form <= VAR_POP:
        found = _deviation(code, tables, work, depth, at, squares)
        # A NaN stays one.
        found = (0.0 if found < 0.0 else found) / rows
        return np.sqrt(found) if form <= STDDEV_POP else found, count > less
    common = _deviation(code, tables, work, depth, at, int(np.int64(PRODUCTS)))
    if form <= COVAR_POP:
        return common / rows, count > less
    own = _deviation(code, tables, work, depth, at, int(np.int64(SECOND_SQUARES)))
    if form == CORR:
        own = np.sqrt(own) * np.sqrt(_deviation(code, tables, work, depth, at, squares))
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
        moment = _moment(code, tables, work, depth, at)
        work.stack_floats[top], work.stack_valid[top] = moment
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
