from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError, UnsupportedError
from eventide.operators.changes import Changes
from eventide.operators.standing.answer.top import FirstRows
from eventide.plan.expressions import Column, OrderKey
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.plan.standing.nodes import Top
from eventide.schema import BINARY, BOOL, FLOAT64, INT64, STRING
from tests.naive.standing.groups import Tuple, first_rows
from tests.operators.standing.group_drive import (
    EDGES,
    Source,
    answers,
    changes_of,
    lives,
    run,
    same_changes,
)

ROW = {"x": FLOAT64, "i": INT64, "b": BOOL, "s": STRING}
SCHEMA = pa.schema([(name, kind.arrow) for name, kind in ROW.items()])
INSTANTS = range(-6, 40)
VALUES = st.fixed_dictionaries(
    {
        "x": st.sampled_from([None, 0.0, 1.5, -2.0, math.inf, math.nan]),
        "i": st.sampled_from([None, 0, 1, -1, 2**62]),
        "b": st.sampled_from([None, True, False]),
        "s": st.sampled_from(["p", "q", "", "pé", "p\x00", "z" * 20, None]),
    }
)
ORDERS = [
    [("x", True, False), ("i", False, True)],
    [("b", False, False), ("x", False, True)],
    [("i", True, True)],
    [("s", True, False)],
    [("b", True, False), ("s", False, True), ("i", True, False)],
]


def top(order: list[tuple[str, bool, bool]], count: int) -> Top:
    keys = tuple(
        OrderKey(Column(name, ROW[name]), descending, nulls_first)
        for name, descending, nulls_first in order
    )
    return Top(Source(dict(ROW)).plan(), keys, count)


@pytest.mark.parametrize("pattern", EDGES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_first_rows_are_right_at_every_instant(pattern: str, data: st.DataObject) -> None:
    tuples = data.draw(lives(pattern, VALUES))
    order, count = data.draw(st.sampled_from(ORDERS)), data.draw(st.integers(1, 4))
    cuts = data.draw(st.lists(st.integers(-5, 30), max_size=4))
    reload = data.draw(st.booleans())
    expected = [first_rows(tuples, instant, order, count, list(ROW)) for instant in INSTANTS]
    for execution in EXECUTIONS:
        operator = FirstRows(top(order, count), EDGES[pattern], execution)
        changes = changes_of(tuples, execution, SCHEMA)
        out = run(operator, changes, cuts, SCHEMA, reload=reload)
        assert list(answers(out, INSTANTS, execution)) == expected
        assert same_changes(out, run(operator, changes, [], SCHEMA, reload=False))


def test_a_row_that_expires_in_front_is_not_mentioned_again() -> None:
    tuples = [Tuple(i, i + 5, None, i, {"x": -i, "i": 0, "b": None, "s": "p"}) for i in (0, 2)]
    operator = FirstRows(top([("x", True, False)], 1), EDGES["weakest"])
    out = run(operator, changes_of(tuples, "aware", SCHEMA), [], SCHEMA, reload=False)
    assert list(zip(out.at.tolist(), out.sign.tolist(), out.exp.tolist(), strict=True)) == [
        (0, 1, 5),
        (5, 1, 7),
    ]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_rows_that_are_gone_are_forgotten(execution: Execution) -> None:
    tuples = [Tuple(i, i + 5, None, i, {"x": 0.5, "i": i, "b": None}) for i in range(6000)]
    operator = FirstRows(top([("i", True, False)], 3), EDGES["weakest"], execution)
    changes = changes_of(tuples, execution, SCHEMA)
    state = operator.initial_state()
    for until in range(500, 7000, 500):
        now = np.flatnonzero((changes.at >= until - 500) & (changes.at < until))
        state, _ = operator.step(state, (changes.take(now),), until)
        assert state.rows.size < 2500
    assert operator.size(state).tuples == 0


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_texts_that_are_gone_are_forgotten(execution: Execution) -> None:
    tuples = [
        Tuple(i, i + 5, None, i, {"x": 0.5, "i": i, "b": None, "s": f"{7 * i % 6000:04}"})
        for i in range(6000)
    ]
    operator = FirstRows(top([("s", True, False)], 3), EDGES["weakest"], execution)
    changes = changes_of(tuples, execution, SCHEMA)
    state, out = operator.initial_state(), []
    for until in range(500, 7000, 500):
        now = np.flatnonzero((changes.at >= until - 500) & (changes.at < until))
        state, found = operator.step(state, (changes.take(now),), until)
        out.append(found)
        assert len(state.texts) < 2500
    expected = [
        first_rows(tuples, i, [("s", True, False)], 3, list(ROW)) for i in range(0, 6000, 99)
    ]
    assert list(answers(Changes.concat(out, SCHEMA), range(0, 6000, 99), execution)) == expected


def test_binary_values_have_no_words_to_order_by() -> None:
    with pytest.raises(UnsupportedError, match="texts"):
        FirstRows(
            Top(
                Source({"y": BINARY}).plan(),
                (OrderKey(Column("y", BINARY), descending=False, nulls_first=False),),
                3,
            ),
            EDGES["weakest"],
        )


def test_a_state_of_another_length_is_refused() -> None:
    one, other = (FirstRows(top(ORDERS[0], count), EDGES["weak"]) for count in (1, 2))
    with pytest.raises(StateError, match="written by another"):
        other.load(one.dump(one.initial_state()))
