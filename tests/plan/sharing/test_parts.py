"""Plans are divided into a part that several queries have, and what each has above it."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.lang.sql import plan_sql
from eventide.plan.check import check_plan
from eventide.plan.explain import explain
from eventide.plan.sharing.part_rows import PART_NUMBER, PARTS_FROM
from eventide.plan.sharing.portion import Portion, with_parts
from eventide.plan.sharing.rules import ALL_RULES, WITHOUT_PARTS, SharingRules
from tests.engines.live.sharing.texts import CATALOG, HYBRIDS, Draw

TOTALS = """SELECT car, SUM(speed) AS s FROM cars WHERE lane = {}
    GROUP BY car, TUMBLE(ts, INTERVAL '{}' SECOND) HAVING SUM(speed) {}"""


def planned(*texts: str, rules: SharingRules = ALL_RULES) -> list[Portion]:
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params), rules)
    found = planner.texts(texts, 0)
    assert not found.lone
    return found.portions


def parts_by_query(portions: list[Portion]) -> dict[int, int | None]:
    """The number of the part of each query, if it has one."""
    found: dict[int, int | None] = {}
    for each in portions:
        has = each.template.parts
        own = each.constants.column(PART_NUMBER).to_pylist() if has else [None] * len(each.numbers)
        found |= dict(zip(each.numbers.tolist(), own, strict=True))
    return found


def test_queries_have_a_part_in_common_whatever_is_above_it() -> None:
    found = planned(TOTALS.format(1, 5, "> 7"), TOTALS.format(1, 5, "< 9 OR car = 'a'"))
    assert set(parts_by_query(found).values()) == {PARTS_FROM}
    assert len({each.template.digest for each in found}) == 1  # the conditions are in the index
    (part,) = {each.parts[0].template.digest for each in found}
    assert all(part in explain(each.template.plan) for each in found)


def test_parts_that_differ_in_a_constant_or_in_a_window_are_different() -> None:
    draws = ((1, 5), (1, 5), (2, 5), (2, 5), (1, 6), (1, 6), (3, 5))
    texts = (TOTALS.format(*own, f"> {n}") for n, own in enumerate(draws))
    own = parts_by_query(planned(*texts))
    assert own[0] == own[1] != own[2] == own[3] != own[4] == own[5] != own[0]
    assert own[6] is None  # no other query has it


def test_the_part_is_taken_that_most_queries_have() -> None:
    inner = "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND)"
    twice = f"SELECT car, n FROM ({inner}) WHERE n > 3"
    found = planned(twice, twice, f"SELECT car, n + 1 AS m FROM ({inner}) WHERE n < 7")
    assert len({each.parts[0].numbers[0] for each in found}) == 1


def test_parts_of_a_table_are_found_at_once() -> None:
    text = TOTALS.format("$lane", 5, "> $least")
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params))
    table = pa.table({"lane": [1, 2, 1, 3, 2], "least": [1.0, 2.0, 3.0, 4.0, 5.0]})
    own = parts_by_query(planner.table(text, table, 0).portions)
    assert own[0] == own[2] != own[1] == own[4]
    assert own[3] is None


def test_without_the_rule_there_are_no_parts() -> None:
    texts = [TOTALS.format(1, 5, f"> {n}") for n in range(3)]
    assert not any(each.parts for each in planned(*texts, rules=WITHOUT_PARTS))


@pytest.mark.parametrize("draw", HYBRIDS)
def test_divided_plans_are_sound(draw: Draw) -> None:
    random = Random(0)
    portions = planned(*(draw(random) for _ in range(12)))
    assert any(each.parts for each in portions)
    for each in with_parts(portions):
        check_plan(each.template.plan, after="with_shared_parts")
        assert set(each.template.plan.row) == {*each.template.columns, "$query"}
