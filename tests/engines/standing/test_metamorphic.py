"""Changes that may not change the answers of standing queries, and how their reports relate."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.engines.standing.options import StandingOptions
from eventide.plan.standing.execution import EXECUTIONS
from eventide.plan.standing.joins import WindowJoin
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    SessionWindow,
    StreamWindow,
    Windowed,
)
from eventide.plan.tree import Plan
from tests.engines.standing.composed import composed
from tests.engines.standing.queries import (
    ANSWERED,
    CHAIN,
    DISTINCT,
    DISTINCT_JOIN,
    EXCEPT_ALL,
    FILTER,
    GROUP_JOIN,
    JOIN,
    JOIN_3,
    JOIN_4,
    NOT_EXISTS,
    PLAIN,
    TWO_KEYS,
    UNEQUAL_UNION,
    history,
)
from tests.engines.standing.runs import cuts, every_tick, plan_of, run, run_tree
from tests.naive.standing.answers import Bag, Question, Streams, Truth, accumulated
from tests.naive.standing.windows import SECOND

SEEDS = st.integers(0, 2**32)
FEW = settings(max_examples=2, deadline=None)


def named(questions: tuple[Question, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.name)


def rebuilt(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """A plan with each node changed, the lowest first."""
    return change(plan.with_children(lambda source: rebuilt(source, change)))


def standing(plan: Plan) -> Standing:
    assert isinstance(plan, Standing)
    return plan


def reported(question: Question, streams: Streams, untils: list[int], reloading: bool) -> Bag:
    *_, last = run(question, streams, "aware", untils, reloading)
    return Counter(tuple(report.values()) for report in last.reports)


@pytest.mark.parametrize(
    ("seed", "question"), list(enumerate(ANSWERED)), ids=[question.name for question in ANSWERED]
)
def test_cutting_into_steps_changes_no_report(seed: int, question: Question) -> None:
    streams, choose = history(seed), random.Random(seed)
    end = cuts(streams, choose)[-1:]
    at_once = reported(question, streams, end, reloading=False)
    untils = [until for until in every_tick(streams) if until < end[0]]
    assert reported(question, streams, untils + end, reloading=True) == at_once


@named((JOIN, JOIN_3, JOIN_4, CHAIN, TWO_KEYS, DISTINCT_JOIN, GROUP_JOIN))
@FEW
@given(seed=SEEDS)
def test_the_order_of_joins_changes_no_answer(question: Question, seed: int) -> None:
    streams, choose = history(seed), random.Random(seed)

    def shuffled(plan: Plan) -> Plan:
        if not isinstance(plan, WindowJoin):
            return plan
        order = choose.sample(range(len(plan.sources)), len(plan.sources))
        sources = tuple(plan.sources[place] for place in order)
        return replace(plan, sources=sources, keys=tuple(plan.keys[place] for place in order))

    truth = Truth(question, streams)
    plan = standing(rebuilt(plan_of(question.text), shuffled))
    for execution in EXECUTIONS:
        for step in run_tree(
            build_tree(plan, standing=StandingOptions(execution)), streams, cuts(streams, choose)
        ):
            assert step.answer == truth.answer(step.now), (execution, step.now)


@named((JOIN, UNEQUAL_UNION, DISTINCT_JOIN, EXCEPT_ALL, NOT_EXISTS, GROUP_JOIN))
@pytest.mark.parametrize("partitions", [1, 3, 64])
def test_the_parts_of_calendars_change_no_answer(question: Question, partitions: int) -> None:
    streams = history(partitions)
    truth = Truth(question, streams)
    for execution in EXECUTIONS:
        tree = build_tree(
            plan_of(question.text), standing=StandingOptions(execution, partitions=partitions)
        )
        for step in run_tree(tree, streams, every_tick(streams)):
            assert step.answer == truth.answer(step.now), (execution, step.now)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_operators_above_operators(seed: int) -> None:
    """Whatever stands above what: a query put together at random."""
    question, streams = composed(seed), history(seed)
    truth, choose = Truth(question, streams), random.Random(seed)
    for execution in EXECUTIONS:
        tree = build_tree(plan_of(question.text), standing=StandingOptions(execution))
        for step in run_tree(tree, streams, cuts(streams, choose), reloading=True):
            assert step.answer == truth.answer(step.now), (question.text, execution, step.now)
        for instant in truth.instants(step.now + 1):
            answer = accumulated(step.reports, instant)
            assert answer == truth.answer(instant), (question.text, execution, instant)


def in_microseconds(window: StreamWindow) -> StreamWindow:
    """A window as many microseconds long as it was seconds."""
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            return RangeWindow(max(size // SECOND, 1), jump and jump // SECOND)
        case PeriodWindow(period_us=period):
            return PeriodWindow(period // SECOND)
        case SessionWindow(gap_us=gap):
            return replace(window, gap_us=gap // SECOND)
    return window


@named(tuple(each for each in PLAIN if "SINCE" not in each.text and "INTERVAL" not in each.text))
@settings(max_examples=1, deadline=None)
@given(seed=SEEDS)
def test_windows_of_a_few_microseconds(question: Question, seed: int) -> None:
    """Shorter than calendars have parts, with tuples that live for one microsecond."""
    streams, choose = history(seed), random.Random(seed)

    def quickened(plan: Plan) -> Plan:
        if not isinstance(plan, Windowed):
            return plan
        return replace(plan, window=in_microseconds(plan.window))

    truth = Truth(question, streams)
    quick = {
        name: [{**event, "ts": event["ts"] // SECOND} for event in events]
        for name, events in streams.items()
    }
    plan = standing(rebuilt(plan_of(question.text), quickened))
    end = cuts(streams, choose)[-1] // SECOND
    untils = sorted({*choose.sample(range(-4, end), 4), end})
    for execution in EXECUTIONS:
        for step in run_tree(build_tree(plan, standing=StandingOptions(execution)), quick, untils):
            expected = truth.answer(step.now * SECOND)
            assert slowed(step.answer, plan) == expected, (execution, step.now)


def slowed(rows: Bag, plan: Standing) -> Bag:
    """Rows with times in seconds again, where they have any."""
    times = [place for place, kind in enumerate(plan.row.values()) if kind.kind == "timestamp"]
    found: Bag = Counter()
    for row, count in rows.items():
        spelt = (value * SECOND if place in times else value for place, value in enumerate(row))
        found[tuple(spelt)] += count
    return found


@named((FILTER, JOIN, JOIN_3, UNEQUAL_UNION))
@FEW
@given(seed=SEEDS)
def test_what_is_seen_without_restore_is_seen_with_it(question: Question, seed: int) -> None:
    streams = history(seed)
    untils = cuts(streams, random.Random(seed))
    sliding = question.sliding(3)
    seen = reported(sliding.reporting("ISTREAM"), streams, untils, reloading=False)
    restored = reported(sliding.reporting("ISTREAM RESTORE"), streams, untils, reloading=False)
    continuous = reported(question.reporting("ISTREAM"), streams, untils, reloading=False)
    assert seen <= restored
    last = max(until - 1 for until in untils) // (3 * SECOND) * 3 * SECOND
    born = sum(count for (at, *_), count in continuous.items() if at <= last)
    assert restored.total() == born


@named((FILTER, JOIN, DISTINCT, DISTINCT_JOIN, EXCEPT_ALL, NOT_EXISTS, GROUP_JOIN))
@FEW
@given(seed=SEEDS)
def test_what_came_less_what_went_is_what_is_there(question: Question, seed: int) -> None:
    streams = history(seed)
    untils = cuts(streams, random.Random(seed))
    came, went, there = (
        reported(question.reporting(report), streams, untils, reloading=False)
        for report in ("ISTREAM", "DSTREAM", "RSTREAM")
    )
    instants = sorted({at for at, *_ in came + went})
    for instant in instants:
        rows: Counter[tuple[Any, ...]] = Counter()
        for bag, sign in ((came, 1), (went, -1)):
            for (at, *row), count in bag.items():
                rows[tuple(row)] += sign * count * (at <= instant)
        whole = Counter({tuple(row): n for (at, *row), n in there.items() if at == instant})
        assert +rows == whole, instant
