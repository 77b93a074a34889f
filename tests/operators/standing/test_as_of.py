"""Joins as of a time, and the retiming above them, against their twins."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.joins import as_of
from eventide.operators.standing.joins.as_of import JoinAsOf
from eventide.operators.standing.retime import RetimeTuples
from eventide.plan.expressions import Column
from eventide.schema import INT64
from tests.naive.standing.as_of_join import joined_as_of
from tests.naive.standing.window_join import Life
from tests.operators.standing.lives import bag_at, before, changes_of

LAST = 30
LEFT = pa.schema([("t.k", pa.int64()), ("t.v", pa.int64())])
RIGHT = pa.schema([("q.k", pa.int64()), ("q.p", pa.int64())])
KEYS = st.sampled_from([None, 0, 1, 1])


@st.composite
def drawn_left(draw: st.DrawFn) -> list[Life]:
    times = sorted(draw(st.lists(st.integers(1, 20), max_size=6)))
    return [
        Life({"t.k": draw(KEYS), "t.v": number}, at, at + draw(st.integers(1, 8)))
        for number, at in enumerate(times)
    ]


@st.composite
def drawn_right(draw: st.DrawFn, newest: bool) -> list[Life]:
    times = sorted(draw(st.lists(st.integers(1, 20), min_size=1, max_size=6)))
    lives = []
    for number, at in enumerate(times):
        gone = None if newest else draw(st.none() | st.integers(at + 1, at + 6))
        lives.append(Life({"q.k": draw(KEYS), "q.p": number}, at, NEVER, gone))
    return lives


CUTS = st.lists(st.integers(1, LAST), max_size=5).map(lambda cuts: [*sorted({*cuts}), LAST + 1])


def expected_at(lives: list[tuple[dict[str, Any], int, int]], now: int) -> Counter[Any]:
    return Counter(tuple(row.items()) for row, at, end in lives if at <= now < end)


@settings(deadline=None, max_examples=120)
@given(data=st.data(), cuts=CUTS, newest=st.booleans(), strict=st.booleans(), outer=st.booleans())
def test_rows_meet_what_was_held_when_they_came(
    data: st.DataObject, cuts: list[int], newest: bool, strict: bool, outer: bool
) -> None:
    left, right = data.draw(drawn_left()), data.draw(drawn_right(newest))
    reload, room = data.draw(st.booleans()), data.draw(st.sampled_from([1, 1024]))
    operator = JoinAsOf(
        RIGHT,
        (Column("t.k", INT64),),
        (Column("q.k", INT64),),
        pa.schema([*LEFT, *RIGHT]),
        newest,
        strict,
        outer,
    )
    inputs = (changes_of(left, LEFT, "aware"), changes_of(right, RIGHT, "aware"))
    state, start, found = operator.initial_state(), 0, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(as_of, "ROOM", room)
        for until in cuts:
            parts = tuple(before(changes, start, until) for changes in inputs)
            state, results = operator.step(state, parts, until)
            found.append(results)
            if reload:
                state = operator.load(operator.dump(state))
            start = until
    lives = joined_as_of(left, right, ("t.k", "q.k"), newest=newest, strict=strict, outer=outer)
    for now in range(LAST + 1):
        assert bag_at(found, now) == expected_at(lives, now)


def rounded(time: int, slide: int) -> int:
    return time if time == NEVER else -(-time // slide) * slide


@settings(deadline=None, max_examples=80)
@given(
    lives=drawn_left(),
    cuts=CUTS,
    slide=st.sampled_from([None, 1, 4]),
    tells_ends=st.booleans(),
    reload=st.booleans(),
)
def test_lives_are_rounded_and_ends_are_told(
    lives: list[Life], cuts: list[int], slide: int | None, tells_ends: bool, reload: bool
) -> None:
    operator = RetimeTuples(LEFT, slide, tells_ends)
    given_changes = changes_of(lives, LEFT, "aware")
    state, start = operator.initial_state(), 0
    found: list[Changes] = []
    for until in cuts:
        state, results = operator.step(state, (before(given_changes, start, until),), until)
        assert ((results.at >= start) & (results.at < until)).all()
        found.append(results)
        if reload:
            state = operator.load(operator.dump(state))
        start = until
    step = slide or 1
    times = [(life.row, rounded(life.at, step), rounded(life.end, step)) for life in lives]
    for now in range(LAST + 1):
        assert bag_at(found, now) == expected_at(times, now)
    ends = sum(int((part.sign < 0).sum()) for part in found)
    ended = sum(at < end <= LAST for _, at, end in times)
    assert ends == (ended if tells_ends else 0)
