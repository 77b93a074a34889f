"""Every kernel against its obvious twin."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.aggregates.extremes import (
    best_by_frame,
    best_by_group,
    first_by_group,
    last_by_group,
)
from eventide.kernels.aggregates.frames import (
    keep_reachable_rows,
    range_frames,
    rows_frames,
    window_frames,
)
from eventide.kernels.aggregates.sums import (
    add_by_group,
    co_deviations,
    products,
    round_pairs,
    running_integers,
    subtract_integers,
    sum_floats_by_frame,
    sum_floats_by_group,
    sum_integers_by_group,
)
from eventide.kernels.compiled import frozen
from eventide.kernels.fingerprints import hash_bytes_twice, hash_words_twice
from eventide.kernels.grouping import group_by_pane, order_by_key
from eventide.kernels.hashing import hash_bytes, hash_words
from eventide.kernels.ordering import is_sorted

settings.register_profile("kernels", deadline=None, max_examples=60)
settings.load_profile("kernels")

any_float = st.floats(
    allow_nan=False, allow_infinity=False, width=64, min_value=-1e300, max_value=1e300
)
int64 = st.integers(-(2**63), 2**63 - 1)


def ints(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return frozen(np.array(values, np.int64))


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 4))), st.integers(1, 20))
def test_groups_are_the_distinct_panes_and_keys(rows: list[tuple[int, int]], pane: int) -> None:
    rows.sort(key=lambda row: row[0])
    ts, codes = ints([t for t, _ in rows]), frozen(np.array([c for _, c in rows], np.int32))
    groups, panes, keys = (np.full(len(rows), -9, np.int64) for _ in range(3))
    count = group_by_pane(ts, codes, pane, np.full(5, -1, np.int64), groups, panes, keys)
    expected = list(dict.fromkeys((t // pane * pane, c) for t, c in rows))
    assert list(zip(panes[:count], keys[:count], strict=True)) == expected
    assert [expected[g] for g in groups] == [(t // pane * pane, c) for t, c in rows]


@given(st.lists(st.integers(0, 5)))
def test_key_order_is_stable_and_whole(codes: list[int]) -> None:
    order, offsets = np.empty(len(codes), np.int64), np.zeros(7, np.int64)
    order_by_key(frozen(np.array(codes, np.int32)), offsets, order)
    assert list(order) == sorted(range(len(codes)), key=lambda i: (codes[i], i))
    assert [offsets[k + 1] - offsets[k] for k in range(6)] == [codes.count(k) for k in range(6)]


@given(st.lists(st.tuples(st.integers(0, 3), any_float), max_size=30))
def test_float_sums_are_those_of_exact_arithmetic(rows: list[tuple[int, float]]) -> None:
    groups = ints([g for g, _ in rows])
    values = frozen(np.array([v for _, v in rows]))
    high, low, doubt = np.zeros(4), np.zeros(4), np.zeros(4, np.bool_)
    sum_floats_by_group(values, frozen(np.zeros(len(rows))), groups, high, low, doubt)
    for group in range(4):
        exact = sum((Fraction(v) for g, v in rows if g == group), Fraction(0))
        assert doubt[group] or Fraction(high[group]) + Fraction(low[group]) == exact


@given(st.lists(st.tuples(st.integers(0, 3), int64, int64), max_size=30))
def test_integer_sums_are_those_of_exact_arithmetic(rows: list[tuple[int, int, int]]) -> None:
    high, low = np.zeros(4, np.int64), np.zeros(4, np.int64)
    groups = ints([g for g, _, _ in rows])
    sum_integers_by_group(
        ints([h for _, h, _ in rows]), ints([v for *_, v in rows]), groups, high, low
    )
    for group in range(4):
        expected = sum(h * 2**64 + v % 2**64 for g, h, v in rows if g == group)
        found = int(high[group]) * 2**64 + int(low[group]) % 2**64
        assert (found - expected) % 2**128 == 0


@given(st.data(), st.lists(st.floats(width=64), max_size=25), st.booleans())
def test_sums_by_frame_forget_what_has_left(
    data: st.DataObject, values: list[float], with_low: bool
) -> None:
    left, right = ascending_bounds(data, len(values))
    out = (np.empty(len(left)), np.empty(len(left)))
    suffix = (np.empty(len(values)), np.empty(len(values)))
    low = np.zeros(len(values) if with_low else 0)
    pairs = (frozen(np.array(values, np.float64)), frozen(low))
    doubt = sum_floats_by_frame(pairs, ints(left), ints(right), suffix, out)
    for frame, (start, end) in enumerate(zip(left, right, strict=True)):
        inside = values[start:end]
        if not doubt:
            exact = sum(map(Fraction, inside), Fraction(0))
            assert Fraction(out[0][frame]) + Fraction(out[1][frame]) == exact


@given(st.lists(st.tuples(st.floats(width=64), st.floats(width=64)), max_size=10), st.booleans())
def test_pairs_are_rounded_once(pairs: list[tuple[float, float]], with_low: bool) -> None:
    highs, lows = [high for high, _ in pairs], [low for _, low in pairs] if with_low else []
    total, left = np.empty(len(pairs)), np.empty(len(pairs))
    round_pairs(frozen(np.array(highs)), frozen(np.array(lows)), total, left)
    for row, (high, low) in enumerate(pairs):
        expected = high + low if with_low and math.isfinite(high) else high
        assert same(total[row], expected)
        if not math.isfinite(expected):
            assert left[row] == 0.0
        else:
            exact = Fraction(high) + (Fraction(low) if with_low else 0)
            assert Fraction(left[row]) == exact - Fraction(expected)


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@given(st.data(), st.lists(int64, max_size=25))
def test_integer_sums_by_frame(data: st.DataObject, values: list[int]) -> None:
    left, right = ascending_bounds(data, len(values))
    low = ints(values)
    running = np.empty(len(values) + 1, np.int64), np.empty(len(values) + 1, np.int64)
    running_integers(frozen(low >> 63), low, running[0], running[1])
    high_out, low_out = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    subtract_integers(
        frozen(running[0]), frozen(running[1]), ints(left), ints(right), high_out, low_out
    )
    for frame, (start, end) in enumerate(zip(left, right, strict=True)):
        assert int(high_out[frame]) * 2**64 + int(low_out[frame]) % 2**64 == sum(values[start:end])


def ascending_bounds(data: st.DataObject, length: int) -> tuple[list[int], list[int]]:
    bound = st.integers(0, length)
    frames = data.draw(st.lists(st.tuples(bound, bound), max_size=20))
    left = sorted(min(frame) for frame in frames)
    right = sorted(max(frame) for frame in frames)
    return left, right


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(-1e9, 1e9))
def test_variance_survives_a_large_mean(values: list[float], mean: float) -> None:
    shifted = [value + mean for value in values]
    array = frozen(np.array(shifted))
    high, low = np.empty(len(values)), np.empty(len(values))
    products(array, array, high, low)
    one_group = ints([0] * len(values))
    sums, square_sums = (np.zeros(1), np.zeros(1)), (np.zeros(1), np.zeros(1))
    doubt = np.zeros(1, np.bool_)
    sum_floats_by_group(array, frozen(np.empty(0)), one_group, *sums, doubt)
    sum_floats_by_group(frozen(high), frozen(low), one_group, *square_sums, doubt)
    out = np.empty(1)
    of_values = (frozen(sums[0]), frozen(sums[1]))
    of_squares = (frozen(square_sums[0]), frozen(square_sums[1]))
    co_deviations(ints([len(values)]), of_values, of_values, of_squares, out)
    exact_mean = sum(map(Fraction, shifted)) / len(values)
    exact = sum((Fraction(v) - exact_mean) ** 2 for v in shifted)
    assert math.isclose(out[0], float(exact), rel_tol=1e-12, abs_tol=1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(width=16) | st.just(math.nan), st.booleans())),
    st.sampled_from([1, -1]),
)
def test_best_by_group(rows: list[tuple[int, float, bool]], sign: int) -> None:
    best = np.full(4, -1, np.int64)
    values = frozen(np.array([v for _, v, _ in rows], np.float64))
    valid = frozen(np.array([k for *_, k in rows], np.bool_))
    best_by_group(values, valid, ints([g for g, *_ in rows]), sign, best)
    for group in range(4):
        inside = [i for i, (g, _, k) in enumerate(rows) if g == group and k]
        assert best[group] == naive_best([r[1] for r in rows], inside, sign)


@given(
    st.data(),
    st.lists(st.tuples(st.floats(width=16) | st.just(math.nan), st.booleans()), max_size=20),
    st.sampled_from([1, -1]),
)
def test_best_by_frame(data: st.DataObject, rows: list[tuple[float, bool]], sign: int) -> None:
    left, right = ascending_bounds(data, len(rows))
    best, waiting = np.empty(len(left), np.int64), np.empty(len(rows), np.int64)
    values = frozen(np.array([v for v, _ in rows], np.float64))
    valid = frozen(np.array([k for _, k in rows], np.bool_))
    best_by_frame(values, valid, ints(left), ints(right), sign, waiting, best)
    for frame, (start, end) in enumerate(zip(left, right, strict=True)):
        inside = [i for i in range(start, end) if rows[i][1]]
        assert best[frame] == naive_best([v for v, _ in rows], inside, sign)


def naive_best(values: list[float], rows: list[int], sign: int) -> int:
    def beats(a: int, b: int) -> bool:
        x, y = values[a], values[b]
        smaller = x < y or (math.isnan(y) and not math.isnan(x))
        larger = x > y or (math.isnan(x) and not math.isnan(y))
        return smaller if sign > 0 else larger

    found = -1
    for row in rows:
        if found < 0 or beats(row, found):
            found = row
    return found


@given(st.lists(st.integers(0, 3)))
def test_first_and_last_by_group(groups: list[int]) -> None:
    first, last = np.full(4, -1, np.int64), np.full(4, -1, np.int64)
    first_by_group(ints(groups), first)
    last_by_group(ints(groups), last)
    for group in range(4):
        rows = [i for i, g in enumerate(groups) if g == group] or [-1]
        assert (first[group], last[group]) == (rows[0], rows[-1])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9))), st.integers(0, 5))
def test_frames_of_events(rows: list[tuple[int, int]], preceding: int) -> None:
    rows.sort()
    offsets = ints([sum(key < k for key, _ in rows) for k in range(4)])
    left, right = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    range_frames(ints([t for _, t in rows]), offsets, preceding, left, right)
    for i, (key, ts) in enumerate(rows):
        inside = [j for j, (k, t) in enumerate(rows) if k == key and ts - preceding <= t <= ts]
        assert list(range(left[i], right[i])) == inside
    rows_frames(offsets, preceding, left, right)
    for i, (key, _) in enumerate(rows):
        inside = [j for j, (k, _) in enumerate(rows) if k == key and i - preceding <= j <= i]
        assert list(range(left[i], right[i])) == inside


@given(st.lists(st.integers(0, 2)), st.integers(0, 20), st.integers(0, 4))
def test_rows_that_later_frames_reach(keys: list[int], done: int, preceding: int) -> None:
    order, offsets = np.empty(len(keys), np.int64), np.zeros(4, np.int64)
    order_by_key(frozen(np.array(keys, np.int32)), offsets, order)
    keep = np.zeros(len(keys), np.bool_)
    keep_reachable_rows(frozen(order), frozen(offsets), done, preceding, keep)
    expected = [
        i for i, key in enumerate(keys) if i >= done or keys[i + 1 : done].count(key) < preceding
    ]
    assert list(np.flatnonzero(keep)) == expected


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20)), unique=True),
    st.integers(1, 6),
    st.integers(1, 6),
    st.tuples(st.integers(-40, 40), st.integers(-40, 40)),
)
def test_windows_of_panes(
    rows: list[tuple[int, int]], size: int, slide: int, limits: tuple[int, int]
) -> None:
    rows.sort()
    from_us, to_us = min(limits), max(limits)
    inputs = (
        ints([pane for _, pane in rows]),
        ints([sum(key < k for key, _ in rows) for k in range(4)]),
        (size, slide, from_us, to_us),
    )
    none = [np.empty(0, np.int64) for _ in range(4)]
    starts, keys, left, right = (
        np.empty(window_frames(*inputs, *none), np.int64) for _ in range(4)
    )
    window_frames(*inputs, starts, keys, left, right)
    found = [
        (keys[i], starts[i], [rows[j][1] for j in range(left[i], right[i])])
        for i in range(len(starts))
    ]
    expected = [
        (key, start, inside)
        for key in range(3)
        for start in range(-60, 61)
        if start % slide == 0 and from_us <= start < to_us
        if (inside := [p for k, p in rows if k == key and start <= p < start + size])
    ]
    assert found == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_sorted(rows: list[tuple[int, int]]) -> None:
    assert is_sorted(ints([t for t, _ in rows]), ints([s for _, s in rows])) == (
        rows == sorted(rows)
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9))))
def test_counts_by_group(rows: list[tuple[int, int]]) -> None:
    out = np.zeros(4, np.int64)
    add_by_group(ints([n for _, n in rows]), ints([g for g, _ in rows]), out)
    assert list(out) == [sum(n for g, n in rows if g == group) for group in range(4)]


@given(texts=st.lists(st.none() | st.binary(max_size=20)), words=st.lists(st.integers(-9, 9)))
def test_two_hashes_at_once_are_those_of_one_after_the_other(
    texts: list[bytes | None], words: list[int]
) -> None:
    column = pa.array(texts, pa.binary())
    offsets, data = np.frombuffer(column.buffers()[1], np.int32), np.zeros(0, np.uint8)
    if column.buffers()[2] is not None:
        data = np.frombuffer(column.buffers()[2], np.uint8)
    valid = frozen(np.array([text is not None for text in texts], np.bool_))
    bounds, content = frozen(offsets[: len(texts) + 1]), frozen(data)
    numbers, all_valid = frozen(np.array(words, np.int64)), frozen(np.zeros(0, np.bool_))
    one, other = np.zeros(len(texts), np.uint64), np.full(len(texts), 7, np.uint64)
    both = one.copy(), other.copy()
    for each in (one, other):
        hash_bytes(bounds, content, valid, each)
    hash_bytes_twice(bounds, content, valid, *both)
    assert [each.tolist() for each in both] == [one.tolist(), other.tolist()]
    one, other = np.zeros(len(words), np.uint64), np.full(len(words), 7, np.uint64)
    both = one.copy(), other.copy()
    for each in (one, other):
        hash_words(numbers, all_valid, each)
    hash_words_twice(numbers, all_valid, *both)
    assert [each.tolist() for each in both] == [one.tolist(), other.tolist()]
