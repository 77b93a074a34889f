"""Explain is true: the structures it names are those that the operators have."""

from __future__ import annotations

import re
from typing import Any

import pytest

from eventide.engines.build import build_tree
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.operators.standing.groups.panes import AggregatePanes
from eventide.operators.standing.groups.slides import AggregateSlides
from eventide.operators.standing.joins.join import JoinWindows
from eventide.operators.standing.joins.memory import Policy
from eventide.operators.standing.sets.distinct import SuccessorDistinct, WholeDistinct
from eventide.operators.standing.tuples import PassingTuples, PlacedTuples, QueuedTuples
from eventide.plan.standing.choose import choose_plan
from eventide.plan.standing.text import described_edges
from tests.engines.standing.queries import ANSWERED, OUTPUT_WINDOWS, REPORTS
from tests.engines.standing.runs import plan_of
from tests.naive.standing.answers import Question

JOINED: dict[tuple[Policy, bool], str] = {
    ("ring", False): "queue by key",
    ("calendar", False): "calendar queue by key",
    ("calendar", True): "calendar queue with id map by key",
    ("swept", False): "list by key",
    ("swept", True): "id map by key",
}
GROUPED = {
    PassingTuples: "array by group",
    QueuedTuples: "array by group, queue",
    PlacedTuples: "array by group, (calendar queue|calendar queue with id map|id map)",
}


def structures(operator: Any) -> str | None:  # noqa: ANN401 - any operator
    """A pattern of the words for what an operator keeps; None: of no interest."""
    match operator:
        case JoinWindows(sides=sides):
            return ", ".join(
                JOINED[policy, side.strict]
                if side.lifetime_us is not None or side.strict
                else "all, none expires by key"
                for policy, side in zip(operator.policies, sides, strict=True)
            )
        case AggregatePanes():
            return "panes by group"
        case AggregateSlides():
            return "partial results by pane"
        case AggregateGroups():
            return GROUPED[type(operator.initial_state().tuples)]
        case SuccessorDistinct():
            return "values|calendar queue of values and successors"
        case WholeDistinct():
            return "counts by value, (calendar queue|calendar queue with id map|id map)"
    return None


@pytest.mark.parametrize(
    "question", [*ANSWERED, *REPORTS, *OUTPUT_WINDOWS], ids=lambda question: question.name
)
def test_structures_are_those_of_the_operators(question: Question) -> None:
    plan = plan_of(question.text)
    lines = described_edges(plan, choose_plan(plan))
    for operator in build_tree(plan).operators:
        wanted = structures(operator)
        if wanted is None:
            continue
        said = [
            re.sub(r" \([^)]*\)", "", line.split("; state: ")[1]).split("; alone: ")[0]
            for line in lines
            if "; state: " in line
        ]
        assert any(re.fullmatch(wanted, each) for each in said), (said, wanted)
