from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

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
