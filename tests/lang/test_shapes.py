"""Texts that differ only in constants are planned once, and mean what they mean alone."""

from __future__ import annotations

from random import Random

import pytest

from eventide.lang.shapes import Shaped, TextShapes, constants_in
from eventide.lang.sql import plan_sql
from eventide.plan.expressions import Literal, substituted
from eventide.plan.meaning import spelled
from eventide.plan.sharing.template import TemplateQuery, member_of
from eventide.plan.tree import Plan
from tests.engines.live.sharing.texts import CATALOG, KINDS
from tests.exploring import EXPLORING


class Planner:
    """Plans texts, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, text: str) -> Plan:
        self.count += 1
        return plan_sql(text, CATALOG)


def meaning(found: Shaped | TemplateQuery | Plan) -> str:
    """Return what a query means, with its constants in its conditions."""
    if isinstance(found, TemplateQuery):
        return spelled((found.template.plan, found.conditions, found.constants))
    assert isinstance(found, Shaped)
    member, own = found.shape.member, len(found.shape.member.constants)
    literals = [
        Literal(value, literal.type)
        for value, literal in zip(found.values, member.constants, strict=True)
    ]
    meant = {f"${place}": literal for place, literal in enumerate(literals, 1)}
    conditions = tuple(substituted(each, meant) for each in member.conditions)
    kept = own - (own - len(member_constants(member)))
    return spelled((member.template.plan, conditions, tuple(literals[:kept])))


def member_constants(member: TemplateQuery) -> set[str]:
    """Return the constants that the template reads; those of conditions come behind them."""
    names = {name for leaf in member.template.leaves for name in leaf.row if name.startswith("$")}
    return {name.rstrip("'") for name in names} - {"$query"}


@pytest.mark.parametrize("seed", range(300 if EXPLORING else 20))
def test_a_text_of_a_known_shape_means_what_it_means_alone(seed: int) -> None:
    random, shapes = Random(seed), TextShapes(lambda text: plan_sql(text, CATALOG))
    kind = random.choice(KINDS)
    for _ in range(6):
        text = kind(random)
        alone = member_of(plan_sql(text, CATALOG))
        found = shapes.find(text)
        if alone is None:
            assert not isinstance(found, TemplateQuery | Shaped)
        else:
            assert meaning(found) == meaning(alone), text


def test_a_shape_is_planned_once() -> None:
    planner = Planner()
    shapes = TextShapes(planner)
    for lane in range(50):
        shapes.find(f"SELECT car FROM cars WHERE lane = {lane} AND car = 'x{lane}'")
    assert planner.count == 1


def test_a_shape_is_found_by_the_constants_in_it_however_many_there_are() -> None:
    shapes = TextShapes(Planner())
    for number in range(20):
        shapes.find(f"SELECT car FROM cars WHERE car LIKE 'x{number}%' AND lane = {number}")
    constants = constants_in("SELECT car FROM cars WHERE car LIKE 'x7%' AND lane = 9")
    assert constants is not None
    (outline,) = shapes.known.tables
    assert len(list(shapes.known.fitting(outline, constants))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '{}' SECOND)",
        "SELECT car FROM cars WHERE car LIKE '{}%'",
        "SELECT car, {} FROM cars",
        "SELECT car FROM cars WHERE ts > TIMESTAMP '2026-01-0{}'",
        "SELECT car FROM cars WHERE lane = {} -- a 'comment'",
        'SELECT car AS "x 1" FROM cars WHERE lane = {}',
    ],
)
def test_what_a_plan_depends_on_otherwise_is_planned_again(text: str) -> None:
    planner = Planner()
    shapes = TextShapes(planner)
    for number in (1, 2, 3):
        assert spelled_of(shapes, text.format(number)) == spelled_of(
            TextShapes(planner), text.format(number)
        )
    assert planner.count >= 6


def spelled_of(shapes: TextShapes, text: str) -> str:
    return meaning(shapes.find(text))


def test_numbers_and_strings_of_a_text() -> None:
    found = constants_in("x = 'it' AND y > 3 AND z < 2.50 AND a1 > b.c2 AND d = 5e3")
    assert found is not None
    assert [(each.kind, each.value) for each in found[:2]] == [("text", "it"), ("int", 3)]
    assert len(found) == 3
