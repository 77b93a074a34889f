"""Standing queries against DuckDB, which answers at every instant over the window contents."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.plan.standing.execution import EXECUTIONS
from tests.engines.standing.queries import (
    ANSWERED,
    EXCEPT_ALL,
    GROUP_JOIN,
    JOIN_3,
    OUTPUT_WINDOWS,
    REPORTS,
    events_drawn,
    histories,
    history,
)
from tests.engines.standing.runs import cuts, every_tick, plan_of, run
from tests.exploring import EXPLORING
from tests.naive.standing.answers import Question, Streams, Truth, accumulated
from tests.naive.windows import Event

FEW = settings(max_examples=10 if EXPLORING else 2, deadline=None)
SEEDS = st.integers(0, 2**32)


def named(questions: tuple[Question, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.name)


@named(ANSWERED)
@FEW
@given(streams=histories(), seed=SEEDS)
def test_answer_after_every_step(question: Question, streams: Streams, seed: int) -> None:
    truth = Truth(question, streams)
    choose = random.Random(seed)
    for execution in EXECUTIONS:
        untils = cuts(streams, choose)
        reloading = choose.random() < 0.5
        steps = list(run(question, streams, execution, untils, reloading))
        for step in steps:
            assert step.answer == truth.answer(step.now), (execution, untils, step.now)
        for instant in truth.instants(untils[-1]):
            answer = accumulated(steps[-1].reports, instant)
            assert answer == truth.answer(instant), (execution, untils, instant)


@named(ANSWERED)
def test_answer_at_every_tick(question: Question) -> None:
    """In one execution of each question: the tests with fewer cuts try them all."""
    streams = history(7)
    truth = Truth(question, streams)
    turn = ANSWERED.index(question) % len(EXECUTIONS)
    for execution in EXECUTIONS if EXPLORING else EXECUTIONS[turn : turn + 1]:
        for step in run(question, streams, execution, every_tick(streams)):
            assert step.answer == truth.answer(step.now), (execution, step.now)
            assert accumulated(step.reports, step.now) == step.answer, (execution, step.now)


@named(REPORTS)
@FEW
@given(streams=histories(), seed=SEEDS)
def test_reported_streams(question: Question, streams: Streams, seed: int) -> None:
    truth = Truth(question, streams)
    choose = random.Random(seed)
    for execution in EXECUTIONS:
        untils = cuts(streams, choose)
        reloading = choose.random() < 0.5
        steps = list(run(question, streams, execution, untils, reloading))
        for step in steps:
            reports = Counter(tuple(report.values()) for report in step.reports)
            assert reports == truth.reports(step.now + 1), (execution, untils, step.now)


@named(OUTPUT_WINDOWS)
@FEW
@given(streams=histories(), seed=SEEDS)
def test_output_windows(question: Question, streams: Streams, seed: int) -> None:
    truth = Truth(question, streams)
    choose = random.Random(seed)
    rows = re.search(r"ROWS (\d+)", question.output)
    for execution in EXECUTIONS:
        for step in run(question, streams, execution, cuts(streams, choose), reloading=True):
            if rows is None:
                assert step.answer == truth.answer(step.now), (execution, step.now)
                continue
            surely, maybe, count = truth.last_births(step.now, int(rows[1]))
            assert surely <= step.answer, (execution, step.now)
            assert (step.answer - surely).total() == count, (execution, step.now)
            assert step.answer - surely <= maybe, (execution, step.now)


@named((JOIN_3, EXCEPT_ALL, GROUP_JOIN))
@settings(max_examples=15, deadline=None)
@given(a=events_drawn(), b=events_drawn(), c=events_drawn(), seed=SEEDS)
def test_answer_over_drawn_events(
    question: Question, a: list[Event], b: list[Event], c: list[Event], seed: int
) -> None:
    streams = {"a": a, "b": b, "c": c}
    truth = Truth(question, streams)
    for execution in EXECUTIONS:
        for step in run(question, streams, execution, cuts(streams, random.Random(seed))):
            assert step.answer == truth.answer(step.now), (execution, step.now)


@named(ANSWERED)
def test_columns_have_the_names_of_the_select_list(question: Question) -> None:
    names = plan_of(question.text).source.row
    assert list(names) == Truth(question, history(1)).names()
