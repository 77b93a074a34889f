"""What must not change the matches of a pattern: when runs are dropped, room, join orders."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.instants import END_OF_TIME_US
from eventide.operators.situations import plan as situation_plan
from eventide.operators.situations import runs as situation_runs
from eventide.operators.situations import search as situation_search
from eventide.operators.situations.match import MatchSituations
from eventide.plan.explain import explain
from eventide.plan.passes import optimise
from eventide.plan.situations.allen import ANY, BEFORE, DURING, EQUALS, FINISHED_BY, MEETS, OVERLAPS
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.situations.parts import Constraint
from eventide.schema import MIN_TS_US
from tests.naive.situations.matches import by_closed_form
from tests.naive.situations.nodes import (
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
from tests.operators.situations.drawings import pattern
from tests.operators.situations.drive import (
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
    max_examples=50,
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

    @settings(SLOWLY, max_examples=60)
    @given(cases())
    def check(case: Case) -> None:
        node, events = case
        note(explain(node))
        assert bag(run(node, events)) == bag(by_closed_form(node, events))

    check()


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_search_that_pauses(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    monkeypatch.setattr(situation_search, "MOST_WORK", steps + 1)
    monkeypatch.setattr(situation_search, "ROOM", 2 + steps)

    @settings(SLOWLY, max_examples=60)
    @given(cases())
    def check(case: Case) -> None:
        node, events = case
        note(explain(node))
        assert bag(run(node, events)) == bag(by_closed_form(node, events))

    check()


def joined(node: TemporalPattern, events: list[Row], **changes: Any) -> Counter[str]:  # noqa: ANN401
    """Return what an operator finds that joins in another way, in two batches."""
    tree = build_tree(optimise(node))
    *others, last = tree.placed
    assert isinstance(last.operator, MatchSituations)
    changed = replace(last, operator=replace(last.operator, **changes))
    tree = replace(tree, placed=(*others, changed))
    states = tree.initial_state()
    found: Counter[str] = Counter()
    half = len(events) // 2
    for part, watermark in ((events[:half], MIN_TS_US), (events[half:], END_OF_TIME_US)):
        states, results = tree.step(states, (to_batch(tree, part),), watermark)
        found += bag(plain(results))
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
        row = {"ts": seq * SECOND, "_seq": seq, "k": key, **values}
        found.append({**row, **dict(zip(FLAGS, flags[key], strict=True))})
    return found


LONG = (
    {"AB": BEFORE, "BC": OVERLAPS},
    {"AB": ANY & ~BEFORE, "BC": DURING | MEETS, "AC": ANY},
    {"AB": OVERLAPS | DURING | FINISHED_BY, "AC": BEFORE | MEETS},
)


@pytest.mark.parametrize("masks", LONG, ids=range(len(LONG)))
@pytest.mark.parametrize("within", [60, 1000])
def test_long_streams_in_any_order(masks: dict[str, int], within: int) -> None:
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


def test_plans_that_change_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # From the first position on the plan is looked at, not only now and then.
    monkeypatch.setattr(situation_plan, "OBSERVED_BETWEEN", 1)
    node = bound_pattern(pattern("ABC", {"AB": BEFORE, "BC": BEFORE, "AC": BEFORE}, within=50))
    seldom = drawn({"A": "#." * 200, "B": "#..." * 100, "C": ("#" + "." * 39) * 10})
    often = drawn({"A": ("#" + "." * 39) * 10, "B": "#..." * 100, "C": "#." * 200})
    later = [row | {"ts": row["ts"] + 400 * SECOND, "_seq": row["_seq"] + 400} for row in often]
    events = seldom + later
    tree = build_tree(optimise(node))
    states, _ = tree.step(tree.initial_state(), (to_batch(tree, events),), events[-1]["ts"])
    assert states[-1].statistics.counts[1] > 0
    assert bag(run(node, events)) == joined(node, events, order=(0, 1, 2))


def test_a_burst_is_forgotten_though_little_follows() -> None:
    node = bound_pattern(pattern("AB", {"AB": BEFORE}, within=10))
    tree = build_tree(optimise(node))
    burst = drawn({"A": "#." * 6000, "B": "." * 12_000})
    rest = [
        row | {"ts": (10_000_000 + place) * SECOND, "_seq": 12_000 + place}
        for place, row in enumerate(drawn({"A": "." * 7100, "B": "." * 7100}))
    ]
    states = tree.initial_state()
    for part in (burst, rest[:50], rest[50:], rest[-1:]):
        states, _ = tree.step(states, (to_batch(tree, part),), part[-1]["ts"])
    assert len(states[-1].keys.whole.runs) == 0


def test_a_limit_bounds_the_work_of_a_moment() -> None:
    # 200 of each of three kinds before one event: eight million matches, of which three are wanted.
    flags = {
        name: "." * place + "#..." * 200 + "." * (3 - place) for place, name in enumerate("ABC")
    }
    events = drawn({**flags, "D": "." * 802 + "#"})
    masks = {f"{name}D": BEFORE for name in "ABC"}
    node = bound_pattern(replace(pattern("ABCD", masks, within=HUGE // SECOND), limit=3))
    found = run(node, events)
    starts = [[row[f"{name}_start"] // SECOND for name in "ABCD"] for row in found]
    assert sorted(starts) == [[0, 1, 2, 802], [0, 1, 6, 802], [0, 1, 10, 802]]
