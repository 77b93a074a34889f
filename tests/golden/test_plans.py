from __future__ import annotations

import pytest

from tests.golden.plans import CEL_ERRORS, CEL_PLANS, planned, read


@pytest.mark.parametrize(("query", "plan"), list(read()), ids=lambda text: text.splitlines()[0])
def test_plan_is_the_golden_one(query: str, plan: str) -> None:
    assert planned(query) == plan, "if the new plan is right: python -m tests.golden.plans"


@pytest.mark.parametrize(
    ("query", "plan"),
    [*read(CEL_PLANS), *read(CEL_ERRORS)],
    ids=lambda text: text.splitlines()[0],
)
def test_cel_is_planned_or_refused_as_written(query: str, plan: str) -> None:
    assert planned(query, cel=True) == plan, "if it is right: python -m tests.golden.plans"
