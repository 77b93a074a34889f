"""EXISTS and NOT EXISTS are right at every instant: over the tuples that live then."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.standing.sets.existence import ExistenceOperator
from eventide.plan.expressions import Column
from eventide.plan.standing.execution import Execution
from eventide.schema import INT64
from tests.naive.standing.sets import Lived, existing
from tests.operators.standing.set_drive import (
    SCHEMA,
    answers,
    changes_of,
    cuts,
    edge_of,
    executions,
    expected,
    lives,
    run,
    same_changes,
)

RIGHT = pa.schema([("other", pa.int64()), ("text", pa.string())])


def operator_for(
    left: list[Lived], right: list[Lived], execution: Execution, *, negated: bool
) -> ExistenceOperator:
    keys = ((Column("k", INT64),), (Column("other", INT64),))
    return ExistenceOperator(SCHEMA, *keys, negated, execution, edge_of(left), edge_of(right))


@settings(deadline=None, max_examples=120)
@given(lives(), lives(), st.booleans(), executions, cuts)
def test_existence_is_right_at_every_instant(
    left: list[Lived],
    right: list[Lived],
    negated: bool,
    execution: Execution,
    steps: list[tuple[int, bool]],
) -> None:
    operator = operator_for(left, right, execution, negated=negated)
    inputs = [changes_of(left, execution), changes_of(right, execution, schema=RIGHT)]
    _, out = run(operator, inputs, steps)
    assert answers(out, execution) == expected((left, right), existing, negated=negated)
    assert same_changes(out, run(operator, inputs, [])[1])


@pytest.mark.parametrize("negated", [True, False])
def test_a_partner_replaced_within_an_instant_changes_nothing(negated: bool) -> None:
    #  left   [0 ───────────────── 9)
    #  right     [2 ── 4)[4 ── 6)
    left = [Lived((1, "a"), 0, 9)]
    right = [Lived((1, "x"), 2, 4), Lived((1, "y"), 4, 6)]
    inputs = [changes_of(left, "aware"), changes_of(right, "aware", schema=RIGHT)]
    _, out = run(operator_for(left, right, "aware", negated=negated), inputs, [])
    told = [(0, 1), (2, -1), (6, 1)] if negated else [(2, 1), (6, -1)]
    assert list(zip(out.at.tolist(), out.sign.tolist(), strict=True)) == told


def test_one_partner_takes_back_more_than_room_was_made_for() -> None:
    left = [Lived((1, "a"), 0, 30) for _ in range(300)]
    right = [Lived((1, "x"), 2, 4), Lived((None, "x"), 1, 20)]
    operator = operator_for(left, right, "aware", negated=True)
    inputs = [changes_of(left, "aware"), changes_of(right, "aware", schema=RIGHT)]
    _, out = run(operator, inputs, [(2, True), (3, False), (4, True)])
    assert len(out) == 900
    assert answers(out, "aware") == expected((left, right), existing, negated=True)
