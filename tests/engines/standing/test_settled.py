"""The report of an instant is its net effect: no row comes that equals one that goes."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings

from eventide.engines.build import build_tree
from eventide.plan.standing.execution import EXECUTIONS, Execution
from tests.engines.standing.queries import (
    DECAYED,
    EXCEPT_ALL,
    GROUP,
    GROUP_FLOATS,
    GROUP_ROWS,
    histories,
)
from tests.engines.standing.runs import plan_of, run
from tests.naive.standing.answers import Question, Streams


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize(
    "question",
    [GROUP, GROUP.sliding(2), DECAYED.sliding(2), GROUP_FLOATS, GROUP_ROWS, EXCEPT_ALL],
    ids=lambda question: question.name,
)
@settings(deadline=None, max_examples=5)
@given(streams=histories())
def test_no_row_comes_that_is_like_one_that_goes(
    question: Question, execution: Execution, streams: Streams
) -> None:
    (step,) = run(question, streams, execution)
    for _, changes in groupby(step.reports, lambda change: change["at"]):
        told = [(change.pop("sign"), tuple(change.values())) for change in changes]
        signs = [sign for sign, _ in told]
        assert signs == sorted(signs)
        gone, come = ({row for each, row in told if each == sign} for sign in (-1, 1))
        assert not gone & come


@pytest.mark.parametrize(
    ("columns", "settled"),
    [
        ("x.k, COUNT(*) AS n", True),
        ("COUNT(*) AS n, x.k, x.k AS again, COUNT(*) + 1 AS more", True),
        # Without the key, rows of two groups may be alike, and without an aggregate those of one.
        ("COUNT(*) AS n", False),
        ("x.k, COUNT(*) / 2 AS half", False),
    ],
)
def test_rows_of_groups_that_differ_are_not_compared(columns: str, settled: bool) -> None:
    plan = plan_of(f"SELECT {columns} FROM a [RANGE 4 SECONDS] x GROUP BY x.k")
    assert build_tree(plan).answer.settled == settled
