"""Update patterns are true: the tuples of an edge come and go as its label says."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.joins import AsOfJoin
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.update_patterns import edges, pattern_of
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import Plan
from tests.engines.standing import queries as ask
from tests.engines.standing.queries import ANSWERED, PLAIN, history
from tests.engines.standing.runs import cuts, plan_of, run, run_tree
from tests.naive.standing.answers import Question, Streams, Truth
from tests.naive.standing.windows import SECOND

MONOTONIC, WEAKEST, WEAK, STRICT = UpdatePattern
SEEDS = st.integers(0, 2**32)
FEW = settings(max_examples=2, deadline=None)
Report = dict[str, Any]

EXTERNAL = [question for question in ANSWERED if "INTERNAL" not in question.text]
FORESEEN = [question for question in EXTERNAL if not question.strict]


def named(questions: list[Question]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.name)


def reports_of(node: Plan, whole: Standing, streams: Streams, untils: list[int]) -> list[Report]:
    tree = build_tree(Standing(node, slide_us=whole.slide_us))
    *_, last = run_tree(tree, streams, untils)
    return last.reports


def subplans(question: Question) -> list[tuple[Plan, Edge]]:
    """All nodes below the root whose tuples can be looked at, with their labels."""
    found = [(node, edge) for depth, node, edge in edges(plan_of(question.text)) if depth]
    rights = [node.right for node, _ in found if isinstance(node, AsOfJoin)]
    return [(node, edge) for node, edge in found if node not in rights]


def other_future(streams: Streams, after: int, seed: int) -> Streams:
    """The same events until an instant, and others then."""
    other = history(seed)
    changed = {}
    for name, events in streams.items():
        past = [event for event in events if event["ts"] <= after]
        future = [event for event in other[name] if event["ts"] > after]
        changed[name] = [{**event, "_seq": seq} for seq, event in enumerate(past + future)]
    return changed


def until(reports: list[Report], instant: int) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(report.values()) for report in reports if report["at"] <= instant)


@named(EXTERNAL)
@FEW
@given(seed=SEEDS)
def test_labels_are_sound(question: Question, seed: int) -> None:
    choose = random.Random(seed)
    streams, after = history(seed), choose.randint(-4, 8) * SECOND
    other = other_future(streams, after, seed + 1)
    plan = plan_of(question.text)
    for node, edge in subplans(question):
        reports = reports_of(node, plan, streams, cuts(streams, choose))
        others = reports_of(node, plan, other, cuts(other, choose))
        # What was reported does not depend on what comes later: expiries were foreseen.
        assert until(reports, after) == until(others, after), type(node)
        if edge.pattern == STRICT:
            continue
        assert all(report.get("sign", 1) == 1 for report in reports), (type(node), edge)
        lives = [(report["at"], report["exp"]) for report in reports]
        if edge.pattern == MONOTONIC:
            assert all(exp is None for _, exp in lives), (type(node), edge)
        if edge.pattern == WEAKEST:
            assert all(exp - at == edge.lifetime_us for at, exp in lives), (type(node), edge)
        if edge.pattern == WEAK and edge.lifetime_us is not None:
            bound = edge.lifetime_us
            assert all(exp is None or exp - at <= bound for at, exp in lives), (type(node), edge)
        if edge.in_order and edge.pattern != MONOTONIC:
            assert all(one[1] <= next_[1] for one, next_ in pairwise(sorted(lives)))


@named(FORESEEN)
@FEW
@given(seed=SEEDS)
def test_lifetimes_are_those_that_are_observed(question: Question, seed: int) -> None:
    streams = history(seed)
    *_, last = run(question, streams, untils=cuts(streams, random.Random(seed)))
    foreseen: Counter[tuple[Any, ...]] = Counter()
    for report in last.reports:
        values = [value for name, value in report.items() if name not in ("at", "exp", "sign")]
        exp = report["exp"] if report["exp"] is None or report["exp"] <= last.now else None
        foreseen[report["at"], exp, *values] += 1
    assert foreseen == Truth(question, streams).lifetimes(last.now + 1)


@named(FORESEEN)
def test_nothing_foreseen_is_called_strict(question: Question) -> None:
    assert pattern_of(plan_of(question.text)).pattern != STRICT


@pytest.mark.parametrize(
    ("question", "pattern"),
    [
        (ask.FILTER, WEAKEST),
        (ask.UNION, WEAKEST),
        (ask.UNEQUAL_UNION, WEAK),
        (ask.EQUAL_JOIN, WEAK),
        (ask.AS_OF, WEAKEST),
        (ask.SYSTEM_TIME, WEAKEST),
        (ask.RELATION_JOIN, STRICT),
        (ask.DISTINCT, WEAK),
        (ask.DISTINCT_JOIN, WEAK),
        (ask.DISTINCT_ROWS, STRICT),
        (ask.EXCEPT_ALL, STRICT),
        (ask.NOT_EXISTS, STRICT),
        (ask.GROUP, STRICT),
        (ask.TOP, STRICT),
        (ask.FILTER.sliding(2), WEAKEST),
        (ask.FILTER.sliding(3), WEAK),
        (ask.JOIN.internally("x", "y"), MONOTONIC),
        (ask.JOIN.internally("x"), WEAK),
        (ask.DISTINCT.reporting("ISTREAM"), STRICT),
    ],
    ids=lambda part: part.name,
)
def test_patterns_are_no_harder_than_they_have_to_be(
    question: Question, pattern: UpdatePattern
) -> None:
    plan = plan_of(question.text)
    assert edges(plan)[1][2].pattern == pattern


@pytest.mark.parametrize(
    ("window", "pattern"),
    [
        ("unbounded", MONOTONIC), ("since", MONOTONIC), ("jump", WEAK), ("tumble", WEAK),
        ("now", WEAKEST), ("rows", STRICT), ("partition_rows", STRICT), ("latest", STRICT),
        ("session", STRICT), ("partition_session", STRICT),
    ],
)  # fmt: skip
def test_patterns_of_windows(window: str, pattern: UpdatePattern) -> None:
    text = next(question.text for question in PLAIN if question.name == window)
    leaves = [edge for _, node, edge in edges(plan_of(text)) if isinstance(node, Windowed)]
    assert [edge.pattern for edge in leaves] == [pattern]
