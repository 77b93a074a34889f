"""Comparisons of numbers, row by row: which conditions hold at each row, as bits.

All of a batch is one call, for a small batch has hardly more rows than a call costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import (
    Floats,
    Int32s,
    Int64s,
    Numbers,
    call_lean,
    inline,
    lean_kernel,
)
from eventide.kernels.patterns.tables import Masks

# How two numbers compare, as bits: "at most" is LESS | EQUAL.
LESS, EQUAL, GREATER = np.int64(1), np.int64(2), np.int64(4)
# What is known of a comparison: the number of its condition, how it compares, and two operands.
CONDITION, COMPARE, LEFT, LEFT_SHIFT, RIGHT, RIGHT_SHIFT = range(6)
FACTS = 6


class Comparisons(NamedTuple):
    """Comparisons of numbers of one type: each has `FACTS`.

    An operand is a column, or constant c as -1 - c. Those without shifts come before `shifted`.
    """

    facts: Int64s
    constants: Numbers
    shifted: int


@inline
def failed(compare: np.int64, left: float, right: float) -> np.uint64:
    """Return 1 if a comparison does not hold, else 0: without a branch, which would be a guess."""
    less, equal, greater = np.int64(left < right), np.int64(left == right), np.int64(left > right)
    relation = less | (equal << np.int64(1)) | (greater << np.int64(2))
    return np.uint64((relation & compare) == np.int64(0))


@call_lean
def mark_lying(numbers: Numbers, asked: Comparisons, lying: Masks) -> None:
    """Mark the rows as they lie at which comparisons without shifts fail."""
    for n in range(asked.shifted):
        condition, compare = np.uint64(asked.facts[n, CONDITION]), asked.facts[n, COMPARE]
        left, right = asked.facts[n, LEFT], asked.facts[n, RIGHT]
        if left < 0:
            constant = asked.constants[-1 - left]
            for row in range(len(lying)):
                lying[row] |= failed(compare, constant, numbers[right, row]) << condition
        elif right < 0:
            constant = asked.constants[-1 - right]
            for row in range(len(lying)):
                lying[row] |= failed(compare, numbers[left, row], constant) << condition
        else:
            for row in range(len(lying)):
                found = failed(compare, numbers[left, row], numbers[right, row])
                lying[row] |= found << condition


@call_lean
def mark_shifted(
    numbers: Numbers, asked: Comparisons, order: Int64s, offsets: Int64s, masks: Masks
) -> None:
    """Unmark the rows in key order at which comparisons with rows before or behind them fail.

    A row that an operand is shifted to has to be of the same key.
    """
    for n in range(asked.shifted, len(asked.facts)):
        bit, compare = np.uint64(1) << np.uint64(asked.facts[n, CONDITION]), asked.facts[n, COMPARE]
        left, right = asked.facts[n, LEFT], asked.facts[n, RIGHT]
        before, after = asked.facts[n, LEFT_SHIFT], asked.facts[n, RIGHT_SHIFT]
        for k in range(len(offsets) - 1):
            low, high = offsets[k], offsets[k + 1]
            first = max(low, low - min(before, after))
            last = min(high, high - max(before, after))
            for i in range(low, min(first, high)):
                masks[i] &= ~bit
            for i in range(max(last, low), high):
                masks[i] &= ~bit
            for i in range(first, last):
                one = numbers[left, order[i + before]] if left >= 0 else asked.constants[-1 - left]
                other = (
                    numbers[right, order[i + after]] if right >= 0 else asked.constants[-1 - right]
                )
                masks[i] &= ~(bit * failed(compare, one, other))


@lean_kernel
def mark_texts(codes: Int32s, failing: Masks, lying: Masks) -> None:
    """Mark the rows as they lie at which conditions fail, by the number of the text of a row."""
    for row in range(len(codes)):
        lying[row] |= failing[codes[row]]


@lean_kernel
def mark_rows(
    floats: Floats,
    ints: Int64s,
    of_floats: Comparisons,
    of_ints: Comparisons,
    order: Int64s,
    offsets: Int64s,
    all_bits: np.uint64,
    lying: Masks,
    masks: Masks,
) -> bool:
    """Write which conditions hold at each row in key order; False if a number is NaN.

    Row i in key order is row `order[i]`; there may be rows that are in no key. `lying` has a bit
    for every condition of a row that is known to fail; the others are added.
    """
    for column in range(len(floats)):
        has_nan = False
        for row in range(floats.shape[1]):
            has_nan |= floats[column, row] != floats[column, row]
        if has_nan:
            return False
    mark_lying(floats, of_floats, lying)
    mark_lying(ints, of_ints, lying)
    for i in range(len(order)):
        masks[i] = all_bits & ~lying[order[i]]
    mark_shifted(floats, of_floats, order, offsets, masks)
    mark_shifted(ints, of_ints, order, offsets, masks)
    return True
