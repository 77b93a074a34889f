"""The node of many windows, and the table of which windows there are."""

from __future__ import annotations

import pytest

from eventide.errors import PlanError
from eventide.plan.bind import bind
from eventide.plan.check import check_plan
from eventide.plan.expressions import Aggregate, Column, Named, NamedAggregate
from eventide.plan.nodes import Scan
from eventide.plan.sharing.query_windows import AskedWindow, QueryWindows
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.windows.nodes import Window
from eventide.schema import Schema

CARS = {"cars": Schema.of({"car": "string", "speed": "float64"})}
MEAN = NamedAggregate("mean", Aggregate("avg", Column("speed")))
MINUTE = Window(60_000_000, 60_000_000)


def node(name: str = "car") -> ManyWindows:
    plan = bind(ManyWindows(Scan("cars"), (Named(name, Column("car")),), (MEAN,)), CARS)
    assert isinstance(plan, ManyWindows)
    return plan


def test_its_rows_and_what_it_reads() -> None:
    plan = node()
    assert list(plan.row) == ["$query", "window_start", "window_end", "car", "mean"]
    assert plan.needed(frozenset({"mean"})) == (frozenset({"ts", "_seq", "car", "speed"}),)
    assert plan.line == "ManyWindows by car, of many queries: avg(speed) AS mean"


def test_names_are_different() -> None:
    with pytest.raises(PlanError, match="window_end"):
        check_plan(node("window_end"), after="binding")


def test_nodes_with_other_tables_are_equal() -> None:
    plan, other = node(), node()
    plan.table.add(AskedWindow(1, MINUTE), 0)
    assert plan == other


def test_queries_with_equal_windows_share_a_place() -> None:
    table = QueryWindows()
    for number in range(40):
        table.add(AskedWindow(number, Window(1 + number // 2, 5)), 0)
    numbers, offsets = table.members
    assert (table.births > 0).sum() == 20
    pairs = [numbers[offsets[i] : offsets[i + 1]].tolist() for i in range(len(offsets) - 1)]
    assert sorted(pair for pair in pairs if pair) == [[i, i + 1] for i in range(0, 40, 2)]


def test_a_free_place_is_used_again_with_another_birth() -> None:
    table = QueryWindows()
    table.add(AskedWindow(1, MINUTE), 0)
    (place,) = table.births.nonzero()[0]
    birth = table.births[place]
    table.drop(1)
    assert len(table) == 0
    assert not table.births.any()
    table.add(AskedWindow(2, Window(5, 5)), 3)
    assert table.births[place] > birth
    assert 2 in table
    assert [row.number for row in table.rows] == [2]
    assert table.starts.tolist() == [3]


def test_a_number_is_there_once() -> None:
    table = QueryWindows()
    table.add(AskedWindow(1, MINUTE), 0)
    with pytest.raises(PlanError, match="query 1"):
        table.add(AskedWindow(1, MINUTE), 0)
