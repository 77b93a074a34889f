"""What must not matter to a pattern of situations: what is dropped when, room, how to join."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from eventide.batch import END_OF_TIME_US, Batch
from eventide.engines.build import build_pipeline
from eventide.operators import situation_runs, situation_search
from eventide.operators.match_situations import MatchSituations
from eventide.plan.allen import ANY, BEFORE, DURING, EQUALS, FINISHED_BY, MEETS, OVERLAPS
from eventide.plan.explain import explain
from eventide.plan.nodes import Constraint, TemporalPattern
from eventide.plan.passes import optimise
from eventide.schema import MIN_TS_US
from tests.naive.situation_nodes import (
    ANYTHING,
    FLAGS,
    HUGE,
    KEY,
    SECOND,
    Case,
    Kinds,
    Row,
    bound_pattern,
    cases,
)
from tests.naive.temporal_patterns import by_closed_form
from tests.operators.situation_drawings import pattern
from tests.operators.situation_drive import (
    NOTHING_SPARED,
    bag,
    cuts_of,
    drawn,
    one_by_one,
    plain,
    run,
    stepped,
    to_batch,
)

SLOWLY = settings(
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_what_nobody_needs_is_dropped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation_runs, "SPARE", NOTHING_SPARED)

    @SLOWLY
    @given(cases(replace(ANYTHING, windows=(1, 2, 4, 8, HUGE))), st.data())
    def check(case: Case, data: st.DataObject) -> None:
        node, events = case
        note(explain(node))
        found: Counter[str] = Counter()
        for count, watermark, results in stepped(node, events, data.draw(cuts_of(node, events))):
            found += bag(results)
            assert found == bag(by_closed_form(node, events[:count], watermark))
        assert bag(run(node, events, one_by_one(events))) == found

    check()


@pytest.mark.parametrize("watermark", [0, 2, 5])
@pytest.mark.parametrize(("within", "expected"), [(5, 1), (4, 0)])
def test_what_is_just_within_the_window_is_kept(
    monkeypatch: pytest.MonkeyPatch, watermark: int, within: int, expected: int
) -> None:
    monkeypatch.setattr(situation_runs, "SPARE", NOTHING_SPARED)
    events = drawn({"A": "#...", "B": "...#"}, at=[0, 2, 5, 5])
    node = pattern("AB", {"AB": BEFORE}, within=within)
    cuts = [(2, watermark * SECOND), (3, 5 * SECOND), (4, 5 * SECOND)]
    assert len(run(node, events, cuts)) == expected


def test_room_for_one_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation_search, "ROOM", 1)
    monkeypatch.setattr(situation_search, "MOST_ROOM", 2)

    @settings(SLOWLY, max_examples=60)
    @given(cases())
    def check(case: Case) -> None:
        node, events = case
        note(explain(node))
        assert bag(run(node, events)) == bag(by_closed_form(node, events))

    check()


def joined(node: TemporalPattern, events: list[Row], **changes: Any) -> Counter[str]:  # noqa: ANN401
    """Return what an operator finds that joins in another way, in two batches."""
    pipeline = build_pipeline(optimise(node))
    *others, matcher = pipeline.operators
    assert isinstance(matcher, MatchSituations)
    pipeline = replace(pipeline, operators=(*others, replace(matcher, **changes)))
    states = pipeline.initial_state()
    found: Counter[str] = Counter()
    half = len(events) // 2
    for part, watermark in ((events[:half], MIN_TS_US), (events[half:], END_OF_TIME_US)):
        states, results = pipeline.step(states, Batch(to_batch(pipeline, part), watermark))
        found += bag(plain(results.rows))
    return found


@settings(SLOWLY, max_examples=40)
@given(cases(Kinds(4)), st.randoms(use_true_random=False))
def test_any_order_of_joining(case: Case, chance: random.Random) -> None:
    node, events = case
    order = tuple(chance.sample(range(len(node.situations)), len(node.situations)))
    expected = bag(by_closed_form(node, events))
    assert joined(node, events, order=order) == expected
    assert joined(node, events, adaptive=False) == expected


def wandering(seed: int, count: int) -> list[Row]:
    """Return rows of two keys. Another flag turns most often in each third of them."""
    chance = random.Random(seed)
    flags = {key: [False] * len(FLAGS) for key in ("p", None)}
    found: list[Row] = []
    for seq in range(count):
        key = chance.choice(list(flags))
        for place in range(len(FLAGS)):
            often = 0.2 + 0.5 * ((place % 3) == seq * 3 // count)
            if chance.random() < often:
                flags[key][place] = not flags[key][place]
        values = {"v": chance.choice([0.5, 1.5, None]), "n": seq, "w": None}
        row = {"ts": seq * SECOND, "seq": seq, "k": key, **values}
        found.append({**row, **dict(zip(FLAGS, flags[key], strict=True))})
    return found


LONG = (
    {"AB": BEFORE, "BC": OVERLAPS},
    {"AB": ANY & ~BEFORE, "BC": DURING | MEETS, "AC": ANY},
    {"AB": OVERLAPS | DURING | FINISHED_BY, "AC": BEFORE | MEETS},
)


@pytest.mark.parametrize("masks", LONG, ids=range(len(LONG)))
@pytest.mark.parametrize("within", [60, 1000])
def test_long_streams_change_their_plans(masks: dict[str, int], within: int) -> None:
    node = bound_pattern(replace(pattern("ABC", masks, within=within), keys=KEY))
    events = wandering(within, 300)
    expected = bag(by_closed_form(node, events))
    assert len(expected) > 10
    assert bag(run(node, events)) == expected
    cuts = [(place, events[place - 1]["ts"]) for place in range(7, 300, 7)]
    assert bag(run(node, events, cuts)) == expected
    for order in permutations(range(3)):
        assert joined(node, events, order=order) == expected


@pytest.mark.parametrize("count", [6, 12, 32])
def test_many_situations(count: int) -> None:
    """The same condition under many names always has the same periods."""
    alone = pattern("A", {}, detection="final")
    held = tuple(replace(alone.situations[0], name=f"A{place or ''}") for place in range(count))
    equal = tuple(Constraint(0, place, EQUALS) for place in range(1, count))
    node = replace(alone, situations=held, constraints=equal, detection="early")
    events = wandering(count, 40)
    assert bag(run(node, events)) == bag(by_closed_form(alone, events))
