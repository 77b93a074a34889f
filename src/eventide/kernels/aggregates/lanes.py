"""Sums of floats and of their squares as pairs, and extremes, in many lanes at once.

One pair is a chain of dependent additions, and has to check every value for being finite. Lanes are
independent, and do not check: a run whose total is not finite is added again one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from eventide.kernels.aggregates.sums import two_product, two_sum
from eventide.kernels.compiled import Bools, Floats, Numbers, call, inline

LANES = 32  # sixteen fill two of the widest vector registers; 32 measured best
LONG_RUN = 4 * LANES  # below this, putting the lanes together costs more than they save


def generate_fused(_typing: Any, a: Any, b: Any, c: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ANN401
    """Return the type and the instruction of a * b + c, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.fma(*args)

    return types.float64(a, b, c), generate


# What rounding a product lost, in one instruction instead of the seventeen of `two_product`.
fused: Callable[..., float] = intrinsic(generate_fused)


@inline
def two_sum_of_finite(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum and what rounding lost; a NaN if the sum is not finite."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@call
def add_in_lanes(values: Numbers, valid: Bools, lanes: Floats) -> None:
    """Add values in lanes: sums, what they lost, sums of squares, what those lost.

    After these four come the lanes' smallest and largest values, all LANES wide.
    """
    lanes[: 4 * LANES] = 0.0
    lanes[4 * LANES : 5 * LANES] = np.inf
    lanes[5 * LANES :] = -np.inf
    all_valid = len(valid) == 0
    for start in range(0, len(values), LANES):
        # A slice starts at zero, so that the loop over it needs no test for negative places and
        # becomes vector instructions: four times as fast.
        block = values[start : start + LANES]
        if all_valid and len(block) == LANES:
            for j in range(LANES):
                add_to_lane(float(block[j]), j, lanes)
        elif all_valid:
            for j in range(len(block)):
                add_to_lane(float(block[j]), j, lanes)
        else:
            block_valid = valid[start : start + LANES]
            for j in range(len(block)):
                if block_valid[j]:
                    add_to_lane(float(block[j]), j, lanes)


@inline
def add_to_lane(value: float, lane: int, lanes: Floats) -> None:
    """Add one value to one lane."""
    total, lost = two_sum_of_finite(lanes[lane], value)
    lanes[lane] = total
    lanes[LANES + lane] += lost
    square = value * value
    square_lost = fused(value, value, -square)
    total, lost = two_sum_of_finite(lanes[2 * LANES + lane], square)
    lanes[2 * LANES + lane] = total
    lanes[3 * LANES + lane] += lost + square_lost
    smallest, largest = lanes[4 * LANES + lane], lanes[5 * LANES + lane]
    lanes[4 * LANES + lane] = value if value < smallest else smallest
    lanes[5 * LANES + lane] = value if value > largest else largest


@call
def fold_lanes(lanes: Floats, moments: Floats) -> None:
    """Merge the lanes of sums and of squares into two pairs."""
    for pair in range(2):
        high, low = 0.0, 0.0
        for j in range(2 * LANES * pair, 2 * LANES * pair + LANES):
            high, lost = two_sum_of_finite(high, lanes[j])
            low += lost + lanes[LANES + j]
        moments[2 * pair] = high
        moments[2 * pair + 1] = low


@call
def add_in_turn(values: Floats, valid: Bools, moments: Floats, extremes: Floats) -> None:
    """Add a short run, without checking whether its values are finite; find its extremes."""
    all_valid = len(valid) == 0
    high, low, square_high, square_low = 0.0, 0.0, 0.0, 0.0
    smallest, largest = np.inf, -np.inf
    for i in range(len(values)):
        if all_valid or valid[i]:
            value = values[i]
            high, lost = two_sum_of_finite(high, value)
            low += lost
            square = value * value
            square_high, lost = two_sum_of_finite(square_high, square)
            square_low += lost + fused(value, value, -square)
            smallest = value if value < smallest else smallest
            largest = value if value > largest else largest
    moments[0], moments[1] = high, low
    moments[2], moments[3] = square_high, square_low
    extremes[0], extremes[1] = smallest, largest


@call
def add_one_by_one(values: Numbers, valid: Bools, moments: Floats) -> None:
    """Add values and squares as the accumulators do, whether finite or not."""
    all_valid = len(valid) == 0
    moments[:] = 0.0
    for i in range(len(values)):
        if all_valid or valid[i]:
            value = float(values[i])
            moments[0], lost = two_sum(moments[0], value)
            moments[1] += lost
            square, square_lost = two_product(value, value)
            moments[2], lost = two_sum(moments[2], square)
            moments[3] += lost + square_lost
