"""Periods against their twin, which tries all candidates, and how periods are processed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eventide.engines.history.patterns.candidates import (
    FARTHEST,
    KEY_SHIFT,
    Periods,
    blocks_of,
    periods_of,
    places_of,
)
from eventide.engines.history.patterns.conditions import Condition, Shape
from eventide.engines.history.patterns.pattern_map import kept_units
from eventide.engines.history.patterns.replay import intervals_of, merged
from eventide.instants import ALL_TIME, TimeRange
from eventide.kernels.compiled import Int64s
from eventide.plan.patterns.skeleton import Skeleton, Symbol
from eventide.store.index.ranges import ValueRange
from eventide.store.reading.hits import Hits
from eventide.store.reading.leaves import Units, units_of
from eventide.store.snapshot import Snapshot
from tests.naive.patterns.intervals import (
    Asked,
    Range,
    candidates,
    has_room,
    joined,
    naive_ranges,
    range_of,
)
from tests.store.events import at, new_stream, tiny_files

OFTEN = settings(deadline=None, max_examples=80)
ANY = frozenset({"A"})
NOBODY = cast(Snapshot, None)
"""What is read is no matter here."""


@st.composite
def skeletons(draw: st.DrawFn) -> Skeleton:
    follows = [False, *draw(st.lists(st.booleans(), max_size=3))]
    symbols = tuple(Symbol(ANY, each) for each in follows)
    return Skeleton(symbols, draw(st.booleans()), draw(st.booleans()))


@dataclass(frozen=True, slots=True)
class Case:
    """A skeleton with conditions, rows of some keys in order of time, and who meets what."""

    shape: Shape
    within: int
    ts: list[int]
    keys: list[int]
    meets: dict[Condition, list[bool]]

    def times(self, key: int) -> list[int]:
        return [ts for ts, own in zip(self.ts, self.keys, strict=True) if own == key]

    def asked(self, key: int = 0, *, numbered: bool = True) -> Asked:
        """What the twin is asked about the rows of a key."""
        own = [place for place, each in enumerate(self.keys) if each == key]
        met = {}
        for symbol in {each.symbol for each in self.meets}:
            asked = [self.meets[each] for each in self.meets if each.symbol == symbol]
            met[symbol] = [all(each[place] for each in asked) for place in own]
        return Asked(self.shape.skeleton, self.within, self.times(key), met, numbered)

    def periods(self, numbers: Sequence[int], *, numbered: bool = True) -> Periods:
        """The periods that are found if rows have these numbers."""
        hits = {}
        for each, meets in self.meets.items():
            pairs = [pair for *pair, met in zip(self.ts, numbers, meets, strict=True) if met]
            pairs.sort(key=lambda pair: pair[1] if numbered else pair[0])
            columns = np.array(pairs, np.int64).reshape(-1, 2)
            hits[each] = Hits(columns[:, 0], columns[:, 1])
        return periods_of(self.shape, self.within, hits, numbered=numbered)


def condition(symbol: int, number: int) -> Condition:
    return Condition(symbol, ((f"x{number}", ValueRange(symbol, symbol)),), f"x{number} = {symbol}")


@st.composite
def cases(draw: st.DrawFn, keys: int = 1, most: int = 14) -> Case:
    skeleton = draw(skeletons())
    asked = draw(st.lists(st.integers(0, len(skeleton.symbols) - 1), min_size=1, max_size=4))
    conditions = tuple(condition(symbol, number) for number, symbol in enumerate(sorted(asked)))
    steps = draw(st.lists(st.sampled_from([1, 0, 1, 2, 5]), min_size=1, max_size=most))

    def each_row(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=len(steps), max_size=len(steps)))

    return Case(
        Shape(skeleton, conditions, filtered=False),
        draw(st.integers(0, 7)),
        [ts - 9 for ts in accumulate(steps)],
        each_row(st.integers(0, keys - 1)),
        {each: each_row(st.booleans()) for each in conditions},
    )


def in_rows(periods: Periods, ts: Sequence[int], base: int) -> list[Range]:
    """Return the rows [first, end) of each period: those in its time, but not behind its cuts."""
    found = []
    bounds = (periods.start_us, periods.end_us, periods.first, periods.last)
    for start_us, end_us, first, last in zip(*(each.tolist() for each in bounds), strict=True):
        own = [
            place
            for place, each in enumerate(ts)
            if start_us <= each <= end_us and first <= base + place <= last
        ]
        found.append((own[0], own[-1] + 1) if own else (0, 0))
    return found


def in_order(ranges: Sequence[Range]) -> bool:
    starts = [start for start, end in ranges if start < end]
    return starts == sorted(starts)


def contained(one: Range, ranges: Sequence[Range]) -> bool:
    """Whether a range lies in one of some others, and in no two."""
    low, high = one
    return low == high or sum(start <= low and high <= end for start, end in ranges) == 1


@OFTEN
@given(cases(), st.sampled_from([0, 1000]))
def test_periods_hold_all_candidates_and_nothing_else(case: Case, first_seq: int) -> None:
    periods = case.periods(range(first_seq, first_seq + len(case.ts)))
    found, asked = in_rows(periods, case.ts, first_seq), case.asked()
    expected = naive_ranges(asked)
    event(f"{min(len(expected), 3)} ranges")
    assert in_order(found)
    assert joined(found) == expected
    # So every match lies in one of them, and in no two.
    assert all(contained(range_of(asked, each), expected) for each in candidates(asked))


@OFTEN
@given(cases(), st.randoms(use_true_random=False))
def test_without_numbers_periods_go_by_time_alone(case: Case, choose: Random) -> None:
    numbers = list(range(len(case.ts)))
    choose.shuffle(numbers)
    periods = case.periods(numbers, numbered=False)
    assert periods.start_us.tolist() == sorted(periods.start_us.tolist())
    assert set(periods.first.tolist()) <= {-FARTHEST}
    assert set(periods.last.tolist()) <= {FARTHEST}
    assert joined(in_rows(periods, case.ts, 0)) == naive_ranges(case.asked(numbered=False))


@OFTEN
@given(cases(keys=3, most=20))
def test_periods_of_each_key(case: Case) -> None:
    seen = [0, 0, 0]
    numbers = []
    for key in case.keys:
        numbers.append((key << KEY_SHIFT) + seen[key])
        seen[key] += 1
    periods = case.periods(numbers)
    for key in range(3):
        found = in_rows(periods.only(periods.key == key), case.times(key), key << KEY_SHIFT)
        assert in_order(found)
        asked, ranges = case.asked(key), joined(found)
        assert all(contained(each, naive_ranges(asked)) for each in ranges)
        # What would begin before the first row of a key may be left out.
        for each in candidates(asked):
            assert contained(range_of(asked, each), ranges) or not has_room(asked, each)


def test_a_block_that_would_begin_before_its_key_is_none() -> None:
    """`A C* B D`, of which A and D are asked: the first row of key 1 is a D, but has no B."""
    skeleton = Skeleton(tuple(Symbol(ANY, each) for each in (False, False, True)), True, True)
    first, last = condition(0, 0), condition(2, 1)
    shape = Shape(skeleton, (first, last), filtered=False)
    #      ts   10     11     12     13
    #  key 0     A      B             D
    #  key 1                   D
    meets = {first: [True, False, False, False], last: [False, False, True, True]}
    case = Case(shape, 9, [10, 11, 12, 13], [0, 0, 1, 0], meets)
    periods = case.periods([0, 1, 1 << KEY_SHIFT, 2])
    assert in_rows(periods, case.times(0), 0) == [(0, 3)]


def test_a_match_may_last_exactly_as_long_as_within() -> None:
    skeleton = Skeleton((Symbol(ANY, False), Symbol(ANY, False)), True, True)
    first, last = condition(0, 0), condition(1, 1)
    case = Case(
        Shape(skeleton, (first, last), filtered=False),
        5,
        [0, 5, 100, 106],
        [0, 0, 0, 0],
        {first: [True, False, True, False], last: [False, True, False, True]},
    )
    assert in_rows(case.periods(range(4)), case.ts, 0) == [(0, 2)]


def test_blocks_are_cut_at_gaps() -> None:
    skeleton = Skeleton(
        tuple(Symbol(ANY, each) for each in (False, True, False, False, True)), False, False
    )
    shape = Shape(skeleton, (), filtered=False)
    asked = [condition(symbol, symbol) for symbol in (0, 1, 4)]

    def blocks(*, numbered: bool) -> list[tuple[int, int, tuple[int, ...]]]:
        found = blocks_of(shape, asked, numbered=numbered)
        return [(each.first, each.last, each.chosen) for each in found]

    assert blocks(numbered=True) == [(0, 1, (0, 1)), (3, 4, (4,))]
    assert blocks(numbered=False) == [(0, 0, (0,)), (1, 1, (1,)), (4, 4, (4,))]


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5), unique=True).map(sorted))
def test_places_of_numbers_among_others(wanted: list[int], others: list[int]) -> None:
    found = places_of(np.array(wanted, np.int64), np.array(others, np.int64))
    assert found.tolist() == [others.index(each) if each in others else -1 for each in wanted]


# Ranges that share something become one


@OFTEN
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(-1, 6)), max_size=9))
def test_merged_ranges_are_apart_and_in_order(drawn: list[tuple[int, int]]) -> None:
    ranges = sorted((start, start + length) for start, length in drawn)
    start, end = (np.array([each[n] for each in ranges], np.int64) for n in (0, 1))
    found = list(zip(*(each.tolist() for each in merged(start, end)), strict=True))
    assert found == joined(ranges)
    assert all(one[1] <= other[0] for one, other in pairwise(found))


# Units


def units_like(ts: Sequence[int], cuts: Sequence[int], first_seq: int = 0) -> Units:
    """Return units of rows at these times, cut before some rows."""
    bounds = [0, *sorted(set(cuts)), len(ts)]
    pairs = [(low, high) for low, high in pairwise(bounds) if low < high]

    def column(values: Iterable[int]) -> Int64s:
        return np.array(list(values), np.int64)

    return Units(
        NOBODY,
        column([0]),
        column(range(len(pairs))),
        column(range(len(pairs) + 1)),
        column(ts[low] for low, _ in pairs),
        column(ts[high - 1] for _, high in pairs),
        column(high - low for low, high in pairs),
        in_order=True,
        first_seq=first_seq,
    )


@st.composite
def cut_cases(draw: st.DrawFn) -> tuple[Case, Units]:
    case = draw(cases(most=18))
    cuts = draw(st.lists(st.integers(0, len(case.ts)), max_size=6))
    return case, units_like(case.ts, cuts, draw(st.sampled_from([0, 50])))


def unit_of_rows(units: Units) -> list[int]:
    return np.repeat(np.arange(units.count), units.rows).tolist()


def clipped(ranges: Sequence[Range], others: Sequence[Range]) -> list[Range]:
    """Return what lies in one of some ranges and in one of others."""
    both = [(max(one[0], other[0]), min(one[1], other[1])) for one in ranges for other in others]
    return sorted(each for each in both if each[0] < each[1])


@settings(deadline=None, max_examples=30)
@given(cases(most=18), st.booleans(), st.integers(-12, 20), st.integers(0, 40), st.data())
def test_intervals_are_the_kept_rows_of_periods(
    case: Case, numbered: bool, start: int, length: int, data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder, tiny_files():
        stream = new_stream(Path(folder))
        flushed = data.draw(st.integers(0, len(case.ts)))
        stream.append(at(*case.ts[:flushed]))
        stream.flush()
        stream.append(at(*case.ts[flushed:]))
        units = units_of(stream.snapshot())
        assert units.in_order
        kept = data.draw(st.lists(st.booleans(), min_size=units.count, max_size=units.count))
        periods = case.periods(range(len(case.ts)), numbered=numbered)
        asked = TimeRange(start, start + length)
        found = intervals_of(units, np.array(kept, np.bool_), periods, asked, numbered=numbered)
    inside = [row for row, ts in enumerate(case.ts) if asked.start_us <= ts < asked.end_us]
    rows = [(inside[0], inside[-1] + 1)] if inside else []
    # What is kept side by side is one region, and matches go across regions nowhere.
    owner = unit_of_rows(units)
    regions: list[Range] = []
    for row in range(len(case.ts)):
        if kept[owner[row]]:
            goes_on = bool(regions) and regions[-1][1] == row
            regions[-1:] = (
                [(regions[-1][0], row + 1)] if goes_on else [*regions[-1:], (row, row + 1)]
            )
    wanted = joined(clipped(in_rows(periods, case.ts, 0), rows))
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == clipped(
        wanted, regions
    )


# The map


def mapped(case: Case, units: Units) -> Units:
    """Let the units know which values they can have: exactly those that they do have."""
    starts = np.cumsum(units.rows) - units.rows
    for each, meets in case.meets.items():
        ((attribute, wanted),) = each.clause
        units.possible[attribute, wanted] = np.logical_or.reduceat(np.array(meets), starts)
    return units


def every_symbol(case: Case) -> Asked:
    """Ask for all symbols: without a condition, any row will do."""
    asked = case.asked()
    anywhere = [True] * len(case.ts)
    met = dict.fromkeys(range(len(case.shape.skeleton.symbols)), anywhere)
    return replace(asked, met={**met, **asked.met})


@OFTEN
@given(cut_cases(), st.integers(1, 4))
def test_the_map_keeps_the_units_of_all_matches(drawn: tuple[Case, Units], coarse: int) -> None:
    case, units = drawn
    kept = kept_units(mapped(case, units), case.shape, case.within, ALL_TIME, coarse)
    assert kept.shape == (units.count,)
    owner = unit_of_rows(units)
    for candidate in candidates(every_symbol(case)):
        low, high = range_of(every_symbol(case), candidate)
        assert all(kept[owner[row]] for row in range(low, high))


@OFTEN
@given(cut_cases(), st.integers(1, 4), st.integers(-9, 20), st.integers(0, 20))
def test_the_map_of_a_period_of_time(
    drawn: tuple[Case, Units], coarse: int, start: int, length: int
) -> None:
    case, units = drawn
    asked = TimeRange(start, start + length)
    kept = kept_units(mapped(case, units), case.shape, case.within, asked, coarse)
    for unit in np.flatnonzero(kept):
        assert units.ts_max[unit] >= asked.start_us
        assert units.ts_min[unit] < asked.end_us
    owner, every = unit_of_rows(units), every_symbol(case)
    inside = [asked.start_us <= ts < asked.end_us for ts in case.ts]
    met = {
        symbol: [a and b for a, b in zip(rows, inside, strict=True)]
        for symbol, rows in every.met.items()
    }
    for candidate in candidates(replace(every, met=met)):
        low, high = range_of(every, candidate)
        assert all(kept[owner[row]] for row in range(low, high) if inside[row])


def test_a_coarser_map_keeps_more() -> None:
    """A and B are far apart: the fine map sees it, a coarse one does not."""
    skeleton = Skeleton((Symbol(ANY, False), Symbol(ANY, True)), True, True)
    first, last = condition(0, 0), condition(1, 1)
    shape = Shape(skeleton, (first, last), filtered=False)
    ts = list(range(0, 80, 10))
    meets = {first: [n == 0 for n in range(8)], last: [n == 3 for n in range(8)]}
    case = Case(shape, 10, ts, [0] * 8, meets)
    kept = [
        kept_units(mapped(case, units_like(ts, range(8))), shape, 10, ALL_TIME, coarse).tolist()
        for coarse in (1, 2, 4)
    ]
    assert kept == [[False] * 8, [True] * 4 + [False] * 4, [True] * 4 + [False] * 4]


def test_the_map_of_nothing() -> None:
    shape = Shape(Skeleton((Symbol(ANY, False),), True, True), (), filtered=False)
    assert kept_units(units_like([], []), shape, 5, ALL_TIME).tolist() == []
    # A pattern of which no row is sure can be anywhere.
    without = Shape(Skeleton((), False, False), (), filtered=False)
    assert kept_units(units_like([1, 2], [1]), without, 5, ALL_TIME).tolist() == [True, True]
    assert kept_units(units_like([1, 2], [1]), without, 5, TimeRange(2, 3)).tolist() == [
        False,
        True,
    ]
