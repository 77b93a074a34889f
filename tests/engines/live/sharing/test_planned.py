from __future__ import annotations

from collections.abc import Mapping
from math import nan

import pyarrow as pa
import pytest

from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.lang.sql import plan_sql
from eventide.plan.tree import Plan
from tests.engines.live.sharing.texts import CATALOG

TEXT = "SELECT car, lane + $more AS n FROM cars WHERE speed > $least"


def test_a_text_with_parameters_is_planned_once_for_each_kind_of_row() -> None:
    planned: list[Mapping[str, object] | None] = []

    def plan(text: str, params: Mapping[str, object] | None) -> Plan:
        planned.append(params)
        return plan_sql(text, CATALOG, params)

    planner = ManyPlanner(plan)
    rows = (
        ({"least": [1.0, 2.0], "more": [1, 1]}, 1),
        ({"least": [3.0], "more": [1]}, 1),
        # A part of a column is no constant of its own.
        ({"least": [3.0], "more": [2]}, 2),
        # A sum with another type is another plan.
        ({"least": [3.0], "more": [2.0]}, 3),
        ({"least": [4.0], "more": [2.0]}, 3),
    )
    templates = set()
    for first, (row, plans) in enumerate(rows):
        found = planner.table(TEXT, pa.table(row), first)
        assert len(planned) == plans
        assert not found.lone
        templates |= {each.template.digest for each in found.portions}
    assert len(templates) == 3


def test_parameters_that_are_not_a_number_end() -> None:
    rows = pa.table({"least": [nan, 2.0, nan, nan], "more": [1, 1, 1, 1]})
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params))
    found = planner.table(TEXT, rows, 0)
    numbers = [number for each in found.portions for number in each.numbers.tolist()]
    assert sorted(numbers) == [0, 1, 2, 3]
    assert not found.lone


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0, -0.0]])
def test_a_zero_below_zero_is_a_parameter_of_its_own(zeros: list[float]) -> None:
    text = "SELECT COALESCE(speed, $p) AS speed FROM cars"
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params))
    found = planner.table(text, pa.table({"p": zeros}), 0)
    numbers = [sorted(each.numbers.tolist()) for each in found.portions]
    alike = [
        [place for place, each in enumerate(zeros) if str(each) == zero] for zero in ("0.0", "-0.0")
    ]
    assert sorted(numbers) == sorted(alike)


def test_integers_that_are_compared_with_doubles() -> None:
    large = [1, 2**62 + 1, 2**53 + 1, None]
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params))
    text = "SELECT car FROM cars WHERE speed < $p"
    found = planner.table(text, pa.table({"p": large}), 0)
    # Numbers ascend, although rows with nulls are planned before the others.
    assert [each.numbers.tolist() for each in found.portions] == [[0, 1, 2, 3]]
