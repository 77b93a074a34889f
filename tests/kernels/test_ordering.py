"""Rows in order, ranges of rows, and rows by key: each against an obvious twin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.keys import search_keys
from eventide.kernels.ordering import ranges, sort_pairs, survey
from eventide.operators.key_parts import KeyOrder

OFTEN = settings(deadline=None, max_examples=60)


def ints(values: list[int]) -> Int64s:
    return frozen(np.array(values, np.int64))


numbers = st.one_of(
    st.lists(st.integers(-3, 3)),
    st.lists(st.integers(0, 2**41)),
    st.lists(st.integers(-(2**61), 2**61)),
    # as numbers of rows by key are
    st.lists(
        st.builds(lambda key, place: (key << 40) + place, st.integers(0, 5), st.integers(-2, 9))
    ),
)


@OFTEN
@given(numbers)
def test_pairs_are_sorted_by_the_first_and_stay_together(values: list[int]) -> None:
    others = ints(list(range(len(values))))
    found, moved = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    sort_pairs(ints(values), others, found, moved)
    order = np.argsort(np.array(values, np.int64), kind="stable")
    assert found.tolist() == sorted(values)
    # Equal numbers stay as they are.
    assert moved.tolist() == order.tolist()


@OFTEN
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4))))
def test_ranges_one_after_another(pairs: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([pair[n] for pair in pairs], np.int64) for n in (0, 1))
    expected = [number for start, length in pairs for number in range(start, start + length)]
    assert ranges(starts, lengths).tolist() == expected


@OFTEN
@given(
    st.lists(st.lists(st.integers(-5, 5)).map(sorted), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-6, 6))),
    st.booleans(),
)
def test_values_are_searched_among_those_of_their_key(
    by_key: list[list[int]], wanted: list[tuple[int, int]], after: bool
) -> None:
    wanted = [(key % len(by_key), value) for key, value in wanted]
    values = ints([value for own in by_key for value in own])
    offsets = ints(np.cumsum([0, *map(len, by_key)]).tolist())
    found = np.empty(len(wanted), np.int64)
    keys, asked = (ints([pair[n] for pair in wanted]) for n in (0, 1))
    search_keys(values, offsets, keys, asked, after, found)
    search = bisect_right if after else bisect_left
    assert found.tolist() == [
        int(offsets[key]) + search(by_key[key], value) for key, value in wanted
    ]


@OFTEN
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=1))
def test_a_survey_of_rows_is_what_sorting_shows(rows: list[tuple[int, int]]) -> None:
    ts, seq = ([row[place] for row in rows] for place in (0, 1))
    assert survey(ints(ts), ints(seq)) == (min(ts), max(ts), rows == sorted(rows))


@OFTEN
@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 5)))
def test_kept_rows_come_before_new_ones_of_their_key(kept: list[int], codes: list[int]) -> None:
    count = max([len(kept), *(code + 1 for code in codes)])
    ordered, stays = KeyOrder.behind(ints(kept), frozen(np.array(codes, np.int32)), count)
    keys = [*(key for key, rows in enumerate(kept) for _ in range(rows)), *codes]
    expected = sorted(range(len(keys)), key=lambda row: keys[row])
    assert ordered.order.tolist() == expected
    assert stays == (expected == list(range(len(keys))))
    assert ordered.offsets.tolist() == [
        sum(key < each for key in keys) for each in range(count + 1)
    ]
