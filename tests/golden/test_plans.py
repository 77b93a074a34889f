from __future__ import annotations

import pytest

from tests.golden.plans import planned, read


@pytest.mark.parametrize(("query", "plan"), list(read()), ids=lambda text: text.splitlines()[0])
def test_plan_is_the_golden_one(query: str, plan: str) -> None:
    assert planned(query) == plan, "if the new plan is right: python -m tests.golden.plans"
