"""The parts of the matcher of situations, each against its definition."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.situations import periods
from eventide.kernels.situations.orders import order_cost, plan_greedily, plan_orders
from eventide.kernels.situations.periods import certain_ranges, intersect_ranges, possible
from eventide.kernels.situations.runs import NEVER
from eventide.plan.situations import allen


def test_the_bits_are_those_of_the_plan() -> None:
    for name in allen.NAMES:
        constant = name.upper().replace(" ", "_")
        assert getattr(periods, constant) == getattr(allen, constant)
    assert periods.ANY == allen.ANY


times = st.integers(0, 6)
compiling = settings(deadline=None)


@compiling
@given(times, st.integers(1, 4), times, st.integers(1, 4), times)
def test_what_is_possible_is_what_some_end_makes_true(
    start: int, lasts: int, other_start: int, other_lasts: int, since: int
) -> None:
    now = max(start, other_start) + since
    one, other = (start, start + lasts), (other_start, other_start + other_lasts)
    known = [end if end <= now else NEVER for _, end in (one, other)]
    futures = range(now + 1, now + 8)
    become = 0
    for end in futures if known[0] == NEVER else [known[0]]:
        for other_end in futures if known[1] == NEVER else [known[1]]:
            become |= allen.relation_between((start, end), (other_start, other_end))
    assert possible(start, known[0], other_start, known[1]) == become


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Return periods that follow one another; some touch."""
    found, place = [], 0
    for gap, lasts in draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=7)):
        found.append((place + gap, place + gap + lasts))
        place += gap + lasts
    return found


@settings(compiling, max_examples=400)
@given(streams(), streams(), st.integers(0, allen.ANY), st.integers(0, 30), st.data())
def test_ranges_are_the_runs_that_certainly_fit(
    stream: list[tuple[int, int]],
    others: list[tuple[int, int]],
    mask: int,
    now: int,
    data: st.DataObject,
) -> None:
    seen = [each for each in stream if each[0] <= now]
    probes = [each for each in others if each[0] <= now]
    if not probes:
        return
    start, end = data.draw(st.sampled_from(probes))
    end = end if end <= now else NEVER
    starts = np.array([each[0] for each in seen], np.int64)
    ends = np.array([each[1] for each in seen], np.int64)
    low = data.draw(st.integers(0, len(seen)))
    room = np.zeros(32, np.int64)
    count = certain_ranges(start, end, mask, starts, ends, now, low, len(seen), room)
    found = [run for i in range(count) for run in range(room[2 * i], room[2 * i + 1])]
    expected = [
        run
        for run in range(low, len(seen))
        if not possible(start, end, starts[run], ends[run] if ends[run] <= now else NEVER) & ~mask
    ]
    assert found == expected


ranges = st.lists(st.integers(0, 30), max_size=10, unique=True).map(sorted)


@compiling
@given(ranges, ranges)
def test_an_intersection_has_what_both_have(left: list[int], right: list[int]) -> None:
    def pairs(bounds: list[int]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int]:
        return np.array([*bounds, *[0] * 24], np.int64), len(bounds) // 2

    def covered(bounds: list[int]) -> set[int]:
        whole = zip(bounds[::2], bounds[1::2], strict=False)
        return {place for low, high in whole for place in range(low, high)}

    both = np.zeros(40, np.int64)
    count = intersect_ranges(*pairs(left), *pairs(right), both)
    assert covered(both[: 2 * count].tolist()) == covered(left) & covered(right)


@settings(compiling, max_examples=60)
@given(st.integers(2, 5), st.randoms(use_true_random=False))
def test_a_planned_order_is_the_cheapest(symbols: int, chance: object) -> None:
    rng = np.random.default_rng(getattr(chance, "randint")(0, 1 << 30))  # noqa: B009
    sizes = rng.uniform(0.1, 500.0, symbols)
    shares = rng.uniform(0.0, 1.0, (symbols, symbols)) ** 3
    shares = np.maximum(shares, shares.T).ravel()
    links = rng.integers(0, 2, (symbols, symbols))
    linked = np.maximum(links, links.T)
    np.fill_diagonal(linked, 0)
    tables = (sizes, shares, linked.ravel().astype(np.int64))
    orders = np.zeros(symbols * symbols, np.int64)
    plan_orders(*tables, orders)
    for anchor in range(symbols):
        order = orders[anchor * symbols : (anchor + 1) * symbols]
        others = [each for each in range(symbols) if each != anchor]
        costs = [
            order_cost(np.array([anchor, *each], np.int64), *tables)
            for each in permutations(others)
        ]
        assert sorted(order.tolist()) == list(range(symbols))
        assert order[0] == anchor
        assert np.isclose(order_cost(order, *tables), min(costs))
        plan_greedily(anchor, *tables, orders)
        assert sorted(orders[anchor * symbols :][:symbols].tolist()) == list(range(symbols))
