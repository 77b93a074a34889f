"""Windows by count against their twin: any chunking, dumped and loaded on the way."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.engines.live.engine import LiveEngine
from eventide.errors import PlanError, StateError
from eventide.lang.sql import plan_sql
from eventide.plan.bind import bind
from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import Scan
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import CountWindow, WindowAggregate
from tests.engines.live.arriving import in_steps, lived
from tests.naive import windows as naive
from tests.operators.windows.test_windows import (
    AGGREGATES,
    ALL_AGGREGATES,
    KEYS,
    SCHEMA,
    event,
    plain_rows,
    run,
    same_bag,
    to_batch,
    window_plan,
)

keys = st.sampled_from([(), ("car",), KEYS])
sizes = st.integers(1, 6)
readings = st.fixed_dictionaries(
    {
        "ts": st.integers(-10, 20),
        "car": st.sampled_from(["a", "b", None]),
        "lane": st.sampled_from([1, None]),
        "speed": st.sampled_from([None, 0.1, 3.3, -7.25]),
        "gear": st.sampled_from([None, 1, -2]),
        "toll": st.sampled_from([None, Decimal("1.25")]),
        "seen": st.sampled_from([None, 7]),
        "lit": st.sampled_from([None, True, False]),
        "tag": st.sampled_from([None, b"x", b"y"]),
    }
)
# Long ones are as likely as short ones: few events of a key fill no window.
arrivals = (
    st.integers(0, 40)
    .flatmap(lambda count: st.lists(readings, min_size=count, max_size=count))
    .map(lambda rows: [{**row, "_seq": seq} for seq, row in enumerate(rows)])
)
cuts = st.lists(st.integers(0, 40), max_size=6)

# Windows by count keep something of every key, and say so.
pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")


def count_plan(size: int, slide: int, keys: tuple[str, ...] = ("car",)) -> Plan:
    named = tuple(Named(name, Column(name)) for name in keys)
    plan = WindowAggregate(Scan("cars"), named, CountWindow(size, slide), AGGREGATES)
    return bind(plan, {"cars": SCHEMA})


@settings(deadline=None, max_examples=60)
@given(arrivals.map(naive.in_order), keys, sizes, st.integers(1, 9), cuts)
def test_windows_by_count(
    rows: list[dict[str, Any]], keys: tuple[str, ...], size: int, slide: int, cuts: list[int]
) -> None:
    found = run(build_tree(count_plan(size, slide, keys)), rows, cuts)
    expected = naive.count_windows(rows, keys, size, slide, ALL_AGGREGATES)
    same_bag(found, expected)
    # Not even the order may hang on how events are cut into batches.
    whole = run(build_tree(count_plan(size, slide, keys)), rows, [])
    shown = ("window_start", "window_end", *keys)
    assert [[row[name] for name in shown] for row in found] == [
        [row[name] for name in shown] for row in whole
    ]


@settings(deadline=None, max_examples=60)
@given(
    arrivals,
    keys,
    sizes,
    sizes,
    st.integers(0, 20),
    st.integers(1, 8),
)
def test_live_a_window_leaves_when_the_watermark_has_passed_its_last_event(
    arrived: list[dict[str, Any]],
    keys: tuple[str, ...],
    size: int,
    slide: int,
    lateness: int,
    batch_size: int,
) -> None:
    engine = LiveEngine.of(count_plan(size, slide, keys), {"cars": SCHEMA}, lateness)
    found = lived(engine, in_steps({"cars": arrived}, batch_size), {"cars": SCHEMA})
    on_time = found.on_time({"cars": arrived})["cars"]
    expected = naive.count_windows(on_time, keys, size, slide, ALL_AGGREGATES)
    same_bag(found.rows, expected)
    for watermark_us, so_far in found.told:
        same_bag(so_far, [row for row in expected if row["window_end"] < watermark_us])


def test_keys_are_expressions_and_aggregates_have_filters() -> None:
    rows = [event(i, gear=i, lit=i % 3 == 0) for i in range(8)]
    text = (
        "SELECT gear % 2 AS odd, SUM(gear) AS s, COUNT(*) FILTER (WHERE lit) AS n FROM cars "
        "WHERE gear <> 4 GROUP BY odd, TUMBLE(ROWS, 2) HAVING SUM(gear) > 2"
    )
    found = run(build_tree(plan_sql(text, {"cars": SCHEMA})), rows, [3, 4])
    # even: 0 2 | 6; odd: 1 3 | 5 7
    assert found == [{"odd": 1, "s": 4, "n": 1}, {"odd": 1, "s": 12, "n": 0}]


def test_the_state_is_counters_and_the_panes_of_open_windows() -> None:
    #  size, slide -> partials of one key: a pane is what all windows cover wholly or not at all
    for size, slide, most in [(100, 100, 1), (100, 20, 5), (7, 3, 7), (3, 50, 1)]:
        tree = build_tree(count_plan(size, slide))
        states = tree.initial_state()
        for start in range(0, 1000, 10):
            rows = [event(start + i, speed=1.0) for i in range(10)]
            states, _ = tree.step(states, (to_batch(rows),), start + 10)
            assert states[-1].whole.partials.num_rows <= most
        # After so many whole slides a key stands where it began, if windows share no event.
        assert states[-1].whole.counters.num_rows == (slide < size)


def test_a_step_does_not_change_the_state_it_was_given() -> None:
    tree = build_tree(count_plan(4, 2))
    states, _ = tree.step(tree.initial_state(), (to_batch([event(0, speed=1.0)]),), 0)
    before = tree.dump(states)
    tree.step(states, (to_batch([event(30 + i, speed=2.0) for i in range(5)]),), 40)
    assert tree.dump(states) == before


def test_the_state_of_other_windows_is_refused() -> None:
    dumped = build_tree(count_plan(4, 2)).dump(build_tree(count_plan(4, 2)).initial_state())
    with pytest.raises(StateError, match=r"(?s)written by another query.*tumbling 4 rows"):
        build_tree(count_plan(4, 4)).load(dumped)
    with pytest.raises(StateError):
        build_tree(window_plan(10, 10)).load(dumped)
    tree = build_tree(window_plan(10, 10))
    with pytest.raises(StateError):
        build_tree(count_plan(4, 2)).load(tree.dump(tree.initial_state()))


@pytest.mark.parametrize("damage", [lambda d: d[:-9], lambda _: b"", lambda d: b"\0" * len(d)])
def test_a_damaged_state_is_refused(damage: Any) -> None:  # noqa: ANN401
    tree = build_tree(count_plan(4, 2))
    with pytest.raises(StateError):
        tree.load(damage(tree.dump(tree.initial_state())))


def test_a_window_has_a_size_and_a_slide() -> None:
    for size, slide in [(0, 1), (1, 0), (-2, 2)]:
        with pytest.raises(PlanError, match="must be positive"):
            CountWindow(size, slide)


def test_a_pattern_over_windows_by_count_goes_with_their_ends() -> None:
    text = """
        SELECT * FROM (
          SELECT car, window_end AS ts, AVG(speed) AS mean FROM cars GROUP BY car, TUMBLE(ROWS, 2)
        ) MATCH_RECOGNIZE (
          PARTITION BY car ORDER BY ts
          MEASURES FIRST(ts) AS since, LAST(B.mean) - A.mean AS gain
          PATTERN (A B) DEFINE B AS mean > PREV(mean))"""
    engine = LiveEngine.of(plan_sql(text, {"cars": SCHEMA}), {"cars": SCHEMA}, 0)
    rows = [
        event(ts, _seq=seq, speed=speed)
        for seq, (ts, speed) in enumerate([(0, 1.0), (3, 3.0), (5, 6.0), (9, 8.0), (9, 7.0)])
    ]
    state, first = engine.push(engine.initial_state(), to_batch(rows))
    state, last = engine.finish(state)
    found = [row for part in (first, last) for row in plain_rows(part.rows)]
    assert found == [{"car": "a", "since": 3, "gain": 5.0}]
