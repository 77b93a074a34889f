"""The registers of a match, and what a remembered state keeps of them.

A match has registers: which rows came first and last of a set of variables, counts, sums and
extremes. Taking a row computes the registers after it from those before it, so that going back only
drops registers and never subtracts.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.sums import exact_pair, two_product
from eventide.kernels.aggregates.wide_sums import add_pair
from eventide.kernels.compiled import call_lean, inline_lean
from eventide.kernels.numbers import compare_floats
from eventide.kernels.patterns.code import (
    ADD_FLOATS,
    ADD_INTS,
    ADD_PRODUCTS,
    ADD_SQUARES,
    BY_PATH,
    COUNT_EQUALS,
    CURRENT,
    FIRST,
    FRAME_FROM,
    GREATEST_I,
    KEY,
    KEY_COUNT,
    KEY_EXACT,
    KEY_FLOAT,
    KEY_LABEL,
    KEY_LEVEL,
    KEY_LOAD_F,
    KEY_NAMED,
    KEY_PRESENT,
    KEY_REGISTER,
    LAST,
    LEAST_F,
    LEAST_I,
    PATH_ROW,
    PATH_VARIABLE,
    PLAIN,
    REGISTERS,
    SEEN,
    TO,
    UPDATE,
    Code,
    Place,
    Tables,
    Work,
)
from eventide.kernels.patterns.kept import count_in_tree


@call_lean
def place_of(work: Work, row: int, depth: int) -> int:
    """Return which of the rows taken, up to `depth`, a row is; -1 if it is none.

    The last one may lie before others: a skipped row is checked when all are taken.
    """
    if depth >= 0 and work.frames[depth, PATH_ROW] == row:
        return depth
    low, high = 0, depth
    while low < high:
        middle = (low + high) // 2
        if work.frames[middle, PATH_ROW] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < depth and work.frames[low, PATH_ROW] == row else -1


@inline_lean
def row_of(work: Work, place: Place, depth: int, register: int, shift: int, absent: int) -> int:
    """Return the row of a register, shifted by a number of rows; `absent` if there is none."""
    row = work.frames[depth, PATH_ROW] if register == CURRENT else work.frames[depth + 1, register]
    if row < 0:
        return absent
    row += shift
    return row if place.low <= row < place.high else absent


@inline_lean
def variable_of(work: Work, depth: int, register: int, row: int, none: int) -> int:
    """Return the variable of a row, from the register that holds it or along the path."""
    if register == BY_PATH:
        at = place_of(work, row, depth)
        return work.frames[at, PATH_VARIABLE] if at >= 0 else none
    variable = work.frames[depth + 1, register]
    return variable if variable >= 0 else none


@call_lean
def _extreme(current: float, value: float, sign: int, seen: int) -> bool:
    """Whether a float replaces the extreme so far."""
    return seen == 0 or compare_floats(value, current) * sign > 0


@inline_lean
def _pick(work: Work, to: int, register: int, row: int, variable: int) -> None:
    """Note the row of an extreme and its variable, if some register is to hold them."""
    if register >= 0:
        work.frames[to, register] = row
        work.frames[to, register + 1] = variable


@inline_lean
def _add_float(work: Work, to: int, register: int, first: int, number: float) -> None:
    """Add a float to a sum of two, and note in a register if they cannot hold it exactly."""
    floats = work.float_registers
    high = floats[to, first]
    if not (np.isfinite(number) and np.isfinite(high)):
        floats[to, first] = high + number
        return
    total, lost = exact_pair(high, number)
    rest, gone = exact_pair(floats[to, first + 1], lost)
    floats[to, first], floats[to, first + 1] = total, rest
    # What is not finite gives a NaN here.
    if gone != 0.0:
        work.frames[to, register] = 1


@call_lean
def _add_product(work: Work, to: int, register: int, first: int, pair: tuple[float, float]) -> None:
    """Add a product to a sum of four, and note in a register if they cannot hold it exactly."""
    floats = work.float_registers
    high = floats[to, first]
    if not (np.isfinite(pair[0]) and np.isfinite(high)):
        floats[to, first] = high + pair[0]
        return
    before = (high, floats[to, first + 1], floats[to, first + 2], floats[to, first + 3])
    after, lost = add_pair(before, pair)
    for each in range(len(after)):
        floats[to, first + each] = after[each]
    if lost:
        work.frames[to, register] = 1


@inline_lean
def _aggregate(
    code: Code, update: int, row: int, variable: int, after: Work, tables: Tables
) -> None:
    """Add the value of a row to an aggregate, in the registers that info[TO] says."""
    operation, column = code.updates[update, 0], code.updates[update, 1]
    register, first = code.updates[update, 3], code.updates[update, 4]
    second = code.updates[update, 5]
    registers, floats = after.frames, after.float_registers
    to = after.info[TO]
    if operation <= COUNT_EQUALS:
        registers[to, register] += 1
    elif operation == ADD_INTS:
        value = tables.ints[column, row]
        before = registers[to, register]
        total = np.int64(np.uint64(before) + np.uint64(value))
        carry = np.int64(1) if np.uint64(total) < np.uint64(before) else np.int64(0)
        registers[to, register] = total
        registers[to, register + 1] += (value >> 63) + carry
        registers[to, register + 2] += 1
    elif operation == ADD_FLOATS:
        registers[to, register] += 1
        _add_float(after, to, register + 1, first, tables.floats[column, row])
    elif operation == ADD_SQUARES:
        registers[to, register] += 1
        number = tables.floats[column, row]
        _add_float(after, to, register + 1, first, number)
        _add_product(after, to, register + 1, first + 2, two_product(number, number))
    elif operation == ADD_PRODUCTS:
        registers[to, register] += 1
        number, other = tables.floats[column, row], tables.floats[second, row]
        _add_float(after, to, register + 1, first, number)
        _add_float(after, to, register + 1, first + 2, other)
        _add_product(after, to, register + 1, first + 4, two_product(number, other))
        _add_product(after, to, register + 1, first + 8, two_product(number, number))
        _add_product(after, to, register + 1, first + 12, two_product(other, other))
    elif operation <= GREATEST_I:
        value = tables.ints[column, row]
        best = registers[to, register + 1]
        better = value < best if operation == LEAST_I else value > best
        if registers[to, register] == 0 or better:
            registers[to, register + 1] = value
            _pick(after, to, second, row, variable)
        registers[to, register] = 1
    else:
        number = tables.floats[column, row] + 0.0
        sign = -1 if operation == LEAST_F else 1
        if _extreme(floats[to, first], number, sign, registers[to, register]):
            floats[to, first] = number
            _pick(after, to, second, row, variable)
        registers[to, register] = 1


@inline_lean
def _chain(code: Code, work: Work, to: int, row: int, variable: int, update: int) -> None:
    """Put a row into the registers of the first or last rows of its kind."""
    registers = work.frames
    register, second = code.updates[update, 3], code.updates[update, 5]
    width = code.updates[update, 7]
    place = np.int64(0)
    if code.updates[update, 0] == LAST:
        for j in range(width - 1, 0, -1):
            registers[to, register + j] = registers[to, register + j - 1]
            if second >= 0:
                registers[to, second + j] = registers[to, second + j - 1]
    else:
        while place < width and registers[to, register + place] >= 0:
            place += 1
    if place < width:
        registers[to, register + place] = row
        if second >= 0:
            registers[to, second + place] = variable


@inline_lean
def take(code: Code, tables: Tables, work: Work, depth: int, row: int, variable: int) -> None:
    """Compute the registers after one more row, the row number `depth` of the match."""
    registers, floats = work.frames, work.float_registers
    to = depth + 1
    for register in range(REGISTERS, registers.shape[1]):
        registers[to, register] = registers[depth, register]
    for register in range(floats.shape[1]):
        floats[to, register] = floats[depth, register]
    work.frames[depth, PATH_ROW] = row
    work.frames[depth, PATH_VARIABLE] = variable
    updates = code.updates
    for each in range(code.by_variable[variable, UPDATE], code.by_variable[variable + 1, UPDATE]):
        if updates[each, 0] <= FIRST:
            _chain(code, work, to, row, variable, each)
            continue
        valid, distinct = updates[each, 2], updates[each, 6]
        if valid >= 0 and not tables.valid[valid, row]:
            continue
        if distinct >= 0:
            at = tables.starts[distinct] + tables.codes[updates[each, 7], row]
            work.counts[at] += 1
            if work.counts[at] > 1:
                continue
        if updates[each, 8] >= 0:
            count_in_tree(code, tables, work, each, row, int(np.int64(1)))
        work.info[TO] = to
        _aggregate(code, each, row, variable, work, tables)


@call_lean
def give_back(code: Code, tables: Tables, work: Work, depth: int) -> None:
    """Undo what registers do not cover: the counts of values."""
    variable, row = work.frames[depth, PATH_VARIABLE], work.frames[depth, PATH_ROW]
    updates = code.updates
    for each in range(code.by_variable[variable, UPDATE], code.by_variable[variable + 1, UPDATE]):
        distinct, valid = updates[each, 6], updates[each, 2]
        if valid < 0 or not tables.valid[valid, row]:
            continue
        if distinct >= 0:
            at = tables.starts[distinct] + tables.codes[updates[each, 7], row]
            work.counts[at] -= 1
            if work.counts[at] > 0:
                continue
        if updates[each, 8] >= 0:
            count_in_tree(code, tables, work, each, row, int(np.int64(-1)))


@call_lean
def _label(work: Work, place: Place, depth: int, register: int, shift: int) -> int:
    """Return what is known of the variable of a row after `depth` rows: it, or that it has none.

    A row that is still to come is identified by its distance.
    """
    following = work.frames[depth, FRAME_FROM]
    row = following if register == CURRENT else work.frames[depth, register]
    if row < 0:
        return -1
    row += shift
    if row >= following:
        return int(following - row) - 3
    at = place_of(work, row, depth - 1) if row >= place.low else -1
    return int(work.frames[at, PATH_VARIABLE]) if at >= 0 else -2


@call_lean
def write_key(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, node: int, used: int
) -> int:
    """Append what conditions behind a node can still read to the key; return its new length.

    It is 0 if the state cannot be remembered.
    """
    variables = len(code.by_variable) - 1
    key = work.info[KEY:]
    # Registers after `depth` rows: row_of looks one row further than the last one taken.
    for each in range(code.by_node[node, SEEN], code.by_node[node + 1, SEEN]):
        kind, register = code.keys[each, 0], code.keys[each, 1]
        column, by = code.keys[each, 2], code.keys[each, 4]
        if kind == KEY_REGISTER:
            key[used] = work.frames[depth, register]
        elif kind == KEY_EXACT:
            if work.frames[depth, register] != 0:
                return int(np.int64(0))
            continue
        elif kind == KEY_FLOAT:
            key[used] = np.float64(work.float_registers[depth, register]).view(np.int64)
        elif kind == KEY_PRESENT:
            key[used] = np.int64(work.frames[depth, register] >= 0)
        elif kind == KEY_NAMED:
            key[used] = work.frames[depth, by]
        elif kind == KEY_COUNT:
            key[used] = min(work.frames[depth, register], column)
        elif kind == KEY_LEVEL:
            key[used] = place.level
        elif kind == KEY_LABEL:
            key[used] = _label(work, place, depth, register, code.keys[each, 3])
        else:
            absent = tables.valid.shape[1] - 1
            row = row_of(work, place, depth - 1, register, code.keys[each, 3], absent)
            if by != PLAIN:
                column += variable_of(work, depth - 1, by, row, variables)
            if kind == KEY_LOAD_F:
                key[used] = np.float64(tables.floats[column, row]).view(np.int64)
            else:
                key[used] = tables.ints[column, row]
                column += len(tables.floats)
            used += 1
            key[used] = np.int64(tables.valid[column, row])
        used += 1
    return used
