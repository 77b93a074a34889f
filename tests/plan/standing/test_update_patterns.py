"""How tuples leave each edge of a plan, by the rules and by rounding checked one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.plan.expressions import OrderKey
from eventide.plan.nodes import Filter
from eventide.plan.standing.edges import Circumstances, Edge, UpdatePattern
from eventide.plan.standing.nodes import Difference, Distinct, Merge, Report, Standing, Top
from eventide.plan.standing.structures import feeds_strict_to_as_of, structure_below, structure_of
from eventide.plan.standing.text import pattern_text
from eventide.plan.standing.update_patterns import edges, pattern_of
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    StreamWindow,
    Unbounded,
)
from eventide.plan.tree import Plan
from tests.plan.standing.plans import (
    S,
    as_of,
    call,
    column,
    counted,
    everything,
    existence,
    join,
    latest,
    named,
    window,
)

HOUR = RangeWindow(3600 * S)


def merged(*sources: Plan) -> Merge:
    return Merge(tuple(named(each, "x") for each in sources))


def top(source: Plan) -> Top:
    return Top(source, (OrderKey(column("a.n")),), 3)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (window("a"), "weakest, lives 1 min"),
        (window("a", Unbounded()), "monotonic"),
        (window("a", SinceWindow(0, 9)), "monotonic"),
        (window("a", RangeWindow(10 * S, 3 * S)), "weak, lives up to 12 s 999 ms 999 us"),
        (window("a", PeriodWindow(5 * S)), "weak, lives up to 5 s"),
        (window("a", RowsWindow(5)), "strict"),
        (window("a", SessionWindow(5 * S, ("k",))), "strict"),
        (latest("a"), "strict"),
        (Filter(window("a"), call("=", "a.k", 1)), "weakest, lives 1 min"),
        (named(window("a"), "x"), "weakest, lives 1 min"),
        (as_of(window("a"), everything("b")), "weakest, lives 1 min"),
        (as_of(everything("a"), latest("b")), "monotonic"),
        (merged(window("a"), window("b")), "weakest, lives 1 min"),
        (merged(window("a"), window("b", HOUR)), "weak, lives up to 1 h"),
        (merged(window("a"), everything("b")), "weak"),
        (merged(window("a"), latest("b")), "strict"),
        (merged(everything("a"), everything("b")), "monotonic"),
        (join(window("a"), window("b", HOUR)), "weak, lives up to 1 min"),
        (join(window("a"), window("b"), window("c")), "weak, lives up to 1 min"),
        (join(window("a"), everything("b")), "weak, lives up to 1 min"),
        (join(everything("a"), everything("b")), "monotonic"),
        (join(window("a"), latest("b")), "strict, lives up to 1 min"),
        (Distinct(window("a")), "weak, lives up to 1 min"),
        (Distinct(join(window("a"), window("b", HOUR))), "weak, lives up to 1 min"),
        (Distinct(everything("a")), "monotonic"),
        (Distinct(latest("a")), "strict"),
        (Difference(named(window("a"), "x"), named(window("b"), "x")), "strict, lives up to 1 min"),
        (existence(window("a"), window("b")), "strict, lives up to 1 min"),
        (existence(window("a"), window("b"), negated=False), "strict, lives up to 1 min"),
        (counted(window("a"), "a.k"), "strict"),
        (counted(everything("a"), "a.k"), "strict"),
        (top(window("a")), "strict, lives up to 1 min"),
        (top(everything("a")), "strict"),
    ],
)
def test_patterns(plan: Plan, text: str) -> None:
    assert pattern_text(pattern_of(plan)) == text


def test_internal_windows_lose_nothing_but_bound_what_is_kept() -> None:
    inner, outer = window("a", internal=True), window("b", HOUR)
    assert pattern_text(pattern_of(inner)) == "monotonic, internal"
    assert (
        pattern_text(pattern_of(join(inner, window("b", internal=True)))) == "monotonic, internal"
    )
    # Arrivals on the internal side meet old tuples of the other: not in the order of coming.
    assert pattern_text(pattern_of(join(inner, outer))) == "weak, lives up to 1 h"
    assert pattern_text(pattern_of(as_of(inner, everything("b")))) == "monotonic, internal"
    kept = Circumstances(kept=True)
    assert pattern_text(pattern_of(inner, kept)) == "weakest, lives 1 min"
    assert pattern_text(pattern_of(join(inner, outer), kept)) == "weak, lives up to 1 min"


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ("current", "weak, lives up to 1 min"),
        ("rstream", "strict"),
        ("istream", "strict"),
        ("dstream", "strict"),
    ],
)
def test_distinct_is_strict_where_values_must_not_be_born_again(report: Report, text: str) -> None:
    plan = Standing(Distinct(window("a")), report=report)
    assert pattern_text(pattern_of(plan)) == text
    assert pattern_text(pattern_of(Standing(Distinct(everything("a")), report))) == "monotonic"


def test_an_output_window_makes_the_windows_below_internal() -> None:
    plan = Standing(join(window("a"), window("b")), "istream", output_window=RangeWindow(5 * S))
    assert [pattern_text(edge) for _, _, edge in edges(plan)] == [
        "weakest, lives 5 s",
        *["monotonic, internal"] * 3,
    ]
    kept = [pattern_text(edge) for _, _, edge in edges(plan, kept=True)]
    assert kept[1:] == ["weak, lives up to 1 min", *["weakest, lives 1 min"] * 2]
    rows = Standing(window("a"), "istream", output_window=RowsWindow(5))
    assert pattern_of(rows).pattern == UpdatePattern.STRICT


def test_edges_come_from_the_root_down() -> None:
    plan = Standing(join(window("a"), window("b")))
    depths = [(depth, type(node).__name__) for depth, node, _ in edges(plan)]
    assert depths == [(0, "Standing"), (1, "WindowJoin"), (2, "Windowed"), (2, "Windowed")]


def ceil_to(value: int, multiple: int | None) -> int:
    return value if multiple is None else -(-value // multiple) * multiple


def lifetimes(window: StreamWindow, slide: int | None) -> list[int]:
    """The lifetimes of tuples born at all instants of a while, those of no time left out."""
    found = []
    for ts in range(-150, 150):
        match window:
            case RangeWindow(size_us=size, jump_us=jump):
                exp = ceil_to(ts + size, jump)
            case PeriodWindow(period_us=period):
                exp = (ts // period + 1) * period
            case _:
                raise AssertionError(window)
        found.append(ceil_to(exp, slide) - ceil_to(ts, slide))
    return [each for each in found if each > 0]


RANGES = st.builds(RangeWindow, st.integers(1, 12), st.none() | st.integers(1, 6))
PERIODS = st.builds(PeriodWindow, st.integers(1, 12))


@settings(deadline=None)
@given(RANGES | PERIODS, st.none() | st.integers(1, 12))
def test_lifetimes_are_as_labelled_also_when_rounded(of: StreamWindow, slide: int | None) -> None:
    edge = pattern_of(window("a", of), Circumstances(slide_us=slide))
    found = lifetimes(of, slide)
    assert edge.lifetime_us is not None
    if edge.pattern == UpdatePattern.WEAKEST:
        assert set(found) == {edge.lifetime_us}
    else:
        assert edge.pattern == UpdatePattern.WEAK
        assert max(found, default=0) <= edge.lifetime_us
    if isinstance(of, RangeWindow) and of.jump_us is None and (slide or 1) <= of.size_us:
        assert max(found) == edge.lifetime_us
        assert (edge.pattern == UpdatePattern.WEAKEST) == (len(set(found)) == 1)


def test_a_slide_rounds_windows_and_with_restore_only_the_answer() -> None:
    plan = Standing(window("a", RangeWindow(10)), "istream", slide_us=4)
    assert pattern_of(plan) == Edge(UpdatePattern.WEAK, 12, in_order=True)
    restored = Standing(window("a", RangeWindow(10)), "istream", slide_us=4, restore=True)
    answer, leaf = (edge for _, _, edge in edges(restored))
    assert answer == Edge(UpdatePattern.WEAK, 12, in_order=True)
    assert leaf == Edge(UpdatePattern.WEAKEST, 10, in_order=True)
    even = Standing(window("a", RangeWindow(12)), slide_us=4)
    assert pattern_of(even) == Edge(UpdatePattern.WEAKEST, 12, in_order=True)


@pytest.mark.parametrize(
    ("plan", "structure"),
    [
        (window("a"), "queue"),
        (window("a", PeriodWindow(5)), "queue"),
        (everything("a"), "none"),
        (merged(window("a"), window("b")), "queue"),
        (merged(window("a"), window("b", HOUR)), "calendar queue"),
        (join(window("a"), window("b")), "calendar queue"),
        (Distinct(window("a")), "calendar queue"),
        (existence(window("a"), window("b")), "calendar queue with id map"),
        (latest("a"), "id map"),
        (counted(window("a"), "a.k"), "id map"),
    ],
)
def test_structures(plan: Plan, structure: str) -> None:
    assert structure_of(pattern_of(plan)) == structure


def test_only_joins_and_groups_keep_queues() -> None:
    ranges = (window("a"), window("b"))
    for node, structure in (
        (join(*ranges), "queue"),
        (counted(ranges[0], "a.k"), "queue"),
        (existence(*ranges), "calendar queue"),
        (Distinct(ranges[0]), "calendar queue"),
    ):
        assert structure_below(node, ranges[0], Circumstances()) == structure


def test_what_may_be_taken_back_must_not_meet_the_past() -> None:
    assert not feeds_strict_to_as_of(Standing(as_of(window("a"), everything("b"))))
    assert feeds_strict_to_as_of(Standing(as_of(latest("a"), everything("b"))))
    distinct = as_of(Distinct(window("a")), everything("b"))
    assert not feeds_strict_to_as_of(Standing(distinct))
    assert feeds_strict_to_as_of(Standing(distinct, report="istream"))
