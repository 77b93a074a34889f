"""Live queries that run as one plan are divided and united between steps, with late events."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.late_windows import Late
from eventide.errors import UnsupportedError
from eventide.lang.sql import plan_sql
from tests.engines.live.arriving import Lived, Step, arrived, in_pieces
from tests.naive.windows import Event
from tests.operators.algebra.drive import bag
from tests.operators.dividing import (
    CATALOG,
    EVERYBODY,
    NOBODY,
    QUERIES,
    SECOND,
    TEXTS,
    among,
    drawn,
    rows_for,
)

CASES: list[tuple[str, Late]] = [
    ("tumbling", "window"),
    ("hopping", "window"),
    ("sessions", "window"),
    ("sessions", "watermark"),
    ("hopping over pattern", "watermark"),
    ("temporal confirmed", "watermark"),
    ("sequence", "watermark"),
    ("pattern over union", "watermark"),
]


@cache
def engine_of(name: str, late: Late) -> LiveEngine:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = plan_sql(TEXTS[name], CATALOG)
        return LiveEngine.of(plan, CATALOG, 2 * SECOND, late=late)


def steps_of(seed: int) -> list[Step]:
    """Random events in pieces as they arrive, some of them late."""
    choose = random.Random(seed)
    streams = {}
    for name, events in drawn(choose, 60).items():
        order = sorted(range(len(events)), key=lambda place: place + choose.uniform(0, 9))
        streams[name] = [{**events[place], "_seq": seq} for seq, place in enumerate(order)]
    return list(in_pieces(streams, choose))


def run(
    engine: LiveEngine, state: LiveState, steps: Iterable[Step], *, ends: bool = False
) -> tuple[LiveState, list[Event]]:
    """Take steps; return the state and the rows that are reported."""
    found = Lived()
    for step in steps:
        state, reported = engine.take(state, arrived(engine, step, CATALOG))
        found.add(reported)
    if ends:
        state, reported = engine.finish(state)
        found.add(reported)
    return state, found.rows


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.data())
@pytest.mark.parametrize(("name", "late"), CASES)
def test_halves_report_the_rows_of_the_whole(
    name: str, late: Late, seed: int, data: st.DataObject
) -> None:
    engine, steps = engine_of(name, late), steps_of(seed)
    divided = data.draw(st.integers(0, len(steps)), "divided after so many steps")
    united = data.draw(st.integers(divided, len(steps)), "united after so many steps")
    queries = frozenset(data.draw(st.sets(st.integers(0, QUERIES - 1)), "queries of a half"))
    _, expected = run(engine, engine.initial_state(), steps, ends=True)
    whole, rows = run(engine, engine.initial_state(), steps[:divided])
    halves = []
    for own in (queries, EVERYBODY - queries):
        half = engine.load(engine.dump(engine.of_keys(whole, among(own))))
        half, found = run(engine, half, steps[divided:united])
        rows += rows_for(found, own)
        halves.append(engine.of_keys(half, among(own)))
    together = engine.load(engine.dump(engine.united(*halves)))
    _, last = run(engine, together, steps[united:], ends=True)
    assert bag(rows + last) == bag(expected)


def test_events_that_wait_stay_with_both_halves() -> None:
    engine = engine_of("tumbling", "watermark")
    state, _ = run(engine, engine.initial_state(), steps_of(1)[:3])
    nothing = engine.of_keys(state, among(NOBODY))
    waiting, *operators = engine.sizes(nothing)
    assert waiting == engine.sizes(state)[0]
    assert waiting[1].tuples
    assert operators == list(engine.sizes(engine.initial_state())[1:])


def test_only_states_that_have_seen_the_same_are_united() -> None:
    engine = engine_of("tumbling", "watermark")
    steps = steps_of(2)
    state, _ = run(engine, engine.initial_state(), steps[:3])
    others = [
        engine.initial_state(),
        run(engine, state, steps[3:4])[0],
        engine.moved(state, state.clock_us + 1),
    ]
    for other in others:
        with pytest.raises(UnsupportedError, match="that have not seen the same cannot be united"):
            engine.united(state, other)
