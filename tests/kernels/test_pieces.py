"""Functions that only kernels call work inside of them, though they have no code of their own."""

from __future__ import annotations

import numpy as np
import pytest

from eventide.kernels.compiled import Int64s, call, call_lean, inline_lean, kernel, lean_kernel


@call
def quotient(dividend: int, divisor: int) -> int:
    if divisor < 0:
        raise ValueError(divisor)  # kernels raise nothing; this asks for the piece's environment
    return dividend // divisor


@call
def next_quotient(dividend: int, divisor: int) -> int:
    return quotient(dividend, divisor) + 1


@kernel
def both_quotients(left: int, right: int) -> int:
    return next_quotient(left, right) + quotient(right, left)


@inline_lean
def put(values: Int64s, place: int, value: int) -> None:
    values[place] = value


@call_lean
def put_twice(values: Int64s, place: int, value: int) -> None:
    put(values, place, value)
    put(values, place + 1, value)


@lean_kernel
def fill_pairs(values: Int64s) -> None:
    for pair in range(len(values) // 2):
        put_twice(values, 2 * pair, pair)


def test_pieces_in_layers_do_what_they_say() -> None:
    assert both_quotients(2, 7) == 4
    values = np.full(5, -1)
    fill_pairs(values)
    assert values.tolist() == [0, 0, 1, 1, -1]


def test_an_error_of_a_piece_is_an_error_of_the_kernel() -> None:
    with pytest.raises(ValueError, match="-3"):
        both_quotients(1, -3)
    with pytest.raises(ZeroDivisionError):
        both_quotients(1, 0)
