"""Sequences and chains are those of the twin, however their events are cut into steps."""

from __future__ import annotations

import random
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.algebra import search
from eventide.plan.algebra.conditions import LENGTH
from eventide.plan.algebra.nodes import Carried, Iterate, Sequence
from eventide.plan.expressions import Column, Expression, Literal, Named
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.tree import Plan
from eventide.schema import INT64, INTERVAL, START_TS, TS
from tests.naive.algebra.plans import CASES, Case, Row, call, typed
from tests.naive.algebra.trees import answer
from tests.operators.algebra.drive import bag, divided, in_other_order, instants_of, run, stepped


@settings(deadline=None)
@given(CASES)
def test_at_once(case: Case) -> None:
    for plan in (case.plan, divided(case.plan)):
        assert bag(run(plan, case.streams)) == bag(case.rows)


@settings(deadline=None)
@given(CASES, st.integers(0, 2**32))
def test_in_steps(case: Case, seed: int) -> None:
    """The results of each step are those that end in it; events of an instant come in any order."""
    choose = random.Random(seed)
    plan = choose.choice([case.plan, divided(case.plan)])
    streams = in_other_order(choose, case.streams)
    assert bag(run(plan, streams, instants_of(choose, streams))) == bag(case.rows)


@settings(deadline=None)
@given(CASES, st.sampled_from([1, 2, 7]))
def test_with_little_room(case: Case, room: int) -> None:
    """A search stops where its room for results or questions ends, and goes on from there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_SPARE", room)
        patch.setattr(search, "_QUESTIONS", room)
        plan = divided(case.plan)
        assert bag(run(plan, case.streams)) == bag(case.rows)


def test_many_results_and_questions_with_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_SPARE", 1)
    monkeypatch.setattr(search, "_QUESTIONS", 3)
    # Every second event of three at an instant has the greater text: chains branch.
    rows = [
        {**row, "w": "ab"[place % 2] * (place // 6 + 1)}
        for place, row in enumerate(quotes(*((ts // 3, "p", ts) for ts in range(36))))
    ]
    left, right = leaf("a_", names="nw"), leaf("b_", names="nw")
    carried = (Carried("last", "a_w", Column("b_w")),)
    asked = call("<", Column("last"), Column("b_w"))
    plan = divided(typed(Iterate(left, right, asked, carried=carried)))
    streams = {"s": rows, "t": []}
    found = run(plan, streams, [5, 9])
    assert len(found) > 200
    assert bag(found) == bag(answer(plan, streams))


def quotes(*values: tuple[int, str | None, int]) -> list[Row]:
    """Events of one instant each, given as (ts, k, n)."""
    return [
        {TS: ts, "_seq": seq, START_TS: ts, "k": k, "n": n, "v": None, "w": None}
        for seq, (ts, k, n) in enumerate(values)
    ]


def leaf(prefix: str, stream: str = "s", names: str = "kn") -> Plan:
    items = [Named(TS, Column(TS)), Named(START_TS, Column(START_TS))]
    items += [Named(prefix + name, Column(name)) for name in names]
    return typed(Project(Scan(stream), tuple(items)))


SAME_KEY = call("=", Column("a_k"), Column("b_k"))
RISES = call("<", Column("a_n"), Column("b_n"))


def within(most: int) -> Expression:
    return call("<=", LENGTH, Literal(most, INTERVAL))


def asked(*parts: Expression) -> Plan:
    condition = reduce(lambda one, other: call("and", one, other), parts)
    return divided(typed(Sequence(leaf("a_"), leaf("b_"), condition)))


NEVER = call("<", Column("b_n"), Literal(-9, INT64))


@pytest.mark.parametrize(
    ("plan", "expires"),
    [
        (asked(SAME_KEY, NEVER), False),
        (asked(SAME_KEY, NEVER, within(5)), True),
        (asked(call(">", Column("a_n"), Column("b_n")), within(5)), True),
        (divided(typed(Filter(asked(SAME_KEY, NEVER), within(5)))), True),
    ],
)
def test_what_can_no_longer_be_followed_is_forgotten(plan: Plan, expires: bool) -> None:
    given = {"s": quotes(*((ts, "p", ts) for ts in range(8))), "t": []}
    sizes = [size for size, _ in stepped(plan, given, [2, 4, 8, 100])]
    assert sizes[:2] == [2, 4]
    assert sizes[3] == (0 if expires else 8)


def chains(condition: Expression, proceed: Expression, most: int | None = None) -> Plan:
    carried = (
        Carried("last", "a_n", Column("b_n")),
        Carried("count", "a_n", call("+", Column("count"), Literal(1, INT64))),
    )
    fold = Iterate(leaf("a_"), leaf("b_"), condition, proceed, carried, within_us=most)
    return divided(typed(fold))


GROWS = call("<", Column("last"), Column("b_n"))


@pytest.mark.parametrize("keys", [1, 2, 40])
@pytest.mark.parametrize(
    "plan",
    [
        asked(SAME_KEY, RISES),
        asked(SAME_KEY, within(200)),
        chains(SAME_KEY, GROWS),
        chains(SAME_KEY, GROWS, 100),
    ],
)
def test_each_key_is_as_if_it_were_alone(keys: int, plan: Plan) -> None:
    choose = random.Random(keys)
    values = [(7 * ts, f"k{choose.randrange(keys)}", choose.randrange(9)) for ts in range(90)]
    rows = quotes(*values)
    found = run(plan, {"s": rows, "t": []}, [1, 100, 101, 300])
    expected = [
        row
        for key in {row["k"] for row in rows}
        for row in answer(plan, {"s": [row for row in rows if row["k"] == key], "t": []})
    ]
    assert found
    assert bag(found) == bag(expected)
