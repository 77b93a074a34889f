"""What queries have in common, and in what they differ."""

from __future__ import annotations

import pytest

from eventide.lang.sql import plan_sql
from eventide.plan.check import check_plan
from eventide.plan.explain import explain
from eventide.plan.render import render
from eventide.plan.sharing.rules import RULES_OF_HISTORY, RULES_OF_SETS, SharingRules
from eventide.plan.sharing.template import TemplateQuery, member_of
from tests.engines.live.sharing.texts import CATALOG


def member(text: str, *, common: bool = False, rules: SharingRules | None = None) -> TemplateQuery:
    found = member_of(plan_sql(text, CATALOG), common=common, rules=rules or SharingRules())
    assert found is not None
    check_plan(found.template.plan, after="member_of")
    return found


def test_a_condition_above_a_stream_is_the_querys_own() -> None:
    fast = member("SELECT car FROM cars WHERE speed > 70")
    lane = member("SELECT car FROM cars WHERE lane = 3 OR car LIKE 'a%'")
    assert fast.template == lane.template
    assert [render(each) for each in fast.conditions] == ["speed > 70.0"]
    assert explain(fast.template.plan) == "Project car, $query\n  Scan cars (ts, car, $query)"


def test_constants_above_a_stream_become_columns() -> None:
    text = (
        "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES A.ts AS t "
        "PATTERN (A B) DEFINE A AS speed > {}, B AS speed > PREV(speed) + {})"
    )
    one, other = member(text.format(70, 1)), member(text.format("7.5", 2))
    assert one.template == other.template
    assert [each.value for each in one.constants] == [70.0, 1.0]
    assert [each.value for each in other.constants] == [7.5, 2.0]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM cars WHERE lane = 1 GROUP BY TUMBLE(ts, INTERVAL '{}' SECOND)",
        "SELECT car FROM cars WHERE car = 'a' UNION ALL SELECT SUBSTR(car, {}) FROM photos",
    ],
)
def test_what_is_more_than_a_value_is_part_of_the_template(text: str) -> None:
    assert member(text.format(5)).template != member(text.format(6)).template


@pytest.mark.parametrize("follows", ["NEXT{{DUR <= {}s}}", "FOLD{{DUR < {}s, , }}"])
def test_how_long_a_result_may_last_is_a_value(follows: str) -> None:
    text = f"SELECT * FROM FILTER{{{{lane = 3}}}}(cars) {follows}(photos)"
    one, other = member(text.format(5)), member(text.format(6))
    assert one.template == other.template
    assert "within $1" in explain(one.template.plan)
    # Rows of a set may have channels, which they would not with a value of each query's own.
    for rules in (RULES_OF_SETS, RULES_OF_HISTORY):
        same, longer = (member(text.format(each), rules=rules) for each in (5, 6))
        assert same.template != longer.template


def test_what_may_follow_is_found_by_the_index_or_is_common() -> None:
    text = (
        "SELECT * FROM FILTER{{speed > {}}}(cars) "
        "NEXT{{$1.car = $2.car}}(FILTER{{lane > {}}}(cars))"
    )
    assert member(text.format(70, 1)).template == member(text.format(60, 2)).template
    assert len(member(text.format(70, 1)).conditions) == 2
    first, second = (member(text.format(70, lane), common=True) for lane in (1, 2))
    assert first.template != second.template
    assert len(first.conditions) == 1


@pytest.mark.parametrize("follows", ["NEXT{#}", "FOLD{#, , }"])
@pytest.mark.parametrize("columns", ["*", "speed_1"])
def test_what_may_follow_is_found_by_its_value(follows: str, columns: str) -> None:
    def text(lane: int, car: str) -> str:
        asked = follows.replace("#", f"$2.lane = {lane} AND $2.car = '{car}'")
        return f"SELECT {columns} FROM FILTER{{speed > 7}}(cars) {asked}(cars)"

    found, other = member(text(1, "a")), member(text(2, "b"))
    assert found.template == other.template
    assert len(found.conditions) == 1
    assert [each.value for each in found.constants] == [1, "a"]
    assert "= lane" in explain(found.template.plan)
    assert "$query" not in found.template.leaves[1].row
    off = member(text(1, "a"), rules=SharingRules(share_followers=False))
    assert len(off.conditions) == 2


def test_a_sequence_waits_for_events_without_numbers_if_all_are_the_same() -> None:
    found = member("SELECT * FROM FILTER{speed > 70}(cars) NEXT{$1.car = $2.car}(photos)")
    assert [leaf.stream for leaf in found.template.leaves] == ["cars", "photos"]
    assert "$query" in found.template.leaves[0].row
    assert "$query" not in found.template.leaves[1].row


@pytest.mark.parametrize(
    "text",
    [
        "SELECT car, COUNT(*) AS n FROM cars [RANGE 5 SECONDS] GROUP BY car",
        "SELECT CAST(car AS BIGINT) AS x FROM cars",
    ],
)
def test_queries_that_share_nothing(text: str) -> None:
    assert member_of(plan_sql(text, CATALOG)) is None


def test_a_condition_that_may_fail_is_the_querys_own() -> None:
    assert member("SELECT car FROM cars WHERE 10 / lane > 2").template == (
        member("SELECT car FROM cars WHERE speed > 2").template
    )


def test_rules_may_be_off() -> None:
    text = "SELECT car FROM cars WHERE lane = {}"
    rules = SharingRules(index_conditions=False)
    assert (
        member(text.format(1), rules=rules).template == member(text.format(2), rules=rules).template
    )
    rules = SharingRules(index_conditions=False, lift_constants=False)
    assert (
        member(text.format(1), rules=rules).template != member(text.format(2), rules=rules).template
    )
