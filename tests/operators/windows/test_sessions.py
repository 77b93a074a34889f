"""Sessions against their twin: any chunking, dumped and loaded on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.build import build_tree
from eventide.engines.history.windows.calls import asked_of
from eventide.engines.live.engine import LiveEngine
from eventide.errors import EventideError, StateError
from eventide.lang.sql import plan_sql
from eventide.operators.windows.sessions import AggregateSessions
from eventide.plan.bind import bind
from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import Scan
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import Sessions, WindowAggregate
from tests.engines.live.arriving import in_steps, lived
from tests.naive import windows as naive
from tests.operators.windows.test_by_count import arrivals, cuts, keys
from tests.operators.windows.test_windows import (
    AGGREGATES,
    ALL_AGGREGATES,
    SCHEMA,
    event,
    run,
    same_bag,
    to_batch,
)

gaps = st.integers(1, 12)
TEXT = "SELECT car, window_start, window_end, COUNT(*) AS n FROM cars GROUP BY car, {}"
SESSION = "SESSION(ts, INTERVAL '5' SECOND)"


def session_plan(gap: int, keys: tuple[str, ...] = ("car",)) -> Plan:
    named = tuple(Named(name, Column(name)) for name in keys)
    plan = WindowAggregate(Scan("cars"), named, Sessions(gap), AGGREGATES)
    return bind(plan, {"cars": SCHEMA})


@settings(deadline=None, max_examples=80)
@given(arrivals.map(naive.in_order), keys, gaps, cuts)
def test_sessions(
    rows: list[dict[str, Any]], keys: tuple[str, ...], gap: int, cuts: list[int]
) -> None:
    found = run(build_tree(session_plan(gap, keys)), rows, cuts)
    same_bag(found, naive.sessions(rows, keys, gap, ALL_AGGREGATES))
    ends = [row["window_end"] for row in found]
    assert ends == sorted(ends)


@settings(deadline=None, max_examples=60)
@given(arrivals, keys, gaps, st.integers(0, 20), st.integers(1, 8))
def test_live_a_session_leaves_when_the_watermark_reaches_its_end(
    arrived: list[dict[str, Any]],
    keys: tuple[str, ...],
    gap: int,
    lateness: int,
    batch_size: int,
) -> None:
    engine = LiveEngine.of(session_plan(gap, keys), {"cars": SCHEMA}, lateness)
    found = lived(engine, in_steps({"cars": arrived}, batch_size), {"cars": SCHEMA})
    on_time = found.on_time({"cars": arrived})["cars"]
    expected = naive.sessions(on_time, keys, gap, ALL_AGGREGATES)
    same_bag(found.rows, expected)
    for watermark_us, so_far in found.told:
        same_bag(so_far, [row for row in expected if row["window_end"] <= watermark_us])


def test_a_key_is_forgotten_with_its_session() -> None:
    #  ts   0  1  2  3  4  5  6      gap 3, a new key in each step
    tree = build_tree(session_plan(3))
    states = tree.initial_state()
    for step in range(50):
        rows = [event(step, car=f"car {step}", speed=1.0)]
        states, _ = tree.step(states, (to_batch(rows),), step + 1)
        assert states[-1].whole.partials.num_rows <= 2
    states, batch = tree.step(states, (to_batch([]),), 60)
    assert batch.num_rows == 2
    assert states[-1].whole.partials.num_rows == 0


def test_states_that_cannot_be_are_refused() -> None:
    (operator,) = build_tree(session_plan(3)).operators
    assert isinstance(operator, AggregateSessions)
    state, _ = operator.step(operator.initial_state(), (to_batch([event(5)]),), 6)
    partials = state.whole.partials
    (row,) = partials.to_pylist()
    turned, twice = (
        type(partials).from_pylist(rows, schema=partials.schema)
        for rows in ([{**row, "first": 9}], [row, row])
    )
    for wrong, message in ((turned, "ends before it starts"), (twice, "not all different")):
        changed = type(state).of(operator.opened(wrong), 6)
        with pytest.raises(StateError, match=message):
            operator.load(operator.dump(changed))


def test_from_text_without_keys_and_with_a_condition() -> None:
    rows = [{"ts": n * 1_000_000, "car": "ab"[n % 2]} for n in (0, 1, 4, 9, 10, 20)]
    text = "SELECT window_end, COUNT(*) AS n, FIRST(car) AS car FROM cars GROUP BY {} HAVING {}"
    found = ev.sql(text.format(SESSION, "COUNT(*) < 3"), cars=rows).rows()
    # 0 1 4 | 9 10 | 20: between 4 and 9 there is a whole gap.
    assert [(str(row["window_end"])[-2:], row["n"], row["car"]) for row in found] == [
        ("15", 2, "b"),
        ("25", 1, "a"),
    ]


def test_explained() -> None:
    rows = [{"ts": n * 1_000_000, "car": "ab"[n % 2]} for n in range(9)]
    shown = str(ev.sql("EXPLAIN " + TEXT.format(SESSION), cars=rows))
    assert "WindowAggregate by car, sessions with a gap of 5 s: count(*) AS n" in shown
    assert "in one slice, for a session can be of any length" in shown
    assert "remembering the open session of each key (car), for 5 s after its last event" in shown
    plan = plan_sql(f"SELECT COUNT(*) AS n FROM cars GROUP BY {SESSION}", {"cars": SCHEMA})
    assert asked_of(plan) == "where a session ends is found by looking at each event"


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("SESSION(ts)", "SESSION takes two arguments"),
        ("SESSION(ts, 5)", "a window's length is an interval"),
        ("SESSION(ROWS, 5)", "SESSION goes over ts"),
        ("SESSION(car, INTERVAL '5' SECOND)", "SESSION goes over ts"),
        ("SESSION(ts, INTERVAL '0' SECOND)", "must be positive"),
        (f"{SESSION}, TUMBLE(ts, INTERVAL '5' SECOND)", "two windows"),
    ],
)
def test_wrong_sessions(window: str, message: str) -> None:
    with pytest.raises(EventideError, match=message):
        plan_sql(TEXT.format(window), {"cars": SCHEMA})
